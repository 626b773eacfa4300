//! Scaled dot product attention whose matrix of scores is never made: `softmax(scale Q K^T + mask) V`.
//!
//! A task takes a run of queries of one head through the keys, a block of `KEYS` at a time, which it packs with their values.
//! The weights of a block are relative to the greatest score so far; when that grows, what was summed before is scaled
//! (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "`FlashAttention`", 2022). Keys that
//! causal attention forbids are not multiplied, but for those beside the diagonal. Invariant: a query's result
//! depends on the shapes and its own operands, not on how queries are cut into tasks: tiles of `ROWS` queries begin at
//! multiples of that, and so do tasks. (Weights of forbidden keys of a tile are zero, so that an infinite value or NaN of such a key
//! makes NaN of the tile's other queries.)

mod tile;

use crate::dense::{SharedMut, expect_shape};
use crate::gemm::{Matrix, MulAdd};
use crate::interrupt::WorkCounter;
use crate::{DType, Error, Result, StridedMut, StridedRef, parallel, scratch};
use std::ops::Range;
use tile::{Block, KEYS, QUERIES, ROWS, ScoreNumber, add_values, panel_width, score, weigh};

/// Queries of a task where there are many heads, and where there are few.
const RUN: usize = 6 * QUERIES;
const SHORT_RUN: usize = 2 * QUERIES;
/// Heads of all examples from which runs are long.
const MANY: usize = 16;

/// How attention weighs keys, beside their products with the query.
#[derive(Clone, Copy)]
pub struct AttentionOptions<'a> {
    /// The factor of the products.
    pub scale: f64,
    /// Whether a query attends to no key at a later position.
    pub is_causal: bool,
    /// What is added to the scores: (B, H, L, S).
    pub mask: Option<StridedRef<'a>>,
}

/// `out = softmax(scale Q K^T + mask) V` of `query` (B, H, L, E), `key` (B, G, S, E) and `value` (B, G, S, F), where G divides
/// H and heads that follow one another share one of G; `out` is (B, H, L, F), and `sums` (B, H, L) gets the logarithms of
/// the sums of exponentials. Rows that may attend to nothing give zeros, also as logarithm. Everything is of one dtype, with
/// any strides.
///
/// # Errors
/// Shapes that do not fit, or a dtype that is neither `f32` nor `f64`.
pub fn attention(
    out: &mut StridedMut<'_>,
    sums: &mut StridedMut<'_>,
    query: StridedRef<'_>,
    [key, value]: [StridedRef<'_>; 2],
    options: AttentionOptions<'_>,
) -> Result<()> {
    let sizes = Sizes::of(query, key, value)?;
    let Sizes { batch, heads, queries, keys, out_width, .. } = sizes;
    let shape = [batch, heads, queries, out_width].map(|size| size as i64);
    expect_shape("output", out.shape(), &shape)?;
    expect_shape("logarithms", sums.shape(), &shape[..3])?;
    if let Some(mask) = options.mask {
        expect_shape("mask", mask.shape(), &[shape[0], shape[1], shape[2], keys as i64])?;
    }
    let others = [Some(key), Some(value), options.mask].into_iter().flatten();
    let dtypes = others.map(|view| view.dtype()).chain([out.dtype(), sums.dtype()]);
    if let Some(other) = dtypes.into_iter().find(|&dtype| dtype != query.dtype()) {
        return Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            query.dtype().scalar_name(),
            other.scalar_name()
        )));
    }
    match query.dtype() {
        DType::F32 => run::<f32>(out, sums, [query, key, value], options, sizes),
        DType::F64 => run::<f64>(out, sums, [query, key, value], options, sizes),
        dtype => Err(Error::not_implemented("flash_attention", dtype)),
    }
}

/// The sizes of an attention.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    /// Query heads that share a head of keys and values.
    sharing: usize,
    queries: usize,
    keys: usize,
    width: usize,
    out_width: usize,
}

