//! The normal distribution and its relatives, incomplete and multivariate gamma functions, zeta, and functions made of logarithms.
//!
//! Values and bounds are in the kernels' module `special`. Bessel's functions are in `bessel`, orthogonal polynomials in
//! `polynomial`, second names of other ops in `special_alias`.

use super::arithmetic::by_both;
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::{DType, Error, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, PI};

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SPECIAL_ERFCX,
    &ERFINV,
    &SPECIAL_NDTR,
    &SPECIAL_LOG_NDTR,
    &SPECIAL_NDTRI,
    &SPECIAL_ENTR,
    &LOGIT,
    &LOGIT_BACKWARD,
    &SINC,
    &SPECIAL_XLOG1PY,
    &SPECIAL_XLOG1PY_OF,
    &SPECIAL_XLOG1PY_BY,
    &SPECIAL_ZETA,
    &SPECIAL_ZETA_OF,
    &SPECIAL_ZETA_BY,
    &IGAMMA,
    &IGAMMAC,
    &MVLGAMMA,
    &LOGADDEXP2,
];

/// The scaled complementary error function, `e^(x²) erfc(x)`: infinite far below 0. Halves are refused.
#[op("special_erfcx(Tensor self) -> Tensor", module = "special", out, meta = float, cpu = erfcx, batch = pointwise,
     jvp = elementwise, samples = unary)]
impl SpecialErfcx {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.mul(result)?.times(2)?.plus(-FRAC_2_SQRT_PI)?)
    }
}

/// The inverse of the error function: infinite at ±1, NaN beyond. Integers give the default floating dtype.
#[op("erfinv(Tensor self) -> Tensor", inplace = method, out, meta = float, cpu = erfinv, batch = pointwise, jvp = elementwise,
     samples = unary_unit, sparse = values)]
impl Erfinv {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.mul(result)?.exp()?.over(FRAC_2_SQRT_PI)?)
    }
}

/// The normal distribution: the probability that a normal number is at most `self`. Integers give the default floating dtype.
#[op("special_ndtr(Tensor self) -> Tensor", module = "special", out, meta = float, cpu = ndtr, batch = pointwise, jvp = elementwise,
     samples = unary)]
impl SpecialNdtr {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.mul(self_)?.times(-0.5)?.exp()?.times(1.0 / (2.0 * PI).sqrt())?)
    }
}

/// The logarithm of the normal distribution, accurate far below 0 too. Halves are refused.
#[op("special_log_ndtr(Tensor self) -> Tensor", module = "special", out, meta = float, cpu = log_ndtr, batch = pointwise,
     jvp = elementwise, samples = unary)]
impl SpecialLogNdtr {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        // The density over the distribution, both of which may vanish: their common factor is left out.
        grad.times((2.0 / PI).sqrt())?.div(&self_.times(-FRAC_1_SQRT_2)?.special_erfcx()?)
    }
}

/// The inverse of the normal distribution: infinite at 0 and 1, NaN outside. Halves are refused.
#[op("special_ndtri(Tensor self) -> Tensor", module = "special", out, meta = float, cpu = ndtri, batch = pointwise,
     jvp = elementwise)]
impl SpecialNdtri {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.mul(result)?.times(0.5)?.exp()?.times((2.0 * PI).sqrt())?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        probabilities(s)
    }
}

fn probabilities(s: &Sampler) -> Vec<Sample> {
    s.shapes().iter().map(|shape| Sample::of(s.uniform(shape, 0.1, 0.9))).collect()
}

/// `-self ln(self)`, a term of an entropy: 0 at 0 (where the gradient is infinite), negative infinity below (where it is NaN).
#[op("special_entr(Tensor self) -> Tensor", module = "special", out, meta = float, cpu = entr, batch = pointwise,
     jvp = elementwise, samples = unary_positive)]
impl SpecialEntr {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.log()?.plus(1)?.neg()?)
    }
}

