//! Calling an op: the one path from arguments to outputs.
//!
//! `call` runs the functional form, `call_inplace` the form that writes into its first argument,
//! `call_out` the form with `out=`. Around the kernel they do what is the same for every op: views
//! are linked to their base, versions are bumped, and if an input requires grad the op is recorded.
//! Invariant: when a call fails no tensor has changed its shape, its history or its version.

use super::{
    Slots, arithmetic, check_inplace, check_out, copy_into, forward, link_views, mode, needed,
    outside, record, record_constant, record_inplace, record_saved, replay, rules_need_self,
    save_inputs, saved_hooks, tangent, writes,
};
use crate::dispatch::{
    Arg, ArgKind, IntoOutputs, Kernel, OpDef, Outputs, Traits, check_apart_inputs, check_outs,
    check_result, check_writable, handler, receiver, run, run_pointwise_fast, sparse, write_into,
    write_outs,
};
use crate::site::{Scope, Site};
use crate::tensor::Writer;
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::panic::Location;

/// Runs an op and records it if that is due.
#[inline]
#[track_caller]
pub fn call(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if mode::is_surrounded() { outside::call(def, args) } else { call_uncast(def, args) }
}

/// Whether [`call`] with `self_` alone is known to give `self_` itself, and nobody is to hear of the call.
#[inline(always)]
pub fn is_unchanged(def: &'static OpDef, self_: &Tensor) -> bool {
    def.unchanged.is_some_and(|is_unchanged| !mode::is_surrounded() && is_unchanged(self_))
}

/// The same with the arguments as they are.
#[inline(always)]
#[track_caller]
pub(super) fn call_uncast(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let caller = Location::caller();
    if tangent::concerns(args) {
        return forward::call(def, args, caller);
    }
    match def.kernel {
        Kernel::Pointwise(_) if handler::concerns(args) => {
            call_general(def, args, needed(def, args)?, None, caller)
        }
        Kernel::Pointwise(kernel) => {
            let needs = needed(def, args)?;
            // (Hooks pack inputs before the op runs: checkpointing's recomputation may end with that.)
            let fast = if needs != 0 && saved_hooks::are_active() {
                None
            } else {
                run_pointwise_fast(def, kernel, args).transpose()?
            };
            if let (0, Some(_)) = (needs, &fast)
                && !mode::is_inference_mode()
                && let Some(out) = fast
            {
                return Ok(out.into_outputs());
            }
            call_general(def, args, needs, fast, caller)
        }
        Kernel::Composite(_) => call_composite(def, args, caller),
        _ if def.is(Traits::INPLACE_ONLY) => call_inplace(def, args).map(IntoOutputs::into_outputs),
        _ => call_general(def, args, needed(def, args)?, None, caller),
    }
}

/// Where a call comes from.
type Caller = &'static Location<'static>;