impl Sizes {
    fn of(query: StridedRef<'_>, key: StridedRef<'_>, value: StridedRef<'_>) -> Result<Sizes> {
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
        Ok(Sizes { batch, heads, sharing, queries, keys, width, out_width })
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
struct Head<T> {
    query: Matrix<T>,
    key: Matrix<T>,
    value: Matrix<T>,
    mask: Option<Matrix<T>>,
    out: Matrix<T>,
    sums: Matrix<T>,
}

fn run<T: ScoreNumber>(
    out: &mut StridedMut<'_>,
    sums: &mut StridedMut<'_>,
    [query, key, value]: [StridedRef<'_>; 3],
    options: AttentionOptions<'_>,
    s: Sizes,
) -> Result<()> {
    let run = if s.batch * s.heads >= MANY { RUN } else { SHORT_RUN };
    let runs = s.queries.div_ceil(run);
    let (out_at, sums_at) = (SharedMut::from_ptr(out.ptr()), SharedMut::from_ptr(sums.ptr()));
    let (out_strides, sum_strides) = (out.strides(), sums.strides());
    let (scale, is_causal) = (T::of(options.scale), options.is_causal);
    parallel::try_for_restartable_range(s.batch * s.heads * runs, 1, &|tasks| {
        let buffers = Buffers::new::<T>(s, run.min(s.queries.next_multiple_of(ROWS)));
        scratch::with(buffers.words::<T>(), |words| {
            for task in tasks {
                let (at, run_at) = (task / runs, task % runs * run);
                let (n, h) = (at / s.heads, at % s.heads);
                let view = |view: StridedRef<'_>, h| head(view.ptr(), view.strides(), n, h);
                let own = Head {
                    query: view(query, h),
                    key: view(key, h / s.sharing),
                    value: view(value, h / s.sharing),
                    mask: options.mask.map(|mask| view(mask, h)),
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
    rows: usize,
}

/// A task's buffers.
struct Work<'a, T> {
    /// The queries row by row, zeros past the last.
    query: &'a mut [T],
    /// A block of keys in panels of as many as a tile takes, element by element.
    key: &'a mut [T],
    /// Their values in panels of columns.
    value: &'a mut [T],
    /// The weights of a block of queries: rows of `KEYS`.
    weights: &'a mut [T],
    /// For each panel of columns, a row of sums for each query.
    sums: &'a mut [T],
    /// For each query, the greatest score so far and the sum of exponentials.
    state: &'a mut [[T; 2]],
}

impl Buffers {
    fn new<T>(s: Sizes, rows: usize) -> Buffers {
        let (panel, rows) = (panel_width(size_of::<T>()), rows.next_multiple_of(ROWS));
        let keys = KEYS.min(s.keys).next_multiple_of(panel);
        let columns = s.out_width.next_multiple_of(panel);
        Buffers {
            query: rows * s.width,
            key: keys * s.width,
            value: keys * columns,
            weights: QUERIES * KEYS,
            sums: rows * columns,
            rows,
        }
    }
    fn words<T>(self) -> usize {
        let elements = self.query + self.key + self.value + self.weights + self.sums;
        (elements + 2 * self.rows + 6 * 16) * (size_of::<T>() / 4)
    }
    /// The buffers, each from a cache line on.
    fn cut<T>(self, words: &mut [u32]) -> Work<'_, T> {
        // SAFETY: all bits are numbers of either type; the words begin at a cache line and are as many as `words` says.
        let elements = unsafe {
            let n = words.len() * 4 / size_of::<T>();
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<T>(), n)
        };
        let mut rest = elements;
        let mut next = |n: usize| {
            let (part, others) = std::mem::take(&mut rest).split_at_mut(n.next_multiple_of(16));
            rest = others;
            &mut part[..n]
        };
        Work {
            query: next(self.query),
            key: next(self.key),
            value: next(self.value),
            weights: next(self.weights),
            sums: next(self.sums),
            state: next(2 * self.rows).as_chunks_mut().0,
        }
    }
}

/// One task: some queries of a head.
fn attend<T: ScoreNumber>(
    head: &Head<T>,
    (s, queries): (Sizes, Range<usize>),
    (scale, is_causal): (T, bool),
    work: Work<'_, T>,
) {
    let Work { query, key, value, weights, sums, state } = work;
    pack_rows(query, head.query.at(queries.start, 0), (queries.len(), s.width));
    sums.fill(T::ZERO);
    state.fill([T::NEG_INFINITY, T::ZERO]);
    let mut pace = WorkCounter::new();
    let last = if is_causal { s.keys.min(queries.end) } else { s.keys };
    for first in (0..last).step_by(KEYS) {
        let count = KEYS.min(last - first);
        pack_panels(key, head.key.at(first, 0).t(), (s.width, count));
        pack_panels(value, head.value.at(first, 0), (count, s.out_width));
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
                add_mask(weights, mask.at(place, first), block);
            }
            let mut growth = [T::ONE; QUERIES];
            weigh(weights, &mut state[start..], &mut growth, block);
            let all_rows = queries.len().next_multiple_of(ROWS);
            let sums = &mut sums[start * panel_width(size_of::<T>())..];
            add_values(sums, (weights, value), &growth, (block, all_rows, s.out_width));
        }
    }
    finish(head, (s, queries), sums, state);
}

/// Writes the results of some queries.
fn finish<T: ScoreNumber>(
    head: &Head<T>,
    (s, queries): (Sizes, Range<usize>),
    sums: &[T],
    state: &[[T; 2]],
) {
    let panel = panel_width(size_of::<T>());
    let rows = queries.len().next_multiple_of(ROWS);
    for (row, (at, &[top, sum])) in queries.zip(state).enumerate() {
        let is_empty = sum == T::ZERO;
        let factor = if is_empty { T::ZERO } else { T::ONE / sum };
        for (index, first) in (0..s.out_width).step_by(panel).enumerate() {
            let count = panel.min(s.out_width - first);
            let sums = &sums[(index * rows + row) * panel..][..count];
            // SAFETY: the task owns these rows of the output.
            unsafe { store_scaled(head.out.at(at, first), sums, factor) };
        }
        // SAFETY: as above.
        unsafe {
            *head.sums.at(at, 0).ptr = if is_empty { T::ZERO } else { top + sum.logarithm() }
        };
    }
}

/// Writes numbers times a factor from the first element of a matrix along its row.
///
/// # Safety
/// The row has so many elements, which nobody else uses.
unsafe fn store_scaled<T: ScoreNumber>(to: Matrix<T>, from: &[T], factor: T) {
    if to.cs == 1 {
        // SAFETY: the caller's promise, here and below.
        let to = unsafe { std::slice::from_raw_parts_mut(to.ptr, from.len()) };
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from * factor);
        return;
    }
    for (j, &from) in from.iter().enumerate() {
        // SAFETY: as above.
        unsafe { *to.at(0, j).ptr = from * factor };
    }
}

/// Copies the elements of a matrix from the first on along its row.
///
/// # Safety
/// The row has so many elements.
unsafe fn copy_row<T: ScoreNumber>(to: &mut [T], from: Matrix<T>) {
    if from.cs == 1 {
        // SAFETY: the caller's promise, here and below.
        to.copy_from_slice(unsafe { std::slice::from_raw_parts(from.ptr, to.len()) });
        return;
    }
    for (j, to) in to.iter_mut().enumerate() {
        // SAFETY: as above.
        *to = unsafe { *from.at(0, j).ptr };
    }
}

/// Copies rows to where they lie without gaps, and zeros after the last to whole tiles.
fn pack_rows<T: ScoreNumber>(to: &mut [T], from: Matrix<T>, (rows, width): (usize, usize)) {
    for (row, to) in to.chunks_exact_mut(width.max(1)).take(rows).enumerate() {
        // SAFETY: inside the matrix, as the views promised.
        unsafe { copy_row(to, from.at(row, 0)) };
    }
    let end = rows.next_multiple_of(ROWS) * width;
    to[rows * width..end].fill(T::ZERO);
}

/// Packs a matrix by panels of columns, with zeros for the columns that the last panel lacks.
fn pack_panels<T: ScoreNumber>(to: &mut [T], from: Matrix<T>, (rows, columns): (usize, usize)) {
    let panel = panel_width(size_of::<T>());
    for (to, first) in to.chunks_exact_mut((rows * panel).max(1)).zip((0..columns).step_by(panel)) {
        let count = panel.min(columns - first);
        if count < panel {
            to.fill(T::ZERO);
        }
        let from = from.at(0, first);
        if from.rs == 1 && rows > 1 {
            // SAFETY: `count` columns of `rows` elements without gaps; as many rows of a panel.
            unsafe { tile::transpose(to.as_mut_ptr(), panel, (from.ptr, from.cs), (count, rows)) };
            continue;
        }
        for (row, to) in to.chunks_exact_mut(panel).enumerate() {
            // SAFETY: inside the matrix, as the views promised.
            unsafe { copy_row(&mut to[..count], from.at(row, 0)) };
        }
    }
}

/// Adds the mask to the scores.
fn add_mask<T: ScoreNumber>(scores: &mut [T], mask: Matrix<T>, block: Block) {
    for (row, scores) in scores.chunks_exact_mut(KEYS).take(block.rows).enumerate() {
        let count = block.keys_of(row);
        for (j, score) in scores[..count].iter_mut().enumerate() {
            // SAFETY: inside the mask, as the views promised.
            *score += unsafe { *mask.at(row, j).ptr };
        }
    }
}
