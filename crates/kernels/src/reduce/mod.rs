//! Reductions over any set of dimensions: sum, prod, min, max, any, all, norm, var, logsumexp.
//!
//! Each kernel takes an output of the input's shape with size 1 at the reduced dimensions, and any
//! order and sign of strides. The compute type follows from the dtypes: `f32` for `f16`, `bf16` and
//! `f32`, `f64`, `i64` for integers. Results are the same bits for any number of threads. Not here:
//! scans (`scan`) and anything that sorts (`sort`). Start at `engine`.

mod columns;
mod engine;
mod lines;
mod load;
mod reducer;
mod variance;

pub(crate) use load::{
    Item, Load, f16_bits_to_f32, is_half, load_converted, load_f64, load_same, store_f64, store_i64,
};
pub(crate) use reducer::BoundedOrder;

use crate::elementwise::complex;
use crate::line::{check_dtype, check_shape};
use crate::simd::math_f64;
use crate::{Bool, C64, C128, DType, Error, Result, StridedMut, StridedRef};
use engine::{OutputOffsets, Reducer, check, is_direct, run};
use load::{
    for_each_offset, load_bool, load_f32, load_i64, load_magnitude_f32, load_magnitude_f64,
    put_each, store_c128, store_each_f64,
};
use num_complex::Complex;
use reducer::{
    AbsPowerSum, AbsSum, AnyOrAll, ArgMinMax, Bf16Sum, ComplexLogSumExp, ComplexLogSumExpAcc,
    CountNonzero, FloatSummand, LogSumExp, LogSumExpAcc, MinMax, NanSum, NonzeroCount, Order, Prod,
    SquareSum, Sum, ValueAndIndex, XorFloat, XorInt,
};
use std::marker::PhantomData;
use variance::{ComplexVariance, Variance, VarianceAcc};

/// The type that a reduction with a result of `dtype` is computed in.
pub(crate) const fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::C32 => DType::C64,
        DType::F64 | DType::C64 | DType::C128 => dtype,
        _ => DType::I64,
    }
}

/// The input, its loader to `I`, and whether its elements are items already.
type TypedInput<'a, I> = (&'a StridedRef<'a>, Load<I>, bool);

fn as_f32<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, f32> {
    (input, load_f32(input.dtype()), is_direct::<f32>(input.dtype()))
}
/// Whether `bfloat16` numbers are to be added up in single precision, which is done without a copy.
fn is_bf16(out: &StridedMut<'_>, input: &StridedRef<'_>) -> bool {
    input.dtype() == DType::BF16 && compute_dtype(out.dtype()) == DType::F32
}
fn as_bf16<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, u16> {
    (input, load_same::<u16>, true)
}
fn as_f64<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, f64> {
    (input, load_f64(input.dtype()), is_direct::<f64>(input.dtype()))
}
fn as_i64<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, i64> {
    (input, load_i64(input.dtype()), is_direct::<i64>(input.dtype()))
}
fn as_c64<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, C64> {
    (input, load_converted(input.dtype()), is_direct::<C64>(input.dtype()))
}
fn as_c128<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, C128> {
    (input, load_converted(input.dtype()), is_direct::<C128>(input.dtype()))
}
fn as_bool<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, Bool> {
    // A byte is true if it is not zero, whether it is called bool, uint8 or int8.
    let is_byte = matches!(input.dtype(), DType::Bool | DType::U8 | DType::I8);
    (input, load_bool(input.dtype()), is_byte)
}
fn as_abs_f32<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, f32> {
    (input, load_magnitude_f32(input.dtype()), is_direct::<f32>(input.dtype()))
}
fn as_abs_f64<'a>(input: &'a StridedRef<'a>) -> TypedInput<'a, f64> {
    (input, load_magnitude_f64(input.dtype()), is_direct::<f64>(input.dtype()))
}

/// Runs a reducer whose real result is mapped and stored in `out`.
fn into_real<R: Reducer>(
    out: &mut StridedMut<'_>,
    source: TypedInput<'_, R::Item>,
    dims: &[usize],
    r: &R,
    map: impl Fn(R::Acc) -> f64 + Sync,
) -> Result<()> {
    let out = &*out;
    run(r, source, [out, out], dims, &|outputs, accs| {
        // SAFETY: the engine gives offsets of elements of `out`.
        unsafe { store_each_f64(out.ptr(), outputs.of(0), out.dtype(), accs, &map) }
    })
}

