//! The functions of mathematics, for each type that has them: `Math` for real and complex,
//! `Real` for what only `f32` and `f64` have.

use super::complex;
use super::number::{Number, Ordered};
use super::special;
use crate::{C64, C128};
use num_complex::Complex;

/// Functions that real and complex numbers share.
pub(crate) trait Math: Number {
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn expm1(self) -> Self;
    fn log(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn log1p(self) -> Self;
    fn sqrt(self) -> Self;
    fn rsqrt(self) -> Self;
    fn reciprocal(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn over(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    fn logaddexp(self, other: Self) -> Self;
    fn conjugate(self) -> Self;
}

/// Functions of real numbers only.
pub(crate) trait Real: Math + Ordered {
    /// A constant, rounded.
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    fn magnitude(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// To the nearest whole number, ties to even.
    fn round(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    fn atan2(self, x: Self) -> Self;
    fn hypot(self, other: Self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    /// The remainder with the sign of the dividend (C's `fmod`).
    fn rest(self, other: Self) -> Self;
    fn fused(self, factor: Self, term: Self) -> Self;
    fn is_finite_number(self) -> bool;
    const INFINITY: Self;
}

macro_rules! real {
    ($($t:ident, $m:ident);*) => {$(
        impl Math for $t {
            #[inline(always)] fn exp(self) -> Self { self.exp() }
            #[inline(always)] fn exp2(self) -> Self { self.exp2() }
            #[inline(always)] fn expm1(self) -> Self { self.exp_m1() }
            #[inline(always)] fn log(self) -> Self { self.ln() }
            #[inline(always)] fn log2(self) -> Self { self.log2() }
            #[inline(always)] fn log10(self) -> Self { self.log10() }
            #[inline(always)] fn log1p(self) -> Self { self.ln_1p() }
            #[inline(always)] fn sqrt(self) -> Self { self.sqrt() }
            #[inline(always)] fn rsqrt(self) -> Self { 1.0 / self.sqrt() }
            #[inline(always)] fn reciprocal(self) -> Self { 1.0 / self }
            #[inline(always)] fn sin(self) -> Self { self.sin() }
            #[inline(always)] fn cos(self) -> Self { self.cos() }
            #[inline(always)] fn tan(self) -> Self { self.tan() }
            #[inline(always)] fn asin(self) -> Self { self.asin() }
            #[inline(always)] fn acos(self) -> Self { self.acos() }
            #[inline(always)] fn atan(self) -> Self { self.atan() }
            #[inline(always)] fn sinh(self) -> Self { self.sinh() }
            #[inline(always)] fn cosh(self) -> Self { self.cosh() }
            #[inline(always)] fn tanh(self) -> Self { self.tanh() }
            #[inline(always)] fn asinh(self) -> Self { self.asinh() }
            #[inline(always)] fn acosh(self) -> Self { self.acosh() }
            #[inline(always)] fn atanh(self) -> Self { self.atanh() }
            #[inline(always)] fn sigmoid(self) -> Self { 1.0 / (1.0 + (-self).exp()) }
            #[inline(always)] fn over(self, other: Self) -> Self { self / other }
            #[inline(always)] fn power(self, exponent: Self) -> Self { self.powf(exponent) }
            #[inline(always)]
            fn logaddexp(self, other: Self) -> Self {
                let big = if self < other { other } else { self };
                let gap = -(self - other).abs();
                // Equal infinities: their difference is NaN, their sum themselves.
                if self == other && self.is_infinite() { self } else { big + Math::log1p(Math::exp(gap)) }
            }
            #[inline(always)] fn conjugate(self) -> Self { self }
        }

        impl Real for $t {
            #[inline(always)] fn of(value: f64) -> Self { value as $t }
            #[inline(always)] fn wide(self) -> f64 { self as f64 }
            #[inline(always)] fn magnitude(self) -> Self { self.abs() }
            #[inline(always)] fn floor(self) -> Self { self.floor() }
            #[inline(always)] fn ceil(self) -> Self { self.ceil() }
            #[inline(always)] fn trunc(self) -> Self { self.trunc() }
            #[inline(always)] fn round(self) -> Self { self.round_ties_even() }
            #[inline(always)] fn erf(self) -> Self { special::erf(self as f64) as $t }
            #[inline(always)] fn erfc(self) -> Self { special::erfc(self as f64) as $t }
            #[inline(always)] fn lgamma(self) -> Self { special::lgamma(self as f64) as $t }
            #[inline(always)] fn digamma(self) -> Self { special::digamma(self as f64) as $t }
            #[inline(always)] fn atan2(self, x: Self) -> Self { self.atan2(x) }
            #[inline(always)] fn hypot(self, other: Self) -> Self { self.hypot(other) }
            #[inline(always)] fn copysign(self, sign: Self) -> Self { self.copysign(sign) }
            #[inline(always)] fn rest(self, other: Self) -> Self { self % other }
            #[inline(always)] fn fused(self, factor: Self, term: Self) -> Self { self.mul_add(factor, term) }
            #[inline(always)] fn is_finite_number(self) -> bool { self.abs() < $t::INFINITY }
            const INFINITY: Self = $t::INFINITY;
        }
    )*};
}
real!(f32, math_f32; f64, math_f64);

/// What a complex number has beside `Math`.
pub(crate) trait ComplexNumber: Math {
    type Part: Real;
    fn part_re(self) -> Self::Part;
    fn part_im(self) -> Self::Part;
    fn from_parts(re: Self::Part, im: Self::Part) -> Self;
    fn magnitude(self) -> Self::Part;
    fn sgn(self) -> Self;
}

/// Rounds the function of the double to the type.
macro_rules! complex_math {
    ($t:ty, $part:ident, [$($name:ident),*]) => {
        impl Math for $t {
            $(#[inline(always)] fn $name(self) -> Self { narrow(complex::$name(widen(self))) })*
            #[inline(always)]
            fn log2(self) -> Self { narrow(complex::log(widen(self)) * std::f64::consts::LOG2_E) }
            #[inline(always)]
            fn log10(self) -> Self { narrow(complex::log(widen(self)) * std::f64::consts::LOG10_E) }
            #[inline(always)]
            fn rsqrt(self) -> Self { narrow(complex::reciprocal(complex::sqrt(widen(self)))) }
            #[inline(always)]
            fn sigmoid(self) -> Self {
                narrow(complex::reciprocal(complex::exp(-widen(self)) + 1.0))
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self { narrow(complex::div(widen(self), widen(other))) }
            #[inline(always)]
            fn power(self, exponent: Self) -> Self { narrow(complex::pow(widen(self), widen(exponent))) }
            #[inline(always)]
            fn logaddexp(self, other: Self) -> Self {
                narrow(complex::logaddexp(widen(self), widen(other)))
            }
            #[inline(always)]
            fn conjugate(self) -> Self { Complex::new(self.re, -self.im) }
        }
        impl ComplexNumber for $t {
            type Part = $part;
            #[inline(always)] fn part_re(self) -> $part { self.re }
            #[inline(always)] fn part_im(self) -> $part { self.im }
            #[inline(always)] fn from_parts(re: $part, im: $part) -> Self { Complex::new(re, im) }
            #[inline(always)]
            fn magnitude(self) -> $part { (self.re as f64).hypot(self.im as f64) as $part }
            #[inline(always)] fn sgn(self) -> Self { narrow(complex::sgn(widen(self))) }
        }
    };
}

/// Between `complex64` or `complex128` and the latter.
trait Through: Copy {
    fn to_wide(self) -> C128;
    fn from_wide(wide: C128) -> Self;
}
impl Through for C64 {
    #[inline(always)]
    fn to_wide(self) -> C128 {
        Complex::new(f64::from(self.re), f64::from(self.im))
    }
    #[inline(always)]
    fn from_wide(wide: C128) -> Self {
        Complex::new(wide.re as f32, wide.im as f32)
    }
}
impl Through for C128 {
    #[inline(always)]
    fn to_wide(self) -> C128 {
        self
    }
    #[inline(always)]
    fn from_wide(wide: C128) -> Self {
        wide
    }
}
#[inline(always)]
fn widen<T: Through>(z: T) -> C128 {
    z.to_wide()
}
#[inline(always)]
fn narrow<T: Through>(z: C128) -> T {
    T::from_wide(z)
}

complex_math!(
    C64,
    f32,
    [
        exp, exp2, expm1, log, log1p, sqrt, reciprocal, sin, cos, tan, asin, acos, atan, sinh,
        cosh, tanh, asinh, acosh, atanh
    ]
);
complex_math!(
    C128,
    f64,
    [
        exp, exp2, expm1, log, log1p, sqrt, reciprocal, sin, cos, tan, asin, acos, atan, sinh,
        cosh, tanh, asinh, acosh, atanh
    ]
);
