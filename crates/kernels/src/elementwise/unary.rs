//! Ops of one input: arithmetic, rounding, exponentials, circular and hyperbolic functions, and the
//! parts of complex numbers. Activations are in `activation`, predicates in `compare`.

use super::dense::{Map1, run1};
use super::math::{ComplexNumber, Math, RealMath};
use super::number::{Int, Number, Ordered};
use super::special;
use crate::{Bool, C64, C128, DType, Error, Iter, Result};

/// Declares ops whose output has the input's type.
macro_rules! unary {
    ($($(#[$meta:meta])* $name:ident, $error:literal, [$($kind:ident)+], $($width:ident)? =>
        $Map:ident<$T:ident: $bound:path>($x:ident) $body:expr;)*) => {$(
        map!($($width)? $Map<$T: $bound>($x: $T) -> $T { $body });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            compute!(iter.input_dtype(0), $error, [$($kind)+], E => run1::<$Map<E>>(iter, ()))
        }
    )*};
}

unary! {
    /// `e^x - 1`, exact near 0.
    expm1, "expm1_vml_cpu", [float complex], math => Expm1<T: Math>(x) Math::expm1(x);
    /// `ln(1 + x)`, exact near 0.
    log1p, "log1p", [float complex], math => Log1p<T: Math>(x) Math::log1p(x);
    /// The square root; NaN for negative real numbers.
    sqrt, "sqrt_vml_cpu", [float complex], math => Sqrt<T: Math>(x) Math::sqrt(x);
    /// `1 / sqrt(x)`.
    rsqrt, "rsqrt_cpu", [float complex], math => Rsqrt<T: Math>(x) Math::rsqrt(x);
    /// `1 / x`.
    reciprocal, "reciprocal_cpu", [float complex], math => Reciprocal<T: Math>(x) Math::reciprocal(x);
    /// The inverse sine, in `[-π/2, π/2]`.
    asin, "asin_vml_cpu", [float complex], math => Asin<T: Math>(x) Math::asin(x);
    /// The inverse cosine, in `[0, π]`.
    acos, "acos_vml_cpu", [float complex], math => Acos<T: Math>(x) Math::acos(x);
    /// The inverse tangent, in `[-π/2, π/2]`.
    atan, "atan_vml_cpu", [float complex], math => Atan<T: Math>(x) Math::atan(x);
    /// The hyperbolic sine.
    sinh, "sinh_vml_cpu", [float complex], math => Sinh<T: Math>(x) Math::sinh(x);
    /// The hyperbolic cosine.
    cosh, "cosh_vml_cpu", [float complex], math => Cosh<T: Math>(x) Math::cosh(x);
    /// The hyperbolic tangent.
    tanh, "tanh_vml_cpu", [float complex], math => Tanh<T: Math>(x) Math::fast_tanh(x);
    /// The inverse hyperbolic sine.
    asinh, "asinh_cpu", [float complex], math => Asinh<T: Math>(x) Math::asinh(x);
    /// The inverse hyperbolic cosine.
    acosh, "acosh_cpu", [float complex], math => Acosh<T: Math>(x) Math::acosh(x);
    /// The inverse hyperbolic tangent.
    atanh, "atanh_cpu", [float complex], math => Atanh<T: Math>(x) Math::atanh(x);
    /// The error function.
    erf, "erf_vml_cpu", [float], math => Erf<T: RealMath>(x) RealMath::erf(x);
    /// `1 - erf(x)`, without cancellation.
    erfc, "erfc_vml_cpu", [float], math => Erfc<T: RealMath>(x) RealMath::erfc(x);
    /// `x - trunc(x)`.
    frac, "frac_cpu", [float], => Frac<T: RealMath>(x) x.minus(RealMath::trunc(x));
    /// `x * x`.
    square, "pow", [int float complex], => Square<T: Number>(x) x.times(x);
}

