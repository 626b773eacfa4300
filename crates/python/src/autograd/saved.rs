//! Hooks on saved tensors: Python's pairs of functions as the library's hooks, and saved tensors as objects.

use super::context::Context;
use super::node::wrap_node;
use crate::convert::type_name;
use crate::error::{carry, raise};
use crate::held::Held;
use crate::interrupt::computing;
use crate::lock::in_python;
use crate::raw::context::context_of;
use crate::raw::object::{as_tensor, wrap_bound};
use pullback::autograd::writes::{self, WriteObserver};
use pullback::autograd::{
    Node, NodeCreationHook, Packed, SavedTensorHooks, creation, freed_before_hooks, saved_hooks,
};
use pullback::{Error, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::any::Any;
use std::sync::Arc;

/// A pair of functions.
struct PackHooks {
    pack: Held,
    unpack: Arc<Held>,
}

/// The result of the first function, and the second function.
struct PackedObject {
    object: Held,
    unpack: Arc<Held>,
}

impl PackHooks {
    fn new(pack: &Bound<'_, PyAny>, unpack: &Bound<'_, PyAny>) -> PyResult<PackHooks> {
        for hook in [pack, unpack] {
            if !hook.is_callable() {
                return Err(PyTypeError::new_err(format!(
                    "incompatible function arguments: the hooks must be functions, not {}",
                    type_name(hook)
                )));
            }
        }
        let unpack = Arc::new(Held::new(unpack.clone().unbind()));
        Ok(PackHooks { pack: Held::new(pack.clone().unbind()), unpack })
    }
}

impl SavedTensorHooks for PackHooks {
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Packed>, Error> {
        let packed = in_python(|py| {
            let given = wrap_bound(py, tensor.clone())?;
            let mut object = self.pack.bind(py).call1((&given,))?;
            if object.is(&given) {
                // An alias without history is passed, because the tensor itself may hold the node
                // that keeps it.
                object = wrap_bound(py, tensor.detach().map_err(raise)?)?;
            }
            Ok(Held::new(object.unbind()))
        });
        Ok(Box::new(PackedObject { object: packed.map_err(carry)?, unpack: self.unpack.clone() }))
    }
}

impl Packed for PackedObject {
    fn unpack(&self) -> Result<Tensor, Error> {
        let unpacked = in_python(|py| {
            let result = self.unpack.bind(py).call1((self.object.bind(py),))?;
            as_tensor(&result).cloned().ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                    type_name(&result)
                ))
            })
        });
        unpacked.map_err(carry)
    }
}

/// A tensor that a node keeps.
#[pyclass(name = "SavedTensor", module = "torch._C._autograd", frozen)]
pub(crate) struct SavedTensor {
    keeper: SavedKeeper,
    item: usize,
}

/// The owner of a saved value.
enum SavedKeeper {
    /// A node, under this number of its saved list.
    Node(Node, usize),
    /// The context of a custom function.
    Context(Py<PyAny>),
    /// No owner: there is no saved value.
    None,
}

impl SavedTensor {
    pub(super) fn of_node(node: &Node, index: usize, item: usize) -> SavedTensor {
        SavedTensor { keeper: SavedKeeper::Node(node.clone(), index), item }
    }
    pub(super) fn of_context(context: Py<PyAny>, item: usize) -> SavedTensor {
        SavedTensor { keeper: SavedKeeper::Context(context), item }
    }
    pub(super) fn none() -> SavedTensor {
        SavedTensor { keeper: SavedKeeper::None, item: 0 }
    }
}

fn no_value() -> PyErr {
    PyRuntimeError::new_err(
        "Calling register_hooks on a saved tensor with value None is forbidden.",
    )
}

/// Lets hooks pack item `item` of what a context keeps.
fn pack_of_context(context: &Context, item: usize, hooks: &PackHooks) -> PyResult<()> {
    if context.freed_at.get().is_some() {
        return Err(raise(freed_before_hooks()));
    }
    let saved = context.saved.borrow().get(item).cloned().flatten().ok_or_else(no_value)?;
    let packed = saved.pack(hooks).map_err(raise)?;
    let old = context.saved.borrow_mut().get_mut(item).and_then(|saved| saved.replace(packed));
    drop(old);
    Ok(())
}

/// The two functions, given by position or by name.
fn both_hooks<'py>(
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut given: Vec<Bound<'py, PyAny>> = args.iter().collect();
    let mut count = given.len();
    if let Some(named) = named {
        count += named.len();
        for name in ["pack_hook", "unpack_hook"].into_iter().skip(given.len()) {
            given.extend(named.get_item(name)?);
        }
    }
    match <[_; 2]>::try_from(given) {
        Ok([pack, unpack]) if count == 2 => Ok((pack, unpack)),
        _ => Err(PyTypeError::new_err(format!(
            "register_hooks(): incompatible function arguments: it takes pack_hook and unpack_hook, but was given {count} arguments"
        ))),
    }
}

