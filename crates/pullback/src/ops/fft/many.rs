//! Transforms along several dimensions: those that `dim` lists, the last two (`fft2` and the other functions of two
//! dimensions), or all.

use super::input::{complex, floating, grid, normalization, resized};
use super::primitive::{complex as complex_sampler, real as real_sampler};
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &FFT_FFT2,
    &FFT_IFFT2,
    &FFT_RFFT2,
    &FFT_IRFFT2,
    &FFT_HFFT2,
    &FFT_IHFFT2,
    &FFT_FFTN,
    &FFT_IFFTN,
    &FFT_RFFTN,
    &FFT_IRFFTN,
    &FFT_HFFTN,
    &FFT_IHFFTN,
];

/// The arguments of a function of several dimensions: sizes, dimensions, normalisation.
type FftnArgs<'a> = (Option<&'a [i64]>, Option<&'a [i64]>, Option<&'a str>);

/// The transform of a tensor that is converted to a complex dtype.
fn to_complex(self_: &Tensor, (s, dim, norm): FftnArgs<'_>, forward: bool) -> Result<Tensor> {
    let input = complex(self_)?;
    let grid = grid(&input, s, dim)?;
    let input = resized(&input, &grid.dims, &grid.sizes)?;
    input.fft_c2c(&grid.dims, normalization(norm, forward)?, forward)
}

fn forward(self_: &Tensor, call: FftnArgs<'_>) -> Result<Tensor> {
    to_complex(self_, call, true)
}

fn inverse(self_: &Tensor, call: FftnArgs<'_>) -> Result<Tensor> {
    to_complex(self_, call, false)
}

/// The transform of a real tensor to half of its spectrum.
fn from_real(self_: &Tensor, (s, dim, norm): FftnArgs<'_>) -> Result<Tensor> {
    ensure!(
        !self_.dtype().is_complex(),
        type_error,
        "rfftn expects a real-valued input tensor, but got {}",
        self_.dtype().scalar_name()
    );
    let input = floating(self_)?;
    let grid = grid(&input, s, dim)?;
    grid.check_any("rfftn")?;
    let input = resized(&input, &grid.dims, &grid.sizes)?;
    input.fft_r2c(&grid.dims, normalization(norm, true)?, true)
}

/// The transform of half of a spectrum to a real tensor.
fn to_real(self_: &Tensor, (s, dim, norm): FftnArgs<'_>) -> Result<Tensor> {
    let input = complex(self_)?;
    let grid = grid(&input, s, dim)?;
    grid.check_any("irfftn")?;
    let (grid, n) = grid.halved(&input, s)?;
    let input = resized(&input, &grid.dims, &grid.sizes)?;
    input.fft_c2r(&grid.dims, normalization(norm, false)?, n)
}

/// The spectrum of Hermitian signals: a forward transform along all but the last dimension, then, along the last, of
/// half a signal.
fn hermitian(self_: &Tensor, (s, dim, norm): FftnArgs<'_>) -> Result<Tensor> {
    let input = complex(self_)?;
    let grid = grid(&input, s, dim)?;
    grid.check_any("hfftn")?;
    let (grid, n) = grid.halved(&input, s)?;
    let input = resized(&input, &grid.dims, &grid.sizes)?;
    let normalization = normalization(norm, true)?;
    let (others, last) = grid.dims.split_at(grid.dims.len() - 1);
    let input =
        if others.is_empty() { input } else { input.fft_c2c(others, normalization, true)? };
    input.conj_physical()?.fft_c2r(last, normalization, n)
}

/// The inverse of [`hermitian`].
fn inverse_hermitian(self_: &Tensor, (s, dim, norm): FftnArgs<'_>) -> Result<Tensor> {
    let input = floating(self_)?;
    let grid = grid(&input, s, dim)?;
    grid.check_any("ihfftn")?;
    let input = resized(&input, &grid.dims, &grid.sizes)?;
    let normalization = normalization(norm, false)?;
    let (others, last) = grid.dims.split_at(grid.dims.len() - 1);
    let half = input.fft_r2c(last, normalization, true)?;
    if others.is_empty() {
        return half.conj();
    }
    half.conj_physical()?.fft_c2c(others, normalization, false)
}

