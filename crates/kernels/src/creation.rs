//! Filling a tensor from a rule: `arange`, `linspace`, `logspace`, `eye`.
//!
//! Values are computed in the accumulate type (`f32` for halves, `i64` for integers) and rounded as
//! PyTorch's CPU kernels do; `linspace` counts from both ends so that it is symmetrical.

use crate::elementwise::complex;
use crate::line::{GRAIN, write_line};
use crate::simd::math_f64;
use crate::{
    C64, C128, DType, Element, Error, Iter, Result, Scalar, StridedMut, bf16, elementwise, f16,
    for_dtype, parallel,
};

/// How many elements `arange(start, end, step)` has: `ceil((end - start) / step)`.
///
/// # Errors
/// If `step` is zero, a bound is not finite, or the bounds contradict the sign of `step`.
pub fn arange_size(start: Scalar, end: Scalar, step: Scalar) -> Result<usize> {
    let (a, b, s) = (start.to_f64(), end.to_f64(), step.to_f64());
    if s == 0.0 {
        return Err(Error::runtime("step must be nonzero".into()));
    }
    if !a.is_finite() || !b.is_finite() {
        let range = format!("unsupported range: {a} -> {b}").replace("NaN", "nan");
        return Err(Error::runtime(range));
    }
    if (s > 0.0 && b < a) || (s < 0.0 && b > a) {
        return Err(Error::runtime(
            "upper bound and lower bound inconsistent with step sign".into(),
        ));
    }
    if let (true, true, true) = (start.is_integral(), end.is_integral(), step.is_integral()) {
        let (a, b, s) = (start.to_i64() as i128, end.to_i64() as i128, step.to_i64() as i128);
        let sign = s.signum();
        return Ok(((b - a + s - sign) / s) as usize);
    }
    Ok(((b - a) / s).ceil() as usize)
}

