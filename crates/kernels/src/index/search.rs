//! Positions in sorted sequences (`searchsorted`, `bucketize`) and counts per value (`bincount`).

use crate::dense::SharedMut;
use crate::line::{LineIter, ViewLayout, along, check_dtype, check_shape, get};
use crate::reduce::{store_f64, store_i64};
use crate::strided::is_contiguous;
use crate::{DType, Element, Error, Result, StridedMut, StridedRef, for_dtype, memory, parallel};
use smallvec::SmallVec;

/// For each value the first position in its sorted sequence where it could be inserted: before equal elements, or after
/// them if `right`. `sorted` has the leading dimensions of `values`, or is one sequence for all; `sorter` holds
/// the sorting order of a sequence that is not sorted itself.
///
/// # Errors
/// If shapes or dtypes do not fit; for complex dtypes.
pub fn searchsorted(
    out: &mut StridedMut<'_>,
    sorted: StridedRef<'_>,
    values: StridedRef<'_>,
    right: bool,
    sorter: Option<StridedRef<'_>>,
) -> Result<()> {
    check_shape("searchsorted", out.shape(), values.shape())?;
    check_dtype(
        "torch.searchsorted(): boundary tensor and input value tensor should have same dtype",
        values.dtype(),
        sorted.dtype(),
    )?;
    if !matches!(out.dtype(), DType::I64 | DType::I32) {
        check_dtype(
            "torch.searchsorted(): output tensor's dtype is wrong",
            out.dtype(),
            DType::I64,
        )?;
    }
    let leading = |view: &StridedRef<'_>| view.ndim().saturating_sub(1);
    let fits = sorted.ndim() == 1
        || (sorted.ndim() == values.ndim()
            && sorted.ndim() > 0
            && sorted.shape()[..leading(&sorted)] == values.shape()[..leading(&values)]);
    if !fits {
        return Err(Error::runtime(format!(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
            sorted.shape(),
            values.shape()
        )));
    }
    if let Some(sorter) = &sorter {
        check_shape(
            "torch.searchsorted(): boundary and sorter must have the same size",
            sorter.shape(),
            sorted.shape(),
        )?;
        check_dtype(
            "torch.searchsorted(): sorter must be a tensor of long dtype",
            sorter.dtype(),
            DType::I64,
        )?;
        let n = sorted.shape().last().copied().unwrap_or(0);
        super::check_bounds(sorter, (0, n), |_| {
            Error::runtime("torch.searchsorted(): sorter index out of range".into())
        })?;
    }
    let out = &*out;
    for_dtype!(sorted.dtype(), real, T => search_all::<T>(out, &sorted, &values, right, sorter.as_ref())?, else {
        return Err(Error::not_implemented("searchsorted_out_cpu", sorted.dtype()));
    });
    Ok(())
}

/// The bucket of each value among one-dimensional sorted `boundaries`: [`searchsorted`] with the roles swapped.
///
/// # Errors
/// If shapes or dtypes do not fit; for complex dtypes.
pub fn bucketize(
    out: &mut StridedMut<'_>,
    values: StridedRef<'_>,
    boundaries: StridedRef<'_>,
    right: bool,
) -> Result<()> {
    if boundaries.ndim() != 1 {
        return Err(Error::runtime(format!(
            "boundaries tensor must be 1 dimension, but got dim({})",
            boundaries.ndim()
        )));
    }
    searchsorted(out, boundaries, values, right, None)
}

/// One sorted sequence.
struct SortedSequence {
    ptr: *const u8,
    step: isize,
    n: usize,
    sorter: Option<(*const u8, isize)>,
}

