//! The gradients of attention, again without a matrix of the scores (Dao, "`FlashAttention`-2: Faster attention with better
//! parallelism and work partitioning", 2023, algorithm 2).
//!
//! With `P = exp(scores - logsumexp)` and `D[i] = sum_f grad[i, f] out[i, f]`, which equals `sum_j P[i, j] (grad V^T)[i, j]`, the gradient
//! of the scores is `dS = P (grad V^T - D)`, and
//!
//! `dV = P^T grad`, `dQ = scale dS K`, `dK = scale dS^T Q`.
//!
//! A task takes the blocks of keys of one head of keys, one after the other: for each it goes through the queries that may attend to it,
//! of all heads that share the keys, computes scores and weights again, and adds to the gradients. Those of a
//! block of keys are complete then. Those of queries grow from block to block; where heads are few, blocks of keys are dealt out to
//! several tasks, each with sums of its own, which are added at the end in their order. Invariant: how many tasks that are depends on
//! the shapes alone, so that results do not depend on the number of threads.

use super::pack::{Mask, Stored, copy_row, pack_panels, pack_rows, spare_of, store_row};
use super::tile::{
    Block, KEYS, QUERIES, ROWS, add_to_keys, add_to_queries, panel_width, score, weigh_back,
};
use super::{AttentionOptions, AttentionSizes, Cutter, check_dtypes, head};
use crate::dense::{Real, SharedMut, expect_shape};
use crate::gemm::Matrix;
use crate::interrupt::WorkCounter;
use crate::row::sum_pairs;
use crate::{DType, Error, Result, StridedMut, StridedRef, bf16, f16, memory, parallel, scratch};

/// The number of tasks that a head's keys are divided into at least, if there are as many blocks of
/// keys.
const TASKS: usize = 8;

/// What attention gave, and the gradient of its output.
#[derive(Clone, Copy)]
pub struct AttentionResults<'a> {
    /// The output: (B, H, L, F).
    pub out: StridedRef<'a>,
    /// The logarithms of the sums of exponentials: (B, H, L).
    pub sums: StridedRef<'a>,
    /// The gradient of the output: (B, H, L, F).
    pub grad: StridedRef<'a>,
}

/// The gradients of `attention` with respect to `query`, `key` and `value`, of their shapes, in this order. Everything is of
/// the dtypes that `attention` takes, with any strides.
///
/// # Errors
/// Shapes that do not fit, or dtypes; out of memory.
pub fn attention_backward<'a>(
    grads: [&mut StridedMut<'a>; 3],
    results: AttentionResults<'_>,
    query: StridedRef<'a>,
    [key, value]: [StridedRef<'a>; 2],
    options: AttentionOptions<'a>,
) -> Result<()> {
    let sizes = AttentionSizes::of(query, key, value)?;
    let AttentionResults { out, sums, grad } = results;
    sizes.check_results(out.shape(), sums.shape(), options.mask)?;
    expect_shape("gradient", grad.shape(), out.shape())?;
    for (name, grad, of) in [("query", 0, query), ("key", 1, key), ("value", 2, value)] {
        expect_shape(&format!("gradient of the {name}"), grads[grad].shape(), of.shape())?;
    }
    let [by_query, by_key, by_value] = [0, 1, 2].map(|at: usize| grads[at].dtype());
    let others =
        [key.dtype(), value.dtype(), out.dtype(), grad.dtype(), by_query, by_key, by_value];
    check_dtypes(query, &others, sums.dtype())?;
    let operands = [query, key, value];
    match query.dtype() {
        DType::F16 => Gradients::<f16>::of(grads, operands, options, sizes).run(results),
        DType::BF16 => Gradients::<bf16>::of(grads, operands, options, sizes).run(results),
        DType::F32 => Gradients::<f32>::of(grads, operands, options, sizes).run(results),
        DType::F64 => Gradients::<f64>::of(grads, operands, options, sizes).run(results),
        dtype => Err(Error::not_implemented("flash_attention_backward", dtype)),
    }
}

/// A tensor of (B, H, L, E) whose heads tasks write.
#[derive(Clone, Copy)]
struct GradientTarget<'a, N> {
    at: SharedMut<N>,
    strides: &'a [i64],
}

impl<N> GradientTarget<'_, N> {
    fn head(self, example: usize, at: usize) -> Matrix<N> {
        head(self.at.ptr().cast(), self.strides, example, at)
    }
}

/// The call: what is read, and what is written.
struct Gradients<'a, N: Stored> {
    by_query: GradientTarget<'a, N>,
    by_key: GradientTarget<'a, N>,
    by_value: GradientTarget<'a, N>,
    operands: [StridedRef<'a>; 3],
    options: AttentionOptions<'a>,
    s: AttentionSizes,
    /// In how many tasks a head's blocks of keys are dealt out.
    splits: usize,
}

