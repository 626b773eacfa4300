//! A tensor as a node saves it, and how it is unpacked.
//!
//! A saved input is the tensor itself; a saved output is an alias without history (the tensor
//! itself would hold its node and the node it: a cycle), which gets its history back on unpacking.
//! The version at saving time tells whether somebody wrote to it since. If hooks packed the tensor,
//! their result is kept instead: see `packed`.

use crate::autograd::graph::blame::{self, Report};
use crate::autograd::graph::node::{Node, OutputNr, PackedTensor, SavedContent, SavedTensor, Tag};
use crate::autograd::thread::saved_hooks::{self, SavedTensorHooks};
use crate::autograd::variable::{history, tangent};
use crate::call_site::CallSite;
use crate::error::{bail, ensure};
use crate::tensor::{Flag, Version};
use crate::{Error, Result, Tensor};
use std::sync::Arc;

/// The error for a node that the backward at call site `at` has freed.
#[cold]
pub fn freed(node: Option<&Node>, at: CallSite) -> Error {
    let report = Report::new(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.",
    );
    let report = match node {
        Some(node) => report.node("was made here", node),
        None => report,
    };
    report
        .line("this backward freed it", at)
        .hint("give the first backward retain_graph=True, or detach() what one iteration hands on to the next", "")
        .error()
}

/// The error for hooks that are registered after the graph was freed.
#[cold]
pub fn freed_before_hooks() -> Error {
    Error::runtime(
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved variables after calling backward.",
    )
}

impl OutputNr {
    const NONE: OutputNr = OutputNr([u8::MAX; 3]);

    fn new(nr: u32) -> Result<OutputNr> {
        let [a, b, c, 0] = nr.to_le_bytes() else {
            bail!(runtime, "output {nr} is too many to save")
        };
        let nr = OutputNr([a, b, c]);
        ensure!(nr != OutputNr::NONE, runtime, "a node has too many outputs to save one of them");
        Ok(nr)
    }
    fn get(self) -> Option<u32> {
        let [a, b, c] = self.0;
        (self != OutputNr::NONE).then(|| u32::from_le_bytes([a, b, c, 0]))
    }
}

impl SavedTensor {
    #[inline(always)]
    fn here(tensor: Tensor, version: u32, output: OutputNr) -> SavedTensor {
        let is_leaf = tensor.flags() & Flag::HAS_GRAD_FN == 0;
        let tag = if is_leaf { Tag::Leaf } else { Tag::Interior };
        SavedTensor(SavedContent::Here { tensor, version, output, tag })
    }

    /// Saves an input, packed if the thread has hooks.
    ///
    /// # Errors
    /// `RuntimeError` for an inference tensor; those of the hooks.
    #[inline]
    pub fn input(tensor: &Tensor) -> Result<SavedTensor> {
        if tensor.has_flag(Flag::INFERENCE) {
            bail!(
                runtime,
                "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor and use it in autograd."
            );
        }
        // (A wrapped number of the program is no tensor that hooks know.)
        if saved_hooks::are_active() && !tensor.has_flag(Flag::WRAPPED_NUMBER) {
            return SavedTensor::packed(tensor, None);
        }
        Ok(SavedTensor::here(tensor.clone(), watched_version(tensor), OutputNr::NONE))
    }

    /// Saves output `nr` of a node; hooks see it with its history, later.
    ///
    /// # Errors
    /// Out of memory; those of the hooks.
    pub fn output(tensor: &Tensor, nr: u32) -> Result<SavedTensor> {
        let is_leaf = tensor.is_leaf_now() && tensor.has_flag(Flag::REQUIRES_GRAD);
        // Indices and other tensors without gradient get no history, so that saving them makes no
        // cycle.
        if is_leaf || !tensor.dtype().is_differentiable() {
            return SavedTensor::input(tensor);
        }
        if saved_hooks::are_active() {
            return SavedTensor::packed(tensor, Some(nr));
        }
        let alias = tensor.detached()?;
        tangent::share(tensor, &alias);
        Ok(SavedTensor::here(alias, watched_version(tensor), OutputNr::new(nr)?))
    }

