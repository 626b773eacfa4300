//! The mathematical functions of each type that has them: `Math` for real and complex numbers,
//! `Real` for what only `f32` and `f64` have.

use super::complex;
use super::number::{Number, Ordered};
use crate::simd::{math_f32, math_f64, quick_f32};
use crate::{C64, C128};
use num_complex::Complex;

/// Elementary functions that real and complex numbers share.
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
    fn divided_by(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    fn logaddexp(self, other: Self) -> Self;
    fn conjugate(self) -> Self;
    /// Whether `sin`, `cos`, `tan` do not hold for this angle, so that the `_any` versions must be used.
    #[inline(always)]
    fn needs_slow_reduction(self) -> bool {
        false
    }
    fn sin_any(self) -> Self {
        Math::sin(self)
    }
    fn cos_any(self) -> Self {
        Math::cos(self)
    }
    fn tan_any(self) -> Self {
        Math::tan(self)
    }
    /// Whether there are quicker versions of the functions below, which hold for some arguments; else they are the functions
    /// themselves.
    const HAS_FAST: bool = false;
    #[inline(always)]
    fn is_fast_exp_argument(self) -> bool {
        true
    }
    #[inline(always)]
    fn fast_exp(self) -> Self {
        Math::exp(self)
    }
    #[inline(always)]
    fn fast_exp2(self) -> Self {
        Math::exp2(self)
    }
    #[inline(always)]
    fn fast_sigmoid(self) -> Self {
        Math::sigmoid(self)
    }
    #[inline(always)]
    fn is_fast_log_argument(self) -> bool {
        true
    }
    #[inline(always)]
    fn fast_log(self) -> Self {
        Math::log(self)
    }
    #[inline(always)]
    fn fast_log2(self) -> Self {
        Math::log2(self)
    }
    #[inline(always)]
    fn fast_log10(self) -> Self {
        Math::log10(self)
    }
    /// Whether `fast_sin` and `fast_cos` do not hold.
    #[inline(always)]
    fn is_large_angle(self) -> bool {
        self.needs_slow_reduction()
    }
    #[inline(always)]
    fn fast_sin(self) -> Self {
        Math::sin(self)
    }
    #[inline(always)]
    fn fast_cos(self) -> Self {
        Math::cos(self)
    }
    /// The hyperbolic tangent of any number, as [`Math::tanh`] has it.
    #[inline(always)]
    fn fast_tanh(self) -> Self {
        Math::tanh(self)
    }
}

