//! Transforms of arrays: one pass over all lines for each dimension.
//!
//! The first pass goes from the source to the target, the others read and write the target in place. All passes are prepared,
//! with the memory that they need, before the first writes.

use crate::lines::{Lines, Side};
use crate::pass::{ComplexPass, FromRealPass, ToRealPass};
use crate::plan::FftReal;
use num_complex::Complex;
use pullback_kernels::{DType, Error, Result, StridedMut, StridedRef, memory};
use smallvec::SmallVec;

/// `out = scale * F(input)` along `dims`, which are different from each other: complex numbers of one dtype, `C64` or `C128`, and
/// equal shapes. `forward` says whether with `exp(-2 pi i j k / n)` or with its conjugate. `out` may not overlap `input`.
///
/// # Errors
/// `NotImplementedError` for other dtypes; `RuntimeError` if shapes or dtypes do not match; out of memory.
pub fn complex_to_complex(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    forward: bool,
    scale: f64,
) -> Result<()> {
    check_shapes(out, input, dims, |_, size| size)?;
    if out.numel() == 0 {
        return Ok(());
    }
    match (input.dtype(), out.dtype()) {
        (DType::C64, DType::C64) => complex::<f32>(out, input, dims, forward, scale),
        (DType::C128, DType::C128) => complex::<f64>(out, input, dims, forward, scale),
        (dtype, _) => Err(Error::not_implemented("fft_c2c", dtype)),
    }
}

/// The forward transform of real numbers along `dims`, of which the last is the one whose spectrum is halved: `out` has
/// `n / 2 + 1` numbers there. If it has `n`, all of the spectrum is computed.
///
/// # Errors
/// As [`complex_to_complex`], for `F32` to `C64` and `F64` to `C128`.
pub fn real_to_complex(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    scale: f64,
) -> Result<()> {
    let Some(&last) = dims.last() else { return Err(no_dimension()) };
    let is_whole = out.shape().get(last) == input.shape().get(last);
    let wanted = |dim: usize, size: i64| if dim == last && !is_whole { size / 2 + 1 } else { size };
    check_shapes(out, input, dims, wanted)?;
    let split = (last, &others(out.shape(), dims)[..]);
    if out.numel() == 0 {
        return Ok(());
    }
    match (input.dtype(), out.dtype()) {
        (DType::F32, DType::C64) => from_real::<f32>(out, input, split, is_whole, scale),
        (DType::F64, DType::C128) => from_real::<f64>(out, input, split, is_whole, scale),
        (dtype, _) => Err(Error::not_implemented("fft_r2c", dtype)),
    }
}

/// The inverse transform along `dims` to real numbers, of a spectrum of which the last of `dims` holds the first half: its `n / 2 + 1`
/// numbers give the `n` that `out` has there.
///
/// # Errors
/// As [`complex_to_complex`], for `C64` to `F32` and `C128` to `F64`.
pub fn complex_to_real(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    scale: f64,
) -> Result<()> {
    let Some(&last) = dims.last() else { return Err(no_dimension()) };
    let n = out.shape().get(last).copied().unwrap_or(0);
    check_shapes(
        out,
        input,
        dims,
        |dim, size| {
            if dim == last && size == n / 2 + 1 { n } else { size }
        },
    )?;
    let split = (last, &others(out.shape(), dims)[..]);
    if out.numel() == 0 {
        return Ok(());
    }
    match (input.dtype(), out.dtype()) {
        (DType::C64, DType::F32) => to_real::<f32>(out, input, split, scale),
        (DType::C128, DType::F64) => to_real::<f64>(out, input, split, scale),
        (dtype, _) => Err(Error::not_implemented("fft_c2r", dtype)),
    }
}

#[cold]
fn no_dimension() -> Error {
    Error::runtime("a transform of real numbers needs a dimension".into())
}

/// Refuses shapes that do not belong together. `wanted` gives the size of the output from that of the input.
fn check_shapes(
    out: &StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    wanted: impl Fn(usize, i64) -> i64,
) -> Result<()> {
    let (from, to) = (input.shape(), out.shape());
    let fits = from.len() == to.len()
        && dims.iter().all(|&dim| dim < to.len() && to[dim] > 0)
        && from.iter().enumerate().all(|(dim, &size)| to[dim] == wanted(dim, size));
    if fits {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "a transform along {dims:?} of shape {from:?} does not give shape {to:?}"
    )))
}

fn complex<T: FftReal>(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    forward: bool,
    scale: f64,
) -> Result<()> {
    let steps =
        SplitSteps::new(out.shape(), input.strides(), out.strides(), dims, (forward, scale))?;
    // SAFETY: the views promise their memory, whose shapes were checked; they are apart, as the caller says.
    unsafe { steps.run(input.ptr().cast::<Complex<T>>(), out.ptr().cast()) }
}

