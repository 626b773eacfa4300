//! Replaying views: the ops that made a view of its base, run again on another tensor, and backwards.
//!
//! An ordinary view is its sizes, strides and offset, and keeps nothing of how it was made: `as_strided` makes it again.
//! Ops are kept where that would not do (another dtype, conjugates, a class that answers ops itself) and where the program asks for
//! them ([`mode::set_view_replay_enabled`]), and then for views of such views. Invariant: what is kept begins at the root
//! base as it lies now; gaps are filled by `as_strided`, also where the base's own sizes or strides were changed. Start at
//! [`keep`] and [`Tensor::view_func_with`].

use super::{Pushforward, arithmetic, autocast, leaf, mode, tangent};
use crate::dispatch::{Arg, OpDef, Traits, Value};
use crate::error::ensure;
use crate::tensor::{Dims, Flag};
use crate::{Error, Result, Tensor};
use pullback_schema::Base;
use smallvec::SmallVec;
use std::sync::Arc;

/// How a view is made of its root base.
pub(super) struct Replay {
    /// How its source is, if that is not the base itself.
    parent: Option<Arc<Replay>>,
    step: Step,
    /// How the base lay when the first step was run.
    base: Arc<Layout>,
}

/// How a tensor lies in its memory.
#[derive(PartialEq)]
struct Layout {
    shape: Dims,
    strides: Dims,
    offset: i64,
}

impl Layout {
    fn of(tensor: &Tensor) -> Arc<Layout> {
        let geometry = tensor.geometry();
        Arc::new(Layout {
            shape: geometry.shape.clone(),
            strides: geometry.strides.clone(),
            offset: geometry.offset,
        })
    }
    /// Whether `tensor` lies so.
    fn is_of(&self, tensor: &Tensor) -> bool {
        let geometry = tensor.geometry();
        self.offset == geometry.offset
            && self.shape == geometry.shape
            && self.strides == geometry.strides
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // A loop: chains are as long as programs make them.
        let mut next = self.parent.take();
        while let Some(replay) = next {
            next = Arc::into_inner(replay).and_then(|mut last| last.parent.take());
        }
    }
}

/// One view op with its arguments, of which the first, its source, is left out.
#[derive(Clone)]
struct Step {
    def: &'static OpDef,
    args: Vec<Value>,
    /// Which of its outputs the view is.
    output: usize,
}

/// Makes another number or tensor of one that is kept.
type Visit<'a, Kept, Other> = &'a mut dyn FnMut(Kept) -> Result<Other>;

/// Functions that change what a replay has kept, once for each number that stands for a size or a place, and for each tensor.
#[derive(Default)]
pub struct Visitor<'a> {
    /// For numbers.
    pub number: Option<Visit<'a, i64, i64>>,
    /// For tensors.
    pub tensor: Option<Visit<'a, Tensor, Tensor>>,
}

impl Visitor<'_> {
    fn is_empty(&self) -> bool {
        self.number.is_none() && self.tensor.is_none()
    }
}

