"""Functions of the main namespace under the name of their module in PyTorch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import _absent

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot "
    "unique unique_consecutive unravel_index"
)
_main = vars(sys.modules[__package__])
# (Those that are not there yet are missing here too.)
__all__ = [name for name in _NAMES.split() if name in _main]
globals().update({name: _main[name] for name in __all__})

_absent.announce(globals())
