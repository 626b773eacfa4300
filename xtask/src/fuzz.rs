//! `cargo xtask fuzz` and `cargo xtask soak`: the fuzzers of `python/tests/fuzz`, and hours of ordinary work at once.
//!
//! Both are Python programs on top of the extension, because that is what users have; here they get their environment. The
//! short form of the fuzzers, fixed cases in about a minute, is a step of `cargo xtask test`.

use crate::argument::Arguments;
use crate::environment::{self, Environment};
use crate::extension::{self, Profile};
use crate::{Result, command, step};
use std::path::Path;
use std::process::Command;

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let minutes = arguments.positive("--minutes")?.unwrap_or(1.0);
    let mut words = vec!["--minutes".to_owned(), minutes.to_string()];
    for option in ["--target", "--seed", "--case"] {
        if let Some(value) = arguments.value(option)? {
            words.extend([option.to_owned(), value]);
        }
    }
    if arguments.flag("--keep") {
        words.push("--keep".to_owned());
    }
    let environment = installed(root, arguments)?;
    step::single("fuzz", || command::run(fuzzers(root, &environment).args(words)))
}

pub(crate) fn soak(root: &Path, mut arguments: Arguments) -> Result<()> {
    let minutes = arguments.positive("--minutes")?.unwrap_or(60.0);
    let environment = installed(root, arguments)?;
    step::single("soak", || {
        let mut python = Command::new(&environment.python);
        python.current_dir(root).arg("python/tests/soak.py");
        command::run(python.args(["--minutes", &minutes.to_string()]))
    })
}

/// The environment with the extension of this source; `--release` chooses its profile.
fn installed(root: &Path, mut arguments: Arguments) -> Result<Environment> {
    let profile = if arguments.flag("--release") { Profile::Release } else { Profile::Dev };
    arguments.finish()?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, profile)
    })?;
    Ok(environment)
}

/// `python -m fuzz`, whose modules stand among the tests.
pub(crate) fn fuzzers(root: &Path, environment: &Environment) -> Command {
    let mut python = Command::new(&environment.python);
    python.current_dir(root).env("PYTHONPATH", "python/tests").args(["-m", "fuzz"]);
    python
}
