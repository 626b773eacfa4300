//! The reducers: sums, products, minimum and maximum, any and all, counts, norms and logsumexp.
//!
//! Minimum and maximum of floating-point numbers propagate NaN. Every `combine` keeps the order left then right, so that
//! results do not depend on how work is shared out.

use super::engine::{BLOCK, Reducer, fold_by_step};
use crate::elementwise::complex;
use crate::simd::math_f64;
use crate::{Bool, C64, C128};
use num_complex::Complex;
use std::convert::identity;
use std::marker::PhantomData;
use std::ops::{BitAnd, BitXor};

/// Numbers that can be added and multiplied; integers wrap.
pub(crate) trait Summand: Copy + Default + Send + Sync + 'static {
    /// One.
    const ONE: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
}

macro_rules! float_number {
    ($($t:ty),*) => {$(
        impl Summand for $t {
            const ONE: Self = 1.0;
            #[inline(always)] fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)] fn times(self, other: Self) -> Self { self * other }
            #[inline(always)] fn is_nan(self) -> bool { self != self }
        }
        impl Summand for Complex<$t> {
            const ONE: Self = Complex::new(1.0, 0.0);
            #[inline(always)] fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)] fn times(self, other: Self) -> Self { self * other }
            #[inline(always)] fn is_nan(self) -> bool { self.re != self.re || self.im != self.im }
        }
    )*};
}
float_number!(f32, f64);

