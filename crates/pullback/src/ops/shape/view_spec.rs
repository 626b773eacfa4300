//! The spec of a view: its geometry in the memory of the tensor that it is a view of, for both
//! `meta` and the kernel of a view.
//!
//! A view's function computes one [`ViewSpec`] from sizes, strides and offset alone and makes all
//! checks; `meta` returns it as a [`TensorSpec`], the kernel makes the tensor, and an in-place form
//! gives its tensor this geometry.

use crate::error::{bail, ensure};
use crate::tensor::shape::{
    broadcast_strides, infer_shape, list, view_strides, wrap_dim, wrap_dims,
};
use crate::tensor::{MOST, check_reach, contiguous_strides, copied, dims};
use crate::{DType, Dims, Result, Tensor, TensorSpec};
use smallvec::SmallVec;

/// Dtype, sizes, strides and offset, which count elements of that dtype.
pub(in crate::ops) struct ViewSpec {
    pub(in crate::ops) dtype: DType,
    pub(in crate::ops) shape: Dims,
    pub(in crate::ops) strides: Dims,
    pub(in crate::ops) offset: i64,
}

impl ViewSpec {
    /// The geometry of `t` itself.
    #[inline]
    pub(in crate::ops) fn of(t: &Tensor) -> Self {
        ViewSpec {
            dtype: t.dtype(),
            shape: copied(&t.geometry().shape),
            strides: copied(&t.geometry().strides),
            offset: t.storage_offset(),
        }
    }
    /// The memory of `t` from its first element on, with other sizes and strides.
    #[inline]
    pub(in crate::ops) fn seen(t: &Tensor, shape: Dims, strides: Dims) -> Self {
        ViewSpec { dtype: t.dtype(), shape, strides, offset: t.storage_offset() }
    }
    /// The spec of the view of `t`.
    ///
    /// # Errors
    /// `RuntimeError` if it reaches further than a tensor can.
    pub(in crate::ops) fn spec(self, t: &Tensor) -> Result<TensorSpec> {
        check_reach(&self.shape, &self.strides, self.offset)?;
        let spec = TensorSpec::of(&self.shape, self.dtype).on(t.device());
        Ok(spec.with_strides(self.strides))
    }
    /// The view of `t`.
    ///
    /// # Errors
    /// `RuntimeError` if it reaches elements outside of the storage.
    #[inline]
    pub(in crate::ops) fn shown(self, t: &Tensor) -> Result<Tensor> {
        let ViewSpec { dtype, shape, strides, offset } = self;
        Tensor::constructed(|| t.geometry().retyped(dtype, (shape, strides), offset))
    }
    /// Gives `t` itself this geometry.
    ///
    /// # Errors
    /// As [`ViewSpec::shown`]; then nothing is changed.
    pub(in crate::ops) fn set(self, t: &Tensor) -> Result<()> {
        let ViewSpec { dtype, shape, strides, offset } = self;
        t.set_geometry(t.geometry().retyped(dtype, (shape, strides), offset)?);
        t.forget_accumulator();
        Ok(())
    }
}

/// `t` without the dimensions of size 1 among `dims`.
pub(in crate::ops) fn squeezed(t: &Tensor, dims: Option<&[i64]>) -> Result<ViewSpec> {
    let named: SmallVec<[usize; 5]> = match dims {
        None => (0..t.ndim()).collect(),
        Some([]) => SmallVec::new(),
        Some(dims) => wrap_dims(Some(dims), t.ndim())?,
    };
    let kept = |i: &usize| t.shape()[*i] != 1 || !named.contains(i);
    let pick = |from: &[i64]| (0..t.ndim()).filter(kept).map(|i| from[i]).collect::<Dims>();
    Ok(ViewSpec::seen(t, pick(t.shape()), pick(t.strides())))
}

/// `t` with a dimension of size 1 at `dim`.
pub(in crate::ops) fn unsqueezed(t: &Tensor, dim: i64) -> Result<ViewSpec> {
    let at = wrap_dim(dim, t.ndim() + 1)?;
    let mut view = ViewSpec::of(t);
    let stride = if at < t.ndim() { view.shape[at] * view.strides[at] } else { 1 };
    view.shape.insert(at, 1);
    view.strides.insert(at, stride);
    Ok(view)
}

