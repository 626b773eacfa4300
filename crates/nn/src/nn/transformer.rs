//! The encoder of the Transformer (Vaswani and others 2017).

use super::{
    Dropout, LayerNorm, LayerNormOptions, Linear, LinearOptions, MultiheadAttention,
    MultiheadAttentionOptions,
};
use crate::{Forward, Module};
use pullback::{Result, Tensor, TensorOptions};

/// The function between the two linear maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The rectifier.
    #[default]
    ReLU,
    /// `x Phi(x)`.
    GELU,
}

/// Options of [`TransformerEncoderLayer`].
#[derive(Clone, Debug)]
pub struct TransformerEncoderLayerOptions {
    /// Features between the two linear maps.
    pub dim_feedforward: i64,
    /// The probability of dropping.
    pub dropout: f64,
    /// What is between the linear maps.
    pub activation: Activation,
    /// What is added to variances.
    pub layer_norm_eps: f64,
    /// Whether batches are `(N, S, E)` instead of `(S, N, E)`.
    pub batch_first: bool,
    /// Whether norms come before attention and linear maps, not after.
    pub norm_first: bool,
    /// Whether linear maps and norms have biases.
    pub bias: bool,
    /// How the parameters are made.
    pub tensors: TensorOptions,
}

impl Default for TransformerEncoderLayerOptions {
    fn default() -> Self {
        TransformerEncoderLayerOptions {
            dim_feedforward: 2048,
            dropout: 0.1,
            activation: Activation::ReLU,
            layer_norm_eps: 1e-5,
            batch_first: false,
            norm_first: false,
            bias: true,
            tensors: TensorOptions::new(),
        }
    }
}

/// Attention of a sequence to itself, then a network of two linear maps, each with a norm and a way around it.
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoderLayer {
    self_attn: MultiheadAttention,
    linear1: Linear,
    dropout: Dropout,
    linear2: Linear,
    norm1: LayerNorm,
    norm2: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    #[module(skip)]
    activation: Activation,
    norm_first: bool,
}

impl TransformerEncoderLayer {
    /// A layer with the default options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn new(d_model: i64, nhead: i64) -> Result<Self> {
        TransformerEncoderLayer::with(d_model, nhead, &TransformerEncoderLayerOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn with(
        d_model: i64,
        nhead: i64,
        options: &TransformerEncoderLayerOptions,
    ) -> Result<Self> {
        let TransformerEncoderLayerOptions { dropout, bias, .. } = *options;
        let tensors = || options.tensors.clone();
        let attention = MultiheadAttentionOptions {
            dropout,
            bias,
            batch_first: options.batch_first,
            tensors: tensors(),
        };
        let linear = LinearOptions { bias, tensors: tensors() };
        let eps = options.layer_norm_eps;
        let norm = LayerNormOptions { eps, bias, tensors: tensors(), ..Default::default() };
        Ok(TransformerEncoderLayer {
            self_attn: MultiheadAttention::with(d_model, nhead, &attention)?,
            linear1: Linear::with(d_model, options.dim_feedforward, &linear)?,
            dropout: Dropout::new(dropout)?,
            linear2: Linear::with(options.dim_feedforward, d_model, &linear)?,
            norm1: LayerNorm::with(d_model, &norm)?,
            norm2: LayerNorm::with(d_model, &norm)?,
            dropout1: Dropout::new(dropout)?,
            dropout2: Dropout::new(dropout)?,
            activation: options.activation,
            norm_first: options.norm_first,
        })
    }

    fn attended(&self, x: &Tensor, mask: Option<&Tensor>, causal: bool) -> Result<Tensor> {
        self.dropout1.forward(&self.self_attn.forward([x, x, x], mask, causal)?)
    }
    fn fed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.linear1.forward(x)?;
        let x = match self.activation {
            Activation::ReLU => x.relu()?,
            Activation::GELU => x.gelu()?,
        };
        self.dropout2.forward(&self.linear2.forward(&self.dropout.forward(&x)?)?)
    }

    /// The layer with a mask, see [`MultiheadAttention::forward`].
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit.
    pub fn forward_masked(
        &self,
        x: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
    ) -> Result<Tensor> {
        if self.norm_first {
            let x = x.add(&self.attended(&self.norm1.forward(x)?, mask, causal)?)?;
            return x.add(&self.fed_forward(&self.norm2.forward(&x)?)?);
        }
        let x = self.norm1.forward(&x.add(&self.attended(x, mask, causal)?)?)?;
        self.norm2.forward(&x.add(&self.fed_forward(&x)?)?)
    }
}

impl Forward for TransformerEncoderLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_masked(x, None, false)
    }
}

/// Layers one after the other, and a last norm.
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The last norm.
    pub norm: Option<LayerNorm>,
}

impl TransformerEncoder {
    /// The stack with a mask for each layer, see [`MultiheadAttention::forward`].
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit.
    pub fn forward_masked(
        &self,
        x: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
    ) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.layers {
            x = layer.forward_masked(&x, mask, causal)?;
        }
        self.norm.as_ref().map_or(Ok(x.clone()), |norm| norm.forward(&x))
    }
}

impl Forward for TransformerEncoder {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_masked(x, None, false)
    }
}
