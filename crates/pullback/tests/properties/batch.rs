//! Batching rules: a batch at once gives what one example after the other gives.

use super::{all_equal, args, is_unset, replace, tensor_slots, tensors, text};
use pullback::autograd::batch::{LevelGuard, Randomness, add_dim, remove_dim};
use pullback::autograd::{self, BackwardOptions, call, call_inplace};
use pullback::dispatch::batch::fallen_back;
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, Result, Tensor, ops};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Examples in a batch.
const SIZE: i64 = 3;

/// Ops that go through the examples one by one, for some of their arguments at least: histograms, bags, bounds in tensors,
/// indices outside of a tensor (which an example refuses), layers of recurrent networks with weights of each example (in whose
/// place the public functions use batched products), and fused gradients of norms, grids and recurrent networks, in whose place
/// gradients of examples are made of plain ops.
const ONE_BY_ONE: [&str; 38] = [
    "_batch_norm_backward",
    "_embedding_bag",
    "_embedding_bag_dense_backward",
    "_embedding_bag_forward_only",
    "_grid_sampler_backward",
    "_group_norm_backward",
    "_gru_layer",
    "_gru_step",
    "_histogramdd_bin_edges",
    "_histogramdd_from_bin_cts",
    "_histogramdd_from_bin_tensors",
    "_layer_norm_backward",
    "_linear_indices",
    "_lstm_layer",
    "_lstm_step",
    "_rms_norm_backward",
    "_rnn_layer",
    "_rnn_layer_backward",
    "_rnn_step",
    "as_strided_scatter",
    "histc",
    "histogram.bin_ct",
    "histogram.bins_tensor",
    "index_add",
    "index_copy",
    "index_fill.int_Scalar",
    "index_fill.int_Tensor",
    "index_reduce",
    "index_select",
    "linalg_pinv.atol_rtol_tensor",
    "linspace.Scalar_Tensor",
    "linspace.Tensor_Scalar",
    "linspace.Tensor_Tensor",
    "logspace.Scalar_Tensor",
    "logspace.Tensor_Scalar",
    "logspace.Tensor_Tensor",
    "multi_margin_loss_backward",
    "nonzero_static",
];

type Slots = Vec<(usize, usize, Tensor)>;

/// Ops whose rule is to refuse, or that give nothing to compare.
fn is_left_out(def: &OpDef) -> bool {
    // (Where a slice's memory begins differs from example to example.)
    def.is(Traits::RANDOM)
        || def.name == "slice_inverse"
        || is_unset(def)
        // (A NaN of the weight times the zeros of the padding is NaN where an algorithm reads the padding, and left out where it
        // does not: which one runs depends on the sizes, so on the batch.)
        || DIFFERENCE.get() == Difference::Nan && def.name.starts_with("conv")
        || matches!(def.kernels.cpu, pullback::dispatch::Kernel::ViewInplace(_))
        || def.schema().args.iter().any(|arg| arg.alias.is_some_and(|a| a.is_write))
}

/// In what the examples of a batch differ: only some of them, and not the first, take another branch of an op or a rule.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Difference {
    /// Each is a little nearer to zero.
    Size,
    /// The second has a row of zeros: zero factors, a singular matrix; an index whose second example is negative.
    ZeroOrNegative,
    /// The last has a NaN.
    Nan,
}

thread_local! {
    static DIFFERENCE: std::cell::Cell<Difference> = const { std::cell::Cell::new(Difference::Size) };
}

/// Runs `test` with examples that differ in each of these ways.
fn with_differences(differences: &[Difference], test: impl Fn()) {
    for &difference in differences {
        DIFFERENCE.set(difference);
        test();
    }
    DIFFERENCE.set(Difference::Size);
}

/// `t` with its first row, or its only element, replaced by `value`.
fn with_row(t: &Tensor, value: f64) -> Result<Tensor> {
    let copy = t.clone_tensor(None)?;
    let row =
        if t.ndim() > 1 { copy.select(-2, 0)? } else { copy.reshape(&[-1])?.narrow(0, 0, 1)? };
    if row.numel() > 0 {
        row.fill_(pullback::Scalar::Float(value))?;
    }
    Ok(copy)
}

