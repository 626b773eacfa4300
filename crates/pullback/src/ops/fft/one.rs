//! Transforms along one dimension.

use super::input::{complex, floating, normalization, one_dim, resized};
use super::primitive::{complex as complex_sampler, real as real_sampler};
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&FFT_FFT, &FFT_IFFT, &FFT_RFFT, &FFT_IRFFT, &FFT_HFFT, &FFT_IHFFT];

/// How a function of one dimension was called.
type Call<'a> = (Option<i64>, i64, Option<&'a str>);

/// Of complex numbers, or of real ones whose whole spectrum is wanted.
fn to_complex(self_: &Tensor, (n, dim, norm): Call<'_>, forward: bool) -> Result<Tensor> {
    let input = floating(self_)?;
    let (dim, n) = one_dim(&input, n, dim, |size| size)?;
    let input = resized(&input, &[dim], &[n])?;
    let normalization = normalization(norm, forward)?;
    if input.dtype().is_complex() {
        return input.fft_c2c(&[dim], normalization, forward);
    }
    let spectrum = input.fft_r2c(&[dim], normalization, false)?;
    // (Of real numbers the inverse transform is the conjugate of the forward one.)
    if forward { Ok(spectrum) } else { spectrum.conj() }
}

/// Of real numbers to half of their spectrum.
fn from_real(self_: &Tensor, (n, dim, norm): Call<'_>, forward: bool) -> Result<Tensor> {
    ensure!(
        !self_.dtype().is_complex(),
        type_error,
        "{} expects a real input tensor, but got {}",
        if forward { "rfft" } else { "ihfft" },
        self_.dtype().scalar_name()
    );
    let input = floating(self_)?;
    let (dim, n) = one_dim(&input, n, dim, |size| size)?;
    let input = resized(&input, &[dim], &[n])?;
    let half = input.fft_r2c(&[dim], normalization(norm, forward)?, true)?;
    if forward { Ok(half) } else { half.conj() }
}

/// Of half of a spectrum to real numbers.
fn to_real(self_: &Tensor, (n, dim, norm): Call<'_>, forward: bool) -> Result<Tensor> {
    let input = complex(self_)?;
    let (dim, n) = one_dim(&input, n, dim, |size| 2 * (size - 1))?;
    let input = resized(&input, &[dim], &[n / 2 + 1])?;
    let normalization = normalization(norm, forward)?;
    // (The forward transform is the inverse one of the conjugates.)
    let input = if forward { input.conj_physical()? } else { input };
    input.fft_c2r(&[dim], normalization, n)
}

/// {TEXT}
#[op("fft_{NAME}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", module = "fft", out, autocast = fp32, method = METHOD,
     each(FftFft { NAME: fft, METHOD: fft_fft, TRANSFORM: to_complex, FORWARD: true, SAMPLES: samples_of_all, REFUSED: refused_by_all,
                   TEXT: "The discrete Fourier transform along `dim`: `X[k] = sum_j x[j] exp(-2 pi i j k / n)`. The input is cut off or followed by zeros \
                          so that it has `n` numbers there. `norm` \"backward\" (the default) has no factor, \"ortho\" one over the root of `n`, \"forward\" \
                          one over `n`. Real numbers give a complex spectrum." },
          FftIfft { NAME: ifft, METHOD: fft_ifft, TRANSFORM: to_complex, FORWARD: false, SAMPLES: samples_of_all, REFUSED: refused_by_all,
                    TEXT: "The inverse of `fft`: `x[j] = 1/n sum_k X[k] exp(2 pi i j k / n)`; for `norm` \"ortho\" the factor is one over the root of `n`, for \
                           \"forward\" there is none." },
          FftRfft { NAME: rfft, METHOD: fft_rfft, TRANSFORM: from_real, FORWARD: true, SAMPLES: samples_of_reals, REFUSED: refused_by_real,
                    TEXT: "The first half of the spectrum of real numbers, `n / 2 + 1` complex ones: the rest of what `fft` gives is its mirror image, \
                           conjugated." },
          FftIrfft { NAME: irfft, METHOD: fft_irfft, TRANSFORM: to_real, FORWARD: false, SAMPLES: samples_of_all, REFUSED: refused_by_half,
                     TEXT: "The inverse of `rfft`: `n` real numbers (`2 (m - 1)` unless given) of the first half of a spectrum, of which `m` numbers are there." },
          FftHfft { NAME: hfft, METHOD: fft_hfft, TRANSFORM: to_real, FORWARD: true, SAMPLES: samples_of_all, REFUSED: refused_by_half,
                    TEXT: "The spectrum, which is real, of a signal that is Hermitian: its first half is given, `n` numbers come out." },
          FftIhfft { NAME: ihfft, METHOD: fft_ihfft, TRANSFORM: from_real, FORWARD: false, SAMPLES: samples_of_reals, REFUSED: refused_by_real,
                     TEXT: "The inverse of `hfft`: the first half of the Hermitian signal whose spectrum these real numbers are." }))]
