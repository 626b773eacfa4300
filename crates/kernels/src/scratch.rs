//! Memory for packed operands that a thread keeps from call to call.
//!
//! Fresh memory costs as much as a small product: it is cleared or comes page by page. What is handed out here begins at a
//! cache line and holds what was left there. A buffer in use is nobody else's: a call inside a call gets one of its own.

use crate::{Result, memory};
use std::cell::Cell;

/// Bytes of a buffer up to which a thread keeps it; none for a sanitizer, to which a kept buffer is memory in use.
const KEPT: usize = if cfg!(pullback_sanitize) { 0 } else { 6 << 20 };

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u32; 16]);

thread_local! {
    static LINES: Cell<Vec<CacheLine>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with `n` words of any content.
pub(crate) fn with<R>(n: usize, work: impl FnOnce(&mut [u32]) -> R) -> Result<R> {
    // (At a thread's very end there is nothing kept any more.)
    let mut lines = LINES.try_with(Cell::take).unwrap_or_default();
    let needed = n.div_ceil(16);
    if lines.len() < needed {
        // What is there need not be copied.
        lines = memory::filled(CacheLine([0; 16]), needed)?;
    }
    // SAFETY: a line is sixteen words without gaps, and the borrow of `lines` lasts as long as the slice.
    let words = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<u32>(), n) };
    let result = work(words);
    if lines.len() * size_of::<CacheLine>() <= KEPT {
        let _ = LINES.try_with(|kept| kept.set(lines));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_of_any_size_and_apart_from_one_another() {
        for n in [0, 1, 16, 17, 1000, 3, 4 << 20, 5] {
            with(n, |outer| {
                assert_eq!(outer.len(), n);
                assert!(outer.as_ptr().addr().is_multiple_of(64));
                outer.fill(1);
                with(n, |inner| inner.fill(2)).unwrap();
                assert!(outer.iter().all(|&word| word == 1));
            })
            .unwrap();
        }
    }
}
