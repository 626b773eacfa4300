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
    """The largest element of each of `output_size` nearly equal parts of the last two dimensions, and its position in its plane."""
def adaptive_max_pool3d(input: Tensor, output_size: _int | _size) -> tuple[Tensor, Tensor]:
    """The largest element of each of `output_size` nearly equal parts of the last three dimensions, and its position in its volume."""
def avg_pool2d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean of each window; the last two dimensions are pooled."""
def avg_pool3d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The mean of each window; the last three dimensions are pooled."""
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """`-weight (target ln(self) + (1 - target) ln(1 - self))`, reduced; the logarithms are at least -100.
    Elements of `self` lie between 0 and 1."""
def col2im(input: Tensor, output_size: _int | _size, kernel_size: _int | _size, dilation: _int | _size, padding: _int | _size, stride: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """The sum of blocks (N, C kh kw, L) or (C kh kw, L) at their places in images (N, C, *output_size), which is no inverse of
    `im2col` where blocks overlap."""
def cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, label_smoothing: _float = 0.0) -> Tensor:
    """`nll_loss` of `log_softmax(self)`. Targets are class indices or, in the input's dtype and shape,
    probabilities; `label_smoothing` mixes the target with the uniform distribution (Szegedy et al. 2016)."""
def elu(input: Tensor, alpha: Number | _complex = 1, scale: Number | _complex = 1, input_scale: Number | _complex = 1, *, out: Tensor | None = None) -> Tensor:
    """`scale * self` above 0, `scale * alpha * (e^(input_scale * self) - 1)` below (Clevert et al. 2016)."""
def elu_(input: Tensor, alpha: Number | _complex = 1, scale: Number | _complex = 1, input_scale: Number | _complex = 1) -> Tensor:
    """`scale * self` above 0, `scale * alpha * (e^(input_scale * self) - 1)` below (Clevert et al. 2016)."""
