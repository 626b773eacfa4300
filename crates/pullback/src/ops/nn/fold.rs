//! Sliding blocks of images as columns (`im2col`), their sum as an image (`col2im`), and channels shuffled between
//! groups.
//!
//! `im2col` and `col2im` are linear and each other's gradient. Both iterate over the elements of a block: the positions
//! of one such element in all blocks are a strided view of the image, so that it is copied, or added, for all blocks at
//! once.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec, channels_last_strides};
use crate::{DType, Dims, ErrorKind, MemoryFormat, Result, Tensor};
use pullback_kernels::memory;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&IM2COL, &COL2IM, &CHANNEL_SHUFFLE, &CONV_TBC];

/// Size, dilation, padding and stride of blocks along height and width.
struct FoldBlocks {
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
}

impl FoldBlocks {
    fn new(
        kernel: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<FoldBlocks> {
        let two = |name: &str, values: &[i64]| match *values {
            [height, width] => Ok([height, width]),
            _ => Err(crate::Error::runtime(format!(
                "It is expected {name} equals to 2, but got size {}",
                values.len()
            ))),
        };
        let blocks = FoldBlocks {
            kernel: two("kernel_size", kernel)?,
            dilation: two("dilation", dilation)?,
            padding: two("padding", padding)?,
            stride: two("stride", stride)?,
        };
        let at_least = |what: &str, name: &str, [h, w]: [i64; 2], least: i64| {
            let word = if least == 0 { "non-negative" } else { "greater than zero" };
            ensure!(
                h >= least && w >= least,
                runtime,
                "{what} should be {word}, but got {name}_height: {h} {name}_width: {w}"
            );
            Ok(())
        };
        at_least("kernel size", "kernel", blocks.kernel, 1)?;
        at_least("dilation", "dilation", blocks.dilation, 1)?;
        at_least("padding", "pad", blocks.padding, 0)?;
        at_least("stride", "stride", blocks.stride, 1)?;
        // Positions of elements are sums of a few products of these, which must not overflow.
        let all = [blocks.kernel, blocks.dilation, blocks.padding, blocks.stride].concat();
        let is_small = all.iter().all(|&value| value <= i64::from(i32::MAX));
        ensure!(is_small, runtime, "integer out of range: {}", list(&all));
        Ok(blocks)
    }

    /// The number of blocks along `dim` (0: height) of an image, by the formula, which may give less than one.
    fn count(&self, dim: usize, size: i64) -> i64 {
        let wide = |value: i64| i128::from(value);
        let reach = wide(self.dilation[dim]) * wide(self.kernel[dim] - 1);
        let room = wide(size) + 2 * wide(self.padding[dim]) - reach - 1;
        let count = room.div_euclid(wide(self.stride[dim])) + 1;
        count.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The number of elements of a block.
    fn elements(&self) -> i64 {
        self.kernel[0].saturating_mul(self.kernel[1])
    }

    /// The blocks along `dim` in which element `k` is inside of an image of `size`: the first block, their number, and
    /// the position of the element in the image for the first one.
    fn inside(&self, dim: usize, k: i64, size: i64, count: i64) -> (i64, i64, i64) {
        let (step, offset) = (self.stride[dim], self.padding[dim] - k * self.dilation[dim]);
        // Its position is `block * step - offset`.
        let first = if offset > 0 { (offset + step - 1) / step } else { 0 }.min(count);
        let end = if size + offset > 0 { (size + offset - 1) / step + 1 } else { 0 }.min(count);
        (first, (end - first).max(0), first * step - offset)
    }

    /// For each element of a block: its positions in columns (N, C, kh, kw, block rows, block columns) and in images
    /// (N, C, H, W), as views of the same shape.
    fn views(&self, columns: &Tensor, images: &Tensor) -> Result<Vec<(Tensor, Tensor)>> {
        let mut views = Vec::new();
        let sizes = &images.shape()[2..];
        let counts = &columns.shape()[4..];
        for kh in 0..self.kernel[0] {
            let (top, high, y) = self.inside(0, kh, sizes[0], counts[0]);
            for kw in 0..self.kernel[1] {
                let (left, wide, x) = self.inside(1, kw, sizes[1], counts[1]);
                if high == 0 || wide == 0 {
                    continue;
                }
                let column = columns.select(2, kh)?.select(2, kw)?;
                let column = column.narrow(2, top, high)?.narrow(3, left, wide)?;
                let every = |t: &Tensor, dim: usize, from: i64, count: i64| {
                    let end = from + (count - 1) * self.stride[dim] + 1;
                    t.slice(dim as i64 + 2, Some(from), Some(end), self.stride[dim])
                };
                let image = every(&every(images, 0, y, high)?, 1, x, wide)?;
                memory::push(&mut views, (column, image))?;
            }
        }
        Ok(views)
    }
}

fn check_dtype(name: &str, x: &Tensor) -> Result<()> {
    let dtype = x.dtype();
    ensure!(
        dtype.is_floating_point() || dtype.is_complex() || dtype == DType::Bool,
        not_implemented,
        "\"{name}\" not implemented for '{}'",
        dtype.scalar_name()
    );
    Ok(())
}

/// A pair as Python shows it.
fn pair([a, b]: [i64; 2]) -> String {
    format!("({a}, {b})")
}

/// The sliding blocks of images (N, C, H, W) or (C, H, W) as columns (N, C kh kw, L) or (C kh kw, L): column `l` holds
/// block `l`, channel by channel. Elements of blocks outside of the image are 0. This is `torch.nn.functional.unfold`.
#[op("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor", module = "nn", exact_out,
     jvp = linear, node = "Im2Col", method = im2col, batch = image2)]
