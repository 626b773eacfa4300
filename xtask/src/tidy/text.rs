//! Rules on one file's text: its size, its name, its opening comment, its safety comments.

use super::Finding;
use super::source::Source;

const LONGEST: usize = 800;
/// Files with a lower limit, because everybody reads them.
const CORES: [(&str, usize); 1] = [("crates/pullback/src/autograd/engine/task.rs", 400)];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["utils", "util", "helpers", "helper", "common", "misc", "shared"];
/// How far above an unsafe block its comment may start.
const NEARBY: usize = 10;

/// A file that has outgrown its subject.
pub(super) fn size(source: &Source, findings: &mut Vec<Finding>) {
    let lines = source.text.lines().count();
    let core = CORES.iter().find(|(path, _)| *path == source.path);
    let most = core.map_or(LONGEST, |(_, most)| *most);
    if lines > most {
        let message = format!("{lines} lines; this file has at most {most}: split it by subject");
        findings.push(Finding::new(source, most + 1, message));
    }
}

/// A file or folder whose name is no subject. `utils` is allowed in the Python package, and `common` in the older
/// names of mixed precision: PyTorch's users import them.
pub(super) fn file_name(source: &Source, findings: &mut Vec<Finding>) {
    let stem = source.path.rsplit_once('.').map_or(source.path.as_str(), |(stem, _)| stem);
    for name in stem.split('/') {
        let name = name.trim_start_matches('_');
        let pytorch = source.path.starts_with("python/") && name == "utils"
            || source.path.ends_with("cuda/amp/common.py");
        if EMPTY_NAMES.contains(&name) && !pytorch {
            findings.push(Finding::new(source, 1, format!("`{name}` names no subject: rename it")));
        }
    }
}

/// A module that does not say what it is. (The mistakes of an op's author, each a file of a few lines, are named by their files.)
pub(super) fn opening_comment(source: &Source, findings: &mut Vec<Finding>) {
    if source.path.contains("/refused/") {
        return;
    }
    let first = source.text.lines().find(|line| !line.trim().is_empty());
    if !first.is_some_and(|line| line.starts_with("//!")) {
        findings.push(Finding::new(
            source,
            1,
            "a module opens with a `//!` comment: what it is, what not",
        ));
    }
}

/// An unsafe block or implementation without the reason why it is sound.
pub(super) fn safety_comments(source: &Source, findings: &mut Vec<Finding>) {
    let lines: Vec<&str> = source.text.lines().collect();
    for (at, _) in source.code.match_indices("unsafe") {
        let before = source.code[..at].chars().next_back();
        let after = source.code[at + "unsafe".len()..].trim_start();
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if is_part || !(after.starts_with('{') || after.starts_with("impl")) {
            continue;
        }
        let line = source.line(at);
        let near = &lines[line.saturating_sub(NEARBY + 1)..line];
        if !near.iter().any(|line| line.contains("SAFETY:")) {
            findings.push(Finding::new(source, line, "unsafe without a `// SAFETY:` comment"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Source, &mut Vec<Finding>), path: &str, text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        rule(&Source::new(path, text), &mut findings);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_has_at_most_800_lines_and_the_engines_core_half_of_that() {
        assert!(lines(size, "crates/a/src/b.rs", &"\n".repeat(800)).is_empty());
        assert_eq!(lines(size, "python/pullback/b.py", &"\n".repeat(801)), [801]);
        let core = CORES[0].0;
        assert!(lines(size, core, &"\n".repeat(400)).is_empty());
        assert_eq!(lines(size, core, &"\n".repeat(401)), [401]);
    }

    #[test]
    fn names_without_a_subject_are_found() {
        assert_eq!(lines(file_name, "crates/a/src/utils.rs", ""), [1]);
        assert_eq!(lines(file_name, "crates/a/src/common/mod.rs", ""), [1]);
        assert_eq!(lines(file_name, "python/pullback/_helpers.py", ""), [1]);
        assert!(lines(file_name, "python/pullback/utils/data/__init__.py", "").is_empty());
        assert!(lines(file_name, "crates/a/src/commonality.rs", "").is_empty());
    }

    #[test]
    fn a_module_opens_with_its_comment() {
        assert!(lines(opening_comment, "a.rs", "\n//! A.\n").is_empty());
        assert_eq!(lines(opening_comment, "a.rs", "// A.\n//! B.\n"), [1]);
        assert_eq!(lines(opening_comment, "a.rs", ""), [1]);
    }

    #[test]
    fn unsafe_code_says_why_it_is_sound() {
        assert_eq!(lines(safety_comments, "a.rs", "fn f() {\n    unsafe { g() }\n}"), [2]);
        assert_eq!(lines(safety_comments, "a.rs", "unsafe impl Send for X {}"), [1]);
        assert!(lines(safety_comments, "a.rs", "// SAFETY: x.\nunsafe { g() }").is_empty());
        assert!(lines(safety_comments, "a.rs", "unsafe { g() } // SAFETY: x.").is_empty());
        let far = format!("// SAFETY: x.\n{}unsafe {{ g() }}", "a();\n".repeat(NEARBY));
        assert_eq!(lines(safety_comments, "a.rs", &far), [NEARBY + 2]);
    }

    #[test]
    fn unsafe_declarations_and_words_need_no_safety_comment() {
        assert!(lines(safety_comments, "a.rs", "unsafe fn f();").is_empty());
        assert!(lines(safety_comments, "a.rs", "// unsafe { }\nlet x = \"unsafe {\";").is_empty());
        assert!(lines(safety_comments, "a.rs", "fn not_unsafe() { not_unsafe {} }").is_empty());
    }
}
