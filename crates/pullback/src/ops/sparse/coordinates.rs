//! The specified elements of sparse tensors of any layout: sorting, coalescing, finding and compressing their coordinates.
//!
//! A coordinate consists of an index for each of the leading, sparse dimensions; its value may have further, dense dimensions.
//! Coordinates are compared by their linear index, their position in row-major order, which fits 64 bits because sizes are
//! bounded. Invariant: coordinates lie within the sizes.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::interrupt::{self, WorkCounter};
use crate::ops::shape::join::cat;
use crate::tensor::{Compressed, Coo, Cpu, Layout, Sparse, shape::list};
use crate::{DType, Dims, Error, ErrorKind, MemoryFormat, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] = &[&LINEAR_INDICES];

/// The number of coordinates whose linear indices are computed together.
const NEAR: usize = 1024;

/// The specified elements of a sparse tensor: their coordinates and values, and the sizes of the tensor.
pub(super) struct SparseElements {
    /// The coordinates, a list for each sparse dimension.
    pub(super) indices: Vec<Vec<i64>>,
    /// (n, *dense sizes).
    pub(super) values: Tensor,
    /// The sizes of all dimensions.
    pub(super) shape: Dims,
    /// Whether the coordinates are in order, each once.
    pub(super) is_coalesced: bool,
}

impl SparseElements {
    /// The elements of a sparse tensor of any layout.
    pub(super) fn of(tensor: &Tensor) -> Result<SparseElements> {
        let parts = super::parts(tensor)?;
        match &*parts {
            Sparse::Coo(coo) => {
                let indices = rows_of(&coo.indices)?;
                check_written(&indices, tensor.shape())?;
                Ok(SparseElements {
                    indices,
                    values: coo.values.clone(),
                    shape: tensor.shape().into(),
                    is_coalesced: coo.is_coalesced,
                })
            }
            Sparse::Compressed(compressed) => unpacked(tensor, compressed),
        }
    }
    /// The elements of a sparse tensor of any layout, coalesced.
    pub(super) fn ordered(tensor: &Tensor) -> Result<SparseElements> {
        SparseElements::of(tensor)?.coalesced()
    }
    /// The number of specified elements.
    pub(super) fn count(&self) -> usize {
        self.values.shape()[0] as usize
    }
    pub(super) fn sparse_dim(&self) -> usize {
        self.indices.len()
    }
    /// The sizes of the sparse dimensions.
    pub(super) fn sizes(&self) -> &[i64] {
        &self.shape[..self.indices.len()]
    }
    /// The sizes of the dense dimensions.
    pub(super) fn dense_sizes(&self) -> &[i64] {
        &self.shape[self.indices.len()..]
    }
    /// The linear index of each coordinate.
    pub(super) fn linear_indices(&self) -> Result<Vec<i64>> {
        linear_indices(&self.indices, self.sizes(), self.count())
    }

    /// Sorts the elements and adds the values of equal coordinates, in the order in which they are stored.
    pub(super) fn coalesced(self) -> Result<SparseElements> {
        if self.is_coalesced {
            return Ok(self);
        }
        let numbers = self.linear_indices()?;
        if is_increasing(&numbers) {
            return Ok(SparseElements { is_coalesced: true, ..self });
        }
        let order = in_order(&numbers)?;
        let mut pace = WorkCounter::new();
        let mut kept: Vec<usize> = memory::with_capacity(numbers.len())?;
        let mut targets = memory::filled(0_i64, numbers.len())?;
        for &at in &order {
            pace.spend(4);
            if kept.last().is_none_or(|&last| numbers[last] != numbers[at]) {
                kept.push(at);
            }
            targets[at] = kept.len() as i64 - 1;
        }
        let values = if kept.len() == numbers.len() {
            self.values.index_select(0, &index_vector(&order)?)?
        } else {
            summed(&self.values, &targets, kept.len() as i64)?
        };
        let indices = taken(&self.indices, &kept)?;
        Ok(SparseElements { indices, values, is_coalesced: true, ..self })
    }

    /// Elements with these coordinates and other values.
    pub(super) fn with_values(self, values: Tensor) -> SparseElements {
        SparseElements { values, ..self }
    }

