//! Functions of three lists: multiples of products and quotients that are added, and interpolation.

use super::{EMPTY, SCALARS, check_lists, check_scalars, made, others, refused, tensors, written};
use crate::autograd::{call_each, write_each};
use crate::dispatch::{Arg, Outputs, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::ternary::{ADDCDIV, ADDCMUL, LERP, LERP_SCALAR};
use crate::{Result, Scalar, Tensor};
use pullback_kernels::memory;
use pullback_macros::op;

/// Each tensor of a list plus `value` times the {TEXT} of those of two other lists{NOTE}.
#[op("_foreach_{N}{U}.Scalar(Tensor{A}[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> {R}", function_only, method = "foreach_{N}_scalar{U}",
    each(ForeachAddcdivScalar { N: "addcdiv", OP: ADDCDIV, TEXT: "quotient" }, ForeachAddcmulScalar { N: "addcmul", OP: ADDCMUL, TEXT: "product" }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the first" }))]
impl Product {
    fn composite(
        self_: &[Tensor],
        tensor1: &[Tensor],
        tensor2: &[Tensor],
        value: Scalar,
    ) -> Result<Outputs> {
        check_lists(self_, [tensor1, tensor2])?;
        RUN(&OP, self_.len(), |at| row([self_, tensor1, tensor2], at, value))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = || Sample::new(three(s));
        SAMPLES(vec![sample(), sample().with("value", Scalar::Float(-1.5))])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_lists(s, Scalar::Int(1).into())
    }
}

/// Each tensor of a list plus the {TEXT} of those of two other lists, times a number of its own{NOTE}.
#[op("_foreach_{N}{U}.ScalarList(Tensor{A}[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> {R}", function_only, method = "foreach_{N}_scalars{U}",
    each(ForeachAddcdivScalars { N: "addcdiv", OP: ADDCDIV, TEXT: "quotient" }, ForeachAddcmulScalars { N: "addcmul", OP: ADDCMUL, TEXT: "product" }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the first" }))]
impl ProductScalars {
    fn composite(
        self_: &[Tensor],
        tensor1: &[Tensor],
        tensor2: &[Tensor],
        scalars: &[Scalar],
    ) -> Result<Outputs> {
        check_lists(self_, [tensor1, tensor2])?;
        check_scalars(self_, scalars)?;
        RUN(&OP, self_.len(), |at| row([self_, tensor1, tensor2], at, scalars[at]))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new(three(s)).with("scalars", numbers())])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let mut all = refused_lists(s, numbers().into());
        let two = numbers()[..2].to_vec();
        all.push(refused(Sample::new(three(s)).with("scalars", two), SCALARS));
        all
    }
}

/// Each tensor of a list plus the {TEXT} of those of two other lists, times a number of its own from a row of numbers{NOTE}. The
/// numbers are read, and have no gradient.
#[op("_foreach_{N}{U}.Tensor(Tensor{A}[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> {R}", function_only, method = "foreach_{N}_packed{U}",
    each(ForeachAddcdivPacked { N: "addcdiv", OP: ADDCDIV, TEXT: "quotient" }, ForeachAddcmulPacked { N: "addcmul", OP: ADDCMUL, TEXT: "product" }),
    each(_ { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         Write { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the first" }))]
impl ProductPacked {
    fn composite(
        self_: &[Tensor],
        tensor1: &[Tensor],
        tensor2: &[Tensor],
        scalars: &Tensor,
    ) -> Result<Outputs> {
        check_lists(self_, [tensor1, tensor2])?;
        let scalars = unpacked(scalars, self_.len())?;
        RUN(&OP, self_.len(), |at| row([self_, tensor1, tensor2], at, scalars[at]))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        written(SAMPLES(vec![Sample::new(three(s)).with("scalars", s.positive(&[3]))]))
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let mut all = refused_lists(s, s.positive(&[3]).into());
        let packed = |shape: &[i64], phrase: &'static str| {
            refused(Sample::new(three(s)).with("scalars", s.positive(shape)), phrase)
        };
        let dims = "Expected packed scalar Tensor to be of dimension 1. Got 2 instead.";
        let length = "Expected length of scalars to match input of length 3 but got 2 instead.";
        all.extend([packed(&[3, 1], dims), packed(&[2], length)]);
        all
    }
}

/// Each tensor of a list on its way to that of another list, `self + weight * (tensors1 - self)`, with a weight of its own{NOTE}.
#[op("_foreach_lerp{U}.ScalarList(Tensor{A}[] self, Tensor[] tensors1, Scalar[] weight) -> {R}", function_only, method = "foreach_lerp_scalars{U}",
    each(ForeachLerpScalars { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         ForeachLerpScalarsWrite { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the first" }))]
impl LerpScalars {
    fn composite(self_: &[Tensor], tensors1: &[Tensor], weight: &[Scalar]) -> Result<Outputs> {
        check_lists(self_, [tensors1])?;
        check_scalars(self_, weight)?;
        RUN(&LERP_SCALAR, self_.len(), |at| {
            [Arg::Tensor(&self_[at]), Arg::Tensor(&tensors1[at]), Arg::Scalar(weight[at])]
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new([tensors(s).into(), others(s).into(), numbers().into()])])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let two = numbers()[..2].to_vec();
        let sample = Sample::new([tensors(s).into(), others(s).into(), two.into()]);
        vec![
            refused(Sample::new([none(), none(), numbers().into()]), EMPTY),
            refused(sample, SCALARS),
        ]
    }
}

/// As `_foreach_lerp` with weights that are tensors of a third list{NOTE}.
#[op("_foreach_lerp{U}.List(Tensor{A}[] self, Tensor[] tensors1, Tensor[] weights) -> {R}", function_only, method = "foreach_lerp_list{U}",
    each(ForeachLerpList { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         ForeachLerpListWrite { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the first" }))]
impl LerpEach {
    fn composite(self_: &[Tensor], tensors1: &[Tensor], weights: &[Tensor]) -> Result<Outputs> {
        check_lists(self_, [tensors1, weights])?;
        RUN(&LERP, self_.len(), |at| [&self_[at], &tensors1[at], &weights[at]].map(Arg::Tensor))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SAMPLES(vec![Sample::new(three(s))])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_lists(s, Value::None)
    }
}

/// As `_foreach_lerp` with one weight for all{NOTE}.
#[op("_foreach_lerp{U}.Scalar(Tensor{A}[] self, Tensor[] tensors1, Scalar weight) -> {R}", function_only, method = "foreach_lerp_scalar{U}",
    each(ForeachLerpScalar { U: "", A: "", R: "Tensor[]", RUN: call_each, SAMPLES: made, NOTE: "" },
         ForeachLerpScalarWrite { U: "_", A: "(a!)", R: "()", RUN: write_each, SAMPLES: written, NOTE: ", written into the first" }))]
impl LerpAll {
    fn composite(self_: &[Tensor], tensors1: &[Tensor], weight: Scalar) -> Result<Outputs> {
        check_lists(self_, [tensors1])?;
        RUN(&LERP_SCALAR, self_.len(), |at| {
            [Arg::Tensor(&self_[at]), Arg::Tensor(&tensors1[at]), Arg::Scalar(weight)]
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |w: f64| Sample::new([tensors(s).into(), others(s).into(), Scalar::Float(w).into()]);
        SAMPLES(vec![sample(0.3), sample(-1.5)])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let half = || Scalar::Float(0.5).into();
        vec![
            refused(Sample::new([none(), none(), half()]), EMPTY),
            refused(
                Sample::new([tensors(s).into(), others(s)[..2].to_vec().into(), half()]),
                super::LENGTHS,
            ),
        ]
    }
}

/// `op(self, tensor1, tensor2, value)`.
fn row(lists: [&[Tensor]; 3], at: usize, value: Scalar) -> [Arg<'_>; 4] {
    let [x, a, b] = lists.map(|list| Arg::Tensor(&list[at]));
    [x, a, b, Arg::Scalar(value)]
}

/// The numbers of a row, one for each tensor.
fn unpacked(scalars: &Tensor, count: usize) -> Result<Vec<Scalar>> {
    let (ndim, numel) = (scalars.ndim(), scalars.numel());
    ensure!(
        ndim == 1,
        runtime,
        "Expected packed scalar Tensor to be of dimension 1. Got {ndim} instead."
    );
    ensure!(
        numel == count as i64,
        runtime,
        "Expected length of scalars to match input of length {count} but got {numel} instead."
    );
    let mut numbers = memory::with_capacity(count)?;
    for at in 0..numel {
        numbers.push(scalars.select(0, at)?.item()?);
    }
    Ok(numbers)
}

fn none() -> Value {
    Value::Tensors(Vec::new())
}

fn three(s: &Sampler) -> [Value; 3] {
    [tensors(s).into(), others(s).into(), others(s).into()]
}

fn numbers() -> Vec<Scalar> {
    vec![Scalar::Float(0.5), Scalar::Int(2), Scalar::Float(-1.5)]
}

fn refused_lists(s: &Sampler, last: Value) -> Vec<InvalidSample> {
    let call = |lists: [Value; 3]| {
        let last = Some(last.clone()).filter(|last| !matches!(last, Value::None));
        Sample::new(lists.into_iter().chain(last))
    };
    let short = || others(s)[..2].to_vec().into(); // bounded: by the samples
    vec![
        refused(call([none(), none(), none()]), EMPTY),
        refused(call([tensors(s).into(), short(), others(s).into()]), super::LENGTHS),
        refused(call([tensors(s).into(), others(s).into(), short()]), super::LENGTHS),
    ]
}
