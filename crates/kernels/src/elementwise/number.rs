//! What numbers can do: the traits by which one map serves several element types.
//!
//! `Number` is arithmetic (integers wrap; for `Bool`, `+` is "or" and `*` is "and"), `Int` adds bits
//! and whole-number division, `Ordered` comparison, `Real` is `f32` and `f64`. Functions beyond
//! arithmetic are in `math`. Everything is `#[inline(always)]`: it is compiled into each level's loop.

use super::dense::{self, Levels};
use crate::{Bool, C64, C128, Element};
use num_complex::Complex;

/// How wide the loops over a type are compiled.
pub(crate) trait ElementLevels: Element {
    /// The levels for which loops of arithmetic are compiled.
    type Levels: Levels;
    /// The levels for which loops of functions such as `exp` are compiled.
    type MathLevels: Levels;
}

macro_rules! lane {
    ($($t:ty => $width:ident, $math:ident;)*) => {$(
        impl ElementLevels for $t {
            type Levels = dense::$width;
            type MathLevels = dense::$math;
        }
    )*};
}
lane!(Bool => UpToAvx2, BaselineOnly; u8 => UpToAvx2, BaselineOnly; i8 => UpToAvx2, BaselineOnly; i16 => UpToAvx2, BaselineOnly;
      i32 => UpToAvx2, BaselineOnly; i64 => UpToAvx2, BaselineOnly; u16 => UpToAvx2, BaselineOnly; u32 => UpToAvx2, BaselineOnly;
      u64 => UpToAvx2, BaselineOnly; f32 => AllLevels, AllLevels; f64 => AllLevels, AllLevels;
      C64 => UpToAvx2, BaselineOnly; C128 => UpToAvx2, BaselineOnly;);

/// Arithmetic.
pub(crate) trait Number: ElementLevels + PartialEq {
    #[inline(always)]
    fn zero() -> Self {
        Self::from_i64(0)
    }
    #[inline(always)]
    fn one() -> Self {
        Self::from_i64(1)
    }
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn negative(self) -> Self;
}

/// Comparison.
pub(crate) trait Ordered: Number + PartialOrd {
    fn is_less(self, other: Self) -> bool;
    fn is_less_equal(self, other: Self) -> bool;
    fn is_not_a_number(self) -> bool;
}

/// Whole numbers.
pub(crate) trait Int: Ordered {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    /// Quotient towards zero; the divisor is not zero.
    fn quotient(self, other: Self) -> Self;
    /// The remainder of the quotient towards zero; the divisor is not zero.
    fn remainder(self, other: Self) -> Self;
    fn shift_left(self, count: Self) -> Self;
    fn shift_right(self, count: Self) -> Self;
    fn power(self, exponent: i64) -> Self;
    fn magnitude(self) -> Self;
    /// `|self - other|`, as an unsigned number, because the type itself may be too narrow for it.
    fn gap(self, other: Self) -> f64;
}

macro_rules! ordered {
    ($($t:ty: $nan:expr),*) => {$(
        impl Ordered for $t {
            #[inline(always)] fn is_less(self, other: Self) -> bool { self < other }
            #[inline(always)] fn is_less_equal(self, other: Self) -> bool { self <= other }
            #[inline(always)] fn is_not_a_number(self) -> bool { $nan(self) }
        }
    )*};
}

macro_rules! int {
    ($($t:ty, $unsigned:ty, $signed:literal);*) => {$(
        impl Number for $t {
            #[inline(always)] fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)] fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)] fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)] fn negative(self) -> Self { self.wrapping_neg() }
        }
        ordered!($t: |_| false);
        impl Int for $t {
            #[inline(always)] fn and(self, other: Self) -> Self { self & other }
            #[inline(always)] fn or(self, other: Self) -> Self { self | other }
            #[inline(always)] fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)] fn not(self) -> Self { !self }
            #[inline(always)] fn quotient(self, other: Self) -> Self { self.wrapping_div(other) }
            #[inline(always)] fn remainder(self, other: Self) -> Self { self.wrapping_rem(other) }
            #[inline(always)]
            fn shift_left(self, count: Self) -> Self {
                // A negative count is a huge one when read as unsigned.
                let count = count as $unsigned;
                if count < <$t>::BITS as $unsigned { self.wrapping_shl(count as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, count: Self) -> Self {
                // A shift that is too far (or negative) leaves the sign bit everywhere, as a shift
                // by the width less one does.
                let last = <$t>::BITS - 1;
                let count = count as $unsigned;
                if count <= last as $unsigned {
                    self.wrapping_shr(count as u32)
                } else if $signed {
                    self.wrapping_shr(last)
                } else {
                    0
                }
            }
            #[inline(always)]
            fn power(self, exponent: i64) -> Self {
                if exponent < 0 {
                    // 1/self^|exponent|, rounded towards zero.
                    return if self == 1 {
                        1
                    } else if $signed && self == <$t>::wrapping_sub(0, 1) {
                        if exponent & 1 == 0 { 1 } else { self }
                    } else {
                        0
                    };
                }
                let (mut result, mut base, mut exponent): (Self, Self, i64) = (1, self, exponent);
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    exponent >>= 1;
                    base = base.wrapping_mul(base);
                }
                result
            }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "unsigned types are never negative")]
            fn magnitude(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
            #[inline(always)] fn gap(self, other: Self) -> f64 { self.abs_diff(other) as f64 }
        }
    )*};
}
int!(u8, u8, false; i8, u8, true; i16, u16, true; i32, u32, true; i64, u64, true;
     u16, u16, false; u32, u32, false; u64, u64, false);

impl Number for Bool {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Bool::new(self.get() | other.get())
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Bool::new(self.get() ^ other.get())
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Bool::new(self.get() & other.get())
    }
    #[inline(always)]
    fn negative(self) -> Self {
        self
    }
}

impl PartialOrd for Bool {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl Ordered for Bool {
    #[inline(always)]
    fn is_less(self, other: Self) -> bool {
        !self.get() & other.get()
    }
    #[inline(always)]
    fn is_less_equal(self, other: Self) -> bool {
        !self.get() | other.get()
    }
    #[inline(always)]
    fn is_not_a_number(self) -> bool {
        false
    }
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)] fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)] fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)] fn times(self, other: Self) -> Self { self * other }
            #[inline(always)] fn negative(self) -> Self { -self }
        }
        ordered!($t: |x: $t| x != x);
    )*};
}
float!(f32, f64);

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Number for Complex<$t> {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { Complex::new(self.re + other.re, self.im + other.im) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { Complex::new(self.re - other.re, self.im - other.im) }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Complex::new(
                    self.re * other.re - self.im * other.im,
                    self.re * other.im + self.im * other.re,
                )
            }
            #[inline(always)] fn negative(self) -> Self { Complex::new(-self.re, -self.im) }
        }
    )*};
}
complex!(f32, f64);
