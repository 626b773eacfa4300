//! Evaluates programs: an op by the dispatcher, each step by the transform of its name.

use crate::program::{Given, Program, Step};
use pullback::autograd::call;
use pullback::dispatch::{OpDef, Value};
use pullback::func::{Batched, jvps, vjps, vmaps};
use pullback::{DType, Device, Error, Result, Scalar, Tensor};
use pullback_schema::{Argument, Base};

/// The results of `program` for `inputs`.
pub(crate) fn run(
    op: &'static OpDef,
    program: &Program,
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    apply(op, &program.arguments, &program.steps, inputs)
}

fn apply(
    op: &'static OpDef,
    arguments: &[Given],
    steps: &[Step],
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let Some((last, before)) = steps.split_last() else {
        return base(op, arguments, inputs);
    };
    let function = |inputs: &[&Tensor]| apply(op, arguments, before, inputs);
    match last {
        Step::Vjp(marks) => {
            let (primals, vectors) = split(op, inputs, marks.len())?;
            let (chosen, rest) = chosen(primals, marks);
            let at = |inner: &[&Tensor]| differentiable(function(&merged(inner, &rest, marks))?);
            let (_, pull) = vjps(at, &chosen)?;
            pull(vectors)
        }
        Step::Jvp(marks) => {
            let (primals, tangents) = split(op, inputs, marks.len())?;
            let mut left = tangents.iter();
            let of = |mark: &bool| if *mark { left.next().copied() } else { None };
            let tangents: Vec<Option<&Tensor>> = marks.iter().map(of).collect();
            let at = |inner: &[&Tensor]| differentiable(function(inner)?);
            Ok(jvps(at, primals, &tangents)?.1)
        }
        Step::Vmap(dims) => {
            let (tensors, rest) = split(op, inputs, dims.len())?;
            if !rest.is_empty() {
                return Err(misfit(op, &dims.len().to_string(), inputs.len()));
            }
            let batched: Vec<Batched<'_>> =
                tensors.iter().zip(dims).map(|(&tensor, &dim)| Batched { tensor, dim }).collect();
            vmaps(function, &batched)
        }
    }
}

/// The error of a program, or of one of its steps, that takes `wanted` tensors.
fn misfit(op: &OpDef, wanted: &str, given: usize) -> Error {
    let name = &op.name;
    Error::value(format!("{name}(): a program takes {wanted} tensors, but it was given {given}"))
}

/// The first `at` inputs, and the others.
fn split<'a, 'b>(
    op: &OpDef,
    inputs: &'a [&'b Tensor],
    at: usize,
) -> Result<(&'a [&'b Tensor], &'a [&'b Tensor])> {
    let parts = inputs.split_at_checked(at);
    parts.ok_or_else(|| misfit(op, &format!("{at} or more"), inputs.len()))
}

/// The inputs that are marked, and the others.
fn chosen<'a>(inputs: &[&'a Tensor], marks: &[bool]) -> (Vec<&'a Tensor>, Vec<&'a Tensor>) {
    let part = |is: bool| {
        inputs.iter().zip(marks).filter(|(_, mark)| **mark == is).map(|(one, _)| *one).collect()
    };
    (part(true), part(false))
}

