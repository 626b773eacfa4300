//! Sampling of images at any points, `grid_sample`, and its gradients: linear, nearest and cubic interpolation of two or three
//! dimensions.
//!
//! A value is a sum over taps: elements of the image and their weights, products of one factor per dimension. Taps are made
//! for a block of points at once, a dimension at a time (`axis`), and used for all channels, so that every loop is over
//! neighbouring points. What lies outside of the image is never read. Gradients by the image are added in the order of the
//! points within a plane, those by the points are sums over channels in order: the same for any number of threads.

mod axis;

use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::{Error, Result, StridedMut, StridedRef, interrupt, parallel};
use axis::{AxisTaps, TapVec, refill};
use smallvec::SmallVec;
use std::ops::Range;

/// How a value between elements is made of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interpolation {
    /// The two elements around, along each dimension, by their distance.
    Linear,
    /// The nearest element; halfway between two the even one.
    Nearest,
    /// The four elements around, along each dimension, by Keys' weights with the parameter -0.75.
    Cubic,
}

/// The padding mode: the values that are sampled outside of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PaddingMode {
    /// Zeros.
    Zeros,
    /// The element at the border.
    Border,
    /// The image, reflected as often as it takes.
    Reflection,
}

/// The options of [`grid_sample`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleOptions {
    /// How a value between elements is made of them.
    pub interpolation: Interpolation,
    /// What lies outside of the image.
    pub padding_mode: PaddingMode,
    /// Whether -1 and 1 are the centres of the outermost elements, not their outer edges.
    pub align_corners: bool,
}

impl SampleOptions {
    /// Elements along one dimension that a value is made of.
    fn taps(self) -> usize {
        match self.interpolation {
            Interpolation::Linear => 2,
            Interpolation::Nearest => 1,
            Interpolation::Cubic => 4,
        }
    }
    /// The derivative of a coordinate in elements by the relative one.
    fn scale(self, size: usize) -> f64 {
        (if self.align_corners { size as f64 - 1.0 } else { size as f64 }) / 2.0
    }
}

/// Places that taps are made of together.
const BLOCK: usize = 256;
/// Sums that are worth a thread of their own.
const GRAIN: usize = 1 << 15;
/// Channels whose gradients are made with one making of taps.
const CHANNELS: usize = 16;

/// Sizes of a call.
struct SampleGeometry {
    images: usize,
    channels: usize,
    /// The sizes of an image, outermost first.
    sizes: SmallVec<[usize; 3]>,
    /// Places per image.
    points: usize,
    sampling: SampleOptions,
}

impl SampleGeometry {
    /// Checks the shapes of images (N, C, *sizes) and points (N, *out, rank).
    fn new(input: &[i64], grid: &[i64], sampling: SampleOptions) -> Result<SampleGeometry> {
        let rank = input.len().saturating_sub(2);
        let fits = matches!(rank, 2 | 3)
            && grid.len() == rank + 2
            && grid[0] == input[0]
            && grid[rank + 1] == rank as i64;
        if !fits {
            return Err(Error::runtime(format!(
                "grid_sample(): cannot sample images of shape {input:?} at points of shape {grid:?} by {:?}",
                sampling.interpolation
            )));
        }
        let sizes: SmallVec<[usize; 3]> = input[2..].iter().map(|&n| n as usize).collect();
        let points = grid[1..=rank].iter().map(|&n| n as usize).product();
        if sizes.contains(&0) && points > 0 && input[0] > 0 {
            return Err(Error::runtime(format!(
                "grid_sample(): expected images with elements, but got shape {input:?}"
            )));
        }
        let (images, channels) = (input[0] as usize, input[1] as usize);
        Ok(SampleGeometry { images, channels, sizes, points, sampling })
    }
    fn rank(&self) -> usize {
        self.sizes.len()
    }
    /// Elements of a plane.
    fn plane(&self) -> usize {
        self.sizes.iter().product()
    }
    /// Taps of a coordinate.
    fn taps(&self) -> usize {
        self.sampling.taps().pow(self.rank() as u32)
    }
    fn output_shape(&self, grid: &[i64]) -> SmallVec<[i64; 5]> {
        let mut shape = SmallVec::from_slice(&[self.images as i64, self.channels as i64]);
        shape.extend_from_slice(&grid[1..=self.rank()]);
        shape
    }
    /// Calls `work` with an image and some of its points, a block at most, on several threads.
    fn for_blocks(&self, work: &(dyn Fn(usize, Range<usize>) + Sync)) {
        let blocks = self.points.div_ceil(BLOCK);
        let sums = self.channels * self.taps() * self.points.min(BLOCK);
        parallel::for_range(self.images * blocks, (GRAIN / sums.max(1)).max(1), &|range| {
            for at in range {
                let (image, start) = (at / blocks, at % blocks * BLOCK);
                work(image, start..self.points.min(start + BLOCK));
            }
        });
    }
}

