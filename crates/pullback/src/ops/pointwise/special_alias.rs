//! Functions of `special` that are other ops under a second name: their nodes in a graph are those
//! of the other ops.

use crate::dispatch::{OpDef, Value};
use crate::gradcheck::{Sample, Sampler};
use crate::ops::pointwise::binary::xlogy_of;
use crate::ops::pointwise::unary::polygamma;
use crate::{DType, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SPECIAL_DIGAMMA,
    &SPECIAL_PSI,
    &SPECIAL_ERF,
    &SPECIAL_ERFC,
    &SPECIAL_ERFINV,
    &SPECIAL_EXP2,
    &SPECIAL_EXPIT,
    &SPECIAL_EXPM1,
    &SPECIAL_GAMMALN,
    &SPECIAL_I0,
    &SPECIAL_LOG1P,
    &SPECIAL_SINC,
    &SPECIAL_LOGIT,
    &SPECIAL_ROUND,
    &SPECIAL_POLYGAMMA,
    &SPECIAL_MULTIGAMMALN,
    &SPECIAL_GAMMAINC,
    &SPECIAL_GAMMAINCC,
    &SPECIAL_XLOGY,
    &SPECIAL_XLOGY_OF,
    &SPECIAL_XLOGY_BY,
    &SPECIAL_LOGSUMEXP,
    &SPECIAL_SOFTMAX,
    &SPECIAL_LOG_SOFTMAX,
];

/// As `digamma`.
#[op("special_digamma(Tensor self) -> Tensor", module = "special", out, apart, samples = unary_positive)]
impl SpecialDigamma {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.digamma()
    }
}

/// As `digamma`.
#[op("special_psi(Tensor self) -> Tensor", module = "special", out, apart, samples = unary_positive)]
impl SpecialPsi {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.digamma()
    }
}

/// As `erf`.
#[op("special_erf(Tensor self) -> Tensor", module = "special", out, apart, samples = unary)]
impl SpecialErf {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.erf()
    }
}

/// As `erfc`.
#[op("special_erfc(Tensor self) -> Tensor", module = "special", out, apart, samples = unary)]
impl SpecialErfc {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.erfc()
    }
}

/// As `erfinv`.
#[op("special_erfinv(Tensor self) -> Tensor", module = "special", out, apart, samples = unary_unit)]
impl SpecialErfinv {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.erfinv()
    }
}

/// As `exp2`.
#[op("special_exp2(Tensor self) -> Tensor", module = "special", out, apart, samples = unary)]
impl SpecialExp2 {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.exp2()
    }
}

/// As `sigmoid`.
#[op("special_expit(Tensor self) -> Tensor", module = "special", out, apart, samples = unary)]
impl SpecialExpit {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.sigmoid()
    }
}

/// As `expm1`.
#[op("special_expm1(Tensor self) -> Tensor", module = "special", out, apart, samples = unary)]
impl SpecialExpm1 {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.expm1()
    }
}

/// As `lgamma`.
#[op("special_gammaln(Tensor self) -> Tensor", module = "special", out, apart, samples = unary_positive)]
impl SpecialGammaln {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.lgamma()
    }
}

/// As `i0`.
#[op("special_i0(Tensor self) -> Tensor", module = "special", out, apart, samples = unary)]
impl SpecialI0 {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.i0()
    }
}

/// As `log1p`.
#[op("special_log1p(Tensor self) -> Tensor", module = "special", out, apart, samples = unary_positive)]
impl SpecialLog1p {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.log1p()
    }
}

/// As `sinc`.
#[op("special_sinc(Tensor self) -> Tensor", module = "special", out, apart, samples = unary_nonzero)]
impl SpecialSinc {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.sinc()
    }
}

/// As `logit`.
#[op("special_logit(Tensor self, float? eps=None) -> Tensor", module = "special", out, apart)]
impl SpecialLogit {
    fn composite(self_: &Tensor, eps: Option<f64>) -> Result<Tensor> {
        self_.logit(eps)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let inside = || s.uniform(&[2, 3], 0.2, 0.8);
        vec![Sample::of(inside()), Sample::of(inside()).with("eps", 0.1)]
    }
}

