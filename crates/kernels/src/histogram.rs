//! Histograms: how many points, or what weight of them, lie in each box of a grid.
//!
//! Points are rows of coordinates; each coordinate finds its bin among the edges of its dimension by itself. The first edge
//! of a bin belongs to it, the last only of the last bin; points outside, or not a number, count nowhere. Sums are in
//! double precision, over blocks whose bounds depend only on the number of points.

use crate::line::{check_dtype, check_shape, get};
use crate::{DType, Element, Error, Result, StridedRef, interrupt, memory, parallel};
use std::sync::{Mutex, PoisonError};

/// The method by which the bin of a coordinate is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinSearch {
    /// By dividing: edges are evenly spaced, and rounding may put a coordinate that lies near one on its other side.
    Divide,
    /// By dividing, then looking at the edges nearby.
    DivideThenCorrect,
    /// Among edges in ascending order, by halving.
    Bisect,
}

/// Points that are worth a thread of their own.
const GRAIN: usize = 1 << 15;
/// Most blocks, each with a histogram of its own.
const BLOCKS: usize = 16;

trait Coordinate: Element + PartialOrd {
    /// In which of `bins` bins of equal width between `first` and `last` it lies, about.
    fn guess(self, first: Self, last: Self, bins: usize) -> usize;
}
macro_rules! coordinate {
    ($($t:ty),*) => {$(
        impl Coordinate for $t {
            #[inline(always)]
            fn guess(self, first: $t, last: $t, bins: usize) -> usize {
                ((self - first) * bins as $t / (last - first)) as usize
            }
        }
    )*};
}
coordinate!(f32, f64);

/// One dimension of the grid.
struct HistogramAxis<T> {
    edges: Vec<T>,
    bins: usize,
    /// Bytes between the coordinates of neighbouring points, and from a point to its coordinate here.
    step: isize,
    offset: isize,
}

impl<T: Coordinate> HistogramAxis<T> {
    #[inline(always)]
    fn bin(&self, x: T, search: BinSearch) -> Option<usize> {
        let (first, last) = (self.edges[0], self.edges[self.bins]);
        // (Of NaN both comparisons are false.)
        if !(x >= first && x <= last) {
            return None;
        }
        let below = |from: usize, to: usize| {
            from + self.edges[from..to].partition_point(|&edge| edge <= x).saturating_sub(1)
        };
        let bin = match search {
            BinSearch::Divide => x.guess(first, last, self.bins),
            BinSearch::DivideThenCorrect => {
                let guess = x.guess(first, last, self.bins).min(self.bins);
                below(guess.saturating_sub(1), (guess + 2).min(self.bins + 1))
            }
            BinSearch::Bisect => below(0, self.bins + 1),
        };
        Some(bin.min(self.bins - 1))
    }
}

/// The histogram of `points`, a matrix with a point in each row, over the boxes that `edges`, a vector for each column, make:
/// row by row, the last dimension varying fastest. With `weights`, one for each point, the sums of weights.
///
/// # Errors
/// For points that are not `f32` or `f64`, edges or weights of another dtype, or sizes that do not fit.
pub fn histogram(
    points: &StridedRef<'_>,
    edges: &[StridedRef<'_>],
    search: BinSearch,
    weights: Option<&StridedRef<'_>>,
) -> Result<Vec<f64>> {
    let &[count, rank] = points.shape() else {
        return Err(Error::runtime("histogram: expected a matrix of points".into()));
    };
    if rank as usize != edges.len() {
        return Err(Error::runtime(format!(
            "histogram: expected edges for {rank} dimensions but got {}",
            edges.len()
        )));
    }
    if let Some(weights) = weights {
        check_shape("histogram: weights", weights.shape(), &[count])?;
        check_dtype("histogram: weights", weights.dtype(), points.dtype())?;
    }
    match points.dtype() {
        DType::F32 => run::<f32>(points, edges, search, weights),
        DType::F64 => run::<f64>(points, edges, search, weights),
        other => Err(Error::not_implemented("histogramdd", other)),
    }
}

fn axis<T: Coordinate>(
    points: &StridedRef<'_>,
    nr: usize,
    edges: &StridedRef<'_>,
) -> Result<HistogramAxis<T>> {
    check_dtype("histogram: edges", edges.dtype(), T::DTYPE)?;
    let edges = edges.as_slice::<T>().filter(|edges| edges.len() > 1).ok_or_else(|| {
        Error::runtime("histogram: expected at least two edges without gaps".into())
    })?;
    let size = size_of::<T>() as isize;
    Ok(HistogramAxis {
        edges: memory::copied(edges)?,
        bins: edges.len() - 1,
        step: points.strides()[0] as isize * size,
        offset: points.strides()[1] as isize * nr as isize * size,
    })
}

fn run<T: Coordinate>(
    points: &StridedRef<'_>,
    edges: &[StridedRef<'_>],
    search: BinSearch,
    weights: Option<&StridedRef<'_>>,
) -> Result<Vec<f64>> {
    let axes = edges
        .iter()
        .enumerate()
        .map(|(nr, edges)| axis::<T>(points, nr, edges))
        .collect::<Result<Vec<_>>>()?; // bounded: by the number of axes
    let boxes: usize = axes.iter().map(|axis| axis.bins).product();
    let count = points.shape()[0] as usize;
    let weight_at = |point: usize| match weights {
        None => 1.0,
        Some(weights) => {
            let offset = point as isize * weights.strides()[0] as isize * size_of::<T>() as isize;
            // SAFETY: there is a weight of this type for each point.
            unsafe { get::<T>(weights.ptr(), offset) }.to_f64()
        }
    };
    let add = |sums: &mut [f64], range: std::ops::Range<usize>| {
        for point in range {
            interrupt::check_every::<12>(point);
            // SAFETY: `points` has this row, and a column of this type for each axis.
            let x = |axis: &HistogramAxis<T>| unsafe {
                get::<T>(points.ptr(), point as isize * axis.step + axis.offset)
            };
            let find = |at: usize, axis: &HistogramAxis<T>| {
                Some(at * axis.bins + axis.bin(x(axis), search)?)
            };
            if let Some(at) = axes.iter().try_fold(0, find) {
                sums[at] += weight_at(point);
            }
        }
    };
    let mut sums = memory::filled(0.0, boxes)?;
    // Large histograms of few points are not worth adding up.
    if boxes > count / 64 {
        add(&mut sums, 0..count);
        return Ok(sums);
    }
    let grain = GRAIN.max(count.div_ceil(BLOCKS));
    // bounded: as many as there are blocks at most.
    let parts: Vec<Mutex<Vec<f64>>> =
        (0..count.div_ceil(grain)).map(|_| Mutex::default()).collect();
    parallel::try_for_restartable_range(count, grain, &|range| {
        let mut own = memory::filled(0.0, boxes)?;
        let block = range.start / grain;
        add(&mut own, range);
        *parts[block].lock().unwrap_or_else(PoisonError::into_inner) = own;
        Ok(())
    })?;
    for part in parts {
        let part = part.into_inner().unwrap_or_else(PoisonError::into_inner);
        sums.iter_mut().zip(part).for_each(|(sum, own)| *sum += own);
    }
    Ok(sums)
}
