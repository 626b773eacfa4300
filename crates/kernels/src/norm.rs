//! Normalisation layers, forward and backward: layer, RMS, group and batch norm.
//!
//! Statistics are computed in two passes (mean, then squared deviations), in `f32` for half precision;
//! long sums are added up in `f64` per chunk. Saved statistics are the mean and `rstd`, the reciprocal
//! standard deviation `1 / sqrt(var + eps)`. Weights and biases are optional everywhere. Rows,
//! channels or fixed blocks of rows are the tasks, so results do not depend on threads.

mod batch;
mod group;
mod layer;
mod narrow;

pub use batch::{BatchNormOptions, batch_norm, batch_norm_backward};
pub use group::{group_norm, group_norm_backward};
pub use layer::{layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};

use crate::dense::{Compute, Real, expect_shape, load};
use crate::row::{GROUP, padded, reduce, sum_pairs};
use crate::simd::transpose::{SQUARE, square};
use crate::{Result, StridedMut, StridedRef, memory, parallel};
use std::borrow::Cow;
use std::ops::Range;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 14;
/// Elements summed in the compute type before `f64` takes over.
const CHUNK: usize = 4096;

/// A weight or bias as a slice, if there is one.
fn load_optional<'a, T: Compute>(
    name: &str,
    view: Option<StridedRef<'a>>,
    n: usize,
) -> Result<Option<Cow<'a, [T]>>> {
    let Some(view) = view else { return Ok(None) };
    if view.numel() != n {
        expect_shape(name, view.shape(), &[n as i64])?;
    }
    load(view).map(Some)
}

/// A buffer for an optional output, and its writing out.
fn buffer<T: Real>(view: Option<&StridedMut<'_>>, n: usize) -> Result<Vec<T>> {
    memory::filled(T::ZERO, if view.is_some() { n } else { 0 })
}

fn store_optional<T: Compute>(view: Option<&mut StridedMut<'_>>, values: &[T]) {
    if let Some(view) = view {
        crate::dense::store(view, values);
    }
}

/// Elements in (batch, channel) runs, as (N, C, S) lies: the runs of one channel are normalised together.
#[derive(Clone, Copy)]
struct ChannelSpans {
    batch: usize,
    channels: usize,
    inner: usize,
}

impl ChannelSpans {
    /// Rows of `n` elements, each its own channel.
    fn rows(rows: usize, n: usize) -> ChannelSpans {
        ChannelSpans { batch: 1, channels: rows, inner: n }
    }
    /// The run of batch element `n` of channel `c`.
    #[inline(always)]
    fn span(self, n: usize, c: usize) -> Range<usize> {
        let start = (n * self.channels + c) * self.inner;
        start..start + self.inner
    }
    /// The runs of these channels of batch element `n`, which lie one after the other.
    #[inline(always)]
    fn spans(self, n: usize, channels: &Range<usize>) -> Range<usize> {
        let start = n * self.channels * self.inner;
        start + channels.start * self.inner..start + channels.end * self.inner
    }
    /// These channels of batch element `n` of an input (N, C).
    #[inline(always)]
    fn line(self, n: usize, channels: &Range<usize>) -> Range<usize> {
        n * self.channels + channels.start..n * self.channels + channels.end
    }
    /// Elements per channel.
    #[inline(always)]
    fn count(self) -> usize {
        self.batch * self.inner
    }
    /// Calls `work` for ranges of channels, each channel in one of them.
    fn for_channels(self, work: &(dyn Fn(Range<usize>) -> Result<()> + Sync)) -> Result<()> {
        let grain = (GRAIN / self.count().max(1)).max(1);
        parallel::try_for_restartable_range(self.channels, grain, work)
    }
    /// Whether runs are so short that adding up lanes for each would cost more than all else.
    #[inline(always)]
    fn is_short(self) -> bool {
        self.inner <= SHORT
    }
    /// How many short runs are summed in lanes before `f64` takes over.
    #[inline(always)]
    fn summed_together(self) -> usize {
        CHUNK / self.inner.max(1)
    }
    /// How many channels to look at together: enough for the roots and quotients to go side by side, while the
    /// elements of long runs stay in the nearest cache.
    #[inline(always)]
    fn channels_at_once(self) -> usize {
        if self.is_short() {
            CHANNELS_AT_ONCE
        } else {
            (1536 / self.count().max(1)).clamp(1, CHANNELS_AT_ONCE)
        }
    }
}

