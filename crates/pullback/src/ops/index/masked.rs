//! Indexing with a mask of the indices that count: those that do not count may be out of bounds.
//!
//! Made of `index` and `index_put`, whose derivatives they have.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&UNSAFE_MASKED_INDEX, &UNSAFE_MASKED_INDEX_PUT_ACCUMULATE];

/// The elements at the indices `indices` (see `index`) where `mask` is true, else `fill`.
#[op("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor", function_only,
     not_differentiable(mask, indices), method = unsafe_masked_index)]
impl UnsafeMaskedIndex {
    fn composite(
        self_: &Tensor,
        mask: &Tensor,
        indices: &[Option<Tensor>],
        fill: Scalar,
    ) -> Result<Tensor> {
        let (positions, shape) = within("_unsafe_masked_index", self_, indices)?;
        let read = if shape.as_slice() == self_.shape() {
            self_.index(&positions)?
        } else {
            // There is nothing to read, but a shape.
            TensorSpec::beside(self_, &shape).zeros()?.index(&positions)?
        };
        read.masked_fill(&mask.logical_not()?, fill)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |shape: &[i64], mask: &[bool], indices: Vec<Option<Tensor>>| {
            let start = [s.normal(shape).into(), mask_of(mask).into(), Value::OptTensors(indices)];
            Sample::new(start).with("fill", Scalar::Float(0.5))
        };
        vec![
            call(
                &[2, 3],
                &[true, false, true],
                vec![positions(&[0, 9, -1]), positions(&[1, 7, 2])],
            ),
            call(&[2, 3], &[true, false, true], vec![None, positions(&[0, 9, 2])]),
            call(&[0, 3], &[false], vec![positions(&[4])]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = Value::OptTensors(vec![Some(s.normal(&[1]))]);
        let sample = Sample::new([s.normal(&[2]).into(), mask_of(&[true]).into(), index]);
        let phrase = "_unsafe_masked_index found unexpected index type Double";
        let sample = sample.with("fill", Scalar::Int(0));
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// `self` with `values` added at the indices `indices` (see `index`) where `mask` is true.
#[op("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
     function_only, not_differentiable(mask, indices), method = unsafe_masked_index_put_accumulate)]
impl UnsafeMaskedIndexPutAccumulate {
    fn composite(
        self_: &Tensor,
        mask: &Tensor,
        indices: &[Option<Tensor>],
        values: &Tensor,
    ) -> Result<Tensor> {
        let (positions, _) = within("_unsafe_masked_index_put_accumulate", self_, indices)?;
        if self_.numel() == 0 {
            return self_.clone_tensor(None);
        }
        let added = values.masked_fill(&mask.logical_not()?, Scalar::Int(0))?;
        self_.index_put(&positions, &added, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |shape: &[i64], mask: &[bool], indices: Vec<Option<Tensor>>, values: &[i64]| {
            let start = [s.normal(shape).into(), mask_of(mask).into(), Value::OptTensors(indices)];
            Sample::new(start).with("values", s.normal(values))
        };
        let mask = &[true, false, true];
        vec![
            call(&[2, 3], mask, vec![positions(&[0, 9, -1]), positions(&[1, 7, 2])], &[3]),
            call(&[2, 3], mask, vec![None, positions(&[1, 9, 1])], &[2, 3]),
            call(&[2, 3], mask, vec![positions(&[0, 9, 0]), positions(&[1, 7, 1])], &[]),
        ]
    }
}

/// The indices, moved into `self_`, and its shape with something to read at the dimensions that they are for.
fn within(
    name: &str,
    self_: &Tensor,
    indices: &[Option<Tensor>],
) -> Result<(Vec<Option<Tensor>>, Dims)> {
    let mut shape = Dims::from_slice(self_.shape());
    // bounded: by the number of indices.
    let mut out = Vec::with_capacity(indices.len());
    for (dim, index) in indices.iter().enumerate() {
        let Some(index) = index else {
            out.push(None);
            continue;
        };
        ensure!(
            matches!(index.dtype(), DType::I64 | DType::I32),
            runtime,
            "{name} found unexpected index type {}",
            index.dtype().scalar_name()
        );
        // (Too many indices are for `index` to refuse.)
        let Some(size) = shape.get_mut(dim) else {
            out.push(Some(index.clone()));
            continue;
        };
        *size = (*size).max(1);
        let size = *size;
        let index = index.to_dtype(DType::I64)?;
        out.push(Some(index.clamp(Some((-size).into()), Some((size - 1).into()))?));
    }
    Ok((out, shape))
}

fn positions(v: &[i64]) -> Option<Tensor> {
    Tensor::from_slice(v, &[v.len() as i64]).ok()
}

fn mask_of(v: &[bool]) -> Tensor {
    let data: Vec<crate::Bool> = v.iter().map(|&b| crate::Bool::new(b)).collect();
    Tensor::from_slice(&data, &[v.len() as i64]).expect("samples are small")
}
