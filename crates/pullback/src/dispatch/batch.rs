//! A call of an op on batched tensors, as its batching rule sees it (`autograd::batch` makes and runs it).

use super::{Arg, Form, IntoOutputs, OpDef, Outputs};
use crate::{Result, Tensor};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// What random ops do within a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Randomness {
    /// Random ops are refused.
    #[default]
    Error,
    /// Each example has its own numbers.
    Different,
    /// All examples have the same.
    Same,
}

/// Functions of the layer of batched tensors that a call needs.
pub(crate) struct Tools {
    /// The physical tensor of a tensor that is batched at a level.
    pub(crate) physical: fn(&Tensor, u64) -> Option<Tensor>,
    /// Makes a batched tensor show another physical tensor.
    pub(crate) show: fn(&Tensor, Tensor, u64) -> Result<()>,
}

/// A call of an op with batched arguments.
pub struct BatchedCall<'a> {
    /// The op.
    pub def: &'static OpDef,
    /// The form in which the op is called.
    pub form: Form<'a>,
    /// The arguments as the caller sees them.
    pub args: &'a [Arg<'a>],
    /// The number of examples.
    pub size: i64,
    /// What random ops do.
    pub randomness: Randomness,
    pub(crate) level: u64,
    pub(crate) tools: &'static Tools,
}

impl BatchedCall<'_> {
    /// The physical tensor of an argument that is batched at the level of this call.
    pub fn physical(&self, tensor: &Tensor) -> Option<Tensor> {
        (self.tools.physical)(tensor, self.level)
    }
    /// The call of another op, in the functional form, with the same arguments.
    pub(crate) fn with_def(&self, def: &'static OpDef) -> BatchedCall<'_> {
        BatchedCall { def, form: Form::Functional, ..*self }
    }
    /// Makes the first argument, which is batched, show another physical tensor of the same memory.
    pub(crate) fn show(&self, physical: &Tensor) -> Result<()> {
        match self.args.first() {
            Some(Arg::Tensor(target)) => (self.tools.show)(target, physical.clone(), self.level),
            _ => Ok(()),
        }
    }
}

/// The result of a batching rule.
pub enum Outcome {
    /// Tensors whose first dimension counts examples.
    Batched(Outputs),
    /// Tensors that are the same for all examples.
    Same(Outputs),
}

impl From<Tensor> for Outcome {
    fn from(tensor: Tensor) -> Outcome {
        Outcome::Batched(tensor.into_outputs())
    }
}

/// A batching rule.
pub type BatchRule = fn(&BatchedCall<'_>) -> Result<Outcome>;

/// The batching rules of ops that name none.
pub(crate) struct DefaultRules {
    pub(crate) random: BatchRule,
    pub(crate) pointwise: BatchRule,
    pub(crate) one_by_one: BatchRule,
}

/// The ops that were computed for one example after the other.
static FALLEN_BACK: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The ops that had no batching rule when they were first called within `vmap`, since the program began.
pub fn fallen_back() -> Vec<String> {
    let all = FALLEN_BACK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.iter().cloned().collect()
}

/// Records that an op is computed for one example after the other; warns at the first time.
pub(crate) fn note_one_by_one(def: &OpDef) {
    let is_new = FALLEN_BACK
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .insert(def.full_name());
    if is_new {
        crate::warn(format!(
            "vmap: {} has no batching rule and goes through the examples one by one, which is slow",
            def.full_name()
        ));
    }
}
