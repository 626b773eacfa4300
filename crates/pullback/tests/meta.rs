//! The meta device: tensors without memory, on which ops say what their results look like.

use pullback::autograd::{BackwardOptions, backward};
use pullback::{DType, Device, ErrorKind, Result, Tensor, TensorSpec};

fn meta(shape: &[i64], dtype: DType) -> Tensor {
    TensorSpec::of(shape, dtype).on(Device::Meta).empty().unwrap()
}

#[test]
fn ops_say_what_their_results_look_like() -> Result<()> {
    let (x, y) = (meta(&[2, 3], DType::F32), meta(&[3], DType::F64));
    let sum = x.add(&y)?;
    assert_eq!((sum.shape(), sum.dtype(), sum.device()), (&[2, 3][..], DType::F64, Device::Meta));
    let t = x.t()?;
    assert_eq!((t.shape(), t.strides()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(t.storage().unwrap().id(), x.storage().unwrap().id());
    assert_eq!(x.sum()?.shape(), &[] as &[i64]);
    Ok(())
}

#[test]
fn memory_is_only_counted() -> Result<()> {
    // More than any machine has.
    let x = meta(&[1 << 30, 1 << 20], DType::U8);
    assert_eq!(x.storage().unwrap().nbytes(), 1 << 50);
    assert_eq!(x.add(&x)?.numel(), 1 << 50);
    Ok(())
}

#[test]
fn nothing_comes_out_of_it() -> Result<()> {
    let x = meta(&[2], DType::F32);
    for error in [
        x.to_vec::<f32>().unwrap_err(),
        x.to(None, Some(Device::Cpu), false, None).unwrap_err(),
        Tensor::from_slice(&[0.0_f32; 2], &[2])?.copy_(&x, false).unwrap_err(),
        x.storage().unwrap().with_bytes(|_| ()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotImplemented);
        assert!(error.message().contains("Cannot copy out of meta tensor; no data!"), "{error:?}");
    }
    Ok(())
}

#[test]
fn forms_that_write_check_and_resize() -> Result<()> {
    let (x, y) = (meta(&[2, 3], DType::F32), meta(&[3], DType::F32));
    let version = x.version();
    x.add_(&y)?;
    assert_eq!(x.version(), version + 1);
    assert!(y.add_(&x).unwrap_err().message().contains("doesn't match the broadcast shape"));
    let out = meta(&[0], DType::F32);
    x.add_out(&y, &[&out])?;
    assert_eq!(out.shape(), &[2, 3]);
    let integer = meta(&[2, 3], DType::I64);
    assert!(integer.add_(&x).unwrap_err().message().contains("can't be cast"));
    let cpu = Tensor::from_slice(&[1.0_f32, 2.0, 3.0], &[3])?;
    let error = x.add(&cpu).unwrap_err();
    assert!(error.message().contains("at least two devices, meta and cpu!"), "{error:?}");
    assert_eq!(x.add(&Tensor::from_slice(&[1.0_f32], &[])?)?.device(), Device::Meta);
    x.copy_(&cpu, false)?;
    Ok(())
}

#[test]
fn gradients_have_the_shapes_of_what_they_are_for() -> Result<()> {
    let x = meta(&[4, 3], DType::F32).with_grad()?;
    let w = meta(&[3, 2], DType::F32).with_grad()?;
    let loss = x.matmul(&w)?.relu()?.sum()?;
    backward(&[&loss], &[None], None, BackwardOptions::default())?;
    for leaf in [&x, &w] {
        let grad = leaf.grad().unwrap();
        assert_eq!((grad.shape(), grad.device()), (leaf.shape(), Device::Meta));
    }
    Ok(())
}

#[test]
fn what_depends_on_elements_is_refused() {
    let x = meta(&[3], DType::F32);
    let error = x.nonzero().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert!(error.message().contains("'Meta' backend"), "{error:?}");
}
