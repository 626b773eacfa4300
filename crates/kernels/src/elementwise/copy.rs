//! Copies elements without looking at them: dense memory at once, transposed views tile by tile so
//! that both sides use whole cache lines, everything else run by run.
//!
//! Runs of a register's size or less count as elements of that size, so that reversing rows, say, is reversing
//! wide elements.

use super::spans::SpanKind;
use super::tiled_spans::{CopyDim, GRAIN, Span, TiledSpans};
use crate::simd::transpose::{self, SMALL, SQUARE};
use crate::{Error, Iter, Result, parallel};
use smallvec::SmallVec;

/// The elements of a tile of a transposed copy along the output's rows.
const TILE: usize = 32;
/// The elements of a tile of a transposed copy along the input's rows: many, so that each page of the input is
/// visited seldom. The cache lines of both sides of a tile still fit the first-level cache together.
const STRIP: usize = 128;
/// Bytes from which a copy is written past the caches, which it would only empty.
const STREAMED: usize = 1 << 22;
/// Bytes of the widest element that short runs are joined to.
const WIDE: usize = 64;

/// Copies the input to the output (1 output, 1 input of one dtype).
pub fn copy(iter: &mut Iter) -> Result<()> {
    if iter.outputs() != 1 || iter.operands() != 2 || iter.dtype(0) != iter.dtype(1) {
        return Err(Error::runtime("copy: expected an output and an input of one dtype".into()));
    }
    if iter.numel() == 0 {
        return Ok(());
    }
    let size = iter.dtype(0).size();
    if iter.numel() * size <= GRAIN
        && let Some(ptrs) = iter.as_contiguous()
    {
        // SAFETY: so many live elements on both sides; `copy` allows the very same view.
        unsafe { std::ptr::copy(ptrs[1].cast_const(), ptrs[0], iter.numel() * size) };
        return Ok(());
    }
    let mut plan = CopyPlan::new(iter);
    plan.widen();
    match plan.transposed_dim() {
        Some(across) => plan.copy_transposed(across),
        None => plan.copy_spans(),
    }
    Ok(())
}

/// A copy: elements of `size` bytes, dimensions innermost first.
struct CopyPlan {
    to: *mut u8,
    from: *const u8,
    size: usize,
    dims: SmallVec<[CopyDim; 6]>,
}

// SAFETY: threads write disjoint elements of the output and only read the input, which an `Iter` promised to be live.
unsafe impl Sync for CopyPlan {}

impl CopyPlan {
    fn new(iter: &Iter) -> CopyPlan {
        let dim = |dim: usize| {
            let steps = [iter.stride(dim, 0), iter.stride(dim, 1)];
            CopyDim { size: iter.size(dim), steps }
        };
        CopyPlan {
            to: iter.ptr(0),
            from: iter.ptr(1),
            size: iter.dtype(0).size(),
            dims: (0..iter.dims()).map(dim).filter(|dim| dim.size > 1).collect(),
        }
    }

    fn numel(&self) -> usize {
        let mut numel = 1;
        for dim in &self.dims {
            numel *= dim.size;
        }
        numel
    }

    /// Makes a short dense run an element.
    fn widen(&mut self) {
        if let [first, _, ..] = self.dims[..] {
            let bytes = first.size * self.size;
            let is_dense = first.steps == [self.size as isize; 2];
            if is_dense && bytes <= WIDE && bytes.is_power_of_two() {
                self.size = bytes;
                self.dims.remove(0);
            }
        }
    }

    /// The dimension along which the input is dense, if the output is dense along another, and both are
    /// long enough for tiles to pay.
    fn transposed_dim(&self) -> Option<usize> {
        let size = self.size as isize;
        let first = self.dims.first()?;
        let [to, from] = first.steps;
        if self.size > 16 || first.size < 8 || to != size || from == size || from == 0 {
            return None;
        }
        let found = self.dims[1..].iter().position(|dim| dim.steps[1] == size && dim.size >= 8)?;
        Some(found + 1)
    }

