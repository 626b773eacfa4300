//! The `out=` forms: targets are checked, given the result's shape, and written.

use super::{
    Arg, ArgKind, Kernel, OpDef, Outputs, SHARED, Sharing, Traits, check_out_dtype, check_separate,
    each_of, each_tensor, element_name, narrow_floats, pointwise, run_kernel, specs,
};
use crate::error::{bail, ensure};
use crate::tensor::promote;
use crate::tensor::{
    Cpu, Geometry, TensorSpec, contiguous_strides, overlaps_partly_resized, shape::list,
    shares_elements, shares_storage,
};
use crate::{Result, Tensor};
use smallvec::SmallVec;

/// Computes into `outs`, which passed [`check_outs`]. It records no history and counts no version.
pub(crate) fn write_outs(
    cpu: Cpu,
    def: &'static OpDef,
    args: &[Arg<'_>],
    outs: &[&Tensor],
) -> Result<()> {
    outs.iter().try_for_each(|out| out.materialize())?;
    if let (Kernel::Pointwise(kernel), [out]) = (&def.kernels.cpu, outs) {
        return pointwise::run_into(cpu, def, *kernel, args, out, false);
    }
    check_separate_outs(def, args, outs)?;
    let args = &in_dtype_of(def, args, outs)?[..];
    if let Kernel::Writing(write) = def.kernels.cpu {
        let specs = specs(def, args)?;
        if !narrow_floats::has_any(def, args) && is_direct(def, args, outs, &specs)? {
            return write_direct(outs, &specs, || write(cpu, args, outs));
        }
    }
    let results = match run_kernel(cpu, def, args)? {
        outputs @ (Outputs::One(_) | Outputs::Tensors(_)) => outputs.tensors(),
        Outputs::Number(_) => bail!(runtime, "{}() has no out= form", def.name),
    };
    ensure!(
        results.len() == outs.len(),
        runtime,
        "{}() expected an out= argument of size {}, got size {}",
        def.name,
        results.len(),
        outs.len()
    );
    for (at, (result, out)) in results.iter().zip(outs).enumerate() {
        check_out_dtype(def, at, result.dtype(), out.dtype())?;
        check_apart_out(def, args, out, result.shape())?;
    }
    for (result, out) in results.iter().zip(outs) {
        if def.is(Traits::FILLS_OUT) && out.numel() == result.numel() {
            let strides = contiguous_strides(out.shape());
            let alias = result.alias_with(out.shape(), &strides, 0)?;
            out.copy_data(cpu, &alias.with_bits_of(result))?;
        } else {
            if def.is(Traits::FILLS_OUT) && out.numel() > 0 {
                resize_filled(out, result)?;
            }
            out.resize_output(result.shape())?;
            out.copy_data(cpu, result)?;
        }
    }
    Ok(())
}

/// Whether a kernel may write into the targets themselves: they have the results' dtypes, lie (or can be made to lie) as the
/// results would, and share no memory with an argument.
///
/// # Errors
/// `RuntimeError` for a target that cannot take its result.
fn is_direct(
    def: &OpDef,
    args: &[Arg<'_>],
    outs: &[&Tensor],
    specs: &[TensorSpec],
) -> Result<bool> {
    let mut is_direct = specs.len() == outs.len() && !def.is(Traits::FILLS_OUT);
    for (at, (spec, out)) in specs.iter().zip(outs).enumerate() {
        check_out_dtype(def, at, spec.dtype, out.dtype())?;
        check_apart_out(def, args, out, &spec.shape)?;
        let strides = spec.strides.clone().unwrap_or_else(|| contiguous_strides(&spec.shape));
        let has_layout = out.shape() == spec.shape.as_slice() && out.strides() == &strides[..];
        let is_fresh = out.numel() == 0 && spec.strides.is_none();
        is_direct &= out.dtype() == spec.dtype && (has_layout || is_fresh);
        each_tensor(args, |input| is_direct &= !shares_storage(input, out));
    }
    Ok(is_direct)
}

/// Gives empty targets the results' shapes and strides, and writes into all of them. After an error they have their shapes again.
pub(super) fn write_direct(
    outs: &[&Tensor],
    specs: &[TensorSpec],
    write: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let before: SmallVec<[Geometry; 2]> = outs.iter().map(|out| out.geometry().clone()).collect();
    let resized = specs.iter().zip(outs).try_for_each(|(spec, out)| out.resize_output_as(spec));
    let written = resized.and_then(|()| write());
    if written.is_err() {
        for (out, before) in outs.iter().zip(before) {
            if out.shape() != &before.shape[..] {
                out.set_geometry(before);
            }
        }
    }
    written
}

/// Refuses `out=` tensors of one call that share elements: the last would overwrite the others.
pub(crate) fn check_outs(def: &OpDef, outs: &[&Tensor]) -> Result<()> {
    for (second, b) in outs.iter().enumerate() {
        for (first, a) in outs[..second].iter().enumerate() {
            ensure!(
                !shares_elements(a, b),
                value,
                "{}(): the `{}` and `{}` out= tensors must not overlap.",
                def.name,
                def.outputs.get(first).unwrap_or(&"first"),
                def.outputs.get(second).unwrap_or(&"second")
            );
        }
    }
    Ok(())
}

/// Refuses `out=` tensors that share elements with arguments which must be separate.
fn check_separate_outs(def: &OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    each_of(def, args, Sharing::Separate, |input| {
        outs.iter().try_for_each(|out| check_separate(out, input))
    })
}

/// Refuses an `out=` tensor that, once it is resized to `shape`, overlaps in part with arguments which must be apart.
fn check_apart_out(def: &OpDef, args: &[Arg<'_>], out: &Tensor, shape: &[i64]) -> Result<()> {
    each_of(def, args, Sharing::Apart, |input| {
        ensure!(
            input.is_same(out) || !overlaps_partly_resized(out, shape, input),
            runtime,
            "{SHARED}"
        );
        Ok(())
    })
}

/// Gives a target that has another number of elements than it was to be filled with their shape,
/// and warns of that.
#[cold]
fn resize_filled(out: &Tensor, result: &Tensor) -> Result<()> {
    crate::warning::warn(format!(
        "The number of elements in the out tensor of shape {} is {} which does not match the computed number of elements {}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape {}.",
        list(out.shape()),
        out.numel(),
        result.numel(),
        list(result.shape())
    ));
    out.resize_to(result.shape())
}

/// Whether the target takes the floating or complex numbers of an input.
fn takes_numbers_of(out: &Tensor, input: Option<&Arg<'_>>) -> bool {
    let Some(Arg::Tensor(input)) = input else { return false };
    input.dtype().is_differentiable() && promote::can_cast(input.dtype(), out.dtype())
}

/// The arguments with the dtype of the target, where that is the one to compute in: in ops that make a tensor of none, and those
/// that say so.
///
/// # Errors
/// `RuntimeError` if another one was requested.
fn in_dtype_of<'a>(
    def: &OpDef,
    args: &[Arg<'a>],
    outs: &[&Tensor],
) -> Result<SmallVec<[Arg<'a>; 8]>> {
    let mut args: SmallVec<[Arg<'a>; 8]> = SmallVec::from_slice(args);
    let is_maker = def.args.iter().all(|arg| matches!(arg.kind, ArgKind::Plain | ArgKind::Number));
    let at = def.args.iter().position(|arg| arg.name == "dtype");
    let (Some(at), [out]) = (at, outs) else { return Ok(args) };
    match args[at] {
        // (Norms of complex numbers are real.)
        Arg::DType(dtype) if [dtype, dtype.to_real()].contains(&out.dtype()) => {}
        Arg::DType(dtype) if is_maker => bail!(
            runtime,
            "dtype torch.{} does not match dtype of out parameter (torch.{})",
            dtype.spelled(),
            out.dtype().spelled()
        ),
        Arg::DType(dtype) => bail!(
            runtime,
            "{}(): Expected out tensor to have dtype {}, but got {} instead",
            def.name,
            element_name(dtype),
            element_name(out.dtype())
        ),
        _ if is_maker || def.is(Traits::OUT_DTYPE) => args[at] = Arg::DType(out.dtype()),
        _ if def.is(Traits::OUT_PRECISION) && takes_numbers_of(out, args.first()) => {
            args[at] = Arg::DType(out.dtype());
        }
        _ => {}
    }
    Ok(args)
}
