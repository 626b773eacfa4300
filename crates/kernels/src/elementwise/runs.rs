//! The loops of every copy: one kind of run, repeated at places and at regular distances.
//!
//! A run is so many elements that lie dense in the output and dense, reversed or repeated in the input, or a single element.
//! Short ones are what matters: each kind is compiled for chunks of a fixed size, so that a run of 12 bytes is two chunks
//! of 8 that overlap, not a call. Sizes are bytes and places byte offsets; no dtype is known here.

use crate::simd::prefetch;
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Byte offsets in the output and in the input.
pub(crate) type Place = [isize; 2];
/// Most places of a grid.
pub(crate) const PLACES: usize = 256;
/// Places of runs, filled block by block. (Few are kept in place: what is moved with them must stay small.)
pub(crate) type Places = SmallVec<[Place; 16]>;

/// Runs that are asked for ahead of the work.
const AHEAD: usize = 8;
/// Bytes of a chunk: one register.
const WIDEST: usize = 64;
/// Bytes from which places are worth aligning.
const LONG: usize = 2048;

/// How the elements of a run lie in the input; in the output they are dense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Dense,
    Reversed,
    Repeated,
}

impl Kind {
    /// The kind of a run with these byte steps of elements of `size` bytes, if it is one.
    pub(crate) fn of([to, from]: [isize; 2], size: usize) -> Option<Kind> {
        let size = size as isize;
        if to != size {
            return None;
        }
        // Wide elements are moved as quickly one by one.
        let is_narrow = size <= 8;
        match from {
            _ if from == size => Some(Kind::Dense),
            0 if is_narrow => Some(Kind::Repeated),
            _ if from == -size && is_narrow => Some(Kind::Reversed),
            _ => None,
        }
    }
}

/// Where runs begin: at each place, and from there in rows.
///
/// Invariant: every run lies inside live memory, writable at the output's side, and the sides do not overlap unless they are
/// the same.
pub(crate) struct Grid<'p> {
    pub(crate) to: *mut u8,
    pub(crate) from: *const u8,
    pub(crate) places: &'p [Place],
    pub(crate) rows: usize,
    /// Bytes from a row to the next.
    pub(crate) jumps: [isize; 2],
}

/// Copies a run at every place and row of the grid: `n` elements of `size` bytes (1, 2, 4, .. 64, of which more than 8 only as
/// [`Kind::of`] has it).
///
/// # Safety
/// The grid keeps its invariant for such runs.
pub(crate) unsafe fn copy_runs(grid: &Grid<'_>, kind: Kind, size: usize, n: usize) {
    if n == 1 {
        return match size {
            1 => copy_grid(grid, Element::<1>),
            2 => copy_grid(grid, Element::<2>),
            4 => copy_grid(grid, Element::<4>),
            8 => copy_grid(grid, Element::<8>),
            16 => copy_grid(grid, Element::<16>),
            32 => copy_grid(grid, Element::<32>),
            _ => copy_grid(grid, Element::<64>),
        };
    }
    match kind {
        Kind::Dense => copy_dense(grid, size * n),
        Kind::Reversed => copy_chunked::<true>(grid, size, n),
        Kind::Repeated => copy_chunked::<false>(grid, size, n),
    }
}

fn copy_dense(grid: &Grid<'_>, bytes: usize) {
    match bytes {
        ..4 => copy_grid(grid, Dense::<2> { bytes }),
        4..8 => copy_grid(grid, Dense::<4> { bytes }),
        8..16 => copy_grid(grid, Dense::<8> { bytes }),
        16..32 => copy_grid(grid, Dense::<16> { bytes }),
        32..64 => copy_grid(grid, Dense::<32> { bytes }),
        64..LONG => copy_grid(grid, Dense::<64> { bytes }),
        _ => copy_grid(grid, Long { bytes }),
    }
}

/// With the largest chunks of elements that fit a register and the run.
fn copy_chunks<T: Copy, const REVERSED: bool>(grid: &Grid<'_>, n: usize) {
    match n.min(WIDEST / size_of::<T>()) {
        ..4 => copy_grid(grid, Chunks::<T, 2, REVERSED>::new(n)),
        4..8 => copy_grid(grid, Chunks::<T, 4, REVERSED>::new(n)),
        8..16 => copy_grid(grid, Chunks::<T, 8, REVERSED>::new(n)),
        16..32 => copy_grid(grid, Chunks::<T, 16, REVERSED>::new(n)),
        32..64 => copy_grid(grid, Chunks::<T, 32, REVERSED>::new(n)),
        _ => copy_grid(grid, Chunks::<T, 64, REVERSED>::new(n)),
    }
}

fn copy_chunked<const REVERSED: bool>(grid: &Grid<'_>, size: usize, n: usize) {
    match size {
        1 => copy_chunks::<u8, REVERSED>(grid, n),
        2 => copy_chunks::<u16, REVERSED>(grid, n),
        4 => copy_chunks::<u32, REVERSED>(grid, n),
        _ => copy_chunks::<u64, REVERSED>(grid, n),
    }
}

