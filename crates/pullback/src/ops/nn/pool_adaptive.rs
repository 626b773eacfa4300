//! Adaptive and fractional max pooling, and max unpooling.
//!
//! Adaptive windows divide an input into nearly equal parts, fractional ones have random distances. Each op is one for
//! two and one for three dimensions over a common kernel; the one-dimensional ops are made of these. Gradients are
//! those of `pool`.

use super::pool_window::{
    adaptive_shape, check_filled, check_filled_from, maxima_specs, row_by_row, spread_over_planes,
    taken_from_planes,
};
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec, channels_last_strides};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::pool as kernel;
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &ADAPTIVE_MAX_POOL1D,
    &ADAPTIVE_MAX_POOL2D,
    &ADAPTIVE_MAX_POOL3D,
    &FRACTIONAL_MAX_POOL2D,
    &FRACTIONAL_MAX_POOL3D,
    &MAX_UNPOOL2D,
    &MAX_UNPOOL3D,
];

fn adaptive_specs(x: &Tensor, output_size: &[i64], spatial: usize) -> Result<[TensorSpec; 2]> {
    let name = format!("adaptive_max_pool{spatial}d");
    ensure!(
        output_size.len() == spatial,
        runtime,
        "{name}(): internal error: output_size.size() must be {spatial}"
    );
    let shape = adaptive_shape(&name, x, output_size, spatial)?;
    check_floating(&name, x)?;
    ensure!(
        output_size.iter().all(|&n| n >= 0),
        runtime,
        "Trying to create tensor with negative dimension: {}",
        list(&shape)
    );
    let mut specs = maxima_specs(x, &shape, spatial);
    if spatial == 3 {
        for spec in &mut specs {
            spec.strides = None;
        }
    }
    Ok(specs)
}

fn check_floating(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        x.dtype().is_floating_point(),
        not_implemented,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok(())
}

fn adaptive_maxima(cpu: Cpu, results: [&Tensor; 2], x: &Tensor, spatial: usize) -> Result<()> {
    row_by_row(cpu, results, |values, indices| {
        if values.numel() == 0 {
            return Ok(());
        }
        let (mut values, mut indices) = (values.view_mut(cpu), indices.view_mut(cpu));
        Ok(kernel::adaptive_max_pool(&mut values, &mut indices, x.view_ref(cpu), spatial)?)
    })
}

fn adaptive_samples(s: &Sampler, spatial: usize) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let call = |outer: &[i64], x: [i64; 3], size: [i64; 3]| {
        let shape = [outer, &x[3 - spatial..]].concat();
        Sample::of(s.distinct(&shape)).with("output_size", &size[3 - spatial..])
    };
    vec![
        call(&[1, 2], [3, 5, 4], [2, 3, 2]),
        call(&[2], [2, 3, 2], [3, 1, 4]),
        call(&[1], [2, 3, 2], [1, 1, 0]),
        call(&[0, 1], [2, 3, 2], [1, 2, 1]),
    ]
}

fn adaptive_invalid_samples(s: &Sampler, spatial: usize) -> Vec<InvalidSample> {
    let bad = |outer: &[i64], x: [i64; 3], size: &[i64], phrase| {
        let shape = [outer, &x[3 - spatial..]].concat();
        let sample = Sample::of(s.normal(&shape)).with("output_size", size);
        InvalidSample::new(sample, ErrorKind::Runtime, phrase)
    };
    let ones = [1; 4];
    vec![
        bad(&[], [2; 3], &ones[..spatial], "D tensor, but got"),
        bad(&[1], [2; 3], &ones[..=spatial], "output_size.size() must be"),
        bad(&[1], [2, 2, 0], &ones[..spatial], "being empty"),
        bad(&[1], [2; 3], &[-1; 3][..spatial], "negative dimension"),
    ]
}

/// The largest element of each of `output_size` nearly equal parts of the last {DIMS} dimensions, and its index in the
/// flattened {SPACE}.
#[op("adaptive_max_pool{N}d(Tensor self, int[{N}] output_size) -> (Tensor, Tensor)", module = "nn", node = "AdaptiveMaxPool{N}D", batch = BATCH,
     each(AdaptiveMaxPool2d { N: 2, DIMS: "two", SPACE: "plane", BATCH: image2 },
          AdaptiveMaxPool3d { N: 3, DIMS: "three", SPACE: "volume", BATCH: image3 }))]
