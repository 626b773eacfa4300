//! Convolution of many images with few output positions each, as matrix products over several of them.
//!
//! A block of images is transposed so that what they have at one position lies side by side: the
//! columns of the products are (position, image), and the rows of the gathered matrix are made of
//! runs of images, whatever stride, padding and dilation. Everything else is as in `im2col_gemm`:
//! each sum is the same, in the order of these columns.

use super::geometry::ConvGeometry;
use super::im2col_gemm::{BLOCK_BYTES, GradientTask, channels_per_task, gradient_task};
use super::{ConvElement, tasks_of};
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::gemm::{GemmSizes, Matrix, product};
use crate::parallel;
use crate::{Result, memory};
use std::ops::Range;

/// Output positions below which several images share a product.
const MAX_POSITIONS: usize = 96;
/// Output positions below which several images share a product, if the input itself is the matrix of an image.
const MAX_POSITIONS_POINTWISE: usize = 32;
/// Columns that a product should have.
const MIN_COLUMNS: usize = 256;
/// Images come in multiples of this where there are so many.
const IMAGE_MULTIPLE: usize = 16;
/// The index that stands for a position outside of the input.
const OUTSIDE: usize = usize::MAX;

/// Whether a product over several images is faster than one for each image.
pub(super) fn fits(g: &ConvGeometry) -> bool {
    let few = if g.is_pointwise() { MAX_POSITIONS_POINTWISE } else { MAX_POSITIONS };
    g.batch > 1 && (1..few).contains(&g.output_size())
}

/// The blocks of images and positions.
struct ImageBlocks {
    /// Images per block.
    images: usize,
    /// The number of output positions of an image.
    positions: usize,
    batch: usize,
    /// The input position that each output position meets at each kernel element; none if the input is the matrix.
    source_positions: Vec<usize>,
    kernel: usize,
    inputs: usize,
}

impl ImageBlocks {
    fn new(g: &ConvGeometry) -> Result<ImageBlocks> {
        let positions = g.output_size();
        let images = MIN_COLUMNS.div_ceil(positions).next_multiple_of(IMAGE_MULTIPLE).min(g.batch);
        let source_positions = if g.is_pointwise() { Vec::new() } else { source_positions(g)? };
        let (kernel, inputs) = (g.kernel_size(), g.input_size());
        Ok(ImageBlocks { images, positions, batch: g.batch, source_positions, kernel, inputs })
    }
    fn count(&self) -> usize {
        self.batch.div_ceil(self.images)
    }
    fn get(&self, index: usize) -> Range<usize> {
        let first = index * self.images;
        first..self.batch.min(first + self.images)
    }
    /// Ranges of positions for which a gathered matrix of `rows` rows stays in the cache.
    fn ranges<T>(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let all = self.positions;
        let fit = (BLOCK_BYTES / (rows.max(1) * size_of::<T>())).max(MIN_COLUMNS / 2) / self.images;
        let each = if self.source_positions.is_empty() {
            all
        } else {
            all.div_ceil(all.div_ceil(fit.max(1)))
        };
        (0..all).step_by(each).map(move |start| start..all.min(start + each))
    }
    /// The matrix of `channels` channels of transposed images for some positions: gathered into `matrix`, or `x` itself.
    fn matrix<T: ConvElement>(
        &self,
        matrix: &mut Vec<T>,
        x: &[T],
        range: &Range<usize>,
        (channels, images): (usize, usize),
    ) -> Result<Matrix<T>> {
        if self.source_positions.is_empty() {
            return Ok(Matrix::rows(x[range.start * images..].as_ptr(), self.inputs * images));
        }
        let columns = range.len() * images;
        memory::resize(matrix, channels * self.kernel * columns, T::default())?;
        gather(matrix, x, self, range.start, range.end, images);
        Ok(Matrix::rows(matrix.as_ptr(), columns))
    }
}

