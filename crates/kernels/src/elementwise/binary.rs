//! Ops of two inputs of one type: arithmetic, division and its remainders, powers, maxima and minima, bitwise operations.
//! Comparisons are in `compare`.

use super::dense::{Map2, run1, run2};
use super::math::{ComplexNumber, Math, RealMath};
use super::number::{Int, Number, Ordered as Order};
use crate::{Bool, C64, C128, DType, Error, Float8, Iter, Result, Scalar, bf16, f16};
use std::sync::atomic::{AtomicBool, Ordering};

/// Declares ops of two inputs and an output of one type.
macro_rules! binary {
    ($($(#[$meta:meta])* $name:ident, $error:literal, [$($kind:ident)+], $($width:ident)? =>
        $Map:ident<$T:ident: $bound:path>($a:ident, $b:ident) $body:expr;)*) => {$(
        map!($($width)? $Map<$T: $bound>($a: $T, $b: $T) -> $T { $body });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            compute!(iter.input_dtype(0), $error, [$($kind)+], E => run2::<$Map<E>>(iter, ()))
        }
    )*};
}

binary! {
    /// The angle of the point `(b, a)` in `[-π, π]`.
    atan2, "atan2_cpu", [float], => Atan2<T: RealMath>(a, b) RealMath::atan2(a, b);
    /// `sqrt(a² + b²)` without overflow.
    hypot, "hypot_cpu", [float], => Hypot<T: RealMath>(a, b) RealMath::hypot(a, b);
    /// The size of `a` with the sign of `b`.
    copysign, "copysign_cpu", [float], => Copysign<T: RealMath>(a, b) RealMath::copysign(a, b);
    /// `a ln b`, 0 where `a` is 0; NaN where `b` is NaN.
    xlogy, "xlogy_cpu", [float], => Xlogy<T: RealMath>(a, b) {
        let product = a.times(Math::log(b));
        let zero = if a == T::zero() { T::zero() } else { product };
        if b.is_not_a_number() { b } else { zero }
    };
    /// `ln(e^a + e^b)` without overflow.
    logaddexp, "logaddexp_cpu", [float complex], math => Logaddexp<T: Math>(a, b) Math::logaddexp(a, b);
    /// `log2(2^a + 2^b)` without overflow.
    logaddexp2, "logaddexp2_cpu", [float], math => Logaddexp2<T: RealMath>(a, b) {
        let larger = if a < b { b } else { a };
        let sum = larger.plus(RealMath::log2_1p_exp2(a.minus(b)));
        // Equal infinities: their difference is NaN, their sum themselves.
        if (a == b) & (RealMath::magnitude(a) == T::INFINITY) { a } else { sum }
    };
    /// 0 below 0, 1 above, `b` at 0; 0 for NaN.
    heaviside, "heaviside_cpu", [bool int float], => Heaviside<T: Order>(a, b) {
        let step = if T::zero().is_less(a) { T::one() } else { T::zero() };
        if a == T::zero() { b } else { step }
    };
    /// The larger; NaN if either is.
    maximum, "maximum_cpu", [bool int unsigned float], => Maximum<T: Order>(a, b) {
        let larger = if a.is_less(b) { b } else { a };
        if b.is_not_a_number() { b } else if a.is_not_a_number() { a } else { larger }
    };
    /// The smaller; NaN if either is.
    minimum, "minimum_cpu", [bool int unsigned float], => Minimum<T: Order>(a, b) {
        let smaller = if b.is_less(a) { b } else { a };
        if b.is_not_a_number() { b } else if a.is_not_a_number() { a } else { smaller }
    };
    /// The larger of two numbers; if exactly one is NaN, the number.
    fmax, "fmax_cpu", [bool int unsigned float], => Fmax<T: Order>(a, b) {
        let larger = if a.is_less(b) { b } else { a };
        if a.is_not_a_number() { b } else { larger }
    };
    /// The smaller of two numbers; if exactly one is NaN, the number.
    fmin, "fmin_cpu", [bool int unsigned float], => Fmin<T: Order>(a, b) {
        let smaller = if b.is_less(a) { b } else { a };
        if a.is_not_a_number() { b } else { smaller }
    };
    /// `a << b`; 0 if `b` is negative or at least the width.
    bitwise_left_shift, "lshift_cpu", [int], => ShiftLeft<T: Int>(a, b) a.shift_left(b);
    /// `a >> b`, keeping the sign; only the sign is left if `b` is negative or at least the width.
    bitwise_right_shift, "rshift_cpu", [int], => ShiftRight<T: Int>(a, b) a.shift_right(b);
}