/// The examples of one argument.
fn examples(t: &Tensor) -> Vec<Tensor> {
    let difference = DIFFERENCE.get();
    let example = |nr: i64| -> Result<Tensor> {
        if t.dtype() == DType::I64 && difference == Difference::ZeroOrNegative && nr == 1 {
            return t.neg()?.sub(&Tensor::wrapped(1)?);
        }
        if !t.dtype().is_differentiable() || t.dtype().is_narrow_float() {
            return Ok(t.clone());
        }
        match (difference, nr) {
            (Difference::ZeroOrNegative, 1) if t.numel() > 0 => return with_row(t, 0.0),
            (Difference::Nan, 2) if t.numel() > 0 => return with_row(t, f64::NAN),
            _ => {}
        }
        t.mul(&Tensor::wrapped(1.0 - 0.03 * nr as f64)?)?.to_dtype(t.dtype())
    };
    (0..SIZE).map(|nr| example(nr).unwrap()).collect()
}

/// Which of the tensors are batched, in every possible way if they are few.
fn subsets(count: usize) -> Vec<Vec<bool>> {
    let all = 1_usize << count.min(3);
    (1..all).map(|bits| (0..count).map(|i| bits >> i.min(2) & 1 == 1).collect()).collect()
}

/// The arguments for each example.
fn one_by_one(values: &[Value], slots: &Slots, batched: &[bool]) -> Vec<Vec<Value>> {
    let all: Vec<Vec<Tensor>> = slots.iter().map(|(_, _, t)| examples(t)).collect();
    let pick = |nr: usize| {
        let new: Vec<Tensor> = (0..slots.len())
            .map(|i| if batched[i] { all[i][nr].clone() } else { slots[i].2.clone() })
            .collect();
        replace(values, slots, &new)
    };
    (0..SIZE as usize).map(pick).collect()
}

/// Where the batch dimension is put: at the front, and elsewhere.
fn stacked(t: &Tensor, nr: usize) -> (Tensor, i64) {
    let dim = (nr % (t.ndim() + 1)) as i64;
    (ops::shape::join::stack(&examples(t), dim).unwrap(), dim)
}

fn batched_values(
    values: &[Value],
    slots: &Slots,
    batched: &[bool],
    level: u64,
) -> Result<Vec<Value>> {
    let wrap = |(nr, (_, _, t)): (usize, &(usize, usize, Tensor))| {
        if !batched[nr] {
            return Ok(t.clone());
        }
        let (physical, dim) = stacked(t, nr);
        add_dim(&physical, dim, level)
    };
    let new = slots.iter().enumerate().map(wrap).collect::<Result<Vec<_>>>()?;
    Ok(replace(values, slots, &new))
}

fn stack_all(each: &[Vec<Tensor>]) -> Result<Vec<Tensor>> {
    let nr = |nr: usize| {
        let column: Vec<Tensor> = each.iter().map(|outputs| outputs[nr].clone()).collect();
        ops::shape::join::stack(&column, 0)
    };
    (0..each[0].len()).map(nr).collect()
}

/// Ops whose results, or whose gradients' sizes, depend on elements.
const DATA_DEPENDENT: [&str; 23] = [
    "_foreach_addcdiv.Tensor",
    "_foreach_addcmul.Tensor",
    "_local_scalar_dense",
    "_unique",
    "_unique2",
    "argwhere",
    "bincount",
    "ctc_loss.Tensor",
    "equal",
    "index.Tensor",
    "masked_scatter",
    "masked_select",
    "narrow.Tensor",
    "nonzero",
    "nonzero_numpy",
    "one_hot",
    "repeat_interleave.Tensor",
    "repeat_interleave.self_Tensor",
    "split.Tensor_size",
    "tensor_split.tensor_indices_or_sections",
    "unique_consecutive",
    "unique_dim",
    "where",
];

/// Whether an error says that there can be no rule, of an op of which that is known.
fn is_refusal(def: &OpDef, message: &str) -> bool {
    let is_known = DATA_DEPENDENT.contains(&def.full_name().as_str());
    let is_refused = ["data-dependent", "dynamic shape"].iter().any(|word| message.contains(word));
    is_known && is_refused || message.contains("which are not batched")
}

fn compare(
    def: &'static OpDef,
    sample: &Sample,
    run: impl Fn(&[Value], &Tensor) -> Result<Vec<Tensor>>,
) -> std::result::Result<(), String> {
    if is_left_out(def) {
        return Ok(());
    }
    compare_values(def, &sample.values(def).map_err(text)?, run)
}

