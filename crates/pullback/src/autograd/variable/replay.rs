//! Replaying views: the ops that made a view of its base, run again on another tensor, and backwards.
//!
//! An ordinary view is its sizes, strides and offset, and keeps nothing of how it was made: `as_strided` makes it again.
//! Ops are kept where that would not do (another dtype, conjugates, a class with `__torch_dispatch__`) and where the program asks for
//! them (`mode::set_view_replay_enabled`), and then for views of such views. Invariant: what is kept begins at the root
//! base as it lies now; gaps are filled by `as_strided`, also where the base's own sizes or strides were changed. `replayed`
//! keeps them with views. Start at [`Replay::run`].

use crate::autograd::arithmetic;
use crate::autograd::thread::autocast;
use crate::dispatch::{Arg, OpDef, Value};
use crate::tensor::Dims;
use crate::{Error, Result, Tensor};
use pullback_schema::Base;
use smallvec::SmallVec;
use std::sync::Arc;

/// The ops that make a view of its root base.
pub(in crate::autograd) struct Replay {
    /// The replay of the source, if that is not the base itself.
    parent: Option<Arc<Replay>>,
    step: ViewStep,
    /// The layout of the base when the first step was run.
    pub(in crate::autograd) base: Arc<ViewGeometry>,
}

/// The layout of a tensor in its memory.
#[derive(PartialEq)]
pub(in crate::autograd) struct ViewGeometry {
    shape: Dims,
    strides: Dims,
    offset: i64,
}

impl ViewGeometry {
    fn of(tensor: &Tensor) -> Arc<ViewGeometry> {
        let geometry = tensor.geometry();
        Arc::new(ViewGeometry {
            shape: geometry.shape.clone(),
            strides: geometry.strides.clone(),
            offset: geometry.offset,
        })
    }
    /// Whether `tensor` has this layout.
    pub(in crate::autograd) fn is_of(&self, tensor: &Tensor) -> bool {
        let geometry = tensor.geometry();
        self.offset == geometry.offset
            && self.shape == geometry.shape
            && self.strides == geometry.strides
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // (A loop, because chains are as long as programs make them.)
        let mut next = self.parent.take();
        while let Some(replay) = next {
            next = Arc::into_inner(replay).and_then(|mut last| last.parent.take());
        }
    }
}

/// One view op with its arguments, without the first one, which is the source.
#[derive(Clone)]
pub(in crate::autograd) struct ViewStep {
    pub(in crate::autograd) def: &'static OpDef,
    pub(in crate::autograd) args: Vec<Value>,
    /// The index of the view among the op's outputs.
    output: usize,
}

/// A function that replaces a kept number or tensor.
type MapEach<'a, Kept, Other> = &'a mut dyn FnMut(Kept) -> Result<Other>;

/// Functions that replace what a replay keeps: each number that stands for a size or an index, and each tensor.
#[derive(Default)]
pub struct Visitor<'a> {
    /// Replaces numbers.
    pub number: Option<MapEach<'a, i64, i64>>,
    /// Replaces tensors.
    pub tensor: Option<MapEach<'a, Tensor, Tensor>>,
}

impl Visitor<'_> {
    fn is_empty(&self) -> bool {
        self.number.is_none() && self.tensor.is_none()
    }
}

impl ViewStep {
    pub(in crate::autograd) fn new(
        def: &'static OpDef,
        args: &[Arg<'_>],
        output: usize,
    ) -> ViewStep {
        let value = |(index, arg): (usize, &Arg<'_>)| match index {
            0 => Value::None,
            _ => Value::from_arg(*arg),
        };
        ViewStep { def, args: args.iter().enumerate().map(value).collect(), output }
    }

    /// The step that shows a tensor's memory as `view` does.
    pub(in crate::autograd) fn as_strided(view: &Tensor) -> ViewStep {
        ViewStep::lying(&ViewGeometry::of(view))
    }

    /// The step that shows a tensor's memory in a layout.
    fn lying(layout: &ViewGeometry) -> ViewStep {
        let (shape, strides) = (Arg::Ints(&layout.shape), Arg::Ints(&layout.strides));
        ViewStep::new(
            arithmetic::AS_STRIDED,
            &[Arg::None, shape, strides, Arg::Int(layout.offset)],
            0,
        )
    }

    pub(in crate::autograd) fn run(&self, source: &Tensor) -> Result<Tensor> {
        let mut args: SmallVec<[Arg<'_>; 8]> = self.args.iter().map(Value::as_arg).collect();
        args[0] = Arg::Tensor(source);
        let outputs = arithmetic::run(self.def, &args)?;
        outputs.as_slice().get(self.output).cloned().ok_or_else(|| {
            Error::runtime(format!("{} gives no view {} here", self.def.name, self.output))
        })
    }

    /// The step with the numbers and tensors that `visitor` makes of its own.
    fn visited(&self, visitor: &mut Visitor<'_>) -> Result<ViewStep> {
        let mut step = self.clone();
        let values = step.args.iter_mut().zip(&self.def.schema().args).skip(1);
        for (value, info) in values {
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
    /// The replay with one step after `parent`, or with the first step from `base`.
    pub(in crate::autograd) fn after(
        parent: Option<Arc<Replay>>,
        step: ViewStep,
        base: &Tensor,
    ) -> Replay {
        let base =
            parent.as_ref().map_or_else(|| ViewGeometry::of(base), |parent| parent.base.clone());
        Replay { parent, step, base }
    }

    /// The replay from a base whose own sizes or strides have changed since.
    #[cold]
    pub(in crate::autograd) fn of_changed(&self, base: &Tensor) -> Replay {
        let mut replay = Replay::after(None, ViewStep::lying(&self.base), base);
        for step in self.steps() {
            replay = Replay::after(Some(Arc::new(replay)), step.clone(), base);
        }
        replay
    }

    /// The steps from the root base on.
    pub(in crate::autograd) fn steps(&self) -> Vec<&ViewStep> {
        let mut steps: Vec<&ViewStep> =
            std::iter::successors(Some(self), |replay| replay.parent.as_deref())
                .map(|replay| &replay.step)
                .collect();
        steps.reverse();
        steps
    }

    /// Runs the replay on `base`; the view.
    pub(in crate::autograd) fn run(&self, base: &Tensor) -> Result<Tensor> {
        self.run_with(base, &mut Visitor::default())
    }

    pub(in crate::autograd) fn run_with(
        &self,
        base: &Tensor,
        visitor: &mut Visitor<'_>,
    ) -> Result<Tensor> {
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
}
