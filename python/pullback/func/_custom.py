"""Custom functions under ``vmap``: what ``Function.apply`` does with batched arguments.

A class either says how it computes a batch (its ``vmap``), or that its ops do so by themselves
(``generate_vmap_rule``); then it is applied to batched tensors as to any others. Where the class
computes the batch, who differentiates matters. A transform inside of the level asks the class for
its derivative: the function is recorded as one node, on batched tensors. One outside of it
differentiates what ``vmap`` did, on tensors with their batch dimension.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from .. import _C, _transform
from ..autograd.function import Function, _bind
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_map

_MORE = "See the chapter on extending torch.func in PyTorch's notes."


class VmapInfo(NamedTuple):
    """The description of the batch that a class's ``vmap`` gets."""

    batch_size: int
    """How many examples there are."""
    randomness: str
    """What random ops are to do: see :func:`pullback.func.vmap`."""


def custom_function_vmap(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a custom function gives where an argument is batched or a transform is open.

    Args:
        cls: the custom function.
        args: what ``apply`` got.
        kwargs: what it got by keyword.

    Returns:
        The outputs; or NotImplemented if the function is to be applied to these arguments as it
        is to all others.

    Raises:
        RuntimeError: for classes that transforms cannot work with or that cannot be batched, and
            for a ``vmap`` that returns anything but outputs and their dimensions.
    """
    open_transforms = _transform.of_thread()
    if "_is_over_batches" in cls.__dict__:
        return NotImplemented
    if not all(transform.is_old for transform in open_transforms):
        _check_transformable(cls, kwargs)
    level = max(map(_level, tree_leaves((args, kwargs))), default=-1)
    if level < 0:
        return NotImplemented
    own = [i for i, transform in enumerate(open_transforms) if _is_level(transform, level)]
    is_checked = bool(own) and not open_transforms[own[0]].is_old
    has_rule = cls.vmap is not Function.vmap
    if is_checked:
        _check_rule(cls, has_rule)
    # Without its level, as in a backward after it, a class that cannot tell is run as it is.
    is_known = cls._has_setup_context and has_rule and not cls.generate_vmap_rule
    if not is_known or (own and not is_checked):
        return NotImplemented
    values = _bind(cls, args, kwargs)
    inner = open_transforms[own[0] + 1 :] if own else []
    if any(transform.kind != "vmap" for transform in inner):
        return _over_batches(cls).apply(*values)
    randomness = open_transforms[own[0]].randomness if own else "error"
    return _by_rule(cls, values, level, randomness)


def _check_transformable(cls: Any, kwargs: dict[str, Any]) -> None:
    if not cls._has_setup_context and not _transform.ALLOWED.functions_without_setup:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod. {_MORE}"
        )
    parameters = inspect.signature(cls.forward).parameters if kwargs else {}
    for name in kwargs:
        if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
            raise NotImplementedError(
                "autograd.Function within functorch transforms: kwarg-only Tensor args are not "
                f"supported, but {cls.__name__} takes {name!r} by keyword alone"
            )


def _level(value: Any) -> int:
    return _C._vmap_level(value) if isinstance(value, _C.TensorBase) else -1


def _is_level(transform: _transform.Transform, level: int) -> bool:
    return transform.kind == "vmap" and transform.level == level


def _check_rule(cls: Any, has_rule: bool) -> None:
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_MORE}"
        )
    if not has_rule and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True. "
            f"{_MORE}"
        )


def _by_rule(cls: Any, values: tuple[Any, ...], level: int, randomness: str) -> Any:
    """The result of the class's ``vmap``; batch dimensions are in front."""
    leaves = [leaf for leaf in tree_leaves(values) if _level(leaf) == level]
    size = int(_C._vmap_unwrapped(leaves[0]).shape[0])

    def physical(leaf: Any) -> Any:
        return _C._vmap_remove(leaf, level, size, 0) if _level(leaf) == level else leaf

    in_dims = tuple(
        tree_map(lambda leaf: 0 if _level(leaf) == level else None, value) for value in values
    )
    arguments = tree_map(physical, values)
    result = cls.vmap(VmapInfo(size, randomness), in_dims, *arguments)
    return _wrapped(*_outputs_and_dims(result), level)


def _outputs_and_dims(result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple) and len(result) == 2:
        return result
    got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
    raise RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        f"structure compatible with the output. Got {got} instead"
    )


def _wrapped(outputs: Any, out_dims: Any, level: int) -> Any:
    """The outputs as one example."""
    leaves, spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but output has structure {spec}. "
            f"{_MORE}"
        )
    return spec.unflatten(
        leaf if dim is None else _C._vmap_add(leaf, dim, level)
        for leaf, dim in zip(leaves, dims, strict=True)
    )


def _over_batches(cls: Any) -> Any:
    """The class as one that computes batched tensors by its ``vmap``; made once."""
    known = cls.__dict__.get("_over_batches_class")
    if known is not None:
        return known

    def forward(*values: Any) -> Any:
        level = max(map(_level, tree_leaves(values)))
        found = [t for t in _transform.of_thread() if _is_level(t, level)]
        return _by_rule(cls, values, level, found[0].randomness if found else "error")

    own = {"forward": forward, "_is_over_batches": True, "__module__": cls.__module__}
    made = type(cls)(cls.__name__, (cls,), {name: _static(value) for name, value in own.items()})
    cls._over_batches_class = made
    return made


def _static(value: Any) -> Any:
    return staticmethod(value) if callable(value) else value
