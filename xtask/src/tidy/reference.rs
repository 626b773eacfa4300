//! The paths by which one module of a crate refers to another, use trees and expressions alike.
//!
//! Only paths that start with `crate`, `super` or `self` are followed; they come out absolute, as segments from the
//! crate's root. Modules written inside a file do not shift `super`: the project has them for tests only.

/// An absolute path inside the crate, and the line of its first word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
}

/// Every reference in `code`, the code of the module `module` (its segments from the crate's root).
pub(super) fn references(code: &str, module: &[String]) -> Vec<Reference> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let starts = matches!(token.text, "crate" | "super" | "self")
            && tokens.get(at + 1).is_some_and(|next| next.text == "::")
            && (at == 0 || tokens[at - 1].text != "::");
        if starts {
            let mut paths = Vec::new();
            tree(&tokens, at, &[], &mut paths);
            let absolute = paths.into_iter().map(|path| absolute(&path, module));
            found.extend(absolute.map(|segments| Reference { line: token.line, segments }));
        }
    }
    // Inside the braces of a use tree `super::x` is met twice: as a part of the tree, and by itself.
    found.dedup();
    found
}

struct Token<'a> {
    text: &'a str,
    line: usize,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if in_word(c) {
            rest.find(|c| !in_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        if c == '\n' {
            line += 1;
        } else if !c.is_whitespace() {
            tokens.push(Token { text: &rest[..length], line });
        }
        at += length;
    }
    tokens
}

/// Reads the path or use tree at `at` into `paths`; returns the position behind it.
fn tree(tokens: &[Token<'_>], at: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = at;
    while let Some(token) = tokens.get(at) {
        if token.text == "{" {
            return group(tokens, at + 1, &path, paths);
        }
        if token.text != "*" && !token.text.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            break;
        }
        path.push(token.text.to_owned());
        at += 1;
        if tokens.get(at).is_none_or(|next| next.text != "::") {
            break;
        }
        at += 1;
    }
    paths.push(path);
    at
}

/// The members of a use tree's braces.
fn group(
    tokens: &[Token<'_>],
    at: usize,
    prefix: &[String],
    paths: &mut Vec<Vec<String>>,
) -> usize {
    let mut at = at;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "}" => return at + 1,
            "," => at += 1,
            // `x as y`: the new name is no path.
            "as" => at += 2,
            // Whatever else stands here is no use tree; leave it to the caller.
            text if !text.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '*') => {
                return at;
            }
            _ => at = tree(tokens, at, prefix, paths),
        }
    }
    at
}

fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut segments = module.to_vec();
    for (at, word) in path.iter().enumerate() {
        match word.as_str() {
            "crate" => segments.clear(),
            "super" => {
                segments.pop();
            }
            "self" if at == 0 || at + 1 == path.len() => {}
            _ => segments.push(word.clone()),
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str, module: &str) -> Vec<String> {
        let module: Vec<String> =
            module.split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect();
        references(code, &module).iter().map(|r| r.segments.join("::")).collect()
    }

    #[test]
    fn use_trees_are_opened() {
        assert_eq!(
            found("use crate::{a, b::{self, c as d}, e::*};", ""),
            ["a", "b", "b::c", "e::*"]
        );
    }

    #[test]
    fn paths_in_expressions_are_seen() {
        assert_eq!(found("let x = crate::a::f::<u8>(crate::b::C);", ""), ["a::f", "b::C"]);
        assert_eq!(found("$crate::a::f()", ""), ["a::f"]);
    }

    #[test]
    fn relative_paths_become_absolute() {
        assert_eq!(found("use super::b::C; use super::super::d;", "a::x"), ["a::b::C", "d"]);
        assert_eq!(found("use self::y::Z;", "a::x"), ["a::x::y::Z"]);
    }

    #[test]
    fn visibility_and_other_crates_are_no_references() {
        assert!(found("pub(crate) fn f() {} pub(super) use other::crate_name;", "a").is_empty());
        assert!(found("fn f(self) -> std::io::Result<()> { self.x }", "a").is_empty());
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(references("\n\nuse crate::a;", &[])[0].line, 3);
    }
}
