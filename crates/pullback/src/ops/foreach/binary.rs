//! Functions of two: each tensor of a list with a number, a number of its own, one tensor for all, or the tensor of another list.
//!
//! The larger and the smaller of two are limits (`clamp_min`, `clamp_max`), whose in-place forms `maximum` and `minimum` lack.

use super::row::{pair, with_alpha};
use super::{
    EMPTY, LENGTHS, SCALARS as COUNTS, check_list, check_lists, check_scalars, made, others,
    refused, tensors, written,
};
use crate::autograd::{call_each, write_each};
use crate::dispatch::{Arg, OpDef, Outputs, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::arithmetic::{ADD, DIV, MUL, SUB};
use crate::ops::pointwise::binary::{POW, POW_OF_SCALAR, POW_SCALAR};
use crate::ops::pointwise::clamp::{CLAMP_MAX, CLAMP_MAX_TENSOR, CLAMP_MIN, CLAMP_MIN_TENSOR};
use crate::{Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops that are in no family.
pub(super) static OPS: &[&OpDef] = &[
    &FOREACH_ADD_TENSOR,
    &FOREACH_ADD_TENSOR_WRITE,
    &FOREACH_ADD_LIST,
    &FOREACH_ADD_LIST_WRITE,
    &FOREACH_SUB_LIST,
    &FOREACH_SUB_LIST_WRITE,
    &FOREACH_POW_OF_SCALAR,
];

/// `{N}` of each tensor of a list and one number{NOTE}.
#[op("_foreach_{N}{U}.Scalar(Tensor{A}[] self, Scalar {OTHER}) -> {R}", function_only, method = "foreach_{N}_scalar{U}",
    each(ForeachAddScalar { N: "add", OP: ADD, OTHER: scalar, ROW: with_alpha },
         ForeachSubScalar { N: "sub", OP: SUB, OTHER: scalar, ROW: with_alpha },
         ForeachMulScalar { N: "mul", OP: MUL, OTHER: scalar, ROW: pair },
         ForeachDivScalar { N: "div", OP: DIV, OTHER: scalar, ROW: pair },
         ForeachClampMinScalar { N: "clamp_min", OP: CLAMP_MIN, OTHER: scalar, ROW: pair },
         ForeachClampMaxScalar { N: "clamp_max", OP: CLAMP_MAX, OTHER: scalar, ROW: pair },
         ForeachMaximumScalar { N: "maximum", OP: CLAMP_MIN, OTHER: scalar, ROW: pair },
         ForeachMinimumScalar { N: "minimum", OP: CLAMP_MAX, OTHER: scalar, ROW: pair },
         ForeachPowScalar { N: "pow", OP: POW_SCALAR, OTHER: exponent, ROW: pair }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into that tensor" }))]
impl ByScalar {
    fn composite(self_: &[Tensor], OTHER: Scalar) -> Result<Outputs> {
        check_list(self_)?;
        RUN(&OP, self_.len(), |at| ROW(&self_[at], Arg::Scalar(OTHER)))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |number: f64| Sample::new([tensors(s).into(), Scalar::Float(number).into()]);
        SAMPLES(vec![sample(0.5), sample(-1.5)])
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(Sample::new([Value::Tensors(Vec::new()), Scalar::Int(1).into()]), EMPTY)]
    }
}

/// `{N}` of each tensor of a list and a number of its own{NOTE}.
#[op("_foreach_{N}{U}.ScalarList(Tensor{A}[] self, Scalar[] {OTHER}) -> {R}", function_only, method = "foreach_{N}_scalars{U}",
    each(ForeachAddScalars { N: "add", OP: ADD, OTHER: scalars, ROW: with_alpha },
         ForeachSubScalars { N: "sub", OP: SUB, OTHER: scalars, ROW: with_alpha },
         ForeachMulScalars { N: "mul", OP: MUL, OTHER: scalars, ROW: pair },
         ForeachDivScalars { N: "div", OP: DIV, OTHER: scalars, ROW: pair },
         ForeachClampMinScalars { N: "clamp_min", OP: CLAMP_MIN, OTHER: scalars, ROW: pair },
         ForeachClampMaxScalars { N: "clamp_max", OP: CLAMP_MAX, OTHER: scalars, ROW: pair },
         ForeachMaximumScalars { N: "maximum", OP: CLAMP_MIN, OTHER: scalars, ROW: pair },
         ForeachMinimumScalars { N: "minimum", OP: CLAMP_MAX, OTHER: scalars, ROW: pair },
         ForeachPowScalars { N: "pow", OP: POW_SCALAR, OTHER: exponent, ROW: pair }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into that tensor" }))]
impl ByScalars {
    fn composite(self_: &[Tensor], OTHER: &[Scalar]) -> Result<Outputs> {
        check_scalars(self_, OTHER)?;
        RUN(&OP, self_.len(), |at| ROW(&self_[at], Arg::Scalar(OTHER[at])))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let numbers = [0.5.into(), Scalar::Int(2), (-1.5).into()].to_vec();
        SAMPLES(vec![Sample::new([tensors(s).into(), numbers.into()])])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let two = vec![Scalar::Int(1), Scalar::Int(2)];
        vec![
            refused(Sample::new([Value::Tensors(Vec::new()), two.clone().into()]), EMPTY),
            refused(Sample::new([tensors(s).into(), two.into()]), COUNTS),
        ]
    }
}

/// `{N}` of each tensor of a list and one tensor of one element, without dimensions{NOTE}.
#[op("_foreach_{N}{U}.Tensor(Tensor{A}[] self, Tensor other) -> {R}", function_only, method = "foreach_{N}_tensor{U}",
    each(ForeachMulTensor { N: "mul", OP: MUL }, ForeachDivTensor { N: "div", OP: DIV }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the former" }))]
impl ByTensor {
    fn composite(self_: &[Tensor], other: &Tensor) -> Result<Outputs> {
        check_single(self_, other)?;
        RUN(&OP, self_.len(), |at| pair(&self_[at], Arg::Tensor(other)))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new([tensors(s).into(), s.positive(&[]).into()])])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_single(s)
    }
}

/// Adds one tensor of one element, without dimensions, `alpha` times to each tensor of a list{NOTE}.
#[op("_foreach_add{U}.Tensor(Tensor{A}[] self, Tensor other, *, Scalar alpha=1) -> {R}", function_only, method = "foreach_add_tensor{U}",
    each(ForeachAddTensor { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         ForeachAddTensorWrite { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the latter" }))]
impl AddsTensor {
    fn composite(self_: &[Tensor], other: &Tensor, alpha: Scalar) -> Result<Outputs> {
        check_single(self_, other)?;
        RUN(&ADD, self_.len(), |at| {
            [Arg::Tensor(&self_[at]), Arg::Tensor(other), Arg::Scalar(alpha)]
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = || Sample::new([tensors(s).into(), s.positive(&[]).into()]);
        SAMPLES(vec![sample(), sample().with("alpha", Scalar::Float(0.5))])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_single(s)
    }
}

/// `{N}` of each tensor of a list and that of another list{NOTE}.
#[op("_foreach_{N}{U}.List(Tensor{A}[] self, Tensor[] {OTHER}) -> {R}", function_only, method = "foreach_{N}_list{U}",
    each(ForeachMulList { N: "mul", OP: MUL, OTHER: other }, ForeachDivList { N: "div", OP: DIV, OTHER: other },
         ForeachClampMinList { N: "clamp_min", OP: CLAMP_MIN_TENSOR, OTHER: other },
         ForeachClampMaxList { N: "clamp_max", OP: CLAMP_MAX_TENSOR, OTHER: other },
         ForeachMaximumList { N: "maximum", OP: CLAMP_MIN_TENSOR, OTHER: other },
         ForeachMinimumList { N: "minimum", OP: CLAMP_MAX_TENSOR, OTHER: other },
         ForeachPowList { N: "pow", OP: POW, OTHER: exponent }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the former" }))]
impl ByList {
    fn composite(self_: &[Tensor], OTHER: &[Tensor]) -> Result<Outputs> {
        check_lists(self_, [OTHER])?;
        RUN(&OP, self_.len(), |at| pair(&self_[at], Arg::Tensor(&OTHER[at])))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new([tensors(s).into(), others(s).into()])])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_lists(s)
    }
}

/// {TEXT} of another list, multiplied by `alpha`{NOTE}.
#[op("_foreach_{N}{U}.List(Tensor{A}[] self, Tensor[] other, *, Scalar alpha=1) -> {R}", function_only, method = "foreach_{N}_list{U}",
    each(ForeachAddList { N: "add", OP: ADD, TEXT: "Each tensor of a list plus that" },
         ForeachSubList { N: "sub", OP: SUB, TEXT: "Each tensor of a list minus that" }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the former" }))]
impl ByScaledList {
    fn composite(self_: &[Tensor], other: &[Tensor], alpha: Scalar) -> Result<Outputs> {
        check_lists(self_, [other])?;
        RUN(&OP, self_.len(), |at| {
            [Arg::Tensor(&self_[at]), Arg::Tensor(&other[at]), Arg::Scalar(alpha)]
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = || Sample::new([tensors(s).into(), others(s).into()]);
        SAMPLES(vec![sample(), sample().with("alpha", Scalar::Float(-2.5))])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_lists(s)
    }
}

/// One number to the power of each tensor of a list.
#[op("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", function_only)]
impl ForeachPowOfScalar {
    fn composite(self_: Scalar, exponent: &[Tensor]) -> Result<Outputs> {
        check_list(exponent)?;
        call_each(&POW_OF_SCALAR, exponent.len(), |at| {
            [Arg::Scalar(self_), Arg::Tensor(&exponent[at])]
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |base: f64| Sample::new([Scalar::Float(base).into(), tensors(s).into()]);
        vec![sample(2.5), sample(1.0)]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(Sample::new([Scalar::Int(2).into(), Value::Tensors(Vec::new())]), EMPTY)]
    }
}

/// Refuses a tensor for all of the list that has dimensions.
fn check_single(list: &[Tensor], other: &Tensor) -> Result<()> {
    check_list(list)?;
    ensure!(
        other.ndim() == 0,
        runtime,
        "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements.",
        other.ndim(),
        other.numel()
    );
    Ok(())
}

fn refused_single(s: &Sampler) -> Vec<InvalidSample> {
    let single = || s.positive(&[]).into();
    vec![
        refused(Sample::new([Value::Tensors(Vec::new()), single()]), EMPTY),
        refused(
            Sample::new([tensors(s).into(), s.positive(&[1]).into()]),
            "scalar tensor expected to be 0 dim but it has 1 dimensions and 1 elements.",
        ),
    ]
}

fn refused_lists(s: &Sampler) -> Vec<InvalidSample> {
    let mut two = others(s);
    two.truncate(2);
    let (a, b) = ([s.positive(&[2]), s.positive(&[3])], [s.positive(&[2]), s.positive(&[2])]);
    vec![
        refused(Sample::new([Value::Tensors(Vec::new()), two.clone().into()]), EMPTY),
        refused(Sample::new([tensors(s).into(), two.into()]), LENGTHS),
        refused(
            Sample::new([a.to_vec().into(), b.to_vec().into()]),
            "The size of tensor a (3) must match the size of tensor b (2)",
        ),
    ]
}
