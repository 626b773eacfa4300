//! A summary of a run of elements in a few numbers: a digest of the bytes, and the minimum, maximum and mean.
//!
//! Records of runs are made of these (`pullback.record` in Python), and are compared across machines, thread counts and
//! libraries. So the digest is a sum, modulo 2^64, of one mixed word for each eight bytes and their index: any order of summation
//! gives the same, and a program without this crate can compute it from integer arithmetic (`python/pullback/record`
//! does, for PyTorch). It finds differences that arise by themselves; it is no protection against somebody who looks for
//! two inputs with the same digest. Invariant: the constants and the order of steps are part of the file format.

use crate::interrupt;
use crate::{DType, Element, StridedRef, for_dtype};

/// Elements per step: both passes over a block find it in the first cache.
const BLOCK: usize = 2048;

const PLACE: u64 = 0x9E37_79B9_7F4A_7C15;
const FIRST: u64 = 0xBF58_476D_1CE4_E5B9;
const SECOND: u64 = 0x94D0_49BB_1331_11EB;

/// The summary of a run of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The digest of the bytes.
    pub digest: u64,
    /// How many numbers are infinite or NaN.
    pub nonfinite: u64,
    /// The least finite number; NaN if there is none.
    pub min: f64,
    /// The largest finite number; NaN if there is none.
    pub max: f64,
    /// The mean of the finite numbers, summed in double precision; NaN if there is none.
    pub mean: f64,
}

/// A word and its index, mixed so that every bit of it moves every higher bit and, folded, the lower ones.
#[inline(always)]
fn mixed(word: u64, place: u64) -> u64 {
    let mut x = (word ^ place.wrapping_mul(PLACE)).wrapping_mul(FIRST);
    x ^= x >> 32;
    x = x.wrapping_mul(SECOND);
    x ^ (x >> 29)
}

/// The sum over whole words of `bytes`, whose first word has the index `first`, and over a last one filled with zeros.
fn sum_of(bytes: &[u8], first: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sums = [0_u64; 4];
    let (fours, single) = words.as_chunks::<4>();
    let mut at = first;
    for four in fours {
        for (lane, word) in four.iter().enumerate() {
            let value = mixed(u64::from_le_bytes(*word), at.wrapping_add(lane as u64));
            sums[lane] = sums[lane].wrapping_add(value);
        }
        at = at.wrapping_add(4);
    }
    for word in single {
        sums[0] = sums[0].wrapping_add(mixed(u64::from_le_bytes(*word), at));
        at = at.wrapping_add(1);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        sums[0] = sums[0].wrapping_add(mixed(u64::from_le_bytes(last), at));
    }
    sums.iter().fold(0, |sum, &part| sum.wrapping_add(part))
}

/// The digest of a sum over `length` bytes.
fn finish(sum: u64, length: usize) -> u64 {
    mixed(sum ^ (length as u64).wrapping_mul(PLACE), 0)
}

/// The digest of `bytes`.
pub fn digest(bytes: &[u8]) -> u64 {
    finish(sum_of(bytes, 0), bytes.len())
}

/// The least, the largest and the sum of the finite numbers.
#[derive(Clone, Copy)]
struct ByteRange {
    min: f64,
    max: f64,
    sum: f64,
    finite: u64,
}

/// How many numbers are looked at side by side.
const LANES: usize = 16;

/// The loop over a block, in the precision of its numbers; the sum in double precision.
macro_rules! add_all {
    ($name:ident, $float:ty) => {
        #[inline(always)]
        fn $name<T: Copy>(&mut self, values: &[T], value: impl Fn(T) -> $float) {
            let (mut min, mut max) = ([<$float>::INFINITY; LANES], [<$float>::NEG_INFINITY; LANES]);
            let (mut sum, mut finite) = ([0.0_f64; LANES], [0.0_f64; LANES]);
            let mut add = |lane: usize, value: $float| {
                let is_finite = value.abs() < <$float>::INFINITY;
                let (kept, one) = if is_finite { (value, 1.0) } else { (0.0, 0.0) };
                let low = if is_finite { value } else { <$float>::INFINITY };
                let high = if is_finite { value } else { <$float>::NEG_INFINITY };
                sum[lane] += f64::from(kept);
                finite[lane] += f64::from(one as $float);
                min[lane] = if low < min[lane] { low } else { min[lane] };
                max[lane] = if high > max[lane] { high } else { max[lane] };
            };
            let (whole, rest) = values.as_chunks::<LANES>();
            for several in whole {
                for (lane, &item) in several.iter().enumerate() {
                    add(lane, value(item));
                }
            }
            for (lane, &item) in rest.iter().enumerate() {
                add(lane, value(item));
            }
            for lane in 0..LANES {
                self.min = self.min.min(f64::from(min[lane]));
                self.max = self.max.max(f64::from(max[lane]));
                self.sum += sum[lane];
                self.finite += finite[lane] as u64;
            }
        }
    };
}

impl ByteRange {
    const EMPTY: ByteRange =
        ByteRange { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, finite: 0 };

    add_all!(add_single, f32);
    add_all!(add_double, f64);

