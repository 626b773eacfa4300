//! Many results at once, one per lane: whole rows of items are folded onto a row of partial results.
//!
//! Rows are memory itself where neighbouring results read neighbouring elements, several side by side where they are
//! narrow; short lines are transposed, so that they become columns. Rows are folded in groups of `ROWS`, groups in
//! chunks, chunks pairwise: a tree that depends on shape and strides alone.

use super::engine::{
    Cascade, OutputOffsets, ROWS, Reducer, ReductionDim, ReductionInput, ReductionPlan,
    StoreResults, combine_each, fold_rows_wide, offset, offsets,
};
use super::lines::has_lanes;
use crate::Result;
use crate::line::GRAIN;
use crate::memory;
use crate::parallel;
use crate::simd::transpose::{SQUARE, square};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Columns worked on together.
const TILE: usize = 512;
/// Rows that one thread takes at once.
const CHUNK_ROWS: usize = 32 * ROWS;
/// Longest run of items that is transposed: longer lines are folded one by one as fast.
pub(super) fn max_line_length<R: Reducer>(source: &ReductionInput<'_, R::Item>) -> usize {
    let has_lanes = R::IS_BY_STEP && source.reduced.len() == 1 || has_lanes::<R>(source);
    // (A register's worth of wide items is transposed as quickly.)
    let lanes = if size_of::<R::Item>() > 4 { SQUARE } else { SQUARE - 1 };
    if has_lanes { lanes } else { 128 }
}

/// Fewest lines worth transposing.
pub(super) const MIN_LINES: usize = 8;
/// Most transposed items of a row of lanes, so that they stay in the nearest cache.
const MAX_TRANSPOSED: usize = 2048;

/// How the items of neighbouring results come to lie side by side.
#[derive(Clone, Copy)]
struct LaneLayout {
    /// Bytes from one result's items to the next one's.
    step: isize,
    /// Results that are worked on together.
    tile: usize,
    /// Whether lines are transposed; if not, they lie as columns in memory.
    is_transposed: bool,
    /// How many lines make sixteen items, if whole lines of 2, 4 or 8 items follow one another; else one.
    dense: usize,
}

/// Where the results of a tile are read from.
#[derive(Clone, Copy)]
struct ResultTile {
    /// The first result's first item.
    ptr: *const u8,
    /// Results from the first to the last of the dimension, of which the tile may be a part.
    left: usize,
}

/// The function that takes a tile's results: where the tile is read from, the offsets of its
/// outputs, the number of its first result, and the results.
type EmitTile<'a, R> =
    dyn Fn(ResultTile, [isize; 2], usize, &mut [<R as Reducer>::Acc]) + Sync + 'a;

/// Buffers for rows that do not lie in memory as they are needed, and for lines of converted items
/// before they are transposed.
type ColumnBuffers<I> = [Vec<I>; 2];

/// Room for `n` items.
fn resized<I: Copy + Default>(buffer: &mut Vec<I>, n: usize) -> &mut [I] {
    if buffer.len() < n {
        // bounded: by the rows and the width of a tile.
        buffer.resize(n, I::default());
    }
    &mut buffer[..n]
}

/// One result per column of memory: the innermost kept dimension has stride one and whole rows are folded.
pub(super) fn contiguous<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    plan: &ReductionPlan,
    finish: &StoreResults<'_, R>,
) -> Result<()> {
    let Some((inner, outer)) = plan.kept.split_last() else { return Ok(()) };
    let lanes = LaneLayout { step: inner.stride, tile: TILE, is_transposed: false, dense: 1 };
    let emit = |at: [isize; 2], first: usize, accs: &[R::Acc]| {
        finish(OutputOffsets { at, step: inner.out }.after(first), accs);
    };
    let (width, rows) = (inner.size, source.count);
    let parts = match plan.reduced[..] {
        [dim] if dim.stride == width as isize * inner.stride => side_by_side::<R>(rows, width),
        _ => 1,
    };
    if parts == 1 {
        let emit = |_: ResultTile, outs: [isize; 2], first: usize, accs: &mut [R::Acc]| {
            emit(outs, first, accs);
        };
        return tiles(r, source, (inner, outer, plan.kept_count), lanes, &emit);
    }
    // Rows without gaps: `parts` of them are one wide row; what is left over is folded as it is.
    let wide_rows = [ReductionDim {
        size: rows / parts,
        stride: plan.reduced[0].stride * parts as isize,
        out: [0; 2],
    }];
    let wide = ReductionInput { reduced: &wide_rows, count: rows / parts, ..*source };
    let wide_inner = ReductionDim { size: width * parts, ..*inner };
    let emit = |tile: ResultTile, outs: [isize; 2], _: usize, accs: &mut [R::Acc]| {
        for (part, accs) in accs.chunks_exact_mut(width).enumerate() {
            for acc in accs {
                *acc = r.interleaved(*acc, part, parts);
            }
        }
        let mut left = parts;
        while left > 1 {
            left /= 2;
            let (low, high) = accs.split_at_mut(left * width);
            combine_each(r, low, high);
        }
        if !rows.is_multiple_of(parts) {
            let (low, high) = accs.split_at_mut(width);
            let mut buffers = ColumnBuffers::<R::Item>::default();
            row_chunk(
                r,
                source,
                (tile, lanes),
                rows / parts * parts..rows,
                &mut high[..width],
                &mut buffers,
            );
            combine_each(r, low, &high[..width]);
        }
        emit(outs, 0, &accs[..width]);
    };
    tiles(r, &wide, (&wide_inner, outer, plan.kept_count * parts), lanes, &emit)
}

