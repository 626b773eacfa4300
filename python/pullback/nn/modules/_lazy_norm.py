"""Batch and instance norms whose number of features is found out at their first call.

``batchnorm.py`` and ``instancenorm.py`` export them.
"""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..parameter import UninitializedBuffer, UninitializedParameter
from .batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from .conversion import no_grad
from .lazy import LazyModuleMixin

__all__: list[str] = []


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """What lazy norms share.

    Args:
        eps: keeps the root away from 0.
        momentum: the weight of the newest statistics; ``None`` keeps a plain average.
        affine: whether ``weight`` and ``bias`` exist.
        track_running_stats: whether running statistics are kept (and used in evaluation).
        device: where parameters and buffers are made.
        dtype: of parameters and buffers.
        bias: whether ``bias`` exists.
    """

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # (Affine and tracking only once there are tensors without shape for them.)
        super().__init__(0, eps, momentum, False, False, device, dtype)
        options = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = self._new_count(device)

    def reset_parameters(self) -> None:
        """Resets statistics and parameters, if their shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Makes parameters and statistics for the features of ``input``, its second size."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        tensors: tuple[Any, ...] = (self.weight, self.bias, self.running_mean, self.running_var)
        with no_grad():
            for tensor in tensors:
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """:class:`BatchNorm1d` whose ``num_features`` is the second size of its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """:class:`BatchNorm2d` whose ``num_features`` is the second size of its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """:class:`BatchNorm3d` whose ``num_features`` is the second size of its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """:class:`InstanceNorm1d` whose ``num_features`` is the second size of its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """:class:`InstanceNorm2d` whose ``num_features`` is the second size of its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """:class:`InstanceNorm3d` whose ``num_features`` is the second size of its first input."""

    cls_to_become = InstanceNorm3d
