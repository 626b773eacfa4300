//! The history of a view: after a write to its base it is out of date, and is made anew from the base when it is needed.

use super::history::{self, CreationMeta};
use super::replayed;
use crate::autograd::graph::blame;
use crate::autograd::graph::node::{Edge, Node};
use crate::autograd::{arithmetic, mode};
use crate::error::ensure;
use crate::tensor::{Dims, Flag, shares_memory};
use crate::{DType, Result, Tensor, TensorSpec};
use std::sync::atomic::Ordering;

impl Tensor {
    /// Whether no op produced the tensor. Refreshes the history of a view first.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.grad_fn(), Ok(Some(_)))
    }
    /// The node that produced the tensor; for views, after a write to their base, the node of their current state.
    ///
    /// # Errors
    /// `RuntimeError` if a view's base was changed in a way that leaves the view without history.
    #[inline]
    pub fn grad_fn(&self) -> Result<Option<Node>> {
        let flags = self.flags();
        if flags & Flag::VIEW != 0 {
            return refreshed_grad_fn(self);
        }
        Ok(if flags & Flag::HAS_GRAD_FN != 0 {
            self.grad_fn_slot().with(|n| n.clone())
        } else {
            None
        })
    }
    /// The edge along which a gradient of this tensor goes.
    ///
    /// # Errors
    /// As [`Tensor::grad_fn`].
    #[inline]
    pub fn gradient_edge(&self) -> Result<Edge> {
        if let Some(node) = self.grad_fn()? {
            return Ok(Edge::new(node, self.output_nr()));
        }
        Ok(Edge { node: self.accumulator(), nr: 0 })
    }
}

/// The use of a view that is refused.
#[derive(Clone, Copy)]
pub(in crate::autograd) enum Refused {
    /// A write through the view.
    Write,
    /// The use of the view, after its base was written to.
    Use,
}

impl Refused {
    fn text(self) -> &'static str {
        match self {
            Refused::Write => "is being modified inplace",
            Refused::Use => "its base or another view of its base has been modified inplace",
        }
    }
}

/// Refuses writes through views whose history could not be recorded.
pub(in crate::autograd) fn check_view_write(view: &Tensor, refused: Refused) -> Result<()> {
    let meta = view.creation_meta();
    if meta == CreationMeta::Default {
        return Ok(());
    }
    let node = history::grad_fn_of(view);
    let what = refused.text();
    let is_inference = meta == CreationMeta::Inference;
    let is_unrecorded = is_inference || meta == CreationMeta::NoGrad;
    let (mode, now) = if is_inference {
        ("inference mode", " in normal mode")
    } else {
        ("no_grad mode", " with grad mode enabled")
    };
    let start = match &node {
        None => format!("A view was created in {mode} and {what}{now}"),
        Some(node) => {
            let start = format!("Output {} of {} is a view", view.output_nr(), node.name());
            if is_unrecorded {
                format!("{start} of a view which was created in {mode} and {what}{now}")
            } else {
                format!("{start} and {what}")
            }
        }
    };
    let message = match meta {
        CreationMeta::NoGrad | CreationMeta::Inference => {
            let block = if is_inference { "inference_mode block" } else { "no_grad block" };
            format!(
                "{start}. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the {block} (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
            )
        }
        CreationMeta::MultiOutput => format!(
            "{start}. This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        ),
        _ => format!(
            "{start}. This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
        ),
    };
    Err(match refused {
        Refused::Write => blame::refused(message, node.as_ref()),
        Refused::Use => blame::outdated(message, view, node.as_ref()),
    }
    .error())
}

/// Refuses a view that shows elements which its base does not show any more: no gradient for them could arrive there.
#[inline]
pub(in crate::autograd) fn check_shown(view: &Tensor, base: &Tensor) -> Result<()> {
    if !base.has_flag(Flag::RESTRIDED) || base.overrides_ops() {
        return Ok(());
    }
    ensure!(
        shows_all_of(base, view)?,
        runtime,
        "a view of shape {} has elements that its base, of shape {}, does not show any more since as_strided_() changed the base in place: the view's gradient cannot be told. Call as_strided(), which makes another view and leaves the base as it is",
        arithmetic::shape_text(view.shape()),
        arithmetic::shape_text(base.shape())
    );
    Ok(())
}

/// Whether `base` shows every part of its memory that `view` shows.
#[cold]
fn shows_all_of(base: &Tensor, view: &Tensor) -> Result<bool> {
    let (Some(memory), true) = (&base.geometry().storage, shares_memory(base, view)) else {
        return Ok(true);
    };
    let _unrecorded = mode::set_grad(false);
    let _plain = mode::set_forward(false);
    // A mark for each number, of which a complex element has two; those that the base shows are removed.
    let unit = base.dtype().size().min(view.dtype().size());
    let marks = TensorSpec::of(&[(memory.nbytes() / unit) as i64], DType::Bool).zeros()?;
    let marks = arithmetic::is_zero(&marks)?;
    let shown_by = |tensor: &Tensor| {
        let (geometry, parts) = (tensor.geometry(), (tensor.dtype().size() / unit) as i64);
        let mut shape = geometry.shape.clone();
        let mut strides: Dims = geometry.strides.iter().map(|stride| stride * parts).collect();
        shape.push(parts);
        strides.push(1);
        arithmetic::as_strided(&marks, &shape, &strides, geometry.offset * parts)
    };
    arithmetic::zero_in_place(&shown_by(base)?)?;
    Ok(!arithmetic::has_nonzero(&shown_by(view)?)?)
}

/// The history of a view, made anew if its base was written to.
pub(in crate::autograd) fn refreshed_grad_fn(view: &Tensor) -> Result<Option<Node>> {
    let Some(base) = view.base() else { return Ok(history::grad_fn_of(view)) };
    if !view.has_flag(Flag::HAS_GRAD_FN) && !base.requires_grad() {
        return Ok(None);
    }
    let version = view.version();
    if view.attr_version().load(Ordering::Acquire) == version {
        return Ok(history::grad_fn_of(view));
    }
    check_view_write(view, Refused::Use)?;
    check_shown(view, base)?;
    let node = {
        let _grad = mode::enable_grad();
        let again = match replayed::of(view) {
            Some(replay) => replay.run(base)?,
            None => {
                arithmetic::as_strided(base, view.shape(), view.strides(), view.storage_offset())?
            }
        };
        history::grad_fn_of(&again)
    };
    if let Some(node) = &node {
        view.output_slot().store(0, Ordering::Release);
        let old = view.grad_fn_slot().with(|slot| slot.replace(node.clone()));
        view.set_flag(Flag::HAS_GRAD_FN, true);
        history::move_retain(view, old.as_ref());
        drop(old);
    }
    view.attr_version().store(version, Ordering::Release);
    Ok(node)
}
