//! Limiting elements from below and above.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::binary::{halved, mean_of_equal};
use crate::ops::pointwise::ternary::walk_as_is;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&CLAMP, &CLAMP_TENSOR, &CLAMP_MIN, &CLAMP_MIN_TENSOR, &CLAMP_MAX, &CLAMP_MAX_TENSOR];

/// Limits to `min..=max`: `min(max(self, min), max)`; `max` wins if it is below `min`. At least one limit is
/// given; NaN stays NaN; the gradient passes where `self` lies between the limits, ends excluded.
#[op("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", inplace, out, alias("clip"),
     node = "ClampBackward1", batch = pointwise)]
impl Clamp {
    fn meta(self_: &Tensor, min: Option<Scalar>, max: Option<Scalar>) -> Result<TensorSpec> {
        limited_spec(self_, min, max)
    }
    fn cpu(
        iter: &mut Iter,
        min: Option<Scalar>,
        max: Option<Scalar>,
    ) -> pullback_kernels::Result<()> {
        let within = |limit: Option<Scalar>| limit.map(|v| representable(v, iter.input_dtype(0)));
        let (min, max) = (within(min), within(max));
        elementwise::clamp(iter, min, max)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        min: Option<Scalar>,
        max: Option<Scalar>,
    ) -> Result<Tensor> {
        pass_inside(grad, self_, wrapped(min)?.as_ref(), wrapped(max)?.as_ref())
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        min: Option<Scalar>,
        max: Option<Scalar>,
    ) -> Result<Tensor> {
        pass_inside(self_t, self_p, wrapped(min)?.as_ref(), wrapped(max)?.as_ref())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.normal(shape));
        let number = |v: f64| Value::Scalar(Scalar::Float(v));
        vec![
            sample(&[2, 3]).with("min", number(-0.5)).with("max", number(1.0)),
            sample(&[3]).with("min", number(0.1)),
            sample(&[]).with("max", number(0.3)),
            sample(&[0]).with("min", number(0.0)),
            Sample::of(s.transposed(3, 2)).with("min", number(1.0)).with("max", number(-1.0)),
            Sample::of(s.integers(&[3], -9, 9)).with("min", Scalar::Int(-2)).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bytes = s.integers(&[2], 0, 200).to_dtype(DType::U8).expect("samples are small");
        let bytes = |name: &'static str, limit: i64| {
            Sample::of(bytes.clone()).with(name, Scalar::Int(limit))
        };
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(Sample::of(s.normal(&[2])), "At least one of 'min' or 'max' must not be None"),
            bad(
                bytes("min", 300),
                "Clamp min value 300 is outside the representable range of Byte",
            ),
            bad(bytes("max", -1), "Clamp max value -1 is outside the representable range of Byte"),
        ]
    }
}

/// Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
/// one of its limits shares the gradient with it in halves.
#[op("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", inplace, out, overload_out, apart, alias("clip"),
     batch = pointwise)]
