//! Ops on tensors with a conj or neg bit, which show something else than what their memory holds.
//!
//! Kernels read and write memory, so they are given resolved copies; what they write to a copy goes back through the bits.
//! Views compute nothing, and pass the bits on. An op that minds the bits itself says so by the word `unresolved`. This is
//! the only place that knows all that. Invariant: below, no kernel sees a bit, but those of views and of such ops.

use super::handler::{Form, has_any};
use super::{
    Arg, IntoOutputs, OpDef, Outputs, Traits, check_outs, each_tensor, receiver, run, run_kernel,
    write_into, write_kernel, write_outs,
};
use crate::tensor::{Flag, Writer, shares_storage};
use crate::{Result, Tensor};
use pullback_schema::Argument;
use smallvec::SmallVec;

/// Computes a call of which an argument or target is unresolved.
pub(super) fn answer(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let is_direct = def.is(Traits::VIEW) || def.is(Traits::UNRESOLVED);
    if is_direct && !matches!(form, Form::Out(_)) && !has_any(form, args, Tensor::is_sparse) {
        return direct(def, form, args);
    }
    let copies = Copies::of(args, form)?;
    Ok(match form {
        Form::Functional => {
            let outputs = run(def, &copies.args(args))?;
            copies.put_back_written(def, args)?;
            outputs
        }
        Form::Inplace => {
            let (given, target) = (copies.args(args), receiver(args));
            write_into(def, &given, receiver(&given))?;
            copies.put_back(target)?;
            target.clone().into_outputs()
        }
        Form::Out(outs) => {
            check_outs(def, outs)?;
            let targets: SmallVec<[&Tensor; 2]> = outs.iter().map(|out| copies.get(out)).collect();
            write_outs(def, &copies.args(args), &targets)?;
            outs.iter().try_for_each(|out| copies.put_back(out))?;
            copies.put_back_written(def, args)?;
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

/// Resolved copies of the unresolved tensors of a call, one of each.
struct Copies<'a> {
    of: SmallVec<[(&'a Tensor, Tensor); 2]>,
    /// The lists of the arguments, where a tensor in them was copied.
    lists: Vec<Option<Vec<Tensor>>>,
    opt_lists: Vec<Option<Vec<Option<Tensor>>>>,
}

impl<'a> Copies<'a> {
    fn of(args: &[Arg<'a>], form: Form<'a>) -> Result<Copies<'a>> {
        let mut found: SmallVec<[&Tensor; 2]> = SmallVec::new();
        let mut note = |tensor: &'a Tensor| {
            if tensor.is_unresolved() && !found.iter().any(|other| other.is_same(tensor)) {
                found.push(tensor);
            }
        };
        each_tensor(args, &mut note);
        if let Form::Out(outs) = form {
            for out in outs {
                note(out);
            }
        }
        let copied = |tensor: &'a Tensor| {
            let copy = tensor.resolved()?;
            copy.set_flag_fresh(tensor.flags() & Flag::INFERENCE);
            Ok((tensor, copy))
        };
        let of = found.into_iter().map(copied).collect::<Result<_>>()?;
        let mut copies = Copies { of, lists: Vec::new(), opt_lists: Vec::new() };
        for arg in args {
            match arg {
                Arg::Tensors(list) => {
                    let replaced = list.iter().map(|t| copies.get(t).clone()).collect();
                    let is_any = list.iter().any(Tensor::is_unresolved);
                    copies.lists.push(is_any.then_some(replaced));
                }
                Arg::OptTensors(list) => {
                    let replaced = |t: &Option<Tensor>| t.as_ref().map(|t| copies.get(t).clone());
                    let replaced = list.iter().map(replaced).collect();
                    let is_any = list.iter().flatten().any(Tensor::is_unresolved);
                    copies.opt_lists.push(is_any.then_some(replaced));
                }
                _ => {}
            }
        }
        Ok(copies)
    }

    /// What stands for a tensor: its copy, or the tensor itself.
    fn get<'b>(&'b self, tensor: &'b Tensor) -> &'b Tensor {
        self.of.iter().find(|(of, _)| of.is_same(tensor)).map_or(tensor, |(_, copy)| copy)
    }

    /// The arguments with the copies in them.
    fn args<'b>(&'b self, args: &[Arg<'b>]) -> SmallVec<[Arg<'b>; 8]> {
        let (mut lists, mut opt_lists) = (self.lists.iter(), self.opt_lists.iter());
        let replaced = |arg: &Arg<'b>| match arg {
            Arg::Tensor(tensor) => Arg::Tensor(self.get(tensor)),
            Arg::Tensors(list) => {
                let copied = lists.next().and_then(Option::as_ref);
                Arg::Tensors(copied.map_or(list, |copied| copied))
            }
            Arg::OptTensors(list) => {
                let copied = opt_lists.next().and_then(Option::as_ref);
                Arg::OptTensors(copied.map_or(list, |copied| copied))
            }
            other => *other,
        };
        args.iter().map(replaced).collect()
    }

    /// Writes what is in the copy of `target`, if it has one, into it.
    fn put_back(&self, target: &Tensor) -> Result<()> {
        let Some((_, copy)) = self.of.iter().find(|(of, _)| of.is_same(target)) else {
            return Ok(());
        };
        if copy.shape() != target.shape() {
            target.resize_to(copy.shape())?;
        }
        target.copy_data(copy)
    }

    /// The same for what an op writes to beside its results, as its signature says: running statistics, parameters of an
    /// optimiser. Where the kernel counted the write, it counts.
    fn put_back_written(&self, def: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
        let is_written = |info: &Argument| info.alias.as_ref().is_some_and(|alias| alias.is_write);
        let mut written: SmallVec<[&Tensor; 2]> = SmallVec::new();
        for (arg, _) in args.iter().zip(&def.schema().args).filter(|(_, info)| is_written(info)) {
            each_tensor(&[*arg], |tensor| written.push(tensor));
        }
        for target in written {
            self.put_back(target)?;
            let is_counted =
                |(of, copy): &&(&Tensor, Tensor)| of.is_same(target) && copy.version() != 0;
            if self.of.iter().any(|pair| is_counted(&pair)) {
                target.bump_version(Writer::Inplace(&def.name));
            }
        }
        Ok(())
    }
}
