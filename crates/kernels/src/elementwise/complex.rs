//! Functions of a complex double, after Kahan ("Branch cuts for complex elementary functions", 1987):
//! right on both sides of every cut (signed zeros count) and without needless overflow.
//!
//! `complex64` is computed here too and rounded: the wider range makes it exact and simple.

use crate::C128;
use crate::simd::math_f64;
use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};

/// `i z`.
fn times_i(z: C128) -> C128 {
    Complex::new(-z.im, z.re)
}
/// `-i z`.
fn over_i(z: C128) -> C128 {
    Complex::new(z.im, -z.re)
}
/// `x * y`, where a zero factor gives zero even against infinity (so that real input stays real).
fn scaled(x: f64, y: f64) -> f64 {
    if y == 0.0 { y } else { x * y }
}

/// `exp(re) (cos im + i sin im)`.
pub(crate) fn exp(z: C128) -> C128 {
    if z.re == f64::NEG_INFINITY && !z.im.is_finite() {
        return Complex::new(0.0, 0.0);
    }
    let (sin, cos) = math_f64::sin_cos(z.im);
    if z.re > 709.0 && z.re < 1420.0 {
        // exp overflows although the product with a small sine or cosine need not.
        let half = math_f64::exp(z.re * 0.5);
        return Complex::new(half * cos * half, scaled(half, scaled(half, sin)));
    }
    let size = math_f64::exp(z.re);
    if z.im == 0.0 { Complex::new(size, z.im) } else { Complex::new(size * cos, size * sin) }
}

/// `exp(z) - 1`.
pub(super) fn expm1(z: C128) -> C128 {
    let (sin, _) = math_f64::sin_cos(z.im);
    let half = math_f64::sin_of_any(z.im * 0.5);
    let e = math_f64::expm1(z.re);
    // e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y/2)
    let re = if z.im == 0.0 { e } else { e * math_f64::cos_of_any(z.im) - 2.0 * half * half };
    Complex::new(re, scaled(math_f64::exp(z.re), sin))
}

/// `2^z`.
pub(super) fn exp2(z: C128) -> C128 {
    let (sin, cos) = math_f64::sin_cos(z.im * LN_2);
    let size = math_f64::exp2(z.re);
    if z.im == 0.0 { Complex::new(size, z.im) } else { Complex::new(size * cos, size * sin) }
}

/// `ln|z| + i arg z`.
pub(crate) fn log(z: C128) -> C128 {
    let (big, small) = {
        let (a, b) = (z.re.abs(), z.im.abs());
        if a > b { (a, b) } else { (b, a) }
    };
    let square = big * big + small * small;
    let re = if (0.25..4.0).contains(&square) {
        // Near the unit circle: ln(1 + (big-1)(big+1) + small^2) / 2.
        math_f64::log1p((big - 1.0) * (big + 1.0) + small * small) * 0.5
    } else if (1e-300..1e300).contains(&square) {
        math_f64::log(square) * 0.5
    } else {
        math_f64::log(math_f64::hypot(z.re, z.im))
    };
    Complex::new(re, math_f64::atan2(z.im, z.re))
}

/// `ln(1 + z)`, exact near 0.
pub(super) fn log1p(z: C128) -> C128 {
    if z.re.abs() < 0.5 && z.im.abs() < 0.5 {
        let re = math_f64::log1p(z.re * (2.0 + z.re) + z.im * z.im) * 0.5;
        return Complex::new(re, math_f64::atan2(z.im, 1.0 + z.re));
    }
    log(Complex::new(1.0 + z.re, z.im))
}

/// The root with a real part that is not negative.
pub(super) fn sqrt(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if x == 0.0 && y == 0.0 {
        return Complex::new(0.0, y);
    }
    if y.is_infinite() {
        return Complex::new(f64::INFINITY, y);
    }
    if x.is_infinite() {
        let nan_or_zero = if y.is_nan() { y } else { 0.0 };
        return if x > 0.0 {
            Complex::new(x, if y.is_nan() { y } else { 0.0f64.copysign(y) })
        } else {
            Complex::new(nan_or_zero, f64::INFINITY.copysign(y))
        };
    }
    // Scaled by a power of four so that the sum below neither overflows nor loses denormals.
    let (factor, back) = if x.abs().max(y.abs()) > 1e300 {
        (0.0625, 4.0)
    } else if x.abs().max(y.abs()) < 1e-290 {
        (2f64.powi(108), 2f64.powi(-54))
    } else {
        (1.0, 1.0)
    };
    let (x, y) = (x * factor, y * factor);
    let root = ((x.abs() + math_f64::hypot(x, y)) * 0.5).sqrt();
    let other = y / (2.0 * root);
    if x >= 0.0 {
        Complex::new(root * back, other * back)
    } else {
        Complex::new(other.abs() * back, root.copysign(y) * back)
    }
}

