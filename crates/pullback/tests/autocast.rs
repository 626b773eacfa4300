//! Autocast from Rust: what is on where, what is cast, what is kept, and what comes back in backward.
//!
//! The cache of weights is the process's: tests that count what it holds take turns.

use pullback::autograd::autocast::{self as settings, AutocastDevice};
use pullback::autograd::no_autocast;
use pullback::gradcheck::Sampler;
use pullback::{DType, Device, ErrorKind, Result, Tensor, autocast, enable_grad, no_grad};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn serialized() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn matrix() -> Tensor {
    Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap()
}

fn weight() -> Tensor {
    matrix().with_grad().unwrap()
}

#[test]
fn a_region_ends_with_its_guard_also_inside_of_another() -> Result<()> {
    let _serialized = serialized();
    let x = matrix();
    assert!(!settings::is_any_enabled());
    {
        let _outer = autocast(Device::Cpu, DType::BF16)?;
        assert_eq!(x.mm(&x)?.dtype(), DType::BF16);
        {
            let _inner = autocast(Device::Cpu, DType::F16)?;
            assert_eq!(x.mm(&x)?.dtype(), DType::F16);
            let _off = no_autocast(Device::Cpu)?;
            assert_eq!(x.mm(&x)?.dtype(), DType::F32);
        }
        assert_eq!(x.mm(&x)?.dtype(), DType::BF16);
    }
    assert_eq!(x.mm(&x)?.dtype(), DType::F32);
    assert_eq!(settings::dtype(AutocastDevice::CPU), DType::BF16);
    Ok(())
}

#[test]
fn other_threads_are_not_concerned() -> Result<()> {
    let _serialized = serialized();
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let x = matrix();
    let elsewhere = std::thread::spawn(move || x.mm(&x).map(|y| y.dtype()));
    assert_eq!(elsewhere.join().unwrap()?, DType::F32);
    Ok(())
}

#[test]
fn dtypes_and_devices_without_autocast_are_refused() {
    for (device, dtype, phrase) in [
        (Device::Cpu, DType::F32, "only bfloat16 and float16"),
        (Device::Cpu, DType::I64, "only bfloat16 and float16"),
        (Device::Meta, DType::BF16, "unsupported autocast device_type 'meta'"),
    ] {
        let error = autocast(device, dtype).err().expect("is refused");
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.to_string().contains(phrase), "{error}");
    }
    assert!(!settings::is_any_enabled());
    assert_eq!(AutocastDevice::parse("meta").unwrap(), None);
    assert!(AutocastDevice::parse("no device").is_err());
}

#[test]
fn doubles_and_integers_stay_as_they_are() -> Result<()> {
    let _serialized = serialized();
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let double = matrix().to_dtype(DType::F64)?;
    assert_eq!(double.mm(&double)?.dtype(), DType::F64);
    let whole = matrix().to_dtype(DType::I64)?;
    assert_eq!(whole.mm(&whole)?.dtype(), DType::I64);
    assert!(double.mm(&matrix()).is_err(), "nothing makes the two alike");
    Ok(())
}

