//! Comparisons, logic, bits and the kinds of numbers.
//!
//! Nothing here has a derivative: the results are bools or integers.

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::samples::pairs;
use crate::tensor::{Cpu, TensorSpec, is_same_elements};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &EQ,
    &NE,
    &LT,
    &LE,
    &GT,
    &GE,
    &LOGICAL_AND,
    &LOGICAL_OR,
    &LOGICAL_XOR,
    &LOGICAL_NOT,
    &BITWISE_AND,
    &BITWISE_OR,
    &BITWISE_XOR,
    &BITWISE_NOT,
    &BITWISE_LEFT_SHIFT,
    &BITWISE_RIGHT_SHIFT,
    &ISCLOSE,
    &ALLCLOSE,
    &EQUAL,
    &IS_NONZERO,
    &ISNAN,
    &ISINF,
    &ISFINITE,
    &ISNEGINF,
    &ISPOSINF,
    &ISREAL,
];

/// Whether `self == other`, element by element; never for NaN. Shapes broadcast; dtypes promote.
#[op("eq.Tensor(Tensor self, Tensor other) -> Tensor", narrow_floats, inplace = method, out, numbers, not_differentiable, meta = predicate,
     cpu = eq, batch = pointwise, samples = binary)]
impl Eq {}

/// Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote.
#[op("ne.Tensor(Tensor self, Tensor other) -> Tensor", narrow_floats, inplace = method, out, numbers, alias("not_equal"), not_differentiable,
     meta = predicate, cpu = ne, batch = pointwise, samples = binary)]
impl Ne {}

/// Whether `self < other`, element by element; never for NaN. Complex numbers are refused.
#[op("lt.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, alias("less"), not_differentiable,
     meta = predicate, cpu = lt, batch = pointwise, samples = binary)]
impl Lt {}

/// Whether `self <= other`, element by element; never for NaN. Complex numbers are refused.
#[op("le.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, alias("less_equal"), not_differentiable,
     meta = predicate, cpu = le, batch = pointwise, samples = binary)]
impl Le {}

/// Whether `self > other`, element by element; never for NaN. Complex numbers are refused.
#[op("gt.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, alias("greater"), not_differentiable,
     meta = predicate, cpu = gt, batch = pointwise, samples = binary)]
impl Gt {}

/// Whether `self >= other`, element by element; never for NaN. Complex numbers are refused.
#[op("ge.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, alias("greater_equal"),
     not_differentiable, meta = predicate, cpu = ge, batch = pointwise, samples = binary)]
impl Ge {}

/// Whether both are not zero; NaN counts as not zero.
#[op("logical_and(Tensor self, Tensor other) -> Tensor", inplace = method, out, not_differentiable, writes_leaves,
     meta = predicate, cpu = logical_and, batch = pointwise, samples = binary)]
impl LogicalAnd {}

/// Whether at least one is not zero; NaN counts as not zero.
#[op("logical_or(Tensor self, Tensor other) -> Tensor", inplace = method, out, not_differentiable, writes_leaves,
     meta = predicate, cpu = logical_or, batch = pointwise, samples = binary)]
impl LogicalOr {}

/// Whether exactly one is not zero; NaN counts as not zero.
#[op("logical_xor(Tensor self, Tensor other) -> Tensor", inplace = method, out, not_differentiable, writes_leaves,
     meta = predicate, cpu = logical_xor, batch = pointwise, samples = binary)]
impl LogicalXor {}

/// Whether each element is zero.
#[op("logical_not(Tensor self) -> Tensor", inplace = method, out, not_differentiable, writes_leaves, meta = predicate,
     cpu = logical_not, batch = pointwise, samples = unary)]
impl LogicalNot {}

/// The bits set in both; for bool "and".
#[op("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, alias("__and__"),
     not_differentiable, meta = broadcast, cpu = bitwise_and, batch = pointwise)]
impl BitwiseAnd {
    fn samples(s: &Sampler) -> Vec<Sample> {
        integer_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let floats = Sample::new([s.normal(&[2]).into(), s.normal(&[2]).into()]);
        vec![InvalidSample::new(
            floats,
            ErrorKind::NotImplemented,
            "\"bitwise_and_cpu\" not implemented for 'Double'",
        )]
    }
}

/// The bits set in at least one; for bool "or".
#[op("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, alias("__or__"),
     not_differentiable, meta = broadcast, cpu = bitwise_or, batch = pointwise)]
impl BitwiseOr {
    fn samples(s: &Sampler) -> Vec<Sample> {
        integer_samples(s)
    }
}

