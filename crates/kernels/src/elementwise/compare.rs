//! Ops whose results are `Bool`: comparisons, logic, and the kinds of numbers.

use super::dense::{run1, run2};
use super::math::{ComplexNumber, RealMath};
use super::number::{Int, Number, Ordered};
use crate::{Bool, C64, C128, DType, Iter, Result, StridedRef, for_dtype};

/// Declares comparisons of two inputs of one type.
macro_rules! comparison {
    ($($(#[$meta:meta])* $name:ident, $error:literal, [$($kind:ident)+],
        $Map:ident<$T:ident: $bound:path>($a:ident, $b:ident) $body:expr;)*) => {$(
        map!($Map<$T: $bound>($a: $T, $b: $T) -> Bool { Bool::new($body) });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            compute!(iter.input_dtype(0), $error, [$($kind)+], E => run2::<$Map<E>>(iter, ()))
        }
    )*};
}

comparison! {
    /// `a == b`; never for NaN.
    eq, "eq_cpu", [bool int unsigned float float8 complex bcomplex], Eq<T: Number>(a, b) a == b;
    /// `a != b`; always for NaN.
    ne, "ne_cpu", [bool int unsigned float float8 complex bcomplex], Ne<T: Number>(a, b) a != b;
    /// `a < b`.
    lt, "lt_cpu", [bool int float], Lt<T: Ordered>(a, b) a.is_less(b);
    /// `a <= b`.
    le, "le_cpu", [bool int float], Le<T: Ordered>(a, b) a.is_less_equal(b);
    /// `a > b`.
    gt, "gt_cpu", [bool int float], Gt<T: Ordered>(a, b) b.is_less(a);
    /// `a >= b`.
    ge, "ge_cpu", [bool int float], Ge<T: Ordered>(a, b) b.is_less_equal(a);
    /// Both not zero (NaN is not zero).
    logical_and, "logical_and_cpu", [bool int float complex], And<T: Number>(a, b) a.is_true() & b.is_true();
    /// At least one not zero.
    logical_or, "logical_or_cpu", [bool int float complex], Or<T: Number>(a, b) a.is_true() | b.is_true();
    /// Exactly one not zero.
    logical_xor, "logical_xor_cpu", [bool int float complex], Xor<T: Number>(a, b) a.is_true() ^ b.is_true();
}

map!(LogicalNot<T: Number>(x: T) -> Bool { Bool::new(!x.is_true()) });
/// Whether `x` is zero.
pub fn logical_not(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "logical_not_cpu", [bool int float complex], T => run1::<LogicalNot<T>>(iter, ()))
}

map!(Always<T: Number>[answer => bool](_x: T) -> Bool { Bool::new(answer) });
/// Declares predicates of the kind of a number; for integers their value is a constant.
macro_rules! kind {
    ($($(#[$meta:meta])* $name:ident, $whole:literal, $Map:ident, $MapComplex:ident, $join:tt, $x:ident => $body:expr;)*) => {$(
        map!($Map<T: RealMath>($x: T) -> Bool { Bool::new($body) });
        map!($MapComplex<T: ComplexNumber>(z: T) -> Bool {
            let re = { let $x = z.part_re(); $body };
            let im = { let $x = z.part_im(); $body };
            Bool::new(re $join im)
        });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            match iter.input_dtype(0) {
                DType::C32 | DType::BC32 | DType::C64 => run1::<$MapComplex<C64>>(iter, ()),
                DType::C128 => run1::<$MapComplex<C128>>(iter, ()),
                d if d.is_floating_point() => {
                    compute!(d, stringify!($name), [float float8], T => run1::<$Map<T>>(iter, ()))
                }
                d => compute!(d, stringify!($name), [bool int unsigned], T => run1::<Always<T>>(iter, $whole)),
            }
        }
    )*};
}
kind! {
    /// Whether `x` is NaN (of a complex number: either part).
    isnan, false, IsNan, IsNanComplex, |, x => x.is_not_a_number();
    /// Whether `x` is infinite (of a complex number: either part).
    isinf, false, IsInf, IsInfComplex, |, x => RealMath::magnitude(x) == RealMath::INFINITY;
    /// Whether `x` is plus infinity.
    isposinf, false, IsPosInf, IsPosInfComplex, &, x => x == RealMath::INFINITY;
    /// Whether `x` is minus infinity.
    isneginf, false, IsNegInf, IsNegInfComplex, &, x => RealMath::magnitude(x) == RealMath::INFINITY && x != RealMath::INFINITY;
    /// Whether `x` is neither infinite nor NaN (of a complex number: both parts).
    isfinite, true, IsFinite, IsFiniteComplex, &, x => x.is_finite_number();
}

