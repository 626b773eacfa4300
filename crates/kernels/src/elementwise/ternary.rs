//! Ops of three inputs, and ops that choose or limit: `where`, `masked_fill`, `clamp`, `lerp`,
//! `addcmul`, `addcdiv`.

use super::dense::{Levels, Map2, Map3, UpToAvx2, run1, run2, run3};
use super::drive::drive_raw;
use super::math::{ComplexNumber, Math, RealMath};
use super::number::{Number, Ordered};
use crate::{BC32, Bool, C64, C128, DType, Element, Error, Iter, Result, Scalar};
use std::marker::PhantomData;

/// Chooses between elements without looking at their values, so it needs one loop per size, not per
/// dtype.
struct Choose<T>(PhantomData<T>);
impl<T: Element> Map3 for Choose<T> {
    type P = ();
    type A = Bool;
    type B = T;
    type C = T;
    type Out = T;
    type Levels = UpToAvx2;
    #[inline(always)]
    fn map((): (), condition: Bool, a: T, b: T) -> T {
        if condition.get() { a } else { b }
    }
}

/// `condition ? a : b`; inputs: a `Bool` condition, then `a` and `b` of the output's dtype.
pub fn where_(iter: &mut Iter) -> Result<()> {
    let fits = iter.operands() == 4
        && iter.dtype(1) == DType::Bool
        && iter.dtype(2) == iter.dtype(0)
        && iter.dtype(3) == iter.dtype(0);
    if !fits {
        return Err(Error::runtime(
            "where: expected a Bool condition and two inputs of the output's dtype".into(),
        ));
    }
    match iter.dtype(0).size() {
        1 => choose::<u8>(iter),
        2 => choose::<u16>(iter),
        4 => choose::<u32>(iter),
        8 => choose::<u64>(iter),
        _ => choose::<C128>(iter),
    }
}

fn choose<T: Element>(iter: &Iter) -> Result<()> {
    let size = size_of::<T>();
    // SAFETY: the loop moves values of this size; the condition was checked to be `Bool`.
    unsafe { drive_raw(iter, &[size, 1, size, size], UpToAvx2::loop3::<Choose<T>>(), [].as_ptr()) }
}

/// Replaces elements without looking at their values.
struct Fill<T>(PhantomData<T>);
impl<T: Element> Map2 for Fill<T> {
    type P = T;
    type A = T;
    type B = Bool;
    type Out = T;
    type Levels = UpToAvx2;
    #[inline(always)]
    fn map(value: T, a: T, mask: Bool) -> T {
        if mask.get() { value } else { a }
    }
}

/// `mask ? value : input`; inputs: the input of the output's dtype, then a `Bool` mask.
pub fn masked_fill(iter: &mut Iter, value: Scalar) -> Result<()> {
    let dtype = iter.dtype(0);
    if iter.operands() != 3 || iter.dtype(1) != dtype {
        return Err(Error::runtime(
            "masked_fill: expected an input of the output's dtype and a mask".into(),
        ));
    }
    if iter.dtype(2) != DType::Bool {
        return Err(Error::runtime(format!(
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            iter.dtype(2).spelled()
        )));
    }
    if matches!(dtype, DType::U16 | DType::U32 | DType::U64) || dtype.is_narrow_float() {
        return Err(Error::not_implemented("masked_fill", dtype));
    }
    if dtype == DType::BC32 {
        return fill_where(iter, value.to::<BC32>());
    }
    crate::for_dtype!(dtype, all, T => fill_where(iter, value.to::<T>()))
}

fn fill_where<T: Element>(iter: &Iter, value: T) -> Result<()> {
    let size = size_of::<T>();
    // SAFETY: the operands were checked; `value` is the map's parameter.
    unsafe {
        drive_raw(iter, &[size, size, 1], UpToAvx2::loop2::<Fill<T>>(), (&raw const value).cast())
    }
}

