//! Tensors as a recording knows them: the memory that they show, and their geometry.

use crate::DType;
use crate::dispatch::Value;
use crate::tensor::{Dims, Flag, Geometry};
use crate::{Result, Storage, Tensor};

/// Memory that the step uses.
pub(super) struct StepMemory {
    pub(super) kind: MemoryOrigin,
    /// The size of the memory, the largest that was seen.
    pub(super) bytes: usize,
    /// The first and the last instruction that uses it.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Whether an instruction wrote to it that did not make it.
    pub(super) is_written: bool,
    /// The name of the op that made it.
    pub(super) maker: &'static str,
}

/// Whose memory it is.
#[derive(Clone)]
pub(super) enum MemoryOrigin {
    /// That of an argument of the step.
    Input(usize),
    /// That of a tensor which is older than the step.
    External(Storage),
    /// It came to be during the step, but no op made it: numbers, mostly.
    Constant(Storage),
    /// An op of the step made it.
    Made,
}

/// A geometry by which a tensor shows memory.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) memory: usize,
    pub(super) offset: i64,
    pub(super) shape: Dims,
    pub(super) strides: Dims,
    pub(super) dtype: DType,
    /// Whether it stands for a number.
    pub(super) is_number: bool,
}

impl View {
    /// The geometry by which `tensor` shows this memory.
    pub(super) fn of(tensor: &Tensor, memory: usize) -> View {
        let g = tensor.geometry();
        View {
            memory,
            offset: g.offset,
            shape: g.shape.clone(),
            strides: g.strides.clone(),
            dtype: g.dtype,
            is_number: tensor.has_flag(Flag::WRAPPED_NUMBER),
        }
    }
    /// A tensor that shows `storage` by this geometry, which begins `skipped` elements further on.
    ///
    /// # Errors
    /// `RuntimeError` if it would reach beyond the storage.
    pub(super) fn tensor(&self, storage: Storage, skipped: i64) -> Result<Tensor> {
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        let geometry = Geometry::new(storage, self.offset - skipped, shape, strides, self.dtype)?;
        let tensor = Tensor::from_geometry(geometry)?;
        if self.is_number {
            tensor.set_flag_fresh(Flag::WRAPPED_NUMBER);
        }
        Ok(tensor)
    }
}

/// An argument, with views for tensors.
pub(super) enum SeenArg {
    Plain(Value),
    Tensor(usize),
    Tensors(Vec<usize>),
    OptTensors(Vec<Option<usize>>),
}

impl SeenArg {
    /// The argument with the tensors of a program.
    pub(super) fn with(&self, tensors: &[Tensor]) -> Value {
        match self {
            SeenArg::Plain(value) => value.clone(),
            SeenArg::Tensor(view) => Value::Tensor(tensors[*view].clone()),
            SeenArg::Tensors(views) => {
                Value::Tensors(views.iter().map(|&view| tensors[view].clone()).collect())
            }
            SeenArg::OptTensors(views) => {
                let one = |view: &Option<usize>| view.map(|view| tensors[view].clone());
                Value::OptTensors(views.iter().map(one).collect())
            }
        }
    }
}

/// The form in which an instruction returns or writes its results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NotedForm {
    Functional,
    Inplace,
    Out,
}

/// A kernel that ran.
pub(super) struct Instruction {
    pub(super) def: &'static crate::dispatch::OpDef,
    pub(super) form: NotedForm,
    pub(super) args: Vec<SeenArg>,
    /// The results, or the targets.
    pub(super) outs: Vec<usize>,
}
