//! Copies elements without looking at them.

use crate::{Error, Iter, Result};

/// Copies the input to the output (1 output, 1 input of one dtype).
pub fn copy(iter: &mut Iter) -> Result<()> {
    if iter.outputs() != 1 || iter.operands() != 2 || iter.dtype(0) != iter.dtype(1) {
        return Err(Error::Runtime("copy: expected an output and an input of one dtype".into()));
    }
    match iter.dtype(0).size() {
        1 => copy_as::<u8>(iter),
        2 => copy_as::<u16>(iter),
        4 => copy_as::<u32>(iter),
        8 => copy_as::<u64>(iter),
        _ => copy_as::<[u64; 2]>(iter),
    }
    Ok(())
}

fn copy_as<T: Copy>(iter: &Iter) {
    let size = size_of::<T>() as isize;
    iter.for_each(32768, &|ptrs, strides, n| {
        let (to, from) = (ptrs[0], ptrs[1].cast_const());
        if n == 1 || (strides[0] == size && strides[1] == size) {
            // SAFETY: `n` dense elements on both sides; `copy` allows the very same view.
            unsafe { std::ptr::copy(from.cast::<T>(), to.cast::<T>(), n) };
            return;
        }
        for i in 0..n as isize {
            // SAFETY: `n` elements at these distances.
            unsafe {
                *to.wrapping_offset(i * strides[0]).cast::<T>() =
                    *from.wrapping_offset(i * strides[1]).cast::<T>();
            }
        }
    });
}
