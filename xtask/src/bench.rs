//! `cargo xtask bench`: pullback beside PyTorch, measured in turns.
//!
//! The programs are run on both libraries by a referee outside this repository (`compare.py`). It lies in
//! `../shared/bench`, or where the environment variable `PULLBACK_BENCH` says. The sets of [`PAIRED`] need no referee:
//! their cases and their comparison are `benches/NAME.py`. PyTorch comes from an interpreter of its own
//! (`--reference`), never from `.venv`.

use crate::argument::Arguments;
use crate::environment::{self, Environment};
use crate::extension::{self, Profile};
use crate::{Result, command, step};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A set whose script measures one library at a time and compares the files.
struct Paired {
    name: &'static str,
    script: &'static str,
    /// Whether the comparison prints what is above a limit that one can choose; else its goals are its own.
    takes_limit: bool,
}

const PAIRED: &[Paired] = &[
    Paired { name: "small", script: "benches/small.py", takes_limit: true },
    Paired { name: "ops", script: "benches/ops.py", takes_limit: false },
];

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let Some(subject) = arguments.subject() else { return programs(root, arguments) };
    match PAIRED.iter().find(|set| set.name == subject) {
        Some(set) => paired(root, set, arguments),
        None => Err(format!("there is no benchmark set `{subject}`")),
    }
}

/// The referee's programs.
fn programs(root: &Path, mut arguments: Arguments) -> Result<()> {
    let (reference, only) = (arguments.value("--reference")?, arguments.value("--only")?);
    let (threads, rounds) = (arguments.count("--threads", 1)?, arguments.count("--rounds", 3)?);
    let passed_on = arguments.rest()?;
    let referee = referee(root)?;
    let reference = checked_reference(reference)?;
    let environment = release(root)?;
    step::single("compare", || {
        let mut compare = Command::new(&environment.python);
        compare.current_dir(root).arg(&referee).args(["--a", "torch", "--a-python", &reference]);
        compare.args(["--b", "pullback", "--b-python"]).arg(&environment.python);
        compare.args(["--threads", &threads.to_string(), "--rounds", &rounds.to_string()]);
        compare.args(only.iter().flat_map(|only| ["--only", only.as_str()]));
        command::run(compare.args(passed_on))
    })
}

/// A set without a referee: rounds of both libraries in turns, of each case the shortest time, then the comparison.
fn paired(root: &Path, set: &Paired, mut arguments: Arguments) -> Result<()> {
    let (reference, only) = (arguments.value("--reference")?, arguments.value("--only")?);
    let limit = set.takes_limit.then(|| arguments.ratio("--limit", 1.1)).transpose()?;
    let rounds = arguments.count("--rounds", 2)?;
    arguments.finish()?;
    let reference = PathBuf::from(checked_reference(reference)?);
    let environment = release(root)?;
    let folder = extension::target(root).join("bench");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let result = |library, round| folder.join(format!("{}-{library}-{round}.json", set.name));
    for round in 1..=rounds {
        for (library, python) in [("torch", &reference), ("pullback", &environment.python)] {
            step::single(&format!("round {round} of {rounds}: {library}"), || {
                let mut measure = Command::new(python);
                measure.current_dir(root).args([set.script, "measure", library]);
                measure.arg(result(library, round));
                // One word: a value that begins with a dash would be taken for an option.
                command::run(measure.args(only.iter().map(|only| format!("--only={only}"))))
            })?;
        }
    }
    step::single("compare", || {
        let mut compare = Command::new(&environment.python);
        compare.current_dir(root).args([set.script, "compare"]);
        compare.args(limit.iter().flat_map(|limit| ["--limit".to_owned(), limit.to_string()]));
        compare.arg("--ours").args((1..=rounds).map(|round| result("pullback", round)));
        compare.arg("--theirs").args((1..=rounds).map(|round| result("torch", round)));
        command::run(&mut compare)
    })
}

/// The environment, with the release extension in it.
fn release(root: &Path) -> Result<Environment> {
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, Profile::Release)
    })?;
    Ok(environment)
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
    fn the_value_of_an_option_is_no_benchmark_set() {
        let words = ["--reference", "no-such-python", "--only", "^A"].map(str::to_owned);
        let message = command(Path::new("/no/such/folder"), Arguments::new(words.to_vec()));
        assert!(message.unwrap_err().contains("compare.py"));
    }

    #[test]
    fn a_paired_set_needs_a_reference_and_no_referee() {
        for set in ["small", "ops"] {
            let words = [set, "--reference", "no-such-python", "--rounds", "1"].map(str::to_owned);
            let message = command(Path::new("/no/such/folder"), Arguments::new(words.to_vec()));
            assert!(message.unwrap_err().contains("cannot import torch"));
        }
    }

    #[test]
    fn a_paired_set_refuses_what_it_does_not_know_before_it_measures() {
        let small = [("--threads", "2"), ("--limit", "none"), ("--rounds", "0")];
        let ops = [("--limit", "1.2"), ("--rounds", "none")];
        let small = small.map(|(option, value)| ("small", option, value));
        let ops = ops.map(|(option, value)| ("ops", option, value));
        for (set, option, value) in small.into_iter().chain(ops) {
            let words = [set, option, value].map(str::to_owned);
            let message = command(Path::new("/no/such/folder"), Arguments::new(words.to_vec()));
            assert!(message.unwrap_err().contains(option), "{set} {option}");
        }
    }

    #[test]
    fn a_set_that_does_not_exist_is_named() {
        let arguments = Arguments::new(vec!["large".to_owned()]);
        assert!(command(Path::new("."), arguments).unwrap_err().contains("`large`"));
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
