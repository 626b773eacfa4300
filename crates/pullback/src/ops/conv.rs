//! Convolutions and transposed convolutions over one to three spatial axes.
//!
//! Every public form ends in `convolution`, whose backward is an op of its own,
//! differentiable by composition of `convolution`. Kernels see batched input only;
//! the public forms add and remove the batch axis.