/// `a / b` by Smith's method on scaled operands; division by zero divides each part by zero.
pub(super) fn div(a: C128, b: C128) -> C128 {
    let (c, d) = (b.re, b.im);
    if c == 0.0 && d == 0.0 {
        let zero = c.abs();
        return Complex::new(a.re / zero, a.im / zero);
    }
    if c.abs() >= d.abs() {
        let ratio = d / c;
        let whole = c + d * ratio;
        let scale = 1.0 / whole;
        if scale.is_finite() && scale != 0.0 {
            return Complex::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
        }
        Complex::new((a.re + a.im * ratio) / whole, (a.im - a.re * ratio) / whole)
    } else {
        let ratio = c / d;
        let whole = d + c * ratio;
        Complex::new((a.re * ratio + a.im) / whole, (a.im * ratio - a.re) / whole)
    }
}

/// `1 / z`.
pub(super) fn reciprocal(z: C128) -> C128 {
    div(Complex::new(1.0, 0.0), z)
}

/// `sinh z = sinh re cos im + i cosh re sin im`.
pub(super) fn sinh(z: C128) -> C128 {
    let (sin, cos) = math_f64::sin_cos(z.im);
    if z.re.abs() > 700.0 && z.re.is_finite() {
        let e = exp(Complex::new(z.re.abs(), z.im)) * 0.5;
        return Complex::new(e.re.copysign(e.re * z.re), e.im);
    }
    Complex::new(scaled(cos, math_f64::sinh(z.re)), scaled(math_f64::cosh(z.re), sin))
}

/// `cosh z = cosh re cos im + i sinh re sin im`.
pub(super) fn cosh(z: C128) -> C128 {
    let (sin, cos) = math_f64::sin_cos(z.im);
    if z.re.abs() > 700.0 && z.re.is_finite() {
        let e = exp(Complex::new(z.re.abs(), z.im)) * 0.5;
        return Complex::new(e.re, if z.re < 0.0 { -e.im } else { e.im });
    }
    Complex::new(
        math_f64::cosh(z.re) * cos,
        scaled(scaled(math_f64::sinh(z.re), sin), if z.re == 0.0 { z.re } else { 1.0 }),
    )
}

/// `tanh z`, by the tangent of `im` and the hyperbolic sine of `re` (Kahan's CTANH).
pub(super) fn tanh(z: C128) -> C128 {
    if z.re.abs() > 22.0 {
        // 4 e^(-2|re|) sin im cos im; below the precision of the real part.
        let (sin, cos) = if z.im.is_finite() { math_f64::sin_cos(z.im) } else { (0.0, 1.0) };
        let tail = 4.0 * sin * cos * math_f64::exp(-2.0 * z.re.abs());
        return Complex::new(1f64.copysign(z.re), if z.im == 0.0 { z.im } else { tail });
    }
    let t = math_f64::tan_of_any(z.im);
    let beta = t.mul_add(t, 1.0);
    let s = math_f64::sinh(z.re);
    let rho = s.mul_add(s, 1.0).sqrt();
    let below = (beta * s).mul_add(s, 1.0);
    Complex::new(beta * rho * s / below, t / below)
}

/// `sin z = -i sinh iz`.
pub(super) fn sin(z: C128) -> C128 {
    over_i(sinh(times_i(z)))
}
/// `cos z = cosh iz`.
pub(super) fn cos(z: C128) -> C128 {
    cosh(times_i(z))
}
/// `tan z = -i tanh iz`.
pub(super) fn tan(z: C128) -> C128 {
    over_i(tanh(times_i(z)))
}

/// `1 - z`, keeping the sign of a zero imaginary part.
fn one_minus(z: C128) -> C128 {
    Complex::new(1.0 - z.re, -z.im)
}
/// `1 + z`, keeping the sign of a zero imaginary part.
fn one_plus(z: C128) -> C128 {
    Complex::new(1.0 + z.re, z.im)
}
/// The imaginary part of `conj(a) b`.
fn cross(a: C128, b: C128) -> f64 {
    a.re * b.im - a.im * b.re
}

