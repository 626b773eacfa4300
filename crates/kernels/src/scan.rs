//! Cumulative operations along a dimension: cumsum, cumprod, cummax and cummin with indices, logcumsumexp.
//!
//! Lines are scanned where they lie (`walk`) in one of a few types; other dtypes are converted first. Sums and products of
//! `f32` and narrower are carried in `f64`.

mod recurrence;
mod walk;

use crate::dense::{Compute, Real, for_compute, load, with_output};
use crate::elementwise::complex;
use crate::line::{check_dim, check_dtype, check_shape};
use crate::reduce::{BoundedOrder, compute_dtype};
use crate::simd::math_f64;
use crate::{C64, C128, DType, Element, Error, Result, StridedMut, StridedRef};
pub use recurrence::linear_recurrence;
use std::marker::PhantomData;
use walk::BLOCK;

/// A scan along lines: what it carries from one position to the next, and what it gives for each.
trait Scan: Sync {
    /// The elements that it reads and writes.
    type Item: Element;
    /// What it carries from one position to the next.
    type State: Copy + Send + Sync;
    /// Whether the scan also writes the index in the line of the item that its state was last taken
    /// from; an item that becomes the state is the result up to it.
    const WRITES: bool = false;
    /// Whether the scan reads indices, to find which items are at their own.
    const READS: bool = false;
    /// Whether [`Scan::block`] is quicker for long lines.
    const BLOCKS: bool = false;
    /// Whether a step costs no more than transposing its item would; only for scans without indices.
    const IS_QUICK: bool = false;
    /// The state before the first item.
    fn start(&self) -> Self::State;
    /// Whether there are indices to write or to read.
    #[inline(always)]
    fn has_indices() -> bool {
        Self::WRITES || Self::READS
    }
    /// Takes one item and whether its index is its own; returns the result up to it, and whether
    /// the item became the state.
    fn next(&self, state: &mut Self::State, item: Self::Item, own: bool) -> (Self::Item, bool);
    /// Scans consecutive items of one line in place.
    #[inline(always)]
    fn block(&self, state: &mut Self::State, items: &mut [Self::Item]) {
        for item in items {
            *item = self.next(state, *item, false).0;
        }
    }
}

/// Running sum of `f32`, carried in double precision.
struct SumF32;
impl Scan for SumF32 {
    type Item = f32;
    type State = f64;
    const BLOCKS: bool = true;
    #[inline(always)]
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn next(&self, state: &mut f64, item: f32, _: bool) -> (f32, bool) {
        *state += f64::from(item);
        (*state as f32, false)
    }
    fn block(&self, state: &mut f64, items: &mut [f32]) {
        crate::multiversion! {
            fn run(state: &mut f64, items: &mut [f32]) {
                chains(state, items, f64::from, |sum| sum as f32);
            }
        }
        run(state, items);
    }
}

/// Running sums of a block in eight chains side by side, so that a sum waits for the one before it only in its own chain;
/// the totals of earlier chains are added after.
#[inline(always)]
fn chains<T: Copy>(
    state: &mut f64,
    items: &mut [T],
    widen: impl Fn(T) -> f64,
    round: impl Fn(f64) -> T,
) {
    if items.len() != BLOCK {
        for item in items {
            *state += widen(*item);
            *item = round(*state);
        }
        return;
    }
    const CHAIN: usize = BLOCK / 8;
    let mut sums = [0.0_f64; BLOCK];
    let mut totals = [0.0_f64; 8];
    for i in 0..CHAIN {
        for (chain, total) in totals.iter_mut().enumerate() {
            *total += widen(items[chain * CHAIN + i]);
            sums[chain * CHAIN + i] = *total;
        }
    }
    let (lines, _) = items.as_chunks_mut::<CHAIN>();
    let (parts, _) = sums.as_chunks::<CHAIN>();
    for ((line, part), total) in lines.iter_mut().zip(parts).zip(totals) {
        for (item, &sum) in line.iter_mut().zip(part) {
            *item = round(*state + sum);
        }
        *state += total;
    }
}

