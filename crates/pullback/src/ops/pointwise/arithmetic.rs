//! Sums, differences, products and quotients.
//!
//! Remainders are in `remainder`; powers, `maximum`, `minimum` and other functions of two numbers are in `binary`. The methods at the end of the
//! file are what rules are written with. Invariant: a rule is made of dispatching methods only, so that
//! it can be differentiated again.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&ADD, &SUB, &RSUB, &RSUB_NUMBER, &MUL, &DIV, &DIV_MODE, &FLOOR_DIVIDE];

/// Adds `other`, multiplied by `alpha`: `out[i] = self[i] + alpha * other[i]`.
/// Shapes broadcast; dtypes promote; for bool this is "or".
#[op("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     inplace = method, out, numbers, profiler_flops, result = same, batch = pointwise, jvp = linear, sparse = add(cpu, form, self, other, alpha))]
impl Add {
    fn meta(self_: &Tensor, other: &Tensor, alpha: Scalar) -> Result<TensorSpec> {
        scaled_spec(self_, other, alpha)
    }
    fn cpu(iter: &mut Iter, alpha: Scalar) -> pullback_kernels::Result<()> {
        elementwise::add(iter, alpha)
    }
    fn flops(self_: &Tensor) -> Result<u64> {
        Ok(self_.numel() as u64)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_other(grad: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.times(alpha.conj())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        scaled_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        scaled_invalid_samples(s)
    }
}

/// Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
/// Shapes broadcast; dtypes promote; bool is refused.
#[op("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     inplace = method, out, numbers, alias("subtract"), result = same, batch = pointwise, jvp = linear, sparse = subtract(cpu, form, self, other, alpha))]
impl Sub {
    fn meta(self_: &Tensor, other: &Tensor, alpha: Scalar) -> Result<TensorSpec> {
        refuse_one_bool(self_, other)?;
        scaled_spec(self_, other, alpha)
    }
    fn cpu(iter: &mut Iter, alpha: Scalar) -> pullback_kernels::Result<()> {
        elementwise::sub(iter, alpha)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_other(grad: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.neg()?.times(alpha.conj())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        scaled_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let mut out = scaled_invalid_samples(s);
        let mixed = [s.bools(&[2]).into(), s.normal(&[2]).into()];
        out.push(InvalidSample::new(
            Sample::new(mixed),
            ErrorKind::NotImplemented,
            "with a bool tensor",
        ));
        out
    }
}

/// Subtracts `self`, multiplied by `alpha`, from `other`: `out[i] = other[i] - alpha * self[i]`.
#[op("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", function_only, result = same, batch = pointwise, jvp = linear)]
impl Rsub {
    fn meta(self_: &Tensor, other: &Tensor, alpha: Scalar) -> Result<TensorSpec> {
        refuse_one_bool(self_, other)?;
        scaled_spec(self_, other, alpha)
    }
    fn cpu(iter: &mut Iter, alpha: Scalar) -> pullback_kernels::Result<()> {
        elementwise::rsub(iter, alpha)
    }
    fn vjp_self(grad: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.neg()?.times(alpha.conj())
    }
    fn vjp_other(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        scaled_samples(s)
    }
}

/// Subtracts `self`, multiplied by `alpha`, from the number `other`.
#[op("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", function_only, operand(other), method = rsub_number,
     node = "RsubBackward1", result = same, batch = pointwise)]
impl RsubNumber {
    fn meta(self_: &Tensor, other: Scalar, alpha: Scalar) -> Result<TensorSpec> {
        let other = Tensor::wrapped(other)?;
        refuse_one_bool(self_, &other)?;
        scaled_spec(self_, &other, alpha)
    }
    fn cpu(iter: &mut Iter, alpha: Scalar) -> pullback_kernels::Result<()> {
        elementwise::rsub(iter, alpha)
    }
    fn vjp_self(grad: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.neg()?.times(alpha.conj())
    }
    fn jvp(self_t: &Tensor, alpha: Scalar) -> Result<Tensor> {
        self_t.neg()?.times(alpha)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.normal(shape)).with("other", Scalar::Float(1.5));
        let other = Sample::of(s.transposed(3, 2)).with("other", Scalar::Int(-2));
        vec![sample(&[2, 3]), sample(&[]), sample(&[0]), other.with("alpha", Scalar::Float(0.5))]
    }
}

