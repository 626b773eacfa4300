//! What pooling ops share: the settings of windows, the checks of inputs, the specs of results, and gradients of
//! maxima.
//!
//! All of it is for one to three spatial dimensions, the last ones. There are no ops here.

use crate::error::{bail, ensure};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec, channels_last_strides};
use crate::{DType, Dims, Result, Tensor};
use pullback_kernels::pool::{AvgPoolOptions, PoolWindow};
use smallvec::SmallVec;

/// The settings of a window as they are in the arguments of an op.
pub(super) struct WindowArgs<'a> {
    pub(super) kernel_size: &'a [i64],
    pub(super) stride: &'a [i64],
    pub(super) padding: &'a [i64],
    pub(super) dilation: &'a [i64],
    pub(super) ceil_mode: bool,
}

impl WindowArgs<'_> {
    /// The checked window of an op over `spatial` dimensions, two or three. An empty stride is the size of the kernel.
    pub(super) fn window(&self, name: &str, spatial: usize) -> Result<PoolWindow> {
        // (PyTorch's texts differ for average pooling of volumes.)
        let must = if name == "avg_pool3d" { "must be" } else { "must either be" };
        let count = if spatial == 3 { "three" } else { "two" };
        let per_dim = |what: &str, must: &str, values: &[i64]| match values {
            [all] => Ok(SmallVec::<[i64; 3]>::from_elem(*all, spatial)),
            _ if values.len() == spatial => Ok(SmallVec::from_slice(values)),
            _ => bail!(runtime, "{name}: {what} {must} a single int, or a tuple of {count} ints"),
        };
        let kernel = per_dim("kernel_size", must, self.kernel_size)?;
        let stride = match self.stride {
            [] => kernel.clone(),
            stride => per_dim("stride", &format!("{must} omitted,"), stride)?,
        };
        let padding = per_dim("padding", must, self.padding)?;
        let dilation_must = if spatial == 2 { "must be either" } else { must };
        let dilation = per_dim("dilation", dilation_must, self.dilation)?;
        ensure!(!stride.contains(&0), runtime, "stride should not be zero");
        check_positive("kernel size", "k", &kernel)?;
        check_positive("stride", "d", &stride)?;
        check_positive("dilation", "dilation", &dilation)?;
        if let Some(least) = padding.iter().find(|&&p| p < 0) {
            bail!(runtime, "pad must be non-negative, but got pad: {least}");
        }
        let sizes = |values: &[i64]| values.iter().map(|&v| v as usize).collect();
        Ok(PoolWindow {
            kernel: sizes(&kernel),
            stride: sizes(&stride),
            padding: sizes(&padding),
            dilation: sizes(&dilation),
            ceil_mode: self.ceil_mode,
        })
    }
}

fn check_positive(what: &str, unit: &str, values: &[i64]) -> Result<()> {
    let letters = &["T", "H", "W"][3 - values.len()..];
    let said = letters.iter().zip(values).map(|(letter, value)| format!("{unit}{letter}: {value}"));
    // bounded: by the rank.
    let said = said.collect::<Vec<_>>().join(" ");
    let are_positive = values.iter().all(|&value| value > 0);
    ensure!(are_positive, runtime, "{what} should be greater than zero, but got {said}");
    Ok(())
}

pub(super) fn average(
    count_include_pad: bool,
    divisor_override: Option<i64>,
) -> Result<AvgPoolOptions> {
    ensure!(divisor_override != Some(0), runtime, "divisor must be not zero");
    Ok(AvgPoolOptions { count_include_pad, divisor_override })
}

/// Refuses tensors that have neither channels and `spatial` dimensions nor a batch of these.
pub(super) fn check_rank(x: &Tensor, spatial: usize) -> Result<()> {
    let (item, batch) = (spatial + 1, spatial + 2);
    ensure!(
        x.ndim() == item || x.ndim() == batch,
        runtime,
        "non-empty {item}D or {batch}D (batch mode) tensor expected for input"
    );
    Ok(())
}

/// Refuses tensors without exactly channels and `spatial` dimensions, with or without a batch, and sizes of 0 except
/// for the batch.
pub(super) fn check_image(prefix: &str, x: &Tensor, spatial: usize) -> Result<()> {
    let item = spatial + 1;
    let batch = x.ndim().wrapping_sub(item);
    ensure!(
        batch <= 1 && !x.shape()[batch..].contains(&0),
        runtime,
        "{prefix}Expected {item}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got:{}",
        item + 1,
        list(x.shape())
    );
    Ok(())
}

/// Refuses sizes of 0, except for the batch, of tensors with `spatial` dimensions after their channels.
pub(super) fn check_filled(name: &str, x: &Tensor, spatial: usize) -> Result<()> {
    check_filled_from(name, x, x.ndim() - spatial - 1)
}

