//! Optimisers and schedules of their learning rates.
//!
//! An [`Optimizer`] is a list of groups of parameters, each with options of one [`UpdateRule`]; a step gathers lists and calls the op
//! that the Python package calls. Parameters without a gradient are left alone.

mod adam;
mod clip;
mod rmsprop;
mod rule;
mod schedule;
mod sgd;

pub use adam::{Adam, AdamOptions, AdamState, AdamW, AdamWOptions};
pub use clip::{clip_grad_norm_, clip_grad_value_};
pub use rmsprop::{RMSprop, RMSpropOptions, RMSpropState};
pub use rule::{GetState, Group, Optimizer, UpdateRule};
pub use schedule::{
    CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, MultiStepLR, OneCycleLR,
    ReduceLROnPlateau, Schedule, Scheduler, StepLR,
};
pub use sgd::{SGD, SGDOptions, SGDState};