/// For each query the logarithm of the sum of exponentials, and the sum of the products of weights with their gradients.
type QueryState<N> = [<N as Stored>::Wide; 2];

impl<'a, N: Stored> Gradients<'a, N> {
    fn of(
        grads: [&mut StridedMut<'a>; 3],
        operands: [StridedRef<'a>; 3],
        options: AttentionOptions<'a>,
        s: AttentionSizes,
    ) -> Self {
        let target = |to: &mut StridedMut<'a>| {
            let at = SharedMut::from_ptr(to.ptr().cast::<N>());
            GradientTarget { at, strides: to.strides() }
        };
        let heads = s.batch * (s.heads / s.sharing);
        let most = s.keys.div_ceil(KEYS).max(1);
        let splits = TASKS.div_ceil(heads.max(1)).min(most);
        let [by_query, by_key, by_value] = grads.map(target);
        Gradients { by_query, by_key, by_value, operands, options, s, splits }
    }

    fn run(&self, results: AttentionResults<'_>) -> Result<()> {
        let s = self.s;
        let rows = s.batch * s.heads * s.queries;
        let mut state = memory::filled([N::Wide::ZERO; 2], rows)?;
        self.find_state(results, &mut state)?;
        let is_direct = N::IS_WIDE && self.splits == 1 && self.by_query.strides[3] == 1;
        let shape = [self.splits * s.batch, s.heads, s.queries, s.width];
        let mut sums = memory::filled(
            N::Wide::ZERO,
            if is_direct { 0 } else { self.splits * rows * s.width },
        )?;
        let steps = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1];
        let steps = steps.map(|step| step as i64);
        let by_query = if is_direct {
            GradientTarget {
                at: SharedMut::from_ptr(self.by_query.at.ptr().cast()),
                strides: self.by_query.strides,
            }
        } else {
            GradientTarget { at: SharedMut::new(&mut sums), strides: &steps }
        };
        let own = s.heads / s.sharing;
        let buffers = GradBuffers::new::<N>(s);
        parallel::try_for_restartable_range(s.batch * own * self.splits, 1, &|tasks| {
            scratch::with(buffers.words::<N::Wide>(), |words| {
                for task in tasks {
                    let (at, split) = (task / self.splits, task % self.splits);
                    self.go_through(
                        results.grad,
                        &state,
                        by_query,
                        (at / own, at % own, split),
                        buffers.cut(words),
                    );
                }
            })
        })?;
        if !is_direct {
            self.add_splits(&sums);
        }
        Ok(())
    }

    /// Computes what is known of each query before its weights: the logarithm of its sum of
    /// exponentials, and `D`.
    fn find_state(&self, results: AttentionResults<'_>, state: &mut [QueryState<N>]) -> Result<()> {
        let s = self.s;
        let to = SharedMut::new(state);
        parallel::try_for_restartable_range(s.batch * s.heads, 1, &|tasks| {
            scratch::with((2 * s.out_width + 32) * (size_of::<N::Wide>() / 4), |words| {
                let mut rest = Cutter::new(words);
                let (ours, theirs) = (rest.next(s.out_width), rest.next(s.out_width));
                for task in tasks {
                    let (n, h) = (task / s.heads, task % s.heads);
                    let out = head::<N>(results.out.ptr(), results.out.strides(), n, h);
                    let grad = head::<N>(results.grad.ptr(), results.grad.strides(), n, h);
                    let sums = head::<N::Wide>(results.sums.ptr(), results.sums.strides(), n, h);
                    // SAFETY: the task's own queries.
                    let state = unsafe { to.slice(task * s.queries..(task + 1) * s.queries) };
                    for (row, state) in state.iter_mut().enumerate() {
                        // SAFETY: inside the matrices, as the views promised.
                        unsafe {
                            copy_row(ours, out.at(row, 0));
                            copy_row(theirs, grad.at(row, 0));
                            let all = sum_pairs(ours, theirs, |x, y| x * y);
                            *state = [*sums.at(row, 0).ptr, all];
                        }
                    }
                }
            })
        })
    }

