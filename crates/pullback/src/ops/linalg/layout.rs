//! Results that lie column by column, as LAPACK writes them, and what they are checked for.

use super::decomposition::sizes;
use crate::error::ensure;
use crate::tensor::contiguous_strides;
use crate::{DType, Device, Dims, Result, Tensor, TensorSpec};

/// A result beside `a` whose matrices lie column by column.
pub(in crate::ops) fn columns(a: &Tensor, shape: &[i64]) -> TensorSpec {
    let spec = TensorSpec::beside(a, shape);
    let strides = column_strides(shape);
    TensorSpec { strides: Some(strides), ..spec }
}

fn column_strides(shape: &[i64]) -> Dims {
    let mut turned = Dims::from_slice(shape);
    let rank = turned.len();
    turned.swap(rank - 2, rank - 1);
    let mut strides = contiguous_strides(&turned);
    strides.swap(rank - 2, rank - 1);
    strides
}

/// A row-major result beside `a`.
pub(in crate::ops) fn rows(a: &Tensor, shape: &[i64], dtype: DType) -> TensorSpec {
    TensorSpec::of(shape, dtype).on(a.device())
}

/// The matrices with rows as columns: the way in which a result that lies by columns is handed to a kernel.
pub(in crate::ops) fn turned(a: &Tensor) -> Result<Tensor> {
    a.transpose(-2, -1)
}

/// Whether there are elements to look at.
pub(in crate::ops) fn has_elements(a: &Tensor) -> bool {
    a.device() != Device::Meta
}

/// Whether LAPACK has routines for a dtype: not for whole numbers and half precision.
pub(in crate::ops) fn is_field(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// Refuses whole numbers and half precision, which LAPACK has no routine for.
pub(in crate::ops) fn check_field(kernel: &str, a: &Tensor) -> Result<()> {
    ensure!(
        is_field(a.dtype()),
        not_implemented,
        "\"{kernel}\" not implemented for '{}'",
        a.dtype().scalar_name()
    );
    Ok(())
}

/// Refuses what has no singular values, with the text `message`: half precision as what is not implemented, whole numbers
/// as what cannot be.
pub(in crate::ops) fn check_spectrum(a: &Tensor, message: &str) -> Result<()> {
    ensure!(is_field(a.dtype()) || !a.dtype().is_differentiable(), not_implemented, "{message}");
    ensure!(is_field(a.dtype()), runtime, "{message}");
    Ok(())
}

/// Refuses what is no batch of square matrices.
pub(in crate::ops) fn check_square(name: &str, a: &Tensor) -> Result<()> {
    ensure!(a.ndim() >= 2, runtime, "{name}: The input tensor A must have at least 2 dimensions.");
    let (m, n) = sizes(a.shape());
    ensure!(
        m == n,
        runtime,
        "{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
    );
    Ok(())
}

/// Refuses whole numbers, and half precision unless it is `low` enough.
pub(in crate::ops) fn check_floating(name: &str, a: &Tensor, low: bool) -> Result<()> {
    let got = a.dtype().scalar_name();
    ensure!(
        a.dtype().is_differentiable(),
        not_implemented,
        "{name}: Expected a floating point or complex tensor as input. Got {got}"
    );
    ensure!(
        low || !matches!(a.dtype(), DType::F16 | DType::BF16 | DType::C32),
        not_implemented,
        "{name}: Low precision dtypes not supported. Got {got}"
    );
    Ok(())
}
