//! How elements of any dtype become the items that a reducer works on, and how results are stored.
//!
//! Reducers exist only for a few compute types; every other dtype is converted block by block in
//! cache, so that there are not dtype x reducer instances of the engine.

use crate::line::{get, put};
use crate::simd::{math_f32, math_f64};
use crate::{Bool, C32, C64, C128, DType, Element, bf16, f16, for_dtype};
use std::mem::MaybeUninit;
use std::ops::BitAnd;

/// Reads `items.len()` elements from an address, at a byte distance, into items.
pub(crate) type Load<I> = unsafe fn(*const u8, isize, &mut [I]);

/// A compute type that elements of every dtype convert to.
pub(crate) trait Item: Copy + Default + Send + Sync + 'static {
    /// Converts one element.
    fn convert<T: Element>(value: T) -> Self;
}

impl Item for f32 {
    #[inline(always)]
    fn convert<T: Element>(value: T) -> f32 {
        match T::DTYPE {
            DType::I64 => value.to_i64() as f32,
            DType::U64 => value.to_i64() as u64 as f32,
            _ => value.to_f64() as f32,
        }
    }
}
impl Item for f64 {
    #[inline(always)]
    fn convert<T: Element>(value: T) -> f64 {
        value.to_f64()
    }
}
impl Item for i64 {
    #[inline(always)]
    fn convert<T: Element>(value: T) -> i64 {
        value.to_i64()
    }
}
impl Item for C64 {
    #[inline(always)]
    fn convert<T: Element>(value: T) -> C64 {
        C64::from_c128(value.to_c128())
    }
}
impl Item for C128 {
    #[inline(always)]
    fn convert<T: Element>(value: T) -> C128 {
        value.to_c128()
    }
}
/// An element is true unless it is zero: for `any`, `all` and counting.
impl Item for Bool {
    #[inline(always)]
    fn convert<T: Element>(value: T) -> Bool {
        Bool::new(value.is_true())
    }
}

unsafe fn load_any<T: Element, I: Item>(ptr: *const u8, stride: isize, items: &mut [I]) {
    if stride == size_of::<T>() as isize {
        // SAFETY: the elements have no gaps and are live, as the caller promised.
        let from = unsafe { std::slice::from_raw_parts(ptr.cast::<T>(), items.len()) };
        for (item, &value) in items.iter_mut().zip(from) {
            *item = I::convert(value);
        }
        return;
    }
    for (i, item) in items.iter_mut().enumerate() {
        // SAFETY: promised by the caller of the loader.
        *item = I::convert(unsafe { get::<T>(ptr, i as isize * stride) });
    }
}

crate::multiversion! {
fn widen_bf16(from: &[u16], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(u32::from(from) << 16);
    }
}
}

crate::multiversion! {
fn widen_f16(from: &[u16], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f16_bits_to_f32(from);
    }
}
}

/// Half to single precision in integer steps that vectorise: the exponent is rebased by a multiplication
/// with 2^112, which also normalises subnormal numbers.
#[inline(always)]
pub(crate) fn f16_bits_to_f32(bits: u16) -> f32 {
    let magnitude = (u32::from(bits) & 0x7fff) << 13;
    let rebased = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let is_special = u32::from(bits) & 0x7c00 == 0x7c00;
    let special = if is_special { 0x7f80_0000 } else { 0 };
    f32::from_bits(rebased.to_bits() | special | ((u32::from(bits) & 0x8000) << 16))
}

crate::multiversion! {
fn convert_dense<T: Element, I: Item>(from: &[T], to: &mut [I]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = I::convert(from);
    }
}
}

unsafe fn load_dense<T: Element, I: Item>(ptr: *const u8, stride: isize, items: &mut [I]) {
    if stride != size_of::<T>() as isize {
        // SAFETY: as promised to this loader.
        return unsafe { load_any::<T, I>(ptr, stride, items) };
    }
    // SAFETY: the elements have no gaps and are live, as the caller promised.
    convert_dense(unsafe { std::slice::from_raw_parts(ptr.cast::<T>(), items.len()) }, items);
}

