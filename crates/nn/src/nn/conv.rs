//! Convolutions of one to three dimensions, and their transposes.

use super::init;
use crate::{Forward, Module};
use pullback::{Error, Result, Tensor, TensorOptions};

/// The size of the padding around an image; [`PaddingMode`] selects its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding<const N: usize> {
    /// This number of elements at both sides of each dimension.
    Each([i64; N]),
    /// As many elements as give the output the size of the input; the stride must be one.
    Same,
}

/// The content of the padding of a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaddingMode {
    /// Zeros.
    #[default]
    Zeros,
    /// The image mirrored at its outermost elements.
    Reflect,
    /// The outermost elements.
    Replicate,
    /// The image from its other side.
    Circular,
}

/// Options of [`Conv`].
#[derive(Clone, Debug)]
pub struct ConvOptions<const N: usize> {
    /// The stride of the kernel.
    pub stride: [i64; N],
    /// The size of the padding.
    pub padding: Padding<N>,
    /// The content of the padding.
    pub padding_mode: PaddingMode,
    /// The distance between the elements of the kernel.
    pub dilation: [i64; N],
    /// The number of groups that the channels are divided into.
    pub groups: i64,
    /// Whether there is a bias.
    pub bias: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> Self {
        ConvOptions {
            stride: [1; N],
            padding: Padding::Each([0; N]),
            padding_mode: PaddingMode::Zeros,
            dilation: [1; N],
            groups: 1,
            bias: true,
            tensors: TensorOptions::new(),
        }
    }
}

/// The cross-correlation of images `(batch, in_channels, ..)` with kernels: `N` is the number of dimensions of an image.
///
/// Weight `(out_channels, in_channels / groups, kernel..)` and bias are at first from `U(-b, b)`, `b = 1 / sqrt(fan_in)`.
#[derive(Clone, Debug, Module)]
pub struct Conv<const N: usize> {
    /// The kernels.
    pub weight: Tensor,
    /// The bias of each output channel.
    pub bias: Option<Tensor>,
    #[module(skip)]
    options: ConvOptions<N>,
}

/// [`Conv`] of sequences.
pub type Conv1d = Conv<1>;
/// [`Conv`] of images.
pub type Conv2d = Conv<2>;
/// [`Conv`] of volumes.
pub type Conv3d = Conv<3>;

/// Refuses numbers of groups that do not divide the channels.
fn check_groups(channels: [i64; 2], groups: i64) -> Result<()> {
    for (what, count) in ["in_channels", "out_channels"].into_iter().zip(channels) {
        if groups <= 0 || count % groups != 0 {
            return Err(Error::value(format!(
                "{what} must be divisible by groups, got {count} and {groups}"
            )));
        }
    }
    Ok(())
}

