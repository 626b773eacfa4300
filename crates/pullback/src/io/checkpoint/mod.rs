//! PyTorch's checkpoints: an archive with the pickle of an object, and a record for each storage.
//!
//! [`load`] reads weights: tensors, plain data and collections. Names of other classes and functions are refused, and nothing
//! that a file says is run. [`save`] writes what PyTorch reads.

mod load;
mod restore;
mod save;

pub use load::{load, load_from};
pub use save::{save, save_to};

#[cfg(test)]
mod tests;
