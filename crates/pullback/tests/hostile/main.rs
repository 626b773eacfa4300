//! Calls with wrong arguments: whatever is put in the place of a tensor or a number, an op gives a result or an error that
//! speaks of the arguments, soon; its backward too.
//!
//! Every op of the registry is called with its own samples, in which one argument after the other is replaced: by empty
//! tensors, tensors without dimensions, of other ranks, sizes and dtypes, of huge sizes beside a zero, sparse ones, by
//! extreme numbers. `PULLBACK_OP=name` restricts a run to one op.

#[allow(dead_code, reason = "made for the property tests, which use all of it")]
#[path = "../registry/mod.rs"]
mod registry;
mod watchdog;
mod wild;

use pullback::autograd::{self, BackwardOptions, call, call_inplace, call_out};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, Error, Layout, Result, Scalar, Tensor, TensorSpec, manual_seed, ops};
use registry::{args, is_unset, replace, tensor_slots};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// What is put in the place of a tensor, with a name for the report.
type Strange = (&'static str, Tensor);

fn of(shape: &[i64], dtype: DType) -> Tensor {
    TensorSpec::of(shape, dtype).zeros().unwrap()
}

fn strange_tensors() -> Vec<Strange> {
    let f = DType::F64;
    let huge = 1_i64 << 40;
    let ones = |shape: &[i64]| of(shape, f).ones_like().unwrap();
    let coo = |shape: &[i64]| ones(shape).to_sparse().unwrap();
    let rows = ones(&[2, 3]).to_sparse_with(Some(Layout::SparseCsr), None, None).unwrap();
    vec![
        ("no elements", of(&[0], f)),
        ("no dimensions", ones(&[])),
        ("(2, 0)", of(&[2, 0], f)),
        ("(17, 0, 17)", of(&[17, 0, 17], f)),
        ("(0, 2^40)", of(&[0, huge], f)),
        ("(2^40, 0)", of(&[huge, 0], f)),
        ("another size", ones(&[7])),
        ("another matrix", ones(&[5, 1])),
        ("many dimensions", ones(&[1, 2, 1, 2, 1, 1, 2])),
        ("integers", of(&[2, 3], DType::I64)),
        ("booleans", of(&[3], DType::Bool)),
        ("bytes", of(&[], DType::U8)),
        ("half", of(&[2, 3], DType::F16)),
        ("complex", of(&[2, 3], DType::C128)),
        ("sparse", coo(&[2, 3])),
        ("sparse without dimensions", coo(&[])),
        ("sparse without elements", coo(&[0, 3])),
        ("rows", rows),
    ]
}

fn strange_numbers(value: &Value) -> Vec<(&'static str, Value)> {
    match value {
        Value::Int(_) => vec![
            ("-1", Value::Int(-1)),
            ("0", Value::Int(0)),
            ("7", Value::Int(7)),
            ("2^62", Value::Int(1 << 62)),
            ("least", Value::Int(i64::MIN)),
            ("most", Value::Int(i64::MAX)),
        ],
        Value::Ints(list) => {
            let filled = |n: i64| Value::Ints(vec![n; list.len()].into());
            vec![
                ("no numbers", Value::Ints([].as_slice().into())),
                ("one number", Value::Ints([1].as_slice().into())),
                ("many numbers", Value::Ints([1; 9].as_slice().into())),
                ("all -1", filled(-1)),
                ("all 0", filled(0)),
                ("all least", filled(i64::MIN)),
                ("all most", filled(i64::MAX)),
            ]
        }
        Value::Float(_) => vec![
            ("nan", Value::Float(f64::NAN)),
            ("inf", Value::Float(f64::INFINITY)),
            ("-1.5", Value::Float(-1.5)),
        ],
        Value::Scalar(_) => vec![
            ("least", Value::Scalar(Scalar::Int(i64::MIN))),
            ("inf", Value::Scalar(Scalar::Float(f64::INFINITY))),
            ("complex", Value::Scalar(Scalar::Complex(1.0, 2.0))),
        ],
        Value::Floats(_) => vec![("no numbers", Value::Floats(Vec::new().into()))],
        Value::Bool(b) => vec![("the other", Value::Bool(!b))],
        Value::Str(_) => vec![("nonsense", Value::Str("nonsense".into()))],
        Value::Tensors(_) => vec![("no tensors", Value::Tensors(Vec::new()))],
        Value::OptTensors(_) => vec![("no tensors", Value::OptTensors(Vec::new()))],
        _ => Vec::new(),
    }
}

/// Every call to make of an op, with what is strange about it.
fn strange_calls(values: &[Value], strange: &[Strange]) -> Vec<(String, Vec<Value>)> {
    let slots = tensor_slots(values);
    let own: Vec<Tensor> = slots.iter().map(|slot| slot.2.clone()).collect();
    let mut calls = vec![("as it is".to_string(), values.to_vec())];
    for (name, tensor) in strange {
        for nr in 0..slots.len() {
            let mut new = own.clone();
            new[nr] = tensor.clone();
            calls.push((format!("{name} in place {nr}"), replace(values, &slots, &new)));
        }
        if slots.len() > 1 {
            let all = vec![tensor.clone(); slots.len()];
            calls.push((format!("{name} everywhere"), replace(values, &slots, &all)));
        }
    }
    for (index, value) in values.iter().enumerate() {
        for (name, new) in strange_numbers(value) {
            let mut values = values.to_vec();
            values[index] = new;
            calls.push((format!("{name} for argument {index}"), values));
        }
    }
    calls
}

/// Backward through whatever came out, from all together and from each alone.
fn go_back(outputs: &[Tensor], inputs: &[Tensor]) -> Result<()> {
    let roots: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).take(4).collect();
    let inputs: Vec<&Tensor> = inputs.iter().filter(|t| t.requires_grad()).collect();
    if roots.is_empty() || inputs.is_empty() {
        return Ok(());
    }
    if roots.len() > 1 {
        // (Each is tried, whatever comes of the others.)
        let alone = roots.iter().map(|root| go_back_from(&[root], &inputs));
        alone.collect::<Vec<_>>().into_iter().collect::<Result<()>>()?;
    }
    go_back_from(&roots, &inputs)
}

