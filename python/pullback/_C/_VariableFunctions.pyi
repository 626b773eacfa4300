# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

@overload
def __and__(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __and__(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __and__(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __lshift__(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __lshift__(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __lshift__(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def __matmul__(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __or__(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __or__(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __or__(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __rshift__(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __rshift__(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __rshift__(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __xor__(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __xor__(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def __xor__(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def _adaptive_avg_pool2d(input: Tensor, output_size: _int | _size) -> Tensor: ...
def _adaptive_avg_pool2d_backward(grad_output: Tensor, input_size: _size) -> Tensor: ...
def _adaptive_avg_pool3d(input: Tensor, output_size: _int | _size) -> Tensor: ...
def _adaptive_avg_pool3d_backward(grad_output: Tensor, input_size: _size) -> Tensor: ...
def _addmm_activation(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, use_gelu: _bool = False, out: Tensor | None = None) -> Tensor: ...
def _avg_pool2d_backward(grad_output: Tensor, input_size: _size, kernel_size: _int | _size, stride: _int | _size, padding: _int | _size, ceil_mode: _bool, count_include_pad: _bool, divisor_override: _int | None) -> Tensor: ...
def _avg_pool3d_backward(grad_output: Tensor, input_size: _size, kernel_size: _int | _size, stride: _int | _size, padding: _int | _size, ceil_mode: _bool, count_include_pad: _bool, divisor_override: _int | None) -> Tensor: ...
def _batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, training: _bool, eps: _float, output_mask: _int) -> tuple[Tensor, Tensor, Tensor]: ...
def _batch_norm_with_update(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: _float, eps: _float, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _cdist_backward(grad_output: Tensor, x1: Tensor, x2: Tensor, p: _float, cdist: Tensor) -> Tensor: ...
def _cdist_forward(x1: Tensor, x2: Tensor, p: _float, compute_mode: _int | None) -> Tensor: ...
def _chunk_cat(tensors: tuple[Tensor, ...] | list[Tensor], dim: _int, num_chunks: _int, *, out: Tensor | None = None) -> Tensor: ...
def _conj(input: Tensor | Number | _complex) -> Tensor: ...
def _conj_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def _conj_physical(input: Tensor) -> Tensor: ...
def _conj_physical_(input: Tensor) -> Tensor: ...
def _convolution_backward_input(grad_output: Tensor, weight: Tensor, input_size: _size, stride: _size, padding: _size, dilation: _size, transposed: _bool, output_padding: _size, groups: _int) -> Tensor: ...
def _convolution_backward_weight(grad_output: Tensor, input: Tensor, weight_size: _size, stride: _size, padding: _size, dilation: _size, transposed: _bool, output_padding: _size, groups: _int) -> Tensor: ...
def _ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: _size, target_lengths: _size, blank: _int = 0, zero_infinity: _bool = False) -> tuple[Tensor, Tensor]: ...
def _ctc_loss_backward(grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: _size, target_lengths: _size, neg_log_likelihood: Tensor, log_alpha: Tensor, blank: _int, zero_infinity: _bool = False) -> Tensor: ...
def _cummaxmin_backward(grad_output: Tensor, indices: Tensor, dim: _int) -> Tensor: ...
def _cummaxmin_pick(input: Tensor, indices: Tensor, dim: _int) -> Tensor: ...
def _cumsum_backward(grad_output: Tensor, dim: _int) -> Tensor: ...
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor: ...
def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _bool = False, mode: _int = 0, sparse: _bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _bool = False, padding_idx: _int = -1) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _embedding_bag_dense_backward(grad: Tensor, indices: Tensor, offset2bag: Tensor, num_weights: _int, scale_grad_by_freq: _bool, mode: _int, per_sample_weights: Tensor | None, padding_idx: _int = -1) -> Tensor: ...
def _embedding_bag_forward_only(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _bool = False, mode: _int = 0, sparse: _bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _bool = False, padding_idx: _int = -1) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _fft_c2c(input: Tensor, dim: _size, normalization: _int, forward: _bool, *, out: Tensor | None = None) -> Tensor: ...
def _fft_c2r(input: Tensor, dim: _size, normalization: _int, last_dim_size: _int, *, out: Tensor | None = None) -> Tensor: ...
def _fft_r2c(input: Tensor, dim: _size, normalization: _int, onesided: _bool, *, out: Tensor | None = None) -> Tensor: ...
def _foreach_abs(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_abs_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_acos(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_acos_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_add(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_add(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_add(self: tuple[Tensor, ...] | list[Tensor], other: Tensor, *, alpha: Number | _complex = 1) -> tuple[Tensor, ...]: ...
@overload
def _foreach_add(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor], *, alpha: Number | _complex = 1) -> tuple[Tensor, ...]: ...
@overload
def _foreach_add_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_add_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_add_(self: tuple[Tensor, ...] | list[Tensor], other: Tensor, *, alpha: Number | _complex = 1) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_add_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor], *, alpha: Number | _complex = 1) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_addcdiv(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_addcdiv(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Tensor) -> tuple[Tensor, ...]: ...
@overload
def _foreach_addcdiv(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], value: Number | _complex = 1) -> tuple[Tensor, ...]: ...
@overload
def _foreach_addcdiv_(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_addcdiv_(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Tensor) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_addcdiv_(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], value: Number | _complex = 1) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_addcmul(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_addcmul(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Tensor) -> tuple[Tensor, ...]: ...
@overload
def _foreach_addcmul(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], value: Number | _complex = 1) -> tuple[Tensor, ...]: ...
@overload
def _foreach_addcmul_(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_addcmul_(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], scalars: Tensor) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_addcmul_(self: tuple[Tensor, ...] | list[Tensor], tensor1: tuple[Tensor, ...] | list[Tensor], tensor2: tuple[Tensor, ...] | list[Tensor], value: Number | _complex = 1) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_asin(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_asin_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_atan(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_atan_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_ceil(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_ceil_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_clamp_max(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_clamp_max(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_clamp_max(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_clamp_max_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_clamp_max_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_clamp_max_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_clamp_min(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_clamp_min(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_clamp_min(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_clamp_min_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_clamp_min_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_clamp_min_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_clone(self: tuple[Tensor, ...] | list[Tensor], *, memory_format: memory_format | None = None) -> tuple[Tensor, ...]: ...
def _foreach_copy_(self: tuple[Tensor, ...] | list[Tensor], src: tuple[Tensor, ...] | list[Tensor], non_blocking: _bool = False) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_cos(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_cos_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_cosh(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_cosh_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_div(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_div(self: tuple[Tensor, ...] | list[Tensor], other: Tensor) -> tuple[Tensor, ...]: ...
@overload
def _foreach_div(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_div(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_div_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_div_(self: tuple[Tensor, ...] | list[Tensor], other: Tensor) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_div_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_div_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_erf(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_erf_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_erfc(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_erfc_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_exp(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_exp_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_expm1(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_expm1_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_floor(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_floor_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_frac(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_frac_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_lerp(self: tuple[Tensor, ...] | list[Tensor], tensors1: tuple[Tensor, ...] | list[Tensor], weight: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_lerp(self: tuple[Tensor, ...] | list[Tensor], tensors1: tuple[Tensor, ...] | list[Tensor], weight: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_lerp(self: tuple[Tensor, ...] | list[Tensor], tensors1: tuple[Tensor, ...] | list[Tensor], weights: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_lerp_(self: tuple[Tensor, ...] | list[Tensor], tensors1: tuple[Tensor, ...] | list[Tensor], weight: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_lerp_(self: tuple[Tensor, ...] | list[Tensor], tensors1: tuple[Tensor, ...] | list[Tensor], weight: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_lerp_(self: tuple[Tensor, ...] | list[Tensor], tensors1: tuple[Tensor, ...] | list[Tensor], weights: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_lgamma(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_lgamma_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_log(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_log10(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_log10_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_log1p(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_log1p_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_log2(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_log2_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_log_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_max(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_maximum(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_maximum(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_maximum(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_maximum_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_maximum_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_maximum_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_minimum(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_minimum(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_minimum(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_minimum_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_minimum_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_minimum_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_mm(self: tuple[Tensor, ...] | list[Tensor], mat2: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_mul(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_mul(self: tuple[Tensor, ...] | list[Tensor], other: Tensor) -> tuple[Tensor, ...]: ...
@overload
def _foreach_mul(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_mul(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_mul_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_mul_(self: tuple[Tensor, ...] | list[Tensor], other: Tensor) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_mul_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_mul_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_neg(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_neg_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_norm(self: tuple[Tensor, ...] | list[Tensor], ord: Number | _complex = 2, dtype: _dtype | None = None) -> tuple[Tensor, ...]: ...
@overload
def _foreach_pow(self: Number | _complex, exponent: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_pow(self: tuple[Tensor, ...] | list[Tensor], exponent: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_pow(self: tuple[Tensor, ...] | list[Tensor], exponent: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_pow(self: tuple[Tensor, ...] | list[Tensor], exponent: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_pow_(self: tuple[Tensor, ...] | list[Tensor], exponent: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_pow_(self: tuple[Tensor, ...] | list[Tensor], exponent: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_pow_(self: tuple[Tensor, ...] | list[Tensor], exponent: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_powsum(self: tuple[Tensor, ...] | list[Tensor], ord: Number | _complex = 2, dtype: _dtype | None = None) -> tuple[Tensor, ...]: ...
def _foreach_reciprocal(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_reciprocal_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_round(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_round_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_rsqrt(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_rsqrt_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_sigmoid(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_sigmoid_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_sign(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_sign_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_sin(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_sin_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_sinh(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_sinh_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_sqrt(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_sqrt_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_sub(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...]: ...
@overload
def _foreach_sub(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...]: ...
@overload
def _foreach_sub(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor], *, alpha: Number | _complex = 1) -> tuple[Tensor, ...]: ...
@overload
def _foreach_sub_(self: tuple[Tensor, ...] | list[Tensor], scalar: Number | _complex) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_sub_(self: tuple[Tensor, ...] | list[Tensor], scalars: Sequence[Number | _complex]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _foreach_sub_(self: tuple[Tensor, ...] | list[Tensor], other: tuple[Tensor, ...] | list[Tensor], *, alpha: Number | _complex = 1) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_tan(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_tan_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_tanh(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_tanh_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_trunc(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_trunc_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
def _foreach_zero(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def _foreach_zero_(self: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...] | list[Tensor]: ...
@overload
def _fused_adadelta_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], square_avgs: tuple[Tensor, ...] | list[Tensor], acc_deltas: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, rho: _float, eps: _float, weight_decay: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adadelta_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], square_avgs: tuple[Tensor, ...] | list[Tensor], acc_deltas: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, rho: _float, eps: _float, weight_decay: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adagrad_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], state_sums: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, lr_decay: _float, weight_decay: _float, eps: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adagrad_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], state_sums: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, lr_decay: _float, weight_decay: _float, eps: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adagrad_counted_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], state_sums: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, lr_decay: _float, weight_decay: _float, eps: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adagrad_counted_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], state_sums: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, lr_decay: _float, weight_decay: _float, eps: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adam_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adam_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adam_counted_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adam_counted_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adamax_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_infs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, eps: _float, weight_decay: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adamax_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_infs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, eps: _float, weight_decay: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adamw_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adamw_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adamw_counted_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_adamw_counted_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], max_exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, weight_decay: _float, eps: _float, amsgrad: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_asgd_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], axs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], etas: tuple[Tensor, ...] | list[Tensor], mus: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, lambd: _float, alpha: _float, t0: _float, weight_decay: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_asgd_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], axs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], etas: tuple[Tensor, ...] | list[Tensor], mus: tuple[Tensor, ...] | list[Tensor], *, lr: _float, lambd: _float, alpha: _float, t0: _float, weight_decay: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_nadam_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], mu_products: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, eps: _float, weight_decay: _float, momentum_decay: _float, decoupled_weight_decay: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_nadam_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], mu_products: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, eps: _float, weight_decay: _float, momentum_decay: _float, decoupled_weight_decay: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_radam_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, beta1: _float, beta2: _float, eps: _float, weight_decay: _float, decoupled_weight_decay: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_radam_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], exp_avgs: tuple[Tensor, ...] | list[Tensor], exp_avg_sqs: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, beta1: _float, beta2: _float, eps: _float, weight_decay: _float, decoupled_weight_decay: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
def _fused_rms_norm(input: Tensor, normalized_shape: _size, weight: Tensor | None, eps: _float | None) -> tuple[Tensor, Tensor]: ...
@overload
def _fused_rmsprop_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], square_avgs: tuple[Tensor, ...] | list[Tensor], grad_avgs: tuple[Tensor, ...] | list[Tensor], momentum_buffer_list: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: Tensor, alpha: _float, eps: _float, weight_decay: _float, momentum: _float, centered: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_rmsprop_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], square_avgs: tuple[Tensor, ...] | list[Tensor], grad_avgs: tuple[Tensor, ...] | list[Tensor], momentum_buffer_list: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, lr: _float, alpha: _float, eps: _float, weight_decay: _float, momentum: _float, centered: _bool, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
def _fused_rprop_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], prevs: tuple[Tensor, ...] | list[Tensor], step_sizes: tuple[Tensor, ...] | list[Tensor], state_steps: tuple[Tensor, ...] | list[Tensor], *, step_size_min: _float, step_size_max: _float, etaminus: _float, etaplus: _float, maximize: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_sgd_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], momentum_buffer_list: tuple[Tensor, ...] | list[Tensor], *, weight_decay: _float, momentum: _float, lr: Tensor, dampening: _float, nesterov: _bool, maximize: _bool, is_first_step: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
@overload
def _fused_sgd_(self: tuple[Tensor, ...] | list[Tensor], grads: tuple[Tensor, ...] | list[Tensor], momentum_buffer_list: tuple[Tensor, ...] | list[Tensor], *, weight_decay: _float, momentum: _float, lr: _float, dampening: _float, nesterov: _bool, maximize: _bool, is_first_step: _bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None: ...
def _grid_sampler_backward(grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool, output_mask: _int) -> tuple[Tensor, Tensor]: ...
def _group_norm_backward(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, group: _int, output_mask: _int) -> tuple[Tensor, Tensor, Tensor]: ...
def _gru_layer(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, batch_sizes: _size, reverse: _bool) -> tuple[Tensor, Tensor, Tensor]: ...
def _gru_step(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> tuple[Tensor, Tensor]: ...
def _histogramdd_bin_edges(input: Tensor, bins: _size, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> tuple[Tensor, ...]: ...
def _histogramdd_from_bin_cts(input: Tensor, bins: _size, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> Tensor: ...
def _histogramdd_from_bin_tensors(input: Tensor, bins: tuple[Tensor, ...] | list[Tensor], *, weight: Tensor | None = None, density: _bool = False) -> Tensor: ...
def _imag_part(input: Tensor) -> Tensor: ...
def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def _layer_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: _size, mean: Tensor, rstd: Tensor, weight: Tensor | None, output_mask: _int) -> tuple[Tensor, Tensor, Tensor]: ...
def _lazy_clone(input: Tensor) -> Tensor: ...
def _linalg_det(A: Tensor) -> return_types._linalg_det: ...
def _linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: _bool = True) -> return_types._linalg_eigh: ...
def _linalg_eigvals(input: Tensor) -> Tensor: ...
def _linalg_inv_by_factors(A: Tensor, LU: Tensor, pivots: Tensor) -> Tensor: ...
def _linalg_lstsq(A: Tensor, B: Tensor, rcond: _float, driver: str) -> return_types._linalg_lstsq: ...
def _linalg_lyapunov(X: Tensor, right: Tensor) -> Tensor: ...
def _linalg_slogdet(A: Tensor) -> return_types._linalg_slogdet: ...
def _linalg_solve_by_factors(A: Tensor, LU: Tensor, pivots: Tensor, B: Tensor, left: _bool, adjoint: _bool) -> Tensor: ...
def _linalg_solve_ex(A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False) -> return_types._linalg_solve_ex: ...
def _linalg_svd(A: Tensor, full_matrices: _bool = False, compute_uv: _bool = True, *, driver: str | None = None) -> return_types._linalg_svd: ...
def _linear_indices(indices: Tensor, size: _size, is_stored: _bool) -> Tensor: ...
def _linear_recurrence(input: Tensor, factor: Tensor, dim: _int, reverse: _bool = False) -> Tensor: ...
def _local_scalar_dense(input: Tensor) -> Number | _complex: ...
def _log_softmax(input: Tensor, dim: _int, half_to_float: _bool, *, out: Tensor | None = None) -> Tensor: ...
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _int, input_dtype: _dtype) -> Tensor: ...
def _logit_backward(grad_output: Tensor, input: Tensor, eps: _float | None = None) -> Tensor: ...
def _lstm_layer(input: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, batch_sizes: _size, reverse: _bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
def _lstm_step(input: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> tuple[Tensor, Tensor, Tensor]: ...
def _lu_permutation(pivots: Tensor, rows: _int, solves: _bool = False) -> Tensor: ...
def _lu_with_info(input: Tensor, pivot: _bool = True, check_errors: _bool = True) -> return_types._lu_with_info: ...
def _masked_softmax(input: Tensor, mask: Tensor, dim: _int | None = None, mask_type: _int | None = None) -> Tensor: ...
def _max_pool2d_backward(grad_output: Tensor, indices: Tensor, input_size: _size) -> Tensor: ...
def _native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, training: _bool, momentum: _float, eps: _float, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, training: _bool, momentum: _float, eps: _float, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
def _native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float) -> tuple[Tensor, Tensor, Tensor]: ...
def _native_layer_norm(input: Tensor, normalized_shape: _size, weight: Tensor | None, bias: Tensor | None, eps: _float) -> tuple[Tensor, Tensor, Tensor]: ...
def _neg_view(input: Tensor) -> Tensor: ...
def _neg_view_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def _nll_loss_backward(grad_output: Tensor, sizes: _size, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, total_weight: Tensor) -> Tensor: ...
def _prelu_backward_input(grad_output: Tensor, input: Tensor, weight: Tensor) -> Tensor: ...
def _prelu_backward_weight(grad_output: Tensor, input: Tensor) -> Tensor: ...
def _prelu_kernel(input: Tensor, weight: Tensor) -> Tensor: ...
def _real_part(input: Tensor) -> Tensor: ...
def _renorm_factor(input: Tensor, maxnorm: _float) -> Tensor: ...
def _rms_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: _size, rstd: Tensor, weight: Tensor | None, output_mask: _int) -> tuple[Tensor, Tensor]: ...
def _rnn_layer(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, batch_sizes: _size, reverse: _bool, relu: _bool) -> tuple[Tensor, Tensor]: ...
def _rnn_layer_backward(operands: tuple[Tensor | None, ...] | list[Tensor | None], results: tuple[Tensor | None, ...] | list[Tensor | None], grads: tuple[Tensor | None, ...] | list[Tensor | None], cell: _int, needs: _int, batch_sizes: _size, reverse: _bool) -> tuple[Tensor, ...]: ...
def _rnn_step(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, relu: _bool) -> Tensor: ...
def _safe_softmax(input: Tensor, dim: _int, dtype: _dtype | None = None) -> Tensor: ...
def _safe_softmax_data(input: Tensor, dim: _int) -> Tensor: ...
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor: ...
def _scaled_dot_product_attention_by(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: _float, is_causal: _bool, *, scale: _float | None = None, enable_gqa: _bool = False, flash: _bool = True, math: _bool = True) -> Tensor: ...
def _scaled_dot_product_flash_attention_for_cpu(query: Tensor, key: Tensor, value: Tensor, dropout_p: _float = 0.0, is_causal: _bool = False, *, attn_mask: Tensor | None = None, scale: _float | None = None) -> return_types._scaled_dot_product_flash_attention_for_cpu: ...
def _scaled_dot_product_flash_attention_for_cpu_backward(grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: _float, is_causal: _bool, *, attn_mask: Tensor | None = None, scale: _float | None = None) -> return_types._scaled_dot_product_flash_attention_for_cpu_backward: ...
def _scaled_mm(input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None, scale_result: Tensor | None = None, out_dtype: _dtype | None = None, use_fast_accum: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def _segment_ids(bounds: Tensor, size: _int, offsets: _bool, complete: _bool) -> Tensor: ...
def _select_along(input: Tensor, dim: _int, indices: Tensor, keepdim: _bool) -> Tensor: ...
def _softmax(input: Tensor, dim: _int, half_to_float: _bool, *, out: Tensor | None = None) -> Tensor: ...
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _int, input_dtype: _dtype) -> Tensor: ...
def _sparse_compressed_tensor_unsafe(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def _sparse_coo_tensor_unsafe(indices: Tensor, values: Tensor, size: _size, *, is_coalesced: _bool | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def _sparse_log_softmax(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor: ...
@overload
def _sparse_mm(sparse: Tensor, dense: Tensor) -> Tensor: ...
@overload
def _sparse_mm(sparse: Tensor, dense: Tensor, reduce: str) -> Tensor: ...
def _sparse_softmax(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor: ...
def _sparse_solve_triangular(A: Tensor, B: Tensor, upper: _bool, transpose: _bool, unitriangular: _bool) -> Tensor: ...
@overload
def _sparse_sum(input: Tensor) -> Tensor: ...
@overload
def _sparse_sum(input: Tensor, *, dtype: _dtype) -> Tensor: ...
@overload
def _sparse_sum(input: Tensor, dim: _int | _size) -> Tensor: ...
@overload
def _sparse_sum(input: Tensor, dim: _int | _size, *, dtype: _dtype) -> Tensor: ...
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor: ...
def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor: ...
def _to_copy(input: Tensor | Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = None, non_blocking: _bool = False, memory_format: memory_format | None = None) -> Tensor: ...
def _unique(input: Tensor, sorted: _bool = True, return_inverse: _bool = False) -> tuple[Tensor, Tensor]: ...
def _unique2(input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False) -> tuple[Tensor, Tensor, Tensor]: ...
def _unravel_index(indices: Tensor, shape: _size) -> tuple[Tensor, ...]: ...
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...] | list[Tensor | None], fill: Number | _complex) -> Tensor: ...
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...] | list[Tensor | None], values: Tensor) -> Tensor: ...
def _unsafe_view(input: Tensor, size: _size) -> Tensor: ...
def _upsample_bicubic2d_aa_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor: ...
def _upsample_bilinear2d_aa_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor: ...
def _upsample_lanczos2d_aa_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor: ...
def _upsample_nearest_exact1d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, scales: _float | None = None) -> Tensor: ...
def _upsample_nearest_exact2d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor: ...
def _upsample_nearest_exact3d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor: ...
def _values_at(input: Tensor, indices: Tensor, is_sparse: _bool) -> Tensor: ...
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
def abs_(input: Tensor) -> Tensor:
    """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
def absolute_(input: Tensor) -> Tensor:
    """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
def acos_(input: Tensor) -> Tensor:
    """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine; NaN for real numbers below 1."""
def acosh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine; NaN for real numbers below 1."""
def adaptive_avg_pool1d(input: Tensor, output_size: _int | _size) -> Tensor:
    """The mean of each of `output_size` nearly equal parts of the last dimension."""
def adaptive_max_pool1d(input: Tensor, output_size: _int | _size) -> tuple[Tensor, Tensor]:
    """The largest element of each of `output_size` nearly equal parts of the last dimension, and its index."""
@overload
def add(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """Adds `other`, multiplied by `alpha`: `out[i] = self[i] + alpha * other[i]`.
    Shapes broadcast; dtypes promote; for bool this is "or"."""
@overload
def add(input: Tensor | Number | _complex, alpha: Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`beta * self + alpha * (sum over b of batch1[b] @ batch2[b])`; `self` broadcasts, and the in-place form gives it the
    result's shape."""
@overload
def addbmm(beta: Number | _complex, input: Tensor, alpha: Number | _complex, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addbmm(beta: Number | _complex, input: Tensor, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`self + value * tensor1 / tensor2`. Shapes broadcast; dtypes promote; integers are refused."""
@overload
def addcdiv(input: Tensor, value: Number | _complex, tensor1: Tensor, tensor2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`self + value * tensor1 * tensor2`. Shapes broadcast; dtypes promote."""
@overload
def addcmul(input: Tensor, value: Number | _complex, tensor1: Tensor, tensor2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)`; `self` broadcasts to (m, n) and is not read if `beta` is 0."""
@overload
def addmm(beta: Number | _complex, input: Tensor, alpha: Number | _complex, mat1: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addmm(beta: Number | _complex, input: Tensor, mat1: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`beta * self + alpha * (mat @ vec)`; `self` broadcasts and is not read if `beta` is 0."""
@overload
def addmv(beta: Number | _complex, input: Tensor, alpha: Number | _complex, mat: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addmv(beta: Number | _complex, input: Tensor, mat: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
    """`beta * self + alpha * (mat @ vec)`; `self` broadcasts and is not read if `beta` is 0."""
@overload
def addmv_(beta: Number | _complex, input: Tensor, alpha: Number | _complex, mat: Tensor, vec: Tensor) -> Tensor: ...
@overload
def addmv_(beta: Number | _complex, input: Tensor, mat: Tensor, vec: Tensor) -> Tensor: ...
@overload
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """The sum of a matrix and an outer product: `beta * self + alpha * outer(vec1, vec2)`. `self` broadcasts to the shape
    of the product and is not read if `beta` is 0. Of bools, the product is "and" and the sum "or"."""
@overload
def addr(beta: Number | _complex, input: Tensor, alpha: Number | _complex, vec1: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def addr(beta: Number | _complex, input: Tensor, vec1: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions swapped, conjugated."""
def affine_grid_generator(theta: Tensor, size: _size, align_corners: _bool) -> Tensor:
    """The positions (N, *sizes, d) to which the affine maps `theta` (N, d, d + 1) take the elements of an image of `size`
    (N, C, *sizes), all in the coordinates from -1 to 1 that `grid_sampler` takes."""
def alias(input: Tensor) -> Tensor:
    """A view of everything."""
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of everything."""
@overload
def all(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether every element is not zero; true for no elements."""
@overload
def all(input: Tensor, dim: _size | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def all(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def allclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether all elements are close, as `isclose`."""
def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Alpha dropout: in training each element becomes the lower limit of SELU with probability `p`, and all are scaled and
    shifted so that mean 0 and variance 1 are preserved (Klambauer et al. 2017). Otherwise the result is the input
    itself."""
def alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Alpha dropout in place: in training each element of `self` becomes the lower limit of SELU with probability `p`, and
    all are scaled and shifted so that mean 0 and variance 1 are preserved."""
def amax(input: Tensor, dim: _int | _size | None = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The largest elements over the dimensions `dim` (all if empty). Equal ones share the gradient evenly."""
def amin(input: Tensor, dim: _int | _size | None = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The smallest elements over the dimensions `dim` (all if empty). Equal ones share the gradient evenly."""
def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.aminmax:
    """The smallest and the largest elements along `dim`, or of all. Equal ones share the gradient evenly."""
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle with the positive real axis, in `[-π, π]`; of real numbers 0 or π, with gradient 0."""
@overload
def any(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether any element is not zero; false for no elements."""
@overload
def any(input: Tensor, dim: _size | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def any(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def arange(end: Number | _complex, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The numbers 0, 1, ... below `end`; int64 if `end` is whole, else the default floating dtype."""
@overload
def arange(start: Number | _complex, end: Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def arange(start: Number | _complex, end: Number | _complex, step: Number | _complex = 1, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
def arccos_(input: Tensor) -> Tensor:
    """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine; NaN for real numbers below 1."""
def arccosh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine; NaN for real numbers below 1."""
def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
def arcsin_(input: Tensor) -> Tensor:
    """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
def arcsinh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in `[-π/2, π/2]`."""
def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
    default floating dtype. At the origin the gradient is 0."""
def arctan_(input: Tensor) -> Tensor:
    """The inverse tangent, in `[-π/2, π/2]`."""
def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
def arctanh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The index of the first largest element along `dim`, or in the flattened tensor."""
def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The index of the first smallest element along `dim`, or in the flattened tensor."""
@overload
def argsort(input: Tensor, *, stable: _bool, dim: _int = -1, descending: _bool = False, out: Tensor | None = None) -> Tensor:
    """As `argsort`, which is always stable."""
@overload
def argsort(input: Tensor, dim: _int = -1, descending: _bool = False) -> Tensor: ...
def argwhere(input: Tensor) -> Tensor:
    """As `nonzero`."""
def as_strided(input: Tensor, size: _size, stride: _size, storage_offset: _int | None = None) -> Tensor:
    """A view by explicit sizes, strides and offset into the storage (in elements)."""
def as_strided_(input: Tensor, size: _size, stride: _size, storage_offset: _int | None = None) -> Tensor:
    """Lets this tensor itself see its storage by explicit sizes, strides and offset (in elements)."""
def as_strided_copy(input: Tensor, size: _size, stride: _size, storage_offset: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view by explicit sizes, strides and offset into the storage (in elements)."""
def as_strided_scatter(input: Tensor, src: Tensor, size: _size, stride: _size, storage_offset: _int | None = None) -> Tensor:
    """A copy of `self`, in the same order of memory, with `src` where a view by explicit sizes, strides and offset into the
    storage (in elements) shows it. Where several indices of the view mean one element, the last of them counts."""
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
def asin_(input: Tensor) -> Tensor:
    """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
def asinh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in `[-π/2, π/2]`."""
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
    default floating dtype. At the origin the gradient is 0."""
def atan_(input: Tensor) -> Tensor:
    """The inverse tangent, in `[-π/2, π/2]`."""
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
def atanh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
@overload
def atleast_1d(input: Tensor) -> Tensor:
    """The tensor with at least one dimension."""
@overload
def atleast_1d(tensors: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(input: Tensor) -> Tensor:
    """The tensor with at least two dimensions; a vector becomes a row."""
@overload
def atleast_2d(tensors: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(input: Tensor) -> Tensor:
    """The tensor with at least three dimensions: (n) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
@overload
def atleast_3d(tensors: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]: ...
def avg_pool1d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window of the last dimension. Padding counts as zeros with `count_include_pad`, else it is left out
    of the mean."""
@overload
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`beta * self + alpha * bmm(batch1, batch2)`; `self` broadcasts and is not read if `beta` is 0."""
@overload
def baddbmm(beta: Number | _complex, input: Tensor, alpha: Number | _complex, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def baddbmm(beta: Number | _complex, input: Tensor, batch1: Tensor, batch2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bartlett_window(window_length: _int, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The periodic Bartlett (triangular) window of `n = window_length` elements: `1 - |2 i / n - 1|`."""
@overload
def bartlett_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool) -> Tensor:
    """Batch normalisation: `(input - mean) / sqrt(var + eps) * weight + bias` per channel (dimension 1). In training mean
    and biased variance are those of the batch, and the running statistics move by `momentum` towards the mean and the
    unbiased variance of the batch; otherwise the running statistics are used (Ioffe and Szegedy 2015)."""
@overload
def bernoulli(input: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Ones with the probabilities `self`, else zeros."""
@overload
def bernoulli(input: Tensor, p: _float, *, generator: Generator | None = None) -> Tensor: ...
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _int = 1) -> Tensor:
    """The binary cross entropy of `s = sigmoid(self)`, `-weight (pos_weight target ln s + (1 - target) ln(1 - s))`,
    without underflow, reduced: 0 (none), 1 (mean) or 2 (sum)."""
def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
    """How often each number from 0 up to the largest occurs in a vector (at least `minlength` counts); with `weights` the
    sum of the weights of its indices."""
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Binomial numbers of `count` trials, each of which succeeds with probability `prob`; the shapes broadcast. No trials, or none
    that can succeed, give 0; probabilities from 1 upwards give `count`."""
@overload
def bitwise_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits set in both; for bool "and"."""
@overload
def bitwise_and(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits moved to the left by `other` places: `self * 2^other`, wrapping; 0 if `other` is negative or at
    least the width."""
@overload
def bitwise_left_shift(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit flipped; for bool the negation."""
@overload
def bitwise_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits set in at least one; for bool "or"."""
@overload
def bitwise_or(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_or(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits moved to the right by `other` places, keeping the sign: `floor(self / 2^other)`; only the sign
    is left if `other` is negative or at least the width."""
@overload
def bitwise_right_shift(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits set in exactly one; for bool "exclusive or"."""
@overload
def bitwise_xor(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def blackman_window(window_length: _int, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The periodic Blackman window of `n = window_length` elements:
    `0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)`."""
@overload
def blackman_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def block_diag(tensors: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    """The matrices along a diagonal, zeros elsewhere; numbers and vectors are rows, dtypes promote. Nothing gives shape
    (1, 0)."""
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of the matrices of two batches: (b, n, m) times (b, m, p) gives (b, n, p). Batches do not broadcast;
    dtypes must be equal."""
def broadcast_tensors(tensors: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape; those that have it are returned as they are."""
def broadcast_to(input: Tensor, size: _size) -> Tensor:
    """Expanded to `size`."""
@overload
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
    """The bucket of each value among the sorted vector `boundaries`: as `searchsorted` with the arguments swapped."""
@overload
def bucketize(input: Tensor, boundaries: Number | _complex, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def bucketize(self: Number | _complex, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor: ...
def cartesian_prod(tensors: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    """All tuples of one element of each vector, a row each, the last element varying fastest; a single vector as it is."""
def cat(tensors: tuple[Tensor, ...] | list[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors of equal size in all dimensions but `dim`; their dtypes promote. One-dimensional tensors
    without elements are skipped. The channels of images lie together in memory if they do in all tensors."""
def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _int | None = None) -> Tensor:
    """Distances between all pairs of rows: the norm of order `p` (0, positive or infinite) of the difference of each row
    of `x1` (*, P, M) and each row of `x2` (*, R, M), of shape (*, P, R). Leading dimensions broadcast. `compute_mode`
    chooses between algorithms in PyTorch; here all modes use the one without matrix products. Where rows are equal the
    gradient is 0."""
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest whole number not below each element; integers are copied. The gradient is 0."""
def ceil_(input: Tensor) -> Tensor:
    """The smallest whole number not below each element; integers are copied. The gradient is 0."""
def celu(input: Tensor, alpha: Number | _complex = 1.0) -> Tensor:
    """The continuously differentiable exponential linear unit: `max(0, self) + min(0, alpha * (e^(self / alpha) - 1))`
    (Barron 2017)."""
def celu_(input: Tensor, alpha: Number | _complex = 1.0) -> Tensor:
    """The continuously differentiable exponential linear unit: `max(0, self) + min(0, alpha * (e^(self / alpha) - 1))`
    (Barron 2017)."""
def chain_matmul(matrices: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the order that needs the fewest multiplications. It is deprecated:
    `torch.linalg.multi_dot` takes its place. The product of a single matrix is that matrix."""
def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """The channels of (N, C, *) in a new order: those of the `groups` groups interleaved, one of each group in turn.
    `groups` divides C."""
def cholesky_inverse(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the matrices `A` of which `self` is a Cholesky factor: the lower `L` with `A = L L^H`, or with
    `upper` the upper `R` with `A = R^H R`."""
def cholesky_solve(input: Tensor, input2: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = self`, where `input2` is a Cholesky factor of `A`: the lower `L` with `A = L L^H`, or
    with `upper` the upper `R` with `A = R^H R`. Only that triangle of the factor is read; batches broadcast."""
def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` splits of equal size along `dim`, the last one smaller if it does not divide."""
@overload
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
    one of its limits shares the gradient with it in halves."""
@overload
def clamp(input: Tensor, min: Number | _complex | None = None, max: Number | _complex | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
    one of its limits shares the gradient with it in halves."""
@overload
def clamp_(input: Tensor, min: Number | _complex | None = None, max: Number | _complex | None = None) -> Tensor: ...
@overload
def clamp_max(input: Tensor, max: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Limits from above element by element; equal elements share the gradient in halves."""
@overload
def clamp_max(input: Tensor, max: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_max_(input: Tensor, max: Tensor) -> Tensor:
    """Limits from above element by element; equal elements share the gradient in halves."""
@overload
def clamp_max_(input: Tensor, max: Number | _complex) -> Tensor: ...
@overload
def clamp_min(input: Tensor, min: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Limits from below element by element; equal elements share the gradient in halves."""
@overload
def clamp_min(input: Tensor, min: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_min_(input: Tensor, min: Tensor) -> Tensor:
    """Limits from below element by element; equal elements share the gradient in halves."""
@overload
def clamp_min_(input: Tensor, min: Number | _complex) -> Tensor: ...
@overload
def clip(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
    one of its limits shares the gradient with it in halves."""
@overload
def clip(input: Tensor, min: Number | _complex | None = None, max: Number | _complex | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clip_(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
    one of its limits shares the gradient with it in halves."""
@overload
def clip_(input: Tensor, min: Number | _complex | None = None, max: Number | _complex | None = None) -> Tensor: ...
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Copies the elements into a new tensor that keeps the order of dimensions in memory, or takes
    `memory_format`'s."""
def column_stack(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins along dimension 1, vectors and numbers as columns."""
def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """All ways to take `r` elements of a vector in the order of their positions, a row each: shape (count, r); none if `r` is 0."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex tensor with the real parts `real` and the imaginary parts `imag`, which broadcast and have one dtype:
    float16, float32 or float64."""
def concat(tensors: tuple[Tensor, ...] | list[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors of equal size in all dimensions but `dim`; their dtypes promote. One-dimensional tensors
    without elements are skipped. The channels of images lie together in memory if they do in all tensors."""
def concatenate(tensors: tuple[Tensor, ...] | list[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors of equal size in all dimensions but `dim`; their dtypes promote. One-dimensional tensors
    without elements are skipped. The channels of images lie together in memory if they do in all tensors."""
def conj(input: Tensor) -> Tensor:
    """The complex conjugates: a view of complex tensors, which computes nothing; real tensors are returned as they are."""
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate of every element, computed at once; real tensors are returned as they are."""
def conj_physical_(input: Tensor) -> Tensor:
    """Replaces every element by its complex conjugate. Real tensors keep their elements, and count as written to."""
def constant_pad_nd(input: Tensor, pad: _size, value: Number | _complex = 0) -> Tensor:
    """The tensor with elements of `value` added at the edges: `pad` lists how many (before, after) for the last dimension,
    then for the one before it, and so on. Negative numbers crop."""
@overload
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: _int | _size = 0, dilation: _int | _size = 1, groups: _int = 1) -> Tensor:
    """The convolution (cross-correlation) of (N, C, L) or (C, L) with `weight` (O, C / groups, k), plus
    `bias` (O). Along each dimension a size `L` becomes `(L + 2 padding - dilation (kernel - 1) - 1) / stride + 1`,
    rounded down."""
@overload
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: str = "valid", dilation: _int | _size = 1, groups: _int = 1) -> Tensor: ...
@overload
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: _int | _size = 0, dilation: _int | _size = 1, groups: _int = 1) -> Tensor:
    """The convolution (cross-correlation) of (N, C, H, W) or (C, H, W) with `weight` (O, C / groups, kh, kw), plus
    `bias` (O). Along each dimension a size `L` becomes `(L + 2 padding - dilation (kernel - 1) - 1) / stride + 1`,
    rounded down."""
@overload
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: str = "valid", dilation: _int | _size = 1, groups: _int = 1) -> Tensor: ...
@overload
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: _int | _size = 0, dilation: _int | _size = 1, groups: _int = 1) -> Tensor:
    """The convolution (cross-correlation) of (N, C, D, H, W) or (C, D, H, W) with `weight` (O, C / groups, kd, kh, kw), plus
    `bias` (O). Along each dimension a size `L` becomes `(L + 2 padding - dilation (kernel - 1) - 1) / stride + 1`,
    rounded down."""
@overload
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: str = "valid", dilation: _int | _size = 1, groups: _int = 1) -> Tensor: ...
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0) -> Tensor:
    """The one-dimensional convolution (cross-correlation) of (T, N, C) with `weight` (k, C, O), plus `bias` (O), with
    `pad` zeros at both ends: (T + 2 pad - k + 1, N, O)."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: _int | _size = 0, output_padding: _int | _size = 0, groups: _int = 1, dilation: _int | _size = 1) -> Tensor:
    """The transposed convolution of (N, C, L) or (C, L) with `weight` (C, O / groups, k), plus `bias`
    (O): the gradient of `conv1d` with respect to its input. Along each dimension a size `L` becomes `(L - 1) stride -
    2 padding + dilation (kernel - 1) + output_padding + 1`."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: _int | _size = 0, output_padding: _int | _size = 0, groups: _int = 1, dilation: _int | _size = 1) -> Tensor:
    """The transposed convolution of (N, C, H, W) or (C, H, W) with `weight` (C, O / groups, kh, kw), plus `bias`
    (O): the gradient of `conv2d` with respect to its input. Along each dimension a size `L` becomes `(L - 1) stride -
    2 padding + dilation (kernel - 1) + output_padding + 1`."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | _size = 1, padding: _int | _size = 0, output_padding: _int | _size = 0, groups: _int = 1, dilation: _int | _size = 1) -> Tensor:
    """The transposed convolution of (N, C, D, H, W) or (C, D, H, W) with `weight` (C, O / groups, kd, kh, kw), plus `bias`
    (O): the gradient of `conv3d` with respect to its input. Along each dimension a size `L` becomes `(L - 1) stride -
    2 padding + dilation (kernel - 1) + output_padding + 1`."""
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: _size, padding: _size, dilation: _size, transposed: _bool, output_padding: _size, groups: _int) -> Tensor:
    """The convolution (cross-correlation) of `input` (N, C, *) with `weight` (O, C / groups, *kernel), plus `bias` (O),
    over one to three spatial dimensions; with `transposed` the transposed convolution, which is the gradient of a
    convolution with respect to its input, with `weight` (C, O / groups, *kernel)."""
@overload
def copysign(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The size of `self` with the sign of `other` (of zero and NaN too). By `self` the gradient at 0 is 0."""
@overload
def copysign(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlations of the variables, their covariances divided by their deviations: (m, n) gives (m, m), one variable
    a number. Kept within -1 and 1, complex ones in both parts."""
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine."""
def cos_(input: Tensor) -> Tensor:
    """The cosine."""
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine: `(e^self + e^-self) / 2`."""
def cosh_(input: Tensor) -> Tensor:
    """The hyperbolic cosine: `(e^self + e^-self) / 2`."""
@overload
def count_nonzero(input: Tensor, dim: _int | None = None) -> Tensor:
    """How many elements are not zero, over `dim` or all dimensions, as int64."""
@overload
def count_nonzero(input: Tensor, dim: _size) -> Tensor: ...
def cov(input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of the variables, with the sums of products divided by the number of observations less `correction`:
    (m, n) gives (m, m), one variable a number. `fweights` says how often each observation was made, `aweights` how much it
    says. Too few observations give infinities or NaN, and a warning."""
def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`. Without `dim` it is along the first dimension of size 3, which
    is deprecated; `torch.linalg.cross` is preferred."""
@overload
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: _size, target_lengths: _size, blank: _int = 0, reduction: _int = 1, zero_infinity: _bool = False) -> Tensor:
    """The connectionist temporal classification loss (Graves et al. 2006), `-ln P(targets)` of each example by
    log-probabilities (T, N, C) or (T, C), reduced: 0 (none), 1 (the mean of the losses, each divided by its number of
    labels) or 2 (the sum).

    `targets` are (N, S), or all labels concatenated; `blank` is the class that separates labels. The loss of a target
    that no alignment fits is infinite, or 0 without a gradient with `zero_infinity`."""
@overload
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: _int = 0, reduction: _int = 1, zero_infinity: _bool = False) -> Tensor: ...
def cummax(input: Tensor, dim: _int, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.cummax:
    """The running maximum along `dim` and where it was last reached; NaN stays."""
def cummin(input: Tensor, dim: _int, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.cummin:
    """The running minimum along `dim` and where it was last reached; NaN stays."""
def cumprod(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The running product along `dim`. Integers and bools multiply in int64 unless `dtype` is given."""
def cumsum(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The running sum along `dim`: `out[i] = self[0] + ... + self[i]`. Integers and bools sum in int64 unless
    `dtype` is given."""
@overload
def cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: _int = -1) -> Tensor:
    """The areas below points `(x, y)` along `dim` from the first point up to each further one, by straight lines."""
@overload
def cumulative_trapezoid(y: Tensor, *, dx: Number | _complex = 1, dim: _int = -1) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees to radians: `self * π / 180`."""
def deg2rad_(input: Tensor) -> Tensor:
    """Degrees to radians: `self * π / 180`."""
def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant (*) of square matrices (*, n, n); that of a matrix of order 0 is 1. The gradient is `det(A)^* A^-H`
    times that of the result, and at singular matrices the adjugate, which is computed from the singular values.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def detach(input: Tensor) -> Tensor:
    """The same memory without history; in-place writes to either are seen by both."""
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy without history."""
def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Of a vector the matrix that has it on a diagonal, of a matrix a copy of the diagonal; `diagonal` steps above the main
    one."""
def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Zeros with the last dimension of `self` on the diagonals, `offset` steps above the main one, of the planes of the
    result's dimensions `dim1` and `dim2`."""
def diagflat(input: Tensor, offset: _int = 0) -> Tensor:
    """The matrix that has all elements, row by row, on the diagonal `offset` steps above the main one."""
def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The diagonals of the planes of `dim1` and `dim2`, `offset` steps above the main one, as the last dimension."""
def diagonal_copy(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of the diagonals of the planes of `dim1` and `dim2`, as the last dimension."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """A copy of `self` with `src` on the diagonals of the planes of `dim1` and `dim2`, `offset` steps above the main one;
    the last dimension of `src` goes along them."""
def diff(input: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th differences along `dim`, `out[i] = self[i + 1] - self[i]` taken `n` times, of what `prepend`, `self` and
    `append` are together. Of bools, whether neighbours differ."""
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithmic derivative of the gamma function."""
def dist(input: Tensor, other: Tensor, p: Number | _complex = 2) -> Tensor:
    """The norm of order `p` of `self - other` over all elements, a 0-dimensional tensor. Shapes broadcast, dtypes promote.
    Where the two are equal the gradient is 0."""
@overload
def div(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
    division by zero gives an infinity or NaN."""
@overload
def div(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, rounding_mode: str | None, out: Tensor | None = None) -> Tensor: ...
@overload
def divide(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
    division by zero gives an infinity or NaN."""
@overload
def divide(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, rounding_mode: str | None, out: Tensor | None = None) -> Tensor: ...
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product of two vectors of one length: `sum over i of self[i] * tensor[i]`, without conjugation. Empty
    vectors give 0."""
def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout: in training each element becomes 0 with probability `p`, else `input / (1 - p)` (Srivastava et al. 2014).
    Otherwise, and for `p` = 0, the result is the input itself. Any shape; one random draw per element."""
def dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout in place: in training each element of `self` becomes 0 with probability `p`, else `self / (1 - p)`."""
@overload
def dsplit(input: Tensor, sections: _int) -> tuple[Tensor, ...]:
    """`sections` equal splits in depth: along the third dimension."""
@overload
def dsplit(input: Tensor, indices: _size) -> tuple[Tensor, ...]: ...
def dstack(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along dimension 2."""
def einsum(equation: str, tensors: tuple[Tensor, ...] | list[Tensor], *, path: _size | None = None) -> Tensor:
    """Sums of products in Einstein's notation: `einsum("ij,jk->ik", [a, b])` is the matrix product. A letter that the
    output does not have is summed; without `->` the output has the letters that occur once, in alphabetical
    order; `...` stands for any further dimensions, which broadcast; a letter repeated in one operand takes its diagonal."""
def elu_backward(grad_output: Tensor, alpha: Number | _complex, scale: Number | _complex, input_scale: Number | _complex, is_result: _bool, self_or_result: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `elu`: `grad_output * scale` above 0, else `grad_output * scale * alpha * input_scale *
    e^(input_scale * x)`, computed from the input `x` or, with `is_result`, from the result."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """Rows of a table: `weight` (n, d) at the `indices` (*) gives (*, d). The gradient leaves out row `padding_idx` (-1:
    none); with `scale_grad_by_freq` the gradient of each row is divided by how often the row was read, and with
    `sparse` the gradient is a sparse tensor.

    # Errors
    `IndexError` for an index that is no row of the table."""
@overload
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _bool, mode: _int, sparse: _bool, per_sample_weights: Tensor | None, include_last_offset: _bool, padding_idx: _int | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (`mode` 0), means (1) or maxima (2) of the rows of `weight` (n, d) that `indices` names, bag by bag, without
    the entries equal to `padding_idx`, which counts from the end of the table if it is negative; `None` leaves out
    none.

    Returns the bags (bags, d), the bag of each entry, the sizes of the bags (zeros for sums), and the row of each
    maximum (for other modes the sizes).

    # Errors
    `RuntimeError` for a `padding_idx` that is no row of the table."""
@overload
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _bool = False, mode: _int = 0, sparse: _bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def embedding_dense_backward(grad_output: Tensor, indices: Tensor, num_weights: _int, padding_idx: _int, scale_grad_by_freq: _bool) -> Tensor:
    """The gradient of `embedding` with respect to its table of `num_weights` rows, as a dense tensor."""
@overload
def empty(size: _size, *, memory_format: memory_format | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """A tensor of shape `size` with elements not set."""
@overload
def empty(*size: _int, memory_format: memory_format | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def empty_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """A tensor of the same shape, dtype, device and order of dimensions with elements not set."""
def empty_permuted(size: _size, physical_layout: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """A tensor of shape `size` without gaps in memory, elements not set; `physical_layout` names its dimensions from the one of
    the largest stride to that of the smallest."""
def empty_strided(size: _size, stride: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """A tensor with these sizes and strides, elements not set."""
@overload
def eq(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self == other`, element by element; never for NaN. Shapes broadcast; dtypes promote."""
@overload
def eq(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def equal(input: Tensor, other: Tensor) -> _bool:
    """Whether both tensors have the same shape and the same elements (after promotion; NaN never equals)."""
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function: `2/sqrt(π) * integral of e^(-t^2) from 0 to self`. Integers give the default floating dtype."""
def erf_(input: Tensor) -> Tensor:
    """The error function: `2/sqrt(π) * integral of e^(-t^2) from 0 to self`. Integers give the default floating dtype."""
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 - erf(self)`, without cancellation. Integers give the default floating dtype."""
def erfc_(input: Tensor) -> Tensor:
    """`1 - erf(self)`, without cancellation. Integers give the default floating dtype."""
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the error function: infinite at ±1, NaN beyond. Integers give the default floating dtype."""
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^self`. Integers give the default floating dtype."""
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`2^self`. Integers give the default floating dtype."""
def exp2_(input: Tensor) -> Tensor:
    """`2^self`. Integers give the default floating dtype."""
def exp_(input: Tensor) -> Tensor:
    """`e^self`. Integers give the default floating dtype."""
def expand_copy(input: Tensor, size: _size, *, implicit: _bool = False, out: Tensor | None = None) -> Tensor:
    """A copy with dimensions of size 1 repeated; -1 keeps a size."""
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^self - 1`, exact near 0. Integers give the default floating dtype."""
def expm1_(input: Tensor) -> Tensor:
    """`e^self - 1`, exact near 0. Integers give the default floating dtype."""
@overload
def eye(n: _int, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The n x n identity matrix."""
@overload
def eye(n: _int, m: _int, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Alpha dropout of whole channels: one random draw for each `(n, c)` of an input (N, C, ...)."""
def feature_alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Alpha dropout of whole channels in place: one random draw for each `(n, c)` of (N, C, ...)."""
def feature_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout of whole channels: in training each channel `(n, c)` of an input (N, C, ...) becomes 0 with probability `p`,
    else `input / (1 - p)` (Tompson et al. 2015)."""
def feature_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout of whole channels in place: in training each channel `(n, c)` of (N, C, ...) becomes 0 with probability `p`,
    else `self / (1 - p)`."""
@overload
def fill(input: Tensor, value: Tensor) -> Tensor:
    """A tensor like `self` with the element of the 0-dim `value` in every element."""
@overload
def fill(input: Tensor, value: Number | _complex) -> Tensor: ...
@overload
def fill_(input: Tensor, value: Tensor) -> Tensor:
    """Writes the element of the 0-dim `value` into every element."""
@overload
def fill_(input: Tensor, value: Number | _complex) -> Tensor: ...
def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The whole part, towards zero; integers are copied. The gradient is 0."""
def fix_(input: Tensor) -> Tensor:
    """The whole part, towards zero; integers are copied. The gradient is 0."""
def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """The dimensions `start_dim..=end_dim` as one."""
def flip(input: Tensor, dims: _size) -> Tensor:
    """The order of elements reversed along `dims`."""
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
@overload
def float_power(input: Tensor, exponent: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The power in double precision: `out[i] = self[i]^exponent[i]` as `float64`, or as `complex128` if either is complex."""
@overload
def float_power(self: Number | _complex, exponent: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def float_power(input: Tensor, exponent: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest whole number not above each element; integers are copied. The gradient is 0."""
def floor_(input: Tensor) -> Tensor:
    """The largest whole number not above each element; integers are copied. The gradient is 0."""
def floor_divide(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The floor of the quotient, as Python's `//`. Has no derivative."""
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of the two; if one is NaN the other. Equal elements share the gradient in halves."""
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of the two; if one is NaN the other. Equal elements share the gradient in halves."""
@overload
def fmod(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The remainder with the sign of `self`: `self - other * trunc(self / other)`, as C's `fmod`.
    Integers refuse a zero divisor; for floating-point numbers it gives NaN."""
@overload
def fmod(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What rounding towards zero leaves: `self - trunc(self)`."""
def frac_(input: Tensor) -> Tensor:
    """What rounding towards zero leaves: `self - trunc(self)`."""
def frexp(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.frexp:
    """Each number as a mantissa, `1/2 <= |mantissa| < 1`, and an exponent (`int32`): `self = mantissa * 2^exponent`. Zeros, infinities and NaN
    are their own mantissas, with exponent 0."""
def frobenius_norm(input: Tensor, dim: _int | _size, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The square root of the sum of the squared absolute values over one or two dimensions `dim`."""
def full(size: _size, fill_value: Number | _complex, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Shape `size`, every element `fill_value`; without `dtype` the number's kind decides."""
def full_like(input: Tensor, fill_value: Number | _complex, *, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The shape of `self`, every element `fill_value`."""
def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """Elements along `dim` at the indices `index`, which has the shape of the result:
    `out[i][j] = self[index[i][j]][j]` for `dim` 0."""
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor, not negative (but of the smallest integer and 0); 0 of two zeros. Integers only."""
def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, not negative (but of the smallest integer and 0); 0 of two zeros. Integers only."""
@overload
def ge(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self >= other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def ge(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    """The derivative of `gelu`: `grad_output * (Φ(x) + x φ(x))` with the standard normal density `φ`, or the derivative of
    the approximation."""
def geqrf(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.geqrf:
    """The QR decomposition of matrices (*, m, n) in LAPACK's compact form: `a` holds R in its upper triangle, and below it
    the Householder vectors `v` without their leading ones; `tau` (*, min(m, n)) holds the factors of the reflections
    `H = I - tau v v^H`. The orthogonal factor is `Q = H1 H2 ... Hk`.

    # Errors
    `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product of two vectors: `out[i, j] = self[i] * vec2[j]`, of shape (n, m) for vectors of lengths n and m.
    Dtypes promote."""
@overload
def gradient(input: Tensor, *, dim: _size, edge_order: _int = 1) -> tuple[Tensor, ...]:
    """As `gradient` along several dimensions, with points at distance 1."""
@overload
def gradient(input: Tensor, *, spacing: Number | _complex, dim: _size, edge_order: _int = 1) -> tuple[Tensor, ...]: ...
@overload
def gradient(input: Tensor, *, spacing: Number | _complex | None = None, dim: _int | None = None, edge_order: _int = 1) -> tuple[Tensor, ...]: ...
@overload
def gradient(input: Tensor, *, spacing: Sequence[Number | _complex], dim: _int | None = None, edge_order: _int = 1) -> tuple[Tensor, ...]: ...
@overload
def gradient(input: Tensor, *, spacing: Sequence[Number | _complex], dim: _size, edge_order: _int = 1) -> tuple[Tensor, ...]: ...
@overload
def gradient(input: Tensor, *, spacing: tuple[Tensor, ...] | list[Tensor], dim: _int | None = None, edge_order: _int = 1) -> tuple[Tensor, ...]: ...
@overload
def gradient(input: Tensor, *, spacing: tuple[Tensor, ...] | list[Tensor], dim: _size, edge_order: _int = 1) -> tuple[Tensor, ...]: ...
@overload
def greater(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self > other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def greater(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def greater_equal(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self >= other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def greater_equal(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """The values of `input` (N, C, *sizes) at the positions `grid` (N, *out, d), interpolated: (N, C, *out).

    The last dimension of `grid` holds coordinates from -1 to 1, that of the innermost dimension of the image first.
    `interpolation_mode` is 0 (linear), 1 (nearest) or 2 (cubic); `padding_mode` says what is
    outside of the image: 0 (zeros), 1 (the border) or 2 (reflections). With `align_corners` -1 and 1 are the centres of
    the outermost elements, else their outer edges. At the centre of an element the gradient of the position is that of
    the interval after it; where a position is clamped to the border, and for mode 1, it is 0."""
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """The values of images `input` (N, C, H, W) at the positions `grid` (N, H', W', 2), interpolated: (N, C, H', W'). The
    arguments are those of `grid_sampler`."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """The values of volumes `input` (N, C, D, H, W) at the positions `grid` (N, D', H', W', 3), interpolated: (N, C, D',
    H', W'). The arguments are those of `grid_sampler`."""
def group_norm(input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enabled: _bool = True) -> Tensor:
    """Group normalisation: `(input - mean) / sqrt(var + eps) * weight + bias`, with mean and biased variance over each of
    `num_groups` groups of channels and all dimensions after them; weight and bias have one element per channel (Wu and
    He 2018)."""
@overload
def gru(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor]:
    """`gru` over packed sequences: `data` holds the rows of all steps concatenated, `batch_sizes[t]` of them for step
    `t`, in sizes that never grow; sequences that have ended keep their state."""
@overload
def gru(input: Tensor, hx: Tensor, params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor]: ...
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of `gru`: `input` is (batch, features), `hx` is (batch, hidden). Returns the new `h`."""
@overload
def gt(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self > other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def gt(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def hamming_window(window_length: _int, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The periodic Hamming window of `n = window_length` elements: `0.54 - 0.46 cos(2 pi i / n)`."""
@overload
def hamming_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def hamming_window(window_length: _int, periodic: _bool, alpha: _float, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def hamming_window(window_length: _int, periodic: _bool, alpha: _float, beta: _float, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def hann_window(window_length: _int, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The periodic Hann window of `n = window_length` elements: `0.5 - 0.5 cos(2 pi i / n)`."""
@overload
def hann_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def hardshrink(input: Tensor, lambd: Number | _complex = 0.5) -> Tensor:
    """`self` where its absolute value is above `lambd`, else 0; NaN stays. The gradient is 0 where 0 is taken."""
def hardsigmoid_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `hardsigmoid`: `grad_output / 6` where `-3 < self < 3`, else 0."""
def hardswish_backward(grad_output: Tensor, input: Tensor) -> Tensor:
    """The derivative of `hardswish`: `grad_output * (self / 3 + 1/2)` between -3 and 3, 0 below, `grad_output` above."""
def hardtanh_backward(grad_output: Tensor, input: Tensor, min_val: Number | _complex, max_val: Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `hardtanh`: `grad_output` where `min_val < self < max_val`, else 0."""
def hash_tensor(input: Tensor, dim: _int | _size | None = (), *, keepdim: _bool = False, mode: _int = 0, out: Tensor | None = None) -> Tensor:
    """The bits of all elements over `dim` (all dimensions if empty) laid over each other by "exclusive or": of whole numbers
    those of their int64, of others those of their double. Gives uint64; `mode` has to be 0."""
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The step function: 0 below 0, 1 above, `values` at 0; 0 for NaN. Both inputs have one dtype."""
def histc(input: Tensor, bins: _int = 100, min: Number | _complex = 0, max: Number | _complex = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements lie in each of `bins` bins of equal width between `min` and `max`; if these are equal, between the
    smallest and the largest element. Nothing gives zeros."""
@overload
def histogram(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.histogram:
    """As `histogram` with the edges of the bins, in ascending order."""
@overload
def histogram(input: Tensor, bins: _int = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.histogram: ...
@overload
def hsplit(input: Tensor, sections: _int) -> tuple[Tensor, ...]:
    """`sections` equal splits by columns: along the second dimension, of a vector along its only one."""
@overload
def hsplit(input: Tensor, indices: _size) -> tuple[Tensor, ...]: ...
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix, (m, k), and a dense one, (k, n): a coordinate list of its rows, those that can be other
    than zero, with the columns as dense dimension."""
def hstack(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins vectors end to end and other tensors along dimension 1."""
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The length of the hypotenuse: `sqrt(self^2 + other^2)` without overflow."""
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, order 0; NaN at infinity. Integers give the default floating dtype."""
def i0_(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, order 0; NaN at infinity. Integers give the default floating dtype."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function `P(self, other)`; NaN for negative arguments. It has no derivative by `self`."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function `Q(self, other) = 1 - P(self, other)`; NaN for negative arguments. It has no
    derivative by `self`."""
def imag(input: Tensor) -> Tensor:
    """A view of the imaginary parts of a complex tensor."""
def index(input: Tensor, indices: tuple[Tensor | None, ...] | list[Tensor | None]) -> Tensor:
    """The elements at the indices that `indices` name: one index tensor per dimension (`None` takes all of it), which
    broadcast together. Masks stand for the coordinates of their true elements. Negative indices count from the end."""
def index_add(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """Adds slices: `self[:, index[j]] += alpha * source[:, j]` along `dim`."""
def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Writes slices: `self[:, index[j]] = source[:, j]` along `dim`."""
@overload
def index_fill(input: Tensor, dim: _int, index: Tensor, value: Tensor) -> Tensor:
    """Writes the 0-dim `value` into the slices `index` along `dim`."""
@overload
def index_fill(input: Tensor, dim: _int, index: Tensor, value: Number | _complex) -> Tensor: ...
def index_put(input: Tensor, indices: tuple[Tensor | None, ...] | list[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """Writes `values`, broadcast, at the indices that `indices` name (see `index`); with `accumulate` adds them."""
def index_put_(input: Tensor, indices: tuple[Tensor | None, ...] | list[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """Writes `values`, broadcast, at the indices that `indices` name (see `index`); with `accumulate` adds them."""
def index_reduce(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """Joins the slices of `source` with those at the indices `index` along `dim`: `reduce` is "prod", "mean", "amax" or "amin";
    what is there takes part if `include_self`. Gradients are those of `scatter_reduce`."""
def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Slices along `dim` at the indices `index` (a vector): `out[:, j] = self[:, index[j]]`."""
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last dimensions of both tensors: shapes (*a, k) and (*b, k) give (*a, *b). For two vectors
    this is the dot product; a 0-dimensional tensor multiplies every element of the other."""
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool) -> Tensor:
    """Instance normalisation: `(input - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance of each
    channel `(n, c)` of an input (N, C, ...). The running statistics move towards the mean of the examples' statistics
    (Ulyanov et al. 2016)."""
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices (*, n, n).

    # Errors
    `LinAlgError` for a singular matrix; `RuntimeError` for matrices that are not square; `NotImplementedError` for half
    precision and integer dtypes."""
def is_nonzero(input: Tensor) -> _bool:
    """Whether the only element is not zero."""
def isclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """Whether `|self - other| <= atol + rtol * |other|`, element by element. Equal infinities are close; NaN
    only to NaN and with `equal_nan`. Both tensors have one dtype."""
def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN; of a complex number, whether both parts are."""
@overload
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor:
    """Whether each element is among `test_elements`: n of them and m others take the time of sorting m and n searches.
    `assume_unique` says that neither repeats, which changes nothing here."""
@overload
def isin(element: Number | _complex, test_elements: Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def isin(elements: Tensor, test_element: Number | _complex, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor: ...
def isinf(input: Tensor) -> Tensor:
    """Whether each element is infinite; of a complex number, whether either part is."""
def isnan(input: Tensor) -> Tensor:
    """Whether each element is NaN; of a complex number, whether either part is."""
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is minus infinity. Complex numbers are refused."""
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is plus infinity. Complex numbers are refused."""
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part of each element is zero: always, if it has none."""
def istft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
    """The inverse of `torch.stft`: frames are transformed back, multiplied by the window, added where they overlap, and
    divided by the sum of the squared windows, which must not vanish. `length` cuts the signal off or pads it with
    zeros."""
@overload
def kaiser_window(window_length: _int, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The periodic Kaiser window with `beta` 12 of `n = window_length` elements:
    `I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta)`."""
@overload
def kaiser_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def kaiser_window(window_length: _int, periodic: _bool, beta: _float, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def kl_div(input: Tensor, target: Tensor, reduction: _int = 1, *, log_target: _bool = False) -> Tensor:
    """The Kullback-Leibler divergence `target (ln(target) - self)`, where `self` holds logarithms, element by element,
    reduced: 0 (none), 1 (the mean over all elements) or 2 (sum). With `log_target` the target is given as its
    logarithm. `0 ln 0` counts as 0."""
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: a block matrix whose blocks are each element of `self` times the whole of `other`. Sizes
    multiply; missing leading dimensions count as 1."""
def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.kthvalue:
    """The `k`-th smallest element along `dim` (counted from 1) and its index."""
def layer_norm(input: Tensor, normalized_shape: _size, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enable: _bool = True) -> Tensor:
    """`(input - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance over the trailing
    dimensions `normalized_shape` (Ba et al. 2016)."""
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple, not negative unless it wraps; 0 if either is. Integers only."""
def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple, not negative unless it wraps; 0 if either is. Integers only."""
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiplies by a power of two: `out[i] = self[i] * 2^other[i]`. With whole powers the result has the dtype of `self`
    (the default one if that is whole too), and is rounded once."""
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """Multiplies by a power of two: `out[i] = self[i] * 2^other[i]`. With whole powers the result has the dtype of `self`
    (the default one if that is whole too), and is rounded once."""
@overload
def le(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self <= other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def le(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def leaky_relu_backward(grad_output: Tensor, input: Tensor, negative_slope: Number | _complex, self_is_result: _bool, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `leaky_relu`: `grad_output` above 0, else `negative_slope * grad_output`, by the sign of the input
    or, with `self_is_result`, of the result, for which `negative_slope` must not be negative."""
@overload
def lerp(input: Tensor, end: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`start + weight * (end - start)`; all three broadcast and have one dtype."""
@overload
def lerp(input: Tensor, end: Tensor, weight: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def less(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self < other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def less(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def less_equal(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self <= other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def less_equal(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function; infinite at 0 and the negative whole numbers."""
@overload
def linspace(start: Tensor, end: Tensor, steps: _int, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """`steps` numbers evenly spaced from `start` to `end`, both included. Both bounds are in 0-dim tensors."""
@overload
def linspace(start: Number | _complex, end: Tensor, steps: _int, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def linspace(start: Tensor, end: Number | _complex, steps: _int, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def linspace(start: Number | _complex, end: Number | _complex, steps: _int, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; NaN for negative real numbers, -inf at 0. Integers give the default floating dtype."""
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10. Integers give the default floating dtype."""
def log10_(input: Tensor) -> Tensor:
    """The logarithm to base 10. Integers give the default floating dtype."""
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ln(1 + self)`, exact near 0. Integers give the default floating dtype."""
def log1p_(input: Tensor) -> Tensor:
    """`ln(1 + self)`, exact near 0. Integers give the default floating dtype."""
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2. Integers give the default floating dtype."""
def log2_(input: Tensor) -> Tensor:
    """The logarithm to base 2. Integers give the default floating dtype."""
def log_(input: Tensor) -> Tensor:
    """The natural logarithm; NaN for negative real numbers, -inf at 0. Integers give the default floating dtype."""
def log_sigmoid_backward(grad_output: Tensor, input: Tensor) -> Tensor:
    """The derivative of `log_sigmoid`: `grad_output * sigmoid(-self)`."""
def log_softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """`ln(softmax(self, dim))`, computed in `dtype` if one is given, without underflow."""
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ln(e^self + e^other)` without overflow."""
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`log2(2^self + 2^other)` without overflow."""
def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """`ln` of the running sum of `e^self` along `dim`, without overflow."""
def logdet(input: Tensor) -> Tensor:
    """The natural logarithm of the determinant of matrices (*, n, n), of shape (*). It is NaN where a real determinant is
    negative and -inf where it is 0; the determinant of a matrix of order 0 is 1.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether both are not zero; NaN counts as not zero."""
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is zero."""
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether at least one is not zero; NaN counts as not zero."""
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one is not zero; NaN counts as not zero."""
def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """`ln(x / (1 - x))` of `self`, limited to `eps..=1 - eps` if `eps` is given and not negative: infinite at 0 and 1, NaN outside, as is
    the gradient there; where the limits hold it is 0."""
def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """`ln(x / (1 - x))` of `self`, limited to `eps..=1 - eps` if `eps` is given and not negative: infinite at 0 and 1, NaN outside, as is
    the gradient there; where the limits hold it is 0."""
@overload
def logspace(start: Tensor, end: Tensor, steps: _int, base: _float = 10.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """`base` to the power of `steps` numbers evenly spaced from `start` to `end`. Both bounds are in 0-dim tensors."""
@overload
def logspace(start: Number | _complex, end: Tensor, steps: _int, base: _float = 10.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def logspace(start: Tensor, end: Number | _complex, steps: _int, base: _float = 10.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def logspace(start: Number | _complex, end: Number | _complex, steps: _int, base: _float = 10.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def logsumexp(input: Tensor, dim: _int | _size, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials, `ln(sum(e^self))`, over `dim`. It is shifted by the maximum, so that it
    does not overflow. Integers give the default floating dtype; a sum of no elements gives -inf."""
@overload
def lstm(data: Tensor, batch_sizes: Tensor, hx: tuple[Tensor, ...] | list[Tensor], params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor, Tensor]:
    """`lstm` over packed sequences: `data` holds the rows of all steps concatenated, `batch_sizes[t]` of them for step
    `t`, in sizes that never grow; sequences that have ended keep their state."""
@overload
def lstm(input: Tensor, hx: tuple[Tensor, ...] | list[Tensor], params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor, Tensor]: ...
def lstm_cell(input: Tensor, hx: tuple[Tensor, ...] | list[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: `input` is (batch, features), `hx` the pair `h, c` of (batch, hidden). Returns the new pair."""
@overload
def lt(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self < other`, element by element; never for NaN. Complex numbers are refused."""
@overload
def lt(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = self`, where `LU_data` and `LU_pivots` are what `torch.linalg.lu_factor` gives for `A`.
    `torch.linalg.lu_solve`, which takes the factorisation first, is preferred."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.lu_unpack:
    """The factors `P`, `L` and `U` of the compact form that `torch.linalg.lu_factor` gives. Without `unpack_data`, `L` and
    `U` are empty; without `unpack_pivots`, `P` is."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`value`, a tensor without dimensions, where `mask` (bool, broadcast) holds, else `self`."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the elements of `source`, in row-major order, to the indices where `mask` (bool) is true; `self` and `mask`
    broadcast together."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where `mask` (bool) is true, in row-major order, as a vector; the shapes broadcast."""
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product: vectors give a dot product, a matrix and a vector a vector, matrices a matrix; further
    leading dimensions are batches, which broadcast. Dtypes must be equal."""
def matrix_exp(input: Tensor) -> Tensor:
    """The matrix exponential `I + A + A^2 / 2! + A^3 / 3! + ...` of matrices (*, n, n), computed in double precision by
    scaling and squaring (N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
    Matrices with infinities or NaN give NaN.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for integer dtypes."""
def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th power of matrices (*, m, m), by repeated squaring. For `n` = 0 it is the identity, for negative `n` a
    power of the inverse.

    # Errors
    `RuntimeError` for matrices that are not square; for negative `n` also `LinAlgError` where there is no inverse."""
@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest of all elements. Equal ones share the gradient evenly."""
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.max: ...
def max_pool1d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> Tensor:
    """The largest element of each window; the last dimension is pooled. NaN counts as largest; the gradient goes to the first of
    equal elements."""
def max_pool1d_with_indices(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """The largest element of each window of the last dimension, and its index. NaN counts as largest; of equal elements
    the first counts."""
def max_pool2d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> Tensor:
    """The largest element of each window; the last two dimensions are pooled. NaN counts as largest; the gradient goes to the first of
    equal elements."""
def max_pool2d_with_indices_backward(grad_output: Tensor, input: Tensor, kernel_size: _int | _size, stride: _int | _size, padding: _int | _size, dilation: _int | _size, ceil_mode: _bool, indices: Tensor) -> Tensor:
    """The gradient of `max_pool2d_with_indices` with respect to its input `self`, of which only shape and dtype matter:
    its own gradient is zero."""
def max_pool3d(input: Tensor, kernel_size: _int | _size, stride: _int | _size | None = (), padding: _int | _size = 0, dilation: _int | _size = 1, ceil_mode: _bool = False) -> Tensor:
    """The largest element of each window; the last three dimensions are pooled. NaN counts as largest; the gradient goes to the first of
    equal elements."""
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of the two; NaN if either is. Equal elements share the gradient in halves."""
@overload
def mean(input: Tensor, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The mean of all elements; NaN of none. Integers need `dtype`."""
@overload
def mean(input: Tensor, dim: _int | _size | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def median(input: Tensor) -> Tensor:
    """The lower median of all elements; NaN if there is one or no element."""
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.median: ...
@overload
def meshgrid(tensors: tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]:
    """Coordinate grids of vectors: output `i` varies along dimension `i` only. Warns that `indexing` should be said."""
@overload
def meshgrid(tensors: tuple[Tensor, ...] | list[Tensor], *, indexing: str) -> tuple[Tensor, ...]: ...
@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest of all elements. Equal ones share the gradient evenly."""
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.min: ...
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of the two; NaN if either is. Equal elements share the gradient in halves."""
def mish_backward(grad_output: Tensor, input: Tensor) -> Tensor:
    """The derivative of `mish`: `grad_output * (t + x s (1 - t^2))` with `s = sigmoid(x)`, `t = tanh(ln(1 + e^x))`."""
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices: `out[i, j] = sum over k of self[i, k] * mat2[k, j]`; (m, k) times (k, n).
    Integers wrap; dtypes must be equal."""
def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.mode:
    """The most frequent element along `dim` and where it stands last; of equally frequent ones the smallest. Each NaN
    is a value of its own."""
@overload
def moveaxis(input: Tensor, source: _int, destination: _int) -> Tensor:
    """Dimension `source` moved to `destination`."""
@overload
def moveaxis(input: Tensor, source: _size, destination: _size) -> Tensor: ...
@overload
def movedim(input: Tensor, source: _int, destination: _int) -> Tensor:
    """Dimension `source` moved to `destination`."""
@overload
def movedim(input: Tensor, source: _size, destination: _size) -> Tensor: ...
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The values of `sort` along the first dimension."""
def mul(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Multiplies by `other`: `out[i] = self[i] * other[i]`.
    Shapes broadcast; dtypes promote; for bool this is "and"."""
def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """`num_samples` category numbers per row of weights `self` ((n) or (m, n)), with or without replacement."""
def multiply(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Multiplies by `other`: `out[i] = self[i] * other[i]`.
    Shapes broadcast; dtypes promote; for bool this is "and"."""
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A matrix times a vector: `out[i] = sum over k of self[i, k] * vec[k]`."""
def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(self - i/2)` for `i` below `p`, and
    `p (p-1) / 4 ln π`. Integers give the default floating dtype; `p` is at least 1."""
def nan_to_num(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """NaN replaced by `nan` (0), positive infinity by `posinf` (the dtype's largest number) and negative
    infinity by `neginf` (its smallest). The gradient there is 0."""
def nan_to_num_(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """NaN replaced by `nan` (0), positive infinity by `posinf` (the dtype's largest number) and negative
    infinity by `neginf` (its smallest). The gradient there is 0."""
def nanmean(input: Tensor, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The mean over `dim` (all dimensions if `None`) of what is not NaN."""
@overload
def nanmedian(input: Tensor) -> Tensor:
    """The lower median of all elements that are not NaN; NaN if there is none."""
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.nanmedian: ...
@overload
def nanquantile(input: Tensor, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """As `quantile` of the elements that are numbers; NaN where there are none."""
@overload
def nanquantile(input: Tensor, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
def nansum(input: Tensor, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The sum over `dim` (all dimensions if `None`) with NaN taken as zero. Complex numbers are refused."""
@overload
def narrow(input: Tensor, dim: _int, start: Tensor, length: _int) -> Tensor:
    """As `narrow`, with a 0-dim integer tensor for `start`."""
@overload
def narrow(input: Tensor, dim: _int, start: _int, length: _int) -> Tensor: ...
def narrow_copy(input: Tensor, dim: _int, start: _int, length: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the `length` indices of dimension `dim` from `start` on."""
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` together with the mean and `1 / sqrt(var + eps)` of the batch per channel (empty outside training)."""
def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """The channels of (N, C, *) in a new order: those of the `groups` groups interleaved, one of each group in turn.
    `groups` divides C."""
def native_dropout(input: Tensor, p: _float, train: _bool | None) -> tuple[Tensor, Tensor]:
    """Dropout together with the bool mask of the elements that were kept. `train` of `None` means training; outside
    training the first result is a copy and the mask is all true. With `p` = 1 everything is 0."""
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: _float, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `native_dropout`: `grad_output * mask * scale`."""
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` together with the mean and `1 / sqrt(var + eps)` of each group, (N, group), which have gradients too."""
def native_layer_norm(input: Tensor, normalized_shape: _size, weight: Tensor | None, bias: Tensor | None, eps: _float) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm` together with the mean and `1 / sqrt(var + eps)` of each row."""
@overload
def ne(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote."""
@overload
def ne(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
def neg_(input: Tensor) -> Tensor:
    """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
def negative_(input: Tensor) -> Tensor:
    """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next number that the dtype has after `self` on the way to `other`; `other` where they are equal. The gradient is
    that of `self`, or zero where they are equal."""
def nll_loss2d_forward(input: Tensor, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.nll_loss2d_forward:
    """The negative log likelihood loss of (N, C, d1, ...), and the sum of the weights of the targets."""
def nll_loss_forward(input: Tensor, target: Tensor, weight: Tensor | None, reduction: _int, ignore_index: _int, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.nll_loss_forward:
    """The negative log likelihood loss of (C) or (N, C), and the sum of the weights of the targets."""
def nonzero(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The coordinates of the elements that are not zero, one row each, in row-major order: (count, ndim)."""
def nonzero_numpy(input: Tensor) -> tuple[Tensor, ...]:
    """As `nonzero`, one vector per dimension (a number counts as a vector)."""
def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1, out: Tensor | None = None) -> Tensor:
    """The indices of the first `size` elements that are not zero, a row each, in row-major order; rows of `fill_value` where
    there are fewer."""
@overload
def norm(input: Tensor, p: Number | _complex | None = 2, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of order `p` (2 if `None`) over `dim` (all dimensions if `None`), computed in `dtype`: `sum(|x|^p)^(1/p)`.
    At 0 the gradient is 0. `torch.linalg.norm` is preferred."""
@overload
def norm(input: Tensor, p: str, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def normal(mean: Tensor, std: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Normal numbers with means and standard deviations element by element; the shapes broadcast."""
@overload
def normal(mean: Tensor, std: _float = 1.0, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def normal(mean: _float, std: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def normal(mean: _float, std: _float, size: _size, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def not_equal(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote."""
@overload
def not_equal(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def nuclear_norm(input: Tensor, dim: _int | _size, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The nuclear norm, which is the sum of the singular values, of the matrices in the two dimensions `dim`."""
@overload
def nuclear_norm(input: Tensor, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ones(size: _size, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Ones of shape `size`."""
@overload
def ones(*size: _int, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def ones_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Ones in the shape of `self`."""
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of the product `H1 H2 ... Hk` of Householder reflections, whose vectors are below the diagonal
    of `input` (*, m, n), m >= n, and whose factors are `tau` (*, k), k <= n. The columns of the result (*, m, n) are
    orthonormal if the reflections are those of a QR decomposition.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes."""
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The product `Q C` of the square matrix `Q = H1 H2 ... Hk` of Householder reflections in compact form (vectors below
    the diagonal of `self`, factors `input2`) with `C` = `input3`; `C Q` unless `left`; with `transpose`, `Q^H` takes
    the place of `Q`. The matrix `Q` is never formed.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product of two vectors: `out[i, j] = self[i] * vec2[j]`, of shape (n, m) for vectors of lengths n and m.
    Dtypes promote."""
def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """Distances between the rows of a matrix `self` (N, M): the norms of order `p` of the differences of all pairs of
    rows, those of the first row first, a vector of length N (N - 1) / 2. Where rows are equal the gradient is 0."""
def permute(input: Tensor, dims: _size) -> Tensor:
    """The dimensions in another order."""
def permute_copy(input: Tensor, dims: _size, *, out: Tensor | None = None) -> Tensor:
    """A copy with the dimensions in another order."""
def pinverse(input: Tensor, rcond: _float = 1e-15) -> Tensor:
    """The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n): singular values not above `rcond` times the largest
    count as zero. `torch.linalg.pinv` is preferred."""
def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor:
    """Rearranges channels into pixels: `(*, C r^2, H, W)` becomes `(*, C, H r, W r)` with `r = upscale_factor`."""
def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor:
    """Rearranges pixels into channels, the inverse of `pixel_shuffle`: `(*, C, H r, W r)` becomes `(*, C r^2, H, W)` with
    `r = downscale_factor`."""
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers of the rates `self`: `P(k) = rate^k e^-rate / k!`. Rates are not negative; an infinite one gives itself."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex tensor with absolute values `abs` and angles `angle` in radians: `abs * (cos(angle) + i sin(angle))`.
    Both broadcast and have one dtype: float16, float32 or float64."""
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th derivative of `digamma`; infinite at 0 and the negative whole numbers."""
def positive(input: Tensor) -> Tensor:
    """`+self`: the tensor itself; bool is refused."""
@overload
def pow(input: Tensor, exponent: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Raises to the power: `out[i] = self[i]^exponent[i]`. Shapes broadcast; dtypes promote. By `self` the
    gradient is 0 where the exponent is 0, by `exponent` it is 0 where the base is 0 and the exponent not negative."""
@overload
def pow(self: Number | _complex, exponent: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow(input: Tensor, exponent: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The parametric rectified linear unit: `self` where it is above 0, else `weight * self`, with one weight for all
    elements or one per channel (dimension 1). The gradient of `self` at 0 is `weight`."""
@overload
def prod(input: Tensor, *, dtype: _dtype | None = None) -> Tensor:
    """The product of all elements; 1 of none. Integers and bools multiply in int64 unless `dtype` is given. The
    gradient is exact at zeros too."""
@overload
def prod(input: Tensor, dim: _int, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """Writes (or adds) the elements of `source` at row-major positions of `self`."""
@overload
def quantile(input: Tensor, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """The quantiles `q`, a number or vector, over `dim` or all elements; of a vector they are the first dimension of the
    result. `interpolation` says what lies between two elements: linear, the lower, higher or nearest (half to even) of
    them, or their midpoint. Float and double only."""
@overload
def quantile(input: Tensor, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians to degrees: `self * 180 / π`."""
def rad2deg_(input: Tensor) -> Tensor:
    """Radians to degrees: `self * 180 / π`."""
@overload
def rand(size: _size, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Uniform numbers in `[0, 1)`."""
@overload
def rand(*size: _int, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def rand_like(input: Tensor, *, generator: Generator | None = None, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Uniform numbers in `[0, 1)` in the shape of `self`."""
@overload
def randint(high: _int, size: _size, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Whole numbers in `[0, high)`; int64 unless `dtype` is given."""
@overload
def randint(low: _int, high: _int, size: _size, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def randint_like(input: Tensor, high: _int, *, generator: Generator | None = None, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Whole numbers in `[0, high)` in the shape and dtype of `self`."""
@overload
def randint_like(input: Tensor, low: _int, high: _int, *, generator: Generator | None = None, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def randn(size: _size, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Standard normal numbers."""
@overload
def randn(*size: _int, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def randn_like(input: Tensor, *, generator: Generator | None = None, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Standard normal numbers in the shape of `self`."""
def randperm(n: _int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """A random permutation of `0..n`."""
@overload
def range(start: Number | _complex, end: Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The numbers `start`, `start + 1`, ... up to `end`, which is included; of the default floating dtype unless `dtype` is
    given. Deprecated: `arange` is what everybody expects."""
@overload
def range(start: Number | _complex, end: Number | _complex, step: Number | _complex = 1, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def ravel(input: Tensor) -> Tensor:
    """The elements in row-major order as a vector; copies only if the memory's order asks for it."""
def real(input: Tensor) -> Tensor:
    """A view of the real parts; real tensors are returned as they are."""
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / self`. Integers give the default floating dtype."""
def reciprocal_(input: Tensor) -> Tensor:
    """`1 / self`. Integers give the default floating dtype."""
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The rectified linear unit `max(self, 0)`, element by element; NaN stays NaN. The gradient at 0 is 0."""
def relu_(input: Tensor) -> Tensor:
    """The rectified linear unit `max(self, 0)`, element by element; NaN stays NaN. The gradient at 0 is 0."""
@overload
def remainder(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The remainder with the sign of `other`: `self - other * floor(self / other)`, as Python's `%`.
    Integers refuse a zero divisor; for floating-point numbers it gives NaN."""
@overload
def remainder(self: Number | _complex, other: Tensor) -> Tensor: ...
@overload
def remainder(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def renorm(input: Tensor, p: Number | _complex, dim: _int, maxnorm: Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Scales down those slices along `dim` whose norm of order `p` is above `maxnorm`, so that it becomes `maxnorm`; the
    others stay unchanged. Norms of half-precision slices are computed in single precision."""
@overload
def repeat_interleave(input: Tensor, repeats: Tensor, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
    """Each element (or slice along `dim`) repeated `repeats[i]` times; without `dim` the tensor is flattened."""
@overload
def repeat_interleave(repeats: Tensor, *, output_size: _int | None = None) -> Tensor: ...
@overload
def repeat_interleave(input: Tensor, repeats: _int, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor: ...
def reshape(input: Tensor, shape: _size) -> Tensor:
    """The same elements with another shape; copies only if the memory's order asks for it."""
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, unless it is a view of conjugates (`is_conj()`): then a copy that holds them."""
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself, unless it is a view of negatives (`is_neg()`): then a copy that holds them."""
def rms_norm(input: Tensor, normalized_shape: _size, weight: Tensor | None = None, eps: _float | None = None) -> Tensor:
    """`input / sqrt(mean(input^2) + eps) * weight` over the trailing dimensions `normalized_shape`; `eps` is the
    dtype's machine epsilon if not given (Zhang and Sennrich 2019)."""
@overload
def rnn_relu(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor]:
    """`rnn_relu` over packed sequences: `data` holds the rows of all steps concatenated, `batch_sizes[t]` of them for step
    `t`, in sizes that never grow; sequences that have ended keep their state."""
@overload
def rnn_relu(input: Tensor, hx: Tensor, params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor]: ...
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of `rnn_relu`: `input` is (batch, features), `hx` is (batch, hidden). Returns the new `h`."""
@overload
def rnn_tanh(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor]:
    """`rnn_tanh` over packed sequences: `data` holds the rows of all steps concatenated, `batch_sizes[t]` of them for step
    `t`, in sizes that never grow; sequences that have ended keep their state."""
@overload
def rnn_tanh(input: Tensor, hx: Tensor, params: tuple[Tensor, ...] | list[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor]: ...
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of `rnn_tanh`: `input` is (batch, features), `hx` is (batch, hidden). Returns the new `h`."""
def roll(input: Tensor, shifts: _int | _size, dims: _int | _size | None = ()) -> Tensor:
    """Elements moved by `shifts` along `dims`, those that leave at the end come in at the start; without `dims` the
    tensor is rolled as if it were flat."""
def rot90(input: Tensor, k: _int = 1, dims: _size = (0, 1)) -> Tensor:
    """The plane of `dims` rotated by `k` quarter turns from the first of them towards the second."""
@overload
def round(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The nearest whole number, ties to even; integers are copied. The gradient is 0."""
@overload
def round(input: Tensor, *, decimals: _int, out: Tensor | None = None) -> Tensor: ...
@overload
def round_(input: Tensor) -> Tensor:
    """The nearest whole number, ties to even; integers are copied. The gradient is 0."""
@overload
def round_(input: Tensor, *, decimals: _int) -> Tensor: ...
def row_stack(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along dimension 0; vectors are rows."""
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / sqrt(self)`. Integers give the default floating dtype."""
def rsqrt_(input: Tensor) -> Tensor:
    """`1 / sqrt(self)`. Integers give the default floating dtype."""
@overload
def rsub(input: Tensor, other: Tensor, *, alpha: Number | _complex = 1) -> Tensor:
    """Subtracts `self`, multiplied by `alpha`, from `other`: `out[i] = other[i] - alpha * self[i]`."""
@overload
def rsub(input: Tensor, other: Number | _complex, alpha: Number | _complex = 1) -> Tensor: ...
@overload
def rsub(input: Tensor, alpha: Number | _complex, other: Tensor) -> Tensor: ...
def scalar_tensor(s: Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """A 0-dim tensor of `s`; the default floating dtype unless `dtype` is given."""
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Writes the elements of `src` at the indices `index` along `dim`: `self[index[i][j]][j] = src[i][j]` for `dim` 0. Of
    repeated indices the last one stays."""
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: str, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, value: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, value: Number | _complex, *, reduce: str, out: Tensor | None = None) -> Tensor: ...
def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Adds the elements of `src` at the indices `index` along `dim`."""
def scatter_reduce(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """Joins the elements of `src` at the indices `index` along `dim`: `reduce` is "sum", "prod", "mean", "amax" or "amin";
    what is there takes part if `include_self`. Ties of "amax" and "amin" share the gradient evenly. Where factors of a
    product are zero its derivatives are right up to the fourth."""
@overload
def searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: _bool = False, right: _bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """For each of `self`'s values the first position in its row of `sorted_sequence` where it could be inserted (after equal
    elements if `right`)."""
@overload
def searchsorted(sorted_sequence: Tensor, self: Number | _complex, *, out_int32: _bool = False, right: _bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor: ...
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None, axis: _int = 0, unsafe: _bool = False, initial: Number | _complex | None = None, out: Tensor | None = None) -> Tensor:
    """Reduces segments of `data` along `axis` by "sum", "mean", "max", "min" or "prod". `lengths` (*, segments) says how long
    they are, or `offsets` (*, segments + 1) where they begin and end; * are the dimensions before `axis`. `initial` takes
    part in each segment; without it an empty one gives 0, NaN, -inf, inf or 1. Equal maxima or minima share the gradient evenly.
    Unless `unsafe`, `lengths` must not be negative and must cover `axis`."""
def select(input: Tensor, dim: _int, index: _int) -> Tensor:
    """The slice at `index` of dimension `dim`, without that dimension."""
def select_copy(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the slice at `index` of dimension `dim`, without that dimension."""
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int) -> Tensor:
    """A copy of `self` with `src` at `index` of dimension `dim`."""
def selu(input: Tensor) -> Tensor:
    """The scaled exponential linear unit: `elu` with the constants that preserve mean 0 and variance 1 (Klambauer et al.
    2017)."""
def selu_(input: Tensor) -> Tensor:
    """The scaled exponential linear unit: `elu` with the constants that preserve mean 0 and variance 1 (Klambauer et al.
    2017)."""
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self / |self|`, 0 at 0: the sign, or for complex numbers the direction."""
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + e^-self)`. Integers give the default floating dtype."""
def sigmoid_(input: Tensor) -> Tensor:
    """`1 / (1 + e^-self)`. Integers give the default floating dtype."""
def sigmoid_backward(grad_output: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `sigmoid` from its result `y`: `grad_output * conj(y (1 - y))`."""
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 by the sign; 0 for NaN. The gradient is 0. Complex numbers are refused."""
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign of a number is set, of zero and NaN too."""
def silu_backward(grad_output: Tensor, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `silu`: `grad_output * conj(s (1 + x (1 - s)))` with `s = sigmoid(x)`."""
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine."""
def sin_(input: Tensor) -> Tensor:
    """The sine."""
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`sin(πx) / (πx)`, 1 at 0 with gradient 0. Integers give the default floating dtype."""
def sinc_(input: Tensor) -> Tensor:
    """`sin(πx) / (πx)`, 1 at 0 with gradient 0. Integers give the default floating dtype."""
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine: `(e^self - e^-self) / 2`."""
def sinh_(input: Tensor) -> Tensor:
    """The hyperbolic sine: `(e^self - e^-self) / 2`."""
def slice(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """Every `step`-th index of dimension `dim` from `start` up to `end`; both may count from the end."""
def slice_copy(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of every `step`-th index of dimension `dim` from `start` up to `end`; both may count from the end."""
def slice_inverse(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """What `self` is the slice of, seen in the memory around it as `src` is seen in its own."""
def slice_scatter(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of `self` with `src` at every `step`-th index of dimension `dim` from `start` up to `end`."""
def slogdet(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.slogdet:
    """The sign of the determinant of square matrices (*, n, n) and the natural logarithm of its absolute value, both of
    shape (*). `sign` has absolute value 1; the logarithm is real and does not overflow where the determinant would. A
    singular matrix gives 0 and -inf.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix, (m, k), and a dense one, (k, n), as a coordinate list: all elements of the rows that the
    first one specifies elements of."""
def softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """`e^self / sum(e^self)` along `dim`, computed in `dtype` if one is given. It is shifted by the maximum, so that it
    does not overflow; a row of only -inf gives NaN."""
def softplus_backward(grad_output: Tensor, input: Tensor, beta: Number | _complex, threshold: Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `softplus`: `grad_output * sigmoid(beta * self)`, and `grad_output` where
    `beta * self > threshold`."""
@overload
def sort(input: Tensor, *, stable: _bool | None, dim: _int = -1, descending: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.sort:
    """As `sort`; every sort here is stable."""
@overload
def sort(input: Tensor, dim: _int = -1, descending: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.sort: ...
@overload
def sparse_coo_tensor(size: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Zeros of the sizes `size`, all dimensions sparse, none of them specified."""
@overload
def sparse_coo_tensor(*size: _int, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def sparse_coo_tensor(indices: Tensor, values: Tensor, *, is_coalesced: _bool | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def sparse_coo_tensor(indices: Tensor, values: Tensor, size: _size, *, is_coalesced: _bool | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
@overload
def split(tensor: Tensor, split_size_or_sections: _size, dim: _int = 0) -> tuple[Tensor, ...]:
    """Splits of the given sizes along `dim`, which must add up to its size."""
@overload
def split(tensor: Tensor, split_size_or_sections: Tensor, dim: _int = 0) -> tuple[Tensor, ...]: ...
@overload
def split(tensor: Tensor, split_size_or_sections: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
def split_copy(input: Tensor, split_size: _int, dim: _int = 0, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Copies of the splits of size `split_size` along `dim`; the last one is smaller if it does not divide."""
def split_with_sizes(input: Tensor, split_sizes: _size, dim: _int = 0) -> tuple[Tensor, ...]:
    """Splits of the given sizes along `dim`, which must add up to its size."""
def split_with_sizes_copy(input: Tensor, split_sizes: _size, dim: _int = 0, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Copies of the splits of the given sizes along `dim`, which must add up to its size."""
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root; NaN for negative real numbers. Integers give the default floating dtype."""
def sqrt_(input: Tensor) -> Tensor:
    """The square root; NaN for negative real numbers. Integers give the default floating dtype."""
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * self`; bool gives int64."""
def square_(input: Tensor) -> Tensor:
    """`self * self`; bool gives int64."""
@overload
def squeeze(input: Tensor) -> Tensor:
    """Without its dimensions of size 1."""
@overload
def squeeze(input: Tensor, dim: _int) -> Tensor: ...
@overload
def squeeze(input: Tensor, dim: _size) -> Tensor: ...
@overload
def squeeze_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy without the dimensions of size 1."""
@overload
def squeeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze_copy(input: Tensor, dim: _size, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)` of coordinate lists `self`, (m, n), and `mat1`, (m, k), and a dense `mat2`, (k, n)."""
@overload
def sspaddmm(beta: Number | _complex, input: Tensor, alpha: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def sspaddmm(beta: Number | _complex, input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor: ...
def stack(tensors: tuple[Tensor, ...] | list[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors of equal shape along a new dimension. Where channels of images lie together in all tensors, they do in the
    result, unless the new dimension is the last."""
@overload
def std(input: Tensor, dim: _int | _size | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The standard deviation over `dim` (all dimensions if `None`)."""
@overload
def std(input: Tensor, dim: _int | _size | None = None, *, correction: Number | _complex | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def std(input: Tensor, unbiased: _bool = True) -> Tensor: ...
@overload
def std_mean(input: Tensor, dim: _int | _size | None, unbiased: _bool = True, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over `dim` (all dimensions if `None`)."""
@overload
def std_mean(input: Tensor, dim: _int | _size | None = None, *, correction: Number | _complex | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
@overload
def std_mean(input: Tensor, unbiased: _bool = True) -> tuple[Tensor, Tensor]: ...
def stft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: str = "reflect", normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
    """The short-time Fourier transform: the spectra of overlapping frames of a signal (length) or (batch, length), of
    shape (batch, frequencies, frames).

    Frames have `n_fft` elements, `hop_length` (a quarter of `n_fft` by default) from one to the next, multiplied by
    `window`, which is padded with zeros from `win_length` to `n_fft` elements. With `center` the first frame is centred
    at the beginning of the signal, which is padded at both ends by `pad_mode`. `normalized` divides by the square root
    of `n_fft`; `onesided`, the default for real signals, leaves out the half of the spectrum that is the mirror image
    of the other."""
@overload
def sub(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
    Shapes broadcast; dtypes promote; bool is refused."""
@overload
def sub(input: Tensor | Number | _complex, alpha: Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def subtract(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
    Shapes broadcast; dtypes promote; bool is refused."""
@overload
def subtract(input: Tensor | Number | _complex, alpha: Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sum(input: Tensor, *, dtype: _dtype | None = None) -> Tensor:
    """Sums all elements. Integer and bool inputs sum in int64 unless `dtype` is given."""
@overload
def sum(input: Tensor, dim: _int | _size | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.svd:
    """The singular value decomposition `A = U diag(S) V^H` in its older form, which gives V in place of its adjoint;
    `some` stands for the reduced factors. Without `compute_uv`, U and V are zeros. It is deprecated: `torch.linalg.svd`
    takes its place."""
def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """Two dimensions swapped."""
def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions swapped."""
def t(input: Tensor) -> Tensor:
    """A matrix transposed; vectors and numbers as they are."""
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of a matrix, transposed; of vectors and numbers as they are."""
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements at row-major positions of the flattened tensor; negative ones count from the end."""
def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `gather`, with the other dimensions of `self` and `indices` broadcast; without `dim` the tensor is flattened.
    Along a `dim` indices go round: beyond the end they count from the start again."""
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent."""
def tan_(input: Tensor) -> Tensor:
    """The tangent."""
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent: `sinh(self) / cosh(self)`."""
def tanh_(input: Tensor) -> Tensor:
    """The hyperbolic tangent: `sinh(self) / cosh(self)`."""
def tanh_backward(grad_output: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `tanh` from its result `y`: `grad_output * conj(1 - y^2)`."""
@overload
def tensor_split(input: Tensor, tensor_indices_or_sections: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """As `tensor_split` with the number of splits in a 0-dim int64 tensor, or with the positions in a vector."""
@overload
def tensor_split(input: Tensor, sections: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(input: Tensor, indices: _size, dim: _int = 0) -> tuple[Tensor, ...]: ...
def tensordot(input: Tensor, other: Tensor, dims_self: _size, dims_other: _size, *, out: Tensor | None = None) -> Tensor:
    """The contraction of two tensors: sums products over the dimensions `dims_self` of `self` and `dims_other` of `other`,
    which correspond one to one and have equal sizes (a size of 1 broadcasts). The result has the remaining dimensions
    of `self`, then those of `other`, in order."""
def threshold(input: Tensor, threshold: Number | _complex, value: Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """`self` where it is above `threshold`, else `value`, element by element. The gradient is 0 where `value` is taken."""
def threshold_(input: Tensor, threshold: Number | _complex, value: Number | _complex) -> Tensor:
    """`self` where it is above `threshold`, else `value`, element by element. The gradient is 0 where `value` is taken."""
def threshold_backward(grad_output: Tensor, input: Tensor, threshold: Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `threshold` and of `relu`: `grad_output` where `self` is above `threshold`, else 0."""
def tile(input: Tensor, dims: _size) -> Tensor:
    """As `repeat`; fewer repeats than dimensions mean the last ones."""
def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.topk:
    """The `k` largest (or smallest) elements along `dim`, best first, and their indices."""
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal; of integers in int64. No elements give 0."""
def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions swapped."""
def transpose_copy(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy with two dimensions swapped."""
@overload
def trapezoid(y: Tensor, x: Tensor, *, dim: _int = -1) -> Tensor:
    """The area below points `(x, y)` along `dim`, by straight lines: `sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2)`."""
@overload
def trapezoid(y: Tensor, *, dx: Number | _complex = 1, dim: _int = -1) -> Tensor: ...
@overload
def trapz(y: Tensor, *, dx: _float = 1.0, dim: _int = -1) -> Tensor:
    """As `trapezoid` of points that are `dx` apart, by its older name."""
@overload
def trapz(y: Tensor, x: Tensor, *, dim: _int = -1) -> Tensor: ...
def triangular_solve(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.triangular_solve:
    """The solution `X` of `A X = self` (of `A^T X = self` with `transpose`) for triangular `A`, and a copy of `A`. It is
    deprecated: `torch.linalg.solve_triangular`, which takes the matrix first, is its replacement.

    `A` may be sparse: elements that it does not specify are zeros, those of the diagonal make the solution NaN, and no copy is
    given (an empty tensor)."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of each matrix up to `diagonal`, zeros above."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The coordinates (2, count) of the lower triangle of a `row` x `col` matrix up to diagonal `offset`."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of each matrix from `diagonal`, zeros below."""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The coordinates (2, count) of the upper triangle of a `row` x `col` matrix from diagonal `offset`."""
def true_divide(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
    division by zero gives an infinity or NaN."""
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The whole part, towards zero; integers are copied. The gradient is 0."""
def trunc_(input: Tensor) -> Tensor:
    """The whole part, towards zero; integers are copied. The gradient is 0."""
def unbind(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """All slices along `dim`, without that dimension."""
def unbind_copy(input: Tensor, dim: _int = 0, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Copies of all slices along `dim`, without that dimension."""
def unflatten(input: Tensor, dim: _int, sizes: _size) -> Tensor:
    """Dimension `dim` cut up into `sizes`, one of which may be -1."""
def unfold_backward(grad_in: Tensor, input_sizes: _size, dim: _int, size: _int, step: _int) -> Tensor:
    """Adds windows up where they overlap: the gradient of `unfold`."""
def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the windows of `size` along `dimension`, every `step`, as the last dimension."""
def unique_consecutive(input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The elements (or slices along `dim`) without those that equal their predecessor; inverse and counts per run."""
def unique_dim(input: Tensor, dim: _int, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct slices along `dim`, in lexicographic order; inverse and counts as for all elements."""
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """As `chunk`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards."""
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """As `split`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: _size, dim: _int = 0) -> tuple[Tensor, ...]:
    """As `split_with_sizes`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards."""
def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """With a new dimension of size 1 at `dim`."""
def unsqueeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy with a new dimension of size 1 at `dim`."""
def upsample_bicubic2d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def upsample_bilinear2d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def upsample_linear1d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def upsample_nearest1d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, scales: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def upsample_nearest2d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def upsample_nearest3d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def upsample_trilinear3d_backward(grad_output: Tensor, output_size: _int | _size, input_size: _int | _size, align_corners: _bool, scales_d: _float | None = None, scales_h: _float | None = None, scales_w: _float | None = None) -> Tensor:
    """The gradient of resizing with respect to images of `input_size`."""
def value_selecting_reduction_backward(grad_output: Tensor, dim: _int, indices: Tensor, sizes: _size, keepdim: _bool) -> Tensor:
    """The adjoint of `_select_along`: zeros of shape `sizes` with `grad` at the indices that `indices` names."""
def vander(x: Tensor, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: each row holds `N` powers of an element (as many as there are elements if
    `None`), falling to the power 0, or with `increasing` rising from it. Integers give int64."""
@overload
def var(input: Tensor, dim: _int | _size | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The variance over `dim` (all dimensions if `None`)."""
@overload
def var(input: Tensor, dim: _int | _size | None = None, *, correction: Number | _complex | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def var(input: Tensor, unbiased: _bool = True) -> Tensor: ...
@overload
def var_mean(input: Tensor, dim: _int | _size | None, unbiased: _bool = True, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean over `dim` (all dimensions if `None`)."""
@overload
def var_mean(input: Tensor, dim: _int | _size | None = None, *, correction: Number | _complex | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
@overload
def var_mean(input: Tensor, unbiased: _bool = True) -> tuple[Tensor, Tensor]: ...
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product of two vectors, the first conjugated: `sum over i of conj(self[i]) * other[i]`."""
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers (a last dimension of size 2) as complex ones."""
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of pairs of real numbers as complex ones."""
def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones: a last dimension of size 2."""
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of complex numbers as pairs of real ones."""
@overload
def view_copy(input: Tensor, dtype: _dtype, *, out: Tensor | None = None) -> Tensor:
    """A copy of the same bytes read as another dtype."""
@overload
def view_copy(input: Tensor, size: _size, *, out: Tensor | None = None) -> Tensor: ...
@overload
def vsplit(input: Tensor, sections: _int) -> tuple[Tensor, ...]:
    """`sections` equal splits by rows: along the first dimension."""
@overload
def vsplit(input: Tensor, indices: _size) -> tuple[Tensor, ...]: ...
def vstack(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along dimension 0; vectors are rows."""
@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """As `nonzero_numpy`."""
@overload
def where(condition: Tensor, input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: Tensor, self: Number | _complex, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self * ln(other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype."""
@overload
def xlogy(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy_(input: Tensor, other: Tensor) -> Tensor:
    """`self * ln(other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype."""
@overload
def xlogy_(input: Tensor, other: Number | _complex) -> Tensor: ...
def zero_(input: Tensor) -> Tensor:
    """Writes zero into every element."""
@overload
def zeros(size: _size, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Zeros of shape `size`."""
@overload
def zeros(*size: _int, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
def zeros_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """Zeros in the shape of `self`."""
