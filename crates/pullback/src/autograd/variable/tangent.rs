//! The tangents of tensors: which tensor has one, how views find theirs, how a tangent is laid out.
//!
//! Invariant: a tangent lies in its memory as its tensor does in its own (sizes, strides, offset, size of the
//! storage, conj and neg bits), so that a view of the tensor, made by the same numbers of the tangent, is the view's tangent. A view
//! without tangent looks at its base each time: a write may have given the base one since. Start at [`of`] and [`set`].

use super::layout::{capacity_of, lies_as};
use super::meta::lock;
use super::window::ViewWindow;
use crate::autograd::graph::node::Node;
use crate::autograd::thread::level::{self, KeptTangents, SeenLevels, Tangent};
use crate::autograd::{arithmetic, mode};
use crate::dispatch::{Arg, OpDef, Traits, each_tensor};
use crate::error::{bail, ensure};
use crate::tensor::Flag;
use crate::{DType, Result, Tensor, TensorSpec};
use std::sync::Arc;

/// Whether tangents are computed on this thread.
#[inline]
pub(in crate::autograd) fn is_enabled() -> bool {
    mode::is_pushing_forward() && level::seen() > 0
}

/// Whether a call with these arguments has tangents to compute. As long as no level is open this is one load.
#[inline(always)]
pub(crate) fn concerns(args: &[Arg<'_>]) -> bool {
    level::is_open() && has_dual(args)
}

#[cold]
#[inline(never)]
fn has_dual(args: &[Arg<'_>]) -> bool {
    let mut found = false;
    if is_enabled() {
        each_tensor(args, |tensor| found = found || is_dual(tensor));
    }
    found
}

/// Whether the tensor has a tangent at a level that is seen, of its own or through its base.
pub(in crate::autograd) fn is_dual(tensor: &Tensor) -> bool {
    innermost(tensor).is_some()
}

/// The innermost level at which the tensor has a tangent.
fn innermost(tensor: &Tensor) -> Option<usize> {
    let seen = level::seen();
    let of = |tensor: &Tensor| {
        if !tensor.has_flag(Flag::DUAL) {
            return None;
        }
        let meta = lock(tensor);
        let known = meta.tangents.iter().filter(|t| t.number() < seen && t.get().is_some());
        known.map(|tangent| tangent.number()).max()
    };
    let base = || forward_base(tensor).and_then(|base| of(&base));
    of(tensor).max(base())
}

/// Lets the thread see the levels up to the innermost one at which one of the arguments has a tangent.
pub(in crate::autograd) fn turn_of(args: &[Arg<'_>]) -> SeenLevels {
    let mut count = 0;
    each_tensor(args, |tensor| count = count.max(innermost(tensor).map_or(0, |level| level + 1)));
    level::see(count)
}

/// Calls `f` with each of the tensor's tangents, from the outermost level on; within the call, the tangent's level is the
/// innermost seen.
///
/// # Errors
/// Those of `f`, and for want of memory.
pub(in crate::autograd) fn each(
    tensor: &Tensor,
    f: &mut dyn FnMut(Tensor) -> Result<()>,
) -> Result<()> {
    for number in 0..level::seen() {
        let _turn = level::see(number + 1);
        if let Some(tangent) = of(tensor)? {
            f(tangent)?;
        }
    }
    Ok(())
}

/// The tangent kept with the tensor itself, at the innermost level that is seen.
pub(in crate::autograd) fn own(tensor: &Tensor) -> Option<Tensor> {
    if !tensor.has_flag(Flag::DUAL) {
        return None;
    }
    slot_of(tensor).and_then(|tangent| tangent.get())
}

/// The slot of the tangent that the tensor itself keeps.
fn slot_of(tensor: &Tensor) -> Option<Arc<Tangent>> {
    let number = level::seen().checked_sub(1)?;
    lock(tensor).tangents.iter().find(|tangent| tangent.number() == number).cloned()
}

/// The tensor whose tangent is also the tangent of this view. (A dual has its own, although it is a view of its primal.)
pub(in crate::autograd) fn forward_base(tensor: &Tensor) -> Option<Tensor> {
    let flags = tensor.flags();
    if flags & Flag::VIEW == 0 || flags & Flag::OWN_TANGENT != 0 {
        None
    } else if flags & Flag::FORWARD_BASE != 0 {
        lock(tensor).forward_base.clone()
    } else {
        tensor.base_if_any().cloned()
    }
}

/// Records the tensor from which the tangent of a fresh view comes, if that is not its base.
#[inline]
pub(in crate::autograd) fn link(view: &Tensor, source: &Tensor) {
    if source.flags() & (Flag::OWN_TANGENT | Flag::FORWARD_BASE) != 0 {
        link_apart(view, source);
    }
}

#[cold]
fn link_apart(view: &Tensor, source: &Tensor) {
    let base = forward_base(source).unwrap_or_else(|| source.clone());
    lock(view).forward_base = Some(base);
    view.set_flag(Flag::FORWARD_BASE, true);
}

/// The tangent of a tensor, also where only its base has one. `None` on threads that turned forward mode off.
///
/// # Errors
/// Out of memory.
pub(in crate::autograd) fn of(tensor: &Tensor) -> Result<Option<Tensor>> {
    if is_enabled() { peek(tensor) } else { Ok(None) }
}

/// As [`of`], regardless of the thread's modes.
fn peek(tensor: &Tensor) -> Result<Option<Tensor>> {
    if !level::is_open() {
        return Ok(None);
    }
    if let Some(tangent) = own(tensor) {
        return Ok(Some(tangent));
    }
    let Some(base) = forward_base(tensor) else { return Ok(None) };
    let Some(of_base) = own(&base) else { return Ok(None) };
    let tangent = slice(tensor, &base, &of_base)?;
    put(tensor, tangent.clone());
    Ok(Some(tangent))
}

/// The part of `base` that `view` shows, shown of a tensor laid out like the base.
pub(in crate::autograd) fn slice(view: &Tensor, base: &Tensor, whole: &Tensor) -> Result<Tensor> {
    let _below = level::below();
    // (Recorded whenever it is first asked for: a view made in no_grad mode could not be written to afterwards.)
    let _grad = mode::enable_grad();
    ViewWindow::of(view, base).show(whole)
}

/// Adds a tangent to a tensor's tangents; returns the previous one of its level.
fn keep(tangents: &mut KeptTangents, tangent: Arc<Tangent>) -> Option<Arc<Tangent>> {
    if let Some(slot) = tangents.iter_mut().find(|other| other.number() == tangent.number()) {
        return Some(std::mem::replace(slot, tangent));
    }
    tangents.push(tangent);
    None
}

/// Keeps a tangent that has the tensor's layout, unless another thread has ended the level meanwhile.
pub(in crate::autograd) fn put(tensor: &Tensor, tangent: Tensor) {
    let Some(number) = level::seen().checked_sub(1) else { return };
    let Some(tangent) = level::get(number).ok().and_then(|level| Tangent::new(&level, tangent))
    else {
        return;
    };
    let old = keep(&mut lock(tensor).tangents, tangent);
    tensor.set_flag(Flag::DUAL, true);
    drop(old);
}

/// Sets the tangent of a tensor: the given tensor if it has the tensor's layout, else a copy in that layout.
///
/// # Errors
/// As [`check_shape`].
pub(in crate::autograd) fn set(tensor: &Tensor, tangent: Tensor) -> Result<()> {
    check_shape(tensor, &tangent)?;
    put(tensor, laid_out(tangent, tensor)?);
    Ok(())
}

/// Refuses a tangent of another shape.
///
/// # Errors
/// `RuntimeError` if the sizes differ.
pub(in crate::autograd) fn check_shape(tensor: &Tensor, tangent: &Tensor) -> Result<()> {
    ensure!(
        tangent.shape() == tensor.shape(),
        runtime,
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of size {} while the given forward gradient is of size {}.",
        arithmetic::shape_text(tensor.shape()),
        arithmetic::shape_text(tangent.shape())
    );
    Ok(())
}

/// The tangent in the layout of `tensor`.
pub(in crate::autograd) fn laid_out(tangent: Tensor, tensor: &Tensor) -> Result<Tensor> {
    if lies_as(&tangent, tensor) {
        return Ok(tangent);
    }
    if tangent.has_flag(Flag::BATCHED) {
        // (It may be batched at more levels than its tensor, so that it could not be written into zeros of it.)
        let _below = level::below();
        return arithmetic::copy_with_strides(&tangent, tensor.shape(), tensor.strides());
    }
    let copied = zeros_like(tensor, tangent.dtype())?;
    copy(&copied, &tangent)?;
    Ok(copied)
}

/// Writes a tangent into another, with its history.
pub(in crate::autograd) fn copy(target: &Tensor, source: &Tensor) -> Result<()> {
    let _below = level::below();
    arithmetic::copy_in_place(target, source)
}

/// Zeros in the layout of `tensor`.
pub(in crate::autograd) fn zeros_like(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let _below = level::below();
    let g = tensor.geometry();
    // (A batched tensor shows the memory of its first example alone, and has batched zeros: those
    // keep the order in memory.)
    if g.storage.is_none() || tensor.overrides_ops() || tensor.has_flag(Flag::BATCHED) {
        return arithmetic::to_dtype(&arithmetic::zeros_like(tensor)?, dtype);
    }
    let whole = TensorSpec::of(&[capacity_of(tensor) as i64], dtype).on(tensor.device()).zeros()?;
    Ok(whole.alias_with(&g.shape, &g.strides, g.offset)?.with_bits_of(tensor))
}

/// The slots of the tensor's tangents, as long as a level is open.
#[inline]
pub(in crate::autograd) fn handle(tensor: &Tensor) -> Result<KeptTangents> {
    if !level::is_open() {
        return Ok(KeptTangents::new());
    }
    each_peeked(tensor, level::open(), &mut |_| Ok(()))?;
    Ok(lock(tensor).tangents.clone())
}

/// As [`each`] for the outermost `count` levels, regardless of the thread's modes.
fn each_peeked(
    tensor: &Tensor,
    count: usize,
    f: &mut dyn FnMut(Tensor) -> Result<()>,
) -> Result<()> {
    for number in 0..count {
        let _turn = level::see(number + 1);
        if let Some(tangent) = peek(tensor)? {
            f(tangent)?;
        }
    }
    Ok(())
}

/// Gives a tensor the tangents of these slots that have its layout.
pub(in crate::autograd) fn give(tensor: &Tensor, kept: KeptTangents) {
    for tangent in kept {
        if tangent.get().is_some_and(|value| value.shape() == tensor.shape()) {
            let old = keep(&mut lock(tensor).tangents, tangent);
            tensor.set_flag(Flag::DUAL, true);
            drop(old);
        }
    }
}

/// Gives another handle to the same value the same tangents.
#[inline]
pub(in crate::autograd) fn share(tensor: &Tensor, other: &Tensor) {
    if tensor.has_flag(Flag::DUAL) {
        let tangents = lock(tensor).tangents.clone();
        let old = std::mem::replace(&mut lock(other).tangents, tangents);
        other.set_flag(Flag::DUAL, true);
        drop(old);
    }
}

/// Gives another handle the tangents of the levels before the innermost one that is seen.
fn share_below(tensor: &Tensor, other: &Tensor) -> Result<()> {
    each_peeked(tensor, level::seen().saturating_sub(1), &mut |tangent| {
        put(other, tangent);
        Ok(())
    })
}

/// Gives a copy of a tensor copies of its tangents, whether or not this thread computes tangents now.
#[inline]
pub(in crate::autograd) fn carry(tensor: &Tensor, copied: &Tensor) -> Result<()> {
    if !level::is_open() {
        return Ok(());
    }
    each_peeked(tensor, level::open(), &mut |tangent| {
        let copy = {
            let _below = level::below();
            arithmetic::clone(&tangent)?
        };
        set(copied, copy)
    })
}

/// Replaces the tensor's own tangent, after its sizes or strides were changed in place.
pub(in crate::autograd) fn replace(tensor: &Tensor, tangent: Tensor) {
    if let Some(slot) = slot_of(tensor) {
        slot.replace(tangent);
    }
}

/// The value of an input, with its history but without tangent.
pub(in crate::autograd) fn primal(tensor: &Tensor) -> Result<Tensor> {
    if peek(tensor)?.is_none() {
        return Ok(tensor.clone());
    }
    if !tensor.requires_grad() || !mode::is_recording() {
        return without_history(tensor);
    }
    if let Some(node) = tensor.grad_fn()? {
        return with_history(tensor, node);
    }
    // A leaf's gradient is to arrive at the leaf.
    let _below = level::below();
    arithmetic::alias(tensor)
}

/// The value of an output, with its history, as a handle of its own: the tangent's history keeps it, and must not keep the
/// tensor whose tangent it is.
pub(in crate::autograd) fn result(output: &Tensor) -> Result<Tensor> {
    if !output.has_flag(Flag::HAS_GRAD_FN) || !mode::is_recording() {
        return without_history(output);
    }
    match output.grad_fn()? {
        Some(node) => with_history(output, node),
        None => without_history(output),
    }
}

fn with_history(tensor: &Tensor, node: Node) -> Result<Tensor> {
    let nr = tensor.output_nr();
    let alias = without_history(tensor)?;
    alias.set_history(node, nr);
    Ok(alias)
}

/// Another handle to the value, with the tangents of the levels before the innermost one that is seen.
fn without_history(tensor: &Tensor) -> Result<Tensor> {
    let alias = tensor.detached()?;
    share_below(tensor, &alias)?;
    Ok(alias)
}

/// Removes the tensor's tangent.
#[inline]
pub(in crate::autograd) fn forget(tensor: &Tensor) {
    if tensor.has_flag(Flag::DUAL) {
        let old = std::mem::take(&mut lock(tensor).tangents);
        tensor.set_flag(Flag::DUAL, false);
        drop(old);
    }
}

/// Refuses `out=` with tensors that have tangents.
#[inline]
pub(in crate::autograd) fn check_out(
    def: &OpDef,
    args: &[Arg<'_>],
    outs: &[&Tensor],
) -> Result<()> {
    if !level::is_open() || !is_enabled() {
        return Ok(());
    }
    let is_dual = concerns(args) && !def.is(Traits::NOT_DIFFERENTIABLE);
    if is_dual || outs.iter().any(|out| self::is_dual(out)) {
        bail!(
            not_implemented,
            "Trying to use forward AD with {}_out that does not support it because it is an out= function",
            def.name
        );
    }
    Ok(())
}
