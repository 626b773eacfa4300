//! Rules on code that is allowed in some places only: `unsafe`, ops that look at a thread's modes,
//! functions that are set at run time.
//!
//! The tables name every other place with its reason; a row that nothing needs any more is a finding too.

use super::Finding;
use super::library::{Arrow, module_of};
use super::reference::tokens;
use super::source::Source;
use std::collections::BTreeSet;

/// Where unsafe code belongs.
const UNSAFE_FOLDERS: [&str; 6] = [
    "crates/kernels/",
    "crates/fft/",
    "crates/pullback/src/tensor/",
    "crates/python/src/raw/",
    "crates/extension/src/",
    "crates/loom/",
];

/// The reason why the dispatcher has unsafe code.
const ACCESS: &str = "hands kernels the right to memory, once a call has come past all layers";

/// The other files with unsafe code, or folders of them, and why.
const UNSAFE_ELSEWHERE: [(&str, &str); 52] = [
    ("crates/pullback/src/local.rs", "a thread's few words, found without a call"),
    ("crates/pullback/src/binding.rs", "memory of others as a tensor"),
    ("crates/pullback/src/dlpack.rs", "memory of other libraries, by their protocols"),
    ("crates/pullback/src/call_site.rs", "a line of the program in one word"),
    (
        "crates/pullback/src/dispatch/pointwise.rs",
        "kernels' pointers to the elements of tensors whose sizes it has checked",
    ),
    ("crates/pullback/src/dispatch/call.rs", ACCESS),
    (
        "crates/pullback/src/capture/program.rs",
        "kernels of a program, on tensors that its guards have seen",
    ),
    ("crates/pullback/src/dispatch/resolve.rs", ACCESS),
    ("crates/pullback/src/dispatch/sparse.rs", ACCESS),
    ("crates/pullback/src/autograd/call.rs", ACCESS),
    (
        "crates/pullback/src/autograd/graph/counted.rs",
        "a counted pointer whose last handle takes no atomic step",
    ),
    ("crates/pullback/src/autograd/graph/accumulator.rs", "a node in memory that its leaf owns"),
    (
        "crates/pullback/src/autograd/graph/node.rs",
        "a node is written field by field into its memory",
    ),
    ("crates/pullback/src/autograd/graph/current.rs", "the node that is running, by reference"),
    ("crates/pullback/src/autograd/engine/running.rs", "the request that is running, by reference"),
    ("crates/pullback/src/autograd/record.rs", "what a node saves is put together where it stays"),
    ("crates/pullback/tests/lazy_clone.rs", "writes to addresses that tensors gave"),
    ("crates/pullback/tests/out_of_memory/", "an allocator that counts and refuses"),
    ("crates/python/src/allocator.rs", "the process's allocator"),
    ("crates/python/src/lock.rs", "the interpreter's lock and signals, for which PyO3 has no call"),
    (
        "crates/python/src/interrupt.rs",
        "the interpreter's lock and signals, for which PyO3 has no call",
    ),
    ("crates/python/src/extension.rs", "the table of a library that was loaded"),
    ("crates/python/src/held.rs", "a reference that is given back on any thread"),
    ("crates/python/src/lib.rs", OBJECTS),
    ("crates/python/src/dtype.rs", OBJECTS),
    ("crates/python/src/registry.rs", OBJECTS),
    ("crates/python/src/setting.rs", OBJECTS),
    ("crates/python/src/tensor/method.rs", OBJECTS),
    ("crates/python/src/autograd/transform.rs", OBJECTS),
    ("crates/python/src/autograd/forward.rs", OBJECTS),
    ("crates/python/src/autograd/engine.rs", OBJECTS),
    ("crates/python/src/bind.rs", OBJECTS),
    ("crates/python/src/convert.rs", OBJECTS),
    ("crates/python/src/result.rs", OBJECTS),
    ("crates/python/src/indexing.rs", OBJECTS),
    ("crates/python/src/torch_function.rs", OBJECTS),
    ("crates/python/src/torch_dispatch.rs", OBJECTS),
    ("crates/python/src/tensor/construct.rs", OBJECTS),
    ("crates/python/src/tensor/conversion.rs", OBJECTS),
    ("crates/python/src/tensor/display.rs", OBJECTS),
    ("crates/python/src/tensor/hook.rs", OBJECTS),
    ("crates/python/src/tensor/legacy.rs", OBJECTS),
    ("crates/python/src/tensor/property.rs", OBJECTS),
    ("crates/python/src/tensor/view.rs", OBJECTS),
    ("crates/python/src/tensor/storage.rs", OBJECTS),
    ("crates/python/src/tensor/dlpack.rs", "memory of other libraries, by their protocols"),
    ("crates/python/src/tensor/mapped.rs", "memory of other libraries, by their protocols"),
    ("crates/python/src/tensor/numpy.rs", "memory of other libraries, by their protocols"),
    ("crates/python/src/autograd/context.rs", NODES),
    ("crates/python/src/autograd/function.rs", NODES),
    ("crates/python/src/autograd/hook_dicts.rs", NODES),
    ("crates/python/src/autograd/node.rs", NODES),
];
/// The reason for files of the binding that handle arguments and methods.
const OBJECTS: &str = "methods and arguments as the interpreter passes them: borrowed, of a class that it has checked";
/// The reason for files of the binding that handle nodes.
const NODES: &str = "nodes and their Python objects hold each other by the interpreter's counts";

