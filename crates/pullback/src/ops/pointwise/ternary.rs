//! Ops that choose, limit or mix: `where`, `clamp`, `lerp`, `addcmul`, `addcdiv`, `masked_fill`.
//!
//! `where` and `masked_fill` walk over inputs of several dtypes (a mask is always bool), which the
//! pointwise form does not do; they prepare the walk themselves with [`walk_as_is`].

use super::arithmetic::by_both;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::promote::result_type;
use crate::tensor::shape::{broadcast_shapes, broadcast_strides};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::spelling::Spelled;
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&WHERE_SELF, &MASKED_FILL, &MASKED_FILL_TENSOR, &LERP_SCALAR, &LERP, &ADDCMUL, &ADDCDIV];

/// `self` where `condition` holds, else `other`. Shapes broadcast; the dtypes of `self` and `other` promote.
#[op("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", narrow_floats, out, apart, numbers, batch = pointwise)]
impl WhereSelf {
    fn meta(condition: &Tensor, self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        let kind = condition.dtype();
        ensure!(
            matches!(kind, DType::Bool | DType::U8),
            runtime,
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            kind.scalar_name()
        );
        let dtype = result_type(&[self_, other])?;
        TensorSpec::broadcast_in(&[condition, self_, other], dtype)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        condition: &Tensor,
        self_: &Tensor,
        other: &Tensor,
    ) -> Result<()> {
        if condition.dtype() == DType::U8 {
            crate::warn(
                "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. Use a boolean condition instead."
                    .into(),
            );
        }
        let inputs = [
            condition.in_dtype(cpu, DType::Bool)?,
            self_.in_dtype(cpu, result.dtype())?,
            other.in_dtype(cpu, result.dtype())?,
        ];
        walk_as_is(cpu, result, &inputs, elementwise::where_)
    }
    fn vjp_self(grad: &Tensor, condition: &Tensor) -> Result<Tensor> {
        condition.where_self(grad, &Tensor::wrapped(0)?)
    }
    fn vjp_other(grad: &Tensor, condition: &Tensor) -> Result<Tensor> {
        condition.where_self(&Tensor::wrapped(0)?, grad)
    }
    fn jvp(condition_p: &Tensor, self_t: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        condition_p.where_self(self_t, other_t)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let shapes: [[&[i64]; 3]; 5] = [
            [&[2, 3], &[2, 3], &[2, 3]],
            [&[3], &[2, 1], &[]],
            [&[], &[], &[]],
            [&[2, 1], &[3], &[2, 3]],
            [&[0], &[1], &[]],
        ];
        let make = |[c, a, b]: &[&[i64]; 3]| {
            Sample::new([s.bools(c).into(), s.normal(a).into(), s.normal(b).into()])
        };
        shapes.iter().map(make).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample =
            Sample::new([s.normal(&[2]).into(), s.normal(&[2]).into(), s.normal(&[2]).into()]);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "where expected condition to be a boolean tensor",
        )]
    }
}

/// `value` where `mask` (bool, broadcast) holds, else `self`. The result has `self`'s dtype.
#[op("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", narrow_floats, inplace = method, out, apart, batch = pointwise,
     jvp = elementwise)]
impl MaskedFill {
    fn meta(self_: &Tensor, mask: &Tensor, value: Scalar) -> Result<TensorSpec> {
        let spec = masked_spec(self_, mask)?;
        value.check_fits(self_.dtype())?;
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, mask: &Tensor, value: Scalar) -> Result<()> {
        fill_masked(cpu, result, self_, mask, value)
    }
    fn vjp_self(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
        grad.masked_fill(mask, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], m: &[i64], v: f64| {
            Sample::new([s.normal(a).into(), s.bools(m).into(), Scalar::Float(v).into()])
        };
        vec![
            sample(&[2, 3], &[2, 3], 1.5),
            sample(&[2, 3], &[3], 0.0),
            sample(&[], &[], 2.0),
            sample(&[0], &[1], 1.0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let value = Value::Scalar(Scalar::Float(0.0));
        let integers = Sample::new([s.normal(&[2]).into(), s.integers(&[2], 0, 2).into(), value]);
        let large = Sample::new([
            s.integers(&[2], 0, 2).into(),
            s.bools(&[2]).into(),
            Scalar::Float(1e30).into(),
        ]);
        vec![
            InvalidSample::new(
                integers,
                ErrorKind::Runtime,
                "only supports boolean masks, but got mask with dtype long int",
            ),
            InvalidSample::new(
                large,
                ErrorKind::Runtime,
                "value cannot be converted to type int64_t without overflow",
            ),
        ]
    }
}

/// `value`, a tensor without dimensions, where `mask` (bool, broadcast) holds, else `self`.
#[op("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", narrow_floats, inplace = method, out, apart, node = "MaskedFillBackward1",
     batch = masked_fill(self, mask, value))]
