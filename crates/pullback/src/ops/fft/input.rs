//! How the functions of `torch.fft` prepare their arguments for a transform: dtypes, factors, dimensions and sizes.

use super::primitive::check_points;
use crate::error::{bail, ensure};
use crate::tensor::promote::default_dtype;
use crate::tensor::shape::wrap_own_dim;
use crate::{DType, Dims, Result, Scalar, Tensor};

/// The input in a floating dtype: integers become the default dtype.
pub(super) fn floating(self_: &Tensor) -> Result<Tensor> {
    let dtype = if self_.dtype().is_integral(true) { default_dtype() } else { self_.dtype() };
    ensure!(
        !matches!(dtype, DType::F16 | DType::BF16),
        not_implemented,
        "Unsupported dtype {}",
        dtype.scalar_name()
    );
    self_.to_dtype(dtype)
}

/// The input in a complex dtype.
pub(super) fn complex(self_: &Tensor) -> Result<Tensor> {
    let floating = floating(self_)?;
    floating.to_dtype(floating.dtype().to_complex())
}

/// The code that `norm` stands for in the primitive ops (0: no factor, 1: `1/sqrt(n)`, 2: `1/n`), for a transform in
/// this direction.
pub(super) fn normalization(norm: Option<&str>, forward: bool) -> Result<i64> {
    Ok(match norm {
        None | Some("backward") => i64::from(!forward) * 2,
        Some("forward") => i64::from(forward) * 2,
        Some("ortho") => 1,
        Some(other) => bail!(runtime, "Invalid normalization mode: \"{other}\""),
    })
}

/// The dimension of a one-dimensional transform, counted from 0, and its number of points: `n`, or by default `all`.
pub(super) fn one_dim(
    self_: &Tensor,
    n: Option<i64>,
    dim: i64,
    all: impl Fn(i64) -> i64,
) -> Result<(i64, i64)> {
    let at = wrap_own_dim(dim, self_.ndim())?;
    let n = n.unwrap_or_else(|| all(self_.shape()[at]));
    check_points(n)?;
    Ok((at as i64, n))
}

/// The dimensions of a transform and their sizes.
pub(super) struct Grid {
    pub(super) dims: Dims,
    pub(super) sizes: Dims,
}

/// The dimensions and sizes that `s` and `dim` stand for: without `dim` the last dimensions, as many as `s` has, or
/// all; -1 in `s` keeps a size.
pub(super) fn grid(self_: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<Grid> {
    let rank = self_.ndim();
    let mut dims = Dims::new();
    for &dim in dim.unwrap_or_default() {
        let at = wrap_own_dim(dim, rank)? as i64;
        ensure!(!dims.contains(&at), runtime, "FFT dims must be unique");
        dims.push(at);
    }
    if let Some(s) = s {
        ensure!(
            dim.is_none() || s.len() == dims.len(),
            runtime,
            "When given, dim and shape arguments must have the same length"
        );
        ensure!(
            s.len() <= rank,
            runtime,
            "Got shape with {} values but input tensor only has {rank} dimensions.",
            s.len()
        );
    }
    if dim.is_none() {
        dims = (s.map_or(0, |s| rank - s.len()) as i64..rank as i64).collect();
    }
    let size_of = |dim: i64| self_.shape()[dim as usize];
    let mut sizes: Dims = dims.iter().map(|&dim| size_of(dim)).collect();
    for (size, &wanted) in sizes.iter_mut().zip(s.unwrap_or_default()) {
        if wanted != -1 {
            *size = wanted;
        }
    }
    sizes.iter().try_for_each(|&size| check_points(size))?;
    Ok(Grid { dims, sizes })
}

impl Grid {
    /// Refuses an empty list of dimensions, which transforms of real tensors cannot have.
    pub(super) fn check_any(&self, name: &str) -> Result<()> {
        ensure!(!self.dims.is_empty(), runtime, "{name} must transform at least one axis");
        Ok(())
    }
    /// The sizes of the first half of a spectrum, and the size of the last dimension after the transform to a real
    /// tensor.
    pub(super) fn halved(mut self, self_: &Tensor, s: Option<&[i64]>) -> Result<(Grid, i64)> {
        let last = self.dims.len() - 1;
        let requested = s.and_then(|s| s.last()).copied().filter(|&n| n != -1);
        let n = requested.unwrap_or_else(|| 2 * (self_.shape()[self.dims[last] as usize] - 1));
        check_points(n)?;
        self.sizes[last] = n / 2 + 1;
        Ok((self, n))
    }
}

/// The input cut off or padded with zeros to these sizes.
pub(super) fn resized(self_: &Tensor, dims: &[i64], sizes: &[i64]) -> Result<Tensor> {
    let rank = self_.ndim();
    let (mut out, mut pad) = (self_.clone(), Dims::from_elem(0, 2 * rank));
    let mut is_short = false;
    for (&dim, &size) in dims.iter().zip(sizes) {
        let have = out.shape()[dim as usize];
        if have > size {
            out = out.slice(dim, Some(0), Some(size), 1)?;
        } else if have < size {
            // (Padding lists the last dimension first.)
            pad[2 * (rank - 1 - dim as usize) + 1] = size - have;
            is_short = true;
        }
    }
    if is_short { out.constant_pad_nd(&pad, Scalar::Int(0)) } else { Ok(out) }
}
