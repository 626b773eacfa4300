//! `cargo xtask test`: every check of the project, all of them run even when one fails.
//!
//! Three parts: `--lint` (nothing is executed), `--rust`, `--python`. The Rust tests and the extension that the Python
//! tests import come from one Cargo profile, so that no crate is compiled twice. `--loom` is one crate of the Rust tests,
//! the models of what threads share. Parts of their own are `--sanitize`, the tests under sanitizers (`sanitize`), `--cpu`:
//! kernels and ops with the instructions of smaller machines, `--emulate`: tests on other processors (`emulate`),
//! `--targets`: whether the crates compile for other systems, and `--ecosystem`: programs on libraries written for PyTorch (`ecosystem`).

use crate::argument::Arguments;
use crate::environment::{self, Environment, Release};
use crate::extension::{self, Profile, cargo};
use crate::sanitize;
use crate::step::{Done, Report};
use crate::{Result, command, ecosystem, emulate, fuzz, generate, supply, tidy};
use std::path::Path;
use std::process::Command;

/// The extension cannot be linked as a test program: Python's symbols are found only inside Python.
const RUST_TESTS: [&str; 4] = ["test", "--workspace", "--exclude", "pullback-python"];

/// The models of what threads share; the Rust tests include them.
const LOOM_TESTS: [&str; 3] = ["test", "--package", "pullback-loom"];

/// Whether the stubs agree with the extension. (The rest of the package is annotated where it is
/// defined.)
const STUBTEST: [&str; 9] = [
    "mypy.stubtest",
    "pullback._C",
    "pullback.return_types",
    "--concise",
    "--ignore-disjoint-bases",
    "--mypy-config-file",
    "pyproject.toml",
    "--allowlist",
    "python/tests/stubtest_allowlist.txt",
];

/// The parts that run without a flag. (The models of loom are among the Rust tests.)
const ALL: [Part; 3] = [Part::Lint, Part::Rust, Part::Python];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Lint,
    Rust,
    Loom,
    Cpu,
    OldestRust,
    Targets,
    Python,
}

/// The parts whose flags were given, in the order they run.
fn parts(arguments: &mut Arguments) -> Vec<Part> {
    let flags = [
        ("--lint", Part::Lint),
        ("--rust", Part::Rust),
        ("--loom", Part::Loom),
        ("--cpu", Part::Cpu),
        ("--msrv", Part::OldestRust),
        ("--targets", Part::Targets),
        ("--python", Part::Python),
    ];
    let mut parts: Vec<Part> = Vec::new();
    for (name, part) in flags {
        if arguments.flag(name) {
            parts.push(part);
        }
    }
    parts
}

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let sanitized = sanitize::CHOICE.read(&mut arguments)?;
    let emulated = emulate::CHOICE.read(&mut arguments)?;
    let ecosystem = ecosystem::Plan::read(&mut arguments);
    let mut parts = parts(&mut arguments);
    let has_plan = sanitized.is_some() || emulated.is_some() || ecosystem.is_some();
    if parts.is_empty() && !has_plan {
        parts = ALL.to_vec();
    }
    if parts.contains(&Part::Rust) {
        parts.retain(|&part| part != Part::Loom);
    }
    let profile = if arguments.flag("--release") { Profile::Release } else { Profile::Dev };
    let release = arguments.value("--python-version")?;
    let release = release.as_deref().map(Release::parse).transpose()?;
    arguments.finish()?;
    // The Rust tests alone need no Python.
    let needed = parts.iter().any(|part| matches!(part, Part::Lint | Part::Python))
        || sanitized.as_ref().is_some_and(sanitize::needs_python);
    let setup = || match release {
        Some(release) => environment::setup_release(root, release),
        None => environment::setup(root),
    };
    let environment = needed.then(setup).transpose()?;
    let mut report = Report::default();
    for part in parts {
        match (part, &environment) {
            (Part::Lint, Some(environment)) => lint(root, environment, &mut report),
            (Part::Python, Some(environment)) => python(root, environment, profile, &mut report),
            (Part::Lint | Part::Python, None) => report.skip("setup", "there is no environment"),
            (Part::Rust, _) => rust(root, profile, &RUST_TESTS, &mut report),
            (Part::Loom, _) => rust(root, profile, &LOOM_TESTS, &mut report),
            (Part::OldestRust, _) => {
                report.step("oldest Rust", || oldest_rust(root));
            }
            (Part::Cpu, _) => smaller_machines(root, profile, &mut report),
            (Part::Targets, _) => other_systems(root, &mut report),
        }
    }
    if let Some(selection) = sanitized {
        sanitize::run(&selection, root, environment.as_ref(), &mut report);
    }
    if let Some(selection) = emulated {
        emulate::run(&selection, root, &mut report);
    }
    if let Some(plan) = ecosystem {
        plan.run(root, profile, &mut report)?;
    }
    report.finish()
}

