//! Which crates know which: the dependencies that the manifests of the workspace may name.
//!
//! The kernels know no tensor, one crate knows Python, and the developer's commands need nothing built. A manifest's
//! sections of dependencies are read line by line; each name before `=` or `.` counts.

use crate::Result;
use std::fs;
use std::path::Path;

/// A folder of a crate, and what it must not depend on (a prefix of names) with the reason.
const REFUSED: [(&str, &str, &str); 12] = [
    ("crates/schema", "", "the grammar of signatures needs nothing"),
    ("crates/macros", "pullback", "the macro knows the grammar only"),
    ("crates/kernels", "pullback", "kernels know no tensor"),
    ("crates/kernels", "pyo3", "kernels know no Python"),
    ("crates/fft", "pullback", "kernels know no tensor"),
    ("crates/fft", "pyo3", "kernels know no Python"),
    ("crates/pullback", "pyo3", "one crate knows Python, `crates/python`"),
    ("crates/pullback", "pullback-nn", "layers are made of the library, not the other way round"),
    ("crates/nn", "pyo3", "one crate knows Python, `crates/python`"),
    ("crates/extension", "pyo3", "one crate knows Python, `crates/python`"),
    ("crates/derive", "pullback", "the derive macro writes paths only"),
    ("xtask", "", "the developer's commands have no dependencies"),
];
/// Dependencies that are allowed all the same.
const ALLOWED: [(&str, &str); 2] =
    [("crates/macros", "pullback-schema"), ("crates/fft", "pullback-kernels")];

/// A finding for each refused dependency of the crates under `root`.
pub(super) fn refused(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (folder, prefix, reason) in REFUSED {
        let path = format!("{folder}/Cargo.toml");
        let text =
            fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        for (line, name) in dependencies(&text) {
            if name.starts_with(prefix) && !ALLOWED.contains(&(folder, name)) {
                found.push(format!("{path}:{line}: must not depend on {name}: {reason}"));
            }
        }
    }
    Ok(found)
}

/// The dependencies that a manifest names, those of tests excepted, with their lines.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end().trim_end_matches(']');
            is_inside = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
        } else if is_inside && !line.trim_start().starts_with('#') {
            let name = line.split(['=', '.']).next().unwrap_or_default().trim();
            if !name.is_empty() {
                found.push((index + 1, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dependencies_are_read_and_those_of_tests_are_not() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\n# pyo3 = 1\nhalf.workspace = true\n\
                        pyo3 = { version = \"1\" }\n[dev-dependencies]\nloom = \"0.7\"\n[build-dependencies]\nb = \"1\"\n";
        assert_eq!(dependencies(manifest), [(5, "half"), (6, "pyo3"), (10, "b")]);
    }

    #[test]
    fn the_workspace_keeps_the_rule() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(refused(root).unwrap(), Vec::<String>::new());
    }
}
