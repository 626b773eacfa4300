//! Resizing of images of one to three dimensions, and the gradients: nearest, linear and cubic interpolation, and filters as
//! wide as a new element (antialiasing).
//!
//! Resizing is separable: along each dimension a new element is a sum of old ones with weights (`axis`), so that the gradient
//! is the same computation with the transposed weights. A line of the result is made of all lines of the input that have a
//! weight in it, added up, and then of the columns of that sum. Bytes are resized in whole numbers (`bytes`). Each line
//! is written by one thread, and its sums have a fixed order: the results do not depend on the number of threads.

mod axis;
mod bytes;

use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::{DType, Error, Result, StridedMut, StridedRef, memory, parallel};
use axis::AxisWeights;
use smallvec::SmallVec;

/// How a new element is made of old ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpsampleMode {
    /// The element in which the new one begins.
    Nearest,
    /// The element in which the new one has its centre.
    NearestExact,
    /// The two elements around, by their distance.
    Linear,
    /// The four elements around, by Keys' weights with the parameter -0.75.
    Cubic,
    /// The elements under a triangle as wide as a new element.
    LinearAntialias,
    /// The elements under Keys' weights with the parameter -0.5, stretched to the width of a new element.
    CubicAntialias,
    /// The elements under Lanczos' window of three lobes, stretched to the width of a new element.
    LanczosAntialias,
}

impl UpsampleMode {
    /// The key word of PyTorch's refusal of a dtype.
    fn word(self) -> &'static str {
        match self {
            UpsampleMode::Nearest | UpsampleMode::NearestExact => "compute_indices_weights_nearest",
            UpsampleMode::Linear => "compute_indices_weights_linear",
            UpsampleMode::Cubic => "compute_indices_weights_cubic",
            _ => "compute_index_ranges_weights",
        }
    }
    fn is_nearest(self) -> bool {
        matches!(self, UpsampleMode::Nearest | UpsampleMode::NearestExact)
    }
    /// Whether each new element is a mean over a neighbourhood as large as it is itself.
    pub fn is_antialias(self) -> bool {
        use UpsampleMode::{CubicAntialias, LanczosAntialias, LinearAntialias};
        matches!(self, LinearAntialias | CubicAntialias | LanczosAntialias)
    }
}

/// The options of [`upsample`].
#[derive(Clone, PartialEq, Debug)]
pub struct UpsampleOptions {
    /// How a new element is made of old ones.
    pub mode: UpsampleMode,
    /// Whether the centres of the outermost elements coincide, rather than their outer edges.
    pub align_corners: bool,
    /// By what factor each dimension is larger, if that is not to be taken from the sizes;
    /// outermost first.
    pub factors: SmallVec<[Option<f64>; 3]>,
}

/// Elements of sums that are worth a thread of their own.
const GRAIN: usize = 1 << 15;

/// Refuses dtypes that PyTorch has no kernel for.
///
/// # Errors
/// `NotImplementedError` for complex, bool and integer dtypes, but for bytes of nearest elements and of images by linear or cubic
/// weights, and for halves by antialiasing.
pub fn check_upsample(mode: UpsampleMode, rank: usize, dtype: DType) -> Result<()> {
    let takes = match dtype {
        DType::F32 | DType::F64 => true,
        DType::F16 | DType::BF16 => !mode.is_antialias(),
        DType::U8 => mode.is_nearest() || rank == 2,
        _ => false,
    };
    if takes { Ok(()) } else { Err(Error::not_implemented(mode.word(), dtype)) }
}

/// The lines of all planes, and the weights of each dimension.
struct UpsamplePlan<T> {
    planes: usize,
    from: [usize; 3],
    to: [usize; 3],
    axes: [AxisWeights<T>; 3],
}

/// Up to three sizes with ones in front, of the last dimensions but two.
fn spatial(shape: &[i64]) -> [usize; 3] {
    let mut all = [1; 3];
    let sizes = shape.get(2..).unwrap_or_default();
    for (to, &from) in all[3 - sizes.len().min(3)..].iter_mut().zip(sizes) {
        *to = from as usize;
    }
    all
}

/// Refuses shapes other than (N, C, *old) and (N, C, *new), and old images without elements.
fn check_shapes(out: &[i64], x: &[i64], options: &UpsampleOptions) -> Result<()> {
    let rank = options.factors.len();
    let fits = (1..=3).contains(&rank)
        && x.len() == rank + 2
        && out.len() == rank + 2
        && out[..2] == x[..2]
        && !x[2..].contains(&0);
    if fits {
        return Ok(());
    }
    Err(Error::runtime(format!("cannot resize images of shape {x:?} to {out:?}")))
}

/// The weights of each dimension, outermost first.
fn axes<T: Real>(
    from: [usize; 3],
    to: [usize; 3],
    options: &UpsampleOptions,
) -> Result<[AxisWeights<T>; 3]> {
    let missing = 3 - options.factors.len();
    let axis = |dim: usize| {
        if dim < missing {
            return AxisWeights::identity();
        }
        AxisWeights::new(from[dim], to[dim], options, options.factors[dim - missing])
    };
    Ok([axis(0)?, axis(1)?, axis(2)?])
}