/// Multiplies by `other`: `out[i] = self[i] * other[i]`.
/// Shapes broadcast; dtypes promote; for bool this is "and".
#[op("mul.Tensor(Tensor self, Tensor other) -> Tensor", narrow_floats,
     inplace = method, out, numbers, wide_numbers, profiler_flops, alias("multiply"), meta = broadcast, cpu = mul, batch = pointwise, samples = binary, sparse = multiply(form, self, other))]
impl Mul {
    fn flops(self_: &Tensor) -> Result<u64> {
        Ok(self_.numel() as u64)
    }
    fn vjp_self(grad: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(&other.conj()?)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.conj()?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        by_both(other_t.map(|t| t.mul(self_p)), self_t.map(|t| t.mul(other_p)))
    }
}

/// Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
/// division by zero gives an infinity or NaN.
#[op("div.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, wide_numbers, alias("divide", "true_divide"),
     meta = float, cpu = true_divide, batch = pointwise, samples = binary_nonzero, sparse = divide(call, other))]
impl Div {
    fn vjp_self(grad: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.div(&other.conj()?)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        quotient_grad(grad, self_, other)
    }
    fn jvp(
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
        result: &Tensor,
    ) -> Result<Option<Tensor>> {
        let by_self = self_t.map(|t| t.div(other_p));
        by_both(by_self, other_t.map(|t| t.mul(result)?.div(other_p)?.neg()))
    }
}

/// The tangent of a function of two inputs, of which one may have none: the sum of what each contributes.
pub(in crate::ops) fn by_both(
    first: Option<Result<Tensor>>,
    second: Option<Result<Tensor>>,
) -> Result<Option<Tensor>> {
    Ok(match (first.transpose()?, second.transpose()?) {
        (Some(first), Some(second)) => Some(first.add(&second)?),
        (first, second) => first.or(second),
    })
}

/// Runs a kernel that divides integers, unless a divisor is zero: then nothing is written.
pub(in crate::ops) fn divided(
    iter: &mut Iter,
    kernel: fn(&mut Iter) -> pullback_kernels::Result<()>,
) -> pullback_kernels::Result<()> {
    if iter.input_dtype(0).is_integral(false) && iter.has_zero(1) {
        return Err(pullback_kernels::Error::runtime("ZeroDivisionError".into()));
    }
    kernel(iter)
}

pub(in crate::ops) fn zero_divisors() -> Vec<InvalidSample> {
    let of = |values: &[i64]| Tensor::from_slice(values, &[2]).expect("two numbers");
    let sample = Sample::new([of(&[5, 6]).into(), of(&[2, 0]).into()]);
    vec![InvalidSample::new(sample, ErrorKind::Runtime, "ZeroDivisionError")]
}

/// Divides by `other` and rounds: `rounding_mode` is `None` (true division), `"trunc"` (towards zero) or
/// `"floor"` (downwards). The rounded quotients have gradient zero; integers refuse a zero divisor.
#[op("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", inplace = method, out, numbers, leading_number, wide_numbers,
     alias("divide"), node = "DivBackward2", batch = pointwise, sparse = divide(call, other))]
impl DivMode {
    fn meta(self_: &Tensor, other: &Tensor, rounding_mode: Option<&str>) -> Result<TensorSpec> {
        let spec = TensorSpec::broadcast(&[self_, other])?;
        Ok(if rounding_mode.is_none() { spec.to_float() } else { spec })
    }
    fn cpu(iter: &mut Iter, rounding_mode: Option<&str>) -> pullback_kernels::Result<()> {
        match rounding_mode {
            None => elementwise::true_divide(iter),
            Some("trunc") => divided(iter, elementwise::trunc_divide),
            Some("floor") => divided(iter, elementwise::floor_divide),
            Some(other) => Err(pullback_kernels::Error::runtime(format!(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
            ))),
        }
    }
    fn vjp_self(grad: &Tensor, other: &Tensor, rounding_mode: Option<&str>) -> Result<Tensor> {
        if rounding_mode.is_some() { grad.zeros_like() } else { grad.div(&other.conj()?) }
    }
    fn vjp_other(
        grad: &Tensor,
        self_: &Tensor,
        other: &Tensor,
        rounding_mode: Option<&str>,
    ) -> Result<Tensor> {
        if rounding_mode.is_some() {
            return grad.zeros_like();
        }
        quotient_grad(grad, self_, other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let pair =
            |a: &[i64], b: &[i64]| Sample::new([s.normal(a).into(), s.away_from_zero(b).into()]);
        vec![
            pair(&[2, 3], &[3]).with("rounding_mode", Value::None),
            pair(&[2, 3], &[2, 1]).with("rounding_mode", "trunc"),
            pair(&[], &[2]).with("rounding_mode", "floor"),
            pair(&[0], &[]).with("rounding_mode", "floor"),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let pair = [s.normal(&[2]).into(), s.away_from_zero(&[2]).into()];
        let sample = Sample::new(pair).with("rounding_mode", "up");
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "but found 'up'")]
    }
}

