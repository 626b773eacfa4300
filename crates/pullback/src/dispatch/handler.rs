//! Ops that are answered from outside, below autograd: what `__torch_dispatch__` of Python's classes and modes is made of.
//!
//! A tensor that is marked has its kernels replaced by one function of the process, the handler: it gets the op, the form
//! and the arguments, and gives the results. A thread's modes ([`super::dispatch_mode`]) are asked before it, whatever the
//! arguments are. History, versions and views are kept around an answer as around a kernel. As long as no tensor was ever
//! marked and no mode is on, this costs one load for each op. Composites are taken apart first, so that only what has
//! kernels is seen.

use super::{Arg, OpDef, Outputs, Traits, dispatch_mode, each_tensor, resolve, simulated, sparse};
use crate::error::ensure;
pub(crate) use crate::tensor::handled::is_used;
pub use crate::tensor::handled::{is_off, set_off};
use crate::{Error, Result, Tensor};
use std::borrow::Cow;
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

impl Form<'_> {
    /// The names of op and overload in this form, `("add_", "Tensor")`; an overload without name is `default`.
    #[must_use]
    pub fn spelled(self, def: &OpDef) -> (Cow<'static, str>, Cow<'static, str>) {
        let name = Cow::Borrowed(def.name);
        let overload = if def.overload.is_empty() { "default" } else { def.overload };
        match self {
            Form::Inplace if !def.is(Traits::INPLACE_ONLY) => {
                (format!("{name}_").into(), overload.into())
            }
            Form::Out(_) if matches!(def.overload, "" | "Tensor") => (name, "out".into()),
            Form::Out(_) => (name, format!("{overload}_out").into()),
            Form::Functional | Form::Inplace => (name, overload.into()),
        }
    }
}

/// What somebody who was asked says.
pub enum Answer {
    /// The results of the op; for forms that write, what they are is not looked at.
    Results(Outputs),
    /// That others are to be asked; the text says who declined, for the error if nobody answers.
    Declined(String),
}

/// Answers the ops on marked tensors.
pub type Handler = fn(&'static OpDef, Form<'_>, &[Arg<'_>]) -> Result<Answer>;

static HANDLER: OnceLock<Handler> = OnceLock::new();
/// Says once who answers for marked tensors.
pub(crate) fn set_handler(handler: Handler) {
    let _ = HANDLER.set(handler);
}

/// Answers ops on batched tensors, and random ones where examples are to have their own numbers; nothing if it is neither.
pub(crate) type Batcher = fn(&'static OpDef, Form<'_>, &[Arg<'_>]) -> Option<Result<Outputs>>;

static BATCHER: OnceLock<Batcher> = OnceLock::new();
/// Says once who that is.
pub(crate) fn set_batcher(batcher: Batcher) {
    let _ = BATCHER.set(batcher);
}

/// Asks it.
#[cold]
#[inline(never)]
pub(crate) fn batched(
    def: &'static OpDef,
    form: Form<'_>,
    args: &[Arg<'_>],
) -> Option<Result<Outputs>> {
    BATCHER.get().and_then(|batcher| batcher(def, form, args))
}

/// Whether a call with these arguments is answered from outside.
#[inline(always)]
pub(crate) fn concerns(args: &[Arg<'_>]) -> bool {
    is_used() && is_asked(args)
}

/// Whether an op on this tensor is answered from outside.
#[inline(always)]
pub(crate) fn concerns_tensor(tensor: &Tensor) -> bool {
    concerns(&[Arg::Tensor(tensor)])
}

#[cold]
#[inline(never)]
fn is_asked(args: &[Arg<'_>]) -> bool {
    dispatch_mode::is_on() || has_marked(args) || simulated::asked(args).is_some()
}

fn has_marked(args: &[Arg<'_>]) -> bool {
    let mut found = false;
    each_tensor(args, |tensor| found |= tensor.is_handled_now());
    found
}

/// Whether an argument or target of a call is such that `is_so`.
pub(super) fn has_any(form: Form<'_>, args: &[Arg<'_>], is_so: fn(&Tensor) -> bool) -> bool {
    let mut found = matches!(form, Form::Out(outs) if outs.iter().any(|out| is_so(out)));
    each_tensor(args, |tensor| found |= is_so(tensor));
    found
}

/// Asks the thread's innermost mode, then the handler; what nobody else wants is computed by kernels, for sparse tensors by
/// theirs, with unresolved arguments resolved, and for those on simulated devices on their memory.
#[cold]
#[inline(never)]
pub(crate) fn answer(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Some(outputs) = batched(def, form, args) {
        return outputs;
    }
    let mut declined = String::new();
    let mut said = dispatch_mode::ask(def, form, args);
    if let Some(Ok(Answer::Declined(who))) = &said {
        declined.push_str(who);
        said = None;
    }
    if said.is_none() && has_any(form, args, Tensor::is_marked_now) {
        let handler = HANDLER.get().ok_or_else(|| {
            Error::runtime("a tensor is marked as handled, but there is no handler".to_owned())
        })?;
        said = Some(handler(def, form, args));
    }
    if said.is_none() && declined.is_empty() {
        if simulated::concerns(form, args) {
            return simulated::answer(def, form, args);
        }
        if has_any(form, args, Tensor::is_unresolved) {
            return resolve::answer(def, form, args);
        }
        if has_any(form, args, Tensor::is_sparse) {
            return sparse::answer(def, form, args);
        }
    }
    let outputs = match said.transpose()? {
        Some(Answer::Results(outputs)) => outputs,
        Some(Answer::Declined(who)) => return Err(unanswered(def, form, declined + &who)),
        None => return Err(unanswered(def, form, declined)),
    };
    match form {
        Form::Functional => as_fresh(def, outputs, args),
        Form::Inplace | Form::Out(_) => Ok(outputs),
    }
}

/// The error for an op that everybody declined.
fn unanswered(def: &OpDef, form: Form<'_>, declined: String) -> Error {
    let (name, overload) = form.spelled(def);
    Error::type_error(format!(
        "Multiple dispatch failed for 'aten.{name}.{overload}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n{declined}\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    ))
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
