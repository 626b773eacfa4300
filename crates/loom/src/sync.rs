//! `crate::sync` of the library, made of loom's.

pub(crate) use loom::alloc::{alloc, dealloc};
pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
pub(crate) use loom::thread::{Thread, park, park as park_briefly, yield_now};