fn compare_values(
    def: &'static OpDef,
    values: &[Value],
    run: impl Fn(&[Value], &Tensor) -> Result<Vec<Tensor>>,
) -> std::result::Result<(), String> {
    let slots = tensor_slots(values);
    // A number that each example has its own of.
    let factors = examples(&Tensor::from_slice(&[1.0_f64], &[]).map_err(text)?);
    for batched in subsets(slots.len()) {
        let each = one_by_one(values, &slots, &batched)
            .iter()
            .zip(&factors)
            .map(|(v, f)| run(v, f))
            .collect::<Result<Vec<_>>>();
        let at_once = || -> Result<Vec<Tensor>> {
            let level = LevelGuard::new(SIZE, Randomness::Error)?;
            let inputs = batched_values(values, &slots, &batched, level.id())?;
            let factor = add_dim(&ops::shape::join::stack(&factors, 0)?, 0, level.id())?;
            run(&inputs, &factor)?.iter().map(|t| remove_dim(t, level.id(), SIZE, 0)).collect()
        };
        let Ok(each) = each else {
            // What an example refuses, the batch refuses, and nothing gets that far.
            match catch_unwind(AssertUnwindSafe(at_once)) {
                Err(_) => return Err(format!("{batched:?}: a panic")),
                Ok(Ok(got)) if !got.is_empty() => {
                    return Err(format!("{batched:?}: {got:?} of what an example refuses"));
                }
                Ok(_) => continue,
            }
        };
        if each[0].is_empty()
            || each.iter().any(|o| o.iter().zip(&each[0]).any(|(a, b)| a.shape() != b.shape()))
        {
            continue;
        }
        let expected = stack_all(&each).map_err(text)?;
        match at_once() {
            Ok(got) if got.is_empty() => {}
            Ok(got) => all_equal(&got, &expected, 1e-9).map_err(|e| format!("{batched:?}: {e}"))?,
            Err(error) if is_refusal(def, error.message()) => return Ok(()),
            Err(error) => return Err(format!("{batched:?}: {}", text(error))),
        }
    }
    Ok(())
}

#[test]
fn a_batch_at_once_equals_one_example_after_the_other() {
    let all = [Difference::Size, Difference::ZeroOrNegative, Difference::Nan];
    with_differences(&all, || {
        super::for_all("batching", DType::F64, |def, sample| {
            compare(def, sample, |values, _| Ok(tensors(call(def, &args(values))?)))
        });
    });
    let unlisted: Vec<String> =
        fallen_back().into_iter().filter(|op| !ONE_BY_ONE.contains(&op.as_str())).collect();
    assert!(unlisted.is_empty(), "without batching rule, and not listed: {unlisted:?}");
}

/// The arguments with one tensor of fewer dimensions.
fn of_lower_rank(values: &[Value]) -> Vec<Vec<Value>> {
    let slots = tensor_slots(values);
    let mut all = Vec::new();
    for nr in 0..slots.len() {
        let mut new: Vec<Tensor> = slots.iter().map(|(_, _, t)| t.clone()).collect();
        while new[nr].ndim() > 0 && new[nr].shape()[0] > 0 {
            new[nr] = new[nr].select(0, 0).unwrap();
            all.push(replace(values, &slots, &new));
        }
    }
    all
}

/// A rule must not take the batch for a dimension of an example that lacks one.
#[test]
fn the_batch_is_no_dimension_of_an_example() {
    super::for_all("batching of lower ranks", DType::F64, |def, sample| {
        if is_left_out(def) || def.name.starts_with('_') {
            return Ok(());
        }
        for values in of_lower_rank(&sample.values(def).map_err(text)?) {
            compare_values(def, &values, |values, _| Ok(tensors(call(def, &args(values))?)))
                .map_err(|e| format!("{values:?}: {e}"))?;
        }
        Ok(())
    });
}

#[test]
fn what_is_refused_is_refused_in_batches() {
    let mut failures = Vec::new();
    for def in ops::registry().filter(|def| !is_left_out(def)) {
        let Some(samples) = def.invalid_samples else { continue };
        for invalid in samples(&Sampler::new(DType::F64)) {
            let values = invalid.sample.values(def).unwrap();
            if def.name == "view" {
                // (Refused for how an example lies in memory; stacked ones lie otherwise.)
                continue;
            }
            let run = |values: &[Value], _: &Tensor| Ok(tensors(call(def, &args(values))?));
            if let Err(error) = compare_values(def, &values, run) {
                failures.push(format!("- {} with {values:?}: {error}", def.full_name()));
            }
        }
    }
    assert!(failures.is_empty(), "batches do what is refused:\n{}", failures.join("\n"));
}

