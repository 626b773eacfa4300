//! Sparse tensors and their parts.
//!
//! A sparse tensor keeps the elements that are specified in tensors of its own, its parts; all
//! others are zero. The parts hang on its storage, so that aliases share them as they share memory,
//! and a write (`Tensor::set_sparse`) is seen by all. To code that treats it as strided it shows
//! one zero for all elements, so that nothing outside of memory can be read. Its ops are computed
//! by kernels of their own (`dispatch::sparse`, `ops::sparse`). Invariant: parts have no history,
//! and fit the sizes of each tensor that shows them; the makers in `ops::sparse` check that.

use super::{Cpu, Dims, Flag, Geometry, Layout, Storage};
use crate::{DType, Result, Tensor};
use std::sync::Arc;

/// The parts of a sparse tensor.
#[derive(Clone, Debug)]
pub enum Sparse {
    /// Coordinates and values.
    Coo(Coo),
    /// Compressed rows or columns.
    Compressed(Compressed),
}

/// Coordinates, a column for each value: (`sparse_dim`, n) and (n, *dense sizes).
#[derive(Clone, Debug)]
pub struct Coo {
    /// The coordinates, int64: (`sparse_dim`, n).
    pub indices: Tensor,
    /// The values: (n, *dense sizes). Those of equal coordinates add up.
    pub values: Tensor,
    /// Whether the coordinates are known to be in order, each once.
    pub is_coalesced: bool,
}

/// Compressed rows (or columns, or blocks) one after the other: (*batch, rows + 1), (*batch, n),
/// (*batch, n, *block, *dense sizes).
#[derive(Clone, Debug)]
pub struct Compressed {
    /// The position at which each row begins, int64 or int32, and the number of values: (*batch,
    /// rows + 1).
    pub compressed: Tensor,
    /// The column of each value, of the same dtype: (*batch, n).
    pub plain: Tensor,
    /// The values: (*batch, n, *block, *dense sizes).
    pub values: Tensor,
}

impl Sparse {
    /// The specified elements.
    pub fn values(&self) -> &Tensor {
        match self {
            Sparse::Coo(coo) => &coo.values,
            Sparse::Compressed(compressed) => &compressed.values,
        }
    }
    /// The parts with other values.
    #[must_use]
    pub fn with_values(&self, values: Tensor) -> Sparse {
        match self {
            Sparse::Coo(coo) => Sparse::Coo(Coo { values, ..coo.clone() }),
            Sparse::Compressed(c) => Sparse::Compressed(Compressed { values, ..c.clone() }),
        }
    }
    /// The parts with values in another dtype.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn converted(&self, cpu: Cpu, dtype: DType) -> Result<Sparse> {
        let values = self.values();
        Ok(if values.dtype() == dtype {
            self.clone()
        } else {
            self.with_values(values.converted(cpu, dtype)?)
        })
    }
    /// Parts of their own, with values in another dtype.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn copied(&self, cpu: Cpu, dtype: DType) -> Result<Sparse> {
        Ok(match self {
            Sparse::Coo(coo) => Sparse::Coo(Coo {
                indices: coo.indices.dense_copy(cpu)?,
                values: coo.values.converted(cpu, dtype)?,
                is_coalesced: coo.is_coalesced,
            }),
            Sparse::Compressed(parts) => Sparse::Compressed(Compressed {
                compressed: parts.compressed.dense_copy(cpu)?,
                plain: parts.plain.dense_copy(cpu)?,
                values: parts.values.converted(cpu, dtype)?,
            }),
        })
    }
    /// Whether nobody else holds a part or its memory.
    pub(crate) fn is_unshared(&self) -> bool {
        let is_sole = |part: &Tensor| {
            part.use_count() == 1
                && part.geometry().storage.as_ref().is_none_or(|s| s.use_count() == 1)
        };
        match self {
            Sparse::Coo(Coo { indices, values, .. }) => is_sole(indices) && is_sole(values),
            Sparse::Compressed(Compressed { compressed, plain, values }) => {
                is_sole(compressed) && is_sole(plain) && is_sole(values)
            }
        }
    }
}

impl Tensor {
    /// A sparse tensor of these parts, which fit `layout` and `shape`. No history.
    pub(crate) fn from_sparse(parts: Sparse, layout: Layout, shape: &[i64]) -> Result<Tensor> {
        let dtype = parts.values().dtype();
        crate::error::ensure!(
            !dtype.is_mostly_stored(),
            not_implemented,
            "sparse tensors have no kernels for '{}': keep the values in a wider dtype",
            dtype.scalar_name()
        );
        let strides: Dims = shape.iter().map(|_| 0).collect();
        let storage = Storage::of_sparse(parts)?;
        let geometry = Geometry::new(storage, 0, shape.into(), strides, dtype)?;
        Tensor::from_geometry(geometry.of_sparse_layout(layout))
    }
    /// Whether its layout is a sparse one.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.has_flag(Flag::SPARSE)
    }
    /// The parts of a sparse tensor.
    pub fn sparse(&self) -> Option<Arc<Sparse>> {
        if !self.is_sparse() {
            return None;
        }
        self.geometry().storage.as_ref()?.sparse()
    }
    /// Writes: gives a sparse tensor and its aliases other parts, which fit its layout and sizes.
    pub(crate) fn set_sparse(&self, parts: Sparse) {
        if let Some(storage) = &self.geometry().storage {
            storage.set_sparse(parts);
        }
    }
    /// Gives a sparse tensor parts of another size, which its aliases do not see. Its version goes on.
    pub(crate) fn reshape_sparse(&self, parts: Sparse, shape: &[i64]) -> Result<()> {
        let geometry = Tensor::from_sparse(parts, self.layout(), shape)?.geometry().clone();
        let version = self.version_counter().map(|counter| Arc::new(counter.fork()));
        self.set_geometry(geometry.with_version(version));
        Ok(())
    }
}
