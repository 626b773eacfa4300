//! The strides of the results of transforms, which are those of PyTorch.
//!
//! The transformed dimensions are innermost, in an order that begins with the largest stride of the input; the others
//! are outside, in the order of theirs. Kernels may write in any order: this one is a convention that programs may have
//! come to rely on.

use crate::Dims;
use smallvec::SmallVec;

/// The number of dimensions that PyTorch's library transforms at once.
const AT_ONCE: usize = 7;

type DimOrder = SmallVec<[usize; 5]>;

/// Strides after a complex transform along `dims`.
pub(super) fn after_complex(shape: &[i64], strides: &[i64], dims: &[usize]) -> Dims {
    after(shape, strides, DimOrder::from_slice(dims), 0)
}

/// Strides after a transform of a real tensor along `dims` to `shape`: the last of them stays innermost.
pub(super) fn after_real(shape: &[i64], strides: &[i64], dims: &[usize]) -> Dims {
    after(shape, strides, DimOrder::from_slice(dims), 1)
}

/// Strides after a transform to a real tensor: `between` is the shape before the last transform.
pub(super) fn after_to_real(
    (between, shape): (&[i64], &[i64]),
    strides: &[i64],
    dims: &[usize],
) -> Dims {
    let Some((last, others)) = dims.split_last() else { return Dims::from_slice(strides) };
    if others.is_empty() {
        return after_some(shape, strides, &[*last]);
    }
    after_some(shape, &after_complex(between, strides, others), &[*last])
}

/// Strides after transforms along `dims`, of which the last `fixed` keep their position.
fn after(shape: &[i64], strides: &[i64], mut dims: DimOrder, mut fixed: usize) -> Dims {
    let mut strides = Dims::from_slice(strides);
    while !dims.is_empty() {
        let free = dims.len() - fixed;
        dims[..free].sort_by_key(|&d| std::cmp::Reverse(strides[d]));
        fixed = 0;
        let rest = dims.len().saturating_sub(AT_ONCE);
        strides = after_some(shape, &strides, &dims[rest..]);
        dims.truncate(rest);
    }
    strides
}

/// Strides after one transform: `dims` innermost in their order, the others outside.
fn after_some(shape: &[i64], strides: &[i64], dims: &[usize]) -> Dims {
    let mut others = untouched(shape.len(), dims);
    others.sort_by_key(|&d| std::cmp::Reverse(strides[d]));
    let mut out = Dims::from_elem(0, shape.len());
    let mut reach = 1;
    for &dim in dims.iter().rev() {
        out[dim] = reach;
        reach *= shape[dim].max(1);
    }
    for &dim in others.iter().rev() {
        out[dim] = reach;
        reach *= shape[dim];
    }
    out
}

/// The dimensions that are not in `dims`. Where strides are equal their order matters: each of `dims`, from the left,
/// is swapped with the last of the others after it.
fn untouched(rank: usize, dims: &[usize]) -> DimOrder {
    let mut all: DimOrder = (0..rank).collect();
    let (mut left, mut right) = (0, rank);
    loop {
        while left < right && !dims.contains(&all[left]) {
            left += 1;
        }
        while left < right && dims.contains(&all[right - 1]) {
            right -= 1;
        }
        if left >= right {
            break;
        }
        right -= 1;
        all.swap(left, right);
        left += 1;
    }
    all.truncate(left);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_those_that_were_recorded_of_pytorch() {
        let one = |shape: &[i64], strides: &[i64], dims: &[usize]| {
            after_complex(shape, strides, dims).to_vec()
        };
        assert_eq!(one(&[3, 4], &[4, 1], &[0]), [1, 3]);
        assert_eq!(one(&[3, 4], &[4, 1], &[0, 1]), [4, 1]);
        assert_eq!(one(&[2, 2, 1], &[4, 2, 2], &[0]), [1, 2, 4]);
        assert_eq!(one(&[4, 1, 3, 3], &[1, 12, 12, 4], &[3, 0, 1, 2]), [1, 36, 12, 4]);
        let real = after_real(&[2, 3, 3, 2], &[27, 9, 3, 2], &[0, 2, 3, 1]);
        assert_eq!(real.to_vec(), [18, 1, 6, 3]);
        let back = after_to_real((&[3, 1, 3], &[5, 1, 3]), &[3, 3, 1], &[1, 0]);
        assert_eq!(back.to_vec(), [1, 5, 5]);
    }
}
