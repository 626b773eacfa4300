//! Norms of the tensors of a list, as clipping of gradients needs them.

use super::{EMPTY, check_list, refused};
use crate::autograd::call_each;
use crate::dispatch::{Arg, OpDef, Outputs, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::linalg::vector_norm::LINALG_VECTOR_NORM;
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(super) static OPS: &[&OpDef] = &[&FOREACH_NORM];

/// The norm of order `ord` of each tensor of a list, as `torch.linalg.vector_norm` computes it over all dimensions, in
/// `dtype` where that is given.
#[op("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", function_only, method = foreach_norm)]
impl ForeachNorm {
    fn composite(self_: &[Tensor], ord: Scalar, dtype: Option<DType>) -> Result<Outputs> {
        check_list(self_)?;
        ensure!(
            matches!(ord, Scalar::Int(_) | Scalar::Float(_)),
            runtime,
            "foreach_tensor_norm_slow expects ord to be integer or float"
        );
        ensure!(
            !ord.is(f64::INFINITY) || self_.iter().all(|tensor| tensor.numel() > 0),
            runtime,
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity"
        );
        let dtype = dtype.map_or(Arg::None, Arg::DType);
        call_each(&LINALG_VECTOR_NORM, self_.len(), |at| {
            [Arg::Tensor(&self_[at]), Arg::Scalar(ord), Arg::None, Arg::Bool(false), dtype]
        })
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
        let of = |x: Tensor, ord: f64| Sample::new([vec![x].into(), Scalar::Float(ord).into()]);
        let whole = "Expected a floating point or complex tensor as input. Got Long";
        let complex = Sample::new([vec![s.normal(&[2])].into(), Scalar::Complex(0.0, 1.0).into()]);
        vec![
            refused(Sample::new([Value::Tensors(Vec::new())]), EMPTY),
            refused(of(s.normal(&[0]), f64::INFINITY), "infinity norm on an empty tensor"),
            refused(of(s.normal(&[0, 2]), -1.0), "cannot compute the -1 norm on an empty tensor"),
            refused(complex, "expects ord to be integer or float"),
            InvalidSample::new(of(s.integers(&[2], 0, 3), 2.0), ErrorKind::NotImplemented, whole),
        ]
    }
}
