//! The walk of a scan over its lines, in whichever of three ways the lines lie.
//!
//! Lines along memory are transposed, sixteen at a time, so that a register holds one item of each; neighbouring lines that
//! run across memory already lie so. What is left goes item by item. Each line is scanned in its order in all three ways,
//! so that its results do not depend on the lines beside it; only a few long lines may do better ([`Scan::block`]).

use super::Scan;
use crate::dense::SharedMut;
use crate::line::{GRAIN, LineIter, ViewLayout, along, get, put, read_line, write_line};
use crate::simd::prefetch;
use crate::simd::transpose::{SQUARE, square};
use crate::{StridedMut, StridedRef, interrupt};

/// Items of a long line scanned at once.
pub(super) const BLOCK: usize = 512;
/// Lines across memory that are scanned together, at most.
const TILE: usize = 256;
/// Up to so many lines across memory are scanned a few at a time, each from its beginning to its end.
const NARROW: usize = 64;
/// Lines along memory whose items are taken in turn.
const TOGETHER: usize = 4;
/// The length of lines, in items, from which on scans that write indices take them one by one.
const LONG: usize = 8 * SQUARE;
/// Bytes that a scan prefetches ahead, and bytes of a line from which prefetching pays.
const AHEAD: isize = 2048;
const PREFETCHED: usize = 128;
/// The number of bytes ahead beyond which a scan does not prefetch: what was prefetched would have
/// left the cache before it is needed.
const FAR: usize = 1 << 18;
/// Bytes of lines that go through buffers in the nearest cache, sixteen together, if the tensor is large.
const STREAMED: std::ops::RangeInclusive<usize> = 256..=1024;
/// Bytes above which a tensor is large.
const LARGE: usize = 1 << 19;

/// How the lines of one view lie: the address of the first item in the order of the scan, and the bytes from an item to the
/// next and from a line to the next.
#[derive(Clone, Copy)]
struct LineSpan {
    at: *mut u8,
    step: isize,
    line: isize,
}

impl LineSpan {
    fn moved(self, bytes: isize) -> LineSpan {
        LineSpan { at: self.at.wrapping_offset(bytes), ..self }
    }
    /// The lines from `i` on.
    fn after_lines(self, i: usize) -> LineSpan {
        self.moved(i as isize * self.line)
    }
}

/// Lines to scan. Whoever makes one promises that the `length` lines of `n` items of input, output and (if the scan has
/// indices) indices are live memory of their types, that nobody else writes there, and that outputs overlap nothing.
#[derive(Clone, Copy)]
struct ScanJob {
    input: LineSpan,
    out: LineSpan,
    indices: LineSpan,
    n: usize,
    length: usize,
    /// Whether steps lead towards lower addresses: the order of the lines is reversed.
    reverse: bool,
    /// Whether the tensor is so large that prefetching pays.
    is_large: bool,
}

impl ScanJob {
    /// The position in its line of item `i` in the order of the scan.
    #[inline(always)]
    fn position(self, i: usize) -> usize {
        if self.reverse { self.n - 1 - i } else { i }
    }
    fn after_lines(self, i: usize) -> ScanJob {
        let (input, out) = (self.input.after_lines(i), self.out.after_lines(i));
        ScanJob {
            input,
            out,
            indices: self.indices.after_lines(i),
            length: self.length - i,
            ..self
        }
    }
}

