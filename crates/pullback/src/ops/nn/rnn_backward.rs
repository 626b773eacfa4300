//! The backward of a recurrent layer as an op of its own, so that its kernel gets plain tensors from the dispatcher.
//!
//! It has no derivative: where the backward must itself be differentiable, `rnn_layer` computes it from plain ops.

use super::rnn_layer::Layer;
use crate::dispatch::{OpDef, TensorVec, Value};
use crate::error::bail;
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::Cpu;
use crate::{Result, Tensor};
use pullback_kernels::rnn::Cell;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&RNN_LAYER_BACKWARD];

/// The kernels' cells by number.
const CELLS: [Cell; 4] = [Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu];

/// The gradients of a layer by those of its output and last states: for each of `operands` (input, `hx`, `cx`, the two
/// weights, the two biases) whose bit `needs` has, in that order. `results` are the output, what was kept of the gates, and
/// the cells; `grads` the gradients of the output and of the last states; `cell` is 0 for an LSTM, 1 for a GRU, 2 and 3 for
/// plain cells with `tanh` and `relu`.
#[op("_rnn_layer_backward(Tensor?[] operands, Tensor?[] results, Tensor?[] grads, int cell, int needs, int[] batch_sizes, bool reverse) -> Tensor[]",
     internal, function_only, not_differentiable, method = rnn_layer_backward)]
impl RnnLayerBackward {
    fn cpu(
        cpu: Cpu,
        operands: &[Option<Tensor>],
        results: &[Option<Tensor>],
        grads: &[Option<Tensor>],
        cell: i64,
        needs: i64,
        batch_sizes: &[i64],
        reverse: bool,
    ) -> Result<TensorVec> {
        let cell = usize::try_from(cell).ok().and_then(|nr| CELLS.get(nr).copied());
        let (
            Some(cell),
            [Some(x), Some(h), c, Some(w), Some(v), a, b],
            [output, gates, cells],
            [by_output, by_h, by_c],
        ) = (cell, operands, results, grads)
        else {
            bail!(
                runtime,
                "_rnn_layer_backward: expected one of 4 cells, 7 operands, 3 results and 3 gradients, got {}, {} and {}",
                operands.len(),
                results.len(),
                grads.len()
            );
        };
        let (weights, biases) = ([w, v], [a.as_ref(), b.as_ref()]);
        let layer = Layer::new(cell, x, (h, c.as_ref()), weights, biases);
        layer.over(batch_sizes, reverse).checked()?.backward(
            cpu,
            [output.as_ref(), gates.as_ref(), cells.as_ref()],
            [by_output.as_ref(), by_h.as_ref(), by_c.as_ref()],
            needs,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let sample = |cell: Cell, reverse: bool| -> Result<Sample> {
            let rows = 2 * match cell {
                Cell::Lstm => 4,
                Cell::Gru => 3,
                _ => 1,
            };
            let (x, h, w, v) = (
                s.normal(&[3, 2, 2]),
                s.normal(&[2, 2]),
                s.normal(&[rows, 2]),
                s.normal(&[rows, 2]),
            );
            let sizes: &[i64] = &[];
            let mut operands = [
                Some(x.clone()),
                Some(h.clone()),
                None,
                Some(w.clone()),
                Some(v.clone()),
                None,
                None,
            ];
            let results = match cell {
                Cell::Lstm => {
                    operands[2] = Some(h.clone());
                    let [output, _, _, gates, cells] =
                        x.lstm_layer(&h, &h, &w, &v, None, None, sizes, reverse)?;
                    [Some(output), Some(gates), Some(cells)]
                }
                Cell::Gru => {
                    let [output, _, gates] = x.gru_layer(&h, &w, &v, None, None, sizes, reverse)?;
                    [Some(output), Some(gates), None]
                }
                _ => {
                    let is_relu = cell == Cell::Relu;
                    let [output, _] =
                        x.rnn_layer(&h, &w, &v, None, None, sizes, reverse, is_relu)?;
                    [Some(output), None, None]
                }
            };
            let grads = [results[0].clone(), Some(h), None];
            let lists = [operands.to_vec(), results.to_vec(), grads.to_vec()];
            let sample = Sample::new(lists.map(Value::OptTensors));
            let sample = sample.with("cell", cell as i64).with("needs", 0b001_1011_i64);
            Ok(sample.with("batch_sizes", sizes).with("reverse", reverse).without_gradient())
        };
        let all = CELLS.into_iter().flat_map(|cell| [sample(cell, false), sample(cell, true)]);
        all.map(|sample| sample.expect("samples are small")).collect()
    }
}
