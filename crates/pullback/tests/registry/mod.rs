//! Running every op of the registry on every one of its samples: what the property tests are made of.

use pullback::autograd::{self, BackwardOptions, call};
use pullback::dispatch::{Arg, OpDef, Outputs, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{C128, DType, Error, Result, Tensor, TensorSpec, manual_seed, ops};
use std::fmt::Write as _;

/// Runs `check` for every op and sample and panics with all failures.
pub(crate) fn for_all(
    property: &str,
    dtype: DType,
    check: impl Fn(&'static OpDef, &Sample) -> std::result::Result<(), String>,
) {
    // Random ops draw from one generator: one property at a time.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let only = std::env::var("PULLBACK_OP").ok();
    let (mut failures, mut checked) = (String::new(), 0);
    let is_chosen = |name| only.as_deref().is_none_or(|o| o.split(',').any(|o| o == name));
    for name in only.iter().flat_map(|only| only.split(',')) {
        assert!(ops::registry().any(|def| def.name == name), "PULLBACK_OP: `{name}` is no op");
    }
    for def in ops::registry().filter(|d| is_chosen(d.name)) {
        let Some(samples) = def.samples else { continue };
        for sample in samples(&Sampler::new(dtype)) {
            manual_seed(1);
            checked += 1;
            if let Err(text) = check(def, &sample) {
                let _ = writeln!(failures, "- {} with {:?}: {text}", def.full_name(), sample);
            }
        }
    }
    assert!(failures.is_empty(), "{property} fails for:\n{failures}");
    assert!(checked > 0 || only.is_some(), "no sample was checked");
}

pub(crate) fn text(error: Error) -> String {
    format!("{error:?}")
}

pub(crate) fn args(values: &[Value]) -> Vec<Arg<'_>> {
    values.iter().map(Value::as_arg).collect()
}

pub(crate) fn tensors(outputs: Outputs) -> Vec<Tensor> {
    outputs.as_slice().to_vec()
}

/// Every tensor of the arguments, with where it stands.
pub(crate) fn tensor_slots(values: &[Value]) -> Vec<(usize, usize, Tensor)> {
    let mut out = Vec::new();
    for (index, value) in values.iter().enumerate() {
        match value {
            Value::Tensor(t) => out.push((index, 0, t.clone())),
            Value::Tensors(list) => {
                out.extend(list.iter().enumerate().map(|(n, t)| (index, n, t.clone())));
            }
            Value::OptTensors(list) => {
                out.extend(
                    list.iter().enumerate().filter_map(|(n, t)| Some((index, n, t.clone()?))),
                );
            }
            _ => {}
        }
    }
    out
}

pub(crate) fn replace(
    values: &[Value],
    slots: &[(usize, usize, Tensor)],
    new: &[Tensor],
) -> Vec<Value> {
    let mut values = values.to_vec();
    for ((index, n, _), t) in slots.iter().zip(new) {
        match &mut values[*index] {
            Value::Tensor(old) => *old = t.clone(),
            Value::Tensors(list) => list[*n] = t.clone(),
            Value::OptTensors(list) => list[*n] = Some(t.clone()),
            _ => unreachable!("slots hold tensors"),
        }
    }
    values
}

pub(crate) fn differs(a: &Tensor, b: &Tensor, tolerance: f64) -> Option<String> {
    if a.shape() != b.shape() || a.dtype() != b.dtype() {
        return Some(format!("{a:?} against {b:?}"));
    }
    let (a, b) = (a.to_vec::<C128>().unwrap(), b.to_vec::<C128>().unwrap());
    let same = |x: C128, y: C128| {
        let close = |p: f64, q: f64| {
            p == q || p.is_nan() && q.is_nan() || (p - q).abs() <= tolerance * (1.0 + q.abs())
        };
        close(x.re, y.re) && close(x.im, y.im)
    };
    let at = a.iter().zip(&b).position(|(&x, &y)| !same(x, y))?;
    Some(format!("element {at}: {} against {}", a[at], b[at]))
}

pub(crate) fn all_equal(
    got: &[Tensor],
    expected: &[Tensor],
    tolerance: f64,
) -> std::result::Result<(), String> {
    if got.len() != expected.len() {
        return Err(format!("{} outputs against {}", got.len(), expected.len()));
    }
    let bad = got
        .iter()
        .zip(expected)
        .enumerate()
        .find_map(|(i, (a, b))| Some((i, differs(a, b, tolerance)?)));
    bad.map_or(Ok(()), |(i, text)| Err(format!("output {i}, {text}")))
}

pub(crate) fn functional(def: &'static OpDef, values: &[Value]) -> Result<Vec<Tensor>> {
    manual_seed(1);
    call(def, &args(values)).map(tensors)
}

/// Ops that write into their arguments write into copies of them, so that they are functions too; one that
/// returns nothing gives what it has written.
pub(crate) fn function_of(def: &'static OpDef, values: &[Value]) -> Result<Vec<Tensor>> {
    let schema = def.schema();
    let is_written = |index: usize| schema.args[index].alias.is_some_and(|a| a.is_write);
    let slots: Vec<_> =
        tensor_slots(values).into_iter().filter(|(index, ..)| is_written(*index)).collect();
    let copies = slots.iter().map(|(_, _, t)| copy_of(t)).collect::<Result<Vec<_>>>()?;
    let outputs = functional(def, &replace(values, &slots, &copies))?;
    Ok(if outputs.is_empty() { copies } else { outputs })
}

/// A copy in the same kind of memory: with gaps if the tensor has them.
pub(crate) fn copy_of(t: &Tensor) -> Result<Tensor> {
    let is_data = !t.requires_grad() && t.tangent()?.is_none();
    if is_data && !t.is_contiguous() { spread(t) } else { t.clone_tensor(None) }
}

/// Whether the elements of the result are whatever its memory held before.
pub(crate) fn is_unset(def: &OpDef) -> bool {
    def.name.starts_with("empty") || def.name.starts_with("new_empty")
}

/// Shapes and dtypes only where the elements are not set.
pub(crate) fn agree(
    def: &OpDef,
    got: &[Tensor],
    expected: &[Tensor],
    tolerance: f64,
) -> std::result::Result<(), String> {
    if is_unset(def) {
        let zeros = |t: &Tensor| t.zeros_like().map_err(text);
        let got = got.iter().map(zeros).collect::<std::result::Result<Vec<_>, _>>()?;
        let expected = expected.iter().map(zeros).collect::<std::result::Result<Vec<_>, _>>()?;
        return all_equal(&got, &expected, 0.0);
    }
    all_equal(got, expected, tolerance)
}

/// The same values with a gap after every element.
pub(crate) fn spread(t: &Tensor) -> Result<Tensor> {
    let mut shape = t.shape().to_vec();
    shape.push(2);
    let spec = TensorSpec { device: t.device(), ..TensorSpec::of(&shape, t.dtype()) };
    let wide = spec.empty()?;
    let view = wide.select(-1, 1)?;
    view.copy_(t, false)?;
    view.detach()
}

/// The gradients by all that can have one, where those of the results are what `start` gives.
pub(crate) fn gradients_from(
    def: &'static OpDef,
    values: &[Value],
    start: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Option<Tensor>>> {
    let slots = tensor_slots(values);
    let is_input = |(index, _, t): &&(usize, usize, Tensor)| {
        t.dtype().is_differentiable() && !def.args[*index].not_differentiable
    };
    let inputs: Vec<&Tensor> = slots.iter().filter(is_input).map(|slot| &slot.2).collect();
    inputs.iter().try_for_each(|input| input.requires_grad_(true).map(drop))?;
    manual_seed(1);
    let outputs = call(def, &args(values)).map(tensors)?;
    let roots: Vec<&Tensor> = outputs.iter().filter(|output| output.requires_grad()).collect();
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let starts = roots.iter().map(|&root| start(root)).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    autograd::grad(&roots, &inputs, &starts, options)
}