/// Scans every line of `input` along `dim` into `out` (both of the scan's type), from its end if `reverse`; writes or reads
/// `indices` (of `int64`) if the scan has any.
pub(super) fn run<S: Scan>(
    s: &S,
    out: &StridedMut<'_>,
    indices: Option<StridedRef<'_>>,
    input: StridedRef<'_>,
    dim: usize,
    reverse: bool,
) {
    let shape = input.shape();
    // Lines without elements may be too many to walk through.
    if input.numel() == 0 {
        return;
    }
    let indices = indices.unwrap_or(out.as_ref());
    let views = [ViewLayout::from(&input), ViewLayout::from(out), ViewLayout::from(&indices)];
    let (n, _) = along(shape, views[0], dim);
    let mut steps = views.map(|view| along(shape, view, dim).1);
    let mut bases = [input.ptr().cast_mut(), out.ptr(), indices.ptr().cast_mut()];
    if reverse {
        for (base, step) in bases.iter_mut().zip(&mut steps) {
            *base = base.wrapping_offset((n - 1) as isize * *step);
            *step = -*step;
        }
    }
    let bases = bases.map(SharedMut::from_ptr);
    let lines = LineIter::new(shape, Some(dim), views);
    let size = size_of::<S::Item>() as isize;
    let across = lines.count() > 1
        && lines.inner().is_some_and(|inner| (inner[0], inner[1]) == (size, size));
    let in_blocks = S::BLOCKS && n >= BLOCK && lines.count() < SQUARE && !across;
    let line = n * size as usize;
    let is_large = line >= PREFETCHED && lines.count() * line > LARGE;
    let is_streamed = !S::IS_QUICK && STREAMED.contains(&line) && is_large;
    let grain = (GRAIN / n).max(if across { TILE } else { SQUARE });
    crate::parallel::for_range(lines.count(), if in_blocks { 1 } else { grain }, &|range| {
        lines.visit_runs(range, |offsets, line, length| {
            let span = |i: usize| {
                LineSpan { at: bases[i].ptr(), step: steps[i], line: line[i] }.moved(offsets[i])
            };
            let (input, out, indices) = (span(0), span(1), span(2));
            let job = ScanJob { input, out, indices, n, length, reverse, is_large };
            if in_blocks {
                blocks(s, job);
            } else if is_streamed {
                streamed(s, job);
            } else {
                scan(s, job);
            }
        });
    });
}

/// Long lines, block by block.
fn blocks<S: Scan>(s: &S, job: ScanJob) {
    for i in 0..job.length {
        let ScanJob { input, out, .. } = job.after_lines(i);
        let mut state = s.start();
        let mut buffer = [S::Item::default(); BLOCK];
        for at in (0..job.n).step_by(BLOCK) {
            interrupt::check_every::<5>(at / BLOCK);
            let items = &mut buffer[..BLOCK.min(job.n - at)];
            let (from, to) =
                (input.moved(at as isize * input.step), out.moved(at as isize * out.step));
            // SAFETY: items of a line, as the job promises.
            unsafe {
                read_line(from.at, from.step, items);
                s.block(&mut state, items);
                write_line(to.at, to.step, items);
            }
        }
    }
}

/// Lines that touch, by way of buffers: in steps from line to line the processor does not see how a large tensor goes on.
fn streamed<S: Scan>(s: &S, job: ScanJob) {
    let (n, length, size) = (job.n, job.length, size_of::<S::Item>() as isize);
    let (block, step) = (SQUARE * n, if job.reverse { -size } else { size });
    let mut done = 0;
    if [job.input, job.out].iter().all(|span| (span.line, span.step) == (n as isize * size, step)) {
        // Where a line begins in memory, seen from the item it is scanned from.
        let back = (n as isize - 1) * if job.reverse { step } else { 0 };
        let mut buffers = vec![S::Item::default(); 2 * block]; // bounded: by STREAMED
        while length - done >= SQUARE {
            let now = job.after_lines(done);
            let (from, to) = buffers.split_at_mut(block);
            let span = |items: &mut [S::Item], span: LineSpan| {
                let at = items.as_mut_ptr().cast::<u8>().wrapping_offset(-back);
                LineSpan { at, ..span }
            };
            let (input, out) = (span(from, now.input), span(to, now.out));
            // SAFETY: sixteen lines of the job, one after the other, and buffers of as many items.
            unsafe { read_line(now.input.moved(back).at, size, from) };
            scan(s, ScanJob { input, out, length: SQUARE, ..now });
            // SAFETY: as above.
            unsafe { write_line(now.out.moved(back).at, size, to) };
            done += SQUARE;
        }
    }
    scan(s, job.after_lines(done));
}