/// Most channels whose statistics are computed together.
const CHANNELS_AT_ONCE: usize = 16;
/// Most elements of a short run.
const SHORT: usize = 4 * GROUP;

/// The mean (zero, unless statistics are `centred`), the biased variance about it, and `1 /
/// sqrt(variance + eps)` of at most `CHANNELS_AT_ONCE` channels.
struct Statistics<T> {
    means: [T; CHANNELS_AT_ONCE],
    variances: [f64; CHANNELS_AT_ONCE],
    rstds: [T; CHANNELS_AT_ONCE],
}

/// Mean (zero, if it is not to be `centred`), biased variance about it, and `1 / sqrt(variance + eps)` of at most
/// `CHANNELS_AT_ONCE` channels.
#[inline(always)]
fn statistics<T: Real>(
    x: &[T],
    s: ChannelSpans,
    channels: Range<usize>,
    centred: bool,
    eps: f64,
) -> Statistics<T> {
    let count = s.count() as f64;
    let (mut means, mut rstds) = ([T::ZERO; CHANNELS_AT_ONCE], [T::ZERO; CHANNELS_AT_ONCE]);
    let mut variances = [0_f64; CHANNELS_AT_ONCE];
    if s.is_short() {
        if centred {
            let totals = short_sums(x, s, channels.clone(), &means, |x, _| x);
            for i in 0..CHANNELS_AT_ONCE {
                means[i] = T::of(totals[i] / count);
            }
        }
        let squares = short_sums(x, s, channels, &means, |x, mean| (x - mean) * (x - mean));
        for i in 0..CHANNELS_AT_ONCE {
            variances[i] = squares[i] / count;
        }
    } else {
        if centred {
            for (mean, c) in means.iter_mut().zip(channels.clone()) {
                let mut total = 0_f64;
                for n in 0..s.batch {
                    total += sum(&x[s.span(n, c)]);
                }
                *mean = T::of(total / count);
            }
        }
        for ((variance, &mean), c) in variances.iter_mut().zip(&means).zip(channels) {
            for n in 0..s.batch {
                *variance += sum_squares(&x[s.span(n, c)], mean);
            }
            *variance /= count;
        }
    }
    for i in 0..CHANNELS_AT_ONCE {
        rstds[i] = reciprocal_std(variances[i], eps);
    }
    Statistics { means, variances, rstds }
}

/// The first elements of a list as a group; what follows a short run need not be looked at.
#[inline(always)]
fn group_of<T: Real>(x: &[T]) -> [T; GROUP] {
    match x.first_chunk::<GROUP>() {
        Some(group) => *group,
        None => padded(x, T::ZERO),
    }
}

/// Adds `map` of a short run, the first `len` elements of `x`, to lanes.
#[inline(always)]
fn add_span<T: Real>(to: &mut [T; GROUP], mut x: &[T], mut len: usize, map: impl Fn(T) -> T) {
    let mut lanes = *to;
    while len >= GROUP {
        let group = group_of(x);
        for l in 0..GROUP {
            lanes[l] += map(group[l]);
        }
        (x, len) = (&x[GROUP..], len - GROUP);
    }
    if len > 0 {
        let group = group_of(x);
        for l in 0..GROUP {
            lanes[l] += if l < len { map(group[l]) } else { T::ZERO };
        }
    }
    *to = lanes;
}

