//! Pooling over one, two or three spatial dimensions: max with indices, average, adaptive average,
//! and their gradients.
//!
//! Views are (C, *) or (N, C, *) as PyTorch takes them: the last `spatial` dimensions are pooled, all
//! others are planes. Small planes are taken sixteen side by side (`crate::windows`). In others a row of outputs is worked on at
//! once: for each kernel element, whose inputs lie at a constant step, so that the loops become vector code.

mod average;
mod maximum;
mod maximum_rows;
mod ranges;

pub use average::{
    AvgPoolOptions, adaptive_avg_pool, adaptive_avg_pool_backward, avg_pool, avg_pool_backward,
};
pub use maximum::{max_pool, max_pool_backward};
pub use ranges::{adaptive_max_pool, fractional_max_pool, max_unpool};

use crate::windows::{WindowGeometry, Windows};
use crate::{Error, Result};
use smallvec::SmallVec;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 13;

/// A pooling window and its movement; the lists have one entry per spatial dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWindow {
    /// Window sizes.
    pub kernel: SmallVec<[usize; 3]>,
    /// Steps between neighbouring windows.
    pub stride: SmallVec<[usize; 3]>,
    /// Padding on both sides, at most half the window.
    pub padding: SmallVec<[usize; 3]>,
    /// Steps between neighbouring elements of a window (1 for average pooling).
    pub dilation: SmallVec<[usize; 3]>,
    /// Whether windows that start inside but reach beyond the end give an output.
    pub ceil_mode: bool,
}

/// The shape of a pooling's output; `x` is (*, spatial...).
///
/// # Errors
/// Wrong numbers of dimensions, a padding above half the window, a stride, window or dilation of
/// zero, or an output without elements.
pub fn output_shape(x: &[i64], window: &PoolWindow) -> Result<SmallVec<[i64; 5]>> {
    let spatial = window.kernel.len();
    check(x, window, spatial)?;
    let planes = x.len() - spatial;
    let mut shape: SmallVec<[i64; 5]> = SmallVec::from_slice(x);
    for d in 0..spatial {
        let (kernel, stride) = (window.kernel[d] as i64, window.stride[d] as i64);
        let (padding, dilation) = (window.padding[d] as i64, window.dilation[d] as i64);
        let room = x[planes + d] + 2 * padding - dilation * (kernel - 1) - 1;
        let extra = if window.ceil_mode { stride - 1 } else { 0 };
        let mut size = (room + extra).div_euclid(stride) + 1;
        if window.ceil_mode && (size - 1) * stride >= x[planes + d] + padding {
            // The last window must start inside the input or its left padding.
            size -= 1;
        }
        shape[planes + d] = size;
    }
    if shape[planes..].iter().any(|&size| size < 1) {
        let first = planes.saturating_sub(1);
        // bounded: by the rank.
        let by = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        return Err(Error::runtime(format!(
            "Given input size: ({}). Calculated output size: ({}). Output size is too small",
            by(&x[first..]),
            by(&shape[first..])
        )));
    }
    Ok(shape)
}

fn check(x: &[i64], window: &PoolWindow, spatial: usize) -> Result<()> {
    let fail = |message: String| Err(Error::runtime(message));
    if !(1..=3).contains(&spatial) || x.len() < spatial + 1 {
        return fail(format!(
            "Expected {}D or {}D (batch mode) tensor for pooling, but got input of size {x:?}",
            spatial + 1,
            spatial + 2
        ));
    }
    if [&window.stride, &window.padding, &window.dilation].iter().any(|l| l.len() != spatial) {
        return fail(format!("pooling expects {spatial} values per parameter"));
    }
    let all = [&window.kernel, &window.stride, &window.padding, &window.dilation];
    if all.iter().any(|list| list.iter().any(|&value| value > i32::MAX as usize)) {
        return fail("integer out of range".to_owned());
    }
    for d in 0..spatial {
        let (kernel, padding) = (window.kernel[d], window.padding[d]);
        if kernel == 0 {
            return fail(format!(
                "kernel size should be greater than zero, but got {:?}",
                window.kernel
            ));
        }
        if window.stride[d] == 0 {
            return fail("stride should not be zero".to_owned());
        }
        if window.dilation[d] == 0 {
            return fail(format!(
                "dilation should be greater than zero, but got {:?}",
                window.dilation
            ));
        }
        if padding > ((kernel - 1) * window.dilation[d]).div_ceil(2) {
            return fail(format!(
                "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and dilation={}",
                window.dilation[d]
            ));
        }
    }
    Ok(())
}

