//! Sampling images at any positions, and grids of positions from affine maps.
//!
//! Coordinates are relative: -1 and 1 are the ends of a dimension. Values and gradients are one kernel each; where
//! derivatives of gradients may be needed, gradients are made of differentiable ops (`grid_derivative`). Not here:
//! resizing (`antialias`).

use super::grid_derivative;
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::check_shape;
use pullback_kernels::grid::{self as kernel, Interpolation, PaddingMode, SampleOptions};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &GRID_SAMPLER,
    &GRID_SAMPLER2D,
    &GRID_SAMPLER3D,
    &GRID_SAMPLER_BACKWARD,
    &AFFINE_GRID_GENERATOR,
];

/// The values of `input` (N, C, *sizes) at the positions `grid` (N, *out, d), interpolated: (N, C, *out).
///
/// The last dimension of `grid` holds coordinates from -1 to 1, that of the innermost dimension of the image first.
/// `interpolation_mode` is 0 (linear), 1 (nearest) or 2 (cubic); `padding_mode` says what is
/// outside of the image: 0 (zeros), 1 (the border) or 2 (reflections). With `align_corners` -1 and 1 are the centres of
/// the outermost elements, else their outer edges. At the centre of an element the gradient of the position is that of
/// the interval after it; where a position is clamped to the border, and for mode 1, it is 0.
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
        if input.ndim() == 4 {
            return input.grid_sampler_2d(grid, interpolation_mode, padding_mode, align_corners);
        }
        input.grid_sampler_3d(grid, interpolation_mode, padding_mode, align_corners)
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
        let shape = &[1, 2, 2, 2];
        vec![
            bad(&[2, 1, 3, 4], shape, 0, "expected grid and input to have same batch size"),
            bad(&[1, 1, 3, 4], &[1, 2, 2, 3], 0, "expected grid to have size 2 in last dimension"),
            bad(&[1, 1, 0, 4], shape, 0, "expected input to have non-empty spatial dimensions"),
            bad(&[1, 1, 3, 4], shape, 3, "invalid interpolation_mode: 3"),
        ]
    }
}

