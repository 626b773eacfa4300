//! Distances between all rows of two matrices, `(sum |x - y|^p)^(1/p)`, and their gradient.
//!
//! Every norm is one loop over the differences of two rows, in a fixed number of partial sums: nothing is squared and subtracted,
//! so that rows that are close lose no digits. A row of results is written by one thread.

use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::{Error, Result, StridedMut, StridedRef, parallel};

/// Partial sums of a row, so that the loop is vector code.
const LANES: usize = 8;
/// Differences that are worth a thread of their own.
const GRAIN: usize = 1 << 14;

/// Which norm.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Norm {
    /// The number of elements that differ (`p` = 0).
    Zero,
    One,
    Two,
    /// The largest difference (`p` infinite).
    Max,
    Any(f64),
}

impl Norm {
    fn of(p: f64) -> Result<Norm> {
        match p {
            0.0 => Ok(Norm::Zero),
            1.0 => Ok(Norm::One),
            2.0 => Ok(Norm::Two),
            f64::INFINITY => Ok(Norm::Max),
            p if p > 0.0 => Ok(Norm::Any(p)),
            p => Err(Error::runtime(format!("cdist only supports non-negative p values, got {p}"))),
        }
    }
}

/// `x^p` of a number that is not negative.
#[inline(always)]
fn power<T: Real>(x: T, p: f64) -> T {
    T::of(x.wide().powf(p))
}

/// The sizes of a call: matrices, rows of the first and of the second, elements of a row.
struct DistanceSizes {
    matrices: usize,
    rows: [usize; 2],
    width: usize,
}

impl DistanceSizes {
    fn new(x: &[i64], y: &[i64]) -> Result<DistanceSizes> {
        let ([outer @ .., n, width], [other @ .., m, same]) = (x, y) else {
            return Err(Error::runtime("cdist expects matrices".to_owned()));
        };
        if outer != other || width != same {
            return Err(Error::runtime(format!("cdist: rows of {x:?} and {y:?} do not fit")));
        }
        let matrices = outer.iter().map(|&n| n as usize).product();
        Ok(DistanceSizes { matrices, rows: [*n as usize, *m as usize], width: *width as usize })
    }
    fn result(&self, x: &[i64]) -> smallvec::SmallVec<[i64; 5]> {
        let mut shape = smallvec::SmallVec::from_slice(&x[..x.len() - 2]);
        // bounded: by the rank.
        shape.extend(self.rows.map(|n| n as i64));
        shape
    }
    fn grain(&self) -> usize {
        let work = self.rows[1].saturating_mul(self.width.max(1));
        (GRAIN / work.max(1)).max(1)
    }
}

/// `out[.., i, j]` is the `p`-norm of `x[.., i, :] - y[.., j, :]`.
///
/// # Errors
/// Shapes that do not fit, a negative `p` or one that is NaN, or a dtype that is not real floating.
pub fn cdist(out: &mut StridedMut<'_>, x: StridedRef<'_>, y: StridedRef<'_>, p: f64) -> Result<()> {
    let (sizes, norm) = (DistanceSizes::new(x.shape(), y.shape())?, Norm::of(p)?);
    expect_shape("output", out.shape(), &sizes.result(x.shape()))?;
    for_compute!(x.dtype(), "cdist", T => {
        let (x, y) = (load::<T>(x)?, load::<T>(y)?);
        with_output::<T, _>(out, |out| forward(out, &x, &y, &sizes, norm))
    })
}

fn forward<T: Real>(out: &mut [T], x: &[T], y: &[T], s: &DistanceSizes, norm: Norm) {
    let ([n, m], width) = (s.rows, s.width);
    let out = SharedMut::new(out);
    parallel::for_range(s.matrices * n, s.grain(), &|range| {
        for row in range {
            // SAFETY: one task per row of results.
            let out = unsafe { out.slice(row * m..(row + 1) * m) };
            let x = &x[row * width..(row + 1) * width];
            let y = &y[row / n.max(1) * m * width..][..m * width];
            row_of_distances(out, x, y, norm);
        }
    });
}

