//! Calling an op: the entry points, and the layer that records.
//!
//! `call` runs the functional form, `call_inplace` the form that writes into its first argument,
//! `call_out` the form with `out=`. Each joins the keys of the call's tensors and of the thread.
//! Without any, the kernel runs at once; with some, the call passes the layers of these keys
//! (`crate::layers`), of which `layer` is one. Both ways do around the kernel what every op has in
//! common: views are linked to their base, versions are bumped, and if an input requires grad the
//! op is recorded. Invariant: when a call fails, no tensor has changed its shape, its history or
//! its version. (A call that is interrupted leaves what it writes in place partly written, and the
//! write counted.)

use super::arithmetic;
use super::graph::creation;
use super::graph::node::SavedValues;
use super::record::{
    BeforeWrite, needed, record, record_constant, record_inplace, record_saved, rules_need_self,
    save_inputs,
};
use super::thread::level::keys_of_word;
use super::thread::{captured, mode, saved_hooks, writes};
use super::variable::view::{check_inplace, check_out, link_views, shows_leaf};
use super::variable::{replayed, tangent};
use crate::call_site::{CallSite, Scope};
use crate::dispatch::{
    Arg, ArgKind, Call, Form, IntoOutputs, Kernel, OpDef, Outputs, Traits, check_apart_inputs,
    check_outs, check_result, check_writable, check_write, is_plain_write, keys_of,
    keys_of_targets, receiver, run_kernel, run_pointwise_fast, run_pointwise_fast_into, sparse,
    write_kernel, write_outs,
};
use crate::tensor::{BACKENDS, Cpu, Key, KeySet, SPARSE, UNRESOLVED, Writer, watch};
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::panic::Location;

/// The location of the Rust code that makes a call.
type Caller = &'static Location<'static>;

/// Runs an op, and records it if an argument requires grad.
#[inline]
#[track_caller]
pub fn call(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let caller = Location::caller();
    let keys = keys_of_word(keys_of(args));
    if keys.is_empty() {
        call_plain(def, args, caller)
    } else {
        call_through_layers(def, args, keys, caller)
    }
}

/// Whether [`call`] with `self_` alone gives `self_` itself and passes no layer.
#[inline(always)]
pub fn is_unchanged(def: &'static OpDef, self_: &Tensor) -> bool {
    let is_outer = KeySet::joined(0).has_any(OUTER);
    def.unchanged.is_some_and(|is_unchanged| !is_outer && is_unchanged(self_))
}

/// The keys of layers that see a call whatever its arguments and results are.
const OUTER: KeySet =
    KeySet::of(Key::Trace).with(KeySet::of(Key::Profiler)).with(KeySet::of(Key::Autocast));

/// The right to read and write elements, in a call without dispatch keys.
#[inline(always)]
fn plain() -> Cpu {
    // SAFETY: only called where a call has no keys below recording: all its tensors are plain ones in main memory.
    unsafe { Cpu::grant() }
}

/// Runs an op on dense tensors in main memory, without dispatch keys.
#[inline(always)]
fn call_plain(def: &'static OpDef, args: &[Arg<'_>], caller: Caller) -> Result<Outputs> {
    match def.kernels.cpu {
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
        Kernel::Composite(compose) => {
            let _site = Scope::of_caller(caller);
            with_tensors(def, args, compose)
        }
        _ if def.is(Traits::INPLACE_ONLY) => {
            let _site = Scope::of_caller(caller);
            captured::check_write(def, receiver(args))?;
            write_plain(def, args).map(IntoOutputs::into_outputs)
        }
        _ => call_general(def, args, needed(def, args)?, None, caller),
    }
}

/// Runs an op with dispatch keys of its arguments or of the thread.
#[cold]
#[inline(never)]
fn call_through_layers(
    def: &'static OpDef,
    args: &[Arg<'_>],
    keys: KeySet,
    caller: Caller,
) -> Result<Outputs> {
    let _site = Scope::of_caller(caller);
    let is_composite = matches!(def.kernels.cpu, Kernel::Composite(_));
    let writes = def.is(Traits::INPLACE_ONLY) && !is_composite;
    if writes {
        captured::check_write(def, receiver(args))?;
    }
    let form = if writes { Form::Inplace } else { Form::Functional };
    Call::new(def, form, args, keys | Key::Autograd, caller).next()
}

/// The layer that records: it decomposes composites, records other ops, and does around the layers
/// below what every op has in common. Composites are decomposed also where recording is excluded.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, args, .. } = *call;
    match call.form {
        Form::Inplace => write_through_layers(call).map(IntoOutputs::into_outputs),
        Form::Out(outs) => {
            write_outs_through_layers(call, outs)?;
            Ok(Outputs::Tensors(outs.iter().map(|&out| out.clone()).collect()))
        }
        Form::Functional => match def.kernels.cpu {
            Kernel::Composite(compose) => with_tensors(def, args, compose),
            _ => with_tensors(def, args, |args| record_through_layers(&call.with_args(args))),
        },
    }
}