    /// One task: every `splits`-th block of keys of a head from the `split`-th on.
    fn go_through(
        &self,
        grad: StridedRef<'_>,
        state: &[QueryState<N>],
        by_query: GradientTarget<'_, N::Wide>,
        (n, own, split): (usize, usize, usize),
        mut work: GradWork<'_, N::Wide>,
    ) {
        let s = self.s;
        let heads = own * s.sharing..(own + 1) * s.sharing;
        let head_of = |h: usize| {
            let view = |view: StridedRef<'_>| head(view.ptr(), view.strides(), n, h);
            let at = (n * s.heads + h) * s.queries;
            GradHead {
                query: view(self.operands[0]),
                grad: view(grad),
                mask: self.options.mask.and_then(|mask| Mask::of(mask, n, h)),
                state: &state[at..at + s.queries],
                by_query: by_query.head(split * s.batch + n, h),
            }
        };
        for h in heads.clone() {
            head_of(h).clear(s);
        }
        let [_, key, value] =
            self.operands.map(|view| head::<N>(view.ptr(), view.strides(), n, own));
        let (by_key, by_value) = (self.by_key.head(n, own), self.by_value.head(n, own));
        let mut pace = WorkCounter::new();
        for first in (split * KEYS..s.keys).step_by(self.splits * KEYS) {
            let count = KEYS.min(s.keys - first);
            work.take_keys(key.at(first, 0), value.at(first, 0), (s, count));
            for h in heads.clone() {
                self.add_block(&head_of(h), (first, count), &mut work, &mut pace);
            }
            let panel = panel_width(size_of::<N::Wide>());
            for (to, from, width) in
                [(by_key, &*work.by_key, s.width), (by_value, &*work.by_value, s.out_width)]
            {
                let rows = from.chunks_exact(width.next_multiple_of(panel).max(1));
                for (row, from) in rows.take(count).enumerate() {
                    // SAFETY: the task's own rows of the gradient.
                    unsafe { store_row(to.at(first + row, 0), &from[..width]) };
                }
            }
        }
    }

    /// Adds what the queries of a head and a block of keys contribute to the gradients.
    fn add_block(
        &self,
        head: &GradHead<'_, N>,
        (first, count): (usize, usize),
        work: &mut GradWork<'_, N::Wide>,
        pace: &mut WorkCounter,
    ) {
        let (s, is_causal, one) = (self.s, self.options.is_causal, N::Wide::ONE);
        let scale = N::Wide::of(self.options.scale);
        let start = if is_causal { first / QUERIES * QUERIES } else { 0 };
        for place in (start..s.queries).step_by(QUERIES) {
            let rows = QUERIES.min(s.queries - place);
            let allowed = is_causal.then(|| (place + 1) as isize - first as isize);
            let block = Block { rows, keys: count, allowed };
            if block.keys_of(rows - 1) == 0 {
                continue;
            }
            pace.spend(rows * count * (s.width + s.out_width) / 3);
            work.take_queries(head.query.at(place, 0), head.grad.at(place, 0), (s, rows));
            let GradWork { query, grad, weights, slopes, .. } = work;
            score(weights, query, work.key, s.width, (scale, block));
            score(slopes, grad, work.value, s.out_width, (one, block));
            if let Some(mask) = head.mask {
                mask.add_to(weights, (place, first), block);
            }
            weigh_back(weights, slopes, &head.state[place..place + rows], (scale, block));
            add_to_keys(work.by_value, weights, work.grad_panels, (block, s.out_width));
            add_to_keys(work.by_key, slopes, work.query_panels, (block, s.width));
            add_to_queries(head.by_query.at(place, 0), slopes, work.key_panels, (block, s.width));
        }
    }

    /// Writes the gradient of the queries: the sums of the tasks, one after the other.
    fn add_splits(&self, sums: &[N::Wide]) {
        let (s, all) = (self.s, self.s.batch * self.s.heads * self.s.queries * self.s.width);
        if all == 0 {
            return;
        }
        parallel::for_range(s.batch * s.heads * s.queries, 64, &|rows| {
            let mut row_sums = [N::Wide::ZERO; KEYS];
            for row in rows {
                let (at, i) = (row / s.queries, row % s.queries);
                let to = self.by_query.head(at / s.heads, at % s.heads).at(i, 0);
                for first in (0..s.width).step_by(KEYS) {
                    let total = &mut row_sums[..KEYS.min(s.width - first)];
                    let place = row * s.width + first;
                    total.copy_from_slice(&sums[place..place + total.len()]);
                    for split in 1..self.splits {
                        let part = &sums[split * all + place..][..total.len()];
                        total.iter_mut().zip(part).for_each(|(sum, &x)| *sum += x);
                    }
                    // SAFETY: the block's own rows.
                    unsafe { store_row(to.at(0, first), total) };
                }
            }
        });
    }
}

/// One head of queries in a task.
struct GradHead<'a, N: Stored> {
    query: Matrix<N>,
    grad: Matrix<N>,
    mask: Option<Mask>,
    state: &'a [QueryState<N>],
    by_query: Matrix<N::Wide>,
}

