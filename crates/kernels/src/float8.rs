//! Floating-point numbers of one byte: formats for storage, not for computing. What computes
//! converts to `f32`, which holds each of their values, and rounds once.
//!
//! A format is a row of a table: the bits of its fraction, its bias and what it does with numbers
//! out of its range. The formats of a sign, `e` exponent bits and `m` fraction bits are those of
//! "FP8 Formats for Deep Learning" (Micikevicius et al., 2022: `e4m3fn` and `e5m2`) and of "8-bit
//! Numerical Formats for Deep Neural Networks" (Noune et al., 2022: `fnuz`, one zero, one NaN and
//! no infinity); `e8m0fnu`, a power of two without sign, is the scale of the OCP microscaling
//! formats.

use crate::dtype::{C128, DType, Element, truncated};

/// A format of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Float8 {
    /// 4 bits of exponent, 3 of fraction; no infinity, larger numbers become the largest.
    E4M3FN,
    /// 5 bits of exponent, 2 of fraction, infinity and NaN as IEEE 754 has them.
    E5M2,
    /// 4 bits of exponent, 3 of fraction; no infinity and no negative zero, larger numbers become NaN.
    E4M3FNUZ,
    /// 5 bits of exponent, 2 of fraction; no infinity and no negative zero, larger numbers become NaN.
    E5M2FNUZ,
    /// A power of two, its exponent alone: no sign, no zero, no infinity.
    E8M0FNU,
}

/// What distinguishes the formats that have a sign and a fraction.
#[derive(Clone, Copy)]
struct Float8Format {
    /// Bits of the fraction.
    fraction: u32,
    bias: u32,
    /// The code, without sign, of what is too large.
    above: u32,
    /// The code, without sign, of NaN.
    nan: u32,
    /// Whether there is one zero, and one NaN in the place of the negative zero.
    is_unsigned_zero: bool,
}

const E4M3FN: Float8Format =
    Float8Format { fraction: 3, bias: 7, above: 0x7e, nan: 0x7f, is_unsigned_zero: false };
const E5M2: Float8Format =
    Float8Format { fraction: 2, bias: 15, above: 0x7c, nan: 0x7f, is_unsigned_zero: false };
const E4M3FNUZ: Float8Format =
    Float8Format { fraction: 3, bias: 8, above: 0x80, nan: 0x80, is_unsigned_zero: true };
const E5M2FNUZ: Float8Format =
    Float8Format { fraction: 2, bias: 16, above: 0x80, nan: 0x80, is_unsigned_zero: true };

impl Float8Format {
    /// The bits of the single that a code stands for.
    const fn decode(self, code: u8) -> u32 {
        let sign = (code as u32 & 0x80) << 24;
        let size = code as u32 & 0x7f;
        if self.is_unsigned_zero && code == 0x80 {
            // The NaN that PyTorch makes of this code.
            return 0x7f80_0001;
        }
        if !self.is_unsigned_zero && size > self.above {
            // A quiet NaN with what remains of the fraction.
            return sign | 0x7fc0_0000 | (size << (23 - self.fraction)) & 0x7f_ffff;
        }
        if !self.is_unsigned_zero && size == self.above && self.above != 0x7e {
            return sign | 0x7f80_0000;
        }
        let (exponent, fraction) = (size >> self.fraction, size & ((1 << self.fraction) - 1));
        if exponent > 0 {
            return sign | (size << (23 - self.fraction)).wrapping_add((127 - self.bias) << 23);
        }
        if fraction == 0 {
            return sign;
        }
        // A denormal: its first bit becomes the one that is not written.
        let up = self.fraction - fraction.ilog2();
        let shifted = (fraction << up) & ((1 << self.fraction) - 1);
        sign | ((128 - self.bias - up) << 23) | (shifted << (23 - self.fraction))
    }

