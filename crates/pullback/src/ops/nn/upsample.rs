//! Images of one to three dimensions resized to any size: nearest, linear and cubic interpolation, and cubic and
//! Lanczos filters.
//!
//! Each op has a gradient op that depends on the sizes alone; the two are linear and each other's gradient. Images in
//! channels-last format stay so. Antialiased bilinear resizing is in `antialias`, sampling at the positions of a grid
//! in `grid`.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec, channels_last_strides};
use crate::{DType, Dims, ErrorKind, MemoryFormat, Result, Tensor};
use pullback_kernels::upsample::{self as kernel, UpsampleMode, UpsampleOptions};
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &UPSAMPLE_NEAREST1D,
    &UPSAMPLE_NEAREST1D_BACKWARD,
    &UPSAMPLE_NEAREST1D_VEC,
    &UPSAMPLE_NEAREST2D,
    &UPSAMPLE_NEAREST2D_BACKWARD,
    &UPSAMPLE_NEAREST2D_VEC,
    &UPSAMPLE_NEAREST3D,
    &UPSAMPLE_NEAREST3D_BACKWARD,
    &UPSAMPLE_NEAREST3D_VEC,
    &UPSAMPLE_NEAREST_EXACT1D,
    &UPSAMPLE_NEAREST_EXACT1D_BACKWARD,
    &UPSAMPLE_NEAREST_EXACT1D_VEC,
    &UPSAMPLE_NEAREST_EXACT2D,
    &UPSAMPLE_NEAREST_EXACT2D_BACKWARD,
    &UPSAMPLE_NEAREST_EXACT2D_VEC,
    &UPSAMPLE_NEAREST_EXACT3D,
    &UPSAMPLE_NEAREST_EXACT3D_BACKWARD,
    &UPSAMPLE_NEAREST_EXACT3D_VEC,
    &UPSAMPLE_LINEAR1D,
    &UPSAMPLE_LINEAR1D_BACKWARD,
    &UPSAMPLE_LINEAR1D_VEC,
    &UPSAMPLE_BILINEAR2D,
    &UPSAMPLE_BILINEAR2D_BACKWARD,
    &UPSAMPLE_BILINEAR2D_VEC,
    &UPSAMPLE_TRILINEAR3D,
    &UPSAMPLE_TRILINEAR3D_BACKWARD,
    &UPSAMPLE_TRILINEAR3D_VEC,
    &UPSAMPLE_BICUBIC2D,
    &UPSAMPLE_BICUBIC2D_BACKWARD,
    &UPSAMPLE_BICUBIC2D_VEC,
    &UPSAMPLE_BICUBIC2D_AA,
    &UPSAMPLE_BICUBIC2D_AA_BACKWARD,
    &UPSAMPLE_BICUBIC2D_AA_VEC,
    &UPSAMPLE_LANCZOS2D_AA,
    &UPSAMPLE_LANCZOS2D_AA_BACKWARD,
    &UPSAMPLE_LANCZOS2D_AA_VEC,
];

