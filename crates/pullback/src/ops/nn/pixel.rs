//! Channels rearranged into pixels, and pixels into channels.
//!
//! Both are a permutation of the elements and each other's inverse, so each is the other's gradient.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::{Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&PIXEL_SHUFFLE, &PIXEL_UNSHUFFLE];

/// The batch dimensions, and the sizes of channels, height and width.
fn planes<'a>(name: &str, x: &'a Tensor, factor: i64, word: &str) -> Result<(&'a [i64], [i64; 3])> {
    ensure!(
        x.ndim() >= 3,
        runtime,
        "{name} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        x.ndim()
    );
    ensure!(factor > 0, runtime, "{name} expects a positive {word}, but got {factor}");
    let (batch, planes) = x.shape().split_at(x.ndim() - 3);
    Ok((batch, [planes[0], planes[1], planes[2]]))
}

/// Images whose channels and pixels are rearranged: how their dimensions are split, permuted and merged.
struct Rearranged {
    /// The sizes of the images before channels, height and width.
    batch: Dims,
    /// Channels, height and width, each split into its factors.
    split: [i64; 5],
    /// The order of the factors in the result.
    order: [usize; 5],
    /// Channels, height and width of the result.
    planes: [i64; 3],
}

impl Rearranged {
    /// The rearrangement of channels into pixels.
    fn shuffle(x: &Tensor, r: i64) -> Result<Self> {
        let (batch, [c, h, w]) = planes("pixel_shuffle", x, r, "upscale_factor")?;
        let square = r.saturating_mul(r);
        ensure!(
            c % square == 0,
            runtime,
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={c} is not divisible by {square}"
        );
        let c = c / square;
        let planes = [c, h.saturating_mul(r), w.saturating_mul(r)];
        Ok(Rearranged {
            batch: batch.into(),
            split: [c, r, r, h, w],
            order: [0, 3, 1, 4, 2],
            planes,
        })
    }
    /// The rearrangement of pixels into channels.
    fn unshuffle(x: &Tensor, r: i64) -> Result<Self> {
        let (batch, [c, h, w]) = planes("pixel_unshuffle", x, r, "downscale_factor")?;
        for (name, size, dim) in [("height", h, -2), ("width", w, -1)] {
            ensure!(
                size % r == 0,
                runtime,
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is not divisible by {r}"
            );
        }
        let (h, w) = (h / r, w / r);
        let planes = [c.saturating_mul(r).saturating_mul(r), h, w];
        Ok(Rearranged {
            batch: batch.into(),
            split: [c, h, r, w, r],
            order: [0, 2, 4, 1, 3],
            planes,
        })
    }
    fn whole(&self, planes: &[i64]) -> Dims {
        self.batch.iter().chain(planes).copied().collect()
    }
    fn spec(&self, x: &Tensor) -> TensorSpec {
        TensorSpec::in_format_of(x, &self.whole(&self.planes))
    }
    /// Writes the result: both tensors are viewed with split dimensions, and the elements copied in the new order.
    fn write(&self, cpu: Cpu, result: &Tensor, x: &Tensor) -> Result<()> {
        let first = self.batch.len() as i64;
        let dims = (0..first).chain(self.order.map(|o| o as i64 + first));
        let permuted = x.view(&self.whole(&self.split))?.permute(&dims.collect::<Dims>())?;
        result.view(permuted.shape())?.copy_data(cpu, &permuted)
    }
}

/// Rearranges channels into pixels: `(*, C r^2, H, W)` becomes `(*, C, H r, W r)` with `r = upscale_factor`.
#[op("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", function_only, jvp = linear, method = pixel_shuffle, batch = pixels)]
impl PixelShuffle {
    fn meta(self_: &Tensor, upscale_factor: i64) -> Result<TensorSpec> {
        Ok(Rearranged::shuffle(self_, upscale_factor)?.spec(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, upscale_factor: i64) -> Result<()> {
        Rearranged::shuffle(self_, upscale_factor)?.write(cpu, result, self_)
    }
    fn vjp_self(grad: &Tensor, upscale_factor: i64) -> Result<Tensor> {
        grad.pixel_unshuffle(upscale_factor)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], r: i64| Sample::of(s.normal(shape)).with("upscale_factor", r);
        vec![sample(&[2, 4, 1, 3], 2), sample(&[4, 2, 1], 2), sample(&[1, 2, 2, 2], 1)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |shape: &[i64], r: i64, text| {
            let sample = Sample::of(s.normal(shape)).with("upscale_factor", r);
            InvalidSample::new(sample, ErrorKind::Runtime, text)
        };
        vec![
            call(&[4, 2], 2, "at least 3 dimensions, but got input with 2 dimension(s)"),
            call(&[4, 2, 2], 0, "expects a positive upscale_factor, but got 0"),
            call(&[3, 2, 2], 2, "input.size(-3)=3 is not divisible by 4"),
        ]
    }
}

/// Rearranges pixels into channels, the inverse of `pixel_shuffle`: `(*, C, H r, W r)` becomes `(*, C r^2, H, W)` with
/// `r = downscale_factor`.
#[op("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", function_only, jvp = linear, method = pixel_unshuffle, batch = pixels)]
impl PixelUnshuffle {
    fn meta(self_: &Tensor, downscale_factor: i64) -> Result<TensorSpec> {
        Ok(Rearranged::unshuffle(self_, downscale_factor)?.spec(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, downscale_factor: i64) -> Result<()> {
        Rearranged::unshuffle(self_, downscale_factor)?.write(cpu, result, self_)
    }
    fn vjp_self(grad: &Tensor, downscale_factor: i64) -> Result<Tensor> {
        grad.pixel_shuffle(downscale_factor)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |shape: &[i64], r: i64| Sample::of(s.normal(shape)).with("downscale_factor", r);
        vec![sample(&[2, 1, 2, 4], 2), sample(&[1, 2, 2], 2), sample(&[0, 1, 2, 2], 2)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |shape: &[i64], r: i64, text| {
            let sample = Sample::of(s.normal(shape)).with("downscale_factor", r);
            InvalidSample::new(sample, ErrorKind::Runtime, text)
        };
        vec![
            call(&[4], 2, "at least 3 dimensions, but got input with 1 dimension(s)"),
            call(&[1, 2, 2], -1, "expects a positive downscale_factor, but got -1"),
            call(&[1, 3, 2], 2, "input.size(-2)=3 is not divisible by 2"),
        ]
    }
}
