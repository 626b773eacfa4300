//! Conversion between any two dtypes.
//!
//! Integers wrap; floating point to integer truncates, and gives what x86 gives for numbers out of range (see
//! `Element::from_f64`); complex to real keeps the real part; anything to `bool` asks whether it is not zero. Half types and
//! those of a byte go through `f32`, in `drive`, so there is one loop per pair of the other thirteen dtypes.

use super::dense::{AllLevels, Map1, run1};
use super::number::ElementLevels;
use crate::{Bool, C64, C128, DType, Element, Iter, Result};
use num_complex::Complex;
use std::marker::PhantomData;

/// An element type that is converted from: how its values become values of any [`CastTarget`].
trait CastSource: ElementLevels {
    /// Whether conversion to an integer goes through `i32` or `i64` where the number fits that
    /// type, which is quick.
    const IS_FLOAT: bool = false;
    fn convert<T: CastTarget>(self) -> T;
    /// [`CastSource::convert`] for values for which [`CastSource::is_large`] does not hold.
    #[inline(always)]
    fn convert_small<T: CastTarget>(self) -> T {
        self.convert()
    }
    /// Whether the value does not fit `i32`, for short targets, or `i64`, for other ones.
    #[inline(always)]
    fn is_large(self, _for_short: bool) -> bool {
        false
    }
}
/// An element type that is converted to: how its values are made from integers, real and complex
/// numbers.
trait CastTarget: ElementLevels {
    /// Whether this is an integer of at most 32 bits.
    const IS_SHORT: bool = false;
    /// Whether this is an integer of 64 bits with sign.
    const IS_LONG: bool = false;
    fn of_int(value: i64) -> Self;
    fn of_f32(value: f32) -> Self;
    fn of_f64(value: f64) -> Self;
    fn of_u64(value: u64) -> Self;
    fn of_c64(value: C64) -> Self {
        Self::of_f32(value.re)
    }
    fn of_c128(value: C128) -> Self {
        Self::of_f64(value.re)
    }
}

macro_rules! source {
    ($($t:ty: $x:ident => $method:ident($value:expr) $(, large $large:expr, $huge:expr)?);* $(;)?) => {$(
        impl CastSource for $t {
            #[inline(always)]
            fn convert<T: CastTarget>(self) -> T { let $x = self; T::$method($value) }
            $(
                const IS_FLOAT: bool = true;
                #[inline(always)]
                fn convert_small<T: CastTarget>(self) -> T {
                    // (This is the comparison that `is_large` makes.)
                    let small = if self.is_large(T::IS_SHORT) { 0.0 } else { self };
                    // SAFETY: it is a number that `i32`, or else `i64`, has room for.
                    T::of_int(unsafe {
                        if T::IS_SHORT {
                            i64::from(small.to_int_unchecked::<i32>())
                        } else {
                            small.to_int_unchecked::<i64>()
                        }
                    })
                }
                #[inline(always)]
                #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "one comparison for NaN too")]
                fn is_large(self, for_short: bool) -> bool {
                    let most = if for_short { $large } else { $huge };
                    !(self.abs() < most)
                }
            )?
        }
    )*};
}
source!(Bool: x => of_int(i64::from(x.get())); u8: x => of_int(x as i64); i8: x => of_int(x as i64);
    i16: x => of_int(x as i64); i32: x => of_int(x as i64); i64: x => of_int(x);
    u16: x => of_int(x as i64); u32: x => of_int(x as i64); u64: x => of_u64(x);
    f32: x => of_f32(x), large 2_147_483_648.0, 9_223_372_036_854_775_808.0;
    f64: x => of_f64(x), large 2_147_483_648.0, 9_223_372_036_854_775_808.0;
    C64: x => of_c64(x); C128: x => of_c128(x));