impl ClampTensor {
    fn meta(self_: &Tensor, min: Option<&Tensor>, max: Option<&Tensor>) -> Result<TensorSpec> {
        let is_complex = |t: &Tensor| t.dtype().is_complex();
        ensure!(
            !is_complex(self_) && !min.is_some_and(is_complex) && !max.is_some_and(is_complex),
            not_implemented,
            "clamp is not supported for complex types"
        );
        match (min, max) {
            (Some(min), Some(max)) => TensorSpec::broadcast(&[self_, min, max]),
            (Some(limit), None) | (None, Some(limit)) => TensorSpec::broadcast(&[self_, limit]),
            (None, None) => {
                bail!(runtime, "torch.clamp: At least one of 'min' or 'max' must not be None")
            }
        }
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        min: Option<&Tensor>,
        max: Option<&Tensor>,
    ) -> Result<()> {
        let read = |t: &Tensor| t.in_dtype(cpu, result.dtype());
        let inputs = [Some(self_), min, max].into_iter().flatten().map(read);
        let kernel = match (min, max) {
            (Some(_), Some(_)) => elementwise::clamp_tensor,
            (Some(_), None) => elementwise::maximum,
            _ => elementwise::minimum,
        };
        walk_as_is(cpu, result, &inputs.collect::<Result<Vec<_>>>()?, kernel)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        min: Option<&Tensor>,
        max: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (shares, outside) = match (min, max) {
            // Between limits that are one, the element itself is the result.
            (Some(min), Some(max)) => (
                min.ne(max)?.logical_and(&self_.eq(min)?.logical_or(&self_.eq(max)?)?)?,
                self_.lt(min)?.logical_or(&self_.gt(max)?)?,
            ),
            (Some(min), None) => (self_.eq(min)?, self_.lt(min)?),
            (None, Some(max)) => (self_.eq(max)?, self_.gt(max)?),
            (None, None) => return Ok(grad.clone()),
        };
        shares.where_self(&grad.over(2)?, grad)?.masked_fill(&outside, Scalar::Int(0))
    }
    fn vjp_min(
        grad: &Tensor,
        self_: &Tensor,
        min: Option<&Tensor>,
        max: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let Some(min) = min else { return Ok(None) };
        let (mut raised, mut shares) = (self_.lt(min)?, self_.eq(min)?);
        if let Some(max) = max {
            raised = raised.logical_and(&min.le(max)?)?;
            shares = shares.logical_and(&min.lt(max)?)?;
        }
        raised.where_self(grad, &share(grad, &shares)?).map(Some)
    }
    fn vjp_max(
        grad: &Tensor,
        self_: &Tensor,
        min: Option<&Tensor>,
        max: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let Some(max) = max else { return Ok(None) };
        let (mut lowered, mut shares) = (self_.gt(max)?, self_.eq(max)?);
        if let Some(min) = min {
            lowered = lowered.logical_or(&max.lt(min)?)?;
            shares = shares.logical_and(&min.lt(max)?)?;
        }
        lowered.where_self(grad, &share(grad, &shares)?).map(Some)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.normal(shape));
        vec![
            sample(&[2, 3])
                .with("min", s.uniform(&[2, 3], -1.0, -0.2))
                .with("max", s.uniform(&[3], 0.2, 1.0)),
            sample(&[2, 3]).with("min", s.normal(&[3])),
            sample(&[3]).with("max", s.normal(&[2, 1])),
            sample(&[4]).with("min", s.normal(&[])).with("max", s.normal(&[4])),
            sample(&[0]).with("max", s.normal(&[1])),
        ]
    }
}

/// Limits from below: `max(self, min)`; NaN stays NaN.
#[op("clamp_min(Tensor self, Scalar min) -> Tensor", inplace, out, batch = pointwise)]
impl ClampMin {
    fn meta(self_: &Tensor, min: Scalar) -> Result<TensorSpec> {
        limited_spec(self_, Some(min), None)
    }
    fn cpu(iter: &mut Iter, min: Scalar) -> pullback_kernels::Result<()> {
        let min = representable(min, iter.input_dtype(0));
        elementwise::clamp(iter, Some(min), None)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, min: Scalar) -> Result<Tensor> {
        pass_inside(grad, self_, wrapped(Some(min))?.as_ref(), None)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, min: Scalar) -> Result<Tensor> {
        pass_inside(self_t, self_p, wrapped(Some(min))?.as_ref(), None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        limit_samples(s, "min")
    }
}

/// Limits from below element by element; equal elements share the gradient in halves.
#[op("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", inplace, out, overload_out, node = "ClampMinBackward1",
     meta = broadcast, cpu = maximum, batch = pointwise, samples = binary)]
impl ClampMinTensor {
    fn vjp_self(grad: &Tensor, self_: &Tensor, min: &Tensor) -> Result<Tensor> {
        halved(grad, self_, min)?.masked_fill(&self_.lt(min)?, Scalar::Int(0))
    }
    fn vjp_min(grad: &Tensor, self_: &Tensor, min: &Tensor) -> Result<Tensor> {
        halved(grad, self_, min)?.masked_fill(&self_.gt(min)?, Scalar::Int(0))
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, min_p: &Tensor, min_t: &Tensor) -> Result<Tensor> {
        let chosen = self_p.gt(min_p)?.where_self(self_t, min_t)?;
        mean_of_equal((self_p, self_t), (min_p, min_t), &chosen)
    }
}

/// Limits from above: `min(self, max)`; NaN stays NaN.
#[op("clamp_max(Tensor self, Scalar max) -> Tensor", inplace, out, batch = pointwise)]
impl ClampMax {
    fn meta(self_: &Tensor, max: Scalar) -> Result<TensorSpec> {
        limited_spec(self_, None, Some(max))
    }
    fn cpu(iter: &mut Iter, max: Scalar) -> pullback_kernels::Result<()> {
        let max = representable(max, iter.input_dtype(0));
        elementwise::clamp(iter, None, Some(max))
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, max: Scalar) -> Result<Tensor> {
        pass_inside(grad, self_, None, wrapped(Some(max))?.as_ref())
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, max: Scalar) -> Result<Tensor> {
        pass_inside(self_t, self_p, None, wrapped(Some(max))?.as_ref())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        limit_samples(s, "max")
    }
}

