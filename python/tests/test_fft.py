"""Fourier transforms: values by the sum that defines them, dtypes, errors, derivatives, batches."""

from __future__ import annotations

import cmath
import itertools
import math
from typing import Any

import pytest

import pullback as torch
from pullback import fft

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = [f"{name}{end}" for name in ONE for end in ("2", "n")]
OF_REAL = {"rfft", "ihfft", "rfft2", "rfftn", "ihfft2", "ihfftn"}


def numbers(*shape: int, complex: bool = True, seed: int = 0) -> torch.Tensor:
    """Numbers between -1 and 1 by a formula, in double precision."""

    def number(i: int) -> float:
        return math.sin(12.9898 * (i + 1) + 78.233 * (seed + 1)) * 43758.5453 % 2 - 1

    n = math.prod(shape)
    parts = [[number(2 * i + k) for i in range(n)] for k in (0, 1)]
    real, imag = (torch.tensor(part, dtype=torch.float64).reshape(shape) for part in parts)
    return torch.complex(real, imag) if complex else real


def taken(name: str, *shape: int, seed: int = 0) -> torch.Tensor:
    """What the function takes: real numbers if it takes no others."""
    return numbers(*shape, complex=name not in OF_REAL, seed=seed)


def matrix(n: int, sign: int) -> torch.Tensor:
    """``exp(sign 2 pi i j k / n)``."""
    rows = [[cmath.exp(sign * 2j * math.pi * (j * k % n) / n) for k in range(n)] for j in range(n)]
    return torch.tensor(rows, dtype=torch.complex128)


def summed(x: torch.Tensor, dim: int, sign: int) -> torch.Tensor:
    """The transform along a dimension by its definition, without a factor."""
    lines = x.to(torch.complex128).movedim(dim, -1)
    return (lines @ matrix(x.shape[dim], sign)).movedim(-1, dim)


def close(a: torch.Tensor, b: torch.Tensor, tolerance: float = 1e-12) -> None:
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if a.numel():
        assert (a - b).abs().max().item() <= tolerance * max(b.abs().max().item(), 1.0)


