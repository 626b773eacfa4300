//! Memory that is not there: whichever request of whichever op is refused, the call gives an `OutOfMemoryError`, loses no
//! memory, leaves tensors as they were and works when it is made again. And nobody insists on memory whose size depends on
//! shapes or data: that would end the process.
//!
//! `PULLBACK_OP=name` restricts a run to one op.

mod allocator;
#[path = "../registry/mod.rs"]
#[allow(dead_code, reason = "each test uses some of it")]
mod registry;

use allocator::{live, noting, refusing, remembering};
use pullback::autograd::batch::{LevelGuard, Randomness, add_dim, remove_dim};
use pullback::autograd::{self, BackwardOptions, call, call_inplace, call_out};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::Sample;
use pullback::threads::set_num_threads;
use pullback::{C128, DType, ErrorKind, Layout, Result, Tensor, manual_seed, memory};
use registry::{agree, args, copy_of, for_all, is_unset, replace, tensor_slots, tensors, text};
use std::fmt::Write as _;

type Checked = std::result::Result<(), String>;

/// The tensors of a call, by where they stand.
type Slots = Vec<(usize, usize, Tensor)>;

/// The bits of a tensor's elements, and its version.
type State = (Vec<[u64; 2]>, u32);

fn state(tensor: &Tensor) -> Result<State> {
    let version = tensor.version();
    let plain = if tensor.is_sparse() { tensor.to_dense(None)? } else { tensor.detach()? };
    let bits = plain.to_vec::<C128>()?.into_iter().map(|v| [v.re.to_bits(), v.im.to_bits()]);
    Ok((bits.collect(), version))
}

fn states(tensors: &[Tensor]) -> std::result::Result<Vec<State>, String> {
    tensors.iter().map(state).collect::<Result<_>>().map_err(text)
}

/// Which requests to refuse: all of the first ones, then ever fewer.
fn next(number: usize) -> usize {
    number + 1 + number / 24
}

/// Refuses one request after the other of `work`, which is prepared by `prepare`. `before` are tensors that must not change
/// when it fails.
fn refuse_each<P>(
    what: &str,
    prepare: impl Fn() -> Result<P>,
    work: impl Fn(&P) -> Result<Vec<Tensor>>,
    watched: impl Fn(&P) -> Vec<Tensor>,
    is_same: impl Fn(&[Tensor], &[Tensor]) -> Checked,
) -> Checked {
    // Twice: what is made once stays.
    let mut expected = Vec::new();
    for _ in 0..2 {
        let prepared = prepare().map_err(text)?;
        let Ok(outputs) = work(&prepared) else { return Ok(()) };
        expected = outputs;
    }
    let mut number = 0;
    loop {
        let at = || format!("{what}, request {number}");
        let mut lost = 0;
        let mut is_over = false;
        // A second time where memory is missing: lists that grew once do not grow again.
        for _ in 0..3 {
            memory::empty_cache();
            let held = live();
            let prepared = prepare().map_err(text)?;
            let tensors = watched(&prepared);
            let before = states(&tensors)?;
            let (result, was_refused) = refusing(number, || work(&prepared));
            let has_failed = result.is_err();
            match result {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => drop(error),
                Err(error) => return Err(format!("{}: {}", at(), text(error))),
                Ok(_) if !was_refused => is_over = true,
                // What was refused was asked for again, with success: a block that ran once more.
                Ok(outputs) => is_same(&outputs, &expected)
                    .map_err(|bad| format!("{}: nothing is said of it, but {bad}", at()))?,
            }
            if is_over {
                break;
            }
            if has_failed && states(&tensors)? != before {
                return Err(format!("{}: a tensor has changed", at()));
            }
            drop((prepared, tensors, before));
            drop(pullback::take_warnings());
            memory::empty_cache();
            lost = live() - held;
            if lost <= 0 {
                break;
            }
        }
        if is_over {
            break;
        }
        if lost > 0 {
            let mut text = format!("{}: {lost} bytes are lost, taken", at());
            for trace in remembering(|| {
                if let Ok(prepared) = prepare() {
                    drop(refusing(number, || work(&prepared)));
                }
                memory::empty_cache();
            }) {
                let _ = write!(text, "\n    {}", place(&trace.to_string()));
            }
            return Err(text);
        }
        number = next(number);
    }
    let prepared = prepare().map_err(text)?;
    let outputs = work(&prepared).map_err(text)?;
    is_same(&outputs, &expected).map_err(|bad| format!("{what}, afterwards: {bad}"))
}

/// Copies of the tensors of a call, and the call with them.
fn copied(values: &[Value]) -> Result<(Vec<Value>, Vec<Tensor>)> {
    let slots = tensor_slots(values);
    let copies = slots.iter().map(|(_, _, t)| copy_of(t)).collect::<Result<Vec<_>>>()?;
    Ok((replace(values, &slots, &copies), copies))
}

