//! The factorisations of `faer` in memory that may be refused: its own calls take theirs from the standard library,
//! which ends the process where there is none. Matrices lie column by column in lists of [`memory`](crate::memory), and
//! [`in_workspace`] gives `faer` its workspace.

use super::{FactorFailure, Field};
use crate::{Error, Result, memory};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::{
    LltError, LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::lu::partial_pivoting::{factor as lu, solve as lu_solve};
use faer::linalg::qr::no_pivoting::factor as qr;
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::perm::PermRef;
use faer::{Conj, MatMut, MatRef, Par, Spec};

/// Runs a call of `faer` on a matrix of so many elements in memory as it requests. Products of blocks of larger matrices pack
/// their operands besides, into memory that suits the caches: that is asked for beforehand.
pub(super) fn in_workspace<R>(
    request: StackReq,
    elements: usize,
    work: impl FnOnce(&mut MemStack) -> R,
) -> Result<R> {
    const SMALL: usize = 64 * 64;
    const PACKED: usize = 8 << 20;
    let buffer = memory::fallibly(|| MemBuffer::try_new(request));
    let mut buffer =
        buffer.map_err(|_| Error::out_of_memory(request.unaligned_bytes_required()))?;
    if elements > SMALL {
        memory::probe(PACKED)?;
    }
    Ok(memory::after_probe(|| work(MemStack::new(&mut buffer))))
}

/// A matrix column by column.
pub(super) struct ColMajor<T> {
    data: Vec<T>,
    rows: usize,
    count: usize,
}

impl<T: Field> ColMajor<T> {
    /// Takes the elements over.
    pub(super) fn new(data: Vec<T>, rows: usize, columns: usize) -> Self {
        debug_assert_eq!(data.len(), rows * columns);
        ColMajor { data, rows, count: columns }
    }
    /// A matrix of zeros.
    pub(super) fn zeros(rows: usize, columns: usize) -> Result<Self> {
        Ok(ColMajor { data: memory::filled(T::default(), rows * columns)?, rows, count: columns })
    }
    /// The element at a row and a column.
    #[inline(always)]
    pub(super) fn at(&self, row: usize, column: usize) -> T {
        self.data[column * self.rows + row]
    }
    #[inline(always)]
    fn set(&mut self, row: usize, column: usize, value: T) {
        self.data[column * self.rows + row] = value;
    }
    /// A column.
    fn column(&self, c: usize) -> &[T] {
        &self.data[c * self.rows..(c + 1) * self.rows]
    }
    /// All elements, column by column.
    pub(super) fn columns(&self) -> &[T] {
        &self.data
    }
    /// All elements.
    pub(super) fn elements(&mut self) -> &mut [T] {
        &mut self.data
    }
    /// The matrix as a `faer` view.
    pub(super) fn view(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.count)
    }
    /// The matrix as a mutable `faer` view.
    pub(super) fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_column_major_slice_mut(&mut self.data, self.rows, self.count)
    }
    /// The Hermitian matrix that one triangle gives: of its diagonal the real parts count.
    pub(super) fn make_hermitian(&mut self, upper: bool) {
        for c in 0..self.count {
            self.set(c, c, T::convert(self.at(c, c).real_part()));
            for r in c + 1..self.rows {
                let (from, to) = if upper { ((c, r), (r, c)) } else { ((r, c), (c, r)) };
                self.set(to.0, to.1, self.at(from.0, from.1).conjugate());
            }
        }
    }
}

/// `P a = L U`; what solves needs a square matrix.
pub(super) struct Lu<T> {
    factors: ColMajor<T>,
    /// The permutation: which row of the matrix became each row, and its inverse.
    forward: Vec<usize>,
    backward: Vec<usize>,
}

impl<T: Field> Lu<T> {
    pub(super) fn of(mut matrix: ColMajor<T>) -> Result<Self> {
        let (m, n) = (matrix.rows, matrix.count);
        let (mut forward, mut backward) = (memory::filled(0, m)?, memory::filled(0, m)?);
        let request = lu::lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Spec::default());
        in_workspace(request, m * n, |stack| {
            let (to, back) = (&mut forward, &mut backward);
            lu::lu_in_place(matrix.view_mut(), to, back, Par::Seq, stack, Spec::default());
        })?;
        Ok(Lu { factors: matrix, forward, backward })
    }
    /// Makes right-hand sides the solutions.
    pub(super) fn solve(&self, right: MatMut<'_, T>) -> Result<()> {
        let (n, factors) = (self.factors.rows, self.factors.view());
        let request = lu_solve::solve_in_place_scratch::<usize, T>(n, right.ncols(), Par::Seq);
        let rows = PermRef::new_checked(&self.forward, &self.backward, n);
        in_workspace(request, n * n, |stack| {
            lu_solve::solve_in_place(factors, factors, rows, right, Par::Seq, stack);
        })
    }
}