/// The taps of a block of points.
#[derive(Default)]
struct SampleTaps<T> {
    /// Places in the block.
    count: usize,
    /// One for each dimension, outermost first.
    axes: [AxisTaps<T>; 3],
    /// For each tap and coordinate the element's number in its plane, or -1 outside.
    elements: TapVec<i64>,
    weights: TapVec<T>,
}

impl<T: Real> SampleTaps<T> {
    /// Makes these the taps of points, of which `grid` holds `rank` numbers each, the innermost dimension's first. (In place:
    /// they are long to move.)
    fn set(&mut self, g: &SampleGeometry, grid: &[T], has_slopes: bool) {
        let rank = g.rank();
        self.count = grid.len() / rank;
        for (dim, &size) in g.sizes.iter().enumerate() {
            let how = (g.sampling, has_slopes);
            self.axes[dim].set(&grid[rank - 1 - dim..], rank, (self.count, size), how);
        }
        let all = g.taps() * self.count;
        refill(&mut self.elements, 0, all);
        refill(&mut self.weights, T::ZERO, all);
        join(&mut self.elements, &mut self.weights, &self.axes[..rank], g);
    }
    /// The numbers of the elements of a tap, and their weights.
    fn tap(&self, tap: usize) -> (&[i64], &[T]) {
        let range = tap * self.count..(tap + 1) * self.count;
        (&self.elements[range.clone()], &self.weights[range])
    }
}

/// The number along a dimension of a tap, which are counted with the innermost dimension first to change.
#[inline(always)]
fn tap_index(g: &SampleGeometry, tap: usize, dim: usize) -> usize {
    let each = g.sampling.taps();
    // (Each dimension has one tap, two or four.)
    tap >> (each.ilog2() as usize * (g.rank() - 1 - dim)) & (each - 1)
}

crate::multiversion! {
/// The numbers of elements in their plane, -1 where one is along any dimension, and the products of their weights.
fn join<T: Real>(elements: &mut [i64], weights: &mut [T], axes: &[AxisTaps<T>], g: &SampleGeometry) {
    let count = elements.len() / g.taps();
    for tap in 0..g.taps() {
        let start = tap * count;
        let (elements, weights) = (&mut elements[start..][..count], &mut weights[start..][..count]);
        let ((first, by_first), (second, by_second)) =
            (axes[0].tap(tap_index(g, tap, 0), count), axes[1].tap(tap_index(g, tap, 1), count));
        let size = g.sizes[1] as i64;
        for i in 0..count {
            let at = first[i] * size + second[i];
            elements[i] = if (first[i] | second[i]) < 0 { -1 } else { at };
            weights[i] = by_first[i] * by_second[i];
        }
        if axes.len() == 3 {
            let (third, by_third) = axes[2].tap(tap_index(g, tap, 2), count);
            let size = g.sizes[2] as i64;
            for i in 0..count {
                let at = elements[i] * size + third[i];
                elements[i] = if (elements[i] | third[i]) < 0 { -1 } else { at };
                weights[i] *= by_third[i];
            }
        }
    }
}
}

