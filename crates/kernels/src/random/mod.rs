//! Random fills, bit for bit PyTorch's CPU streams: the same seed gives the same numbers.
//!
//! A contiguous output is filled in its order; any other in the order of its memory (largest stride
//! outermost), as PyTorch's element loops go. Draws are serial by nature, so nothing here uses threads.
//! `generator` holds the engine, `normal` the vectorised normal numbers, this file the distributions,
//! `sample` permutations and multinomial draws, `rejection` gamma, Poisson and binomial numbers.

mod generator;
mod normal;
mod rejection;
mod sample;

pub use generator::{DEFAULT_SEED, Generator, STATE_SIZE};
pub use rejection::{binomial, dirichlet, poisson, standard_gamma};
pub use sample::{check_count, multinomial, randperm};

use crate::dense::{Real, load};
use crate::line::{LineIter, ViewLayout, check_shape, put};
use crate::spelling::Spelled;
use crate::{
    DType, Element, Error, Result, StridedMut, StridedRef, bf16, f16, for_dtype, interrupt,
};
use smallvec::SmallVec;

/// The walk over a view in the order of its memory.
fn memory_order(out: &StridedMut<'_>) -> LineIter<1> {
    let mut dims: SmallVec<[usize; 6]> = (0..out.ndim()).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(out.strides()[d].unsigned_abs()));
    let shape: SmallVec<[i64; 6]> = dims.iter().map(|&d| out.shape()[d]).collect();
    let strides: SmallVec<[i64; 6]> = dims.iter().map(|&d| out.strides()[d]).collect();
    LineIter::new(&shape, None, [ViewLayout::of(&strides, out.dtype().size())])
}

/// Stores `draw()` at every element, in the order of memory.
fn fill_each<T: Element>(out: &StridedMut<'_>, mut draw: impl FnMut() -> T) {
    if out.is_contiguous() {
        for index in interrupt::chunks(out.numel()).flatten() {
            // SAFETY: inside the view, which is row-major; the caller chose `T` by its dtype.
            unsafe { put(out.ptr(), (index * size_of::<T>()) as isize, draw()) };
        }
        return;
    }
    let lines = memory_order(out);
    lines.visit(0..lines.count(), |[at]| {
        // SAFETY: the walk stays inside the view; the caller chose `T` by its dtype.
        unsafe { put(out.ptr(), at, draw()) };
    });
}

/// Draws that are made at once.
const DRAWS: usize = 256;

/// Stores `make` of a number in `[0, 1)`, as [`Generator::next_f64`] draws it, at every element, in the order of memory.
fn fill_from<T: Element>(
    out: &mut StridedMut<'_>,
    generator: &mut Generator,
    make: impl Fn(f64) -> T,
) {
    let Some(out) = out.as_slice_mut::<T>() else {
        return fill_each(out, || make(generator.next_f64()));
    };
    let mut draws = [0.0; DRAWS];
    for (block, out) in out.chunks_mut(DRAWS).enumerate() {
        interrupt::check_every::<5>(block);
        let draws = &mut draws[..out.len()];
        generator.fill_f64(draws);
        for (out, &draw) in out.iter_mut().zip(&*draws) {
            *out = make(draw);
        }
    }
}

/// Rounds to an element type; to a half by way of single precision, as PyTorch's conversions do.
#[inline(always)]
fn cast<T: Element>(value: f64) -> T {
    let is_half = matches!(T::DTYPE, DType::F16 | DType::BF16);
    T::from_f64(if is_half { f64::from(value as f32) } else { value })
}

