//! Images resized without aliasing: each output pixel is a weighted mean over a neighbourhood that is as large as the
//! pixel itself.
//!
//! Resizing is linear and separable, so it is a product with one matrix for each dimension.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&UPSAMPLE_BILINEAR2D_AA, &UPSAMPLE_BILINEAR2D_AA_BACKWARD, &UPSAMPLE_BILINEAR2D_AA_VEC];

/// Images (N, C, H, W) resized to `output_size` by bilinear interpolation with antialiasing: where the image shrinks,
/// the triangular filter is as wide as an output pixel. `scales_h` and `scales_w` are the ratios of the sizes, and
/// unused with `align_corners`.
#[op("_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
     module = "nn", function_only, jvp = linear, method = upsample_bilinear2d_aa, batch = batches2)]
impl UpsampleBilinear2dAa {
    fn meta(self_: &Tensor, output_size: &[i64]) -> Result<TensorSpec> {
        let [height, width] = *output_size else {
            bail!(
                runtime,
                "It is expected output_size equals to 2, but got size {}",
                output_size.len()
            )
        };
        check(self_, [height, width])
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        output_size: &[i64],
        align_corners: bool,
        scales_h: Option<f64>,
        scales_w: Option<f64>,
    ) -> Result<()> {
        let factors = [scales_h, scales_w];
        let [rows, columns] = axes(self_.shape(), output_size, align_corners, factors);
        let image = if self_.dtype() == DType::U8 {
            rounded(cpu, &rounded(cpu, self_, &columns)?.transpose(-2, -1)?, &rows)?
                .transpose(-2, -1)?
        } else {
            resized(cpu, &resized(cpu, self_, &columns, -1)?, &rows, -2)?
        };
        result.copy_data(cpu, &image)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        output_size: &[i64],
        align_corners: bool,
        scales_h: Option<f64>,
        scales_w: Option<f64>,
    ) -> Result<Tensor> {
        grad.upsample_bilinear2d_aa_backward(
            output_size,
            self_shape,
            align_corners,
            scales_h,
            scales_w,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |size: &[i64], align: bool| {
            let call = Sample::of(s.normal(&[1, 2, 3, 4])).with("output_size", size);
            call.with("align_corners", align)
        };
        vec![
            call(&[2, 2], false),
            call(&[5, 6], true),
            call(&[2, 6], false).with("scales_h", 0.4).with("scales_w", 1.5),
            Sample::of(s.normal(&[1, 1, 2, 35]))
                .with("output_size", [34, 33])
                .with("align_corners", false),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |image: Tensor, size: &[i64], kind, phrase| {
            let sample = Sample::of(image).with("output_size", size).with("align_corners", false);
            InvalidSample::new(sample, kind, phrase)
        };
        let (image, runtime) = (|shape: &[i64]| s.normal(shape), ErrorKind::Runtime);
        let half = image(&[1, 1, 2, 2]).to_dtype(DType::F16).expect("samples are small");
        vec![
            bad(image(&[1, 2, 2]), &[2, 2], runtime, "It is expected input_size equals to 4"),
            bad(image(&[1, 1, 2, 2]), &[2], runtime, "It is expected output_size equals to 2"),
            bad(image(&[1, 1, 2, 2]), &[0, 2], runtime, "output sizes should be greater than 0"),
            bad(image(&[1, 0, 2, 2]), &[2, 2], runtime, "Non-empty 4D data tensor expected"),
            bad(
                half,
                &[1, 1],
                ErrorKind::NotImplemented,
                "\"compute_index_ranges_weights\" not implemented for 'Half'",
            ),
        ]
    }
}

/// The gradient of `_upsample_bilinear2d_aa` with respect to an image of `input_size`.
#[op("_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
     internal, jvp = linear, method = upsample_bilinear2d_aa_backward, batch = batches2)]
