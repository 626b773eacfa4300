//! Sampling of images at any places, and grids of places from affine maps.
//!
//! Places are relative: -1 and 1 are the ends of a dimension. Everything is made of ops that have derivatives, so
//! gradients exist in every order; whole parts of places are constants. Not here: resizing (`antialias`).

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::tensor::shape::list;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&GRID_SAMPLER, &GRID_SAMPLER2D, &GRID_SAMPLER3D, &AFFINE_GRID_GENERATOR];

/// The values of `input` (N, C, *sizes) at the places `grid` (N, *out, d): (N, C, *out). The last dimension of `grid` counts
/// from the innermost dimension of an image. `interpolation_mode` is 0 (linear), 1 (nearest) or 2 (cubic, of two dimensions);
/// `padding_mode` says what lies outside: 0 (zeros), 1 (the border) or 2 (reflections). With `align_corners` -1 and 1 are the
/// centres of the outermost elements, else their outer edges. At whole places the gradient by `grid` is that of the
/// interval after them; `nearest` has none.
#[op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     function_only, autocast = fp32)]
impl GridSampler {
    fn composite(
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<Tensor> {
        check_common(input, grid)?;
        ensure!(
            matches!(input.ndim(), 4 | 5),
            runtime,
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {} and grid with sizes {}",
            list(input.shape()),
            list(grid.shape())
        );
        let sampling = Sampling::new(interpolation_mode, padding_mode, align_corners)?;
        sampling.apply(input, grid, input.ndim() - 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut all = grid_samples(s, &[3, 4]);
        all.truncate(2);
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |input: &[i64], grid: &[i64], mode: i64, phrase| {
            let start = [s.normal(input).into(), s.normal(grid).into(), mode.into(), 0.into()];
            let sample = Sample::new(start).with("align_corners", true);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        let place = &[1, 2, 2, 2];
        vec![
            bad(&[2, 1, 3, 4], place, 0, "expected grid and input to have same batch size"),
            bad(&[1, 1, 3, 4], &[1, 2, 2, 3], 0, "expected grid to have size 2 in last dimension"),
            bad(&[1, 1, 0, 4], place, 0, "expected input to have non-empty spatial dimensions"),
            bad(&[1, 1, 3, 4], place, 3, "invalid interpolation_mode: 3"),
            bad(&[1, 1, 2, 2, 2], &[1, 1, 1, 1, 3], 2, "only supports 4D input"),
        ]
    }
}

/// [`GridSampler`] of images (N, C, H, W).
#[op("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     function_only, method = grid_sampler_2d)]
impl GridSampler2d {
    fn composite(
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<Tensor> {
        let sampling = Sampling::new(interpolation_mode, padding_mode, align_corners)?;
        sampling.apply(input, grid, 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        grid_samples(s, &[3, 4])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start = [s.normal(&[1, 1, 2, 2, 2]).into(), s.normal(&[1, 1, 1, 1, 3]).into()];
        let sample = Sample::new(start).with("interpolation_mode", 0).with("padding_mode", 0);
        let phrase = "expected 4D input and grid with same number of dimensions";
        let sample = sample.with("align_corners", true);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// [`GridSampler`] of volumes (N, C, D, H, W).
#[op("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     function_only, method = grid_sampler_3d)]
impl GridSampler3d {
    fn composite(
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<Tensor> {
        let sampling = Sampling::new(interpolation_mode, padding_mode, align_corners)?;
        sampling.apply(input, grid, 3)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        grid_samples(s, &[2, 3, 2])
    }
}

/// The places (N, *sizes, d) that the affine maps `theta` (N, d, d + 1) give for the places of an image of `size` (N, C,
/// *sizes), both relative as in [`GridSampler`].
#[op("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", function_only,
     method = affine_grid_generator)]
impl AffineGridGenerator {
    fn composite(theta: &Tensor, size: &[i64], align_corners: bool) -> Result<Tensor> {
        ensure!(
            matches!(size.len(), 4 | 5),
            runtime,
            "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, but got size {}",
            list(size)
        );
        let (batch, spatial) = (size[0], &size[2..]);
        let rank = spatial.len() as i64;
        ensure!(
            theta.shape() == [batch, rank, rank + 1],
            runtime,
            "Expected a batch of {rank}D affine matrices of shape Nx{rank}x{} for size {}. Got {}.",
            rank + 1,
            list(size),
            list(theta.shape())
        );
        let mut columns: Vec<Tensor> = Vec::with_capacity(spatial.len() + 1);
        for (dim, &count) in spatial.iter().enumerate().rev() {
            let mut along = Dims::from_elem(1, spatial.len());
            along[dim] = count;
            let line = centred(count, align_corners)?.to_dtype(theta.dtype())?;
            columns.push(line.view(&along)?.expand(spatial, false)?);
        }
        columns.push(TensorSpec::of(spatial, theta.dtype()).zeros()?.plus(1)?);
        let places = super::join::stack(&columns, -1)?.view(&[-1, rank + 1])?;
        let mut shape = Dims::from_slice(&[batch]);
        shape.extend_from_slice(spatial);
        shape.push(rank);
        places.matmul(&theta.transpose(1, 2)?)?.view(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |theta: &[i64], size: &[i64], align: bool| {
            Sample::of(s.normal(theta)).with("size", size).with("align_corners", align)
        };
        vec![
            sample(&[2, 2, 3], &[2, 1, 2, 3], false),
            sample(&[1, 2, 3], &[1, 1, 1, 3], true),
            sample(&[1, 3, 4], &[1, 1, 2, 1, 2], true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |theta: &[i64], size: &[i64], phrase| {
            let sample = Sample::of(s.normal(theta)).with("size", size).with("align_corners", true);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[1, 2, 3], &[1, 1, 2], "AffineGridGenerator needs 4d (spatial) or 5d"),
            bad(&[1, 3, 4], &[1, 1, 2, 2], "Expected a batch of 2D affine matrices"),
        ]
    }
}

/// The relative places of `count` elements in a row, in double precision; 0 of one.
fn centred(count: i64, align_corners: bool) -> Result<Tensor> {
    ensure!(count >= 0, runtime, "Expected non-negative sizes, but got {count}");
    let from_one = TensorSpec::of(&[count], DType::F64).zeros()?.plus(1)?.cumsum(0)?;
    let whole = if align_corners { (count - 1).max(1) } else { count.max(1) };
    // (2 i + 1 - count) / whole, for i from 0.
    from_one.times(2)?.plus(-1 - count)?.over(whole)
}

/// What holds for images of any rank.
fn check_common(input: &Tensor, grid: &Tensor) -> Result<()> {
    let (sizes, places) = (list(input.shape()), list(grid.shape()));
    ensure!(
        input.ndim() >= 2 && grid.ndim() >= 1,
        runtime,
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {sizes} and grid with sizes {places}"
    );
    ensure!(
        input.shape()[0] == grid.shape()[0],
        runtime,
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes {sizes} and grid with sizes {places}"
    );
    let rank = input.ndim() - 2;
    ensure!(
        grid.shape().last() == Some(&(rank as i64)),
        runtime,
        "grid_sampler(): expected grid to have size {rank} in last dimension, but got grid with sizes {places}"
    );
    if let Some(dim) = (2..input.ndim()).find(|&d| input.shape()[d] == 0) {
        bail!(
            runtime,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {sizes} with dimension {dim} being empty"
        );
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    Linear,
    Nearest,
    Cubic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Copy)]
struct Sampling {
    interpolation: Interpolation,
    outside: Outside,
    align_corners: bool,
}

/// One of the elements that a place is interpolated from, along one dimension: its index, whether it lies inside, and
/// its weight (`None`: 1). Each is (N, places).
#[derive(Clone)]
struct Tap {
    index: Tensor,
    inside: Tensor,
    weight: Option<Tensor>,
}

impl Tap {
    /// The element at a whole place.
    fn of(at: &Tensor, size: i64, weight: Option<Tensor>) -> Result<Tap> {
        let last = size - 1;
        // (What is no place of the image is read at another one, and left out.)
        let index = at.to_dtype(DType::I64)?.clamp(Some(0.into()), Some(last.into()))?;
        let not_after = at.le(&Tensor::wrapped(last as f64)?)?;
        let inside = at.ge(&Tensor::wrapped(0.0)?)?.logical_and(&not_after)?;
        Ok(Tap { index, inside, weight })
    }
}

type Taps = SmallVec<[Tap; 4]>;

impl Sampling {
    fn new(interpolation: i64, outside: i64, align_corners: bool) -> Result<Sampling> {
        let interpolation = match interpolation {
            0 => Interpolation::Linear,
            1 => Interpolation::Nearest,
            2 => Interpolation::Cubic,
            other => bail!(
                runtime,
                "grid_sampler(): invalid interpolation_mode: {other} (expected 0, 1 or 2)"
            ),
        };
        let outside = match outside {
            0 => Outside::Zeros,
            1 => Outside::Border,
            2 => Outside::Reflection,
            other => {
                bail!(runtime, "grid_sampler(): invalid padding_mode: {other} (expected 0, 1 or 2)")
            }
        };
        Ok(Sampling { interpolation, outside, align_corners })
    }

    fn check(self, input: &Tensor, grid: &Tensor, rank: usize) -> Result<()> {
        check_common(input, grid)?;
        ensure!(
            input.ndim() == rank + 2 && grid.ndim() == rank + 2,
            runtime,
            "grid_sampler(): expected {}D input and grid with same number of dimensions, but got input with sizes {} and grid with sizes {}",
            rank + 2,
            list(input.shape()),
            list(grid.shape())
        );
        ensure!(
            self.interpolation != Interpolation::Cubic || rank == 2,
            runtime,
            "grid_sampler(): bicubic interpolation only supports 4D input"
        );
        ensure!(
            input.dtype().is_floating_point(),
            not_implemented,
            "\"grid_sampler_{rank}d_cpu_kernel_impl\" not implemented for '{}'",
            input.dtype().scalar_name()
        );
        ensure!(
            grid.dtype() == input.dtype(),
            runtime,
            "expected scalar type {} but found {}",
            input.dtype().scalar_name(),
            grid.dtype().scalar_name()
        );
        Ok(())
    }

    fn apply(self, input: &Tensor, grid: &Tensor, rank: usize) -> Result<Tensor> {
        self.check(input, grid, rank)?;
        let dtype = input.dtype();
        let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
        let (image, grid) = (input.to_dtype(wide)?.flatten(2, -1)?, grid.to_dtype(wide)?);
        let sizes = &input.shape()[2..];
        let mut dims = Vec::with_capacity(rank);
        for (dim, &size) in sizes.iter().enumerate() {
            let place = grid.select(-1, (rank - 1 - dim) as i64)?.flatten(1, -1)?;
            dims.push(self.taps(&self.absolute(&place, size)?, size)?);
        }
        let mut shape = Dims::from_slice(&input.shape()[..2]);
        shape.extend_from_slice(&grid.shape()[1..=rank]);
        interpolated(&image, sizes, &dims)?.reshape(&shape)?.to_dtype(dtype)
    }

    /// Places in units of elements, from the first one's centre.
    fn absolute(self, place: &Tensor, size: i64) -> Result<Tensor> {
        let size = size as f64;
        if self.align_corners {
            return place.plus(1.0)?.times((size - 1.0) / 2.0);
        }
        place.plus(1.0)?.times(size / 2.0)?.plus(-0.5)
    }

    /// Places moved into an image of that size, if the mode does so; NaN goes to the first element.
    fn moved_inside(self, place: &Tensor, size: i64) -> Result<Tensor> {
        let place = match self.outside {
            Outside::Zeros => return Ok(place.clone()),
            Outside::Border => place.clone(),
            Outside::Reflection => self.reflected(place, size)?,
        };
        let inside = place.clamp(Some(0.0.into()), Some(((size - 1) as f64).into()))?;
        inside.masked_fill(&inside.detach()?.isnan()?, Scalar::Int(0))
    }

    /// Places folded back at the ends: the outermost centres, or the outer edges.
    fn reflected(self, place: &Tensor, size: i64) -> Result<Tensor> {
        let (low, span) =
            if self.align_corners { (0.0, (size - 1) as f64) } else { (-0.5, size as f64) };
        if span == 0.0 {
            return place
                .times(0)?
                .masked_fill(&place.detach()?.isfinite()?.logical_not()?, 0.into());
        }
        let way = place.plus(-low)?.abs()?;
        let folds = way.detach()?.over(span)?.floor()?;
        let rest = way.sub(&folds.times(span)?)?;
        let is_odd = folds.remainder_by(Scalar::Int(2))?.ne(&Tensor::wrapped(0)?)?;
        is_odd.where_self(&rest.minus_from(span)?, &rest)?.plus(low)
    }

    /// The elements that places (in units of elements) are interpolated from.
    fn taps(self, place: &Tensor, size: i64) -> Result<Taps> {
        match self.interpolation {
            Interpolation::Nearest => {
                let at = self.moved_inside(&place.detach()?, size)?.round()?;
                // (A weight of 1, whose gradient by the place is zeros.)
                let is_wanted = crate::autograd::needs_derivative_of(place);
                let everywhere = || at.eq(&at)?.logical_or(&at.isnan()?);
                let weight = is_wanted.then(|| place.masked_fill(&everywhere()?, Scalar::Int(1)));
                std::iter::once(Tap::of(&at, size, weight.transpose()?)).collect()
            }
            Interpolation::Linear => {
                let place = self.moved_inside(place, size)?;
                let before = place.detach()?.floor()?;
                let after = before.plus(1)?;
                let (near, far) = (after.sub(&place)?, place.sub(&before)?);
                let taps = [(before, near), (after, far)].into_iter();
                taps.map(|(at, weight)| Tap::of(&at, size, Some(weight))).collect()
            }
            Interpolation::Cubic => {
                let before = place.detach()?.floor()?;
                let t = place.sub(&before)?;
                let mut taps = Taps::new();
                for (step, weight) in (-1..3).zip(cubic(&t)?) {
                    let at = self.moved_inside(&before.plus(step)?, size)?;
                    taps.push(Tap::of(&at, size, Some(weight))?);
                }
                Ok(taps)
            }
        }
    }
}

/// Keys' weights of the elements before and after a place, `t` beyond the second, with his parameter -0.75.
fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    // Of distances up to 1, and from 1 to 2.
    let near = |d: &Tensor| d.times(A + 2.0)?.plus(-(A + 3.0))?.mul(d)?.mul(d)?.plus(1.0);
    let far =
        |d: &Tensor| d.times(A)?.plus(-5.0 * A)?.mul(d)?.plus(8.0 * A)?.mul(d)?.plus(-4.0 * A);
    let rest = t.minus_from(1.0)?;
    Ok([far(&t.plus(1.0)?)?, near(t)?, near(&rest)?, far(&rest.plus(1.0)?)?])
}

/// The sum over all combinations of taps, of images (N, C, places of the image): (N, C, places).
fn interpolated(image: &Tensor, sizes: &[i64], dims: &[Taps]) -> Result<Tensor> {
    // From the outermost dimension on: each combination so far with each tap of the next one.
    let mut combinations: Vec<Tap> = Vec::new();
    for (taps, &size) in dims.iter().zip(sizes) {
        if combinations.is_empty() {
            combinations.extend(taps.iter().cloned());
            continue;
        }
        let mut next = Vec::with_capacity(combinations.len() * taps.len());
        for outer in &combinations {
            for inner in taps {
                next.push(joined(outer, inner, size)?);
            }
        }
        combinations = next;
    }
    let Some((first, rest)) = combinations.split_first() else { return image.zeros_like() };
    let value = picked(image, first)?;
    let start = match &first.weight {
        Some(weight) => value.mul(&weight.unsqueeze(1)?)?,
        None => value,
    };
    rest.iter().try_fold(start, |sum, tap| {
        let value = picked(image, tap)?;
        match &tap.weight {
            Some(weight) => sum.addcmul(&value, &weight.unsqueeze(1)?),
            None => sum.add(&value),
        }
    })
}

/// A tap with one of the next dimension, of `size`.
fn joined(outer: &Tap, inner: &Tap, size: i64) -> Result<Tap> {
    let index = outer.index.times(size)?.add(&inner.index)?;
    let inside = outer.inside.logical_and(&inner.inside)?;
    let weight = match (&outer.weight, &inner.weight) {
        (Some(a), Some(b)) => Some(a.mul(b)?),
        (a, b) => a.clone().or(b.clone()),
    };
    Ok(Tap { index, inside, weight })
}

/// The elements of one tap, zeros outside of the image.
fn picked(image: &Tensor, tap: &Tap) -> Result<Tensor> {
    let shape = [image.shape()[0], image.shape()[1], tap.index.shape()[1]];
    let index = tap.index.unsqueeze(1)?.expand(&shape, false)?;
    let outside = tap.inside.logical_not()?.unsqueeze(1)?;
    image.gather(2, &index)?.masked_fill(&outside, Scalar::Int(0))
}

/// Places inside and outside of the image, none of them whole.
fn grid_samples(s: &Sampler, sizes: &[i64]) -> Vec<Sample> {
    let rank = sizes.len() as i64;
    let mut image = vec![2, 2];
    image.extend_from_slice(sizes);
    let mut places = vec![2];
    places.extend(std::iter::repeat_n(2, sizes.len()));
    places.push(rank);
    let call = |mode: i64, outside: i64, align: bool| {
        let start = [s.normal(&image).into(), s.uniform(&places, -1.37, 1.43).into()];
        let call =
            Sample::new(start).with("interpolation_mode", mode).with("padding_mode", outside);
        call.with("align_corners", align)
    };
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let mut all = vec![
        call(0, 0, true),
        call(0, 1, false),
        call(0, 2, true),
        call(0, 2, false),
        call(1, 0, false),
        call(1, 2, true),
    ];
    if rank == 2 {
        all.extend([call(2, 0, true), call(2, 1, false), call(2, 2, false)]);
        let none = [s.normal(&[0, 2, 2, 2]).into(), s.normal(&[0, 1, 2, 2]).into()];
        let none = Sample::new(none).with("interpolation_mode", 0).with("padding_mode", 0);
        all.push(none.with("align_corners", true));
    }
    all
}
