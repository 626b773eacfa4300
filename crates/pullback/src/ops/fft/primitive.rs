//! The three primitive ops that all transforms are made of.
//!
//! A transform is linear. Its gradient is its adjoint, which is the transform in the other direction with the same
//! factor; where only half of a spectrum is stored, the elements that stand for two, themselves and their mirror
//! images, count twice or half.

use super::strides::{after_complex, after_real, after_to_real};
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::wrap_dim;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&FFT_C2C, &FFT_R2C, &FFT_C2R];

type Positions = SmallVec<[usize; 5]>;

/// The dimensions `dim` counted from 0, without repetitions.
fn places(dim: &[i64], rank: usize) -> Result<Positions> {
    let mut out = Positions::new();
    for &dim in dim {
        let at = wrap_dim(dim, rank)?;
        ensure!(!out.contains(&at), runtime, "FFT dims must be unique");
        // (A tensor without dimensions takes 0 and -1, and has nothing to transform.)
        if rank > 0 {
            out.push(at);
        }
    }
    Ok(out)
}

/// Refuses dimensions of size 0.
pub(super) fn check_points(n: i64) -> Result<()> {
    ensure!(n > 0, runtime, "Invalid number of data points ({n}) specified");
    Ok(())
}

fn check_all_points(shape: &[i64], dims: &[usize]) -> Result<()> {
    dims.iter().try_for_each(|&dim| check_points(shape[dim]))
}

/// The factor that `normalization` stands for, for a transform of `dims` with these sizes: 1, `1/sqrt(n)` or `1/n`,
/// where `n` is the number of transformed elements.
fn factor(normalization: i64, shape: &[i64], dims: &[usize]) -> Result<f64> {
    let points: f64 = dims.iter().map(|&dim| shape[dim] as f64).product();
    Ok(match normalization {
        0 => 1.0,
        1 => 1.0 / points.sqrt(),
        2 => 1.0 / points,
        other => bail!(runtime, "Unsupported normalization type: {other}"),
    })
}

/// Refuses half precision, for which there is no kernel.
fn check_precision(dtype: DType) -> Result<()> {
    ensure!(
        !matches!(dtype, DType::F16 | DType::BF16 | DType::C32),
        not_implemented,
        "MKL FFT doesn't support tensors of type: {}",
        dtype.to_real().scalar_name()
    );
    Ok(())
}

fn check_complex(dtype: DType) -> Result<()> {
    ensure!(
        dtype.is_complex(),
        runtime,
        "Only supports complex dtypes, but found: {}",
        dtype.scalar_name()
    );
    check_precision(dtype)
}

fn spec_of(self_: &Tensor, shape: &[i64], dtype: DType, strides: Dims) -> TensorSpec {
    let spec = TensorSpec::of(shape, dtype).on(self_.device());
    TensorSpec { strides: Some(strides), ..spec }
}

/// The discrete Fourier transform of a complex tensor along `dim`: with `exp(-2 pi i j k / n)` if `forward`, else with
/// `exp(2 pi i j k / n)`. `normalization` is 0 for no factor, 1 for `1/sqrt(n)`, 2 for `1/n`, where `n` is the number
/// of transformed elements.
#[op("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", function_only, exact_out, node = "FftC2C",
     method = fft_c2c, jvp = linear, batch = along)]
