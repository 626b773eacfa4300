//! Mean and variance.

use super::engine::{ROWS, Reducer, fold_by_step, rows_by_step};
use super::reducer::{FloatSummand, Sum};
use crate::C128;
use std::marker::PhantomData;
use std::ops::{Add, Mul, Sub};

/// Count, mean and sum of squared deviations of some items.
#[derive(Clone, Copy, Default)]
pub(crate) struct VarianceAcc<M> {
    /// The number of items.
    pub(crate) count: f64,
    /// Their mean.
    pub(crate) mean: M,
    /// The sum of squared distances from the mean.
    pub(crate) squares: f64,
}

/// The types that a mean may have: real and complex numbers.
pub(crate) trait MeanValue:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<f64, Output = Self>
{
    /// The squared magnitude.
    fn square(self) -> f64;
}
impl MeanValue for f64 {
    #[inline(always)]
    fn square(self) -> f64 {
        self * self
    }
}
impl MeanValue for C128 {
    #[inline(always)]
    fn square(self) -> f64 {
        self.norm_sqr()
    }
}

impl<M: MeanValue> VarianceAcc<M> {
    /// The variance of all items, by Chan, Golub and LeVeque's formula ("Updating formulae and a pairwise algorithm for
    /// computing sample variances", 1979).
    #[inline(always)]
    fn join(self, right: Self) -> Self {
        if self.count == 0.0 {
            return right;
        }
        if right.count == 0.0 {
            return self;
        }
        let count = self.count + right.count;
        let distance = right.mean - self.mean;
        let between = distance.square() * (self.count * right.count / count);
        VarianceAcc {
            count,
            mean: self.mean + distance * (right.count / count),
            squares: self.squares + right.squares + between,
        }
    }
}

/// Mean and variance: two passes within a block in cache; blocks are joined ([`VarianceAcc::join`]).
pub(crate) struct Variance<T>(pub(crate) PhantomData<T>);

/// Sum of distances and of squared distances from a centre.
struct Deviation<T>(T);

#[derive(Clone, Copy)]
struct DeviationSums<T>(T, T);

impl<T: FloatSummand> Reducer for Deviation<T> {
    type Item = T;
    type Acc = DeviationSums<T>;
    #[inline(always)]
    fn identity(&self) -> DeviationSums<T> {
        DeviationSums(T::default(), T::default())
    }
    #[inline(always)]
    fn step(&self, acc: DeviationSums<T>, item: T, _: usize) -> DeviationSums<T> {
        let distance = item.minus(self.0);
        DeviationSums(acc.0.plus(distance), acc.1.plus(distance.times(distance)))
    }
    #[inline(always)]
    fn combine(&self, left: DeviationSums<T>, right: DeviationSums<T>) -> DeviationSums<T> {
        DeviationSums(left.0.plus(right.0), left.1.plus(right.1))
    }
}

#[inline(always)]
fn variance_acc<T: FloatSummand>(
    count: usize,
    centre: T,
    distance: f64,
    squares: f64,
) -> VarianceAcc<f64> {
    let n = count as f64;
    // The centre is the mean rounded to T; the sum of distances corrects it.
    VarianceAcc {
        count: n,
        mean: centre.wide() + distance / n,
        squares: squares - distance * distance / n,
    }
}