impl AlongOneDimension {
    fn composite(self_: &Tensor, n: Option<i64>, dim: i64, norm: Option<&str>) -> Result<Tensor> {
        TRANSFORM(self_, (n, dim, norm), FORWARD)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        REFUSED(s)
    }
}

/// Calls with inputs of this sampler: lengths that are even, odd, cut off and padded, factors, layouts, whole numbers.
fn samples_of(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 5])),
        Sample::of(s.normal(&[6])).with("norm", "ortho"),
        Sample::of(s.normal(&[4])).with("n", 7_i64).with("norm", "forward"),
        Sample::of(s.normal(&[2, 6])).with("n", 3_i64).with("norm", "backward"),
        Sample::of(s.transposed(3, 4)).with("dim", 0_i64),
        Sample::of(s.normal(&[2, 3, 2])).with("dim", -2_i64).with("n", 2_i64),
        Sample::of(s.normal(&[0, 3])),
        Sample::of(s.normal(&[3])).with("n", 1_i64),
        Sample::of(s.integers(&[4], -3, 9)),
    ]
}

fn samples_of_all(s: &Sampler) -> Vec<Sample> {
    [samples_of(s), samples_of(&complex_sampler(s))].concat()
}

fn samples_of_reals(s: &Sampler) -> Vec<Sample> {
    samples_of(&real_sampler(s))
}

/// What transforms of real numbers refuse.
fn refused_by_real(s: &Sampler) -> Vec<InvalidSample> {
    let complex = Sample::of(complex_sampler(s).normal(&[2]));
    let phrase = "fft expects a real input tensor";
    let mut all = refused_by_all(&real_sampler(s));
    all.push(InvalidSample::new(complex, ErrorKind::Type, phrase));
    all
}

/// What transforms of half a spectrum refuse: one number stands for none.
fn refused_by_half(s: &Sampler) -> Vec<InvalidSample> {
    let mut all = refused_by_all(s);
    let single = Sample::of(s.normal(&[1]));
    all.push(InvalidSample::new(single, ErrorKind::Runtime, "data points (0) specified"));
    all
}

/// What all of them refuse.
fn refused_by_all(s: &Sampler) -> Vec<InvalidSample> {
    let bad = |x: Tensor, name: &'static str, value: Value, kind, phrase| {
        InvalidSample::new(Sample::of(x).with(name, value), kind, phrase)
    };
    let x = || s.normal(&[2, 3]);
    let half = Sample::of(Sampler::new(DType::F16).normal(&[2]));
    let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
    let missing = ErrorKind::NotImplemented;
    vec![
        bad(x(), "n", Value::Int(0), runtime, "Invalid number of data points (0) specified"),
        bad(x(), "n", Value::Int(-1), runtime, "Invalid number of data points (-1) specified"),
        bad(x(), "norm", "mean".into(), runtime, "Invalid normalization mode: \"mean\""),
        bad(x(), "dim", Value::Int(2), index, "Dimension out of range"),
        bad(s.normal(&[]), "dim", Value::Int(-1), index, "but tensor has no dimensions"),
        InvalidSample::new(half, missing, "Unsupported dtype Half"),
    ]
}
