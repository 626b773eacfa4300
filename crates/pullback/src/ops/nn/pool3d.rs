//! Pooling of volumes (N, C, D, H, W): largest, mean, adaptive mean.
//!
//! The kernels are those of `pool`, which are written for one to three dimensions. Gradients are linear ops of the sizes alone;
//! that of a maximum ([`spread_over_planes`]) adds up at the places of the maxima, whatever made these.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec, channels_last_strides};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::pool::{self as kernel, AvgPoolOptions, PoolWindow};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &MAX_POOL3D_WITH_INDICES,
    &MAX_POOL3D,
    &AVG_POOL3D,
    &AVG_POOL3D_BACKWARD,
    &ADAPTIVE_AVG_POOL3D_KERNEL,
    &ADAPTIVE_AVG_POOL3D_BACKWARD,
    &ADAPTIVE_AVG_POOL3D,
];

/// The settings of a window, as they are given.
struct Given<'a> {
    kernel_size: &'a [i64],
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: &'a [i64],
    ceil_mode: bool,
}

/// The window of `max_pool3d` or `avg_pool3d`, whose texts say "must either be" or "must be".
fn window(name: &str, must: &str, given: &Given<'_>) -> Result<PoolWindow> {
    let three = |what: &str, must: &str, values: &[i64]| match *values {
        [all] => Ok([all; 3]),
        [d, h, w] => Ok([d, h, w]),
        _ => bail!(runtime, "{name}: {what} {must} a single int, or a tuple of three ints"),
    };
    let kernel = three("kernel_size", must, given.kernel_size)?;
    let stride = match given.stride {
        [] => kernel,
        stride => three("stride", &format!("{must} omitted,"), stride)?,
    };
    let padding = three("padding", must, given.padding)?;
    let dilation = three("dilation", must, given.dilation)?;
    ensure!(!stride.contains(&0), runtime, "stride should not be zero");
    let positive = |what: &str, unit: &str, [d, h, w]: [i64; 3]| {
        ensure!(
            d > 0 && h > 0 && w > 0,
            runtime,
            "{what} should be greater than zero, but got {unit}T: {d} {unit}H: {h} {unit}W: {w}"
        );
        Ok(())
    };
    positive("kernel size", "k", kernel)?;
    positive("stride", "d", stride)?;
    positive("dilation", "dilation", dilation)?;
    if let Some(least) = padding.iter().find(|&&p| p < 0) {
        bail!(runtime, "pad must be non-negative, but got pad: {least}");
    }
    let sizes = |values: [i64; 3]| values.iter().map(|&v| v as usize).collect();
    Ok(PoolWindow {
        kernel: sizes(kernel),
        stride: sizes(stride),
        padding: sizes(padding),
        dilation: sizes(dilation),
        ceil_mode: given.ceil_mode,
    })
}

/// Refuses what is no volume, and sizes of zero but for the batch.
fn check_volume(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        matches!(x.ndim(), 4 | 5),
        runtime,
        "non-empty 4D or 5D (batch mode) tensor expected for input"
    );
    check_filled(name, x, 3)
}

/// Refuses sizes of zero but for the batch, of what has `spatial` dimensions behind its channels.
pub(super) fn check_filled(name: &str, x: &Tensor, spatial: usize) -> Result<()> {
    let first = x.ndim() - spatial - 1;
    if let Some(dim) = (first..x.ndim()).find(|&d| x.shape()[d] == 0) {
        bail!(
            runtime,
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {dim} being empty",
            list(x.shape())
        );
    }
    Ok(())
}

/// What maxima and their positions look like: channels lie closest together if they do in `x`.
pub(super) fn maxima_specs(x: &Tensor, shape: &[i64]) -> [TensorSpec; 2] {
    let mut spec = TensorSpec::beside(x, shape);
    if x.is_channels_last() {
        spec.strides = channels_last_strides(shape);
    }
    let places = spec.clone().computed_in(DType::I64);
    [spec, places]
}

