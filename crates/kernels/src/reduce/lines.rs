//! One result after the other, each folded from the line of items that it reduces.
//!
//! Lines up to a few hundred items are folded sixteen at a time; long ones in blocks of `BLOCK` items that are combined
//! pairwise, on several threads where there are many.

use super::engine::{
    BLOCK, Cascade, OutputOffsets, Reducer, ReductionDim, ReductionInput, ReductionPlan,
    StoreResults, fold_rest, fold_wide, offset, offsets,
};
use crate::Result;
use crate::line::GRAIN;
use crate::memory;
use crate::parallel;
use crate::simd::transpose::{SMALL, SQUARE, small_square, square};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Blocks of a line that one thread takes at once.
const CHUNK_BLOCKS: usize = 32;

/// One result per position of the kept dimensions, each folded from its own line.
pub(super) fn each<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    plan: &ReductionPlan,
    finish: &StoreResults<'_, R>,
) -> Result<()> {
    let (inner, outer) = match plan.kept.split_last() {
        Some((inner, outer)) => (*inner, outer),
        None => (ReductionDim { size: 1, stride: 0, out: [0; 2] }, &[][..]),
    };
    // Lines that are one run of items are folded many at a time, converted first if needs be.
    let run = match plan.reduced[..] {
        [run] if run.size <= BLOCK && run.size > 0 => Some(run),
        // Lines of several runs are folded in the same way, if these fill lanes.
        [.., run] if has_lanes::<R>(source) => Some(run),
        _ => None,
    };
    let is_direct = run.is_some_and(|run| source.item == Some(run.stride));
    let run = run.filter(|run| is_direct || run.size <= GATHERED);
    let outer_runs = plan.reduced.split_last().map_or(&[][..], |(_, outer)| outer);
    let tile = (GRAIN / source.count.max(1)).clamp(1, LINES);
    let tiles = inner.size.div_ceil(tile);
    let units = tiles * (plan.kept_count / inner.size);
    let grain = GRAIN / (source.count.max(1) * tile.min(inner.size));
    let work = |range: Range<usize>| {
        let mut buffer = Vec::new();
        for unit in range {
            let (start, at) = offsets(outer, unit / tiles);
            let first = unit % tiles * tile;
            let lines = tile.min(inner.size - first);
            let outputs = OutputOffsets { at, step: inner.out }.after(first);
            let start = source.ptr.wrapping_offset(start + first as isize * inner.stride);
            let mut accs: SmallVec<[R::Acc; LINES]> = SmallVec::from_elem(r.identity(), lines);
            let step = inner.stride;
            match run {
                Some(run) if is_direct => {
                    // SAFETY: each line lies inside the input view without gaps, and elements are items.
                    unsafe {
                        let runs = source.count / run.size;
                        let lines =
                            LineBatch { start, step, length: run.size, outer: outer_runs, runs };
                        fold_lines(r, &lines, &mut accs);
                    };
                }
                Some(run) => {
                    // bounded: by LINES lines of GATHERED items.
                    buffer.resize(lines * run.size, R::Item::default());
                    // SAFETY: each line lies inside the input view, whose elements have the loader's dtype.
                    unsafe { fold_converted(r, source, (start, step), run, &mut buffer, &mut accs) }
                }
                None => {
                    for (l, acc) in accs.iter_mut().enumerate() {
                        *acc = line(r, source, start.wrapping_offset(l as isize * step))?;
                    }
                }
            }
            finish(outputs, &accs);
        }
        Ok(())
    };
    if units <= grain || plan.reduced_count > BLOCK * CHUNK_BLOCKS {
        // (Long lines take memory of their own, each.)
        let lines = parallel::RestartableBlocks::default();
        if plan.reduced_count > BLOCK * CHUNK_BLOCKS {
            return (0..units).try_for_each(|unit| lines.run(|| work(unit..unit + 1)));
        }
        return work(0..units);
    }
    parallel::try_for_restartable_range(units, grain.max(1), &work)
}

