"""The levels of function transforms, under the names of ``torch._C._functorch``.

Tensors within ``vmap`` are batched at a level, whose examples the first dimension of the value
behind them counts; those of reverse mode are ordinary tensors here, with a history, and belong to
no level. Which transforms are open, innermost last, is in `_transform`; `_interpreters` shows them
as PyTorch's interpreters. What belongs to PyTorch's wrappers alone is refused, with the reason.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from . import _C, _transform
from ._interpreters import (
    CFunctionalizeInterpreterPtr,
    CGradInterpreterPtr,
    CInterpreter,
    CJvpInterpreterPtr,
    CVmapInterpreterPtr,
    RandomnessType,
    TransformType,
    get_interpreter_stack,
    peek_interpreter_stack,
    written,
)
from ._placeholder import Refusal, made_of

__all__ = [
    "CFunctionalizeInterpreterPtr",
    "CGradInterpreterPtr",
    "CInterpreter",
    "CJvpInterpreterPtr",
    "CVmapInterpreterPtr",
    "DynamicLayer",
    "RandomnessType",
    "TransformType",
    "_add_batch_dim",
    "_assert_wrapped_functional",
    "_func_decrement_nesting",
    "_func_increment_nesting",
    "_grad_decrement_nesting",
    "_grad_increment_nesting",
    "_is_vmap_fallback_enabled",
    "_jvp_decrement_nesting",
    "_jvp_increment_nesting",
    "_maybe_unsafe_set_level",
    "_propagate_functional_input_mutation",
    "_remove_batch_dim",
    "_set_dynamic_layer_keys_included",
    "_set_vmap_fallback_enabled",
    "_set_vmap_fallback_warning_enabled",
    "_unwrap_batched",
    "_unwrap_for_grad",
    "_unwrap_functional_tensor",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "_wrap_for_grad",
    "_wrap_functional_tensor",
    "current_level",
    "dlevel",
    "dump_dls",
    "dump_local_tls",
    "dump_tensor",
    "get_dynamic_layer_stack_depth",
    "get_inplace_requires_grad_allowed",
    "get_interpreter_stack",
    "get_single_level_autograd_function_allowed",
    "get_unwrapped",
    "is_batchedtensor",
    "is_dead_tensor_wrapper",
    "is_functionaltensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
    "peek_interpreter_stack",
    "pop_dynamic_layer_stack",
    "pop_dynamic_layer_stack_and_undo_to_depth",
    "push_dynamic_layer_stack",
    "reshape_dim_into",
    "reshape_dim_outof",
    "set_inplace_requires_grad_allowed",
    "set_single_level_autograd_function_allowed",
    "tls_set_vmap_excluded",
    "unwrap_dead_wrappers",
    "unwrap_if_dead",
]

_SPACE = "torch._C._functorch"


# ---- levels opened and closed by hand ----


class _ByHand(NamedTuple):
    """A transform that a program opened by its name here."""

    kind: _transform.Kind
    context: Any
    number: int
    inputs: list[Any]
    """What :func:`_wrap_for_grad` made for it."""


class _Stack(threading.local):
    """The transforms that this thread opened by hand, the innermost last."""

    def __init__(self) -> None:
        self.levels: list[_ByHand] = []


_OPEN = _Stack()


def _open(kind: _transform.Kind, context: Any) -> int:
    level = context.__enter__()
    # (Reverse mode has no levels; where it stands among the open transforms is its number.)
    number = len(_transform.of_thread()) if kind == "grad" else level
    _OPEN.levels.append(_ByHand(kind, context, number, []))
    return int(number)


def _close(kind: _transform.Kind) -> int:
    mine = _OPEN.levels
    if not mine or mine[-1].kind != kind:
        inner = f"the innermost is one of {mine[-1].kind}" if mine else "no level was opened"
        raise RuntimeError(f"_{kind}_decrement_nesting(): {inner}")
    last = mine.pop()
    if last.inputs:
        _C._func_close(last.inputs)
    last.context.__exit__(None, None, None)
    return last.number


def _vmap_increment_nesting(batch_size: int, randomness: str, /) -> int:
    """Opens a level of ``vmap``, and gives its number."""
    return _open("vmap", _transform.batch(batch_size, randomness))


def _vmap_decrement_nesting() -> int:
    """Closes the level that :func:`_vmap_increment_nesting` opened last, and gives its number.

    Raises:
        RuntimeError: if none is open, or one of another transform is inside of it.
    """
    return _close("vmap")


def _grad_increment_nesting() -> int:
    """Opens a transform of reverse mode, and gives its number: how many are open."""
    return _open("grad", _transform.reverse_mode())


def _grad_decrement_nesting() -> int:
    """Closes what :func:`_grad_increment_nesting` opened last, and gives its number.

    Raises:
        RuntimeError: if none is open, or one of another transform is inside of it.
    """
    return _close("grad")


def _jvp_increment_nesting() -> int:
    """Opens a level of tangents, and gives its number."""
    return _open("jvp", _transform.forward_mode())


def _jvp_decrement_nesting() -> int:
    """Closes what :func:`_jvp_increment_nesting` opened last, and gives its number.

    Raises:
        RuntimeError: if none is open, or one of another transform is inside of it.
    """
    return _close("jvp")


def get_dynamic_layer_stack_depth() -> int:
    """How many transforms are open on this thread."""
    return len(_transform.of_thread())


def pop_dynamic_layer_stack_and_undo_to_depth(depth: int, /) -> None:
    """Closes the innermost transforms, those opened by hand, until no more than so many are open.

    Raises:
        RuntimeError: if a transform that was not opened by hand would have to be closed.
    """
    while get_dynamic_layer_stack_depth() > depth:
        if not _OPEN.levels:
            raise RuntimeError(
                f"pop_dynamic_layer_stack_and_undo_to_depth({depth}): the innermost transform was "
                "not opened by hand, it ends with the call that opened it"
            )
        _close(_OPEN.levels[-1].kind)


# ---- tensors of levels ----


def _add_batch_dim(tensor: Any, in_dim: int, level: int, /) -> Any:
    """A tensor seen without a dimension, which counts the examples of a level."""
    return _C._vmap_add(tensor, in_dim, level)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int, /) -> Any:
    """A tensor of a level with the dimension of its examples."""
    return _C._vmap_remove(tensor, level, batch_size, out_dim)


def _unwrap_batched(tensor: Any, level: int, /) -> tuple[Any, int | None]:
    """The value behind a tensor of a level, and which of its dimensions counts examples.

    A tensor of another level, or of none, comes back as it is, with None.
    """
    if maybe_get_level(tensor) != level:
        return tensor, None
    return _C._vmap_unwrapped(tensor), 0


def _of_grad(level: int) -> _ByHand:
    found = next((one for one in _OPEN.levels if one.kind == "grad" and one.number == level), None)
    if found is None:
        raise RuntimeError(f"no transform of reverse mode was opened by hand as level {level}")
    return found


def _wrap_for_grad(tensor: Any, level: int, /) -> Any:
    """An alias of a tensor that an open transform of reverse mode differentiates by.

    It requires grad from the beginning, and the tensor's own history goes on behind it.

    Raises:
        RuntimeError: if :func:`_grad_increment_nesting` opened no such level; for dtypes without
            derivatives.
    """
    mine = _of_grad(level)
    alias = _C._func_input(tensor)
    mine.inputs.append(alias)
    return alias


def _unwrap_for_grad(tensor: Any, level: int, /) -> Any:
    """A tensor as it leaves an open transform of reverse mode.

    What depends on nothing but the inputs of that transform has no history outside of it.

    Raises:
        RuntimeError: if :func:`_grad_increment_nesting` opened no such level.
    """
    return _C._func_detach([tensor], _of_grad(level).inputs)[0]


def is_batchedtensor(tensor: Any, /) -> bool:
    """Whether a tensor stands for the examples of a batch, within ``vmap``."""
    return _C._vmap_level(tensor) >= 0


is_functorch_wrapped_tensor = is_batchedtensor


def is_legacy_batchedtensor(tensor: Any, /) -> bool:
    """Never: the old ``vmap`` batches as the new one does."""
    return False


def is_gradtrackingtensor(tensor: Any, /) -> bool:
    """Never: reverse mode records tensors as they are."""
    return False


def is_functionaltensor(tensor: Any, /) -> bool:
    """Never: ``functionalize`` runs functions on tensors as they are."""
    return False


def maybe_get_level(tensor: Any, /) -> int:
    """The number of a tensor's level, which no other level gets; -1 if it is not batched."""
    return int(_C._vmap_level(tensor))


