//! Contiguous access for kernels that work on whole rows: a view is borrowed as a slice when it
//! already is one, and copied (and converted) when it is not.
//!
//! The compute type `T` may differ from the view's dtype: half-precision inputs are widened to
//! `f32` once, so that every kernel above this file is written for `f32` and `f64` only. Copies are
//! the slow path by design; nothing here starts from a contiguous view of `T` and copies.

use crate::elementwise::{self, copy_slice, copy_tile};
use crate::{
    DType, Element, Error, Result, StridedMut, StridedRef, bf16, f16, for_dtype, interrupt, memory,
};
use half::slice::HalfFloatSliceExt;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;

/// A pointer that several threads may use, each for elements of its own.
pub(crate) struct SharedMut<T>(*mut T);

impl<T> Clone for SharedMut<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedMut<T> {}
// SAFETY: the users of `slice` promise disjoint ranges.
unsafe impl<T: Send> Send for SharedMut<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<T> {}

impl<T> SharedMut<T> {
    pub(crate) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }
    pub(crate) fn from_ptr(ptr: *mut T) -> Self {
        Self(ptr)
    }
    pub(crate) fn ptr(self) -> *mut T {
        self.0
    }
    /// The elements `range`.
    ///
    /// # Safety
    /// The range lies inside the slice this was made from, and no one else uses it meanwhile.
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub(crate) unsafe fn slice<'a>(self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

/// A real or complex type that kernels compute in.
pub(crate) trait Compute: Element {
    /// Converts an element of any dtype; within a family it is exact or rounds once.
    fn convert<S: Element>(value: S) -> Self;
    /// Converts back to a storage type.
    fn store<D: Element>(self) -> D;
}

macro_rules! compute {
    ($($t:ty, $from:ident, $to:ident);*) => {$(
        impl Compute for $t {
            #[inline(always)] fn convert<S: Element>(value: S) -> Self { Self::$from(value.$to()) }
            #[inline(always)] fn store<D: Element>(self) -> D { D::$from(self.$to()) }
        }
    )*};
}
compute!(f32, from_f64, to_f64; f64, from_f64, to_f64; crate::C64, from_c128, to_c128;
         crate::C128, from_c128, to_c128; i64, from_i64, to_i64);

/// Calls `each(offset)` with the element offset of every element of a view, in row-major order.
fn for_offsets(shape: &[i64], strides: &[i64], mut each: impl FnMut(isize)) {
    let Some((&inner, outer)) = shape.split_last() else { return each(0) };
    if shape.contains(&0) {
        return;
    }
    let step = strides[outer.len()] as isize;
    let mut index: SmallVec<[i64; 8]> = SmallVec::from_elem(0, outer.len());
    let mut base = 0_isize;
    let mut rows = 0_usize;
    loop {
        interrupt::check_every::<10>(rows);
        rows += 1;
        for i in interrupt::chunks(inner as usize).flatten() {
            each(base + i as isize * step);
        }
        let mut dim = outer.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            index[dim] += 1;
            base += strides[dim] as isize;
            if index[dim] < outer[dim] {
                break;
            }
            base -= (strides[dim] * outer[dim]) as isize;
            index[dim] = 0;
        }
    }
}

/// The elements of `view`, row by row, as `T`: borrowed if they already lie so.
pub(crate) fn load<T: Compute>(view: StridedRef<'_>) -> Result<Cow<'_, [T]>> {
    if let Some(slice) = view.as_slice::<T>() {
        return Ok(Cow::Borrowed(slice));
    }
    load_owned(view).map(Cow::Owned)
}

/// A list of the elements of `view`, row by row, as `T`.
pub(crate) fn load_owned<T: Compute>(view: StridedRef<'_>) -> Result<Vec<T>> {
    if let Some(slice) = view.as_slice::<T>() {
        return memory::copied(slice);
    }
    let mut out = memory::with_capacity(view.numel())?;
    load_into(view, &mut out);
    Ok(out)
}

/// The elements as a list of one's own, which is a copy if they are borrowed.
pub(crate) fn owned<T: Copy>(elements: Cow<'_, [T]>) -> Result<Vec<T>> {
    match elements {
        Cow::Borrowed(slice) => memory::copied(slice),
        Cow::Owned(list) => Ok(list),
    }
}

/// Whether a view is of dense matrices one after the other, each column by column.
fn is_transposed(shape: &[i64], strides: &[i64]) -> bool {
    let ([outer @ .., m, n], [steps @ .., down, along]) = (shape, strides) else {
        return false;
    };
    let mut step = m * n;
    (*down, *along) == (1, *m)
        && outer.iter().zip(steps).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == step;
            step *= size;
            fits
        })
}