/// Declares ops that have a quick version for singles of usual size.
macro_rules! quick {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $Map:ident $quick:ident, $is_quick:ident $(, half $Half:ident)?;)*) => {$(
        struct $Map<T>(std::marker::PhantomData<T>);
        impl<T: Math> Map1 for $Map<T> {
            type P = ();
            type A = T;
            type Out = T;
            type Levels = T::MathLevels;
            #[inline(always)]
            fn map((): (), x: T) -> T {
                Math::$quick(x)
            }
            const HAS_SLOW_PATH: bool = T::HAS_FAST;
            const SLOW_PATH_IS_WIDE: bool = true;
            #[inline(always)]
            fn needs_slow_path(x: T) -> bool {
                !x.$is_quick()
            }
            #[inline(always)]
            fn slow_path((): (), x: T) -> T {
                Math::$name(x)
            }
        }
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            $(if iter.input_dtype(0) == DType::F16 {
                return run1::<$Half>(iter, ());
            })?
            compute!(iter.input_dtype(0), $error, [float complex], T => run1::<$Map<T>>(iter, ()))
        }
    )*};
}
quick! {
    /// `e^x`.
    exp, "exp_vml_cpu", Exp fast_exp, is_fast_exp_argument, half ExpHalf;
    /// `2^x`.
    exp2, "exp2", Exp2 fast_exp2, is_fast_exp_argument;
    /// `1 / (1 + e^-x)`.
    sigmoid, "sigmoid_cpu", Sigmoid fast_sigmoid, is_fast_exp_argument;
    /// The natural logarithm.
    log, "log_vml_cpu", Log fast_log, is_fast_log_argument;
    /// The logarithm to base 2.
    log2, "log2_vml_cpu", Log2 fast_log2, is_fast_log_argument;
    /// The logarithm to base 10.
    log10, "log10_vml_cpu", Log10 fast_log10, is_fast_log_argument;
}

/// `e^x` in single precision: what it takes for 0 is far below every `float16`.
struct ExpHalf;
impl Map1 for ExpHalf {
    type P = ();
    type A = f32;
    type Out = f32;
    type Levels = super::dense::AllLevels;
    #[inline(always)]
    fn map((): (), x: f32) -> f32 {
        crate::simd::math_f32::exp_single(x)
    }
}
/// Declares maps of single precision by quick functions in double precision where these hold; by the exact ones elsewhere,
/// and in double precision.
macro_rules! gamma_maps {
    ($($Map:ident $exact:expr, $is_quick:ident, $quick:ident;)*) => {$(
        pub(super) struct $Map<T>(std::marker::PhantomData<T>);
        impl<T: RealMath> Map1 for $Map<T> {
            type P = ();
            type A = T;
            type Out = T;
            type Levels = T::MathLevels;
            #[inline(always)]
            fn map((): (), x: T) -> T {
                if T::IS_SINGLE { T::of(special::$quick(x.wide())) } else { $exact(x) }
            }
            const HAS_SLOW_PATH: bool = true;
            #[inline(always)]
            fn needs_slow_path(x: T) -> bool {
                T::IS_SINGLE && !special::$is_quick(x.wide())
            }
            fn slow_path((): (), x: T) -> T {
                $exact(x)
            }
        }
    )*};
}
gamma_maps! {
    Lgamma RealMath::lgamma, is_quick_lgamma, quick_lgamma;
    Digamma RealMath::digamma, is_quick, quick_digamma;
    Trigamma |x: T| T::of(crate::special::zeta::polygamma(1.0, x.wide())), is_quick, quick_trigamma;
}

/// `ln |Γ(x)|`; infinite at 0 and the negative whole numbers.
pub fn lgamma(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "lgamma_vml_cpu", [float], T => run1::<Lgamma<T>>(iter, ()))
}

