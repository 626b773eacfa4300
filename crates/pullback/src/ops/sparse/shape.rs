//! Changes of shape: an op that is a view of a strided tensor gives a sparse tensor with
//! coordinates of its own.
//!
//! Along a sparse dimension coordinates are changed, along a dense one the values; of compressed layouts only the transpose
//! of the matrix keeps its layout, other results are coordinate lists.

use super::coordinates::{
    SparseElements, SparseFormat, in_order, index_vector, list_of, summed, taken,
};
use crate::error::{bail, ensure};
use crate::interrupt::WorkCounter;
use crate::tensor::Cpu;
use crate::tensor::promote;
use crate::tensor::shape::{list, wrap_dim};
use crate::{DType, Dims, Result, Tensor};
use pullback_kernels::memory;

/// The kind of a dimension.
enum Dim {
    Sparse(usize),
    /// A dense dimension, with its index among the dimensions of the values.
    Dense(i64),
}

fn dim_of(elements: &SparseElements, dim: usize) -> Dim {
    let sparse = elements.sparse_dim();
    if dim < sparse { Dim::Sparse(dim) } else { Dim::Dense((dim - sparse) as i64 + 1) }
}

/// The coordinates of a tensor, and the dimension that a number names.
fn along(input: &Tensor, dim: i64) -> Result<(SparseElements, usize)> {
    let dim = wrap_dim(dim, input.ndim())?;
    Ok((SparseElements::of(input)?, dim))
}

/// `t`.
pub(crate) fn transposed(self_: &Tensor) -> Result<Tensor> {
    let rank = self_.ndim();
    ensure!(
        rank <= 2,
        runtime,
        "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {rank}D"
    );
    if rank < 2 { self_.detached() } else { exchanged(self_, 0, 1) }
}

/// `transpose`.
pub(crate) fn swapped(self_: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    let rank = self_.ndim();
    let (a, b) = (wrap_dim(dim0, rank)?, wrap_dim(dim1, rank)?);
    if a == b { self_.detached() } else { exchanged(self_, a, b) }
}

/// `t_`, `transpose_` of a coordinate list: the tensor itself is changed; other tensors over its
/// memory are not.
pub(crate) fn swap_own(self_: &Tensor, swapped: &Tensor) -> Result<Tensor> {
    self_.reshape_sparse((*super::parts(swapped)?).clone(), swapped.shape())?;
    Ok(self_.clone())
}

/// Two dimensions exchanged.
fn exchanged(input: &Tensor, a: usize, b: usize) -> Result<Tensor> {
    let rank = input.ndim();
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(a, b);
    let transposed = reordered(SparseElements::of(input)?, &order)?;
    if !input.layout().is_compressed() {
        return transposed.into_coo();
    }
    let format = SparseFormat::of(input)?;
    let is_matrix = a.min(b) == format.batch && a.max(b) == format.batch + 1;
    let block = if is_matrix { (format.block.1, format.block.0) } else { format.block };
    let layout = if is_matrix { input.layout().transposed() } else { input.layout() };
    transposed.in_format(layout, SparseFormat { block, ..format })
}

/// `permute`.
pub(crate) fn permute(self_: &Tensor, dims: &[i64]) -> Result<Tensor> {
    ensure!(
        dims.len() == self_.ndim(),
        runtime,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
        self_.ndim(),
        dims.len()
    );
    let mut order = Vec::new();
    for &dim in dims {
        let dim = wrap_dim(dim, self_.ndim())?;
        ensure!(!order.contains(&dim), runtime, "permute(): duplicate dims are not allowed.");
        order.push(dim);
    }
    reordered(SparseElements::of(self_)?, &order)?.into_coo()
}

