//! The taps of a block of places along one dimension: which elements, with which weights, and how these change with the place.

use super::{Interpolation, Outside, Sampling};
use crate::dense::Real;
use smallvec::SmallVec;

/// Numbers of a block, of a small one without memory of its own.
pub(super) type Few<T> = SmallVec<[T; 24]>;

/// The taps of `count` places along a dimension, one tap after the other.
#[derive(Default)]
pub(super) struct Axis<T> {
    /// The element's number, or -1 outside.
    pub(super) index: Few<i64>,
    pub(super) weight: Few<T>,
    /// The derivative of the weight by the place in elements, if it was asked for.
    pub(super) slope: Few<T>,
}

impl<T: Real> Axis<T> {
    /// The numbers of the elements of a tap of `count` places, and their weights.
    #[inline(always)]
    pub(super) fn tap(&self, tap: usize, count: usize) -> (&[i64], &[T]) {
        let start = tap * count;
        (&self.index[start..][..count], &self.weight[start..][..count])
    }
    /// Makes these the taps of the relative places that are every `step`-th number, along a dimension of `size` elements.
    pub(super) fn set(
        &mut self,
        places: &[T],
        step: usize,
        (count, size): (usize, usize),
        (sampling, has_slopes): (Sampling, bool),
    ) {
        let (axis, all) = (self, sampling.taps() * count);
        refill(&mut axis.index, 0, all);
        refill(&mut axis.weight, T::ONE, all);
        refill(&mut axis.slope, T::ZERO, if has_slopes { all } else { 0 });
        // bounded: by a block of places.
        let mut place = Few::from_elem(T::ZERO, count);
        for (place, &relative) in place.iter_mut().zip(places.iter().step_by(step)) {
            *place = absolute(relative, size, sampling);
        }
        // bounded: by a block of places.
        let mut way = Few::from_elem(T::ONE, count);
        match sampling.interpolation {
            Interpolation::Linear => {
                sampling.move_inside(&mut place, &mut way, size);
                linear(axis, &place, &way, size);
            }
            Interpolation::Nearest => {
                sampling.move_inside(&mut place, &mut way, size);
                nearest(&mut axis.index, &place, size);
            }
            Interpolation::Cubic => {
                // bounded: by a block of places.
                let mut before = Few::from_elem(T::ZERO, count);
                cubic(axis, &mut before, &place);
                for (tap, index) in axis.index.chunks_mut(count.max(1)).enumerate() {
                    let steps = T::of(tap as f64 - 1.0);
                    for (place, &before) in place.iter_mut().zip(&before) {
                        *place = before + steps;
                    }
                    sampling.move_inside(&mut place, &mut way, size);
                    indices(index, &place, size);
                }
            }
        }
    }
}

/// Makes `numbers` as many of one value.
pub(super) fn refill<T: Copy>(numbers: &mut Few<T>, value: T, count: usize) {
    numbers.clear();
    // bounded: by the taps of a block of places.
    numbers.resize(count, value);
}

/// A place in elements, counted from the centre of the first one.
#[inline(always)]
fn absolute<T: Real>(relative: T, size: usize, sampling: Sampling) -> T {
    let place = (relative + T::ONE) * T::of(sampling.scale(size));
    if sampling.align_corners { place } else { place - T::of(0.5) }
}

impl Sampling {
    /// Moves places into an image of that size, if the mode does so, where NaN goes to the first element; `way` becomes the
    /// derivative of the moved place: 1, -1, or 0 at the border and beyond.
    fn move_inside<T: Real>(self, place: &mut [T], way: &mut [T], size: usize) {
        let last = T::of(size as f64 - 1.0);
        match self.outside {
            Outside::Zeros => {}
            Outside::Border => clamp(place, way, last),
            Outside::Reflection => {
                let (low, span) =
                    if self.align_corners { (T::ZERO, last) } else { (T::of(-0.5), last + T::ONE) };
                reflect(place, way, low, span);
                clamp(place, way, last);
            }
        }
    }
}

crate::multiversion! {
/// Limits places to `0..=last`.
fn clamp<T: Real>(place: &mut [T], way: &mut [T], last: T) {
    for (place, way) in place.iter_mut().zip(way) {
        let x = *place;
        *way = if (x > T::ZERO) & (x < last) { *way } else { T::ZERO };
        // (NaN is not above zero.)
        let above = if x > T::ZERO { x } else { T::ZERO };
        *place = if above < last { above } else { last };
    }
}
}