map!(Mul<T: Number>(a: T, b: T) -> T { a.times(b) });
/// `a * b`; integers wrap, for `bool` "and". Floats of one byte are not multiplied by one number, as PyTorch does not.
pub fn mul(iter: &mut Iter) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if dtype.is_narrow_float() {
        let is_one = (0..iter.dims()).all(|dim| iter.size(dim) == 1 || iter.stride(dim, 2) == 0);
        let name = if is_one && iter.numel() > 0 { "mul_cpu_reduced_float" } else { "mul_cpu" };
        return match Float8::of(dtype) {
            Some(_) if !is_one || iter.numel() == 0 => run2::<Mul<f32>>(iter, ()),
            _ => Err(Error::not_implemented(name, dtype)),
        };
    }
    compute!(dtype, "mul_cpu", [bool int unsigned float complex], T => run2::<Mul<T>>(iter, ()))
}

map!(Nextafter<T: RealMath>(a: T, b: T) -> T { RealMath::next_after(a, b) });
/// Half-precision numbers, which are passed as single-precision numbers of the same value.
trait HalfBits {
    fn bits(x: f32) -> u16;
    fn from_bits(bits: u16) -> f32;
}
impl HalfBits for f16 {
    fn bits(x: f32) -> u16 {
        f16::from_f32(x).to_bits()
    }
    fn from_bits(bits: u16) -> f32 {
        f16::from_bits(bits).to_f32()
    }
}
impl HalfBits for bf16 {
    fn bits(x: f32) -> u16 {
        bf16::from_f32(x).to_bits()
    }
    fn from_bits(bits: u16) -> f32 {
        bf16::from_bits(bits).to_f32()
    }
}
map!(baseline NextafterHalf<H: HalfBits>(a: f32, b: f32) -> f32 {
    if a.is_nan() | (a == b) | b.is_nan() {
        if a.is_nan() { a } else { b }
    } else if a == 0.0 {
        // The smallest number there is has the lowest bit alone, and the sign.
        H::from_bits(1).copysign(b)
    } else {
        // Bits count up away from zero.
        let is_outward = (a < b) == (a > 0.0);
        let bits = H::bits(a);
        H::from_bits(if is_outward { bits + 1 } else { bits - 1 })
    }
});
/// The next number after `a` on the way to `b`.
pub fn nextafter(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::F16 => run2::<NextafterHalf<f16>>(iter, ()),
        DType::BF16 => run2::<NextafterHalf<bf16>>(iter, ()),
        d => compute!(d, "nextafter_cpu", [float], T => run2::<Nextafter<T>>(iter, ())),
    }
}

map!(TrueDivide<T: Math>(a: T, b: T) -> T { a.divided_by(b) });
/// Quotients of complex singles by the textbook formula: in double precision no product of
/// single-precision numbers overflows or underflows.
struct DivideSingles;
impl DivideSingles {
    #[inline(always)]
    fn square(b: C64) -> f64 {
        let (c, d) = (f64::from(b.re), f64::from(b.im));
        c * c + d * d
    }
}
impl Map2 for DivideSingles {
    type P = ();
    type A = C64;
    type B = C64;
    type Out = C64;
    type Levels = super::dense::AllLevels;
    #[inline(always)]
    fn map((): (), a: C64, b: C64) -> C64 {
        let scale = 1.0 / Self::square(b);
        let (c, d) = (f64::from(b.re), f64::from(b.im));
        let (re, im) = (f64::from(a.re), f64::from(a.im));
        C64::new(((re * c + im * d) * scale) as f32, ((im * c - re * d) * scale) as f32)
    }
    const HAS_SLOW_PATH: bool = true;
    #[inline(always)]
    fn needs_slow_path(_a: C64, b: C64) -> bool {
        let square = Self::square(b);
        !((square > 0.0) & (square < f64::INFINITY))
    }
    fn slow_path((): (), a: C64, b: C64) -> C64 {
        a.divided_by(b)
    }
}
/// `a / b`, of floating and complex numbers.
pub fn true_divide(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::C64 => run2::<DivideSingles>(iter, ()),
        DType::C128 => run2::<TrueDivide<C128>>(iter, ()),
        d => compute!(d, "div_true_cpu", [float], T => run2::<TrueDivide<T>>(iter, ())),
    }
}

