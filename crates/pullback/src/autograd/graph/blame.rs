//! What errors of the graph say besides the fault itself: the lines of the program that caused it,
//! and what to do about it.
//!
//! An error that a node's run ends with names the line that made the node. The error of a stale value also names the
//! write that made it stale, that of a freed graph the backward that freed it, that of an input without gradient where
//! input and output come from. Invariant: nothing here runs unless there is an error, and lines that are not known
//! are left out. Where lines come from is `call_site`'s business.

use super::node::{Edge, Node};
use crate::call_site::CallSite;
use crate::tensor::{Version, Write};
use crate::{Error, ErrorKind, Tensor};
use std::collections::HashSet;
use std::fmt::Write as _;

/// An error message to which lines of the program are added.
pub(in crate::autograd) struct Report {
    message: String,
    /// Whether a line was added.
    names_a_line: bool,
}

impl Report {
    /// A report that begins with what is wrong.
    pub(in crate::autograd) fn new(message: impl Into<String>) -> Report {
        Report { message: message.into(), names_a_line: false }
    }
    /// Adds the line where `what` happened; nothing if that is unknown.
    pub(in crate::autograd) fn line(mut self, what: &str, call_site: CallSite) -> Report {
        if let Some(line) = call_site.source_line() {
            let gap = if self.names_a_line { "" } else { "\n" };
            let _ = write!(self.message, "{gap}\n  {what}:\n{line}");
            self.names_a_line = true;
        }
        self
    }
    /// Adds the line where a node was made.
    pub(in crate::autograd) fn node(self, what: &str, node: &Node) -> Report {
        let what = format!("{} {what}", node.name());
        self.line(&what, node.call_site())
    }
    /// Adds advice: `hint` if lines were named, else `otherwise`.
    pub(in crate::autograd) fn hint(mut self, hint: &str, otherwise: &str) -> Report {
        if self.names_a_line {
            let _ = write!(self.message, "\n  Hint: {hint}");
        } else if !otherwise.is_empty() {
            let _ = write!(self.message, " {otherwise}");
        }
        self
    }
    pub(in crate::autograd) fn text(self) -> String {
        self.message
    }
    /// The report as a final error, to which nothing is added on its way.
    pub(in crate::autograd) fn error(self) -> Error {
        let names_a_line = self.names_a_line;
        let error = Error::runtime(self.message);
        if names_a_line { error.with_blame() } else { error }
    }
}

/// The advice for gradients that do not fit.
const OF_BACKWARD: &str = "backward gives one gradient per argument of forward, of that argument's shape; None for what is no tensor";

impl Node {
    /// The line that made this node, if that is known.
    pub fn origin(&self) -> Option<String> {
        let report = Report::new(String::new()).node("was made here", self);
        report.names_a_line.then(|| report.message.trim_start_matches('\n').to_owned())
    }
}

/// The error of a run of `node`, with the line that made the node; an exception of the binding stays as it is.
#[cold]
pub(in crate::autograd) fn in_backward(error: Error, node: &Node) -> Error {
    if error.is_blamed() || error.kind() == ErrorKind::Python {
        return error;
    }
    let report = Report::new(error.marked()).node("was made here", node);
    // (What the engine says of gradients is for those who write backwards.)
    let is_own = error.message().contains(" returned a") && node.backward().is_some();
    let report = if is_own { report.hint(OF_BACKWARD, "") } else { report };
    if report.names_a_line { error.with_message(report.text()).with_blame() } else { error }
}

/// The advice for a write that makes a saved value stale.
pub(in crate::autograd) fn advice(write: Option<&Write>) -> String {
    /// Functions that programs call with `inplace=True`.
    const SWITCHED: [&str; 12] = [
        "relu",
        "elu",
        "celu",
        "selu",
        "rrelu",
        "leaky_relu",
        "hardtanh",
        "threshold",
        "silu",
        "mish",
        "hardswish",
        "hardsigmoid",
    ];
    /// Ops that write to parts of a tensor by an index, or copy over it.
    const PLACED: [&str; 12] = [
        "copy",
        "fill",
        "zero",
        "index_put",
        "_index_put_impl",
        "masked_fill",
        "masked_scatter",
        "index_copy",
        "index_fill",
        "scatter",
        "index_add",
        "scatter_add",
    ];
    const OPERATORS: [(&str, &str); 4] = [("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")];
    let Some(write) = write else { return "let what writes change a clone() of it".into() };
    match write.functional {
        _ if write.text.starts_with("optimizer") => {
            "call backward() before the optimizer's step, or run the forward again after it; detach() a state that is carried to the next step".into()
        }
        _ if write.is_out => "leave out= away, which gives a new tensor".into(),
        Some(name) if SWITCHED.contains(&name) => format!(
            "{name} gives a new tensor: leave the underscore, or inplace=True, away"
        ),
        Some(name) if PLACED.contains(&name) => "write to a clone() of it, or put it together from parts by torch.where or torch.stack; change weights after backward()".into(),
        Some(name) => {
            let operator = OPERATORS.iter().find(|(op, _)| *op == name);
            let shown = operator.map_or("and leaves this one as it is".to_owned(), |(_, sign)| {
                format!("(x = x {sign} y instead of x {sign}= y)")
            });
            format!("{name} gives a new tensor {shown}; or let {} change a clone()", write.text)
        }
        None => format!("let {} change a clone() of it, or write before the value is used", write.text),
    }
}

