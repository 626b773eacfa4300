//! Functions of one tensor, for each tensor of a list; copies, zeros, maxima, sums of powers and products of matrices.

use super::{EMPTY, LENGTHS, check_list, check_lists, made, others, refused, tensors, written};
use crate::autograd::{call_each, write_each};
use crate::dispatch::{Arg, OpDef, Outputs, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::copy::{CLONE_TENSOR, COPY, ZERO};
use crate::ops::creation::factory::check_real;
use crate::ops::creation::like::ZEROS_LIKE;
use crate::ops::linalg::matmul::MM;
use crate::ops::pointwise::trigonometry::{ACOS, ASIN, ATAN, COS, COSH, SIN, SINH, TAN, TANH};
use crate::ops::pointwise::unary::{
    ABS, CEIL, ERF, ERFC, EXP, EXPM1, FLOOR, FRAC, LGAMMA, LOG, LOG1P, LOG2, LOG10, NEG,
    RECIPROCAL, ROUND, RSQRT, SIGMOID, SIGN, SQRT, TRUNC,
};
use crate::ops::reduce::min_max::MAX;
use crate::{DType, ErrorKind, MemoryFormat, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this file that are no functions of single elements.
pub(super) static OPS: &[&OpDef] = &[
    &FOREACH_CLONE,
    &FOREACH_COPY,
    &FOREACH_ZERO,
    &FOREACH_ZERO_WRITE,
    &FOREACH_MAX,
    &FOREACH_POWSUM,
    &FOREACH_MM,
];

/// `{N}` of each tensor of a list{NOTE}.
#[op("_foreach_{N}{U}(Tensor{A}[] self) -> {R}", function_only, method = "foreach_{N}{U}",
    each(ForeachAbs { N: "abs", OP: ABS }, ForeachAcos { N: "acos", OP: ACOS }, ForeachAsin { N: "asin", OP: ASIN },
         ForeachAtan { N: "atan", OP: ATAN }, ForeachCeil { N: "ceil", OP: CEIL }, ForeachCos { N: "cos", OP: COS },
         ForeachCosh { N: "cosh", OP: COSH }, ForeachErf { N: "erf", OP: ERF }, ForeachErfc { N: "erfc", OP: ERFC },
         ForeachExp { N: "exp", OP: EXP }, ForeachExpm1 { N: "expm1", OP: EXPM1 }, ForeachFloor { N: "floor", OP: FLOOR },
         ForeachFrac { N: "frac", OP: FRAC }, ForeachLgamma { N: "lgamma", OP: LGAMMA }, ForeachLog { N: "log", OP: LOG },
         ForeachLog10 { N: "log10", OP: LOG10 }, ForeachLog1p { N: "log1p", OP: LOG1P }, ForeachLog2 { N: "log2", OP: LOG2 },
         ForeachNeg { N: "neg", OP: NEG }, ForeachReciprocal { N: "reciprocal", OP: RECIPROCAL },
         ForeachRound { N: "round", OP: ROUND }, ForeachRsqrt { N: "rsqrt", OP: RSQRT },
         ForeachSigmoid { N: "sigmoid", OP: SIGMOID }, ForeachSign { N: "sign", OP: SIGN }, ForeachSin { N: "sin", OP: SIN },
         ForeachSinh { N: "sinh", OP: SINH }, ForeachSqrt { N: "sqrt", OP: SQRT }, ForeachTan { N: "tan", OP: TAN },
         ForeachTanh { N: "tanh", OP: TANH }, ForeachTrunc { N: "trunc", OP: TRUNC }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into that tensor" }))]
impl Unary {
    fn composite(self_: &[Tensor]) -> Result<Outputs> {
        check_list(self_)?;
        RUN(&OP, self_.len(), |at| [Arg::Tensor(&self_[at])])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new([tensors(s).into()])])
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(Sample::new([Value::Tensors(Vec::new())]), EMPTY)]
    }
}

/// A copy of each tensor of a list.
#[op(
    "_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]",
    function_only
)]
impl ForeachClone {
    fn composite(self_: &[Tensor], memory_format: Option<MemoryFormat>) -> Result<Outputs> {
        check_list(self_)?;
        call_each(&CLONE_TENSOR, self_.len(), |at| [Arg::Tensor(&self_[at]), memory_format.into()])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([tensors(s).into()])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let format = MemoryFormat::ChannelsLast;
        vec![
            refused(Sample::new([Value::Tensors(Vec::new())]), EMPTY),
            refused(
                Sample::new([tensors(s).into()]).with("memory_format", format),
                "required rank 4 tensor to use channels_last format",
            ),
        ]
    }
}

/// Writes each tensor of a list, converted and broadcast, into that of another list.
#[op(
    "_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
    function_only,
    across_devices
)]
impl ForeachCopy {
    fn composite(self_: &[Tensor], src: &[Tensor], non_blocking: bool) -> Result<Outputs> {
        check_lists(self_, [src])?;
        write_each(&COPY, self_.len(), |at| {
            [Arg::Tensor(&self_[at]), Arg::Tensor(&src[at]), Arg::Bool(non_blocking)]
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        written(vec![Sample::new([tensors(s).into(), others(s).into()])])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (list, mut short) = (tensors(s), others(s));
        short.truncate(2);
        vec![
            refused(Sample::new([Vec::<Tensor>::new().into(), Vec::<Tensor>::new().into()]), EMPTY),
            refused(Sample::new([list.into(), short.into()]), LENGTHS),
            refused(
                Sample::new([
                    vec![s.normal(&[2]), s.normal(&[3])].into(),
                    vec![s.normal(&[2]), s.normal(&[2])].into(),
                ]),
                "The size of tensor a (3) must match the size of tensor b (2)",
            ),
        ]
    }
}

/// Zeros {TEXT} each tensor of a list.
#[op("_foreach_zero{U}(Tensor{A}[] self) -> {R}", function_only, method = "foreach_zero{U}",
    each(ForeachZero { U: "", A: "", R: "Tensor[]", ROWS: zeros, SAMPLES: made, TEXT: "like" },
         ForeachZeroWrite { U: "_", A: "(a!)", R: "()", ROWS: to_zero, SAMPLES: written, TEXT: "in the place of the elements of" }))]
