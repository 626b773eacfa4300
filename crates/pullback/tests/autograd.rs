//! The autograd system from Rust.

use pullback::gradcheck::{CheckedFunction, Sampler, Tolerance, gradcheck, gradgradcheck};
use pullback::{DType, Result, Tensor, autograd};

fn vector(data: &[f64]) -> Tensor {
    Tensor::from_slice(data, &[data.len() as i64]).unwrap()
}

#[test]
fn gradient_of_a_square_is_twice_the_input() -> Result<()> {
    let x = vector(&[1.0, 2.0, 3.0]).with_grad()?;
    let y = x.mul(&x)?.sum()?;
    assert_eq!(y.grad_fn()?.unwrap().name(), "SumBackward0");
    y.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0, 4.0, 6.0]);
    Ok(())
}

#[test]
fn broadcast_gradients_are_summed_to_the_input_shape() -> Result<()> {
    let x = vector(&[1.0, 2.0]).with_grad()?;
    let m = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?.with_grad()?;
    x.add(&m)?.mul(&m)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [9.0, 12.0]);
    assert_eq!(m.grad().unwrap().shape(), [3, 2]);
    Ok(())
}

#[test]
fn second_backward_through_a_freed_graph_is_an_error() -> Result<()> {
    let x = vector(&[1.0]).with_grad()?;
    let y = x.mul(&x)?.sum()?;
    y.backward()?;
    let error = y.backward().unwrap_err();
    assert!(error.message().contains("Trying to backward through the graph a second time"));
    Ok(())
}

#[test]
fn double_backward_gives_second_derivatives() -> Result<()> {
    let x = vector(&[2.0, 3.0]).with_grad()?;
    let y = x.mul(&x)?.mul(&x)?.sum()?;
    let options = autograd::BackwardOptions { create_graph: true, ..Default::default() };
    let g = autograd::grad(&[&y], &[&x], &[None], options)?.remove(0).unwrap();
    let h = autograd::grad(&[&g.sum()?], &[&x], &[None], autograd::BackwardOptions::default())?
        .remove(0)
        .unwrap();
    assert_eq!(h.to_vec::<f64>()?, [12.0, 18.0]);
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn writing_to_a_saved_tensor_is_detected() -> Result<()> {
    let x = vector(&[1.0, 2.0]).with_grad()?;
    let y = x.mul(&vector(&[1.0, 1.0]))?;
    let z = y.mul(&y)?;
    y.add_(&vector(&[1.0, 1.0]))?;
    let error = z.sum()?.backward().unwrap_err();
    assert!(error.message().contains("modified by an inplace operation"), "{error}");
    Ok(())
}

#[test]
fn writing_through_a_view_changes_the_history_of_its_base() -> Result<()> {
    let x = vector(&[1.0, 2.0, 3.0]).with_grad()?;
    let base = x.mul(&vector(&[1.0, 1.0, 1.0]))?;
    let view = base.select(0, 1)?;
    view.mul_(&Tensor::wrapped(10.0)?)?;
    assert_eq!(base.grad_fn()?.unwrap().name(), "torch::autograd::CopySlices");
    assert_eq!(view.grad_fn()?.unwrap().name(), "AsStridedBackward0");
    base.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0, 10.0, 1.0]);
    Ok(())
}

#[test]
fn leaves_cannot_be_written_to_in_place() -> Result<()> {
    let x = vector(&[1.0]).with_grad()?;
    let error = x.add_(&vector(&[1.0])).unwrap_err();
    assert!(error.message().contains("a leaf Variable that requires grad"));
    let error = x.select(0, 0)?.zero_().unwrap_err();
    assert!(error.message().contains("a view of a leaf Variable that requires grad"));
    Ok(())
}

#[test]
fn million_node_chain_is_built_run_and_freed() -> Result<()> {
    let x = vector(&[1.0]).with_grad()?;
    let one = vector(&[1.0]);
    let build = || {
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = y.add(&one)?;
        }
        Ok::<_, pullback::Error>(y)
    };
    build()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0]);
    drop(build()?);
    Ok(())
}

#[test]
fn node_without_saved_tensors_can_run_twice() -> Result<()> {
    let x = vector(&[1.0, 2.0]).with_grad()?;
    let y = x.add(&x)?.sum()?;
    y.backward()?;
    y.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [4.0, 4.0]);
    Ok(())
}

/// Checks both derivatives of `write`, given a copy of a complex vector that it may write to, and another vector.
fn check_write(name: &str, write: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>) {
    let leaf = || Sampler::new(DType::C128).normal(&[3]).with_grad().unwrap();
    let inputs = [leaf(), leaf()];
    let f: CheckedFunction<'_> = &|x| Ok(vec![write(&x[0].clone_tensor(None)?, &x[1])?]);
    let first = gradcheck(f, &inputs, Tolerance::default()).unwrap();
    assert_eq!(first, Ok(()), "gradient of {name}");
    let second = gradgradcheck(f, &inputs, Tolerance::default()).unwrap();
    assert_eq!(second, Ok(()), "second gradient of {name}");
}

#[test]
fn writes_through_parts_of_complex_numbers_have_both_derivatives() {
    let part = |z: &Tensor, index: i64| z.view_as_real()?.select(-1, index);
    check_write("a write to the real parts", &|z, w| {
        part(z, 0)?.mul_(&part(w, 1)?)?;
        z.mul(z)
    });
    check_write("writes to imaginary parts and to the whole", &|z, w| {
        let seen = part(&z.narrow(0, 1, 2)?, 1)?;
        seen.sin_()?.mul_(&w.narrow(0, 1, 2)?.abs()?)?;
        z.mul_(w)?;
        z.mul(&seen.sum()?)
    });
    check_write("a write from one part to the other", &|z, w| {
        let pairs = z.view_as_real()?;
        let other = pairs.select(1, 1)?.clone_tensor(None)?;
        pairs.select(1, 0)?.copy_(&other.mul(&w.abs()?)?, false)?;
        pairs.sum_dim(Some(&[-1]), false)?.mul(z)
    });
    check_write("writes to complex numbers in a real base", &|z, w| {
        let numbers = z.view_as_real()?.clone_tensor(None)?.reshape(&[6])?;
        let seen = numbers.narrow(0, 0, 4)?.view(&[2, 2])?.view_as_complex()?;
        let last = seen.narrow(0, 1, 1)?;
        seen.mul_(&w.narrow(0, 0, 2)?)?;
        seen.add_(&part(&w.narrow(0, 1, 2)?, 0)?)?;
        numbers.mul(&seen.abs()?.sum()?)?.sum()?.mul(&last)
    });
}
