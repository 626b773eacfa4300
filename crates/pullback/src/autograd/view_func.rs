//! Inverting views: the tensor of which a given tensor is such a view as another one is.

use super::arithmetic;
use super::forward::pushforward::Pushforward;
use super::thread::{autocast, mode};
use super::variable::replay::{Replay, ViewStep};
use super::variable::replayed;
use crate::dispatch::{Traits, Value};
use crate::error::ensure;
use crate::tensor::shares_memory;
use crate::{Error, Result, Tensor};

impl Tensor {
    /// The tensor of which `new_view` is the same view as this tensor is of its base; it is itself
    /// a view of `new_view`. `None` if this tensor is no view. If this view does not show all
    /// elements of its base, the rest is taken from the memory around `new_view`.
    ///
    /// # Errors
    /// `RuntimeError` if the view does not keep how it was made, or `new_view` does not lie in memory as it must.
    pub fn rev_view_func(&self, new_view: &Tensor) -> Result<Option<Tensor>> {
        let Some(base) = self.base() else { return Ok(None) };
        let Some(replay) = replayed::of(self) else {
            return Err(Error::runtime("No _rev_view_func() found".to_owned()));
        };
        undo(&replay, base, new_view).map(Some)
    }
}

/// The tensor of which `view` is the view by `replay`, in the layout of `base`.
fn undo(replay: &Replay, base: &Tensor, view: &Tensor) -> Result<Tensor> {
    let _pause = autocast::pause();
    let steps = replay.steps();
    let mut sources = vec![base.clone()];
    for step in &steps[..steps.len() - 1] {
        let _unrecorded = mode::no_grad();
        sources.push(step.run(&sources[sources.len() - 1])?);
    }
    let mut view = view.clone();
    for (step, source) in steps.iter().zip(&sources).rev() {
        view = undo_step(step, source, &view)?;
    }
    Ok(view)
}

/// The source from which `step` makes `view`; `source` has the layout.
fn undo_step(step: &ViewStep, source: &Tensor, view: &Tensor) -> Result<Tensor> {
    if !step.def.is(Traits::BIJECTIVE) {
        let geometry = source.geometry();
        let (shape, strides) = (&geometry.shape, &geometry.strides);
        return arithmetic::as_strided(view, shape, strides, geometry.offset);
    }
    let mut args = step.args.clone();
    args[0] = Value::Tensor(source.clone());
    // The gradient of a permutation is its inverse.
    let undone = Pushforward::with_tangents(step.def, &args, &[]).pull_back(view)?;
    ensure!(
        shares_memory(&undone, view) || view.overrides_ops(),
        runtime,
        "a tensor of strides {} cannot be seen as what {} was called on, without a copy",
        arithmetic::shape_text(view.strides()),
        step.def.name
    );
    if undone.is_same(view) { arithmetic::alias(view) } else { Ok(undone) }
}
