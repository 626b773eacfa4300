//! Coordinate lists: made of indices and values, and taken apart.
//!
//! A tensor of this layout keeps the coordinates of its specified elements as the columns of a matrix of int64, and a value
//! for each, which may have dense dimensions of its own. Values of equal coordinates add up; `coalesce` adds them and puts
//! the coordinates in order.

use super::coordinates::{SparseElements, are_in_order, min_max, min_max_in_kernel};
use super::{check_coo, parts};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::ops::creation::factory::FactoryOptions;
use crate::tensor::{Coo, Cpu, Layout, Sparse, checked_numel, shape::list};
use crate::{DType, Device, Dims, Result, Tensor, TensorSpec};
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] = &[
    &SPARSE_COO_TENSOR_OF,
    &SPARSE_COO_TENSOR_SIZED,
    &SPARSE_COO_TENSOR_EMPTY,
    &SPARSE_COO_TENSOR_UNSAFE,
    &SPARSE_COO_INDICES,
    &SPARSE_COO_VALUES,
    &SPARSE_INDICES,
    &SPARSE_VALUES,
    &SPARSE_COUNT,
    &SPARSE_DIM,
    &DENSE_DIM,
    &IS_COALESCED,
    &COALESCE,
    &COALESCED,
    &SET_COALESCED,
    &SPARSE_RESIZE,
    &SPARSE_RESIZE_AND_CLEAR,
];

fn check_options(
    dtype: Option<DType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<()> {
    ensure!(
        layout.is_none_or(|layout| layout == Layout::SparseCoo),
        runtime,
        "expected layout torch.sparse_coo but got torch.{}",
        layout.unwrap_or_default().spelled_name()
    );
    FactoryOptions(dtype, None, device, pin_memory).spec(&[], DType::F32).map(drop)
}

/// Sizes that hold the largest coordinates, and the dense sizes of the values.
fn inferred(indices: &Tensor, values: &Tensor) -> Result<Dims> {
    check_shapes(indices, values)?;
    // bounded: by the rank.
    let none = || vec![(0, -1); indices.shape()[0] as usize];
    let mut shape = Dims::new();
    for (dim, (least, most)) in min_max(indices)?.unwrap_or_else(none).into_iter().enumerate() {
        ensure!(least >= 0, runtime, "found negative index {least} for dim {dim}");
        let size = most.checked_add(1).filter(|&size| size < 1 << 59);
        ensure!(size.is_some(), runtime, "index {most} for dim {dim} is too large for a size");
        shape.push(size.unwrap_or_default());
    }
    shape.extend_from_slice(&values.shape()[1..]);
    Ok(shape)
}

fn check_shapes(indices: &Tensor, values: &Tensor) -> Result<()> {
    ensure!(
        !indices.is_sparse() && !values.is_sparse(),
        runtime,
        "expected indices and values to be strided tensors, but got layouts {} and {}",
        indices.layout().spelled(),
        values.layout().spelled()
    );
    ensure!(
        matches!(indices.dtype(), DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8),
        runtime,
        "indices must be an int64 tensor, but got torch.{}",
        indices.dtype().spelled()
    );
    ensure!(
        indices.ndim() == 2,
        runtime,
        "indices must be sparse_dim x nnz, but got: {}",
        list(indices.shape())
    );
    ensure!(
        values.ndim() >= 1 && values.shape()[0] == indices.shape()[1],
        runtime,
        "indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}",
        indices.shape()[1],
        values.shape().first().copied().unwrap_or(0)
    );
    Ok(())
}

/// Refuses sizes that are not those of the coordinates and values together.
fn check_sizes(indices: &Tensor, values: &Tensor, size: &[i64]) -> Result<()> {
    check_shapes(indices, values)?;
    let (sparse, dense) = (indices.shape()[0] as usize, values.ndim() - 1);
    ensure!(
        size.len() == sparse + dense,
        runtime,
        "number of dimensions must be sparse_dim ({sparse}) + dense_dim ({dense}), but got {}",
        size.len()
    );
    ensure!(
        values.shape()[1..] == size[sparse..],
        runtime,
        "values has incorrect size, expected {}, got {}",
        list(&[&values.shape()[..1], &size[sparse..]].concat()),
        list(values.shape())
    );
    Ok(())
}

/// Refuses coordinates outside of the sizes.
fn check_within(cpu: Cpu, indices: &Tensor, size: &[i64]) -> Result<()> {
    let found = min_max_in_kernel(cpu, indices)?.unwrap_or_default();
    for (dim, (least, most)) in found.into_iter().enumerate() {
        ensure!(least >= 0, runtime, "found negative index {least} for dim {dim}");
        ensure!(
            most < size[dim],
            runtime,
            "size is inconsistent with indices: for dim {dim}, size is {} but found index {most}",
            size[dim]
        );
    }
    Ok(())
}

/// A tensor of coordinate lists: `indices` (`sparse_dim`, n) and `values` (n, *dense sizes), with the sizes that the largest
/// indices ask for.
#[op(
    "sparse_coo_tensor.indices(Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor",
    function_only, method = to_sparse_coo_of, not_differentiable(indices)
)]
impl SparseCooTensorOf {
    fn composite(
        indices: &Tensor,
        values: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        is_coalesced: Option<bool>,
    ) -> Result<Tensor> {
        check_options(dtype, layout, device, pin_memory)?;
        let values = listed(values)?;
        let size = inferred(indices, &values)?;
        Tensor::sparse_coo(indices, &typed(&values, dtype)?, &size, is_coalesced.unwrap_or(false))
    }
}

