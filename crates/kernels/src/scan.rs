//! Cumulative operations along a dimension: sums, products, running extremes with indices, logcumsumexp.
//!
//! A line is read in blocks that are converted to the compute type, scanned in cache and stored; when
//! lines are far apart in memory but neighbours touch (scanning the rows of a matrix), a tile of lines
//! is scanned together. Sums and products of `f32` and narrower are carried in `f64`.

use crate::line::{Layout, Lines, along, check_dim, check_dtype, check_shape};
use crate::reduce::{
    Item, Load, Ordered, Store, compute_dtype, is_half, load_converted, load_same, ordered_dtype,
    store_converted,
};
use crate::{C64, C128, DType, Error, Result, StridedMut, StridedRef};

/// Items scanned at once along a line.
const BLOCK: usize = 512;
/// Lines scanned together.
const TILE: usize = 256;

/// What a scan carries along and yields.
pub(crate) trait Scan: Sync {
    /// What it consumes and yields.
    type Item: Item;
    /// What it carries.
    type State: Copy + Send + Sync;
    /// The state before the first item.
    fn start(&self) -> Self::State;
    /// Takes one item and yields the result up to it.
    fn next(&self, state: &mut Self::State, item: Self::Item) -> Self::Item;
    /// Scans consecutive items of one line in place.
    #[inline(always)]
    fn block(&self, state: &mut Self::State, items: &mut [Self::Item]) {
        for item in items {
            *item = self.next(state, *item);
        }
    }
}

crate::multiversion! {
fn scan_block<S: Scan>(s: &S, state: &mut S::State, items: &mut [S::Item]) {
    s.block(state, items);
}
}

crate::multiversion! {
fn scan_row<S: Scan>(s: &S, states: &mut [S::State], items: &mut [S::Item]) {
    for (state, item) in states.iter_mut().zip(items) {
        *item = s.next(state, *item);
    }
}
}