    fn copy_spans(&self) {
        let (run, rest) = match self.dims.split_first() {
            Some((&dim, rest)) if let Some(kind) = SpanKind::of(dim.steps, self.size) => {
                (Span { kind, size: self.size, n: dim.size }, rest)
            }
            _ => (Span::element(self.size), &self.dims[..]),
        };
        let spans = TiledSpans::new((self.to, self.from), run, &[[0; 2]], rest);
        // SAFETY: the runs are those of the two views, which are live and do not overlap unless they are the same.
        unsafe { spans.copy(false) };
    }
}

impl CopyPlan {
    fn copy_transposed(&self, across: usize) {
        match self.size {
            1 => self.copy_tiles::<u8>(across),
            2 => self.copy_tiles::<u16>(across),
            4 => self.copy_tiles::<u32>(across),
            8 => self.copy_tiles::<u64>(across),
            _ => self.copy_tiles::<[u64; 2]>(across),
        }
    }

    /// Copies tile by tile: dimension 0 is dense in the output, dimension `across` in the input.
    fn copy_tiles<T: Copy>(&self, across: usize) {
        let (first_dim, across_dim) = (self.dims[0], self.dims[across]);
        let (n, m) = (first_dim.size, across_dim.size);
        let strips = m.div_ceil(STRIP);
        let numel = self.numel();
        let planes = numel / (n * m);
        let is_aligned = self.to.addr().is_multiple_of(64)
            && self.dims[1..].iter().all(|dim| dim.steps[0] % 64 == 0);
        let is_streamed = is_aligned && numel * size_of::<T>() >= STREAMED;
        parallel::for_range(planes * strips, (GRAIN / 4 / (n * STRIP)).max(1), &|tasks| {
            for task in tasks {
                let (mut plane, first) = (task / strips, task % strips * STRIP);
                let (mut to, mut from) = (self.to, self.from);
                for (_, dim) in self.dims.iter().enumerate().skip(1).filter(|&(at, _)| at != across)
                {
                    let position = (plane % dim.size) as isize;
                    plane /= dim.size;
                    to = to.wrapping_offset(position * dim.steps[0]);
                    from = from.wrapping_offset(position * dim.steps[1]);
                }
                to = to.wrapping_offset(first as isize * across_dim.steps[0]);
                from = from.wrapping_offset(first as isize * across_dim.steps[1]);
                let width = STRIP.min(m - first);
                for start in (0..n).step_by(TILE) {
                    let (to, from) = (
                        to.wrapping_offset(start as isize * first_dim.steps[0]),
                        from.wrapping_offset(start as isize * first_dim.steps[1]),
                    );
                    let strides = (across_dim.steps[0], first_dim.steps[1]);
                    let size = (TILE.min(n - start), width);
                    // SAFETY: the tile lies inside both views; rows of the output are aligned as streaming wants them.
                    unsafe {
                        if is_streamed {
                            copy_tile::<T, true>(to, from, strides, size);
                        } else {
                            copy_tile::<T, false>(to, from, strides, size);
                        }
                    }
                }
                if is_streamed {
                    transpose::fence();
                }
            }
        });
    }
}

/// Copies `from[i * strides.1 + j * size]` to `to[j * strides.0 + i * size]` for `i < n`, `j < width`; `STREAM` as in
/// [`transpose::square`].
///
/// # Safety
/// All these elements are live, those of `to` writable; with `STREAM` rows of `to` are aligned to 64 bytes.
#[inline(always)]
pub(crate) unsafe fn copy_tile<T: Copy, const STREAM: bool>(
    to: *mut u8,
    from: *const u8,
    strides: (isize, isize),
    (n, width): (usize, usize),
) {
    // Squares of one cache line go through registers: whole lines are read and written.
    let (whole_n, whole_width) = (n - n % SQUARE, width - width % SQUARE);
    let size = size_of::<T>() as isize;
    for i in (0..whole_n as isize).step_by(SQUARE) {
        for j in (0..whole_width as isize).step_by(SQUARE) {
            let to = to.wrapping_offset(j * strides.0 + i * size);
            let from = from.wrapping_offset(i * strides.1 + j * size);
            // SAFETY: the square lies inside the tile.
            unsafe { transpose::square::<T, STREAM>(to, strides.0, from, strides.1) };
        }
    }
    if (whole_n, whole_width) != (n, width) {
        // SAFETY: the caller's promise.
        unsafe { copy_edges::<T>(to, from, strides, (n, width)) };
    }
}

