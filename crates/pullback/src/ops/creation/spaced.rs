//! Evenly spaced numbers: `linspace` and `logspace`, and `range`, which is older than `arange`.
//!
//! The bounds are numbers, or stand in 0-dim tensors; nothing here has a derivative. Everything ends in the forms that
//! take numbers.

use super::factory::{FactoryOptions, as_size, check_real, refused, series};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::promote::default_dtype;
use crate::{DType, Device, ErrorKind, Layout, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::creation;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LINSPACE,
    &LINSPACE_TENSOR_TENSOR,
    &LINSPACE_TENSOR_SCALAR,
    &LINSPACE_SCALAR_TENSOR,
    &LOGSPACE,
    &LOGSPACE_TENSOR_TENSOR,
    &LOGSPACE_TENSOR_SCALAR,
    &LOGSPACE_SCALAR_TENSOR,
    &RANGE,
    &RANGE_STEP,
];

/// A bound: a number, or the tensor that holds it.
trait Endpoint: Copy {
    const IN_TENSOR: bool;
    fn ndim(self) -> Option<usize>;
    fn is_complex(self) -> bool;
    fn number(self) -> Result<Scalar>;
}
impl Endpoint for Scalar {
    const IN_TENSOR: bool = false;
    fn ndim(self) -> Option<usize> {
        None
    }
    fn is_complex(self) -> bool {
        matches!(self, Scalar::Complex(..))
    }
    fn number(self) -> Result<Scalar> {
        Ok(self)
    }
}
impl Endpoint for &Tensor {
    const IN_TENSOR: bool = true;
    fn ndim(self) -> Option<usize> {
        Some(self.shape().len())
    }
    fn is_complex(self) -> bool {
        self.dtype().is_complex()
    }
    fn number(self) -> Result<Scalar> {
        self.element()
    }
}

/// As many numbers as there are steps, of a complex dtype if a bound is complex, which no real `dtype` takes.
fn spaced(
    function: &str,
    start: impl Endpoint,
    end: impl Endpoint,
    steps: i64,
    options: FactoryOptions,
) -> Result<TensorSpec> {
    let given = [("start", start.ndim()), ("end", end.ndim())];
    if given.iter().any(|(_, ndim)| ndim.is_some_and(|n| n != 0)) {
        let say = |(name, ndim): (&str, Option<usize>)| {
            ndim.map(|n| format!("{name} with {n} dimension(s)"))
        };
        let said: Vec<String> = given.into_iter().filter_map(say).collect();
        bail!(
            runtime,
            "{function} only supports 0-dimensional start and end tensors, but got {}.",
            said.join(" and ")
        );
    }
    ensure!(steps >= 0, runtime, "number of steps must be non-negative, but got {steps}");
    let is_complex = start.is_complex() || end.is_complex();
    let natural = if is_complex { default_dtype().to_complex() } else { default_dtype() };
    if let Some(dtype) = options.0.filter(|dtype| is_complex && !dtype.is_complex()) {
        bail!(
            runtime,
            "torch.{function}(): inferred dtype {} can't be safely cast to passed dtype {}",
            natural.scalar_name(),
            dtype.scalar_name()
        );
    }
    options.checked_spec(&[steps], natural)
}

/// `steps` numbers evenly spaced from `start` to `end`, both included.{FORM}
#[op("linspace{OVERLOAD}({START} start, {END} end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     out, fills_out, not_differentiable,
     each(Linspace { OVERLOAD: "", START: Scalar, END: Scalar, FROM: Scalar, TO: Scalar, FORM: "" },
          LinspaceTensorTensor { OVERLOAD: ".Tensor_Tensor", START: Tensor, END: Tensor, FROM: &Tensor, TO: &Tensor, FORM: " Both bounds are in 0-dim tensors." },
          LinspaceTensorScalar { OVERLOAD: ".Tensor_Scalar", START: Tensor, END: Scalar, FROM: &Tensor, TO: Scalar, FORM: " The first bound is in a 0-dim tensor." },
          LinspaceScalarTensor { OVERLOAD: ".Scalar_Tensor", START: Scalar, END: Tensor, FROM: Scalar, TO: &Tensor, FORM: " The last bound is in a 0-dim tensor." }))]
