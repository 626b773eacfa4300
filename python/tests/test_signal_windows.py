"""Windows: by their formulas, their symmetry, their arguments and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.signal import windows

F64 = torch.float64


def i0(x: float) -> float:
    """The modified Bessel function by its series."""
    term, total, k = 1.0, 1.0, 1
    while term > 1e-20 * total:
        term *= (x / 2 / k) ** 2
        total += term
        k += 1
    return total


def cosines(*a: float) -> Callable[[int, int], float]:
    def value(n: int, steps: int) -> float:
        angle = 2 * math.pi * n / steps
        return sum((-1) ** i * w * math.cos(i * angle) for i, w in enumerate(a))

    return value


# The number at place n of a window that spans so many steps.
FORMULAS: dict[str, tuple[dict[str, Any], Callable[[int, int], float]]] = {
    "bartlett": ({}, lambda n, steps: 1 - abs(2 * n / steps - 1)),
    "blackman": ({}, cosines(0.42, 0.5, 0.08)),
    "cosine": ({}, lambda n, steps: math.sin(math.pi * (n + 0.5) / (steps + 1))),
    "exponential": ({"tau": 2.0}, lambda n, steps: math.exp(-abs(n - steps / 2) / 2.0)),
    "gaussian": ({"std": 1.5}, lambda n, steps: math.exp(-((n - steps / 2) ** 2) / 4.5)),
    "general_cosine": ({"a": [0.46, 0.23, 0.31]}, cosines(0.46, 0.23, 0.31)),
    "general_hamming": ({"alpha": 0.6}, cosines(0.6, 0.4)),
    "hamming": ({}, cosines(0.54, 0.46)),
    "hann": ({}, cosines(0.5, 0.5)),
    "kaiser": (
        {"beta": 7.0},
        lambda n, steps: i0(7 * math.sqrt(max(1 - (2 * n / steps - 1) ** 2, 0))) / i0(7),
    ),
    "nuttall": ({}, cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)),
}
LENGTHS = [2, 3, 4, 5, 8, 31, 100]


def near(got: torch.Tensor, expected: list[float], tolerance: float) -> None:
    assert got.shape == (len(expected),)
    for a, b in zip(got.tolist(), expected, strict=True):
        assert abs(a - b) <= tolerance, (got.tolist(), expected)


@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_those_of_the_formula(name: str) -> None:
    function = getattr(windows, name)
    options, formula = FORMULAS[name]
    for length in LENGTHS:
        for sym in (True, False):
            steps = length - 1 if sym else length
            expected = [formula(n, steps) for n in range(length)]
            near(function(length, sym=sym, dtype=F64, **options), expected, 4e-15)
            near(function(length, sym=sym, **options), expected, 2e-6)
    assert function(0, **options).shape == (0,)
    assert function(1, sym=False, **options).tolist() == [1.0]


@pytest.mark.parametrize("name", FORMULAS)
def test_arguments(name: str) -> None:
    function = getattr(windows, name)
    options, _ = FORMULAS[name]
    shown = "general_cosine" if name in ("hann", "hamming", "general_hamming", "nuttall") else name
    assert function(3, **options).dtype == torch.float32
    window = function(4, requires_grad=True, **options)
    assert window.requires_grad
    assert function(3, device="cpu", layout=torch.strided, **options).device.type == "cpu"
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        function(-1, **options)
    for dtype in (torch.int32, torch.float16, torch.complex64):
        with pytest.raises(ValueError, match="expects float32 or float64 dtypes, got: "):
            function(5, dtype=dtype, **options)
    with pytest.raises(ValueError, match="is implemented for strided tensors only"):
        function(5, layout=torch.sparse_coo, **options)
    with pytest.raises(TypeError):
        function(5.5, **options)
    with pytest.raises(TypeError):
        function(5, other=1, **options)
    if name not in ("blackman", "general_cosine"):
        with pytest.raises(ValueError, match=shown):
            function(-2, **options)


def test_what_single_windows_refuse() -> None:
    for tau in (0.0, -1.0):
        with pytest.raises(ValueError, match=f"Tau must be positive, got: {tau} instead."):
            windows.exponential(5, tau=tau)
    with pytest.raises(ValueError, match="Center must be None for symmetric windows"):
        windows.exponential(5, center=1.0)
    for std in (0.0, -1):
        with pytest.raises(ValueError, match=f"deviation must be positive, got: {std} instead."):
            windows.gaussian(5, std=std)
    with pytest.raises(ValueError, match="beta must be non-negative, got: -1 instead"):
        windows.kaiser(5, beta=-1)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        windows.general_cosine(5, a=[])
    with pytest.raises(TypeError, match="Coefficients must be a list/tuple"):
        windows.general_cosine(5, a=3)
    with pytest.raises(TypeError):
        windows.general_cosine(5)


def test_further_arguments() -> None:
    near(
        windows.exponential(4, center=1.0, sym=False, dtype=F64),
        [math.exp(-abs(n - 1)) for n in range(4)],
        1e-15,
    )
    assert windows.kaiser(4, beta=0).tolist() == [1, 1, 1, 1]
    near(windows.general_cosine(5, a=(1, 2), dtype=F64), [-1, 1, 3, 1, -1], 1e-14)


# The functions of the main namespace, and the same windows.
MAIN = {
    "bartlett_window": FORMULAS["bartlett"][1],
    "blackman_window": cosines(0.42, 0.5, 0.08),
    "hamming_window": cosines(0.54, 0.46),
    "hann_window": cosines(0.5, 0.5),
    "kaiser_window": lambda n, steps: (
        i0(12 * math.sqrt(max(1 - (2 * n / steps - 1) ** 2, 0))) / i0(12)
    ),
}


@pytest.mark.parametrize("name", MAIN)
def test_windows_of_the_main_namespace(name: str) -> None:
    function, formula = getattr(torch, name), MAIN[name]
    for length in LENGTHS:
        for periodic in (True, False):
            steps = length if periodic else length - 1
            expected = [formula(n, steps) for n in range(length)]
            near(function(length, periodic, dtype=F64), expected, 4e-15)
            near(function(length, periodic=periodic), expected, 1e-6)
            near(function(length, periodic, dtype=torch.float16), expected, 4e-3)
            near(function(length, periodic, dtype=torch.bfloat16), expected, 4e-2)
        assert function(length).tolist() == function(length, True).tolist()
    assert function(0).shape == (0,)
    assert function(1).tolist() == [1.0]
    assert function(window_length=3).dtype == torch.float32
    assert function(3, requires_grad=True).requires_grad
    assert function(3, layout=torch.strided, device="cpu", pin_memory=False).shape == (3,)


@pytest.mark.parametrize("name", MAIN)
def test_what_windows_of_the_main_namespace_refuse(name: str) -> None:
    function = getattr(torch, name)
    with pytest.raises(RuntimeError, match=f"{name} requires non-negative window_length, got"):
        function(-1)
    for length in (0, 1, 5):
        with pytest.raises(RuntimeError, match=f"{name} expects floating point dtypes, got"):
            function(length, dtype=torch.int32)
    with pytest.raises(NotImplementedError, match='"arange_cpu" not implemented for'):
        function(5, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match=f"{name} is not implemented for sparse types"):
        function(5, layout=torch.sparse_coo)
    for length in (5.0, True):
        with pytest.raises(TypeError, match="window_length"):
            function(length)
    with pytest.raises(TypeError):
        function(5, False, 0.3, 0.4, 0.5)


def test_shapes_of_single_windows_of_the_main_namespace() -> None:
    near(torch.hamming_window(5, False, 0.3, dtype=F64), [-0.16, 0.3, 0.76, 0.3, -0.16], 1e-15)
    near(torch.hamming_window(5, False, 0.3, 0.4, dtype=F64), [-0.1, 0.3, 0.7, 0.3, -0.1], 1e-15)
    assert torch.kaiser_window(3, True, 0.0).tolist() == [1, 1, 1]
    expected = [i0(2.5 * math.sqrt(1 - (2 * n / 4 - 1) ** 2)) / i0(2.5) for n in range(5)]
    near(torch.kaiser_window(5, False, 2.5, dtype=F64), expected, 1e-15)
    near(torch.kaiser_window(5, periodic=False, beta=2.5, dtype=F64), expected, 1e-15)
