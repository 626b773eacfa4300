//! A recording from its begin to the program that comes of it.

use super::guard::{Guards, Input, KeptTensor, Modes, facts};
use super::plan::{Life, place};
use super::program::{Fresh, GradAfter, Handed, LeafGrad, Program, ResultOf, Summary};
use super::recorder::{Grad, Notes, Older, StepRecorder, geometry_of};
use super::seen::{MemoryOrigin, NotedForm, StepMemory, View};
use crate::autograd::{anomaly, keeps_tensors};
use crate::dispatch::Prepared;
use crate::dispatch::observe::{self, Observed};
use crate::tensor::shape::list;
use crate::tensor::watch::{self, Watch};
use crate::tensor::{Flag, KeySet, Window, extent};
use crate::{Storage, Tensor};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex;

/// Why there is no program.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The reason in words, with a line of the program where there is one.
    pub reason: String,
    /// Whether another recording would be refused, too. (A step that makes the state it keeps, as optimisers do the first time,
    /// can be recorded the next time.)
    pub is_final: bool,
}

type Answer<T> = std::result::Result<T, Refusal>;

/// Memory that is held without a tensor, and how many others hold it.
type Held = (Storage, usize);

/// Where the memory of each is in a replay, what is aimed anew in each, and what was planned.
type Places = (Vec<ValueHome>, Vec<Window>, Vec<Fresh>, Summary);

fn refused<T>(reason: impl Into<String>) -> Answer<T> {
    Err(Refusal { reason: reason.into(), is_final: true })
}

impl From<crate::Error> for Refusal {
    fn from(error: crate::Error) -> Refusal {
        Refusal { reason: error.message().to_owned(), is_final: true }
    }
}

/// A recording of this thread, which ends when it is dropped.
pub struct Recording {
    recorder: Rc<StepRecorder>,
    /// (Dropped before the recorder's watch, which the others' marks belong to.)
    observed: Option<Observed>,
    inputs: Vec<(Tensor, u32)>,
    modes: Modes,
}

impl Recording {
    /// Begins a recording of a step with these arguments.
    ///
    /// # Errors
    /// A [`Refusal`] for modes and arguments that cannot be recorded; one that is not final while another thread records.
    pub fn begin(inputs: &[&Tensor]) -> std::result::Result<Recording, Refusal> {
        let modes = Modes::now();
        let anomaly = anomaly::is_anomaly_enabled().then_some("anomaly mode is on");
        if let Some(reason) = modes.refused().or(anomaly) {
            return Err(Refusal { reason: reason.to_owned(), is_final: false });
        }
        for input in inputs {
            check_input(input)?;
        }
        let Some(watch) = Watch::begin() else {
            let reason = "another recording is on".to_owned();
            return Err(Refusal { reason, is_final: false });
        };
        let recorder = Rc::new(StepRecorder::new(watch));
        for (at, input) in inputs.iter().enumerate() {
            recorder.note_input(at, input)?;
        }
        let observed = Some(observe::observe(recorder.clone()));
        let inputs = inputs.iter().map(|&input| (input.clone(), input.version())).collect();
        Ok(Recording { recorder, observed, inputs, modes })
    }

    /// Whether something that the step made is held by others than `outputs` and `.grad`s: by Python's garbage, perhaps.
    pub fn has_kept(&self, outputs: &[&Tensor]) -> bool {
        self.kept(outputs).is_some()
    }

    /// The first memory made by the step that is held by others than `outputs` and `.grad`s.
    fn kept(&self, outputs: &[&Tensor]) -> Option<usize> {
        let notes = self.recorder.notes.borrow();
        let ended = self.recorder.watch.ended();
        let mut is_due = vec![false; notes.memories.len()]; // bounded: by the program
        for (at, memory) in notes.memories.iter().enumerate() {
            is_due[at] = matches!(memory.kind, MemoryOrigin::Made);
        }
        for at in ended {
            is_due[at] = false;
        }
        let mut account = |tensor: &Tensor| {
            let storage = tensor.geometry().storage.as_ref();
            if let Some(at) = storage.and_then(|storage| self.recorder.memory_of(storage)) {
                is_due[at] = false;
            }
        };
        for output in outputs {
            account(output);
        }
        let leaves = notes.older.iter().map(|older| &older.tensor);
        for leaf in leaves.chain(notes.grads.iter().map(|(leaf, _)| leaf)) {
            if let Some(grad) = leaf.grad() {
                account(&grad);
            }
        }
        is_due.iter().position(|&is_due| is_due)
    }