/// As many channels as are processed together, each one run of at most a group, transposed: a lane
/// for each channel. The sums of its elements in order are those that lanes of the runs would have.
/// (Elements after a run are transposed too, if there are any.)
#[inline(always)]
fn transposed<T: Real>(
    x: &[T],
    s: ChannelSpans,
    channels: &Range<usize>,
) -> Option<[[T; CHANNELS_AT_ONCE]; GROUP]> {
    const { assert!(GROUP == SQUARE && CHANNELS_AT_ONCE == SQUARE) };
    let first = channels.start * s.inner;
    let is_there = first + (SQUARE - 1) * s.inner + SQUARE <= x.len();
    if s.batch != 1 || s.inner > GROUP || channels.len() < CHANNELS_AT_ONCE || !is_there {
        return None;
    }
    let mut transposed = [[T::ZERO; CHANNELS_AT_ONCE]; GROUP];
    let size = size_of::<T>();
    // SAFETY: so many elements are there, as was asked, and the other is a square of its own.
    unsafe {
        let (to, from) = (transposed.as_mut_ptr().cast(), x[first..].as_ptr().cast());
        square::<T, false>(to, (SQUARE * size) as isize, from, (s.inner * size) as isize);
    }
    Some(transposed)
}

/// The sum of `map(element, the channel's value)` over each of at most `CHANNELS_AT_ONCE` channels of short runs.
#[inline(always)]
fn short_sums<T: Real>(
    x: &[T],
    s: ChannelSpans,
    channels: Range<usize>,
    values: &[T; CHANNELS_AT_ONCE],
    map: impl Fn(T, T) -> T,
) -> [f64; CHANNELS_AT_ONCE] {
    let mut totals = [0_f64; CHANNELS_AT_ONCE];
    if let Some(transposed) = transposed(x, s, &channels) {
        let mut sums = [T::ZERO; CHANNELS_AT_ONCE];
        for column in &transposed[..s.inner] {
            let column = *column;
            for l in 0..CHANNELS_AT_ONCE {
                sums[l] += map(column[l], values[l]);
            }
        }
        for i in 0..CHANNELS_AT_ONCE {
            totals[i] = sums[i].wide();
        }
        return totals;
    }
    let mut first = 0;
    while first < s.batch {
        let last = s.batch.min(first + s.summed_together());
        let mut lanes = [[T::ZERO; GROUP]; CHANNELS_AT_ONCE];
        // Runs as they lie: those of one channel may all fall on the same lines of a cache.
        for n in first..last {
            for ((lanes, &value), c) in lanes.iter_mut().zip(values).zip(channels.clone()) {
                add_span(lanes, &x[s.span(n, c).start..], s.inner, |x| map(x, value));
            }
        }
        let sums = sum_lanes(&lanes);
        for i in 0..CHANNELS_AT_ONCE {
            totals[i] += sums[i].wide();
        }
        first = last;
    }
    totals
}

