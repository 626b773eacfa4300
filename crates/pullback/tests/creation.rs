//! Tensors from nothing and from numbers, and how they lie in memory, from Rust.

use pullback::ops::{creation::factory::full, creation::spaced::range_step_with, shape::join::cat};
use pullback::{DType, ErrorKind, MemoryFormat, Result, Scalar, Tensor, take_warnings};

fn counting(shape: &[i64]) -> Tensor {
    let data: Vec<f64> = (0..shape.iter().product()).map(|v| v as f64).collect();
    Tensor::from_slice(&data, shape).unwrap()
}

#[test]
fn a_range_includes_its_end_and_warns_that_it_does() -> Result<()> {
    let of = |start: f64, end: f64, step: f64, dtype: DType| {
        let numbers = [start, end, step].map(Scalar::Float);
        range_step_with(numbers[0], numbers[1], numbers[2], Some(dtype), None, None, None)
    };
    assert_eq!(of(5.0, 1.0, -2.0, DType::F64)?.to_vec::<f64>()?, [5.0, 3.0, 1.0]);
    assert_eq!(of(0.5, 4.5, 1.5, DType::I32)?.to_vec::<i32>()?, [0, 1, 2, 3, 4]);
    assert!(take_warnings().iter().any(|text| text.contains("torch.range is deprecated")));
    let error = of(0.0, -1.0, 1.0, DType::F64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime);
    Ok(())
}

#[test]
fn the_largest_integers_come_out_as_they_went_in() -> Result<()> {
    let x = Tensor::from_slice(&[u64::MAX - 3, 7], &[2])?;
    assert_eq!(x.select(0, 0)?.item()?, Scalar::UInt(u64::MAX - 3));
    assert_eq!(x.select(0, 1)?.item()?, Scalar::Int(7));
    let filled = x.zeros_like()?.fill_(Scalar::from(u64::MAX))?;
    assert_eq!(filled.to_vec::<u64>()?, [u64::MAX; 2]);
    assert_eq!(x.clamp_max(Scalar::from(u64::MAX - 5))?.to_vec::<u64>()?, [u64::MAX - 5, 7]);
    assert!(full(&[1], Scalar::from(u64::MAX)).is_err());
    Ok(())
}

#[test]
fn channels_that_lie_together_do_so_once_joined() -> Result<()> {
    let plain = counting(&[2, 3, 2, 4]);
    let near = plain.clone_tensor(Some(MemoryFormat::ChannelsLast))?;
    for dim in 0..4 {
        let joined = cat(&[near.clone(), near.neg()?], dim)?;
        assert!(joined.equal(&cat(&[plain.clone(), plain.neg()?], dim)?)?);
        assert_eq!(joined.strides()[1], 1, "along {dim}");
        assert_eq!(cat(&[near.clone(), plain.clone()], dim)?.strides()[3], 1);
    }
    Ok(())
}

#[test]
fn a_power_in_place_needs_double_precision() -> Result<()> {
    let x = counting(&[3]);
    x.float_power_by_(Scalar::Int(2))?;
    assert_eq!(x.to_vec::<f64>()?, [0.0, 1.0, 4.0]);
    x.float_power_(&Tensor::from_slice(&[0.5_f32], &[1])?)?;
    assert_eq!(x.to_vec::<f64>()?, [0.0, 1.0, 2.0]);
    let single = x.to_dtype(DType::F32)?;
    let error = single.float_power_by_(Scalar::Int(2)).unwrap_err();
    assert!(error.message().contains("float_power_ has dtype Float"));
    assert_eq!(single.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    Ok(())
}

#[test]
fn a_histogram_has_a_node_that_refuses_gradients() -> Result<()> {
    let x = counting(&[5]).with_grad()?;
    let [counts, edges] = x.histogram_with(2, None, None, false)?;
    assert!(counts.requires_grad() && edges.requires_grad());
    let error = counts.sum()?.backward().unwrap_err();
    assert!(error.message().contains("derivative for aten::histogram is not implemented"));
    Ok(())
}
