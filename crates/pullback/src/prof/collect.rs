//! Collecting events: the observer that notes down when ranges begin and end.
//!
//! Each thread writes into a log of its own, in chunks and without a lock; a log is handed over when its thread ends or the
//! profile is finished. Times are nanoseconds of the monotonic clock since the profile began. Invariant: a token is an index
//! into the log of the thread that began the range. Start at [`profile`].

use super::record::{self, Name, Observing, Range, RangeKind, RangeObserver};
use super::recorded::{Details, Event, MemoryEvent, NONE, Recorded, RecordedInput};
use crate::Result;
use crate::autograd::thread_number;
use crate::call_site::CallSite;
use crate::dispatch::Traits;
use crate::error::{bail, ensure};
use crate::tensor::memory::{self, MemoryObserver};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

/// What is recorded besides names and times.
#[derive(Clone, Copy, Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own, as in PyTorch")]
pub struct Config {
    /// The arguments of ops: shapes, strides and dtypes of tensors, values of other arguments.
    pub inputs: bool,
    /// The memory that tensors allocate and release.
    pub memory: bool,
    /// The program's lines that ranges were opened for.
    pub stacks: bool,
    /// The number of operations on numbers of each op.
    pub flops: bool,
}

/// Events per chunk: a longer list would be copied as it grows, in the midst of what is measured.
const CHUNK: usize = 1024;

/// The events of one thread.
pub(super) struct Log {
    session: Arc<Session>,
    pub(super) thread: u32,
    chunks: Vec<Vec<Event>>,
    /// The ranges that have not ended yet, outermost first.
    open: Vec<u32>,
    memory: Vec<MemoryEvent>,
}

impl Log {
    fn new(session: Arc<Session>) -> Log {
        let thread = thread_number();
        Log { session, thread, chunks: Vec::new(), open: Vec::new(), memory: Vec::new() }
    }
    /// Appends an event that begins within the innermost open one; returns its index.
    fn push(&mut self, event: Event) -> u32 {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("there is one now");
        chunk.push(event);
        let index = (before + chunk.len() - 1) as u32;
        self.open.push(index);
        index
    }
    fn at(&mut self, index: u32) -> Option<&mut Event> {
        self.chunks.get_mut(index as usize / CHUNK)?.get_mut(index as usize % CHUNK)
    }
    fn innermost(&self) -> u32 {
        self.open.last().copied().unwrap_or(NONE)
    }
    fn close(&mut self, index: u32, now: u64) {
        // It is nearly always the last one.
        if let Some(at) = self.open.iter().rposition(|&open| open == index) {
            self.open.remove(at);
        }
        if let Some(event) = self.at(index) {
            event.end = now;
        }
    }
    /// Ends the ranges that have not ended, and returns all events.
    pub(super) fn finish(mut self, now: u64) -> (Vec<Event>, Vec<MemoryEvent>) {
        for index in std::mem::take(&mut self.open) {
            self.close(index, now);
        }
        (self.chunks.into_iter().flatten().collect(), self.memory)
    }
}

/// A profile that was begun on this thread.
struct RunningProfile {
    session: Arc<Session>,
    _observing: Observing,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
    static RUNNING: RefCell<Option<RunningProfile>> = const { RefCell::new(None) };
}

/// Runs `f` on this thread's log, if it has one and is not in the midst of writing to it.
fn with_log<R>(f: impl FnOnce(&mut Log) -> R) -> Option<R> {
    LOG.try_with(|log| log.try_borrow_mut().ok()?.as_mut().map(f)).ok().flatten()
}

/// Gives this thread a log, or takes it away.
fn replace_log(log: Option<Log>) -> Option<Log> {
    LOG.try_with(|kept| kept.replace(log)).ok().flatten()
}

/// A range that was ended by another thread than the one that began it.
#[derive(Clone, Copy)]
pub(super) struct Late {
    pub(super) thread: u32,
    pub(super) index: u32,
    pub(super) end: u64,
}

/// The data that other threads have handed over.
#[derive(Default)]
struct HandedOver {
    logs: Vec<Log>,
    late: Vec<Late>,
}

/// A profile, shared by the threads that it observes.
struct Session {
    config: Config,
    start: Instant,
    /// The calendar time at which the profile began.
    started: SystemTime,
    handed: Mutex<HandedOver>,
}

impl Session {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
    fn handed(&self) -> MutexGuard<'_, HandedOver> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn is_own(&self, log: &Log) -> bool {
        std::ptr::eq(Arc::as_ptr(&log.session), self)
    }

    /// The line of the program. Within an op or a node it is the line that called it; nodes
    /// themselves belong to no line, and functions record their own.
    fn stack(&self, kind: RangeKind) -> Option<Arc<[CallSite]>> {
        let has_none =
            matches!(kind, RangeKind::Backward | RangeKind::Evaluation | RangeKind::Program);
        if !self.config.stacks || has_none {
            return None;
        }
        if CallSite::is_inside() {
            let outer = with_log(|log| {
                let innermost = log.innermost();
                let event = log.at(innermost)?;
                let is_inside = matches!(
                    event.kind,
                    RangeKind::Op | RangeKind::Backward | RangeKind::Evaluation
                );
                is_inside.then(|| event.details.as_ref().and_then(|details| details.stack.clone()))
            });
            if let Some(stack) = outer.flatten() {
                return stack;
            }
        }
        Some(CallSite::stack().into())
    }

    fn details(&self, range: &Range<'_>) -> Option<Box<Details>> {
        let Config { inputs, stacks, flops, .. } = self.config;
        let flops = if flops { count_flops(range) } else { 0 };
        (inputs || stacks || flops > 0).then(|| {
            let inputs = inputs.then(|| range.inputs.iter().map(RecordedInput::of).collect());
            Box::new(Details { inputs, stack: self.stack(range.kind), flops })
        })
    }
}

