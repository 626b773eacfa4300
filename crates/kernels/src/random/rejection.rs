//! Draws by rejection: each element takes as many numbers of the stream as its parameters need.
//!
//! Outputs are filled row by row. Parameters of single or half precision are computed with as
//! PyTorch does: what it keeps in `float` is rounded to single precision here ([`Precision`]),
//! everything else is double. Parameters for which no draw would ever be accepted (NaN, negative
//! shapes) give NaN and take nothing from the stream.

use super::Generator;
use crate::line::{LineIter, ViewLayout, check_dtype, check_shape, get, put};
use crate::special::log_gamma::lgamma;
use crate::{DType, Element, Error, Result, StridedMut, StridedRef, for_dtype, memory};

/// The precision that intermediate results are rounded to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    Single,
    Double,
}

impl Precision {
    fn of(dtype: DType) -> Self {
        if dtype == DType::F64 { Precision::Double } else { Precision::Single }
    }
    /// The result of one operation in this precision, computed in double.
    #[inline(always)]
    fn round(self, value: f64) -> f64 {
        if self == Precision::Single { f64::from(value as f32) } else { value }
    }
    #[inline(always)]
    fn ln_1p(self, value: f64) -> f64 {
        match self {
            Precision::Single => f64::from((value as f32).ln_1p()),
            Precision::Double => value.ln_1p(),
        }
    }
}

/// The least normal number of a floating dtype.
fn least(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f64::from(half::f16::MIN_POSITIVE),
        DType::F64 => f64::MIN_POSITIVE,
        // (The exponents of bfloat16 are those of single precision.)
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Stores what `draw` makes of each parameter, row by row.
fn fill_by<T: Element>(out: &StridedMut<'_>, p: &StridedRef<'_>, mut draw: impl FnMut(f64) -> f64) {
    let lines = LineIter::new(out.shape(), None, [ViewLayout::from(out), ViewLayout::from(p)]);
    lines.visit(0..lines.count(), |[to, from]| {
        // SAFETY: the walk stays inside both views, whose dtype the caller has checked.
        unsafe { put(out.ptr(), to, T::from_f64(draw(get::<T>(p.ptr(), from).to_f64()))) };
    });
}

/// A gamma number of shape `a` and rate 1, G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000;
/// for shapes below 1 by way of the next one.
fn gamma_number(a: f64, precision: Precision, generator: &mut Generator) -> f64 {
    let single = |value: f32| f64::from(value);
    if a == 0.0 {
        return 0.0;
    }
    if a.is_nan() || a < 0.0 {
        return f64::NAN;
    }
    let (mut scale, mut shape) = (1.0, a);
    if a < 1.0 {
        scale = (1.0 - generator.next_f64()).powf(precision.round(1.0 / a));
        shape = precision.round(a + 1.0);
    }
    let d = precision.round(shape - single(1.0 / 3.0));
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let (x, y) = loop {
            let x = generator.next_normal();
            let y = 1.0 + c * x;
            if y > 0.0 {
                break (x, y);
            }
        };
        let v = y * y * y;
        let u = 1.0 - generator.next_f64();
        let square = x * x;
        if u < 1.0 - single(0.0331) * square * square
            || u.ln() < 0.5 * square + d * (1.0 - v + v.ln())
        {
            return scale * d * v;
        }
    }
}

/// Gamma numbers of the shapes `a` (equal shape and dtype) and rate 1, at least the smallest normal number of the dtype.
///
/// # Errors
/// Unless the dtype is floating-point.
pub fn standard_gamma(
    out: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    generator: &mut Generator,
) -> Result<()> {
    check_shape("_standard_gamma", out.shape(), a.shape())?;
    check_dtype("_standard_gamma", out.dtype(), a.dtype())?;
    let dtype = out.dtype();
    let (precision, least) = (Precision::of(dtype), least(dtype));
    for_dtype!(dtype, float, T => fill_by::<T>(out, &a, |a| {
        let value = precision.round(gamma_number(a, precision, generator));
        if value < least { least } else { value }
    }), else return Err(Error::not_implemented("gamma_cpu", dtype)));
    Ok(())
}

