"""The old ``vmap``, by which PyTorch's own tools batch derivatives; programs use ``vmap``.

It differs in what it takes and in some errors: dimensions count from the first one, outputs are a
tensor or a tuple, and custom functions run in it as they are.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from . import _C, _transform
from .func._vmap import Inputs, name_of

# The errors of random ops in a level that refuses them, PyTorch's and that of this one.
_RANDOM = "called random operation while in randomness error mode"
_OLD_RANDOM = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
    "operations outside of vmap as a workaround"
)


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """As :func:`pullback.vmap`, which it warns to use instead."""
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.",
        FutureWarning,
        stacklevel=2,
    )
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """The function ``g`` with ``g(xs)[i] = func(xs[i])``.

    Args:
        func: returns a tensor or a tuple of tensors.
        in_dims: an int, or a tuple with an int, a tree or None for each input; from 0 on.
        out_dims: an int, or a tuple of one for each output.
        allow_none_pass_through: let outputs be None.

    Raises:
        ValueError: (by the function returned) for dimensions and outputs that do not fit.
        RuntimeError: for random ops, and as :func:`pullback.vmap`.
    """

    @functools.wraps(func)
    def batched(*args: Any) -> Any:
        _check_out_dims(func, out_dims)
        inputs = Inputs.of(func, in_dims, args, from_end=False)
        try:
            with _transform.batch(inputs.size, "error", is_old=True) as level:
                outputs = func(*inputs.entered(level))
                return _left(func, outputs, out_dims, level, inputs.size, allow_none_pass_through)
        except RuntimeError as error:
            if _RANDOM in str(error):
                raise RuntimeError(_OLD_RANDOM) from error
            raise

    return batched


def _check_out_dims(func: Callable[..., Any], out_dims: Any) -> None:
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,)
    if not all(isinstance(dim, int) for dim in dims):
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int or a "
            "tuple of int representing where in the outputs the vmapped dimension should appear."
        )


def _left(
    func: Callable[..., Any], outputs: Any, out_dims: Any, level: int, size: int, allows_none: bool
) -> Any:
    """The outputs with their batch dimension."""
    name = name_of(func)
    several = outputs if isinstance(outputs, tuple) else (outputs,)
    for index, output in enumerate(several):
        if isinstance(output, _C.TensorBase) or (allows_none and output is None):
            continue
        where = f"for return {index}" if isinstance(outputs, tuple) else "as the return"
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)} "
            f"{where}."
        )
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(several)
    if len(dims) != len(several):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got "
            f"{len(several)} outputs) of {name}."
        )
    results = tuple(
        None if output is None else _C._vmap_remove(output, level, size, dim)
        for output, dim in zip(several, dims, strict=True)
    )
    return results if isinstance(outputs, tuple) else results[0]
