//! `cargo xtask test --emulate`: tests on processors that this machine is not, by QEMU's emulation of single programs.
//!
//! `--emulate` alone runs what this machine has the tools for and names what it lacks; `--emulate NAME` asks for one
//! processor and fails if a tool is missing. Words after `--` go to `cargo test` in place of the tests listed here.
//! An emulated processor takes ten to fifty times as long as a real one. Start at [`CHOICE`].

use crate::extension::cargo;
use crate::selection::{Choice, Selection};
use crate::step::{Done, Report};
use crate::{check, command};
use std::path::Path;
use std::process::Command;

/// A processor whose programs are compiled here and run under emulation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    name: &'static str,
    /// The compiler's name of it.
    target: &'static str,
    /// The start of the names of the C tools for it, and of the folder with its C library.
    tools: &'static str,
    /// The tests that run there, as words of `cargo test`.
    tests: &'static [&'static [&'static str]],
}

const AARCH64: Machine = Machine {
    name: "aarch64",
    target: "aarch64-unknown-linux-gnu",
    tools: "aarch64-linux-gnu",
    // The portable code, through this processor's own vector registers.
    tests: &[
        &["--package=pullback-kernels", "--package=pullback-fft", "--lib", "--tests"],
        &["--package=pullback", "--test=properties"],
    ],
};

const S390X: Machine = Machine {
    name: "s390x",
    target: "s390x-unknown-linux-gnu",
    tools: "s390x-linux-gnu",
    // The greatest byte of a number comes first there: what reads files and texts must not care.
    tests: &[
        &["--package=pullback-schema", "--lib"],
        &["--package=pullback", "--lib", "--", "io::"],
    ],
};

/// The values that `--emulate` takes.
pub(crate) const CHOICE: Choice<Machine> = Choice {
    flag: "--emulate",
    item: "machine",
    names: &[(AARCH64.name, &[AARCH64]), (S390X.name, &[S390X])],
    all: &[AARCH64, S390X],
};

/// Runs what was asked for: the words that were given, else each machine's own.
pub(crate) fn run(selection: &Selection<Machine>, root: &Path, report: &mut Report) {
    let name = |machine: &Machine| format!("tests on {}", machine.name);
    selection.run(report, name, Machine::missing, |machine, name, report| {
        if !selection.words.is_empty() {
            report.step(name, || machine.test(root, &selection.words));
            return;
        }
        for words in machine.tests {
            report.step(&format!("{name}, {}", words[0]), || machine.test(root, words));
        }
    });
}

impl Machine {
    fn emulator(&self) -> String {
        format!("qemu-{}", self.name)
    }

    fn linker(&self) -> String {
        format!("{}-gcc", self.tools)
    }

    /// The tools that this machine lacks, and how to get them.
    fn missing(&self) -> Option<String> {
        let answers =
            |program: &str| command::capture(Command::new(program).arg("--version")).is_ok();
        if !answers(&self.emulator()) {
            return Some(format!(
                "no {}: on Debian and Ubuntu, apt-get install qemu-user",
                self.emulator()
            ));
        }
        if !answers(&self.linker()) {
            let (linker, tools) = (self.linker(), self.tools);
            return Some(format!("no {linker}: on Debian and Ubuntu, apt-get install gcc-{tools}"));
        }
        (!has_library(self.target))
            .then(|| format!("no standard library for it: rustup target add {}", self.target))
    }

    fn test(&self, root: &Path, words: &[impl AsRef<std::ffi::OsStr>]) -> Done {
        let mut tests = cargo(root);
        tests.args(["test", "--no-fail-fast", "--target", self.target]).args(words);
        let variable = self.target.to_uppercase().replace('-', "_");
        tests.env(format!("CARGO_TARGET_{variable}_LINKER"), self.linker());
        let runner = format!("{} -L /usr/{}", self.emulator(), self.tools);
        tests.env(format!("CARGO_TARGET_{variable}_RUNNER"), runner);
        check::rust_tests(&mut tests)
    }
}

/// Whether the compiler in use has a standard library for a target.
pub(crate) fn has_library(target: &str) -> bool {
    let words = ["--print", "target-libdir", "--target", target];
    let folder = command::capture(Command::new("rustc").args(words));
    folder.ok().and_then(|folder| std::fs::read_dir(folder).ok()).is_some_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::Arguments;

    #[test]
    fn each_machine_can_be_asked_for_by_its_name() {
        let words = ["--emulate", "s390x", "--", "-p", "pullback-schema"].map(str::to_owned);
        let selection = CHOICE.read(&mut Arguments::new(words.to_vec())).unwrap().unwrap();
        assert_eq!(selection.items, [S390X]);
        assert_eq!(selection.words, ["-p", "pullback-schema"]);
        let named: Vec<&Machine> = CHOICE.names.iter().flat_map(|(_, items)| *items).collect();
        assert_eq!(named, CHOICE.all.iter().collect::<Vec<_>>());
    }

    #[test]
    fn the_compiler_has_the_library_of_its_own_machine() {
        assert!(has_library(&crate::sanitize::host().unwrap()));
        assert!(!has_library("no-such-target"));
    }
}