fn functional(def: &'static OpDef, values: &[Value]) -> Checked {
    refuse_each(
        "functional",
        || copied(values),
        |(values, _)| {
            manual_seed(1);
            call(def, &args(values)).map(tensors)
        },
        |(_, copies)| copies.clone(),
        |got, expected| agree(def, got, expected, 0.0),
    )
}

fn inplace(def: &'static OpDef, values: &[Value]) -> Checked {
    if !def.is(Traits::INPLACE) {
        return Ok(());
    }
    refuse_each(
        "in place",
        || copied(values),
        |(values, _)| {
            manual_seed(1);
            Ok(vec![call_inplace(def, &args(values))?])
        },
        |(_, copies)| copies.clone(),
        |got, expected| agree(def, got, expected, 0.0),
    )
}

/// The same on lazy clones, whose bytes have to be copied for the write: neither they nor their sources change if there is no
/// memory for that.
fn inplace_on_lazy_clones(def: &'static OpDef, values: &[Value]) -> Checked {
    if !def.is(Traits::INPLACE) || tensor_slots(values).iter().any(|slot| slot.2.is_sparse()) {
        return Ok(());
    }
    refuse_each(
        "in place on lazy clones",
        || {
            let slots = tensor_slots(values);
            let (_, sources) = copied(values)?;
            let clones = sources.iter().map(Tensor::lazy_clone).collect::<Result<Vec<_>>>()?;
            Ok((replace(values, &slots, &clones), sources, clones))
        },
        |(values, _, _)| {
            manual_seed(1);
            Ok(vec![call_inplace(def, &args(values))?])
        },
        |(_, sources, clones)| sources.iter().chain(clones).cloned().collect(),
        |got, expected| agree(def, got, expected, 0.0),
    )
}

fn out(def: &'static OpDef, values: &[Value]) -> Checked {
    if !def.is(Traits::OUT) {
        return Ok(());
    }
    manual_seed(1);
    let Ok(shown) = call(def, &args(values)).map(tensors) else { return Ok(()) };
    refuse_each(
        "out=",
        || {
            let (values, copies) = copied(values)?;
            let outs = shown.iter().map(Tensor::ones_like).collect::<Result<Vec<_>>>()?;
            Ok((values, copies, outs))
        },
        |(values, _, outs)| {
            manual_seed(1);
            call_out(def, &args(values), &outs.iter().collect::<Vec<_>>())?;
            Ok(outs.clone())
        },
        |(_, copies, outs)| copies.iter().chain(outs).cloned().collect(),
        |got, expected| agree(def, got, expected, 0.0),
    )
}

/// The inputs that gradients are asked for, and the results that have some.
type Graph = (Vec<Tensor>, Vec<Tensor>);

/// Copies of the tensors of a call, the call with them, and those of them whose gradients are asked for.
fn leaves(def: &'static OpDef, values: &[Value]) -> Result<(Vec<Value>, Vec<Tensor>, Vec<Tensor>)> {
    let (values, copies) = copied(values)?;
    let slots = tensor_slots(&values);
    let is_input = |(index, _, t): &&(usize, usize, Tensor)| {
        t.dtype().is_differentiable() && !def.args[*index].not_differentiable
    };
    let inputs: Vec<Tensor> = slots.iter().filter(is_input).map(|slot| slot.2.clone()).collect();
    inputs.iter().try_for_each(|input| input.requires_grad_(true).map(drop))?;
    Ok((values, copies, inputs))
}

fn graph(def: &'static OpDef, values: &[Value]) -> Result<Graph> {
    let (values, _copies, inputs) = leaves(def, values)?;
    manual_seed(1);
    let outputs = call(def, &args(&values)).map(tensors)?;
    Ok((inputs, outputs.into_iter().filter(Tensor::requires_grad).collect()))
}

/// The call whose node is made: what it writes beside its results (running statistics) stays too.
fn recorded(def: &'static OpDef, sample: &Sample, values: &[Value]) -> Checked {
    if !sample.differentiable || def.is(Traits::NOT_DIFFERENTIABLE) || is_unset(def) {
        return Ok(());
    }
    // (Written arguments cannot be leaves.)
    match graph(def, values) {
        Ok((_, roots)) if !roots.is_empty() => {}
        _ => return Ok(()),
    }
    let plain = |outputs: &[Tensor]| outputs.iter().map(Tensor::detach).collect::<Result<Vec<_>>>();
    refuse_each(
        "recorded",
        || leaves(def, values),
        |(values, _, _)| {
            manual_seed(1);
            call(def, &args(values)).map(tensors)
        },
        |(_, copies, _)| copies.clone(),
        |got, expected| {
            agree(def, &plain(got).map_err(text)?, &plain(expected).map_err(text)?, 0.0)
        },
    )
}

