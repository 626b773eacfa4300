//! The slots of a node, one for each saved value: filling, packing, showing, freeing and unpacking it.

use super::tensor::{freed, freed_before_hooks};
use crate::autograd::graph::node::{Node, SavedContent, SavedTensor, SavedValue};
use crate::autograd::thread::saved_hooks::SavedTensorHooks;
use crate::autograd::variable::tangent;
use crate::call_site::CallSite;
use crate::dispatch::Value;
use crate::tensor::SpinLock;
use crate::{Error, Result, Tensor};

impl SavedValue {
    #[inline]
    pub(in crate::autograd) fn tensor(saved: SavedTensor) -> SavedValue {
        SavedValue::Tensor(SpinLock::new(Some(saved)))
    }

    /// Fills a slot that was left open for an output.
    pub(in crate::autograd) fn fill(&self, saved: SavedTensor) {
        if let SavedValue::Tensor(cell) = self {
            cell.with(|cell| *cell = Some(saved));
        }
    }

    /// Gives the saved output the tangent of `output`.
    pub(in crate::autograd) fn share_tangent(&self, output: &Tensor) -> Result<()> {
        let SavedValue::Tensor(cell) = self else { return Ok(()) };
        match cell.with(|s| s.clone()) {
            Some(SavedTensor(SavedContent::Here { tensor, .. })) => tangent::share(output, &tensor),
            Some(SavedTensor(SavedContent::Packed(packed))) => packed.share_tangent(output)?,
            Some(SavedTensor(SavedContent::Freed(_))) | None => {}
        }
        Ok(())
    }

    /// Lets hooks pack the tensor in the slot, or tensor `item` of the list.
    pub(in crate::autograd) fn pack(
        &self,
        item: usize,
        hooks: &dyn SavedTensorHooks,
    ) -> Result<()> {
        let none = || {
            Error::runtime("Calling register_hooks on a saved tensor with value None is forbidden.")
        };
        // Hooks run outside of the lock; if two threads pack at once, one of the results is dropped.
        match self {
            SavedValue::Empty | SavedValue::Plain(_) | SavedValue::Sizes(_) => Err(none()),
            SavedValue::Tensor(cell) => {
                let saved = cell.with(|s| s.clone()).ok_or_else(freed_before_hooks)?;
                let packed = saved.pack(hooks)?;
                drop(cell.with(|s| s.replace(packed)));
                Ok(())
            }
            SavedValue::Tensors(cell) => {
                let saved = cell.with(|l| l.as_ref().map(|l| l.get(item).cloned()));
                let packed = saved.ok_or_else(freed_before_hooks)?.ok_or_else(none)?.pack(hooks)?;
                drop(cell.with(|l| Some(std::mem::replace(l.as_mut()?.get_mut(item)?, packed))));
                Ok(())
            }
            SavedValue::OptTensors(cell) => {
                let saved = cell.with(|l| l.as_ref().map(|l| l.get(item).cloned().flatten()));
                let packed = saved.ok_or_else(freed_before_hooks)?.ok_or_else(none)?.pack(hooks)?;
                drop(cell.with(|l| l.as_mut()?.get_mut(item)?.replace(packed)));
                Ok(())
            }
        }
    }

    /// The length of a saved list of tensors; `None` if the slot has no list.
    pub(in crate::autograd) fn list_len(&self) -> Option<Result<usize>> {
        match self {
            SavedValue::Tensors(l) => {
                Some(l.with(|l| l.as_ref().map(|l| l.len())).ok_or_else(lost))
            }
            SavedValue::OptTensors(l) => {
                Some(l.with(|l| l.as_ref().map(|l| l.len())).ok_or_else(lost))
            }
            _ => None,
        }
    }

