//! The number of operations on numbers that a call makes, which the function `flops` of an op's
//! item computes.
//!
//! A multiplication and an addition count as one each, so that the product of an (m, k) and a (k, n) matrix counts as `2 m k n`.
//! Counts come from shapes and numbers alone, also of tensors without memory. The profiler shows them
//! ([`crate::prof::Config::flops`]), and Python's `FlopCounterMode` adds them up.

use super::{Arg, OpDef};

impl OpDef {
    /// The operations on numbers of a call; `None` of an op without a count, and of arguments that it refuses.
    ///
    /// ```
    /// use pullback::{Tensor, dispatch::Arg, ops};
    /// # fn main() -> pullback::Result<()> {
    /// let mm = ops::registry().find(|op| op.name == "mm").unwrap();
    /// let a = Tensor::from_slice(&[1.0_f32; 6], &[2, 3])?;
    /// let b = Tensor::from_slice(&[1.0_f32; 12], &[3, 4])?;
    /// assert_eq!(mm.count_flops(&[Arg::Tensor(&a), Arg::Tensor(&b)]), Some(2 * 2 * 3 * 4));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn count_flops(&self, args: &[Arg<'_>]) -> Option<u64> {
        self.flops.and_then(|count| count(args).ok())
    }
}

/// A multiplication and an addition for each way to choose an index below each of `sizes`; the largest number where there are
/// more.
pub(crate) fn multiply_adds<'a>(sizes: impl IntoIterator<Item = &'a i64>) -> u64 {
    // (A size of zero makes it zero, however large the others are.)
    let mut count = Some(2_u64);
    for &size in sizes {
        let size = u64::try_from(size).unwrap_or(0);
        if size == 0 {
            return 0;
        }
        count = count.and_then(|count| count.checked_mul(size));
    }
    count.unwrap_or(u64::MAX)
}

/// The count of products of matrices (..., m, k) and (..., k, n), one for each index in front.
pub(crate) fn of_products(left: &[i64], right: &[i64]) -> u64 {
    multiply_adds(left.iter().chain(right.last()))
}

#[cfg(test)]
mod tests {
    use super::{multiply_adds, of_products};

    #[test]
    fn products_count_twice_the_sizes_of_all_three_dimensions() {
        assert_eq!(of_products(&[2, 3], &[3, 4]), 2 * 2 * 3 * 4);
        assert_eq!(of_products(&[5, 2, 3], &[5, 3, 4]), 2 * 5 * 2 * 3 * 4);
        assert_eq!(of_products(&[2, 0], &[0, 4]), 0);
    }
    #[test]
    fn counts_that_no_number_holds_are_the_largest_one() {
        assert_eq!(multiply_adds(&[1 << 40, 1 << 40]), u64::MAX);
        assert_eq!(multiply_adds(&[1 << 40, 1 << 40, 0]), 0);
    }
}
