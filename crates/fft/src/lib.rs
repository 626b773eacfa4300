//! Discrete Fourier transforms of strided arrays.
//!
//! `X[k] = scale * sum_j x[j] exp(-+ 2 pi i j k / n)` along one dimension or several, for any length: [`complex_to_complex`],
//! [`real_to_complex`] and [`complex_to_real`]. Where there are many lines whose length is a power of two, `tile` computes as many at
//! once as a vector has lanes. Other lines are transformed one by one by the crates `rustfft` and `realfft`; here is what brings
//! the lines of an array to them and back. It is a crate of its own because these dependencies take long to compile, so that they
//! are not compiled again whenever a kernel changes.
//!
//! Lines are independent of each other, and how they are computed depends on their length, on how many there are side by side, and
//! on the order of dimensions in memory: results do not depend on the number of threads. Start at `transform`; `pass` goes
//! through all lines of a dimension as `algorithm` says, `lines` says where they are, `line` computes one, `tile` many,
//! `long` splits long ones, `plan` keeps what was prepared for a length.

mod algorithm;
mod line;
mod lines;
mod long;
mod pass;
mod plan;
mod tile;
mod transform;

pub use plan::cached_plans;
pub use transform::{complex_to_complex, complex_to_real, real_to_complex};
