//! Writes one value to every element.

use crate::{Error, Iter, Result, Scalar, for_dtype};

crate::multiversion! {
fn fill_run<T: Copy>(to: &mut [T], value: T) {
    let unaligned = to.as_ptr().align_offset(64).min(to.len());
    let (start, lines) = to.split_at_mut(unaligned);
    start.fill(value);
    lines.fill(value);
}
}

/// Sets every element of the output (1 output, no inputs) to `value`.
pub fn fill(iter: &mut Iter, value: Scalar) -> Result<()> {
    if iter.outputs() != 1 || iter.operands() != 1 {
        return Err(Error::runtime("fill: expected one output and no input".into()));
    }
    let dtype = iter.dtype(0);
    // (PyTorch writes one element without looking for overlaps.)
    if !(dtype.is_narrow_float() && iter.numel() == 1 && value.is_real()) {
        value.check_fits(dtype)?;
    }
    for_dtype!(dtype, stored, T => {
        let value = value.to::<T>();
        // SAFETY: an element's bytes.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        let (first, is_byte) = (bytes[0], bytes.iter().all(|&byte| byte == bytes[0]));
        iter.for_each(32768, &|ptrs, strides, n| {
            let to = ptrs[0];
            if n == 1 || strides[0] == size_of::<T>() as isize {
                // SAFETY: the run has `n` dense writable elements of this type.
                unsafe {
                    if is_byte {
                        to.cast::<T>().write_bytes(first, n);
                    } else {
                        fill_run(std::slice::from_raw_parts_mut(to.cast::<T>(), n), value);
                    }
                }
            } else {
                for i in 0..n {
                    // SAFETY: as above, at this distance.
                    unsafe { *to.wrapping_offset(i as isize * strides[0]).cast::<T>() = value };
                }
            }
        });
        Ok(())
    }, else Err(Error::not_implemented("fill_cpu", dtype)))
}
