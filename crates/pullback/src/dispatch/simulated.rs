//! Ops on tensors that live on simulated devices (see [`crate::simulate_devices`]).
//!
//! Their memory is main memory, so a kernel of the CPU computes them: it is given other handles to the same memory, which
//! say that they are in main memory, and what it makes is said to be on the device. What a device would refuse is refused:
//! tensors of several devices, but for 0-dim ones and indices in main memory, and for ops that copy between devices, which
//! say so by the word `across_devices`. Invariant: below, every tensor is in main memory.

use super::stand_in::StandIns;
use super::{
    Arg, Call, Form, IntoOutputs, Outputs, Traits, check_outs, device_mismatch, each_tensor,
    receiver,
};
use crate::error::ensure;
use crate::tensor::{Flag, SPARSE, shares_storage};
use crate::{Device, Result, Tensor};
use smallvec::SmallVec;

/// The layer: computes a call of which an argument or target is on a device, or a result is to be.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, form, args, .. } = *call;
    let device = device_of_results(call)?;
    check(call, device)?;
    let stand_ins = StandIns::of(call, Tensor::is_on_device, |tensor| moved(tensor, Device::Cpu))?;
    let mut given = stand_ins.args(args);
    given.iter_mut().filter(|arg| matches!(arg, Arg::Device(_))).for_each(|arg| {
        *arg = Arg::Device(Device::Cpu);
    });
    let outputs = match form {
        Form::Functional => placed(call.redispatch(form, &given)?, device, args, &stand_ins)?,
        Form::Inplace => {
            call.redispatch(form, &given)?;
            receiver(args).clone().into_outputs()
        }
        Form::Out(outs) => {
            check_outs(def, outs)?;
            let targets: SmallVec<[&Tensor; 2]> =
                outs.iter().map(|out| stand_ins.get(out)).collect();
            call.redispatch(Form::Out(&targets), &given)?;
            Outputs::Tensors(outs.iter().map(|&out| out.clone()).collect())
        }
    };
    // A stand-in whose sizes changed shows the geometry that its tensor has to take.
    for (tensor, stand_in) in stand_ins.pairs() {
        let (old, new) = (tensor.geometry(), stand_in.geometry());
        if old.offset != new.offset || old.shape != new.shape || old.strides != new.strides {
            tensor.set_geometry(new.clone().on(old.device));
        }
        tensor.set_sign_bits(stand_in.sign_bits());
    }
    Ok(outputs)
}

/// The device of the results of a call: the requested one, else that of the first argument on a
/// device, or of the first argument if the op copies between devices.
fn device_of_results(call: &Call<'_>) -> Result<Device> {
    let Call { def, args, .. } = *call;
    if let Some(Arg::Device(device)) = args.iter().find(|arg| matches!(arg, Arg::Device(_))) {
        device.check_available()?;
        return Ok(*device);
    }
    let mut found = None;
    let is_any = def.is(Traits::ACROSS_DEVICES);
    call.each_tensor(|tensor| {
        if found.is_none() && (is_any || tensor.is_on_device()) {
            found = Some(tensor.device());
        }
    });
    Ok(found.unwrap_or_default())
}

/// Refuses what a device would.
fn check(call: &Call<'_>, device: Device) -> Result<()> {
    let Call { def, form, args, .. } = *call;
    ensure!(
        !call.has_tensor_with(SPARSE),
        not_implemented,
        "{}(): sparse tensors on simulated devices are not supported",
        def.name
    );
    ensure!(
        device == Device::Cpu || !args.iter().any(|arg| matches!(arg, Arg::Generator(_))),
        runtime,
        "Expected a '{}' device type for generator but found 'cpu'",
        device.kind()
    );
    if def.is(Traits::ACROSS_DEVICES) {
        return Ok(());
    }
    // (An op with an argument that names a device makes its result there, whatever the devices of
    // its tensors: `empty_like(x, device=...)`.)
    let names_device = args.iter().any(|arg| matches!(arg, Arg::Device(_)));
    let (mut first, mut wrong) = ((!names_device).then_some(device), None);
    let mut see = |tensor: &Tensor, may_be_in_memory: bool| {
        let is_excused = may_be_in_memory && !tensor.is_on_device();
        if wrong.is_none()
            && !is_excused
            && *first.get_or_insert(tensor.device()) != tensor.device()
        {
            wrong = Some((first.unwrap_or_default(), tensor.device()));
        }
    };
    for (nr, arg) in args.iter().enumerate() {
        let is_target = nr == 0 && matches!(form, Form::Inplace);
        let is_indices = matches!(arg, Arg::OptTensors(_));
        each_tensor(&[*arg], |tensor| {
            see(tensor, is_indices || tensor.ndim() == 0 && !is_target);
        });
    }
    if let Form::Out(outs) = form {
        for out in outs {
            see(out, false);
        }
    }
    wrong.map_or(Ok(()), |(a, b)| Err(device_mismatch(a, b)))
}

/// Another handle to the same memory that says it is on `device`. No history.
fn moved(tensor: &Tensor, device: Device) -> Result<Tensor> {
    let alias = Tensor::from_geometry(tensor.geometry().clone().on(device))?;
    alias.set_flag_fresh(tensor.flags() & (Flag::INFERENCE | Flag::WRAPPED_NUMBER));
    Ok(alias.with_bits_of(tensor))
}

/// The results on `device`, or on the device of the tensors that they are views of.
fn placed(
    outputs: Outputs,
    device: Device,
    args: &[Arg<'_>],
    stand_ins: &StandIns<'_>,
) -> Result<Outputs> {
    let on_device = |output: Tensor| -> Result<Tensor> {
        if let Some((tensor, _)) = stand_ins.pairs().find(|(_, stand_in)| output.is_same(stand_in))
        {
            return Ok(tensor.clone());
        }
        let source = stand_ins.pairs().find(|(tensor, _)| shares_storage(tensor, &output));
        let device = source.map_or(device, |(tensor, _)| tensor.device());
        let mut is_argument = false;
        each_tensor(args, |tensor| is_argument |= shares_storage(tensor, &output));
        if device == Device::Cpu || is_argument && source.is_none() {
            return Ok(output);
        }
        ensure!(
            !output.is_sparse(),
            not_implemented,
            "sparse tensors on simulated devices are not supported"
        );
        if source.is_none()
            && let Some(storage) = &output.geometry().storage
        {
            storage.set_device(device);
        }
        moved(&output, device)
    };
    Ok(match outputs {
        Outputs::One(tensor) => Outputs::One(on_device(tensor)?),
        Outputs::Tensors(tensors) => {
            Outputs::Tensors(tensors.into_iter().map(on_device).collect::<Result<_>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}
