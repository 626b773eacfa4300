"""Jacobians and Hessians as matrices: a row for each element of the outputs.

Reverse mode walks the graph once per row, or once for all rows with a batch of gradients
(``vectorize``). Forward mode runs the function once, under ``vmap``, on a batch of tangents, a
column for each element of the inputs. A Hessian is the Jacobian of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _C
from .. import forward_ad
from ..grad_mode import enable_grad
from .argument import Pack, outputs_of, scalar_of, stand_ins
from .gradient import CONSTANT_SLOPE, check_history, complaint, filled, finished, gradients

if TYPE_CHECKING:
    from ..._tensor import Tensor

    Blocks = tuple[tuple[Tensor, ...], ...]
    """A matrix by outputs and, within these, inputs."""

_STRATEGIES = ("forward-mode", "reverse-mode")

_OF_SCALAR = complaint(
    "The output of the user-provided function is independent of input {}",
    "The jacobian of the user-provided function is independent of input {}",
)


def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian ``J[i][j] = d output_i / d input_j`` of ``func`` at ``inputs``.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: give results that can be differentiated; not in forward mode.
        strict: raise an error, instead of giving zeros, if an output does not depend on some input;
            not with ``vectorize`` and not in forward mode.
        vectorize: compute all rows with one batch of gradients.
        strategy: ``"reverse-mode"``, or ``"forward-mode"``, which needs ``vectorize`` and costs
            less where there are fewer inputs than outputs.

    Returns:
        For each output and each input a tensor of shape ``output.shape + input.shape``: a tuple
        over outputs if they are a tuple, of tuples over inputs if they are a tuple. The dtype is
        the one of the input, in forward mode of the output. Without elements, an empty tensor.

    Raises:
        AssertionError: for another strategy.
        TypeError: if inputs or outputs are neither a tensor nor a tuple of tensors.
        NotImplementedError: in forward mode with ``create_graph`` or without ``vectorize``.
        RuntimeError: for ``strict`` where it is not supported, and what it asks for.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jacobian(lambda x: x**2 + x.sum(), x)
        tensor([[3., 1.],
                [1., 5.]])
    """
    _check_strategy(strategy)
    if strategy == "forward-mode":
        return _forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        given = Pack.of(inputs, "inputs", "jacobian")
        points = stand_ins(given.tensors, create_graph)
        outputs = outputs_of(func, points, "jacobian", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorize=True` are "
                    "not supported together. Please leave one of them out."
                )
            blocks = _at_once(outputs.tensors, points, create_graph)
        else:
            blocks = tuple(
                _row_by_row(index, output, points, create_graph, strict)
                for index, output in enumerate(outputs.tensors)
            )
        return _arranged(blocks, outputs, given, create_graph)


def hessian(
    func: Callable[..., Tensor],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian ``H[i][j] = d^2 output / (d input_i d input_j)`` of ``func`` at ``inputs``.

    Args:
        func: takes tensors, returns one tensor with one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: give results that can be differentiated; not in forward mode.
        strict: raise an error, instead of giving zeros, if the gradient does not depend on some
            input; not with ``vectorize`` and not in forward mode.
        vectorize: compute all rows with one batch of gradients.
        outer_jacobian_strategy: the mode in which the gradient is differentiated,
            ``"reverse-mode"`` or ``"forward-mode"``, which needs ``vectorize``. The gradient itself
            is always computed in reverse mode.

    Returns:
        A tensor of shape ``input.shape + input.shape``; for a tuple of inputs, for each pair of
        them a tensor of shape ``input_i.shape + input_j.shape``, as a tuple of tuples.

    Raises:
        AssertionError: for another strategy.
        TypeError: if inputs or outputs are neither a tensor nor a tuple of tensors.
        NotImplementedError: in forward mode with ``create_graph`` or without ``vectorize``.
        RuntimeError: if ``func`` returns more than one element, for ``strict`` where it is not
            supported, and what it asks for.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], x)
        tensor([[4., 2.],
                [2., 0.]])
    """
    given = Pack.of(inputs, "inputs", "hessian")
    _check_strategy(outer_jacobian_strategy)

    def slope(*points: Tensor) -> tuple[Tensor, ...]:
        output = scalar_of(func, points, "hessian", strict)
        found = gradients((output,), points, None, create_graph=True)
        slopes = filled(found, points, _OF_SCALAR, create_graph=True, strict=False)
        if strict:
            check_history(slopes, CONSTANT_SLOPE)
        return slopes

    points = given.tensors
    with enable_grad():
        if outer_jacobian_strategy == "forward-mode":
            # Reverse mode makes such inputs itself; forward mode takes them as they are.
            points = stand_ins(points, create_graph=False)
        blocks = jacobian(
            slope, points, create_graph, strict, vectorize, strategy=outer_jacobian_strategy
        )
    return given.arranged(tuple(given.arranged(row) for row in blocks))


def _check_strategy(strategy: str) -> None:
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", but got '
            f"{strategy!r}: forward mode is for functions with fewer inputs than outputs, reverse "
            "mode for all others."
        )


def _arranged(blocks: Blocks, outputs: Pack, given: Pack, create_graph: bool) -> Any:
    """The blocks as they are given out, in the structures of outputs and inputs."""
    return outputs.arranged(tuple(given.arranged(finished(row, create_graph)) for row in blocks))


def _row_by_row(
    index: int, output: Tensor, points: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """The blocks of one output, by one walk of the graph per element."""
    said = complaint(
        f"Output {index} of the user-provided function is independent of input {{}}",
        "The jacobian of the user-provided function is independent of input {}",
    )
    flat = output.reshape(-1)
    rows = []
    for position in range(flat.numel()):
        found = gradients(
            (flat[position],), points, None, create_graph=create_graph, retain_graph=True
        )
        rows.append(filled(found, points, said, create_graph=create_graph, strict=strict))
    if not rows:
        return tuple(point.new_zeros(output.shape + point.shape) for point in points)
    stack = _C._VariableFunctions.stack
    return tuple(
        stack(column).view(output.shape + point.shape)
        for column, point in zip(zip(*rows, strict=True), points, strict=True)
    )


def _at_once(outputs: tuple[Tensor, ...], points: tuple[Tensor, ...], create_graph: bool) -> Blocks:
    """All blocks by one batch of gradients: the rows of a unit matrix, cut up by outputs."""
    sizes = tuple(output.numel() for output in outputs)
    total = sum(sizes)
    found: tuple[Tensor | None, ...] = (None,) * len(points)
    if total:
        basis = _construct_standard_basis_for(outputs, sizes)
        vectors = [
            chunk.view((total, *output.shape)) for chunk, output in zip(basis, outputs, strict=True)
        ]
        found = gradients(
            outputs, points, vectors, create_graph=create_graph, is_grads_batched=True
        )
    columns = []
    for rows, point in zip(found, points, strict=True):
        if rows is None:
            rows = point.new_zeros((total, *point.shape))
        parts = zip(rows.split(sizes), outputs, strict=True)
        columns.append([part.reshape(output.shape + point.shape) for part, output in parts])
    return tuple(zip(*columns, strict=True))


def _construct_standard_basis_for(
    tensors: tuple[Tensor, ...], numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """A unit matrix of as many rows as all tensors have elements, its columns cut up by tensors.

    Args:
        tensors: they give the dtypes of the parts.
        numels: how many elements each of them has.
    """
    total, start = sum(numels), 0
    parts = []
    for tensor, numel in zip(tensors, numels, strict=True):
        part = tensor.new_zeros((total, numel))
        if numel:
            part.diagonal(-start).fill_(1)
        parts.append(part)
        start += numel
    return tuple(parts)


def _forward(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian in forward mode: the function runs once, on a batch of tangents."""
    _check_forward(create_graph, strict)
    given = Pack.of(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
            "implemented for `vectorize=True`."
        )
    from ..._vmap_internals import _vmap

    sizes = tuple(tensor.numel() for tensor in given.tensors)
    called: list[Pack] = []

    def tangents(directions: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        with forward_ad.dual_level():
            duals = tuple(
                forward_ad.make_dual(tensor, direction.view_as(tensor))
                for tensor, direction in zip(given.tensors, directions, strict=True)
            )
            outputs = outputs_of(func, duals, "jacobian", strict=False)
            called.append(outputs)
            return tuple(_tangent(*forward_ad.unpack_dual(output)) for output in outputs.tensors)

    columns = _vmap(tangents)(_construct_standard_basis_for(given.tensors, sizes))
    blocks = tuple(_transposed(column, given.tensors, sizes) for column in columns)
    return _arranged(blocks, called[0], given, create_graph=False)


def _check_forward(create_graph: bool, strict: bool) -> None:
    for name, given, kind in (
        ("create_graph", create_graph, NotImplementedError),
        ("strict", strict, RuntimeError),
    ):
        if given:
            raise kind(
                f"torch.autograd.functional.jacobian: `{name}=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please leave one of '
                "them out."
            )


def _tangent(primal: Tensor, tangent: Tensor | None) -> Tensor:
    return _C._VariableFunctions.zeros_like(primal) if tangent is None else tangent


def _transposed(
    column: Tensor, inputs: tuple[Tensor, ...], sizes: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The blocks of one output from its tangents, whose first dimension counts the inputs."""
    shape = column.shape[1:]
    return tuple(
        part.movedim(0, -1).reshape(shape + tensor.shape)
        for part, tensor in zip(column.split(sizes), inputs, strict=True)
    )