/// Converts lines of one run each, `step` bytes apart from `start` on, into `buffer`, and folds them.
///
/// # Safety
/// The lines, as many as `buffer` has room for, lie inside the input view, whose elements have the loader's dtype.
unsafe fn fold_converted<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    (start, step): (*const u8, isize),
    run: ReductionDim,
    buffer: &mut [R::Item],
    accs: &mut [R::Acc],
) {
    // Lines that follow one another are converted as one.
    let has_gaps = step != run.size as isize * run.stride;
    let converted = if has_gaps { run.size } else { buffer.len() };
    for (l, items) in buffer.chunks_exact_mut(converted).enumerate() {
        let start = start.wrapping_offset(l as isize * step);
        // SAFETY: the caller's promise.
        unsafe { (source.load)(start, run.stride, items) };
    }
    let step = (run.size * size_of::<R::Item>()) as isize;
    let start = buffer.as_ptr().cast();
    let lines = LineBatch { start, step, length: run.size, outer: &[], runs: 1 };
    // SAFETY: lines of the buffer.
    unsafe { fold_lines(r, &lines, accs) };
}

/// Whether lines of one or more runs are folded lane by lane.
pub(super) fn has_lanes<R: Reducer>(source: &ReductionInput<'_, R::Item>) -> bool {
    let Some(run) = source.reduced.last() else { return false };
    R::IS_BY_STEP
        && source.item == Some(run.stride)
        && (LINES..=LANED).contains(&run.size)
        && source.count <= BLOCK
}

/// Longest lines that are converted many at a time.
const GATHERED: usize = 512;
/// Most lines folded together.
const LINES: usize = SQUARE;

/// Lines of `runs` runs each, one for every position of the outer dimensions: the first run of items without gaps, bytes from
/// line to line, and items in a run.
struct LineBatch<'a> {
    start: *const u8,
    step: isize,
    length: usize,
    outer: &'a [ReductionDim],
    runs: usize,
}

/// Folds each line.
///
/// # Safety
/// The lines consist of live items.
unsafe fn fold_lines<R: Reducer>(r: &R, lines: &LineBatch<'_>, accs: &mut [R::Acc]) {
    crate::multiversion! {
    fn fold_by_lanes<R: Reducer>(r: &R, lines: &LineBatch<'_>, accs: &mut [R::Acc]) {
        // Lanes for each line; those of all lines are then transposed and joined at once.
        let joined = if size_of::<R::Acc>() > 4 {
            join_wide(r, lines, accs.len())
        } else {
            join_narrow(r, lines, accs.len())
        };
        for (acc, &joined) in accs.iter_mut().zip(&joined) {
            *acc = joined;
        }
    }
    }
    if R::IS_BY_STEP && lines.length >= LINES && lines.length <= LANED {
        return fold_by_lanes(r, lines, accs);
    }
    for (l, acc) in accs.iter_mut().enumerate() {
        let start = lines.start.wrapping_offset(l as isize * lines.step);
        // SAFETY: the caller promises it.
        let line = unsafe { std::slice::from_raw_parts(start.cast::<R::Item>(), lines.length) };
        *acc = fold_wide(r, line, 0);
    }
}

/// Sixteen lanes of each line joined, by a square.
#[inline(always)]
fn join_narrow<R: Reducer>(r: &R, lines: &LineBatch<'_>, count: usize) -> [R::Acc; LINES] {
    let mut lanes = [[r.identity(); LINES]; LINES];
    for (l, lanes) in lanes.iter_mut().take(count).enumerate() {
        fold_line(r, lines, l, lanes);
    }
    let mut transposed = lanes;
    let step = (LINES * size_of::<R::Acc>()) as isize;
    // SAFETY: two squares of their own.
    unsafe {
        square::<R::Acc, false>(transposed.as_mut_ptr().cast(), step, lanes.as_ptr().cast(), step);
    }
    join_rows(r, &transposed)
}

/// Joins sixteen lanes of each line where they fill two registers: these are joined first, so that smaller squares
/// suffice.
#[inline(always)]
fn join_wide<R: Reducer>(r: &R, lines: &LineBatch<'_>, count: usize) -> [R::Acc; LINES] {
    let mut halves = [[r.identity(); SMALL]; LINES];
    for (l, half) in halves.iter_mut().take(count).enumerate() {
        let mut lanes = [r.identity(); LINES];
        fold_line(r, lines, l, &mut lanes);
        for j in 0..SMALL {
            half[j] = r.combine(lanes[j], lanes[j + SMALL]);
        }
    }
    let mut transposed = [[r.identity(); LINES]; SMALL];
    let item = size_of::<R::Acc>();
    let (to_step, from_step) = ((LINES * item) as isize, (SMALL * item) as isize);
    for first in [0, SMALL] {
        let to = transposed.as_mut_ptr().cast::<u8>().wrapping_add(first * item);
        // SAFETY: a small square of the halves, and as much of the rows.
        unsafe { small_square::<R::Acc>(to, to_step, halves[first..].as_ptr().cast(), from_step) };
    }
    join_rows(r, &transposed)
}

