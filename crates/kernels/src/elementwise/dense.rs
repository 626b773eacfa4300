//! From a map of one element to a loop over dense memory, compiled once per instruction set.
//!
//! `Map1`, `Map2`, `Map3` say what one element becomes; `run1`, `run2`, `run3` hand the loop of the
//! level in use to `drive`. Invariant of a loop: every operand is dense, aligned, of the map's types,
//! and the output overlaps no input (`drive` copies where a caller works in place), which lets LLVM
//! vectorise without checks at run time. Maps that take less time than reading and writing the elements also
//! have a `RowLoop` loop, which takes strided rows, in-place calls and one number for a whole row without copies.

use super::drive::{DenseLoop, OpLoops, RowBlock, RowLoop, drive};
use crate::{Element, Iter, Result};

/// Which levels an op is compiled for: none but the baseline, up to AVX2, or all.
pub(crate) trait Levels {
    fn loop1<K: Map1>() -> DenseLoop;
    fn loop2<K: Map2>() -> DenseLoop;
    fn loop3<K: Map3>() -> DenseLoop;
    fn row_loop1<K: Map1>() -> Option<RowLoop> {
        None
    }
    fn row_loop2<K: Map2>() -> Option<RowLoop> {
        None
    }
}

/// Compiled for the baseline only: library functions that no wider register would speed up.
pub(crate) struct BaselineOnly;
/// Compiled up to AVX2: integers and complex numbers, where memory is the limit anyway.
pub(crate) struct UpToAvx2;
/// Compiled for every level.
pub(crate) struct AllLevels;

/// A map of one input.
pub(crate) trait Map1 {
    type P: Copy + Sync;
    type A: Element;
    type Out: Element;
    type Levels: Levels;
    fn map(p: Self::P, a: Self::A) -> Self::Out;
    /// Whether memory is slower than the map.
    const CHEAP: bool = false;
    /// Whether `map` does not hold for some inputs (`needs_slow_path`), which `slow_path` then computes.
    const HAS_SLOW_PATH: bool = false;
    #[inline(always)]
    fn needs_slow_path(_a: Self::A) -> bool {
        false
    }
    fn slow_path(p: Self::P, a: Self::A) -> Self::Out {
        Self::map(p, a)
    }
    /// Whether `slow_path` is worth registers too, because hard inputs come in numbers.
    const SLOW_PATH_IS_WIDE: bool = false;
    /// Whether a wide `slow_path` does not hold either, so that `last_path` is used.
    #[inline(always)]
    fn needs_last_path(_a: Self::A) -> bool {
        false
    }
    fn last_path(p: Self::P, a: Self::A) -> Self::Out {
        Self::slow_path(p, a)
    }
}

/// A map of two inputs.
pub(crate) trait Map2 {
    type P: Copy + Sync;
    type A: Element;
    type B: Element;
    type Out: Element;
    type Levels: Levels;
    fn map(p: Self::P, a: Self::A, b: Self::B) -> Self::Out;
    /// Whether memory is slower than the map.
    const CHEAP: bool = false;
    /// Whether there is a loop over rows: for maps that are not cheap, over rows that fill a register.
    const BY_ROWS: bool = Self::CHEAP;
    /// Whether `map` is wrong for some inputs (`needs_slow_path`), which `slow_path` then computes.
    const HAS_SLOW_PATH: bool = false;
    #[inline(always)]
    fn needs_slow_path(_a: Self::A, _b: Self::B) -> bool {
        false
    }
    fn slow_path(p: Self::P, a: Self::A, b: Self::B) -> Self::Out {
        Self::map(p, a, b)
    }
}

/// A map of three inputs.
pub(crate) trait Map3 {
    type P: Copy + Sync;
    type A: Element;
    type B: Element;
    type C: Element;
    type Out: Element;
    type Levels: Levels;
    fn map(p: Self::P, a: Self::A, b: Self::B, c: Self::C) -> Self::Out;
}

/// Elements that fill a register.
const REGISTER: usize = 16;
/// Elements that are computed before those are looked for that need the slow path.
const CHUNK: usize = 256;