impl Summand for i64 {
    const ONE: Self = 1;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

/// Declares a reducer whose partial result is one value and whose step ignores the position.
macro_rules! simple {
    ($(#[$meta:meta])* $name:ident<$T:ident: $bound:path>, $item:ty => $acc:ty,
     $identity:expr, |$this:ident, $a:ident, $x:ident| $step:expr, |$l:ident, $r:ident| $combine:expr) => {
        impl<$T: $bound> Reducer for $name<$T> {
            type Item = $item;
            type Acc = $acc;
            #[inline(always)]
            fn identity(&self) -> $acc {
                $identity
            }
            #[inline(always)]
            fn step(&self, $a: $acc, $x: $item, _: usize) -> $acc {
                let $this = self;
                let _ = $this;
                $step
            }
            #[inline(always)]
            fn combine(&self, $l: $acc, $r: $acc) -> $acc {
                $combine
            }
        }
    };
}

/// Sum.
pub(crate) struct Sum<T>(pub(crate) PhantomData<T>);
simple!(Sum<T: Summand>, T => T, T::default(), |this, a, x| a.plus(x), |l, r| l.plus(r));

/// Sum of `bfloat16` numbers in single precision, exactly as [`Sum`] of the widened numbers.
pub(crate) struct Bf16Sum;
impl Reducer for Bf16Sum {
    type Item = u16;
    type Acc = f32;
    #[inline(always)]
    fn identity(&self) -> f32 {
        0.0
    }
    #[inline(always)]
    fn step(&self, acc: f32, item: u16, _: usize) -> f32 {
        acc + f32::from_bits(u32::from(item) << 16)
    }
    #[inline(always)]
    fn combine(&self, left: f32, right: f32) -> f32 {
        left + right
    }
}

/// The "exclusive or" of the bits of integers.
pub(crate) struct XorInt;
impl Reducer for XorInt {
    type Item = i64;
    type Acc = i64;
    #[inline(always)]
    fn identity(&self) -> i64 {
        0
    }
    #[inline(always)]
    fn step(&self, acc: i64, item: i64, _: usize) -> i64 {
        acc ^ item
    }
    #[inline(always)]
    fn combine(&self, left: i64, right: i64) -> i64 {
        left ^ right
    }
}

/// The "exclusive or" of the bits of double-precision numbers.
pub(crate) struct XorFloat;
impl Reducer for XorFloat {
    type Item = f64;
    type Acc = i64;
    #[inline(always)]
    fn identity(&self) -> i64 {
        0
    }
    #[inline(always)]
    fn step(&self, acc: i64, item: f64, _: usize) -> i64 {
        acc ^ item.to_bits() as i64
    }
    #[inline(always)]
    fn combine(&self, left: i64, right: i64) -> i64 {
        left ^ right
    }
}

/// Sum that takes NaN as zero.
pub(crate) struct NanSum<T>(pub(crate) PhantomData<T>);
simple!(NanSum<T: Summand>, T => T, T::default(),
    |this, a, x| a.plus(if x.is_nan() { T::default() } else { x }), |l, r| l.plus(r));

/// Product.
pub(crate) struct Prod<T>(pub(crate) PhantomData<T>);
simple!(Prod<T: Summand>, T => T, T::ONE, |this, a, x| a.times(x), |l, r| l.times(r));

/// Numbers with a total order up to NaN.
pub(crate) trait BoundedOrder: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// Not above anything.
    const LOWEST: Self;
    /// Not below anything.
    const HIGHEST: Self;
    /// Whether it is not a number.
    #[inline(always)]
    #[allow(clippy::eq_op, reason = "NaN is what differs from itself")]
    fn is_unordered(self) -> bool {
        self != self
    }
}
macro_rules! ordered {
    ($($t:ty, $low:expr, $high:expr;)*) => {$(
        impl BoundedOrder for $t { const LOWEST: Self = $low; const HIGHEST: Self = $high; }
    )*};
}
ordered! {
    u8, 0, u8::MAX; i8, i8::MIN, i8::MAX; i16, i16::MIN, i16::MAX; i32, i32::MIN, i32::MAX;
    i64, i64::MIN, i64::MAX; u16, 0, u16::MAX; u32, 0, u32::MAX; u64, 0, u64::MAX;
    f32, f32::NEG_INFINITY, f32::INFINITY; f64, f64::NEG_INFINITY, f64::INFINITY;
}

/// The types in whose order the elements of every real dtype are compared, with the means to
/// reverse that order.
pub(crate) trait Keyed: BoundedOrder {
    /// The bits of a number.
    type Bits: Copy + Send + Sync + BitAnd<Output = Self::Bits> + BitXor<Output = Self::Bits>;
    /// No bit.
    const NONE: Self::Bits;
    /// Every bit.
    const ALL: Self::Bits;
    /// The highest bit.
    const SIGN: Self::Bits;
    /// The bits that are flipped to reverse the order.
    const ORDER_FLIP: Self::Bits;
    /// The number's bits.
    fn bits(self) -> Self::Bits;
    /// The number of these bits.
    fn of_bits(bits: Self::Bits) -> Self;
}
macro_rules! keyed {
    ($($t:ty, $sign:expr, $reversing:expr, $bits:ty, $to:expr, $from:expr;)*) => {$(
        impl Keyed for $t {
            type Bits = $bits;
            const NONE: $bits = 0;
            const ALL: $bits = !0;
            const SIGN: $bits = $sign;
            const ORDER_FLIP: $bits = $reversing;
            #[inline(always)] fn bits(self) -> $bits { $to(self) }
            #[inline(always)] fn of_bits(bits: $bits) -> Self { $from(bits) }
        }
    )*};
}
keyed! {
    i8, i8::MIN, !0, i8, identity, identity; i16, i16::MIN, !0, i16, identity, identity;
    i32, i32::MIN, !0, i32, identity, identity; i64, i64::MIN, !0, i64, identity, identity;
    f32, 1 << 31, 1 << 31, u32, f32::to_bits, f32::from_bits;
    f64, 1 << 63, 1 << 63, u64, f64::to_bits, f64::from_bits;
}

/// An order of elements: each has a key, and the largest key is wanted. One type of keys serves largest and smallest, signed
/// and unsigned numbers, values and magnitudes.
#[derive(Clone, Copy)]
pub(crate) struct Order<T: Keyed> {
    keep: T::Bits,
    flip: T::Bits,
}

impl<T: Keyed> Order<T> {
    /// The order that finds the largest or the smallest element; with `is_unsigned` the bits are
    /// those of an unsigned integer.
    pub(crate) fn new(is_max: bool, is_unsigned: bool) -> Self {
        let mut flip = T::NONE;
        if !is_max {
            flip = flip ^ T::ORDER_FLIP;
        }
        if is_unsigned {
            flip = flip ^ T::SIGN;
        }
        Order { keep: T::ALL, flip }
    }
    /// The order by magnitude of floating-point numbers: the sign bit is ignored.
    pub(crate) fn of_magnitudes(self) -> Self {
        Order { keep: T::ALL ^ T::SIGN, ..self }
    }
    /// The key of an element.
    #[inline(always)]
    fn key(&self, item: T) -> T {
        T::of_bits((item.bits() & self.keep) ^ self.flip)
    }
    /// The element (or its magnitude) of a key.
    #[inline(always)]
    pub(crate) fn value(&self, key: T) -> T {
        T::of_bits(key.bits() ^ self.flip)
    }
}

/// The largest key of the items, from which [`Order::value`] gives the minimum or maximum; NaN if there is one.
pub(crate) struct MinMax<T: Keyed>(pub(crate) Order<T>);

/// The larger of two numbers; NaN wins.
#[inline(always)]
fn larger<T: BoundedOrder>(a: T, x: T) -> T {
    if (x > a) | x.is_unordered() { x } else { a }
}

impl<T: Keyed> Reducer for MinMax<T> {
    type Item = T;
    type Acc = T;
    #[inline(always)]
    fn identity(&self) -> T {
        T::LOWEST
    }
    #[inline(always)]
    fn step(&self, acc: T, item: T, _: usize) -> T {
        larger(acc, self.0.key(item))
    }
    #[inline(always)]
    fn combine(&self, left: T, right: T) -> T {
        larger(left, right)
    }
    /// Eight rows are joined in pairs, which waits for fewer of them one after the other.
    #[inline(always)]
    fn fold_rows(&self, accs: &mut [T], rows: &[&[T]], _: usize) {
        accs.fill(self.identity());
        let n = accs.len();
        let (groups, rest) = rows.as_chunks::<8>();
        for group in groups {
            let [a, b, c, d, e, f, g, h] = group.map(|row| &row[..n]);
            for (j, acc) in accs.iter_mut().enumerate() {
                let ab = larger(self.0.key(a[j]), self.0.key(b[j]));
                let cd = larger(self.0.key(c[j]), self.0.key(d[j]));
                let ef = larger(self.0.key(e[j]), self.0.key(f[j]));
                let gh = larger(self.0.key(g[j]), self.0.key(h[j]));
                *acc = larger(*acc, larger(larger(ab, cd), larger(ef, gh)));
            }
        }
        for row in rest {
            for (acc, &item) in accs.iter_mut().zip(*row) {
                *acc = larger(*acc, self.0.key(item));
            }
        }
    }
}

/// A value and the index where it was first seen; `usize::MAX` before any item.
#[derive(Clone, Copy)]
pub(crate) struct ValueAndIndex<T> {
    /// The value.
    pub(crate) value: T,
    /// Its index in the reduced dimensions, in logical order.
    pub(crate) at: usize,
}

/// Key of the element that comes last in an order, with its first position; the first NaN wins.
pub(crate) struct ArgMinMax<T: Keyed>(pub(crate) Order<T>);

impl<T: Keyed> Reducer for ArgMinMax<T> {
    type Item = T;
    type Acc = ValueAndIndex<T>;
    const IS_BY_STEP: bool = false;
    const IS_ORDERED: bool = true;
    #[inline(always)]
    fn identity(&self) -> ValueAndIndex<T> {
        ValueAndIndex { value: T::LOWEST, at: usize::MAX }
    }
    #[inline(always)]
    fn step(&self, acc: ValueAndIndex<T>, item: T, at: usize) -> ValueAndIndex<T> {
        self.combine(acc, ValueAndIndex { value: self.0.key(item), at })
    }
    #[inline(always)]
    fn combine(&self, left: ValueAndIndex<T>, right: ValueAndIndex<T>) -> ValueAndIndex<T> {
        let is_first_nan = right.value.is_unordered() & !left.value.is_unordered();
        // Of equal values the first counts: rows side by side are not joined in their order.
        let is_same =
            (right.value == left.value) | (right.value.is_unordered() & left.value.is_unordered());
        let takes = (right.value > left.value) | is_first_nan | (is_same & (right.at < left.at));
        if (takes | (left.at == usize::MAX)) & (right.at != usize::MAX) { right } else { left }
    }
    #[inline(always)]
    fn interleaved(&self, acc: ValueAndIndex<T>, part: usize, parts: usize) -> ValueAndIndex<T> {
        ValueAndIndex { at: acc.at * parts + part, ..acc }
    }
    /// The largest key first, then its position: both loops vectorise.
    #[inline(always)]
    fn fold(&self, items: &[T], at: usize) -> ValueAndIndex<T> {
        if items.is_empty() {
            return self.identity();
        }
        let value = fold_by_step(&MinMax(self.0), items, 0);
        let is_nan = value.is_unordered();
        let predicate = |x: T| {
            let key = self.0.key(x);
            (key == value) | (is_nan & key.is_unordered())
        };
        ValueAndIndex { value, at: at + position(items, predicate) }
    }
    #[inline(always)]
    fn fold_rows(&self, accs: &mut [ValueAndIndex<T>], rows: &[&[T]], at: usize) {
        let Some((first, rows)) = rows.split_first() else { return accs.fill(self.identity()) };
        for (block, accs) in accs.chunks_mut(64).enumerate() {
            let (mut values, mut indices) = ([T::LOWEST; 64], [0_u32; 64]);
            let columns = block * 64..block * 64 + accs.len();
            for (value, &x) in values.iter_mut().zip(&first[columns.clone()]) {
                *value = self.0.key(x);
            }
            for (i, row) in rows.iter().enumerate() {
                let row = &row[columns.clone()];
                for ((value, index), &x) in values.iter_mut().zip(&mut indices).zip(row) {
                    let (key, best) = (self.0.key(x), *value);
                    let takes = is_above(key, best) & !best.is_unordered();
                    *value = if takes { key } else { best };
                    *index = if takes { i as u32 + 1 } else { *index };
                }
            }
            for ((acc, &value), &index) in accs.iter_mut().zip(&values).zip(&indices) {
                *acc = ValueAndIndex { value, at: at + index as usize };
            }
        }
    }
}

/// Whether `key` is larger than `best`, or one of them is NaN.
#[inline(always)]
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "one comparison for order and NaN")]
fn is_above<T: BoundedOrder>(key: T, best: T) -> bool {
    !(key <= best)
}

