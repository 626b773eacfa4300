//! What a node saved, seen from outside: by number, by name, for hooks that are registered later.

use crate::autograd::graph::node::{Body, Node, SavedTensor, Slot};
use crate::autograd::thread::saved_hooks::SavedTensorHooks;
use crate::dispatch::{SaveKind, Value};
use crate::{Result, Tensor};

/// Tensors that a node keeps for one of its op's arguments or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedCount {
    /// A tensor.
    One,
    /// A list of so many.
    List(usize),
}

impl Node {
    /// The names of what this node's op saves, as `grad_fn._saved_<name>` spells them, in the order that
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
    /// Shows the tensors that its op saved, unchecked and without their history; not those that hooks packed.
    pub fn each_saved(&self, see: &mut dyn FnMut(&Tensor)) {
        if let Body::Op { slots, .. } = &self.0.body {
            slots.iter().for_each(|slot| slot.each_tensor(see));
        }
    }
    /// What it keeps under number `index` of its op's saved list (the flags follow), checked and with its history;
    /// `None` if it keeps nothing there.
    pub fn saved(&self, index: usize) -> Option<Result<Value>> {
        let Body::Op { def, slots, facts, .. } = &self.0.body else { return None };
        if let Some(past) = index.checked_sub(slots.len()) {
            return def.flags.get(past).map(|&arg| Ok(Value::Bool(facts.flag(arg))));
        }
        match &slots[index] {
            Slot::Empty => None,
            Slot::Plain(value) => Some(Ok(value.clone())),
            Slot::Sizes(sizes) => Some(Ok(Value::Ints(sizes.as_slice().into()))),
            slot => Some(slot.unpack(self)),
        }
    }
    /// Keeps an output that its op saved, in the slot that was left open for it.
    pub(in crate::autograd) fn fill_slot(&self, index: usize, saved: SavedTensor) {
        if let Body::Op { slots, .. } = &self.0.body {
            slots[index].fill(saved);
        }
    }
    /// Gives an output that its op saved in slot `index` the tangent that it got since.
    pub(in crate::autograd) fn share_tangent(&self, index: usize, output: &Tensor) -> Result<()> {
        match &self.0.body {
            Body::Op { slots, .. } => slots[index].share_tangent(output),
            _ => Ok(()),
        }
    }
    /// How many tensors are kept under number `index` if there is a list of them; 1 for a single tensor. `None` if
    /// what is kept there is no tensor.
    pub fn saved_tensors(&self, index: usize) -> Option<Result<SavedCount>> {
        let Body::Op { slots, .. } = &self.0.body else { return None };
        let slot = slots.get(index)?;
        if slot.is_tensor() {
            return Some(Ok(SavedCount::One));
        }
        Some(slot.list_len()?.map(SavedCount::List))
    }
    /// Lets hooks pack the tensor kept under number `index`, or tensor `item` of the list there.
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
