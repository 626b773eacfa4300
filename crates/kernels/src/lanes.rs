//! Short rows side by side: sixteen of them transposed into columns, a lane per row.
//!
//! A loop over one short row is mostly setup, and its elements do not fill a register. Over columns every step is one whole
//! register whatever the length, and each row's result is what it would be alone.

use crate::Element;
use crate::simd::transpose::{SQUARE, square};

/// Rows that are worked on together.
pub(crate) const ROWS: usize = SQUARE;

/// One element of each row.
pub(crate) type Column<T> = [T; ROWS];

/// Columns that begin at multiples of a cache line, so that none of their registers lies in two.
pub(crate) struct ColumnBuffer<T> {
    items: Vec<T>,
    count: usize,
}

impl<T: Copy + Default> ColumnBuffer<T> {
    /// So many columns of default elements.
    pub(crate) fn new(count: usize) -> Self {
        let room = if count == 0 { 0 } else { count * ROWS + CACHE_LINE / size_of::<T>() };
        // bounded: rows are short.
        ColumnBuffer { items: vec![T::default(); room], count }
    }
    #[inline(always)]
    pub(crate) fn all(&mut self) -> &mut [Column<T>] {
        if self.count == 0 {
            return &mut [];
        }
        // (Elements that lie at no such place in time are taken where they are.)
        let skipped = self.items.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE / size_of::<T>());
        self.items[skipped..][..self.count * ROWS].as_chunks_mut().0
    }
}

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// How many columns a buffer for rows of `width` elements has to have.
pub(crate) fn buffer_width(width: usize) -> usize {
    width.max(ROWS)
}

/// Transposes the first `count` rows of `width` elements that follow one another in `rows` (which may go on behind them) into
/// columns: `to[j][i]` is element `j` of row `i`. Lanes without a row, and columns from `width` on, hold anything.
#[inline(always)]
pub(crate) fn to_columns<T: Element>(to: &mut [Column<T>], rows: &[T], width: usize, count: usize) {
    // SAFETY: columns of elements and columns of their bits are the same bytes, and any bytes are either.
    let (to, rows) = unsafe { (cast_mut::<_, Column<T::Bits>>(to), cast::<_, T::Bits>(rows)) };
    rows_to_columns(to, rows, width, count);
}

/// Transposes columns back into the rows that fill `rows`, at most sixteen of `width` elements.
#[inline(always)]
pub(crate) fn to_rows<T: Element>(rows: &mut [T], from: &[Column<T>], width: usize) {
    // SAFETY: as in `to_columns`.
    let (rows, from) = unsafe { (cast_mut::<_, T::Bits>(rows), cast::<_, Column<T::Bits>>(from)) };
    columns_to_rows(rows, from, width);
}

/// # Safety
/// The bytes of a `T` are a `U`.
unsafe fn cast<T, U>(of: &[T]) -> &[U] {
    assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>());
    // SAFETY: as many, of the same size and alignment; the caller promises the rest.
    unsafe { std::slice::from_raw_parts(of.as_ptr().cast(), of.len()) }
}

/// # Safety
/// The bytes of a `T` are a `U`, and those of a `U` a `T`.
unsafe fn cast_mut<T, U>(of: &mut [T]) -> &mut [U] {
    assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>());
    // SAFETY: as in `cast`.
    unsafe { std::slice::from_raw_parts_mut(of.as_mut_ptr().cast(), of.len()) }
}

crate::multiversion! {
/// [`to_columns`], compiled once for each size of elements and not in every loop that wants columns.
fn rows_to_columns<T: Element>(to: &mut [Column<T>], rows: &[T], width: usize, count: usize) {
    assert!(count <= ROWS && count * width <= rows.len() && to.len() >= buffer_width(width));
    if count == ROWS {
        match width {
            0 => return,
            1 => return split_rows_of::<T, 1>(to, rows),
            2 => return split_rows_of::<T, 2>(to, rows),
            3 => return split_rows_of::<T, 3>(to, rows),
            4 => return split_rows_of::<T, 4>(to, rows),
            _ => {}
        }
    }
    let size = size_of::<T>();
    let reach = (ROWS - 1) * width + buffer_width(width);
    let mut start = 0;
    while start < width {
        // The last square may have columns of the one before once more.
        let first = if width < ROWS { 0 } else { start.min(width - ROWS) };
        let out = to[first..first + ROWS].as_mut_ptr().cast();
        if count == ROWS && reach <= rows.len() {
            let from = rows[first..].as_ptr().cast();
            // SAFETY: the last row's square ends inside `rows`; sixteen columns were asked for above.
            unsafe { square::<T, false>(out, column_step::<T>(), from, (width * size) as isize) };
        } else {
            let mut block = [[T::default(); ROWS]; ROWS];
            let wide = width.min(ROWS);
            for (i, line) in block.iter_mut().enumerate().take(count) {
                line[..wide].copy_from_slice(&rows[i * width + first..][..wide]);
            }
            // SAFETY: a square and sixteen columns.
            unsafe {
                let from = block.as_ptr().cast();
                square::<T, false>(out, column_step::<T>(), from, column_step::<T>());
            }
        }
        start += ROWS;
    }
}
}

