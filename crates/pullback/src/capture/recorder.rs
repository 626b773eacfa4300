//! The observer of a recording: notes each kernel that runs, with views of known memory for its tensors.
//!
//! Memory is known by the marks of storages (`tensor::watch`). What a kernel is given and nobody knows yet is older than the step,
//! or was made by no op, as the time of its storage says: a constant, for reads of elements are refused. What a kernel gives and nobody knows yet, it made. Views
//! are no instructions: what they show has the mark already. Invariant: the recorder holds no memory that the step made.

use super::seen::{Instruction, MemoryOrigin, NotedForm, SeenArg, StepMemory, View};
use crate::dispatch::observe::KernelObserver;
use crate::dispatch::{Arg, Call, Form, Kernel, OpDef, Outputs, Traits, Value};
use crate::tensor::watch::{self, Watch};
use crate::{Storage, Tensor};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// A tensor that is older than the step, as it was when it was first seen.
pub(super) struct Older {
    pub(super) tensor: Tensor,
    pub(super) geometry: usize,
    pub(super) storage: usize,
    pub(super) version: u32,
}

/// The state of a leaf's `.grad` when the step first replaced it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grad {
    /// There was none.
    Missing,
    /// There was one, that no instruction had used.
    Unused,
    /// There was one, in use: this tensor.
    Used(usize),
}

/// What a recording has noted.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) memories: Vec<StepMemory>,
    pub(super) views: Vec<View>,
    numbers: HashMap<View, usize>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) older: Vec<Older>,
    known: HashSet<usize>,
    pub(super) grads: Vec<(Tensor, Grad)>,
    /// The arguments of the kernel that is running.
    pending: Vec<SeenArg>,
    /// The geometry of the target that is being written.
    target: Option<(usize, usize)>,
}

/// The observer of kernels.
pub(super) struct StepRecorder {
    pub(super) watch: Watch,
    pub(super) notes: RefCell<Notes>,
}

/// The address of a tensor's geometry, which changes whenever the tensor shows something else.
pub(super) fn geometry_of(tensor: &Tensor) -> usize {
    std::ptr::from_ref(tensor.geometry()) as usize
}

impl StepRecorder {
    pub(super) fn new(watch: Watch) -> StepRecorder {
        StepRecorder { watch, notes: RefCell::default() }
    }

    /// The memory with this storage, if it is known.
    pub(super) fn memory_of(&self, storage: &Storage) -> Option<usize> {
        self.watch.index(storage.mark())
    }

    /// Notes memory that nobody knows yet.
    pub(super) fn add_memory(
        &self,
        notes: &mut Notes,
        storage: &Storage,
        memory: StepMemory,
    ) -> usize {
        let index = notes.memories.len();
        notes.memories.push(memory);
        storage.set_mark(self.watch.mark(index));
        index
    }

