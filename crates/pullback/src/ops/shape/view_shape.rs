//! Views by shape: dropped and added dimensions, splits, diagonals, windows, other dtypes.
//!
//! The in-place forms (`squeeze_`, `t_`, ...) change only how the tensor sees its memory. Their history
//! goes on from the tensor's own, not through its base, because no element changes.

use super::view_spec::{
    check_narrow, diagonal_of, squeezed, swapped, transposed, unsqueezed, viewed, windows_of,
};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::sparse;
use crate::tensor::Cpu;
use crate::tensor::shape::{infer_shape, list, wrap_dim};
use crate::{ErrorKind, Result, Tensor, TensorSpec};
use pullback_macros::op;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &UNSAFE_VIEW,
    &TRANSPOSED,
    &T_IN_PLACE,
    &TRANSPOSE_IN_PLACE,
    &SQUEEZE,
    &SQUEEZE_DIM,
    &SQUEEZE_DIMS,
    &SQUEEZE_IN_PLACE,
    &SQUEEZE_DIM_IN_PLACE,
    &SQUEEZE_DIMS_IN_PLACE,
    &UNSQUEEZE,
    &UNSQUEEZE_IN_PLACE,
    &NARROW,
    &NARROW_TENSOR,
    &DIAGONAL,
    &UNFOLD,
    &UNFOLD_BACKWARD,
    &FLATTEN,
    &UNFLATTEN,
    &MOVEDIM,
    &MOVEDIM_INT,
    &NUMPY_T,
    &MATRIX_T,
    &MATRIX_H,
    &BATCH_H,
    &ADJOINT,
    &VIEW_AS,
    &EXPAND_AS,
    &BROADCAST_TO,
    &RESHAPE_AS,
];

/// As `view`, for results that nobody else holds: not a view to autograd.
#[op("_unsafe_view(Tensor self, int[] size) -> Tensor", internal, jvp = linear, method = unsafe_view, batch = view(self, size))]
impl UnsafeView {
    fn meta(self_: &Tensor, size: &[i64]) -> Result<TensorSpec> {
        viewed(self_, size)?.spec(self_)
    }
    fn cpu(self_: &Tensor, size: &[i64]) -> Result<Tensor> {
        viewed(self_, size)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        grad.reshape(self_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).with("size", [3, 2])]
    }
}

/// Puts dimensions of size 1 back where `shape` has them.
fn unsqueeze_to(grad: &Tensor, shape: &[i64], dims: Option<&[i64]>) -> Result<Tensor> {
    let named: SmallVec<[usize; 5]> = match dims {
        None => (0..shape.len()).collect(),
        Some([]) => SmallVec::new(),
        Some(dims) => crate::tensor::shape::wrap_dims(Some(dims), shape.len())?,
    };
    let mut grad = grad.clone();
    for (index, &size) in shape.iter().enumerate() {
        if size == 1 && named.contains(&index) {
            grad = grad.unsqueeze(index as i64)?;
        }
    }
    Ok(grad)
}

/// A matrix transposed; vectors and numbers as they are.
#[op("t(Tensor(a) self) -> Tensor(a)", view, bijective, jvp = linear, method = t, batch = transposed(self), sparse = transposed(self))]
impl Transposed {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        transposed(self_)?.spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        transposed(self_)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.t()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[3])), Sample::of(s.normal(&[]))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "t() expects a tensor with <= 2 dimensions, but self is 3D";
        vec![InvalidSample::new(Sample::of(s.normal(&[1, 2, 3])), ErrorKind::Runtime, phrase)]
    }
}

/// Transposes this matrix itself.
#[op("t_(Tensor(a!) self) -> Tensor(a!)", view, method_only, method = t_, node = "TBackward1", batch = in_place(&TRANSPOSED))]
impl TInPlace {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        transposed(self_)?.spec(self_)
    }
    fn cpu_(self_: &Tensor) -> Result<()> {
        transposed(self_)?.set(self_)
    }
    fn sparse_coo(self_: &Tensor) -> Result<Tensor> {
        sparse::swap_own(self_, &sparse::transposed(self_)?)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.t()
    }
}

