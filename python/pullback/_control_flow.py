"""Control flow as functions, and calls that give futures: they run at once, as Python does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "cond",
    "fork",
    "wait",
    "while_loop",
]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """Calls one of two functions: ``true_fn(*operands)`` if ``pred``, else ``false_fn(*operands)``.

    Gradients flow through the one that is called.

    Args:
        pred: a bool or a tensor with one element.
        true_fn: what is called if it is true.
        false_fn: what is called if it is not.
        operands: the arguments.

    Raises:
        RuntimeError: for a predicate or functions of another kind.
    """
    from ._tensor import Tensor

    is_one = isinstance(pred, Tensor) and pred.numel() == 1
    if not (isinstance(pred, (bool, int, float)) or is_one):
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of tensors, but got {operands}.")
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Calls ``values = body_fn(*values)`` while ``cond_fn(*values)``, and gives the last values.

    Args:
        cond_fn: whether to go on.
        body_fn: the next values, as many as it is given.
        carried_inputs: the first values.

    Raises:
        RuntimeError: for arguments of another kind, or another number of values.
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple, but got {type(carried_inputs)}.")
    values = tuple(carried_inputs)
    while cond_fn(*values):
        made = body_fn(*values)
        following = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(following) != len(values):
            raise RuntimeError(
                f"body_fn should return as many values as carried_inputs: {len(following)} for "
                f"{len(values)}"
            )
        values = following
    return values


def fork(*args: Any, **kwargs: Any) -> Any:
    """Runs a function, and gives a future: ``torch.jit.fork``."""
    from . import jit

    return jit.fork(*args, **kwargs)


def wait(future: Any) -> Any:
    """Waits for a future: ``torch.jit.wait``."""
    return future.wait()
