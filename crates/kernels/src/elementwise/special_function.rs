//! The special functions over tensors: `crate::special` in double precision, which is single and half precision too.
//!
//! A function is compiled once, as a loop over doubles (twice: with fused multiply-add and without, which gives the same
//! bits; those without branches for the widest registers too), and singles pass through a buffer; what an element type costs is one copying loop for all of them. `lgamma`, and
//! `digamma` of singles, are in `unary`.

use super::dense::{run1, run2};
use super::drive::{OpLoops, drive};
use super::math::{ComplexNumber, Math, RealMath};
use super::number::{Int, Number};
use super::special::{is_quick_lgamma, quick_lgamma};
use crate::simd::math_f64;
use crate::special::{
    airy, bessel, elementary, gamma, incomplete, modified, normal, polynomial, single,
    single_gamma, zeta,
};
use crate::{C64, C128, DType, Error, Iter, Result};
use std::f64::consts::PI;

/// A loop over doubles: results, inputs and a parameter.
type Line1 = unsafe fn(&mut [f64], &[f64], f64);
/// A loop over doubles with two inputs: results, inputs and a parameter.
type Line2 = unsafe fn(&mut [f64], &[f64], &[f64], f64);

/// A loop and its parameter.
#[derive(Clone, Copy)]
struct ParametrisedLoop<L> {
    line: L,
    parameter: f64,
}

/// Elements that pass through a buffer together.
const BLOCK: usize = 256;

/// # Safety
/// As for every `DenseLoop` of two operands of doubles; `p` points to a `Job<Line1>`.
unsafe fn doubles1(ptrs: &[*mut u8], n: usize, p: *const u8) {
    // SAFETY: the caller's promise; the job's loop was chosen for this machine.
    unsafe {
        let job = *p.cast::<ParametrisedLoop<Line1>>();
        let x = std::slice::from_raw_parts(ptrs[1].cast(), n);
        (job.line)(std::slice::from_raw_parts_mut(ptrs[0].cast(), n), x, job.parameter);
    }
}

/// # Safety
/// As for every `DenseLoop` of three operands of doubles; `p` points to a `Job<Line2>`.
unsafe fn doubles2(ptrs: &[*mut u8], n: usize, p: *const u8) {
    // SAFETY: the caller's promise; the job's loop was chosen for this machine.
    unsafe {
        let job = *p.cast::<ParametrisedLoop<Line2>>();
        let x = std::slice::from_raw_parts(ptrs[1].cast(), n);
        let y = std::slice::from_raw_parts(ptrs[2].cast(), n);
        (job.line)(std::slice::from_raw_parts_mut(ptrs[0].cast(), n), x, y, job.parameter);
    }
}

fn widen(from: &[f32], to: &mut [f64]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f64::from(from);
    }
}

fn narrow(from: &[f64], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from as f32;
    }
}

/// # Safety
/// As for every `DenseLoop` of two operands of singles; `p` points to a `Job<Line1>`.
unsafe fn singles1(ptrs: &[*mut u8], n: usize, p: *const u8) {
    // SAFETY: the caller's promise.
    let (job, x, out) = unsafe {
        let x = std::slice::from_raw_parts(ptrs[1].cast::<f32>(), n);
        (
            *p.cast::<ParametrisedLoop<Line1>>(),
            x,
            std::slice::from_raw_parts_mut(ptrs[0].cast::<f32>(), n),
        )
    };
    let (mut from, mut to) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (out, x) in out.chunks_mut(BLOCK).zip(x.chunks(BLOCK)) {
        let n = x.len();
        widen(x, &mut from);
        // SAFETY: the job's loop was chosen for this machine.
        unsafe { (job.line)(&mut to[..n], &from[..n], job.parameter) };
        narrow(&to, out);
    }
}

