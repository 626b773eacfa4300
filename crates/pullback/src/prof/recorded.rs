//! What a profile recorded: events in the order in which they began, their nesting, and sums.

use super::collect::Late;
use super::record::{Name, RangeKind};
use crate::call_site::CallSite;
use crate::dispatch::{Arg, Value};
use crate::tensor::Dims;
use crate::{DType, Device, Layout, Tensor};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// No event.
pub(super) const NONE: u32 = u32::MAX;

/// A range that began and ended.
#[derive(Clone, Debug)]
pub struct Event {
    /// The name of the range.
    pub name: Name,
    /// The kind of the range.
    pub kind: RangeKind,
    /// The thread that began it.
    pub thread: u32,
    /// For a node: the thread that made it; else 0.
    pub forward_thread: u32,
    /// For an op: the number of the node that it was recorded as, if it was. For a node: its own
    /// number. Else -1.
    pub sequence_nr: i64,
    /// The time at which it began, in nanoseconds since the beginning of the profile.
    pub start: u64,
    /// The time at which it ended.
    pub end: u64,
    /// Whether another thread ended it.
    pub is_async: bool,
    pub(super) parent: u32,
    pub(super) details: Option<Box<Details>>,
}

/// What is recorded on request only.
#[derive(Clone, Debug)]
pub(super) struct Details {
    pub(super) inputs: Option<Box<[RecordedInput]>>,
    pub(super) stack: Option<Arc<[CallSite]>>,
    pub(super) flops: u64,
}

impl Event {
    /// The duration in nanoseconds.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
    /// The index of the innermost event around this one.
    #[must_use]
    pub fn parent(&self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }
    /// The arguments of the op, if inputs were recorded.
    #[must_use]
    pub fn inputs(&self) -> Option<&[RecordedInput]> {
        self.details.as_ref()?.inputs.as_deref()
    }
    /// The number of operations on numbers that the op made, a multiplication and an addition
    /// counting as one each; 0 for ops that are not counted (see
    /// [`crate::dispatch::Traits::PROFILER_FLOPS`]), and if counts were not recorded.
    #[must_use]
    pub fn flops(&self) -> u64 {
        self.details.as_ref().map_or(0, |details| details.flops)
    }
    /// The lines of the program that led to the event, innermost first; empty for nodes, and if
    /// stacks were not recorded.
    #[must_use]
    pub fn stack(&self) -> &[CallSite] {
        self.details.as_ref().and_then(|details| details.stack.as_deref()).unwrap_or(&[])
    }
}

/// An argument of an op.
#[derive(Clone, Debug)]
pub enum RecordedInput {
    /// A tensor.
    Tensor {
        /// Its sizes.
        shape: Dims,
        /// Its strides.
        strides: Dims,
        /// Its dtype.
        dtype: DType,
        /// Its device.
        device: Device,
        /// Its layout.
        layout: Layout,
    },
    /// A list of tensors.
    List(Vec<RecordedInput>),
    /// Any other value.
    Value(Value),
}

impl RecordedInput {
    pub(super) fn of(arg: &Arg<'_>) -> RecordedInput {
        let of_option = |tensor: &Option<Tensor>| RecordedInput::of(&tensor.as_ref().into());
        match arg {
            Arg::Tensor(tensor) => RecordedInput::Tensor {
                shape: tensor.shape().into(),
                strides: tensor.strides().into(),
                dtype: tensor.dtype(),
                device: tensor.device(),
                layout: tensor.layout(),
            },
            Arg::Tensors(list) => {
                RecordedInput::List(list.iter().map(|t| RecordedInput::of(&t.into())).collect())
            }
            Arg::OptTensors(list) => RecordedInput::List(list.iter().map(of_option).collect()),
            other => RecordedInput::Value(Value::from_arg(*other)),
        }
    }
}

/// An allocation or a release of memory for a tensor's elements.
#[derive(Clone, Copy, Debug)]
pub struct MemoryEvent {
    /// The time in nanoseconds since the beginning of the profile.
    pub time: u64,
    /// The address of the memory.
    pub address: usize,
    /// The number of bytes; negative for a release.
    pub bytes: i64,
    /// The thread that did it.
    pub thread: u32,
    pub(super) event: u32,
}

impl MemoryEvent {
    /// The index of the innermost event in which it happened.
    #[must_use]
    pub fn event(&self) -> Option<usize> {
        (self.event != NONE).then_some(self.event as usize)
    }
}

/// The events of a profile.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(super) started: SystemTime,
    pub(super) duration: u64,
    events: Vec<Event>,
    memory: Vec<MemoryEvent>,
}

impl Default for Recorded {
    /// A profile without events.
    fn default() -> Self {
        Recorded::new(SystemTime::UNIX_EPOCH, 0, Vec::new(), &[])
    }
}

/// The number of a thread, its events, and its allocations and releases.
type RecordedParts = (u32, (Vec<Event>, Vec<MemoryEvent>));