/// The bits set in exactly one; for bool "exclusive or".
#[op("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, alias("__xor__"),
     not_differentiable, meta = broadcast, cpu = bitwise_xor, batch = pointwise)]
impl BitwiseXor {
    fn samples(s: &Sampler) -> Vec<Sample> {
        integer_samples(s)
    }
}

/// Every bit flipped; for bool the negation.
#[op("bitwise_not(Tensor self) -> Tensor", inplace = method, exact_out, not_differentiable, meta = broadcast, cpu = bitwise_not,
     batch = pointwise)]
impl BitwiseNot {
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.integers(&[2, 3], -5, 5)),
            Sample::of(s.bools(&[3])),
            Sample::of(s.integers(&[], 0, 9)),
        ]
    }
}

/// The bits moved to the left by `other` places: `self * 2^other`, wrapping; 0 if `other` is negative or at
/// least the width.
#[op("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, alias("__lshift__"),
     not_differentiable, meta = broadcast, cpu = bitwise_left_shift, batch = pointwise)]
impl BitwiseLeftShift {
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.integers(&[2, 3], -9, 9).into(), s.integers(&[3], 0, 5).into()])]
    }
}

/// The bits moved to the right by `other` places, keeping the sign: `floor(self / 2^other)`; only the sign
/// is left if `other` is negative or at least the width.
#[op("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, alias("__rshift__"),
     not_differentiable, meta = broadcast, cpu = bitwise_right_shift, batch = pointwise)]
impl BitwiseRightShift {
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.integers(&[2, 3], -99, 99).into(), s.integers(&[3], 0, 5).into()])]
    }
}

/// Whether `|self - other| <= atol + rtol * |other|`, element by element. Equal infinities are close; NaN
/// only to NaN and with `equal_nan`. Both tensors have one dtype.
#[op("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
     not_differentiable, batch = pointwise)]
impl Isclose {
    fn meta(self_: &Tensor, other: &Tensor, rtol: f64, atol: f64) -> Result<TensorSpec> {
        ensure!(
            self_.dtype() == other.dtype(),
            runtime,
            "{} did not match {}",
            self_.dtype().scalar_name(),
            other.dtype().scalar_name()
        );
        ensure!(rtol >= 0.0, runtime, "rtol must be greater than or equal to zero, but got {rtol}");
        ensure!(atol >= 0.0, runtime, "atol must be greater than or equal to zero, but got {atol}");
        Ok(TensorSpec::broadcast(&[self_, other])?.with_dtype(DType::Bool))
    }
    fn cpu(iter: &mut Iter, rtol: f64, atol: f64, equal_nan: bool) -> pullback_kernels::Result<()> {
        elementwise::isclose(iter, rtol, atol, equal_nan)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = close_samples(s);
        out.push(
            Sample::of(s.normal(&[2]))
                .with("other", s.normal(&[]))
                .with("rtol", 0.5)
                .with("equal_nan", true),
        );
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let pair = || Sample::new([s.normal(&[2]).into(), s.normal(&[2]).into()]);
        let kinds = Sample::new([s.normal(&[2]).into(), s.integers(&[2], 0, 3).into()]);
        vec![
            InvalidSample::new(pair().with("rtol", -1.0), ErrorKind::Runtime, "but got -1"),
            InvalidSample::new(kinds, ErrorKind::Runtime, "Double did not match Long"),
        ]
    }
}

