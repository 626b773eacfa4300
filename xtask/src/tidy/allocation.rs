//! Memory whose size depends on shapes or data is asked for in ways that can be refused (`kernels/src/memory.rs`).
//!
//! The standard library's lists end the process where there is no memory. This rule finds the usual ways to make such a list.
//! What holds as many items as there are dimensions or arguments is known by its type or by the words of the statement; for
//! everything else that is bounded a comment beside it says why: `// bounded: by the rank`. A text cannot say what a list
//! holds, so the rule is looser about collected lists outside of the kernels (they are of tensors and arguments mostly);
//! `crates/pullback/tests/out_of_memory` finds at run time what it misses.

use super::Finding;
use super::source::Source;

/// The folders where lists can be long.
const FOLDERS: [&str; 7] = [
    "crates/kernels/src/",
    "crates/fft/src/",
    "crates/pullback/src/tensor/",
    "crates/pullback/src/ops/",
    "crates/pullback/src/dispatch/",
    "crates/pullback/src/autograd/",
    "crates/python/src/",
];
/// The files that implement the allocations which can fail.
const OWN: [&str; 3] = [
    "crates/kernels/src/memory.rs",
    "crates/pullback/src/tensor/memory.rs",
    "crates/python/src/allocator.rs",
];
/// Calls that take memory for as many items as they are told.
const CALLS: [&str; 12] = [
    "Vec::with_capacity(",
    "String::with_capacity(",
    ".to_vec()",
    ".into_owned()",
    ".reserve(",
    ".reserve_exact(",
    ".into_boxed_slice()",
    "::from_elem(",
    "MemBuffer::new(",
    // Stable sorts take a buffer of half the length.
    ".sort()",
    ".sort_by(",
    ".sort_by_key(",
];
/// Further such calls in kernels, whose lists are of numbers.
const CALLS_OF_KERNELS: [&str; 4] = [".extend(", ".extend_from_slice(", ".concat()", ".resize("];
/// Words of statements about as many items as there are dimensions, or arguments.
const BOUNDED: [&str; 21] = [
    "SmallVec",
    "smallvec",
    "Dims",
    "PerDim",
    "TensorVec",
    "Tangents",
    "ndim",
    "rank",
    "dims",
    "spatial",
    "sparse_dim",
    "strides",
    "args",
    "inputs",
    "outputs",
    "tensors",
    "params",
    "lists",
    "aliases",
    "to_le_bytes",
    "contiguous_strides",
];
/// Element types of collected lists of numbers.
const NUMBERS: [&str; 13] = [
    "i64", "f64", "f32", "usize", "isize", "u64", "u32", "u16", "u8", "i32", "Bool", "Scalar", "T",
];
/// The comment that a list is short where the rule cannot know that.
const MARK: &str = "bounded:";

/// Names the places that insist on memory.
pub(super) fn insistent(source: &Source, findings: &mut Vec<Finding>) {
    let is_checked = FOLDERS.iter().any(|folder| source.path.starts_with(folder));
    let is_test = source.path.ends_with("/tests.rs");
    if !is_checked || is_test || OWN.contains(&source.path.as_str()) {
        return;
    }
    let code = without_samples(source.code_without_tests());
    let is_kernel = source.path.starts_with("crates/kernels/");
    let mut report = |at: usize, what: &str| {
        // (Tensors have a `to_vec` of their own, which can fail.)
        let is_own = code[at..].starts_with(".to_vec()?");
        if !is_own && !has_bound(&code, at) && !is_marked(source, &code, at) {
            let what = what.trim_matches(['.', '(', ':']);
            let message = format!(
                "`{what}` ends the process where there is no memory: use `memory::..`, or say `// {MARK} by ..`"
            );
            findings.push(Finding::new(source, source.line(at), message));
        }
    };
    let extra: &[&str] = if is_kernel { &CALLS_OF_KERNELS } else { &[] };
    for call in CALLS.iter().chain(extra) {
        places(&code, call).for_each(|at| report(at, call));
    }
    for at in places(&code, "vec![").filter(|&at| is_repeated(&code[at + 4..])) {
        report(at, "vec![..; n]");
    }
    for at in places(&code, ".collect").filter(|&at| is_kernel || holds_numbers(&code, at)) {
        report(at, "collect");
    }
}

/// The positions of `what`, except as the end of another name.
fn places<'a>(code: &'a str, what: &'a str) -> impl Iterator<Item = usize> + 'a {
    let follows_name = |at: usize| {
        let before = code[..at].chars().next_back();
        what.starts_with(char::is_alphabetic)
            && before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    };
    code.match_indices(what).map(|(at, _)| at).filter(move |&at| !follows_name(at))
}

