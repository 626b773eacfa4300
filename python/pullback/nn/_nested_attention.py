"""Self-attention over nested tensors: each component attends to itself.

PyTorch computes it on one path only, in evaluation and without gradients; what is not on it is
refused here, too. Weights come padded with zeros to the longest component.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from .._tensor import Tensor

if TYPE_CHECKING:
    from .modules.attention import MultiheadAttention

__all__ = ["attended"]


def attended(
    module: MultiheadAttention,
    inputs: tuple[Tensor, Tensor, Tensor],
    masks: tuple[Tensor | None, Tensor | None],
    need_weights: bool,
    average_attn_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """What ``module`` gives for nested tensors.

    Args:
        module: the layer.
        inputs: query, key and value, which are to be one tensor.
        masks: of padding and of pairs, neither of which a nested tensor may have.
        need_weights: whether the attention weights are returned.
        average_attn_weights: whether these are averaged over the heads.

    Raises:
        AssertionError: for what PyTorch's path does not take.
    """
    obstacle = _obstacle(module, inputs, masks)
    if obstacle is not None:
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path. The fast"
            f" path was not hit because {obstacle}"
        )
    from ..nested import as_nested_tensor

    found = [
        module.forward(x, x, x, None, need_weights, None, average_attn_weights)
        for x in inputs[0].unbind()
    ]
    output = as_nested_tensor([one for one, _ in found])
    return output, _padded([weights for _, weights in found if weights is not None])


def _obstacle(
    module: MultiheadAttention,
    inputs: tuple[Tensor, Tensor, Tensor],
    masks: tuple[Tensor | None, Tensor | None],
) -> str | None:
    """The reason for which the inputs are refused; None if they are not."""
    query, key, value = inputs
    if query is not key or key is not value:
        return (
            "non-self attention was used (query, key, and value are not the same Tensor): use one"
            " nested tensor for all three"
        )
    if module.in_proj_weight is None:
        return "in_proj_weight was None"
    if query.dtype != module.in_proj_weight.dtype:
        return (
            f"dtypes of query ({query.dtype}) and self.in_proj_weight"
            f" ({module.in_proj_weight.dtype}) don't match"
        )
    if any(mask is not None for mask in masks):
        return "masks (key_padding_mask, attn_mask) are not supported with NestedTensor input"
    flags = [
        (module.training, "training is enabled"),
        (not module.batch_first, "batch_first was not True"),
        (module.bias_k is not None, "self.bias_k was not None"),
        (module.bias_v is not None, "self.bias_v was not None"),
        (module.add_zero_attn, "add_zero_attn was enabled"),
        (_C.is_autocast_enabled(), "autocast is enabled"),
    ]
    for is_set, obstacle in flags:
        if is_set:
            return obstacle
    taking_part = (query, *module.parameters())
    if _C.is_grad_enabled() and any(x.requires_grad for x in taking_part):
        return (
            "grad is enabled and at least one of query or the input/output projection weights or"
            " biases requires_grad"
        )
    return None


def _padded(weights: list[Tensor]) -> Tensor | None:
    """Square matrices of several sizes in one tensor."""
    if not weights:
        return None
    longest = max(one.size(-1) for one in weights)
    shape = (len(weights), *weights[0].shape[:-2], longest, longest)
    together = weights[0].new_zeros(shape)
    for place, one in zip(together.unbind(), weights, strict=True):
        place[..., : one.size(-2), : one.size(-1)] = one
    return together
