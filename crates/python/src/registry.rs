//! Functions and methods made of the op registry.
//!
//! Overloads are grouped by namespace and name once at import; signatures are made at the first
//! call of each name. Methods written by hand win over ops of the same name.

use crate::bind::{CallKind, CallPlan, OpFunction};
use crate::raw::{callable, class, number};
use pullback::dispatch::{ArgDef, ArgKind, OpDef, Traits};
use pullback_schema::python::{PythonForm, Signature};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule};
use std::collections::BTreeMap;
use std::sync::OnceLock;

type NamedFunctions = BTreeMap<(String, String), OpFunction>;

struct Registry {
    functions: BTreeMap<(String, String), &'static OpFunction>,
    methods: BTreeMap<String, &'static OpFunction>,
    attributes: BTreeMap<String, &'static OpFunction>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The namespaces that are modules of their own; everything else is in `_VariableFunctions`.
const MODULES: [&str; 5] = ["nn", "linalg", "special", "fft", "sparse"];

fn add(
    group: &mut NamedFunctions,
    module: &str,
    name: String,
    form: PythonForm,
    kind: CallKind,
    op: &'static OpDef,
) {
    let key = (module.to_owned(), name.clone());
    let function = group.entry(key).or_insert_with(|| {
        let mut function = OpFunction::new(name, module, form, kind);
        function.is_listed = true;
        function
    });
    if function.kind == kind {
        function.ops.push(op);
    }
}

/// Whether `name` is the older name, in the main namespace and as a method, of an op that has moved to a
/// namespace of its own.
fn is_main_name(op: &OpDef, name: &str) -> bool {
    op.aliases.contains(&name) && !name.starts_with(&format!("{}_", op.module))
}

/// Whether the first argument is the tensor `self`, which an in-place form writes into.
fn takes_self(op: &OpDef) -> bool {
    op.args.first().is_some_and(is_self)
}

fn is_self(arg: &ArgDef) -> bool {
    arg.name == "self" && arg.kind == ArgKind::Tensor
}

/// Whether the op is a method: it takes `self`, in whatever place; gradient rules for the package's own use
/// call the tensor beside the gradient so, and are none.
fn has_method(op: &OpDef) -> bool {
    op.module.is_empty()
        && !op.is(Traits::FUNCTION_ONLY)
        && (takes_self(op) || !op.is(Traits::INTERNAL) && op.args.iter().any(is_self))
}

fn group() -> [NamedFunctions; 3] {
    let [mut functions, mut methods, mut attributes] = [(); 3].map(|()| NamedFunctions::new());
    for op in pullback::ops::registry() {
        let names = std::iter::once(op.name).chain(op.aliases.iter().copied());
        for name in names {
            if !op.module.is_empty() && is_main_name(op, name) {
                add(
                    &mut functions,
                    "",
                    name.to_owned(),
                    PythonForm::Function,
                    CallKind::Functional,
                    op,
                );
                add(
                    &mut methods,
                    "",
                    name.to_owned(),
                    PythonForm::Method,
                    CallKind::Functional,
                    op,
                );
                continue;
            }
            let inplace_only = op.is(Traits::INPLACE_ONLY);
            let kind = if inplace_only { CallKind::Inplace } else { CallKind::Functional };
            if !op.is(Traits::METHOD_ONLY) {
                add(&mut functions, op.module, name.to_owned(), PythonForm::Function, kind, op);
            }
            if op.is(Traits::ATTRIBUTE) {
                add(&mut attributes, "", name.to_owned(), PythonForm::Method, kind, op);
            } else if has_method(op) {
                add(&mut methods, "", name.to_owned(), PythonForm::Method, kind, op);
            }
            if op.is(Traits::INPLACE) && !inplace_only && takes_self(op) {
                // The in-place form of an operator `__x__` is `__ix__`, a method only.
                if let Some(operator) = name.strip_prefix("__") {
                    let name = format!("__i{operator}");
                    add(&mut methods, "", name, PythonForm::Method, CallKind::Inplace, op);
                    continue;
                }
                let name = format!("{name}_");
                if !op.is(Traits::INPLACE_METHOD) {
                    add(
                        &mut functions,
                        op.module,
                        name.clone(),
                        PythonForm::Function,
                        CallKind::Inplace,
                        op,
                    );
                }
                if op.module.is_empty() && !op.is(Traits::FUNCTION_ONLY) {
                    add(&mut methods, "", name, PythonForm::Method, CallKind::Inplace, op);
                }
            }
        }
    }
    [functions, methods, attributes]
}

fn build() -> Registry {
    let [functions, methods, attributes] = group();
    let keep = |f: OpFunction| -> &'static OpFunction { Box::leak(Box::new(f)) };
    Registry {
        functions: functions.into_iter().map(|(k, f)| (k, keep(f))).collect(),
        methods: methods.into_iter().map(|((_, name), f)| (name, keep(f))).collect(),
        attributes: attributes.into_iter().map(|((_, name), f)| (name, keep(f))).collect(),
    }
}

fn registry() -> &'static Registry {
    REGISTRY.get_or_init(build)
}

/// The callable object that `__reduce__` names.
#[pyfunction]
fn _find_callable<'py>(
    py: Python<'py>,
    module: &str,
    name: &str,
    is_method: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let c = py.import("pullback._C")?;
    if is_method {
        return c.getattr("TensorBase")?.getattr(name);
    }
    let path =
        if module.is_empty() { "_VariableFunctions".to_owned() } else { format!("_{module}") };
    c.getattr(path.as_str())?.getattr(name)
}

