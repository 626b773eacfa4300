//! The numbers of nodes and of the threads that make them.
//!
//! Each thread counts the nodes that it makes; leaves take no number of the count. Start at [`next_numbers`].

use crate::local::local;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static THREADS: AtomicU32 = AtomicU32::new(1);

/// This thread's number, from 1 on.
#[inline]
pub(crate) fn thread_number() -> u32 {
    let local = local();
    let mut thread = local.thread.get();
    if thread == 0 {
        thread = THREADS.fetch_add(1, Relaxed);
        local.thread.set(thread);
    }
    thread
}

/// The sequence number of a node that is made now (leaves take none), and the number of this thread.
#[inline]
pub(in crate::autograd) fn next_numbers(is_leaf: bool) -> (u64, u32) {
    let thread = thread_number();
    let local = local();
    let next = local.next_node.get();
    local.next_node.set(next + u64::from(!is_leaf));
    (if is_leaf { u64::MAX } else { next }, thread)
}

/// The number that the next node made on this thread will have.
pub fn peek_sequence_nr() -> u64 {
    local().next_node.get()
}