/// How many narrow rows are folded as one: enough to fill registers, while some rows are left.
fn side_by_side<R: Reducer>(rows: usize, width: usize) -> usize {
    let mut parts = 1;
    // (OutputOffsets are costly to join: they are worth it where a register would not be full.)
    let is_wide = R::IS_ORDERED && width >= SQUARE;
    while !is_wide && parts * 2 * width <= TILE / 2 && parts * 16 <= rows {
        parts *= 2;
    }
    parts
}

/// One result per short line: lines are transposed, sixteen at a time.
pub(super) fn transposed<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    plan: &ReductionPlan,
    finish: &StoreResults<'_, R>,
) -> Result<()> {
    let Some((inner, outer)) = plan.kept.split_last() else { return Ok(()) };
    let run = run(source);
    let is_dense = plan.reduced.len() == 1 && inner.stride == run.size as isize * run.stride;
    let (dense, tile) = match run.size {
        2 | 4 | 8 if is_dense => (SQUARE / run.size, MAX_TRANSPOSED / run.size),
        size => (1, MAX_TRANSPOSED / size.max(1).next_multiple_of(SQUARE).min(ROWS)),
    };
    let lanes = LaneLayout { step: inner.stride, tile: tile.min(TILE), is_transposed: true, dense };
    let emit = |_: ResultTile, at: [isize; 2], first: usize, accs: &mut [R::Acc]| {
        let outputs = OutputOffsets { at, step: inner.out }.after(first);
        let (groups, _) = accs.as_chunks::<SQUARE>();
        let dealt = if dense > 1 { accs.len() / (SQUARE * dense) * dense } else { 0 };
        for (g, group) in groups[..dealt].iter().enumerate() {
            // Dense lines: lane `v` of part `p` is line `v * dense + p`.
            let outputs = outputs.after(g / dense * dense * SQUARE + g % dense);
            let step = outputs.step.map(|step| step * dense as isize);
            finish(OutputOffsets { step, ..outputs }, group);
        }
        finish(outputs.after(dealt * SQUARE), &accs[dealt * SQUARE..]);
    };
    tiles(r, source, (inner, outer, plan.kept_count), lanes, &emit)
}

/// The innermost reduced dimension.
fn run<I>(source: &ReductionInput<'_, I>) -> ReductionDim {
    source.reduced.last().copied().unwrap_or(ReductionDim {
        size: 1,
        stride: source.element,
        out: [0; 2],
    })
}

