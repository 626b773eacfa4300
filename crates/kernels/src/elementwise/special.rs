//! Functions that the standard library lacks: `lgamma` and `digamma` of a double, from
//! the C mathematics library (which the standard library links in any case) and by its series.

mod c {
    // Also what `std` calls for its own unstable gamma functions.
    unsafe extern "C" {
        #[cfg(not(windows))]
        pub(super) fn lgamma_r(x: f64, sign: &mut i32) -> f64;
        #[cfg(windows)]
        pub(super) fn lgamma(x: f64) -> f64;
    }
}

/// `ln |Γ(x)|`.
pub(super) fn lgamma(x: f64) -> f64 {
    #[cfg(not(windows))]
    {
        let mut sign = 0;
        // SAFETY: writes only the sign; touches no global, unlike `lgamma`.
        unsafe { c::lgamma_r(x, &mut sign) }
    }
    #[cfg(windows)]
    // SAFETY: a pure function of a number on this platform.
    unsafe {
        c::lgamma(x)
    }
}

/// `Γ'(x) / Γ(x)`: recurrence up to 10, then the asymptotic series (DLMF 5.11.2), reflection
/// (DLMF 5.5.4) below 0. At 0 it is infinite with the sign opposite to the zero's; at negative whole numbers NaN.
pub(super) fn digamma(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // The fraction keeps the tangent accurate for large |x|.
        return digamma(1.0 - x) - PI / (PI * (x - x.trunc())).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    // Bernoulli numbers B_2k / 2k, k = 1..7.
    let series = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let z = 1.0 / (x * x);
    let tail =
        if x < 1e17 { z * series.iter().rev().fold(0.0, |sum, &c| sum * z + c) } else { 0.0 };
    sum + x.ln() - 0.5 / x - tail
}
