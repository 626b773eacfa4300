//! Sums, norms and `any` of sparse tensors.

use super::coordinates::{SparseElements, summed};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::tensor::shape::{list, wrap_dim};
use crate::tensor::{Layout, Sparse};
use crate::{DType, Dims, Result, Scalar, Tensor};
use pullback_kernels::memory;
use pullback_macros::op;
use smallvec::SmallVec;

pub(crate) static OPS: &[&OpDef] =
    &[&SPARSE_SUM_ALL, &SPARSE_SUM_DTYPE, &SPARSE_SUM, &SPARSE_SUM_DIM_DTYPE];

/// The sum of all elements of a sparse tensor: 0-dim, dense.
#[op("_sparse_sum(Tensor self) -> Tensor", internal, function_only)]
impl SparseSumAll {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.values_of_any()?.sum()
    }
}

/// The sum of all elements of a sparse tensor, converted to `dtype` first: 0-dim, dense.
#[op("_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor", internal, function_only)]
impl SparseSumDtype {
    fn composite(self_: &Tensor, dtype: DType) -> Result<Tensor> {
        self_.values_of_any()?.to_dtype(dtype)?.sum()
    }
}

impl Tensor {
    /// The values with history, coalesced.
    fn values_of_any(&self) -> Result<Tensor> {
        if self.layout() == Layout::SparseCoo { self.coalesce()?.values() } else { self.values() }
    }
}

/// `item`: the only element as a number, which is the sum of the values given for it; zero if there is none.
pub(crate) fn item(self_: &Tensor) -> Result<Scalar> {
    let values = self_.detach()?.values_of_any()?;
    let element = if values.numel() == 0 { values.sum()? } else { values };
    element.element()
}

/// The sum over dimensions `dim` of a coordinate list: sparse, or dense if no sparse dimension is left. The gradient is given
/// where elements are specified.
#[op("_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor", internal, dynamic_output_shape, function_only, sparse = itself)]
impl SparseSum {
    fn cpu(self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
        super::check_coo("_sparse_sum", self_)?;
        summed_over(self_, dim, false)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
        let elements = SparseElements::ordered(self_)?;
        let is_summed = summed_dims(self_, dim)?;
        let sparse = elements.sparse_dim();
        let mut grad = grad.clone();
        let kept: Vec<Vec<i64>> = (0..sparse)
            .filter(|&dim| !is_summed[dim])
            .map(|dim| Ok(memory::copied(&elements.indices[dim])?))
            // bounded: by the rank.
            .collect::<Result<_>>()?;
        // The gradient of each value is the one at its remaining coordinates, repeated along summed
        // dense dimensions.
        let mut values = if kept.is_empty() {
            grad = grad.unsqueeze(0)?;
            let mut sizes = Dims::from_slice(grad.shape());
            sizes[0] = elements.count() as i64;
            grad.expand(&sizes, false)?
        } else {
            let indices = super::coordinates::table(&kept, elements.count())?;
            grad.values_at(&indices, grad.is_sparse())?
        };
        for (at, _) in is_summed.iter().enumerate().skip(sparse).filter(|(_, summed)| **summed) {
            values = values.unsqueeze((at - sparse) as i64 + 1)?;
        }
        let values = values.expand(elements.values.shape(), false)?;
        let indices = super::coordinates::table(&elements.indices, elements.count())?;
        Tensor::sparse_coo(&indices, &values, self_.shape(), true)
    }
    fn jvp(self_t: &Tensor, dim: &[i64]) -> Result<Tensor> {
        self_t.sparse_sum(dim)
    }
}

/// The sum over dimensions `dim` of a coordinate list, converted to `dtype` first.
#[op(
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
    internal,
    function_only
)]
impl SparseSumDimDtype {
    fn composite(self_: &Tensor, dim: &[i64], dtype: DType) -> Result<Tensor> {
        self_.to_dtype(dtype)?.sparse_sum(dim)
    }
}

/// Which dimensions are summed over.
fn summed_dims(tensor: &Tensor, dim: &[i64]) -> Result<SmallVec<[bool; 6]>> {
    let mut is_summed: SmallVec<[bool; 6]> = tensor.shape().iter().map(|_| false).collect();
    for &dim in dim {
        let at = wrap_dim(dim, tensor.ndim())?;
        if tensor.ndim() == 0 {
            continue;
        }
        ensure!(
            !std::mem::replace(&mut is_summed[at], true),
            runtime,
            "dim {dim} appears multiple times in the list of dims {}",
            list(&[dim])
        );
    }
    Ok(is_summed)
}

