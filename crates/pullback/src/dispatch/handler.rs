//! Tensors whose ops are answered from outside, below autograd: what `__torch_dispatch__` of Python's classes is made of.
//!
//! A tensor that is marked has its kernels replaced by one function of the process, the handler: it gets the op, the form
//! and the arguments, and gives the results; history, versions and views are kept around it as around a kernel. As long as
//! no tensor was ever marked, this costs one load for each op. Composites are taken apart first, so that the handler sees
//! only what has kernels.

use super::{Arg, OpDef, Outputs, Traits, each_tensor};
use crate::error::ensure;
pub(crate) use crate::tensor::handled::is_used;
pub use crate::tensor::handled::set_off;
use crate::{Error, Result, Tensor};
use std::sync::OnceLock;

/// The form in which an op is called.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// With new results.
    Functional,
    /// Writes into its first argument.
    Inplace,
    /// Writes into these tensors.
    Out(&'a [&'a Tensor]),
}

/// Gives the results of an op; for forms that write, what it gives is not looked at.
pub type Handler = fn(&'static OpDef, Form<'_>, &[Arg<'_>]) -> Result<Outputs>;

static HANDLER: OnceLock<Handler> = OnceLock::new();
/// Says once who answers for marked tensors.
pub(crate) fn set_handler(handler: Handler) {
    let _ = HANDLER.set(handler);
}

/// Whether a call with these arguments is the handler's.
#[inline(always)]
pub(crate) fn concerns(args: &[Arg<'_>]) -> bool {
    is_used() && has_marked(args)
}

#[cold]
#[inline(never)]
fn has_marked(args: &[Arg<'_>]) -> bool {
    let mut found = false;
    each_tensor(args, |tensor| found |= tensor.is_handled_now());
    found
}

/// Asks the handler.
#[cold]
#[inline(never)]
pub(crate) fn answer(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let handler = HANDLER.get().ok_or_else(|| {
        Error::runtime("a tensor is marked as handled, but there is no handler".to_owned())
    })?;
    let outputs = handler(def, form, args)?;
    match form {
        Form::Functional => as_fresh(def, outputs, args),
        Form::Inplace | Form::Out(_) => Ok(outputs),
    }
}

/// Results that history can be hung onto. In place of an ordinary tensor that has some already, or is an argument, another
/// handle to the same memory will do; a marked one is more than its memory, and may be handed through only where nothing is
/// hung onto it.
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
            !tensor.is_handled(),
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
