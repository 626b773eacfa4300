//! The layer of autocast: ops run in the dtypes that suit them, while tensors keep theirs.
//!
//! An op says in its definition what is done with its arguments ([`CastPolicy`]); `thread::autocast` is what a thread has
//! turned on. A conversion is recorded as any other, so that gradients come back in the tensors' own dtypes. Only functional
//! forms are converted: what writes into given tensors runs in their dtypes.
//!
//! P. Micikevicius et al., "Mixed Precision Training", 2018.

use super::arithmetic;
use super::thread::autocast::{self, AutocastDevice};
use crate::dispatch::{Arg, Call, CastPolicy, Form, Kernel, Outputs, each_tensor};
use crate::error::bail;
use crate::tensor::Flag;
use crate::{DType, Result, Tensor};
use smallvec::SmallVec;

/// The layer: converts the arguments of functional forms as the op's policy demands. Below it autocast is off; the parts of a
/// composite have policies of their own.
#[inline(never)]
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, args, .. } = *call;
    if !matches!(call.form, Form::Functional) {
        let _pause = autocast::paused();
        return call.next();
    }
    let policy =
        if autocast::is_enabled(AutocastDevice::CPU) { def.autocast } else { CastPolicy::None };
    if policy == CastPolicy::None {
        let is_composite = matches!(def.kernels.cpu, Kernel::Composite(_));
        let _pause = (!is_composite).then(autocast::paused);
        return call.next();
    }
    let wanted = wanted_dtype(policy, args)?;
    let lower = autocast::dtype(AutocastDevice::CPU);
    let _pause = autocast::paused();
    let held = convert_args(args, |tensor| convert(tensor, wanted, wanted == lower))?;
    call.with_args(&with_converted(args, &held)).next()
}

/// The dtype to which a policy converts arguments.
fn wanted_dtype(policy: CastPolicy, args: &[Arg<'_>]) -> Result<DType> {
    let lower = autocast::dtype(AutocastDevice::CPU);
    match policy {
        CastPolicy::Lower => Ok(lower),
        CastPolicy::Fp32 | CastPolicy::None => Ok(DType::F32),
        CastPolicy::Promote => {
            let mut widest = Ok(lower);
            each_tensor(args, |tensor| {
                if let (Ok(now), true) = (&widest, autocast::is_eligible(tensor)) {
                    widest = wider(*now, tensor.dtype(), lower);
                }
            });
            widest
        }
    }
}

/// `float32` if one of the two dtypes is `float32`, else the lower precision.
fn wider(now: DType, next: DType, lower: DType) -> Result<DType> {
    if now == DType::F32 || next == DType::F32 {
        return Ok(DType::F32);
    }
    if next != lower {
        bail!(
            runtime,
            "Unexpected floating ScalarType in autocast: {} while autocast runs ops in {}; convert the tensor first",
            next.spelled(),
            lower.spelled()
        );
    }
    Ok(lower)
}

/// An argument's tensors after conversion.
enum HeldCast {
    /// No tensor of the argument is converted.
    Same,
    One(Tensor),
    List(Vec<Tensor>),
    Options(Vec<Option<Tensor>>),
}

fn convert_args(
    args: &[Arg<'_>],
    convert: impl Fn(&Tensor) -> Result<Option<Tensor>>,
) -> Result<SmallVec<[HeldCast; 8]>> {
    let or_same = |t: &Tensor| convert(t).map(|c| c.unwrap_or_else(|| t.clone()));
    let one = |arg: &Arg<'_>| {
        Ok(match arg {
            Arg::Tensor(t) => convert(t)?.map_or(HeldCast::Same, HeldCast::One),
            Arg::Tensors(list) => HeldCast::List(list.iter().map(or_same).collect::<Result<_>>()?),
            Arg::OptTensors(list) => HeldCast::Options(
                list.iter().map(|t| t.as_ref().map(or_same).transpose()).collect::<Result<_>>()?,
            ),
            _ => HeldCast::Same,
        })
    };
    args.iter().map(one).collect()
}

fn with_converted<'a>(args: &[Arg<'a>], held: &'a [HeldCast]) -> SmallVec<[Arg<'a>; 8]> {
    let substitute = |(arg, held): (&Arg<'a>, &'a HeldCast)| match held {
        HeldCast::Same => *arg,
        HeldCast::One(tensor) => Arg::Tensor(tensor),
        HeldCast::List(list) => Arg::Tensors(list),
        HeldCast::Options(list) => Arg::OptTensors(list),
    };
    args.iter().zip(held).map(substitute).collect()
}

/// The tensor converted to `wanted`, if it is eligible and has another dtype.
fn convert(tensor: &Tensor, wanted: DType, is_lower: bool) -> Result<Option<Tensor>> {
    if !autocast::is_eligible(tensor) || tensor.dtype() == wanted {
        return Ok(None);
    }
    if is_lower && is_weight(tensor) && autocast::is_cache_enabled() {
        return autocast::cached(tensor, wanted, || arithmetic::to_dtype(tensor, wanted)).map(Some);
    }
    arithmetic::to_dtype(tensor, wanted).map(Some)
}

/// Whether the tensor is a weight: it is likely to be converted again with the same value.
fn is_weight(tensor: &Tensor) -> bool {
    tensor.dtype() == DType::F32 && tensor.has_flag(Flag::REQUIRES_GRAD) && !tensor.is_view()
}
