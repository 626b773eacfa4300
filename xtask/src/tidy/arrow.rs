//! The arrows between the modules of `crates/pullback/src`.
//!
//! `tensor <- dispatch <- autograd`: a layer uses itself and those before it. `ops` uses all of them and none of them names an
//! op, with one exception: `autograd/arithmetic.rs`, the handful of ops that the engine needs.
//! Names and methods count where they are defined (see `library`). Tests are free.

use super::Finding;
use super::library::{Arrow, module_of};
use super::source::Source;
use std::collections::BTreeSet;

const LAYERS: [&str; 3] = ["tensor", "dispatch", "autograd"];
/// The module that names the ops which the engine needs.
pub(super) const ARITHMETIC: &str = "autograd::arithmetic";
/// The modules that may ask for the list of all ops, without naming any.
const READS_REGISTRY: [&str; 1] = ["gradcheck"];

/// Items of a higher layer that a lower layer may use: module, item, reason.
const EXCEPTIONS: [(&str, &str, &str); 7] = [
    ("tensor::raw", "AccumulatorSlot", HOLDS),
    ("tensor::raw", "AutogradMeta", HOLDS),
    ("tensor::raw", "Node", HOLDS),
    ("tensor::display", "Tensor::grad_fn", SHOWS),
    ("tensor::display", "Tensor::requires_grad", SHOWS),
    ("tensor::display", "Tensor::tangent", SHOWS),
    ("tensor::display", "Tensor::batched", SHOWS),
];
/// The reason for the record of a tensor.
const HOLDS: &str = "it holds the fields of the layers above by type, without giving them meaning: a tensor is one allocation";

/// The reason for the text of a tensor.
const SHOWS: &str = "what is printed says where a tensor comes from";

/// A lower layer that uses a higher one, or any of them that names an op.
pub(super) fn layers(source: &Source, arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    let Some(module) = module_of(source) else { return };
    let Some(own) = layer(&module) else { return };
    for arrow in arrows.iter().filter(|arrow| !is_exception(&module, arrow)) {
        let is_above = |home: &String| layer(&place(home, arrow)).is_some_and(|used| used > own);
        if arrow.homes.iter().all(is_above) {
            let used = layer(&place(&arrow.homes[0], arrow)).unwrap_or(own);
            let message = format!(
                "`{}` is below `{}` and must not use it: {}",
                LAYERS[own],
                LAYERS[used],
                arrow.spelled()
            );
            findings.push(Finding::new(source, arrow.line, message));
        }
    }
}

/// A module outside `ops` that names an op.
pub(super) fn ops(source: &Source, arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    let Some(module) = module_of(source) else { return };
    let first = module.split("::").next().unwrap_or_default();
    // The crate's root assembles the modules, and `custom` has the names that ops of other crates
    // expand to: both may re-export.
    if matches!(first, "" | "custom" | "ops") || module == ARITHMETIC {
        return;
    }
    for arrow in arrows.iter().filter(|arrow| !is_exception(&module, arrow)) {
        let is_method = arrow.item.as_ref().is_some_and(|item| item.contains("::"));
        // Methods may be called by all other layers.
        if is_method && layer(&module).is_none() {
            continue;
        }
        let spelled = arrow.spelled();
        let is_registry = spelled.starts_with("crate::ops::registry");
        let is_op = |home: &String| {
            let place = place(home, arrow);
            place == "ops" || place.starts_with("ops::")
        };
        if arrow.homes.iter().all(is_op) && !(is_registry && READS_REGISTRY.contains(&first)) {
            let message = format!("only `ops` names an op: {spelled}");
            findings.push(Finding::new(source, arrow.line, message));
        }
    }
}

/// A home, or the item itself where the home is the crate's root.
fn place(home: &str, arrow: &Arrow) -> String {
    if home.is_empty() { arrow.item.clone().unwrap_or_default() } else { home.to_owned() }
}

fn is_exception(module: &str, arrow: &Arrow) -> bool {
    EXCEPTIONS.iter().any(|(of, item, _)| module == *of && arrow.item.as_deref() == Some(item))
}

fn layer(module: &str) -> Option<usize> {
    let first = module.split("::").next();
    LAYERS.iter().position(|layer| Some(*layer) == first)
}

/// Rows of the table that are not needed any more.
pub(super) fn unneeded(
    sources: &[Source],
    arrows: impl Fn(&Source) -> BTreeSet<Arrow>,
) -> Vec<String> {
    let is_used = |(of, item, _): &&(&str, &str, &str)| {
        let mut files = sources.iter().filter(|source| module_of(source).as_deref() == Some(of));
        files.any(|source| arrows(source).iter().any(|a| a.item.as_deref() == Some(item)))
    };
    let rows = EXCEPTIONS.iter().filter(|row| !is_used(row));
    rows.map(|(of, item, _)| {
        format!("{of} does not use {item}: take its row out of `tidy/arrow.rs`")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::library::Library;
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        let sources = [
            Source::new(
                "crates/pullback/src/ops/unary.rs",
                "impl Tensor { pub fn double(&self) {} }",
            ),
            Source::new(
                "crates/pullback/src/autograd/api.rs",
                "impl Tensor { pub fn backward(&self) {} }",
            ),
            Source::new(format!("crates/pullback/src/{path}"), text),
        ];
        let arrows = Library::read(&sources).arrows(&sources[2]);
        let mut findings = Vec::new();
        layers(&sources[2], &arrows, &mut findings);
        ops(&sources[2], &arrows, &mut findings);
        findings.into_iter().map(|f| format!("{}: {}", f.line, f.message)).collect()
    }

    #[test]
    fn a_layer_uses_itself_and_those_below() {
        assert!(
            check("autograd/engine.rs", "use crate::{tensor::Tensor, dispatch::call};").is_empty()
        );
        assert!(check("prof/record.rs", "use crate::autograd::Node;").is_empty());
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
        assert_eq!(check("dispatch/mod.rs", "fn f() { crate::autograd::api::g() }").len(), 1);
        assert_eq!(check("tensor.rs", "type X = crate::dispatch::Call;").len(), 1);
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
            check("prof/trace.rs", text),
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
        let source = [Source::new("crates/kernels/src/tensor.rs", "use crate::dispatch::x;")];
        assert!(Library::read(&source).arrows(&source[0]).is_empty());
    }

    #[test]
    fn methods_that_a_higher_layer_defines_are_found() {
        assert_eq!(
            check("tensor/view.rs", "fn f() {\n x.backward() }"),
            [
                "2: `tensor` is below `autograd` and must not use it: crate::autograd::api::Tensor::backward"
            ]
        );
        let found = ["1: only `ops` names an op: crate::ops::unary::Tensor::double"];
        for path in ["tensor/view.rs", "dispatch/call.rs", "autograd/engine/task.rs"] {
            assert_eq!(check(path, "fn f() { x.double() }"), found, "{path}");
        }
        for path in ["autograd/arithmetic.rs", "ops/binary.rs", "gradcheck/check.rs"] {
            assert!(check(path, "fn f() { x.double() }").is_empty(), "{path}");
        }
    }

    #[test]
    fn renames_and_globs_hide_nothing() {
        let found = ["1: only `ops` names an op: crate::ops::unary::double"];
        assert_eq!(check("autograd/a.rs", "use crate::ops::unary::double as d;"), found);
        let text = "use crate::ops as o;\nfn f() { o::unary::double() }";
        assert_eq!(check("autograd/a.rs", text).len(), 2);
    }
}
