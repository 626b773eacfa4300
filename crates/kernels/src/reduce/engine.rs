//! Walks a strided input and folds it into results: the part of a reduction that does not depend on
//! what is computed.
//!
//! Invariant: the tree in which items are combined depends only on shape and strides, never on the
//! number of threads. Along a line, blocks of `BLOCK` items are folded and combined pairwise (a binary
//! counter); results that lie side by side are the business of `columns`.

use super::columns;
use super::load::Load;
use crate::line::{GRAIN, check_shape};
use crate::{DType, Element, Error, Result, StridedMut, StridedRef, parallel};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Items folded at once along a line.
pub(crate) const BLOCK: usize = 4096;
/// Blocks of a line that one thread takes at once.
const CHUNK_BLOCKS: usize = 32;
/// Rows folded at once when whole rows are reduced.
pub(crate) const ROWS: usize = 32;

/// What a reduction computes.
pub(crate) trait Reducer: Sync {
    /// What it consumes.
    type Item: Copy + Default + Send + Sync;
    /// A partial result.
    type Acc: Copy + Send + Sync;
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
    let (groups, rest) = items.as_chunks::<N>();
    if groups.len() < 4 {
        // The same without the groups that stay as they are.
        for (g, group) in groups.iter().enumerate() {
            for j in 0..N {
                a[j] = r.step(a[j], group[j], at + g * N + j);
            }
        }
        for (j, (acc, &item)) in a.iter_mut().zip(rest).enumerate() {
            *acc = r.step(*acc, item, at + groups.len() * N + j);
        }
        return join_lanes(r, a);
    }
    let (mut c, mut d) = (a, a);
    let (quads, singles) = groups.as_chunks::<4>();
    let mut next = at;
    for [w, x, y, z] in quads {
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
    for (j, &item) in rest.iter().enumerate() {
        a[j] = r.step(a[j], item, next + j);
    }
    for j in 0..N {
        a[j] = r.combine(r.combine(a[j], b[j]), r.combine(c[j], d[j]));
    }
    join_lanes(r, a)
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
fn fold_wide<R: Reducer>(r: &R, items: &[R::Item], at: usize) -> R::Acc {
    r.fold(items, at)
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
pub(super) struct Dim {
    pub(super) size: usize,
    pub(super) stride: isize,
    pub(super) out: [isize; 2],
}

type Dims = SmallVec<[Dim; 5]>;

/// Shape of a reduction: kept and reduced dimensions, outermost first, merged where possible.
pub(crate) struct Plan {
    pub(super) kept: Dims,
    pub(super) reduced: Dims,
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

impl Plan {
    fn new(
        input: &StridedRef<'_>,
        outs: [&StridedMut<'_>; 2],
        dims: &[usize],
        is_ordered: bool,
    ) -> Plan {
        let mut plan =
            Plan { kept: Dims::new(), reduced: Dims::new(), kept_count: 1, reduced_count: 1 };
        let item = input.dtype().size() as isize;
        for (dim, (&size, &stride)) in input.shape().iter().zip(input.strides()).enumerate() {
            let out = outs.map(|o| o.strides()[dim] as isize * o.dtype().size() as isize);
            let new = Dim { size: size as usize, stride: stride as isize * item, out };
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
        plan
    }
}

/// Puts the largest strides outermost.
fn sort(dims: &mut Dims) {
    for end in 1..dims.len() {
        let mut i = end;
        while i > 0 && dims[i - 1].stride.unsigned_abs() < dims[i].stride.unsigned_abs() {
            dims.swap(i - 1, i);
            i -= 1;
        }
    }
}

fn merge(dims: &mut Dims, with_out: bool) {
    let mut last = 0;
    for i in 1..dims.len() {
        let (outer, inner) = (dims[last], dims[i]);
        let joins = |a: isize, b: isize| a == b * inner.size as isize;
        let can_merge = joins(outer.stride, inner.stride)
            && (!with_out || (0..2).all(|o| joins(outer.out[o], inner.out[o])));
        if can_merge {
            dims[last] = Dim { size: outer.size * inner.size, ..inner };
        } else {
            last += 1;
            dims[last] = inner;
        }
    }
    dims.truncate(last + 1);
}

/// Byte offset in the input of position `at` of some dimensions.
#[inline]
pub(super) fn offset(dims: &[Dim], mut at: usize) -> isize {
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
pub(super) fn offsets(dims: &[Dim], mut at: usize) -> (isize, [isize; 2]) {
    let Some((outermost, inner)) = dims.split_first() else { return (0, [0; 2]) };
    let (mut sum, mut outs) = (0, [0; 2]);
    let mut add = |dim: &Dim, index: isize| {
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
pub(super) struct Source<'a, R: Reducer> {
    pub(super) ptr: *const u8,
    /// Bytes of an element if elements are items, so that memory can be used in place.
    pub(super) item: Option<isize>,
    /// Bytes of an element.
    pub(super) element: isize,
    pub(super) load: Load<R::Item>,
    pub(super) reduced: &'a [Dim],
    pub(super) count: usize,
}

// SAFETY: it only reads memory that the input view keeps alive and shared.
unsafe impl<R: Reducer> Sync for Source<'_, R> {}

/// Runs a reduction; `finish` gets, for each result, its byte offsets in the two outputs.
///
/// `is_direct` says that elements of the input are the reducer's items.
pub(crate) fn run<R: Reducer>(
    r: &R,
    (input, load, is_direct): (&StridedRef<'_>, Load<R::Item>, bool),
    outs: [&StridedMut<'_>; 2],
    dims: &[usize],
    finish: impl Fn([isize; 2], R::Acc) + Sync,
) {
    let size = input.dtype().size() as isize;
    if is_direct && outs[0].numel() == 1 && input.is_contiguous() {
        let dim = Dim { size: input.numel(), stride: size, out: [0; 2] };
        let source = Source {
            ptr: input.ptr(),
            item: Some(size),
            element: size,
            load,
            reduced: &[dim],
            count: dim.size,
        };
        return finish([0; 2], line::<R>(r, &source, input.ptr()));
    }
    let plan = Plan::new(input, outs, dims, R::IS_ORDERED);
    if plan.kept_count == 0 {
        return;
    }
    let source = Source::<R> {
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
            columns::memory(r, &source, &plan, finish);
        }
        Some(kept) if kept.size >= columns::FEW && run <= columns::SHORT => {
            columns::turned(r, &source, &plan, finish);
        }
        _ => rows(r, &source, &plan, finish),
    }
}

/// One result per position of the kept dimensions, each folded from its own line.
fn rows<R: Reducer>(
    r: &R,
    source: &Source<'_, R>,
    plan: &Plan,
    finish: impl Fn([isize; 2], R::Acc) + Sync,
) {
    let grain = GRAIN / plan.reduced_count.max(1);
    let work = |range: std::ops::Range<usize>| {
        for at in range {
            let (start, outs) = offsets(&plan.kept, at);
            finish(outs, line(r, source, source.ptr.wrapping_offset(start)));
        }
    };
    if plan.kept_count <= grain || plan.reduced_count > BLOCK * CHUNK_BLOCKS {
        return work(0..plan.kept_count);
    }
    parallel::for_range(plan.kept_count, grain.max(1), &work);
}

/// Folds one line: everything that the reduced dimensions reach from `ptr`.
fn line<R: Reducer>(r: &R, source: &Source<'_, R>, ptr: *const u8) -> R::Acc {
    if source.count <= BLOCK {
        return block(r, source, ptr, 0, source.count);
    }
    let blocks = source.count.div_ceil(BLOCK);
    if blocks <= CHUNK_BLOCKS {
        return chunk(r, source, ptr, 0..blocks);
    }
    let chunks = blocks.div_ceil(CHUNK_BLOCKS);
    let mut partial = vec![r.identity(); chunks];
    let slots = AtomicPtr::new(partial.as_mut_ptr());
    let address = AtomicPtr::new(ptr.cast_mut());
    parallel::for_range(chunks, 1, &|range| {
        for c in range {
            let first = c * CHUNK_BLOCKS;
            let ptr = address.load(Ordering::Relaxed).cast_const();
            let acc = chunk(r, source, ptr, first..(first + CHUNK_BLOCKS).min(blocks));
            // SAFETY: each chunk has a slot of its own in `partial`, which outlives the loop.
            unsafe { slots.load(Ordering::Relaxed).add(c).write(acc) };
        }
    });
    let mut cascade = Cascade::new();
    for acc in partial {
        cascade.push(r, acc);
    }
    cascade.finish(r)
}

fn chunk<R: Reducer>(
    r: &R,
    source: &Source<'_, R>,
    ptr: *const u8,
    blocks: std::ops::Range<usize>,
) -> R::Acc {
    let mut cascade = Cascade::new();
    for b in blocks {
        let at = b * BLOCK;
        cascade.push(r, block(r, source, ptr, at, BLOCK.min(source.count - at)));
    }
    cascade.finish(r)
}

/// Folds items `at..at + n` of a line, in place if they lie without gaps, else through a buffer.
#[inline]
fn block<R: Reducer>(r: &R, source: &Source<'_, R>, ptr: *const u8, at: usize, n: usize) -> R::Acc {
    if n == 0 {
        return r.identity();
    }
    let (inner, stride) = source.reduced.last().map_or((1, 0), |d| (d.size, d.stride));
    let stride = if inner == 1 { source.item.unwrap_or(0) } else { stride };
    if source.item == Some(stride) && at % inner + n <= inner {
        let start = ptr.wrapping_offset(offset(source.reduced, at)).cast::<R::Item>();
        // SAFETY: the items are consecutive elements of the input view, of the reducer's item type.
        return fold_wide(r, unsafe { std::slice::from_raw_parts(start, n) }, at);
    }
    if n <= 64 {
        return gathered::<R, 64>(r, source, ptr, at, n);
    }
    gathered::<R, BLOCK>(r, source, ptr, at, n)
}

#[inline(never)]
fn gathered<R: Reducer, const N: usize>(
    r: &R,
    source: &Source<'_, R>,
    ptr: *const u8,
    at: usize,
    n: usize,
) -> R::Acc {
    let mut buffer = [R::Item::default(); N];
    let (inner, stride) = source.reduced.last().map_or((1, 0), |d| (d.size, d.stride));
    let mut filled = 0;
    while filled < n {
        let position = at + filled;
        let length = (inner - position % inner).min(n - filled);
        let start = ptr.wrapping_offset(offset(source.reduced, position));
        // SAFETY: the run lies inside the input view.
        unsafe { (source.load)(start, stride, &mut buffer[filled..filled + length]) };
        filled += length;
    }
    fold_wide(r, &buffer[..n], at)
}

/// Whether elements of `dtype` are items of type `T` as they lie in memory.
pub(crate) fn is_direct<T: Element>(dtype: DType) -> bool {
    dtype == T::DTYPE
}
