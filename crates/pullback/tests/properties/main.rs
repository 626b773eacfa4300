//! What must hold for every op of the registry and every one of its samples.
//!
//! Each test is one property; it runs over the whole registry and prints every failure with the op, the
//! sample and the worst element. `PULLBACK_OP=name,other` restricts a run to these ops.

use pullback::autograd::forward::{dual_level, make_dual};
use pullback::autograd::{self, BackwardOptions, call, call_inplace, call_out};
use pullback::dispatch::{CastPolicy, Kernel, OpDef, Traits, Value};
use pullback::gradcheck::{
    Mismatch, Sample, Sampler, Tolerance, analytic, gradcheck, gradgradcheck, op_jvp,
};
use pullback::{DType, Device, Result, Tensor, autocast, manual_seed, ops};
use std::fmt::Write as _;

mod batch;
mod forward;
mod half_complex;
mod inplace;
mod meta;
mod number;
#[path = "../registry/mod.rs"]
mod registry;
mod sparse;
mod unresolved;

use registry::{
    agree, all_equal, args, copy_of, differs, for_all, function_of, functional, is_unset, replace,
    spread, tensor_slots, tensors, text,
};

type Check = fn(
    pullback::gradcheck::CheckedFunction<'_>,
    &[Tensor],
    Tolerance,
) -> Result<std::result::Result<(), Mismatch>>;

/// An op in one of its forms.
type Form = fn(&'static OpDef, &[Value]) -> Result<Vec<Tensor>>;

fn derivative(
    def: &'static OpDef,
    sample: &Sample,
    check: Check,
    tolerance: Tolerance,
) -> std::result::Result<(), String> {
    derivative_of(function_of, def, sample, check, tolerance)
}

fn derivative_of(
    form: Form,
    def: &'static OpDef,
    sample: &Sample,
    check: Check,
    tolerance: Tolerance,
) -> std::result::Result<(), String> {
    if !sample.differentiable || def.is(Traits::NOT_DIFFERENTIABLE) {
        return Ok(());
    }
    let values = sample.values(def).map_err(text)?;
    let slots = tensor_slots(&values);
    let mut inputs = Vec::new();
    for (index, _, t) in &slots {
        let fresh = t.clone_tensor(None).map_err(text)?;
        let is_input =
            matches!(t.dtype(), DType::F64 | DType::C128) && !def.args[*index].not_differentiable;
        if is_input {
            fresh.requires_grad_(true).map_err(text)?;
        }
        inputs.push(fresh);
    }
    let f = |inputs: &[Tensor]| form(def, &replace(&values, &slots, inputs));
    check(&f, &inputs, tolerance).map_err(text)?.map_err(|mismatch| mismatch.to_string())
}

#[test]
fn backward_agrees_with_differences() {
    for_all("backward agrees with differences", DType::F64, |def, sample| {
        derivative(def, sample, gradcheck, Tolerance::default())
    });
}

#[test]
fn second_backward_agrees_with_differences() {
    for_all("the backward's backward agrees with differences", DType::F64, |def, sample| {
        derivative(def, sample, gradgradcheck, Tolerance::default())
    });
}

/// The in-place form on a copy of the first argument.
fn inplace_on_copy(def: &'static OpDef, values: &[Value]) -> Result<Vec<Tensor>> {
    let mut values = values.to_vec();
    if let Value::Tensor(first) = &mut values[0] {
        *first = first.clone_tensor(None)?;
    }
    manual_seed(1);
    Ok(vec![call_inplace(def, &args(&values))?])
}

#[test]
fn second_backward_of_inplace_forms_agrees_with_differences() {
    for_all("the in-place form's second derivatives", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let Some(Value::Tensor(first)) = values.first() else { return Ok(()) };
        if !def.is(Traits::INPLACE) {
            return Ok(());
        }
        let result = &functional(def, &values).map_err(text)?[0];
        if result.shape() != first.shape() || result.dtype() != first.dtype() {
            return Ok(());
        }
        derivative_of(inplace_on_copy, def, sample, gradgradcheck, Tolerance::default())
    });
}