def fractional_max_pool2d(input: Tensor, kernel_size: _int | _size, output_size: _int | _size, random_samples: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each window of size `kernel_size` at places that `random_samples` (N, C, 2) in [0, 1) decide, `output_size` of
    them, and its position in its plane. With `L` inputs and `n` outputs, window `i` begins at `int((i + u) a) - int(u a)` for
    `a = (L - kernel) / (n - 1)`, the last one at `L - kernel` (Graham 2014)."""
def fractional_max_pool3d(input: Tensor, kernel_size: _int | _size, output_size: _int | _size, random_samples: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each window of size `kernel_size` at places that `random_samples` (N, C, 3) in [0, 1) decide, `output_size` of
    them, and its position in its volume. With `L` inputs and `n` outputs, window `i` begins at `int((i + u) a) - int(u a)` for
    `a = (L - kernel) / (n - 1)`, the last one at `L - kernel` (Graham 2014)."""
def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """`self * Φ(self)` with the normal distribution function (Hendrycks and Gimpel 2016), or with `approximate`
    `"tanh"` the approximation by a hyperbolic tangent."""
def gelu_(input: Tensor, *, approximate: str = "none") -> Tensor:
    """`self * Φ(self)` with the normal distribution function (Hendrycks and Gimpel 2016), or with `approximate`
    `"tanh"` the approximation by a hyperbolic tangent."""
def glu(input: Tensor, dim: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """The gated linear unit: the first half along `dim` times the sigmoid of the second (Dauphin et al. 2017).
    The size of `dim` is even."""
def hardsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`min(max(self + 3, 0), 6) / 6`: a sigmoid of three straight pieces."""
def hardsigmoid_(input: Tensor) -> Tensor:
    """`min(max(self + 3, 0), 6) / 6`: a sigmoid of three straight pieces."""
def hardswish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * min(max(self + 3, 0), 6) / 6` (Howard et al. 2019)."""
def hardswish_(input: Tensor) -> Tensor:
    """`self * min(max(self + 3, 0), 6) / 6` (Howard et al. 2019)."""
def hardtanh(input: Tensor, min_val: Number | _complex = -1, max_val: Number | _complex = 1, *, out: Tensor | None = None) -> Tensor:
    """`min(max(self, min_val), max_val)`. The gradient at both ends is 0."""
def hardtanh_(input: Tensor, min_val: Number | _complex = -1, max_val: Number | _complex = 1) -> Tensor:
    """`min(max(self, min_val), max_val)`. The gradient at both ends is 0."""
def huber_loss(input: Tensor, target: Tensor, reduction: _int = 1, delta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """`z^2 / 2` where `z = |self - target|` is at most `delta`, else `delta (z - delta/2)`, reduced (Huber 1964)."""
def im2col(input: Tensor, kernel_size: _int | _size, dilation: _int | _size, padding: _int | _size, stride: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """The blocks that slide over images (N, C, H, W) or (C, H, W), as columns (N, C kh kw, L): column `l` holds block `l`, channel by
    channel. Blocks outside of the image hold zeros there."""
def l1_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor:
    """`|self - target|`, reduced."""
def leaky_relu(input: Tensor, negative_slope: Number | _complex = 0.01, *, out: Tensor | None = None) -> Tensor:
    """`self` above 0, `negative_slope * self` below. The gradient at 0 is `negative_slope`."""
def leaky_relu_(input: Tensor, negative_slope: Number | _complex = 0.01) -> Tensor:
    """`self` above 0, `negative_slope * self` below. The gradient at 0 is `negative_slope`."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias` over the last dimension: (*, in) and (out, in) give (*, out)."""
def log_sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ln(sigmoid(self))` without underflow."""
def max_pool2d_with_indices(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in its plane; the last two dimensions are pooled."""
def max_pool3d_with_indices(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in its volume; the last three dimensions are pooled."""
def max_unpool2d(input: Tensor, indices: Tensor, output_size: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """Zeros of `output_size`, with the elements of `self` at the places in their planes that `indices` names."""
def max_unpool3d(input: Tensor, indices: Tensor, output_size: _int | _size, stride: _int | _size, padding: _int | _size, *, out: Tensor | None = None) -> Tensor:
    """`max_unpool2d` of volumes. Neither `stride` nor `padding` changes anything; strides must be positive."""
def mish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * tanh(ln(1 + e^self))` (Misra 2019)."""
def mish_(input: Tensor) -> Tensor:
    """`self * tanh(ln(1 + e^self))` (Misra 2019)."""
def mse_loss(input: Tensor, target: Tensor, reduction: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """`(self - target)^2`, reduced."""
def multi_margin_loss(input: Tensor, target: Tensor, p: Number | _complex = 1, margin: Number | _complex = 1, weight: Tensor | None = None, reduction: _int = 1) -> Tensor:
    """`sum_(j != y) weight[y] max(0, margin - self[y] + self[j])^p / C` for class `y` of `C`, reduced; `p` is 1 or 2."""
def multi_margin_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, p: Number | _complex, margin: Number | _complex, weight: Tensor | None = None, reduction: _int = 1) -> Tensor:
    """The gradient of `multi_margin_loss` for `self` by that of the loss."""
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, *, out: Tensor | None = None) -> Tensor:
    """`-weight[t] * self[t]` for each target class `t`, reduced; input (C) or (N, C). Targets equal to
    `ignore_index` count nothing."""
def nll_loss2d(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100, *, out: Tensor | None = None) -> Tensor:
    """`nll_loss` of images: input (N, C, H, W), target (N, H, W)."""
def nll_loss_nd(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: _int = 1, ignore_index: _int = -100) -> Tensor:
    """`nll_loss` of any number of dimensions."""
def one_hot(input: Tensor, num_classes: _int = -1) -> Tensor:
    """A 1 at each class number, else zeros, in a new last dimension of size `num_classes` (-1: one more than the largest)."""
def pad(input: Tensor, pad: _size, mode: str = "constant", value: _float | None = None) -> Tensor:
    """Pads the last dimensions as `pad` lists them: mode "constant" (with `value`), "reflect", "replicate" or "circular"."""
def reflection_pad1d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last dimension continued reflected at the edges, (before, after) from the last on."""
def reflection_pad2d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last two dimensions continued reflected at the edges, (before, after) from the last on."""
def reflection_pad3d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last three dimensions continued reflected at the edges, (before, after) from the last on."""
def relu6(input: Tensor) -> Tensor:
    """`min(max(self, 0), 6)`. The gradient at both ends is 0."""
def relu6_(input: Tensor) -> Tensor:
    """`min(max(self, 0), 6)`. The gradient at both ends is 0."""
def replication_pad1d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last dimension continued with copies of the edges, (before, after) from the last on."""
def replication_pad2d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last two dimensions continued with copies of the edges, (before, after) from the last on."""
def replication_pad3d(input: Tensor, padding: _int | _size) -> Tensor:
    """The last three dimensions continued with copies of the edges, (before, after) from the last on."""
def silu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * sigmoid(self)`."""
def silu_(input: Tensor) -> Tensor:
    """`self * sigmoid(self)`."""
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: _int = 1, beta: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """`z^2 / (2 beta)` where `z = |self - target|` is below `beta`, else `z - beta/2`, reduced."""
def soft_margin_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor:
    """`ln(1 + e^(-target self))` for `target` of 1 and -1, reduced."""
def softplus(input: Tensor, beta: Number | _complex = 1, threshold: Number | _complex = 20, *, out: Tensor | None = None) -> Tensor:
    """`ln(1 + e^(beta * self)) / beta`; `self` itself where `beta * self > threshold`."""
def softshrink(input: Tensor, lambd: Number | _complex = 0.5) -> Tensor:
    """`self - lambd` above `lambd`, `self + lambd` below `-lambd`, else 0; NaN stays. The gradient is 0 where 0 is taken."""
@overload
def upsample_bicubic2d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_bicubic2d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_bilinear2d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_bilinear2d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_linear1d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_linear1d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_nearest1d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_nearest1d(input: Tensor, output_size: _int | _size, scales: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_nearest2d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_nearest2d(input: Tensor, output_size: _int | _size, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_nearest3d(input: Tensor, output_size: _size | None, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_nearest3d(input: Tensor, output_size: _int | _size, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def upsample_trilinear3d(input: Tensor, output_size: _size | None, align_corners: _bool, scale_factors: Sequence[_float] | None) -> Tensor:
    """Resizes images to `output_size`, or to their sizes multiplied with `scale_factors`."""
@overload
def upsample_trilinear3d(input: Tensor, output_size: _int | _size, align_corners: _bool, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