crate::multiversion! {
fn scan<S: Scan>(s: &S, job: ScanJob) {
    let size = size_of::<S::Item>() as isize;
    let (input, out, indices) = (job.input, job.out, job.indices);
    let (along, indices_along) = if job.reverse { (-size, -8) } else { (size, 8) };
    if (input.step, out.step) == (along, along) && (!S::has_indices() || indices.step == indices_along) {
        if S::WRITES && job.n >= LONG && !job.reverse {
            return each_or_rows(s, job);
        }
        let done = if S::IS_QUICK { together(s, job) } else { rows(s, job) };
        each(s, job.after_lines(done));
    } else if (input.line, out.line) == (size, size) && (!S::has_indices() || indices.line == 8) {
        columns(s, job);
    } else {
        each(s, job);
    }
}
}

/// Lines along memory, a few at a time, item by item: a sum waits for the one before it only in its own line. The processor sees
/// several streams that move at once, not how memory goes on, so that what comes is asked for. Returns how many lines are done.
#[inline(always)]
fn together<S: Scan>(s: &S, job: ScanJob) -> usize {
    let (size, n) = (size_of::<S::Item>() as isize, job.n as isize);
    // Moving items of this size to and from memory takes longer than their sum does.
    if job.is_large && size > 8 {
        return 0;
    }
    let step = if job.reverse { -size } else { size };
    let bytes = TOGETHER as isize * job.input.line;
    // As many lines further on as make a safe distance; of reversed lines the last one comes first.
    let ahead = if bytes > 0 { (AHEAD / bytes + 1) * bytes } else { 0 };
    let ahead = ahead + if job.reverse { bytes - job.input.line } else { 0 };
    let asks = job.is_large && ahead.unsigned_abs() <= FAR;
    let mut done = 0;
    while job.length - done >= TOGETHER {
        let ScanJob { input, out, .. } = job.after_lines(done);
        let mut states = [s.start(); TOGETHER];
        for i in 0..n {
            let (from, to) = (input.moved(i * step), out.moved(i * step));
            let mut items = [S::Item::default(); TOGETHER];
            let next = ahead + i * step * TOGETHER as isize;
            if asks {
                prefetch(input.moved(next).at);
                prefetch(out.moved(next).at);
            }
            for (l, item) in items.iter_mut().enumerate() {
                // SAFETY: an item of each of these lines, as the job promises.
                *item = unsafe { get(from.at, l as isize * from.line) };
            }
            for (l, (item, state)) in items.into_iter().zip(&mut states).enumerate() {
                let (item, _) = s.next(state, item, false);
                // SAFETY: as above.
                unsafe { put(to.at, l as isize * to.line, item) };
            }
        }
        done += TOGETHER;
    }
    done
}

/// Long lines of a scan that writes indices, which mostly stay: one by one, and sixteen at a time after one in which they often
/// did not, which takes the same time whatever the items are.
#[inline(always)]
fn each_or_rows<S: Scan>(s: &S, job: ScanJob) {
    let mut done = 0;
    while done < job.length {
        let rest = job.after_lines(done);
        let changing = each(s, ScanJob { length: 1, ..rest });
        done += 1;
        if changing > job.n / SQUARE / 4 {
            let rest = job.after_lines(done);
            done += rows(s, ScanJob { length: rest.length.min(SQUARE), ..rest });
        }
    }
}

/// The state after an item that became it, whatever the state was before.
#[inline(always)]
fn state_after<S: Scan>(s: &S, item: S::Item) -> S::State {
    let mut state = s.start();
    s.next(&mut state, item, false);
    state
}

