//! Products whose rows are joined otherwise than by sums, products that stay sparse, and softmax.
//!
//! All are made of ops on the values of sparse tensors, which are recorded: everything here has all
//! derivatives. Elements that are not specified take no part, also not as zeros.

use super::coordinates::{SparseElements, list_of, table};
use super::product::{check_matrices, scaled};
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::interrupt::WorkCounter;
use crate::tensor::shape::{list, wrap_dim};
use crate::tensor::{Layout, TensorSpec};
use crate::{DType, Dims, Result, Scalar, Tensor};
use pullback_kernels::memory;
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] =
    &[&SPARSE_MM_REDUCE, &HSPMM, &SMM, &SSPADDMM, &SPARSE_SOFTMAX, &SPARSE_LOG_SOFTMAX];

/// The product of a matrix of compressed rows, (m, k), and a dense one, (k, n), with the products of each row joined by
/// `reduce`: "sum", "mean", "amax" or "amin". Rows that specify nothing give zeros; ties share the gradient evenly.
#[op(
    "_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor",
    internal,
    function_only
)]
impl SparseMmReduce {
    fn composite(sparse: &Tensor, dense: &Tensor, reduce: &str) -> Result<Tensor> {
        ensure!(
            sparse.layout() == Layout::SparseCsr && !dense.is_sparse(),
            not_implemented,
            "sparse_mm_reduce: expect self to be SparseCsr and other to be Strided, got {} and {}",
            sparse.layout().spelled(),
            dense.layout().spelled()
        );
        check_matrices(sparse, dense)?;
        let dtype = dense.dtype();
        match reduce {
            "sum" => sparse.sparse_mm(dense),
            _ if !matches!(reduce, "mean" | "amax" | "amin") => {
                bail!(runtime, "sparse_mm_reduce: reduce type of {reduce} has not been enabled.")
            }
            _ if !dtype.is_floating_point() => bail!(
                not_implemented,
                "\"spmm_reduce_kernel\" not implemented for '{}'",
                dtype.scalar_name()
            ),
            "mean" => sparse.sparse_mm(dense)?.div(&row_lengths(sparse, dtype)?),
            reduce => row_min_max(sparse, dense, reduce),
        }
    }
}

/// How many elements each row specifies, at least one, as a column.
fn row_lengths(sparse: &Tensor, dtype: DType) -> Result<Tensor> {
    let starts = sparse.crow_indices()?.to_vec::<i64>()?;
    let lengths = memory::collect(starts.windows(2).map(|pair| (pair[1] - pair[0]).max(1)))?;
    Tensor::from_slice(&lengths, &[lengths.len() as i64, 1])?.to_dtype(dtype)
}

/// The largest or smallest product of each row.
fn row_min_max(sparse: &Tensor, dense: &Tensor, reduce: &str) -> Result<Tensor> {
    let elements = SparseElements::of(sparse)?;
    let [rows, columns] = [list_of(&elements.indices[0])?, list_of(&elements.indices[1])?];
    let products = sparse.values()?.unsqueeze(1)?.mul(&dense.index_select(0, &columns)?)?;
    let sizes = [sparse.shape()[0], dense.shape()[1]];
    let zeros = TensorSpec::beside(dense, &sizes).zeros()?;
    zeros.index_reduce_with(0, &rows, &products, reduce, false)
}

/// Refuses arguments of a product that stays sparse: it is one of a matrix of coordinate lists and a dense one.
fn check_factors(name: &str, mat1: &Tensor, mat2: &Tensor) -> Result<()> {
    super::check_coo(name, mat1)?;
    ensure!(
        !mat2.is_sparse(),
        runtime,
        "{name}: expected 'mat2' to have strided layout, got 'mat2' with layout {}",
        mat2.layout().spelled()
    );
    let sparse_dim = super::parts(mat1).and(SparseElements::of(mat1))?.sparse_dim();
    ensure!(
        mat1.ndim() == 2 && sparse_dim == 2,
        runtime,
        "{name}: Argument #2: matrices expected, got {sparse_dim}D tensor"
    );
    ensure!(
        mat2.ndim() == 2,
        runtime,
        "{name}: Argument #3: matrices expected, got {}D tensor",
        mat2.ndim()
    );
    let (k, rows) = (mat1.shape()[1], mat2.shape()[0]);
    ensure!(k == rows, runtime, "{name}: Argument #3: Expected dim 0 size {k}, got {rows}");
    ensure!(
        mat1.dtype() == mat2.dtype(),
        runtime,
        "expected scalar type {} but found {}",
        mat1.dtype().scalar_name(),
        mat2.dtype().scalar_name()
    );
    Ok(())
}

/// The numbers of the rows that `mat1` specifies elements of, in order, and those rows of the product.
fn product_rows(name: &str, mat1: &Tensor, mat2: &Tensor) -> Result<(Vec<i64>, Tensor)> {
    check_factors(name, mat1, mat2)?;
    let mat1 = mat1.coalesce()?;
    let mut elements = SparseElements::of(&mat1)?;
    let mut kept = memory::copied(&elements.indices[0])?;
    kept.dedup();
    let among = |row: &i64| kept.partition_point(|other| other < row) as i64;
    elements.indices[0] = memory::collect(elements.indices[0].iter().map(among))?;
    let indices = table(&elements.indices, elements.count())?;
    let sizes = [kept.len() as i64, mat1.shape()[1]];
    let short = Tensor::sparse_coo(&indices, &mat1.values()?, &sizes, true)?;
    let product = short.sparse_mm(mat2)?;
    Ok((kept, product))
}