/// # Safety
/// As for every `DenseLoop` of three operands of singles; `p` points to a `Job<Line2>`.
unsafe fn singles2(ptrs: &[*mut u8], n: usize, p: *const u8) {
    // SAFETY: the caller's promise.
    let (job, x, y, out) = unsafe {
        let x = std::slice::from_raw_parts(ptrs[1].cast::<f32>(), n);
        let y = std::slice::from_raw_parts(ptrs[2].cast::<f32>(), n);
        (
            *p.cast::<ParametrisedLoop<Line2>>(),
            x,
            y,
            std::slice::from_raw_parts_mut(ptrs[0].cast::<f32>(), n),
        )
    };
    let (mut first, mut second, mut to) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    for ((out, x), y) in out.chunks_mut(BLOCK).zip(x.chunks(BLOCK)).zip(y.chunks(BLOCK)) {
        let n = x.len();
        widen(x, &mut first);
        widen(y, &mut second);
        // SAFETY: the job's loop was chosen for this machine.
        unsafe { (job.line)(&mut to[..n], &first[..n], &second[..n], job.parameter) };
        narrow(&to, out);
    }
}

/// Which floating dtypes a function takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Floats {
    All,
    /// `f32` and `f64`, but not the types of half precision.
    Whole,
}
use Floats::{All, Whole};

/// The dtype of the loop for an input dtype; refuses others in the name given.
fn loop_dtype(dtype: DType, name: &'static str, floats: Floats) -> Result<DType> {
    match dtype {
        DType::F32 | DType::F64 => Ok(dtype),
        DType::F16 | DType::BF16 if floats == All => Ok(DType::F32),
        other => Err(Error::not_implemented(name, other)),
    }
}