/// The copy of one run.
trait Run: Copy {
    /// Bytes of the input that are worth asking for ahead of time.
    #[inline(always)]
    fn fetched(self) -> usize {
        0
    }
    /// # Safety
    /// The run lies inside live memory on both sides.
    unsafe fn copy(self, to: *mut u8, from: *const u8);
}

crate::multiversion! {
fn copy_grid<R: Run>(grid: &Grid<'_>, run: R) {
    let Grid { to, from, places, rows, jumps } = *grid;
    if rows == 1 {
        for (number, place) in places.iter().enumerate() {
            let bytes = run.fetched();
            if bytes > 0 && let Some(next) = places.get(number + AHEAD) {
                for line in (0..bytes).step_by(64) {
                    prefetch(from.wrapping_offset(next[1]).wrapping_add(line));
                }
            }
            // SAFETY: the grid's invariant.
            unsafe { run.copy(to.wrapping_offset(place[0]), from.wrapping_offset(place[1])) };
        }
        return;
    }
    let at = |address: Place, row: isize| {
        let to = to.wrapping_offset(address[0] + row * jumps[0]);
        (to, from.wrapping_offset(address[1] + row * jumps[1]))
    };
    for &place in places {
        let mut place = place;
        for _ in 0..rows / 4 {
            for row in 0..4 {
                let (to, from) = at(place, row);
                // SAFETY: the grid's invariant.
                unsafe { run.copy(to, from) };
            }
            place = [place[0] + 4 * jumps[0], place[1] + 4 * jumps[1]];
        }
        for row in 0..(rows % 4) as isize {
            let (to, from) = at(place, row);
            // SAFETY: the grid's invariant.
            unsafe { run.copy(to, from) };
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

/// One element.
#[derive(Clone, Copy)]
struct Element<const SIZE: usize>;
impl<const SIZE: usize> Run for Element<SIZE> {
    #[inline(always)]
    fn fetched(self) -> usize {
        if SIZE == WIDEST { SIZE } else { 0 }
    }
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        // SAFETY: the caller's promise.
        unsafe { write(to, read::<[u8; SIZE]>(from)) };
    }
}

/// At least `CHUNK` bytes as they are; the last chunk may overlap the one before.
#[derive(Clone, Copy)]
struct Dense<const CHUNK: usize> {
    bytes: usize,
}
impl<const CHUNK: usize> Run for Dense<CHUNK> {
    #[inline(always)]
    fn fetched(self) -> usize {
        if CHUNK == WIDEST { self.bytes } else { 0 }
    }
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        let last = self.bytes - CHUNK;
        let mut at = 0;
        // SAFETY: chunks lie inside the run, as the caller promised.
        unsafe {
            while at < last {
                write(to.add(at), read::<[u8; CHUNK]>(from.add(at)));
                at += CHUNK;
            }
            write(to.add(last), read::<[u8; CHUNK]>(from.add(last)));
        }
    }
}

/// At least [`WIDEST`] bytes as they are, in chunks that are aligned in the output; the first and the last may overlap those
/// beside them. (The C library's copy takes ten times as long on some processors, whose instruction for copies is slow
/// where the two places differ by little more than whole pages.)
#[derive(Clone, Copy)]
struct Long {
    bytes: usize,
}
impl Run for Long {
    #[inline(always)]
    fn fetched(self) -> usize {
        self.bytes.min(1024)
    }
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        let last = self.bytes - WIDEST;
        let mut at = WIDEST - to as usize % WIDEST;
        // SAFETY: chunks lie inside the run, as the caller promised.
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
fn copy_long(to: *mut u8, from: *const u8, run: Long) {
    // SAFETY: `copy_slice` hands over two slices of that many bytes.
    unsafe { run.copy(to, from) };
}
}

/// As `to.copy_from_slice(from)`, which for long slices is slow on some processors.
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

/// At least `N` elements that lie in reverse order in the input, or are one element; the last chunk may overlap the one before.
#[derive(Clone, Copy)]
struct Chunks<T, const N: usize, const REVERSED: bool> {
    n: usize,
    element: PhantomData<T>,
}
impl<T: Copy, const N: usize, const REVERSED: bool> Chunks<T, N, REVERSED> {
    fn new(n: usize) -> Self {
        debug_assert!(n >= N, "a run holds a chunk");
        Self { n, element: PhantomData }
    }
    /// Elements `at..at + N`.
    #[inline(always)]
    unsafe fn chunk(to: *mut u8, from: *const u8, at: usize) {
        let size = size_of::<T>();
        // SAFETY: the chunk lies inside the run, as the caller promises.
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
impl<T: Copy, const N: usize, const REVERSED: bool> Run for Chunks<T, N, REVERSED> {
    #[inline(always)]
    unsafe fn copy(self, to: *mut u8, from: *const u8) {
        let last = self.n - N;
        let mut at = 0;
        // SAFETY: chunks lie inside the run.
        unsafe {
            while at < last {
                Self::chunk(to, from, at);
                at += N;
            }
            Self::chunk(to, from, last);
        }
    }
}
