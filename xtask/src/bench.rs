//! `cargo xtask bench`: pullback beside PyTorch, measured in turns.
//!
//! A set of benchmarks is a script `benches/NAME.py`, which measures one library at a time, and compares the files that
//! it wrote. Here are the turns: who measures when, under which interpreter. PyTorch comes from an interpreter of its own
//! (`--reference`), never from `.venv`. Start at [`SETS`].

use crate::argument::Arguments;
use crate::environment::{self, Environment};
use crate::extension::{self, Profile};
use crate::{Result, command, step};
use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A script, and the translation of command line words into those of its two halves.
struct Set {
    /// The name of the set; the set without a name is meant where none is named.
    name: Option<&'static str>,
    script: &'static str,
    rounds: usize,
    read: fn(&mut Arguments) -> Result<Options>,
}

/// The words that are passed on.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    measure: Vec<String>,
    compare: Vec<String>,
    /// The command that runs before the measurements, because it can tell that a comparison cannot
    /// be made.
    before: Option<Vec<String>>,
    /// Whether the comparison puts the machine's limits beside the times, and for how many threads.
    limits: Option<usize>,
}

const SETS: &[Set] = &[
    Set { name: None, script: "benches/groups.py", rounds: 3, read: of_groups },
    Set { name: Some("small"), script: "benches/small.py", rounds: 2, read: of_small },
    Set { name: Some("ops"), script: "benches/ops.py", rounds: 2, read: of_ops },
];

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let subject = arguments.subject();
    let Some(set) = SETS.iter().find(|set| set.name == subject.as_deref()) else {
        return Err(format!("there is no benchmark set `{}`", subject.unwrap_or_default()));
    };
    let reference = arguments.value("--reference")?;
    let rounds = arguments.count("--rounds", set.rounds)?;
    let options = (set.read)(&mut arguments)?;
    arguments.finish()?;
    let reference = PathBuf::from(checked_reference(reference)?);
    let environment = release(root)?;
    in_turns(root, set, &options, rounds, &reference, &environment)
}

/// `--name=VALUE` if it was given: one word, as a value that begins with a dash would be taken for an option.
fn joined(arguments: &mut Arguments, name: &str) -> Result<Option<String>> {
    Ok(arguments.value(name)?.map(|value| format!("{name}={value}")))
}

fn of_groups(arguments: &mut Arguments) -> Result<Options> {
    let threads = arguments.count("--threads", 1)?;
    let mut options = Options { limits: Some(threads), ..Options::default() };
    options.measure.push(format!("--threads={threads}"));
    options.measure.push(format!("--repeats={}", arguments.count("--repeats", 5)?));
    for name in ["--only", "--skip"] {
        options.measure.extend(joined(arguments, name)?);
    }
    options.measure.extend(positive(arguments, "--min-time")?);
    for name in ["--rtol", "--tolerance", "--group-tolerance"] {
        options.compare.extend(positive(arguments, name)?);
    }
    for name in ["--cpu-time", "--record"] {
        if arguments.flag(name) {
            options.compare.push(name.to_owned());
        }
    }
    options.compare.extend(joined(arguments, "--json")?);
    if let Some(record) = arguments.value("--against")? {
        options.compare.push(format!("--against={record}"));
        options.before = Some(vec!["find".to_owned(), record, format!("--threads={threads}")]);
    }
    Ok(options)
}

/// `--name=X` for a positive number X, if it was given.
fn positive(arguments: &mut Arguments, name: &str) -> Result<Option<String>> {
    Ok(arguments.positive(name)?.map(|number| format!("{name}={number}")))
}

fn of_small(arguments: &mut Arguments) -> Result<Options> {
    let compare = positive(arguments, "--limit")?.into_iter().collect();
    Ok(Options { compare, ..of_ops(arguments)? })
}

fn of_ops(arguments: &mut Arguments) -> Result<Options> {
    let measure = joined(arguments, "--only")?.into_iter().collect();
    Ok(Options { measure, ..Options::default() })
}

