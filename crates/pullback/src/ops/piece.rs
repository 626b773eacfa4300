//! More ways to cut a tensor: along a fixed dimension (`hsplit`, `vsplit`, `dsplit`), and in pieces that autograd does
//! not know as views (`unsafe_split`, `unsafe_chunk`): they share memory, but each counts its own writes.

use super::split::{all_defined, pieces_of, split_sizes, with_size};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::wrap_dim;
use crate::{ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &UNSAFE_SPLIT,
    &UNSAFE_SPLIT_WITH_SIZES,
    &UNSAFE_CHUNK,
    &HSPLIT,
    &HSPLIT_AT,
    &VSPLIT,
    &VSPLIT_AT,
    &DSPLIT,
    &DSPLIT_AT,
];

/// The same memory in tensors that are no views, each with a version counter of its own.
fn apart(pieces: &[Tensor]) -> Result<Vec<Tensor>> {
    pieces.iter().map(Tensor::with_own_version).collect()
}

/// As `split`, in pieces that are no views: writes to them are not seen by autograd in `self`.
#[op("unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", jvp = linear)]
impl UnsafeSplit {
    fn cpu(self_: &Tensor, split_size: i64, dim: i64) -> Result<Vec<Tensor>> {
        apart(&self_.split(split_size, dim)?)
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_shape: &[i64],
        split_size: i64,
        dim: i64,
    ) -> Result<Tensor> {
        let at = wrap_dim(dim, self_shape.len())?;
        let sizes = split_sizes(self_shape[at], split_size);
        super::join::cat(&all_defined(grads, sizes.map(|n| with_size(self_shape, at, n)))?, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("split_size", 2_i64)]
    }
}

/// As `split_with_sizes`, in pieces that are no views.
#[op("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", jvp = linear)]
impl UnsafeSplitWithSizes {
    fn cpu(self_: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        apart(&self_.split_with_sizes(split_sizes, dim)?)
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_shape: &[i64],
        split_sizes: &[i64],
        dim: i64,
    ) -> Result<Tensor> {
        let at = wrap_dim(dim, self_shape.len())?;
        let shapes = split_sizes.iter().map(|&n| with_size(self_shape, at, n));
        super::join::cat(&all_defined(grads, shapes)?, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("split_sizes", [2, 0, 3])]
    }
}

/// As `chunk`, in pieces that are no views.
#[op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")]
impl UnsafeChunk {
    fn composite(self_: &Tensor, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(self_.ndim() > 0, runtime, "chunk expects at least a 1-dimensional tensor");
        ensure!(chunks > 0, runtime, "chunk expects `chunks` to be greater than 0, got: {chunks}");
        let size = self_.shape()[wrap_dim(dim, self_.ndim())?];
        if size == 0 {
            // As many pieces as asked for, each empty.
            let count = self_.chunk(chunks, dim)?.len();
            return self_.unsafe_split_with_sizes(&vec![0; count], dim);
        }
        self_.unsafe_split(pieces_of(size, chunks), dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("chunks", 2_i64)]
    }
}

/// Refuses tensors of too few dimensions.
fn check_dims(name: &str, self_: &Tensor, least: usize) -> Result<()> {
    ensure!(
        self_.ndim() >= least,
        runtime,
        "torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {} dimensions!",
        self_.ndim()
    );
    Ok(())
}

fn equal_parts(name: &str, self_: &Tensor, sections: i64, dim: usize) -> Result<Vec<Tensor>> {
    let size = self_.shape()[dim];
    ensure!(
        sections > 0 && size % sections == 0,
        runtime,
        "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible by the split_size {sections}!"
    );
    self_.tensor_split(sections, dim as i64)
}

/// The dimension that columns are counted along: the second, of a vector the only one.
fn columns(self_: &Tensor) -> usize {
    usize::from(self_.ndim() > 1)
}

/// `sections` equal pieces by columns: along the second dimension, of a vector along its only one.
#[op("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")]
impl Hsplit {
    fn composite(self_: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
        check_dims("hsplit", self_, 1)?;
        equal_parts("hsplit", self_, sections, columns(self_))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.normal(shape)).with("sections", 2_i64);
        vec![sample(&[3, 4]), sample(&[4])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], sections: i64, phrase| {
            let sample = Sample::of(s.normal(shape)).with("sections", sections);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], 2, "torch.hsplit requires a tensor with at least 1 dimension"),
            bad(&[3], 2, "is not divisible by the split_size 2"),
            bad(&[3], 0, "is not divisible by the split_size 0"),
        ]
    }
}

/// The pieces between the given columns.
#[op("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", method = hsplit_at)]
impl HsplitAt {
    fn composite(self_: &Tensor, indices: &[i64]) -> Result<Vec<Tensor>> {
        check_dims("hsplit", self_, 1)?;
        self_.tensor_split_indices(indices, columns(self_) as i64)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[3, 4])).with("indices", [1, 3])]
    }
}

/// `sections` equal pieces by rows: along the first dimension.
#[op("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")]
impl Vsplit {
    fn composite(self_: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
        check_dims("vsplit", self_, 2)?;
        equal_parts("vsplit", self_, sections, 0)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[4, 3])).with("sections", 2_i64)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[4])).with("sections", 2_i64);
        let phrase = "torch.vsplit requires a tensor with at least 2 dimension";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// The pieces between the given rows.
#[op("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", method = vsplit_at)]
impl VsplitAt {
    fn composite(self_: &Tensor, indices: &[i64]) -> Result<Vec<Tensor>> {
        check_dims("vsplit", self_, 2)?;
        self_.tensor_split_indices(indices, 0)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[4, 3])).with("indices", [1, 3])]
    }
}

/// `sections` equal pieces in depth: along the third dimension.
#[op("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")]
impl Dsplit {
    fn composite(self_: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
        check_dims("dsplit", self_, 3)?;
        equal_parts("dsplit", self_, sections, 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[1, 2, 4])).with("sections", 2_i64)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[4, 2])).with("sections", 2_i64);
        let phrase = "torch.dsplit requires a tensor with at least 3 dimension";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// The pieces between the given places along the third dimension.
#[op("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", method = dsplit_at)]
impl DsplitAt {
    fn composite(self_: &Tensor, indices: &[i64]) -> Result<Vec<Tensor>> {
        check_dims("dsplit", self_, 3)?;
        self_.tensor_split_indices(indices, 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[1, 2, 4])).with("indices", [1, 3])]
    }
}