/// A tensor of coordinate lists of the sizes `size`: `indices` (`sparse_dim`, n), each within them, and `values` (n, *dense
/// sizes).
#[op(
    "sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor",
    function_only, method = to_sparse_coo_sized, not_differentiable(indices)
)]
impl SparseCooTensorSized {
    fn composite(
        indices: &Tensor,
        values: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        is_coalesced: Option<bool>,
    ) -> Result<Tensor> {
        check_options(dtype, layout, device, pin_memory)?;
        let values = typed(&listed(values)?, dtype)?;
        Tensor::sparse_coo(indices, &values, size, is_coalesced.unwrap_or(false))
    }
}

/// A single value as a list of one.
fn listed(values: &Tensor) -> Result<Tensor> {
    if values.ndim() == 0 { values.unsqueeze(0) } else { Ok(values.clone()) }
}

/// Zeros of the sizes `size`, all dimensions sparse, none of them specified.
#[op(
    "sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    function_only, method = sparse_coo_zeros
)]
impl SparseCooTensorEmpty {
    fn meta(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        check_options(dtype, layout, device, pin_memory)?;
        check_not_negative(size)?;
        let dtype = dtype.unwrap_or_else(crate::tensor::promote::default_dtype);
        Ok(TensorSpec::of(size, dtype).in_layout(Layout::SparseCoo))
    }
    fn cpu(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        let spec = SparseCooTensorEmpty::meta(size, dtype, layout, device, pin_memory)?;
        empty(size, size.len(), spec.dtype)
    }
}

fn check_not_negative(shape: &[i64]) -> Result<()> {
    ensure!(
        shape.iter().all(|&size| size >= 0),
        runtime,
        "Trying to create tensor with negative dimension: {}",
        list(shape)
    );
    Ok(())
}

/// No specified elements.
pub(super) fn empty(shape: &[i64], sparse_dim: usize, dtype: DType) -> Result<Tensor> {
    check_not_negative(shape)?;
    let mut sizes = Dims::from_slice(&[0]);
    sizes.extend_from_slice(&shape[sparse_dim..]);
    let coo = Coo {
        indices: Tensor::empty_of(&[sparse_dim as i64, 0], DType::I64)?,
        values: Tensor::empty_of(&sizes, dtype)?,
        is_coalesced: true,
    };
    Tensor::from_sparse(Sparse::Coo(coo), Layout::SparseCoo, shape)
}

fn typed(values: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    dtype.map_or_else(|| Ok(values.clone()), |dtype| values.to_dtype(dtype))
}

