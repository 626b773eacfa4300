//! Reductions over any set of dimensions: sums, products, extremes, truth, norms, moments, logsumexp.
//!
//! Each kernel takes an output of the input's shape with size 1 at the reduced dimensions, and any
//! order and sign of strides. The compute type follows from the dtypes: `f32` for `f16`, `bf16` and
//! `f32`, `f64`, `i64` for integers. Results are the same bits for any number of threads. Not here:
//! scans (`scan`) and anything that sorts (`sort`). Start at `engine`.

mod columns;
mod engine;
mod load;
mod reducer;

pub(crate) use load::{Load, f32_of_f16, is_half, load_converted, load_same, store_f64, store_i64};
pub(crate) use reducer::Ordered;

use crate::line::{check_dtype, check_shape};
use crate::{Bool, C64, C128, DType, Error, Result, StridedMut, StridedRef};
use engine::{Reducer, check, is_direct, run};
use load::{load_bool, load_f32, load_i64, load_magnitude_f32, load_magnitude_f64, store_c128};
use num_complex::Complex;
use reducer::{
    BrainSum, ComplexLogSumExp, ComplexScaled, ComplexVariance, Count, Extreme, Locate, LogSumExp,
    Moments, NanSum, NormExtreme, NormOne, NormPower, NormTwo, NormZero, Prod, Real, Scaled, Sum,
    Truth, Variance,
};
use std::marker::PhantomData;

/// The type that a reduction with a result of `dtype` is computed in.
pub(crate) const fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::F64 | DType::C64 | DType::C128 => dtype,
        _ => DType::I64,
    }
}

/// The input, its loader to `I`, and whether its elements are items already.
type Source<'a, I> = (&'a StridedRef<'a>, Load<I>, bool);

fn as_f32<'a>(input: &'a StridedRef<'a>) -> Source<'a, f32> {
    (input, load_f32(input.dtype()), is_direct::<f32>(input.dtype()))
}
/// Whether `bfloat16` numbers are to be added up in single precision, which is done without a copy.
fn is_brain(out: &StridedMut<'_>, input: &StridedRef<'_>) -> bool {
    input.dtype() == DType::BF16 && compute_dtype(out.dtype()) == DType::F32
}
fn as_brain<'a>(input: &'a StridedRef<'a>) -> Source<'a, u16> {
    (input, load_same::<u16>, true)
}
fn as_f64<'a>(input: &'a StridedRef<'a>) -> Source<'a, f64> {
    (input, load_converted(input.dtype()), is_direct::<f64>(input.dtype()))
}
fn as_i64<'a>(input: &'a StridedRef<'a>) -> Source<'a, i64> {
    (input, load_i64(input.dtype()), is_direct::<i64>(input.dtype()))
}
fn as_c64<'a>(input: &'a StridedRef<'a>) -> Source<'a, C64> {
    (input, load_converted(input.dtype()), is_direct::<C64>(input.dtype()))
}
fn as_c128<'a>(input: &'a StridedRef<'a>) -> Source<'a, C128> {
    (input, load_converted(input.dtype()), is_direct::<C128>(input.dtype()))
}
fn as_bool<'a>(input: &'a StridedRef<'a>) -> Source<'a, Bool> {
    // A byte is true if it is not zero, whether it is called bool, uint8 or int8.
    let is_byte = matches!(input.dtype(), DType::Bool | DType::U8 | DType::I8);
    (input, load_bool(input.dtype()), is_byte)
}
fn magnitudes_f32<'a>(input: &'a StridedRef<'a>) -> Source<'a, f32> {
    (input, load_magnitude_f32(input.dtype()), is_direct::<f32>(input.dtype()))
}
fn magnitudes_f64<'a>(input: &'a StridedRef<'a>) -> Source<'a, f64> {
    (input, load_magnitude_f64(input.dtype()), is_direct::<f64>(input.dtype()))
}

/// Runs a reducer whose real result is mapped and stored in `out`.
fn into_real<R: Reducer>(
    out: &mut StridedMut<'_>,
    source: Source<'_, R::Item>,
    dims: &[usize],
    r: &R,
    map: impl Fn(R::Acc) -> f64 + Sync,
) {
    let out = &*out;
    run(r, source, [out, out], dims, |[at, _], acc| {
        // SAFETY: the engine gives offsets of elements of `out`.
        unsafe { store_f64(out.ptr(), at, out.dtype(), map(acc)) }
    });
}

