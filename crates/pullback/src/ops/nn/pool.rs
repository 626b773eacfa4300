//! Pooling over one or two spatial dimensions: largest, mean, adaptive mean.
//!
//! The one-dimensional forms are two-dimensional ones over a plane of height 1, as in PyTorch. Gradients
//! are ops of their own that need the input's size, not its elements.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::{list, wrap_own_dim};
use crate::{DType, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::pool::{self as kernel, AvgPoolOptions, PoolWindow};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &MAX_POOL2D_WITH_INDICES,
    &MAX_POOL2D_BACKWARD,
    &MAX_POOL2D_WITH_INDICES_BACKWARD,
    &MAX_POOL2D,
    &MAX_POOL1D,
    &MAX_POOL1D_WITH_INDICES,
    &AVG_POOL2D,
    &AVG_POOL2D_BACKWARD,
    &AVG_POOL1D,
    &ADAPTIVE_AVG_POOL_KERNEL,
    &ADAPTIVE_AVG_POOL_BACKWARD,
    &ADAPTIVE_AVG_POOL2D,
    &ADAPTIVE_AVG_POOL1D,
];

/// A setting for both dimensions; `None` if there are neither one nor two values.
fn pair(values: &[i64]) -> Option<[i64; 2]> {
    match *values {
        [both] => Some([both, both]),
        [height, width] => Some([height, width]),
        _ => None,
    }
}

