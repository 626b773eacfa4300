//! The backward of a recurrent layer as an op of its own, so that its kernel gets plain tensors from the dispatcher.
//!
//! It has no derivative: where the backward must itself be differentiable, `rnn_layer` computes it from plain ops.

use super::rnn_layer::RecurrentLayer;
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::Cpu;
use crate::{Result, Tensor, TensorSpec};
use pullback_kernels::rnn::{self, Cell, OutputGradients};
use pullback_kernels::{StridedMut, StridedRef};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&RNN_LAYER_BACKWARD];

/// The cells by their codes.
const CELLS: [Cell; 4] = [Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu];

impl RecurrentLayer<'_> {
    /// The specs of the gradients of those operands whose bit `needs` has.
    fn gradient_specs(
        &self,
        results: [Option<&Tensor>; 3],
        grads: [Option<&Tensor>; 3],
        needs: i64,
    ) -> Result<[Option<TensorSpec>; 7]> {
        self.check_results(results, grads)?;
        let mut specs = self.tensors().map(|tensor| tensor.map(TensorSpec::like));
        for (nr, spec) in specs.iter_mut().enumerate() {
            *spec = spec.take().filter(|_| needs >> nr & 1 != 0);
        }
        Ok(specs)
    }

    /// The kernel of [`RecurrentLayer::vjp`]: writes a gradient for each operand whose bit `needs` has, in their order.
    fn write_backward(
        &self,
        cpu: Cpu,
        gradients: &[&Tensor],
        results: [Option<&Tensor>; 3],
        grads: [Option<&Tensor>; 3],
        needs: i64,
    ) -> Result<()> {
        let (mut views, mut next) = ([const { None::<StridedMut<'_>> }; 7], gradients.iter());
        for (nr, (view, operand)) in views.iter_mut().zip(self.tensors()).enumerate() {
            let is_wanted = operand.is_some() && needs >> nr & 1 != 0;
            *view = if is_wanted { next.next().map(|t| t.view_mut(cpu)) } else { None };
        }
        let wanted = views.each_mut().map(Option::<StridedMut<'_>>::as_mut);
        let [by_output, by_h, by_c]: [Option<StridedRef<'_>>; 3] =
            grads.map(|g| g.map(|t| t.view_ref(cpu)));
        let [output, gates, cells] = results.map(|t| t.map(|t| t.view_ref(cpu)));
        let results = OutputGradients { output, gates, cells, by_output, by_h, by_c };
        Ok(rnn::backward(wanted, &self.operands(cpu), &results, &self.steps()?)?)
    }

    /// Refuses results and gradients whose number of elements is not that of the layer.
    fn check_results(
        &self,
        [_, gates, cells]: [Option<&Tensor>; 3],
        [by_output, by_h, by_c]: [Option<&Tensor>; 3],
    ) -> Result<()> {
        let numel = |features: i64| {
            self.shape(features).iter().fold(1_i64, |n, &size| n.saturating_mul(size))
        };
        let (output, state) = (numel(self.hidden()), self.h.numel());
        let kept = numel((self.cell.saved_gates() as i64).saturating_mul(self.hidden()));
        let of_cells = self.c.map_or(0, Tensor::numel);
        let expected = [
            ("gates", gates, kept),
            ("cells", cells, if self.c.is_some() { output } else { 0 }),
            ("the gradient of the output", by_output, output),
            ("the gradient of h", by_h, state),
            ("the gradient of c", by_c, of_cells),
        ];
        for (name, tensor, count) in expected {
            if let Some(tensor) = tensor {
                ensure!(
                    tensor.numel() == count,
                    runtime,
                    "_rnn_layer_backward: expected {name} to have {count} elements, but got {}",
                    tensor.numel()
                );
            }
        }
        Ok(())
    }
}

/// The lists of a call, split into named operands.
struct LayerLists<'a> {
    layer: RecurrentLayer<'a>,
    results: [Option<&'a Tensor>; 3],
    grads: [Option<&'a Tensor>; 3],
}

impl<'a> LayerLists<'a> {
    fn of(
        operands: &'a [Option<Tensor>],
        results: &'a [Option<Tensor>],
        grads: &'a [Option<Tensor>],
        cell: i64,
    ) -> Result<Self> {
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
        Ok(LayerLists {
            layer: RecurrentLayer::new(cell, x, (h, c.as_ref()), weights, biases),
            results: [output.as_ref(), gates.as_ref(), cells.as_ref()],
            grads: [by_output.as_ref(), by_h.as_ref(), by_c.as_ref()],
        })
    }
}

/// The gradients of a recurrent layer by those of its output and last states: for each of `operands` (input, `hx`,
/// `cx`, the two weights, the two biases) whose bit `needs` has, in that order. `results` are the output, the saved
/// gates, and the cells; `grads` the gradients of the output and of the last states; `cell` is 0 for an LSTM, 1 for a
/// GRU, 2 and 3 for plain cells with `tanh` and `relu`.
#[op("_rnn_layer_backward(Tensor?[] operands, Tensor?[] results, Tensor?[] grads, int cell, int needs, int[] batch_sizes, bool reverse) -> Tensor[]",
     internal, function_only, not_differentiable, method = rnn_layer_backward)]
impl RnnLayerBackward {
    fn meta(
        operands: &[Option<Tensor>],
        results: &[Option<Tensor>],
        grads: &[Option<Tensor>],
        cell: i64,
        needs: i64,
        batch_sizes: &[i64],
    ) -> Result<Vec<TensorSpec>> {
        let call = LayerLists::of(operands, results, grads, cell)?;
        let layer = call.layer.over(batch_sizes, false).checked()?;
        let specs = layer.gradient_specs(call.results, call.grads, needs)?;
        Ok(specs.into_iter().flatten().collect())
    }
    fn cpu(
        cpu: Cpu,
        result: &[&Tensor],
        operands: &[Option<Tensor>],
        results: &[Option<Tensor>],
        grads: &[Option<Tensor>],
        cell: i64,
        needs: i64,
        batch_sizes: &[i64],
        reverse: bool,
    ) -> Result<()> {
        let call = LayerLists::of(operands, results, grads, cell)?;
        let layer = call.layer.over(batch_sizes, reverse).checked()?;
        layer.write_backward(cpu, result, call.results, call.grads, needs)
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
