"""``torch.foreach``: one op on each tensor of a list.

The functions are those of the main namespace that begin with ``_foreach_``, under shorter names;
those that write give the tensors that they wrote to.
"""

from __future__ import annotations

from typing import Any

from . import _foreach

_BOTH = (*_foreach._UNARY.split(), *_foreach._BINARY.split(), *_foreach._TERNARY.split(), "lerp")
_ONE = ("clone", "copy_", "max", "mm", "norm", "zero_")


def _of(name: str, function: Any) -> Any:
    def applied(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(inputs, *args, **kwargs)
        return inputs if name.endswith("_") else tuple(made)

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"``torch._foreach_{name}`` of a list of tensors."
    return applied


_FUNCTIONS = _foreach.functions()
__all__ = sorted(
    name
    for name in [*_BOTH, *(f"{name}_" for name in _BOTH), *_ONE]
    if f"_foreach_{name}" in _FUNCTIONS
)
globals().update({name: _of(name, _FUNCTIONS[f"_foreach_{name}"]) for name in __all__})
