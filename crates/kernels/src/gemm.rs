//! Matrix products of strided views: `matmul`, `bmm`, `dot`.
//!
//! Large `f32`, `f64` and complex products go through the `gemm` crate; vectors (`gemv`), few rows or columns (`skinny`), small
//! matrices (`small`) and integers (`integer`; `bytes` for sums of 32 bits) have their own loops, half precision is widened to
//! `f32` in row blocks (`half`) and rounded once; `bfloat16` and bytes go through instructions of their own where the machine has
//! them (`bf16`, `bytes`, both of them through `amx`). Invariant: each output element is summed over `k`
//! in an order that depends on the shapes only, so threads may split rows or columns freely. This
//! relies on the crate's depth blocking being a function of `k` alone once a block is wider than 64.

mod amx;
mod bf16;
mod bytes;
mod gemv;
mod half;
mod integer;
mod large;
mod packed;
mod skinny;
mod small;
mod tiles;

pub use bytes::int_matmul;
pub(crate) use large::GemmElement;
pub(crate) use packed::PackedRight;

use crate::dense::{SharedMut, expect_shape};
use crate::{
    C64, C128, DType, Element, Error, Result, Scalar, StridedMut, StridedRef, parallel, plan,
};

/// Multiplication and addition as a matrix product needs them: fused for floats, wrapping for
/// integers.
pub(crate) trait MulAdd: Element + PartialEq {
    /// `self * b + acc`.
    fn mul_add_to(self, b: Self, acc: Self) -> Self;
    /// `self + b`.
    fn plus(self, b: Self) -> Self;
    /// The neutral element of multiplication.
    fn one() -> Self {
        Self::from_i64(1)
    }
}

macro_rules! mul_add {
    ($($t:ty),*; $fma:expr, $add:expr) => {$(
        impl MulAdd for $t {
            #[inline(always)]
            fn mul_add_to(self, b: Self, acc: Self) -> Self { $fma(self, b, acc) }
            #[inline(always)]
            fn plus(self, b: Self) -> Self { $add(self, b) }
        }
    )*};
}
mul_add!(f32; f32::mul_add, |a, b| a + b);
mul_add!(f64; f64::mul_add, |a, b| a + b);
mul_add!(C64; |a: C64, b: C64, c: C64| C64::new(
    (-a.im).mul_add(b.im, a.re.mul_add(b.re, c.re)), a.im.mul_add(b.re, a.re.mul_add(b.im, c.im))),
    |a, b| a + b);
mul_add!(C128; |a: C128, b: C128, c: C128| C128::new(
    (-a.im).mul_add(b.im, a.re.mul_add(b.re, c.re)), a.im.mul_add(b.re, a.re.mul_add(b.im, c.im))),
    |a, b| a + b);
macro_rules! mul_add_integer {
    ($($t:ty),*) => {$(
        mul_add!($t; |a: $t, b: $t, c: $t| a.wrapping_mul(b).wrapping_add(c), <$t>::wrapping_add);
    )*};
}
mul_add_integer!(u8, i8, i16, i32, i64);

/// A matrix in memory: address of element (0, 0), row and column stride in elements.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    pub(crate) ptr: *mut T,
    pub(crate) rs: isize,
    pub(crate) cs: isize,
}

// SAFETY: a plain address; the kernels promise disjoint writes.
unsafe impl<T: Send> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Matrix<T> {}

impl<T> Matrix<T> {
    /// A row-major matrix with `columns` columns.
    pub(crate) fn rows(ptr: *const T, columns: usize) -> Self {
        Matrix { ptr: ptr.cast_mut(), rs: columns as isize, cs: 1 }
    }
    /// The transposed matrix.
    pub(crate) fn t(self) -> Self {
        Matrix { ptr: self.ptr, rs: self.cs, cs: self.rs }
    }
    /// The matrix that starts at (`row`, `column`).
    pub(crate) fn at(self, row: usize, column: usize) -> Self {
        let offset = row as isize * self.rs + column as isize * self.cs;
        Matrix { ptr: self.ptr.wrapping_offset(offset), ..self }
    }
}

