//! Cross products of vectors of length three.

use crate::line::{GRAIN, LineIter, ViewLayout, along, check_dtype, check_shape, get, put};
use crate::{C64, C128, Element, Error, Result, StridedMut, StridedRef, bf16, f16, for_dtype};

/// Elements that have products and differences.
trait CrossElement: Element {
    /// `a b - c d`; integers wrap.
    fn difference(a: Self, b: Self, c: Self, d: Self) -> Self;
}

macro_rules! factor {
    ($($t:ty: |$a:ident, $b:ident, $c:ident, $d:ident| $body:expr;)*) => {$(
        impl CrossElement for $t {
            #[inline(always)]
            fn difference($a: Self, $b: Self, $c: Self, $d: Self) -> Self {
                $body
            }
        }
    )*};
    (wrapping $($t:ty)*) => {
        factor!($($t: |a, b, c, d| a.wrapping_mul(b).wrapping_sub(c.wrapping_mul(d));)*);
    };
    (plain $($t:ty)*) => { factor!($($t: |a, b, c, d| a * b - c * d;)*); };
    (half $($t:ty)*) => {
        factor!($($t: |a, b, c, d| <$t>::from_f32(a.to_f32() * b.to_f32() - c.to_f32() * d.to_f32());)*);
    };
}
factor!(wrapping u8 i8 i16 i32 i64 u16 u32 u64);
factor!(plain f32 f64 C64 C128);
factor!(half f16 bf16);

/// `out = a × b` along `dim`, which has size three; the others are walked (inputs may be broadcast).
///
/// # Errors
/// Views of several shapes or dtypes, another size along `dim`, and booleans.
pub fn cross(
    out: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    b: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    for view in [&a, &b] {
        check_dtype("cross", view.dtype(), out.dtype())?;
        check_shape("cross", view.shape(), out.shape())?;
    }
    if out.shape().get(dim) != Some(&3) {
        return Err(Error::runtime(format!(
            "cross(): dimension {dim} of shape {:?} must have size 3",
            out.shape()
        )));
    }
    let out = &*out;
    for_dtype!(out.dtype(), numeric, T => cross_as::<T>(out, &a, &b, dim), else {
        return Err(Error::not_implemented("cross", out.dtype()));
    });
    Ok(())
}

fn cross_as<T: CrossElement>(
    out: &StridedMut<'_>,
    a: &StridedRef<'_>,
    b: &StridedRef<'_>,
    dim: usize,
) {
    let views = [ViewLayout::from(out), ViewLayout::from(a), ViewLayout::from(b)];
    let lines = LineIter::new(out.shape(), Some(dim), views);
    let steps = views.map(|view| along(out.shape(), view, dim).1);
    let size = size_of::<T>() as isize;
    crate::parallel::for_range(lines.count(), GRAIN / 3, &|range| {
        lines.visit_runs(range, |offsets, row_strides, n| {
            let at = [
                out.ptr().wrapping_offset(offsets[0]),
                a.ptr().cast_mut().wrapping_offset(offsets[1]),
                b.ptr().cast_mut().wrapping_offset(offsets[2]),
            ];
            // SAFETY: `n` vectors of each view.
            unsafe {
                if steps == [size; 3] && row_strides == [3 * size; 3] {
                    run::<T>(at, [size; 3], [3 * size; 3], n);
                } else if row_strides == [size; 3] {
                    run::<T>(at, steps, [size; 3], n);
                } else {
                    run::<T>(at, steps, row_strides, n);
                }
            }
        });
    });
}

/// `n` products; `steps` are the byte strides from a component to the next, `row_strides` those from a vector to the next.
///
/// # Safety
/// All components are live elements, those of the first operand writable and apart from the others.
#[inline(always)]
unsafe fn run<T: CrossElement>(
    mut at: [*mut u8; 3],
    steps: [isize; 3],
    row_strides: [isize; 3],
    n: usize,
) {
    for _ in 0..n {
        // SAFETY: the caller's promise.
        unsafe {
            let part = |of: usize, d: isize| get::<T>(at[of], d * steps[of]);
            let x = [part(1, 0), part(1, 1), part(1, 2)];
            let y = [part(2, 0), part(2, 1), part(2, 2)];
            put(at[0], 0, T::difference(x[1], y[2], x[2], y[1]));
            put(at[0], steps[0], T::difference(x[2], y[0], x[0], y[2]));
            put(at[0], 2 * steps[0], T::difference(x[0], y[1], x[1], y[0]));
        }
        for (at, row_stride) in at.iter_mut().zip(row_strides) {
            *at = at.wrapping_offset(row_stride);
        }
    }
}
