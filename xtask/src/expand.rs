//! `cargo xtask expand NAME`: what `#[op]` makes of an op, every overload of it, as files that can be read.
//!
//! The attribute writes its output where two environment variables ask for it; this module lets the compiler read the ops
//! (in a folder of its own, so that no build begins anew), formats the output, and puts above each field of an op's
//! definition what `dispatch/def.rs` and `kernels.rs` say of it.

use crate::argument::Arguments;
use crate::{Result, command};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let name =
        arguments.subject().ok_or("the name of an op is missing: `cargo xtask expand erf`")?;
    arguments.finish()?;
    let target = root.join("target/expand");
    let folder = target.join("ops");
    expand(root, &target, &folder, &name)?;
    let files = written(&folder)?;
    if files.is_empty() {
        return Err(format!("there is no op `{name}`; docs/ops.md lists them"));
    }
    let dispatch = root.join("crates/pullback/src/dispatch");
    let docs =
        field_docs(&(read(&dispatch.join("def.rs"))? + &read(&dispatch.join("kernels.rs"))?));
    for file in files {
        command::run(Command::new("rustfmt").args(["--edition", "2024"]).arg(&file))?;
        let text = explained(&read(&file)?, &docs);
        fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("\n// {}\n{text}", file.strip_prefix(root).unwrap_or(&file).display());
    }
    Ok(())
}

/// Lets the compiler expand the ops, of which `name` writes its expansions into `folder`.
fn expand(root: &Path, target: &Path, folder: &Path, name: &str) -> Result<()> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed(folder, error))?;
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    // The library is read again whatever has changed since: the compiler does not know of the variables.
    let fingerprints = target.join("debug/.fingerprint");
    for entry in fs::read_dir(&fingerprints).into_iter().flatten().flatten() {
        let is_library = entry.file_name().to_string_lossy().starts_with("pullback-");
        if is_library {
            fs::remove_dir_all(entry.path()).map_err(|error| failed(&entry.path(), error))?;
        }
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["check", "--quiet", "-p", "pullback", "--lib", "--target-dir"]);
    cargo.arg(target).env("PULLBACK_EXPAND", name).env("PULLBACK_EXPAND_TO", folder);
    command::run(&mut cargo)
}

/// The files in `folder`, by name.
fn written(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The names of the fields of `OpDef` and what is said of them, from the file that declares it.
fn field_docs(text: &str) -> Vec<(String, Vec<String>)> {
    let start = text.find("pub struct OpDef {").unwrap_or(text.len());
    let (mut fields, mut lines) = (Vec::new(), Vec::new());
    for line in text[start..].lines().skip(1).map(str::trim).take_while(|line| *line != "}") {
        if let Some(said) = line.strip_prefix("///") {
            lines.push(said.trim().to_owned());
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|l| l.split_once(':')) {
            fields.push((name.to_owned(), std::mem::take(&mut lines)));
        }
    }
    fields
}

/// `text` with a comment above each field of the definition, and a heading.
fn explained(text: &str, docs: &[(String, Vec<String>)]) -> String {
    let mut out = String::from(
        "// Made by #[op]: the block as written, the static definition that the registry lists and that every call reads, and\n\
         // the Rust methods, each of which calls the op by its definition.\n\n",
    );
    let mut is_definition = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        is_definition |= line.starts_with("pub static") && line.contains("OpDef");
        let indent = line.len() - trimmed.len();
        if is_definition && indent == 4 {
            let field = docs.iter().find(|(name, _)| {
                trimmed.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(':'))
            });
            for said in field.iter().flat_map(|(_, lines)| lines) {
                out.extend(["    // ", said, "\n"]);
            }
        }
        is_definition &= line != "};";
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_definition_get_what_is_said_of_them() {
        let docs = field_docs("pub struct OpDef {\n    /// Its name.\n    pub name: u8,\n}\n");
        let text = "pub static ERF: OpDef = OpDef {\n    name: 1,\n};\nname: 2\n";
        let out = explained(text, &docs);
        assert!(out.contains("OpDef {\n    // Its name.\n    name: 1,\n};\nname: 2\n"), "{out}");
    }
}