map!(Add<T: Number>(a: T, b: T) -> T { a.plus(b) });
map!(Sub<T: Number>(a: T, b: T) -> T { a.minus(b) });
map!(AddScaled<T: Number>[alpha => T](a: T, b: T) -> T { a.plus(alpha.times(b)) });
/// `a + alpha b`; integers wrap, for `bool` "or".
pub fn add(iter: &mut Iter, alpha: Scalar) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if alpha.is(1.0) {
        return compute!(dtype, "add_stub", [bool int float complex], T => run2::<Add<T>>(iter, ()));
    }
    compute!(dtype, "add_stub", [bool int float complex], T => run2::<AddScaled<T>>(iter, alpha.to::<T>()))
}

fn refuse_bools(dtype: DType) -> Result<()> {
    if dtype != DType::Bool {
        return Ok(());
    }
    Err(Error::unsupported(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
         operator instead."
            .into(),
    ))
}

/// `a - alpha b`; integers wrap; refused for `bool`.
pub fn sub(iter: &mut Iter, alpha: Scalar) -> Result<()> {
    let dtype = iter.input_dtype(0);
    refuse_bools(dtype)?;
    if alpha.is(1.0) {
        return compute!(dtype, "add_stub", [int float complex], T => run2::<Sub<T>>(iter, ()));
    }
    compute!(dtype, "add_stub", [int float complex], T => {
        run2::<AddScaled<T>>(iter, alpha.to::<T>().negative())
    })
}

map!(RsubScaled<T: Number>[alpha => T](a: T, b: T) -> T { b.minus(alpha.times(a)) });
/// `b - alpha a`.
pub fn rsub(iter: &mut Iter, alpha: Scalar) -> Result<()> {
    refuse_bools(iter.input_dtype(0))?;
    compute!(iter.input_dtype(0), "add_stub", [int float complex], T => {
        run2::<RsubScaled<T>>(iter, alpha.to::<T>())
    })
}

/// Set by an integer division that met a zero divisor.
type ZeroSeen<'a> = &'a AtomicBool;

/// Declares a map of whole numbers that may divide by zero, and of real numbers.
macro_rules! division {
    ($($(#[$meta:meta])* $name:ident, $error:literal,
        $MapInt:ident($a:ident, $b:ident) $whole:expr, $MapReal:ident;)*) => {$(
        struct $MapInt<'a, T>(std::marker::PhantomData<&'a T>);
        impl<'a, T: Int> Map2 for $MapInt<'a, T> {
            type P = ZeroSeen<'a>;
            type A = T;
            type B = T;
            type Out = T;
            type Levels = super::dense::BaselineOnly;
            #[inline(always)]
            fn map(zero_seen: ZeroSeen<'a>, $a: T, $b: T) -> T {
                if $b == T::zero() {
                    zero_seen.store(true, Ordering::Relaxed);
                    return T::zero();
                }
                $whole
            }
        }
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            let dtype = iter.input_dtype(0);
            if !dtype.is_integral(true) {
                return compute!(dtype, $error, [float], T => run2::<$MapReal<T>>(iter, ()));
            }
            let zero_seen = AtomicBool::new(false);
            compute!(dtype, $error, [int], T => run2::<$MapInt<'_, T>>(iter, &zero_seen))?;
            if zero_seen.into_inner() {
                return Err(Error::runtime("ZeroDivisionError".into()));
            }
            Ok(())
        }
    )*};
}

division! {
    /// `floor(a / b)`. Integers: `ZeroDivisionError` where `b` is 0.
    floor_divide, "div_floor_cpu",
        FloorDivideInt(a, b) {
            let (quotient, rest) = (a.quotient(b), a.remainder(b));
            let lower = (rest != T::zero()) & (rest.is_less(T::zero()) != b.is_less(T::zero()));
            if lower { quotient.minus(T::one()) } else { quotient }
        },
        FloorDivideReal;
    /// `trunc(a / b)`. Integers: `ZeroDivisionError` where `b` is 0.
    trunc_divide, "div_trunc_cpu",
        TruncDivideInt(a, b) a.quotient(b),
        TruncDivideReal;
    /// `a - b floor(a / b)`: the remainder with the sign of `b`. Integers: `ZeroDivisionError` where `b` is 0.
    remainder, "remainder_cpu",
        RemainderInt(a, b) {
            let rest = a.remainder(b);
            let add = (rest != T::zero()) & (rest.is_less(T::zero()) != b.is_less(T::zero()));
            if add { rest.plus(b) } else { rest }
        },
        RemainderReal;
    /// The remainder with the sign of `a` (C's `fmod`). Integers: `ZeroDivisionError` where `b` is 0.
    fmod, "fmod_cpu",
        FmodInt(a, b) a.remainder(b),
        FmodReal;
}

