//! The gradients of `grid_sampler` made of plain ops, so that they can be differentiated.
//!
//! A value is a sum over taps: elements of the image, each with a weight that is a product of one weight per dimension.
//! So the gradient of the image is scattered to the taps, and that of a position sums the taps times the derivatives of
//! their weights. Positions and modes are those of the kernel (`pullback_kernels::grid`); integer parts of positions
//! are constants.

use crate::{DType, Result, Scalar, Tensor};
use pullback_kernels::grid::{Interpolation, PaddingMode, SampleOptions};
use smallvec::SmallVec;

/// One of the elements that a position is interpolated from, along one dimension: its index, whether it is inside of
/// the image, its weight and the derivative of the weight by the position. Each is (N, positions).
#[derive(Clone)]
struct Tap {
    index: Tensor,
    inside: Tensor,
    weight: Tensor,
    slope: Tensor,
}

impl Tap {
    /// The element at an integer position.
    fn of(at: &Tensor, size: i64, weight: Tensor, slope: Tensor) -> Result<Tap> {
        let last = size - 1;
        // (An element outside of the image is read at a valid index instead, and masked out.)
        let index = at.to_dtype(DType::I64)?.clamp(Some(0.into()), Some(last.into()))?;
        let not_after = at.le(&Tensor::wrapped(last as f64)?)?;
        let inside = at.ge(&Tensor::wrapped(0.0)?)?.logical_and(&not_after)?;
        Ok(Tap { index, inside, weight, slope })
    }
}

type Taps = SmallVec<[Tap; 4]>;

/// The gradients of images and positions that are needed, as differentiable functions of all three tensors.
pub(in crate::ops) fn gradients(
    sampling: SampleOptions,
    grad: &Tensor,
    [input, grid]: [&Tensor; 2],
    needs: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    let (dtype, rank) = (input.dtype(), input.ndim() - 2);
    let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
    let sizes = &input.shape()[2..];
    let (image, positions) = (input.to_dtype(wide)?.flatten(2, -1)?, grid.to_dtype(wide)?);
    let grad = grad.to_dtype(wide)?.flatten(2, -1)?;
    let mut dims: SmallVec<[Taps; 3]> = SmallVec::new();
    for (dim, &size) in sizes.iter().enumerate() {
        let position = positions.select(-1, (rank - 1 - dim) as i64)?.flatten(1, -1)?;
        dims.push(taps(sampling, &absolute(sampling, &position, size)?, size)?);
    }
    let by_input = if needs[0] {
        let spread = by_image(&image, &grad, &dims, sizes)?;
        Some(spread.reshape(input.shape())?.to_dtype(dtype)?)
    } else {
        None
    };
    let by_grid = if needs[1] {
        let slopes = by_position(&image, &grad, &dims, sizes)?;
        let scaled = slopes.iter().zip(sizes).rev();
        let scaled = scaled.map(|(slope, &size)| slope.times(scale(sampling, size)));
        let all = crate::ops::shape::join::stack(&scaled.collect::<Result<Vec<_>>>()?, -1)?;
        Some(all.reshape(grid.shape())?.to_dtype(dtype)?)
    } else {
        None
    };
    Ok([by_input, by_grid])
}

/// The derivative of a position in elements by the relative coordinate.
fn scale(sampling: SampleOptions, size: i64) -> f64 {
    (if sampling.align_corners { size as f64 - 1.0 } else { size as f64 }) / 2.0
}

/// Positions in units of elements, from the centre of the first one.
fn absolute(sampling: SampleOptions, position: &Tensor, size: i64) -> Result<Tensor> {
    let position = position.plus(1.0)?.times(scale(sampling, size))?;
    if sampling.align_corners { Ok(position) } else { position.plus(-0.5) }
}