/// The sizes of a product: (m x k) times (k x n).
#[derive(Clone, Copy)]
pub(crate) struct GemmSizes {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl GemmSizes {
    /// Those of the transposed product.
    fn t(self) -> Self {
        GemmSizes { m: self.n, n: self.m, k: self.k }
    }
    /// Multiply-adds in all.
    fn work(self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}

/// Below this many multiply-adds a product is not split over threads.
const THREAD_GRAIN: usize = 1 << 20;

/// `c = beta * c + alpha * a @ b` for 2-d views; `c` is not read if `beta` is zero.
///
/// Shapes: `a` (m, k), `b` (k, n), `c` (m, n), any strides (zero for broadcast inputs). Dtypes are
/// equal. Integers wrap; half precision accumulates in `f32` and rounds once. With k = 0 the product
/// is zero.
///
/// # Errors
/// Sizes that do not fit, unequal dtypes, or a dtype without products (bool, unsigned integers of more than 8
/// bits, `complex32`).
pub fn matmul(
    c: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    b: StridedRef<'_>,
    alpha: Scalar,
    beta: Scalar,
) -> Result<()> {
    let sizes = check_matmul(c, a, b)?;
    let (c_at, a_at, b_at) =
        ((c.ptr(), c.strides()), (a.ptr(), a.strides()), (b.ptr(), b.strides()));
    dispatch(c.dtype(), "addmm_impl_cpu_", sizes, c_at, a_at, b_at, alpha, beta, true)
}

/// `c[i] = beta * c[i] + alpha * a[i] @ b[i]` for 3-d views `a` (batch, m, k), `b` (batch, k, n), `c` (batch, m, n), any
/// strides; `c` is not read if `beta` is zero.
///
/// # Errors
/// Sizes that do not fit, unequal dtypes, or a dtype without products (bool, unsigned integers of more than 8
/// bits, `complex32`).
pub fn bmm(
    c: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    b: StridedRef<'_>,
    alpha: Scalar,
    beta: Scalar,
) -> Result<()> {
    let (batch, sizes) = check_bmm(c, a, b)?;
    supported(c.dtype(), "bmm")?;
    let size = c.dtype().size() as isize;
    let (cs, as_, bs) = (c.strides(), a.strides(), b.strides());
    let (c_ptr, a_ptr, b_ptr) = (
        SharedMut::from_ptr(c.ptr()),
        SharedMut::from_ptr(a.ptr().cast_mut()),
        SharedMut::from_ptr(b.ptr().cast_mut()),
    );
    let dtype = c.dtype();
    let one = |i: usize, threads: bool| {
        let at = |p: SharedMut<u8>, stride: i64| {
            p.ptr().wrapping_offset(i as isize * stride as isize * size)
        };
        let c_at = (at(c_ptr, cs[0]), &cs[1..]);
        let a_at = (at(a_ptr, as_[0]).cast_const(), &as_[1..]);
        let b_at = (at(b_ptr, bs[0]).cast_const(), &bs[1..]);
        dispatch(dtype, "bmm", sizes, c_at, a_at, b_at, alpha, beta, threads)
    };
    let each = sizes.work().max(sizes.m * sizes.n).max(1);
    if batch < 4 && each > THREAD_GRAIN {
        let products = parallel::RestartableBlocks::default();
        return (0..batch).try_for_each(|i| products.run(|| one(i, true)));
    }
    parallel::try_for_restartable_range(batch, (THREAD_GRAIN / each).max(1), &|mut range| {
        range.try_for_each(|i| one(i, false))
    })
}

/// `out = sum over i of a[i] * b[i]` for 1-d views of equal length and dtype and a 0-dim `out`; 0 for empty views.
///
/// # Errors
/// Lengths or dtypes that differ, or a dtype without products (bool, unsigned integers of more than 8
/// bits, `complex32`).
pub fn dot(out: &mut StridedMut<'_>, a: StridedRef<'_>, b: StridedRef<'_>) -> Result<()> {
    if a.ndim() != 1 || b.ndim() != 1 {
        return Err(Error::runtime(format!(
            "1D tensors expected, but got {}D and {}D tensors",
            a.ndim(),
            b.ndim()
        )));
    }
    if a.shape() != b.shape() {
        return Err(Error::runtime(format!(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, but got {} and {} elements respectively",
            a.shape()[0],
            b.shape()[0],
            a.shape()[0],
            b.shape()[0]
        )));
    }
    let n = a.shape()[0] as usize;
    let sizes = GemmSizes { m: 1, n: 1, k: n };
    let (sa, sb) = ([0, a.strides()[0]], [b.strides()[0], 0]);
    let (zero, one) = (Scalar::Int(0), Scalar::Int(1));
    same_dtype(a.dtype(), b.dtype())?;
    same_dtype(a.dtype(), out.dtype())?;
    expect_shape("out", out.shape(), &[])?;
    dispatch(
        a.dtype(),
        "dot",
        sizes,
        (out.ptr(), &[1, 1]),
        (a.ptr(), &sa),
        (b.ptr(), &sb),
        one,
        zero,
        true,
    )
}

fn same_dtype(a: DType, b: DType) -> Result<()> {
    if a == b {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.spelled(),
        b.spelled()
    )))
}