def dlevel(tensor: Any, /) -> int:
    """The number of a tensor's level; 0 if it is not batched, -1 if its level is closed."""
    level = maybe_get_level(tensor)
    if level < 0:
        return 0
    return level if any(one.level == level for one in _transform.of_thread()) else -1


def is_dead_tensor_wrapper(tensor: Any, /) -> bool:
    """Whether a tensor is batched at a level that is closed."""
    return dlevel(tensor) == -1


def unwrap_if_dead(tensor: Any, /) -> Any:
    """The value behind a tensor whose level is closed; other tensors as they are."""
    return _C._vmap_unwrapped(tensor) if is_dead_tensor_wrapper(tensor) else tensor


def unwrap_dead_wrappers(args: tuple[Any, ...], /) -> tuple[Any, ...]:
    """The arguments, those whose level is closed by the values behind them."""
    return tuple(unwrap_if_dead(one) if isinstance(one, _C.TensorBase) else one for one in args)


def maybe_get_bdim(tensor: Any, /) -> int:
    """The dimension that counts the examples of a batched tensor; -1 of others."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Any, /) -> Any:
    """The value behind a batched tensor, one level down.

    Raises:
        RuntimeError: for a tensor that is not batched.
    """
    if not is_batchedtensor(tensor):
        raise RuntimeError("No wrappers present!")
    return _C._vmap_unwrapped(tensor)


def maybe_current_level() -> int | None:
    """How many transforms are open on this thread; None outside of all of them."""
    return len(_transform.of_thread()) or None


def current_level() -> int:
    """How many transforms are open on this thread.

    Raises:
        RuntimeError: outside of all of them.
    """
    level = maybe_current_level()
    if level is None:
        raise RuntimeError("current_level(): no function transform is open")
    return level


def reshape_dim_into(src: int, dst: int, x: Any, /) -> Any:
    """The tensor with dimension ``src`` merged into ``dst``, as its slower part.

    Args:
        src: which dimension goes away.
        dst: into which of the others, counted without ``src``.
        x: the tensor.

    Raises:
        IndexError: for dimensions that there are not.
    """
    src, dst = _dimension(src, x.dim()), _dimension(dst, x.dim() - 1)
    sizes = [size for dim, size in enumerate(x.shape) if dim != src]
    sizes[dst] *= x.size(src)
    return x.movedim(src, dst).reshape(sizes)


def reshape_dim_outof(src: int, size1: int, x: Any, /) -> Any:
    """The tensor with dimension ``src`` in two: ``size1``, and the rest after it.

    Raises:
        IndexError: for a dimension that there is not.
        RuntimeError: if ``size1`` does not divide its size.
    """
    src = _dimension(src, x.dim())
    sizes = list(x.shape)
    if size1 == 0 or sizes[src] % size1:
        raise RuntimeError(
            f"reshape_dim_outof(): dimension {src} of size {sizes[src]} has no part of {size1}"
        )
    sizes[src : src + 1] = [size1, sizes[src] // size1]
    return x.reshape(sizes)


def _dimension(dim: int, count: int) -> int:
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
            f"{dim})"
        )
    return dim % count


# ---- switches ----


def get_inplace_requires_grad_allowed() -> bool:
    """Whether ``requires_grad_()`` may be called within transforms, on this thread."""
    return _transform.ALLOWED.requires_grad


def set_inplace_requires_grad_allowed(allowed: bool, /) -> None:
    """Lets ``requires_grad_()`` be called within transforms, on this thread."""
    _transform.ALLOWED.requires_grad = bool(allowed)


def get_single_level_autograd_function_allowed() -> bool:
    """Whether functions without ``setup_context`` may be applied within transforms."""
    return _transform.ALLOWED.functions_without_setup


def set_single_level_autograd_function_allowed(allowed: bool, /) -> None:
    """Lets functions without ``setup_context`` be applied within transforms, on this thread."""
    _transform.ALLOWED.functions_without_setup = bool(allowed)


def _is_vmap_fallback_enabled() -> bool:
    """Whether a call without batching rule goes through the examples one by one."""
    return _C._is_vmap_fallback_enabled()


def _set_vmap_fallback_enabled(enabled: bool, /) -> None:
    """Lets calls without batching rule go through the examples one by one, on all threads.

    Args:
        enabled: False for ``RuntimeError`` instead.
    """
    _C._set_vmap_fallback_enabled(enabled)


def _set_vmap_fallback_warning_enabled(enabled: bool, /) -> None:
    """Whether an op without batching rule warns when it is first called within ``vmap``."""
    _C._debug_only_display_vmap_fallback_warnings(enabled)


# ---- what there is, printed ----


def dump_tensor(tensor: Any, /) -> bool:
    """Prints a tensor's levels, the innermost first; True."""
    print(written(tensor))
    return True


