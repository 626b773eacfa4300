//! The taps of a block of points along one dimension: which elements, with which weights, and how these change with the coordinate.

use super::{Interpolation, PaddingMode, SampleOptions};
use crate::dense::Real;
use smallvec::SmallVec;

/// Numbers of a block, of a small one without memory of its own.
pub(super) type TapVec<T> = SmallVec<[T; 24]>;

/// The taps of `count` points along a dimension, one tap after the other.
#[derive(Default)]
pub(super) struct AxisTaps<T> {
    /// The element's number, or -1 outside.
    pub(super) index: TapVec<i64>,
    pub(super) weight: TapVec<T>,
    /// The derivative of the weight by the coordinate in elements, if it is requested.
    pub(super) slope: TapVec<T>,
}

impl<T: Real> AxisTaps<T> {
    /// The numbers of the elements of a tap of `count` points, and their weights.
    #[inline(always)]
    pub(super) fn tap(&self, tap: usize, count: usize) -> (&[i64], &[T]) {
        let start = tap * count;
        (&self.index[start..][..count], &self.weight[start..][..count])
    }
    /// Makes these the taps of the relative points that are every `step`-th number, along a dimension of `size` elements.
    pub(super) fn set(
        &mut self,
        points: &[T],
        step: usize,
        (count, size): (usize, usize),
        (sampling, has_slopes): (SampleOptions, bool),
    ) {
        let (axis, all) = (self, sampling.taps() * count);
        refill(&mut axis.index, 0, all);
        refill(&mut axis.weight, T::ONE, all);
        refill(&mut axis.slope, T::ZERO, if has_slopes { all } else { 0 });
        // bounded: by a block of points.
        let mut coord = TapVec::from_elem(T::ZERO, count);
        for (coord, &relative) in coord.iter_mut().zip(points.iter().step_by(step)) {
            *coord = absolute(relative, size, sampling);
        }
        // bounded: by a block of points.
        let mut slope = TapVec::from_elem(T::ONE, count);
        match sampling.interpolation {
            Interpolation::Linear => {
                sampling.move_inside(&mut coord, &mut slope, size);
                linear(axis, &coord, &slope, size);
            }
            Interpolation::Nearest => {
                sampling.move_inside(&mut coord, &mut slope, size);
                nearest(&mut axis.index, &coord, size);
            }
            Interpolation::Cubic => {
                // bounded: by a block of points.
                let mut before = TapVec::from_elem(T::ZERO, count);
                cubic(axis, &mut before, &coord);
                for (tap, index) in axis.index.chunks_mut(count.max(1)).enumerate() {
                    let steps = T::of(tap as f64 - 1.0);
                    for (coord, &before) in coord.iter_mut().zip(&before) {
                        *coord = before + steps;
                    }
                    sampling.move_inside(&mut coord, &mut slope, size);
                    indices(index, &coord, size);
                }
            }
        }
    }
}

/// Makes `numbers` as many of one value.
pub(super) fn refill<T: Copy>(numbers: &mut TapVec<T>, value: T, count: usize) {
    numbers.clear();
    // bounded: by the taps of a block of points.
    numbers.resize(count, value);
}

/// A coordinate in elements, counted from the centre of the first one.
#[inline(always)]
fn absolute<T: Real>(relative: T, size: usize, sampling: SampleOptions) -> T {
    let coord = (relative + T::ONE) * T::of(sampling.scale(size));
    if sampling.align_corners { coord } else { coord - T::of(0.5) }
}

impl SampleOptions {
    /// Moves points into an image of that size, if the mode does so, where NaN goes to the first element; `slope` becomes the
    /// derivative of the moved coordinate: 1, -1, or 0 at the border and beyond.
    fn move_inside<T: Real>(self, coord: &mut [T], slope: &mut [T], size: usize) {
        let last = T::of(size as f64 - 1.0);
        match self.padding_mode {
            PaddingMode::Zeros => {}
            PaddingMode::Border => clamp(coord, slope, last),
            PaddingMode::Reflection => {
                let (low, span) =
                    if self.align_corners { (T::ZERO, last) } else { (T::of(-0.5), last + T::ONE) };
                reflect(coord, slope, low, span);
                clamp(coord, slope, last);
            }
        }
    }
}

crate::multiversion! {
/// Limits points to `0..=last`.
fn clamp<T: Real>(coord: &mut [T], slope: &mut [T], last: T) {
    for (coord, slope) in coord.iter_mut().zip(slope) {
        let x = *coord;
        *slope = if (x > T::ZERO) & (x < last) { *slope } else { T::ZERO };
        // (NaN is not above zero.)
        let above = if x > T::ZERO { x } else { T::ZERO };
        *coord = if above < last { above } else { last };
    }
}
}

