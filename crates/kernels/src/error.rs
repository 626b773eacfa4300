//! What a kernel can refuse. The classes are those the Python face raises; the tensor library
//! passes them on unchanged.

use std::fmt;

/// Result of a kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a kernel refused its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// `RuntimeError`.
    Runtime(String),
    /// `ValueError`.
    Value(String),
    /// `IndexError`.
    Index(String),
    /// `NotImplementedError`.
    NotImplemented(String),
}

impl Error {
    /// `"add" not implemented for 'Bool'`, in PyTorch's words (a `NotImplementedError`).
    #[cold]
    pub fn not_implemented(op: &str, dtype: crate::DType) -> Self {
        Error::NotImplemented(format!("\"{op}\" not implemented for '{}'", dtype.scalar_name()))
    }
    /// The message without the class.
    pub fn message(&self) -> &str {
        match self {
            Error::Runtime(m) | Error::Value(m) | Error::Index(m) | Error::NotImplemented(m) => m,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}