/// Item by item; where indices are written, sixteen at a time as long as the state stays, or every item becomes the state.
/// Returns the number of blocks of sixteen in which neither holds.
#[inline(always)]
fn each<S: Scan>(s: &S, job: ScanJob) -> usize {
    let size = size_of::<S::Item>() as isize;
    let mut changing = 0;
    for i in 0..job.length {
        let line = job.after_lines(i);
        let mut carried = (s.start(), 0_i64);
        let is_dense = (line.input.step, line.out.step, line.indices.step) == (size, size, 8);
        let mut first = 0;
        while first < line.n {
            interrupt::check_every::<10>(first / SQUARE);
            if S::WRITES && is_dense && line.n - first >= SQUARE {
                changing += usize::from(sixteen_items(s, line, first, &mut carried));
                first += SQUARE;
                continue;
            }
            let (mut state, mut index) = carried;
            let last = line.n.min(first + SQUARE);
            for i in first..last {
                let (at, i) = (job.position(i) as i64, i as isize);
                let ScanJob { input, out, indices, .. } = line;
                // SAFETY: items of a line, as the job promises.
                unsafe {
                    let own = S::READS && get::<i64>(indices.at, i * indices.step) == at;
                    let (item, taken) = s.next(&mut state, get(input.at, i * input.step), own);
                    put(out.at, i * out.step, item);
                    if S::WRITES {
                        index = if taken { at } else { index };
                        put(indices.at, i * indices.step, index);
                    }
                }
            }
            carried = (state, index);
            first = last;
        }
    }
    changing
}

/// Scans sixteen dense items of a line from item `first` on. `carried` is the state and the index of the item that became it.
/// Returns whether the state changed at some of the items, but not at all of them.
#[inline(always)]
fn sixteen_items<S: Scan>(
    s: &S,
    line: ScanJob,
    first: usize,
    (state, index): &mut (S::State, i64),
) -> bool {
    let ScanJob { input, out, indices, .. } = line;
    let (from, to) = (first as isize * size_of::<S::Item>() as isize, first as isize * 8);
    // SAFETY: items of a line, as the job promises.
    let items: [S::Item; SQUARE] = unsafe { get(input.at, from) };
    let (mut result, mut changes) = (items[0], false);
    for item in items {
        let mut state = *state;
        let (item, taken) = s.next(&mut state, item, false);
        (result, changes) = (item, changes | taken);
    }
    if !changes {
        // SAFETY: as above.
        unsafe {
            put(out.at, from, [result; SQUARE]);
            put(indices.at, to, [*index; SQUARE]);
        }
        return false;
    }
    // Where every item becomes the state, as in a line in order, the items are the results.
    let mut all_taken = true;
    for (l, item) in items.into_iter().enumerate() {
        let mut state = if l == 0 { *state } else { state_after(s, items[l - 1]) };
        all_taken &= s.next(&mut state, item, false).1;
    }
    let (results, found) = if all_taken {
        *state = state_after(s, items[SQUARE - 1]);
        (items, std::array::from_fn(|l| line.position(first + l) as i64))
    } else {
        changing_items(s, items, state, (first, *index))
    };
    *index = found[SQUARE - 1];
    // SAFETY: as above.
    unsafe {
        put(out.at, from, results);
        put(indices.at, to, found);
    }
    !all_taken
}

/// The results and indices of sixteen items from item `first` on, some of which become the state, as `index` did before:
/// states one after the other, then results all at once, and then indices.
#[inline(always)]
fn changing_items<S: Scan>(
    s: &S,
    items: [S::Item; SQUARE],
    state: &mut S::State,
    (first, index): (usize, i64),
) -> ([S::Item; SQUARE], [i64; SQUARE]) {
    let mut before = [*state; SQUARE];
    for (before, item) in before.iter_mut().zip(items) {
        *before = *state;
        s.next(state, item, false);
    }
    let (mut results, mut found) = (items, [0_u32; SQUARE]);
    for l in 0..SQUARE {
        let (item, taken) = s.next(&mut before[l], items[l], false);
        (results[l], found[l]) = (item, if taken { l as u32 + 1 } else { 0 });
    }
    let mut latest = 0;
    for found in &mut found {
        latest = if *found > 0 { *found } else { latest };
        *found = latest;
    }
    let before = index + 1;
    let found = found.map(|at| if at > 0 { (first + at as usize) as i64 } else { before } - 1);
    (results, found)
}

