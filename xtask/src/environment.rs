//! The project's Python environment, `.venv`: made once, checked in a millisecond afterwards.
//!
//! A stamp inside `.venv` holds a hash of the requirement list and the interpreter's version. While it agrees, nothing
//! is run. Only CPython is accepted: the extension uses its object layout. The environment variable `PYTHON` chooses
//! the interpreter; without it the environment keeps the one it was made with. Tests may ask for a version of Python,
//! which has an environment of its own beside it: `.venv-3.10`.

use crate::Result;
use crate::argument::Arguments;
use crate::{command, extension, step};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const OLDEST: (u32, u32) = (3, 10);
/// A list of distributions with their versions.
struct Requirements {
    /// The file, from the workspace folder.
    path: &'static str,
    text: &'static str,
    /// Whether pip also installs what they ask for.
    with_needs: bool,
}

/// The tools of this project.
const TOOLS: &[Requirements] = &[Requirements {
    path: "xtask/requirements.txt",
    text: include_str!("../requirements.txt"),
    with_needs: true,
}];

/// Libraries written for PyTorch. They ask for `torch`, whose place pullback takes.
const LIBRARIES: &[Requirements] = &[
    Requirements {
        path: "examples/ecosystem/needs.txt",
        text: include_str!("../../examples/ecosystem/needs.txt"),
        with_needs: true,
    },
    Requirements {
        path: "examples/ecosystem/libraries.txt",
        text: include_str!("../../examples/ecosystem/libraries.txt"),
        with_needs: false,
    },
];
const STAMP: &str = ".pullback-setup";

/// A ready environment.
pub(crate) struct Environment {
    /// The interpreter inside `.venv`.
    pub(crate) python: PathBuf,
    /// Where its packages lie.
    pub(crate) site_packages: PathBuf,
    /// Whether it is that of a requested version: Cargo is to build for its interpreter.
    is_given: bool,
}

impl Environment {
    /// `cargo` in the workspace folder, for the interpreter of this environment.
    pub(crate) fn cargo(&self, root: &Path) -> Command {
        let mut cargo = extension::cargo(root);
        // (For `.venv` Cargo's own configuration says so.)
        if self.is_given {
            cargo.env("PYO3_PYTHON", &self.python);
        }
        cargo
    }
}

/// A version of Python as `3.10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release(u32, u32);

impl Release {
    /// # Errors
    /// If the text is not of this form, or the version older than the oldest.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let parsed = text.split_once('.').and_then(|(major, minor)| {
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        match parsed {
            Some((major, minor)) if (major, minor) >= OLDEST => Ok(Self(major, minor)),
            Some(_) => Err(format!("Python {text} is older than {}.{}", OLDEST.0, OLDEST.1)),
            None => Err(format!("`{text}` is no version of Python such as 3.10")),
        }
    }

    fn is_of(self, interpreter: &Interpreter) -> bool {
        interpreter.release() == Some((self.0, self.1))
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// An interpreter's implementation and version, as `cpython 3.11.7`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interpreter {
    implementation: String,
    version: String,
}

pub(crate) fn command(root: &Path, arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    setup(root).map(|_| ())
}

/// Makes `.venv` if need be and installs what is missing.
pub(crate) fn setup(root: &Path) -> Result<Environment> {
    let chosen = chosen()?;
    let wanted = chosen.as_ref().map(|(interpreter, _)| interpreter);
    ready(root, ".venv", TOOLS, wanted, || Ok(chosen.clone()))
}

/// An environment with libraries that were written for PyTorch, of the same interpreter as `.venv`: one extension serves both.
pub(crate) fn setup_libraries(root: &Path) -> Result<Environment> {
    let python = setup(root)?.python;
    let interpreter = inspect(python.as_os_str())?;
    let choice = Some((interpreter.clone(), python.into_os_string()));
    ready(root, ".venv-ecosystem", LIBRARIES, Some(&interpreter), || Ok(choice))
}

/// Makes the environment of a version of Python, separate from `.venv`.
///
/// # Errors
/// If there is no such interpreter: `PYTHON` names another, and `pythonX.Y` is not on the search path.
pub(crate) fn setup_release(root: &Path, release: Release) -> Result<Environment> {
    let name = format!(".venv-{release}");
    let made = ready(root, &name, TOOLS, None, || find_release(release).map(Some))?;
    Ok(Environment { is_given: true, ..made })
}

fn ready(
    root: &Path,
    name: &str,
    lists: &[Requirements],
    wanted: Option<&Interpreter>,
    choose: impl FnOnce() -> Result<Option<(Interpreter, OsString)>>,
) -> Result<Environment> {
    let folder = root.join(name);
    if let Some(interpreter) = stamped(&folder, lists, wanted) {
        println!("==> setup: {name} is ready ({interpreter})");
        return Ok(environment(&folder, &interpreter));
    }
    step::single(&format!("setup: the Python environment {name}"), || {
        make(root, &folder, lists, choose()?)
    })
}

