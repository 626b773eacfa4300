//! `take_along_dim`: `gather` whose other dimensions broadcast.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::shape::{broadcast_shapes, wrap_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&TAKE_ALONG_DIM];

/// As `gather`, with the other dimensions of `self` and `indices` broadcast; without `dim` the tensor is flattened.
/// Along a `dim` indices go round: beyond the end they count from the start again.
#[op(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    exact_out,
    separate(self),
    not_differentiable(indices)
)]
impl TakeAlongDim {
    fn composite(self_: &Tensor, indices: &Tensor, dim: Option<i64>) -> Result<Tensor> {
        ensure!(
            indices.dtype() == DType::I64,
            runtime,
            "torch.take_along_dim(): dtype of indices should be {} but got {}",
            DType::I64.scalar_name(),
            indices.dtype().scalar_name()
        );
        let Some(dim) = dim else {
            let positions = from_start(indices, self_.numel())?;
            return self_.reshape(&[-1])?.gather(0, &positions.reshape(&[-1])?);
        };
        ensure!(
            self_.ndim() == indices.ndim(),
            runtime,
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices",
            self_.ndim(),
            indices.ndim()
        );
        let at = wrap_dim(dim, self_.ndim())?;
        let size = self_.shape().get(at).copied().unwrap_or(1);
        let positions;
        let indices = if size > 0 {
            positions = indices.remainder_by(Scalar::Int(size))?;
            &positions
        } else {
            indices
        };
        if self_.ndim() == 0 {
            return self_.gather(0, indices);
        }
        let (mut a, mut b) = (Dims::from_slice(self_.shape()), Dims::from_slice(indices.shape()));
        (a[at], b[at]) = (1, 1);
        let mut common = broadcast_shapes(&[&a, &b])?;
        common[at] = self_.shape()[at];
        let input = self_.expand(&common, false)?;
        common[at] = indices.shape()[at];
        input.gather(dim, &indices.expand(&common, false)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, positions: Tensor, dim: Value| {
            Sample::new([t.into(), positions.into(), dim])
        };
        vec![
            sample(s.normal(&[3, 2]), s.integers(&[1, 2], 0, 3), Value::Int(0)),
            sample(s.normal(&[3, 2]), s.integers(&[2, 1], -3, 3), Value::Int(0)),
            sample(s.normal(&[3, 2]), s.integers(&[2, 2], -8, 9), Value::Int(0)),
            sample(s.transposed(3, 2), s.integers(&[4], -6, 6), Value::None),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[3]).into(), s.bools(&[1]).into(), Value::Int(0)]);
        let phrase = "torch.take_along_dim(): dtype of indices should be Long but got Bool";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// Positions counted from the start: negative ones count from the end of a dimension of `size`.
fn from_start(positions: &Tensor, size: i64) -> Result<Tensor> {
    let negative = positions.lt(&Tensor::wrapped(0)?)?;
    if !is_any_true(&negative)? {
        return Ok(positions.clone());
    }
    negative.where_self(&positions.plus(size)?, positions)
}
