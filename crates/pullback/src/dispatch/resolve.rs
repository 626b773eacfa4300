//! Ops on tensors with a conj or neg bit, whose values differ from those that their memory holds.
//!
//! Kernels read and write memory, so they are given resolved copies; what they write to a copy goes
//! back through the bits. Views compute nothing, and pass the bits on. An op that handles the bits
//! itself has the word `unresolved`. This is the only place that knows all that. Invariant: below,
//! no kernel sees a bit, but those of views and of such ops.

use super::stand_in::{StandIns, written};
use super::{Arg, Call, Form, IntoOutputs, OpDef, Outputs, Traits, check_outs, receiver};
use crate::tensor::{Cpu, Flag, SPARSE, Writer, shares_storage};
use crate::{Result, Tensor};
use smallvec::SmallVec;

/// The layer: computes a call of which an argument or target is unresolved.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, form, args, .. } = *call;
    let is_direct = def.kernels.cpu.is_view() || def.is(Traits::UNRESOLVED);
    if is_direct && !matches!(form, Form::Out(_)) && !call.keys.has_any(SPARSE) {
        return direct(call);
    }
    // SAFETY: what is batched, overrides its ops or has no memory was dealt with further out; this layer's tensors are strided, or
    // the redispatch brings sparse ones to their layer.
    let cpu = unsafe { Cpu::grant() };
    let copies = StandIns::of(call, Tensor::is_unresolved, |tensor| {
        let copy = tensor.resolved(cpu)?;
        copy.set_flag_fresh(tensor.flags() & Flag::INFERENCE);
        Ok(copy)
    })?;
    let given = copies.args(args);
    Ok(match form {
        Form::Functional => {
            let outputs = call.redispatch(form, &given)?;
            put_back_written(cpu, def, args, &copies)?;
            outputs
        }
        Form::Inplace => {
            let target = receiver(args);
            call.redispatch(form, &given)?;
            put_back(cpu, target, &copies)?;
            target.clone().into_outputs()
        }
        Form::Out(outs) => {
            check_outs(def, outs)?;
            let targets: SmallVec<[&Tensor; 2]> = outs.iter().map(|out| copies.get(out)).collect();
            call.redispatch(Form::Out(&targets), &given)?;
            outs.iter().try_for_each(|out| put_back(cpu, out, &copies))?;
            put_back_written(cpu, def, args, &copies)?;
            Outputs::Tensors(outs.iter().map(|&out| out.clone()).collect())
        }
    })
}

/// Runs the kernel on the arguments as they are. Results that are views get the bits of the tensor that they are views of; an
/// op with the word `unresolved` has set them itself.
fn direct(call: &Call<'_>) -> Result<Outputs> {
    let outputs = call.next()?;
    let is_view = matches!(call.form, Form::Functional) && !call.def.is(Traits::UNRESOLVED);
    if let (true, Some(Arg::Tensor(source))) = (is_view, call.args.first()) {
        let views = outputs.as_slice().iter().filter(|output| shares_storage(output, source));
        views.for_each(|view| view.set_sign_bits(source.sign_bits()));
    }
    Ok(outputs)
}

/// Writes the elements of the resolved copy of `target`, if there is one, into `target`.
fn put_back(cpu: Cpu, target: &Tensor, copies: &StandIns<'_>) -> Result<()> {
    let Some(copy) = copies.found(target) else { return Ok(()) };
    if copy.shape() != target.shape() {
        target.resize_to(copy.shape())?;
    }
    target.copy_data(cpu, copy)
}

/// Writes the copies back of the arguments that an op writes to beside its results, as its signature says (running statistics,
/// parameters of an optimiser). A write that the kernel counted in a copy's version is counted in the argument's.
fn put_back_written(
    cpu: Cpu,
    def: &'static OpDef,
    args: &[Arg<'_>],
    copies: &StandIns<'_>,
) -> Result<()> {
    for target in written(def, args) {
        put_back(cpu, target, copies)?;
        if copies.found(target).is_some_and(|copy| copy.version() != 0) {
            target.bump_version(Writer::Inplace(&def.name));
        }
    }
    Ok(())
}
