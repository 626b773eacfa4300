"""Exchanging parameters and buffers of a module, under the name of PyTorch's private module."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["swap_tensor"]


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts a tensor in the place of a parameter or buffer, and gives what was there.

    Args:
        module: the module that has it, not one above.
        name: its name there.
        tensor: the new one; None takes it away.
        allow_missing: whether there may be none so far.

    Raises:
        KeyError: for a name with a point, and for one that is not a parameter's or buffer's.
        AttributeError: for an attribute of another kind.
    """
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (module._parameters, module._buffers):
        if name in table:
            former = table[name]
            if tensor is None:
                del table[name]
            else:
                table[name] = tensor
            return former
    if hasattr(module, name):
        former = getattr(module, name)
        if tensor is None:
            delattr(module, name)
        else:
            setattr(module, name, tensor)
        return former
    if not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if tensor is not None:
        setattr(module, name, tensor)
    return None