/// Runs a kernel that writes maxima and positions row by row, in memory of its own if the results lie otherwise.
pub(super) fn row_by_row(
    cpu: Cpu,
    [values, places]: [&Tensor; 2],
    run: impl FnOnce(&Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    if values.is_contiguous() && places.is_contiguous() {
        return run(values, places);
    }
    let rows = |t: &Tensor| TensorSpec::beside(t, t.shape()).empty();
    let (own_values, own_places) = (rows(values)?, rows(places)?);
    run(&own_values, &own_places)?;
    values.copy_data(cpu, &own_values)?;
    places.copy_data(cpu, &own_places)
}

/// The gradient of maxima: each of `grad` is added at its place in an input of `shape`, whose last `spatial` dimensions are planes.
pub(super) fn spread_over_planes(
    grad: &Tensor,
    indices: &Tensor,
    shape: &[i64],
    spatial: usize,
) -> Result<Tensor> {
    // A plane of any number of dimensions is a line, of which places are counted in the same way.
    let first = -(spatial as i64);
    let line = |t: &Tensor| t.flatten(first, -1)?.unsqueeze(-2);
    let (outer, plane) = shape.split_at(shape.len() - spatial);
    let mut size = Dims::from_slice(outer);
    size.extend_from_slice(&[1, plane.iter().product()]);
    line(grad)?.max_pool2d_backward(&line(indices)?, &size)?.view(shape)
}

/// The elements of the planes of `t` at the places that `indices` names: the change of maxima.
pub(super) fn taken_from_planes(t: &Tensor, indices: &Tensor, spatial: usize) -> Result<Tensor> {
    let first = -(spatial as i64);
    t.flatten(first, -1)?.gather(-1, &indices.flatten(first, -1)?)?.reshape(indices.shape())
}

/// The largest element of each window and its position in its volume; the last three dimensions are pooled.
#[op("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     module = "nn", node = "MaxPool3DWithIndices", method = max_pool3d_with_indices, batch = image3)]
impl MaxPool3dWithIndices {
    fn meta(self_: &Tensor, args: &MaxPool3dWithIndicesArgs<'_>) -> Result<[TensorSpec; 2]> {
        let a = args;
        let window = max_window(a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode)?;
        check_volume("max_pool3d_with_indices", self_)?;
        ensure!(
            self_.dtype().is_floating_point() || self_.dtype().is_integral(false),
            not_implemented,
            "\"max_pool3d\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        Ok(maxima_specs(self_, &kernel::output_shape(self_.shape(), &window)?))
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
        let window = max_window(kernel_size, stride, padding, dilation, ceil_mode)?;
        row_by_row(cpu, [result0, result1], |values, places| {
            let mut places = places.view_mut(cpu);
            let x = self_.view_ref(cpu);
            Ok(kernel::max_pool(&mut values.view_mut(cpu), Some(&mut places), x, &window)?)
        })
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], result1: &Tensor) -> Result<Tensor> {
        spread_over_planes(grad, result1, self_shape, 3)
    }
    fn jvp(self_t: &Tensor, result1: &Tensor) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(taken_from_planes(self_t, result1, 3)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::of(s.distinct(&[1, 2, 2, 4, 4])).with("kernel_size", [2]),
            Sample::of(s.distinct(&[1, 3, 5, 4]))
                .with("kernel_size", [2, 3, 2])
                .with("stride", [1, 2, 1])
                .with("padding", [1, 1, 0])
                .with("ceil_mode", true),
            Sample::of(s.distinct(&[1, 3, 4, 5]))
                .with("kernel_size", [2])
                .with("dilation", [2, 1, 3]),
            Sample::of(s.distinct(&[0, 1, 2, 2, 2])).with("kernel_size", [2]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |shape: &[i64]| Sample::of(s.normal(shape));
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let cube = || call(&[1, 4, 4, 4]);
        vec![
            bad(
                call(&[4, 4, 4]).with("kernel_size", [2]),
                "non-empty 4D or 5D (batch mode) tensor",
            ),
            bad(cube().with("kernel_size", [2, 2]), "kernel_size must either be a single int"),
            bad(cube().with("kernel_size", [0]), "stride should not be zero"),
            bad(cube().with("kernel_size", [-1]), "kernel size should be greater than zero"),
            bad(cube().with("kernel_size", [i64::MAX]), "integer out of range"),
            bad(cube().with("kernel_size", [2]).with("stride", [-1]), "stride should be greater"),
            bad(
                cube().with("kernel_size", [2]).with("dilation", [0]),
                "dilation should be greater",
            ),
            bad(cube().with("kernel_size", [2]).with("padding", [-1]), "pad must be non-negative"),
            bad(cube().with("kernel_size", [2]).with("padding", [2]), "pad should be at most half"),
            bad(cube().with("kernel_size", [5]), "Output size is too small"),
            bad(call(&[1, 0, 4, 4, 4]).with("kernel_size", [2]), "with dimension 1 being empty"),
        ]
    }
}

fn max_window(
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<PoolWindow> {
    let given = Given { kernel_size, stride, padding, dilation, ceil_mode };
    window("max_pool3d", "must either be", &given)
}

/// The largest element of each window; the last three dimensions are pooled.
#[op("max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
     function_only, method = max_pool3d)]
impl MaxPool3d {
    fn composite(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<Tensor> {
        let [out, _] =
            self_.max_pool3d_with_indices(kernel_size, stride, padding, dilation, ceil_mode)?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.distinct(&[1, 1, 2, 4, 4])).with("kernel_size", [2])]
    }
}

