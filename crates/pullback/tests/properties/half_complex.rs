//! `complex32`, which is stored and moved as it is and computed with as `complex64`: every op gives for it what it gives
//! for the same numbers in `complex64`, rounded, or refuses the dtype by its name.

use super::unresolved::{copied, gradients, is_about_memory};
use super::{all_equal, for_all, function_of, is_unset, replace, tensor_slots, text};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::Sample;
use pullback::{DType, Error, ErrorKind, Result, Tensor};

type Outcome = std::result::Result<(), String>;

/// The dtype of single precision in the place of one of half precision.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::C32 => DType::C64,
        DType::F16 => DType::F32,
        other => other,
    }
}

/// And the other way about.
fn narrow(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::C32,
        DType::F32 => DType::F16,
        other => other,
    }
}

/// The same arguments with `change` made to their dtypes.
fn converted(values: &[Value], change: fn(DType) -> DType) -> Result<Vec<Value>> {
    let slots = tensor_slots(values);
    let convert = |(_, _, t): &(usize, usize, Tensor)| {
        if change(t.dtype()) == t.dtype() { Ok(t.clone()) } else { t.to_dtype(change(t.dtype())) }
    };
    let tensors = slots.iter().map(convert).collect::<Result<Vec<_>>>()?;
    let mut values = replace(values, &slots, &tensors);
    for value in &mut values {
        if let Value::DType(dtype) = value {
            *dtype = change(*dtype);
        }
    }
    Ok(values)
}

/// The arguments in half precision, and these in single precision again.
fn both(def: &'static OpDef, sample: &Sample) -> Result<(Vec<Value>, Vec<Value>)> {
    let narrowed = converted(&sample.values(def)?, narrow)?;
    let widened = converted(&narrowed, wide)?;
    Ok((narrowed, widened))
}

/// Results of single precision as half precision has them, where that is what the others are of.
fn rounded(expected: &[Tensor], got: &[Tensor]) -> Result<Vec<Tensor>> {
    let round = |(e, g): (&Tensor, &Tensor)| {
        let is_wide = e.dtype() == wide(g.dtype()) && e.dtype() != g.dtype();
        if is_wide { e.to_dtype(g.dtype()) } else { Ok(e.clone()) }
    };
    expected.iter().zip(got).map(round).collect()
}

/// Whether an op says by an error that it does not take the dtype.
fn is_refusal(error: &Error) -> bool {
    let names_it = ["ComplexHalf", "Half", "complex", "Complex"];
    names_it.iter().any(|name| error.message().contains(name))
        && error.kind() == ErrorKind::NotImplemented
}

fn has_half_complex(values: &[Value]) -> bool {
    tensor_slots(values).iter().any(|(_, _, t)| t.dtype() == DType::C32)
}

/// Whether what it gives is a matter of chance or of bytes.
fn is_left_out(def: &OpDef) -> bool {
    def.is(Traits::RANDOM) || is_unset(def) || is_about_memory(def)
}

#[test]
fn results_of_half_complex_numbers_are_those_of_complex64_rounded() {
    for_all("complex32 is computed as complex64", DType::C64, |def, sample| {
        let (values, wide) = both(def, sample).map_err(text)?;
        if is_left_out(def) || !has_half_complex(&values) {
            return Ok(());
        }
        match (function_of(def, &values), function_of(def, &wide)) {
            (Ok(got), Ok(expected)) => {
                let expected = rounded(&expected, &got).map_err(text)?;
                all_equal(&got, &expected, 5e-3)
            }
            (Err(error), Ok(_)) if is_refusal(&error) => Ok(()),
            (Err(got), Err(expected)) if got.kind() == expected.kind() => Ok(()),
            (got, expected) => Err(format!("{got:?} against {expected:?}")),
        }
    });
}

/// Where backward needs an op that refuses the dtype, it says so too.
fn gradients_agree(def: &'static OpDef, sample: &Sample) -> Outcome {
    let (values, wide) = both(def, sample).map_err(text)?;
    if is_left_out(def) || def.is(Traits::INPLACE_ONLY) || !has_half_complex(&values) {
        return Ok(());
    }
    let wide = copied(&wide).map_err(text)?;
    let (Ok(_), Ok(expected)) = (function_of(def, &values), gradients(def, &wide, None)) else {
        return Ok(());
    };
    let got = match gradients(def, &copied(&values).map_err(text)?, None) {
        Ok(got) => got,
        Err(error) if is_refusal(&error) => return Ok(()),
        Err(error) => return Err(text(error)),
    };
    let (got, expected): (Vec<_>, Vec<_>) =
        (got.into_iter().flatten().collect(), expected.into_iter().flatten().collect());
    let expected = rounded(&expected, &got).map_err(text)?;
    all_equal(&got, &expected, 3e-2)
}

#[test]
fn gradients_of_half_complex_numbers_are_those_of_complex64_rounded() {
    for_all("gradients of complex32", DType::C64, |def, sample| {
        if !sample.differentiable || def.is(Traits::NOT_DIFFERENTIABLE) {
            return Ok(());
        }
        gradients_agree(def, sample)
    });
}
