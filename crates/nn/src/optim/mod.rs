//! Optimisers and schedules of their learning rates.
//!
//! An [`Optimizer`] is a list of groups of parameters, each with options of one [`Rule`]; a step gathers lists and calls the op
//! that the Python package calls. Parameters without a gradient are left alone.

mod adam;
mod clip;
mod rmsprop;
mod rule;
mod schedule;
mod sgd;

pub use adam::{Adam, AdamOptions, AdamState, AdamW, AdamWOptions};
pub use clip::{clip_grad_norm_, clip_grad_value_};
pub use rmsprop::{RMSprop, RmspropOptions, RmspropState};
pub use rule::{Group, Optimizer, Rule};
pub use schedule::{
    CosineAnnealing, Exponential, Lambda, LinearRate, MultiStep, OneCycle, ReduceOnPlateau,
    Schedule, Scheduler, StepDecay,
};
pub use sgd::{SGD, SgdOptions, SgdState};