/// {TEXT}
#[op("fft_{NAME}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", module = "fft", out, CAST,
     each(FftFft2 { NAME: fft, CAST: autocast = fp32, TRANSFORM: forward, IS_REAL: false,
                    TEXT: "The discrete Fourier transform along two dimensions `dim`, the last two by default; `s` are the sizes that the input is cut off or padded with zeros to. `norm` is that of `torch.fft.fft`." },
          FftIfft2 { NAME: ifft, CAST: autocast = fp32, TRANSFORM: inverse, IS_REAL: false,
                     TEXT: "The inverse discrete Fourier transform along two dimensions `dim`, the last two by default: the inverse of `torch.fft.fft2`." },
          FftRfft2 { NAME: rfft, CAST: autocast = fp32, TRANSFORM: from_real, IS_REAL: true,
                     TEXT: "The discrete Fourier transform of real input along two dimensions `dim`; the last of these has the first half of the spectrum only." },
          FftIrfft2 { NAME: irfft, CAST: autocast = fp32, TRANSFORM: to_real, IS_REAL: false,
                      TEXT: "The inverse of `torch.fft.rfft2`: the real signal whose spectrum has this first half along the last of the dimensions `dim`." },
          FftHfft2 { NAME: hfft, CAST:, TRANSFORM: hermitian, IS_REAL: false,
                     TEXT: "The discrete Fourier transform, which is real, of a Hermitian signal along two dimensions `dim`, of which the last holds the first half of the signal." },
          FftIhfft2 { NAME: ihfft, CAST:, TRANSFORM: inverse_hermitian, IS_REAL: true,
                      TEXT: "The inverse of `torch.fft.hfft2`: the first half, along the last of the dimensions `dim`, of the Hermitian signal whose spectrum is the real input." }))]
impl FftPair {
    fn composite(
        self_: &Tensor,
        s: Option<&[i64]>,
        dim: &[i64],
        norm: Option<&str>,
    ) -> Result<Tensor> {
        TRANSFORM(self_, (s, Some(dim), norm))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let samplers = samplers(s, IS_REAL);
        samplers.iter().flat_map(pair_samples).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_pairs(&samplers(s, IS_REAL)[0])
    }
}

/// {TEXT}
#[op("fft_{NAME}(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", module = "fft", out, CAST,
     each(FftFftn { NAME: fftn, CAST: autocast = fp32, TRANSFORM: forward, IS_REAL: false,
                    MORE: vec![Sample::of(s.normal(&[])), Sample::of(s.normal(&[2])).with("dim", Value::Ints(Box::default()))],
                    REFUSED: Vec::new(),
                    TEXT: "The discrete Fourier transform along the dimensions `dim`, by default the last ones, as many as `s` has, or all. \
                           `s` are the sizes that the input is cut off or padded with zeros to; -1 keeps a size." },
          FftIfftn { NAME: ifftn, CAST: autocast = fp32, TRANSFORM: inverse, IS_REAL: false, MORE: Vec::new(),
                     REFUSED: Vec::new(),
                     TEXT: "The inverse discrete Fourier transform along the dimensions `dim`: the inverse of `torch.fft.fftn`." },
          FftRfftn { NAME: rfftn, CAST: autocast = fp32, TRANSFORM: from_real, IS_REAL: true, MORE: Vec::new(),
                     REFUSED: vec![of_complex(s, "rfftn expects a real-valued input tensor"), without_dims(s, "rfftn must transform at least one axis")],
                     TEXT: "The discrete Fourier transform of real input along the dimensions `dim`; the last of these has the first half of the spectrum only." },
          FftIrfftn { NAME: irfftn, CAST: autocast = fp32, TRANSFORM: to_real, IS_REAL: false, MORE: Vec::new(),
                      REFUSED: vec![without_dims(s, "irfftn must transform at least one axis")],
                      TEXT: "The inverse of `torch.fft.rfftn`: the real signal whose spectrum has this first half. The last size is `2 (m - 1)` by default, where `m` is that of the input." },
          FftHfftn { NAME: hfftn, CAST:, TRANSFORM: hermitian, IS_REAL: false, MORE: Vec::new(),
                     REFUSED: vec![without_dims(s, "hfftn must transform at least one axis")],
                     TEXT: "The discrete Fourier transform, which is real, of a Hermitian signal along the dimensions `dim`, of which the last holds the first half of the signal." },
          FftIhfftn { NAME: ihfftn, CAST:, TRANSFORM: inverse_hermitian, IS_REAL: true,
                      MORE: vec![Sample::of(real_sampler(s).normal(&[2, 4])).with("dim", [1])],
                      REFUSED: vec![of_complex(s, "Only supports floating-point dtypes"), without_dims(s, "ihfftn must transform at least one axis")],
                      TEXT: "The inverse of `torch.fft.hfftn`: the first half, along the last of the dimensions `dim`, of the Hermitian signal whose spectrum is the real input." }))]
