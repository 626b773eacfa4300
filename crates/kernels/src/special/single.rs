//! The functions of numbers that come from single precision, whose results go back to it: in double precision with 33 bits
//! right or more, so that hardly more than the last rounding is lost, and without the branches and tables that keep loops from whole
//! registers.

use super::polynomial_at;
use super::table::PiecewisePolynomial;
use super::table::bessel_single::{DIFFERENCE0, DIFFERENCE1, J0, J1, SUM0, SUM1, Y0_LOG, Y1_LOG};
use super::table::single::{
    ATANH, ERFCX, ERFCX_FAR, ERFINV_CENTRE, ERFINV_TAIL, I0E, I0E_FAR, I1E, I1E_FAR, Rational,
};
use crate::simd::math_f64;
use std::f64::consts::{FRAC_1_PI, FRAC_1_SQRT_2, FRAC_2_PI, LN_2};

/// The normal distribution `Φ(x)`.
#[inline(always)]
pub(crate) fn ndtr(x: f64) -> f64 {
    // Beyond, the distribution is 0 or 1 in single precision. (NaN stays.)
    let size = if x.abs() > FAR { FAR } else { x.abs() };
    // (The square of a single is exact.)
    let bell = math_f64::exp(-0.5 * (size * size));
    let above = 0.5 * bell * at(&ERFCX, size * FRAC_1_SQRT_2);
    if x > 0.0 { 1.0 - above } else { above }
}
const FAR: f64 = 14.5;

#[inline(always)]
fn at<const N: usize, const M: usize>(f: &Rational<N, M>, x: f64) -> f64 {
    polynomial_at(x, &f.over) / polynomial_at(x, &f.under)
}

/// `e^(x²) erfc(x)` of a number that is not negative, infinity included.
#[inline(always)]
fn erfcx_positive(x: f64) -> f64 {
    let is_near = x < 10.3;
    let z = 1.0 / (x * x);
    let near = (polynomial_at(x, &ERFCX.over), polynomial_at(x, &ERFCX.under));
    let far = (polynomial_at(z, &ERFCX_FAR.over), x * polynomial_at(z, &ERFCX_FAR.under));
    (if is_near { near.0 } else { far.0 }) / (if is_near { near.1 } else { far.1 })
}

/// `e^(x²) erfc(x)`.
#[inline(always)]
pub(crate) fn erfcx(x: f64) -> f64 {
    let value = erfcx_positive(x.abs());
    // (The square of a single is exact.)
    if x < 0.0 { 2.0 * math_f64::exp(x * x) - value } else { value }
}

/// `ln Φ(x)`; minus zero where it is below every single.
#[inline(always)]
pub(crate) fn log_ndtr(x: f64) -> f64 {
    // Far enough for minus infinity in single precision. (NaN stays.)
    let x = if x < -1e30 { -1e30 } else { x };
    let half_square = 0.5 * (x * x);
    let tail = 0.5 * erfcx_positive(x.abs() * FRAC_1_SQRT_2);
    // ln(1 - above) on the right, ln tail - x²/2 on the left.
    let is_right = x > 0.0;
    let above = math_f64::exp(-half_square) * tail;
    let rest = 1.0 - above;
    let lost = if is_right { (1.0 - rest) - above } else { 0.0 };
    let value = math_f64::log_of_sum(if is_right { rest } else { tail }, lost);
    let value = if is_right { value } else { value - half_square };
    if x > FAR { -0.0 } else { value }
}

/// `e^-|x| I(x)` of a size as a quotient, by the tables up to 8 and beyond, and `x` itself if there is a factor of `x` up to 8.
#[inline(always)]
fn scaled_bessel<const N: usize, const M: usize>(
    size: f64,
    near: &Rational<N, N>,
    far: &Rational<M, M>,
    factor: f64,
) -> f64 {
    let is_near = size < 8.0;
    let z = 1.0 / size;
    let near = (factor * polynomial_at(size, &near.over), polynomial_at(size, &near.under));
    let far = (polynomial_at(z, &far.over), size.sqrt() * polynomial_at(z, &far.under));
    (if is_near { near.0 } else { far.0 }) / (if is_near { near.1 } else { far.1 })
}

/// `e^-|x| I0(x)`; 0 at infinity.
#[inline(always)]
pub(crate) fn i0e(x: f64) -> f64 {
    scaled_bessel(x.abs(), &I0E, &I0E_FAR, 1.0)
}

/// `e^-|x| I1(x)`; 0 at infinity.
#[inline(always)]
pub(crate) fn i1e(x: f64) -> f64 {
    scaled_bessel(x.abs(), &I1E, &I1E_FAR, x.abs()).copysign(x)
}

/// `I0(x)`; NaN at infinity, as PyTorch has it.
#[inline(always)]
pub(crate) fn i0(x: f64) -> f64 {
    math_f64::exp(x.abs()) * i0e(x)
}

/// `I1(x)`; NaN at infinity, as PyTorch has it.
#[inline(always)]
pub(crate) fn i1(x: f64) -> f64 {
    math_f64::exp(x.abs()) * i1e(x)
}

/// Whether a number is beyond 8, where [`j0`] to [`y1`] end and [`j0_far`] to [`y1_far`] start, or NaN.
#[inline(always)]
pub(crate) fn is_far(x: f64) -> bool {
    x.abs() >= 8.0 || x.is_nan()
}

/// `J0(x)` where [`is_far`] does not hold.
#[inline(always)]
pub(crate) fn j0(x: f64) -> f64 {
    J0.in_first(x * x)
}

