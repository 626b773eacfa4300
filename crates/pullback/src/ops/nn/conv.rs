//! Convolutions of one to three spatial dimensions, plain and transposed.
//!
//! `convolution` is the one op with a kernel; its gradients are ops of their own, so that they can be
//! differentiated again: all three are bilinear and each is the derivative of the others.

use crate::dispatch::flops::multiply_adds;
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::ops::pointwise::arithmetic::by_both;
use crate::ops::pointwise::ternary::c_name;
use crate::tensor::shape::list;
use crate::tensor::{Cpu, checked_numel};
use crate::{DType, Dims, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::conv::{self as kernel, ConvOptions};
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &CONVOLUTION,
    &CONVOLUTION_BACKWARD_INPUT,
    &CONVOLUTION_BACKWARD_WEIGHT,
    &CONV1D,
    &CONV2D,
    &CONV3D,
    &CONV1D_PADDING,
    &CONV2D_PADDING,
    &CONV3D_PADDING,
    &CONV_TRANSPOSE1D,
    &CONV_TRANSPOSE2D,
    &CONV_TRANSPOSE3D,
];

/// One value per spatial dimension; a single value counts for all.
fn per_dim(values: &[i64], name: &str, spatial: usize, least: i64) -> Result<SmallVec<[usize; 3]>> {
    ensure!(
        values.len() == 1 || values.len() == spatial,
        runtime,
        "expected {name} to be a single integer value or a list of {spatial} values to match the convolution dimensions, but got {name}={}",
        list(values)
    );
    let is_allowed = values.iter().all(|&v| v >= least);
    ensure!(
        is_allowed || name != "dilation",
        runtime,
        "dilation should be greater than zero, but got {}",
        list(values)
    );
    let word = if least == 0 { "negative" } else { "non-positive" };
    ensure!(is_allowed, runtime, "{word} {name} is not supported");
    Ok((0..spatial).map(|i| values[i % values.len()] as usize).collect())
}

/// The geometry of a convolution as it is in the arguments of an op.
#[derive(Clone, Copy)]
struct ConvGeometry<'a> {
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: &'a [i64],
    transposed: bool,
    output_padding: &'a [i64],
    groups: i64,
}

/// Makes a [`ConvGeometry`] of the arguments of an op.
macro_rules! geometry {
    ($args:ident) => {
        ConvGeometry {
            stride: $args.stride,
            padding: $args.padding,
            dilation: $args.dilation,
            transposed: $args.transposed,
            output_padding: $args.output_padding,
            groups: $args.groups,
        }
    };
}

impl ConvGeometry<'_> {
    /// The checked geometry for an input of `rank` dimensions.
    fn options(self, rank: usize) -> Result<ConvOptions> {
        ensure!(
            (3..=5).contains(&rank),
            runtime,
            "expected a 3D, 4D or 5D input to convolution, but got {rank}D"
        );
        ensure!(self.groups > 0, runtime, "non-positive groups is not supported");
        let spatial = rank - 2;
        Ok(ConvOptions {
            stride: per_dim(self.stride, "stride", spatial, 1)?,
            padding: per_dim(self.padding, "padding", spatial, 0)?,
            dilation: per_dim(self.dilation, "dilation", spatial, 1)?,
            transposed: self.transposed,
            output_padding: per_dim(self.output_padding, "output_padding", spatial, 0)?,
            groups: self.groups as usize,
        })
    }
    /// Computes the convolution.
    fn convolve(self, input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        input.convolution(
            weight,
            bias,
            self.stride,
            self.padding,
            self.dilation,
            self.transposed,
            self.output_padding,
            self.groups,
        )
    }
    /// The gradient with respect to an input of `shape`.
    fn by_input(self, grad: &Tensor, weight: &Tensor, shape: &[i64]) -> Result<Tensor> {
        grad.convolution_backward_input(
            weight,
            shape,
            self.stride,
            self.padding,
            self.dilation,
            self.transposed,
            self.output_padding,
            self.groups,
        )
    }
    /// The gradient with respect to a weight of `shape`.
    fn by_weight(self, grad: &Tensor, input: &Tensor, shape: &[i64]) -> Result<Tensor> {
        grad.convolution_backward_weight(
            input,
            shape,
            self.stride,
            self.padding,
            self.dilation,
            self.transposed,
            self.output_padding,
            self.groups,
        )
    }
}

