//! Checkpoints, and hooks on the gradients of several tensors.

use pullback::autograd::func::{Batched, vmap};
use pullback::autograd::{self, BackwardOptions, checkpoint, on_first_grad, on_grads};
use pullback::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use pullback::prelude::*;
use pullback::{Error, autocast, manual_seed};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The default generator, for one test at a time: each checkpoint reads its state, and sets it for the second run.
fn alone() -> MutexGuard<'static, ()> {
    static DEFAULT: Mutex<()> = Mutex::new(());
    DEFAULT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn leaf(values: &[f64]) -> Result<Tensor> {
    Tensor::from(values)?.with_grad()
}

/// A function that counts its calls.
fn counted(
    f: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
) -> (Arc<AtomicUsize>, impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    (calls, move |inputs: &[Tensor]| {
        count.fetch_add(1, Ordering::Relaxed);
        f(inputs)
    })
}

#[test]
fn gradients_are_those_of_a_plain_call_and_the_function_runs_twice() -> Result<()> {
    let _alone = alone();
    let f = |x: &[Tensor]| x[0].mul(&x[1]).sin().dropout(0.5, true).exp();
    let plain = [leaf(&[1.0, 2.0, 3.0, 4.0])?, leaf(&[0.5, 0.25, -1.0, 2.0])?];
    manual_seed(7);
    f(&plain)?.sum()?.backward()?;
    let after = pullback::default_generator().state();

    let again = [leaf(&[1.0, 2.0, 3.0, 4.0])?, leaf(&[0.5, 0.25, -1.0, 2.0])?];
    let (calls, f) = counted(f);
    manual_seed(7);
    let y = checkpoint(f, &[&again[0], &again[1]])?;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    y.sum()?.backward()?;
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(
        pullback::default_generator().state(),
        after,
        "the draws of the second run are undone"
    );
    for (a, b) in plain.iter().zip(&again) {
        assert!(a.grad().unwrap().equal(&b.grad().unwrap())?);
    }
    Ok(())
}

#[test]
fn nothing_is_kept_of_what_the_function_computes() -> Result<()> {
    let _alone = alone();
    let x = leaf(&[1.0, 2.0])?;
    let inside: Arc<Mutex<Vec<pullback::tensor::WeakTensor>>> = Arc::default();
    let seen = inside.clone();
    let y = checkpoint(
        move |x| {
            let z = x[0].exp()?;
            seen.lock().unwrap().push(z.downgrade());
            z.mul(&z)
        },
        &[&x],
    )?;
    assert!(inside.lock().unwrap()[0].upgrade().is_none(), "`exp` and `mul` save it otherwise");
    y.sum()?.backward()?;
    assert!(inside.lock().unwrap()[1].upgrade().is_none());
    Ok(())
}

#[test]
fn a_graph_that_is_kept_runs_again_and_is_differentiated_again() -> Result<()> {
    let _alone = alone();
    let x = leaf(&[0.5, 2.0])?;
    let y = checkpoint(|x| x[0].sin().mul(&x[0]).exp(), &[&x])?.sum()?;
    let options = BackwardOptions { retain_graph: Some(true), ..Default::default() };
    let first = autograd::grad(&[&y], &[&x], &[None], options)?.remove(0).unwrap();
    let second =
        autograd::grad(&[&y], &[&x], &[None], BackwardOptions::default())?.remove(0).unwrap();
    assert!(first.equal(&second)?);
    let f = |x: &[Tensor]| Ok(vec![checkpoint(|x| x[0].sin().mul(&x[0]).exp(), &[&x[0]])?]);
    gradcheck(&f, std::slice::from_ref(&x), Tolerance::default())??;
    gradgradcheck(&f, &[x], Tolerance::default())??;
    Ok(())
}

#[test]
fn checkpoints_stand_inside_of_others_and_hold_tensors_of_their_own() -> Result<()> {
    let _alone = alone();
    let w = leaf(&[0.3, -0.7])?;
    let held = w.clone();
    let f = move |x: &[Tensor]| {
        let w = held.clone();
        let inner = checkpoint(move |x| x[0].mul(&w).tanh(), &[&x[0]])?;
        inner.mul(&x[0]).sin()
    };
    let x = leaf(&[1.0, 2.0])?;
    checkpoint(f.clone(), &[&x])?.sum()?.backward()?;
    let (found, by_w) = (x.grad().unwrap(), w.grad().unwrap());
    x.set_grad(None)?;
    w.set_grad(None)?;
    f(std::slice::from_ref(&x))?.sum()?.backward()?;
    assert!(found.equal(&x.grad().unwrap())? && by_w.equal(&w.grad().unwrap())?);
    Ok(())
}

#[test]
fn autocast_holds_for_the_second_run() -> Result<()> {
    let _alone = alone();
    let w = Tensor::from([[1.0_f32, 2.0], [3.0, 4.0]])?.with_grad()?;
    let dtypes = Arc::new(Mutex::new(Vec::new()));
    let seen = dtypes.clone();
    let y = {
        let _region = autocast(Device::Cpu, DType::BF16)?;
        let f = move |w: &[Tensor]| {
            let product = w[0].mm(&w[0])?;
            seen.lock().unwrap().push(product.dtype());
            product.exp()
        };
        checkpoint(f, &[&w])?
    };
    y.sum()?.backward()?;
    assert_eq!(*dtypes.lock().unwrap(), [DType::BF16; 2]);
    assert_eq!(w.mm(&w)?.dtype(), DType::F32, "and for nothing else");
    Ok(())
}

