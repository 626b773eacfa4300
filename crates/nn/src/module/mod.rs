//! Modules: tensors by name.
//!
//! [`Module::visit`] is the only required method; everything else here uses it. Invariant: a module
//! shows its own tensors before those of its submodules, each in the order of the fields, as
//! PyTorch does.

mod file;
mod state;
mod walk;

pub use pullback::Tensor;
pub use state::{Incompatible, StateDict};
pub use walk::{Path, TensorKind, visit_buffer};

use pullback::{DType, Device, Result};

/// A model, or a part of one.
///
/// `#[derive(Module)]` makes it of a struct whose fields are modules. `Tensor` is one: a parameter.
/// So are numbers, truth values and texts, which show nothing, and `Option`, `Vec`, arrays, `Box`
/// of modules. A field may have these attributes:
///
/// - `#[module(buffer)]`: the tensor is part of the state, but is not trained;
/// - `#[module(skip)]`: the field is of another type, and shows nothing;
/// - `#[module(rename = "name")]`: the name in the state dict.
///
/// ```
/// use pullback_nn::prelude::*;
///
/// #[derive(Module)]
/// struct Scale {
///     factor: Tensor,
///     #[module(buffer)]
///     count: Tensor,
///     inner: Linear,
/// }
/// # fn main() -> Result<()> {
/// let scale = Scale {
///     factor: Tensor::ones([1])?.with_grad()?,
///     count: Tensor::zeros(())?,
///     inner: Linear::new(2, 2)?,
/// };
/// let names: Vec<_> = scale.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["factor", "inner.weight", "inner.bias"]);
/// assert_eq!(scale.state_dict()?.len(), 4);
/// # Ok(())
/// # }
/// ```
pub trait Module: Send + Sync {
    /// Shows every tensor with its name below `path` to `visitor`.
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor));

    /// Sets whether the module is trained: layers such as `Dropout` and `BatchNorm` compute another
    /// function then.
    fn set_training(&mut self, training: bool) {
        let _ = training;
    }

    /// Switches to training.
    fn train(&mut self) {
        self.set_training(true);
    }
    /// Switches to evaluation.
    fn eval(&mut self) {
        self.set_training(false);
    }

    /// The parameters with their names. A parameter with several names is listed once, with the
    /// first.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        walk::named(&|path, visitor| self.visit(path, visitor), TensorKind::Parameter)
    }
    /// The buffers with their names.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        walk::named(&|path, visitor| self.visit(path, visitor), TensorKind::Buffer)
    }
    /// The parameters.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, tensor)| tensor).collect()
    }
    /// The number of elements of all parameters.
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|parameter| parameter.numel() as usize).sum()
    }

    /// Parameters and buffers by name, without history. They share the memory of the module's.
    ///
    /// # Errors
    /// Out of memory.
    fn state_dict(&self) -> Result<StateDict> {
        StateDict::of(&|path, visitor| self.visit(path, visitor))
    }
    /// Writes the tensors of a state dict into those of the module, which keep their dtype and device.
    ///
    /// # Errors
    /// `RuntimeError` that lists the names that are missing and those that are too many, and the tensors of other shapes.
    /// Nothing is written then.
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        state.load_into(&|path, visitor| self.visit(path, visitor))
    }
    /// As [`Module::load_state_dict`] for the names that both have; returns the others.
    ///
    /// # Errors
    /// `RuntimeError` that lists the tensors of other shapes.
    fn load_matching(&self, state: &StateDict) -> Result<Incompatible> {
        state.load_matching(&|path, visitor| self.visit(path, visitor))
    }
    /// Writes the state dict to a file: `.safetensors`, or `.pt` as PyTorch's `torch.save(model.state_dict())`.
    ///
    /// # Errors
    /// As for `pullback::io`.
    fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.state_dict()?.save(path)
    }
    /// Reads a file that [`Module::save`] or Python wrote.
    ///
    /// # Errors
    /// As for `pullback::io` and [`Module::load_state_dict`].
    fn load(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.load_state_dict(&StateDict::load(path)?)
    }

    /// Converts floating parameters and buffers. Gradients are dropped.
    ///
    /// # Errors
    /// Out of memory.
    fn to_dtype(&self, dtype: DType) -> Result<()> {
        walk::convert(&|path, visitor| self.visit(path, visitor), Some(dtype), None)
    }
    /// Moves parameters and buffers to a device. Gradients are dropped.
    ///
    /// # Errors
    /// `RuntimeError` for a device that is not there; out of memory.
    fn to_device(&self, device: Device) -> Result<()> {
        walk::convert(&|path, visitor| self.visit(path, visitor), None, Some(device))
    }
    /// Sets whether the parameters are trained.
    ///
    /// # Errors
    /// `RuntimeError` for parameters of whole numbers.
    fn requires_grad(&self, requires: bool) -> Result<()> {
        self.parameters().iter().try_for_each(|p| p.requires_grad_(requires).map(drop))
    }
    /// Sets the gradients to `None`.
    ///
    /// # Errors
    /// None at present.
    fn zero_grad(&self) -> Result<()> {
        self.parameters().iter().try_for_each(|parameter| parameter.set_grad(None))
    }
}

/// A module that is a function of one tensor.
pub trait Forward: Module {
    /// Computes the function.
    ///
    /// # Errors
    /// Those of its ops.
    fn forward(&self, input: &Tensor) -> Result<Tensor>;
}

impl<M: Forward + ?Sized> Forward for Box<M> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (**self).forward(input)
    }
}