fn window(
    name: &str,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<PoolWindow> {
    let two = |what: &str, must: &str, values: &[i64]| {
        pair(values).ok_or_else(|| {
            let text = format!("{name}: {what} {must} a single int, or a tuple of two ints");
            crate::Error::runtime(text)
        })
    };
    let kernel = two("kernel_size", "must either be", kernel_size)?;
    let stride = if stride.is_empty() { kernel_size } else { stride };
    let stride = two("stride", "must either be omitted,", stride)?;
    let padding = two("padding", "must either be", padding)?;
    let dilation = two("dilation", "must be either", dilation)?;
    ensure!(!stride.contains(&0), runtime, "stride should not be zero");
    let positive = |what: &str, unit: &str, [h, w]: [i64; 2]| {
        ensure!(
            h > 0 && w > 0,
            runtime,
            "{what} should be greater than zero, but got {unit}H: {h} {unit}W: {w}"
        );
        Ok(())
    };
    positive("kernel size", "k", kernel)?;
    positive("stride", "d", stride)?;
    positive("dilation", "dilation", dilation)?;
    let least = padding[0].min(padding[1]);
    ensure!(least >= 0, runtime, "pad must be non-negative, but got pad: {least}");
    let sizes = |values: [i64; 2]| values.iter().map(|&v| v as usize).collect();
    Ok(PoolWindow {
        kernel: sizes(kernel),
        stride: sizes(stride),
        padding: sizes(padding),
        dilation: sizes(dilation),
        ceil_mode,
    })
}

/// Refuses other than `item` dimensions, or one more for the batch, and sizes of 0 but for the batch.
fn check_filled(prefix: &str, what: &str, self_: &Tensor, item: usize) -> Result<()> {
    let batch = self_.ndim().wrapping_sub(item);
    ensure!(
        batch <= 1 && !self_.shape()[batch..].contains(&0),
        runtime,
        "{prefix}Expected {what} (batch mode) tensor with optional 0 dim batch size for input, but got:{}",
        list(self_.shape())
    );
    Ok(())
}

/// The largest element of each window and its position in its plane; the last two dimensions are pooled.
#[op("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     module = "nn", node = "MaxPool2DWithIndices", method = max_pool2d_with_indices, batch = image2)]
impl MaxPool2dWithIndices {
    fn meta(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<[TensorSpec; 2]> {
        ensure!(
            matches!(self_.ndim(), 3 | 4),
            runtime,
            "non-empty 3D or 4D (batch mode) tensor expected for input"
        );
        check_filled("", "3D or 4D", self_, 3)?;
        let window = window("max_pool2d", kernel_size, stride, padding, dilation, ceil_mode)?;
        let spec = pooled_spec(self_, &window)?;
        Ok([spec.clone(), spec.computed_in(DType::I64)])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<()> {
        let window = window("max_pool2d", kernel_size, stride, padding, dilation, ceil_mode)?;
        let (mut out, mut indices) = (result0.view_mut(cpu), result1.view_mut(cpu));
        Ok(kernel::max_pool(&mut out, Some(&mut indices), self_.view_ref(cpu), &window)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], result1: &Tensor) -> Result<Tensor> {
        grad.max_pool2d_backward(result1, self_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::of(s.distinct(&[1, 2, 4, 4])).with("kernel_size", [2]),
            Sample::of(s.distinct(&[1, 5, 5]))
                .with("kernel_size", [3, 2])
                .with("stride", [2, 1])
                .with("padding", [1]),
        ]
    }
}

/// Adds each gradient to the element of its plane that `indices` names.
#[op("_max_pool2d_backward(Tensor grad_output, Tensor indices, int[] input_size) -> Tensor", internal,
     not_differentiable(indices), method = max_pool2d_backward, batch = image2)]
impl MaxPool2dBackward {
    fn meta(grad_output: &Tensor, indices: &Tensor, input_size: &[i64]) -> Result<TensorSpec> {
        // (Indices lie as the pooled image did.)
        let spec = TensorSpec::in_format_of(indices, input_size);
        Ok(spec.computed_in(grad_output.dtype()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, grad_output: &Tensor, indices: &Tensor) -> Result<()> {
        spread_over_planes(cpu, result, grad_output, indices)
    }
    fn vjp_grad_output(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        taken_from_planes(grad, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::new([
            s.normal(&[1, 2, 2]).into(),
            s.integers(&[1, 2, 2], 0, 16).into(),
            Value::from([1, 4, 4]),
        ])]
    }
}

fn spread_over_planes(cpu: Cpu, result: &Tensor, grad: &Tensor, indices: &Tensor) -> Result<()> {
    if grad.numel() == 0 {
        result.zero_bytes();
        return Ok(());
    }
    let (grad, indices) = (grad.view_ref(cpu), indices.view_ref(cpu));
    Ok(kernel::max_pool_backward(&mut result.view_mut(cpu), grad, indices, 2)?)
}

/// What the image `x` looks like once it is pooled.
fn pooled_spec(x: &Tensor, window: &PoolWindow) -> Result<TensorSpec> {
    Ok(TensorSpec::in_format_of(x, &kernel::output_shape(x.shape(), window)?))
}

fn taken_from_planes(t: &Tensor, indices: &Tensor) -> Result<Tensor> {
    t.flatten(-2, -1)?.gather(-1, &indices.flatten(-2, -1)?)?.reshape(indices.shape())
}

/// The gradient of `max_pool2d_with_indices` for its input `self`, of which only shape and dtype matter: its own gradient is zero.
#[op("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     internal, function_only, not_differentiable(indices), method = max_pool2d_with_indices_backward, batch = image2)]
impl MaxPool2dWithIndicesBackward {
    fn meta(
        grad_output: &Tensor,
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
        indices: &Tensor,
    ) -> Result<TensorSpec> {
        ensure!(
            matches!(self_.ndim(), 3 | 4),
            runtime,
            "non-empty 3D or 4D (batch mode) tensor expected for input"
        );
        let window = window("max_pool2d", kernel_size, stride, padding, dilation, ceil_mode)?;
        ensure!(
            grad_output.dtype() == self_.dtype(),
            runtime,
            "expected dtype {} for `gradOutput` but got dtype {}",
            self_.dtype().name(),
            grad_output.dtype().name()
        );
        ensure!(
            indices.dtype() == DType::I64,
            runtime,
            "expected scalar type Long but found {}",
            indices.dtype().scalar_name()
        );
        let shape = kernel::output_shape(self_.shape(), &window)?;
        for t in [grad_output, indices] {
            ensure!(
                t.shape() == &shape[..],
                runtime,
                "Expected a tensor of shape {}, as pooling gives it, but got {}",
                list(&shape),
                list(t.shape())
            );
        }
        Ok(TensorSpec::in_format_of(self_, self_.shape()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, grad_output: &Tensor, indices: &Tensor) -> Result<()> {
        spread_over_planes(cpu, result, grad_output, indices)
    }
    fn vjp_grad_output(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        taken_from_planes(grad, indices)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        TensorSpec::beside(grad, self_shape).zeros()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let start = [s.normal(&[1, 2, 2, 2]).into(), s.normal(&[1, 2, 4, 4]).into()];
        let call = Sample::new(start).with("kernel_size", [2]).with("stride", [2]);
        let call = call.with("padding", [0]).with("dilation", [1]).with("ceil_mode", false);
        vec![call.with("indices", s.integers(&[1, 2, 2, 2], 0, 16))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start = [s.normal(&[1, 3, 3]).into(), s.normal(&[1, 4, 4]).into()];
        let call = Sample::new(start).with("kernel_size", [2]).with("stride", [2]);
        let call = call.with("padding", [0]).with("dilation", [1]).with("ceil_mode", false);
        let call = call.with("indices", s.integers(&[1, 2, 2], 0, 16));
        let phrase = "Expected a tensor of shape [1, 2, 2], as pooling gives it, but got [1, 3, 3]";
        vec![InvalidSample::new(call, ErrorKind::Runtime, phrase)]
    }
}

/// The largest element of each window; the last two dimensions are pooled.
#[op("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
     function_only, method = max_pool2d)]
impl MaxPool2d {
    fn composite(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<Tensor> {
        let [out, _] =
            self_.max_pool2d_with_indices(kernel_size, stride, padding, dilation, ceil_mode)?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.distinct(&[1, 1, 4, 4])).with("kernel_size", [2])]
    }
}

/// The option of one dimension for two, `first` the other's; only the stride may be left out.
fn row(name: &str, what: &str, values: &[i64], first: i64) -> Result<Dims> {
    match values {
        [] if what == "stride" => Ok(Dims::new()),
        [value] => Ok(Dims::from_slice(&[first, *value])),
        _ => bail!(
            runtime,
            "{name}() argument '{what}' should contain one int (got {})",
            values.len()
        ),
    }
}

fn check_line(name: &str, self_: &Tensor) -> Result<()> {
    ensure!(
        matches!(self_.ndim(), 2 | 3),
        runtime,
        "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
        self_.ndim()
    );
    Ok(())
}

/// The settings of pooling over one dimension.
struct Line {
    kernel: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
}

impl Line {
    fn new(kernel_size: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64]) -> Result<Line> {
        let one = |what: &str, values: &[i64]| match *values {
            [value] => Ok(value),
            _ => bail!(
                runtime,
                "max_pool1d() {what} must be an int, list of ints or tuple of ints of size 1 but got size {}",
                values.len()
            ),
        };
        let kernel = one("kernel_size", kernel_size)?;
        Ok(Line {
            kernel,
            stride: if stride.is_empty() { kernel } else { one("stride", stride)? },
            padding: one("padding", padding)?,
            dilation: one("dilation", dilation)?,
        })
    }
    fn check(&self, size: i64, ceil_mode: bool) -> Result<()> {
        let Line { kernel, stride, padding, dilation } = *self;
        let positive = |what: &str, value: i64| {
            ensure!(
                value > 0,
                runtime,
                "max_pool1d() {what} must be greater than zero, but got {value}"
            );
            Ok(())
        };
        positive("kernel_size", kernel)?;
        positive("stride", stride)?;
        ensure!(
            padding >= 0,
            runtime,
            "max_pool1d() padding must be non-negative, but got {padding}"
        );
        ensure!(
            padding <= kernel / 2,
            runtime,
            "max_pool1d() padding should be at most half of kernel size, but got padding={padding} and kernel_size={kernel}"
        );
        positive("dilation", dilation)?;
        let Some(reach) = dilation.checked_mul(kernel - 1) else {
            bail!(
                runtime,
                "effective kernel size overflows, but got kernel_size={kernel} and dilation={dilation}"
            );
        };
        let room = (size + 2 * padding).saturating_sub(reach).saturating_sub(1);
        let extra = if ceil_mode { stride - 1 } else { 0 };
        let count = room.saturating_add(extra).div_euclid(stride) + 1;
        ensure!(count > 0, runtime, "max_pool1d() Invalid computed output size: {count}");
        Ok(())
    }
}

/// As `max_pool2d_with_indices` over the last dimension.
#[op("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     function_only, method = max_pool1d_with_indices)]
impl MaxPool1dWithIndices {
    fn composite(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<[Tensor; 2]> {
        check_filled("max_pool1d: ", "2D or 3D", self_, 2)?;
        let line = Line::new(kernel_size, stride, padding, dilation)?;
        line.check(self_.shape()[self_.ndim() - 1], ceil_mode)?;
        let [out, indices] = self_.unsqueeze(-2)?.max_pool2d_with_indices(
            &[1, line.kernel],
            &[1, line.stride],
            &[0, line.padding],
            &[1, line.dilation],
            ceil_mode,
        )?;
        Ok([out.squeeze_dim(-2)?, indices.squeeze_dim(-2)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.distinct(&[2, 6])).with("kernel_size", [3]).with("stride", [2])]
    }
}

/// The largest element of each window of the last dimension.
#[op("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
     function_only, method = max_pool1d)]
impl MaxPool1d {
    fn composite(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<Tensor> {
        let [out, _] =
            self_.max_pool1d_with_indices(kernel_size, stride, padding, dilation, ceil_mode)?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.distinct(&[1, 2, 6])).with("kernel_size", [3])]
    }
}

