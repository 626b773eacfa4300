//! Cutting a tensor along a fixed dimension: by columns (`hsplit`), rows (`vsplit`) and in depth (`dsplit`).

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&HSPLIT, &HSPLIT_AT, &VSPLIT, &VSPLIT_AT, &DSPLIT, &DSPLIT_AT];

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

/// `sections` equal splits by columns: along the second dimension, of a vector along its only one.
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

/// The splits between the given columns.
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

/// `sections` equal splits by rows: along the first dimension.
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

/// The splits between the given rows.
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

/// `sections` equal splits in depth: along the third dimension.
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

/// The splits between the given indices along the third dimension.
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
