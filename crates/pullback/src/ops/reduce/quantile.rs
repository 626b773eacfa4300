//! Quantiles: values below which given fractions of the elements lie.
//!
//! Elements are sorted along the dimension; the rank of a quantile is `q * (n - 1)`, and what lies between two elements is
//! interpolated. A line with a NaN gives NaN, but `nanquantile` leaves NaN out. Of long lines without NaN, the two elements
//! around one quantile are selected instead.

use super::any_all::all_examples;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::wrap_dim;
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&QUANTILE, &QUANTILE_SCALAR, &NANQUANTILE, &NANQUANTILE_SCALAR];

/// The arguments of a quantile.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &'a str,
    ignores_nan: bool,
}

fn check(self_: &Tensor, q: &Tensor, interpolation: &str) -> Result<()> {
    ensure!(self_.numel() > 0, runtime, "quantile() input tensor must be non-empty");
    ensure!(
        q.ndim() <= 1,
        runtime,
        "quantile() q must be a scalar or 1D tensor, but has {} dimensions",
        q.ndim()
    );
    ensure!(
        matches!(self_.dtype(), DType::F32 | DType::F64),
        runtime,
        "quantile() input tensor must be either float or double dtype, but is {}",
        self_.dtype().spelled()
    );
    ensure!(
        q.dtype() == self_.dtype(),
        runtime,
        "quantile() q tensor must be same dtype as the input tensor, but is {} beside {}",
        q.dtype().spelled(),
        self_.dtype().spelled()
    );
    ensure!(
        matches!(interpolation, "linear" | "lower" | "higher" | "midpoint" | "nearest"),
        runtime,
        "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
    );
    Ok(())
}

fn check_parts(q: &Tensor) -> Result<()> {
    let q = all_examples(q).detach()?;
    let is_part =
        q.ge(&Tensor::wrapped(0.0)?)?.logical_and(&q.le(&Tensor::wrapped(1.0)?)?)?.all()?.item()?;
    ensure!(!is_part.is(0.0), runtime, "quantile() q values must be in the range [0, 1]");
    Ok(())
}

/// The ranks of the quantiles in each sorted line: (*, number of quantiles).
fn ranks(sorted: &Tensor, q: &Tensor, ignores_nan: bool) -> Result<Tensor> {
    let last = sorted.shape()[sorted.ndim() - 1] - 1;
    if ignores_nan {
        let numbers = sorted.isnan()?.logical_not()?.sum_dim(Some(&[-1]), true)?;
        let ranks = numbers.to_dtype(q.dtype())?.plus(-1)?.mul(q)?;
        // Where no element is a number, the first NaN is taken.
        let is_none = numbers.eq(&Tensor::wrapped(0)?)?;
        return is_none.where_self(&Tensor::wrapped(0.0)?, &ranks);
    }
    let ranks = q.mul(&Tensor::wrapped(last)?)?;
    // NaN is sorted to the end.
    let has_nan = sorted.narrow(-1, last, 1)?.isnan()?;
    has_nan.where_self(&Tensor::wrapped(last as f64)?, &ranks)
}

fn interpolated(sorted: &Tensor, ranks: &Tensor, interpolation: &str) -> Result<Tensor> {
    let values = |ranks: Tensor| sorted.gather(-1, &ranks.detach()?.to_dtype(DType::I64)?);
    match interpolation {
        "lower" => values(ranks.floor()?),
        "higher" => values(ranks.ceil()?),
        "nearest" => values(ranks.round()?),
        _ => {
            let below = ranks.floor()?;
            let weight = if interpolation == "midpoint" {
                Tensor::scalar_of(0.5, ranks.dtype())?
            } else {
                ranks.sub(&below)?
            };
            values(below)?.lerp(&values(ranks.ceil()?)?, &weight)
        }
    }
}

/// The length of lines from which selecting two elements takes less time than sorting.
const LONG: i64 = 64;

