//! Conversion between any two dtypes.
//!
//! Integers wrap; floating point to integer truncates, and gives what x86 gives for numbers that have no place (see
//! `Element::from_f64`); complex to real keeps the real part; anything to `bool` asks whether it is not zero. Half types go
//! through `f32`, in `drive`, so there is one loop per pair of the other thirteen dtypes.

use super::dense::{Map1, Widest, run1};
use super::number::Lane;
use crate::{Bool, C64, C128, DType, Element, Iter, Result};
use num_complex::Complex;
use std::marker::PhantomData;

/// What an element is on its way from one type to another.
trait Source: Lane {
    /// Whether conversion to a short integer goes through `i32`, which is quick, but not for large values.
    const IS_FLOAT: bool = false;
    fn convert<T: Target>(self) -> T;
    /// As `convert` for values of less than 2^31.
    #[inline(always)]
    fn convert_small<T: Target>(self) -> T {
        self.convert()
    }
    #[inline(always)]
    fn is_large(self) -> bool {
        false
    }
}
/// What can be made from each kind of source.
trait Target: Lane {
    /// Whether this is an integer of at most 32 bits.
    const IS_SHORT: bool = false;
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
    ($($t:ty: $x:ident => $method:ident($value:expr) $(, large $large:expr)?);* $(;)?) => {$(
        impl Source for $t {
            #[inline(always)]
            fn convert<T: Target>(self) -> T { let $x = self; T::$method($value) }
            $(
                const IS_FLOAT: bool = true;
                #[inline(always)]
                fn convert_small<T: Target>(self) -> T {
                    let small = if self.is_large() { 0.0 } else { self };
                    // SAFETY: it is a number that `i32` has room for.
                    T::of_int(i64::from(unsafe { small.to_int_unchecked::<i32>() }))
                }
                #[inline(always)]
                fn is_large(self) -> bool { self.is_nan() | (self.abs() >= $large) }
            )?
        }
    )*};
}
source!(Bool: x => of_int(i64::from(x.get())); u8: x => of_int(x as i64); i8: x => of_int(x as i64);
    i16: x => of_int(x as i64); i32: x => of_int(x as i64); i64: x => of_int(x);
    u16: x => of_int(x as i64); u32: x => of_int(x as i64); u64: x => of_u64(x);
    f32: x => of_f32(x), large 2_147_483_648.0; f64: x => of_f64(x), large 2_147_483_648.0; C64: x => of_c64(x); C128: x => of_c128(x));

macro_rules! int_target {
    ($($t:ty, $is_short:literal);*) => {$(
        impl Target for $t {
            const IS_SHORT: bool = $is_short;
            #[inline(always)] fn of_int(value: i64) -> Self { value as $t }
            #[inline(always)] fn of_u64(value: u64) -> Self { value as $t }
            #[inline(always)] fn of_f32(value: f32) -> Self { <$t as Element>::from_f64(f64::from(value)) }
            #[inline(always)] fn of_f64(value: f64) -> Self { <$t as Element>::from_f64(value) }
        }
    )*};
}
int_target!(u8, true; i8, true; i16, true; i32, true; i64, false; u16, true; u32, true; u64, false);

impl Target for Bool {
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
        impl Target for $t {
            #[inline(always)] fn of_int(value: i64) -> Self { value as $t }
            #[inline(always)] fn of_u64(value: u64) -> Self { value as $t }
            #[inline(always)] fn of_f32(value: f32) -> Self { value as $t }
            #[inline(always)] fn of_f64(value: f64) -> Self { value as $t }
        }
        impl Target for Complex<$t> {
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
impl<A: Source, T: Target> Map1 for Convert<A, T> {
    type P = ();
    type A = A;
    type Out = T;
    type Width = Widest;
    const REPAIRS: bool = A::IS_FLOAT && T::IS_SHORT;
    #[inline(always)]
    fn map((): (), a: A) -> T {
        if Self::REPAIRS { a.convert_small() } else { a.convert() }
    }
    #[inline(always)]
    fn is_hard(a: A) -> bool {
        a.is_large()
    }
    fn repair((): (), a: A) -> T {
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
    compute!(from, "copy_kernel", [bool int unsigned float complex], A => to_any::<A>(iter, to))
}

fn to_any<A: Source>(iter: &Iter, to: DType) -> Result<()> {
    compute!(to, "copy_kernel", [bool int unsigned float complex], T => {
        run1::<Convert<A, T>>(iter, ())
    })
}