/// Swaps two dimensions of this tensor itself.
#[op("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", view, method_only, method = transpose_,
     node = "TransposeBackward1", alias("swapaxes_", "swapdims_"), call_as("swapaxes_(dim0 = axis0, dim1 = axis1)"),
     batch = in_place(&super::view::TRANSPOSE))]
impl TransposeInPlace {
    fn meta(self_: &Tensor, dim0: i64, dim1: i64) -> Result<TensorSpec> {
        swapped(self_, dim0, dim1)?.spec(self_)
    }
    fn cpu_(self_: &Tensor, dim0: i64, dim1: i64) -> Result<()> {
        swapped(self_, dim0, dim1)?.set(self_)
    }
    fn sparse_coo(self_: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        sparse::swap_own(self_, &sparse::swapped(self_, dim0, dim1)?)
    }
    fn vjp_self(grad: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        grad.transpose(dim0, dim1)
    }
}

/// Without its dimensions of size 1.
#[op("squeeze(Tensor(a) self) -> Tensor(a)", view, bijective, jvp = linear, batch = squeeze(self), sparse = squeeze(self))]
impl Squeeze {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        squeezed(self_, None)?.spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        squeezed(self_, None)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        unsqueeze_to(grad, self_shape, None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[1, 2, 1])),
            Sample::of(s.normal(&[])),
            Sample::of(s.normal(&[2, 3])),
        ]
    }
}

/// Without dimension `dim`, if its size is 1.
#[op("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", view, bijective, jvp = linear, node = "SqueezeBackward1", batch = squeeze_dim(self, dim), sparse = squeeze_dim(self, dim))]
impl SqueezeDim {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        squeezed(self_, Some(&[dim]))?.spec(self_)
    }
    fn cpu(self_: &Tensor, dim: i64) -> Result<Tensor> {
        squeezed(self_, Some(&[dim]))?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: i64) -> Result<Tensor> {
        unsqueeze_to(grad, self_shape, Some(&[dim]))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], dim: i64| Sample::of(s.normal(shape)).with("dim", dim);
        vec![sample(&[2, 1, 3], 1), sample(&[2, 1], 0), sample(&[], -1)]
    }
}

/// Without those of the dimensions `dim` whose size is 1.
#[op("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", view, bijective, jvp = linear, node = "SqueezeBackward2", batch = squeeze_dims(self, dim), sparse = squeeze_dims(self, dim))]
impl SqueezeDims {
    fn meta(self_: &Tensor, dim: &[i64]) -> Result<TensorSpec> {
        squeezed(self_, Some(dim))?.spec(self_)
    }
    fn cpu(self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
        squeezed(self_, Some(dim))?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: &[i64]) -> Result<Tensor> {
        unsqueeze_to(grad, self_shape, Some(dim))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[1, 2, 1])).with("dim", [0, 1, -1])]
    }
}

/// Drops this tensor's own dimensions of size 1.
#[op("squeeze_(Tensor(a!) self) -> Tensor(a!)", view, method_only, method = squeeze_, node = "SqueezeBackward3", batch = in_place(&SQUEEZE))]
impl SqueezeInPlace {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        squeezed(self_, None)?.spec(self_)
    }
    fn cpu_(self_: &Tensor) -> Result<()> {
        squeezed(self_, None)?.set(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        unsqueeze_to(grad, self_shape, None)
    }
}

/// Drops this tensor's own dimension `dim`, if its size is 1.
#[op("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", view, method_only, method = squeeze_dim_, node = "SqueezeBackward4", batch = in_place(&SQUEEZE_DIM))]
impl SqueezeDimInPlace {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        squeezed(self_, Some(&[dim]))?.spec(self_)
    }
    fn cpu_(self_: &Tensor, dim: i64) -> Result<()> {
        squeezed(self_, Some(&[dim]))?.set(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: i64) -> Result<Tensor> {
        unsqueeze_to(grad, self_shape, Some(&[dim]))
    }
}

