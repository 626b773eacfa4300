//! Permutations and draws from discrete distributions.

use super::{Generator, exact_limit};
use crate::line::{LineIter, ViewLayout, along, check_dtype, check_shape, get, put};
use crate::{
    DType, Element, Error, Result, StridedMut, StridedRef, bf16, f16, for_dtype, interrupt, memory,
    sort,
};

/// From here on permutations use 64-bit draws.
const WIDE_COUNT: usize = (u32::MAX / 20) as usize;

/// A random permutation of `0..n`, where `n` is the size of `out` (one-dimensional).
///
/// # Errors
/// If the dtype does not hold all the numbers.
pub fn randperm(out: &mut StridedMut<'_>, generator: &mut Generator) -> Result<()> {
    if out.ndim() != 1 {
        return Err(Error::runtime(format!(
            "randperm: expected a vector but got {:?}",
            out.shape()
        )));
    }
    let (dtype, n) = (out.dtype(), out.numel());
    check_count(dtype, n)?;
    let mut order = memory::collect(0..n as u64)?;
    for i in interrupt::chunks(n.saturating_sub(1)).flatten() {
        let rest = n - i;
        let draw = if n < WIDE_COUNT {
            generator.next_u32() as usize % rest
        } else {
            (generator.next_u64() % rest as u64) as usize
        };
        order.swap(i, i + draw);
    }
    let (_, step) = along(out.shape(), &*out, 0);
    for_dtype!(dtype, all, T => for (i, &value) in order.iter().enumerate() {
        interrupt::check_every::<14>(i);
        // SAFETY: there are as many numbers as elements.
        unsafe { put(out.ptr(), i as isize * step, T::from_i64(value as i64)) };
    });
    Ok(())
}

/// Refuses more numbers than the dtype holds, from 0 on.
///
/// # Errors
/// In PyTorch's words.
pub fn check_count(dtype: DType, n: usize) -> Result<()> {
    if let Some(limit) = exact_limit(dtype) {
        if n as u64 > limit + 1 {
            return Err(Error::runtime(format!(
                "n cannot be greater than {} for {} type.",
                limit + 1,
                dtype.scalar_name()
            )));
        }
        return Ok(());
    }
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(Error::not_implemented("randperm", dtype));
    }
    let bits = dtype.size() as u32 * 8 - u32::from(dtype.is_signed());
    if bits < 63 && n as u64 > 1 << bits {
        return Err(Error::runtime(format!(
            "value cannot be converted to type {}_t without overflow",
            dtype.spelled()
        )));
    }
    Ok(())
}

/// Draws `out.shape()[last]` category numbers per row of `probabilities` (`(classes)` or `(rows, classes)`, not necessarily
/// adding up to one), with or without replacement.
///
/// # Errors
/// If a probability is negative or not finite, a row adds up to zero, or more are drawn without replacement than there are.
pub fn multinomial(
    out: &mut StridedMut<'_>,
    probabilities: StridedRef<'_>,
    replacement: bool,
    generator: &mut Generator,
) -> Result<()> {
    let p = probabilities;
    check_dtype("multinomial", out.dtype(), DType::I64)?;
    if p.ndim() == 0 || p.ndim() > 2 || out.ndim() != p.ndim() {
        return Err(Error::runtime("prob_dist must be 1 or 2 dim".into()));
    }
    let dim = p.ndim() - 1;
    check_shape("multinomial", &out.shape()[..dim], &p.shape()[..dim])?;
    let (classes, draws) = (p.shape()[dim] as usize, out.shape()[dim] as usize);
    if draws == 0 {
        return Err(Error::runtime("cannot sample n_sample <= 0 samples".into()));
    }
    if !replacement && draws > classes {
        return Err(Error::runtime(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement".into(),
        ));
    }
    match p.dtype() {
        DType::F32 => draw_rows::<f32>(out, &p, |v| v, |v| v, replacement, generator),
        DType::F64 => draw_rows::<f64>(out, &p, |v| v, |v| v, replacement, generator),
        DType::F16 => {
            draw_rows::<f32>(out, &p, |v| v, |v| f16::from_f32(v).to_f32(), replacement, generator)
        }
        DType::BF16 => {
            draw_rows::<f32>(out, &p, |v| v, |v| bf16::from_f32(v).to_f32(), replacement, generator)
        }
        _ => Err(Error::runtime(
            "multinomial only supports floating-point dtypes for input, got: ".to_string()
                + &p.dtype().scalar_name().to_string(),
        )),
    }
}