fn lint(root: &Path, environment: &Environment, report: &mut Report) {
    report.step("rustfmt", || command::run(cargo(root).args(["fmt", "--all", "--check"])));
    report.step("tidy", || tidy::check(root));
    report.step("supply", || match supply::check(root) {
        Ok(line) => Done { closing: vec![line], result: Ok(()) },
        Err(error) => Err(error).into(),
    });
    report.step("clippy", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--keep-going"];
        command::run(environment.cargo(root).args(arguments).args(["--", "-D", "warnings"]))
    });
    report.step("rustdoc", || {
        let mut doc = environment.cargo(root);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        command::run(doc.args(["doc", "--workspace", "--no-deps", "--quiet"]))
    });
    report.step("ruff check", || tool(root, environment, &["ruff", "check", "."]));
    report.step("ruff format", || tool(root, environment, &["ruff", "format", "--check", "."]));
    report.step("mypy", || tool(root, environment, &["mypy"]));
    report.step("pyright", || tool(root, environment, &["basedpyright"]));
}

fn rust(root: &Path, profile: Profile, words: &[&str], report: &mut Report) {
    report.step("Rust tests", || {
        let mut tests = cargo(root);
        tests.args(words).arg("--no-fail-fast").args(profile.options());
        rust_tests(&mut tests)
    });
}

/// The instruction sets below this machine's, as `PULLBACK_CPU` names them.
const SMALLER: [&str; 3] = ["generic", "avx2", "avx512"];

/// The kernels, and the ops on top of them, with the instructions of smaller machines.
fn smaller_machines(root: &Path, profile: Profile, report: &mut Report) {
    for machine in SMALLER {
        let tests = |words: &[&str]| {
            let mut tests = cargo(root);
            tests.args(["test", "--no-fail-fast"]).args(words).args(profile.options());
            rust_tests(tests.env("PULLBACK_CPU", machine))
        };
        report.step(&format!("kernels, {machine}"), || {
            tests(&["--package=pullback-kernels", "--package=pullback-fft", "--lib", "--tests"])
        });
        report.step(&format!("ops, {machine}"), || {
            tests(&["--package=pullback", "--test=properties", "--test=op_values"])
        });
    }
}

/// Systems for which the crates are to compile.
const SYSTEMS: [&str; 3] =
    ["x86_64-pc-windows-gnu", "aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];

/// Whether the crates compile for other systems, as far as the compiler has their standard libraries. (Nothing is linked.)
fn other_systems(root: &Path, report: &mut Report) {
    for target in SYSTEMS {
        let name = format!("check, {target}");
        if emulate::has_library(target) {
            let words =
                ["check", "--workspace", "--exclude", "pullback-loom", "--exclude", "xtask"];
            report.step(&name, || command::run(cargo(root).args(words).args(["--target", target])));
        } else {
            report.absent(&name, &format!("no standard library: rustup target add {target}"));
        }
    }
}

/// Whether the crates compile with the oldest compiler that the manifest promises, which rustup
/// must have. Its build folder is a separate one, so that the files of the present compiler stay.
fn oldest_rust(root: &Path) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))
        .map_err(|error| format!("cannot read Cargo.toml: {error}"))?;
    let version = rust_version(&manifest)?;
    let mut check = Command::new("rustup");
    check.current_dir(root).args(["run", version, "cargo", "check", "--workspace", "--locked"]);
    check.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    command::run(check.arg("--target-dir").arg(extension::target(root).join("msrv")))
}

