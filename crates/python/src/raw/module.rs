//! The call of a module, `_ModuleBase.__call__`: straight to `forward` where there are no hooks; and
//! `__getattr__`, which finds its members.
//!
//! The package lists its dictionaries of hooks here once. While `active` is empty no module has hooks, and
//! a call is one test. Plain forward hooks run here too; every other kind is the package's
//! `_call_with_hooks`. Invariant: what a call does is what `pullback/nn/modules/module.py` describes.

use crate::explain::explain;
use crate::raw::entry::{Reply, guard};
use crate::raw::keyword::suggest_keyword;
use crate::raw::object::look_up;
use pyo3::exceptions::PyAttributeError;
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};
use smallvec::SmallVec;
use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The package's dictionaries: which are in use at all, and those of hooks on all modules.
struct Tables {
    active: Py<PyDict>,
    global: Vec<Py<PyDict>>,
}

static TABLES: PyOnceLock<Tables> = PyOnceLock::new();
/// `_ModuleBase`.
static BASE: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());

/// Sets the dictionaries of hooks.
#[pyfunction]
pub(crate) fn _set_hook_tables(py: Python<'_>, active: Py<PyDict>, global: Vec<Py<PyDict>>) {
    let _ = TABLES.set(py, Tables { active, global });
}

/// The arguments that the interpreter passes to `tp_call`.
#[derive(Clone, Copy)]
struct ModuleCall {
    module: *mut PyObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
}

impl ModuleCall {
    /// Calls the module's method `name` with the arguments.
    unsafe fn method(self, py: Python<'_>, name: &Bound<'_, PyString>) -> Reply {
        // SAFETY: live objects: a module, a tuple, and a dictionary or null.
        unsafe {
            let reply = if self.kwargs.is_null() {
                let count = ffi::PyTuple_GET_SIZE(self.args);
                let mut all: SmallVec<[*mut PyObject; 8]> = smallvec::smallvec![self.module];
                all.extend((0..count).map(|index| ffi::PyTuple_GET_ITEM(self.args, index)));
                let (all, count) = (all.as_ptr(), all.len());
                match plain_method(py, self.module, name.as_ptr()) {
                    Some(function) => {
                        ffi::PyObject_Vectorcall(function.as_ptr(), all, count, null_mut())
                    }
                    None => ffi::PyObject_VectorcallMethod(name.as_ptr(), all, count, null_mut()),
                }
            } else {
                let method = ffi::PyObject_GetAttr(self.module, name.as_ptr());
                let method = Bound::from_owned_ptr_or_err(py, method)?;
                ffi::PyObject_Call(method.as_ptr(), self.args, self.kwargs)
            };
            if reply.is_null() { Err(PyErr::fetch(py)) } else { Ok(reply) }
        }
    }

    #[inline(always)]
    unsafe fn run(self, py: Python<'_>) -> Reply {
        // SAFETY: as above.
        unsafe {
            let tables = TABLES.get(py).filter(|t| !t.active.bind(py).is_empty());
            let Some(tables) = tables else {
                return self.method(py, intern!(py, "forward"));
            };
            match hooks_of(&Bound::from_borrowed_ptr(py, self.module), tables)? {
                ModuleHooks::None => self.method(py, intern!(py, "forward")),
                ModuleHooks::Forward(hooks) => self.with_forward_hooks(py, &hooks),
                ModuleHooks::Other => self.method(py, intern!(py, "_call_with_hooks")),
            }
        }
    }