unsafe fn load_half<const IS_BF16: bool>(ptr: *const u8, stride: isize, items: &mut [f32]) {
    if stride != 2 {
        for (i, item) in items.iter_mut().enumerate() {
            // SAFETY: promised by the caller of the loader.
            let bits = unsafe { get::<u16>(ptr, i as isize * stride) };
            *item =
                if IS_BF16 { f32::from_bits(u32::from(bits) << 16) } else { f16_bits_to_f32(bits) };
        }
        return;
    }
    // SAFETY: the elements have no gaps and are live, as the caller promised.
    let bits = unsafe { std::slice::from_raw_parts(ptr.cast::<u16>(), items.len()) };
    if IS_BF16 { widen_bf16(bits, items) } else { widen_f16(bits, items) }
}

/// The loader from `dtype` to real single precision.
pub(crate) fn load_f32(dtype: DType) -> Load<f32> {
    match dtype {
        DType::F16 => load_half::<false>,
        DType::BF16 => load_half::<true>,
        DType::F32 => load_same::<f32>,
        other => load_converted(other),
    }
}

/// The loader from `dtype` to real double precision.
pub(crate) fn load_f64(dtype: DType) -> Load<f64> {
    if dtype == DType::F64 { load_same::<f64> } else { load_converted(dtype) }
}

/// The loader from `dtype` to integers; the common narrow ones vectorise.
pub(crate) fn load_i64(dtype: DType) -> Load<i64> {
    match dtype {
        DType::Bool => load_dense::<Bool, i64>,
        DType::U8 => load_dense::<u8, i64>,
        DType::I8 => load_dense::<i8, i64>,
        DType::I16 => load_dense::<i16, i64>,
        DType::I32 => load_dense::<i32, i64>,
        DType::I64 => load_same::<i64>,
        other => load_converted(other),
    }
}

/// An element and room for another one behind it.
#[repr(C)]
struct Spaced<U>(U, MaybeUninit<U>);

crate::multiversion! {
fn take_spaced<T: Element>(from: &[Spaced<T>], to: &mut [T]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.0;
    }
}
}

crate::multiversion! {
fn nonzero<U: Bits>(from: &[U], mask: U, to: &mut [Bool]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = Bool::new((from & mask).is_true());
    }
}
}

crate::multiversion! {
fn spaced_nonzero<U: Bits>(from: &[Spaced<U>], mask: U, to: &mut [Bool]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = Bool::new((from.0 & mask).is_true());
    }
}
}

/// Unsigned numbers, as the bits of elements of their size.
trait Bits: Element + BitAnd<Output = Self> {}
impl<U: Element + BitAnd<Output = U>> Bits for U {}

/// Reads elements as booleans from their bits: any bit, but not the sign of floating numbers. (Comparisons of integers are quick one by
/// one as well.)
unsafe fn load_nonzero<U: Bits, const FLOATS: bool>(
    ptr: *const u8,
    stride: isize,
    items: &mut [Bool],
) {
    let size = size_of::<U>() as isize;
    let mask = U::from_i64(if FLOATS { i64::MAX >> (64 - 8 * size) } else { -1 });
    if stride == size {
        // SAFETY: the elements have no gaps and are live, as the caller promised.
        return nonzero(
            unsafe { std::slice::from_raw_parts(ptr.cast(), items.len()) },
            mask,
            items,
        );
    }
    let mut done = 0;
    if stride == 2 * size {
        // Behind the last one there may be no room.
        done = items.len().saturating_sub(1);
        // SAFETY: elements and what lies between them.
        let from = unsafe { std::slice::from_raw_parts(ptr.cast::<Spaced<U>>(), done) };
        spaced_nonzero(from, mask, &mut items[..done]);
    }
    for (i, item) in items.iter_mut().enumerate().skip(done) {
        // SAFETY: promised by the caller of the loader.
        *item = Bool::new((unsafe { get::<U>(ptr, i as isize * stride) } & mask).is_true());
    }
}

