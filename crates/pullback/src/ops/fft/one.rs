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

/// The arguments of a function of one dimension: size, dimension, normalisation.
type FftArgs<'a> = (Option<i64>, i64, Option<&'a str>);

/// The transform of a complex tensor, or of a real one to its whole spectrum.
fn to_complex(self_: &Tensor, (n, dim, norm): FftArgs<'_>, forward: bool) -> Result<Tensor> {
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

/// The transform of a real tensor to half of its spectrum.
fn from_real(self_: &Tensor, (n, dim, norm): FftArgs<'_>, forward: bool) -> Result<Tensor> {
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

/// The transform of half of a spectrum to a real tensor.
fn to_real(self_: &Tensor, (n, dim, norm): FftArgs<'_>, forward: bool) -> Result<Tensor> {
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
                   TEXT: "The discrete Fourier transform along `dim`: `X[k] = sum_j x[j] exp(-2 pi i j k / n)`, complex. The \
                           input is cut off or padded with zeros to `n` elements. `norm` \"backward\" (the default) means no \
                           factor, \"ortho\" a factor of `1/sqrt(n)`, \"forward\" a factor of `1/n`. Errors: a length of 0, and \
                           another `norm`, are refused." },
          FftIfft { NAME: ifft, METHOD: fft_ifft, TRANSFORM: to_complex, FORWARD: false, SAMPLES: samples_of_all, REFUSED: refused_by_all,
                    TEXT: "The inverse discrete Fourier transform along `dim`: `x[j] = 1/n sum_k X[k] exp(2 pi i j k / n)`, \
                           complex. With `norm` \"ortho\" the factor is `1/sqrt(n)`, with \"forward\" there is none." },
          FftRfft { NAME: rfft, METHOD: fft_rfft, TRANSFORM: from_real, FORWARD: true, SAMPLES: samples_of_reals, REFUSED: refused_by_real,
                    TEXT: "The discrete Fourier transform of real input along `dim`: the first half of the spectrum, `n / 2 + \
                           1` complex elements (rounded down). The other half is its mirror image, conjugated. `n` and `norm` \
                           are those of `torch.fft.fft`." },
          FftIrfft { NAME: irfft, METHOD: fft_irfft, TRANSFORM: to_real, FORWARD: false, SAMPLES: samples_of_all, REFUSED: refused_by_half,
                     TEXT: "The inverse of `torch.fft.rfft`: the real signal of `n` elements whose spectrum has this first half. \
                           `n` is `2 (m - 1)` if it is not given, where `m` is the size of the input along `dim`." },
          FftHfft { NAME: hfft, METHOD: fft_hfft, TRANSFORM: to_real, FORWARD: true, SAMPLES: samples_of_all, REFUSED: refused_by_half,
                    TEXT: "The discrete Fourier transform, which is real, of a Hermitian signal, of which the first half is \
                           given along `dim`. The result has `n` elements, `2 (m - 1)` if it is not given, where `m` is the \
                           size of the input." },
          FftIhfft { NAME: ihfft, METHOD: fft_ihfft, TRANSFORM: from_real, FORWARD: false, SAMPLES: samples_of_reals, REFUSED: refused_by_real,
                     TEXT: "The inverse of `torch.fft.hfft`: the first half, `n / 2 + 1` complex elements (rounded down), of the \
                           Hermitian signal whose spectrum is the real input." }))]
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

/// Samples with inputs of this sampler: lengths that are even, odd, cut off and padded, normalisations, strides, integers.
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

/// Samples that transforms of real numbers refuse.
fn refused_by_real(s: &Sampler) -> Vec<InvalidSample> {
    let complex = Sample::of(complex_sampler(s).normal(&[2]));
    let phrase = "fft expects a real input tensor";
    let mut all = refused_by_all(&real_sampler(s));
    all.push(InvalidSample::new(complex, ErrorKind::Type, phrase));
    all
}

/// Samples that transforms of half a spectrum refuse: a number without dimensions has no half
/// spectrum.
fn refused_by_half(s: &Sampler) -> Vec<InvalidSample> {
    let mut all = refused_by_all(s);
    let single = Sample::of(s.normal(&[1]));
    all.push(InvalidSample::new(single, ErrorKind::Runtime, "data points (0) specified"));
    all
}

/// Samples that all transforms refuse.
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
