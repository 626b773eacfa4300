//! The position of the Python program: the line that calls the library, read without making an
//! object.
//!
//! A line is a number: which code object, by its row in [`TABLE`], and how far into it. The number is read from the
//! interpreter's own structures where their form is known (`layout`: CPython 3.11 to 3.13 with the interpreter lock),
//! and asked for by public functions elsewhere, which takes some fifty nanoseconds more (`crate::host` chooses). Frames of this
//! package are passed by, so that the line is one of the program's. It becomes a file and a line in [`source_line_of`], only
//! when an error is put together. Invariant: no code object is kept alive; what is known of those that went is bounded
//! in number.

use super::line_table::{self, Found};
use pullback::call_site::SourceLine;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where the interpreter keeps what is needed, in bytes: `Include/cpython/pystate.h`, `Include/internal/pycore_frame.h`
/// and `Include/cpython/code.h` of its sources. (`test_blame_mark` compares with what Python itself says.)
#[cfg(has_layout)]
mod layout {
    /// In the thread's state: the current frame, or a structure that has it.
    pub(super) const CURRENT: usize = if cfg!(Py_3_13) { 72 } else { 56 };
    /// In that structure: the current frame.
    pub(super) const IN_CURRENT: Option<usize> = match (cfg!(Py_3_12), cfg!(Py_3_13)) {
        (_, true) => None,
        (true, _) => Some(0),
        _ => Some(8),
    };
    /// In the thread's state: the thread's number.
    pub(super) const THREAD: usize = if cfg!(Py_3_12) && !cfg!(Py_3_13) { 136 } else { 152 };
    /// In a frame: its code.
    pub(super) const CODE: usize = if cfg!(Py_3_12) { 0 } else { 32 };
    /// In a frame: the one that called it.
    pub(super) const PREVIOUS: usize = if cfg!(Py_3_12) { 8 } else { 48 };
    /// In a frame: the instruction that runs.
    pub(super) const INSTRUCTION: usize = 56;
    /// In a frame: who owns it.
    pub(super) const OWNER: usize = if cfg!(Py_3_12) { 70 } else { 69 };
    /// A frame that stands for C code.
    pub(super) const OWNED_BY_C: u8 = 3;
    /// In a code object: what modules keep of it.
    pub(super) const EXTRA: usize = FIRST_INSTRUCTION - 8;
    /// In a code object: its first instruction.
    pub(super) const FIRST_INSTRUCTION: usize = match (cfg!(Py_3_12), cfg!(Py_3_13)) {
        (_, true) => 200,
        (true, _) => 192,
        _ => 184,
    };
}

/// The index under which code objects keep their number for this module (PEP 523); negative before
/// there is one.
static SLOT: AtomicIsize = AtomicIsize::new(-1);

/// What is known of a code object.
struct Code {
    file: String,
    function: String,
    first_line: u32,
    lines: Box<[u8]>,
}

/// A row of the table, used again for another code object long after its own is gone.
#[derive(Default)]
struct LineRow {
    code: Option<Arc<Code>>,
    generation: u32,
}

struct LineTable {
    rows: Vec<LineRow>,
    /// Rows whose code object is gone, oldest first.
    gone: VecDeque<u32>,
}

static TABLE: Mutex<LineTable> = Mutex::new(LineTable { rows: Vec::new(), gone: VecDeque::new() });

/// Rows that are kept for nodes whose code object is gone.
const MOST_GONE: usize = 4096;

fn table() -> MutexGuard<'static, LineTable> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which row, in which generation, and how far into the code, in 63 bits.
#[derive(Clone, Copy)]
struct LineNumber {
    row: u32,
    generation: u32,
    /// Bytes from the first instruction on, or a line.
    position: u32,
    is_line: bool,
}

const ROW_BITS: u32 = 20;
const GENERATION_BITS: u32 = 18;
const POSITION_BITS: u32 = 24;