/// Lines that lie across memory, neighbours touching.
#[inline(always)]
fn columns<S: Scan>(s: &S, job: ScanJob) {
    if job.length > NARROW {
        return wide_columns(s, job);
    }
    let mut first = 0;
    while job.length - first >= 16 {
        column_block::<S, 16>(s, job.after_lines(first));
        first += 16;
    }
    // (Hidden, or what follows is computed beforehand.)
    let rest = std::hint::black_box(job.length - first);
    if rest & 8 != 0 {
        column_block::<S, 8>(s, job.after_lines(first));
        first += 8;
    }
    if rest & 4 != 0 {
        column_block::<S, 4>(s, job.after_lines(first));
        first += 4;
    }
    if rest & 2 != 0 {
        column_block::<S, 2>(s, job.after_lines(first));
        first += 2;
    }
    if rest & 1 != 0 {
        column_block::<S, 1>(s, job.after_lines(first));
    }
}

/// `W` columns, whose states stay in registers.
#[inline(always)]
fn column_block<S: Scan, const W: usize>(s: &S, job: ScanJob) {
    let ScanJob { input, out, indices, n, .. } = job;
    let (mut states, mut index) = ([s.start(); W], [0_i64; W]);
    for i in 0..n {
        let (at, i) = (job.position(i) as i64, i as isize);
        // SAFETY: a row of the job's items.
        let mut items: [S::Item; W] = unsafe { get(input.at, i * input.step) };
        if S::READS {
            // SAFETY: as above.
            index = unsafe { get(indices.at, i * indices.step) };
        }
        for l in 0..W {
            let (item, taken) = s.next(&mut states[l], items[l], S::READS && index[l] == at);
            items[l] = item;
            if S::WRITES {
                index[l] = if taken { at } else { index[l] };
            }
        }
        // SAFETY: as above.
        unsafe {
            put(out.at, i * out.step, items);
            if S::WRITES {
                put(indices.at, i * indices.step, index);
            }
        }
    }
}

/// Many columns, row by row over a tile of them.
#[inline(always)]
fn wide_columns<S: Scan>(s: &S, job: ScanJob) {
    for first in (0..job.length).step_by(TILE) {
        let ScanJob { input, out, indices, n, length, .. } = job.after_lines(first);
        let width = TILE.min(length);
        let mut states = [s.start(); TILE];
        let mut index = [0_i64; TILE];
        let (states, index) = (&mut states[..width], &mut index[..width]);
        for i in 0..n {
            let (at, i) = (job.position(i) as i64, i as isize);
            let from = input.moved(i * input.step).at.cast::<S::Item>();
            let to = out.moved(i * out.step).at.cast::<S::Item>();
            let indices = indices.moved(i * indices.step).at;
            // SAFETY: a row of the tile each, as the job promises.
            let (from, to) = unsafe {
                let to = std::slice::from_raw_parts_mut(to, width);
                (std::slice::from_raw_parts(from.cast_const(), width), to)
            };
            if S::READS {
                // SAFETY: as above.
                unsafe { read_line(indices, 8, index) };
            }
            for l in 0..width {
                let (item, taken) = s.next(&mut states[l], from[l], S::READS && index[l] == at);
                to[l] = item;
                if S::WRITES {
                    index[l] = if taken { at } else { index[l] };
                }
            }
            if S::WRITES {
                // SAFETY: as above.
                unsafe { write_line(indices, 8, index) };
            }
        }
    }
}

