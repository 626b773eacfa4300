//! What a node keeps for its rules.
//!
//! A saved input is the tensor itself; a saved output is an alias without history (the tensor itself
//! would hold its node and the node it: a cycle), which gets its history back on unpacking. The version
//! at saving time tells whether somebody wrote to it since.

use super::{Node, leaf};
use crate::dispatch::Value;
use crate::error::bail;
use crate::tensor::Flag;
use crate::{Error, Result, Tensor};

/// One saved value.
pub(crate) enum Slot {
    /// Nothing was needed, or it was `None`.
    Empty,
    /// It was here, until the graph was freed.
    Freed,
    /// A tensor.
    Tensor(SavedTensor),
    /// A list of tensors.
    Tensors(Vec<SavedTensor>),
    /// A list with gaps.
    OptTensors(Vec<Option<SavedTensor>>),
    /// Anything without version.
    Value(Value),
}

impl Slot {
    pub(super) fn take(&mut self) -> Slot {
        match self {
            // Plain values stay: a node without saved tensors can run again.
            Slot::Empty | Slot::Freed | Slot::Value(_) => Slot::Empty,
            _ => std::mem::replace(self, Slot::Freed),
        }
    }

    /// The value, checked and with its history.
    #[inline]
    pub(super) fn unpack(&self, node: &Node) -> Result<Value> {
        Ok(match self {
            Slot::Empty => Value::None,
            Slot::Freed => return Err(freed()),
            Slot::Tensor(saved) => Value::Tensor(saved.unpack(node)?),
            Slot::Tensors(list) => {
                Value::Tensors(list.iter().map(|s| s.unpack(node)).collect::<Result<_>>()?)
            }
            Slot::OptTensors(list) => Value::OptTensors(
                list.iter()
                    .map(|s| s.as_ref().map(|s| s.unpack(node)).transpose())
                    .collect::<Result<_>>()?,
            ),
            Slot::Value(value) => value.clone(),
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
pub struct SavedTensor {
    tensor: Tensor,
    version: u32,
    /// Which output of the node it is, if it is one.
    output_nr: Option<u32>,
}

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
        Ok(SavedTensor { tensor: tensor.clone(), version: tensor.version(), output_nr: None })
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
        Ok(SavedTensor { version: tensor.version(), tensor: alias, output_nr: Some(nr) })
    }

    /// The tensor with its history.
    ///
    /// # Errors
    /// `RuntimeError` if it was written to since it was saved.
    #[inline]
    pub fn unpack(&self, saved_for: &Node) -> Result<Tensor> {
        let version = self.tensor.version();
        if version != self.version {
            return Err(self.stale(saved_for, version));
        }
        match self.output_nr {
            None => Ok(self.tensor.clone()),
            Some(nr) => {
                let tensor = self.tensor.detached()?;
                tensor.set_history(saved_for.clone(), nr);
                Ok(tensor)
            }
        }
    }

    #[cold]
    fn stale(&self, saved_for: &Node, version: u32) -> Error {
        let t = &self.tensor;
        let source = match self.output_nr {
            Some(nr) => Some((nr, saved_for.name())),
            None => leaf::grad_fn_of(t).map(|n| (t.output_nr(), n.name())),
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