/// A complex output seen as real numbers: one more dimension of two parts.
fn with_real_view<R>(
    out: &mut StridedMut<'_>,
    body: impl FnOnce(&mut StridedMut<'_>) -> Result<R>,
) -> Result<R> {
    if !out.dtype().is_complex() {
        return body(out);
    }
    let mut shape: SmallVec<[i64; 6]> = SmallVec::from_slice(out.shape());
    let mut strides: SmallVec<[i64; 6]> = out.strides().iter().map(|s| 2 * s).collect();
    shape.push(2);
    strides.push(1);
    // SAFETY: a complex number is two reals in memory; the view reaches exactly those.
    let mut view = unsafe { StridedMut::new(out.ptr(), out.dtype().to_real(), &shape, &strides) };
    body(&mut view)
}

crate::multiversion! {
fn scale_f32(data: &mut [f32], from: f32, range: f32) {
    for u in data {
        *u = u.mul_add(range, from);
    }
}
}

crate::multiversion! {
fn scale_f64(data: &mut [f64], from: f64, range: f64) {
    for u in data {
        *u = u.mul_add(range, from);
    }
}
}

/// Uniform numbers in `[0, 1)`; the parts of complex ones are both uniform.
///
/// # Errors
/// For integers and bool.
pub fn rand(out: &mut StridedMut<'_>, generator: &mut Generator) -> Result<()> {
    uniform(out, 0.0, 1.0, generator)
}

/// Uniform numbers in `[from, to)`: `u * (to - from) + from`, in the dtype.
///
/// # Errors
/// If `from > to`; for integers and bool.
pub fn uniform(
    out: &mut StridedMut<'_>,
    from: f64,
    to: f64,
    generator: &mut Generator,
) -> Result<()> {
    if !out.dtype().is_differentiable() || out.dtype().is_narrow_float() {
        return Err(Error::not_implemented("check_uniform_bounds", out.dtype()));
    }
    if from > to {
        return Err(Error::runtime(format!(
            "uniform_ expects to return a [from, to) range, but found from={from} > to={to}"
        )));
    }
    with_real_view(out, |out| {
        match out.dtype() {
            DType::F64 => uniform_f64(out, from, to, generator),
            DType::F32 => uniform_f32(out, from as f32, to as f32, generator),
            DType::F16 => {
                let (low, high) = (f16::from_f64(from), f16::from_f64(to));
                let (a, b) = (low.to_f32(), high.to_f32());
                fill_each(out, || {
                    let value = f16::from_f32(generator.next_f32().mul_add(b - a, a));
                    if value == high { low } else { value }
                });
            }
            _ => {
                let (low, high) = (bf16::from_f64(from), bf16::from_f64(to));
                let (a, b) = (low.to_f32(), high.to_f32());
                fill_each(out, || {
                    let value = bf16::from_f32(generator.next_f32().mul_add(b - a, a));
                    if value == high { low } else { value }
                });
            }
        }
        Ok(())
    })
}

fn uniform_f32(out: &mut StridedMut<'_>, from: f32, to: f32, generator: &mut Generator) {
    if let Some(data) = out.as_slice_mut::<f32>() {
        // In parts, so that the second step finds the numbers in cache.
        for part in data.chunks_mut(4096) {
            interrupt::check();
            generator.fill_f32(part);
            if (from, to) != (0.0, 1.0) {
                scale_f32(part, from, to - from);
            }
        }
        return;
    }
    fill_each(out, || generator.next_f32().mul_add(to - from, from));
}

fn uniform_f64(out: &mut StridedMut<'_>, from: f64, to: f64, generator: &mut Generator) {
    if let Some(data) = out.as_slice_mut::<f64>() {
        for part in data.chunks_mut(2048) {
            interrupt::check();
            generator.fill_f64(part);
            if (from, to) != (0.0, 1.0) {
                scale_f64(part, from, to - from);
            }
        }
        return;
    }
    fill_each(out, || generator.next_f64().mul_add(to - from, from));
}

/// Standard normal numbers; complex ones have variance 1 (each part 1/2).
///
/// # Errors
/// For integers and bool.
pub fn randn(out: &mut StridedMut<'_>, generator: &mut Generator) -> Result<()> {
    normal(out, 0.0, 1.0, generator)
}

/// Normal numbers with mean `mean` and standard deviation `std`; complex ones have parts of `std / sqrt(2)`.
///
/// # Errors
/// If `std` is negative; for integers and bool.
pub fn normal(
    out: &mut StridedMut<'_>,
    mean: f64,
    std: f64,
    generator: &mut Generator,
) -> Result<()> {
    // A negated comparison would let NaN pass, as PyTorch does not.
    if std.is_nan() || std < 0.0 {
        return Err(Error::runtime(format!("normal expects std >= 0.0, but found std {std}")));
    }
    if !out.dtype().is_differentiable() || out.dtype().is_narrow_float() {
        return Err(Error::not_implemented("normal_kernel_cpu", out.dtype()));
    }
    let std = if out.dtype().is_complex() { std / std::f64::consts::SQRT_2 } else { std };
    with_real_view(out, |out| {
        let is_blocked = out.numel() >= 16 && out.is_contiguous();
        match out.dtype() {
            DType::F32 if is_blocked => {
                if let Some(data) = out.as_slice_mut() {
                    normal_f32(data, mean as f32, std as f32, generator);
                }
            }
            DType::F64 if is_blocked => {
                if let Some(data) = out.as_slice_mut() {
                    normal_f64(data, mean, std, generator);
                }
            }
            DType::F16 if is_blocked => {
                if let Some(data) = out.as_slice_mut() {
                    normal_half(data, (mean, std), f16::from_f32, generator);
                }
            }
            DType::BF16 if is_blocked => {
                if let Some(data) = out.as_slice_mut() {
                    normal_half(data, (mean, std), bf16::from_f32, generator);
                }
            }
            dtype => for_dtype!(dtype, float, T => {
                fill_each(out, || cast::<T>(generator.next_normal().mul_add(std, mean)));
            }, else {}),
        }
        Ok(())
    })
}

/// All uniforms first, blocks of 16 after; the last 16 are drawn anew if the blocks do not fill the whole.
fn normal_f32(data: &mut [f32], mean: f32, std: f32, generator: &mut Generator) {
    let whole = data.len() / 16 * 16;
    for part in data[..whole].chunks_mut(4096) {
        interrupt::check();
        generator.fill_f32(part);
        normal::blocks_f32(part, mean, std);
    }
    if whole < data.len() {
        // The rest is drawn as well, though replaced: the stream has moved on by it.
        generator.fill_f32(&mut data[whole..]);
        let start = data.len() - 16;
        generator.fill_f32(&mut data[start..]);
        normal::blocks_f32(&mut data[start..], mean, std);
    }
}

fn normal_f64(data: &mut [f64], mean: f64, std: f64, generator: &mut Generator) {
    let whole = data.len() / 16 * 16;
    for part in data[..whole].chunks_mut(2048) {
        interrupt::check();
        generator.fill_f64(part);
        normal::blocks_f64(part, mean, std);
    }
    if whole < data.len() {
        generator.fill_f64(&mut data[whole..]);
        let start = data.len() - 16;
        generator.fill_f64(&mut data[start..]);
        normal::blocks_f64(&mut data[start..], mean, std);
    }
}

/// Normal numbers for the half types, which draw block by block and compute in single precision.
fn normal_half<T: Copy>(
    data: &mut [T],
    (mean, std): (f64, f64),
    round: impl Fn(f32) -> T,
    generator: &mut Generator,
) {
    let (mean, std) = (mean as f32, std as f32);
    let mut block = [0.0; 16];
    let mut count = 0_usize;
    let mut fill = |slots: &mut [T]| {
        interrupt::check_every::<9>(count);
        count += 1;
        generator.fill_f32(&mut block);
        normal::blocks_f32(&mut block, mean, std);
        for (slot, &value) in slots.iter_mut().zip(&block) {
            *slot = round(value);
        }
    };
    let mut chunks = data.chunks_exact_mut(16);
    chunks.by_ref().for_each(&mut fill);
    if !chunks.into_remainder().is_empty() {
        let start = data.len() - 16;
        fill(&mut data[start..]);
    }
}

/// The largest integer up to which a floating-point type represents all integers.
fn exact_limit(dtype: DType) -> Option<u64> {
    match dtype {
        DType::F16 => Some(1 << 11),
        DType::BF16 => Some(1 << 8),
        DType::F32 => Some(1 << 24),
        DType::F64 => Some(1 << 53),
        _ => None,
    }
}

/// Whole numbers from 0 to the largest of the dtype (for floats: as far as they count without gaps).
///
/// # Errors
/// For unsigned types of more than 8 bits and complex ones.
pub fn random(out: &mut StridedMut<'_>, generator: &mut Generator) -> Result<()> {
    let dtype = out.dtype();
    if matches!(dtype, DType::U16 | DType::U32 | DType::U64) || dtype.is_complex() {
        return Err(Error::not_implemented("random_kernel_cpu", dtype));
    }
    let out = &*out;
    if let Some(limit) = exact_limit(dtype) {
        for_dtype!(dtype, float, T => fill_each(out, || {
            let draw = if dtype == DType::F64 { generator.next_u64() } else { u64::from(generator.next_u32()) };
            T::from_i64((draw % (limit + 1)) as i64)
        }), else {});
        return Ok(());
    }
    for_dtype!(dtype, all, T => match dtype {
        DType::I64 => fill_each(out, || T::from_i64((generator.next_u64() & (i64::MAX as u64)) as i64)),
        DType::Bool => fill_each(out, || T::from_i64(i64::from(generator.next_u32() & 1))),
        _ => {
            let bits = dtype.size() as u32 * 8 - u32::from(dtype.is_signed());
            let mask = ((1_u64 << bits) - 1) as u32;
            fill_each(out, || T::from_i64(i64::from(generator.next_u32() & mask)));
        }
    });
    Ok(())
}

/// Ranges from here on use 64-bit draws.
const WIDE_RANGE: u64 = 1 << 28;

/// Whole numbers in `[low, high)`; `high` of `None` means up to and including the largest `i64`, or `u64` where that is
/// the dtype.
///
/// # Errors
/// If the range is empty, or exceeds the dtype.
pub fn randint(
    out: &mut StridedMut<'_>,
    low: i64,
    high: Option<i64>,
    generator: &mut Generator,
) -> Result<()> {
    let dtype = out.dtype();
    if dtype.is_complex() {
        return Err(Error::not_implemented("random_from_to_kernel_cpu", dtype));
    }
    if let Some(high) = high.filter(|&high| low >= high) {
        return Err(Error::runtime(format!(
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )));
    }
    check_range(dtype, low, high)?;
    let range = high.map(|high| high.wrapping_sub(low) as u64);
    let out = &*out;
    for_dtype!(dtype, all, T => match range {
        Some(range) if range < WIDE_RANGE => {
            let range = range as u32;
            fill_each(out, || T::from_i64(low.wrapping_add(i64::from(generator.next_u32() % range))));
        }
        Some(range) => fill_each(out, || T::from_i64(low.wrapping_add((generator.next_u64() % range) as i64))),
        None => {
            let last = if dtype == DType::U64 { u64::MAX } else { i64::MAX as u64 };
            let range = last.wrapping_sub(low as u64).wrapping_add(1);
            if range == 0 {
                // The range is all 64 bits.
                fill_each(out, || T::from_i64(generator.next_u64() as i64));
                return Ok(());
            }
            fill_each(out, || T::from_i64(low.wrapping_add((generator.next_u64() % range) as i64)));
        }
    });
    Ok(())
}

/// Refuses bounds that the dtype does not hold.
fn check_range(dtype: DType, low: i64, high: Option<i64>) -> Result<()> {
    let bits = dtype.size() as u32 * 8;
    let (least, most) = match dtype {
        DType::Bool => (0, 1),
        DType::I64 => return Ok(()),
        DType::U64 => (0, i64::MAX),
        // Floats beyond their exact range only lose precision, which PyTorch warns about.
        dtype if dtype.is_floating_point() => return Ok(()),
        dtype if dtype.is_signed() => (-(1_i64 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1_i64 << bits) - 1),
    };
    let name = match dtype {
        DType::Bool => "bool",
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::U16 => "short unsigned int",
        DType::U32 => "unsigned int",
        DType::U64 => "long unsigned int",
        _ => "int",
    };
    for (what, value) in [("from", Some(low)), ("to - 1", high.map(|h| h - 1))] {
        if value.is_some_and(|v| v < least || v > most) {
            return Err(Error::runtime(format!("{what} is out of bounds for {name}")));
        }
    }
    Ok(())
}

/// Ones with probability `p`, else zeros; any dtype.
///
/// # Errors
/// If `p` is not in `[0, 1]`.
pub fn bernoulli(out: &mut StridedMut<'_>, p: f64, generator: &mut Generator) -> Result<()> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")));
    }
    for_dtype!(out.dtype(), all, T => {
        let [zero, one] = [0, 1].map(T::from_i64);
        fill_from(out, generator, |draw| if draw < p { one } else { zero });
    });
    Ok(())
}

