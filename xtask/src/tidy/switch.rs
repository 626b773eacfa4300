//! Words that all threads of a process share and that a call might look at.
//!
//! What a call of plain tensors costs must not depend on what other tensors there are: a sparse one, or one of a class with
//! `__torch_dispatch__`, is known by its own keys. A count of such tensors, or a flag that there ever was one, would slow
//! every call down while it is set. So each shared atomic of the layers that a call passes has a row here that says what
//! changes it; there is none that making a tensor of some kind sets and that a call reads. What functions have for themselves
//! (a warning that is given once) has no row.

use super::Finding;
use super::source::Source;

/// The folders of the layers that calls pass.
const FOLDERS: [&str; 4] = [
    "crates/pullback/src/tensor/",
    "crates/pullback/src/dispatch/",
    "crates/pullback/src/autograd/",
    "crates/python/src/",
];

/// The file and name of each shared atomic, and what changes it.
const SHARED: [(&str, &str, &str); 40] = [
    ("crates/pullback/src/autograd/engine/branches.rs", "BRANCHES", SETTING),
    ("crates/pullback/src/autograd/engine/running.rs", "IDS", NUMBERS),
    ("crates/pullback/src/autograd/engine/task.rs", "IS_NUMBERING", "a backward that is watched"),
    ("crates/pullback/src/autograd/graph/anomaly.rs", "CHECKS_NAN", SETTING),
    ("crates/pullback/src/autograd/graph/anomaly.rs", "ENABLED", SETTING),
    ("crates/pullback/src/autograd/graph/hook.rs", "IDS", NUMBERS),
    ("crates/pullback/src/autograd/graph/sequence.rs", "THREADS", NUMBERS),
    (
        "crates/pullback/src/autograd/thread/captured.rs",
        "OPEN",
        "a transform of a function that is open, on any thread; writes in place read it",
    ),
    (
        "crates/pullback/src/autograd/thread/level.rs",
        "OPEN",
        "a level of forward mode; calls read it that have a view or a dual tensor",
    ),
    ("crates/pullback/src/autograd/thread/vmap.rs", "NEXT", NUMBERS),
    (
        "crates/pullback/src/autograd/variable/grad_dtype.rs",
        "IS_ASKED",
        "`grad_dtype`; read in backward, before what the leaf itself says",
    ),
    (
        "crates/pullback/src/autograd/variable/noted.rs",
        "SWEEP_AT",
        "recorded `.grad`s; no call reads it",
    ),
    (
        "crates/pullback/src/tensor/birth.rs",
        "BEGUN",
        "the next transform of a function; every new tensor keeps it, at the same cost whatever it is",
    ),
    ("crates/pullback/src/dispatch/batch.rs", "FALLS_BACK", SETTING),
    ("crates/pullback/src/dispatch/batch.rs", "WARNS", SETTING),
    ("crates/pullback/src/tensor/device.rs", "SIMULATED", SETTING),
    ("crates/pullback/src/tensor/memory.rs", "CACHED", MEMORY),
    ("crates/pullback/src/tensor/memory.rs", "CACHE_LIMIT", SETTING),
    ("crates/pullback/src/tensor/memory.rs", "LARGE_LIVE", MEMORY),
    ("crates/pullback/src/tensor/memory.rs", "PEAK", MEMORY),
    ("crates/pullback/src/tensor/memory.rs", "SMALL_LIVE", MEMORY),
    ("crates/pullback/src/tensor/promote.rs", "DEFAULT", SETTING),
    (
        "crates/pullback/src/tensor/replaced.rs",
        "ANY",
        "memory that was replaced, until the next call of the binding",
    ),
    ("crates/pullback/src/tensor/replaced.rs", "COLLECTED", SETTING),
    ("crates/pullback/src/tensor/uninitialized.rs", "IS_FILLED", SETTING),
    ("crates/pullback/src/tensor/watch.rs", "LAST", NUMBERS),
    ("crates/pullback/src/tensor/watch.rs", "NEW", RECORDING),
    ("crates/pullback/src/tensor/watch.rs", "RECORDING", RECORDING),
    ("crates/python/src/allocator.rs", "HELPED", "an allocation that failed"),
    ("crates/python/src/autograd/cycle.rs", "IS_WATCHED", SETTING),
    (
        "crates/python/src/autograd/transform.rs",
        "OPEN",
        "a transform of `torch.func`, on any thread",
    ),
    ("crates/python/src/function_mode.rs", "MODES", "a `TorchFunctionMode`, on any thread"),
    ("crates/python/src/interrupt.rs", "MAIN", SETTING),
    ("crates/python/src/lock.rs", "AWAY", "calls without the interpreter's lock"),
    ("crates/python/src/lock.rs", "FORKING", "a fork"),
    ("crates/python/src/raw/context.rs", "FREE_COUNT", MEMORY),
    ("crates/python/src/raw/entry.rs", "ON_THE_WAY", "a warning that became an error"),
    ("crates/python/src/raw/frame.rs", "SLOT", SETTING),
    ("crates/python/src/raw/object.rs", "FREE_COUNT", MEMORY),
    ("crates/python/src/raw/storage.rs", "HANDLE_AT", SETTING),
];
const SETTING: &str = "said once, by the program or at start-up";
const NUMBERS: &str = "the next number; no call reads it to decide anything";
const MEMORY: &str = "counts memory";
const RECORDING: &str = "a recording (`capture`) that is on";