/// Copies `n` runs of `width` elements, `from`, to `width` runs of `n`: a transposed matrix.
///
/// # Safety
/// So many elements are readable and writable, and overlap nowhere.
pub(crate) unsafe fn transpose<T: Copy>(to: *mut T, from: *const T, (n, width): (usize, usize)) {
    let size = size_of::<T>();
    let strides = ((n * size) as isize, (width * size) as isize);
    // SAFETY: the caller's promise.
    unsafe { copy_tile::<T, false>(to.cast(), from.cast(), strides, (n, width)) };
}

/// Appends the elements of `view` to `out`.
fn load_into<T: Compute>(view: StridedRef<'_>, out: &mut Vec<T>) {
    let n = view.numel();
    if n == 0 {
        return;
    }
    if T::DTYPE == DType::F32 && view.is_contiguous() {
        let target = out.spare_capacity_mut().as_mut_ptr().cast::<f32>();
        if widen(view, target) {
            // SAFETY: `widen` wrote all `n` elements into the spare capacity; T is f32.
            unsafe { out.set_len(out.len() + n) };
            return;
        }
    }
    if view.dtype() == T::DTYPE && is_transposed(view.shape(), view.strides()) {
        let [.., m, columns] = *view.shape() else { unreachable!("transposed views are matrices") };
        let (m, columns) = (m as usize, columns as usize);
        let start = out.len();
        let target = out.spare_capacity_mut()[..n].as_mut_ptr().cast::<T>();
        for matrix in (0..n).step_by(m * columns) {
            // SAFETY: a matrix of the view, of type `T`, whose columns lie one after the other, and as much room.
            unsafe {
                let from = view.ptr().cast::<T>().add(matrix);
                transpose(target.add(matrix), from, (columns, m));
            }
        }
        // SAFETY: `n` elements were written behind those that were there.
        unsafe { out.set_len(start + n) };
        return;
    }
    for_dtype!(view.dtype(), all, S => {
        let ptr = view.ptr().cast::<S>();
        for_offsets(view.shape(), view.strides(), |offset| {
            // SAFETY: the view's constructor promised every element its strides reach.
            out.push(T::convert(unsafe { *ptr.offset(offset) }));
        });
    });
}

/// Writes a contiguous half-precision view as `f32`; false if the dtype is another one.
fn widen(view: StridedRef<'_>, target: *mut f32) -> bool {
    // SAFETY: the caller has room for `numel` elements, written before they are read.
    let target = unsafe { std::slice::from_raw_parts_mut(target, view.numel()) };
    if let Some(source) = view.as_slice::<bf16>() {
        elementwise::bf16_to_f32(source.reinterpret_cast(), target);
        true
    } else if let Some(source) = view.as_slice::<f16>() {
        elementwise::f16_to_f32(source.reinterpret_cast(), target);
        true
    } else {
        false
    }
}

/// Rounds `source` into a contiguous half-precision view; false if the view is another one, or `T` is not `f32`.
fn narrow<T: Compute>(out: &mut StridedMut<'_>, source: &[T]) -> bool {
    if T::DTYPE != DType::F32 {
        return false;
    }
    // SAFETY: T is f32, which its dtype says.
    let source = unsafe { std::slice::from_raw_parts(source.as_ptr().cast::<f32>(), source.len()) };
    if let Some(target) = out.as_slice_mut::<bf16>() {
        elementwise::f32_to_bf16(source, target.reinterpret_cast_mut());
        true
    } else if let Some(target) = out.as_slice_mut::<f16>() {
        elementwise::f32_to_f16(source, target.reinterpret_cast_mut());
        true
    } else {
        false
    }
}