map!(TruncDivideReal<T: RealMath>(a: T, b: T) -> T { RealMath::trunc(a.divided_by(b)) });

/// Declares maps of real numbers that are made of the remainder of a division, for which most
/// operands have a quick way.
macro_rules! of_rest {
    ($($Map:ident $of:ident;)*) => {$(
        struct $Map<T>(std::marker::PhantomData<T>);
        impl<T: RealMath> Map2 for $Map<T> {
            type P = ();
            type A = T;
            type B = T;
            type Out = T;
            type Levels = T::MathLevels;
            #[inline(always)]
            fn map((): (), a: T, b: T) -> T {
                $of(a, b, RealMath::fast_remainder(a, b))
            }
            const HAS_SLOW_PATH: bool = true;
            #[inline(always)]
            fn needs_slow_path(a: T, b: T) -> bool {
                !RealMath::has_fast_remainder(a, b)
            }
            fn slow_path((): (), a: T, b: T) -> T {
                $of(a, b, RealMath::remainder(a, b))
            }
        }
    )*};
}
of_rest! {
    FloorDivideReal floor_quotient;
    RemainderReal floored_remainder;
    FmodReal truncated_remainder;
}

#[inline(always)]
fn truncated_remainder<T: RealMath>(_a: T, _b: T, rest: T) -> T {
    rest
}

#[inline(always)]
fn floored_remainder<T: RealMath>(_a: T, b: T, rest: T) -> T {
    let add = (rest != T::zero()) & (rest.is_less(T::zero()) != b.is_less(T::zero()));
    if add { rest.plus(b) } else { rest }
}

/// The floor of `a / b` from the exact remainder, so that rounding of the quotient cannot pass a
/// whole number (Python's rule: `1.0 // 0.1` is 9).
#[inline(always)]
fn floor_quotient<T: RealMath>(a: T, b: T, rest: T) -> T {
    let whole = a.divided_by(b);
    let quotient = a.minus(rest).divided_by(b);
    let lower = (rest != T::zero()) & (b.is_less(T::zero()) != rest.is_less(T::zero()));
    let quotient = if lower { quotient.minus(T::one()) } else { quotient };
    let floor = RealMath::floor(quotient);
    // The subtraction above may have rounded to just below the next whole number.
    let next = if T::of(0.5).is_less(quotient.minus(floor)) { floor.plus(T::one()) } else { floor };
    let result = if quotient == T::zero() { RealMath::copysign(T::zero(), whole) } else { next };
    if b == T::zero() { whole } else { result }
}

map!(baseline PowInt<T: Int>(a: T, b: T) -> T { Int::power(a, b.to_i64()) });
map!(math Pow<T: Math>(a: T, b: T) -> T { Math::power(a, b) });
/// `a^b`; integers wrap, and with a negative exponent give 1/a^|b| towards zero.
pub fn pow(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        d if d.is_integral(true) => {
            compute!(d, "pow", [int], T => run2::<PowInt<T>>(iter, ()))
        }
        d => compute!(d, "pow", [float complex], T => run2::<Pow<T>>(iter, ())),
    }
}

