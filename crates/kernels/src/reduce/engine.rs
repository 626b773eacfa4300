//! Walks a strided input and folds it into results: the part of a reduction that does not depend on
//! what is computed.
//!
//! Invariant: the tree in which items are combined depends only on shape and strides, never on the
//! number of threads. Along a line, blocks of `BLOCK` items are folded and combined pairwise (a binary
//! counter); results that lie side by side are the business of `columns`.

use super::load::Load;
use super::{columns, lines};
use crate::line::check_shape;
use crate::{DType, Element, Error, Result, StridedMut, StridedRef};
use smallvec::SmallVec;

/// Items folded at once along a line.
pub(crate) const BLOCK: usize = 4096;
/// Rows folded at once when whole rows are reduced.
pub(crate) const ROWS: usize = 32;

/// What a reduction computes.
pub(crate) trait Reducer: Sync {
    /// The type of the items that it folds.
    type Item: Copy + Default + Send + Sync;
    /// The type of partial results.
    type Acc: Copy + Send + Sync;
    /// Whether `fold` and `fold_rows` do nothing but `step` and `combine`.
    const IS_BY_STEP: bool = true;
    /// Whether items must come in the logical order of the reduced dimensions.
    const IS_ORDERED: bool = false;
    /// The result of no items.
    fn identity(&self) -> Self::Acc;
    /// Adds one item, whose number in the reduced order is `at`.
    fn step(&self, acc: Self::Acc, item: Self::Item, at: usize) -> Self::Acc;
    /// Joins two partial results, the left one of earlier items.
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc;
    /// A partial result of rows that were folded several at a time, side by side: this one of those at `part` of `parts`.
    #[inline(always)]
    fn interleaved(&self, acc: Self::Acc, _part: usize, _parts: usize) -> Self::Acc {
        acc
    }
    /// Folds at most `BLOCK` items, the first of which is number `at`.
    #[inline(always)]
    fn fold(&self, items: &[Self::Item], at: usize) -> Self::Acc {
        fold_by_step(self, items, at)
    }
    /// Folds at most `ROWS` rows into one partial result per column, replacing what `accs` held.
    #[inline(always)]
    fn fold_rows(&self, accs: &mut [Self::Acc], rows: &[&[Self::Item]], at: usize) {
        rows_by_step(self, accs, rows, at);
    }
}

/// Folds with one accumulator per vector lane.
#[inline(always)]
pub(crate) fn fold_by_step<R: Reducer + ?Sized>(r: &R, items: &[R::Item], at: usize) -> R::Acc {
    match items.len() {
        0..16 => items.iter().enumerate().fold(r.identity(), |acc, (i, &x)| r.step(acc, x, at + i)),
        _ if size_of::<R::Acc>() > 8 || size_of::<R::Item>() > 8 => {
            fold_lanes::<R, 4>(r, items, at)
        }
        _ => fold_lanes::<R, 16>(r, items, at),
    }
}

/// Four independent groups of lanes hide the latency of an addition; each group is an array of its own, because
/// that is what stays in registers.
#[inline(always)]
fn fold_lanes<R: Reducer + ?Sized, const N: usize>(r: &R, items: &[R::Item], at: usize) -> R::Acc {
    let (mut a, mut b) = ([r.identity(); N], [r.identity(); N]);
    let (mut c, mut d) = ([r.identity(); N], [r.identity(); N]);
    let (groups, rest) = items.as_chunks::<N>();
    let (quads, singles) = groups.as_chunks::<4>();
    let mut next = at;
    for quad in quads {
        // Hidden, or LLVM takes several quads at a time, each lane gathered from them.
        let [w, x, y, z] = std::hint::black_box(quad);
        for j in 0..N {
            a[j] = r.step(a[j], w[j], next + j);
        }
        for j in 0..N {
            b[j] = r.step(b[j], x[j], next + N + j);
        }
        for j in 0..N {
            c[j] = r.step(c[j], y[j], next + 2 * N + j);
        }
        for j in 0..N {
            d[j] = r.step(d[j], z[j], next + 3 * N + j);
        }
        next += 4 * N;
    }
    // By way of memory: left to itself, LLVM sees the single items and the pairs below and keeps parts, not whole registers,
    // in the loop.
    let [mut a, b, c, d] = std::hint::black_box([a, b, c, d]);
    for group in singles {
        for j in 0..N {
            a[j] = r.step(a[j], group[j], next + j);
        }
        next += N;
    }
    fold_rest(r, &mut a, items, rest.len(), at);
    for j in 0..N {
        a[j] = r.combine(r.combine(a[j], b[j]), r.combine(c[j], d[j]));
    }
    join_lanes(r, a)
}

