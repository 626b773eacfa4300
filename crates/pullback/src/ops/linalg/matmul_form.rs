//! Variants of the matrix products in `matmul`: of 8-bit integers, and followed by an activation.
//!
//! Their derivatives, where there are any, are those of the ops that they are made of.

use super::matmul::product_sizes;
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::gemm;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&INT_MM, &ADDMM_ACTIVATION];

/// The product of two matrices of 8-bit integers in int32, which is exact below 2^15 columns: `self` is int8 or uint8,
/// `mat2` int8.
#[op("_int_mm(Tensor self, Tensor mat2) -> Tensor", exact_out, function_only, not_differentiable, method = int_mm, batch = int_mm(self, mat2))]
impl IntMm {
    fn meta(self_: &Tensor, mat2: &Tensor) -> Result<TensorSpec> {
        ensure!(
            matches!(self_.dtype(), DType::I8 | DType::U8),
            runtime,
            "_int_mm: Expected self dtype to be int8 or uint8 but got {}",
            self_.dtype().spelled()
        );
        ensure!(
            mat2.dtype() == DType::I8,
            runtime,
            "_int_mm: Expected mat2 dtype to be of type int8 but got {}",
            mat2.dtype().spelled()
        );
        let (m, n) = product_sizes("_int_mm", self_, mat2)?;
        Ok(TensorSpec { dtype: DType::I32, ..TensorSpec::beside(self_, &[m, n]) })
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, mat2: &Tensor) -> Result<()> {
        let mut out = result.view_mut(cpu);
        Ok(gemm::int_matmul(&mut out, self_.view_ref(cpu), mat2.view_ref(cpu))?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let bytes = |shape: &[i64]| s.integers(shape, -100, 100).to_dtype(DType::I8);
        let of = |a: &[i64], b: &[i64]| {
            let both = [bytes(a), bytes(b)].map(|t| t.expect("samples are small").into());
            Sample::new(both).without_gradient()
        };
        vec![of(&[3, 4], &[4, 2]), of(&[2, 0], &[0, 3]), of(&[0, 2], &[2, 3])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bytes = |shape: &[i64]| s.integers(shape, -9, 9).to_dtype(DType::I8).expect("small");
        let bad = |a: Tensor, b: Tensor, phrase| {
            InvalidSample::new(Sample::new([a.into(), b.into()]), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(s.integers(&[2, 2], 0, 5), bytes(&[2, 2]), "Expected self dtype to be int8"),
            bad(
                bytes(&[2, 2]),
                s.integers(&[2, 2], 0, 5),
                "Expected mat2 dtype to be of type int8",
            ),
            bad(bytes(&[2, 3]), bytes(&[2, 3]), "cannot be multiplied (2x3 and 2x3)"),
            bad(bytes(&[2]), bytes(&[2, 3]), "must be a matrix, got 1-D tensor"),
        ]
    }
}

/// An activation of a matrix product: `relu(beta * self + alpha * (mat1 @ mat2))`, or `gelu` in place of `relu` with
/// `use_gelu`.
#[op(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
    exact_out, method = addmm_activation)]
impl AddmmActivation {
    fn composite(
        self_: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
        use_gelu: bool,
    ) -> Result<Tensor> {
        let sum = self_.addmm_with(mat1, mat2, beta, alpha)?;
        if use_gelu { sum.gelu() } else { sum.relu() }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with = |bias: &[i64]| {
            let all = [s.normal(bias), s.normal(&[2, 3]), s.normal(&[3, 4])];
            Sample::new(all.map(Into::into))
        };
        let scaled = with(&[2, 4]).with("beta", Scalar::Float(0.5));
        vec![with(&[4]).with("use_gelu", true), scaled.with("alpha", Scalar::Float(2.0)), with(&[])]
    }
}