/// Drops those of this tensor's own dimensions `dim` whose size is 1.
#[op("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", view, method_only, method = squeeze_dims_, node = "SqueezeBackward5", batch = in_place(&SQUEEZE_DIMS))]
impl SqueezeDimsInPlace {
    fn meta(self_: &Tensor, dim: &[i64]) -> Result<TensorSpec> {
        squeezed(self_, Some(dim))?.spec(self_)
    }
    fn cpu_(self_: &Tensor, dim: &[i64]) -> Result<()> {
        squeezed(self_, Some(dim))?.set(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: &[i64]) -> Result<Tensor> {
        unsqueeze_to(grad, self_shape, Some(dim))
    }
}

/// With a new dimension of size 1 at `dim`.
#[op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", view, bijective, jvp = linear, batch = unsqueeze(self, dim), sparse = unsqueeze(self, dim))]
impl Unsqueeze {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        unsqueezed(self_, dim)?.spec(self_)
    }
    fn cpu(self_: &Tensor, dim: i64) -> Result<Tensor> {
        unsqueezed(self_, dim)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: i64) -> Result<Tensor> {
        grad.squeeze_dim(wrap_dim(dim, self_shape.len() + 1)? as i64)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], dim: i64| Sample::of(s.normal(shape)).with("dim", dim);
        vec![sample(&[2, 3], 1), sample(&[2], -1), sample(&[], 0), sample(&[0], 0)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "Dimension out of range (expected to be in range of [-2, 1], but got 2)";
        vec![InvalidSample::new(
            Sample::of(s.normal(&[3])).with("dim", 2_i64),
            ErrorKind::Index,
            phrase,
        )]
    }
}

/// Gives this tensor itself a new dimension of size 1 at `dim`.
#[op("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", view, method_only, method = unsqueeze_, node = "UnsqueezeBackward1", batch = in_place(&UNSQUEEZE))]
impl UnsqueezeInPlace {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        unsqueezed(self_, dim)?.spec(self_)
    }
    fn cpu_(self_: &Tensor, dim: i64) -> Result<()> {
        unsqueezed(self_, dim)?.set(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: i64) -> Result<Tensor> {
        grad.squeeze_dim(wrap_dim(dim, self_shape.len() + 1)? as i64)
    }
}

/// The `length` indices of dimension `dim` from `start` on.
#[op("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)")]
impl Narrow {
    fn composite(self_: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        let (_, from) = check_narrow(self_, dim, start, length)?;
        self_.slice(dim, Some(from), Some(from + length), 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[4, 2]).into(), Value::Int(0), Value::Int(-3), Value::Int(2)])]
    }
}

/// As `narrow`, with a 0-dim integer tensor for `start`.
#[op("narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)")]
impl NarrowTensor {
    fn composite(self_: &Tensor, dim: i64, start: &Tensor, length: i64) -> Result<Tensor> {
        ensure!(
            start.ndim() == 0 && start.dtype().is_integral(false),
            runtime,
            "start must be an 0-dim integral Tensor."
        );
        self_.narrow(dim, start.item()?.to_i64(), length)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[4]))
                .with("dim", 0_i64)
                .with("start", s.integers(&[], 1, 2))
                .with("length", 2_i64),
        ]
    }
}

/// The diagonals of the planes of `dim1` and `dim2`, `offset` steps above the main one, as the last dimension.
#[op("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", view, jvp = linear, batch = pick_view)]
impl Diagonal {
    fn meta(self_: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<TensorSpec> {
        diagonal_of(self_, offset, dim1, dim2)?.spec(self_)
    }
    fn cpu(self_: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        diagonal_of(self_, offset, dim1, dim2)?.shown(self_)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        offset: i64,
        dim1: i64,
        dim2: i64,
    ) -> Result<Tensor> {
        let out = super::view::room_for(grad, self_shape)?;
        out.diagonal(offset, dim1, dim2)?.copy_(grad, false)?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], args: [i64; 3]| {
            Sample::new([
                s.normal(shape).into(),
                Value::Int(args[0]),
                Value::Int(args[1]),
                Value::Int(args[2]),
            ])
        };
        vec![
            sample(&[3, 3], [0, 0, 1]),
            sample(&[2, 3, 4], [1, 2, 0]),
            sample(&[2, 3], [-1, 0, 1]),
            sample(&[2, 2], [5, 0, 1]),
        ]
    }
}