fn into_integer<R: Reducer>(
    out: &mut StridedMut<'_>,
    source: Source<'_, R::Item>,
    dims: &[usize],
    r: &R,
    map: impl Fn(R::Acc) -> i64 + Sync,
) {
    let out = &*out;
    run(r, source, [out, out], dims, |[at, _], acc| {
        // SAFETY: the engine gives offsets of elements of `out`.
        unsafe { store_i64(out.ptr(), at, out.dtype(), map(acc)) }
    });
}

fn into_complex<R: Reducer>(
    out: &mut StridedMut<'_>,
    source: Source<'_, R::Item>,
    dims: &[usize],
    r: &R,
    map: impl Fn(R::Acc) -> C128 + Sync,
) {
    let out = &*out;
    run(r, source, [out, out], dims, |[at, _], acc| {
        // SAFETY: the engine gives offsets of elements of `out`.
        unsafe { store_c128(out.ptr(), at, out.dtype(), map(acc)) }
    });
}

fn wide_complex(value: C64) -> C128 {
    Complex::new(f64::from(value.re), f64::from(value.im))
}

/// Runs one of the number reducers in the compute type of the output.
macro_rules! in_compute_type {
    ($Reducer:ident, $out:expr, $input:expr, $dims:expr, |$acc:ident| $scale:expr) => {
        match compute_dtype($out.dtype()) {
            DType::F32 => {
                into_real($out, as_f32($input), $dims, &$Reducer(PhantomData), |$acc: f32| {
                    let $acc = f64::from($acc);
                    $scale
                })
            }
            DType::F64 => {
                into_real($out, as_f64($input), $dims, &$Reducer(PhantomData), |$acc: f64| $scale)
            }
            DType::C64 => {
                into_complex($out, as_c64($input), $dims, &$Reducer(PhantomData), |$acc: C64| {
                    let $acc = wide_complex($acc);
                    $scale
                })
            }
            DType::C128 => {
                into_complex($out, as_c128($input), $dims, &$Reducer(PhantomData), |$acc: C128| {
                    $scale
                })
            }
            _ => {
                into_integer($out, as_i64($input), $dims, &$Reducer(PhantomData), |$acc: i64| $acc)
            }
        }
    };
}

/// Sum over `dims`: `out = sum(input)`; the dtype of `out` says in what it is computed (integers wrap).
///
/// No items give zero.
pub fn sum(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    if out.dtype() == DType::Bool {
        into_integer(out, as_bool(&input), dims, &Truth::<true>, i64::from);
        return Ok(());
    }
    if is_brain(out, &input) {
        into_real(out, as_brain(&input), dims, &BrainSum, f64::from);
        return Ok(());
    }
    in_compute_type!(Sum, out, &input, dims, |acc| acc);
    Ok(())
}

/// Mean over `dims`; `out` is floating-point or complex. No items give NaN.
pub fn mean(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    if !out.dtype().is_differentiable() {
        return Err(Error::not_implemented("mean", out.dtype()));
    }
    let count = reduced_count(&input, dims) as f64;
    if is_brain(out, &input) {
        into_real(out, as_brain(&input), dims, &BrainSum, |acc| f64::from(acc) / count);
        return Ok(());
    }
    in_compute_type!(Sum, out, &input, dims, |acc| acc / count);
    Ok(())
}

/// Product over `dims`; the dtype of `out` says in what it is computed. No items give one.
pub fn prod(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    if out.dtype() == DType::Bool {
        into_integer(out, as_bool(&input), dims, &Truth::<false>, i64::from);
        return Ok(());
    }
    in_compute_type!(Prod, out, &input, dims, |acc| acc);
    Ok(())
}

/// Sum over `dims` with NaN taken as zero.
///
/// # Errors
/// `NotImplementedError` for complex dtypes.
pub fn nansum(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    if input.dtype().is_complex() {
        return Err(Error::unsupported("nansum on CPU does not support complex inputs".into()));
    }
    if !input.dtype().is_floating_point() {
        return sum(out, input, dims);
    }
    check(out, &input, dims)?;
    in_compute_type!(NanSum, out, &input, dims, |acc| acc);
    Ok(())
}

/// How many items each result of a reduction over `dims` has.
pub fn reduced_count(input: &StridedRef<'_>, dims: &[usize]) -> usize {
    dims.iter().filter_map(|&dim| input.shape().get(dim)).map(|&s| s as usize).product()
}

