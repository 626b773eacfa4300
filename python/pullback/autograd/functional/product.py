"""Products of a vector with a Jacobian or a Hessian, which are never made as matrices.

Reverse mode gives ``v^T J`` with one walk of the graph. ``J v`` comes from two walks: the first
computes ``g(u) = u^T J`` for a ``u`` that requires gradients; ``g`` is linear in ``u`` and its own
transposed Jacobian is ``J``, so that the second walk, from ``g`` to ``u``, gives ``J v``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ... import _C
from ..grad_mode import enable_grad
from .argument import Pack, outputs_of, scalar_of, stand_ins, vector_for
from .gradient import (
    CONSTANT_SLOPE,
    STRICT,
    Complaint,
    check_history,
    complaint,
    filled,
    finished,
    gradients,
)

if TYPE_CHECKING:
    from ..._tensor import Tensor

Inputs = TypeVar("Inputs", bound="Tensor | tuple[Tensor, ...]")
Outputs = TypeVar("Outputs", bound="Tensor | tuple[Tensor, ...]")

_FUNCTION = "the user-provided function"
_RETURNS = f"{_FUNCTION} returns"
_TAKES = f"the input to {_FUNCTION} is"

_OF_OUTPUT = complaint(
    f"The output of {_FUNCTION} is independent of input {{}}",
    f"The jacobian of {_FUNCTION} is independent of input {{}}",
)
_OF_GRADIENT = complaint(
    f"The jacobian of {_FUNCTION} is independent of input {{}}",
    f"The hessian of {_FUNCTION} is independent of input {{}}",
)
_OF_TRANSPOSED_HESSIAN = complaint(
    f"The hessian of {_FUNCTION} is independent of entry {{}} in the grad_jacobian, the vector "
    "that the double backward trick differentiates by",
    f"The hessian of {_FUNCTION} is independent of input {{}}",
)
_CONSTANT_VJP = (
    f"The gradient with respect to input {{}} is independent of the inputs of {_FUNCTION}. "
    f"{STRICT}."
)


def vjp(
    func: Callable[..., Outputs],
    inputs: Inputs,
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Outputs, Inputs]:
    """The product ``v^T J`` of a vector with the Jacobian of ``func`` at ``inputs``.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: shaped as the outputs; may be left out, for one, if there is one output of one element.
        create_graph: give results that can be differentiated.
        strict: raise an error, instead of giving zeros, if no output depends on some input.

    Returns:
        The outputs of ``func``, and the product, shaped as the inputs.

    Raises:
        TypeError: if inputs, outputs or ``v`` are neither a tensor nor a tuple of tensors.
        RuntimeError: if ``v`` does not fit the outputs, and what ``strict`` asks for.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vjp(lambda x: x**2, x, torch.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        given = Pack.of(inputs, "inputs", "vjp")
        points = stand_ins(given.tensors, create_graph)
        outputs = outputs_of(func, points, "vjp", strict)
        vector = vector_for(outputs, v, "vjp", create_graph, _RETURNS)
        found = gradients(outputs.tensors, points, vector, create_graph=create_graph)
        product = filled(found, points, _OF_OUTPUT, create_graph=create_graph, strict=strict)
    return _results(outputs, given, product, create_graph)


def jvp(
    func: Callable[..., Outputs],
    inputs: Inputs,
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Outputs, Outputs]:
    """The product ``J v`` of the Jacobian of ``func`` at ``inputs`` with a vector.

    Computed by two walks in reverse mode, not in forward mode.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors, all of a floating-point or
            complex dtype.
        inputs: a tensor or a tuple of tensors.
        v: shaped as the inputs; may be left out, for one, if there is one input of one element.
        create_graph: give results that can be differentiated.
        strict: raise an error, instead of giving zeros, if an output depends on no input, or an
            input is without influence.

    Returns:
        The outputs of ``func``, and the product, shaped as the outputs.

    Raises:
        TypeError: if inputs, outputs or ``v`` are neither a tensor nor a tuple of tensors.
        RuntimeError: if ``v`` does not fit the inputs, and what ``strict`` asks for.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jvp(lambda x: x.prod(), x, torch.tensor([1.0, 10.0]))
        (tensor(2.), tensor(12.))
    """
    with enable_grad():
        given = Pack.of(inputs, "inputs", "jvp")
        points = stand_ins(given.tensors, create_graph)
        vector = vector_for(given, v, "jvp", create_graph, _TAKES)
        outputs = outputs_of(func, points, "jvp", strict)
        unknowns = _unknowns(outputs.tensors)
        transposed = gradients(outputs.tensors, points, unknowns, create_graph=True)
        if strict:
            check_history(transposed, _CONSTANT_VJP)
        found = gradients(transposed, unknowns, vector, create_graph=create_graph)
        product = filled(
            found,
            outputs.tensors,
            _of_entry(len(points)),
            create_graph=create_graph,
            strict=strict,
        )
    return _results(outputs, outputs, product, create_graph)


def vhp(
    func: Callable[..., Tensor],
    inputs: Inputs,
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Inputs]:
    """The product ``v^T H`` of a vector with the Hessian of ``func`` at ``inputs``.

    Args:
        func: takes tensors, returns one tensor with one element.
        inputs: a tensor or a tuple of tensors.
        v: shaped as the inputs; may be left out, for one, if there is one input of one element.
        create_graph: give results that can be differentiated.
        strict: raise an error, instead of giving zeros, if the output or its gradient does not
            depend on some input.

    Returns:
        The output of ``func``, and the product, shaped as the inputs.

    Raises:
        TypeError: if inputs, outputs or ``v`` are neither a tensor nor a tuple of tensors.
        RuntimeError: if ``v`` does not fit the inputs, if ``func`` returns more than one element,
            and what ``strict`` asks for.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.tensor([1.0, 10.0]))
        (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        at = _slope(func, inputs, v, "vhp", create_graph, strict)
        found = gradients(at.slopes, at.points, at.vector, create_graph=create_graph)
        product = filled(found, at.points, _OF_GRADIENT, create_graph=create_graph, strict=strict)
    return _results(at.output, at.given, product, create_graph)


def hvp(
    func: Callable[..., Tensor],
    inputs: Inputs,
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Inputs]:
    """The product ``H v`` of the Hessian of ``func`` at ``inputs`` with a vector.

    Where the second derivatives are continuous, the Hessian is symmetric and :func:`vhp` gives the
    same with one walk less.

    Args:
        func: takes tensors, returns one tensor with one element.
        inputs: a tensor or a tuple of tensors.
        v: shaped as the inputs; may be left out, for one, if there is one input of one element.
        create_graph: give results that can be differentiated.
        strict: raise an error, instead of giving zeros, if the output or its gradient does not
            depend on some input.

    Returns:
        The output of ``func``, and the product, shaped as the inputs.

    Raises:
        TypeError: if inputs, outputs or ``v`` are neither a tensor nor a tuple of tensors.
        RuntimeError: if ``v`` does not fit the inputs, if ``func`` returns more than one element,
            and what ``strict`` asks for.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.tensor([1.0, 10.0]))
        (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        at = _slope(func, inputs, v, "hvp", create_graph, strict)
        unknowns = _unknowns(at.points)
        transposed = gradients(at.slopes, at.points, unknowns, create_graph=True)
        found = gradients(transposed, unknowns, at.vector, create_graph=create_graph)
        product = filled(
            found, at.points, _OF_TRANSPOSED_HESSIAN, create_graph=create_graph, strict=strict
        )
    return _results(at.output, at.given, product, create_graph)


class _Slope(NamedTuple):
    """A function of one value and its gradient, at a point and before a product with a vector."""

    given: Pack
    points: tuple[Tensor, ...]
    vector: tuple[Tensor, ...] | None
    output: Pack
    slopes: tuple[Tensor | None, ...]


def _slope(
    func: Callable[..., Any], inputs: Any, v: Any, name: str, create_graph: bool, strict: bool
) -> _Slope:
    given = Pack.of(inputs, "inputs", name)
    points = stand_ins(given.tensors, create_graph)
    vector = vector_for(given, v, name, create_graph, _TAKES)
    output = scalar_of(func, points, name, strict)
    slopes = gradients((output,), points, None, create_graph=True)
    if strict:
        check_history(slopes, CONSTANT_SLOPE)
    return _Slope(given, points, vector, Pack((output,), is_tuple=False), slopes)


def _unknowns(like: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What a linear map is differentiated by; its value does not matter as long as it is finite."""
    zeros_like = _C._VariableFunctions.zeros_like
    return tuple(zeros_like(tensor, requires_grad=True) for tensor in like)


def _of_entry(inputs: int) -> Complaint:
    """What to say of entries of ``J v``: these belong to an output, and to all inputs at once."""
    names = ", ".join(str(index) for index in range(inputs))
    return complaint(
        "The gradient with respect to the input is independent of entry {} in the grad_outputs, "
        "the vector that the double backward trick differentiates by",
        f"Entry {{}} of the product is a constant. The jacobian of {_FUNCTION} is independent of "
        f"input {names}",
    )


def _results(
    outputs: Pack, shape: Pack, product: tuple[Tensor, ...], create_graph: bool
) -> tuple[Any, Any]:
    """The pair that callers get: the outputs, and the product in the structure of ``shape``."""
    return (
        outputs.arranged(finished(outputs.tensors, create_graph)),
        shape.arranged(finished(product, create_graph)),
    )