/// The spec in channels-last format if one of `images` is. (As in PyTorch, not for volumes in double precision.)
fn in_format_of_any(spec: TensorSpec, images: &[&Tensor]) -> TensorSpec {
    let has_kernel = spec.shape.len() == 4 || !matches!(spec.dtype, DType::F64 | DType::C128);
    if has_kernel && images.iter().any(|image| image.is_channels_last()) {
        return spec.channels_last();
    }
    spec
}

/// Refuses a gradient that is not of the shape of the output, or of another dtype than the tensor with which it is convolved.
fn check_gradient(grad: &Tensor, output: &[i64], other: &Tensor) -> Result<()> {
    check_dtypes(grad, other, None)?;
    ensure!(
        grad.shape() == output,
        runtime,
        "Expected grad_output of size {}, as the convolution gives it, but got {}",
        list(output),
        list(grad.shape())
    );
    Ok(())
}

/// The operations of multiplying each filter with each position of the smaller image: the result, or the input of a
/// transposed convolution.
fn flops_at(smaller: &[i64], weight: &[i64]) -> u64 {
    let positions = smaller.get(2..).unwrap_or(&[]);
    multiply_adds(smaller.first().into_iter().chain(positions).chain(weight))
}

/// The operations of the gradient with respect to filters of `weight_size`: each channel of an image is multiplied with
/// each channel of the gradient at each position of the smaller one. (Like PyTorch's count, this includes pairs of
/// channels of different groups, which are not computed.)
fn flops_of_weights(grad: &[i64], image: &[i64], transposed: bool, weight_size: &[i64]) -> u64 {
    let smaller = if transposed { image } else { grad };
    let positions =
        smaller.get(2..).unwrap_or(&[]).iter().chain(weight_size.get(2..).unwrap_or(&[]));
    multiply_adds(image.iter().take(2).chain(grad.get(1)).chain(positions))
}

/// The operations of a convolution of a batch of images, or of a single one.
fn flops_of_images(input: &Tensor, weight: &Tensor, geometry: ConvGeometry<'_>) -> Result<u64> {
    let image: Dims = [1].into_iter().take(weight.ndim().saturating_sub(input.ndim())).collect();
    let image: Dims = image.iter().chain(input.shape()).copied().collect();
    let options = geometry.options(image.len())?;
    Ok(flops_at(&kernel::output_shape(&image, weight.shape(), &options)?, weight.shape()))
}

fn check_dtypes(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    if let Some(bias) = bias {
        ensure!(
            input.dtype() == bias.dtype(),
            runtime,
            "Input type ({}) and bias type ({}) should be the same",
            c_name(input.dtype()),
            c_name(bias.dtype())
        );
    }
    ensure!(
        input.dtype() == weight.dtype(),
        runtime,
        "expected scalar type {} but found {}",
        input.dtype().scalar_name(),
        weight.dtype().scalar_name()
    );
    Ok(())
}