map!(SignBit<T: RealMath>(x: T) -> Bool { Bool::new(RealMath::copysign(T::one(), x) < T::zero()) });
map!(BelowZero<T: Ordered>(x: T) -> Bool { Bool::new(x.is_less(T::zero())) });
/// Whether the sign is negative, also of zero and NaN; refused for complex numbers.
pub fn signbit(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        d if d.is_floating_point() => {
            compute!(d, "signbit_cpu", [float], T => run1::<SignBit<T>>(iter, ()))
        }
        d => compute!(d, "signbit_cpu", [bool int unsigned], T => run1::<BelowZero<T>>(iter, ())),
    }
}

/// The tolerances of [`isclose`].
#[derive(Clone, Copy)]
struct CloseTolerance {
    relative: f64,
    absolute: f64,
    equal_nan: bool,
}
map!(CloseInt<T: Int>[p => CloseTolerance](a: T, b: T) -> Bool {
    let allowed = p.absolute + (p.relative * b.to_f64()).abs();
    Bool::new(a == b || a.gap(b) <= allowed)
});
map!(CloseReal<T: RealMath>[p => CloseTolerance](a: T, b: T) -> Bool {
    let allowed = T::of(p.absolute).plus(RealMath::magnitude(T::of(p.relative).times(b)));
    let gap = RealMath::magnitude(a.minus(b));
    let both_nan = p.equal_nan & a.is_not_a_number() & b.is_not_a_number();
    Bool::new((a == b) | (gap.is_finite_number() & (gap <= allowed)) | both_nan)
});
map!(CloseComplex<T: ComplexNumber>[p => CloseTolerance](a: T, b: T) -> Bool {
    let nan = |z: T| z.part_re().is_not_a_number() || z.part_im().is_not_a_number();
    let allowed = p.absolute + (p.relative * ComplexNumber::magnitude(b).wide()).abs();
    let gap = ComplexNumber::magnitude(a.minus(b)).wide();
    Bool::new(a == b || (gap.is_finite() && gap <= allowed) || (p.equal_nan && nan(a) && nan(b)))
});
map!(CloseBool<T: Ordered>[p => CloseTolerance](a: T, b: T) -> Bool {
    // Bool values are compared as the numbers 0 and 1, so that their difference is 1 where they
    // differ.
    Bool::new(a == b || p.absolute + p.relative * b.to_f64() >= 1.0)
});
/// Whether `|a - b| <= atol + rtol |b|`; equal infinities are close, NaN only with `equal_nan`.
pub fn isclose(iter: &mut Iter, rtol: f64, atol: f64, equal_nan: bool) -> Result<()> {
    let p = CloseTolerance { relative: rtol, absolute: atol, equal_nan };
    match iter.input_dtype(0) {
        DType::Bool => run2::<CloseBool<Bool>>(iter, p),
        DType::C32 | DType::C64 => run2::<CloseComplex<C64>>(iter, p),
        DType::C128 => run2::<CloseComplex<C128>>(iter, p),
        d if d.is_floating_point() => {
            compute!(d, "isclose", [float], T => run2::<CloseReal<T>>(iter, p))
        }
        d => compute!(d, "isclose", [int unsigned], T => run2::<CloseInt<T>>(iter, p)),
    }
}

/// Elements that are compared before the result is looked at.
const BLOCK: usize = 64;

/// Whether two views have equal elements, as [`eq`] has it; `None` unless both have the same shape and dtype, and lie row by row.
pub fn is_equal(a: &StridedRef<'_>, b: &StridedRef<'_>) -> Option<bool> {
    if a.shape() != b.shape() {
        return None;
    }
    for_dtype!(a.dtype(), all, T => {
        let (a, b) = (a.as_slice::<T>()?, b.as_slice::<T>()?);
        let is_same = |(a, b): (&[T], &[T])| {
            a.iter().zip(b).fold(true, |all, (a, b)| all & (a == b))
        };
        Some(a.chunks(BLOCK).zip(b.chunks(BLOCK)).all(is_same))
    })
}