#[test]
fn inplace_forms_of_a_batch_equal_one_example_after_the_other() {
    super::for_all("batching in place", DType::F64, |def, sample| {
        if !def.is(Traits::INPLACE) {
            return Ok(());
        }
        compare(def, sample, |values, _| {
            let mut values = values.to_vec();
            let Value::Tensor(target) = &values[0] else { return Ok(Vec::new()) };
            // Where only others are batched nothing can be written: see the test of that error.
            let is_batched = |t: &Tensor| autograd::batch::level_of(t).is_some();
            if !is_batched(target) && tensor_slots(&values).iter().any(|(_, _, t)| is_batched(t)) {
                return Ok(Vec::new());
            }
            let copy = target.clone_tensor(None)?;
            values[0] = Value::Tensor(copy);
            Ok(vec![call_inplace(def, &args(&values))?])
        })
    });
}

/// The gradients of the sum of the results with respect to all inputs that can have one.
fn plain_gradients(def: &'static OpDef, values: &[Value], one: &Tensor) -> Result<Vec<Tensor>> {
    gradients_with(def, values, &|t| t.ones_like()?.mul(one)?.to_dtype(t.dtype()))
}

/// The same, the results weighted.
fn gradients(def: &'static OpDef, values: &[Value], factor: &Tensor) -> Result<Vec<Tensor>> {
    gradients_with(def, values, &|t| {
        let numbers: Vec<f64> = (0..t.numel()).map(|i| 0.5 + (i * 7 % 5) as f64 / 4.0).collect();
        Tensor::from_slice(&numbers, t.shape())?.mul(factor)?.to_dtype(t.dtype())
    })
}

fn gradients_with(
    def: &'static OpDef,
    values: &[Value],
    weight: &dyn Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let slots = tensor_slots(values);
    let mut leaves = Vec::new();
    let mut new = Vec::new();
    for (index, _, t) in &slots {
        let wants = t.dtype().is_differentiable() && !def.args[*index].not_differentiable;
        new.push(if wants {
            let leaf = t.detach()?;
            leaf.requires_grad_(true)?;
            leaves.push(leaf.clone());
            leaf
        } else {
            t.clone()
        });
    }
    let outputs = tensors(call(def, &args(&replace(values, &slots, &new)))?);
    let roots: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).collect();
    if roots.is_empty() || leaves.is_empty() {
        return Ok(Vec::new());
    }
    let starts = roots.iter().map(|t| weight(t)).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    let leaves: Vec<&Tensor> = leaves.iter().collect();
    let grads = autograd::grad(&roots, &leaves, &starts, options)?;
    let shown = |(grad, leaf): (Option<Tensor>, &&Tensor)| match grad {
        Some(grad) => Ok(grad),
        None => leaf.zeros_like(),
    };
    grads.into_iter().zip(&leaves).map(shown).collect()
}

#[test]
fn gradients_within_a_level_are_those_of_each_example() {
    // (At a NaN the fused gradients of `relu` cells and of nearest neighbours give zero, the ops that batches use NaN.)
    with_differences(&[Difference::Size, Difference::ZeroOrNegative], || {
        super::for_all("gradients of examples", DType::F64, |def, sample| {
            if def.is(Traits::NOT_DIFFERENTIABLE) {
                return Ok(());
            }
            compare(def, sample, |values, factor| gradients(def, values, factor))
        });
    });
}

/// The results of an op within a level, and the gradients of all inputs after it.
fn gradients_outside(
    def: &'static OpDef,
    values: &[Value],
    batched: &[bool],
) -> Result<Option<Vec<Tensor>>> {
    let slots = tensor_slots(values);
    let mut leaves = Vec::new();
    let outputs = {
        let level = LevelGuard::new(SIZE, Randomness::Error)?;
        let mut new = Vec::new();
        for (nr, (index, _, t)) in slots.iter().enumerate() {
            let wants = t.dtype().is_differentiable() && !def.args[*index].not_differentiable;
            let whole =
                if batched[nr] { ops::shape::join::stack(&examples(t), 0)? } else { t.detach()? };
            if wants {
                whole.requires_grad_(true)?;
                leaves.push(whole.clone());
            }
            new.push(if batched[nr] { add_dim(&whole, 0, level.id())? } else { whole });
        }
        let outputs = tensors(call(def, &args(&replace(values, &slots, &new)))?);
        let whole = |t: &Tensor| remove_dim(t, level.id(), SIZE, 0);
        outputs.iter().map(whole).collect::<Result<Vec<_>>>()?
    };
    let roots: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).collect();
    if roots.is_empty() || leaves.is_empty() {
        return Ok(None);
    }
    let starts = roots.iter().map(|t| t.ones_like()).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    let leaves: Vec<&Tensor> = leaves.iter().collect();
    let grads = autograd::grad(&roots, &leaves, &starts, options)?;
    let shown = |(grad, leaf): (Option<Tensor>, &&Tensor)| match grad {
        Some(grad) => Ok(grad),
        None => leaf.zeros_like(),
    };
    grads.into_iter().zip(&leaves).map(shown).collect::<Result<_>>().map(Some)
}

