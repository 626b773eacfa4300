//! Indexing as Python writes it: `x[1, 2:5, None, mask]`, for Python and Rust.
//!
//! Ints, slices, `None` and `...` become views, one op each; tensors become one `index` (when writing,
//! `index_put_`) on what the views left. This is no op: it records nothing of its own. Invariant: an
//! index without tensors gives a view and never the tensor itself. Start at [`get`] and [`set`];
//! [`Tensor::i`] is the short form for Rust.

use crate::call_site::Scope;
use crate::error::{bail, ensure};
use crate::{DType, Result, Tensor};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;

/// One part of an index.
#[derive(Clone, Debug)]
pub enum Index {
    /// One position; counts from the end if negative.
    Int(i64),
    /// Positions from `start` up to `stop`, every `step`-th; both ends are clipped.
    Slice {
        /// The first one.
        start: Option<i64>,
        /// The position after the last one.
        stop: Option<i64>,
        /// The distance from one position to the next; must be positive.
        step: Option<i64>,
    },
    /// `...`: as many whole dimensions as are left.
    Ellipsis,
    /// `None`: a new dimension of size 1.
    NewAxis,
    /// `True` or `False`: a new dimension of size 1 or 0.
    Bool(bool),
    /// Positions, or a mask.
    Tensor(Tensor),
}

impl Index {
    /// `start:stop:step`.
    pub fn slice(start: Option<i64>, stop: Option<i64>, step: i64) -> Index {
        Index::Slice { start, stop, step: Some(step) }
    }
}

/// `...` in [`Tensor::i`]: as many whole dimensions as are left.
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

/// `None` in [`Tensor::i`]: a new dimension of size 1.
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;

/// The position after `last`; `None` after the last element of all.
fn past(last: i64) -> Option<i64> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

macro_rules! from {
    ($($t:ty: $value:ident => $index:expr);* $(;)?) => {$(
        impl From<$t> for Index {
            fn from($value: $t) -> Self { $index }
        }
    )*};
}
from! {
    i64: v => Index::Int(v);
    i32: v => Index::Int(v.into());
    bool: v => Index::Bool(v);
    Ellipsis: _v => Index::Ellipsis;
    NewAxis: _v => Index::NewAxis;
    Tensor: v => Index::Tensor(v);
    &Tensor: v => Index::Tensor(v.clone());
    RangeFull: _v => Index::Slice { start: None, stop: None, step: None };
    Range<i64>: v => Index::Slice { start: Some(v.start), stop: Some(v.end), step: None };
    RangeFrom<i64>: v => Index::Slice { start: Some(v.start), stop: None, step: None };
    RangeTo<i64>: v => Index::Slice { start: None, stop: Some(v.end), step: None };
    RangeInclusive<i64>: v => Index::Slice { start: Some(*v.start()), stop: past(*v.end()), step: None };
    RangeToInclusive<i64>: v => Index::Slice { start: None, stop: past(v.end), step: None };
}

/// Something that [`Tensor::i`] takes: one index, a tuple of up to six, or a list.
pub trait IntoIndices {
    /// As a list.
    fn into_indices(self) -> Vec<Index>;
}
impl<T: Into<Index>> IntoIndices for T {
    fn into_indices(self) -> Vec<Index> {
        vec![self.into()]
    }
}
impl IntoIndices for Vec<Index> {
    fn into_indices(self) -> Vec<Index> {
        self
    }
}
macro_rules! tuples {
    ($(($($t:ident),+)),+) => {$(
        impl<$($t: Into<Index>),+> IntoIndices for ($($t,)+) {
            #[allow(non_snake_case, reason = "one name serves as type and as value")]
            fn into_indices(self) -> Vec<Index> {
                let ($($t,)+) = self;
                vec![$($t.into()),+]
            }
        }
    )+};
}
tuples!((A), (A, B), (A, B, C), (A, B, C, D), (A, B, C, D, E), (A, B, C, D, E, F));