/// For one quantile of long lines without NaN a few elements around it, and its rank among them (which has the derivative that
/// it has in the whole line).
fn around(lines: &Tensor, q: &Tensor) -> Result<Option<(Tensor, Tensor)>> {
    let size = lines.shape()[lines.ndim() - 1];
    let is_shared = |t: &Tensor| all_examples(t).numel() == t.numel();
    if q.numel() != 1 || size < LONG || !is_shared(q) || !is_shared(lines) {
        return Ok(None);
    }
    if !lines.detach()?.isnan()?.any()?.item()?.is(0.0) {
        return Ok(None);
    }
    let rank = q.mul(&Tensor::wrapped(size - 1)?)?;
    let below = (rank.detach()?.item()?.to_f64().floor() as i64).clamp(0, size - 2);
    let nth = |k: i64| lines.kthvalue(k, -1, true).map(|[value, _]| value);
    let (lower, upper) = (nth(below + 1)?, nth(below + 2)?);
    // (An odd rank stays odd: halves are rounded to the even one.)
    let is_odd = below % 2;
    let few = if is_odd == 1 { vec![lower.clone(), lower, upper] } else { vec![lower, upper] };
    let rank = rank.plus(is_odd - below)?.expand(&with_one(lines), false)?;
    Ok(Some((crate::ops::shape::join::cat(&few, -1)?, rank)))
}

/// The shape of lines with one element each.
fn with_one(lines: &Tensor) -> crate::Dims {
    let mut shape = crate::Dims::from_slice(lines.shape());
    if let Some(last) = shape.last_mut() {
        *last = 1;
    }
    shape
}

fn quantiles(self_: &Tensor, q: &Tensor, wanted: Wanted<'_>) -> Result<Tensor> {
    check(self_, q, wanted.interpolation)?;
    let dim = wanted.dim.map(|dim| wrap_dim(dim, self_.ndim())).transpose()?;
    check_parts(q)?;
    let lines = match dim {
        Some(dim) if self_.ndim() > 0 => self_.movedim_int(dim as i64, -1)?,
        _ => self_.flatten(0, -1)?,
    };
    let parts = q.reshape(&[-1])?;
    let found = if let Some(lines) = around(&lines, &parts)? {
        interpolated(&lines.0, &lines.1, wanted.interpolation)?
    } else {
        let [sorted, _] = lines.sort(-1, false)?;
        let ranks = ranks(&sorted, &parts, wanted.ignores_nan)?;
        interpolated(&sorted, &ranks, wanted.interpolation)?
    };
    let found = found.movedim_int(-1, 0)?;
    let found = if wanted.keepdim {
        match dim {
            Some(dim) if self_.ndim() > 0 => found.unsqueeze(dim as i64 + 1)?,
            _ => (0..self_.ndim()).try_fold(found, |t, _| t.unsqueeze(-1))?,
        }
    } else {
        found
    };
    if q.ndim() == 0 { found.squeeze_dim(0) } else { Ok(found) }
}

fn part(self_: &Tensor, q: f64) -> Result<Tensor> {
    ensure!(
        (0.0..=1.0).contains(&q),
        runtime,
        "quantile() q must be in the range [0, 1] but got {q}"
    );
    Tensor::scalar_of(q, self_.dtype())?.brought_to(self_)
}

fn samples_with(s: &Sampler, make: impl Fn(&[i64]) -> Tensor, q: &Value) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let of = |shape: &[i64]| Sample::new([make(shape).into(), q.clone()]);
    let words = ["lower", "higher", "nearest", "midpoint"];
    let mut all: Vec<Sample> =
        words.iter().map(|&word| of(&[5]).with("interpolation", word)).collect();
    all.extend([
        of(&[2, 3]),
        of(&[2, 3]).with("keepdim", true),
        of(&[2, 4]).with("dim", 1_i64),
        of(&[3, 2, 2]).with("dim", -3_i64).with("keepdim", true),
        of(&[]).with("dim", -1_i64),
        of(&[]).with("keepdim", true),
        Sample::new([s.transposed(3, 2).into(), q.clone()]).with("dim", 0_i64),
    ]);
    all
}

fn parts(s: &Sampler) -> Value {
    let q = Tensor::from_slice(&[0.15, 0.58, 0.93], &[3]).and_then(|q| q.to_dtype(s.dtype));
    q.expect("samples are small").into()
}

fn with_nan(s: &Sampler, shape: &[i64]) -> Tensor {
    let t = s.distinct(shape);
    let above = Tensor::wrapped(0.0).and_then(|zero| t.gt(&zero)).expect("samples are small");
    // (Some line of the samples has nothing but NaN.)
    t.masked_fill(&above, Scalar::Float(f64::NAN)).expect("samples are small")
}