/// Kahan's CASIN.
pub(super) fn asin(z: C128) -> C128 {
    if z.re.is_infinite() || z.im.is_infinite() {
        return asin_at_infinity(z);
    }
    let (low, high) = (sqrt(one_minus(z)), sqrt(one_plus(z)));
    let re = math_f64::atan2(z.re, low.re * high.re - low.im * high.im);
    Complex::new(re, asinh_real(cross(low, high)))
}
/// The limits of `asin` (C's annex G), where the products of the roots would be differences of infinities.
fn asin_at_infinity(z: C128) -> C128 {
    let re = match (z.re.is_infinite(), z.im.is_infinite()) {
        (true, true) => FRAC_PI_4,
        (true, false) if z.im.is_nan() => f64::NAN,
        (true, false) => FRAC_PI_2,
        _ if z.re.is_nan() => f64::NAN,
        _ => 0.0,
    };
    Complex::new(re.copysign(z.re), f64::INFINITY.copysign(z.im))
}
/// Kahan's CACOS.
pub(super) fn acos(z: C128) -> C128 {
    let (low, high) = (sqrt(one_minus(z)), sqrt(one_plus(z)));
    Complex::new(2.0 * math_f64::atan2(low.re, high.re), asinh_real(cross(high, low)))
}
/// Kahan's CACOSH.
pub(super) fn acosh(z: C128) -> C128 {
    let (low, high) = (sqrt(Complex::new(z.re - 1.0, z.im)), sqrt(one_plus(z)));
    let re = asinh_real(low.re * high.re + low.im * high.im);
    Complex::new(re, 2.0 * math_f64::atan2(low.im, high.re))
}
/// Kahan's CATANH, with `|z|` large kept apart from the squares.
pub(super) fn atanh(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if x.abs().max(y.abs()) > 1e150 {
        let re = if x.is_infinite() || y.is_infinite() {
            0.0f64.copysign(x)
        } else {
            let size = math_f64::hypot(x, y);
            x / size / size
        };
        return Complex::new(re, FRAC_PI_2.copysign(y));
    }
    let gap = (1.0 - x.abs()).powi(2) + y * y;
    let re = if x == 0.0 { x } else { math_f64::log1p(4.0 * x.abs() / gap).copysign(x) * 0.25 };
    Complex::new(re, 0.5 * math_f64::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y))
}
/// `asinh z = -i asin iz`.
pub(super) fn asinh(z: C128) -> C128 {
    over_i(asin(times_i(z)))
}
/// `atan z = -i atanh iz`.
pub(super) fn atan(z: C128) -> C128 {
    over_i(atanh(times_i(z)))
}

/// `asinh` of a real number, exact near 0.
fn asinh_real(x: f64) -> f64 {
    let a = x.abs();
    let result = if a > 1e8 {
        math_f64::log(a) + LN_2
    } else {
        math_f64::log1p(a + a * a / (1.0 + a.mul_add(a, 1.0).sqrt()))
    };
    result.copysign(x)
}

/// `a^b = exp(b ln a)`, with `a^0 = 1` and whole exponents 1 and 2 exact.
pub(super) fn pow(a: C128, b: C128) -> C128 {
    if b.re == 0.0 && b.im == 0.0 {
        return Complex::new(1.0, 0.0);
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 {
            Complex::new(0.0, 0.0)
        } else if b.im == 0.0 {
            Complex::new(f64::INFINITY, 0.0)
        } else {
            Complex::new(f64::NAN, f64::NAN)
        };
    }
    if b.im == 0.0 {
        if b.re == 1.0 {
            return a;
        }
        if b.re == 2.0 {
            return a * a;
        }
        if b.re == 0.5 {
            return sqrt(a);
        }
        if b.re == -1.0 {
            return reciprocal(a);
        }
    }
    exp(b * log(a))
}

/// `z / |z|`, 0 at 0.
pub(super) fn sgn(z: C128) -> C128 {
    let size = math_f64::hypot(z.re, z.im);
    if size == 0.0 { Complex::new(0.0, 0.0) } else { Complex::new(z.re / size, z.im / size) }
}

/// `ln(e^a + e^b)`, from the one with the larger real part.
pub(super) fn logaddexp(a: C128, b: C128) -> C128 {
    if a.re.is_infinite() && a.re == b.re {
        return if a.re < 0.0 { a } else { log(exp(a) + exp(b)) };
    }
    let (big, small) = if a.re >= b.re { (a, b) } else { (b, a) };
    log1p(exp(small - big)) + big
}