/// As `round`.
#[op("special_round(Tensor self, *, int decimals=0) -> Tensor", module = "special", out, apart, method = special_round)]
impl SpecialRound {
    fn composite(self_: &Tensor, decimals: i64) -> Result<Tensor> {
        self_.round_decimals(decimals)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[2])).with("decimals", 1)]
    }
}

/// As `polygamma`.
#[op("special_polygamma(int n, Tensor self) -> Tensor", module = "special", out, apart)]
impl SpecialPolygamma {
    fn composite(n: i64, self_: &Tensor) -> Result<Tensor> {
        polygamma(n, self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |n: i64| Sample::new([n.into(), s.positive(&[2, 3]).into()]);
        vec![sample(0), sample(2)]
    }
}

/// As `mvlgamma`.
#[op("special_multigammaln(Tensor self, int p) -> Tensor", module = "special", out, apart)]
impl SpecialMultigammaln {
    fn composite(self_: &Tensor, p: i64) -> Result<Tensor> {
        self_.mvlgamma(p)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.uniform(&[2, 3], 1.5, 3.0)).with("p", 2)]
    }
}

/// As `igamma`.
#[op("special_gammainc(Tensor self, Tensor other) -> Tensor", module = "special", out, apart)]
impl SpecialGammainc {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.igamma(other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.positive(&[2, 3]).into(), s.positive(&[3]).into()]).without_gradient()]
    }
}

/// As `igammac`.
#[op("special_gammaincc(Tensor self, Tensor other) -> Tensor", module = "special", out, apart)]
impl SpecialGammaincc {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.igammac(other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.positive(&[2, 3]).into(), s.positive(&[3]).into()]).without_gradient()]
    }
}

/// As `xlogy`.
#[op("special_xlogy(Tensor self, Tensor other) -> Tensor", module = "special", out, apart, samples = binary_positive)]
impl SpecialXlogy {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.xlogy(other)
    }
}

/// As `xlogy` of a number and a tensor.
#[op("special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", module = "special", out, apart, method = special_xlogy_of)]
impl SpecialXlogyOf {
    fn composite(self_: Scalar, other: &Tensor) -> Result<Tensor> {
        xlogy_of(self_, other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of =
            |number: f64| Sample::new([Scalar::Float(number).into(), s.positive(&[2, 3]).into()]);
        vec![of(2.5), of(0.0)]
    }
}

/// As `xlogy` of a tensor and a number.
#[op("special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor", module = "special", out, apart, method = special_xlogy_by)]
impl SpecialXlogyBy {
    fn composite(self_: &Tensor, other: Scalar) -> Result<Tensor> {
        self_.xlogy_by(other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.positive(&[2, 3])).with("other", Scalar::Float(2.5))]
    }
}

/// As `logsumexp`.
#[op(
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    module = "special",
    out,
    apart
)]
impl SpecialLogsumexp {
    fn composite(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        self_.logsumexp(dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let dims = |dims: &[i64]| Value::from(dims);
        vec![
            Sample::of(s.normal(&[2, 3])).with("dim", dims(&[1])),
            Sample::of(s.normal(&[2, 3])).with("dim", dims(&[0, 1])),
        ]
    }
}

/// As `softmax`.
#[op("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", module = "special", method = special_softmax)]
impl SpecialSoftmax {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        self_.softmax(dim, dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("dim", 1),
            Sample::of(s.normal(&[3])).with("dim", -1),
        ]
    }
}

/// As `log_softmax`.
#[op("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", module = "special", method = special_log_softmax)]
impl SpecialLogSoftmax {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        self_.log_softmax(dim, dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("dim", 1),
            Sample::of(s.normal(&[3])).with("dim", -1),
        ]
    }
}