/// Refuses a reduction without identity over a dimension of size 0, in PyTorch's words.
///
/// `argmax` and `argmin` raise `IndexError` also when every dimension is reduced, the others `RuntimeError`.
pub fn check_not_empty(name: &str, input: &StridedRef<'_>, dims: &[usize]) -> Result<()> {
    let Some(&empty) = dims.iter().find(|&&dim| input.shape().get(dim) == Some(&0)) else {
        return Ok(());
    };
    let is_full = dims.len() == input.ndim() && input.ndim() != 1;
    if !is_full {
        return Err(Error::index(format!(
            "{name}(): Expected reduction dim {empty} to have non-zero size."
        )));
    }
    let wanted =
        format!("{name}(): Expected reduction dim to be specified for input.numel() == 0.");
    if name.starts_with("arg") {
        return Err(Error::index(wanted));
    }
    Err(Error::runtime(format!("{wanted} Specify the reduction dim with the 'dim' argument.")))
}

fn extreme<const MAX: bool>(
    name: &str,
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
) -> Result<()> {
    check(out, &input, dims)?;
    check_dtype(name, out.dtype(), input.dtype())?;
    check_not_empty(name, &input, dims)?;
    match input.dtype() {
        DType::Bool if MAX => {
            into_integer(out, as_bool(&input), dims, &Truth::<true>, i64::from);
        }
        DType::Bool => into_integer(out, as_bool(&input), dims, &Truth::<false>, i64::from),
        half if is_half(half) => {
            let r = Extreme::<f32, MAX>(PhantomData);
            into_real(out, as_f32(&input), dims, &r, f64::from);
        }
        dtype => in_own_type::<MAX>(out, &input, dims)
            .ok_or_else(|| Error::not_implemented(&format!("{name}_values_cpu"), dtype))?,
    }
    Ok(())
}

/// Runs `$body` with `T` bound to an integer, `f32` or `f64` type.
macro_rules! ordered_dtype {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            DType::F32 => { type $T = f32; $body }
            DType::F64 => { type $T = f64; $body }
            dtype => $crate::for_dtype!(dtype, integral, $T => $body, else $other),
        }
    };
}

fn in_own_type<const MAX: bool>(
    out: &mut StridedMut<'_>,
    input: &StridedRef<'_>,
    dims: &[usize],
) -> Option<()> {
    let out = &*out;
    ordered_dtype!(input.dtype(), T => {
        run(&Extreme::<T, MAX>(PhantomData), (input, load_same::<T>, true), [out, out], dims, |[at, _], acc| {
            // SAFETY: the engine gives offsets of elements of `out`, whose dtype is the input's.
            unsafe { crate::line::put(out.ptr(), at, acc) }
        });
        Some(())
    }, else None)
}

/// Largest value over `dims`; NaN if there is one.
///
/// # Errors
/// If a reduced dimension has size 0; for complex dtypes.
pub fn amax(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    extreme::<true>("amax", out, input, dims)
}

/// Smallest value over `dims`; NaN if there is one.
///
/// # Errors
/// If a reduced dimension has size 0; for complex dtypes.
pub fn amin(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    extreme::<false>("amin", out, input, dims)
}

/// Finds the extreme and its place; `store` gets the value (as an element) and offsets.
fn locate<const MAX: bool>(
    values: Option<&StridedMut<'_>>,
    indices: &StridedMut<'_>,
    input: &StridedRef<'_>,
    dims: &[usize],
) -> Option<()> {
    let outs = [indices, values.unwrap_or(indices)];
    let store_index = |at: isize, index: usize| {
        // SAFETY: the engine gives offsets of elements of `indices`, whose dtype was checked.
        unsafe { crate::line::put(indices.ptr(), at, index as i64) }
    };
    if is_half(input.dtype()) {
        run(&Locate::<f32, MAX>(PhantomData), as_f32(input), outs, dims, |[at, value_at], acc| {
            store_index(at, acc.at);
            if let Some(values) = values {
                // SAFETY: as above, for `values`.
                unsafe {
                    store_f64(values.ptr(), value_at, values.dtype(), f64::from(acc.value));
                }
            }
        });
        return Some(());
    }
    // A bool is the byte 0 or 1 once loaded, and stored as such.
    let dtype = if input.dtype() == DType::Bool { DType::U8 } else { input.dtype() };
    ordered_dtype!(dtype, T => {
        run(&Locate::<T, MAX>(PhantomData), (input, load_same::<T>, true), outs, dims, |[at, value_at], acc| {
            store_index(at, acc.at);
            if let Some(values) = values {
                // SAFETY: as above, for `values`, whose dtype is the input's.
                unsafe { crate::line::put(values.ptr(), value_at, acc.value) }
            }
        });
        Some(())
    }, else None)
}

