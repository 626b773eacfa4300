"""Derivatives by forward mode: a tangent goes in, the tangents of the outputs come out.

Start at :func:`tangents`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import _C
from .. import forward_ad
from . import GradcheckError
from .analytical import basis
from .problem import Problem, as_tuple, is_continuous, requires_grad

if TYPE_CHECKING:
    from ..._tensor import Tensor


def tangents(problem: Problem, directions: Mapping[int, Tensor]) -> list[tuple[Any, Any]]:
    """The outputs of the function and their tangents (or None), for the tangents of some inputs.

    Args:
        problem: the function and its inputs. Inputs that require grad are detached.
        directions: by position; an input that requires grad and is missing here has no tangent.
    """
    with forward_ad.dual_level():
        given = [
            forward_ad.make_dual(value.detach(), directions[i])
            if i in directions
            else (value.detach() if requires_grad(value) else value)
            for i, value in enumerate(problem.inputs)
        ]
        result = as_tuple(problem.function(*given))
        return [_unpacked(value) if is_continuous(value) else (value, None) for value in result]


def _unpacked(value: Tensor) -> tuple[Tensor, Tensor | None]:
    primal, tangent = forward_ad.unpack_dual(value)
    return primal, tangent


def jacobians(problem: Problem, target: int, check_dtypes: bool = False) -> list[Tensor]:
    """The Jacobian of each output that requires grad, an element of the input at a time.

    Args:
        problem: the function and its inputs.
        target: the position of a real input.
        check_dtypes: whether a tangent that is complex where its output is not is an error.
    """
    value = problem.inputs[target]
    rows = [derivatives(problem, target, v, check_dtypes) for v in basis(value)]
    if not rows:
        return [o.detach().new_zeros((0, o.numel())) for o in problem.outputs]
    return [_C._VariableFunctions.stack(list(row)) for row in zip(*rows, strict=True)]


def derivatives(
    problem: Problem, target: int, direction: Tensor, check_dtypes: bool = False
) -> list[Tensor]:
    """The derivative of each output that requires grad along a direction in one input, flattened.

    Raises:
        GradcheckError: if a tangent is complex and its output is not, or the other way round.
    """
    filled = _filled(problem, {target: direction})
    found = tangents(problem, filled)
    return [_flat(*found[p], check_dtypes=check_dtypes) for p in problem.positions]


def _filled(problem: Problem, directions: Mapping[int, Tensor]) -> dict[int, Tensor]:
    """A tangent for each input that requires grad: as given, or zeros.

    Each is a tensor of its own with its input's strides, as tangents of leaves are: a view would
    make a custom function's ``jvp`` look as if it returned a view of something else.
    """
    found = {}
    for i, value in zip(problem.target_positions, problem.targets, strict=True):
        found[i] = _C._VariableFunctions.zeros_like(value.detach())
        if i in directions:
            found[i].copy_(directions[i].reshape(value.shape))
    return found


def _flat(output: Tensor, tangent: Tensor | None, *, check_dtypes: bool) -> Tensor:
    if tangent is None:
        return output.detach().new_zeros(output.numel())
    if check_dtypes and tangent.is_complex() != output.is_complex():
        raise GradcheckError(
            "Forward AD gradient has dtype mismatch: the output is "
            f"{output.dtype}, its tangent {tangent.dtype}."
        )
    return tangent.detach().reshape(-1)


def check_undefined(problem: Problem, directions: Sequence[Tensor]) -> None:
    """Checks that an input without a tangent counts as one whose tangent is zero.

    Args:
        problem: the function and its inputs.
        directions: a tangent for each input that requires grad, for the turns of the others.

    Raises:
        GradcheckError: if the tangents of an output differ.
    """
    positions = problem.target_positions
    every = _filled(problem, dict(zip(positions, directions, strict=True)))
    for position in positions:
        rest = {i: tangent for i, tangent in every.items() if i != position}
        with_zeros = tangents(problem, _filled(problem, rest))
        without = tangents(problem, rest)
        pairs = zip(with_zeros, without, strict=True)
        for index, ((_, expected), (_, got)) in enumerate(pairs):
            if expected is not None and got is not None and not expected.allclose(got):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {index} when input "
                    f"{position} has an undefined tangent value.\nGot: {got}\n"
                    f"but expected, as for a tangent of zeros: {expected}"
                )


def tangent_function(problem: Problem, target: int) -> Callable[[Tensor], tuple[Tensor, ...]]:
    """The function from a tangent of one input to the tangents of all outputs."""

    def push(tangent: Tensor) -> tuple[Tensor, ...]:
        return tuple(_defined(tangents(problem, {target: tangent})))

    return push


def _defined(found: Sequence[tuple[Any, Any]]) -> Iterator[Tensor]:
    for output, tangent in found:
        yield output.detach().new_zeros(output.shape) if tangent is None else tangent