#[test]
fn complex_backward_agrees_with_differences() {
    for_all("backward agrees with differences for complex numbers", DType::C128, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        match function_of(def, &values) {
            Ok(_) => derivative(def, sample, gradcheck, Tolerance::default()),
            // Whether an op takes complex numbers is its own business; what it takes must be right.
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn forward_rule_agrees_with_differences() {
    for_all("the forward rule agrees with differences", DType::F64, |def, sample| {
        if !sample.differentiable || def.is(Traits::INPLACE_ONLY) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        if values.iter().any(|v| matches!(v, Value::Tensors(_) | Value::OptTensors(_))) {
            return Ok(());
        }
        let s = Sampler::new(DType::F64);
        let tangent = |v: &Value| match v {
            Value::Tensor(t) if t.dtype() == DType::F64 => Some(s.normal(t.shape())),
            _ => None,
        };
        let tangents: Vec<Option<Tensor>> = values.iter().map(tangent).collect();
        if tangents.iter().all(Option::is_none) {
            return Ok(());
        }
        manual_seed(1);
        let Some(got) = op_jvp(def, &values, &tangents).map_err(text)? else { return Ok(()) };
        let moved = |step: f64| {
            let at = |(v, t): (&Value, &Option<Tensor>)| match (v, t) {
                (Value::Tensor(v), Some(t)) => {
                    let data: Vec<f64> = v
                        .to_vec::<f64>()?
                        .iter()
                        .zip(t.to_vec::<f64>()?)
                        .map(|(a, b)| a + step * b)
                        .collect();
                    Tensor::from_slice(&data, v.shape()).map(Value::Tensor)
                }
                _ => Ok(v.clone()),
            };
            let values = values.iter().zip(&tangents).map(at).collect::<Result<Vec<_>>>()?;
            functional(def, &values)
        };
        let (above, below) = (moved(1e-6).map_err(text)?, moved(-1e-6).map_err(text)?);
        for (index, (a, b)) in
            above.iter().zip(&below).enumerate().filter(|(_, (a, _))| a.dtype() == DType::F64)
        {
            let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
            let Some(Some(got)) = got.get(index) else {
                return Err(format!("no tangent for output {index}"));
            };
            let got = got.to_vec::<f64>().unwrap();
            for (at, (a, b)) in a.iter().zip(&b).enumerate() {
                let expected = (a - b) / 2e-6;
                let close = (got[at] - expected).abs() <= 1e-5 + 1e-3 * expected.abs();
                if !close {
                    return Err(format!(
                        "output {index}, element {at}: rule gives {}, differences give {expected}",
                        got[at]
                    ));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn inplace_form_equals_functional_form() {
    for_all("the in-place form equals the functional one", DType::F64, |def, sample| {
        if !def.is(Traits::INPLACE) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let expected = functional(def, &values).map_err(text)?;
        let Some(Value::Tensor(first)) = values.first() else { return Err("no receiver".into()) };
        if expected[0].shape() != first.shape() || expected[0].dtype() != first.dtype() {
            return Ok(());
        }
        let target = first.clone_tensor(None).map_err(text)?;
        let version = target.version();
        let mut values = values.clone();
        values[0] = Value::Tensor(target.clone());
        manual_seed(1);
        let returned = call_inplace(def, &args(&values)).map_err(text)?;
        if !returned.is_same(&target) || target.version() != version + 1 {
            return Err("it must return its target and count one write".into());
        }
        all_equal(&[target], &expected[..1], 0.0)
    });
}

#[test]
fn out_form_equals_functional_form() {
    for_all("the out= form equals the functional one", DType::F64, |def, sample| {
        if !def.is(Traits::OUT) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let expected = functional(def, &values).map_err(text)?;
        let fresh = |t: &Tensor| Tensor::empty_strided(&[0], &[1], t.dtype(), t.device());
        let outs = expected.iter().map(fresh).collect::<Result<Vec<_>>>().map_err(text)?;
        manual_seed(1);
        call_out(def, &args(&values), &outs.iter().collect::<Vec<_>>()).map_err(text)?;
        agree(def, &outs, &expected, 0.0)
    });
}

/// Whether the op is a copy of a view that is not there for every stride.
fn reads_memory(def: &OpDef) -> bool {
    matches!((def.name, def.overload), ("view_as_complex_copy", _) | ("view_copy", "dtype"))
}

#[test]
fn strides_do_not_matter() {
    for_all("strides do not matter", DType::F64, |def, sample| {
        if def.name.starts_with("as_strided") {
            return Ok(()); // Its arguments are strides.
        }
        let values = sample.values(def).map_err(text)?;
        let expected = function_of(def, &values).map_err(text)?;
        let slots = tensor_slots(&values);
        let spread =
            slots.iter().map(|(_, _, t)| spread(t)).collect::<Result<Vec<_>>>().map_err(text)?;
        let got = match function_of(def, &replace(&values, &slots, &spread)) {
            // Only what reads memory as it lies may refuse some strides.
            Err(_) if def.is(Traits::VIEW) || reads_memory(def) => return Ok(()),
            other => other.map_err(text)?,
        };
        agree(def, &got, &expected, 1e-12)
    });
}

#[test]
fn nothing_is_recorded_unless_an_input_requires_grad() {
    for_all("no graph without need", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let outputs = function_of(def, &values).map_err(text)?;
        if outputs.iter().any(Tensor::requires_grad) {
            return Err("an output requires grad".into());
        }
        Ok(())
    });
}

#[test]
fn writing_to_a_saved_input_is_detected() {
    for_all("a write to a saved tensor is detected", DType::F64, |def, sample| {
        if !sample.differentiable
            || def.vjp.is_empty()
            || def.is(Traits::INPLACE_ONLY)
            || def.is(Traits::VIEW)
        {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let slots = tensor_slots(&values);
        let copies: Vec<Tensor> =
            slots.iter().map(|(_, _, t)| t.clone_tensor(None).unwrap()).collect();
        for ((index, ..), t) in slots.iter().zip(&copies) {
            if t.dtype() == DType::F64 && def.args[*index].has_vjp {
                t.requires_grad_(true).map_err(text)?;
            }
        }
        let outputs = functional(def, &replace(&values, &slots, &copies)).map_err(text)?;
        let Some(root) = outputs.iter().find(|t| t.requires_grad()) else { return Ok(()) };
        let Some(node) = root.grad_fn().map_err(text)? else { return Ok(()) };
        for (index, save) in def.saves.iter().enumerate() {
            let Some(value) = node.saved(index) else { continue };
            let Ok(Value::Tensor(saved)) = value else { continue };
            let _mode = pullback::no_grad();
            saved.add_(&Tensor::wrapped(0.0).unwrap()).or_else(|_| saved.zero_()).map_err(text)?;
            if node.saved(index).is_some_and(|v| v.is_ok()) {
                return Err(format!("a write to what {save:?} keeps goes unnoticed"));
            }
        }
        Ok(())
    });
}

#[test]
fn invalid_samples_are_refused() {
    let mut failures = String::new();
    for def in ops::registry() {
        let Some(samples) = def.invalid_samples else { continue };
        for invalid in samples(&Sampler::new(DType::F64)) {
            let result =
                invalid.sample.values(def).and_then(|values| call(def, &args(&values)).map(drop));
            let bad = match result {
                Ok(()) => "it was accepted".to_string(),
                Err(e) if e.kind() == invalid.kind && e.message().contains(invalid.phrase) => {
                    continue;
                }
                Err(e) => {
                    format!("got {e:?}, expected {:?} with '{}'", invalid.kind, invalid.phrase)
                }
            };
            let _ = writeln!(failures, "- {} with {:?}: {bad}", def.full_name(), invalid.sample);
        }
    }
    assert!(failures.is_empty(), "invalid calls:\n{failures}");
}

/// Ops that have no samples yet; each needs a form of sample that is still to be made (uninitialised results,
/// in-place changes of geometry, lists that are written to). Nothing may join this list.
const WITHOUT_SAMPLES: &[&str] = &[
    "empty.memory_format",
    "empty_strided",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "t_",
    "transpose_",
    "squeeze_",
    "squeeze_.dim",
    "squeeze_.dims",
    "unsqueeze_",
    "as_strided_",
    "scatter.reduce",
    "scatter.value_reduce",
    "_fused_sgd_",
    "_fused_sgd_.tensor_lr",
    "_fused_adam_",
    "_fused_adam_.tensor_lr",
    "_fused_adamw_",
    "_fused_adamw_.tensor_lr",
];

#[test]
fn every_op_has_samples() {
    // (What only sparse tensors have is asked of them, in `tests/sparse.rs`.)
    let is_for_all = |d: &&'static OpDef| d.samples.is_none() && !sparse::is_for_sparse(d);
    let without = ops::registry().filter(is_for_all).map(OpDef::full_name);
    let missing: Vec<String> = without.filter(|n| !WITHOUT_SAMPLES.contains(&n.as_str())).collect();
    assert!(missing.is_empty(), "ops without samples: {missing:?}");
}

#[test]
fn full_names_are_unique() {
    let mut seen = std::collections::HashSet::new();
    for def in ops::registry() {
        assert!(seen.insert(def.full_name()), "{} is declared twice", def.full_name());
    }
}

/// What a policy makes of the tensors, by its definition and not by the code that is tested.
fn cast_by_policy(policy: CastPolicy, values: &[Value]) -> Vec<Value> {
    let slots = tensor_slots(values);
    let is_eligible = |t: &Tensor| t.dtype().is_floating_point() && t.dtype() != DType::F64;
    let has_f32 = slots.iter().any(|(_, _, t)| t.dtype() == DType::F32);
    let dtype = match policy {
        CastPolicy::Fp32 => DType::F32,
        CastPolicy::Promote if has_f32 => DType::F32,
        _ => DType::BF16,
    };
    let cast = |t: &Tensor| if is_eligible(t) { t.to_dtype(dtype).unwrap() } else { t.clone() };
    let new: Vec<Tensor> = slots.iter().map(|(_, _, t)| cast(t)).collect();
    replace(values, &slots, &new)
}

#[test]
fn autocast_equals_the_op_on_cast_inputs() {
    let with_policy = ops::registry().filter(|def| def.autocast != CastPolicy::None).count();
    assert!(with_policy >= 50, "only {with_policy} ops have a policy");
    for dtype in [DType::F32, DType::BF16, DType::F64] {
        for_all("autocast", dtype, |def, sample| {
            let is_composite = matches!(def.kernels.cpu, Kernel::Composite(_));
            if (def.autocast == CastPolicy::None && is_composite) || is_unset(def) {
                return Ok(());
            }
            let values = sample.values(def).map_err(text)?;
            let cast = match def.autocast {
                CastPolicy::None => values.clone(),
                policy => cast_by_policy(policy, &values),
            };
            // (Not every op has a kernel for every dtype: then it has none under autocast, either.)
            let expected = function_of(def, &cast);
            let got = {
                let _region = autocast(Device::Cpu, DType::BF16).map_err(text)?;
                function_of(def, &values)
            };
            match (got, expected) {
                (Ok(got), Ok(expected)) => all_equal(&got, &expected, 0.0),
                (Err(got), Err(expected)) if got.kind() == expected.kind() => Ok(()),
                (got, expected) => Err(format!("{got:?} against {expected:?}")),
            }
        });
    }
}
