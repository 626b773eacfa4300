//! Layers made of others, and layers of shapes.

use crate::module::{Path, TensorKind};
use crate::{Forward, Module};
use pullback::{Result, Tensor};
use std::fmt;

/// One layer after the other; their names are `0`, `1`, ...
///
/// ```
/// use pullback_nn::prelude::*;
/// # fn main() -> Result<()> {
/// let model = Sequential::new().add(Linear::new(4, 8)?).add(ReLU).add(Linear::new(8, 2)?);
/// assert_eq!(model.forward(&Tensor::ones([3, 4])?)?.shape(), [3, 2]);
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Forward>>);

impl Sequential {
    /// A sequence without layers, which is the identity.
    pub fn new() -> Self {
        Sequential::default()
    }
    /// Adds a layer at the end.
    #[allow(
        clippy::should_implement_trait,
        reason = "a layer is added to the end, not to a number"
    )]
    pub fn add(mut self, layer: impl Forward + 'static) -> Self {
        self.0.push(Box::new(layer));
        self
    }
    /// The number of layers.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequential of {} layers", self.0.len())
    }
}

impl Module for Sequential {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        self.0.visit(path, visitor);
    }
    fn set_training(&mut self, training: bool) {
        self.0.set_training(training);
    }
}

impl Forward for Sequential {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.0.iter().try_fold(input.clone(), |x, layer| layer.forward(&x))
    }
}

/// A layer that returns its input.
#[derive(Clone, Copy, Debug, Default, Module)]
pub struct Identity;

impl Forward for Identity {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(input.clone())
    }
}

/// Flattens the dimensions `start_dim` to `end_dim` to one; all but the first by default.
#[derive(Clone, Copy, Debug, Module)]
pub struct Flatten {
    /// The first flattened dimension.
    pub start_dim: i64,
    /// The last flattened dimension.
    pub end_dim: i64,
}

impl Default for Flatten {
    fn default() -> Self {
        Flatten { start_dim: 1, end_dim: -1 }
    }
}

impl Forward for Flatten {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.flatten(self.start_dim, self.end_dim)
    }
}

/// A function as a layer, see [`function`].
pub struct Function<F>(F);

/// A function as a layer: `function(|x| x.unsqueeze(1))`.
pub fn function<F>(f: F) -> Function<F>
where
    F: Fn(&Tensor) -> Result<Tensor> + Send + Sync,
{
    Function(f)
}

impl<F: Send + Sync> Module for Function<F> {
    fn visit(&self, _: &Path<'_>, _: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {}
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync> Forward for Function<F> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (self.0)(input)
    }
}
