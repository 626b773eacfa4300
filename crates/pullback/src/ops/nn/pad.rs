//! Padding: constants, reflections, replications and periodic continuation.
//!
//! Constants are written around a copy; reflections and replications continue a copy, one dimension after the other;
//! cropping and periodic continuation are made of `slice`, `flip` and `cat`. The gradient of padding adds each copied
//! part to where it was copied from.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, MemoryFormat, Result, Scalar, Tensor};
use pullback_kernels::layout;
use pullback_macros::op;
use smallvec::SmallVec;
use std::ops::Range;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &CONSTANT_PAD_ND,
    &REFLECTION_PAD1D,
    &REFLECTION_PAD2D,
    &REFLECTION_PAD3D,
    &REPLICATION_PAD1D,
    &REPLICATION_PAD2D,
    &REPLICATION_PAD3D,
    &PAD,
];

/// The tensor with elements of `value` added at the edges: `pad` lists how many (before, after) for the last dimension,
/// then for the one before it, and so on. Negative numbers crop.
#[op("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", narrow_floats, function_only, method = constant_pad_nd, batch = padded(self, pad))]
impl ConstantPadNd {
    fn meta(self_: &Tensor, pad: &[i64]) -> Result<TensorSpec> {
        ensure!(
            pad.len().is_multiple_of(2),
            runtime,
            "Length of pad must be even but instead it equals {}",
            pad.len()
        );
        ensure!(
            pad.len() / 2 <= self_.ndim(),
            runtime,
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while the input has {} dimensions.",
            pad.len(),
            self_.ndim()
        );
        let mut shape = Dims::from_slice(self_.shape());
        for (index, sides) in pad.chunks(2).enumerate() {
            let dim = self_.ndim() - 1 - index;
            let size = shape[dim].saturating_add(sides[0]).saturating_add(sides[1]);
            ensure!(
                size >= 0,
                runtime,
                "The input size {}, plus negative padding {} and {} resulted in a negative output size, which is invalid. Check dimension {dim} of your input.",
                shape[dim],
                sides[0],
                sides[1]
            );
            shape[dim] = size;
        }
        Ok(TensorSpec::in_format_of(self_, &shape))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, pad: &[i64], value: Scalar) -> Result<()> {
        result.fill_new(value)?;
        let (mut source, mut interior) = (self_.clone(), result.clone());
        for (index, sides) in pad.chunks(2).enumerate() {
            let at = self_.ndim() - 1 - index;
            let (dim, size) = (at as i64, self_.shape()[at]);
            let from = sides[0].saturating_neg().max(0);
            let end = size.saturating_add(sides[1].min(0)).max(from);
            source = source.slice(dim, Some(from), Some(end), 1)?;
            let from = sides[0].max(0);
            interior = interior.slice(dim, Some(from), Some(from + source.shape()[at]), 1)?;
        }
        interior.copy_data(cpu, &source)
    }
    fn vjp_self(grad: &Tensor, pad: &[i64]) -> Result<Tensor> {
        grad.constant_pad_nd(&pad.iter().map(|p| -p).collect::<Dims>(), Scalar::Int(0))
    }
    fn jvp(self_t: &Tensor, pad: &[i64]) -> Result<Tensor> {
        self_t.constant_pad_nd(pad, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("pad", [1, 2]),
            Sample::of(s.normal(&[3, 4]))
                .with("pad", [-1, 2, 1, -2])
                .with("value", Scalar::Float(0.5)),
        ]
    }
}

