# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]: ...

@overload
def _upsample_bicubic2d_aa(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor: ...
@overload
def _upsample_bicubic2d_aa(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def _upsample_bilinear2d_aa(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor: ...
@overload
def _upsample_bilinear2d_aa(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor: ...
@overload
def _upsample_lanczos2d_aa(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor: ...
@overload
def _upsample_lanczos2d_aa(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def _upsample_nearest_exact1d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor: ...
@overload
def _upsample_nearest_exact1d(input: Tensor, output_size: _int | _size, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def _upsample_nearest_exact2d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor: ...
@overload
def _upsample_nearest_exact2d(input: Tensor, output_size: _int | _size, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def _upsample_nearest_exact3d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor: ...
@overload
def _upsample_nearest_exact3d(input: Tensor, output_size: _int | _size, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
def adaptive_avg_pool2d(input: Tensor, output_size: _int | _size) -> Tensor:
    """The mean of each of `output_size` nearly equal parts of the last two dimensions."""
def adaptive_avg_pool3d(input: Tensor, output_size: _int | _size) -> Tensor:
    """The mean of each of `output_size` nearly equal parts of the last three dimensions."""
def adaptive_max_pool2d(input: Tensor, output_size: _int | _size) -> tuple[Tensor, Tensor]:
    """The largest element of each of `output_size` nearly equal parts of the last two dimensions, and its index in the
    flattened plane."""
def adaptive_max_pool3d(input: Tensor, output_size: _int | _size) -> tuple[Tensor, Tensor]:
    """The largest element of each of `output_size` nearly equal parts of the last three dimensions, and its index in the
    flattened volume."""
def avg_pool2d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean of each window of the last two dimensions. Padding counts as zeros with `count_include_pad`, else it is
    left out of the mean; `divisor_override` replaces the number of elements."""
def avg_pool3d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The mean of each window of the last three dimensions. Padding counts as zeros with `count_include_pad`, else it is
    left out of the mean; `divisor_override` replaces the number of elements."""
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """The binary cross entropy `-weight (target ln(self) + (1 - target) ln(1 - self))`, reduced: 0 (none), 1 (mean) or 2
    (sum). Logarithms are at least -100, so that the loss is finite.

    # Errors
    `RuntimeError` for elements of `self` that are not between 0 and 1."""
def col2im(input: Tensor, output_size: _int | _size, kernel_size: _int | _size, dilation: _int | _size, padding: _int | _size, stride: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """The sum of sliding blocks, columns (N, C kh kw, L) or (C kh kw, L), at their positions in images (N, C,
    *output_size). It is the gradient of `im2col`, and its inverse only where blocks do not overlap. This is
    `torch.nn.functional.fold`."""
def cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, label_smoothing: _float = 0.0) -> Tensor:
    """The cross entropy loss: `nll_loss` of `log_softmax(self)` for scores (C), (N, C) or (N, C, d1, ...), reduced: 0
    (none), 1 (mean) or 2 (sum). Targets are class indices or, in the input's dtype and shape, probabilities;
    `label_smoothing` mixes the target with the uniform distribution (Szegedy et al. 2016)."""
def elu(input: Tensor, alpha: Number | _complex = 1, scale: Number | _complex = 1, input_scale: Number | _complex = 1, *, out: Tensor | None = None) -> Tensor:
    """The exponential linear unit: `scale * self` above 0, `scale * alpha * (e^(input_scale * self) - 1)` else (Clevert et
    al. 2016)."""
def elu_(input: Tensor, alpha: Number | _complex = 1, scale: Number | _complex = 1, input_scale: Number | _complex = 1) -> Tensor:
    """The exponential linear unit: `scale * self` above 0, `scale * alpha * (e^(input_scale * self) - 1)` else (Clevert et
    al. 2016)."""
def fractional_max_pool2d(input: Tensor, kernel_size: _int | _size, output_size: _int | _size, random_samples: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each of `output_size` windows of size `kernel_size` at random positions, and its index in the
    flattened plane (Graham 2014).

    The positions come from `random_samples` (N, C, 2) in [0, 1): with size `L` and `n` windows, window `i` begins at
    `int((i + u) a) - int(u a)` for `a = (L - kernel) / (n - 1)`, the last one at `L - kernel`."""
def fractional_max_pool3d(input: Tensor, kernel_size: _int | _size, output_size: _int | _size, random_samples: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each of `output_size` windows of size `kernel_size` at random positions, and its index in the
    flattened volume (Graham 2014).

    The positions come from `random_samples` (N, C, 3) in [0, 1): with size `L` and `n` windows, window `i` begins at
    `int((i + u) a) - int(u a)` for `a = (L - kernel) / (n - 1)`, the last one at `L - kernel`."""
def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """The Gaussian error linear unit `self * Φ(self)`, where `Φ` is the standard normal distribution function (Hendrycks
    and Gimpel 2016); with `approximate` "tanh" `self / 2 * (1 + tanh(sqrt(2 / π) * (self + 0.044715 * self^3)))`."""
def gelu_(input: Tensor, *, approximate: str = "none") -> Tensor:
    """The Gaussian error linear unit `self * Φ(self)`, where `Φ` is the standard normal distribution function (Hendrycks
    and Gimpel 2016); with `approximate` "tanh" `self / 2 * (1 + tanh(sqrt(2 / π) * (self + 0.044715 * self^3)))`."""
def glu(input: Tensor, dim: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """The gated linear unit: the first half along `dim` times the sigmoid of the second (Dauphin et al. 2017).
    The size of `dim` is even."""
def hardsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The piecewise linear sigmoid `min(max(self + 3, 0), 6) / 6`. The gradient at -3 and 3 is 0."""
def hardsigmoid_(input: Tensor) -> Tensor:
    """The piecewise linear sigmoid `min(max(self + 3, 0), 6) / 6`. The gradient at -3 and 3 is 0."""
def hardswish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * min(max(self + 3, 0), 6) / 6` (Howard et al. 2019)."""
def hardswish_(input: Tensor) -> Tensor:
    """`self * min(max(self + 3, 0), 6) / 6` (Howard et al. 2019)."""
def hardtanh(input: Tensor, min_val: Number | _complex = -1, max_val: Number | _complex = 1, *, out: Tensor | None = None) -> Tensor:
    """`min(max(self, min_val), max_val)`, element by element. The gradient at both ends is 0."""
def hardtanh_(input: Tensor, min_val: Number | _complex = -1, max_val: Number | _complex = 1) -> Tensor:
    """`min(max(self, min_val), max_val)`, element by element. The gradient at both ends is 0."""
def huber_loss(input: Tensor, target: Tensor, reduction: _int = 1, delta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """The Huber loss: `z^2 / 2` where `z = |self - target|` is at most `delta`, else `delta (z - delta/2)`, reduced: 0
    (none), 1 (mean) or 2 (sum) (Huber 1964)."""
def im2col(input: Tensor, kernel_size: _int | _size, dilation: _int | _size, padding: _int | _size, stride: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """The sliding blocks of images (N, C, H, W) or (C, H, W) as columns (N, C kh kw, L) or (C kh kw, L): column `l` holds
    block `l`, channel by channel. Elements of blocks outside of the image are 0. This is `torch.nn.functional.unfold`."""
def l1_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor:
    """The absolute error `|self - target|`, element by element, reduced: 0 (none), 1 (mean) or 2 (sum). The gradient at 0
    is 0."""
def leaky_relu(input: Tensor, negative_slope: Number | _complex = 0.01, *, out: Tensor | None = None) -> Tensor:
    """The leaky rectified linear unit: `self` where it is above 0, else `negative_slope * self`. The gradient at 0 is
    `negative_slope`."""
def leaky_relu_(input: Tensor, negative_slope: Number | _complex = 0.01) -> Tensor:
    """The leaky rectified linear unit: `self` where it is above 0, else `negative_slope * self`. The gradient at 0 is
    `negative_slope`."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias` over the last dimension: (*, in) and (out, in) give (*, out)."""
def log_sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sigmoid, `ln(1 / (1 + e^-self))`, without underflow."""
def max_pool2d_with_indices(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """The largest element of each window of the last two dimensions, and its index in the flattened plane. NaN counts as
    largest; of equal elements the first counts."""
def max_pool3d_with_indices(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """The largest element of each window of the last three dimensions, and its index in the flattened volume. NaN counts
    as largest; of equal elements the first counts."""
def max_unpool2d(input: Tensor, indices: Tensor, output_size: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """Zeros of `output_size`, with the elements of `self` at the positions in their flattened planes that `indices` names.

    # Errors
    `RuntimeError` for an index outside of the plane."""
def max_unpool3d(input: Tensor, indices: Tensor, output_size: _int | _size, stride: _int | _size, padding: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """Zeros of `output_size`, with the elements of `self` at the positions in their flattened volumes that `indices`
    names. `stride` and `padding` have no effect; strides must be positive.

    # Errors
    `RuntimeError` for an index outside of the volume."""
def mish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * tanh(ln(1 + e^self))` (Misra 2019)."""
def mish_(input: Tensor) -> Tensor:
    """`self * tanh(ln(1 + e^self))` (Misra 2019)."""
def mse_loss(input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """The mean squared error `(self - target)^2`, element by element, reduced: 0 (none), 1 (mean) or 2 (sum)."""
def multi_margin_loss(input: Tensor, target: Tensor, p: Number | _complex = 1, margin: Number | _complex = 1, weight: Tensor | None = None, reduction: _int = 1) -> Tensor:
    """The multi-class hinge loss `sum_(j != y) weight[y] max(0, margin - self[y] + self[j])^p / C` for target class `y` of
    `C` classes, reduced: 0 (none), 1 (mean) or 2 (sum). `p` is 1 or 2; for `p` = 1 the gradient at a kink is 0."""
def multi_margin_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, p: Number | _complex, margin: Number | _complex, weight: Tensor | None = None, reduction: _int = 1) -> Tensor:
    """The gradient of `multi_margin_loss` with respect to `self`."""
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, *, out: Tensor | None = None) -> Tensor:
    """The negative log likelihood loss `-weight[t] * self[t]` for each target class `t` of log-probabilities (C) or (N,
    C), reduced: 0 (none), 1 (mean, weighted by the classes' weights) or 2 (sum). Targets equal to `ignore_index` do not
    count. The mean over no targets is NaN."""
def nll_loss2d(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, *, out: Tensor | None = None) -> Tensor:
    """The negative log likelihood loss of images: log-probabilities (N, C, H, W) and target classes (N, H, W), reduced: 0
    (none), 1 (mean, weighted by the classes' weights) or 2 (sum)."""
def nll_loss_nd(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100) -> Tensor:
    """The negative log likelihood loss for log-probabilities (C), (N, C) or (N, C, d1, ...) and target classes of the same
    shape without C, reduced: 0 (none), 1 (mean, weighted by the classes' weights) or 2 (sum)."""
def one_hot(input: Tensor, num_classes: _int = -1) -> Tensor:
    """A 1 at each class number, else zeros, in a new last dimension of size `num_classes` (-1: one more than the largest)."""
def pad(input: Tensor, pad: _size, mode: str = "constant", value: _float | None = None) -> Tensor:
    """Pads the last dimensions: `pad` lists how many elements (before, after) for the last dimension, then for the one
    before it, and so on; `mode` is "constant" (with `value`), "reflect", "replicate" or "circular"."""
def reflection_pad1d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last dimension of (C, L) or (N, C, L) padded by reflections at its edges: `padding` is (before, after), each
    smaller than the size. Negative numbers crop."""
def reflection_pad2d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last two dimensions of (C, H, W) or (N, C, H, W) padded by reflections at their edges: `padding` is (before,
    after) for the last dimension, then for the one before it, each smaller than the size. Negative numbers crop."""
def reflection_pad3d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last three dimensions of (C, D, H, W) or (N, C, D, H, W) padded by reflections at their edges: `padding` is
    (before, after) for the last dimension, then for the ones before it, each smaller than the size. Negative numbers
    crop."""
def relu6(input: Tensor) -> Tensor:
    """`min(max(self, 0), 6)`, element by element. The gradient at both ends, 0 and 6, is 0."""
def relu6_(input: Tensor) -> Tensor:
    """`min(max(self, 0), 6)`, element by element. The gradient at both ends, 0 and 6, is 0."""
def replication_pad1d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last dimension of (C, L) or (N, C, L) padded by copies of its edges: `padding` is (before, after). Negative
    numbers crop."""
def replication_pad2d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last two dimensions of (C, H, W) or (N, C, H, W) padded by copies of their edges: `padding` is (before, after)
    for the last dimension, then for the one before it. Negative numbers crop."""
def replication_pad3d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last three dimensions of (C, D, H, W) or (N, C, D, H, W) padded by copies of their edges: `padding` is (before,
    after) for the last dimension, then for the ones before it. Negative numbers crop."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, *, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
    """Scaled dot product attention `softmax(scale Q K^T + mask) V` of `query` (N, ..., H, L, E), `key` (N, ..., H, S, E) and
    `value` (N, ..., H, S, Ev): (N, ..., H, L, Ev).

    `attn_mask` broadcasts to (N, ..., H, L, S): truth values, true where attention is paid, or numbers that are added to the
    scores. With `is_causal` query `i` attends to the keys `j <= i` alone. Weights are dropped with the probability
    `dropout_p`, whether anything is trained or not. `scale` is `1 / sqrt(E)` if it is not given. With `enable_gqa` the
    query may have several heads for each one of key and value. A row that may attend to nothing gives zeros, and has
    zeros as gradients.

    Without dropout, and for a mask without gradient, the matrix of the scores is never in memory, neither here nor in
    backward (`AttentionAlgorithm`); Dao, "FlashAttention-2", 2023."""
def silu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sigmoid linear unit, also called swish: `self * sigmoid(self)`."""
def silu_(input: Tensor) -> Tensor:
    """The sigmoid linear unit, also called swish: `self * sigmoid(self)`."""
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: _int = 1, beta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """The smooth L1 loss: `z^2 / (2 beta)` where `z = |self - target|` is below `beta`, else `z - beta/2`, reduced: 0
    (none), 1 (mean) or 2 (sum)."""
def soft_margin_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor:
    """The logistic loss `ln(1 + e^(-target * self))` for a `target` of 1 and -1, reduced: 0 (none), 1 (mean) or 2 (sum)."""
def softplus(input: Tensor, beta: Number | _complex = 1, threshold: Number | _complex = 20, *, out: Tensor | None = None) -> Tensor:
    """A smooth form of `relu`: `ln(1 + e^(beta * self)) / beta`, and `self` itself where `beta * self > threshold`."""
def softshrink(input: Tensor, lambd: Number | _complex = 0.5) -> Tensor:
    """`self - lambd` above `lambd`, `self + lambd` below `-lambd`, else 0; NaN stays. The gradient is 0 where 0 is taken."""
@overload
def upsample_bicubic2d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_bicubic2d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_bilinear2d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_bilinear2d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_linear1d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_linear1d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_nearest1d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_nearest1d(input: Tensor, output_size: _int | _size, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_nearest2d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_nearest2d(input: Tensor, output_size: _int | _size, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_nearest3d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_nearest3d(input: Tensor, output_size: _int | _size, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_trilinear3d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
    given."""
@overload
def upsample_trilinear3d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