struct SumF64;
impl Scan for SumF64 {
    type Item = f64;
    type State = f64;
    const BLOCKS: bool = true;
    const IS_QUICK: bool = true;
    #[inline(always)]
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn next(&self, state: &mut f64, item: f64, _: bool) -> (f64, bool) {
        *state += item;
        (*state, false)
    }
    fn block(&self, state: &mut f64, items: &mut [f64]) {
        crate::multiversion! {
            fn run(state: &mut f64, items: &mut [f64]) {
                chains(state, items, |x| x, |sum| sum);
            }
        }
        run(state, items);
    }
}

macro_rules! plain_scan {
    ($name:ident, $item:ty, $state:ty, $start:expr, |$s:ident, $x:ident| $step:expr, $yield:expr) => {
        struct $name;
        impl Scan for $name {
            type Item = $item;
            type State = $state;
            const IS_QUICK: bool = size_of::<$item>() >= 8;
            #[inline(always)]
            fn start(&self) -> $state {
                $start
            }
            #[inline(always)]
            fn next(&self, state: &mut $state, $x: $item, _: bool) -> ($item, bool) {
                let $s = *state;
                *state = $step;
                let $s = *state;
                ($yield, false)
            }
        }
    };
}

#[inline(always)]
fn wide_complex(z: C64) -> C128 {
    C128::new(f64::from(z.re), f64::from(z.im))
}
#[inline(always)]
fn narrow_complex(z: C128) -> C64 {
    C64::new(z.re as f32, z.im as f32)
}

plain_scan!(SumI64, i64, i64, 0, |s, x| s.wrapping_add(x), s);
plain_scan!(SumC64, C64, C128, C128::default(), |s, x| s + wide_complex(x), narrow_complex(s));
plain_scan!(SumC128, C128, C128, C128::default(), |s, x| s + x, s);
plain_scan!(ProdF32, f32, f64, 1.0, |s, x| s * f64::from(x), s as f32);
plain_scan!(ProdF64, f64, f64, 1.0, |s, x| s * x, s);
plain_scan!(ProdI64, i64, i64, 1, |s, x| s.wrapping_mul(x), s);
plain_scan!(ProdC64, C64, C128, C128::new(1.0, 0.0), |s, x| s * wide_complex(x), narrow_complex(s));
plain_scan!(ProdC128, C128, C128, C128::new(1.0, 0.0), |s, x| s * x, s);
plain_scan!(
    LogC128,
    C128,
    C128,
    C128::new(f64::NEG_INFINITY, 0.0),
    |s, x| complex_log_add_exp(x, s),
    s
);

/// Running `log(sum(exp(x)))`: the maximum so far, and the sum of the powers relative to it. No step waits for the exponential
/// or the logarithm of the one before it.
struct LogCumSumExp<T>(PhantomData<T>);

impl<T: Real> Scan for LogCumSumExp<T> {
    type Item = T;
    type State = (f64, f64);
    #[inline(always)]
    fn start(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, 0.0)
    }
    #[inline(always)]
    fn next(&self, state: &mut (f64, f64), item: T, _: bool) -> (T, bool) {
        let ((top, sum), x) = (*state, item.wide());
        // Equal infinities have no difference to take.
        let power = math_f64::exp(if x == top { 0.0 } else { -(x - top).abs() });
        let rises = x > top;
        let top = if rises { x } else { top };
        let sum = if rises { sum * power + 1.0 } else { sum + power };
        *state = (top, sum);
        (T::of(top + math_f64::log(sum)), false)
    }
}

/// `log(exp(x) + exp(y))` for the sum `y` so far, relative to the larger real part.
fn complex_log_add_exp(x: C128, y: C128) -> C128 {
    if x.re.is_nan() || x.im.is_nan() || y.re.is_nan() || y.im.is_nan() {
        return C128::new(f64::NAN, f64::NAN);
    }
    let (low, high) = if x.re < y.re { (x, y) } else { (y, x) };
    if low.re == high.re && low.re.is_infinite() {
        // Of two powers that are 0 the angle says nothing; two without bound keep the octants that they point to.
        let is_zero = low.re < 0.0;
        return if is_zero { y } else { complex::log(complex::exp(x) + complex::exp(y)) };
    }
    if low.re == f64::NEG_INFINITY {
        return high;
    }
    complex::log(complex::exp(low - high) + 1.0) + high
}