    /// Calls `see` with the tensors in the slot.
    pub(in crate::autograd) fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        let mut one = |saved: &SavedTensor| {
            if let SavedTensor(SavedContent::Here { tensor, .. }) = saved {
                see(tensor);
            }
        };
        match self {
            SavedValue::Empty | SavedValue::Plain(_) | SavedValue::Sizes(_) => {}
            SavedValue::Tensor(saved) => saved.with(|saved| saved.iter().for_each(&mut one)),
            SavedValue::Tensors(list) => list.with(|list| {
                list.iter().flat_map(|list| list.iter()).for_each(&mut one);
            }),
            SavedValue::OptTensors(list) => list.with(|list| {
                list.iter().flat_map(|list| list.iter()).flatten().for_each(&mut one);
            }),
        }
    }

    /// Whether unpacking it runs nothing of the program's: no hook packed it, no class computes the ops on it.
    pub(in crate::autograd) fn is_plain(&self) -> bool {
        let one = |saved: &SavedTensor| match &saved.0 {
            SavedContent::Here { tensor, .. } => !tensor.overrides_ops(),
            SavedContent::Packed(_) => false,
            SavedContent::Freed(_) => true,
        };
        match self {
            SavedValue::Empty | SavedValue::Plain(_) | SavedValue::Sizes(_) => true,
            SavedValue::Tensor(saved) => saved.with(|saved| saved.iter().all(one)),
            SavedValue::Tensors(list) => {
                list.with(|list| list.iter().flat_map(|list| list.iter()).all(one))
            }
            SavedValue::OptTensors(list) => {
                list.with(|list| list.iter().flat_map(|list| list.iter()).flatten().all(one))
            }
        }
    }

    /// Whether the slot is for tensors.
    pub(in crate::autograd) fn is_tensor(&self) -> bool {
        matches!(self, SavedValue::Tensor(_))
    }

    /// Drops saved tensors; plain values stay, because a node without saved tensors can run again. `at` is the call site of the
    /// backward that does it.
    pub(in crate::autograd) fn release(&self, at: CallSite) {
        // (Dropped after the lock, because that may run code of users.)
        match self {
            SavedValue::Empty | SavedValue::Plain(_) | SavedValue::Sizes(_) => {}
            SavedValue::Tensor(saved) => drop(saved.with(|saved| {
                let is_kept = saved.as_ref().is_some_and(|saved| !saved.is_freed());
                is_kept.then(|| saved.replace(SavedTensor::freed(at)))
            })),
            SavedValue::Tensors(list) => drop(list.with(Option::take)),
            SavedValue::OptTensors(list) => drop(list.with(Option::take)),
        }
    }

    /// The tensors in the slot, checked and with their history; `Value::None` for a missing one.
    #[inline]
    pub(in crate::autograd) fn unpack(&self, node: &Node) -> Result<Value> {
        Ok(match self {
            SavedValue::Empty | SavedValue::Plain(_) | SavedValue::Sizes(_) => Value::None,
            SavedValue::Tensor(saved) => {
                let freed = || freed(Some(node), CallSite::UNKNOWN);
                let saved = saved.with(|s| s.clone()).ok_or_else(freed)?;
                Value::Tensor(saved.into_tensor(node)?)
            }
            SavedValue::Tensors(list) => {
                let freed = || freed(Some(node), CallSite::UNKNOWN);
                let list = list.with(|l| l.clone()).ok_or_else(freed)?;
                Value::Tensors(list.iter().map(|s| s.unpack(node)).collect::<Result<_>>()?)
            }
            SavedValue::OptTensors(list) => {
                let freed = || freed(Some(node), CallSite::UNKNOWN);
                let list = list.with(|l| l.clone()).ok_or_else(freed)?;
                let one = |s: &Option<SavedTensor>| s.as_ref().map(|s| s.unpack(node)).transpose();
                Value::OptTensors(list.iter().map(one).collect::<Result<_>>()?)
            }
        })
    }
}

fn lost() -> Error {
    freed(None, CallSite::UNKNOWN)
}
