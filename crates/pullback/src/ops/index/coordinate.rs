//! Places of elements: of those that are not zero in a list of fixed length, and as coordinates.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&NONZERO_STATIC, &UNRAVEL_INDEX];

/// The indices of the first `size` elements that are not zero, a row each, in row-major order; rows of `fill_value` where
/// there are fewer.
#[op(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    exact_out,
    narrow_floats,
    not_differentiable
)]
impl NonzeroStatic {
    fn meta(self_: &Tensor, size: i64) -> Result<TensorSpec> {
        ensure!(
            size >= 0,
            runtime,
            "nonzero_static: 'size' must be an non-negative integer, but got {size}"
        );
        let shape = [size, self_.ndim() as i64];
        TensorSpec::beside(self_, &shape).computed_in(DType::I64).checked()
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, size: i64, fill_value: i64) -> Result<()> {
        let found = self_.nonzero()?;
        let count = size.min(found.shape()[0]);
        // (All memory is asked for before the first write.)
        let found = found.narrow(0, 0, count)?;
        let [first, rest] = [result.narrow(0, 0, count)?, result.narrow(0, count, size - count)?];
        rest.fill_with(cpu, Scalar::Int(fill_value))?;
        first.copy_data(cpu, &found)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, size: i64| Sample::of(t).with("size", size);
        vec![
            sample(s.integers(&[2, 3], 0, 2), 4),
            sample(s.integers(&[4], 0, 2), 1),
            sample(s.bools(&[2, 2]), 6).with("fill_value", 7_i64),
            sample(s.integers(&[], 1, 2), 2),
            sample(s.integers(&[0, 2], 0, 2), 0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |size: i64, phrase| {
            let sample = Sample::of(s.bools(&[2, 2])).with("size", size);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![bad(-1, "'size' must be an non-negative integer"), bad(1 << 62, "overflow")]
    }
}

/// The coordinates of places counted row by row in a tensor of this shape, one tensor per dimension. Places outside
/// wrap around; integers of any dtype give int64.
#[op(
    "_unravel_index(Tensor indices, int[] shape) -> Tensor[]",
    internal,
    function_only,
    not_differentiable
)]
impl UnravelIndex {
    fn composite(indices: &Tensor, shape: &[i64]) -> Result<Vec<Tensor>> {
        ensure!(
            indices.dtype().is_integral(false),
            type_error,
            "expected 'indices' to be integer dtype, but got torch.{}",
            indices.dtype().spelled()
        );
        ensure!(
            shape.iter().all(|&n| n >= 0),
            value,
            "'shape' cannot have negative values, but got ({})",
            shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
        );
        if shape.is_empty() {
            return Ok(Vec::new());
        }
        // bounded: by the rank.
        let steps: Vec<i64> = (0..shape.len())
            .map(|d| shape[d + 1..].iter().fold(1, |n: i64, &m| n.wrapping_mul(m)))
            .collect();
        let rank = [shape.len() as i64];
        let numbers = |of: &[i64]| Tensor::from_slice(of, &rank)?.brought_to(indices);
        let (steps, sizes) = (numbers(&steps)?, numbers(shape)?);
        indices
            .to_dtype(DType::I64)?
            .unsqueeze(-1)?
            .floor_divide(&steps)?
            .remainder(&sizes)?
            .unbind(-1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, shape: &[i64]| Sample::new([t.into(), shape.into()]);
        vec![
            sample(s.integers(&[4], -3, 9), &[2, 3]),
            sample(s.integers(&[], 0, 6), &[6]),
            sample(s.integers(&[0], 0, 6), &[2, 0]),
            sample(s.integers(&[2], 0, 1), &[]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |t: Tensor, shape: &[i64], kind, phrase| {
            InvalidSample::new(Sample::new([t.into(), shape.into()]), kind, phrase)
        };
        let floats = "expected 'indices' to be integer dtype, but got torch.float64";
        vec![
            bad(s.normal(&[1]), &[2], ErrorKind::Type, floats),
            bad(s.integers(&[1], 0, 2), &[2, -3], ErrorKind::Value, "but got (2, -3)"),
        ]
    }
}
