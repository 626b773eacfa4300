//! `AccumulateGrad`, the sink of every leaf, and gradients that non-leaves retain.

use crate::autograd::graph::accumulator::Home;
use crate::autograd::graph::hook::AccumulateHook;
use crate::autograd::graph::node::Node;
use crate::autograd::graph::sequence::thread_number;
use crate::autograd::variable::meta::lock;
use crate::autograd::{arithmetic, mode};
use crate::dispatch::Grads;
use crate::error::bail;
use crate::interrupt;
use crate::tensor::{Flag, is_non_overlapping_and_dense, watch};
use crate::{Result, Tensor};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;

/// Adds `grad` to the `.grad` of a non-leaf that retains it.
pub(super) fn retain(tensor: &Tensor, grad: &Tensor) -> Result<()> {
    let new = match tensor.grad() {
        None => arithmetic::contiguous_clone(grad)?,
        Some(old) => arithmetic::add(&old, grad)?,
    };
    tensor.put_grad(Some(new));
    Ok(())
}

/// Runs `AccumulateGrad` of a leaf.
pub(super) fn accumulate(node: &Node, leaf: &Tensor, mut grads: Grads) -> Result<()> {
    let Some(grad) = grads.pop().flatten() else { return Ok(()) };
    if leaf.has_flag(Flag::HAS_GRAD_FN) {
        bail!(runtime, "leaf variable has been moved into the graph interior");
    }
    if !leaf.has_flag(Flag::REQUIRES_GRAD) {
        return Ok(());
    }
    // (A signal handler that computes in the middle of an addition must find no lock taken.)
    let hooks = if grad.numel() > UNINTERRUPTED {
        interrupt::without_interrupts(|| take_in(node, leaf, grad))
    } else {
        take_in(node, leaf, grad)
    }?;
    for hook in hooks {
        watch::refuse(|| "a hook sees a gradient".into());
        hook(leaf)?;
    }
    Ok(())
}

/// The number of elements up to which an addition does not check for interruptions.
const UNINTERRUPTED: i64 = 1 << 12;

/// Adds a gradient to the `.grad` of its leaf; returns the hooks to run afterwards.
fn take_in(node: &Node, leaf: &Tensor, grad: Tensor) -> Result<Vec<AccumulateHook>> {
    // One thread at a time reads, adds and writes.
    let turn = node.0.accumulator().and_then(|it| it.turn().take(thread_number()));
    let recording = mode::is_recording();
    match leaf.grad() {
        None => {
            // (The engine holds another handle for hooks that run after the node.)
            let has_post_hooks = node.0.has_hooks.load(Acquire) && node.has_post_hooks();
            let held = 1 + usize::from(has_post_hooks);
            let unshared = grad.use_count() <= held
                && grad.geometry().storage.as_ref().is_none_or(|s| s.use_count() == 1);
            let is_taken = if grad.is_sparse() {
                grad.sparse().is_none_or(|parts| parts.is_unshared())
            } else {
                // (The memory of a `.grad` holds its values, so that it can be viewed as real numbers or exported as an array.)
                let is_laid_out = obeys_layout(leaf, &grad) || !mode::is_grad_layout_enforced();
                !leaf.layout().is_compressed() && is_laid_out && !grad.is_unresolved()
            };
            let new = if !recording && unshared && is_taken {
                if grad.requires_grad() { grad.detached()? } else { grad }
            } else {
                arithmetic::clone_like(&grad, leaf)?
            };
            leaf.put_grad(Some(new));
        }
        Some(old) if recording => leaf.put_grad(Some(arithmetic::add(&old, &grad)?)),
        Some(old) if old.is_sparse() && !grad.is_sparse() => {
            leaf.put_grad(Some(arithmetic::add(&old, &grad)?));
        }
        Some(old) => {
            arithmetic::add_in_place(&old, &grad)?;
            let is_strided = !old.is_sparse() && !leaf.is_sparse();
            if is_strided
                && old.strides() != leaf.strides()
                && !obeys_layout(leaf, &old)
                && mode::is_grad_layout_enforced()
            {
                warn_of_layout(leaf, &old);
            }
        }
    }
    drop(turn);
    Ok(lock(leaf).accumulate_hooks.iter().map(|(_, h)| h.clone()).collect())
}

/// Warns that the `.grad` of a leaf has another layout than the layout contract demands; it stays as it is.
#[cold]
fn warn_of_layout(leaf: &Tensor, grad: &Tensor) {
    static GIVEN: AtomicBool = AtomicBool::new(false);
    crate::warning::warn_once(
        &GIVEN,
        &format!(
            "grad and param do not obey the gradient layout contract: this is no error, but may make steps of optimizers slower. grad has sizes {:?} and strides {:?}, param has sizes {:?} and strides {:?}",
            grad.shape(),
            grad.strides(),
            leaf.shape(),
            leaf.strides()
        ),
    );
}

/// The layout contract: a dense leaf's gradient has its strides, any other's is row-major.
pub(super) fn obeys_layout(leaf: &Tensor, grad: &Tensor) -> bool {
    if is_non_overlapping_and_dense(leaf.shape(), leaf.strides()) {
        grad.shape() == leaf.shape()
            && leaf
                .shape()
                .iter()
                .zip(leaf.strides().iter().zip(grad.strides()))
                .all(|(&size, (&a, &b))| if size > 1 { a == b } else { b != 0 })
    } else {
        grad.is_contiguous()
    }
}
