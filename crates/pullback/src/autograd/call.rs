//! Calling an op: the one path from arguments to outputs.
//!
//! `call` runs the functional form, `call_inplace` the form that writes into its first argument,
//! `call_out` the form with `out=`. Around the kernel they do what is the same for every op: views
//! are linked to their base, versions are bumped, and if an input requires grad the op is recorded.
//! Invariant: when a call fails no tensor has changed its shape, its history or its version.

use super::{check_inplace, check_out, copy_into, link_views, mode, needed, record, rules_need_self, save_inputs};
use crate::dispatch::{
    Arg, IntoOutputs, Kernel, OpDef, Outputs, Traits, check_cast, check_result, check_writable, receiver, run,
    run_pointwise_into, write_into,
};
use crate::error::{bail, ensure};
use crate::{Result, Tensor};

/// Runs an op and records it if that is due.
#[inline]
pub fn call(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Kernel::Composite(compose) = def.kernel {
        return compose(args);
    }
    if def.is(Traits::INPLACE_ONLY) {
        return call_inplace(def, args).map(IntoOutputs::into_outputs);
    }
    let needs = needed(def, args)?;
    let outputs = if needs == 0 {
        run(def, args)?
    } else {
        let _below = mode::set_grad(false);
        run(def, args)?
    };
    if let Outputs::Tensors(tensors) = &outputs {
        if def.is(Traits::VIEW) {
            link_views(def, args, tensors);
        }
        if needs != 0 {
            record(def, args, needs, tensors, None)?;
        }
    }
    Ok(outputs)
}

/// Runs the form that writes into its first argument and returns that argument.
pub fn call_inplace(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let target = receiver(args);
    if let Kernel::Composite(compose) = def.kernel {
        if def.is(Traits::INPLACE_ONLY) {
            // It changes its first argument itself.
            return Ok(compose(args)?.one());
        }
        let result = compose(args)?.one();
        check_result(target, result.shape(), result.dtype())?;
        return copy_into(target, &result).map(|()| target.clone());
    }
    let needs = needed(def, args)?;
    check_inplace(target, needs != 0)?;
    check_writable(target)?;
    // A rule that wants the old value of what is overwritten gets a copy of it.
    let original = if needs != 0 && rules_need_self(def, needs) {
        let _below = mode::set_grad(false);
        Some(target.dense_copy()?)
    } else {
        None
    };
    let saved = if needs == 0 { None } else { Some(save_inputs(def, args, needs, original)?) };
    {
        let _below = mode::set_grad(false);
        write_into(def, args, target)?;
    }
    target.bump_version();
    if let Some(saved) = saved {
        record(def, args, needs, std::slice::from_ref(target), Some(saved))?;
    }
    Ok(target.clone())
}

/// Runs the form with `out=`: the outputs are resized if they must be, then written.
pub fn call_out(def: &'static OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    check_out(def, args, outs)?;
    for out in outs {
        check_writable(out)?;
        out.check_version_writable()?;
    }
    let _below = mode::set_grad(false);
    if let (Kernel::Pointwise(kernel), [out]) = (&def.kernel, outs) {
        run_pointwise_into(def, *kernel, args, out, false)?;
        out.bump_version();
        return Ok(());
    }
    let results = match run(def, args)? {
        Outputs::Tensors(tensors) => tensors,
        Outputs::Number(_) => bail!(runtime, "{}() has no out= form", def.name),
    };
    ensure!(
        results.len() == outs.len(),
        runtime,
        "{}() expected {} out tensors, got {}",
        def.name,
        results.len(),
        outs.len()
    );
    for (result, out) in results.iter().zip(outs) {
        check_cast(result.dtype(), out.dtype())?;
    }
    for (result, out) in results.iter().zip(outs) {
        out.resize_output(result.shape())?;
        out.copy_data(result)?;
        out.bump_version();
    }
    Ok(())
}