/// Pads one dimension by copies of parts of the tensor, in new memory.
fn pad_dim(x: &Tensor, dim: i64, (before, after): (i64, i64), mode: &str) -> Result<Tensor> {
    let size = x.shape()[dim as usize];
    let part = |from: i64, to: i64| x.slice(dim, Some(from), Some(to), 1);
    let (head, tail) = (before.max(0), after.max(0));
    let mut parts = Vec::new();
    match mode {
        "reflect" => {
            parts.push(part(1, head + 1)?.flip(&[dim])?);
            parts.push(part(before.saturating_neg().max(0), size + after.min(0))?);
            parts.push(part(size - 1 - tail, size - 1)?.flip(&[dim])?);
        }
        "replicate" => {
            let edge = |from: i64, n: i64| {
                let mut shape = Dims::from_slice(x.shape());
                shape[dim as usize] = n;
                part(from, from + 1)?.expand(&shape, false)
            };
            parts.push(edge(0, head)?);
            parts.push(part(before.saturating_neg().max(0), size + after.min(0))?);
            parts.push(edge(size - 1, tail)?);
        }
        _ => {
            // What is cropped at one side is not copied to the other.
            let (from, to) = (before.saturating_neg().max(0), size + after.min(0));
            ensure!(
                from <= to,
                runtime,
                "Negative padding value is resulting in an empty dimension"
            );
            ensure!(
                head <= to - from && tail <= to - from,
                runtime,
                "Padding value causes wrapping around more than once."
            );
            parts.push(part(to - head, to)?);
            parts.push(part(from, to)?);
            parts.push(part(from, from + tail)?);
        }
    }
    let is_filled = |p: &Tensor| p.shape()[dim as usize] > 0;
    if parts.iter().any(is_filled) {
        parts.retain(is_filled);
    } else {
        parts.truncate(1);
    }
    match &parts[..] {
        [part] => part.clone_tensor(Some(MemoryFormat::Contiguous)),
        _ => crate::ops::shape::join::cat(&parts, dim),
    }
}

/// Refuses padding for another number of dimensions than `spatial`, and tensors without elements where `mode` reads
/// some.
fn check_continued(x: &Tensor, padding: &[i64], spatial: usize, mode: &str) -> Result<()> {
    ensure!(
        padding.len() == 2 * spatial,
        runtime,
        "padding size is expected to be {}, but got: {}",
        2 * spatial,
        padding.len()
    );
    let (batch, is_mirror) = (x.ndim().wrapping_sub(spatial + 1), mode != "circular");
    ensure!(
        batch <= 1 && !(is_mirror && x.shape()[batch..].contains(&0)),
        runtime,
        "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
        spatial + 1,
        spatial + 2,
        list(x.shape())
    );
    if is_mirror { check_output(x, padding, mode) } else { Ok(()) }
}

/// Pads, or crops, the last dimensions by copies of parts of the tensor, in new memory.
fn padded_by_copies(x: &Tensor, padding: &[i64], mode: &str) -> Result<Tensor> {
    let mut out = x.clone();
    for (index, sides) in padding.chunks(2).enumerate() {
        if sides[0] != 0 || sides[1] != 0 {
            out = pad_dim(&out, (x.ndim() - 1 - index) as i64, (sides[0], sides[1]), mode)?;
        }
    }
    if out.is_same(x) { out.clone_tensor(None) } else { Ok(out) }
}

/// Periodic (circular) padding. It is not an op: the ops that it is made of have the gradient.
fn periodic(x: &Tensor, padding: &[i64], spatial: usize) -> Result<Tensor> {
    check_continued(x, padding, spatial, "circular")?;
    padded_by_copies(x, padding, "circular")
}

/// The spec of a tensor padded by reflection or replication.
fn continued_spec(x: &Tensor, padding: &[i64], spatial: usize, mode: &str) -> Result<TensorSpec> {
    check_continued(x, padding, spatial, mode)?;
    let mut shape = Dims::from_slice(x.shape());
    for (index, sides) in padding.chunks(2).enumerate() {
        let size = &mut shape[x.ndim() - 1 - index];
        *size = size.saturating_add(sides[0]).saturating_add(sides[1]);
    }
    Ok(TensorSpec::in_format_of(x, &shape))
}

/// Computes reflection and replication padding.
fn continued(cpu: Cpu, result: &Tensor, x: &Tensor, padding: &[i64], mode: &str) -> Result<()> {
    if padding.iter().any(|&side| side < 0) {
        return result.copy_data(cpu, &padded_by_copies(x, padding, mode)?);
    }
    mirrored(cpu, result, x, padding, mode)
}

/// Reflects or replicates the last dimensions without cropping: the tensor is copied into the middle of the result, and
/// continued from there one dimension after the other.
fn mirrored(cpu: Cpu, result: &Tensor, x: &Tensor, padding: &[i64], mode: &str) -> Result<()> {
    let mut inside: SmallVec<[Range<i64>; 5]> = x.shape().iter().map(|&size| 0..size).collect();
    for (index, sides) in padding.chunks(2).enumerate() {
        let dim = x.ndim() - 1 - index;
        inside[dim] = sides[0]..sides[0].saturating_add(x.shape()[dim]);
    }
    let mut middle = result.clone();
    for (dim, range) in inside.iter().enumerate().skip(x.ndim() - padding.len() / 2) {
        middle = middle.narrow(dim as i64, range.start, range.end - range.start)?;
    }
    middle.copy_data(cpu, x)?;
    for dim in (x.ndim() - padding.len() / 2..x.ndim()).rev() {
        let (Range { start, end }, size) = (inside[dim].clone(), x.shape()[dim]);
        if size == result.shape()[dim] {
            continue;
        }
        let source = |position: i64| match mode {
            "reflect" if position < start => 2 * start - position,
            "reflect" => 2 * (end - 1) - position,
            _ => position.clamp(start, end - 1),
        };
        layout::pad_along(&mut result.view_mut(cpu), dim, start..end, &inside[..dim], &source)?;
    }
    Ok(())
}