/// The functional form of an op with a kernel.
fn record_through_layers(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, args, .. } = *call;
    let needs = needed(def, args)?;
    if needs != 0
        && let Some(outputs) = sparse::recorded(call)
    {
        return outputs;
    }
    let run = || {
        let _below = below(call.keys, needs != 0);
        call.next()
    };
    if needs != 0 && saved_hooks::are_active() {
        return call_hooked(def, args, needs, call.caller, run);
    }
    run_and_record(def, args, needs, run, |tensors| {
        record(def, args, needs, tensors, CallSite::for_caller(call.caller))
    })
}

/// Excludes recording around the layers with `keys` and the kernel: they record nothing of their own.
#[inline(always)]
fn below(keys: KeySet, is_recorded: bool) -> Option<mode::ModeGuard> {
    if keys.has_any(BACKENDS) {
        Some(mode::exclude_recording())
    } else {
        is_recorded.then(|| mode::set_grad(false))
    }
}

/// The rest of a call without dispatch keys, once it is known what must be recorded; `done` is the result if there is one
/// already.
#[inline(always)]
fn call_general(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    done: Option<Tensor>,
    caller: Caller,
) -> Result<Outputs> {
    with_tensors(def, args, move |args| {
        // (Where nothing follows the kernel, its result is constructed where the caller needs it.)
        if needs == 0 && done.is_none() && !def.is(Traits::VIEW) && !mode::is_inference_mode() {
            return run_kernel(plain(), def, args);
        }
        if needs != 0 && done.is_none() && saved_hooks::are_active() {
            let run = || {
                let _below = mode::set_grad(false);
                run_kernel(plain(), def, args)
            };
            return call_hooked(def, args, needs, caller, run);
        }
        let run = || {
            if let Some(out) = done {
                return Ok(out.into_outputs());
            }
            let _below = (needs != 0).then(|| mode::set_grad(false));
            run_kernel(plain(), def, args)
        };
        run_and_record(def, args, needs, run, |tensors| {
            record(def, args, needs, tensors, CallSite::for_caller(caller))
        })
    })
}

/// Runs hooks on saved tensors on the inputs, before the op runs.
#[cold]
#[inline(never)]
fn call_hooked(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    caller: Caller,
    run: impl FnOnce() -> Result<Outputs>,
) -> Result<Outputs> {
    let mut slots = SavedValues::new();
    save_inputs(def, args, needs, None, &mut slots)?;
    run_and_record(def, args, needs, run, |tensors| {
        record_saved(def, args, needs, tensors, &mut slots, CallSite::for_caller(caller))
    })
}

/// Runs an op and does with its outputs what every op has in common.
#[inline(always)]
fn run_and_record(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    run: impl FnOnce() -> Result<Outputs>,
    record: impl FnOnce(&[Tensor]) -> Result<()>,
) -> Result<Outputs> {
    // (One value from here to the end, so that it is constructed where the caller needs it.)
    let mut result = run();
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
            && let Err(error) = creation::settle(record(tensors))
        {
            result = Err(error);
        }
    }
    result
}