crate::multiversion! {
    fn row_of_distances<T: Real>(out: &mut [T], x: &[T], ys: &[T], norm: Norm) {
        let width = x.len();
        for (j, out) in out.iter_mut().enumerate() {
            let y = &ys[j * width..(j + 1) * width];
            *out = match norm {
                Norm::Zero => sum(x, y, |d| if d == T::ZERO { T::ZERO } else { T::ONE }),
                Norm::One => sum(x, y, super::dense::Real::abs),
                Norm::Two => sum(x, y, |d| d * d).sqrt(),
                Norm::Max => largest(x, y),
                Norm::Any(p) => power(sum(x, y, |d| power(d.abs(), p)), 1.0 / p),
            };
        }
    }
}

/// The sum of `f(x - y)`.
#[inline(always)]
fn sum<T: Real>(x: &[T], y: &[T], f: impl Fn(T) -> T) -> T {
    let mut sums = [T::ZERO; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = xs.remainder().iter().zip(ys.remainder());
    for (x, y) in xs.zip(ys) {
        for l in 0..LANES {
            sums[l] += f(x[l] - y[l]);
        }
    }
    let mut total = T::ZERO;
    for (&x, &y) in rest {
        total += f(x - y);
    }
    for sum in sums {
        total += sum;
    }
    total
}

/// The largest difference; NaN if one is.
#[inline(always)]
fn largest<T: Real>(x: &[T], y: &[T]) -> T {
    let mut most = T::ZERO;
    for (&x, &y) in x.iter().zip(y) {
        let d = (x - y).abs();
        if d > most || d.is_nan() {
            most = d;
        }
    }
    most
}

/// The gradient of [`cdist`] by `x`: `grad` and `distances` are its results' shape. Where rows are equal it is zero; of several
/// largest differences all count.
///
/// # Errors
/// As [`cdist`].
pub fn cdist_backward(
    out: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    [x, y]: [StridedRef<'_>; 2],
    p: f64,
    distances: StridedRef<'_>,
) -> Result<()> {
    let (sizes, norm) = (DistanceSizes::new(x.shape(), y.shape())?, Norm::of(p)?);
    expect_shape("the gradient by x1", out.shape(), x.shape())?;
    for (name, shape) in [("grad", grad.shape()), ("cdist", distances.shape())] {
        expect_shape(name, shape, &sizes.result(x.shape()))?;
    }
    for_compute!(x.dtype(), "cdist_backward", T => {
        let (x, y, grad, distances) =
            (load::<T>(x)?, load::<T>(y)?, load::<T>(grad)?, load::<T>(distances)?);
        with_output::<T, _>(out, |out| {
            let ([n, m], width) = (sizes.rows, sizes.width);
            let out = SharedMut::new(out);
            parallel::for_range(sizes.matrices * n, sizes.grain(), &|range| {
                for row in range {
                    // SAFETY: one task per row of the gradient.
                    let out = unsafe { out.slice(row * width..(row + 1) * width) };
                    let x = &x[row * width..(row + 1) * width];
                    let y = &y[row / n.max(1) * m * width..][..m * width];
                    let span = row * m..(row + 1) * m;
                    add_slopes(out, x, y, (&grad[span.clone()], &distances[span]), norm);
                }
            });
        })
    })
}

/// The sign of a number; NaN for NaN.
#[inline(always)]
fn sign<T: Real>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        -T::ONE
    } else {
        x * T::ZERO
    }
}

crate::multiversion! {
    fn add_slopes<T: Real>(out: &mut [T], x: &[T], ys: &[T], given: (&[T], &[T]), norm: Norm) {
        out.fill(T::ZERO);
        let width = x.len();
        for (j, (&grad, &distance)) in given.0.iter().zip(given.1).enumerate() {
            let y = &ys[j * width..(j + 1) * width];
            match norm {
                Norm::Zero => {}
                Norm::One => add(out, x, y, |d| sign(d) * grad),
                _ if distance == T::ZERO => {}
                Norm::Two => {
                    let by = grad / distance;
                    add(out, x, y, |d| d * by);
                }
                Norm::Max => add(out, x, y, |d| {
                    if d.abs() == distance { sign(d) * grad } else { T::ZERO }
                }),
                Norm::Any(p) => {
                    let by = grad * power(distance, 1.0 - p);
                    add(out, x, y, |d| {
                        if d == T::ZERO { T::ZERO } else { sign(d) * power(d.abs(), p - 1.0) * by }
                    });
                }
            }
        }
    }
}

#[inline(always)]
fn add<T: Real>(out: &mut [T], x: &[T], y: &[T], f: impl Fn(T) -> T) {
    for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
        *out += f(x - y);
    }
}