/// The value of a closure, which is or is not a `Result`.
pub(crate) trait IntoResult {
    /// What the closure computes if it does not fail.
    type Value;
    fn into_result(self) -> Result<Self::Value>;
}

impl IntoResult for () {
    type Value = ();
    #[inline(always)]
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl<R> IntoResult for Result<R> {
    type Value = R;
    #[inline(always)]
    fn into_result(self) -> Self {
        self
    }
}

/// A result that a caller may leave out.
pub(crate) type OptionalOutput<'o, 'v> = Option<&'o mut StridedMut<'v>>;

/// Runs `fill` on the elements of `out` as `T`: in place if they lie so, else through a buffer that
/// holds zeros at first (so `fill` must not read what was in `out`). What fails is not written through the buffer.
pub(crate) fn with_output<T: Compute, R: IntoResult>(
    out: &mut StridedMut<'_>,
    fill: impl FnOnce(&mut [T]) -> R,
) -> Result<R::Value> {
    if let Some(slice) = out.as_slice_mut::<T>() {
        return fill(slice).into_result();
    }
    let mut buffer = memory::filled(T::default(), out.numel())?;
    let result = fill(&mut buffer).into_result()?;
    store(out, &buffer);
    Ok(result)
}

/// Writes `source`, row by row, into `out`, converting.
pub(crate) fn store<T: Compute>(out: &mut StridedMut<'_>, source: &[T]) {
    if source.is_empty() || narrow(out, source) {
        return;
    }
    if let Some(out) = out.as_slice_mut::<T>() {
        return copy_slice(out, source);
    }
    if out.dtype() == T::DTYPE && is_transposed(out.shape(), out.strides()) {
        let [.., m, columns] = *out.shape() else { unreachable!("transposed views are matrices") };
        let sizes = (m as usize, columns as usize);
        for (at, matrix) in source.chunks_exact(sizes.0 * sizes.1).enumerate() {
            interrupt::check();
            // SAFETY: a matrix of the view, of type `T`, whose columns lie one after the other, and one of the source.
            unsafe {
                let to = out.ptr().cast::<T>().add(at * matrix.len());
                transpose(to, matrix.as_ptr(), sizes);
            }
        }
        return;
    }
    let mut source = source.iter();
    for_dtype!(out.dtype(), all, D => {
        let ptr = out.ptr().cast::<D>();
        for_offsets(out.shape(), out.strides(), |offset| {
            if let Some(value) = source.next() {
                // SAFETY: the view's constructor promised every element its strides reach.
                unsafe { *ptr.offset(offset) = value.store() };
            }
        });
    });
}

/// Runs an expression with `$T` bound to the type a floating dtype is computed in: `f32` for the
/// half types and `f32`, else `f64`; other dtypes give `op`'s `NotImplementedError`.
macro_rules! for_compute {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F16 | $crate::DType::BF16 | $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            other => Err($crate::Error::not_implemented($op, other)),
        }
    };
}
pub(crate) use for_compute;

/// Refuses a view whose sizes are not `expected`; `name` says which in the message.
pub(crate) fn expect_shape(name: &str, shape: &[i64], expected: &[i64]) -> Result<()> {
    if shape == expected {
        return Ok(());
    }
    Err(Error::runtime(format!("Expected {name} to have shape {expected:?}, but got {shape:?}")))
}

/// Floating-point arithmetic that the `f32` and `f64` kernels share.
pub(crate) trait Real:
    Compute
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
    + std::ops::SubAssign
    + std::ops::MulAssign
    + std::ops::DivAssign
    + std::iter::Sum
{
    const ZERO: Self;
    const ONE: Self;
    const NEG_INFINITY: Self;
    fn of(value: f64) -> Self;
    fn sqrt(self) -> Self;
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn abs(self) -> Self;
    fn is_nan(self) -> bool;
    fn wide(self) -> f64;
    fn floor(self) -> Self;
    /// To the nearest whole number, ties to even.
    fn round(self) -> Self;
}