/// Ones with the probabilities of `p` (equal shape, floating-point), else zeros, in row-major order.
///
/// # Errors
/// If a probability is not in `[0, 1]`; if `p` is not floating-point.
pub fn bernoulli_tensor(
    out: &mut StridedMut<'_>,
    p: StridedRef<'_>,
    generator: &mut Generator,
) -> Result<()> {
    check_shape("bernoulli", out.shape(), p.shape())?;
    if !p.dtype().is_floating_point() {
        return Err(Error::not_implemented("bernoulli_tensor_cpu_p_", p.dtype()));
    }
    if p.dtype() == DType::F64 {
        draw_below::<f64>(out, p, |draws| generator.fill_f64(draws))
    } else {
        draw_below::<f32>(out, p, |draws| generator.fill_f32(draws))
    }
}

/// Ones where what `fill` draws is below the probability, else zeros; nothing is drawn if there are other numbers than
/// probabilities.
fn draw_below<T: Real>(
    out: &mut StridedMut<'_>,
    p: StridedRef<'_>,
    mut fill: impl FnMut(&mut [T]),
) -> Result<()> {
    let mut p = load::<T>(p)?;
    if p.as_ptr().cast() == out.ptr().cast_const() {
        p = crate::dense::owned(p)?.into();
    }
    if !are_probabilities(&p) {
        return Err(Error::runtime("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)".into()));
    }
    let mut draws = [T::ZERO; DRAWS];
    for_dtype!(out.dtype(), all, D => {
        let [zero, one] = [0, 1].map(D::from_i64);
        if let Some(out) = out.as_slice_mut::<D>() {
            for (out, p) in out.chunks_mut(DRAWS).zip(p.chunks(DRAWS)) {
                let draws = &mut draws[..out.len()];
                fill(draws);
                for ((out, draw), p) in out.iter_mut().zip(&*draws).zip(p) {
                    *out = if draw < p { one } else { zero };
                }
            }
            return Ok(());
        }
        let lines = LineIter::new(out.shape(), None, [ViewLayout::from(&*out)]);
        let mut left = p.iter();
        lines.visit(0..lines.count(), |[to]| {
            let Some(p) = left.next() else { return };
            fill(&mut draws[..1]);
            // SAFETY: the walk stays inside the view.
            unsafe { put(out.ptr(), to, if draws[0] < *p { one } else { zero }) };
        });
    });
    Ok(())
}

