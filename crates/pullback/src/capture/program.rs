//! A recorded step: its instructions with their tensors, and what a replay does around them.
//!
//! All tensors are made once. Intermediates lie in one block (`plan`); what a caller gives, and what is handed out, are windows
//! ([`Window`]) that are aimed at the caller's memory, or at memory of its own for each replay, while the instructions run. So no
//! replay overwrites what an earlier one gave. Invariant: one replay at a time, under the lock `running`.

use super::guard::{Guards, Miss};
use super::seen::View;
use crate::autograd::Node;
use crate::dispatch::Prepared;
use crate::tensor::{Cpu, Flag, Window, watch};
use crate::{Result, Storage, Tensor};
use smallvec::SmallVec;
use std::sync::{Mutex, TryLockError};

/// Memory that is new in each replay.
pub(super) struct Fresh {
    pub(super) window: Window,
    pub(super) bytes: usize,
}

/// A tensor over memory that is new in each replay.
pub(super) struct Handed {
    /// The index of its memory among the new memory of a replay.
    pub(super) fresh: usize,
    pub(super) view: View,
    pub(super) is_inference: bool,
}

impl Handed {
    fn tensor(&self, storages: &[Storage]) -> Result<Tensor> {
        let tensor = self.view.tensor(storages[self.fresh].clone(), 0)?;
        tensor.set_flag_fresh(if self.is_inference { Flag::INFERENCE } else { 0 });
        Ok(tensor)
    }
}

/// A result of the step.
pub(super) enum ResultOf {
    /// A new tensor, with a history that the tensors of all replays share, because it keeps no
    /// tensor.
    New(Handed, Option<(Node, u32)>),
    /// An argument.
    Input(usize),
    /// A tensor that is older than the step.
    Older(Tensor),
}

impl ResultOf {
    /// The tensor that is older than the step, if the result is one.
    pub(super) fn older(&self) -> Option<&Tensor> {
        match self {
            ResultOf::Older(tensor) => Some(tensor),
            ResultOf::New(..) | ResultOf::Input(_) => None,
        }
    }
}

/// The state of a leaf's `.grad` after the step.
pub(super) enum GradAfter {
    /// There is none afterwards.
    Cleared,
    /// A new one.
    New(Handed),
}

/// A leaf whose `.grad` the step replaces.
pub(super) struct LeafGrad {
    pub(super) leaf: Tensor,
    /// Whether the old `.grad` can be dropped before the instructions run, because no instruction
    /// uses it.
    pub(super) goes_first: bool,
    pub(super) after: GradAfter,
}

/// Numbers that describe a program.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Kernels that a replay runs.
    pub instructions: usize,
    /// Tensors from outside that they use, parameters for example.
    pub outside: usize,
    /// Bytes of the block in which the intermediates lie.
    pub planned: usize,
    /// Bytes of the intermediates, each by itself.
    pub intermediate: usize,
    /// Bytes that are new in each replay: results and `.grad`s.
    pub fresh: usize,
}

/// A step that can be replayed.
pub struct Program {
    pub(super) guards: Guards,
    /// The windows for the arguments.
    pub(super) windows: Vec<Window>,
    pub(super) fresh: Vec<Fresh>,
    pub(super) instructions: Vec<Prepared>,
    /// The writes in place to arguments that a replay counts, and to tensors from outside.
    pub(super) input_writes: Vec<(usize, u32)>,
    pub(super) writes: Vec<(Tensor, u32)>,
    pub(super) grads: Vec<LeafGrad>,
    pub(super) results: Vec<ResultOf>,
    pub(super) summary: Summary,
    pub(super) running: Mutex<()>,
}

/// The windows of a program, while they are aimed.
struct Aimed<'a>(&'a Program);

impl Drop for Aimed<'_> {
    fn drop(&mut self) {
        self.0.windows.iter().for_each(Window::close);
        self.0.fresh.iter().for_each(|fresh| fresh.window.close());
    }
}