/// Items of sixteen lines, one item of each beside the other.
type Transposed<T> = [[T; SQUARE]; SQUARE];

/// The buffers of a block of lines along memory.
struct BlockBuffers<T> {
    items: Transposed<T>,
    results: Transposed<T>,
    /// Indices to write.
    found: Transposed<u32>,
    /// Indices to read.
    given: Transposed<i64>,
}

/// Lines along memory, sixteen at a time; returns how many of them are done.
///
/// Short lines that touch are taken several to a chunk, which goes through a square as one line would. Of a chunk shorter
/// than a square, what follows it is transposed too, and written before that is.
#[inline(always)]
fn rows<S: Scan>(s: &S, job: ScanJob) -> usize {
    let ScanJob { n, length, reverse, .. } = job;
    let size = size_of::<S::Item>();
    let touching = (job.input.line, job.out.line) == ((n * size) as isize, (n * size) as isize)
        && (!S::has_indices() || job.indices.line == (n * 8) as isize);
    if n > u32::MAX as usize || (n < SQUARE && !touching) {
        return 0;
    }
    let together = if n < SQUARE { SQUARE / n } else { 1 };
    let chunk = n * together;
    let reach = (SQUARE - 1) * chunk + chunk.max(SQUARE);
    let mut buffers = BlockBuffers {
        items: [[S::Item::default(); SQUARE]; SQUARE],
        results: [[S::Item::default(); SQUARE]; SQUARE],
        found: [[0; SQUARE]; SQUARE],
        given: [[0; SQUARE]; SQUARE],
    };
    let mut done = 0;
    while (length - done) * n >= reach {
        let ScanJob { input, out, indices, .. } = job.after_lines(done);
        let mut spans = [input, out, indices];
        if reverse {
            // In a block, addresses are those of the first items in memory.
            for span in &mut spans {
                *span = span.moved((n - 1) as isize * span.step);
            }
        }
        rows_block(s, &mut buffers, spans, (n, together), (reverse, job.is_large));
        done += SQUARE * together;
    }
    done
}

/// Prefetches the items, results and indices of the sixteen chunks after those from item `first` on: the processor sees several
/// dozen streams that move at once, too many to guess how memory goes on.
#[inline(always)]
fn prefetch_next<S: Scan>(
    spans: [LineSpan; 3],
    steps: [isize; 3],
    (first, chunk): (usize, usize),
    reverse: bool,
) {
    let (first, chunk, square) = (first as isize, chunk as isize, SQUARE as isize);
    let next = if reverse { first - square } else { first + square };
    // After the end of the chunks come those of the next lines.
    let ends = next < 0 || next >= chunk;
    let next = match (ends, reverse) {
        (true, true) => (chunk - square).max(0),
        (true, false) => 0,
        (false, _) => next,
    };
    let sizes = [size_of::<S::Item>() as isize, size_of::<S::Item>() as isize, 8];
    for ((span, step), size) in spans.into_iter().zip(steps).zip(sizes) {
        let start = span.moved(next * size + if ends { square * step } else { 0 });
        for line in 0..square {
            for at in (0..square * size).step_by(64) {
                prefetch(start.moved(line * step + at).at);
            }
        }
    }
}

/// The results of item `in_line` of sixteen lines, with their states and the indices of the items that became these.
#[inline(always)]
fn column<S: Scan>(
    s: &S,
    (mut column, given): ([S::Item; SQUARE], [i64; SQUARE]),
    in_line: usize,
    (states, index): (&mut [S::State; SQUARE], &mut [u32; SQUARE]),
) -> [S::Item; SQUARE] {
    for l in 0..SQUARE {
        let own = S::READS && given[l] == in_line as i64;
        let (item, taken) = s.next(&mut states[l], column[l], own);
        column[l] = item;
        if S::WRITES {
            index[l] = if taken { in_line as u32 } else { index[l] };
        }
    }
    column
}