impl LinspaceAny {
    fn meta(
        start: FROM,
        end: TO,
        steps: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        spaced("linspace", start, end, steps, FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor, start: FROM, end: TO) -> Result<()> {
        let (start, end) = (start.number()?, end.number()?);
        Ok(creation::linspace(&mut result.view_mut(cpu), start, end)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        bound_samples(s, [<FROM>::IN_TENSOR, <TO>::IN_TENSOR])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_bounds(s, "linspace", [<FROM>::IN_TENSOR, <TO>::IN_TENSOR])
    }
}

/// `base` to the power of `steps` numbers evenly spaced from `start` to `end`.{FORM}
#[op("logspace{OVERLOAD}({START} start, {END} end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     out, fills_out, not_differentiable,
     each(Logspace { OVERLOAD: "", START: Scalar, END: Scalar, FROM: Scalar, TO: Scalar, FORM: "" },
          LogspaceTensorTensor { OVERLOAD: ".Tensor_Tensor", START: Tensor, END: Tensor, FROM: &Tensor, TO: &Tensor, FORM: " Both bounds are in 0-dim tensors." },
          LogspaceTensorScalar { OVERLOAD: ".Tensor_Scalar", START: Tensor, END: Scalar, FROM: &Tensor, TO: Scalar, FORM: " The first bound is in a 0-dim tensor." },
          LogspaceScalarTensor { OVERLOAD: ".Scalar_Tensor", START: Scalar, END: Tensor, FROM: Scalar, TO: &Tensor, FORM: " The last bound is in a 0-dim tensor." }))]
impl LogspaceAny {
    fn meta(
        start: FROM,
        end: TO,
        steps: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        spaced("logspace", start, end, steps, FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor, start: FROM, end: TO, base: f64) -> Result<()> {
        let (start, end) = (start.number()?, end.number()?);
        Ok(creation::logspace(&mut result.view_mut(cpu), start, end, base)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        bound_samples(s, [<FROM>::IN_TENSOR, <TO>::IN_TENSOR])
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_bounds(s, "logspace", [<FROM>::IN_TENSOR, <TO>::IN_TENSOR])
    }
}

/// As many numbers as there are from `start` to `end`, which is included.
fn inclusive(
    start: Scalar,
    end: Scalar,
    step: Scalar,
    options: FactoryOptions,
) -> Result<TensorSpec> {
    check_real(&[start, end, step])?;
    let dtype = options.0.unwrap_or_else(default_dtype);
    let size = creation::range_size(start, end, step, dtype)?;
    options.checked_spec(&[as_size(size)], dtype)
}

/// Writes `start + i * step`.
fn write_inclusive(cpu: Cpu, result: &Tensor, start: Scalar, step: Scalar) -> Result<()> {
    creation::range(&mut result.view_mut(cpu), start, step)?;
    crate::warning::warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in [start, end).".into());
    Ok(())
}

/// The numbers `start`, `start + 1`, ... up to `end`, which is included; of the default floating dtype unless `dtype` is
/// given. Deprecated: `arange` is what everybody expects.
#[op(
    "range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl Range {
    fn meta(
        start: Scalar,
        end: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        inclusive(start, end, Scalar::Int(1), FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor, start: Scalar) -> Result<()> {
        write_inclusive(cpu, result, start, Scalar::Int(1))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![series([Scalar::Int(1), Scalar::Float(4.5)])]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let numbers = |end: Scalar| [Scalar::Int(0).into(), end.into()];
        vec![
            refused(
                numbers(Scalar::Int(-1)),
                "upper bound and lower bound inconsistent with step sign",
            ),
            refused(numbers(Scalar::Float(f64::NAN)), "unsupported range: 0 -> nan"),
            refused(numbers(Scalar::Complex(0.0, 1.0)), "without overflow"),
        ]
    }
}

/// `start + i * step` for `i = 0, 1, ...` as long as it lies before `end` or is it: `floor((end - start) / step) + 1`
/// numbers. Of an integer `dtype` the bounds and the step lose their fractions first.
#[op(
    "range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    fills_out,
    not_differentiable
)]
impl RangeStep {
    fn meta(
        start: Scalar,
        end: Scalar,
        step: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        inclusive(start, end, step, FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor, start: Scalar, step: Scalar) -> Result<()> {
        write_inclusive(cpu, result, start, step)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            series([Scalar::Int(5), Scalar::Int(1), Scalar::Int(-2)]),
            series([Scalar::Float(0.0), Scalar::Float(1.0), Scalar::Float(0.3)]),
            series([Scalar::Int(0), Scalar::Int(4), Scalar::Float(1.5)]).with("dtype", DType::I32),
            series([Scalar::Int(1), Scalar::Int(1), Scalar::Int(-1)]).with("dtype", DType::F16),
        ]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let zero = series([Scalar::Int(0), Scalar::Int(4), Scalar::Float(0.5)]);
        let phrase = "step must be nonzero";
        let bools = series([Scalar::Int(0), Scalar::Int(4), Scalar::Int(1)]);
        vec![
            InvalidSample::new(zero.with("dtype", DType::I32), ErrorKind::Runtime, phrase),
            InvalidSample::new(
                bools.with("dtype", DType::Bool),
                ErrorKind::NotImplemented,
                "\"range_cpu\" not implemented for 'Bool'",
            ),
        ]
    }
}