fn source_positions(g: &ConvGeometry) -> Result<Vec<usize>> {
    let mut source_positions = memory::with_capacity(g.kernel_size() * g.output_size())?;
    let at = |dim: usize, o: usize, k: usize| {
        let at = (o * g.stride[dim] + k * g.dilation[dim]).wrapping_sub(g.padding[dim]);
        (at < g.input[dim]).then_some(at)
    };
    for kd in 0..g.kernel[0] {
        for kh in 0..g.kernel[1] {
            for kw in 0..g.kernel[2] {
                for od in 0..g.output[0] {
                    for oh in 0..g.output[1] {
                        let row = match (at(0, od, kd), at(1, oh, kh)) {
                            (Some(d), Some(h)) => Some((d * g.input[1] + h) * g.input[2]),
                            _ => None,
                        };
                        let source = |ow| match (row, at(2, ow, kw)) {
                            (Some(row), Some(w)) => row + w,
                            _ => OUTSIDE,
                        };
                        memory::extend(&mut source_positions, (0..g.output[2]).map(source))?;
                    }
                }
            }
        }
    }
    Ok(source_positions)
}

/// Transposes `rows` elements of each of some images, which are `pitch` apart, into `rows` runs of images.
fn load_transposed<T: ConvElement>(
    to: &mut Vec<T>,
    x: &[T],
    rows: usize,
    pitch: usize,
    images: usize,
) -> Result<()> {
    memory::resize(to, rows * images, T::default())?;
    if to.is_empty() {
        return Ok(());
    }
    let size = size_of::<T>();
    assert!((images - 1) * pitch + rows <= x.len());
    let strides = ((images * size) as isize, (pitch * size) as isize);
    // SAFETY: `rows` elements of each image were found to be there, and as many runs of `images`.
    unsafe {
        copy_tile::<T, false>(to.as_mut_ptr().cast(), x.as_ptr().cast(), strides, (images, rows));
    };
    Ok(())
}

/// Transposes runs of images back into `rows` elements of each, `pitch` apart in `out` from `start` on.
///
/// # Safety
/// Nobody else uses these elements.
unsafe fn store_transposed<T: ConvElement>(
    out: SharedMut<T>,
    start: usize,
    from: &[T],
    rows: usize,
    pitch: usize,
    images: usize,
) {
    let size = size_of::<T>();
    assert!(rows * images <= from.len());
    let strides = ((pitch * size) as isize, (images * size) as isize);
    let to = out.ptr().wrapping_add(start).cast();
    // SAFETY: the runs are there; the rest is the caller's promise.
    unsafe { copy_tile::<T, false>(to, from.as_ptr().cast(), strides, (rows, images)) };
}

crate::multiversion! {
    /// Fills the rows (channel, kernel element) of the matrix of positions `first..last`.
    fn gather<T: ConvElement>(
        matrix: &mut [T],
        x: &[T],
        blocks: &ImageBlocks,
        first: usize,
        last: usize,
        images: usize,
    ) {
        match images {
            16 => gather_spans::<T, 16>(matrix, x, blocks, first..last, 16),
            32 => gather_spans::<T, 32>(matrix, x, blocks, first..last, 32),
            64 => gather_spans::<T, 64>(matrix, x, blocks, first..last, 64),
            _ => gather_spans::<T, 0>(matrix, x, blocks, first..last, images),
        }
    }
}

/// The loop of [`im2col`]; `I` is the number of images, or 0 if it is not a constant.
#[inline(always)]
fn gather_spans<T: ConvElement, const I: usize>(
    matrix: &mut [T],
    x: &[T],
    blocks: &ImageBlocks,
    range: Range<usize>,
    images: usize,
) {
    let n = if I == 0 { images } else { I };
    let channel_rows = blocks.kernel * range.len() * n;
    let inputs = blocks.inputs * n;
    for (c, matrix) in matrix.chunks_exact_mut(channel_rows.max(1)).enumerate() {
        let x = &x[c * inputs..][..inputs];
        let rows = matrix.chunks_exact_mut(range.len() * n);
        for (row, source_positions) in
            rows.zip(blocks.source_positions.chunks_exact(blocks.positions))
        {
            for (to, &source) in row.chunks_exact_mut(n).zip(&source_positions[range.clone()]) {
                if source == OUTSIDE {
                    to.fill(T::default());
                } else {
                    to.copy_from_slice(&x[source * n..][..n]);
                }
            }
        }
    }
}