crate::multiversion! {
/// Folds places back at `low` and `low + span`.
fn reflect<T: Real>(place: &mut [T], way: &mut [T], low: T, span: T) {
    for (place, way) in place.iter_mut().zip(way) {
        let offset = *place - low;
        let distance = offset.abs();
        let folds = (distance / span).floor();
        let rest = distance - folds * span;
        let half = folds * T::of(0.5);
        let is_odd = half.floor() != half;
        let folded = (if is_odd { span - rest } else { rest }) + low;
        let is_back = (offset < T::ZERO) != is_odd;
        *way = if is_back { -T::ONE } else { T::ONE };
        // An image of one element: everywhere is its centre. (The clamp moves what is no number.)
        *place = if span > T::ZERO { folded } else { T::ZERO };
    }
}
}

crate::multiversion! {
/// Numbers of elements, -1 outside of the image.
fn indices<T: Real>(index: &mut [i64], place: &[T], size: usize) {
    let last = T::of(size as f64 - 1.0);
    for (index, &place) in index.iter_mut().zip(place) {
        let is_inside = (place >= T::ZERO) & (place <= last);
        *index = (if is_inside { place } else { -T::ONE }).to_i64();
    }
}
}

crate::multiversion! {
fn nearest<T: Real>(index: &mut [i64], place: &[T], size: usize) {
    let last = T::of(size as f64 - 1.0);
    for (index, &place) in index.iter_mut().zip(place) {
        let place = place.round();
        let is_inside = (place >= T::ZERO) & (place <= last);
        *index = (if is_inside { place } else { -T::ONE }).to_i64();
    }
}
}

crate::multiversion! {
fn linear<T: Real>(axis: &mut Axis<T>, place: &[T], way: &[T], size: usize) {
    let (count, last) = (place.len(), T::of(size as f64 - 1.0));
    let (index_before, index_after) = axis.index.split_at_mut(count);
    let (near, far) = axis.weight.split_at_mut(count);
    let (index_after, far) = (&mut index_after[..count], &mut far[..count]);
    for i in 0..count {
        let x = place[i];
        let before = x.floor();
        let after = before + T::ONE;
        let is_first = (before >= T::ZERO) & (before <= last);
        let is_second = (after >= T::ZERO) & (after <= last);
        index_before[i] = (if is_first { before } else { -T::ONE }).to_i64();
        index_after[i] = (if is_second { after } else { -T::ONE }).to_i64();
        (near[i], far[i]) = (after - x, x - before);
    }
    if axis.slope.is_empty() {
        return;
    }
    let (near, far) = axis.slope.split_at_mut(count);
    for ((near, far), &way) in near.iter_mut().zip(far).zip(way) {
        (*near, *far) = (-way, way);
    }
}
}

/// The parameter of Keys' weights.
const KEYS: f64 = -0.75;

/// Keys' weight of an element at a distance up to 1, and its derivative.
#[inline(always)]
fn near<T: Real>(d: T) -> (T, T) {
    let (cube, square) = (T::of(KEYS + 2.0), T::of(KEYS + 3.0));
    let weight = (cube * d - square) * d * d + T::ONE;
    (weight, (T::of(3.0) * cube * d - T::of(2.0) * square) * d)
}

/// The same at a distance from 1 to 2.
#[inline(always)]
fn far<T: Real>(d: T) -> (T, T) {
    let (a, five, eight) = (T::of(KEYS), T::of(5.0 * KEYS), T::of(8.0 * KEYS));
    let weight = ((a * d - five) * d + eight) * d - T::of(4.0 * KEYS);
    (weight, (T::of(3.0) * a * d - T::of(2.0) * five) * d + eight)
}

crate::multiversion! {
/// The weights of the elements around places, and where the second of them is.
fn cubic<T: Real>(axis: &mut Axis<T>, before: &mut [T], place: &[T]) {
    let count = place.len();
    let (weight, slope) = (&mut axis.weight[..4 * count], &mut axis.slope[..]);
    for (i, (&x, before)) in place.iter().zip(before).enumerate() {
        *before = x.floor();
        let t = x - *before;
        let rest = T::ONE - t;
        let all = [far(t + T::ONE), near(t), near(rest), far(rest + T::ONE)];
        for (tap, (value, change)) in all.into_iter().enumerate() {
            weight[tap * count + i] = value;
            if let Some(slope) = slope.get_mut(tap * count + i) {
                *slope = if tap < 2 { change } else { -change };
            }
        }
    }
}
}