/// The signature in the forms of a stub; the binding returns the list that the op writes to.
fn stub_of(signature: &Signature, plan: &CallPlan) -> Vec<String> {
    let mut stubs = signature.stub();
    if plan.returns_list {
        for stub in &mut stubs {
            if let Some(rest) = stub.strip_suffix(" -> None: ...") {
                *stub = format!("{rest} -> tuple[Tensor, ...] | list[Tensor]: ...");
            }
        }
    }
    stubs
}

/// Data of every op for the generators of stubs and pages, as plain Python objects.
#[pyfunction]
fn _describe_ops(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    let describe = |function: &OpFunction, is_method: bool| -> PyResult<()> {
        let overloads = function.overloads(py);
        for (signature, plan) in overloads.signatures.iter().zip(&overloads.plans) {
            let dict = PyDict::new(py);
            let op = plan.op;
            dict.set_item("name", &function.name)?;
            dict.set_item("module", &function.module)?;
            dict.set_item("method", is_method)?;
            dict.set_item("attribute", is_method && op.is(Traits::ATTRIBUTE))?;
            dict.set_item("writable", op.is(Traits::WRITABLE))?;
            dict.set_item("inplace", function.kind == CallKind::Inplace)?;
            dict.set_item("schema", op.schema_text)?;
            dict.set_item("op", op.full_name())?;
            dict.set_item("signature", signature.to_string())?;
            dict.set_item("stub", stub_of(signature, plan))?;
            dict.set_item("doc", op.doc.trim())?;
            dict.set_item("internal", op.is(Traits::INTERNAL))?;
            dict.set_item(
                "differentiable",
                !op.is(Traits::NOT_DIFFERENTIABLE)
                    && (!op.vjp.is_empty()
                        || matches!(op.kernels.cpu, pullback::dispatch::Kernel::Composite(_))),
            )?;
            // tidy: not an op, but a trait
            dict.set_item("view", op.is(Traits::VIEW))?;
            dict.set_item("out", op.is(Traits::OUT))?;
            dict.set_item("aliases", op.aliases.to_vec())?;
            dict.set_item("fields", plan.fields.as_ref().map(|(_, f)| f.clone()))?;
            list.append(dict)?;
        }
        Ok(())
    };
    for function in registry().functions.values() {
        describe(function, false)?;
    }
    for function in registry().methods.values().chain(registry().attributes.values()) {
        describe(function, true)?;
    }
    Ok(list)
}

/// The named tuple type of an op's results, or of a function of Python that says its fields.
#[pyfunction]
#[pyo3(signature = (name, fields=None))]
fn _return_type<'py>(
    py: Python<'py>,
    name: &str,
    fields: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(fields) = fields {
        let ty = crate::result::return_type(py, name, &fields)?;
        // SAFETY: types made there live forever.
        return Ok(unsafe { Bound::from_borrowed_ptr(py, ty.cast()) });
    }
    let (called, is_out) = match name.strip_suffix("_out") {
        Some(called) => (called, true),
        None => (name, false),
    };
    let is_called = |op: &&OpDef| op.name == called || op.aliases.contains(&called);
    for op in pullback::ops::registry().filter(is_called).filter(|op| op.is(Traits::OUT) || !is_out)
    {
        if let Some(fields) = pullback_schema::python::struct_fields(&op.schema().returns) {
            let fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
            let ty = crate::result::return_type(py, name, &fields)?;
            // SAFETY: types made there live forever.
            return Ok(unsafe { Bound::from_borrowed_ptr(py, ty.cast()) });
        }
    }
    Err(PyAttributeError::new_err(format!("module 'torch.return_types' has no attribute '{name}'")))
}

/// The public functions of the main namespace.
#[pyfunction]
fn _public_names() -> Vec<&'static str> {
    let shown = |f: &&&'static OpFunction| {
        f.module.is_empty()
            && !f.name.starts_with('_')
            && f.ops.iter().any(|op| !op.is(Traits::INTERNAL))
    };
    registry().functions.values().filter(shown).map(|f| f.name.as_str()).collect()
}

/// Adds the namespaces to the module, the methods to the class, and fills the operators.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let registry = registry();
    let main = PyModule::new(py, "pullback._C._VariableFunctions")?;
    module.add("_VariableFunctions", &main)?;
    let mut spaces = BTreeMap::new();
    for name in MODULES {
        let space = PyModule::new(py, &format!("pullback._C._{name}"))?;
        module.add(format!("_{name}"), &space)?;
        spaces.insert(name, space);
    }
    for ((path, name), &function) in &registry.functions {
        let object = callable::object(py, function, false)?;
        spaces.get(path.as_str()).unwrap_or(&main).add(name.as_str(), object)?;
    }
    for (name, &function) in &registry.attributes {
        class::add_to_base(name, &callable::attribute(py, function)?)?;
    }
    for (name, &function) in &registry.methods {
        class::add_to_base(name, &callable::object(py, function, true)?)?;
    }
    number::init(|name| {
        let main = registry.functions.get(&(String::new(), name.to_owned())).copied();
        main.or_else(|| registry.methods.get(name).copied())
    });
    if let Some(space) = spaces.get("nn") {
        let parse_to = crate::setting::native(
            py,
            c"_parse_to",
            crate::raw::entry::fast!(crate::tensor::conversion::parse_to),
        )?;
        space.add("_parse_to", parse_to)?;
    }
    module.add_function(wrap_pyfunction!(_find_callable, module)?)?;
    module.add_function(wrap_pyfunction!(_describe_ops, module)?)?;
    module.add_function(wrap_pyfunction!(_return_type, module)?)?;
    module.add_function(wrap_pyfunction!(_public_names, module)?)
}