macro_rules! real {
    ($($t:ident),*) => {$(
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            #[inline(always)] fn of(value: f64) -> Self { value as $t }
            #[inline(always)] fn sqrt(self) -> Self { $t::sqrt(self) }
            #[inline(always)] fn mul_add(self, a: Self, b: Self) -> Self { $t::mul_add(self, a, b) }
            #[inline(always)] fn abs(self) -> Self { $t::abs(self) }
            #[inline(always)] fn is_nan(self) -> bool { $t::is_nan(self) }
            #[inline(always)] fn wide(self) -> f64 { self as f64 }
            #[inline(always)] fn floor(self) -> Self { $t::floor(self) }
            #[inline(always)] fn round(self) -> Self { $t::round_ties_even(self) }
        }
    )*};
}
real!(f32, f64);

/// [`store`] of matrices that `source` holds column by column, one after the other.
pub(crate) fn store_columns<T: Compute>(out: &mut StridedMut<'_>, source: &[T]) {
    let mut shape: SmallVec<[i64; 8]> = SmallVec::from_slice(out.shape());
    let mut strides: SmallVec<[i64; 8]> = SmallVec::from_slice(out.strides());
    let rank = shape.len();
    shape.swap(rank - 2, rank - 1);
    strides.swap(rank - 2, rank - 1);
    // SAFETY: the same elements in another order.
    let mut columns = unsafe { StridedMut::new(out.ptr(), out.dtype(), &shape, &strides) };
    store(&mut columns, source);
}

#[cfg(test)]
mod transposed_tests {
    use super::*;
    use crate::{C64, C128};

    fn check<T: Compute + PartialEq + std::fmt::Debug>(
        shape: &[i64],
        strides: &[i64],
        of: impl Fn(usize) -> T,
    ) {
        let reach: i64 = 1 + shape.iter().zip(strides).map(|(n, s)| (n - 1) * s).sum::<i64>();
        let data: Vec<T> = (0..reach as usize).map(&of).collect();
        // SAFETY: the data reaches as far as sizes and strides do.
        let view =
            unsafe { StridedRef::new(data.as_ptr().cast_mut().cast(), T::DTYPE, shape, strides) };
        let mut expected = Vec::new();
        for_offsets(shape, strides, |offset| expected.push(data[offset as usize]));
        assert_eq!(load::<T>(view).unwrap().as_ref(), &expected[..], "{shape:?} {strides:?}");
        let mut stored = vec![of(0); data.len()];
        // SAFETY: as above.
        let mut view =
            unsafe { StridedMut::new(stored.as_mut_ptr().cast(), T::DTYPE, shape, strides) };
        store(&mut view, &expected);
        let mut touched = vec![of(0); data.len()];
        for_offsets(shape, strides, |offset| touched[offset as usize] = data[offset as usize]);
        assert_eq!(stored, touched, "{shape:?} {strides:?}");
    }

    #[test]
    fn transposed_matrices_are_loaded_and_stored_row_by_row() {
        for (m, n) in [(1, 1), (3, 5), (16, 16), (20, 33), (64, 17)] {
            for (shape, strides) in [
                (vec![m, n], vec![1, m]),
                (vec![2, m, n], vec![m * n, 1, m]),
                (vec![3, 2, m, n], vec![2 * m * n, m * n, 1, m]),
                // Not one after the other, or with gaps: the general way.
                (vec![2, m, n], vec![m * n + 1, 1, m]),
                (vec![m, n], vec![1, m + 1]),
            ] {
                check::<f32>(&shape, &strides, |i| i as f32);
                check::<f64>(&shape, &strides, |i| i as f64);
                check::<C64>(&shape, &strides, |i| C64::new(i as f32, 1.0));
                check::<C128>(&shape, &strides, |i| C128::new(i as f64, 2.0));
            }
        }
    }
}