/// `ln(x / (1 - x))` of `self`, limited to `eps..=1 - eps` if `eps` is given and not negative: infinite at 0 and 1, NaN outside, as is
/// the gradient there; where the limits hold it is 0.
#[op("logit(Tensor self, float? eps=None) -> Tensor", inplace, out, meta = float, batch = pointwise, jvp = elementwise)]
impl Logit {
    fn cpu(iter: &mut Iter, eps: Option<f64>) -> pullback_kernels::Result<()> {
        elementwise::logit(iter, eps)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, eps: Option<f64>) -> Result<Tensor> {
        if !crate::autograd::needs_ops([Some(grad), Some(self_)]) {
            return grad.logit_backward(self_, eps);
        }
        let eps = eps.filter(|&eps| eps >= 0.0);
        let low = eps.unwrap_or(0.0);
        let outside = self_
            .lt(&Tensor::wrapped(low)?)?
            .logical_or(&self_.gt(&Tensor::wrapped(1.0 - low)?)?)?;
        let slope = grad.div(&self_.mul(&self_.neg()?.plus(1)?)?)?;
        slope.masked_fill(&outside, Scalar::Float(if eps.is_some() { 0.0 } else { f64::NAN }))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = probabilities(s);
        let spread = |shape: &[i64]| Sample::of(s.distinct(shape));
        out.push(spread(&[5]).with("eps", 0.15));
        out.push(Sample::of(s.uniform(&[2, 2], 0.2, 0.8)).with("eps", -1.0));
        out
    }
}

/// The gradient of `logit`. It records nothing.
#[op("_logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", internal, not_differentiable, meta = broadcast,
     batch = pointwise, method = logit_backward)]
impl LogitBackward {
    fn cpu(iter: &mut Iter, eps: Option<f64>) -> pullback_kernels::Result<()> {
        elementwise::logit_backward(iter, eps)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let pair = |shape: &[i64]| {
            Sample::new([s.normal(shape).into(), s.uniform(shape, 0.1, 0.9).into()])
        };
        vec![pair(&[2, 3]), pair(&[4]).with("eps", 0.3), pair(&[])]
    }
}

/// `sin(πx) / (πx)`, 1 at 0 with gradient 0. Integers give the default floating dtype.
#[op("sinc(Tensor self) -> Tensor", inplace, out, meta = float, cpu = sinc, batch = pointwise, jvp = elementwise,
     samples = unary_nonzero)]
impl Sinc {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        if matches!(self_.dtype(), DType::F16 | DType::BF16) {
            // Near 0 two numbers are subtracted that are almost the same: in half precision no
            // correct digit would be left.
            let wide = self_.to_dtype(DType::F32)?;
            return Sinc::vjp_self(&grad.to_dtype(DType::F32)?, &wide, &wide.sinc()?);
        }
        let is_zero = self_.eq(&Tensor::wrapped(0)?)?;
        let safe = self_.masked_fill(&is_zero, Scalar::Int(1))?;
        let slope = self_.times(PI)?.cos()?.sub(result)?.div(&safe)?;
        grad.mul(&slope.masked_fill(&is_zero, Scalar::Int(0))?.conj()?)
    }
}

/// `self ln(1 + other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype.
#[op("special_xlog1py(Tensor self, Tensor other) -> Tensor", module = "special", out, node = "SpecialXlog1Py", meta = float,
     cpu = xlog1py, batch = pointwise, samples = binary_positive)]
impl SpecialXlog1py {
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        log_grad(grad, self_, other)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(self_)?.div(&other.plus(1)?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let by_other = other_t.map(|t| t.mul(self_p)?.div(&other_p.plus(1)?));
        by_both(self_t.map(|t| log_grad(t, self_p, other_p)), by_other)
    }
}

/// The gradient of `a ln(1 + b)` by `a`, 0 where the product is 0 whatever `b` is.
fn log_grad(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let flat = a.eq(&Tensor::wrapped(0.0)?)?.logical_and(&b.le(&Tensor::wrapped(-1.0)?)?)?;
    grad.special_xlog1py(b)?.masked_fill(&flat, Scalar::Int(0))
}

/// `self ln(1 + other)` of a number and a tensor.
#[op("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", module = "special", out, operand(self),
     node = "SpecialXlog1PyBackward1", meta = float_with_numbers, cpu = xlog1py, batch = pointwise, method = special_xlog1py_of,
     jvp = elementwise, samples = number_and_positive)]