/// The same by a loop: what is batched has a gradient for each example, what is not the sum of all.
fn gradients_by_loop(
    def: &'static OpDef,
    values: &[Value],
    batched: &[bool],
) -> Result<Option<Vec<Tensor>>> {
    let slots = tensor_slots(values);
    let one = Tensor::from_slice(&[1.0_f64], &[])?;
    let mut all = Vec::new();
    for values in one_by_one(values, &slots, batched) {
        let grads = plain_gradients(def, &values, &one)?;
        if grads.is_empty() {
            return Ok(None);
        }
        all.push(grads);
    }
    let differentiable = |(index, _, t): &(usize, usize, Tensor)| {
        t.dtype().is_differentiable() && !def.args[*index].not_differentiable
    };
    let is_batched: Vec<bool> = slots
        .iter()
        .zip(batched)
        .filter(|(slot, _)| differentiable(slot))
        .map(|(_, b)| *b)
        .collect();
    let join = |nr: usize| {
        let each: Vec<Tensor> = all.iter().map(|grads| grads[nr].clone()).collect();
        let stacked = ops::shape::join::stack(&each, 0)?;
        if is_batched[nr] { Ok(stacked) } else { stacked.sum_dim(Some(&[0]), false) }
    };
    (0..is_batched.len()).map(join).collect::<Result<_>>().map(Some)
}

#[test]
fn gradients_after_a_level_are_summed_where_an_input_had_no_batch() {
    super::for_all("gradients after a level", DType::F64, |def, sample| {
        if def.is(Traits::NOT_DIFFERENTIABLE) || is_left_out(def) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let slots = tensor_slots(&values);
        for batched in subsets(slots.len()) {
            let Ok(Some(expected)) = gradients_by_loop(def, &values, &batched) else { continue };
            match gradients_outside(def, &values, &batched) {
                Ok(Some(got)) => {
                    all_equal(&got, &expected, 1e-9).map_err(|e| format!("{batched:?}: {e}"))?;
                }
                Ok(None) => return Err(format!("{batched:?}: nothing was recorded")),
                Err(error) if is_refusal(def, error.message()) => return Ok(()),
                Err(error) => return Err(format!("{batched:?}: {}", text(error))),
            }
        }
        Ok(())
    });
}

#[test]
fn levels_nest() {
    super::for_all("nested batching", DType::F64, |def, sample| {
        compare(def, sample, |values, _| {
            // One more level inside, at which the first tensor that can be is batched.
            let slots = tensor_slots(values);
            let Some((_, _, first)) = slots.first() else { return Ok(Vec::new()) };
            let twice = ops::shape::join::stack(&[first.clone(), first.clone()], -1)?;
            let level = LevelGuard::new(2, Randomness::Error)?;
            let mut new: Vec<Tensor> = slots.iter().map(|(_, _, t)| t.clone()).collect();
            new[0] = add_dim(&twice, -1, level.id())?;
            let outputs = tensors(call(def, &args(&replace(values, &slots, &new)))?);
            outputs.iter().map(|t| remove_dim(t, level.id(), 2, -1)).collect()
        })
    });
}

/// The squares of the gradients of an op's results, in one number for each of `inputs`.
fn slopes(def: &'static OpDef, values: &[Value], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let outputs = tensors(call(def, &args(values))?);
    let roots: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).collect();
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let starts = roots.iter().map(|t| t.ones_like()).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options =
        BackwardOptions { allow_unused: true, create_graph: true, ..BackwardOptions::default() };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let grads = autograd::grad(&roots, &inputs, &starts, options)?;
    grads.iter().flatten().filter(|g| g.requires_grad()).map(|g| g.abs()?.square()?.sum()).collect()
}

