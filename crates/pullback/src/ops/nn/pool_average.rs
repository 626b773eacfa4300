//! Average pooling over one to three spatial dimensions: of windows, and of nearly equal parts (adaptive).
//!
//! The one-dimensional forms are two-dimensional ones over a plane of height 1, as in PyTorch. Gradients are linear ops
//! of the sizes alone.

use super::pool_window::{
    WindowArgs, adaptive_shape, average, check_filled, check_filled_from, check_image, check_line,
    check_planes, check_rank, row,
};
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, wrap_own_dim};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::pool::{self as kernel, PoolWindow};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &AVG_POOL1D,
    &AVG_POOL2D,
    &AVG_POOL2D_BACKWARD,
    &AVG_POOL3D,
    &AVG_POOL3D_BACKWARD,
    &ADAPTIVE_AVG_POOL_KERNEL,
    &ADAPTIVE_AVG_POOL_BACKWARD,
    &ADAPTIVE_AVG_POOL3D_KERNEL,
    &ADAPTIVE_AVG_POOL3D_BACKWARD,
    &ADAPTIVE_AVG_POOL1D,
    &ADAPTIVE_AVG_POOL2D,
    &ADAPTIVE_AVG_POOL3D,
];

/// The window of average pooling over planes or volumes.
fn mean_window(
    spatial: usize,
    [kernel_size, stride, padding]: [&[i64]; 3],
    ceil_mode: bool,
) -> Result<PoolWindow> {
    let name = if spatial == 2 { "avg_pool2d" } else { "avg_pool3d" };
    WindowArgs { kernel_size, stride, padding, dilation: &[1], ceil_mode }.window(name, spatial)
}

/// The spec of a tensor of this shape with the dtype and device of `x`, in channels-last format if `x` is.
fn image_spec(x: &Tensor, shape: &[i64], spatial: usize) -> TensorSpec {
    if spatial == 2 { TensorSpec::in_format_of(x, shape) } else { TensorSpec::beside(x, shape) }
}

/// The spec of average pooling over planes.
fn plane_means(x: &Tensor, window: &PoolWindow) -> Result<TensorSpec> {
    wrap_own_dim(-3, x.ndim())?;
    check_image("", x, 2)?;
    Ok(image_spec(x, &kernel::output_shape(x.shape(), window)?, 2))
}

/// The spec of average pooling over volumes.
fn volume_means(x: &Tensor, window: &PoolWindow) -> Result<TensorSpec> {
    check_rank(x, 3)?;
    check_filled("avg_pool3d", x, 3)?;
    let sizes = &x.shape()[x.ndim() - 3..];
    let fits = sizes.iter().zip(&window.kernel).all(|(&size, &k)| size >= k as i64);
    if let ([t, h, w], [kt, kh, kw]) = (sizes, &window.kernel[..]) {
        ensure!(
            fits,
            runtime,
            "input image (T: {t} H: {h} W: {w}) smaller than kernel size (kT: {kt} kH: {kh} kW: {kw})"
        );
    }
    let shape = kernel::output_shape(x.shape(), window)?;
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64 | DType::I64),
        not_implemented,
        "\"avg_pool3d_out_frame\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok(image_spec(x, &shape, 3))
}

fn plane_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[1, 2, 4, 4])).with("kernel_size", [2]),
        Sample::of(s.normal(&[1, 5, 4]))
            .with("kernel_size", [3, 2])
            .with("padding", [1])
            .with("count_include_pad", false),
    ]
}

fn volume_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[1, 2, 2, 4, 4])).with("kernel_size", [2]),
        Sample::of(s.normal(&[1, 3, 5, 4]))
            .with("kernel_size", [2, 3, 2])
            .with("stride", [1, 2, 1])
            .with("padding", [1, 1, 0])
            .with("ceil_mode", true)
            .with("count_include_pad", false),
        Sample::of(s.normal(&[1, 3, 3, 3])).with("kernel_size", [2]).with("divisor_override", 3),
        Sample::of(s.normal(&[0, 1, 2, 2, 2])).with("kernel_size", [2]),
    ]
}

/// The mean of each window of the last {DIMS} dimensions. Padding counts as zeros with `count_include_pad`, else it is
/// left out of the mean; `divisor_override` replaces the number of elements.
#[op("avg_pool{N}d(Tensor self, int[{N}] kernel_size, int[{N}] stride=[], int[{N}] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     module = "nn", OUT, jvp = linear, node = "AvgPool{N}D", batch = BATCH,
     each(AvgPool2d { N: 2, DIMS: "two", OUT:, BATCH: image2, SPEC: plane_means, BACKWARD: avg_pool2d_backward, SAMPLES: plane_samples,
                      WITHOUT_CHANNELS: (ErrorKind::Index, "Dimension out of range"), SMALL: "Output size is too small" },
          AvgPool3d { N: 3, DIMS: "three", OUT: exact_out, BATCH: image3, SPEC: volume_means, BACKWARD: avg_pool3d_backward, SAMPLES: volume_samples,
                      WITHOUT_CHANNELS: (ErrorKind::Runtime, "non-empty 4D or 5D (batch mode) tensor"), SMALL: "smaller than kernel size (kT: 2" }))]