    /// The exception that a call ended with, which says in a note where in the model that was and what the call got.
    #[cold]
    #[inline(never)]
    unsafe fn noted(self, py: Python<'_>, error: PyErr) -> PyErr {
        // SAFETY: as above; a call without keywords has null for them.
        unsafe {
            let module = Bound::from_borrowed_ptr(py, self.module);
            let args = Bound::from_borrowed_ptr(py, self.args);
            let kwargs = Bound::from_borrowed_ptr_or_opt(py, self.kwargs);
            let kwargs = kwargs.unwrap_or_else(|| py.None().into_bound(py));
            explain(py, error, "note_module", &[module, args, kwargs])
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

/// The function that the class has under `name`, if calling it with the module is calling the method: an
/// attribute of the instance would go before it.
unsafe fn plain_method(
    py: Python<'_>,
    module: *mut PyObject,
    name: *mut PyObject,
) -> Option<Bound<'_, PyAny>> {
    // SAFETY: live objects and an exact string: no Python code runs, and no error can be set.
    unsafe {
        let ty = ffi::Py_TYPE(module);
        let quick = get_attribute as *const ();
        let is_quick = (*ty).tp_getattro.is_some_and(|slot| slot as *const () == quick);
        let function = if is_quick { look_up(ty, name) } else { null_mut() };
        if function.is_null() || ffi::Py_TYPE(function) != &raw mut ffi::PyFunction_Type {
            return None;
        }
        let own = ffi::PyObject_GenericGetDict(module, null_mut());
        if own.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        let is_shadowed = !ffi::PyDict_GetItemWithError(own, name).is_null();
        // The module holds its dictionary.
        ffi::Py_DECREF(own);
        // Held while it runs: it may be replaced.
        (!is_shadowed).then(|| Bound::from_borrowed_ptr(py, function))
    }
}

/// The hooks of one module.
enum ModuleHooks<'py> {
    None,
    Forward(Bound<'py, PyDict>),
    Other,
}

fn is_used(own: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    own.get_item(name)?.map_or(Ok(false), |hooks| hooks.is_truthy())
}

/// Looks through the dictionaries of a module; one whose `__init__` has not run has none.
fn hooks_of<'py>(module: &Bound<'py, PyAny>, tables: &Tables) -> PyResult<ModuleHooks<'py>> {
    let py = module.py();
    let own = own(module)?;
    let Some(forward) = own.get_item(intern!(py, "_forward_hooks"))? else {
        return Ok(ModuleHooks::None);
    };
    let is_other = is_used(&own, intern!(py, "_forward_pre_hooks"))?
        || is_used(&own, intern!(py, "_backward_hooks"))?
        || is_used(&own, intern!(py, "_backward_pre_hooks"))?
        || tables.global.iter().any(|hooks| !hooks.bind(py).is_empty());
    if is_other {
        return Ok(ModuleHooks::Other);
    }
    let Ok(forward) = forward.cast_into::<PyDict>() else { return Ok(ModuleHooks::Other) };
    if forward.is_empty() {
        return Ok(ModuleHooks::None);
    }
    let is_special = is_used(&own, intern!(py, "_forward_hooks_with_kwargs"))?
        || is_used(&own, intern!(py, "_forward_hooks_always_called"))?;
    Ok(if is_special { ModuleHooks::Other } else { ModuleHooks::Forward(forward) })
}

unsafe extern "C" fn call(
    module: *mut PyObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL, a tuple, and a dictionary or null.
    unsafe {
        guard(|py| {
            let call = ModuleCall { module, args, kwargs };
            call.run(py).map_err(|error| call.noted(py, error))
        })
    }
}

/// The instance dictionary.
fn own<'py>(module: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    // SAFETY: a live object; the reply is null with an exception, or a new reference.
    unsafe {
        let dict = ffi::PyObject_GenericGetDict(module.as_ptr(), null_mut());
        Ok(Bound::from_owned_ptr_or_err(module.py(), dict)?.cast_into::<PyDict>()?)
    }
}

/// The parameter, submodule or buffer called `name`, in this order.
fn find_member<'py>(
    module: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    let own = own(module)?;
    let stores = [intern!(py, "_parameters"), intern!(py, "_modules"), intern!(py, "_buffers")];
    for store in stores {
        // Without them, __init__ has not run.
        let Some(members) = own.get_item(store)? else { break };
        if let Some(member) = members.cast::<PyDict>()?.get_item(name)? {
            return Ok(member);
        }
    }
    Err(PyAttributeError::new_err(format!(
        "'{}' object has no attribute '{}'",
        module.get_type().name()?,
        name.str()?
    )))
}

/// `__getattr__(name)`: the interpreter comes here when instance and class know no such attribute.
unsafe extern "C" fn get_member(module: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL and live objects.
    unsafe {
        guard(|py| {
            let module = Bound::from_borrowed_ptr(py, module);
            Ok(find_member(&module, &Bound::from_borrowed_ptr(py, name))?.into_ptr())
        })
    }
}