/// Scans sixteen chunks of `together` lines of `n` items.
#[inline(always)]
fn rows_block<S: Scan>(
    s: &S,
    BlockBuffers { items, results, found, given }: &mut BlockBuffers<S::Item>,
    [input, out, indices]: [LineSpan; 3],
    (n, together): (usize, usize),
    (reverse, is_large): (bool, bool),
) {
    let size = size_of::<S::Item>() as isize;
    let inner = SQUARE as isize * size;
    let chunk = n * together;
    let steps = [input, out, indices].map(|span| span.line * together as isize);
    let mut states = [s.start(); SQUARE];
    let mut index = [0_u32; SQUARE];
    // Items of the present line, and of the chunk.
    let (mut at, mut done) = (0, 0);
    while done < chunk {
        // The next sixteen items of each chunk; at its end the last sixteen, of which some are done already.
        let fresh = SQUARE.min(chunk - done);
        let known = if done == 0 { 0 } else { SQUARE - fresh };
        let first = if reverse { (chunk - done).saturating_sub(SQUARE) } else { done - known };
        if known > 0 {
            let (from, to) = if reverse { (0, fresh) } else { (fresh, 0) };
            results.copy_within(from..from + known, to);
            if S::WRITES {
                found.copy_within(from..from + known, to);
            }
        }
        if is_large && S::has_indices() {
            prefetch_next::<S>([input, out, indices], steps, (first, chunk), reverse);
        }
        // SAFETY: sixteen items of sixteen chunks; what a shorter chunk lacks are items of the lines after it.
        unsafe {
            let from = input.moved(first as isize * size).at;
            square::<S::Item, false>(items.as_mut_ptr().cast(), inner, from, steps[0]);
            if S::READS {
                let from = indices.moved(first as isize * 8).at;
                let inner = (SQUARE * 8) as isize;
                square::<i64, false>(given.as_mut_ptr().cast(), inner, from, steps[2]);
            }
        }
        for i in 0..fresh {
            let j = if reverse { fresh - 1 - i } else { known + i };
            let in_line = if reverse { n - 1 - at } else { at };
            results[j] = column(s, (items[j], given[j]), in_line, (&mut states, &mut index));
            if S::WRITES {
                found[j] = index;
            }
            at += 1;
            if at == n {
                // The next line of the chunk.
                (at, states) = (0, [s.start(); SQUARE]);
            }
        }
        let to = out.moved(first as isize * size).at;
        let written = results.as_ptr().cast();
        // SAFETY: as above. Chunks shorter than a square are written one after the other: the next one replaces what is
        // written behind the one before it.
        unsafe {
            if chunk >= SQUARE {
                square::<S::Item, false>(to, steps[1], written, inner);
            } else {
                square::<S::Item, false>(items.as_mut_ptr().cast(), inner, written, inner);
                for (i, &line) in items.iter().enumerate() {
                    put(to, i as isize * steps[1], line);
                }
            }
            if S::WRITES {
                write_indices(indices.moved(first as isize * 8).at, steps[2], found);
            }
        }
        done += fresh;
    }
}

/// Writes sixteen indices of each of sixteen lines, which lie `step` bytes apart.
///
/// # Safety
/// `to` is where the first line's indices are to be written; the lines are live memory that nobody else writes to.
#[inline(always)]
unsafe fn write_indices(to: *mut u8, step: isize, found: &Transposed<u32>) {
    let (mut lines, inner) = ([[0_u32; SQUARE]; SQUARE], (SQUARE * 4) as isize);
    // SAFETY: both squares are whole; the rest is the caller's promise.
    unsafe {
        square::<u32, false>(lines.as_mut_ptr().cast(), inner, found.as_ptr().cast(), inner);
        for (i, line) in lines.iter().enumerate() {
            let mut wide = [0_i64; SQUARE];
            for l in 0..SQUARE {
                wide[l] = i64::from(line[l]);
            }
            put(to, i as isize * step, wide);
        }
    }
}