fn walk1(
    iter: &Iter,
    (name, floats): (&'static str, Floats),
    line: Line1,
    parameter: f64,
) -> Result<()> {
    let dtype = loop_dtype(iter.input_dtype(0), name, floats)?;
    let dense = if dtype == DType::F64 { doubles1 } else { singles1 };
    let (job, loops) =
        (ParametrisedLoop { line, parameter }, OpLoops { dense, direct: None, least: 0 });
    // SAFETY: the loops read operands of this dtype and such a job.
    unsafe { drive(iter, &[dtype; 2], loops, (&raw const job).cast()) }
}

fn walk2(
    iter: &Iter,
    (name, floats): (&'static str, Floats),
    line: Line2,
    parameter: f64,
) -> Result<()> {
    let dtype = loop_dtype(iter.input_dtype(0), name, floats)?;
    let dense = if dtype == DType::F64 { doubles2 } else { singles2 };
    let (job, loops) =
        (ParametrisedLoop { line, parameter }, OpLoops { dense, direct: None, least: 0 });
    // SAFETY: the loops read operands of this dtype and such a job.
    unsafe { drive(iter, &[dtype; 3], loops, (&raw const job).cast()) }
}

/// The loop of a function, for this machine; of one without branches (`wide`) also for the widest
/// registers. `unless` names the numbers for which the function does not hold, and the function
/// that is used for them; `beyond` names numbers for which another quick function is used. (With
/// `lines` the function takes whole slices.)
macro_rules! line {
    (|$($rest:tt)+) => { line!([] |$($rest)+) };
    ($width:tt |$x:ident, $p:pat_param| $body:expr $(, beyond $is_far:path => $far:path)?
        $(, unless $needs_slow_path:path => $exact:path)?) => {
        line!(@ $width [out, a], [$x], $p, $body, Line1, out.iter_mut().zip(a), (out, &$x),
            [$(blend!(out, a, $is_far, $far);)? $(slow_path(out, a, |x| $needs_slow_path(x), |x| $exact(x));)?])
    };
    ($width:tt |$x:ident, $y:ident, $p:pat_param| $body:expr) => {
        line!(@ $width [out, a, b], [$x $y], $p, $body, Line2, out.iter_mut().zip(a).zip(b), ((out, &$x), &$y), [])
    };
    ($width:tt lines |$out:ident, $x:ident, $y:ident, $p:ident| $body:expr) => {{
        #[inline(always)]
        fn body($out: &mut [f64], $x: &[f64], $y: &[f64], $p: f64) {
            $body;
        }
        line!(@levels $width body, Line2, [$out: &mut [f64], $x: &[f64], $y: &[f64], p: f64])
    }};
    (@ $width:tt [$out:ident, $($in:ident),+], [$($x:ident)+], $p:pat_param, $body:expr, $Line:ident, $zip:expr, $each:pat,
        [$($after:tt)*]) => {{
        #[inline(always)]
        fn body($out: &mut [f64], $($in: &[f64],)+ $p: f64) {
            for $each in $zip {
                *$out = $body;
            }
            $($after)*
        }
        line!(@levels $width body, $Line, [$out: &mut [f64], $($in: &[f64],)+ p: f64])
    }};
    (@levels $width:tt $body:ident, $Line:ident, [$($arg:ident: $type:ty),+]) => {{
        fn plain($($arg: $type),+) {
            $body($($arg),+);
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn fused($($arg: $type),+) {
            $body($($arg),+);
        }
        let line: $Line = plain;
        #[cfg(target_arch = "x86_64")]
        let line: $Line = if crate::simd::level() >= crate::simd::SimdLevel::Avx2 { fused } else { line };
        widest!($width line, $body, $Line, [$($arg: $type),+])
    }};
}

/// The loop for the widest registers, where it is requested and the processor has them; else the
/// loop that was chosen.
macro_rules! widest {
    ([] $line:ident, $($rest:tt)*) => { $line };
    ([wide] $line:ident, $body:ident, $Line:ident, [$($arg:ident: $type:ty),+]) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        fn widest($($arg: $type),+) {
            $body($($arg),+);
        }
        #[cfg(target_arch = "x86_64")]
        let $line: $Line =
            if crate::simd::level() == crate::simd::SimdLevel::Avx512 { widest } else { $line };
        $line
    }};
}

/// Computes all numbers by another quick function, if there are some for which it is meant, and
/// keeps the results of these. (This is no function: its closures might not be compiled with the
/// caller, whose instructions they need.)
macro_rules! blend {
    ($out:ident, $a:ident, $is_far:path, $far:path) => {
        let mut any = false;
        for &x in $a {
            any |= $is_far(x);
        }
        if any {
            for (out, &x) in $out.iter_mut().zip($a) {
                // (Evaluated before the condition is looked at: a loop with a branch would not be
                // vectorised.)
                let far = $far(x);
                *out = if $is_far(x) { far } else { *out };
            }
        }
    };
}

/// Computes the numbers for which a quick function does not hold.
#[inline(always)]
fn slow_path(
    out: &mut [f64],
    a: &[f64],
    needs_slow_path: impl Fn(f64) -> bool,
    exact: impl Fn(f64) -> f64,
) {
    let mut any = false;
    for &x in a {
        any |= needs_slow_path(x);
    }
    if any {
        for (out, &x) in out.iter_mut().zip(a).filter(|(_, x)| needs_slow_path(**x)) {
            *out = exact(x);
        }
    }
}

/// Declares functions of one number; `single` is the function for single and half precision.
macro_rules! one {
    ($width:tt $($(#[$meta:meta])* $name:ident, $error:literal, $floats:ident, $function:path
        $(, single $quick:path $(, beyond $is_far:path => $far:path)? $(, unless $needs_slow_path:path)?)?;)*) => {$(
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            $(if iter.input_dtype(0) != DType::F64 {
                let line = line!([wide] |x, _| $quick(x) $(, beyond $is_far => $far)? $(, unless $needs_slow_path => $function)?);
                return walk1(iter, ($error, $floats), line, 0.0);
            })?
            walk1(iter, ($error, $floats), line!($width |x, _| $function(x)), 0.0)
        }
    )*};
}

/// Declares functions of two numbers.
macro_rules! two {
    ($width:tt $($(#[$meta:meta])* $name:ident, $error:literal, $floats:ident, $function:path;)*) => {$(
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            walk2(iter, ($error, $floats), line!($width |x, y, _| $function(x, y)), 0.0)
        }
    )*};
}

one! { []
    /// The Airy function `Ai(x)`.
    airy_ai, "airy_ai_cpu", Whole, airy::ai;
    /// The Bessel function of the first kind of order 0, `J0(x)`.
    bessel_j0, "bessel_j0_cpu", Whole, bessel::j0,
        single single::j0, beyond single::is_far => single::j0_far,
        unless single::needs_slow_reduction;
    /// The Bessel function of the first kind of order 1, `J1(x)`.
    bessel_j1, "bessel_j1_cpu", Whole, bessel::j1,
        single single::j1, beyond single::is_far => single::j1_far,
        unless single::needs_slow_reduction;
    /// The Bessel function of the second kind of order 0, `Y0(x)`.
    bessel_y0, "bessel_y0_cpu", Whole, bessel::y0,
        single single::y0, beyond single::is_far => single::y0_far,
        unless single::needs_slow_reduction;
    /// The Bessel function of the second kind of order 1, `Y1(x)`.
    bessel_y1, "bessel_y1_cpu", Whole, bessel::y1,
        single single::y1, beyond single::is_far => single::y1_far,
        unless single::needs_slow_reduction;
    /// `sin(x) / x`.
    spherical_bessel_j0, "spherical_bessel_j0_cpu", Whole, bessel::spherical_j0,
        single single::spherical_j0, unless single::needs_slow_reduction;
    /// The modified Bessel function of the first kind of order 0, `I0(x)`.
    i0, "i0_vml_cpu", All, modified::i0, single single::i0;
    /// The exponentially scaled modified Bessel function of the first kind of order 0, `e^-|x| I0(x)`.
    i0e, "i0e_cpu", All, modified::i0e, single single::i0e;
    /// The modified Bessel function of the first kind of order 1, `I1(x)`.
    i1, "i1_cpu", All, modified::i1, single single::i1;
    /// The exponentially scaled modified Bessel function of the first kind of order 1, `e^-|x| I1(x)`.
    i1e, "i1e_cpu", All, modified::i1e, single single::i1e;
    /// `I0(x)` as [`i0`] computes it, but refused for half precision.
    modified_bessel_i0, "modified_bessel_i0_cpu", Whole, modified::i0, single single::i0;
    /// `I1(x)` as [`i1`] computes it, but refused for half precision.
    modified_bessel_i1, "modified_bessel_i1_cpu", Whole, modified::i1, single single::i1;
    /// The modified Bessel function of the second kind of order 0, `K0(x)`.
    modified_bessel_k0, "modified_bessel_k0_cpu", Whole, modified::k0;
    /// The modified Bessel function of the second kind of order 1, `K1(x)`.
    modified_bessel_k1, "modified_bessel_k1_cpu", Whole, modified::k1;
    /// The exponentially scaled modified Bessel function of the second kind of order 0, `e^x K0(x)`.
    scaled_modified_bessel_k0, "scaled_modified_bessel_k0_cpu", Whole, modified::k0e;
    /// The exponentially scaled modified Bessel function of the second kind of order 1, `e^x K1(x)`.
    scaled_modified_bessel_k1, "scaled_modified_bessel_k1_cpu", Whole, modified::k1e;
    /// The scaled complementary error function `erfcx(x) = e^(x²) erfc(x)`.
    erfcx, "erfcx_cpu", Whole, normal::erfcx, single single::erfcx;
    /// The inverse of the error function: `erf(erfinv(x)) = x`; infinite at ±1, NaN beyond.
    erfinv, "erfinv_vml_cpu", All, normal::erfinv, single single::erfinv;
    /// The cumulative distribution function `Φ(x)` of the standard normal distribution.
    ndtr, "ndtr_cpu", All, normal::ndtr, single single::ndtr;
    /// The logarithm `ln Φ(x)` of the standard normal distribution function.
    log_ndtr, "log_ndtr_cpu", Whole, normal::log_ndtr, single single::log_ndtr;
    /// The quantile function `Φ⁻¹(p)` of the standard normal distribution; infinite at 0 and 1, NaN outside.
    ndtri, "ndtri_cpu", Whole, normal::ndtri;
    /// `digamma`, for `unary`.
    digamma_of_doubles, "digamma", Whole, gamma::digamma;
}

one! { [wide]
    /// `-x ln x`.
    entr, "entr_cpu", All, elementary::entr;
    /// `sin(πx) / (πx)` of real numbers.
    sinc_of_reals, "sinc_cpu", All, elementary::sinc;
}

two! { [wide]
    /// `a ln(1 + b)`, 0 where `a` is 0 and `b` not NaN.
    xlog1py, "xlog1py_cpu", All, elementary::xlog1py;
}

/// Declares polynomials of an argument and an order, and the order above which they are NaN.
macro_rules! polynomial {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $PolynomialSequence:ident, $limit:ident;)*) => {$(
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            let line = line!([wide] lines |out, x, n, limit| polynomial::line::<polynomial::$PolynomialSequence>(out, x, n, limit));
            walk2(iter, ($error, Whole), line, $limit(iter))
        }
    )*};
}