/// Scans every line of `input` into `out`; views of other types than the scan's by way of converted copies.
fn run<S: Scan>(
    s: &S,
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
    reverse: bool,
) -> Result<()>
where
    S::Item: Compute,
{
    converted::<S::Item>(out, input, |out, input| walk::run(s, out, None, input, dim, reverse))
}

/// Calls `work` with views of type `T`: these, or copies.
fn converted<T: Compute>(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    work: impl FnOnce(&StridedMut<'_>, StridedRef<'_>),
) -> Result<()> {
    let strides = crate::index::contiguous_strides(input.shape());
    let copy;
    let input = if input.dtype() == T::DTYPE {
        input
    } else {
        copy = load::<T>(input)?;
        // SAFETY: as many elements as the view has, row by row.
        unsafe { StridedRef::new(copy.as_ptr().cast(), T::DTYPE, input.shape(), &strides) }
    };
    if out.dtype() == T::DTYPE {
        work(out, input);
        return Ok(());
    }
    with_output::<T, _>(out, |out| {
        // SAFETY: as above; they are nobody else's.
        let out =
            unsafe { StridedMut::new(out.as_mut_ptr().cast(), T::DTYPE, input.shape(), &strides) };
        work(&out, input);
    })
}

fn check(name: &str, out: &StridedMut<'_>, input: &StridedRef<'_>, dim: usize) -> Result<()> {
    check_dim(dim, input.ndim())?;
    check_shape(name, out.shape(), input.shape())
}

/// Running sum along `dim`; the dtype of `out` says in what it is computed (integers wrap).
pub fn cumsum(out: &mut StridedMut<'_>, input: StridedRef<'_>, dim: usize) -> Result<()> {
    sums(out, input, dim, false)
}

/// The gradient of [`cumsum`]: `out[i] = sum over j >= i of grad[j]` along `dim`.
pub fn cumsum_backward(out: &mut StridedMut<'_>, grad: StridedRef<'_>, dim: usize) -> Result<()> {
    sums(out, grad, dim, true)
}

fn sums(out: &mut StridedMut<'_>, input: StridedRef<'_>, dim: usize, reverse: bool) -> Result<()> {
    check("cumsum", out, &input, dim)?;
    match compute_dtype(out.dtype()) {
        DType::F32 => run(&SumF32, out, input, dim, reverse),
        DType::F64 => run(&SumF64, out, input, dim, reverse),
        DType::C64 => run(&SumC64, out, input, dim, reverse),
        DType::C128 => run(&SumC128, out, input, dim, reverse),
        _ => run(&SumI64, out, input, dim, reverse),
    }
}

/// Running product along `dim`; the dtype of `out` says in what it is computed (integers wrap).
pub fn cumprod(out: &mut StridedMut<'_>, input: StridedRef<'_>, dim: usize) -> Result<()> {
    check("cumprod", out, &input, dim)?;
    match compute_dtype(out.dtype()) {
        DType::F32 => run(&ProdF32, out, input, dim, false),
        DType::F64 => run(&ProdF64, out, input, dim, false),
        DType::C64 => run(&ProdC64, out, input, dim, false),
        DType::C128 => run(&ProdC128, out, input, dim, false),
        _ => run(&ProdI64, out, input, dim, false),
    }
}

/// Running `log(sum(exp(x)))` along `dim`.
///
/// # Errors
/// `NotImplementedError` for bool and integers.
pub fn logcumsumexp(out: &mut StridedMut<'_>, input: StridedRef<'_>, dim: usize) -> Result<()> {
    check("logcumsumexp", out, &input, dim)?;
    if !input.dtype().is_differentiable() {
        return Err(Error::not_implemented("logcumsumexp_out_cpu", input.dtype()));
    }
    match compute_dtype(out.dtype()) {
        DType::F32 => run(&LogCumSumExp::<f32>(PhantomData), out, input, dim, false),
        DType::F64 => run(&LogCumSumExp::<f64>(PhantomData), out, input, dim, false),
        DType::C64 | DType::C128 => run(&LogC128, out, input, dim, false),
        _ => Err(Error::not_implemented("logcumsumexp_out_cpu", out.dtype())),
    }
}

