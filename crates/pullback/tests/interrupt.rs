//! Calls are left in the middle: every op of the registry at any question, backwards between nodes, and what is left behind.
//!
//! A check that counts says yes at a question of a given number; with an interval of zero there is one wherever kernels look.

mod large;

use large::{GROWTHS, is_unset, large, run, with_threads};
use pullback::autograd::{self, BackwardOptions, call, call_inplace};
use pullback::dispatch::{Arg, OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{
    DType, Error, ErrorKind, Generator, Result, Tensor, TensorSpec, interrupt, manual_seed, memory,
    ops,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Live memory and the number of threads belong to the process: one test at a time.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs `work`, which is left at question number `last`; gives how many there were too.
fn left_at<R>(last: usize, work: impl FnOnce() -> Result<R>) -> (Result<R>, usize) {
    let checks = Cell::new(0);
    let check = || {
        checks.set(checks.get() + 1);
        if checks.get() < last { Ok(()) } else { Err(Error::value("left in the middle")) }
    };
    let result = interrupt::watch(Duration::ZERO, &check, work);
    (result, checks.get())
}

fn was_left<R>(result: &Result<R>) -> bool {
    result
        .as_ref()
        .is_err_and(|e| e.kind() == ErrorKind::Value && e.message() == "left in the middle")
}

/// What is wrong after a call was left at some of its questions; whether it asks any.
fn leave(def: &'static OpDef, values: &[Value]) -> std::result::Result<bool, String> {
    let Ok(expected) = run(def, values) else { return Ok(false) };
    let (all, count) = left_at(usize::MAX, || run(def, values));
    if all.map_err(|e| format!("{e:?}"))? != expected {
        return Err("a check that says nothing changes the result".into());
    }
    let live = memory::live_bytes();
    let chosen: BTreeSet<usize> = [1, 2, count / 2, count].into_iter().filter(|&k| k > 0).collect();
    for last in chosen {
        let (result, checks) = left_at(last, || run(def, values));
        // (How often is checks while a thread waits for another depends on these.)
        if checks >= last && !was_left(&result) {
            return Err(format!(
                "question {last} of {count} was answered, but: {:?}",
                result.err()
            ));
        }
        if memory::live_bytes() != live {
            return Err(format!(
                "{} bytes stay of {last}",
                memory::live_bytes() as i64 - live as i64
            ));
        }
        if !pullback::is_grad_enabled() || autograd::engine::current_task_id() != -1 {
            return Err(format!("the thread is not as it was, after question {last}"));
        }
        if run(def, values).ok().as_ref() != Some(&expected) {
            return Err(format!("the next call is another one, after question {last}"));
        }
    }
    Ok(count > 0)
}

#[test]
fn every_op_can_be_left_at_any_question_and_leaves_nothing_behind() {
    let _one = alone();
    let only = std::env::var("PULLBACK_OP").ok();
    let (mut failures, mut asking) = (Vec::new(), 0);
    for def in ops::registry().filter(|d| only.as_deref().is_none_or(|o| o == d.name)) {
        let Some(samples) = def.samples.filter(|_| !is_unset(def)) else { continue };
        let mut asks = false;
        'growths: for growth in GROWTHS[..2].iter().copied() {
            for sample in samples(&Sampler::new(DType::F32)) {
                let Ok(values) = sample.values(def) else { continue };
                let Ok(Some(values)) = large(def, growth, &values) else { continue };
                // (One thread alone is left at the same place each time: behind the last question of each loop too.)
                let result = with_threads(2, || leave(def, &values));
                match result.and_then(|asks| Ok(with_threads(1, || leave(def, &values))? || asks)) {
                    Ok(true) => asks = true,
                    Ok(false) => continue,
                    Err(text) => failures.push(format!("- {} {growth:?}: {text}", def.full_name())),
                }
                continue 'growths;
            }
        }
        asking += usize::from(asks);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{asking} ops ask");
    assert!(only.is_some() || asking > 350, "only {asking} ops ask");
}

fn numbers(n: i64) -> Result<Tensor> {
    manual_seed(5);
    let t = TensorSpec::of(&[n], DType::F32).empty()?;
    t.uniform_(0.0, 1.0)?;
    Ok(t)
}

#[test]
fn a_write_that_was_left_counts() -> Result<()> {
    let _one = alone();
    let x = numbers(1 << 20)?;
    let w = numbers(1 << 20)?.with_grad()?;
    let y = w.mul(&x)?.sum()?;
    let before = x.version();
    let def = ops::registry().find(|def| def.name == "exp").expect("there is one");
    // (One thread: of two, the other may have done all the work before the caller asks a third time.)
    let (result, _) = with_threads(1, || left_at(3, || call_inplace(def, &[Arg::Tensor(&x)])));
    assert!(was_left(&result) && x.version() == before + 1);
    let stale = y.backward().unwrap_err();
    assert!(stale.message().contains("modified by an inplace operation"), "{stale}");
    // An error of the op itself counts none.
    let other = numbers(3)?;
    assert!(x.add_(&other).is_err() && x.version() == before + 1);
    Ok(())
}

/// A chain of small ops.
fn chain(x: &Tensor, n: usize) -> Result<Tensor> {
    let mut y = x.clone();
    for _ in 0..n {
        y = (&y * 1.0001).get()?;
    }
    y.sum()
}

#[test]
fn a_backward_is_left_between_nodes_and_can_be_run_again() -> Result<()> {
    let _one = alone();
    let x = numbers(4)?.with_grad()?;
    let live = memory::live_bytes();
    let y = chain(&x, 2000)?;
    let retain = || BackwardOptions { retain_graph: Some(true), ..BackwardOptions::default() };
    let backward = || autograd::backward(&[&y], &[None], None, retain());
    let (_, count) = left_at(usize::MAX, backward);
    assert!(count > 100, "{count} questions");
    x.set_grad(None)?;
    for last in [1, 2, 7, count / 2, count] {
        let (result, _) = left_at(last, backward);
        assert!(was_left(&result) && x.grad().is_none(), "question {last}");
        assert_eq!(autograd::engine::current_task_id(), -1);
    }
    backward()?;
    assert!(x.grad().is_some());
    x.set_grad(None)?;
    drop(y);
    assert_eq!(memory::live_bytes(), live);
    Ok(())
}

#[test]
fn callers_that_wait_for_another_thread_are_left_too() -> Result<()> {
    let _one = alone();
    // One call of a decomposition, which nothing can cut, on a thread of its own.
    let a = numbers(600 * 600)?.to_dtype(DType::F64)?.view(&[600, 600])?;
    let svd = || a.linalg_svd(true).map(drop);
    let (start, (result, _)) = (Instant::now(), left_at(1, svd));
    assert!(was_left(&result), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(2));
    Ok(())
}

#[test]
fn a_generator_is_not_drawn_from_in_the_middle_of_a_draw() -> Result<()> {
    let _one = alone();
    let generator = Generator::new(3);
    let target = TensorSpec::of(&[1 << 20], DType::F32).empty()?;
    let def = ops::registry().find(|def| def.full_name() == "uniform_").expect("there is one");
    let values =
        Sample::of(target).with("generator", Value::Generator(generator.clone())).values(def)?;
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    let check = || generator.try_lock().map(drop);
    let error =
        interrupt::watch(Duration::ZERO, &check, || call(def, &args).map(drop)).unwrap_err();
    assert!(error.message().contains("in the middle of drawing"), "{error}");
    generator.try_lock().map(drop)?;
    call(def, &args).map(drop)
}

/// Calls that take about a second, a family each.
fn long_calls() -> Result<Vec<(&'static str, Sample)>> {
    let at = |shape: &[i64]| numbers(shape.iter().product())?.view(shape);
    let double = |shape: &[i64]| at(shape)?.to_dtype(DType::F64);
    let million = 1_000_000;
    let whole = at(&[10 * million])?.mul(&Tensor::wrapped(1e6)?)?.to_dtype(DType::I64)?;
    let one = |t: Tensor| Sample::of(t);
    let two = |a: Tensor, b: Tensor| Sample::new([Value::Tensor(a), Value::Tensor(b)]);
    Ok(vec![
        ("sort", one(at(&[10 * million])?)),
        ("topk", one(at(&[10 * million])?).with("k", 3_000_000_i64)),
        ("kthvalue", one(at(&[40 * million])?).with("k", 20_000_000_i64)),
        ("mode", one(whole.clone())),
        ("cumsum", one(at(&[60 * million])?).with("dim", 0_i64)),
        ("cummax", one(at(&[30 * million])?).with("dim", 0_i64)),
        ("logcumsumexp", one(at(&[8 * million])?).with("dim", 0_i64)),
        ("mm", two(at(&[1600, 1600])?, at(&[1600, 1600])?)),
        ("mm", two(at(&[60, 2 * million])?, at(&[2 * million, 60])?)),
        ("linalg_svd", one(double(&[400, 400])?)),
        ("linalg_eigh", one(double(&[600, 600])?)),
        ("linalg_qr", one(double(&[900, 900])?)),
        ("linalg_inv", one(double(&[1200, 1200])?)),
        ("conv2d", two(at(&[1, 32, 400, 400])?, at(&[64, 32, 5, 5])?)),
        ("conv1d", two(at(&[1, 1, 4 * million])?, at(&[1, 1, 51])?)),
        (
            "max_pool2d",
            one(at(&[1, 1, 4000, 4000])?)
                .with("kernel_size", Value::Ints([3, 3].into()))
                .with("stride", Value::Ints([1, 1].into())),
        ),
        ("softmax", one(at(&[40 * million])?).with("dim", 0_i64)),
        ("exp", one(double(&[30 * million])?)),
        ("lgamma", one(double(&[10 * million])?)),
        ("normal_", one(at(&[20 * million])?)),
        ("multinomial", one(at(&[5 * million])?).with("num_samples", 1_000_000_i64)),
        ("isin", two(whole.narrow(0, 0, 2 * million)?, whole.clone())),
        ("nonzero", one(at(&[40 * million])?)),
        ("take", two(at(&[10 * million])?, whole)),
    ])
}

/// The longest time between two questions of a call.
fn longest_gap(def: &'static OpDef, values: &[Value]) -> Result<Duration> {
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    let last = Cell::new(Instant::now());
    let longest = Cell::new(Duration::ZERO);
    let look = || {
        let now = Instant::now();
        longest.set(longest.get().max(now - last.replace(now)));
    };
    let check = || {
        look();
        Ok(())
    };
    interrupt::watch(Duration::ZERO, &check, || call(def, &args).map(drop))?;
    look();
    Ok(longest.get())
}

#[test]
fn no_long_call_goes_a_quarter_of_a_second_without_a_question() -> Result<()> {
    let _one = alone();
    let most = Duration::from_millis(250);
    let mut failures = Vec::new();
    for (name, sample) in long_calls()? {
        let find = |def: &&OpDef| {
            def.name == name && sample.values(def).is_ok() && !def.is(Traits::INTERNAL)
        };
        let def = ops::registry().find(find).unwrap_or_else(|| panic!("{name}"));
        let values = sample.values(def)?;
        for threads in [1, 2] {
            // (The machine may be busy with something else for a while.)
            let mut gap = most;
            for _ in 0..4 {
                let start = Instant::now();
                gap = gap.min(with_threads(threads, || longest_gap(def, &values))?);
                println!(
                    "{name}, {threads} threads: {:?}, {gap:?} without a check",
                    start.elapsed()
                );
                if gap < most {
                    break;
                }
            }
            if gap >= most {
                failures.push(format!("{name} with {threads} threads"));
            }
        }
    }
    assert!(failures.is_empty(), "without a check for too long: {failures:?}");
    Ok(())
}
