"""Parts of custom functions within ``vmap``, under the names of PyTorch's module.

The library itself needs neither: see ``func/_custom.py``. They are for programs that build on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["CtxWithSavedTensors", "reductify_leaf"]

_OWN = ("_pt_inner_ctx", "_pt_new_saved_tensors")


class CtxWithSavedTensors:
    """The context of a custom function, with other saved tensors; all else is the context's.

    Args:
        ctx: the context.
        new_saved_tensors: what ``saved_tensors`` gives.

    Raises:
        RuntimeError: if the context has an attribute by a name that this one needs for itself.
    """

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        if not isinstance(ctx, CtxWithSavedTensors):
            for name in _OWN:
                if hasattr(ctx, name):
                    raise RuntimeError(
                        f"CtxWithSavedTensors: name collision with the context's attribute {name!r}"
                    )
        object.__setattr__(self, _OWN[0], ctx)
        object.__setattr__(self, _OWN[1], new_saved_tensors)

    @property
    def saved_tensors(self) -> Any:
        """The tensors given in place of the context's."""
        return self._pt_new_saved_tensors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._pt_inner_ctx, name, value)


def reductify_leaf(
    grad_input: Tensor | None,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Tensor | None:
    """A gradient with the dimension of examples where its input has it.

    Where the input has none, all examples share it: the gradient is their sum. Where the gradient
    has none, it is the same for each example.

    Args:
        grad_input: the gradient, if there is one.
        grad_input_bdim: which of its dimensions counts examples.
        input_bdim: which of the input's does.
        batch_size: how many examples there are.
        target_shape_without_bdim_to_reduce_to: the shape of one example of the input, if the
            gradient may be of a shape that this one broadcasts to.
    """
    if grad_input is None or (grad_input_bdim is None and input_bdim is None):
        return grad_input
    if grad_input_bdim is not None and input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        assert input_bdim is not None
        repeated = grad_input.unsqueeze(input_bdim)
        sizes = [*grad_input.shape[:input_bdim], batch_size, *grad_input.shape[input_bdim:]]
        grad_input, grad_input_bdim = repeated.expand(sizes), input_bdim
    assert input_bdim is not None
    if target_shape_without_bdim_to_reduce_to is not None:
        target = (batch_size, *target_shape_without_bdim_to_reduce_to)
        grad_input = _summed_to(grad_input.movedim(grad_input_bdim, 0), target)
        grad_input_bdim = 0
    return grad_input.movedim(grad_input_bdim, input_bdim)


def _summed_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The sum to a shape whose first dimension counts examples, and stays."""
    gap = x.ndim - len(shape)
    if gap > 0:
        x = x.sum(tuple(range(1, 1 + gap)))
    wide = tuple(at for at in range(1, len(shape)) if shape[at] == 1 and x.shape[at] != 1)
    return x.sum(wide, keepdim=True) if wide else x