/// Declares the three ops of one kind of resizing: by sizes, its gradient, and by sizes or scale factors.
///
/// `Op("schema", method, "Node"), Backward("schema", method), Vec("schema", method) => Mode, batching rule,
/// [align_corners], [factors]`.
macro_rules! resizing {
    ($($(#[doc = $doc:tt])*
        $op:ident($schema:tt, $method:ident, $node:tt),
        $backward:ident($backward_schema:tt, $backward_method:ident),
        $vec:ident($vec_schema:tt, $vec_method:ident)
        => $mode:ident, $batch:ident, [$($align:ident)?], [$($factor:ident),+];)+) => {$(
        $(#[doc = $doc])*
        #[op($schema, exact_out, module = "nn", function_only, jvp = linear, node = $node, method = $method, batch = $batch)]
        impl $op {
            fn meta(self_: &Tensor, output_size: &[i64]) -> Result<TensorSpec> {
                resized_spec(self_, output_size, UpsampleMode::$mode, [$(stringify!($factor)),+].len())
            }
            fn cpu(
                cpu: Cpu,
                result: &Tensor,
                self_: &Tensor,
                $($align: bool,)?
                $($factor: Option<f64>,)+
            ) -> Result<()> {
                let align = [$($align,)?].contains(&true);
                resize(cpu, result, self_, &options(UpsampleMode::$mode, align, &[$($factor),+]))
            }
            fn vjp_self(
                grad: &Tensor,
                self_shape: &[i64],
                output_size: &[i64],
                $($align: bool,)?
                $($factor: Option<f64>,)+
            ) -> Result<Tensor> {
                grad.$backward_method(output_size, self_shape, $($align,)? $($factor),+)
            }
            fn samples(s: &Sampler) -> Vec<Sample> {
                samples(s, &[$(stringify!($align))?], &[$(stringify!($factor)),+])
            }
            fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
                invalid_samples(s, &[$(stringify!($align))?], [$(stringify!($factor)),+].len())
            }
        }

        /// The gradient of resizing with respect to images of `input_size`.
        #[op($backward_schema, internal, jvp = linear, method = $backward_method, batch = $batch)]
        impl $backward {
            fn meta(grad_output: &Tensor, output_size: &[i64], input_size: &[i64]) -> Result<TensorSpec> {
                gradient_spec(grad_output, output_size, input_size, UpsampleMode::$mode)
            }
            fn cpu(
                cpu: Cpu,
                result: &Tensor,
                grad_output: &Tensor,
                $($align: bool,)?
                $($factor: Option<f64>,)+
            ) -> Result<()> {
                let align = [$($align,)?].contains(&true);
                resized_transpose(cpu, result, grad_output, &options(UpsampleMode::$mode, align, &[$($factor),+]))
            }
            fn vjp_grad_output(
                grad: &Tensor,
                output_size: &[i64],
                $($align: bool,)?
                $($factor: Option<f64>,)+
            ) -> Result<Tensor> {
                grad.$method(output_size, $($align,)? $($factor),+)
            }
            fn samples(s: &Sampler) -> Vec<Sample> {
                backward_samples(s, &[$(stringify!($align))?], [$(stringify!($factor)),+].len())
            }
            fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
                backward_invalid_samples(s, &[$(stringify!($align))?], [$(stringify!($factor)),+].len())
            }
        }

        /// Resizes images to `output_size`, or to their sizes multiplied by `scale_factors`; exactly one of the two is
        /// given.
        #[op($vec_schema, module = "nn", function_only, method = $vec_method)]
        impl $vec {
            fn composite(
                input: &Tensor,
                output_size: Option<&[i64]>,
                $($align: bool,)?
                scale_factors: Option<&[f64]>,
            ) -> Result<Tensor> {
                const RANK: usize = [$(stringify!($factor)),+].len();
                let (size, [$($factor),+]) = target::<RANK>(input, output_size, scale_factors)?;
                input.$method(&size, $($align,)? $($factor),+)
            }
            fn samples(s: &Sampler) -> Vec<Sample> {
                vec_samples(s, &[$(stringify!($align))?], [$(stringify!($factor)),+].len())
            }
            fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
                vec_invalid_samples(s, &[$(stringify!($align))?], [$(stringify!($factor)),+].len())
            }
        }
    )+};
}

