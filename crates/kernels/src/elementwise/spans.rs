//! The loops of every strided copy: a span, copied at each of a list of offsets and in rows of constant stride.
//!
//! A span is so many elements that lie dense in the output and dense, reversed or repeated in the input, or a single element.
//! Short ones are what matters: each kind is compiled for chunks of a fixed size, so that a span of 12 bytes is two chunks
//! of 8 that overlap, not a call. Sizes are bytes and offsets are in bytes; no dtype is known here.

use crate::simd::prefetch;
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Byte offsets in the output and in the input.
pub(crate) type OffsetPair = [isize; 2];
/// Most offsets of a tile.
pub(crate) const MAX_OFFSETS: usize = 256;
/// Offsets of spans, filled block by block. (Few are kept in place: what is moved with them must stay small.)
pub(crate) type OffsetPairs = SmallVec<[OffsetPair; 16]>;

/// How many spans ahead of the copy are prefetched.
const AHEAD: usize = 8;
/// Bytes of a chunk: one register.
const WIDEST: usize = 64;
/// Bytes from which addresses are worth aligning.
const LONG: usize = 2048;

/// How the elements of a span lie in the input; in the output they are dense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpanKind {
    Dense,
    Reversed,
    Repeated,
}

impl SpanKind {
    /// The kind of a span with these byte steps of elements of `size` bytes, if it is one.
    pub(crate) fn of([to, from]: [isize; 2], size: usize) -> Option<SpanKind> {
        let size = size as isize;
        if to != size {
            return None;
        }
        // Wide elements are moved as quickly one by one.
        let is_narrow = size <= 8;
        match from {
            _ if from == size => Some(SpanKind::Dense),
            0 if is_narrow => Some(SpanKind::Repeated),
            _ if from == -size && is_narrow => Some(SpanKind::Reversed),
            _ => None,
        }
    }
}

/// Where spans begin: at each offset, and from there in rows.
///
/// Invariant: every span lies inside live memory, writable at the output's side, and the sides do not overlap unless they are
/// the same.
pub(crate) struct SpanTile<'p> {
    pub(crate) to: *mut u8,
    pub(crate) from: *const u8,
    pub(crate) offsets: &'p [OffsetPair],
    pub(crate) rows: usize,
    /// Bytes from a row to the next.
    pub(crate) row_strides: [isize; 2],
}

/// Copies a span at every offset and row of the tile: `n` elements of `size` bytes (1, 2, 4, .. 64, of which more than 8 only as
/// [`SpanKind::of`] has it).
///
/// # Safety
/// The tile keeps its invariant for such spans.
pub(crate) unsafe fn copy_spans_of_kind(
    tile: &SpanTile<'_>,
    kind: SpanKind,
    size: usize,
    n: usize,
) {
    if n == 1 {
        return match size {
            1 => copy_each_span(tile, ElementSpan::<1>),
            2 => copy_each_span(tile, ElementSpan::<2>),
            4 => copy_each_span(tile, ElementSpan::<4>),
            8 => copy_each_span(tile, ElementSpan::<8>),
            16 => copy_each_span(tile, ElementSpan::<16>),
            32 => copy_each_span(tile, ElementSpan::<32>),
            _ => copy_each_span(tile, ElementSpan::<64>),
        };
    }
    match kind {
        SpanKind::Dense => copy_dense(tile, size * n),
        SpanKind::Reversed => copy_chunked::<true>(tile, size, n),
        SpanKind::Repeated => copy_chunked::<false>(tile, size, n),
    }
}

fn copy_dense(tile: &SpanTile<'_>, bytes: usize) {
    match bytes {
        ..4 => copy_each_span(tile, Dense::<2> { bytes }),
        4..8 => copy_each_span(tile, Dense::<4> { bytes }),
        8..16 => copy_each_span(tile, Dense::<8> { bytes }),
        16..32 => copy_each_span(tile, Dense::<16> { bytes }),
        32..64 => copy_each_span(tile, Dense::<32> { bytes }),
        64..LONG => copy_each_span(tile, Dense::<64> { bytes }),
        _ => copy_each_span(tile, Long { bytes }),
    }
}