impl AvgPoolNd {
    fn meta(self_: &Tensor, args: &AvgPoolNdArgs<'_>) -> Result<TensorSpec> {
        let a = args;
        let window = mean_window(N, [a.kernel_size, a.stride, a.padding], a.ceil_mode)?;
        average(a.count_include_pad, a.divisor_override)?;
        SPEC(self_, &window)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Option<i64>,
    ) -> Result<()> {
        let window = mean_window(N, [kernel_size, stride, padding], ceil_mode)?;
        let how = average(count_include_pad, divisor_override)?;
        Ok(kernel::avg_pool(&mut result.view_mut(cpu), self_.view_ref(cpu), &window, how)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], args: &AvgPoolNdArgs<'_>) -> Result<Tensor> {
        let a = args;
        grad.BACKWARD(
            self_shape,
            a.kernel_size,
            a.stride,
            a.padding,
            a.ceil_mode,
            a.count_include_pad,
            a.divisor_override,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() { Vec::new() } else { SAMPLES(s) }
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let image = |shape: &[i64]| Sample::of(s.normal(shape));
        let call = |shape: &[i64]| image(shape).with("kernel_size", [2]);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let item = || call(&[1, 4, 4, 4][..=N]);
        let (kind, phrase) = WITHOUT_CHANNELS;
        vec![
            InvalidSample::new(call(&[4, 4, 4][..N]), kind, phrase),
            bad(
                image(&[1, 4, 4, 4][..=N]).with("kernel_size", [2; 4]),
                "a single int, or a tuple of {DIMS} ints",
            ),
            bad(item().with("stride", [0]), "stride should not be zero"),
            bad(item().with("padding", [2]), "pad should be at most half"),
            bad(item().with("divisor_override", 0), "divisor must be not zero"),
            bad(call(&[1; 4][..=N]), SMALL),
        ]
    }
}

/// The gradient of `avg_pool{N}d` with respect to an input of `input_size`.
#[op("_avg_pool{N}d_backward(Tensor grad_output, int[] input_size, int[{N}] kernel_size, int[{N}] stride, int[{N}] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
     internal, jvp = linear, batch = BATCH,
     each(AvgPool2dBackward { N: 2, BATCH: image2, FORWARD: avg_pool2d, SHAPES: (&[1, 2, 2], [1, 4, 4]) },
          AvgPool3dBackward { N: 3, BATCH: image3, FORWARD: avg_pool3d, SHAPES: (&[1, 1, 2, 2], [1, 2, 4, 4]) }))]
impl AvgPoolNdBackward {
    fn meta(grad_output: &Tensor, args: &AvgPoolNdBackwardArgs<'_>) -> Result<TensorSpec> {
        let a = args;
        let window = mean_window(N, [a.kernel_size, a.stride, a.padding], a.ceil_mode)?;
        average(a.count_include_pad, a.divisor_override)?;
        ensure!(
            a.input_size.iter().all(|&size| size >= 0),
            runtime,
            "Trying to create tensor with negative dimension: {}",
            list(a.input_size)
        );
        let shape = kernel::output_shape(a.input_size, &window)?;
        ensure!(
            grad_output.shape() == &shape[..],
            runtime,
            "Expected a gradient of size {}, as pooling gives it, but got {}",
            list(&shape),
            list(grad_output.shape())
        );
        Ok(image_spec(grad_output, a.input_size, N))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Option<i64>,
    ) -> Result<()> {
        let window = mean_window(N, [kernel_size, stride, padding], ceil_mode)?;
        let how = average(count_include_pad, divisor_override)?;
        let grad = grad_output.view_ref(cpu);
        Ok(kernel::avg_pool_backward(&mut result.view_mut(cpu), grad, &window, how)?)
    }
    fn vjp_grad_output(grad: &Tensor, args: &AvgPoolNdBackwardArgs<'_>) -> Result<Tensor> {
        let a = args;
        grad.FORWARD(
            a.kernel_size,
            a.stride,
            a.padding,
            a.ceil_mode,
            a.count_include_pad,
            a.divisor_override,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let (grad, input_size) = SHAPES;
        vec![Sample::new([
            s.normal(grad).into(),
            Value::from(input_size),
            Value::from([2]),
            Value::from([2]),
            Value::from([0]),
            Value::Bool(false),
            Value::Bool(true),
            Value::None,
        ])]
    }
}

/// The mean of each window of the last dimension. Padding counts as zeros with `count_include_pad`, else it is left out
/// of the mean.
#[op("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
     function_only, method = avg_pool1d)]
