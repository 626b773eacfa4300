//! A tensor in parts on several devices, and back: each is the other's gradient.
//!
//! `scatter` hangs its parts onto a `Gather` node, `gather` its result onto a `Scatter` node; these call the two functions
//! again, so that there are derivatives of any order. Start at [`scatter`].

use super::standard::attach;
use crate::autograd::graph::input_meta::InputMeta;
use crate::autograd::graph::node::{Backward, Node};
use crate::autograd::variable::tangent;
use crate::autograd::{arithmetic, mode};
use crate::dispatch::Grads;
use crate::error::ensure;
use crate::tensor::shape::{list, wrap_dim};
use crate::{Device, Result, Tensor};
use smallvec::SmallVec;

/// The gradient of [`scatter`]: those of the parts, put together where the tensor was.
struct Gather {
    destination: Device,
    dim: i64,
}

impl Backward for Gather {
    fn name(&self) -> String {
        "torch::autograd::Gather".into()
    }
    fn apply(&self, node: &Node, grads: Grads) -> Result<Grads> {
        if grads.iter().all(Option::is_none) {
            return Ok(SmallVec::from_elem(None, 1));
        }
        let part = |(grad, meta): (Option<Tensor>, &Option<InputMeta>)| match (grad, meta) {
            (Some(grad), _) => Ok(grad),
            (None, Some(meta)) => meta.zeros(),
            (None, None) => unreachable!("a part without gradients has a node"),
        };
        let parts: Vec<Tensor> =
            grads.into_iter().zip(node.input_meta()).map(part).collect::<Result<_>>()?;
        Ok(SmallVec::from_elem(Some(put_together(&parts, self.dim, self.destination)?), 1))
    }
}

/// The gradient of [`gather`]: its parts, where the tensors were.
struct Scatter {
    /// Where each tensor was, and how many of the result's rows are its own.
    parts: Vec<(Device, i64)>,
    dim: i64,
    /// Whether they had no dimensions.
    are_scalars: bool,
}

impl Backward for Scatter {
    fn name(&self) -> String {
        "torch::autograd::Scatter".into()
    }
    fn apply(&self, _: &Node, mut grads: Grads) -> Result<Grads> {
        let Some(grad) = grads.first_mut().and_then(Option::take) else {
            return Ok(self.parts.iter().map(|_| None).collect());
        };
        let (devices, sizes): (Vec<Device>, Vec<i64>) = self.parts.iter().copied().unzip();
        let parts = scatter(&grad, &devices, Some(&sizes), self.dim)?;
        let part = |part: Tensor| {
            if self.are_scalars { arithmetic::reshape(&part, &[]) } else { Ok(part) }
        };
        parts.into_iter().map(|p| part(p).map(Some)).collect()
    }
}

/// Parts of `tensor` along `dim`, the i-th on `devices[i]`.
///
/// With `sizes` they have these many rows each; without, they are as large as each other, but for the last one, and may be
/// fewer than the devices. A part that is on its device already shares the tensor's memory. The gradient is [`gather`]'s
/// result on the tensor's device; that of a part which nothing was computed of is zero.
///
/// # Errors
/// `RuntimeError` without devices, for sizes that are not one per device or do not sum up to the tensor's, for devices that
/// are not there; `IndexError` for a dimension out of range.
///
/// # Examples
/// ```
/// use pullback::{Device, Tensor, autograd::comm, simulate_devices};
/// # fn main() -> pullback::Result<()> {
/// simulate_devices(2);
/// let x = Tensor::from_slice(&[1.0_f32, 2.0, 3.0], &[3])?;
/// let parts = comm::scatter(&x, &[Device::Cuda(0), Device::Cuda(1)], None, 0)?;
/// assert_eq!((parts[0].shape(), parts[1].shape()), (&[2][..], &[1][..]));
/// assert_eq!(comm::gather(&parts, 0, Device::Cpu)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn scatter(
    tensor: &Tensor,
    devices: &[Device],
    sizes: Option<&[i64]>,
    dim: i64,
) -> Result<Vec<Tensor>> {
    let _site = crate::call_site::Scope::of_caller(std::panic::Location::caller());
    ensure!(!devices.is_empty(), runtime, "Expected at least one device to scatter to");
    devices.iter().try_for_each(|device| device.check_available())?;
    ensure!(
        tensor.ndim() > 0,
        runtime,
        "scatter expects at least a 1-dimensional tensor: a number has no parts"
    );
    let at = wrap_dim(dim, tensor.ndim())?;
    let sizes = match sizes {
        Some(sizes) => {
            ensure!(
                sizes.len() == devices.len(),
                runtime,
                "Expected devices and chunk_sizes to be of same length, but got len(devices) = {} and len(chunk_sizes) = {}",
                devices.len(),
                sizes.len()
            );
            // bounded: by the number of devices.
            sizes.to_vec()
        }
        None => even(tensor.shape()[at], devices.len()),
    };
    let parts = {
        let _unrecorded = mode::set_grad(false);
        let parts = arithmetic::split(tensor, &sizes, dim)?;
        let part = |(part, &device): (&Tensor, &Device)| {
            if part.device() == device { alias(part) } else { arithmetic::to_device(part, device) }
        };
        parts.iter().zip(devices).map(part).map(|p| p.map(Some)).collect::<Result<Vec<_>>>()?
    };
    let node = Gather { destination: tensor.device(), dim };
    attach(&[Some(tensor.clone())], &parts, Box::new(node))?;
    // bounded: by the number of devices.
    Ok(parts.into_iter().flatten().collect())
}