/// Windows of `size` along `dimension`, every `step`; the elements of a window become the last dimension.
#[op("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", view, method_only, jvp = linear, batch = unfold(self))]
impl Unfold {
    fn meta(self_: &Tensor, dimension: i64, size: i64, step: i64) -> Result<TensorSpec> {
        windows_of(self_, dimension, size, step)?.spec(self_)
    }
    fn cpu(self_: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
        windows_of(self_, dimension, size, step)?.shown(self_)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dimension: i64,
        size: i64,
        step: i64,
    ) -> Result<Tensor> {
        grad.unfold_backward(self_shape, dimension, size, step)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], args: [i64; 3]| {
            Sample::new([
                s.normal(shape).into(),
                Value::Int(args[0]),
                Value::Int(args[1]),
                Value::Int(args[2]),
            ])
        };
        vec![sample(&[5], [0, 3, 1]), sample(&[2, 7], [1, 2, 3]), sample(&[], [0, 1, 1])]
    }
}

/// Adds windows up where they overlap: the gradient of `unfold`.
#[op("unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor", internal, jvp = linear, batch = windows(grad_in, input_sizes, dim, size, step))]
impl UnfoldBackward {
    fn meta(
        grad_in: &Tensor,
        input_sizes: &[i64],
        dim: i64,
        size: i64,
        step: i64,
    ) -> Result<TensorSpec> {
        let spec = TensorSpec::beside(grad_in, input_sizes);
        if !input_sizes.is_empty() {
            wrap_dim(dim, input_sizes.len())?;
        }
        ensure!(
            grad_in.ndim() == input_sizes.len() + 1,
            runtime,
            "unfold_backward: expected a gradient of {} dimensions, but got {}",
            input_sizes.len() + 1,
            grad_in.ndim()
        );
        ensure!(
            size >= 0 && step > 0 && grad_in.shape().last() == Some(&size),
            runtime,
            "unfold_backward: windows of size {size} with step {step} do not fit a gradient of size {}",
            list(grad_in.shape())
        );
        if input_sizes.is_empty() {
            return Ok(spec);
        }
        let at = wrap_dim(dim, input_sizes.len())?;
        let fits =
            input_sizes.iter().zip(grad_in.shape()).enumerate().all(|(d, (&input, &grad))| {
                if d == at {
                    grad == input.saturating_sub(size).div_euclid(step).saturating_add(1)
                } else {
                    grad == input
                }
            });
        ensure!(
            fits || grad_in.numel() == 0,
            runtime,
            "unfold_backward: a gradient of size {} is not that of the windows of an input of size {}",
            list(grad_in.shape()),
            list(input_sizes)
        );
        Ok(spec)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_in: &Tensor,
        input_sizes: &[i64],
        dim: i64,
        size: i64,
        step: i64,
    ) -> Result<()> {
        if input_sizes.is_empty() && size != 0 {
            return result.copy_data(cpu, &grad_in.select(0, 0)?);
        }
        result.zero_bytes();
        if input_sizes.is_empty() || result.numel() == 0 || grad_in.numel() == 0 {
            return Ok(());
        }
        let at = wrap_dim(dim, input_sizes.len())?;
        let windows = grad_in.shape()[at];
        if windows < size {
            // (Whichever are fewer: the windows, or the elements in one.)
            for window in 0..windows {
                let grad = grad_in.select(at as i64, window)?.movedim_int(-1, at as i64)?;
                result.narrow(at as i64, window.saturating_mul(step), size)?.add_(&grad)?;
            }
            return Ok(());
        }
        for offset in 0..size {
            let end = step.saturating_mul(windows - 1).saturating_add(offset + 1);
            result
                .slice(at as i64, Some(offset), Some(end), step)?
                .add_(&grad_in.select(-1, offset)?)?;
        }
        Ok(())
    }
    fn vjp_grad_in(grad: &Tensor, dim: i64, size: i64, step: i64) -> Result<Tensor> {
        grad.unfold(dim, size, step)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([
            s.normal(&[3, 3]).into(),
            Value::from([5]),
            Value::Int(0),
            Value::Int(3),
            Value::Int(1),
        ])]
    }
}