    fn summary(&self, digest: u64, count: u64) -> Summary {
        if self.finite == 0 {
            let nan = f64::NAN;
            return Summary { digest, nonfinite: count, min: nan, max: nan, mean: nan };
        }
        let mean = self.sum / self.finite as f64;
        Summary { digest, nonfinite: count - self.finite, min: self.min, max: self.max, mean }
    }
}

fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: elements have no padding; a byte has no alignment; the length is that of the slice.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Digest and range block by block. (Blocks are whole words, so that their sums add up to that of the whole.)
fn walk<T: Element>(values: &[T], mut range: impl FnMut(&[T])) -> u64 {
    let mut sum = 0_u64;
    for (number, block) in values.chunks(BLOCK).enumerate() {
        interrupt::check_every::<8>(number);
        let words = (number * BLOCK * size_of::<T>() / 8) as u64;
        sum = sum.wrapping_add(sum_of(bytes_of(block), words));
        range(block);
    }
    finish(sum, size_of_val(values))
}

/// The summary of `values`, which must lie in row-major order without gaps, else `None`. Minimum, maximum and mean of complex
/// numbers are those of their real and imaginary parts.
pub fn summary(values: &StridedRef<'_>) -> Option<Summary> {
    let mut range = ByteRange::EMPTY;
    let parts = if values.dtype().is_complex() { 2 } else { 1 };
    let count = (values.numel() * parts) as u64;
    let digest = for_dtype!(values.dtype(), stored, T => {
        let slice = values.as_slice::<T>()?;
        walk(slice, |block| {
            if T::DTYPE.is_complex() {
                range.add_double(block, |value| value.to_c128().re);
                range.add_double(block, |value| value.to_c128().im);
            } else if T::DTYPE == DType::F32 {
                range.add_single(block, |value| value.to_f64() as f32);
            } else {
                range.add_double(block, T::to_f64);
            }
        })
    }, else {
        // Elements that are two numbers in one byte are not read as numbers: only their bytes are
        // summed. SAFETY: a view of elements of one byte, any of which is a `u8`.
        let bytes = unsafe { StridedRef::new(values.ptr(), DType::U8, values.shape(), values.strides()) };
        walk(bytes.as_slice::<u8>()?, |_| ())
    });
    Some(range.summary(digest, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest by its definition, word by word.
    fn plainly(bytes: &[u8]) -> u64 {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().div_ceil(8) * 8, 0);
        let sum = padded.chunks(8).enumerate().fold(0_u64, |sum, (place, word)| {
            sum.wrapping_add(mixed(u64::from_le_bytes(word.try_into().unwrap()), place as u64))
        });
        finish(sum, bytes.len())
    }

    fn of<T: Element>(values: &[T]) -> Summary {
        let (sizes, strides) = ([values.len() as i64], [1]);
        // SAFETY: the live elements of the slice.
        let view = unsafe { StridedRef::new(values.as_ptr().cast(), T::DTYPE, &sizes, &strides) };
        summary(&view).unwrap()
    }

    #[test]
    fn digests_of_all_lengths_are_those_of_the_definition() {
        let bytes: Vec<u8> = (0..200_u32).map(|i| (i * 37 % 251) as u8).collect();
        for length in 0..bytes.len() {
            assert_eq!(digest(&bytes[..length]), plainly(&bytes[..length]), "{length}");
        }
        assert_ne!(digest(&bytes[..8]), digest(&bytes[..16]));
        assert_ne!(digest(&[0; 8]), digest(&[0; 9]));
    }

    #[test]
    fn blocks_add_up_to_the_whole() {
        let values: Vec<f32> = (0..3 * BLOCK + 5).map(|i| (i as f32).sin()).collect();
        assert_eq!(of(&values).digest, plainly(bytes_of(&values)));
        let bytes: Vec<u8> = (0..2 * BLOCK + 3).map(|i| i as u8).collect();
        assert_eq!(of(&bytes).digest, plainly(&bytes));
    }

    #[test]
    fn signs_and_places_change_the_digest() {
        let (a, b) = (of(&[1_f32, 2.0, 3.0, 4.0]), of(&[-1_f32, -2.0, -3.0, -4.0]));
        assert_ne!(a.digest, b.digest);
        assert_ne!(a.digest, of(&[2_f32, 1.0, 3.0, 4.0]).digest);
        assert_ne!(a.digest, of(&[3_f32, 4.0, 1.0, 2.0]).digest);
    }

    #[test]
    fn ranges_are_of_the_finite_numbers() {
        let s = of(&[1.0_f32, f32::NAN, -3.0, f32::INFINITY, 5.0, 0.0, 0.5, 0.5, 2.0]);
        assert_eq!((s.nonfinite, s.min, s.max), (2, -3.0, 5.0));
        assert!((s.mean - 6.0 / 7.0).abs() < 1e-12);
        let none = of(&[f64::NAN]);
        assert!(
            none.nonfinite == 1 && none.min.is_nan() && none.max.is_nan() && none.mean.is_nan()
        );
        assert!(of::<f32>(&[]).mean.is_nan() && of::<f32>(&[]).nonfinite == 0);
    }
}