fn gradients((inputs, roots): &Graph, starts: &[Tensor]) -> Result<Vec<Tensor>> {
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let (roots, inputs): (Vec<_>, Vec<_>) = (roots.iter().collect(), inputs.iter().collect());
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    Ok(autograd::grad(&roots, &inputs, &starts, options)?.into_iter().flatten().collect())
}

fn backward(def: &'static OpDef, sample: &Sample, values: &[Value]) -> Checked {
    if !sample.differentiable || def.is(Traits::NOT_DIFFERENTIABLE) || is_unset(def) {
        return Ok(());
    }
    // (Written arguments cannot be leaves.)
    match graph(def, values) {
        Ok((_, roots)) if !roots.is_empty() => {}
        _ => return Ok(()),
    }
    refuse_each(
        "backward",
        || {
            let graph = graph(def, values)?;
            let starts = graph.1.iter().map(Tensor::ones_like).collect::<Result<Vec<_>>>()?;
            Ok((graph, starts))
        },
        |(graph, starts)| gradients(graph, starts),
        |((inputs, _), starts)| inputs.iter().chain(starts).cloned().collect(),
        |got, expected| agree(def, got, expected, 0.0),
    )
}

/// Examples in a batch.
const SIZE: i64 = 2;

fn batched(def: &'static OpDef, values: &[Value]) -> Checked {
    let slots = tensor_slots(values);
    let is_written = def.schema().args.iter().any(|arg| arg.alias.is_some_and(|a| a.is_write));
    if def.is(Traits::RANDOM) || is_unset(def) || is_written || slots.is_empty() {
        return Ok(());
    }
    let stack = |t: &Tensor| pullback::ops::shape::join::stack(&[t.clone(), t.clone()], 0);
    let stacked = slots.iter().map(|slot| stack(&slot.2)).collect::<Result<Vec<_>>>();
    let Ok(stacked) = stacked else { return Ok(()) };
    refuse_each(
        "batched",
        || Ok(stacked.clone()),
        |stacked| {
            let level = LevelGuard::new(SIZE, Randomness::Error)?;
            let inputs = stacked.iter().map(|t| add_dim(t, 0, level.id()));
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            let outputs = tensors(call(def, &args(&replace(values, &slots, &inputs)))?);
            outputs.iter().map(|t| remove_dim(t, level.id(), SIZE, 0)).collect()
        },
        Vec::clone,
        |got, expected| agree(def, got, expected, 0.0),
    )
}

/// With the first tensor that can be in coordinate lists so, and in compressed rows.
fn sparse(def: &'static OpDef, values: &[Value]) -> Checked {
    if def.kernels.sparse_coo.is_none() || def.is(Traits::RANDOM) || is_unset(def) {
        return Ok(());
    }
    let slots = tensor_slots(values);
    let can_be = |slot: &&(usize, usize, Tensor)| slot.2.ndim() > 0 && slot.2.dtype() == DType::F64;
    let Some(first) = slots.iter().find(can_be) else { return Ok(()) };
    let layouts = if first.2.ndim() == 2 {
        &[Layout::SparseCoo, Layout::SparseCsr][..]
    } else {
        &[Layout::SparseCoo]
    };
    for &layout in layouts {
        let given = first.2.to_sparse_with(Some(layout), None, None).map_err(text)?;
        let new: Vec<Tensor> = slots
            .iter()
            .map(
                |(index, n, t)| {
                    if (*index, *n) == (first.0, first.1) { given.clone() } else { t.clone() }
                },
            )
            .collect();
        let values = replace(values, &slots, &new);
        let dense = |outputs: &[Tensor]| {
            outputs.iter().map(|t| t.to_dense(None)).collect::<Result<Vec<_>>>()
        };
        refuse_each(
            &format!("{layout:?}"),
            || Ok(values.clone()),
            |values| call(def, &args(values)).map(tensors),
            |values| tensor_slots(values).into_iter().map(|slot| slot.2).collect(),
            |got, expected| {
                agree(def, &dense(got).map_err(text)?, &dense(expected).map_err(text)?, 0.0)
            },
        )?;
    }
    Ok(())
}

#[test]
fn a_refused_request_is_an_error_and_nothing_else() {
    set_num_threads(1);
    memory::set_cache_limit(0);
    for_all("memory that is not there", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        functional(def, &values)?;
        inplace(def, &values)?;
        inplace_on_lazy_clones(def, &values)?;
        out(def, &values)?;
        recorded(def, sample, &values)?;
        backward(def, sample, &values)?;
        batched(def, &values)?;
        sparse(def, &values)
    });
}