pub(super) fn call_composite(
    def: &'static OpDef,
    args: &[Arg<'_>],
    caller: Caller,
) -> Result<Outputs> {
    let _site = Scope::of_caller(caller);
    let Kernel::Composite(compose) = def.kernel else { unreachable!("checked by the caller") };
    if def.is(Traits::WHOLE) && handler::concerns(args) {
        let _below = mode::below();
        return handler::answer(def, handler::Form::Functional, args);
    }
    with_tensors(def, args, compose)
}

/// What is left to do once it is known what must be recorded; `done` is the result if there is one already.
fn call_general(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    done: Option<Tensor>,
    caller: Caller,
) -> Result<Outputs> {
    with_tensors(def, args, move |args| {
        if needs != 0
            && handler::concerns(args)
            && let Some(outputs) = sparse::recorded(def, args)
        {
            return outputs;
        }
        if needs != 0 && done.is_none() && saved_hooks::are_active() {
            return call_hooked(def, args, needs, caller);
        }
        run_and_record(def, args, needs, done, |tensors| {
            record(def, args, needs, tensors, Site::for_caller(caller))
        })
    })
}

/// Hooks on saved tensors see inputs before the op runs.
#[cold]
#[inline(never)]
fn call_hooked(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    caller: Caller,
) -> Result<Outputs> {
    let mut slots = Slots::new();
    save_inputs(def, args, needs, None, &mut slots)?;
    run_and_record(def, args, needs, None, |tensors| {
        record_saved(def, args, needs, tensors, &mut slots, Site::for_caller(caller))
    })
}

/// Runs the op, unless it is `done`, and does with its outputs what is the same for every op.
#[inline(always)]
fn run_and_record(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    done: Option<Tensor>,
    record: impl FnOnce(&[Tensor]) -> Result<()>,
) -> Result<Outputs> {
    // One value from here to the end, so that it is made where the caller wants it.
    let below = if handler::concerns(args) {
        Some(mode::below())
    } else {
        (needs != 0 && done.is_none()).then(|| mode::set_grad(false))
    };
    let mut result = match done {
        Some(out) => Ok(out.into_outputs()),
        None => run(def, args),
    };
    drop(below);
    if let Ok(outputs) = &result {
        let tensors = outputs.as_slice();
        // A view without derivative only shares memory.
        if def.is(Traits::VIEW) && !def.is(Traits::NOT_DIFFERENTIABLE) {
            link_views(def, args, tensors);
        } else if mode::is_inference_mode() {
            tensors.iter().for_each(Tensor::mark_inference);
        }
        if needs != 0
            && !tensors.is_empty()
            && let Err(error) = record(tensors)
        {
            result = Err(error);
        }
    }
    result
}

/// Runs `call` with tensors in the places of the numbers that stand where the signature says `Tensor`.
#[inline(always)]
pub(super) fn with_tensors<R>(
    def: &OpDef,
    args: &[Arg<'_>],
    call: impl FnOnce(&[Arg<'_>]) -> Result<R>,
) -> Result<R> {
    let is_number = |(arg, info): (&Arg<'_>, &crate::dispatch::ArgDef)| {
        matches!((arg, info.kind), (Arg::Scalar(_), ArgKind::Tensor))
    };
    let numbers;
    let with_numbers;
    let args = if args.iter().zip(def.args).any(is_number) {
        numbers = wrap_numbers(def, args)?;
        with_numbers = replace_numbers(def, args, &numbers);
        &with_numbers
    } else {
        args
    };
    call(args)
}

/// Those tensors.
#[inline(never)]
fn wrap_numbers(def: &OpDef, args: &[Arg<'_>]) -> Result<SmallVec<[Tensor; 2]>> {
    let mut numbers = SmallVec::new();
    for (arg, info) in args.iter().zip(def.args) {
        if let (Arg::Scalar(number), ArgKind::Tensor) = (arg, info.kind) {
            numbers.push(Tensor::wrapped(*number)?);
        }
    }
    Ok(numbers)
}

/// The arguments with those tensors in their places.
fn replace_numbers<'a>(
    def: &OpDef,
    args: &[Arg<'a>],
    numbers: &'a [Tensor],
) -> SmallVec<[Arg<'a>; 8]> {
    let mut numbers = numbers.iter();
    let place = |(arg, info): (&Arg<'a>, &crate::dispatch::ArgDef)| match (arg, info.kind) {
        (Arg::Scalar(_), ArgKind::Tensor) => numbers.next().map_or(*arg, Arg::Tensor),
        _ => *arg,
    };
    args.iter().zip(def.args).map(place).collect()
}

/// Runs the form that writes into its first argument and returns that argument.
#[track_caller]
pub fn call_inplace(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let _site = Scope::of_caller(Location::caller());
    let _outside = outside::enter_inplace(def, args);
    if tangent::concerns(args) {
        return forward::call_inplace(def, args);
    }
    call_inplace_plainly(def, args)
}

/// The same where no tangent is to be computed, or each part of a composite computes its own.
#[inline]
pub(super) fn call_inplace_plainly(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    with_tensors(def, args, |args| {
        let target = receiver(args);
        if let Kernel::Composite(compose) = def.kernel {
            if def.is(Traits::INPLACE_ONLY) {
                // It changes its first argument itself.
                return Ok(compose(args)?.one());
            }
            // What it is made of may save the target, which is overwritten afterwards.
            let old = if needed(def, args)? == 0 { None } else { Some(old_value(target)?) };
            let result = match &old {
                None => compose(args)?,
                Some(old) => {
                    let mut with_old: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
                    with_old[0] = Arg::Tensor(old);
                    compose(&with_old)?
                }
            };
            let result = result.one();
            check_apart_inputs(def, args, target)?;
            check_result(target, result.shape(), result.dtype())?;
            return copy_into(target, &result).map(|()| target.clone());
        }
        let needs = needed(def, args)?;
        check_inplace(target, needs != 0)?;
        if !def.is(Traits::VIEW) && !def.is(Traits::WRITES_ONE_VALUE) {
            check_writable(target)?;
        }
        writes::announce(target)?;
        // A rule that wants the old value of what is overwritten gets a copy of it.
        let original =
            if needs != 0 && rules_need_self(def, needs) { Some(old_value(target)?) } else { None };
        let mut slots = Slots::new();
        if needs != 0 {
            save_inputs(def, args, needs, original, &mut slots)?;
        }
        {
            let is_handled = handler::concerns(args);
            let _below = if is_handled { mode::below() } else { mode::set_grad(false) };
            write_into(def, args, target)?;
        }
        if def.is(Traits::VIEW) {
            replay::note_reshaped(target);
        }
        count_write(target, Writer::Inplace(&def.name));
        if needs != 0 {
            record_inplace(def, args, needs, target, slots)?;
        } else if def.is(Traits::NOT_DIFFERENTIABLE) && mode::is_recording() {
            record_constant(def, target)?;
        }
        Ok(target.clone())
    })
}

/// Says that `target` was written to; inside of an op that somebody else answers, the op itself says so afterwards.
#[inline(always)]
fn count_write(target: &Tensor, writer: Writer) {
    if !mode::is_below() {
        target.bump_version(writer);
    }
}

/// A copy of what is about to be overwritten, with its history: higher derivatives go on through it.
fn old_value(target: &Tensor) -> Result<Tensor> {
    let copy = if handler::concerns_tensor(target) {
        let _unrecorded = mode::set_grad(false);
        arithmetic::clone(target)?
    } else {
        target.dense_copy()?
    };
    if target.requires_grad() {
        let edge = target.gradient_edge()?;
        if let Some(node) = edge.node {
            copy.set_history(node, edge.nr);
        }
    }
    tangent::carry(target, &copy)?;
    Ok(copy)
}

/// Runs the form with `out=`: the outputs are resized if they must be, then written.
#[track_caller]
pub fn call_out(def: &'static OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    let _site = Scope::of_caller(Location::caller());
    let _outside = outside::enter_out(def, args);
    with_tensors(def, args, |args| {
        check_out(def, args, outs)?;
        forward::check_out(def, args, outs)?;
        for out in outs {
            check_writable(out)?;
            out.check_version_writable()?;
        }
        let is_handled = handler::is_used()
            && (handler::concerns(args)
                || outs.iter().any(|out| handler::concerns(&[Arg::Tensor(out)])));
        if !is_handled {
            check_outs(def, outs)?;
        }
        for out in outs {
            writes::announce(out)?;
        }
        if is_handled {
            let _below = mode::below();
            handler::answer(def, handler::Form::Out(outs), args)?;
        } else {
            let _below = mode::set_grad(false);
            write_outs(def, args, outs)?;
        }
        for out in outs {
            count_write(out, Writer::Out(&def.name));
        }
        Ok(())
    })
}
