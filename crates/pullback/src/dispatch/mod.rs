//! Calling an op: the one path from arguments to outputs.
//!
//! `call` runs the functional form, `call_inplace` the form that writes into its first argument,
//! `call_out` the form with `out=`. Around the kernel they do what is the same for every op: views
//! are linked to their base, versions are bumped, and if an input requires grad the op is recorded.
//! Nothing here names an op. Invariant: when a call fails no tensor has changed its shape, its history
//! or its version.

mod arg;
mod def;
mod pointwise;

pub(crate) use arg::{device_mismatch, each_tensor};
pub use arg::{
    Arg, FromArg, Grads, IntoGrads, IntoOutputs, IntoSpecs, Outputs, Specs, TensorVec, Value,
};
pub use def::{
    ArgDef, ArgKind, Batch, Jvp, Kernel, OpDef, RuleCtx, Save, SaveKind, Traits, VjpRule,
};

use crate::autograd::{self, mode};
use crate::error::{bail, ensure};
use crate::tensor::{extent, may_overlap_itself, promote, shape};
use crate::{Result, Tensor};
use smallvec::SmallVec;

/// Runs an op and records it if that is due.
#[inline]
pub fn call(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Kernel::Composite(compose) = def.kernel {
        return compose(args);
    }
    if def.is(Traits::INPLACE_ONLY) {
        return call_inplace(def, args).map(IntoOutputs::into_outputs);
    }
    let needs = autograd::needed(def, args)?;
    let outputs = if needs == 0 {
        run(def, args)?
    } else {
        let _below = mode::set_grad(false);
        run(def, args)?
    };
    if let Outputs::Tensors(tensors) = &outputs {
        if def.is(Traits::VIEW) {
            autograd::link_views(def, args, tensors);
        }
        if needs != 0 {
            autograd::record(def, args, needs, tensors, None)?;
        }
    }
    Ok(outputs)
}

/// Runs the kernel of the functional form.
#[inline]
fn run(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    match def.kernel {
        Kernel::Pointwise(kernel) => pointwise::run(def, kernel, args).map(IntoOutputs::into_outputs),
        Kernel::Function(function) => function(args),
        Kernel::Inplace(write) => {
            let copy = receiver(args).dense_copy()?;
            let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
            args[0] = Arg::Tensor(&copy);
            write(&args)?;
            drop(args);
            Ok(copy.into_outputs())
        }
        Kernel::Composite(compose) => compose(args),
    }
}

/// The tensor that an in-place form writes to.
#[inline(always)]
fn receiver<'a>(args: &[Arg<'a>]) -> &'a Tensor {
    match args.first() {
        Some(Arg::Tensor(tensor)) => tensor,
        _ => panic!("an in-place op's first argument is a tensor: this is a bug in pullback"),
    }
}

/// Runs the form that writes into its first argument and returns that argument.
pub fn call_inplace(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let target = receiver(args);
    if let Kernel::Composite(compose) = def.kernel {
        let result = compose(args)?.one();
        check_result(target, result.shape(), result.dtype())?;
        return autograd::copy_into(target, &result).map(|()| target.clone());
    }
    let needs = autograd::needed(def, args)?;
    autograd::check_inplace(target, needs != 0)?;
    check_writable(target)?;
    // A rule that wants the old value of what is overwritten gets a copy of it.
    let original = if needs != 0 && autograd::rules_need_self(def, needs) {
        let _below = mode::set_grad(false);
        Some(target.dense_copy()?)
    } else {
        None
    };
    let saved = if needs == 0 { None } else { Some(autograd::save_inputs(def, args, needs, original)?) };
    {
        let _below = mode::set_grad(false);
        write_into(def, args, target)?;
    }
    target.bump_version();
    if let Some(saved) = saved {
        autograd::record(def, args, needs, std::slice::from_ref(target), Some(saved))?;
    }
    Ok(target.clone())
}

fn write_into(def: &'static OpDef, args: &[Arg<'_>], target: &Tensor) -> Result<()> {
    match def.kernel {
        Kernel::Pointwise(kernel) => pointwise::run_into(def, kernel, args, target, true),
        Kernel::Inplace(write) => write(args),
        Kernel::Function(function) => {
            let result = function(args)?.one();
            check_result(target, result.shape(), result.dtype())?;
            target.copy_data(&result)
        }
        Kernel::Composite(_) => unreachable!("composites were handled by the caller"),
    }
}

