//! Products of matrices of scaled numbers of one byte.
//!
//! Their derivatives are those of the ops that they are made of: a gradient passes through a conversion as it is.

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::{DType, ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SCALED_MM];

/// `(scale_a self) @ (scale_b mat2) + bias` of float8 matrices (m, k) and (k, n), in single precision and rounded once to
/// `out_dtype`, that of `self` if `None`. The scales are float32: one number for each matrix, or one for each row of `self`,
/// (m, 1), and each column of `mat2`, (1, n). Where `out_dtype` says float8, the result is divided by `scale_result`, if there is one.
/// `use_fast_accum` changes nothing on a CPU.
///
/// # Errors
/// `ValueError` for other dtypes or scales, `RuntimeError` for shapes that do not fit.
#[op(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    out,
    function_only,
    method = scaled_mm
)]
impl ScaledMm {
    fn composite(
        self_: &Tensor,
        mat2: &Tensor,
        scale_a: &Tensor,
        scale_b: &Tensor,
        bias: Option<&Tensor>,
        scale_result: Option<&Tensor>,
        out_dtype: Option<DType>,
    ) -> Result<Tensor> {
        check_scales([self_, mat2], [scale_a, scale_b])?;
        check_shapes(self_, mat2, bias)?;
        let scaled = |matrix: &Tensor, scale: &Tensor| {
            let scale = if scale.numel() == 1 { scale.reshape(&[])? } else { scale.clone() };
            matrix.to_dtype(DType::F32)?.mul(&scale)
        };
        let mut product = scaled(self_, scale_a)?.mm(&scaled(mat2, scale_b)?)?;
        if let Some(bias) = bias {
            product = product.add(&bias.to_dtype(DType::F32)?)?;
        }
        if let Some(scale) = scale_result.filter(|_| out_dtype.is_some_and(DType::is_narrow_float))
        {
            product = product.div(scale)?;
        }
        product.to_dtype(out_dtype.unwrap_or(self_.dtype()))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let codes = |shape: &[i64], dtype| s.normal(shape).to_dtype(dtype).expect("small");
        let scale = |shape: &[i64]| s.normal(shape).to_dtype(DType::F32).expect("small");
        let of = |scales: [Tensor; 2], dtype| {
            let [a, b] = scales;
            let factors = [codes(&[2, 3], dtype), codes(&[3, 4], DType::F8E4M3FN)];
            let [first, second] = factors;
            Sample::new([first.into(), second.into(), a.into(), b.into()])
                .with("out_dtype", DType::F32)
                .without_gradient()
        };
        vec![
            of([scale(&[]), scale(&[])], DType::F8E4M3FN),
            of([scale(&[1]), scale(&[1, 1])], DType::F8E4M3FN).with("bias", scale(&[4])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let one = Tensor::scalar_of(1.0, DType::F32).expect("small");
        let codes = |shape: &[i64]| s.normal(shape).to_dtype(DType::F8E4M3FN).expect("small");
        let bad = |a: Tensor, b: Tensor, kind, phrase| {
            let arguments = [a.into(), b.into(), one.clone().into(), one.clone().into()];
            InvalidSample::new(Sample::new(arguments), kind, phrase)
        };
        vec![
            bad(
                codes(&[2, 3]),
                codes(&[4, 3]),
                ErrorKind::Runtime,
                "mat_a and mat_b shapes cannot be multiplied (2x3 and 4x3)",
            ),
            bad(codes(&[2]), codes(&[2, 2]), ErrorKind::Runtime, "mat1 must be a matrix"),
            bad(
                s.normal(&[2, 3]),
                codes(&[3, 2]),
                ErrorKind::Value,
                "Invalid scaling configuration.",
            ),
        ]
    }
}

fn check_shapes(a: &Tensor, b: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    let &[m, k] = a.shape() else { bail!(runtime, "mat1 must be a matrix") };
    let &[rows, n] = b.shape() else { bail!(runtime, "mat2 must be a matrix") };
    ensure!(
        k == rows,
        runtime,
        "mat_a and mat_b shapes cannot be multiplied ({m}x{k} and {rows}x{n})"
    );
    if let Some(bias) = bias {
        let have = bias.numel();
        ensure!(have == n, runtime, "Bias must be size {n} but got {have}");
    }
    Ok(())
}

/// Refuses scales that are neither one number each nor one for each row and column.
fn check_scales(matrices: [&Tensor; 2], scales: [&Tensor; 2]) -> Result<()> {
    let [a, b] = matrices;
    // (Whether they are matrices at all is asked later.)
    let size = |t: &Tensor, dim: usize| t.shape().get(dim).copied().unwrap_or(0);
    let (m, n) = (size(a, 0), size(b, 1));
    let is_float8 = |t: &Tensor| t.dtype().is_narrow_float() && t.dtype() != DType::F4E2M1FNX2;
    let is_known = matrices.into_iter().all(is_float8)
        && scales.iter().all(|scale| scale.dtype() == DType::F32);
    let are_single = scales.iter().all(|scale| scale.numel() == 1);
    let is_by_row = scales[0].shape() == [m, 1]
        && scales[1].shape() == [1, n]
        && scales.iter().all(|scale| scale.is_contiguous());
    let told = |name: &str, matrix: &Tensor, scale: &Tensor| {
        format!(
            "mat_{name}.dtype()={}, scale_{name}.dtype()={}, scale_{name}.size()={}, scale_{name}.stride()={}",
            matrix.dtype().scalar_name(),
            scale.dtype().scalar_name(),
            list(scale.shape()),
            list(scale.strides())
        )
    };
    ensure!(
        is_known && (are_single || is_by_row),
        value,
        "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({m}, 1) and scale_b should be (1, {n}), and both should be contiguous.\nGot {}, {}",
        told("a", a, scales[0]),
        told("b", b, scales[1])
    );
    Ok(())
}
