//! Losses, which training minimises. Each is a struct with a default, and compares an input with a
//! target.

use pullback::{Result, Tensor};

/// How the losses of the elements become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Losses are not reduced.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    /// The number of the reduction in signatures.
    fn code(self) -> i64 {
        match self {
            Reduction::None => 0,
            Reduction::Mean => 1,
            Reduction::Sum => 2,
        }
    }
}

/// The `ignore_index` of losses that ignore no class.
const NO_CLASS: i64 = -100;

/// Losses: name, fields, function.
macro_rules! losses {
    ($($(#[$text:meta])* $name:ident { $($(#[$field_text:meta])* $field:ident: $type:ty = $default:expr),* } |$self:ident, $x:ident, $y:ident| $body:expr;)*) => {$(
        $(#[$text])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_text])* pub $field: $type,)*
            /// How the losses of the elements become one number.
            pub reduction: Reduction,
        }
        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* reduction: Reduction::Mean }
            }
        }
        impl $name {
            /// The loss of an input and its target.
            ///
            /// # Errors
            /// `RuntimeError` for shapes and dtypes that do not fit.
            #[track_caller]
            pub fn forward(&self, $x: &Tensor, $y: &Tensor) -> Result<Tensor> {
                let $self = self;
                let _ = $self.reduction;
                $body
            }
        }
    )*};
}

losses! {
    /// `(x - y)^2`.
    MSELoss {} |loss, x, y| {
        let (x, y) = broadcast(x, y)?;
        x.mse_loss(&y, loss.reduction.code())
    };

    /// `|x - y|`.
    L1Loss {} |loss, x, y| {
        let (x, y) = broadcast(x, y)?;
        x.l1_loss(&y, loss.reduction.code())
    };

    /// A square near zero, of half-width `beta` (1 by default), and a line beyond: `(x - y)^2 / (2 beta)` or `|x - y| - beta / 2`.
    SmoothL1Loss {
        /// The half-width.
        beta: f64 = 1.0
    } |loss, x, y| {
        let (x, y) = broadcast(x, y)?;
        x.smooth_l1_loss(&y, loss.reduction.code(), loss.beta)
    };

    /// As [`SmoothL1Loss`], times the half-width.
    HuberLoss {
        /// The half-width.
        delta: f64 = 1.0
    } |loss, x, y| {
        let (x, y) = broadcast(x, y)?;
        x.huber_loss(&y, loss.reduction.code(), loss.delta)
    };

    /// The cross entropy of probabilities `x` and `y`.
    BCELoss {
        /// A factor for each element.
        weight: Option<Tensor> = None
    } |loss, x, y| x.binary_cross_entropy(y, loss.weight.as_ref(), loss.reduction.code());

    /// [`BCELoss`] of the sigmoid of `x`, computed without overflow.
    BCEWithLogitsLoss {
        /// A factor for each element.
        weight: Option<Tensor> = None,
        /// A factor for each class where the target is one.
        pos_weight: Option<Tensor> = None
    } |loss, x, y| x.binary_cross_entropy_with_logits(
        y,
        loss.weight.as_ref(),
        loss.pos_weight.as_ref(),
        loss.reduction.code(),
    );

    /// `-x[class]` of logarithms of probabilities `(N, C, ..)` and classes `(N, ..)`.
    NLLLoss {
        /// A factor for each class.
        weight: Option<Tensor> = None,
        /// The class of targets that do not count.
        ignore_index: Option<i64> = None
    } |loss, x, y| x.nll_loss_nd(
        y,
        loss.weight.as_ref(),
        loss.reduction.code(),
        loss.ignore_index.unwrap_or(NO_CLASS),
    );

    /// [`NLLLoss`] of the logarithm of the softmax of `x`; the target may also be probabilities of the shape of `x`.
    ///
    /// ```
    /// use pullback_nn::prelude::*;
    /// # fn main() -> Result<()> {
    /// let scores = Tensor::from([[2.0, 0.0], [0.0, 2.0]])?;
    /// let classes = Tensor::from([0_i64, 1])?;
    /// let loss = CrossEntropyLoss { label_smoothing: 0.1, ..Default::default() };
    /// let number = loss.forward(&scores, &classes)?.item()?.to_f64();
    /// assert!((number - 0.226_928).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    CrossEntropyLoss {
        /// A factor for each class.
        weight: Option<Tensor> = None,
        /// The class of targets that do not count.
        ignore_index: Option<i64> = None,
        /// The share of the uniform distribution in the target.
        label_smoothing: f64 = 0.0
    } |loss, x, y| x.cross_entropy_loss(
        y,
        loss.weight.as_ref(),
        loss.reduction.code(),
        loss.ignore_index.unwrap_or(NO_CLASS),
        loss.label_smoothing,
    );
}

/// The divergence of Kullback and Leibler, `y (log y - x)`, with the input given by its logarithm.
#[derive(Clone, Debug, Default)]
pub struct KLDivLoss {
    /// How the losses of the elements become one number.
    pub reduction: Reduction,
    /// Whether the target is given by its logarithm, too.
    pub log_target: bool,
    /// Whether the sum is divided by the size of the first dimension, as the definition of the
    /// divergence of a batch requires; `reduction` is ignored then.
    pub batch_mean: bool,
}

impl KLDivLoss {
    /// The loss of an input and its target.
    ///
    /// # Errors
    /// `RuntimeError` for shapes and dtypes that do not fit.
    #[track_caller]
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        if !self.batch_mean {
            return input.kl_div_with(target, self.reduction.code(), self.log_target);
        }
        let sum = input.kl_div_with(target, Reduction::Sum.code(), self.log_target)?;
        let batch = input.shape().first().copied().unwrap_or(1);
        sum.div(&Tensor::wrapped(batch)?)
    }
}

/// Both tensors, broadcast to their common shape.
fn broadcast(x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    if x.shape() == y.shape() {
        return Ok((x.clone(), y.clone()));
    }
    let both = Tensor::broadcast(&[x, y])?;
    let [x, y] = <[Tensor; 2]>::try_from(both)
        .map_err(|_| pullback::Error::runtime("two tensors broadcast to two"))?;
    Ok((x, y))
}
