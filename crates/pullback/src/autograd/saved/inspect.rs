//! The saved values of a node, by number and by name, for programs and for hooks that are registered later.

use crate::autograd::graph::node::{Body, Node, SavedTensor, SavedValue};
use crate::autograd::thread::saved_hooks::SavedTensorHooks;
use crate::dispatch::{SaveKind, Value};
use crate::{Result, Tensor};

/// The tensors that a node saved for one of its op's arguments or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedCount {
    /// A tensor.
    One,
    /// A list of this length.
    List(usize),
}

impl Node {
    /// The names of the saved values of this node's op, as `grad_fn._saved_<name>` spells them, in the order that
    /// [`Node::saved`] counts.
    pub fn saved_names(&self) -> Vec<String> {
        let Some(op) = self.op() else { return Vec::new() };
        let name = |save: &crate::dispatch::Save| match save.what {
            SaveKind::Output => op.outputs[save.index].to_owned(),
            SaveKind::Input => op.args[save.index].name.to_owned(),
            SaveKind::Shape => format!("{}_sym_sizes", op.args[save.index].name),
            SaveKind::Offset => format!("{}_storage_offset", op.args[save.index].name),
            SaveKind::Strides => format!("{}_sym_strides", op.args[save.index].name),
            SaveKind::Spec => format!("{}_options", op.args[save.index].name),
            SaveKind::Shapes => format!("{}_args_sizes", op.args[save.index].name),
        };
        let flags = op.flags.iter().map(|&index| op.args[index].name.to_owned());
        op.saves.iter().map(name).chain(flags).collect()
    }
}

impl Node {
    /// Calls `see` with each tensor that the op saved, unchecked and without its history; not with those that hooks packed.
    pub fn each_saved(&self, see: &mut dyn FnMut(&Tensor)) {
        if let Body::Op { slots, .. } = &self.0.body {
            slots.iter().for_each(|slot| slot.each_tensor(see));
        }
    }
    /// The saved value number `index` of the op (the flags follow after the values), checked and with its history; `None` if
    /// there is no such value.
    pub fn saved(&self, index: usize) -> Option<Result<Value>> {
        let Body::Op { def, slots, facts, .. } = &self.0.body else { return None };
        if let Some(past) = index.checked_sub(slots.len()) {
            return def.flags.get(past).map(|&arg| Ok(Value::Bool(facts.flag(arg))));
        }
        match &slots[index] {
            SavedValue::Empty => None,
            SavedValue::Plain(value) => Some(Ok(value.clone())),
            SavedValue::Sizes(sizes) => Some(Ok(Value::Ints(sizes.as_slice().into()))),
            slot => Some(slot.unpack(self)),
        }
    }
    /// Saves an output in the slot that was left open for it.
    pub(in crate::autograd) fn fill_slot(&self, index: usize, saved: SavedTensor) {
        if let Body::Op { slots, .. } = &self.0.body {
            slots[index].fill(saved);
        }
    }
    /// Gives the saved output in slot `index` the tangent that the output got since.
    pub(in crate::autograd) fn share_tangent(&self, index: usize, output: &Tensor) -> Result<()> {
        match &self.0.body {
            Body::Op { slots, .. } => slots[index].share_tangent(output),
            _ => Ok(()),
        }
    }
    /// The number of tensors in the saved list number `index`; 1 for a single tensor. `None` if the value is no tensor.
    pub fn saved_tensors(&self, index: usize) -> Option<Result<SavedCount>> {
        let Body::Op { slots, .. } = &self.0.body else { return None };
        let slot = slots.get(index)?;
        if slot.is_tensor() {
            return Some(Ok(SavedCount::One));
        }
        Some(slot.list_len()?.map(SavedCount::List))
    }
    /// Lets hooks pack the saved tensor number `index`, or tensor `item` of the list there.
    ///
    /// # Errors
    /// `RuntimeError` if there is none, the graph was freed, or hooks did so before; those of the hooks.
    pub fn pack_saved(
        &self,
        index: usize,
        item: usize,
        hooks: &dyn SavedTensorHooks,
    ) -> Result<()> {
        match &self.0.body {
            Body::Op { slots, .. } if index < slots.len() => slots[index].pack(item, hooks),
            _ => Err(crate::Error::index(format!("{} keeps nothing under {index}", self.name()))),
        }
    }
}