/// Refuses dtypes without a kernel, reflections larger than the tensor, and results without elements.
fn check_output(x: &Tensor, padding: &[i64], mode: &str) -> Result<()> {
    let spatial = padding.len() / 2;
    let first = x.ndim() - spatial;
    if x.dtype() == DType::Bool {
        let name = if mode == "reflect" { "reflection" } else { "replication" };
        bail!(
            not_implemented,
            "\"{name}_pad{spatial}d\" not implemented for '{}'",
            DType::Bool.scalar_name()
        );
    }
    let sides = |dim: usize| {
        let at = 2 * (x.ndim() - 1 - dim);
        (padding[at], padding[at + 1])
    };
    for dim in (first..x.ndim()).rev() {
        let ((before, after), size) = (sides(dim), x.shape()[dim]);
        ensure!(
            mode != "reflect" || (before < size && after < size),
            runtime,
            "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at dimension {dim} of input {}",
            2 * (x.ndim() - 1 - dim) + 4,
            list(x.shape())
        );
    }
    let out = |dim: usize| x.shape()[dim].saturating_add(sides(dim).0).saturating_add(sides(dim).1);
    let named = |size: &dyn Fn(usize) -> i64, comma: &str| {
        let letters = &["D", "H", "W"][3 - spatial..];
        let each = letters.iter().zip(first..).map(|(l, dim)| format!("{l}: {}", size(dim)));
        each.collect::<Vec<_>>().join(comma)
    };
    let (given, made) = (named(&|dim| x.shape()[dim], ", "), named(&out, " "));
    let is_filled = (first..x.ndim()).all(|dim| out(dim) >= 1);
    ensure!(
        is_filled || spatial > 1,
        runtime,
        "input ({given}) is too small. Calculated output {made}"
    );
    ensure!(
        is_filled,
        runtime,
        "Calculated output {made} must be >= 1 in every dimension (input {given})"
    );
    Ok(())
}

/// The gradient of [`continued`]: dimension by dimension, each copied part is added to where it was copied from.
fn folded(grad: &Tensor, shape: &[i64], padding: &[i64], mode: &str) -> Result<Tensor> {
    let mut grad = grad.clone();
    for (index, sides) in padding.chunks(2).enumerate().rev() {
        if sides[0] != 0 || sides[1] != 0 {
            let dim = shape.len() - 1 - index;
            grad = fold_dim(&grad, dim as i64, shape[dim], (sides[0], sides[1]), mode)?;
        }
    }
    Ok(grad)
}

fn fold_dim(
    grad: &Tensor,
    dim: i64,
    size: i64,
    (before, after): (i64, i64),
    mode: &str,
) -> Result<Tensor> {
    let total = grad.shape()[dim as usize];
    let (head, tail) = (before.max(0), after.max(0));
    let part = |from: i64, to: i64| grad.slice(dim, Some(from), Some(to), 1);
    // Embeds a part in zeros.
    let at = |part: Tensor, from: i64| {
        let mut sides = Dims::from_elem(0, 2 * (grad.ndim() - 1 - dim as usize));
        sides.extend([from, size - from - part.shape()[dim as usize]]);
        part.constant_pad_nd(&sides, Scalar::Int(0))
    };
    let mut sum = at(part(head, total - tail)?, before.saturating_neg().max(0))?;
    for (count, from, to, edge, mirror) in
        [(head, 0, head, 0, 1), (tail, total - tail, total, size - 1, size - 1 - tail)]
    {
        if count == 0 {
            continue;
        }
        let part = part(from, to)?;
        sum = sum.add(&if mode == "reflect" {
            at(part.flip(&[dim])?, mirror)?
        } else {
            at(part.sum_dim(Some(&[dim]), true)?, edge)?
        })?;
    }
    Ok(sum)
}

