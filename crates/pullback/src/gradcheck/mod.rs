//! Inputs for ops and the checks that every op must pass.
//!
//! An op gives `samples` (calls it must handle) and `invalid_samples` (calls it must refuse);
//! `tests/properties` loops over the registry and checks each. The generator is a small fixed one so
//! that a failure can be repeated.

mod check;
mod sample;

pub use check::{CheckedFunction, Mismatch, Tolerance, analytic, gradcheck, gradgradcheck, op_jvp};
pub use sample::{InvalidSample, Sample, Sampler, default_value};
