"""Transforms of reverse mode: ``grad``, ``grad_and_value``, ``vjp``.

There are no levels in reverse mode. The function runs on aliases of its inputs that require grad;
the history of an alias goes on to the one of its original, so that transforms around this one
differentiate through it. What depends on nothing but those aliases comes back without history.
The mode outside does not matter to the function, which always records, only to what comes back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast, overload

from .. import _C, _transform
from ..autograd.grad_mode import enable_grad, no_grad
from ..utils._pytree import TreeSpec, tree_flatten
from ._argument import (
    aux_tensors,
    check_tensors,
    chosen,
    of_chosen,
    output_tensors,
    shown,
    without_aux,
)

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ._argument import Argnums

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_GRAD = "grad_and_value(f)(*args)"
_VJP = "vjp(f, *primals)"


def grad(func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """The function that gives the gradient ``d func(x) / d x``, of the shape of ``x``.

    Args:
        func: returns a tensor without dimensions.
        argnums: which positional argument to differentiate by, a tree of tensors; or a tuple of
            several, for a tuple of gradients.
        has_aux: whether ``func`` returns a pair of that tensor and a tree of others, which are
            given along with the gradient.

    Returns:
        A function of the same arguments; with ``has_aux`` it gives the pair
        ``(gradient, aux)``. Inputs that do not matter have a gradient of zeros.

    Raises:
        RuntimeError: (by the function returned) for outputs of other shapes, ``argnums`` that
            there are not, dtypes without derivatives.
        ValueError: if there is anything but tensors to differentiate by.

    Example:
        >>> import pullback as torch
        >>> torch.func.grad(torch.func.grad(lambda x: x**3))(torch.tensor(2.0))
        tensor(12.)
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        slope, value = _slope_and_value(func, argnums, has_aux, args, kwargs)
        return (slope, value[1]) if has_aux else slope

    return gradient


