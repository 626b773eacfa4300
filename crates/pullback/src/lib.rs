//! Tensors with automatic differentiation.
