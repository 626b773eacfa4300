"""The functions that take expanded weights, and their gradients for each sample.

The output, and the gradient by the input, are those of the function itself with its parameters:
`PerSample` differentiates it within its forward pass. What a rule adds is the gradient by a
parameter for each sample, from the gradient by the output: of the sums that the ordinary gradient
is, it leaves out the one over the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .... import _C
from ...._tensor import Tensor
from ....autograd import Function
from ....autograd import grad as gradient
from ....autograd.function import once_differentiable
from ....autograd.grad_mode import enable_grad
from ... import functional as F
from . import _recurrent
from .expanded_weights_impl import HANDLED_FUNCTIONS, ExpandedWeight, implements_per_sample_grads
from .expanded_weights_utils import (
    forward_helper,
    is_batch_first,
    set_grad_sample_if_exists,
    standard_kwargs,
    sum_over_all_but_batch_and_last_n,
    unpack_expanded_weight_or_tensor,
)

__all__ = ["RULES", "PerSample"]

_VF = _C._VariableFunctions
Call = dict[str, Any]


class Rule(NamedTuple):
    """A function that takes expanded weights.

    Args:
        defaults: its parameters in order, with their defaults.
        check: refuses inputs of which the samples cannot be told apart.
        by: for each parameter that may be an expanded weight, its gradient for each sample, from
            the call and the gradient by the output; both have the samples in the first dimension.
    """

    defaults: dict[str, Any]
    check: Callable[[Call], None]
    by: dict[str, Callable[[Call, Tensor], Tensor]]


RULES: dict[Callable[..., Any], Rule] = {}


class PerSample(Function):
    """A call with expanded weights."""

    @staticmethod
    def forward(ctx: Any, kwarg_names: tuple[str, ...], func: Any, *given: Any) -> Any:
        """Computes the function with the parameters."""
        args, kwargs = standard_kwargs(kwarg_names, given)
        rule = RULES[func]
        call = {**rule.defaults, **dict(zip(rule.defaults, args, strict=False)), **kwargs}
        source = call["input"]
        for name in rule.by:
            unpack_expanded_weight_or_tensor(call[name])
        inner: Any = source
        if isinstance(source, Tensor) and not isinstance(source, ExpandedWeight):
            rule.check(call)
            inner = source.detach().requires_grad_(ctx.needs_input_grad[_place(source, given) + 2])
        rest = {name: value for name, value in call.items() if name != "input"}
        with enable_grad():
            output = forward_helper(_without_gradients(func, rule), (inner,), rest)
        ctx.call, ctx.rule = rest, rule
        ctx.place, ctx.count = _place(source, given), len(given)
        ctx.graph = (inner, output) if inner.requires_grad else None
        ctx.save_for_backward(source)
        return output.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Adds the gradients of each sample; returns that by the input."""
        (source,) = ctx.saved_tensors
        call, first = {**ctx.call, "input": source}, grad
        if not is_batch_first(call.values()):
            call["input"], first = source.transpose(0, 1), grad.transpose(0, 1)
        for name, by in ctx.rule.by.items():
            set_grad_sample_if_exists(call[name], partial(_apply, by, call, first))
        found: list[Any] = [None] * ctx.count
        if ctx.graph is not None:
            inner, output = ctx.graph
            found[ctx.place] = gradient(output, inner, grad, retain_graph=True)[0]
        return None, None, *found


def _apply(by: Callable[[Call, Tensor], Tensor], call: Call, grad: Tensor, _: Tensor) -> Tensor:
    return by(call, grad)


def _place(source: Any, given: tuple[Any, ...]) -> int:
    return next(at for at, one in enumerate(given) if one is source)


