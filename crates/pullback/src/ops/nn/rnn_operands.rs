//! The checks that operands of a recurrent layer in one direction fit each other, which `meta` of
//! its ops makes, forward and backward.

use super::rnn_layer::RecurrentLayer;
use crate::Result;
use crate::error::ensure;
use crate::tensor::shape::list;
use pullback_kernels::check_shape;
use pullback_kernels::rnn::{Cell, Steps};

impl RecurrentLayer<'_> {
    /// Refuses operands that do not go with one another, as the kernels need it.
    pub(super) fn checked(self) -> Result<Self> {
        let ranks = if self.batch_sizes.is_empty() { 2..=3 } else { 2..=2 };
        ensure!(
            ranks.contains(&self.input.ndim()),
            runtime,
            "Expected an input of {} dimensions, but got {}",
            if self.batch_sizes.is_empty() { "2 or 3" } else { "2" },
            self.input.ndim()
        );
        for weight in self.weights {
            ensure!(
                weight.ndim() == 2,
                runtime,
                "Expected weights of 2 dimensions, but got {}",
                weight.ndim()
            );
        }
        self.check_sizes()?;
        Ok(self)
    }

    /// Refuses sizes that do not go with those of the input and of the state, where all have their dimensions.
    fn check_sizes(&self) -> Result<()> {
        let shape = self.input.shape();
        let (features, hidden) = (shape[shape.len() - 1], self.hidden());
        let rows = hidden.saturating_mul(self.cell.gates() as i64);
        check_shape("w_ih", self.weights[0].shape(), &[rows, features])?;
        check_shape("w_hh", self.weights[1].shape(), &[rows, hidden])?;
        let mut batch = shape[shape.len() - 2];
        if !self.batch_sizes.is_empty() {
            let steps = Steps::packed(self.batch_sizes, false)?;
            check_shape("input", shape, &[steps.rows() as i64, features])?;
            batch = steps.batch() as i64;
        }
        ensure!(
            self.c.is_some() == (self.cell == Cell::Lstm),
            runtime,
            "Expected a cell state of an LSTM, and of no other cell"
        );
        let state = batch.saturating_mul(hidden);
        let [_, h, c, _, _, a, b] = self.tensors();
        let expected = [("hx", h, state), ("cx", c, state), ("b_ih", a, rows), ("b_hh", b, rows)];
        for (name, tensor, count) in expected {
            if let Some(tensor) = tensor {
                ensure!(
                    tensor.numel() == count,
                    runtime,
                    "Expected {name} to have {count} elements, but got shape {}",
                    list(tensor.shape())
                );
            }
        }
        Ok(())
    }
}