/// The loader from `dtype` to booleans.
pub(crate) fn load_bool(dtype: DType) -> Load<Bool> {
    match dtype {
        DType::Bool | DType::U8 | DType::I8 => load_nonzero::<u8, false>,
        DType::I16 | DType::U16 => load_nonzero::<u16, false>,
        DType::I32 | DType::U32 => load_nonzero::<u32, false>,
        DType::I64 | DType::U64 => load_nonzero::<u64, false>,
        DType::F16 | DType::BF16 => load_nonzero::<u16, true>,
        DType::F32 => load_nonzero::<u32, true>,
        DType::F64 => load_nonzero::<u64, true>,
        DType::C32 => load_any::<C32, Bool>,
        DType::C64 => load_any::<C64, Bool>,
        DType::C128 => load_any::<C128, Bool>,
        narrow => {
            for_dtype!(narrow, stored, T => load_any::<T, Bool>, else load_nonzero::<u8, false>)
        }
    }
}

/// The loader from `dtype` to any item type.
pub(crate) fn load_converted<I: Item>(dtype: DType) -> Load<I> {
    for_dtype!(dtype, all, T => load_any::<T, I>)
}

/// Copies elements that are items already.
pub(crate) unsafe fn load_same<T: Element>(ptr: *const u8, stride: isize, items: &mut [T]) {
    if stride == size_of::<T>() as isize {
        // SAFETY: the elements have no gaps and are live, as the caller promised.
        unsafe { ptr.cast::<T>().copy_to_nonoverlapping(items.as_mut_ptr(), items.len()) };
        return;
    }
    let mut done = 0;
    if stride == 2 * size_of::<T>() as isize {
        // Behind the last one there may be no room.
        done = items.len().saturating_sub(1);
        // SAFETY: elements and what lies between them.
        let from = unsafe { std::slice::from_raw_parts(ptr.cast::<Spaced<T>>(), done) };
        take_spaced(from, &mut items[..done]);
    }
    for (i, item) in items.iter_mut().enumerate().skip(done) {
        // SAFETY: promised by the caller of the loader.
        *item = unsafe { get(ptr, i as isize * stride) };
    }
}

unsafe fn load_abs_f32(ptr: *const u8, stride: isize, items: &mut [f32]) {
    for (i, item) in items.iter_mut().enumerate() {
        // SAFETY: promised by the caller of the loader.
        let value = unsafe { get::<C64>(ptr, i as isize * stride) };
        *item = math_f32::hypot(value.re, value.im);
    }
}

unsafe fn load_abs_half(ptr: *const u8, stride: isize, items: &mut [f32]) {
    for (i, item) in items.iter_mut().enumerate() {
        // SAFETY: promised by the caller of the loader.
        let value = unsafe { get::<C32>(ptr, i as isize * stride) };
        *item = math_f32::hypot(value.re.to_f32(), value.im.to_f32());
    }
}

unsafe fn load_abs_f64<T: Element>(ptr: *const u8, stride: isize, items: &mut [f64]) {
    for (i, item) in items.iter_mut().enumerate() {
        // SAFETY: promised by the caller of the loader.
        let value = unsafe { get::<T>(ptr, i as isize * stride) }.to_c128();
        *item = if T::DTYPE.is_complex() { math_f64::hypot(value.re, value.im) } else { value.re };
    }
}

/// The loader of values, or of magnitudes if complex, in single precision.
pub(crate) fn load_magnitude_f32(dtype: DType) -> Load<f32> {
    match dtype {
        DType::C32 => load_abs_half,
        DType::C64 => load_abs_f32,
        other => load_f32(other),
    }
}

/// The loader of values, or of magnitudes if complex, in double precision.
pub(crate) fn load_magnitude_f64(dtype: DType) -> Load<f64> {
    match dtype {
        DType::C32 => load_abs_f64::<C32>,
        DType::C64 => load_abs_f64::<C64>,
        DType::C128 => load_abs_f64::<C128>,
        other => load_converted(other),
    }
}

