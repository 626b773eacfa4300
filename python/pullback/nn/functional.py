"""The operations of ``pullback.nn`` as functions: what modules compute in ``forward``.

Natives that need no argument handling are exported as they are; the rest add what PyTorch's
functions add (in-place variants, defaults, checks, warnings). Losses live in ``_loss.py``,
attention in ``_attention.py``, bags of rows in ``_embedding_bag.py``, normalisation in
``_normalize.py``, pooling, padding and pixels in ``_spatial.py``. Invariant: no state; random
numbers come from the default generator in the order in which PyTorch draws them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .. import _C
from .._jit_internal import BroadcastingList1 as BroadcastingList1
from .._jit_internal import BroadcastingList2 as BroadcastingList2
from .._jit_internal import BroadcastingList3 as BroadcastingList3
from .._jit_internal import boolean_dispatch
from .._overridable import make_overridable as _make_overridable
from .._tensor import Tensor
from ..amp.autocast_mode import casts as _casts
from ..overrides import handle_torch_function as handle_torch_function
from ..overrides import has_torch_function as has_torch_function
from ..overrides import has_torch_function_unary as has_torch_function_unary
from ..overrides import has_torch_function_variadic as has_torch_function_variadic
from . import grad as grad
from ._attention import _canonical_mask as _canonical_mask
from ._attention import _in_projection as _in_projection
from ._attention import _in_projection_packed as _in_projection_packed
from ._attention import _none_or_dtype as _none_or_dtype
from ._attention import multi_head_attention_forward, scaled_dot_product_attention
from ._embedding_bag import embedding_bag
from ._grouped import grouped_mm
from ._label_loss import ctc_loss, multilabel_margin_loss
from ._linear_cross_entropy import linear_cross_entropy
from ._loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cosine_similarity,
    cross_entropy,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    pairwise_distance,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._normalize import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    normalize,
    rms_norm,
)
from ._pooling import (
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fold,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    local_response_norm,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
    unfold,
)
from ._rectify import rrelu, rrelu_
from ._resize import interpolate, upsample, upsample_bilinear, upsample_nearest
from ._scaled import (
    ScalingType,
    SwizzleType,
    scaled_addmm,
    scaled_addmm_,
    scaled_grouped_mm,
    scaled_mm,
)
from ._spatial import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    affine_grid,
    avg_pool1d,
    grid_sample,
    max_pool1d,
    max_pool2d,
    max_pool2d_with_indices,
    pad,
    pixel_shuffle,
    pixel_unshuffle,
)

if TYPE_CHECKING:
    # The same functions by their stubs, so that exported names have their signatures.
    from .._C import _nn
    from .._C import _VariableFunctions as _VF

    # (Functions that are missing still are asked for by the layers that need them.)
    def __getattr__(name: str) -> Any: ...
else:
    from ._native import VF as _VF
    from ._native import nn as _nn

__all__ = [
    "ScalingType",
    "SwizzleType",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "assert_int_or_pair",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "boolean_dispatch",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "grouped_mm",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_addmm",
    "scaled_addmm_",
    "scaled_dot_product_attention",
    "scaled_grouped_mm",
    "scaled_mm",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


# Exported unchanged.
linear = _nn.linear
conv1d = _VF.conv1d
conv2d = _VF.conv2d
conv3d = _VF.conv3d
conv_transpose1d = _VF.conv_transpose1d
conv_transpose2d = _VF.conv_transpose2d
conv_transpose3d = _VF.conv_transpose3d
gelu = _nn.gelu
logsigmoid = _nn.log_sigmoid
softplus = _nn.softplus
prelu = _VF.prelu
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
channel_shuffle = _VF.channel_shuffle
native_channel_shuffle = _VF.native_channel_shuffle
conv_tbc = _VF.conv_tbc
pdist = _VF.pdist
one_hot = _nn.one_hot
relu_ = _VF.relu_
elu_ = _nn.elu_
celu_ = _VF.celu_
selu_ = _VF.selu_
hardtanh_ = _nn.hardtanh_
leaky_relu_ = _nn.leaky_relu_
threshold_ = _VF.threshold_

_relu = _VF.relu
_dropout = _VF.dropout
_embedding = _VF.embedding


# ---- activations ----


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Refuses what is neither a number nor a pair.

    Raises:
        AssertionError: ``message``, with ``arg_name`` in it.
    """
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(0, x)``; the derivative at 0 is 0."""
    return relu_(input) if inplace else _relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(0, x), 6)``."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is greater than ``threshold``, else ``value``."""
    function = threshold_ if inplace else _VF.threshold
    return function(input, threshold, value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``x`` clamped to ``[min_val, max_val]``.

    Raises:
        ValueError: ``min_val`` is greater than ``max_val``.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    function = hardtanh_ if inplace else _nn.hardtanh
    return function(input, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha (exp(x) - 1)``."""
    return (elu_ if inplace else _nn.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``scale * elu(x, alpha)`` with the constants that keep mean 0 and variance 1."""
    return (selu_ if inplace else _VF.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
    return (celu_ if inplace else _VF.celu)(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``."""
    function = leaky_relu_ if inplace else _nn.leaky_relu
    return function(input, negative_slope)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return (_nn.silu_ if inplace else _nn.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return (_nn.mish_ if inplace else _nn.mish)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * relu6(x + 3) / 6``."""
    return (_nn.hardswish_ if inplace else _nn.hardswish)(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(x + 3) / 6``."""
    function = _nn.hardsigmoid_ if inplace else _nn.hardsigmoid
    return function(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """``a * sigmoid(b)`` for the two halves ``a``, ``b`` of the input along ``dim``.

    Raises:
        RuntimeError: the input is a scalar, or its size along ``dim`` is odd.
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` where ``|x| > lambd``, else 0; NaN stays."""
    return _VF.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x - lambd`` above ``lambd``, ``x + lambd`` below ``-lambd``, else 0; NaN stays.

    Raises:
        RuntimeError: ``lambd`` is negative.
    """
    return _nn.softshrink(input, lambd)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - input.tanh()


def tanh(input: Tensor) -> Tensor:
    """``tanh(x)``."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return input.sigmoid()


def _softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that was implied before ``dim`` had to be given."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


_get_softmax_dim = _softmax_dim


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``exp(x_i) / sum_j exp(x_j)`` along ``dim``; cast to ``dtype`` first when given."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax(-x)`` along ``dim``."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``log(softmax(x))`` along ``dim``, computed without overflow."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution: ``softmax((logits + g) / tau)``.

    Args:
        tau: the temperature.
        hard: whether the value is one-hot; gradients are those of the soft sample.
        eps: has no effect.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    # -log(e) of an exponential e is distributed as Gumbel(0, 1).
    gumbels = -_VF.empty_like(logits).exponential_().log()
    soft: Tensor = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one = _VF.zeros_like(logits).scatter_(dim, index, 1.0)
    return one - soft.detach() + soft


# ---- dropout ----


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability ``p`` and scales the others by ``1 / (1 - p)``.

    Outside of training the input is returned.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    if p < 0.0 or p > 1.0:
        _check_probability(p)
    return (_VF.dropout_ if inplace else _dropout)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps the mean and variance of SELU activations."""
    _check_probability(p)
    return (_VF.alpha_dropout_ if inplace else _VF.alpha_dropout)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """:func:`alpha_dropout` of whole channels: one draw for each ``(n, c)``."""
    _check_probability(p)
    function = _VF.feature_alpha_dropout_ if inplace else _VF.feature_alpha_dropout
    return function(input, p, training)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of ``(N, C, L)`` or ``(C, L)``.

    Raises:
        RuntimeError: the input has another number of dimensions.
    """
    _check_probability(p)
    dims = input.dim()
    if dims not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial "
            "dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    function = _VF.feature_dropout_ if inplace else _VF.feature_dropout
    if dims == 3:
        return function(input, p, training)
    result = function(input.unsqueeze(0), p, training)
    return input if inplace else result.squeeze(0)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of ``(N, C, H, W)``.

    A three-dimensional input is taken as ``(N, C, L)``, with a warning.
    """
    _check_probability(p)
    dims = input.dim()
    if dims not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {dims}-D input to dropout2d, which is deprecated and will "
            "result in an error in a future release. Please use dropout instead.",
            stacklevel=2,
        )
    elif dims == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D "
            "dropout behavior is desired - input is interpreted as shape (N, C, L). Please "
            "switch to using dropout1d instead.",
            stacklevel=2,
        )
    return (_VF.feature_dropout_ if inplace else _VF.feature_dropout)(input, p, training)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
    _check_probability(p)
    dims = input.dim()
    if dims not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {dims}-D input to dropout3d, which is deprecated and will "
            "result in an error in a future release. Please use dropout instead.",
            stacklevel=2,
        )
    function = _VF.feature_dropout_ if inplace else _VF.feature_dropout
    if dims == 5:
        return function(input, p, training)
    result = function(input.unsqueeze(0), p, training)
    return input if inplace else result.squeeze(0)


# ---- linear, embedding ----


@_casts("none")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``y_k = x1^T W_k x2 + b_k`` for ``(*, i)`` and ``(*, j)`` with ``weight`` ``(k, i, j)``.

    Raises:
        RuntimeError: the leading sizes or the features do not agree.
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input batch dimensions do not match: got "
            f"{list(input1.shape)} and {list(input2.shape)}"
        )
    for name, position, input in (("input1", 1, input1), ("input2", 2, input2)):
        if input.size(-1) != weight.size(position):
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {input.size(-1)} "
                f"but expected {weight.size(position)}"
            )
    rows1 = input1.reshape(-1, input1.size(-1))
    rows2 = input2.reshape(-1, input2.size(-1))
    out = _VF.einsum("ni,kij,nj->nk", [rows1, weight, rows2])
    out = out.reshape([*input1.shape[:-1], weight.size(0)])
    return out if bias is None else out + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Looks up rows of ``weight``: shape ``(*)`` of indices to ``(*, D)``.

    Args:
        padding_idx: the row of this index gets no gradient.
        max_norm: rows that are looked up and whose ``norm_type``-norm is greater are scaled
            down to it, in place.
        scale_grad_by_freq: whether gradients are divided by how often the row occurs.
        sparse: whether the gradient of ``weight`` is sparse.

    Raises:
        AssertionError: ``padding_idx`` is no row of ``weight``.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _renormalise_rows(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renormalise_rows(weight: Tensor, indices: Tensor, max_norm: float, p: float) -> None:
    from ..autograd import no_grad
    from ..autograd.forward_ad import _set_fwd_grad_enabled

    # (Changes of the table are not part of the differentiated function: tangents stay as they are.)
    with no_grad(), _set_fwd_grad_enabled(False):
        unique = sorted(set(indices.reshape(-1).tolist()))
        index = _C.tensor(unique, dtype=indices.dtype, device=weight.device)
        rows = weight.index_select(0, index)
        norm = rows.norm(p, 1, keepdim=True)
        scale = (max_norm / (norm + 1e-7)).masked_fill(norm <= max_norm, 1.0)
        weight.index_copy_(0, index.long(), rows * scale)


_make_overridable(globals(), __all__)