fn summed_over(tensor: &Tensor, dim: &[i64], keepdim: bool) -> Result<Tensor> {
    let is_summed = summed_dims(tensor, dim)?;
    let elements = SparseElements::of(tensor)?;
    let sparse = elements.sparse_dim();
    let dense: Dims = (sparse..tensor.ndim())
        .filter(|&at| is_summed[at])
        .map(|at| (at - sparse) as i64 + 1)
        .collect();
    let mut values = elements.values.clone();
    if values.dtype().is_integral(true) {
        values = values.to_dtype(DType::I64)?;
    }
    if !dense.is_empty() {
        values = values.sum_dim(Some(&dense), keepdim)?;
    }
    let count = elements.count();
    let mut indices = Vec::new();
    let mut shape = Dims::new();
    for (at, (row, &size)) in elements.indices.iter().zip(elements.sizes()).enumerate() {
        match (is_summed[at], keepdim) {
            (false, _) => {
                indices.push(memory::copied(row)?);
                shape.push(size);
            }
            (true, true) => {
                indices.push(memory::filled(0, count)?);
                shape.push(1);
            }
            (true, false) => {}
        }
    }
    if indices.is_empty() {
        let total = summed(&values, &memory::filled(0, count)?, 1)?;
        return total.view(&total.shape()[1..]);
    }
    shape.extend_from_slice(&values.shape()[1..]);
    SparseElements { indices, values, shape, is_coalesced: false }.coalesced()?.into_coo()
}

/// `sum`.
pub(crate) fn sum(self_: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    SparseElements::ordered(self_)?.values.sum_with(dtype)
}

/// `sum.dim_IntList`.
pub(crate) fn sum_dim(
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let typed = match dtype {
        Some(dtype) => self_.to_dtype(dtype)?,
        None => self_.clone(),
    };
    let all: Dims = (0..self_.ndim() as i64).collect();
    let dims = dim.filter(|dims| !dims.is_empty()).unwrap_or(&all);
    let result = summed_over(&typed, dims, keepdim)?;
    if self_.layout().is_compressed() && result.is_sparse() && result.ndim() == self_.ndim() {
        return SparseElements::ordered(&result)?.in_layout_of(self_);
    }
    // (If all sparse dimensions were summed over, kept dimensions have no coordinates: the result
    // is dense.)
    let is_summed = summed_dims(self_, dims)?;
    match result.sparse().as_deref() {
        Some(Sparse::Coo(coo)) if keepdim => {
            let sparse = coo.indices.shape()[0] as usize;
            let is_dense = is_summed.iter().take(sparse).all(|&is_summed| is_summed);
            if is_dense { result.to_dense(None) } else { Ok(result) }
        }
        _ => Ok(result),
    }
}

/// `any`.
pub(crate) fn any(self_: &Tensor) -> Result<Tensor> {
    SparseElements::ordered(self_)?.values.any()
}

/// Norms of all elements.
pub(crate) fn norm(
    self_: &Tensor,
    ord: Scalar,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let values = with_zero(self_, dim, SparseElements::ordered(self_)?.values)?;
    kept(self_, keepdim, values.linalg_vector_norm_with(ord, None, false, dtype)?)
}

/// [`norm`] with history.
pub(crate) fn recorded_norm(
    self_: &Tensor,
    ord: Scalar,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let values = with_zero(self_, dim, self_.values_of_any()?)?;
    kept(self_, keepdim, values.linalg_vector_norm_with(ord, None, false, dtype)?)
}

/// The values of `input`, and one zero for all elements that are not specified.
fn with_zero(input: &Tensor, dim: Option<&[i64]>, values: Tensor) -> Result<Tensor> {
    let dims = dim.unwrap_or_default();
    ensure!(
        dims.is_empty() || dims.len() == input.ndim(),
        not_implemented,
        "the norm of a sparse tensor is one of all elements; dim {} was given for {} dimensions",
        list(dims),
        input.ndim()
    );
    if values.numel() >= input.numel() {
        return Ok(values);
    }
    let mut sizes = Dims::from_slice(values.shape());
    sizes[0] = 1;
    let zero = crate::TensorSpec::beside(&values, &sizes).zeros()?;
    crate::ops::shape::join::cat(&[values, zero], 0)
}

/// A number with as many dimensions of size 1 as the input has, if these are kept.
fn kept(input: &Tensor, keepdim: bool, number: Tensor) -> Result<Tensor> {
    let ones: Dims = input.shape().iter().map(|_| 1).collect();
    if keepdim { number.view(&ones) } else { Ok(number) }
}
