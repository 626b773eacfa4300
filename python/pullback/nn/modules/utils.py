"""Sizes given as one number or as several, and keys of state dicts. No tensors here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Makes a function that repeats a number ``n`` times and leaves several as a tuple."""

    def parse(x: Any) -> tuple[Any, ...]:
        if isinstance(x, Iterable):
            return tuple(x)
        return tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _list_with_default(out_size: Any, defaults: Any) -> Any:
    """Sizes of which those that are None are the last of ``defaults``.

    Raises:
        ValueError: for fewer defaults than sizes.
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, last, strict=True)]


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Each element ``n`` times, last element first: paddings in the order that ``pad`` wants."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off the keys that have it, in place, and off those of the metadata.

    Example::

        consume_prefix_in_state_dict_if_present(state_dict, "module.")   # of DataParallel
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # (The metadata's key of the module itself is the prefix without its dot.)
        if key and (key.startswith(prefix) or key == prefix.rstrip(".")):
            metadata[key[len(prefix) :]] = metadata.pop(key)
