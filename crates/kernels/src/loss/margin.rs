//! The hinge loss of classes and its gradient.

use super::{BLOCK, Reduction, all_fit, block_sums, load_weight};
use crate::dense::{Real, expect_shape, for_compute, load, store, with_output};
use crate::{Error, Result, StridedMut, StridedRef, memory};
use std::borrow::Cow;
use std::ops::Range;

/// The options of [`multi_margin_loss`].
#[derive(Clone, Copy, Debug)]
pub struct MarginLossOptions<'a> {
    /// How far the score of the right class is to be above the others'.
    pub margin: f64,
    /// Whether margin violations are squared (`p = 2`).
    pub square: bool,
    /// A weight per class.
    pub weight: Option<StridedRef<'a>>,
    /// How the losses of the rows are reduced.
    pub reduction: Reduction,
}

/// Rows and columns of the scores.
fn sizes(x: StridedRef<'_>, target: StridedRef<'_>) -> Result<(usize, usize)> {
    match *x.shape() {
        [rows, columns] if columns > 0 => {
            expect_shape("target", target.shape(), &[rows])?;
            Ok((rows as usize, columns as usize))
        }
        ref shape => Err(Error::runtime(format!("expected rows of scores, but got {shape:?}"))),
    }
}

/// The classes of the rows of `x`.
fn classes(target: StridedRef<'_>, columns: usize) -> Result<Cow<'_, [i64]>> {
    let classes = load::<i64>(target)?;
    // (A class that is ignored must be one of them.)
    if all_fit(&classes, columns, 0) {
        return Ok(classes);
    }
    Err(Error::runtime("target out of range".to_owned()))
}

/// The shares of the classes in the loss of a row: their weights over the number of classes.
struct ClassFactors<T> {
    even: T,
    own: Option<Vec<T>>,
}

impl<T: Real> ClassFactors<T> {
    fn of(weight: Option<StridedRef<'_>>, columns: usize) -> Result<Self> {
        let count = T::of(columns as f64);
        let own = load_weight::<T>(weight, columns)?;
        let own =
            own.map(|all| memory::collect(all.iter().map(|&weight| weight / count))).transpose()?;
        Ok(ClassFactors { even: T::ONE / count, own })
    }
    #[inline(always)]
    fn get(&self, class: usize) -> T {
        self.own.as_ref().map_or(self.even, |own| own[class])
    }
}

/// The margin violation of a class, `max(0, margin - x[y] + x[j])`; 0 for the right class.
#[inline(always)]
fn margin_violation<T: Real>(x: T, base: T, is_target: bool) -> T {
    let z = base + x;
    // Written so that NaN passes.
    if (z <= T::ZERO) | is_target { T::ZERO } else { z }
}

/// The sum of the margin violations of all classes but the right one, or of their squares.
#[inline(always)]
fn row_loss<T: Real>(row: &[T], class: usize, margin: T, square: bool) -> T {
    let (base, mut sum) = (margin - row[class], T::ZERO);
    for (j, &x) in row.iter().enumerate() {
        let z = margin_violation(x, base, j == class);
        sum += if square { z * z } else { z };
    }
    sum
}

/// `sum_(j != y) weight[y] max(0, margin - x[y] + x[j])^p / C` for class `y` of `C` of each row of `x`, reduced.
///
/// `x` is (N, C), `target` (N) of `int64`; `out` has N elements for [`Reduction::None`], else one.
///
/// # Errors
/// A target outside the classes, or a dtype that is not floating.
pub fn multi_margin_loss(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    target: StridedRef<'_>,
    p: MarginLossOptions<'_>,
) -> Result<()> {
    let (rows, columns) = sizes(x, target)?;
    let classes = classes(target, columns)?;
    for_compute!(x.dtype(), "multi_margin_loss_cpu_kernel", T => {
        let (x, shares) = (load::<T>(x)?, ClassFactors::<T>::of(p.weight, columns)?);
        let margin = T::of(p.margin);
        // The loss of each of some rows.
        let losses = |rows: Range<usize>| {
            let lines = x[rows.start * columns..rows.end * columns].chunks_exact(columns);
            let shares = &shares;
            lines.zip(&classes[rows]).map(move |(row, &class)| {
                let class = class as usize;
                row_loss(row, class, margin, p.square) * shares.get(class)
            })
        };
        if p.reduction == Reduction::None {
            with_output::<T, _>(out, |out| {
                for (out, loss) in out.iter_mut().zip(losses(0..rows)) {
                    *out = loss;
                }
            })?;
            return Ok(());
        }
        let (sum, _) = block_sums(rows, (BLOCK / columns).max(1), &|rows| {
            let mut sum = 0.0;
            for loss in losses(rows) {
                sum += loss.wide();
            }
            (sum, 0.0)
        })?;
        let count = if p.reduction == Reduction::Mean { rows as f64 } else { 1.0 };
        store(out, &[T::of(sum / count)]);
        Ok(())
    })
}

/// The gradient of [`multi_margin_loss`]; `grad` has the loss's shape.
pub fn multi_margin_loss_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    target: StridedRef<'_>,
    p: MarginLossOptions<'_>,
) -> Result<()> {
    let (rows, columns) = sizes(x, target)?;
    let classes = classes(target, columns)?;
    for_compute!(x.dtype(), "multi_margin_loss_cpu_kernel", T => {
        let (x, shares) = (load::<T>(x)?, ClassFactors::<T>::of(p.weight, columns)?);
        let margin = T::of(p.margin);
        let grad = load::<T>(grad)?;
        let even = match p.reduction {
            Reduction::None => T::ZERO,
            Reduction::Mean => grad[0] / T::of(rows as f64),
            Reduction::Sum => grad[0],
        };
        let lines = x.chunks_exact(columns).zip(classes.iter());
        with_output::<T, _>(grad_x, |out| {
            for ((i, out), (row, &class)) in out.chunks_exact_mut(columns).enumerate().zip(lines) {
                let class = class as usize;
                let grad = if p.reduction == Reduction::None { grad[i] } else { even };
                let scale = grad * shares.get(class);
                let (base, mut pull) = (margin - row[class], T::ZERO);
                for (j, (out, &x)) in out.iter_mut().zip(row).enumerate() {
                    let z = margin_violation(x, base, j == class);
                    let slope = match (p.square, z > T::ZERO) {
                        (true, _) => z + z,
                        (false, true) => T::ONE,
                        (false, false) => T::ZERO,
                    };
                    *out = slope * scale;
                    pull += *out;
                }
                // What pushes the other classes down pulls the right one up.
                out[class] = -pull;
            }
        })?;
        Ok(())
    })
}