/// Fewest elements of a part of a square for which registers pay.
const WORTH_PARTS: usize = 64;

/// Copies the rows and columns of a tile that are in no whole square, which [`copy_tile`] leaves.
///
/// # Safety
/// As [`copy_tile`].
unsafe fn copy_edges<T: Copy>(
    to: *mut u8,
    from: *const u8,
    strides: (isize, isize),
    (n, width): (usize, usize),
) {
    let (whole_n, whole_width) = (n - n % SQUARE, width - width % SQUARE);
    let size = size_of::<T>() as isize;
    if transpose::has_partial_square::<T>() {
        for i in (0..n).step_by(SQUARE) {
            let start = if i < whole_n { whole_width } else { 0 };
            for j in (start..width).step_by(SQUARE) {
                let part = (SQUARE.min(n - i), SQUARE.min(width - j));
                let to = to.wrapping_offset(j as isize * strides.0 + i as isize * size);
                let from = from.wrapping_offset(i as isize * strides.1 + j as isize * size);
                // SAFETY: the part lies inside the tile, whose elements have four bytes.
                unsafe {
                    if part.0 * part.1 >= WORTH_PARTS {
                        transpose::partial_square(to, strides.0, from, strides.1, part);
                    } else {
                        copy_items::<T>(to, from, strides, part);
                    }
                }
            }
        }
        return;
    }
    // By small squares, and then item by item.
    let small = |rest: usize| if matches!(size, 4 | 8) && rest >= SMALL { SMALL } else { 0 };
    let (small_n, small_width) = (small(n - whole_n), small(width - whole_width));
    let last_n = if small_width > 0 { n - n % SMALL } else { 0 };
    for i in (0..last_n as isize).step_by(SMALL) {
        let to = to.wrapping_offset(whole_width as isize * strides.0 + i * size);
        let from = from.wrapping_offset(i * strides.1 + whole_width as isize * size);
        // SAFETY: as above.
        unsafe { transpose::small_square::<T>(to, strides.0, from, strides.1) };
    }
    let last_width = if small_n > 0 { whole_width } else { 0 };
    for j in (0..last_width as isize).step_by(SMALL) {
        let to = to.wrapping_offset(j * strides.0 + whole_n as isize * size);
        let from = from.wrapping_offset(whole_n as isize * strides.1 + j * size);
        // SAFETY: as above.
        unsafe { transpose::small_square::<T>(to, strides.0, from, strides.1) };
    }
    for j in 0..width {
        let first = match j {
            _ if j < whole_width => whole_n + small_n,
            _ if j < whole_width + small_width => last_n,
            _ => 0,
        };
        let to = to.wrapping_offset(j as isize * strides.0 + first as isize * size);
        let from = from.wrapping_offset(first as isize * strides.1 + j as isize * size);
        // SAFETY: as promised by the caller.
        unsafe { copy_items::<T>(to, from, strides, (n - first, 1)) };
    }
}

