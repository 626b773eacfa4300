"""What rules for gradients of each sample have in common: calls, checks, the results' places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...._tensor import Tensor
from .expanded_weights_impl import ExpandedWeight

__all__ = [
    "forward_helper",
    "is_batch_first",
    "maybe_scale_by_batch_size",
    "set_grad_sample_if_exists",
    "standard_kwargs",
    "sum_over_all_but_batch_and_last_n",
    "unpack_expanded_weight_or_tensor",
]


def is_batch_first(expanded_args_and_kwargs: Iterable[Any]) -> bool:
    """Whether the first dimension of the input counts the samples, as the weights say.

    Raises:
        RuntimeError: if they disagree.
    """
    said = {one.batch_first for one in expanded_args_and_kwargs if isinstance(one, ExpandedWeight)}
    if len(said) > 1:
        raise RuntimeError("Got conflicting batch_first arguments in the same layer")
    return said != {False}


def standard_kwargs(
    kwarg_names: Sequence[str], expanded_args: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Separates the arguments without a name from those with one, which come last.

    Args:
        kwarg_names: the names of the last arguments.
        expanded_args: all arguments.
    """
    count = len(expanded_args) - len(kwarg_names)
    return expanded_args[:count], dict(zip(kwarg_names, expanded_args[count:], strict=True))


def forward_helper(
    func: Callable[..., Any], expanded_args: tuple[Any, ...], expanded_kwargs: dict[str, Any]
) -> Any:
    """Calls a function with the parameters in the place of their expanded weights.

    Args:
        func: the function. Its first argument is the input, with a dimension of samples.
        expanded_args: the arguments without a name.
        expanded_kwargs: those with one.

    Raises:
        RuntimeError: for inputs without samples, and weights made for another number of them.
    """
    given = *expanded_args, *expanded_kwargs.values()
    _check_input(func, expanded_args[0] if expanded_args else None)
    weights = [one for one in given if isinstance(one, ExpandedWeight)]
    for one in weights:
        _check_batch(expanded_args[0], one)
    if len({one.loss_reduction for one in weights}) > 1:
        raise RuntimeError(
            "Expected ExpandedWeights to all have the same loss_reduction argument but got "
            f"{sorted({one.loss_reduction for one in weights})}"
        )
    args = (one.orig_weight if isinstance(one, ExpandedWeight) else one for one in expanded_args)
    return func(
        *args,
        **{
            name: one.orig_weight if isinstance(one, ExpandedWeight) else one
            for name, one in expanded_kwargs.items()
        },
    )


def _check_input(func: Callable[..., Any], source: Any) -> None:
    name, kind = func.__name__, type(source).__name__
    if isinstance(source, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. Input must be "
            f"a Tensor, got {kind} in function {name}"
        )
    if not isinstance(source, Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch dimension, got "
            f"{kind} in function {name}"
        )
    if source.dim() == 0:
        raise RuntimeError(
            "Expanded Weights requires a batch dimension but got an input of size 0 in function "
            f"{name}"
        )
    if source.size(0) == 0:
        raise RuntimeError(
            "0 is not a valid batch size for Expanded Weights but got an input of shape "
            f"{tuple(source.shape)} in function {name}"
        )


def _check_batch(source: Tensor, weight: ExpandedWeight) -> None:
    found = source.size(0 if weight.batch_first else 1)
    fits = found <= weight.batch_size if weight.allow_smaller_batches else False
    if not fits and found != weight.batch_size:
        raise RuntimeError(
            "Expected ExpandedWeights to have batch size matching input but got input batch size "
            f"of {found} with ExpandedWeight of batch size {weight.batch_size}"
        )


def maybe_scale_by_batch_size(grad_sample: Tensor, expanded_weight: ExpandedWeight) -> Tensor:
    """Undoes the division of a mean over the samples, where the weight says that there was one."""
    if expanded_weight.loss_reduction == "mean":
        return grad_sample * expanded_weight.batch_size
    return grad_sample


def set_grad_sample_if_exists(
    maybe_expanded_weight: Any, per_sample_grad_fn: Callable[[Tensor], Tensor]
) -> None:
    """Adds the gradients of each sample to the parameter of an expanded weight; else does nothing.

    Args:
        maybe_expanded_weight: an expanded weight, another tensor, or something else.
        per_sample_grad_fn: gives the gradients, from the parameter. Of the samples that they lack
            (see ``allow_smaller_batches``) the gradient is zero.

    Raises:
        RuntimeError: for a tensor that requires an ordinary gradient.
    """
    param = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    found = maybe_scale_by_batch_size(per_sample_grad_fn(param), maybe_expanded_weight)
    missing = maybe_expanded_weight.batch_size - found.size(0)
    if missing > 0 and maybe_expanded_weight.allow_smaller_batches:
        whole = found.new_zeros([maybe_expanded_weight.batch_size, *found.shape[1:]])
        whole[: found.size(0)] = found
        found = whole
    before = getattr(param, "grad_sample", None)
    param.grad_sample = found if before is None else before + found


def unpack_expanded_weight_or_tensor(
    maybe_expanded_weight: Any, func: Callable[[Tensor], Any] = lambda x: x
) -> Any:
    """The parameter of an expanded weight, or another tensor, after ``func``; else None.

    Raises:
        RuntimeError: for a tensor that requires an ordinary gradient.
    """
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and "
            "normal Parameters: make expanded weights of all, or let the others require no gradient"
        )
    return func(maybe_expanded_weight)


def sum_over_all_but_batch_and_last_n(tensor: Tensor, n_dims: int) -> Tensor:
    """The sum over the dimensions between the first one and the last ``n_dims``."""
    between = list(range(1, tensor.dim() - n_dims))
    return tensor.sum(dim=between) if between else tensor