def dump_dls() -> None:
    """Prints the open transforms of this thread, the outermost first."""
    layers = [f"{one.level()}:{one.key().name}" for one in get_interpreter_stack() or []]
    print(f"DynamicLayerStack[ {' '.join([*layers, ''])}]")


def dump_local_tls() -> None:
    """Prints the dispatch keys that this thread leaves out."""
    print(f"[Local Exclude] {_C._dispatch_tls_local_exclude_set()!r}")


# ---- what belongs to wrappers that there are not ----


def _refused(name: str, reason: str, instead: str, kind: str = "function") -> Any:
    return made_of(f"{_SPACE}.{name}", kind, Refusal(reason, instead))


_LAYERS = "transforms do not dispatch ops through a stack of layers here"
_BY_NAME = "open and close transforms by the functions for each kind, as _vmap_increment_nesting"
DynamicLayer = _refused("DynamicLayer", _LAYERS, _BY_NAME, "class")
push_dynamic_layer_stack = _refused("push_dynamic_layer_stack", _LAYERS, _BY_NAME)
pop_dynamic_layer_stack = _refused("pop_dynamic_layer_stack", _LAYERS, _BY_NAME)
_set_dynamic_layer_keys_included = _refused("_set_dynamic_layer_keys_included", _LAYERS, _BY_NAME)
tls_set_vmap_excluded = _refused("tls_set_vmap_excluded", _LAYERS, _BY_NAME)
_maybe_unsafe_set_level = _refused(
    "_maybe_unsafe_set_level",
    "the level of a tensor is not changed",
    "batch it again by _add_batch_dim",
)

_AS_IS = "functionalize runs functions on tensors as they are, without wrappers"
_FUNCTION = "use torch.func.functionalize"
_func_increment_nesting = _refused("_func_increment_nesting", _AS_IS, _FUNCTION)
_func_decrement_nesting = _refused("_func_decrement_nesting", _AS_IS, _FUNCTION)
_wrap_functional_tensor = _refused("_wrap_functional_tensor", _AS_IS, _FUNCTION)
_unwrap_functional_tensor = _refused("_unwrap_functional_tensor", _AS_IS, _FUNCTION)
_assert_wrapped_functional = _refused("_assert_wrapped_functional", _AS_IS, _FUNCTION)
_propagate_functional_input_mutation = _refused(
    "_propagate_functional_input_mutation", _AS_IS, _FUNCTION
)