crate::multiversion! {
/// Folds points back at `low` and `low + span`.
fn reflect<T: Real>(coord: &mut [T], slope: &mut [T], low: T, span: T) {
    for (coord, slope) in coord.iter_mut().zip(slope) {
        let offset = *coord - low;
        let distance = offset.abs();
        let folds = (distance / span).floor();
        let rest = distance - folds * span;
        let half = folds * T::of(0.5);
        let is_odd = half.floor() != half;
        let folded = (if is_odd { span - rest } else { rest }) + low;
        let is_back = (offset < T::ZERO) != is_odd;
        *slope = if is_back { -T::ONE } else { T::ONE };
        // An image of one element: everywhere is its centre. (The clamp moves what is no number.)
        *coord = if span > T::ZERO { folded } else { T::ZERO };
    }
}
}

crate::multiversion! {
/// Numbers of elements, -1 outside of the image.
fn indices<T: Real>(index: &mut [i64], coord: &[T], size: usize) {
    let last = T::of(size as f64 - 1.0);
    for (index, &coord) in index.iter_mut().zip(coord) {
        let is_inside = (coord >= T::ZERO) & (coord <= last);
        *index = (if is_inside { coord } else { -T::ONE }).to_i64();
    }
}
}

crate::multiversion! {
fn nearest<T: Real>(index: &mut [i64], coord: &[T], size: usize) {
    let last = T::of(size as f64 - 1.0);
    for (index, &coord) in index.iter_mut().zip(coord) {
        let coord = coord.round();
        let is_inside = (coord >= T::ZERO) & (coord <= last);
        *index = (if is_inside { coord } else { -T::ONE }).to_i64();
    }
}
}

crate::multiversion! {
fn linear<T: Real>(axis: &mut AxisTaps<T>, coord: &[T], slope: &[T], size: usize) {
    let (count, last) = (coord.len(), T::of(size as f64 - 1.0));
    let (index_before, index_after) = axis.index.split_at_mut(count);
    let (keys_near, keys_far) = axis.weight.split_at_mut(count);
    let (index_after, keys_far) = (&mut index_after[..count], &mut keys_far[..count]);
    for i in 0..count {
        let x = coord[i];
        let before = x.floor();
        let after = before + T::ONE;
        let is_first = (before >= T::ZERO) & (before <= last);
        let is_second = (after >= T::ZERO) & (after <= last);
        index_before[i] = (if is_first { before } else { -T::ONE }).to_i64();
        index_after[i] = (if is_second { after } else { -T::ONE }).to_i64();
        (keys_near[i], keys_far[i]) = (after - x, x - before);
    }
    if axis.slope.is_empty() {
        return;
    }
    let (keys_near, keys_far) = axis.slope.split_at_mut(count);
    for ((keys_near, keys_far), &slope) in keys_near.iter_mut().zip(keys_far).zip(slope) {
        (*keys_near, *keys_far) = (-slope, slope);
    }
}
}

/// The parameter of Keys' weights.
const KEYS: f64 = -0.75;

/// Keys' weight of an element at a distance up to 1, and its derivative.
#[inline(always)]
fn keys_near<T: Real>(d: T) -> (T, T) {
    let (cube, square) = (T::of(KEYS + 2.0), T::of(KEYS + 3.0));
    let weight = (cube * d - square) * d * d + T::ONE;
    (weight, (T::of(3.0) * cube * d - T::of(2.0) * square) * d)
}

/// Keys' weight of an element at a distance from 1 to 2, and its derivative.
#[inline(always)]
fn keys_far<T: Real>(d: T) -> (T, T) {
    let (a, five, eight) = (T::of(KEYS), T::of(5.0 * KEYS), T::of(8.0 * KEYS));
    let weight = ((a * d - five) * d + eight) * d - T::of(4.0 * KEYS);
    (weight, (T::of(3.0) * a * d - T::of(2.0) * five) * d + eight)
}

crate::multiversion! {
/// The weights of the elements around points, and where the second of them is.
fn cubic<T: Real>(axis: &mut AxisTaps<T>, before: &mut [T], coord: &[T]) {
    let count = coord.len();
    let (weight, slope) = (&mut axis.weight[..4 * count], &mut axis.slope[..]);
    for (i, (&x, before)) in coord.iter().zip(before).enumerate() {
        *before = x.floor();
        let t = x - *before;
        let rest = T::ONE - t;
        let all = [keys_far(t + T::ONE), keys_near(t), keys_near(rest), keys_far(rest + T::ONE)];
        for (tap, (value, change)) in all.into_iter().enumerate() {
            weight[tap * count + i] = value;
            if let Some(slope) = slope.get_mut(tap * count + i) {
                *slope = if tap < 2 { change } else { -change };
            }
        }
    }
}
}