/// The passes of a complex transform, the innermost dimension first; dimensions of one number are left out.
struct SplitSteps<T: FftReal>(SmallVec<[ComplexPass<T>; 2]>);

impl<T: FftReal> SplitSteps<T> {
    fn new(
        shape: &[i64],
        source: &[i64],
        target: &[i64],
        dims: &[usize],
        (forward, scale): (bool, f64),
    ) -> Result<Self> {
        let mut order: SmallVec<[usize; 6]> =
            dims.iter().copied().filter(|&d| shape[d] > 1).collect();
        // bounded: by the rank.
        order.sort_by_key(|&d| target[d].unsigned_abs());
        if order.is_empty() {
            // (The only transform left copies.)
            order.extend(dims.first().copied());
        }
        let mut passes = SmallVec::new();
        for (nr, &dim) in order.iter().enumerate() {
            let scale = if nr + 1 == order.len() { scale } else { 1.0 };
            let from = if nr == 0 { source } else { target };
            let n = shape[dim] as usize;
            let lines = Lines::new(shape, dim, Side { strides: from }, Side { strides: target }, n);
            passes.push(ComplexPass::new(lines, n, forward, scale)?);
        }
        Ok(SplitSteps(passes))
    }

    /// # Safety
    /// What the shape and the strides reach from `source` and `target` is live memory; nobody else uses that of the target, which is
    /// the source or apart from it.
    unsafe fn run(&self, source: *const Complex<T>, target: *mut Complex<T>) -> Result<()> {
        let mut from = source;
        for pass in &self.0 {
            // SAFETY: as the caller promised; later passes read what they write.
            unsafe { pass.run(from, target)? };
            from = target.cast_const();
        }
        Ok(())
    }
}

/// The dimensions except the last one, without those of one number.
fn others(shape: &[i64], dims: &[usize]) -> SmallVec<[usize; 6]> {
    let others = dims.split_last().map_or(dims, |(_, others)| others);
    others.iter().copied().filter(|&d| shape[d] > 1).collect()
}

fn from_real<T: FftReal>(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    (last, others): (usize, &[usize]),
    is_whole: bool,
    scale: f64,
) -> Result<()> {
    let n = input.shape()[last] as usize;
    let sides = (Side { strides: input.strides() }, Side { strides: out.strides() });
    let lines = Lines::new(out.shape(), last, sides.0, sides.1, n);
    let first = FromRealPass::new(lines, n, is_whole)?;
    let first_scale = if others.is_empty() { scale } else { 1.0 };
    let steps = (!others.is_empty())
        .then(|| {
            SplitSteps::<T>::new(out.shape(), out.strides(), out.strides(), others, (true, scale))
        })
        .transpose()?;
    let target = out.ptr().cast::<Complex<T>>();
    // SAFETY: the views promise their memory, whose shapes were checked; they are apart, as the caller says.
    unsafe {
        first.run(input.ptr().cast::<T>(), target, first_scale)?;
        steps.map_or(Ok(()), |steps| steps.run(target.cast_const(), target))
    }
}

fn to_real<T: FftReal>(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    (last, others): (usize, &[usize]),
    scale: f64,
) -> Result<()> {
    let n = out.shape()[last] as usize;
    let strides = row_major(input.shape());
    // The results of the other dimensions are complex, for which the output has no room.
    let mut between = Vec::new();
    let mut steps = None;
    if !others.is_empty() {
        let last_scale = (false, 1.0);
        steps = Some(SplitSteps::<T>::new(
            input.shape(),
            input.strides(),
            &strides,
            others,
            last_scale,
        )?);
        between = memory::filled(Complex::new(T::zero(), T::zero()), input.numel())?;
    }
    let from = if others.is_empty() { input.strides() } else { &strides[..] };
    let sides = (Side { strides: from }, Side { strides: out.strides() });
    let lines = Lines::new(out.shape(), last, sides.0, sides.1, n);
    let pass = ToRealPass::new(lines, n)?;
    let mut source = input.ptr().cast::<Complex<T>>();
    // SAFETY: as in `from_real`; the list is as large as the input.
    unsafe {
        if let Some(steps) = steps {
            steps.run(source, between.as_mut_ptr())?;
            source = between.as_ptr();
        }
        pass.run(source, out.ptr().cast::<T>(), scale)
    }
}

/// Strides of a row-major array.
fn row_major(shape: &[i64]) -> SmallVec<[i64; 6]> {
    let mut strides = SmallVec::from_elem(1, shape.len());
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim].max(1);
    }
    strides
}