/// Arithmetic of the probabilities.
trait Probability: Element + PartialOrd + std::ops::Div<Output = Self> + std::ops::AddAssign {}
impl Probability for f32 {}
impl Probability for f64 {}

/// Reads all rows, checks them, and draws from each; `round` rounds to the storage dtype.
fn draw_rows<T: Probability>(
    out: &StridedMut<'_>,
    p: &StridedRef<'_>,
    accumulate: impl Fn(T) -> T,
    round: impl Fn(T) -> T,
    replacement: bool,
    generator: &mut Generator,
) -> Result<()> {
    let classes = p.shape()[p.ndim() - 1] as usize;
    let lines = LineIter::new(p.shape(), None, [ViewLayout::from(p)]);
    let mut table = memory::with_capacity::<T>(lines.count())?;
    for_dtype!(p.dtype(), float, S => lines.visit(0..lines.count(), |[at]| {
        // SAFETY: the walk stays inside the view.
        // bounded: there is room.
        table.push(T::from_f64(unsafe { get::<S>(p.ptr(), at) }.to_f64()));
    }), else {});
    if table.iter().any(|v| !(0.0..f64::INFINITY).contains(&v.to_f64())) {
        return Err(Error::runtime(
            "probability tensor contains either `inf`, `nan` or element < 0".into(),
        ));
    }
    let sum = |row: &[T]| row.iter().map(|v| v.to_f64()).sum::<f64>();
    if classes == 0 || table.chunks(classes).any(|row| sum(row) <= 0.0) {
        return Err(Error::runtime(
            "invalid multinomial distribution (sum of probabilities <= 0)".into(),
        ));
    }
    if !replacement || out.shape()[out.ndim() - 1] == 1 {
        return race(out, &mut table, p.shape(), round, generator);
    }
    let (draws, step) = along(out.shape(), out, out.ndim() - 1);
    let targets = LineIter::new(out.shape(), Some(out.ndim() - 1), [ViewLayout::from(out)]);
    let mut rows = table.chunks_mut(classes);
    targets.visit(0..targets.count(), |[to]| {
        let Some(row) = rows.next() else { return };
        let mut total = T::default();
        for (at, v) in row.iter_mut().enumerate() {
            interrupt::check_every::<14>(at);
            total += *v;
            total = accumulate(total);
            *v = total;
        }
        for v in row.iter_mut() {
            *v = *v / total;
        }
        for j in interrupt::chunks(draws).flatten() {
            let j = j as isize;
            let u = generator.next_f64();
            let category = row.partition_point(|v| v.to_f64() < u).min(classes - 1);
            // SAFETY: the walk and the draw stay inside `out`.
            unsafe { put(out.ptr(), to + j * step, category as i64) };
        }
    });
    Ok(())
}

/// Exponential clocks with the probabilities as rates: the first ones to ring are the sample.
fn race<T: Probability>(
    out: &StridedMut<'_>,
    table: &mut [T],
    shape: &[i64],
    round: impl Fn(T) -> T,
    generator: &mut Generator,
) -> Result<()> {
    for (at, v) in table.iter_mut().enumerate() {
        interrupt::check_every::<12>(at);
        let clock = round(T::from_f64(-(-generator.next_f64()).ln_1p()));
        *v = round(*v / clock);
    }
    let strides = crate::index::contiguous_strides(shape);
    let (dim, k) = (shape.len() - 1, out.shape()[shape.len() - 1] as usize);
    // SAFETY: the table holds the shape's elements without gaps and outlives the view.
    let scores = unsafe { StridedRef::new(table.as_ptr().cast(), T::DTYPE, shape, &strides) };
    let mut best = memory::filled(T::default(), out.numel())?;
    let best_strides = crate::index::contiguous_strides(out.shape());
    // SAFETY: as above, for `best`.
    let mut values =
        unsafe { StridedMut::new(best.as_mut_ptr().cast(), T::DTYPE, out.shape(), &best_strides) };
    // SAFETY: the very view that the caller lent exclusively; it is not used otherwise meanwhile.
    let mut indices =
        unsafe { StridedMut::new(out.ptr(), out.dtype(), out.shape(), out.strides()) };
    sort::topk(&mut values, &mut indices, scores, (k, dim), true)
}