/// The interpreter of a version: the one that `PYTHON` names, if it is of this version, else `pythonX.Y`.
fn find_release(release: Release) -> Result<(Interpreter, OsString)> {
    if let Some((interpreter, path)) = chosen()?
        && release.is_of(&interpreter)
    {
        return Ok((interpreter, path));
    }
    let name = format!("python{release}");
    match inspect(name.as_ref()) {
        Ok(interpreter) if release.is_of(&interpreter) && suitable(&interpreter).is_ok() => {
            Ok((interpreter, name.into()))
        }
        Ok(other) => Err(format!("{name} on the search path is {other}")),
        Err(why) => Err(format!(
            "no CPython {release}: {name} does not run ({}); install it, or name it: PYTHON=/path/to/{name}",
            why.lines().next().unwrap_or_default()
        )),
    }
}

/// The command that runs an interpreter of this version.
///
/// # Errors
/// As [`setup_release`].
pub(crate) fn interpreter(release: Release) -> Result<OsString> {
    find_release(release).map(|(_, path)| path)
}

/// The interpreter that the environment variable `PYTHON` names.
fn chosen() -> Result<Option<(Interpreter, OsString)>> {
    let path = std::env::var_os("PYTHON").filter(|path| !path.is_empty());
    path.map(inspect_chosen).transpose()
}

fn make(
    root: &Path,
    folder: &Path,
    lists: &[Requirements],
    chosen: Option<(Interpreter, OsString)>,
) -> Result<Environment> {
    let python = python_of(folder);
    let present = inspect(python.as_os_str()).ok();
    let keep = present.as_ref().is_some_and(|present| {
        suitable(present).is_ok() && chosen.as_ref().is_none_or(|(wanted, _)| wanted == present)
    });
    if !keep {
        let (interpreter, path) = chosen.map_or_else(find, Ok)?;
        println!("    {interpreter} at {}", path.to_string_lossy());
        let mut venv = Command::new(&path);
        command::run(venv.current_dir(root).args(["-m", "venv", "--clear"]).arg(folder)).map_err(
            |error| {
                format!(
                    "{error}\n(on Debian and Ubuntu the venv module is the package python3-venv)"
                )
            },
        )?;
    }
    for list in lists {
        let mut pip = Command::new(&python);
        pip.current_dir(root);
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--quiet"]);
        if !list.with_needs {
            pip.arg("--no-deps");
        }
        command::run(pip.args(["--requirement", list.path]))?;
    }
    let interpreter = inspect(python.as_os_str())?;
    write(&folder.join(STAMP), &stamp(lists, &interpreter))?;
    Ok(environment(folder, &interpreter))
}

fn environment(folder: &Path, interpreter: &Interpreter) -> Environment {
    let (major, minor) = interpreter.release().unwrap_or(OLDEST);
    let site_packages = if cfg!(windows) {
        folder.join("Lib").join("site-packages")
    } else {
        folder.join("lib").join(format!("python{major}.{minor}")).join("site-packages")
    };
    Environment { python: python_of(folder), site_packages, is_given: false }
}

fn python_of(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") }
}

/// The first suitable interpreter on the search path.
fn find() -> Result<(Interpreter, OsString)> {
    let mut seen = Vec::new();
    let numbered = (OLDEST.1..=14).rev().map(|minor| format!("python3.{minor}"));
    for name in ["python3".to_owned()].into_iter().chain(numbered).chain(["python".to_owned()]) {
        let Ok(interpreter) = inspect(name.as_ref()) else { continue };
        match suitable(&interpreter) {
            Ok(()) => return Ok((interpreter, name.into())),
            Err(why) => seen.push(format!("{name}: {why}")),
        }
    }
    let seen = if seen.is_empty() { "none on the search path".to_owned() } else { seen.join("; ") };
    Err(format!(
        "no CPython {}.{} or newer ({seen}); install one, or name it: PYTHON=/path/to/python",
        OLDEST.0, OLDEST.1
    ))
}

/// The interpreter that `PYTHON` names; an unsuitable one is an error, where [`find`] goes on to the next.
fn inspect_chosen(path: OsString) -> Result<(Interpreter, OsString)> {
    let interpreter = inspect(&path).and_then(|known| suitable(&known).map(|()| known));
    match interpreter {
        Ok(interpreter) => Ok((interpreter, path)),
        Err(why) => Err(format!("PYTHON is {}, but {why}", path.to_string_lossy())),
    }
}

fn inspect(python: &std::ffi::OsStr) -> Result<Interpreter> {
    let program = "import platform, sys; print(sys.implementation.name, platform.python_version())";
    let text = command::capture(Command::new(python).args(["-I", "-c", program]))?;
    Interpreter::parse(&text)
        .ok_or_else(|| format!("{} does not answer as Python does", python.to_string_lossy()))
}