impl LineNumber {
    fn pack(self) -> u64 {
        // (One is added so that no number is 0.)
        let row = u64::from(self.row + 1);
        let position = u64::from(self.position.min((1 << POSITION_BITS) - 1));
        row | u64::from(self.generation) << ROW_BITS
            | position << (ROW_BITS + GENERATION_BITS)
            | u64::from(self.is_line) << (ROW_BITS + GENERATION_BITS + POSITION_BITS)
    }
    fn unpack(bits: u64) -> Option<LineNumber> {
        let part = |from: u32, count: u32| (bits >> from & ((1 << count) - 1)) as u32;
        Some(LineNumber {
            row: part(0, ROW_BITS).checked_sub(1)?,
            generation: part(ROW_BITS, GENERATION_BITS),
            position: part(ROW_BITS + GENERATION_BITS, POSITION_BITS),
            is_line: part(ROW_BITS + GENERATION_BITS + POSITION_BITS, 1) == 1,
        })
    }
}

/// What a code object keeps: its number without position, and whether it is of this package.
#[derive(Clone, Copy)]
struct CodeTag(usize);

impl CodeTag {
    fn new(number: LineNumber, is_own: bool) -> CodeTag {
        CodeTag((number.pack() as usize) << 1 | usize::from(is_own))
    }
    #[inline(always)]
    fn is_own(self) -> bool {
        self.0 & 1 == 1
    }
    #[inline(always)]
    fn at(self, position: usize, is_line: bool) -> u64 {
        let position = position.min((1 << POSITION_BITS) - 1) as u64;
        (self.0 >> 1) as u64
            | position << (ROW_BITS + GENERATION_BITS)
            | u64::from(is_line) << (ROW_BITS + GENERATION_BITS + POSITION_BITS)
    }
}

/// A way to find the position of the program on this thread.
pub(crate) trait FrameReader: Sync {
    /// A number for the innermost line, 0 if this thread does not run the program.
    fn line(&self) -> u64;
    /// Numbers for all lines, innermost first.
    fn call_stack(&self) -> Vec<u64>;
}

/// Reads the interpreter's structures.
#[cfg(has_layout)]
pub(crate) struct ByLayout;

#[cfg(has_layout)]
impl FrameReader for ByLayout {
    #[inline]
    fn line(&self) -> u64 {
        // SAFETY: `read` is called with the lock held by this thread.
        unsafe {
            let state = PyThreadState_GetUnchecked().cast::<u8>();
            // (Before 3.12 it is the state of whichever thread has the lock.)
            let is_own = !state.is_null()
                && (cfg!(Py_3_12)
                    || state.add(layout::THREAD).cast::<usize>().read() == this_thread());
            let mut found = 0;
            if is_own {
                read(state, |number| {
                    found = number;
                    false
                });
            }
            found
        }
    }
    fn call_stack(&self) -> Vec<u64> {
        // SAFETY: `collect` calls with the lock held by this thread.
        collect(|see| unsafe { read(PyThreadState_GetUnchecked().cast::<u8>(), see) })
    }
}

/// Asks the interpreter's public functions.
pub(crate) struct ByFunctions {
    /// Whether the instruction is read, which says more than the line (CPython 3.11 and later).
    pub(crate) by_instruction: bool,
}

impl FrameReader for ByFunctions {
    fn line(&self) -> u64 {
        // SAFETY: `ask` is called with the lock held by this thread.
        unsafe {
            let mut found = 0;
            if ffi::PyGILState_Check() == 1 {
                walk_by_api(self.by_instruction, |number| {
                    found = number;
                    false
                });
            }
            found
        }
    }
    fn call_stack(&self) -> Vec<u64> {
        // SAFETY: `collect` calls with the lock held by this thread.
        collect(|see| unsafe { walk_by_api(self.by_instruction, see) })
    }
}

/// All lines that `walk` shows, with the interpreter lock; none where the interpreter is not there any more.
fn collect(walk: impl FnOnce(&mut dyn FnMut(u64) -> bool)) -> Vec<u64> {
    let mut frames = Vec::new();
    let _ = Python::try_attach(|_| {
        walk(&mut |number| {
            frames.push(number);
            true
        });
    });
    frames
}