/// Stores a real number as an element of `dtype`.
///
/// # Safety
/// `ptr + offset` is a writable element of `dtype`.
#[inline]
pub(crate) unsafe fn store_f64(ptr: *mut u8, offset: isize, dtype: DType, value: f64) {
    // SAFETY: promised by the caller.
    unsafe {
        match dtype {
            DType::F32 => put(ptr, offset, value as f32),
            DType::F64 => put(ptr, offset, value),
            _ => for_dtype!(dtype, all, T => put(ptr, offset, T::from_f64(value))),
        }
    }
}

/// Calls `work` with the byte offset of each value; `(first, step)` are the offset of the first one and the distance between neighbours.
#[inline(always)]
pub(crate) fn for_each_offset<A: Copy>(
    (first, step): (isize, isize),
    values: &[A],
    work: impl Fn(isize, A),
) {
    let mut at = first;
    for &value in values {
        work(at, value);
        at = at.wrapping_add(step);
    }
}

/// Writes mapped values at the byte offsets `(first, step)` (see [`for_each_offset`]).
///
/// # Safety
/// All of it are elements of type `T`, which nothing else accesses now.
#[inline(always)]
pub(crate) unsafe fn put_each<A: Copy, T: Copy>(
    ptr: *mut u8,
    output: (isize, isize),
    values: &[A],
    map: impl Fn(A) -> T,
) {
    if output.1 == size_of::<T>() as isize {
        // SAFETY: elements without gaps, as the caller promised.
        let out = unsafe {
            std::slice::from_raw_parts_mut(ptr.wrapping_offset(output.0).cast::<T>(), values.len())
        };
        for (out, &value) in out.iter_mut().zip(values) {
            *out = map(value);
        }
        return;
    }
    // SAFETY: promised by the caller.
    for_each_offset(output, values, |at, value| unsafe { put(ptr, at, map(value)) });
}

/// Stores mapped values as elements of `dtype` at the byte offsets `(first, step)` (see [`for_each_offset`]).
///
/// # Safety
/// All of it are elements of `dtype`, which nothing else accesses now.
#[inline]
pub(crate) unsafe fn store_each_f64<A: Copy>(
    ptr: *mut u8,
    output: (isize, isize),
    dtype: DType,
    values: &[A],
    map: &impl Fn(A) -> f64,
) {
    // SAFETY: promised by the caller.
    unsafe {
        match dtype {
            DType::F32 => put_each(ptr, output, values, |value| map(value) as f32),
            DType::F64 => put_each(ptr, output, values, map),
            DType::BF16 => put_each(ptr, output, values, |value| bf16::from_f64(map(value))),
            _ => for_each_offset(output, values, |at, value| store_f64(ptr, at, dtype, map(value))),
        }
    }
}

/// Stores an integer as an element of `dtype`.
///
/// # Safety
/// The requirements of [`store_f64`].
#[inline]
pub(crate) unsafe fn store_i64(ptr: *mut u8, offset: isize, dtype: DType, value: i64) {
    // SAFETY: promised by the caller.
    unsafe {
        match dtype {
            DType::I64 => put(ptr, offset, value),
            _ => for_dtype!(dtype, all, T => put(ptr, offset, T::from_i64(value))),
        }
    }
}

/// Stores a complex number as an element of `dtype`.
///
/// # Safety
/// The requirements of [`store_f64`].
#[inline]
pub(crate) unsafe fn store_c128(ptr: *mut u8, offset: isize, dtype: DType, value: C128) {
    // SAFETY: promised by the caller.
    unsafe { for_dtype!(dtype, all, T => put(ptr, offset, T::from_c128(value))) }
}

/// Half precision types are computed in `f32`; this says which storage types those are.
pub(crate) const fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

const _: () = assert!(size_of::<f16>() == 2 && size_of::<bf16>() == 2);