impl<N: Stored> GradHead<'_, N> {
    /// Makes the sums for the gradient of the queries zero.
    fn clear(&self, s: AttentionSizes) {
        for row in 0..if s.width == 0 { 0 } else { s.queries } {
            let row = self.by_query.at(row, 0).ptr;
            // SAFETY: the task's own rows of the sums.
            unsafe { std::slice::from_raw_parts_mut(row, s.width) }.fill(N::Wide::ZERO);
        }
    }
}

/// How many elements a task's buffers have.
#[derive(Clone, Copy)]
struct GradBuffers {
    /// The width of a row of queries, and of a row of output gradients.
    widths: [usize; 2],
    /// The widths of a row of queries and of a row of output gradients, rounded up to whole panels.
    columns: [usize; 2],
    /// The keys of a block, rounded up to whole panels, and to whole tiles.
    keys: [usize; 2],
    spare: usize,
}

/// A task's buffers.
struct GradWork<'a, T> {
    /// Queries and gradients of outputs row by row, and in panels of columns.
    query: &'a mut [T],
    grad: &'a mut [T],
    query_panels: &'a mut [T],
    grad_panels: &'a mut [T],
    /// A block of keys and of values in panels of as many as a tile takes, element by element, and the keys in panels of columns.
    key: &'a mut [T],
    value: &'a mut [T],
    key_panels: &'a mut [T],
    /// The gradients of the block, rows of whole panels.
    by_key: &'a mut [T],
    by_value: &'a mut [T],
    /// The scores and then the weights; the gradients of the weights and then of the scores: rows
    /// of `KEYS`.
    weights: &'a mut [T],
    slopes: &'a mut [T],
    spare: &'a mut [T],
}

impl GradBuffers {
    fn new<N: Stored>(s: AttentionSizes) -> GradBuffers {
        let panel = panel_width(size_of::<N::Wide>());
        let (widths, keys) = ([s.width, s.out_width], KEYS.min(s.keys));
        GradBuffers {
            widths,
            columns: widths.map(|width| width.next_multiple_of(panel)),
            keys: [keys.next_multiple_of(panel), keys.next_multiple_of(ROWS)],
            spare: spare_of::<N>(s.width.max(s.out_width).max(KEYS)),
        }
    }
    fn sizes(self) -> [usize; 12] {
        let ([width, out_width], [columns, out_columns]) = (self.widths, self.columns);
        let ([in_panels, in_tiles], scores) = (self.keys, QUERIES * KEYS + ROWS);
        [
            QUERIES * width,
            QUERIES * out_width,
            QUERIES * columns,
            QUERIES * out_columns,
            in_panels * width,
            in_panels * out_width,
            in_panels * columns,
            in_tiles * columns,
            in_tiles * out_columns,
            scores,
            scores,
            self.spare,
        ]
    }
    fn words<T>(self) -> usize {
        let elements = self.sizes().iter().map(|n| n.next_multiple_of(16)).sum::<usize>();
        elements * (size_of::<T>() / 4)
    }
    /// Divides the task's memory into its buffers, each from a cache line on.
    fn cut<T>(self, words: &mut [u32]) -> GradWork<'_, T> {
        let mut rest = Cutter::new(words);
        let [
            query,
            grad,
            query_panels,
            grad_panels,
            key,
            value,
            key_panels,
            by_key,
            by_value,
            weights,
            slopes,
            spare,
        ] = self.sizes().map(|n| rest.next(n));
        GradWork {
            query,
            grad,
            query_panels,
            grad_panels,
            key,
            value,
            key_panels,
            by_key,
            by_value,
            weights,
            slopes,
            spare,
        }
    }
}

impl<T> GradWork<'_, T> {
    /// Packs a block of keys with their values, whose gradients are zero so far.
    fn take_keys<N: Stored<Wide = T>>(
        &mut self,
        key: Matrix<N>,
        value: Matrix<N>,
        (s, count): (AttentionSizes, usize),
    ) where
        T: Real,
    {
        pack_panels(self.key, key.t(), (s.width, count), self.spare);
        pack_panels(self.value, value.t(), (s.out_width, count), self.spare);
        pack_panels(self.key_panels, key, (count, s.width), self.spare);
        self.by_key.fill(T::ZERO);
        self.by_value.fill(T::ZERO);
    }
    /// Packs a block of queries with the gradients of their outputs.
    fn take_queries<N: Stored<Wide = T>>(
        &mut self,
        query: Matrix<N>,
        grad: Matrix<N>,
        (s, rows): (AttentionSizes, usize),
    ) {
        pack_rows(self.query, query, (rows, s.width));
        pack_rows(self.grad, grad, (rows, s.out_width));
        pack_panels(self.query_panels, query, (rows, s.width), self.spare);
        pack_panels(self.grad_panels, grad, (rows, s.out_width), self.spare);
    }
}