fn mean_window(
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
) -> Result<PoolWindow> {
    let given = Given { kernel_size, stride, padding, dilation: &[1], ceil_mode };
    window("avg_pool3d", "must be", &given)
}

fn average(count_include_pad: bool, divisor_override: Option<i64>) -> Result<AvgPoolOptions> {
    ensure!(divisor_override != Some(0), runtime, "divisor must be not zero");
    Ok(AvgPoolOptions { count_include_pad, divisor_override })
}

/// The mean of each window; the last three dimensions are pooled.
#[op("avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     module = "nn", exact_out, jvp = linear, node = "AvgPool3D", method = avg_pool3d, batch = image3)]
impl AvgPool3d {
    fn meta(self_: &Tensor, args: &AvgPool3dArgs<'_>) -> Result<TensorSpec> {
        let a = args;
        let window = mean_window(a.kernel_size, a.stride, a.padding, a.ceil_mode)?;
        average(a.count_include_pad, a.divisor_override)?;
        check_volume("avg_pool3d", self_)?;
        let sizes = &self_.shape()[self_.ndim() - 3..];
        let fits = sizes.iter().zip(&window.kernel).all(|(&size, &k)| size >= k as i64);
        if let ([t, h, w], [kt, kh, kw]) = (sizes, &window.kernel[..]) {
            ensure!(
                fits,
                runtime,
                "input image (T: {t} H: {h} W: {w}) smaller than kernel size (kT: {kt} kH: {kh} kW: {kw})"
            );
        }
        let shape = kernel::output_shape(self_.shape(), &window)?;
        ensure!(
            matches!(self_.dtype(), DType::F32 | DType::F64 | DType::I64),
            not_implemented,
            "\"avg_pool3d_out_frame\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        Ok(TensorSpec::beside(self_, &shape))
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
        let window = mean_window(kernel_size, stride, padding, ceil_mode)?;
        let how = average(count_include_pad, divisor_override)?;
        Ok(kernel::avg_pool(&mut result.view_mut(cpu), self_.view_ref(cpu), &window, how)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], args: &AvgPool3dArgs<'_>) -> Result<Tensor> {
        let a = args;
        grad.avg_pool3d_backward(
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
            Sample::of(s.normal(&[1, 2, 2, 4, 4])).with("kernel_size", [2]),
            Sample::of(s.normal(&[1, 3, 5, 4]))
                .with("kernel_size", [2, 3, 2])
                .with("stride", [1, 2, 1])
                .with("padding", [1, 1, 0])
                .with("ceil_mode", true)
                .with("count_include_pad", false),
            Sample::of(s.normal(&[1, 3, 3, 3]))
                .with("kernel_size", [2])
                .with("divisor_override", 3),
            Sample::of(s.normal(&[0, 1, 2, 2, 2])).with("kernel_size", [2]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |shape: &[i64]| Sample::of(s.normal(shape));
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let cube = || call(&[1, 4, 4, 4]).with("kernel_size", [2]);
        vec![
            bad(
                call(&[4, 4, 4]).with("kernel_size", [2]),
                "non-empty 4D or 5D (batch mode) tensor",
            ),
            bad(
                call(&[1, 4, 4, 4]).with("kernel_size", [2, 2]),
                "kernel_size must be a single int",
            ),
            bad(cube().with("stride", [0]), "stride should not be zero"),
            bad(cube().with("padding", [2]), "pad should be at most half"),
            bad(cube().with("divisor_override", 0), "divisor must be not zero"),
            bad(call(&[1, 1, 4, 4]).with("kernel_size", [2]), "smaller than kernel size (kT: 2"),
        ]
    }
}

/// The gradient of [`AvgPool3d`] for an input of `input_size`.
#[op("_avg_pool3d_backward(Tensor grad_output, int[] input_size, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
     internal, jvp = linear, method = avg_pool3d_backward, batch = image3)]
impl AvgPool3dBackward {
    fn meta(grad_output: &Tensor, args: &AvgPool3dBackwardArgs<'_>) -> Result<TensorSpec> {
        let a = args;
        let window = mean_window(a.kernel_size, a.stride, a.padding, a.ceil_mode)?;
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
        Ok(TensorSpec::beside(grad_output, a.input_size))
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
        let window = mean_window(kernel_size, stride, padding, ceil_mode)?;
        let how = average(count_include_pad, divisor_override)?;
        let grad = grad_output.view_ref(cpu);
        Ok(kernel::avg_pool_backward(&mut result.view_mut(cpu), grad, &window, how)?)
    }
    fn vjp_grad_output(grad: &Tensor, args: &AvgPool3dBackwardArgs<'_>) -> Result<Tensor> {
        let a = args;
        grad.avg_pool3d(
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
            s.normal(&[1, 1, 2, 2]).into(),
            Value::from([1, 2, 4, 4]),
            Value::from([2]),
            Value::from([2]),
            Value::from([0]),
            Value::Bool(false),
            Value::Bool(true),
            Value::None,
        ])]
    }
}