    /// The view that `tensor` is; `None` where it has no memory.
    fn view(
        &self,
        notes: &mut Notes,
        tensor: &Tensor,
        kind: impl FnOnce(&Storage) -> (MemoryOrigin, &'static str),
    ) -> Option<usize> {
        let storage = tensor.geometry().storage.as_ref()?;
        let now = notes.instructions.len();
        let memory = self.memory_of(storage).unwrap_or_else(|| {
            let (kind, maker) = kind(storage);
            let bytes = storage.nbytes();
            let memory =
                StepMemory { kind, bytes, first: now, last: now, is_written: false, maker };
            self.add_memory(notes, storage, memory)
        });
        let known = &mut notes.memories[memory];
        known.last = now;
        if storage.nbytes() > known.bytes {
            if !matches!(known.kind, MemoryOrigin::Made) {
                watch::refuse(|| "the memory of a tensor from outside of the step grows".into());
            }
            known.bytes = storage.nbytes();
        }
        if matches!(known.kind, MemoryOrigin::External(_)) && notes.known.insert(tensor.id()) {
            notes.older.push(Older {
                tensor: tensor.clone(),
                geometry: geometry_of(tensor),
                storage: storage.id(),
                version: tensor.version(),
            });
        }
        let view = View::of(tensor, memory);
        let next = notes.views.len();
        let number = *notes.numbers.entry(view.clone()).or_insert(next);
        if number == next {
            notes.views.push(view);
        }
        Some(number)
    }

    /// The view of a tensor that a kernel is given.
    pub(super) fn given(&self, notes: &mut Notes, tensor: &Tensor) -> usize {
        if tensor.dtype().is_mostly_stored() {
            watch::refuse(|| format!("a tensor has the dtype {}", tensor.dtype().name()));
        }
        let external = |storage: &Storage| {
            let is_new = self.watch.is_new(storage.mark());
            let kind = if is_new { MemoryOrigin::Constant } else { MemoryOrigin::External };
            (kind(storage.clone()), "")
        };
        self.view(notes, tensor, external).unwrap_or_else(|| {
            watch::refuse(|| "a tensor has no memory".into());
            0
        })
    }

    /// The view of a tensor that a kernel gave.
    fn made(&self, notes: &mut Notes, def: &'static OpDef, tensor: &Tensor) -> usize {
        let view = self.view(notes, tensor, |_| (MemoryOrigin::Made, def.name));
        view.unwrap_or_else(|| {
            watch::refuse(|| format!("{} gives a tensor without memory", def.name));
            0
        })
    }

    fn seen(&self, notes: &mut Notes, arg: &Arg<'_>) -> SeenArg {
        match arg {
            Arg::Tensor(tensor) => SeenArg::Tensor(self.given(notes, tensor)),
            Arg::Tensors(list) => {
                SeenArg::Tensors(list.iter().map(|tensor| self.given(notes, tensor)).collect())
            }
            Arg::OptTensors(list) => {
                let one = |tensor: &Option<Tensor>| tensor.as_ref().map(|t| self.given(notes, t));
                SeenArg::OptTensors(list.iter().map(one).collect())
            }
            plain => SeenArg::Plain(Value::from_arg(*plain)),
        }
    }

    /// Notes which memory the call writes to, as far as its signature says so.
    fn note_writes(notes: &mut Notes, def: &OpDef, form: NotedForm, args: &[SeenArg]) {
        let declared = def.schema().args.iter().map(|arg| arg.alias.is_some_and(|a| a.is_write));
        for (index, (arg, is_declared)) in args.iter().zip(declared).enumerate() {
            if !(is_declared || index == 0 && form == NotedForm::Inplace) {
                continue;
            }
            let views: Vec<usize> = match arg {
                SeenArg::Plain(_) => Vec::new(),
                SeenArg::Tensor(view) => vec![*view],
                SeenArg::Tensors(views) => views.clone(),
                SeenArg::OptTensors(views) => views.iter().flatten().copied().collect(),
            };
            for view in views {
                let memory = notes.views[view].memory;
                notes.memories[memory].is_written = true;
            }
        }
    }

    /// Notes an instruction with results of its own.
    fn note_results(
        &self,
        notes: &mut Notes,
        def: &'static OpDef,
        args: Vec<SeenArg>,
        results: &[Tensor],
    ) {
        let is_known =
            |t: &Tensor| t.geometry().storage.as_ref().is_some_and(|s| self.memory_of(s).is_some());
        let is_known_view = matches!(def.kernels.cpu, Kernel::Function(_)) && !results.is_empty();
        let is_view = def.kernels.cpu.is_view() || is_known_view && results.iter().all(is_known);
        let known = results.iter().filter(|tensor| is_known(tensor)).count();
        if known != if is_view { results.len() } else { 0 } {
            watch::refuse(|| {
                format!("{} gives a tensor that may share memory with an argument", def.name)
            });
        }
        let outs = results.iter().map(|tensor| self.made(notes, def, tensor)).collect();
        if !is_view {
            notes.instructions.push(Instruction { def, form: NotedForm::Functional, args, outs });
        }
    }

    /// Notes a write to the first argument.
    fn note_inplace(notes: &mut Notes, call: &Call<'_>, args: Vec<SeenArg>) {
        let Some(&Arg::Tensor(target)) = call.args.first() else { return };
        let is_moved = notes.target != Some((target.id(), geometry_of(target)));
        let SeenArg::Tensor(view) = args[0] else { return };
        let memory = notes.views[view].memory;
        if call.def.kernels.cpu.is_view() {
            if is_moved && !matches!(notes.memories[memory].kind, MemoryOrigin::Made) {
                watch::refuse(|| {
                    format!(
                        "{}_ changes the shape of a tensor from outside of the step",
                        call.def.name
                    )
                });
            }
            return;
        }
        if is_moved {
            watch::refuse(|| format!("{}_ changes the shape of its target", call.def.name));
        }
        let outs = Vec::new();
        notes.instructions.push(Instruction {
            def: call.def,
            form: NotedForm::Inplace,
            args,
            outs,
        });
    }
}

impl KernelObserver for StepRecorder {
    fn before(&self, call: &Call<'_>) {
        let mut notes = self.notes.borrow_mut();
        let notes = &mut *notes;
        let def = call.def;
        if def.is(Traits::DYNAMIC_OUTPUT_SHAPE) {
            watch::refuse(|| format!("the shape of what {} gives depends on elements", def.name));
        }
        if matches!(def.kernels.cpu, Kernel::Function(_))
            && (def.meta.is_none() || def.result_specs(call.args).is_err())
        {
            watch::refuse(|| format!("the shape of what {} gives depends on elements", def.name));
        }
        if def.is(Traits::DATA_DEPENDENT_OUTPUT) || matches!(def.kernels.cpu, Kernel::None) {
            watch::refuse(|| {
                format!("{} gives the program a value that depends on elements", def.name)
            });
        }
        notes.pending = call.args.iter().map(|arg| self.seen(notes, arg)).collect();
        notes.target = match (call.form, call.args.first()) {
            (Form::Inplace, Some(Arg::Tensor(target))) => Some((target.id(), geometry_of(target))),
            _ => None,
        };
    }