/// The quantiles `q`, a number or vector, over `dim` or all elements; of a vector they are the first dimension of the
/// result. `interpolation` says what lies between two elements: linear, the lower, higher or nearest (half to even) of
/// them, or their midpoint. Float and double only.
#[op(
    "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
    exact_out, autocast = fp32
)]
impl Quantile {
    fn composite(
        self_: &Tensor,
        q: &Tensor,
        dim: Option<i64>,
        keepdim: bool,
        interpolation: &str,
    ) -> Result<Tensor> {
        quantiles(self_, q, Wanted { dim, keepdim, interpolation, ignores_nan: false })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut all = samples_with(s, |shape| s.distinct(shape), &parts(s));
        let one = Tensor::scalar_of(0.3, s.dtype).expect("samples are small");
        all.extend(samples_with(s, |shape| s.distinct(shape), &one.into()).into_iter().skip(4));
        let nan = samples_with(s, |shape| with_nan(s, shape), &parts(s));
        all.extend(nan.into_iter().map(Sample::without_gradient));
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |t: Tensor, q: Tensor| Sample::new([t.into(), q.into()]);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let q = || s.uniform(&[2], 0.1, 0.9);
        let single = q().to_dtype(DType::F32).expect("samples are small");
        vec![
            bad(of(s.normal(&[0]), q()), "input tensor must be non-empty"),
            bad(of(s.normal(&[2]), s.positive(&[1, 1])), "q must be a scalar or 1D tensor"),
            bad(of(s.integers(&[2], 0, 5), q()), "must be either float or double dtype"),
            bad(of(s.normal(&[2]), single), "q tensor must be same dtype as the input tensor"),
            bad(
                of(s.normal(&[2]), s.uniform(&[2], 1.1, 2.0)),
                "q values must be in the range [0, 1]",
            ),
            bad(of(s.normal(&[2]), q()).with("interpolation", "cubic"), "but got cubic"),
            InvalidSample::new(
                of(s.normal(&[2]), q()).with("dim", 1_i64),
                ErrorKind::Index,
                "out of range",
            ),
        ]
    }
}

/// As `quantile` of one number `q`.
#[op(
    "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
    exact_out, autocast = fp32
)]
impl QuantileScalar {
    fn composite(
        self_: &Tensor,
        q: f64,
        dim: Option<i64>,
        keepdim: bool,
        interpolation: &str,
    ) -> Result<Tensor> {
        let q = part(self_, q)?;
        quantiles(self_, &q, Wanted { dim, keepdim, interpolation, ignores_nan: false })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        samples_with(s, |shape| s.distinct(shape), &Value::Float(0.3))
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |q: f64, phrase| {
            let sample = Sample::new([s.normal(&[3]).into(), q.into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(1.5, "q must be in the range [0, 1] but got 1.5"),
            bad(f64::NAN, "q must be in the range [0, 1] but got NaN"),
        ]
    }
}

/// As `quantile` of the elements that are numbers; NaN where there are none.
#[op(
    "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
    exact_out, autocast = fp32
)]
impl Nanquantile {
    fn composite(
        self_: &Tensor,
        q: &Tensor,
        dim: Option<i64>,
        keepdim: bool,
        interpolation: &str,
    ) -> Result<Tensor> {
        quantiles(self_, q, Wanted { dim, keepdim, interpolation, ignores_nan: true })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut all = samples_with(s, |shape| s.distinct(shape), &parts(s));
        let nan = samples_with(s, |shape| with_nan(s, shape), &parts(s));
        all.extend(nan.into_iter().map(Sample::without_gradient));
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[2]).into(), s.uniform(&[2], 1.1, 2.0).into()]);
        let phrase = "q values must be in the range [0, 1]";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// As `nanquantile` of one number `q`.
#[op(
    "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
    exact_out, autocast = fp32
)]
impl NanquantileScalar {
    fn composite(
        self_: &Tensor,
        q: f64,
        dim: Option<i64>,
        keepdim: bool,
        interpolation: &str,
    ) -> Result<Tensor> {
        let q = part(self_, q)?;
        quantiles(self_, &q, Wanted { dim, keepdim, interpolation, ignores_nan: true })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        samples_with(s, |shape| s.distinct(shape), &Value::Float(0.3))
    }
}
