//! `cargo xtask test --emulate`: tests on processors that this machine is not, by QEMU's emulation of single programs.
//!
//! `--emulate` alone runs what this machine has the tools for and names what it lacks; `--emulate NAME` asks for one
//! processor and fails if a tool is missing. Words after `--` go to `cargo test` in place of the tests listed here.
//! An emulated processor takes ten to fifty times as long as a real one. Start at [`MACHINES`].

use crate::argument::Arguments;
use crate::extension::cargo;
use crate::step::{Done, Report};
use crate::{Result, check, command};
use std::path::Path;
use std::process::Command;

/// A processor whose programs are compiled here and run under emulation.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    name: &'static str,
    /// What the compiler calls it.
    target: &'static str,
    /// The start of the names of the C tools for it, and of the folder with its C library.
    tools: &'static str,
    /// What runs there: words of `cargo test`.
    tests: &'static [&'static [&'static str]],
}

const MACHINES: [Machine; 2] = [
    Machine {
        name: "aarch64",
        target: "aarch64-unknown-linux-gnu",
        tools: "aarch64-linux-gnu",
        // The portable code, through this processor's own vector registers.
        tests: &[
            &["--package=pullback-kernels", "--package=pullback-fft", "--lib", "--tests"],
            &["--package=pullback", "--test=properties"],
        ],
    },
    Machine {
        name: "s390x",
        target: "s390x-unknown-linux-gnu",
        tools: "s390x-linux-gnu",
        // The greatest byte of a number comes first there: what reads files and texts must not care.
        tests: &[
            &["--package=pullback-schema", "--lib"],
            &["--package=pullback", "--lib", "--", "io::"],
        ],
    },
];

/// The emulated runs that were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    machines: &'static [Machine],
    /// Whether a missing tool is an error: the machine was asked for by name.
    is_named: bool,
    words: Vec<String>,
}

impl Plan {
    /// Reads `--emulate [NAME]` and its words; `None` if it is not there.
    pub(crate) fn read(arguments: &mut Arguments) -> Result<Option<Self>> {
        let Some(name) = arguments.optional_value("--emulate")? else { return Ok(None) };
        let words = arguments.take_rest();
        if name.is_empty() {
            if !words.is_empty() {
                return Err("words after `--` go to the tests of one machine: name it".to_owned());
            }
            return Ok(Some(Self { machines: &MACHINES, is_named: false, words }));
        }
        let Some(index) = MACHINES.iter().position(|machine| machine.name == name) else {
            let names = MACHINES.map(|machine| machine.name).join(", ");
            return Err(format!("--emulate knows {names}, not `{name}`"));
        };
        Ok(Some(Self { machines: &MACHINES[index..=index], is_named: true, words }))
    }

    pub(crate) fn run(&self, root: &Path, report: &mut Report) {
        for machine in self.machines {
            let name = format!("tests on {}", machine.name);
            match machine.missing() {
                Some(missing) if self.is_named => {
                    report.step(&name, || Err::<(), _>(missing));
                }
                Some(missing) => report.absent(&name, &missing),
                None if self.words.is_empty() => {
                    for words in machine.tests {
                        report.step(&format!("{name}, {}", words[0]), || machine.test(root, words));
                    }
                }
                None => {
                    report.step(&name, || machine.test(root, &self.words));
                }
            }
        }
    }
}

impl Machine {
    fn emulator(&self) -> String {
        format!("qemu-{}", self.name)
    }

    fn linker(&self) -> String {
        format!("{}-gcc", self.tools)
    }

    /// What is not on this machine, and how to get it.
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

    fn read(text: &str) -> Result<Option<Plan>> {
        Plan::read(&mut Arguments::new(text.split_whitespace().map(str::to_owned).collect()))
    }

    #[test]
    fn without_a_name_all_are_tried_and_none_must_be_there() {
        assert_eq!(read("--rust"), Ok(None));
        let plan = read("--emulate").unwrap().unwrap();
        assert!(!plan.is_named && plan.machines.len() == MACHINES.len());
        assert!(read("--emulate -- --lib").unwrap_err().contains("name it"));
    }

    #[test]
    fn one_that_is_named_must_be_there() {
        let plan = read("--emulate s390x -- -p pullback-schema").unwrap().unwrap();
        assert_eq!((plan.machines[0].name, plan.is_named), ("s390x", true));
        assert_eq!(plan.words, ["-p", "pullback-schema"]);
        let message = read("--emulate mips").unwrap_err();
        assert!(message.contains("aarch64") && message.contains("`mips`"), "{message}");
    }

    #[test]
    fn the_compiler_has_the_library_of_its_own_machine() {
        assert!(has_library(&crate::sanitize::host().unwrap()));
        assert!(!has_library("no-such-target"));
    }
}