impl FftC2c {
    fn meta(self_: &Tensor, dim: &[i64], normalization: i64) -> Result<TensorSpec> {
        check_complex(self_.dtype())?;
        let dims = places(dim, self_.ndim())?;
        check_all_points(self_.shape(), &dims)?;
        factor(normalization, self_.shape(), &dims)?;
        if dims.is_empty() {
            let strides = self_.strides_in(crate::MemoryFormat::Preserve)?;
            return Ok(spec_of(self_, self_.shape(), self_.dtype(), strides));
        }
        let strides = after_complex(self_.shape(), self_.strides(), &dims);
        Ok(spec_of(self_, self_.shape(), self_.dtype(), strides))
    }
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        dim: &[i64],
        normalization: i64,
        forward: bool,
        result: &Tensor,
    ) -> Result<()> {
        let dims = places(dim, self_.ndim())?;
        if dims.is_empty() {
            return result.copy_data(cpu, self_);
        }
        let scale = factor(normalization, self_.shape(), &dims)?;
        let mut out = result.view_mut(cpu);
        Ok(pullback_fft::complex_to_complex(&mut out, self_.view_ref(cpu), &dims, forward, scale)?)
    }
    fn vjp_self(grad: &Tensor, dim: &[i64], normalization: i64, forward: bool) -> Result<Tensor> {
        grad.fft_c2c(dim, normalization, !forward)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |x: Tensor, dim: &[i64], normalization: i64, forward: bool| {
            Sample::new([x.into(), dim.into(), normalization.into(), forward.into()])
        };
        let transposed = complex(s).normal(&[3, 2]).transpose(0, 1).expect("samples are small");
        vec![
            of(complex(s).normal(&[5]), &[0], 0, true),
            of(complex(s).normal(&[2, 3]), &[-1], 1, false),
            of(transposed, &[0], 2, true),
            of(complex(s).normal(&[2, 3, 4]), &[2, 0], 0, false),
            of(complex(s).normal(&[2]), &[], 0, true),
            of(complex(s).normal(&[]), &[], 0, true),
            of(complex(s).normal(&[0, 2]), &[1], 0, true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |x: Tensor, dim: &[i64], normalization: i64| {
            Sample::new([x.into(), dim.into(), normalization.into(), true.into()])
        };
        let x = || complex(s).normal(&[2, 3]);
        let half = Sampler::new(DType::C32).normal(&[2]);
        let (runtime, missing) = (ErrorKind::Runtime, ErrorKind::NotImplemented);
        vec![
            InvalidSample::new(of(real(s).normal(&[2]), &[0], 0), runtime, "Only supports complex"),
            InvalidSample::new(of(half, &[0], 0), missing, "doesn't support tensors of type: Half"),
            InvalidSample::new(of(x(), &[2], 0), ErrorKind::Index, "Dimension out of range"),
            InvalidSample::new(of(x(), &[0, -2], 0), runtime, "FFT dims must be unique"),
            InvalidSample::new(of(x(), &[0], 3), runtime, "Unsupported normalization type: 3"),
            InvalidSample::new(
                of(complex(s).normal(&[0, 2]), &[0], 0),
                runtime,
                "Invalid number of data points (0) specified",
            ),
        ]
    }
}

/// The forward discrete Fourier transform of a real tensor along `dim`. With `onesided` the last of these dimensions
/// has only the first half of the spectrum, `n / 2 + 1` elements, whose mirror image, conjugated, is the rest.
/// `normalization` is 0 for no factor, 1 for `1/sqrt(n)`, 2 for `1/n`.
#[op("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", function_only, exact_out, node = "FftR2C",
     method = fft_r2c, jvp = linear, batch = along)]