impl AvgPool1d {
    fn composite(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        ceil_mode: bool,
        count_include_pad: bool,
    ) -> Result<Tensor> {
        check_line("avg_pool1d", self_)?;
        let plane = self_.unsqueeze(-2)?;
        plane
            .avg_pool2d(
                &row("avg_pool1d", "kernel_size", kernel_size, 1)?,
                &row("avg_pool1d", "stride", stride, 1)?,
                &row("avg_pool1d", "padding", padding, 0)?,
                ceil_mode,
                count_include_pad,
                None,
            )?
            .squeeze_dim(-2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.normal(&[1, 2, 6])).with("kernel_size", [3]).with("stride", [2])]
    }
}

/// The mean of each of `output_size` nearly equal parts of the last two dimensions.
#[op("_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor", internal, jvp = linear, node = "AdaptiveAvgPool2D",
     method = adaptive_avg_pool_kernel, batch = image2)]
impl AdaptiveAvgPoolKernel {
    fn meta(self_: &Tensor, output_size: &[i64]) -> Result<TensorSpec> {
        ensure!(output_size.len() == 2, runtime, "adaptive_avg_pool2d: output_size must be 2");
        ensure!(
            output_size.iter().all(|&n| n >= 0),
            runtime,
            "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {{{}}}",
            list(output_size).trim_matches(['[', ']'])
        );
        ensure!(
            matches!(self_.ndim(), 3 | 4),
            runtime,
            "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {}",
            list(self_.shape())
        );
        check_filled_from("adaptive_avg_pool2d", self_, self_.ndim() - 2)?;
        let mut shape = Dims::from_slice(&self_.shape()[..self_.ndim() - 2]);
        shape.extend_from_slice(output_size);
        Ok(TensorSpec::in_format_of(self_, &shape))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        if result.numel() > 0 {
            kernel::adaptive_avg_pool(&mut result.view_mut(cpu), self_.view_ref(cpu), 2)?;
        }
        Ok(())
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        grad.adaptive_avg_pool_backward(self_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.normal(&[1, 2, 5, 4])).with("output_size", [3, 2])]
    }
}

/// The gradient of `_adaptive_avg_pool2d` with respect to an input of `input_size`.
#[op("_adaptive_avg_pool2d_backward(Tensor grad_output, int[] input_size) -> Tensor", internal, jvp = linear, method = adaptive_avg_pool_backward, batch = image2)]
impl AdaptiveAvgPoolBackward {
    fn meta(grad_output: &Tensor, input_size: &[i64]) -> Result<TensorSpec> {
        ensure!(
            matches!(grad_output.ndim(), 3 | 4) && grad_output.ndim() == input_size.len(),
            runtime,
            "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensor, but got {} for an input of size {}",
            list(grad_output.shape()),
            list(input_size)
        );
        check_planes(grad_output, input_size, 2)?;
        Ok(TensorSpec::in_format_of(grad_output, input_size))
    }
    fn cpu(cpu: Cpu, result: &Tensor, grad_output: &Tensor) -> Result<()> {
        result.zero_bytes();
        if grad_output.numel() > 0 {
            let grad = grad_output.view_ref(cpu);
            kernel::adaptive_avg_pool_backward(&mut result.view_mut(cpu), grad, 2)?;
        }
        Ok(())
    }
    fn vjp_grad_output(grad: &Tensor, grad_output_shape: &[i64]) -> Result<Tensor> {
        grad.adaptive_avg_pool_kernel(&grad_output_shape[grad_output_shape.len() - 2..])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.normal(&[1, 3, 2])).with("input_size", [1, 5, 4])]
    }
}

/// The mean of each of `output_size` nearly equal parts of the last three dimensions.
#[op("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", internal, jvp = linear, node = "AdaptiveAvgPool3D",
     method = adaptive_avg_pool3d_kernel, batch = image3)]
