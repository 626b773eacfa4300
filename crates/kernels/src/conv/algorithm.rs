//! Which way a convolution or a gradient of one is computed: a function of shapes, dtype and instruction set alone.

use super::geometry::{ConvGeometry, ConvOptions, output_shape};
use super::{ConvElement, correlation, direct, implicit, phases, winograd};
use crate::{DType, Result};

/// The ways of computing a convolution or one of its gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvAlgorithm {
    /// Integers: a loop over the kernel for each pair of channels.
    Integer,
    /// A channel for each group: loops over planes.
    Depthwise,
    /// F(2x2, 3x3): products of transformed tiles.
    Winograd,
    /// Matrix products whose gathered matrix is never made.
    Implicit,
    /// Stride 1: the input read in shifted rows. For the weight's gradient: convolutions between
    /// few channels.
    Shifted,
    /// The gradient of the input with steps: convolutions of stride 1, one for each remainder of division by the stride.
    Phases,
    /// Products of gathered matrices, or of the input itself where the kernel has one element.
    Gathered,
}

/// What is computed: a convolution, or one of its gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvPass {
    /// The convolution, transposed or not.
    Forward,
    /// The gradient of the input.
    BackwardInput,
    /// The gradient of the weight.
    BackwardWeight,
}

/// The way in which a convolution of `x` (its shape) with `weight` is computed, or one of its gradients.
///
/// # Errors
/// Shapes that do not fit.
pub fn plan(
    pass: ConvPass,
    dtype: DType,
    (x, weight): (&[i64], &[i64]),
    conv: &ConvOptions,
) -> Result<ConvAlgorithm> {
    let shape = output_shape(x, weight, conv)?;
    let g = ConvGeometry::new(x, weight, &shape, conv);
    let is_forward = (pass == ConvPass::Forward) != conv.transposed;
    if dtype.is_integral(true) {
        return Ok(ConvAlgorithm::Integer);
    }
    super::for_number!(dtype, "convolution", T => Ok(match pass {
        ConvPass::BackwardWeight => of_weight::<T>(&g, dtype),
        _ if is_forward => of_forward::<T>(&g, dtype),
        _ => of_input::<T>(&g, dtype),
    }))
}

/// Announces the algorithm that a kernel is about to follow, and returns it.
#[inline]
pub(super) fn announced(pass: ConvPass, algorithm: ConvAlgorithm) -> ConvAlgorithm {
    let computation = match pass {
        ConvPass::Forward => "convolution",
        ConvPass::BackwardInput => "gradient of a convolution's input",
        ConvPass::BackwardWeight => "gradient of a convolution's weight",
    };
    crate::plan::announce(computation, &algorithm);
    algorithm
}

/// The algorithm of a plain convolution of elements that were of `dtype` before they became `T`.
pub(super) fn of_forward<T: ConvElement>(g: &ConvGeometry, dtype: DType) -> ConvAlgorithm {
    if g.is_depthwise() {
        ConvAlgorithm::Depthwise
    } else if dtype == T::DTYPE && winograd::pays::<T>(g) {
        // (Halves are summed in `f32` and rounded once, as the definition says.)
        ConvAlgorithm::Winograd
    } else {
        by_sums::<T>(g)
    }
}

/// The algorithm of the gradient of the input.
pub(super) fn of_input<T: ConvElement>(g: &ConvGeometry, dtype: DType) -> ConvAlgorithm {
    if g.is_depthwise() {
        return ConvAlgorithm::Depthwise;
    }
    match direct::backward_input_geometry(g) {
        Some(of_gradient) => of_forward::<T>(&of_gradient, dtype),
        None if phases::fits(g) => ConvAlgorithm::Phases,
        None => ConvAlgorithm::Gathered,
    }
}

/// The algorithm of the gradient of the weight.
pub(super) fn of_weight<T: ConvElement>(g: &ConvGeometry, dtype: DType) -> ConvAlgorithm {
    if g.is_depthwise() {
        ConvAlgorithm::Depthwise
    } else if dtype == T::DTYPE && winograd::pays_weight::<T>(g) {
        ConvAlgorithm::Winograd
    } else {
        weight_by_sums::<T>(g)
    }
}

/// The algorithm of a plain convolution that is computed by the sums of its definition and has more
/// than one channel in a group.
pub(super) fn by_sums<T: ConvElement>(g: &ConvGeometry) -> ConvAlgorithm {
    if g.is_pointwise() {
        ConvAlgorithm::Gathered
    } else if implicit::fits::<T>(g) {
        ConvAlgorithm::Implicit
    } else if direct::fits::<T>(g) {
        ConvAlgorithm::Shifted
    } else {
        ConvAlgorithm::Gathered
    }
}

/// The algorithm of the weight's gradient that is computed by the sums of its definition, with more
/// than one channel in a group.
pub(super) fn weight_by_sums<T: ConvElement>(g: &ConvGeometry) -> ConvAlgorithm {
    if !g.is_pointwise() && implicit::fits_weight::<T>(g) {
        ConvAlgorithm::Implicit
    } else if !g.is_pointwise() && correlation::fits::<T>(g) {
        ConvAlgorithm::Shifted
    } else {
        ConvAlgorithm::Gathered
    }
}
