//! Activation functions as layers. Parameters of a function are fields of its layer, with PyTorch's
//! defaults.

use crate::{Forward, Module};
use pullback::{Chain, Result, Scalar, Tensor, TensorOptions};

/// Layers without parameters: name, fields with defaults, function.
macro_rules! activations {
    ($($(#[$text:meta])* $name:ident { $($(#[$field_text:meta])* $field:ident: $type:ty = $default:expr),* } |$self:ident, $x:ident| $body:expr;)*) => {$(
        $(#[$text])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            $($(#[$field_text])* pub $field: $type,)*
        }
        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default),* }
            }
        }
        impl Forward for $name {
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                let $self = self;
                $body
            }
        }
    )*};
}

/// Layers without anything.
macro_rules! functions {
    ($($(#[$text:meta])* $name:ident => $method:ident;)*) => {$(
        $(#[$text])*
        #[derive(Clone, Copy, Debug, Default, Module)]
        pub struct $name;
        impl Forward for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method()
            }
        }
    )*};
}

functions! {
    /// `max(x, 0)`.
    ReLU => relu;
    /// `min(max(x, 0), 6)`.
    ReLU6 => relu6;
    /// `1 / (1 + exp(-x))`.
    Sigmoid => sigmoid;
    /// The hyperbolic tangent.
    Tanh => tanh;
    /// `x sigmoid(x)`.
    SiLU => silu;
    /// `x tanh(softplus(x))`.
    Mish => mish;
    /// The self-normalising exponential unit.
    SELU => selu;
    /// `log sigmoid(x)`.
    LogSigmoid => log_sigmoid;
    /// The piecewise linear sigmoid.
    Hardsigmoid => hardsigmoid;
    /// `x hardsigmoid(x)`.
    Hardswish => hardswish;
}

activations! {
    /// `x` where it is positive, else `negative_slope x`.
    LeakyReLU {
        /// The slope below zero.
        negative_slope: f64 = 0.01
    } |layer, x| x.leaky_relu(layer.negative_slope.into());

    /// `x` where it is positive, else `alpha (exp(x) - 1)`.
    ELU {
        /// The magnitude of the limit at minus infinity.
        alpha: f64 = 1.0
    } |layer, x| x.elu(layer.alpha.into(), Scalar::Int(1), Scalar::Int(1));

    /// `x` where it is positive, else `alpha (exp(x / alpha) - 1)`.
    CELU {
        /// The magnitude of the limit at minus infinity.
        alpha: f64 = 1.0
    } |layer, x| x.celu(layer.alpha.into());

    /// `x` where its distance from zero is more than `lambd`, else 0.
    Hardshrink {
        /// The half-width of the interval that becomes zero.
        lambd: f64 = 0.5
    } |layer, x| x.hardshrink(layer.lambd.into());

    /// `x` moved towards zero by `lambd`, but not beyond.
    Softshrink {
        /// The distance by which elements are moved.
        lambd: f64 = 0.5
    } |layer, x| x.softshrink(layer.lambd.into());

    /// `x / (1 + |x|)`.
    Softsign {} |_layer, x| x.div(&x.abs().add(1.0)?);

    /// `x - tanh(x)`.
    Tanhshrink {} |_layer, x| x.sub(&x.tanh()?);

    /// `log(1 + exp(beta x)) / beta`.
    Softplus {
        /// The steepness at zero.
        beta: f64 = 1.0,
        /// Above `threshold / beta` the function is `x`.
        threshold: f64 = 20.0
    } |layer, x| x.softplus(layer.beta.into(), layer.threshold.into());

    /// `x Phi(x)`, with the distribution function of the normal distribution.
    GELU {
        /// Whether the approximation by a hyperbolic tangent is computed.
        tanh: bool = false
    } |layer, x| x.gelu_with(if layer.tanh { "tanh" } else { "none" });

    /// `x` held between two numbers.
    Hardtanh {
        /// The lower limit.
        min: f64 = -1.0,
        /// The upper limit.
        max: f64 = 1.0
    } |layer, x| x.hardtanh(layer.min.into(), layer.max.into());

    /// `exp(x) / sum exp(x)` along a dimension.
    Softmax {
        /// The dimension.
        dim: i64 = -1
    } |layer, x| x.softmax(layer.dim, None);

    /// The logarithm of [`Softmax`].
    LogSoftmax {
        /// The dimension.
        dim: i64 = -1
    } |layer, x| x.log_softmax(layer.dim, None);

    /// The first half of a dimension times the sigmoid of the second.
    GLU {
        /// The dimension.
        dim: i64 = -1
    } |layer, x| x.glu(layer.dim);
}

/// `x` where it is positive, else a trained slope times `x`: one slope for all, or one for each channel of `(N, C, ..)`.
#[derive(Clone, Debug, Module)]
pub struct PReLU {
    /// The slopes, a quarter at first.
    pub weight: Tensor,
}

impl PReLU {
    /// A layer with this number of slopes.
    ///
    /// # Errors
    /// `RuntimeError` for a negative number; out of memory.
    pub fn new(num_parameters: i64) -> Result<Self> {
        PReLU::with(num_parameters, 0.25, &TensorOptions::new())
    }
    /// A layer with this number of slopes of this value.
    ///
    /// # Errors
    /// `RuntimeError` for a negative number; out of memory.
    pub fn with(num_parameters: i64, init: f64, tensors: &TensorOptions) -> Result<Self> {
        let weight = tensors.clone().requires_grad(false).empty([num_parameters])?;
        weight.fill_(Scalar::Float(init))?;
        Ok(PReLU { weight: weight.with_grad()? })
    }
}

impl Forward for PReLU {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.prelu(&self.weight)
    }
}
