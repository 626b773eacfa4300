"""Linear algebra: the functions of the registry's ``linalg_*`` ops under their short names."""

from __future__ import annotations

from ._C import _linalg
from ._C import _LinAlgError as LinAlgError
from ._short import short_names

_functions = short_names(_linalg)
globals().update(_functions)

__all__ = ["LinAlgError", *_functions]