/// The positions, moved into an image of `size` elements by the padding mode (NaN to the first element), and the derivatives
/// of the moved positions by the given ones: 1, -1, or 0 at the border and beyond. Both are constants.
fn moved_inside(sampling: SampleOptions, position: &Tensor, size: i64) -> Result<(Tensor, Tensor)> {
    let position = position.detach()?;
    let last = (size - 1) as f64;
    let (moved, slope_sign) = match sampling.padding_mode {
        PaddingMode::Zeros => return Ok((position.clone(), position.ones_like()?)),
        PaddingMode::Border => (position.clone(), position.ones_like()?),
        PaddingMode::Reflection => {
            let is_aligned = sampling.align_corners;
            let (low, span) = if is_aligned { (0.0, last) } else { (-0.5, size as f64) };
            reflected(&position, low, span)?
        }
    };
    let within =
        moved.gt(&Tensor::wrapped(0.0)?)?.logical_and(&moved.lt(&Tensor::wrapped(last)?)?)?;
    let inside = moved.clamp(Some(0.0.into()), Some(last.into()))?;
    let inside = inside.masked_fill(&inside.isnan()?, Scalar::Int(0))?;
    Ok((inside, slope_sign.masked_fill(&within.logical_not()?, Scalar::Int(0))?))
}

/// The positions, reflected at `low` and `low + span` until they lie between these, and the derivatives of the reflected
/// positions by the given ones, 1 or -1.
fn reflected(position: &Tensor, low: f64, span: f64) -> Result<(Tensor, Tensor)> {
    if span == 0.0 {
        return Ok((position.zeros_like()?, position.ones_like()?));
    }
    let offset = position.plus(-low)?;
    let distance = offset.abs()?;
    let folds = distance.over(span)?.floor()?;
    let rest = distance.sub(&folds.times(span)?)?;
    let is_odd = folds.remainder_by(Scalar::Int(2))?.ne(&Tensor::wrapped(0)?)?;
    let is_back = offset.lt(&Tensor::wrapped(0.0)?)?.ne(&is_odd)?;
    let folded = is_odd.where_self(&rest.minus_from(span)?, &rest)?.plus(low)?;
    Ok((folded, position.ones_like()?.masked_fill(&is_back, Scalar::Int(-1))?))
}

/// The elements that positions (in units of elements) are interpolated from.
fn taps(sampling: SampleOptions, position: &Tensor, size: i64) -> Result<Taps> {
    match sampling.interpolation {
        Interpolation::Nearest => {
            let at = moved_inside(sampling, position, size)?.0.round()?;
            let tap = Tap::of(&at, size, at.ones_like()?, at.zeros_like()?);
            std::iter::once(tap).collect()
        }
        Interpolation::Linear => {
            let (moved, slope_sign) = moved_inside(sampling, position, size)?;
            let before = moved.floor()?;
            let after = before.plus(1)?;
            // The added term is zero and has the derivative of the position. (For infinite positions it is constant.)
            let here = position.detach()?;
            let change =
                position.sub(&here)?.masked_fill(&here.isfinite()?.logical_not()?, 0.into())?;
            let moved = moved.add(&change.mul(&slope_sign)?)?;
            let (near, far) = (after.sub(&moved)?, moved.sub(&before)?);
            let taps = [(before, near, slope_sign.neg()?), (after, far, slope_sign)].into_iter();
            taps.map(|(at, weight, slope)| Tap::of(&at, size, weight, slope)).collect()
        }
        Interpolation::Cubic => {
            let before = position.detach()?.floor()?;
            let t = position.sub(&before)?;
            let mut taps = Taps::new();
            for (step, (weight, slope)) in (-1..3).zip(cubic(&t)?) {
                let (at, _) = moved_inside(sampling, &before.plus(step)?, size)?;
                taps.push(Tap::of(&at, size, weight, slope)?);
            }
            Ok(taps)
        }
    }
}