    /// The code of a number: to the nearest, ties to even.
    #[inline(always)]
    const fn encode(self, x: f32) -> u8 {
        let bits = x.to_bits();
        let (sign, size) = ((bits >> 24) & 0x80, bits & 0x7fff_ffff);
        let shift = 23 - self.fraction;
        let normal = size
            .wrapping_add((1 << (shift - 1)) - 1 + ((size >> shift) & 1))
            .wrapping_sub((127 - self.bias) << 23)
            >> shift;
        // Added to this number, the last bits of a denormal line up with those of a single, and are rounded.
        let unit = (128 - self.bias - self.fraction + 23) << 23;
        let denormal = (f32::from_bits(size) + f32::from_bits(unit)).to_bits().wrapping_sub(unit);
        let finite = if size < (128 - self.bias) << 23 { denormal } else { normal };
        let largest = if self.is_unsigned_zero { 0x7f } else { self.above };
        let limited = if finite > largest { self.above } else { finite };
        let code = if size > 0x7f80_0000 { self.nan } else { limited };
        let is_bare = self.is_unsigned_zero && code == 0;
        (if is_bare { 0 } else { code | sign }) as u8
    }

    const fn table(self) -> [u32; 256] {
        let mut table = [0; 256];
        let mut code = 0;
        while code < 256 {
            table[code] = self.decode(code as u8);
            code += 1;
        }
        table
    }
}

/// The exponent of a number, rounded: up from half on, but for the least numbers.
#[inline(always)]
const fn encode_exponent(x: f32) -> u8 {
    let bits = x.to_bits() & 0x7fff_ffff;
    let (exponent, fraction) = (bits >> 23, bits & 0x7f_ffff);
    // (Of a denormal the first bit of the fraction is the least power itself, and what lies above that goes up, as in PyTorch.)
    let half = if exponent > 0 { 0x40_0000 } else { 0x40_0001 };
    let rounded = exponent + (fraction >= half) as u32;
    if exponent == 0xff { 0xff } else { rounded as u8 }
}

const fn exponent_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = (code as u32) << 23;
        code += 1;
    }
    // The least power is a denormal, the last code NaN.
    table[0] = 0x40_0000;
    table[255] = 0x7f80_0001;
    table
}

static E4M3FN_VALUES: [u32; 256] = E4M3FN.table();
static E5M2_VALUES: [u32; 256] = E5M2.table();
static E4M3FNUZ_VALUES: [u32; 256] = E4M3FNUZ.table();
static E5M2FNUZ_VALUES: [u32; 256] = E5M2FNUZ.table();
static E8M0FNU_VALUES: [u32; 256] = exponent_table();

macro_rules! encode_all {
    ($($name:ident: $encode:expr;)*) => {$(
        crate::multiversion! {
            fn $name(from: &[f32], to: &mut [u8]) {
                for (to, &x) in to.iter_mut().zip(from) {
                    *to = $encode(x);
                }
            }
        }
    )*};
}
encode_all! {
    encode_e4m3fn: |x| E4M3FN.encode(x);
    encode_e5m2: |x| E5M2.encode(x);
    encode_e4m3fnuz: |x| E4M3FNUZ.encode(x);
    encode_e5m2fnuz: |x| E5M2FNUZ.encode(x);
    encode_e8m0fnu: encode_exponent;
}

impl Float8 {
    /// All formats.
    pub const ALL: [Float8; 5] =
        [Float8::E4M3FN, Float8::E5M2, Float8::E4M3FNUZ, Float8::E5M2FNUZ, Float8::E8M0FNU];

