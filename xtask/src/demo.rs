//! `cargo xtask demo`: from a fresh clone to a trained digit classifier in one command.

use crate::argument::Arguments;
use crate::extension::{self, Profile};
use crate::{Result, command, environment, step};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "examples/python/digits.py";

pub(crate) fn command(root: &Path, arguments: Arguments) -> Result<()> {
    let passed_on = arguments.rest()?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, Profile::Release)
    })?;
    step::single("demo", || {
        let mut python = Command::new(&environment.python);
        command::run(python.current_dir(root).arg(PROGRAM).args(passed_on))
    })
}
