//! `cargo xtask wheel`: the package as it is distributed, left in `target/wheels/`.
//!
//! A wheel is for one version of CPython, whose layout of objects the extension uses. `--python-versions 3.10,3.13` builds one
//! for each, `--sdist` the sources from which pip builds where there is no wheel.

use crate::argument::Arguments;
use crate::environment::Release;
use crate::extension::target;
use crate::{Result, command, environment, step};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The package promises to be light; a wheel above this is an error to be looked at, not a surprise for its users.
const LIMIT: u64 = 15_000_000;

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let (with_source, releases) =
        (arguments.flag("--sdist"), arguments.value("--python-versions")?);
    arguments.finish()?;
    let environment = environment::setup(root)?;
    let interpreters = match releases {
        None => vec![environment.python.clone().into_os_string()],
        Some(releases) => interpreters(&releases)?,
    };
    let folder = target(root).join("wheels");
    let maturin = |arguments: &[&str]| {
        let mut maturin = Command::new(&environment.python);
        maturin.current_dir(root).args(["-m", "maturin"]).args(arguments).arg("--out").arg(&folder);
        maturin
    };
    let mut wheels = Vec::new();
    for interpreter in interpreters {
        let name = format!("wheel for {}", interpreter.display());
        wheels.push(step::single(&name, || {
            let mut build = maturin(&["build", "--release"]);
            command::run(build.arg("--interpreter").arg(&interpreter))?;
            let wheel = newest(&folder, "whl")?;
            repack(&environment.python, &wheel)?;
            Ok(wheel)
        })?);
    }
    if with_source {
        wheels.push(step::single("source distribution", || {
            command::run(&mut maturin(&["sdist"]))?;
            newest(&folder, "gz")
        })?);
    }
    println!();
    for file in &wheels {
        let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
        println!("{}: {}", file.strip_prefix(root).unwrap_or(file).display(), megabytes(size));
        if size > LIMIT {
            return Err(format!("it is {}, above {}", megabytes(size), megabytes(LIMIT)));
        }
    }
    Ok(())
}

/// Packs a wheel as small as the format allows: that takes a minute once, and is fetched often.
fn repack(python: &Path, wheel: &Path) -> Result<()> {
    const SCRIPT: &str = include_str!("wheel/repack.py");
    command::run(Command::new(python).args(["-c", SCRIPT]).arg(wheel))
}

/// The interpreters of versions such as `3.10,3.13`. All are looked for before the first wheel is built.
fn interpreters(releases: &str) -> Result<Vec<OsString>> {
    releases.split(',').map(|text| environment::interpreter(Release::parse(text.trim())?)).collect()
}

/// The file with this extension in `folder` that was written last.
fn newest(folder: &Path, extension: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wheels = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension));
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified());
    wheels
        .max_by_key(|path| written(path).unwrap_or(SystemTime::UNIX_EPOCH))
        .ok_or_else(|| format!("there is no .{extension} in {}", folder.display()))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_wheel_is_found_among_other_files() {
        let folder = std::env::temp_dir().join(format!("xtask-wheels-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(newest(&folder, "whl").unwrap_err().contains("no .whl"));
        fs::write(folder.join("a-0.1.0.whl"), "").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(folder.join("a-0.0.9.whl"), "").unwrap();
        fs::write(folder.join("notes.txt"), "").unwrap();
        assert!(newest(&folder, "whl").unwrap().ends_with("a-0.0.9.whl"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn sizes_are_decimal_megabytes() {
        assert_eq!(megabytes(LIMIT), "15.00 MB");
    }
}
