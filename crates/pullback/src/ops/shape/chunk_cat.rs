//! Tensors cut into equally many chunks, and the chunks of all of them laid side by side.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, wrap_own_dim};
use crate::{Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&CHUNK_CAT];

/// Cuts each tensor along `dim` into `num_chunks` chunks, the last ones filled up with zeros, flattens the chunks and joins
/// those of all tensors: (*, num_chunks, elements), where * are the dimensions before `dim`.
#[op("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", out, method = chunk_cat)]
impl ChunkCat {
    fn composite(tensors: &[Tensor], dim: i64, num_chunks: i64) -> Result<Tensor> {
        ensure!(
            num_chunks >= 1,
            runtime,
            "_chunk_cat expects positive num_chunks, got {num_chunks}"
        );
        let Some(first) = tensors.first() else {
            bail!(runtime, "_chunk_cat expects a non-empty input tensor list")
        };
        let at = wrap_own_dim(dim, first.ndim())?;
        let lead = &first.shape()[..at];
        let mut columns = Vec::with_capacity(tensors.len());
        for t in tensors {
            ensure!(
                t.dtype() == first.dtype(),
                runtime,
                "_chunk_cat expects all input tensors with the same dtype, but got {} and {}",
                first.dtype().scalar_name(),
                t.dtype().scalar_name()
            );
            ensure!(
                t.numel() > 0,
                runtime,
                "_chunk_cat expects non-empty tensor, but got one of shape {}",
                list(t.shape())
            );
            ensure!(
                t.ndim() > at && t.shape().starts_with(lead),
                runtime,
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors, but got {} and {} for dim {at}",
                list(first.shape()),
                list(t.shape())
            );
            columns.push(chunked(t, at, num_chunks)?);
        }
        super::join::cat(&columns, at as i64 + 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |shapes: &[&[i64]], dim: i64, chunks: i64| {
            let tensors = shapes.iter().map(|shape| s.normal(shape)).collect();
            Sample::new([Value::Tensors(tensors), dim.into(), chunks.into()])
        };
        vec![
            call(&[&[5, 2], &[2, 3], &[3]], 0, 2),
            call(&[&[2, 5], &[2, 3, 2]], 1, 2),
            call(&[&[3]], -1, 4),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shapes: &[&[i64]], chunks: i64, phrase| {
            let tensors = shapes.iter().map(|shape| s.normal(shape)).collect();
            let sample = Sample::new([Value::Tensors(tensors), 0.into(), chunks.into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], 2, "_chunk_cat expects a non-empty input tensor list"),
            bad(&[&[2]], 0, "_chunk_cat expects positive num_chunks"),
            bad(&[&[2], &[0]], 2, "_chunk_cat expects non-empty tensor"),
        ]
    }
}

/// A tensor's chunks along `dim`, each flattened: (*, `num_chunks`, elements).
fn chunked(t: &Tensor, dim: usize, num_chunks: i64) -> Result<Tensor> {
    let size = t.shape()[dim];
    let chunk = size / num_chunks + i64::from(size % num_chunks != 0);
    let Some(whole) = chunk.checked_mul(num_chunks) else {
        bail!(runtime, "_chunk_cat: {num_chunks} chunks of {chunk} are too many")
    };
    let mut pad = Dims::from_elem(0, 2 * (t.ndim() - dim));
    if let Some(last) = pad.last_mut() {
        *last = whole - size;
    }
    let mut shape = Dims::from_slice(&t.shape()[..dim]);
    shape.extend_from_slice(&[num_chunks, -1]);
    if whole == size {
        return t.reshape(&shape);
    }
    t.constant_pad_nd(&pad, Scalar::Int(0))?.reshape(&shape)
}
