//! Building the Python extension and putting it where `.venv` imports it.
//!
//! One `cargo build`, then a copy of the library beside the Python sources and a `.pth` file that names their folder.
//! So the extension shares every compiled crate with the Rust tests of its profile, and edits of Python files need no
//! installation. The wheel is the business of `wheel.rs`.

use crate::argument::Arguments;
use crate::environment::{self, Environment};
use crate::{Result, command, step};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What asks Cargo for the extension as it is distributed. (The wheel's builder reads the features in `pyproject.toml`.)
pub(crate) const RELEASE: [&str; 5] =
    ["--release", "--package", "pullback-python", "--features", "static-tls"];

/// The Cargo profile of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
}

impl Profile {
    /// The option that asks Cargo for it.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &[],
            Self::Release => &["--release"],
        }
    }

    /// The options that ask Cargo for the extension in this profile.
    fn extension(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &["--package", "pullback-python"],
            Self::Release => &RELEASE,
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let profile = if arguments.flag("--dev") { Profile::Dev } else { Profile::Release };
    arguments.finish()?;
    let environment = environment::setup(root)?;
    step::single("extension: build and install", || build_and_install(root, &environment, profile))
}

/// Builds the extension for the environment's interpreter and installs it.
pub(crate) fn build_and_install(
    root: &Path,
    environment: &Environment,
    profile: Profile,
) -> Result<()> {
    let mut build = environment.cargo(root);
    command::run(build.arg("build").args(profile.extension()))?;
    install(root, environment, profile)
}

/// `cargo` in the workspace folder. rustup's environment carries the tool chain that runs xtask over to it.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    cargo
}

/// The folder Cargo builds into.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

fn install(root: &Path, environment: &Environment, profile: Profile) -> Result<()> {
    let built = target(root).join(profile.folder()).join(format!("{DLL_PREFIX}_C{DLL_SUFFIX}"));
    let program = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))";
    let suffix = command::capture(Command::new(&environment.python).args(["-I", "-c", program]))?;
    let installed = root.join("python/pullback").join(format!("_C{suffix}"));
    if replace(&built, &installed)? {
        println!("    installed python/pullback/_C{suffix}");
    } else {
        println!("    python/pullback/_C{suffix} is up to date");
    }
    remove_installed_package(root, environment)?;
    let pth = environment.site_packages.join("pullback.pth");
    environment::write(&pth, &format!("{}\n", root.join("python").display()))
}

/// Makes `to` a copy of `from`; says whether it had to.
///
/// The copy is renamed into place: a process that has the old library mapped keeps it, where writing over the
/// mapped file would crash that process.
fn replace(from: &Path, to: &Path) -> Result<bool> {
    let bytes = fs::read(from).map_err(|e| format!("cannot read {}: {e}", from.display()))?;
    if fs::read(to).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    let mut beside = to.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, to))
        .map_err(|error| format!("cannot install {}: {error}", to.display()))?;
    Ok(true)
}

/// A pullback that pip put into `.venv` would hide the one that is being developed.
fn remove_installed_package(root: &Path, environment: &Environment) -> Result<()> {
    if !environment.site_packages.join("pullback").exists() {
        return Ok(());
    }
    let mut pip = Command::new(&environment.python);
    command::run(pip.current_dir(root).args(["-m", "pip", "uninstall", "--yes", "pullback"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_replaced_only_when_it_differs() {
        let folder = std::env::temp_dir().join(format!("xtask-replace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (from, to) = (folder.join("from"), folder.join("to"));
        assert!(replace(&from, &to).unwrap_err().contains("cannot read"));
        fs::write(&from, "one").unwrap();
        assert_eq!(replace(&from, &to), Ok(true));
        assert_eq!(replace(&from, &to), Ok(false));
        fs::write(&from, "two").unwrap();
        assert_eq!(replace(&from, &to), Ok(true));
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing is left beside the copy");
        fs::remove_dir_all(&folder).unwrap();
    }
}
