//! Backward over devices: each device's nodes run on a thread of its own, and sums are the same bits as on one thread.

use super::{SECOND, leaf, on};
use pullback::autograd::engine::{current_task_id, execution_order, queue_callback, will_execute};
use pullback::autograd::mode::set_multithreading_enabled;
use pullback::autograd::{self, BackwardOptions, Custom};
use pullback::{Device, Error, Result, Tensor};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const FIRST: Device = Device::Cuda(0);

fn to(tensor: &Tensor, device: Device) -> Result<Tensor> {
    tensor.to(None, Some(device), false, None)
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Notes down the threads that gradients of tensors are computed on.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);
impl Seen {
    fn watch(&self, tensor: &Tensor) -> Result<()> {
        let seen = self.0.clone();
        let note = move |_: Option<&Tensor>| {
            seen.lock().unwrap().push(thread_name());
            Ok(None)
        };
        tensor.register_hook(Arc::new(note)).map(drop)
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn a_device_has_a_thread_and_main_memory_has_the_callers() -> Result<()> {
    let seen = Seen::default();
    let x = leaf(Device::Cpu, &[1.0, 2.0]);
    let here = x.mul(&x)?;
    let first = to(&here, FIRST)?.exp()?;
    let second = to(&first, SECOND)?.sin()?;
    [&here, &first, &second].into_iter().try_for_each(|t| seen.watch(t))?;
    let run = || autograd::backward(&[&second.sum()?], &[None], None, retain());
    run()?;
    let caller = thread_name();
    assert_eq!(seen.take(), ["pullback_cuda:1", "pullback_cuda:0", caller.as_str()]);
    set_multithreading_enabled(false);
    let result = run();
    set_multithreading_enabled(true);
    result?;
    assert_eq!(seen.take(), [caller.as_str(); 3]);
    Ok(())
}

fn retain() -> BackwardOptions {
    BackwardOptions { retain_graph: Some(true), ..BackwardOptions::default() }
}

/// Many branches over three devices from one leaf: its gradient is a long sum.
fn branches(x: &Tensor) -> Result<Tensor> {
    let mut sums = Vec::new();
    for nr in 0..24_u8 {
        let device = Device::Cuda(nr % 3);
        let mut y = to(x, device)?.mul(&on(device, &[0.1 + f64::from(nr), 3.7, 1e-7]))?;
        for _ in 0..=nr % 5 {
            y = y.sin()?.add(&y)?;
        }
        sums.push(to(&y.sum()?, Device::Cpu)?);
    }
    sums.iter().skip(1).try_fold(sums[0].clone(), |sum, next| sum.add(next))
}

#[test]
fn sums_are_the_same_bits_however_threads_take_turns() -> Result<()> {
    let x = leaf(Device::Cpu, &[0.3, -1.7, 12.9]);
    let y = branches(&x)?;
    let gradient = || -> Result<Vec<u64>> {
        let grad = autograd::grad(&[&y], &[&x], &[None], retain())?.remove(0).unwrap();
        Ok(grad.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
    };
    set_multithreading_enabled(false);
    let expected = gradient();
    set_multithreading_enabled(true);
    let expected = expected?;
    for _ in 0..40 {
        assert_eq!(gradient()?, expected);
    }
    Ok(())
}

#[test]
fn inner_nodes_and_leaves_of_devices_get_their_gradients_where_they_are() -> Result<()> {
    let (w, x) = (leaf(SECOND, &[2.0, 3.0]), leaf(FIRST, &[5.0, 7.0]));
    let inner = to(&x, SECOND)?.mul(&w)?;
    inner.retain_grad()?;
    let y = inner.mul(&inner)?.sum()?;
    let captured = autograd::grad(&[&y], &[&w, &inner], &[None], retain())?;
    assert!(captured.iter().flatten().all(|grad| grad.device() == SECOND));
    assert_eq!(captured[1].as_ref().unwrap().to_vec::<f64>()?, [20.0, 42.0]);
    let unused = leaf(FIRST, &[1.0]);
    autograd::backward(&[&y], &[None], Some(&[&w, &inner, &unused]), retain())?;
    assert!(x.grad().is_none() && unused.grad().is_none());
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [100.0, 294.0]);
    y.backward()?;
    let grad = x.grad().unwrap();
    assert_eq!((grad.device(), grad.to_vec::<f64>()?), (FIRST, vec![40.0, 126.0]));
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [200.0, 588.0]);
    Ok(())
}

#[test]
fn an_error_on_a_devices_thread_ends_the_backward_and_the_engine_goes_on() -> Result<()> {
    let fails = Custom::new(
        "Fails",
        |_, [x]| x.clone_tensor(None),
        |_, _: Tensor| -> Result<[Option<Tensor>; 1]> { Err(Error::value("it is broken")) },
    );
    for _ in 0..20 {
        let x = leaf(FIRST, &[1.0, 2.0]);
        let far = to(&x, SECOND)?;
        let others = branches(&on(Device::Cpu, &[1.0, 2.0, 3.0]).with_grad()?)?;
        let y = fails.apply([&far])?.sum()?.add(&to(&others, SECOND)?)?;
        let error = y.backward().unwrap_err();
        assert!(error.message().contains("it is broken"), "{error}");
        assert_eq!(current_task_id(), -1);
        far.sum()?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0, 1.0]);
    }
    Ok(())
}

#[test]
fn a_panic_on_a_devices_thread_reaches_the_caller() -> Result<()> {
    let x = leaf(FIRST, &[1.0]);
    let y = x.mul(&x)?;
    y.register_hook(Arc::new(|_| panic!("a hook that panics")))?;
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| y.backward()));
    let text = caught.unwrap_err().downcast_ref::<&str>().map(|text| (*text).to_owned());
    assert_eq!(text.as_deref(), Some("a hook that panics"));
    x.mul(&x)?.backward()
}