polynomial! {
    /// Chebyshev's polynomial of the first kind; inputs here and below: argument, order.
    chebyshev_polynomial_t, "chebyshev_polynomial_t_cpu", ChebyshevT, no_limit;
    /// Chebyshev's polynomial of the second kind.
    chebyshev_polynomial_u, "chebyshev_polynomial_u_cpu", ChebyshevU, no_limit;
    /// Chebyshev's polynomial of the third kind.
    chebyshev_polynomial_v, "chebyshev_polynomial_v_cpu", ChebyshevV, no_limit;
    /// Chebyshev's polynomial of the fourth kind.
    chebyshev_polynomial_w, "chebyshev_polynomial_w_cpu", ChebyshevW, no_limit;
    /// Chebyshev's polynomial of the first kind at `2x - 1`.
    shifted_chebyshev_polynomial_t, "shifted_chebyshev_polynomial_t_cpu", ShiftedChebyshevT, no_limit;
    /// Chebyshev's polynomial of the second kind at `2x - 1`.
    shifted_chebyshev_polynomial_u, "shifted_chebyshev_polynomial_u_cpu", ShiftedChebyshevU, no_limit;
    /// Chebyshev's polynomial of the third kind at `2x - 1`.
    shifted_chebyshev_polynomial_v, "shifted_chebyshev_polynomial_v_cpu", ShiftedChebyshevV, no_limit;
    /// Chebyshev's polynomial of the fourth kind at `2x - 1`.
    shifted_chebyshev_polynomial_w, "shifted_chebyshev_polynomial_w_cpu", ShiftedChebyshevW, no_limit;
    /// Laguerre's polynomial.
    laguerre_polynomial_l, "laguerre_polynomial_l_cpu", LaguerreL, no_limit;
    /// Legendre's polynomial.
    legendre_polynomial_p, "legendre_polynomial_p_cpu", LegendreP, no_limit;
    /// Hermite's polynomial of the physicists; inputs: argument, order.
    hermite_polynomial_h, "hermite_polynomial_h_cpu", HermiteH, hermite_limit;
    /// Hermite's polynomial of the statisticians; inputs: argument, order.
    hermite_polynomial_he, "hermite_polynomial_he_cpu", HermiteHe, hermite_limit;
}

