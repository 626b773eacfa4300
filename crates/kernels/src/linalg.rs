//! Dense linear algebra over batches of matrices: `svd`, `solve`, `inv`, `det`, `qr`, `cholesky`,
//! `eigh`, for `f32`, `f64`, `c64` and `c128`.
//!
//! LU with partial pivoting is our own (`elimination`, `lu`), and so are QR and Cholesky of several small real matrices
//! (`small`), Cholesky of large ones (`cholesky`), QR of middling and of complex matrices (`reflection`, `householder`), eigenvalues of symmetric ones
//! (`symmetric`), singular values (`singular`) and triangular systems for many right-hand sides (`substitution`); everything else is `faer`, one thread per matrix; the batch is split over threads, so results do not depend on them. Views are (*, m, n) with
//! any strides; an error names the first batch element that failed. `cross` has products of vectors of any dtype.
//! `triangular`, `elimination`, `reflectors`, `general_eigen` and `indefinite` take matrices as they lie in results, column by column.

mod cholesky;
mod cross;
mod decomposition;
mod elimination;
mod exponential;
mod factors;
mod general_eigen;
mod householder;
mod indefinite;
mod lu;
mod reflection;
mod reflectors;
mod singular;
mod small;
mod substitution;
mod symmetric;
#[cfg(test)]
mod tests;
mod triangular;
mod triangular_sparse;

pub use cross::cross;
pub use decomposition::{cholesky, eigh, qr, svd};
pub use elimination::{lu_factor, permutation_of};
pub use exponential::matrix_exp;
pub use general_eigen::eig;
pub use indefinite::{ldl_factor, ldl_solve};
pub use lu::{LuFactors, SystemForm, det, factor, inv, invert, slogdet, solve};
pub use reflectors::geqrf;
pub use triangular::{Triangle, solve_triangular};
pub use triangular_sparse::solve_triangular_sparse;

use crate::dense::{Compute, SharedMut, transpose};
use crate::gemm::GemmElement;
use crate::simd::math_f64;
use crate::{C64, C128, DType, Error, Result, StridedMut, StridedRef, interrupt, memory, parallel};
use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Multiply-adds worth a thread of their own.
const GRAIN: usize = 1 << 15;

/// A type that matrices are factorised in.
pub(crate) trait Field: Compute + GemmElement + faer::traits::ComplexField {
    /// The type of singular values.
    type RealPart: Compute;
    fn divided_by(self, by: Self) -> Self;
    fn minus(self, by: Self) -> Self;
    /// The size that LAPACK pivots by: |re| + |im|.
    fn cabs1(self) -> f64;
    fn conjugate(self) -> Self;
    fn real_part(self) -> Self::RealPart;
    fn magnitude(self) -> f64;
}

macro_rules! field {
    ($($t:ident => $part:ty, $size:expr, $conj:expr, $real:expr);*) => {$(
        impl Field for $t {
            type RealPart = $part;
            #[inline(always)] fn divided_by(self, by: Self) -> Self { self / by }
            #[inline(always)] fn minus(self, by: Self) -> Self { self - by }
            #[inline(always)] fn cabs1(self) -> f64 { $size(self) }
            #[inline(always)] fn conjugate(self) -> Self { $conj(self) }
            #[inline(always)] fn real_part(self) -> $part { $real(self) }
            #[inline(always)] fn magnitude(self) -> f64 { let z = <C128 as Compute>::convert(self); math_f64::hypot(z.re, z.im) }
        }
    )*};
}
field!(f32 => f32, |v: f32| f64::from(v.abs()), |v| v, |v| v;
       f64 => f64, f64::abs, |v| v, |v| v;
       C64 => f32, |v: C64| f64::from(v.re.abs()) + f64::from(v.im.abs()), |v: C64| v.conj(), |v: C64| v.re;
       C128 => f64, |v: C128| v.re.abs() + v.im.abs(), |v: C128| v.conj(), |v: C128| v.re);