/// The `rust-version` of a manifest.
fn rust_version(manifest: &str) -> Result<&str> {
    let line = manifest.lines().find(|line| line.starts_with("rust-version = "));
    let version = line.and_then(|line| line.split('"').nth(1));
    version.ok_or_else(|| "Cargo.toml names no rust-version".to_owned())
}

pub(crate) fn rust_tests(tests: &mut Command) -> Done {
    let mut kept = command::run_keeping(tests, |line| line.starts_with("test result: "));
    kept.lines = total(&kept.lines).into_iter().collect();
    kept.into()
}

/// One closing line for all test programs of a run, in the form each of them prints.
fn total(lines: &[String]) -> Option<String> {
    let mut sums = [0_u64; 5];
    for line in lines {
        for (sum, count) in sums.iter_mut().zip(counts(line)) {
            *sum += count;
        }
    }
    let word =
        if lines.iter().all(|line| line.starts_with("test result: ok.")) { "ok" } else { "FAILED" };
    let [passed, failed, ignored, measured, filtered] = sums;
    (!lines.is_empty()).then(|| {
        format!(
            "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; {measured} measured; \
             {filtered} filtered out; {} test programs",
            lines.len()
        )
    })
}

/// The five counts of `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in ...`.
fn counts(line: &str) -> impl Iterator<Item = u64> {
    let counts = line.split_once(". ").map_or("", |(_, counts)| counts);
    counts.split("; ").map_while(|part| part.split(' ').next()?.parse().ok())
}

fn python(root: &Path, environment: &Environment, profile: Profile, report: &mut Report) {
    let installed =
        report.step("extension", || extension::build_and_install(root, environment, profile));
    if !installed {
        report.skip("generated files", "the extension could not be built");
        report.skip("stubtest", "the extension could not be built");
        report.skip("pytest", "the extension could not be built");
        report.skip("fuzz", "the extension could not be built");
        return;
    }
    report.step("generated files", || generate::check(root, environment));
    report.step("stubtest", || tool(root, environment, &STUBTEST));
    // (A file's tests stay in one process: some share what is made once.)
    report.step("pytest", || {
        tool(root, environment, &["pytest", "-n", "auto", "--dist", "loadfile"])
    });
    report.step("fuzz", || {
        let mut fuzzers = fuzz::fuzzers(root, environment);
        command::run_keeping(fuzzers.arg("--short"), |line| line.starts_with("fuzz: "))
    });
}

/// Runs a Python tool of the environment and keeps the line that closes its report.
fn tool(root: &Path, environment: &Environment, words: &[&str]) -> Done {
    let mut python = Command::new(&environment.python);
    python.current_dir(root).arg("-m").args(words);
    tool_done(&mut python, words[0])
}

/// Runs a tool and keeps the line that closes its report, under the tool's name.
pub(crate) fn tool_done(tool: &mut Command, name: &str) -> Done {
    let mut done: Done = command::run_keeping(tool, |line| !line.trim().is_empty()).into();
    let last = done.closing.pop();
    done.closing =
        last.map(|line| format!("{name}: {}", line.trim_matches(['=', ' ']))).into_iter().collect();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Part> {
        parts(&mut Arguments::new(text.split_whitespace().map(str::to_owned).collect()))
    }

    #[test]
    fn each_flag_asks_for_its_part() {
        assert_eq!(of(""), []);
        assert_eq!(of("--rust"), [Part::Rust]);
        assert_eq!(of("--loom"), [Part::Loom]);
        assert_eq!(of("--cpu --lint"), [Part::Lint, Part::Cpu]);
    }

    #[test]
    fn test_results_are_added_up() {
        let one = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s";
        let two = "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s";
        assert_eq!(total(&[]), None);
        let sum = total(&[one.to_owned(), two.to_owned()]).unwrap();
        assert_eq!(
            sum,
            "test result: FAILED. 7 passed; 1 failed; 1 ignored; 0 measured; 2 filtered out; 2 test programs"
        );
        assert!(total(&[one.to_owned()]).unwrap().starts_with("test result: ok. 3 passed"));
    }

    #[test]
    fn the_oldest_rust_is_the_one_of_the_manifest() {
        assert_eq!(rust_version("[package]\nrust-version = \"1.89\"\n"), Ok("1.89"));
        assert!(rust_version("[package]\n").unwrap_err().contains("no rust-version"));
    }
}