/// Limits of `clamp`.
#[derive(Clone, Copy)]
struct ClampLimits<T> {
    low: T,
    high: T,
}
#[inline(always)]
fn at_least<T: Ordered>(x: T, low: T) -> T {
    // NaN of either operand wins: a comparison with it is false.
    let larger = if x.is_less(low) { low } else { x };
    if low.is_not_a_number() { low } else { larger }
}
#[inline(always)]
fn at_most<T: Ordered>(x: T, high: T) -> T {
    let smaller = if high.is_less(x) { high } else { x };
    if high.is_not_a_number() { high } else { smaller }
}
#[inline(always)]
fn between<T: Ordered>(x: T, low: T, high: T) -> T {
    let x_is_nan = x.is_not_a_number();
    let limited = at_most(at_least(x, low), high);
    if x_is_nan { x } else { limited }
}
map!(Clamp<T: Ordered>[p => ClampLimits<T>](x: T) -> T { between(x, p.low, p.high) });
map!(ClampMin<T: Ordered>[low => T](x: T) -> T { if x.is_not_a_number() { x } else { at_least(x, low) } });
map!(ClampMax<T: Ordered>[high => T](x: T) -> T { if x.is_not_a_number() { x } else { at_most(x, high) } });

fn refuse_complex(dtype: DType) -> Result<()> {
    if dtype.is_complex() {
        return Err(Error::unsupported("clamp is not supported for complex types".into()));
    }
    Ok(())
}

/// `min(max(x, min), max)`; NaN stays NaN, and a NaN limit gives NaN. At least one limit.
pub fn clamp(iter: &mut Iter, min: Option<Scalar>, max: Option<Scalar>) -> Result<()> {
    let dtype = iter.input_dtype(0);
    refuse_complex(dtype)?;
    match (min, max) {
        (Some(low), Some(high)) => compute!(dtype, "clamp_scalar_cpu", [int unsigned float], T => {
            run1::<Clamp<T>>(iter, ClampLimits { low: low.to::<T>(), high: high.to::<T>() })
        }),
        (Some(low), None) => compute!(dtype, "clamp_min_scalar_cpu", [int unsigned float], T => {
            run1::<ClampMin<T>>(iter, low.to::<T>())
        }),
        (None, Some(high)) => compute!(dtype, "clamp_max_scalar_cpu", [int unsigned float], T => {
            run1::<ClampMax<T>>(iter, high.to::<T>())
        }),
        (None, None) => Err(Error::runtime(
            "torch.clamp: At least one of 'min' or 'max' must not be None".into(),
        )),
    }
}

map!(ClampTensors<T: Ordered>(x: T, low: T, high: T) -> T { between(x, low, high) });
/// `clamp` with limits per element; inputs: `x`, `min`, `max`. (With one limit it is `maximum` or `minimum`.)
pub fn clamp_tensor(iter: &mut Iter) -> Result<()> {
    let dtype = iter.input_dtype(0);
    refuse_complex(dtype)?;
    compute!(dtype, "clamp_cpu", [bool int unsigned float], T => run3::<ClampTensors<T>>(iter, ()))
}