    /// Ends the recording after the step gave `outputs`. The tensors `watched`, parameters that the step may look at, must
    /// stay as they are, too.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub fn finish(
        mut self,
        outputs: &[&Tensor],
        watched: &[&Tensor],
    ) -> std::result::Result<Program, Refusal> {
        self.observed = None;
        if let Some(reason) = watch::reason() {
            return refused(reason);
        }
        for output in outputs {
            if output.grad_fn()?.as_ref().is_some_and(keeps_tensors) {
                return refused(
                    "a result carries a graph that keeps tensors for a backward outside of the step: call backward in the step, return result.detach(), or run the step under no_grad()",
                );
            }
        }
        if let Some(at) = self.kept(outputs) {
            let maker = self.recorder.notes.borrow().memories[at].maker;
            let reason = format!(
                "a tensor that {maker} made is kept elsewhere than in what the step returns and in .grad (in an attribute, a list or a graph): a replay would not put a new one there"
            );
            return Err(Refusal { reason, is_final: false });
        }
        let mut notes = self.recorder.notes.take();
        for tensor in watched {
            notes.watch(tensor);
        }
        Maker { recording: &self, notes, outputs }.program()
    }
}

/// Refuses arguments that a program cannot take.
fn check_input(input: &Tensor) -> Answer<()> {
    if input.requires_grad() {
        return refused(
            "an argument requires grad: it would get a .grad of its own (detach it, or make it a parameter)",
        );
    }
    if input.keys() != KeySet::EMPTY || input.has_flag(Flag::WRAPPED_NUMBER) {
        return refused(format!(
            "an argument is no plain tensor in main memory (dispatch keys {})",
            input.keys()
        ));
    }
    if input.dtype().is_mostly_stored() {
        return refused(format!("an argument has the dtype {}", input.dtype().name()));
    }
    Ok(())
}

impl StepRecorder {
    fn note_input(&self, at: usize, input: &Tensor) -> Answer<()> {
        let mut notes = self.notes.borrow_mut();
        let Some(storage) = &input.geometry().storage else {
            return refused("an argument has no memory");
        };
        if self.memory_of(storage).is_some() {
            return refused("two arguments share memory");
        }
        let (kind, bytes) = (MemoryOrigin::Input(at), storage.nbytes());
        let memory = StepMemory { kind, bytes, first: 0, last: 0, is_written: false, maker: "" };
        self.add_memory(&mut notes, storage, memory);
        Ok(())
    }
}

impl Notes {
    /// Keeps a tensor among those that are older than the step.
    fn watch(&mut self, tensor: &Tensor) {
        if self.older.iter().any(|older| older.tensor.is_same(tensor)) {
            return;
        }
        let storage = tensor.geometry().storage.as_ref().map_or(0, Storage::id);
        let (geometry, version) = (geometry_of(tensor), tensor.version());
        self.older.push(Older { tensor: tensor.clone(), geometry, storage, version });
    }
}

/// Makes the program of a recording.
struct Maker<'a> {
    recording: &'a Recording,
    notes: Notes,
    outputs: &'a [&'a Tensor],
}

/// Where the memory of a program is.
enum ValueHome {
    Window(Storage, i64),
    Storage(Storage),
}