/// The logarithmic derivative of Γ; at 0 infinite, at negative whole numbers NaN.
pub fn digamma(iter: &mut Iter) -> Result<()> {
    if iter.input_dtype(0) == DType::F64 {
        return super::special_function::digamma_of_doubles(iter);
    }
    compute!(iter.input_dtype(0), "digamma", [float], T => run1::<Digamma<T>>(iter, ()))
}

/// Declares the circular functions, whose vector versions hold for angles of usual size only.
macro_rules! circular {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $Map:ident $quick:ident, $is_large:ident, $any:ident;)*) => {$(
        struct $Map<T>(std::marker::PhantomData<T>);
        impl<T: Math> Map1 for $Map<T> {
            type P = ();
            type A = T;
            type Out = T;
            type Levels = T::MathLevels;
            #[inline(always)]
            fn map((): (), x: T) -> T {
                Math::$quick(x)
            }
            const HAS_SLOW_PATH: bool = true;
            const SLOW_PATH_IS_WIDE: bool = T::HAS_FAST;
            #[inline(always)]
            fn needs_slow_path(x: T) -> bool {
                x.$is_large()
            }
            #[inline(always)]
            fn slow_path((): (), x: T) -> T {
                if T::HAS_FAST { Math::$name(x) } else { x.$any() }
            }
            #[inline(always)]
            fn needs_last_path(x: T) -> bool {
                x.needs_slow_reduction()
            }
            fn last_path((): (), x: T) -> T {
                x.$any()
            }
        }
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            compute!(iter.input_dtype(0), $error, [float complex], T => run1::<$Map<T>>(iter, ()))
        }
    )*};
}
circular! {
    /// The sine of `x` radians.
    sin, "sin_vml_cpu", Sin fast_sin, is_large_angle, sin_any;
    /// The cosine of `x` radians.
    cos, "cos_vml_cpu", Cos fast_cos, is_large_angle, cos_any;
    /// The tangent of `x` radians.
    tan, "tan_vml_cpu", Tan tan, needs_slow_reduction, tan_any;
}

map!(Negative<T: Number>(x: T) -> T { x.negative() });
/// `-x`; integers wrap.
pub fn neg(iter: &mut Iter) -> Result<()> {
    if iter.input_dtype(0) == DType::Bool {
        return Err(Error::unsupported(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to \
             invert a mask, use the `~` or `logical_not()` operator instead."
                .into(),
        ));
    }
    compute!(iter.input_dtype(0), "neg_cpu", [int float complex], T => run1::<Negative<T>>(iter, ()))
}

map!(AbsInt<T: Int>(x: T) -> T { x.magnitude() });
map!(AbsReal<T: RealMath>(x: T) -> T { RealMath::magnitude(x) });
map!(AbsComplex<T: ComplexNumber>(x: T) -> T::Part { ComplexNumber::magnitude(x) });
/// `|x|`; of a complex number its distance from 0, in the real dtype, without overflow. The smallest integer stays.
pub fn abs(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::C64 => run1::<AbsComplex<C64>>(iter, ()),
        DType::C128 => run1::<AbsComplex<C128>>(iter, ()),
        d if d.is_floating_point() => {
            compute!(d, "abs_cpu", [float float8_signed], T => run1::<AbsReal<T>>(iter, ()))
        }
        d => compute!(d, "abs_cpu", [int], T => run1::<AbsInt<T>>(iter, ())),
    }
}

map!(Sign<T: Ordered>(x: T) -> T {
    let (up, down) = (T::zero().is_less(x), x.is_less(T::zero()));
    T::from_i64(i64::from(up) - i64::from(down))
});
map!(SignReal<T: RealMath>(x: T) -> T {
    // NaN is neither above nor below, so it gives 0.
    let up = if x > T::zero() { T::one() } else { T::zero() };
    if x < T::zero() { T::one().negative() } else { up }
});
map!(baseline SgnComplex<T: ComplexNumber>(x: T) -> T { ComplexNumber::sgn(x) });
/// -1, 0 or 1 by the sign; 0 for NaN.
pub fn sign(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        dtype if dtype.is_complex() => Err(Error::unsupported(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
                .into(),
        )),
        d if d.is_floating_point() => {
            compute!(d, "sign_cpu", [float], T => run1::<SignReal<T>>(iter, ()))
        }
        d => compute!(d, "sign_cpu", [bool int], T => run1::<Sign<T>>(iter, ())),
    }
}

