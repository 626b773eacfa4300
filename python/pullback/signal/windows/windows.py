"""The windows as functions of evenly spaced numbers.

A window of ``M`` numbers spans ``M - 1`` steps if it is symmetric and ``M`` if it is periodic,
which is to be continued: its next number would be the first again. One number alone is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pullback as torch
from pullback import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class _Window:
    """The arguments of a window, checked."""

    def __init__(
        self,
        name: str,
        count: int,
        sym: bool,
        dtype: torch.dtype | None,
        layout: torch.layout,
        device: Any,
        requires_grad: bool,
    ) -> None:
        if dtype is None:
            dtype = torch.get_default_dtype()
        if count < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={count}")
        if layout is not torch.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        self.count = count
        self.steps = count - 1 if sym else count
        self.options: dict[str, Any] = {"dtype": dtype, "layout": layout, "device": device}
        self.requires_grad = requires_grad

    def of(self, first: float, step: float, shape: Callable[[Tensor], Tensor]) -> Tensor:
        """``shape`` of ``first * step``, ``(first + 1) * step`` and so on."""
        return self.between(first * step, (first + self.count - 1) * step, shape)

    def between(
        self, start: float | Tensor, end: float | Tensor, shape: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """``shape`` of evenly spaced numbers."""
        if self.count == 0:
            return torch.empty((0,), **self.options, requires_grad=self.requires_grad)
        if self.count == 1:
            return torch.ones((1,), **self.options, requires_grad=self.requires_grad)
        numbers = torch.linspace(
            start, end, self.count, **self.options, requires_grad=self.requires_grad
        )
        return shape(numbers)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``exp(-|n - center| / tau)``; the center is the middle, or another one if it is periodic."""
    window = _Window("exponential", M, sym, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = window.steps / 2
    scale = 1 / tau
    return window.of(-center, scale, lambda k: torch.exp(-torch.abs(k)))


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``sin(pi (n + 1/2) / M)``, half a wave."""
    window = _Window("cosine", M, sym, dtype, layout, device, requires_grad)
    step = math.pi / max(window.steps + 1, 1)
    return window.of(0.5, step, torch.sin)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``exp(-(n - middle)^2 / (2 std^2))``."""
    window = _Window("gaussian", M, sym, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    scale = 1 / (std * math.sqrt(2))
    return window.of(-window.steps / 2, scale, lambda k: torch.exp(-(k**2)))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``I0(sqrt(beta^2 - k^2)) / I0(beta)`` with ``k`` from ``-beta`` to ``beta``."""
    window = _Window("kaiser", M, sym, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    bound = torch.tensor(float(beta), dtype=window.options["dtype"], device=device)
    # (Rounding may not bring the last number beyond the end, where there is no root.)
    end = torch.minimum(bound, (M - 1) * (2 * beta / max(window.steps, 1)) - bound)

    def shape(k: Tensor) -> Tensor:
        return torch.i0(torch.sqrt(bound * bound - k * k)) / torch.i0(bound)

    return window.between(-bound, end, shape)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``0.54 - 0.46 cos(2 pi n / steps)``."""
    return general_hamming(
        M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``0.5 - 0.5 cos(2 pi n / steps)``."""
    return general_hamming(
        M,
        alpha=0.5,
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``0.42 - 0.5 cos(2 pi n / steps) + 0.08 cos(4 pi n / steps)``."""
    window = _Window("blackman", M, sym, dtype, layout, device, requires_grad)
    return _cosines(window, (0.42, 0.5, 0.08))


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``1 - |2 n / steps - 1|``, a triangle."""
    window = _Window("bartlett", M, sym, dtype, layout, device, requires_grad)
    return window.of(-window.steps / 2, 2 / max(window.steps, 1), lambda k: 1 - torch.abs(k))


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``sum_i (-1)^i a_i cos(2 pi i n / steps)``."""
    window = _Window("general_cosine", M, sym, dtype, layout, device, requires_grad)
    if M == 0:
        return window.of(0.0, 0.0, torch.cos)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _cosines(window, tuple(a))


def _cosines(window: _Window, a: tuple[float, ...]) -> Tensor:
    """The sum of cosines with these coefficients."""
    options = {key: window.options[key] for key in ("dtype", "device")}
    signed = torch.tensor([-w if i % 2 else w for i, w in enumerate(a)], **options)
    order = torch.arange(len(a), **options)

    def shape(k: Tensor) -> Tensor:
        return (signed.unsqueeze(-1) * torch.cos(order.unsqueeze(-1) * k)).sum(0)

    return window.of(0.0, 2 * math.pi / max(window.steps, 1), shape)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``alpha - (1 - alpha) cos(2 pi n / steps)``."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The window of Nuttall with four cosines that falls off fastest beside its main lobe."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
