//! The walk through a module, and the implementations of modules for types other than structs.

use super::Module;
use pullback::{DType, Device, Result, Tensor, no_grad};
use std::collections::HashSet;
use std::fmt;

/// The kind of a tensor of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKind {
    /// It is trained.
    Parameter,
    /// It belongs to the state, and is not trained.
    Buffer,
}

/// The path of a tensor in a model: `layers.0.weight`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path<'a>(Option<(&'a Path<'a>, &'a str)>);

impl<'a> Path<'a> {
    /// The model itself.
    pub fn root() -> Path<'static> {
        Path(None)
    }
    /// The path of a child with this name.
    pub fn child(&'a self, name: &'a str) -> Path<'a> {
        Path(Some((self, name)))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((parent, name)) = self.0 else { return Ok(()) };
        if parent.0.is_some() {
            write!(f, "{parent}.")?;
        }
        f.write_str(name)
    }
}

/// A walk through a module that is borrowed somewhere.
pub(super) type Walk<'a> = dyn Fn(&Path<'_>, &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) + 'a;

/// Shows the tensors of a field as buffers.
pub fn visit_buffer<M: Module + ?Sized>(
    field: &M,
    path: &Path<'_>,
    visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor),
) {
    field.visit(path, &mut |path, _, tensor| visitor(path, TensorKind::Buffer, tensor));
}

/// The tensors of one kind, each once.
pub(super) fn named(walk: &Walk<'_>, wanted: TensorKind) -> Vec<(String, Tensor)> {
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    walk(&Path::root(), &mut |path, kind, tensor| {
        if kind == wanted && known.insert(tensor.id()) {
            found.push((path.to_string(), tensor.clone()));
        }
    });
    found
}

/// Lets every tensor show converted memory; whole numbers keep their dtype.
pub(super) fn convert(walk: &Walk<'_>, dtype: Option<DType>, device: Option<Device>) -> Result<()> {
    let _off = no_grad();
    // All tensors are converted before the first one changes.
    let (mut converted, mut known, mut failed) = (Vec::new(), HashSet::new(), Ok(()));
    walk(&Path::root(), &mut |_, _, tensor| {
        let floating = tensor.dtype().is_floating_point() || tensor.dtype().is_complex();
        if failed.is_ok() && known.insert(tensor.id()) {
            let made =
                tensor.detach().and_then(|t| t.to(dtype.filter(|_| floating), device, false, None));
            failed = made.map(|made| converted.push((tensor.clone(), made)));
        }
    });
    failed?;
    converted.iter().try_for_each(|(tensor, made)| {
        tensor.set_grad(None)?;
        tensor.set_data(made)
    })
}

impl Module for Tensor {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        visitor(path, TensorKind::Parameter, self);
    }
}

/// Types without tensors.
macro_rules! nothing {
    ($($type:ty),*) => {$(
        impl Module for $type {
            fn visit(&self, _: &Path<'_>, _: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {}
        }
    )*};
}
nothing!(
    (),
    bool,
    char,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    String,
    &'static str,
    DType,
    Device
);

impl<M: Module> Module for Option<M> {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        if let Some(module) = self {
            module.visit(path, visitor);
        }
    }
    fn set_training(&mut self, training: bool) {
        if let Some(module) = self {
            module.set_training(training);
        }
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        (**self).visit(path, visitor);
    }
    fn set_training(&mut self, training: bool) {
        (**self).set_training(training);
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        for (index, module) in self.iter().enumerate() {
            module.visit(&path.child(&index.to_string()), visitor);
        }
    }
    fn set_training(&mut self, training: bool) {
        for module in self {
            module.set_training(training);
        }
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        self.as_slice().visit(path, visitor);
    }
    fn set_training(&mut self, training: bool) {
        self.as_mut_slice().set_training(training);
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        self.as_slice().visit(path, visitor);
    }
    fn set_training(&mut self, training: bool) {
        self.as_mut_slice().set_training(training);
    }
}