/// The sums of `g` and of `g * (x - mean)` over each of at most `CHANNELS_AT_ONCE` channels of short runs.
#[inline(always)]
fn short_products<T: Real>(
    (grad, x): (&[T], &[T]),
    s: ChannelSpans,
    channels: Range<usize>,
    means: &[T; CHANNELS_AT_ONCE],
) -> [[f64; CHANNELS_AT_ONCE]; 2] {
    let mut totals = [[0_f64; CHANNELS_AT_ONCE]; 2];
    if let (Some(grad), Some(x)) = (transposed(grad, s, &channels), transposed(x, s, &channels)) {
        let mut sums = [[T::ZERO; CHANNELS_AT_ONCE]; 2];
        for (g, x) in grad[..s.inner].iter().zip(&x) {
            let (g, x) = (*g, *x);
            for l in 0..CHANNELS_AT_ONCE {
                sums[0][l] += g[l];
                sums[1][l] += g[l] * (x[l] - means[l]);
            }
        }
        for i in 0..CHANNELS_AT_ONCE {
            totals[0][i] = sums[0][i].wide();
            totals[1][i] = sums[1][i].wide();
        }
        return totals;
    }
    let mut first = 0;
    while first < s.batch {
        let last = s.batch.min(first + s.summed_together());
        let mut lanes = [[[T::ZERO; GROUP]; CHANNELS_AT_ONCE]; 2];
        for n in first..last {
            for (i, c) in channels.clone().enumerate() {
                let (mean, mut sum, mut along) = (means[i], lanes[0][i], lanes[1][i]);
                let at = s.span(n, c).start;
                let (mut grad, mut x, mut left) = (&grad[at..], &x[at..], s.inner);
                while left >= GROUP {
                    let (g, v) = (group_of(grad), group_of(x));
                    for l in 0..GROUP {
                        sum[l] += g[l];
                        along[l] += g[l] * (v[l] - mean);
                    }
                    (grad, x, left) = (&grad[GROUP..], &x[GROUP..], left - GROUP);
                }
                if left > 0 {
                    let (g, v) = (group_of(grad), group_of(x));
                    for l in 0..GROUP {
                        let g = if l < left { g[l] } else { T::ZERO };
                        let v = if l < left { v[l] } else { mean };
                        sum[l] += g;
                        along[l] += g * (v - mean);
                    }
                }
                (lanes[0][i], lanes[1][i]) = (sum, along);
            }
        }
        for (totals, lanes) in totals.iter_mut().zip(&lanes) {
            let sums = sum_lanes(lanes);
            for i in 0..CHANNELS_AT_ONCE {
                totals[i] += sums[i].wide();
            }
        }
        first = last;
    }
    totals
}

/// The sum of each row of lanes.
#[inline(always)]
fn sum_lanes<T: Real>(lanes: &[[T; GROUP]; CHANNELS_AT_ONCE]) -> [T; CHANNELS_AT_ONCE] {
    let mut transposed = [[T::ZERO; GROUP]; GROUP];
    let step = (GROUP * size_of::<T>()) as isize;
    // SAFETY: two squares of their own.
    unsafe {
        square::<T, false>(transposed.as_mut_ptr().cast(), step, lanes.as_ptr().cast(), step);
    }
    let mut sums = transposed[0];
    for lane in &transposed[1..] {
        for l in 0..GROUP {
            sums[l] += lane[l];
        }
    }
    sums
}

// What follows is compiled with the level of the function that it is put into: rows may be short, and a call for each
// would cost more than the row.

/// The sum of a row.
#[inline(always)]
fn sum<T: Real>(x: &[T]) -> f64 {
    // A loop, here and below: what an iterator's `sum` calls is not compiled with the level.
    let mut total = 0.0;
    for chunk in x.chunks(CHUNK) {
        total += reduce(chunk, T::ZERO, |a, b| a + b, |v| v).wide();
    }
    total
}

/// The sum of `(x - mean)^2`.
#[inline(always)]
fn sum_squares<T: Real>(x: &[T], mean: T) -> f64 {
    let mut total = 0.0;
    for chunk in x.chunks(CHUNK) {
        let square = |v: T| (v - mean) * (v - mean);
        total += reduce(chunk, T::ZERO, |a, b| a + b, square).wide();
    }
    total
}

/// The sum of `g * (x - mean)`.
#[inline(always)]
fn sum_products<T: Real>(g: &[T], x: &[T], mean: T) -> f64 {
    let mut total = 0.0;
    for (g, x) in g.chunks(CHUNK).zip(x.chunks(CHUNK)) {
        total += sum_pairs(g, x, |g: T, x: T| g * (x - mean)).wide();
    }
    total
}