/// A bound as a tensor of this shape, or as a number.
fn bound(s: &Sampler, is_tensor: bool, shape: &[i64]) -> Value {
    if is_tensor { s.normal(shape).into() } else { Scalar::Float(2.5).into() }
}

fn bound_samples(s: &Sampler, in_tensors: [bool; 2]) -> Vec<Sample> {
    let sample = |bounds: [Value; 2], steps: i64| {
        Sample::new(bounds.into_iter().chain([steps.into()])).without_gradient()
    };
    if in_tensors == [false, false] {
        let of = |start: Scalar, end: Scalar, steps| sample([start.into(), end.into()], steps);
        return vec![
            of(Scalar::Int(0), Scalar::Int(1), 5),
            of(Scalar::Float(1.5), Scalar::Float(-0.5), 4).with("dtype", DType::F64),
            of(Scalar::Int(1), Scalar::Complex(2.0, 1.0), 3),
            of(Scalar::Int(1), Scalar::Int(2), 1),
            of(Scalar::Int(1), Scalar::Int(2), 0),
        ];
    }
    let of = |steps| sample(in_tensors.map(|is_tensor| bound(s, is_tensor, &[])), steps);
    vec![of(5), of(1), of(0).with("dtype", DType::F64)]
}

fn refused_bounds(s: &Sampler, function: &str, in_tensors: [bool; 2]) -> Vec<InvalidSample> {
    if in_tensors != [false, false] {
        let [start, end] = in_tensors.map(|is_tensor| bound(s, is_tensor, &[1]));
        let phrase = "only supports 0-dimensional start and end tensors, but got";
        return vec![refused([start, end, 3_i64.into()], phrase)];
    }
    let mut all = vec![refused(
        [Scalar::Int(0).into(), Scalar::Int(1).into(), (-1_i64).into()],
        "number of steps must be non-negative",
    )];
    if function == "linspace" {
        let numbers = [Scalar::Int(0).into(), Scalar::Complex(0.0, 1.0).into(), 3_i64.into()];
        let phrase = "torch.linspace(): inferred dtype ComplexFloat can't be safely cast to passed dtype Float";
        let sample = Sample::new(numbers).with("dtype", DType::F32);
        all.push(InvalidSample::new(sample, ErrorKind::Runtime, phrase));
    }
    all
}