/// Combines rows lane by lane, in order.
#[inline(always)]
fn join_rows<R: Reducer>(r: &R, rows: &[[R::Acc; LINES]]) -> [R::Acc; LINES] {
    let mut joined = rows[0];
    for row in &rows[1..] {
        for l in 0..LINES {
            joined[l] = r.combine(joined[l], row[l]);
        }
    }
    joined
}

/// Longest lines that are folded onto one register of lanes: longer ones want several, to hide latency.
const LANED: usize = 512;

/// Folds the runs of a line. (No closure, which might be compiled without the instruction set.)
#[inline(always)]
fn fold_line<R: Reducer>(r: &R, lines: &LineBatch<'_>, l: usize, lanes: &mut [R::Acc; LINES]) {
    let start = lines.start.wrapping_offset(l as isize * lines.step);
    for run in 0..lines.runs {
        let start = start.wrapping_offset(offset(lines.outer, run));
        // SAFETY: the caller of `fold_lines` promises it.
        let items = unsafe { std::slice::from_raw_parts(start.cast::<R::Item>(), lines.length) };
        fold_into_lanes(r, lanes, items);
    }
}

/// Folds at least as many items as there are lanes.
#[inline(always)]
fn fold_into_lanes<R: Reducer>(r: &R, lanes: &mut [R::Acc; LINES], items: &[R::Item]) {
    let mut sums = *lanes;
    let (groups, rest) = items.as_chunks::<LINES>();
    for (g, group) in groups.iter().enumerate() {
        // Hidden, as in `fold_lanes`.
        let group = std::hint::black_box(group);
        for j in 0..LINES {
            sums[j] = r.step(sums[j], group[j], g * LINES + j);
        }
    }
    fold_rest(r, &mut sums, items, rest.len(), 0);
    *lanes = sums;
}

/// Folds one line: everything that the reduced dimensions reach from `ptr`.
pub(super) fn line<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    ptr: *const u8,
) -> Result<R::Acc> {
    if source.count <= BLOCK {
        return Ok(block(r, source, ptr, 0, source.count));
    }
    let blocks = source.count.div_ceil(BLOCK);
    if blocks <= CHUNK_BLOCKS {
        return Ok(chunk(r, source, ptr, 0..blocks));
    }
    let chunks = blocks.div_ceil(CHUNK_BLOCKS);
    let mut partial = memory::filled(r.identity(), chunks)?;
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
    Ok(cascade.finish(r))
}

fn chunk<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    ptr: *const u8,
    blocks: Range<usize>,
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
fn block<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    ptr: *const u8,
    at: usize,
    n: usize,
) -> R::Acc {
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

/// Folds items at most `N` by way of a buffer.
#[inline(never)]
fn gathered<R: Reducer, const N: usize>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    ptr: *const u8,
    at: usize,
    n: usize,
) -> R::Acc {
    let mut buffer = [R::Item::default(); N];
    gather(source, ptr, at, &mut buffer[..n]);
    fold_wide(r, &buffer[..n], at)
}

/// Reads items of a line, from number `at` on.
fn gather<I>(source: &ReductionInput<'_, I>, ptr: *const u8, at: usize, items: &mut [I]) {
    let (inner, stride) = source.reduced.last().map_or((1, 0), |d| (d.size, d.stride));
    let mut filled = 0;
    while filled < items.len() {
        let position = at + filled;
        let length = (inner - position % inner).min(items.len() - filled);
        let start = ptr.wrapping_offset(offset(source.reduced, position));
        // SAFETY: the run lies inside the input view.
        unsafe { (source.load)(start, stride, &mut items[filled..filled + length]) };
        filled += length;
    }
}
