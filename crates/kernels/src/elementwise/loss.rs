//! Losses element by element, before they are reduced, in one pass; half precision is computed in `f32`.

use super::dense::{run2, run3};
use super::math::{Math, RealMath};
use crate::{Iter, Result};

map!(SquaredDifference<T: RealMath>(a: T, b: T) -> T {
    let gap = a.minus(b);
    gap.times(gap)
});
/// `(a - b)²`.
pub fn squared_difference(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "mse_cpu", [float], T => run2::<SquaredDifference<T>>(iter, ()))
}

/// The function of Huber's loss: `z² / 2` for `z` up to `limit`, else `limit (z - limit / 2)`.
#[inline(always)]
fn bent<T: RealMath>(z: T, limit: T) -> T {
    // (NaN stays: it is not above the limit.)
    let c = if z > limit { limit } else { z };
    c.times(z.minus(T::of(0.5).times(c)))
}
map!(Huber<T: RealMath>[delta => T](a: T, b: T) -> T { bent(RealMath::magnitude(a.minus(b)), delta) });
map!(SmoothL1<T: RealMath>[beta => T](a: T, b: T) -> T {
    bent(RealMath::magnitude(a.minus(b)), beta).divided_by(beta)
});
map!(AbsoluteDifference<T: RealMath>(a: T, b: T) -> T { RealMath::magnitude(a.minus(b)) });
/// With `z = |a - b|`: `z² / 2` for `z <= delta`, else `delta (z - delta / 2)` (Huber 1964).
pub fn huber(iter: &mut Iter, delta: f64) -> Result<()> {
    compute!(iter.input_dtype(0), "huber_cpu", [float], T => run2::<Huber<T>>(iter, T::of(delta)))
}
/// With `z = |a - b|`: `z² / (2 beta)` for `z < beta`, else `z - beta / 2`; for a `beta` of 0 it is `z`.
pub fn smooth_l1(iter: &mut Iter, beta: f64) -> Result<()> {
    compute!(iter.input_dtype(0), "smooth_l1_cpu", [float], T => {
        if beta == 0.0 {
            run2::<AbsoluteDifference<T>>(iter, ())
        } else {
            run2::<SmoothL1<T>>(iter, T::of(beta))
        }
    })
}

/// `ln x`, but at least -100; NaN stays.
#[inline(always)]
fn at_least_minus_100<T: RealMath>(log: T) -> T {
    let least = T::of(-100.0);
    if log < least { least } else { log }
}
/// `-(t ln x + (1 - t) ln(1 - x))` with logarithms of at least -100.
#[inline(always)]
fn cross_entropy<T: RealMath>(x: T, t: T) -> T {
    let rest = at_least_minus_100(Math::log1p(x.negative()));
    let own = at_least_minus_100(Math::log(x));
    t.minus(T::one()).times(rest).minus(t.times(own))
}
map!(math CrossEntropy<T: RealMath>(x: T, t: T) -> T { cross_entropy(x, t) });
map!(math WeightedCrossEntropy<T: RealMath>(x: T, t: T, w: T) -> T { cross_entropy(x, t).times(w) });
/// `-w (t ln x + (1 - t) ln(1 - x))` with logarithms of at least -100; inputs: `x`, `t`, and `w` where there is one.
pub fn binary_cross_entropy(iter: &mut Iter, has_weight: bool) -> Result<()> {
    compute!(iter.input_dtype(0), "binary_cross_entropy", [float], T => {
        if has_weight {
            run3::<WeightedCrossEntropy<T>>(iter, ())
        } else {
            run2::<CrossEntropy<T>>(iter, ())
        }
    })
}

/// `ln(sigmoid(x))`.
#[inline(always)]
fn log_sigmoid<T: RealMath>(x: T) -> T {
    let below = if x > T::zero() { T::zero() } else { x };
    below.minus(RealMath::log1p_exp(x))
}
map!(math LogitsCrossEntropy<T: RealMath>(x: T, t: T) -> T {
    T::one().minus(t).times(x).minus(log_sigmoid(x))
});
map!(math PositiveCrossEntropy<T: RealMath>(x: T, t: T, p: T) -> T {
    let factor = p.minus(T::one()).times(t).plus(T::one());
    T::one().minus(t).times(x).minus(factor.times(log_sigmoid(x)))
});
/// `-(p t ln s + (1 - t) ln(1 - s))` of `s = sigmoid(x)`, without underflow; inputs: `x`, `t`, and `p` where there is one (else it
/// is 1).
pub fn binary_cross_entropy_with_logits(iter: &mut Iter, has_pos_weight: bool) -> Result<()> {
    compute!(iter.input_dtype(0), "log_sigmoid_cpu", [float], T => {
        if has_pos_weight {
            run3::<PositiveCrossEntropy<T>>(iter, ())
        } else {
            run2::<LogitsCrossEntropy<T>>(iter, ())
        }
    })
}

map!(math SoftMargin<T: Math>(x: T, t: T) -> T { Math::log1p(Math::exp(x.times(t.negative()))) });
/// `ln(1 + e^(-t x))`; inputs: `x`, `t`.
pub fn soft_margin(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "soft_margin_loss", [float complex], T => run2::<SoftMargin<T>>(iter, ()))
}
