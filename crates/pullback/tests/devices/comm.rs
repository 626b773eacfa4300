//! Parts of tensors on several devices: scatter and gather are each other's gradient.

use super::{SECOND, leaf, on};
use pullback::autograd::{self, BackwardOptions, comm};
use pullback::{Device, Result, Tensor, take_warnings};

const DEVICES: [Device; 2] = [Device::Cuda(0), SECOND];

#[test]
fn gather_undoes_scatter_and_gradients_come_back() -> Result<()> {
    let x = leaf(Device::Cpu, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let parts = comm::scatter(&x, &DEVICES, None, 0)?;
    let places: Vec<_> = parts.iter().map(|p| (p.device(), p.numel())).collect();
    assert_eq!(places, [(Device::Cuda(0), 3), (SECOND, 2)]);
    assert_eq!(parts[0].grad_fn()?.unwrap().name(), "torch::autograd::Gather");
    let squares = parts.iter().map(|p| p.mul(p)).collect::<Result<Vec<_>>>()?;
    let y = comm::gather(&squares, 0, Device::Cuda(2))?;
    assert_eq!(y.grad_fn()?.unwrap().name(), "torch::autograd::Scatter");
    assert_eq!(
        (y.device(), y.to_vec::<f64>()?),
        (Device::Cuda(2), vec![1.0, 4.0, 9.0, 16.0, 25.0])
    );
    y.sum()?.backward()?;
    let grad = x.grad().unwrap();
    assert_eq!(
        (grad.device(), grad.to_vec::<f64>()?),
        (Device::Cpu, vec![2.0, 4.0, 6.0, 8.0, 10.0])
    );
    Ok(())
}

#[test]
fn gradients_of_parts_are_on_the_devices_of_the_tensors() -> Result<()> {
    let (a, b) = (leaf(Device::Cuda(0), &[1.0, 2.0]), leaf(SECOND, &[3.0]));
    let y = comm::gather(&[a.clone(), b.clone()], 0, Device::Cpu)?;
    y.mul(&y)?.sum()?.backward()?;
    for (of, expected) in [(&a, vec![2.0, 4.0]), (&b, vec![6.0])] {
        let grad = of.grad().unwrap();
        assert_eq!((grad.device(), grad.to_vec::<f64>()?), (of.device(), expected));
    }
    Ok(())
}

#[test]
fn they_have_second_derivatives() -> Result<()> {
    let x = leaf(SECOND, &[1.0, 2.0, 3.0]);
    let parts = comm::scatter(&x, &DEVICES, Some(&[1, 2]), 0)?;
    let cubes = parts.iter().map(|p| p.mul(p)?.mul(p)).collect::<Result<Vec<_>>>()?;
    let y = comm::gather(&cubes, 0, SECOND)?.sum()?;
    let recorded = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
    let first = autograd::grad(&[&y], &[&x], &[None], recorded)?.remove(0).unwrap();
    assert_eq!(first.to_vec::<f64>()?, [3.0, 12.0, 27.0]);
    let second = autograd::grad(&[&first.sum()?], &[&x], &[None], BackwardOptions::default())?;
    assert_eq!(second[0].as_ref().unwrap().to_vec::<f64>()?, [6.0, 12.0, 18.0]);
    Ok(())
}

#[test]
fn a_part_without_gradient_has_zeros() -> Result<()> {
    let x = leaf(Device::Cpu, &[1.0, 2.0, 3.0]);
    let parts = comm::scatter(&x, &[Device::Cuda(0), SECOND, Device::Cuda(2)], None, -1)?;
    parts[1].sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [0.0, 1.0, 0.0]);
    Ok(())
}

#[test]
fn numbers_are_gathered_to_a_vector_with_a_warning() -> Result<()> {
    let (a, b) = (leaf(Device::Cuda(0), &[2.0]), leaf(SECOND, &[3.0]));
    let y = comm::gather(&[a.sum()?, b.sum()?], 0, Device::Cuda(0))?;
    assert!(
        take_warnings().iter().any(|w| w.contains("will instead unsqueeze and return a vector"))
    );
    assert_eq!(y.to_vec::<f64>()?, [2.0, 3.0]);
    y.mul(&y)?.sum()?.backward()?;
    assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [6.0]);
    Ok(())
}

#[test]
fn fewer_rows_than_devices_give_fewer_parts_and_none_give_empty_ones() -> Result<()> {
    let x = on(Device::Cpu, &[1.0]);
    assert_eq!(comm::scatter(&x, &DEVICES, None, 0)?.len(), 1);
    let none = on(Device::Cpu, &[]);
    let parts = comm::scatter(&none, &DEVICES, None, 0)?;
    assert_eq!(parts.iter().map(Tensor::numel).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(comm::gather(&parts, 0, SECOND)?.shape(), [0]);
    Ok(())
}

#[test]
fn what_cannot_be_scattered_or_gathered_is_refused() {
    let (x, far) = (on(Device::Cpu, &[1.0, 2.0]), on(SECOND, &[1.0, 2.0]));
    let refused = |result: Result<Vec<Tensor>>| result.unwrap_err().message().to_owned();
    assert!(refused(comm::scatter(&x, &[], None, 0)).contains("at least one device"));
    assert!(refused(comm::scatter(&x, &DEVICES, Some(&[2]), 0)).contains("to be of same length"));
    assert!(refused(comm::scatter(&x, &DEVICES, Some(&[1, 2]), 0)).contains("to sum exactly to 2"));
    assert!(refused(comm::scatter(&x, &DEVICES, None, 1)).contains("Dimension out of range"));
    assert!(refused(comm::scatter(&x, &[Device::Cuda(9)], None, 0)).contains("invalid device"));
    let refused = |result: Result<Tensor>| result.unwrap_err().message().to_owned();
    let gathered = comm::gather(&[far.clone(), x.clone()], 0, SECOND);
    assert!(refused(gathered).contains("All inputs to Gather must be CUDA tensors"));
    assert!(refused(comm::gather(&[], 0, SECOND)).contains("at least one tensor"));
    let matrix = far.reshape(&[1, 2]).expect("two numbers");
    let uneven = refused(comm::gather(&[matrix, far], 1, SECOND));
    assert!(uneven.contains("index 1 has invalid shape [2]"), "{uneven}");
}
