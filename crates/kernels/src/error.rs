//! The errors of kernels. The classes are those that Python raises; the tensor library passes them
//! on unchanged.

use crate::spelling::Text;
use std::fmt;

/// Result of a kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a kernel refused its input. A single pointer, so that results without a value are returned in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<(ErrorKind, Text)>);

/// The class of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `RuntimeError`.
    Runtime,
    /// `ValueError`.
    Value,
    /// `IndexError`.
    Index,
    /// `NotImplementedError`.
    NotImplemented,
    /// `OutOfMemoryError`.
    OutOfMemory,
}

impl Error {
    /// A `RuntimeError`.
    #[cold]
    pub fn runtime(message: String) -> Self {
        Error(Box::new((ErrorKind::Runtime, message.into())))
    }
    /// A `ValueError`.
    #[cold]
    pub fn value(message: String) -> Self {
        Error(Box::new((ErrorKind::Value, message.into())))
    }
    /// An `IndexError`.
    #[cold]
    pub fn index(message: String) -> Self {
        Error(Box::new((ErrorKind::Index, message.into())))
    }
    /// A `NotImplementedError`.
    #[cold]
    pub fn unsupported(message: String) -> Self {
        Error(Box::new((ErrorKind::NotImplemented, message.into())))
    }
    /// An `OutOfMemoryError` of a request for so many bytes.
    #[cold]
    pub fn out_of_memory(bytes: usize) -> Self {
        let message = format!(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes."
        );
        Error(Box::new((ErrorKind::OutOfMemory, message.into())))
    }
    /// `"add" not implemented for 'Bool'`, in PyTorch's words (a `NotImplementedError`).
    #[cold]
    pub fn not_implemented(op: &str, dtype: crate::DType) -> Self {
        let message = format!("\"{op}\" not implemented for '{}'", dtype.scalar_name());
        Error::unsupported(message)
    }
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        self.0.0
    }
    /// The message without the class, in PyTorch's words; `Display` gives Rust's.
    pub fn message(&self) -> &str {
        self.0.1.pytorch()
    }
    /// The message in both spellings.
    pub fn into_text(self) -> Text {
        self.0.1
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.1.fmt(f)
    }
}

impl std::error::Error for Error {}