impl AdaptiveMaxPoolNd {
    fn meta(self_: &Tensor, output_size: &[i64]) -> Result<[TensorSpec; 2]> {
        adaptive_specs(self_, output_size, N)
    }
    fn cpu(cpu: Cpu, result0: &Tensor, result1: &Tensor, self_: &Tensor) -> Result<()> {
        adaptive_maxima(cpu, [result0, result1], self_, N)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], result1: &Tensor) -> Result<Tensor> {
        spread_over_planes(grad, result1, self_shape, N)
    }
    fn jvp(self_t: &Tensor, result1: &Tensor) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(taken_from_planes(self_t, result1, N)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        adaptive_samples(s, N)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        adaptive_invalid_samples(s, N)
    }
}

/// The largest element of each of `output_size` nearly equal parts of the last dimension, and its index.
#[op("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", function_only, method = adaptive_max_pool1d)]
impl AdaptiveMaxPool1d {
    fn composite(self_: &Tensor, output_size: &[i64]) -> Result<[Tensor; 2]> {
        let name = "adaptive_max_pool1d";
        ensure!(
            matches!(self_.ndim(), 2 | 3),
            runtime,
            "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
            self_.ndim()
        );
        let [size] = *output_size else {
            bail!(
                runtime,
                "{name}() argument 'output_size' should contain one int (got {})",
                output_size.len()
            )
        };
        check_filled_from(name, self_, 1)?;
        let [values, indices] = self_.unsqueeze(-2)?.adaptive_max_pool2d(&[1, size])?;
        Ok([values.squeeze_dim(-2)?, indices.squeeze_dim(-2)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        adaptive_samples(s, 1)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], size: &[i64], phrase| {
            let sample = Sample::of(s.normal(shape)).with("output_size", size);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[5], &[1], "Expected 2 to 3 dimensions, but got 1-dimensional tensor"),
            bad(&[1, 5], &[1, 1], "should contain one int (got 2)"),
            bad(&[1, 0], &[1], "with dimension 1 being empty"),
            bad(&[1, 5], &[-1], "negative dimension"),
        ]
    }
}

/// One value for each of `spatial` dimensions.
fn per_dim(name: &str, what: &str, values: &[i64], spatial: usize) -> Result<SmallVec<[i64; 3]>> {
    let three = if spatial == 3 { "three " } else { "" };
    match values {
        [all] => Ok(SmallVec::from_elem(*all, spatial)),
        _ if values.len() == spatial => Ok(SmallVec::from_slice(values)),
        _ => bail!(runtime, "{name}: {what} must either be a single Int or tuple of {three}Ints"),
    }
}

fn fractional_specs(
    x: &Tensor,
    (kernel_size, output_size): (&[i64], &[i64]),
    samples: &Tensor,
    spatial: usize,
) -> Result<[TensorSpec; 2]> {
    let name = format!("fractional_max_pool{spatial}d");
    let kernel = per_dim(&name, "kernel_size", kernel_size, spatial)?;
    let output = per_dim(&name, "output_size", output_size, spatial)?;
    // bounded: by the rank.
    let by = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    ensure!(
        kernel.iter().all(|&k| k > 0),
        runtime,
        "{name}(): kernel size should be greater than zero, but got {}",
        by(&kernel)
    );
    ensure!(
        output.iter().all(|&n| n >= 0),
        runtime,
        "Trying to create tensor with negative dimension: {name}() got output_size {}",
        by(&output)
    );
    let shape = adaptive_shape(&name, x, &output, spatial)?;
    let sizes = &x.shape()[x.ndim() - spatial..];
    for (dim, (&size, (&k, &n))) in sizes.iter().zip(kernel.iter().zip(&output)).enumerate() {
        let word = ["time", "height", "width"][3 - spatial + dim];
        ensure!(
            k.checked_add(n).is_some_and(|end| end - 1 <= size),
            runtime,
            "{name}(): pool {word} {k} too large relative to input {word} {size}"
        );
    }
    ensure!(
        samples.dtype() == x.dtype(),
        runtime,
        "Expect _random_samples to have the same dtype as input"
    );
    ensure!(
        samples.ndim() == 3,
        runtime,
        "Expect _random_samples to have 3 dimensions, got {}",
        samples.ndim()
    );
    let batch = if x.ndim() == spatial + 2 { x.shape()[0] } else { 1 };
    ensure!(
        samples.shape()[0] >= batch,
        runtime,
        "Expect _random_samples.size(0) no less then input batch size."
    );
    ensure!(
        samples.shape()[1] == x.shape()[x.ndim() - spatial - 1],
        runtime,
        "Expect _random_samples.size(1) equals to input channel size."
    );
    ensure!(
        samples.shape()[2] == spatial as i64,
        runtime,
        "Expect _random_samples.size(2) equals to {spatial}; got {}.",
        samples.shape()[2]
    );
    check_floating(&name, x)?;
    Ok([TensorSpec::beside(x, &shape), TensorSpec::beside(x, &shape).computed_in(DType::I64)])
}