impl Step {
    fn new(def: &'static OpDef, args: &[Arg<'_>], output: usize) -> Step {
        let value = |(index, arg): (usize, &Arg<'_>)| match index {
            0 => Value::None,
            _ => Value::from_arg(*arg),
        };
        Step { def, args: args.iter().enumerate().map(value).collect(), output }
    }

    /// What shows a tensor's memory as `view` does.
    fn as_strided(view: &Tensor) -> Step {
        Step::lying(&Layout::of(view))
    }

    /// What shows a tensor's memory so.
    fn lying(layout: &Layout) -> Step {
        let (shape, strides) = (Arg::Ints(&layout.shape), Arg::Ints(&layout.strides));
        Step::new(arithmetic::AS_STRIDED, &[Arg::None, shape, strides, Arg::Int(layout.offset)], 0)
    }

    fn run(&self, source: &Tensor) -> Result<Tensor> {
        let mut args: SmallVec<[Arg<'_>; 8]> = self.args.iter().map(Value::as_arg).collect();
        args[0] = Arg::Tensor(source);
        let outputs = super::call(self.def, &args)?;
        outputs.as_slice().get(self.output).cloned().ok_or_else(|| {
            Error::runtime(format!("{} gives no view {} here", self.def.name, self.output))
        })
    }

    /// The source that `view` is made of; `source` says how it lies.
    fn undo(&self, source: &Tensor, view: &Tensor) -> Result<Tensor> {
        if !self.def.is(Traits::BIJECTIVE) {
            let geometry = source.geometry();
            let (shape, strides) = (&geometry.shape, &geometry.strides);
            return arithmetic::as_strided(view, shape, strides, geometry.offset);
        }
        let mut args = self.args.clone();
        args[0] = Value::Tensor(source.clone());
        // The gradient of a permutation is its inverse.
        let undone = Pushforward::with_tangents(self.def, &args, &[]).pull_back(view)?;
        ensure!(
            tangent::shares_memory(&undone, view) || view.overrides_ops(),
            runtime,
            "a tensor of strides {} cannot be seen as what {} was called on, without a copy",
            arithmetic::shape_text(view.strides()),
            self.def.name
        );
        if undone.is_same(view) { arithmetic::alias(view) } else { Ok(undone) }
    }

    /// The same with what `visitor` makes of its numbers and tensors.
    fn visited(&self, visitor: &mut Visitor<'_>) -> Result<Step> {
        let mut step = self.clone();
        let places = step.args.iter_mut().zip(&self.def.schema().args).skip(1);
        for (value, info) in places {
            match (value, &mut visitor.number, &mut visitor.tensor) {
                (Value::Int(number), Some(visit), _) if info.ty.base == Base::SymInt => {
                    *number = visit(*number)?;
                }
                (Value::Ints(numbers), Some(visit), _) if info.ty.base == Base::SymInt => {
                    for number in numbers {
                        *number = visit(*number)?;
                    }
                }
                (Value::Tensor(tensor), _, Some(visit)) => *tensor = visit(tensor.clone())?,
                _ => {}
            }
        }
        Ok(step)
    }
}

impl Replay {
    /// One step more than `parent`, or the first one from `base`.
    fn after(parent: Option<Arc<Replay>>, step: Step, base: &Tensor) -> Replay {
        let base = parent.as_ref().map_or_else(|| Layout::of(base), |parent| parent.base.clone());
        Replay { parent, step, base }
    }

    /// The same from a base whose own sizes or strides were changed since.
    #[cold]
    fn of_changed(&self, base: &Tensor) -> Replay {
        let mut replay = Replay::after(None, Step::lying(&self.base), base);
        for step in self.steps() {
            replay = Replay::after(Some(Arc::new(replay)), step.clone(), base);
        }
        replay
    }

    /// From the root base on.
    fn steps(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> =
            std::iter::successors(Some(self), |replay| replay.parent.as_deref())
                .map(|replay| &replay.step)
                .collect();
        steps.reverse();
        steps
    }

    /// The view of `base`.
    pub(super) fn run(&self, base: &Tensor) -> Result<Tensor> {
        self.run_with(base, &mut Visitor::default())
    }

    fn run_with(&self, base: &Tensor, visitor: &mut Visitor<'_>) -> Result<Tensor> {
        let _pause = autocast::pause();
        let mut view = base.clone();
        for step in self.steps() {
            view = if visitor.is_empty() {
                step.run(&view)?
            } else {
                step.visited(visitor)?.run(&view)?
            };
        }
        Ok(view)
    }

    /// What `view` is a view of, laid out as `base`.
    fn undo(&self, base: &Tensor, view: &Tensor) -> Result<Tensor> {
        let _pause = autocast::pause();
        let steps = self.steps();
        let mut sources = vec![base.clone()];
        for step in &steps[..steps.len() - 1] {
            let _unrecorded = mode::no_grad();
            sources.push(step.run(&sources[sources.len() - 1])?);
        }
        let mut view = view.clone();
        for (step, source) in steps.iter().zip(&sources).rev() {
            view = step.undo(source, &view)?;
        }
        Ok(view)
    }
}