/// The slot of classes whose `__getattr__` is the one here: the same attributes without an exception between.
unsafe extern "C" fn get_attribute(module: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL and live objects; borrowed items are used at once.
    unsafe {
        let is_plain = ffi::PyUnicode_CheckExact(name) != 0;
        if is_plain && look_up(ffi::Py_TYPE(module), name).is_null() {
            let member = find_quickly(module, name);
            if !member.is_null() {
                ffi::Py_INCREF(member);
                return member;
            }
        }
        let found = ffi::PyObject_GenericGetAttr(module, name);
        if found.is_null() && ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) != 0 {
            ffi::PyErr_Clear();
            return get_member(module, name);
        }
        found
    }
}

/// What instance or members have under a name that the class does not know: borrowed, null without error.
unsafe fn find_quickly(module: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects; only plain dictionaries are looked up in, by a string: no Python code runs.
    unsafe {
        let py = Python::assume_attached();
        let own = ffi::PyObject_GenericGetDict(module, null_mut());
        if own.is_null() {
            ffi::PyErr_Clear();
            return null_mut();
        }
        // The module holds its dictionary.
        ffi::Py_DECREF(own);
        let mut found = ffi::PyDict_GetItemWithError(own, name);
        let stores = [intern!(py, "_parameters"), intern!(py, "_modules"), intern!(py, "_buffers")];
        for store in stores {
            if found.is_null() {
                let members = ffi::PyDict_GetItemWithError(own, store.as_ptr());
                if members.is_null() || ffi::PyDict_CheckExact(members) == 0 {
                    break;
                }
                found = ffi::PyDict_GetItemWithError(members, name);
            }
        }
        found
    }
}

/// The `tp_init` of classes whose `__init__` is a function of Python.
static INIT: OnceLock<ffi::initproc> = OnceLock::new();

/// `__init__`, and a suggestion if it does not know a keyword.
unsafe extern "C" fn init_module(
    module: *mut PyObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter calls the slot by this convention; the class is live.
    unsafe {
        let Some(init) = INIT.get() else { return -1 };
        let code = init(module, args, kwargs);
        if code < 0 && !kwargs.is_null() {
            suggest_keyword(ffi::Py_TYPE(module).cast());
        }
        code
    }
}

/// Gives a class of modules the quick slot, unless it or a base has an attribute access of its own. If one
/// is assigned later, the interpreter puts its general slot back.
#[pyfunction]
pub(crate) fn _quicken_module(class: &Bound<'_, PyType>) {
    let py = class.py();
    let ty = class.as_type_ptr();
    // SAFETY: live types and interned strings; look-ups lend what they find.
    unsafe {
        let find = |ty, name: &Bound<'_, PyString>| look_up(ty, name.as_ptr());
        let (getattr, getattribute) = (intern!(py, "__getattr__"), intern!(py, "__getattribute__"));
        let object = &raw mut ffi::PyBaseObject_Type;
        let is_ours = find(ty, getattr) == find(BASE.load(Relaxed), getattr)
            && find(ty, getattribute) == find(object, getattribute);
        if is_ours {
            (*ty).tp_getattro = Some(get_attribute);
            ffi::PyType_Modified(ty);
        }
        let is_init = |slot: ffi::initproc| *INIT.get_or_init(|| slot) as usize == slot as usize;
        if (*ty).tp_init.is_some_and(is_init) {
            (*ty).tp_init = Some(init_module);
        }
    }
}

/// Makes the type and adds it to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects. It
    // adds nothing to `object`, so that classes can have other bases beside it.
    unsafe {
        let methods = Box::leak(Box::new([
            ffi::PyMethodDef {
                ml_name: c"__getattr__".as_ptr(),
                ml_meth: ffi::PyMethodDefPointer { PyCFunction: get_member },
                ml_flags: ffi::METH_O,
                ml_doc: null_mut(),
            },
            zeroed(),
        ]));
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_methods = methods.as_mut_ptr();
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
        BASE.store(ty, Relaxed);
        let ty = Bound::from_borrowed_ptr(module.py(), std::ptr::from_mut(ty).cast());
        module.add("_ModuleBase", ty)?;
    }
    module.add_function(wrap_pyfunction!(_quicken_module, module)?)?;
    module.add_function(wrap_pyfunction!(_set_hook_tables, module)?)
}