/// Points of the simplex by the Dirichlet distribution: gamma numbers of the shapes `a` (equal shape and dtype), divided by their
/// sum along the last dimension, and kept off 0 and 1.
///
/// # Errors
/// Unless the dtype is floating-point.
pub fn dirichlet(
    out: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    generator: &mut Generator,
) -> Result<()> {
    check_shape("_sample_dirichlet", out.shape(), a.shape())?;
    check_dtype("_sample_dirichlet", out.dtype(), a.dtype())?;
    let dtype = out.dtype();
    let row = out.shape().last().map_or(1, |&n| n as usize);
    let mut draws = memory::with_capacity::<f64>(out.numel())?;
    let below_one = match dtype {
        DType::F64 => 1.0_f64.next_down(),
        DType::F32 => f64::from(1.0_f32.next_down()),
        DType::F16 => 1.0 - 2.0_f64.powi(-11),
        _ => 1.0 - 2.0_f64.powi(-8),
    };
    let least = least(dtype);
    for_dtype!(dtype, float, T => {
        let lines = LineIter::new(a.shape(), None, [ViewLayout::from(&a)]);
        lines.visit(0..lines.count(), |[from]| {
            // SAFETY: the walk stays inside the view.
            let a = unsafe { get::<T>(a.ptr(), from) }.to_f64();
            let draw = gamma_number(a, Precision::Double, generator);
            // bounded: there is room.
            draws.push(if draw < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { draw });
        });
        if row > 0 {
            for row in draws.chunks_mut(row) {
                let total: f64 = row.iter().sum();
                for draw in row {
                    *draw /= total;
                }
            }
        }
        let lines = LineIter::new(out.shape(), None, [ViewLayout::from(&*out)]);
        let mut left = draws.iter();
        lines.visit(0..lines.count(), |[to]| {
            let Some(&share) = left.next() else { return };
            // SAFETY: as above, for `out`.
            unsafe { put(out.ptr(), to, T::from_f64(kept_between(share, least, below_one))) };
        });
    }, else return Err(Error::not_implemented("dirichlet", dtype)));
    Ok(())
}

/// NaN stays NaN.
fn kept_between(value: f64, low: f64, high: f64) -> f64 {
    if value < low {
        low
    } else if value > high {
        high
    } else {
        value
    }
}

/// A Poisson number: for rates from 10 upwards by W. Hörmann, "The transformed rejection method for generating Poisson random
/// variables", 1993 (PTRS), for smaller ones by multiplying uniform numbers.
fn poisson_number(rate: f64, generator: &mut Generator) -> f64 {
    if rate == 0.0 || rate.is_infinite() {
        return rate;
    }
    if rate < 10.0 {
        let limit = (-rate).exp();
        let (mut count, mut product) = (0.0, 1.0);
        loop {
            product *= generator.next_f64();
            if product <= limit {
                return count;
            }
            count += 1.0;
        }
    }
    let (root, log) = (rate.sqrt(), rate.ln());
    let b = 0.931 + 2.53 * root;
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let tight = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let u = generator.next_f64() - 0.5;
        let v = generator.next_f64();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= tight {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let chance = v.ln() + inverse_alpha.ln() - (a / (us * us) + b).ln();
        if chance <= -rate + k * log - lgamma(k + 1.0) {
            return k;
        }
    }
}

/// Poisson numbers of the rates `rate` (equal shape and dtype).
///
/// # Errors
/// If a rate is negative or NaN, before anything is drawn for it; unless the dtype is floating-point.
pub fn poisson(
    out: &mut StridedMut<'_>,
    rate: StridedRef<'_>,
    generator: &mut Generator,
) -> Result<()> {
    check_shape("poisson", out.shape(), rate.shape())?;
    check_dtype("poisson", out.dtype(), rate.dtype())?;
    let mut is_valid = true;
    for_dtype!(out.dtype(), float, T => fill_by::<T>(out, &rate, |rate| {
        is_valid &= rate >= 0.0;
        if is_valid { poisson_number(rate, generator) } else { 0.0 }
    }), else return Err(Error::not_implemented("poisson_cpu", out.dtype())));
    if !is_valid {
        return Err(Error::runtime(
            "invalid Poisson rate, expected rate to be non-negative".into(),
        ));
    }
    Ok(())
}

/// The remainder of the Stirling formula for `ln k!`.
fn stirling_rest(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.081_061_466_795_327_2,
        0.041_340_695_955_409_2,
        0.027_677_925_684_998_3,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_1,
        0.013_876_128_823_070_7,
        0.011_896_709_945_891_7,
        0.010_411_265_261_972_0,
        0.009_255_462_182_712_73,
        0.008_330_563_433_362_87,
    ];
    if k < FIRST.len() as f64 {
        return FIRST[k as usize];
    }
    let next = k + 1.0;
    let square = next * next;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / next
}