/// Limits from above element by element; equal elements share the gradient in halves.
#[op("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", inplace, out, overload_out, node = "ClampMaxBackward1",
     meta = broadcast, cpu = minimum, batch = pointwise, samples = binary)]
impl ClampMaxTensor {
    fn vjp_self(grad: &Tensor, self_: &Tensor, max: &Tensor) -> Result<Tensor> {
        halved(grad, self_, max)?.masked_fill(&self_.gt(max)?, Scalar::Int(0))
    }
    fn vjp_max(grad: &Tensor, self_: &Tensor, max: &Tensor) -> Result<Tensor> {
        halved(grad, self_, max)?.masked_fill(&self_.lt(max)?, Scalar::Int(0))
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, max_p: &Tensor, max_t: &Tensor) -> Result<Tensor> {
        let chosen = self_p.lt(max_p)?.where_self(self_t, max_t)?;
        mean_of_equal((self_p, self_t), (max_p, max_t), &chosen)
    }
}

/// A number limit as a tensor of low rank in promotion.
fn wrapped(limit: Option<Scalar>) -> Result<Option<Tensor>> {
    limit.map(Tensor::wrapped).transpose()
}

/// Refuses limits that leave no number of the result's dtype.
fn limited_spec(x: &Tensor, min: Option<Scalar>, max: Option<Scalar>) -> Result<TensorSpec> {
    let limits =
        [min, max].into_iter().flatten().map(Tensor::wrapped).collect::<Result<Vec<_>>>()?;
    let mut all = vec![x];
    all.extend(&limits);
    let spec = TensorSpec::broadcast(&all)?;
    let Some((least, most)) = whole_range(spec.dtype) else { return Ok(spec) };
    let of = spec.dtype.scalar_name();
    if let Some(v) = min.and_then(whole) {
        ensure!(
            v <= most,
            runtime,
            "Clamp min value {v} is outside the representable range of {of}"
        );
    }
    if let Some(v) = max.and_then(whole) {
        ensure!(
            v >= least,
            runtime,
            "Clamp max value {v} is outside the representable range of {of}"
        );
    }
    Ok(spec)
}

/// A limit that is an integer.
fn whole(limit: Scalar) -> Option<i128> {
    match limit {
        Scalar::Int(v) => Some(v.into()),
        Scalar::UInt(v) => Some(v.into()),
        _ => None,
    }
}

/// The smallest and the largest number of an integer dtype.
fn whole_range(dtype: DType) -> Option<(i128, i128)> {
    Some(match dtype {
        DType::U8 => (0, u8::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U64 => (0, u64::MAX.into()),
        DType::I64 => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

/// The limit, or the number of the dtype that is nearest to it: what lies beyond the dtype limits nothing.
fn representable(limit: Scalar, dtype: DType) -> Scalar {
    let (Some(v), Some((least, most))) = (whole(limit), whole_range(dtype)) else { return limit };
    let v = v.clamp(least, most);
    i64::try_from(v).map_or(Scalar::UInt(v as u64), Scalar::Int)
}

/// Half of `grad` where an element and its limit share it, else 0.
fn share(grad: &Tensor, shares: &Tensor) -> Result<Tensor> {
    shares.where_self(&grad.over(2)?, &Tensor::wrapped(0)?)
}

/// `grad` where `x` lies between the limits, ends excluded, else 0.
fn pass_inside(
    grad: &Tensor,
    x: &Tensor,
    min: Option<&Tensor>,
    max: Option<&Tensor>,
) -> Result<Tensor> {
    let inside = match (min, max) {
        (Some(min), Some(max)) => x.gt(min)?.logical_and(&x.lt(max)?)?,
        (Some(min), None) => x.gt(min)?,
        (None, Some(max)) => x.lt(max)?,
        (None, None) => return Ok(grad.clone()),
    };
    inside.where_self(grad, &Tensor::wrapped(0)?)
}

fn limit_samples(s: &Sampler, name: &'static str) -> Vec<Sample> {
    let sample = |shape: &[i64], v: f64| Sample::of(s.normal(shape)).with(name, Scalar::Float(v));
    vec![sample(&[2, 3], 0.1), sample(&[], -0.5), sample(&[0], 0.0)]
}
