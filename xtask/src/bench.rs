//! `cargo xtask bench`: pullback beside PyTorch, measured in turns by a referee outside this repository.
//!
//! The referee (`compare.py`) runs the same programs on both libraries. It lies in `../shared/bench`, or where the
//! environment variable `PULLBACK_BENCH` says; PyTorch comes from an interpreter of its own (`--reference`), never
//! from `.venv`.

use crate::argument::Arguments;
use crate::extension::{self, Profile};
use crate::{Result, command, environment, step};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    // The options first: what is left without a dash is then no option's value.
    let only = arguments.value("--only")?;
    let (threads, rounds) = (arguments.count("--threads", 1)?, arguments.count("--rounds", 3)?);
    let reference = arguments.value("--reference")?;
    if let Some(word) = arguments.word() {
        return Err(match word.as_str() {
            "ops" => "`bench ops` (every op of the registry by itself) does not exist yet; the benchmarks that exist \
                      run with `cargo xtask bench`"
                .to_owned(),
            _ => format!("there is no benchmark set `{word}`"),
        });
    }
    let passed_on = arguments.rest()?;
    let referee = referee(root)?;
    let reference = checked_reference(reference)?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, Profile::Release)
    })?;
    step::single("compare", || {
        let mut compare = Command::new(&environment.python);
        compare.current_dir(root).arg(&referee).args(["--a", "torch", "--a-python", &reference]);
        compare.args(["--b", "pullback", "--b-python"]).arg(&environment.python);
        compare.args(["--threads", &threads.to_string(), "--rounds", &rounds.to_string()]);
        compare.args(only.iter().flat_map(|only| ["--only", only.as_str()]));
        command::run(compare.args(passed_on))
    })
}

fn referee(root: &Path) -> Result<PathBuf> {
    let folder = std::env::var_os("PULLBACK_BENCH")
        .map_or_else(|| root.join("../shared/bench"), |path| root.join(path));
    let script = folder.join("compare.py");
    if script.is_file() {
        return Ok(script);
    }
    Err(format!(
        "the referee is missing: there is no {}; set PULLBACK_BENCH to the folder that holds compare.py",
        script.display()
    ))
}

/// The interpreter with PyTorch, once it has shown that it can import it.
fn checked_reference(named: Option<String>) -> Result<String> {
    let named = named.or_else(|| std::env::var("PULLBACK_REFERENCE").ok());
    let Some(python) = named.filter(|python| !python.is_empty()) else {
        return Err("the reference is missing: give --reference PYTHON (or PULLBACK_REFERENCE), an interpreter \
                    with PyTorch, made for instance by `python3 -m venv torch && torch/bin/pip install torch numpy`"
            .to_owned());
    };
    let version = "import torch; print(torch.__version__)";
    let version = command::capture(Command::new(&python).args(["-c", version]))
        .map_err(|error| format!("the reference cannot import torch: {error}"))?;
    println!("==> bench: the reference is PyTorch {version}");
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_set_is_an_error_that_says_so() {
        let arguments = Arguments::new(vec!["ops".to_owned()]);
        assert!(command(Path::new("."), arguments).unwrap_err().contains("does not exist yet"));
    }

    #[test]
    fn the_value_of_an_option_is_no_benchmark_set() {
        let words = ["--reference", "no-such-python", "--only", "^A"].map(str::to_owned);
        let message = command(Path::new("/no/such/folder"), Arguments::new(words.to_vec()));
        assert!(message.unwrap_err().contains("compare.py"));
    }

    #[test]
    fn a_missing_referee_is_named_with_the_way_out() {
        let message = referee(Path::new("/no/such/folder")).unwrap_err();
        assert!(message.contains("compare.py") && message.contains("PULLBACK_BENCH"), "{message}");
    }

    #[test]
    fn a_reference_without_torch_is_refused() {
        let message = checked_reference(Some("no-such-python".to_owned())).unwrap_err();
        assert!(message.contains("cannot import torch"), "{message}");
    }
}
