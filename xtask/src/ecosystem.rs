//! `cargo xtask test --ecosystem`: programs on libraries that were written for PyTorch, in an environment that has them.
//!
//! The programs are `examples/ecosystem/*.py`, each run as a user would: `python -m pullback PROGRAM`. Names after `--` choose some
//! of them. No model or data set is fetched: the libraries are told that there is no network.

use crate::argument::Arguments;
use crate::extension::Profile;
use crate::step::Report;
use crate::{Result, command, environment, extension};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the programs.
const PROGRAMS: &str = "examples/ecosystem";

/// The programs that were asked for: all of them if none is named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    names: Vec<String>,
}

impl Plan {
    /// Reads `--ecosystem` and its names; `None` if it is not there.
    pub(crate) fn read(arguments: &mut Arguments) -> Option<Self> {
        arguments.flag("--ecosystem").then(|| Self { names: arguments.take_rest() })
    }

    /// Runs the programs, each a step of its own.
    ///
    /// # Errors
    /// A name that is no program, or an environment that cannot be made.
    pub(crate) fn run(&self, root: &Path, profile: Profile, report: &mut Report) -> Result<()> {
        let programs = self.chosen(programs(&root.join(PROGRAMS))?)?;
        let environment = environment::setup_libraries(root)?;
        let installed =
            report.step("extension", || extension::build_and_install(root, &environment, profile));
        for program in programs {
            let name = name_of(&program);
            if !installed {
                report.skip(&name, "the extension could not be built");
                continue;
            }
            report.step(&name, || {
                let mut python = Command::new(&environment.python);
                python.current_dir(root).args(["-m", "pullback"]).arg(&program);
                command::run(python.env("HF_HUB_OFFLINE", "1"))
            });
        }
        Ok(())
    }

    /// Those of the programs that were named.
    fn chosen(&self, programs: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
        let known: Vec<String> = programs.iter().map(|program| name_of(program)).collect();
        if let Some(name) = self.names.iter().find(|name| !known.contains(name)) {
            return Err(format!("--ecosystem has no program `{name}`, but {}", known.join(", ")));
        }
        let is_chosen =
            |program: &PathBuf| self.names.is_empty() || self.names.contains(&name_of(program));
        Ok(programs.into_iter().filter(is_chosen).collect())
    }
}

/// The programs of a folder, by name.
fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .collect();
    found.sort();
    Ok(found)
}

/// A program's name: that of its file, without the ending.
fn name_of(program: &Path) -> String {
    program.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Plan> {
        Plan::read(&mut Arguments::new(text.split_whitespace().map(str::to_owned).collect()))
    }

    #[test]
    fn all_programs_run_unless_some_are_named() {
        assert_eq!(read("--rust"), None);
        let all = || vec![PathBuf::from("a/first.py"), PathBuf::from("a/second.py")];
        assert_eq!(read("--ecosystem").unwrap().chosen(all()), Ok(all()));
        let plan = read("--ecosystem -- second").unwrap();
        assert_eq!(plan.chosen(all()), Ok(vec![PathBuf::from("a/second.py")]));
    }

    #[test]
    fn a_name_that_is_no_program_is_an_error_with_those_there_are() {
        let plan = read("--ecosystem -- third").unwrap();
        let message = plan.chosen(vec![PathBuf::from("a/first.py")]).unwrap_err();
        assert!(message.contains("`third`") && message.contains("first"), "{message}");
    }

    #[test]
    fn the_programs_of_this_project_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let found = programs(&root.join(PROGRAMS)).unwrap();
        assert!(found.iter().any(|program| name_of(program) == "einops_patches"), "{found:?}");
    }
}
