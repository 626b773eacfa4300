//! Max pooling over one to three spatial dimensions.
//!
//! The one-dimensional forms are two-dimensional ones over a plane of height 1, as in PyTorch. Gradients are ops of the
//! sizes and the indices of the maxima alone: they are added at these indices ([`spread_over_planes`]), for every kind
//! of max pooling.

use super::pool_window::{
    WindowArgs, check_filled, check_image, check_planes, check_rank, maxima_specs, row_by_row,
    spread_over_planes, taken_from_planes,
};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{DType, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::check_shape;
use pullback_kernels::pool::{self as kernel, PoolWindow};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &MAX_POOL2D_WITH_INDICES,
    &MAX_POOL2D_BACKWARD,
    &MAX_POOL2D_WITH_INDICES_BACKWARD,
    &MAX_POOL1D_WITH_INDICES,
    &MAX_POOL3D_WITH_INDICES,
    &MAX_POOL1D,
    &MAX_POOL2D,
    &MAX_POOL3D,
];

/// The window of max pooling over planes or volumes.
fn max_window(spatial: usize, args: &WindowArgs<'_>) -> Result<PoolWindow> {
    args.window(if spatial == 2 { "max_pool2d" } else { "max_pool3d" }, spatial)
}

/// The largest element of each window of the last two dimensions, and its index in the flattened plane. NaN counts as
/// largest; of equal elements the first counts.
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
        check_rank(self_, 2)?;
        check_image("", self_, 2)?;
        let args = WindowArgs { kernel_size, stride, padding, dilation, ceil_mode };
        let window = max_window(2, &args)?;
        let spec = TensorSpec::in_format_of(self_, &kernel::output_shape(self_.shape(), &window)?);
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
        let args = WindowArgs { kernel_size, stride, padding, dilation, ceil_mode };
        let window = max_window(2, &args)?;
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

/// The gradient of two-dimensional max pooling from the indices of the maxima: each element of `grad_output` is added
/// to the element of its plane that `indices` names.
#[op("_max_pool2d_backward(Tensor grad_output, Tensor indices, int[] input_size) -> Tensor", internal,
     not_differentiable(indices), method = max_pool2d_backward, batch = image2)]