impl SpecialXlog1pyOf {
    fn vjp_other(grad: &Tensor, self_: Scalar, other: &Tensor) -> Result<Tensor> {
        grad.times(self_)?.div(&other.plus(1)?)
    }
}

/// `self ln(1 + other)` of a tensor and a number.
#[op("special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", module = "special", out, operand(other),
     node = "SpecialXlog1PyBackward2", meta = float_with_numbers, cpu = xlog1py, batch = pointwise, method = special_xlog1py_by,
     jvp = elementwise, samples = positive_and_number)]
impl SpecialXlog1pyBy {
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: Scalar) -> Result<Tensor> {
        log_grad(grad, self_, &Tensor::wrapped(other)?)
    }
}

/// Hurwitz's zeta function, the sum of `(other + k)^-self` for whole `k >= 0`: infinite where a term or the sum is (`self` 1),
/// NaN for `self` below 1, and for a negative `other` unless `self` is whole. It has no derivative by `self`; halves are refused.
#[op("special_zeta(Tensor self, Tensor other) -> Tensor", module = "special", out, meta = float, cpu = zeta, batch = pointwise)]
impl SpecialZeta {
    fn vjp_self() -> Result<Tensor> {
        Err(no_derivative("zeta"))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        zeta_grad(grad, self_, other)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        ensure!(self_t.is_none(), not_implemented, "the derivative for 'zeta' is not implemented.");
        other_t.map(|t| zeta_grad(t, self_p, other_p)).transpose()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of =
            |a: &[i64], b: &[i64]| Sample::new([s.integers(a, 2, 5).into(), s.positive(b).into()]);
        vec![of(&[2, 3], &[2, 3]), of(&[2, 1], &[3]), of(&[], &[]), of(&[0], &[1])]
    }
}

fn zeta_grad(grad: &Tensor, s: &Tensor, q: &Tensor) -> Result<Tensor> {
    grad.mul(s)?.mul(&s.plus(1)?.special_zeta(q)?)?.neg()
}

/// The rule for the gradient of an argument without derivative.
fn no_derivative(of: &str) -> Error {
    Error::not_implemented(format!("the derivative for '{of}' is not implemented."))
}

/// Hurwitz's zeta function of one exponent.
#[op("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", module = "special", out, operand(self),
     node = "SpecialZetaBackward1", meta = float_with_numbers, cpu = zeta, batch = pointwise, method = special_zeta_of,
     jvp = elementwise, samples = number_and_positive)]
impl SpecialZetaOf {
    fn vjp_other(grad: &Tensor, self_: Scalar, other: &Tensor) -> Result<Tensor> {
        zeta_grad(grad, &Tensor::wrapped(self_)?, other)
    }
}

/// Hurwitz's zeta function of one first base; it has no derivative.
#[op("special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor", module = "special", out, operand(other),
     node = "SpecialZetaBackward2", meta = float_with_numbers, cpu = zeta, batch = pointwise, method = special_zeta_by)]
impl SpecialZetaBy {
    fn vjp_self() -> Result<Tensor> {
        Err(no_derivative("zeta"))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let by =
            |shape: &[i64]| Sample::of(s.integers(shape, 2, 5)).with("other", Scalar::Float(1.5));
        vec![by(&[2, 3]), by(&[]), by(&[0])]
    }
}