fn no_limit(_iter: &Iter) -> f64 {
    f64::INFINITY
}

/// The order above which Hermite's polynomials are NaN, as in PyTorch: their values are beyond the dtype's range long before.
fn hermite_limit(iter: &Iter) -> f64 {
    if iter.input_dtype(0) == DType::F64 { 512.0 } else { 128.0 }
}

/// Declares functions of two numbers with loops of their own for single and half precision.
macro_rules! two_precisions {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $floats:ident, |$x:ident, $y:ident| $function:expr,
        single $single:expr;)*) => {$(
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            let line = if iter.input_dtype(0) == DType::F64 {
                line!([] |$x, $y, _| $function)
            } else {
                line!([wide] lines |out, x, y, _p| $single(out, x, y))
            };
            walk2(iter, ($error, $floats), line, 0.0)
        }
    )*};
}

two_precisions! {
    /// Hurwitz's zeta function of exponent `a` and first base `b`.
    zeta, "zeta_cpu", Whole, |s, q| zeta::zeta(s, q), single single_gamma::zeta;
    /// The regularised lower incomplete gamma function of `a` up to `b`.
    igamma, "igamma_cpu", All, |a, x| incomplete::igamma(a, x, incomplete::TINY),
        single single_gamma::igamma::<false>;
    /// The regularised upper incomplete gamma function `Q(a, b) = 1 - P(a, b)`.
    igammac, "igammac_cpu", All, |a, x| incomplete::igammac(a, x, incomplete::TINY),
        single single_gamma::igamma::<true>;
}