/// The statement around a place: between semicolons and braces, those in brackets left out.
fn statement(code: &str, at: usize) -> &str {
    let bytes = code.as_bytes();
    let (mut start, mut depth) = (at, 0_usize);
    while start > 0 {
        match bytes[start - 1] {
            b')' | b']' => depth += 1,
            b'(' | b'[' => depth = depth.saturating_sub(1),
            b';' | b'{' | b'}' if depth == 0 => break,
            _ => {}
        }
        start -= 1;
    }
    let (mut end, mut depth) = (at, 0_isize);
    while end < bytes.len() && (bytes[end] != b';' || depth > 0) {
        depth += isize::from(matches!(bytes[end], b'(' | b'['));
        depth -= isize::from(matches!(bytes[end], b')' | b']'));
        end += 1;
    }
    &code[start..end]
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn has_bound(code: &str, at: usize) -> bool {
    words(statement(code, at)).any(|word| BOUNDED.contains(&word))
}

/// Whether a comment in the statement, or on the line before it, says why.
fn is_marked(source: &Source, code: &str, at: usize) -> bool {
    let statement = statement(code, at);
    let start = statement.as_ptr().addr() - code.as_ptr().addr();
    let first = start + statement.len() - statement.trim_start().len();
    let (first, last) = (source.line(first.min(at)), source.line(at));
    let near = source.text.lines().skip(first.saturating_sub(2)).take(last + 2 - first.max(2));
    near.into_iter().any(|line| line.contains(MARK))
}

/// Whether the brackets that the text begins with hold `value; length` with a length that is no number or constant.
fn is_repeated(text: &str) -> bool {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' if depth == 1 => return false,
            b']' | b')' | b'}' => depth -= 1,
            b';' if depth == 1 => {
                let length = text[at + 1..].split(']').next().unwrap_or_default().trim();
                let is_fixed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                return !length.chars().all(is_fixed);
            }
            _ => {}
        }
    }
    false
}

/// Whether the statement says that a list or a table of numbers is collected.
fn holds_numbers(code: &str, at: usize) -> bool {
    let statement = statement(code, at);
    ["Vec<", "Box<[", "HashMap<", "HashSet<", "BTreeMap<", "BTreeSet<"].iter().any(|list| {
        statement.match_indices(list).any(|(at, _)| {
            let held = statement[at + list.len()..].trim_start_matches(['(', '[']);
            words(held).next().is_some_and(|word| NUMBERS.contains(&word))
        })
    })
}

/// The code without the functions that make samples, which are small.
fn without_samples(code: String) -> String {
    let mut bytes = code.clone().into_bytes();
    for (at, _) in code.match_indices("fn ") {
        let name = words(&code[at + 3..]).next().unwrap_or_default();
        let Some(opening) = code[at..].find('{').map(|length| at + length) else { continue };
        if !name.contains("sample") || code[at..opening].contains(';') {
            continue;
        }
        let mut depth = 0_usize;
        for byte in &mut bytes[opening..] {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => break,
                b'}' => depth -= 1,
                b'\n' => continue,
                _ => {}
            }
            if depth > 1 || *byte != b'{' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        insistent(&Source::new(path, text), &mut findings);
        findings.iter().map(|finding| finding.line).collect()
    }

    fn in_kernel(text: &str) -> Vec<usize> {
        lines("crates/kernels/src/a.rs", text)
    }

    fn in_op(text: &str) -> Vec<usize> {
        lines("crates/pullback/src/ops/a.rs", text)
    }

    #[test]
    fn lists_of_any_length_are_found() {
        for text in [
            "let a = vec![0; n];",
            "let a = vec![[0; 3]; n * 2];",
            "let a: Vec<u8> = Vec::with_capacity(n);",
            "let a = x.to_vec();",
            "a.resize(n, 0);",
            "a.extend(more);",
            "a.sort_by_key(|&at| keys[at]);",
            "let a: Vec<_> = (0..n).collect();",
        ] {
            assert_eq!(in_kernel(text), [1], "{text}");
        }
        assert_eq!(in_op("let a: Vec<i64> = (0..n)\n    .collect();"), [2]);
        assert_eq!(in_op("let a = (0..n).collect::<Vec<(i64, f64)>>();"), [1]);
    }

    #[test]
    fn short_lists_are_known_by_words_and_comments() {
        for text in [
            "let a = vec![0; 3];",
            "let a = vec![0; STATE_SIZE];",
            "let a = vec![x, y];",
            "let a: SmallVec<[i64; 6]> = shape.iter().collect();",
            "let a = vec![0; self.ndim()];",
            "let a = x.to_vec::<f64>()?;",
            "let a = memory::with_capacity(n)?;",
            "// bounded: by the grain\nlet a = vec![0; n];",
            "let a = vec![0; n]; // bounded: by the grain",
            "// bounded: by the grain\nlet a: Vec<i64> = list\n    .iter()\n    .collect();",
            "let a = x.to_vec()?;",
            "#[cfg(test)]\nmod tests { fn f() { vec![0; n]; } }",
        ] {
            assert!(in_kernel(text).is_empty(), "{text}");
        }
        assert!(in_op("let a: Vec<Tensor> = list.iter().collect();").is_empty());
        assert!(in_op("fn samples(s: &S) -> V { let a = vec![0; n]; { b.to_vec() } }").is_empty());
        assert_eq!(in_op("fn samples() {}\nfn f() { let a = vec![0; n]; }"), [2]);
        assert!(lines("crates/schema/src/a.rs", "let a = vec![0; n];").is_empty());
    }
}
