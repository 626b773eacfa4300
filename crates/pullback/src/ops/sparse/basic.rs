//! Copies, conversions of dtype and fresh tensors of the same kind.

use super::{coo, one, parts, tensor};
use crate::dispatch::Form;
use crate::dispatch::{Arg, OpDef, Outputs, check_cast, receiver};
use crate::error::ensure;
use crate::tensor::{Compressed, Coo, Cpu, Layout, Sparse, shape::list};
use crate::{DType, Result, Tensor};

/// `detach`, `alias`: another handle to the same parts.
pub(crate) fn alias(_: Cpu, _: &'static OpDef, _: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    one(tensor(args, 0).detached()?)
}

fn copied(cpu: Cpu, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let parts = match &*parts(tensor)? {
        Sparse::Coo(coo) => Sparse::Coo(Coo {
            indices: coo.indices.dense_copy(cpu)?,
            values: coo.values.converted(cpu, dtype)?,
            is_coalesced: coo.is_coalesced,
        }),
        Sparse::Compressed(parts) => Sparse::Compressed(Compressed {
            compressed: parts.compressed.dense_copy(cpu)?,
            plain: parts.plain.dense_copy(cpu)?,
            values: parts.values.converted(cpu, dtype)?,
        }),
    };
    Tensor::from_sparse(parts, tensor.layout(), tensor.shape())
}

/// `clone`.
pub(crate) fn clone(cpu: Cpu, _: &'static OpDef, _: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let from = tensor(args, 0);
    one(copied(cpu, from, from.dtype())?)
}

fn options(args: &[Arg<'_>]) -> (Option<DType>, Option<Layout>) {
    let dtype = args.iter().find_map(|arg| if let Arg::DType(d) = arg { Some(*d) } else { None });
    let layout = args.iter().find_map(|arg| if let Arg::Layout(l) = arg { Some(*l) } else { None });
    (dtype, layout)
}

/// `_to_copy`: another dtype, or another layout.
pub(crate) fn convert(
    cpu: Cpu,
    _: &'static OpDef,
    _: Form<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    let from = tensor(args, 0);
    let (dtype, layout) = options(args);
    let copy = copied(cpu, from, dtype.unwrap_or(from.dtype()))?;
    match layout.filter(|&layout| layout != from.layout()) {
        None => one(copy),
        Some(Layout::Strided) => one(copy.to_dense(None)?),
        Some(layout) => one(copy.to_sparse_with(Some(layout), None, None)?),
    }
}

/// `zeros_like`, `empty_like`: nothing is specified. (Another layout may be asked for.)
pub(crate) fn blank(cpu: Cpu, _: &'static OpDef, _: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let like = tensor(args, 0);
    let (dtype, layout) = options(args);
    let (dtype, layout) = (dtype.unwrap_or(like.dtype()), layout.unwrap_or(like.layout()));
    if layout == Layout::Strided {
        return one(crate::TensorSpec::of(like.shape(), dtype).zeros()?);
    }
    let empty = emptied(cpu, like)?.converted(cpu, dtype)?;
    let made = Tensor::from_sparse(empty, like.layout(), like.shape())?;
    if layout == like.layout() {
        return one(made);
    }
    one(made.to_sparse_with(Some(layout), None, None)?)
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
pub(crate) fn zero(cpu: Cpu, _: &'static OpDef, _: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let target = receiver(args);
    target.set_sparse(emptied(cpu, target)?);
    one(target.clone())
}

/// `copy_`: the specified elements of another sparse tensor.
pub(crate) fn copy(cpu: Cpu, _: &'static OpDef, _: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
    let (target, source) = (receiver(args), tensor(args, 1));
    ensure!(
        target.is_sparse() && source.is_sparse(),
        runtime,
        "copy_() between dense and sparse Tensors is not implemented! Found self type = {} and src type = {}",
        target.layout().spelled(),
        source.layout().spelled()
    );
    ensure!(
        target.layout() == source.layout(),
        runtime,
        "torch.copy_: copy of sparse tensors having different layouts is not supported. self layout is {} and src layout is {}",
        target.layout().spelled(),
        source.layout().spelled()
    );
    ensure!(
        target.shape() == source.shape(),
        runtime,
        "torch.copy_: only sparse tensors of one size can be copied, but self size is {} and src size is {}",
        list(target.shape()),
        list(source.shape())
    );
    check_cast(source.dtype(), target.dtype())?;
    target.set_sparse((*parts(&copied(cpu, source, target.dtype())?)?).clone());
    one(target.clone())
}