impl Program {
    /// Numbers that describe the program.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Computes the results of the step anew, from other arguments: bit by bit what the step would give. `None` if a guard says that
    /// the step might do something else now, while another thread replays, and inside of a recording: then nothing has happened.
    ///
    /// # Errors
    /// Those of kernels (out of memory, an index out of range): what was written in place before stays written, as by the step.
    pub fn replay(&self, inputs: &[&Tensor]) -> Result<Option<Vec<Tensor>>> {
        let _running = match self.running.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        // (What a replay does is no op that a recording around it would see.)
        if watch::is_on() || self.guards.check(inputs).is_err() {
            return Ok(None);
        }
        for grad in self.grads.iter().filter(|grad| grad.goes_first) {
            grad.leaf.put_grad(None);
        }
        let storages = self.fresh.iter().map(|fresh| Storage::uninitialized(fresh.bytes));
        let storages = storages.collect::<Result<Vec<Storage>>>()?; // bounded: by the program
        let before = self.versions(inputs);
        let done = self.run(inputs, &storages);
        self.count_writes(inputs, &before);
        done?;
        self.finish(inputs, &storages).map(Some)
    }

    /// The reason why the program cannot be replayed with these arguments now.
    pub fn obstacle(&self, inputs: &[&Tensor]) -> Option<String> {
        let miss: Miss = self.guards.check(inputs).err()?;
        Some(self.guards.explained(miss, inputs))
    }

    /// Runs the instructions.
    fn run(&self, inputs: &[&Tensor], storages: &[Storage]) -> Result<()> {
        for input in inputs {
            input.materialize()?;
        }
        let _aimed = Aimed(self);
        for (window, input) in self.windows.iter().zip(inputs) {
            // SAFETY: the guards saw that the argument has the sizes and strides of the recorded one, from which the window has its
            // size; the caller holds it while this runs. The lock keeps others from the tensors over the window.
            unsafe { window.aim(input.geometry().written_ptr()) };
        }
        for (fresh, storage) in self.fresh.iter().zip(storages) {
            let data = storage.data_ptr_mut()?;
            // SAFETY: the storage has as many bytes, and lives until `_aimed` has closed the window; else as above.
            unsafe { fresh.window.aim(data) };
        }
        // SAFETY: the recording refused all but strided tensors in main memory; the guards saw that arguments and tensors from outside
        // are as they were, and intermediates are of the same kind.
        let cpu = unsafe { Cpu::grant() };
        self.instructions.iter().try_for_each(|instruction| instruction.run(cpu))
    }

    /// The tensors that the step writes to in place, with the numbers of writes.
    fn written<'a>(&'a self, inputs: &'a [&'a Tensor]) -> impl Iterator<Item = (&'a Tensor, u32)> {
        let of_inputs = self.input_writes.iter().map(|&(at, writes)| (inputs[at], writes));
        of_inputs.chain(self.writes.iter().map(|(tensor, writes)| (tensor, *writes)))
    }
    /// The versions of these tensors.
    fn versions(&self, inputs: &[&Tensor]) -> SmallVec<[u32; 32]> {
        self.written(inputs).map(|(tensor, _)| tensor.version()).collect()
    }
    /// Counts the writes. (Some kernels have done so themselves.)
    fn count_writes(&self, inputs: &[&Tensor], before: &[u32]) {
        for ((tensor, writes), before) in self.written(inputs).zip(before) {
            tensor.set_version(before.wrapping_add(writes));
        }
    }

    /// Returns the results and `.grad`s of a replay.
    fn finish(&self, inputs: &[&Tensor], storages: &[Storage]) -> Result<Vec<Tensor>> {
        for grad in &self.grads {
            grad.leaf.put_grad(match &grad.after {
                GradAfter::Cleared => None,
                GradAfter::New(handed) => Some(handed.tensor(storages)?),
            });
        }
        let result = |result: &ResultOf| match result {
            ResultOf::Input(at) => Ok(inputs[*at].clone()),
            ResultOf::Older(tensor) => Ok(tensor.clone()),
            ResultOf::New(handed, history) => {
                let tensor = handed.tensor(storages)?;
                if let Some((node, nr)) = history {
                    tensor.set_history(node.clone(), *nr);
                }
                Ok(tensor)
            }
        };
        self.results.iter().map(result).collect() // bounded: by the program
    }
}
