//! Normalisation over a batch, with running statistics for evaluation.

use crate::module::{Path, TensorKind};
use crate::{Forward, Module};
use pullback::{DType, Error, Result, Tensor, TensorOptions, no_grad};

/// Options of [`BatchNorm`].
#[derive(Clone, Debug)]
pub struct BatchNormOptions {
    /// The number that is added to the variance.
    pub eps: f64,
    /// The share of a new batch in the running statistics; if `None`, all batches count equally.
    pub momentum: Option<f64>,
    /// Whether there are a weight and a bias.
    pub affine: bool,
    /// Whether running statistics are kept; without them evaluation normalises over its own batch.
    pub track_running_stats: bool,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for BatchNormOptions {
    fn default() -> Self {
        BatchNormOptions {
            eps: 1e-5,
            momentum: Some(0.1),
            affine: true,
            track_running_stats: true,
            tensors: TensorOptions::new(),
        }
    }
}

/// Running statistics.
#[derive(Clone, Debug, Module)]
struct RunningStatistics {
    #[module(buffer)]
    running_mean: Tensor,
    #[module(buffer)]
    running_var: Tensor,
    #[module(buffer)]
    num_batches_tracked: Tensor,
}

/// `(x - mean) / sqrt(var + eps) weight + bias`, with mean and variance of each channel over the
/// batch and the `N` dimensions behind the channels (Ioffe and Szegedy 2015). `N` is the number in
/// PyTorch's name: 1 takes `(B, C)` and `(B, C, L)`.
#[derive(Clone, Debug)]
pub struct BatchNorm<const N: usize> {
    /// The weight, initially ones.
    pub weight: Option<Tensor>,
    /// The bias, initially zeros.
    pub bias: Option<Tensor>,
    statistics: Option<RunningStatistics>,
    eps: f64,
    momentum: Option<f64>,
    training: bool,
}

/// [`BatchNorm`] of vectors and sequences.
pub type BatchNorm1d = BatchNorm<1>;
/// [`BatchNorm`] of images.
pub type BatchNorm2d = BatchNorm<2>;
/// [`BatchNorm`] of volumes.
pub type BatchNorm3d = BatchNorm<3>;

impl<const N: usize> BatchNorm<N> {
    /// A layer for this number of channels.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn new(num_features: i64) -> Result<Self> {
        BatchNorm::with(num_features, &BatchNormOptions::default())
    }
    /// A layer with these options.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    pub fn with(num_features: i64, options: &BatchNormOptions) -> Result<Self> {
        let plain = options.tensors.clone().requires_grad(false);
        let t = options.tensors.clone().requires_grad(true);
        let statistics = || -> Result<RunningStatistics> {
            Ok(RunningStatistics {
                running_mean: plain.zeros([num_features])?,
                running_var: plain.ones([num_features])?,
                num_batches_tracked: plain.clone().dtype(DType::I64).zeros(())?,
            })
        };
        Ok(BatchNorm {
            weight: options.affine.then(|| t.ones([num_features])).transpose()?,
            bias: options.affine.then(|| t.zeros([num_features])).transpose()?,
            statistics: options.track_running_stats.then(statistics).transpose()?,
            eps: options.eps,
            momentum: options.momentum,
            training: true,
        })
    }

    fn check_rank(x: &Tensor) -> Result<()> {
        let wanted = if N == 1 { 2..=3 } else { N + 2..=N + 2 };
        if wanted.contains(&x.ndim()) {
            return Ok(());
        }
        let text = if N == 1 { "2D or 3D".to_owned() } else { format!("{}D", N + 2) };
        Err(Error::value(format!("expected {text} input (got {}D input)", x.ndim())))
    }

    /// Counts the batch, and returns its share in the running statistics.
    fn counted(&self) -> Result<f64> {
        let Some(statistics) = self.statistics.as_ref().filter(|_| self.training) else {
            return Ok(self.momentum.unwrap_or(0.0));
        };
        let _off = no_grad();
        statistics.num_batches_tracked.add_(&Tensor::wrapped(1_i64)?)?;
        match self.momentum {
            Some(momentum) => Ok(momentum),
            None => Ok(1.0 / statistics.num_batches_tracked.item()?.to_f64()),
        }
    }
}

impl<const N: usize> Module for BatchNorm<N> {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        self.weight.visit(&path.child("weight"), visitor);
        self.bias.visit(&path.child("bias"), visitor);
        self.statistics.visit(path, visitor);
    }
    fn set_training(&mut self, training: bool) {
        self.training = training;
    }
}

impl<const N: usize> Forward for BatchNorm<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Self::check_rank(x)?;
        let momentum = self.counted()?;
        let (mean, var) = match &self.statistics {
            Some(statistics) => (Some(&statistics.running_mean), Some(&statistics.running_var)),
            None => (None, None),
        };
        let over_batch = self.training || self.statistics.is_none();
        let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
        x.batch_norm(weight, bias, mean, var, over_batch, momentum, self.eps, true)
    }
}