impl UpsampleBilinear2dAaBackward {
    fn meta(grad_output: &Tensor, output_size: &[i64], input_size: &[i64]) -> Result<TensorSpec> {
        let [images, channels, h, w] = *input_size else {
            bail!(
                runtime,
                "It is expected input_size equals to 4, but got size {}",
                input_size.len()
            )
        };
        let is_floating = grad_output.dtype().is_floating_point();
        let fits = output_size.len() == 2
            && grad_output.shape() == [&[images, channels], output_size].concat().as_slice();
        ensure!(
            fits && is_floating && h > 0 && w > 0,
            runtime,
            "Expected the gradient of images of size {} from those of input_size {}, but got {} of {}",
            list(output_size),
            list(input_size),
            list(grad_output.shape()),
            grad_output.dtype().spelled()
        );
        Ok(TensorSpec::in_format_of(grad_output, input_size))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        output_size: &[i64],
        input_size: &[i64],
        align_corners: bool,
        scales_h: Option<f64>,
        scales_w: Option<f64>,
    ) -> Result<()> {
        let factors = [scales_h, scales_w];
        let [rows, columns] = axes(input_size, output_size, align_corners, factors);
        let image =
            resized_transpose(cpu, &resized_transpose(cpu, grad_output, &rows, -2)?, &columns, -1)?;
        result.copy_data(cpu, &image)
    }
    fn vjp_grad_output(
        grad: &Tensor,
        output_size: &[i64],
        align_corners: bool,
        scales_h: Option<f64>,
        scales_w: Option<f64>,
    ) -> Result<Tensor> {
        grad.upsample_bilinear2d_aa(output_size, align_corners, scales_h, scales_w)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |image: &[i64], size: &[i64]| {
            let call = Sample::of(s.normal(&[image[0], image[1], size[0], size[1]]));
            let call = call.with("output_size", size).with("input_size", image);
            call.with("align_corners", false)
        };
        vec![call(&[1, 2, 3, 4], &[2, 2]), call(&[1, 1, 2, 35], &[34, 33])]
    }
}

/// Images (N, C, H, W) resized by bilinear interpolation with antialiasing, to `output_size` or to their sizes
/// multiplied by `scale_factors`.
#[op("_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
     module = "nn", function_only, method = upsample_bilinear2d_aa_vec)]
