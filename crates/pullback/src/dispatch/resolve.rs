//! Ops on tensors with a conj or neg bit, which show something else than what their memory holds.
//!
//! Kernels read and write memory, so they are given resolved copies; what they write to a copy goes back through the bits.
//! Views compute nothing, and pass the bits on. An op that minds the bits itself says so by the word `unresolved`. This is
//! the only place that knows all that. Invariant: below, no kernel sees a bit, but those of views and of such ops.

use super::handler::{Form, has_any};
use super::stand_in::{StandIns, written};
use super::{
    Arg, IntoOutputs, OpDef, Outputs, Traits, check_outs, receiver, run, run_kernel, write_into,
    write_kernel, write_outs,
};
use crate::tensor::{Flag, Writer, shares_storage};
use crate::{Result, Tensor};
use smallvec::SmallVec;

/// Computes a call of which an argument or target is unresolved.
pub(super) fn answer(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let is_direct = def.is(Traits::VIEW) || def.is(Traits::UNRESOLVED);
    if is_direct && !matches!(form, Form::Out(_)) && !has_any(form, args, Tensor::is_sparse) {
        return direct(def, form, args);
    }
    let copies = StandIns::of(args, form, Tensor::is_unresolved, |tensor| {
        let copy = tensor.resolved()?;
        copy.set_flag_fresh(tensor.flags() & Flag::INFERENCE);
        Ok(copy)
    })?;
    Ok(match form {
        Form::Functional => {
            let outputs = run(def, &copies.args(args))?;
            put_back_written(def, args, &copies)?;
            outputs
        }
        Form::Inplace => {
            let (given, target) = (copies.args(args), receiver(args));
            write_into(def, &given, receiver(&given))?;
            put_back(target, &copies)?;
            target.clone().into_outputs()
        }
        Form::Out(outs) => {
            check_outs(def, outs)?;
            let targets: SmallVec<[&Tensor; 2]> = outs.iter().map(|out| copies.get(out)).collect();
            write_outs(def, &copies.args(args), &targets)?;
            outs.iter().try_for_each(|out| put_back(out, &copies))?;
            put_back_written(def, args, &copies)?;
            Outputs::Tensors(outs.iter().map(|&out| out.clone()).collect())
        }
    })
}

/// By the kernel as it is. Results that are views have the bits of what they are views of; the kernel of an op that minds
/// them has set them.
fn direct(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Form::Inplace = form {
        let target = receiver(args);
        write_kernel(def, args, target)?;
        return Ok(target.clone().into_outputs());
    }
    let outputs = run_kernel(def, args)?;
    if let (false, Some(Arg::Tensor(source))) = (def.is(Traits::UNRESOLVED), args.first()) {
        let views = outputs.as_slice().iter().filter(|output| shares_storage(output, source));
        views.for_each(|view| view.set_sign_bits(source.sign_bits()));
    }
    Ok(outputs)
}

/// Writes what is in the copy of `target`, if it has one, into it.
fn put_back(target: &Tensor, copies: &StandIns<'_>) -> Result<()> {
    let Some(copy) = copies.found(target) else { return Ok(()) };
    if copy.shape() != target.shape() {
        target.resize_to(copy.shape())?;
    }
    target.copy_data(copy)
}

/// The same for what an op writes to beside its results, as its signature says: running statistics, parameters of an
/// optimiser. Where the kernel counted the write, it counts.
fn put_back_written(def: &'static OpDef, args: &[Arg<'_>], copies: &StandIns<'_>) -> Result<()> {
    for target in written(def, args) {
        put_back(target, copies)?;
        if copies.found(target).is_some_and(|copy| copy.version() != 0) {
            target.bump_version(Writer::Inplace(&def.name));
        }
    }
    Ok(())
}