/// The values of images `input` (N, C, H, W) at the positions `grid` (N, H', W', 2), interpolated: (N, C, H', W'). The
/// arguments are those of `grid_sampler`.
#[op("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     function_only, method = grid_sampler_2d, batch = image2)]
impl GridSampler2d {
    fn meta(
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<TensorSpec> {
        sampling(interpolation_mode, padding_mode, align_corners)?;
        sample_spec(input, grid, 2)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<()> {
        let sampling = sampling(interpolation_mode, padding_mode, align_corners)?;
        let (input, grid) = (input.view_ref(cpu), grid.view_ref(cpu));
        Ok(kernel::grid_sample(&mut result.view_mut(cpu), input, grid, sampling)?)
    }
    fn vjp(
        grad: &Tensor,
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        gradients(grad, [input, grid], (interpolation_mode, padding_mode, align_corners), needs)
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

/// The values of volumes `input` (N, C, D, H, W) at the positions `grid` (N, D', H', W', 3), interpolated: (N, C, D',
/// H', W'). The arguments are those of `grid_sampler`.
#[op("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     function_only, method = grid_sampler_3d, batch = image3)]
impl GridSampler3d {
    fn meta(
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<TensorSpec> {
        sampling(interpolation_mode, padding_mode, align_corners)?;
        sample_spec(input, grid, 3)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<()> {
        let sampling = sampling(interpolation_mode, padding_mode, align_corners)?;
        let (input, grid) = (input.view_ref(cpu), grid.view_ref(cpu));
        Ok(kernel::grid_sample(&mut result.view_mut(cpu), input, grid, sampling)?)
    }
    fn vjp(
        grad: &Tensor,
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        gradients(grad, [input, grid], (interpolation_mode, padding_mode, align_corners), needs)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        grid_samples(s, &[2, 3, 2])
    }
}

/// The gradients of `grid_sampler` with respect to images and positions, those that `output_mask` (bits 1, 2) asks for;
/// the others are empty. They are computed by a kernel and not recorded.
#[op("_grid_sampler_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, int output_mask) -> (Tensor, Tensor)",
     internal, not_differentiable, method = grid_sampler_backward)]
impl GridSamplerBackward {
    fn meta(
        grad_output: &Tensor,
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
        output_mask: i64,
    ) -> Result<[TensorSpec; 2]> {
        sampling(interpolation_mode, padding_mode, align_corners)?;
        let output = sample_spec(input, grid, input.ndim().saturating_sub(2))?;
        check_shape("grad_output", grad_output.shape(), &output.shape)?;
        let room = |like: &Tensor, bit: i64| {
            TensorSpec::beside(like, if output_mask & bit != 0 { like.shape() } else { &[0] })
        };
        Ok([room(input, 1), room(grid, 2)])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        grad_output: &Tensor,
        input: &Tensor,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
        output_mask: i64,
    ) -> Result<()> {
        kernel::grid_sample_backward(
            (output_mask & 1 != 0).then(|| result0.view_mut(cpu)).as_mut(),
            (output_mask & 2 != 0).then(|| result1.view_mut(cpu)).as_mut(),
            grad_output.view_ref(cpu),
            input.view_ref(cpu),
            grid.view_ref(cpu),
            sampling(interpolation_mode, padding_mode, align_corners)?,
        )?;
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |out: &[i64], image: &[i64], positions: &[i64], mask: i64| {
            let start = [s.normal(out).into(), s.normal(image).into(), s.normal(positions).into()];
            let call = Sample::new(start).with("interpolation_mode", 0).with("padding_mode", 1);
            call.with("align_corners", false).with("output_mask", mask)
        };
        vec![
            call(&[1, 2, 2, 1], &[1, 2, 3, 4], &[1, 2, 1, 2], 3),
            call(&[1, 1, 1, 1, 3], &[1, 1, 2, 2, 2], &[1, 1, 1, 3, 3], 2),
        ]
    }
}

/// The positions (N, *sizes, d) to which the affine maps `theta` (N, d, d + 1) take the elements of an image of `size`
/// (N, C, *sizes), all in the coordinates from -1 to 1 that `grid_sampler` takes.
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
            let line = centred(count, align_corners)?.to_dtype(theta.dtype())?.brought_to(theta)?;
            columns.push(line.view(&along)?.expand(spatial, false)?);
        }
        columns.push(TensorSpec::beside(theta, spatial).zeros()?.plus(1)?);
        let positions = crate::ops::shape::join::stack(&columns, -1)?.view(&[-1, rank + 1])?;
        let mut shape = Dims::from_slice(&[batch]);
        shape.extend_from_slice(spatial);
        shape.push(rank);
        positions.matmul(&theta.transpose(1, 2)?)?.view(&shape)
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

/// The relative coordinates of `count` elements in a row, in double precision; 0 for one element.
fn centred(count: i64, align_corners: bool) -> Result<Tensor> {
    ensure!(count >= 0, runtime, "Expected non-negative sizes, but got {count}");
    let from_one = TensorSpec::of(&[count], DType::F64).zeros()?.plus(1)?.cumsum(0)?;
    let whole = if align_corners { (count - 1).max(1) } else { count.max(1) };
    // (2 i + 1 - count) / whole, for i from 0.
    from_one.times(2)?.plus(-1 - count)?.over(whole)
}

/// The checks that hold for images of any rank.
fn check_common(input: &Tensor, grid: &Tensor) -> Result<()> {
    let (sizes, positions) = (|| list(input.shape()), || list(grid.shape()));
    ensure!(
        input.ndim() >= 2 && grid.ndim() >= 1,
        runtime,
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {} and grid with sizes {}",
        sizes(),
        positions()
    );
    ensure!(
        input.shape()[0] == grid.shape()[0],
        runtime,
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes {} and grid with sizes {}",
        sizes(),
        positions()
    );
    let rank = input.ndim() - 2;
    ensure!(
        grid.shape().last() == Some(&(rank as i64)),
        runtime,
        "grid_sampler(): expected grid to have size {rank} in last dimension, but got grid with sizes {}",
        positions()
    );
    if let Some(dim) = (2..input.ndim()).find(|&d| input.shape()[d] == 0) {
        bail!(
            runtime,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {} with dimension {dim} being empty",
            sizes()
        );
    }
    Ok(())
}

/// The options of sampling from PyTorch's codes.
pub(in crate::ops) fn sampling(
    interpolation: i64,
    outside: i64,
    align_corners: bool,
) -> Result<SampleOptions> {
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
        0 => PaddingMode::Zeros,
        1 => PaddingMode::Border,
        2 => PaddingMode::Reflection,
        other => {
            bail!(runtime, "grid_sampler(): invalid padding_mode: {other} (expected 0, 1 or 2)")
        }
    };
    Ok(SampleOptions { interpolation, padding_mode: outside, align_corners })
}

fn check(input: &Tensor, grid: &Tensor, rank: usize) -> Result<()> {
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

/// The spec of the values of `input` at the positions `grid`.
fn sample_spec(input: &Tensor, grid: &Tensor, rank: usize) -> Result<TensorSpec> {
    check(input, grid, rank)?;
    let mut shape = Dims::from_slice(&input.shape()[..2]);
    shape.extend_from_slice(&grid.shape()[1..=rank]);
    Ok(TensorSpec::beside(input, &shape))
}

fn gradients(
    grad: &Tensor,
    [input, grid]: [&Tensor; 2],
    (interpolation, outside, align_corners): (i64, i64, bool),
    needs: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    if crate::autograd::needs_ops([Some(grad), Some(input), Some(grid)]) {
        let sampling = sampling(interpolation, outside, align_corners)?;
        return grid_derivative::gradients(sampling, grad, [input, grid], needs);
    }
    let mask = i64::from(needs[0]) + 2 * i64::from(needs[1]);
    let [by_input, by_grid] =
        grad.grid_sampler_backward(input, grid, interpolation, outside, align_corners, mask)?;
    Ok([needs[0].then_some(by_input), needs[1].then_some(by_grid)])
}

/// Positions inside and outside of the image, none of them at the centre of an element.
fn grid_samples(s: &Sampler, sizes: &[i64]) -> Vec<Sample> {
    let rank = sizes.len() as i64;
    let mut image = vec![2, 2];
    image.extend_from_slice(sizes);
    let mut positions = vec![2];
    positions.extend(std::iter::repeat_n(2, sizes.len()));
    positions.push(rank);
    let call = |mode: i64, outside: i64, align: bool| {
        let start = [s.normal(&image).into(), s.uniform(&positions, -1.37, 1.43).into()];
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
    all.extend([call(2, 0, true), call(2, 1, false), call(2, 2, false)]);
    if rank == 2 {
        let none = [s.normal(&[0, 2, 2, 2]).into(), s.normal(&[0, 1, 2, 2]).into()];
        let none = Sample::new(none).with("interpolation_mode", 0).with("padding_mode", 0);
        all.push(none.with("align_corners", true));
    }
    all
}
