//! What a node keeps for its rules.
//!
//! A saved input is the tensor itself; a saved output is an alias without history (the tensor itself
//! would hold its node and the node it: a cycle), which gets its history back on unpacking. The version
//! at saving time tells whether somebody wrote to it since.

use super::{Node, leaf};
use crate::dispatch::Value;
use crate::error::bail;
use crate::tensor::{Flag, SpinLock};
use crate::{Error, Result, Tensor};
use smallvec::SmallVec;

/// One saved value. Tensors can be taken away (the graph was freed) while another thread reads.
pub(crate) enum Slot {
    /// Nothing was needed, or it was `None`.
    Empty,
    /// Anything without version.
    Plain(Value),
    /// Sizes, strides or another list of integers; two fit in without memory of their own.
    Sizes(SmallVec<[i64; 2]>),
    /// A tensor, until the graph is freed.
    Tensor(SpinLock<Option<SavedTensor>>),
    /// A list of tensors.
    Tensors(SpinLock<Option<Box<[SavedTensor]>>>),
    /// A list with gaps.
    OptTensors(SpinLock<Option<Box<[Option<SavedTensor>]>>>),
}

impl Slot {
    #[inline]
    pub(super) fn tensor(saved: SavedTensor) -> Slot {
        Slot::Tensor(SpinLock::new(Some(saved)))
    }

    /// Whether dropping it frees no node: it keeps no tensor with a history.
    pub(super) fn has_no_history(&mut self) -> bool {
        match self {
            Slot::Empty | Slot::Plain(_) | Slot::Sizes(_) => true,
            Slot::Tensor(saved) => saved.get_mut().as_ref().is_none_or(SavedTensor::has_no_history),
            Slot::Tensors(list) => list.get_mut().is_none(),
            Slot::OptTensors(list) => list.get_mut().is_none(),
        }
    }

    /// Drops tensors; plain values stay: a node without saved tensors can run again.
    pub(super) fn release(&self) {
        // Dropped after the lock: what goes away may run code of users.
        match self {
            Slot::Empty | Slot::Plain(_) | Slot::Sizes(_) => {}
            Slot::Tensor(saved) => drop(saved.with(Option::take)),
            Slot::Tensors(list) => drop(list.with(Option::take)),
            Slot::OptTensors(list) => drop(list.with(Option::take)),
        }
    }

    /// The tensors in it, checked and with their history; `Value::None` for what is none.
    #[inline]
    pub(super) fn unpack(&self, node: &Node) -> Result<Value> {
        Ok(match self {
            Slot::Empty | Slot::Plain(_) | Slot::Sizes(_) => Value::None,
            Slot::Tensor(saved) => {
                let saved = saved.with(|s| s.clone()).ok_or_else(freed)?;
                Value::Tensor(saved.into_tensor(node)?)
            }
            Slot::Tensors(list) => {
                let list = list.with(|l| l.clone()).ok_or_else(freed)?;
                Value::Tensors(list.iter().map(|s| s.unpack(node)).collect::<Result<_>>()?)
            }
            Slot::OptTensors(list) => {
                let list = list.with(|l| l.clone()).ok_or_else(freed)?;
                let one = |s: &Option<SavedTensor>| s.as_ref().map(|s| s.unpack(node)).transpose();
                Value::OptTensors(list.iter().map(one).collect::<Result<_>>()?)
            }
        })
    }
}

#[cold]
pub(crate) fn freed() -> Error {
    Error::runtime(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.",
    )
}

/// A tensor as a node keeps it. Custom functions use it too.
#[derive(Clone)]
pub struct SavedTensor {
    tensor: Tensor,
    version: u32,
    /// Which output of the node it is, or [`NO_OUTPUT`].
    output_nr: u32,
}

/// The output number of a saved input.
const NO_OUTPUT: u32 = u32::MAX;

impl SavedTensor {
    /// Keeps an input.
    ///
    /// # Errors
    /// `RuntimeError` for an inference tensor.
    #[inline]
    pub fn input(tensor: &Tensor) -> Result<SavedTensor> {
        if tensor.has_flag(Flag::INFERENCE) {
            bail!(
                runtime,
                "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor and use it in autograd."
            );
        }
        Ok(SavedTensor { tensor: tensor.clone(), version: tensor.version(), output_nr: NO_OUTPUT })
    }

    /// Keeps output `nr` of the node under construction.
    ///
    /// # Errors
    /// Out of memory.
    pub fn output(tensor: &Tensor, nr: u32) -> Result<SavedTensor> {
        let is_leaf = tensor.is_leaf_now() && tensor.has_flag(Flag::REQUIRES_GRAD);
        // Indices and the like get no history, so that keeping them makes no cycle.
        if is_leaf || !tensor.dtype().is_differentiable() {
            return SavedTensor::input(tensor);
        }
        let alias = tensor.detached()?;
        Ok(SavedTensor { version: tensor.version(), tensor: alias, output_nr: nr })
    }

    /// The tensor with its history.
    ///
    /// # Errors
    /// `RuntimeError` if it was written to since it was saved.
    pub fn unpack(&self, saved_for: &Node) -> Result<Tensor> {
        self.clone().into_tensor(saved_for)
    }

    fn has_no_history(&self) -> bool {
        self.tensor.flags() & (Flag::HAS_GRAD_FN | Flag::VIEW) == 0
    }

    #[inline]
    fn into_tensor(self, saved_for: &Node) -> Result<Tensor> {
        let version = self.tensor.version();
        if version != self.version {
            return Err(self.stale(saved_for, version));
        }
        if self.output_nr == NO_OUTPUT {
            return Ok(self.tensor);
        }
        let tensor = self.tensor.detached()?;
        tensor.set_history(saved_for.clone(), self.output_nr);
        Ok(tensor)
    }

    #[cold]
    fn stale(&self, saved_for: &Node, version: u32) -> Error {
        let t = &self.tensor;
        let source = match self.output_nr {
            NO_OUTPUT => leaf::grad_fn_of(t).map(|n| (t.output_nr(), n.name())),
            nr => Some((nr, saved_for.name())),
        };
        let source =
            source.map_or(String::new(), |(nr, name)| format!(", which is output {nr} of {name},"));
        Error::runtime(format!(
            "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.{}Tensor {}]{source} is at version {version}; expected version {} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True).",
            t.dtype().scalar_name(),
            crate::tensor::shape::list(t.shape()),
            self.version
        ))
    }
}
