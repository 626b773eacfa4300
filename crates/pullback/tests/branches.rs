//! Branches of a graph that run at the same time: the same bits as on one thread, and nothing that a program could see of it.
//!
//! `PULLBACK_REPEAT=1000` repeats the comparison of random graphs so often, for each of 1 to 8 threads.

use pullback::autograd::engine::queue_callback;
use pullback::autograd::{self, BackwardOptions, Custom, Node, mode};
use pullback::threads::{Branches, num_threads, set_branches, set_num_threads};
use pullback::{Error, Result, Tensor, memory, no_grad};
use pullback_kernels::parallel::last_job;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of threads and the setting belong to the process: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

struct Restored(usize, #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);
impl Drop for Restored {
    fn drop(&mut self) {
        set_num_threads(self.0);
        set_branches(Branches::WhenLarge);
    }
}

/// Restores the settings at its end.
fn alone() -> Restored {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    Restored(num_threads(), guard)
}

/// Runs `work` on so many threads, with every stretch that may branched.
fn on<R>(threads: usize, work: impl FnOnce() -> R) -> R {
    set_num_threads(threads);
    set_branches(Branches::Always);
    work()
}

/// Runs `work` node after node.
fn in_order<R>(work: impl FnOnce() -> R) -> R {
    set_num_threads(1);
    set_branches(Branches::Never);
    work()
}

/// Numbers that are the same for a seed (`SplitMix64`).
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn tensor(&mut self, shape: &[i64]) -> Tensor {
        let count = shape.iter().product::<i64>();
        let one = |_| (self.next() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        let data: Vec<f64> = (0..count).map(one).collect();
        Tensor::from_slice(&data, shape).unwrap()
    }
}

/// A graph that a seed stands for: its leaves, inner tensors, root.
struct Graph {
    leaves: Vec<Tensor>,
    inner: Vec<Tensor>,
    root: Tensor,
}

/// Sizes of the matrices of a graph: square, so that all fit each other.
fn size(random: &mut Random) -> i64 {
    [1, 3, 8, 96][random.below(4)]
}

/// One more tensor, made of some that there are.
fn grow(random: &mut Random, all: &[Tensor]) -> Result<Vec<Tensor>> {
    let a = &all[random.below(all.len())];
    let b = &all[random.below(all.len())];
    let n = a.shape()[0];
    Ok(match random.below(12) {
        0 => vec![a.mul(b)?],
        1 => vec![a.add(b)?],
        2 => vec![a.sin()?],
        3 => vec![a.mm(b)?.tanh()?],
        // Several outputs, of which some may get no gradient.
        4 => {
            let rows = a.unbind(0)?;
            let from = random.below(rows.len());
            vec![rows[from].unsqueeze(0)?.expand(&[n, n], false)?.mul(b)?]
        }
        5 => {
            let parts = a.split_with_sizes(&[n / 2, n - n / 2], 0)?;
            vec![Tensor::cat(&[&parts[1], &parts[0]], 0)?]
        }
        // A gradient that is broadcast, and one of another dtype.
        6 => vec![a.sum_dim(Some(&[0]), true)?.mul(b)?],
        7 => vec![a.to_dtype(pullback::DType::F32)?.exp()?.to_dtype(pullback::DType::F64)?],
        8 => vec![a.t()?],
        9 => vec![a.add(b)?, a.sub(b)?, a.mul(a)?],
        10 if n <= 8 => {
            let eye = Tensor::eye(n)?.to_dtype(pullback::DType::F64)?;
            vec![a.mul(&Tensor::wrapped(0.01)?)?.add(&eye)?.linalg_inv()?]
        }
        _ => vec![a.cumsum(0)?],
    })
}

impl Graph {
    fn new(seed: u64) -> Result<Graph> {
        let mut random = Random(seed);
        let n = size(&mut random);
        let mut all = Vec::new();
        for _ in 0..2 + random.below(3) {
            all.push(random.tensor(&[n, n]).with_grad()?);
        }
        let leaves = all.clone();
        for _ in 0..5 + random.below(25) {
            let new = grow(&mut random, &all)?;
            all.extend(new);
        }
        // (Some of the last ones lead to the root, others get no gradient.)
        let mut root = all[all.len() - 1].sum()?;
        for tensor in all.iter().rev().skip(1).take(1 + random.below(6)) {
            root = root.add(&tensor.sin()?.sum()?)?;
        }
        Ok(Graph { inner: all.split_off(leaves.len()), leaves, root })
    }

    /// All gradients that one can ask for, as bits, in the ways that one can.
    fn gradients(&self) -> Result<Vec<Option<Vec<u64>>>> {
        let bits = |grad: Option<Tensor>| -> Result<Option<Vec<u64>>> {
            let Some(grad) = grad else { return Ok(None) };
            let strides = grad.strides().iter().map(|&stride| stride as u64).collect::<Vec<_>>();
            let bits = grad.to_vec::<f64>()?.into_iter().map(f64::to_bits);
            Ok(Some(bits.chain(strides).collect()))
        };
        let mut found = Vec::new();
        // Twice, so that gradients are added to those that are there.
        for _ in 0..2 {
            autograd::backward(&[&self.root], &[None], None, retain())?;
        }
        for leaf in &self.leaves {
            found.push(bits(leaf.grad())?);
            leaf.set_grad(None)?;
        }
        let middle = &self.inner[self.inner.len() / 2];
        let inputs = [&self.leaves[0], middle, &self.leaves[1]];
        let captured = autograd::grad(&[&self.root], &inputs, &[None], retain())?;
        for grad in captured {
            found.push(bits(grad)?);
        }
        let only = [&self.leaves[1]];
        autograd::backward(&[&self.root], &[None], Some(&only), retain())?;
        for leaf in &self.leaves {
            found.push(bits(leaf.grad())?);
            leaf.set_grad(None)?;
        }
        Ok(found)
    }
}

fn retain() -> BackwardOptions {
    BackwardOptions { retain_graph: Some(true), allow_unused: true, ..BackwardOptions::default() }
}

fn repetitions(normally: usize) -> usize {
    let asked = std::env::var("PULLBACK_REPEAT").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(normally)
}

#[test]
fn random_graphs_have_the_same_gradients_on_any_number_of_threads() -> Result<()> {
    let _alone = alone();
    let mut shared = 0;
    for seed in 0..60 {
        let graph = in_order(|| Graph::new(seed))?;
        let expected = in_order(|| graph.gradients())?;
        for threads in [1, 2, 3, 8] {
            let before = last_job();
            assert!(on(threads, || graph.gradients())? == expected, "{seed}, {threads} threads");
            shared += usize::from(threads > 1 && last_job() != before);
        }
    }
    assert!(shared > 100, "branches ran at the same time in {shared} runs");
    Ok(())
}

#[test]
fn one_graph_repeated_has_the_same_gradients_each_time() -> Result<()> {
    let _alone = alone();
    let graphs = [3, 14, 15].map(|seed| in_order(|| Graph::new(seed)));
    for graph in graphs {
        let graph = graph?;
        let expected = in_order(|| graph.gradients())?;
        for threads in 1..=8 {
            for round in 0..repetitions(15) {
                let found = on(threads, || graph.gradients())?;
                assert!(found == expected, "{threads} threads, repetition {round}");
            }
        }
    }
    Ok(())
}

/// Two branches of so many nodes from one leaf each, and a shared one, to one root; every node is large enough to count.
fn two_branches(nodes: usize, elements: i64) -> Result<([Tensor; 3], Tensor)> {
    let mut random = Random(1);
    let [a, b, w] = [(); 3].map(|()| random.tensor(&[elements]).with_grad());
    let (a, b, w) = (a?, b?, w?);
    let branch = |x: &Tensor| -> Result<Tensor> {
        let mut y = x.mul(&w)?;
        for _ in 0..nodes {
            y = y.sin()?;
        }
        y.sum()
    };
    let root = branch(&a)?.add(&branch(&b)?)?;
    Ok(([a, b, w], root))
}

#[test]
fn large_branches_run_at_the_same_time_and_small_ones_do_not() -> Result<()> {
    let _alone = alone();
    set_num_threads(2);
    set_branches(Branches::WhenLarge);
    let job_count = |nodes, elements| -> Result<bool> {
        let (_, root) = two_branches(nodes, elements)?;
        let before = last_job();
        root.backward()?;
        Ok(last_job() != before)
    };
    // (Of a size at which no kernel shares its work.)
    assert!(job_count(20, 1 << 14)?);
    assert!(!job_count(20, 100)?, "small nodes");
    assert!(!job_count(1, 1 << 13)?, "too few to pay");
    set_branches(Branches::Never);
    assert!(!job_count(20, 1 << 14)?, "forbidden");
    set_branches(Branches::WhenLarge);
    mode::set_multithreading_enabled(false);
    let found = job_count(20, 1 << 14);
    mode::set_multithreading_enabled(true);
    assert!(!found?, "forbidden on this thread");
    set_num_threads(1);
    assert!(!job_count(20, 1 << 14)?, "one thread");
    Ok(())
}

/// Keeps what hooks saw, in their order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);
impl Log {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// What a hook can see of leaves: the sums of their gradients.
fn seen(name: &str, leaves: &[Tensor]) -> String {
    let sums = leaves.iter().map(|leaf| {
        let _off = no_grad();
        leaf.grad().map(|grad| grad.sum().unwrap().to_vec::<f64>().unwrap()[0].to_bits())
    });
    let thread = std::thread::current().name().unwrap_or_default().to_owned();
    format!("{name} on {thread}: {:?}", sums.collect::<Vec<_>>())
}

#[test]
fn hooks_see_what_they_see_on_one_thread() -> Result<()> {
    let _alone = alone();
    for seed in 0..40 {
        let log = Log::default();
        let graph = in_order(|| Graph::new(seed))?;
        let mut random = Random(seed + 1000);
        for nr in 0..4 {
            let at = random.below(graph.inner.len());
            let (log, leaves) = (log.clone(), graph.leaves.clone());
            let note = move |_: Option<&Tensor>| {
                log.note(seen(&format!("tensor {nr}"), &leaves));
                Ok(None)
            };
            graph.inner[at].register_hook(Arc::new(note))?;
        }
        let leaf = random.below(graph.leaves.len());
        let (its, leaves) = (log.clone(), graph.leaves.clone());
        let note = move |_: &Tensor| {
            its.note(seen("leaf", &leaves));
            Ok(())
        };
        graph.leaves[leaf].register_post_accumulate_grad_hook(Arc::new(note))?;
        let retained = random.below(graph.inner.len());
        graph.inner[retained].retain_grad()?;
        let run = || -> Result<_> {
            let found = graph.gradients()?;
            graph.inner[retained].set_grad(None)?;
            Ok((found, log.take()))
        };
        let expected = in_order(run)?;
        assert!(!expected.1.is_empty());
        for threads in [2, 3, 8] {
            assert!(on(threads, run)? == expected, "{seed}, {threads} threads");
        }
    }
    Ok(())
}

/// The gradients of leaves, as bits.
fn bits(leaves: &[Tensor]) -> Vec<Option<Vec<u64>>> {
    let one = |leaf: &Tensor| {
        let values = leaf.grad()?.to_vec::<f64>().unwrap();
        Some(values.into_iter().map(f64::to_bits).collect())
    };
    leaves.iter().map(one).collect()
}

/// A graph of eight branches; in those listed a value that backward needs is overwritten, so that they fail.
fn broken(branches: &[usize], elements: i64) -> Result<(Vec<Tensor>, Vec<Tensor>, Tensor)> {
    let mut random = Random(5);
    let shared = random.tensor(&[elements]).with_grad()?;
    let (mut leaves, mut ends) = (vec![shared.clone()], Vec::new());
    let mut root = Tensor::wrapped(0.0)?.to_dtype(pullback::DType::F64)?;
    for branch in 0..8 {
        let x = random.tensor(&[elements]).with_grad()?;
        let inner = x.mul(&shared)?.exp()?;
        let end = inner.mul(&inner)?.sin()?.sum()?;
        if branches.contains(&branch) {
            let _off = no_grad();
            inner.add_(&Tensor::wrapped(branch as f64)?)?;
        }
        root = root.add(&end)?;
        leaves.push(x);
        ends.push(end);
    }
    Ok((leaves, ends, root))
}

#[test]
fn the_error_is_the_first_of_one_threads_run_and_leaves_what_that_leaves() -> Result<()> {
    let _alone = alone();
    for branches in [&[2_usize][..], &[7], &[0], &[1, 5], &[3, 4, 6]] {
        for elements in [10, 20_000] {
            let run = || -> Result<_> {
                let (leaves, ends, root) = broken(branches, elements)?;
                let error = root.backward().unwrap_err().message().to_owned();
                let after = bits(&leaves);
                // Which branches have been freed?
                let freed: Vec<bool> = ends.iter().map(|end| end.backward().is_err()).collect();
                Ok((error, after, freed))
            };
            let expected = in_order(run)?;
            assert!(expected.0.contains("modified by an inplace operation"), "{}", expected.0);
            for threads in [2, 3, 8] {
                for _ in 0..repetitions(20).min(100) {
                    let found = on(threads, run)?;
                    // (Lines of the program differ with the line that calls.)
                    assert_eq!(found.0, expected.0);
                    assert!(found.1 == expected.1, "gradients after {branches:?}, {threads}");
                    assert_eq!(found.2, expected.2, "freed graphs, {branches:?}, {threads}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn custom_functions_run_in_order_on_the_calling_thread() -> Result<()> {
    let _alone = alone();
    let log = Log::default();
    let its = log.clone();
    let noted = Custom::new(
        "Noted",
        |_, [x]| x.clone_tensor(None),
        move |_, grad: Tensor| -> Result<[Option<Tensor>; 1]> {
            let sum = grad.sum()?.to_vec::<f64>()?[0].to_bits();
            its.note(format!("{sum} on {:?}", std::thread::current().id()));
            Ok([Some(grad)])
        },
    );
    let mut random = Random(8);
    let x = random.tensor(&[300]).with_grad()?;
    let mut root = x.sum()?;
    for nr in 0..12 {
        let y = x.mul(&random.tensor(&[300]))?.sin()?;
        let y = if nr % 3 == 0 { noted.apply([&y])? } else { y };
        root = root.add(&y.exp()?.cos()?.sum()?)?;
    }
    let run = || -> Result<_> {
        autograd::backward(&[&root], &[None], None, retain())?;
        let found = bits(std::slice::from_ref(&x));
        x.set_grad(None)?;
        Ok((found, log.take()))
    };
    let expected = in_order(run)?;
    assert_eq!(expected.1.len(), 4);
    for threads in [2, 3, 8] {
        for _ in 0..20 {
            assert!(on(threads, run)? == expected, "{threads} threads");
        }
    }
    Ok(())
}

#[test]
fn a_graph_of_the_backward_has_the_numbers_that_one_thread_gives_it() -> Result<()> {
    let _alone = alone();
    let run = || -> Result<_> {
        let graph = Graph::new(77)?;
        let options = BackwardOptions { create_graph: true, ..retain() };
        let grads = autograd::grad(&[&graph.root], &[&graph.leaves[0]], &[None], options)?;
        let first = grads[0].as_ref().expect("it is used").grad_fn()?.expect("it is recorded");
        let mut waiting: Vec<(Node, u64)> = vec![(first, 0)];
        let (mut names, base) = (Vec::new(), graph.root.grad_fn()?.expect("it has one"));
        while let Some((node, depth)) = waiting.pop() {
            if depth < 6 {
                let next = node.next_edges().iter().filter_map(|edge| edge.node.clone());
                waiting.extend(next.map(|node| (node, depth + 1)));
            }
            let number = node.sequence_nr().wrapping_sub(base.sequence_nr());
            names.push((node.name(), node.leaf().is_none().then_some(number)));
        }
        Ok(names)
    };
    let expected = in_order(run)?;
    for threads in [2, 8] {
        assert_eq!(on(threads, run)?, expected);
    }
    Ok(())
}

#[test]
fn callbacks_and_a_backward_inside_of_a_hook_work_as_on_one_thread() -> Result<()> {
    let _alone = alone();
    let graph = in_order(|| Graph::new(21))?;
    let inner = in_order(|| Graph::new(22))?;
    let count = Arc::new(AtomicUsize::new(0));
    let (its, middle) = (count.clone(), graph.inner.len() / 3);
    let (root, leaf) = (inner.root.clone(), inner.leaves[0].clone());
    let nested = move |_: Option<&Tensor>| {
        let its = its.clone();
        queue_callback(Box::new(move || {
            its.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))?;
        autograd::grad(&[&root], &[&leaf], &[None], retain())?;
        Ok(None)
    };
    graph.inner[middle].register_hook(Arc::new(nested))?;
    let expected = in_order(|| graph.gradients())?;
    let called = count.swap(0, Ordering::Relaxed);
    for threads in [2, 8] {
        assert!(on(threads, || graph.gradients())? == expected);
        assert_eq!(count.swap(0, Ordering::Relaxed), called);
    }
    Ok(())
}

#[test]
fn threads_that_run_backward_at_once_share_leaves_and_the_pool() -> Result<()> {
    let _alone = alone();
    set_num_threads(3);
    set_branches(Branches::Always);
    let x = Tensor::from_slice(&[1.0, 2.0, 3.0], &[3])?.with_grad()?;
    let run = || -> Result<()> {
        for _ in 0..50 {
            let parts: Vec<Tensor> = (0..4).map(|_| x.mul(&x)?.sum()).collect::<Result<_>>()?;
            let root = parts.iter().skip(1).try_fold(parts[0].clone(), |sum, y| sum.add(y))?;
            root.backward()?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let times = 4.0 * 50.0 * 4.0;
    let expected = [2.0 * times, 4.0 * times, 6.0 * times];
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, expected);
    Ok(())
}

#[test]
fn an_interruption_ends_a_branched_backward_soon() -> Result<()> {
    use std::time::{Duration, Instant};
    let _alone = alone();
    for threads in [2, 3] {
        let ([a, ..], root) = on(threads, || two_branches(400, 1 << 15))?;
        let start = Instant::now();
        let deadline = || {
            let is_over = start.elapsed() >= Duration::from_millis(10);
            if is_over { Err(Error::value("out of time")) } else { Ok(()) }
        };
        let run = || root.backward();
        let interval = Duration::from_millis(1);
        let error = on(threads, || pullback::interrupt::watch(interval, &deadline, run));
        assert_eq!(error.unwrap_err().message(), "out of time");
        assert!(start.elapsed() < Duration::from_secs(5));
        // The engine and the pool go on.
        on(threads, || a.sin()?.sum()?.backward())?;
    }
    Ok(())
}

#[test]
fn memory_does_not_grow_by_what_is_ahead() -> Result<()> {
    let _alone = alone();
    let peak = |threads: usize| -> Result<usize> {
        let (_leaves, root) = in_order(|| two_branches(40, 1 << 18))?;
        set_num_threads(threads);
        set_branches(Branches::WhenLarge);
        memory::reset_peak();
        root.backward()?;
        Ok(memory::peak_bytes())
    };
    let (one, two) = (peak(1)?, peak(2)?);
    // (One gradient of two megabytes more for the second branch, and what its sum with another takes.)
    assert!(two <= one + (10 << 20), "{one} and {two} bytes");
    Ok(())
}

/// The shortest of many runs of a backward, in microseconds, in each of three ways: one thread; two threads, without
/// branches; two threads.
fn times(rounds: usize, graph: &dyn Fn() -> Result<Tensor>) -> Result<[f64; 3]> {
    let ways = [(1, Branches::WhenLarge), (2, Branches::Never), (2, Branches::WhenLarge)];
    let mut shortest = [f64::INFINITY; 3];
    for _ in 0..rounds {
        for (time, (threads, branches)) in shortest.iter_mut().zip(ways) {
            set_num_threads(threads);
            set_branches(branches);
            let root = graph()?;
            let start = std::time::Instant::now();
            autograd::backward(&[&root], &[None], None, BackwardOptions::default())?;
            *time = time.min(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(shortest)
}

/// Two equal branches that end in one sum.
fn equal_branches(branch: &dyn Fn(&Tensor) -> Result<Tensor>, shape: &[i64]) -> Result<Tensor> {
    let mut random = Random(6);
    let leaves = [random.tensor(shape).with_grad()?, random.tensor(shape).with_grad()?];
    branch(&leaves[0])?.add(&branch(&leaves[1])?)
}

#[test]
#[ignore = "measures time, on a machine with two free cores"]
fn two_equal_branches_of_ten_milliseconds_are_1_6_times_as_fast_on_two_threads() -> Result<()> {
    let _alone = alone();
    let sines = |x: &Tensor| (0..110).try_fold(x.clone(), |y, _| y.sin())?.sum();
    let symmetric = |x: &Tensor| {
        let [values, vectors] = x.add(&x.t()?)?.linalg_eigh("L")?;
        values.sum()?.add(&vectors.mul(&vectors)?.mul(&vectors)?.sum()?)
    };
    let products = |x: &Tensor| (0..8).try_fold(x.clone(), |y, _| y.mm(x)?.tanh())?.sum();
    let large = |x: &Tensor| (0..8).try_fold(x.clone(), |y, _| y.sin())?.sum();
    let scans = |x: &Tensor| (0..40).try_fold(x.clone(), |y, _| y.cumsum(0))?.sum();
    let small = |x: &Tensor| (0..10).try_fold(x.clone(), |y, _| y.sin())?.sum();
    type Branch<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
    let kinds: [(&str, Branch<'_>, &[i64]); 6] = [
        ("chains of sin of 2^14 elements", &sines, &[1 << 14]),
        ("eigh of 200 x 200", &symmetric, &[200, 200]),
        ("products of 256 x 256", &products, &[256, 256]),
        ("chains of sin of 2^20 elements", &large, &[1 << 20]),
        ("scans of 2^17 elements", &scans, &[1 << 17]),
        ("chains of sin of 10 elements", &small, &[10]),
    ];
    let mut ratios = Vec::new();
    for (name, branch, shape) in kinds {
        let [one, shared, both] = times(repetitions(40), &|| equal_branches(branch, shape))?;
        println!(
            "{name}: {one:.0} us on one thread, {shared:.0} on two without branches, {both:.0} with: {:.2}, {:.2} times",
            one / both,
            shared / both
        );
        ratios.push(one / both);
    }
    assert!(ratios[0] >= 1.6, "{ratios:?}");
    Ok(())
}