/// Copies a tile as [`copy_tile`] does, one element after the other.
///
/// # Safety
/// As [`copy_tile`].
#[inline(always)]
unsafe fn copy_items<T: Copy>(
    to: *mut u8,
    from: *const u8,
    strides: (isize, isize),
    (n, width): (usize, usize),
) {
    for j in 0..width {
        let row = to.wrapping_offset(j as isize * strides.0).cast::<T>();
        let column = from.cast::<T>().wrapping_add(j).cast::<u8>();
        for i in 0..n {
            // SAFETY: as promised by the caller.
            unsafe { *row.add(i) = *column.wrapping_offset(i as isize * strides.1).cast::<T>() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{SimdLevel, set_level};
    use crate::{DType, StridedMut, StridedRef};

    struct TestRng(u64);
    impl TestRng {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % n
        }
        fn of(&mut self, sizes: &[i64]) -> i64 {
            sizes[self.below(sizes.len())]
        }
    }

    /// Strides of a view without overlaps whose dimensions lie in random order, with gaps between some; and its length.
    fn layout(rng: &mut TestRng, shape: &[i64]) -> (Vec<i64>, i64) {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for end in (1..order.len()).rev() {
            if rng.below(2) == 0 {
                order.swap(end, rng.below(end + 1));
            }
        }
        let (mut strides, mut next) = (vec![0; shape.len()], 1);
        for &dim in order.iter().rev() {
            strides[dim] = next;
            next *= shape[dim] + rng.of(&[0, 0, 0, 1]);
        }
        (strides, next)
    }

    /// The offsets of all elements, row by row.
    fn offsets(shape: &[i64], strides: &[i64], first: i64) -> Vec<i64> {
        let mut all = vec![first];
        for (&size, &stride) in shape.iter().zip(strides) {
            all = all.iter().flat_map(|&at| (0..size).map(move |i| at + i * stride)).collect();
        }
        all
    }

    fn check(rng: &mut TestRng, dtype: DType, shape: &[i64]) {
        let size = dtype.size();
        let (to_strides, to_length) = layout(rng, shape);
        let (mut strides, mut length) = layout(rng, shape);
        let mut first = 0;
        for dim in 0..shape.len() {
            match rng.below(5) {
                0 => strides[dim] = 0,
                1 => {
                    first += (shape[dim] - 1).max(0) * strides[dim];
                    strides[dim] = -strides[dim];
                }
                _ => {}
            }
        }
        length = length.max(first + 1);
        let from: Vec<u8> = (0..length as usize * size).map(|_| rng.below(256) as u8).collect();
        let (mut to, aligned) =
            (vec![1_u128; to_length as usize * size / 16 + 1], from.len() / 16 + 1);
        let mut source = vec![0_u128; aligned];
        // SAFETY: bytes of vectors that are long enough; views reach only elements of them.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.as_ptr(),
                source.as_mut_ptr().cast::<u8>(),
                from.len(),
            );
            let start = source.as_ptr().cast::<u8>().add(first as usize * size);
            let to = StridedMut::new(to.as_mut_ptr().cast(), dtype, shape, &to_strides);
            let from = StridedRef::new(start, dtype, shape, &strides);
            copy(&mut Iter::new(&[to], &[from]).unwrap()).unwrap();
        }
        let mut wanted = vec![1_u128; to.len()];
        // SAFETY: numbers are bytes.
        let (wanted, to) = unsafe {
            let bytes = wanted.len() * 16;
            let wanted = std::slice::from_raw_parts_mut(wanted.as_mut_ptr().cast::<u8>(), bytes);
            (wanted, std::slice::from_raw_parts(to.as_ptr().cast::<u8>(), bytes))
        };
        let targets = offsets(shape, &to_strides, 0);
        for (to, at) in targets.into_iter().zip(offsets(shape, &strides, first)) {
            let (to, at) = (to as usize * size, at as usize * size);
            wanted[to..to + size].copy_from_slice(&from[at..at + size]);
        }
        assert!(wanted == to, "{dtype:?} {shape:?} {to_strides:?} {strides:?}");
    }

    #[test]
    fn copies_of_every_layout_equal_their_twin_on_every_level() {
        const SIZES: [i64; 16] = [0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 33, 65, 130];
        for level in SimdLevel::ALL {
            set_level(level);
            let mut rng = TestRng(7);
            for round in 0..1500 {
                let dtype = [DType::U8, DType::I16, DType::F32, DType::F64, DType::C128][round % 5];
                let mut shape: Vec<i64> = (0..rng.below(5)).map(|_| rng.of(&SIZES[..])).collect();
                while shape.iter().product::<i64>() > 20_000 {
                    let at = rng.below(shape.len());
                    shape[at] = rng.of(&[1, 2, 3]);
                }
                check(&mut rng, dtype, &shape);
            }
            for shape in [&[40_000, 2][..], &[2, 40_000], &[3, 700, 5], &[300_000], &[2, 300, 600]]
            {
                for _ in 0..4 {
                    check(&mut rng, DType::F32, shape);
                }
            }
        }
    }
}
