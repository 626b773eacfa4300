//! Convolution over one, two or three spatial dimensions: forward, and the gradients of input, weight
//! and bias, with stride, padding, dilation and groups, transposed or not.
//!
//! All shapes are seen with three spatial dimensions (`geometry`). Three products on non-transposed
//! geometry do everything: `forward`, `backward_input`, `backward_weight`; a transposed convolution is
//! the input gradient of a plain one with the roles of input and gradient exchanged. [`plan`] says which way is taken. Kernels of
//! three by three with stride 1 over enough channels have fewer products by Winograd's filtering (`winograd`). Else, with stride 1 and images that
//! are not small the input itself is read in shifted rows (`direct`, and `correlation` for the weight's gradient); else the operands of a block of positions are gathered into a matrix that stays in the second-level cache (`im2col`) and
//! multiplied, many small images together (`batched`); a depthwise convolution has loops of its own (`depthwise`). Blocks depend on the shapes
//! only, so results do not depend on threads.

mod algorithm;
mod batched;
mod correlation;
mod depthwise;
mod direct;
mod geometry;
mod im2col;
mod im2col_gemm;
mod implicit;
mod infinite;
mod integer;
mod microkernel;
mod phases;
#[cfg(target_arch = "x86_64")]
mod vector;
mod winograd;

pub use algorithm::{ConvAlgorithm, ConvPass, plan};
pub use geometry::{ConvOptions, PerDim, output_shape};
pub(crate) use microkernel::{HasMicrokernels, Microkernel};

use crate::dense::{Compute, expect_shape, load, with_output};
use crate::elementwise::copy_slice;
use crate::gemm::GemmElement;
use crate::{C64, C128, DType, Error, Result, StridedMut, StridedRef, memory};
use direct::Weights;
use geometry::ConvGeometry;
use infinite::Target;

/// A type convolutions compute in.
pub(crate) trait ConvElement: Compute + GemmElement {}
impl ConvElement for f32 {}
impl ConvElement for f64 {}
impl ConvElement for C64 {}
impl ConvElement for C128 {}

/// Runs an expression with `$T` bound to the type a dtype is convolved in.
macro_rules! for_number {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 | DType::BF16 | DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::C32 | DType::C64 => {
                type $T = $crate::C64;
                $body
            }
            DType::C128 => {
                type $T = $crate::C128;
                $body
            }
            other => Err($crate::Error::not_implemented($op, other)),
        }
    };
}
use for_number;

/// Products of two numbers that are worth waking a thread for: some ten microseconds.
const WORTH_A_TASK: usize = 1 << 20;
/// What a sum costs besides its products, counted in them: gathering its operands and writing it.
const SUM: usize = 64;
/// What a task costs besides its sums, counted in products.
const TASK: usize = 50_000;

/// What a task of `sums` sums costs, each of several products, counted in products.
fn cost(sums: usize, products: usize) -> usize {
    TASK + sums * (products + SUM)
}

/// How many tasks are worth waking a thread for.
fn tasks_of(sums: usize, products: usize) -> usize {
    WORTH_A_TASK.div_ceil(cost(sums, products))
}

/// The length up to which values are copied four at a time: calling a function for so few takes
/// longer.
const SHORT: usize = 64;

/// Copies what is often the row of a small image.
#[inline(always)]
fn copy_row<T: Copy>(to: &mut [T], from: &[T]) {
    if to.len() > SHORT {
        return copy_slice(to, from);
    }
    let (fours, rest) = to.as_chunks_mut::<4>();
    let (from_fours, from_rest) = from.as_chunks::<4>();
    for (to, from) in fours.iter_mut().zip(from_fours) {
        *to = *from;
    }
    for (to, &from) in rest.iter_mut().zip(from_rest) {
        *to = from;
    }
}

/// `out[n, o] = bias[o] + sum over c of x[n, c] (cross-correlated with) weight[o, c]`.
///
/// `x` is (N, C, *), `weight` (O, C / groups, *kernel), or (C, O / groups, *kernel) if transposed, `out`
/// as [`output_shape`] says, `bias` (O).
///
/// # Errors
/// Shapes that do not fit, unequal dtypes, or bool.
pub fn convolution(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    weight: StridedRef<'_>,
    bias: Option<StridedRef<'_>>,
    conv: &ConvOptions,
) -> Result<()> {
    let shape = output_shape(x.shape(), weight.shape(), conv)?;
    expect_shape("output", out.shape(), &shape)?;
    same_dtype(x, weight)?;
    if let Some(bias) = bias {
        expect_shape("bias", bias.shape(), &shape[1..2])?;
    }
    let geometry = ConvGeometry::new(x.shape(), weight.shape(), &shape, conv);
    if x.dtype().is_integral(false) {
        let (x, weight) = (load::<i64>(x)?, load::<i64>(weight)?);
        let bias = bias.map(load::<i64>).transpose()?;
        algorithm::announced(ConvPass::Forward, ConvAlgorithm::Integer);
        let run = if conv.transposed { integer::transposed } else { integer::forward };
        with_output::<i64, _>(out, |out| run(out, &x, &weight, bias.as_deref(), &geometry))?;
        return Ok(());
    }
    let dtype = x.dtype();
    for_number!(dtype, "convolution", T => {
        let (x, weight) = (load::<T>(x)?, load::<T>(weight)?);
        let bias = bias.map(load::<T>).transpose()?;
        with_output::<T, _>(out, |out| {
            if !conv.transposed {
                return forward(out, &x, &weight, bias.as_deref(), (&geometry, dtype));
            }
            backward_input(out, &x, &weight, (&geometry, dtype))?;
            if let Some(bias) = &bias {
                im2col_gemm::add_bias(out, bias, geometry.input_size());
            }
            Ok(())
        })
    })
}

