//! Scaled dot product attention whose matrix of scores is never made: `softmax(scale Q K^T + mask) V`.
//!
//! A task takes some consecutive queries of one head through the keys, a block of `KEYS` at a time,
//! which it packs with their values. The weights of a block are relative to the greatest score so
//! far; when that grows, what was summed before is scaled (Milakov and Gimelshein, "Online
//! normalizer calculation for softmax", 2018; Dao et al., "`FlashAttention`", 2022). Keys that
//! causal attention forbids are not multiplied, except for those in a tile that the diagonal
//! crosses. Invariant: a query's result depends on the shapes and its own operands, not on how
//! queries are cut into tasks: tiles of `ROWS` queries begin at multiples of that, and so do tasks.
//! (Weights of forbidden keys of a tile are zero, so that an infinite value or NaN of such a key
//! makes NaN of the tile's other queries.) Halves are widened as they are packed and rounded once.
//!
//! The gradients are in `backward`, reading and writing of elements in `pack`, the loops in `tile`.

mod backward;
mod pack;
mod tile;

use crate::dense::{Real, SharedMut, expect_shape};
use crate::gemm::{Matrix, MulAdd};
use crate::interrupt::WorkCounter;
use crate::softmax::Exponential;
use crate::{DType, Error, Result, StridedMut, StridedRef, bf16, f16, parallel, scratch};
pub use backward::{AttentionResults, attention_backward};
use pack::{Mask, Stored, pack_panels, pack_rows, spare_of, store_row};
use std::ops::Range;
use tile::{Block, KEYS, QUERIES, ROWS, add_values, panel_width, score, weigh};

/// How many queries a task takes where there are many heads, and how many where there are few.
const RUN: usize = 6 * QUERIES;
const SHORT_RUN: usize = 2 * QUERIES;
/// The number of heads, of all examples together, from which tasks take the larger number of
/// queries.
const MANY: usize = 16;

/// How attention weighs keys, beside their products with the query.
#[derive(Clone, Copy)]
pub struct AttentionOptions<'a> {
    /// The factor of the products.
    pub scale: f64,
    /// Whether a query attends to no key at a later position.
    pub is_causal: bool,
    /// What is added to the scores, or truth values that say which keys a query may attend to: (B, H, L, S).
    pub mask: Option<StridedRef<'a>>,
}

/// `out = softmax(scale Q K^T + mask) V` of `query` (B, H, L, E), `key` (B, G, S, E) and `value` (B, G, S, F), where G divides
/// H and heads that follow one another share one of G; `out` is (B, H, L, F), and `sums` (B, H, L) gets the logarithms of
/// the sums of exponentials. Rows that may attend to nothing give zeros, also as logarithm. All are of one floating dtype,
/// but `sums`, which are `f32` for halves, and the mask; with any strides.
///
/// # Errors
/// Shapes that do not fit, or dtypes.
pub fn attention(
    out: &mut StridedMut<'_>,
    sums: &mut StridedMut<'_>,
    query: StridedRef<'_>,
    [key, value]: [StridedRef<'_>; 2],
    options: AttentionOptions<'_>,
) -> Result<()> {
    let sizes = AttentionSizes::of(query, key, value)?;
    sizes.check_results(out.shape(), sums.shape(), options.mask)?;
    check_dtypes(query, &[key.dtype(), value.dtype(), out.dtype()], sums.dtype())?;
    match query.dtype() {
        DType::F16 => run::<f16>(out, sums, [query, key, value], options, sizes),
        DType::BF16 => run::<bf16>(out, sums, [query, key, value], options, sizes),
        DType::F32 => run::<f32>(out, sums, [query, key, value], options, sizes),
        DType::F64 => run::<f64>(out, sums, [query, key, value], options, sizes),
        dtype => Err(Error::not_implemented("flash_attention", dtype)),
    }
}

/// Refuses operands that are not of the query's dtype, and logarithms not of that which is computed in.
fn check_dtypes(query: StridedRef<'_>, others: &[DType], sums: DType) -> Result<()> {
    let dtype = query.dtype();
    let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
    let mut pairs = others.iter().map(|&other| (dtype, other)).chain([(wide, sums)]);
    match pairs.find(|(expected, found)| expected != found) {
        Some((expected, found)) => Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            expected.scalar_name(),
            found.scalar_name()
        ))),
        None => Ok(()),
    }
}

