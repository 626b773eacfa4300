"""Normalisation with running statistics: batch norm and instance norm.

Invariant: running statistics are buffers, change only in training, and only in ``forward``. Lazy
forms are in ``_lazy_norm.py``.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .._native import VF as _VF
from ..parameter import Parameter
from .module import Module
from .normalization import _make_affine, _reset_affine

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


def _count(value: int, device: Any) -> Tensor:
    """A 0-dimensional int64 tensor."""
    counter: Tensor = _VF.full((), value, device=device).long()
    return counter


class _NormBase(Module):
    """Parameters and running statistics of a normalisation over channels.

    Args:
        num_features: the number of channels ``C``.
        eps: keeps the root away from 0.
        momentum: the weight of the newest statistics; ``None`` keeps a plain average.
        affine: whether ``weight`` and ``bias`` exist.
        track_running_stats: whether running statistics are kept (and used in evaluation).
        device: where parameters and buffers are made.
        dtype: of parameters and buffers.
        bias: whether ``bias`` exists.
    """

    # Version 2 added the buffer num_batches_tracked.
    _version = 2

    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    weight: Parameter
    bias: Parameter
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        _make_affine(self, num_features, affine, affine and bias, device, dtype)
        statistics: list[Any] = [None, None, None]
        if track_running_stats:
            statistics = [
                _VF.zeros(num_features, device=device, dtype=dtype),
                _VF.ones(num_features, device=device, dtype=dtype),
                _count(0, device),
            ]
        for name, buffer in zip(
            ("running_mean", "running_var", "num_batches_tracked"), statistics, strict=True
        ):
            self.register_buffer(name, buffer)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the count to 0."""
        if not self.track_running_stats:
            return
        for buffer, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if buffer is not None:
                buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Resets the statistics, sets ``weight`` to 1 and ``bias`` to 0."""
        self.reset_running_stats()
        _reset_affine(self)

    @staticmethod
    def _new_count(device: Any) -> Tensor:
        """A count of batches, 0."""
        return _count(0, device)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats:
            counter = self.num_batches_tracked
            if key not in state_dict:
                usable = counter is not None and not counter.is_meta
                state_dict[key] = counter if usable else _count(0, None)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel, over the batch."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalises by the batch's statistics in training, by the running ones otherwise."""
        self._check_input_dim(input)
        buffers, params = self._buffers, self._parameters
        try:
            mean, var = buffers["running_mean"], buffers["running_var"]
            tracked = buffers["num_batches_tracked"]
            weight: Any = params["weight"]
            bias: Any = params["bias"]
        except KeyError:
            mean, var, tracked = self.running_mean, self.running_var, self.num_batches_tracked
            weight, bias = self.weight, self.bias
        training, momentum = self.training, self.momentum
        if training and self.track_running_stats:
            if tracked is not None:
                tracked.add_(1)
                if momentum is None:
                    momentum = 1.0 / float(tracked)
        elif training:
            # Statistics that are not tracked take no part in training.
            mean = var = None
        use_batch = training or (mean is None and var is None)
        rate = 0.0 if momentum is None else momentum
        return F.batch_norm(input, mean, var, weight, bias, use_batch, rate, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of ``(N, C)`` or ``(N, C, L)``."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of ``(N, C, H, W)``."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of ``(N, C, D, H, W)``."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of ``(N, C, *)`` with the statistics of all processes of a group.

    A process trains alone here, so that its batch is the whole batch: it computes what
    :class:`BatchNorm2d` does, for any number of dimensions from two on.

    Args:
        num_features: the number of channels ``C``.
        eps: keeps the root away from 0.
        momentum: the weight of the newest statistics; ``None`` keeps a plain average.
        affine: whether ``weight`` and ``bias`` exist.
        track_running_stats: whether running statistics are kept (and used in evaluation).
        process_group: the group whose processes would be asked.
        device: where parameters and buffers are made.
        dtype: of parameters and buffers.
        bias: whether ``bias`` exists.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """``module`` with a :class:`SyncBatchNorm` for each batch norm that it is or contains.

        Parameters and buffers are the same objects as before.

        Args:
            module: the module; changed in place where it is no batch norm itself.
            process_group: passed to each.
        """
        result: Any = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
            if hasattr(module, "qconfig"):
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        made: Module = result
        return made


class _InstanceNorm(_NormBase):
    """Normalisation with statistics of their own for each sample and channel."""

    # The spatial dimensions; a subclass sets it.
    _spatial: int = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        """How many dimensions a sample has without the batch dimension."""
        return self._spatial + 1

    def _check_input_dim(self, input: Tensor) -> None:
        low, high = self._spatial + 1, self._spatial + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def _check_features(self, input: Tensor, dim: int) -> None:
        if input.size(dim) == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {input.size(dim)}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features ({self.num_features}), "
            "which is not used because affine=False",
            stacklevel=4,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Normalises a batch, or one sample without the batch dimension."""
        self._check_input_dim(input)
        batched = input.dim() == self._spatial + 2
        self._check_features(input, 1 if batched else 0)
        out = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out if batched else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of ``(N, C, L)`` or ``(C, L)``."""

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of ``(N, C, H, W)`` or ``(C, H, W)``."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    _spatial = 3


from ._lazy_norm import (  # noqa: E402 (these are made of the classes above)
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
)
