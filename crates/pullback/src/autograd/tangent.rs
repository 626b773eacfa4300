//! The tangents of tensors: which tensor has one, how views find theirs, how a tangent is laid out.
//!
//! Invariant: a tangent lies in its memory as its tensor does in its own (sizes, strides, offset, size of the
//! storage, conj and neg bits), so that a view of the tensor, made by the same numbers of the tangent, is the view's tangent. A view
//! without tangent looks at its base each time: a write may have given the base one since. Start at [`of`] and [`set`].

use super::level::{self, Seen, Tangent};
use super::mode;
use super::{Node, arithmetic, batch, leaf, view::Window};
use crate::dispatch::{Arg, each_tensor};
use crate::error::ensure;
use crate::tensor::Flag;
use crate::{DType, Result, Tensor, TensorSpec};
use smallvec::SmallVec;
use std::sync::Arc;

/// Whether tangents are computed on this thread.
#[inline]
pub(super) fn is_enabled() -> bool {
    mode::is_pushing_forward() && level::seen() > 0
}

/// The tangents that are kept with a tensor, one for each level.
pub(super) type Kept = SmallVec<[Arc<Tangent>; 1]>;

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

/// Whether it has a tangent at a level that is seen, of its own or through its base.
pub(super) fn is_dual(tensor: &Tensor) -> bool {
    innermost(tensor).is_some()
}

/// The innermost level at which it has one.
fn innermost(tensor: &Tensor) -> Option<usize> {
    let seen = level::seen();
    let of = |tensor: &Tensor| {
        if !tensor.has_flag(Flag::DUAL) {
            return None;
        }
        let meta = leaf::lock(tensor);
        let known = meta.tangents.iter().filter(|t| t.number() < seen && t.get().is_some());
        known.map(|tangent| tangent.number()).max()
    };
    let base = || forward_base(tensor).and_then(|base| of(&base));
    of(tensor).max(base())
}