map!(baseline PowIntScalar<T: Int>[b => i64](a: T) -> T { Int::power(a, b) });
map!(math PowScalar<T: Math>[b => T](a: T) -> T { Math::power(a, b) });
map!(Cube<T: Number>(a: T) -> T { a.times(a).times(a) });
map!(math InverseSquare<T: Math>(a: T) -> T { Math::reciprocal(a.times(a)) });
/// `a^exponent` for one exponent (1 input); integers refuse negative ones.
pub fn pow_scalar(iter: &mut Iter, exponent: Scalar) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if dtype.is_integral(true) {
        if exponent.to_i64() < 0 {
            return Err(Error::runtime(
                "Integers to negative integer powers are not allowed.".into(),
            ));
        }
        let power = exponent.to_i64();
        return match power {
            1 => super::copy(iter),
            2 => super::square(iter),
            _ => compute!(dtype, "pow", [int], T => run1::<PowIntScalar<T>>(iter, power)),
        };
    }
    match exponent {
        e if e.is(1.0) => super::copy(iter),
        e if e.is(2.0) => super::square(iter),
        e if e.is(0.5) => super::sqrt(iter),
        e if e.is(-0.5) => super::rsqrt(iter),
        e if e.is(-1.0) => super::reciprocal(iter),
        e if e.is(3.0) => {
            compute!(dtype, "pow", [float complex], T => run1::<Cube<T>>(iter, ()))
        }
        e if e.is(-2.0) => {
            compute!(dtype, "pow", [float complex], T => run1::<InverseSquare<T>>(iter, ()))
        }
        e => compute!(dtype, "pow", [float complex], T => run1::<PowScalar<T>>(iter, e.to::<T>())),
    }
}

macro_rules! bitwise {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $Map:ident, $MapBool:ident, $method:ident, $op:tt;)*) => {$(
        map!($Map<T: Int>(a: T, b: T) -> T { a.$method(b) });
        map!($MapBool<T: BoolLike>(a: T, b: T) -> T { T::of(a.as_bool() $op b.as_bool()) });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            match iter.input_dtype(0) {
                DType::Bool => run2::<$MapBool<Bool>>(iter, ()),
                d => compute!(d, $error, [int unsigned], T => run2::<$Map<T>>(iter, ())),
            }
        }
    )*};
}
/// `Bool`, as a bound.
trait BoolLike: Number {
    fn as_bool(self) -> bool;
    fn of(value: bool) -> Self;
}
impl BoolLike for Bool {
    #[inline(always)]
    fn as_bool(self) -> bool {
        self.get()
    }
    #[inline(always)]
    fn of(value: bool) -> Self {
        Bool::new(value)
    }
}
bitwise! {
    /// Bits set in both; for `bool` "and".
    bitwise_and, "bitwise_and_cpu", BitAnd, BoolAnd, and, &;
    /// Bits set in either; for `bool` "or".
    bitwise_or, "bitwise_or_cpu", BitOr, BoolOr, or, |;
    /// Bits set in exactly one; for `bool` "exclusive or".
    bitwise_xor, "bitwise_xor_cpu", BitXor, BoolXor, xor, ^;
}

/// Complex numbers by the type of their parts, for maps from parts.
trait ComplexPart: RealMath {
    type Whole: ComplexNumber<Part = Self>;
}
impl ComplexPart for f32 {
    type Whole = C64;
}
impl ComplexPart for f64 {
    type Whole = C128;
}
map!(ToComplex<T: ComplexPart>(re: T, im: T) -> T::Whole { T::Whole::from_parts(re, im) });
struct Polar<T>(std::marker::PhantomData<T>);
impl<T: ComplexPart> Map2 for Polar<T> {
    type P = ();
    type A = T;
    type B = T;
    type Out = T::Whole;
    type Levels = T::MathLevels;
    #[inline(always)]
    fn map((): (), size: T, angle: T) -> T::Whole {
        T::Whole::from_parts(size.times(Math::cos(angle)), size.times(Math::sin(angle)))
    }
    const HAS_SLOW_PATH: bool = true;
    #[inline(always)]
    fn needs_slow_path(_size: T, angle: T) -> bool {
        angle.needs_slow_reduction()
    }
    fn slow_path((): (), size: T, angle: T) -> T::Whole {
        T::Whole::from_parts(size.times(angle.cos_any()), size.times(angle.sin_any()))
    }
}
/// `re + i im`; the output has the complex dtype of the inputs.
pub fn complex(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::F16 | DType::F32 => run2::<ToComplex<f32>>(iter, ()),
        DType::F64 => run2::<ToComplex<f64>>(iter, ()),
        d => Err(Error::not_implemented("complex_cpu", d)),
    }
}
/// `size (cos angle + i sin angle)`; the output has the complex dtype of the inputs.
pub fn polar(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::F16 | DType::F32 => run2::<Polar<f32>>(iter, ()),
        DType::F64 => run2::<Polar<f64>>(iter, ()),
        d => Err(Error::not_implemented("polar_cpu", d)),
    }
}
