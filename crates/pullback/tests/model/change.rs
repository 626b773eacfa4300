//! In-place changes of sizes and strides, for the library's tensors and for the model's arrays.
//!
//! Of an array only the order of its places changes; the buffer stays as it is. Numbers are read modulo what is there.

use super::{Array, each_index};
use pullback::{Result, Tensor};

/// How many kinds of changes there are.
pub(crate) const KINDS: u8 = 9;

/// One change of a tensor of a certain rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    T,
    Transpose(usize, usize),
    Squeeze,
    SqueezeDim(usize),
    SqueezeDims(Vec<usize>),
    Unsqueeze(usize),
    /// `as_strided_`: the dimensions in the opposite order.
    Reversed,
    /// `as_strided_`: every second index of a dimension, from the first or the second one on.
    EverySecond(usize, usize),
    /// `as_strided_`: each element twice, in a new last dimension.
    Twice,
}

impl Change {
    /// The change that these numbers mean for an array of `ndim` dimensions.
    pub(crate) fn of(kind: u8, a: u8, b: u8, ndim: usize) -> Change {
        let (p, q) = (a as usize % ndim.max(1), b as usize % ndim.max(1));
        match kind % KINDS {
            0 if ndim <= 2 => Change::T,
            0 | 1 => Change::Transpose(p, q),
            2 => Change::Squeeze,
            3 => Change::SqueezeDim(p),
            4 if p == q => Change::SqueezeDims(vec![p]),
            4 => Change::SqueezeDims(vec![p, q]),
            5 => Change::Unsqueeze(a as usize % (ndim + 1)),
            6 => Change::Reversed,
            7 if ndim > 0 => Change::EverySecond(p, b as usize % 2),
            _ => Change::Twice,
        }
    }

    /// Changes a tensor; `from_end` counts dimensions from the end.
    pub(crate) fn apply(&self, tensor: &Tensor, from_end: bool) -> Result<()> {
        let ndim = tensor.ndim();
        let dim = |d: usize| {
            if from_end && ndim > 0 { d as i64 - ndim as i64 } else { d as i64 }
        };
        let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
        let mut offset = tensor.storage_offset();
        match self {
            Change::T => return tensor.t_().map(drop),
            Change::Transpose(p, q) => return tensor.transpose_(dim(*p), dim(*q)).map(drop),
            Change::Squeeze => return tensor.squeeze_().map(drop),
            Change::SqueezeDim(p) => return tensor.squeeze_dim_(dim(*p)).map(drop),
            Change::SqueezeDims(dims) => {
                let dims: Vec<i64> = dims.iter().map(|&d| dim(d)).collect();
                return tensor.squeeze_dims_(&dims).map(drop);
            }
            Change::Unsqueeze(p) => {
                let at = if from_end { *p as i64 - ndim as i64 - 1 } else { *p as i64 };
                return tensor.unsqueeze_(at).map(drop);
            }
            Change::Reversed => {
                shape.reverse();
                strides.reverse();
            }
            Change::EverySecond(p, start) => {
                offset += (*start as i64).min(shape[*p]) * strides[*p];
                shape[*p] = every_second(shape[*p] as usize, *start).len() as i64;
                strides[*p] *= 2;
            }
            Change::Twice => {
                shape.push(2);
                strides.push(0);
            }
        }
        tensor.as_strided_(&shape, &strides, Some(offset)).map(drop)
    }

    /// The array after the change.
    pub(crate) fn model(&self, array: &Array) -> Array {
        let old = &array.shape;
        let swapped = |p: usize, q: usize| {
            let order = |at: &[usize]| {
                let mut at = at.to_vec();
                if !at.is_empty() {
                    at.swap(p, q);
                }
                at
            };
            array.seen(&order(old), order)
        };
        match self {
            Change::T => swapped(0, usize::from(old.len() == 2)),
            Change::Transpose(p, q) => swapped(*p, *q),
            Change::Squeeze => without(array, |_| true),
            Change::SqueezeDim(p) => without(array, |d| d == *p),
            Change::SqueezeDims(dims) => without(array, |d| dims.contains(&d)),
            Change::Unsqueeze(p) => {
                let mut shape = old.clone();
                shape.insert(*p, 1);
                Array { shape, ..array.clone() }
            }
            Change::Reversed => {
                let reversed = |at: &[usize]| at.iter().rev().copied().collect::<Vec<_>>();
                array.seen(&reversed(old), reversed)
            }
            Change::EverySecond(p, start) => {
                let kept = every_second(old[*p], *start);
                let mut shape = old.clone();
                shape[*p] = kept.len();
                array.seen(&shape, |at| {
                    let mut at = at.to_vec();
                    at[*p] = kept[at[*p]];
                    at
                })
            }
            Change::Twice => {
                let mut shape = old.clone();
                shape.push(2);
                array.seen(&shape, |at| at[..at.len() - 1].to_vec())
            }
        }
    }
}

fn every_second(size: usize, start: usize) -> Vec<usize> {
    (start..size).step_by(2).collect()
}

/// Without those dimensions of size 1 that are `meant`.
fn without(array: &Array, meant: impl Fn(usize) -> bool) -> Array {
    let kept = array.shape.iter().enumerate().filter(|&(d, &size)| size != 1 || !meant(d));
    let shape: Vec<usize> = kept.map(|(_, &size)| size).collect();
    debug_assert_eq!(each_index(&shape).count(), array.places.len());
    Array { shape, ..array.clone() }
}