/// The bytes of a cache line, the lines that are prefetched at once, and how far ahead they are.
const LINE: usize = 64;
const ASKED: usize = 4 * LINE;
const AHEAD: usize = 1024;
/// The size, in bytes, of a part of a walk from which a map prefetches its operands: those of
/// shorter parts are in the caches.
const BEYOND_CACHES: usize = 1 << 17;

/// Prefetches the lines of both operands that are needed soon: a map that computes for longer than
/// a line takes to arrive does not make the processor read far enough ahead by itself.
#[inline(always)]
fn look_ahead<A, Out>(a: &[A], out: &[Out]) {
    for line in (AHEAD..AHEAD + ASKED).step_by(LINE) {
        crate::simd::prefetch(a.as_ptr().cast::<u8>().wrapping_add(line));
        crate::simd::prefetch(out.as_ptr().cast::<u8>().wrapping_add(line));
    }
}

/// [`body1`] of operands that caches do not hold, in steps of a few lines.
#[inline(always)]
fn long_body1<K: Map1>(out: &mut [K::Out], a: &[K::A], p: K::P) {
    let step = ASKED / size_of::<K::Out>().max(size_of::<K::A>());
    for (out, a) in out.chunks_mut(step).zip(a.chunks(step)) {
        look_ahead(a, out);
        let mut hard = false;
        for (out, &a) in out.iter_mut().zip(a) {
            *out = K::map(p, a);
            hard |= K::HAS_SLOW_PATH && K::needs_slow_path(a);
        }
        if hard {
            redo_hard1::<K>(out, a, p);
        }
    }
}

/// Computes those elements again for which the map does not hold, by its slow path.
#[inline(always)]
fn redo_hard1<K: Map1>(out: &mut [K::Out], a: &[K::A], p: K::P) {
    if !K::SLOW_PATH_IS_WIDE {
        return scalar_path1::<K>(out, a, p, K::needs_slow_path, K::slow_path);
    }
    let mut harder = false;
    for (out, &a) in out.iter_mut().zip(a) {
        *out = if K::needs_slow_path(a) { K::slow_path(p, a) } else { *out };
        harder |= K::needs_last_path(a);
    }
    if harder {
        scalar_path1::<K>(out, a, p, K::needs_last_path, K::last_path);
    }
}

#[inline(always)]
fn body1<K: Map1>(out: &mut [K::Out], a: &[K::A], p: K::P) {
    let n = out.len();
    let a = &a[..n];
    if !K::CHEAP && n * size_of::<K::A>() >= BEYOND_CACHES {
        return long_body1::<K>(out, a, p);
    }
    if !K::HAS_SLOW_PATH {
        for i in 0..n {
            out[i] = K::map(p, a[i]);
        }
        return;
    }
    for (out, a) in out.chunks_mut(CHUNK).zip(a.chunks(CHUNK)) {
        let mut hard = false;
        for (out, &a) in out.iter_mut().zip(a) {
            *out = K::map(p, a);
            hard |= K::needs_slow_path(a);
        }
        if hard {
            redo_hard1::<K>(out, a, p);
        }
    }
}

#[cold]
#[inline(never)]
fn scalar_path1<K: Map1>(
    out: &mut [K::Out],
    a: &[K::A],
    p: K::P,
    is_needed: impl Fn(K::A) -> bool,
    path: impl Fn(K::P, K::A) -> K::Out,
) {
    for (out, &a) in out.iter_mut().zip(a) {
        if is_needed(a) {
            *out = path(p, a);
        }
    }
}

#[inline(always)]
fn body2<K: Map2>(out: &mut [K::Out], a: &[K::A], b: &[K::B], p: K::P) {
    let n = out.len();
    let (a, b) = (&a[..n], &b[..n]);
    if !K::HAS_SLOW_PATH {
        for i in 0..n {
            out[i] = K::map(p, a[i], b[i]);
        }
        return;
    }
    for ((out, a), b) in out.chunks_mut(CHUNK).zip(a.chunks(CHUNK)).zip(b.chunks(CHUNK)) {
        let mut hard = false;
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = K::map(p, a, b);
            hard |= K::needs_slow_path(a, b);
        }
        if hard {
            slow_path2::<K>(out, a, b, p);
        }
    }
}