    #[cold]
    fn packed(tensor: &Tensor, output: Option<u32>) -> Result<SavedTensor> {
        let Some(hooks) = saved_hooks::innermost() else {
            return Ok(SavedTensor::here(tensor.clone(), tensor.version(), OutputNr::NONE));
        };
        let packed = PackedTensor::new(&*hooks, tensor, tensor, output)?;
        Ok(SavedTensor(SavedContent::Packed(Arc::new(packed))))
    }

    /// Packs a tensor that was saved as it is.
    ///
    /// # Errors
    /// `RuntimeError` if hooks did so before; those of the hooks.
    pub fn pack(&self, hooks: &dyn SavedTensorHooks) -> Result<SavedTensor> {
        let SavedContent::Here { tensor, output, .. } = &self.0 else {
            if self.is_freed() {
                return Err(freed_before_hooks());
            }
            bail!(
                runtime,
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time."
            );
        };
        let packed = PackedTensor::new(hooks, tensor, &tensor.detached()?, output.get())?;
        Ok(SavedTensor(SavedContent::Packed(Arc::new(packed))))
    }

    /// Unpacks the tensor, with its history.
    ///
    /// # Errors
    /// `RuntimeError` if it was written to since it was saved; those of the hooks.
    pub fn unpack(&self, saved_for: &Node) -> Result<Tensor> {
        self.clone().into_tensor(saved_for)
    }

    /// A saved tensor that the backward at call site `at` has freed.
    pub fn freed(at: CallSite) -> SavedTensor {
        SavedTensor(SavedContent::Freed(at))
    }
    /// Whether the tensor was freed.
    pub fn is_freed(&self) -> bool {
        matches!(self.0, SavedContent::Freed(_))
    }

    /// As [`SavedTensor::unpack`], by value.
    ///
    /// # Errors
    /// As [`SavedTensor::unpack`].
    #[inline]
    pub fn into_tensor(self, saved_for: &Node) -> Result<Tensor> {
        let (tensor, expected, output) = match self.0 {
            SavedContent::Here { tensor, version, output, tag } => {
                if tag == Tag::Interior && tensor.flags() & Flag::HAS_GRAD_FN == 0 {
                    return Err(detached(saved_for));
                }
                (tensor, version, output)
            }
            SavedContent::Packed(packed) => return packed.unpack(saved_for),
            SavedContent::Freed(at) => return Err(freed(Some(saved_for), at)),
        };
        let version = tensor.version();
        if version != expected {
            return Err(stale(&tensor, output.get(), saved_for, version, expected));
        }
        let Some(nr) = output.get() else { return Ok(tensor) };
        let again = tensor.detached()?;
        tangent::share(&tensor, &again);
        again.set_history(saved_for.clone(), nr);
        Ok(again)
    }
}

#[cold]
fn detached(saved_for: &Node) -> Error {
    Report::new(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please use out-of-place `.detach()` instead",
    )
    .node("needs it and was made here", saved_for)
    .hint("write x = x.detach() instead of x.detach_()", "")
    .error()
}

#[cold]
fn stale(t: &Tensor, output: Option<u32>, saved_for: &Node, version: u32, expected: u32) -> Error {
    let source = match output {
        None => history::grad_fn_of(t).map(|n| (t.output_nr(), n.name())),
        Some(nr) => Some((nr, saved_for.name())),
    };
    let source =
        source.map_or(String::new(), |(nr, name)| format!(", which is output {nr} of {name},"));
    let report = Report::new(format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.{}Tensor {}]{source} is at version {version}; expected version {expected} instead.",
        t.dtype().scalar_name(),
        crate::tensor::shape::list(t.shape()),
    ))
    .node("needs it and was made here", saved_for);
    let write = t.version_counter().and_then(Version::last_write);
    let report = match &write {
        None => report,
        Some(write) => report.line(&format!("{} changed it here", write.text), write.call_site),
    };
    report
        .hint(
            &blame::advice(write.as_ref()),
            "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True).",
        )
        .error()
}

/// The tensor's version; from now on the counter remembers the last write.
#[inline(always)]
fn watched_version(tensor: &Tensor) -> u32 {
    tensor.version_counter().map_or(0, |counter| {
        counter.watch();
        counter.get()
    })
}
