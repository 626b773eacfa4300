//! Tables of vectors.

use super::init;
use crate::{Forward, Module};
use pullback::{Error, Result, Tensor, TensorOptions, no_grad};

/// Options of [`Embedding`].
#[derive(Clone, Debug, Default)]
pub struct EmbeddingOptions {
    /// The row that is zero initially and gets no gradient.
    pub padding_idx: Option<i64>,
    /// Whether gradients are divided by how often a row was looked up.
    pub scale_grad_by_freq: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

/// Rows of a table by their numbers: whole numbers `(..)` to `(.., embedding_dim)`. The table is
/// initialised with standard normal numbers.
#[derive(Clone, Debug, Module)]
pub struct Embedding {
    /// The table, `(num_embeddings, embedding_dim)`.
    pub weight: Tensor,
    padding_idx: i64,
    scale_grad_by_freq: bool,
}

impl Embedding {
    /// A table.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(num_embeddings: i64, embedding_dim: i64) -> Result<Self> {
        Embedding::with(num_embeddings, embedding_dim, &EmbeddingOptions::default())
    }
    /// A table with these options.
    ///
    /// # Errors
    /// `ValueError` for a padding row that is not there, `RuntimeError` for negative sizes; out of memory.
    pub fn with(rows: i64, embedding_dim: i64, options: &EmbeddingOptions) -> Result<Self> {
        let t = options.tensors.clone().requires_grad(true);
        let padding = options.padding_idx;
        let padding_idx = match padding {
            None => -1,
            Some(row) if (0..rows).contains(&row) => row,
            Some(row) if (-rows..0).contains(&row) => row + rows,
            Some(row) => {
                let text = format!("Padding_idx must be within num_embeddings: {row} of {rows}");
                return Err(Error::value(text));
            }
        };
        let weight = t.empty([rows, embedding_dim])?;
        init::normal_(&weight, 0.0, 1.0, t.drawn_from())?;
        if padding.is_some() {
            let _off = no_grad();
            weight.select(0, padding_idx)?.zero_()?;
        }
        let scale_grad_by_freq = options.scale_grad_by_freq;
        Ok(Embedding { weight, padding_idx, scale_grad_by_freq })
    }
}

impl Forward for Embedding {
    fn forward(&self, indices: &Tensor) -> Result<Tensor> {
        self.weight.embedding(indices, self.padding_idx, self.scale_grad_by_freq, false)
    }
}
