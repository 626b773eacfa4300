//! Ops on lists of tensors: one op for each tensor, `_foreach_add(tensors, others)`.
//!
//! An item says which op it is that runs for each row of the lists, and in which form; each row is recorded, batched and
//! computed as a call of that op. Here is what they share: the checks of lists, and their samples. What optimisers do to lists
//! in one pass over memory is in `optim`.

pub mod binary;
mod norm;
pub mod row;
pub mod ternary;
pub mod unary;

use super::OpList;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{ErrorKind, Result, Scalar, Tensor};

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    unary::UNARY,
    unary::OPS,
    norm::OPS,
    binary::BY_SCALAR,
    binary::BY_SCALARS,
    binary::BY_TENSOR,
    binary::BY_LIST,
    binary::OPS,
    ternary::PRODUCT,
    ternary::PRODUCT_SCALARS,
    ternary::PRODUCT_PACKED,
    ternary::LERP_ALL,
    ternary::LERP_SCALARS,
    ternary::LERP_EACH,
];

/// Refuses a list without tensors.
fn check_list(list: &[Tensor]) -> Result<()> {
    ensure!(!list.is_empty(), runtime, "Tensor list must have at least one tensor.");
    Ok(())
}

/// Refuses lists of which one is empty, or that are not of one length.
fn check_lists<const N: usize>(list: &[Tensor], others: [&[Tensor]; N]) -> Result<()> {
    check_list(list)?;
    for other in others {
        ensure!(
            list.len() == other.len(),
            runtime,
            "Tensor lists must have the same number of tensors, got {} and {}",
            list.len(),
            other.len()
        );
    }
    Ok(())
}

/// Refuses numbers that are not as many as the tensors.
fn check_scalars(list: &[Tensor], scalars: &[Scalar]) -> Result<()> {
    check_list(list)?;
    ensure!(
        list.len() == scalars.len(),
        runtime,
        "Tensor list must have same number of elements as scalar list, got {} and {}",
        list.len(),
        scalars.len()
    );
    Ok(())
}

/// Numbers of several shapes for the samples, inside of the domain of all functions here and away from their kinks.
fn tensors(s: &Sampler) -> Vec<Tensor> {
    vec![s.uniform(&[2, 3], 0.1, 0.4), s.uniform(&[], 0.6, 0.9), s.uniform(&[0, 2], 0.1, 0.9)]
}

/// Others of shapes that broadcast with those of [`tensors`], all larger.
fn others(s: &Sampler) -> Vec<Tensor> {
    vec![s.uniform(&[3], 1.1, 1.4), s.uniform(&[], 1.6, 1.9), s.uniform(&[0, 1], 1.1, 1.9)]
}

/// The samples of an op that makes new tensors.
fn made(samples: Vec<Sample>) -> Vec<Sample> {
    samples
}

/// The samples of an op that writes: the list that it changes has no derivative of its own.
fn written(samples: Vec<Sample>) -> Vec<Sample> {
    samples.into_iter().map(Sample::without_gradient).collect()
}

/// A call that is refused as a `RuntimeError`.
fn refused(sample: Sample, phrase: &'static str) -> InvalidSample {
    InvalidSample::new(sample, ErrorKind::Runtime, phrase)
}

/// What an empty list is refused with.
const EMPTY: &str = "Tensor list must have at least one tensor.";
/// What lists of several lengths are refused with.
const LENGTHS: &str = "Tensor lists must have the same number of tensors, got 3 and 2";
/// What numbers of another count are refused with.
const SCALARS: &str = "Tensor list must have same number of elements as scalar list, got 3 and 2";
