//! Products with sparse matrices.
//!
//! A sparse matrix times a dense one is dense, and made row by row; two sparse ones give a sparse one: each value of the
//! first times the row of the second that its column names (F. G. Gustavson, Two fast algorithms for sparse matrices, ACM
//! TOMS 4, 1978), equal coordinates added up in order.

use super::coordinates::{SparseElements, SparseFormat, list_of};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::interrupt::WorkCounter;
use crate::tensor::shape::list;
use crate::tensor::{Cpu, Layout};
use crate::{DType, Dims, Result, Scalar, Tensor};
use pullback_kernels::index::{CsrIndices, sparse_matmul};
use pullback_kernels::memory;
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] = &[&SPARSE_MM, &SPARSE_SAMPLED_ADDMM];

/// Refuses dtypes that differ.
fn check_dtypes(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {} ({name})",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    Ok(())
}

pub(super) fn check_matrices(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() == 2 && b.ndim() == 2,
        runtime,
        "mm: Expected 2D matrices, but got {}D and {}D",
        a.ndim(),
        b.ndim()
    );
    let ((m, k), (l, n)) = ((a.shape()[0], a.shape()[1]), (b.shape()[0], b.shape()[1]));
    ensure!(k == l, runtime, "mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {l}x{n})");
    check_dtypes("mm", a, b)
}

/// The coordinates of a sparse matrix whose values are numbers.
pub(super) fn matrix(tensor: &Tensor) -> Result<SparseElements> {
    let elements = SparseElements::ordered(tensor)?;
    ensure!(
        elements.sparse_dim() == 2 && elements.values.ndim() == 1,
        runtime,
        "a product needs a sparse matrix with 2 sparse dimensions and no dense ones, but one of sizes {} has {} and {}",
        list(tensor.shape()),
        elements.sparse_dim(),
        elements.values.ndim() - 1
    );
    Ok(elements)
}

/// Elements in order, of `rows` rows, times a dense matrix.
fn by_dense(cpu: Cpu, elements: &SparseElements, rows: i64, dense: &Tensor) -> Result<Tensor> {
    let dtype = dense.dtype();
    // Sums of half-precision numbers are computed in single precision.
    let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
    let (values, dense) =
        (elements.values.to_dtype(wide)?.dense(cpu)?, dense.to_dtype(wide)?.dense(cpu)?);
    let starts = row_starts(cpu, elements, rows)?;
    let starts = starts.view_ref(cpu);
    let starts = starts.as_slice::<i64>().unwrap_or_default();
    let out = Tensor::empty_of(&[rows, dense.shape()[1]], wide)?;
    let rows = CsrIndices { crow_indices: starts, col_indices: &elements.indices[1] };
    sparse_matmul(&mut out.view_mut(cpu), rows, values.view_ref(cpu), dense.view_ref(cpu))?;
    out.to_dtype(dtype)
}

/// The position at which each of `rows` rows begins, for elements in order.
pub(super) fn row_starts(cpu: Cpu, elements: &SparseElements, rows: i64) -> Result<Tensor> {
    // (There may be no memory for as many rows, which tensors report as an error.)
    let starts = Tensor::empty_of(&[rows + 1], DType::I64)?;
    let mut view = starts.view_mut(cpu);
    let mut before = 0;
    for (row, start) in (0..=rows).zip(view.as_slice_mut::<i64>().unwrap_or_default()) {
        while elements.indices[0].get(before).is_some_and(|&at| at < row) {
            before += 1;
        }
        *start = before as i64;
    }
    Ok(starts)
}

/// The elements of the transposed matrix.
pub(super) fn transposed(elements: SparseElements) -> Result<SparseElements> {
    let SparseElements { mut indices, values, shape, .. } = elements;
    indices.swap(0, 1);
    let shape = Dims::from_slice(&[shape[1], shape[0]]);
    SparseElements { indices, values, shape, is_coalesced: false }.coalesced()
}

/// The product of two matrices of which one at least is sparse.
fn product(cpu: Cpu, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_matrices(a, b)?;
    match (a.is_sparse(), b.is_sparse()) {
        (true, false) => by_dense(cpu, &matrix(a)?, a.shape()[0], b),
        (false, true) => {
            let transposed = transposed(matrix(b)?)?;
            by_dense(cpu, &transposed, b.shape()[1], &a.t()?)?.t()?.contiguous()
        }
        _ => {
            let product = sparse_product(matrix(a)?, &matrix(b)?)?;
            // (Whatever is compressed in the operands, the result has compressed rows, as PyTorch
            // returns it. The blocks of one matrix are not those of a product.)
            let layout = if a.layout().is_compressed() { Layout::SparseCsr } else { a.layout() };
            product.in_format(layout, SparseFormat::PLAIN)
        }
    }
}