/// The sizes of an attention.
#[derive(Clone, Copy)]
struct AttentionSizes {
    batch: usize,
    heads: usize,
    /// How many query heads share a head of keys and values.
    sharing: usize,
    queries: usize,
    keys: usize,
    width: usize,
    out_width: usize,
}

impl AttentionSizes {
    fn of(
        query: StridedRef<'_>,
        key: StridedRef<'_>,
        value: StridedRef<'_>,
    ) -> Result<AttentionSizes> {
        let shapes = [query.shape(), key.shape(), value.shape()];
        let [&[batch, heads, queries, width], &[_, own, keys, _], &[_, _, _, out_width]] = shapes
        else {
            return Err(Error::runtime(format!(
                "attention takes four dimensions, but got {}, {} and {}",
                query.ndim(),
                key.ndim(),
                value.ndim()
            )));
        };
        expect_shape("key", key.shape(), &[batch, own, keys, width])?;
        expect_shape("value", value.shape(), &[batch, own, keys, out_width])?;
        if own != heads && (own == 0 || heads % own != 0) {
            return Err(Error::runtime(format!(
                "{heads} heads of the query cannot share {own} heads of key and value"
            )));
        }
        let sharing = if own == 0 { 1 } else { heads / own };
        let [batch, heads, sharing, queries, keys, width, out_width] =
            [batch, heads, sharing, queries, keys, width, out_width].map(|size| size as usize);
        Ok(AttentionSizes { batch, heads, sharing, queries, keys, width, out_width })
    }

    /// Refuses results, logarithms and a mask whose shapes do not fit the operands, and a mask that
    /// is neither bool nor of the query's dtype.
    fn check_results(self, out: &[i64], sums: &[i64], mask: Option<StridedRef<'_>>) -> Result<()> {
        let AttentionSizes { batch, heads, queries, keys, out_width, .. } = self;
        let shape = [batch, heads, queries, out_width].map(|size| size as i64);
        expect_shape("output", out, &shape)?;
        expect_shape("logarithms", sums, &shape[..3])?;
        let Some(mask) = mask else { return Ok(()) };
        expect_shape("mask", mask.shape(), &[shape[0], shape[1], shape[2], keys as i64])?;
        match Mask::of(mask, 0, 0) {
            Some(_) => Ok(()),
            None => Err(Error::not_implemented("attention with a mask", mask.dtype())),
        }
    }
}

/// The matrix of one head of one example.
fn head<T>(ptr: *const u8, strides: &[i64], example: usize, head: usize) -> Matrix<T> {
    let offset = example as isize * strides[0] as isize + head as isize * strides[1] as isize;
    let last = strides.get(3).map_or(0, |&stride| stride as isize);
    Matrix {
        ptr: ptr.cast::<T>().wrapping_offset(offset).cast_mut(),
        rs: strides[2] as isize,
        cs: last,
    }
}

/// The operands and results of one head.
struct Head<N: Stored> {
    query: Matrix<N>,
    key: Matrix<N>,
    value: Matrix<N>,
    mask: Option<Mask>,
    out: Matrix<N>,
    sums: Matrix<N::Wide>,
}