/// `out[i] += plane[elements[i]] * weights[i]`, where the element -1 stands for a zero.
///
/// The caller promises that the numbers are -1 or those of elements of the plane.
#[inline(always)]
fn add_each<T: Real>(out: &mut [T], plane: &[T], elements: &[i64], weights: &[T]) {
    let n = out.len();
    let (elements, weights) = (&elements[..n], &weights[..n]);
    for i in 0..n {
        let at = elements[i];
        debug_assert!(at < plane.len() as i64);
        // SAFETY: not -1, and so an element of the plane by the caller's promise.
        let value = if at >= 0 { unsafe { *plane.get_unchecked(at as usize) } } else { T::ZERO };
        out[i] += value * weights[i];
    }
}

crate::multiversion! {
/// [`add_each`] of one tap.
fn add_tap<T: Real>(out: &mut [T], plane: &[T], elements: &[i64], weights: &[T]) {
    add_each(out, plane, elements, weights);
}
}

crate::multiversion! {
/// [`add_each`] of all taps in order, to zeros.
fn add_taps<T: Real>(out: &mut [T], plane: &[T], elements: &[i64], weights: &[T]) {
    out.fill(T::ZERO);
    let n = out.len().max(1);
    for (elements, weights) in elements.chunks_exact(n).zip(weights.chunks_exact(n)) {
        add_each(out, plane, elements, weights);
    }
}
}

/// The values of images (N, C, *sizes) at points (N, *out, rank), as (N, C, *out). Points are relative, the innermost
/// dimension's number first; see [`SampleOptions`].
///
/// # Errors
/// Shapes that do not fit, or a dtype that is not floating.
pub fn grid_sample(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    grid: StridedRef<'_>,
    sampling: SampleOptions,
) -> Result<()> {
    let g = SampleGeometry::new(input.shape(), grid.shape(), sampling)?;
    expect_shape("output", out.shape(), &g.output_shape(grid.shape()))?;
    for_compute!(input.dtype(), "grid_sample", T => {
        let (input, grid) = (load::<T>(input)?, load::<T>(grid)?);
        with_output::<T, _>(out, |out| forward(out, &input, &grid, &g))
    })
}

fn forward<T: Real>(out: &mut [T], input: &[T], grid: &[T], g: &SampleGeometry) {
    let (rank, plane) = (g.rank(), g.plane());
    let out = SharedMut::new(out);
    g.for_blocks(&|image, range| {
        let first = image * g.points;
        let points = (first + range.start) * rank..(first + range.end) * rank;
        let mut taps = SampleTaps::default();
        taps.set(g, &grid[points], false);
        for channel in image * g.channels..(image + 1) * g.channels {
            let start = channel * g.points;
            // SAFETY: a block of points of a plane, which this task alone writes.
            let out = unsafe { out.slice(start + range.start..start + range.end) };
            let plane = &input[channel * plane..(channel + 1) * plane];
            add_taps(out, plane, &taps.elements, &taps.weights);
        }
    });
}

/// The gradients of [`grid_sample`] with respect to images and points, those that are requested.
pub fn grid_sample_backward(
    grad_input: Option<&mut StridedMut<'_>>,
    grad_grid: Option<&mut StridedMut<'_>>,
    grad: StridedRef<'_>,
    input: StridedRef<'_>,
    grid: StridedRef<'_>,
    sampling: SampleOptions,
) -> Result<()> {
    let g = SampleGeometry::new(input.shape(), grid.shape(), sampling)?;
    expect_shape("grad_output", grad.shape(), &g.output_shape(grid.shape()))?;
    for_compute!(input.dtype(), "grid_sample_backward", T => {
        let (grad, points) = (load::<T>(grad)?, load::<T>(grid)?);
        if let Some(out) = grad_input {
            expect_shape("grad_input", out.shape(), input.shape())?;
            with_output::<T, _>(out, |out| by_input(out, &grad, &points, &g))?;
        }
        if let Some(out) = grad_grid {
            expect_shape("grad_grid", out.shape(), grid.shape())?;
            let input = load::<T>(input)?;
            with_output::<T, _>(out, |out| by_grid(out, &grad, &input, &points, &g))?;
        }
        Ok(())
    })
}