/// Index of the first item that `predicate` accepts; there must be one.
#[inline(always)]
fn position<T: Copy>(items: &[T], predicate: impl Fn(T) -> bool) -> usize {
    let (groups, rest) = items.as_chunks::<64>();
    for (g, group) in groups.iter().enumerate() {
        let mut found = false;
        for &x in group {
            found |= predicate(x);
        }
        if found {
            return g * 64 + group.iter().position(|&x| predicate(x)).unwrap_or(0);
        }
    }
    groups.len() * 64 + rest.iter().position(|&x| predicate(x)).unwrap_or(0)
}

/// Whether any (or, if not `ANY`, every) item is true.
pub(crate) struct AnyOrAll<const ANY: bool>;

impl<const ANY: bool> Reducer for AnyOrAll<ANY> {
    type Item = Bool;
    type Acc = u8;
    #[inline(always)]
    fn identity(&self) -> u8 {
        u8::from(!ANY)
    }
    #[inline(always)]
    fn step(&self, acc: u8, item: Bool, _: usize) -> u8 {
        let item = u8::from(item.get());
        if ANY { acc | item } else { acc & item }
    }
    #[inline(always)]
    fn combine(&self, left: u8, right: u8) -> u8 {
        if ANY { left | right } else { left & right }
    }
}