/// `ln(x / (1 - x))`, of `x` limited to `eps..=1 - eps` if an `eps` is given that is not negative.
pub fn logit(iter: &mut Iter, eps: Option<f64>) -> Result<()> {
    // (No `eps` is NaN, which limits nothing.)
    let eps = eps.unwrap_or(f64::NAN);
    let is_single = iter.input_dtype(0) != DType::F64 && !eps.is_subnormal();
    let line = if is_single {
        line!([wide] | x, eps | single::logit(elementary::limited(x, eps)))
    } else {
        line!([wide] | x, eps | math_f64::logit(elementary::limited(x, eps)))
    };
    walk1(iter, ("logit_cpu", All), line, eps)
}

/// The `n`-th derivative of `digamma`; infinite at 0 and the negative whole numbers.
///
/// # Errors
/// For a negative `n`.
pub fn polygamma(iter: &mut Iter, n: i64) -> Result<()> {
    match n {
        ..0 => Err(Error::runtime("polygamma(n, x) does not support negative n.".into())),
        0 => super::digamma(iter),
        1 if iter.input_dtype(0) != DType::F64 => {
            compute!(iter.input_dtype(0), "polygamma", [float], T => {
                run1::<super::unary::Trigamma<T>>(iter, ())
            })
        }
        _ => {
            let line = line!(|x, n| zeta::polygamma(n, x));
            walk1(iter, ("polygamma", All), line, n as f64)
        }
    }
}

/// `ln Γ_p(x)`, the multivariate gamma function: the sum of `ln Γ(x - i/2)` for `i` in `0..p`, and `p (p-1) / 4 ln π`.
pub fn mvlgamma(iter: &mut Iter, p: i64) -> Result<()> {
    let line: Line1 =
        if iter.input_dtype(0) == DType::F64 { mvlgamma_line } else { mvlgamma_quick };
    walk1(iter, ("mvlgamma_cpu", All), line, p as f64)
}

fn mvlgamma_line(out: &mut [f64], a: &[f64], p: f64) {
    out.fill(0.25 * p * (p - 1.0) * math_f64::log(PI));
    for i in 0..p as i64 {
        for (out, &x) in out.iter_mut().zip(a) {
            *out += crate::special::log_gamma::lgamma(x - 0.5 * i as f64);
        }
    }
}

