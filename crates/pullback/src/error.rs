//! The one error type. Its kinds are the exception classes PyTorch raises, so that the Python face
//! maps them one to one; the message names what was wrong with which value.

use pullback_kernels::spelling::Text;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `RuntimeError`.
    Runtime,
    /// `ValueError`.
    Value,
    /// `TypeError`.
    Type,
    /// `IndexError`.
    Index,
    /// `NotImplementedError`.
    NotImplemented,
    /// `AssertionError`.
    Assertion,
    /// `ModuleNotFoundError`.
    ModuleNotFound,
    /// `torch.linalg.LinAlgError` (a `RuntimeError`).
    LinAlg,
    /// `torch.OutOfMemoryError` (a `RuntimeError`).
    OutOfMemory,
    /// A Python exception travelling through native code; see [`Error::payload`].
    Python,
}

/// An error.
#[derive(Clone)]
pub struct Error(Box<ErrorData>);

#[derive(Clone)]
struct ErrorData {
    kind: ErrorKind,
    message: Text,
    /// Whether the message names the lines of the program that caused the error.
    is_blamed: bool,
    payload: Option<Arc<dyn Any + Send + Sync>>,
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),*) => {$(
        #[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
        #[cold]
        pub fn $name(message: impl Into<String>) -> Self { Self::new(ErrorKind::$kind, message) }
    )*};
}

impl Error {
    /// An error of `kind` that says `message`.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorData {
            kind,
            message: message.into().into(),
            is_blamed: false,
            payload: None,
        }))
    }
    constructors!(runtime => Runtime, value => Value, type_error => Type, index => Index,
                  not_implemented => NotImplemented, out_of_memory => OutOfMemory);
    /// A foreign exception, carried untouched.
    pub fn foreign(message: impl Into<String>, payload: Arc<dyn Any + Send + Sync>) -> Self {
        let message = message.into().into();
        let kind = ErrorKind::Python;
        Self(Box::new(ErrorData { kind, message, is_blamed: false, payload: Some(payload) }))
    }
    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The text of the error in PyTorch's words, as Python shows it: `torch.float32` and `cpu` where `Display` has `F32` and
    /// `Cpu`.
    ///
    /// ```
    /// use pullback::{DType, Tensor};
    /// let (x, y) = (Tensor::ones([2, 2])?, Tensor::options().dtype(DType::F64).ones([2, 2])?);
    /// let error = x.mm(&y).unwrap_err();
    /// assert!(error.to_string().contains("F32") && !error.to_string().contains("float"), "{error}");
    /// assert!(error.message().contains("float"));
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn message(&self) -> &str {
        self.0.message.pytorch()
    }
    /// The text in both spellings, to be made a part of another error's.
    pub(crate) fn marked(&self) -> &str {
        self.0.message.marked()
    }
    /// The error that `say` returns in place of this one; this one itself if memory is missing,
    /// which is no fault of the arguments.
    pub(crate) fn explained(self, say: impl FnOnce() -> Error) -> Self {
        if self.kind() == ErrorKind::OutOfMemory { self } else { say() }
    }
    /// The error with another text.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message.into();
        self
    }
    /// The error, marked as one to which no lines are added any more.
    pub(crate) fn with_blame(mut self) -> Self {
        self.0.is_blamed = true;
        self
    }
    /// Whether the message names the lines of the program that are to blame.
    pub fn is_blamed(&self) -> bool {
        self.0.is_blamed
    }
    /// The foreign exception of an [`ErrorKind::Python`] error.
    pub fn payload(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.0.payload.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.message.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<pullback_kernels::Error> for Error {
    fn from(error: pullback_kernels::Error) -> Self {
        use pullback_kernels::ErrorKind as Kernel;
        let kind = match error.kind() {
            Kernel::Runtime if error.message().starts_with("linalg.") => ErrorKind::LinAlg,
            Kernel::Runtime => ErrorKind::Runtime,
            Kernel::Value => ErrorKind::Value,
            Kernel::Index => ErrorKind::Index,
            Kernel::NotImplemented => ErrorKind::NotImplemented,
            Kernel::OutOfMemory => ErrorKind::OutOfMemory,
        };
        let message = error.into_text();
        Error(Box::new(ErrorData { kind, message, is_blamed: false, payload: None }))
    }
}

/// `bail!(runtime, "...", ..)`: returns an error of that constructor.
macro_rules! bail {
    ($kind:ident, $($text:tt)+) => { return Err($crate::Error::$kind(format!($($text)+))) };
}
/// `ensure!(condition, runtime, "...", ..)`: returns that error unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $kind:ident, $($text:tt)+) => {{
        let holds: bool = $condition;
        if !holds { return Err($crate::Error::$kind(format!($($text)+))) }
    }};
}
pub(crate) use {bail, ensure};