impl MaskedFillTensor {
    fn meta(self_: &Tensor, mask: &Tensor, value: &Tensor) -> Result<TensorSpec> {
        ensure!(
            value.ndim() == 0,
            runtime,
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.ndim()
        );
        masked_spec(self_, mask)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
        let value = value.item()?;
        value.check_fits(self_.dtype())?;
        fill_masked(cpu, result, self_, mask, value)
    }
    fn vjp_self(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
        grad.masked_fill(mask, Scalar::Int(0))
    }
    fn vjp_value(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
        mask.where_self(grad, &Tensor::wrapped(0)?)?.sum()
    }
    fn jvp(self_t: &Tensor, mask_p: &Tensor, value_t: &Tensor) -> Result<Tensor> {
        self_t.masked_fill_tensor(mask_p, value_t)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], m: &[i64]| {
            Sample::new([s.normal(a).into(), s.bools(m).into(), s.normal(&[]).into()])
        };
        vec![sample(&[2, 3], &[2, 3]), sample(&[2, 1], &[3]), sample(&[], &[]), sample(&[0], &[1])]
    }
}

/// `start + weight * (end - start)` for one weight; the formula that is exact at the nearer end is used.
#[op("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", inplace = method, out, batch = pointwise)]
impl LerpScalar {
    fn meta(self_: &Tensor, end: &Tensor) -> Result<TensorSpec> {
        same_dtype("end", self_, end)?;
        TensorSpec::broadcast(&[self_, end])
    }
    fn cpu(iter: &mut Iter, weight: Scalar) -> pullback_kernels::Result<()> {
        elementwise::lerp_scalar(iter, weight)
    }
    fn vjp_self(grad: &Tensor, weight: Scalar) -> Result<Tensor> {
        grad.sub(&grad.times(weight.conj())?)
    }
    fn vjp_end(grad: &Tensor, weight: Scalar) -> Result<Tensor> {
        grad.times(weight.conj())
    }
    fn jvp(self_t: &Tensor, end_t: &Tensor, weight: Scalar) -> Result<Tensor> {
        self_t.lerp_scalar(end_t, weight)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], b: &[i64], w: f64| {
            Sample::new([s.normal(a).into(), s.normal(b).into(), Scalar::Float(w).into()])
        };
        vec![
            sample(&[2, 3], &[3], 0.3),
            sample(&[], &[], 0.8),
            sample(&[2, 1], &[3], -1.5),
            sample(&[0], &[0], 0.5),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let weight = Value::Scalar(Scalar::Float(0.5));
        let sample = Sample::new([s.normal(&[2]).into(), s.integers(&[2], 0, 3).into(), weight]);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "expected dtype double for `end` but got dtype long",
        )]
    }
}

/// `start + weight * (end - start)`; all three broadcast and have one dtype.
#[op("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", inplace = method, out, node = "LerpBackward1",
     batch = pointwise, cpu = lerp, samples = ternary)]
impl Lerp {
    fn meta(self_: &Tensor, end: &Tensor, weight: &Tensor) -> Result<TensorSpec> {
        same_dtype("end", self_, end)?;
        same_dtype("weight", self_, weight)?;
        TensorSpec::broadcast(&[self_, end, weight])
    }
    fn vjp_self(grad: &Tensor, weight: &Tensor) -> Result<Tensor> {
        grad.mul(&weight.conj()?.minus_from(1)?)
    }
    fn vjp_end(grad: &Tensor, weight: &Tensor) -> Result<Tensor> {
        grad.mul(&weight.conj()?)
    }
    fn vjp_weight(grad: &Tensor, self_: &Tensor, end: &Tensor) -> Result<Tensor> {
        grad.mul(&end.sub(self_)?.conj()?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        end_p: &Tensor,
        end_t: &Tensor,
        weight_p: &Tensor,
        weight_t: &Tensor,
    ) -> Result<Tensor> {
        self_t.lerp(end_t, weight_p)?.add(&weight_t.mul(&end_p.sub(self_p)?)?)
    }
}

/// `self + value * tensor1 * tensor2`. Shapes broadcast; dtypes promote.
#[op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", inplace = method, out,
     meta = broadcast, batch = pointwise, samples = ternary)]
impl Addcmul {
    fn cpu(iter: &mut Iter, value: Scalar) -> pullback_kernels::Result<()> {
        elementwise::addcmul(iter, value)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_tensor1(grad: &Tensor, tensor2: &Tensor, value: Scalar) -> Result<Tensor> {
        grad.mul(&tensor2.times(value)?.conj()?)
    }
    fn vjp_tensor2(grad: &Tensor, tensor1: &Tensor, value: Scalar) -> Result<Tensor> {
        grad.mul(&tensor1.times(value)?.conj()?)
    }
    fn jvp(
        self_t: &Tensor,
        tensor1_p: &Tensor,
        tensor1_t: Option<&Tensor>,
        tensor2_p: &Tensor,
        tensor2_t: Option<&Tensor>,
        value: Scalar,
    ) -> Result<Tensor> {
        let by_first = tensor1_t.map(|t| t.mul(tensor2_p));
        match by_both(by_first, tensor2_t.map(|t| tensor1_p.mul(t)))? {
            Some(product) => self_t.add(&product.times(value)?),
            None => Ok(self_t.clone()),
        }
    }
}

/// `self + value * tensor1 / tensor2`. Shapes broadcast; dtypes promote; integers are refused.
#[op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", inplace = method, out,
     batch = pointwise, samples = ternary)]