/// How many rows each of at most `count` parts of `size` rows has.
fn even(size: i64, count: usize) -> Vec<i64> {
    let each = size.div_euclid(count as i64) + i64::from(size % count as i64 != 0);
    if each == 0 {
        // bounded: by the number of devices.
        return vec![0; count];
    }
    let begins = (0..count as i64).map(|nr| nr * each).take_while(|&begin| begin < size);
    begins.map(|begin| each.min(size - begin)).collect()
}

/// Another handle to the same elements.
fn alias(part: &Tensor) -> Result<Tensor> {
    let alias = part.detached()?;
    tangent::carry(part, &alias)?;
    Ok(alias)
}

/// The tensors, which are on devices, one after the other along `dim` on `destination`. 0-dim ones become a vector, with a
/// warning. The gradient is [`scatter`]'s result on the tensors' devices.
///
/// # Errors
/// `RuntimeError` without tensors, for one in main memory, and for shapes that differ elsewhere than in `dim`; `IndexError`
/// for a dimension out of range.
#[track_caller]
pub fn gather(tensors: &[Tensor], dim: i64, destination: Device) -> Result<Tensor> {
    let _site = crate::call_site::Scope::of_caller(std::panic::Location::caller());
    ensure!(!tensors.is_empty(), runtime, "Expected at least one tensor to gather from");
    for (index, tensor) in tensors.iter().enumerate() {
        ensure!(
            tensor.is_on_device(),
            runtime,
            "All inputs to Gather must be CUDA tensors, but the one at index {index} is on cpu"
        );
    }
    put_together(tensors, dim, destination)
}

/// As [`gather`], without checks of the tensors' devices.
fn put_together(tensors: &[Tensor], dim: i64, destination: Device) -> Result<Tensor> {
    destination.check_available()?;
    let are_scalars = dim == 0 && tensors.iter().all(|tensor| tensor.ndim() == 0);
    if are_scalars {
        crate::warning::warn("Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and return a vector.".into());
    }
    let first: &[i64] = if are_scalars { &[1] } else { tensors[0].shape() };
    let at = wrap_dim(dim, first.len())?;
    for (index, tensor) in tensors.iter().enumerate() {
        let is_alike = |(d, (a, b)): (usize, (&i64, &i64))| d == at || a == b;
        ensure!(
            are_scalars
                || tensor.ndim() == first.len()
                    && first.iter().zip(tensor.shape()).enumerate().all(is_alike),
            runtime,
            "Input tensor at index {index} has invalid shape {}, but expected {} with any size in dimension {at}",
            list(tensor.shape()),
            list(first)
        );
    }
    let sizes = tensors.iter().map(|t| if are_scalars { 1 } else { t.shape()[at] });
    let node = Scatter {
        parts: tensors.iter().map(Tensor::device).zip(sizes).collect(),
        dim,
        are_scalars,
    };
    let result = {
        let _unrecorded = mode::set_grad(false);
        let moved = |tensor: &Tensor| {
            let moved = arithmetic::to_device(tensor, destination)?;
            if are_scalars { arithmetic::reshape(&moved, &[1]) } else { Ok(moved) }
        };
        let moved: Vec<Tensor> = tensors.iter().map(moved).collect::<Result<_>>()?;
        arithmetic::cat(&moved, dim)?
    };
    let inputs: Vec<Option<Tensor>> = tensors.iter().cloned().map(Some).collect();
    attach(&inputs, &[Some(result.clone())], Box::new(node))?;
    Ok(result)
}