impl MaxPool2dBackward {
    fn meta(grad_output: &Tensor, indices: &Tensor, input_size: &[i64]) -> Result<TensorSpec> {
        check_shape("indices", indices.shape(), grad_output.shape())?;
        check_planes(grad_output, input_size, 2)?;
        // (The indices have the memory format of the pooled image.)
        let spec = TensorSpec::in_format_of(indices, input_size);
        Ok(spec.computed_in(grad_output.dtype()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, grad_output: &Tensor, indices: &Tensor) -> Result<()> {
        add_at(cpu, result, grad_output, indices)
    }
    fn vjp_grad_output(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        taken_from_planes(grad, indices, 2)
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

/// Adds each gradient to the element of its plane that `indices` names.
fn add_at(cpu: Cpu, result: &Tensor, grad: &Tensor, indices: &Tensor) -> Result<()> {
    if grad.numel() == 0 {
        result.zero_bytes();
        return Ok(());
    }
    let (grad, indices) = (grad.view_ref(cpu), indices.view_ref(cpu));
    Ok(kernel::max_pool_backward(&mut result.view_mut(cpu), grad, indices, 2)?)
}

/// The gradient of `max_pool2d_with_indices` with respect to its input `self`, of which only shape and dtype matter:
/// its own gradient is zero.
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
        check_rank(self_, 2)?;
        let args = WindowArgs { kernel_size, stride, padding, dilation, ceil_mode };
        let window = max_window(2, &args)?;
        ensure!(
            grad_output.dtype() == self_.dtype(),
            runtime,
            "expected dtype {} for `gradOutput` but got dtype {}",
            self_.dtype().spelled(),
            grad_output.dtype().spelled()
        );
        ensure!(
            indices.dtype() == DType::I64,
            runtime,
            "expected scalar type {} but found {}",
            DType::I64.scalar_name(),
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
        add_at(cpu, result, grad_output, indices)
    }
    fn vjp_grad_output(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        taken_from_planes(grad, indices, 2)
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

/// The settings of one-dimensional pooling as those of two dimensions.
struct Pool1dArgs {
    kernel: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
}

impl Pool1dArgs {
    fn new(
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
    ) -> Result<Pool1dArgs> {
        let one = |what: &str, values: &[i64]| match *values {
            [value] => Ok(value),
            _ => bail!(
                runtime,
                "max_pool1d() {what} must be an int, list of ints or tuple of ints of size 1 but got size {}",
                values.len()
            ),
        };
        let kernel = one("kernel_size", kernel_size)?;
        Ok(Pool1dArgs {
            kernel,
            stride: if stride.is_empty() { kernel } else { one("stride", stride)? },
            padding: one("padding", padding)?,
            dilation: one("dilation", dilation)?,
        })
    }
    fn check(&self, size: i64, ceil_mode: bool) -> Result<()> {
        let Pool1dArgs { kernel, stride, padding, dilation } = *self;
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
        ensure!(
            count > 0,
            runtime,
            "max_pool1d() Invalid computed output size: {count}. Output size is too small for an input of size {size}"
        );
        Ok(())
    }
}

/// The largest element of each window of the last dimension, and its index. NaN counts as largest; of equal elements
/// the first counts.
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
        check_image("max_pool1d: ", self_, 1)?;
        let args = Pool1dArgs::new(kernel_size, stride, padding, dilation)?;
        args.check(self_.shape()[self_.ndim() - 1], ceil_mode)?;
        let [out, indices] = self_.unsqueeze(-2)?.max_pool2d_with_indices(
            &[1, args.kernel],
            &[1, args.stride],
            &[0, args.padding],
            &[1, args.dilation],
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

/// The largest element of each window of the last three dimensions, and its index in the flattened volume. NaN counts
/// as largest; of equal elements the first counts.
#[op("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     module = "nn", node = "MaxPool3DWithIndices", method = max_pool3d_with_indices, batch = image3)]
impl MaxPool3dWithIndices {
    fn meta(self_: &Tensor, args: &MaxPool3dWithIndicesArgs<'_>) -> Result<[TensorSpec; 2]> {
        let MaxPool3dWithIndicesArgs { kernel_size, stride, padding, dilation, ceil_mode, .. } =
            *args;
        let args = WindowArgs { kernel_size, stride, padding, dilation, ceil_mode };
        let window = max_window(3, &args)?;
        check_rank(self_, 3)?;
        check_filled("max_pool3d_with_indices", self_, 3)?;
        ensure!(
            self_.dtype().is_floating_point() || self_.dtype().is_integral(false),
            not_implemented,
            "\"max_pool3d\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        Ok(maxima_specs(self_, &kernel::output_shape(self_.shape(), &window)?, 3))
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
        let args = WindowArgs { kernel_size, stride, padding, dilation, ceil_mode };
        let window = max_window(3, &args)?;
        row_by_row(cpu, [result0, result1], |values, indices| {
            let mut indices = indices.view_mut(cpu);
            let x = self_.view_ref(cpu);
            Ok(kernel::max_pool(&mut values.view_mut(cpu), Some(&mut indices), x, &window)?)
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

/// The largest element of each window; the last {DIMS} pooled. NaN counts as largest; the gradient goes to the first of
/// equal elements.
#[op("max_pool{N}d(Tensor self, int[{N}] kernel_size, int[{N}] stride=[], int[{N}] padding=0, int[{N}] dilation=1, bool ceil_mode=False) -> Tensor",
     function_only,
     each(MaxPool1d { N: 1, DIMS: "dimension is", WITH_INDICES: max_pool1d_with_indices, SHAPE: [1, 2, 6], KERNEL: 3 },
          MaxPool2d { N: 2, DIMS: "two dimensions are", WITH_INDICES: max_pool2d_with_indices, SHAPE: [1, 1, 4, 4], KERNEL: 2 },
          MaxPool3d { N: 3, DIMS: "three dimensions are", WITH_INDICES: max_pool3d_with_indices, SHAPE: [1, 1, 2, 4, 4], KERNEL: 2 }))]
impl MaxPoolNd {
    fn composite(
        self_: &Tensor,
        kernel_size: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil_mode: bool,
    ) -> Result<Tensor> {
        let [out, _] = self_.WITH_INDICES(kernel_size, stride, padding, dilation, ceil_mode)?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![Sample::of(s.distinct(&SHAPE)).with("kernel_size", [KERNEL])]
    }
}