resizing! {
    /// Signals (N, C, L) resized to `output_size` by nearest neighbour: output element `i` is input element
    /// `floor(i scale)`, where `scale` is the input size over the output size, or `1 / scales`.
    UpsampleNearest1d("upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", upsample_nearest1d, "UpsampleNearest1D"),
    UpsampleNearest1dBackward("upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor", upsample_nearest1d_backward),
    UpsampleNearest1dVec("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", upsample_nearest1d_vec)
    => Nearest, batches1, [], [scales];
    /// Images (N, C, H, W) resized to `output_size` by nearest neighbour: output element `i` along a dimension is input
    /// element `floor(i scale)`, where `scale` is the input size over the output size, or one over the given scale.
    UpsampleNearest2d("upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest2d, "UpsampleNearest2D"),
    UpsampleNearest2dBackward("upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest2d_backward),
    UpsampleNearest2dVec("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", upsample_nearest2d_vec)
    => Nearest, batches2, [], [scales_h, scales_w];
    /// Volumes (N, C, D, H, W) resized to `output_size` by nearest neighbour: output element `i` along a dimension is
    /// input element `floor(i scale)`, where `scale` is the input size over the output size, or one over the given
    /// scale.
    UpsampleNearest3d("upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest3d, "UpsampleNearest3D"),
    UpsampleNearest3dBackward("upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest3d_backward),
    UpsampleNearest3dVec("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", upsample_nearest3d_vec)
    => Nearest, batches3, [], [scales_d, scales_h, scales_w];
    /// Signals (N, C, L) resized to `output_size` by nearest neighbour: output element `i` is input element
    /// `floor((i + 0.5) scale)`, in which the centre of the output element lies.
    UpsampleNearestExact1d("_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", upsample_nearest_exact1d, "UpsampleNearestExact1D"),
    UpsampleNearestExact1dBackward("_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor", upsample_nearest_exact1d_backward),
    UpsampleNearestExact1dVec("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", upsample_nearest_exact1d_vec)
    => NearestExact, batches1, [], [scales];
    /// Images (N, C, H, W) resized to `output_size` by nearest neighbour: output element `i` along a dimension is input
    /// element `floor((i + 0.5) scale)`, in which the centre of the output element lies.
    UpsampleNearestExact2d("_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest_exact2d, "UpsampleNearestExact2D"),
    UpsampleNearestExact2dBackward("_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest_exact2d_backward),
    UpsampleNearestExact2dVec("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", upsample_nearest_exact2d_vec)
    => NearestExact, batches2, [], [scales_h, scales_w];
    /// Volumes (N, C, D, H, W) resized to `output_size` by nearest neighbour: output element `i` along a dimension is
    /// input element `floor((i + 0.5) scale)`, in which the centre of the output element lies.
    UpsampleNearestExact3d("_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest_exact3d, "UpsampleNearestExact3D"),
    UpsampleNearestExact3dBackward("_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_nearest_exact3d_backward),
    UpsampleNearestExact3dVec("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", upsample_nearest_exact3d_vec)
    => NearestExact, batches3, [], [scales_d, scales_h, scales_w];
    /// Signals (N, C, L) resized to `output_size` by linear interpolation between the two input elements around the
    /// centre of each output element. With `align_corners` the centres of the outermost elements coincide, else their
    /// outer edges.
    UpsampleLinear1d("upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor", upsample_linear1d, "UpsampleLinear1D"),
    UpsampleLinear1dBackward("upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor", upsample_linear1d_backward),
    UpsampleLinear1dVec("upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", upsample_linear1d_vec)
    => Linear, batches1, [align_corners], [scales];
    /// Images (N, C, H, W) resized to `output_size` by bilinear interpolation between the four input elements around
    /// the centre of each output element. With `align_corners` the centres of the outermost elements coincide, else
    /// their outer edges. uint8 images are resized in integer arithmetic.
    UpsampleBilinear2d("upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_bilinear2d, "UpsampleBilinear2D"),
    UpsampleBilinear2dBackward("upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_bilinear2d_backward),
    UpsampleBilinear2dVec("upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", upsample_bilinear2d_vec)
    => Linear, batches2, [align_corners], [scales_h, scales_w];
    /// Volumes (N, C, D, H, W) resized to `output_size` by trilinear interpolation between the eight input elements
    /// around the centre of each output element. With `align_corners` the centres of the outermost elements coincide,
    /// else their outer edges.
    UpsampleTrilinear3d("upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_trilinear3d, "UpsampleTrilinear3D"),
    UpsampleTrilinear3dBackward("upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_trilinear3d_backward),
    UpsampleTrilinear3dVec("upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", upsample_trilinear3d_vec)
    => Linear, batches3, [align_corners], [scales_d, scales_h, scales_w];
    /// Images (N, C, H, W) resized to `output_size` by bicubic interpolation over the 4 x 4 input elements around the
    /// centre of each output element: cubic convolution (Keys 1981) with the parameter -0.75. uint8 images are resized
    /// in integer arithmetic.
    UpsampleBicubic2d("upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_bicubic2d, "UpsampleBicubic2D"),
    UpsampleBicubic2dBackward("upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_bicubic2d_backward),
    UpsampleBicubic2dVec("upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", upsample_bicubic2d_vec)
    => Cubic, batches2, [align_corners], [scales_h, scales_w];
    /// Images (N, C, H, W) resized to `output_size` by bicubic interpolation with antialiasing: cubic convolution (Keys
    /// 1981) with the parameter -0.5, whose filter grows with the output pixel where the image shrinks.
    UpsampleBicubic2dAa("_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_bicubic2d_aa, "UpsampleBicubic2DAa"),
    UpsampleBicubic2dAaBackward("_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_bicubic2d_aa_backward),
    UpsampleBicubic2dAaVec("_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", upsample_bicubic2d_aa_vec)
    => CubicAntialias, batches2, [align_corners], [scales_h, scales_w];
    /// Images (N, C, H, W) resized to `output_size` by a Lanczos filter of three lobes with antialiasing: the filter
    /// grows with the output pixel where the image shrinks.
    UpsampleLanczos2dAa("_upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_lanczos2d_aa, "UpsampleLanczos2DAa"),
    UpsampleLanczos2dAaBackward("_upsample_lanczos2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", upsample_lanczos2d_aa_backward),
    UpsampleLanczos2dAaVec("_upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", upsample_lanczos2d_aa_vec)
    => LanczosAntialias, batches2, [align_corners], [scales_h, scales_w];
}

fn options(mode: UpsampleMode, align_corners: bool, factors: &[Option<f64>]) -> UpsampleOptions {
    UpsampleOptions { mode, align_corners, factors: SmallVec::from_slice(factors) }
}

/// The sizes with the letters of their dimensions, for errors.
fn lettered(sizes: &[i64]) -> String {
    let letters = &["D", "H", "W"][3 - sizes.len().min(3)..];
    let each = letters.iter().zip(sizes).map(|(letter, size)| format!("{letter}: {size}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Refuses lists of other lengths than `rank` and `rank + 2`, and sizes of 0.
fn check_sizes(output_size: &[i64], input_size: &[i64], rank: usize) -> Result<()> {
    ensure!(
        output_size.len() == rank,
        runtime,
        "It is expected output_size equals to {rank}, but got size {}",
        output_size.len()
    );
    ensure!(
        input_size.len() == rank + 2,
        runtime,
        "It is expected input_size equals to {}, but got size {}",
        rank + 2,
        input_size.len()
    );
    ensure!(
        input_size[2..].iter().chain(output_size).all(|&size| size > 0),
        runtime,
        "Input and output sizes should be greater than 0, but got input ({}) {}output ({})",
        lettered(&input_size[2..]),
        if rank == 1 { "and " } else { "" },
        lettered(output_size)
    );
    Ok(())
}

/// The spec of a tensor of `shape` with the dtype and device of `x`, in channels-last format if `x` is.
fn laid_out_like(x: &Tensor, shape: &[i64]) -> TensorSpec {
    let mut spec = TensorSpec::beside(x, shape);
    if x.is_channels_last() {
        spec.strides = channels_last_strides(shape);
    }
    spec
}

fn resized_spec(
    x: &Tensor,
    output_size: &[i64],
    mode: UpsampleMode,
    rank: usize,
) -> Result<TensorSpec> {
    check_sizes(output_size, x.shape(), rank)?;
    ensure!(
        x.shape()[1] > 0,
        runtime,
        "Non-empty {}D data tensor expected but got a tensor with sizes {}",
        rank + 2,
        list(x.shape())
    );
    kernel::check_upsample(mode, rank, x.dtype())?;
    let mut shape = Dims::from_slice(&x.shape()[..2]);
    shape.extend_from_slice(output_size);
    Ok(laid_out_like(x, &shape))
}

fn gradient_spec(
    grad: &Tensor,
    output_size: &[i64],
    input_size: &[i64],
    mode: UpsampleMode,
) -> Result<TensorSpec> {
    let rank = input_size.len().saturating_sub(2).clamp(1, 3);
    check_sizes(output_size, input_size, rank)?;
    ensure!(
        grad.ndim() == rank + 2,
        runtime,
        "Expected grad_output to be a tensor of dimension {} but got: dimension {}",
        rank + 2,
        grad.ndim()
    );
    for (dim, &size) in input_size[..2].iter().chain(output_size).enumerate() {
        ensure!(
            grad.shape()[dim] == size,
            runtime,
            "Expected grad_output to have the same shape as output; output.size({dim}) = {size} but got grad_output.size({dim}) = {}",
            grad.shape()[dim]
        );
    }
    let is_taken = grad.dtype().is_floating_point()
        && !(mode.is_antialias() && matches!(grad.dtype(), DType::F16 | DType::BF16));
    ensure!(
        is_taken,
        not_implemented,
        "\"upsample_backward\" not implemented for '{}'",
        grad.dtype().scalar_name()
    );
    Ok(laid_out_like(grad, input_size))
}

/// Runs a kernel that reads `x` and writes `result` in row-major order: tensors with other strides are copied, in
/// tiles.
fn row_by_row(
    cpu: Cpu,
    result: &Tensor,
    x: &Tensor,
    run: impl FnOnce(&Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    let copy;
    let x = if x.is_contiguous() {
        x
    } else {
        copy = x.clone_tensor(Some(MemoryFormat::Contiguous))?;
        &copy
    };
    if result.is_contiguous() {
        return run(result, x);
    }
    let rows = TensorSpec::beside(result, result.shape()).empty()?;
    run(&rows, x)?;
    result.copy_data(cpu, &rows)
}

fn resize(cpu: Cpu, result: &Tensor, x: &Tensor, options: &UpsampleOptions) -> Result<()> {
    row_by_row(cpu, result, x, |result, x| {
        Ok(kernel::upsample(&mut result.view_mut(cpu), x.view_ref(cpu), options)?)
    })
}

fn resized_transpose(
    cpu: Cpu,
    result: &Tensor,
    grad: &Tensor,
    options: &UpsampleOptions,
) -> Result<()> {
    row_by_row(cpu, result, grad, |result, grad| {
        Ok(kernel::upsample_backward(&mut result.view_mut(cpu), grad.view_ref(cpu), options)?)
    })
}

/// The output size, and the scale factors if they are used.
fn target<const RANK: usize>(
    input: &Tensor,
    output_size: Option<&[i64]>,
    scale_factors: Option<&[f64]>,
) -> Result<(Dims, [Option<f64>; RANK])> {
    match (output_size, scale_factors) {
        (Some(size), None) => Ok((Dims::from_slice(size), [None; RANK])),
        (None, Some(factors)) => {
            let sizes = input.shape().get(2..).unwrap_or_default();
            ensure!(
                factors.len() == sizes.len() && factors.len() == RANK,
                runtime,
                "Expected scale_factors of {RANK} numbers, one for each spatial dimension, but got {} for an input of shape {}",
                factors.len(),
                list(input.shape())
            );
            let scaled = |(&size, &factor): (&i64, &f64)| {
                let size = size as f64 * factor;
                // (This is false for NaN, too.)
                if size.abs() < i64::MAX as f64 {
                    return Ok(size as i64);
                }
                bail!(
                    runtime,
                    "value cannot be converted to type int64_t without overflow: the size {size} by scale_factor {factor}"
                )
            };
            let size = sizes.iter().zip(factors).map(scaled).collect::<Result<Dims>>()?;
            let mut given = [None; RANK];
            for (given, &factor) in given.iter_mut().zip(factors) {
                *given = Some(factor);
            }
            Ok((size, given))
        }
        _ => bail!(runtime, "Must specify exactly one of output_size and scale_factors"),
    }
}

/// The shape (images, channels, *sizes), with the last `rank` of `sizes`.
fn shape_of(images: i64, channels: i64, sizes: [i64; 3], rank: usize) -> Dims {
    let mut shape = Dims::from_slice(&[images, channels]);
    shape.extend_from_slice(&sizes[3 - rank..]);
    shape
}

/// Adds `align_corners` to the sample, if the op has it.
fn aligned(sample: Sample, names: &[&'static str], align: bool) -> Sample {
    names.iter().fold(sample, |sample, name| sample.with(name, align))
}

fn samples(s: &Sampler, align: &[&'static str], factors: &[&'static str]) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let rank = factors.len();
    let call = |x: Tensor, size: [i64; 3], aligns: bool| {
        aligned(Sample::of(x).with("output_size", &size[3 - rank..]), align, aligns)
    };
    let image = |sizes| s.normal(&shape_of(1, 2, sizes, rank));
    let by_factors = |sample: Sample| {
        let values = [1.4, 0.7, 1.9];
        factors.iter().zip(values).fold(sample, |sample, (name, by)| sample.with(name, by))
    };
    let transposed = image([2, 4, 3]).transpose(-1, -2).expect("samples are small");
    vec![
        call(image([2, 3, 4]), [3, 2, 6], false),
        call(image([2, 3, 4]), [1, 5, 3], true),
        call(image([1, 1, 1]), [2, 1, 3], true),
        by_factors(call(image([2, 3, 4]), [2, 2, 7], false)),
        call(transposed, [2, 4, 5], false),
        call(s.normal(&shape_of(0, 2, [2, 2, 2], rank)), [1, 2, 3], false),
    ]
}

fn invalid_samples(s: &Sampler, align: &[&'static str], rank: usize) -> Vec<InvalidSample> {
    let bad = |x: Tensor, size: &[i64], kind, phrase| {
        let sample = aligned(Sample::of(x).with("output_size", size), align, false);
        InvalidSample::new(sample, kind, phrase)
    };
    let image = |sizes| s.normal(&shape_of(1, 2, sizes, rank));
    let (runtime, size) = (ErrorKind::Runtime, [2; 4]);
    let whole = s.integers(&shape_of(1, 2, [2; 3], rank), 0, 9);
    let overflow = [1 << 40; 3];
    let mut all = vec![
        bad(image([2; 3]), &size[..=rank], runtime, "It is expected output_size equals to"),
        bad(s.normal(&[2]), &size[..rank], runtime, "It is expected input_size equals to"),
        bad(image([0; 3]), &size[..rank], runtime, "output sizes should be greater than 0"),
        bad(image([2; 3]), &[-1; 3][..rank], runtime, "output sizes should be greater than 0"),
        bad(
            s.normal(&shape_of(1, 0, [2; 3], rank)),
            &size[..rank],
            runtime,
            "data tensor expected but got a tensor with sizes",
        ),
        bad(whole, &size[..rank], ErrorKind::NotImplemented, "not implemented for 'Long'"),
    ];
    if rank > 1 {
        all.push(bad(image([2; 3]), &overflow[..rank], runtime, "overflow"));
    }
    all
}

fn backward_samples(s: &Sampler, align: &[&'static str], rank: usize) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let call = |from: [i64; 3], to: [i64; 3], aligns: bool| {
        let sample = Sample::of(s.normal(&shape_of(1, 2, to, rank)));
        let sample = sample.with("output_size", &to[3 - rank..]);
        let input = shape_of(1, 2, from, rank);
        aligned(sample.with("input_size", input.as_slice()), align, aligns)
    };
    vec![call([2, 3, 4], [3, 2, 6], false), call([2, 3, 4], [1, 5, 3], true)]
}

fn backward_invalid_samples(
    s: &Sampler,
    align: &[&'static str],
    rank: usize,
) -> Vec<InvalidSample> {
    let bad = |grad: &[i64], to: [i64; 3], input: &[i64], phrase| {
        let sample = Sample::of(s.normal(grad)).with("output_size", &to[3 - rank..]);
        let sample = aligned(sample.with("input_size", input), align, false);
        InvalidSample::new(sample, ErrorKind::Runtime, phrase)
    };
    let shape = |channels, sizes| shape_of(1, channels, sizes, rank);
    vec![
        bad(
            &shape(3, [2; 3]),
            [2; 3],
            &shape(2, [4; 3]),
            "Expected grad_output to have the same shape",
        ),
        bad(&[2], [2; 3], &shape(2, [4; 3]), "Expected grad_output to be a tensor of dimension"),
        bad(&shape(2, [2; 3]), [2; 3], &shape(2, [-4; 3]), "output sizes should be greater than 0"),
    ]
}

fn vec_samples(s: &Sampler, align: &[&'static str], rank: usize) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let call = || aligned(Sample::of(s.normal(&shape_of(1, 1, [2, 4, 3], rank))), align, false);
    let factors = Value::Floats([0.5, 0.5, 1.5][3 - rank..].into());
    vec![
        call().with("output_size", &[3, 3, 2][3 - rank..]).with("scale_factors", Value::None),
        call().with("output_size", Value::None).with("scale_factors", factors),
    ]
}

fn vec_invalid_samples(s: &Sampler, align: &[&'static str], rank: usize) -> Vec<InvalidSample> {
    let call = || {
        let sample = aligned(Sample::of(s.normal(&shape_of(1, 1, [2, 4, 3], rank))), align, false);
        sample.with("output_size", Value::None)
    };
    let bad = |factors: Value, phrase| {
        InvalidSample::new(call().with("scale_factors", factors), ErrorKind::Runtime, phrase)
    };
    let floats = |factors: &[f64]| Value::Floats(factors.into());
    vec![
        bad(Value::None, "Must specify exactly one of output_size and scale_factors"),
        bad(floats(&[2.0; 4]), "one for each spatial dimension, but got 4"),
        bad(floats(&[1e30; 3][..rank]), "cannot be converted to type int64_t without overflow"),
        bad(floats(&[f64::NAN; 3][..rank]), "cannot be converted to type int64_t without overflow"),
        bad(floats(&[-2.0; 3][..rank]), "output sizes should be greater than 0"),
    ]
}
