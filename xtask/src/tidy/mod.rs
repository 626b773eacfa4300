//! `cargo xtask tidy`: the rules of the project that no compiler knows.
//!
//! Each rule reads text, not types: it is quick, it needs nothing built, and it can be fooled by someone who tries.
//! What rustc, clippy, ruff or mypy can check is theirs. A rule is a function from sources to findings; [`findings`]
//! lists them.

mod allocation;
mod arrow;
mod dependency;
mod family;
mod library;
mod method;
mod op_name;
mod order;
mod page;
mod place;
mod reference;
mod source;
mod switch;
mod text;
mod type_name;

use crate::Result;
use crate::argument::Arguments;
use library::Library;
use source::Source;
use std::fs;
use std::path::Path;

/// The folders whose sources are checked.
const FOLDERS: [&str; 5] = ["crates", "xtask", "python", "examples", "benches"];

/// One broken rule: where, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self { path: source.path.clone(), line, message: message.into() }
    }
}

pub(crate) fn command(root: &Path, arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    check(root)
}

/// Prints every finding; an error if there is one.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(root, folder, &mut sources)?;
    }
    let findings = findings(&sources);
    for finding in &findings {
        println!("{}:{}: {}", finding.path, finding.line, finding.message);
    }
    let outdated = outdated(&sources);
    for row in &outdated {
        println!("xtask/src/tidy: {row}");
    }
    let mut others = dependency::refused(root)?;
    others.extend(page::names(root)?);
    for finding in &others {
        println!("{finding}");
    }
    let count = findings.len() + outdated.len() + others.len();
    if count == 0 {
        println!("    tidy: {} files keep the rules", sources.len());
        return Ok(());
    }
    Err(format!("{count} places in {} files break a rule", sources.len()))
}

/// Rows of the rules' own tables that are not needed any more.
fn outdated(sources: &[Source]) -> Vec<String> {
    let library = Library::read(sources);
    let mut rows = order::missing(sources);
    rows.extend(op_name::unneeded(sources));
    rows.extend(switch::unneeded(sources));
    rows.extend(arrow::unneeded(sources, |source| library.arrows(source)));
    rows.extend(place::unneeded(sources, |source| library.arrows(source)));
    rows
}

fn findings(sources: &[Source]) -> Vec<Finding> {
    let ops = op_name::declared(sources);
    let library = Library::read(sources);
    let mut findings = Vec::new();
    for source in sources {
        text::size(source, &mut findings);
        text::file_name(source, &mut findings);
        if source.is_rust() {
            text::opening_comment(source, &mut findings);
            text::safety_comments(source, &mut findings);
            allocation::insistent(source, &mut findings);
            let arrows = library.arrows(source);
            arrow::layers(source, &arrows, &mut findings);
            arrow::ops(source, &arrows, &mut findings);
            order::reading(source, &arrows, &mut findings);
            place::unsafe_code(source, &mut findings);
            place::access(source, &mut findings);
            place::hooks(source, &mut findings);
            switch::switches(source, &mut findings);
            place::modes(source, &arrows, &mut findings);
            op_name::literals(source, &ops, &mut findings);
            op_name::paths(source, &mut findings);
        }
    }
    type_name::shared(sources, &mut findings);
    findings.sort();
    findings
}

/// Reads the sources under `folder`, in the order of their names. A folder that does not exist holds none.
fn collect(root: &Path, folder: &str, sources: &mut Vec<Source>) -> Result<()> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return Ok(()) };
    let mut names: Vec<(String, bool)> = entries
        .filter_map(std::result::Result::ok)
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()))
        .collect();
    names.sort();
    for (name, is_folder) in names {
        let path = format!("{folder}/{name}");
        if is_folder {
            if !name.starts_with('.') && name != "target" && name != "__pycache__" {
                collect(root, &path, sources)?;
            }
        } else if matches!(name.rsplit_once('.'), Some((_, "rs" | "py"))) {
            match fs::read_to_string(root.join(&path)) {
                Ok(text) => sources.push(Source::new(path, text)),
                // An editor's or a colleague's file may vanish between the listing and the reading.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {path}: {error}")),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_several_rules_come_in_the_order_of_the_files() {
        let sources = [
            Source::new("crates/pullback/src/tensor/view.rs", "use crate::ops::add;\n"),
            Source::new("crates/pullback/src/dispatch/helpers.rs", "//! No.\n"),
        ];
        let findings = findings(&sources);
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert!(paths.is_sorted());
        assert_eq!(findings.len(), 3, "{findings:?}");
    }

    #[test]
    fn the_checks_own_sources_keep_the_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut sources = Vec::new();
        collect(root, "xtask", &mut sources).unwrap();
        assert!(sources.len() > 10);
        assert_eq!(findings(&sources), []);
    }
}