/// The inverse of [`chosen`].
fn merged<'a>(chosen: &[&'a Tensor], rest: &[&'a Tensor], marks: &[bool]) -> Vec<&'a Tensor> {
    let (mut chosen, mut rest) = (chosen.iter(), rest.iter());
    let next = |mark: &bool| if *mark { chosen.next() } else { rest.next() };
    marks.iter().filter_map(next).copied().collect()
}

fn differentiable(outputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
    Ok(outputs.into_iter().filter(|output| output.dtype().is_differentiable()).collect())
}

fn base(op: &'static OpDef, arguments: &[Given], inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let declared = &op.schema().args;
    if declared.len() != arguments.len() {
        return Err(Error::value(format!(
            "{}(): takes {} arguments, but a program gives it {}",
            op.name,
            declared.len(),
            arguments.len()
        )));
    }
    let wanted: usize = arguments.iter().map(tensor_count).sum();
    if wanted != inputs.len() {
        return Err(misfit(op, &wanted.to_string(), inputs.len()));
    }
    let mut left = inputs.iter().copied();
    let convert = |(argument, given): (&Argument, &Given)| value(op, argument, given, &mut left);
    let values = declared.iter().zip(arguments).map(convert).collect::<Result<Vec<_>>>()?;
    let args: Vec<_> = values.iter().map(Value::as_arg).collect();
    Ok(call(op, &args)?.tensors().into_vec())
}

/// How many inputs an argument stands for.
fn tensor_count(given: &Given) -> usize {
    match given {
        Given::Tensor => 1,
        Given::List(items) => items.iter().map(tensor_count).sum(),
        _ => 0,
    }
}

/// An argument as the op takes it.
fn value<'a>(
    op: &OpDef,
    argument: &Argument,
    given: &Given,
    inputs: &mut impl Iterator<Item = &'a Tensor>,
) -> Result<Value> {
    let wrong = || {
        let (name, ty) = (&argument.name, argument.ty);
        Error::type_error(format!("{}(): argument '{name}' must be {ty}, not {given:?}", op.name))
    };
    if *given == Given::None && argument.ty.optional {
        return Ok(Value::None);
    }
    // (There are as many inputs as arguments stand for.)
    let mut tensor = || inputs.next().cloned().ok_or_else(wrong);
    if argument.ty.list.is_none() {
        return Ok(match (argument.ty.base, given) {
            (Base::Tensor, Given::Tensor) => Value::Tensor(tensor()?),
            (Base::Bool, Given::Bool(value)) => Value::Bool(*value),
            (Base::Int | Base::SymInt, Given::Int(value)) => Value::Int(*value),
            (Base::Float, _) => Value::Float(real(given).ok_or_else(wrong)?),
            (Base::Scalar, _) => Value::Scalar(scalar(given).ok_or_else(wrong)?),
            (Base::Str, Given::Text(text)) => Value::Str(text.as_str().into()),
            (Base::ScalarType, Given::Text(text)) => {
                let named = DType::ALL.into_iter().find(|dtype| dtype.name() == text);
                Value::DType(named.ok_or_else(wrong)?)
            }
            (Base::Device, Given::Text(text)) => Value::Device(Device::parse(text)?),
            _ => return Err(wrong()),
        });
    }
    let Given::List(items) = given else { return Err(wrong()) };
    let element_optional = argument.ty.list.is_some_and(|list| list.element_optional);
    Ok(match argument.ty.base {
        Base::Tensor => {
            let one = |item: &Given| match item {
                Given::Tensor => tensor().map(Some),
                Given::None if element_optional => Ok(None),
                _ => Err(wrong()),
            };
            let found = items.iter().map(one).collect::<Result<Vec<_>>>()?;
            if element_optional {
                Value::OptTensors(found)
            } else {
                Value::Tensors(found.into_iter().flatten().collect())
            }
        }
        Base::Int | Base::SymInt => {
            let whole = |item: &Given| match item {
                Given::Int(value) => Some(*value),
                _ => None,
            };
            Value::Ints(items.iter().map(whole).collect::<Option<_>>().ok_or_else(wrong)?)
        }
        Base::Float => {
            Value::Floats(items.iter().map(real).collect::<Option<_>>().ok_or_else(wrong)?)
        }
        Base::Scalar => {
            Value::Scalars(items.iter().map(scalar).collect::<Option<_>>().ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    })
}

fn real(given: &Given) -> Option<f64> {
    match given {
        Given::Float(value) => Some(*value),
        Given::Int(value) => Some(*value as f64),
        _ => None,
    }
}

fn scalar(given: &Given) -> Option<Scalar> {
    match given {
        Given::Bool(value) => Some((*value).into()),
        Given::Int(value) => Some((*value).into()),
        Given::Float(value) => Some((*value).into()),
        Given::Complex(re, im) => Some(Scalar::Complex(*re, *im)),
        _ => None,
    }
}