impl<const N: usize> Conv<N> {
    /// A layer with the default options.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(in_channels: i64, out_channels: i64, kernel: [i64; N]) -> Result<Self> {
        Conv::with(in_channels, out_channels, kernel, ConvOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` for groups that do not divide the channels and for [`Padding::Same`] beside a stride, `RuntimeError` for
    /// negative sizes; out of memory.
    pub fn with(
        in_channels: i64,
        out_channels: i64,
        kernel: [i64; N],
        options: ConvOptions<N>,
    ) -> Result<Self> {
        if options.padding == Padding::Same && options.stride != [1; N] {
            return Err(Error::value("padding='same' is not supported for strided convolutions"));
        }
        check_groups([in_channels, out_channels], options.groups)?;
        let t = options.tensors.clone().requires_grad(true);
        let sizes = [&[out_channels, in_channels / options.groups][..], &kernel[..]].concat();
        let weight = t.empty(&sizes)?;
        let bias = options.bias.then(|| t.empty([out_channels])).transpose()?;
        init::reset(&weight, bias.as_ref(), t.drawn_from())?;
        Ok(Conv { weight, bias, options })
    }
}

impl<const N: usize> Conv<N> {
    /// The padded image: sizes at both sides of each dimension, the last dimension first.
    fn padded(&self, x: &Tensor, mode: &str) -> Result<Tensor> {
        let mut sizes = Vec::new();
        for dim in (0..N).rev() {
            let [before, after] = match self.options.padding {
                Padding::Each(sizes) => [sizes[dim]; 2],
                Padding::Same => {
                    let reach = self.options.dilation[dim] * (self.weight.shape()[dim + 2] - 1);
                    [reach / 2, reach - reach / 2]
                }
            };
            sizes.extend([before, after]);
        }
        x.pad(&sizes, mode, None)
    }
}

impl<const N: usize> Forward for Conv<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (w, b, o) = (&self.weight, self.bias.as_ref(), &self.options);
        let mode = match o.padding_mode {
            PaddingMode::Zeros => None,
            PaddingMode::Reflect => Some("reflect"),
            PaddingMode::Replicate => Some("replicate"),
            PaddingMode::Circular => Some("circular"),
        };
        let (padded, padding);
        let (x, around) = if let Some(mode) = mode {
            padded = self.padded(x, mode)?;
            padding = Padding::Each([0; N]);
            (&padded, &padding)
        } else {
            (x, &o.padding)
        };
        match (N, around) {
            (1, Padding::Each(sizes)) => x.conv1d(w, b, &o.stride, sizes, &o.dilation, o.groups),
            (2, Padding::Each(sizes)) => x.conv2d(w, b, &o.stride, sizes, &o.dilation, o.groups),
            (3, Padding::Each(sizes)) => x.conv3d(w, b, &o.stride, sizes, &o.dilation, o.groups),
            (1, Padding::Same) => x.conv1d_padding(w, b, &o.stride, "same", &o.dilation, o.groups),
            (2, Padding::Same) => x.conv2d_padding(w, b, &o.stride, "same", &o.dilation, o.groups),
            (3, Padding::Same) => x.conv3d_padding(w, b, &o.stride, "same", &o.dilation, o.groups),
            _ => Err(dimensions(N)),
        }
    }
}

/// The error of a convolution of another number of dimensions.
pub(super) fn dimensions(n: usize) -> Error {
    Error::not_implemented(format!("images have one to three dimensions here, not {n}"))
}

/// Options of [`ConvTranspose`].
#[derive(Clone, Debug)]
pub struct ConvTransposeOptions<const N: usize> {
    /// The stride of the kernel.
    pub stride: [i64; N],
    /// The number of elements that are cut off at each side.
    pub padding: [i64; N],
    /// The number of elements that are added at the end of each dimension.
    pub output_padding: [i64; N],
    /// The distance between the elements of the kernel.
    pub dilation: [i64; N],
    /// The number of groups that the channels are divided into.
    pub groups: i64,
    /// Whether there is a bias.
    pub bias: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl<const N: usize> Default for ConvTransposeOptions<N> {
    fn default() -> Self {
        ConvTransposeOptions {
            stride: [1; N],
            padding: [0; N],
            output_padding: [0; N],
            dilation: [1; N],
            groups: 1,
            bias: true,
            tensors: TensorOptions::new(),
        }
    }
}

/// The transpose of [`Conv`]: images become larger. Weight `(in_channels, out_channels / groups, kernel..)`.
#[derive(Clone, Debug, Module)]
pub struct ConvTranspose<const N: usize> {
    /// The kernels.
    pub weight: Tensor,
    /// The bias of each output channel.
    pub bias: Option<Tensor>,
    #[module(skip)]
    options: ConvTransposeOptions<N>,
}

/// [`ConvTranspose`] of sequences.
pub type ConvTranspose1d = ConvTranspose<1>;
/// [`ConvTranspose`] of images.
pub type ConvTranspose2d = ConvTranspose<2>;
/// [`ConvTranspose`] of volumes.
pub type ConvTranspose3d = ConvTranspose<3>;

impl<const N: usize> ConvTranspose<N> {
    /// A layer with the default options.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(in_channels: i64, out_channels: i64, kernel: [i64; N]) -> Result<Self> {
        ConvTranspose::with(in_channels, out_channels, kernel, ConvTransposeOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` for groups that do not divide the channels, `RuntimeError` for negative sizes; out of memory.
    pub fn with(
        in_channels: i64,
        out_channels: i64,
        kernel: [i64; N],
        options: ConvTransposeOptions<N>,
    ) -> Result<Self> {
        check_groups([in_channels, out_channels], options.groups)?;
        let t = options.tensors.clone().requires_grad(true);
        let sizes = [&[in_channels, out_channels / options.groups][..], &kernel[..]].concat();
        let weight = t.empty(&sizes)?;
        let bias = options.bias.then(|| t.empty([out_channels])).transpose()?;
        init::reset(&weight, bias.as_ref(), t.drawn_from())?;
        Ok(ConvTranspose { weight, bias, options })
    }
}

impl<const N: usize> Forward for ConvTranspose<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (w, b, o) = (&self.weight, self.bias.as_ref(), &self.options);
        let run = match N {
            1 => Tensor::conv_transpose1d,
            2 => Tensor::conv_transpose2d,
            3 => Tensor::conv_transpose3d,
            _ => return Err(dimensions(N)),
        };
        run(x, w, b, &o.stride, &o.padding, &o.output_padding, o.groups, &o.dilation)
    }
}
