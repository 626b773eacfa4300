"""``torch.foreach``: one op on each tensor of a list.

The functions are those of the main namespace that begin with ``_foreach_``, under shorter names;
those that write give the list that they wrote to.
"""

from __future__ import annotations

from typing import Any

from . import _C

_PREFIX = "_foreach_"
# Functions that only the main namespace has, as in PyTorch.
_PRIVATE = frozenset(("powsum", "zero"))


def _functions() -> dict[str, Any]:
    functions = vars(_C._VariableFunctions)
    return {name: function for name, function in functions.items() if name.startswith(_PREFIX)}


_SHORT = {name.removeprefix(_PREFIX): function for name, function in _functions().items()}
__all__ = sorted(_SHORT.keys() - _PRIVATE)  # pyright: ignore[reportUnsupportedDunderAll]
globals().update({name: _SHORT[name] for name in __all__})