fn second_gradients(slopes: &[Tensor], leaves: &[Tensor]) -> Result<Option<Vec<Tensor>>> {
    if slopes.is_empty() || leaves.is_empty() {
        return Ok(None);
    }
    let roots: Vec<&Tensor> = slopes.iter().collect();
    let starts = roots.iter().map(|t| t.ones_like()).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    let leaves: Vec<&Tensor> = leaves.iter().collect();
    let grads = autograd::grad(&roots, &leaves, &starts, options)?;
    let shown = |(grad, leaf): (Option<Tensor>, &&Tensor)| match grad {
        Some(grad) => Ok(grad),
        None => leaf.zeros_like(),
    };
    grads.into_iter().zip(&leaves).map(shown).collect::<Result<_>>().map(Some)
}

fn is_differentiable(def: &OpDef, (index, _, t): &(usize, usize, Tensor)) -> bool {
    t.dtype().is_differentiable() && !def.args[*index].not_differentiable
}

/// The gradient, after a level, of the squares of the gradients within it.
fn second_outside(
    def: &'static OpDef,
    values: &[Value],
    batched: &[bool],
) -> Result<Option<Vec<Tensor>>> {
    let slots = tensor_slots(values);
    let mut leaves = Vec::new();
    let slopes = {
        let level = LevelGuard::new(SIZE, Randomness::Error)?;
        let (mut new, mut inputs) = (Vec::new(), Vec::new());
        for (nr, slot) in slots.iter().enumerate() {
            let whole = if batched[nr] {
                ops::shape::join::stack(&examples(&slot.2), 0)?
            } else {
                slot.2.detach()?
            };
            let wants = is_differentiable(def, slot);
            if wants {
                whole.requires_grad_(true)?;
                leaves.push(whole.clone());
            }
            let input = if batched[nr] { add_dim(&whole, 0, level.id())? } else { whole };
            if wants {
                inputs.push(input.clone());
            }
            new.push(input);
        }
        let found = slopes(def, &replace(values, &slots, &new), &inputs)?;
        let whole = |t: &Tensor| remove_dim(t, level.id(), SIZE, 0);
        found.iter().map(whole).collect::<Result<Vec<_>>>()?
    };
    second_gradients(&slopes, &leaves)
}

fn second_by_loop(
    def: &'static OpDef,
    values: &[Value],
    batched: &[bool],
) -> Result<Option<Vec<Tensor>>> {
    let slots = tensor_slots(values);
    let mut all = Vec::new();
    for values in one_by_one(values, &slots, batched) {
        let own = tensor_slots(&values);
        let (mut new, mut leaves) = (Vec::new(), Vec::new());
        for slot in &own {
            let leaf = slot.2.detach()?;
            if is_differentiable(def, slot) {
                leaf.requires_grad_(true)?;
                leaves.push(leaf.clone());
            }
            new.push(leaf);
        }
        let found = slopes(def, &replace(&values, &own, &new), &leaves)?;
        let Some(grads) = second_gradients(&found, &leaves)? else { return Ok(None) };
        all.push(grads);
    }
    let is_batched: Vec<bool> = slots
        .iter()
        .zip(batched)
        .filter(|(slot, _)| is_differentiable(def, slot))
        .map(|(_, b)| *b)
        .collect();
    let join = |nr: usize| {
        let each: Vec<Tensor> = all.iter().map(|grads| grads[nr].clone()).collect();
        let stacked = ops::shape::join::stack(&each, 0)?;
        if is_batched[nr] { Ok(stacked) } else { stacked.sum_dim(Some(&[0]), false) }
    };
    (0..is_batched.len()).map(join).collect::<Result<_>>().map(Some)
}

#[test]
fn second_derivatives_go_through_a_level() {
    super::for_all("second derivatives through a level", DType::F64, |def, sample| {
        if def.is(Traits::NOT_DIFFERENTIABLE) || is_left_out(def) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let slots = tensor_slots(&values);
        for batched in subsets(slots.len()) {
            let Ok(Some(expected)) = second_by_loop(def, &values, &batched) else { continue };
            match second_outside(def, &values, &batched) {
                Ok(Some(got)) => {
                    all_equal(&got, &expected, 1e-8).map_err(|e| format!("{batched:?}: {e}"))?;
                }
                Ok(None) => return Err(format!("{batched:?}: nothing was recorded")),
                Err(error) if is_refusal(def, error.message()) => return Ok(()),
                Err(error) => return Err(format!("{batched:?}: {}", text(error))),
            }
        }
        Ok(())
    });
}
