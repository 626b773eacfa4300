"""Moves between first-class and positional dimensions: order, expand, index, stack, cat, split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from ._dimension import Dim, DimensionBindError, DimList
from ._tensor import _class, _run, made, parts, position


def are_dims(items: Sequence[Any]) -> bool:
    """Whether all of these, of which there are some, are first-class dimensions."""
    return bool(items) and all(isinstance(item, Dim) for item in items)


def order(x: Any, dims: Sequence[Any]) -> Any:
    """See :meth:`Tensor.order`."""
    value, own = parts(x)
    groups: list[tuple[list[int], bool]] = []
    for item in dims:
        if isinstance(item, DimList):
            groups += [([_axis(x, dim)], False) for dim in item]
        elif isinstance(item, (tuple, list)):
            flat = [d for part in item for d in (part if isinstance(part, DimList) else (part,))]
            groups.append(([_axis(x, dim) for dim in flat], True))
        else:
            groups.append(([_axis(x, item)], False))
    axes = [axis for group, _ in groups for axis in group]
    if len(set(axes)) != len(axes):
        twice = next(axis for axis in axes if axes.count(axis) > 1)
        _refuse(own[twice] if twice < len(own) else twice - value.ndim, value.ndim - len(own))
    rest = [at for at in range(len(own)) if at not in axes]
    behind = [at for at in range(len(own), value.ndim) if at not in axes]
    value = value.permute(*rest, *axes, *behind)
    if any(is_joined for _, is_joined in groups):
        sizes, at = list(value.shape[: len(rest)]), len(rest)
        for group, _ in groups:
            size = 1
            for extent in value.shape[at : at + len(group)]:
                size *= extent
            sizes.append(size)
            at += len(group)
        value = value.reshape([*sizes, *value.shape[at:]])
    return made(value, [own[at] for at in rest])


def _axis(x: Any, dim: Any) -> int:
    """The position of a dimension in the value behind a tensor."""
    value, own = parts(x)
    rank = value.ndim - len(own)
    if isinstance(dim, Dim):
        axis = position(own, dim)
        if axis < 0:
            _refuse(dim, rank)
        return axis
    if isinstance(dim, int) and not isinstance(dim, bool):
        if not -rank <= dim < rank:
            _refuse(dim, rank)
        return int(len(own) + dim % rank)
    raise ValueError("expected a Dim, List[Dim], or Sequence[Dim]")


def _refuse(dim: Any, rank: int) -> None:
    if isinstance(dim, int):
        raise ValueError(
            f"tensor has {rank} positional dimensions, but {dim} specified, or it was specified "
            "twice"
        )
    raise ValueError(f"tensor does not contain dim {dim!r} or it was specified twice")


def expanded(x: Any, *dims: Dim) -> Any:
    """A tensor with further first-class dimensions, along which it repeats."""
    value, own = parts(x)
    for dim in dims:
        if position(own, dim) >= 0:
            raise ValueError(f"expanding dimension {dim!r} already exists in tensor with dims")
    value = value.expand([*(dim.size for dim in dims), *value.shape])
    return made(value, [*dims, *own])


def bound(x: Any, at: int, dim: Dim) -> Any:
    """A tensor with one positional dimension bound to a first-class one."""
    items: tuple[Any, ...] = (*(slice(None),) * at, dim)
    return x[items]


def stack(tensors: Any, new_dim: Dim, dim: int = 0) -> Any:
    """Tensors along a new first-class dimension.

    Args:
        tensors: tensors of the same positional sizes.
        new_dim: the dimension, which is bound to their number.
        dim: where it would be among the positional ones; that does not matter to the result.

    Raises:
        DimensionBindError: if it is bound to another size.
    """
    stacked = _run(_C._VariableFunctions.stack, (list(tensors), 0), {})
    return bound(stacked, 0, new_dim)


def cat(tensors: Any, dim: Any, new_dim: Dim) -> Any:
    """Tensors one after another along a dimension.

    Args:
        tensors: the tensors.
        dim: the dimension, a first-class one of each of them, or the number of a positional one.
        new_dim: the dimension of the result, which is bound to the size.

    Raises:
        ValueError: if one does not have the dimension.
        DimensionBindError: if ``new_dim`` is bound to another size.
    """
    moved = [order(x, (dim,)) for x in tensors]
    joint = _run(_C._VariableFunctions.cat, (moved, 0), {})
    return bound(joint, 0, new_dim)


def split(tensor: Any, split_size_or_sections: Any, dim: Any = 0) -> tuple[Any, ...]:
    """A tensor cut along a dimension.

    Args:
        tensor: the tensor.
        split_size_or_sections: the size of the parts, the size of each of them, or a first-class
            dimension for each of them: those that are not bound share what is left.
        dim: a first-class dimension, or the number of a positional one.

    Raises:
        TypeError: if ``dim`` is a first-class dimension, but the parts have none.
        DimensionBindError: if the sizes do not add up.
    """
    sections = split_size_or_sections
    named = isinstance(sections, (tuple, list, DimList)) and are_dims(tuple(sections))
    if not named:
        if isinstance(dim, Dim):
            raise TypeError(
                "when dim is specified as a Dim object, split sizes must also be dimensions."
            )
        plain = (tensor, sections, 0 if dim is None else dim)
        return tuple(_run(_class().split, plain, {}))
    front = order(tensor, (0 if dim is None else dim,))
    sizes = _shares(list(sections), int(front.shape[0]))
    cut = _run(_class().split, (front, sizes, 0), {})
    at = 0 if dim is None or isinstance(dim, Dim) else dim % front.ndim
    back = [_run(_class().movedim, (part, 0, at), {}) if at else part for part in cut]
    return tuple(bound(part, at, section) for part, section in zip(back, sections, strict=True))


def _shares(sections: list[Dim], size: int) -> list[int]:
    """The size of each part; those that are not bound become so."""
    rest = size - sum(section.size for section in sections if section.is_bound)
    unbound = [section for section in sections if not section.is_bound]
    if rest < 0 or (rest > 0 and not unbound):
        raise DimensionBindError(
            f"result of split has total size {size - rest} but the original size is {size}"
        )
    share = -(-rest // len(unbound)) if unbound else 0
    for section in unbound:
        section.size = min(share, rest)
        rest -= section.size
    return [section.size for section in sections]


def index(self: Any, positions: Any, dims: Any) -> Any:
    """A tensor indexed along some of its dimensions.

    Args:
        self: the tensor.
        positions: a dimension, first-class or the number of a positional one, or several.
        dims: for each of them an index: a number, a tensor, a first-class dimension.

    Raises:
        ValueError: for dimensions that the tensor does not have.

    Example:
        >>> import pullback as torch
        >>> i, j = torch.functorch.dim.dims()
        >>> torch.arange(6).reshape(2, 3).index((0, 1), (i, j)).index(i, 1).order(j)
        tensor([3, 4, 5])
    """
    if not isinstance(positions, (tuple, list, DimList)):
        positions, dims = (positions,), (dims,)
    if len(tuple(positions)) != len(tuple(dims)):
        raise ValueError(
            f"{len(tuple(positions))} dimensions are to be indexed, but there are "
            f"{len(tuple(dims))} indices"
        )
    numbers = [at for at in positions if isinstance(at, int)]
    if len(numbers) == len(tuple(positions)):
        # (They stay where they are.)
        rank = self.ndim
        at: list[Any] = [slice(None)] * rank
        for number, value in zip(positions, dims, strict=True):
            at[_axis(self, number) - len(parts(self)[1])] = value
        return self[tuple(at)]
    return order(self, tuple(positions))[tuple(dims)]