/// Whether a weight is nearer to the start, by which `lerp` picks the formula that is exact at the nearer end.
trait Weight: Math {
    fn is_small(self) -> bool;
}
impl Weight for f32 {
    #[inline(always)]
    fn is_small(self) -> bool {
        self.abs() < 0.5
    }
}
impl Weight for f64 {
    #[inline(always)]
    fn is_small(self) -> bool {
        self.abs() < 0.5
    }
}
impl Weight for C64 {
    #[inline(always)]
    fn is_small(self) -> bool {
        ComplexNumber::magnitude(self) < 0.5
    }
}
impl Weight for C128 {
    #[inline(always)]
    fn is_small(self) -> bool {
        ComplexNumber::magnitude(self) < 0.5
    }
}
#[inline(always)]
fn interpolate<T: Weight>(start: T, end: T, weight: T) -> T {
    let gap = end.minus(start);
    let near_start = start.plus(weight.times(gap));
    let near_end = end.minus(gap.times(T::one().minus(weight)));
    if weight.is_small() { near_start } else { near_end }
}
map!(Lerp<T: Weight>(start: T, end: T, weight: T) -> T { interpolate(start, end, weight) });
map!(LerpScalar<T: Weight>[weight => T](start: T, end: T) -> T { interpolate(start, end, weight) });
/// `start + weight (end - start)`; inputs: start, end, weight.
pub fn lerp(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "lerp_kernel_tensor", [float complex], T => run3::<Lerp<T>>(iter, ()))
}
/// `start + weight (end - start)` for one weight; inputs: start, end.
pub fn lerp_scalar(iter: &mut Iter, weight: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "lerp_kernel_scalar", [float complex], T => {
        run2::<LerpScalar<T>>(iter, weight.to::<T>())
    })
}

map!(Addcmul<T: Number>[value => T](x: T, a: T, b: T) -> T { x.plus(value.times(a).times(b)) });
map!(Addcdiv<T: Math>[value => T](x: T, a: T, b: T) -> T { x.plus(value.times(a).divided_by(b)) });
/// `x + value a b`.
pub fn addcmul(iter: &mut Iter, value: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "addcmul_cpu_out", [int float complex], T => {
        run3::<Addcmul<T>>(iter, value.to::<T>())
    })
}
/// `x + value a / b`.
pub fn addcdiv(iter: &mut Iter, value: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "addcdiv_cpu_out", [float complex], T => {
        run3::<Addcdiv<T>>(iter, value.to::<T>())
    })
}

/// The range in which `logit` has a derivative, and the value of the derivative elsewhere.
#[derive(Clone, Copy)]
struct Slope<T> {
    low: T,
    high: T,
    beyond: T,
}
map!(LogitBackward<T: RealMath>[p => Slope<T>](grad: T, x: T) -> T {
    let slope = grad.divided_by(x.times(x.negative().plus(T::one())));
    if (x < p.low) | (x > p.high) { p.beyond } else { slope }
});
/// `grad / (x (1 - x))`; 0 where `x` is not in `eps..=1 - eps`, NaN outside of `0..=1` if no `eps` limits it.
pub fn logit_backward(iter: &mut Iter, eps: Option<f64>) -> Result<()> {
    let eps = eps.filter(|&eps| eps >= 0.0);
    let low = eps.unwrap_or(0.0);
    let beyond = if eps.is_some() { 0.0 } else { f64::NAN };
    compute!(iter.input_dtype(0), "logit_backward_cpu", [float], T => {
        let limits = Slope { low: T::of(low), high: T::of(1.0 - low), beyond: T::of(beyond) };
        run2::<LogitBackward<T>>(iter, limits)
    })
}

map!(RenormFactor<T: RealMath>[limit => T](norm: T) -> T {
    let factor = limit.divided_by(norm.plus(T::of(1e-7)));
    if norm > limit { factor } else { T::one() }
});
/// `limit / (norm + 1e-7)` of norms above the limit, 1 for other norms, for `renorm`.
pub fn renorm_factor(iter: &mut Iter, limit: f64) -> Result<()> {
    compute!(iter.input_dtype(0), "renorm_scale_factor_cpu", [float], T => {
        run1::<RenormFactor<T>>(iter, T::of(limit))
    })
}

map!(ScaledProduct<T: Number>[factor => T](a: T, b: T) -> T { a.times(b).times(factor) });
/// `factor a b`.
pub fn scaled_product(iter: &mut Iter, factor: f64) -> Result<()> {
    let factor = Scalar::Float(factor);
    compute!(iter.input_dtype(0), "mul_cpu", [float complex], T => {
        run2::<ScaledProduct<T>>(iter, factor.to())
    })
}