#[test]
fn what_cannot_be_computed_again_is_an_error() -> Result<()> {
    let _alone = alone();
    // A function that does something else the second time.
    let x = leaf(&[1.0, 2.0])?;
    let runs = AtomicUsize::new(0);
    let f = move |x: &[Tensor]| match runs.fetch_add(1, Ordering::Relaxed) {
        0 => x[0].exp().sin(),
        _ => x[0].exp(),
    };
    let error = checkpoint(f, &[&x])?.sum()?.backward().unwrap_err();
    assert!(error.message().contains("A different number of tensors"), "{error}");

    let runs = AtomicUsize::new(0);
    let f = move |x: &[Tensor]| match runs.fetch_add(1, Ordering::Relaxed) {
        0 => x[0].exp(),
        _ => x[0].i(..1)?.exp(),
    };
    let error = checkpoint(f, &[&x])?.sum()?.backward().unwrap_err();
    assert!(error.message().contains("different metadata"), "{error}");

    // An input that was written to, and an error of the function's own.
    let input = x.mul(&x)?;
    let y = checkpoint(|x| x[0].exp(), &[&input])?.sum()?;
    input.zero_()?;
    let error = y.backward().unwrap_err();
    assert!(error.message().contains("modified by an inplace operation after the call"), "{error}");
    let failed = checkpoint(|_| Err::<Tensor, _>(Error::value("as it was asked to")), &[&x]);
    assert_eq!(failed.unwrap_err().message(), "as it was asked to");
    Ok(())
}

#[test]
fn without_recording_the_function_just_runs() -> Result<()> {
    let _alone = alone();
    let x = leaf(&[1.0])?;
    let _off = no_grad();
    assert!(!checkpoint(|x| x[0].exp(), &[&x])?.requires_grad());
    Ok(())
}

/// Lists of which gradients a hook saw.
type Seen = Arc<Mutex<Vec<Vec<bool>>>>;

fn watch(tensors: &[&Tensor], seen: &Seen) -> Result<Vec<autograd::HookGuard>> {
    let seen = seen.clone();
    on_grads(tensors, move |grads| {
        seen.lock().unwrap().push(grads.iter().map(Option::is_some).collect());
        Ok(())
    })
}

#[test]
fn a_hook_on_several_tensors_runs_once_in_a_pass_with_what_the_pass_computes() -> Result<()> {
    let (x, y, constant) = (leaf(&[1.0])?, leaf(&[2.0])?, Tensor::from([3.0])?);
    let (seen, product) = (Seen::default(), x.mul(&y)?);
    let guards = watch(&[&x, &constant, &product, &y], &seen)?;
    assert_eq!(guards.len(), 3);
    let options = || BackwardOptions { retain_graph: Some(true), ..Default::default() };
    let all = || -> Result<()> {
        autograd::backward(&[&product.mul(&product)?.sum()?], &[None], None, options())
    };
    all()?;
    assert_eq!(*seen.lock().unwrap(), [[true, false, true, true]]);
    x.sum()?.backward()?;
    assert_eq!(seen.lock().unwrap()[1], [true, false, false, false]);
    // A pass that fails leaves nothing behind.
    let broken = product.on_grad(|_| Err::<(), _>(Error::value("as it was asked to")))?;
    assert!(all().is_err());
    drop(broken);
    all()?;
    assert_eq!(seen.lock().unwrap()[2], [true, false, true, true]);
    drop(guards);
    all()?;
    assert_eq!(seen.lock().unwrap().len(), 3);
    Ok(())
}

#[test]
fn a_hook_on_the_first_of_several_gradients_runs_once_in_a_pass() -> Result<()> {
    let (x, y) = (leaf(&[1.0])?, leaf(&[2.0])?);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let _guards = on_first_grad(&[&x, &y], move |grad| {
        assert_eq!(grad.shape(), [1]);
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })?;
    for passes in 1..3 {
        x.mul(&y)?.sum()?.backward()?;
        assert_eq!(calls.load(Ordering::Relaxed), passes);
    }
    Ok(())
}

#[test]
fn a_hook_ends_with_its_guard_also_where_the_tensor_is_gone() -> Result<()> {
    let x = leaf(&[2.0])?;
    let y = x.mul(&x)?;
    let guard = y.on_grad(|grad| (grad * 10.0).get())?;
    let z = y.sum()?;
    drop(y);
    drop(guard);
    z.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [4.0]);
    Ok(())
}

#[test]
fn batched_functions_are_computed_again_at_the_same_levels() -> Result<()> {
    let _alone = alone();
    let a = Tensor::from_slice(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], &[2, 3])?.with_grad()?;
    let f = |a: &Tensor| {
        let rows = [Batched::first(a)];
        vmap(|row| vmap(|x| x[0].sin()?.exp(), &[Batched::first(row[0])]), &rows)?.sum()
    };
    let slopes = |y: &Tensor| autograd::grad(&[y], &[&a], &[None], BackwardOptions::default());
    let expected = slopes(&f(&a)?)?.remove(0);
    let found = slopes(&checkpoint(move |x| f(&x[0]), &[&a])?)?.remove(0);
    let numbers = |t: Option<Tensor>| t.map(|t| t.to_vec::<f64>()).transpose();
    assert_eq!(numbers(found)?, numbers(expected)?);
    Ok(())
}
