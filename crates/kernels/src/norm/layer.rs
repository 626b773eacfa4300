//! Layer norm and RMS norm: statistics over the trailing elements of each row.

use super::{
    CHANNELS_AT_ONCE as BLOCK, ChannelSpans, GRAIN, SHORT, buffer, group_of, load_optional,
    statistics, store_optional, sum_lanes,
};
use crate::dense::{
    OptionalOutput, Real, SharedMut, expect_shape, for_compute, load, store, with_output,
};
use crate::row::{GROUP, fold};
use crate::{Error, Result, StridedMut, StridedRef, memory, parallel};
use std::ops::Range;

/// `out = (x - mean) * rstd * weight + bias` over rows of `n` trailing elements.
///
/// `x` and `out` have one shape whose trailing sizes multiply to `n`; `weight` and `bias` have `n`
/// elements; `mean` and `rstd` receive one value per row. `var` is the biased variance.
///
/// # Errors
/// Sizes that do not fit, or a dtype that is not floating.
#[allow(clippy::too_many_arguments, reason = "three outputs, three inputs, two numbers")]
pub fn layer_norm(
    out: &mut StridedMut<'_>,
    mean: &mut StridedMut<'_>,
    rstd: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    bias: Option<StridedRef<'_>>,
    n: usize,
    eps: f64,
) -> Result<()> {
    let rows = rows_of(x, n, &[mean.as_ref(), rstd.as_ref()])?;
    expect_shape("output", out.shape(), x.shape())?;
    for_compute!(x.dtype(), "LayerNormKernelImpl", T => {
        let (w, b) = (load_optional::<T>("weight", weight, n)?, load_optional::<T>("bias", bias, n)?);
        let x = load::<T>(x)?;
        let (mut means, mut rstds) = (memory::filled(T::ZERO, rows)?, memory::filled(T::ZERO, rows)?);
        with_output::<T, _>(out, |out| {
            let (out, means, rstds) = (SharedMut::new(out), SharedMut::new(&mut means), SharedMut::new(&mut rstds));
            for_rows(rows, n, &|range| {
                let span = range.start * n..range.end * n;
                // SAFETY: every row is in one range.
                let (out, means, rstds) = unsafe {
                    (out.slice(span.clone()), means.slice(range.clone()), rstds.slice(range))
                };
                normalise_rows(out, Some(means), rstds, &x[span], (w.as_deref(), b.as_deref()), n, eps);
            });
        })?;
        store(mean, &means);
        store(rstd, &rstds);
        Ok(())
    })
}

/// The gradients of [`layer_norm`]; each output may be left out.
///
/// With `h = (x - mean) * rstd` and `g = grad * weight`:
/// `grad_x = rstd * (g - mean(g) - h * mean(g * h))`, `grad_weight = sum over rows of grad * h`,
/// `grad_bias = sum over rows of grad`.
#[allow(clippy::too_many_arguments, reason = "three outputs, five inputs, one number")]
pub fn layer_norm_backward(
    grad_x: OptionalOutput<'_, '_>,
    grad_weight: OptionalOutput<'_, '_>,
    grad_bias: OptionalOutput<'_, '_>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    mean: StridedRef<'_>,
    rstd: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    n: usize,
) -> Result<()> {
    backward(grad_x, grad_weight, grad_bias, grad, x, Some(mean), rstd, weight, n)
}

/// `out = x * rstd * weight` with `rstd = 1 / sqrt(mean(x^2) + eps)` over rows of `n` trailing
/// elements; `rstd` receives one value per row.
pub fn rms_norm(
    out: &mut StridedMut<'_>,
    rstd: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    n: usize,
    eps: f64,
) -> Result<()> {
    let rows = rows_of(x, n, &[rstd.as_ref()])?;
    expect_shape("output", out.shape(), x.shape())?;
    for_compute!(x.dtype(), "rms_norm", T => {
        let w = load_optional::<T>("weight", weight, n)?;
        let x = load::<T>(x)?;
        let mut rstds = memory::filled(T::ZERO, rows)?;
        with_output::<T, _>(out, |out| {
            let (out, rstds) = (SharedMut::new(out), SharedMut::new(&mut rstds));
            for_rows(rows, n, &|range| {
                let span = range.start * n..range.end * n;
                // SAFETY: every row is in one range.
                let (out, rstds) = unsafe { (out.slice(span.clone()), rstds.slice(range)) };
                normalise_rows(out, None, rstds, &x[span], (w.as_deref(), None), n, eps);
            });
        })?;
        store(rstd, &rstds);
        Ok(())
    })
}