/// The weights of cubic convolution (Keys 1981) with the parameter -0.75, of the two elements before and the two after
/// a position that is `t` beyond the second; and their derivatives.
fn cubic(t: &Tensor) -> Result<[(Tensor, Tensor); 4]> {
    const A: f64 = -0.75;
    // For distances up to 1.
    let near = |d: &Tensor| -> Result<(Tensor, Tensor)> {
        let weight = d.times(A + 2.0)?.plus(-(A + 3.0))?.mul(d)?.mul(d)?.plus(1.0)?;
        Ok((weight, d.times(3.0 * (A + 2.0))?.plus(-2.0 * (A + 3.0))?.mul(d)?))
    };
    // For distances from 1 to 2.
    let far = |d: &Tensor| -> Result<(Tensor, Tensor)> {
        let weight = d.times(A)?.plus(-5.0 * A)?.mul(d)?.plus(8.0 * A)?.mul(d)?.plus(-4.0 * A)?;
        Ok((weight, d.times(3.0 * A)?.plus(-10.0 * A)?.mul(d)?.plus(8.0 * A)?))
    };
    let back = |(weight, slope): (Tensor, Tensor)| slope.neg().map(|slope| (weight, slope));
    let rest = t.minus_from(1.0)?;
    Ok([far(&t.plus(1.0)?)?, near(t)?, back(near(&rest)?)?, back(far(&rest.plus(1.0)?)?)?])
}

/// One tap for each dimension.
type TapCombination<'a> = SmallVec<[&'a Tap; 3]>;

/// All combinations of taps, that of the last dimension varying fastest.
fn combinations(dims: &[Taps]) -> Vec<TapCombination<'_>> {
    let mut all = vec![TapCombination::new()];
    for taps in dims {
        // bounded: by the number of taps.
        let mut next = Vec::with_capacity(all.len() * taps.len());
        for first in &all {
            next.extend(taps.iter().map(|tap| {
                let mut longer = first.clone();
                longer.push(tap);
                longer
            }));
        }
        all = next;
    }
    all
}

/// The indices of the elements in the flattened image, and the mask of those outside, both (N, 1, positions).
fn element(combination: &[&Tap], sizes: &[i64]) -> Result<(Tensor, Tensor)> {
    let (mut index, mut inside) = (combination[0].index.clone(), combination[0].inside.clone());
    for (tap, &size) in combination.iter().zip(sizes).skip(1) {
        index = index.times(size)?.add(&tap.index)?;
        inside = inside.logical_and(&tap.inside)?;
    }
    Ok((index.unsqueeze(1)?, inside.logical_not()?.unsqueeze(1)?))
}

/// The product of the weights, where `along` one dimension the derivative takes the place of the weight.
fn factor(combination: &[&Tap], along: Option<usize>) -> Result<Tensor> {
    let part = |(dim, tap): (usize, &&Tap)| {
        if Some(dim) == along { tap.slope.clone() } else { tap.weight.clone() }
    };
    let mut parts = combination.iter().enumerate().map(part);
    let first = parts.next().expect("an image has dimensions");
    parts.try_fold(first, |product, part| product.mul(&part))
}

/// The gradient (N, C, plane) with respect to the image.
fn by_image(image: &Tensor, grad: &Tensor, dims: &[Taps], sizes: &[i64]) -> Result<Tensor> {
    combinations(dims).iter().try_fold(image.zeros_like()?, |sum, combination| {
        let (index, padding_mode) = element(combination, sizes)?;
        let part = grad.mul(&factor(combination, None)?.unsqueeze(1)?)?;
        let part = part.masked_fill(&padding_mode, Scalar::Int(0))?;
        sum.scatter_add(2, &index.expand(part.shape(), false)?, &part)
    })
}

/// The gradients (N, positions) with respect to the positions along each dimension, in elements.
fn by_position(
    image: &Tensor,
    grad: &Tensor,
    dims: &[Taps],
    sizes: &[i64],
) -> Result<SmallVec<[Tensor; 3]>> {
    let none = grad.sum_dim(Some(&[1]), false)?.zeros_like()?;
    let mut slopes: SmallVec<[Tensor; 3]> = SmallVec::from_elem(none, dims.len());
    for combination in combinations(dims) {
        let (index, padding_mode) = element(&combination, sizes)?;
        let value = image.gather(2, &index.expand(grad.shape(), false)?)?;
        let value = value.masked_fill(&padding_mode, Scalar::Int(0))?;
        let sum = grad.mul(&value)?.sum_dim(Some(&[1]), false)?;
        for (dim, slope) in slopes.iter_mut().enumerate() {
            *slope = slope.add(&sum.mul(&factor(&combination, Some(dim))?)?)?;
        }
    }
    Ok(slopes)
}
