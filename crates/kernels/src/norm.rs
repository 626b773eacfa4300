//! Normalisation layers, forward and backward: layer, RMS, group and batch norm.
//!
//! Statistics are computed in two passes (mean, then squared deviations), in `f32` for half precision;
//! long sums are added up in `f64` per chunk. Saved statistics are the mean and `rstd`, the reciprocal
//! standard deviation `1 / sqrt(var + eps)`. Weights and biases are optional everywhere. Rows,
//! channels or fixed blocks of rows are the tasks, so results do not depend on threads.

mod batch;
mod group;
mod layer;

pub use batch::{BatchNorm, batch_norm, batch_norm_backward};
pub use group::{group_norm, group_norm_backward};
pub use layer::{layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};

use crate::dense::{Compute, Real, expect_shape, load};
use crate::row::{reduce, sum_pairs};
use crate::{Result, StridedMut, StridedRef};
use std::borrow::Cow;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 14;
/// Elements summed in the compute type before `f64` takes over.
const CHUNK: usize = 4096;

/// A weight or bias as a slice, if there is one.
fn load_optional<'a, T: Compute>(
    name: &str,
    view: Option<StridedRef<'a>>,
    n: usize,
) -> Result<Option<Cow<'a, [T]>>> {
    let Some(view) = view else { return Ok(None) };
    if view.numel() != n {
        expect_shape(name, view.shape(), &[n as i64])?;
    }
    Ok(Some(load(view)))
}

/// A buffer for an optional output, and its writing out.
fn buffer<T: Real>(view: Option<&StridedMut<'_>>, n: usize) -> Vec<T> {
    vec![T::ZERO; if view.is_some() { n } else { 0 }]
}

fn store_optional<T: Compute>(view: Option<&mut StridedMut<'_>>, values: &[T]) {
    if let Some(view) = view {
        crate::dense::store(view, values);
    }
}

crate::multiversion! {
    /// The sum of a row.
    fn sum<T: Real>(x: &[T]) -> f64 {
        // A loop, here and below: what an iterator's `sum` calls is not compiled with the level.
        let mut total = 0.0;
        for chunk in x.chunks(CHUNK) {
            total += reduce(chunk, T::ZERO, |a, b| a + b, |v| v).wide();
        }
        total
    }
}

crate::multiversion! {
    /// The sum of `(x - mean)^2`.
    fn sum_squares<T: Real>(x: &[T], mean: T) -> f64 {
        let mut total = 0.0;
        for chunk in x.chunks(CHUNK) {
            let square = |v: T| (v - mean) * (v - mean);
            total += reduce(chunk, T::ZERO, |a, b| a + b, square).wide();
        }
        total
    }
}

crate::multiversion! {
    /// The sum of `g * (x - mean)`.
    fn sum_products<T: Real>(g: &[T], x: &[T], mean: T) -> f64 {
        let mut total = 0.0;
        for (g, x) in g.chunks(CHUNK).zip(x.chunks(CHUNK)) {
            total += sum_pairs(g, x, |g: T, x: T| g * (x - mean)).wide();
        }
        total
    }
}

crate::multiversion! {
    /// `out = x * scale + shift`.
    fn affine<T: Real>(out: &mut [T], x: &[T], scale: T, shift: T) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x.mul_add(scale, shift);
        }
    }
}

crate::multiversion! {
    /// `out = g * a + x * b + c`: the form of every norm's input gradient for one channel.
    fn combine<T: Real>(out: &mut [T], g: &[T], x: &[T], a: T, b: T, c: T) {
        for ((out, &g), &x) in out.iter_mut().zip(g).zip(x) {
            *out = g.mul_add(a, x.mul_add(b, c));
        }
    }
}

/// `1 / sqrt(var + eps)`.
fn reciprocal_std<T: Real>(variance: f64, eps: f64) -> T {
    T::of(1.0 / (variance + eps).sqrt())
}