impl Tensor {
    /// The part that `index` names: ints, ranges, [`NewAxis`], [`Ellipsis`], bools, tensors, or a tuple of them.
    ///
    /// ```
    /// use pullback::{Tensor, index::NewAxis};
    /// # fn main() -> pullback::Result<()> {
    /// let x = Tensor::from_slice(&[0, 1, 2, 3, 4, 5], &[2, 3])?;
    /// assert_eq!(x.i((.., 1..3))?.to_vec::<i32>()?, [1, 2, 4, 5]);
    /// assert_eq!(x.i((-1, NewAxis, 0))?.shape(), [1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`].
    #[track_caller]
    pub fn i(&self, index: impl IntoIndices) -> Result<Tensor> {
        get(self, &index.into_indices())
    }
    /// Writes `value`, converted and broadcast, into the part that `index` names.
    ///
    /// # Errors
    /// As [`set`].
    #[track_caller]
    pub fn set_i(&self, index: impl IntoIndices, value: &Tensor) -> Result<()> {
        set(self, &index.into_indices(), value)
    }
}

/// The part of `source` that `indices` name: a view if there is no tensor and no bool among them, else a copy.
///
/// # Errors
/// `IndexError` for too many or too large indices and masks of the wrong shape; `ValueError` for steps
/// that are not positive.
#[inline]
#[track_caller]
pub fn get(source: &Tensor, indices: &[Index]) -> Result<Tensor> {
    let _site = Scope::of_caller(Location::caller());
    match indices {
        [Index::Int(at)] => select(source, 0, 0, *at),
        [Index::Slice { start, stop, step }] => slice(source, 0, *start, *stop, step.unwrap_or(1)),
        [Index::NewAxis] => source.unsqueeze(0),
        [Index::Ellipsis] => source.alias(),
        [Index::Tensor(at)] if !is_mask(at) => source.index(&[Some(at.clone())]),
        _ => {
            let Sliced { view, tensors, .. } = apply(source, indices)?;
            if !tensors.is_empty() {
                return view.index(&tensors);
            }
            if view.is_same(source) { view.alias() } else { Ok(view) }
        }
    }
}

/// Writes `value`, converted and broadcast, into the part of `target` that `indices` name. Where tensors name
/// one element twice, which value stays is not specified.
///
/// # Errors
/// As [`get`]; `RuntimeError` if the value does not broadcast or autograd forbids the write.
#[track_caller]
pub fn set(target: &Tensor, indices: &[Index], value: &Tensor) -> Result<()> {
    let _site = Scope::of_caller(Location::caller());
    match indices {
        [Index::Bool(false)] => return Ok(()),
        [Index::Bool(true)] => return assign(&target.unsqueeze(0)?, value),
        [Index::Int(at)] => return assign(&select(target, 0, 0, *at)?, value),
        [Index::Ellipsis] => return assign(target, value),
        _ => {}
    }
    let Sliced { view, tensors, .. } = apply(target, indices)?;
    if tensors.is_empty() {
        return assign(&view, value);
    }
    let value = without_leading_ones(value)?;
    view.index_put_(&tensors, &value, false).map(|_| ())
}

/// Copies into a view; what does not broadcast is refused as `expand` refuses it.
fn assign(view: &Tensor, value: &Tensor) -> Result<()> {
    if value.shape() == view.shape() || value.ndim() == 0 {
        return view.copy_(value, false).map(|_| ());
    }
    let value = without_leading_ones(value)?.expand(view.shape(), true)?;
    view.copy_(&value, false).map(|_| ())
}

/// A value may have more leading dimensions of size 1 than the part it is written to has dimensions.
fn without_leading_ones(value: &Tensor) -> Result<Tensor> {
    let ones = value.shape().iter().take_while(|&&size| size == 1).count();
    if ones == 0 {
        return Ok(value.clone());
    }
    value.reshape(&value.shape()[ones..])
}

/// The view that the ints, slices and `None` of an index make, and the tensors that are left.
struct Sliced {
    view: Tensor,
    /// One index per dimension, `None` for those taken whole; a mask stands for as many as it has.
    tensors: Vec<Option<Tensor>>,
    /// Dimensions that `tensors` stand for.
    covered: usize,
}

/// Whether a tensor index is a mask rather than a list of positions.
fn is_mask(index: &Tensor) -> bool {
    matches!(index.dtype(), DType::Bool | DType::U8)
}