fn into_integer<R: Reducer>(
    out: &mut StridedMut<'_>,
    source: TypedInput<'_, R::Item>,
    dims: &[usize],
    r: &R,
    map: impl Fn(R::Acc) -> i64 + Sync,
) -> Result<()> {
    let out = &*out;
    run(r, source, [out, out], dims, &|outputs, accs| {
        let output = outputs.of(0);
        // SAFETY: the engine gives offsets of elements of `out`.
        unsafe {
            match out.dtype() {
                DType::I64 => put_each(out.ptr(), output, accs, &map),
                DType::Bool => put_each(out.ptr(), output, accs, |acc| Bool::new(map(acc) != 0)),
                dtype => {
                    for_each_offset(output, accs, |at, acc| {
                        store_i64(out.ptr(), at, dtype, map(acc));
                    });
                }
            }
        }
    })
}

fn into_complex<R: Reducer>(
    out: &mut StridedMut<'_>,
    source: TypedInput<'_, R::Item>,
    dims: &[usize],
    r: &R,
    map: impl Fn(R::Acc) -> C128 + Sync,
) -> Result<()> {
    let out = &*out;
    run(r, source, [out, out], dims, &|outputs, accs| {
        for_each_offset(outputs.of(0), accs, |at, acc| {
            // SAFETY: the engine gives offsets of elements of `out`.
            unsafe { store_c128(out.ptr(), at, out.dtype(), map(acc)) }
        });
    })
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
        return into_integer(out, as_bool(&input), dims, &AnyOrAll::<true>, i64::from);
    }
    if input.dtype() == DType::Bool && compute_dtype(out.dtype()) == DType::I64 {
        return into_integer(out, as_bool(&input), dims, &CountNonzero, |count| count);
    }
    if is_bf16(out, &input) {
        return into_real(out, as_bf16(&input), dims, &Bf16Sum, f64::from);
    }
    in_compute_type!(Sum, out, &input, dims, |acc| acc)
}

/// Mean over `dims`; `out` is floating-point or complex. No items give NaN.
pub fn mean(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    if !out.dtype().is_differentiable() {
        return Err(Error::not_implemented("mean", out.dtype()));
    }
    let count = reduced_count(&input, dims) as f64;
    if is_bf16(out, &input) {
        return into_real(out, as_bf16(&input), dims, &Bf16Sum, |acc| f64::from(acc) / count);
    }
    in_compute_type!(Sum, out, &input, dims, |acc| acc / count)
}

/// Product over `dims`; the dtype of `out` says in what it is computed. No items give one.
pub fn prod(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    if out.dtype() == DType::Bool {
        return into_integer(out, as_bool(&input), dims, &AnyOrAll::<false>, i64::from);
    }
    in_compute_type!(Prod, out, &input, dims, |acc| acc)
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
    if compute_dtype(out.dtype()) == DType::F32 {
        into_real(out, as_f32(&input), dims, &NanSum(PhantomData), |acc: f32| f64::from(acc))
    } else {
        into_real(out, as_f64(&input), dims, &NanSum(PhantomData), |acc: f64| acc)
    }
}

/// How many items each result of a reduction over `dims` has.
pub fn reduced_count(input: &StridedRef<'_>, dims: &[usize]) -> usize {
    dims.iter().filter_map(|&dim| input.shape().get(dim)).map(|&s| s as usize).product()
}

