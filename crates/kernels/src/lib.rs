//! The numeric kernels of pullback, for CPUs.
//!
//! A kernel takes checked strided views (`StridedRef`, `StridedMut`) or an `Iter` over several of
//! them, plus plain arguments; it knows no tensor, no graph and no Python. One file starts threads
//! (`parallel`), one folder selects the instruction set (`simd`). Results never depend on the number
//! of threads: work is split in fixed-size blocks. Start at `strided`, then `elementwise`.

pub mod attention;
pub mod conv;
pub mod creation;
mod dense;
pub mod digest;
pub mod distance;
pub mod dtype;
pub mod elementwise;
pub mod error;
pub mod float8;
pub mod gemm;
pub mod grid;
pub mod histogram;
pub mod index;
pub mod interrupt;
mod lanes;
pub mod layout;
pub mod linalg;
mod line;
pub mod loss;
pub mod memory;
pub mod norm;
pub mod optim;
pub mod parallel;
pub mod plan;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod rnn;
mod row;
pub mod scalar;
pub mod scan;
mod scratch;
pub mod simd;
pub mod softmax;
pub mod sort;
mod special;
pub mod spelling;
pub mod strided;
pub mod sync;
pub mod upsample;
mod windows;

pub use dtype::{BC32, Bool, C32, C64, C128, DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use float8::Float8;
pub use half::{bf16, f16};
pub use line::{check_dtype, check_shape};
pub use scalar::Scalar;
pub use strided::{Iter, StridedMut, StridedRef};
