//! Pooling: the largest element, or the mean, of each window.

use super::conv::dimensions;
use crate::{Forward, Module};
use pullback::{Result, Tensor};

/// Options of [`MaxPool`] and [`AvgPool`].
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions<const N: usize> {
    /// The stride of the window; its own size if `None`.
    pub stride: Option<[i64; N]>,
    /// The size of the padding at both sides.
    pub padding: [i64; N],
    /// The distance between the elements of the window ([`MaxPool`] only).
    pub dilation: [i64; N],
    /// Whether windows that extend beyond the end count.
    pub ceil_mode: bool,
    /// Whether the zeros of the padding count ([`AvgPool`] only).
    pub count_include_pad: bool,
}

impl<const N: usize> Default for PoolOptions<N> {
    fn default() -> Self {
        PoolOptions {
            stride: None,
            padding: [0; N],
            dilation: [1; N],
            ceil_mode: false,
            count_include_pad: true,
        }
    }
}

/// Layers with a window.
macro_rules! pools {
    ($($(#[$text:meta])* $name:ident)*) => {$(
        $(#[$text])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name<const N: usize> {
            kernel: [i64; N],
            #[module(skip)]
            options: PoolOptions<N>,
        }
        impl<const N: usize> $name<N> {
            /// Windows of this size, side by side.
            pub fn new(kernel: [i64; N]) -> Self {
                $name { kernel, options: PoolOptions::default() }
            }
            /// Windows of this size with these options.
            pub fn with(kernel: [i64; N], options: PoolOptions<N>) -> Self {
                $name { kernel, options }
            }
        }
    )*};
}
pools! {
    /// The largest element of each window of `(N, C, ..)`.
    MaxPool
    /// The mean of each window of `(N, C, ..)`.
    AvgPool
}

/// [`MaxPool`] of sequences.
pub type MaxPool1d = MaxPool<1>;
/// [`MaxPool`] of images.
pub type MaxPool2d = MaxPool<2>;
/// [`MaxPool`] of volumes.
pub type MaxPool3d = MaxPool<3>;
/// [`AvgPool`] of sequences.
pub type AvgPool1d = AvgPool<1>;
/// [`AvgPool`] of images.
pub type AvgPool2d = AvgPool<2>;
/// [`AvgPool`] of volumes.
pub type AvgPool3d = AvgPool<3>;

impl<const N: usize> Forward for MaxPool<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let o = &self.options;
        let stride = o.stride.unwrap_or(self.kernel);
        let run = match N {
            1 => Tensor::max_pool1d,
            2 => Tensor::max_pool2d,
            3 => Tensor::max_pool3d,
            _ => return Err(dimensions(N)),
        };
        run(x, &self.kernel, &stride, &o.padding, &o.dilation, o.ceil_mode)
    }
}

impl<const N: usize> Forward for AvgPool<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (k, o) = (&self.kernel, &self.options);
        let stride = &o.stride.unwrap_or(self.kernel);
        let (ceil, count) = (o.ceil_mode, o.count_include_pad);
        match N {
            1 => x.avg_pool1d(k, stride, &o.padding, ceil, count),
            2 => x.avg_pool2d(k, stride, &o.padding, ceil, count, None),
            3 => x.avg_pool3d(k, stride, &o.padding, ceil, count, None),
            _ => Err(dimensions(N)),
        }
    }
}

/// Means of as many windows as the output has elements.
#[derive(Clone, Copy, Debug, Module)]
pub struct AdaptiveAvgPool<const N: usize> {
    /// The size of the output.
    pub output_size: [i64; N],
}

/// [`AdaptiveAvgPool`] of sequences.
pub type AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
/// [`AdaptiveAvgPool`] of images.
pub type AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
/// [`AdaptiveAvgPool`] of volumes.
pub type AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

impl<const N: usize> Forward for AdaptiveAvgPool<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match N {
            1 => x.adaptive_avg_pool1d(&self.output_size),
            2 => x.adaptive_avg_pool2d(&self.output_size),
            3 => x.adaptive_avg_pool3d(&self.output_size),
            _ => Err(dimensions(N)),
        }
    }
}