fn fractional_maxima(
    cpu: Cpu,
    results: [&Tensor; 2],
    x: &Tensor,
    kernel_size: &[i64],
    samples: &Tensor,
) -> Result<()> {
    let outer = x.ndim() - samples.shape()[2] as usize;
    let spatial = x.ndim() - outer;
    let kernel = per_dim("fractional_max_pool", "kernel_size", kernel_size, spatial)?;
    let kernel: SmallVec<[usize; 3]> = kernel.iter().map(|&k| k as usize).collect();
    row_by_row(cpu, results, |values, indices| {
        if values.numel() == 0 {
            return Ok(());
        }
        let (mut values, mut indices) = (values.view_mut(cpu), indices.view_mut(cpu));
        let (x, samples) = (x.view_ref(cpu), samples.view_ref(cpu));
        Ok(kernel::fractional_max_pool(&mut values, &mut indices, x, samples, &kernel)?)
    })
}

fn fractional_samples(s: &Sampler, spatial: usize) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let call = |outer: &[i64], x: [i64; 3], kernel: &[i64], size: [i64; 3]| {
        let shape = [outer, &x[3 - spatial..]].concat();
        let channels = outer[outer.len() - 1];
        let batch = if outer.len() == 2 { outer[0] } else { 1 };
        Sample::of(s.distinct(&shape))
            .with("kernel_size", kernel)
            .with("output_size", &size[3 - spatial..])
            .with("random_samples", s.uniform(&[batch, channels, spatial as i64], 0.05, 0.95))
    };
    vec![
        call(&[2, 2], [4, 5, 6], &[2], [2, 3, 4]),
        call(&[2], [3, 5, 4], &[2; 3][..spatial], [2, 1, 2]),
        call(&[1], [3, 5, 4], &[2], [0, 1, 2]),
    ]
}

fn fractional_invalid_samples(s: &Sampler, spatial: usize) -> Vec<InvalidSample> {
    let bad = |outer: &[i64], kernel: &[i64], size: &[i64], samples: &[i64], phrase| {
        let shape = [outer, &[4; 3][..spatial]].concat();
        let sample = Sample::of(s.normal(&shape)).with("kernel_size", kernel);
        let sample = sample.with("output_size", size);
        let sample = sample.with("random_samples", s.uniform(samples, 0.1, 0.9));
        InvalidSample::new(sample, ErrorKind::Runtime, phrase)
    };
    let n = spatial as i64;
    vec![
        bad(&[], &[2], &[2], &[1, 1, n], "D tensor, but got"),
        bad(&[1], &[2; 4], &[2], &[1, 1, n], "kernel_size must either be a single Int"),
        bad(&[1], &[2], &[2; 4], &[1, 1, n], "output_size must either be a single Int"),
        bad(&[1], &[0], &[2], &[1, 1, n], "kernel size should be greater than zero"),
        bad(&[1], &[2], &[4], &[1, 1, n], "too large relative to input"),
        bad(&[1], &[i64::MAX], &[i64::MAX], &[1, 1, n], "too large relative to input"),
        bad(&[1], &[2], &[2], &[1, n], "Expect _random_samples to have 3 dimensions, got 2"),
        bad(&[2, 1], &[2], &[2], &[1, 1, n], "no less then input batch size"),
        bad(&[1], &[2], &[2], &[1, 2, n], "equals to input channel size"),
        bad(&[1], &[2], &[2], &[1, 1, 4], "; got 4."),
    ]
}

/// The largest element of each of `output_size` windows of size `kernel_size` at random positions, and its index in the
/// flattened {SPACE} (Graham 2014).
///
/// The positions come from `random_samples` (N, C, {N}) in [0, 1): with size `L` and `n` windows, window `i` begins at
/// `int((i + u) a) - int(u a)` for `a = (L - kernel) / (n - 1)`, the last one at `L - kernel`.
#[op("fractional_max_pool{N}d(Tensor self, int[{N}] kernel_size, int[{N}] output_size, Tensor random_samples) -> (Tensor, Tensor)",
     module = "nn", not_differentiable(random_samples), node = "FractionalMaxPool{N}D", batch = BATCH(self, random_samples),
     each(FractionalMaxPool2d { N: 2, SPACE: "plane", BATCH: fractional2 },
          FractionalMaxPool3d { N: 3, SPACE: "volume", BATCH: fractional3 }))]