    /// For each of the linear indices `wanted`, the position of its element here; the elements must be coalesced.
    pub(super) fn find(&self, wanted: &[i64]) -> Result<Vec<Option<usize>>> {
        let numbers = self.linear_indices()?;
        let mut pace = WorkCounter::new();
        let index = |number| {
            pace.spend(64);
            numbers.binary_search(number).ok()
        };
        Ok(memory::collect(wanted.iter().map(index))?)
    }

    /// The values at the linear indices `wanted`, zero where no element is specified; the elements must be coalesced.
    pub(super) fn values_at(&self, wanted: &[i64]) -> Result<Tensor> {
        let found = self.find(wanted)?;
        // One more value, a zero, stands for elements that are not specified.
        let mut sizes = Dims::from_slice(self.values.shape());
        sizes[0] = 1;
        let zero = TensorSpec::of(&sizes, self.values.dtype()).zeros()?;
        let with_zero = cat(&[self.values.clone(), zero], 0)?;
        let missing = self.count() as i64;
        let index = |at: &Option<usize>| at.map_or(missing, |at| at as i64);
        with_zero.index_select(0, &list_of(&memory::collect(found.iter().map(index))?)?)
    }

    /// A tensor of coordinate lists (COO) with these elements.
    pub(super) fn into_coo(self) -> Result<Tensor> {
        let indices = table(&self.indices, self.count())?;
        let coo = Coo { indices, values: self.values, is_coalesced: self.is_coalesced };
        Tensor::from_sparse(Sparse::Coo(coo), Layout::SparseCoo, &self.shape)
    }
    /// A tensor with these elements in the layout of `like`, with its blocks, batches and dtype of indices.
    pub(super) fn in_layout_of(self, like: &Tensor) -> Result<Tensor> {
        let format = SparseFormat::of(like)?;
        self.in_format(like.layout(), format)
    }
    /// A tensor with these elements in a layout.
    pub(super) fn in_format(self, layout: Layout, format: SparseFormat) -> Result<Tensor> {
        if layout == Layout::SparseCoo { self.into_coo() } else { packed(self, layout, format) }
    }
    /// A strided tensor with these elements, zero elsewhere.
    pub(super) fn to_dense(&self) -> Result<Tensor> {
        let targets = list_of(&self.linear_indices()?)?;
        scattered(&self.values, &targets, &self.shape, self.sparse_dim(), self.is_coalesced)
    }
}

/// The choices that a layout leaves open: the sizes of blocks, the number of batch dimensions, the
/// dtype of indices.
#[derive(Clone, Copy)]
pub(super) struct SparseFormat {
    pub(super) block: (i64, i64),
    pub(super) batch: usize,
    pub(super) dtype: DType,
}

impl SparseFormat {
    /// The format of blocks of one element without batches.
    pub(super) const PLAIN: SparseFormat =
        SparseFormat { block: (1, 1), batch: 0, dtype: DType::I64 };

    /// The format of a sparse tensor.
    pub(super) fn of(tensor: &Tensor) -> Result<SparseFormat> {
        Ok(match &*super::parts(tensor)? {
            Sparse::Coo(_) => SparseFormat::PLAIN,
            Sparse::Compressed(Compressed { compressed, values, .. }) => {
                let batch = compressed.ndim() - 1;
                let block = match values.shape()[batch + 1..] {
                    [rows, columns, ..] if tensor.layout().is_blocked() => (rows, columns),
                    _ => (1, 1),
                };
                SparseFormat { block, batch, dtype: compressed.dtype() }
            }
        })
    }
}

/// A one-dimensional tensor.
pub(super) fn list_of(numbers: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(numbers, &[numbers.len() as i64])
}

/// Positions as a one-dimensional tensor.
pub(super) fn index_vector(positions: &[usize]) -> Result<Tensor> {
    list_of(&memory::collect(positions.iter().map(|&at| at as i64))?)
}

/// The positions of numbers in ascending order, equal numbers in their original order.
pub(super) fn in_order(numbers: &[i64]) -> Result<Vec<usize>> {
    let mut order = memory::collect(0..numbers.len())?;
    let mut pace = WorkCounter::new();
    order.sort_unstable_by_key(|&at| {
        pace.spend(1);
        (numbers[at], at)
    });
    Ok(order)
}