/// Folds the last items, fewer than lanes: the last group once more, of which the lanes that are done already are left
/// alone. (A loop over single lanes would take registers apart.)
#[inline(always)]
pub(super) fn fold_rest<R: Reducer + ?Sized, const N: usize>(
    r: &R,
    lanes: &mut [R::Acc; N],
    items: &[R::Item],
    rest: usize,
    at: usize,
) {
    // (Hidden, or LLVM does this also where there is no rest.)
    if std::hint::black_box(rest == 0) {
        return;
    }
    let Some(group) = items.last_chunk::<N>() else { return };
    let first = at + items.len() - N;
    // Hidden as well: what is known of single lanes would take them apart.
    let (order, done) = std::hint::black_box((const { order::<N>() }, (N - rest) as u32));
    for j in 0..N {
        let next = r.step(lanes[j], group[j], first + j);
        lanes[j] = if order[j] < done { lanes[j] } else { next };
    }
}

/// The array 0, 1, 2 ...
const fn order<const N: usize>() -> [u32; N] {
    let mut order = [0; N];
    let mut j = 0;
    while j < N {
        order[j] = j as u32;
        j += 1;
    }
    order
}

/// Combines lanes in halves.
#[inline(always)]
fn join_lanes<R: Reducer + ?Sized, const N: usize>(r: &R, mut lanes: [R::Acc; N]) -> R::Acc {
    let mut width = N / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = r.combine(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Folds rows eight at a time, so that partial results are read and written once for eight.
#[inline(always)]
pub(crate) fn rows_by_step<R: Reducer + ?Sized>(
    r: &R,
    accs: &mut [R::Acc],
    rows: &[&[R::Item]],
    at: usize,
) {
    accs.fill(r.identity());
    let n = accs.len();
    let (groups, rest) = rows.as_chunks::<8>();
    for (g, group) in groups.iter().enumerate() {
        let [a, b, c, d, e, f, h, i] = group.map(|row| &row[..n]);
        let at = at + g * 8;
        for (j, acc) in accs.iter_mut().enumerate() {
            let mut value = r.step(*acc, a[j], at);
            value = r.step(value, b[j], at + 1);
            value = r.step(value, c[j], at + 2);
            value = r.step(value, d[j], at + 3);
            value = r.step(value, e[j], at + 4);
            value = r.step(value, f[j], at + 5);
            value = r.step(value, h[j], at + 6);
            *acc = r.step(value, i[j], at + 7);
        }
    }
    for (i, row) in rest.iter().enumerate() {
        let at = at + groups.len() * 8 + i;
        for (acc, &item) in accs.iter_mut().zip(*row) {
            *acc = r.step(*acc, item, at);
        }
    }
}

crate::multiversion! {
pub(super) fn fold_wide<R: Reducer>(r: &R, items: &[R::Item], at: usize) -> R::Acc {
    r.fold(items, at)
}
}

crate::multiversion! {
/// Combines each partial result with one of later items.
pub(super) fn combine_each<R: Reducer>(r: &R, left: &mut [R::Acc], right: &[R::Acc]) {
    for (left, &right) in left.iter_mut().zip(right) {
        *left = r.combine(*left, right);
    }
}
}

crate::multiversion! {
pub(super) fn fold_rows_wide<R: Reducer>(r: &R, accs: &mut [R::Acc], rows: &[&[R::Item]], at: usize) {
    r.fold_rows(accs, rows, at);
}
}

/// Combines partial results pairwise, like a binary counter: only one per level is kept.
pub(super) struct Cascade<A> {
    levels: SmallVec<[A; 16]>,
    count: usize,
}

impl<A: Copy> Cascade<A> {
    pub(super) fn new() -> Self {
        Cascade { levels: SmallVec::new(), count: 0 }
    }
    pub(super) fn push<R: Reducer<Acc = A>>(&mut self, r: &R, mut acc: A) {
        self.count += 1;
        for _ in 0..self.count.trailing_zeros() {
            if let Some(left) = self.levels.pop() {
                acc = r.combine(left, acc);
            }
        }
        self.levels.push(acc);
    }
    pub(super) fn finish<R: Reducer<Acc = A>>(mut self, r: &R) -> A {
        let Some(mut acc) = self.levels.pop() else { return r.identity() };
        while let Some(left) = self.levels.pop() {
            acc = r.combine(left, acc);
        }
        acc
    }
}

#[derive(Clone, Copy)]
pub(super) struct ReductionDim {
    pub(super) size: usize,
    pub(super) stride: isize,
    pub(super) out: [isize; 2],
}

type ReductionDims = SmallVec<[ReductionDim; 5]>;

/// Shape of a reduction: kept and reduced dimensions, outermost first, merged where possible.
pub(crate) struct ReductionPlan {
    pub(super) kept: ReductionDims,
    pub(super) reduced: ReductionDims,
    pub(super) kept_count: usize,
    pub(super) reduced_count: usize,
}

/// Refuses dimensions out of range or named twice, and an output that is not the input's shape with
/// size 1 at `dims`.
pub(crate) fn check(out: &StridedMut<'_>, input: &StridedRef<'_>, dims: &[usize]) -> Result<()> {
    let shape = input.shape();
    for (i, &dim) in dims.iter().enumerate() {
        if shape.is_empty() && dim == 0 {
            continue;
        }
        crate::line::check_dim(dim, shape.len())?;
        if dims[..i].contains(&dim) {
            return Err(Error::runtime(format!(
                "dim {dim} appears multiple times in the list of dims"
            )));
        }
    }
    let same = out.ndim() == shape.len()
        && out
            .shape()
            .iter()
            .zip(shape)
            .enumerate()
            .all(|(dim, (&o, &s))| if dims.contains(&dim) { o == 1 } else { o == s });
    if same {
        return Ok(());
    }
    let expected: Vec<i64> =
        shape.iter().enumerate().map(|(dim, &s)| if dims.contains(&dim) { 1 } else { s }).collect();
    check_shape("reduction output", out.shape(), &expected)
}

impl ReductionPlan {
    fn empty() -> ReductionPlan {
        ReductionPlan {
            kept: ReductionDims::new(),
            reduced: ReductionDims::new(),
            kept_count: 1,
            reduced_count: 1,
        }
    }

    /// Fills an empty plan for the reduction. (In place, because a plan is large to move.)
    fn fill(
        &mut self,
        input: &StridedRef<'_>,
        outs: [&StridedMut<'_>; 2],
        dims: &[usize],
        is_ordered: bool,
    ) {
        let plan = self;
        let item = input.dtype().size() as isize;
        for (dim, (&size, &stride)) in input.shape().iter().zip(input.strides()).enumerate() {
            let out = outs.map(|o| o.strides()[dim] as isize * o.dtype().size() as isize);
            let new = ReductionDim { size: size as usize, stride: stride as isize * item, out };
            let is_reduced = dims.contains(&dim);
            let count = if is_reduced { &mut plan.reduced_count } else { &mut plan.kept_count };
            *count *= new.size;
            if new.size != 1 {
                if is_reduced { &mut plan.reduced } else { &mut plan.kept }.push(new);
            }
        }
        sort(&mut plan.kept);
        merge(&mut plan.kept, true);
        if !is_ordered {
            sort(&mut plan.reduced);
        }
        merge(&mut plan.reduced, false);
    }
}

/// Puts the largest strides outermost.
fn sort(dims: &mut ReductionDims) {
    for end in 1..dims.len() {
        let mut i = end;
        while i > 0 && dims[i - 1].stride.unsigned_abs() < dims[i].stride.unsigned_abs() {
            dims.swap(i - 1, i);
            i -= 1;
        }
    }
}

fn merge(dims: &mut ReductionDims, with_out: bool) {
    let mut last = 0;
    for i in 1..dims.len() {
        let (outer, inner) = (dims[last], dims[i]);
        let joins = |a: isize, b: isize| a == b * inner.size as isize;
        let can_merge = joins(outer.stride, inner.stride)
            && (!with_out || (0..2).all(|o| joins(outer.out[o], inner.out[o])));
        if can_merge {
            dims[last] = ReductionDim { size: outer.size * inner.size, ..inner };
        } else {
            last += 1;
            dims[last] = inner;
        }
    }
    dims.truncate(last + 1);
}

/// Byte offset in the input of position `at` of some dimensions.
#[inline]
pub(super) fn offset(dims: &[ReductionDim], mut at: usize) -> isize {
    // Positions are inside of the dimensions: the outermost needs no division.
    let Some((outermost, inner)) = dims.split_first() else { return 0 };
    let mut sum = 0;
    for dim in inner.iter().rev() {
        sum += (at % dim.size) as isize * dim.stride;
        at /= dim.size;
    }
    sum + at as isize * outermost.stride
}

/// Byte offsets in input and outputs of position `at` of the kept dimensions.
#[inline]
pub(super) fn offsets(dims: &[ReductionDim], mut at: usize) -> (isize, [isize; 2]) {
    let Some((outermost, inner)) = dims.split_first() else { return (0, [0; 2]) };
    let (mut sum, mut outs) = (0, [0; 2]);
    let mut add = |dim: &ReductionDim, index: isize| {
        sum += index * dim.stride;
        outs[0] += index * dim.out[0];
        outs[1] += index * dim.out[1];
    };
    for dim in inner.iter().rev() {
        add(dim, (at % dim.size) as isize);
        at /= dim.size;
    }
    add(outermost, at as isize);
    (sum, outs)
}

/// An input as the engine reads it.
pub(super) struct ReductionInput<'a, I> {
    pub(super) ptr: *const u8,
    /// Bytes of an element if elements are items, so that memory can be used in place.
    pub(super) item: Option<isize>,
    /// Bytes of an element.
    pub(super) element: isize,
    pub(super) load: Load<I>,
    pub(super) reduced: &'a [ReductionDim],
    pub(super) count: usize,
}

// SAFETY: it only reads memory that the input view keeps alive and shared.
unsafe impl<I> Sync for ReductionInput<'_, I> {}

/// Byte offsets in the two outputs of neighbouring results: those of the first, and the steps from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct OutputOffsets {
    /// The byte offset of the first result in each output.
    pub(super) at: [isize; 2],
    /// The byte strides from a result to the next.
    pub(super) step: [isize; 2],
}

impl OutputOffsets {
    /// The offset of the first result in one of the outputs, and the step to the next.
    #[inline(always)]
    pub(crate) fn of(&self, out: usize) -> (isize, isize) {
        (self.at[out], self.step[out])
    }
    /// The offsets of the result that is this many results further on.
    #[inline(always)]
    pub(super) fn after(self, results: usize) -> OutputOffsets {
        let by = results as isize;
        let at = [self.at[0] + by * self.step[0], self.at[1] + by * self.step[1]];
        OutputOffsets { at, ..self }
    }
}

/// Stores results at their offsets in the outputs. (Not a type parameter: every reducer is compiled once, whatever is made of its results.)
pub(super) type StoreResults<'a, R> = dyn Fn(OutputOffsets, &[<R as Reducer>::Acc]) + Sync + 'a;

/// Runs a reduction; `finish` stores results.
///
/// `is_direct` says that elements of the input are the reducer's items.
pub(crate) fn run<R: Reducer>(
    r: &R,
    (input, load, is_direct): (&StridedRef<'_>, Load<R::Item>, bool),
    outs: [&StridedMut<'_>; 2],
    dims: &[usize],
    finish: &StoreResults<'_, R>,
) -> Result<()> {
    let size = input.dtype().size() as isize;
    if is_direct && outs[0].numel() == 1 && input.is_contiguous() {
        let dim = ReductionDim { size: input.numel(), stride: size, out: [0; 2] };
        let source = ReductionInput {
            ptr: input.ptr(),
            item: Some(size),
            element: size,
            load,
            reduced: &[dim],
            count: dim.size,
        };
        let outputs = OutputOffsets { at: [0; 2], step: [0; 2] };
        finish(outputs, &[lines::line::<R>(r, &source, input.ptr())?]);
        return Ok(());
    }
    let mut plan = ReductionPlan::empty();
    plan.fill(input, outs, dims, R::IS_ORDERED);
    if plan.kept_count == 0 {
        return Ok(());
    }
    let source = ReductionInput::<R::Item> {
        ptr: input.ptr(),
        item: is_direct.then_some(size),
        element: size,
        load,
        reduced: &plan.reduced,
        count: plan.reduced_count,
    };
    let innermost = plan.reduced.last().map_or(isize::MAX, |d| d.stride.abs());
    let run = plan.reduced.last().map_or(1, |d| d.size);
    match plan.kept.last() {
        Some(kept) if kept.stride == size && innermost > size && (kept.size >= 4 || run >= 64) => {
            columns::contiguous(r, &source, &plan, finish)
        }
        Some(kept)
            if kept.size >= columns::MIN_LINES && run <= columns::max_line_length::<R>(&source) =>
        {
            columns::transposed(r, &source, &plan, finish)
        }
        _ => lines::each(r, &source, &plan, finish),
    }
}

/// Whether elements of `dtype` are items of type `T` as they lie in memory.
pub(crate) fn is_direct<T: Element>(dtype: DType) -> bool {
    dtype == T::DTYPE
}