/// The convolution (cross-correlation) of `input` (N, C, *) with `weight` (O, C / groups, *kernel), plus `bias` (O),
/// over one to three spatial dimensions; with `transposed` the transposed convolution, which is the gradient of a
/// convolution with respect to its input, with `weight` (C, O / groups, *kernel).
#[op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    function_only, batch = convolution(input, weight, bias, transposed, groups)
)]
impl Convolution {
    fn meta(
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<TensorSpec> {
        ensure!(weight.ndim() >= 3, runtime, "weight should have at least three dimensions");
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        let conv = geometry.options(input.ndim())?;
        check_dtypes(input, weight, bias)?;
        let shape = kernel::output_shape(input.shape(), weight.shape(), &conv)?;
        if let Some(bias) = bias {
            ensure!(
                bias.shape() == [shape[1]],
                runtime,
                "Given {}weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size {} instead",
                if transposed { "transposed=1, " } else { "" },
                list(weight.shape()),
                shape[1],
                list(bias.shape())
            );
        }
        Ok(in_format_of_any(TensorSpec::beside(input, &shape), &[input, weight]))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<()> {
        if result.numel() == 0 {
            return Ok(());
        }
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        kernel::convolution(
            &mut result.view_mut(cpu),
            input.view_ref(cpu),
            weight.view_ref(cpu),
            bias.map(|t| t.view_ref(cpu)),
            &geometry.options(input.ndim())?,
        )?;
        Ok(())
    }
    fn flops(
        input: &Tensor,
        weight: &Tensor,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<u64> {
        if transposed {
            return Ok(flops_at(input.shape(), weight.shape()));
        }
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        let options = geometry.options(input.ndim())?;
        let output = kernel::output_shape(input.shape(), weight.shape(), &options)?;
        Ok(flops_at(&output, weight.shape()))
    }
    fn vjp_input(
        grad: &Tensor,
        weight: &Tensor,
        input_shape: &[i64],
        args: &ConvolutionArgs<'_>,
    ) -> Result<Tensor> {
        geometry!(args).by_input(grad, &weight.conj()?, input_shape)
    }
    fn vjp_weight(
        grad: &Tensor,
        input: &Tensor,
        weight_shape: &[i64],
        args: &ConvolutionArgs<'_>,
    ) -> Result<Tensor> {
        geometry!(args).by_weight(grad, &input.conj()?, weight_shape)
    }
    fn vjp_bias(grad: &Tensor) -> Result<Tensor> {
        let dims: Dims = (0..grad.ndim() as i64).filter(|&d| d != 1).collect();
        grad.sum_dim(Some(&dims), false)
    }
    fn jvp(
        input_p: &Tensor,
        input_t: Option<&Tensor>,
        weight_p: &Tensor,
        weight_t: Option<&Tensor>,
        bias_t: Option<&Tensor>,
        args: &ConvolutionArgs<'_>,
    ) -> Result<Option<Tensor>> {
        let conv = |input: &Tensor, weight: &Tensor| geometry!(args).convolve(input, weight, None);
        let by_bias = |t: &Tensor| {
            let mut shape = Dims::from_elem(1, input_p.ndim());
            shape[1] = -1;
            t.view(&shape)
        };
        let product =
            by_both(input_t.map(|t| conv(t, weight_p)), weight_t.map(|t| conv(input_p, t)))?;
        by_both(product.map(Ok), bias_t.map(by_bias))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |x: &[i64], w: &[i64], transposed: bool, groups: i64, (stride, padding): (i64, i64)| {
                let outs = if transposed { w[1] * groups } else { w[0] };
                Sample::new([
                    s.normal(x).into(),
                    s.normal(w).into(),
                    s.normal(&[outs]).into(),
                    Value::from([stride]),
                    Value::from([padding]),
                    Value::from([1]),
                    Value::Bool(transposed),
                    Value::from([0]),
                    Value::Int(groups),
                ])
            };
        vec![
            sample(&[2, 2, 5], &[3, 2, 3], false, 1, (1, 1)),
            sample(&[1, 2, 4, 5], &[2, 2, 3, 2], false, 1, (2, 1)),
            sample(&[1, 4, 3, 3], &[4, 2, 2, 2], false, 2, (1, 0)),
            sample(&[1, 2, 3, 3], &[2, 2, 2, 2], true, 1, (2, 0)),
        ]
    }
}

/// The gradient of `convolution` with respect to its input, bilinear in `grad_output` and `weight`.
#[op("_convolution_backward_input(Tensor grad_output, Tensor weight, int[] input_size, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
     internal, method = convolution_backward_input, batch = convolution_backward_input(grad_output, weight, input_size, groups))]
impl ConvolutionBackwardInput {
    fn meta(
        grad_output: &Tensor,
        weight: &Tensor,
        input_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<TensorSpec> {
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        let conv = geometry.options(input_size.len())?;
        checked_numel(input_size)?;
        if grad_output.numel() > 0 {
            let shape = kernel::output_shape(input_size, weight.shape(), &conv)?;
            check_gradient(grad_output, &shape, weight)?;
        }
        let spec = TensorSpec::beside(grad_output, input_size);
        Ok(in_format_of_any(spec, &[grad_output, weight]))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        weight: &Tensor,
        input_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<()> {
        result.zero_bytes();
        if grad_output.numel() == 0 {
            return Ok(());
        }
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        let options = geometry.options(input_size.len())?;
        let (grad, weight) = (grad_output.view_ref(cpu), weight.view_ref(cpu));
        let out = &mut result.view_mut(cpu);
        Ok(kernel::convolution_backward_input(out, grad, weight, &options)?)
    }
    fn flops(
        grad_output: &Tensor,
        weight: &Tensor,
        input_size: &[i64],
        transposed: bool,
    ) -> Result<u64> {
        Ok(flops_at(if transposed { input_size } else { grad_output.shape() }, weight.shape()))
    }
    fn vjp_grad_output(
        grad: &Tensor,
        weight: &Tensor,
        args: &ConvolutionBackwardInputArgs<'_>,
    ) -> Result<Tensor> {
        geometry!(args).convolve(grad, &weight.conj()?, None)
    }
    fn vjp_weight(
        grad: &Tensor,
        grad_output: &Tensor,
        weight_shape: &[i64],
        args: &ConvolutionBackwardInputArgs<'_>,
    ) -> Result<Tensor> {
        geometry!(args).by_weight(&grad_output.conj()?, grad, weight_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([
            s.normal(&[2, 3, 5]).into(),
            s.normal(&[3, 2, 3]).into(),
            Value::from([2, 2, 5]),
            Value::from([1]),
            Value::from([1]),
            Value::from([1]),
            Value::Bool(false),
            Value::from([0]),
            Value::Int(1),
        ])]
    }
}

/// The gradient of `convolution` with respect to its weight, bilinear in `grad_output` and `input`.
#[op("_convolution_backward_weight(Tensor grad_output, Tensor input, int[] weight_size, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
     internal, method = convolution_backward_weight, batch = convolution_backward_weight(grad_output, input, weight_size, groups))]
impl ConvolutionBackwardWeight {
    fn meta(
        grad_output: &Tensor,
        input: &Tensor,
        weight_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<TensorSpec> {
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        let conv = geometry.options(input.ndim())?;
        checked_numel(weight_size)?;
        if grad_output.numel() > 0 {
            let shape = kernel::output_shape(input.shape(), weight_size, &conv)?;
            check_gradient(grad_output, &shape, input)?;
        }
        Ok(in_format_of_any(TensorSpec::beside(grad_output, weight_size), &[input]))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        input: &Tensor,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
    ) -> Result<()> {
        result.zero_bytes();
        if grad_output.numel() == 0 {
            return Ok(());
        }
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        let options = geometry.options(input.ndim())?;
        let (grad, input) = (grad_output.view_ref(cpu), input.view_ref(cpu));
        let out = &mut result.view_mut(cpu);
        Ok(kernel::convolution_backward_weight(out, grad, input, &options)?)
    }
    fn flops(
        grad_output: &Tensor,
        input: &Tensor,
        weight_size: &[i64],
        transposed: bool,
    ) -> Result<u64> {
        Ok(flops_of_weights(grad_output.shape(), input.shape(), transposed, weight_size))
    }
    fn vjp_grad_output(
        grad: &Tensor,
        input: &Tensor,
        args: &ConvolutionBackwardWeightArgs<'_>,
    ) -> Result<Tensor> {
        geometry!(args).convolve(&input.conj()?, grad, None)
    }
    fn vjp_input(
        grad: &Tensor,
        grad_output: &Tensor,
        input_shape: &[i64],
        args: &ConvolutionBackwardWeightArgs<'_>,
    ) -> Result<Tensor> {
        geometry!(args).by_input(&grad_output.conj()?, grad, input_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([
            s.normal(&[2, 3, 5]).into(),
            s.normal(&[2, 2, 5]).into(),
            Value::from([3, 2, 3]),
            Value::from([1]),
            Value::from([1]),
            Value::from([1]),
            Value::Bool(false),
            Value::from([0]),
            Value::Int(1),
        ])]
    }
}

/// Calls `f` with a batch dimension added to an unbatched input, and removes it from the result.
fn batched(
    input: &Tensor,
    name: &str,
    spatial: usize,
    run: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    ensure!(
        input.ndim() == spatial + 1 || input.ndim() == spatial + 2,
        runtime,
        "Expected {}D (unbatched) or {}D (batched) input to {name}, but got input of size: {}",
        spatial + 1,
        spatial + 2,
        list(input.shape())
    );
    if input.ndim() == spatial + 2 { run(input) } else { run(&input.unsqueeze(0)?)?.squeeze_dim(0) }
}

/// A convolution with padding "same" (the output has the size of the input; for strides of 1 only) or "valid" (no
/// padding).
fn padded(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    padding: &str,
    (stride, dilation, groups): (&[i64], &[i64], i64),
) -> Result<Tensor> {
    if padding == "valid" {
        return input.convolution(weight, bias, stride, &[0], dilation, false, &[0], groups);
    }
    ensure!(padding == "same", runtime, "Invalid padding string: '{padding}'");
    if stride.iter().any(|&s| s != 1) {
        bail!(runtime, "padding='same' is not supported for strided convolutions");
    }
    let spatial = input.ndim() - 2;
    ensure!(
        weight.ndim() == spatial + 2,
        runtime,
        "expected a {}D weight, but got {}",
        spatial + 2,
        list(weight.shape())
    );
    ensure!(!dilation.is_empty(), runtime, "dilation cannot broadcast to {spatial} dimensions");
    let total =
        |d: usize| dilation[d % dilation.len()].saturating_mul((weight.shape()[d + 2] - 1).max(0));
    let left: Dims = (0..spatial).map(|d| total(d) / 2).collect();
    // An odd total has one more element of padding on the right.
    let extra: Dims = (0..spatial).rev().flat_map(|d| [0, total(d) % 2]).collect();
    let input = if extra.iter().any(|&e| e > 0) {
        input.constant_pad_nd(&extra, Scalar::Int(0))?
    } else {
        input.clone()
    };
    input.convolution(weight, bias, stride, &left, dilation, false, &[0], groups)
}

/// A call with random tensors of these shapes.
fn call(s: &Sampler, shapes: &[&[i64]]) -> Sample {
    Sample::new(shapes.iter().map(|shape| s.normal(shape).into()))
}

/// The convolution (cross-correlation) of (N, C, {IMAGE}) or (C, {IMAGE}) with `weight` (O, C / groups, {KERNEL}), plus
/// `bias` (O). Along each dimension a size `L` becomes `(L + 2 padding - dilation (kernel - 1) - 1) / stride + 1`,
/// rounded down.
#[op("conv{N}d(Tensor input, Tensor weight, Tensor? bias=None, int[{N}] stride=1, int[{N}] padding=0, int[{N}] dilation=1, int groups=1) -> Tensor",
     function_only, profiler_flops, autocast = lower,
     each(Conv1d { N: 1, IMAGE: "L", KERNEL: "k", SHAPES: &[&[2, 5], &[3, 2, 3]] },
          Conv2d { N: 2, IMAGE: "H, W", KERNEL: "kh, kw", SHAPES: &[&[1, 2, 4, 4], &[2, 2, 3, 3], &[2]] },
          Conv3d { N: 3, IMAGE: "D, H, W", KERNEL: "kd, kh, kw", SHAPES: &[&[1, 1, 2, 3, 3], &[1, 1, 2, 2, 2]] }))]