crate::multiversion! {
fn are_probabilities<T: Real>(p: &[T]) -> bool {
    let mut are = true;
    for &p in p {
        are &= (p >= T::ZERO) & (p <= T::ONE);
    }
    are
}
}

/// The name by which PyTorch's messages call the C++ type of a dtype.
fn cpp_name(dtype: DType) -> Spelled<&'static str, DType> {
    let pytorch = match dtype {
        DType::Bool => "bool",
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::I64 => "long int",
        DType::C32 => "c10::complex<c10::Half>",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
        _ => "unsigned int",
    };
    Spelled::new(pytorch, dtype)
}

/// Exponential numbers with rate `lambda`: `-log1p(-u) / lambda`.
///
/// # Errors
/// If `lambda` is not positive; unless the dtype is floating-point.
pub fn exponential(out: &mut StridedMut<'_>, lambda: f64, generator: &mut Generator) -> Result<()> {
    if lambda.is_nan() || lambda <= 0.0 {
        return Err(Error::runtime(format!(
            "exponential_ expects lambda > 0.0, but found lambda={lambda}"
        )));
    }
    for_dtype!(out.dtype(), float, T => {
        fill_from(out, generator, |draw| cast::<T>(-1.0 / lambda * (-draw).ln_1p()));
    }, else return Err(Error::runtime(format!(
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {}",
        out.dtype().scalar_name()
    ))));
    Ok(())
}