/// Refuses a reduction without identity over a dimension of size 0, in PyTorch's words.
///
/// `argmax` and `argmin` raise `IndexError` also when every dimension is reduced, the others `RuntimeError`.
///
/// # Errors
/// The errors named above.
pub fn check_not_empty(name: &str, shape: &[i64], dims: &[usize]) -> Result<()> {
    let Some(&empty) = dims.iter().find(|&&dim| shape.get(dim) == Some(&0)) else {
        return Ok(());
    };
    let is_full = dims.len() == shape.len() && shape.len() != 1;
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

/// The bits of all elements over `dims` combined by "exclusive or", as 64-bit words: of whole numbers those of their
/// `i64`, of others those of their `f64`. `out` is `u64`. # Errors No items are refused, as are complex numbers.
pub fn xor_bits(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    check_dtype("hash_tensor", out.dtype(), DType::U64)?;
    check_not_empty("hash_tensor", input.shape(), dims)?;
    if input.dtype().is_complex() {
        return Err(Error::not_implemented("xor_sum_cpu", input.dtype()));
    }
    if input.dtype().is_floating_point() {
        into_integer(out, as_f64(&input), dims, &XorFloat, |bits| bits)
    } else {
        into_integer(out, as_i64(&input), dims, &XorInt, |bits| bits)
    }
}

fn min_or_max(
    name: &str,
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    is_max: bool,
) -> Result<()> {
    check(out, &input, dims)?;
    check_dtype(name, out.dtype(), input.dtype())?;
    check_not_empty(name, input.shape(), dims)?;
    match input.dtype() {
        DType::Bool if is_max => {
            into_integer(out, as_bool(&input), dims, &AnyOrAll::<true>, i64::from)
        }
        DType::Bool => into_integer(out, as_bool(&input), dims, &AnyOrAll::<false>, i64::from),
        half if is_half(half) => {
            let order = Order::new(is_max, false);
            let value = |key: f32| f64::from(order.value(key));
            into_real(out, as_f32(&input), dims, &MinMax(order), value)
        }
        dtype => {
            let out = &*out;
            keyed_dtype!(dtype, T => {
                let order = Order::<T>::new(is_max, is_unsigned(dtype));
                let source = (&input, load_same::<T> as Load<T>, true);
                run(&MinMax(order), source, [out, out], dims, &|outputs, keys| {
                    // SAFETY: the engine gives offsets of elements of `out`, whose bits are those of a `T`.
                    unsafe { put_each(out.ptr(), outputs.of(0), keys, |key| order.value(key)) }
                })
            }, else Err(Error::not_implemented(&format!("{name}_values_cpu"), dtype)))
        }
    }
}

/// Whether numbers of a dtype (a bool is the byte 0 or 1) are compared as unsigned integers.
const fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

/// Runs `$body` with `T` bound to the type of keys of a dtype.
macro_rules! keyed_dtype {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::Bool | DType::U8 | DType::I8 => {
                type $T = i8;
                $body
            }
            DType::U16 | DType::I16 => {
                type $T = i16;
                $body
            }
            DType::U32 | DType::I32 => {
                type $T = i32;
                $body
            }
            DType::U64 | DType::I64 => {
                type $T = i64;
                $body
            }
            _ => $other,
        }
    };
}
use keyed_dtype;

/// Largest value over `dims`; NaN if there is one.
///
/// # Errors
/// If a reduced dimension has size 0; for complex dtypes.
pub fn amax(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    min_or_max("amax", out, input, dims, true)
}

/// Smallest value over `dims`; NaN if there is one.
///
/// # Errors
/// If a reduced dimension has size 0; for complex dtypes.
pub fn amin(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    min_or_max("amin", out, input, dims, false)
}

/// Stores the indices, and if requested the values, of the largest or smallest elements; `name` is the function's for a
/// dtype that it does not have.
fn value_and_index(
    name: &str,
    values: Option<&StridedMut<'_>>,
    indices: &StridedMut<'_>,
    input: &StridedRef<'_>,
    dims: &[usize],
    is_max: bool,
) -> Result<()> {
    let outs = [indices, values.unwrap_or(indices)];
    if is_half(input.dtype()) {
        let order = Order::new(is_max, false);
        return run(&ArgMinMax(order), as_f32(input), outs, dims, &|outputs, accs| {
            // SAFETY: the engine gives offsets of elements of the outputs; the dtype of `indices` was checked.
            unsafe {
                put_each(indices.ptr(), outputs.of(0), accs, |acc| acc.at as i64);
                let Some(values) = values else { return };
                if values.dtype() == DType::BF16 {
                    // What was widened is narrowed: nothing is rounded.
                    let value =
                        |acc: ValueAndIndex<f32>| (order.value(acc.value).to_bits() >> 16) as u16;
                    return put_each(values.ptr(), outputs.of(1), accs, value);
                }
                let value = |acc: ValueAndIndex<f32>| f64::from(order.value(acc.value));
                store_each_f64(values.ptr(), outputs.of(1), values.dtype(), accs, &value);
            }
        });
    }
    keyed_dtype!(input.dtype(), T => {
        let order = Order::<T>::new(is_max, is_unsigned(input.dtype()));
        run(&ArgMinMax(order), (input, load_same::<T>, true), outs, dims, &|outputs, accs| {
            // SAFETY: as above; the dtype of `values` is the input's, whose bits are those of a `T`.
            unsafe {
                put_each(indices.ptr(), outputs.of(0), accs, |acc| acc.at as i64);
                if let Some(values) = values {
                    put_each(values.ptr(), outputs.of(1), accs, |acc| order.value(acc.value));
                }
            }
        })
    }, else Err(Error::not_implemented(&format!("{name}_cpu"), input.dtype())))
}

