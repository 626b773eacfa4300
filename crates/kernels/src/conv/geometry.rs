//! The shapes of a convolution: checking them, and their form with three spatial dimensions.

use crate::{Error, Result};
use smallvec::SmallVec;

/// One number per spatial dimension.
pub type PerDim = SmallVec<[usize; 3]>;

/// How a convolution moves over its input. The lists have one entry per spatial dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// Steps between neighbouring outputs.
    pub stride: PerDim,
    /// Zeros added on both sides.
    pub padding: PerDim,
    /// Steps between neighbouring kernel elements.
    pub dilation: PerDim,
    /// Whether the convolution is transposed (a "deconvolution").
    pub transposed: bool,
    /// Extra size on one side of a transposed convolution's output.
    pub output_padding: PerDim,
    /// Groups of channels that do not see each other.
    pub groups: usize,
}

impl ConvOptions {
    /// Stride 1, no padding, no dilation, one group.
    pub fn plain(spatial: usize) -> ConvOptions {
        let all = |value| SmallVec::from_elem(value, spatial);
        ConvOptions {
            stride: all(1),
            padding: all(0),
            dilation: all(1),
            transposed: false,
            output_padding: all(0),
            groups: 1,
        }
    }
}

/// The shape of a convolution's output for input (N, C, *) and its weight.
///
/// # Errors
/// Wrong numbers of dimensions, channels that do not fit, a kernel larger than the padded input, a
/// stride or dilation of zero.
pub fn output_shape(x: &[i64], weight: &[i64], conv: &ConvOptions) -> Result<SmallVec<[i64; 5]>> {
    let spatial = conv.stride.len();
    check(x, weight, conv, spatial)?;
    let groups = conv.groups as i64;
    let channels = if conv.transposed { weight[1] * groups } else { weight[0] };
    let mut shape: SmallVec<[i64; 5]> = SmallVec::from_slice(&[x[0], channels]);
    for d in 0..spatial {
        let (stride, padding) = (conv.stride[d] as i64, conv.padding[d] as i64);
        // (What is too large for a tensor may be anything too large.)
        let reach = (conv.dilation[d] as i64).saturating_mul(weight[d + 2] - 1).min(TOO_LARGE);
        let size = if conv.transposed {
            (x[d + 2] - 1).saturating_mul(stride).min(TOO_LARGE) - 2 * padding
                + reach
                + conv.output_padding[d] as i64
                + 1
        } else {
            let room = x[d + 2] + 2 * padding - reach - 1;
            if room < 0 { -1 } else { room / stride + 1 }
        };
        if size < 0 || (!conv.transposed && size == 0) {
            let padded: Vec<String> =
                (0..spatial).map(|d| (x[d + 2] + 2 * conv.padding[d] as i64).to_string()).collect();
            let kernel: Vec<String> = (0..spatial)
                .map(|d| {
                    let last = (conv.dilation[d] as i64).saturating_mul(weight[d + 2] - 1);
                    last.saturating_add(1).to_string()
                })
                .collect();
            return Err(Error::runtime(format!(
                "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size",
                padded.join(" x "),
                kernel.join(" x ")
            )));
        }
        shape.push(size);
    }
    Ok(shape)
}

/// A bound above the number of elements of every tensor; a few times this number fits an `i64`.
const TOO_LARGE: i64 = 1 << 60;
/// The largest stride, padding or dilation: beyond all sizes that memory holds, and its square fits an `i64`.
const FURTHEST: usize = 1 << 31;

fn check(x: &[i64], weight: &[i64], conv: &ConvOptions, spatial: usize) -> Result<()> {
    let fail = |message: String| Err(Error::runtime(message));
    if !(1..=3).contains(&spatial) {
        return fail(format!("convolution has 1 to 3 spatial dimensions, got {spatial}"));
    }
    if weight.len() != spatial + 2 || x.len() != weight.len() {
        return fail(format!(
            "Expected {0}-dimensional input for {0}-dimensional weight {weight:?}, but got {1}-dimensional input of size {x:?} instead",
            weight.len(),
            x.len()
        ));
    }
    let lists = [&conv.padding, &conv.dilation, &conv.output_padding];
    if lists.iter().any(|l| l.len() != spatial) {
        return fail(format!("expected {spatial} values per convolution parameter"));
    }
    let steps = [&conv.stride, &conv.padding, &conv.dilation, &conv.output_padding];
    if let Some(far) = steps.iter().flat_map(|list| list.iter()).find(|&&n| n > FURTHEST) {
        return fail(format!(
            "strides, paddings and dilations of a convolution can be at most {FURTHEST}, but got {far}"
        ));
    }
    if conv.stride.contains(&0) {
        return fail("non-positive stride is not supported".to_owned());
    }
    if conv.dilation.contains(&0) {
        return fail("dilation should be greater than zero".to_owned());
    }
    if weight[2..].contains(&0) {
        return fail(format!(
            "kernel size should be greater than zero, but got weight of size {weight:?}"
        ));
    }
    if conv.transposed
        && (0..spatial).any(|d| conv.output_padding[d] >= conv.stride[d].max(conv.dilation[d]))
    {
        return fail(format!(
            "output padding must be smaller than either stride or dilation, but got output_padding: {:?} stride: {:?} dilation: {:?}",
            conv.output_padding, conv.stride, conv.dilation
        ));
    }
    check_channels(x, weight, conv)
}

