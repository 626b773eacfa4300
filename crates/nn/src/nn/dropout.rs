//! Dropout: elements or channels that are set to zero at random while a model is trained.

use crate::module::{Path, TensorKind};
use crate::{Forward, Module};
use pullback::{Error, Result, Tensor};

/// Declares the dropout layers by the functions that they call.
macro_rules! dropouts {
    ($($(#[$text:meta])* $name:ident => $method:ident;)*) => {$(
        $(#[$text])*
        #[derive(Clone, Debug)]
        pub struct $name {
            p: f64,
            training: bool,
        }
        impl $name {
            /// Drops with probability `p`.
            ///
            /// # Errors
            /// `ValueError` if `p` is no probability.
            pub fn new(p: f64) -> Result<Self> {
                check(p)?;
                Ok($name { p, training: true })
            }
        }
        impl Module for $name {
            fn visit(&self, _: &Path<'_>, _: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {}
            fn set_training(&mut self, training: bool) {
                self.training = training;
            }
        }
        impl Forward for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method(self.p, self.training)
            }
        }
    )*};
}

dropouts! {
    /// Sets each element to 0 with probability `p`, else divides it by `1 - p`; in evaluation
    /// nothing changes.
    Dropout => dropout;
    /// As [`Dropout`] for whole channels of `(N, C, ..)`.
    FeatureDropout => feature_dropout;
    /// Dropout that keeps mean and variance behind [`super::SELU`].
    AlphaDropout => alpha_dropout;
    /// As [`AlphaDropout`] for whole channels of `(N, C, ..)`.
    FeatureAlphaDropout => feature_alpha_dropout;
}

/// [`FeatureDropout`] of sequences.
pub type Dropout1d = FeatureDropout;
/// [`FeatureDropout`] of images.
pub type Dropout2d = FeatureDropout;
/// [`FeatureDropout`] of volumes.
pub type Dropout3d = FeatureDropout;

/// Refuses numbers that are no probabilities.
pub(super) fn check(p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(Error::value(format!("dropout probability has to be between 0 and 1, but got {p}")))
}
