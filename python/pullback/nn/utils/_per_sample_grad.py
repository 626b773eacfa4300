"""A module's call after which the backward pass gives gradients for each sample."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ...func import functional_call
from ...utils import _pytree
from ..modules.module import Module
from ._expanded_weights import ExpandedWeight

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Any,
    *,
    batch_size: Any = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """The module as a function whose backward pass gives gradients for each sample of the batch.

    They are in ``grad_sample`` of the parameters, of shape ``(N, *param.shape)``; ``grad`` stays
    as it is. Layers may be linear, convolutions, embeddings, layer, RMS, group and instance
    normalization, and recurrent ones, each used as often as one likes; what has no parameters may
    be anything that keeps the samples apart.

    Args:
        module: the module.
        batch_size: how many samples there are. Unless given it is the size of the tensors among
            the arguments, which must agree.
        loss_reduction: ``"sum"``, or ``"mean"`` if the loss is divided by the number of samples:
            then the gradients are multiplied by it.
        batch_first: whether the samples are counted by the arguments' first dimension, or by the
            second.

    Raises:
        RuntimeError: for another ``module``, ``loss_reduction`` or ``batch_size``, and where a
            parameter has a ``grad_sample`` already. The call raises it for functions that take
            parameters and have no rule, and inputs of another number of samples.

    Example:
        >>> import pullback as torch
        >>> from pullback.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> model = torch.nn.Linear(4, 3)
        >>> call_for_per_sample_grads(model)(torch.ones(5, 4)).sum().backward()
        >>> model.weight.grad_sample.shape
        torch.Size([5, 3, 4])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, param in module.named_parameters():
        if getattr(param, "grad_sample", None) is not None:
            raise RuntimeError(
                "Gradients of samples are added up, which is incorrect for multiple calls: set "
                f"grad_sample of the parameter {name} to None before the next one"
            )

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        count = batch_size or _batch_size_of((args, kwargs), 0 if batch_first else 1)
        params: dict[str, Tensor] = {
            name: ExpandedWeight(param, count, loss_reduction) if param.requires_grad else param
            for name, param in module.named_parameters()
        }
        return functional_call(module, params, args, kwargs)

    return call


def _batch_size_of(given: Any, dim: int) -> int:
    found = None
    for one in _pytree.tree_leaves(given):
        if not isinstance(one, Tensor):
            continue
        if found not in (None, one.size(dim)):
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{found} and one with batch size {one.size(dim)}. Please specify it explicitly "
                "using the batch size kwarg in call_for_per_sample_grads"
            )
        found = one.size(dim)
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify "
            "it explicitly"
        )
    return found
