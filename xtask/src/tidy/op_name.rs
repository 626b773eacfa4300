//! `crates/python` names no op: everything Python sees of an op comes from the registry.
//!
//! The names are read from the signatures in `crates/pullback/src/ops` (any string literal of the form
//! `name(...) -> ...`, and `alias("...")`). A literal of the binding that equals one of them is a finding, as is a path
//! through `pullback::ops` to anything but the registry. A word that merely coincides with a name, such as an
//! attribute, says so in a comment on its line or the one above: `// tidy: not an op`.

use super::source::Source;
use super::{Finding, family};
use std::collections::BTreeSet;

const OPS: &str = "crates/pullback/src/ops";
const BINDING: &str = "crates/python/src/";
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

/// An op named by the binding.
pub(super) fn binding(source: &Source, ops: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    if !source.path.starts_with(BINDING) {
        return;
    }
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
            let message = format!("the binding names the op `{}`", literal.value);
            findings.push(Finding::new(source, line, message));
        }
    }
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

    fn check(text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        binding(&Source::new("crates/python/src/tensor.rs", text), &names(), &mut findings);
        findings.into_iter().map(|finding| finding.line).collect()
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