/// The name and line of each shared atomic: a static at the left margin. (Pointers are addresses of classes.)
fn shared(source: &Source) -> Vec<(usize, String)> {
    let code = source.code_without_tests();
    let name_of = |line: &str| {
        let from_static = ["static ", "pub static ", "pub(crate) static ", "pub(super) static "]
            .iter()
            .find_map(|start| line.strip_prefix(start))?;
        let (name, ty) = from_static.split_once(':')?;
        let ty = ty.trim_start();
        let ty = ty.rsplit_once("Atomic").map(|(_, kind)| kind)?;
        (!ty.starts_with("Ptr")).then(|| name.trim().to_owned())
    };
    let lines = code.lines().enumerate();
    lines.filter_map(|(at, line)| Some((at + 1, name_of(line.split('=').next()?)?))).collect()
}

fn row(path: &str, name: &str) -> Option<usize> {
    SHARED.iter().position(|(file, known, _)| *file == path && *known == name)
}

/// Shared atomics without a row.
pub(super) fn switches(source: &Source, findings: &mut Vec<Finding>) {
    if !FOLDERS.iter().any(|folder| source.path.starts_with(folder)) {
        return;
    }
    for (line, name) in shared(source) {
        if row(&source.path, &name).is_none() {
            let message = format!(
                "all threads share {name}: no call may cost more because of what another tensor is; say in `tidy/switch.rs` what changes it"
            );
            findings.push(Finding::new(source, line, message));
        }
    }
}

/// Rows whose static does not exist any more.
pub(super) fn unneeded(sources: &[Source]) -> Vec<String> {
    let is_there = |path: &str, name: &str| {
        let here = sources.iter().find(|source| source.path == path);
        here.is_some_and(|source| shared(source).iter().any(|(_, known)| known == name))
    };
    let gone = SHARED.iter().filter(|(path, name, _)| !is_there(path, name));
    gone.map(|(path, name, _)| {
        format!("{path} has no {name}: take its row out of `tidy/switch.rs`")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let mut findings = Vec::new();
        switches(&Source::new(path, text), &mut findings);
        findings.len()
    }

    #[test]
    fn a_shared_atomic_without_a_row_is_found() {
        for text in [
            "static LIVE_SPARSE: AtomicUsize = AtomicUsize::new(0);",
            "pub(crate) static IS_ANY: std::sync::atomic::AtomicBool = AtomicBool::new(false);",
        ] {
            assert_eq!(found("crates/pullback/src/tensor/sparse.rs", text), 1, "{text}");
            assert_eq!(found("crates/pullback/src/ops/sparse/coo.rs", text), 0);
        }
        for text in [
            "fn f() {\n    static GIVEN: AtomicBool = AtomicBool::new(false);\n}",
            "static CLASS: AtomicPtr<u8> = AtomicPtr::new(null_mut());",
            "#[cfg(test)]\nstatic A: AtomicBool = AtomicBool::new(false);",
        ] {
            assert_eq!(found("crates/pullback/src/tensor/sparse.rs", text), 0, "{text}");
        }
        let (path, name, _) = SHARED[0];
        assert_eq!(found(path, &format!("static {name}: AtomicU8 = AtomicU8::new(0);")), 0);
    }

    #[test]
    fn a_row_whose_static_is_gone_is_found() {
        assert_eq!(unneeded(&[]).len(), SHARED.len());
        let (path, name, _) = SHARED[0];
        let text = format!("static {name}: AtomicU8 = AtomicU8::new(0);");
        assert_eq!(unneeded(&[Source::new(path, text)]).len(), SHARED.len() - 1);
    }
}
