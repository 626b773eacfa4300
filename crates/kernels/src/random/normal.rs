//! Normal numbers in blocks of 16, as PyTorch's vectorised CPU kernels make them.
//!
//! Box and Muller's method with single-precision logarithm and sine from the Cephes library
//! (S. Moshier, <https://www.netlib.org/cephes>), each fused multiply-add placed where PyTorch's build
//! has it: the bits of the results depend on that.

#[inline(always)]
fn fma(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// Natural logarithm of a positive number.
#[inline(always)]
fn ln(x: f32) -> f32 {
    let x = if x < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { x };
    let bits = x.to_bits();
    let mut e = ((bits >> 23) as i32 - 0x7f) as f32 + 1.0;
    // The mantissa in [0.5, 1); below sqrt(1/2) it is doubled, so that it lies around 1.
    let m = f32::from_bits((bits & 0x807f_ffff) | 0x3f00_0000);
    let is_small = m < std::f32::consts::FRAC_1_SQRT_2;
    let extra = if is_small { m } else { 0.0 };
    e -= if is_small { 1.0 } else { 0.0 };
    let x = (m - 1.0) + extra;
    let z = x * x;
    let mut y = 7.037_683_6E-2_f32;
    y = fma(y, x, -1.151_461E-1);
    y = fma(y, x, 1.167_699_9E-1);
    y = fma(y, x, -1.242_014_1E-1);
    y = fma(y, x, 1.424_932_3E-1);
    y = fma(y, x, -1.666_805_8E-1);
    y = fma(y, x, 2.000_071_5E-1);
    y = fma(y, x, -2.499_999_4E-1);
    y = fma(y, x, 3.333_333E-1);
    y *= x;
    y = fma(y, z, e * -2.121_944_4e-4);
    y = fma(-z, 0.5, y);
    fma(e, 0.693_359_4, x + y)
}

/// Sine and cosine of an angle that is not negative.
#[inline(always)]
fn sin_cos(x: f32) -> (f32, f32) {
    let j = (x * 1.273_239_5) as i32;
    let j = (j + 1) & !1;
    let y = j as f32;
    let swap_sin = ((j & 4) as u32) << 29;
    let is_sine = j & 2 == 0;
    let mut x = fma(y, -0.785_156_25, x);
    x = fma(y, -2.418_756_5e-4, x);
    x = fma(y, -3.774_895e-8, x);
    let sign_cos = ((!(j - 2) & 4) as u32) << 29;
    let z = x * x;
    let mut c = fma(fma(2.443_315_7E-5, z, -1.388_731_6E-3), z, 4.166_664_6E-2);
    c *= z;
    c = fma(c, z, -(z * 0.5)) + 1.0;
    let mut s = fma(fma(-1.951_529_6E-4, z, 8.332_161E-3), z, -1.666_665_5E-1);
    s *= z;
    s = fma(s, x, x);
    let (sin, cos) = if is_sine { (s, c) } else { (c, s) };
    (f32::from_bits(sin.to_bits() ^ swap_sin), f32::from_bits(cos.to_bits() ^ sign_cos))
}

#[inline(always)]
fn pair(u1: f32, u2: f32, mean: f32, std: f32) -> (f32, f32) {
    let u1 = 1.0 - u1;
    let radius = (-2.0 * ln(u1)).sqrt();
    let (sin, cos) = sin_cos(std::f32::consts::TAU * u2);
    (fma(radius * cos, std, mean), fma(radius * sin, std, mean))
}

crate::multiversion! {
/// Turns uniform numbers into normal ones, 16 at a time: 8 radii from the first half, 8 angles from the second. A rest that
/// does not fill a block stays as it is.
pub(super) fn blocks_f32(data: &mut [f32], mean: f32, std: f32) {
    // Many blocks at once: a long loop over arrays is what becomes vector code.
    const PAIRS: usize = 128;
    let mut done = 0;
    for group in data.chunks_exact_mut(2 * PAIRS) {
        let (mut u1, mut u2) = ([0.0; PAIRS], [0.0; PAIRS]);
        for (b, block) in group.chunks_exact(16).enumerate() {
            u1[8 * b..8 * b + 8].copy_from_slice(&block[..8]);
            u2[8 * b..8 * b + 8].copy_from_slice(&block[8..]);
        }
        for j in 0..PAIRS {
            (u1[j], u2[j]) = pair(u1[j], u2[j], mean, std);
        }
        for (b, block) in group.chunks_exact_mut(16).enumerate() {
            block[..8].copy_from_slice(&u1[8 * b..8 * b + 8]);
            block[8..].copy_from_slice(&u2[8 * b..8 * b + 8]);
        }
        done += 2 * PAIRS;
    }
    let (singles, _) = data[done..].as_chunks_mut::<16>();
    for block in singles {
        let (first, second) = block.split_at_mut(8);
        for (a, b) in first.iter_mut().zip(second) {
            (*a, *b) = pair(*a, *b, mean, std);
        }
    }
}
}

/// Turns uniform numbers into normal ones in double precision, in the blocks of [`blocks_f32`], with the system's logarithm,
/// sine and cosine.
pub(super) fn blocks_f64(data: &mut [f64], mean: f64, std: f64) {
    let (blocks, _) = data.as_chunks_mut::<16>();
    for block in blocks {
        for j in 0..8 {
            let radius = (-2.0 * (1.0 - block[j]).ln()).sqrt();
            let theta = std::f64::consts::TAU * block[j + 8];
            block[j] = (radius * theta.cos()).mul_add(std, mean);
            block[j + 8] = (radius * theta.sin()).mul_add(std, mean);
        }
    }
}