impl AdaptiveAvgPool3dKernel {
    fn meta(self_: &Tensor, output_size: &[i64]) -> Result<TensorSpec> {
        ensure!(output_size.len() == 3, runtime, "adaptive_avg_pool3d: output_size must be 3");
        ensure!(
            output_size.iter().all(|&n| n >= 0),
            runtime,
            "adaptive_avg_pool3d: elements of output_size must be greater than or equal to 0 but received {{{}}}",
            list(output_size).trim_matches(['[', ']'])
        );
        let shape = adaptive_shape("adaptive_avg_pool3d", self_, output_size, 3)?;
        ensure!(
            self_.dtype().is_floating_point(),
            not_implemented,
            "\"adaptive_avg_pool3d_cpu\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        if result.numel() == 0 {
            return Ok(());
        }
        Ok(kernel::adaptive_avg_pool(&mut result.view_mut(cpu), self_.view_ref(cpu), 3)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        grad.adaptive_avg_pool3d_backward(self_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |x: &[i64], size: [i64; 3]| Sample::of(s.normal(x)).with("output_size", size);
        vec![
            call(&[1, 2, 5, 4, 3], [3, 2, 2]),
            call(&[1, 2, 3, 2], [1, 4, 2]),
            call(&[1, 2, 3, 2], [0, 1, 1]),
            call(&[0, 1, 2, 3, 2], [1, 1, 2]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |x: &[i64], size: &[i64], phrase| {
            let sample = Sample::of(s.normal(x)).with("output_size", size);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[5, 4, 3], &[1, 1, 1], "Expected 4D or 5D tensor, but got [5, 4, 3]"),
            bad(&[1, 5, 4, 3], &[1, 1], "output_size must be 3"),
            bad(&[1, 5, 4, 3], &[-1, 1, 1], "must be greater than or equal to 0"),
            bad(&[1, 5, 0, 3], &[1, 1, 1], "with dimension 2 being empty"),
        ]
    }
}

/// The gradient of `_adaptive_avg_pool3d` with respect to an input of `input_size`.
#[op("_adaptive_avg_pool3d_backward(Tensor grad_output, int[] input_size) -> Tensor", internal, jvp = linear,
     method = adaptive_avg_pool3d_backward, batch = image3)]
impl AdaptiveAvgPool3dBackward {
    fn meta(grad_output: &Tensor, input_size: &[i64]) -> Result<TensorSpec> {
        let outer = input_size.len().saturating_sub(3);
        let fits = matches!(outer, 1 | 2)
            && grad_output.ndim() == input_size.len()
            && grad_output.shape()[..outer] == input_size[..outer]
            && input_size.iter().all(|&size| size >= 0);
        ensure!(
            fits,
            runtime,
            "adaptive_avg_pool3d_backward(): Expected 4D or 5D tensor, but got {} for an input of size {}",
            list(grad_output.shape()),
            list(input_size)
        );
        Ok(TensorSpec::beside(grad_output, input_size))
    }
    fn cpu(cpu: Cpu, result: &Tensor, grad_output: &Tensor) -> Result<()> {
        if grad_output.numel() == 0 {
            result.zero_bytes();
            return Ok(());
        }
        Ok(kernel::adaptive_avg_pool_backward(
            &mut result.view_mut(cpu),
            grad_output.view_ref(cpu),
            3,
        )?)
    }
    fn vjp_grad_output(grad: &Tensor, grad_output_shape: &[i64]) -> Result<Tensor> {
        grad.adaptive_avg_pool3d_kernel(&grad_output_shape[grad_output_shape.len() - 3..])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::of(s.normal(&[1, 3, 2, 2])).with("input_size", [1, 5, 4, 3]),
            Sample::of(s.normal(&[1, 0, 1, 1])).with("input_size", [1, 2, 3, 2]),
        ]
    }
}

/// The mean of each of `output_size` nearly equal parts of the last {DIMS} dimensions.
#[op("adaptive_avg_pool{N}d(Tensor self, {INT}[{N}] output_size) -> Tensor", module = "nn",
     each(AdaptiveAvgPool2d { N: 2, DIMS: "two", INT: int, KERNEL: adaptive_avg_pool_kernel, SHAPE: [2, 3, 3], SIZES: [[1, 1]] },
          AdaptiveAvgPool3d { N: 3, DIMS: "three", INT: SymInt, KERNEL: adaptive_avg_pool3d_kernel, SHAPE: [2, 3, 2, 3], SIZES: [[1, 1, 1], [2, 1, 3]] }))]
impl AdaptiveAvgPoolNd {
    fn composite(self_: &Tensor, output_size: &[i64]) -> Result<Tensor> {
        if *output_size == [1; N] && (N + 1..=N + 2).contains(&self_.ndim()) {
            return self_.mean_dim(Some(&[-1, -2, -3][..N]), true);
        }
        self_.KERNEL(output_size)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |size| Sample::of(s.normal(&SHAPE)).with("output_size", size);
        SIZES.map(call).into()
    }
}

/// The mean of each of `output_size` nearly equal parts of the last dimension.
#[op("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", function_only, method = adaptive_avg_pool1d)]
impl AdaptiveAvgPool1d {
    fn composite(self_: &Tensor, output_size: &[i64]) -> Result<Tensor> {
        check_line("adaptive_avg_pool1d", self_)?;
        let size = row("adaptive_avg_pool1d", "output_size", output_size, 1)?;
        self_.unsqueeze(-2)?.adaptive_avg_pool_kernel(&size)?.squeeze_dim(-2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.normal(&[1, 2, 5])).with("output_size", [3])]
    }
}
