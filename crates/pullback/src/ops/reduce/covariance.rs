//! Covariances and correlations of variables: rows are variables, columns observations.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&COV, &CORRCOEF];

fn check_rank(name: &str, self_: &Tensor) -> Result<()> {
    ensure!(
        self_.ndim() <= 2,
        runtime,
        "{name}(): expected input to have two or fewer dimensions but got an input with {} dimensions",
        self_.ndim()
    );
    Ok(())
}

/// Refuses weights that are not one number, at least 0, for each observation.
fn check_weights(name: &str, weights: &Tensor, count: i64, is_whole: bool) -> Result<()> {
    ensure!(
        weights.ndim() <= 1,
        runtime,
        "cov(): expected {name} to have one or fewer dimensions but got {name} with {} dimensions",
        weights.ndim()
    );
    let fits = if is_whole {
        weights.dtype().is_integral(false)
    } else {
        weights.dtype().is_floating_point()
    };
    ensure!(
        fits,
        runtime,
        "cov(): expected {name} to have {} dtype but got {name} with {} dtype",
        if is_whole { "integral" } else { "floating point" },
        weights.dtype().scalar_name()
    );
    ensure!(
        weights.numel() == count,
        runtime,
        "cov(): expected {name} to have the same numel as there are observations in the input but got {} != {count}",
        weights.numel()
    );
    let zero = Tensor::wrapped(0)?;
    let is_negative = super::any_all::all_examples(weights).detach()?.lt(&zero)?.any()?.item()?;
    ensure!(is_negative.is(0.0), runtime, "cov(): {name} cannot be negative");
    Ok(())
}

/// The weight of each observation, if they have some: its frequency times its importance.
fn weights(fweights: Option<&Tensor>, aweights: Option<&Tensor>) -> Result<Option<Tensor>> {
    Ok(match (fweights, aweights) {
        (Some(f), Some(a)) => Some(f.mul(a)?),
        (f, a) => f.or(a).cloned(),
    })
}

/// The divisor of the sums of products: never less than 0.
fn freedom(
    total: &Tensor,
    weights: Option<&Tensor>,
    aweights: Option<&Tensor>,
    correction: i64,
) -> Result<Tensor> {
    let less = match (weights, aweights) {
        (Some(w), Some(a)) if correction != 0 => w.mul(a)?.sum()?.div(total)?.times(correction)?,
        _ => Tensor::wrapped(correction)?,
    };
    let freedom = total.sub(&less)?;
    let zero = Tensor::wrapped(0)?;
    let is_short = super::any_all::all_examples(&freedom).detach()?.le(&zero)?.any()?.item()?;
    if is_short.is(0.0) {
        return Ok(freedom);
    }
    crate::warn(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.".to_string(),
    );
    freedom.clamp_min(Scalar::Int(0))
}