impl FftR2c {
    fn meta(self_: &Tensor, dim: &[i64], normalization: i64, onesided: bool) -> Result<TensorSpec> {
        ensure!(
            self_.dtype().is_floating_point(),
            type_error,
            "Only supports floating-point dtypes, but found: {}",
            self_.dtype().scalar_name()
        );
        check_precision(self_.dtype())?;
        let dims = places(dim, self_.ndim())?;
        let Some(&last) = dims.last() else {
            bail!(runtime, "a transform of real numbers needs a dimension, but dim is empty");
        };
        check_all_points(self_.shape(), &dims)?;
        factor(normalization, self_.shape(), &dims)?;
        let mut shape = Dims::from_slice(self_.shape());
        if onesided {
            shape[last] = shape[last] / 2 + 1;
        }
        let strides = after_real(&shape, self_.strides(), &dims);
        Ok(spec_of(self_, &shape, self_.dtype().to_complex(), strides))
    }
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        dim: &[i64],
        normalization: i64,
        result: &Tensor,
    ) -> Result<()> {
        let dims = places(dim, self_.ndim())?;
        let scale = factor(normalization, self_.shape(), &dims)?;
        let mut out = result.view_mut(cpu);
        Ok(pullback_fft::real_to_complex(&mut out, self_.view_ref(cpu), &dims, scale)?)
    }
    // The adjoint of the half spectrum is Re(sum_k g_k exp(2 pi i j k / n)) over that half; the inverse transform adds
    // the mirror image of each element, which doubles it.
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dim: &[i64],
        normalization: i64,
        onesided: bool,
    ) -> Result<Tensor> {
        let Some(&last) = dim.last().filter(|_| onesided) else {
            return grad.fft_c2c(dim, normalization, false)?.real();
        };
        let n = self_shape[wrap_dim(last, self_shape.len())?];
        let weighted = grad.mul(&mirrored_weights(grad, last, n, 0.5)?)?;
        weighted.fft_c2r(dim, normalization, n)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |x: Tensor, dim: &[i64], normalization: i64, onesided: bool| {
            Sample::new([x.into(), dim.into(), normalization.into(), onesided.into()])
        };
        let transposed = real(s).normal(&[3, 2]).transpose(0, 1).expect("samples are small");
        vec![
            of(real(s).normal(&[5]), &[0], 0, true),
            of(real(s).normal(&[6]), &[0], 1, true),
            of(real(s).normal(&[6]), &[-1], 2, false),
            of(transposed, &[1, 0], 0, true),
            of(real(s).normal(&[2, 3, 4]), &[0, -1], 1, true),
            of(real(s).normal(&[3, 3]), &[0, 1], 0, false),
            of(real(s).normal(&[2, 1]), &[1], 0, true),
            of(real(s).normal(&[0, 2]), &[1], 0, true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of =
            |x: Tensor, dim: &[i64]| Sample::new([x.into(), dim.into(), 0_i64.into(), true.into()]);
        let half = Sampler::new(DType::BF16).normal(&[2]);
        let (runtime, missing) = (ErrorKind::Runtime, ErrorKind::NotImplemented);
        vec![
            InvalidSample::new(
                of(complex(s).normal(&[2]), &[0]),
                ErrorKind::Type,
                "Only supports floating-point dtypes",
            ),
            InvalidSample::new(of(half, &[0]), missing, "support tensors of type: BFloat16"),
            InvalidSample::new(of(real(s).normal(&[2]), &[]), runtime, "dim is empty"),
            InvalidSample::new(of(real(s).normal(&[2, 2]), &[1, 1]), runtime, "must be unique"),
            InvalidSample::new(
                of(real(s).normal(&[2, 0]), &[1]),
                runtime,
                "Invalid number of data points (0) specified",
            ),
        ]
    }
}

/// The inverse discrete Fourier transform along `dim` to a real tensor. The last of these dimensions holds the first
/// half of a spectrum and has `last_dim_size` elements in the result; imaginary parts that the spectrum of a real
/// signal cannot have are ignored. `normalization` is 0 for no factor, 1 for `1/sqrt(n)`, 2 for `1/n`.
#[op("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", function_only, exact_out, node = "FftC2R",
     method = fft_c2r, jvp = linear, batch = along)]