impl Zeros {
    fn composite(self_: &[Tensor]) -> Result<Outputs> {
        check_list(self_)?;
        ROWS(self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new([tensors(s).into()])])
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(Sample::new([Value::Tensors(Vec::new())]), EMPTY)]
    }
}

fn zeros(list: &[Tensor]) -> Result<Outputs> {
    call_each(&ZEROS_LIKE, list.len(), |at| {
        let rest = [Arg::None; 5];
        [Arg::Tensor(&list[at]), rest[0], rest[1], rest[2], rest[3], rest[4]]
    })
}

fn to_zero(list: &[Tensor]) -> Result<Outputs> {
    write_each(&ZERO, list.len(), |at| [Arg::Tensor(&list[at])])
}

/// The largest element of each tensor of a list.
#[op("_foreach_max(Tensor[] self) -> Tensor[]", function_only)]
impl ForeachMax {
    fn composite(self_: &[Tensor]) -> Result<Outputs> {
        check_list(self_)?;
        ensure!(
            self_.iter().all(|tensor| tensor.numel() > 0),
            runtime,
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        );
        call_each(&MAX, self_.len(), |at| [Arg::Tensor(&self_[at])])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([vec![s.distinct(&[2, 3]), s.distinct(&[])].into()])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused(Sample::new([Value::Tensors(Vec::new())]), EMPTY),
            refused(
                Sample::new([tensors(s).into()]),
                "_foreach_max cannot compute the maximum of an empty tensor",
            ),
        ]
    }
}

/// The sum of the powers of the elements' magnitudes, `sum(|x|^ord)`, for each tensor of a list; computed and given in `dtype`,
/// of complex numbers in its real dtype.
#[op(
    "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    function_only,
    method = "foreach_powsum"
)]
impl ForeachPowsum {
    fn composite(self_: &[Tensor], ord: Scalar, dtype: Option<DType>) -> Result<Vec<Tensor>> {
        check_list(self_)?;
        check_real(&[ord])?;
        for tensor in self_ {
            let dtype = dtype.unwrap_or(tensor.dtype());
            ensure!(
                dtype.is_differentiable(),
                not_implemented,
                "\"powsum_cpu\" not implemented for '{}'",
                dtype.scalar_name()
            );
        }
        self_.iter().map(|tensor| sum_of_powers(tensor, ord, dtype)).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let list = || vec![s.away_from_zero(&[2, 3]), s.away_from_zero(&[]), s.normal(&[0])];
        let sample = |ord: f64| Sample::new([list().into(), Scalar::Float(ord).into()]);
        vec![Sample::new([list().into()]), sample(1.0), sample(3.0), sample(-1.5), sample(0.0)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused(Sample::new([Value::Tensors(Vec::new())]), EMPTY),
            InvalidSample::new(
                Sample::new([vec![s.integers(&[2], 0, 3)].into()]),
                ErrorKind::NotImplemented,
                "\"powsum_cpu\" not implemented for 'Long'",
            ),
        ]
    }
}

/// The sum in a dtype with enough digits for a half-precision tensor.
fn sum_of_powers(x: &Tensor, ord: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let result = dtype.unwrap_or(x.dtype()).to_real();
    let wide = match dtype.unwrap_or(x.dtype()) {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    };
    // (A real dtype is for the magnitudes of complex numbers, not for their real parts.)
    let x = if x.dtype().is_complex() && !wide.is_complex() { x.abs()? } else { x.clone() };
    x.to_dtype(wide)?.abs()?.pow_scalar(ord)?.sum()?.to_dtype(result)
}

/// The product of each matrix of a list and that of another list.
#[op("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", function_only)]
impl ForeachMm {
    fn composite(self_: &[Tensor], mat2: &[Tensor]) -> Result<Outputs> {
        let (count, other) = (self_.len(), mat2.len());
        ensure!(count > 0, runtime, "_foreach_mm requires non-empty tensor lists");
        ensure!(
            count == other,
            runtime,
            "_foreach_mm: self and mat2 must have the same number of tensors, got {count} and {other}"
        );
        call_each(&MM, count, |at| [Arg::Tensor(&self_[at]), Arg::Tensor(&mat2[at])])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let (a, b) =
            ([s.normal(&[2, 3]), s.normal(&[0, 2])], [s.normal(&[3, 1]), s.normal(&[2, 2])]);
        vec![Sample::new([a.to_vec().into(), b.to_vec().into()])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (one, none) = (|| vec![s.normal(&[2, 3])], Vec::<Tensor>::new);
        vec![
            refused(Sample::new([none().into(), none().into()]), "requires non-empty tensor lists"),
            refused(
                Sample::new([one().into(), none().into()]),
                "must have the same number of tensors",
            ),
            refused(
                Sample::new([one().into(), one().into()]),
                "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
            ),
        ]
    }
}