impl FractionalMaxPoolNd {
    fn meta(
        self_: &Tensor,
        kernel_size: &[i64],
        output_size: &[i64],
        random_samples: &Tensor,
    ) -> Result<[TensorSpec; 2]> {
        fractional_specs(self_, (kernel_size, output_size), random_samples, N)
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        self_: &Tensor,
        kernel_size: &[i64],
        random_samples: &Tensor,
    ) -> Result<()> {
        fractional_maxima(cpu, [result0, result1], self_, kernel_size, random_samples)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], result1: &Tensor) -> Result<Tensor> {
        spread_over_planes(grad, result1, self_shape, N)
    }
    fn jvp(self_t: &Tensor, result1: &Tensor) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(taken_from_planes(self_t, result1, N)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        fractional_samples(s, N)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        fractional_invalid_samples(s, N)
    }
}

fn unpooled_spec(
    x: &Tensor,
    indices: &Tensor,
    output_size: &[i64],
    spatial: usize,
) -> Result<TensorSpec> {
    ensure!(
        indices.dtype() == DType::I64,
        runtime,
        "elements in indices should be type int64 but got: {}",
        indices.dtype().scalar_name()
    );
    let names = if spatial == 2 {
        "two elements (height, width)"
    } else {
        "three elements (depth, height, width)"
    };
    ensure!(
        output_size.len() == spatial,
        runtime,
        "There should be exactly {names} in output_size, but got {} elements.",
        output_size.len()
    );
    ensure!(
        x.ndim() == spatial + 1 || x.ndim() == spatial + 2,
        runtime,
        "Input to max_unpooling{spatial}d should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
        spatial + 1,
        spatial + 2,
        x.ndim()
    );
    ensure!(
        x.shape() == indices.shape(),
        runtime,
        "Expected shape of indices to be same as that of the input tensor ({}) but got indices tensor with shape: {}",
        list(x.shape()),
        list(indices.shape())
    );
    ensure!(
        output_size.iter().all(|&n| n >= 0),
        runtime,
        "max_unpooling{spatial}d(): output_size must contain non-negative spatial dimensions, but got output_size={}",
        list(output_size)
    );
    check_filled(&format!("max_unpooling{spatial}d"), x, spatial)?;
    check_floating(&format!("max_unpool{spatial}d"), x)?;
    let mut shape = Dims::from_slice(&x.shape()[..x.ndim() - spatial]);
    shape.extend_from_slice(output_size);
    let mut spec = TensorSpec::beside(x, &shape);
    if spatial == 2 && x.is_channels_last() {
        spec.strides = channels_last_strides(&shape);
    }
    Ok(spec)
}

fn unpool(cpu: Cpu, result: &Tensor, x: &Tensor, indices: &Tensor, spatial: usize) -> Result<()> {
    if x.numel() == 0 {
        // (Only the batch may be empty, and then the result is empty for any other sizes.)
        return Ok(());
    }
    let (mut out, x) = (result.view_mut(cpu), x.view_ref(cpu));
    Ok(kernel::max_unpool(&mut out, x, indices.view_ref(cpu), spatial)?)
}

fn unpool_samples(s: &Sampler, spatial: usize) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    // The indices are all different: where two elements are written to one position, the result depends on their order.
    let call = |outer: &[i64], size: &[i64]| {
        let shape = [outer, &[2; 3][..spatial]].concat();
        let each = 1_i64 << spatial;
        let count = shape.iter().product::<i64>();
        let indices: Vec<i64> = (0..count).map(|i| (i % each) * 2 + i / each % 2).collect();
        let indices = Tensor::from_slice(&indices, &shape).expect("samples are small");
        Sample::new([s.normal(&shape).into(), indices.into()]).with("output_size", size)
    };
    let size = [3, 4, 5];
    vec![
        call(&[1, 2], &size[..spatial]),
        call(&[2], &[4; 3][..spatial]),
        call(&[0, 1], &size[..spatial]),
    ]
}