impl FftC2r {
    fn meta(
        self_: &Tensor,
        dim: &[i64],
        normalization: i64,
        last_dim_size: i64,
    ) -> Result<TensorSpec> {
        check_complex(self_.dtype())?;
        let dims = places(dim, self_.ndim())?;
        let Some((&last, others)) = dims.split_last() else {
            bail!(runtime, "a transform to real numbers needs a dimension, but dim is empty");
        };
        check_points(last_dim_size)?;
        check_all_points(self_.shape(), others)?;
        let half = self_.shape()[last];
        ensure!(
            half == last_dim_size / 2 + 1,
            runtime,
            "a spectrum of {half} numbers is not the first half of that of {last_dim_size} real numbers"
        );
        let mut shape = Dims::from_slice(self_.shape());
        shape[last] = last_dim_size;
        factor(normalization, &shape, &dims)?;
        let strides = after_to_real((self_.shape(), &shape), self_.strides(), &dims);
        Ok(spec_of(self_, &shape, self_.dtype().to_real(), strides))
    }
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        dim: &[i64],
        normalization: i64,
        result: &Tensor,
    ) -> Result<()> {
        let dims = places(dim, self_.ndim())?;
        let scale = factor(normalization, result.shape(), &dims)?;
        let mut out = result.view_mut(cpu);
        Ok(pullback_fft::complex_to_real(&mut out, self_.view_ref(cpu), &dims, scale)?)
    }
    // Each inner element of the half stands for itself and for its mirror image.
    fn vjp_self(
        grad: &Tensor,
        dim: &[i64],
        normalization: i64,
        last_dim_size: i64,
    ) -> Result<Tensor> {
        let half = grad.fft_r2c(dim, normalization, true)?;
        let last = dim.last().copied().unwrap_or(0);
        half.mul(&mirrored_weights(&half, last, last_dim_size, 2.0)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |x: Tensor, dim: &[i64], normalization: i64, n: i64| {
            Sample::new([x.into(), dim.into(), normalization.into(), n.into()])
        };
        let transposed = complex(s).normal(&[3, 2]).transpose(0, 1).expect("samples are small");
        vec![
            of(complex(s).normal(&[3]), &[0], 0, 4),
            of(complex(s).normal(&[3]), &[0], 1, 5),
            of(complex(s).normal(&[2, 4]), &[-1], 2, 6),
            of(transposed, &[0, 1], 0, 5),
            of(complex(s).normal(&[2, 3, 4]), &[2, 1, 0], 2, 3),
            of(complex(s).normal(&[2, 1]), &[1], 0, 1),
            of(complex(s).normal(&[0, 2]), &[1], 0, 2),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |x: Tensor, dim: &[i64], n: i64| {
            Sample::new([x.into(), dim.into(), 0_i64.into(), n.into()])
        };
        let x = || complex(s).normal(&[2, 3]);
        let runtime = ErrorKind::Runtime;
        vec![
            InvalidSample::new(of(real(s).normal(&[2]), &[0], 2), runtime, "Only supports complex"),
            InvalidSample::new(of(x(), &[1], 0), runtime, "data points (0) specified"),
            InvalidSample::new(of(x(), &[], 2), runtime, "dim is empty"),
            InvalidSample::new(of(x(), &[1], 6), runtime, "3 numbers is not the first half"),
        ]
    }
}

/// Factors for the first half of the spectrum of `n` real elements along `dim` of `like`: `inner` for elements whose
/// mirror image is another one, 1 for the first and, if `n` is even, the last.
fn mirrored_weights(like: &Tensor, dim: i64, n: i64, inner: f64) -> Result<Tensor> {
    let half = n / 2 + 1;
    let spec = TensorSpec::of(&[half], like.dtype().to_real()).on(like.device());
    let weights = spec.full(Scalar::Float(inner))?;
    weights.narrow(0, 0, 1)?.fill_(Scalar::Int(1))?;
    if n % 2 == 0 {
        weights.narrow(0, half - 1, 1)?.fill_(Scalar::Int(1))?;
    }
    let at = wrap_dim(dim, like.ndim())?;
    let mut shape = Dims::from_elem(1, like.ndim() - at);
    shape[0] = half;
    weights.view(&shape)
}

/// A sampler of complex numbers, in single precision if `s` is.
pub(in crate::ops) fn complex(s: &Sampler) -> Sampler {
    Sampler::new(real(s).dtype.to_complex())
}

/// A sampler of real numbers, in single precision if `s` is.
pub(in crate::ops) fn real(s: &Sampler) -> Sampler {
    let is_single = matches!(s.dtype, DType::F32 | DType::C64);
    Sampler::new(if is_single { DType::F32 } else { DType::F64 })
}
