//! Tensors on several devices, which main memory stands for: where results and gradients are, which thread computes them.
//!
//! A program of its own, for there is no way back from simulating devices.

mod backward;
mod comm;
mod op;
#[path = "../registry/mod.rs"]
mod registry;

use pullback::{Device, Tensor, simulate_devices};

/// The second of three devices.
const SECOND: Device = Device::Cuda(1);

/// Numbers on a device.
fn on(device: Device, numbers: &[f64]) -> Tensor {
    simulate_devices(3);
    let shape = [numbers.len() as i64];
    let tensor = Tensor::from_slice(numbers, &shape).expect("small");
    tensor.to(None, Some(device), false, None).expect("the device is simulated")
}

/// The same as a leaf that wants a gradient.
fn leaf(device: Device, numbers: &[f64]) -> Tensor {
    on(device, numbers).with_grad().expect("a leaf of numbers")
}
