//! Kernels that compute each output element from the input elements at the same index.
//!
//! One public function per op, taking an `Iter` whose operands are the output and the inputs, all
//! of one compute dtype (comparisons write `Bool`; `abs`, `angle`, `real`, `imag` of complex input
//! write the real dtype). An output may be the very same view as an input. How it is built: an op
//! is a map of one element (`dense::Map1` ...); `dense` compiles it into one loop over dense memory
//! per instruction set; `drive` feeds that loop, copying blocks of whatever is not dense, or is half
//! precision, through small buffers. So an op costs one loop per dtype and level, nothing more.

#[macro_use]
mod dense;
mod activation;
mod binary;
mod cast;
mod closure;
mod compare;
pub(crate) mod complex;
mod copy;
mod drive;
mod fill;
mod half;
mod implicit;
mod loss;
mod math;
mod number;
pub(crate) mod spans;
mod special;
mod special_function;
mod staging;
mod ternary;
pub(crate) mod tiled_spans;
mod unary;

pub use activation::*;
pub use binary::*;
pub use cast::cast;
pub use closure::{map, map_real};
pub use compare::*;
pub use copy::copy;
pub(crate) use copy::copy_tile;
pub use fill::fill;
pub(crate) use half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
pub use implicit::*;
pub use loss::*;
pub use spans::copy_slice;
pub use special_function::*;
pub use ternary::*;
pub use unary::*;