/// How many items are true.
pub(crate) struct CountNonzero;

impl Reducer for CountNonzero {
    type Item = Bool;
    type Acc = i64;
    const IS_BY_STEP: bool = false;
    #[inline(always)]
    fn identity(&self) -> i64 {
        0
    }
    #[inline(always)]
    fn step(&self, acc: i64, item: Bool, _: usize) -> i64 {
        acc + i64::from(item.get())
    }
    #[inline(always)]
    fn combine(&self, left: i64, right: i64) -> i64 {
        left + right
    }
    #[inline(always)]
    fn fold(&self, items: &[Bool], _: usize) -> i64 {
        // A byte counts up to 255, so 64 lanes of bytes hold any block of up to 64 * 255 items.
        const { assert!(BLOCK <= 64 * 255) };
        let mut lanes = [0_u8; 64];
        let (groups, rest) = items.as_chunks::<64>();
        for group in groups {
            for (lane, item) in lanes.iter_mut().zip(group) {
                *lane += u8::from(item.get());
            }
        }
        let whole: i64 = lanes.iter().map(|&lane| i64::from(lane)).sum();
        whole + rest.iter().map(|item| i64::from(item.get())).sum::<i64>()
    }
    #[inline(always)]
    fn fold_rows(&self, accs: &mut [i64], rows: &[&[Bool]], _: usize) {
        const { assert!(super::engine::ROWS <= 255) };
        for (block, accs) in accs.chunks_mut(64).enumerate() {
            let mut lanes = [0_u8; 64];
            for row in rows {
                let items = &row[block * 64..block * 64 + accs.len()];
                for (lane, item) in lanes.iter_mut().zip(items) {
                    *lane += u8::from(item.get());
                }
            }
            for (acc, &lane) in accs.iter_mut().zip(&lanes) {
                *acc = i64::from(lane);
            }
        }
    }
}