#[cfg(has_layout)]
unsafe extern "C" {
    /// The state of the thread that has the lock; null if none has.
    #[cfg_attr(not(Py_3_13), link_name = "_PyThreadState_UncheckedGet")]
    fn PyThreadState_GetUnchecked() -> *mut ffi::PyThreadState;
    /// This thread's number, as the interpreter knows it.
    #[cfg(unix)]
    fn pthread_self() -> usize;
}

#[cfg(has_layout)]
#[inline(always)]
fn this_thread() -> usize {
    // SAFETY: the function has no preconditions.
    unsafe { pthread_self() }
}

/// Calls `see` with the program's lines, innermost first, until it says that it has seen enough: from the interpreter's
/// structures.
///
/// # Safety
/// The thread holds the interpreter lock, and `state` is its state.
#[cfg(has_layout)]
#[inline(always)]
unsafe fn read(state: *const u8, mut see: impl FnMut(u64) -> bool) {
    use layout::{
        CODE, CURRENT, FIRST_INSTRUCTION, IN_CURRENT, INSTRUCTION, OWNED_BY_C, OWNER, PREVIOUS,
    };
    // SAFETY: with the lock held, this thread's frames are what the layout says and do not change; each one's code
    // lives as long as the frame.
    unsafe {
        let mut frame: *const u8 = state.add(CURRENT).cast::<*const u8>().read();
        if let Some(inner) = IN_CURRENT {
            frame = frame.add(inner).cast::<*const u8>().read();
        }
        while !frame.is_null() {
            let code = frame.add(CODE).cast::<*mut PyObject>().read();
            if frame.add(OWNER).read() != OWNED_BY_C {
                let tag = tag_by(code, extra_by_layout(code, SLOT.load(Relaxed)));
                if !tag.is_own() {
                    let instruction = frame.add(INSTRUCTION).cast::<usize>().read();
                    let first = code as usize + FIRST_INSTRUCTION;
                    if !see(tag.at(instruction.saturating_sub(first), false)) {
                        return;
                    }
                }
            }
            frame = frame.add(PREVIOUS).cast::<*const u8>().read();
        }
    }
}

/// Calls `see` with the program's lines as `read` does, by the public functions of the interpreter.
///
/// # Safety
/// The thread holds the interpreter lock.
unsafe fn walk_by_api(by_instruction: bool, mut see: impl FnMut(u64) -> bool) {
    // SAFETY: the caller's promise; the code is live.
    unsafe {
        each_frame(|frame, code| {
            let tag = tag_of(code);
            if tag.is_own() {
                return true;
            }
            let (position, is_line) = position_of(frame, by_instruction);
            see(tag.at(position, is_line))
        });
    }
}

/// How far a frame is: bytes from its first instruction on, or its line, and whether it is the line.
///
/// # Safety
/// The thread holds the interpreter lock, and `frame` is a live frame of it.
unsafe fn position_of(frame: *mut ffi::PyFrameObject, by_instruction: bool) -> (usize, bool) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(Py_3_11)]
        if by_instruction && let Ok(offset) = usize::try_from(ffi::PyFrame_GetLasti(frame)) {
            return (offset, false);
        }
        let _ = by_instruction;
        (usize::try_from(ffi::PyFrame_GetLineNumber(frame)).unwrap_or(0), true)
    }
}

/// Calls `see` with each frame of this thread and its code, innermost first, until it says that it has seen enough.
///
/// # Safety
/// The thread holds the interpreter lock.
unsafe fn each_frame(mut see: impl FnMut(*mut ffi::PyFrameObject, *mut PyObject) -> bool) {
    // SAFETY: the functions are called as they are meant to be; each frame and code is a new reference that is given
    // back.
    unsafe {
        let mut frame = ffi::PyThreadState_GetFrame(ffi::PyThreadState_Get());
        while !frame.is_null() {
            let code = ffi::PyFrame_GetCode(frame).cast::<PyObject>();
            let goes_on = see(frame, code);
            ffi::Py_DECREF(code);
            let next = if goes_on { ffi::PyFrame_GetBack(frame) } else { null_mut() };
            ffi::Py_DECREF(frame.cast());
            frame = next;
        }
    }
}

