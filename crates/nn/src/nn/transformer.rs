//! Encoder and decoder of the Transformer (Vaswani and others 2017).

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

impl Activation {
    fn of(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::ReLU => x.relu(),
            Activation::GELU => x.gelu(),
        }
    }
}

/// Options of [`TransformerEncoderLayer`] and [`TransformerDecoderLayer`].
#[derive(Clone, Debug)]
pub struct TransformerLayerOptions {
    /// Features between the two linear maps.
    pub dim_feedforward: i64,
    /// The probability of dropping.
    pub dropout: f64,
    /// The function between the linear maps.
    pub activation: Activation,
    /// The number that is added to variances.
    pub layer_norm_eps: f64,
    /// Whether batches are `(N, S, E)` instead of `(S, N, E)`.
    pub batch_first: bool,
    /// Whether norms come before attention and linear maps, not after.
    pub norm_first: bool,
    /// Whether linear maps and norms have biases.
    pub bias: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for TransformerLayerOptions {
    fn default() -> Self {
        TransformerLayerOptions {
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

/// The parts of the layers, as far as the options require them.
struct LayerParts {
    d_model: i64,
    nhead: i64,
    attention: MultiheadAttentionOptions,
    linear: LinearOptions,
    norm: LayerNormOptions,
}

impl LayerParts {
    fn of(d_model: i64, nhead: i64, options: &TransformerLayerOptions) -> LayerParts {
        let &TransformerLayerOptions { dropout, bias, batch_first, layer_norm_eps: eps, .. } =
            options;
        let tensors = || options.tensors.clone();
        LayerParts {
            d_model,
            nhead,
            attention: MultiheadAttentionOptions { dropout, bias, batch_first, tensors: tensors() },
            linear: LinearOptions { bias, tensors: tensors() },
            norm: LayerNormOptions { eps, bias, tensors: tensors(), ..Default::default() },
        }
    }
    fn attention(&self) -> Result<MultiheadAttention> {
        MultiheadAttention::with(self.d_model, self.nhead, &self.attention)
    }
    fn norm(&self) -> Result<LayerNorm> {
        LayerNorm::with(self.d_model, &self.norm)
    }
}

/// Attention of a sequence to itself, then a network of two linear maps, each with a norm and a
/// residual connection.
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
        TransformerEncoderLayer::with(d_model, nhead, &TransformerLayerOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn with(d_model: i64, nhead: i64, options: &TransformerLayerOptions) -> Result<Self> {
        let parts = LayerParts::of(d_model, nhead, options);
        Ok(TransformerEncoderLayer {
            self_attn: parts.attention()?,
            linear1: Linear::with(d_model, options.dim_feedforward, &parts.linear)?,
            dropout: Dropout::new(options.dropout)?,
            linear2: Linear::with(options.dim_feedforward, d_model, &parts.linear)?,
            norm1: parts.norm()?,
            norm2: parts.norm()?,
            dropout1: Dropout::new(options.dropout)?,
            dropout2: Dropout::new(options.dropout)?,
            activation: options.activation,
            norm_first: options.norm_first,
        })
    }

    fn attended(&self, x: &Tensor, mask: Option<&Tensor>, causal: bool) -> Result<Tensor> {
        self.dropout1.forward(&self.self_attn.forward([x, x, x], mask, causal)?)
    }
    fn fed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.activation.of(&self.linear1.forward(x)?)?;
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
        match &self.norm {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}

impl Forward for TransformerEncoder {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_masked(x, None, false)
    }
}

/// A part of a layer with a residual connection.
type Sublayer<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;

/// The masks of the attention of a decoder, see [`MultiheadAttention::forward`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DecoderMasks<'a> {
    /// The mask of the target's attention to itself; it broadcasts to `(N, H, T, T)`.
    pub target: Option<&'a Tensor>,
    /// The mask of the target's attention to the memory; it broadcasts to `(N, H, T, S)`.
    pub memory: Option<&'a Tensor>,
    /// Whether position `i` of the target attends only to positions `j <= i` of the target, in
    /// place of a mask.
    pub causal: bool,
}

/// Attention of a sequence to itself and to a memory, the output of an encoder, then a network of
/// two linear maps, each with a norm and a residual connection.
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoderLayer {
    self_attn: MultiheadAttention,
    multihead_attn: MultiheadAttention,
    linear1: Linear,
    dropout: Dropout,
    linear2: Linear,
    norm1: LayerNorm,
    norm2: LayerNorm,
    norm3: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    dropout3: Dropout,
    #[module(skip)]
    activation: Activation,
    norm_first: bool,
}

impl TransformerDecoderLayer {
    /// A layer with the default options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn new(d_model: i64, nhead: i64) -> Result<Self> {
        TransformerDecoderLayer::with(d_model, nhead, &TransformerLayerOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` if the features cannot be divided among the heads; out of memory.
    pub fn with(d_model: i64, nhead: i64, options: &TransformerLayerOptions) -> Result<Self> {
        let parts = LayerParts::of(d_model, nhead, options);
        let dropout = || Dropout::new(options.dropout);
        Ok(TransformerDecoderLayer {
            self_attn: parts.attention()?,
            multihead_attn: parts.attention()?,
            linear1: Linear::with(d_model, options.dim_feedforward, &parts.linear)?,
            dropout: dropout()?,
            linear2: Linear::with(options.dim_feedforward, d_model, &parts.linear)?,
            norm1: parts.norm()?,
            norm2: parts.norm()?,
            norm3: parts.norm()?,
            dropout1: dropout()?,
            dropout2: dropout()?,
            dropout3: dropout()?,
            activation: options.activation,
            norm_first: options.norm_first,
        })
    }

    /// The layer on a target `(T, N, E)` and a memory `(S, N, E)`, or with the batch in front if the options say so.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit.
    pub fn forward(
        &self,
        target: &Tensor,
        memory: &Tensor,
        masks: DecoderMasks<'_>,
    ) -> Result<Tensor> {
        let to_itself = |x: &Tensor| {
            let y = self.self_attn.forward([x, x, x], masks.target, masks.causal)?;
            self.dropout1.forward(&y)
        };
        let to_memory = |x: &Tensor| {
            let y = self.multihead_attn.forward([x, memory, memory], masks.memory, false)?;
            self.dropout2.forward(&y)
        };
        let fed_forward = |x: &Tensor| {
            let x = self.activation.of(&self.linear1.forward(x)?)?;
            self.dropout3.forward(&self.linear2.forward(&self.dropout.forward(&x)?)?)
        };
        let steps: [(&LayerNorm, Sublayer<'_>); 3] =
            [(&self.norm1, &to_itself), (&self.norm2, &to_memory), (&self.norm3, &fed_forward)];
        let mut x = target.clone();
        for (norm, step) in steps {
            x = if self.norm_first {
                x.add(&step(&norm.forward(&x)?)?)?
            } else {
                norm.forward(&x.add(&step(&x)?)?)?
            };
        }
        Ok(x)
    }
}

/// Layers one after the other, and a last norm.
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// The last norm.
    pub norm: Option<LayerNorm>,
}

impl TransformerDecoder {
    /// The stack, with the same masks for each layer.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit.
    pub fn forward(
        &self,
        target: &Tensor,
        memory: &Tensor,
        masks: DecoderMasks<'_>,
    ) -> Result<Tensor> {
        let mut x = target.clone();
        for layer in &self.layers {
            x = layer.forward(&x, memory, masks)?;
        }
        match &self.norm {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}