/// The gradients of [`rms_norm`]: with `h = x * rstd` and `g = grad * weight`,
/// `grad_x = rstd * (g - h * mean(g * h))` and `grad_weight = sum over rows of grad * h`.
pub fn rms_norm_backward(
    grad_x: OptionalOutput<'_, '_>,
    grad_weight: OptionalOutput<'_, '_>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    rstd: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    n: usize,
) -> Result<()> {
    backward(grad_x, grad_weight, None, grad, x, None, rstd, weight, n)
}

/// How many rows of `n` elements `x` has: one for each number of every one of `statistics`, which alone say it if rows are
/// empty.
fn rows_of(x: StridedRef<'_>, n: usize, statistics: &[StridedRef<'_>]) -> Result<usize> {
    let count = x.numel();
    let rows = count.checked_div(n).or(statistics.first().map(StridedRef::numel)).unwrap_or(0);
    if rows.checked_mul(n) != Some(count) {
        return Err(Error::runtime(format!(
            "Given normalized_shape of {n} elements, expected input with that many trailing elements, but got input of size {:?}",
            x.shape()
        )));
    }
    match statistics.iter().find(|view| view.numel() != rows) {
        None => Ok(rows),
        Some(view) => Err(Error::runtime(format!(
            "Expected mean and rstd to have one number for each of {rows} rows of input of size {:?}, but got shape {:?}",
            x.shape(),
            view.shape()
        ))),
    }
}

fn for_rows(rows: usize, n: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    parallel::for_range(rows, (GRAIN / n.max(1)).max(1), work);
}

crate::multiversion! {
    /// Normalises rows of `n` elements, and subtracts their means if there is an output for these.
    fn normalise_rows<T: Real>(out: &mut [T], means: Option<&mut [T]>, rstds: &mut [T], x: &[T], parameters: (Option<&[T]>, Option<&[T]>), n: usize, eps: f64) {
        let (mut means, (w, b)) = (means, parameters);
        let runs = ChannelSpans::rows(rstds.len(), n);
        let mut first = 0;
        while first < rstds.len() {
            let rows = first..rstds.len().min(first + runs.channels_at_once());
            let found = statistics(x, runs, rows.clone(), means.is_some(), eps);
            for (i, row) in rows.clone().enumerate() {
                let (mean, rstd) = (found.means[i], found.rstds[i]);
                if let Some(means) = &mut means {
                    means[row] = mean;
                }
                rstds[row] = rstd;
                normalise(&mut out[runs.span(0, row)], &x[runs.span(0, row)], mean, rstd, w, b);
            }
            first = rows.end;
        }
    }
}

#[inline(always)]
fn normalise<T: Real>(out: &mut [T], x: &[T], mean: T, rstd: T, w: Option<&[T]>, b: Option<&[T]>) {
    match (w, b) {
        (Some(w), Some(b)) => {
            for (((out, &x), &w), &b) in out.iter_mut().zip(x).zip(w).zip(b) {
                *out = ((x - mean) * rstd).mul_add(w, b);
            }
        }
        (Some(w), None) => {
            for ((out, &x), &w) in out.iter_mut().zip(x).zip(w) {
                *out = (x - mean) * rstd * w;
            }
        }
        (None, Some(b)) => {
            for ((out, &x), &b) in out.iter_mut().zip(x).zip(b) {
                *out = (x - mean).mul_add(rstd, b);
            }
        }
        (None, None) => {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = (x - mean) * rstd;
            }
        }
    }
}

/// Rows of one block of the weight gradient's sum; depends on the shape only.
fn block_rows(rows: usize) -> usize {
    rows.div_ceil(32).max(32)
}