/// As `sparse_coo_tensor`; it is the op that is recorded.
#[op(
    "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor",
    function_only, node = "SparseCooTensorWithDimsAndTensors", method = sparse_coo_unsafe, batch = sparse_result, not_differentiable(indices)
)]
impl SparseCooTensorUnsafe {
    fn meta(
        indices: &Tensor,
        values: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
    ) -> Result<TensorSpec> {
        check_sizes(indices, values, size)?;
        let spec = TensorSpec::beside(values, size).computed_in(dtype.unwrap_or(values.dtype()));
        Ok(spec.in_layout(Layout::SparseCoo))
    }
    fn cpu(
        cpu: Cpu,
        indices: &Tensor,
        values: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        is_coalesced: Option<bool>,
    ) -> Result<Tensor> {
        check_sizes(indices, values, size)?;
        check_within(cpu, indices, size)?;
        let values = match dtype.filter(|&dtype| dtype != values.dtype()) {
            Some(dtype) => values.converted(cpu, dtype)?,
            None => values.detached()?,
        };
        let indices = if indices.dtype() == DType::I64 {
            indices.detached()?
        } else {
            indices.converted(cpu, DType::I64)?
        };
        // (Fewer than two are in order.)
        let is_coalesced = is_coalesced.unwrap_or(false) || values.shape()[0] < 2;
        ensure!(
            !is_coalesced || are_in_order(cpu, &indices, size)?,
            runtime,
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        );
        let coo = Coo { indices, values, is_coalesced };
        Tensor::from_sparse(Sparse::Coo(coo), Layout::SparseCoo, size)
    }
    fn vjp_values(grad: &Tensor, indices: &Tensor) -> Result<Tensor> {
        grad.values_at(indices, grad.is_sparse())
    }
    fn jvp(indices_p: &Tensor, values_t: &Tensor, size: &[i64]) -> Result<Tensor> {
        Tensor::sparse_coo(indices_p, values_t, size, false)
    }
}

impl Tensor {
    /// A sparse tensor of coordinate lists: `indices` (`sparse_dim`, n) of whole numbers within `size`, and `values` (n,
    /// *dense sizes), with history. With `is_coalesced` they must be in order, each once.
    ///
    /// ```
    /// use pullback::Tensor;
    /// # fn main() -> pullback::Result<()> {
    /// let coordinates = Tensor::from_slice(&[0_i64, 1, 1, 2, 0, 2], &[2, 3])?;
    /// let values = Tensor::from_slice(&[1.0, 2.0, 3.0], &[3])?;
    /// let matrix = Tensor::sparse_coo(&coordinates, &values, &[2, 3], false)?;
    /// assert_eq!(matrix.to_dense(None)?.to_vec::<f64>()?, [0.0, 0.0, 1.0, 2.0, 0.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `RuntimeError` if sizes, indices and values do not fit each other.
    #[track_caller]
    pub fn sparse_coo(
        indices: &Tensor,
        values: &Tensor,
        size: &[i64],
        is_coalesced: bool,
    ) -> Result<Tensor> {
        indices.sparse_coo_unsafe_with(values, size, None, None, None, None, Some(is_coalesced))
    }
}

/// The parts of a coordinate list; the error names the op.
fn coo(name: &str, tensor: &Tensor) -> Result<Coo> {
    check_coo(name, tensor)?;
    match &*parts(tensor)? {
        Sparse::Coo(coo) => Ok(coo.clone()),
        Sparse::Compressed(_) => unreachable!("the layout was checked"),
    }
}

/// The coordinates as they are stored: (`sparse_dim`, n).
#[op("_indices(Tensor self) -> Tensor", method_only, not_differentiable)]
impl SparseCooIndices {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&coo("_indices", self_)?.indices))
    }
    fn sparse_coo(self_: &Tensor) -> Result<Tensor> {
        coo("_indices", self_)?.indices.detached()
    }
}

/// The values as they are stored: (n, *dense sizes). Has no gradient.
#[op("_values(Tensor self) -> Tensor", method_only, not_differentiable)]
impl SparseCooValues {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&coo("_values", self_)?.values))
    }
    fn sparse_coo(self_: &Tensor) -> Result<Tensor> {
        coo("_values", self_)?.values.detached()
    }
}

/// The coordinates of a coalesced tensor: (`sparse_dim`, n).
#[op("indices(Tensor self) -> Tensor", method_only, method = indices, not_differentiable, sparse = itself)]
impl SparseIndices {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&coalesced_indices(self_)?))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        coalesced_indices(self_)?.detached()
    }
}

fn coalesced_indices(tensor: &Tensor) -> Result<Tensor> {
    let coo = coo("indices", tensor)?;
    ensure!(
        coo.is_coalesced,
        runtime,
        "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
    );
    Ok(coo.indices)
}

/// The values as they are stored, if each coordinate is there once.
fn coalesced_values(tensor: &Tensor) -> Result<Tensor> {
    ensure!(
        tensor.is_sparse(),
        runtime,
        "values expected sparse tensor layout but got {}",
        tensor.layout().spelled()
    );
    let parts = parts(tensor)?;
    if let Sparse::Coo(coo) = &*parts {
        ensure!(
            coo.is_coalesced,
            runtime,
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
        );
    }
    Ok(parts.values().clone())
}

