//! Normalisation of each example by itself: `LayerNorm`, `RMSNorm`, `GroupNorm`.

use crate::{Forward, Module};
use pullback::{Error, Result, Tensor, TensorOptions};

/// Options of [`LayerNorm`].
#[derive(Clone, Debug)]
pub struct LayerNormOptions {
    /// The number that is added to the variance.
    pub eps: f64,
    /// Whether there is a weight (and a bias).
    pub elementwise_affine: bool,
    /// Whether there is a bias beside the weight.
    pub bias: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for LayerNormOptions {
    fn default() -> Self {
        let tensors = TensorOptions::new();
        LayerNormOptions { eps: 1e-5, elementwise_affine: true, bias: true, tensors }
    }
}

/// `(x - mean) / sqrt(var + eps) weight + bias` over the last dimensions (Ba, Kiros and Hinton 2016).
#[derive(Clone, Debug, Module)]
pub struct LayerNorm {
    /// The weight, initially ones.
    pub weight: Option<Tensor>,
    /// The bias, initially zeros.
    pub bias: Option<Tensor>,
    normalized_shape: Vec<i64>,
    eps: f64,
}

impl LayerNorm {
    /// A layer over dimensions of these sizes.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(normalized_shape: impl pullback::Sizes) -> Result<Self> {
        LayerNorm::with(normalized_shape, &LayerNormOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn with(
        normalized_shape: impl pullback::Sizes,
        options: &LayerNormOptions,
    ) -> Result<Self> {
        let shape = normalized_shape.sizes();
        let t = options.tensors.clone().requires_grad(true);
        let affine = options.elementwise_affine;
        Ok(LayerNorm {
            weight: affine.then(|| t.ones(&shape)).transpose()?,
            bias: (affine && options.bias).then(|| t.zeros(&shape)).transpose()?,
            normalized_shape: shape.to_vec(),
            eps: options.eps,
        })
    }
}

impl Forward for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
        x.layer_norm(&self.normalized_shape, weight, bias, self.eps, true)
    }
}

/// Options of [`RMSNorm`].
#[derive(Clone, Debug)]
pub struct RMSNormOptions {
    /// The number that is added to the mean square; if `None`, the machine epsilon of the dtype.
    pub eps: Option<f64>,
    /// Whether there is a weight.
    pub elementwise_affine: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for RMSNormOptions {
    fn default() -> Self {
        RMSNormOptions { eps: None, elementwise_affine: true, tensors: TensorOptions::new() }
    }
}

/// `x / sqrt(mean(x^2) + eps) weight` over the last dimensions (Zhang and Sennrich 2019).
#[derive(Clone, Debug, Module)]
pub struct RMSNorm {
    /// The weight, initially ones.
    pub weight: Option<Tensor>,
    normalized_shape: Vec<i64>,
    eps: Option<f64>,
}

impl RMSNorm {
    /// A layer over dimensions of these sizes.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(normalized_shape: impl pullback::Sizes) -> Result<Self> {
        RMSNorm::with(normalized_shape, &RMSNormOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn with(normalized_shape: impl pullback::Sizes, options: &RMSNormOptions) -> Result<Self> {
        let shape = normalized_shape.sizes();
        let t = options.tensors.clone().requires_grad(true);
        let weight = options.elementwise_affine.then(|| t.ones(&shape)).transpose()?;
        Ok(RMSNorm { weight, normalized_shape: shape.to_vec(), eps: options.eps })
    }
}

impl Forward for RMSNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.rms_norm(&self.normalized_shape, self.weight.as_ref(), self.eps)
    }
}

/// Options of [`GroupNorm`].
#[derive(Clone, Debug)]
pub struct GroupNormOptions {
    /// The number that is added to the variance.
    pub eps: f64,
    /// Whether there are a weight and a bias.
    pub affine: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for GroupNormOptions {
    fn default() -> Self {
        GroupNormOptions { eps: 1e-5, affine: true, tensors: TensorOptions::new() }
    }
}

/// [`LayerNorm`] over groups of the channels of `(N, C, ..)`, with a weight and a bias for each channel (Wu and He 2018).
#[derive(Clone, Debug, Module)]
pub struct GroupNorm {
    /// The weight, initially ones.
    pub weight: Option<Tensor>,
    /// The bias, initially zeros.
    pub bias: Option<Tensor>,
    num_groups: i64,
    eps: f64,
}

impl GroupNorm {
    /// A layer for this number of groups of this number of channels in all.
    ///
    /// # Errors
    /// `ValueError` if they cannot be divided; out of memory.
    pub fn new(num_groups: i64, num_channels: i64) -> Result<Self> {
        GroupNorm::with(num_groups, num_channels, &GroupNormOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `ValueError` if they cannot be divided; out of memory.
    pub fn with(num_groups: i64, num_channels: i64, options: &GroupNormOptions) -> Result<Self> {
        if num_groups <= 0 || num_channels % num_groups != 0 {
            return Err(Error::value(format!(
                "num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )));
        }
        let t = options.tensors.clone().requires_grad(true);
        Ok(GroupNorm {
            weight: options.affine.then(|| t.ones([num_channels])).transpose()?,
            bias: options.affine.then(|| t.zeros([num_channels])).transpose()?,
            num_groups,
            eps: options.eps,
        })
    }
}

impl Forward for GroupNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
        x.group_norm(self.num_groups, weight, bias, self.eps, true)
    }
}