fn min_or_max_dim(
    name: &str,
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
    is_max: bool,
) -> Result<()> {
    check(values, &input, &[dim])?;
    check_shape(name, indices.shape(), values.shape())?;
    check_dtype(name, values.dtype(), input.dtype())?;
    check_dtype(name, indices.dtype(), DType::I64)?;
    check_not_empty(name, input.shape(), &[dim])?;
    value_and_index(name, Some(values), indices, &input, &[dim], is_max)
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
    min_or_max_dim("max", values, indices, input, dim, true)
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
    min_or_max_dim("min", values, indices, input, dim, false)
}

fn arg_min_or_max(
    name: &str,
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    is_max: bool,
) -> Result<()> {
    check(out, &input, dims)?;
    check_dtype(name, out.dtype(), DType::I64)?;
    check_not_empty(name, input.shape(), dims)?;
    if input.dtype() == DType::Bool {
        return Err(Error::unsupported(format!("{name}(): does not support bool input")));
    }
    value_and_index(name, None, out, &input, dims, is_max)
}

/// Index of the first largest value over `dims` (one dimension, or all: then of the flattened input).
///
/// # Errors
/// If a reduced dimension has size 0; for bool and complex dtypes.
pub fn argmax(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    arg_min_or_max("argmax", out, input, dims, true)
}

/// Index of the first smallest value over `dims` (one dimension, or all: then of the flattened input).
///
/// # Errors
/// If a reduced dimension has size 0; for bool and complex dtypes.
pub fn argmin(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    arg_min_or_max("argmin", out, input, dims, false)
}

/// Whether any element is true (NaN is); `out` is bool or any other dtype (then 0 or 1). No items give false.
pub fn any(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    into_integer(out, as_bool(&input), dims, &AnyOrAll::<true>, i64::from)
}

/// Whether every element is true (NaN is); `out` is bool or any other dtype (then 0 or 1). No items give true.
pub fn all(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    into_integer(out, as_bool(&input), dims, &AnyOrAll::<false>, i64::from)
}

/// How many elements are not zero.
pub fn count_nonzero(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
) -> Result<()> {
    check(out, &input, dims)?;
    into_integer(out, as_bool(&input), dims, &CountNonzero, |count| count)
}

/// Stores variance (or its root) and, if requested, the mean.
fn variance(
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
    let value = |count: f64, squares: f64| {
        // A correction of the count or more divides by zero: 0/0 is NaN, as for one element.
        let variance = squares / (count - correction).max(0.0);
        if is_std { variance.sqrt() } else { variance }
    };
    let real = |outputs: OutputOffsets, accs: &[VarianceAcc<f64>]| {
        // SAFETY: the engine gives offsets of elements of `out` and `mean`.
        unsafe {
            let value = |m: VarianceAcc<f64>| value(m.count, m.squares);
            store_each_f64(out.ptr(), outputs.of(0), out.dtype(), accs, &value);
            if let Some(mean) = mean {
                let value = |m: VarianceAcc<f64>| if m.count == 0.0 { f64::NAN } else { m.mean };
                store_each_f64(mean.ptr(), outputs.of(1), mean.dtype(), accs, &value);
            }
        }
    };
    match compute_dtype(input.dtype()) {
        DType::F32 => run(&Variance(PhantomData), as_f32(&input), outs, dims, &real),
        DType::F64 => run(&Variance(PhantomData), as_f64(&input), outs, dims, &real),
        _ => run(&ComplexVariance, as_c128(&input), outs, dims, &|outputs, accs| {
            for_each_offset(outputs.of(0), accs, |at, m: VarianceAcc<C128>| {
                // SAFETY: the engine gives offsets of elements of `out`.
                unsafe { store_f64(out.ptr(), at, out.dtype(), value(m.count, m.squares)) }
            });
            let Some(mean) = mean else { return };
            for_each_offset(outputs.of(1), accs, |at, m| {
                let nan = Complex::new(f64::NAN, f64::NAN);
                let value = if m.count == 0.0 { nan } else { m.mean };
                // SAFETY: the engine gives offsets of elements of `mean`.
                unsafe { store_c128(mean.ptr(), at, mean.dtype(), value) }
            });
        }),
    }
}