    /// The format of a dtype's elements, if it has one of these.
    #[inline]
    pub const fn of(dtype: DType) -> Option<Float8> {
        match dtype {
            DType::F8E4M3FN => Some(Float8::E4M3FN),
            DType::F8E5M2 => Some(Float8::E5M2),
            DType::F8E4M3FNUZ => Some(Float8::E4M3FNUZ),
            DType::F8E5M2FNUZ => Some(Float8::E5M2FNUZ),
            DType::F8E8M0FNU => Some(Float8::E8M0FNU),
            _ => None,
        }
    }
    /// The bits of the single of each code.
    fn values(self) -> &'static [u32; 256] {
        match self {
            Float8::E4M3FN => &E4M3FN_VALUES,
            Float8::E5M2 => &E5M2_VALUES,
            Float8::E4M3FNUZ => &E4M3FNUZ_VALUES,
            Float8::E5M2FNUZ => &E5M2FNUZ_VALUES,
            Float8::E8M0FNU => &E8M0FNU_VALUES,
        }
    }
    /// The value of a code.
    #[inline]
    pub fn to_f32(self, code: u8) -> f32 {
        f32::from_bits(self.values()[usize::from(code)])
    }
    /// The code of the value nearest to a number.
    #[inline]
    pub const fn code_of(self, x: f32) -> u8 {
        match self {
            Float8::E4M3FN => E4M3FN.encode(x),
            Float8::E5M2 => E5M2.encode(x),
            Float8::E4M3FNUZ => E4M3FNUZ.encode(x),
            Float8::E5M2FNUZ => E5M2FNUZ.encode(x),
            Float8::E8M0FNU => encode_exponent(x),
        }
    }
    /// The values of codes.
    pub(crate) fn decode(self, from: &[u8], to: &mut [f32]) {
        let values = self.values();
        for (to, &code) in to.iter_mut().zip(from) {
            *to = f32::from_bits(values[usize::from(code)]);
        }
    }
    /// The codes of numbers.
    pub(crate) fn encode(self, from: &[f32], to: &mut [u8]) {
        match self {
            Float8::E4M3FN => encode_e4m3fn(from, to),
            Float8::E5M2 => encode_e5m2(from, to),
            Float8::E4M3FNUZ => encode_e4m3fnuz(from, to),
            Float8::E5M2FNUZ => encode_e5m2fnuz(from, to),
            Float8::E8M0FNU => encode_e8m0fnu(from, to),
        }
    }
}

