//! The floating dtypes of one byte from Rust: conversion, movement, views, promotion, refusals, gradients.

use pullback::tensor::promote::{can_cast, promote_types};
use pullback::{DType, ErrorKind, Result, Scalar, Tensor};

const FLOAT8: [DType; 5] =
    [DType::F8E4M3FN, DType::F8E5M2, DType::F8E4M3FNUZ, DType::F8E5M2FNUZ, DType::F8E8M0FNU];

fn codes(values: &[u8], dtype: DType) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64])?.view_dtype(dtype)
}

fn bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    tensor.contiguous()?.view_dtype(DType::U8)?.to_vec()
}

#[test]
fn their_properties_are_those_of_real_floating_dtypes_of_a_byte() {
    for dtype in FLOAT8 {
        assert!(dtype.is_floating_point() && dtype.is_differentiable() && dtype.is_narrow_float());
        assert_eq!((dtype.size(), dtype.to_real(), dtype.is_complex()), (1, dtype, false));
        assert!(can_cast(dtype, DType::F32) && can_cast(DType::F32, dtype));
        assert!(!can_cast(dtype, DType::I64));
    }
    assert!(!DType::F8E8M0FNU.is_signed() && DType::F8E5M2.is_signed());
}

#[test]
fn elements_are_moved_as_bytes_and_converted_by_way_of_singles() -> Result<()> {
    for dtype in FLOAT8 {
        let all: Vec<u8> = (0..=255).collect();
        let x = codes(&all, dtype)?;
        let moved = x.reshape(&[16, 16])?.t()?.clone_tensor(None)?.t()?.reshape(&[256])?;
        assert_eq!(bytes(&moved)?, all);
        assert_eq!(bytes(&x.flip(&[0])?.flip(&[0])?)?, all);
        for (code, value) in all.iter().zip(x.to_vec::<f32>()?) {
            let back = Tensor::from_slice(&[value], &[1])?.to_dtype(dtype)?;
            assert!(value.is_nan() || bytes(&back)? == [*code], "{dtype:?} {code:#x}");
        }
    }
    Ok(())
}

#[test]
fn two_dtypes_do_not_promote() -> Result<()> {
    for dtype in FLOAT8 {
        assert_eq!(promote_types(dtype, dtype)?, dtype);
        let x = codes(&[1, 2], dtype)?;
        let error = x.add(&Tensor::from_slice(&[1.0_f32, 2.0], &[2])?).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        let phrase = format!("attempted to promote {} and Float", dtype.scalar_name().pytorch());
        assert!(error.message().contains(&phrase), "{error:?}");
    }
    Ok(())
}

#[test]
fn ops_without_a_kernel_for_them_name_the_dtype() -> Result<()> {
    let x = codes(&[0x38, 0x40], DType::F8E4M3FN)?;
    for error in [
        x.exp().unwrap_err(),
        x.sum().unwrap_err(),
        x.sort(-1, false).unwrap_err(),
        x.add(&x).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotImplemented);
        assert!(error.message().contains("not implemented for 'Float8_e4m3fn'"), "{error:?}");
    }
    assert_eq!(x.mul(&x)?.to_vec::<f32>()?, [1.0, 4.0]);
    assert_eq!(bytes(&x)?, [0x38, 0x40]);
    Ok(())
}

#[test]
fn pairs_of_four_bits_are_stored_and_moved() -> Result<()> {
    let x = codes(&[0x12, 0xf0, 7], DType::F4E2M1FNX2)?;
    assert_eq!(bytes(&x.clone_tensor(None)?)?, [0x12, 0xf0, 7]);
    assert_eq!(bytes(&x.clone_tensor(None)?.zero_()?)?, [0, 0, 0]);
    for error in [
        x.to_dtype(DType::F32).unwrap_err(),
        x.clone_tensor(None)?.fill_(Scalar::Int(1)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotImplemented, "{error:?}");
    }
    Ok(())
}

#[test]
fn gradients_are_converted_on_their_way_back() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f32, 300.7], &[2])?.with_grad()?;
    let factors = Tensor::from_slice(&[300.7_f32, -3.3], &[2])?;
    let y = x.to_dtype(DType::F8E4M3FN)?;
    assert_eq!(y.to_vec::<f32>()?, [1.0, 288.0]);
    y.to_dtype(DType::F32)?.mul(&factors)?.sum()?.backward()?;
    let grad = x.grad().expect("a leaf that requires a gradient");
    assert_eq!((grad.dtype(), grad.to_vec::<f32>()?), (DType::F32, vec![288.0, -3.25]));
    Ok(())
}
