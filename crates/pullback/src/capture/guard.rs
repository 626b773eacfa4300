//! The conditions that a recorded program relies on, and checks that they still hold.

use super::recorder::{Grad, geometry_of};
use crate::autograd::mode;
use crate::tensor::{Dims, Flag, KeySet, promote, shape::list};
use crate::{DType, Storage, Tensor};

/// An argument: any tensor that looks like the one that was recorded.
pub(super) struct Input {
    pub(super) shape: Dims,
    pub(super) strides: Dims,
    pub(super) dtype: DType,
    pub(super) flags: u32,
}

/// The bits of a tensor's word, besides its keys, that must not have changed.
const FACTS: u32 = Flag::REQUIRES_GRAD | Flag::HAS_GRAD_FN | Flag::INFERENCE | Flag::WRAPPED_NUMBER;

/// The bits of [`FACTS`] of a tensor.
pub(super) fn facts(tensor: &Tensor) -> u32 {
    tensor.flags() & (FACTS | KeySet::MASK)
}

impl Input {
    pub(super) fn of(tensor: &Tensor) -> Input {
        let g = tensor.geometry();
        let (shape, strides) = (g.shape.clone(), g.strides.clone());
        Input { shape, strides, dtype: g.dtype, flags: facts(tensor) }
    }
    fn takes(&self, tensor: &Tensor) -> bool {
        let g = tensor.geometry();
        g.dtype == self.dtype
            && g.shape == self.shape
            && g.strides == self.strides
            && facts(tensor) == self.flags
    }
}

/// A tensor that is older than the step: the same one, showing the same memory.
pub(super) struct KeptTensor {
    pub(super) tensor: Tensor,
    pub(super) geometry: usize,
    pub(super) storage: usize,
    pub(super) facts: u32,
    /// How many handles to the tensor the program has.
    pub(super) own: usize,
}

impl KeptTensor {
    fn is_there(&self) -> bool {
        // (If the tensor was replaced elsewhere, others hold the new one, and this program has the
        // last handle.)
        self.tensor.use_count() > self.own
            && geometry_of(&self.tensor) == self.geometry
            && self.tensor.geometry().storage.as_ref().map_or(0, Storage::id) == self.storage
            && facts(&self.tensor) == self.facts
    }
}

/// The modes that the thread must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Modes {
    word: u64,
    dtype: DType,
    has_level: bool,
}

impl Modes {
    /// The modes of this thread.
    pub(super) fn now() -> Modes {
        Modes {
            word: mode::snapshot(),
            dtype: promote::default_dtype(),
            has_level: crate::autograd::is_level_open(),
        }
    }
    /// Why nothing can be recorded or replayed in these modes.
    pub(super) fn refused(self) -> Option<&'static str> {
        use mode::bit;
        let quiet = bit::GRAD
            | bit::INFERENCE
            | bit::FORWARD
            | bit::SINGLE_THREADED
            | bit::FREE_GRAD_LAYOUT;
        if self.word & bit::AUTOCAST != 0 {
            return Some("autocast was turned on outside of the step");
        }
        if self.has_level {
            return Some("a level of forward mode or a transform is open outside of the step");
        }
        (self.word & !quiet != 0).then_some(
            "a mode is on outside of the step that sees its ops (a profiler, a dispatch mode, hooks on saved tensors)",
        )
    }
}

/// All conditions of a program.
pub(super) struct Guards {
    pub(super) modes: Modes,
    pub(super) inputs: Vec<Input>,
    pub(super) kept: Vec<KeptTensor>,
    /// Memory that the program knows by no tensor, with the number of handles that the program has itself.
    pub(super) held: Vec<(Storage, usize)>,
    /// The storages from outside, by their identities, in order.
    pub(super) outside: Vec<usize>,
    pub(super) grads: Vec<(Tensor, Grad)>,
}

/// Why a program cannot be replayed now.
#[derive(Clone, Copy)]
pub(super) enum Miss {
    Count,
    Modes,
    Input(usize),
    Shared(usize),
    Kept(usize),
    Held,
    Grad(usize),
}

impl Guards {
    /// The first condition that does not hold.
    #[inline]
    pub(super) fn check(&self, inputs: &[&Tensor]) -> std::result::Result<(), Miss> {
        if inputs.len() != self.inputs.len() {
            return Err(Miss::Count);
        }
        if Modes::now() != self.modes {
            return Err(Miss::Modes);
        }
        for (at, (guard, input)) in self.inputs.iter().zip(inputs).enumerate() {
            if !guard.takes(input) {
                return Err(Miss::Input(at));
            }
            let id = input.geometry().storage.as_ref().map_or(0, Storage::id);
            let is_other =
                |other: &&Tensor| other.geometry().storage.as_ref().is_none_or(|s| s.id() != id);
            if self.outside.binary_search(&id).is_ok() || !inputs[..at].iter().all(is_other) {
                return Err(Miss::Shared(at));
            }
        }
        if let Some(at) = self.kept.iter().position(|kept| !kept.is_there()) {
            return Err(Miss::Kept(at));
        }
        if self.held.iter().any(|(storage, own)| storage.use_count() <= *own) {
            return Err(Miss::Held);
        }
        let is_other = |(leaf, grad): &(Tensor, Grad)| match (leaf.grad(), grad) {
            (None, Grad::Missing) | (Some(_), Grad::Unused) => false,
            (Some(now), Grad::Used(id)) => now.id() != *id,
            _ => true,
        };
        match self.grads.iter().position(is_other) {
            Some(at) => Err(Miss::Grad(at)),
            None => Ok(()),
        }
    }

    /// The reason for a miss in words, for the error or the log.
    pub(super) fn explained(&self, miss: Miss, inputs: &[&Tensor]) -> String {
        match miss {
            Miss::Count => format!("{} tensors instead of {}", inputs.len(), self.inputs.len()),
            Miss::Modes => {
                "another grad mode, inference mode or default dtype, or a mode that sees ops".into()
            }
            Miss::Input(at) => {
                let (guard, input) = (&self.inputs[at], inputs[at]);
                format!(
                    "tensor {at} of the arguments has shape {}, strides {:?} and dtype {} instead of {}, {:?} and {}, or differs in requires_grad or its device",
                    list(input.shape()),
                    input.strides(),
                    input.dtype().name(),
                    list(&guard.shape),
                    &guard.strides[..],
                    guard.dtype.name()
                )
            }
            Miss::Shared(at) => {
                format!(
                    "tensor {at} of the arguments shares memory with another tensor of the step"
                )
            }
            Miss::Kept(at) => format!(
                "a tensor of shape {} that the step uses was replaced, resized, given other data or another requires_grad",
                list(self.kept[at].tensor.shape())
            ),
            Miss::Held => "memory that the step uses was given up by all others".into(),
            Miss::Grad(at) => format!(
                "the .grad of a tensor of shape {} was set, or set to None, since",
                list(self.grads[at].0.shape())
            ),
        }
    }
}