/// Elements of the larger tensors, about.
const ELEMENTS: i64 = 1 << 15;
/// So many tensors take more than any list of them.
const MANY: usize = 1000;
/// Files whose lists are bounded by constants, but larger ones, as their own text says.
const BOUNDED: [&str; 1] = ["reduce/columns.rs"];
/// Bytes of requests that depend on sizes, and not on constants, where tensors have so many elements.
const LARGE: usize = 100 << 10;

/// The tensors with more elements: along the first dimension, the last one, or all.
fn grown(slots: &Slots, elements: i64) -> Vec<Vec<Tensor>> {
    let most = slots.iter().map(|slot| slot.2.numel()).max().unwrap_or(0).max(1);
    let times = (elements / most).max(1);
    let repeated = |t: &Tensor, repeats: &dyn Fn(usize) -> i64| -> Result<Tensor> {
        let repeats: Vec<i64> = (0..t.ndim()).map(repeats).collect();
        t.repeat(&repeats)
    };
    let ways: [&dyn Fn(usize, usize) -> i64; 3] = [
        &|dim, _| if dim == 0 { times } else { 1 },
        &|dim, rank| if dim + 1 == rank { times } else { 1 },
        &|_, rank| (times as f64).powf(1.0 / rank.max(1) as f64) as i64,
    ];
    let all = ways.iter().map(|way| {
        let one = |slot: &(usize, usize, Tensor)| repeated(&slot.2, &|dim| way(dim, slot.2.ndim()));
        slots.iter().map(one).collect::<Result<Vec<_>>>()
    });
    all.filter_map(Result::ok).collect()
}

/// The innermost frames of the library's own.
fn place(trace: &str) -> String {
    let is_own = |line: &&str| line.contains("crates/") && !line.contains("tests/");
    let lines: Vec<&str> = trace.lines().filter(is_own).map(str::trim).take(6).collect();
    lines.join(" < ")
}

/// The forms that write, on tensors so large that kernels work in several blocks, on several threads: a block that finds no
/// memory when others have written already leaves no result in part.
#[test]
fn a_refused_block_leaves_no_result_in_part() {
    set_num_threads(2);
    memory::set_cache_limit(0);
    for_all("memory that a block misses", DType::F32, |def, sample| {
        if is_unset(def) || def.is(Traits::RANDOM) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let slots = tensor_slots(&values);
        let Some(larger) = grown(&slots, ELEMENTS / 4).into_iter().next() else { return Ok(()) };
        let values = replace(&values, &slots, &larger);
        // (Results that grow with a power of the sizes say nothing more.)
        let (result, _) = noting(usize::MAX, || call(def, &args(&values)).map(tensors));
        let elements = |outputs: Vec<Tensor>| outputs.iter().map(Tensor::numel).sum::<i64>();
        if result.map_or(true, |outputs| elements(outputs) > 4 * ELEMENTS) {
            return Ok(());
        }
        inplace(def, &values)?;
        out(def, &values)
    });
}

/// Bytes of address space for the whole test: results that grow with a power of the sizes are refused at once.
const SPACE: u64 = 1 << 30;

/// Sets the limit of the process.
#[cfg(unix)]
fn limit_address_space(bytes: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a valid place.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max.min(bytes);
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const limit), 0);
    }
}

#[cfg(unix)]
#[test]
fn nobody_insists_on_memory_whose_size_depends_on_shapes() {
    set_num_threads(1);
    limit_address_space(SPACE);
    let seen = std::cell::RefCell::new(std::collections::BTreeSet::new());
    for_all("what insists on memory", DType::F64, |def, sample| {
        if is_unset(def) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let slots = tensor_slots(&values);
        let mut bad = String::new();
        for larger in grown(&slots, ELEMENTS) {
            let values = replace(&values, &slots, &larger);
            manual_seed(1);
            let tensors = |outputs| tensors(outputs).len() + slots.len();
            if call(def, &args(&values)).map(tensors).is_ok_and(|n| n > MANY) {
                continue;
            }
            let ((), noted) = noting(LARGE, || {
                manual_seed(1);
                let _ = call(def, &args(&values));
                if sample.differentiable
                    && let Ok(graph) = graph(def, &values)
                {
                    let starts = graph.1.iter().map(Tensor::ones_like).collect::<Result<Vec<_>>>();
                    let _ = starts.and_then(|starts| gradients(&graph, &starts));
                }
            });
            for (bytes, trace) in noted {
                let place = place(&trace.to_string());
                if BOUNDED.iter().any(|file| place.contains(file)) {
                    continue;
                }
                if seen.borrow_mut().insert(place.clone()) {
                    let _ = write!(bad, "\n    {bytes} bytes: {place}");
                }
            }
        }
        if bad.is_empty() { Ok(()) } else { Err(bad) }
    });
}