/// A matrix transposed.
pub(in crate::ops) fn transposed(t: &Tensor) -> Result<ViewSpec> {
    ensure!(
        t.ndim() <= 2,
        runtime,
        "t() expects a tensor with <= 2 dimensions, but self is {}D",
        t.ndim()
    );
    swapped(t, 0, i64::from(t.ndim() >= 2))
}

/// The diagonals of the planes of `dim1` and `dim2` of `t`, as the last dimension.
pub(in crate::ops) fn diagonal_of(
    t: &Tensor,
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Result<ViewSpec> {
    let (a, b) = (wrap_dim(dim1, t.ndim())?, wrap_dim(dim2, t.ndim())?);
    ensure!(a != b, runtime, "diagonal dimensions cannot be identical {dim1}, {dim2}");
    let mut view = ViewSpec::of(t);
    let (down, right) = (offset.min(0).saturating_neg(), offset.max(0));
    let length = (view.shape[a] - down).min(view.shape[b] - right).max(0);
    if length > 0 {
        view.offset += down * view.strides[a] + right * view.strides[b];
    }
    let step = view.strides[a] + view.strides[b];
    for dim in [a.max(b), a.min(b)] {
        view.shape.remove(dim);
        view.strides.remove(dim);
    }
    view.shape.push(length);
    view.strides.push(step);
    Ok(view)
}

/// The windows of `size` along `dimension` of `t`, every `step`, as the last dimension.
pub(in crate::ops) fn windows_of(
    t: &Tensor,
    dimension: i64,
    size: i64,
    step: i64,
) -> Result<ViewSpec> {
    let dim = wrap_dim(dimension, t.ndim())?;
    let have = t.shape().get(dim).copied().unwrap_or(1);
    ensure!(size >= 0, runtime, "size is {size} but must be >= 0");
    ensure!(
        size <= have,
        runtime,
        "maximum size for tensor at dimension {dim} is {have} but size is {size}"
    );
    ensure!(step > 0, runtime, "step is {step} but must be > 0");
    let mut view = ViewSpec::of(t);
    let stride = view.strides.get(dim).copied().unwrap_or(1);
    if let (Some(n), Some(s)) = (view.shape.get_mut(dim), view.strides.get_mut(dim)) {
        *n = (have - size) / step + 1;
        *s = s.saturating_mul(step).min(MOST);
    }
    view.shape.push(size);
    view.strides.push(stride);
    Ok(view)
}

/// The dimension of which `length` indices are taken, and the first of them, counted from the start.
pub(in crate::ops) fn check_narrow(
    t: &Tensor,
    dim: i64,
    start: i64,
    length: i64,
) -> Result<(usize, i64)> {
    ensure!(t.ndim() > 0, runtime, "narrow() cannot be applied to a 0-dim tensor.");
    ensure!(length >= 0, runtime, "narrow(): length must be non-negative.");
    let dim = wrap_dim(dim, t.ndim())?;
    let size = t.shape()[dim];
    ensure!(
        start >= -size && start <= size,
        index,
        "start out of range (expected to be in range of [-{size}, {size}], but got {start})"
    );
    let from = if start < 0 { start + size } else { start };
    ensure!(
        from <= size - length,
        runtime,
        "start ({from}) + length ({length}) exceeds dimension size ({size})."
    );
    Ok((dim, from))
}

/// `t` in shape `size`, where one size may be -1.
pub(in crate::ops) fn viewed(t: &Tensor, size: &[i64]) -> Result<ViewSpec> {
    let shape = infer_shape(size, t.numel())?;
    // (Dimensions of size 1 may have other strides than the sizes give, and keep them.)
    if t.is_contiguous() && !t.shape().contains(&1) {
        let strides = contiguous_strides(&shape);
        return Ok(ViewSpec::seen(t, shape, strides));
    }
    let Some(strides) = view_strides(t.shape(), t.strides(), &shape) else {
        bail!(
            runtime,
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        );
    };
    Ok(ViewSpec::seen(t, shape, strides))
}

/// `t` with dimensions of size 1 repeated up to `size`; -1 keeps a size.
pub(in crate::ops) fn expanded(t: &Tensor, size: &[i64]) -> Result<ViewSpec> {
    ensure!(
        size.len() >= t.ndim(),
        runtime,
        "expand(torch.{}Tensor{{{}}}, size={}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
        t.dtype().scalar_name(),
        list(t.shape()),
        list(size),
        size.len(),
        t.ndim()
    );
    let skip = size.len() - t.ndim();
    let (requested, mut shape) = (size, dims(size));
    for (index, size) in shape.iter_mut().enumerate() {
        if *size >= 0 {
            continue;
        }
        ensure!(
            index >= skip,
            runtime,
            "The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {index}"
        );
        let own = t.shape()[index - skip];
        ensure!(
            *size == -1,
            runtime,
            "The expanded size of the tensor ({size}) must match the existing size ({own}) at non-singleton dimension {index}.  Target sizes: {}.  Tensor sizes: {}",
            list(requested),
            list(t.shape())
        );
        *size = own;
    }
    let strides = broadcast_strides(t.shape(), t.strides(), &shape)?;
    Ok(ViewSpec::seen(t, shape, strides))
}

/// `t` with its dimensions in the order `dims`.
pub(in crate::ops) fn permuted(t: &Tensor, dims: &[i64]) -> Result<ViewSpec> {
    ensure!(
        dims.len() == t.ndim(),
        runtime,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
        t.ndim(),
        dims.len()
    );
    let (mut shape, mut strides) = (Dims::new(), Dims::new());
    let mut seen = Dims::new();
    for &dim in dims {
        let dim = wrap_dim(dim, t.ndim())?;
        ensure!(
            !seen.contains(&(dim as i64)),
            runtime,
            "permute(): duplicate dims are not allowed."
        );
        seen.push(dim as i64);
        shape.push(t.shape()[dim]);
        strides.push(t.strides()[dim]);
    }
    Ok(ViewSpec::seen(t, shape, strides))
}

/// `t` with the dimensions `dim0` and `dim1` swapped.
pub(in crate::ops) fn swapped(t: &Tensor, dim0: i64, dim1: i64) -> Result<ViewSpec> {
    let (a, b) = (wrap_dim(dim0, t.ndim())?, wrap_dim(dim1, t.ndim())?);
    let mut view = ViewSpec::of(t);
    if t.ndim() > 0 {
        view.shape.swap(a, b);
        view.strides.swap(a, b);
    }
    Ok(view)
}

/// The slice at `index` of dimension `dim` of `t`.
pub(in crate::ops) fn selected(t: &Tensor, dim: i64, index: i64) -> Result<ViewSpec> {
    ensure!(t.ndim() > 0, index, "select() cannot be applied to a 0-dim tensor.");
    let dim = wrap_dim(dim, t.ndim())?;
    let size = t.shape()[dim];
    ensure!(
        index >= -size && index < size,
        index,
        "select(): index {index} out of range for tensor of size {} at dimension {dim}",
        list(t.shape())
    );
    let at = if index < 0 { index + size } else { index };
    let mut view = ViewSpec::of(t);
    view.offset += at * view.strides[dim];
    view.shape.remove(dim);
    view.strides.remove(dim);
    Ok(view)
}

/// Every `step`-th index of dimension `dim` of `t` from `start` up to `end`.
pub(in crate::ops) fn sliced(
    t: &Tensor,
    dim: i64,
    (start, end): (Option<i64>, Option<i64>),
    step: i64,
) -> Result<ViewSpec> {
    ensure!(t.ndim() > 0, index, "slice() cannot be applied to a 0-dim tensor.");
    ensure!(step > 0, runtime, "slice step must be positive");
    let dim = wrap_dim(dim, t.ndim())?;
    let size = t.shape()[dim];
    let clip = |v: i64| (if v < 0 { v + size } else { v }).clamp(0, size);
    let start = clip(start.unwrap_or(0));
    let end = clip(end.unwrap_or(i64::MAX)).max(start);
    let mut view = ViewSpec::of(t);
    view.shape[dim] = (end - start) / step + i64::from((end - start) % step != 0);
    view.offset += start * view.strides[dim];
    view.strides[dim] = view.strides[dim].saturating_mul(step).min(MOST);
    Ok(view)
}