    fn after(&self, call: &Call<'_>, outputs: &Outputs) {
        let mut notes = self.notes.borrow_mut();
        let notes = &mut *notes;
        let args = std::mem::take(&mut notes.pending);
        if matches!(outputs, Outputs::Number(_)) {
            watch::refuse(|| format!("{} gives the program a number", call.def.name));
        }
        let form = match call.form {
            Form::Functional => NotedForm::Functional,
            Form::Inplace => NotedForm::Inplace,
            Form::Out(_) => NotedForm::Out,
        };
        Self::note_writes(notes, call.def, form, &args);
        match call.form {
            Form::Functional => {
                self.note_results(notes, call.def, args, outputs.as_slice());
            }
            Form::Inplace => Self::note_inplace(notes, call, args),
            Form::Out(outs) => {
                let outs: Vec<usize> = outs.iter().map(|out| self.given(notes, out)).collect();
                for &view in &outs {
                    let memory = notes.views[view].memory;
                    notes.memories[memory].is_written = true;
                }
                let def = call.def;
                notes.instructions.push(Instruction { def, form: NotedForm::Out, args, outs });
            }
        }
    }

    fn grad(&self, leaf: &Tensor) {
        let mut notes = self.notes.borrow_mut();
        if notes.grads.iter().all(|(known, _)| !known.is_same(leaf)) {
            let grad = self.grad_of(leaf);
            notes.grads.push((leaf.clone(), grad));
        }
    }
}

impl StepRecorder {
    /// The state of a leaf's `.grad`.
    pub(super) fn grad_of(&self, leaf: &Tensor) -> Grad {
        let Some(grad) = leaf.grad() else { return Grad::Missing };
        let is_known =
            grad.geometry().storage.as_ref().is_some_and(|s| self.memory_of(s).is_some());
        if is_known { Grad::Used(grad.id()) } else { Grad::Unused }
    }
}
