"""Activations as modules: each holds the options of one function of ``functional``.

``MultiheadAttention`` is in ``attention.py`` and exported here. Invariant: no state but options,
except the weight of ``PReLU``.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .. import init as _init
from .._native import VF as _VF
from ..parameter import Parameter
from .attention import MultiheadAttention
from .linear import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]

_relu = _VF.relu
_relu_ = _VF.relu_


class _InPlace(Module):
    """An activation whose only option is to work in place."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Shows that the module works in place."""
        return "inplace=True" if self.inplace else ""


def _options(module: Module, *names: str) -> str:
    """``name=value`` for options, and ``inplace=True`` where it holds."""
    shown = [f"{name}={getattr(module, name)}" for name in names]
    if getattr(module, "inplace", False):
        shown.append("inplace=True")
    return ", ".join(shown)


class Threshold(Module):
    """``x`` where it is greater than ``threshold``, else ``value``."""

    threshold: float
    value: float
    inplace: bool

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "threshold", "value")


class ReLU(_InPlace):
    """``max(0, x)``; the derivative at 0 is 0."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return _relu_(input) if self.inplace else _relu(input)


class RReLU(Module):
    """``x`` where positive, else ``a x``; ``a`` is drawn from ``U(lower, upper)`` in training.

    Otherwise ``a = (lower + upper) / 2``.

    Args:
        lower: the least slope.
        upper: the greatest.
        inplace: whether it works in place.
    """

    lower: float
    upper: float
    inplace: bool

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        result: Tensor = F.rrelu(input, self.lower, self.upper, self.training, self.inplace)
        return result

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "lower", "upper")


class Hardtanh(Module):
    """``x`` clamped to ``[min_val, max_val]``.

    Raises:
        AssertionError: ``max_val`` is not greater than ``min_val``.
    """

    min_val: float
    max_val: float
    inplace: bool

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new, given in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if given is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "min_val", "max_val")


class ReLU6(Hardtanh):
    """``min(max(0, x), 6)``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return input.sigmoid()


class Hardsigmoid(_InPlace):
    """``relu6(x + 3) / 6``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return ""


class Tanh(Module):
    """``tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return input.tanh()


class SiLU(_InPlace):
    """``x * sigmoid(x)``, also called swish."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    """``x * relu6(x + 3) / 6``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return ""


class ELU(Module):
    """``x`` where positive, else ``alpha (exp(x) - 1)``."""

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "alpha")


class CELU(Module):
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "alpha")


class SELU(_InPlace):
    """``scale * elu(x, alpha)`` with constants that keep mean 0 and variance 1."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.selu(input, self.inplace)


class GLU(Module):
    """``a * sigmoid(b)`` for the halves ``a``, ``b`` of the input along ``dim``."""

    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "dim")


class GELU(Module):
    """``x * Phi(x)``, ``Phi`` the normal distribution function; ``'tanh'`` approximates it."""

    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The options."""
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """``x`` where ``|x| > lambd``, else 0."""

    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.lambd}"


class LeakyReLU(Module):
    """``x`` where positive, else ``negative_slope * x``."""

    negative_slope: float
    inplace: bool

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "negative_slope")


class LogSigmoid(Module):
    """``log(sigmoid(x))``, computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.logsigmoid(input)


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``; ``x`` itself where ``beta x > threshold``."""

    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "beta", "threshold")


class Softshrink(Module):
    """``x`` moved towards 0 by ``lambd``, 0 within it."""

    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.lambd}"


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.tanhshrink(input)


class PReLU(Module):
    """``x`` where positive, else ``weight * x`` with a learnt weight.

    Args:
        num_parameters: 1, or the number of channels (dimension 1 of the input).
        init: the weight at first.
        device: where the weight is made.
        dtype: of the weight.
    """

    num_parameters: int
    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(_VF.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to ``init``."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function to every element; the shape stays."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "num_parameters")


class _AlongDim(Module):
    """A function along one dimension; ``None`` lets PyTorch's old rule choose it, with a warning.

    Raises:
        TypeError: ``dim`` is neither an ``int`` nor ``None``.
    """

    dim: int | None

    def __init__(self, dim: Any = None) -> None:
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        """The options."""
        return _options(self, "dim")


class Softmin(_AlongDim):
    """``softmax(-x)`` along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function along ``dim``; the shape stays."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """``exp(x_i) / sum_j exp(x_j)`` along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function along ``dim``; the shape stays."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """``log(softmax(x))`` along ``dim``, computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function along ``dim``; the shape stays."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of ``(N, C, H, W)`` or ``(C, H, W)``, at every pixel."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the function along the channels; the shape stays."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
