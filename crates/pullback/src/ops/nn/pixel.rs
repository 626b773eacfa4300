//! Channels that become pixels, and pixels that become channels.
//!
//! Both are a permutation of the elements and each other's inverse, so each is the other's gradient rule.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{Dims, ErrorKind, MemoryFormat, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&PIXEL_SHUFFLE, &PIXEL_UNSHUFFLE];

/// Channels, height and width, and what comes before them.
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

/// The elements as `split` says, its dimensions behind the batch in another order, in memory of their own.
fn rearranged(
    x: &Tensor,
    batch: &[i64],
    split: [i64; 5],
    order: [i64; 5],
    planes: [i64; 3],
) -> Result<Tensor> {
    let whole = |planes: &[i64]| batch.iter().chain(planes).copied().collect::<Dims>();
    let places = (0..batch.len() as i64).chain(order.map(|o| o + batch.len() as i64));
    x.reshape(&whole(&split))?
        .permute(&places.collect::<Dims>())?
        .clone_tensor(Some(MemoryFormat::Contiguous))?
        .view(&whole(&planes))
}

/// `(*, C r^2, H, W)` to `(*, C, H r, W r)` with `r = upscale_factor`: channels become pixels.
#[op("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", function_only, jvp = linear, method = pixel_shuffle, batch = pixels)]
impl PixelShuffle {
    fn cpu(self_: &Tensor, upscale_factor: i64) -> Result<Tensor> {
        let r = upscale_factor;
        let (batch, [c, h, w]) = planes("pixel_shuffle", self_, r, "upscale_factor")?;
        let square = r.saturating_mul(r);
        ensure!(
            c % square == 0,
            runtime,
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={c} is not divisible by {square}"
        );
        let c = c / square;
        rearranged(self_, batch, [c, r, r, h, w], [0, 3, 1, 4, 2], [c, h * r, w * r])
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

/// The inverse of `pixel_shuffle`: `(*, C, H r, W r)` to `(*, C r^2, H, W)` with `r = downscale_factor`.
#[op("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", function_only, jvp = linear, method = pixel_unshuffle, batch = pixels)]
impl PixelUnshuffle {
    fn cpu(self_: &Tensor, downscale_factor: i64) -> Result<Tensor> {
        let r = downscale_factor;
        let (batch, [c, h, w]) = planes("pixel_unshuffle", self_, r, "downscale_factor")?;
        for (name, size, place) in [("height", h, -2), ("width", w, -1)] {
            ensure!(
                size % r == 0,
                runtime,
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={size} is not divisible by {r}"
            );
        }
        let (h, w) = (h / r, w / r);
        rearranged(self_, batch, [c, h, r, w, r], [0, 2, 4, 1, 3], [c * r * r, h, w])
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
