//! The pages name only what there is: files and folders in backticks.
//!
//! A name counts that ends like a file of the project (`engine/task.rs`) or with a slash (`ops/sparse/`). It must be the end of
//! a path in the repository, so that a page may leave out the beginning where its text says it.

use crate::Result;
use std::fs;
use std::path::Path;

/// The pages whose names are checked. (The others are generated, or name files of programs.)
const PAGES: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/behaviour.md",
    "docs/differences.md",
    "docs/internals.md",
    "crates/macros/src/words.md",
];
const ENDINGS: [&str; 6] = [".rs", ".py", ".md", ".tsv", ".toml", ".txt"];
/// Hidden folders that belong to the project.
const KEPT_HIDDEN: [&str; 2] = [".cargo", ".ci"];
/// Where a build writes.
const BUILT: &str = "target/";

/// A finding for each name that is nowhere.
pub(super) fn names(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    list(root, "", &mut paths)?;
    let mut found = Vec::new();
    for page in PAGES {
        let text =
            fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        for (line, name) in missing(&text, &paths) {
            found.push(format!("{page}:{line}: there is no {name}"));
        }
    }
    Ok(found)
}

/// The names of a page that no path ends with, with their lines.
fn missing<'a>(page: &'a str, paths: &[String]) -> Vec<(usize, &'a str)> {
    let is_there = |name: &str| {
        let is_end = |path: &String| {
            path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        name.starts_with(BUILT) || paths.iter().any(is_end)
    };
    let mut found = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let quoted = line.split('`').skip(1).step_by(2);
        let names = quoted.filter(|text| is_name(text) && !is_there(text));
        found.extend(names.map(|name| (index + 1, name)));
    }
    found
}

fn is_name(text: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let is_file = ENDINGS.iter().any(|ending| text.len() > ending.len() && text.ends_with(ending));
    (is_file || text.len() > 1 && text.ends_with('/')) && text.chars().all(in_name)
}

/// A folder that no one wrote by hand, by its name.
fn is_written(folder: &str) -> bool {
    folder.starts_with('.') || folder == "target" || folder == "__pycache__"
}

/// All files, and all folders with a slash at their end, but those that a build, git or an environment writes.
fn list(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder))
        .map_err(|error| format!("cannot list {folder}: {error}"))?;
    for entry in entries.filter_map(std::result::Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}{name}");
        if !entry.path().is_dir() {
            paths.push(path);
        } else if KEPT_HIDDEN.contains(&name.as_str()) || !is_written(&name) {
            let path = format!("{path}/");
            list(root, &path, paths)?;
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nowhere_are_found_by_their_line() {
        let paths: Vec<String> =
            ["a/b/", "a/b/task.rs", "README.md"].map(str::to_owned).into_iter().collect();
        let page = "`b/task.rs` and `task.rs`\nnot `k.rs`, `x.rs()`, nor `ask.rs`; `b/`, `c/`, `README.md`";
        assert_eq!(missing(page, &paths), [(2, "k.rs"), (2, "ask.rs"), (2, "c/")]);
    }

    #[test]
    fn the_pages_keep_the_rule() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(names(root).unwrap(), Vec::<String>::new());
    }
}
