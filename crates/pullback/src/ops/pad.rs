//! Padding: constants, reflections, replications and periodic continuation.
//!
//! `constant_pad_nd` is the one kernel; the other modes copy edge slices, each made of `slice`, `flip` and
//! `cat`, so that their derivatives are those of these ops.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::tensor::shape::list;
use crate::{Dims, MemoryFormat, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&CONSTANT_PAD_ND, &PAD];

/// The tensor with `pad` more elements of `value` around it: `pad` lists (before, after) from the last dimension
/// on; negative numbers crop.
#[op("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", method = constant_pad_nd)]
impl ConstantPadNd {
    fn cpu(self_: &Tensor, pad: &[i64], value: Scalar) -> Result<Tensor> {
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
        let (mut shape, mut source) = (Dims::from_slice(self_.shape()), self_.clone());
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
            let from = sides[0].saturating_neg().max(0);
            source = source.slice(
                dim as i64,
                Some(from),
                Some((shape[dim] + sides[1].min(0)).max(from)),
                1,
            )?;
            shape[dim] = size;
        }
        let out = super::creation::filled(&TensorSpec::of(&shape, self_.dtype()), value)?;
        let mut place = out.clone();
        for (index, sides) in pad.chunks(2).enumerate() {
            let dim = self_.ndim() - 1 - index;
            let from = sides[0].max(0);
            place = place.slice(dim as i64, Some(from), Some(from + source.shape()[dim]), 1)?;
        }
        place.copy_data(&source)?;
        Ok(out)
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

/// One dimension padded by pieces of the tensor itself, in memory of its own.
fn pad_dim(x: &Tensor, dim: i64, (before, after): (i64, i64), mode: &str) -> Result<Tensor> {
    let size = x.shape()[dim as usize];
    let piece = |from: i64, to: i64| x.slice(dim, Some(from), Some(to), 1);
    let (head, tail) = (before.max(0), after.max(0));
    let mut parts = Vec::new();
    match mode {
        "reflect" => {
            ensure!(
                head < size && tail < size,
                runtime,
                "Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at dimension {dim} of input {}",
                list(x.shape())
            );
            parts.push(piece(1, head + 1)?.flip(&[dim])?);
            parts.push(piece((-before).max(0), size + after.min(0))?);
            parts.push(piece(size - 1 - tail, size - 1)?.flip(&[dim])?);
        }
        "replicate" => {
            ensure!(
                size > 0,
                runtime,
                "Expected a non-empty dimension {dim} for replicate padding, but got input of size {}",
                list(x.shape())
            );
            let edge = |from: i64, n: i64| {
                let mut shape = Dims::from_slice(x.shape());
                shape[dim as usize] = n;
                piece(from, from + 1)?.expand(&shape, false)
            };
            parts.push(edge(0, head)?);
            parts.push(piece((-before).max(0), size + after.min(0))?);
            parts.push(edge(size - 1, tail)?);
        }
        _ => {
            // What is cropped away does not come back at the other side.
            let (from, to) = ((-before).max(0), size + after.min(0));
            ensure!(
                head <= to - from && tail <= to - from,
                runtime,
                "Padding value causes wrapping around more than once."
            );
            parts.push(piece(to - head, to)?);
            parts.push(piece(from, to)?);
            parts.push(piece(from, from + tail)?);
        }
    }
    parts.retain(|p| p.shape()[dim as usize] > 0);
    match &parts[..] {
        [piece] => piece.clone_tensor(Some(MemoryFormat::Contiguous)),
        _ => super::join::cat(&parts, dim),
    }
}

/// Pads the last dimensions as `pad` lists them: mode "constant" (with `value`), "reflect", "replicate" or "circular".
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
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
        );
        let mut out = self_.clone();
        for (index, sides) in pad.chunks(2).enumerate() {
            if sides[0] != 0 || sides[1] != 0 {
                out = pad_dim(&out, (n - 1 - index) as i64, (sides[0], sides[1]), mode)?;
            }
        }
        if out.is_same(self_) { out.clone_tensor(None) } else { Ok(out) }
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
