//! The extension compiled with AddressSanitizer, under pytest.
//!
//! It does not replace the extension that `cargo xtask install` made: a folder of links to the package's files holds it, which
//! `PYTHONPATH` puts first. Python itself is not compiled with the sanitizer, so the runtime is loaded before it. The
//! compiler brings the runtime as an archive for programs; a library is made from it. What the processes report is read
//! by `report`.

use super::report;
use crate::environment::Environment;
use crate::extension::{cargo, target};
use crate::step::Done;
use crate::{Result, check, command};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The runtime as a library. (The runtime refuses to start beside a file of its own usual name.)
pub(super) const RUNTIME: &str = "libsanitizer_of_rust.so";

/// Tests of what the sanitizer changes: limits of address space, of which its shadow takes terabytes; memory and
/// time of an import; who is named as the one that keeps memory.
const NOT_HERE: [&str; 4] = [
    "python/tests/test_out_of_memory.py",
    "python/tests/test_leaks.py",
    "python/tests/test_import.py",
    "python/tests/test_fuzz.py",
];

/// What this machine lacks, if anything.
pub(super) fn missing() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("the runtime is loaded before Python as Linux does it".to_owned());
    }
    let lacks = ["cc", "ar"]
        .into_iter()
        .find(|name| command::capture(Command::new(name).arg("--version")).is_err())?;
    Some(format!(
        "`{lacks}` makes a library of the compiler's runtime: install binutils and a C compiler"
    ))
}

pub(super) fn address(root: &Path, environment: &Environment, words: &[String]) -> Result<Done> {
    let host = super::host()?;
    let folder = target(root).join("sanitize");
    let mut build = cargo(root);
    build.args(["build", "--package=pullback-python"]);
    super::with_address(&mut build, &host);
    command::run(&mut build)?;
    let runtime = runtime(&folder, &host)?;
    let built = target(root).join(&host).join("debug").join(format!("{DLL_PREFIX}_C{DLL_SUFFIX}"));
    package(root, environment, &folder, &built)?;
    let load = Load { python: &environment.python, folder: &folder, runtime: &runtime };
    load.sees_errors(root)?;
    load.remove_reports()?;
    // An error ends the process by a signal; a leak, which is told at its end, leaves its status as it is.
    let report = folder.join(REPORT);
    let options =
        format!("detect_leaks=1:exitcode=0:abort_on_error=1:log_path={}", report.display());
    let mut pytest = load.program(root, &options);
    pytest.args(["-m", "pytest"]);
    if words.is_empty() {
        pytest.args(["-n", "auto", "--dist", "loadfile"]);
        pytest.args(NOT_HERE.map(|file| format!("--ignore={file}")));
    }
    let mut done = check::tool_done(pytest.args(words), "pytest");
    match report::judge(&folder, REPORT) {
        Ok(line) => done.closing.push(line),
        Err(error) => done.result = Err(error),
    }
    Ok(done)
}

/// What the files of reports begin with.
const REPORT: &str = "report";

/// Programs that err: each must be stopped, or the tests under the sanitizer would show nothing.
const WRONG: [(&str, &str); 2] = [
    (
        "beyond a tensor's end",
        "import ctypes, pullback; x = pullback.ones(3, dtype=pullback.uint8); ctypes.string_at(x.data_ptr(), 4)",
    ),
    (
        "of a tensor that is gone",
        "import ctypes, pullback; x = pullback.ones(3); at = x.data_ptr(); del x; ctypes.string_at(at, 4)",
    ),
];

/// The environment of each program: the runtime, and the package of the folder.
struct Load<'a> {
    python: &'a Path,
    folder: &'a Path,
    runtime: &'a Path,
}

impl Load<'_> {
    /// Python, with options for the sanitizer.
    fn program(&self, root: &Path, options: &str) -> Command {
        let mut program = Command::new(self.python);
        program.current_dir(root).env("LD_PRELOAD", self.runtime).env("PYTHONPATH", self.folder);
        let form = report::FRAME;
        let options = format!("{options}:allocator_may_return_null=1:stack_trace_format={form}");
        // Python's objects come from the C library, where the sanitizer sees them.
        program.env("ASAN_OPTIONS", options).env("PYTHONMALLOC", "malloc");
        program
    }

    /// # Errors
    /// If one of the wrong programs runs to its end, or ends for another reason.
    fn sees_errors(&self, root: &Path) -> Result<()> {
        for (what, program) in WRONG {
            let mut wrong = self.program(root, "detect_leaks=0");
            match command::capture(wrong.args(["-c", program])) {
                Err(said) if said.contains("ERROR: AddressSanitizer: heap-") => {}
                Err(said) => return Err(format!("a program that reads memory {what}: {said}")),
                Ok(_) => {
                    return Err(format!("AddressSanitizer does not see a read of memory {what}"));
                }
            }
        }
        Ok(())
    }

    fn remove_reports(&self) -> Result<()> {
        for entry in fs::read_dir(self.folder).map_err(|error| error.to_string())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(REPORT) {
                fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// Makes the library of the runtime; without the part that starts it before a program's own start,
/// which libraries cannot have.
fn runtime(folder: &Path, host: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let libraries = super::libraries(host)?;
    let archive = fs::read_dir(&libraries)
        .map_err(|error| format!("{}: {error}", libraries.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with("_rt.asan.a"))
        .ok_or_else(|| format!("{} has no runtime of AddressSanitizer", libraries.display()))?;
    let (own, library) = (folder.join("runtime.a"), folder.join(RUNTIME));
    fs::copy(archive, &own).map_err(|error| format!("{}: {error}", own.display()))?;
    command::run(Command::new("ar").arg("d").arg(&own).arg("asan_preinit.cpp.o"))?;
    let mut link = Command::new("cc");
    link.args(["-shared", "-o"]).arg(&library).arg("-Wl,--whole-archive").arg(&own);
    command::run(link.args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm", "-lrt"]))?;
    Ok(library)
}

/// A package of links to the Python sources, with the extension that was built.
fn package(root: &Path, environment: &Environment, folder: &Path, built: &Path) -> Result<()> {
    let program = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))";
    let suffix = command::capture(Command::new(&environment.python).args(["-I", "-c", program]))?;
    let package = folder.join("pullback");
    let failed = |error: std::io::Error| format!("{}: {error}", package.display());
    if package.exists() {
        fs::remove_dir_all(&package).map_err(failed)?;
    }
    fs::create_dir_all(&package).map_err(failed)?;
    for entry in fs::read_dir(root.join("python/pullback")).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with("_C.") {
            link(&entry.path(), &package.join(entry.file_name())).map_err(failed)?;
        }
    }
    fs::copy(built, package.join(format!("_C{suffix}"))).map_err(failed).map(|_| ())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