/// Refuses groups and channels of input and weight that do not fit each other.
fn check_channels(x: &[i64], weight: &[i64], conv: &ConvOptions) -> Result<()> {
    let fail = |message: String| Err(Error::runtime(message));
    let groups = conv.groups as i64;
    if groups <= 0 {
        return fail(format!("expected groups to be greater than 0, but got groups={groups}"));
    }
    if weight[0] < groups {
        return fail(format!(
            "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {weight:?} instead"
        ));
    }
    if weight[0] % groups != 0 {
        return fail(format!(
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {weight:?} instead"
        ));
    }
    let expected = if conv.transposed { weight[0] } else { weight[1] * groups };
    if x[1] != expected {
        return fail(format!(
            "Given {}groups={groups}, weight of size {weight:?}, expected input{x:?} to have {expected} channels, but got {} channels instead",
            if conv.transposed { "transposed=1, " } else { "" },
            x[1]
        ));
    }
    Ok(())
}

/// The plain (never transposed) convolution behind a call, with three spatial dimensions.
#[derive(Clone, Debug)]
pub(crate) struct ConvGeometry {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// Channels per group of the plain convolution's input and output.
    pub(crate) in_channels: usize,
    pub(crate) out_channels: usize,
    pub(crate) input: [usize; 3],
    pub(crate) output: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) stride: [usize; 3],
    pub(crate) padding: [usize; 3],
    pub(crate) dilation: [usize; 3],
}

impl ConvGeometry {
    /// From checked shapes: the call's input, weight and output.
    pub(crate) fn new(x: &[i64], weight: &[i64], out: &[i64], conv: &ConvOptions) -> ConvGeometry {
        let (input, output) = if conv.transposed { (out, x) } else { (x, out) };
        let three = |values: &mut dyn Iterator<Item = usize>, fill: usize| {
            let values: PerDim = values.collect();
            let mut all = [fill; 3];
            all[3 - values.len()..].copy_from_slice(&values);
            all
        };
        let sizes = |shape: &[i64]| three(&mut shape[2..].iter().map(|&s| s as usize), 1);
        let list = |list: &PerDim, fill| three(&mut list.iter().copied(), fill);
        ConvGeometry {
            batch: x[0] as usize,
            groups: conv.groups,
            in_channels: weight[1] as usize,
            out_channels: weight[0] as usize / conv.groups,
            input: sizes(input),
            output: sizes(output),
            kernel: sizes(weight),
            stride: list(&conv.stride, 1),
            padding: list(&conv.padding, 0),
            dilation: list(&conv.dilation, 1),
        }
    }
    /// Positions of one channel of the input.
    pub(crate) fn input_size(&self) -> usize {
        self.input.iter().product()
    }
    /// Positions of one channel of the output.
    pub(crate) fn output_size(&self) -> usize {
        self.output.iter().product()
    }
    /// Kernel elements per pair of channels.
    pub(crate) fn kernel_size(&self) -> usize {
        self.kernel.iter().product()
    }
    /// Whether each group has one input and one output channel.
    pub(crate) fn is_depthwise(&self) -> bool {
        self.in_channels == 1 && self.out_channels == 1 && self.groups > 1
    }
    /// Whether the gathered matrix would be the input itself.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3]
    }
    /// The outputs `range` along `dim` whose input for kernel element `k` is inside, and the (possibly
    /// out of range) input position of output 0.
    pub(crate) fn inside(&self, dim: usize, k: usize) -> (std::ops::Range<usize>, isize) {
        let first = (k * self.dilation[dim]) as isize - self.padding[dim] as isize;
        let stride = self.stride[dim] as isize;
        let start = if first >= 0 { 0 } else { (-first + stride - 1) / stride };
        let end = (self.input[dim] as isize - first + stride - 1).div_euclid(stride);
        let start = (start as usize).min(self.output[dim]);
        let end = (end.max(0) as usize).clamp(start, self.output[dim]);
        (start..end, first)
    }
}