fn unpool_invalid_samples(s: &Sampler, spatial: usize) -> Vec<InvalidSample> {
    let call = |x: &[i64], indices: &[i64], at: i64, size: &[i64]| {
        let indices = s.integers(indices, at, at + 1);
        Sample::new([s.normal(x).into(), indices.into()]).with("output_size", size)
    };
    let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
    let (x, size) = ([&[1_i64][..], &[2; 3][..spatial]].concat(), &[4; 4]);
    let floats = Sample::new([s.normal(&x).into(), s.normal(&x).into()]);
    vec![
        bad(
            call(&x, &x, 64, &size[..spatial]),
            "Found an invalid max index: 64 (output volumes are of size 4x4",
        ),
        bad(call(&x, &x, -1, &size[..spatial]), "Found an invalid max index: -1"),
        bad(call(&x, &x, 0, &size[..=spatial]), "in output_size, but got"),
        bad(call(&[2], &[2], 0, &size[..spatial]), "but got a tensor with 1 dimensions"),
        bad(call(&x, &[2], 0, &size[..spatial]), "Expected shape of indices to be same"),
        bad(call(&x, &x, 0, &[-1; 3][..spatial]), "must contain non-negative spatial dimensions"),
        bad(
            floats.with("output_size", &size[..spatial]),
            "elements in indices should be type int64",
        ),
    ]
}

/// Zeros of `output_size`, with the elements of `self` at the positions in their flattened planes that `indices` names.
///
/// # Errors
/// `RuntimeError` for an index outside of the plane.
#[op("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", module = "nn", exact_out, node = "MaxUnpool2D",
     not_differentiable(indices), method = max_unpool2d, batch = image2)]
impl MaxUnpool2d {
    fn meta(self_: &Tensor, indices: &Tensor, output_size: &[i64]) -> Result<TensorSpec> {
        unpooled_spec(self_, indices, output_size, 2)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, indices: &Tensor) -> Result<()> {
        unpool(cpu, result, self_, indices, 2)
    }
    fn vjp_self(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        taken_from_planes(grad, indices, 2)
    }
    fn jvp(self_t: &Tensor, indices_p: &Tensor, output_size: &[i64]) -> Result<Tensor> {
        self_t.max_unpool2d(indices_p, output_size)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        unpool_samples(s, 2)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        unpool_invalid_samples(s, 2)
    }
}

/// Zeros of `output_size`, with the elements of `self` at the positions in their flattened volumes that `indices`
/// names. `stride` and `padding` have no effect; strides must be positive.
///
/// # Errors
/// `RuntimeError` for an index outside of the volume.
#[op("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor", module = "nn", exact_out,
     node = "MaxUnpool3D", not_differentiable(indices), method = max_unpool3d, batch = image3)]
impl MaxUnpool3d {
    fn meta(
        self_: &Tensor,
        indices: &Tensor,
        output_size: &[i64],
        stride: &[i64],
        padding: &[i64],
    ) -> Result<TensorSpec> {
        for (name, values) in [("stride", stride), ("padding", padding)] {
            ensure!(
                values.len() == 3,
                runtime,
                "There should be exactly three elements (depth, height, width) in {name}, but got: {} elements.",
                values.len()
            );
        }
        ensure!(
            stride.iter().all(|&step| step > 0),
            runtime,
            "strides should be greater than zero, but got stride: {}",
            list(stride)
        );
        unpooled_spec(self_, indices, output_size, 3)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, indices: &Tensor) -> Result<()> {
        unpool(cpu, result, self_, indices, 3)
    }
    fn vjp_self(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        taken_from_planes(grad, indices, 3)
    }
    fn jvp(
        self_t: &Tensor,
        indices_p: &Tensor,
        output_size: &[i64],
        stride: &[i64],
        padding: &[i64],
    ) -> Result<Tensor> {
        self_t.max_unpool3d(indices_p, output_size, stride, padding)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with = |sample: Sample| sample.with("stride", [2, 2, 2]).with("padding", [0, 0, 0]);
        unpool_samples(s, 3).into_iter().map(with).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let with = |mut bad: InvalidSample| {
            bad.sample = bad.sample.with("stride", [2, 2, 2]).with("padding", [0, 0, 0]);
            bad
        };
        let mut all: Vec<_> = unpool_invalid_samples(s, 3).into_iter().map(with).collect();
        let given = || unpool_samples(s, 3).remove(0);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let cropped = given().with("stride", [2, 2]).with("padding", [0, 0, 0]);
        all.push(bad(cropped, "in stride, but got: 2 elements"));
        let still = given().with("stride", [0, 2, 2]).with("padding", [0, 0, 0]);
        all.push(bad(still, "strides should be greater than zero"));
        all
    }
}