#[test]
fn the_task_is_one_on_all_threads() -> Result<()> {
    let x = leaf(FIRST, &[1.0]);
    let y = x.mul(&x)?;
    let (ids, runs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    // (The leaf's node: a hook that held its own would never be dropped.)
    let (far, node) = (to(&y, SECOND)?, x.get_gradient_edge()?.0);
    for tensor in [&y, &far] {
        let (ids, runs, node) = (ids.clone(), runs.clone(), node.clone());
        tensor.register_hook(Arc::new(move |_| {
            ids.lock().unwrap().push(current_task_id());
            assert!(will_execute(&node)?);
            let refused = execution_order().err().expect("threads are on");
            assert!(refused.message().contains("multithreading disabled"));
            let runs = runs.clone();
            queue_callback(Box::new(move || {
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }))?;
            Ok(None)
        }))?;
    }
    far.sum()?.backward()?;
    let ids = ids.lock().unwrap();
    assert!(ids.len() == 2 && ids[0] == ids[1] && ids[0] >= 0, "{ids:?}");
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    Ok(())
}

/// The derivative of `x^2` by a backward of its own, on a device, within backward.
fn nested(x: &Tensor, inside: Device, depth: usize) -> Result<Tensor> {
    let function = Custom::new(
        "Nested",
        |ctx, [x]| {
            ctx.save_for_backward(x);
            x.mul(x)
        },
        move |ctx, grad: Tensor| {
            let _recorded = pullback::enable_grad();
            let [saved] = &ctx.saved()?;
            let start = to(&saved.detach()?, inside)?.with_grad()?;
            let y =
                if depth == 0 { start.mul(&start)? } else { nested(&start, inside, depth - 1)? };
            y.sum()?.backward()?;
            Ok([Some(grad.mul(&to(&start.grad().unwrap(), grad.device())?)?)])
        },
    );
    function.apply([x])
}

#[test]
fn backwards_within_backwards_of_devices_go_as_deep_as_memory() -> Result<()> {
    let x = leaf(FIRST, &[3.0]);
    nested(&x, FIRST, 300)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [6.0]);
    Ok(())
}

#[test]
fn backwards_that_want_each_others_devices_do_not_wait_for_each_other() -> Result<()> {
    for _ in 0..20 {
        let (a, b) = (leaf(FIRST, &[2.0]), leaf(SECOND, &[5.0]));
        let there = nested(&a, SECOND, 1)?;
        let back = nested(&b, FIRST, 1)?;
        to(&there, Device::Cpu)?.add(&to(&back, Device::Cpu)?)?.sum()?.backward()?;
        assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [4.0]);
        assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [10.0]);
    }
    Ok(())
}

#[test]
fn many_callers_share_a_graph_over_devices() -> Result<()> {
    let x = leaf(Device::Cpu, &[1.0, 2.0, 3.0]);
    let y = to(&to(&x, FIRST)?.mul(&on(FIRST, &[1.0, 2.0, 3.0]))?, SECOND)?.sum()?;
    std::thread::scope(|scope| {
        let run = || (0..25).try_for_each(|_| autograd::backward(&[&y], &[None], None, retain()));
        let handles: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        handles.into_iter().try_for_each(|handle| handle.join().expect("no panic"))
    })?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [100.0, 200.0, 300.0]);
    Ok(())
}

#[test]
fn gradients_on_the_wrong_device_are_refused_but_for_numbers() -> Result<()> {
    let give = |shape: &'static [i64]| {
        Custom::new(
            "Stray",
            |_, [x]| x.clone_tensor(None),
            move |_, _: Tensor| Ok([Some(on(FIRST, &[4.0]).reshape(shape)?)]),
        )
    };
    let x = leaf(SECOND, &[1.0]);
    let error = give(&[1]).apply([&x])?.sum()?.backward().unwrap_err();
    assert!(error.message().contains("expected device cuda:1 but got cuda:0"), "{error}");
    let number = leaf(SECOND, &[1.0]).sum()?.detach()?.with_grad()?;
    give(&[]).apply([&number])?.backward()?;
    let grad = number.grad().unwrap();
    assert_eq!((grad.device(), grad.to_vec::<f64>()?), (SECOND, vec![4.0]));
    let start = autograd::backward(&[&x.mul(&x)?], &[Some(&on(FIRST, &[1.0]))], None, retain());
    assert!(start.unwrap_err().message().contains("expected device cuda:1 but got cuda:0"));
    Ok(())
}

#[test]
fn a_backward_on_devices_is_left_while_their_threads_work() -> Result<()> {
    let x = leaf(FIRST, &[1.0, 2.0]);
    let far = to(&x, SECOND)?;
    // A node that works until somebody calls it back, as a long kernel does.
    far.register_hook(Arc::new(|_| {
        loop {
            pullback::interrupt::check();
        }
    }))?;
    let y = far.sum()?;
    let start = std::time::Instant::now();
    let check = || {
        if start.elapsed() < std::time::Duration::from_millis(100) {
            return Ok(());
        }
        Err(pullback::Error::value("left in the middle"))
    };
    let interval = std::time::Duration::from_millis(10);
    let error = pullback::interrupt::watch(interval, &check, || y.backward()).unwrap_err();
    assert_eq!(error.message(), "left in the middle");
    assert_eq!(current_task_id(), -1);
    x.mul(&x)?.sum()?.backward()
}