/// What a code object keeps for this module, made at the first sight of it.
///
/// # Safety
/// The thread holds the interpreter lock, and `code` is a live code object.
unsafe fn tag_of(code: *mut PyObject) -> CodeTag {
    let mut extra = null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        ffi::PyUnstable_Code_GetExtra(code, SLOT.load(Relaxed), &raw mut extra);
        tag_by(code, extra)
    }
}

/// As [`tag_of`], where the offset of the extra data is known; null if the code object was never seen.
///
/// # Safety
/// As [`tag_of`].
#[inline(always)]
unsafe fn tag_by(code: *mut PyObject, extra: *mut c_void) -> CodeTag {
    if extra.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { first_sight(code) };
    }
    CodeTag(extra as usize)
}

/// The extra data of a code object in a slot; null if it was never filled.
///
/// # Safety
/// As [`tag_of`].
#[cfg(has_layout)]
#[inline(always)]
unsafe fn extra_by_layout(code: *mut PyObject, slot: isize) -> *mut c_void {
    // SAFETY: null, or how many slots there are and then what is in them.
    unsafe {
        let slots = code.cast::<u8>().add(layout::EXTRA).cast::<*const isize>().read();
        if slots.is_null() || slots.read() <= slot {
            return null_mut();
        }
        slots.offset(1 + slot).cast::<*mut c_void>().read()
    }
}

/// # Safety
/// As [`tag_of`].
#[cold]
unsafe fn first_sight(code: *mut PyObject) -> CodeTag {
    // (Attached anew: what is dropped here is given back at once. Slots do not count as attached for PyO3, which would
    // postpone it, and an error that is handled on the way holds the code object.)
    let tag = Python::try_attach(|py| {
        // SAFETY: a live object.
        let object = unsafe { Bound::from_borrowed_ptr(py, code) };
        // (An exception that is on its way stays so.)
        let pending = PyErr::take(py);
        let tag = describe(&object)
            .ok()
            .and_then(|(code, is_own)| Some(CodeTag::new(enter(code)?, is_own)));
        if let Some(tag) = tag {
            // SAFETY: the number is kept as an address that nobody follows.
            let failed = unsafe {
                ffi::PyUnstable_Code_SetExtra(code, SLOT.load(Relaxed), tag.0 as *mut c_void) != 0
            };
            if failed {
                drop(PyErr::take(py));
            }
        }
        if let Some(error) = pending {
            error.restore(py);
        }
        tag
    });
    tag.flatten().unwrap_or(CodeTag(0))
}

fn describe(code: &Bound<'_, PyAny>) -> PyResult<(Code, bool)> {
    let py = code.py();
    let text = |name: &str| code.getattr(name)?.extract::<String>();
    let file = text("co_filename")?;
    let function = text(if cfg!(Py_3_11) { "co_qualname" } else { "co_name" })?;
    let lines = code.getattr("co_linetable")?.cast_into::<PyBytes>()?.as_bytes().into();
    let first_line = code.getattr("co_firstlineno")?.extract()?;
    let is_own = file.starts_with(package(py)?) || file.starts_with("<frozen ");
    Ok((Code { file, function, first_line, lines }, is_own))
}

