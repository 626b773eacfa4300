//! What is registered for ops: kernels and rules by dispatch key, and where they stand.

use pullback::dispatch::{Backend, OpDef, named_keys};
use pullback::{Tensor, ops};

fn op(name: &str) -> &'static OpDef {
    ops::registry().find(|op| op.full_name() == name).unwrap()
}

#[test]
fn each_rule_is_listed_with_its_key_and_the_line_where_it_stands() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["mm", "add.Tensor", "view", "_indices", "dropout", "cat", "native_dropout"] {
        let all = op(name).registrations();
        assert!(!all.is_empty(), "{name}");
        for rule in all {
            let text = std::fs::read_to_string(root.join(rule.file)).unwrap();
            let line = text.lines().nth(rule.line as usize - 1).unwrap();
            let word = rule.text.split(['(', '=']).next().unwrap().trim();
            assert!(line.contains(word), "{rule}: {line}");
        }
    }
}

#[test]
fn words_are_shown_as_they_are_written() {
    let text =
        |key| op("mm").registrations().into_iter().find(|rule| rule.key == key).unwrap().text;
    assert_eq!(text("FuncTorchBatched"), "batch = mm(self, mat2)");
    assert_eq!(text("SparseCPU"), "sparse = mm(cpu, self, mat2)");
    assert_eq!(text("AutocastCPU"), "autocast = lower");
    assert!(text("CPU").starts_with("fn cpu("));
}

#[test]
fn every_op_has_a_kernel_for_some_backend_or_is_made_of_others() {
    for op in ops::registry() {
        let is_composite = op.is_registered_for("CompositeImplicitAutograd");
        let has_kernel = Backend::ALL.iter().any(|backend| op.has_kernel(*backend));
        assert!(is_composite != has_kernel, "{}", op.full_name());
        let listed = |key| op.registrations().iter().any(|rule| rule.key == key);
        for backend in [Backend::Cpu, Backend::SparseCpu, Backend::SparseCsrCpu] {
            let is_listed = listed(backend.name());
            assert_eq!(is_listed, op.has_kernel(backend), "{} {backend:?}", op.full_name());
        }
    }
}

#[test]
fn the_names_of_all_forms_differ() {
    let mut names = std::collections::BTreeSet::new();
    for op in ops::registry() {
        for form in op.forms() {
            let name = form.qualified(op);
            assert!(op.dump(form).starts_with(&format!("name: {name}\nschema: aten::")), "{name}");
            assert!(names.insert(name.clone()), "{name} twice");
        }
    }
    assert!(names.contains("aten::add_.Tensor") && names.contains("aten::add.out"));
}

#[test]
fn an_op_without_a_kernel_for_a_layout_says_which_it_has() {
    let x = Tensor::from_slice(&[1.0, 0.0], &[2]).unwrap();
    let error = x.sparse_coo_values().err().unwrap().to_string();
    assert!(
        error.contains("Could not run 'aten::_values' with arguments from the 'CPU' backend")
            && error.contains("only available for these backends: [Meta, SparseCPU]"),
        "{error}"
    );
    let coo = x.to_sparse().unwrap();
    assert_eq!(named_keys(&coo)[0], "SparseCPU");
    let error = coo.cumsum(0).err().unwrap().to_string();
    assert!(
        error.contains("Could not run 'aten::cumsum' with arguments from the 'SparseCPU' backend")
            && error.contains("[CPU, CUDA, Meta]"),
        "{error}"
    );
}
