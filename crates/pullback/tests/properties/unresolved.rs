//! Views of conjugates and negatives: every op gives for them what it gives for tensors that hold the same numbers.

use super::registry::gradients_from;
use super::{
    agree, args, copy_of, for_all, function_of, is_unset, replace, tensor_slots, tensors, text,
};
use pullback::autograd::{call, call_inplace, call_out};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, Result, Tensor, manual_seed};

type Outcome = std::result::Result<(), String>;
/// A tensor and the slot of the arguments it stands in.
type Slots = [(usize, usize, Tensor)];

/// The same numbers, shown by memory that holds something else: conjugates, negatives, or the conjugates of these.
fn shown_otherwise(t: &Tensor, variant: usize) -> Result<Tensor> {
    let negated = |t: &Tensor| t.neg()?.neg_view();
    match (t.dtype(), variant % 3) {
        (DType::Bool | DType::U16 | DType::U32 | DType::U64, _) => t.detach(),
        (dtype, _) if dtype.is_narrow_float() => t.detach(),
        (dtype, 0) if dtype.is_complex() => t.conj_physical()?.conj(),
        (dtype, 2) if dtype.is_complex() => t.conj_physical()?.neg()?.conj()?.neg_view(),
        _ => negated(t),
    }
}

/// A copy in memory that holds something else, laid out as `t`.
fn with_bits(t: &Tensor, variant: usize) -> Result<Tensor> {
    shown_otherwise(&copy_of(t)?, variant)?.detach()
}

/// Ops whose arguments, or whose answer, are about memory.
pub(super) fn is_about_memory(def: &OpDef) -> bool {
    def.name.starts_with("as_strided")
        || matches!(def.name, "view_as_real" | "view_as_real_copy")
        || matches!((def.name, def.overload), ("view" | "view_copy", "dtype"))
}

/// The slots that are of tensors which can be shown otherwise, each alone and all together.
fn choices(slots: &Slots) -> Vec<Vec<usize>> {
    let able: Vec<usize> =
        (0..slots.len()).filter(|&n| slots[n].2.dtype() != DType::Bool).collect();
    let mut all: Vec<Vec<usize>> = able.iter().map(|&n| vec![n]).collect();
    if able.len() > 1 {
        all.push(able);
    }
    all
}

/// The arguments with copies of the tensors of `slots`, those `chosen` shown otherwise.
fn with_bits_set(
    values: &[Value],
    slots: &Slots,
    chosen: &[usize],
    variant: usize,
) -> Result<Vec<Value>> {
    let copy = |(n, (_, _, t)): (usize, &(usize, usize, Tensor))| {
        if chosen.contains(&n) { with_bits(t, variant + n) } else { copy_of(t) }
    };
    let copies = slots.iter().enumerate().map(copy).collect::<Result<Vec<_>>>()?;
    Ok(replace(values, slots, &copies))
}

/// The arguments with copies of their tensors.
pub(super) fn copied(values: &[Value]) -> Result<Vec<Value>> {
    with_bits_set(values, &tensor_slots(values), &[], 0)
}

/// Runs `check` with the sample's arguments and each choice of which are shown otherwise; ops that refuse the sample, and
/// those that speak of memory, are left out.
fn for_each_choice(
    def: &'static OpDef,
    sample: &Sample,
    check: impl Fn(&[Value], &[Value], &[Tensor]) -> Outcome,
) -> Outcome {
    if is_about_memory(def) {
        return Ok(());
    }
    let values = sample.values(def).map_err(text)?;
    let Ok(expected) = function_of(def, &values) else { return Ok(()) };
    let slots = tensor_slots(&values);
    for (variant, chosen) in choices(&slots).iter().enumerate() {
        let given = with_bits_set(&values, &slots, chosen, variant).map_err(text)?;
        check(&values, &given, &expected).map_err(|e| format!("slots {chosen:?}: {e}"))?;
    }
    Ok(())
}

/// In `function_of`, what an op writes to is copied first, which resolves it; here it is written through the bits.
fn results_and_targets(def: &'static OpDef, values: &[Value]) -> Result<Vec<Tensor>> {
    manual_seed(1);
    let outputs = call(def, &args(values)).map(tensors)?;
    if !outputs.is_empty() {
        return Ok(outputs);
    }
    let is_written = |index: usize| def.schema().args[index].alias.is_some_and(|a| a.is_write);
    Ok(tensor_slots(values).into_iter().filter(|s| is_written(s.0)).map(|s| s.2).collect())
}

fn results(dtype: DType) {
    for_all("results do not depend on conj and neg bits", dtype, |def, sample| {
        for_each_choice(def, sample, |_, given, expected| {
            let got = results_and_targets(def, given).map_err(text)?;
            agree(def, &got, expected, 1e-12)
        })
    });
}

#[test]
fn results_do_not_depend_on_neg_bits() {
    results(DType::F64);
}