impl Maker<'_> {
    fn memory_of(&self, tensor: &Tensor) -> Option<usize> {
        let storage = tensor.geometry().storage.as_ref()?;
        self.recording.recorder.memory_of(storage)
    }

    /// The storages from outside, by their identities, in order.
    fn external_storages(&self) -> Vec<usize> {
        let mut outside: Vec<usize> = Vec::new();
        for memory in &self.notes.memories {
            if let MemoryOrigin::External(storage) = &memory.kind {
                outside.push(storage.id()); // bounded: by the program
            }
        }
        outside.sort_unstable();
        outside
    }

    /// The tensors from outside that were written to, with the numbers of writes; one for each version counter.
    fn writes(&self) -> Vec<(Tensor, u32)> {
        let mut writes = Vec::new();
        let mut counters = Vec::new();
        for older in &self.notes.older {
            let more = older.tensor.version().wrapping_sub(older.version);
            let counter =
                older.tensor.version_counter().map_or(0, |c| std::ptr::from_ref(c) as usize);
            if more != 0 && !counters.contains(&counter) {
                counters.push(counter);
                writes.push((older.tensor.clone(), more));
            }
        }
        writes
    }

    fn program(mut self) -> Answer<Program> {
        let grads = self.leaf_grads()?;
        let (mut kept, held) = self.outside()?;
        let mut fresh: HashMap<usize, usize> = HashMap::new();
        let (results, after) = self.handed(&grads, &mut fresh)?;
        let (homes, windows, fresh, summary) = self.homes(&fresh)?;
        let tensors = self.tensors(&homes)?;
        let instructions = self.instructions(&tensors)?;
        let outside = self.external_storages();
        let input_writes =
            self.recording.inputs.iter().enumerate().filter_map(|(at, (input, before))| {
                let writes = input.version().wrapping_sub(*before);
                (writes != 0).then_some((at, writes))
            });
        let input_writes = input_writes.collect();
        let writes = self.writes();
        // (The notes have a handle each, which goes with them.)
        let own = |(storage, others): (Storage, usize)| {
            let own = storage.use_count() - others - 1;
            (storage, own)
        };
        let held = held.into_iter().map(own).collect();
        for kept in &mut kept {
            let is_it = |tensor: &Tensor| usize::from(tensor.is_same(&kept.tensor));
            kept.own += writes.iter().map(|(tensor, _)| is_it(tensor)).sum::<usize>()
                + grads.iter().map(|grad| is_it(&grad.leaf)).sum::<usize>()
                + after.iter().map(|grad| is_it(&grad.leaf)).sum::<usize>()
                + results.iter().map(|result| result.older().map_or(0, is_it)).sum::<usize>();
        }
        let guards = Guards {
            modes: self.recording.modes,
            inputs: self.recording.inputs.iter().map(|(input, _)| Input::of(input)).collect(),
            kept,
            held,
            outside,
            grads: grads.iter().map(|grad| (grad.leaf.clone(), grad.before)).collect(),
        };
        Ok(Program {
            guards,
            windows,
            fresh,
            instructions,
            input_writes,
            writes,
            grads: after,
            results,
            summary,
            running: Mutex::new(()),
        })
    }

    /// What the step did to the `.grad`s of leaves.
    fn leaf_grads(&self) -> Answer<Vec<Noted>> {
        let mut all: Vec<Noted> = Vec::new();
        for (leaf, before) in &self.notes.grads {
            all.push(Noted { leaf: leaf.clone(), before: *before, now: leaf.grad() });
        }
        for older in &self.notes.older {
            let leaf = &older.tensor;
            if !leaf.has_flag(Flag::REQUIRES_GRAD)
                || all.iter().any(|noted| noted.leaf.is_same(leaf))
            {
                continue;
            }
            let before = self.recording.recorder.grad_of(leaf);
            all.push(Noted { leaf: leaf.clone(), before, now: leaf.grad() });
        }
        for noted in &all {
            let Some(now) = &noted.now else { continue };
            let is_made = self
                .memory_of(now)
                .is_some_and(|at| matches!(self.notes.memories[at].kind, MemoryOrigin::Made));
            let is_same = match noted.before {
                Grad::Used(id) => now.id() == id,
                Grad::Unused => !is_made,
                Grad::Missing => false,
            };
            if !is_same && !is_made {
                return refused("a .grad is set to a tensor that the step did not compute");
            }
            if now.requires_grad() || now.keys() != KeySet::EMPTY {
                return refused("a .grad carries a graph, or is no plain tensor");
            }
        }
        Ok(all)
    }

    /// The tensors from outside that somebody else holds, and memory that is held without a tensor, by so many. Constants are neither: only
    /// this program has them.
    fn outside(&mut self) -> Answer<(Vec<KeptTensor>, Vec<Held>)> {
        for older in &self.notes.older {
            let storage = older.tensor.geometry().storage.as_ref().map_or(0, Storage::id);
            if geometry_of(&older.tensor) != older.geometry || storage != older.storage {
                return refused(
                    "a tensor from outside of the step is given other memory or another shape by it",
                );
            }
        }
        // (The notes of grads hold leaves, too.)
        let own = |tensor: &Tensor| {
            1 + self.notes.grads.iter().filter(|(leaf, _)| leaf.is_same(tensor)).count()
        };
        let owns: Vec<usize> = self.notes.older.iter().map(|older| own(&older.tensor)).collect();
        let mut owns = owns.into_iter();
        self.notes
            .older
            .retain(|older| owns.next().is_some_and(|own| older.tensor.use_count() > own));
        let kept: Vec<KeptTensor> = self
            .notes
            .older
            .iter()
            .map(|older| KeptTensor {
                tensor: older.tensor.clone(),
                geometry: older.geometry,
                storage: older.storage,
                facts: facts(&older.tensor),
                own: 1,
            })
            .collect();
        let mut held = Vec::new();
        for memory in &self.notes.memories {
            if let MemoryOrigin::Constant(storage) = &memory.kind
                && (memory.is_written || storage.use_count() > 1)
            {
                return refused(
                    "a tensor is written to, or kept, that the step makes without an op",
                );
            }
            let MemoryOrigin::External(storage) = &memory.kind else { continue };
            if self.notes.older.iter().any(|older| older.storage == storage.id()) {
                continue;
            }
            held.push((storage.clone(), storage.use_count() - 1));
        }
        Ok((kept, held))
    }

    /// What is new in each replay: results and `.grad`s; their memory is put into `fresh`.
    fn handed(
        &self,
        grads: &[Noted],
        fresh: &mut HashMap<usize, usize>,
    ) -> Answer<(Vec<ResultOf>, Vec<LeafGrad>)> {
        let mut results = Vec::new();
        for output in self.outputs {
            results.push(self.result(output, fresh)?);
        }
        let mut after = Vec::new();
        for noted in grads {
            let goes_first = noted.before == Grad::Unused;
            let leaf = noted.leaf.clone();
            match &noted.now {
                None if noted.before == Grad::Missing => {}
                None => after.push(LeafGrad { leaf, goes_first, after: GradAfter::Cleared }),
                Some(now) => {
                    let Some(handed) = self.handed_new(now, fresh) else { continue };
                    after.push(LeafGrad { leaf, goes_first, after: GradAfter::New(handed) });
                }
            }
        }
        Ok((results, after))
    }

    /// A tensor over memory that the step made.
    fn handed_new(&self, tensor: &Tensor, fresh: &mut HashMap<usize, usize>) -> Option<Handed> {
        let memory = self.memory_of(tensor)?;
        if !matches!(self.notes.memories[memory].kind, MemoryOrigin::Made) {
            return None;
        }
        let next = fresh.len();
        let fresh = *fresh.entry(memory).or_insert(next);
        let is_inference = tensor.has_flag(Flag::INFERENCE);
        Some(Handed { fresh, view: View::of(tensor, memory), is_inference })
    }

    fn result(&self, output: &Tensor, fresh: &mut HashMap<usize, usize>) -> Answer<ResultOf> {
        if let Some(at) = self.recording.inputs.iter().position(|(input, _)| input.is_same(output))
        {
            return Ok(ResultOf::Input(at));
        }
        if self.notes.older.iter().any(|older| older.tensor.is_same(output)) {
            return Ok(ResultOf::Older(output.clone()));
        }
        if output.keys() != KeySet::EMPTY {
            return refused(format!("a result has the dispatch keys {}", output.keys()));
        }
        let node = output.grad_fn()?;
        if node.is_none() && output.requires_grad() {
            return refused("a result is a new leaf that requires grad");
        }
        match self.handed_new(output, fresh) {
            Some(handed) => Ok(ResultOf::New(handed, node.map(|node| (node, output.output_nr())))),
            None => refused(format!(
                "a result of shape {} is no argument, and was not computed by the step: it is a view of a tensor from outside, or made of numbers",
                list(output.shape())
            )),
        }
    }

    /// Where the memory of each is, in a replay.
    fn homes(&self, fresh: &HashMap<usize, usize>) -> Answer<Places> {
        let notes = &self.notes;
        let is_inner = |at: &usize| {
            matches!(notes.memories[*at].kind, MemoryOrigin::Made) && !fresh.contains_key(at)
        };
        let inner: Vec<usize> = (0..notes.memories.len()).filter(is_inner).collect();
        let life = |&at: &usize| {
            let StepMemory { first, last, bytes, .. } = notes.memories[at];
            Life { first, last, bytes }
        };
        let lives: Vec<Life> = inner.iter().map(life).collect();
        let (places, planned) = place(&lives)?;
        let block = Storage::uninitialized(planned)?;
        let mut inner = places.iter().zip(&lives);
        let mut windows: Vec<Window> = Vec::new();
        let mut order: Vec<Option<Fresh>> = (0..fresh.len()).map(|_| None).collect();
        let mut homes = Vec::new();
        for (at, memory) in notes.memories.iter().enumerate() {
            homes.push(match &memory.kind {
                MemoryOrigin::External(storage) | MemoryOrigin::Constant(storage) => {
                    ValueHome::Storage(storage.clone())
                }
                MemoryOrigin::Input(input) => {
                    let g = self.recording.inputs[*input].0.geometry();
                    let bytes = extent(&g.shape, &g.strides)? as usize * g.dtype.size();
                    windows.push(Window::new(bytes)?);
                    ValueHome::Window(windows[*input].storage(), g.offset)
                }
                MemoryOrigin::Made => {
                    if let Some(&index) = fresh.get(&at) {
                        let bytes = memory.bytes;
                        let made = Fresh { window: Window::new(bytes)?, bytes };
                        let home = ValueHome::Window(made.window.storage(), 0);
                        order[index] = Some(made);
                        home
                    } else {
                        let (&start, life) = inner.next().expect("one place for each");
                        ValueHome::Storage(block.part(start, life.bytes)?)
                    }
                }
            });
        }
        let fresh: Vec<Fresh> = order.into_iter().flatten().collect();
        let summary = Summary {
            instructions: notes.instructions.len(),
            outside: notes.older.len(),
            planned,
            intermediate: lives.iter().map(|life| life.bytes).sum(),
            fresh: fresh.iter().map(|fresh| fresh.bytes).sum(),
        };
        Ok((homes, windows, fresh, summary))
    }

    /// The tensors of all views.
    fn tensors(&self, homes: &[ValueHome]) -> Answer<Vec<Tensor>> {
        let one = |view: &View| {
            let made = match &homes[view.memory] {
                ValueHome::Window(storage, skipped) => view.tensor(storage.clone(), *skipped),
                ValueHome::Storage(storage) => view.tensor(storage.clone(), 0),
            };
            made.map_err(|error| Refusal {
                reason: format!(
                    "memory is used beyond what an argument shows of it: {}",
                    error.message()
                ),
                is_final: true,
            })
        };
        self.notes.views.iter().map(one).collect()
    }

    fn instructions(&self, tensors: &[Tensor]) -> Answer<Vec<Prepared>> {
        let mut all = Vec::new();
        for noted in &self.notes.instructions {
            let args = noted.args.iter().map(|arg| arg.with(tensors)).collect();
            let outs = noted.outs.iter().map(|&view| tensors[view].clone()).collect();
            all.push(match noted.form {
                NotedForm::Functional => Prepared::functional(noted.def, args, outs)?,
                NotedForm::Inplace => Prepared::inplace(noted.def, args),
                NotedForm::Out => Prepared::out(noted.def, args, outs),
            });
        }
        Ok(all)
    }
}

/// What the step did to a leaf's `.grad`.
struct Noted {
    leaf: Tensor,
    before: Grad,
    now: Option<Tensor>,
}
