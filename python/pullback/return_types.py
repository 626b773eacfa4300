"""The named tuples that ops with several results return, as ``return_types.max``."""

from __future__ import annotations

import sys
from typing import Any

from . import _C, _absent

# The fields of what functions of Python return, of which no op's signature tells.
_FIELDS = {"histogramdd": ["hist", "bin_edges"]}


def __getattr__(name: str) -> Any:
    """The type of the op called ``name``."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return _C._return_type(name, _FIELDS.get(name))
    except AttributeError as error:
        reason = _absent.message(__name__, name)
        if reason is None:
            raise
        text = f"{error}: {reason}"
    raise AttributeError(text, name=name, obj=sys.modules[__name__])