/// The running maximum or minimum: NaN propagates, of equal values the later one counts.
struct RunningMinMax<T, const MAX: bool>(PhantomData<T>);

impl<T: BoundedOrder + Element, const MAX: bool> Scan for RunningMinMax<T, MAX> {
    type Item = T;
    type State = T;
    const WRITES: bool = true;
    #[inline(always)]
    fn start(&self) -> T {
        if MAX { T::LOWEST } else { T::HIGHEST }
    }
    #[inline(always)]
    fn next(&self, state: &mut T, item: T, _: bool) -> (T, bool) {
        let reaches = if MAX { item >= *state } else { item <= *state };
        let taken = reaches | item.is_unordered();
        *state = if taken { item } else { *state };
        (*state, taken)
    }
}

fn running_min_or_max<T: BoundedOrder + Compute, const MAX: bool>(
    values: &mut StridedMut<'_>,
    indices: &StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    converted::<T>(values, input, |values, input| {
        let scan = RunningMinMax::<T, MAX>(PhantomData);
        walk::run(&scan, values, Some(indices.as_ref()), input, dim, false);
    })
}

fn cummax_or_cummin<const MAX: bool>(
    name: &str,
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    check(name, values, &input, dim)?;
    check_shape(name, indices.shape(), input.shape())?;
    check_dtype(name, values.dtype(), input.dtype())?;
    check_dtype(name, indices.dtype(), DType::I64)?;
    match input.dtype() {
        dtype if dtype.is_complex() => Err(Error::not_implemented(&format!("{name}_cpu"), dtype)),
        DType::U64 => {
            let scan = RunningMinMax::<u64, MAX>(PhantomData);
            walk::run(&scan, values, Some(indices.as_ref()), input, dim, false);
            Ok(())
        }
        dtype => match compute_dtype(dtype) {
            DType::F32 => running_min_or_max::<f32, MAX>(values, indices, input, dim),
            DType::F64 => running_min_or_max::<f64, MAX>(values, indices, input, dim),
            _ => running_min_or_max::<i64, MAX>(values, indices, input, dim),
        },
    }
}

/// Running maximum along `dim` and where it was last reached; NaN stays.
///
/// # Errors
/// `NotImplementedError` for complex dtypes.
pub fn cummax(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    cummax_or_cummin::<true>("cummax", values, indices, input, dim)
}

/// Running minimum along `dim` and where it was last reached; NaN stays.
///
/// # Errors
/// `NotImplementedError` for complex dtypes.
pub fn cummin(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    cummax_or_cummin::<false>("cummin", values, indices, input, dim)
}

/// The gradient of a running maximum or minimum, scanned from the end of a line: the sum of the
/// gradients up to an item that is at its own index, zero elsewhere.
struct ScatterToSource<T>(PhantomData<T>);

impl<T: Real> Scan for ScatterToSource<T> {
    type Item = T;
    type State = f64;
    const READS: bool = true;
    #[inline(always)]
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn next(&self, state: &mut f64, item: T, own: bool) -> (T, bool) {
        let sum = *state + item.wide();
        *state = if own { 0.0 } else { sum };
        (if own { T::of(sum) } else { T::ZERO }, false)
    }
}

/// The gradient of [`cummax`] or [`cummin`]: `out[indices[i]] += grad[i]` along `dim`, zeros elsewhere. `indices` are those that
/// the forward pass wrote: they do not decrease along a line, and `indices[indices[i]] == indices[i]`.
///
/// # Errors
/// `NotImplementedError` for a dtype that is not floating.
pub fn cummax_cummin_backward(
    out: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    indices: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    check("cummax_backward", out, &grad, dim)?;
    check_shape("cummax_backward", indices.shape(), grad.shape())?;
    check_dtype("cummax_backward", indices.dtype(), DType::I64)?;
    for_compute!(grad.dtype(), "cummax_backward", T => {
        converted::<T>(out, grad, |out, grad| {
            walk::run(&ScatterToSource::<T>(PhantomData), out, Some(indices), grad, dim, true);
        })
    })
}
