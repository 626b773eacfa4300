//! In-place forms: what is recorded into which target, and how many writes are counted.

use super::registry::{
    all_equal, args, copy_of, differs, for_all, is_unset, replace, tensor_slots, tensors, text,
};
use pullback::autograd::{call, call_inplace};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::Sample;
use pullback::{DType, Result, Tensor, manual_seed};
use std::cell::Cell;

type Check = std::result::Result<(), String>;

fn has_inplace_form(def: &OpDef) -> bool {
    (def.is(Traits::INPLACE) || def.is(Traits::INPLACE_ONLY)) && !def.is(Traits::INTERNAL)
}

/// The arguments of an in-place call on a copy of the first one in `dtype`; `None` if the first one is no tensor. Whatever
/// else can have a gradient requires one.
fn arguments(def: &OpDef, sample: &Sample, dtype: DType) -> Result<Option<(Vec<Value>, bool)>> {
    let values = sample.values(def)?;
    let Some(Value::Tensor(first)) = values.first() else { return Ok(None) };
    if first.is_sparse() {
        return Ok(None);
    }
    let target = first.to_dtype(dtype)?.clone_tensor(None)?;
    let slots = tensor_slots(&values);
    let (mut new, mut wants_gradient) = (Vec::new(), false);
    for (index, _, tensor) in &slots {
        let copy = if *index == 0 { target.clone() } else { tensor.clone_tensor(None)? };
        if *index > 0 && copy.dtype().is_differentiable() && !def.args[*index].not_differentiable {
            copy.requires_grad_(true)?;
            wants_gradient = true;
        }
        new.push(copy);
    }
    Ok(Some((replace(&values, &slots, &new), wants_gradient)))
}

fn target_of(values: &[Value]) -> &Tensor {
    match &values[0] {
        Value::Tensor(target) => target,
        other => unreachable!("{other:?} was a tensor"),
    }
}

fn without_gradient() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_differentiable())
}

#[test]
fn nothing_is_recorded_into_what_cannot_have_a_gradient() {
    let (whole, parts) = (Cell::new(0), Cell::new(0));
    for_all("no history without gradient", DType::F64, |def, sample| {
        if !has_inplace_form(def) {
            return Ok(());
        }
        for dtype in without_gradient() {
            let Some((values, wants)) = arguments(def, sample, dtype).map_err(text)? else {
                return Ok(());
            };
            if !wants {
                return Ok(());
            }
            let target = target_of(&values).clone();
            manual_seed(1);
            if call_inplace(def, &args(&values)).is_ok() {
                whole.set(whole.get() + 1);
                check_unrecorded(&target, "the target")?;
            }
            let (base, values) = within_a_base(values).map_err(text)?;
            manual_seed(1);
            if call_inplace(def, &args(&values)).is_ok() {
                parts.set(parts.get() + 1);
                check_unrecorded(target_of(&values), "a view")?;
                check_unrecorded(&base, "the base of a view")?;
            }
        }
        Ok(())
    });
    // Copies, fills, masked fills and draws with given probabilities convert what they write.
    let is_alone = std::env::var("PULLBACK_OP").is_ok();
    assert!(is_alone || whole.get() > 40 && parts.get() > 40, "{whole:?} and {parts:?} writes");
}

/// The same on a view of a fresh base.
fn within_a_base(mut values: Vec<Value>) -> Result<(Tensor, Vec<Value>)> {
    let target = target_of(&values);
    let base = pullback::ops::shape::join::stack(&[target.clone(), target.clone()], 0)?;
    let view = base.select(0, 1)?;
    values[0] = Value::Tensor(view);
    Ok((base, values))
}

fn check_unrecorded(tensor: &Tensor, what: &str) -> Check {
    let node = tensor.grad_fn().map_err(text)?;
    if tensor.requires_grad() || node.is_some() || !tensor.is_leaf() {
        return Err(format!("{what}, of {:?}, requires grad", tensor.dtype()));
    }
    Ok(())
}

#[test]
fn every_inplace_form_counts_one_write() {
    for dtype in [DType::F64, DType::C128] {
        for_all("one write is counted", dtype, |def, sample| {
            if !has_inplace_form(def) {
                return Ok(());
            }
            for wanted in [dtype, DType::I64, DType::Bool] {
                let Some((values, _)) = arguments(def, sample, wanted).map_err(text)? else {
                    return Ok(());
                };
                let _off = pullback::no_grad();
                let target = target_of(&values);
                let before = target.version();
                manual_seed(1);
                let is_written = call_inplace(def, &args(&values)).is_ok();
                let counted = target.version() - before;
                // What drops nothing gives its target back as it is.
                let writes = is_written && !(def.name.ends_with("dropout_") && counted == 0);
                if counted != u32::from(writes) {
                    return Err(format!("{counted} writes to a tensor of {wanted:?}"));
                }
            }
            Ok(())
        });
    }
}

/// Lazy clones of the tensors of a call, and the call with them. (What shares no bytes with anything is no use: sparse tensors.)
fn lazy_clones(values: &[Value]) -> Result<(Vec<Value>, Vec<Tensor>, Vec<Tensor>)> {
    let slots = tensor_slots(values);
    let mut sources = Vec::new();
    for (_, _, tensor) in &slots {
        sources.push(if tensor.is_sparse() { tensor.clone() } else { copy_of(tensor)? });
    }
    let lazy = |t: &Tensor| if t.is_sparse() { Ok(t.clone()) } else { t.lazy_clone() };
    let clones = sources.iter().map(lazy).collect::<Result<Vec<_>>>()?;
    Ok((replace(values, &slots, &clones), sources, clones))
}

