//! A call of an op on batched tensors, as its batching rule sees it (`autograd::batch` makes and runs it).

use super::{Arg, Form, IntoOutputs, OpDef, Outputs};
use crate::error::ensure;
use crate::{Result, Tensor};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The ops that were computed for one example after the other, and those of them of which there was a warning.
static FALLEN_BACK: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static WARNED_OF: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether ops may be computed for one example after the other, and whether they warn then.
static FALLS_BACK: AtomicBool = AtomicBool::new(true);
static WARNS: AtomicBool = AtomicBool::new(true);

fn lock(names: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a call without batching rule goes through the examples one by one, on all threads; else it is refused.
pub fn is_fallback_enabled() -> bool {
    FALLS_BACK.load(Relaxed)
}

/// Lets calls without batching rule go through the examples one by one (or not), on all threads.
pub fn set_fallback_enabled(enabled: bool) {
    FALLS_BACK.store(enabled, Relaxed);
}

/// Whether an op that goes through the examples one by one warns when it first does so.
pub fn is_fallback_warning_enabled() -> bool {
    WARNS.load(Relaxed)
}

/// Lets such an op warn (or not).
pub fn set_fallback_warning_enabled(enabled: bool) {
    WARNS.store(enabled, Relaxed);
}

/// The ops that had no batching rule when they were first called within `vmap`, since the program began.
pub fn fallen_back() -> Vec<String> {
    lock(&FALLEN_BACK).iter().cloned().collect()
}

/// Refuses a call that would go through the examples one by one, if that is switched off.
pub(crate) fn check_fallback(def: &OpDef) -> Result<()> {
    ensure!(
        is_fallback_enabled(),
        runtime,
        "vmap: aten::{} hit the vmap fallback which is currently disabled: it has no batching rule for this call, and is not to go through the examples one by one",
        def.full_name()
    );
    Ok(())
}

/// Records that an op is computed for one example after the other; warns at the first time.
pub(crate) fn note_one_by_one(def: &OpDef) {
    let name = def.full_name();
    lock(&FALLEN_BACK).insert(name.clone());
    if is_fallback_warning_enabled() && lock(&WARNED_OF).insert(name.clone()) {
        crate::warn(format!(
            "vmap: {name} has no batching rule and goes through the examples one by one, which is slow"
        ));
    }
}