/// A binomial number of few successes: as many geometric numbers as fit into `count` trials.
fn binomial_by_waiting(count: f64, p: f64, precision: Precision, generator: &mut Generator) -> f64 {
    let log = precision.ln_1p(-p);
    let (mut trials, mut successes) = (0.0, 0.0);
    loop {
        trials += (generator.next_f64().ln() / log).ceil();
        if trials > count {
            return successes;
        }
        successes += 1.0;
    }
}

/// A binomial number of at least 10 expected successes, `p <= 1/2`: W. Hörmann, "The generation of binomial random variates",
/// 1993 (BTRS).
fn binomial_by_rejection(
    count: f64,
    p: f64,
    precision: Precision,
    generator: &mut Generator,
) -> f64 {
    let round = |value| precision.round(value);
    let expected = round(count * p);
    let deviation = round(round(expected * round(1.0 - p)).sqrt());
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let c = expected + 0.5;
    let tight = 0.92 - 4.2 / b;
    let odds = round(p / round(1.0 - p));
    let alpha = (2.83 + 5.1 / b) * deviation;
    let mode = round(round(count + 1.0) * p).floor();
    loop {
        let u = generator.next_f64() - 0.5;
        let v = generator.next_f64();
        let us = 0.5 - u.abs();
        let k = round(((2.0 * a / us + b) * u + c).floor());
        if k < 0.0 || k > count {
            continue;
        }
        if us >= 0.07 && v <= tight {
            return k;
        }
        let chance = (v * alpha / (a / (us * us) + b)).ln();
        let others = round(round(count - k) + 1.0);
        let limit = (mode + 0.5) * ((mode + 1.0) / (odds * (count - mode + 1.0))).ln()
            + round(count + 1.0) * ((count - mode + 1.0) / others).ln()
            + (k + 0.5) * (odds * others / round(k + 1.0)).ln()
            + stirling_rest(mode)
            + stirling_rest(count - mode)
            - stirling_rest(k)
            - stirling_rest(round(count - k));
        if chance <= limit {
            return k;
        }
    }
}

/// A binomial number of `count` trials with probability `p`; both are limited to valid values.
fn binomial_number(count: f64, p: f64, precision: Precision, generator: &mut Generator) -> f64 {
    if count.is_nan() || p.is_nan() {
        return f64::NAN;
    }
    if count <= 0.0 || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return count;
    }
    let rarer = if p <= 0.5 { p } else { precision.round(1.0 - p) };
    let drawn = if count.is_infinite() {
        count
    } else if precision.round(count * rarer) >= 10.0 {
        binomial_by_rejection(count, rarer, precision, generator)
    } else {
        binomial_by_waiting(count, rarer, precision, generator)
    };
    if p <= 0.5 || count.is_infinite() { drawn } else { count - drawn }
}

/// Binomial numbers of `count` trials with the probabilities `p` (both of the shape and dtype of `out`).
///
/// # Errors
/// Unless the dtype is floating-point.
pub fn binomial(
    out: &mut StridedMut<'_>,
    count: StridedRef<'_>,
    p: StridedRef<'_>,
    generator: &mut Generator,
) -> Result<()> {
    let dtype = out.dtype();
    for input in [&count, &p] {
        check_shape("binomial", out.shape(), input.shape())?;
        check_dtype("binomial", dtype, input.dtype())?;
    }
    let precision = Precision::of(dtype);
    let views = [ViewLayout::from(&*out), ViewLayout::from(&count), ViewLayout::from(&p)];
    let lines = LineIter::new(out.shape(), None, views);
    for_dtype!(dtype, float, T => lines.visit(0..lines.count(), |[to, n, p_at]| {
        // SAFETY: the walk stays inside the three views of this dtype.
        unsafe {
            let (count, p) = (get::<T>(count.ptr(), n), get::<T>(p.ptr(), p_at));
            let drawn = binomial_number(count.to_f64(), p.to_f64(), precision, generator);
            put(out.ptr(), to, T::from_f64(drawn));
        }
    }), else return Err(Error::not_implemented("binomial_cpu", dtype)));
    Ok(())
}
