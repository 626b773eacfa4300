//! The state of each thread that every op accesses: its modes, its node counters, its pool of
//! memory.
//!
//! A thread-local variable of a shared library is found through a call (the general dynamic model of ELF), which
//! took 2 to 3 % of a recorded op. With the feature `static-tls`, where this crate knows how (Linux on x86-64), the few
//! words here lie at a fixed distance from the thread pointer instead (the initial exec model; U. Drepper, "ELF Handling
//! For Thread-Local Storage"). Libraries that are loaded while a program runs share a small reserve for this, so only the
//! distributed Python extension has the feature. Without it they are an ordinary thread-local variable: as quick in a
//! program, where the linker knows the distance. Invariant: all zero is the state that a thread starts with, and nothing
//! here needs to be dropped (see [`crate::tensor::memory`] for the pool's end).

use crate::tensor::memory::Pool;
use std::cell::Cell;

/// One thread's words.
#[repr(C)]
pub(crate) struct Local {
    /// The thread's modes and dispatch keys, as differences from what they are at first (see `autograd::mode`).
    pub(crate) modes: Cell<u64>,
    /// The number of the next node.
    pub(crate) next_node: Cell<u64>,
    /// The thread's pool; null before it has one and after it ended.
    pub(crate) pool: Cell<*mut Pool>,
    /// The call site that the thread works for, if that is known (see [`crate::call_site`]).
    pub(crate) call_site: Cell<u64>,
    /// The thread's number, from 1 on; 0 until it is asked for.
    pub(crate) thread: Cell<u32>,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "static-tls"))]
mod address {
    use super::Local;

    const _: () = assert!(size_of::<Local>() == 40 && align_of::<Local>() == 8);

    std::arch::global_asm!(
        ".pushsection .tbss.pullback_local, \"awT\", @nobits",
        ".globl pullback_local",
        ".type pullback_local, @object",
        ".size pullback_local, 40",
        ".p2align 3",
        "pullback_local:",
        ".zero 40",
        ".popsection",
    );

    #[inline(always)]
    pub(super) fn local() -> *const Local {
        let address;
        // SAFETY: the address of this thread's copy of the variable defined above: the thread pointer, which x86-64
        // keeps at its own address, plus the distance that the loader has put into the table. The same at any time
        // in a thread, and no memory that changes is read.
        unsafe {
            std::arch::asm!(
                "mov {address}, qword ptr fs:[0]",
                "add {address}, qword ptr [rip + pullback_local@GOTTPOFF]",
                address = out(reg) address,
                options(pure, nomem, nostack),
            );
        }
        address
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", feature = "static-tls")))]
mod address {
    use super::Local;
    use std::cell::Cell;
    use std::ptr::null_mut;

    thread_local! {
        static LOCAL: Local = const {
            Local {
                modes: Cell::new(0),
                next_node: Cell::new(0),
                pool: Cell::new(null_mut()),
                call_site: Cell::new(0),
                thread: Cell::new(0),
            }
        };
    }

    #[inline(always)]
    pub(super) fn local() -> *const Local {
        LOCAL.with(std::ptr::from_ref)
    }
}

/// This thread's words. (They are not `Sync`: the reference stays on the thread.)
#[inline(always)]
pub(crate) fn local() -> &'static Local {
    // SAFETY: a thread's own variable without destructor is there as long as the thread; all zero, as it starts, is
    // a value of each field.
    unsafe { &*address::local() }
}