/// A pooling with three spatial dimensions.
#[derive(Clone, Debug)]
struct PoolGeometry {
    planes: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
}

impl PoolGeometry {
    fn new(x: &[i64], out: &[i64], window: &PoolWindow) -> PoolGeometry {
        let spatial = window.kernel.len();
        let list = |values: &[usize], fill| {
            let mut all = [fill; 3];
            all[3 - values.len()..].copy_from_slice(values);
            all
        };
        let planes = x.len() - spatial;
        PoolGeometry {
            planes: x[..planes].iter().map(|&s| s as usize).product(),
            input: sizes(&x[planes..]),
            output: sizes(&out[planes..]),
            kernel: list(&window.kernel, 1),
            stride: list(&window.stride, 1),
            padding: list(&window.padding, 0),
            dilation: list(&window.dilation, 1),
        }
    }
    fn input_size(&self) -> usize {
        self.input.iter().product()
    }
    fn output_size(&self) -> usize {
        self.output.iter().product()
    }
    /// The windows of the pooling, if its planes are better processed side by side.
    fn small_windows(&self) -> Result<Option<Windows>> {
        let PoolGeometry { planes, input, output, kernel, stride, padding, dilation } = *self;
        Windows::of_kernel(
            planes,
            &WindowGeometry { input, output, kernel, stride, padding, dilation },
        )
    }
    /// Calls `work` for each plane, on several threads if there is enough to do.
    fn for_planes(&self, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        let size = self.kernel.iter().fold(self.output_size().max(1), |n, &k| n.saturating_mul(k));
        crate::parallel::try_for_restartable_range(
            self.planes,
            (GRAIN / size).max(1),
            &|mut range| range.try_for_each(work),
        )
    }
    /// The kernel elements of output `o` along `dim` that are inside the input, and the (possibly
    /// negative) input position of element 0.
    #[inline(always)]
    fn taps(&self, dim: usize, o: usize) -> (std::ops::Range<usize>, isize) {
        let first = (o * self.stride[dim]) as isize - self.padding[dim] as isize;
        let step = self.dilation[dim] as isize;
        let start = if first >= 0 { 0 } else { (-first + step - 1) / step } as usize;
        let end = (self.input[dim] as isize - first + step - 1).div_euclid(step).max(0) as usize;
        (start..end.clamp(start, self.kernel[dim].max(start)), first)
    }
    /// The outputs along the last dimension for which kernel element `k` is inside, and the input
    /// position of output 0.
    #[inline(always)]
    fn columns(&self, k: usize) -> (std::ops::Range<usize>, isize) {
        let first = (k * self.dilation[2]) as isize - self.padding[2] as isize;
        let stride = self.stride[2] as isize;
        let start = if first >= 0 { 0 } else { (-first + stride - 1) / stride } as usize;
        let end = (self.input[2] as isize - first + stride - 1).div_euclid(stride).max(0) as usize;
        let start = start.min(self.output[2]);
        (start..end.clamp(start, self.output[2].max(start)), first)
    }
}

/// Up to three sizes, with ones in front.
fn sizes(shape: &[i64]) -> [usize; 3] {
    let mut all = [1; 3];
    for (to, &from) in all[3 - shape.len()..].iter_mut().zip(shape) {
        *to = from as usize;
    }
    all
}