impl UpsampleBilinear2dAaVec {
    fn composite(
        input: &Tensor,
        output_size: Option<&[i64]>,
        align_corners: bool,
        scale_factors: Option<&[f64]>,
    ) -> Result<Tensor> {
        match (output_size, scale_factors) {
            (Some(size), None) => input.upsample_bilinear2d_aa(size, align_corners, None, None),
            (None, Some(factors)) => {
                let ([high, wide], Some([.., h, w])) = (factors, input.shape().get(2..)) else {
                    bail!(
                        runtime,
                        "It is expected scale_factors equals to 2 for an image (N, C, H, W), but got {} for shape {}",
                        factors.len(),
                        list(input.shape())
                    )
                };
                let size = [(*h as f64 * high) as i64, (*w as f64 * wide) as i64];
                input.upsample_bilinear2d_aa(&size, align_corners, Some(*high), Some(*wide))
            }
            _ => bail!(runtime, "Must specify exactly one of output_size and scale_factors"),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = || Sample::of(s.normal(&[1, 1, 4, 3])).with("align_corners", false);
        let factors = Value::Floats([0.5, 1.5].as_slice().into());
        vec![
            call().with("output_size", [3, 2]).with("scale_factors", Value::None),
            call().with("output_size", Value::None).with("scale_factors", factors),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = Sample::of(s.normal(&[1, 1, 4, 3])).with("align_corners", false);
        let call = call.with("output_size", Value::None).with("scale_factors", Value::None);
        let phrase = "Must specify exactly one of output_size and scale_factors";
        vec![InvalidSample::new(call, ErrorKind::Runtime, phrase)]
    }
}

/// The spec of the resized image. Refuses tensors and sizes that are no images.
fn check(image: &Tensor, [height, width]: [i64; 2]) -> Result<TensorSpec> {
    let [_, channels, h, w] = *image.shape() else {
        bail!(runtime, "It is expected input_size equals to 4, but got size {}", image.ndim())
    };
    ensure!(
        h > 0 && w > 0 && height > 0 && width > 0,
        runtime,
        "Input and output sizes should be greater than 0, but got input (H: {h}, W: {w}) output (H: {height}, W: {width})"
    );
    ensure!(
        channels > 0,
        runtime,
        "Non-empty 4D data tensor expected but got a tensor with sizes {}",
        list(image.shape())
    );
    ensure!(
        matches!(image.dtype(), DType::F32 | DType::F64 | DType::U8),
        not_implemented,
        "\"compute_index_ranges_weights\" not implemented for '{}'",
        image.dtype().scalar_name()
    );
    Ok(TensorSpec::in_format_of(image, &[image.shape()[0], channels, height, width]))
}

/// A dimension that is resized, from and to which size.
#[derive(Clone, Copy)]
struct Axis {
    from: i64,
    to: i64,
    align_corners: bool,
    factor: Option<f64>,
}

impl Axis {
    /// The distance of output pixels in units of input pixels.
    fn scale(&self) -> f64 {
        if self.align_corners {
            return if self.to > 1 { (self.from - 1) as f64 / (self.to - 1) as f64 } else { 0.0 };
        }
        match self.factor {
            Some(factor) if factor > 0.0 => 1.0 / factor,
            _ => self.from as f64 / self.to as f64,
        }
    }

    /// Centre of an output pixel and half the width of its filter, in units of input pixels.
    fn centre_and_width(&self, row: i64) -> (f64, f64) {
        let scale = self.scale();
        (scale * (row as f64 + 0.5), scale.max(1.0))
    }

    /// The range of input pixels that the output pixels `start..end` depend on.
    fn support(&self, start: i64, end: i64) -> (i64, i64) {
        let ((first, width), (last, _)) =
            (self.centre_and_width(start), self.centre_and_width(end - 1));
        let within = |x: f64| (x as i64).clamp(0, self.from);
        (within(first - width + 0.5), within(last + width + 0.5))
    }

    /// The output pixels `start..end` with their weights.
    fn block(&self, cpu: Cpu, start: i64, end: i64) -> Result<FilterBlock> {
        let (first, last) = self.support(start, end);
        let weights = TensorSpec::of(&[end - start, last - first], DType::F64).zeros()?;
        let mut view = weights.view_mut(cpu);
        let rows = view.as_slice_mut::<f64>().unwrap_or_default();
        let width = (last - first).max(1) as usize;
        for (row, weights) in (start..end).zip(rows.chunks_mut(width)) {
            let (centre, width) = self.centre_and_width(row);
            let (from, to) = self.support(row, row + 1);
            let Some(support) = weights.get_mut((from - first) as usize..(to - first) as usize)
            else {
                continue;
            };
            for (j, weight) in (from..to).zip(&mut *support) {
                let distance = (j as f64 - centre + 0.5) / width;
                *weight = (1.0 - distance.abs()).max(0.0);
            }
            let sum: f64 = support.iter().sum();
            if sum != 0.0 {
                for weight in support {
                    *weight /= sum;
                }
            }
        }
        Ok(FilterBlock { start, end, first, last, weights })
    }

    /// The output pixels in blocks. Neighbouring output pixels depend on neighbouring input pixels, so that the weights
    /// of a block are a small matrix; the matrix of all weights would take as much memory as many images.
    fn blocks(self, cpu: Cpu) -> impl Iterator<Item = Result<FilterBlock>> {
        let starts = (0..self.to).step_by(BLOCK as usize);
        starts.map(move |start| self.block(cpu, start, self.to.min(start + BLOCK)))
    }
}

/// The output pixels `start..end` and the input pixels `first..last` that they depend on.
struct FilterBlock {
    start: i64,
    end: i64,
    first: i64,
    last: i64,
    /// The weight of each input pixel (column) in each output pixel (row), in double precision.
    weights: Tensor,
}

impl FilterBlock {
    /// The weights on the device and in the dtype of `image`.
    fn weights_for(&self, cpu: Cpu, image: &Tensor) -> Result<Tensor> {
        self.weights.in_dtype(cpu, image.dtype())?.brought_to(image)
    }
}

/// The number of output pixels that one matrix product computes.
const BLOCK: i64 = 32;

/// The last two dimensions of images of shape `from` that are resized to `to`.
fn axes(from: &[i64], to: &[i64], align_corners: bool, factors: [Option<f64>; 2]) -> [Axis; 2] {
    let axis = |i: usize| Axis { from: from[i + 2], to: to[i], align_corners, factor: factors[i] };
    [axis(0), axis(1)]
}

/// The range `start..end` of `t` along `dim`.
fn part(t: &Tensor, dim: i64, start: i64, end: i64) -> Result<Tensor> {
    if start == 0 && end == t.shape()[(t.ndim() as i64 + dim) as usize] {
        return Ok(t.clone());
    }
    t.narrow(dim, start, end - start)
}

/// Resizes one of the last two dimensions: each block of output pixels is a product with a range of the image.
fn resized(cpu: Cpu, image: &Tensor, axis: &Axis, dim: i64) -> Result<Tensor> {
    let product = |block: Result<FilterBlock>| {
        let block = block?;
        let support = part(image, dim, block.first, block.last)?;
        let weights = block.weights_for(cpu, image)?;
        if dim == -1 { support.matmul(&weights.transpose(0, 1)?) } else { weights.matmul(&support) }
    };
    joined(&axis.blocks(cpu).map(product).collect::<Result<Vec<_>>>()?, dim)
}

fn joined(parts: &[Tensor], dim: i64) -> Result<Tensor> {
    match parts {
        [one] => Ok(one.clone()),
        many => crate::ops::shape::join::cat(many, dim),
    }
}

/// The transpose of [`resized`]: the gradients of each block of output pixels are added to the input pixels that they
/// depend on.
fn resized_transpose(cpu: Cpu, grad: &Tensor, axis: &Axis, dim: i64) -> Result<Tensor> {
    let mut shape = Dims::from_slice(grad.shape());
    let at = (grad.ndim() as i64 + dim) as usize;
    shape[at] = axis.from;
    let out = TensorSpec::beside(grad, &shape).zeros()?;
    for block in axis.blocks(cpu) {
        let block = block?;
        let grad = part(grad, dim, block.start, block.end)?;
        let weights = block.weights_for(cpu, &grad)?;
        let by_seen = if dim == -1 {
            grad.matmul(&weights)?
        } else {
            weights.transpose(0, 1)?.matmul(&grad)?
        };
        part(&out, dim, block.first, block.last)?.add_(&by_seen)?;
    }
    Ok(out)
}

/// Resizes the last dimension of uint8 images, with weights rounded to multiples of the finest power of two that fits
/// 15 bits: results are the same on all machines.
fn rounded(cpu: Cpu, image: &Tensor, axis: &Axis) -> Result<Tensor> {
    let mut most = 0.0_f64;
    for block in axis.blocks(cpu) {
        most = block?.weights.to_vec::<f64>()?.into_iter().fold(most, f64::max);
    }
    let fits = |bits: &i32| (0.5 + most * f64::from(1 << (bits + 1))) < f64::from(1 << 15);
    let bits = (0..22).find(|bits| !fits(bits)).unwrap_or(22);
    let unit = f64::from(1 << bits);
    let bytes = |block: Result<FilterBlock>| {
        let block = block?;
        // Weights are not negative, so that rounding half up is `floor(x + 0.5)`.
        let weights = block.weights.times(unit)?.plus(0.5)?.floor()?.brought_to(image)?;
        let support = part(image, -1, block.first, block.last)?.to_dtype(DType::F64)?;
        let sums = support.matmul(&weights.transpose(0, 1)?)?;
        let bytes = sums.plus(unit / 2.0)?.over(unit)?.floor()?;
        bytes.clamp(Some(0.into()), Some(255.into()))?.to_dtype(DType::U8)
    };
    joined(&axis.blocks(cpu).map(bytes).collect::<Result<Vec<_>>>()?, -1)
}