/// Whether all elements are close, as `isclose`.
#[op(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    not_differentiable
)]
impl Allclose {
    fn composite(
        self_: &Tensor,
        other: &Tensor,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<bool> {
        Ok(!self_.isclose(other, rtol, atol, equal_nan)?.all()?.item()?.is(0.0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        close_samples(s)
    }
}

/// Whether both tensors have the same shape and the same elements (after promotion; NaN never equals).
#[op("equal(Tensor self, Tensor other) -> bool", not_differentiable, data_dependent_output, batch = data_dependent)]
impl Equal {
    fn cpu(cpu: Cpu, self_: &Tensor, other: &Tensor) -> Result<bool> {
        if self_.shape() != other.shape() {
            return Ok(false);
        }
        // Only NaN differs from itself.
        let has_nan = self_.dtype().is_floating_point() || self_.dtype().is_complex();
        if !has_nan && is_same_elements(self_, other) {
            return Ok(true);
        }
        match elementwise::is_equal(&self_.view_ref(cpu), &other.view_ref(cpu)) {
            Some(is_equal) => Ok(is_equal),
            None => Ok(!self_.eq(other)?.all()?.item()?.is(0.0)),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        close_samples(s)
    }
}

/// Whether the only element is not zero.
#[op("is_nonzero(Tensor self) -> bool", not_differentiable)]
impl IsNonzero {
    fn composite(self_: &Tensor) -> Result<bool> {
        let amount = match self_.numel() {
            1 => return Ok(!self_.item()?.is(0.0)),
            0 => "no values",
            _ => "more than one value",
        };
        bail!(runtime, "Boolean value of Tensor with {amount} is ambiguous")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[])), Sample::of(s.normal(&[1, 1]))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], phrase| {
            InvalidSample::new(Sample::of(s.normal(shape)), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[0], "Boolean value of Tensor with no values is ambiguous"),
            bad(&[2], "Boolean value of Tensor with more than one value is ambiguous"),
        ]
    }
}

/// Whether each element is NaN; of a complex number, whether either part is.
#[op("isnan(Tensor self) -> Tensor", narrow_floats, not_differentiable, meta = predicate, cpu = isnan, batch = pointwise, samples = unary, sparse = values)]
impl Isnan {}

/// Whether each element is infinite; of a complex number, whether either part is.
#[op("isinf(Tensor self) -> Tensor", narrow_floats, not_differentiable, meta = predicate, cpu = isinf, batch = pointwise, samples = unary, sparse = values)]
impl Isinf {}

/// Whether each element is neither infinite nor NaN; of a complex number, whether both parts are.
#[op("isfinite(Tensor self) -> Tensor", narrow_floats, not_differentiable, meta = predicate, cpu = isfinite, batch = pointwise, samples = unary)]
impl Isfinite {}

fn integer_samples(s: &Sampler) -> Vec<Sample> {
    let integers = |shape: &[i64]| s.integers(shape, -20, 20);
    let mut out: Vec<_> = pairs()
        .iter()
        .map(|(a, b)| Sample::new([integers(a).into(), integers(b).into()]))
        .collect();
    out.push(Sample::new([s.bools(&[2, 3]).into(), s.bools(&[3]).into()]));
    out.push(Sample::new([s.bools(&[2, 3]).into(), integers(&[3]).into()]));
    out
}

fn close_samples(s: &Sampler) -> Vec<Sample> {
    let x = s.normal(&[2, 3]);
    vec![
        Sample::new([x.clone().into(), x.into()]),
        Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2, 3]).into()]),
        Sample::new([s.normal(&[0]).into(), s.normal(&[0]).into()]),
    ]
}

/// Bools in the place of real numbers.
fn real_predicate(name: &str, self_: &Tensor) -> Result<TensorSpec> {
    ensure!(!self_.dtype().is_complex(), type_error, "{name} does not support complex inputs.");
    Ok(TensorSpec::broadcast(&[self_])?.with_dtype(DType::Bool))
}

fn infinities(s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let values = [f64::INFINITY, 0.0, f64::NEG_INFINITY, f64::NAN];
    let t = Tensor::from_slice(&values, &[2, 2]).and_then(|t| t.to_dtype(s.dtype));
    let all =
        [t.expect("samples are small"), s.integers(&[3], 0, 5), s.normal(&[]), s.normal(&[0])];
    all.into_iter().map(Sample::of).collect()
}

fn complex_refused(phrase: &'static str) -> Vec<InvalidSample> {
    let t = TensorSpec::of(&[2], DType::C64).zeros().expect("samples are small");
    vec![InvalidSample::new(Sample::of(t), ErrorKind::Type, phrase)]
}

/// Whether each element is minus infinity. Complex numbers are refused.
#[op("isneginf(Tensor self) -> Tensor", exact_out, not_differentiable, cpu = isneginf, batch = pointwise, sparse = values)]
impl Isneginf {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        real_predicate("isneginf", self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        infinities(s)
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        complex_refused("isneginf does not support complex inputs.")
    }
}

/// Whether each element is plus infinity. Complex numbers are refused.
#[op("isposinf(Tensor self) -> Tensor", exact_out, not_differentiable, cpu = isposinf, batch = pointwise, sparse = values)]
impl Isposinf {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        real_predicate("isposinf", self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        infinities(s)
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        complex_refused("isposinf does not support complex inputs.")
    }
}

/// Whether the imaginary part of each element is zero: always, if it has none.
#[op("isreal(Tensor self) -> Tensor", not_differentiable, samples = unary)]
impl Isreal {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.dtype().is_complex() {
            return self_.imag_view()?.eq(&Tensor::wrapped(0)?);
        }
        self_.new_full_with(self_.shape(), Scalar::Bool(true), Some(DType::Bool), None, None, None)
    }
}
