//! Every op on a device gives there, to the bit, what it gives in main memory, and so do its gradients.

use super::registry::{
    agree, all_equal, args, differs, for_all, function_of, gradients_from, is_unset, replace,
    spread, tensor_slots, text,
};
use super::{SECOND, on};
use pullback::autograd::{call_inplace, call_out};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, Device, Result, Tensor, manual_seed, simulate_devices};

type Outcome = std::result::Result<(), String>;

/// The arguments with copies of their tensors on a device, laid out as they are.
fn moved(values: &[Value], device: Device) -> Result<Vec<Value>> {
    let slots = tensor_slots(values);
    let copy = |(_, _, t): &(usize, usize, Tensor)| {
        let dense = t.detach()?.to(None, Some(device), true, None)?;
        if t.is_contiguous() { Ok(dense) } else { spread(&dense) }
    };
    let copies = slots.iter().map(copy).collect::<Result<Vec<_>>>()?;
    Ok(replace(values, &slots, &copies))
}

fn are_on(device: Device, tensors: &[Tensor]) -> Outcome {
    let stray = tensors.iter().position(|t| t.device() != device);
    stray.map_or(Ok(()), |nr| Err(format!("result {nr} is on {}", tensors[nr].device())))
}

/// Runs `check` with the arguments in main memory and on the device, and the results in main memory.
fn for_each(
    property: &str,
    dtype: DType,
    check: impl Fn(&'static OpDef, &[Value], &[Value], &[Tensor]) -> Outcome,
) {
    simulate_devices(3);
    for_all(property, dtype, |def: &'static OpDef, sample: &Sample| {
        let values = sample.values(def).map_err(text)?;
        let slots = tensor_slots(&values);
        if slots.is_empty() || slots.iter().any(|slot| slot.2.is_sparse()) {
            return Ok(());
        }
        let here = moved(&values, Device::Cpu).map_err(text)?;
        let Ok(expected) = function_of(def, &here) else { return Ok(()) };
        if expected.iter().any(Tensor::is_sparse) {
            return Ok(());
        }
        check(def, &values, &moved(&values, SECOND).map_err(text)?, &expected)
    });
}

fn results(dtype: DType) {
    for_each("results are where the arguments are", dtype, |def, _, given, expected| {
        let got = function_of(def, given).map_err(text)?;
        are_on(SECOND, &got)?;
        agree(def, &got, expected, 0.0)
    });
}

#[test]
fn results_are_where_the_arguments_are() {
    results(DType::F64);
}

#[test]
fn complex_results_are_where_the_arguments_are() {
    results(DType::C128);
}

/// The gradients of a fixed combination of the results.
fn gradients(def: &'static OpDef, values: &[Value]) -> Result<Vec<Option<Tensor>>> {
    gradients_from(def, values, |t| {
        Sampler::new(t.dtype()).normal(t.shape()).to(None, Some(t.device()), false, None)
    })
}

fn same_gradients(dtype: DType) {
    for_each("gradients are where the arguments are", dtype, |def, values, given, _| {
        if is_unset(def) {
            return Ok(());
        }
        let here = moved(values, Device::Cpu).map_err(text)?;
        let Ok(expected) = gradients(def, &here) else { return Ok(()) };
        let got = gradients(def, given).map_err(text)?;
        let flat = |all: &[Option<Tensor>]| all.iter().flatten().cloned().collect::<Vec<_>>();
        are_on(SECOND, &flat(&got))?;
        // (A few gradients are a kernel of their own in main memory and are made of ops elsewhere, which round otherwise.)
        all_equal(&flat(&got), &flat(&expected), 1e-12)
    });
}

#[test]
fn gradients_are_where_the_arguments_are() {
    same_gradients(DType::F64);
}

#[test]
fn complex_gradients_are_where_the_arguments_are() {
    same_gradients(DType::C128);
}

#[test]
fn forms_that_write_do_so_on_the_device() {
    for_each(
        "in-place and out= forms write on the device",
        DType::F64,
        |def, _, given, expected| {
            if def.is(Traits::INPLACE) && expected[0].shape() == tensor_slots(given)[0].2.shape() {
                let copies = moved(given, SECOND).map_err(text)?;
                manual_seed(1);
                if let Ok(written) = call_inplace(def, &args(&copies)) {
                    are_on(SECOND, std::slice::from_ref(&written))?;
                    let expected = expected[0].to_dtype(written.dtype()).map_err(text)?;
                    differs(&written, &expected, 0.0)
                        .map_or(Ok(()), |e| Err(format!("in place: {e}")))?;
                }
            }
            if def.is(Traits::OUT) {
                let fresh = |t: &Tensor| Tensor::empty_strided(&[0], &[1], t.dtype(), SECOND);
                let outs = expected.iter().map(fresh).collect::<Result<Vec<_>>>().map_err(text)?;
                manual_seed(1);
                call_out(def, &args(given), &outs.iter().collect::<Vec<_>>()).map_err(text)?;
                are_on(SECOND, &outs)?;
                agree(def, &outs, expected, 0.0).map_err(|e| format!("out=: {e}"))?;
            }
            Ok(())
        },
    );
}

#[test]
fn tensors_of_several_devices_are_refused() -> Result<()> {
    let (a, b) = (on(Device::Cuda(0), &[1.0, 2.0]), on(SECOND, &[3.0, 4.0]));
    let here = on(Device::Cpu, &[5.0, 6.0]);
    let of = |error: pullback::Error| error.message().to_owned();
    let both = "Expected all tensors to be on the same device, but found at least two devices";
    assert_eq!(of(a.add(&b).unwrap_err()), format!("{both}, cuda:0 and cuda:1!"));
    assert!(of(here.dot(&b).unwrap_err()).starts_with(both));
    assert!(of(here.add_(&b).unwrap_err()).starts_with(both));
    assert!(of(a.add_out(&a, &[&b]).unwrap_err()).starts_with(both));
    assert!(
        of(pullback::ops::shape::join::cat(&[a.clone(), here.clone()], 0).unwrap_err())
            .starts_with(both)
    );
    let number = on(Device::Cpu, &[2.0]).reshape(&[])?;
    assert_eq!(a.mul(&number)?.to_vec::<f64>()?, [2.0, 4.0]);
    assert!(of(number.mul_(&a.select(0, 1)?).unwrap_err()).starts_with(both));
    assert_eq!(here.to_vec::<f64>()?, [5.0, 6.0]);
    let missing = here.to(None, Some(Device::Cuda(200)), false, None).unwrap_err();
    assert!(of(missing).contains("invalid device ordinal"));
    Ok(())
}

#[test]
fn copies_go_between_devices() -> Result<()> {
    let (a, b) = (on(Device::Cuda(0), &[1.0, 2.0]), on(SECOND, &[0.0, 0.0]));
    b.copy_(&a, false)?;
    assert_eq!((b.device(), b.to_vec::<f64>()?), (SECOND, vec![1.0, 2.0]));
    let half = b.to(Some(DType::F16), Some(Device::Cpu), false, None)?;
    assert_eq!((half.device(), half.dtype()), (Device::Cpu, DType::F16));
    let view = b.narrow(0, 1, 1)?;
    assert_eq!((view.device(), view.base().is_some()), (SECOND, true));
    view.fill_(7.0.into())?;
    assert_eq!(b.to_vec::<f64>()?, [1.0, 7.0]);
    assert_eq!(b.version(), 2);
    b.unsqueeze_(0)?;
    assert_eq!((b.shape(), b.device()), (&[1, 2][..], SECOND));
    Ok(())
}