/// The covariances of the variables, with the sums of products divided by the number of observations less `correction`:
/// (m, n) gives (m, m), one variable a number. `fweights` says how often each observation was made, `aweights` how much it
/// says. Too few observations give infinities or NaN, and a warning.
#[op(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    not_differentiable(fweights)
)]
impl Cov {
    fn composite(
        self_: &Tensor,
        correction: i64,
        fweights: Option<&Tensor>,
        aweights: Option<&Tensor>,
    ) -> Result<Tensor> {
        check_rank("cov", self_)?;
        ensure!(
            self_.dtype() != DType::Bool,
            not_implemented,
            "cov(): bool dtype is not supported for input"
        );
        let rows = if self_.ndim() < 2 { self_.reshape(&[1, -1])? } else { self_.clone() };
        let count = rows.shape()[1];
        for (name, given, is_whole) in [("fweights", fweights, true), ("aweights", aweights, false)]
        {
            given.map_or(Ok(()), |w| check_weights(name, w, count, is_whole))?;
        }
        let weights = weights(fweights, aweights)?;
        let total = weights.as_ref().map_or_else(|| Tensor::wrapped(count), Tensor::sum)?;
        if weights.is_some() {
            let zero = Tensor::wrapped(0)?;
            let is_zero =
                super::any_all::all_examples(&total).detach()?.eq(&zero)?.any()?.item()?;
            ensure!(is_zero.is(0.0), runtime, "cov(): weights sum to zero, can't be normalized");
        }
        let weighted = |t: &Tensor| weights.as_ref().map_or_else(|| Ok(t.clone()), |w| t.mul(w));
        let mean = weighted(&rows)?.sum_dim(Some(&[1]), true)?.div(&total)?;
        let centred = rows.sub(&mean)?;
        let products = centred.mm(&weighted(&centred)?.t()?.conj()?)?;
        let freedom = freedom(&total, weights.as_ref(), aweights, correction)?;
        products.div(&freedom)?.squeeze()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        let often = || s.integers(&[4], 1, 4);
        // (Weights are real.)
        let real = Sampler::new(DType::F64);
        let much = || real.positive(&[4]);
        vec![
            of(&[2, 4]),
            of(&[4]).with("correction", 0_i64),
            of(&[2, 4]).with("fweights", often()),
            of(&[2, 4]).with("aweights", much()),
            of(&[3, 4]).with("fweights", often()).with("aweights", much()),
            of(&[3, 4]).with("aweights", much()).with("correction", 0_i64),
            of(&[0, 2]),
            Sample::of(s.transposed(2, 3)),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let whole = |values: &[i64], shape: &[i64]| -> Value {
            Tensor::from_slice(values, shape).expect("samples are small").into()
        };
        let with = |name, value: Value| Sample::of(s.normal(&[2, 3])).with(name, value);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let bools = Sample::of(s.bools(&[2, 2]));
        let float = |shape: &[i64], low, high| Value::Tensor(s.uniform(shape, low, high));
        vec![
            bad(Sample::of(s.normal(&[2, 2, 2])), "cov(): expected input to have two or fewer"),
            InvalidSample::new(bools, ErrorKind::NotImplemented, "cov(): bool dtype"),
            bad(
                with("fweights", float(&[3], 1.0, 2.0)),
                "expected fweights to have integral dtype",
            ),
            bad(with("fweights", whole(&[1, 2], &[2])), "in the input but got 2 != 3"),
            bad(with("fweights", whole(&[-1, 2, 3], &[3])), "fweights cannot be negative"),
            bad(with("fweights", whole(&[1, 2, 3], &[1, 3])), "fweights with 2 dimensions"),
            bad(with("fweights", whole(&[0, 0, 0], &[3])), "weights sum to zero"),
            bad(with("aweights", whole(&[1, 2, 3], &[3])), "to have floating point dtype"),
            bad(with("aweights", float(&[3], -2.0, -1.0)), "aweights cannot be negative"),
            bad(with("aweights", float(&[1, 3], 1.0, 2.0)), "aweights with 2 dimensions"),
        ]
    }
}

/// Pearson's correlations of the variables, their covariances divided by their deviations: (m, n) gives (m, m), one variable
/// a number. Kept within -1 and 1, complex ones in both parts.
#[op("corrcoef(Tensor self) -> Tensor")]
impl Corrcoef {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        check_rank("corrcoef", self_)?;
        let covariances = self_.cov()?;
        if covariances.ndim() == 0 {
            return covariances.div(&covariances);
        }
        let deviations = covariances.diagonal(0, 0, 1)?.real()?.sqrt()?;
        let scaled = covariances.div(&deviations.unsqueeze(1)?)?.div(&deviations)?;
        let within = |t: &Tensor| t.clamp(Some(Scalar::Int(-1)), Some(Scalar::Int(1)));
        if !scaled.dtype().is_complex() {
            return within(&scaled);
        }
        within(&scaled.view_as_real()?)?.view_as_complex()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            // Correlations of a variable with itself stand at the limit, where the clamp has no one derivative.
            Sample::of(s.normal(&[2, 4])).without_gradient(),
            Sample::of(s.normal(&[4])),
            Sample::of(s.normal(&[0, 2])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "corrcoef(): expected input to have two or fewer dimensions";
        vec![InvalidSample::new(Sample::of(s.normal(&[2, 2, 2])), ErrorKind::Runtime, phrase)]
    }
}
