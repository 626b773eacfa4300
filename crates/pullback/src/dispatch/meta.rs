//! Ops on the meta device: tensors that have a shape, a dtype and strides, and no memory.
//!
//! The op's `meta` function gives the shape, dtype and strides of each result; nothing is computed. Views run their kernels, which never touch
//! memory. An op whose result depends on elements is refused, and so is every copy out of the device. Invariant: no kernel that
//! is handed a [`Cpu`](crate::tensor::Cpu) sees a tensor of this device.

use super::stand_in::StandIns;
use super::{
    Arg, Backend, Call, Form, IntoOutputs, Kernel, OpDef, Outputs, TensorVec, Traits,
    check_apart_inputs, check_out_dtype, check_outs, check_result, device_mismatch, each_tensor,
    missing, receiver,
};
use crate::error::ensure;
use crate::tensor::{Key, SPARSE, TensorSpec};
use crate::{Device, Result, Tensor};

/// The layer: gives the results of a call of which an argument or target is on the meta device, or a result is to be.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, form, args, .. } = *call;
    check(call)?;
    match form {
        Form::Functional => match named_device(args) {
            Some(device) if device != Device::Meta => elsewhere(call, device),
            _ => functional(call),
        },
        Form::Inplace => {
            write(def, args)?;
            Ok(receiver(args).clone().into_outputs())
        }
        Form::Out(outs) => {
            write_outs(def, args, outs)?;
            Ok(Outputs::Tensors(outs.iter().map(|&out| out.clone()).collect()))
        }
    }
}

/// The device that an argument names.
fn named_device(args: &[Arg<'_>]) -> Option<Device> {
    args.iter().find_map(|arg| match arg {
        Arg::Device(device) => Some(*device),
        _ => None,
    })
}

fn is_meta(tensor: &Tensor) -> bool {
    tensor.keys().has(Key::Meta)
}

/// Refuses tensors of other devices, except numbers and indices, and copies out of the meta device.
fn check(call: &Call<'_>) -> Result<()> {
    let Call { def, form, args, .. } = *call;
    ensure!(
        !call.has_tensor_with(SPARSE),
        not_implemented,
        "Could not run 'aten::{}' with arguments from the 'SparseMeta' backend: sparse tensors cannot be on the meta device",
        def.name
    );
    let is_out_of_meta = |target: &Tensor| {
        let mut has_source = false;
        each_tensor(args, |tensor| has_source |= is_meta(tensor));
        has_source && !is_meta(target)
    };
    let target = match form {
        Form::Inplace => Some(receiver(args)),
        Form::Out(outs) => outs.first().copied(),
        Form::Functional => None,
    };
    if def.is(Traits::ACROSS_DEVICES) {
        ensure!(!target.is_some_and(is_out_of_meta), not_implemented, "{NO_DATA}");
        return Ok(());
    }
    // (An op with an argument that names a device makes its result there, whatever the devices of
    // its tensors.)
    if named_device(args).is_some() {
        return Ok(());
    }
    let mut wrong = None;
    for (nr, arg) in args.iter().enumerate() {
        let is_target = nr == 0 && matches!(form, Form::Inplace);
        let is_indices = matches!(arg, Arg::OptTensors(_));
        each_tensor(&[*arg], |tensor| {
            let is_excused = is_indices || tensor.ndim() == 0 && !is_target;
            if !is_meta(tensor) && !is_excused {
                wrong = Some(tensor.device());
            }
        });
    }
    if let Form::Out(outs) = form {
        wrong = wrong.or(outs.iter().find(|out| !is_meta(out)).map(|out| out.device()));
    }
    wrong.map_or(Ok(()), |device| Err(device_mismatch(Device::Meta, device)))
}

/// PyTorch's error for copies out of the meta device.
const NO_DATA: &str = "Cannot copy out of meta tensor; no data!";

/// The results of an op that takes sizes from meta tensors and makes its results on a device with memory (`empty_like`).
fn elsewhere(call: &Call<'_>, device: Device) -> Result<Outputs> {
    device.check_available()?;
    ensure!(!call.def.is(Traits::ACROSS_DEVICES), not_implemented, "{NO_DATA}");
    let of_memory = |tensor: &Tensor| {
        Tensor::empty_strided(tensor.shape(), tensor.strides(), tensor.dtype(), device)
    };
    let stand_ins = StandIns::of(call, is_meta, of_memory)?;
    call.redispatch(call.form, &stand_ins.args(call.args))
}

/// The results of the functional form: new tensors on the meta device, or views.
fn functional(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, args, .. } = *call;
    if let Kernel::View(view) = def.kernels.cpu {
        return view(args);
    }
    let outputs: TensorVec = described(def, call.form, args)?
        .into_iter()
        .map(|spec| on_meta(spec).empty())
        .collect::<Result<_>>()?;
    Ok(if outputs.len() == 1 && !def.is(Traits::LIST_OUTPUT) {
        Outputs::Tensors(outputs).one().into_outputs()
    } else {
        Outputs::Tensors(outputs)
    })
}

fn on_meta(spec: TensorSpec) -> TensorSpec {
    TensorSpec { device: Device::Meta, ..spec }
}

/// The shapes, dtypes and strides of the results.
///
/// # Errors
/// `NotImplementedError` where the shape of a result depends on elements, which meta tensors do not have.
fn described(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<super::Specs> {
    if def.meta.is_none() { Err(missing(def, form, Backend::Meta)) } else { def.result_specs(args) }
}

/// The in-place form: checks its arguments, and gives the first one its new sizes.
fn write(def: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let target = receiver(args);
    if let Kernel::ViewInplace(change) = def.kernels.cpu {
        return change(args);
    }
    if matches!(def.kernels.cpu, Kernel::Inplace(_)) {
        // (The op writes into its first argument, whose sizes stay.)
        return if def.meta.is_some() { super::specs(def, args).map(drop) } else { Ok(()) };
    }
    let Some(result) = described(def, Form::Inplace, args)?.into_iter().next() else {
        return Ok(());
    };
    check_apart_inputs(def, args, target)?;
    let is_resized = def.is(Traits::RESIZES_SELF) && target.base_if_any().is_none();
    if is_resized && result.shape.as_slice() != target.shape() {
        super::check_cast(result.dtype, target.dtype())?;
        return target.resize_to(&result.shape);
    }
    check_result(target, &result.shape, result.dtype)
}

/// The form with `out=`: checks its arguments, and gives the targets their new sizes.
fn write_outs(def: &'static OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    check_outs(def, outs)?;
    let results = described(def, Form::Out(outs), args)?;
    ensure!(
        results.len() == outs.len(),
        runtime,
        "{}() expected an out= argument of size {}, got size {}",
        def.name,
        results.len(),
        outs.len()
    );
    for (at, (result, out)) in results.iter().zip(outs).enumerate() {
        check_out_dtype(def, at, result.dtype, out.dtype())?;
    }
    for (result, out) in results.iter().zip(outs) {
        if def.is(Traits::POINTWISE) {
            out.resize_output_as(result)?;
        } else if !(def.is(Traits::FILLS_OUT)
            && out.numel() == result.shape.iter().product::<i64>())
        {
            out.resize_output(&result.shape)?;
        }
    }
    Ok(())
}
