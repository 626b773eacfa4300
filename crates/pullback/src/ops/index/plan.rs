//! The elements that indexing with tensors reads and writes: which dimensions have an index, what
//! the result looks like, and how its dimensions lie in memory.
//!
//! All of that is known without elements, except for masks, whose elements determine how much they
//! select. It is used by `index` in `select` and by `index_put` in `scatter`. Start at [`located`].

use crate::error::{bail, ensure};
use crate::tensor::Cpu;
use crate::tensor::shape::{broadcast_shapes, broadcast_strides, list};
use crate::{DType, Dims, Result, Tensor};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The plan of advanced indexing: which dimensions the (broadcast, int64) indices are for, and the
/// shape of the result, with the indexed dimensions where the first index was if they are adjacent,
/// else in front.
pub(in crate::ops) struct IndexPlan {
    /// The tensor, its dimensions moved so that the indexed ones are adjacent.
    pub(in crate::ops) input: Tensor,
    pub(in crate::ops) dims: SmallVec<[usize; 4]>,
    pub(in crate::ops) indices: SmallVec<[Tensor; 4]>,
    pub(in crate::ops) shape: Dims,
}

/// Bool and uint8 masks as one index per dimension.
pub(super) fn expand_masks(indices: &[Option<Tensor>]) -> Result<Cow<'_, [Option<Tensor>]>> {
    if indices.iter().flatten().all(|index| index.dtype() == DType::I64) {
        return Ok(indices.into());
    }
    // bounded: by the number of indices.
    let mut out = Vec::with_capacity(indices.len());
    for index in indices {
        match index {
            Some(mask) if is_mask(mask) => {
                let positions = mask.nonzero()?;
                for d in 0..mask.ndim() {
                    out.push(Some(positions.select(1, d as i64)?));
                }
            }
            index => out.push(index.clone()),
        }
    }
    Ok(out.into())
}

fn is_mask(index: &Tensor) -> bool {
    matches!(index.dtype(), DType::Bool | DType::U8)
}

/// Refuses indices of other dtypes, masks of other shapes than what they cover, and more indices
/// than there are dimensions. Returns whether there are masks, whose elements determine how much
/// they select.
pub(in crate::ops) fn check_indices(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<bool> {
    let (mut at, mut has_mask) = (0, false);
    for index in indices {
        let Some(mask) = index.as_ref().filter(|index| is_mask(index)) else {
            let is_number =
                |t: &Tensor| matches!(t.dtype(), DType::I64 | DType::I32 | DType::I16 | DType::I8);
            ensure!(
                index.as_ref().is_none_or(is_number),
                index,
                "tensors used as indices must be long, int, byte or bool tensors"
            );
            at += 1;
            continue;
        };
        has_mask = true;
        for d in 0..mask.ndim() {
            let have = self_.shape().get(at + d).copied().unwrap_or(0);
            ensure!(
                mask.shape()[d] == have,
                index,
                "The shape of the mask {} at index {d} does not match the shape of the indexed tensor {} at index {}",
                list(mask.shape()),
                list(self_.shape()),
                at + d
            );
        }
        if mask.ndim() == 0 {
            bail!(index, "a 0-dim mask is to be made a dimension of its own before indexing");
        }
        at += mask.ndim();
    }
    ensure!(
        at <= self_.ndim(),
        index,
        "too many indices for tensor of dimension {} (got {at})",
        self_.ndim()
    );
    Ok(has_mask)
}

/// The mask, if that alone is the index and it covers every dimension.
pub(in crate::ops) fn whole_mask<'t>(
    self_: &Tensor,
    indices: &'t [Option<Tensor>],
) -> Option<&'t Tensor> {
    match indices {
        [Some(mask)]
            if mask.dtype() == DType::Bool && mask.ndim() > 0 && mask.shape() == self_.shape() =>
        {
            Some(mask)
        }
        _ => None,
    }
}

/// The geometry of the results of indexing, known without elements.
pub(in crate::ops) struct Located {
    /// The dimensions that have an index.
    pub(super) given: SmallVec<[usize; 4]>,
    /// The broadcast shape of the indices.
    common: Dims,
    /// Sizes of the result.
    pub(in crate::ops) shape: Dims,
    /// The order of the tensor's dimensions in which the indexed ones are adjacent, if they are not.
    order: Option<Dims>,
}

