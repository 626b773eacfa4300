//! Running branches of a graph at the same time, where that pays and no program can observe it.
//!
//! As soon as two nodes are ready that are large or soon lead to large ones, [`run`] looks ahead ([`StretchPlan`]) and, if the nodes up to the next one that somebody
//! can watch have enough to do beside each other, runs these on the threads of the pool ([`stretch`]). All else runs on one
//! thread, in the order of that thread, and pays for two comparisons per node.

use super::plan::{StretchPlan, is_unwatched, leads_to_large};
use super::running::DEPTH;
use super::task::Task;
use super::{device, stretch};
use crate::Result;
use crate::autograd::graph::anomaly;
use crate::autograd::thread::state::QuietState;
use pullback_kernels::parallel::num_threads;
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// When backward runs branches of a graph at the same time. Results are the same bits, and programs
/// observe the same, in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Branches {
    /// Where they are large enough for that to pay, as initially.
    WhenLarge = 1,
    /// Also where they are small: for tests.
    Always,
    /// Never.
    Never,
}

/// The setting of [`set_branches`], or of the environment; 0 until it is first needed.
static BRANCHES: AtomicU8 = AtomicU8::new(0);

/// Sets when backward runs branches of a graph at the same time, in this process. The initial
/// setting is that of the environment variable `PULLBACK_BRANCHES`: `always`, `never`, or else
/// where they are large.
///
/// ```
/// use pullback::threads::{Branches, set_branches};
/// set_branches(Branches::Never);
/// // Backward runs one node after the other.
/// set_branches(Branches::WhenLarge);
/// ```
pub fn set_branches(branches: Branches) {
    BRANCHES.store(branches as u8, Relaxed);
}

fn branches() -> Branches {
    match BRANCHES.load(Relaxed) {
        1 => Branches::WhenLarge,
        2 => Branches::Always,
        3 => Branches::Never,
        _ => from_environment(),
    }
}

#[cold]
fn from_environment() -> Branches {
    let branches = match std::env::var("PULLBACK_BRANCHES").as_deref() {
        Ok("always") => Branches::Always,
        Ok("never") => Branches::Never,
        _ => Branches::WhenLarge,
    };
    set_branches(branches);
    branches
}

/// Elements of a gradient from which a node is large: some microseconds, a few times what handing it over costs.
const LARGE: u64 = 1 << 13;
/// What a stretch must save, in elements: more than it costs to begin and end one, which is some ten microseconds.
const LEAST_GAIN: u64 = 1 << 16;
/// The number of elements that is worth one more thread.
const THREAD: u64 = 1 << 15;
/// The number of ready nodes that are examined, so that an examination costs the same however many
/// nodes are ready.
const LOOKED_AT: usize = 8;
/// The most nodes of a stretch.
const MOST: usize = 1 << 12;
/// The number of nodes that run after a search for branches that found none, before the next
/// search.
const PAUSE: usize = 16;

/// The number of nodes after which branches are first looked for; the largest one if they never are.
pub(super) fn first_look() -> usize {
    let may_branch = num_threads() > 1
        && branches() != Branches::Never
        && DEPTH.with(Cell::get) == 1
        && device::served().is_none()
        && !anomaly::is_anomaly_enabled()
        && QuietState::take().is_some();
    if may_branch { 0 } else { usize::MAX }
}

/// Whether two of the nodes that are ready are large, or lead to large ones.
fn has_branches(task: &Task<'_>, large: u64) -> bool {
    let ready = task.ready.iter().take(LOOKED_AT).map(|next| &next.node);
    ready.filter(|node| node.leaf().is_none() && leads_to_large(node, large)).nth(1).is_some()
}

/// Runs the nodes that come next on several threads, if there are branches among them that are worth it; the number of nodes
/// after which to look again.
#[inline(never)]
pub(super) fn run(task: &mut Task<'_>) -> Result<usize> {
    let is_forced = branches() == Branches::Always;
    let (large, pause) = if is_forced { (0, 1) } else { (LARGE, PAUSE) };
    if !has_branches(task, large) {
        return Ok(pause);
    }
    if !task.ready.peek().is_some_and(|next| is_unwatched(task, next)) {
        return Ok(1);
    }
    // (A hook may have turned on what can watch since the first look.)
    let Some(state) = QuietState::take().filter(|_| !anomaly::is_anomaly_enabled()) else {
        return Ok(pause);
    };
    let mut plan = StretchPlan::of(task, MOST);
    let (len, useful) = (plan.steps.len().max(pause), plan.branched_len());
    if useful < plan.steps.len() {
        plan = StretchPlan::of(task, useful);
    }
    let gain = plan.gain();
    if plan.steps.len() < 2 || gain < LEAST_GAIN && !is_forced {
        return Ok(len);
    }
    let worth = if is_forced { usize::MAX } else { 1 + (gain / THREAD) as usize };
    let has_run = stretch::run(task, plan, state, num_threads().min(worth))?;
    Ok(if has_run { 0 } else { len })
}