/// Applies `row` to the list of indices of each dimension.
pub(super) fn each_row(
    indices: &[Vec<i64>],
    row: impl Fn(&[i64]) -> Result<Vec<i64>>,
) -> Result<Vec<Vec<i64>>> {
    // bounded: by the rank.
    indices.iter().map(|indices| row(indices)).collect()
}

/// The coordinates at the positions `kept`.
pub(super) fn taken(indices: &[Vec<i64>], kept: &[usize]) -> Result<Vec<Vec<i64>>> {
    each_row(indices, |row| Ok(memory::collect(kept.iter().map(|&at| row[at]))?))
}

/// Lists of `count` numbers each, as the rows of a matrix.
pub(super) fn table(rows: &[Vec<i64>], count: usize) -> Result<Tensor> {
    let spec = TensorSpec::of(&[rows.len() as i64, count as i64], DType::I64);
    spec.written(|table| {
        let to = table.as_slice_mut::<i64>().unwrap_or_default();
        to.chunks_exact_mut(count.max(1)).zip(rows).for_each(|(to, row)| to.copy_from_slice(row));
    })
}

/// The rows of a matrix of indices.
pub(super) fn rows_of(indices: &Tensor) -> Result<Vec<Vec<i64>>> {
    let count = indices.shape()[1] as usize;
    let all = indices.to_vec::<i64>()?;
    if count == 0 {
        // bounded: by the rank.
        return Ok(vec![Vec::new(); indices.shape()[0] as usize]);
    }
    if all.len() == count {
        return Ok(vec![all]);
    }
    // bounded: by the rank.
    all.chunks(count).map(|row| Ok(memory::copied(row)?)).collect()
}

/// The linear index of each coordinate.
pub(super) fn linear_indices(
    indices: &[Vec<i64>],
    sizes: &[i64],
    count: usize,
) -> Result<Vec<i64>> {
    let mut numbers = memory::filled(0_i64, count)?;
    for (row, &size) in indices.iter().zip(sizes) {
        for part in interrupt::chunks(count) {
            for (number, &index) in numbers[part.clone()].iter_mut().zip(&row[part]) {
                *number = *number * size + index;
            }
        }
    }
    Ok(numbers)
}

/// A matrix of indices in memory order: the indices of one dimension after those of another.
fn in_memory(cpu: Cpu, indices: &Tensor) -> Result<Tensor> {
    if indices.dtype() == DType::I64 {
        indices.dense(cpu)
    } else {
        indices.converted(cpu, DType::I64)?.dense(cpu)
    }
}

/// The smallest and the largest index of each dimension, as [`min_max`] gives them, for kernels: a call of an op takes longer
/// than a short list.
pub(super) fn min_max_in_kernel(cpu: Cpu, indices: &Tensor) -> Result<Option<Vec<(i64, i64)>>> {
    let memory = in_memory(cpu, indices)?;
    let view = memory.view_ref(cpu);
    let count = indices.shape()[1] as usize;
    let all = view.as_slice::<i64>().filter(|_| count > 0);
    let wider = |(least, most): (i64, i64), &index: &i64| (least.min(index), most.max(index));
    // bounded: by the number of dimensions
    Ok(all
        .map(|all| all.chunks(count).map(|row| row.iter().fold((row[0], row[0]), wider)).collect()))
}

/// The smallest and the largest index of each dimension, for a matrix of indices; `None` if it has no columns.
pub(super) fn min_max(indices: &Tensor) -> Result<Option<Vec<(i64, i64)>>> {
    if indices.shape()[1] == 0 {
        return Ok(None);
    }
    let [least, most] = indices.aminmax_with(Some(1), false)?;
    Ok(Some(least.to_vec::<i64>()?.into_iter().zip(most.to_vec::<i64>()?).collect()))
}

/// Whether the columns of a matrix of indices, coordinates of a tensor of sizes `shape`, are in order, each once.
pub(super) fn are_in_order(cpu: Cpu, indices: &Tensor, shape: &[i64]) -> Result<bool> {
    let numbers = indices.linear_indices(shape, true)?;
    Ok(is_increasing(numbers.view_ref(cpu).as_slice().unwrap_or_default()))
}

