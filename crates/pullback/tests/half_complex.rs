//! `complex32` from Rust: its properties, how it is made, converted, viewed and differentiated; and `bcomplex32`, which has fewer
//! ops.

use pullback::ops::creation::factory::full;
use pullback::tensor::promote::{can_cast, promote_types};
use pullback::{BC32, C32, C64, C128, DType, ErrorKind, Result, Scalar, Tensor, bf16, f16};

fn number(re: f64, im: f64) -> C32 {
    C32 { re: f16::from_f64(re), im: f16::from_f64(im) }
}

fn numbers() -> Result<Tensor> {
    Tensor::from_slice(&[number(1.0, 2.0), number(3.0, -4.0)], &[2])
}

fn shows(t: &Tensor, expected: &[(f64, f64)]) {
    let got: Vec<(f64, f64)> = t.to_vec::<C128>().unwrap().iter().map(|z| (z.re, z.im)).collect();
    assert_eq!(got, expected);
}

#[test]
fn half_complex_is_a_dtype_of_two_halves() {
    let dtype = DType::C32;
    assert!(dtype.is_complex() && dtype.is_differentiable() && !dtype.is_floating_point());
    assert_eq!(
        (dtype.size(), dtype.name(), dtype.scalar_name().pytorch()),
        (4, "complex32", "ComplexHalf")
    );
    assert_eq!((dtype.to_real(), DType::F16.to_complex()), (DType::F16, dtype));
    assert_eq!(DType::BF16.to_complex(), DType::C64);
    assert!(DType::ALL.contains(&dtype) && DType::ALL.len() == DType::COUNT);
}

#[test]
fn half_complex_meets_other_dtypes_in_the_wider_parts() {
    let meets = |other| {
        let both =
            [promote_types(DType::C32, other).unwrap(), promote_types(other, DType::C32).unwrap()];
        assert_eq!(both[0], both[1], "{other:?}");
        both[0]
    };
    for other in [DType::Bool, DType::U8, DType::I64, DType::F16, DType::C32] {
        assert_eq!(meets(other), DType::C32, "{other:?}");
        assert!(can_cast(other, DType::C32));
    }
    for other in [DType::BF16, DType::F32, DType::C64] {
        assert_eq!(meets(other), DType::C64, "{other:?}");
    }
    for other in [DType::F64, DType::C128] {
        assert_eq!(meets(other), DType::C128, "{other:?}");
    }
    assert!(can_cast(DType::C128, DType::C32) && !can_cast(DType::C32, DType::F64));
}

#[test]
fn half_complex_is_converted_to_and_from_every_dtype() -> Result<()> {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_narrow_float()) {
        let back = numbers()?.to_dtype(dtype)?;
        let kept = if dtype.is_complex() { [2.0, -4.0] } else { [0.0, 0.0] };
        if dtype == DType::Bool {
            assert_eq!(back.to_vec::<u8>()?, [1, 1]);
        } else {
            shows(&back, &[(1.0, kept[0]), (3.0, kept[1])]);
        }
        let there = Tensor::from_slice(&[0.0_f64, 5.0], &[2])?.to_dtype(dtype)?;
        let five = if dtype == DType::Bool { 1.0 } else { 5.0 };
        shows(&there.to_dtype(DType::C32)?, &[(0.0, 0.0), (five, 0.0)]);
    }
    let large = Tensor::from_slice(&[C64::new(1e5, 1.0), C64::new(1e-9, -7e4)], &[2])?;
    shows(&large.to_dtype(DType::C32)?, &[(f64::INFINITY, 1.0), (0.0, f64::NEG_INFINITY)]);
    Ok(())
}

#[test]
fn half_complex_and_pairs_of_halves_share_memory() -> Result<()> {
    let x = numbers()?;
    let pairs = x.view_as_real()?;
    assert_eq!((pairs.dtype(), pairs.shape()), (DType::F16, &[2, 2][..]));
    pairs.select(0, 0)?.fill_(Scalar::Float(0.5))?;
    shows(&x, &[(0.5, 0.5), (3.0, -4.0)]);
    shows(&pairs.view_as_complex()?.conj()?, &[(0.5, -0.5), (3.0, 4.0)]);
    let odd = Tensor::from_slice(&[f16::ONE; 5], &[5])?.narrow(0, 1, 4)?.view(&[2, 2])?;
    let error = odd.view_as_complex().unwrap_err();
    assert!(error.message().contains("storage_offset divisible by 2"), "{error:?}");
    Ok(())
}

#[test]
fn half_complex_numbers_are_read_filled_and_printed() -> Result<()> {
    let x = numbers()?;
    assert_eq!(x.select(0, 1)?.item()?, Scalar::Complex(3.0, -4.0));
    let text = "tensor([1.+2.j, 3.-4.j], dtype=torch.complex32)";
    assert_eq!(x.to_string(), text);
    shows(&x.zeros_like()?.fill_(Scalar::Complex(1e9, -2.0))?, &[(f64::INFINITY, -2.0); 2]);
    assert!(x.equal(&x.clone_tensor(None)?)? && !x.equal(&x.conj()?)?);
    assert_eq!(full(&[2], Scalar::Complex(0.0, 1.0))?.dtype(), DType::C64);
    Ok(())
}