fn extreme_dim<const MAX: bool>(
    name: &str,
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    check(values, &input, &[dim])?;
    check_shape(name, indices.shape(), values.shape())?;
    check_dtype(name, values.dtype(), input.dtype())?;
    check_dtype(name, indices.dtype(), DType::I64)?;
    check_not_empty(name, &input, &[dim])?;
    locate::<MAX>(Some(values), indices, &input, &[dim])
        .ok_or_else(|| Error::not_implemented(&format!("{name}_cpu"), input.dtype()))
}

/// Largest value along `dim` and the index of its first occurrence (the first NaN if there is one).
///
/// # Errors
/// If the dimension has size 0; for complex dtypes.
pub fn max_dim(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    extreme_dim::<true>("max", values, indices, input, dim)
}

/// Smallest value along `dim` and the index of its first occurrence (the first NaN if there is one).
///
/// # Errors
/// If the dimension has size 0; for complex dtypes.
pub fn min_dim(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    extreme_dim::<false>("min", values, indices, input, dim)
}

fn arg_extreme<const MAX: bool>(
    name: &str,
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
) -> Result<()> {
    check(out, &input, dims)?;
    check_dtype(name, out.dtype(), DType::I64)?;
    check_not_empty(name, &input, dims)?;
    if input.dtype() == DType::Bool {
        return Err(Error::unsupported(format!("{name}(): does not support bool input")));
    }
    locate::<MAX>(None, out, &input, dims)
        .ok_or_else(|| Error::not_implemented(&format!("{name}_cpu"), input.dtype()))
}

/// Index of the first largest value over `dims` (one dimension, or all: then of the flattened input).
///
/// # Errors
/// If a reduced dimension has size 0; for bool and complex dtypes.
pub fn argmax(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    arg_extreme::<true>("argmax", out, input, dims)
}

/// Index of the first smallest value over `dims` (one dimension, or all: then of the flattened input).
///
/// # Errors
/// If a reduced dimension has size 0; for bool and complex dtypes.
pub fn argmin(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    arg_extreme::<false>("argmin", out, input, dims)
}

/// Whether any element is true (NaN is); `out` is bool or any other dtype (then 0 or 1). No items give false.
pub fn any(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    into_integer(out, as_bool(&input), dims, &Truth::<true>, i64::from);
    Ok(())
}

/// Whether every element is true (NaN is); `out` is bool or any other dtype (then 0 or 1). No items give true.
pub fn all(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    into_integer(out, as_bool(&input), dims, &Truth::<false>, i64::from);
    Ok(())
}

/// How many elements are not zero.
pub fn count_nonzero(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
) -> Result<()> {
    check(out, &input, dims)?;
    into_integer(out, as_bool(&input), dims, &Count, |count| count);
    Ok(())
}

/// Stores variance (or its root) and, if asked for, the mean.
fn moments(
    out: &mut StridedMut<'_>,
    mean: Option<&mut StridedMut<'_>>,
    input: StridedRef<'_>,
    dims: &[usize],
    (correction, is_std): (f64, bool),
) -> Result<()> {
    check(out, &input, dims)?;
    if let Some(mean) = &mean {
        check_shape("mean output", mean.shape(), out.shape())?;
    }
    if !input.dtype().is_differentiable() {
        return Err(Error::unsupported(
            "std and var only support floating point and complex dtypes".into(),
        ));
    }
    let out = &*out;
    let mean = mean.as_deref();
    let outs = [out, mean.unwrap_or(out)];
    let store = |at: isize, count: f64, squares: f64| {
        // A correction of the count or more divides by zero: 0/0 is NaN, as for one element.
        let variance = squares / (count - correction).max(0.0);
        let value = if is_std { variance.sqrt() } else { variance };
        // SAFETY: the engine gives offsets of elements of `out`.
        unsafe { store_f64(out.ptr(), at, out.dtype(), value) }
    };
    let real = |[at, mean_at]: [isize; 2], m: Moments<f64>| {
        store(at, m.count, m.squares);
        if let Some(mean) = mean {
            let value = if m.count == 0.0 { f64::NAN } else { m.mean };
            // SAFETY: the engine gives offsets of elements of `mean`.
            unsafe { store_f64(mean.ptr(), mean_at, mean.dtype(), value) }
        }
    };
    match compute_dtype(input.dtype()) {
        DType::F32 => run(&Variance(PhantomData), as_f32(&input), outs, dims, real),
        DType::F64 => run(&Variance(PhantomData), as_f64(&input), outs, dims, real),
        _ => run(&ComplexVariance, as_c128(&input), outs, dims, |[at, mean_at], m| {
            store(at, m.count, m.squares);
            if let Some(mean) = mean {
                let nan = Complex::new(f64::NAN, f64::NAN);
                let value = if m.count == 0.0 { nan } else { m.mean };
                // SAFETY: the engine gives offsets of elements of `mean`.
                unsafe { store_c128(mean.ptr(), mean_at, mean.dtype(), value) }
            }
        }),
    }
    Ok(())
}