def _without_gradients(func: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
    """The function with parameters that are constants: only the input has a gradient."""

    def call(source: Tensor, **rest: Any) -> Any:
        for name in rule.by:
            if rest[name] is not None:
                rest[name] = rest[name].detach()
        return func(source, **rest)

    call.__name__ = func.__name__
    return call


def _add(names: list[Callable[..., Any]], *rule: Any) -> None:
    for one in dict.fromkeys(names):
        RULES[one] = Rule(*rule)
        implements_per_sample_grads(one)(PerSample)


def _rows(call: Call, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Input and gradient of ``linear`` as a matrix for each sample."""
    source = call["input"]
    count = source.size(0)
    return source.reshape(count, -1, source.size(-1)), grad.reshape(count, -1, grad.size(-1))


def _linear_weight(call: Call, grad: Tensor) -> Tensor:
    rows, grads = _rows(call, grad)
    return _VF.bmm(grads.transpose(1, 2), rows)


def _check_linear(call: Call) -> None:
    if call["input"].dim() < 2:
        raise RuntimeError(
            "Input does not have a batch dimension. Expanded Weights expected input of at least "
            f"rank 2, got of rank {call['input'].dim()}"
        )
    if call["weight"].dim() != 2:
        raise RuntimeError(
            f"Expanded Weights expected weight of rank 2, got of rank {call['weight'].dim()}"
        )


_add(
    [F.linear],
    {"input": None, "weight": None, "bias": None},
    _check_linear,
    {"weight": _linear_weight, "bias": lambda call, grad: _rows(call, grad)[1].sum(1)},
)


def _over_places(call: Call, grad: Tensor) -> Tensor:
    """The gradient by what is added to each channel of ``(N, C, *)``."""
    return grad.flatten(2).sum(2) if grad.dim() > 2 else grad


def _check_convolution(call: Call) -> None:
    weight, source = call["weight"], call["input"]
    if source.dim() != weight.dim():
        raise RuntimeError(
            "Expanded Weights only support convolution with batched input, got an unbatched input "
            f"of dim {source.dim()}, expected input of dim {weight.dim()}"
        )


def _of_each(size: Any, dims: int) -> list[int]:
    return [size] * dims if isinstance(size, int) else list(size) * (dims // len(size))


def _convolution_weight(call: Call, grad: Tensor) -> Tensor:
    """The samples become groups of one convolution, of which each has its own weight."""
    source, weight, groups = call["input"], call["weight"], call["groups"]
    count, dims = source.size(0), source.dim() - 2
    dilation, padding = _of_each(call["dilation"], dims), call["padding"]
    if padding == "same":
        # The remainder is at the end, as in the forward pass.
        total = [step * (k - 1) for step, k in zip(dilation, weight.shape[2:], strict=True)]
        source = F.pad(source, [x for n in reversed(total) for x in (n // 2, n - n // 2)])
    padding = [0] * dims if isinstance(padding, str) else _of_each(padding, dims)
    by_weight: Tensor = _VF._convolution_backward_weight(
        grad.reshape(1, -1, *grad.shape[2:]),
        source.reshape(1, -1, *source.shape[2:]),
        [count * weight.size(0), *weight.shape[1:]],
        _of_each(call["stride"], dims),
        padding,
        dilation,
        False,
        [0] * dims,
        count * groups,
    )
    return by_weight.reshape(count, *weight.shape)


_add(
    [F.conv1d, F.conv2d, F.conv3d],
    {
        "input": None,
        "weight": None,
        "bias": None,
        "stride": 1,
        "padding": 0,
        "dilation": 1,
        "groups": 1,
    },
    _check_convolution,
    {"weight": _convolution_weight, "bias": _over_places},
)


def _check_embedding(call: Call) -> None:
    if call["input"].dim() == 1:
        raise RuntimeError(
            "Expanded Weights needs an input with a batch size, got a 1D tensor of shape "
            f"{tuple(call['input'].shape)}"
        )


def _embedding_weight(call: Call, grad: Tensor) -> Tensor:
    """Every sample has rows of its own in one long table, to which the gradients are added."""
    rows, width = call["weight"].shape
    index, count = call["input"].flatten(1).long(), call["input"].size(0)
    place = (index + _VF.arange(count).unsqueeze(1) * rows).reshape(-1)
    grads = grad.reshape(-1, width)
    if call["scale_grad_by_freq"]:
        ones = grads.new_ones([place.numel()])
        often = grads.new_zeros([count * rows]).index_add(0, place, ones)
        grads = grads / often[place].unsqueeze(1)
    padding = call["padding_idx"]
    if padding is not None:
        kept = index.reshape(-1, 1) != padding % rows
        grads = grads * kept.to(grads.dtype)
    table = grads.new_zeros([count * rows, width]).index_add(0, place, grads)
    return table.reshape(count, rows, width)


_add(
    [F.embedding],
    {
        "input": None,
        "weight": None,
        "padding_idx": None,
        "max_norm": None,
        "norm_type": 2.0,
        "scale_grad_by_freq": False,
        "sparse": False,
    },
    _check_embedding,
    {"weight": _embedding_weight},
)


def _check_layer_norm(call: Call) -> None:
    if call["input"].dim() <= len(call["normalized_shape"]):
        raise RuntimeError(
            "Expanded Weights: Layer norm should not normalize over batch dimension for per sample "
            f"gradient, got an input of shape {tuple(call['input'].shape)} and normalized_shape "
            f"{list(call['normalized_shape'])}"
        )


def _over_normalized(call: Call, grad: Tensor) -> Tensor:
    return sum_over_all_but_batch_and_last_n(grad, len(call["normalized_shape"]))


def _layer_norm_weight(call: Call, grad: Tensor) -> Tensor:
    normal = F.layer_norm(call["input"], call["normalized_shape"], None, None, call["eps"])
    return _over_normalized(call, grad * normal)


def _rms_norm_weight(call: Call, grad: Tensor) -> Tensor:
    normal = F.rms_norm(call["input"], call["normalized_shape"], None, call["eps"])
    return _over_normalized(call, grad * normal)


_NORM = {"input": None, "normalized_shape": None, "weight": None}
_LAYER_NORM = {**_NORM, "bias": None, "eps": 1e-5}
_BY_AFFINE = {"weight": _layer_norm_weight, "bias": _over_normalized}
_add([F.layer_norm], _LAYER_NORM, _check_layer_norm, _BY_AFFINE)
# (The function that modules call has one parameter more.)
_add([_VF.layer_norm], {**_LAYER_NORM, "cudnn_enable": True}, _check_layer_norm, _BY_AFFINE)
_add(
    [F.rms_norm, _VF.rms_norm],
    {**_NORM, "eps": None},
    _check_layer_norm,
    {"weight": _rms_norm_weight},
)


def _check_channels(call: Call) -> None:
    if call["input"].dim() < 2:
        raise RuntimeError(
            "Expanded Weights needs an input with samples and channels, got one of shape "
            f"{tuple(call['input'].shape)}"
        )


def _group_norm_weight(call: Call, grad: Tensor) -> Tensor:
    normal = F.group_norm(call["input"], call["num_groups"], None, None, call["eps"])
    return _over_places(call, grad * normal)


def _instance_norm_weight(call: Call, grad: Tensor) -> Tensor:
    # (Where the statistics are the input's, the running ones must not be updated once more.)
    own = call["use_input_stats"]
    mean, var = (None, None) if own else (call["running_mean"], call["running_var"])
    options = {"use_input_stats": own, "eps": call["eps"]}
    normal = F.instance_norm(call["input"], mean, var, **options)
    return _over_places(call, grad * normal)


_add(
    [F.group_norm],
    {"input": None, "num_groups": None, "weight": None, "bias": None, "eps": 1e-5},
    _check_channels,
    {"weight": _group_norm_weight, "bias": _over_places},
)
_add(
    [F.instance_norm],
    {
        "input": None,
        "running_mean": None,
        "running_var": None,
        "weight": None,
        "bias": None,
        "use_input_stats": True,
        "momentum": 0.1,
        "eps": 1e-5,
    },
    _check_channels,
    {"weight": _instance_norm_weight, "bias": _over_places},
)

HANDLED_FUNCTIONS.update(dict.fromkeys(_recurrent.LAYERS, _recurrent.Recurrent))
