//! `cargo xtask test --sanitize`: the tests under tools that see errors of memory, races and undefined behaviour.
//!
//! `--sanitize` alone runs what this machine has and names what it lacks; `--sanitize NAME` asks for one and fails if it
//! is missing. Words after `--` go to the tests of that one: options of `cargo test`, for `address-python` those of pytest.
//! Code is compiled with `--cfg pullback_sanitize`: then nothing of ours keeps freed memory or rounds sizes up, so that
//! each access beyond an end or after a time is seen. Start at [`CHOICE`]; the extension is the business of [`python`].

mod python;
mod report;

use crate::environment::Environment;
use crate::extension::cargo;
use crate::selection::{Choice, Selection};
use crate::step::{Done, Report};
use crate::{Result, check, command};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sanitizer {
    AddressRust,
    AddressPython,
    Thread,
    Miri,
    MiriBigEndian,
    Loom,
}

/// The steps without a name, in the order they run.
const ALL: &[Sanitizer] = &[
    Sanitizer::Loom,
    Sanitizer::AddressRust,
    Sanitizer::AddressPython,
    Sanitizer::Thread,
    Sanitizer::Miri,
    Sanitizer::MiriBigEndian,
];

/// The values that `--sanitize` takes.
pub(crate) const CHOICE: Choice<Sanitizer> = Choice {
    flag: "--sanitize",
    item: "sanitizer",
    names: &[
        ("address", &[Sanitizer::AddressRust, Sanitizer::AddressPython]),
        ("address-rust", &[Sanitizer::AddressRust]),
        ("address-python", &[Sanitizer::AddressPython]),
        ("thread", &[Sanitizer::Thread]),
        ("miri", &[Sanitizer::Miri, Sanitizer::MiriBigEndian]),
        ("loom", &[Sanitizer::Loom]),
        ("all", ALL),
    ],
    all: ALL,
};

/// Whether one of the requested steps runs Python.
pub(crate) fn needs_python(selection: &Selection<Sanitizer>) -> bool {
    selection.items.contains(&Sanitizer::AddressPython)
}

/// Runs the requested steps.
pub(crate) fn run(
    selection: &Selection<Sanitizer>,
    root: &Path,
    environment: Option<&Environment>,
    report: &mut Report,
) {
    let name = |sanitizer: &Sanitizer| sanitizer.name().to_owned();
    let missing = |sanitizer: &Sanitizer| sanitizer.missing();
    selection.run(report, name, missing, |sanitizer, name, report| {
        report.step(name, || sanitizer.run(root, environment, &selection.words));
    });
}

impl Sanitizer {
    fn run(self, root: &Path, environment: Option<&Environment>, words: &[String]) -> Done {
        let done = match (self, environment) {
            (Self::AddressRust, _) => address(root, words),
            (Self::AddressPython, Some(environment)) => python::address(root, environment, words),
            (Self::AddressPython, None) => Err("there is no environment".to_owned()),
            (Self::Thread, _) => thread(root, words),
            (Self::Miri, _) => Ok(miri(root, words)),
            (Self::MiriBigEndian, _) => Ok(miri_big_endian(root)),
            (Self::Loom, _) => Ok(check::rust_tests(cargo(root).args(LOOM).args(words))),
        };
        done.unwrap_or_else(|error| Err(error).into())
    }

    /// The name of its step in the report.
    fn name(self) -> &'static str {
        match self {
            Self::AddressRust => "Rust tests, AddressSanitizer",
            Self::AddressPython => "pytest, AddressSanitizer and leaks",
            Self::Thread => "Rust tests, ThreadSanitizer",
            Self::Miri => "Rust tests, Miri",
            Self::MiriBigEndian => "parsers, Miri on a big-endian machine",
            Self::Loom => "models, loom",
        }
    }

    /// The tools that this machine lacks for the step, and how to get them.
    fn missing(self) -> Option<String> {
        match self {
            Self::AddressRust | Self::Loom => None,
            Self::AddressPython => python::missing(),
            Self::Thread => (!has_library_source()).then(|| {
                format!(
                    "ThreadSanitizer needs the standard library compiled with it (else each mutex and channel looks like \
                     a race): rustup toolchain install {NIGHTLY} --component rust-src"
                )
            }),
            Self::Miri | Self::MiriBigEndian => {
                let mut version = on_nightly(Path::new("."), &["cargo", "miri", "--version"]);
                command::capture(&mut version).is_err().then(|| {
                    format!("there is no Miri: rustup toolchain install {NIGHTLY} --component miri,rust-src")
                })
            }
        }
    }
}

const NIGHTLY: &str = "nightly";
const LOOM: [&str; 3] = ["test", "--package", "pullback-loom"];

/// Crates whose tests have memory of their own to err with. The models of loom move between stacks of their own, which
/// sanitizers do not know; macros and xtask run while others are compiled.
const CRATES: [&str; 8] = [
    "--package=pullback-kernels",
    "--package=pullback-fft",
    "--package=pullback",
    "--package=pullback-nn",
    "--package=pullback-schema",
    // Documentation tests are left out: rustdoc takes its own flags and would find no additional error.
    "--lib",
    "--bins",
    "--tests",
];

/// Adds the tests of [`CRATES`], or those that the words name instead; last, because `--` may stand among the words.
fn add_tests<'a>(cargo: &'a mut Command, words: &[String]) -> &'a mut Command {
    if words.is_empty() {
        cargo.args(CRATES);
    }
    cargo.args(words)
}

