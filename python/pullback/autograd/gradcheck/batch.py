"""Derivatives under ``vmap`` beside a loop over the same vectors.

Random vectors come from the default generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ... import _C
from .. import grad
from . import GradcheckError, forward
from .problem import Problem, is_continuous

if TYPE_CHECKING:
    from ..._tensor import Tensor

_Vectorized = Callable[["Tensor"], "tuple[Tensor, ...]"]
_BACKWARD = "gradcheck or gradgradcheck failed while testing batched gradient computation"
_FORWARD = "gradcheck failed while testing batched gradient computation with forward-mode AD"


def check_backward(problem: Problem, position: int) -> None:
    """Compares two gradients of an output, computed one by one, with both at once.

    Raises:
        GradcheckError: if they differ, or ``vmap`` cannot do what backward does.
    """
    output, targets = problem.outputs[position], problem.targets

    def pull(vector: Tensor) -> tuple[Tensor, ...]:
        found = grad(output, targets, vector, retain_graph=True, allow_unused=True)
        return tuple(
            t.detach().new_zeros(t.shape) if g is None else g
            for g, t in zip(found, targets, strict=True)
        )

    pairs = _both_ways(pull, output, f"{_BACKWARD} (check_batched_grad=True)")
    for j, (batched, looped) in enumerate(pairs):
        _check_same(batched, looped, position, j, _BACKWARD)


def check_forward(problem: Problem) -> None:
    """Compares two tangents, pushed one by one, with both at once, for each input.

    Raises:
        GradcheckError: if they differ, or ``vmap`` cannot do what forward mode does.
    """
    for j, position in enumerate(problem.target_positions):
        value = problem.inputs[position]
        if not is_continuous(value):
            continue
        push = forward.tangent_function(problem, position)
        pairs = _both_ways(push, value, f"{_FORWARD} (check_batched_forward_grad=True)")
        for i, (batched, looped) in enumerate(pairs):
            _check_same(batched, looped, i, j, _FORWARD)


def _both_ways(
    function: _Vectorized, like: Tensor, context: str
) -> Sequence[tuple[Tensor, Tensor]]:
    from ..._vmap_internals import _vmap

    stack = _C._VariableFunctions.stack
    vectors = [_C._VariableFunctions.randn_like(like).detach() for _ in range(2)]
    looped = [stack(list(several)) for several in zip(*map(function, vectors), strict=True)]
    try:
        batched = _vmap(function)(stack(vectors))
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n\n{context}"
        ) from error
    return list(zip(batched, looped, strict=True))


def _check_same(batched: Tensor, looped: Tensor, i: int, j: int, context: str) -> None:
    if not batched.allclose(looped):
        raise GradcheckError(
            f"For output {i} and input {j}:\n\n{context}.\n\nGot:\n{batched}\n\nExpected:\n{looped}"
        )