fn by_input<T: Real>(out: &mut [T], grad: &[T], grid: &[T], g: &SampleGeometry) {
    let (rank, plane) = (g.rank(), g.plane());
    let groups = g.channels.div_ceil(CHANNELS);
    let sums = g.points * g.taps() * g.channels.min(CHANNELS);
    out.fill(T::ZERO);
    let out = SharedMut::new(out);
    parallel::for_range(g.images * groups, (GRAIN / sums.max(1)).max(1), &|range| {
        for at in range {
            let (image, first) = (at / groups, at % groups * CHANNELS);
            let channels = first..g.channels.min(first + CHANNELS);
            let mut taps = SampleTaps::default();
            for start in (0..g.points).step_by(BLOCK) {
                interrupt::check();
                let block = start..g.points.min(start + BLOCK);
                let points = image * g.points + block.start..image * g.points + block.end;
                taps.set(g, &grid[points.start * rank..points.end * rank], false);
                for channel in channels.clone().map(|channel| image * g.channels + channel) {
                    // SAFETY: a plane, which this task alone writes.
                    let out = unsafe { out.slice(channel * plane..(channel + 1) * plane) };
                    let from = channel * g.points;
                    let grad = &grad[from + block.start..from + block.end];
                    for tap in 0..g.taps() {
                        let (elements, weights) = taps.tap(tap);
                        scatter_tap(out, grad, elements, weights);
                    }
                }
            }
        }
    });
}

/// `plane[elements[i]] += grad[i] * weights[i]`, but for the elements -1.
fn scatter_tap<T: Real>(plane: &mut [T], grad: &[T], elements: &[i64], weights: &[T]) {
    for ((&grad, &at), &weight) in grad.iter().zip(elements).zip(weights) {
        if at >= 0 {
            plane[at as usize] += grad * weight;
        }
    }
}

fn by_grid<T: Real>(out: &mut [T], grad: &[T], input: &[T], grid: &[T], g: &SampleGeometry) {
    if g.sampling.interpolation == Interpolation::Nearest {
        return out.fill(T::ZERO);
    }
    let (rank, plane) = (g.rank(), g.plane());
    let out = SharedMut::new(out);
    g.for_blocks(&|image, range| {
        let first = image * g.points;
        let points = (first + range.start) * rank..(first + range.end) * rank;
        let mut taps = SampleTaps::default();
        taps.set(g, &grid[points.clone()], true);
        // SAFETY: the gradients of a block of points, which this task alone writes.
        let out = unsafe { out.slice(points) };
        out.fill(T::ZERO);
        let mut sum = [T::ZERO; BLOCK];
        let sum = &mut sum[..range.len()];
        for tap in 0..g.taps() {
            sum.fill(T::ZERO);
            let (elements, _) = taps.tap(tap);
            for channel in image * g.channels..(image + 1) * g.channels {
                let grad = &grad[channel * g.points..][range.clone()];
                add_tap(sum, &input[channel * plane..(channel + 1) * plane], elements, grad);
            }
            for dim in 0..rank {
                add_slope(&mut out[rank - 1 - dim..], sum, &taps, (tap, dim), g);
            }
        }
        for (dim, &size) in g.sizes.iter().enumerate() {
            let factor = T::of(g.sampling.scale(size));
            out[rank - 1 - dim..].iter_mut().step_by(rank).for_each(|value| *value *= factor);
        }
    });
}

/// Adds a tap's sums times the derivative of its weight by the coordinate along a dimension to every `rank`-th number of `out`.
fn add_slope<T: Real>(
    out: &mut [T],
    sum: &[T],
    taps: &SampleTaps<T>,
    (tap, dim): (usize, usize),
    g: &SampleGeometry,
) {
    for (i, (out, &sum)) in out.iter_mut().step_by(g.rank()).zip(sum).enumerate() {
        let mut slope = T::ONE;
        for (other, axis) in taps.axes[..g.rank()].iter().enumerate() {
            let at = tap_index(g, tap, other) * taps.count + i;
            slope *= if other == dim { axis.slope[at] } else { axis.weight[at] };
        }
        *out += sum * slope;
    }
}
