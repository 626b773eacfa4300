//! `cargo xtask wheel`: the package as it is distributed, left in `target/wheels/`.

use crate::argument::Arguments;
use crate::extension::target;
use crate::{Result, command, environment, step};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The package promises to be light; a wheel above this is an error to be looked at, not a surprise for its users.
const LIMIT: u64 = 15_000_000;

pub(crate) fn command(root: &Path, arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    let environment = environment::setup(root)?;
    let folder = target(root).join("wheels");
    let wheel = step::single("wheel", || {
        let mut maturin = Command::new(&environment.python);
        maturin.current_dir(root).args(["-m", "maturin", "build", "--release", "--interpreter"]);
        command::run(maturin.arg(&environment.python).arg("--out").arg(&folder))?;
        newest(&folder)
    })?;
    let size = fs::metadata(&wheel).map_err(|error| error.to_string())?.len();
    println!("\n{}: {}", wheel.strip_prefix(root).unwrap_or(&wheel).display(), megabytes(size));
    if size > LIMIT {
        return Err(format!("the wheel is {}, above {}", megabytes(size), megabytes(LIMIT)));
    }
    Ok(())
}

fn newest(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wheels = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified());
    wheels
        .max_by_key(|path| written(path).unwrap_or(SystemTime::UNIX_EPOCH))
        .ok_or_else(|| format!("there is no wheel in {}", folder.display()))
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
        assert!(newest(&folder).unwrap_err().contains("no wheel"));
        fs::write(folder.join("a-0.1.0.whl"), "").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(folder.join("a-0.0.9.whl"), "").unwrap();
        fs::write(folder.join("notes.txt"), "").unwrap();
        assert!(newest(&folder).unwrap().ends_with("a-0.0.9.whl"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn sizes_are_decimal_megabytes() {
        assert_eq!(megabytes(LIMIT), "15.00 MB");
    }
}