/// `out = x * scale + shift`.
#[inline(always)]
fn affine<T: Real>(out: &mut [T], x: &[T], scale: T, shift: T) {
    let (mut out, mut x) = (out, x);
    if x.len() <= SHORT {
        // A loop over a few groups of known size starts sooner than one that is made for long rows. Each is read
        // before it is written, so that nobody asks whether they overlap.
        let (outs, out_rest) = out.as_chunks_mut::<GROUP>();
        let (groups, rest) = x.as_chunks::<GROUP>();
        for (out, group) in outs.iter_mut().zip(groups) {
            let mut group = *group;
            for x in &mut group {
                *x = x.mul_add(scale, shift);
            }
            *out = group;
        }
        (out, x) = (out_rest, rest);
    }
    for (out, &x) in out.iter_mut().zip(x) {
        *out = x.mul_add(scale, shift);
    }
}

/// `out = g * a + x * b + c`: the form of every norm's input gradient for one channel.
#[inline(always)]
fn combine<T: Real>(out: &mut [T], g: &[T], x: &[T], [a, b, c]: [T; 3]) {
    let (mut out, mut g, mut x) = (out, g, x);
    if x.len() <= SHORT {
        // As in `affine`.
        let (outs, out_rest) = out.as_chunks_mut::<GROUP>();
        let ((gs, g_rest), (xs, x_rest)) = (g.as_chunks::<GROUP>(), x.as_chunks::<GROUP>());
        for ((out, g), x) in outs.iter_mut().zip(gs).zip(xs) {
            let (mut g, x) = (*g, *x);
            for l in 0..GROUP {
                g[l] = g[l].mul_add(a, x[l].mul_add(b, c));
            }
            *out = g;
        }
        (out, g, x) = (out_rest, g_rest, x_rest);
    }
    for ((out, &g), &x) in out.iter_mut().zip(g).zip(x) {
        *out = g.mul_add(a, x.mul_add(b, c));
    }
}

/// [`affine`] of runs of `inner` elements, one after the other, each with factors of its own.
#[inline(always)]
fn affine_each<T: Real>(out: &mut [T], x: &[T], inner: usize, factors: [&[T]; 2]) {
    let mut at = 0;
    for (&scale, &shift) in factors[0].iter().zip(factors[1]) {
        let end = at + inner;
        match (x[at..].first_chunk::<GROUP>(), out[at..].first_chunk_mut::<GROUP>()) {
            // A group of known size is moved at once; what is behind the run is replaced by the next ones.
            (Some(group), Some(out)) if inner < GROUP => {
                let mut group = *group;
                for x in &mut group {
                    *x = x.mul_add(scale, shift);
                }
                *out = group;
            }
            _ => affine(&mut out[at..end], &x[at..end], scale, shift),
        }
        at = end;
    }
}

/// [`combine`] of runs, as [`affine_each`].
#[inline(always)]
fn combine_each<T: Real>(out: &mut [T], (g, x): (&[T], &[T]), inner: usize, factors: [&[T]; 3]) {
    let mut at = 0;
    for ((&a, &b), &c) in factors[0].iter().zip(factors[1]).zip(factors[2]) {
        let end = at + inner;
        let groups = (g[at..].first_chunk::<GROUP>(), x[at..].first_chunk::<GROUP>());
        match (groups, out[at..].first_chunk_mut::<GROUP>()) {
            ((Some(g), Some(x)), Some(out)) if inner < GROUP => {
                let (mut g, x) = (*g, *x);
                for l in 0..GROUP {
                    g[l] = g[l].mul_add(a, x[l].mul_add(b, c));
                }
                *out = g;
            }
            _ => combine(&mut out[at..end], &g[at..end], &x[at..end], [a, b, c]),
        }
        at = end;
    }
}

/// `1 / sqrt(var + eps)`.
#[inline(always)]
fn reciprocal_std<T: Real>(variance: f64, eps: f64) -> T {
    T::of(1.0 / (variance + eps).sqrt())
}