/// Dimension `i` of the result is dimension `order[i]`; sparse dimensions stay sparse.
fn reordered(mut elements: SparseElements, order: &[usize]) -> Result<SparseElements> {
    let sparse = elements.sparse_dim();
    ensure!(
        order[..sparse].iter().all(|&dim| dim < sparse),
        runtime,
        "transpose: dimensions of a sparse tensor can be exchanged within its {sparse} sparse dimensions, or within the dense ones behind them, but the order {order:?} mixes them"
    );
    let shape: Dims = order.iter().map(|&dim| elements.shape[dim]).collect();
    let row = |&dim: &usize| std::mem::take(&mut elements.indices[dim]);
    let indices = order[..sparse].iter().map(row).collect();
    let mut dense = Dims::from_slice(&[0]);
    dense.extend(order[sparse..].iter().map(|&dim| (dim - sparse) as i64 + 1));
    let values = elements.values.permute(&dense)?;
    let is_same = order[..sparse].is_sorted();
    Ok(SparseElements { indices, values, shape, is_coalesced: elements.is_coalesced && is_same })
}

/// `select`.
pub(crate) fn select(self_: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    ensure!(self_.ndim() > 0, index, "select() cannot be applied to a 0-dim tensor.");
    let (mut elements, dim) = along(self_, dim)?;
    let size = elements.shape[dim];
    ensure!(
        index >= -size && index < size,
        index,
        "select(): index {index} out of range for tensor of size {} at dimension {dim}",
        list(&elements.shape)
    );
    let at = if index < 0 { index + size } else { index };
    let kind = dim_of(&elements, dim);
    elements.shape.remove(dim);
    let row = match kind {
        Dim::Sparse(row) => row,
        Dim::Dense(in_values) => {
            let values = elements.values.select(in_values, at)?;
            return SparseElements { values, ..elements }.into_coo();
        }
    };
    let kept = memory::collect((0..elements.count()).filter(|&i| elements.indices[row][i] == at))?;
    let mut rest = chosen(&elements, &kept)?;
    rest.indices.remove(row);
    if rest.indices.is_empty() { total(&rest) } else { rest.into_coo() }
}

/// `unbind`.
pub(crate) fn unbind(self_: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
    ensure!(self_.ndim() > 0, index, "Dimension specified as {dim} but tensor has no dimensions");
    let count = self_.shape()[wrap_dim(dim, self_.ndim())?];
    let mut slices = Vec::new();
    for index in 0..count {
        memory::push(&mut slices, select(self_, dim, index)?)?;
    }
    Ok(slices)
}

/// Some of the coordinates, in their order.
fn chosen(elements: &SparseElements, kept: &[usize]) -> Result<SparseElements> {
    Ok(SparseElements {
        indices: taken(&elements.indices, kept)?,
        values: elements.values.index_select(0, &index_vector(kept)?)?,
        shape: elements.shape.clone(),
        is_coalesced: elements.is_coalesced,
    })
}

/// Slices of steps along one dimension, the half-open range of indices as given.
fn sliced(elements: SparseElements, dim: usize, start: i64, end: i64, step: i64) -> Result<Tensor> {
    let length = (end - start).max(0);
    let count = length / step + i64::from(length % step != 0);
    match dim_of(&elements, dim) {
        Dim::Sparse(row) => {
            let is_kept = |index: i64| index >= start && index < end && (index - start) % step == 0;
            let kept = memory::collect(
                (0..elements.count()).filter(|&i| is_kept(elements.indices[row][i])),
            )?;
            let mut rest = chosen(&elements, &kept)?;
            for index in &mut rest.indices[row] {
                *index = (*index - start) / step;
            }
            rest.shape[dim] = count;
            rest.into_coo()
        }
        Dim::Dense(in_values) => {
            let values =
                elements.values.slice(in_values, Some(start), Some(end), step)?.contiguous()?;
            let mut shape = elements.shape.clone();
            shape[dim] = count;
            SparseElements { values, shape, ..elements }.into_coo()
        }
    }
}