#[allow(clippy::too_many_arguments, reason = "the union of the two norms")]
fn backward(
    grad_x: OptionalOutput<'_, '_>,
    grad_weight: OptionalOutput<'_, '_>,
    grad_bias: OptionalOutput<'_, '_>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    mean: Option<StridedRef<'_>>,
    rstd: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    n: usize,
) -> Result<()> {
    let rows = match mean {
        Some(mean) => rows_of(x, n, &[mean, rstd])?,
        None => rows_of(x, n, &[rstd])?,
    };
    expect_shape("grad_output", grad.shape(), x.shape())?;
    for_compute!(x.dtype(), "LayerNormBackwardKernelImpl", T => {
        let w = load_optional::<T>("weight", weight, n)?;
        let means = load_optional::<T>("mean", mean, rows)?;
        let (x, grad, rstd) = (load::<T>(x)?, load::<T>(grad)?, load::<T>(rstd)?);
        let input = LayerNormInput { x: &x, grad: &grad, mean: means.as_deref(), rstd: &rstd, weight: w.as_deref(), n };
        let (mut w, mut b) = (buffer::<T>(grad_weight.as_deref(), n)?, buffer::<T>(grad_bias.as_deref(), n)?);
        if let Some(view) = grad_x {
            expect_shape("grad_input", view.shape(), shape_of(&input, view.shape()))?;
            with_output::<T, _>(view, |out| gradients(Some(out), (&mut w, &mut b), &input, rows))?;
        } else {
            gradients(None, (&mut w, &mut b), &input, rows)?;
        }
        store_optional(grad_weight, &w);
        store_optional(grad_bias, &b);
        Ok(())
    })
}

/// The operands of a backward pass as slices.
struct LayerNormInput<'a, T> {
    x: &'a [T],
    grad: &'a [T],
    mean: Option<&'a [T]>,
    rstd: &'a [T],
    weight: Option<&'a [T]>,
    n: usize,
}

/// The shape a gradient must have; only its number of elements can be wrong here.
fn shape_of<'s, T>(input: &LayerNormInput<'_, T>, shape: &'s [i64]) -> &'s [i64] {
    let n: i64 = shape.iter().product();
    if n as usize == input.x.len() { shape } else { &[] }
}

/// Rows whose parameters' gradients are summed before they are written.
const ROWS_AT_ONCE: usize = 4;

/// Rows that are worked on together, while they are in the cache.
fn rows_at_once(n: usize) -> usize {
    (1024 / n.max(1)).clamp(1, 16) * ROWS_AT_ONCE
}

/// All gradients in one pass over the rows, `w` and `b` (which may be empty) summed by blocks of rows.
fn gradients<T: Real>(
    out: Option<&mut [T]>,
    (w, b): (&mut [T], &mut [T]),
    input: &LayerNormInput<'_, T>,
    rows: usize,
) -> Result<()> {
    let (n, each) = (input.n, block_rows(rows));
    let together = rows_at_once(n);
    let blocks = rows.div_ceil(each);
    let out = out.map(SharedMut::new);
    let width = if w.is_empty() && b.is_empty() { 0 } else { 2 * n };
    let mut parts = memory::filled(T::ZERO, blocks * width)?;
    let shared = SharedMut::new(&mut parts);
    parallel::for_range(blocks, (GRAIN / (each * n).max(1)).max(1), &|range| {
        for block in range {
            // SAFETY: one part per block.
            let part = unsafe { shared.slice(block * width..(block + 1) * width) };
            let last = rows.min((block + 1) * each);
            for first in (block * each..last).step_by(together) {
                let rows = first..last.min(first + together);
                if let Some(out) = out {
                    // SAFETY: every row belongs to one block.
                    input_gradient(
                        unsafe { out.slice(rows.start * n..rows.end * n) },
                        input,
                        &rows,
                    );
                }
                if width > 0 {
                    let (w, b) = part.split_at_mut(n);
                    parameter_gradients(w, b, input, rows);
                }
            }
        }
    });
    for part in parts.chunks_exact(width.max(1)) {
        let (part_w, part_b) = part.split_at(n);
        crate::row::add_into(w, part_w);
        crate::row::add_into(b, part_b);
    }
    Ok(())
}

