//! Files: PyTorch's checkpoints, safetensors, and NumPy's arrays.
//!
//! Everything here reads bytes that are not trusted: no size is believed before it was compared
//! with the bytes that are there, nothing that a file names is run, and every error says where it
//! is and what is wrong. [`zip`] is the container, [`pickle`] the machine that reads objects; the
//! language binding uses both with objects of its own.

mod checkpoint;
mod elements;
pub mod npy;
pub mod pickle;
pub mod safetensors;
mod source;
mod value;
pub mod zip;

pub use checkpoint::{load, load_from, save, save_to};
pub use source::{FileSource, ReadAt};
pub use value::FileValue;