/// Ops that look at modes, and why they may.
const MODES: [(&str, &str); 3] = [
    (
        "crates/pullback/src/ops/linalg/matmul.rs",
        "whether a product is folded depends on whether its gradient would be",
    ),
    (
        "crates/pullback/src/ops/nn/rnn.rs",
        "autocast has no policy for a cell that runs its parts in lower precision",
    ),
    (
        "crates/pullback/src/ops/nn/rnn_layer.rs",
        "autocast has no policy for a layer that runs its parts in lower precision; its backward runs a graph of its own",
    ),
];

const OPS: &str = "crates/pullback/src/ops/";
/// The module of the thread's state.
const THREAD: &str = "autograd::thread::";

/// The row that a file stands in.
fn row(table: &[(&'static str, &str)], path: &str) -> Option<usize> {
    table
        .iter()
        .position(|(place, _)| path == *place || place.ends_with('/') && path.starts_with(place))
}

/// The lines with unsafe code: blocks, functions, implementations, traits, foreign items.
fn unsafe_lines(source: &Source) -> Vec<usize> {
    let code = source.code_without_tests();
    let tokens = tokens(&code);
    let follows = ["{", "fn", "impl", "extern", "trait", "("];
    let is_code = |at: usize| {
        tokens[at].text == "unsafe"
            && tokens.get(at + 1).is_some_and(|next| follows.contains(&next.text))
    };
    (0..tokens.len()).filter(|&at| is_code(at)).map(|at| tokens[at].line).collect()
}

/// Unsafe code where none belongs.
pub(super) fn unsafe_code(source: &Source, findings: &mut Vec<Finding>) {
    let is_home = UNSAFE_FOLDERS.iter().any(|folder| source.path.starts_with(folder));
    if is_home || row(&UNSAFE_ELSEWHERE, &source.path).is_some() {
        return;
    }
    for line in unsafe_lines(source) {
        let message = "unsafe code belongs into the kernels, the storage and the raw Python module: see `tidy/place.rs`";
        findings.push(Finding::new(source, line, message));
    }
}

/// An op that reads memory outside of a kernel.
pub(super) fn access(source: &Source, findings: &mut Vec<Finding>) {
    if !source.path.starts_with(OPS) {
        return;
    }
    let code = source.code_without_tests();
    let tokens = tokens(&code);
    for at in 0..tokens.len() {
        let next = tokens[at..]
            .iter()
            .map(|token| token.text)
            .filter(|text| *text != ":" && *text != "::");
        if tokens[at].text == "Cpu" && next.take(2).eq(["Cpu", "of"]) {
            let message = "only a kernel reads memory, by the `Cpu` that the dispatcher gives it";
            findings.push(Finding::new(source, tokens[at].line, message));
        }
    }
}

/// The statics into which functions are put at run time, and why.
const HOOKS: [(&str, &str); 3] = [
    ("crates/pullback/src/host.rs", "what a language binding offers, in one value"),
    (
        "crates/kernels/src/interrupt.rs",
        "the library, a crate above, names the host that knows of interrupts",
    ),
    ("crates/pullback/src/warning.rs", "a program gets warnings by a handler of its own"),
];
/// The crates in which each function is named by who calls it.
const WITHOUT_HOOKS: [&str; 3] = ["crates/pullback/src/", "crates/kernels/src/", "crates/fft/src/"];
/// Types of statics that are filled at run time.
const FILLED_LATER: [&str; 4] = ["OnceLock", "LazyLock", "Mutex", "RwLock"];

/// The lines of statics that a function, or an object with methods, is put into at run time.
fn hook_lines(source: &Source) -> Vec<usize> {
    let code = source.code_without_tests();
    let tokens = tokens(&code);
    let until = |from: usize, ends: &[&str]| {
        let rest = tokens[from.min(tokens.len())..].iter().map(|token| token.text);
        rest.take_while(|text| !ends.contains(text)).collect::<Vec<_>>()
    };
    let is_dynamic = |text: &str| matches!(text, "fn" | "Fn" | "dyn");
    let aliases: BTreeSet<&str> = (1..tokens.len())
        .filter(|&at| tokens[at - 1].text == "type")
        .filter(|&at| until(at, &[";"]).into_iter().any(is_dynamic))
        .map(|at| tokens[at].text)
        .collect();
    let is_hook = |at: usize| {
        let ty = until(at + 2, &["=", ";"]);
        tokens[at].text == "static"
            && tokens.get(at + 2).is_some_and(|token| token.text == ":")
            && ty.iter().any(|text| FILLED_LATER.contains(text))
            && ty.iter().any(|text| is_dynamic(text) || aliases.contains(text))
    };
    (0..tokens.len()).filter(|&at| is_hook(at)).map(|at| tokens[at].line).collect()
}

/// A function that is set at run time, so that a layer calls one above it without naming it.
pub(super) fn hooks(source: &Source, findings: &mut Vec<Finding>) {
    let is_checked = WITHOUT_HOOKS.iter().any(|folder| source.path.starts_with(folder));
    if !is_checked || row(&HOOKS, &source.path).is_some() {
        return;
    }
    for line in hook_lines(source) {
        let message = "a function that is set at run time hides who calls whom: pass it, or make it a method of `Host` (`crates/pullback/src/host.rs`)";
        findings.push(Finding::new(source, line, message));
    }
}

/// The lines where an op looks at what its thread works under.
fn mode_lines(source: &Source, arrows: &BTreeSet<Arrow>) -> Vec<(usize, String)> {
    let is_op = source.path.starts_with(OPS) && module_of(source).is_some();
    let is_mode = |arrow: &&Arrow| is_op && arrow.homes.iter().all(|home| home.starts_with(THREAD));
    arrows.iter().filter(is_mode).map(|arrow| (arrow.line, arrow.spelled())).collect()
}

/// An op that looks at modes: grad mode, autocast, levels. What it computes depends on its arguments only.
pub(super) fn modes(source: &Source, arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    if row(&MODES, &source.path).is_some() {
        return;
    }
    for (line, used) in mode_lines(source, arrows) {
        findings.push(Finding::new(source, line, format!("an op must not look at modes: {used}")));
    }
}

/// Rows of the tables that are not needed any more.
pub(super) fn unneeded(
    sources: &[Source],
    arrows: impl Fn(&Source) -> BTreeSet<Arrow>,
) -> Vec<String> {
    let mut needed = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for source in sources.iter().filter(|source| source.is_rust()) {
        if let Some(row) =
            row(&UNSAFE_ELSEWHERE, &source.path).filter(|_| !unsafe_lines(source).is_empty())
        {
            needed.0.insert(row);
        }
        if let Some(row) =
            row(&MODES, &source.path).filter(|_| !mode_lines(source, &arrows(source)).is_empty())
        {
            needed.1.insert(row);
        }
        if let Some(row) = row(&HOOKS, &source.path).filter(|_| !hook_lines(source).is_empty()) {
            needed.2.insert(row);
        }
    }
    let left = |table: &[(&str, &str)], needed: &BTreeSet<usize>, what: &str| -> Vec<String> {
        let rows = table.iter().enumerate().filter(|(row, _)| !needed.contains(row));
        rows.map(|(_, (place, _))| format!("{place} {what}: take its row out of `tidy/place.rs`"))
            .collect()
    };
    let mut unneeded = left(&UNSAFE_ELSEWHERE, &needed.0, "has no unsafe code");
    unneeded.extend(left(&MODES, &needed.1, "looks at no mode"));
    unneeded.extend(left(&HOOKS, &needed.2, "sets no function at run time"));
    unneeded
}

#[cfg(test)]
mod tests {
    use super::super::library::Library;
    use super::*;

    fn lines(rule: impl Fn(&Source, &mut Vec<Finding>), path: &str, text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        rule(&Source::new(path, text), &mut findings);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unsafe_code_is_found_where_it_does_not_belong() {
        for text in [
            "\nunsafe { f() }",
            "\nunsafe impl Send for X {}",
            "\nunsafe fn f() {}",
            "\n#[unsafe(no_mangle)]",
        ] {
            assert_eq!(
                lines(unsafe_code, "crates/pullback/src/autograd/api.rs", text),
                [2],
                "{text}"
            );
            for path in [
                "crates/kernels/src/a.rs",
                "crates/pullback/src/tensor/storage.rs",
                "crates/python/src/raw/a.rs",
                UNSAFE_ELSEWHERE[0].0,
            ] {
                assert!(lines(unsafe_code, path, text).is_empty(), "{path}");
            }
        }
        assert!(
            lines(unsafe_code, "crates/a/src/b.rs", "// unsafe {\nlet r#unsafe = 1; f(r#unsafe);")
                .is_empty()
        );
    }

    #[test]
    fn ops_that_look_at_modes_are_found() {
        let check = |path: &str, text: &str| {
            let sources = [
                Source::new(
                    "crates/pullback/src/autograd/thread/mode.rs",
                    "pub fn is_recording() {}",
                ),
                Source::new(
                    "crates/pullback/src/autograd/mod.rs",
                    "pub use thread::mode; mod thread;",
                ),
                Source::new("crates/pullback/src/autograd/thread/mod.rs", "pub mod mode;"),
                Source::new(path, text),
            ];
            let arrows = Library::read(&sources).arrows(&sources[3]);
            let mut findings = Vec::new();
            modes(&sources[3], &arrows, &mut findings);
            findings.len()
        };
        for text in [
            "use crate::autograd::mode::is_recording;",
            "fn f() { crate::autograd::mode::is_recording() }",
        ] {
            assert_eq!(check("crates/pullback/src/ops/unary.rs", text), 1, "{text}");
            assert_eq!(check("crates/pullback/src/autograd/api.rs", text), 0);
            assert_eq!(check(MODES[0].0, text), 0);
        }
        assert_eq!(check("crates/pullback/src/ops/unary.rs", "use crate::autograd::call;"), 0);
    }

    #[test]
    fn rows_that_nothing_needs_are_found() {
        let rows = UNSAFE_ELSEWHERE.len() + MODES.len() + HOOKS.len();
        assert_eq!(unneeded(&[], |_| BTreeSet::new()).len(), rows);
        let source = [Source::new(UNSAFE_ELSEWHERE[0].0, "unsafe { f() }")];
        assert_eq!(unneeded(&source, |_| BTreeSet::new()).len(), rows - 1);
    }

    #[test]
    fn functions_that_are_set_at_run_time_are_found() {
        for text in [
            "static A: OnceLock<fn(u8)> = OnceLock::new();",
            "\tstatic A: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);",
            "type Release = fn(u8); static A: OnceLock<Release> = OnceLock::new();",
        ] {
            assert_eq!(lines(hooks, "crates/pullback/src/tensor/raw.rs", text), [1], "{text}");
            assert!(lines(hooks, HOOKS[0].0, text).is_empty());
            assert!(lines(hooks, "crates/python/src/lib.rs", text).is_empty());
        }
        for text in [
            "static A: OnceLock<bool> = OnceLock::new(); fn f() {}",
            "static OPS: &[fn(u8)] = &[f];",
            "fn f(x: &'static dyn Host) { let y: OnceLock<fn()>; }",
        ] {
            assert!(lines(hooks, "crates/pullback/src/tensor/raw.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn ops_read_memory_in_kernels_only() {
        let text = "fn vjp(x: &Tensor) { x.view_ref(Cpu::of(x)?); }\nfn cpu(cpu: Cpu) {}";
        assert_eq!(lines(access, "crates/pullback/src/ops/reduce/sum.rs", text), [1]);
        assert!(lines(access, "crates/pullback/src/binding.rs", text).is_empty());
    }
}
