"""How masked tensors are taken apart and put together, in calls and below autograd.

Both levels do the same with different means: a call keeps the history of the data, an op has none.
Masks are compared in calls only; those of gradients may differ, and are united.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C
from .._tensor import Tensor
from . import _pattern
from ._tensor import MaskedTensor, _joined, unwrap, wrap


class Level(NamedTuple):
    """The way in which data is taken out of masked tensors and put into them."""

    unwrap: Callable[[MaskedTensor], Tensor]
    wrap: Callable[[Tensor, Tensor], MaskedTensor]


CALL = Level(unwrap, wrap)
# Below autograd there is no history to keep.
OP = Level(lambda source: _pattern.values(source._masked_data), _joined)


def mapped(value: Any, function: Callable[[MaskedTensor], Any]) -> Any:
    """``value`` with ``function`` applied to the masked tensors in it."""
    if isinstance(value, MaskedTensor):
        return function(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, _C.Size):
        return type(value)([mapped(item, function) for item in value])
    return value


def has(values: Any, kind: type) -> bool:
    """Whether something of a type is among the values, or in lists and tuples among them."""
    if isinstance(values, kind):
        return True
    return isinstance(values, (list, tuple)) and any(has(item, kind) for item in values)


def check_masks(a: Any, b: Any) -> None:
    """Refuses two masked tensors whose masks differ."""
    if not (isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor)):
        return
    first, second = a._masked_mask, b._masked_mask
    if not _pattern.is_same(first, second):
        raise ValueError(
            "Input masks must match: an element of the result would count in one of the two only. "
            f"Got masks of shapes {tuple(first.shape)} and {tuple(second.shape)}"
        )


def union(a: Any, b: Any) -> Tensor:
    """The masks of one or two masked tensors together.

    They differ only in gradients, which may come from different elements of one tensor.
    """
    masks = [part._masked_mask for part in (a, b) if isinstance(part, MaskedTensor)]
    if len(masks) == 1 or masks[0] is masks[1]:
        return masks[0]
    if _pattern.is_pattern(masks[0]) or _pattern.is_pattern(masks[1]):
        # (The gradients of one tensor have its pattern.)
        check_masks(a, b)
        return masks[0]
    return masks[0] | masks[1]


def refuse_out(name: str, kwargs: dict[str, Any]) -> None:
    """Refuses ``out=``, which has no room for a mask."""
    if kwargs.get("out") is not None:
        raise ValueError(f"{name}: 'out' is not supported for MaskedTensors")