def grad_and_value(
    func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """As :func:`grad`, but the function returned gives a pair: the gradient and the value.

    Args:
        func: as for :func:`grad`.
        argnums: as for :func:`grad`.
        has_aux: as for :func:`grad`; the value is the pair that ``func`` returned.

    Raises:
        RuntimeError: as :func:`grad`.
        ValueError: as :func:`grad`.

    Example:
        >>> import pullback as torch
        >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def gradient_and_value(*args: P.args, **kwargs: P.kwargs) -> Any:
        return _slope_and_value(func, argnums, has_aux, args, kwargs)

    return gradient_and_value


def _slope_and_value(
    func: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    point = Point(chosen(args, argnums))
    result = point.call(of_chosen(func, args, argnums, kwargs))
    output, aux = without_aux(result, has_aux, _GRAD)
    if not isinstance(output, _C.TensorBase):
        raise RuntimeError(f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim() != 0:
        raise RuntimeError(
            f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    others, spec = aux_tensors(aux) if has_aux else ([], None)
    scalar = cast("Tensor", output)
    slopes = point.pull([scalar], None)
    slope = point.spec.unflatten(point.closed(slopes))
    value, *others = point.closed([scalar, *others])
    return slope, (value, spec.unflatten(others)) if spec is not None else value


class Point:
    """The inputs of a function that is differentiated, as it gets them.

    Args:
        tree: tensors.
        around: another point whose inputs do not count as being outside.

    Raises:
        ValueError: for leaves that are no tensors.
        RuntimeError: for dtypes without derivatives.
    """

    spec: TreeSpec
    inputs: list[Tensor]
    _known: list[Tensor]

    def __init__(self, tree: Any, around: Point | None = None) -> None:
        check_tensors(tree)
        originals, self.spec = tree_flatten(tree)
        self.inputs = [_C._func_input(original) for original in originals]
        self._known = self.inputs if around is None else self.inputs + around._known

    def call(self, function: Callable[[Any], Any]) -> Any:
        """The result of a function of the tree.

        Raises:
            RuntimeError: if it wrote to an input.
        """
        nodes = [given.grad_fn for given in self.inputs]
        try:
            with _transform.reverse_mode(), enable_grad():
                _C._transform_own(self.inputs)
                result = function(self.spec.unflatten(self.inputs))
        finally:
            # Code outside cannot request derivatives by these inputs any more.
            _C._func_close(self.inputs)
        if any(given.grad_fn is not node for given, node in zip(self.inputs, nodes, strict=True)):
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation: the "
                "function wrote to an input that it is differentiated by"
            )
        return result

    def pull(
        self,
        outputs: Sequence[Tensor],
        vectors: Sequence[Tensor] | None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool | None = None,
    ) -> list[Tensor]:
        """The gradients of ``outputs`` by the inputs, zeros where there is none.

        Args:
            outputs: what the function gave.
            vectors: a gradient for each; None stands for one, of a real scalar.
            retain_graph: keep the graph; defaults to ``create_graph``.
            create_graph: record this; by default if anything outside may ask for it.
        """
        starts: Sequence[Tensor | None] = [None] * len(outputs) if vectors is None else vectors
        live = [pair for pair in zip(outputs, starts, strict=True) if pair[0].requires_grad]
        if create_graph is None:
            create_graph = self._is_asked_for(outputs, vectors or ())
        found: Sequence[Tensor | None] = [None] * len(self.inputs)
        if live:
            found = _C._engine_run_backward(
                [output for output, _ in live],
                [start for _, start in live],
                create_graph if retain_graph is None else retain_graph,
                create_graph,
                self.inputs,
                True,
                False,
            )
        zeros_like = _C._VariableFunctions.zeros_like
        return [
            zeros_like(given) if slope is None else slope
            for slope, given in zip(found, self.inputs, strict=True)
        ]

    def _is_asked_for(self, outputs: Sequence[Tensor], vectors: Sequence[Tensor]) -> bool:
        """Whether gradients need a history, because code outside may differentiate them."""
        if not _C.is_grad_enabled():
            return False
        if any(isinstance(v, _C.TensorBase) and v.requires_grad for v in vectors):
            return True
        return _C._func_reaches_out(list(outputs), self._known)

    def closed(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors as they are given out: what only depends on the inputs has no history."""
        if _C.is_grad_enabled():
            return _C._func_detach(list(tensors), self._known)
        return [_without_history(tensor) if tensor.requires_grad else tensor for tensor in tensors]


def _without_history(tensor: Tensor) -> Tensor:
    """The tensor without reverse history, but with its tangents."""
    if not any(transform.kind == "jvp" for transform in _transform.of_thread()):
        return tensor.detach()
    # (`detach` ends forward mode as well.)
    with no_grad():
        return tensor.view_as(tensor)


@overload
def vjp(
    func: Callable[..., R], *primals: Any, has_aux: Literal[False] = ...
) -> tuple[R, Callable[..., Any]]: ...


@overload
def vjp(
    func: Callable[..., tuple[R, S]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., Any], S]: ...


@overload
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``func``, and the function that multiplies a vector with its Jacobian.

    Args:
        func: returns a tree of tensors.
        primals: its arguments, trees of tensors.
        has_aux: whether ``func`` returns a pair of its output and a tree of other tensors.

    Returns:
        ``(output, pull)``, or ``(output, pull, aux)``. For a tree ``v`` like the output,
        ``pull(v)`` is the tuple of the products ``v J``, one for each primal and like it. It can be
        called any number of times.

    Raises:
        ValueError: for primals that are no tensors.
        RuntimeError: for outputs that are none, or dtypes without derivatives; ``pull`` raises it
            for vectors of another structure or shape.

    Example:
        >>> import pullback as torch
        >>> y, pull = torch.func.vjp(torch.sin, torch.zeros(2))
        >>> pull(torch.tensor([1.0, 2.0]))
        (tensor([1., 2.]),)
    """
    return pullback_of(lambda given: func(*given), primals, has_aux)


def pullback_of(function: Callable[[Any], Any], primals: Any, has_aux: bool) -> Any:
    """As :func:`vjp`, for a function of one tree.

    Args:
        function: takes the tree.
        primals: the tree.
        has_aux: as for :func:`vjp`.
    """
    point = Point(primals)
    output, aux = without_aux(point.call(function), has_aux, _VJP)
    outputs, output_spec = output_tensors(output, _VJP, "f(*primals)")
    others, aux_spec = aux_tensors(aux) if has_aux else ([], None)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors, spec = tree_flatten(cotangents)
        if spec != output_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {shown(spec)}, primal output: "
                f"{shown(output_spec)}"
            )
        slopes = point.pull(outputs, vectors, retain_graph=retain_graph, create_graph=create_graph)
        return point.spec.unflatten(point.closed(slopes))

    value = output_spec.unflatten(point.closed(outputs))
    if aux_spec is None:
        return value, pull
    return value, pull, aux_spec.unflatten(point.closed(others))