/// `slice`.
pub(crate) fn slice(
    self_: &Tensor,
    dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Result<Tensor> {
    ensure!(self_.ndim() > 0, index, "slice() cannot be applied to a 0-dim tensor.");
    let (elements, dim) = along(self_, dim)?;
    let size = elements.shape[dim];
    ensure!(step > 0, runtime, "slice step must be positive");
    let clip = |v: i64| (if v < 0 { v.saturating_add(size) } else { v }).clamp(0, size);
    let start = clip(start.unwrap_or(0));
    let end = clip(end.unwrap_or(i64::MAX)).max(start);
    sliced(elements, dim, start, end, step)
}

/// `unsqueeze`.
pub(crate) fn unsqueeze(self_: &Tensor, dim: i64) -> Result<Tensor> {
    let dim = wrap_dim(dim, self_.ndim() + 1)?;
    let mut elements = SparseElements::of(self_)?;
    if dim <= elements.sparse_dim() {
        let zeros = memory::filled(0, elements.count())?;
        elements.indices.insert(dim, zeros);
    } else {
        let in_values = (dim - elements.sparse_dim()) as i64 + 1;
        elements.values = elements.values.unsqueeze(in_values)?;
    }
    elements.shape.insert(dim, 1);
    elements.into_coo()
}

/// `squeeze`: removes all dimensions of size 1.
pub(crate) fn squeeze(self_: &Tensor) -> Result<Tensor> {
    let all: Dims = (0..self_.ndim() as i64).collect();
    squeeze_dims(self_, &all)
}

/// `squeeze` along one dimension, which is removed if its size is 1.
pub(crate) fn squeeze_dim(self_: &Tensor, dim: i64) -> Result<Tensor> {
    squeeze_dims(self_, &[dim])
}

/// `squeeze` along some dimensions: those of size 1 are removed.
pub(crate) fn squeeze_dims(self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
    let mut gone: Vec<usize> =
        dim.iter().map(|&dim| wrap_dim(dim, self_.ndim())).collect::<Result<_>>()?;
    gone.sort_unstable();
    gone.dedup();
    let mut elements = SparseElements::of(self_)?;
    // (A tensor without dimensions takes 0 and -1 for one, but has none.)
    for dim in gone.into_iter().rev().filter(|&dim| self_.shape().get(dim) == Some(&1)) {
        match dim_of(&elements, dim) {
            Dim::Sparse(row) => drop(elements.indices.remove(row)),
            Dim::Dense(in_values) => elements.values = elements.values.squeeze_dim(in_values)?,
        }
        elements.shape.remove(dim);
    }
    if elements.sparse_dim() == 0 && self_.ndim() > 0 {
        return total(&elements);
    }
    elements.into_coo()
}

/// The result where no dimension is sparse any more: the sum of the values, strided.
fn total(elements: &SparseElements) -> Result<Tensor> {
    let sum = summed(&elements.values, &memory::filled(0, elements.count())?, 1)?;
    sum.view(&sum.shape()[1..])
}

/// `expand`: dimensions of size 1 are repeated.
pub(crate) fn expand(self_: &Tensor, size: &[i64]) -> Result<Tensor> {
    let (input, sizes) = (self_, size);
    let mut elements = SparseElements::of(input)?;
    ensure!(
        sizes.len() >= input.ndim(),
        runtime,
        "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
        sizes.len(),
        input.ndim()
    );
    for _ in input.ndim()..sizes.len() {
        let zeros = memory::filled(0, elements.count())?;
        elements.indices.insert(0, zeros);
        elements.shape.insert(0, 1);
    }
    let mut whole = Dims::new();
    for (dim, &size) in sizes.iter().enumerate() {
        let own = elements.shape[dim];
        let size = if size == -1 && dim + input.ndim() >= sizes.len() { own } else { size };
        ensure!(
            size >= 0 && (size == own || own == 1),
            runtime,
            "The expanded size of the tensor ({size}) must match the existing size ({own}) at non-singleton dimension {dim}.  Target sizes: {}.  Tensor sizes: {}",
            list(sizes),
            list(input.shape())
        );
        whole.push(size);
    }
    crate::tensor::checked_numel(&whole)?;
    let wider = elements.sizes().iter().zip(&whole).any(|(own, size)| own != size);
    if wider {
        elements = repeated(elements, &whole)?;
    }
    let mut value_sizes = Dims::from_slice(&elements.values.shape()[..1]);
    value_sizes.extend_from_slice(&whole[elements.sparse_dim()..]);
    elements.values = elements.values.expand(&value_sizes, false)?.contiguous()?;
    elements.shape = whole;
    elements.into_coo()
}

/// The coordinates, each repeated as often as the sparse dimensions of size 1 grow.
fn repeated(elements: SparseElements, whole: &[i64]) -> Result<SparseElements> {
    let grown: Vec<usize> =
        (0..elements.sparse_dim()).filter(|&dim| elements.shape[dim] != whole[dim]).collect();
    // bounded: by the rank.
    let sizes: Vec<i64> = grown.iter().map(|&dim| whole[dim]).collect();
    let copies: i64 = sizes.iter().product();
    if elements.count() == 0 {
        return Ok(elements);
    }
    // There may be no memory for so many coordinates, which is found out before any is written.
    drop(Tensor::empty_of(&[copies, elements.count() as i64, sizes.len() as i64 + 1], DType::I64)?);
    let numbers = memory::collect(0..copies)?;
    let shifts = super::coordinates::unravelled(&numbers, &sizes)?;
    let count = elements.count();
    let mut from = memory::with_capacity(count * copies as usize)?;
    for at in 0..count {
        memory::extend(&mut from, std::iter::repeat_n(at, copies as usize))?;
    }
    let mut more = chosen(&elements, &from)?;
    for (shift, &dim) in shifts.iter().zip(&grown) {
        let filled = more.indices[dim].chunks_exact_mut(shift.len().max(1));
        filled.for_each(|indices| indices.copy_from_slice(shift));
    }
    more.is_coalesced = false;
    Ok(more)
}

/// `index_select`.
pub(crate) fn index_select(self_: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    ensure!(self_.ndim() > 0, index, "index_select() cannot be applied to a 0-dim tensor.");
    ensure!(
        index.ndim() <= 1 && !index.is_sparse() && !index.dtype().is_floating_point(),
        index,
        "index_select(): Index is supposed to be a vector of integers"
    );
    ensure!(self_.is_sparse(), runtime, "index_select(): the index must not be sparse");
    let (elements, dim) = along(self_, dim)?;
    let size = elements.shape[dim];
    let wanted = index.to_vec::<i64>()?;
    for &index in &wanted {
        ensure!(
            index >= -size && index < size,
            index,
            "index_select(): index contains {index} that is out of range for tensor of size {} at dimension {dim}",
            list(&elements.shape)
        );
    }
    let wrapped = |index: i64| if index < 0 { index + size } else { index };
    let wanted = memory::collect(wanted.into_iter().map(wrapped))?;
    let mut shape = elements.shape.clone();
    shape[dim] = wanted.len() as i64;
    let row = match dim_of(&elements, dim) {
        Dim::Sparse(row) => row,
        Dim::Dense(in_values) => {
            let values = elements.values.index_select(in_values, &list_of(&wanted)?)?;
            return SparseElements { values, shape, ..elements }.into_coo();
        }
    };
    // For each index of the result: the coordinates that have the index of the input which it
    // selects.
    let order = in_order(&elements.indices[row])?;
    let (mut kept, mut new) = (Vec::new(), Vec::new());
    let mut pace = WorkCounter::new();
    for (at, &index) in wanted.iter().enumerate() {
        pace.spend(256);
        let first = order.partition_point(|&i| elements.indices[row][i] < index);
        for &i in order[first..].iter().take_while(|&&i| elements.indices[row][i] == index) {
            memory::push(&mut kept, i)?;
            memory::push(&mut new, at as i64)?;
        }
    }
    let mut made = chosen(&elements, &kept)?;
    made.indices[row] = new;
    made.shape = shape;
    made.is_coalesced = false;
    if elements.is_coalesced { made.coalesced()?.into_coo() } else { made.into_coo() }
}

/// `narrow_copy`: the indices of a dimension from `start` on.
pub(crate) fn narrow_copy(self_: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    let (_, from) = crate::ops::shape::view_spec::check_narrow(self_, dim, start, length)?;
    let places = memory::collect(from..from + length)?;
    index_select(self_, dim, &Tensor::from_slice(&places, &[length])?)
}

/// `cat`.
pub(crate) fn cat(cpu: Cpu, tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    if let Some(position) = tensors.iter().position(|t| !t.is_sparse()) {
        bail!(
            runtime,
            "Concatenating sparse tensors, but a dense tensor was found at position {position}."
        );
    }
    if let Some(position) = tensors.iter().position(|t| t.ndim() == 0) {
        bail!(runtime, "zero-dimensional tensor (at position {position}) cannot be concatenated");
    }
    let all: Vec<SparseElements> = tensors.iter().map(SparseElements::of).collect::<Result<_>>()?;
    let Some(first) = all.first() else {
        bail!(value, "torch.cat(): expected a non-empty list of Tensors");
    };
    let dim = wrap_dim(dim, first.shape.len())?;
    let dtype = promote::result_type(&tensors.iter().collect::<Vec<_>>())?;
    let mut shape = first.shape.clone();
    shape[dim] = 0;
    // bounded: by the rank.
    let mut indices = vec![Vec::new(); first.sparse_dim()];
    let mut values = Vec::new();
    for (position, elements) in all.iter().enumerate() {
        ensure!(
            elements.sparse_dim() == first.sparse_dim()
                && elements.shape.len() == first.shape.len(),
            runtime,
            "cat(): All tensors must have the same sparse_dim and dense_dim: {}, {}, but tensor at position {position} has {}, {}.",
            first.sparse_dim(),
            first.shape.len() - first.sparse_dim(),
            elements.sparse_dim(),
            elements.shape.len() - elements.sparse_dim()
        );
        let fits = (0..shape.len()).all(|at| at == dim || elements.shape[at] == shape[at]);
        ensure!(
            fits,
            runtime,
            "cat(): All tensors must have the same shape: {} (except in the concatenating dimension), but found shape: {} at position {position}",
            list(&first.shape),
            list(&elements.shape)
        );
        for (row, (all, own)) in indices.iter_mut().zip(&elements.indices).enumerate() {
            let shift = if row == dim { shape[dim] } else { 0 };
            memory::extend(all, own.iter().map(|index| index + shift))?;
        }
        values.push(elements.values.to_dtype(dtype)?);
        shape[dim] += elements.shape[dim];
    }
    if let Dim::Dense(in_values) = dim_of(first, dim) {
        values = spread(cpu, values, in_values)?;
    }
    let values = crate::ops::shape::join::cat(&values, 0)?;
    SparseElements { indices, values, shape, is_coalesced: false }.into_coo()
}

/// The values one after the other along a dense dimension, each with zeros in the positions of the
/// others.
fn spread(cpu: Cpu, values: Vec<Tensor>, dim: i64) -> Result<Vec<Tensor>> {
    // bounded: by the number of tensors.
    let widths: Vec<i64> = values.iter().map(|v| v.shape()[dim as usize]).collect();
    let total: i64 = widths.iter().sum();
    let mut before = 0;
    let mut all = Vec::new();
    for (value, width) in values.into_iter().zip(widths) {
        let mut sizes = Dims::from_slice(value.shape());
        sizes[dim as usize] = total;
        let wide = crate::TensorSpec::beside(&value, &sizes).zeros()?;
        wide.narrow(dim, before, width)?.copy_data(cpu, &value)?;
        before += width;
        all.push(wide);
    }
    Ok(all)
}

/// `stack`.
pub(crate) fn stack(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let rank = tensors.first().map_or(0, Tensor::ndim);
    let dim = wrap_dim(dim, rank + 1)? as i64;
    for (at, tensor) in tensors.iter().enumerate() {
        ensure!(
            tensor.shape() == tensors[0].shape(),
            runtime,
            "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {at}",
            list(tensors[0].shape()),
            list(tensor.shape())
        );
    }
    let columns = tensors.iter().map(|tensor| tensor.unsqueeze(dim)).collect::<Result<Vec<_>>>()?;
    crate::ops::shape::join::cat(&columns, dim)
}
