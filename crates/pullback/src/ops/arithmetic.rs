//! Sums, differences, products and quotients.

use crate::dispatch::OpDef;
use crate::{DType, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub static OPS: &[&OpDef] = &[&ADD, &MUL];

/// Adds `other`, multiplied by `alpha`: `out[i] = self[i] + alpha * other[i]`.
/// Shapes broadcast; dtypes promote.
#[op("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     inplace, out, numbers, meta = broadcast, batch = pointwise, jvp = linear, samples = binary)]
impl Add {
    fn cpu(iter: &mut Iter, alpha: Scalar) -> pullback_kernels::Result<()> {
        elementwise::add(iter, alpha)
    }
    fn vjp_self(grad: &Tensor, self_dtype: DType) -> Result<Tensor> {
        grad.real_if(self_dtype)
    }
    fn vjp_other(grad: &Tensor, alpha: Scalar, other_dtype: DType) -> Result<Tensor> {
        grad.times(alpha.conj())?.real_if(other_dtype)
    }
}

/// Multiplies by `other`: `out[i] = self[i] * other[i]`.
/// Shapes broadcast; dtypes promote.
#[op("mul.Tensor(Tensor self, Tensor other) -> Tensor",
     inplace, out, numbers, alias("multiply"), meta = broadcast, cpu = mul, batch = pointwise, samples = binary)]
impl Mul {
    fn vjp_self(grad: &Tensor, other: &Tensor, self_dtype: DType) -> Result<Tensor> {
        grad.mul(&other.conj()?)?.real_if(self_dtype)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other_dtype: DType) -> Result<Tensor> {
        grad.mul(&self_.conj()?)?.real_if(other_dtype)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        other_t.mul(self_p)?.add(&self_t.mul(other_p)?)
    }
}

impl Tensor {
    /// `self * factor`, without multiplying by one.
    pub(crate) fn times(&self, factor: Scalar) -> Result<Tensor> {
        if factor.is(1.0) { Ok(self.clone()) } else { self.mul(&Tensor::wrapped(factor)?) }
    }
    /// The real part if `dtype` is real: what a real input's gradient is.
    pub(crate) fn real_if(self: &Tensor, dtype: DType) -> Result<Tensor> {
        if self.dtype().is_complex() && !dtype.is_complex() { self.real() } else { Ok(self.clone()) }
    }
    /// The conjugate; real tensors are returned as they are.
    pub fn conj(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { self.conj_physical() } else { Ok(self.clone()) }
    }
}