/// The lower factor L of a Hermitian positive definite matrix, `a = L L^H`, in the lower triangle; else the order of the
/// first minor that is not positive definite.
pub(super) fn cholesky<T: Field>(
    mut matrix: ColMajor<T>,
) -> std::result::Result<ColMajor<T>, FactorFailure<usize>> {
    let request = cholesky_in_place_scratch::<T>(matrix.rows, Par::Seq, Spec::default());
    let done = in_workspace(request, matrix.data.len(), |stack| {
        let to = matrix.view_mut();
        cholesky_in_place(to, LltRegularization::default(), Par::Seq, stack, Spec::default())
    })?;
    match done {
        Ok(_) => Ok(matrix),
        Err(LltError::NonPositivePivot { index }) => Err(FactorFailure::OfMatrix(index + 1)),
    }
}

/// The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns; none if they do not converge.
pub(super) fn eigen<T: Field>(matrix: &ColMajor<T>) -> Result<Option<(Vec<T>, ColMajor<T>)>> {
    let n = matrix.rows;
    let (mut values, mut vectors) = (memory::filled(T::default(), n)?, ColMajor::zeros(n, n)?);
    let request =
        self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default());
    let done = in_workspace(request, n * n, |stack| {
        let values = DiagMut::from_slice_mut(&mut values);
        let vectors = Some(vectors.view_mut());
        self_adjoint_evd(matrix.view(), values, vectors, Par::Seq, stack, Spec::default())
    })?;
    Ok(done.is_ok().then_some((values, vectors)))
}

/// `a = u diag(s) v^H`.
pub(super) struct Svd<T> {
    pub(super) u: ColMajor<T>,
    pub(super) s: Vec<T>,
    pub(super) v: ColMajor<T>,
}

/// The singular values and vectors, all or as many as values; none if they do not converge.
pub(super) fn singular<T: Field>(matrix: &ColMajor<T>, full: bool) -> Result<Option<Svd<T>>> {
    let (m, n) = (matrix.rows, matrix.count);
    let k = m.min(n);
    let (mut u, mut v) = if full {
        (ColMajor::zeros(m, m)?, ColMajor::zeros(n, n)?)
    } else {
        (ColMajor::zeros(m, k)?, ColMajor::zeros(n, k)?)
    };
    let mut s = memory::filled(T::default(), k)?;
    let wanted = || if full { ComputeSvdVectors::Full } else { ComputeSvdVectors::Thin };
    let request = svd_scratch::<T>(m, n, wanted(), wanted(), Par::Seq, Spec::default());
    let done = in_workspace(request, m * n, |stack| {
        let s = DiagMut::from_slice_mut(&mut s);
        let (u, v) = (Some(u.view_mut()), Some(v.view_mut()));
        svd(matrix.view(), s, u, v, Par::Seq, stack, Spec::default())
    })?;
    Ok(done.is_ok().then_some(Svd { u, s, v }))
}

/// `a = Q R` by Householder's reflections.
pub(super) struct Qr<T> {
    /// R in the upper triangle, the reflections below.
    factors: ColMajor<T>,
    coefficients: ColMajor<T>,
}

impl<T: Field> Qr<T> {
    pub(super) fn of(mut matrix: ColMajor<T>) -> Result<Self> {
        let (m, n) = (matrix.rows, matrix.count);
        let block = qr::recommended_block_size::<T>(m, n);
        let mut coefficients = ColMajor::zeros(block, m.min(n))?;
        let request = qr::qr_in_place_scratch::<T>(m, n, block, Par::Seq, Spec::default());
        in_workspace(request, m * n, |stack| {
            let (factors, to) = (matrix.view_mut(), coefficients.view_mut());
            qr::qr_in_place(factors, to, Par::Seq, stack, Spec::default());
        })?;
        Ok(Qr { factors: matrix, coefficients })
    }
    /// Writes the first `k` rows of R, column by column.
    pub(super) fn write_r(&self, k: usize, out: &mut [T]) {
        for (c, column) in out.chunks_exact_mut(k.max(1)).enumerate() {
            let filled = k.min(c + 1);
            let (upper, lower) = column.split_at_mut(filled);
            upper.copy_from_slice(&self.factors.column(c)[..filled]);
            lower.fill(T::default());
        }
    }
    /// The first `k` columns of Q.
    pub(super) fn q(&self, k: usize) -> Result<ColMajor<T>> {
        let (m, block) = (self.factors.rows, self.coefficients.rows);
        let mut q = ColMajor::zeros(m, k)?;
        (0..k).for_each(|c| q.set(c, c, T::one()));
        let request =
            apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, k);
        in_workspace(request, m * k, |stack| {
            apply_block_householder_sequence_on_the_left_in_place_with_conj(
                self.factors.view().get(.., ..m.min(self.factors.count)),
                self.coefficients.view(),
                Conj::No,
                q.view_mut(),
                Par::Seq,
                stack,
            );
        })?;
        Ok(q)
    }
}
