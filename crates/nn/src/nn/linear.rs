//! Affine layers.

use super::init;
use crate::{Forward, Module};
use pullback::{Error, Result, Tensor, TensorOptions};

/// Options of [`Linear`] and [`Bilinear`].
#[derive(Clone, Debug)]
pub struct LinearOptions {
    /// Whether there is a bias.
    pub bias: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for LinearOptions {
    fn default() -> Self {
        LinearOptions { bias: true, tensors: TensorOptions::new() }
    }
}

/// `y = x weight^T + bias`: `(.., in_features)` to `(.., out_features)`.
///
/// Weight `(out_features, in_features)` and bias `(out_features)` are at first from `U(-b, b)`, `b = 1 / sqrt(in_features)`.
#[derive(Clone, Debug, Module)]
pub struct Linear {
    /// The matrix.
    pub weight: Tensor,
    /// The bias.
    pub bias: Option<Tensor>,
}

impl Linear {
    /// A layer with a bias.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(in_features: i64, out_features: i64) -> Result<Self> {
        Linear::with(in_features, out_features, &LinearOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn with(in_features: i64, out_features: i64, options: &LinearOptions) -> Result<Self> {
        let t = options.tensors.clone().requires_grad(true);
        let weight = t.empty([out_features, in_features])?;
        let bias = options.bias.then(|| t.empty([out_features])).transpose()?;
        init::reset(&weight, bias.as_ref(), t.drawn_from())?;
        Ok(Linear { weight, bias })
    }
}

impl Forward for Linear {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.linear(&self.weight, self.bias.as_ref())
    }
}

/// `y_k = a^T weight_k b + bias_k`: `(.., in1)` and `(.., in2)` to `(.., out)`.
#[derive(Clone, Debug, Module)]
pub struct Bilinear {
    /// The weight, `(out, in1, in2)`.
    pub weight: Tensor,
    /// The bias.
    pub bias: Option<Tensor>,
}

impl Bilinear {
    /// A layer with a bias.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(in1_features: i64, in2_features: i64, out_features: i64) -> Result<Self> {
        let sizes = [out_features, in1_features, in2_features];
        Bilinear::with(sizes, &LinearOptions::default())
    }
    /// A layer with these options; `sizes` are those of the weight, `[out, in1, in2]`.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn with(sizes: [i64; 3], options: &LinearOptions) -> Result<Self> {
        let t = options.tensors.clone().requires_grad(true);
        let weight = t.empty(sizes)?;
        let bias = options.bias.then(|| t.empty([sizes[0]])).transpose()?;
        let bound = 1.0 / (sizes[1] as f64).sqrt();
        for parameter in std::iter::once(&weight).chain(&bias) {
            init::uniform_(parameter, -bound, bound, t.drawn_from())?;
        }
        Ok(Bilinear { weight, bias })
    }
    /// The layer applied to both inputs.
    ///
    /// # Errors
    /// `RuntimeError` for sizes that do not fit.
    pub fn forward(&self, first: &Tensor, second: &Tensor) -> Result<Tensor> {
        let [out, in1, in2] = *self.weight.shape() else {
            return Err(Error::runtime("the weight of a bilinear layer has three dimensions"));
        };
        let (batch, features) = first.shape().split_at(first.ndim().saturating_sub(1));
        if features != [in1] || second.shape().split_last() != Some((&in2, batch)) {
            return Err(Error::runtime(format!(
                "bilinear: inputs {:?} and {:?} do not fit a weight {:?}",
                first.shape(),
                second.shape(),
                self.weight.shape()
            )));
        }
        // First `a^T W`, a row for each output, then the product with `b`.
        let rows = self.weight.permute(&[1, 0, 2])?.reshape(&[in1, out * in2])?;
        let left = first.reshape(&[-1, in1])?.mm(&rows)?.reshape(&[-1, out, in2])?;
        let y = left.bmm(&second.reshape(&[-1, in2, 1])?)?;
        let y = y.reshape(&[batch, &[out]].concat())?;
        self.bias.as_ref().map_or(Ok(y.clone()), |bias| y.add(bias))
    }
}