/// The dimensions `start_dim..=end_dim` as one.
#[op("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")]
impl Flatten {
    fn composite(self_: &Tensor, start_dim: i64, end_dim: i64) -> Result<Tensor> {
        let (start, end) = (wrap_dim(start_dim, self_.ndim())?, wrap_dim(end_dim, self_.ndim())?);
        ensure!(
            start <= end,
            runtime,
            "flatten() has invalid args: start_dim cannot come after end_dim"
        );
        if self_.ndim() == 0 {
            return self_.reshape(&[1]);
        }
        if start == end {
            return Ok(self_.clone());
        }
        let shape = self_.shape();
        let middle = [shape[start..=end].iter().product::<i64>()];
        self_.reshape(&[&shape[..start], &middle, &shape[end + 1..]].concat())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3, 2])),
            Sample::of(s.normal(&[2, 3, 2])).with("start_dim", 1_i64),
            Sample::of(s.normal(&[])),
            Sample::of(s.normal(&[2, 0, 3])),
        ]
    }
}

/// Dimension `dim` cut up into `sizes`, one of which may be -1.
#[op("unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)")]
impl Unflatten {
    fn composite(self_: &Tensor, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        let at = wrap_dim(dim, self_.ndim())?;
        ensure!(!sizes.is_empty(), runtime, "unflatten: sizes must be non-empty");
        let shape = self_.shape();
        let have = shape.get(at).copied().unwrap_or(1);
        let Ok(sizes_known) = infer_shape(sizes, have) else {
            bail!(
                runtime,
                "unflatten: Provided sizes {} don't multiply up to the size of dim {at} ({have}) in the input tensor",
                list(sizes)
            );
        };
        let rest = if shape.is_empty() { &[] } else { &shape[at + 1..] };
        self_.view(&[&shape[..at], &sizes_known, rest].concat())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 6]).into(), Value::Int(1), Value::from([2, -1])])]
    }
}

/// The dimensions `source` moved to `destination`; the others keep their order.
#[op(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    alias("moveaxis")
)]
impl Movedim {
    fn composite(self_: &Tensor, source: &[i64], destination: &[i64]) -> Result<Tensor> {
        ensure!(
            source.len() == destination.len(),
            runtime,
            "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as destination ({} dims)",
            list(source),
            list(destination)
        );
        let n = self_.ndim();
        let wrapped = |dims: &[i64], what: &str| -> Result<Vec<usize>> {
            let mut out = Vec::new();
            for &dim in dims {
                let dim = wrap_dim(dim, n)?;
                ensure!(
                    !out.contains(&dim),
                    runtime,
                    "movedim: repeated dim in `{what}` ({})",
                    list(dims)
                );
                out.push(dim);
            }
            Ok(out)
        };
        let (from, to) = (wrapped(source, "source")?, wrapped(destination, "destination")?);
        if n == 0 {
            return self_.alias();
        }
        // bounded: by the rank.
        let mut order = vec![usize::MAX; n];
        from.iter().zip(&to).for_each(|(&f, &t)| order[t] = f);
        let mut rest = (0..n).filter(|d| !from.contains(d));
        // bounded: by the rank.
        let order: Vec<i64> = order
            .iter()
            .map(|&d| if d == usize::MAX { rest.next().unwrap_or(0) as i64 } else { d as i64 })
            .collect();
        self_.permute(&order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 3, 4]).into(), Value::from([0, 2]), Value::from([1, 0])])]
    }
}

