//! `cargo xtask gen`: the files that the op registry determines, written by the built extension itself.
//!
//! `python -m pullback._gen` writes them; this module knows only which they are. `--check` lets it write, compares, and
//! puts the old text back, so that one code path decides what is current.

use crate::argument::Arguments;
use crate::environment::Environment;
use crate::extension::{self, Profile};
use crate::{Result, command, environment, step};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the generator writes, relative to the workspace folder.
const FILES: [&str; 2] = ["python/pullback/_C.pyi", "docs/ops.md"];

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let only_check = arguments.flag("--check");
    arguments.finish()?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, Profile::Release)
    })?;
    if only_check {
        return step::single("generated files", || check(root, &environment));
    }
    step::single("generated files", || {
        let before = read(root);
        write(root, &environment)?;
        for (name, (before, after)) in FILES.iter().zip(before.iter().zip(&read(root))) {
            println!("    {name}: {}", if before == after { "unchanged" } else { "written" });
        }
        Ok(())
    })
}

/// Fails when a generated file differs from what the installed extension would write; leaves the files as they were.
pub(crate) fn check(root: &Path, environment: &Environment) -> Result<()> {
    let before = read(root);
    let written = write(root, environment);
    let stale = stale(&before, &read(root));
    restore(root, &before)?;
    written?;
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("stale: {}; run `cargo xtask gen` and commit them", stale.join(", ")))
}

fn write(root: &Path, environment: &Environment) -> Result<()> {
    fs::create_dir_all(root.join("docs")).map_err(|error| format!("cannot make docs: {error}"))?;
    let mut python = Command::new(&environment.python);
    command::run(python.current_dir(root).args(["-m", "pullback._gen"]))?;
    match FILES.iter().find(|name| !root.join(name).is_file()) {
        Some(name) => Err(format!("the generator ended well, but wrote no {name}")),
        None => Ok(()),
    }
}

fn read(root: &Path) -> Vec<Option<Vec<u8>>> {
    FILES.iter().map(|name| fs::read(root.join(name)).ok()).collect()
}

fn stale(before: &[Option<Vec<u8>>], after: &[Option<Vec<u8>>]) -> Vec<&'static str> {
    let pairs = FILES.iter().zip(before.iter().zip(after));
    pairs.filter(|(_, (before, after))| before != after).map(|(name, _)| *name).collect()
}

fn restore(root: &Path, texts: &[Option<Vec<u8>>]) -> Result<()> {
    for (name, text) in FILES.iter().zip(texts) {
        let path = root.join(name);
        let result = match text {
            Some(text) => fs::write(&path, text),
            None if path.exists() => fs::remove_file(&path),
            None => Ok(()),
        };
        result.map_err(|error| format!("cannot restore {name}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_new_and_a_lost_file_are_stale() {
        let text = |text: &str| Some(text.as_bytes().to_vec());
        assert!(stale(&[text("a"), text("b")], &[text("a"), text("b")]).is_empty());
        assert_eq!(stale(&[text("a"), text("b")], &[text("a"), text("c")]), [FILES[1]]);
        assert_eq!(stale(&[None, text("b")], &[text("a"), None]), FILES);
    }

    #[test]
    fn restoring_brings_back_texts_and_absences() {
        let folder = std::env::temp_dir().join(format!("xtask-generate-{}", std::process::id()));
        fs::create_dir_all(folder.join("python/pullback")).unwrap();
        fs::create_dir_all(folder.join("docs")).unwrap();
        fs::write(folder.join(FILES[0]), "old").unwrap();
        let before = read(&folder);
        fs::write(folder.join(FILES[0]), "new").unwrap();
        fs::write(folder.join(FILES[1]), "new").unwrap();
        restore(&folder, &before).unwrap();
        assert_eq!(read(&folder), before);
        assert!(!folder.join(FILES[1]).exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
