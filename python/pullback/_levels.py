"""The levels of function transforms, under the names of ``torch._C._functorch``.

Tensors within ``vmap`` are batched at a level, whose examples the first dimension of the value
behind them counts; those of reverse mode are ordinary tensors here, with a history, and belong to
no level.
"""

from __future__ import annotations

from typing import Any

from . import _C, _transform

__all__ = [
    "_add_batch_dim",
    "_remove_batch_dim",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "current_level",
    "dlevel",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
]


_OPEN: list[Any] = []


def _vmap_increment_nesting(batch_size: int, randomness: str, /) -> int:
    """Opens a level of ``vmap``, and gives its number."""
    context = _transform.batch(batch_size, randomness)
    level = context.__enter__()
    _OPEN.append(context)
    return level


def _vmap_decrement_nesting() -> None:
    """Closes the level that :func:`_vmap_increment_nesting` opened last.

    Raises:
        RuntimeError: if none is open.
    """
    if not _OPEN:
        raise RuntimeError("_vmap_decrement_nesting(): no level was opened")
    _OPEN.pop().__exit__(None, None, None)


def _add_batch_dim(tensor: Any, in_dim: int, level: int, /) -> Any:
    """A tensor seen without a dimension, which counts the examples of a level."""
    return _C._vmap_add(tensor, in_dim, level)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int, /) -> Any:
    """A tensor of a level with the dimension of its examples."""
    return _C._vmap_remove(tensor, level, batch_size, out_dim)


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


def maybe_get_level(tensor: Any, /) -> int:
    """The number of a tensor's level, which no other level gets; -1 if it is not batched."""
    return int(_C._vmap_level(tensor))


def dlevel(tensor: Any, /) -> int:
    """The number of a tensor's level; 0 if it is not batched, -1 if its level is closed."""
    level = maybe_get_level(tensor)
    if level < 0:
        return 0
    return level if any(one.level == level for one in _transform.of_thread()) else -1


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