/// The regularised lower incomplete gamma function `P(self, other)`; NaN for negative arguments. It has no derivative by `self`.
#[op("igamma(Tensor self, Tensor other) -> Tensor", inplace = method, out, meta = broadcast, cpu = igamma, batch = pointwise)]
impl Igamma {
    fn vjp_self() -> Result<Tensor> {
        Err(no_derivative("igamma: input"))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        incomplete_grad(grad, self_, other)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        ensure!(
            self_t.is_none(),
            not_implemented,
            "the derivative for 'igamma: input' is not implemented."
        );
        other_t.map(|t| incomplete_grad(t, self_p, other_p)).transpose()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        incomplete(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let whole = || s.integers(&[2], 1, 4).into();
        let phrase = "\"igamma_cpu\" not implemented for 'Long'";
        vec![InvalidSample::new(Sample::new([whole(), whole()]), ErrorKind::NotImplemented, phrase)]
    }
}

fn incomplete(s: &Sampler) -> Vec<Sample> {
    let of = |a: &[i64], b: &[i64]| Sample::new([s.integers(a, 1, 4).into(), s.positive(b).into()]);
    vec![of(&[2, 3], &[2, 3]), of(&[2, 1], &[3]), of(&[], &[]), of(&[0], &[1])]
}

/// `grad x^(a-1) e^-x / Γ(a)`.
fn incomplete_grad(grad: &Tensor, a: &Tensor, x: &Tensor) -> Result<Tensor> {
    let exponent = x.log()?.mul(&a.plus(-1)?)?.sub(x)?.sub(&a.lgamma()?)?;
    grad.mul(&exponent.exp()?)
}

/// The regularised upper incomplete gamma function `Q(self, other) = 1 - P(self, other)`; NaN for negative arguments. It has no
/// derivative by `self`.
#[op("igammac(Tensor self, Tensor other) -> Tensor", inplace = method, out, meta = broadcast, cpu = igammac, batch = pointwise)]
impl Igammac {
    fn vjp_self() -> Result<Tensor> {
        Err(no_derivative("igammac: input"))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        incomplete_grad(grad, self_, other)?.neg()
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        ensure!(
            self_t.is_none(),
            not_implemented,
            "the derivative for 'igammac: input' is not implemented."
        );
        other_t.map(|t| incomplete_grad(t, self_p, other_p)?.neg()).transpose()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        incomplete(s)
    }
}

/// The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(self - i/2)` for `i` below `p`, and
/// `p (p-1) / 4 ln π`. Integers give the default floating dtype; `p` is at least 1.
#[op("mvlgamma(Tensor self, int p) -> Tensor", inplace = method, out, batch = pointwise, jvp = elementwise)]
impl Mvlgamma {
    fn meta(self_: &Tensor, p: i64) -> Result<TensorSpec> {
        ensure!(
            self_.dtype() != DType::Bool,
            runtime,
            "The input tensor may not be a boolean tensor."
        );
        ensure!(p >= 1, runtime, "p has to be greater than or equal to 1");
        if p > MOST_DIMENSIONS {
            bail!(runtime, "mvlgamma: p is at most {MOST_DIMENSIONS}, but got {p}");
        }
        Ok(TensorSpec::broadcast(&[self_])?.to_float())
    }
    fn cpu(iter: &mut Iter, p: i64) -> pullback_kernels::Result<()> {
        elementwise::mvlgamma(iter, p)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, p: i64) -> Result<Tensor> {
        let mut slope = self_.digamma()?;
        for i in 1..p {
            slope = slope.add(&self_.plus(-0.5 * i as f64)?.digamma()?)?;
        }
        grad.mul(&slope)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64], p: i64| Sample::of(s.uniform(shape, 2.5, 4.0)).with("p", p);
        vec![of(&[2, 3], 1), of(&[2, 3], 3), of(&[], 5), of(&[0], 2)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = |t: Tensor, p: i64| Sample::of(t).with("p", p);
        let kind = ErrorKind::Runtime;
        vec![
            InvalidSample::new(
                sample(s.positive(&[2]), 0),
                kind,
                "p has to be greater than or equal to 1",
            ),
            InvalidSample::new(sample(s.bools(&[2]), 1), kind, "may not be a boolean tensor"),
            InvalidSample::new(sample(s.positive(&[2]), i64::MAX), kind, "p is at most"),
        ]
    }
}

/// The largest dimension: with larger ones an element would take minutes.
const MOST_DIMENSIONS: i64 = 1 << 16;

/// `log2(2^self + 2^other)` without overflow.
#[op("logaddexp2(Tensor self, Tensor other) -> Tensor", out, meta = broadcast, cpu = logaddexp2, batch = pointwise,
     samples = binary)]
impl Logaddexp2 {
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(&share(self_, other)?)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(&share(other, self_)?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        other_t.add(&self_t.sub(other_t)?.mul(&share(self_p, other_p)?)?)
    }
}

/// `2^a / (2^a + 2^b)`.
fn share(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.sub(b)?.times(LN_2)?.sigmoid()
}