/// Functions of real numbers only.
pub(crate) trait RealMath: Math + Ordered {
    /// A constant, rounded to the type.
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
    /// The normal distribution's `Φ(x)`.
    fn normal_cdf(self) -> Self;
    /// `x Φ(x)`.
    fn gelu(self) -> Self;
    /// `tanh(ln(1 + e^x))`.
    fn tanh_softplus(self) -> Self;
    /// `ln(1 + e^-|x|)`.
    fn log1p_exp(self) -> Self;
    /// `log2(1 + 2^-|x|)`.
    fn log2_1p_exp2(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    fn atan2(self, x: Self) -> Self;
    fn hypot(self, other: Self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    /// The next number towards `other`; `other` if they are equal, NaN if either is.
    fn next_after(self, other: Self) -> Self;
    /// The remainder with the sign of the dividend (C's `fmod`).
    fn remainder(self, other: Self) -> Self;
    /// [`Real::remainder`] by a division and a fused multiply-add; exact where [`Real::has_fast_remainder`] holds.
    fn fast_remainder(self, other: Self) -> Self;
    fn has_fast_remainder(self, other: Self) -> bool;
    /// Whether the type has the digits of single precision, for which the quick functions of
    /// `special` suffice.
    const IS_SINGLE: bool;
    fn fused(self, factor: Self, term: Self) -> Self;
    fn is_finite_number(self) -> bool;
    const INFINITY: Self;
}

/// Implements both traits for one type by the functions of `simd`.
macro_rules! real {
    ($t:ident, $m:ident, vector [$($v:ident),*] $(, quick $q:ident)?) => {
        impl Math for $t {
            $(#[inline(always)] fn $v(self) -> Self { $m::$v(self) })*
            #[inline(always)] fn sqrt(self) -> Self { <$t>::sqrt(self) }
            #[inline(always)] fn rsqrt(self) -> Self { 1.0 / <$t>::sqrt(self) }
            #[inline(always)] fn reciprocal(self) -> Self { 1.0 / self }
            #[inline(always)] fn divided_by(self, other: Self) -> Self { self / other }
            #[inline(always)] fn power(self, exponent: Self) -> Self { $m::pow(self, exponent) }
            #[inline(always)]
            fn logaddexp(self, other: Self) -> Self {
                let big = if self < other { other } else { self };
                let sum = big + $m::log1p_exp(self - other);
                // Equal infinities: their difference is NaN, their sum themselves.
                if (self == other) & (self.abs() == $t::INFINITY) { self } else { sum }
            }
            #[inline(always)] fn conjugate(self) -> Self { self }
            #[inline(always)] fn needs_slow_reduction(self) -> bool { self.abs() > $m::TRIG_LIMIT }
            fn sin_any(self) -> Self { math_f64::sin_of_any(self as f64) as $t }
            fn cos_any(self) -> Self { math_f64::cos_of_any(self as f64) as $t }
            fn tan_any(self) -> Self { math_f64::tan_of_any(self as f64) as $t }
            $(
                const HAS_FAST: bool = true;
                #[inline(always)] fn is_fast_exp_argument(self) -> bool { $q::is_fast_exp_argument(self) }
                #[inline(always)] fn fast_exp(self) -> Self { $q::exp(self) }
                #[inline(always)] fn fast_exp2(self) -> Self { $q::exp2(self) }
                #[inline(always)] fn fast_sigmoid(self) -> Self { $q::sigmoid(self) }
                #[inline(always)] fn fast_tanh(self) -> Self { $q::tanh(self) }
                #[inline(always)] fn is_fast_log_argument(self) -> bool { $q::is_fast_log_argument(self) }
                #[inline(always)] fn fast_log(self) -> Self { $q::log(self) }
                #[inline(always)] fn fast_log2(self) -> Self { $q::log2(self) }
                #[inline(always)] fn fast_log10(self) -> Self { $q::log10(self) }
                #[inline(always)] fn is_large_angle(self) -> bool { $q::is_large_angle(self) }
                #[inline(always)] fn fast_sin(self) -> Self { $q::sin(self) }
                #[inline(always)] fn fast_cos(self) -> Self { $q::cos(self) }
            )?
        }

        impl RealMath for $t {
            #[inline(always)] fn of(value: f64) -> Self { value as $t }
            #[inline(always)] fn wide(self) -> f64 { self as f64 }
            #[inline(always)] fn magnitude(self) -> Self { self.abs() }
            #[inline(always)] fn floor(self) -> Self { <$t>::floor(self) }
            #[inline(always)] fn ceil(self) -> Self { <$t>::ceil(self) }
            #[inline(always)] fn trunc(self) -> Self { <$t>::trunc(self) }
            #[inline(always)] fn round(self) -> Self { self.round_ties_even() }
            #[inline(always)] fn erf(self) -> Self { $m::erf(self) }
            #[inline(always)] fn erfc(self) -> Self { $m::erfc(self) }
            #[inline(always)] fn normal_cdf(self) -> Self { $m::normal_cdf(self) }
            #[inline(always)] fn gelu(self) -> Self { $m::gelu(self) }
            #[inline(always)] fn tanh_softplus(self) -> Self { $m::tanh_softplus(self) }
            #[inline(always)] fn log1p_exp(self) -> Self { $m::log1p_exp(self) }
            #[inline(always)] fn log2_1p_exp2(self) -> Self { $m::log2_1p_exp2(self) }
            #[inline(always)] fn lgamma(self) -> Self { crate::special::log_gamma::lgamma(self as f64) as $t }
            #[inline(always)] fn digamma(self) -> Self { crate::special::gamma::digamma(self as f64) as $t }
            #[inline(always)] fn atan2(self, x: Self) -> Self { $m::atan2(self, x) }
            #[inline(always)] fn hypot(self, other: Self) -> Self { $m::hypot(self, other) }
            #[inline(always)] fn copysign(self, sign: Self) -> Self { <$t>::copysign(self, sign) }
            #[inline(always)]
            fn next_after(self, other: Self) -> Self {
                if self.is_nan() { self }
                else if self < other { self.next_up() }
                else if self > other { self.next_down() }
                else { other }
            }
            #[inline(always)] fn remainder(self, other: Self) -> Self { self % other }
            #[inline(always)]
            fn fast_remainder(self, other: Self) -> Self {
                // Exact, as is every difference of a number and a multiple that is smaller than the divisor.
                let rest = (-(self / other).trunc()).mul_add(other, self);
                // A quotient may have been rounded to the next whole number.
                let is_beyond = ((rest < 0.0) & (self > 0.0)) | ((rest > 0.0) & (self < 0.0));
                let rest = if is_beyond { rest + other.copysign(self) } else { rest };
                rest.copysign(self)
            }
            #[inline(always)]
            fn has_fast_remainder(self, other: Self) -> bool {
                // Whole quotients have no digits after the point, and no digit before it is lost.
                let limit = (1_u64 << ($t::MANTISSA_DIGITS - 1)) as $t;
                ((self / other).abs() < limit) & (other.abs() < $t::INFINITY)
            }
            const IS_SINGLE: bool = size_of::<$t>() == 4;
            #[inline(always)] fn fused(self, factor: Self, term: Self) -> Self { self.mul_add(factor, term) }
            #[inline(always)] fn is_finite_number(self) -> bool { self.abs() < $t::INFINITY }
            const INFINITY: Self = $t::INFINITY;
        }
    };
}
real!(f32, math_f32, vector [exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos,
    atan, sinh, cosh, tanh, asinh, acosh, atanh, sigmoid], quick quick_f32);
real!(f64, math_f64, vector [exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos,
    atan, sinh, cosh, tanh, asinh, acosh, atanh, sigmoid]);

/// What a complex number has beside `Math`.
pub(crate) trait ComplexNumber: Math {
    type Part: RealMath;
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
            fn divided_by(self, other: Self) -> Self { narrow(complex::div(widen(self), widen(other))) }
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
            fn magnitude(self) -> $part { RealMath::hypot(self.re, self.im) }
            #[inline(always)] fn sgn(self) -> Self { narrow(complex::sgn(widen(self))) }
        }
    };
}

/// Conversion between `complex64` or `complex128` and `complex128`.
trait ViaC128: Copy {
    fn to_wide(self) -> C128;
    fn from_wide(wide: C128) -> Self;
}
impl ViaC128 for C64 {
    #[inline(always)]
    fn to_wide(self) -> C128 {
        Complex::new(f64::from(self.re), f64::from(self.im))
    }
    #[inline(always)]
    fn from_wide(wide: C128) -> Self {
        Complex::new(wide.re as f32, wide.im as f32)
    }
}
impl ViaC128 for C128 {
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
fn widen<T: ViaC128>(z: T) -> C128 {
    z.to_wide()
}
#[inline(always)]
fn narrow<T: ViaC128>(z: C128) -> T {
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