macro_rules! int_target {
    ($($t:ty, $is_short:literal, $is_long:literal);*) => {$(
        impl CastTarget for $t {
            const IS_SHORT: bool = $is_short;
            const IS_LONG: bool = $is_long;
            #[inline(always)] fn of_int(value: i64) -> Self { value as $t }
            #[inline(always)] fn of_u64(value: u64) -> Self { value as $t }
            #[inline(always)] fn of_f32(value: f32) -> Self { <$t as Element>::from_f64(f64::from(value)) }
            #[inline(always)] fn of_f64(value: f64) -> Self { <$t as Element>::from_f64(value) }
        }
    )*};
}
int_target!(u8, true, false; i8, true, false; i16, true, false; i32, true, false; i64, false, true;
    u16, true, false; u32, true, false; u64, false, false);

impl CastTarget for Bool {
    #[inline(always)]
    fn of_int(value: i64) -> Self {
        Bool::new(value != 0)
    }
    #[inline(always)]
    fn of_u64(value: u64) -> Self {
        Bool::new(value != 0)
    }
    #[inline(always)]
    fn of_f32(value: f32) -> Self {
        Bool::new(value != 0.0)
    }
    #[inline(always)]
    fn of_f64(value: f64) -> Self {
        Bool::new(value != 0.0)
    }
    #[inline(always)]
    fn of_c64(value: C64) -> Self {
        Bool::new((value.re != 0.0) | (value.im != 0.0))
    }
    #[inline(always)]
    fn of_c128(value: C128) -> Self {
        Bool::new((value.re != 0.0) | (value.im != 0.0))
    }
}

macro_rules! float_target {
    ($($t:ty),*) => {$(
        impl CastTarget for $t {
            #[inline(always)] fn of_int(value: i64) -> Self { value as $t }
            #[inline(always)] fn of_u64(value: u64) -> Self { value as $t }
            #[inline(always)] fn of_f32(value: f32) -> Self { value as $t }
            #[inline(always)] fn of_f64(value: f64) -> Self { value as $t }
        }
        impl CastTarget for Complex<$t> {
            #[inline(always)] fn of_int(value: i64) -> Self { Complex::new(value as $t, 0.0) }
            #[inline(always)] fn of_u64(value: u64) -> Self { Complex::new(value as $t, 0.0) }
            #[inline(always)] fn of_f32(value: f32) -> Self { Complex::new(value as $t, 0.0) }
            #[inline(always)] fn of_f64(value: f64) -> Self { Complex::new(value as $t, 0.0) }
            #[inline(always)]
            fn of_c64(value: C64) -> Self { Complex::new(value.re as $t, value.im as $t) }
            #[inline(always)]
            fn of_c128(value: C128) -> Self { Complex::new(value.re as $t, value.im as $t) }
        }
    )*};
}
float_target!(f32, f64);

struct Convert<A, T>(PhantomData<(A, T)>);
impl<A: CastSource, T: CastTarget> Map1 for Convert<A, T> {
    type P = ();
    type A = A;
    type Out = T;
    type Levels = AllLevels;
    const HAS_SLOW_PATH: bool = A::IS_FLOAT && (T::IS_SHORT || T::IS_LONG);
    #[inline(always)]
    fn map((): (), a: A) -> T {
        if Self::HAS_SLOW_PATH { a.convert_small() } else { a.convert() }
    }
    #[inline(always)]
    fn needs_slow_path(a: A) -> bool {
        a.is_large(T::IS_SHORT)
    }
    fn slow_path((): (), a: A) -> T {
        a.convert()
    }
}

/// Converts the input to the output's dtype (1 output, 1 input).
pub fn cast(iter: &mut Iter) -> Result<()> {
    let (to, from) = (iter.dtype(0), iter.input_dtype(0));
    if to == from {
        return super::copy(iter);
    }
    if let Some(result) = super::half::cast_half(iter) {
        return result;
    }
    compute!(from, "copy_kernel", [bool int unsigned float float8 complex bcomplex], A => to_any::<A>(iter, to))
}

fn to_any<A: CastSource>(iter: &Iter, to: DType) -> Result<()> {
    compute!(to, "copy_kernel", [bool int unsigned float float8 complex bcomplex], T => {
        run1::<Convert<A, T>>(iter, ())
    })
}
