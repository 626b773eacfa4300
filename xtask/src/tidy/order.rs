//! The reading order of the modules of `crates/pullback/src/autograd`: each uses only those before it.
//!
//! So there are no circles, and who reads the list from the top meets nothing that was not explained. Names and methods count
//! where they are defined (see `library`). A folder's `mod.rs` is its face: it hands on what the folder holds, and has no
//! place of its own.

use super::Finding;
use super::arrow::ARITHMETIC;
use super::library::{Arrow, module_of};
use super::source::Source;
use std::collections::BTreeSet;

const FOLDER: &str = "autograd::";

/// The list.
const ORDER: &[&str] = &[
    // What a thread works under.
    "thread::mode",
    "thread::level",
    "thread::saved_hooks",
    "thread::creation_hooks",
    "thread::captured",
    "thread::writes",
    "thread::dispatch_mode",
    "thread::autocast",
    "thread::vmap",
    "thread::state",
    // The ops that the engine needs. They lead back to `call`: this is the one door.
    "arithmetic",
    // The graph.
    "graph::counted",
    "graph::numbering",
    "graph::sequence",
    "graph::input_meta",
    "graph::hook",
    "graph::turn",
    "graph::accumulator",
    "graph::node",
    "graph::node_hook",
    "graph::current",
    "graph::blame",
    "graph::anomaly",
    "graph::creation",
    "graph::make",
    // What a tensor keeps.
    "variable::window",
    "variable::layout",
    "variable::replay",
    "variable::meta",
    "variable::noted",
    "variable::history",
    "variable::detach",
    "variable::replayed",
    "variable::refresh",
    "variable::tangent",
    "variable::view",
    "variable::grad_dtype",
    "variable::grad",
    "variable::guard",
    // What nodes save.
    "saved::packed",
    "saved::tensor",
    "saved::slot",
    "saved::inspect",
    "cycle",
    // Running a graph.
    "engine::request",
    "engine::arrival",
    "engine::state",
    "engine::fit",
    "engine::accumulate",
    "engine::rule",
    "engine::apply",
    "engine::masked",
    "engine::evaluate",
    "engine::running",
    "engine::task",
    "engine::device",
    "engine::plan",
    "engine::stretch",
    "engine::branches",
    "engine::survey",
    "engine::execute",
    // Batched tensors, recording, calls.
    "batch",
    "rebase",
    "record",
    "needs",
    "call",
    "each",
    "api",
    "checkpoint",
    "multi_hook",
    // Forward mode.
    "forward::pushforward",
    "forward::written",
    "forward::dual",
    "view_func",
    // Functions with derivatives of their own, and transforms of functions.
    "function::standard",
    "function::comm",
    "function::custom",
    "function::custom_jvp",
    "function::apply",
    "function::closure",
    "transform",
    "func::basis",
    "func::functionalize",
    "func::batch",
    "func::reverse",
    "func::forward",
    // Layers of calls beside the one that records.
    "cast",
    "outside",
    "torch_dispatch",
];

fn position(module: &str) -> Option<usize> {
    let name = module.strip_prefix(FOLDER)?;
    ORDER.iter().position(|listed| *listed == name)
}

/// Whether a module is a folder's face.
fn is_face(module: &str) -> bool {
    module.strip_prefix(FOLDER).is_none_or(|name| {
        ORDER
            .iter()
            .any(|listed| listed.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")))
    })
}

/// A module that uses one after it, or that is not in the list.
pub(super) fn reading(source: &Source, arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    let Some(module) = module_of(source).filter(|module| module.starts_with(FOLDER)) else {
        return;
    };
    if is_face(&module) {
        return;
    }
    let Some(own) = position(&module) else {
        let message =
            format!("`{module}` has no place in the reading order, `xtask/src/tidy/order.rs`");
        findings.push(Finding::new(source, 1, message));
        return;
    };
    for arrow in arrows.iter().filter(|arrow| arrow.item.is_some() && module != ARITHMETIC) {
        let is_later =
            |home: &String| home == "autograd" || position(home).is_some_and(|used| used > own);
        if arrow.homes.iter().all(is_later) {
            let message = format!("`{module}` is read before what it uses: {}", arrow.spelled());
            findings.push(Finding::new(source, arrow.line, message));
        }
    }
}

/// Names in the list that no file has.
pub(super) fn missing(sources: &[Source]) -> Vec<String> {
    let modules: BTreeSet<String> = sources.iter().filter_map(module_of).collect();
    let is_gone = |name: &&&str| !modules.contains(&format!("{FOLDER}{name}"));
    let gone = ORDER.iter().filter(is_gone);
    gone.map(|name| format!("the reading order of autograd names `{name}`, which is gone"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::library::Library;
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        let sources = [
            Source::new("crates/pullback/src/autograd/mod.rs", "mod engine;"),
            Source::new(
                "crates/pullback/src/autograd/engine/execute.rs",
                "pub fn execute() {} impl Node { fn ran(&self) {} }",
            ),
            Source::new(
                "crates/pullback/src/autograd/engine/mod.rs",
                "pub use execute::execute as run;",
            ),
            Source::new("crates/pullback/src/autograd/graph/node.rs", "pub struct Node;"),
            Source::new(format!("crates/pullback/src/autograd/{path}"), text),
        ];
        let arrows = Library::read(&sources).arrows(&sources[4]);
        let mut findings = Vec::new();
        reading(&sources[4], &arrows, &mut findings);
        findings.into_iter().map(|f| format!("{}: {}", f.line, f.message)).collect()
    }

    #[test]
    fn a_module_uses_those_before_it() {
        assert!(
            check("api.rs", "use super::engine::run; use super::graph::node::Node;").is_empty()
        );
        assert!(check("engine/mod.rs", "pub use super::engine::execute::execute;").is_empty());
    }

    #[test]
    fn a_module_that_uses_a_later_one_is_found_however_that_is_written() {
        let found = [
            "2: `autograd::graph::blame` is read before what it uses: crate::autograd::engine::execute::execute",
        ];
        for text in [
            "\nuse crate::autograd::engine::run;",
            "use super::super::engine;\nfn f() { engine::run() }",
        ] {
            assert_eq!(check("graph/blame.rs", text), found, "{text}");
        }
        let found = [
            "1: `autograd::saved::tensor` is read before what it uses: crate::autograd::engine::execute::Tensor::ran",
        ];
        assert_eq!(check("saved/tensor.rs", "fn f() { node.ran() }"), found);
    }

    #[test]
    fn what_the_folders_own_face_defines_is_nobodys() {
        assert_eq!(check("api.rs", "use super::helper;").len(), 1);
    }

    #[test]
    fn every_module_has_its_place() {
        assert_eq!(check("surprise.rs", "").len(), 1);
        assert!(missing(&[]).len() == ORDER.len());
        assert_eq!(ORDER.iter().collect::<BTreeSet<_>>().len(), ORDER.len());
    }
}
