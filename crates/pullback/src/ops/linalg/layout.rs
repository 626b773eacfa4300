//! Column-major results, as LAPACK returns them, and the checks that ops of linear algebra share.

use super::decomposition::sizes;
use crate::error::ensure;
use crate::tensor::contiguous_strides;
use crate::{DType, Device, Dims, Result, Tensor, TensorSpec};

/// The spec of column-major matrices of this shape, with the dtype and on the device of `a`.
pub(in crate::ops) fn columns(a: &Tensor, shape: &[i64]) -> TensorSpec {
    let spec = TensorSpec::beside(a, shape);
    let strides = column_strides(shape);
    TensorSpec { strides: Some(strides), ..spec }
}

fn column_strides(shape: &[i64]) -> Dims {
    let mut transposed = Dims::from_slice(shape);
    let rank = transposed.len();
    transposed.swap(rank - 2, rank - 1);
    let mut strides = contiguous_strides(&transposed);
    strides.swap(rank - 2, rank - 1);
    strides
}

/// The spec of a row-major result on the device of `a`.
pub(in crate::ops) fn rows(a: &Tensor, shape: &[i64], dtype: DType) -> TensorSpec {
    TensorSpec::of(shape, dtype).on(a.device())
}

/// The transposed matrices: a column-major result is handed to a kernel as its row-major transpose.
pub(in crate::ops) fn transposed(a: &Tensor) -> Result<Tensor> {
    a.transpose(-2, -1)
}

/// Whether the tensor has elements in memory, which those on the meta device do not.
pub(in crate::ops) fn has_elements(a: &Tensor) -> bool {
    a.device() != Device::Meta
}

/// Whether LAPACK has routines for a dtype: it has none for integers and half precision.
pub(in crate::ops) fn is_field(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// Refuses integers and half precision, which LAPACK has no routines for.
pub(in crate::ops) fn check_field(kernel: &str, a: &Tensor) -> Result<()> {
    ensure!(
        is_field(a.dtype()),
        not_implemented,
        "\"{kernel}\" not implemented for '{}'",
        a.dtype().scalar_name()
    );
    Ok(())
}

/// Refuses dtypes without singular values with the text `message`: half precision as not implemented, integers as a
/// `RuntimeError`.
pub(in crate::ops) fn check_spectrum(a: &Tensor, message: &str) -> Result<()> {
    ensure!(is_field(a.dtype()) || !a.dtype().is_differentiable(), not_implemented, "{message}");
    ensure!(is_field(a.dtype()), runtime, "{message}");
    Ok(())
}

/// Refuses tensors that are not batches of square matrices.
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

/// Refuses integers and, unless `low` permits it, half precision.
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