/// Positive and negative padding, on each of the `spatial` dimensions in turn.
fn pad_samples(s: &Sampler, spatial: usize) -> Vec<Sample> {
    let shape: Vec<i64> =
        std::iter::once(2).chain((0..spatial as i64).map(|i| 3 + i % 2)).collect();
    let sample = |sides: &[i64]| {
        let padding: Vec<i64> = sides.iter().copied().cycle().take(2 * spatial).collect();
        Sample::of(s.normal(&shape)).with("padding", padding.as_slice())
    };
    vec![sample(&[1, 2]), sample(&[2, -1, 0]), sample(&[-1, 1]), sample(&[0, 0])]
}

fn pad_errors(s: &Sampler, spatial: usize) -> Vec<InvalidSample> {
    let padding = vec![1; 2 * spatial];
    let flat = Sample::of(s.normal(&[3])).with("padding", padding.as_slice());
    vec![InvalidSample::new(flat, ErrorKind::Runtime, "(batch mode) tensor with possibly 0 batch")]
}

/// The last dimension of (C, L) or (N, C, L) padded by reflections at its edges: `padding` is (before, after), each
/// smaller than the size. Negative numbers crop.
#[op("reflection_pad1d(Tensor self, int[2] padding) -> Tensor", module = "nn", jvp = linear, node = "ReflectionPad1D",
     method = reflection_pad1d, autocast = fp32, batch = image1)]
impl ReflectionPad1d {
    fn meta(self_: &Tensor, padding: &[i64]) -> Result<TensorSpec> {
        continued_spec(self_, padding, 1, "reflect")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, padding: &[i64]) -> Result<()> {
        continued(cpu, result, self_, padding, "reflect")
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], padding: &[i64]) -> Result<Tensor> {
        folded(grad, self_shape, padding, "reflect")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pad_samples(s, 1)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        pad_errors(s, 1)
    }
}

/// The last two dimensions of (C, H, W) or (N, C, H, W) padded by reflections at their edges: `padding` is (before,
/// after) for the last dimension, then for the one before it, each smaller than the size. Negative numbers crop.
#[op("reflection_pad2d(Tensor self, int[4] padding) -> Tensor", module = "nn", jvp = linear, node = "ReflectionPad2D",
     method = reflection_pad2d, autocast = fp32, batch = image2)]
impl ReflectionPad2d {
    fn meta(self_: &Tensor, padding: &[i64]) -> Result<TensorSpec> {
        continued_spec(self_, padding, 2, "reflect")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, padding: &[i64]) -> Result<()> {
        continued(cpu, result, self_, padding, "reflect")
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], padding: &[i64]) -> Result<Tensor> {
        folded(grad, self_shape, padding, "reflect")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pad_samples(s, 2)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        pad_errors(s, 2)
    }
}

/// The last three dimensions of (C, D, H, W) or (N, C, D, H, W) padded by reflections at their edges: `padding` is
/// (before, after) for the last dimension, then for the ones before it, each smaller than the size. Negative numbers
/// crop.
#[op("reflection_pad3d(Tensor self, int[6] padding) -> Tensor", module = "nn", jvp = linear, node = "ReflectionPad3D",
     method = reflection_pad3d, batch = image3)]
impl ReflectionPad3d {
    fn meta(self_: &Tensor, padding: &[i64]) -> Result<TensorSpec> {
        continued_spec(self_, padding, 3, "reflect")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, padding: &[i64]) -> Result<()> {
        continued(cpu, result, self_, padding, "reflect")
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], padding: &[i64]) -> Result<Tensor> {
        folded(grad, self_shape, padding, "reflect")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pad_samples(s, 3)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        pad_errors(s, 3)
    }
}

/// The last dimension of (C, L) or (N, C, L) padded by copies of its edges: `padding` is (before, after). Negative
/// numbers crop.
#[op("replication_pad1d(Tensor self, int[2] padding) -> Tensor", module = "nn", jvp = linear, node = "ReplicationPad1D",
     method = replication_pad1d, autocast = fp32, batch = image1)]
impl ReplicationPad1d {
    fn meta(self_: &Tensor, padding: &[i64]) -> Result<TensorSpec> {
        continued_spec(self_, padding, 1, "replicate")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, padding: &[i64]) -> Result<()> {
        continued(cpu, result, self_, padding, "replicate")
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], padding: &[i64]) -> Result<Tensor> {
        folded(grad, self_shape, padding, "replicate")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pad_samples(s, 1)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        pad_errors(s, 1)
    }
}