/// The product of two sparse matrices.
fn sparse_product(a: SparseElements, b: &SparseElements) -> Result<SparseElements> {
    let start_of = |row: i64| b.indices[0].partition_point(|&at| at < row);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut numbers = Vec::new();
    let mut pace = WorkCounter::new();
    for (at, (&row, &inner)) in a.indices[0].iter().zip(&a.indices[1]).enumerate() {
        pace.spend(256);
        for other in start_of(inner)..start_of(inner + 1) {
            pace.spend(8);
            memory::push(&mut left, at as i64)?;
            memory::push(&mut right, other as i64)?;
            memory::push(&mut numbers, row * b.shape[1] + b.indices[1][other])?;
        }
    }
    let values = a
        .values
        .index_select(0, &list_of(&left)?)?
        .mul(&b.values.index_select(0, &list_of(&right)?)?)?;
    let shape = Dims::from_slice(&[a.shape[0], b.shape[1]]);
    let indices = super::coordinates::unravelled(&numbers, &shape)?;
    SparseElements { indices, values, shape, is_coalesced: false }.coalesced()
}

/// `mm`.
pub(crate) fn mm(cpu: Cpu, self_: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    product(cpu, self_, mat2)
}

/// `mv`.
pub(crate) fn mv(cpu: Cpu, self_: &Tensor, vec: &Tensor) -> Result<Tensor> {
    let (matrix, vector) = (self_, vec);
    ensure!(
        !vector.is_sparse() && matrix.ndim() == 2 && vector.ndim() == 1,
        runtime,
        "mv: a matrix times a dense vector expected, but got tensors of sizes {} ({}) and {} ({})",
        list(matrix.shape()),
        matrix.layout().spelled(),
        list(vector.shape()),
        vector.layout().spelled()
    );
    let (m, k, n) = (matrix.shape()[0], matrix.shape()[1], vector.shape()[0]);
    ensure!(k == n, runtime, "size mismatch, got input ({m}), mat ({m}x{k}), vec ({n})");
    product(cpu, matrix, &vector.unsqueeze(1)?)?.view(&[m])
}

/// `addmm`: `beta * self + alpha * mat1 @ mat2`.
pub(crate) fn addmm(
    cpu: Cpu,
    self_: &Tensor,
    mat1: &Tensor,
    mat2: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
    let product = product(cpu, mat1, mat2)?;
    check_dtypes("addmm", self_, &product)?;
    let product = scaled(&product, alpha)?;
    // (A term whose factor is zero is left out, whatever its values.)
    if beta.is(0.0) && !self_.is_sparse() {
        return Ok(product);
    }
    let bias = scaled(self_, beta)?;
    let bias = if bias.is_sparse() { bias } else { bias.expand(product.shape(), false)? };
    match (bias.is_sparse(), product.is_sparse()) {
        (true, false) => product.add(&bias),
        _ => bias.add(&product),
    }
}

/// `addmv`: `beta * self + alpha * mat @ vec`.
pub(crate) fn addmv(
    cpu: Cpu,
    self_: &Tensor,
    mat: &Tensor,
    vec: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
    ensure!(
        !self_.is_sparse(),
        runtime,
        "addmv: a dense vector to add to expected, but got one of layout {}",
        self_.layout().spelled()
    );
    let product = scaled(&mv(cpu, mat, vec)?, alpha)?;
    check_dtypes("addmv", self_, &product)?;
    let sum = self_.expand(product.shape(), false)?;
    if beta.is(0.0) { Ok(product) } else { scaled(&sum, beta)?.add(&product) }
}

pub(super) fn scaled(tensor: &Tensor, factor: Scalar) -> Result<Tensor> {
    if factor.is(1.0) { Ok(tensor.clone()) } else { tensor.times(factor) }
}

/// `bmm`: a batch of sparse matrices times one of dense ones, as one product with the matrices along the diagonal.
pub(crate) fn bmm(cpu: Cpu, self_: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    let (a, b) = (self_, mat2);
    ensure!(
        a.is_sparse() && !b.is_sparse() && a.ndim() == 3 && b.ndim() == 3,
        not_implemented,
        "bmm: a sparse batch (b, m, k) times a dense one (b, k, n) expected, but got {} of sizes {} and {} of sizes {}",
        a.layout().spelled(),
        list(a.shape()),
        b.layout().spelled(),
        list(b.shape())
    );
    check_dtypes("bmm", a, b)?;
    let (batch, m, k, n) = (a.shape()[0], a.shape()[1], a.shape()[2], b.shape()[2]);
    ensure!(
        b.shape()[0] == batch && b.shape()[1] == k,
        runtime,
        "Expected size for first two dimensions of batch2 tensor to be: {} but got: {}.",
        list(&[batch, k]),
        list(&b.shape()[..2])
    );
    let mut elements = SparseElements::ordered(a)?;
    ensure!(
        elements.sparse_dim() == 3,
        runtime,
        "bmm: the batch of sparse matrices must have 3 sparse dimensions, but has {}",
        elements.sparse_dim()
    );
    let along = |number: &[i64], inner: &[i64], size: i64| {
        memory::collect(number.iter().zip(inner).map(|(at, inner)| at * size + inner))
    };
    let rows = along(&elements.indices[0], &elements.indices[1], m)?;
    let columns = along(&elements.indices[0], &elements.indices[2], k)?;
    elements.indices = vec![rows, columns];
    let product = by_dense(cpu, &elements, batch * m, &b.reshape(&[batch * k, n])?)?;
    product.view(&[batch, m, n])
}