/// Variance over `dims`: `sum(|x - mean|^2) / max(0, n - correction)`; real output, also for complex input.
pub fn var(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    moments(out, None, input, dims, (correction, false))
}

/// Standard deviation over `dims`: the root of [`var`].
pub fn std(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    moments(out, None, input, dims, (correction, true))
}

/// Variance and mean over `dims`, in one pass.
pub fn var_mean(
    var: &mut StridedMut<'_>,
    mean: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    moments(var, Some(mean), input, dims, (correction, false))
}

/// Standard deviation and mean over `dims`, in one pass.
pub fn std_mean(
    std: &mut StridedMut<'_>,
    mean: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    moments(std, Some(mean), input, dims, (correction, true))
}

fn check_norm(input: &StridedRef<'_>, dims: &[usize], p: f64) -> Result<()> {
    let empty = dims.iter().find(|&&dim| input.shape().get(dim) == Some(&0));
    let has_identity = p >= 0.0 && p != f64::INFINITY;
    let Some(&dim) = empty.filter(|_| !has_identity) else { return Ok(()) };
    let tail = if dims.len() == input.ndim() && input.ndim() != 1 {
        "an empty tensor because the operation does not have an identity".to_string()
    } else {
        format!(
            "the dimension {dim}because this dimension is empty and the operation does not have an identity"
        )
    };
    Err(Error::runtime(format!("linalg.vector_norm cannot compute the {p} norm on {tail}")))
}

/// Vector norm over `dims`: `sum(|x|^p)^(1/p)`; `p` = 0 counts what is not zero, infinite `p` take the largest or
/// smallest magnitude. The output is real.
///
/// # Errors
/// If a reduced dimension is empty and `p` is negative or infinite; for integer inputs.
pub fn norm(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize], p: f64) -> Result<()> {
    check(out, &input, dims)?;
    if !input.dtype().is_differentiable() {
        return Err(Error::unsupported(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            input.dtype().scalar_name()
        )));
    }
    check_norm(&input, dims, p)?;
    let is_double = matches!(input.dtype(), DType::F64 | DType::C128) || out.dtype() == DType::F64;
    if is_double {
        norm_in(out, magnitudes_f64(&input), dims, p);
    } else {
        norm_in(out, magnitudes_f32(&input), dims, p);
    }
    Ok(())
}

fn norm_in<T: Real>(out: &mut StridedMut<'_>, source: Source<'_, T>, dims: &[usize], p: f64) {
    let wide = |acc: T| acc.wide();
    if p == 2.0 {
        into_real(out, source, dims, &NormTwo(PhantomData), |acc: T| acc.wide().sqrt());
    } else if p == 1.0 {
        into_real(out, source, dims, &NormOne(PhantomData), wide);
    } else if p == 0.0 {
        into_real(out, source, dims, &NormZero(PhantomData), wide);
    } else if p == f64::INFINITY {
        into_real(out, source, dims, &NormExtreme::<T, true>(PhantomData), wide);
    } else if p == f64::NEG_INFINITY {
        into_real(out, source, dims, &NormExtreme::<T, false>(PhantomData), wide);
    } else {
        into_real(out, source, dims, &NormPower(T::of(p)), |acc: T| acc.wide().powf(1.0 / p));
    }
}

/// `log(sum(exp(x)))` over `dims`, without overflow; integers are taken as the floats of `out`. No items give -inf.
pub fn logsumexp(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    let join = |max: f64, sum: f64| sum.ln() + if max.is_infinite() { 0.0 } else { max };
    match compute_dtype(out.dtype()) {
        DType::F32 => {
            into_real(out, as_f32(&input), dims, &LogSumExp(PhantomData), |acc: Scaled<f32>| {
                join(f64::from(acc.max), f64::from(acc.sum))
            });
        }
        DType::F64 => {
            into_real(out, as_f64(&input), dims, &LogSumExp(PhantomData), |acc: Scaled<f64>| {
                join(acc.max, acc.sum)
            });
        }
        DType::C64 | DType::C128 => {
            into_complex(out, as_c128(&input), dims, &ComplexLogSumExp, |acc: ComplexScaled| {
                acc.sum.ln() + if acc.max.is_infinite() { 0.0 } else { acc.max }
            });
        }
        _ => return Err(Error::not_implemented("logsumexp", out.dtype())),
    }
    Ok(())
}