/// The product of a sparse matrix, (m, k), and a dense one, (k, n): a coordinate list of its rows, those that can be other
/// than zero, with the columns as dense dimension.
#[op("hspmm(Tensor mat1, Tensor mat2) -> Tensor", function_only)]
impl Hspmm {
    fn composite(mat1: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        let (rows, values) = product_rows("hspmm", mat1, mat2)?;
        let count = rows.len();
        let sizes = [mat1.shape()[0], mat2.shape()[1]];
        Tensor::sparse_coo(&table(&[rows], count)?, &values, &sizes, true)
    }
}

/// All elements of the rows of a product that can be other than zero, as a coordinate list.
fn listed(name: &str, mat1: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    let (rows, values) = product_rows(name, mat1, mat2)?;
    let width = mat2.shape()[1];
    let along = |row: &i64| std::iter::repeat_n(*row, width as usize);
    let all_rows = memory::collect(rows.iter().flat_map(along))?;
    let columns = memory::collect(rows.iter().flat_map(|_| 0..width))?;
    let indices = table(&[all_rows, columns], rows.len() * width as usize)?;
    Tensor::sparse_coo(&indices, &values.reshape(&[-1])?, &[mat1.shape()[0], width], true)
}

/// The product of a sparse matrix, (m, k), and a dense one, (k, n), as a coordinate list: all elements of the rows that the
/// first one specifies elements of.
#[op("smm(Tensor self, Tensor mat2) -> Tensor")]
impl Smm {
    fn composite(self_: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        listed("smm", self_, mat2)
    }
}

/// `beta * self + alpha * (mat1 @ mat2)` of coordinate lists `self`, (m, n), and `mat1`, (m, k), and a dense `mat2`, (k, n).
#[op("sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")]
impl Sspaddmm {
    fn composite(
        self_: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        super::check_coo("sspaddmm", self_)?;
        let product = listed("sspaddmm", mat1, mat2)?;
        ensure!(
            self_.shape() == product.shape(),
            runtime,
            "sspaddmm: Argument #1: Expected sizes {}, got {}",
            list(product.shape()),
            list(self_.shape())
        );
        scaled(self_, beta)?.add(&scaled(&product, alpha)?)
    }
}

/// `e^x`, divided by the sums of those along `dim`, of what a coordinate list specifies.
#[op(
    "_sparse_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    internal,
    function_only
)]
impl SparseSoftmax {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        normalized(self_, dim, dtype, false)
    }
}

/// The logarithm of `_sparse_softmax`.
#[op(
    "_sparse_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    internal,
    function_only
)]
impl SparseLogSoftmax {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        normalized(self_, dim, dtype, true)
    }
}

fn normalized(self_: &Tensor, dim: i64, dtype: Option<DType>, is_log: bool) -> Result<Tensor> {
    ensure!(
        self_.layout() == Layout::SparseCoo,
        not_implemented,
        "softmax of what is specified expected a tensor of layout torch.sparse_coo, but got {}",
        self_.layout().spelled()
    );
    let dim = wrap_dim(dim, self_.ndim())?;
    let input = self_.to_dtype(dtype.unwrap_or(self_.dtype()))?.coalesce()?;
    ensure!(
        input.dtype().is_floating_point(),
        not_implemented,
        "\"softmax\" not implemented for '{}'",
        input.dtype().scalar_name()
    );
    let (elements, values) = (SparseElements::of(&input)?, input.values()?);
    let values = match dim.checked_sub(elements.sparse_dim()) {
        None => normalized_groups(&values, &groups(&elements, dim)?, is_log)?,
        Some(dense) if is_log => values.log_softmax(dense as i64 + 1, None)?,
        Some(dense) => values.softmax(dense as i64 + 1, None)?,
    };
    Tensor::sparse_coo(&table(&elements.indices, elements.count())?, &values, self_.shape(), true)
}

/// For each coordinate, the number of the line along `dim` that it lies on, among the lines that there are.
fn groups(elements: &SparseElements, dim: usize) -> Result<Vec<i64>> {
    // All numbers along the dimension itself count as one.
    let mut lines = memory::filled(0_i64, elements.count())?;
    for (at, (row, &size)) in elements.indices.iter().zip(elements.sizes()).enumerate() {
        if at != dim {
            lines.iter_mut().zip(row).for_each(|(line, &index)| *line = *line * size + index);
        }
    }
    let mut kept = memory::copied(&lines)?;
    let mut pace = WorkCounter::new();
    kept.sort_unstable_by(|a, b| {
        pace.spend(1);
        a.cmp(b)
    });
    kept.dedup();
    let index = |line| {
        pace.spend(64);
        kept.partition_point(|other| other < line) as i64
    };
    Ok(memory::collect(lines.iter().map(index))?)
}

/// Softmax, or its logarithm, of the values of each group.
fn normalized_groups(values: &Tensor, groups: &[i64], is_log: bool) -> Result<Tensor> {
    let at = list_of(groups)?;
    let mut sizes = Dims::from_slice(values.shape());
    sizes[0] = groups.iter().max().map_or(0, |last| last + 1);
    let zeros = TensorSpec::beside(values, &sizes).zeros()?;
    // (The largest value of a group cancels, so that it needs no derivative.)
    let top = zeros.index_reduce_with(0, &at, &values.detach()?, "amax", false)?;
    let shifted = values.sub(&top.index_select(0, &at)?)?;
    let powers = shifted.exp()?;
    let sums = zeros.index_add(0, &at, &powers)?;
    if is_log {
        shifted.sub(&sums.log()?.index_select(0, &at)?)
    } else {
        powers.div(&sums.index_select(0, &at)?)
    }
}
