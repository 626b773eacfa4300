//! One op for each row of parallel lists; the ops on lists of tensors are made of this.
//!
//! A row is the arguments of one call. Results are recorded, batched and dispatched call by call, so that the gradient of a
//! result reaches the tensors of its own row only. Invariant: before the first row is written to, all rows have passed the
//! checks that need no elements.

use super::call::{call, call_inplace, check_call_inplace};
use super::thread::captured;
use crate::dispatch::{Arg, IntoOutputs, OpDef, Outputs};
use crate::{Result, Tensor};
use pullback_kernels::memory;

/// The results of `def`, an op with one result, for each of `count` rows.
///
/// # Errors
/// That of the first row which has one.
pub(crate) fn call_each<'a, const N: usize>(
    def: &'static OpDef,
    count: usize,
    row: impl Fn(usize) -> [Arg<'a>; N],
) -> Result<Outputs> {
    let mut results: Vec<Tensor> = memory::with_capacity(count)?;
    for at in 0..count {
        results.push(call(def, &row(at))?.one());
    }
    Ok(results.into_outputs())
}

/// Runs the in-place form of `def` for each of `count` rows, which writes into the row's first argument.
///
/// # Errors
/// That of the first row which has one; nothing is written then, unless it is an error that only elements show.
pub(crate) fn write_each<'a, const N: usize>(
    def: &'static OpDef,
    count: usize,
    row: impl Fn(usize) -> [Arg<'a>; N],
) -> Result<Outputs> {
    (0..count).try_for_each(|at| check_call_inplace(def, &row(at)))?;
    let _unchecked = captured::uncheck();
    for at in 0..count {
        call_inplace(def, &row(at))?;
    }
    Ok(().into_outputs())
}
