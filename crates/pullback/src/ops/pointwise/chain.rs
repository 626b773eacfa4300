//! Methods on expressions: those of [`Tensor`], on values that may be errors already.
//!
//! A chain reads as mathematics and says `?` once, at its end. The methods are made from the items of the ops, as those of
//! [`Tensor`] are; where these take a tensor, a number may stand, too.

use super::operator::Operand;
use crate::{Result, Tensor};

pullback_macros::chain! {
    /// The methods of tensors on an expression or a result: the first error on the way is the error of the whole.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// # fn main() -> pullback::Result<()> {
    /// let x = Tensor::from([1.0, -2.0, 3.0])?;
    /// let w = Tensor::from([2.0, 2.0, 0.5])?;
    /// let y = (&x * &w + 1.0).relu().sum()?;
    /// assert_eq!(y.item()?.to_f64(), 5.5);
    /// // Methods of tensors give results, which go on in the same way.
    /// let z = x.mul(&w).sub(1.0).square().mean()?;
    /// assert_eq!(z.item()?.to_f64(), 8.75);
    /// # Ok(())
    /// # }
    /// ```
    pub trait Chain: Operand + Sized
}

impl Chain for Result<Tensor> {}
impl Chain for super::operator::Computed {}
