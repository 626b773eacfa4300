//! Dot products of vectors.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::Cpu;
use crate::{Result, Tensor, TensorSpec};
use pullback_kernels::gemm;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&DOT, &VDOT];

/// Refuses what are not two vectors of one length and dtype.
fn check_dot(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() == 1 && b.ndim() == 1,
        runtime,
        "1D tensors expected, but got {}D and {}D tensors",
        a.ndim(),
        b.ndim()
    );
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "{name} : expected both vectors to have same dtype, but found {} and {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    let (n, m) = (a.numel(), b.numel());
    ensure!(
        n == m,
        runtime,
        "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} and {m} elements respectively"
    );
    Ok(())
}

/// The dot product of two vectors of one length: `sum over i of self[i] * tensor[i]`, without conjugation. Empty
/// vectors give 0.
#[op("dot(Tensor self, Tensor tensor) -> Tensor", exact_out, batch = dot(self, tensor))]
impl Dot {
    fn meta(self_: &Tensor, tensor: &Tensor) -> Result<TensorSpec> {
        check_dot("dot", self_, tensor)?;
        Ok(TensorSpec::beside(self_, &[]))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, tensor: &Tensor) -> Result<()> {
        Ok(gemm::dot(&mut result.view_mut(cpu), self_.view_ref(cpu), tensor.view_ref(cpu))?)
    }
    fn vjp_self(grad: &Tensor, tensor: &Tensor) -> Result<Tensor> {
        tensor.conj()?.mul(grad)
    }
    fn vjp_tensor(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        self_.conj()?.mul(grad)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        tensor_p: &Tensor,
        tensor_t: &Tensor,
    ) -> Result<Tensor> {
        self_t.dot(tensor_p)?.add(&self_p.dot(tensor_t)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let pair = |n: i64| Sample::new([s.normal(&[n]).into(), s.normal(&[n]).into()]);
        vec![pair(3), pair(1), pair(0)]
    }
}

/// The dot product of two vectors, the first conjugated: `sum over i of conj(self[i]) * other[i]`.
#[op("vdot(Tensor self, Tensor other) -> Tensor", exact_out, batch = vdot(self, other))]
impl Vdot {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        check_dot("vdot", self_, other)?;
        Ok(TensorSpec::beside(self_, &[]))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, other: &Tensor) -> Result<()> {
        let conjugates = self_.conj_physical()?;
        let (a, b) = (conjugates.view_ref(cpu), other.view_ref(cpu));
        Ok(gemm::dot(&mut result.view_mut(cpu), a, b)?)
    }
    fn vjp_self(grad: &Tensor, other: &Tensor) -> Result<Tensor> {
        other.mul(&grad.conj()?)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        self_.mul(grad)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        self_t.vdot(other_p)?.add(&self_p.vdot(other_t)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[3]).into(), s.normal(&[3]).into()])]
    }
}