/// Refuses a result that the target of an in-place op cannot take.
fn check_result(target: &Tensor, result: &[i64], dtype: crate::DType) -> Result<()> {
    ensure!(
        result == target.shape(),
        runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        shape::list(target.shape()),
        shape::list(result)
    );
    check_cast(dtype, target.dtype())
}

/// Refuses to store a result of a higher category than the output has.
pub(crate) fn check_cast(from: crate::DType, to: crate::DType) -> Result<()> {
    ensure!(
        promote::can_cast(from, to),
        runtime,
        "result type {} can't be cast to the desired output type {}",
        from.scalar_name(),
        to.scalar_name()
    );
    Ok(())
}

/// Refuses targets whose elements share memory with each other.
pub(crate) fn check_writable(target: &Tensor) -> Result<()> {
    ensure!(
        target.is_contiguous() || !may_overlap_itself(target.shape(), target.strides()),
        runtime,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
    );
    Ok(())
}

/// Whether `a` and `b` share memory without being the same elements in the same order.
pub(crate) fn overlaps_partly(a: &Tensor, b: &Tensor) -> bool {
    let (ga, gb) = (a.geometry(), b.geometry());
    let (Some(sa), Some(sb)) = (&ga.storage, &gb.storage) else { return false };
    if !sa.ptr_eq(sb) || ga.numel == 0 || gb.numel == 0 {
        return false;
    }
    let same = ga.offset == gb.offset && ga.shape == gb.shape && ga.strides == gb.strides;
    if same && ga.dtype == gb.dtype {
        return false;
    }
    let range = |g: &crate::tensor::Geometry| {
        let start = g.offset * g.dtype.size() as i64;
        let length = extent(&g.shape, &g.strides).unwrap_or(i64::MAX / 16) * g.dtype.size() as i64;
        (start, start + length)
    };
    let ((a0, a1), (b0, b1)) = (range(ga), range(gb));
    a0 < b1 && b0 < a1 && !interleaved(ga, gb)
}

/// Two column blocks of one matrix overlap as ranges but share no element: the common case of equal
/// strides, where the offset difference must be a combination of steps.
fn interleaved(a: &crate::tensor::Geometry, b: &crate::tensor::Geometry) -> bool {
    if a.dtype != b.dtype || a.strides != b.strides || a.shape.is_empty() {
        return false;
    }
    let mut dims: SmallVec<[(i64, i64); 5]> = a
        .strides
        .iter()
        .zip(a.shape.iter().zip(&b.shape))
        .map(|(&stride, (&m, &n))| (stride, m.max(n)))
        .filter(|&(stride, _)| stride > 0)
        .collect();
    dims.sort_unstable_by_key(|d| std::cmp::Reverse(d.0));
    // Greedy decomposition is exact when each stride exceeds the reach of the smaller ones.
    let mut rest = (a.offset - b.offset).abs();
    let mut shared = true;
    for &(stride, size) in &dims {
        let steps = rest / stride;
        if steps >= size {
            shared = false;
        }
        rest -= steps * stride;
    }
    let inner: i64 = dims.last().map_or(1, |d| d.0);
    // `rest` is what no whole steps reach; with rows split into blocks the step counts exceed the block.
    !shared || (rest != 0 && rest < inner) || {
        let mut rest = (a.offset - b.offset).abs();
        dims.iter().any(|&(stride, size)| {
            let steps = rest / stride;
            rest -= steps * stride;
            steps >= size
        })
    }
}

/// Runs the form with `out=`: the outputs are resized if they must be, then written.
pub fn call_out(def: &'static OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    autograd::check_out(def, args, outs)?;
    for out in outs {
        check_writable(out)?;
        out.check_version_writable()?;
    }
    let _below = mode::set_grad(false);
    if let (Kernel::Pointwise(kernel), [out]) = (&def.kernel, outs) {
        pointwise::run_into(def, *kernel, args, out, false)?;
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