/// Cauchy numbers: `median + sigma * tan(pi * (u - 1/2))`.
///
/// # Errors
/// If `sigma` is not positive; unless the dtype is floating-point.
pub fn cauchy(
    out: &mut StridedMut<'_>,
    median: f64,
    sigma: f64,
    generator: &mut Generator,
) -> Result<()> {
    if sigma.is_nan() || sigma <= 0.0 {
        return Err(Error::runtime(format!(
            "cauchy_ expects sigma > 0.0, but found sigma={sigma}"
        )));
    }
    for_dtype!(out.dtype(), float, T => fill_from(out, generator, |draw| {
        cast::<T>(median + sigma * (std::f64::consts::PI * (draw - 0.5)).tan())
    }), else return Err(Error::runtime(format!(
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified {}",
        cpp_name(out.dtype())
    ))));
    Ok(())
}

/// Number of trials up to the first success with probability `p`: `ceil(log(u) / log1p(-p))`.
///
/// # Errors
/// If `p` is not in `(0, 1)`; for bool and complex dtypes.
pub fn geometric(out: &mut StridedMut<'_>, p: f64, generator: &mut Generator) -> Result<()> {
    if p.is_nan() || p <= 0.0 || p >= 1.0 {
        return Err(Error::runtime(format!("geometric_ expects p to be in (0, 1), but got p={p}")));
    }
    for_dtype!(out.dtype(), real, T => fill_from(out, generator, |draw| {
        cast::<T>((draw.ln() / (-p).ln_1p()).ceil())
    }), else return Err(Error::not_implemented("geometric_cpu", out.dtype())));
    Ok(())
}

/// Exponentials of normal numbers: `exp(normal * std + mean)`.
///
/// # Errors
/// If `std` is not positive; unless the dtype is floating-point.
pub fn log_normal(
    out: &mut StridedMut<'_>,
    mean: f64,
    std: f64,
    generator: &mut Generator,
) -> Result<()> {
    if std.is_nan() || std <= 0.0 {
        return Err(Error::runtime(format!("log_normal_ expects std > 0.0, but found std={std}")));
    }
    let out = &*out;
    for_dtype!(out.dtype(), float, T => fill_each(out, || {
        cast::<T>(generator.next_normal().mul_add(std, mean).exp())
    }), else return Err(Error::not_implemented("log_normal_cpu", out.dtype())));
    Ok(())
}