#[test]
fn results_do_not_depend_on_conj_and_neg_bits() {
    results(DType::C128);
}

/// The gradients of a fixed combination of the results. With a `variant`, the gradients that it begins with are shown
/// otherwise.
pub(super) fn gradients(
    def: &'static OpDef,
    values: &[Value],
    variant: Option<usize>,
) -> Result<Vec<Option<Tensor>>> {
    gradients_from(def, values, |t| {
        let plain = Sampler::new(t.dtype()).normal(t.shape());
        variant.map_or_else(|| Ok(plain.clone()), |variant| with_bits(&plain, variant))
    })
}

/// Some variant, not the same for all samples.
fn sample_variant(values: &[Value]) -> usize {
    tensor_slots(values).iter().map(|slot| slot.2.ndim() + usize::from(slot.2.is_conj())).sum()
}

fn same_gradients(dtype: DType) {
    for_all("gradients do not depend on conj and neg bits", dtype, |def, sample| {
        if !sample.differentiable
            || def.is(Traits::NOT_DIFFERENTIABLE)
            || def.is(Traits::INPLACE_ONLY)
        {
            return Ok(());
        }
        for_each_choice(def, sample, |values, given, _| {
            let plain = copied(values).map_err(text)?;
            let Ok(expected) = gradients(def, &plain, None) else { return Ok(()) };
            let variant = sample_variant(given);
            let got = gradients(def, given, Some(variant)).map_err(text)?;
            if got.iter().map(Option::is_some).ne(expected.iter().map(Option::is_some)) {
                return Err("other gradients are defined".into());
            }
            let (got, expected): (Vec<_>, Vec<_>) =
                (got.into_iter().flatten().collect(), expected.into_iter().flatten().collect());
            agree(def, &got, &expected, 1e-9)
        })
    });
}

#[test]
fn gradients_do_not_depend_on_neg_bits() {
    same_gradients(DType::F64);
}

#[test]
fn gradients_do_not_depend_on_conj_and_neg_bits() {
    same_gradients(DType::C128);
}

fn inplace(dtype: DType) {
    for_all("in-place forms write through conj and neg bits", dtype, |def, sample| {
        if !def.is(Traits::INPLACE) && !def.is(Traits::INPLACE_ONLY) {
            return Ok(());
        }
        let form = |values: &[Value]| -> Result<Tensor> {
            manual_seed(1);
            call_inplace(def, &args(values))
        };
        for_each_choice(def, sample, |values, given, _| {
            let plain = copied(values).map_err(text)?;
            let (Some(Value::Tensor(target)), Some(Value::Tensor(twin))) =
                (given.first(), plain.first())
            else {
                return Err("no receiver".into());
            };
            let (before, twins) = (target.version(), twin.version());
            let bits = (target.is_conj(), target.is_neg());
            let Ok(expected) = form(&plain) else { return Ok(()) };
            let got = form(given).map_err(text)?;
            if !got.is_same(target) || target.version() - before != twin.version() - twins {
                return Err("it must return its target and count its writes".into());
            }
            if (target.is_conj(), target.is_neg()) != bits {
                return Err("the target must keep its bits".into());
            }
            agree(def, &[got], &[expected], 1e-12)
        })
    });
}

#[test]
fn inplace_forms_write_through_neg_bits() {
    inplace(DType::F64);
}

#[test]
fn inplace_forms_write_through_conj_and_neg_bits() {
    inplace(DType::C128);
}

fn out(dtype: DType) {
    for_all("out= forms write through conj and neg bits", dtype, |def, sample| {
        if !def.is(Traits::OUT) || is_unset(def) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        manual_seed(1);
        let Ok(expected) = call(def, &args(&values)).map(tensors) else { return Ok(()) };
        for variant in 0..3 {
            // One of the right shape, and one without elements that gets it.
            let room = |t: &Tensor| with_bits(&t.zeros_like()?, variant);
            let empty = |t: &Tensor| {
                with_bits(&Tensor::empty_strided(&[0], &[1], t.dtype(), t.device())?, variant)
            };
            let rooms: Result<Vec<Tensor>> = expected.iter().map(room).collect();
            let empties: Result<Vec<Tensor>> = expected.iter().map(empty).collect();
            for outs in [rooms, empties] {
                let outs = outs.map_err(text)?;
                manual_seed(1);
                call_out(def, &args(&values), &outs.iter().collect::<Vec<_>>()).map_err(text)?;
                let got = outs.iter().map(|t| t.clone_tensor(None)).collect::<Result<Vec<_>>>();
                agree(def, &got.map_err(text)?, &expected, 1e-12)?;
            }
        }
        Ok(())
    });
}

#[test]
fn out_forms_write_through_neg_bits() {
    out(DType::F64);
}

#[test]
fn out_forms_write_through_conj_and_neg_bits() {
    out(DType::C128);
}
