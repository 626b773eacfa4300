//! The ops of `torch.nn`: activations, convolutions, pooling, norms, losses, recurrent layers and what else modules
//! need.

pub(in crate::ops) mod activation;
pub(in crate::ops) mod activation_smooth;
pub(in crate::ops) mod antialias;
pub(in crate::ops) mod attention;
mod attention_derivative;
pub(in crate::ops) mod attention_flash;
pub(in crate::ops) mod cdist;
pub(in crate::ops) mod conv;
pub(in crate::ops) mod ctc;
mod ctc_curvature;
pub(in crate::ops) mod dropout;
pub(in crate::ops) mod embedding;
pub(in crate::ops) mod embedding_bag;
pub(in crate::ops) mod fold;
pub(in crate::ops) mod grid;
pub(in crate::ops) mod grid_derivative;
pub(in crate::ops) mod loss;
pub(in crate::ops) mod loss_class;
pub(in crate::ops) mod margin;
pub(in crate::ops) mod norm;
pub(in crate::ops) mod norm_backward;
pub(in crate::ops) mod norm_group;
pub(in crate::ops) mod norm_legit;
pub(in crate::ops) mod pad;
pub(in crate::ops) mod pixel;
pub(in crate::ops) mod pool;
pub(in crate::ops) mod pool_adaptive;
pub(in crate::ops) mod pool_average;
mod pool_window;
pub(in crate::ops) mod rnn;
pub(in crate::ops) mod rnn_backward;
pub(in crate::ops) mod rnn_layer;
mod rnn_operands;
pub(in crate::ops) mod softmax;
pub(in crate::ops) mod upsample;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    embedding::OPS,
    embedding_bag::OPS,
    pad::OPS,
    pixel::OPS,
    grid::OPS,
    antialias::OPS,
    upsample::OPS,
    fold::OPS,
    conv::OPS,
    pool::OPS,
    pool_average::OPS,
    pool_adaptive::OPS,
    activation::OPS,
    activation_smooth::OPS,
    softmax::OPS,
    attention::OPS,
    attention_flash::OPS,
    cdist::OPS,
    loss::OPS,
    loss_class::OPS,
    margin::OPS,
    ctc::OPS,
    norm::OPS,
    norm_backward::OPS,
    norm_group::OPS,
    norm_legit::OPS,
    rnn::OPS,
    rnn_layer::OPS,
    rnn_backward::OPS,
    dropout::OPS,
];