macro_rules! float8_element {
    ($($(#[$doc:meta])* $name:ident: $tag:ident, $format:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, Debug)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The element with this code.
            #[inline]
            pub const fn from_bits(code: u8) -> Self {
                Self(code)
            }
            /// Its code.
            #[inline]
            pub const fn to_bits(self) -> u8 {
                self.0
            }
            /// Its value.
            #[inline]
            pub fn to_f32(self) -> f32 {
                Float8::$format.to_f32(self.0)
            }
            /// The nearest to a number.
            #[inline]
            pub const fn from_f32(x: f32) -> Self {
                Self(Float8::$format.code_of(x))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        // SAFETY: a transparent byte.
        unsafe impl Element for $name {
            const DTYPE: DType = DType::$tag;
            type Bits = u8;
            // (By way of a single, as PyTorch converts: rounded twice.)
            #[inline]
            fn from_f64(value: f64) -> Self { Self::from_f32(value as f32) }
            #[inline]
            fn from_i64(value: i64) -> Self { Self::from_f32(value as f32) }
            #[inline]
            fn from_c128(value: C128) -> Self { Self::from_f64(value.re) }
            #[inline]
            fn to_f64(self) -> f64 { f64::from(self.to_f32()) }
            #[inline]
            fn to_i64(self) -> i64 { truncated(self.to_f64()) }
            #[inline]
            fn to_c128(self) -> C128 { C128::new(self.to_f64(), 0.0) }
            #[inline]
            fn is_true(self) -> bool { self.to_f32() != 0.0 }
        }
    )*};
}
float8_element! {
    /// An element of `float8_e4m3fn`.
    F8E4M3FN: F8E4M3FN, E4M3FN;
    /// An element of `float8_e5m2`.
    F8E5M2: F8E5M2, E5M2;
    /// An element of `float8_e4m3fnuz`.
    F8E4M3FNUZ: F8E4M3FNUZ, E4M3FNUZ;
    /// An element of `float8_e5m2fnuz`.
    F8E5M2FNUZ: F8E5M2FNUZ, E5M2FNUZ;
    /// An element of `float8_e8m0fnu`.
    F8E8M0FNU: F8E8M0FNU, E8M0FNU;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A format by its definition: exponent bits, fraction bits, bias, and the codes without sign that are no finite numbers.
    struct Definition {
        format: Float8,
        fraction: i32,
        bias: i32,
        infinity: Option<u8>,
        nan: fn(u8) -> bool,
        is_saturating: bool,
    }

    const DEFINITIONS: [Definition; 4] = [
        Definition {
            format: Float8::E4M3FN,
            fraction: 3,
            bias: 7,
            infinity: None,
            nan: |code| code & 0x7f == 0x7f,
            is_saturating: true,
        },
        Definition {
            format: Float8::E5M2,
            fraction: 2,
            bias: 15,
            infinity: Some(0x7c),
            nan: |code| code & 0x7f > 0x7c,
            is_saturating: false,
        },
        Definition {
            format: Float8::E4M3FNUZ,
            fraction: 3,
            bias: 8,
            infinity: None,
            nan: |code| code == 0x80,
            is_saturating: false,
        },
        Definition {
            format: Float8::E5M2FNUZ,
            fraction: 2,
            bias: 16,
            infinity: None,
            nan: |code| code == 0x80,
            is_saturating: false,
        },
    ];

    impl Definition {
        /// The value by the formula `(-1)^s 2^(e - bias) (1 + f)`, or `2^(1 - bias) f` where `e` is 0.
        fn value(&self, code: u8) -> f64 {
            if (self.nan)(code) {
                return f64::NAN;
            }
            let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
            if self.infinity == Some(code & 0x7f) {
                return sign * f64::INFINITY;
            }
            let (e, f) =
                (i32::from(code & 0x7f) >> self.fraction, code & ((1 << self.fraction) - 1));
            let f = f64::from(f) / f64::from(1 << self.fraction);
            let size = if e == 0 {
                f * 2.0_f64.powi(1 - self.bias)
            } else {
                (1.0 + f) * 2.0_f64.powi(e - self.bias)
            };
            sign * size
        }
        /// The code of the nearest value, of two the even one; the value after the largest would be the first that is too large.
        fn nearest(&self, x: f32) -> Vec<u8> {
            let all = 0..=255_u8;
            if x.is_nan() {
                return all.filter(|&code| (self.nan)(code)).collect();
            }
            let finite: Vec<u8> = all.filter(|&code| self.value(code).is_finite()).collect();
            let largest = finite.iter().map(|&code| self.value(code)).fold(0.0, f64::max);
            // The step above the largest number: half of it away, rounding leaves the finite numbers.
            let below = finite
                .iter()
                .map(|&code| self.value(code))
                .filter(|&v| v < largest)
                .fold(0.0, f64::max);
            let limit = largest + (largest - below) / 2.0;
            // (Of a tie the even code is the one that is not there.)
            let is_even_last =
                finite.iter().any(|&code| self.value(code) == largest && code & 1 == 0);
            let size = f64::from(x).abs();
            if !self.is_saturating && (size > limit || size == limit && !is_even_last) {
                let sign = if x < 0.0 { 0x80 } else { 0 };
                return match self.infinity {
                    Some(code) => vec![code | sign],
                    None => vec![0x80],
                };
            }
            if size > largest {
                let nearest = |&code: &u8| self.value(code) == largest.copysign(f64::from(x));
                return finite.into_iter().filter(nearest).collect();
            }
            let distance = |code: u8| (self.value(code) - f64::from(x)).abs();
            let least = finite.iter().map(|&code| distance(code)).fold(f64::INFINITY, f64::min);
            let mut best: Vec<u8> =
                finite.into_iter().filter(|&code| distance(code) == least).collect();
            let is_tie = best.iter().any(|&code| self.value(code) != self.value(best[0]));
            if is_tie {
                best.retain(|&code| code & 1 == 0);
            }
            // Zeros keep their sign where there are two of them.
            if best.contains(&0) && best.contains(&0x80) {
                best.retain(|&code| (code == 0x80) == x.is_sign_negative());
            }
            best
        }
    }

    #[test]
    fn codes_have_the_values_of_their_formats() {
        for definition in &DEFINITIONS {
            for code in 0..=255 {
                let (got, expected) =
                    (f64::from(definition.format.to_f32(code)), definition.value(code));
                let same = got == expected && got.is_sign_negative() == expected.is_sign_negative();
                assert!(
                    same || got.is_nan() && expected.is_nan(),
                    "{:?} {code:#x}: {got} {expected}",
                    definition.format
                );
            }
        }
        for code in 0..255 {
            assert_eq!(
                f64::from(Float8::E8M0FNU.to_f32(code)),
                2.0_f64.powi(i32::from(code) - 127)
            );
        }
        assert!(Float8::E8M0FNU.to_f32(255).is_nan());
    }

    /// Every number of half precision, and the singles around each value and each middle of two.
    fn numbers(format: Float8) -> Vec<f32> {
        let mut numbers: Vec<f32> =
            (0..=u16::MAX).step_by(7).map(|bits| crate::f16::from_bits(bits).to_f32()).collect();
        let mut values: Vec<f32> =
            (0..=255).map(|code| format.to_f32(code)).filter(|v| v.is_finite()).collect();
        values.extend([500.0, 1e5, 3.4e38, 1e-38, 1e-45, 6e-39, 4e-39]);
        values.sort_by(f32::total_cmp);
        for pair in values.windows(2) {
            let middle = f64::midpoint(pair[0].into(), pair[1].into()) as f32;
            for x in [pair[0], middle] {
                numbers.extend([x, x.next_down(), x.next_up(), -x]);
            }
        }
        numbers.extend([
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -f32::NAN,
            f32::MAX,
            -0.0,
            0.0,
        ]);
        numbers
    }

    #[test]
    fn numbers_become_the_nearest_code_and_of_two_the_even_one() {
        for definition in &DEFINITIONS {
            for x in numbers(definition.format) {
                let code = definition.format.code_of(x);
                assert!(
                    definition.nearest(x).contains(&code),
                    "{:?}: {x:e} gave {code:#x}, not {:x?}",
                    definition.format,
                    definition.nearest(x)
                );
            }
        }
    }

    #[test]
    fn powers_of_two_round_their_exponent_up_from_half_on() {
        for x in numbers(Float8::E8M0FNU) {
            let size = f64::from(x.abs());
            let expected = if !size.is_finite() {
                255
            } else if size <= 2.0_f64.powi(-127) {
                0
            } else if size < 2.0_f64.powi(-126) {
                // As PyTorch rounds: above the least power of all to the one after it.
                1
            } else {
                let exponent = (0..255).rev().find(|&e| 2.0_f64.powi(e - 127) <= size).unwrap_or(0);
                exponent + i32::from(size >= 1.5 * 2.0_f64.powi(exponent - 127))
            };
            assert_eq!(i32::from(Float8::E8M0FNU.code_of(x)), expected, "{x:e}");
        }
    }

    #[test]
    fn slices_are_converted_as_numbers_are_on_every_level() {
        for level in crate::simd::SimdLevel::ALL {
            crate::simd::set_level(level);
            for format in Float8::ALL {
                let all = numbers(format);
                let mut codes = vec![0; all.len()];
                format.encode(&all, &mut codes);
                assert!(all.iter().zip(&codes).all(|(&x, &code)| format.code_of(x) == code));
                let mut back = vec![0.0; codes.len()];
                format.decode(&codes, &mut back);
                let is_same =
                    |(x, &code): (&f32, &u8)| x.to_bits() == format.to_f32(code).to_bits();
                assert!(back.iter().zip(&codes).all(is_same));
            }
        }
    }

    #[test]
    fn codes_come_back_from_their_values() {
        for format in Float8::ALL {
            for code in 0..=255 {
                let value = format.to_f32(code);
                if !value.is_nan() {
                    assert_eq!(format.code_of(value), code, "{format:?}");
                }
            }
        }
    }
}
