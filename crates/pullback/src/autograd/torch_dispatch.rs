//! The layer of `__torch_dispatch__`: modes of the thread and classes of tensors that compute ops, below autograd.
//!
//! A thread's innermost mode ([`dispatch_mode`]) is called first, whatever the arguments are; then the class of the first
//! argument that has one ([`Tensor::set_torch_dispatch`]), until one implements the op. History, versions and views are kept
//! around their results as around those of a kernel. Composites are decomposed first, so that modes and classes see only ops
//! with kernels.

use super::thread::dispatch_mode;
use super::variable::meta::lock;
use crate::dispatch::{Arg, Call, Form, OpDef, Outputs, Traits, each_tensor};
use crate::error::ensure;
use crate::tensor::Flag;
use crate::{Error, Result, Tensor};
use std::sync::Arc;

pub use super::thread::dispatch_mode::{Dispatched, TorchDispatch, is_disabled, set_disabled};

impl Tensor {
    /// Makes `class` compute the ops on this tensor, whose own elements mean nothing from now on.
    pub fn set_torch_dispatch(&self, class: Arc<dyn TorchDispatch>) {
        lock(self).torch_dispatch = Some(class);
        self.set_flag(Flag::PYTHON, true);
    }
    /// The class that computes the ops on the tensor, if it has one.
    pub fn torch_dispatch_class(&self) -> Option<Arc<dyn TorchDispatch>> {
        if self.has_torch_dispatch() { lock(self).torch_dispatch.clone() } else { None }
    }
    /// Whether a class computes the ops on the tensor, where this is not disabled.
    pub fn has_torch_dispatch(&self) -> bool {
        self.has_flag(Flag::PYTHON)
    }
}

/// The layer: calls the innermost mode, then the class of the first tensor that has one, until one implements the op.
#[inline(never)]
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let mut unimplemented = String::new();
    for compute in [of_mode, of_class] {
        match compute(call) {
            None => {}
            Some(Err(error)) => return Err(error),
            Some(Ok(Dispatched::NotImplemented(who))) => unimplemented.push_str(&who),
            Some(Ok(Dispatched::Results(outputs))) => {
                return match call.form {
                    Form::Functional => as_fresh(call.def, outputs, call.args),
                    Form::Inplace | Form::Out(_) => Ok(outputs),
                };
            }
        }
    }
    if unimplemented.is_empty() { call.next() } else { Err(not_implemented(call, &unimplemented)) }
}

/// The result of the thread's innermost mode, if it has one.
fn of_mode(call: &Call<'_>) -> Option<Result<Dispatched>> {
    let mode = dispatch_mode::PausedMode::innermost()?;
    Some(mode.get().torch_dispatch(call.def, call.form, call.args))
}

/// The result of the class of the first tensor that has a `__torch_dispatch__`.
fn of_class(call: &Call<'_>) -> Option<Result<Dispatched>> {
    let mut first = None;
    call.each_tensor(|tensor| {
        if first.is_none() && tensor.has_torch_dispatch() {
            first.clone_from(&lock(tensor).torch_dispatch);
        }
    });
    Some(first?.torch_dispatch(call.def, call.form, call.args))
}

/// The error for an op that neither mode nor class implements.
fn not_implemented(call: &Call<'_>, who: &str) -> Error {
    let (name, overload) = call.form.spelled(call.def);
    Error::type_error(format!(
        "Multiple dispatch failed for 'torch._ops.aten.{name}.{overload}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n{who}\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    ))
}

/// The results as tensors to which history can be attached. An ordinary tensor that has a history already, or is an argument,
/// is replaced by another handle to the same memory; a tensor whose class computes its ops is more than its memory, and is
/// passed on only where no history is attached.
fn as_fresh(def: &OpDef, outputs: Outputs, args: &[Arg<'_>]) -> Result<Outputs> {
    let mut is_recorded = def.is(Traits::VIEW);
    each_tensor(args, |arg| is_recorded |= arg.requires_grad());
    let fresh = |tensor: Tensor| -> Result<Tensor> {
        let mut is_argument = false;
        each_tensor(args, |arg| is_argument |= arg.is_same(&tensor));
        let is_fresh = !is_argument && !tensor.requires_grad() && !tensor.is_view();
        if is_fresh || is_argument && !is_recorded {
            return Ok(tensor);
        }
        ensure!(
            !tensor.overrides_ops(),
            runtime,
            "__torch_dispatch__ gave as result of {} a tensor that is {}: return a new one",
            def.full_name(),
            if is_argument { "one of its arguments" } else { "a view, or requires grad" }
        );
        tensor.detached_alias()
    };
    Ok(match outputs {
        Outputs::One(tensor) => Outputs::One(fresh(tensor)?),
        Outputs::Tensors(tensors) => {
            Outputs::Tensors(tensors.into_iter().map(fresh).collect::<Result<_>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}
