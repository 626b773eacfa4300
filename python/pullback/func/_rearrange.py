"""``rearrange``: dimensions permuted, split, joined, added and dropped as a pattern says.

The notation is that of the library einops (A. Rogozhnikov, "Einops", ICLR 2022). A pattern is
parsed once; a call is then one reshape that splits, one permutation, and one reshape that joins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from .._tensor import Tensor

_TOKEN = re.compile(r"\s*(\.\.\.|\(|\)|[^\s().]+|.)")
_REST = "..."


class _Side(NamedTuple):
    """One side of a pattern.

    Args:
        groups: the names within each dimension; an empty group has one element.
        names: all names, in order, those of the ellipsis as ``...``.
    """

    groups: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """A tensor whose dimensions are permuted, split, joined, added or dropped as a pattern says.

    Args:
        tensor: a tensor, or several of one shape, which are stacked along a new first dimension.
        pattern: names of the dimensions before and after ``->``. Parentheses hold those that are
            joined to one, ``1`` and ``()`` are dimensions of one element, ``...`` stands for any
            number of further dimensions.
        axes_lengths: the sizes of names that are within parentheses before the arrow; one of each
            group may be left out.

    Returns:
        A view where the elements need not be moved.

    Raises:
        ValueError: for a pattern that is none, and for one that does not fit the tensor.
        TypeError: for what is no tensor.

    Example:
        >>> import pullback as torch
        >>> images = torch.zeros(8, 3, 4, 6)
        >>> torch.func.rearrange(images, "b c (h1 h) w -> (b h1) h w c", h1=2).shape
        torch.Size([16, 2, 6, 3])
    """
    if not isinstance(tensor, _C.TensorBase):
        tensor = _C._VariableFunctions.stack(tensor)
    left, right = _parsed(pattern)
    unknown = axes_lengths.keys() - set(left.names)
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    rest = tensor.dim() - sum(group != (_REST,) for group in left.groups)
    if rest < 0 or (rest > 0 and _REST not in left.names):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left.groups)}) must be equal to the number of "
            f"dimensions in the tensor ({tensor.dim()})"
        )
    sizes = _sizes(left, tuple(tensor.shape), rest, axes_lengths)
    order, shape = _arranged(left, right, sizes, rest)
    flat = [size for name in left.names for size in sizes[name]]
    return tensor.reshape(flat).permute(order).reshape(shape)


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> tuple[_Side, _Side]:
    """Both sides of a pattern, checked."""
    parts = pattern.split("->")
    if len(parts) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = _side(parts[0]), _side(parts[1])
    if any(len(group) > 1 and _REST in group for group in left.groups):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if _REST in right.names and _REST not in left.names:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    alone = set(left.names) ^ set(right.names)
    if alone:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {alone}"
        )
    return left, right


def _side(text: str) -> _Side:
    groups: list[tuple[str, ...]] = []
    open_group: list[str] | None = None
    names: list[str] = []
    for token in _TOKEN.findall(text.rstrip()):
        if token == "(":
            if open_group is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                )
            open_group = []
        elif token == ")":
            if open_group is None:
                raise ValueError(f"Brackets are not balanced in {text.strip()!r}")
            groups.append(tuple(open_group))
            open_group = None
        else:
            name = _name(token, names)
            names.extend(name)
            if open_group is None:
                groups.append(name)
            else:
                open_group.extend(name)
    if open_group is not None:
        raise ValueError(f"Brackets are not balanced in {text.strip()!r}")
    return _Side(tuple(groups), tuple(names))


def _name(token: str, before: list[str]) -> tuple[str, ...]:
    """The name that a token is; none for a dimension of one element."""
    if token.isdecimal():
        if int(token) != 1:
            raise ValueError("rearrange only supports unnamed axes of size 1")
        return ()
    if token != _REST:
        if "." in token:
            raise ValueError(
                "Expression may contain dots only inside ellipsis (...); only one ellipsis for "
                "tensor"
            )
        if not token.isidentifier() or token.startswith("_") or token.endswith("_"):
            raise ValueError(f"Invalid axis identifier: {token}")
    if token in before:
        raise ValueError(f"Indexing expression contains duplicate dimension '{token}'")
    return (token,)


def _sizes(
    left: _Side, shape: tuple[int, ...], rest: int, given: dict[str, int]
) -> dict[str, tuple[int, ...]]:
    """The size of each name, or the sizes of the ellipsis."""
    sizes: dict[str, tuple[int, ...]] = {}
    position = 0
    for group in left.groups:
        if group == (_REST,):
            sizes[_REST] = shape[position : position + rest]
            position += rest
            continue
        sizes.update(_within(group, shape[position], given))
        position += 1
    return sizes


def _within(group: tuple[str, ...], size: int, given: dict[str, int]) -> dict[str, tuple[int]]:
    """The sizes of the names that one dimension is split into."""
    open_names = [name for name in group if name not in given]
    if len(open_names) > 1:
        raise ValueError(f"cannot infer the sizes of several dimensions at once: {open_names}")
    known = 1
    for name in group:
        known *= given.get(name, 1)
    if open_names:
        if known <= 0 or size % known:
            raise ValueError(
                f"inferred dimension does not evenly fit into larger dimension: {size} is no "
                f"multiple of {known}"
            )
    elif known != size:
        raise ValueError(f"the dimension ({' '.join(group)}) has {size} elements, not {known}")
    inferred = size // known if open_names else 1
    return {name: (int(given.get(name, inferred)),) for name in group}


def _arranged(
    left: _Side, right: _Side, sizes: dict[str, tuple[int, ...]], rest: int
) -> tuple[list[int], list[int]]:
    """The permutation of the split dimensions, and the shape to join them to."""
    first: dict[str, int] = {}
    count = 0
    for name in left.names:
        first[name] = count
        count += rest if name == _REST else 1
    order: list[int] = []
    shape: list[int] = []
    for group in right.groups:
        if group == (_REST,):
            shape.extend(sizes[_REST])
        else:
            joined = 1
            for name in group:
                for size in sizes[name]:
                    joined *= size
            shape.append(joined)
        for name in group:
            order.extend(range(first[name], first[name] + len(sizes[name])))
    return order, shape