crate::multiversion! {
/// [`to_rows`], compiled once as well.
fn columns_to_rows<T: Element>(rows: &mut [T], from: &[Column<T>], width: usize) {
    if rows.is_empty() {
        return;
    }
    assert!(from.len() >= buffer_width(width));
    let count = rows.len() / width;
    assert!(count <= ROWS && count * width == rows.len());
    if count == ROWS {
        match width {
            1 => return join_rows_of::<T, 1>(rows, from),
            2 => return join_rows_of::<T, 2>(rows, from),
            3 => return join_rows_of::<T, 3>(rows, from),
            4 => return join_rows_of::<T, 4>(rows, from),
            _ => {}
        }
    }
    let size = size_of::<T>();
    let mut start = 0;
    while start < width {
        let first = if width < ROWS { 0 } else { start.min(width - ROWS) };
        let columns = from[first..first + ROWS].as_ptr().cast();
        if count == ROWS && width >= ROWS {
            let out = rows[first..].as_mut_ptr().cast();
            // SAFETY: sixteen columns; sixteen elements of each row from `first` on.
            unsafe {
                square::<T, false>(out, (width * size) as isize, columns, column_step::<T>());
            };
        } else {
            let mut block = [[T::default(); ROWS]; ROWS];
            // SAFETY: sixteen columns and a square.
            unsafe {
                let out = block.as_mut_ptr().cast();
                square::<T, false>(out, column_step::<T>(), columns, column_step::<T>());
            }
            let wide = width.min(ROWS);
            for (i, line) in block.iter().enumerate().take(count) {
                let to = &mut rows[i * width + first..];
                // A copy of known size where there is room for it: the rows behind are written after it.
                match to.first_chunk_mut::<ROWS>() {
                    Some(to) if width < ROWS => *to = *line,
                    _ => to[..wide].copy_from_slice(&line[..wide]),
                }
            }
        }
        start += ROWS;
    }
}
}

/// Bytes between columns.
const fn column_step<T>() -> isize {
    size_of::<Column<T>>() as isize
}

/// [`to_columns`] of sixteen rows of `W` elements.
#[inline(always)]
fn split_rows_of<T: Element, const W: usize>(to: &mut [Column<T>], rows: &[T]) {
    let (rows, _) = rows.as_chunks::<W>();
    let Some(&rows) = rows.first_chunk::<ROWS>() else { return };
    for j in 0..W {
        let mut column = [T::default(); ROWS];
        for i in 0..ROWS {
            column[i] = rows[i][j];
        }
        to[j] = column;
    }
}

/// [`to_rows`] of sixteen rows of `W` elements.
#[inline(always)]
fn join_rows_of<T: Element, const W: usize>(rows: &mut [T], from: &[Column<T>]) {
    let (rows, _) = rows.as_chunks_mut::<W>();
    let (Some(rows), Some(&columns)) = (rows.first_chunk_mut::<ROWS>(), from.first_chunk::<W>())
    else {
        return;
    };
    let mut joined = [[T::default(); W]; ROWS];
    for i in 0..ROWS {
        for j in 0..W {
            joined[i][j] = columns[j][i];
        }
    }
    *rows = joined;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{SimdLevel, set_level};

    crate::multiversion! {
        fn there_and_back(rows: &[u32], width: usize, count: usize, columns: &mut [Column<u32>], back: &mut [u32]) {
            to_columns(columns, rows, width, count);
            to_rows(back, columns, width);
        }
    }

    #[test]
    fn rows_become_columns_and_rows_again_whatever_their_number_and_length() {
        let data: Vec<u32> = (0..2000).collect();
        for level in SimdLevel::ALL {
            set_level(level);
            for width in (0..=20).chain([31, 32, 33, 50]) {
                for count in [1, 2, 7, 15, 16] {
                    for slack in [0, 1, 300] {
                        let rows = &data[..count * width + slack];
                        let mut columns = vec![[u32::MAX; ROWS]; buffer_width(width)];
                        let mut back = vec![u32::MAX; count * width];
                        there_and_back(rows, width, count, &mut columns, &mut back);
                        assert_eq!(back, data[..count * width], "{width} {count} {slack}");
                        for (j, column) in columns.iter().enumerate().take(width) {
                            for (i, &value) in column.iter().enumerate().take(count) {
                                assert_eq!(value as usize, i * width + j);
                            }
                        }
                    }
                }
            }
        }
    }
}
