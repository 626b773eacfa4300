//! Tensors of the floating dtypes of one byte (`float8_e4m3fn` and its kin), and of `bcomplex32`, in front of kernels.
//!
//! They are stored, moved, viewed and converted; few ops compute with them, those that say
//! `narrow_floats`. The kernels of the others never see one, so that they need no code for them:
//! here the call is refused with the dtype's name, or, if it has a `dtype=` that names a wider one
//! to compute in, made with the tensor in that dtype. Views read no element and pass.

use super::{Arg, OpDef, Outputs, Traits, run_kernel};
use crate::tensor::Cpu;
use crate::{DType, Error, Result, Tensor};
use smallvec::SmallVec;

/// The narrow dtype of a tensor among the arguments, or the one that `dtype=` names.
#[inline]
fn found(args: &[Arg<'_>]) -> Option<DType> {
    let of = |tensor: &Tensor| Some(tensor.dtype()).filter(|dtype| dtype.is_mostly_stored());
    args.iter().find_map(|arg| match arg {
        Arg::Tensor(tensor) => of(tensor),
        Arg::Tensors(list) => list.iter().find_map(of),
        Arg::OptTensors(list) => list.iter().flatten().find_map(of),
        Arg::DType(dtype) => Some(*dtype).filter(|dtype| dtype.is_mostly_stored()),
        _ => None,
    })
}

/// Whether a call has a narrow dtype that the op's kernel does not know.
#[inline]
pub(super) fn has_any(def: &OpDef, args: &[Arg<'_>]) -> bool {
    !def.is(Traits::NARROW_FLOATS) && found(args).is_some()
}

/// Whether `bcomplex32` is the only narrow dtype; its numbers are converted to the dtype that a
/// call computes in together with wider ones.
#[cold]
pub(super) fn are_converted(args: &[Arg<'_>], compute: DType) -> bool {
    !compute.is_mostly_stored() && found(args) == Some(DType::BC32)
}

/// Refuses narrow dtypes that the op's kernel does not know.
///
/// # Errors
/// `NotImplementedError` with the dtype.
#[inline]
pub(super) fn check(def: &OpDef, args: &[Arg<'_>]) -> Result<()> {
    if def.is(Traits::NARROW_FLOATS) {
        return Ok(());
    }
    match found(args) {
        Some(dtype) => Err(refused(def, dtype)),
        None => Ok(()),
    }
}

#[cold]
fn refused(def: &OpDef, dtype: DType) -> Error {
    let name = dtype.scalar_name();
    Error::not_implemented(format!("\"{}_cpu\" not implemented for '{name}'", def.name))
}

/// The results of a call with a narrow dtype that the op's kernel does not know: those of a call
/// that computes in the wider dtype that `dtype=` names.
///
/// # Errors
/// As [`check`].
#[cold]
#[inline(never)]
pub(super) fn widened(cpu: Cpu, def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let requested = args.iter().find_map(|arg| match arg {
        Arg::DType(dtype) => Some(*dtype),
        _ => None,
    });
    let (Some(Arg::Tensor(first)), Some(dtype)) = (args.first(), requested) else {
        check(def, args)?;
        return run_kernel(cpu, def, args);
    };
    if dtype.is_mostly_stored() {
        return Err(refused(def, dtype));
    }
    let wide = first.converted(cpu, dtype)?;
    let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
    args[0] = Arg::Tensor(&wide);
    check(def, &args)?;
    run_kernel(cpu, def, &args)
}
