//! The frequencies of a spectrum, and shifts of its elements.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::factory::{arange_start_with, arange_with};
use crate::ops::shape::join::cat;
use crate::tensor::promote::default_dtype;
use crate::tensor::shape::wrap_own_dim;
use crate::{DType, Device, Dims, ErrorKind, Layout, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&FFT_FFTFREQ, &FFT_RFFTFREQ, &FFT_FFTSHIFT, &FFT_IFFTSHIFT];

/// The dtype of frequencies.
fn frequency_dtype(name: &str, dtype: Option<DType>) -> Result<DType> {
    let dtype = dtype.unwrap_or_else(default_dtype);
    ensure!(
        dtype.is_differentiable(),
        runtime,
        "{name} requires a floating point or complex dtype"
    );
    Ok(dtype)
}

/// Refuses negative sizes with the error of tensor factories.
fn check_size(n: i64) -> Result<()> {
    ensure!(n >= 0, runtime, "Trying to create tensor with negative dimension {n}: [{n}]");
    Ok(())
}

/// The frequencies of the elements of the result of `torch.fft.fft`: `0, 1, .., -2, -1` over `n d`, where `d` is the
/// distance of samples. The negative frequencies are the second half.
#[op("fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     module = "fft", out, not_differentiable, method = fft_fftfreq)]
impl FftFftfreq {
    fn composite(
        n: i64,
        d: f64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        let dtype = frequency_dtype("fftfreq", dtype)?;
        check_size(n)?;
        let from = |start: i64, end: i64| {
            let (start, end) = (Scalar::Int(start), Scalar::Int(end));
            arange_start_with(start, end, Some(dtype), layout, device, pin_memory)
        };
        let whole = cat(&[from(0, n - n / 2)?, from(-(n / 2), 0)?], 0)?;
        whole.times(Scalar::Float(1.0 / (n as f64 * d)))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        frequency_samples()
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let mut all = refused_frequencies("fftfreq requires a floating point or complex dtype");
        let negative = Sample::new([Value::Int(-1)]);
        let phrase = "Trying to create tensor with negative dimension -1: [-1]";
        all.push(InvalidSample::new(negative, ErrorKind::Runtime, phrase));
        all
    }
}

/// The frequencies of the elements of the result of `torch.fft.rfft`: `0, 1, .., n / 2` over `n d`, where `d` is the
/// distance of samples.
#[op("fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     module = "fft", out, not_differentiable, method = fft_rfftfreq)]
impl FftRfftfreq {
    fn composite(
        n: i64,
        d: f64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        let dtype = frequency_dtype("rfftfreq", dtype)?;
        let size = n / 2 + 1;
        check_size(size)?;
        let whole = arange_with(Scalar::Int(size), Some(dtype), layout, device, pin_memory)?;
        whole.times(Scalar::Float(1.0 / (n as f64 * d)))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        frequency_samples()
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let mut all = refused_frequencies("rfftfreq requires a floating point or complex dtype");
        let negative = Sample::new([Value::Int(-4)]);
        let phrase = "Trying to create tensor with negative dimension -1: [-1]";
        all.push(InvalidSample::new(negative, ErrorKind::Runtime, phrase));
        all
    }
}

/// The tensor rolled along `dim` (all dimensions if `None`) by the part of each size that `part` gives.
fn shifted(self_: &Tensor, dim: Option<&[i64]>, part: impl Fn(i64) -> i64) -> Result<Tensor> {
    let all: Dims = (0..self_.ndim() as i64).collect();
    let dims = dim.unwrap_or(&all);
    let shift = |&dim: &i64| Ok(part(self_.shape()[wrap_own_dim(dim, self_.ndim())?]));
    let shifts = dims.iter().map(shift).collect::<Result<Dims>>()?;
    self_.roll(&shifts, dims)
}

/// A spectrum with the zero frequency moved to the centre: rolled by half of each size along `dim`, or along all
/// dimensions if `None`.
#[op("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", module = "fft", method = fft_fftshift)]
impl FftFftshift {
    fn composite(self_: &Tensor, dim: Option<&[i64]>) -> Result<Tensor> {
        shifted(self_, dim, |size| size / 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        shift_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_shifts(s)
    }
}

/// The inverse of `torch.fft.fftshift`, from which it differs where a size is odd.
#[op("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", module = "fft", method = fft_ifftshift)]
impl FftIfftshift {
    fn composite(self_: &Tensor, dim: Option<&[i64]>) -> Result<Tensor> {
        shifted(self_, dim, |size| size - size / 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        shift_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_shifts(s)
    }
}

fn frequency_samples() -> Vec<Sample> {
    let of = |n: i64| Sample::new([n.into()]).without_gradient();
    vec![
        of(5),
        of(4).with("d", 0.5).with("dtype", DType::F64),
        of(0),
        of(1).with("dtype", DType::F16),
    ]
}

fn refused_frequencies(phrase: &'static str) -> Vec<InvalidSample> {
    let of = |dtype: DType| Sample::new([Value::Int(4)]).with("dtype", dtype);
    let complex = "\"arange_cpu\" not implemented for 'ComplexFloat'";
    vec![
        InvalidSample::new(of(DType::I32), ErrorKind::Runtime, phrase),
        InvalidSample::new(of(DType::C64), ErrorKind::NotImplemented, complex),
    ]
}

fn shift_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[5])),
        Sample::of(s.normal(&[2, 3])),
        Sample::of(s.transposed(4, 3)).with("dim", [-1]),
        Sample::of(s.normal(&[3, 2])).with("dim", [0, 0]),
        Sample::of(s.normal(&[0, 3])),
    ]
}

fn refused_shifts(s: &Sampler) -> Vec<InvalidSample> {
    let with = |x: Tensor, dim: &[i64]| Sample::of(x).with("dim", dim);
    let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
    vec![
        InvalidSample::new(Sample::of(s.normal(&[])), runtime, "`shifts` required"),
        InvalidSample::new(with(s.normal(&[2]), &[]), runtime, "`shifts` required"),
        InvalidSample::new(with(s.normal(&[]), &[-1]), index, "tensor has no dimensions"),
        InvalidSample::new(with(s.normal(&[2, 3]), &[2]), index, "Dimension out of range"),
    ]
}