/// Lets the thread see the levels up to the innermost one at which one of these has a tangent.
pub(super) fn turn_of(args: &[Arg<'_>]) -> Seen {
    let mut count = 0;
    each_tensor(args, |tensor| count = count.max(innermost(tensor).map_or(0, |level| level + 1)));
    level::see(count)
}

/// Calls `f` with each of its tangents, from that of the outermost level on; within, that level is the innermost seen.
///
/// # Errors
/// Those of `f`, and for want of memory.
pub(super) fn each(tensor: &Tensor, f: &mut dyn FnMut(Tensor) -> Result<()>) -> Result<()> {
    for number in 0..level::seen() {
        let _turn = level::see(number + 1);
        if let Some(tangent) = of(tensor)? {
            f(tangent)?;
        }
    }
    Ok(())
}

/// The tangent kept with the tensor itself, at the innermost level that is seen.
fn own(tensor: &Tensor) -> Option<Tensor> {
    if !tensor.has_flag(Flag::DUAL) {
        return None;
    }
    place_of(tensor).and_then(|tangent| tangent.get())
}

/// Where that is kept.
fn place_of(tensor: &Tensor) -> Option<Arc<Tangent>> {
    let number = level::seen().checked_sub(1)?;
    leaf::lock(tensor).tangents.iter().find(|tangent| tangent.number() == number).cloned()
}

/// The tensor whose tangent is that of this view too. (That of a dual is its own, although it is a view of its primal.)
pub(super) fn forward_base(tensor: &Tensor) -> Option<Tensor> {
    let flags = tensor.flags();
    if flags & Flag::VIEW == 0 || flags & Flag::OWN_TANGENT != 0 {
        None
    } else if flags & Flag::FORWARD_BASE != 0 {
        leaf::lock(tensor).forward_base.clone()
    } else {
        tensor.base_if_any().cloned()
    }
}

/// Notes which tensor the tangent of a fresh view comes from, if that is not its base.
#[inline]
pub(super) fn link(view: &Tensor, source: &Tensor) {
    if source.flags() & (Flag::OWN_TANGENT | Flag::FORWARD_BASE) != 0 {
        link_apart(view, source);
    }
}

#[cold]
fn link_apart(view: &Tensor, source: &Tensor) {
    let base = forward_base(source).unwrap_or_else(|| source.clone());
    leaf::lock(view).forward_base = Some(base);
    view.set_flag(Flag::FORWARD_BASE, true);
}

/// The tangent of a tensor, also where it has none yet but its base has. `None` on threads that turned forward mode off.
///
/// # Errors
/// Out of memory.
pub(super) fn of(tensor: &Tensor) -> Result<Option<Tensor>> {
    if is_enabled() { peek(tensor) } else { Ok(None) }
}

/// As [`of`], whatever the thread's modes say.
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

/// What `view` shows of `base`, shown of a tensor laid out like the base.
fn slice(view: &Tensor, base: &Tensor, whole: &Tensor) -> Result<Tensor> {
    let _below = level::below();
    // (Recorded whenever it is first asked for: a view made in no_grad mode could not be written to afterwards.)
    let _grad = mode::enable_grad();
    Window::of(view, base).show(whole)
}

/// Puts a tangent among others; gives back the one of its level.
fn keep(tangents: &mut Kept, tangent: Arc<Tangent>) -> Option<Arc<Tangent>> {
    if let Some(place) = tangents.iter_mut().find(|other| other.number() == tangent.number()) {
        return Some(std::mem::replace(place, tangent));
    }
    tangents.push(tangent);
    None
}

/// Keeps a tangent that fits, unless another thread has ended the level meanwhile.
fn put(tensor: &Tensor, tangent: Tensor) {
    let Some(number) = level::seen().checked_sub(1) else { return };
    let Some(tangent) = level::get(number).ok().and_then(|level| Tangent::new(&level, tangent))
    else {
        return;
    };
    let old = keep(&mut leaf::lock(tensor).tangents, tangent);
    tensor.set_flag(Flag::DUAL, true);
    drop(old);
}

/// Gives a tensor that has none a tangent: as it is if it lies as the tensor does, else a copy that does. After a write
/// through a view the base gets one too, zero elsewhere, of which the view's is a part.
///
/// # Errors
/// `RuntimeError` if the sizes differ, or the tensor's elements share memory so that a tangent cannot lie as they do.
pub(super) fn set(tensor: &Tensor, tangent: Tensor, after_write: bool) -> Result<()> {
    ensure!(
        tangent.shape() == tensor.shape(),
        runtime,
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of size {} while the given forward gradient is of size {}.",
        arithmetic::shape_text(tensor.shape()),
        arithmetic::shape_text(tangent.shape())
    );
    let base = if after_write { forward_base(tensor) } else { None };
    let Some(base) = base else {
        put(tensor, laid_out(tangent, tensor)?);
        return Ok(());
    };
    if has_layout_of(&tangent, &base) && has_layout_of(&tangent, tensor) {
        put(&base, tangent.clone());
        put(tensor, tangent);
        return Ok(());
    }
    let whole = match own(&base) {
        Some(known) => known,
        None => zeros_like(&base, fitting(tangent.dtype(), tensor.dtype(), base.dtype()))?,
    };
    // (Of a tensor that is not batched the tangent may be.)
    let whole = batch::with_levels_of(&whole, &tangent)?;
    let part = slice(tensor, &base, &whole)?;
    copy(&part, &tangent)?;
    put(&base, whole);
    put(tensor, part);
    Ok(())
}

/// The dtype of a base's tangent, of which a view's is a part: a view may show complex numbers as pairs, or pairs as such.
fn fitting(tangent: DType, view: DType, base: DType) -> DType {
    if view.is_complex() == base.is_complex() { tangent } else { base }
}

/// The same elements as `tensor`'s lie in memory.
fn laid_out(tangent: Tensor, tensor: &Tensor) -> Result<Tensor> {
    if has_layout_of(&tangent, tensor) {
        return Ok(tangent);
    }
    let copied = zeros_like(tensor, tangent.dtype())?;
    copy(&copied, &tangent)?;
    Ok(copied)
}

/// Writes a tangent into another, with its history.
pub(super) fn copy(target: &Tensor, source: &Tensor) -> Result<()> {
    let _below = level::below();
    arithmetic::copy_in_place(target, source)
}

/// Whether two tensors of one shape lie alike in memories of one size, empty ones too: their views may show more than they
/// do themselves. (Tensors that answer ops themselves have no layout.)
pub(super) fn has_layout_of(a: &Tensor, b: &Tensor) -> bool {
    let (g, h) = (a.geometry(), b.geometry());
    if g.shape != h.shape || a.overrides_ops() || b.overrides_ops() {
        return g.shape == h.shape;
    }
    let steps = g.shape.iter().zip(g.strides.iter().zip(&h.strides));
    storage_len(a) == storage_len(b)
        && g.offset == h.offset
        && a.sign_bits() == b.sign_bits()
        && steps.into_iter().all(|(&size, (s, t))| size < 2 || s == t)
}

/// How many elements the storage has room for.
fn storage_len(tensor: &Tensor) -> usize {
    tensor.geometry().storage.as_ref().map_or(0, |s| s.nbytes() / tensor.dtype().size())
}

/// Zeros that lie in memory as `tensor` does.
pub(super) fn zeros_like(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let _below = level::below();
    let g = tensor.geometry();
    if g.storage.is_none() || tensor.overrides_ops() {
        return arithmetic::to_dtype(&arithmetic::zeros_like(tensor)?, dtype);
    }
    let whole = TensorSpec::of(&[storage_len(tensor) as i64], dtype).on(tensor.device()).zeros()?;
    Ok(whole.alias_with(&g.shape, &g.strides, g.offset)?.with_bits_of(tensor))
}

/// Whether two tensors have memory in common.
pub(super) fn shares_memory(a: &Tensor, b: &Tensor) -> bool {
    match (&a.geometry().storage, &b.geometry().storage) {
        (Some(a), Some(b)) => a.ptr_eq(b),
        _ => a.is_same(b),
    }
}

/// What keeps the tensor's tangents, as long as a level is open.
#[inline]
pub(super) fn handle(tensor: &Tensor) -> Result<Kept> {
    if !level::is_open() {
        return Ok(Kept::new());
    }
    each_peeked(tensor, level::open(), &mut |_| Ok(()))?;
    Ok(leaf::lock(tensor).tangents.clone())
}

/// As [`each`] for the outermost `count` levels, whatever the thread's modes say.
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

/// Gives a tensor the tangents that are kept there, as far as they fit.
pub(super) fn give(tensor: &Tensor, kept: Kept) {
    for tangent in kept {
        if tangent.get().is_some_and(|value| value.shape() == tensor.shape()) {
            let old = keep(&mut leaf::lock(tensor).tangents, tangent);
            tensor.set_flag(Flag::DUAL, true);
            drop(old);
        }
    }
}

/// Lets another handle to the same value have the same tangents.
#[inline]
pub(super) fn share(tensor: &Tensor, other: &Tensor) {
    if tensor.has_flag(Flag::DUAL) {
        let tangents = leaf::lock(tensor).tangents.clone();
        let old = std::mem::replace(&mut leaf::lock(other).tangents, tangents);
        other.set_flag(Flag::DUAL, true);
        drop(old);
    }
}

/// Lets another handle have those of the levels before the innermost one that is seen.
fn share_below(tensor: &Tensor, other: &Tensor) -> Result<()> {
    each_peeked(tensor, level::seen().saturating_sub(1), &mut |tangent| {
        put(other, tangent);
        Ok(())
    })
}

/// Gives a copy of a tensor copies of its tangents, whether or not this thread computes tangents now.
#[inline]
pub(super) fn carry(tensor: &Tensor, copied: &Tensor) -> Result<()> {
    if !level::is_open() {
        return Ok(());
    }
    each_peeked(tensor, level::open(), &mut |tangent| {
        let copy = {
            let _below = level::below();
            arithmetic::clone(&tangent)?
        };
        set(copied, copy, false)
    })
}

/// Puts another tangent in the place of the tensor's own, after its sizes or strides were changed in place.
pub(super) fn replace(tensor: &Tensor, tangent: Tensor) {
    if let Some(place) = place_of(tensor) {
        place.replace(tangent);
    }
}

/// The value of an input, with its history but without tangent.
pub(super) fn primal(tensor: &Tensor) -> Result<Tensor> {
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

/// The value of an output, with its history. A handle of its own: the tangent's history keeps it, and must not keep the
/// tensor whose tangent it is.
pub(super) fn result(output: &Tensor) -> Result<Tensor> {
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

/// Takes the tangent away.
#[inline]
pub(super) fn forget(tensor: &Tensor) {
    if tensor.has_flag(Flag::DUAL) {
        let old = std::mem::take(&mut leaf::lock(tensor).tangents);
        tensor.set_flag(Flag::DUAL, false);
        drop(old);
    }
}