/// Refuses what adaptive pooling to `output_size` of `spatial` dimensions does not take; gives the shape of its result.
pub(super) fn adaptive_shape(
    name: &str,
    x: &Tensor,
    output_size: &[i64],
    spatial: usize,
) -> Result<Dims> {
    ensure!(
        x.ndim() == spatial + 1 || x.ndim() == spatial + 2,
        runtime,
        "{name}(): Expected {}D or {}D tensor, but got {}",
        spatial + 1,
        spatial + 2,
        list(x.shape())
    );
    check_filled(name, x, spatial)?;
    let mut shape = Dims::from_slice(&x.shape()[..x.ndim() - spatial]);
    shape.extend_from_slice(output_size);
    Ok(shape)
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

/// The gradient of `_adaptive_avg_pool3d` for an input of `input_size`.
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

/// The mean of each of `output_size` nearly equal parts of the last three dimensions.
#[op("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", module = "nn", method = adaptive_avg_pool3d)]
impl AdaptiveAvgPool3d {
    fn composite(self_: &Tensor, output_size: &[i64]) -> Result<Tensor> {
        if *output_size == [1, 1, 1] && matches!(self_.ndim(), 4 | 5) {
            return self_.mean_dim(Some(&[-1, -2, -3]), true);
        }
        self_.adaptive_avg_pool3d_kernel(output_size)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |size: [i64; 3]| Sample::of(s.normal(&[2, 3, 2, 3])).with("output_size", size);
        vec![call([1, 1, 1]), call([2, 1, 3])]
    }
}