#[inline]
fn check_matmul(c: &StridedMut<'_>, a: StridedRef<'_>, b: StridedRef<'_>) -> Result<GemmSizes> {
    same_dtype(a.dtype(), b.dtype())?;
    same_dtype(a.dtype(), c.dtype())?;
    check_sizes(c, a, b)
}

/// The sizes of a product, whatever the dtypes.
#[inline]
fn check_sizes(c: &StridedMut<'_>, a: StridedRef<'_>, b: StridedRef<'_>) -> Result<GemmSizes> {
    let (&[m, k], &[k2, n]) = (a.shape(), b.shape()) else {
        return Err(Error::runtime(format!(
            "both arguments of matmul must be 2D, but they are {}D and {}D",
            a.ndim(),
            b.ndim()
        )));
    };
    if k != k2 {
        return Err(Error::runtime(format!(
            "mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})"
        )));
    }
    // (One number after the other: a list that was just put together is not yet to be read as a whole.)
    if !matches!(c.shape(), &[rows, columns] if rows == m && columns == n) {
        expect_shape("out", c.shape(), &[m, n])?;
    }
    Ok(GemmSizes { m: m as usize, n: n as usize, k: k as usize })
}

fn check_bmm(
    c: &StridedMut<'_>,
    a: StridedRef<'_>,
    b: StridedRef<'_>,
) -> Result<(usize, GemmSizes)> {
    same_dtype(a.dtype(), b.dtype())?;
    same_dtype(a.dtype(), c.dtype())?;
    let (&[batch, m, k], &[batch2, k2, n]) = (a.shape(), b.shape()) else {
        return Err(Error::runtime("batch1 must be a 3D tensor".to_owned()));
    };
    if batch != batch2 || k != k2 {
        return Err(Error::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{batch}, {k}] but got: [{batch2}, {k2}]."
        )));
    }
    expect_shape("out", c.shape(), &[batch, m, n])?;
    Ok((batch as usize, GemmSizes { m: m as usize, n: n as usize, k: k as usize }))
}

fn supported(dtype: DType, op: &str) -> Result<()> {
    match dtype {
        DType::Bool | DType::U16 | DType::U32 | DType::U64 | DType::C32 | DType::BC32 => {
            Err(Error::not_implemented(op, dtype))
        }
        _ => Ok(()),
    }
}

type PtrAndStrides<'s> = (*const u8, &'s [i64]);

/// Binds the dtype and runs the product.
#[allow(clippy::too_many_arguments, reason = "three matrices, two factors and how to run")]
fn dispatch(
    dtype: DType,
    op: &str,
    sizes: GemmSizes,
    c: (*mut u8, &[i64]),
    a: PtrAndStrides<'_>,
    b: PtrAndStrides<'_>,
    alpha: Scalar,
    beta: Scalar,
    threads: bool,
) -> Result<()> {
    fn matrix<T>(ptr: *const u8, strides: &[i64]) -> Matrix<T> {
        Matrix { ptr: ptr.cast_mut().cast(), rs: strides[0] as isize, cs: strides[1] as isize }
    }
    macro_rules! arms {
        ($($tag:ident => $t:ty, $call:path);*) => {
            match dtype {
                $(DType::$tag => {
                    let (c, a, b) = (matrix::<$t>(c.0, c.1), matrix(a.0, a.1), matrix(b.0, b.1));
                    // SAFETY: the views promised every element their strides reach.
                    unsafe { $call(sizes, c, a, b, alpha.to(), beta.to(), threads) }
                })*
                _ => Err(Error::not_implemented(op, dtype)),
            }
        };
    }
    arms!(F32 => f32, product; F64 => f64, product; C64 => C64, product; C128 => C128, product;
          F16 => crate::f16, half::product; BF16 => crate::bf16, half::product;
          U8 => u8, integer::product; I8 => i8, integer::product; I16 => i16, integer::product;
          I32 => i32, integer::product; I64 => i64, integer::product)
}

/// Products with a vector up to this many multiply-adds skip the set-up of `gemv`.
const TINY: usize = 512;