/// Folds tile after tile, on several threads where there is enough to do.
fn tiles<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    (inner, outer, kept_count): (&ReductionDim, &[ReductionDim], usize),
    lanes: LaneLayout,
    emit: &EmitTile<'_, R>,
) -> Result<()> {
    let tiles = inner.size.div_ceil(lanes.tile);
    let units = tiles * (kept_count / inner.size);
    let chunks = source.count.div_ceil(CHUNK_ROWS).max(1);
    let locate = |unit: usize| {
        let (start, outs) = offsets(outer, unit / tiles);
        let first = unit % tiles * lanes.tile;
        let ptr = source.ptr.wrapping_offset(start + first as isize * inner.stride);
        let tile = ResultTile { ptr, left: inner.size - first };
        (tile, outs, first, lanes.tile.min(tile.left))
    };
    let most = lanes.tile.min(inner.size);
    if chunks == 1 {
        let grain = (GRAIN / (source.count.max(1) * most)).max(1);
        let work = |range: Range<usize>| {
            let mut accs: SmallVec<[R::Acc; 64]> = SmallVec::from_elem(r.identity(), most);
            let mut buffers = ColumnBuffers::<R::Item>::default();
            for unit in range {
                let (tile, outs, first, width) = locate(unit);
                let accs = &mut accs[..width];
                row_chunk(r, source, (tile, lanes), 0..source.count, accs, &mut buffers);
                emit(tile, outs, first, accs);
            }
        };
        if units <= grain {
            work(0..units);
        } else {
            parallel::for_range(units, grain, &work);
        }
        return Ok(());
    }
    let mut partial = memory::filled(r.identity(), units * chunks * most)?;
    let slots = AtomicPtr::new(partial.as_mut_ptr());
    parallel::for_range(units * chunks, 1, &|range| {
        let mut buffers = ColumnBuffers::<R::Item>::default();
        for index in range {
            let (tile, _, _, width) = locate(index / chunks);
            let row = index % chunks * CHUNK_ROWS;
            let rows = row..(row + CHUNK_ROWS).min(source.count);
            // SAFETY: each (unit, chunk) has a slot of its own in `partial`, which outlives the loop.
            let accs = unsafe {
                let slot = slots.load(Ordering::Relaxed).add(index * most);
                std::slice::from_raw_parts_mut(slot, width)
            };
            row_chunk(r, source, (tile, lanes), rows, accs, &mut buffers);
        }
    });
    let mut accs = memory::filled(r.identity(), most)?;
    for unit in 0..units {
        let (tile, outs, first, width) = locate(unit);
        for (j, acc) in accs[..width].iter_mut().enumerate() {
            let mut cascade = Cascade::new();
            for c in 0..chunks {
                cascade.push(r, partial[(unit * chunks + c) * most + j]);
            }
            *acc = cascade.finish(r);
        }
        emit(tile, outs, first, &mut accs[..width]);
    }
    Ok(())
}

/// Folds some rows of a tile into `accs`.
fn row_chunk<R: Reducer>(
    r: &R,
    source: &ReductionInput<'_, R::Item>,
    tile: (ResultTile, LaneLayout),
    rows: Range<usize>,
    accs: &mut [R::Acc],
    buffers: &mut ColumnBuffers<R::Item>,
) {
    if rows.is_empty() {
        accs.fill(r.identity());
    }
    let mut total: SmallVec<[R::Acc; 64]> = SmallVec::new();
    let (mut at, end) = (rows.start, rows.end);
    while at < end {
        let n = ROWS.min(end - at);
        let mut slices: [&[R::Item]; ROWS] = [&[]; ROWS];
        read_rows(&mut slices[..n], source, tile, at..at + n, accs.len(), buffers);
        fold_rows_wide(r, accs, &slices[..n], at);
        if n < rows.len() {
            if at == rows.start {
                // bounded: by the width of a tile.
                total.extend_from_slice(accs);
            } else {
                combine_each(r, &mut total, accs);
            }
        }
        at += n;
    }
    if !total.is_empty() {
        accs.copy_from_slice(&total);
    }
}

/// Points `slices` at some rows of a tile, `width` items each, which may have to be made first.
fn read_rows<'b, I: Copy + Default>(
    slices: &mut [&'b [I]],
    source: &ReductionInput<'_, I>,
    (tile, lanes): (ResultTile, LaneLayout),
    rows: Range<usize>,
    width: usize,
    buffers: &'b mut ColumnBuffers<I>,
) {
    let start = |i: usize| tile.ptr.wrapping_offset(offset(source.reduced, rows.start + i));
    if lanes.is_transposed {
        let transposed = transpose_rows(source, (tile, lanes), rows.clone(), width, buffers);
        for (slice, row) in slices.iter_mut().zip(transposed.chunks_exact(lanes.tile)) {
            *slice = &row[..width];
        }
    } else if let Some(item) = source.item {
        debug_assert_eq!(item as usize, size_of::<I>());
        for (i, slice) in slices.iter_mut().enumerate() {
            // SAFETY: the row lies inside the input view, without gaps, and elements are items.
            *slice = unsafe { std::slice::from_raw_parts(start(i).cast(), width) };
        }
    } else {
        let converted = resized(&mut buffers[0], slices.len() * width);
        for (i, row) in converted.chunks_exact_mut(width).enumerate() {
            // SAFETY: the row lies inside the input view; its elements have the loader's dtype.
            unsafe { (source.load)(start(i), source.element, row) };
        }
        for (slice, row) in slices.iter_mut().zip(converted.chunks_exact(width)) {
            *slice = row;
        }
    }
}