impl FftMany {
    fn composite(
        self_: &Tensor,
        s: Option<&[i64]>,
        dim: Option<&[i64]>,
        norm: Option<&str>,
    ) -> Result<Tensor> {
        TRANSFORM(self_, (s, dim, norm))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let samplers = samplers(s, IS_REAL);
        let more: Vec<Sample> = MORE;
        samplers.iter().flat_map(many_samples).chain(more).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let more: Vec<InvalidSample> = REFUSED;
        refused_many(&samplers(s, IS_REAL)[0]).into_iter().chain(more).collect()
    }
}

/// The samplers of inputs: real ones, or those of the given dtype and complex ones.
fn samplers(s: &Sampler, is_real: bool) -> Vec<Sampler> {
    if is_real { vec![real_sampler(s)] } else { vec![Sampler::new(s.dtype), complex_sampler(s)] }
}

fn of_complex(s: &Sampler, phrase: &'static str) -> InvalidSample {
    bad(complex_sampler(s).normal(&[2]), &[], ErrorKind::Type, phrase)
}

/// Samples for the functions of two dimensions.
fn pair_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3])),
        Sample::of(s.transposed(4, 3)).with("norm", "ortho"),
        Sample::of(s.normal(&[2, 3, 3])).with("s", [4, 2]).with("dim", [2, 0]),
        Sample::of(s.normal(&[3, 4])).with("dim", [1]).with("norm", "forward"),
        Sample::of(s.integers(&[2, 2], -3, 9)),
    ]
}

/// Samples for the functions of any number of dimensions.
fn many_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3, 2])),
        Sample::of(s.transposed(4, 3)).with("norm", "ortho"),
        Sample::of(s.normal(&[2, 3, 3])).with("s", [-1, 2]),
        Sample::of(s.normal(&[3, 2, 2])).with("s", [2, 5]).with("dim", [-1, 0]),
        Sample::of(s.normal(&[3, 3])).with("dim", [0]).with("norm", "forward"),
        Sample::of(s.normal(&[0, 2])).with("dim", [1]),
        Sample::of(s.integers(&[2, 2], -3, 9)),
    ]
}

fn bad(
    x: Tensor,
    with: &[(&'static str, Value)],
    kind: ErrorKind,
    phrase: &'static str,
) -> InvalidSample {
    let call =
        with.iter().fold(Sample::of(x), |call, (name, value)| call.with(name, value.clone()));
    InvalidSample::new(call, kind, phrase)
}

fn without_dims(s: &Sampler, phrase: &'static str) -> InvalidSample {
    let none = [("dim", Value::Ints(Box::default()))];
    bad(real_sampler(s).normal(&[2]), &none, ErrorKind::Runtime, phrase)
}

/// Invalid samples for the functions of any number of dimensions.
fn refused_many(s: &Sampler) -> Vec<InvalidSample> {
    let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
    let x = || s.normal(&[3, 4]);
    vec![
        bad(x(), &[("dim", [0, -2].into())], runtime, "FFT dims must be unique"),
        bad(x(), &[("dim", [2].into())], index, "Dimension out of range"),
        bad(x(), &[("s", [0, 2].into())], runtime, "Invalid number of data points (0) specified"),
        bad(
            x(),
            &[("s", [1, 2, 3].into())],
            runtime,
            "Got shape with 3 values but input tensor only has 2 dimensions.",
        ),
        bad(
            x(),
            &[("s", [1, 2].into()), ("dim", [0].into())],
            runtime,
            "When given, dim and shape arguments must have the same length",
        ),
        bad(x(), &[("norm", "max".into())], runtime, "Invalid normalization mode: \"max\""),
        bad(s.normal(&[2, 0]), &[], runtime, "Invalid number of data points (0) specified"),
    ]
}

/// Invalid samples for the functions of two dimensions.
fn refused_pairs(s: &Sampler) -> Vec<InvalidSample> {
    let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
    let x = || s.normal(&[3, 4]);
    vec![
        bad(x(), &[("dim", [1, 1].into())], runtime, "FFT dims must be unique"),
        bad(x(), &[("s", [4].into())], runtime, "must have the same length"),
        bad(x(), &[("norm", "max".into())], runtime, "Invalid normalization mode: \"max\""),
        bad(s.normal(&[5]), &[], index, "Dimension out of range"),
        bad(s.normal(&[]), &[], index, "Dimension specified as -2 but tensor has no dimensions"),
        bad(s.normal(&[0, 2]), &[], runtime, "Invalid number of data points (0) specified"),
    ]
}