/// Runs `call` with tensors instead of the numbers that were given where the signature has `Tensor`.
#[inline(always)]
pub(super) fn with_tensors<R>(
    def: &OpDef,
    args: &[Arg<'_>],
    call: impl FnOnce(&[Arg<'_>]) -> Result<R>,
) -> Result<R> {
    let numbers;
    let with_numbers;
    let args = if has_number(def, args) {
        numbers = wrap_numbers(def, args)?;
        with_numbers = replace_numbers(def, args, &numbers);
        &with_numbers
    } else {
        args
    };
    call(args)
}

/// Whether a number was given where the signature has `Tensor`.
#[inline(always)]
fn has_number(def: &OpDef, args: &[Arg<'_>]) -> bool {
    let is_number = |(arg, info): (&Arg<'_>, &crate::dispatch::ArgDef)| {
        matches!((arg, info.kind), (Arg::Scalar(_), ArgKind::Tensor))
    };
    args.iter().zip(def.args).any(is_number)
}

/// The tensors of numbers that were given where the signature has `Tensor`.
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

/// The arguments with these tensors instead of the numbers.
fn replace_numbers<'a>(
    def: &OpDef,
    args: &[Arg<'a>],
    numbers: &'a [Tensor],
) -> SmallVec<[Arg<'a>; 8]> {
    let mut numbers = numbers.iter();
    let substitute = |(arg, info): (&Arg<'a>, &crate::dispatch::ArgDef)| match (arg, info.kind) {
        (Arg::Scalar(_), ArgKind::Tensor) => numbers.next().map_or(*arg, Arg::Tensor),
        _ => *arg,
    };
    args.iter().zip(def.args).map(substitute).collect()
}

/// Runs the form that writes into its first argument and returns that argument.
#[track_caller]
pub fn call_inplace(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let caller = Location::caller();
    let _site = Scope::of_caller(caller);
    captured::check_write(def, receiver(args))?;
    let keys = keys_of_word(keys_of(args));
    if keys.is_empty() {
        return write_plain(def, args);
    }
    Call::new(def, Form::Inplace, args, keys | Key::Autograd, caller).next()?;
    Ok(receiver(args).clone())
}

/// Refuses what [`call_inplace`] would refuse, as far as that shows without elements, and writes nothing. What batched tensors,
/// classes with their own ops and autocast make of the call is left to them.
pub(super) fn check_call_inplace(def: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let keys = keys_of_word(keys_of(args));
    if keys.has(Key::Python) || keys.has(Key::FuncTorchBatched) {
        return Ok(());
    }
    let target = receiver(args);
    check_inplace(target, target.dtype().is_differentiable() && needed(def, args)? != 0)?;
    if keys.has(Key::Autocast) {
        return Ok(());
    }
    if keys.has_any(SPARSE.with(UNRESOLVED)) {
        return rehearse(def, args, keys.without(OUTER));
    }
    if !def.is(Traits::WRITES_ONE_VALUE) {
        check_writable(target)?;
    }
    if is_plain_write(args, target) {
        return Ok(());
    }
    with_tensors(def, args, |args| check_write(def, args, target))
}

/// Writes into a copy of the target. Kernels of sparse layouts refuse by what they are given, and say so in no other way; tensors
/// with a conj or neg bit are other tensors where the kernel gets them.
#[cold]
fn rehearse(def: &'static OpDef, args: &[Arg<'_>], keys: KeySet) -> Result<()> {
    let _unrecorded = mode::exclude_recording();
    let copy = arithmetic::clone(receiver(args))?;
    let mut with_copy: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
    with_copy[0] = Arg::Tensor(&copy);
    Call::new(def, Form::Inplace, &with_copy, keys | Key::Autograd, Location::caller())
        .next()
        .map(drop)
}

/// Runs the in-place form on dense tensors in main memory that no layer concerns.
#[inline]
fn write_plain(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    // Where nothing is recorded, a number stays one: the short way makes no tensor of it.
    if let Kernel::Pointwise(kernel) = def.kernels.cpu
        && has_number(def, args)
        && needed(def, args)? == 0
    {
        return write_and_record(def, args, KeySet::EMPTY, |target| {
            target.materialize()?;
            run_pointwise_fast_into(def, kernel, args, target).unwrap_or_else(|| {
                with_tensors(def, args, |args| write_kernel(plain(), def, args, target))
            })
        });
    }
    with_tensors(def, args, |args| {
        write_and_record(def, args, KeySet::EMPTY, |target| {
            write_kernel(plain(), def, args, target)
        })
    })
}

/// Runs the in-place form around the layers further in.
fn write_through_layers(call: &Call<'_>) -> Result<Tensor> {
    with_tensors(call.def, call.args, |args| {
        let call = call.with_args(args);
        write_and_record(call.def, args, call.keys, |_| call.next().map(drop))
    })
}

/// Writes by `write` into the first argument and does around that what every op has in common.
#[inline(always)]
fn write_and_record(
    def: &'static OpDef,
    args: &[Arg<'_>],
    keys: KeySet,
    write: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    let target = receiver(args);
    if let Kernel::Composite(compose) = def.kernels.cpu {
        return write_composite(def, args, compose);
    }
    // A target whose dtype cannot have a gradient passes none on to what is written into it.
    let needs =
        needed(def, args).map(|n| if target.dtype().is_differentiable() { n } else { 0 })?;
    let is_constant = def.is(Traits::NOT_DIFFERENTIABLE) && is_recorded_constant(def, target);
    if is_constant || !def.is(Traits::NOT_DIFFERENTIABLE) {
        check_inplace(target, needs != 0)?;
    } else {
        target.check_version_writable()?;
    }
    if !def.kernels.cpu.is_view() && !def.is(Traits::WRITES_ONE_VALUE) {
        check_writable(target)?;
    }
    writes::announce(target)?;
    // A rule that wants the old value of what is overwritten gets a copy of it.
    let original =
        if needs != 0 && rules_need_self(def, needs) { Some(old_value(target)?) } else { None };
    let mut before = BeforeWrite::default();
    if needs != 0 {
        before.take(def, args, needs, original)?;
    }
    {
        let written = InterruptedWrite { targets: &[target], writer: Writer::Inplace(&def.name) };
        let _below = below(keys, true);
        write(target)?;
        written.forget();
    }
    if def.is(Traits::VIEW) {
        replayed::note_reshaped(target);
    }
    count_write(target, Writer::Inplace(&def.name));
    if needs != 0 {
        creation::settle(record_inplace(def, args, needs, target, before))?;
    } else if is_constant && mode::is_recording() {
        creation::settle(record_constant(def, target))?;
    }
    Ok(target.clone())
}

/// Whether a write of an op without derivative is recorded: other writes change leaves as if
/// nothing were recorded.
#[cold]
fn is_recorded_constant(def: &OpDef, target: &Tensor) -> bool {
    !(def.is(Traits::WRITES_LEAVES) && shows_leaf(target))
}

/// The form of an op made of others that writes into its first argument.
fn write_composite(
    def: &'static OpDef,
    args: &[Arg<'_>],
    compose: fn(&[Arg<'_>]) -> Result<Outputs>,
) -> Result<Tensor> {
    if def.is(Traits::INPLACE_ONLY) {
        // The op changes its first argument itself.
        return Ok(compose(args)?.one());
    }
    let target = receiver(args);
    // The ops that it consists of may save the target, which is overwritten afterwards.
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
    arithmetic::copy_in_place(target, &result).map(|()| target.clone())
}

/// Counts a write to `target`; inside of an op that another layer computes, the op itself counts it
/// afterwards.
#[inline(always)]
fn count_write(target: &Tensor, writer: Writer) {
    if !mode::is_tracking_excluded() {
        target.bump_version(writer);
    }
}

/// Counts the write of an op that is interrupted in the middle: its target may be written in part.
struct InterruptedWrite<'a> {
    targets: &'a [&'a Tensor],
    writer: Writer,
}
impl InterruptedWrite<'_> {
    /// Called when the op has completed.
    #[inline(always)]
    fn forget(self) {
        std::mem::forget(self);
    }
}
impl Drop for InterruptedWrite<'_> {
    #[cold]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.targets.iter().for_each(|target| count_write(target, self.writer));
        }
    }
}

/// A copy of what is about to be overwritten, with its history: higher derivatives go on through it.
fn old_value(target: &Tensor) -> Result<Tensor> {
    let copy = if target.needs_layers() || watch::is_on() {
        let _unrecorded = mode::set_grad(false);
        arithmetic::clone(target)?
    } else {
        target.dense_copy(plain())?
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

/// Runs the form with `out=`: the outputs are resized if necessary, then written.
#[track_caller]
pub fn call_out(def: &'static OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    let caller = Location::caller();
    let _site = Scope::of_caller(caller);
    let _unchecked = captured::uncheck();
    let form = Form::Out(outs);
    let keys = keys_of_word(keys_of(args) | keys_of_targets(form));
    if keys.is_empty() {
        return with_tensors(def, args, |args| {
            write_outs_and_count(def, args, outs, || {
                let _below = mode::set_grad(false);
                write_outs(plain(), def, args, outs)
            })
        });
    }
    Call::new(def, form, args, keys | Key::Autograd, caller).next().map(drop)
}

/// Runs the form with `out=` around the layers further in.
fn write_outs_through_layers(call: &Call<'_>, outs: &[&Tensor]) -> Result<()> {
    with_tensors(call.def, call.args, |args| {
        let call = call.with_args(args);
        write_outs_and_count(call.def, args, outs, || {
            let _below = below(call.keys, true);
            call.next().map(drop)
        })
    })
}

/// Writes by `write` into the targets and does around that what every op has in common.
fn write_outs_and_count(
    def: &'static OpDef,
    args: &[Arg<'_>],
    outs: &[&Tensor],
    write: impl FnOnce() -> Result<()>,
) -> Result<()> {
    check_out(def, args, outs)?;
    tangent::check_out(def, args, outs)?;
    for out in outs {
        check_writable(out)?;
        out.check_version_writable()?;
    }
    let overrides = outs.iter().any(|out| out.overrides_ops())
        || KeySet::of_word(keys_of(args)).has_any(OVERRIDES);
    if !overrides {
        check_outs(def, outs)?;
    }
    for out in outs {
        writes::announce(out)?;
    }
    let written = InterruptedWrite { targets: outs, writer: Writer::Out(&def.name) };
    write()?;
    written.forget();
    for out in outs {
        count_write(out, Writer::Out(&def.name));
    }
    Ok(())
}

/// The keys of tensors whose ops are computed elsewhere than by kernels on their memory.
const OVERRIDES: KeySet = KeySet::of(Key::Python).with(KeySet::of(Key::FuncTorchBatched));
