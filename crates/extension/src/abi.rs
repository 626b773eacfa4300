//! The interface in C between a program and a library of ops: a table of functions, with their
//! arguments and results.
//!
//! Text and bytes are UTF-8 or what [`crate::Program`] writes. Callers check [`Table::version`]
//! before anything else.

use pullback::dlpack::Managed;
use pullback::{Error, ErrorKind};
use std::ffi::c_void;

/// The version of everything in this file and of the bytes of programs.
pub(crate) const VERSION: u32 = 1;

/// The table that a library shows.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// The version of the interface.
    pub(crate) version: u32,
    /// The number of ops.
    pub(crate) ops: u32,
    /// Describes an op: its signature and, after a line break, its doc text.
    pub(crate) describe: unsafe extern "C" fn(*const Table, u32, *mut Reply),
    /// Evaluates a program.
    pub(crate) run: unsafe extern "C" fn(*const Table, *const Call, *mut Reply),
}

/// A program and its inputs.
#[repr(C)]
pub(crate) struct Call {
    pub(crate) program: *const u8,
    pub(crate) length: usize,
    /// Managed tensors, which the callee owns from now on.
    pub(crate) inputs: *const *mut Managed,
    pub(crate) count: usize,
    /// The threads that a kernel may use.
    pub(crate) threads: usize,
    /// The dtype of new floating-point tensors.
    pub(crate) default_dtype: pullback::dlpack::DataType,
}

/// The outcome of a call.
#[repr(C)]
pub(crate) struct Reply {
    /// 0, or the kind of the error.
    pub(crate) error: u32,
    /// The text of the error, or the requested text.
    pub(crate) text: *const u8,
    pub(crate) length: usize,
    /// Managed tensors, which the caller owns from now on.
    pub(crate) outputs: *const *mut Managed,
    pub(crate) count: usize,
    /// The owner of text and list, to be passed to `release`.
    pub(crate) kept: *mut c_void,
    pub(crate) release: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Reply {
    /// An empty reply.
    pub(crate) const fn empty() -> Reply {
        Reply {
            error: 0,
            text: std::ptr::null(),
            length: 0,
            outputs: std::ptr::null(),
            count: 0,
            kept: std::ptr::null_mut(),
            release: None,
        }
    }
}

const KINDS: [ErrorKind; 9] = [
    ErrorKind::Runtime,
    ErrorKind::Value,
    ErrorKind::Type,
    ErrorKind::Index,
    ErrorKind::NotImplemented,
    ErrorKind::LinAlg,
    ErrorKind::OutOfMemory,
    ErrorKind::Assertion,
    ErrorKind::ModuleNotFound,
];

/// The number of an error's kind.
pub(crate) fn number_of(error: &Error) -> u32 {
    KINDS.iter().position(|kind| *kind == error.kind()).unwrap_or(0) as u32 + 1
}

/// The error of a number and a text.
pub(crate) fn error_of(number: u32, text: String) -> Error {
    let kind = KINDS.get((number as usize).wrapping_sub(1)).copied();
    Error::new(kind.unwrap_or(ErrorKind::Runtime), text)
}