/// Runs an expression with `$T` bound to the type of a dtype that has linear algebra.
macro_rules! for_field {
    ($dtype:expr, $name:expr, $kernel:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::C64 => {
                type $T = $crate::C64;
                $body
            }
            $crate::DType::C128 => {
                type $T = $crate::C128;
                $body
            }
            other => Err($crate::linalg::unsupported($name, $kernel, other)),
        }
    };
}
use for_field;

fn unsupported(name: &str, kernel: &str, dtype: DType) -> Error {
    if dtype.is_floating_point() {
        return Error::not_implemented(kernel, dtype);
    }
    Error::unsupported(format!(
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        dtype.scalar_name()
    ))
}

/// Batch size, rows and columns of (*, m, n).
fn matrices(name: &str, shape: &[i64]) -> Result<(usize, usize, usize)> {
    let [batch @ .., m, n] = shape else {
        return Err(Error::runtime(format!(
            "{name}: The input tensor A must have at least 2 dimensions."
        )));
    };
    Ok((batch.iter().map(|&s| s as usize).product(), *m as usize, *n as usize))
}

/// As [`matrices`], for square ones: batch size and order.
fn squares(name: &str, shape: &[i64]) -> Result<(usize, usize)> {
    let (batch, m, n) = matrices(name, shape)?;
    if m != n {
        return Err(Error::runtime(format!(
            "{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )));
    }
    Ok((batch, n))
}

/// The shape (*, trailing...) that goes with `a`'s batch.
fn with_batch(a: &[i64], trailing: &[usize]) -> Vec<i64> {
    let batch = &a[..a.len() - 2];
    // bounded: by the rank.
    batch.iter().copied().chain(trailing.iter().map(|&s| s as i64)).collect()
}

/// Why a matrix could not be factorised.
enum FactorFailure<F> {
    /// The matrix is singular, or not what it has to be; the value says where.
    OfMatrix(F),
    /// Another error: there is no memory.
    Other(Error),
}

impl<F> From<Error> for FactorFailure<F> {
    fn from(error: Error) -> Self {
        FactorFailure::Other(error)
    }
}

/// The result for one matrix of a batch.
type FactorResult<F> = std::result::Result<(), FactorFailure<F>>;

/// Runs `work` for each matrix of a batch; the message of the first failure names its element if
/// there is a batch dimension.
fn for_batch(
    batch: usize,
    cost: usize,
    name: &str,
    is_batched: bool,
    work: &(dyn Fn(usize) -> FactorResult<&'static str> + Sync),
) -> Result<()> {
    for_batch_with(batch, cost, name, is_batched, &|| Ok(()), &|(), i| work(i))
}

/// Runs `work` for each matrix of a batch as [`for_batch`] does, with a value that `make` creates
/// once for many matrices.
fn for_batch_with<S>(
    batch: usize,
    cost: usize,
    name: &str,
    is_batched: bool,
    make: &(dyn Fn() -> Result<S> + Sync),
    work: &(dyn Fn(&mut S, usize) -> FactorResult<&'static str> + Sync),
) -> Result<()> {
    let failed = Mutex::new(None::<(usize, &'static str)>);
    let matrices = parallel::RestartableBlocks::default();
    parallel::try_for_range(batch, (GRAIN / cost.max(1)).max(1), &|range| {
        let made = RefCell::new(None);
        for i in range {
            matrices.run(|| {
                let mut made = made.borrow_mut();
                let made = match &mut *made {
                    Some(made) => made,
                    empty => empty.insert(make()?),
                };
                match work(made, i) {
                    Err(FactorFailure::Other(error)) => return Err(error),
                    Err(FactorFailure::OfMatrix(message)) => {
                        let mut first = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        if first.is_none_or(|(first, _)| i < first) {
                            *first = Some((i, message));
                        }
                    }
                    Ok(()) => {}
                }
                Ok(())
            })?;
            let first = *failed.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_some_and(|(first, _)| first <= i) {
                break;
            }
        }
        Ok(())
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some((first, message)) = failed else { return Ok(()) };
    let element = if is_batched { format!("(Batch element {first}): ") } else { String::new() };
    Err(Error::runtime(format!("{name}: {element}{message}")))
}

/// Runs `work` for each matrix of a batch and gives its codes: 0 where the matrix could be factorised, else the number
/// (from 1) of the pivot or minor that is at fault.
fn codes_of_batch(
    batch: usize,
    cost: usize,
    work: &(dyn Fn(usize) -> FactorResult<usize> + Sync),
) -> Result<Vec<i32>> {
    let mut codes = memory::filled(0, batch)?;
    let shared = SharedMut::new(&mut codes);
    let matrices = parallel::RestartableBlocks::default();
    let one = |i: usize| {
        let code = match work(i) {
            Ok(()) => 0,
            Err(FactorFailure::OfMatrix(number)) => number as i32,
            Err(FactorFailure::Other(error)) => return Err(error),
        };
        // SAFETY: one task per matrix.
        unsafe { shared.slice(i..i + 1)[0] = code };
        Ok(())
    };
    parallel::try_for_range(batch, (GRAIN / cost.max(1)).max(1), &|mut range| {
        range.try_for_each(|i| matrices.run(|| one(i)))
    })?;
    Ok(codes)
}

/// The value of results that could not be computed.
fn undefined<T: Field>() -> T {
    T::default().divided_by(T::default())
}

/// Matrix `i` of a row-major batch, column by column.
fn to_columns<T: Field>(a: &[T], i: usize, m: usize, n: usize) -> Result<factors::ColMajor<T>> {
    Ok(factors::ColMajor::new(by_columns(a, i, m, n)?, m, n))
}

/// The elements of matrix `i` of a row-major batch, column by column.
fn by_columns<T: Field>(a: &[T], i: usize, m: usize, n: usize) -> Result<Vec<T>> {
    let a = &a[i * m * n..(i + 1) * m * n];
    let mut columns = memory::with_capacity(m * n)?;
    // SAFETY: the matrix, and room for as many elements, all of which are written.
    unsafe {
        transpose(columns.as_mut_ptr(), a.as_ptr(), (m, n));
        columns.set_len(m * n);
    }
    Ok(columns)
}

/// Writes elements of a matrix of `faer` row by row.
///
/// # Safety
/// No one else uses matrix `i` of `out`.
unsafe fn write<T>(
    out: SharedMut<T>,
    i: usize,
    m: usize,
    n: usize,
    at: impl Fn(usize, usize) -> T,
) {
    // SAFETY: the caller's promise.
    let out = unsafe { out.slice(i * m * n..(i + 1) * m * n) };
    for (row, line) in out.chunks_exact_mut(n.max(1)).enumerate() {
        interrupt::check_every::<3>(row);
        for (column, out) in line.iter_mut().enumerate() {
            *out = at(row, column);
        }
    }
}

/// A zeroed buffer for an optional output with its expected shape checked.
fn optional<T: Compute>(
    name: &str,
    view: Option<&StridedMut<'_>>,
    shape: &[i64],
) -> Result<Vec<T>> {
    let Some(view) = view else { return Ok(Vec::new()) };
    crate::dense::expect_shape(name, view.shape(), shape)?;
    memory::filled(T::default(), view.numel())
}

fn store_optional<T: Compute>(view: Option<&mut StridedMut<'_>>, values: &[T]) {
    if let Some(view) = view {
        crate::dense::store(view, values);
    }
}

fn expect_dtype(a: StridedRef<'_>, b: DType, name: &str) -> Result<()> {
    if a.dtype() == b {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
        a.dtype().scalar_name(),
        b.scalar_name()
    )))
}
