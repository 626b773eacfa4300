//! Layers, losses and initialisers.
//!
//! Each has PyTorch's name, names of parameters, and order of random numbers.

mod activation;
mod attention;
mod container;
mod conv;
mod dropout;
mod embedding;
pub mod init;
mod linear;
mod loss;
mod norm;
mod norm_batch;
mod pool;
mod recurrent;
mod sequence;
mod transformer;

pub use activation::*;
pub use attention::{MultiheadAttention, MultiheadAttentionOptions, scaled_dot_product_attention};
pub use container::{Flatten, Function, Identity, Sequential, function};
pub use conv::{
    Conv, Conv1d, Conv2d, Conv3d, ConvOptions, ConvTranspose, ConvTranspose1d, ConvTranspose2d,
    ConvTranspose3d, ConvTransposeOptions, Padding, PaddingMode,
};
pub use dropout::{
    AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout, FeatureDropout,
};
pub use embedding::{Embedding, EmbeddingOptions};
pub use linear::{Bilinear, Linear, LinearOptions};
pub use loss::{
    BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, HuberLoss, KLDivLoss, L1Loss, MSELoss, NLLLoss,
    Reduction, SmoothL1Loss,
};
pub use norm::{GroupNorm, GroupNormOptions, LayerNorm, LayerNormOptions, RMSNorm, RMSNormOptions};
pub use norm_batch::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormOptions};
pub use pool::{
    AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AvgPool, AvgPool1d,
    AvgPool2d, AvgPool3d, MaxPool, MaxPool1d, MaxPool2d, MaxPool3d, PoolOptions,
};
pub use recurrent::{Cell, GRU, LSTM, RNN, Recurrent, RecurrentOptions};
pub use sequence::{PackedSequence, pad_sequence};
pub use transformer::{
    Activation, DecoderMasks, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer, TransformerLayerOptions,
};
