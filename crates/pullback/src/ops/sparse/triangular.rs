//! Triangular systems of equations with a sparse matrix and dense right-hand sides.
//!
//! Only the specified elements of one triangle count. Gradients of the matrix are given where it specifies elements of that
//! triangle, and are zero at its others; the derivatives are those of dense triangular equations (M. B. Giles, "An extended
//! collection of matrix derivative results", 2008).

use super::coordinates::{SparseElements, table};
use super::product::{matrix, product_at, row_starts, transposed};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::ops::linalg::triangular::moved_right_side;
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{Dims, Result, Scalar, Tensor};
use pullback_kernels::index::CsrIndices;
use pullback_kernels::linalg::{Triangle, solve_triangular_sparse};
use pullback_kernels::memory;
use pullback_macros::op;

pub(crate) static OPS: &[&OpDef] = &[&SPARSE_SOLVE_TRIANGULAR];

/// The solution `X` of `A X = B` (of `A^T X = B` with `transpose`) for dense `B` (n, k) and the upper or lower triangle of a
/// sparse matrix `A` (n, n), with `unitriangular` without its diagonal, which is taken to be ones. NaN where a row specifies
/// no element on the diagonal.
#[op("_sparse_solve_triangular(Tensor A, Tensor B, bool upper, bool transpose, bool unitriangular) -> Tensor", internal, dynamic_output_shape, function_only, sparse = itself)]
impl SparseSolveTriangular {
    fn cpu(
        cpu: Cpu,
        a: &Tensor,
        b: &Tensor,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
    ) -> Result<Tensor> {
        let elements = matrix(a)?;
        let elements = if transpose { transposed(elements)? } else { elements };
        let starts = row_starts(cpu, &elements, a.shape()[0])?;
        let starts = starts.view_ref(cpu);
        let indices = CsrIndices {
            crow_indices: starts.as_slice::<i64>().unwrap_or_default(),
            col_indices: &elements.indices[1],
        };
        let x = Tensor::empty_of(b.shape(), b.dtype())?;
        x.copy_data(cpu, b)?;
        let triangle = Triangle { upper: upper != transpose, unit: unitriangular };
        let values = elements.values.dense(cpu)?;
        solve_triangular_sparse(&mut x.view_mut(cpu), indices, values.view_ref(cpu), triangle)?;
        Ok(x)
    }
    fn vjp(
        grad: &Tensor,
        a: &Tensor,
        result: &Tensor,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let conj = if a.dtype().is_complex() { a.conj_physical()? } else { a.clone() };
        let gb = conj.sparse_solve_triangular(grad, upper, !transpose, unitriangular)?;
        if !needs[0] {
            return Ok([None, Some(gb)]);
        }
        // The solution for `A^T` uses the transpose of the triangle of `A`.
        let (minus_gb, x) = (gb.times(Scalar::Int(-1))?, result.conj_physical()?);
        let pattern = triangle_of(a, upper, unitriangular)?;
        let ga = if transpose {
            product_at(&pattern, &x, &minus_gb.t()?)?
        } else {
            product_at(&pattern, &minus_gb, &x.t()?)?
        };
        Ok([Some(ga.sparse_mask(a)?), Some(gb)])
    }
    fn jvp(
        a_p: &Tensor,
        a_t: Option<&Tensor>,
        b_t: Option<&Tensor>,
        result: &Tensor,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
    ) -> Result<Option<Tensor>> {
        let moved = match a_t {
            Some(t) => {
                let t = t.sparse_mask(&triangle_of(t, upper, unitriangular)?)?;
                Some(if transpose { t.t()? } else { t }.sparse_mm(result)?)
            }
            None => None,
        };
        let Some(right) = moved_right_side(b_t, moved.as_ref())? else { return Ok(None) };
        a_p.sparse_solve_triangular(&right, upper, transpose, unitriangular).map(Some)
    }
}

/// The coordinates of a sparse matrix that a triangle has (without the diagonal where that is taken to be ones), with ones.
fn triangle_of(a: &Tensor, upper: bool, unitriangular: bool) -> Result<Tensor> {
    let elements = SparseElements::ordered(&a.detach()?)?;
    let is_within = |at: &usize| {
        let (row, column) = (elements.indices[0][*at], elements.indices[1][*at]);
        if row == column { !unitriangular } else { upper == (column > row) }
    };
    let kept: Vec<usize> = memory::collect((0..elements.count()).filter(is_within))?;
    let of = |dim: usize| memory::collect(kept.iter().map(|&at| elements.indices[dim][at]));
    let indices = table(&[of(0)?, of(1)?], kept.len())?;
    let ones = Tensor::ones([kept.len() as i64])?.to_dtype(a.dtype())?;
    Tensor::sparse_coo(&indices, &ones, a.shape(), true)
}

/// `triangular_solve` of a sparse matrix (n, n) and right-hand sides (*, n, k), which fit each other.
pub(crate) fn solve_triangular(
    b: &Tensor,
    a: &Tensor,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
) -> Result<Tensor> {
    ensure!(
        a.is_sparse() && !b.is_sparse() && a.ndim() == 2,
        runtime,
        "triangular_solve: one sparse matrix and dense right-hand sides expected, but got A of sizes {} ({}) and b of sizes {} ({})",
        list(a.shape()),
        a.layout().spelled(),
        list(b.shape()),
        b.layout().spelled()
    );
    // The equations of a batch have one matrix: they are solved as one equation with more columns.
    let first = b.movedim_int(-2, 0)?;
    let sizes = Dims::from_slice(first.shape());
    let columns = first.reshape(&[sizes[0], sizes[1..].iter().product()])?;
    let x = a.sparse_solve_triangular(&columns, upper, transpose, unitriangular)?;
    x.reshape(&sizes)?.movedim_int(0, -2)?.contiguous()
}
