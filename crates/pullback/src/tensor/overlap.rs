//! Whether two tensors share elements: what in-place and `out=` forms must know before they write.
//!
//! Two strided tensors share an element if some combination of steps through the one and the other bridges
//! the distance of their first elements. That is searched for exactly; where the search would be long, or
//! where dtypes differ, the answer errs on the side of sharing.

use super::{Fields, Tensor, extent};
use crate::Result;
use pullback_kernels::memory;
use smallvec::SmallVec;

/// A stride, and the least and the greatest number of steps along it.
type OverlapSteps = (i64, i64, i64);

/// Combinations of steps that are tried; strides that nest, as views have them, take a few.
const TRIES: u32 = 1000;

/// Whether `a` and `b` share memory without being the same elements in the same order.
pub(crate) fn overlaps_partly(a: &Tensor, b: &Tensor) -> bool {
    shares_elements(a, b) && !is_same_geometry(a.geometry(), b.geometry())
}

/// Whether `a` and `b` share memory.
pub(crate) fn shares_elements(a: &Tensor, b: &Tensor) -> bool {
    if !shares_storage(a, b) {
        return false;
    }
    reach_same(a.geometry(), b.geometry())
}

/// As [`overlaps_partly`], for `a` after it gets the shape `shape`: if that is another one, its
/// elements lie row-major from its beginning.
pub(crate) fn overlaps_partly_resized(a: &Tensor, shape: &[i64], b: &Tensor) -> bool {
    if a.shape() == shape || !shares_storage(a, b) {
        return overlaps_partly(a, b);
    }
    let resized = a.geometry().if_resized(shape);
    resized.is_ok_and(|a| reach_same(&a, b.geometry()) && !is_same_geometry(&a, b.geometry()))
}

/// Whether no two of the tensors share an element, as far as that shows without a search: those whose spans of memory
/// meet count as sharing.
pub(crate) fn are_apart<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Result<bool> {
    let mut spans = Vec::new();
    for tensor in tensors.filter(|tensor| tensor.numel() > 0) {
        let g = tensor.geometry();
        let length = extent(&g.shape, &g.strides)? as usize * g.dtype.size();
        let start = g.data_ptr() as usize;
        memory::push(&mut spans, (start, start.saturating_add(length)))?;
    }
    spans.sort_unstable();
    Ok(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0))
}

/// Whether two views of one memory reach the same bytes.
fn reach_same(ga: &Fields, gb: &Fields) -> bool {
    if ga.numel == 0 || gb.numel == 0 {
        return false;
    }
    let range = |g: &Fields| {
        let start = g.offset * g.dtype.size() as i64;
        let length = extent(&g.shape, &g.strides).unwrap_or(i64::MAX / 16) * g.dtype.size() as i64;
        (start, start + length)
    };
    let ((a0, a1), (b0, b1)) = (range(ga), range(gb));
    a0 < b1 && b0 < a1 && (ga.dtype != gb.dtype || meet(ga, gb))
}

/// Whether `a` and `b` are the same elements in the same order.
pub(crate) fn is_same_elements(a: &Tensor, b: &Tensor) -> bool {
    shares_storage(a, b) && is_same_geometry(a.geometry(), b.geometry())
}

/// Whether `a` and `b` are parts of one memory.
pub(crate) fn shares_storage(a: &Tensor, b: &Tensor) -> bool {
    match (&a.geometry().storage, &b.geometry().storage) {
        (Some(a), Some(b)) => a.ptr_eq(b),
        _ => false,
    }
}

/// Whether two tensors have memory in common.
pub(crate) fn shares_memory(a: &Tensor, b: &Tensor) -> bool {
    match (&a.geometry().storage, &b.geometry().storage) {
        (Some(a), Some(b)) => a.ptr_eq(b),
        _ => a.is_same(b),
    }
}

fn is_same_geometry(a: &Fields, b: &Fields) -> bool {
    let mut dims = a.shape.iter().zip(a.strides.iter().zip(&b.strides));
    a.offset == b.offset
        && a.dtype == b.dtype
        && a.shape == b.shape
        && dims.all(|(&size, (from, to))| size == 1 || from == to)
}

/// Whether steps through `a` and back through `b` make up the distance from the first to the second.
fn meet(a: &Fields, b: &Fields) -> bool {
    let mut steps: SmallVec<[OverlapSteps; 10]> = SmallVec::new();
    for (g, sign) in [(a, 1), (b, -1)] {
        for (&stride, &size) in g.strides.iter().zip(&g.shape) {
            let reach = sign * (size - 1);
            if stride == 0 || reach == 0 {
                continue;
            }
            let known = steps.iter().position(|s| s.0 == stride);
            let entry = known.unwrap_or(steps.len());
            if known.is_none() {
                steps.push((stride, 0, 0));
            }
            steps[entry].1 += reach.min(0);
            steps[entry].2 += reach.max(0);
        }
    }
    steps.sort_unstable_by_key(|s| std::cmp::Reverse(s.0));
    bridges(&steps, b.offset - a.offset, &mut { TRIES })
}

/// Whether a combination of `steps`, the longest first, makes up `distance`; also if `tries` are used up.
fn bridges(steps: &[OverlapSteps], distance: i64, tries: &mut u32) -> bool {
    let Some((&(stride, least, most), shorter)) = steps.split_first() else { return distance == 0 };
    let common = steps.iter().fold(0, |common, s| divisor(common, s.0));
    if distance % common != 0 {
        return false;
    }
    let low: i64 = shorter.iter().map(|s| s.0 * s.1).sum();
    let high: i64 = shorter.iter().map(|s| s.0 * s.2).sum();
    // What is left for the shorter strides must lie between `low` and `high`.
    let first = least.max(-(high - distance).div_euclid(stride));
    let last = most.min((distance - low).div_euclid(stride));
    for count in first..=last {
        if *tries == 0 || bridges(shorter, distance - count * stride, tries) {
            return true;
        }
        *tries -= 1;
    }
    false
}

/// The greatest common divisor; `b` is positive.
fn divisor(a: i64, b: i64) -> i64 {
    if a == 0 { b } else { divisor(b % a, a) }
}