/// Items `rows` of `width` lines as rows of `lanes.tile` items.
fn transpose_rows<'b, I: Copy + Default>(
    source: &ReductionInput<'_, I>,
    (tile, lanes): (ResultTile, LaneLayout),
    rows: Range<usize>,
    width: usize,
    [transposed, lines]: &'b mut ColumnBuffers<I>,
) -> &'b [I] {
    let (run, item) = (run(source), size_of::<I>());
    // A square may write rows past the last one.
    let transposed = resized(transposed, (ROWS + SQUARE) * lanes.tile);
    let mut at = rows.start;
    while at < rows.end {
        let within = at % run.size;
        let length = (run.size - within).min(rows.end - at);
        let start = tile.ptr.wrapping_offset(offset(source.reduced, at));
        let has_gaps = lanes.step != run.size as isize * run.stride;
        let from = if source.item == Some(run.stride) {
            let readable = if has_gaps { 0 } else { tile.left * run.size - within };
            LineBlock { ptr: start, step: lanes.step, length, width, readable }
        } else {
            let lines = resized(lines, width * length + SQUARE);
            if has_gaps || length < run.size {
                for (l, line) in lines[..width * length].chunks_exact_mut(length).enumerate() {
                    let line_start = start.wrapping_offset(l as isize * lanes.step);
                    // SAFETY: these are items of a line of the input view; its elements have the loader's dtype.
                    unsafe { (source.load)(line_start, run.stride, line) };
                }
            } else {
                // SAFETY: as above, for lines that follow one another.
                unsafe { (source.load)(start, run.stride, &mut lines[..width * length]) };
            }
            let readable = lines.len();
            LineBlock {
                ptr: lines.as_ptr().cast(),
                step: (length * item) as isize,
                length,
                width,
                readable,
            }
        };
        transpose(
            &mut transposed[(at - rows.start) * lanes.tile..],
            lanes.tile,
            &from,
            lanes.dense,
        );
        at += length;
    }
    transposed
}

/// Lines of items.
///
/// Invariant: `width` lines of `length` items can be read, `step` bytes apart; so can `readable` items in all from the first one
/// on, if lines follow one another without gaps (else it is zero).
struct LineBlock {
    ptr: *const u8,
    step: isize,
    length: usize,
    width: usize,
    readable: usize,
}

crate::multiversion! {
/// Writes lines as columns: item `i` of line `l` to `to[i * tile + l]`, but for whole groups of dense lines,
/// where lane `v` of part `p` is line `v * dense + p`.
fn transpose<I: Copy>(to: &mut [I], tile: usize, from: &LineBlock, dense: usize) {
    let item = size_of::<I>();
    let row = (SQUARE * item) as isize;
    let mut first = 0;
    if dense > 1 {
        // Sixteen registers of items without gaps: sixteen times `dense` lines.
        while first + SQUARE * dense <= from.width {
            let ptr = from.ptr.wrapping_offset(first as isize * from.step);
            let mut columns = [[to[0]; SQUARE]; SQUARE];
            // SAFETY: whole lines, whose items follow one another; a square of its own.
            unsafe { square::<I, false>(columns.as_mut_ptr().cast(), row, ptr, row) };
            for (j, column) in columns.iter().enumerate() {
                let (part, i) = (j / from.length, j % from.length);
                let at = i * tile + first + part * SQUARE;
                to[at..at + SQUARE].copy_from_slice(column);
            }
            first += SQUARE * dense;
        }
    }
    let step = (tile * item) as isize;
    while first < from.width {
        let lines = SQUARE.min(from.width - first);
        let ptr = from.ptr.wrapping_offset(first as isize * from.step);
        for at in (0..from.length).step_by(SQUARE) {
            let ptr = ptr.wrapping_add(at * item);
            let last = (first + SQUARE - 1) * (from.step.unsigned_abs() / item) + at + SQUARE;
            let is_readable = at + SQUARE <= from.length || last <= from.readable;
            if lines == SQUARE && is_readable {
                // The square's last element: what is checked here is what it writes.
                let to = &mut to[at * tile + first..(at + SQUARE - 1) * tile + first + SQUARE];
                // SAFETY: sixteen items of sixteen lines can be read, and the rows of the square lie in `to`.
                unsafe { square::<I, false>(to.as_mut_ptr().cast(), step, ptr, from.step) };
                continue;
            }
            for l in 0..lines {
                for i in 0..SQUARE.min(from.length - at) {
                    let item = ptr.wrapping_offset(l as isize * from.step).cast::<I>();
                    // SAFETY: an item of one of the lines.
                    to[(at + i) * tile + first + l] = unsafe { item.add(i).read() };
                }
            }
        }
        first += SQUARE;
    }
}
}