/// Variance over `dims`: `sum(|x - mean|^2) / max(0, n - correction)`; real output, also for complex input.
pub fn var(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    variance(out, None, input, dims, (correction, false))
}

/// Standard deviation over `dims`: the root of [`var`].
pub fn std(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    variance(out, None, input, dims, (correction, true))
}

/// Variance and mean over `dims`, in one pass.
pub fn var_mean(
    var: &mut StridedMut<'_>,
    mean: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    variance(var, Some(mean), input, dims, (correction, false))
}

/// Standard deviation and mean over `dims`, in one pass.
pub fn std_mean(
    std: &mut StridedMut<'_>,
    mean: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    correction: f64,
) -> Result<()> {
    variance(std, Some(mean), input, dims, (correction, true))
}

/// Refuses a norm without identity over a dimension of size 0.
///
/// # Errors
/// A runtime error in PyTorch's words.
fn check_norm(shape: &[i64], dims: &[usize], p: f64) -> Result<()> {
    let empty = dims.iter().find(|&&dim| shape.get(dim) == Some(&0));
    let has_identity = p >= 0.0 && p != f64::INFINITY;
    let Some(&dim) = empty.filter(|_| !has_identity) else { return Ok(()) };
    let tail = if dims.len() == shape.len() && shape.len() != 1 {
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
    check_norm(input.shape(), dims, p)?;
    let is_double = matches!(input.dtype(), DType::F64 | DType::C128) || out.dtype() == DType::F64;
    if is_double {
        norm_in(out, as_abs_f64(&input), dims, p)
    } else {
        norm_in(out, as_abs_f32(&input), dims, p)
    }
}

fn norm_in<T: FloatSummand>(
    out: &mut StridedMut<'_>,
    source: TypedInput<'_, T>,
    dims: &[usize],
    p: f64,
) -> Result<()> {
    let wide = |acc: T| acc.wide();
    if p == 2.0 {
        into_real(out, source, dims, &SquareSum(PhantomData), |acc: T| acc.wide().sqrt())
    } else if p == 1.0 {
        into_real(out, source, dims, &AbsSum(PhantomData), wide)
    } else if p == 0.0 {
        into_real(out, source, dims, &NonzeroCount(PhantomData), wide)
    } else if p.is_infinite() {
        let order = Order::new(p > 0.0, false).of_magnitudes();
        into_real(out, source, dims, &MinMax(order), |key: T| order.value(key).wide())
    } else {
        into_real(out, source, dims, &AbsPowerSum(T::of(p)), |acc: T| {
            math_f64::pow(acc.wide(), 1.0 / p)
        })
    }
}

/// `log(sum(exp(x)))` over `dims`, without overflow; integers are taken as the floats of `out`. No items give -inf.
pub fn logsumexp(out: &mut StridedMut<'_>, input: StridedRef<'_>, dims: &[usize]) -> Result<()> {
    check(out, &input, dims)?;
    let join = |max: f64, sum: f64| math_f64::log(sum) + if max.is_infinite() { 0.0 } else { max };
    match compute_dtype(out.dtype()) {
        DType::F32 => into_real(
            out,
            as_f32(&input),
            dims,
            &LogSumExp(PhantomData),
            |acc: LogSumExpAcc<f32>| join(f64::from(acc.max), f64::from(acc.sum)),
        ),
        DType::F64 => into_real(
            out,
            as_f64(&input),
            dims,
            &LogSumExp(PhantomData),
            |acc: LogSumExpAcc<f64>| join(acc.max, acc.sum),
        ),
        DType::C64 | DType::C128 => into_complex(
            out,
            as_c128(&input),
            dims,
            &ComplexLogSumExp,
            |acc: ComplexLogSumExpAcc| {
                complex::log(acc.sum) + if acc.max.is_infinite() { 0.0 } else { acc.max }
            },
        ),
        _ => Err(Error::not_implemented("logsumexp", out.dtype())),
    }
}