/// Dimension `source` moved to `destination`.
#[op("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", alias("moveaxis"))]
impl MovedimInt {
    fn composite(self_: &Tensor, source: i64, destination: i64) -> Result<Tensor> {
        self_.movedim(&[source], &[destination])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3, 4])).with("source", 0_i64).with("destination", 2_i64)]
    }
}

/// All dimensions in reverse order.
#[op("T(Tensor(a) self) -> Tensor(a)", method_only, attribute, method = numpy_t)]
impl NumpyT {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.ndim() != 2 && self_.ndim() != 0 {
            static GIVEN: AtomicBool = AtomicBool::new(false);
            crate::warning::warn_once(
                &GIVEN,
                &format!(
                    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated (here {}). Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
                    self_.ndim()
                ),
            );
        }
        let order: Vec<i64> = (0..self_.ndim() as i64).rev().collect();
        self_.permute(&order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

fn check_matrices(self_: &Tensor, name: &str, what: &str) -> Result<()> {
    ensure!(
        self_.ndim() >= 2,
        runtime,
        "{name} is only supported on matrices or batches of matrices. Got {}-D tensor.{what}",
        self_.ndim()
    );
    Ok(())
}

/// The last two dimensions swapped and the numbers conjugated; a 0-dim tensor is conjugated.
fn swapped_conjugate(x: &Tensor, name: &str) -> Result<Tensor> {
    if x.ndim() == 0 {
        return x.conj();
    }
    check_matrices(x, name, "")?;
    x.transpose(-2, -1)?.conj()
}

/// The last two dimensions swapped; a 0-dim tensor itself.
#[op("mT(Tensor(a) self) -> Tensor(a)", method_only, attribute, method = mt)]
impl MatrixT {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.ndim() == 0 {
            return Ok(self_.clone());
        }
        check_matrices(self_, "tensor.mT", "")?;
        self_.transpose(-2, -1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

/// A matrix transposed and conjugated.
#[op("H(Tensor(a) self) -> Tensor(a)", method_only, attribute, method = matrix_h)]
impl MatrixH {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        let n = self_.ndim();
        ensure!(
            n == 2 || n == 0,
            runtime,
            "tensor.H is only supported on matrices (2-D tensors). Got {n}-D tensor.{}",
            if n > 2 { " For batches of matrices, consider using tensor.mH" } else { "" }
        );
        if n == 0 { self_.conj() } else { self_.transpose(0, 1)?.conj() }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

/// The last two dimensions swapped, conjugated.
#[op("mH(Tensor(a) self) -> Tensor(a)", method_only, attribute, method = mh)]
impl BatchH {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        swapped_conjugate(self_, "tensor.mH")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[]))]
    }
}

/// The last two dimensions swapped, conjugated.
#[op("adjoint(Tensor(a) self) -> Tensor(a)")]
impl Adjoint {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        swapped_conjugate(self_, "tensor.adjoint()")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[]))]
    }
}

/// A view in the shape of `other`.
#[op("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", method_only)]
impl ViewAs {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.view(other.shape())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 3]).into(), s.normal(&[6]).into()])]
    }
}

/// As `reshape` to the shape of `other`.
#[op("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", method_only)]
impl ReshapeAs {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.reshape(other.shape())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 3]).into(), s.normal(&[6]).into()])]
    }
}

/// Expanded to the shape of `other`.
#[op("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", method_only)]
impl ExpandAs {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.expand(other.shape(), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[1, 3]).into(), s.normal(&[2, 3]).into()])]
    }
}

/// Expanded to `size`.
#[op("broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)")]
impl BroadcastTo {
    fn composite(self_: &Tensor, size: &[i64]) -> Result<Tensor> {
        self_.expand(size, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 1])).with("size", [3, 2, 2])]
    }
}
