"""Transforms of forward mode: ``jvp`` and ``linearize``.

``jvp`` runs the function on dual tensors in a level of its own. ``linearize`` runs it once, on
recorded inputs, and multiplies with the Jacobian afterwards, as often as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from .. import _C, _transform
from ..autograd import forward_ad
from ..utils._pytree import TreeSpec, tree_flatten
from ._argument import aux_tensors, output_tensors, without_aux
from ._reverse import Point

if TYPE_CHECKING:
    from .._tensor import Tensor

R = TypeVar("R")
S = TypeVar("S")

_JVP = "jvp(f, primals, tangents)"


@overload
def jvp(
    func: Callable[..., R],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = ...,
    has_aux: Literal[False] = ...,
) -> tuple[R, R]: ...


@overload
def jvp(
    func: Callable[..., tuple[R, S]],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = ...,
    has_aux: Literal[True],
) -> tuple[R, R, S]: ...


@overload
def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = ...,
    has_aux: bool,
) -> Any: ...


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value of ``func`` and the product of its Jacobian with a vector, ``J v``.

    Args:
        func: returns a tree of tensors.
        primals: a tuple of its arguments, trees of tensors.
        tangents: the vector: a tuple of the same structure.
        strict: raise an error, instead of giving zeros, for outputs that do not depend on inputs.
        has_aux: whether ``func`` returns a pair of its output and a tree of other tensors.

    Returns:
        ``(output, product)``, or ``(output, product, aux)``; the product is like the output.

    Raises:
        RuntimeError: for primals that are no tuple, other structures or shapes of tangents, leaves
            and outputs that are no tensors, and what ``strict`` asks for.
        ValueError: for dtypes without derivatives.

    Example:
        >>> import pullback as torch
        >>> torch.func.jvp(lambda x: x**2, (torch.tensor(3.0),), (torch.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    return pushforward_of(lambda given: func(*given), primals, tangents, strict, has_aux)


def pushforward_of(
    function: Callable[[Any], Any], primals: Any, tangents: Any, strict: bool, has_aux: bool
) -> Any:
    """As :func:`jvp`, for a function of one tree.

    Args:
        function: takes the tree.
        primals: the tree.
        tangents: a tree like it.
        strict: as for :func:`jvp`.
        has_aux: as for :func:`jvp`.
    """
    points, directions, spec = _pairs(primals, tangents)
    directions = _C._func_apart(points, directions)
    with _transform.forward_mode() as level, forward_ad._set_fwd_grad_enabled(True):
        duals = [
            forward_ad.make_dual(point, direction, level=level)
            for point, direction in zip(points, directions, strict=True)
        ]
        _C._transform_own(duals)
        output, aux = without_aux(function(spec.unflatten(duals)), has_aux, _JVP)
        outputs, output_spec = output_tensors(output, _JVP, "f(*primals)")
        others, aux_spec = aux_tensors(aux) if has_aux else ([], None)
        pairs = [forward_ad.unpack_dual(tensor, level=level) for tensor in outputs]
        products = [_tangent(pair, strict) for pair in pairs]
        others = [forward_ad.unpack_dual(tensor, level=level).primal for tensor in others]
    value = output_spec.unflatten(pair.primal for pair in pairs)
    product = output_spec.unflatten(products)
    if aux_spec is None:
        return value, product
    return value, product, aux_spec.unflatten(others)


def _pairs(primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], TreeSpec]:
    points, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {other}"
        )
    for leaves, role in ((points, "primals"), (directions, "tangents")):
        if not leaves:
            raise RuntimeError(f"{_JVP}: Expected {role} to contain at least one Tensor.")
        for leaf in leaves:
            if not isinstance(leaf, _C.TensorBase):
                raise RuntimeError(
                    f"{_JVP}: Expected {role} to only contain Tensors, got {type(leaf)}"
                )
    return points, directions, spec


def _tangent(pair: forward_ad.UnpackedDualTensor, strict: bool) -> Tensor:
    if pair.tangent is not None:
        return pair.tangent
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    zeros: Tensor = _C._VariableFunctions.zeros_like(pair.primal)
    return zeros


def linearize(func: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
    """The value of ``func``, and the function that multiplies its Jacobian there with a vector.

    ``func`` runs once, so many products cost less than with :func:`jvp`, and random numbers stay
    the same. The product is found by two reverse passes: ``u J`` is linear in ``u``, and the
    gradient of ``<u J, v>`` by ``u`` is ``J v``. So all ops of ``func`` must have derivatives in
    reverse mode that can be differentiated again.

    Args:
        func: returns a tree of tensors; other leaves are constants.
        primals: its arguments, trees of tensors.

    Returns:
        ``(output, push)``: for ``tangents`` like the primals, ``push(*tangents)`` is ``J v``, like
        the output.

    Raises:
        ValueError: for primals that are no tensors.
        RuntimeError: for dtypes without derivatives; ``push`` raises it for tangents of another
            structure, shape or dtype.

    Example:
        >>> import pullback as torch
        >>> y, push = torch.func.linearize(torch.sin, torch.zeros(2))
        >>> push(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    point = Point(primals)
    leaves, output_spec = tree_flatten(point.call(lambda given: func(*given)))
    positions = [i for i, leaf in enumerate(leaves) if _is_differentiable(leaf)]
    outputs = [leaves[position] for position in positions]
    zeros_like = _C._VariableFunctions.zeros_like

    def push(*tangents: Any) -> Any:
        vectors = _vectors_like(point, tangents)
        results = [_zeros_for(leaf) for leaf in leaves]
        if outputs:
            origin = Point([zeros_like(output) for output in outputs], around=point)
            products = origin.call(lambda starts: point.pull(outputs, starts, retain_graph=True))
            # (The graph of `func` is the products' too: the next call needs it.)
            found = origin.closed(origin.pull(products, vectors, retain_graph=True))
            for position, product in zip(positions, found, strict=True):
                results[position] = product
        return output_spec.unflatten(results)

    given_out = iter(point.closed(outputs))
    value = [next(given_out) if i in positions else leaf for i, leaf in enumerate(leaves)]
    return output_spec.unflatten(value), push


def _is_differentiable(leaf: Any) -> bool:
    is_tensor = isinstance(leaf, _C.TensorBase)
    return is_tensor and (leaf.is_floating_point() or leaf.is_complex())


def _zeros_for(leaf: Any) -> Any:
    """The derivative of what is constant: zeros, or what it is if it is no tensor."""
    if not isinstance(leaf, _C.TensorBase):
        return leaf
    return _C._VariableFunctions.zeros_like(cast("Tensor", leaf))


def _vectors_like(point: Point, tangents: tuple[Any, ...]) -> list[Tensor]:
    vectors, spec = tree_flatten(tangents)
    if spec != point.spec:
        raise RuntimeError(
            f"Expected the tangents {spec} to have the same argspec as the primals {point.spec}"
        )
    for index, (vector, primal) in enumerate(zip(vectors, point.inputs, strict=True)):
        for what in ("shape", "dtype"):
            got, wanted = getattr(vector, what), getattr(primal, what)
            if got != wanted:
                raise RuntimeError(
                    f"tangent:{index} with {what} {got} in flattened pytree doesn't match the "
                    f"{what} {wanted} of the corresponding primal."
                )
    return vectors