/// Backward with gradients of the results' own shapes, and through that once more.
fn go_back_from(roots: &[&Tensor], inputs: &[&Tensor]) -> Result<()> {
    let starts = roots.iter().map(|root| root.ones_like()).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options =
        BackwardOptions { allow_unused: true, create_graph: true, retain_graph: Some(true) };
    let grads = autograd::grad(roots, inputs, &starts, options)?;
    let again: Vec<&Tensor> = grads.iter().flatten().filter(|g| g.requires_grad()).collect();
    if again.is_empty() {
        return Ok(());
    }
    let starts = again.iter().map(|root| root.ones_like()).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    autograd::grad(&again, inputs, &starts, options).map(drop)
}

/// The arguments with fresh tensors, leaves that require grad where they can.
fn leaves(values: &[Value], requires_grad: bool) -> Result<(Vec<Value>, Vec<Tensor>)> {
    let slots = tensor_slots(values);
    let fresh = |t: &Tensor| -> Result<Tensor> {
        let own = if t.numel() > 1 << 20 { t.clone() } else { t.clone_tensor(None)? };
        if requires_grad && own.dtype().is_differentiable() {
            own.requires_grad_(true)?;
        }
        Ok(own)
    };
    let new = slots.iter().map(|(_, _, t)| fresh(t)).collect::<Result<Vec<_>>>()?;
    Ok((replace(values, &slots, &new), new))
}

fn functional(def: &'static OpDef, values: &[Value]) -> Result<()> {
    let (values, inputs) = leaves(values, true)?;
    let outputs = call(def, &args(&values))?;
    if is_unset(def) { Ok(()) } else { go_back(outputs.as_slice(), &inputs) }
}

fn in_place(def: &'static OpDef, values: &[Value]) -> Result<()> {
    let (values, _) = leaves(values, false)?;
    call_inplace(def, &args(&values)).map(drop)
}

/// Into outputs that do not fit: one that has to grow, one of another dtype, a sparse one.
fn into_out(def: &'static OpDef, values: &[Value], kind: usize) -> Result<()> {
    let (values, _) = leaves(values, false)?;
    let count = def.schema().returns.len();
    let one = || match kind {
        0 => of(&[0], DType::F64),
        1 => of(&[2, 3], DType::Bool),
        2 => of(&[2, 3], DType::F64).to_sparse().unwrap(),
        _ => of(&[], DType::F64).to_sparse().unwrap(),
    };
    let outs: Vec<Tensor> = (0..count).map(|_| one()).collect();
    call_out(def, &args(&values), &outs.iter().collect::<Vec<_>>()).map(drop)
}

