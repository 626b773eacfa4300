"""Functions of the main namespace under the name of their module in PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from . import _absent

_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot "
    "unique unique_consecutive unravel_index"
)
_main = vars(sys.modules[__package__])
# (Those that are not there yet are missing here too.)
__all__ = [name for name in _NAMES.split() if name in _main]
globals().update({name: _main[name] for name in __all__})


def __getattr__(name: str) -> Any:
    # (`nn` is loaded with the package, after this module.)
    if name == "F":
        from .nn import functional

        return globals().setdefault("F", functional)
    return _missing(name)


_found: dict[str, Any] = {"__name__": __name__}
_absent.announce(_found)
_missing = _found["__getattr__"]
