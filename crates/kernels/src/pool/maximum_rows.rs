//! Max pooling with positions, by rows of outputs whose windows lie inside of the input: the usual windows of two or three
//! columns, one or two apart.
//!
//! A strip of a row keeps its maxima and their positions, of 32 bits, in two small buffers; each row of the windows goes
//! through all of them, its columns unrolled, so that the loop becomes vector code. Windows at the edges are taken one by one.

use super::PoolGeometry;
use super::maximum::MaxPoolElement;
use crate::interrupt::WorkCounter;

/// Outputs that are worked on together.
const STRIP: usize = 128;
/// Fewest outputs of a row for which strips pay.
const LEAST: usize = 8;

/// Whether these loops are for such windows.
pub(super) fn fits(g: &PoolGeometry) -> bool {
    (2..=3).contains(&g.kernel[2])
        && (1..=2).contains(&g.stride[2])
        && g.dilation[2] == 1
        && g.output[2] >= LEAST
        && u32::try_from(g.input_size()).is_ok()
}

crate::multiversion! {
    /// The maxima of a plane and their positions.
    pub(super) fn plane<T: MaxPoolElement>(out: &mut [T], indices: &mut [i64], x: &[T], g: &PoolGeometry) {
        match (g.kernel[2], g.stride[2]) {
            (2, 1) => rows::<T, 2, 1>(out, indices, x, g),
            (2, _) => rows::<T, 2, 2>(out, indices, x, g),
            (_, 1) => rows::<T, 3, 1>(out, indices, x, g),
            _ => rows::<T, 3, 2>(out, indices, x, g),
        }
    }
}

/// The loop of [`plane`] for windows of `K` columns, `S` apart.
#[inline(always)]
fn rows<T: MaxPoolElement, const K: usize, const S: usize>(
    out: &mut [T],
    indices: &mut [i64],
    x: &[T],
    g: &PoolGeometry,
) {
    let [_, height, width] = g.output;
    let padding = g.padding[2];
    // The outputs whose windows have all their columns.
    let first = padding.div_ceil(S).min(width);
    let end = match (g.input[2] + padding).checked_sub(K) {
        Some(room) => (room / S + 1).clamp(first, width),
        None => first,
    };
    let mut pace = WorkCounter::new();
    let lines = out.chunks_exact_mut(width).zip(indices.chunks_exact_mut(width));
    for (line, (out, indices)) in lines.enumerate() {
        let (depths, first_d) = g.taps(0, line / height);
        let (rows, first_h) = g.taps(1, line % height);
        pace.spend(depths.len() * rows.len() * K * width);
        let row = |kd: usize, kh: usize| {
            let d = (first_d + (kd * g.dilation[0]) as isize) as usize;
            let h = (first_h + (kh * g.dilation[1]) as isize) as usize;
            (d * g.input[1] + h) * g.input[2]
        };
        for start in (first..end).step_by(STRIP) {
            let count = STRIP.min(end - start);
            let (mut best, mut at) = ([T::LOWEST; STRIP], [0; STRIP]);
            let begin = row(depths.start, rows.start) + start * S - padding;
            for (j, at) in at[..count].iter_mut().enumerate() {
                *at = (begin + j * S) as u32;
            }
            for kd in depths.clone() {
                for kh in rows.clone() {
                    let begin = row(kd, kh) + start * S - padding;
                    let x = &x[begin..];
                    keep_larger::<T, K, S>(&mut best[..count], &mut at[..count], x, begin as u32);
                }
            }
            out[start..start + count].copy_from_slice(&best[..count]);
            for (index, &at) in indices[start..start + count].iter_mut().zip(&at[..count]) {
                *index = i64::from(at);
            }
        }
        for o in (0..first).chain(end..width) {
            let (columns, first_w) = g.taps(2, o);
            let column = |kw: usize| (first_w + kw as isize) as usize;
            let mut best = T::LOWEST;
            let mut at = row(depths.start, rows.start) + column(columns.start);
            for kd in depths.clone() {
                for kh in rows.clone() {
                    for here in columns.clone().map(|kw| row(kd, kh) + column(kw)) {
                        if x[here].beats(best) {
                            (best, at) = (x[here], here);
                        }
                    }
                }
            }
            (out[o], indices[o]) = (best, at as i64);
        }
    }
}

/// Takes in a row of the windows: that of output `j` begins at `x[j * S]`, which is element `first + j * S` of its plane.
#[inline(always)]
fn keep_larger<T: MaxPoolElement, const K: usize, const S: usize>(
    best: &mut [T],
    at: &mut [u32],
    x: &[T],
    first: u32,
) {
    let count = best.len();
    assert!(at.len() == count && (count == 0 || (count - 1) * S + K <= x.len()));
    for j in 0..count {
        let (mut largest, mut place) = (best[j], at[j]);
        for k in 0..K {
            // SAFETY: the assertion covers the last and so every element.
            let value = unsafe { *x.get_unchecked(j * S + k) };
            let wins = value.beats(largest);
            largest = if wins { value } else { largest };
            place = if wins { first + (j * S + k) as u32 } else { place };
        }
        (best[j], at[j]) = (largest, place);
    }
}
