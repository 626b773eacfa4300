//! The transform of one line, whatever its kind.

use num_complex::Complex;
use realfft::{ComplexToReal, RealToComplex};
use rustfft::{Fft, FftNum};
use std::sync::Arc;

/// A transform of lines of numbers `S` to lines of numbers `D`, computed in numbers of type `T`.
pub(crate) trait Line<S, D, T>: Send + Sync {
    /// The numbers of a line before and after.
    fn lengths(&self) -> (usize, usize);
    /// The complex numbers that [`Line::run`] needs as a work area.
    fn scratch(&self) -> usize;
    /// Whether [`Line::run`] takes several lines one after the other.
    fn takes_many(&self) -> bool {
        false
    }
    /// Transforms `input`, which is lost, into `output`.
    fn run(&self, input: &mut [S], output: &mut [D], scratch: &mut [Complex<T>]);
}

/// Complex numbers.
pub(crate) struct Full<T>(pub(crate) Arc<dyn Fft<T>>);

impl<T: FftNum> Line<Complex<T>, Complex<T>, T> for Full<T> {
    fn lengths(&self) -> (usize, usize) {
        (self.0.len(), self.0.len())
    }
    fn scratch(&self) -> usize {
        self.0.get_outofplace_scratch_len()
    }
    fn takes_many(&self) -> bool {
        true
    }
    fn run(&self, input: &mut [Complex<T>], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        self.0.process_outofplace_with_scratch(input, output, scratch);
    }
}

/// Real numbers to the first half of their spectrum (`n / 2 + 1` numbers), or to the whole of it: what follows the half is its
/// mirror image, conjugated.
pub(crate) struct Half<T> {
    pub(crate) plan: Arc<dyn RealToComplex<T>>,
    pub(crate) is_whole: bool,
}

impl<T: FftNum> Line<T, Complex<T>, T> for Half<T> {
    fn lengths(&self) -> (usize, usize) {
        let n = self.plan.len();
        (n, if self.is_whole { n } else { n / 2 + 1 })
    }
    fn scratch(&self) -> usize {
        self.plan.get_scratch_len()
    }
    fn run(&self, input: &mut [T], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let n = input.len();
        let half = n / 2 + 1;
        let (first, rest) = output.split_at_mut(half);
        let done = self.plan.process_with_scratch(input, first, scratch);
        debug_assert!(done.is_ok(), "the lengths are the plan's");
        for (k, mirrored) in rest.iter_mut().enumerate() {
            *mirrored = first[n - half - k].conj();
        }
    }
}

/// The first half of a spectrum to real numbers. The imaginary parts of its first number and, of an even length, of its last
/// are taken as zero, as the spectrum of real numbers has them.
pub(crate) struct ToReal<T>(pub(crate) Arc<dyn ComplexToReal<T>>);

impl<T: FftNum> Line<Complex<T>, T, T> for ToReal<T> {
    fn lengths(&self) -> (usize, usize) {
        (self.0.len() / 2 + 1, self.0.len())
    }
    fn scratch(&self) -> usize {
        self.0.get_scratch_len()
    }
    fn run(&self, input: &mut [Complex<T>], output: &mut [T], scratch: &mut [Complex<T>]) {
        let last = input.len() - 1;
        input[0].im = T::zero();
        if output.len().is_multiple_of(2) {
            input[last].im = T::zero();
        }
        let done = self.0.process_with_scratch(input, output, scratch);
        debug_assert!(done.is_ok(), "the lengths are the plan's, and the ends are real");
    }
}