/// The product of two matrices of which one at least is sparse; the gradient of a sparse one is given where it specifies
/// elements. (m, k) times (k, n); dense unless both are sparse.
#[op("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", internal, dynamic_output_shape, function_only, sparse = itself)]
impl SparseMm {
    fn cpu(cpu: Cpu, sparse: &Tensor, dense: &Tensor) -> Result<Tensor> {
        if sparse.is_sparse() || dense.is_sparse() {
            product(cpu, sparse, dense)
        } else {
            sparse.mm(dense)
        }
    }
    fn vjp_sparse(grad: &Tensor, sparse: &Tensor, dense: &Tensor) -> Result<Tensor> {
        product_at(sparse, grad, &dense.transposed_conj()?)
    }
    fn vjp_dense(grad: &Tensor, sparse: &Tensor, dense: &Tensor) -> Result<Tensor> {
        product_at(dense, &sparse.transposed_conj()?, grad)
    }
    fn jvp(
        sparse_p: &Tensor,
        sparse_t: Option<&Tensor>,
        dense_p: &Tensor,
        dense_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let parts =
            [sparse_t.map(|t| t.sparse_mm(dense_p)), dense_t.map(|t| sparse_p.sparse_mm(t))];
        let mut sum: Option<Tensor> = None;
        for part in parts.into_iter().flatten() {
            sum = Some(match sum {
                Some(sum) => sum.add(&part?)?,
                None => part?,
            });
        }
        Ok(sum)
    }
}

impl Tensor {
    fn transposed_conj(&self) -> Result<Tensor> {
        let transposed = self.t()?;
        if self.dtype().is_complex() { transposed.conj_physical() } else { Ok(transposed) }
    }
}

/// `a @ b`, where `like` is sparse only at the coordinates that it specifies, in its layout.
pub(super) fn product_at(like: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if !like.is_sparse() {
        return a.sparse_mm(b);
    }
    if a.is_sparse() || b.is_sparse() {
        return a.sparse_mm(b)?.sparse_mask(like);
    }
    let elements = SparseElements::ordered(like)?;
    let (rows, columns) = (list_of(&elements.indices[0])?, list_of(&elements.indices[1])?);
    let values = a.index_select(0, &rows)?.mul(&b.t()?.index_select(0, &columns)?)?;
    let values = values.sum_dim(Some(&[1]), false)?;
    let indices = super::coordinates::table(&elements.indices, elements.count())?;
    Tensor::sparse_coo(&indices, &values, like.shape(), true)?.sparse_mask(like)
}

/// `beta * self + alpha * (mat1 @ mat2)` at the coordinates that `self`, a matrix of compressed rows, specifies.
#[op("sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", module = sparse, function_only)]
impl SparseSampledAddmm {
    fn composite(
        self_: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        ensure!(
            self_.layout() == crate::Layout::SparseCsr,
            runtime,
            "sampled_addmm: Expected self to have sparse csr layout, but got {}",
            self_.layout().spelled()
        );
        for (name, mat) in [("mat1", mat1), ("mat2", mat2)] {
            ensure!(
                !mat.is_sparse(),
                runtime,
                "sampled_addmm: Expected {name} to have strided layout, but got {}",
                mat.layout().spelled()
            );
            ensure!(
                mat.dtype() == self_.dtype(),
                runtime,
                "sampled_addmm: Expected {name} and self to have the same dtype, but got {} and {}",
                mat.dtype().scalar_name(),
                self_.dtype().scalar_name()
            );
            ensure!(
                mat.ndim() == 2,
                runtime,
                "sampled_addmm: Expected {name} to be a matrix, got {}-D tensor",
                mat.ndim()
            );
        }
        check_matrices(mat1, mat2)?;
        ensure!(
            self_.shape() == [mat1.shape()[0], mat2.shape()[1]],
            runtime,
            "sampled_addmm: self of shape {} does not fit the product of {} and {}",
            list(self_.shape()),
            list(mat1.shape()),
            list(mat2.shape())
        );
        let sampled = scaled(&product_at(self_, mat1, mat2)?.values()?, alpha)?;
        let values =
            if beta.is(0.0) { sampled } else { scaled(&self_.values()?, beta)?.add(&sampled)? };
        self_.with_sparse_values(&values)
    }
}