#[inline(always)]
fn squares_of<T: FloatSummand>(items: &[T], centre: T) -> (f64, f64) {
    // Arrays rather than an array of pairs, two of each: this is what vectorises and hides latency.
    let (mut distances, mut squares) = ([T::default(); 16], [T::default(); 16]);
    let (mut others, mut other_squares) = ([T::default(); 16], [T::default(); 16]);
    let (groups, rest) = items.as_chunks::<16>();
    let (pairs, single) = groups.as_chunks::<2>();
    for [a, b] in pairs {
        for j in 0..16 {
            let distance = a[j].minus(centre);
            distances[j] = distances[j].plus(distance);
            squares[j] = squares[j].plus(distance.times(distance));
        }
        for j in 0..16 {
            let distance = b[j].minus(centre);
            others[j] = others[j].plus(distance);
            other_squares[j] = other_squares[j].plus(distance.times(distance));
        }
    }
    let tail = single.as_flattened().iter().chain(rest);
    let tail = tail.fold(Deviation(centre).identity(), |acc, &x| Deviation(centre).step(acc, x, 0));
    let sum = |lanes: [T; 16], more: [T; 16], last: T| {
        lanes.iter().chain(&more).fold(last.wide(), |s, x| s + x.wide())
    };
    (sum(distances, others, tail.0), sum(squares, other_squares, tail.1))
}

impl<T: FloatSummand> Reducer for Variance<T> {
    type Item = T;
    type Acc = VarianceAcc<f64>;
    const IS_BY_STEP: bool = false;
    #[inline(always)]
    fn identity(&self) -> VarianceAcc<f64> {
        VarianceAcc::default()
    }
    #[inline(always)]
    fn step(&self, acc: VarianceAcc<f64>, item: T, _: usize) -> VarianceAcc<f64> {
        self.combine(acc, VarianceAcc { count: 1.0, mean: item.wide(), squares: 0.0 })
    }
    #[inline(always)]
    fn combine(&self, left: VarianceAcc<f64>, right: VarianceAcc<f64>) -> VarianceAcc<f64> {
        left.join(right)
    }
    #[inline(always)]
    fn fold(&self, items: &[T], _: usize) -> VarianceAcc<f64> {
        if items.is_empty() {
            return VarianceAcc::default();
        }
        let sum = fold_by_step(&Sum(PhantomData), items, 0);
        let centre = T::of(sum.wide() / items.len() as f64);
        let (distance, squares) = squares_of(items, centre);
        variance_acc(items.len(), centre, distance, squares)
    }
    #[inline(always)]
    fn fold_rows(&self, accs: &mut [VarianceAcc<f64>], rows: &[&[T]], _: usize) {
        let n = rows.len() as f64;
        for (block, accs) in accs.chunks_mut(64).enumerate() {
            let columns = block * 64..block * 64 + accs.len();
            let mut part: [&[T]; ROWS] = [&[]; ROWS];
            for (part, row) in part.iter_mut().zip(rows) {
                *part = &row[columns.clone()];
            }
            let part = &part[..rows.len()];
            let (mut sums, mut distances, mut squares) =
                ([T::default(); 64], [T::default(); 64], [T::default(); 64]);
            rows_by_step(&Sum(PhantomData), &mut sums[..accs.len()], part, 0);
            for sum in &mut sums {
                *sum = T::of(sum.wide() / n);
            }
            for row in part {
                for (j, &x) in row.iter().enumerate() {
                    let distance = x.minus(sums[j]);
                    distances[j] = distances[j].plus(distance);
                    squares[j] = squares[j].plus(distance.times(distance));
                }
            }
            for (j, acc) in accs.iter_mut().enumerate() {
                *acc = variance_acc(rows.len(), sums[j], distances[j].wide(), squares[j].wide());
            }
        }
    }
}

/// Mean and variance of complex numbers: `squares` adds up both parts.
pub(crate) struct ComplexVariance;

impl Reducer for ComplexVariance {
    type Item = C128;
    type Acc = VarianceAcc<C128>;
    #[inline(always)]
    fn identity(&self) -> VarianceAcc<C128> {
        VarianceAcc::default()
    }
    #[inline(always)]
    fn step(&self, acc: VarianceAcc<C128>, item: C128, _: usize) -> VarianceAcc<C128> {
        self.combine(acc, VarianceAcc { count: 1.0, mean: item, squares: 0.0 })
    }
    #[inline(always)]
    fn combine(&self, left: VarianceAcc<C128>, right: VarianceAcc<C128>) -> VarianceAcc<C128> {
        left.join(right)
    }
}