/// Refuses sizes of zero from dimension `first` on.
pub(super) fn check_filled_from(name: &str, x: &Tensor, first: usize) -> Result<()> {
    if let Some(dim) = (first..x.ndim()).find(|&d| x.shape()[d] == 0) {
        bail!(
            runtime,
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {dim} being empty",
            list(x.shape())
        );
    }
    Ok(())
}

/// Refuses a gradient whose sizes before the last `spatial` ones are not those of an input of `input_size`, or are too few.
pub(super) fn check_planes(grad: &Tensor, input_size: &[i64], spatial: usize) -> Result<()> {
    let planes = grad.ndim().checked_sub(spatial);
    let fits = planes.is_some_and(|planes| {
        input_size.len() == grad.ndim()
            && input_size[..planes] == grad.shape()[..planes]
            && (grad.numel() == 0 || !input_size.contains(&0))
    });
    ensure!(
        fits,
        runtime,
        "Expected grad_output with the planes of the input {}, but got {}",
        list(input_size),
        list(grad.shape())
    );
    Ok(())
}

/// The specs of maxima and their indices over `spatial` dimensions, in channels-last format if `x` is.
pub(super) fn maxima_specs(x: &Tensor, shape: &[i64], spatial: usize) -> [TensorSpec; 2] {
    let mut spec = TensorSpec::beside(x, shape);
    if spatial == 3 && x.ndim() == 4 {
        spec.strides = channels_last_of_volume(x, shape);
    } else if x.is_channels_last() {
        spec.strides = channels_last_strides(shape);
    }
    let indices = spec.clone().computed_in(DType::I64);
    [spec, indices]
}

/// The strides of a result of `shape` beside `x`, a volume without batch, if its channels lie closest together without gaps.
/// (What the four dimensions would be as images says nothing.)
fn channels_last_of_volume(x: &Tensor, shape: &[i64]) -> Option<Dims> {
    let of = |item: &[i64]| {
        let strides = channels_last_strides(&[&[1], item].concat())?;
        Some(Dims::from_slice(&strides[1..]))
    };
    let own = of(x.shape())?;
    let same = |((&size, &a), &b): ((&i64, &i64), &i64)| size == 1 || a == b;
    let is_last = x.shape().iter().zip(x.strides()).zip(&own).all(same);
    if is_last && !x.is_contiguous() { of(shape) } else { None }
}

/// Runs a kernel that writes maxima and indices in row-major order, into temporary memory if the results have other
/// strides.
pub(super) fn row_by_row(
    cpu: Cpu,
    [values, indices]: [&Tensor; 2],
    run: impl FnOnce(&Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    if values.is_contiguous() && indices.is_contiguous() {
        return run(values, indices);
    }
    let rows = |t: &Tensor| TensorSpec::beside(t, t.shape()).empty();
    let (own_values, own_indices) = (rows(values)?, rows(indices)?);
    run(&own_values, &own_indices)?;
    values.copy_data(cpu, &own_values)?;
    indices.copy_data(cpu, &own_indices)
}

/// The gradient of maxima: each element of `grad` is added at its index in an input of `shape`, whose last `spatial`
/// dimensions are the flattened planes.
pub(super) fn spread_over_planes(
    grad: &Tensor,
    indices: &Tensor,
    shape: &[i64],
    spatial: usize,
) -> Result<Tensor> {
    // A plane of any number of dimensions is flattened, as the indices count.
    let first = -(spatial as i64);
    let line = |t: &Tensor| t.flatten(first, -1)?.unsqueeze(-2);
    let (outer, plane) = shape.split_at(shape.len() - spatial);
    let mut size = Dims::from_slice(outer);
    size.extend_from_slice(&[1, plane.iter().product()]);
    line(grad)?.max_pool2d_backward(&line(indices)?, &size)?.view(shape)
}

/// The elements of the planes of `t` at the indices `indices`: the tangent of maxima.
pub(super) fn taken_from_planes(t: &Tensor, indices: &Tensor, spatial: usize) -> Result<Tensor> {
    let first = -(spatial as i64);
    t.flatten(first, -1)?.gather(-1, &indices.flatten(first, -1)?)?.reshape(indices.shape())
}

/// Refuses arguments that adaptive pooling to `output_size` does not take; returns the shape of its result.
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
    check_filled_from(name, x, 1)?;
    let mut shape = Dims::from_slice(&x.shape()[..x.ndim() - spatial]);
    shape.extend_from_slice(output_size);
    Ok(shape)
}

/// The option of a one-dimensional op for the two-dimensional one, with `first` for the added dimension; only the
/// stride may be empty.
pub(super) fn row(name: &str, what: &str, values: &[i64], first: i64) -> Result<Dims> {
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

pub(super) fn check_line(name: &str, self_: &Tensor) -> Result<()> {
    ensure!(
        matches!(self_.ndim(), 2 | 3),
        runtime,
        "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
        self_.ndim()
    );
    Ok(())
}
