"""What a transform is about: which arguments, and whether they and the outputs are tensors.

Arguments and outputs may be trees (:mod:`pullback.utils._pytree`) with tensors as leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from .._tensor import Tensor
from ..utils._pytree import TreeSpec, tree_flatten, tree_leaves

if TYPE_CHECKING:
    Argnums = int | tuple[int, ...]


def chosen(args: tuple[Any, ...], argnums: Argnums) -> Any:
    """The arguments that ``argnums`` names: one, or a tuple of them.

    Raises:
        RuntimeError: for numbers that are not among the positional arguments, or named twice.
    """
    if isinstance(argnums, int):
        return args[_position(argnums, len(args))]
    return tuple(args[position] for position in _positions(argnums, len(args)))


def _positions(argnums: Argnums, count: int) -> list[int]:
    if isinstance(argnums, int):
        return [_position(argnums, count)]
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for number in argnums:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    positions = [_position(number, count) for number in argnums]
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(positions)}")
    return positions


def _position(number: int, count: int) -> int:
    if not -count <= number < count:
        raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return number % count


def of_chosen(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums, kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """The function of the chosen arguments alone, the others being constants.

    It may write to these constants, as a batch norm does to its statistics: within the transform it
    gets aliases of them.

    Returns:
        A function that takes what :func:`chosen` gives, as one argument.

    Raises:
        RuntimeError: as :func:`chosen`.
    """
    positions = _positions(argnums, len(args))

    def function(given: Any) -> Any:
        values = list(args)
        for position in positions:
            values[position] = None
        values, named = _writable((values, kwargs))
        several = (given,) if isinstance(argnums, int) else given
        for position, value in zip(positions, several, strict=True):
            values[position] = value
        return func(*values, **named)

    return function


def _writable(tree: Any) -> Any:
    """The tree with tensors that the innermost transform's function may write to.

    (Those of other classes stay what they are: an alias would not be of their class.)
    """
    leaves, spec = tree_flatten(tree)
    places = [place for place, leaf in enumerate(leaves) if type(leaf) is Tensor]
    if not places:
        return tree
    own = _C._func_arguments([leaves[place] for place in places])
    for place, tensor in zip(places, own, strict=True):
        leaves[place] = tensor
    return spec.unflatten(leaves)


def without_aux(result: Any, has_aux: bool, call: str) -> tuple[Any, Any]:
    """The output of a function, and what else it returned.

    Args:
        result: what it returned.
        has_aux: whether that is a pair.
        call: the transform as errors call it.

    Raises:
        RuntimeError: if it should be a pair, but is not.
    """
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def aux_tensors(aux: Any) -> tuple[list[Tensor], TreeSpec]:
    """What a function returned besides its output, taken apart.

    Raises:
        RuntimeError: if there is anything but tensors.
    """
    leaves, spec = tree_flatten(aux)
    for leaf in leaves:
        if not isinstance(leaf, _C.TensorBase):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return leaves, spec


def output_tensors(output: Any, call: str, of_what: str) -> tuple[list[Tensor], TreeSpec]:
    """The output of a function, taken apart.

    Args:
        output: what the function gave.
        call: the transform as errors call it.
        of_what: the call of the function as errors name it.

    Raises:
        RuntimeError: if it has no leaves, or any but tensors.
    """
    leaves, spec = tree_flatten(output)
    if not leaves or leaves == [None]:
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = {leaves})"
        )
    for leaf in leaves:
        if not isinstance(leaf, _C.TensorBase):
            raise RuntimeError(
                f"{call}: expected {of_what} to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves, spec


def check_real(tensors: Sequence[Tensor], name: str, what: str) -> None:
    """Refuses complex tensors, whose Jacobian would need two matrices.

    Args:
        tensors: inputs or outputs.
        name: the transform.
        what: which of the two they are.

    Raises:
        RuntimeError: if one is complex.
    """
    for index, tensor in enumerate(tensors):
        if isinstance(tensor, _C.TensorBase) and tensor.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what}s to be real but received complex tensor at flattened "
                f"input idx: {index}"
            )


def check_tensors(tree: Any) -> None:
    """Refuses leaves that no gradient can be computed for.

    Raises:
        ValueError: for what is no tensor.
        RuntimeError: for dtypes without derivatives.
    """
    for leaf in tree_leaves(tree):
        if not isinstance(leaf, _C.TensorBase):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        if not (leaf.is_floating_point() or leaf.is_complex()):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients, and those of complex "
                f"dtype, but got {leaf.dtype}"
            )


class _Star:
    def __repr__(self) -> str:
        return "*"


def shown(spec: TreeSpec) -> str:
    """A tree with stars for its leaves, for errors."""
    return repr(spec.unflatten([_Star()] * spec.num_leaves))
