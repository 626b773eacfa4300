//! The arrows between the modules of `crates/pullback/src`.
//!
//! `tensor <- dispatch <- autograd <- transforms`: a layer uses itself and those before it. `ops` uses all of them and
//! none of them names an op, with one exception: `autograd/arithmetic.rs`, the handful of ops that the engine needs.
//! Tests are free.

use super::Finding;
use super::reference::references;
use super::source::Source;

const LIBRARY: &str = "crates/pullback/src/";
const LAYERS: [&str; 4] = ["tensor", "dispatch", "autograd", "transforms"];
/// The modules that may ask for the list of all ops, without naming any.
const READS_REGISTRY: [&str; 1] = ["gradcheck"];

/// The record of a tensor holds the fields of the layers above by type, without giving them meaning, so that a
/// tensor is one allocation.
const HOLDS_FIELDS: (&str, [&str; 3]) =
    ("crates/pullback/src/tensor/raw.rs", ["AccumulatorSlot", "Meta", "Node"]);

/// A lower layer that uses a higher one.
pub(super) fn layers(source: &Source, findings: &mut Vec<Finding>) {
    let Some(module) = module(source) else { return };
    let Some(own) = module.first().and_then(|name| layer(name)) else { return };
    for reference in references(&source.code_without_tests(), &module) {
        let Some(used) = reference.segments.first().and_then(|name| layer(name)) else { continue };
        let is_field = source.path == HOLDS_FIELDS.0
            && reference
                .segments
                .get(1)
                .is_some_and(|name| HOLDS_FIELDS.1.contains(&name.as_str()));
        if used > own && !is_field {
            let message = format!(
                "`{}` is below `{}` and must not use it: crate::{}",
                LAYERS[own],
                LAYERS[used],
                reference.segments.join("::")
            );
            findings.push(Finding::new(source, reference.line, message));
        }
    }
}

/// A module outside `ops` that names an op.
pub(super) fn ops(source: &Source, findings: &mut Vec<Finding>) {
    let Some(module) = module(source) else { return };
    let names: Vec<&str> = module.iter().map(String::as_str).collect();
    // The crate's root assembles the modules; it may re-export what they hold.
    if matches!(names[..], [] | ["ops", ..] | ["autograd", "arithmetic", ..]) {
        return;
    }
    let reads_registry = READS_REGISTRY.contains(&names[0]);
    for reference in references(&source.code_without_tests(), &module) {
        let segments: Vec<&str> = reference.segments.iter().map(String::as_str).collect();
        let allowed = match segments[..] {
            ["ops", "registry", ..] => reads_registry,
            ["ops", ..] => false,
            _ => true,
        };
        if !allowed {
            let message = format!("only `ops` names an op: crate::{}", segments.join("::"));
            findings.push(Finding::new(source, reference.line, message));
        }
    }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

/// The module a file of the library holds, as segments from the crate's root; none for tests and other crates.
fn module(source: &Source) -> Option<Vec<String>> {
    let path = source.path.strip_prefix(LIBRARY)?.strip_suffix(".rs")?;
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    if segments.iter().any(|segment| segment == "tests") {
        return None;
    }
    if segments.last().is_some_and(|last| last == "mod" || last == "lib") {
        segments.pop();
    }
    Some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(format!("{LIBRARY}{path}"), text);
        let mut findings = Vec::new();
        layers(&source, &mut findings);
        ops(&source, &mut findings);
        findings.into_iter().map(|f| format!("{}: {}", f.line, f.message)).collect()
    }

    #[test]
    fn a_layer_uses_itself_and_those_below() {
        assert!(
            check("autograd/engine.rs", "use crate::{tensor::Tensor, dispatch::call};").is_empty()
        );
        assert!(check("transforms/vmap.rs", "use crate::autograd::Node;").is_empty());
        assert!(
            check("tensor/view.rs", "use crate::error::Result; use super::Storage;").is_empty()
        );
    }

    #[test]
    fn a_layer_that_looks_up_is_found_however_it_is_written() {
        let found = check("tensor/view.rs", "\nuse crate::{error::Result, dispatch::call};");
        assert_eq!(
            found,
            ["2: `tensor` is below `dispatch` and must not use it: crate::dispatch::call"]
        );
        assert_eq!(check("tensor/view.rs", "use super::super::autograd::Node;").len(), 1);
        assert_eq!(check("dispatch/mod.rs", "fn f() { crate::transforms::vmap::g() }").len(), 1);
        assert_eq!(check("autograd.rs", "type X = crate::transforms::Layer;").len(), 1);
    }

    #[test]
    fn only_ops_and_the_engines_arithmetic_name_an_op() {
        let text = "use crate::ops::pointwise::binary::Add;";
        assert!(check("ops/reduce.rs", text).is_empty());
        assert!(check("autograd/arithmetic.rs", text).is_empty());
        assert!(check("lib.rs", "pub use crate::ops::random::factory;").is_empty());
        assert_eq!(check("autograd/engine.rs", text).len(), 1);
        assert_eq!(check("profiler.rs", text).len(), 1);
    }

    #[test]
    fn the_registry_is_for_those_who_loop_over_it() {
        let text = "for op in crate::ops::registry() {}";
        assert!(check("gradcheck/mod.rs", text).is_empty());
        assert!(check("gradcheck.rs", text).is_empty());
        assert_eq!(
            check("transforms/vmap.rs", text),
            ["1: only `ops` names an op: crate::ops::registry"]
        );
    }

    #[test]
    fn tests_comments_and_other_crates_are_free() {
        let test = "#[cfg(test)]\nmod tests { use crate::ops::pointwise::binary::Add; }";
        assert!(check("tensor/view.rs", test).is_empty());
        assert!(check("tensor/view.rs", "// see crate::ops::shape::view").is_empty());
        assert!(
            check("tensor/tests/view.rs", "use crate::ops::pointwise::binary::Add;").is_empty()
        );
        let source = Source::new("crates/kernels/src/tensor.rs", "use crate::dispatch::x;");
        let mut findings = Vec::new();
        layers(&source, &mut findings);
        assert!(findings.is_empty());
    }
}