/// The last two dimensions of (C, H, W) or (N, C, H, W) padded by copies of their edges: `padding` is (before, after)
/// for the last dimension, then for the one before it. Negative numbers crop.
#[op("replication_pad2d(Tensor self, int[4] padding) -> Tensor", module = "nn", jvp = linear, node = "ReplicationPad2D",
     method = replication_pad2d, autocast = fp32, batch = image2)]
impl ReplicationPad2d {
    fn meta(self_: &Tensor, padding: &[i64]) -> Result<TensorSpec> {
        continued_spec(self_, padding, 2, "replicate")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, padding: &[i64]) -> Result<()> {
        continued(cpu, result, self_, padding, "replicate")
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], padding: &[i64]) -> Result<Tensor> {
        folded(grad, self_shape, padding, "replicate")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pad_samples(s, 2)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        pad_errors(s, 2)
    }
}

/// The last three dimensions of (C, D, H, W) or (N, C, D, H, W) padded by copies of their edges: `padding` is (before,
/// after) for the last dimension, then for the ones before it. Negative numbers crop.
#[op("replication_pad3d(Tensor self, int[6] padding) -> Tensor", module = "nn", jvp = linear, node = "ReplicationPad3D",
     method = replication_pad3d, autocast = fp32, batch = image3)]
impl ReplicationPad3d {
    fn meta(self_: &Tensor, padding: &[i64]) -> Result<TensorSpec> {
        continued_spec(self_, padding, 3, "replicate")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, padding: &[i64]) -> Result<()> {
        continued(cpu, result, self_, padding, "replicate")
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], padding: &[i64]) -> Result<Tensor> {
        folded(grad, self_shape, padding, "replicate")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pad_samples(s, 3)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        pad_errors(s, 3)
    }
}

/// Pads the last dimensions: `pad` lists how many elements (before, after) for the last dimension, then for the one
/// before it, and so on; `mode` is "constant" (with `value`), "reflect", "replicate" or "circular".
#[op(
    "pad(Tensor self, int[] pad, str mode=\"constant\", float? value=None) -> Tensor",
    module = "nn"
)]
impl Pad {
    fn composite(self_: &Tensor, pad: &[i64], mode: &str, value: Option<f64>) -> Result<Tensor> {
        ensure!(pad.len().is_multiple_of(2), runtime, "Padding length must be divisible by 2");
        ensure!(
            pad.len() / 2 <= self_.ndim(),
            runtime,
            "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {}",
            pad.len(),
            self_.ndim()
        );
        if mode == "constant" {
            return self_.constant_pad_nd(pad, Scalar::Float(value.unwrap_or(0.0)));
        }
        ensure!(
            value.is_none_or(|v| v == 0.0),
            runtime,
            "Padding mode \"{mode}\" doesn't take in value argument"
        );
        if !matches!(mode, "reflect" | "replicate" | "circular") {
            bail!(not_implemented, "Unrecognised padding mode {mode}");
        }
        let (n, spatial) = (self_.ndim(), pad.len() / 2);
        ensure!(
            (1..=3).contains(&spatial) && (n == spatial + 1 || n == spatial + 2),
            not_implemented,
            "Padding size {} is not supported for {n}D input tensor: it pads the last {spatial} of {} or {} dimensions",
            pad.len(),
            spatial + 1,
            spatial + 2
        );
        match (mode, spatial) {
            ("reflect", 1) => self_.reflection_pad1d(pad),
            ("reflect", 2) => self_.reflection_pad2d(pad),
            ("reflect", _) => self_.reflection_pad3d(pad),
            ("replicate", 1) => self_.replication_pad1d(pad),
            ("replicate", 2) => self_.replication_pad2d(pad),
            ("replicate", _) => self_.replication_pad3d(pad),
            _ => periodic(self_, pad, spatial),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], pad: &[i64], mode: &str| {
            Sample::new([s.normal(shape).into(), pad.into(), Value::Str(mode.into())])
        };
        vec![
            sample(&[2, 3], &[1, 1], "constant"),
            sample(&[1, 2, 3], &[2, 1], "reflect"),
            sample(&[1, 1, 3, 3], &[1, 2, 0, 1], "replicate"),
            sample(&[1, 1, 3, 3], &[1, 2, -1, 1], "circular"),
            sample(&[1, 4, 4], &[-1, 1], "circular"),
            sample(&[1, 4, 4], &[-1, -1], "reflect"),
            sample(&[1, 2, 3], &[2, -2], "replicate"),
        ]
    }
}
