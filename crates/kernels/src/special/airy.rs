//! Airy's function, DLMF chapter 9.
//!
//! Polynomials in `-8..=2`; beyond, DLMF 9.7.5 and 9.7.9 with `ζ = 2/3 |x|^(3/2)` to twice the digits of a double, for
//! `ζ` is an exponent or an angle.

use super::product;
use super::table::airy::{AI, DECAY, WAVE_DIFFERENCE, WAVE_SUM};
use crate::simd::math_f64;
use std::f64::consts::PI;

/// `2/3 x^(3/2)` as a number and a rest, for positive `x`.
#[inline(always)]
fn zeta(x: f64) -> (f64, f64) {
    const THIRDS: (f64, f64) = (2.0 / 3.0, 3.700_743_415_417_188e-17);
    let root = x.sqrt();
    let root_rest = (-root).mul_add(root, x) / (2.0 * root);
    let (power, rest) = product(x, root);
    let rest = x.mul_add(root_rest, rest);
    let (high, low) = product(THIRDS.0, power);
    (high, low + THIRDS.1 * power + THIRDS.0 * rest)
}

/// The sine and cosine of an angle that is larger by a small one.
#[inline(always)]
fn rotated((sin, cos): (f64, f64), by: f64) -> (f64, f64) {
    const LINEAR: f64 = 1e-6;
    let (small_sin, small_cos) =
        if by.abs() < LINEAR { (by, (-0.5 * by).mul_add(by, 1.0)) } else { math_f64::sin_cos(by) };
    (sin * small_cos + cos * small_sin, cos * small_cos - sin * small_sin)
}

/// `Ai(x)`: above -2 within 4 ULP, below within 4 ULP of the amplitude to -1e10 (beyond, the angle is lost); NaN at infinity.
#[inline(always)]
pub(crate) fn ai(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::NAN;
    }
    if x > 110.0 {
        return 0.0;
    }
    if x > 2.0 {
        let (zeta, rest) = zeta(x);
        let power = math_f64::exp(-zeta);
        let factor = DECAY.at(1.0 / zeta) / (2.0 * PI.sqrt() * x.sqrt().sqrt());
        return (-rest).mul_add(power, power) * factor;
    }
    if x >= -8.0 || x.is_nan() {
        return AI.at(x);
    }
    let (zeta, rest) = zeta(-x);
    let (sin, cos) = math_f64::sin_cos(zeta);
    let (sin, cos) = rotated((sin, cos), rest);
    let w = 1.0 / zeta;
    let wave = cos * WAVE_DIFFERENCE.at(w) + sin * WAVE_SUM.at(w);
    wave / ((2.0 * PI).sqrt() * (-x).sqrt().sqrt())
}