/// The gradient of [`convolution`] with respect to its input: `grad_x` (N, C, *) from `grad`, which has the output's shape.
///
/// # Errors
/// Shapes that do not fit, unequal dtypes, or a dtype that is neither floating nor complex.
pub fn convolution_backward_input(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    weight: StridedRef<'_>,
    conv: &ConvOptions,
) -> Result<()> {
    let shape = output_shape(grad_x.shape(), weight.shape(), conv)?;
    expect_shape("grad_output", grad.shape(), &shape)?;
    same_dtype(grad, weight)?;
    let geometry = ConvGeometry::new(grad_x.shape(), weight.shape(), &shape, conv);
    let dtype = grad.dtype();
    for_number!(dtype, "convolution_backward", T => {
        let (grad, weight) = (load::<T>(grad)?, load::<T>(weight)?);
        with_output::<T, _>(grad_x, |out| {
            if conv.transposed {
                forward(out, &grad, &weight, None, (&geometry, dtype))
            } else {
                backward_input(out, &grad, &weight, (&geometry, dtype))
            }
        })
    })
}

/// The gradient of [`convolution`] with respect to its weight: `grad_weight` has the weight's shape, `grad` the output's.
///
/// # Errors
/// Shapes that do not fit, unequal dtypes, or a dtype that is neither floating nor complex.
pub fn convolution_backward_weight(
    grad_weight: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    conv: &ConvOptions,
) -> Result<()> {
    let shape = output_shape(x.shape(), grad_weight.shape(), conv)?;
    expect_shape("grad_output", grad.shape(), &shape)?;
    same_dtype(grad, x)?;
    let geometry = ConvGeometry::new(x.shape(), grad_weight.shape(), &shape, conv);
    let dtype = grad.dtype();
    for_number!(dtype, "convolution_backward", T => {
        let (grad, x) = (load::<T>(grad)?, load::<T>(x)?);
        let (grad, x) = if conv.transposed { (&x, &grad) } else { (&grad, &x) };
        with_output::<T, _>(grad_weight, |out| backward_weight(out, grad, x, (&geometry, dtype)))
    })
}

/// The gradient of [`convolution`] with respect to its bias: the sum of `grad` (N, O, *) over all but
/// the channels.
pub fn convolution_backward_bias(
    grad_bias: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
) -> Result<()> {
    if grad.ndim() < 2 {
        return Err(Error::runtime(format!(
            "Expected grad_output of at least 2D, but got {}D",
            grad.ndim()
        )));
    }
    expect_shape("grad_bias", grad_bias.shape(), &grad.shape()[1..2])?;
    for_number!(grad.dtype(), "convolution_backward", T => {
        let (n, c) = (grad.shape()[0] as usize, grad.shape()[1] as usize);
        let grad = load::<T>(grad)?;
        with_output::<T, _>(grad_bias, |out| im2col_gemm::backward_bias(out, &grad, n, c))?;
        Ok(())
    })
}

fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    (g, dtype): (&ConvGeometry, DType),
) -> Result<()> {
    if g.padding != [0; 3]
        && let Some((finite, indices)) = infinite::set_aside(w)?
    {
        forward_of_finite(out, x, &finite, bias, (g, dtype))?;
        infinite::add_products((Target::Output, out), x, w, &indices, g);
        return Ok(());
    }
    forward_of_finite(out, x, w, bias, (g, dtype))
}

fn forward_of_finite<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    (g, dtype): (&ConvGeometry, DType),
) -> Result<()> {
    let weights = Weights { data: w, is_reversed: false };
    match algorithm::announced(ConvPass::Forward, algorithm::of_forward::<T>(g, dtype)) {
        ConvAlgorithm::Depthwise => depthwise::forward(out, x, w, bias, g),
        ConvAlgorithm::Winograd => {
            let left = winograd::forward(out, x, weights, bias, g)?;
            one_by_one(out, x, g, &left, |out, x, g| forward_by_sums(out, x, w, bias, g))
        }
        _ => forward_by_sums(out, x, w, bias, g),
    }
}

