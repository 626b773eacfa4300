//! The paths that a source writes, use trees and expressions alike, and the methods that it calls.
//!
//! What they mean is `library`'s business. Modules written inside a file do not shift `super`: the project has them for
//! tests only.

/// A path as it is written, its first word, and the name that it gives what it leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// In a use tree: by which name the module knows it; `*` for all names.
    pub(super) name: Option<String>,
}

/// A word of code, or a sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    }
}

/// Every path of two segments or more in code, and every use.
pub(super) fn references(tokens: &[Token<'_>]) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let follows = |text| at > 0 && tokens[at - 1].text == text;
        let is_use = tokens[at].text == "use" && tokens.get(at + 1).is_some_and(Token::is_word);
        if is_use || tokens[at].text == "use" && tokens.get(at + 1).is_some_and(|t| t.text == "{") {
            at = tree(tokens, at + 1, &[], &mut found);
        } else if tokens[at].is_word() && !follows("::") && !follows(".") {
            at = path(tokens, at, &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads the path of an expression or a type at `at`; returns the position behind it.
fn path(tokens: &[Token<'_>], at: usize, found: &mut Vec<Reference>) -> usize {
    let line = tokens[at].line;
    let mut segments = vec![tokens[at].text.to_owned()];
    let mut end = at + 1;
    while tokens.get(end).is_some_and(|t| t.text == "::")
        && tokens.get(end + 1).is_some_and(Token::is_word)
    {
        segments.push(tokens[end + 1].text.to_owned());
        end += 2;
    }
    // `pub(in crate::a)` says who may see an item.
    let is_visibility = at > 1 && tokens[at - 1].text == "in" && tokens[at - 2].text == "(";
    if segments.len() > 1 && !is_visibility {
        found.push(Reference { line, segments, name: None });
    }
    end
}

/// Reads the use tree at `at`; returns the position behind it.
fn tree(tokens: &[Token<'_>], at: usize, prefix: &[String], found: &mut Vec<Reference>) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = at;
    let line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => return group(tokens, at + 1, &segments, found),
            "::" => at += 1,
            "*" => {
                found.push(Reference { line, segments, name: Some("*".to_owned()) });
                return at + 1;
            }
            _ if token.is_word() => {
                segments.push(token.text.to_owned());
                at += 1;
                if tokens.get(at).is_none_or(|next| next.text != "::") {
                    break;
                }
            }
            _ => break,
        }
    }
    // `b::{self}` is `b`.
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let mut name = segments.last().cloned();
    if tokens.get(at).is_some_and(|next| next.text == "as") {
        name = tokens.get(at + 1).map(|next| next.text.to_owned());
        at += 2;
    }
    if !segments.is_empty() {
        found.push(Reference { line, segments, name });
    }
    at
}

/// The members of a use tree's braces.
fn group(tokens: &[Token<'_>], at: usize, prefix: &[String], found: &mut Vec<Reference>) -> usize {
    let mut at = at;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "}" => return at + 1,
            "," => at += 1,
            _ if token.is_word() || matches!(token.text, "*" | "{") => {
                at = tree(tokens, at, prefix, found);
            }
            _ => return at,
        }
    }
    at
}

/// The words and signs of code.
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        let show = |r: Reference| match r.name {
            Some(name) if Some(&name) != r.segments.last() => {
                format!("{} as {name}", r.segments.join("::"))
            }
            _ => r.segments.join("::"),
        };
        references(&tokens(code)).into_iter().map(show).collect()
    }

    #[test]
    fn use_trees_are_opened() {
        assert_eq!(
            found("use crate::{a, b::{self, c as d}, e::*};"),
            ["crate::a", "crate::b", "crate::b::c as d", "crate::e as *"]
        );
        assert_eq!(found("use {crate::a::b, super::c};"), ["crate::a::b", "super::c"]);
        assert_eq!(found("pub use a::b as c; x"), ["a::b as c"]);
    }

    #[test]
    fn paths_in_expressions_are_seen() {
        assert_eq!(found("let x = crate::a::f::<u8>(b::C);"), ["crate::a::f", "b::C"]);
        assert_eq!(found("$crate::a::f()"), ["crate::a::f"]);
    }

    #[test]
    fn visibility_captures_and_fields_are_no_references() {
        assert!(found("pub(crate) fn f() {} pub(in crate::a) fn g() {}").is_empty());
        assert!(found("fn f() -> impl Fn() + use<F> { x.y }").is_empty());
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(references(&tokens("\n\nuse crate::a;"))[0].line, 3);
    }
}