/// A description of tensors that an op refused, each with its name and the node it hangs on: shape
/// and dtype, and the line that made it or wrote to it last, where that was recorded. Nothing if no
/// line is known.
#[cold]
pub fn origins<'a>(
    arguments: impl Iterator<Item = (String, &'a Tensor, Option<Node>)>,
) -> Option<String> {
    // (Lines follow each other without a gap.)
    let mut report = Report { message: String::new(), names_a_line: true };
    let mut is_known = false;
    for (name, tensor, node) in arguments {
        let sizes: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        let what = format!("{name}: ({}{comma}) {}", sizes.join(", "), tensor.dtype().name());
        let write = tensor.version_counter().and_then(Version::last_write);
        let write = write.filter(|write| write.call_site.source_line().is_some());
        let node = node.filter(|node| node.call_site().source_line().is_some());
        is_known |= node.is_some() || write.is_some();
        report = match (node, write) {
            (Some(node), _) => {
                report.line(&format!("{what}, made by {} here", node.name()), node.call_site())
            }
            (None, Some(write)) => {
                report.line(&format!("{what}, written to by {} here", write.text), write.call_site)
            }
            (None, None) => Report { message: format!("{}\n  {what}", report.message), ..report },
        };
    }
    is_known.then(|| report.message.trim_start_matches('\n').to_owned())
}

/// Whether a path of edges leads from a root to a node.
fn leads(roots: &[Edge], target: &Node) -> bool {
    let mut seen = HashSet::new();
    let mut waiting: Vec<&Node> = roots.iter().filter_map(|root| root.node.as_ref()).collect();
    while let Some(node) = waiting.pop() {
        if node.is_same(target) {
            return true;
        }
        if seen.insert(node.id()) {
            waiting.extend(node.next_edges().iter().filter_map(|edge| edge.node.as_ref()));
        }
    }
    false
}

/// The error for a target that received no gradient.
#[cold]
pub(in crate::autograd) fn unused(roots: &[Edge], index: usize, target: &Edge) -> Error {
    let mut report = Report::new(format!(
        "The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
    ));
    if let Some(root) = roots.iter().find_map(|root| root.node.as_ref()) {
        report = report.node("of the output was made here", root);
    }
    let is_led_to = target.node.as_ref().is_some_and(|node| leads(roots, node));
    if let Some(node) = target.node.as_ref().filter(|node| node.leaf().is_none()) {
        let what = if is_led_to {
            format!("of input {index} was made here")
        } else {
            format!("of input {index}, which it does not lead to, was made here")
        };
        report = report.node(&what, node);
    }
    let hint = if is_led_to {
        format!(
            "the graph leads to input {index}, but a function on the way gave no gradient for it: does a backward return None?"
        )
    } else {
        format!(
            "nothing leads from input {index} to the output: was it detached, copied (`.data`, `.item()`, `torch.tensor`) or overwritten before it was used?"
        )
    };
    report.hint(&hint, "").error()
}

/// The error for a gradient with NaN.
#[cold]
pub(in crate::autograd) fn nan(node: &Node, output: usize) -> Error {
    Report::new(format!("Function '{}' returned nan values in its {output}th output.", node.name()))
        .node("was made here", node)
        .hint(
            "the slope is infinite or 0/0 at this value: add an epsilon, clamp the argument, or mask the input instead of the result",
            "",
        )
        .error()
}

/// The report of a write that is refused; `view` is the node that made the view it goes through.
pub(in crate::autograd) fn refused(message: impl Into<String>, view: Option<&Node>) -> Report {
    let report = Report::new(message).line("the write is here", CallSite::here());
    match view {
        Some(node) => report.node("made the view here", node),
        None => report,
    }
}

/// The report of the use of a view whose base was written to.
pub(in crate::autograd) fn outdated(
    message: impl Into<String>,
    view: &Tensor,
    node: Option<&Node>,
) -> Report {
    let mut report = Report::new(message);
    if let Some(write) = view.version_counter().and_then(Version::last_write) {
        report = report.line(&format!("{} changed its base here", write.text), write.call_site);
    }
    report = report.line("the view is used here", CallSite::here());
    match node {
        Some(node) => report.node("made the view here", node),
        None => report,
    }
}

/// The error for a change of sizes that gradients could not follow.
#[cold]
pub(crate) fn refused_resize() -> Error {
    refused("cannot resize variables that require grad", None)
        .hint("resize a detach()ed tensor, or use reshape, narrow or index_select, which are differentiated", "")
        .error()
}
