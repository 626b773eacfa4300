//! Whether two tensors share elements: what in-place and `out=` forms must know before they write.

use super::{Geometry, Tensor, extent};
use smallvec::SmallVec;

/// Whether `a` and `b` share memory without being the same elements in the same order.
pub(crate) fn overlaps_partly(a: &Tensor, b: &Tensor) -> bool {
    let (ga, gb) = (a.geometry(), b.geometry());
    let (Some(sa), Some(sb)) = (&ga.storage, &gb.storage) else { return false };
    if !sa.ptr_eq(sb) || ga.numel == 0 || gb.numel == 0 {
        return false;
    }
    let same = ga.offset == gb.offset && ga.shape == gb.shape && ga.strides == gb.strides;
    if same && ga.dtype == gb.dtype {
        return false;
    }
    let range = |g: &Geometry| {
        let start = g.offset * g.dtype.size() as i64;
        let length = extent(&g.shape, &g.strides).unwrap_or(i64::MAX / 16) * g.dtype.size() as i64;
        (start, start + length)
    };
    let ((a0, a1), (b0, b1)) = (range(ga), range(gb));
    a0 < b1 && b0 < a1 && !interleaved(ga, gb)
}

/// Two column blocks of one matrix overlap as ranges but share no element: the common case of equal
/// strides, where the offset difference must be a combination of steps.
fn interleaved(a: &Geometry, b: &Geometry) -> bool {
    if a.dtype != b.dtype || a.strides != b.strides || a.shape.is_empty() {
        return false;
    }
    let mut dims: SmallVec<[(i64, i64); 5]> = a
        .strides
        .iter()
        .zip(a.shape.iter().zip(&b.shape))
        .map(|(&stride, (&m, &n))| (stride, m.max(n)))
        .filter(|&(stride, _)| stride > 0)
        .collect();
    dims.sort_unstable_by_key(|d| std::cmp::Reverse(d.0));
    // Greedy decomposition is exact when each stride exceeds the reach of the smaller ones.
    let mut rest = (a.offset - b.offset).abs();
    let mut shared = true;
    for &(stride, size) in &dims {
        let steps = rest / stride;
        if steps >= size {
            shared = false;
        }
        rest -= steps * stride;
    }
    let inner: i64 = dims.last().map_or(1, |d| d.0);
    // `rest` is what no whole steps reach; with rows split into blocks the step counts exceed the block.
    !shared || (rest != 0 && rest < inner) || {
        let mut rest = (a.offset - b.offset).abs();
        dims.iter().any(|&(stride, size)| {
            let steps = rest / stride;
            rest -= steps * stride;
            steps >= size
        })
    }
}
