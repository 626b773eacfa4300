//! How calls cross the border: a table of functions, and what these take and give, as C has it.
//!
//! Text and bytes are UTF-8 or what [`crate::Program`] writes. Who calls checks [`Table::version`] before anything else.

use pullback::dlpack::Managed;
use pullback::{Error, ErrorKind};
use std::ffi::c_void;

/// The version of everything in this file and of the bytes of programs.
pub(crate) const VERSION: u32 = 1;

/// What a library shows of itself.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// The version of the border.
    pub(crate) version: u32,
    /// The number of ops.
    pub(crate) ops: u32,
    /// Says what an op is: its signature, and behind a line break what is said of it.
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

/// What came of a call.
#[repr(C)]
pub(crate) struct Reply {
    /// 0, or the kind of the error.
    pub(crate) error: u32,
    /// The text of the error, or what was asked for.
    pub(crate) text: *const u8,
    pub(crate) length: usize,
    /// Managed tensors, which the caller owns from now on.
    pub(crate) outputs: *const *mut Managed,
    pub(crate) count: usize,
    /// Keeps text and list, until `release` is called with it.
    pub(crate) kept: *mut c_void,
    pub(crate) release: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Reply {
    /// One that says nothing yet.
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
