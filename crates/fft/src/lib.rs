//! Discrete Fourier transforms of strided arrays.
//!
//! `X[k] = scale * sum_j x[j] exp(-+ 2 pi i j k / n)` along one dimension or several, for any length: [`complex_to_complex`],
//! [`real_to_complex`] and [`complex_to_real`]. The transforms of single lines are those of the crates `rustfft` and `realfft`;
//! here is what brings the lines of an array to them and back. It is a crate of its own because these dependencies take long to
//! compile, so that they are not compiled again whenever a kernel changes.
//!
//! Lines are independent of each other, and each is computed in the same way wherever it lies: results do not depend on the
//! number of threads nor on strides. Start at `transform`; `pass` goes through all lines of a dimension as `algorithm` says, `lines`
//! says where they are, `line` computes one, `long` splits long ones, `plan` keeps what was prepared for a length.

mod algorithm;
mod line;
mod lines;
mod long;
mod pass;
mod plan;
mod transform;

pub use plan::cached_plans;
pub use transform::{complex_to_complex, complex_to_real, real_to_complex};
