"""Special functions: the functions of the registry's ``special_*`` ops under their short names."""

from __future__ import annotations

from ._C import _special
from ._short import short_names

_functions = short_names(_special)
globals().update(_functions)

__all__ = list(_functions)