crate::multiversion! {
    fn input_gradient<T: Real>(out: &mut [T], input: &LayerNormInput<'_, T>, rows: &Range<usize>) {
        let n = input.n;
        if n <= SHORT {
            return short_gradient(out, input, rows);
        }
        for (i, row) in rows.clone().enumerate() {
            let span = row * n..(row + 1) * n;
            let (out, g, x) = (&mut out[i * n..(i + 1) * n], &input.grad[span.clone()], &input.x[span]);
            let (mean, rstd) = (input.mean.map(|m| m[row]), input.rstd[row]);
            match input.weight {
                Some(w) => weighted_gradient::<T, true>(out, (g, x, w), mean, rstd),
                None => weighted_gradient::<T, false>(out, (g, x, g), mean, rstd),
            }
        }
    }
}

/// The input gradient of short rows.
#[inline(always)]
fn short_gradient<T: Real>(out: &mut [T], input: &LayerNormInput<'_, T>, rows: &Range<usize>) {
    let n = input.n;
    let (count, mut weights) = (T::of(n as f64), [T::ONE; SHORT]);
    if let Some(w) = input.weight {
        weights[..n].copy_from_slice(&w[..n]);
    }
    let centre = |row: usize| input.mean.map_or(T::ZERO, |m| m[row]);
    let mut first = rows.start;
    while first < rows.end {
        let now = first..rows.end.min(first + BLOCK);
        let (mut totals, mut along) = ([[T::ZERO; GROUP]; BLOCK], [[T::ZERO; GROUP]; BLOCK]);
        for ((totals, along), row) in totals.iter_mut().zip(&mut along).zip(now.clone()) {
            let (mean, rstd) = (centre(row), input.rstd[row]);
            let (mut grad, mut x, mut left) = (&input.grad[row * n..], &input.x[row * n..], n);
            let (mut total, mut product) = ([T::ZERO; GROUP], [T::ZERO; GROUP]);
            for w in weights.as_chunks::<GROUP>().0 {
                let (g, v) = (group_of(grad), group_of(x));
                if left < GROUP {
                    for l in 0..GROUP {
                        let g = if l < left { g[l] * w[l] } else { T::ZERO };
                        let v = if l < left { v[l] } else { mean };
                        total[l] += g;
                        product[l] = g.mul_add((v - mean) * rstd, product[l]);
                    }
                    break;
                }
                for l in 0..GROUP {
                    let g = g[l] * w[l];
                    total[l] += g;
                    product[l] = g.mul_add((v[l] - mean) * rstd, product[l]);
                }
                (grad, x, left) = (&grad[GROUP..], &x[GROUP..], left - GROUP);
                if left == 0 {
                    break;
                }
            }
            (*totals, *along) = (total, product);
        }
        let (mut totals, mut along) = (sum_lanes(&totals), sum_lanes(&along));
        for l in 0..BLOCK {
            totals[l] = if input.mean.is_some() { totals[l] / count } else { T::ZERO };
            along[l] /= count;
        }
        for (i, row) in now.clone().enumerate() {
            let (mean, rstd, total, along) = (centre(row), input.rstd[row], totals[i], along[i]);
            let (g, x) = (&input.grad[row * n..(row + 1) * n], &input.x[row * n..(row + 1) * n]);
            let at = (row - rows.start) * n;
            let out = &mut out[at..at + n];
            for (((out, &g), &x), &w) in out.iter_mut().zip(g).zip(x).zip(&weights) {
                *out = (g * w - total - (x - mean) * rstd * along) * rstd;
            }
        }
        first = now.end;
    }
}