type Form = (&'static str, fn(&'static OpDef, &[Value]) -> Result<()>);

fn forms(def: &OpDef) -> Vec<Form> {
    let mut forms: Vec<Form> = vec![("the function", functional)];
    if def.is(Traits::INPLACE) {
        forms.push(("in place", in_place));
    }
    if def.is(Traits::OUT) {
        forms.push(("out=empty", |def, values| into_out(def, values, 0)));
        forms.push(("out=bool", |def, values| into_out(def, values, 1)));
        forms.push(("out=sparse", |def, values| into_out(def, values, 2)));
        forms.push(("out=0-dim sparse", |def, values| into_out(def, values, 3)));
    }
    forms
}

/// What an error must not be like.
fn fault_of(error: &Error) -> Option<String> {
    let text = error.message();
    let blames_the_library = text.contains("bug") || text.contains("unreachable");
    (blames_the_library || text.is_empty()).then(|| format!("{error:?}"))
}

/// What goes wrong when all forms of an op are called so; gives how many calls that were.
fn try_call(
    def: &'static OpDef,
    (what, values): (&str, &[Value]),
    faults: &mut BTreeMap<String, String>,
) -> usize {
    let forms = forms(def);
    for (form, run) in &forms {
        manual_seed(1);
        watchdog::begin(&format!("{} ({form}) with {what}: {values:?}", def.full_name()));
        let fault = match catch_unwind(AssertUnwindSafe(|| run(def, values))) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => fault_of(&error),
            Err(panic) => Some(format!("a panic: {}", watchdog::panic_text(&panic))),
        };
        watchdog::end();
        if let Some(fault) = fault {
            // (One of each kind for an op is enough to read.)
            let kind = format!("{} {form}: {fault}", def.full_name());
            faults.entry(kind).or_insert(format!("{what}: {values:?}"));
        }
    }
    forms.len()
}

fn samples_of(def: &OpDef) -> Vec<Sample> {
    let mut samples =
        def.samples.map(|samples| samples(&Sampler::new(DType::F64))).unwrap_or_default();
    samples.truncate(4);
    samples
}

/// Calls `each` with every op that is asked for, its samples and what is strange; it notes faults, and counts calls.
fn for_all_ops(each: impl Fn(&'static OpDef, &[Sample], &mut BTreeMap<String, String>) -> usize) {
    // (The watchdog knows one call.)
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let only = std::env::var("PULLBACK_OP").ok();
    let (mut faults, mut calls) = (BTreeMap::new(), 0);
    watchdog::start();
    for def in ops::registry().filter(|d| only.as_deref().is_none_or(|o| o == d.name)) {
        calls += each(def, &samples_of(def), &mut faults);
    }
    watchdog::stop();
    let lines: Vec<String> = faults.iter().map(|(k, v)| format!("- {k}  [{v}]")).collect();
    assert!(
        lines.is_empty(),
        "{} kinds of faults in {calls} calls:\n{}",
        lines.len(),
        lines.join("\n")
    );
    assert!(calls > 1000 || only.is_some(), "hardly anything was called: {calls}");
}

#[test]
fn no_argument_makes_an_op_panic_hang_or_blame_itself() {
    let strange = strange_tensors();
    for_all_ops(|def, samples, faults| {
        let values = samples.iter().filter_map(|sample| sample.values(def).ok());
        let calls = values.flat_map(|values| strange_calls(&values, &strange));
        calls.map(|(what, values)| try_call(def, (&what, &values), faults)).sum()
    });
}

/// Calls of each op with arguments drawn at random; `PULLBACK_CALLS` sets how many.
#[test]
fn no_combination_of_arguments_makes_an_op_panic_hang_or_blame_itself() {
    let strange = strange_tensors();
    let count =
        std::env::var("PULLBACK_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    for_all_ops(|def, samples, faults| {
        let name = def
            .full_name()
            .bytes()
            .fold(7_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
        let mut dice = wild::Dice(name);
        let mut one = || {
            let values = wild::draw(def, samples, &strange, &mut dice);
            try_call(def, ("any arguments", &values), faults)
        };
        (0..count).map(|_| one()).sum()
    });
}
