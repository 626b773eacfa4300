//! Copies, conversions of dtype and fresh tensors of the same kind.

use super::coordinates::SparseFormat;
use super::{coo, parts};
use crate::dispatch::check_cast;
use crate::error::{bail, ensure};
use crate::ops::creation::factory::{FactoryOptions, OF_STRIDED_ONLY};
use crate::tensor::{Compressed, Cpu, Layout, Sparse, shape::list};
use crate::{DType, Device, MemoryFormat, Result, Scalar, Tensor, TensorSpec};

/// `detach`, `alias`: another handle to the same parts.
pub(crate) fn alias(self_: &Tensor) -> Result<Tensor> {
    self_.detached()
}

fn copied(cpu: Cpu, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let parts = parts(tensor)?.copied(cpu, dtype)?;
    Tensor::from_sparse(parts, tensor.layout(), tensor.shape())
}

/// `clone`.
pub(crate) fn clone(cpu: Cpu, self_: &Tensor) -> Result<Tensor> {
    copied(cpu, self_, self_.dtype())
}

/// `_to_copy`: another dtype, or another layout.
pub(crate) fn convert(
    cpu: Cpu,
    self_: &Tensor,
    dtype: Option<DType>,
    layout: Option<Layout>,
) -> Result<Tensor> {
    let copy = copied(cpu, self_, dtype.unwrap_or(self_.dtype()))?;
    match layout.filter(|&layout| layout != self_.layout()) {
        None => Ok(copy),
        Some(Layout::Strided) => copy.to_dense(None),
        Some(layout) => copy.to_sparse_with(Some(layout), None, None),
    }
}

/// A sparse tensor with the same specified elements, whose values are those that `make` returns for
/// its own.
pub(in crate::ops) fn with_values(
    self_: &Tensor,
    make: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let parts = parts(self_)?;
    let values = make(parts.values())?;
    Tensor::from_sparse(parts.with_values(values), self_.layout(), self_.shape())
}

/// `zeros_like`: nothing is specified. (Another layout may be asked for.)
pub(crate) fn blank(
    cpu: Cpu,
    self_: &Tensor,
    dtype: Option<DType>,
    layout: Option<Layout>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let (dtype, layout) = (dtype.unwrap_or(self_.dtype()), layout.unwrap_or(self_.layout()));
    if memory_format.is_some() && layout != Layout::Strided {
        bail!(runtime, "{OF_STRIDED_ONLY}");
    }
    if layout == Layout::Strided {
        return TensorSpec::of(self_.shape(), dtype).zeros();
    }
    let empty = emptied(cpu, self_)?.converted(cpu, dtype)?;
    let made = Tensor::from_sparse(empty, self_.layout(), self_.shape())?;
    if layout == self_.layout() {
        return Ok(made);
    }
    let (rows, columns) = SparseFormat::of(self_)?.block;
    let blocks = [rows, columns];
    let is_blocked = layout.is_blocked() && self_.layout().is_blocked();
    made.to_sparse_with(Some(layout), is_blocked.then_some(&blocks[..]), None)
}

/// `empty_like`: of compressed layouts zeros in the places that `self` specifies, as PyTorch keeps them, else as `zeros_like`.
pub(crate) fn unset(
    cpu: Cpu,
    self_: &Tensor,
    dtype: Option<DType>,
    layout: Option<Layout>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let keeps_places = self_.layout().is_compressed()
        && memory_format.is_none()
        && layout.is_none_or(|layout| layout == self_.layout());
    if keeps_places {
        let dtype = dtype.unwrap_or(self_.dtype());
        return with_values(self_, |values| TensorSpec::of(values.shape(), dtype).zeros());
    }
    blank(cpu, self_, dtype, layout, memory_format)
}

/// A strided tensor of the shape of a sparse one, whose elements are not set, for ops that draw numbers where that layout is
/// asked for. (In the layout of coordinates PyTorch draws none either.)
pub(in crate::ops) fn strided_like(
    self_: &Tensor,
    dtype: Option<DType>,
    layout: Option<Layout>,
) -> Result<Tensor> {
    let layout = layout.unwrap_or(self_.layout());
    ensure!(
        layout == Layout::Strided,
        not_implemented,
        "random numbers in every element of a tensor of layout {} cannot be given in the layout {}: ask for layout=torch.strided",
        self_.layout().spelled(),
        layout.spelled()
    );
    TensorSpec::of(self_.shape(), dtype.unwrap_or(self_.dtype())).empty()
}