/// The values of a coalesced tensor of coordinate lists, or those of a compressed one.
#[op("values(Tensor self) -> Tensor", method_only, method = values, sparse = itself)]
impl SparseValues {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&coalesced_values(self_)?))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        coalesced_values(self_)?.detached()
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        self_.with_sparse_values(grad)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor) -> Result<Tensor> {
        if self_p.layout() != Layout::SparseCoo {
            return self_t.values();
        }
        // (A tangent may specify its elements in another order, or other elements.)
        self_t.values_at(&self_p.indices()?, self_t.is_sparse())
    }
}

/// How many elements are specified, of equal coordinates each; of compressed batches, in each.
#[op("_nnz(Tensor self) -> int", method_only, data_dependent_output, not_differentiable)]
impl SparseCount {
    fn sparse_coo(self_: &Tensor) -> Result<i64> {
        Ok(coo("_nnz", self_)?.values.shape()[0])
    }
    fn sparse_csr(self_: &Tensor) -> Result<i64> {
        Ok(super::compressed::parts_of(self_)?.plain.shape().last().copied().unwrap_or(0))
    }
}

/// How many dimensions coordinates count; 0 of a strided tensor.
#[op("sparse_dim(Tensor self) -> int", method_only, data_dependent_output, not_differentiable, sparse = itself)]
impl SparseDim {
    fn cpu(self_: &Tensor) -> Result<i64> {
        Ok(match self_.sparse().as_deref() {
            None => 0,
            Some(Sparse::Coo(coo)) => coo.indices.shape()[0],
            Some(Sparse::Compressed(_)) => 2,
        })
    }
}

/// How many dimensions the values have of their own; all of a strided tensor.
#[op("dense_dim(Tensor self) -> int", method_only, data_dependent_output, not_differentiable, sparse = itself)]
impl DenseDim {
    fn cpu(self_: &Tensor) -> Result<i64> {
        Ok(match self_.sparse().as_deref() {
            None => self_.ndim() as i64,
            Some(Sparse::Coo(coo)) => coo.values.ndim() as i64 - 1,
            Some(Sparse::Compressed(parts)) => (self_.ndim() - parts.compressed.ndim() - 1) as i64,
        })
    }
}

/// Whether the coordinates are known to be in order, each once.
#[op("is_coalesced(Tensor self) -> bool", method_only, data_dependent_output, not_differentiable, sparse = itself)]
impl IsCoalesced {
    fn cpu(self_: &Tensor) -> Result<bool> {
        Ok(coo("is_coalesced", self_)?.is_coalesced)
    }
}

/// The tensor coalesced: coordinates in order, each once, values of equal ones added; the tensor itself if it is coalesced.
#[op("coalesce(Tensor(a) self) -> Tensor(a)", method_only)]
impl Coalesce {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        check_coo("coalesce", self_)?;
        if self_.is_coalesced()? { Ok(self_.clone()) } else { self_.coalesced() }
    }
}

