//! Properties of a tensor that its class overrides: sizes and strides, the device, the layout.
//!
//! `_make_wrapper_subclass` says for which of them a tensor's `__torch_dispatch__` is called
//! ([`Facts`]); `pullback/_asked.py` makes the calls and interprets their results. Ops and the
//! engine read the tensor's own geometry all the same: only programs in Python see the overridden
//! properties. For other tensors this costs one test of their flags.

use crate::raw::entry::Reply;
use crate::raw::object::tensor_of;
use crate::torch_dispatch::Classes;
use pullback::Tensor;
use pullback::autograd::torch_dispatch::is_disabled;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use std::any::Any;

/// The properties that a class overrides.
#[derive(Clone, Copy, Default)]
pub(crate) struct Facts {
    /// Strides, and whether the elements lie without gaps.
    strides: bool,
    /// Sizes, and all that follows from them.
    sizes: bool,
    device: bool,
    layout: bool,
}

/// A kind of properties.
#[derive(Clone, Copy)]
pub(crate) enum Fact {
    Strides,
    Sizes,
    Device,
    Layout,
}

impl Facts {
    /// The properties that the arguments of `_make_wrapper_subclass` name.
    pub(crate) fn read(policy: Option<&str>, device: bool, layout: bool) -> PyResult<Facts> {
        let (strides, sizes) = match policy {
            None => (false, false),
            Some("strides") => (true, false),
            Some("sizes") => (true, true),
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "Unknown sizes_strides_policy: {other}; expected 'strides' or 'sizes'"
                )));
            }
        };
        Ok(Facts { strides, sizes, device, layout })
    }

    fn has(self, fact: Fact) -> bool {
        match fact {
            Fact::Strides => self.strides,
            Fact::Sizes => self.sizes,
            Fact::Device => self.device,
            Fact::Layout => self.layout,
        }
    }
}

/// The result of the class of a tensor for the property `question`; `None` where the class does not
/// override it, and the tensor's own geometry counts.
///
/// # Safety
/// `slf` is a tensor.
#[inline(always)]
pub(crate) unsafe fn ask(
    py: Python<'_>,
    slf: *mut PyObject,
    fact: Fact,
    question: &str,
    argument: Option<&Bound<'_, PyAny>>,
) -> Option<Reply> {
    // SAFETY: the caller's promise.
    let tensor = unsafe { tensor_of(slf) };
    if !tensor.has_torch_dispatch() || !is_asked(tensor, fact) {
        return None;
    }
    // SAFETY: a live object.
    let object = unsafe { Bound::from_borrowed_ptr(py, slf) };
    ask_class(&object, question, argument).transpose()
}

#[cold]
fn is_asked(tensor: &Tensor, fact: Fact) -> bool {
    let Some(class) = tensor.torch_dispatch_class() else { return false };
    let class: &dyn Any = &*class;
    !is_disabled() && class.downcast_ref::<Classes>().is_some_and(|class| class.facts.has(fact))
}

#[cold]
fn ask_class(
    object: &Bound<'_, PyAny>,
    question: &str,
    argument: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<*mut PyObject>> {
    let ask = object.py().import("pullback._asked")?.getattr(question)?;
    let answer = match argument {
        None => ask.call1((object,))?,
        Some(argument) => ask.call1((object, argument))?,
    };
    Ok((!answer.is_none()).then(|| answer.into_ptr()))
}