/// The sign of real numbers as [`sign`] gives it; `x / |x|` of complex numbers, 0 at 0.
pub fn sgn(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::C64 => run1::<SgnComplex<C64>>(iter, ()),
        DType::C128 => run1::<SgnComplex<C128>>(iter, ()),
        DType::BC32 => {
            Err(Error::unsupported("\"sgn_cpu\" not implemented for 'BComplex32'".into()))
        }
        _ => sign(iter),
    }
}

/// Declares ops that round real numbers and copy integers.
macro_rules! rounding {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $Map:ident, $method:ident;)*) => {$(
        map!($Map<T: RealMath>(x: T) -> T { RealMath::$method(x) });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            let dtype = iter.input_dtype(0);
            if dtype.is_integral(false) {
                return super::copy(iter);
            }
            if dtype.is_complex() {
                return Err(Error::unsupported(format!(
                    "{} is not supported for complex inputs", stringify!($name))));
            }
            compute!(dtype, $error, [float], T => run1::<$Map<T>>(iter, ()))
        }
    )*};
}
rounding! {
    /// The largest whole number not above `x`.
    floor, "floor_vml_cpu", Floor, floor;
    /// The smallest whole number not below `x`.
    ceil, "ceil_vml_cpu", Ceil, ceil;
    /// The whole part: towards zero.
    trunc, "trunc_vml_cpu", Trunc, trunc;
}

map!(Round<T: RealMath>(x: T) -> T { RealMath::round(x) });
map!(RoundUp<T: RealMath>[p => T](x: T) -> T { RealMath::round(x.divided_by(p)).times(p) });
map!(RoundDown<T: RealMath>[p => T](x: T) -> T { RealMath::round(x.times(p)).divided_by(p) });
/// To `decimals` places (negative: tens, hundreds ...), ties to even.
pub fn round(iter: &mut Iter, decimals: i64) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if decimals == 0 {
        if dtype.is_integral(false) {
            return super::copy(iter);
        }
        return compute!(dtype, "round_vml_cpu", [float], T => run1::<Round<T>>(iter, ()));
    }
    let power = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
    if decimals < 0 {
        compute!(dtype, "round_cpu", [float], T => run1::<RoundUp<T>>(iter, T::of(power)))
    } else {
        compute!(dtype, "round_cpu", [float], T => run1::<RoundDown<T>>(iter, T::of(power)))
    }
}

map!(BitwiseNot<T: Int>(x: T) -> T { Int::not(x) });
map!(Not<T: Ordered>(x: T) -> T { if x.is_true() { T::zero() } else { T::one() } });
/// Every bit flipped; for `bool` the negation.
pub fn bitwise_not(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::Bool => run1::<Not<Bool>>(iter, ()),
        d => compute!(d, "bitwise_not_cpu", [int], T => run1::<BitwiseNot<T>>(iter, ())),
    }
}

/// `+x`: a copy, refused for `bool`.
pub fn positive(iter: &mut Iter) -> Result<()> {
    if iter.input_dtype(0) == DType::Bool {
        return Err(Error::runtime("The `+` operator, on a bool tensor is not supported.".into()));
    }
    super::copy(iter)
}