/// What an op writes to, it copies first; what it reads, it leaves as it is. The results are those of a call with plain tensors.
#[test]
fn no_form_of_an_op_writes_through_a_lazy_clone() {
    let written = Cell::new(0);
    for_all("lazy clones", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let schema = def.schema();
        let _off = pullback::no_grad();
        for is_inplace in [false, true] {
            if is_inplace && !def.is(Traits::INPLACE) || is_unset(def) {
                continue;
            }
            let run = |values: &[Value]| {
                manual_seed(1);
                if is_inplace {
                    call_inplace(def, &args(values)).map(|t| vec![t])
                } else {
                    call(def, &args(values)).map(tensors)
                }
            };
            let plain = tensor_slots(&values);
            let trains = values.iter().any(|value| matches!(value, Value::Bool(true)));
            let plain_copies: Vec<Tensor> =
                plain.iter().map(|slot| copy_of(&slot.2)).collect::<Result<_>>().map_err(text)?;
            let versions: Vec<u32> = plain_copies.iter().map(Tensor::version).collect();
            let Ok(expected) = run(&replace(&values, &plain, &plain_copies)) else { continue };
            let (given, sources, clones) = lazy_clones(&values).map_err(text)?;
            let before = sources.iter().map(copy_of).collect::<Result<Vec<_>>>().map_err(text)?;
            let got = run(&given).map_err(text)?;
            all_equal(&got, &expected, 0.0)?;
            all_equal(&sources, &before, 0.0).map_err(|bad| format!("a source: {bad}"))?;
            let copies = clones.iter().zip(plain_copies.iter().zip(versions));
            for ((index, ..), (clone, (plain, version))) in plain.iter().zip(copies) {
                // (Running statistics are written though not all signatures say so; by a step of momentum 0 with what they were.)
                let says_so = schema.args[*index].alias.is_some_and(|alias| alias.is_write)
                    || schema.args[*index].name.starts_with("running_") && trains;
                let is_written = is_inplace && *index == 0 || says_so || plain.version() != version;
                written.set(written.get() + u32::from(is_written));
                all_equal(std::slice::from_ref(clone), std::slice::from_ref(plain), 0.0)
                    .map_err(|bad| format!("argument {index}: {bad}"))?;
                if !is_written && !clone.is_sparse() && !clone.is_lazy() {
                    return Err(format!("argument {index} was copied, but is only read"));
                }
            }
            // The other way round: what is written to a source is not seen by the clone.
            let lazy = sources.iter().filter(|source| source.is_lazy());
            for source in lazy.filter(|source| source.dtype() == DType::F64) {
                source.zero_().map_err(text)?;
            }
            all_equal(&clones, &plain_copies, 0.0).map_err(|bad| format!("afterwards: {bad}"))?;
        }
        Ok(())
    });
    assert!(std::env::var("PULLBACK_OP").is_ok() || written.get() > 300, "{written:?} writes");
}

/// Writes of ops without derivative: refused for leaves and their views, except those that PyTorch does not record.
#[test]
fn writes_without_derivative_leave_no_wrong_gradient() {
    let free = ["logical_and", "logical_or", "logical_xor", "logical_not"];
    for_all("writes without derivative", DType::F64, |def, sample| {
        if !def.is(Traits::NOT_DIFFERENTIABLE) || !has_inplace_form(def) {
            return Ok(());
        }
        for (place, is_leaf) in [("leaf", true), ("view", true), ("copy", false), ("part", false)] {
            let Some((mut values, _)) = arguments(def, sample, DType::F64).map_err(text)? else {
                return Ok(());
            };
            let leaf = target_of(&values).clone().with_grad().map_err(text)?;
            let target = match place {
                "leaf" => Ok(leaf.clone()),
                "view" => leaf.view(leaf.shape()),
                "copy" => leaf.clone_tensor(None),
                _ => leaf.clone_tensor(None).and_then(|copy| copy.view(leaf.shape())),
            };
            let target = target.map_err(text)?;
            values[0] = Value::Tensor(target.clone());
            let version = target.version();
            let written = call_inplace(def, &args(&values));
            match (&written, is_leaf) {
                (Err(error), true) if error.message().contains("in-place operation") => {
                    let is_unchanged = target.version() == version;
                    let is_expected = is_unchanged && !free.contains(&def.name);
                    is_expected.then_some(()).ok_or(format!("{place} was refused"))?;
                }
                // Not for floating point numbers.
                (Err(_), _) => {}
                (Ok(_), true) if !free.contains(&def.name) => {
                    return Err(format!("a write to a {place} was not refused"));
                }
                (Ok(_), _) => {
                    // A leaf's gradient is that of the values that are there now; what was overwritten has none.
                    target.sum().and_then(|sum| sum.backward()).map_err(text)?;
                    let ones = leaf.ones_like().and_then(|t| t.detach()).map_err(text)?;
                    let zeros = leaf.zeros_like().and_then(|t| t.detach()).map_err(text)?;
                    let expected = if is_leaf { ones } else { zeros };
                    let found = leaf.grad().ok_or("no gradient")?;
                    differs(&found, &expected, 0.0).map_or(Ok(()), Err)?;
                }
            }
        }
        Ok(())
    });
}