/// `J1(x)` where [`is_far`] does not hold.
#[inline(always)]
pub(crate) fn j1(x: f64) -> f64 {
    x * J1.in_first(x * x)
}

/// Negative infinity at 0, NaN below, and `value` above, where [`math_f64::log_of_normal`] is the
/// logarithm.
#[inline(always)]
fn above_zero(x: f64, value: f64) -> f64 {
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x < 0.0 { f64::NAN } else { value }
}

/// `Y0(x)` where [`is_far`] does not hold.
#[inline(always)]
pub(crate) fn y0(x: f64) -> f64 {
    let log = FRAC_2_PI * math_f64::log_of_normal(x);
    above_zero(x, log.mul_add(J0.in_first(x * x), Y0_LOG.in_first(x * x)))
}

/// `Y1(x)` where [`is_far`] does not hold.
#[inline(always)]
pub(crate) fn y1(x: f64) -> f64 {
    let log = FRAC_2_PI * math_f64::log_of_normal(x);
    let smooth = log.mul_add(J1.in_first(x * x), Y1_LOG.in_first(x * x));
    above_zero(x, x.mul_add(smooth, -FRAC_2_PI / x))
}

/// Hankel's expansion (DLMF 10.17.3, 10.17.4) where [`is_far`] holds and [`needs_slow_reduction`] does not: the sine and the cosine
/// with their factors, which are taken from the tables by `1/x`.
#[inline(always)]
fn hankel<const N: usize, const M: usize>(
    size: f64,
    by_sin: (f64, &PiecewisePolynomial<N>),
    by_cos: (f64, &PiecewisePolynomial<M>),
) -> f64 {
    let z = 1.0 / size;
    let by_sin = math_f64::sin(size) * by_sin.0 * by_sin.1.in_first(z);
    let by_cos = math_f64::cos(size) * by_cos.0 * by_cos.1.in_first(z);
    (by_sin + by_cos) * (z * FRAC_1_PI).sqrt()
}

/// `J0(x)` where [`is_far`] holds and [`needs_slow_reduction`] does not.
#[inline(always)]
pub(crate) fn j0_far(x: f64) -> f64 {
    hankel(x.abs(), (1.0, &DIFFERENCE0), (1.0, &SUM0))
}

/// `J1(x)` where [`is_far`] holds and [`needs_slow_reduction`] does not.
#[inline(always)]
pub(crate) fn j1_far(x: f64) -> f64 {
    let value = hankel(x.abs(), (1.0, &SUM1), (-1.0, &DIFFERENCE1));
    if x < 0.0 { -value } else { value }
}

/// `Y0(x)` where [`is_far`] holds and [`needs_slow_reduction`] does not.
#[inline(always)]
pub(crate) fn y0_far(x: f64) -> f64 {
    above_zero(x, hankel(x.abs(), (1.0, &SUM0), (-1.0, &DIFFERENCE0)))
}

/// `Y1(x)` where [`is_far`] holds and [`needs_slow_reduction`] does not.
#[inline(always)]
pub(crate) fn y1_far(x: f64) -> f64 {
    above_zero(x, hankel(x.abs(), (-1.0, &DIFFERENCE1), (-1.0, &SUM1)))
}

/// The inverse of the error function: infinite at ±1, NaN beyond.
#[inline(always)]
pub(crate) fn erfinv(x: f64) -> f64 {
    let size = x.abs();
    let is_central = size <= 0.875;
    // In the tail by the square root of minus the logarithm of what is left of 1.
    let far = (-2.0 * math_f64::log_of_normal(0.5 * (1.0 - size))).sqrt() - 2.25;
    let t = if is_central { 0.875 * 0.875 - x * x } else { far };
    let pick =
        |i: usize, centre: &[f64], tail: &[f64]| if is_central { centre[i] } else { tail[i] };
    let (mut over, mut under) = (0.0_f64, 0.0_f64);
    for i in (0..ERFINV_CENTRE.over.len()).rev() {
        over = over.mul_add(t, pick(i, &ERFINV_CENTRE.over, &ERFINV_TAIL.over));
    }
    for i in (0..ERFINV_CENTRE.under.len()).rev() {
        under = under.mul_add(t, pick(i, &ERFINV_CENTRE.under, &ERFINV_TAIL.under));
    }
    let value = over / under;
    let value = if is_central { x * value } else { value.copysign(x) };
    let limit = if size == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    if size < 1.0 { value } else { limit }
}

/// `ln(x / (1 - x))` of a number that is no denormal double: infinite at 0 and 1, NaN outside.
#[inline(always)]
pub(crate) fn logit(x: f64) -> f64 {
    // The quotient of the mantissas a and b is (1 + s) / (1 - s), whose logarithm is 2 atanh(s). Near a half, where the result
    // is near zero, both have one exponent, and the difference is exact.
    let ((e, a), (rest_e, b)) = (math_f64::split(x), math_f64::split(1.0 - x));
    let s = (a - b) / (a + b);
    let value = (e - rest_e).mul_add(LN_2, s * polynomial_at(s * s, &ATANH.over));
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    let value = if x == 1.0 { f64::INFINITY } else { value };
    let value = if x <= 1.0 { value } else { f64::NAN };
    if x >= 0.0 { value } else { f64::NAN }
}

/// `sin(x) / x` where [`needs_slow_reduction`] does not hold: 1 at 0.
#[inline(always)]
pub(crate) fn spherical_j0(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { math_f64::sin(x) / x }
}

/// Whether an angle is so large that its sine needs more digits of π.
#[inline(always)]
pub(crate) fn needs_slow_reduction(x: f64) -> bool {
    x.abs() > math_f64::TRIG_LIMIT
}