/// Copies reversed or repeated spans in the largest chunks that fit a register and the span.
fn copy_chunks<T: Copy, const REVERSED: bool>(tile: &SpanTile<'_>, n: usize) {
    match n.min(WIDEST / size_of::<T>()) {
        ..4 => copy_each_span(tile, Chunks::<T, 2, REVERSED>::new(n)),
        4..8 => copy_each_span(tile, Chunks::<T, 4, REVERSED>::new(n)),
        8..16 => copy_each_span(tile, Chunks::<T, 8, REVERSED>::new(n)),
        16..32 => copy_each_span(tile, Chunks::<T, 16, REVERSED>::new(n)),
        32..64 => copy_each_span(tile, Chunks::<T, 32, REVERSED>::new(n)),
        _ => copy_each_span(tile, Chunks::<T, 64, REVERSED>::new(n)),
    }
}

fn copy_chunked<const REVERSED: bool>(tile: &SpanTile<'_>, size: usize, n: usize) {
    match size {
        1 => copy_chunks::<u8, REVERSED>(tile, n),
        2 => copy_chunks::<u16, REVERSED>(tile, n),
        4 => copy_chunks::<u32, REVERSED>(tile, n),
        _ => copy_chunks::<u64, REVERSED>(tile, n),
    }
}

/// The copy of one span.
trait SpanCopy: Copy {
    /// Bytes of the input that are worth asking for ahead of time.
    #[inline(always)]
    fn prefetch_bytes(self) -> usize {
        0
    }
    /// # Safety
    /// The span lies inside live memory on both sides.
    unsafe fn copy(self, to: *mut u8, from: *const u8);
}

crate::multiversion! {
fn copy_each_span<R: SpanCopy>(tile: &SpanTile<'_>, span: R) {
    let SpanTile { to, from, offsets, rows, row_strides } = *tile;
    if rows == 1 {
        for (number, offset) in offsets.iter().enumerate() {
            let bytes = span.prefetch_bytes();
            if bytes > 0 && let Some(next) = offsets.get(number + AHEAD) {
                for line in (0..bytes).step_by(64) {
                    prefetch(from.wrapping_offset(next[1]).wrapping_add(line));
                }
            }
            // SAFETY: the tile's invariant.
            unsafe { span.copy(to.wrapping_offset(offset[0]), from.wrapping_offset(offset[1])) };
        }
        return;
    }
    let at = |address: OffsetPair, row: isize| {
        let to = to.wrapping_offset(address[0] + row * row_strides[0]);
        (to, from.wrapping_offset(address[1] + row * row_strides[1]))
    };
    for &offset in offsets {
        let mut offset = offset;
        for _ in 0..rows / 4 {
            for row in 0..4 {
                let (to, from) = at(offset, row);
                // SAFETY: the tile's invariant.
                unsafe { span.copy(to, from) };
            }
            offset = [offset[0] + 4 * row_strides[0], offset[1] + 4 * row_strides[1]];
        }
        for row in 0..(rows % 4) as isize {
            let (to, from) = at(offset, row);
            // SAFETY: the tile's invariant.
            unsafe { span.copy(to, from) };
        }
    }
}
}

#[inline(always)]
unsafe fn read<T: Copy>(from: *const u8) -> T {
    // SAFETY: the caller's promise; elements may have been joined into wider ones than they are aligned for.
    unsafe { from.cast::<T>().read_unaligned() }
}

#[inline(always)]
unsafe fn write<T: Copy>(to: *mut u8, value: T) {
    // SAFETY: as above.
    unsafe { to.cast::<T>().write_unaligned(value) };
}

/// The copy of one element.
#[derive(Clone, Copy)]
struct ElementSpan<const SIZE: usize>;
impl<const SIZE: usize> SpanCopy for ElementSpan<SIZE> {
    #[inline(always)]
    fn prefetch_bytes(self) -> usize {
        if SIZE == WIDEST { SIZE } else { 0 }
    }
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        // SAFETY: the caller's promise.
        unsafe { write(to, read::<[u8; SIZE]>(from)) };
    }
}

