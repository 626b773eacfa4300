//! Compressed rows and columns: made of their parts, and taken apart.
//!
//! The values of a matrix of compressed rows lie row by row: `compressed` has the position at which
//! each row begins, `plain` the column of each value. Leading dimensions count batches, trailing
//! ones belong to the values; with blocks, a value is a block. (T. A. Davis, Direct Methods for
//! Sparse Linear Systems, 2006, section 2.1.)

use super::coordinates::{SparseFormat, list_of};
use super::parts;
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::tensor::{Compressed, Cpu, Layout, Sparse, shape::list};
use crate::{DType, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] =
    &[&SPARSE_COMPRESSED_TENSOR, &CROW_INDICES, &COL_INDICES, &CCOL_INDICES, &ROW_INDICES];

/// A tensor of compressed rows or columns, as `layout` says, of the sizes `size`: (*batch, rows, columns, *dense sizes).
/// `compressed_indices` (*batch, rows + 1) says where each row (column) begins, `plain_indices` (*batch, n) the column (row) of
/// each of `values` (*batch, n, *block, *dense sizes).
#[op(
    "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    function_only, method = sparse_compressed_unsafe, batch = sparse_result, not_differentiable(compressed_indices, plain_indices)
)]
impl SparseCompressedTensor {
    fn meta(
        compressed_indices: &Tensor,
        plain_indices: &Tensor,
        values: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<TensorSpec> {
        let layout = compressed_layout(layout)?;
        check_sizes((compressed_indices, plain_indices, values), size, layout)?;
        let spec = TensorSpec::beside(values, size).computed_in(dtype.unwrap_or(values.dtype()));
        Ok(spec.in_layout(layout))
    }
    fn cpu(
        cpu: Cpu,
        compressed_indices: &Tensor,
        plain_indices: &Tensor,
        values: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        let layout = compressed_layout(layout)?;
        let lines = check_sizes((compressed_indices, plain_indices, values), size, layout)?;
        check_lines(compressed_indices, plain_indices, lines, layout)?;
        let values = match dtype.filter(|&dtype| dtype != values.dtype()) {
            Some(dtype) => values.converted(cpu, dtype)?,
            None => values.detached()?,
        };
        let made = Compressed {
            compressed: compressed_indices.detached()?,
            plain: plain_indices.detached()?,
            values,
        };
        Tensor::from_sparse(Sparse::Compressed(made), layout, size)
    }
    fn vjp_values(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.sparse_mask(result)?.values()
    }
    fn jvp(
        compressed_indices_p: &Tensor,
        plain_indices_p: &Tensor,
        values_t: &Tensor,
        size: &[i64],
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        Tensor::sparse_compressed(
            compressed_indices_p,
            plain_indices_p,
            values_t,
            size,
            layout.unwrap_or(Layout::SparseCsr),
        )
    }
}

impl Tensor {
    /// A sparse tensor of compressed rows or columns, with history: see [`Layout`].
    ///
    /// ```
    /// use pullback::{Layout, Tensor};
    /// # fn main() -> pullback::Result<()> {
    /// let starts = Tensor::from_slice(&[0_i64, 1, 3], &[3])?;
    /// let columns = Tensor::from_slice(&[2_i64, 0, 2], &[3])?;
    /// let values = Tensor::from_slice(&[1.0, 2.0, 3.0], &[3])?;
    /// let matrix = Tensor::sparse_compressed(&starts, &columns, &values, &[2, 3], Layout::SparseCsr)?;
    /// assert_eq!(matrix.to_dense(None)?.to_vec::<f64>()?, [0.0, 0.0, 1.0, 2.0, 0.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `RuntimeError` if sizes, indices and values do not fit each other.
    #[track_caller]
    pub fn sparse_compressed(
        compressed: &Tensor,
        plain: &Tensor,
        values: &Tensor,
        size: &[i64],
        layout: Layout,
    ) -> Result<Tensor> {
        let layout = Some(layout);
        compressed.sparse_compressed_unsafe_with(plain, values, size, None, layout, None, None)
    }
    /// A tensor with these coordinates and other values, with history.
    pub(super) fn with_sparse_values(&self, values: &Tensor) -> Result<Tensor> {
        match &*parts(self)? {
            Sparse::Coo(coo) => {
                Tensor::sparse_coo(&coo.indices, values, self.shape(), coo.is_coalesced)
            }
            Sparse::Compressed(Compressed { compressed, plain, .. }) => {
                Tensor::sparse_compressed(compressed, plain, values, self.shape(), self.layout())
            }
        }
    }
}

/// The names of the two lists of indices.
fn names(layout: Layout) -> (&'static str, &'static str) {
    match layout.compresses_rows() {
        Some(false) => ("ccol_indices", "row_indices"),
        _ => ("crow_indices", "col_indices"),
    }
}

fn compressed_layout(layout: Option<Layout>) -> Result<Layout> {
    let Some(layout) = layout.filter(|layout| layout.is_compressed()) else {
        bail!(
            runtime,
            "sparse_compressed_tensor expected sparse compressed tensor layout but got {}",
            layout.map_or_else(|| "None".to_owned(), |layout| layout.spelled().to_string())
        );
    };
    Ok(layout)
}

/// Checks the invariants of compressed tensors that need no elements. Returns the number of compressed lines, and the largest
/// number of blocks in each.
fn check_sizes(
    (compressed, plain, values): (&Tensor, &Tensor, &Tensor),
    size: &[i64],
    layout: Layout,
) -> Result<(i64, i64)> {
    let (of_compressed, of_plain) = names(layout);
    check_parts((compressed, plain, values), layout)?;
    let batch = compressed.ndim() - 1;
    let blocks = if layout.is_blocked() { 2 } else { 0 };
    ensure!(
        plain.ndim() == batch + 1,
        runtime,
        "{of_compressed} and {of_plain} dimensionalities must be equal but got {} and {}, respectively",
        compressed.ndim(),
        plain.ndim()
    );
    ensure!(
        values.ndim() > batch + blocks && size.len() == values.ndim() + 1 - blocks,
        runtime,
        "values must have dimensionality {} for a tensor of {} dimensions with {batch} batch dimensions, but got {}",
        (size.len() + blocks).saturating_sub(1),
        size.len(),
        values.ndim()
    );
    ensure!(
        size.iter().all(|&n| n >= 0),
        runtime,
        "Trying to create tensor with negative dimension: {}",
        list(size)
    );
    let dense_at = batch + 1 + blocks;
    let fits = compressed.shape()[..batch] == size[..batch]
        && plain.shape()[..batch] == size[..batch]
        && values.shape()[..batch] == size[..batch]
        && values.shape()[batch] == plain.shape()[batch]
        && values.shape()[dense_at..] == size[batch + 2..];
    ensure!(
        fits,
        runtime,
        "sizes do not fit: size {}, {of_compressed} {}, {of_plain} {}, values {}",
        list(size),
        list(compressed.shape()),
        list(plain.shape()),
        list(values.shape())
    );
    line_counts(compressed, values, size, layout)
}

/// Refuses parts of other layouts and dtypes than compressed tensors have.
fn check_parts(
    (compressed, plain, values): (&Tensor, &Tensor, &Tensor),
    layout: Layout,
) -> Result<()> {
    let (of_compressed, of_plain) = names(layout);
    for (name, part) in [(of_compressed, compressed), (of_plain, plain), ("values", values)] {
        ensure!(
            !part.is_sparse(),
            runtime,
            "expected {name} to be a strided tensor but got {}",
            part.layout().spelled()
        );
    }
    for (name, part) in [(of_compressed, compressed), (of_plain, plain)] {
        ensure!(
            matches!(part.dtype(), DType::I64 | DType::I32),
            runtime,
            "{name} dtype must be {} or {}, but got torch.{}",
            DType::I32.scalar_name(),
            DType::I64.scalar_name(),
            part.dtype().spelled()
        );
        ensure!(part.ndim() >= 1, runtime, "{name} must have dimensionality >= 1 but got 0");
    }
    ensure!(
        compressed.dtype() == plain.dtype(),
        runtime,
        "{of_compressed} and {of_plain} dtypes must be equal, but got torch.{} and torch.{}",
        compressed.dtype().spelled(),
        plain.dtype().spelled()
    );
    Ok(())
}

/// The number of compressed lines, and the largest number of blocks in each.
fn line_counts(
    compressed: &Tensor,
    values: &Tensor,
    size: &[i64],
    layout: Layout,
) -> Result<(i64, i64)> {
    let (batch, (of_compressed, _)) = (compressed.ndim() - 1, names(layout));
    let block = match values.shape()[batch + 1..] {
        [rows, columns, ..] if layout.is_blocked() => (rows, columns),
        _ => (1, 1),
    };
    ensure!(
        block.0 > 0 && block.1 > 0 && size[batch] % block.0 == 0 && size[batch + 1] % block.1 == 0,
        runtime,
        "tensor sparse size ({}, {}) must be divisible by the block size ({}, {})",
        size[batch],
        size[batch + 1],
        block.0,
        block.1
    );
    let (rows, columns) = (size[batch] / block.0, size[batch + 1] / block.1);
    let by_rows = layout.compresses_rows() == Some(true);
    let (major, minor) = if by_rows { (rows, columns) } else { (columns, rows) };
    ensure!(
        compressed.shape()[batch] == major + 1,
        runtime,
        "{of_compressed}.shape[-1] must be equal to the number of {} + 1 ({}), but got {}",
        if by_rows { "rows" } else { "columns" },
        major + 1,
        compressed.shape()[batch]
    );
    Ok((major, minor))
}

/// Checks that rows begin at valid positions, and that their columns exist and are in order.
fn check_lines(
    compressed: &Tensor,
    plain: &Tensor,
    (major, minor): (i64, i64),
    layout: Layout,
) -> Result<()> {
    let (of_compressed, of_plain) = names(layout);
    let count = plain.shape()[compressed.ndim() - 1];
    let (starts, minors) = (compressed.to_vec::<i64>()?, plain.to_vec::<i64>()?);
    for (at, starts) in starts.chunks(major as usize + 1).enumerate() {
        ensure!(
            starts[0] == 0,
            runtime,
            "`{of_compressed}[..., 0] == 0` is not satisfied: it is {}",
            starts[0]
        );
        ensure!(
            starts[major as usize] == count,
            runtime,
            "`{of_compressed}[..., -1] == nnz` is not satisfied: it is {}, and nnz is {count}",
            starts[major as usize]
        );
        for pair in starts.windows(2) {
            let length = pair[1].checked_sub(pair[0]);
            ensure!(
                length.is_some_and(|length| (0..=minor).contains(&length)) && pair[0] >= 0,
                runtime,
                "`0 <= {of_compressed}[..., 1:] - {of_compressed}[..., :-1] <= {minor}` is not satisfied: {} follows {}",
                pair[1],
                pair[0]
            );
            let first = at * count as usize;
            let line = &minors[first + pair[0] as usize..first + pair[1] as usize];
            ensure!(
                line.iter().all(|column| (0..minor).contains(column)),
                runtime,
                "`0 <= {of_plain} < {minor}` is not satisfied: {}",
                list(line)
            );
            ensure!(
                super::coordinates::is_increasing(line),
                runtime,
                "`{of_plain}[..., {of_compressed}[..., i - 1]:{of_compressed}[..., i]] for all i = 1, ..., {major} are sorted and distinct along the last dimension values` is not satisfied: {}",
                list(line)
            );
        }
    }
    Ok(())
}

/// The parts of a compressed tensor.
pub(super) fn parts_of(tensor: &Tensor) -> Result<Compressed> {
    match &*parts(tensor)? {
        Sparse::Compressed(parts) => Ok(parts.clone()),
        Sparse::Coo(_) => {
            bail!(runtime, "expected a compressed layout but got {}", tensor.layout().spelled())
        }
    }
}

fn lists(name: &str, tensor: &Tensor, by_rows: bool) -> Result<Compressed> {
    match tensor.sparse().as_deref() {
        Some(Sparse::Compressed(parts)) if tensor.layout().compresses_rows() == Some(by_rows) => {
            Ok(parts.clone())
        }
        _ => bail!(
            runtime,
            "{name} expected sparse {} compressed tensor layout but got {}",
            if by_rows { "row" } else { "column" },
            tensor.layout().spelled()
        ),
    }
}

impl Tensor {
    /// `resize_` of compressed layouts: more rows and columns specify nothing, rows (of compressed columns: columns) that go take
    /// their values along. The other dimension of the matrices can only grow, and nothing else changes. Aliases keep their size.
    ///
    /// # Errors
    /// `RuntimeError` for another number of dimensions, batches or dense sizes, and for sizes that the blocks do not fill.
    pub(crate) fn resize_compressed(&self, size: &[i64]) -> Result<()> {
        let (old, layout) = (parts_of(self)?, self.layout());
        let batch = old.compressed.ndim() - 1;
        let by_rows = matches!(layout, Layout::SparseCsr | Layout::SparseBsr);
        let (line, plain) = if by_rows { (batch, batch + 1) } else { (batch + 1, batch) };
        let stays = |dim: usize| dim == line || dim == plain || size[dim] == self.shape()[dim];
        ensure!(
            size.len() == self.ndim() && (0..size.len()).all(stays),
            runtime,
            "resize_() to {}: of a tensor of layout {} and size {} only rows and columns can change",
            list(size),
            layout.spelled(),
            list(self.shape())
        );
        ensure!(
            size[plain] >= self.shape()[plain],
            runtime,
            "torch.resize_: Resizing {} of sparse {} tensors to a smaller value is not supported. The original number is {} while the requested new number is {}.",
            if by_rows { "columns" } else { "rows" },
            layout.spelled(),
            self.shape()[plain],
            size[plain]
        );
        let (rows, columns) = SparseFormat::of(self)?.block;
        ensure!(
            size[batch] >= 0 && size[batch] % rows == 0 && size[batch + 1] % columns == 0,
            runtime,
            "resize_() to {}: blocks of {rows} by {columns} do not fill it",
            list(size)
        );
        let per_line = if by_rows { rows } else { columns };
        let (before, after) = (self.shape()[line] / per_line, size[line] / per_line);
        ensure!(
            batch == 0 || after >= before,
            runtime,
            "resize_() to {}: the matrices of a batch must keep as many values each, so that no {} can go",
            list(size),
            if by_rows { "row" } else { "column" }
        );
        // (A new line begins where the last one ends.)
        let starts = list_of(&memory::collect((0..=after).map(|at| at.min(before)))?)?;
        let compressed = old.compressed.index_select(batch as i64, &starts)?;
        let mut made = Compressed { compressed, ..old };
        if after < before {
            let starts = made.compressed.to_dtype(DType::I64)?.to_vec::<i64>()?;
            let kept = list_of(&memory::collect(0..starts.last().copied().unwrap_or(0))?)?;
            made.plain = made.plain.index_select(0, &kept)?;
            made.values = made.values.index_select(0, &kept)?;
        }
        self.reshape_sparse(Sparse::Compressed(made), size)
    }
}

/// Where each compressed row begins, and how many values there are: (*batch, rows + 1).
#[op("crow_indices(Tensor self) -> Tensor", method_only, not_differentiable, sparse = itself)]
impl CrowIndices {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&lists("crow_indices", self_, true)?.compressed))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        lists("crow_indices", self_, true)?.compressed.detached()
    }
}

/// The column of each value of compressed rows: (*batch, n).
#[op("col_indices(Tensor self) -> Tensor", method_only, not_differentiable, sparse = itself)]
impl ColIndices {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&lists("col_indices", self_, true)?.plain))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        lists("col_indices", self_, true)?.plain.detached()
    }
}

/// Where each compressed column begins, and how many values there are: (*batch, columns + 1).
#[op("ccol_indices(Tensor self) -> Tensor", method_only, not_differentiable, sparse = itself)]
impl CcolIndices {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&lists("ccol_indices", self_, false)?.compressed))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        lists("ccol_indices", self_, false)?.compressed.detached()
    }
}

/// The row of each value of compressed columns: (*batch, n).
#[op("row_indices(Tensor self) -> Tensor", method_only, not_differentiable, sparse = itself)]
impl RowIndices {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(&lists("row_indices", self_, false)?.plain))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        lists("row_indices", self_, false)?.plain.detached()
    }
}
