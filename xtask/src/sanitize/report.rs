//! The reports of AddressSanitizer while Python ran, and the findings in them that are pullback's
//! own.
//!
//! Each process writes a file of its own. An error in one is always a finding. A leak is one if our extension asked for the
//! memory: the innermost frame outside of the runtime lies in it. The interpreter and NumPy keep memory to the end that nobody
//! reaches any more; what their frames asked for is theirs, also when our code called them (`python/tests/test_leaks.py`
//! counts those objects).

use crate::Result;
use std::fs;
use std::path::Path;

/// Frames end with the file that holds the code, in this form.
pub(super) const FRAME: &str = "'    #%n in %f %S <%m>'";

/// What one process reported.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    /// An error of memory, as a whole.
    error: Option<String>,
    /// The leaks of pullback's own, each with its stack.
    leaks: Vec<String>,
    /// The number of leaks of others.
    of_others: usize,
}

/// The findings of all files in a folder whose names begin with `prefix`; an error repeats them.
///
/// # Errors
/// If there is a finding, or the folder cannot be read.
pub(super) fn judge(folder: &Path, prefix: &str) -> Result<String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (mut bad, mut of_others) = (Vec::new(), 0);
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_report =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        if !is_report {
            continue;
        }
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = findings(&String::from_utf8_lossy(&bytes));
        of_others += found.of_others;
        bad.extend(found.error.into_iter().chain(found.leaks));
    }
    bad.sort();
    bad.dedup();
    if bad.is_empty() {
        return Ok(format!(
            "AddressSanitizer: no error, no leak of ours, {of_others} of the interpreter's"
        ));
    }
    Err(format!("{} findings of AddressSanitizer:\n{}", bad.len(), bad.join("\n")))
}

fn findings(text: &str) -> Findings {
    let mut found = Findings::default();
    if text.contains("ERROR: AddressSanitizer") {
        found.error = Some(text.to_owned());
    }
    // (An indirect leak hangs on a direct one.)
    for block in text.split("\n\n").filter(|block| block.contains("Direct leak of ")) {
        let frames = block.lines().filter(|line| line.trim_start().starts_with('#'));
        if frames.clone().find(|line| !is_runtime(line)).is_some_and(is_ours) {
            found.leaks.push(block.trim().to_owned());
        } else {
            found.of_others += 1;
        }
    }
    found
}

fn is_runtime(frame: &str) -> bool {
    frame.contains(super::python::RUNTIME)
}

fn is_ours(frame: &str) -> bool {
    frame.contains("/pullback/_C.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAKS: &str = "==1==ERROR: LeakSanitizer: detected memory leaks\n\n\
        Direct leak of 8 byte(s) in 1 object(s) allocated from:\n    \
            #0 in malloc a.c <x/libsanitizer_of_rust.so>\n    #1 in alloc b.rs <x/pullback/_C.cpython-311.so>\n\n\
        Direct leak of 9 byte(s) in 1 object(s) allocated from:\n    \
            #0 in malloc a.c <x/libsanitizer_of_rust.so>\n    #1 in PyMem_Malloc b.c <x/libpython3.11.so>\n    \
            #2 in call b.rs <x/pullback/_C.cpython-311.so>\n\n\
        Indirect leak of 9 byte(s) in 1 object(s) allocated from:\n    \
            #0 in alloc b.rs <x/pullback/_C.cpython-311.so>\n\n\
        SUMMARY: AddressSanitizer: 26 byte(s) leaked in 3 allocation(s).";

    #[test]
    fn a_leak_belongs_to_who_asked_for_the_memory() {
        let found = findings(LEAKS);
        assert_eq!((found.error, found.leaks.len(), found.of_others), (None, 1, 1));
        assert!(found.leaks[0].starts_with("Direct leak of 8 byte"), "{:?}", found.leaks);
    }

    #[test]
    fn reports_of_all_processes_are_judged() {
        let folder = std::env::temp_dir().join(format!("xtask-reports-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(judge(&folder, "report").unwrap().contains("no error"));
        fs::write(folder.join("report.1"), LEAKS).unwrap();
        fs::write(folder.join("report.2"), "==2==ERROR: AddressSanitizer: heap-use-after-free")
            .unwrap();
        fs::write(folder.join("other"), "==2==ERROR: AddressSanitizer: not asked for").unwrap();
        let message = judge(&folder, "report").unwrap_err();
        assert!(
            message.starts_with("2 findings") && message.contains("use-after-free"),
            "{message}"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
