"""Gradients that may be absent: the call of the engine, zeros or errors in place of None.

A gradient is None where the graph has no way from the output to the input. That is a zero, except
in strict mode, where it is taken for a mistake in the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ... import _C
from .. import grad

if TYPE_CHECKING:
    from ..._tensor import Tensor

STRICT = "This is not allowed in strict mode"
CONSTANT_SLOPE = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    f"respect to input {{}} is independent of the input. {STRICT}. The function must be "
    "differentiable twice, and not linear in any input."
)


class Complaint(NamedTuple):
    """The error of strict mode for one of several gradients, with ``{}`` for its index."""

    absent: str
    """There is no gradient."""
    constant: str
    """With ``create_graph``, there is one, but it depends on nothing."""


def complaint(absent: str, constant: str) -> Complaint:
    """The two texts of strict mode, completed to sentences."""
    return Complaint(f"{absent}. {STRICT}.", f"{constant}. {STRICT} when create_graph=True.")


def gradients(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor] | None,
    *,
    create_graph: bool,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """As :func:`pullback.autograd.grad`, but outputs may be None or without history.

    Args:
        outputs: what to differentiate; None and what requires no gradients count as constants.
        inputs: what to differentiate by.
        vectors: a gradient for each output; None for ones.
        create_graph: record the backward itself.
        retain_graph: keep the graph; defaults to ``create_graph``.
        is_grads_batched: the first dimension of each vector counts independent runs.

    Returns:
        A gradient for each input, or None for those that no output depends on.
    """
    starts: Sequence[Tensor | None] = [None] * len(outputs) if vectors is None else vectors
    live = [
        (output, start)
        for output, start in zip(outputs, starts, strict=True)
        if output is not None and output.requires_grad
    ]
    if not live:
        return (None,) * len(inputs)
    return grad(
        [output for output, _ in live],
        inputs,
        [start for _, start in live],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=is_grads_batched,
    )


def filled(
    found: Sequence[Tensor | None],
    like: Sequence[Tensor],
    said: Complaint,
    *,
    create_graph: bool,
    strict: bool,
) -> tuple[Tensor, ...]:
    """The gradients with zeros in place of None.

    Args:
        found: gradients, or None.
        like: for each one, a tensor with its shape and dtype.
        said: the errors of strict mode.
        create_graph: whether the gradients were to have a history.
        strict: raise an error instead of giving zeros.

    Raises:
        RuntimeError: if ``strict``, and a gradient is None, or without a history it should have.
    """
    zeros_like = _C._VariableFunctions.zeros_like
    for index, gradient in enumerate(found):
        if strict and gradient is None:
            raise RuntimeError(said.absent.format(index))
        if strict and create_graph and gradient is not None and not gradient.requires_grad:
            raise RuntimeError(said.constant.format(index))
    return tuple(
        zeros_like(tensor) if gradient is None else gradient
        for gradient, tensor in zip(found, like, strict=True)
    )


def check_history(found: Sequence[Tensor | None], constant: str) -> None:
    """For strict mode: gradients exist and depend on something.

    Args:
        found: gradients, or None.
        constant: what to say of one that depends on nothing, with ``{}`` for its index.

    Raises:
        RuntimeError: if they do not.
    """
    for index, gradient in enumerate(found):
        if gradient is None:
            raise RuntimeError(
                "The output of the user-provided function is independent of input "
                f"{index}. {STRICT}."
            )
        if not gradient.requires_grad:
            raise RuntimeError(constant.format(index))


def finished(results: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Results as they are returned: without history unless it was requested."""
    return results if create_graph else tuple(result.detach() for result in results)
