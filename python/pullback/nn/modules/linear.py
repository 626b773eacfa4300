"""Affine layers.

``Linear.forward`` is on the path that is measured: it reads its two parameters straight from the
dictionary of parameters, and falls back to attributes only when they are not there (a program may
replace a parameter by a plain tensor or a property).
"""

from __future__ import annotations

import math
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .. import init
from .._native import VF as _VF
from .._native import nn as _nn
from ..parameter import Parameter, UninitializedParameter
from .conversion import no_grad
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]

_empty = _VF.empty
_linear = _nn.linear


class Identity(Module):
    """Returns its input; takes and ignores any arguments at construction."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` itself."""
        return input


class Linear(Module):
    """``y = x W^T + b``: ``(*, in_features)`` to ``(*, out_features)``.

    Args:
        in_features: the size of the last dimension of the input.
        out_features: the size of the last dimension of the output.
        bias: whether ``b`` exists.
        device: where the parameters are made.
        dtype: of the parameters.

    Attributes:
        weight: ``(out_features, in_features)``, at first from ``U(-k, k)``,
            ``k = 1 / sqrt(in_features)``.
        bias: ``(out_features)``, from the same distribution, or ``None``.
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(_empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew: weight, then bias."""
        # With a = sqrt(5) the bound of kaiming_uniform_ is 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Maps ``(*, in_features)`` to ``(*, out_features)``."""
        params = self._parameters
        try:
            weight: Any = params["weight"]
            bias: Any = params["bias"]
        except KeyError:
            weight, bias = self.weight, self.bias
        return _linear(input, weight, bias)

    def extra_repr(self) -> str:
        """The sizes, and whether there is a bias."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention: a ``Linear`` under the name PyTorch gives it."""


class LazyLinear(LazyModuleMixin, Linear):
    """:class:`Linear` whose ``in_features`` are the last size of its first input.

    Args:
        out_features: the size of the last dimension of the output.
        bias: whether a bias is added.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the parameters anew, if their shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Makes and draws the parameters for the last size of ``input``."""
        if self.has_uninitialized_params():
            weight: Any = self.weight
            bias: Any = self.bias
            with no_grad():
                self.in_features = input.shape[-1]
                weight.materialize((self.out_features, self.in_features))
                if bias is not None:
                    bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                    f"in_features from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class Bilinear(Module):
    """``y_k = x1^T W_k x2 + b_k``: ``(*, in1)`` and ``(*, in2)`` to ``(*, out)``.

    Args:
        in1_features: the last size of the first input.
        in2_features: the last size of the second input.
        out_features: the last size of the output.
        bias: whether ``b`` exists.
        device: where the parameters are made.
        dtype: of the parameters.

    Raises:
        ValueError: ``in1_features`` is not positive.
    """

    in1_features: int
    in2_features: int
    out_features: int
    weight: Parameter
    bias: Parameter

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(_empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from ``U(-k, k)``, ``k = 1 / sqrt(in1_features)``."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Maps ``(*, in1_features)`` and ``(*, in2_features)`` to ``(*, out_features)``."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes, and whether there is a bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