/// The input gradient of one row; without `WEIGHTED` the weights, which then may be any row, are not used.
#[inline(always)]
fn weighted_gradient<T: Real, const WEIGHTED: bool>(
    out: &mut [T],
    (g, x, w): (&[T], &[T], &[T]),
    mean: Option<T>,
    rstd: T,
) {
    let n = out.len();
    let (g, x, w) = (&g[..n], &x[..n], &w[..n]);
    let centre = mean.unwrap_or(T::ZERO);
    let weighted = |g: T, w: T| if WEIGHTED { g * w } else { g };
    let (mut total, mut along) = weighted_sums::<T>(g, x, w, centre, rstd, weighted);
    let count = T::of(n as f64);
    along /= count;
    total = if mean.is_some() { total / count } else { T::ZERO };
    for i in 0..n {
        out[i] = (weighted(g[i], w[i]) - total - (x[i] - centre) * rstd * along) * rstd;
    }
}

/// The sums of `g` and of `g * (x - centre) * rstd`, `g` being weighted.
#[inline(always)]
fn weighted_sums<T: Real>(
    g: &[T],
    x: &[T],
    w: &[T],
    centre: T,
    rstd: T,
    weighted: impl Fn(T, T) -> T,
) -> (T, T) {
    const PAIR: usize = 2 * GROUP;
    let mut total = [T::ZERO; GROUP];
    let (mut total2, mut along, mut along2) = (total, total, total);
    let step = |total: &mut [T; GROUP], along: &mut [T; GROUP], g: &[T], x: &[T], w: &[T]| {
        for l in 0..g.len().min(GROUP) {
            let g = weighted(g[l], w[l]);
            total[l] += g;
            along[l] = g.mul_add((x[l] - centre) * rstd, along[l]);
        }
    };
    let whole = g.len() / PAIR * PAIR;
    let mut i = 0;
    while i < whole {
        let (g, x, w) = (&g[i..i + PAIR], &x[i..i + PAIR], &w[i..i + PAIR]);
        step(&mut total, &mut along, &g[..GROUP], &x[..GROUP], &w[..GROUP]);
        step(&mut total2, &mut along2, &g[GROUP..], &x[GROUP..], &w[GROUP..]);
        i += PAIR;
    }
    while i + GROUP <= g.len() {
        let span = i..i + GROUP;
        step(&mut total, &mut along, &g[span.clone()], &x[span.clone()], &w[span]);
        i += GROUP;
    }
    if i < g.len() {
        step(&mut total, &mut along, &g[i..], &x[i..], &w[i..]);
    }
    let add = |a: T, b: T| a + b;
    (fold(total, add) + fold(total2, add), fold(along, add) + fold(along2, add))
}

crate::multiversion! {
    /// `w += grad * h` and `b += grad` over rows.
    fn parameter_gradients<T: Real>(w: &mut [T], b: &mut [T], input: &LayerNormInput<'_, T>, rows: Range<usize>) {
        let n = input.n;
        let (w, b) = (&mut w[..n], &mut b[..n]);
        let statistics = |row: usize| (input.mean.map_or(T::ZERO, |m| m[row]), input.rstd[row]);
        let row_of = |row: usize| (&input.grad[row * n..(row + 1) * n], &input.x[row * n..(row + 1) * n]);
        let mut first = rows.start;
        while first + ROWS_AT_ONCE <= rows.end {
            let [(g0, x0), (g1, x1), (g2, x2), (g3, x3)] = std::array::from_fn(|i| row_of(first + i));
            let [(m0, r0), (m1, r1), (m2, r2), (m3, r3)] = std::array::from_fn(|i| statistics(first + i));
            for i in 0..n {
                let sum = g0[i].mul_add((x0[i] - m0) * r0, w[i]);
                let sum = g1[i].mul_add((x1[i] - m1) * r1, sum);
                let sum = g2[i].mul_add((x2[i] - m2) * r2, sum);
                w[i] = g3[i].mul_add((x3[i] - m3) * r3, sum);
                b[i] = b[i] + g0[i] + g1[i] + g2[i] + g3[i];
            }
            first += ROWS_AT_ONCE;
        }
        for row in first..rows.end {
            let ((g, x), (mean, rstd)) = (row_of(row), statistics(row));
            for i in 0..n {
                w[i] = g[i].mul_add((x[i] - mean) * rstd, w[i]);
                b[i] += g[i];
            }
        }
    }
}
