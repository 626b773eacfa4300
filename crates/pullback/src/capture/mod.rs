//! Recording what a step computes, and computing it again without the program that called the ops.
//!
//! ```
//! use pullback::{Tensor, capture};
//! # fn main() -> pullback::Result<()> {
//! let w = Tensor::from([1.0_f32, 2.0])?;
//! let step = |x: &Tensor| x.mul(&w)?.sum();
//! let x = Tensor::from([3.0_f32, 4.0])?;
//! let (_, program) = capture::record(&[&x], || Ok(vec![step(&x)?]))?;
//! let program = program.expect("nothing here that a program cannot do");
//! let other = Tensor::from([5.0_f32, 6.0])?;
//! let results = program.replay(&[&other])?.expect("shapes and modes are the same");
//! assert_eq!(results[0].to_vec::<f32>()?, [17.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Recording`] runs the step once as it is, while `recorder` notes each kernel that runs, forward and backward: what lies
//! above kernels (autograd, autocast, composites, the program itself) is done with by then. `plan` gives the intermediates places in
//! one block of memory, by when they are used. A [`Program`] then runs the kernels again, in the same order with the same
//! arguments, so that every bit is that of the step; `guard` says before that whether what the step relied on is as it was.
//!
//! What is replayed is what kernels do: writes to tensors in place, `.grad`s, random numbers,
//! versions. Whatever else the step does (prints, counts, appends to lists) happens when it is
//! recorded and not when it is replayed. A recording refuses, with a reason and a line, what could
//! differ in a replay: reads of elements on the host, shapes that depend on elements, hooks,
//! tensors that are kept where a replay would not put new ones. Nothing here names an op. Start at
//! `recorder`, then `program`.

mod guard;
mod plan;
mod program;
mod recorder;
mod seen;
mod session;

pub use program::{Program, Summary};
pub use session::{Recording, Refusal};

use crate::{Result, Tensor};

/// Runs `step` and records it: its results, and the program that computes them again from other `inputs`, or why there is none.
///
/// # Errors
/// Those of `step`.
pub fn record(
    inputs: &[&Tensor],
    step: impl FnOnce() -> Result<Vec<Tensor>>,
) -> Result<(Vec<Tensor>, std::result::Result<Program, Refusal>)> {
    let recording = match Recording::begin(inputs) {
        Ok(recording) => recording,
        Err(refusal) => return Ok((step()?, Err(refusal))),
    };
    let outputs = step()?;
    let results: Vec<&Tensor> = outputs.iter().collect(); // tidy: short
    let program = recording.finish(&results, &[]);
    Ok((outputs, program))
}