/// How many dimensions of the source an index part covers.
fn takes(index: &Index) -> usize {
    match index {
        Index::Ellipsis | Index::NewAxis | Index::Bool(_) => 0,
        Index::Tensor(t) if is_mask(t) => t.ndim(),
        Index::Int(_) | Index::Slice { .. } | Index::Tensor(_) => 1,
    }
}

fn apply(source: &Tensor, indices: &[Index]) -> Result<Sliced> {
    let taken: usize = indices.iter().map(takes).sum();
    let ndim = source.ndim();
    ensure!(taken <= ndim, index, "too many indices for tensor of dimension {ndim}");
    let mut out = Sliced { view: source.clone(), tensors: Vec::new(), covered: 0 };
    // The dimension of the view, and the one of the source that it was.
    let (mut dim, mut own) = (0, 0);
    // Only the first `...` has anything left to take.
    let mut left = ndim - taken;
    for index in indices {
        match index {
            Index::Int(at) => out.view = select(&out.view, dim, own, *at)?,
            Index::Slice { start, stop, step } => {
                let step = step.unwrap_or(1);
                if step != 1 || !is_whole(out.view.shape()[dim], *start, *stop) {
                    out.view = slice(&out.view, dim, *start, *stop, step)?;
                }
                dim += 1;
            }
            Index::Ellipsis => {
                let skipped = std::mem::take(&mut left);
                dim += skipped;
                own += skipped;
            }
            Index::NewAxis => {
                out.view = out.view.unsqueeze(dim as i64)?;
                dim += 1;
            }
            Index::Bool(keep) => {
                out.keep(dim, *keep)?;
                dim += 1;
            }
            Index::Tensor(t) if t.ndim() == 0 && is_mask(t) => {
                out.keep(dim, t.item()?.to_i64() != 0)?;
                dim += 1;
            }
            Index::Tensor(t) if t.ndim() == 0 && t.dtype().is_integral(false) => {
                out.view = select(&out.view, dim, own, t.item()?.to_i64())?;
            }
            Index::Tensor(t) => {
                ensure!(
                    is_mask(t) || matches!(t.dtype(), DType::I64 | DType::I32),
                    index,
                    "tensors used as indices must be long, int, byte or bool tensors, got {}",
                    t.dtype().spelled()
                );
                out.put(dim, t.clone(), takes(index));
                dim += takes(index);
            }
        }
        own += takes(index);
    }
    Ok(out)
}

impl Sliced {
    fn put(&mut self, dim: usize, tensor: Tensor, dims: usize) {
        let gap = dim - self.covered;
        self.tensors.extend(std::iter::repeat_n(None, gap));
        self.tensors.push(Some(tensor));
        self.covered = dim + dims;
    }
    /// A boolean: a new dimension, of which its one slice is taken or none.
    fn keep(&mut self, dim: usize, keep: bool) -> Result<()> {
        self.view = self.view.unsqueeze(dim as i64)?;
        let positions: &[i64] = if keep { &[0] } else { &[] };
        self.put(dim, Tensor::from_slice(positions, &[positions.len() as i64])?, 1);
        Ok(())
    }
}

/// Whether a slice of step 1 takes everything.
fn is_whole(size: i64, start: Option<i64>, stop: Option<i64>) -> bool {
    start.is_none_or(|s| s == 0 || s <= -size) && stop.is_none_or(|s| s >= size)
}

/// The slice `at` of dimension `dim`, which errors call `own`.
#[inline]
fn select(source: &Tensor, dim: usize, own: usize, at: i64) -> Result<Tensor> {
    let Some(&size) = source.shape().get(dim) else {
        bail!(
            index,
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        );
    };
    ensure!(
        at >= -size && at < size,
        index,
        "index {at} is out of bounds for dimension {own} with size {size}"
    );
    source.select(dim as i64, at)
}

#[inline]
fn slice(
    source: &Tensor,
    dim: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<Tensor> {
    ensure!(step > 0, value, "step must be greater than zero");
    ensure!(dim < source.ndim(), index, "slice() cannot be applied to a 0-dim tensor.");
    source.slice(dim as i64, start, stop, step)
}