/// The package's folder, with a separator at its end.
fn package(py: Python<'_>) -> PyResult<&'static str> {
    static FOLDER: OnceLock<String> = OnceLock::new();
    if let Some(folder) = FOLDER.get() {
        return Ok(folder);
    }
    let path = py.import("pullback")?.getattr("__path__")?.get_item(0)?.extract::<String>()?;
    Ok(FOLDER.get_or_init(|| format!("{path}{}", std::path::MAIN_SEPARATOR)))
}

/// A row for a code object; none if there are too many.
fn enter(code: Code) -> Option<LineNumber> {
    let mut table = table();
    let free = if table.gone.len() > MOST_GONE { table.gone.pop_front() } else { None };
    let row = match free {
        Some(row) => row,
        None if table.rows.len() + 1 < 1 << ROW_BITS => {
            table.rows.push(LineRow::default());
            table.rows.len() as u32 - 1
        }
        None => table.gone.pop_front()?,
    };
    let entry = &mut table.rows[row as usize];
    entry.generation = (entry.generation + 1) % (1 << GENERATION_BITS);
    entry.code = Some(Arc::new(code));
    Some(LineNumber { row, generation: entry.generation, position: 0, is_line: false })
}

/// A code object as the tracer of calls knows it.
pub(super) struct Label {
    /// Stands for the code object; 0 if it could not be numbered.
    pub(super) key: u64,
    /// Whether it is of this package.
    pub(super) is_own: bool,
}

/// # Safety
/// The thread holds the interpreter lock, and `code` is a live code object.
pub(super) unsafe fn label_of(code: *mut PyObject) -> Label {
    // SAFETY: the caller's promise.
    let tag = unsafe { tag_of(code) };
    Label { key: (tag.0 >> 1) as u64, is_own: tag.is_own() }
}

/// `file(line): function`, with the line that the function begins at.
pub(super) fn text_of_label(key: u64) -> Option<String> {
    let number = LineNumber::unpack(key)?;
    let table = table();
    let row = table.rows.get(number.row as usize)?;
    let code = row.code.as_ref().filter(|_| row.generation == number.generation)?;
    Some(format!("{}({}): {}", code.file, code.first_line, code.function))
}

/// Calls `see` with each code object on this thread's stack, innermost first.
///
/// # Safety
/// The thread holds the interpreter lock.
pub(super) unsafe fn each_code(mut see: impl FnMut(*mut PyObject)) {
    // SAFETY: the caller's promise.
    unsafe {
        each_frame(|_, code| {
            see(code);
            true
        });
    }
}

/// What the interpreter calls with a code object's tag when the object goes.
unsafe extern "C" fn forget(extra: *mut c_void) {
    let number = LineNumber::unpack((extra as usize >> 1) as u64);
    if let Some(LineNumber { row, .. }) = number {
        table().gone.push_back(row);
    }
}

/// The file and line of a number.
pub(crate) fn source_line_of(bits: u64) -> Option<SourceLine> {
    let number = LineNumber::unpack(bits)?;
    let code = {
        let table = table();
        let row = table.rows.get(number.row as usize)?;
        (row.generation == number.generation).then(|| row.code.clone())??
    };
    let found = if number.is_line {
        Found { line: number.position, columns: None }
    } else {
        line_table::find(&code.lines, code.first_line, number.position as usize)?
    };
    let text = text_of(&code.file, found.line);
    let columns = text.as_ref().zip(found.columns).map(|(text, (start, end))| {
        // What the interpreter counts are bytes.
        let characters = |bytes: u32| {
            text.char_indices().take_while(|(at, _)| *at < bytes as usize).count() as u32
        };
        (characters(start), characters(end))
    });
    Some(SourceLine {
        file: code.file.clone(),
        line: found.line,
        function: Some(code.function.clone()),
        text,
        columns,
    })
}

/// A line of a file, or of what else Python knows the text of.
fn text_of(file: &str, line: u32) -> Option<String> {
    Python::try_attach(|py| {
        let pending = PyErr::take(py);
        let found = py
            .import("linecache")
            .and_then(|module| module.call_method1("getline", (file, line)))
            .and_then(|text| Ok(text.cast_into::<PyString>()?.to_str()?.trim_end().to_owned()));
        if let Some(error) = pending {
            error.restore(py);
        }
        found.ok().filter(|text| !text.is_empty())
    })
    .flatten()
}

/// Takes a place in code objects for their numbers.
pub(crate) fn init() -> PyResult<()> {
    // SAFETY: called with the lock held; the function lives as long as the process.
    let slot = unsafe { ffi::PyUnstable_Eval_RequestCodeExtraIndex(forget) };
    if slot < 0 {
        return Err(PyRuntimeError::new_err("code objects have no place left for line numbers"));
    }
    SLOT.store(slot, Relaxed);
    Ok(())
}
