//! The replays that views keep: which views do, and how a replay is found again.
//!
//! Start at [`keep`], and for programs that replay views at [`Tensor::view_func_with`].

use super::layout::lies_as;
use super::meta::lock;
use super::replay::{Replay, ViewStep, Visitor};
use crate::autograd::{arithmetic, mode};
use crate::dispatch::{Arg, OpDef};
use crate::tensor::Flag;
use crate::{Result, Tensor};
use std::sync::Arc;

/// Whether views of `source` keep their replay.
#[inline(always)]
pub(in crate::autograd) fn is_kept(source: &Tensor, view: &Tensor) -> bool {
    (source.flags() | view.flags())
        & (Flag::PYTHON | Flag::BATCHED | Flag::REPLAYS | Flag::UNRESOLVED)
        != 0
        || mode::current() & mode::bit::VIEW_REPLAY != 0
        || source.dtype() != view.dtype()
}

/// Keeps the replays of the outputs of a view op, which have just been linked to their base.
#[cold]
#[inline(never)]
pub(in crate::autograd) fn keep(
    def: &'static OpDef,
    args: &[Arg<'_>],
    source: &Tensor,
    views: &[Tensor],
) {
    let own = |view: &Tensor| {
        mode::current() & mode::bit::VIEW_REPLAY != 0
            || (source.overrides_ops() || view.overrides_ops())
            || source.dtype() != view.dtype()
            || source.sign_bits() != view.sign_bits()
    };
    let base = source.base().unwrap_or(source);
    let parent = match of(source) {
        None if source.is_view() => {
            Some(Arc::new(Replay::after(None, ViewStep::as_strided(source), base)))
        }
        known => known,
    };
    for (output, view) in views.iter().enumerate().filter(|(_, view)| view.is_view()) {
        let step =
            if own(view) { ViewStep::new(def, args, output) } else { ViewStep::as_strided(view) };
        put(view, Replay::after(parent.clone(), step, base));
    }
}

/// Notes that a view's own sizes or strides were changed in place.
#[inline]
pub(in crate::autograd) fn note_reshaped(view: &Tensor) {
    if view.has_flag(Flag::REPLAYS)
        && let Some(base) = view.base()
    {
        put(view, Replay::after(of(view), ViewStep::as_strided(view), base));
    }
}

fn put(view: &Tensor, replay: Replay) {
    let old = lock(view).replay.replace(Arc::new(replay));
    view.set_flag(Flag::REPLAYS, true);
    drop(old);
}

/// The replay of a view from its base as that is now, if the view keeps one.
#[inline]
pub(in crate::autograd) fn of(view: &Tensor) -> Option<Arc<Replay>> {
    if !view.has_flag(Flag::REPLAYS) {
        return None;
    }
    let kept = lock(view).replay.clone()?;
    match view.base() {
        Some(base) if !kept.base.is_of(base) => {
            put(view, kept.of_changed(base));
            lock(view).replay.clone()
        }
        _ => Some(kept),
    }
}

impl Tensor {
    /// The same view of another tensor, which lies in memory as this view's base does; `None` if this is no view, or the
    /// other tensor lies in another way.
    ///
    /// # Errors
    /// Those of the view ops.
    pub fn view_func(&self, new_base: &Tensor) -> Result<Option<Tensor>> {
        self.view_func_with(new_base, true, &mut Visitor::default())
    }

    /// As [`Tensor::view_func`], with the sizes and tensors that are kept with the view, if any
    /// are, replaced by `visitor`. Only with `is_checked` must the other tensor lie in memory as
    /// the base does.
    ///
    /// # Errors
    /// Those of the view ops and of the visitor.
    pub fn view_func_with(
        &self,
        new_base: &Tensor,
        is_checked: bool,
        visitor: &mut Visitor<'_>,
    ) -> Result<Option<Tensor>> {
        let Some(base) = self.base() else { return Ok(None) };
        if is_checked && !lies_as(new_base, base) {
            return Ok(None);
        }
        if let Some(replay) = of(self) {
            return replay.run_with(new_base, visitor).map(Some);
        }
        let geometry = self.geometry();
        let (shape, strides) = (&geometry.shape, &geometry.strides);
        arithmetic::as_strided(new_base, shape, strides, geometry.offset).map(Some)
    }
}
