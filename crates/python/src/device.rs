//! Functions of simulated CUDA devices, for `pullback.cuda`.

use crate::error::raise;
use pyo3::prelude::*;

/// Makes main memory stand for this number of CUDA devices, from now on.
#[pyfunction]
fn _cuda_simulate(count: u8) {
    pullback::simulate_devices(count);
}
/// How many CUDA devices there are.
#[pyfunction]
fn _cuda_device_count() -> u8 {
    pullback::device_count()
}
/// The CUDA device of this thread.
#[pyfunction]
fn _cuda_current_device() -> u8 {
    pullback::current_device()
}
/// Sets the current device; returns the previous one.
#[pyfunction]
fn _cuda_set_device(index: u8) -> PyResult<u8> {
    pullback::set_current_device(index).map_err(raise)
}

/// Refuses a device that is not there.
#[pyfunction]
fn _check_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    let device = crate::tensor::construct::device_option(Some(device), "device")?;
    device.unwrap_or_default().check_available().map_err(raise)
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_check_device, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_simulate, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_device_count, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_current_device, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_set_device, module)?)
}
