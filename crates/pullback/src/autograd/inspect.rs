//! Looking into the graph from outside: what a node keeps, by name, and cutting a tensor off.

use super::node::Node;
use crate::Tensor;
use crate::dispatch::SaveKind;

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

impl Tensor {
    /// Forgets producer, flag and retained state.
    pub(crate) fn forget_history(&self) {
        self.clear_history();
    }
}

impl Node {
    /// Runs the node by hand, outside of any backward: one gradient per edge.
    ///
    /// # Errors
    /// As the node's rules.
    pub fn run(&self, grads: crate::dispatch::Grads) -> crate::Result<crate::dispatch::Grads> {
        let edges = self.next_edges();
        self.apply(grads, &|index| edges.get(index).is_some_and(super::Edge::is_valid))
    }
}