impl Located {
    /// The number of dimensions before those of the indices.
    fn before(&self) -> usize {
        if self.order.is_some() { 0 } else { self.given.first().copied().unwrap_or(0) }
    }
    /// The result's strides: its dimensions lie in the order in which the operands' do, the
    /// tensor's first, whose indexed dimensions do not count; where the operands do not determine
    /// the order, in their own.
    pub(super) fn strides(&self, self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Dims> {
        let (rank, before) = (self.shape.len(), self.before());
        let mut operands: SmallVec<[Dims; 4]> = SmallVec::new();
        let rest = (0..self_.ndim()).filter(|d| !self.given.contains(d));
        let mut own: Dims = rest.map(|d| self_.strides()[d]).collect();
        own.insert_many(before, self.common.iter().map(|_| 0));
        operands.push(own);
        for &dim in &self.given {
            let Some(index) = &indices[dim] else { continue };
            let wide = broadcast_strides(index.shape(), index.strides(), &self.common)?;
            let mut strides = Dims::from_elem(0, rank);
            strides[before..before + wide.len()].copy_from_slice(&wide);
            operands.push(strides);
        }
        Ok(strides_in_order(&self.shape, &operands))
    }
}

/// Strides without gaps of a result of several operands: from the innermost dimension outwards, one lies within another if the
/// first operand that has both says so.
fn strides_in_order(shape: &[i64], operands: &[Dims]) -> Dims {
    // Whether `inner` is to lie outside of `outer`; `None` if no operand says.
    let swaps = |inner: usize, outer: usize| -> Option<bool> {
        for strides in operands {
            let (a, b) = (strides[inner], strides[outer]);
            if a == 0 || b == 0 || a == b && shape[inner] <= shape[outer] {
                continue;
            }
            return Some(a >= b);
        }
        None
    };
    let mut order: SmallVec<[usize; 5]> = (0..shape.len()).rev().collect();
    for end in 1..order.len() {
        let mut at = end;
        for before in (0..end).rev() {
            match swaps(order[before], order[at]) {
                Some(true) => {
                    order.swap(before, at);
                    at = before;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    let (mut out, mut stride) = (Dims::from_elem(1, shape.len()), 1);
    for dim in order {
        out[dim] = stride;
        stride *= shape[dim].max(1);
    }
    out
}

/// The positions of the elements that indices without masks name. The indices have passed
/// [`check_indices`].
///
/// # Errors
/// `IndexError` if the indices do not broadcast together.
pub(in crate::ops) fn located(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Located> {
    let given: SmallVec<[usize; 4]> =
        indices.iter().enumerate().filter_map(|(d, i)| i.as_ref().map(|_| d)).collect();
    let shapes: SmallVec<[&[i64]; 4]> = indices.iter().flatten().map(Tensor::shape).collect();
    let Ok(common) = broadcast_shapes(&shapes) else {
        let shapes: Vec<String> = shapes.iter().map(|s| list(s)).collect();
        bail!(
            index,
            "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
            shapes.join(", ")
        );
    };
    let adjacent = given.windows(2).all(|w| w[0] + 1 == w[1]);
    let order = (!adjacent).then(|| {
        let rest = (0..self_.ndim()).filter(|d| !given.contains(d));
        given.iter().copied().chain(rest).map(|d| d as i64).collect::<Dims>()
    });
    let mut shape: Dims =
        (0..self_.ndim()).filter(|d| !given.contains(d)).map(|d| self_.shape()[d]).collect();
    let mut located = Located { given, common, shape: Dims::new(), order };
    shape.insert_many(located.before(), located.common.iter().copied());
    located.shape = shape;
    Ok(located)
}

/// Prepares indexing of `self_` with indices that passed [`check_indices`]. No history.
pub(in crate::ops) fn plan(
    cpu: Cpu,
    self_: &Tensor,
    indices: &[Option<Tensor>],
) -> Result<IndexPlan> {
    let indices = expand_masks(indices)?;
    let located = located(self_, &indices)?;
    let (input, dims) = match &located.order {
        None => (self_.clone(), located.given.clone()),
        Some(order) => (self_.permute(order)?, (0..located.given.len()).collect()),
    };
    let wide = |index: &Tensor| {
        let index = if index.dtype() == DType::I64 {
            index.clone()
        } else {
            index.converted(cpu, DType::I64)?
        };
        if index.shape() == &*located.common {
            Ok(index)
        } else {
            index.expand(&located.common, false)
        }
    };
    let wide = indices.iter().flatten().map(wide).collect::<Result<_>>()?;
    Ok(IndexPlan { dims, indices: wide, shape: located.shape, input })
}
