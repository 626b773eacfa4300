//! From layout to layout.

use super::coordinates::{SparseElements, SparseFormat, dense_copy, rows_of, to_dense};
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::{Cpu, Layout};
use crate::{DType, Dims, Result, Tensor, TensorSpec};
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] = &[
    &TO_DENSE,
    &DENSE_OF,
    &TO_SPARSE,
    &TO_SPARSE_DIM,
    &SPARSE_OF,
    &TO_SPARSE_CSR,
    &TO_SPARSE_CSC,
    &TO_SPARSE_BSR,
    &TO_SPARSE_BSC,
];

/// The same elements in a strided tensor; zero where none are specified. Its gradient is given where elements are specified,
/// or with `masked_grad=False` everywhere.
#[op(
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    method_only
)]
impl ToDense {
    fn composite(
        self_: &Tensor,
        dtype: Option<DType>,
        masked_grad: Option<bool>,
    ) -> Result<Tensor> {
        match dtype.filter(|&dtype| dtype != self_.dtype()) {
            _ if !self_.is_sparse() => {
                dtype.map_or_else(|| Ok(self_.clone()), |dtype| self_.to_dtype(dtype))
            }
            None => self_.dense_of(None, masked_grad),
            Some(dtype) => self_.to_dtype(dtype)?.dense_of(None, masked_grad),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

/// What `to_dense` is for sparse tensors.
#[op("_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor", internal, method_only, node = "ToDense", method = dense_of, sparse = itself)]
impl DenseOf {
    fn meta(self_: &Tensor, dtype: Option<DType>) -> Result<TensorSpec> {
        Ok(TensorSpec::like(self_).computed_in(dtype.unwrap_or(self_.dtype())))
    }
    fn cpu(cpu: Cpu, self_: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let dense = if self_.is_sparse() { to_dense(self_)? } else { dense_copy(self_)? };
        match dtype.filter(|&dtype| dtype != self_.dtype()) {
            Some(dtype) => dense.converted(cpu, dtype),
            None => Ok(dense),
        }
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, masked_grad: Option<bool>) -> Result<Tensor> {
        if grad.is_sparse() || !self_.is_sparse() {
            Ok(grad.clone())
        } else if masked_grad.unwrap_or(true) {
            grad.sparse_mask(self_)
        } else {
            grad.laid_out_as(self_)
        }
    }
    fn jvp(self_t: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        self_t.to_dense(dtype)
    }
}

impl Tensor {
    /// The elements in the layout of `like`, with its blocks and dense dimensions.
    fn laid_out_as(&self, like: &Tensor) -> Result<Tensor> {
        let format = SparseFormat::of(like)?;
        let blocks = [format.block.0, format.block.1];
        let block: Option<&[i64]> = like.layout().is_blocked().then_some(&blocks);
        let dense = like.dense_dim()?;
        match like.layout() {
            Layout::SparseCoo => self.sparse_of(Some(like.sparse_dim()?), None, None, None),
            layout => self.sparse_of(None, Some(layout), block, Some(dense)),
        }
    }
}

/// The elements other than zero as coordinate lists, or in the sparse layout `layout`; of compressed layouts the last
/// `dense_dim` dimensions are dense, those before the two of the matrix count batches, and `blocksize` is for those of blocks.
#[op(
    "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    method_only
)]
impl ToSparse {
    fn composite(
        self_: &Tensor,
        layout: Option<Layout>,
        blocksize: Option<&[i64]>,
        dense_dim: Option<i64>,
    ) -> Result<Tensor> {
        let wanted = layout.unwrap_or(Layout::SparseCoo);
        if wanted == Layout::Strided && blocksize.is_none() {
            return self_.to_dense(None);
        }
        check_arguments(layout, blocksize)?;
        let is_same = wanted == self_.layout()
            && dense_dim.is_none()
            && blocksize.is_none_or(|size| {
                SparseFormat::of(self_).is_ok_and(|format| [format.block.0, format.block.1] == size)
            });
        if is_same {
            Ok(self_.clone())
        } else {
            self_.sparse_of(None, layout, blocksize, dense_dim)
        }
    }
}

/// The elements other than zero as coordinate lists; the first `sparse_dim` dimensions are sparse.
#[op("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", method_only)]
impl ToSparseDim {
    fn composite(self_: &Tensor, sparse_dim: i64) -> Result<Tensor> {
        if self_.is_sparse() && self_.layout() == Layout::SparseCoo {
            let own = self_.sparse_dim()?;
            ensure!(
                own == sparse_dim,
                runtime,
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported ({sparse_dim} and {own})"
            );
            return Ok(self_.clone());
        }
        self_.sparse_of(Some(sparse_dim), None, None, None)
    }
}

fn check_arguments(layout: Option<Layout>, blocksize: Option<&[i64]>) -> Result<()> {
    ensure!(
        layout != Some(Layout::Strided),
        runtime,
        "to_sparse: conversion to layout torch.strided is what to_dense() is for"
    );
    let is_blocked = layout.is_some_and(Layout::is_blocked);
    if let Some(size) = blocksize {
        ensure!(
            size.len() == 2,
            runtime,
            "to_sparse: blocksize needs to be a tuple of size 2, but got {}",
            size.len()
        );
        ensure!(
            is_blocked,
            runtime,
            "to_sparse: blocksize {size:?} is only for the layouts of blocks, but got layout torch.{}",
            layout.unwrap_or(Layout::SparseCoo).spelled_name()
        );
        ensure!(
            size.iter().all(|&n| n > 0),
            runtime,
            "to_sparse: blocksize needs to be positive, but got {size:?}"
        );
    } else {
        ensure!(
            !is_blocked,
            runtime,
            "to_sparse: layout torch.{} needs a blocksize",
            layout.unwrap_or_default().spelled_name()
        );
    }
    Ok(())
}

/// What `to_sparse` is.
#[op("_to_sparse(Tensor self, int? sparse_dim=None, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor", internal, dynamic_output_shape, method_only, node = "ToSparse", method = converted_to_sparse, batch = sparse_result, sparse = itself)]
impl SparseOf {
    fn cpu(
        self_: &Tensor,
        sparse_dim: Option<i64>,
        layout: Option<Layout>,
        blocksize: Option<&[i64]>,
        dense_dim: Option<i64>,
    ) -> Result<Tensor> {
        check_arguments(layout, blocksize)?;
        let layout = layout.unwrap_or(Layout::SparseCoo);
        let ndim = self_.ndim() as i64;
        let sparse = match sparse_dim {
            Some(count) => count,
            None => ndim - default_dense_dim(self_, dense_dim)?,
        };
        let least = if layout.is_compressed() { 2 } else { i64::from(ndim > 0) };
        ensure!(
            (least..=ndim).contains(&sparse),
            runtime,
            "to_sparse: expected {least} to {ndim} sparse dimensions of a tensor of {ndim} dimensions for layout torch.{}, but got {sparse}",
            layout.spelled_name()
        );
        let elements = if self_.is_sparse() {
            let elements = SparseElements::ordered(self_)?;
            ensure!(
                elements.sparse_dim() as i64 == sparse,
                runtime,
                "to_sparse: conversion from {} with {} sparse dimensions to {} with {sparse} is not supported",
                self_.layout().spelled(),
                elements.sparse_dim(),
                layout.spelled()
            );
            elements
        } else {
            specified(self_, sparse as usize)?
        };
        let block = blocksize.map_or((1, 1), |size| (size[0], size[1]));
        let batch = if layout.is_compressed() { sparse as usize - 2 } else { 0 };
        // (Compressed indices stay of their dtype.)
        let dtype = if self_.is_sparse() { SparseFormat::of(self_)?.dtype } else { DType::I64 };
        elements.in_format(layout, SparseFormat { block, batch, dtype })
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        match (grad.is_sparse(), self_.is_sparse()) {
            (true, false) => grad.to_dense(None),
            (true, true) if grad.layout() != self_.layout() => grad.laid_out_as(self_),
            _ => Ok(grad.clone()),
        }
    }
    fn jvp(
        self_t: &Tensor,
        sparse_dim: Option<i64>,
        layout: Option<Layout>,
        blocksize: Option<&[i64]>,
        dense_dim: Option<i64>,
    ) -> Result<Tensor> {
        self_t.sparse_of(sparse_dim, layout, blocksize, dense_dim)
    }
}

impl Tensor {
    fn sparse_of(
        &self,
        sparse_dim: Option<i64>,
        layout: Option<Layout>,
        blocksize: Option<&[i64]>,
        dense_dim: Option<i64>,
    ) -> Result<Tensor> {
        self.converted_to_sparse_with(sparse_dim, layout, blocksize, dense_dim)
    }
}

/// The number of dense dimensions by default: that of `self`, if it is sparse.
fn default_dense_dim(tensor: &Tensor, given: Option<i64>) -> Result<i64> {
    let own = if tensor.is_sparse() { tensor.dense_dim()? } else { 0 };
    let dense = given.unwrap_or(own);
    ensure!(
        (0..=tensor.ndim() as i64).contains(&dense),
        runtime,
        "to_sparse: dense_dim {dense} is not among the {} dimensions",
        tensor.ndim()
    );
    Ok(dense)
}

/// The coordinates of a strided tensor where anything is not zero.
fn specified(tensor: &Tensor, sparse_dim: usize) -> Result<SparseElements> {
    let shape: Dims = tensor.shape().into();
    let (sizes, dense) = shape.split_at(sparse_dim);
    let mut flat = Dims::from_slice(&[sizes.iter().product()]);
    let rows = dense_copy(tensor)?;
    let width: i64 = dense.iter().product();
    let is_set = match width {
        1 => rows.view(&flat)?,
        _ => rows.view(&[flat[0], width])?.to_dtype(DType::Bool)?.any_dim(1, false)?,
    };
    let numbers = is_set.nonzero()?.t()?;
    flat.extend_from_slice(dense);
    let values = rows.view(&flat)?.index_select(0, &numbers.reshape(&[-1])?)?;
    let numbers = rows_of(&numbers)?.remove(0);
    let indices = super::coordinates::unravelled(&numbers, sizes)?;
    Ok(SparseElements { indices, values, shape: shape.clone(), is_coalesced: true })
}

/// The elements other than zero in compressed rows: (*batch, rows, columns, *dense).
#[op("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", method_only)]
impl ToSparseCsr {
    fn composite(self_: &Tensor, dense_dim: Option<i64>) -> Result<Tensor> {
        compressed(self_, Layout::SparseCsr, None, dense_dim)
    }
}

/// The elements other than zero in compressed columns: (*batch, rows, columns, *dense).
#[op("to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor", method_only)]
impl ToSparseCsc {
    fn composite(self_: &Tensor, dense_dim: Option<i64>) -> Result<Tensor> {
        compressed(self_, Layout::SparseCsc, None, dense_dim)
    }
}

/// The blocks in which anything is other than zero, in compressed rows: (*batch, rows, columns, *dense).
#[op("to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor", method_only)]
impl ToSparseBsr {
    fn composite(self_: &Tensor, blocksize: &[i64], dense_dim: Option<i64>) -> Result<Tensor> {
        compressed(self_, Layout::SparseBsr, Some(blocksize), dense_dim)
    }
}

/// The blocks in which anything is other than zero, in compressed columns: (*batch, rows, columns, *dense).
#[op("to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor", method_only)]
impl ToSparseBsc {
    fn composite(self_: &Tensor, blocksize: &[i64], dense_dim: Option<i64>) -> Result<Tensor> {
        compressed(self_, Layout::SparseBsc, Some(blocksize), dense_dim)
    }
}

fn compressed(
    tensor: &Tensor,
    layout: Layout,
    blocksize: Option<&[i64]>,
    dense_dim: Option<i64>,
) -> Result<Tensor> {
    if tensor.ndim() < 2 {
        bail!(
            runtime,
            "to_sparse: a tensor of layout torch.{} has two dimensions at least, but got {}",
            layout.spelled_name(),
            tensor.ndim()
        );
    }
    tensor.to_sparse_with(Some(layout), blocksize, dense_dim)
}
