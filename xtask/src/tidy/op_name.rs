//! No string outside `ops` names an op: neither in the layers below nor in the binding, which has all from the registry.
//!
//! The names are read from the signatures in `crates/pullback/src/ops` (any string literal of the form
//! `name(...) -> ...`, and `alias("...")`). A literal of those folders that equals one of them is a finding, as is a path
//! of the binding through `pullback::ops` to anything but the registry. A word that merely coincides with a name, such as an
//! attribute, says so in a comment on its line or the one above: `// tidy: not an op`.

use super::source::Source;
use super::{Finding, family};
use std::collections::BTreeSet;

const OPS: &str = "crates/pullback/src/ops";
const BINDING: &str = "crates/python/src/";
/// The folders whose strings name no op.
const NAMELESS: [&str; 4] = [
    BINDING,
    "crates/pullback/src/tensor/",
    "crates/pullback/src/dispatch/",
    "crates/pullback/src/autograd/",
];
/// Files of them that do all the same, and why.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "crates/pullback/src/autograd/graph/blame.rs",
    "what errors advise in place of a write depends on which op wrote",
)];
const COINCIDENCE: &str = "tidy: not an op";

/// The names of all ops: with overload, without, and aliases.
pub(super) fn declared(sources: &[Source]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in sources.iter().filter(|source| source.path.starts_with(OPS)) {
        for literal in &source.literals {
            if source.code[..literal.at].trim_end().ends_with("alias(") {
                names.insert(literal.value.clone());
                continue;
            }
            let is_family = literal.value.contains('{') && literal.value.contains(") -> ");
            let members = if is_family { family::members(source, literal.at) } else { Vec::new() };
            let filled = members.iter().map(|member| member.fill(&literal.value));
            for text in filled.chain([literal.value.clone()]) {
                if let Some(name) = signature_name(&text) {
                    names.insert(name.to_owned());
                    names.insert(name.split('.').next().unwrap_or(name).to_owned());
                }
            }
        }
    }
    names
}

/// `add.Tensor` of `add.Tensor(Tensor self, Tensor other) -> Tensor`.
fn signature_name(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once('(')?;
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    (!name.is_empty() && name.chars().all(in_name) && rest.contains(") -> ")).then_some(name)
}

fn is_exception(path: &str) -> bool {
    EXCEPTIONS.iter().any(|(file, _)| *file == path)
}

/// A string that names an op where none may.
pub(super) fn literals(source: &Source, ops: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    if !NAMELESS.iter().any(|folder| source.path.starts_with(folder)) || is_exception(&source.path)
    {
        return;
    }
    named(source, ops, findings);
}

/// Every string of a file that names an op and does not say that it merely coincides.
fn named(source: &Source, ops: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    let lines: Vec<&str> = source.text.lines().collect();
    let code = source.code_without_tests();
    let coincidence = |line: usize| {
        lines[line.saturating_sub(2)..line.min(lines.len())].iter().any(|l| l.contains(COINCIDENCE))
    };
    for literal in &source.literals {
        // In a test the literal's quotes are blanked with it.
        if code.as_bytes()[literal.at] != b'"' || !ops.contains(&literal.value) {
            continue;
        }
        let line = source.line(literal.at);
        if !coincidence(line) {
            let message = format!("only `ops` names the op `{}`", literal.value);
            findings.push(Finding::new(source, line, message));
        }
    }
}

/// Files of the exceptions that name no op any more.
pub(super) fn unneeded(sources: &[Source]) -> Vec<String> {
    let ops = declared(sources);
    let names_one = |path: &str| {
        let mut found = Vec::new();
        let files = sources.iter().filter(|source| source.path == path);
        files.for_each(|source| named(source, &ops, &mut found));
        !found.is_empty()
    };
    let rows = EXCEPTIONS.iter().filter(|(path, _)| !names_one(path));
    rows.map(|(path, _)| format!("{path} names no op: take its row out of `tidy/op_name.rs`"))
        .collect()
}

/// A path of the binding into `ops`.
pub(super) fn paths(source: &Source, findings: &mut Vec<Finding>) {
    if !source.path.starts_with(BINDING) {
        return;
    }
    let code = source.code_without_tests();
    for (at, _) in code.match_indices("ops::") {
        let before = &code[..at];
        let is_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_standard = before.ends_with("std::") || before.ends_with("core::");
        if !is_word && !is_standard && !code[at + 5..].starts_with("registry") {
            let message = "the binding reaches into `ops`; only `ops::registry` is its business";
            findings.push(Finding::new(source, source.line(at), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> BTreeSet<String> {
        let text = "#[op(\"mul.Tensor(Tensor self, Tensor other) -> Tensor\",\n inplace, alias(\"multiply\"))]\n\
                    impl Mul { const X: &str = \"not(a signature)\"; }";
        declared(&[Source::new("crates/pullback/src/ops/binary.rs", text)])
    }

    fn check_in(path: &str, text: &str) -> Vec<usize> {
        let (source, mut findings) = (Source::new(path, text), Vec::new());
        literals(&source, &names(), &mut findings);
        paths(&source, &mut findings);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    fn check(text: &str) -> Vec<usize> {
        check_in("crates/python/src/tensor.rs", text)
    }

    #[test]
    fn names_come_from_signatures_and_aliases() {
        let names: Vec<String> = names().into_iter().collect();
        assert_eq!(names, ["mul", "mul.Tensor", "multiply"]);
    }

    #[test]
    fn families_have_the_names_of_their_members() {
        let text = "#[op(\"conv{N}d(Tensor x) -> Tensor\", each(Conv1d { N: 1 }, Conv2d { N: 2 }))]\nimpl Conv {}";
        let names = declared(&[Source::new("crates/pullback/src/ops/conv.rs", text)]);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["conv1d", "conv2d"]);
    }

    #[test]
    fn literals_that_name_an_op_are_found() {
        assert_eq!(check("\nlookup(\"mul\");\nlookup(\"mul.Tensor\");"), [2, 3]);
        assert!(check("error(\"mul of two tensors\"); let mul = 1; // \"mul\"").is_empty());
    }

    #[test]
    fn the_layers_below_the_ops_name_none_either() {
        let text = "if def.name == \"mul\" {}";
        for path in
            ["tensor/view.rs", "dispatch/call.rs", "autograd/batch.rs", "autograd/func/reverse.rs"]
        {
            assert_eq!(check_in(&format!("crates/pullback/src/{path}"), text), [1], "{path}");
        }
        for path in
            ["crates/pullback/src/ops/binary.rs", "crates/pullback/src/autograd/graph/blame.rs"]
        {
            assert!(check_in(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn coincidences_say_so_and_tests_are_free() {
        assert!(check("// tidy: not an op\nattribute(\"mul\");").is_empty());
        assert!(check("attribute(\"mul\"); // tidy: not an op").is_empty());
        assert!(check("#[cfg(test)]\nmod tests { fn f() { lookup(\"mul\"); } }").is_empty());
    }

    #[test]
    fn only_the_registry_is_reached() {
        assert_eq!(check("use pullback::ops::pointwise::binary::Mul;"), [1]);
        assert!(check("for op in pullback::ops::registry() {} my_ops::f();").is_empty());
        assert!(check("use std::ops::Deref; use core::ops::Range;").is_empty());
    }
}
