//! Arithmetic of shapes: wrapping dimensions, broadcasting, `-1` sizes, strides of views.

use super::Dims;
use crate::error::{bail, ensure};
use crate::{Error, Result};

/// Turns a dimension counted from the end into one counted from the start; 0-dim tensors take 0 and -1.
///
/// # Errors
/// `IndexError` if it is out of range.
#[inline]
pub fn wrap_dim(dim: i64, ndim: usize) -> Result<usize> {
    let limit = ndim.max(1) as i64;
    if dim >= -limit && dim < limit {
        return Ok(if dim < 0 { dim + limit } else { dim } as usize);
    }
    Err(Error::index(format!(
        "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
        -limit,
        limit - 1
    )))
}

/// As [`wrap_dim`], for a dimension that must exist: a tensor without dimensions has none.
///
/// # Errors
/// `IndexError` out of range, or if there are no dimensions.
pub fn wrap_own_dim(dim: i64, ndim: usize) -> Result<usize> {
    ensure!(ndim > 0, index, "Dimension specified as {dim} but tensor has no dimensions");
    wrap_dim(dim, ndim)
}

/// Wraps several dimensions; `None` or an empty list means all of them.
///
/// # Errors
/// `IndexError` out of range; `RuntimeError` for a dimension named twice or more than 64 dimensions.
#[inline]
pub fn wrap_dims(dims: Option<&[i64]>, ndim: usize) -> Result<DimList> {
    match dims {
        Some(dims) if !dims.is_empty() => wrap_listed_dims(dims, ndim),
        // (The list is copied from a constant as a whole, because reading a list that was written
        // number by number waits for the writes.)
        _ if ndim <= 5 => Ok(DimList::from_buf_and_len([0, 1, 2, 3, 4], ndim)),
        _ => Ok((0..ndim).collect()),
    }
}

/// Dimensions, counted from the start.
pub type DimList = smallvec::SmallVec<[usize; 5]>;

fn wrap_listed_dims(dims: &[i64], ndim: usize) -> Result<DimList> {
    ensure!(ndim <= 64, runtime, "only tensors with up to 64 dims are supported, but got {ndim}");
    let mut seen = 0_u64;
    let mut out = DimList::new();
    for &dim in dims {
        let dim = wrap_dim(dim, ndim)?;
        ensure!(
            seen & (1 << dim) == 0,
            runtime,
            "dim {dim} appears multiple times in the list of dims"
        );
        seen |= 1 << dim;
        if ndim > 0 {
            out.push(dim);
        }
    }
    Ok(out)
}

/// The common shape that all of `shapes` broadcast to.
///
/// # Errors
/// `RuntimeError` naming the sizes that do not match.
pub fn broadcast_shapes(shapes: &[&[i64]]) -> Result<Dims> {
    let Some((first, rest)) = shapes.split_first() else { return Ok(Dims::new()) };
    let mut out = Dims::from_slice(first);
    for shape in rest {
        if out.as_slice() == *shape {
            continue;
        }
        while out.len() < shape.len() {
            out.insert(0, 1);
        }
        let skip = out.len() - shape.len();
        // (From the last dimension on: of several that do not match, PyTorch names the last.)
        for (index, &size) in shape.iter().enumerate().rev() {
            let target = &mut out[skip + index];
            if *target == 1 {
                *target = size;
            } else if size != 1 && size != *target {
                bail!(
                    runtime,
                    "The size of tensor a ({target}) must match the size of tensor b ({size}) at non-singleton dimension {}",
                    skip + index
                );
            }
        }
    }
    Ok(out)
}

/// Strides with which a tensor of `shape`/`strides` reads as `target`: zero where it repeats.
///
/// # Errors
/// `RuntimeError` if it does not broadcast.
pub fn broadcast_strides(shape: &[i64], strides: &[i64], target: &[i64]) -> Result<Dims> {
    ensure!(
        shape.len() <= target.len(),
        runtime,
        "expand({shape:?}, size={target:?}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
        target.len(),
        shape.len()
    );
    let mut out = Dims::from_elem(0, target.len());
    let skip = target.len() - shape.len();
    for index in (0..shape.len()).rev() {
        if shape[index] == target[skip + index] {
            out[skip + index] = strides[index];
        } else {
            ensure!(
                shape[index] == 1,
                runtime,
                "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {}.  Target sizes: {target:?}.  Tensor sizes: {shape:?}",
                target[skip + index],
                shape[index],
                skip + index
            );
        }
    }
    Ok(out)
}

/// Replaces one `-1` in `shape` so that it has `numel` elements.
///
/// # Errors
/// `RuntimeError` for an impossible shape.
pub fn infer_shape(shape: &[i64], numel: i64) -> Result<Dims> {
    let mut unknown = None;
    let mut known = 1_i64;
    for (index, &size) in shape.iter().enumerate() {
        if size == -1 {
            ensure!(unknown.is_none(), runtime, "only one dimension can be inferred");
            unknown = Some(index);
        } else {
            ensure!(
                size >= 0,
                runtime,
                "invalid shape dimension {size} at index {index} of shape {shape:?}"
            );
            known = known.saturating_mul(size);
        }
    }
    let mut out = super::dims(shape);
    let invalid =
        || Error::runtime(format!("shape '{}' is invalid for input of size {numel}", list(shape)));
    match unknown {
        None if known == numel => {}
        Some(index) if known > 0 && numel % known == 0 => out[index] = numel / known,
        Some(_) if known == 0 && numel == 0 => bail!(
            runtime,
            "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any value and is ambiguous",
            list(shape)
        ),
        _ => return Err(invalid()),
    }
    Ok(out)
}

/// `[2, 3]`, as messages print sizes.
pub fn list(shape: &[i64]) -> String {
    let parts: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("[{}]", parts.join(", "))
}

/// Strides with which the same memory reads as `target` (equal element count), if there are any.
pub fn view_strides(shape: &[i64], strides: &[i64], target: &[i64]) -> Option<Dims> {
    if shape.contains(&0) {
        return Some(super::contiguous_strides(target));
    }
    let mut out = Dims::from_elem(1, target.len());
    let mut at = target.len();
    let mut block_numel = 1;
    let mut block_stride = strides.last().copied().unwrap_or(1);
    // Walk from the inside; each maximal run of dimensions that lie one after another in memory may
    // be split differently.
    for dim in (0..shape.len()).rev() {
        block_numel *= shape[dim];
        let ends =
            dim == 0 || (shape[dim - 1] != 1 && strides[dim - 1] != block_numel * block_stride);
        if !ends {
            continue;
        }
        let mut used = 1;
        while at > 0 && (used < block_numel || target[at - 1] == 1) {
            at -= 1;
            out[at] = used * block_stride;
            used *= target[at];
        }
        if used != block_numel {
            return None;
        }
        if dim > 0 {
            block_numel = 1;
            block_stride = strides[dim - 1];
        }
    }
    // The dimensions that remain can only be of size 1.
    while at > 0 {
        at -= 1;
        if target[at] != 1 {
            return None;
        }
        out[at] = if at + 1 < target.len() { out[at + 1] * target[at + 1] } else { 1 };
    }
    Some(out)
}
