"""The whole check, in order.

First the numbers: backward, then forward mode, each against differences. Then ``vmap``, then what
backward makes of zeros and of gradients that are missing. The first failure ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import _C
from . import backward, batch, forward
from .comparison import compare, direction
from .problem import (
    Options,
    Problem,
    as_tuple,
    check_inputs,
    check_outputs,
    is_tensor_like,
    requires_grad,
)
from .sparse import dense_problem, is_sparse

if TYPE_CHECKING:
    from ..._tensor import Tensor

# The names of a part and of its tensors in messages.
_PARTS = {"imaginary": "imag", "real": "real"}


def run(function: Callable[..., Any], inputs: Any, options: Options) -> None:
    """Runs every check that the options name.

    Raises:
        GradcheckError: for a derivative that is wrong.
    """
    given = as_tuple(inputs)
    check_inputs(given)
    problem = Problem(function, given, as_tuple(function(*given)))
    check_outputs(problem.outputs)
    if options.check_backward_ad and any(map(is_sparse, problem.targets)):
        # (Strided inputs in the place of sparse ones would hide how their gradients are laid out.)
        again = Problem(function, given, as_tuple(function(*given)))
        backward.check_zeros(again, options.masked)
    dense = dense_problem(problem, options.masked)
    if options.check_backward_ad:
        for part in _output_parts(dense):
            compare(part, options, is_forward=False)
    if options.check_forward_ad:
        _check_forward(dense, options)
    if options.check_batched_forward_grad:
        batch.check_forward(dense)
    if options.check_backward_ad:
        if options.check_batched_grad:
            for position in range(len(dense.outputs)):
                batch.check_backward(dense, position)
        _check_backward(problem, options)


def _check_forward(problem: Problem, options: Options) -> None:
    parts = _input_parts(problem)
    for part in parts:
        compare(part, options, is_forward=True)
    if options.check_undefined_grad:
        for part in parts:
            generator = _C.Generator()
            directions = [direction(target, generator)[0] for target in part.targets]
            forward.check_undefined(part, directions)


def _check_backward(problem: Problem, options: Options) -> None:
    """The remaining checks of backward after the comparison of numbers."""
    backward.check_zeros(problem, options.masked)
    if options.check_undefined_grad:
        backward.check_undefined(problem)


def _output_parts(problem: Problem) -> Sequence[Problem]:
    """The problem itself; or, if an output is complex, its imaginary and its real part.

    Real outputs belong to both parts, as they are.
    """
    if not any(value.is_complex() for value in problem.result):
        return [problem]
    split = frozenset(i for i, output in enumerate(problem.outputs) if output.is_complex())
    found = []
    for part, name in _PARTS.items():
        function = partial(_part_of_outputs, problem.function, name)
        result = function(*problem.inputs)
        found.append(Problem(function, problem.inputs, result, part, split))
    return found


def _part_of_outputs(function: Callable[..., Any], name: str, *inputs: Any) -> tuple[Tensor, ...]:
    result = as_tuple(function(*inputs))
    return tuple(getattr(value, name) if value.is_complex() else value for value in result)


def _input_parts(problem: Problem) -> Sequence[Problem]:
    """The problem itself; or, if an input is complex, functions of its imaginary and real part.

    The part that is not looked at stays what it is in the input.
    """
    whole = {i: v for i, v in enumerate(problem.inputs) if is_tensor_like(v) and v.is_complex()}
    if not whole:
        return [problem]
    targets = [i for i, value in enumerate(problem.inputs) if requires_grad(value)]
    split = frozenset(j for j, i in enumerate(targets) if i in whole)
    found = []
    for part, name in _PARTS.items():
        function = partial(_of_parts, problem.function, name, whole)
        inputs = tuple(
            getattr(value, name) if i in whole else value for i, value in enumerate(problem.inputs)
        )
        found.append(Problem(function, inputs, as_tuple(function(*inputs)), part, split))
    return found


def _of_parts(function: Callable[..., Any], name: str, whole: dict[int, Any], *parts: Any) -> Any:
    inputs = list(parts)
    for i, value in whole.items():
        if name == "real":
            inputs[i] = parts[i] + value.imag * 1j
        else:
            inputs[i] = value.real + parts[i] * 1j
    return function(*inputs)
