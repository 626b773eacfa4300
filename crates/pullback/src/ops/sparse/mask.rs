//! Elements at the coordinates that another sparse tensor specifies.

use super::coordinates::{SparseElements, SparseFormat, dense_copy, index_vector};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::tensor::shape::list;
use crate::tensor::{Coo, Sparse};
use crate::{DType, Dims, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] = &[&SPARSE_MASK, &VALUES_AT];

/// The elements of `self` at the coordinates that the sparse tensor `mask` specifies, in its layout: those that a sparse `self`
/// does not specify are zeros.
#[op("sparse_mask(Tensor self, Tensor mask) -> Tensor", method_only, not_differentiable(mask))]
impl SparseMask {
    fn composite(self_: &Tensor, mask: &Tensor) -> Result<Tensor> {
        ensure!(
            mask.is_sparse(),
            runtime,
            "sparse_mask(): expected the mask to have sparse layout but got {}",
            mask.layout().spelled()
        );
        ensure!(
            mask.shape() == self_.shape(),
            runtime,
            "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}",
            list(self_.shape()),
            list(mask.shape())
        );
        let in_order = match &*super::parts(mask)? {
            Sparse::Coo(Coo { indices, is_coalesced: true, .. }) => Some(indices.clone()),
            _ => None,
        };
        if let Some(indices) = in_order {
            let indices = indices.clone_tensor(None)?;
            let values = self_.values_at(&indices, self_.is_sparse())?;
            return Tensor::sparse_coo(&indices, &values, self_.shape(), true);
        }
        let elements = SparseElements::ordered(mask)?;
        let format = SparseFormat::of(mask)?;
        let indices = super::coordinates::table(&elements.indices, elements.count())?;
        let values = self_.values_at(&indices, self_.is_sparse())?;
        let is_plain = mask.layout().is_compressed() && !mask.layout().is_blocked();
        if format.batch == 0 && is_plain {
            return in_order_of(mask, &elements, &values);
        }
        // (A mask that does not say that its coordinates are in order gives a result that does not say so either.)
        let is_compressed = mask.layout().is_compressed();
        let found = Tensor::sparse_coo(&indices, &values, self_.shape(), is_compressed)?;
        if is_compressed {
            let blocks = [format.block.0, format.block.1];
            let block: Option<&[i64]> = mask.layout().is_blocked().then_some(&blocks);
            return found.to_sparse_with(Some(mask.layout()), block, None);
        }
        Ok(found)
    }
}

/// Values found row by row, in the layout of `mask`: its own indices, which specify zeros too.
fn in_order_of(mask: &Tensor, elements: &SparseElements, values: &Tensor) -> Result<Tensor> {
    if mask.layout().compresses_rows() == Some(true) {
        return mask.with_sparse_values(values);
    }
    // Column by column.
    let stored = SparseElements::of(mask)?.linear_indices()?;
    let wanted = memory::collect(elements.find(&stored)?.into_iter().flatten())?;
    mask.with_sparse_values(&values.index_select(0, &index_vector(&wanted)?)?)
}

/// The values of `self` at the coordinates `indices` (`sparse_dim`, n): (n, *dense sizes). A sparse `self`, as `is_sparse` says
/// that it is, is zero where nothing is specified.
#[op("_values_at(Tensor self, Tensor indices, bool is_sparse) -> Tensor", internal, function_only, not_differentiable(indices), batch = values_at(self, indices), sparse = itself)]
impl ValuesAt {
    fn meta(self_: &Tensor, indices: &Tensor, is_sparse: bool) -> Result<TensorSpec> {
        ensure!(
            is_sparse == self_.is_sparse(),
            runtime,
            "_values_at: is_sparse is {is_sparse}, but the tensor has layout {}",
            self_.layout().spelled()
        );
        check_coordinates(self_, indices)?;
        let mut shape = Dims::from_slice(&indices.shape()[1..]);
        shape.extend_from_slice(&self_.shape()[indices.shape()[0] as usize..]);
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(self_: &Tensor, indices: &Tensor, is_sparse: bool) -> Result<Tensor> {
        ValuesAt::meta(self_, indices, is_sparse)?;
        let wanted = checked_numbers(self_, indices)?;
        if is_sparse {
            return SparseElements::ordered(self_)?.values_at(&wanted.to_vec()?);
        }
        let flat = flattened(self_.shape(), indices);
        // (Without a copy where elements lie in order.)
        let all = if self_.is_contiguous() { self_.detached()? } else { dense_copy(self_)? };
        all.view(&flat)?.index_select(0, &wanted)
    }
    fn vjp_self(
        grad: &Tensor,
        indices: &Tensor,
        self_shape: &[i64],
        is_sparse: bool,
    ) -> Result<Tensor> {
        if is_sparse {
            return Tensor::sparse_coo(indices, grad, self_shape, false);
        }
        let targets = indices.linear_indices(self_shape, false)?;
        let zeros = TensorSpec::beside(grad, &flattened(self_shape, indices)).zeros()?;
        zeros.index_add(0, &targets, grad)?.view(self_shape)
    }
    fn jvp(self_t: &Tensor, indices_p: &Tensor, is_sparse: bool) -> Result<Tensor> {
        self_t.values_at(indices_p, is_sparse)
    }
}

/// The sizes with the dimensions that coordinates are given for as one.
fn flattened(shape: &[i64], indices: &Tensor) -> Dims {
    let (sparse, dense) = shape.split_at(indices.shape()[0] as usize);
    let mut flat = Dims::from_slice(&[sparse.iter().product()]);
    flat.extend_from_slice(dense);
    flat
}

/// Refuses coordinates that are no lists for the tensor's first dimensions.
fn check_coordinates(tensor: &Tensor, indices: &Tensor) -> Result<()> {
    ensure!(
        !indices.is_sparse() && indices.dtype() == DType::I64 && indices.ndim() == 2,
        runtime,
        "coordinates must be a strided int64 matrix, but got sizes {} of torch.{}",
        list(indices.shape()),
        indices.dtype().spelled()
    );
    let (shape, lists) = (tensor.shape(), indices.shape()[0] as usize);
    ensure!(
        lists <= shape.len(),
        runtime,
        "there are {lists} lists of coordinates for a tensor of sizes {}",
        list(shape)
    );
    Ok(())
}

/// The numbers of coordinates in row-major order, which must lie within the tensor's sizes.
fn checked_numbers(tensor: &Tensor, indices: &Tensor) -> Result<Tensor> {
    check_coordinates(tensor, indices)?;
    indices.linear_indices(tensor.shape(), false)
}