fn run<N: Stored>(
    out: &mut StridedMut<'_>,
    sums: &mut StridedMut<'_>,
    [query, key, value]: [StridedRef<'_>; 3],
    options: AttentionOptions<'_>,
    s: AttentionSizes,
) -> Result<()> {
    let run = if s.batch * s.heads >= MANY { RUN } else { SHORT_RUN };
    let runs = s.queries.div_ceil(run);
    let (out_at, sums_at) = (SharedMut::from_ptr(out.ptr()), SharedMut::from_ptr(sums.ptr()));
    let (out_strides, sum_strides) = (out.strides(), sums.strides());
    let (scale, is_causal) = (N::Wide::of(options.scale), options.is_causal);
    parallel::try_for_restartable_range(s.batch * s.heads * runs, 1, &|tasks| {
        let buffers = Buffers::new::<N>(s, run.min(s.queries.next_multiple_of(ROWS)));
        scratch::with(buffers.words::<N::Wide>(), |words| {
            for task in tasks {
                let (at, run_at) = (task / runs, task % runs * run);
                let (n, h) = (at / s.heads, at % s.heads);
                let view = |view: StridedRef<'_>, h| head(view.ptr(), view.strides(), n, h);
                let own = Head::<N> {
                    query: view(query, h),
                    key: view(key, h / s.sharing),
                    value: view(value, h / s.sharing),
                    mask: options.mask.and_then(|mask| Mask::of(mask, n, h)),
                    out: head(out_at.ptr(), out_strides, n, h),
                    sums: head(sums_at.ptr(), sum_strides, n, h),
                };
                let queries = run_at..s.queries.min(run_at + run);
                attend(&own, (s, queries), (scale, is_causal), buffers.cut(words));
            }
        })
    })
}

/// How many elements a task's buffers have.
#[derive(Clone, Copy)]
struct Buffers {
    query: usize,
    key: usize,
    value: usize,
    weights: usize,
    sums: usize,
    spare: usize,
    rows: usize,
}

/// A task's buffers.
struct TaskBuffers<'a, T> {
    /// The queries row by row, zeros past the last.
    query: &'a mut [T],
    /// A block of keys in panels of as many as a tile takes, element by element.
    key: &'a mut [T],
    /// The values of a block of keys, in panels of columns.
    value: &'a mut [T],
    /// The weights of a block of queries: rows of `KEYS`.
    weights: &'a mut [T],
    /// For each panel of columns, a row of sums for each query.
    sums: &'a mut [T],
    spare: &'a mut [T],
    /// For each query, the greatest score so far and the sum of exponentials.
    state: &'a mut [[T; 2]],
}

impl Buffers {
    fn new<N: Stored>(s: AttentionSizes, rows: usize) -> Buffers {
        let (panel, rows) = (panel_width(size_of::<N::Wide>()), rows.next_multiple_of(ROWS));
        let keys = KEYS.min(s.keys).next_multiple_of(panel);
        let columns = s.out_width.next_multiple_of(panel);
        Buffers {
            query: rows * s.width,
            key: keys * s.width,
            value: keys * columns,
            weights: QUERIES * KEYS,
            sums: rows * columns,
            spare: spare_of::<N>(s.width.max(KEYS)),
            rows,
        }
    }
    fn words<T>(self) -> usize {
        let elements = self.query + self.key + self.value + self.weights + self.sums + self.spare;
        (elements + 2 * self.rows + 7 * 16) * (size_of::<T>() / 4)
    }
    /// Divides the task's memory into its buffers, each from a cache line on.
    fn cut<T>(self, words: &mut [u32]) -> TaskBuffers<'_, T> {
        let mut rest = Cutter::new(words);
        TaskBuffers {
            query: rest.next(self.query),
            key: rest.next(self.key),
            value: rest.next(self.value),
            weights: rest.next(self.weights),
            sums: rest.next(self.sums),
            spare: rest.next(self.spare),
            state: rest.next(2 * self.rows).as_chunks_mut().0,
        }
    }
}

/// Memory that buffers are taken from, one after the other.
struct Cutter<'a, T>(&'a mut [T]);