/// Whether views of `source` keep how they are made.
#[inline(always)]
pub(super) fn is_kept(source: &Tensor, view: &Tensor) -> bool {
    (source.flags() | view.flags())
        & (Flag::PYTHON | Flag::BATCHED | Flag::REPLAYS | Flag::UNRESOLVED)
        != 0
        || mode::current() & mode::bit::VIEW_REPLAY != 0
        || source.dtype() != view.dtype()
}

/// Keeps with the outputs of a view op, linked to their base just now, how they are made.
#[cold]
#[inline(never)]
pub(super) fn keep(def: &'static OpDef, args: &[Arg<'_>], source: &Tensor, views: &[Tensor]) {
    let own = |view: &Tensor| {
        mode::current() & mode::bit::VIEW_REPLAY != 0
            || (source.overrides_ops() || view.overrides_ops())
            || source.dtype() != view.dtype()
            || source.sign_bits() != view.sign_bits()
    };
    let base = source.base().unwrap_or(source);
    let parent = match of(source) {
        None if source.is_view() => {
            Some(Arc::new(Replay::after(None, Step::as_strided(source), base)))
        }
        known => known,
    };
    for (output, view) in views.iter().enumerate().filter(|(_, view)| view.is_view()) {
        let step = if own(view) { Step::new(def, args, output) } else { Step::as_strided(view) };
        put(view, Replay::after(parent.clone(), step, base));
    }
}

/// Notes that a view's own sizes or strides were changed in place.
#[inline]
pub(super) fn note_reshaped(view: &Tensor) {
    if view.has_flag(Flag::REPLAYS)
        && let Some(base) = view.base()
    {
        put(view, Replay::after(of(view), Step::as_strided(view), base));
    }
}

fn put(view: &Tensor, replay: Replay) {
    let old = leaf::lock(view).replay.replace(Arc::new(replay));
    view.set_flag(Flag::REPLAYS, true);
    drop(old);
}

/// How the view is made of its base as that is now, if it keeps that.
#[inline]
pub(super) fn of(view: &Tensor) -> Option<Arc<Replay>> {
    if !view.has_flag(Flag::REPLAYS) {
        return None;
    }
    let kept = leaf::lock(view).replay.clone()?;
    match view.base() {
        Some(base) if !kept.base.is_of(base) => {
            put(view, kept.of_changed(base));
            leaf::lock(view).replay.clone()
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

    /// As [`Tensor::view_func`], with what `visitor` makes of the sizes and tensors that are kept with the view, if any
    /// are; only `is_checked` asks for a tensor that lies as the base.
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
        if is_checked && !tangent::has_layout_of(new_base, base) {
            return Ok(None);
        }
        if let Some(replay) = of(self) {
            return replay.run_with(new_base, visitor).map(Some);
        }
        let geometry = self.geometry();
        let (shape, strides) = (&geometry.shape, &geometry.strides);
        arithmetic::as_strided(new_base, shape, strides, geometry.offset).map(Some)
    }

    /// What `new_view` is such a view of, itself a view of `new_view`; `None` if this is no view. Of a view that does not
    /// show all elements the rest is looked for in memory around it.
    ///
    /// # Errors
    /// `RuntimeError` if the view does not keep how it was made, or `new_view` does not lie in memory as it must.
    pub fn rev_view_func(&self, new_view: &Tensor) -> Result<Option<Tensor>> {
        let Some(base) = self.base() else { return Ok(None) };
        let Some(replay) = of(self) else {
            return Err(Error::runtime("No _rev_view_func() found".to_owned()));
        };
        replay.undo(base, new_view).map(Some)
    }
}
