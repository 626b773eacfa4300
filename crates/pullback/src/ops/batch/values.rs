//! The arguments of a call as values that a batching rule changes by their names.

use super::ints;
use crate::dispatch::batch::BatchedCall;
use crate::dispatch::{Arg, ArgDef, OpDef, Outputs, Value};
use crate::{Result, Tensor};
use smallvec::SmallVec;

/// The arguments of a call of an op, in the order of its signature.
pub(super) struct Values {
    def: &'static OpDef,
    all: Vec<Value>,
}

impl Values {
    /// Makes the arguments of an op from these values.
    pub(super) fn new(def: &'static OpDef, all: Vec<Value>) -> Values {
        Values { def, all }
    }
    /// The arguments of `def`, none of which is set.
    pub(super) fn none(def: &'static OpDef) -> Values {
        Values { def, all: def.args.iter().map(|_| Value::None).collect() }
    }
    /// The arguments as the caller gave them.
    pub(super) fn given(call: &BatchedCall<'_>) -> Values {
        Values { def: call.def, all: call.args.iter().map(|arg| Value::from_arg(*arg)).collect() }
    }
    fn position(&self, name: &str) -> Option<usize> {
        self.def.args.iter().position(|arg| arg.name == name)
    }
    /// Whether the op has an argument of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }
    /// Sets the argument `name`, which the op has.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        match self.position(name) {
            Some(at) => self.all[at] = value.into(),
            None => panic!(
                "a batching rule sets the argument {name}, which {} has not: this is a bug in pullback",
                self.def.full_name()
            ),
        }
    }
    /// Sets the argument `name`, if the op has it.
    pub(super) fn set_if_any(&mut self, name: &str, value: impl Into<Value>) {
        if self.has(name) {
            self.set(name, value);
        }
    }
    /// Replaces the tensor that the op is applied to.
    pub(super) fn set_subject(&mut self, tensor: Tensor) {
        if let Some(first) = self.all.first_mut() {
            *first = Value::Tensor(tensor);
        }
    }
    /// Sets the argument `name` to dimensions, as a number or a list, whichever the signature has.
    pub(super) fn set_dims(&mut self, name: &str, dims: &[i64]) {
        let Some(at) = self.position(name) else { return };
        let is_list = self.def.schema().args[at].ty.list.is_some();
        self.all[at] = match dims {
            [dim] if !is_list => Value::Int(*dim),
            dims => ints(dims),
        };
    }
    /// Each value with the definition of its argument.
    pub(super) fn each(&mut self) -> impl Iterator<Item = (&'static ArgDef, &mut Value)> {
        self.def.args.iter().zip(&mut self.all)
    }
    /// The values as arguments of a call.
    pub(super) fn args(&self) -> SmallVec<[Arg<'_>; 8]> {
        self.all.iter().map(Value::as_arg).collect()
    }
    /// Calls the op with these arguments.
    pub(super) fn call(&self) -> Result<Outputs> {
        crate::autograd::call(self.def, &self.args())
    }
}
