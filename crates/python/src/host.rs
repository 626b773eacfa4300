//! The interpreter as the library's host: all that the library calls in the binding, in one value.
//!
//! Each function is implemented by the module of its subject. Invariant: the host is set when the
//! extension is loaded, before a tensor is made.

use crate::autograd::anomaly::Stacks;
use crate::raw::frame::{self, ByFunctions, FrameReader};
use crate::raw::{object, storage};
use crate::{function_mode, interrupt};
use pullback::Tensor;
use pullback::autograd::anomaly::AnomalyRecorder;
use pullback::call_site::SourceLine;
use pullback::host::{Host, set_host};
use std::mem::ManuallyDrop;

/// The interpreter, and the way in which its frames are read.
struct Interpreter<F>(F);

impl<F: FrameReader> Host for Interpreter<F> {
    #[inline]
    fn line(&self) -> u64 {
        self.0.line()
    }
    fn call_stack(&self) -> Vec<u64> {
        self.0.call_stack()
    }
    fn source_line(&self, line: u64) -> Option<SourceLine> {
        frame::source_line_of(line)
    }
    fn check_interrupt(&self) -> pullback::Result<()> {
        interrupt::check()
    }
    fn thread_state(&self) -> Box<dyn FnOnce() + Send> {
        function_mode::thread_state()
    }
    fn anomaly_recorder(&self) -> &dyn AnomalyRecorder {
        &Stacks
    }
    fn tensor_released(&self, object: *mut (), tensor: ManuallyDrop<Tensor>) {
        object::release(object, tensor);
    }
    fn storage_released(&self, object: *mut ()) {
        storage::release(object);
    }
    fn dtype_changed(&self, tensor: &Tensor) {
        object::retype(tensor);
    }
}

/// The host with the quickest way to read frames that there is. `PULLBACK_FRAMES=functions` and `PULLBACK_FRAMES=lines` (what
/// CPython 3.10 can do) take the other ones, so that they are tested on every interpreter.
fn choose() -> &'static dyn Host {
    let wanted = std::env::var("PULLBACK_FRAMES").unwrap_or_default();
    if wanted == "lines" {
        return &Interpreter(ByFunctions { by_instruction: false });
    }
    #[cfg(has_layout)]
    if wanted != "functions" {
        return &Interpreter(frame::ByLayout);
    }
    &Interpreter(ByFunctions { by_instruction: cfg!(Py_3_11) })
}

/// Tells the library that the interpreter is its host.
pub(crate) fn init() {
    set_host(choose());
}
