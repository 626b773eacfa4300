"""All ops of the table by name, and what a row's name stands for in a library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from op_table import (
    creation,
    draw,
    fourier,
    indexing,
    join,
    linear,
    masked,
    network,
    pointwise,
    reduction,
    shape,
    special,
)
from op_table.call import Library, Op

FAMILIES = (
    *(pointwise, reduction, shape, join, creation, indexing, draw),
    *(network, special, masked, linear, fourier),
)


def table() -> dict[str, Op]:
    """The ops of every module; a name stands in one of them."""
    ops: dict[str, Op] = {}
    for family in FAMILIES:
        for op in family.ops():
            if op.name in ops:
                raise ValueError(f"{op.name} is in the table twice")
            ops[op.name] = op
    return ops


def attribute(name: str, tensor: Any) -> Any:
    """The value of a tensor's attribute, as a function of the tensor."""
    return getattr(tensor, name)


def found(lib: Library, name: str) -> Callable[..., Any]:
    """The function of a public name: the library's own, or the tensor's method or attribute."""
    if name.startswith("masked."):
        # The reference loads this subpackage only when asked.
        importlib.import_module(f"{lib.__name__}.masked")
    if "." not in name and not hasattr(lib, name):
        method = getattr(lib.Tensor, name)
        return method if callable(method) else partial(attribute, name)
    function = lib
    for part in name.split("."):
        function = getattr(function, part)
    return function  # type: ignore[no-any-return]


def function_of(lib: Library, op: Op) -> Callable[..., Any]:
    """What a row calls."""
    return op.function(lib) if op.function else found(lib, op.name)