/// The ways of multiplying two matrices of floating or complex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GemmAlgorithm {
    /// There is nothing to compute.
    Nothing,
    /// The product is zero: the result is only scaled.
    Scale,
    /// A column times a row, row by row.
    Outer,
    /// A matrix and a vector.
    Vector,
    /// A small matrix and a column, as a row times a matrix, whose sums lie side by side.
    SmallTransposed,
    /// Sums over long rows for few elements.
    FewOutputs,
    /// Register tiles, straight from the operands.
    Small,
    /// Few rows, straight from the columns of the right operand.
    Skinny,
    /// Few columns, straight from the rows of the left operand.
    SkinnyTransposed,
    /// Blocks of packed operands.
    Packed,
}

/// The way in which a product is computed: a function of its sizes, its strides and the instruction set.
#[inline]
fn plan_of<T: GemmElement>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
) -> GemmAlgorithm {
    if s.m == 0 || s.n == 0 {
        GemmAlgorithm::Nothing
    } else if s.k == 0 || alpha == T::default() {
        GemmAlgorithm::Scale
    } else if s.k == 1 && s.m > 1 && s.n >= small::WIDE && c.cs == 1 && b.cs == 1 {
        GemmAlgorithm::Outer
    } else if (s.n == 1 || s.m == 1) && s.work() > TINY {
        GemmAlgorithm::Vector
    } else if s.n == 1 && s.m > 1 {
        GemmAlgorithm::SmallTransposed
    } else if gemv::has_few_outputs(s) {
        GemmAlgorithm::FewOutputs
    } else if small::fits(s) {
        GemmAlgorithm::Small
    } else if skinny::fits(s, b) {
        GemmAlgorithm::Skinny
    } else if s.n <= skinny::COLUMNS && skinny::fits(s.t(), a.t()) {
        GemmAlgorithm::SkinnyTransposed
    } else {
        GemmAlgorithm::Packed
    }
}

/// `c = beta * c + alpha * a @ b`, by the loops that [`plan_of`] chooses.
///
/// # Safety
/// All elements of the matrices are live; `c` overlaps neither `a` nor `b`.
pub(crate) unsafe fn product<T: GemmElement>(
    sizes: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    let algorithm = plan_of(sizes, c, a, b, alpha);
    plan::announce("matrix product", &algorithm);
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match algorithm {
            GemmAlgorithm::Nothing => {}
            GemmAlgorithm::Scale => small::scale(sizes, c, beta),
            GemmAlgorithm::Outer => small::outer(sizes, c, a, b, alpha, beta, threads),
            GemmAlgorithm::Vector => gemv::product(sizes, c, a, b, alpha, beta, threads)?,
            GemmAlgorithm::SmallTransposed => {
                small::product(sizes.t(), c.t(), b.t(), a.t(), alpha, beta);
            }
            GemmAlgorithm::FewOutputs => gemv::few_outputs(sizes, c, a, b, alpha, beta)?,
            GemmAlgorithm::Small => small::product(sizes, c, a, b, alpha, beta),
            GemmAlgorithm::Skinny => skinny::product(sizes, c, a, b, alpha, beta, threads)?,
            GemmAlgorithm::SkinnyTransposed => {
                skinny::product(sizes.t(), c.t(), b.t(), a.t(), alpha, beta, threads)?;
            }
            GemmAlgorithm::Packed => large::product(sizes, c, a, b, alpha, beta, threads)?,
        }
    }
    Ok(())
}

/// Rows up to which a product is not worth packing its right operand for, and the most elements of that.
const FEW_ROWS: usize = 16;
const UNPACKED: usize = 1 << 16;

/// `c = beta * c + a @ b` as one step of a recurrent layer needs it: few rows against a matrix that lies row by
/// row are multiplied from where it lies.
///
/// # Safety
/// As [`product`].
pub(crate) unsafe fn product_without_packing<T: GemmElement>(
    sizes: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: T,
) -> Result<()> {
    let is_unpacked = b.cs == 1 && c.cs == 1 && sizes.k * sizes.n <= UNPACKED;
    let is_short = sizes.m > 1 && sizes.m <= FEW_ROWS && sizes.k > 0;
    // SAFETY: the caller's promise, passed on.
    unsafe {
        if is_unpacked && is_short {
            small::product(sizes, c, a, b, T::one(), beta);
        } else {
            product(sizes, c, a, b, T::one(), beta, true)?;
        }
    }
    Ok(())
}