/// The copy of at least `CHUNK` bytes as they are; the last chunk may overlap the one before.
#[derive(Clone, Copy)]
struct Dense<const CHUNK: usize> {
    bytes: usize,
}
impl<const CHUNK: usize> SpanCopy for Dense<CHUNK> {
    #[inline(always)]
    fn prefetch_bytes(self) -> usize {
        if CHUNK == WIDEST { self.bytes } else { 0 }
    }
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        let last = self.bytes - CHUNK;
        let mut at = 0;
        // SAFETY: chunks lie inside the span, as the caller promised.
        unsafe {
            while at < last {
                write(to.add(at), read::<[u8; CHUNK]>(from.add(at)));
                at += CHUNK;
            }
            write(to.add(last), read::<[u8; CHUNK]>(from.add(last)));
        }
    }
}

/// The copy of at least [`WIDEST`] bytes as they are, in chunks that are aligned in the output; the
/// first and the last may overlap those beside them. (The C library's copy takes ten times as long
/// on some processors, whose instruction for copies is slow where the two addresses differ by
/// little more than whole pages.)
#[derive(Clone, Copy)]
struct Long {
    bytes: usize,
}
impl SpanCopy for Long {
    #[inline(always)]
    fn prefetch_bytes(self) -> usize {
        self.bytes.min(1024)
    }
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        let last = self.bytes - WIDEST;
        let mut at = WIDEST - to as usize % WIDEST;
        // SAFETY: chunks lie inside the span, as the caller promised.
        unsafe {
            write(to, read::<[u8; WIDEST]>(from));
            while at < last {
                write(to.add(at), read::<[u8; WIDEST]>(from.add(at)));
                at += WIDEST;
            }
            write(to.add(last), read::<[u8; WIDEST]>(from.add(last)));
        }
    }
}

crate::multiversion! {
fn copy_long(to: *mut u8, from: *const u8, span: Long) {
    // SAFETY: `copy_slice` hands over two slices of that many bytes.
    unsafe { span.copy(to, from) };
}
}

/// Copies `from` to `to`, as `to.copy_from_slice(from)` does, but with vector moves also for long slices, for which the C
/// library's copy is slow on some processors.
///
/// # Panics
/// If their lengths differ.
pub fn copy_slice<T: Copy>(to: &mut [T], from: &[T]) {
    let bytes = size_of_val(from);
    if bytes < LONG {
        return to.copy_from_slice(from);
    }
    assert_eq!(to.len(), from.len(), "slices of one length");
    copy_long(to.as_mut_ptr().cast(), from.as_ptr().cast(), Long { bytes });
}

/// The copy of at least `N` elements that lie in reverse order in the input, or are one element;
/// the last chunk may overlap the one before.
#[derive(Clone, Copy)]
struct Chunks<T, const N: usize, const REVERSED: bool> {
    n: usize,
    element: PhantomData<T>,
}
impl<T: Copy, const N: usize, const REVERSED: bool> Chunks<T, N, REVERSED> {
    fn new(n: usize) -> Self {
        debug_assert!(n >= N, "a span holds a chunk");
        Self { n, element: PhantomData }
    }
    /// Elements `at..at + N`.
    #[inline(always)]
    unsafe fn chunk(to: *mut u8, from: *const u8, at: usize) {
        let size = size_of::<T>();
        // SAFETY: the chunk lies inside the span, as the caller promises.
        unsafe {
            let chunk: [T; N] = if REVERSED {
                let lying = read::<[T; N]>(from.sub((at + N - 1) * size));
                let mut reversed = lying;
                for i in 0..N {
                    reversed[i] = lying[N - 1 - i];
                }
                reversed
            } else {
                [read::<T>(from); N]
            };
            write(to.add(at * size), chunk);
        }
    }
}
impl<T: Copy, const N: usize, const REVERSED: bool> SpanCopy for Chunks<T, N, REVERSED> {
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        let last = self.n - N;
        let mut at = 0;
        // SAFETY: chunks lie inside the span.
        unsafe {
            while at < last {
                Self::chunk(to, from, at);
                at += N;
            }
            Self::chunk(to, from, last);
        }
    }
}
