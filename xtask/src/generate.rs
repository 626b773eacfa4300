//! `cargo xtask gen`: the files that the op registry determines, written by the built extension itself.
//!
//! `python -m pullback._gen` knows which they are, writes them, and with `--check` compares them and names the stale
//! ones; this module builds the extension that it asks.

use crate::argument::Arguments;
use crate::environment::Environment;
use crate::extension::{self, Profile};
use crate::{Result, command, environment, step};
use std::path::Path;
use std::process::Command;

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let only_check = arguments.flag("--check");
    arguments.finish()?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, Profile::Release)
    })?;
    step::single("generated files", || {
        if only_check { check(root, &environment) } else { run(root, &environment, &[]) }
    })
}

/// Fails when a generated file differs from what the installed extension would write.
pub(crate) fn check(root: &Path, environment: &Environment) -> Result<()> {
    run(root, environment, &["--check"])
}

fn run(root: &Path, environment: &Environment, options: &[&str]) -> Result<()> {
    let mut python = Command::new(&environment.python);
    command::run(python.current_dir(root).args(["-m", "pullback._gen"]).args(options))
}