/// The linear index, the position in row-major order, of each column of `indices` (`sparse_dim`, n) in the first `sparse_dim`
/// dimensions of a tensor of sizes `size`. An index outside of its dimension is an error: `RuntimeError` if they are the stored
/// indices of a sparse tensor, as `is_stored` says, which were within the sizes when it was made; else `IndexError`.
#[op("_linear_indices(Tensor indices, int[] size, bool is_stored) -> Tensor", internal, function_only, not_differentiable, batch = one_by_one)]
impl LinearIndices {
    fn meta(indices: &Tensor, size: &[i64]) -> Result<TensorSpec> {
        ensure!(
            !indices.is_sparse()
                && indices.ndim() == 2
                && indices.shape()[0] as usize <= size.len(),
            runtime,
            "_linear_indices: expected a strided matrix of at most {} rows, but got sizes {}",
            size.len(),
            list(indices.shape())
        );
        Ok(TensorSpec::of(&indices.shape()[1..], DType::I64).on(indices.device()))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        indices: &Tensor,
        size: &[i64],
        is_stored: bool,
    ) -> Result<()> {
        let memory = in_memory(cpu, indices)?;
        let view = memory.view_ref(cpu);
        let mut written = result.view_mut(cpu);
        let numbers = written.as_slice_mut::<i64>().unwrap_or_default();
        let sizes = &size[..indices.shape()[0] as usize];
        write_linear_indices(numbers, view.as_slice().unwrap_or_default(), sizes, |dim, index| {
            if is_stored { written_beyond(dim, index, size) } else { beyond(dim, index, size) }
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |indices: Tensor, size: &[i64], is_stored: bool| {
            Sample::new([indices.into(), size.into(), Value::Bool(is_stored)]).without_gradient()
        };
        vec![
            of(s.integers(&[2, 5], 0, 3), &[3, 4, 2], false),
            of(s.integers(&[2, 0], 0, 3), &[3, 4], true),
            of(s.integers(&[0, 3], 0, 3), &[2], false),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let size: &[i64] = &[3, 4];
        let of = |is_stored: bool, kind, phrase| {
            let indices = s.integers(&[2, 5], 4, 6);
            let sample = Sample::new([indices.into(), size.into(), Value::Bool(is_stored)]);
            InvalidSample::new(sample, kind, phrase)
        };
        vec![
            of(false, ErrorKind::Index, "is out of bounds for dimension 0 with size 3"),
            of(true, ErrorKind::Runtime, "were written to"),
        ]
    }
}

/// Writes the linear index of each coordinate to `numbers`; `coordinates` has the indices of one dimension after those of
/// another. An index that is not below its size gives the error that `outside` makes of its dimension and the index.
fn write_linear_indices(
    numbers: &mut [i64],
    coordinates: &[i64],
    sizes: &[i64],
    outside: impl Fn(usize, i64) -> Error,
) -> Result<()> {
    let count = numbers.len();
    // (In blocks that stay in the nearest memory from one list of coordinates to the next.)
    for (block, numbers) in numbers.chunks_mut(NEAR).enumerate() {
        interrupt::check_every::<4>(block);
        numbers.fill(0);
        for (dim, &size) in sizes.iter().enumerate() {
            let row = &coordinates[dim * count + block * NEAR..][..numbers.len()];
            let mut all_within = true;
            for (number, &index) in numbers.iter_mut().zip(row) {
                all_within &= (index as u64) < size as u64;
                *number = number.wrapping_mul(size).wrapping_add(index);
            }
            if !all_within {
                let wrong = row.iter().find(|&&index| !(0..size).contains(&index));
                return Err(outside(dim, wrong.copied().unwrap_or_default()));
            }
        }
    }
    Ok(())
}

/// A strided tensor of `shape` with `values` at the linear indices `numbers` of its `sparse_dim` sparse dimensions, zero
/// elsewhere. Values of equal coordinates, which there may be unless `is_coalesced`, are added in their order.
fn scattered(
    values: &Tensor,
    numbers: &Tensor,
    shape: &[i64],
    sparse_dim: usize,
    is_coalesced: bool,
) -> Result<Tensor> {
    let room = room_for(values, shape[..sparse_dim].iter().product())?;
    let flat = if is_coalesced {
        room.index_copy(0, numbers, values)?
    } else {
        room.index_add(0, numbers, values)?
    };
    flat.view(shape)
}

/// A sparse tensor as a strided one.
pub(super) fn to_dense(tensor: &Tensor) -> Result<Tensor> {
    let (shape, parts) = (tensor.shape(), super::parts(tensor)?);
    let Sparse::Coo(coo) = &*parts else { return SparseElements::of(tensor)?.to_dense() };
    let sparse_dim = coo.indices.shape()[0] as usize;
    let numbers = coo.indices.linear_indices(shape, true)?;
    scattered(&coo.values, &numbers, shape, sparse_dim, coo.is_coalesced)
}

/// Replaces the numbers by their quotients by `size`; returns the remainders.
fn taken_off(numbers: &mut [i64], size: i64, quotient: impl Fn(i64) -> i64) -> Result<Vec<i64>> {
    let mut pace = WorkCounter::new();
    let rest = |number: &mut i64| {
        pace.spend(2);
        let above = quotient(*number);
        let rest = *number - above * size;
        *number = above;
        rest
    };
    Ok(memory::collect(numbers.iter_mut().map(rest))?)
}

/// The coordinates of linear indices: the list of indices of each dimension.
pub(super) fn unravelled(numbers: &[i64], sizes: &[i64]) -> Result<Vec<Vec<i64>>> {
    let Some((_, inner)) = sizes.split_first() else { return Ok(Vec::new()) };
    let is_short = sizes.iter().try_fold(1_u32, |n, &size| n.checked_mul(size.try_into().ok()?));
    let mut rest = memory::copied(numbers)?;
    let mut rows: Vec<Vec<i64>> = Vec::new();
    for &size in inner.iter().rev() {
        // (Division by 32 bits takes a fraction of the time.)
        rows.push(if is_short.is_some() {
            taken_off(&mut rest, size, |number| i64::from(number as u32 / size as u32))?
        } else {
            taken_off(&mut rest, size, |number| number / size)?
        });
    }
    rows.push(rest);
    rows.reverse();
    Ok(rows)
}

pub(super) fn is_increasing(numbers: &[i64]) -> bool {
    // (Computed without a branch for each.)
    let together = |(some, next): (&[i64], &[i64])| {
        some.iter().zip(next).fold(true, |holds, (a, b)| holds & (a < b))
    };
    numbers.chunks(NEAR).zip(numbers.get(1..).unwrap_or_default().chunks(NEAR)).all(together)
}

/// Values added up at `targets` of `count`.
pub(super) fn summed(values: &Tensor, targets: &[i64], count: i64) -> Result<Tensor> {
    room_for(values, count)?.index_add(0, &list_of(targets)?, values)
}

/// Zeros for `count` values like these.
fn room_for(values: &Tensor, count: i64) -> Result<Tensor> {
    let mut sizes = Dims::from_slice(values.shape());
    sizes[0] = count;
    TensorSpec::beside(values, &sizes).zeros()
}

/// The sizes of rows and columns, and of dense dimensions, behind `batch` dimensions.
fn matrix_of(shape: &[i64], batch: usize) -> (i64, i64, &[i64]) {
    (shape[batch], shape[batch + 1], &shape[batch + 2..])
}

/// The elements of a compressed tensor, blocks element by element.
fn unpacked(tensor: &Tensor, parts: &Compressed) -> Result<SparseElements> {
    let format = SparseFormat::of(tensor)?;
    let by_rows = tensor.layout().compresses_rows() == Some(true);
    let shape = tensor.shape();
    let batches: i64 = shape[..format.batch].iter().product();
    let (rows, columns, dense) = matrix_of(shape, format.batch);
    let (block_rows, block_columns) = format.block;
    let major = if by_rows { rows / block_rows } else { columns / block_columns };
    let (starts, minors) = (parts.compressed.to_vec::<i64>()?, parts.plain.to_vec::<i64>()?);
    let each = parts.plain.shape()[format.batch] as usize;
    let room = minors.len() * (block_rows * block_columns) as usize;
    let mut numbers = memory::with_capacity(room)?;
    let mut pace = WorkCounter::new();
    for batch in 0..batches {
        let starts = &starts[(batch * (major + 1)) as usize..][..=major as usize];
        let minors = &minors[batch as usize * each..][..each];
        for (line, ends) in starts.windows(2).enumerate() {
            let line_of = usize::try_from(ends[0]).ok().zip(usize::try_from(ends[1]).ok());
            let in_line = line_of.and_then(|(first, last)| minors.get(first..last));
            let size = if by_rows { columns / block_columns } else { rows / block_rows };
            let is_valid = |list: &&[i64]| list.iter().all(|minor| (0..size).contains(minor));
            let Some(in_line) = in_line.filter(is_valid) else {
                bail!(
                    runtime,
                    "the indices of a {} tensor of sizes {} were written to: line {line} reaches from {} to {} of {each} values, in columns or rows below {size}",
                    tensor.layout().spelled(),
                    list(shape),
                    ends[0],
                    ends[1]
                );
            };
            pace.spend(8 + in_line.len());
            for &minor in in_line {
                let (row, column) =
                    if by_rows { (line as i64, minor) } else { (minor, line as i64) };
                for x in 0..block_rows {
                    let row = batch * rows + row * block_rows + x;
                    let first = row * columns + column * block_columns;
                    memory::extend(&mut numbers, first..first + block_columns)?;
                }
            }
        }
    }
    let mut sizes = Dims::from_slice(&[-1]);
    if numbers.is_empty() {
        sizes[0] = 0;
    }
    sizes.extend_from_slice(dense);
    let values = parts.values.reshape(&sizes)?;
    let is_coalesced = is_increasing(&numbers);
    let indices = unravelled(&numbers, &shape[..format.batch + 2])?;
    Ok(SparseElements { indices, values, shape: shape.into(), is_coalesced })
}

/// A compressed tensor with these elements; blocks are zero where no element is specified.
fn packed(elements: SparseElements, layout: Layout, format: SparseFormat) -> Result<Tensor> {
    let (batch, (block_rows, block_columns)) = (format.batch, format.block);
    let shape = elements.shape.clone();
    ensure!(
        elements.sparse_dim() == batch + 2,
        runtime,
        "a {} tensor of sizes {} has {} sparse dimensions, but they are {}",
        layout.spelled(),
        list(&shape),
        batch + 2,
        elements.sparse_dim()
    );
    let elements = elements.coalesced()?;
    let (rows, columns, dense) = matrix_of(&shape, batch);
    let room = block_size((rows, columns), format.block)?;
    let by_rows = layout.compresses_rows() == Some(true);
    let sizes = [rows / block_rows, columns / block_columns];
    let (major, minor) = if by_rows { (sizes[0], sizes[1]) } else { (sizes[1], sizes[0]) };
    let batches: i64 = shape[..batch].iter().product();
    let numbers = elements.linear_indices()?;
    let (blocks, inner) =
        blocks_of(&numbers, (rows, columns), (block_rows, block_columns), by_rows)?;
    let mut pace = WorkCounter::new();
    let mut kept = memory::copied(&blocks)?;
    kept.sort_unstable_by(|a, b| {
        pace.spend(1);
        a.cmp(b)
    });
    kept.dedup();
    let target = |(block, inner): (&i64, &i64)| {
        pace.spend(64);
        kept.partition_point(|k| k < block) as i64 * room + inner
    };
    let targets = memory::collect(blocks.iter().zip(&inner).map(target))?;
    let count = kept.len() as i64;
    let values = summed(&elements.values, &targets, count * room)?;
    let each = per_batch(&kept, batches, major * minor)?;
    let minors = memory::collect(kept.iter().map(|block| block % minor.max(1)))?;
    let sizes_of = |last: &[i64]| -> Dims { shape[..batch].iter().chain(last).copied().collect() };
    let mut value_sizes = sizes_of(&[each]);
    if layout.is_blocked() {
        value_sizes.extend_from_slice(&[block_rows, block_columns]);
    }
    value_sizes.extend_from_slice(dense);
    let parts = Compressed {
        compressed: starts(&kept, (batches, major, minor), each)?
            .view(&sizes_of(&[major + 1]))?
            .copied(format.dtype)?,
        plain: Tensor::from_slice(&minors, &sizes_of(&[each]))?.copied(format.dtype)?,
        values: values.view(&value_sizes)?,
    };
    Tensor::from_sparse(Sparse::Compressed(parts), layout, &shape)
}

/// The number of elements of a block. Refuses blocks that do not divide the sizes of the matrix.
fn block_size((rows, columns): (i64, i64), (block_rows, block_columns): (i64, i64)) -> Result<i64> {
    ensure!(
        block_rows > 0
            && block_columns > 0
            && rows % block_rows == 0
            && columns % block_columns == 0,
        runtime,
        "tensor sparse size ({rows}, {columns}) must be divisible by given blocksize ({block_rows}, {block_columns})"
    );
    let Some(size) = block_rows.checked_mul(block_columns) else {
        bail!(
            runtime,
            "Storage size calculation overflowed with blocks of sizes [{block_rows}, {block_columns}]"
        );
    };
    Ok(size)
}

/// The block of each of the elements with linear indices `numbers` of matrices (rows, columns), in the order of the layout, and
/// the element's position within the block.
fn blocks_of(
    numbers: &[i64],
    (rows, columns): (i64, i64),
    (block_rows, block_columns): (i64, i64),
    by_rows: bool,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let mut blocks = memory::with_capacity(numbers.len())?;
    let mut inner = memory::with_capacity(numbers.len())?;
    let (row_blocks, column_blocks) = (rows / block_rows, columns / block_columns);
    let mut pace = WorkCounter::new();
    for &number in numbers {
        pace.spend(16);
        let (column, line) = (number % columns, number / columns);
        let (row, batch) = (line % rows, line / rows);
        let (i, j) = (row / block_rows, column / block_columns);
        let in_batch = if by_rows { i * column_blocks + j } else { j * row_blocks + i };
        blocks.push(batch * row_blocks * column_blocks + in_batch);
        inner.push(row % block_rows * block_columns + column % block_columns);
    }
    Ok((blocks, inner))
}

/// The positions at which the lines of each batch begin among its blocks, of `each` in a batch:
/// `batches * (major + 1)` numbers. (A tensor holds them, because allocating its memory can fail
/// with an error.)
fn starts(blocks: &[i64], (batches, major, minor): (i64, i64, i64), each: i64) -> Result<Tensor> {
    TensorSpec::of(&[batches, major + 1], DType::I64).written(|view| {
        let numbers = view.as_slice_mut::<i64>().unwrap_or_default();
        let mut lines = numbers.iter_mut();
        for at in 0..batches {
            let of_batch = &blocks[(at * each) as usize..((at + 1) * each) as usize];
            let mut before = 0;
            for (line, start) in (0..=major).zip(lines.by_ref()) {
                interrupt::check_every::<14>(line as usize);
                let first = (at * major + line) * minor;
                while of_batch.get(before).is_some_and(|&block| block < first) {
                    before += 1;
                }
                *start = before as i64;
            }
        }
    })
}

/// Refuses coordinates beyond the sizes: constructors check them, but `_indices()` and `indices()` show the memory they are
/// in, which anybody may write to.
fn check_written(indices: &[Vec<i64>], shape: &[i64]) -> Result<()> {
    for (dim, (row, &size)) in indices.iter().zip(shape).enumerate() {
        if let Some(&wrong) = row.iter().find(|&&index| !(0..size).contains(&index)) {
            return Err(written_beyond(dim, wrong, shape));
        }
    }
    Ok(())
}

/// The error for a coordinate outside of the sizes.
fn beyond(dim: usize, index: i64, shape: &[i64]) -> Error {
    Error::index(format!(
        "index {index} is out of bounds for dimension {dim} with size {}",
        shape[dim]
    ))
}

/// The error for a stored coordinate outside of the sizes.
fn written_beyond(dim: usize, index: i64, shape: &[i64]) -> Error {
    Error::runtime(format!(
        "the indices of a sparse tensor of sizes {} were written to: {index} is out of bounds for dimension {dim} with size {}",
        list(shape),
        shape[dim]
    ))
}

/// The number of blocks of each batch, which must be the same for all.
fn per_batch(blocks: &[i64], batches: i64, room: i64) -> Result<i64> {
    if batches == 0 || blocks.is_empty() {
        return Ok(0);
    }
    let each = blocks.len() as i64 / batches;
    let is_even = each * batches == blocks.len() as i64
        && (0..batches).all(|at| {
            let end = blocks.partition_point(|&block| block < (at + 1) * room) as i64;
            end == (at + 1) * each
        });
    ensure!(
        is_even,
        runtime,
        "Expect the same number of specified elements per batch, but the {} of {batches} batches are not shared out evenly",
        blocks.len()
    );
    Ok(each)
}

/// A row-major copy.
pub(super) fn dense_copy(tensor: &Tensor) -> Result<Tensor> {
    tensor.clone_tensor(Some(MemoryFormat::Contiguous))
}