impl SortedSequence {
    /// # Safety
    /// The sequence has `n` elements of `T`, its sorter as many indices below `n`.
    #[inline(always)]
    unsafe fn search<T: Element + PartialOrd>(&self, value: T, right: bool) -> i64 {
        let (mut low, mut high) = (0, self.n);
        while low < high {
            let middle = usize::midpoint(low, high);
            // SAFETY: promised by the caller.
            let element = unsafe {
                let at = match self.sorter {
                    Some((sorter, step)) => get::<i64>(sorter, middle as isize * step) as isize,
                    None => middle as isize,
                };
                get::<T>(self.ptr, at * self.step)
            };
            // Not-less keeps NaN, which compares with nothing, at the end of the sequence.
            let is_after = if right { element > value } else { element >= value };
            if is_after {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low as i64
    }
}

/// Values searched for together.
const LANES: usize = 8;

crate::multiversion! {
/// [`SortedSequence::search`] for many values in one dense sequence: each step halves the range of a group of values,
/// without branches that depend on them.
fn search_dense<T: SortedElement>(sorted: &[T], values: &[T], right: bool, positions: &mut [i64]) {
    let Some(last) = sorted.len().checked_sub(1) else { return positions.fill(0) };
    let steps = usize::BITS - sorted.len().leading_zeros();
    for (values, positions) in values.chunks(LANES).zip(positions.chunks_mut(LANES)) {
        let mut wanted = [values[0]; LANES];
        wanted[..values.len()].copy_from_slice(values);
        let (mut low, mut high) = ([0; LANES], [sorted.len(); LANES]);
        for _ in 0..steps {
            for i in 0..LANES {
                // A search that is over stays where it is.
                let middle = usize::midpoint(low[i], high[i]).min(last);
                let element = sorted[middle];
                let is_after = if right { element > wanted[i] } else { element >= wanted[i] };
                let is_open = low[i] < high[i];
                low[i] = if is_open & !is_after { middle + 1 } else { low[i] };
                high[i] = if is_open & is_after { middle } else { high[i] };
            }
        }
        for (position, &low) in positions.iter_mut().zip(&low) {
            *position = low as i64;
        }
    }
}
}

/// An element type with an order, in which `searchsorted` can search.
trait SortedElement: Element + PartialOrd {}
impl<T: Element + PartialOrd> SortedElement for T {}

fn search_all<T: Element + PartialOrd>(
    out: &StridedMut<'_>,
    sorted: &StridedRef<'_>,
    values: &StridedRef<'_>,
    right: bool,
    sorter: Option<&StridedRef<'_>>,
) -> Result<()> {
    if sorter.is_none()
        && out.dtype() == DType::I64
        && is_contiguous(out.shape(), out.strides())
        && let (Some(sequence), Some(values)) = (sorted.as_slice::<T>(), values.as_slice::<T>())
        && sorted.ndim() == 1
    {
        let shared = SharedMut::<i64>::from_ptr(out.ptr().cast());
        parallel::for_range(values.len(), 4096, &|range| {
            // SAFETY: the output is dense and has a position for each value; ranges do not overlap.
            let positions = unsafe { shared.slice(range.clone()) };
            search_dense(sequence, &values[range], right, positions);
        });
        return Ok(());
    }
    let last = sorted.ndim() - 1;
    let (n, step) = along(sorted.shape(), sorted, last);
    // A single sequence is the same for all values: zero strides.
    let zero = SmallVec::<[i64; 6]>::from_elem(0, values.ndim());
    let of = |view: &StridedRef<'_>| {
        let is_one = sorted.ndim() == 1;
        let mut strides = if is_one { zero.clone() } else { SmallVec::from_slice(view.strides()) };
        if let Some(stride) = strides.last_mut() {
            *stride = 0;
        }
        strides
    };
    let (base, sorter_base) = (of(sorted), sorter.map_or_else(|| zero.clone(), of));
    let views = [
        ViewLayout::from(out),
        ViewLayout::from(values),
        ViewLayout::of(&base, sorted.dtype().size()),
        ViewLayout::of(&sorter_base, 8),
    ];
    let lines = LineIter::new(values.shape(), None, views);
    let sorter_step = sorter.map(|s| along(s.shape(), s, last).1);
    parallel::for_range(lines.count(), 1024, &|range| {
        lines.visit(range, |[to, from, base, sorter_base]| {
            let sorter = sorter.zip(sorter_step);
            let sequence = SortedSequence {
                ptr: sorted.ptr().wrapping_offset(base),
                step,
                n,
                sorter: sorter.map(|(s, step)| (s.ptr().wrapping_offset(sorter_base), step)),
            };
            // SAFETY: the walk stays inside the views; sorter indices were checked.
            unsafe {
                let position = sequence.search(get::<T>(values.ptr(), from), right);
                store_i64(out.ptr(), to, out.dtype(), position);
            }
        });
    });
    Ok(())
}

/// How many bins [`bincount`] needs: one more than the largest value, at least `minlength`.
///
/// # Errors
/// If the input is not one-dimensional, not integral, or has a negative value.
pub fn bincount_size(input: StridedRef<'_>, minlength: usize) -> Result<usize> {
    let mut bounds = (0, -1);
    if input.ndim() == 1 && input.dtype().is_integral(false) {
        if let Some(values) = input.as_slice::<i64>() {
            bounds = range_of(values);
        } else {
            each_integer(&input, |value| bounds = (bounds.0.min(value), bounds.1.max(value)));
        }
        if bounds.0 >= 0 {
            return Ok(minlength.max((bounds.1 + 1) as usize));
        }
    }
    Err(Error::runtime("bincount only supports 1-d non-negative integral inputs.".into()))
}

crate::multiversion! {
/// The smallest of the numbers and 0, and the largest of the numbers and -1.
fn range_of(values: &[i64]) -> (i64, i64) {
    let (mut low, mut high) = (0, -1);
    for &value in values {
        low = low.min(value);
        high = high.max(value);
    }
    (low, high)
}
}

fn each_integer(input: &StridedRef<'_>, mut visit: impl FnMut(i64)) {
    let lines = LineIter::new(input.shape(), None, [ViewLayout::from(input)]);
    for_dtype!(input.dtype(), all, T => lines.visit(0..lines.count(), |[at]| {
        // SAFETY: the walk stays inside the view.
        visit(unsafe { get::<T>(input.ptr(), at) }.to_i64());
    }));
}

/// Counts (or, with `weights`, sums of weights) per value: `out[v]` for `v` in `0..bincount_size`; `out` is `i64`, or
/// floating-point with weights.
///
/// # Errors
/// If `out` is too small, or weights and input differ in size.
pub fn bincount(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    weights: Option<StridedRef<'_>>,
) -> Result<()> {
    let size = bincount_size(input, 0)?;
    if out.ndim() != 1 || out.numel() < size {
        return Err(Error::runtime(format!(
            "bincount: expected at least {size} bins but got {:?}",
            out.shape()
        )));
    }
    let step = out.strides()[0] as isize * out.dtype().size() as isize;
    let out = &*out;
    let Some(weights) = weights else {
        let mut counts = memory::filled(0_i64, out.numel())?;
        if let Some(values) = input.as_slice::<i64>() {
            for &value in values {
                counts[value as usize] += 1;
            }
        } else {
            each_integer(&input, |value| counts[value as usize] += 1);
        }
        for (i, &count) in counts.iter().enumerate() {
            // SAFETY: `out` has as many elements as there are counts.
            unsafe { store_i64(out.ptr(), i as isize * step, out.dtype(), count) };
        }
        return Ok(());
    };
    check_shape(
        "bincount: weights should be 1-d and have the same length as input",
        weights.shape(),
        input.shape(),
    )?;
    let mut sums = memory::filled(0_f64, out.numel())?;
    let is_single = out.dtype() == DType::F32;
    let (_, weight_step) = along(weights.shape(), &weights, 0);
    let mut at = 0;
    for_dtype!(weights.dtype(), all, T => each_integer(&input, |value| {
        // SAFETY: weights has as many elements as the input.
        let sum = sums[value as usize] + unsafe { get::<T>(weights.ptr(), at * weight_step) }.to_f64();
        // Single precision is rounded at each step, as adding in single precision does.
        sums[value as usize] = if is_single { f64::from(sum as f32) } else { sum };
        at += 1;
    }));
    for (i, &sum) in sums.iter().enumerate() {
        // SAFETY: `out` has as many elements as there are sums.
        unsafe { store_f64(out.ptr(), i as isize * step, out.dtype(), sum) };
    }
    Ok(())
}
