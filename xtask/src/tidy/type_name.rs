//! One name, one meaning: no two types of a crate have the same name, also where modules would keep them apart.
//!
//! Counted are structs, enums, traits, unions and aliases of the crate's own code; not its tests, not the types that belong to
//! a trait or an implementation (`type Output = ...`), and not names that a macro puts together.

use super::Finding;
use super::reference::{Token, tokens};
use super::source::Source;
use std::collections::BTreeMap;

/// Names that several types of a crate may have, and why.
const EXCEPTIONS: [(&str, &str); 1] = [("Result", "the usual alias for the error of a module")];

/// A type's name and the line where it is declared.
type Declaration<'a> = (&'a str, usize);

/// The crate whose code a file is; `None` for tests, examples and Python.
fn crate_of(source: &Source) -> Option<&str> {
    let (name, file) = source.path.split_once("/src/")?;
    let is_test = file.ends_with("tests.rs") || file.contains("tests/");
    (source.is_rust() && !is_test).then_some(name)
}

/// The types that `tokens` declare; `type` only where it stands at the beginning of one of `lines`, which rustfmt has set:
/// indented ones belong to a trait or an implementation.
fn declared<'a>(tokens: &[Token<'a>], lines: &[&str]) -> Vec<Declaration<'a>> {
    let declares = |at: usize| match tokens[at].text {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => lines.get(tokens[at].line - 1).is_some_and(|line| !line.starts_with(' ')),
        _ => false,
    };
    let pairs = tokens.windows(2).enumerate();
    pairs
        .filter(|(at, pair)| declares(*at) && pair[1].is_word())
        .map(|(_, pair)| (pair[1].text, pair[1].line))
        .collect()
}

/// Types whose name another type of their crate has: all of them, each with the place of the first.
pub(super) fn shared(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut firsts: BTreeMap<(String, String), (String, usize)> = BTreeMap::new();
    for source in sources {
        let Some(of) = crate_of(source) else { continue };
        let code = source.code_without_tests();
        let lines: Vec<&str> = code.lines().collect();
        for (name, line) in declared(&tokens(&code), &lines) {
            if EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
                continue;
            }
            let key = (of.to_owned(), name.to_owned());
            let Some((path, first)) = firsts.get(&key) else {
                firsts.insert(key, (source.path.clone(), line));
                continue;
            };
            let message = format!(
                "`{name}` is a type of {path}, line {first}, too: a name has one meaning in a crate"
            );
            findings.push(Finding::new(source, line, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(*path, *text)).collect();
        let mut findings = Vec::new();
        shared(&sources, &mut findings);
        findings.iter().map(|f| format!("{}:{} {}", f.path, f.line, f.message)).collect()
    }

    #[test]
    fn two_types_of_a_crate_have_two_names() {
        let files = [
            ("crates/a/src/x.rs", "pub struct Plan;\nenum Kind {}\n"),
            ("crates/a/src/y/z.rs", "\npub(super) type Plan<'a> = &'a str;\n"),
            ("crates/b/src/lib.rs", "trait Kind {}\n"),
        ];
        let message = "crates/a/src/y/z.rs:2 `Plan` is a type of crates/a/src/x.rs, line 1, too: \
            a name has one meaning in a crate";
        assert_eq!(found(&files), [message]);
        let twice = [("xtask/src/main.rs", "fn f() { struct Guard; }\nfn g() { struct Guard; }\n")];
        assert_eq!(found(&twice).len(), 1);
    }

    #[test]
    fn tests_associated_types_macros_and_comments_declare_none() {
        let files = [
            ("crates/a/src/x.rs", "struct A;\n// struct A;\nimpl T for A {\n    type A = u8;\n}\n"),
            ("crates/a/src/y.rs", "macro_rules! m { ($n:ident) => { struct $n; } }\n"),
            ("crates/a/src/w.rs", "#[cfg(test)]\nmod tests {\n    struct A;\n}\n"),
            ("crates/a/src/tests.rs", "struct A;\n"),
            ("crates/a/tests/x.rs", "struct A;\n"),
            ("crates/a/src/p.rs", "type Result<T> = std::result::Result<T, A>;\n"),
            ("crates/a/src/q.rs", "type Result<T> = std::result::Result<T, u8>;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