/// The number of operations of an op's call, if that is to be shown. (Forms that write into their
/// first argument count as none, as in PyTorch.)
fn count_flops(range: &Range<'_>) -> u64 {
    match range.name {
        Name::Op(def) if def.is(Traits::PROFILER_FLOPS) => {
            def.count_flops(range.inputs).unwrap_or(0)
        }
        _ => 0,
    }
}

/// The token of a range that is not recorded.
const UNKNOWN: u64 = u64::MAX;

/// The observer that the thread's list holds.
struct Collector(Arc<Session>);

impl RangeObserver for Collector {
    fn begin(&self, range: &Range<'_>) -> u64 {
        let session = &*self.0;
        let details = session.details(range);
        let index = with_log(|log| {
            if !session.is_own(log) {
                return UNKNOWN;
            }
            let event = Event {
                name: range.name.clone(),
                kind: range.kind,
                thread: log.thread,
                forward_thread: range.forward_thread as u32,
                sequence_nr: range.sequence_nr.map_or(-1, |nr| nr as i64),
                // (The clock is read last, so that the time before this does not count for the
                // range.)
                start: session.now(),
                end: 0,
                is_async: false,
                parent: log.innermost(),
                details,
            };
            u64::from(log.thread) << 32 | u64::from(log.push(event))
        });
        index.unwrap_or(UNKNOWN)
    }
    fn end(&self, token: u64) {
        let end = self.0.now();
        if token == UNKNOWN {
            return;
        }
        let (thread, index) = ((token >> 32) as u32, token as u32);
        let is_closed = with_log(|log| {
            let is_here = self.0.is_own(log) && log.thread == thread;
            if is_here {
                log.close(index, end);
            }
            is_here
        });
        if is_closed != Some(true) {
            self.0.handed().late.push(Late { thread, index, end });
        }
    }
    fn enter_thread(&self) {
        replace_log(Some(Log::new(self.0.clone())));
        observe_memory(&self.0);
    }
    fn leave_thread(&self) {
        memory::set_observer(None);
        if let Some(log) = replace_log(None) {
            self.0.handed().logs.push(log);
        }
    }
}

/// Makes the thread's log receive the thread's allocations and releases, if the profile records
/// memory.
fn observe_memory(session: &Session) {
    memory::set_observer(session.config.memory.then_some(note_memory as MemoryObserver));
}

/// The function that the allocator calls on threads that are observed.
fn note_memory(address: usize, bytes: isize) {
    with_log(|log| {
        let time = log.session.now();
        let (thread, event) = (log.thread, log.innermost());
        log.memory.push(MemoryEvent { time, address, bytes: bytes as i64, thread, event });
    });
}

/// Begins a profile of this thread, and of threads that continue its work. It lasts until [`stop`].
///
/// # Errors
/// `RuntimeError` if there is one already.
pub fn start(config: Config) -> Result<()> {
    ensure!(!is_profiling(), runtime, "Profiler is already enabled on this thread");
    let session = Arc::new(Session {
        config,
        start: Instant::now(),
        started: SystemTime::now(),
        handed: Mutex::default(),
    });
    let collector = Arc::new(Collector(session.clone()));
    collector.enter_thread();
    let observing = record::observe(collector);
    RUNNING.set(Some(RunningProfile { session, _observing: observing }));
    Ok(())
}

/// Ends the profile and returns what was recorded. Ranges that have not ended end now.
///
/// # Errors
/// `RuntimeError` if there is none, or it was begun on another thread.
pub fn stop() -> Result<Recorded> {
    let Some(running) = RUNNING.take() else {
        bail!(runtime, "can't disable profiler when it's not running on this thread");
    };
    let session = running.session.clone();
    drop(running);
    let now = session.now();
    memory::set_observer(None);
    let own = replace_log(None);
    let handed = std::mem::take(&mut *session.handed());
    let logs = own.into_iter().chain(handed.logs).map(|log| (log.thread, log.finish(now)));
    Ok(Recorded::new(session.started, now, logs.collect(), &handed.late))
}

/// Whether a profile was begun on this thread.
pub fn is_profiling() -> bool {
    RUNNING.with_borrow(Option::is_some)
}

/// A profile of this thread, and of threads that continue its work, while this lives.
#[must_use = "the profile lasts as long as this"]
pub struct Profile {
    /// Keeps the value on its thread.
    not_send: PhantomData<*const ()>,
}

impl Profile {
    /// Ends the profile and returns what was recorded.
    ///
    /// # Panics
    /// Never: what this stands for cannot have ended otherwise, unless by [`stop`]; then nothing was recorded.
    pub fn finish(self) -> Recorded {
        let recorded = stop().unwrap_or_default();
        std::mem::forget(self);
        recorded
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        drop(stop());
    }
}

/// Begins a profile.
///
/// # Errors
/// `RuntimeError` if there is one already on this thread.
pub fn profile(config: Config) -> Result<Profile> {
    start(config).map(|()| Profile { not_send: PhantomData })
}