/// The convolution as the definition's sums.
fn forward_by_sums<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<()> {
    let weights = Weights { data: w, is_reversed: false };
    if without_matrix(out, x, weights, bias, g)? {
        return Ok(());
    }
    im2col_gemm::forward(out, x, w, bias, g)
}

fn backward_input<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    (g, dtype): (&ConvGeometry, DType),
) -> Result<()> {
    // (The convolution that computes this gradient has a padding of its own.)
    if g.kernel != [1; 3]
        && let Some((finite, indices)) = infinite::set_aside(w)?
    {
        backward_input_by_finite(out, grad, &finite, (g, dtype))?;
        infinite::add_products((Target::Input, out), grad, w, &indices, g);
        return Ok(());
    }
    backward_input_by_finite(out, grad, w, (g, dtype))
}

fn backward_input_by_finite<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    (g, dtype): (&ConvGeometry, DType),
) -> Result<()> {
    match algorithm::announced(ConvPass::BackwardInput, algorithm::of_input::<T>(g, dtype)) {
        ConvAlgorithm::Depthwise => depthwise::backward_input(out, grad, w, g),
        ConvAlgorithm::Winograd => {
            let weights = Weights { data: w, is_reversed: true };
            let left = match direct::backward_input_geometry(g) {
                Some(of_gradient) => winograd::forward(out, grad, weights, None, &of_gradient)?,
                None => memory::collect(0..g.batch)?,
            };
            one_by_one(out, grad, g, &left, |out, grad, g| backward_input_by_sums(out, grad, w, g))
        }
        ConvAlgorithm::Phases => phases::backward_input(out, grad, w, g),
        _ => backward_input_by_sums(out, grad, w, g),
    }
}

/// The input's gradient as the definition's sums.
fn backward_input_by_sums<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    let weights = Weights { data: w, is_reversed: true };
    if let Some(of_gradient) = direct::backward_input_geometry(g)
        && without_matrix(out, grad, weights, None, &of_gradient)?
    {
        return Ok(());
    }
    im2col_gemm::backward_input(out, grad, w, g)
}

fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    (g, dtype): (&ConvGeometry, DType),
) -> Result<()> {
    if g.padding != [0; 3]
        && let Some((finite, indices)) = infinite::set_aside(grad)?
    {
        backward_weight_by_finite(out, &finite, x, (g, dtype))?;
        infinite::add_to_weight(out, grad, x, &indices, g);
        return Ok(());
    }
    backward_weight_by_finite(out, grad, x, (g, dtype))
}

fn backward_weight_by_finite<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    (g, dtype): (&ConvGeometry, DType),
) -> Result<()> {
    match algorithm::announced(ConvPass::BackwardWeight, algorithm::of_weight::<T>(g, dtype)) {
        ConvAlgorithm::Depthwise => return depthwise::backward_weight(out, grad, x, g),
        ConvAlgorithm::Winograd if winograd::backward_weight(out, grad, x, g)? => return Ok(()),
        _ => {}
    }
    let is_done = match algorithm::weight_by_sums::<T>(g) {
        ConvAlgorithm::Implicit => implicit::backward_weight(out, grad, x, g)?,
        ConvAlgorithm::Shifted => correlation::backward_weight(out, grad, x, g)?,
        _ => false,
    };
    if is_done { Ok(()) } else { im2col_gemm::backward_weight(out, grad, x, g) }
}

/// Computes some images of `out` from those of `x`, each by itself.
fn one_by_one<T>(
    out: &mut [T],
    x: &[T],
    g: &ConvGeometry,
    images: &[usize],
    convolve: impl Fn(&mut [T], &[T], &ConvGeometry) -> Result<()>,
) -> Result<()> {
    let one = ConvGeometry { batch: 1, ..g.clone() };
    let (to, from) = (out.len() / g.batch.max(1), x.len() / g.batch.max(1));
    images.iter().try_for_each(|&n| {
        convolve(&mut out[n * to..(n + 1) * to], &x[n * from..(n + 1) * from], &one)
    })
}

/// Convolves directly, without a gathered matrix, if one of the direct algorithms applies; returns whether it did.
fn without_matrix<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    weights: Weights<'_, T>,
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<bool> {
    match algorithm::by_sums::<T>(g) {
        ConvAlgorithm::Implicit => implicit::forward(out, x, weights, bias, g),
        ConvAlgorithm::Shifted => direct::forward(out, x, weights, bias, g),
        _ => Ok(false),
    }
}

fn same_dtype(a: StridedRef<'_>, b: StridedRef<'_>) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Input type ({}) and weight type ({}) should be the same",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    )))
}
