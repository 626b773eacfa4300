//! Many threads on one graph, on shared leaves, on shared hooks; results do not depend on how many there are.

use pullback::{Result, Tensor, autograd, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const THREADS: usize = 8;

fn vector(data: &[f64]) -> Tensor {
    Tensor::from_slice(data, &[data.len() as i64]).unwrap()
}

fn in_parallel<R: Send>(f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let f = &f;
        let handles: Vec<_> = (0..THREADS).map(|nr| scope.spawn(move || f(nr))).collect();
        handles.into_iter().map(|h| h.join().expect("no thread panics")).collect()
    })
}

fn retain() -> autograd::BackwardOptions {
    autograd::BackwardOptions { retain_graph: Some(true), ..Default::default() }
}

#[test]
fn a_retained_graph_run_by_many_threads_sums_exactly() -> Result<()> {
    let x = vector(&[1.0, 2.0, 3.0]).with_grad()?;
    let y = (&x * &x * &x).get()?.sum()?;
    for round in 1..=50 {
        for result in in_parallel(|_| autograd::backward(&[&y], &[None], None, retain())) {
            result?;
        }
        let times = (round * THREADS) as f64;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [3.0 * times, 12.0 * times, 27.0 * times]);
    }
    Ok(())
}

#[test]
fn without_retaining_losers_hear_of_the_second_time() -> Result<()> {
    for _ in 0..100 {
        let x = vector(&[2.0]).with_grad()?;
        let y = (&x * &x).get()?.mul(&x)?.sum()?;
        let results = in_parallel(|_| y.backward());
        for error in results.into_iter().filter_map(Result::err) {
            assert!(error.message().contains("a second time"), "{error}");
        }
        let again = y.backward().unwrap_err();
        assert!(again.message().contains("a second time"));
    }
    Ok(())
}

#[test]
fn graphs_of_many_threads_share_their_leaves() -> Result<()> {
    let w = vector(&[1.0, -1.0]).with_grad()?;
    in_parallel(|nr| {
        for _ in 0..200 {
            (&w * (nr as f64 + 1.0)).get()?.sum()?.backward()?;
        }
        Ok::<_, pullback::Error>(())
    })
    .into_iter()
    .collect::<Result<Vec<_>>>()?;
    let total = 200.0 * (1..=THREADS).sum::<usize>() as f64;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [total, total]);
    Ok(())
}

#[test]
fn hooks_are_added_run_and_removed_by_many_threads() -> Result<()> {
    let x = vector(&[1.0]).with_grad()?;
    let calls = Arc::new(AtomicUsize::new(0));
    in_parallel(|_| {
        for _ in 0..100 {
            let count = calls.clone();
            let id = x.register_hook(Arc::new(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            }))?;
            (&x * 2.0).get()?.sum()?.backward()?;
            x.remove_hook(id);
        }
        Ok::<_, pullback::Error>(())
    })
    .into_iter()
    .collect::<Result<Vec<_>>>()?;
    // Each backward met at least its own hook.
    assert!(calls.load(Ordering::Relaxed) >= 100 * THREADS);
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0 * 100.0 * THREADS as f64]);
    let before = calls.load(Ordering::Relaxed);
    (&x * 2.0).get()?.sum()?.backward()?;
    assert_eq!(calls.load(Ordering::Relaxed), before, "all hooks were removed");
    Ok(())
}

#[test]
fn writes_in_place_from_many_threads_are_all_counted() -> Result<()> {
    let parts = Tensor::from_slice(&vec![0.0_f64; THREADS * 16], &[THREADS as i64, 16])?;
    let before = parts.version();
    in_parallel(|nr| {
        let row = parts.select(0, nr as i64)?;
        for _ in 0..100 {
            row.add_(&Tensor::wrapped(nr as f64)?)?;
        }
        Ok::<_, pullback::Error>(())
    })
    .into_iter()
    .collect::<Result<Vec<_>>>()?;
    let expected: Vec<f64> = (0..THREADS).flat_map(|nr| [100.0 * nr as f64; 16]).collect();
    assert_eq!(parts.to_vec::<f64>()?, expected);
    assert_eq!(parts.version() - before, 100 * THREADS as u32);
    Ok(())
}

#[test]
fn modes_belong_to_their_thread() {
    let _off = pullback::no_grad();
    assert!(in_parallel(|_| pullback::is_grad_enabled()).into_iter().all(|on| on));
    assert!(!pullback::is_grad_enabled());
}

/// A network large enough that kernels split their work.
fn step() -> Result<Vec<u32>> {
    let numbers = |count: i64, shape: &[i64]| {
        let data: Vec<f32> =
            (0..count).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 512.0).collect();
        Tensor::from_slice(&data, shape)
    };
    let x = numbers(300 * 700, &[300, 700])?;
    let w = numbers(700 * 400, &[700, 400])?.with_grad()?;
    let y = x.mm(&w)?.relu()?.log_softmax(1, None)?;
    (&y * &y).get()?.sum()?.backward()?;
    let mut bits: Vec<u32> =
        w.grad().unwrap().to_vec::<f32>()?.iter().map(|v| v.to_bits()).collect();
    bits.extend(y.sum()?.to_vec::<f32>()?.iter().map(|v| v.to_bits()));
    Ok(bits)
}

#[test]
fn one_and_two_kernel_threads_give_the_same_bits() -> Result<()> {
    let before = threads::num_threads();
    threads::set_num_threads(1);
    let one = step()?;
    for count in [2, 3] {
        threads::set_num_threads(count);
        assert!(step()? == one, "{count} threads");
    }
    threads::set_num_threads(before);
    Ok(())
}