crate::multiversion! {
    /// Adds the rows of the matrix of positions `first..last`, as [`im2col`] would fill it, onto transposed images.
    fn scatter<T: ConvElement>(
        x: &mut [T],
        matrix: &[T],
        blocks: &ImageBlocks,
        first: usize,
        last: usize,
        images: usize,
    ) {
        match images {
            16 => scatter_spans::<T, 16>(x, matrix, blocks, first..last, 16),
            32 => scatter_spans::<T, 32>(x, matrix, blocks, first..last, 32),
            64 => scatter_spans::<T, 64>(x, matrix, blocks, first..last, 64),
            _ => scatter_spans::<T, 0>(x, matrix, blocks, first..last, images),
        }
    }
}

/// The loop of [`scatter`]; `I` is the number of images, or 0 if it is not a constant.
#[inline(always)]
fn scatter_spans<T: ConvElement, const I: usize>(
    x: &mut [T],
    matrix: &[T],
    blocks: &ImageBlocks,
    range: Range<usize>,
    images: usize,
) {
    let n = if I == 0 { images } else { I };
    let channel_rows = blocks.kernel * range.len() * n;
    let inputs = blocks.inputs * n;
    for (c, matrix) in matrix.chunks_exact(channel_rows.max(1)).enumerate() {
        let x = &mut x[c * inputs..][..inputs];
        let rows = matrix.chunks_exact(range.len() * n);
        for (row, source_positions) in
            rows.zip(blocks.source_positions.chunks_exact(blocks.positions))
        {
            for (from, &source) in row.chunks_exact(n).zip(&source_positions[range.clone()]) {
                if source != OUTSIDE {
                    for (x, &value) in x[source * n..][..n].iter_mut().zip(from) {
                        *x = x.plus(value);
                    }
                }
            }
        }
    }
}

pub(super) fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<()> {
    let (channels, inputs) = (g.in_channels, g.input_size());
    let (k, positions) = (channels * g.kernel_size(), g.output_size());
    let blocks = ImageBlocks::new(g)?;
    let shared = SharedMut::new(out);
    let grain = tasks_of(blocks.images * positions * g.out_channels, k);
    parallel::try_for_range(blocks.count() * g.groups, grain, &|tasks| {
        let (mut transposed, mut matrix, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            let (block, group) = (blocks.get(task / g.groups), task % g.groups);
            let n = block.len();
            let own = (block.start * g.groups + group) * channels * inputs;
            load_transposed(
                &mut transposed,
                &x[own..],
                channels * inputs,
                g.groups * channels * inputs,
                n,
            )?;
            let first = group * g.out_channels;
            let pitch = positions * n;
            memory::resize(&mut sums, g.out_channels * pitch, T::default())?;
            for (o, row) in sums.chunks_exact_mut(pitch).enumerate() {
                row.fill(bias.map_or(T::default(), |bias| bias[first + o]));
            }
            for range in blocks.ranges::<T>(k) {
                let right = blocks.matrix(&mut matrix, &transposed, &range, (channels, n))?;
                let sizes = GemmSizes { m: g.out_channels, n: range.len() * n, k };
                let left = Matrix::rows(w[first * k..].as_ptr(), k);
                let target = Matrix::rows(sums[range.start * n..].as_mut_ptr(), pitch);
                // SAFETY: the sums are this task's.
                unsafe { product(sizes, target, left, right, T::one(), T::one(), false)? };
            }
            let all = g.groups * g.out_channels * positions;
            let start = block.start * all + first * positions;
            // SAFETY: each task owns these channels of its images.
            unsafe { store_transposed(shared, start, &sums, g.out_channels * positions, all, n) };
        }
        Ok(())
    })?;
    Ok(())
}

/// The output's gradient of one group of some images, transposed.
fn load_gradient<T: ConvElement>(
    to: &mut Vec<T>,
    grad: &[T],
    block: &Range<usize>,
    group: usize,
    g: &ConvGeometry,
) -> Result<()> {
    let rows = g.out_channels * g.output_size();
    let own = (block.start * g.groups + group) * rows;
    load_transposed(to, &grad[own..], rows, g.groups * rows, block.len())?;
    Ok(())
}