/// A copy with coordinates in order, each once, values of equal ones added in the order in which they are stored.
#[op("_coalesce(Tensor self) -> Tensor", internal, dynamic_output_shape, method_only, node = "Coalesce", method = coalesced)]
impl Coalesced {
    fn sparse_coo(self_: &Tensor) -> Result<Tensor> {
        SparseElements::ordered(self_)?.into_coo()
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn jvp(self_t: &Tensor) -> Result<Tensor> {
        Ok(self_t.clone())
    }
}

/// Marks the tensor as coalesced (or not), without a check.
#[op("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", method_only, method = set_coalesced_)]
impl SetCoalesced {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        check_coo("_coalesced_", self_)?;
        Ok(TensorSpec::target(self_))
    }
    fn sparse_coo(self_: &Tensor, coalesced: bool) -> Result<Tensor> {
        let coo = coo("_coalesced_", self_)?;
        ensure!(
            !coalesced
                || super::coordinates::is_increasing(&SparseElements::of(self_)?.linear_indices()?),
            runtime,
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        );
        self_.set_sparse(Sparse::Coo(Coo { is_coalesced: coalesced, ..coo }));
        Ok(self_.clone())
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

fn check_resize(size: &[i64], sparse_dim: i64, dense_dim: i64) -> Result<usize> {
    ensure!(
        sparse_dim >= 0
            && dense_dim >= 0
            && sparse_dim.checked_add(dense_dim) == Some(size.len() as i64),
        runtime,
        "number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {}",
        size.len()
    );
    ensure!(
        size.iter().all(|&n| n >= 0),
        runtime,
        "Trying to create tensor with negative dimension: {}",
        list(size)
    );
    Ok(sparse_dim as usize)
}

/// Refuses sizes and kinds of dimensions that what is specified does not fit.
fn check_growth(
    self_: &Tensor,
    old: &Coo,
    size: &[i64],
    (sparse_dim, dense_dim): (i64, i64),
) -> Result<()> {
    let sparse = sparse_dim as usize;
    let (had_sparse, had_dense) = (old.indices.shape()[0], old.values.ndim() as i64 - 1);
    ensure!(
        had_sparse == sparse_dim && had_dense == dense_dim,
        runtime,
        "changing the number of sparse dimensions (from {had_sparse} to {sparse_dim}) or dense dimensions (from {had_dense} to {dense_dim}) on a non-empty sparse tensor is not supported."
    );
    ensure!(
        self_.shape()[..sparse].iter().zip(size).all(|(old, new)| new >= old),
        runtime,
        "shrinking the size of sparse dimensions (from {} to {}) on a non-empty sparse tensor is not supported.",
        list(&self_.shape()[..sparse]),
        list(&size[..sparse])
    );
    let grows = self_.shape()[sparse..].iter().zip(&size[sparse..]).all(|(old, new)| new >= old);
    ensure!(
        grows,
        runtime,
        "shrinking the size of dense dimensions (from {} to {}) on a non-empty sparse tensor is not supported.",
        list(&self_.shape()[sparse..]),
        list(&size[sparse..])
    );
    Ok(())
}

/// Gives it other sizes, of which the first `sparse_dim` are sparse. What is specified stays, so that the sizes must not
/// shrink, nor the kinds of dimensions change, unless nothing is.
#[op(
    "sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    method_only
)]
impl SparseResize {
    fn meta(self_: &Tensor, size: &[i64], sparse_dim: i64, dense_dim: i64) -> Result<TensorSpec> {
        check_resize(size, sparse_dim, dense_dim)?;
        let old = coo("sparse_resize_", self_)?;
        if old.values.shape()[0] > 0 {
            check_growth(self_, &old, size, (sparse_dim, dense_dim))?;
        }
        checked_numel(size)?;
        Ok(TensorSpec::beside(self_, size).in_layout(Layout::SparseCoo))
    }
    fn sparse_coo(
        cpu: Cpu,
        self_: &Tensor,
        size: &[i64],
        sparse_dim: i64,
        dense_dim: i64,
    ) -> Result<Tensor> {
        SparseResize::meta(self_, size, sparse_dim, dense_dim)?;
        let (sparse, old) = (sparse_dim as usize, coo("sparse_resize_", self_)?);
        if old.values.shape()[0] == 0 {
            let made = empty(size, sparse, self_.dtype())?;
            self_.reshape_sparse((*parts(&made)?).clone(), size)?;
            return Ok(self_.clone());
        }
        let mut sizes = Dims::from_slice(&old.values.shape()[..1]);
        sizes.extend_from_slice(&size[sparse..]);
        let mut values = crate::TensorSpec::beside(self_, &sizes).zeros()?;
        let whole = values.clone();
        for (dim, &size) in old.values.shape().iter().enumerate() {
            values = values.narrow(dim as i64, 0, size)?;
        }
        values.copy_data(cpu, &old.values)?;
        self_.reshape_sparse(Sparse::Coo(Coo { values: whole, ..old }), size)?;
        Ok(self_.clone())
    }
}

/// Gives it other sizes, of which the first `sparse_dim` are sparse; nothing is specified any more.
#[op(
    "sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    method_only
)]
impl SparseResizeAndClear {
    fn meta(self_: &Tensor, size: &[i64], sparse_dim: i64, dense_dim: i64) -> Result<TensorSpec> {
        check_resize(size, sparse_dim, dense_dim)?;
        checked_numel(size)?;
        Ok(TensorSpec::beside(self_, size).in_layout(Layout::SparseCoo))
    }
    fn sparse_coo(self_: &Tensor, size: &[i64], sparse_dim: i64, dense_dim: i64) -> Result<Tensor> {
        let sparse = check_resize(size, sparse_dim, dense_dim)?;
        let made = empty(size, sparse, self_.dtype())?;
        self_.reshape_sparse((*parts(&made)?).clone(), size)?;
        Ok(self_.clone())
    }
}