fn average(count_include_pad: bool, divisor_override: Option<i64>) -> Result<AvgPoolOptions> {
    ensure!(divisor_override != Some(0), runtime, "divisor must be not zero");
    Ok(AvgPoolOptions { count_include_pad, divisor_override })
}

/// The mean of each window; the last two dimensions are pooled.
#[op("avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     module = "nn", jvp = linear, node = "AvgPool2D", method = avg_pool2d, batch = image2)]
impl AvgPool2d {
    fn meta(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        ceil_mode: bool,
        divisor_override: Option<i64>,
    ) -> Result<TensorSpec> {
        wrap_own_dim(-3, self_.ndim())?;
        check_filled("", "3D or 4D", self_, 3)?;
        let window = window("avg_pool2d", kernel_size, stride, padding, &[1], ceil_mode)?;
        let spec = pooled_spec(self_, &window)?;
        average(true, divisor_override)?;
        Ok(spec)
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
        let window = window("avg_pool2d", kernel_size, stride, padding, &[1], ceil_mode)?;
        let options = average(count_include_pad, divisor_override)?;
        Ok(kernel::avg_pool(&mut result.view_mut(cpu), self_.view_ref(cpu), &window, options)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], args: &AvgPool2dArgs<'_>) -> Result<Tensor> {
        let a = args;
        grad.avg_pool2d_backward(
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
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::of(s.normal(&[1, 2, 4, 4])).with("kernel_size", [2]),
            Sample::of(s.normal(&[1, 5, 4]))
                .with("kernel_size", [3, 2])
                .with("padding", [1])
                .with("count_include_pad", false),
        ]
    }
}

