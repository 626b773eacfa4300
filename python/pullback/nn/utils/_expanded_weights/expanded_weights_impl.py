"""The tensor that stands for a parameter while gradients of each sample are wanted.

An :class:`ExpandedWeight` computes what its parameter computes. In the backward pass it adds to
``orig_weight.grad_sample``, of shape ``(N, *orig_weight.shape)``, and leaves ``orig_weight.grad``
alone. Only functions with a rule take one: of any other it is not known which dimension of the
arguments counts the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...._tensor import Tensor

__all__ = ["HANDLED_FUNCTIONS", "ExpandedWeight", "implements_per_sample_grads"]

HANDLED_FUNCTIONS: dict[Callable[..., Any], Any] = {}

# Questions about the parameter that say nothing of its elements.
_ATTRIBUTES = frozenset(
    {
        *("shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "grad_fn"),
        *("grad", "data", "is_cpu", "is_cuda", "is_meta", "is_sparse", "is_nested", "itemsize"),
        *("is_quantized", "is_mkldnn", "is_xpu", "is_mps", "nbytes", "_version"),
    }
)
_METHODS = frozenset(
    {
        *("size", "dim", "numel", "stride", "is_floating_point", "is_complex", "is_contiguous"),
        *("element_size", "data_ptr", "get_device", "__len__", "__hash__", "is_tensor"),
    }
)


class ExpandedWeight(Tensor):
    """A parameter with a gradient for each sample.

    Args:
        orig_weight: the parameter; its ``grad_sample`` is added to.
        batch_size: how many samples there are.
        loss_reduction: ``"sum"``, or ``"mean"`` for losses that are divided by the number of
            samples: the gradients are multiplied by it again.

    Raises:
        RuntimeError: for what is no tensor, or does not require a gradient.
    """

    orig_weight: Tensor
    batch_size: int
    loss_reduction: str
    batch_first: bool
    allow_smaller_batches: bool

    handled_functions = HANDLED_FUNCTIONS

    def __new__(cls, orig_weight: Any, batch_size: int, loss_reduction: str) -> ExpandedWeight:
        """See the class."""
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(
                f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}"
            )
        if not orig_weight.requires_grad:
            raise RuntimeError(
                "Can only build ExpandedWeights objects of tensors that requires_grad"
            )
        made: ExpandedWeight = Tensor._make_subclass(cls, orig_weight, True)
        return made

    def __init__(self, orig_weight: Tensor, batch_size: int, loss_reduction: str) -> None:
        self.orig_weight = orig_weight
        self.batch_size = batch_size
        self.loss_reduction = loss_reduction
        self.batch_first = True
        self.allow_smaller_batches = False

    def set_batch_first(self, is_batch_first: bool = True) -> None:
        """Says whether the first or the second dimension of the input counts the samples."""
        self.batch_first = is_batch_first

    def set_allow_smaller_batches(self, is_allow_smaller_batches: bool) -> None:
        """Sets whether an input may have the first samples alone."""
        self.allow_smaller_batches = is_allow_smaller_batches

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"ExpandedWeight({self.orig_weight!r}, batch_size={self.batch_size})"

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes the functions that have a rule, and refuses others by name.

        Raises:
            RuntimeError: for a function without a rule.
        """
        kwargs = kwargs or {}
        handled = HANDLED_FUNCTIONS.get(func)
        if handled is not None:
            return handled.apply(tuple(kwargs), func, *args, *kwargs.values())
        if _is_question(func):
            return func(*(getattr(one, "orig_weight", one) for one in args), **kwargs)
        raise RuntimeError(
            "Expanded Weights encountered but cannot handle function "
            f"{getattr(func, '__name__', func)}"
        )


def _is_question(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return getattr(getattr(func, "__self__", None), "__name__", "") in _ATTRIBUTES
    return name in _METHODS


def implements_per_sample_grads(torch_function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A decorator that registers a rule for a function.

    Args:
        torch_function: the function, as ``__torch_function__`` gets it. What is registered has an
            ``apply`` of the names of its keyword arguments, the function itself, and all
            arguments, those with names last.
    """

    def register(rule: Any) -> Any:
        HANDLED_FUNCTIONS[torch_function] = rule
        return rule

    return register
