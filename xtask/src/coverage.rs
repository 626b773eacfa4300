//! `cargo xtask coverage`: which rows of the op table are complete, checked by running.
//!
//! The table, what PyTorch gave for it and the judgement are `python/tests/op_table`; this module builds the extension
//! that is judged and passes the options on. The lists of `--family`, `--op` and `--require` are words with commas.
//! `--names` counts PyTorch's public names instead (`python/pullback/_gen/compatibility.py`), `--module` those of one
//! namespace.

use crate::argument::Arguments;
use crate::extension::{self, Profile};
use crate::{Result, command, environment, step};
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = "python/tests/op_table/coverage.py";
const NAMES: &str = "pullback._gen.compatibility";

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let words = words(&mut arguments)?;
    let profile = if arguments.flag("--dev") { Profile::Dev } else { Profile::Release };
    arguments.finish()?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, profile)
    })?;
    step::single("coverage", || {
        let mut python = Command::new(&environment.python);
        command::run(python.current_dir(root).args(words))
    })
}

/// What Python is to run: a script or a module, and its options.
fn words(arguments: &mut Arguments) -> Result<Vec<String>> {
    if !arguments.flag("--names") {
        let mut words = vec![SCRIPT.to_owned()];
        words.extend(options(arguments)?);
        return Ok(words);
    }
    let mut words = vec!["-m".to_owned(), NAMES.to_owned()];
    words.extend(arguments.value("--module")?.map(|module| format!("--module={module}")));
    Ok(words)
}

/// The words that are passed on, each a word of its own.
fn options(arguments: &mut Arguments) -> Result<Vec<String>> {
    let mut options = Vec::new();
    for name in ["--family", "--op", "--require"] {
        options.extend(arguments.value(name)?.map(|value| format!("{name}={value}")));
    }
    options.extend(arguments.flag("--all").then(|| "--all".to_owned()));
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Arguments {
        Arguments::new(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_are_passed_on_one_word_each() {
        let mut arguments = of("--require core,masked --all --family=core");
        let expected = ["--family=core", "--require=core,masked", "--all"];
        assert_eq!(options(&mut arguments), Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(arguments.finish(), Ok(()));
    }

    #[test]
    fn names_are_counted_by_a_module_of_the_generator() {
        let mut arguments = of("--names --module torch.nn --dev");
        let expected = ["-m", NAMES, "--module=torch.nn"];
        assert_eq!(words(&mut arguments), Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(words(&mut of("--all")), Ok(vec![SCRIPT.to_owned(), "--all".to_owned()]));
    }

    #[test]
    fn an_unknown_option_is_refused_before_anything_is_built() {
        let message = command(Path::new("/no/such/folder"), of("--families core"));
        assert!(message.unwrap_err().contains("--families"));
    }
}