@pytest.mark.parametrize("n", [*range(1, 33), 37, 64, 97, 100, 101, 128, 210, 243, 251])
def test_every_length_gives_the_sum(n: int) -> None:
    x, real = numbers(2, n), numbers(2, n, complex=False)
    close(fft.fft(x), summed(x, 1, -1))
    close(fft.ifft(x), summed(x, 1, 1) / n)
    close(fft.fft(real), summed(real, 1, -1))
    half = summed(real, 1, -1)[:, : n // 2 + 1]
    close(fft.rfft(real), half)
    close(fft.irfft(half, n), real)
    close(fft.ihfft(real), half.conj().resolve_conj() / n)
    close(fft.hfft(half.conj() / n, n), real)


def test_long_lengths_give_back_what_was_transformed() -> None:
    for n in (65_536, 100_000, 65_537, 120_120):
        x = numbers(n)
        close(fft.ifft(fft.fft(x)), x)
        real = numbers(n, complex=False)
        close(fft.irfft(fft.rfft(real), n), real)
        # One of the sums.
        k = 12_345
        wave = torch.tensor([cmath.exp(-2j * math.pi * (j * k % n) / n) for j in range(n)])
        wave = wave.to(torch.complex128)
        assert abs((fft.fft(x)[k] - (x * wave).sum()).item()) < 1e-3
    single = numbers(65_536).to(torch.complex64)
    close(fft.ifft(fft.fft(single)), single, 1e-6)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_the_factor_is_that_of_the_norm(norm: str | None) -> None:
    x = numbers(3, 4)
    kind = norm or "backward"
    forward = {"backward": 1.0, "ortho": 1 / math.sqrt(12), "forward": 1 / 12}[kind]
    both = summed(summed(x, 0, -1), 1, -1)
    close(fft.fft2(x, norm=norm), both * forward)
    close(fft.fftn(x, norm=norm), both * forward)
    close(fft.ifft2(fft.fft2(x, norm=norm), norm=norm), x)
    real = numbers(3, 4, complex=False)
    for there, back in (("rfftn", "irfftn"), ("ihfftn", "hfftn"), ("rfft2", "irfft2")):
        spectrum = getattr(fft, there)(real, norm=norm)
        close(getattr(fft, back)(spectrum, norm=norm), real)
    close(fft.rfftn(real, norm=norm), summed(summed(real, 0, -1), 1, -1)[:, :3] * forward)


def test_the_input_is_cut_off_or_followed_by_zeros() -> None:
    x = numbers(3, 5)
    close(fft.fft(x, 3), fft.fft(x[:, :3]))
    close(fft.fft(x, 7), fft.fft(torch.cat([x, torch.zeros(3, 2, dtype=x.dtype)], 1)))
    close(fft.fft(x, 2, 0), fft.fft(x[:2], dim=0))
    close(fft.irfft(x, 4), fft.irfft(x[:, :3]))
    close(fft.irfft(x, 9), fft.irfft(x, n=9))
    close(fft.fftn(x, (4, 2)), fft.fft(fft.fft(x, 2, 1), 4, 0))
    close(fft.fftn(x, (-1, 2)), fft.fft(fft.fft(x, 2, 1), 3, 0))
    close(fft.fftn(x, 4), fft.fft(x, 4))
    close(fft.irfftn(x, (3, -1)), fft.irfft(fft.ifft(x, dim=0), 8))
    close(fft.hfft2(x, (2, 6)), fft.hfft(fft.fft(x, 2, 0), 6))
    real = x.real
    close(fft.rfft2(real, (2, 8)), fft.fft(fft.rfft(real, 8), 2, 0))
    close(fft.ihfft2(real, (4, 4)), fft.ifft(fft.ihfft(real, 4), 4, 0))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_dimensions_in_any_order_and_layout(name: str) -> None:
    function, one = getattr(fft, name), getattr(fft, name[:-1])
    others = {"irfftn": fft.ifft, "ihfftn": fft.ifft, "ifftn": fft.ifft}.get(name, fft.fft)
    plain = taken(name, 3, 4, 2)
    for order in itertools.permutations(range(3)):
        back = [order.index(d) for d in range(3)]
        x = plain.permute(order).contiguous().permute(back)
        for dims in [(0,), (1,), (-1,), (0, 1), (2, 0), (-1, -3), (1, 2, 0), (2, 1, 0)]:
            if name in ("irfftn", "hfftn"):
                expected = plain
                for dim in dims[:-1]:
                    expected = others(expected, dim=dim)
                expected = one(expected, dim=dims[-1])
            else:
                expected = one(plain, dim=dims[-1])
                for dim in dims[:-1]:
                    expected = others(expected, dim=dim)
            close(function(x, dim=dims), expected.resolve_conj())


def test_strides_are_those_of_pytorch() -> None:
    x = numbers(3, 4)
    assert fft.fft(x).stride() == (4, 1)
    assert fft.fft(x, dim=0).stride() == (1, 3)
    assert fft.fft2(x, dim=(0,)).stride() == (1, 3)
    assert fft.fftn(x, dim=()).stride() == (4, 1)
    assert fft.ihfftn(x.real).stride() == (1, 3)
    assert fft.irfftn(x).stride() == (6, 1)
    assert fft.fft(x.t()).stride() == (3, 1)
    assert fft.fftn(numbers(2, 3, 4).permute(2, 0, 1), dim=(1,)).stride() == (2, 1, 8)
    assert fft.rfft(numbers(2, 3, 4, complex=False), dim=1).stride() == (8, 1, 2)


def test_dtypes() -> None:
    for dtype in (torch.int32, torch.bool, torch.uint8, torch.int64, torch.float32):
        x = torch.ones(4, 4).to(dtype)
        assert fft.fft(x).dtype == fft.rfft(x).dtype == fft.ihfftn(x).dtype == torch.complex64
        assert fft.irfft(x).dtype == fft.hfft2(x).dtype == torch.float32
    assert fft.fft2(torch.ones(2, 2, dtype=torch.float64)).dtype == torch.complex128
    whole = torch.tensor([3, -1, 4, 1])
    close(fft.fft(whole), fft.fft(whole.to(torch.float32)), 1e-6)
    for dtype, word in ((torch.float16, "Half"), (torch.bfloat16, "BFloat16")):
        for name in ONE + MANY:
            with pytest.raises(NotImplementedError, match=f"Unsupported dtype {word}"):
                getattr(fft, name)(torch.ones(2, 2, dtype=dtype))
    with pytest.raises(NotImplementedError, match="support tensors of type: Half"):
        fft.fft(torch.ones(4, dtype=torch.complex64).to(torch.complex32))
    with torch.autocast("cpu", torch.bfloat16):
        assert fft.fft(torch.ones(4, dtype=torch.bfloat16)).dtype == torch.complex64


def test_conjugates_are_views() -> None:
    real = numbers(2, 4, complex=False)
    assert fft.ifft(real).is_conj()
    assert fft.ihfft(real).is_conj()
    assert fft.ihfftn(real, dim=(1,)).is_conj()
    assert not fft.ihfftn(real).is_conj()
    assert not fft.fft(real).is_conj()
    assert not fft.hfft(real).is_conj()
    x = numbers(2, 4)
    close(fft.fft(x.conj()), fft.fft(x.conj().resolve_conj()))
    close(fft.irfft(x.conj()), fft.irfft(x.conj().resolve_conj()))
    close(fft.fft(real.neg()), -fft.fft(real))


def test_out() -> None:
    x = numbers(3, 4)
    for dtype in (torch.complex128, torch.complex64):
        out = torch.empty(0, dtype=dtype)
        assert fft.fft(x, out=out) is out
        assert out.shape == (3, 4)
        close(out, fft.fft(x).to(dtype), 1e-6)
    turned = torch.empty(4, 3, dtype=x.dtype).t()
    fft.fft2(x, out=turned)
    assert turned.stride() == (1, 3)
    close(turned.contiguous(), fft.fft2(x))
    expected = fft.fft(x)
    fft.fft(x, out=x)
    close(x, expected)
    out = torch.empty(0, dtype=torch.float64)
    close(fft.irfftn(x, out=out), fft.irfftn(x))
    with pytest.raises(RuntimeError, match=r"^fft expects a complex output tensor, but got Double"):
        fft.fft(x, out=torch.empty(0, dtype=torch.float64))
    for dtype, word in ((torch.int64, "Long"), (torch.complex128, "ComplexDouble")):
        with pytest.raises(
            RuntimeError, match=f"irfft expects a floating point .*, but got {word}"
        ):
            fft.irfft(x, out=torch.empty(0, dtype=dtype))


BAD: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    *((name, {"n": 0}, RuntimeError, r"number of data points \(0\) specified") for name in ONE),
    *((name, {"n": -1}, RuntimeError, r"number of data points \(-1\) specified") for name in ONE),
    *((name, {"dim": 2}, IndexError, "Dimension out of range") for name in ONE),
    *((name, {"norm": "no"}, RuntimeError, 'Invalid normalization mode: "no"') for name in ONE),
    *((name, {"dim": (0, -2)}, RuntimeError, "FFT dims must be unique") for name in MANY),
    *((name, {"dim": (2,)}, IndexError, "Dimension out of range") for name in MANY),
    *((name, {"s": (0, 2)}, RuntimeError, r"data points \(0\) specified") for name in MANY),
    *((name, {"s": (-2, 2)}, RuntimeError, r"data points \(-2\) specified") for name in MANY),
    *(
        (name, {"s": (1, 2), "dim": (0,)}, RuntimeError, "must have the same length")
        for name in MANY
    ),
    *((name, {"norm": "no"}, RuntimeError, 'Invalid normalization mode: "no"') for name in MANY),
    ("fftn", {"s": (1, 2, 3)}, RuntimeError, "Got shape with 3 values but input tensor only has 2"),
    ("fft2", {"s": 4}, RuntimeError, "must have the same length"),
    ("rfft2", {"dim": ()}, RuntimeError, "rfftn must transform at least one axis"),
    ("irfftn", {"dim": ()}, RuntimeError, "irfftn must transform at least one axis"),
    ("hfftn", {"s": ()}, RuntimeError, "hfftn must transform at least one axis"),
    ("ihfftn", {"dim": ()}, RuntimeError, "ihfftn must transform at least one axis"),
    ("fft", {"n": "a"}, TypeError, "must be int, not str"),
    ("fft", {"norm": 3}, TypeError, "must be str, not int"),
]