/// `full_like`: of compressed layouts `value` in the places that `self` specifies, or a strided tensor of it where
/// that layout is asked for. (A coordinate list of it would specify every element; PyTorch makes none either.)
pub(crate) fn filled_like(
    cpu: Cpu,
    self_: &Tensor,
    value: Scalar,
    dtype: Option<DType>,
    layout: Option<Layout>,
) -> Result<Tensor> {
    let (dtype, layout) = (dtype.unwrap_or(self_.dtype()), layout.unwrap_or(self_.layout()));
    let full = |shape: &[i64]| {
        let made = TensorSpec::of(shape, dtype).holding(value)?.empty()?;
        made.fill_with(cpu, value)?;
        Ok(made)
    };
    if layout == Layout::Strided {
        return full(self_.shape());
    }
    ensure!(
        layout == self_.layout() && layout.is_compressed(),
        not_implemented,
        "a number in every element of a tensor of layout {} cannot be given in the layout {}: ask for layout=torch.strided",
        self_.layout().spelled(),
        layout.spelled()
    );
    with_values(self_, |values| full(values.shape()))
}

/// `ones_like`: `full_like` of one.
pub(crate) fn ones_like(
    cpu: Cpu,
    self_: &Tensor,
    dtype: Option<DType>,
    layout: Option<Layout>,
) -> Result<Tensor> {
    filled_like(cpu, self_, Scalar::Int(1), dtype, layout)
}

/// `fill_` of compressed layouts: `value` in the places that `self` specifies.
pub(crate) fn fill(cpu: Cpu, self_: &Tensor, value: Scalar) -> Result<Tensor> {
    value.check_fits(self_.dtype())?;
    parts(self_)?.values().fill_with(cpu, value)?;
    Ok(self_.clone())
}

/// `new_zeros`, `new_empty`: a tensor of another size, in the layout of `self` unless another is asked for, that specifies nothing.
pub(crate) fn blank_beside(
    self_: &Tensor,
    size: &[i64],
    dtype: Option<DType>,
    layout: Option<Layout>,
    device: Option<Device>,
) -> Result<Tensor> {
    let options = FactoryOptions(dtype, layout.or(Some(self_.layout())), device, None);
    let spec = options.blank_beside(self_, size)?;
    if spec.layout == Layout::Strided { spec.zeros() } else { spec.empty() }
}

/// Parts of a tensor of the same kind that specifies nothing.
fn emptied(cpu: Cpu, like: &Tensor) -> Result<Sparse> {
    Ok(match &*parts(like)? {
        Sparse::Coo(coo) => {
            let sparse_dim = coo.indices.shape()[0] as usize;
            let made = coo::empty(like.shape(), sparse_dim, like.dtype())?;
            (*parts(&made)?).clone()
        }
        Sparse::Compressed(parts) => {
            let batch = parts.compressed.ndim() as i64 - 1;
            Sparse::Compressed(Compressed {
                compressed: parts.compressed.zeros_like()?,
                plain: parts.plain.narrow(batch, 0, 0)?.dense_copy(cpu)?,
                values: parts.values.narrow(batch, 0, 0)?.dense_copy(cpu)?,
            })
        }
    })
}

/// `zero_`: nothing is specified any more.
pub(crate) fn zero(cpu: Cpu, self_: &Tensor) -> Result<Tensor> {
    self_.set_sparse(emptied(cpu, self_)?);
    Ok(self_.clone())
}

/// `copy_`: the specified elements of another sparse tensor.
pub(crate) fn copy(cpu: Cpu, self_: &Tensor, src: &Tensor) -> Result<Tensor> {
    ensure!(
        self_.is_sparse() && src.is_sparse(),
        runtime,
        "copy_() between dense and sparse Tensors is not implemented! Found self type = {} and src type = {}",
        self_.layout().spelled(),
        src.layout().spelled()
    );
    ensure!(
        self_.layout() == src.layout(),
        runtime,
        "torch.copy_: copy of sparse tensors having different layouts is not supported. self layout is {} and src layout is {}",
        self_.layout().spelled(),
        src.layout().spelled()
    );
    ensure!(
        self_.shape() == src.shape(),
        runtime,
        "torch.copy_: only sparse tensors of one size can be copied, but self size is {} and src size is {}",
        list(self_.shape()),
        list(src.shape())
    );
    check_cast(src.dtype(), self_.dtype())?;
    self_.set_sparse((*parts(&copied(cpu, src, self_.dtype())?)?).clone());
    Ok(self_.clone())
}