impl ConvNd {
    fn composite(
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        groups: i64,
    ) -> Result<Tensor> {
        batched(input, "conv{N}d", N, |x| {
            x.convolution(weight, bias, stride, padding, dilation, false, &[0], groups)
        })
    }
    fn flops(
        input: &Tensor,
        weight: &Tensor,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        groups: i64,
    ) -> Result<u64> {
        let (transposed, output_padding) = (false, &[0][..]);
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        flops_of_images(input, weight, geometry)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![call(s, SHAPES)]
    }
}

/// The convolution (cross-correlation) of (N, C, {IMAGE}) or (C, {IMAGE}) with `weight` (O, C / groups, {KERNEL}), plus
/// `bias` (O), with `padding` "valid" (none) or "same" (the result has the size of the input, for strides of 1).
#[op("conv{N}d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[{N}] stride=1, str padding=\"valid\", int[{N}] dilation=1, int groups=1) -> Tensor",
     function_only, profiler_flops, autocast = lower,
     each(Conv1dPadding { N: 1, SHAPES: &[&[1, 2, 5], &[3, 2, 2]] },
          Conv2dPadding { N: 2, SHAPES: &[&[1, 1, 3, 3], &[1, 1, 2, 3]] },
          Conv3dPadding { N: 3, SHAPES: &[&[1, 1, 2, 2, 2], &[1, 1, 2, 2, 2]] }))]
