//! Norms of whole lists of tensors, as clipping of gradients needs them.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::factory::check_real;
use crate::ops::linalg::vector_norm::norm_grad;
use crate::ops::reduce::sum::reduce_into;
use crate::tensor::Cpu;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&FOREACH_NORM];

/// The norm of order `ord` of every tensor of a list, each as a 0-dimensional tensor; differentiable like
/// `torch.linalg.vector_norm`.
#[op("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", method = foreach_norm)]
impl ForeachNorm {
    fn meta(self_: &[Tensor], ord: Scalar, dtype: Option<DType>) -> Result<Vec<TensorSpec>> {
        ensure!(!self_.is_empty(), runtime, "Tensor list must have at least one tensor.");
        check_real(&[ord])?;
        let norm = |t: &Tensor| {
            let has_no_norm = t.numel() == 0 && ord.is(f64::INFINITY);
            ensure!(
                !has_no_norm,
                runtime,
                "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity"
            );
            ensure!(
                t.dtype().is_differentiable(),
                not_implemented,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                t.dtype().scalar_name()
            );
            let dtype = dtype.unwrap_or(t.dtype());
            ensure!(
                dtype.is_differentiable(),
                not_implemented,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                dtype.scalar_name()
            );
            reduce::check_norm(t.shape(), &all_dims(t), ord.to_f64())?;
            Ok(TensorSpec::beside(t, &[]).computed_in(dtype.to_real()))
        };
        self_.iter().map(norm).collect()
    }
    fn cpu(
        cpu: Cpu,
        result: &[&Tensor],
        self_: &[Tensor],
        ord: Scalar,
        dtype: Option<DType>,
    ) -> Result<()> {
        self_.iter().zip(result).try_for_each(|(t, out)| {
            let input = t.in_dtype(cpu, dtype.unwrap_or(t.dtype()))?;
            reduce_into(cpu, out, &input, &all_dims(t), |out, x, dims| {
                reduce::norm(out, x, dims, ord.to_f64())
            })
        })
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_: &[Tensor],
        ord: Scalar,
        dtype: Option<DType>,
    ) -> Result<Vec<Option<Tensor>>> {
        // Computing the norms again is cheap compared with saving a list of them.
        let one = |(grad, x): (&Option<Tensor>, &Tensor)| {
            let back = |grad: &Tensor| {
                let norm = x.linalg_vector_norm_with(ord, None, false, dtype)?;
                norm_grad(grad, x, &norm, ord.to_f64(), None)
            };
            grad.as_ref().map(back).transpose()
        };
        grads.iter().zip(self_).map(one).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let list =
            || vec![s.away_from_zero(&[2, 3]), s.away_from_zero(&[]), s.away_from_zero(&[1])];
        let orders = [2.0, 1.0, 0.0, 3.0, -1.5, f64::INFINITY, f64::NEG_INFINITY];
        let sample = |&ord: &f64| Sample::new([list().into(), Scalar::Float(ord).into()]);
        let mut all: Vec<_> = orders.iter().map(sample).collect();
        all.push(Sample::new([vec![s.normal(&[0, 2]), s.normal(&[2])].into()]));
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let empty = vec![s.normal(&[0])];
        vec![
            InvalidSample::new(
                Sample::new([Value::Tensors(Vec::new())]),
                ErrorKind::Runtime,
                "Tensor list must have at least one tensor.",
            ),
            InvalidSample::new(
                Sample::new([empty.into(), Scalar::Float(f64::INFINITY).into()]),
                ErrorKind::Runtime,
                "infinity norm on an empty tensor",
            ),
            InvalidSample::new(
                Sample::new([vec![s.integers(&[2], 0, 3)].into()]),
                ErrorKind::NotImplemented,
                "Expected a floating point or complex tensor as input. Got Long",
            ),
        ]
    }
}

fn all_dims(t: &Tensor) -> Vec<usize> {
    (0..t.ndim()).collect()
}