impl Addcdiv {
    fn meta(self_: &Tensor, tensor1: &Tensor, tensor2: &Tensor) -> Result<TensorSpec> {
        ensure!(
            !(tensor1.dtype().is_integral(true) && tensor2.dtype().is_integral(true)),
            runtime,
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
        );
        TensorSpec::broadcast(&[self_, tensor1, tensor2])
    }
    fn cpu(iter: &mut Iter, value: Scalar) -> pullback_kernels::Result<()> {
        elementwise::addcdiv(iter, value)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_tensor1(grad: &Tensor, tensor2: &Tensor, value: Scalar) -> Result<Tensor> {
        grad.times(value.conj())?.div(&tensor2.conj()?)
    }
    fn vjp_tensor2(
        grad: &Tensor,
        tensor1: &Tensor,
        tensor2: &Tensor,
        value: Scalar,
    ) -> Result<Tensor> {
        let slope = tensor1.times(value)?.div(&tensor2.mul(tensor2)?)?;
        grad.neg()?.mul(&slope.conj()?)
    }
    fn jvp(
        self_t: &Tensor,
        tensor1_p: &Tensor,
        tensor1_t: Option<&Tensor>,
        tensor2_p: &Tensor,
        tensor2_t: Option<&Tensor>,
        value: Scalar,
    ) -> Result<Tensor> {
        let by_second = |t: &Tensor| tensor1_p.div(tensor2_p)?.mul(t)?.div(tensor2_p)?.neg();
        match by_both(tensor1_t.map(|t| t.div(tensor2_p)), tensor2_t.map(by_second))? {
            Some(change) => self_t.add(&change.times(value)?),
            None => Ok(self_t.clone()),
        }
    }
}

/// Runs `kernel` over `out` and `inputs`, each repeated to the output's shape and read in its own dtype.
pub(crate) fn walk_as_is(
    cpu: Cpu,
    out: &Tensor,
    inputs: &[Tensor],
    kernel: impl FnOnce(&mut Iter) -> pullback_kernels::Result<()>,
) -> Result<()> {
    let spread = |t: &Tensor| {
        let strides = broadcast_strides(t.shape(), t.strides(), out.shape())?;
        t.alias_with(out.shape(), &strides, t.storage_offset())
    };
    let inputs = inputs.iter().map(spread).collect::<Result<Vec<_>>>()?;
    let refs: Vec<_> = inputs.iter().map(|t| t.view_ref(cpu)).collect();
    Ok(kernel(&mut Iter::new(&[out.view_mut(cpu)], &refs)?)?)
}

/// The spec of `x` with elements replaced where `mask` holds.
fn masked_spec(x: &Tensor, mask: &Tensor) -> Result<TensorSpec> {
    ensure!(
        mask.dtype() == DType::Bool,
        runtime,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        c_name(mask.dtype())
    );
    let mut spec = TensorSpec::like(x);
    if x.shape() != mask.shape() {
        spec.shape = broadcast_shapes(&[x.shape(), mask.shape()])?;
    }
    Ok(spec)
}

fn fill_masked(cpu: Cpu, result: &Tensor, x: &Tensor, mask: &Tensor, value: Scalar) -> Result<()> {
    let fill = |iter: &mut Iter| elementwise::masked_fill(iter, value);
    walk_as_is(cpu, result, &[x.clone(), mask.clone()], fill)
}

/// The name of the C++ type, which PyTorch prints here.
pub(in crate::ops) fn c_name(dtype: DType) -> Spelled<&'static str, DType> {
    let pytorch = match dtype {
        DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int",
        DType::I64 => "long int",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::C32 => "c10::complex<c10::Half>",
        DType::BC32 => "c10::complex<c10::BFloat16>",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
        other => other.name(),
    };
    Spelled::new(pytorch, dtype)
}

fn same_dtype(name: &str, x: &Tensor, other: &Tensor) -> Result<()> {
    ensure!(
        x.dtype() == other.dtype(),
        runtime,
        "expected dtype {} for `{name}` but got dtype {}",
        plain_name(x.dtype()),
        plain_name(other.dtype())
    );
    Ok(())
}

/// The dtype as PyTorch's older messages call it: `float`, `double`, `long`.
fn plain_name(dtype: DType) -> Spelled<String, DType> {
    let name = dtype.scalar_name().pytorch();
    Spelled::new(name[..1].to_lowercase() + &name[1..], dtype)
}

impl Tensor {
    /// The elements in `dtype`; the tensor itself if it has it already. No history.
    pub(crate) fn in_dtype(&self, cpu: Cpu, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.converted(cpu, dtype) }
    }
}
