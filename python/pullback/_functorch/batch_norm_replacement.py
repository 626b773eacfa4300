"""Batch normalisation without running statistics, under the name of PyTorch's module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..func._functional_call import replace_all_batch_norm_modules_

if TYPE_CHECKING:
    from ..nn.modules.module import Module

__all__ = ["batch_norm_without_running_stats", "replace_all_batch_norm_modules_"]


def batch_norm_without_running_stats(module: Module) -> None:
    """Lets a module of batch normalisation use the statistics of each batch, in place.

    Modules of other kinds, and those below the module, stay as they are.
    """
    from ..nn.modules.batchnorm import _BatchNorm

    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.track_running_stats = False
        module.running_mean = None
        module.running_var = None
        module.num_batches_tracked = None