impl<'a, T> Cutter<'a, T> {
    /// Numbers in place of words that begin at a cache line.
    fn new(words: &'a mut [u32]) -> Self {
        const { assert!(size_of::<T>() == 4 || size_of::<T>() == 8) };
        // SAFETY: all bits are numbers of the two types that attention computes with; there are so many words.
        Cutter(unsafe {
            let n = words.len() * 4 / size_of::<T>();
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<T>(), n)
        })
    }
    /// The next `n` numbers, from a cache line on.
    fn next(&mut self, n: usize) -> &'a mut [T] {
        let (part, rest) = std::mem::take(&mut self.0).split_at_mut(n.next_multiple_of(16));
        self.0 = rest;
        &mut part[..n]
    }
}

/// One task: some queries of a head.
fn attend<N: Stored>(
    head: &Head<N>,
    (s, queries): (AttentionSizes, Range<usize>),
    (scale, is_causal): (N::Wide, bool),
    work: TaskBuffers<'_, N::Wide>,
) {
    let TaskBuffers { query, key, value, weights, sums, spare, state } = work;
    pack_rows(query, head.query.at(queries.start, 0), (queries.len(), s.width));
    sums.fill(N::Wide::ZERO);
    state.fill([N::Wide::NEG_INFINITY, N::Wide::ZERO]);
    let mut pace = WorkCounter::new();
    let last = if is_causal { s.keys.min(queries.end) } else { s.keys };
    for first in (0..last).step_by(KEYS) {
        let count = KEYS.min(last - first);
        pack_panels(key, head.key.at(first, 0).t(), (s.width, count), spare);
        pack_panels(value, head.value.at(first, 0), (count, s.out_width), spare);
        for start in (0..queries.len()).step_by(QUERIES) {
            let rows = QUERIES.min(queries.len() - start);
            pace.spend(rows * count * (s.width + s.out_width) / 8);
            let place = queries.start + start;
            let allowed = is_causal.then(|| (place + 1) as isize - first as isize);
            let block = Block { rows, keys: count, allowed };
            if block.keys_of(rows - 1) == 0 {
                continue;
            }
            score(weights, &query[start * s.width..], key, s.width, (scale, block));
            if let Some(mask) = head.mask {
                mask.add_to(weights, (place, first), block);
            }
            let mut growth = [N::Wide::ONE; QUERIES];
            weigh(weights, &mut state[start..], &mut growth, block);
            let all_rows = queries.len().next_multiple_of(ROWS);
            let sums = &mut sums[start * panel_width(size_of::<N::Wide>())..];
            add_values(sums, (weights, value), &growth, (block, all_rows, s.out_width));
        }
    }
    finish(head, (s, queries), sums, state);
}

/// Writes the results of some queries.
fn finish<N: Stored>(
    head: &Head<N>,
    (s, queries): (AttentionSizes, Range<usize>),
    sums: &mut [N::Wide],
    state: &[[N::Wide; 2]],
) {
    let panel = panel_width(size_of::<N::Wide>());
    let (zero, one) = (N::Wide::ZERO, N::Wide::ONE);
    let rows = queries.len().next_multiple_of(ROWS);
    for (row, (at, &[top, sum])) in queries.zip(state).enumerate() {
        let is_empty = sum == zero;
        let factor = if is_empty { zero } else { one / sum };
        for (index, first) in (0..s.out_width).step_by(panel).enumerate() {
            let count = panel.min(s.out_width - first);
            let sums = &mut sums[(index * rows + row) * panel..][..count];
            for sum in &mut *sums {
                *sum *= factor;
            }
            // SAFETY: the task owns these rows of the output.
            unsafe { store_row(head.out.at(at, first), sums) };
        }
        // SAFETY: as above.
        unsafe { *head.sums.at(at, 0).ptr = if is_empty { zero } else { top + sum.logarithm() } };
    }
}
