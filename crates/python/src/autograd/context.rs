//! The members of `ctx`, an instance of `_FunctionBase`.
//!
//! The node of a call owns its context. The context finds the node through a weak handle, which is
//! made when it may be needed: when a context outlives its call in other hands, is shown as a
//! `grad_fn`, or runs.

use super::hook::optional;
use super::hook_dicts::HookDicts;
use super::node::{call, input_metadata, metadata, next_functions};
use super::node::{post_hooks as post_hooks_of, pre_hooks as pre_hooks_of};
use crate::error::raise;
use crate::raw::context::{PyField, known, member};
use crate::raw::entry::{Args, Reply, fast, guard, guard_or, noargs};
use crate::result::none;
use pullback::autograd::{Node, SavedTensor, WeakNode, freed};
use pullback::call_site::CallSite;
use pullback::tensor::WeakTensor;
use pyo3::exceptions::{PyDeprecationWarning, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The context of one call of a custom function. Only touched with the GIL held.
#[repr(C)]
pub(crate) struct Context {
    pub(super) to_save: PyField,
    pub(super) dirty: PyField,
    pub(super) non_differentiable: PyField,
    pub(super) saved_for_forward: PyField,
    /// The value of `needs_input_grad`, if the user has set one.
    needs_input_grad: PyField,
    /// The [`super::hook_dicts::HookDicts`] of the node.
    pub(super) hooks: PyField,
    /// A tensor whose `grad_fn` it was returned as.
    pub(super) tensor: OnceLock<WeakTensor>,
    pub(super) node: RefCell<WeakNode>,
    /// The node, if no graph holds it any more: then it is the context's (see `function`).
    kept_node: RefCell<Option<Box<Node>>>,
    /// Whether it was returned as a `grad_fn`.
    pub(super) is_shown: Cell<bool>,
    pub(super) saved: RefCell<Saved>,
    pub(super) has_saved: Cell<bool>,
    pub(super) freed_at: Cell<Option<CallSite>>,
    pub(super) keep_undefined: Cell<bool>,
    pub(super) skip_non_differentiable: Cell<bool>,
    /// The kinds of the arguments.
    pub(super) inputs: RefCell<Kinds>,
}

/// What was saved, with gaps where the user gave `None`.
pub(super) type Saved = SmallVec<[Option<SavedTensor>; 1]>;

/// The kind of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InputKind {
    Other,
    Tensor,
    /// A tensor that requires grad.
    Differentiable,
}

pub(super) type Kinds = SmallVec<[InputKind; 8]>;

impl Default for Context {
    #[inline(always)]
    fn default() -> Self {
        Context {
            to_save: PyField::none(),
            dirty: PyField::none(),
            non_differentiable: PyField::none(),
            saved_for_forward: PyField::none(),
            needs_input_grad: PyField::none(),
            hooks: PyField::none(),
            tensor: OnceLock::new(),
            node: RefCell::default(),
            kept_node: RefCell::default(),
            is_shown: Cell::new(false),
            saved: RefCell::default(),
            has_saved: Cell::new(false),
            freed_at: Cell::new(None),
            keep_undefined: Cell::new(false),
            skip_non_differentiable: Cell::new(false),
            inputs: RefCell::default(),
        }
    }
}

impl Context {
    /// Runs `f` on every reference to an object that it owns.
    #[inline(always)]
    pub(crate) fn each_field(&self, f: impl FnMut(&PyField)) {
        let fields = [
            &self.to_save,
            &self.dirty,
            &self.non_differentiable,
            &self.saved_for_forward,
            &self.needs_input_grad,
            &self.hooks,
        ];
        fields.into_iter().for_each(f);
    }

    /// The members that can be read and set.
    pub(crate) fn members() -> Vec<ffi::PyMemberDef> {
        vec![
            member(c"to_save", offset_of!(Context, to_save)),
            member(c"dirty_tensors", offset_of!(Context, dirty)),
            member(c"non_differentiable", offset_of!(Context, non_differentiable)),
            member(c"saved_for_forward", offset_of!(Context, saved_for_forward)),
        ]
    }

    /// Lets the context find its node.
    pub(super) fn link(&self, node: &Node) {
        let mut link = self.node.borrow_mut();
        if link.upgrade().is_none() {
            *link = node.downgrade();
        }
    }

    /// Keeps the node from now on.
    pub(super) fn keep(&self, py: Python<'_>, node: Node) {
        let node = Box::new(node);
        if let Some(hooks) = self.hooks_of_node(py) {
            hooks.get().set_wrapper(&raw const *node);
        }
        let old = self.kept_node.replace(Some(node));
        drop(old);
    }