/// The floor of the quotient, as Python's `//`. Has no derivative.
#[op("floor_divide(Tensor self, Tensor other) -> Tensor", inplace = method, out, numbers, leading_number, wide_numbers, meta = broadcast,
     batch = pointwise, sparse = divide(call, other))]
impl FloorDivide {
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        divided(iter, elementwise::floor_divide)
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        zero_divisors()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        crate::ops::classes::samples::values_only(crate::ops::classes::samples::binary_nonzero(s))
    }
}

/// `d(a/b)/db = -a / b^2`, computed as `(a / b) / b` so that `b^2` cannot overflow.
fn quotient_grad(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    grad.neg()?.mul(&a.div(b)?.div(b)?.conj()?)
}

/// The spec of a sum, with `alpha` checked against the result's kind.
fn scaled_spec(a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<TensorSpec> {
    let spec = TensorSpec::broadcast(&[a, b])?;
    let dtype = spec.dtype;
    match alpha {
        Scalar::Int(_) | Scalar::UInt(_) => {}
        Scalar::Bool(_) => ensure!(
            dtype == DType::Bool,
            runtime,
            "Boolean alpha only supported for Boolean results."
        ),
        Scalar::Float(_) => ensure!(
            !dtype.is_integral(true),
            runtime,
            "For integral input tensors, argument alpha must not be a floating point number."
        ),
        Scalar::Complex(..) => ensure!(
            dtype.is_complex(),
            runtime,
            "For non-complex input tensors, argument alpha must not be a complex number."
        ),
    }
    Ok(spec)
}

/// Refuses one bool operand; two bools are refused by the kernel with a hint of its own.
fn refuse_one_bool(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        (a.dtype() == DType::Bool) == (b.dtype() == DType::Bool),
        not_implemented,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    );
    Ok(())
}

fn scaled_samples(s: &Sampler) -> Vec<Sample> {
    let mut out = crate::ops::classes::samples::binary(s);
    let pair = |a: &[i64], b: &[i64]| Sample::new([s.normal(a).into(), s.normal(b).into()]);
    out.push(pair(&[2, 3], &[3]).with("alpha", Scalar::Float(-1.5)));
    out.push(pair(&[2], &[2]).with("alpha", Scalar::Int(0)));
    out
}

fn scaled_invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
    let integers = || Sample::new([s.integers(&[2], 0, 5).into(), s.integers(&[2], 0, 5).into()]);
    let sizes = Sample::new([s.normal(&[2]).into(), s.normal(&[3]).into()]);
    vec![
        InvalidSample::new(sizes, ErrorKind::Runtime, "must match the size of tensor b (3)"),
        InvalidSample::new(
            integers().with("alpha", Scalar::Float(0.5)),
            ErrorKind::Runtime,
            "floating point number",
        ),
        InvalidSample::new(
            integers().with("alpha", Scalar::Bool(true)),
            ErrorKind::Runtime,
            "Boolean alpha",
        ),
    ]
}

impl Tensor {
    /// `self * factor`, without multiplying by one.
    pub(crate) fn times(&self, factor: impl Into<Scalar>) -> Result<Tensor> {
        let factor = factor.into();
        if factor.is(1.0) { Ok(self.clone()) } else { self.mul(&Tensor::wrapped(factor)?) }
    }
    /// `self + value`.
    pub(crate) fn plus(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.add(&Tensor::wrapped(value)?)
    }
    /// `value - self`.
    pub(crate) fn minus_from(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.rsub_number(value.into(), Scalar::Int(1))
    }
    /// `self / value`.
    pub(crate) fn over(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.div(&Tensor::wrapped(value)?)
    }
    /// The conjugates: of a complex tensor a view, which computes nothing; a real tensor itself.
    #[track_caller]
    pub fn conj(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            Ok(self.clone())
        } else if self.is_sparse() {
            self.conj_physical()
        } else {
            self.conj_view()
        }
    }
}