#[test]
fn gradients_pass_from_half_complex_to_wider_numbers_and_back() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f32, -2.0, 0.5], &[3])?.with_grad()?;
    let y = x.to_dtype(DType::C32)?;
    let z = y.mul(&y)?.view_as_real()?.select(-1, 0)?;
    z.to_dtype(DType::F32)?.sum()?.backward()?;
    let grad = x.grad().expect("a leaf that requires a gradient");
    assert_eq!((grad.dtype(), grad.to_vec::<f32>()?), (DType::F32, vec![2.0, -4.0, 1.0]));

    let w = numbers()?.with_grad()?;
    // A real factor that is broadcast: its gradient is a sum of real parts.
    let factor = Tensor::from_slice(&[f16::from_f32(2.0)], &[1])?.with_grad()?;
    w.mul(&factor)?.abs()?.to_dtype(DType::F64)?.sum()?.backward()?;
    let (by_w, by_factor) = (w.grad().expect("a leaf"), factor.grad().expect("a leaf"));
    assert_eq!((by_w.dtype(), by_factor.dtype()), (DType::C32, DType::F16));
    let length = 5.0_f64.sqrt() + 5.0;
    assert!((by_factor.to_vec::<f64>()?[0] - length).abs() < 1e-2);
    let wide = by_w.to_vec::<C128>()?;
    assert!((wide[1] - C128::new(1.2, -1.6)).norm() < 2e-3, "{wide:?}");
    Ok(())
}

#[test]
fn ops_that_have_no_kernel_for_half_complex_name_it() -> Result<()> {
    let x = numbers()?;
    let error = x.dot(&x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert!(error.message().contains("not implemented for 'ComplexHalf'"), "{error:?}");
    shows(&x, &[(1.0, 2.0), (3.0, -4.0)]);
    Ok(())
}

/// Pairs of `bf16` that have these values.
fn pairs() -> Result<Tensor> {
    let number = |re, im| BC32 { re: bf16::from_f64(re), im: bf16::from_f64(im) };
    Tensor::from_slice(&[number(1.0, 2.0), number(3.0, -4.0)], &[2])
}

#[test]
fn pairs_of_bfloat16_are_converted_moved_and_compared() -> Result<()> {
    let dtype = DType::BC32;
    assert!(dtype.is_complex() && !dtype.is_floating_point() && !dtype.is_narrow_float());
    assert_eq!((dtype.size(), dtype.name(), dtype.to_real()), (4, "bcomplex32", DType::BF16));
    for (other, meets) in [
        (DType::I64, dtype),
        (DType::BF16, dtype),
        (DType::F16, DType::C64),
        (DType::C32, DType::C64),
        (DType::F32, DType::C64),
        (DType::F64, DType::C128),
        (DType::C128, DType::C128),
    ] {
        assert_eq!(promote_types(dtype, other)?, meets, "{other:?}");
        assert_eq!(promote_types(other, dtype)?, meets, "{other:?}");
    }
    // One bit of the fraction is lost in each part, to even; numbers beyond halves are kept.
    let wide = Tensor::from_slice(&[C64::new(257.0, 259.0), C64::new(1e30, -0.0)], &[2])?;
    let kept = wide.to_dtype(dtype)?.to_vec::<C128>()?;
    assert_eq!((kept[0].re, kept[0].im), (256.0, 260.0));
    assert!((kept[1].re / 1e30 - 1.0).abs() < 4e-3 && kept[1].im.is_sign_negative());
    let x = pairs()?;
    let moved = Tensor::cat(&[x.clone(), x.flip(&[0])?], 0)?.as_strided(&[2], &[2], Some(1))?;
    shows(&moved, &[(3.0, -4.0), (1.0, 2.0)]);
    assert_eq!(x.eq(&moved)?.to_vec::<u8>()?, [0, 0]);
    assert_eq!(x.view_as_real()?.to_vec::<f32>()?, [1.0, 2.0, 3.0, -4.0]);
    assert_eq!(x.to_string(), "tensor([1.+2.j, 3.-4.j], dtype=torch.bcomplex32)");
    shows(&x.conj()?.resolve_conj()?, &[(1.0, -2.0), (3.0, 4.0)]);
    Ok(())
}

#[test]
fn pairs_of_bfloat16_are_computed_with_beside_wider_numbers_alone() -> Result<()> {
    let x = pairs()?;
    for error in [
        x.add(&x).unwrap_err(),
        x.mul(&x).unwrap_err(),
        x.abs().unwrap_err(),
        x.sum().unwrap_err(),
        x.exp().unwrap_err(),
        x.dot(&x).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotImplemented);
        assert!(error.message().contains("not implemented for 'BComplex32'"), "{error:?}");
    }
    let sum = x.add(&Tensor::from_slice(&[1.0_f32, 2.0], &[2])?)?;
    assert_eq!(sum.dtype(), DType::C64);
    shows(&sum, &[(2.0, 2.0), (5.0, -4.0)]);
    let y = Tensor::from_slice(&[C64::new(1.0, 1.0); 3], &[3])?.with_grad()?;
    let pulled = y.to_dtype(DType::BC32)?.to_dtype(DType::C64)?.abs()?.sum()?;
    pulled.backward()?;
    assert_eq!(y.grad().map(|grad| grad.dtype()), Some(DType::C64));
    Ok(())
}