    /// Returns the node that it keeps, which it keeps no longer.
    pub(crate) fn take_kept_node(&self, py: Python<'_>) -> Option<Box<Node>> {
        let node = self.kept_node.take()?;
        if let Some(hooks) = self.hooks_of_node(py) {
            hooks.get().set_wrapper(std::ptr::null());
        }
        Some(node)
    }

    /// The slot of the node that it keeps; null if it keeps none.
    pub(super) fn kept_node_slot(&self) -> *const Node {
        self.kept_node.borrow().as_ref().map_or(std::ptr::null(), |node| &raw const **node)
    }

    fn hooks_of_node<'py>(&self, py: Python<'py>) -> Option<Bound<'py, HookDicts>> {
        self.hooks.get(py)?.cast_into().ok()
    }

    fn live(&self, attribute: &str) -> PyResult<Node> {
        self.node.borrow().upgrade().ok_or_else(|| {
            PyRuntimeError::new_err(format!(
                "Attribute '{attribute}' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly on an instance of autograd.Function is a legacy access pattern that is no longer supported. For examples on how to use new-style autograd functions, see https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function "
            ))
        })
    }

    /// For each argument whether it was a tensor.
    pub(super) fn are_tensors(&self) -> Vec<bool> {
        self.inputs.borrow().iter().map(|&kind| kind != InputKind::Other).collect()
    }

    /// Forgets what was saved.
    pub(super) fn release(&self) {
        let saved = self.saved.take();
        if self.has_saved.get() && self.freed_at.get().is_none() {
            self.freed_at.set(Some(CallSite::here()));
        }
        drop(saved);
    }

    /// Refuses to return values that the end of a backward has freed.
    pub(super) fn check_kept(&self) -> PyResult<()> {
        let Some(at) = self.freed_at.get() else { return Ok(()) };
        // (This is read first, because the text of lines is read by Python code, during which other
        // threads may run.)
        let node = self.node.borrow().upgrade();
        Err(raise(freed(node.as_ref(), at)))
    }

    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(saved) = self.saved_for_forward.get(py) {
            return Ok(saved.cast_into::<PyTuple>()?.into_any());
        }
        self.check_kept()?;
        let node = self.node.borrow().upgrade();
        let mut items: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
        // The tensors are unpacked one by one, because hooks on saved tensors may do anything with
        // the context.
        for index in 0..self.saved.borrow().len() {
            let saved = self.saved.borrow().get(index).cloned().flatten();
            let tensor = match (saved, &node) {
                (Some(saved), Some(node)) => Some(saved.into_tensor(node).map_err(raise)?),
                _ => None,
            };
            items.push(optional(py, tensor.as_ref())?);
        }
        Ok(PyTuple::new(py, items)?.into_any())
    }

    /// What was saved, as objects that take hooks.
    fn raw_saved_tensors<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        self.check_kept()?;
        let mut items = Vec::new();
        for (item, saved) in self.saved.borrow().iter().enumerate() {
            let kept = match saved {
                Some(_) => super::saved::SavedTensor::of_context(object.clone().unbind(), item),
                None => super::saved::SavedTensor::none(),
            };
            items.push(Bound::new(py, kept)?);
        }
        Ok(PyTuple::new(py, items)?.into_any())
    }

    fn needs_input_grad<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(set) = self.needs_input_grad.get(py) {
            return Ok(set);
        }
        let kinds = self.inputs.borrow();
        if kinds.is_empty() {
            return Ok(py.None().into_bound(py));
        }
        let needs = kinds.iter().map(|&kind| kind == InputKind::Differentiable);
        Ok(PyTuple::new(py, needs)?.into_any())
    }
}

/// The node of a context whose metadata are requested.
fn noted(this: &Context) -> PyResult<Node> {
    this.node.borrow().upgrade().ok_or_else(|| {
        PyRuntimeError::new_err(
            "You attempted to access the anomaly metadata of a custom autograd function but the underlying PyNode has already been deallocated.  The most likely reason this occurred is because you assigned x.grad_fn to a local variable and then let the original variable get deallocated.",
        )
    })
}

/// The arguments of a call as a tuple.
#[inline(always)]
fn tuple(args: Args<'_>) -> Reply {
    // SAFETY: live arguments; every item is set once.
    unsafe {
        let tuple = ffi::PyTuple_New(args.all.len() as isize);
        if tuple.is_null() {
            return Err(PyErr::fetch(Python::assume_attached()));
        }
        for (index, &arg) in args.all.iter().enumerate() {
            ffi::Py_INCREF(arg);
            ffi::PyTuple_SET_ITEM(tuple, index as isize, arg);
        }
        Ok(tuple)
    }
}

