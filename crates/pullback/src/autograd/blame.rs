//! What errors of the graph say besides what is wrong: the lines that made it so, and what to do about it.
//!
//! An error that a node's run ends with names the line that made the node. The error of a stale value also names the
//! write that made it stale, that of a freed graph the backward that freed it, that of an input without gradient where
//! input and output come from. Invariant: nothing here runs unless there is an error, and lines that are not known
//! are left out. Where lines come from is `site`'s business.

use super::node::{Edge, Node};
use crate::site::Site;
use crate::{Error, ErrorKind};
use std::fmt::Write;

/// A message that grows by lines of the program.
pub(super) struct Report {
    message: String,
    /// Whether a line is in it.
    names_a_line: bool,
}

impl Report {
    /// What is wrong.
    pub(super) fn new(message: impl Into<String>) -> Report {
        Report { message: message.into(), names_a_line: false }
    }
    /// `what` happened at `site`; nothing if that is unknown.
    pub(super) fn line(mut self, what: &str, site: Site) -> Report {
        if let Some(place) = site.place() {
            let gap = if self.names_a_line { "" } else { "\n" };
            let _ = write!(self.message, "{gap}\n  {what}:\n{place}");
            self.names_a_line = true;
        }
        self
    }
    /// Where a node was made.
    pub(super) fn node(self, what: &str, node: &Node) -> Report {
        let what = format!("{} {what}", node.name());
        self.line(&what, node.site())
    }
    /// What helps in the usual case, if lines were named; `otherwise` if none was.
    pub(super) fn hint(mut self, hint: &str, otherwise: &str) -> Report {
        if self.names_a_line {
            let _ = write!(self.message, "\n  Hint: {hint}");
        } else if !otherwise.is_empty() {
            let _ = write!(self.message, " {otherwise}");
        }
        self
    }
    pub(super) fn text(self) -> String {
        self.message
    }
    /// As an error to which nothing is to be added.
    pub(super) fn error(self) -> Error {
        let names_a_line = self.names_a_line;
        let error = Error::runtime(self.message);
        if names_a_line { error.with_blame() } else { error }
    }
}

impl Node {
    /// `message` with the line that made this node, if that is known.
    pub fn blame(&self, message: &str) -> String {
        Report::new(message).node("was made here", self).text()
    }
}

/// An error that the run of `node` ended with, with the line that made the node; a binding's exception stays as it is.
#[cold]
pub(super) fn in_backward(error: Error, node: &Node) -> Error {
    if error.is_blamed() || error.kind() == ErrorKind::Python {
        return error;
    }
    let report = Report::new(error.message()).node("was made here", node);
    if report.names_a_line { error.with_message(report.text()).with_blame() } else { error }
}

/// The error of a target for which nothing arrived.
#[cold]
pub(super) fn unused(roots: &[Edge], index: usize, target: &Edge) -> Error {
    let mut report = Report::new(
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.",
    );
    for root in roots.iter().filter_map(|root| root.node.as_ref()).take(1) {
        report = report.node("of the output was made here", root);
    }
    if let Some(node) = target.node.as_ref().filter(|node| node.leaf().is_none()) {
        report = report
            .node(&format!("of input {index}, which it does not lead to, was made here"), node);
    }
    report
        .hint(
            &format!(
                "nothing leads from input {index} to the output: was it detached, copied (`.data`, `.item()`, `torch.tensor`) or overwritten before it was used?"
            ),
            "",
        )
        .error()
}