pub(super) fn backward_input<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    let (kernel, positions, inputs) = (g.kernel_size(), g.output_size(), g.input_size());
    if out.is_empty() {
        return Ok(());
    }
    let each = channels_per_task::<T>(g);
    let parts = g.groups * g.in_channels.div_ceil(each);
    let blocks = ImageBlocks::new(g)?;
    let shared = SharedMut::new(out);
    let grain = tasks_of(blocks.images * positions * each * kernel, g.out_channels);
    parallel::try_for_range(blocks.count() * parts, grain, &|tasks| {
        let (mut transposed, mut matrix, mut grads) = (Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            let block = blocks.get(task / parts);
            let GradientTask { group, channels } = gradient_task(g, task % parts, each);
            let (n, k) = (block.len(), channels.len() * kernel);
            load_gradient(&mut grads, grad, &block, group, g)?;
            transposed.clear();
            memory::resize(&mut transposed, channels.len() * inputs * n, T::default())?;
            let first = group * g.out_channels;
            let stride = (g.in_channels * kernel) as isize;
            let from = w[first * g.in_channels * kernel + channels.start * kernel..].as_ptr();
            let left = Matrix { ptr: from.cast_mut(), rs: 1, cs: stride };
            for range in blocks.ranges::<T>(k) {
                let columns = range.len() * n;
                let right = Matrix::rows(grads[range.start * n..].as_ptr(), positions * n);
                let sizes = GemmSizes { m: k, n: columns, k: g.out_channels };
                let is_gathered = !blocks.source_positions.is_empty();
                let target = if is_gathered {
                    memory::resize(&mut matrix, k * columns, T::default())?;
                    Matrix::rows(matrix.as_mut_ptr(), columns)
                } else {
                    Matrix::rows(transposed[range.start * n..].as_mut_ptr(), inputs * n)
                };
                // SAFETY: the matrix and the transposed images are this task's.
                unsafe { product(sizes, target, left, right, T::one(), T::default(), false)? };
                if is_gathered {
                    scatter(&mut transposed, &matrix, &blocks, range.start, range.end, n);
                }
            }
            let pitch = g.groups * g.in_channels * inputs;
            let start = block.start * pitch + (group * g.in_channels + channels.start) * inputs;
            // SAFETY: each task owns these channels of its images.
            unsafe {
                store_transposed(shared, start, &transposed, channels.len() * inputs, pitch, n);
            };
        }
        Ok(())
    })?;
    Ok(())
}

pub(super) fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    out.fill(T::default());
    let (kernel, positions, inputs) = (g.kernel_size(), g.output_size(), g.input_size());
    let each = channels_per_task::<T>(g);
    let parts = g.groups * g.in_channels.div_ceil(each);
    let blocks = ImageBlocks::new(g)?;
    let shared = SharedMut::new(out);
    let grain = tasks_of(g.out_channels * each * kernel, g.batch * positions);
    parallel::try_for_range(parts, grain, &|tasks| {
        let (mut transposed, mut matrix, mut grads) = (Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            let GradientTask { group, channels } = gradient_task(g, task, each);
            let k = channels.len() * kernel;
            let row = g.in_channels * kernel;
            let at = group * g.out_channels * row + channels.start * kernel;
            let target = Matrix { ptr: shared.ptr().wrapping_add(at), rs: row as isize, cs: 1 };
            for block in (0..blocks.count()).map(|index| blocks.get(index)) {
                let n = block.len();
                load_gradient(&mut grads, grad, &block, group, g)?;
                let pitch = g.groups * g.in_channels * inputs;
                let own = block.start * pitch + (group * g.in_channels + channels.start) * inputs;
                load_transposed(&mut transposed, &x[own..], channels.len() * inputs, pitch, n)?;
                for range in blocks.ranges::<T>(k) {
                    let left = Matrix::rows(grads[range.start * n..].as_ptr(), positions * n);
                    let right =
                        blocks.matrix(&mut matrix, &transposed, &range, (channels.len(), n))?;
                    let sizes = GemmSizes { m: g.out_channels, n: k, k: range.len() * n };
                    // SAFETY: the task owns these columns of the weight's gradient.
                    unsafe { product(sizes, target, left, right.t(), T::one(), T::one(), false)? };
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}