fn as_bool(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.cast::<PyBool>()?.is_true())
}

/// Makes the calls that keep their arguments as a tuple.
macro_rules! keepers {
    ($($name:ident: $field:ident;)*) => {$(
        fn $name(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
            // SAFETY: a method of contexts, by its descriptor's check.
            let slf = unsafe { Bound::from_borrowed_ptr(py, slf) };
            if args.keywords() > 0 {
                return Err(PyTypeError::new_err(concat!(stringify!($name), "() takes no keyword arguments")));
            }
            // SAFETY: as above; a new reference.
            unsafe { known(&slf).$field.set(Bound::from_owned_ptr(py, tuple(args)?)) };
            Ok(none())
        }
    )*};
}
keepers! {
    save_for_backward: to_save;
    mark_dirty: dirty;
    mark_non_differentiable: non_differentiable;
}

/// Declares functions of a context that take no arguments.
macro_rules! plain {
    ($($name:ident($py:ident, $this:ident, $object:ident) $body:expr;)*) => {$(
        fn $name($py: Python<'_>, slf: *mut PyObject) -> Reply {
            // SAFETY: a method or getter of contexts, by its descriptor's check.
            let $object = unsafe { Bound::from_borrowed_ptr($py, slf) };
            // SAFETY: as above.
            let $this = unsafe { known(&$object) };
            let value: Bound<'_, PyAny> = $body;
            Ok(value.into_ptr())
        }
    )*};
}
plain! {
    materialize_grads(py, this, _object) PyBool::new(py, !this.keep_undefined.get()).to_owned().into_any();
    materialize_others(py, this, _object) PyBool::new(py, !this.skip_non_differentiable.get()).to_owned().into_any();
    saved_tensors(py, this, _object) this.saved_tensors(py)?;
    raw_saved_tensors(_py, this, object) this.raw_saved_tensors(&object)?;
    saved_variables(py, this, _object) {
        let category = py.get_type::<PyDeprecationWarning>();
        PyErr::warn(py, &category, c"'saved_variables' is deprecated; use 'saved_tensors'", 1)?;
        this.saved_tensors(py)?
    };
    needs_input_grad(py, this, _object) this.needs_input_grad(py)?;
    next(py, this, _object) next_functions(py, &this.live("next_functions")?)?.into_any();
    metadata_of(py, this, _object) metadata(py, &noted(this)?, this.tensor.get())?.into_any();
    metas(py, this, _object) input_metadata(py, &this.live("_input_metadata")?)?.into_any();
    requires_grad(py, _this, _object) PyBool::new(py, true).to_owned().into_any();
    name(py, this, _object) this.live("name")?.name().into_pyobject(py)?.into_any();
    sequence_nr(py, this, _object) this.live("_sequence_nr")?.sequence_nr().into_pyobject(py)?.into_any();
    pre_hooks(py, this, _object) {
        pre_hooks_of(py, &this.live("register_prehook")?, this.tensor.get())?.into_any()
    };
    post_hooks(py, this, _object) {
        post_hooks_of(py, &this.live("register_hook")?, this.tensor.get())?.into_any()
    };
    maybe_clear_saved_tensors(py, this, _object) {
        // A run that keeps its graph may need them again; outside of a run they stay for the first one.
        if !pullback::autograd::engine::current_task_keeps_graph() {
            this.release();
        }
        py.None().into_bound(py)
    };
}

fn set_sequence_nr(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [number] = args.bind(py, "_set_sequence_nr", ["number"], 1)?;
    // SAFETY: a method of contexts, by its descriptor's check.
    let slf = unsafe { Bound::from_borrowed_ptr(py, slf) };
    // SAFETY: as above.
    let node = unsafe { known(&slf) }.live("_set_sequence_nr")?;
    node.set_sequence_nr(number.expect("required").extract()?);
    Ok(none())
}

fn register_hook_dict(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [tensor] = args.bind(py, "_register_hook_dict", ["tensor"], 1)?;
    // SAFETY: a method of contexts, by its descriptor's check.
    let slf = unsafe { Bound::from_borrowed_ptr(py, slf) };
    // SAFETY: as above.
    let node = unsafe { known(&slf) }.live("_register_hook_dict")?;
    super::node::register_hook_dict(py, &node, &tensor.expect("required"))?;
    Ok(none())
}

fn call_node(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    // SAFETY: a method of contexts, by its descriptor's check.
    unsafe {
        let slf = Bound::from_borrowed_ptr(py, slf);
        let args = Bound::from_owned_ptr(py, tuple(args)?).cast_into::<PyTuple>()?;
        Ok(call(py, &known(&slf).live("__call__")?, &args)?.into_ptr())
    }
}

