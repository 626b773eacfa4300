//! The profiler: which ops, backward nodes and ranges of the program ran, when, on what, and what memory they took.
//!
//! ```
//! use pullback::{Tensor, prof};
//! # fn main() -> pullback::Result<()> {
//! let x = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?.with_grad()?;
//! let profile = prof::profile(prof::Config::default())?;
//! {
//!     let _range = prof::record_function("step");
//!     x.mul(&x)?.sum()?.backward()?;
//! }
//! let recorded = profile.finish();
//! assert!(recorded.events().iter().any(|event| event.name.to_string() == "aten::mul"));
//! println!("{recorded}"); // time by name
//! let mut trace = Vec::<u8>::new();
//! recorded.write_trace(&mut trace).unwrap(); // for chrome://tracing and Perfetto
//! # Ok(())
//! # }
//! ```
//!
//! `record` is the core: ranges begin and end, and observers are notified. `collect` is the
//! observer that records them as events, `recorded` the result, `trace` writes it as a trace. The
//! code that opens a range (`autograd`) says what it is about; nothing here names an op. Without
//! observers an op pays nothing: their bit is among those that it tests anyway.

mod collect;
mod record;
mod recorded;
mod trace;

pub use collect::{Config, Profile, is_profiling, profile, start, stop};
pub(crate) use record::{InheritedObservers, Left, of_node, of_op};
pub use record::{
    Name, Observing, Open, Range, RangeKind, RangeObserver, is_observed, observe, open,
    record_function,
};
pub use recorded::{Event, MemoryEvent, Recorded, RecordedInput, Total};
