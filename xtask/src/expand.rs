//! `cargo xtask expand NAME`: what `#[op]` makes of an op, every overload of it, as files that can be read.
//!
//! The attribute's own code reads the ops' files and writes its output (`crates/macros/examples/expand.rs`); this module formats
//! it, and puts above each field of an op's definition what `dispatch/def.rs` and `kernels.rs` say of it. Items that another
//! macro writes are known to the compiler alone: for these it reads the whole library, which takes minutes, and the attribute
//! writes its output because two environment variables ask for it.

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
    prepare(&folder)?;
    let ops = root.join("crates/pullback/src/ops");
    read_items(root, &ops, &name, &folder)?;
    let mut files = written(&folder)?;
    if files.is_empty() && is_named(&ops, &name)? {
        println!("`{name}` is an item of another macro: the compiler reads the whole library");
        compile(root, &target, &folder, &name)?;
        files = written(&folder)?;
    }
    if files.is_empty() {
        return Err(format!("there is no op `{name}`; docs/ops.md lists them"));
    }
    let dispatch = root.join("crates/pullback/src/dispatch");
    let docs =
        field_docs(&(read(&dispatch.join("def.rs"))? + &read(&dispatch.join("kernels.rs"))?));
    for file in files {
        command::run(Command::new("rustfmt").args(["--edition", "2024"]).arg(&file))?;
        let text = explained(&read(&file)?, &docs);
        fs::write(&file, &text).map_err(|error| failed(&file, &error))?;
        println!("\n// {}\n{text}", file.strip_prefix(root).unwrap_or(&file).display());
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Makes an empty folder.
fn prepare(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

/// Writes what the items named `name` in the files below `ops` become into `folder`.
fn read_items(root: &Path, ops: &Path, name: &str, folder: &Path) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args([
        "run",
        "--quiet",
        "-p",
        "pullback-macros",
        "--example",
        "expand",
    ]);
    command::run(cargo.arg("--").arg(ops).arg(name).arg(folder))
}

/// Whether a string in a file below `folder` begins as the signature of an op `name` does.
fn is_named(folder: &Path, name: &str) -> Result<bool> {
    let beginnings = [format!("\"{name}("), format!("\"{name}.")];
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))?.flatten() {
        let path = entry.path();
        let is_here = if path.is_dir() {
            is_named(&path, name)?
        } else {
            let text = read(&path)?;
            beginnings.iter().any(|beginning| text.contains(beginning))
        };
        if is_here {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lets the compiler expand the ops, of which `name` writes its expansions into `folder`.
fn compile(root: &Path, target: &Path, folder: &Path, name: &str) -> Result<()> {
    // The library is read again whatever has changed since: the compiler does not know of the variables.
    let fingerprints = target.join("debug/.fingerprint");
    for entry in fs::read_dir(&fingerprints).into_iter().flatten().flatten() {
        let is_library = entry.file_name().to_string_lossy().starts_with("pullback-");
        if is_library {
            fs::remove_dir_all(entry.path()).map_err(|error| failed(&entry.path(), &error))?;
        }
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["check", "--quiet", "-p", "pullback", "--lib", "--target-dir"]);
    cargo.arg(target).env("PULLBACK_EXPAND", name).env("PULLBACK_EXPAND_TO", folder);
    command::run(&mut cargo)
}

/// The files in `folder`, by name.
fn written(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| failed(path, &error))
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