#[pymethods]
impl SavedTensor {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<SavedTensor> {
        Err(PyRuntimeError::new_err(
            "Trying to create a SavedTensor object from Python is forbidden. Saved tensors are made by the ops whose backward needs them.",
        ))
    }
    /// Replaces what is kept of the tensor, from now on, by the result of ``pack_hook``, from which
    /// ``unpack_hook`` makes the tensor again.
    #[pyo3(signature = (*hooks, **named))]
    fn register_hooks(
        &self,
        py: Python<'_>,
        hooks: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let (pack_hook, unpack_hook) = both_hooks(hooks, named)?;
        let hooks = PackHooks::new(&pack_hook, &unpack_hook)?;
        match &self.keeper {
            SavedKeeper::Node(node, index) => {
                computing(|| node.pack_saved(*index, self.item, &hooks).map_err(raise))
            }
            SavedKeeper::Context(object) => {
                let object = object.bind(py);
                let context = context_of(object).ok_or_else(no_value)?;
                computing(|| pack_of_context(context, self.item, &hooks))
            }
            SavedKeeper::None => Err(no_value()),
        }
    }
}

/// A function that is called with each tensor before it is written to.
struct SavedObserver(Held);

impl WriteObserver for SavedObserver {
    fn before_write(&self, tensor: &Tensor) -> Result<(), Error> {
        in_python(|py| {
            let given = wrap_bound(py, tensor.clone())?;
            self.0.bind(py).call1((given,)).map(|_| ())
        })
        .map_err(carry)
    }
}

/// Calls ``observer`` with each tensor that an op of this thread is about to write to.
#[pyfunction]
fn _push_write_observer(observer: Py<PyAny>) {
    writes::push(Arc::new(SavedObserver(Held::new(observer))));
}
#[pyfunction]
fn _pop_write_observer() {
    writes::pop();
}

/// Calls a function with each node that is made.
struct OnNode(Held);

impl NodeCreationHook for OnNode {
    fn created(&self, node: &Node) -> Result<(), Error> {
        in_python(|py| {
            let answer = self.0.bind(py).call1((wrap_node(py, node)?,))?;
            if answer.is_none() {
                return Ok(());
            }
            Err(PyRuntimeError::new_err(format!(
                "node creation hook must return None, got {}",
                type_name(&answer)
            )))
        })
        .map_err(carry)
    }
}

#[pyfunction]
fn _push_node_creation_hook(hook: Bound<'_, PyAny>) -> PyResult<()> {
    if !hook.is_callable() {
        return Err(PyTypeError::new_err(format!(
            "_push_node_creation_hook(): a node creation hook must be callable, not {}",
            type_name(&hook)
        )));
    }
    creation::push(Box::new(OnNode(Held::new(hook.unbind()))));
    Ok(())
}
#[pyfunction]
fn _pop_node_creation_hook() {
    creation::pop();
}

#[pyfunction]
fn _push_saved_tensors_default_hooks(
    pack_hook: &Bound<'_, PyAny>,
    unpack_hook: &Bound<'_, PyAny>,
) -> PyResult<()> {
    saved_hooks::push(Arc::new(PackHooks::new(pack_hook, unpack_hook)?)).map_err(raise)
}
#[pyfunction]
fn _pop_saved_tensors_default_hooks() {
    saved_hooks::pop();
}
/// The pairs of functions that pack what this thread's ops save, the outermost first. (The
/// library's own hooks are not among them.)
#[pyfunction]
fn _saved_tensors_default_hooks(py: Python<'_>) -> Vec<(Py<PyAny>, Py<PyAny>)> {
    let pair = |hooks: &Arc<dyn SavedTensorHooks>| {
        let hooks: &dyn Any = &**hooks;
        let hooks = hooks.downcast_ref::<PackHooks>()?;
        Some((hooks.pack.bind(py).clone().unbind(), hooks.unpack.bind(py).clone().unbind()))
    };
    saved_hooks::snapshot().iter().filter_map(pair).collect()
}
#[pyfunction]
fn _saved_tensors_hooks_disable(error_message: String) -> PyResult<()> {
    saved_hooks::set_disabled(Some(error_message.into())).map_err(raise)
}
#[pyfunction]
fn _saved_tensors_hooks_enable() -> PyResult<()> {
    saved_hooks::set_disabled(None).map_err(raise)
}
#[pyfunction]
fn _saved_tensors_hooks_get_disabled_error_message() -> Option<String> {
    saved_hooks::disabled().map(|reason| reason.to_string())
}

/// Adds the class and the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SavedTensor>()?;
    module.add_function(wrap_pyfunction!(_push_write_observer, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_write_observer, module)?)?;
    module.add_function(wrap_pyfunction!(_push_node_creation_hook, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_node_creation_hook, module)?)?;
    module.add_function(wrap_pyfunction!(_push_saved_tensors_default_hooks, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_saved_tensors_default_hooks, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_default_hooks, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_disable, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_enable, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_get_disabled_error_message, module)?)
}