#[cold]
#[inline(never)]
fn slow_path2<K: Map2>(out: &mut [K::Out], a: &[K::A], b: &[K::B], p: K::P) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        if K::needs_slow_path(a, b) {
            *out = K::slow_path(p, a, b);
        }
    }
}

#[inline(always)]
fn body3<K: Map3>(out: &mut [K::Out], a: &[K::A], b: &[K::B], c: &[K::C], p: K::P) {
    let n = out.len();
    let (a, b, c) = (&a[..n], &b[..n], &c[..n]);
    for i in 0..n {
        out[i] = K::map(p, a[i], b[i], c[i]);
    }
}

/// The loops of one arity, one per level.
macro_rules! dense_loops {
    ($module:ident, $map:ident, $body:ident, [$($arg:ident: $In:ident = $index:literal),+]) => {
        mod $module {
            use super::$map;
            use super::$body as body;

            // The slices are parameters of a function that is not inlined, so that LLVM knows that
            // they do not overlap.
            #[inline(never)]
            fn on_baseline<K: $map>(out: &mut [K::Out], $($arg: &[K::$In],)+ p: K::P) {
                body::<K>(out, $($arg,)+ p);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn on_avx2<K: $map>(out: &mut [K::Out], $($arg: &[K::$In],)+ p: K::P) {
                body::<K>(out, $($arg,)+ p);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn on_avx512<K: $map>(out: &mut [K::Out], $($arg: &[K::$In],)+ p: K::P) {
                body::<K>(out, $($arg,)+ p);
            }

            dense_loops!(@erase $map, baseline, on_baseline, [$($arg: $In = $index),+]);
            #[cfg(target_arch = "x86_64")]
            dense_loops!(@erase $map, avx2, on_avx2, [$($arg: $In = $index),+]);
            #[cfg(target_arch = "x86_64")]
            dense_loops!(@erase $map, avx512, on_avx512, [$($arg: $In = $index),+]);
        }
    };
    (@erase $map:ident, $name:ident, $typed:ident, [$($arg:ident: $In:ident = $index:literal),+]) => {
        /// # Safety
        /// The pointers have `n` dense elements of the map's types, the output apart from the
        /// inputs; `p` points to the map's parameters; the level is present.
        #[allow(unused_unsafe, reason = "the baseline version needs no instruction set")]
        pub(super) unsafe fn $name<K: $map>(ptrs: &[*mut u8], n: usize, p: *const u8) {
            // SAFETY: as promised by the caller.
            unsafe {
                let out = std::slice::from_raw_parts_mut(ptrs[0].cast::<K::Out>(), n);
                $(let $arg = std::slice::from_raw_parts(ptrs[$index].cast::<K::$In>(), n);)+
                $typed::<K>(out, $($arg,)+ *p.cast::<K::P>());
            }
        }
    };
}
dense_loops!(one, Map1, body1, [a: A = 1]);
dense_loops!(two, Map2, body2, [a: A = 1, b: B = 2]);
dense_loops!(three, Map3, body3, [a: A = 1, b: B = 2, c: C = 3]);

/// Calls `each` with the addresses of each row. What a row needs stays in registers: a value read back from the stack
/// between rows waits for the output's stores, which are told apart from it by the last twelve bits of their addresses.
#[inline(always)]
fn for_each_row<const N: usize>(run: &RowBlock<'_>, each: impl Fn([*mut u8; N])) {
    let mut at: [*mut u8; N] = std::array::from_fn(|i| run.at[i]);
    let row_strides: [isize; N] = std::array::from_fn(|i| run.row_strides[i]);
    for _ in 0..run.count {
        each(at);
        for (at, row_stride) in at.iter_mut().zip(row_strides) {
            *at = at.wrapping_offset(row_stride);
        }
    }
}

/// Replaces `n` elements by what `map` makes of them. Many are taken from two positions in turn: memory reads ahead at
/// both, which is a fifth faster than at one. (Half a page more or less between them, for a load waits for a store to
/// the same offset in another page.)
///
/// # Safety
/// Nobody else uses the elements, which are of type `A` and then of type `Out`.
#[inline(always)]
unsafe fn in_place<Out, A: Copy>(out: *mut u8, n: usize, map: impl Fn(A) -> Out) {
    const PAGE: usize = 4096;
    const MANY: usize = 1 << 17;
    let size = size_of::<A>();
    let is_split = size == size_of::<Out>() && n * size >= MANY;
    let (from, to) = (out.cast::<A>(), out.cast::<Out>());
    let half = if is_split { (n * size / 2 / PAGE * PAGE - PAGE / 2) / size } else { 0 };
    // SAFETY: all inside of the `n` elements.
    unsafe {
        for i in 0..half {
            let j = half + i;
            let (first, second) = (map(*from.add(i)), map(*from.add(j)));
            *to.add(i) = first;
            *to.add(j) = second;
        }
        for i in 2 * half..n {
            *to.add(i) = map(*from.add(i));
        }
    }
}

/// The direct loop of a map of one input, which is one element for each row if `single` is 1.
///
/// # Safety
/// As for [`RowLoop`], for operands of the map's types.
#[inline(always)]
unsafe fn row_body1<K: Map1>(run: &RowBlock<'_>, p: K::P) {
    let n = run.n;
    // SAFETY: `n` elements on both sides. One pointer serves both where they are the same, so that LLVM knows.
    unsafe {
        if run.single == 1 {
            for_each_row(run, |[out, a]| {
                let value = K::map(p, *a.cast());
                for i in 0..n {
                    *out.cast::<K::Out>().add(i) = value;
                }
            });
        } else if run.is_output(1) {
            for_each_row(run, |[out]| in_place::<K::Out, K::A>(out, n, |a| K::map(p, a)));
        } else {
            for_each_row(run, |[out, a]| {
                for i in 0..n {
                    *out.cast::<K::Out>().add(i) = K::map(p, *a.cast::<K::A>().add(i));
                }
            });
        }
    }
}

/// The direct loop of a map of two inputs, of which the one numbered `single` (0: none) is one element for each row.
///
/// # Safety
/// As for [`RowLoop`], for operands of the map's types.
#[inline(always)]
unsafe fn row_body2<K: Map2>(run: &RowBlock<'_>, p: K::P) {
    let n = run.n;
    // SAFETY: `n` elements on all sides but the single one's. One pointer serves for output and input where they are
    // the same, so that LLVM knows.
    unsafe {
        match (run.single, run.is_output(1), run.is_output(2)) {
            (1, _, true) => for_each_row(run, |[out, a]| {
                let a = *a.cast();
                in_place::<K::Out, K::B>(out, n, |b| K::map(p, a, b));
            }),
            (1, _, false) => for_each_row(run, |[out, a, b]| {
                let a = *a.cast();
                for i in 0..n {
                    *out.cast::<K::Out>().add(i) = K::map(p, a, *b.cast::<K::B>().add(i));
                }
            }),
            (2, true, _) => for_each_row(run, |[out, _, b]| {
                let b = *b.cast();
                in_place::<K::Out, K::A>(out, n, |a| K::map(p, a, b));
            }),
            (2, false, _) => for_each_row(run, |[out, a, b]| {
                let b = *b.cast();
                for i in 0..n {
                    *out.cast::<K::Out>().add(i) = K::map(p, *a.cast::<K::A>().add(i), b);
                }
            }),
            (_, true, true) => for_each_row(run, |[out]| {
                for i in 0..n {
                    let (a, b) = (*out.cast::<K::A>().add(i), *out.cast::<K::B>().add(i));
                    *out.cast::<K::Out>().add(i) = K::map(p, a, b);
                }
            }),
            (_, false, true) => for_each_row(run, |[out, a]| {
                for i in 0..n {
                    let (a, b) = (*a.cast::<K::A>().add(i), *out.cast::<K::B>().add(i));
                    *out.cast::<K::Out>().add(i) = K::map(p, a, b);
                }
            }),
            (_, true, false) => for_each_row(run, |[out, _, b]| {
                for i in 0..n {
                    let (a, b) = (*out.cast::<K::A>().add(i), *b.cast::<K::B>().add(i));
                    *out.cast::<K::Out>().add(i) = K::map(p, a, b);
                }
            }),
            (_, false, false) => for_each_row(run, |[out, a, b]| {
                for i in 0..n {
                    let (a, b) = (*a.cast::<K::A>().add(i), *b.cast::<K::B>().add(i));
                    *out.cast::<K::Out>().add(i) = K::map(p, a, b);
                }
            }),
        }
    }
}

/// Row loops per level; the baseline has none.
macro_rules! row_loops {
    ($($name:ident, $map:ident, $body:ident, $features:literal;)*) => {$(
        /// # Safety
        /// As for [`RowLoop`]; the operands are of the map's types, `p` points to its parameters, the level is present.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $name<K: $map>(run: &RowBlock<'_>, p: *const u8) {
            // SAFETY: as promised by the caller.
            unsafe { $body::<K>(run, *p.cast::<K::P>()) };
        }
    )*};
}
row_loops! {
    direct1_avx2, Map1, row_body1, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt";
    direct2_avx2, Map2, row_body2, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt";
    direct1_avx512, Map1, row_body1, "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt";
    direct2_avx512, Map2, row_body2, "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt";
}

macro_rules! pick {
    (direct $is_wanted:expr, $K:ident, $avx2:ident, $avx512:ident) => {{
        #[cfg(target_arch = "x86_64")]
        if $is_wanted {
            match crate::simd::level() {
                crate::simd::SimdLevel::Avx512 => return Some($avx512::<$K>),
                crate::simd::SimdLevel::Avx2 => return Some($avx2::<$K>),
                crate::simd::SimdLevel::Baseline => {}
            }
        }
        None
    }};
    ($module:ident, $K:ident) => {{
        #[cfg(target_arch = "x86_64")]
        match crate::simd::level() {
            crate::simd::SimdLevel::Avx512 => return $module::avx512::<$K>,
            crate::simd::SimdLevel::Avx2 => return $module::avx2::<$K>,
            crate::simd::SimdLevel::Baseline => {}
        }
        $module::baseline::<$K>
    }};
    (wide $module:ident, $K:ident) => {{
        #[cfg(target_arch = "x86_64")]
        if crate::simd::level() >= crate::simd::SimdLevel::Avx2 {
            return $module::avx2::<$K>;
        }
        $module::baseline::<$K>
    }};
}

impl Levels for BaselineOnly {
    #[inline(always)]
    fn loop1<K: Map1>() -> DenseLoop {
        one::baseline::<K>
    }
    #[inline(always)]
    fn loop2<K: Map2>() -> DenseLoop {
        two::baseline::<K>
    }
    #[inline(always)]
    fn loop3<K: Map3>() -> DenseLoop {
        three::baseline::<K>
    }
}

impl Levels for UpToAvx2 {
    #[inline(always)]
    fn loop1<K: Map1>() -> DenseLoop {
        pick!(wide one, K)
    }
    #[inline(always)]
    fn loop2<K: Map2>() -> DenseLoop {
        pick!(wide two, K)
    }
    #[inline(always)]
    fn loop3<K: Map3>() -> DenseLoop {
        pick!(wide three, K)
    }
}

impl Levels for AllLevels {
    #[inline(always)]
    fn loop1<K: Map1>() -> DenseLoop {
        pick!(one, K)
    }
    #[inline(always)]
    fn loop2<K: Map2>() -> DenseLoop {
        pick!(two, K)
    }
    #[inline(always)]
    fn loop3<K: Map3>() -> DenseLoop {
        pick!(three, K)
    }
    #[inline(always)]
    fn row_loop1<K: Map1>() -> Option<RowLoop> {
        pick!(direct K::CHEAP, K, direct1_avx2, direct1_avx512)
    }
    #[inline(always)]
    fn row_loop2<K: Map2>() -> Option<RowLoop> {
        pick!(direct K::BY_ROWS, K, direct2_avx2, direct2_avx512)
    }
}

/// Applies a map of one input to every element.
#[inline]
pub(crate) fn run1<K: Map1>(iter: &Iter, p: K::P) -> Result<()> {
    let dtypes = [K::Out::DTYPE, K::A::DTYPE];
    let loops =
        OpLoops { dense: K::Levels::loop1::<K>(), direct: K::Levels::row_loop1::<K>(), least: 0 };
    // SAFETY: the loops read operands of these dtypes and parameters of this type.
    unsafe { drive(iter, &dtypes, loops, (&raw const p).cast()) }
}

/// Applies a map of two inputs to every element.
#[inline]
pub(crate) fn run2<K: Map2>(iter: &Iter, p: K::P) -> Result<()> {
    let dtypes = [K::Out::DTYPE, K::A::DTYPE, K::B::DTYPE];
    let least = if K::CHEAP { 0 } else { REGISTER };
    let loops =
        OpLoops { dense: K::Levels::loop2::<K>(), direct: K::Levels::row_loop2::<K>(), least };
    // SAFETY: the loops read operands of these dtypes and parameters of this type.
    unsafe { drive(iter, &dtypes, loops, (&raw const p).cast()) }
}

/// Applies a map of three inputs to every element.
#[inline]
pub(crate) fn run3<K: Map3>(iter: &Iter, p: K::P) -> Result<()> {
    let dtypes = [K::Out::DTYPE, K::A::DTYPE, K::B::DTYPE, K::C::DTYPE];
    let loops = OpLoops { dense: K::Levels::loop3::<K>(), direct: None, least: 0 };
    // SAFETY: the loops read operands of these dtypes and parameters of this type.
    unsafe { drive(iter, &dtypes, loops, (&raw const p).cast()) }
}

/// Declares a map: `map!(Exp<T: Math>(x: T) -> T { x.exp() })`, with parameters
/// `map!(Elu<T: Real>[p: EluParams<T>](x: T) -> T { ... })`. `baseline` before the name: baseline only.
macro_rules! map {
    (baseline $($rest:tt)+) => { map!(@[$crate::elementwise::dense::BaselineOnly, false] $($rest)+); };
    (math $name:ident<$T:ident: $bound:path> $($rest:tt)+) => {
        map!(@[<$T as $crate::elementwise::number::ElementLevels>::MathLevels, false] $name<$T: $bound> $($rest)+);
    };
    (@[$width:ty, $cheap:literal] $name:ident<$T:ident: $bound:path>[$p:pat => $P:ty]($($arg:ident: $In:ty),+) -> $Out:ty $body:block) => {
        map!(@impl [$width, $cheap] $name, $T, $bound, $p, $P, [$($arg: $In),+], $Out, $body);
    };
    (@[$width:ty, $cheap:literal] $name:ident<$T:ident: $bound:path>($($arg:ident: $In:ty),+) -> $Out:ty $body:block) => {
        map!(@impl [$width, $cheap] $name, $T, $bound, (), (), [$($arg: $In),+], $Out, $body);
    };
    (@impl [$width:ty, $cheap:literal] $name:ident, $T:ident, $bound:path, $p:pat, $P:ty, [$a:ident: $A:ty], $Out:ty, $body:block) => {
        struct $name<$T>(std::marker::PhantomData<$T>);
        impl<$T: $bound> $crate::elementwise::dense::Map1 for $name<$T> {
            type P = $P;
            type A = $A;
            type Out = $Out;
            type Levels = $width;
            const CHEAP: bool = $cheap;
            #[inline(always)]
            fn map($p: $P, $a: $A) -> $Out $body
        }
    };
    (@impl [$width:ty, $cheap:literal] $name:ident, $T:ident, $bound:path, $p:pat, $P:ty, [$a:ident: $A:ty, $b:ident: $B:ty], $Out:ty, $body:block) => {
        struct $name<$T>(std::marker::PhantomData<$T>);
        impl<$T: $bound> $crate::elementwise::dense::Map2 for $name<$T> {
            type P = $P;
            type A = $A;
            type B = $B;
            type Out = $Out;
            type Levels = $width;
            const CHEAP: bool = $cheap;
            #[inline(always)]
            fn map($p: $P, $a: $A, $b: $B) -> $Out $body
        }
    };
    (@impl [$width:ty, $cheap:literal] $name:ident, $T:ident, $bound:path, $p:pat, $P:ty, [$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty], $Out:ty, $body:block) => {
        struct $name<$T>(std::marker::PhantomData<$T>);
        impl<$T: $bound> $crate::elementwise::dense::Map3 for $name<$T> {
            type P = $P;
            type A = $A;
            type B = $B;
            type C = $C;
            type Out = $Out;
            type Levels = $width;
            #[inline(always)]
            fn map($p: $P, $a: $A, $b: $B, $c: $C) -> $Out $body
        }
    };
    ($name:ident<$T:ident: $bound:path> $($rest:tt)+) => {
        map!(@[<$T as $crate::elementwise::number::ElementLevels>::Levels, true] $name<$T: $bound> $($rest)+);
    };
}

/// Runs an expression with `T` bound to the type that a dtype is computed in (half types and those of a byte: `f32`,
/// `C32`: `C64`), for the listed kinds (`bool int unsigned float float8 complex bcomplex`, `float8_signed` without `e8m0fnu`); other dtypes are an error that names `$name`.
macro_rules! compute {
    ($dtype:expr, $name:expr, [$($kind:ident)+], $T:ident => $body:expr) => {
        compute!(@go $dtype, $name, $T, $body, [$($kind)+], {})
    };
    (@go $dtype:expr, $name:expr, $T:ident, $body:expr, [], {$($arms:tt)*}) => {
        match $dtype {
            $($arms)*
            #[allow(unreachable_patterns, reason = "an op may take every dtype")]
            other => Err($crate::Error::not_implemented($name, other)),
        }
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [bool $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)* $crate::DType::Bool => { type $T = $crate::Bool; $b }})
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [int $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)*
            $crate::DType::U8 => { type $T = u8; $b }
            $crate::DType::I8 => { type $T = i8; $b }
            $crate::DType::I16 => { type $T = i16; $b }
            $crate::DType::I32 => { type $T = i32; $b }
            $crate::DType::I64 => { type $T = i64; $b }
        })
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [unsigned $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)*
            $crate::DType::U16 => { type $T = u16; $b }
            $crate::DType::U32 => { type $T = u32; $b }
            $crate::DType::U64 => { type $T = u64; $b }
        })
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [float $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)*
            $crate::DType::F16 | $crate::DType::BF16 | $crate::DType::F32 => { type $T = f32; $b }
            $crate::DType::F64 => { type $T = f64; $b }
        })
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [float8 $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [float8_signed $($k)*], {$($arms)*
            $crate::DType::F8E8M0FNU => { type $T = f32; $b }
        })
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [float8_signed $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)*
            $crate::DType::F8E4M3FN
            | $crate::DType::F8E5M2
            | $crate::DType::F8E4M3FNUZ
            | $crate::DType::F8E5M2FNUZ => { type $T = f32; $b }
        })
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [bcomplex $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)* $crate::DType::BC32 => { type $T = $crate::C64; $b }})
    };
    (@go $d:expr, $n:expr, $T:ident, $b:expr, [complex $($k:ident)*], {$($arms:tt)*}) => {
        compute!(@go $d, $n, $T, $b, [$($k)*], {$($arms)*
            $crate::DType::C32 | $crate::DType::C64 => { type $T = $crate::C64; $b }
            $crate::DType::C128 => { type $T = $crate::C128; $b }
        })
    };
}
