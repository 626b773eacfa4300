//! A saved tensor that hooks packed, and how it is unpacked.
//!
//! It gets the history of the one that was packed, whatever it had; versions are not compared.

use crate::autograd::graph::node::{Edge, History, Node, PackedTensor};
use crate::autograd::mode;
use crate::autograd::thread::saved_hooks::SavedTensorHooks;
use crate::autograd::variable::tangent;
use crate::error::ensure;
use crate::tensor::{Flag, SpinLock};
use crate::{Result, Tensor};

impl PackedTensor {
    /// Lets `hooks` pack `shown`, which has the elements of `tensor`, output `output` of the node that saves it.
    pub(in crate::autograd) fn new(
        hooks: &dyn SavedTensorHooks,
        tensor: &Tensor,
        shown: &Tensor,
        output: Option<u32>,
    ) -> Result<PackedTensor> {
        let history = match output {
            Some(nr) => History::Output(nr),
            None => match tensor.grad_fn()? {
                Some(node) => History::Edge(Edge::new(node, tensor.output_nr())),
                None => {
                    tensor.accumulator().map_or(History::None, |n| History::Leaf(n.downgrade()))
                }
            },
        };
        let version = tensor.version();
        let kept = tangent::handle(tensor)?;
        let packed = {
            let _below = mode::no_grad();
            let _plain = mode::set_forward(false);
            hooks.pack(shown)?
        };
        ensure!(
            tensor.version() == version,
            runtime,
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the input to a pack hook."
        );
        Ok(PackedTensor { packed, history, tangent: SpinLock::new(kept) })
    }

    /// Takes over the tangent that an output got after it was packed.
    pub(in crate::autograd) fn share_tangent(&self, output: &Tensor) -> Result<()> {
        let kept = tangent::handle(output)?;
        drop(self.tangent.with(|slot| std::mem::replace(slot, kept)));
        Ok(())
    }

    /// Unpacks the tensor, which `saved_for` saved.
    pub(in crate::autograd) fn unpack(&self, saved_for: &Node) -> Result<Tensor> {
        let data = self.packed.unpack()?;
        match self.tangent.with(|slot| slot.clone()) {
            // (What hooks computed anew may have its tangent already.)
            kept if !kept.is_empty() && !tangent::is_dual(&data) => {
                let again = data.detached()?;
                tangent::give(&again, kept);
                let tensor = self.with_history(again.clone(), saved_for)?;
                tangent::share(&again, &tensor);
                Ok(tensor)
            }
            _ => self.with_history(data, saved_for),
        }
    }

    /// The tensor that hooks returned, with the history of the packed one.
    fn with_history(&self, data: Tensor, saved_for: &Node) -> Result<Tensor> {
        match &self.history {
            History::None => Ok(data),
            History::Output(nr) => with_history(&data, saved_for.clone(), *nr),
            History::Edge(edge) => match &edge.node {
                Some(node) => with_history(&data, node.clone(), edge.nr),
                None => Ok(data),
            },
            History::Leaf(accumulator) => {
                let leaf = data.detached()?;
                leaf.set_flag(Flag::REQUIRES_GRAD, true);
                if let Some(node) = accumulator.upgrade() {
                    leaf.share_accumulator(node);
                }
                Ok(leaf)
            }
        }
    }
}

fn with_history(data: &Tensor, node: Node, nr: u32) -> Result<Tensor> {
    let tensor = data.detached()?;
    tensor.set_history(node, nr);
    Ok(tensor)
}
