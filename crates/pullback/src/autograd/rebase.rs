//! After a write in place: the history of what was written to, and of its base if it is a view.
//!
//! A write through a view gives the base a `CopySlices` node; the view's own history is made anew from the base's. Start at
//! [`rebase_history`].

use super::graph::creation;
use super::graph::input_meta::InputMeta;
use super::graph::node::{Backward, Edge, Node};
use super::saved::tensor::freed;
use super::variable::refresh::refreshed_grad_fn;
use super::variable::replay::Replay;
use super::variable::window::ViewWindow;
use super::variable::{history, replayed};
use super::{arithmetic, batch};
use crate::call_site::CallSite;
use crate::dispatch::{Grads, check_writable};
use crate::error::ensure;
use crate::tensor::{Dims, Flag};
use crate::{Result, Tensor};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// After a change of `target`'s sizes or strides recorded as `node`: no element changed, so its base, if it
/// is a view, keeps its history.
pub(crate) fn replace_history(target: &Tensor, node: Node) -> Result<()> {
    set_other_history(target, node, 0);
    Ok(())
}

/// Gives `target` another producer, which retains its gradient as the previous one did.
fn set_other_history(target: &Tensor, node: Node, nr: u32) {
    let old = if target.has_flag(Flag::RETAINS_GRAD) { history::grad_fn_of(target) } else { None };
    target.set_history(node, nr);
    history::move_retain(target, old.as_ref());
}

/// After an in-place write recorded as `node`, whose output `nr` is the target: the target's history, and its base's.
pub(crate) fn rebase_history(target: &Tensor, node: Node, nr: u32) -> Result<()> {
    if target.is_view() {
        let base = target.base().expect("a view has a base").clone();
        ensure!(
            node.input_meta().len() == 1,
            runtime,
            "Functions which modify views in-place must return a single Variable"
        );
        let base_edge = if base.requires_grad() { base.gradient_edge()? } else { Edge::default() };
        let mut window = ViewWindow::of(target, &base);
        // (A view without elements may lie anywhere, before the base too.)
        let is_empty = window.shape.contains(&0);
        window.offset = if is_empty { 0 } else { window.offset - window.start_of(&base) };
        // A tensor whose class computes its ops need not be laid out as its base.
        let replay = replayed::of(target).filter(|_| base.overrides_ops());
        let slices = CopySlices {
            window,
            replay,
            base: InputMeta::of(&base),
            base_strides: base.strides().into(),
            inner: Mutex::new(Ok(node.clone())),
        };
        // (Hooks see the node that has this one in it.)
        creation::hide(&node);
        let mut edges = smallvec::smallvec![base_edge];
        edges.extend(node.next_edges().iter().skip(1).cloned());
        let inputs = smallvec::smallvec![Some(InputMeta::of(&base))];
        set_other_history(&base, Node::custom(Box::new(slices), edges, inputs), 0);
        // The version is out of date on purpose: the next access makes the view's history from the
        // base's new one.
        target.attr_version().store(target.version().wrapping_sub(1), Ordering::Release);
        refreshed_grad_fn(target)?;
    } else {
        set_other_history(target, node, nr);
    }
    Ok(())
}

/// The backward of a write through a view, seen from the base: the written part's gradient goes through
/// the inner node, the rest passes.
struct CopySlices {
    /// The written view's sizes and strides, with its offset counted from the base's first element.
    window: ViewWindow,
    /// The ops that make the view from its base, for views that are no window of its memory.
    replay: Option<Arc<Replay>>,
    base: InputMeta,
    base_strides: Dims,
    /// The node of the write, or the call site of the backward that freed it.
    inner: Mutex<std::result::Result<Node, CallSite>>,
}

impl CopySlices {
    /// A part of the base's gradient as the view shows it.
    fn as_seen(&self, part: Tensor) -> Result<Tensor> {
        if self.replay.is_some() { Ok(part) } else { self.window.as_seen(part) }
    }
    /// The inverse of `as_seen`.
    fn as_kept(&self, seen: Tensor) -> Result<Tensor> {
        if self.replay.is_some() { Ok(seen) } else { self.window.as_kept(seen) }
    }
}

impl Backward for CopySlices {
    fn name(&self) -> String {
        "torch::autograd::CopySlices".into()
    }
    fn release(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let freed = inner.is_ok().then(|| std::mem::replace(&mut *inner, Err(CallSite::here())));
        drop(inner);
        if let Some(Ok(node)) = freed {
            node.release();
        }
    }
    fn takes_real_part(&self) -> bool {
        true
    }
    fn each_held(&self, see: &mut dyn FnMut(&Node)) {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        inner.iter().for_each(see);
    }
    fn apply(&self, node: &Node, mut grads: Grads) -> Result<Grads> {
        let mut out: Grads = smallvec::SmallVec::from_elem(None, node.next_edges().len());
        let Some(grad) = grads.pop().flatten() else { return Ok(out) };
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let inner = inner.map_err(|at| freed(Some(node), at))?;
        let mut result =
            arithmetic::copy_with_strides(&grad, &self.base.shape, &self.base_strides)?;
        if self.window.parts_of_conj {
            // The same numbers, with a conj bit as the base has one.
            let conjugates = arithmetic::clone(&arithmetic::conj_view(&result)?)?;
            result = arithmetic::conj_view(&conjugates)?;
        }
        let part_of = |whole: &Tensor| match &self.replay {
            Some(replay) => replay.run(whole),
            None => self.window.elements(whole),
        };
        let mut slice = part_of(&result)?;
        let mut input = Grads::new();
        input.push(Some(self.as_seen(arithmetic::clone(&slice)?)?));
        let edges = node.next_edges();
        let wanted = |i: usize| edges.get(i).is_some_and(Edge::is_valid);
        let inner_out = inner.apply(input, &wanted)?;
        for (index, grad) in inner_out.into_iter().enumerate() {
            if index > 0 {
                out[index] = grad;
            } else if edges[0].is_valid() {
                // What the inner node gives for the old slice; nothing means zero. Elements that share memory
                // are only ever written with one value, which does not depend on what was there.
                if let Some(grad) = grad.as_ref().filter(|grad| grad.overrides_ops()) {
                    // (There has to be room for the gradient of each example.)
                    result = batch::with_levels_of(&result, grad)?;
                    slice = part_of(&result)?;
                }
                match grad.filter(|_| check_writable(&slice).is_ok()) {
                    Some(g) => arithmetic::copy_in_place(&slice, &self.as_kept(g)?)?,
                    None => arithmetic::zero_in_place(&slice)?,
                }
                out[0] = Some(result.clone());
            }
        }
        Ok(out)
    }
}