/// The loop of [`mvlgamma`] for single precision, by functions with about 48 correct bits.
fn mvlgamma_quick(out: &mut [f64], a: &[f64], p: f64) {
    let lgamma = line!([wide] | x, shift | quick_lgamma(x - shift));
    let mut sum = [0.25 * p * (p - 1.0) * math_f64::log(PI); BLOCK];
    for i in 0..p as i64 {
        let shift = 0.5 * i as f64;
        // SAFETY: the loop was chosen for this machine.
        unsafe { lgamma(out, a, shift) };
        for ((sum, out), &x) in sum.iter_mut().zip(&*out).zip(a) {
            let y = x - shift;
            *sum += if is_quick_lgamma(y) { *out } else { crate::special::log_gamma::lgamma(y) };
        }
    }
    out.copy_from_slice(&sum[..out.len()]);
}

map!(baseline SincComplex<T: ComplexNumber>(z: T) -> T {
    let angle = T::from_parts(T::Part::of(PI).times(z.part_re()), T::Part::of(PI).times(z.part_im()));
    if z == T::zero() { T::one() } else { Math::sin(angle).divided_by(angle) }
});
/// `sin(πx) / (πx)`, 1 at 0.
pub fn sinc(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::C32 | DType::C64 => run1::<SincComplex<C64>>(iter, ()),
        DType::C128 => run1::<SincComplex<C128>>(iter, ()),
        _ => sinc_of_reals(iter),
    }
}

/// The greatest common divisor by halving (Stein): factors of two are shifted out together.
#[inline(always)]
fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let shift = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    while b != 0 {
        b >>= b.trailing_zeros();
        (a, b) = (a.min(b), a.abs_diff(b));
    }
    a << shift
}

map!(baseline Gcd<T: Int>(a: T, b: T) -> T {
    T::from_i64(common_divisor(a.to_i64().unsigned_abs(), b.to_i64().unsigned_abs()) as i64)
});
/// The greatest common divisor, not negative (but for the smallest integer, which has no opposite); 0 of two zeros.
pub fn gcd(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "gcd_cpu", [int], T => run2::<Gcd<T>>(iter, ()))
}

map!(baseline Lcm<T: Int>(a: T, b: T) -> T {
    let (first, second) = (a.to_i64(), b.to_i64());
    let divisor = common_divisor(first.unsigned_abs(), second.unsigned_abs()) as i64;
    if divisor == 0 {
        return T::zero();
    }
    let product = first.wrapping_div(divisor).wrapping_mul(second);
    // Short integers are multiplied as C's `int`, which holds their product; others wrap before the sign is taken.
    if size_of::<T>() < 4 { T::from_i64(product.wrapping_abs()) } else { T::from_i64(product).magnitude() }
});
/// The least common multiple, not negative unless it wraps; 0 if either is.
pub fn lcm(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "lcm_cpu", [int], T => run2::<Lcm<T>>(iter, ()))
}

/// A number as a mantissa with `1/2 <= |m| < 1` and a power of two; zeros, infinities and NaN are their own mantissas.
#[inline(always)]
fn parts(x: f64) -> (f64, i32) {
    const SCALE: f64 = (1_u64 << 54) as f64;
    const BIAS: i32 = 1022;
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let is_subnormal = x.abs() < f64::MIN_POSITIVE;
    let (x, shift) = if is_subnormal { (x * SCALE, -54) } else { (x, 0) };
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - BIAS + shift;
    (f64::from_bits(bits & !(0x7ff << 52) | (BIAS as u64) << 52), exponent)
}

map!(baseline Mantissa<T: RealMath>(x: T) -> T { T::of(parts(x.wide()).0) });
map!(baseline Exponent<T: RealMath>(x: T) -> i32 { parts(x.wide()).1 });
/// The mantissa of a number, `1/2 <= |m| < 1`.
pub fn frexp_mantissa(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "frexp_cpu", [float], T => run1::<Mantissa<T>>(iter, ()))
}
/// The exponent `e` of `x = m 2^e` with the mantissa `m` of [`frexp_mantissa`], as `i32`; 0 for zeros, infinities and NaN.
pub fn frexp_exponent(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "frexp_cpu", [float], T => run1::<Exponent<T>>(iter, ()))
}