impl Im2col {
    fn meta(
        self_: &Tensor,
        kernel_size: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<TensorSpec> {
        let blocks = FoldBlocks::new(kernel_size, dilation, padding, stride)?;
        let batch = self_.ndim().wrapping_sub(3);
        ensure!(
            batch <= 1 && !self_.shape()[batch..].contains(&0),
            runtime,
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
            list(self_.shape())
        );
        let (outer, image) = self_.shape().split_at(batch);
        let counts = [blocks.count(0, image[1]), blocks.count(1, image[2])];
        ensure!(
            counts.iter().all(|&n| n >= 1),
            runtime,
            "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of sliding blocks as {}, but its components must be at least one.",
            pair([image[1], image[2]]),
            pair(blocks.kernel),
            pair(blocks.dilation),
            pair(blocks.padding),
            pair(counts)
        );
        check_dtype("im2col_out_cpu", self_)?;
        let mut shape = Dims::from_slice(outer);
        shape.push(image[0].saturating_mul(blocks.elements()));
        shape.push(counts[0].saturating_mul(counts[1]));
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        kernel_size: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<()> {
        let blocks = FoldBlocks::new(kernel_size, dilation, padding, stride)?;
        if result.numel() == 0 {
            return Ok(());
        }
        let images = if self_.ndim() == 3 { self_.unsqueeze(0)? } else { self_.clone() };
        let columns = opened(result, &blocks, images.shape())?;
        let views = blocks.views(&columns, &images)?;
        result.zero_bytes();
        views.iter().try_for_each(|(column, image)| column.copy_data(cpu, image))
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        kernel_size: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<Tensor> {
        let size = &self_shape[self_shape.len() - 2..];
        grad.col2im(size, kernel_size, dilation, padding, stride)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |x: &[i64]| Sample::of(s.normal(x));
        vec![
            with(call(&[2, 3, 4, 5]), [2, 3], [1, 1], [0, 0], [1, 1]),
            with(call(&[2, 4, 5]), [2, 2], [2, 1], [1, 2], [3, 2]),
            with(call(&[1, 1, 1, 1]), [3, 1], [1, 1], [2, 0], [1, 1]),
            with(call(&[0, 2, 3, 3]), [2, 2], [1, 1], [0, 0], [1, 1]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |x: &[i64]| Sample::of(s.normal(x));
        let image = || call(&[2, 3, 4, 5]);
        let mut all = refused(&image);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let plain = |sample| with(sample, [2, 2], [1, 1], [0, 0], [1, 1]);
        all.push(bad(plain(call(&[2, 0, 4, 5])), "possibly 0 batch size and other non-zero"));
        all.push(bad(plain(call(&[4, 5])), "Expected 3D or 4D (batch mode) tensor"));
        let far = with(image(), [7, 2], [1, 1], [0, 0], [1, 1]);
        all.push(bad(far, "calculated shape of the array of sliding blocks as (-2, 4)"));
        let endless = with(image(), [i64::MAX, 2], [i64::MAX, 1], [0, 0], [1, 1]);
        all.push(bad(endless, "integer out of range"));
        all
    }
}

/// Columns (N, C kh kw, L) viewed as (N, C, kh, kw, block rows, block columns), for images of a shape.
fn opened(columns: &Tensor, blocks: &FoldBlocks, images: &[i64]) -> Result<Tensor> {
    let [kh, kw] = blocks.kernel;
    let counts = [blocks.count(0, images[2]), blocks.count(1, images[3])];
    let batched = if columns.ndim() == 2 { columns.unsqueeze(0)? } else { columns.clone() };
    batched.unflatten(2, &counts)?.unflatten(1, &[images[1], kh, kw])
}

fn with(
    sample: Sample,
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
) -> Sample {
    let sample = sample.with("kernel_size", kernel).with("dilation", dilation);
    sample.with("padding", padding).with("stride", stride)
}

/// Calls with settings that are invalid for any image.
fn refused(call: &dyn Fn() -> Sample) -> Vec<InvalidSample> {
    let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
    let one = call().with("kernel_size", [2]).with("dilation", [1, 1]);
    let one = one.with("padding", [0, 0]).with("stride", [1, 1]);
    let plain = |kernel, dilation, padding, stride| with(call(), kernel, dilation, padding, stride);
    vec![
        bad(one, "It is expected kernel_size equals to 2, but got size 1"),
        bad(plain([0, 2], [1, 1], [0, 0], [1, 1]), "kernel size should be greater than zero"),
        bad(plain([2, 2], [0, 1], [0, 0], [1, 1]), "dilation should be greater than zero"),
        bad(plain([2, 2], [1, 1], [-1, 0], [1, 1]), "padding should be non-negative"),
        bad(plain([2, 2], [1, 1], [0, 0], [1, 0]), "stride should be greater than zero"),
    ]
}

/// The sum of sliding blocks, columns (N, C kh kw, L) or (C kh kw, L), at their positions in images (N, C,
/// *output_size). It is the gradient of `im2col`, and its inverse only where blocks do not overlap. This is
/// `torch.nn.functional.fold`.
#[op("col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
     module = "nn", exact_out, jvp = linear, node = "Col2Im", method = col2im, batch = image1)]
impl Col2im {
    fn meta(
        self_: &Tensor,
        output_size: &[i64],
        kernel_size: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<TensorSpec> {
        ensure!(
            output_size.len() == 2,
            runtime,
            "It is expected output_size equals to 2, but got size {}",
            output_size.len()
        );
        let blocks = FoldBlocks::new(kernel_size, dilation, padding, stride)?;
        let batch = self_.ndim().wrapping_sub(2);
        ensure!(
            batch <= 1 && !self_.shape()[batch..].contains(&0),
            runtime,
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}",
            list(self_.shape())
        );
        let (outer, columns) = self_.shape().split_at(batch);
        let elements = blocks.elements();
        ensure!(
            columns[0] % elements == 0,
            runtime,
            "Expected size of input's dimension {batch} to be divisible by the product of kernel_size, but got input.size({batch})={} and kernel_size={}.",
            columns[0],
            pair(blocks.kernel)
        );
        let counts = [blocks.count(0, output_size[0]), blocks.count(1, output_size[1])];
        let given = || {
            format!(
                "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}",
                pair([output_size[0], output_size[1]]),
                pair(blocks.kernel),
                pair(blocks.dilation),
                pair(blocks.padding),
                pair(blocks.stride)
            )
        };
        ensure!(
            counts[0].checked_mul(counts[1]) == Some(columns[1]),
            runtime,
            "{}, expected size of input's dimension {} to match the calculated number of sliding blocks {} * {} = {}, but got input.size({})={}.",
            given(),
            batch + 1,
            counts[0],
            counts[1],
            counts[0].saturating_mul(counts[1]),
            batch + 1,
            columns[1]
        );
        ensure!(
            counts.iter().all(|&n| n >= 1) && output_size.iter().all(|&n| n >= 1),
            runtime,
            "{}, calculated shape of the array of sliding blocks as {}, but its components must be at least one.",
            given(),
            pair(counts)
        );
        check_dtype("col2im_out_cpu", self_)?;
        let mut shape = Dims::from_slice(outer);
        shape.push(columns[0] / elements);
        shape.extend_from_slice(output_size);
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(
        result: &Tensor,
        self_: &Tensor,
        kernel_size: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<()> {
        let blocks = FoldBlocks::new(kernel_size, dilation, padding, stride)?;
        if result.numel() == 0 {
            return Ok(());
        }
        let images = if result.ndim() == 3 { result.unsqueeze(0)? } else { result.clone() };
        let columns = opened(self_, &blocks, images.shape())?;
        let views = blocks.views(&columns, &images)?;
        result.zero_bytes();
        views.iter().try_for_each(|(column, image)| image.add_(column).map(drop))
    }
    fn vjp_self(
        grad: &Tensor,
        kernel_size: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<Tensor> {
        grad.im2col(kernel_size, dilation, padding, stride)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |x: &[i64], size: [i64; 2]| Sample::of(s.normal(x)).with("output_size", size);
        vec![
            with(call(&[2, 12, 9], [4, 5]), [2, 3], [1, 1], [0, 0], [1, 1]),
            with(call(&[8, 8], [4, 5]), [2, 2], [2, 1], [1, 2], [3, 2]),
            with(call(&[0, 4, 4], [3, 3]), [2, 2], [1, 1], [0, 0], [1, 1]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |x: &[i64], size: &[i64]| Sample::of(s.normal(x)).with("output_size", size);
        let mut all = refused(&|| call(&[2, 12, 12], &[4, 5]));
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let plain = |sample| with(sample, [2, 2], [1, 1], [0, 0], [1, 1]);
        all.push(bad(
            plain(call(&[12], &[4, 5])),
            "Expected 2D or 3D (batch mode) tensor for input",
        ));
        all.push(bad(
            plain(call(&[2, 11, 12], &[4, 5])),
            "to be divisible by the product of kernel_size",
        ));
        all.push(bad(
            plain(call(&[2, 12, 11], &[4, 5])),
            "sliding blocks 3 * 4 = 12, but got input.size(2)=11",
        ));
        all.push(bad(plain(call(&[2, 12, 4], &[-1, -1])), "its components must be at least one"));
        all.push(bad(
            plain(call(&[2, 12, 12], &[4])),
            "It is expected output_size equals to 2, but got size 1",
        ));
        all
    }
}

/// The channels of (N, C, *) in a new order: those of the `groups` groups interleaved, one of each group in turn.
/// `groups` divides C.
#[op("channel_shuffle(Tensor self, SymInt groups) -> Tensor", alias("native_channel_shuffle"), function_only, jvp = linear,
     method = channel_shuffle, batch = folded)]
impl ChannelShuffle {
    fn meta(self_: &Tensor, groups: i64) -> Result<TensorSpec> {
        ensure!(
            self_.ndim() > 2,
            runtime,
            "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
            list(self_.shape())
        );
        ensure!(
            groups > 0,
            runtime,
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        );
        let channels = self_.shape()[1];
        ensure!(
            channels % groups == 0,
            runtime,
            "Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        );
        let mut spec = TensorSpec::like(self_);
        if self_.is_channels_last() {
            spec.strides = channels_last_strides(self_.shape());
        }
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, groups: i64) -> Result<()> {
        if result.numel() == 0 {
            return Ok(());
        }
        let each = self_.shape()[1] / groups;
        let transposed = self_.unflatten(1, &[groups, each])?.transpose(1, 2)?;
        result.unflatten(1, &[each, groups])?.copy_data(cpu, &transposed)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], groups: i64) -> Result<Tensor> {
        grad.channel_shuffle((self_shape[1] / groups).max(1))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |x: &[i64], groups: i64| Sample::of(s.normal(x)).with("groups", groups);
        vec![call(&[2, 6, 2], 2), call(&[1, 6, 2, 2], 3), call(&[1, 2, 1], 1), call(&[2, 0, 3], 2)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |x: &[i64], groups: i64, phrase| {
            let sample = Sample::of(s.normal(x)).with("groups", groups);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[2, 4], 2, "expects input with > 2 dims, but got input with sizes [2, 4]"),
            bad(&[2, 4, 3], 0, "must be positive. Value of groups:0"),
            bad(&[2, 4, 3], -1, "must be positive. Value of groups:-1"),
            bad(&[2, 4, 3], 3, "Got 4 channels and 3 groups"),
        ]
    }
}

/// The one-dimensional convolution (cross-correlation) of (T, N, C) with `weight` (k, C, O), plus `bias` (O), with
/// `pad` zeros at both ends: (T + 2 pad - k + 1, N, O).
#[op("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", function_only, method = conv_tbc, autocast = lower)]
impl ConvTbc {
    fn composite(self_: &Tensor, weight: &Tensor, bias: &Tensor, pad: i64) -> Result<Tensor> {
        ensure!(self_.ndim() == 3, runtime, "Input must have 3 dims: time, batch, in_channel");
        ensure!(
            weight.ndim() == 3,
            runtime,
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        );
        ensure!(bias.ndim() == 1, runtime, "Bias must be 1-D");
        let ([time, batch, channels], [width, ins, outs]) = (
            [self_.shape()[0], self_.shape()[1], self_.shape()[2]],
            [weight.shape()[0], weight.shape()[1], weight.shape()[2]],
        );
        ensure!(
            channels == ins,
            runtime,
            "Input dim 2 (input channels) is not == dim 1 in the weight tensor: {channels} and {ins}"
        );
        ensure!(
            bias.shape()[0] == outs,
            runtime,
            "Bias size must equal dim 2 in the weight tensor (output channels): {} and {outs}",
            bias.shape()[0]
        );
        let length = time.saturating_add(pad.saturating_mul(2)).saturating_sub(width - 1);
        ensure!(
            length >= 0,
            runtime,
            "Trying to create tensor with negative dimension {length}: [{length}, {batch}, {outs}]"
        );
        let mut input = self_.permute(&[1, 2, 0])?;
        if pad != 0 {
            input = input.constant_pad_nd(&[pad, pad], crate::Scalar::Int(0))?;
        }
        let weight = weight.permute(&[2, 1, 0])?;
        let out = input.convolution(&weight, Some(bias), &[1], &[0], &[1], false, &[0], 1)?;
        out.permute(&[2, 0, 1])?.clone_tensor(Some(MemoryFormat::Contiguous))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |x: &[i64], w: &[i64], pad: i64| {
            let outs = w[2];
            let start = [s.normal(x).into(), s.normal(w).into(), s.normal(&[outs]).into()];
            Sample::new(start).with("pad", pad)
        };
        vec![
            call(&[5, 2, 3], &[2, 3, 2], 1),
            call(&[3, 1, 2], &[3, 2, 1], 0),
            call(&[4, 1, 1], &[1, 1, 2], -1),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |x: &[i64], w: &[i64], b: &[i64], pad: i64, phrase| {
            let start = [s.normal(x).into(), s.normal(w).into(), s.normal(b).into()];
            let sample = Sample::new(start).with("pad", pad);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[5, 2], &[2, 3, 4], &[4], 0, "Input must have 3 dims: time, batch, in_channel"),
            bad(&[5, 2, 3], &[2, 3], &[4], 0, "Weight tensor must have 3 dims"),
            bad(&[5, 2, 3], &[2, 3, 4], &[4, 1], 0, "Bias must be 1-D"),
            bad(&[5, 2, 3], &[2, 2, 4], &[4], 0, "Input dim 2 (input channels) is not == dim 1"),
            bad(&[5, 2, 3], &[2, 3, 4], &[3], 0, "Bias size must equal dim 2 in the weight tensor"),
            bad(
                &[1, 2, 3],
                &[4, 3, 4],
                &[4],
                0,
                "Trying to create tensor with negative dimension -2",
            ),
            bad(
                &[1, 2, 3],
                &[4, 3, 4],
                &[4],
                i64::MIN,
                "Trying to create tensor with negative dimension",
            ),
        ]
    }
}