/// How many elements `range(start, end, step)` of this dtype has: those of [`arange_size`], `end` included if it is met.
/// Integers have lost their fractions before.
///
/// # Errors
/// If `step` is zero, a bound is not finite, or the bounds contradict the sign of `step`.
pub fn range_size(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<usize> {
    let numbers = [start, end, step];
    let [a, b, s] = if dtype.is_integral(true) {
        numbers.map(|n| Scalar::Int(if n.to_f64().is_finite() { n.to_i64() } else { 0 }))
    } else {
        numbers.map(|n| Scalar::Float(n.to_f64()))
    };
    if numbers[..2].iter().all(|n| n.to_f64().is_finite()) {
        arange_size(a, b, s)?;
    } else {
        arange_size(start, end, step)?;
    }
    if let (Scalar::Int(a), Scalar::Int(b), Scalar::Int(s)) = (a, b, s) {
        return Ok(((i128::from(b) - i128::from(a)) / i128::from(s) + 1) as usize);
    }
    Ok((((b.to_f64() - a.to_f64()) / s.to_f64()).floor() + 1.0) as usize)
}

crate::multiversion! {
/// Stores `value(first + i)` at each element `i`.
fn fill_part<T: Element, F: IntoElement<T>>(out: &mut [T], first: usize, value: &F) {
    for (i, element) in out.iter_mut().enumerate() {
        *element = value.at(first + i);
    }
}
}

/// A function from an element's index to its value.
trait IntoElement<T>: Sync {
    fn at(&self, i: usize) -> T;
}
impl<T, F: Fn(usize) -> T + Sync> IntoElement<T> for F {
    #[inline(always)]
    fn at(&self, i: usize) -> T {
        self(i)
    }
}

/// Elements computed at once where the output is not dense.
const PART: usize = 64;

/// Stores `value(i)` at element `i` of a one-dimensional tensor, on several threads if it is large.
fn fill_by<T: Element>(out: &mut StridedMut<'_>, value: impl Fn(usize) -> T + Sync) {
    let out = &*out;
    let size = size_of::<T>() as isize;
    let step = out.strides().first().map_or(size, |&stride| stride as isize * size);
    parallel::for_range(out.numel(), GRAIN, &|range| {
        let at = |i: usize| out.ptr().wrapping_offset(i as isize * step).cast::<T>();
        if step == size {
            // SAFETY: a part of the view without gaps, which no other thread writes.
            let part = unsafe { std::slice::from_raw_parts_mut(at(range.start), range.len()) };
            return fill_part(part, range.start, &value);
        }
        let mut part = [T::default(); PART];
        for first in range.clone().step_by(PART) {
            let part = &mut part[..PART.min(range.end - first)];
            fill_part(part, first, &value);
            // SAFETY: these elements lie inside the view.
            unsafe { write_line(at(first).cast(), step, part) };
        }
    });
}

/// `start + i * step` for each element `i`, in the accumulate type of the dtype.
///
/// # Errors
/// For bool and complex dtypes.
pub fn arange(out: &mut StridedMut<'_>, start: Scalar, step: Scalar) -> Result<()> {
    match out.dtype() {
        DType::F32 => {
            let (start, step) = (start.to_f64() as f32, step.to_f64() as f32);
            // In single precision the index times the step is added without rounding in between.
            fill_by(out, |i| (f64::from(start) + f64::from(step) * i as f64) as f32);
        }
        DType::F64 => {
            let (start, step) = (start.to_f64(), step.to_f64());
            fill_by(out, |i| start + step * i as f64);
        }
        DType::F16 => {
            let (start, step) = (start.to_f64() as f32, step.to_f64() as f32);
            fill_by(out, |i| f16::from_f32(start + step * i as f32));
        }
        DType::BF16 => {
            let (start, step) = (start.to_f64() as f32, step.to_f64() as f32);
            fill_by(out, |i| bf16::from_f32(start + step * i as f32));
        }
        dtype => {
            let (start, step) = (start.to_i64(), step.to_i64());
            for_dtype!(dtype, integral, T => {
                fill_by(out, |i| T::from_i64(start.wrapping_add(step.wrapping_mul(i as i64))));
            }, else return Err(Error::not_implemented("arange_cpu", dtype)));
        }
    }
    Ok(())
}

/// `start + i * step` for each element `i`, like [`arange`], but computed in double precision where the dtype is `f32`.
///
/// # Errors
/// For bool, complex dtypes and unsigned integers of more than 8 bits.
pub fn range(out: &mut StridedMut<'_>, start: Scalar, step: Scalar) -> Result<()> {
    match out.dtype() {
        DType::F32 => {
            let (start, step) = (start.to_f64(), step.to_f64());
            fill_by(out, |i| (start + step * i as f64) as f32);
            Ok(())
        }
        dtype if !dtype.is_floating_point() && !dtype.is_signed() && dtype != DType::U8 => {
            Err(Error::not_implemented("range_cpu", dtype))
        }
        dtype if dtype.is_complex() => Err(Error::not_implemented("range_cpu", dtype)),
        _ => arange(out, start, step),
    }
}

/// `start` and `end` and `steps - 2` evenly spaced numbers between; computed from the nearer end.
///
/// # Errors
/// For bool.
pub fn linspace(out: &mut StridedMut<'_>, start: Scalar, end: Scalar) -> Result<()> {
    spaced(out, start, end, "linspace_cpu", None)
}

/// `base` to the power of the numbers of [`linspace`].
///
/// # Errors
/// For bool.
pub fn logspace(out: &mut StridedMut<'_>, start: Scalar, end: Scalar, base: f64) -> Result<()> {
    spaced(out, start, end, "logspace_cpu", Some(base))
}

fn spaced(
    out: &mut StridedMut<'_>,
    start: Scalar,
    end: Scalar,
    name: &str,
    base: Option<f64>,
) -> Result<()> {
    let n = out.numel();
    let half = n / 2;
    let last = n.saturating_sub(1);
    macro_rules! float {
        ($t:ty, $from:expr) => {{
            let (a, b) = (start.to_f64() as $t, end.to_f64() as $t);
            let step = (b - a) / last.max(1) as $t;
            let near = move |i: usize| {
                let (low, high) = (a + step * i as $t, b - step * last.wrapping_sub(i) as $t);
                if i < half || n == 1 { low } else { high }
            };
            match base {
                None => fill_by(out, move |i| $from(near(i))),
                Some(base) => {
                    fill_by(out, move |i| $from(math_f64::pow(base, f64::from(near(i))) as $t))
                }
            }
        }};
    }
    macro_rules! complex {
        ($t:ty, $part:ty) => {{
            let (a, b): ($t, $t) = (start.to(), end.to());
            let step = (b - a) / last.max(1) as $part;
            let power = |x: $t| {
                let wide = |base: f64| complex::exp(x.to_c128() * math_f64::log(base));
                base.map_or(x, |base| <$t>::from_c128(wide(base)))
            };
            fill_by(out, |i| {
                power(if i < half || n == 1 {
                    a + step * i as $part
                } else {
                    b - step * (last - i) as $part
                })
            });
        }};
    }
    match out.dtype() {
        DType::F32 => float!(f32, |x: f32| x),
        DType::F64 => float!(f64, |x: f64| x),
        DType::F16 => float!(f32, f16::from_f32),
        DType::BF16 => float!(f32, bf16::from_f32),
        DType::C64 => complex!(C64, f32),
        DType::C128 => complex!(C128, f64),
        dtype => {
            // Integers step in double precision, and the sum loses its fraction.
            let (a, b) = (start.to_i64() as f64, end.to_i64() as f64);
            let step = (b - a) / last.max(1) as f64;
            let near = |i: usize| {
                if i < half || n == 1 { a + step * i as f64 } else { b - step * (last - i) as f64 }
            };
            for_dtype!(dtype, integral, T => match base {
                None => fill_by(out, |i| T::from_i64(near(i) as i64)),
                Some(base) => fill_by(out, |i| T::from_i64(math_f64::pow(base, near(i)) as i64)),
            }, else return Err(Error::not_implemented(name, dtype)));
        }
    }
    Ok(())
}

/// Ones on the diagonal of a matrix, zeros elsewhere; any dtype.
///
/// # Errors
/// If `out` is not two-dimensional.
pub fn eye(out: &mut StridedMut<'_>) -> Result<()> {
    let (&[rows, columns], &[row_step, step]) = (out.shape(), out.strides()) else {
        return Err(Error::runtime(format!("eye: expected a matrix but got {:?}", out.shape())));
    };
    let dtype = out.dtype();
    let (shape, strides) = ([rows.min(columns)], [row_step + step]);
    // SAFETY: the diagonal's elements are elements of the matrix; nothing else is written meanwhile.
    let diagonal = unsafe { StridedMut::new(out.ptr(), dtype, &shape, &strides) };
    elementwise::fill(&mut Iter::new(std::slice::from_ref(out), &[])?, Scalar::Int(0))?;
    elementwise::fill(&mut Iter::new(&[diagonal], &[])?, Scalar::Int(1))
}