map!(AngleReal<T: RealMath>(x: T) -> T {
    let angle = if x < T::zero() { T::of(std::f64::consts::PI) } else { T::zero() };
    if x.is_not_a_number() { x } else { angle }
});
map!(baseline AngleComplex<T: ComplexNumber>(x: T) -> T::Part { RealMath::atan2(x.part_im(), x.part_re()) });
/// The angle of a complex number with the real axis, in `[-π, π]`; of a real number 0 or π.
pub fn angle(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::C64 => run1::<AngleComplex<C64>>(iter, ()),
        DType::C128 => run1::<AngleComplex<C128>>(iter, ()),
        d => compute!(d, "angle_cpu", [float], T => run1::<AngleReal<T>>(iter, ())),
    }
}

map!(Conjugate<T: Math>(x: T) -> T { Math::conjugate(x) });
/// The complex conjugate; real input is copied.
pub fn conj(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::BC32 | DType::C64 => run1::<Conjugate<C64>>(iter, ()),
        DType::C128 => run1::<Conjugate<C128>>(iter, ()),
        _ => super::copy(iter),
    }
}

map!(PartRe<T: ComplexNumber>(x: T) -> T::Part { x.part_re() });
/// The real part, in the real dtype; real input is copied.
pub fn real(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::C64 => run1::<PartRe<C64>>(iter, ()),
        DType::C128 => run1::<PartRe<C128>>(iter, ()),
        _ => super::copy(iter),
    }
}

map!(PartIm<T: ComplexNumber>(x: T) -> T::Part { x.part_im() });
/// The imaginary part of complex input, in the real dtype.
pub fn imag(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "imag", [complex], T => run1::<PartIm<T>>(iter, ()))
}

/// The replacements of `nan_to_num`.
#[derive(Clone, Copy)]
struct Replacement<T> {
    nan: T,
    above: T,
    below: T,
}

#[inline(always)]
fn replace<T: RealMath>(p: Replacement<T>, x: T) -> T {
    // Every choice looks at the input, so that a replacement that is itself infinite stays.
    let large = if x == T::INFINITY { p.above } else { x };
    let small = if x == T::INFINITY.negative() { p.below } else { large };
    if x.is_not_a_number() { p.nan } else { small }
}
map!(NanToNum<T: RealMath>[p => Replacement<T>](x: T) -> T { replace(p, x) });
map!(NanToNumComplex<T: ComplexNumber>[p => Replacement<T::Part>](x: T) -> T {
    T::from_parts(replace(p, x.part_re()), replace(p, x.part_im()))
});

/// Replaces NaN by `nan` (0), `inf` by `posinf` and `-inf` by `neginf` (the largest and smallest of the dtype).
pub fn nan_to_num(
    iter: &mut Iter,
    nan: Option<f64>,
    posinf: Option<f64>,
    neginf: Option<f64>,
) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if dtype.is_integral(true) {
        return super::copy(iter);
    }
    let max = match dtype {
        DType::F16 | DType::C32 => 65504.0,
        DType::BF16 => f64::from(crate::bf16::MAX.to_f32()),
        DType::F32 | DType::C64 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let (nan, above, below) = (nan.unwrap_or(0.0), posinf.unwrap_or(max), neginf.unwrap_or(-max));
    fn of<T: RealMath>((nan, above, below): (f64, f64, f64)) -> Replacement<T> {
        Replacement { nan: T::of(nan), above: T::of(above), below: T::of(below) }
    }
    let values = (nan, above, below);
    match dtype {
        DType::C32 | DType::C64 => run1::<NanToNumComplex<C64>>(iter, of(values)),
        DType::C128 => run1::<NanToNumComplex<C128>>(iter, of(values)),
        d => compute!(d, "nan_to_num", [float], T => run1::<NanToNum<T>>(iter, of(values))),
    }
}

map!(Scaled<T: RealMath>[factor => T](x: T) -> T { x.times(factor) });
/// `factor x` of real numbers.
pub fn scaled(iter: &mut Iter, factor: f64) -> Result<()> {
    compute!(iter.input_dtype(0), "mul_cpu", [float], T => run1::<Scaled<T>>(iter, T::of(factor)))
}