/// Real floating-point arithmetic for norms and variance.
pub(crate) trait FloatSummand: Summand + Keyed {
    /// The value rounded from double precision.
    fn of(value: f64) -> Self;
    /// The value in double precision.
    fn wide(self) -> f64;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The power.
    fn power(self, exponent: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The exponential.
    fn exponential(self) -> Self;
}
macro_rules! real {
    ($($t:ty, $exp:path, $pow:path;)*) => {$(
        impl FloatSummand for $t {
            #[inline(always)] fn of(value: f64) -> Self { value as $t }
            #[inline(always)] fn wide(self) -> f64 { self as f64 }
            #[inline(always)] fn abs(self) -> Self { self.abs() }
            #[inline(always)] fn power(self, exponent: Self) -> Self { $pow(self, exponent) }
            #[inline(always)] fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)] fn exponential(self) -> Self { $exp(self) }
        }
    )*};
}
real! {
    f32, crate::simd::math_f32::exp_single, crate::simd::math_f32::pow;
    f64, crate::simd::math_f64::exp, crate::simd::math_f64::pow;
}

/// Sum of magnitudes.
pub(crate) struct AbsSum<T>(pub(crate) PhantomData<T>);
simple!(AbsSum<T: FloatSummand>, T => T, T::default(), |this, a, x| a.plus(x.abs()), |l, r| l.plus(r));

/// Sum of squares.
pub(crate) struct SquareSum<T>(pub(crate) PhantomData<T>);
simple!(SquareSum<T: FloatSummand>, T => T, T::default(), |this, a, x| a.plus(x.times(x)), |l, r| l.plus(r));

/// Number of items that are not zero.
pub(crate) struct NonzeroCount<T>(pub(crate) PhantomData<T>);
simple!(NonzeroCount<T: FloatSummand>, T => T, T::default(),
    |this, a, x| a.plus(if x == T::default() { T::default() } else { T::ONE }), |l, r| l.plus(r));

/// Sum of magnitudes to a power.
pub(crate) struct AbsPowerSum<T>(pub(crate) T);
simple!(AbsPowerSum<T: FloatSummand>, T => T, T::default(),
    |this, a, x| a.plus(x.abs().power(this.0)), |l, r| l.plus(r));

/// Largest value and the sum of exponentials relative to it.
#[derive(Clone, Copy)]
pub(crate) struct LogSumExpAcc<T> {
    /// The largest value.
    pub(crate) max: T,
    /// `sum(exp(x - max))`.
    pub(crate) sum: T,
}

/// `log(sum(exp(x)))` in one pass over memory.
pub(crate) struct LogSumExp<T>(pub(crate) PhantomData<T>);

/// What exponentials are taken relative to: the largest value, or zero if it is infinite.
#[inline(always)]
fn centre<T: FloatSummand>(max: T) -> T {
    if max.abs() == T::HIGHEST { T::default() } else { max }
}

impl<T: FloatSummand> Reducer for LogSumExp<T> {
    type Item = T;
    type Acc = LogSumExpAcc<T>;
    const IS_BY_STEP: bool = false;
    #[inline(always)]
    fn identity(&self) -> LogSumExpAcc<T> {
        LogSumExpAcc { max: T::LOWEST, sum: T::default() }
    }
    #[inline(always)]
    fn step(&self, acc: LogSumExpAcc<T>, item: T, _: usize) -> LogSumExpAcc<T> {
        let exp = item.minus(centre(item)).exponential();
        self.combine(acc, LogSumExpAcc { max: item, sum: exp })
    }
    #[inline(always)]
    fn combine(&self, left: LogSumExpAcc<T>, right: LogSumExpAcc<T>) -> LogSumExpAcc<T> {
        let max = larger(left.max, right.max);
        let scale = |part: LogSumExpAcc<T>| {
            if part.max == max || part.sum == T::default() {
                return part.sum;
            }
            part.sum.times(centre(part.max).minus(centre(max)).exponential())
        };
        LogSumExpAcc { max, sum: scale(left).plus(scale(right)) }
    }
    #[inline(always)]
    fn fold(&self, items: &[T], _: usize) -> LogSumExpAcc<T> {
        let max = fold_by_step(&MinMax(Order::new(true, false)), items, 0);
        let centre = centre(max);
        let mut lanes = [T::default(); 16];
        let (groups, rest) = items.as_chunks::<16>();
        for group in groups {
            add_exponentials(&mut lanes, *group, [centre; 16]);
        }
        if !rest.is_empty() {
            add_exponentials(&mut lanes, lowest(rest), [centre; 16]);
        }
        LogSumExpAcc { max, sum: fold_by_step(&Sum(PhantomData), &lanes, 0) }
    }
    #[inline(always)]
    fn fold_rows(&self, accs: &mut [LogSumExpAcc<T>], rows: &[&[T]], _: usize) {
        for (block, accs) in accs.chunks_mut(16).enumerate() {
            let columns = block * 16..block * 16 + accs.len();
            let mut max = [T::LOWEST; 16];
            for row in rows {
                let items = lowest(&row[columns.clone()]);
                for j in 0..16 {
                    max[j] = larger(max[j], items[j]);
                }
            }
            let (mut centres, mut sums) = (max, [T::default(); 16]);
            for value in &mut centres {
                *value = centre(*value);
            }
            for row in rows {
                add_exponentials(&mut sums, lowest(&row[columns.clone()]), centres);
            }
            for (j, acc) in accs.iter_mut().enumerate() {
                *acc = LogSumExpAcc { max: max[j], sum: sums[j] };
            }
        }
    }
}

/// At most sixteen items, filled up with the lowest value, whose exponential is zero.
#[inline(always)]
fn lowest<T: BoundedOrder>(items: &[T]) -> [T; 16] {
    if let Some(items) = items.first_chunk::<16>() {
        return *items;
    }
    let mut lanes = [T::LOWEST; 16];
    lanes[..items.len()].copy_from_slice(items);
    lanes
}

/// `sums[j] += exp(items[j] - centres[j])`.
#[inline(always)]
fn add_exponentials<T: FloatSummand>(sums: &mut [T; 16], items: [T; 16], centres: [T; 16]) {
    let mut lanes = *sums;
    for j in 0..16 {
        lanes[j] = lanes[j].plus(items[j].minus(centres[j]).exponential());
    }
    *sums = lanes;
}

/// `log(sum(exp(z)))` of complex numbers, relative to the largest real part.
pub(crate) struct ComplexLogSumExp;

/// The largest real part and the sum of exponentials relative to it.
#[derive(Clone, Copy)]
pub(crate) struct ComplexLogSumExpAcc {
    /// The largest real part.
    pub(crate) max: f64,
    /// `sum(exp(z - max))`.
    pub(crate) sum: C128,
}

impl Reducer for ComplexLogSumExp {
    type Item = C128;
    type Acc = ComplexLogSumExpAcc;
    #[inline(always)]
    fn identity(&self) -> ComplexLogSumExpAcc {
        ComplexLogSumExpAcc { max: f64::NEG_INFINITY, sum: C128::default() }
    }
    #[inline(always)]
    fn step(&self, acc: ComplexLogSumExpAcc, item: C128, _: usize) -> ComplexLogSumExpAcc {
        let sum = complex::exp(item - centre(item.re));
        self.combine(acc, ComplexLogSumExpAcc { max: item.re, sum })
    }
    #[inline(always)]
    fn combine(
        &self,
        left: ComplexLogSumExpAcc,
        right: ComplexLogSumExpAcc,
    ) -> ComplexLogSumExpAcc {
        let max = larger(left.max, right.max);
        let scale = |part: ComplexLogSumExpAcc| {
            if part.max == max || part.sum == C128::default() {
                return part.sum;
            }
            part.sum * math_f64::exp(centre(part.max) - centre(max))
        };
        ComplexLogSumExpAcc { max, sum: scale(left) + scale(right) }
    }
}

const _: () = assert!(size_of::<C64>() == 8);
