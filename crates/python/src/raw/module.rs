//! The call of a module, `_ModuleBase.__call__`: straight to `forward` where there are no hooks.
//!
//! The package lists its dictionaries of hooks here once. While `active` is empty no module has hooks, and
//! a call is one test. Plain forward hooks run here too; every other kind is the package's
//! `_call_with_hooks`. Invariant: what a call does is what `pullback/nn/modules/module.py` describes.

use crate::raw::entry::{Reply, guard};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use smallvec::SmallVec;
use std::mem::zeroed;
use std::ptr::null_mut;

/// The package's dictionaries: which are in use at all, and those of hooks on all modules.
struct Tables {
    active: Py<PyDict>,
    global: Vec<Py<PyDict>>,
}

static TABLES: PyOnceLock<Tables> = PyOnceLock::new();

/// Tells where the hooks are.
#[pyfunction]
pub(crate) fn _set_hook_tables(py: Python<'_>, active: Py<PyDict>, global: Vec<Py<PyDict>>) {
    let _ = TABLES.set(py, Tables { active, global });
}

/// What the interpreter passes to `tp_call`.
#[derive(Clone, Copy)]
struct Call {
    module: *mut PyObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
}

impl Call {
    /// Calls the module's method `name` with the arguments.
    unsafe fn method(self, py: Python<'_>, name: &Bound<'_, PyString>) -> Reply {
        // SAFETY: live objects: a module, a tuple, and a dictionary or null.
        unsafe {
            let reply = if self.kwargs.is_null() {
                let count = ffi::PyTuple_GET_SIZE(self.args);
                let mut all: SmallVec<[*mut PyObject; 8]> = smallvec::smallvec![self.module];
                all.extend((0..count).map(|index| ffi::PyTuple_GET_ITEM(self.args, index)));
                ffi::PyObject_VectorcallMethod(name.as_ptr(), all.as_ptr(), all.len(), null_mut())
            } else {
                let method = ffi::PyObject_GetAttr(self.module, name.as_ptr());
                let method = Bound::from_owned_ptr_or_err(py, method)?;
                ffi::PyObject_Call(method.as_ptr(), self.args, self.kwargs)
            };
            if reply.is_null() { Err(PyErr::fetch(py)) } else { Ok(reply) }
        }
    }

    /// `forward`, and after it each of the hooks that were there before it ran.
    unsafe fn with_forward_hooks(self, py: Python<'_>, hooks: &Bound<'_, PyDict>) -> Reply {
        // SAFETY: as above; every hook is held while it runs.
        unsafe {
            let forward = self.method(py, intern!(py, "forward"))?;
            let mut result = Bound::from_owned_ptr(py, forward);
            let hooks: SmallVec<[Bound<'_, PyAny>; 4]> = hooks.iter().map(|(_, h)| h).collect();
            let module = Bound::from_borrowed_ptr(py, self.module);
            let args = Bound::from_borrowed_ptr(py, self.args);
            for hook in hooks {
                let replaced = hook.call1((&module, &args, &result))?;
                if !replaced.is_none() {
                    result = replaced;
                }
            }
            Ok(result.into_ptr())
        }
    }
}

/// The hooks of one module.
enum Hooks<'py> {
    None,
    Forward(Bound<'py, PyDict>),
    Other,
}

fn is_used(own: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    own.get_item(name)?.map_or(Ok(false), |hooks| hooks.is_truthy())
}

/// Looks through the dictionaries of a module; one whose `__init__` has not run has none.
fn hooks_of<'py>(module: &Bound<'py, PyAny>, tables: &Tables) -> PyResult<Hooks<'py>> {
    let py = module.py();
    // SAFETY: a live object; the reply is null with an exception, or a new reference.
    let own = unsafe {
        let dict = ffi::PyObject_GenericGetDict(module.as_ptr(), null_mut());
        Bound::from_owned_ptr_or_err(py, dict)?.cast_into::<PyDict>()?
    };
    let Some(forward) = own.get_item(intern!(py, "_forward_hooks"))? else {
        return Ok(Hooks::None);
    };
    let is_other = is_used(&own, intern!(py, "_forward_pre_hooks"))?
        || is_used(&own, intern!(py, "_backward_hooks"))?
        || is_used(&own, intern!(py, "_backward_pre_hooks"))?
        || tables.global.iter().any(|hooks| !hooks.bind(py).is_empty());
    if is_other {
        return Ok(Hooks::Other);
    }
    let Ok(forward) = forward.cast_into::<PyDict>() else { return Ok(Hooks::Other) };
    if forward.is_empty() {
        return Ok(Hooks::None);
    }
    let is_special = is_used(&own, intern!(py, "_forward_hooks_with_kwargs"))?
        || is_used(&own, intern!(py, "_forward_hooks_always_called"))?;
    Ok(if is_special { Hooks::Other } else { Hooks::Forward(forward) })
}

unsafe extern "C" fn call(
    module: *mut PyObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL, a tuple, and a dictionary or null.
    unsafe {
        guard(|py| {
            let call = Call { module, args, kwargs };
            let tables = TABLES.get(py).filter(|t| !t.active.bind(py).is_empty());
            let Some(tables) = tables else {
                return call.method(py, intern!(py, "forward"));
            };
            match hooks_of(&Bound::from_borrowed_ptr(py, module), tables)? {
                Hooks::None => call.method(py, intern!(py, "forward")),
                Hooks::Forward(hooks) => call.with_forward_hooks(py, &hooks),
                Hooks::Other => call.method(py, intern!(py, "_call_with_hooks")),
            }
        })
    }
}

/// Makes the type and adds it to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects. It
    // adds nothing to `object`, so that classes can have other bases beside it.
    unsafe {
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_name = c"torch._C._ModuleBase".as_ptr();
        ty.tp_basicsize = size_of::<PyObject>() as isize;
        ty.tp_flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE;
        ty.tp_new = ffi::PyBaseObject_Type.tp_new;
        ty.tp_call = Some(call);
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(module.py()));
        }
        // `object.__new__` serves whatever other bases a class has; one of our own would refuse them.
        if ffi::PyDict_DelItemString(ty.tp_dict, c"__new__".as_ptr()) < 0 {
            return Err(PyErr::fetch(module.py()));
        }
        ffi::PyType_Modified(ty);
        let ty = Bound::from_borrowed_ptr(module.py(), std::ptr::from_mut(ty).cast());
        module.add("_ModuleBase", ty)?;
    }
    module.add_function(wrap_pyfunction!(_set_hook_tables, module)?)
}