/// The gradient of `avg_pool2d`.
#[op("_avg_pool2d_backward(Tensor grad_output, int[] input_size, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
     internal, jvp = linear, method = avg_pool2d_backward, batch = image2)]
impl AvgPool2dBackward {
    fn meta(
        grad_output: &Tensor,
        input_size: &[i64],
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        ceil_mode: bool,
        divisor_override: Option<i64>,
    ) -> Result<TensorSpec> {
        window("avg_pool2d", kernel_size, stride, padding, &[1], ceil_mode)?;
        average(true, divisor_override)?;
        Ok(TensorSpec::in_format_of(grad_output, input_size))
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
        let window = window("avg_pool2d", kernel_size, stride, padding, &[1], ceil_mode)?;
        let (options, grad) = (average(count_include_pad, divisor_override)?, grad_output);
        result.zero_bytes();
        let (mut out, grad) = (result.view_mut(cpu), grad.view_ref(cpu));
        Ok(kernel::avg_pool_backward(&mut out, grad, &window, options)?)
    }
    fn vjp_grad_output(grad: &Tensor, args: &AvgPool2dBackwardArgs<'_>) -> Result<Tensor> {
        let a = args;
        grad.avg_pool2d(
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
        vec![Sample::new([
            s.normal(&[1, 2, 2]).into(),
            Value::from([1, 4, 4]),
            Value::from([2]),
            Value::from([2]),
            Value::from([0]),
            Value::Bool(false),
            Value::Bool(true),
            Value::None,
        ])]
    }
}

/// The mean of each window of the last dimension.
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

/// The gradient of `_adaptive_avg_pool2d`.
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

/// The mean of each of `output_size` nearly equal parts of the last two dimensions.
#[op("adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor", module = "nn", method = adaptive_avg_pool2d)]
impl AdaptiveAvgPool2d {
    fn composite(self_: &Tensor, output_size: &[i64]) -> Result<Tensor> {
        if *output_size == [1, 1] && matches!(self_.ndim(), 3 | 4) {
            return self_.mean_dim(Some(&[-1, -2]), true);
        }
        self_.adaptive_avg_pool_kernel(output_size)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.normal(&[2, 3, 3])).with("output_size", [1, 1])]
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
