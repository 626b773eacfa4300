//! Views and writes through them: linking a view to its base, and refusing writes whose history could not be recorded.
//!
//! A view knows its root base; the base does not know its views. A write through a view gives the base a node (`rebase`); other
//! views notice by the shared version counter that their history is out of date (`refresh`).

use super::history::{self, CreationMeta};
use super::refresh::{Refused, check_shown, check_view_write, refreshed_grad_fn};
use super::{replayed, tangent};
use crate::autograd::graph::blame;
use crate::autograd::{arithmetic, mode};
use crate::dispatch::{Arg, OpDef, Traits};
use crate::error::ensure;
use crate::tensor::{Flag, may_overlap_itself};
use crate::{Error, Result, Tensor};
use std::sync::atomic::Ordering;

impl Tensor {
    /// Makes `self`, which is fresh, a view of `source` (of its root base).
    pub(crate) fn link_to_base(&self, source: &Tensor, multi: bool) {
        self.set_birth(source.birth());
        if mode::is_tracking_excluded() {
            return;
        }
        let modes = mode::current();
        if source.has_flag(Flag::INFERENCE) {
            self.set_flag_fresh(Flag::INFERENCE);
            return;
        }
        let mut meta = if modes & mode::bit::INFERENCE != 0 {
            CreationMeta::Inference
        } else if modes & mode::bit::GRAD == 0 {
            CreationMeta::NoGrad
        } else if multi {
            CreationMeta::MultiOutput
        } else {
            CreationMeta::Default
        };
        let base = source.base().unwrap_or(source);
        if source.is_view() {
            let inherited = source.creation_meta();
            if meta == CreationMeta::Default || inherited == CreationMeta::Inference {
                meta = inherited;
            }
        }
        if self.set_base(base.clone()) {
            self.set_flag_fresh(Flag::VIEW | (meta as u32) << Flag::CREATION_SHIFT);
            self.follow_version_of(base);
            // The error of its use, after a write to the base, names the write.
            if meta != CreationMeta::Default
                && let Some(counter) = self.version_counter()
            {
                counter.watch();
            }
            self.attr_version().store(self.version(), Ordering::Release);
            tangent::link(self, source);
        }
    }
}

/// Links the outputs of a view op to the base of its first argument.
#[inline]
pub(crate) fn link_views(def: &'static OpDef, args: &[Arg<'_>], outputs: &[Tensor]) {
    let Some(Arg::Tensor(source)) = args.first() else { return };
    // An op that makes views of strided tensors makes new tensors of sparse ones.
    if source.is_sparse() {
        return;
    }
    for output in outputs {
        output.link_to_base(source, def.is(Traits::MULTI_VIEW));
    }
    if let Some(first) = outputs.first()
        && replayed::is_kept(source, first)
    {
        replayed::keep(def, args, source, outputs);
    }
}

/// Refuses to write through a view of a base that shows elements more than once: the gradient of the base after the write needs
/// memory in which each of its elements lies once.
#[inline]
fn check_shown_once(base: &Tensor) -> Result<()> {
    ensure!(
        !base.has_flag(Flag::RESTRIDED) || !may_overlap_itself(base.shape(), base.strides()),
        runtime,
        "a view is being modified inplace whose base, of shape {} and strides {}, shows elements more than once since as_strided_() changed it in place: the base's gradient cannot be told. Call as_strided(), which makes another view and leaves the base as it is",
        arithmetic::shape_text(base.shape()),
        arithmetic::shape_text(base.strides())
    );
    Ok(())
}

/// The error for a write that would change a leaf.
#[cold]
pub(in crate::autograd) fn leaf_write(message: &str, view: Option<&Tensor>) -> Error {
    let report = blame::refused(message, view.and_then(history::grad_fn_of).as_ref());
    report
        .hint("write under no_grad(), if it is not to be differentiated, or write to a clone()", "")
        .error()
}

/// Refuses in-place writes that autograd cannot follow. Called before every in-place write.
#[inline]
pub(crate) fn check_inplace(target: &Tensor, will_require_grad: bool) -> Result<()> {
    target.check_version_writable()?;
    if !mode::is_recording() || !(will_require_grad || target.requires_grad()) {
        return Ok(());
    }
    if target.is_view() {
        check_view_write(target, Refused::Write)?;
        let base = target.base().expect("a view has a base");
        if base.is_leaf_now() && target.requires_grad() {
            return Err(leaf_write(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
                Some(target),
            ));
        }
        check_shown(target, base)?;
        check_shown_once(base)?;
        // The history must be up to date before the write adds to it.
        refreshed_grad_fn(target)?;
        return Ok(());
    }
    if target.has_flag(Flag::REQUIRES_GRAD) && target.is_leaf_now() {
        return Err(leaf_write(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            None,
        ));
    }
    Ok(())
}

/// Whether the tensor is a leaf that requires grad, or shows elements of one.
pub(in crate::autograd) fn shows_leaf(tensor: &Tensor) -> bool {
    let base = tensor.base().unwrap_or(tensor);
    base.is_leaf_now() && tensor.requires_grad()
}

impl Tensor {
    pub(crate) fn check_version_writable(&self) -> Result<()> {
        ensure!(
            !self.has_flag(Flag::INFERENCE) || mode::is_inference_mode(),
            runtime,
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update."
        );
        Ok(())
    }
}

/// Refuses `out=` with tensors that require grad.
pub(crate) fn check_out(def: &OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    if !mode::is_recording() {
        return Ok(());
    }
    let mut requires = outs.iter().any(|t| t.requires_grad());
    if !def.is(Traits::NOT_DIFFERENTIABLE) {
        crate::dispatch::each_tensor(args, |t| requires |= t.requires_grad());
    }
    ensure!(
        !requires,
        runtime,
        "{}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.",
        def.name
    );
    Ok(())
}