/// Running sum of `f32`, carried in double precision.
struct SumF32;
impl Scan for SumF32 {
    type Item = f32;
    type State = f64;
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn next(&self, state: &mut f64, item: f32) -> f32 {
        *state += f64::from(item);
        *state as f32
    }
    #[inline(always)]
    fn block(&self, state: &mut f64, items: &mut [f32]) {
        chains(state, items, f64::from, |sum| sum as f32);
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
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn next(&self, state: &mut f64, item: f64) -> f64 {
        *state += item;
        *state
    }
    #[inline(always)]
    fn block(&self, state: &mut f64, items: &mut [f64]) {
        chains(state, items, |x| x, |sum| sum);
    }
}

macro_rules! plain_scan {
    ($name:ident, $item:ty, $state:ty, $start:expr, |$s:ident, $x:ident| $step:expr, $yield:expr) => {
        struct $name;
        impl Scan for $name {
            type Item = $item;
            type State = $state;
            fn start(&self) -> $state {
                $start
            }
            #[inline(always)]
            fn next(&self, state: &mut $state, $x: $item) -> $item {
                let $s = *state;
                *state = $step;
                let $s = *state;
                $yield
            }
        }
    };
}

fn wide_complex(z: C64) -> C128 {
    C128::new(f64::from(z.re), f64::from(z.im))
}
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
plain_scan!(LogF32, f32, f64, f64::NEG_INFINITY, |s, x| log_add_exp(f64::from(x), s), s as f32);
plain_scan!(LogF64, f64, f64, f64::NEG_INFINITY, |s, x| log_add_exp(x, s), s);
plain_scan!(
    LogC128,
    C128,
    C128,
    C128::new(f64::NEG_INFINITY, 0.0),
    |s, x| complex_log_add_exp(x, s),
    s
);

/// `log(exp(x) + exp(y))`.
fn log_add_exp(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (low, high) = if x < y { (x, y) } else { (y, x) };
    // Two equal infinities have no difference to take.
    if low == high && low.is_infinite() { x } else { (low - high).exp().ln_1p() + high }
}

/// `log(exp(x) + exp(y))`, relative to the larger real part.
fn complex_log_add_exp(x: C128, y: C128) -> C128 {
    if x.re.is_nan() || x.im.is_nan() || y.re.is_nan() || y.im.is_nan() {
        return C128::new(f64::NAN, f64::NAN);
    }
    let (low, high) = if x.re < y.re { (x, y) } else { (y, x) };
    if low.re == f64::NEG_INFINITY {
        return high;
    }
    if low.re == high.re && low.re.is_infinite() {
        return x;
    }
    ((low - high).exp() + 1.0).ln() + high
}

/// Scans every line; `input` is read by `load`, results are written by `store`.
fn run<S: Scan>(
    s: &S,
    out: &StridedMut<'_>,
    (input, load): (&StridedRef<'_>, Load<S::Item>),
    store: Store<S::Item>,
    dim: usize,
) {
    let shape = input.shape();
    // Lines without elements may be too many to walk through.
    if input.numel() == 0 {
        return;
    }
    let (n, step) = along(shape, input, dim);
    let (_, out_step) = along(shape, out, dim);
    let lines = Lines::new(shape, Some(dim), [Layout::from(input), Layout::from(out)]);
    let dense = [input.dtype().size() as isize, out.dtype().size() as isize];
    if n > 1 && lines.count() > 1 && step != dense[0] && lines.inner() == Some(dense) {
        return run_tiles(s, out, (input, load), store, dim, &lines);
    }
    lines.for_each(n, &|[from, to]| {
        let mut state = s.start();
        let mut buffer = [S::Item::default(); BLOCK];
        for at in (0..n).step_by(BLOCK) {
            let items = &mut buffer[..BLOCK.min(n - at)];
            // SAFETY: the line lies inside both views; the functions were chosen by their dtypes.
            unsafe {
                load(input.ptr().offset(from + at as isize * step), step, items);
                scan_block(s, &mut state, items);
                store(out.ptr().offset(to + at as isize * out_step), out_step, items);
            }
        }
    });
}

/// As [`run`], for neighbouring lines whose elements touch: row by row over a tile of lines.
fn run_tiles<S: Scan>(
    s: &S,
    out: &StridedMut<'_>,
    (input, load): (&StridedRef<'_>, Load<S::Item>),
    store: Store<S::Item>,
    dim: usize,
    lines: &Lines<2>,
) {
    let (n, step) = along(input.shape(), input, dim);
    let (_, out_step) = along(input.shape(), out, dim);
    let grain = (crate::line::GRAIN / n).max(TILE);
    crate::parallel::for_range(lines.count(), grain, &|range| {
        lines.visit_runs(range, |[from, to], [size, out_size], length| {
            for first in (0..length).step_by(TILE) {
                let width = TILE.min(length - first);
                let mut states = [s.start(); TILE];
                let mut buffer = [S::Item::default(); TILE];
                let items = &mut buffer[..width];
                for row in 0..n as isize {
                    let from = from + first as isize * size + row * step;
                    let to = to + first as isize * out_size + row * out_step;
                    // SAFETY: the row lies inside both views; the functions were chosen by their dtypes.
                    unsafe {
                        load(input.ptr().offset(from), size, items);
                        scan_row(s, &mut states[..width], items);
                        store(out.ptr().offset(to), out_size, items);
                    }
                }
            }
        });
    });
}

fn check(name: &str, out: &StridedMut<'_>, input: &StridedRef<'_>, dim: usize) -> Result<()> {
    check_dim(dim, input.ndim())?;
    check_shape(name, out.shape(), input.shape())
}

/// The loader for a scan's items: a plain copy where elements are items already.
fn loader<S: Scan>(_: &S, dtype: DType) -> Load<S::Item>
where
    S::Item: crate::Element,
{
    if dtype == <S::Item as crate::Element>::DTYPE { load_same } else { load_converted(dtype) }
}

/// The function that stores a scan's items: a plain copy where elements are items already.
fn storer<S: Scan>(_: &S, dtype: DType) -> Store<S::Item>
where
    S::Item: crate::Element,
{
    if dtype == <S::Item as crate::Element>::DTYPE {
        crate::line::write_line
    } else {
        store_converted(dtype)
    }
}

macro_rules! scan {
    ($s:expr, $out:expr, $input:expr, $dim:expr) => {{
        let (load, store) = (loader(&$s, $input.dtype()), storer(&$s, $out.dtype()));
        run(&$s, $out, ($input, load), store, $dim);
    }};
}

/// Running sum along `dim`; the dtype of `out` says in what it is computed (integers wrap).
pub fn cumsum(out: &mut StridedMut<'_>, input: StridedRef<'_>, dim: usize) -> Result<()> {
    check("cumsum", out, &input, dim)?;
    match compute_dtype(out.dtype()) {
        DType::F32 => scan!(SumF32, out, &input, dim),
        DType::F64 => scan!(SumF64, out, &input, dim),
        DType::C64 => scan!(SumC64, out, &input, dim),
        DType::C128 => scan!(SumC128, out, &input, dim),
        _ => scan!(SumI64, out, &input, dim),
    }
    Ok(())
}

/// Running product along `dim`; the dtype of `out` says in what it is computed (integers wrap).
pub fn cumprod(out: &mut StridedMut<'_>, input: StridedRef<'_>, dim: usize) -> Result<()> {
    check("cumprod", out, &input, dim)?;
    match compute_dtype(out.dtype()) {
        DType::F32 => scan!(ProdF32, out, &input, dim),
        DType::F64 => scan!(ProdF64, out, &input, dim),
        DType::C64 => scan!(ProdC64, out, &input, dim),
        DType::C128 => scan!(ProdC128, out, &input, dim),
        _ => scan!(ProdI64, out, &input, dim),
    }
    Ok(())
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
        DType::F32 => scan!(LogF32, out, &input, dim),
        DType::F64 => scan!(LogF64, out, &input, dim),
        DType::C64 | DType::C128 => scan!(LogC128, out, &input, dim),
        _ => return Err(Error::not_implemented("logcumsumexp_out_cpu", out.dtype())),
    }
    Ok(())
}

/// Running extreme of one line: NaN stays, of equal values the later one counts.
fn extreme_line<T: Ordered, const MAX: bool>(
    items: &mut [T],
    indices: &mut [i64],
    state: &mut (T, i64),
    at: usize,
) {
    let (mut value, mut index) = *state;
    for (i, (item, slot)) in items.iter_mut().zip(indices).enumerate() {
        let x = *item;
        let reaches = if MAX { x >= value } else { x <= value };
        if x.is_unordered() || (!value.is_unordered() && reaches) || index < 0 {
            (value, index) = (x, (at + i) as i64);
        }
        *item = value;
        *slot = index;
    }
    *state = (value, index);
}

fn extreme_lines<T: Ordered, const MAX: bool>(
    (values, store): (&StridedMut<'_>, Store<T>),
    indices: &StridedMut<'_>,
    (input, load): (&StridedRef<'_>, Load<T>),
    dim: usize,
) {
    let shape = input.shape();
    if input.numel() == 0 {
        return;
    }
    let (n, step) = along(shape, input, dim);
    let (_, value_step) = along(shape, values, dim);
    let (_, index_step) = along(shape, indices, dim);
    let views = [Layout::from(input), Layout::from(values), Layout::from(indices)];
    Lines::new(shape, Some(dim), views).for_each(n, &|[from, to, index_to]| {
        let mut state = (T::default(), -1);
        let mut items = [T::default(); BLOCK];
        let mut places = [0_i64; BLOCK];
        for at in (0..n).step_by(BLOCK) {
            let length = BLOCK.min(n - at);
            let (items, places) = (&mut items[..length], &mut places[..length]);
            let shift = at as isize;
            // SAFETY: the line lies inside the views; the functions were chosen by their dtypes.
            unsafe {
                load(input.ptr().offset(from + shift * step), step, items);
                extreme_line::<T, MAX>(items, places, &mut state, at);
                store(values.ptr().offset(to + shift * value_step), value_step, items);
                let index_ptr = indices.ptr().offset(index_to + shift * index_step);
                crate::line::write_line(index_ptr, index_step, places);
            }
        }
    });
}

fn cumulative_extreme<const MAX: bool>(
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
    let dtype = if input.dtype() == DType::Bool { DType::U8 } else { input.dtype() };
    if is_half(dtype) {
        let (load, store) = (load_converted(dtype), store_converted(dtype));
        extreme_lines::<f32, MAX>((values, store), indices, (&input, load), dim);
        return Ok(());
    }
    ordered_dtype!(dtype, T => {
        extreme_lines::<T, MAX>(
            (values, crate::line::write_line::<T>), indices, (&input, load_same::<T>), dim);
        Ok(())
    }, else Err(Error::not_implemented(&format!("{name}_cpu"), input.dtype())))
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
    cumulative_extreme::<true>("cummax", values, indices, input, dim)
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
    cumulative_extreme::<false>("cummin", values, indices, input, dim)
}