impl ConvNdPadding {
    fn composite(
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: &[i64],
        padding: &str,
        dilation: &[i64],
        groups: i64,
    ) -> Result<Tensor> {
        batched(input, "conv{N}d", N, |x| {
            padded(x, weight, bias, padding, (stride, dilation, groups))
        })
    }
    fn flops(
        input: &Tensor,
        weight: &Tensor,
        stride: &[i64],
        padding: &str,
        dilation: &[i64],
        groups: i64,
    ) -> Result<u64> {
        if padding == "same" {
            // (The result has the image's sizes.)
            let batch = usize::from(input.ndim() == N + 2);
            let sizes = input.shape().iter().skip(batch + 1);
            let batch = input.shape().iter().take(batch);
            return Ok(multiply_adds(batch.chain(sizes).chain(weight.shape())));
        }
        let (transposed, padding, output_padding) = (false, &[0][..], &[0][..]);
        let geometry =
            ConvGeometry { stride, padding, dilation, transposed, output_padding, groups };
        flops_of_images(input, weight, geometry)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![call(s, SHAPES).with("padding", "same")]
    }
}

/// The transposed convolution of (N, C, {IMAGE}) or (C, {IMAGE}) with `weight` (C, O / groups, {KERNEL}), plus `bias`
/// (O): the gradient of `conv{N}d` with respect to its input. Along each dimension a size `L` becomes `(L - 1) stride -
/// 2 padding + dilation (kernel - 1) + output_padding + 1`.
#[op("conv_transpose{N}d{OVERLOAD}(Tensor input, Tensor weight, Tensor? bias=None, int[{N}] stride=1, int[{N}] padding=0, int[{N}] output_padding=0, int groups=1, int[{N}] dilation=1) -> Tensor",
     function_only, autocast = lower,
     each(ConvTranspose1d { N: 1, OVERLOAD: "", IMAGE: "L", KERNEL: "k", SHAPES: &[&[1, 2, 3], &[2, 2, 2]], STRIDE: 2 },
          ConvTranspose2d { N: 2, OVERLOAD: ".input", IMAGE: "H, W", KERNEL: "kh, kw", SHAPES: &[&[1, 2, 2, 2], &[2, 1, 2, 2], &[1]], STRIDE: 1 },
          ConvTranspose3d { N: 3, OVERLOAD: ".input", IMAGE: "D, H, W", KERNEL: "kd, kh, kw", SHAPES: &[&[1, 1, 2, 2, 2], &[1, 1, 2, 2, 2]], STRIDE: 1 }))]
impl ConvTransposeNd {
    fn composite(
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: &[i64],
        padding: &[i64],
        output_padding: &[i64],
        groups: i64,
        dilation: &[i64],
    ) -> Result<Tensor> {
        batched(input, "conv_transpose{N}d", N, |x| {
            x.convolution(weight, bias, stride, padding, dilation, true, output_padding, groups)
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![call(s, SHAPES).with("stride", [STRIDE])]
    }
}
