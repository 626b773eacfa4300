//! Hooks on the gradients of several tensors: one call in each backward pass, when the last of them, or the first, is there.
//!
//! A pass that fails, or that is run inside of another one, has a state of its own, which ends with it.

use super::HookGuard;
use super::engine::{at_end, current_task_id, will_execute};
use super::graph::node::Node;
use crate::{Result, Tensor};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has arrived in one backward pass.
struct Arrived {
    grads: Vec<Option<Tensor>>,
    missing: usize,
}

/// What all the hooks of one call of [`on_grads`] share.
struct Gathering<F> {
    nodes: Vec<Node>,
    length: usize,
    passes: Arc<Mutex<HashMap<i64, Arrived>>>,
    hook: F,
}

impl<F: Fn(&[Option<Tensor>]) -> Result<()>> Gathering<F> {
    fn arrived(&self, index: usize, grad: &Tensor) -> Result<()> {
        let pass = current_task_id();
        if !lock(&self.passes).contains_key(&pass) {
            let mut missing = 0;
            for node in &self.nodes {
                missing += usize::from(will_execute(node)?);
            }
            let passes = self.passes.clone();
            at_end(Box::new(move || drop(lock(&passes).remove(&pass))))?;
            let grads = vec![None; self.length]; // bounded: one for each tensor that was named.
            // (Another thread of the pass may have been quicker.)
            lock(&self.passes).entry(pass).or_insert(Arrived { grads, missing });
        }
        let mut passes = lock(&self.passes);
        let Some(state) = passes.get_mut(&pass) else { return Ok(()) };
        state.grads[index] = Some(grad.clone());
        state.missing = state.missing.saturating_sub(1);
        if state.missing > 0 {
            return Ok(());
        }
        let done = passes.remove(&pass);
        // (The hook may run any code, another backward pass, too: not under the lock.)
        drop(passes);
        done.map_or(Ok(()), |done| (self.hook)(&done.grads))
    }
}

/// Lets `hook` see the gradients of several tensors once in each backward pass, when all that the pass computes are there:
/// `None` stands for those that it does not, and for tensors that do not require grad. Returned guards keep it in place.
///
/// ```
/// use pullback::autograd::on_grads;
/// use pullback::prelude::*;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
/// # fn main() -> Result<()> {
/// let (x, y) = (Tensor::from([2.0])?.with_grad()?, Tensor::from([3.0])?.with_grad()?);
/// let calls = Arc::new(AtomicUsize::new(0));
/// let seen = calls.clone();
/// let _guards = on_grads(&[&x, &y], move |grads| {
///     assert!(grads.iter().all(Option::is_some));
///     seen.fetch_add(1, Ordering::Relaxed);
///     Ok(())
/// })?;
/// x.mul(&y)?.backward()?;
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Tensor::grad_fn`]. An error of `hook` stops the pass.
pub fn on_grads(
    tensors: &[&Tensor],
    hook: impl Fn(&[Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
) -> Result<Vec<HookGuard>> {
    let wanted = || tensors.iter().enumerate().filter(|(_, tensor)| tensor.requires_grad());
    let mut nodes = Vec::new(); // bounded: one for each tensor that was named.
    for (_, tensor) in wanted() {
        nodes.extend(tensor.gradient_edge()?.node);
    }
    let (length, passes) = (tensors.len(), Arc::default());
    let gathering = Arc::new(Gathering { nodes, length, passes, hook });
    let registered = wanted().map(|(index, tensor)| {
        let gathering = gathering.clone();
        tensor.on_grad(move |grad| gathering.arrived(index, grad))
    });
    registered.collect()
}

/// Lets `hook` see the first gradient of any of these tensors that a backward pass computes.
///
/// # Errors
/// As for [`on_grads`].
pub fn on_first_grad(
    tensors: &[&Tensor],
    hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
) -> Result<Vec<HookGuard>> {
    let passes: Arc<Mutex<HashSet<i64>>> = Arc::default();
    let hook = Arc::new(hook);
    let wanted = tensors.iter().filter(|tensor| tensor.requires_grad());
    let registered = wanted.map(|tensor| {
        let (passes, hook) = (passes.clone(), hook.clone());
        tensor.on_grad(move |grad| {
            let pass = current_task_id();
            if !lock(&passes).insert(pass) {
                return Ok(());
            }
            let ended = passes.clone();
            at_end(Box::new(move || {
                lock(&ended).remove(&pass);
            }))?;
            hook(grad)
        })
    });
    registered.collect()
}