/// Images `x` (N, C, *old) resized to `out` (N, C, *new).
///
/// # Errors
/// Shapes that do not fit, or a dtype that [`check_upsample`] refuses.
pub fn upsample(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    options: &UpsampleOptions,
) -> Result<()> {
    check_shapes(out.shape(), x.shape(), options)?;
    check_upsample(options.mode, options.factors.len(), x.dtype())?;
    if out.numel() == 0 {
        return Ok(());
    }
    if x.dtype() == DType::U8 && !options.mode.is_nearest() {
        return bytes::upsample(out, x, options);
    }
    let (from, to) = (spatial(x.shape()), spatial(out.shape()));
    let planes = (x.shape()[0] * x.shape()[1]) as usize;
    // Bytes are exact in single precision.
    let dtype = if x.dtype() == DType::U8 { DType::F32 } else { x.dtype() };
    for_compute!(dtype, options.mode.word(), T => {
        let axes = axes::<T>(from, to, options)?;
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| run(out, &x, &UpsamplePlan { planes, from, to, axes }))
    })
}

/// The gradient of [`upsample`]: `grad` (N, C, *new) to `grad_x` (N, C, *old).
///
/// # Errors
/// Shapes that do not fit, or a dtype that is not floating.
pub fn upsample_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    options: &UpsampleOptions,
) -> Result<()> {
    check_shapes(grad.shape(), grad_x.shape(), options)?;
    if grad_x.numel() == 0 {
        return Ok(());
    }
    expect_shape("the gradient", &grad.shape()[..2], &grad_x.shape()[..2])?;
    let (from, to) = (spatial(grad_x.shape()), spatial(grad.shape()));
    let planes = (grad.shape()[0] * grad.shape()[1]) as usize;
    for_compute!(grad.dtype(), "upsample_backward", T => {
        let [d, h, w] = axes::<T>(from, to, options)?;
        let axes = [d.transposed()?, h.transposed()?, w.transposed()?];
        let grad = load::<T>(grad)?;
        let plan = UpsamplePlan { planes, from: to, to: from, axes };
        with_output::<T, _>(grad_x, |out| run(out, &grad, &plan))
    })
}

/// Writes every line of every plane.
fn run<T: Real>(out: &mut [T], x: &[T], plan: &UpsamplePlan<T>) -> Result<()> {
    let UpsamplePlan { planes, from, to, axes } = plan;
    let (rows, width) = (to[0] * to[1], to[2]);
    let lines = axes[0].mean_count() * axes[1].mean_count();
    let work = lines * from[2] + axes[2].mean_count() * width;
    let (out, plane) = (SharedMut::new(out), from[0] * from[1] * from[2]);
    parallel::try_for_restartable_range(planes * rows, (GRAIN / work.max(1)).max(1), &|range| {
        let mut sum = memory::filled(T::ZERO, from[2])?;
        for at in range {
            let row = at % rows;
            let x = &x[at / rows * plane..][..plane];
            // SAFETY: one task per line.
            let out = unsafe { out.slice(at * width..(at + 1) * width) };
            let line = blended(&mut sum, x, from, [&axes[0], &axes[1]], [row / to[1], row % to[1]]);
            gather(out, line, &axes[2]);
        }
        Ok(())
    })
}

/// The sum of the lines of a plane that have a weight in line `at` of the result: in `sum`, or the line itself if it is one of weight 1.
fn blended<'a, T: Real>(
    sum: &'a mut [T],
    plane: &'a [T],
    from: &[usize; 3],
    [depths, rows]: [&AxisWeights<T>; 2],
    at: [usize; 2],
) -> &'a [T] {
    let width = from[2];
    let line = |d: usize, h: usize| &plane[(d * from[1] + h) * width..][..width];
    let (depths, rows) = (depths.of(at[0]), rows.of(at[1]));
    if let ([(d, by_d)], [(h, by_h)]) = (depths, rows)
        && *by_d == T::ONE
        && *by_h == T::ONE
    {
        return line(*d, *h);
    }
    let mut is_first = true;
    for &(d, by_d) in depths {
        for &(h, by_h) in rows {
            if is_first {
                scale(sum, line(d, h), by_d * by_h);
            } else {
                add_scaled(sum, line(d, h), by_d * by_h);
            }
            is_first = false;
        }
    }
    if is_first {
        sum.fill(T::ZERO);
    }
    sum
}

crate::multiversion! {
    fn scale<T: Real>(sum: &mut [T], line: &[T], by: T) {
        for (sum, &x) in sum.iter_mut().zip(line) {
            *sum = x * by;
        }
    }
}

crate::multiversion! {
    fn add_scaled<T: Real>(sum: &mut [T], line: &[T], by: T) {
        for (sum, &x) in sum.iter_mut().zip(line) {
            *sum += x * by;
        }
    }
}

crate::multiversion! {
    /// Each element of `out` is the sum of the elements of `line` that have a weight in it.
    fn gather<T: Real>(out: &mut [T], line: &[T], axis: &AxisWeights<T>) {
        match axis.count() {
            Some(1) => gather_each::<T, 1>(out, line, axis.all()),
            Some(2) => gather_each::<T, 2>(out, line, axis.all()),
            Some(4) => gather_each::<T, 4>(out, line, axis.all()),
            _ => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = weighted(line, axis.of(i));
                }
            }
        }
    }
}

#[inline(always)]
fn gather_each<T: Real, const N: usize>(out: &mut [T], line: &[T], all: &[(usize, T)]) {
    for (out, terms) in out.iter_mut().zip(all.chunks_exact(N)) {
        *out = weighted(line, terms);
    }
}

/// The sum of `line[i] * w` over terms (i, w); zero of none.
#[inline(always)]
fn weighted<T: Real>(line: &[T], terms: &[(usize, T)]) -> T {
    let Some(((at, by), rest)) = terms.split_first() else { return T::ZERO };
    let mut sum = line[*at] * *by;
    for &(at, by) in rest {
        sum += line[at] * by;
    }
    sum
}