@pytest.mark.parametrize(("name", "given", "kind", "text"), BAD)
def test_bad_arguments(name: str, given: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        getattr(fft, name)(taken(name, 3, 4), **given)


def test_inputs_without_numbers_or_dimensions() -> None:
    for name in ONE:
        function = getattr(fft, name)
        with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dim"):
            function(torch.tensor(2.0))
        count = -2 if name in ("irfft", "hfft") else 0
        with pytest.raises(RuntimeError, match=rf"number of data points \({count}\) specified"):
            function(torch.empty(3, 0))
        result = function(torch.empty(0, 3))
        assert result.shape[0] == 0
        assert result.numel() == 0
    for name in MANY:
        with pytest.raises(RuntimeError, match=r"number of data points \(0\) specified"):
            getattr(fft, name)(torch.empty(0, 3))
    for name in ("fft2", "irfft2", "ihfft2"):
        with pytest.raises(IndexError, match="Dimension specified as -2 but tensor has no dim"):
            getattr(fft, name)(torch.tensor(2.0))
        with pytest.raises(IndexError, match="Dimension out of range"):
            getattr(fft, name)(torch.ones(5))
    assert fft.fftn(torch.tensor(2.0)) == 2
    assert fft.ifftn(torch.tensor(2.0)).shape == ()
    for name in ("rfftn", "irfftn", "hfftn", "ihfftn"):
        with pytest.raises(RuntimeError, match=f"{name} must transform at least one axis"):
            getattr(fft, name)(torch.tensor(2.0))
    for name in ("rfft", "ihfft"):
        with pytest.raises(TypeError, match=f"{name} expects a real input tensor"):
            getattr(fft, name)(numbers(3))
    with pytest.raises(TypeError, match="rfftn expects a real-valued input tensor"):
        fft.rfft2(numbers(3, 3))
    with pytest.raises(TypeError, match="Only supports floating-point dtypes"):
        fft.ihfftn(numbers(3, 3))


@pytest.mark.parametrize("name", ONE + MANY)
def test_gradients(name: str) -> None:
    function = getattr(fft, name)
    x = taken(name, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (x,))
    if name not in OF_REAL:
        real = numbers(3, 4, complex=False).requires_grad_()
        assert torch.autograd.gradcheck(function, (real,), check_forward_ad=True)


def nodes(result: torch.Tensor) -> list[str]:
    found, node = [], result.grad_fn
    while node is not None and "AccumulateGrad" not in node.name():
        found.append(node.name())
        node = node.next_functions[0][0]
    return found


def test_nodes() -> None:
    x, c = numbers(2, 4, complex=False).requires_grad_(), numbers(2, 4).requires_grad_()
    assert nodes(fft.fft(x)) == ["FftR2CBackward0"]
    assert nodes(fft.fft(c)) == nodes(fft.fft2(c)) == ["FftC2CBackward0"]
    assert nodes(fft.ifft(x)) == ["ConjBackward0", "FftR2CBackward0"]
    assert nodes(fft.irfft(c)) == ["FftC2RBackward0"]
    assert nodes(fft.hfft(c)) == ["FftC2RBackward0", "ConjPhysicalBackward0"]
    assert nodes(fft.fft(x, 6)) == ["FftR2CBackward0", "ConstantPadNdBackward0"]
    assert nodes(fft.fft(x, 2)) == ["FftR2CBackward0", "SliceBackward0"]
    physical = ["FftC2CBackward0", "ConjPhysicalBackward0", "FftR2CBackward0"]
    assert nodes(fft.ihfft2(x)) == physical


@pytest.mark.parametrize("name", ONE + MANY)
def test_batches(name: str) -> None:
    function = getattr(fft, name)
    x = taken(name, 5, 3, 4)
    expected = torch.stack([function(one) for one in x])
    close(torch.vmap(function)(x), expected)
    close(torch.vmap(function, in_dims=1)(x.transpose(0, 1)), expected)
    inner = torch.vmap(torch.vmap(lambda a: function(a[None])))(x)
    close(inner, torch.stack([torch.stack([function(row[None]) for row in one]) for one in x]))


def test_examples_without_dimensions() -> None:
    x = torch.arange(4.0)
    for name in ONE:
        with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dim"):
            torch.vmap(getattr(fft, name))(x)
    assert torch.vmap(fft.fftn)(x).tolist() == [0, 1, 2, 3]
    for function in (fft.fftshift, fft.ifftshift):
        for options in ({}, {"dim": ()}):
            with pytest.raises(RuntimeError, match="`shifts` required"):
                torch.vmap(lambda a, f=function, o=options: f(a, **o))(x)
        with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dim"):
            torch.vmap(lambda a, f=function: f(a, dim=-1))(x)


def test_frequencies() -> None:
    assert fft.fftfreq(5).tolist() == torch.tensor([0, 0.2, 0.4, -0.4, -0.2]).tolist()
    assert fft.fftfreq(4, 0.5).tolist() == [0, 0.5, -1, -0.5]
    assert fft.rfftfreq(5, dtype=torch.float64).tolist() == [0, 0.2, 0.4]
    assert fft.rfftfreq(4, d=2.0).tolist() == [0, 0.125, 0.25]
    assert fft.fftfreq(0).shape == (0,)
    assert fft.rfftfreq(-3).shape == (0,)
    assert fft.fftfreq(1).tolist() == [0]
    assert math.isnan(fft.rfftfreq(0).item())
    assert fft.fftfreq(4, dtype=torch.float16).dtype == torch.float16
    assert fft.fftfreq(n=4, d=2.0, requires_grad=True).requires_grad
    out = torch.empty(0, dtype=torch.float64)
    assert fft.fftfreq(5, out=out) is out
    assert out.tolist() == [0, 0.2, 0.4, -0.4, -0.2]
    for function in (fft.fftfreq, fft.rfftfreq):
        with pytest.raises(RuntimeError, match="requires a floating point or complex dtype"):
            function(4, dtype=torch.int32)
        with pytest.raises(NotImplementedError, match='"arange_cpu" not implemented for'):
            function(4, dtype=torch.complex64)
        with pytest.raises(TypeError):
            function(4.0)
    with pytest.raises(RuntimeError, match=r"negative dimension -1: \[-1\]"):
        fft.fftfreq(-1)


def test_shifts() -> None:
    x = torch.arange(5)
    assert fft.fftshift(x).tolist() == [3, 4, 0, 1, 2]
    assert fft.ifftshift(x).tolist() == [2, 3, 4, 0, 1]
    grid = torch.arange(12).reshape(3, 4)
    assert fft.fftshift(grid)[0].tolist() == [10, 11, 8, 9]
    assert fft.fftshift(grid, 1)[0].tolist() == [2, 3, 0, 1]
    assert fft.fftshift(grid, (0, 0)).tolist() == torch.roll(grid, 2, 0).tolist()
    for dims in (None, 0, 1, (0, 1), -1):
        assert torch.equal(fft.ifftshift(fft.fftshift(grid, dims), dims), grid)
    for function in (fft.fftshift, fft.ifftshift):
        with pytest.raises(RuntimeError, match="`shifts` required"):
            function(torch.tensor(1))
        with pytest.raises(IndexError, match="Dimension out of range"):
            function(grid, dim=3)


def test_results_do_not_depend_on_threads() -> None:
    x = numbers(64, 300).to(torch.complex64)
    long = numbers(1 << 16)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append((fft.fft2(x), fft.rfft(x.real, dim=0), fft.fft(long)))
        for others in results[1:]:
            assert all(torch.equal(a, b) for a, b in zip(results[0], others, strict=True))
    finally:
        torch.set_num_threads(before)


def test_the_ops_that_all_are_made_of() -> None:
    c, x = numbers(3, 4), numbers(3, 4, complex=False)
    close(torch._fft_c2c(c, [1], 1, False), fft.ifft(c, norm="ortho"))
    close(torch._fft_r2c(x, [0, 1], 2, True), fft.rfft2(x, norm="forward"))
    close(torch._fft_r2c(x, [0, 1], 0, False), fft.fft2(x))
    close(torch._fft_c2r(c, [0, 1], 2, 6), fft.irfft2(c))
    with pytest.raises(RuntimeError, match="Only supports complex dtypes, but found: Double"):
        torch._fft_c2c(x, [0], 0, True)
    with pytest.raises(TypeError, match="Only supports floating-point dtypes"):
        torch._fft_r2c(c, [0], 0, True)
