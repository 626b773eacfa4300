//! Functions of several tensors as associated functions of `Tensor`, where Rust programs look for
//! them: `Tensor::cat(&[&x, &y], 0)`.

use super::{join, mesh};
use crate::{Result, Tensor};
use std::borrow::Borrow;

fn handles<T: Borrow<Tensor>>(tensors: &[T]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.borrow().clone()).collect()
}

impl Tensor {
    /// The tensors one behind the other along a dimension that they have.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// # fn main() -> pullback::Result<()> {
    /// let (x, y) = (Tensor::zeros([2, 3])?, Tensor::ones([1, 3])?);
    /// assert_eq!(Tensor::cat(&[&x, &y], 0)?.shape(), [3, 3]);
    /// assert_eq!(Tensor::stack(&[&x, &x], 0)?.shape(), [2, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `RuntimeError` for an empty list and sizes that differ elsewhere.
    #[track_caller]
    pub fn cat<T: Borrow<Tensor>>(tensors: &[T], dim: i64) -> Result<Tensor> {
        join::cat(&handles(tensors), dim)
    }
    /// The tensors, of one shape, along a new dimension.
    ///
    /// # Errors
    /// `RuntimeError` for an empty list and other shapes.
    #[track_caller]
    pub fn stack<T: Borrow<Tensor>>(tensors: &[T], dim: i64) -> Result<Tensor> {
        join::stack(&handles(tensors), dim)
    }
    /// The tensors with the shape that they have together.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not broadcast.
    #[track_caller]
    pub fn broadcast<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Vec<Tensor>> {
        mesh::broadcast_tensors(&handles(tensors))
    }
}