fn set_materialize_grads(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [value] = args.bind(py, "set_materialize_grads", ["value"], 1)?;
    // SAFETY: a method of contexts, by its descriptor's check.
    unsafe {
        let slf = Bound::from_borrowed_ptr(py, slf);
        known(&slf).keep_undefined.set(!as_bool(&value.expect("required"))?);
    }
    Ok(none())
}

/// Makes the setter of an attribute of contexts of `fn(&Context, Bound<PyAny>) -> PyResult<()>`.
macro_rules! set {
    ($function:expr) => {{
        unsafe extern "C" fn entry(
            slf: *mut PyObject,
            value: *mut PyObject,
            _: *mut std::ffi::c_void,
        ) -> std::ffi::c_int {
            // SAFETY: CPython calls with the GIL on a context; a null value means deletion.
            unsafe {
                guard_or(-1, |py| {
                    let Some(value) = Bound::from_borrowed_ptr_or_opt(py, value) else {
                        return Err(PyTypeError::new_err(
                            "attributes of contexts cannot be deleted",
                        ));
                    };
                    let set: fn(&Context, Bound<'_, PyAny>) -> PyResult<()> = $function;
                    set(known(&Bound::from_borrowed_ptr(py, slf)), value).map(|()| 0)
                })
            }
        }
        Some(entry as ffi::setter)
    }};
}
/// Makes the getter of an attribute of contexts.
macro_rules! get {
    ($function:path) => {{
        unsafe extern "C" fn entry(slf: *mut PyObject, _: *mut std::ffi::c_void) -> *mut PyObject {
            // SAFETY: CPython calls with the GIL.
            unsafe { guard(|py| $function(py, slf)) }
        }
        Some(entry as ffi::getter)
    }};
}

/// The table of getters and setters.
pub(crate) fn properties() -> Vec<ffi::PyGetSetDef> {
    let entry = |name: &'static CStr, get, set| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get,
        set,
        doc: null_mut(),
        closure: null_mut(),
    };
    vec![
        entry(
            c"materialize_grads",
            get!(materialize_grads),
            set!(|this, value| {
                this.keep_undefined.set(!as_bool(&value)?);
                Ok(())
            }),
        ),
        entry(
            c"_materialize_non_diff_grads",
            get!(materialize_others),
            set!(|this, value| {
                this.skip_non_differentiable.set(!as_bool(&value)?);
                Ok(())
            }),
        ),
        entry(
            c"needs_input_grad",
            get!(needs_input_grad),
            set!(|this, value| {
                this.needs_input_grad.set(value);
                Ok(())
            }),
        ),
        entry(c"saved_tensors", get!(saved_tensors), None),
        entry(c"_raw_saved_tensors", get!(raw_saved_tensors), None),
        entry(c"saved_variables", get!(saved_variables), None),
        entry(c"next_functions", get!(next), None),
        entry(c"metadata", get!(metadata_of), None),
        entry(c"_input_metadata", get!(metas), None),
        entry(c"requires_grad", get!(requires_grad), None),
    ]
}

/// The table of methods; `apply` is added to it.
pub(crate) fn methods() -> Vec<ffi::PyMethodDef> {
    let entry = |name: &'static CStr, function, flags| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: function,
        ml_flags: flags,
        ml_doc: null_mut(),
    };
    let some = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
    vec![
        entry(c"save_for_backward", fast!(save_for_backward), some),
        entry(c"mark_dirty", fast!(mark_dirty), some),
        entry(c"mark_non_differentiable", fast!(mark_non_differentiable), some),
        entry(c"set_materialize_grads", fast!(set_materialize_grads), some),
        entry(c"maybe_clear_saved_tensors", noargs!(maybe_clear_saved_tensors), ffi::METH_NOARGS),
        entry(c"name", noargs!(name), ffi::METH_NOARGS),
        entry(c"_sequence_nr", noargs!(sequence_nr), ffi::METH_NOARGS),
        entry(c"_set_sequence_nr", fast!(set_sequence_nr), some),
        entry(c"_register_hook_dict", fast!(register_hook_dict), some),
        entry(c"_pre_hooks", noargs!(pre_hooks), ffi::METH_NOARGS),
        entry(c"_post_hooks", noargs!(post_hooks), ffi::METH_NOARGS),
        entry(c"_call_node", fast!(call_node), some),
        entry(c"apply", fast!(super::function::apply), some | ffi::METH_CLASS),
    ]
}
