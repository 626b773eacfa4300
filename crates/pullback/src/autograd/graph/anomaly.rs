//! Anomaly mode: errors of backward name the line of the forward that made the failing node, and gradients with NaN are errors.
//!
//! While the mode is on, every node is recorded with the line that makes it, and with the node that is being run if it is made
//! in backward. An [`AnomalyRecorder`] keeps the records; without a binding they are native backtraces.

use super::current::current_node;
use super::node::Node;
use crate::host::{Host, host};
use crate::warning::warn;
use std::backtrace::Backtrace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ENABLED: AtomicBool = AtomicBool::new(false);
static CHECKS_NAN: AtomicBool = AtomicBool::new(true);

/// What was recorded of a node.
pub struct Origin {
    /// The lines of the program that made the node, each with a line break.
    pub trace: String,
    /// The node that was being run when the node was made.
    pub parent: Option<Node>,
}

/// Records where nodes are made, and finds the records again.
pub trait AnomalyRecorder: Send + Sync {
    /// Records that `node` is made now, while `parent` is being run.
    fn record(&self, node: &Node, parent: Option<Node>);
    /// The record of a node; `None` if anomaly mode was off when it was made.
    fn recall(&self, node: &Node) -> Option<Origin>;
    /// Shows a text that explains an error which is on its way to the program.
    fn warn(&self, text: String) {
        warn(text);
    }
}

/// Turns anomaly mode on or off, on all threads: with `check_nan` gradients with NaN are errors.
pub fn set_detect_anomaly(enabled: bool, check_nan: bool) {
    CHECKS_NAN.store(check_nan, Relaxed);
    ENABLED.store(enabled, Relaxed);
}
/// Whether anomaly mode is on.
#[inline(always)]
pub fn is_anomaly_enabled() -> bool {
    ENABLED.load(Relaxed)
}
/// Whether gradients with NaN are errors in anomaly mode.
pub fn is_anomaly_check_nan_enabled() -> bool {
    CHECKS_NAN.load(Relaxed)
}
/// The host's recorder, or that of Rust programs.
fn recorder() -> &'static dyn AnomalyRecorder {
    host().map_or(&Native, Host::anomaly_recorder)
}

/// Records a node that was made now.
#[cold]
pub(in crate::autograd) fn made(node: Node) -> Node {
    recorder().record(&node, current_node());
    node
}

/// Warns with the line that made the failing node, and with those of the nodes that were being run then.
#[cold]
pub(in crate::autograd) fn explain(failed: &Node) {
    let mut node = failed.clone();
    // Programs may replace notes, so that they may lead in a circle.
    let mut seen = vec![node.id()];
    let mut text = format!("Error detected in {}. ", node.name());
    let mut what = "Traceback of forward call that caused the error:";
    loop {
        let origin = recorder().recall(&node);
        match &origin {
            Some(origin) => {
                text.push_str(what);
                text.push('\n');
                text.push_str(&origin.trace);
            }
            None => text.push_str(
                "No forward pass information available. Enable detect anomaly during forward pass for more information.",
            ),
        }
        recorder().warn(std::mem::take(&mut text));
        let parent = origin.and_then(|origin| origin.parent);
        let Some(parent) = parent.filter(|parent| !seen.contains(&parent.id())) else { return };
        seen.push(parent.id());
        text = format!("\n\nPrevious calculation was induced by {}. ", parent.name());
        what = "Traceback of forward call that induced the previous calculation:";
        node = parent;
    }
}

/// The recorder of Rust programs: backtraces of the process.
struct Native;

struct Note {
    trace: Backtrace,
    parent: Option<Node>,
}

impl AnomalyRecorder for Native {
    fn record(&self, node: &Node, parent: Option<Node>) {
        node.set_note(Arc::new(Note { trace: Backtrace::force_capture(), parent }));
    }
    fn recall(&self, node: &Node) -> Option<Origin> {
        let note = node.note()?.downcast::<Note>().ok()?;
        Some(Origin { trace: format!("{}\n", note.trace), parent: note.parent.clone() })
    }
}

/// Runs `f` in anomaly mode and restores the previous state. For tests and debugging: the mode is one for all threads.
pub fn detect_anomaly<R>(check_nan: bool, f: impl FnOnce() -> R) -> R {
    struct Back(bool, bool);
    impl Drop for Back {
        fn drop(&mut self) {
            set_detect_anomaly(self.0, self.1);
        }
    }
    let _back = Back(is_anomaly_enabled(), is_anomaly_check_nan_enabled());
    set_detect_anomaly(true, check_nan);
    f()
}