fn suitable(interpreter: &Interpreter) -> Result<()> {
    if interpreter.implementation != "cpython" {
        return Err(format!("{interpreter} is not CPython"));
    }
    if interpreter.release().is_none_or(|release| release < OLDEST) {
        return Err(format!("{interpreter} is older than {}.{}", OLDEST.0, OLDEST.1));
    }
    Ok(())
}

impl Interpreter {
    fn parse(text: &str) -> Option<Self> {
        let (implementation, version) = text.trim().split_once(' ')?;
        let known = Self { implementation: implementation.to_owned(), version: version.to_owned() };
        known.release().map(|_| known)
    }

    /// Major and minor version.
    fn release(&self) -> Option<(u32, u32)> {
        let mut numbers = self.version.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

impl std::fmt::Display for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.implementation, self.version)
    }
}

/// The interpreter of a finished environment, if its stamp agrees with the requirements and with `wanted`.
fn stamped(
    folder: &Path,
    lists: &[Requirements],
    wanted: Option<&Interpreter>,
) -> Option<Interpreter> {
    let text = fs::read_to_string(folder.join(STAMP)).ok()?;
    let interpreter = Interpreter::parse(text.split_once('\n')?.1)?;
    let agrees =
        text == stamp(lists, &interpreter) && wanted.is_none_or(|wanted| *wanted == interpreter);
    // `exists` follows links: an environment whose base interpreter was removed is not ready.
    (agrees && python_of(folder).exists()).then_some(interpreter)
}

fn stamp(lists: &[Requirements], interpreter: &Interpreter) -> String {
    let text: String = lists.iter().map(|list| list.text).collect();
    format!("{:016x}\n{interpreter}\n", hash(text.as_bytes()))
}

/// The stamp of a list of requirements.
pub(crate) fn stamp_of(requirements: &str) -> String {
    format!("{:016x}\n", hash(requirements.as_bytes()))
}

/// FNV-1a, 64 bits: the standard library's hash may change from one compiler to the next.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Writes a file; the error names it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(text: &str) -> Interpreter {
        Interpreter::parse(text).unwrap()
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(suitable(&interpreter("cpython 3.10.0")).is_ok());
        assert!(suitable(&interpreter("cpython 3.15.0a1")).is_ok());
        assert!(suitable(&interpreter("cpython 3.9.18")).unwrap_err().contains("older than 3.10"));
        assert!(suitable(&interpreter("pypy 3.11.1")).unwrap_err().contains("not CPython"));
        assert_eq!(Interpreter::parse("Python"), None);
        assert_eq!(Interpreter::parse("cpython three"), None);
    }

    #[test]
    fn a_release_is_two_numbers_and_not_too_old() {
        let release = Release::parse("3.10").unwrap();
        assert_eq!(release.to_string(), "3.10");
        assert!(release.is_of(&interpreter("cpython 3.10.13")));
        assert!(!release.is_of(&interpreter("cpython 3.1.0")));
        assert!(Release::parse("3.9").unwrap_err().contains("older than 3.10"));
        for text in ["3", "three", "3.10.1", ""] {
            assert!(Release::parse(text).unwrap_err().contains("no version of Python"), "{text}");
        }
    }

    #[test]
    fn a_version_that_is_not_there_is_an_error_that_says_how_to_name_one() {
        let message = find_release(Release(3, 99)).unwrap_err();
        assert!(message.contains("no CPython 3.99") && message.contains("PYTHON="), "{message}");
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn a_stamp_must_agree_with_requirements_interpreter_and_files() {
        let folder = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        let python = python_of(&folder);
        fs::create_dir_all(python.parent().unwrap()).unwrap();
        let here = interpreter("cpython 3.11.7");
        assert_eq!(stamped(&folder, TOOLS, None), None);
        fs::write(folder.join(STAMP), stamp(TOOLS, &here)).unwrap();
        assert_eq!(stamped(&folder, TOOLS, None), None, "the interpreter is missing");
        fs::write(&python, "").unwrap();
        assert_eq!(stamped(&folder, TOOLS, None), Some(here.clone()));
        assert_eq!(stamped(&folder, TOOLS, Some(&here)), Some(here.clone()));
        assert_eq!(stamped(&folder, TOOLS, Some(&interpreter("cpython 3.12.1"))), None);
        fs::write(folder.join(STAMP), "0000000000000000\ncpython 3.11.7\n").unwrap();
        assert_eq!(stamped(&folder, TOOLS, None), None, "another requirement list");
        fs::write(folder.join(STAMP), stamp(TOOLS, &here)).unwrap();
        assert_eq!(stamped(&folder, LIBRARIES, None), None, "the list of another environment");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_requirement_is_pinned() {
        for list in TOOLS.iter().chain(LIBRARIES) {
            let lines = list.text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
            for line in lines {
                assert!(line.contains("=="), "{}: {line}", list.path);
            }
        }
    }
}