impl Recorded {
    pub(super) fn new(
        started: SystemTime,
        duration: u64,
        threads: Vec<RecordedParts>,
        late: &[Late],
    ) -> Recorded {
        let (mut events, mut memory) = (Vec::new(), Vec::new());
        for (thread, (mut own, mut taken)) in threads {
            for late in late.iter().filter(|late| late.thread == thread) {
                if let Some(event) = own.get_mut(late.index as usize) {
                    (event.end, event.is_async) = (late.end, true);
                }
            }
            // Events that began while a range was open which another thread ended are within the
            // events around that range.
            for at in 0..own.len() {
                while own.get(own[at].parent as usize).is_some_and(|around| around.is_async) {
                    own[at].parent = own[own[at].parent as usize].parent;
                }
            }
            let first = events.len() as u32;
            let shifted = |at: u32| if at == NONE { NONE } else { at + first };
            for event in &mut own {
                event.parent = shifted(event.parent);
            }
            for taken in &mut taken {
                taken.event = shifted(taken.event);
            }
            events.append(&mut own);
            memory.append(&mut taken);
        }
        sort(&mut events, &mut memory);
        Recorded { started, duration, events, memory }
    }

    /// The events in the order in which they began.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// The allocations and releases in order; empty unless memory was recorded.
    #[must_use]
    pub fn memory(&self) -> &[MemoryEvent] {
        &self.memory
    }
    /// The duration of the profile in nanoseconds.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.duration
    }
    /// The time at which the profile began.
    #[must_use]
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// The self time of each event in nanoseconds: its duration less those of the events directly
    /// within it. Events that another thread ended have no self time, and reduce that of no other
    /// event.
    #[must_use]
    pub fn self_times(&self) -> Vec<u64> {
        let own = |event: &Event| if event.is_async { 0 } else { event.duration() };
        let mut times: Vec<u64> = self.events.iter().map(own).collect();
        for event in &self.events {
            if let Some(parent) = event.parent() {
                times[parent] = times[parent].saturating_sub(own(event));
            }
        }
        times
    }

    /// For each node that ran, the op that made it: pairs of indices of events, the op first. Among
    /// the events with a node's number on the thread that made it, the op is the one that began
    /// last, because composite ops have the numbers of their parts.
    #[must_use]
    pub fn links(&self) -> Vec<(usize, usize)> {
        let mut makers: HashMap<(u32, i64), usize> = HashMap::new();
        let mut links = Vec::new();
        for (at, event) in self.events.iter().enumerate().filter(|(_, e)| e.sequence_nr >= 0) {
            match event.kind {
                RangeKind::Op | RangeKind::Function => {
                    makers.insert((event.thread, event.sequence_nr), at);
                }
                RangeKind::Backward => {
                    let key = (event.forward_thread, event.sequence_nr);
                    links.extend(makers.get(&key).map(|&maker| (maker, at)));
                }
                RangeKind::Evaluation
                | RangeKind::Module
                | RangeKind::Program
                | RangeKind::User => {}
            }
        }
        links
    }

    /// The sums by name, in descending order of self time.
    #[must_use]
    pub fn totals(&self) -> Vec<Total> {
        let mut rows: HashMap<String, usize> = HashMap::new();
        let mut totals: Vec<Total> = Vec::new();
        for (event, self_time) in self.events.iter().zip(self.self_times()) {
            let name = event.name.to_string();
            let at = *rows.entry(name).or_insert_with_key(|name| {
                totals.push(Total { name: name.clone(), count: 0, time: 0, self_time: 0 });
                totals.len() - 1
            });
            totals[at].count += 1;
            totals[at].time += event.duration();
            totals[at].self_time += self_time;
        }
        totals.sort_by_key(|total| std::cmp::Reverse(total.self_time));
        totals
    }
}

/// Sorts events by the time at which they began; events within another one stay behind it.
fn sort(events: &mut [Event], memory: &mut [MemoryEvent]) {
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    order.sort_by_key(|&at| events[at as usize].start);
    let mut positions = vec![0; order.len()];
    for (index, &at) in order.iter().enumerate() {
        positions[at as usize] = index as u32;
    }
    let moved = |at: u32| positions.get(at as usize).copied().unwrap_or(NONE);
    events.sort_by_key(|event| event.start);
    for event in events.iter_mut() {
        event.parent = moved(event.parent);
    }
    for taken in memory.iter_mut() {
        taken.event = moved(taken.event);
    }
    memory.sort_by_key(|taken| taken.time);
}

/// The sums over the events of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Total {
    /// The name of the events.
    pub name: String,
    /// The number of events.
    pub count: u64,
    /// The sum of their durations in nanoseconds. Time within an event of the same name counts twice.
    pub time: u64,
    /// The sum of their durations in nanoseconds, without those of the events within them.
    pub self_time: u64,
}

impl fmt::Display for Recorded {
    /// A table of [`Recorded::totals`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals();
        let width = totals.iter().map(|total| total.name.len()).max().unwrap_or(0).max(4);
        writeln!(f, "{:width$}  {:>12}  {:>12}  {:>8}", "Name", "Self CPU us", "CPU us", "Calls")?;
        for Total { name, count, time, self_time } in &totals {
            let [own, all] = [*self_time, *time].map(|ns| ns as f64 / 1000.0);
            writeln!(f, "{name:width$}  {own:12.3}  {all:12.3}  {count:8}")?;
        }
        Ok(())
    }
}
