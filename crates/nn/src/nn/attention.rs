//! Attention: of tensors that are projected already, and as a layer with projections.

use super::{Linear, LinearOptions, init};
use crate::module::{Path, TensorKind};
use crate::{Forward, Module};
use pullback::{Error, Result, Tensor, TensorOptions};

/// `softmax(q k^T / sqrt(E) + mask) v` of `(N, H, L, E)`, `(N, H, S, E)` and `(N, H, S, F)`.
///
/// A mask broadcasts to `(N, H, L, S)`: truth values, true where attention is paid, or numbers that are added. With `causal`
/// position `i` sees `j <= i` alone. Weights are dropped with probability `dropout`.
///
/// # Errors
/// `RuntimeError` for shapes that do not fit, and for a mask beside `causal`.
pub fn scaled_dot_product_attention(
    [q, k, v]: [&Tensor; 3],
    mask: Option<&Tensor>,
    dropout: f64,
    causal: bool,
) -> Result<Tensor> {
    q.scaled_dot_product_attention(k, v, mask, dropout, causal)
}

/// Options of [`MultiheadAttention`].
#[derive(Clone, Debug)]
pub struct MultiheadAttentionOptions {
    /// The probability of dropping a weight while training.
    pub dropout: f64,
    /// Whether projections have biases.
    pub bias: bool,
    /// Whether batches are `(N, L, E)` instead of `(L, N, E)`.
    pub batch_first: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for MultiheadAttentionOptions {
    fn default() -> Self {
        let tensors = TensorOptions::new();
        MultiheadAttentionOptions { dropout: 0.0, bias: true, batch_first: false, tensors }
    }
}

/// `concat(head_1, ..) W_o` with `head_i = attention(Q W_i, K W_i, V W_i)` (Vaswani and others 2017).
///
/// Query, key and value have one number of features; keys of other sizes, extra biases and zeros are not here.
#[derive(Clone, Debug)]
pub struct MultiheadAttention {
    /// The query, key and value projections, `(3 E, E)`.
    pub in_proj_weight: Tensor,
    /// The biases of these projections.
    pub in_proj_bias: Option<Tensor>,
    /// The output projection.
    pub out_proj: Linear,
    num_heads: i64,
    dropout: f64,
    batch_first: bool,
    training: bool,
}

impl MultiheadAttention {
    /// A layer with the default options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn new(embed_dim: i64, num_heads: i64) -> Result<Self> {
        MultiheadAttention::with(embed_dim, num_heads, &MultiheadAttentionOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn with(
        embed_dim: i64,
        num_heads: i64,
        options: &MultiheadAttentionOptions,
    ) -> Result<Self> {
        if embed_dim <= 0 || num_heads <= 0 || embed_dim % num_heads != 0 {
            return Err(Error::value(format!(
                "embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}"
            )));
        }
        super::dropout::check(options.dropout)?;
        let t = options.tensors.clone().requires_grad(true);
        let linear = LinearOptions { bias: options.bias, tensors: t.clone() };
        // PyTorch draws the last projection first.
        let in_proj_weight = t.empty([3 * embed_dim, embed_dim])?;
        let out_proj = Linear::with(embed_dim, embed_dim, &linear)?;
        init::xavier_uniform_(&in_proj_weight, 1.0, t.drawn_from())?;
        let in_proj_bias = options.bias.then(|| t.zeros([3 * embed_dim])).transpose()?;
        if let Some(bias) = &out_proj.bias {
            init::constant_(bias, 0.0)?;
        }
        Ok(MultiheadAttention {
            in_proj_weight,
            in_proj_bias,
            out_proj,
            num_heads,
            dropout: options.dropout,
            batch_first: options.batch_first,
            training: true,
        })
    }

    /// `(N, H, T, E / H)` of one of the projections.
    fn heads(&self, x: &Tensor, third: i64) -> Result<Tensor> {
        let width = self.in_proj_weight.shape()[1];
        let weight = self.in_proj_weight.narrow(0, third * width, width)?;
        let bias = self.in_proj_bias.as_ref().map(|b| b.narrow(0, third * width, width));
        let x = x.linear(&weight, bias.transpose()?.as_ref())?;
        let &[batch, length, _] = x.shape() else {
            let text = format!("queries, keys and values have three dimensions, got {}", x.ndim());
            return Err(Error::runtime(text));
        };
        x.view(&[batch, length, self.num_heads, width / self.num_heads])?.transpose(1, 2)
    }

    /// Attention of `query` to `key` and `value`. A mask broadcasts to `(N, H, L, S)`: truth values, true where attention is
    /// paid (PyTorch's layer has it the other way), or numbers that are added to the scores.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit, and for a mask beside `causal`.
    pub fn forward(
        &self,
        [query, key, value]: [&Tensor; 3],
        mask: Option<&Tensor>,
        causal: bool,
    ) -> Result<Tensor> {
        let transposed =
            |x: &Tensor| if self.batch_first { Ok(x.clone()) } else { x.transpose(0, 1) };
        let q = self.heads(&transposed(query)?, 0)?;
        let k = self.heads(&transposed(key)?, 1)?;
        let v = self.heads(&transposed(value)?, 2)?;
        let dropout = if self.training { self.dropout } else { 0.0 };
        let y = scaled_dot_product_attention([&q, &k, &v], mask, dropout, causal)?;
        let y = self.out_proj.forward(&y.transpose(1, 2)?.flatten(2, 3)?)?;
        transposed(&y)
    }
}

impl Module for MultiheadAttention {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        self.in_proj_weight.visit(&path.child("in_proj_weight"), visitor);
        self.in_proj_bias.visit(&path.child("in_proj_bias"), visitor);
        self.out_proj.visit(&path.child("out_proj"), visitor);
    }
    fn set_training(&mut self, training: bool) {
        self.training = training;
    }
}