/// Rounds of both libraries in turns, then the comparison of all of them.
fn in_turns(
    root: &Path,
    set: &Set,
    options: &Options,
    rounds: usize,
    reference: &Path,
    environment: &Environment,
) -> Result<()> {
    let folder = extension::target(root).join("bench");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let name = set.name.unwrap_or("groups");
    let script = |python: &Path| {
        let mut script = Command::new(python);
        script.current_dir(root).arg(set.script);
        script
    };
    if let Some(words) = &options.before {
        step::single("record", || command::run(script(&environment.python).args(words)))?;
    }
    let limits = match options.limits {
        Some(threads) => Some(limits(root, environment, &folder, threads)?),
        None => None,
    };
    let result = |library, round| folder.join(format!("{name}-{library}-{round}.json"));
    for round in 1..=rounds {
        for (library, python) in [("torch", reference), ("pullback", &environment.python)] {
            step::single(&format!("round {round} of {rounds}: {library}"), || {
                let mut measure = script(python);
                measure.args(["measure", library]).arg(result(library, round));
                command::run(measure.args(&options.measure))
            })?;
        }
    }
    step::single("compare", || {
        let mut compare = script(&environment.python);
        compare.arg("compare").args(&options.compare);
        if let Some(limits) = limits {
            compare.arg("--limits").arg(limits);
        }
        compare.arg("--ours").args((1..=rounds).map(|round| result("pullback", round)));
        compare.arg("--theirs").args((1..=rounds).map(|round| result("torch", round)));
        command::run(&mut compare)
    })
}

/// Measures what the machine's memory and arithmetic allow, into a file.
fn limits(
    root: &Path,
    environment: &Environment,
    folder: &Path,
    threads: usize,
) -> Result<PathBuf> {
    let path = folder.join("limits.json");
    step::single("limits of the machine", || {
        // Built as a part of the extension: of other features, its crates would be compiled a second time.
        let mut build = environment.cargo(root);
        build.arg("build").args(extension::RELEASE);
        command::run(build.args(["--package", "pullback-kernels", "--example", "limits"]))?;
        let program = extension::target(root).join("release/examples/limits");
        let mut measure = Command::new(program.with_extension(EXE_EXTENSION));
        command::run(measure.current_dir(root).arg(threads.to_string()).arg(&path))
    })?;
    Ok(path)
}

/// The environment, with the release extension installed.
fn release(root: &Path) -> Result<Environment> {
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || {
        extension::build_and_install(root, &environment, Profile::Release)
    })?;
    Ok(environment)
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

    fn refused(words: &[&str]) -> String {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        command(Path::new("/no/such/folder"), Arguments::new(words)).unwrap_err()
    }

    fn groups(text: &str) -> Result<Options> {
        let words = text.split_whitespace().map(str::to_owned).collect();
        of_groups(&mut Arguments::new(words))
    }

    #[test]
    fn the_value_of_an_option_is_no_benchmark_set() {
        let message = refused(&["--reference", "no-such-python", "--only", "^A"]);
        assert!(message.contains("cannot import torch"), "{message}");
    }

    #[test]
    fn every_set_needs_a_reference() {
        for set in ["small", "ops"] {
            let message = refused(&[set, "--reference", "no-such-python", "--rounds", "1"]);
            assert!(message.contains("cannot import torch"), "{message}");
        }
    }

    #[test]
    fn a_set_refuses_what_it_does_not_know_before_it_measures() {
        let small = [("--threads", "2"), ("--limit", "none"), ("--rounds", "0")];
        let ops = [("--limit", "1.2"), ("--rounds", "none")];
        let small = small.map(|(option, value)| ("small", option, value));
        let ops = ops.map(|(option, value)| ("ops", option, value));
        for (set, option, value) in small.into_iter().chain(ops) {
            assert!(refused(&[set, option, value]).contains(option), "{set} {option}");
        }
        let groups =
            [("--threads", "0"), ("--rtol", "none"), ("--tolerance", "0"), ("--limit", "1.1")];
        for (option, value) in groups {
            assert!(refused(&[option, value]).contains(option), "{option}");
        }
    }

    #[test]
    fn a_set_that_does_not_exist_is_named() {
        assert!(refused(&["large"]).contains("`large`"));
    }

    #[test]
    fn options_go_to_the_half_that_they_are_of() {
        let options =
            groups("--only ^A --threads 2 --min-time 0.5 --rtol 1e-3 --cpu-time").unwrap();
        let measure = ["--threads=2", "--repeats=5", "--only=^A", "--min-time=0.5"];
        assert_eq!(options.measure, measure);
        assert_eq!(options.compare, ["--rtol=0.001", "--cpu-time"]);
        assert_eq!((options.before, options.limits), (None, Some(2)));
    }

    #[test]
    fn a_record_is_looked_for_before_anything_is_measured() {
        let options = groups("--against auto --record").unwrap();
        assert_eq!(options.compare, ["--record", "--against=auto"]);
        let before = ["find", "auto", "--threads=1"].map(str::to_owned).to_vec();
        assert_eq!(options.before, Some(before));
    }

    #[test]
    fn a_reference_without_torch_is_refused() {
        let message = checked_reference(Some("no-such-python".to_owned())).unwrap_err();
        assert!(message.contains("cannot import torch"), "{message}");
    }
}