#[test]
fn forms_that_write_run_in_the_dtypes_of_what_is_written() -> Result<()> {
    let _serialized = serialized();
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let (x, out) = (matrix(), matrix());
    x.mm_out(&x, &[&out])?;
    assert_eq!(out.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
    x.matmul_out(&x, &[&out])?;
    assert_eq!(out.dtype(), DType::F32);
    assert_eq!(out.addmm_(&x, &x)?.dtype(), DType::F32);
    Ok(())
}

#[test]
fn a_weight_is_cast_once_and_its_gradient_comes_back_in_its_dtype() -> Result<()> {
    let _serialized = serialized();
    let (x, w) = (matrix(), weight());
    let loss = {
        let _region = autocast(Device::Cpu, DType::BF16)?;
        let (a, b) = (x.mm(&w)?, x.mm(&w)?);
        let cast = |y: &Tensor| y.grad_fn().unwrap().unwrap().next_edges()[1].node.clone().unwrap();
        assert_eq!(cast(&a).name(), "ToCopyBackward0");
        assert_eq!(cast(&a).id(), cast(&b).id());
        assert_eq!(settings::cached_count(), 1);
        a.add(&b)?.sum()?
    };
    assert_eq!(settings::cached_count(), 0);
    loss.backward()?;
    let grad = w.grad().unwrap();
    assert_eq!(grad.dtype(), DType::F32);
    assert_eq!(grad.to_vec::<f32>()?, [8.0, 8.0, 12.0, 12.0]);
    Ok(())
}

#[test]
fn only_leaves_of_float32_that_require_grad_are_kept() -> Result<()> {
    let _serialized = serialized();
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let (w, half) = (weight(), weight().to_dtype(DType::F16)?.detach()?.with_grad()?);
    let product = w.mul(&w)?;
    for tensor in [&matrix(), &w.t()?, &product, &half] {
        tensor.mm(&matrix())?;
        assert_eq!(settings::cached_count(), 0);
    }
    settings::set_cache_enabled(false);
    w.mm(&matrix())?;
    assert_eq!(settings::cached_count(), 0);
    settings::set_cache_enabled(true);
    w.mm(&matrix())?;
    assert_eq!(settings::cached_count(), 1);
    Ok(())
}

#[test]
fn a_cast_made_without_recording_is_not_used_where_it_must_be_recorded() -> Result<()> {
    let _serialized = serialized();
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let w = weight();
    {
        let _off = no_grad();
        assert!(!w.mm(&matrix())?.requires_grad());
    }
    assert!(w.mm(&matrix())?.requires_grad());
    Ok(())
}

#[test]
fn a_weight_that_changed_is_cast_again() -> Result<()> {
    let _serialized = serialized();
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let w = weight();
    w.mm(&matrix())?;
    {
        let _off = no_grad();
        w.zero_()?;
    }
    assert_eq!(w.mm(&matrix())?.to_vec::<f32>()?, [0.0; 4]);
    Ok(())
}

#[test]
fn two_dtypes_of_one_weight_are_kept_apart() -> Result<()> {
    let _serialized = serialized();
    let _outer = autocast(Device::Cpu, DType::BF16)?;
    let w = weight();
    assert_eq!(w.mm(&matrix())?.dtype(), DType::BF16);
    let _inner = autocast(Device::Cpu, DType::F16)?;
    assert_eq!(w.mm(&matrix())?.dtype(), DType::F16);
    Ok(())
}

#[test]
fn a_nest_of_backwards_too_deep_for_one_stack_keeps_the_settings() -> Result<()> {
    use pullback::autograd::BackwardOptions;
    use std::sync::Arc;
    let _serialized = serialized();

    /// Runs a backward inside of a backward, `depth` times; gives the dtype of a product inside of all.
    fn dive(depth: u32) -> Result<DType> {
        if depth == 0 {
            return matrix().mm(&matrix()).map(|y| y.dtype());
        }
        let _on = enable_grad();
        let seen = Arc::new(Mutex::new(None));
        let (x, noted) = (weight(), seen.clone());
        let y = x.mul(&x)?.sum()?;
        x.register_hook(Arc::new(move |_| {
            *noted.lock().unwrap() = Some(dive(depth - 1)?);
            Ok(None)
        }))?;
        pullback::autograd::backward(&[&y], &[None], None, BackwardOptions::default())?;
        let dtype = seen.lock().unwrap().take();
        Ok(dtype.expect("the hook ran"))
    }
    let _region = autocast(Device::Cpu, DType::F16)?;
    assert_eq!(dive(65)?, DType::F16);
    Ok(())
}

#[test]
fn recurrent_layers_run_low_and_keep_their_states_where_pytorch_does() -> Result<()> {
    let _serialized = serialized();
    let sampler = Sampler::new(DType::F32);
    let random = |shape: &[i64]| sampler.normal(shape);
    let (x, h, c) = (random(&[3, 2, 4]), random(&[1, 2, 5]), random(&[1, 2, 5]));
    let params = |gates: i64| {
        [
            random(&[gates * 5, 4]),
            random(&[gates * 5, 5]),
            random(&[gates * 5]),
            random(&[gates * 5]),
        ]
    };
    let (four, three, one) = (params(4), params(3), params(1));
    let lstm = |hx: &[Tensor]| x.lstm(hx, &four, true, 1, 0.0, false, false, false);
    let plain = lstm(&[h.clone(), c.clone()])?;
    let _region = autocast(Device::Cpu, DType::BF16)?;
    let low = lstm(&[h.clone(), c.clone()])?;
    for (low, plain) in low.iter().zip(&plain) {
        assert_eq!(low.dtype(), DType::BF16);
        let error = low.to_dtype(DType::F32)?.sub(plain)?.abs()?.max()?.to_vec::<f32>()?[0];
        assert!(error < 0.05, "off by {error}");
    }
    let [output, _] = x.gru(&h, &three, true, 1, 0.0, false, false, false)?;
    assert_eq!(output.dtype(), DType::F32);
    let [output, _] = x.rnn_tanh(&h, &one, true, 1, 0.0, false, false, false)?;
    assert_eq!(output.dtype(), DType::BF16);
    Ok(())
}
