//! Norms of differences (`dist`), and slices whose norm is limited (`renorm`).

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::wrap_dim;
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&DIST, &RENORM, &RENORM_FACTOR];

fn check_float(name: &str, t: &Tensor) -> Result<()> {
    ensure!(
        t.dtype().is_differentiable(),
        not_implemented,
        "{name}: input dtype should be either floating point or complex. Got {} instead.",
        t.dtype().scalar_name()
    );
    Ok(())
}

/// The norm of order `p` of `self - other` over all elements, a 0-dimensional tensor. Shapes broadcast, dtypes promote.
/// Where the two are equal the gradient is 0.
#[op("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")]
impl Dist {
    fn composite(self_: &Tensor, other: &Tensor, p: Scalar) -> Result<Tensor> {
        let difference = self_.sub(other)?;
        check_float("norm()", &difference)?;
        difference.linalg_vector_norm(p, None, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let pair = |a: &[i64], b: &[i64]| {
            Sample::new([s.uniform(a, 0.2, 3.0).into(), s.uniform(b, -3.0, -0.2).into()])
        };
        let orders = [1.0, 0.0, 3.0, -1.0, f64::INFINITY, f64::NEG_INFINITY];
        let mut all: Vec<Sample> =
            orders.iter().map(|&p| pair(&[2, 3], &[3]).with("p", Scalar::Float(p))).collect();
        all.extend([pair(&[2, 1], &[1, 3]), pair(&[], &[]), pair(&[0], &[0])]);
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let integers = Sample::new([s.integers(&[2], 0, 5).into(), s.integers(&[2], 0, 5).into()]);
        let phrase = "norm(): input dtype should be either floating point or complex";
        let sizes = Sample::new([s.normal(&[3]).into(), s.normal(&[2]).into()]);
        vec![
            InvalidSample::new(integers, ErrorKind::NotImplemented, phrase),
            InvalidSample::new(sizes, ErrorKind::Runtime, "must match the size of tensor b (2)"),
        ]
    }
}

/// Scales down those slices along `dim` whose norm of order `p` is above `maxnorm`, so that it becomes `maxnorm`; the
/// others stay unchanged. Norms of half-precision slices are computed in single precision.
#[op("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", inplace = method, exact_out)]
impl Renorm {
    fn composite(self_: &Tensor, p: Scalar, dim: i64, maxnorm: Scalar) -> Result<Tensor> {
        let is_real = |s: Scalar| !matches!(s, Scalar::Complex(..));
        ensure!(is_real(p), runtime, "renorm: p must be real-valued");
        ensure!(p.to_f64() > 0.0, runtime, "renorm: non-positive-norm not supported");
        ensure!(is_real(maxnorm), runtime, "renorm: maxnorm must be real-valued");
        let limit = maxnorm.to_f64();
        ensure!(limit >= 0.0, runtime, "renorm: expected maxnorm to be >= 0 but got {limit}");
        ensure!(
            self_.ndim() > 1,
            runtime,
            "renorm: input needs at least 2 dimensions, got {} dimensions",
            self_.ndim()
        );
        let dim = wrap_dim(dim, self_.ndim())? as i64;
        check_float("renorm()", self_)?;
        let others: Vec<i64> = (0..self_.ndim() as i64).filter(|&d| d != dim).collect();
        let is_half = matches!(self_.dtype(), DType::F16 | DType::BF16);
        let dtype = is_half.then_some(DType::F32);
        let norm = self_.linalg_vector_norm_with(p, Some(&others), true, dtype)?;
        let factor = norm.renorm_factor(limit)?;
        self_.mul(&factor.to_dtype(self_.dtype().to_real())?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, p: f64, dim: i64, limit: f64| {
            Sample::new([
                t.into(),
                Scalar::Float(p).into(),
                dim.into(),
                Scalar::Float(limit).into(),
            ])
        };
        vec![
            sample(s.away_from_zero(&[3, 2]), 2.0, 0, 1.5),
            sample(s.away_from_zero(&[2, 3]), 1.0, -1, 2.0),
            sample(s.away_from_zero(&[2, 3]), f64::INFINITY, 0, 1.0),
            sample(s.away_from_zero(&[2, 3, 2]), 3.5, 1, 1.0),
            sample(s.away_from_zero(&[2, 2]), 2.0, 0, 0.0),
            sample(s.away_from_zero(&[2, 2]), 2.0, 0, 100.0),
            sample(s.normal(&[0, 3]), 2.0, 0, 1.0),
            sample(s.normal(&[2, 0]), 2.0, 0, 1.0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |t: Tensor, p: Scalar, dim: i64, limit: Scalar| {
            Sample::new([t.into(), p.into(), dim.into(), limit.into()])
        };
        let (one, imaginary) = (Scalar::Int(1), Scalar::Complex(0.0, 1.0));
        let matrix = |p, limit| of(s.normal(&[2, 3]), p, 0, limit);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let whole = of(s.integers(&[2, 3], 0, 5), one, 0, one);
        let (index, refused) = (ErrorKind::Index, ErrorKind::NotImplemented);
        vec![
            bad(matrix(Scalar::Int(0), one), "renorm: non-positive-norm not supported"),
            bad(matrix(imaginary, one), "renorm: p must be real-valued"),
            bad(matrix(one, imaginary), "renorm: maxnorm must be real-valued"),
            bad(matrix(one, Scalar::Int(-1)), "renorm: expected maxnorm to be >= 0 but got -1"),
            bad(matrix(one, Scalar::Float(f64::NAN)), "expected maxnorm to be >= 0 but got NaN"),
            bad(of(s.normal(&[3]), one, 0, one), "input needs at least 2 dimensions, got 1"),
            InvalidSample::new(of(s.normal(&[2, 3]), one, 2, one), index, "out of range"),
            InvalidSample::new(whole, refused, "should be either floating point or complex"),
        ]
    }
}

/// The factor by which `renorm` multiplies a slice of norm `self`: 1 where the norm is at most `maxnorm`, else
/// `maxnorm / (self + 1e-7)`; the small summand keeps rounding from leaving a slice above the limit.
#[op("_renorm_factor(Tensor self, float maxnorm) -> Tensor", internal, meta = float, method = renorm_factor, batch = pointwise,
     jvp = elementwise)]
impl RenormFactor {
    fn cpu(iter: &mut Iter, maxnorm: f64) -> pullback_kernels::Result<()> {
        elementwise::renorm_factor(iter, maxnorm)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor, maxnorm: f64) -> Result<Tensor> {
        let slope = result.div(&self_.plus(1e-7)?)?.neg()?;
        let is_within = self_.gt(&Tensor::wrapped(maxnorm)?)?.logical_not()?;
        grad.mul(&slope.masked_fill(&is_within, Scalar::Int(0))?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let sample = |t: Tensor, limit: f64| Sample::of(t).with("maxnorm", limit);
        vec![
            sample(s.uniform(&[2, 3], 0.1, 0.9), 2.0),
            sample(s.uniform(&[3], 1.1, 3.0), 1.0),
            sample(s.positive(&[]), 0.0),
        ]
    }
}