/// The flags that the code is compiled with.
fn flags(sanitizer: &str) -> String {
    format!("-Zsanitizer={sanitizer} --cfg pullback_sanitize")
}

/// Lets the present compiler accept the unstable option, so that the run tests exactly the compiler that ships the library. The
/// target is named because only then the flags are kept from build scripts and procedural macros, which the compiler
/// itself runs or loads.
fn with_address(cargo: &mut Command, target: &str) {
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags("address"));
    // Files of incremental compilation would double what lies on the disk.
    cargo.env("CARGO_INCREMENTAL", "0").args(["--target", target]);
    quickly_compiled(cargo);
}

/// Checked code takes several times as long to optimise as it saves when it runs.
fn quickly_compiled(cargo: &mut Command) {
    for package in ["\"*\"", "pullback-kernels", "pullback-fft"] {
        cargo.arg("--config").arg(format!("profile.dev.package.{package}.opt-level=1"));
    }
}

fn address(root: &Path, words: &[String]) -> Result<Done> {
    let mut tests = cargo(root);
    with_address(tests.args(["test", "--no-fail-fast"]), &host()?);
    // A test asks for more memory than there is; the allocator is to say no, as it does without the sanitizer.
    tests.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_stack_use_after_return=1");
    Ok(check::rust_tests(add_tests(&mut tests, words)))
}

/// The compiler of the day with its own standard library compiled too.
fn thread(root: &Path, words: &[String]) -> Result<Done> {
    let mut tests = on_nightly(root, &["cargo", "test", "--no-fail-fast", "-Zbuild-std"]);
    tests.args(["--target", &host()?]);
    tests.env("RUSTFLAGS", flags("thread")).env("CARGO_INCREMENTAL", "0");
    quickly_compiled(&mut tests);
    tests.env("TSAN_OPTIONS", "allocator_may_return_null=1:halt_on_error=1");
    Ok(check::rust_tests(add_tests(&mut tests, words)))
}

/// The interpreter executes a million steps a second: it gets what has unsafe code or raw memory, in portable code.
const MIRI: [&str; 12] = [
    "miri",
    "test",
    "--package=pullback",
    "--package=pullback-kernels",
    "--lib",
    "--no-fail-fast",
    "--",
    "tensor::",
    "autograd::",
    "scalar::",
    "dtype::",
    "strided::",
];

fn miri(root: &Path, words: &[String]) -> Done {
    let mut tests = on_nightly(root, &["cargo"]);
    check::rust_tests(interpreted(&mut tests).args(MIRI).args(words))
}

fn miri_big_endian(root: &Path) -> Done {
    let mut tests = on_nightly(root, &["cargo"]);
    interpreted(&mut tests).args(["miri", "test", "--target", "s390x-unknown-linux-gnu"]);
    check::rust_tests(tests.args(["--package=pullback", "--lib", "--no-fail-fast", "--", "io::"]))
}

fn interpreted(tests: &mut Command) -> &mut Command {
    tests.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PULLBACK_CPU", "generic");
    tests.env("RUSTFLAGS", "--cfg pullback_sanitize")
}

/// A program of the nightly tool chain.
fn on_nightly(root: &Path, words: &[&str]) -> Command {
    let mut rustup = Command::new("rustup");
    rustup.current_dir(root).args(["run", NIGHTLY]).args(words);
    rustup.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    rustup
}

fn has_library_source() -> bool {
    let sysroot =
        command::capture(&mut on_nightly(Path::new("."), &["rustc", "--print", "sysroot"]));
    sysroot.is_ok_and(|sysroot| {
        Path::new(&sysroot).join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file()
    })
}

/// The target that the compiler runs on.
pub(crate) fn host() -> Result<String> {
    host_of(&command::capture(Command::new("rustc").arg("-vV"))?)
}

/// The `host:` line of `rustc -vV`.
fn host_of(version: &str) -> Result<String> {
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// Where the compiler keeps the libraries of a target.
fn libraries(target: &str) -> Result<PathBuf> {
    let sysroot = command::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(&sysroot).join("lib/rustlib").join(target).join("lib"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::Arguments;

    fn read(text: &str) -> Selection<Sanitizer> {
        let words = text.split_whitespace().map(str::to_owned).collect();
        CHOICE.read(&mut Arguments::new(words)).unwrap().unwrap()
    }

    #[test]
    fn python_is_needed_where_its_extension_is_among_the_steps() {
        assert!(needs_python(&read("--sanitize")) && needs_python(&read("--sanitize address")));
        assert!(!needs_python(&read("--sanitize miri")) && !needs_python(&read("--sanitize loom")));
    }

    #[test]
    fn every_step_can_be_asked_for() {
        for sanitizer in ALL {
            let has_it =
                |(name, items): &(&str, &[Sanitizer])| *name != "all" && items.contains(sanitizer);
            assert!(CHOICE.names.iter().any(has_it), "{sanitizer:?}");
        }
    }

    #[test]
    fn the_host_is_read_from_the_compilers_version() {
        let text = "rustc 1.90.0\nbinary: rustc\nhost: aarch64-apple-darwin\nrelease: 1.90.0";
        assert_eq!(host_of(text).as_deref(), Ok("aarch64-apple-darwin"));
        assert!(host_of("rustc 1.90.0").is_err());
    }
}
