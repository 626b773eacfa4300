//! One recurrent layer, or one cell, in one direction: the ops of kernels, and the same functions made of plain ops.
//!
//! Forward and backward are fused kernels over all steps. Where the backward pass must itself be differentiable it is
//! the gradient of [`RecurrentLayer::plain`], the same computation written in plain ops, which also serves what the kernels do
//! not take: complex numbers, operands of several dtypes, projections. The checks of sizes are in
//! `rnn_operands`, and in the words of what users call in `rnn`. Invariant: both ways compute the same function.

use crate::autograd::autocast::{self, AutocastDevice};
use crate::autograd::{self, BackwardOptions};
use crate::dispatch::{OpDef, Value};
use crate::gradcheck::{Sample, Sampler};
use crate::ops::nn::norm_backward::stats_dtype;
use crate::ops::nn::rnn_backward::rnn_layer_backward;
use crate::ops::shape::join::cat;
use crate::tensor::Cpu;
use crate::{Dims, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_kernels::rnn::{self, Cell, Operands, Outputs, Steps};
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&LSTM_LAYER, &GRU_LAYER, &PLAIN_LAYER, &LSTM_STEP, &GRU_STEP, &PLAIN_STEP];

/// One LSTM layer in one direction over all steps: `output` (rows, hidden) or (steps, batch, hidden), the last states,
/// and for the backward pass the gates and the cells of every step. Without `batch_sizes` the input is (steps, batch,
/// features), else it holds the rows of steps of those sizes concatenated. The states have any shape of
/// `batch * hidden` elements.
#[op("_lstm_layer(Tensor input, Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, int[] batch_sizes, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     internal, method = lstm_layer, batch = recurrent(input, hx, w_hh), autocast = lower)]
impl LstmLayer {
    fn meta(
        input: &Tensor,
        hx: &Tensor,
        cx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
    ) -> Result<[TensorSpec; 5]> {
        let layer =
            RecurrentLayer::new(Cell::Lstm, input, (hx, Some(cx)), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.over(batch_sizes, false).checked()?;
        let (hy, cy) = (layer.like_spec(hx), layer.like_spec(cx));
        Ok([layer.output_spec(), hy, cy, layer.kept_spec(), layer.kept_state_spec()])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        result3: &Tensor,
        result4: &Tensor,
        input: &Tensor,
        hx: &Tensor,
        cx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        reverse: bool,
    ) -> Result<()> {
        let layer =
            RecurrentLayer::new(Cell::Lstm, input, (hx, Some(cx)), [w_ih, w_hh], [b_ih, b_hh]);
        let kept = [Some(result1), Some(result2), Some(result3), Some(result4)];
        layer.over(batch_sizes, reverse).write(cpu, result0, kept)
    }
    fn vjp(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        grad_result2: Option<&Tensor>,
        input: &Tensor,
        hx: &Tensor,
        cx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        reverse: bool,
        result0: &Tensor,
        result3: &Tensor,
        result4: &Tensor,
        needs: [bool; 7],
    ) -> Result<[Option<Tensor>; 7]> {
        let layer =
            RecurrentLayer::new(Cell::Lstm, input, (hx, Some(cx)), [w_ih, w_hh], [b_ih, b_hh]);
        let results = [result0, result3, result4].map(Some);
        layer.over(batch_sizes, reverse).vjp(
            results,
            [grad_result0, grad_result1, grad_result2],
            needs,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |input: &[i64], batch_sizes: &[i64], reverse: bool| {
            let state = || s.normal(&[2, 3]).into();
            let mut values = vec![s.normal(input).into(), state(), state()];
            values.extend(weight_samples(s, 4, true));
            fused(Sample::new(values).with("batch_sizes", batch_sizes).with("reverse", reverse), s)
        };
        let all = [
            sample(&[3, 2, 2], &[], false),
            sample(&[3, 2, 2], &[], true),
            sample(&[3, 2], &[2, 1], false),
            sample(&[3, 2], &[2, 1], true),
        ];
        all.into_iter().flatten().collect()
    }
}

/// One GRU layer in one direction over all steps: `output`, the last state, and for the backward pass the gates of
/// every step. Shapes are those of `_lstm_layer`.
#[op("_gru_layer(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, int[] batch_sizes, bool reverse) -> (Tensor, Tensor, Tensor)",
     internal, method = gru_layer, batch = recurrent(input, hx, w_hh))]
impl GruLayer {
    fn meta(
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
    ) -> Result<[TensorSpec; 3]> {
        let layer = RecurrentLayer::new(Cell::Gru, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.over(batch_sizes, false).checked()?;
        Ok([layer.output_spec(), layer.like_spec(hx), layer.kept_spec()])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        reverse: bool,
    ) -> Result<()> {
        let layer = RecurrentLayer::new(Cell::Gru, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let kept = [Some(result1), None, Some(result2), None];
        layer.over(batch_sizes, reverse).write(cpu, result0, kept)
    }
    fn vjp(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        reverse: bool,
        result0: &Tensor,
        result2: &Tensor,
        needs: [bool; 6],
    ) -> Result<[Option<Tensor>; 6]> {
        let layer = RecurrentLayer::new(Cell::Gru, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.over(batch_sizes, reverse);
        let results = [Some(result0), Some(result2), None];
        layer.vjp(results, [grad_result0, grad_result1, None], with_cell(needs)).map(without_cell)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |input: &[i64], batch_sizes: &[i64], reverse: bool| {
            let mut values = vec![s.normal(input).into(), s.normal(&[2, 3]).into()];
            values.extend(weight_samples(s, 3, true));
            fused(Sample::new(values).with("batch_sizes", batch_sizes).with("reverse", reverse), s)
        };
        let all = [sample(&[3, 2, 2], &[], true), sample(&[3, 2], &[2, 1], false)];
        all.into_iter().flatten().collect()
    }
}

/// One layer of plain cells, with `tanh` or `relu`, in one direction over all steps: `output` and the last state.
/// Shapes are those of `_lstm_layer`.
#[op("_rnn_layer(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, int[] batch_sizes, bool reverse, bool relu) -> (Tensor, Tensor)",
     internal, method = rnn_layer, batch = recurrent(input, hx, w_hh), autocast = lower)]
impl PlainLayer {
    fn meta(
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        relu: bool,
    ) -> Result<[TensorSpec; 2]> {
        let layer =
            RecurrentLayer::new(plain_cell(relu), input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.over(batch_sizes, false).checked()?;
        Ok([layer.output_spec(), layer.like_spec(hx)])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        reverse: bool,
        relu: bool,
    ) -> Result<()> {
        let layer =
            RecurrentLayer::new(plain_cell(relu), input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let kept = [Some(result1), None, None, None];
        layer.over(batch_sizes, reverse).write(cpu, result0, kept)
    }
    fn vjp(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        batch_sizes: &[i64],
        reverse: bool,
        relu: bool,
        result0: &Tensor,
        needs: [bool; 6],
    ) -> Result<[Option<Tensor>; 6]> {
        let layer =
            RecurrentLayer::new(plain_cell(relu), input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.over(batch_sizes, reverse);
        let grads = [grad_result0, grad_result1, None];
        layer.vjp([Some(result0), None, None], grads, with_cell(needs)).map(without_cell)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |input: &[i64], batch_sizes: &[i64], relu: bool| {
            let mut values = vec![s.normal(input).into(), s.normal(&[2, 3]).into()];
            values.extend(weight_samples(s, 1, true));
            let sample = Sample::new(values).with("batch_sizes", batch_sizes);
            fused(sample.with("reverse", relu).with("relu", relu), s)
        };
        // All outputs are results, so the derivatives can be checked here.
        let all = [sample(&[3, 2, 2], &[], true), sample(&[3, 2], &[2, 1], false)];
        let all = all.into_iter().flatten();
        all.map(|sample| Sample { differentiable: true, ..sample }).collect()
    }
}

/// One step of an LSTM cell: the new states, and the gates for the backward pass.
#[op("_lstm_step(Tensor input, Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> (Tensor, Tensor, Tensor)",
     internal, method = lstm_step, batch = recurrent(input, hx, w_hh))]
impl LstmStep {
    fn meta(
        input: &Tensor,
        hx: &Tensor,
        cx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<[TensorSpec; 3]> {
        let layer =
            RecurrentLayer::new(Cell::Lstm, input, (hx, Some(cx)), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.checked()?;
        Ok([layer.output_spec(), layer.output_spec(), layer.kept_spec()])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        input: &Tensor,
        hx: &Tensor,
        cx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<()> {
        let layer =
            RecurrentLayer::new(Cell::Lstm, input, (hx, Some(cx)), [w_ih, w_hh], [b_ih, b_hh]);
        let kept = [None, None, Some(result2), Some(result1)];
        layer.write(cpu, result0, kept)
    }
    fn vjp(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        input: &Tensor,
        hx: &Tensor,
        cx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        result2: &Tensor,
        needs: [bool; 7],
    ) -> Result<[Option<Tensor>; 7]> {
        // Only tensors that users cannot write to are used for the check: users may change the states in place.
        let layer =
            RecurrentLayer::new(Cell::Lstm, input, (hx, Some(cx)), [w_ih, w_hh], [b_ih, b_hh]);
        let grads = [grad_result0, None, grad_result1];
        layer.vjp([None, Some(result2), None], grads, needs)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut values = vec![s.normal(&[2, 2]), s.normal(&[2, 3]), s.normal(&[2, 3])];
        let mut values: Vec<Value> = values.drain(..).map(Value::Tensor).collect();
        values.extend(weight_samples(s, 4, false));
        fused(Sample::new(values), s)
    }
}

/// One step of a GRU cell: the new state, and the gates for the backward pass.
#[op("_gru_step(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> (Tensor, Tensor)",
     internal, method = gru_step, batch = recurrent(input, hx, w_hh))]
impl GruStep {
    fn meta(
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<[TensorSpec; 2]> {
        let layer = RecurrentLayer::new(Cell::Gru, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let layer = layer.checked()?;
        Ok([layer.output_spec(), layer.kept_spec()])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<()> {
        let layer = RecurrentLayer::new(Cell::Gru, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        let kept = [None, None, Some(result1), None];
        layer.write(cpu, result0, kept)
    }
    fn vjp(
        grad_result0: Option<&Tensor>,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        result1: &Tensor,
        needs: [bool; 6],
    ) -> Result<[Option<Tensor>; 6]> {
        let layer = RecurrentLayer::new(Cell::Gru, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        layer
            .vjp([None, Some(result1), None], [grad_result0, None, None], with_cell(needs))
            .map(without_cell)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut values = vec![s.normal(&[2, 2]).into(), s.normal(&[2, 3]).into()];
        values.extend(weight_samples(s, 3, true));
        fused(Sample::new(values), s)
    }
}

/// One step of a plain cell, with `tanh` or `relu`: the new state.
#[op("_rnn_step(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, bool relu) -> Tensor",
     internal, method = rnn_step, batch = recurrent(input, hx, w_hh), autocast = lower)]
impl PlainStep {
    fn meta(
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        relu: bool,
    ) -> Result<TensorSpec> {
        let layer =
            RecurrentLayer::new(plain_cell(relu), input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        Ok(layer.checked()?.output_spec())
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        relu: bool,
    ) -> Result<()> {
        let layer =
            RecurrentLayer::new(plain_cell(relu), input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        layer.write(cpu, result, [None; 4])
    }
    fn vjp(
        grad: Option<&Tensor>,
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
        relu: bool,
        result: &Tensor,
        needs: [bool; 6],
    ) -> Result<[Option<Tensor>; 6]> {
        let layer =
            RecurrentLayer::new(plain_cell(relu), input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        layer
            .vjp([Some(result), None, None], [grad, None, None], with_cell(needs))
            .map(without_cell)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |relu: bool| {
            let mut values = vec![s.normal(&[2, 2]).into(), s.normal(&[2, 3]).into()];
            values.extend(weight_samples(s, 1, true));
            fused(Sample::new(values).with("relu", relu), s)
        };
        let all = [sample(true), sample(false)].into_iter().flatten();
        all.map(|sample| Sample { differentiable: true, ..sample }).collect()
    }
}

pub(crate) fn plain_cell(relu: bool) -> Cell {
    if relu { Cell::Relu } else { Cell::Tanh }
}

/// Weights for 2 features and 3 elements of state, then the biases.
fn weight_samples(s: &Sampler, gates: i64, biases: bool) -> [Value; 4] {
    let bias = || if biases { s.normal(&[3 * gates]).into() } else { Value::None };
    [s.normal(&[3 * gates, 2]).into(), s.normal(&[3 * gates, 3]).into(), bias(), bias()]
}

/// A call of a kernel, which takes real numbers only. What is saved for the backward pass has no gradient, but
/// numerical differences would give one.
fn fused(sample: Sample, s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() { Vec::new() } else { vec![sample.without_gradient()] }
}

/// The needs or gradients of input, `hx`, weights and biases with an entry for `cx` inserted after `hx`, and back.
fn with_cell([x, h, rest @ ..]: [bool; 6]) -> [bool; 7] {
    [x, h, false, rest[0], rest[1], rest[2], rest[3]]
}
fn without_cell([x, h, _, w, v, a, b]: [Option<Tensor>; 7]) -> [Option<Tensor>; 6] {
    [x, h, w, v, a, b]
}

/// The operands and options of a call of one layer.
#[derive(Clone, Copy)]
pub(crate) struct RecurrentLayer<'a> {
    pub(super) cell: Cell,
    pub(super) input: &'a Tensor,
    pub(super) h: &'a Tensor,
    pub(super) c: Option<&'a Tensor>,
    pub(super) weights: [&'a Tensor; 2],
    biases: [Option<&'a Tensor>; 2],
    /// The weight that projects an LSTM's output (Sak et al. 2014).
    projection: Option<&'a Tensor>,
    pub(super) batch_sizes: &'a [i64],
    reverse: bool,
}

impl<'a> RecurrentLayer<'a> {
    pub(crate) fn new(
        cell: Cell,
        input: &'a Tensor,
        (h, c): (&'a Tensor, Option<&'a Tensor>),
        weights: [&'a Tensor; 2],
        biases: [Option<&'a Tensor>; 2],
    ) -> Self {
        let (projection, batch_sizes, reverse) = (None, &[][..], false);
        RecurrentLayer { cell, input, h, c, weights, biases, projection, batch_sizes, reverse }
    }
    /// The same layer over steps of these sizes (of equal size if the list is empty), or from the last step to the
    /// first.
    pub(crate) fn over(self, batch_sizes: &'a [i64], reverse: bool) -> Self {
        RecurrentLayer { batch_sizes, reverse, ..self }
    }
    pub(crate) fn projected(self, projection: Option<&'a Tensor>) -> Self {
        RecurrentLayer { projection, ..self }
    }

    /// Whether under autocast operands have different dtypes: products are computed in lower precision, the state that
    /// they are added to is not. The layers of the other cells run in one dtype.
    fn is_mixed(&self) -> bool {
        self.cell == Cell::Gru && autocast::is_enabled(AutocastDevice::CPU)
    }

    /// Whether the kernels can compute this call.
    pub(crate) fn is_fused(&self) -> bool {
        let dtype = autocast::lowered(self.input);
        let tensors = self.weights.into_iter().chain([self.h]).chain(self.c);
        let mut tensors = tensors.chain(self.biases.into_iter().flatten());
        let rows = self.weights[0].shape()[0];
        // (With weights of each example, batched products are faster than one call of the kernel for each.)
        let mut parameters = self.weights.into_iter().chain(self.biases.into_iter().flatten());
        dtype.is_floating_point()
            && self.projection.is_none()
            && !self.is_mixed()
            && parameters.all(|t| autograd::batch::level_of(t).is_none())
            && tensors.all(|t| autocast::lowered(t) == dtype)
            && self.biases.into_iter().flatten().all(|b| b.shape() == [rows])
    }

    /// Runs the kernels; returns `output`, and `h` and `c` after the last step.
    pub(crate) fn run(&self) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        if !self.is_fused() {
            return self.plain();
        }
        let (x, h, [w, v], [a, b]) = (self.input, self.h, self.weights, self.biases);
        let (sizes, reverse) = (self.batch_sizes, self.reverse);
        if let Some(c) = self.c {
            let [output, hy, cy, ..] = x.lstm_layer(h, c, w, v, a, b, sizes, reverse)?;
            return Ok((output, hy, Some(cy)));
        }
        let [output, hy] = if self.cell == Cell::Gru {
            let [output, hy, _] = x.gru_layer(h, w, v, a, b, sizes, reverse)?;
            [output, hy]
        } else {
            x.rnn_layer(h, w, v, a, b, sizes, reverse, self.cell == Cell::Relu)?
        };
        Ok((output, hy, None))
    }

    /// The next `h` of a cell without `c`, by its kernel.
    pub(crate) fn fused_step(&self) -> Result<Tensor> {
        let (x, h, [w, v], [a, b]) = (self.input, self.h, self.weights, self.biases);
        if self.cell == Cell::Gru {
            let [h, _] = x.gru_step(h, w, v, a, b)?;
            return Ok(h);
        }
        x.rnn_step(h, w, v, a, b, self.cell == Cell::Relu)
    }

    pub(super) fn hidden(&self) -> i64 {
        self.weights[1].shape()[1]
    }
    pub(super) fn steps(&self) -> Result<Steps> {
        let shape = self.input.shape();
        if !self.batch_sizes.is_empty() {
            return Ok(Steps::packed(self.batch_sizes, self.reverse)?);
        }
        let (count, batch) = if shape.len() == 3 { (shape[0], shape[1]) } else { (1, shape[0]) };
        Ok(Steps::uniform(count as usize, batch as usize, self.reverse)?)
    }
    /// The input's shape with other features.
    pub(super) fn shape(&self, features: i64) -> Dims {
        let mut shape = Dims::from_slice(self.input.shape());
        if let Some(last) = shape.last_mut() {
            *last = features;
        }
        shape
    }
    fn output_spec(&self) -> TensorSpec {
        TensorSpec::beside(self.input, &self.shape(self.hidden()))
    }
    fn like_spec(&self, state: &Tensor) -> TensorSpec {
        TensorSpec::beside(self.input, state.shape())
    }
    /// The spec of the gates that are saved for the backward pass.
    fn kept_spec(&self) -> TensorSpec {
        let features = (self.cell.saved_gates() as i64).saturating_mul(self.hidden());
        let spec = TensorSpec::beside(self.input, &self.shape(features));
        spec.computed_in(stats_dtype(self.input))
    }
    fn kept_state_spec(&self) -> TensorSpec {
        self.output_spec().computed_in(stats_dtype(self.input))
    }

    pub(super) fn operands(&self, cpu: Cpu) -> Operands<'a> {
        Operands {
            cell: self.cell,
            x: self.input.view_ref(cpu),
            h: self.h.view_ref(cpu),
            c: self.c.map(|t| t.view_ref(cpu)),
            weights: self.weights.map(|t| t.view_ref(cpu)),
            biases: self.biases.map(|b| b.map(|t| t.view_ref(cpu))),
        }
    }
    /// Computes the output, and those of the last states, gates and cells that have a tensor to be written to.
    fn write(&self, cpu: Cpu, output: &Tensor, kept: [Option<&Tensor>; 4]) -> Result<()> {
        let mut views = kept.map(|t| t.map(|t| t.view_mut(cpu)));
        let [h, c, gates, cells] = views.each_mut().map(Option::as_mut);
        let outputs = Outputs { output: &mut output.view_mut(cpu), h, c, gates, cells };
        Ok(rnn::forward(outputs, &self.operands(cpu), &self.steps()?)?)
    }

    /// Input, states, weights and biases, in the order of the signatures.
    pub(super) fn tensors(&self) -> [Option<&'a Tensor>; 7] {
        let ([w, v], [a, b]) = (self.weights, self.biases);
        [Some(self.input), Some(self.h), self.c, Some(w), Some(v), a, b]
    }

    /// The gradients of [`RecurrentLayer::tensors`] from those of the output and of the last states; `results` are the output,
    /// the saved gates, and the cells, as far as [`OutputGradients`] needs them.
    fn vjp(
        &self,
        results: [Option<&Tensor>; 3],
        grads: [Option<&Tensor>; 3],
        needs: [bool; 7],
    ) -> Result<[Option<Tensor>; 7]> {
        let read = self.tensors().into_iter().chain(results).chain(grads);
        if crate::autograd::needs_ops_to_read(read) {
            return self.differentiable_vjp(grads, needs);
        }
        let owned = |tensors: &[Option<&Tensor>]| -> SmallVec<[Option<Tensor>; 7]> {
            tensors.iter().map(|tensor| tensor.cloned()).collect()
        };
        let wanted: SmallVec<[usize; 7]> =
            (0..7).filter(|&nr| needs[nr] && self.tensors()[nr].is_some()).collect();
        let made = rnn_layer_backward(
            &owned(&self.tensors()),
            &owned(&results),
            &owned(&grads),
            self.cell as i64,
            wanted.iter().fold(0, |mask, nr| mask | 1 << nr),
            self.batch_sizes,
            self.reverse,
        )?;
        let mut all = [const { None }; 7];
        for (nr, grad) in wanted.into_iter().zip(made) {
            all[nr] = Some(grad);
        }
        Ok(all)
    }

    /// The gradients from plain ops: those of [`RecurrentLayer::plain`] of views of the operands, so that a tensor that is two
    /// operands, or an operand that is made of another, counts as two.
    fn differentiable_vjp(
        &self,
        grads: [Option<&Tensor>; 3],
        needs: [bool; 7],
    ) -> Result<[Option<Tensor>; 7]> {
        let create_graph = autograd::mode::is_recording();
        let _grad = autograd::enable_grad();
        let mut views = [const { None }; 7];
        for ((view, tensor), need) in views.iter_mut().zip(self.tensors()).zip(needs) {
            let made = tensor.map(|t| match need {
                false => Ok(t.clone()),
                true if t.requires_grad() => t.alias(),
                // Forward mode transposes gradients of operands that require none.
                true => t.detached()?.with_grad(),
            });
            *view = made.transpose()?;
        }
        let [input, h, c, w, v, a, b] = views.each_ref().map(Option::as_ref);
        let (Some(input), Some(h), Some(w), Some(v)) = (input, h, w, v) else {
            unreachable!("the other operands always exist")
        };
        let again = RecurrentLayer { input, h, c, weights: [w, v], biases: [a, b], ..*self };
        let (output, hy, cy) = again.plain()?;
        let results = [Some(&output), Some(&hy), cy.as_ref()].into_iter().zip(grads);
        let (mut roots, mut starts) = (Vec::new(), Vec::new());
        for (result, grad) in results {
            if let (Some(result), Some(_)) = (result.filter(|r| r.requires_grad()), grad) {
                roots.push(result);
                starts.push(grad);
            }
        }
        // bounded: by the number of operands.
        let needed: Vec<usize> = (0..7).filter(|&i| needs[i]).collect();
        let inputs: Vec<&Tensor> = needed.iter().filter_map(|&i| views[i].as_ref()).collect();
        let options =
            BackwardOptions { create_graph, allow_unused: true, ..BackwardOptions::default() };
        let found = autograd::grad(&roots, &inputs, &starts, options)?;
        let mut out = [const { None }; 7];
        for (index, grad) in needed.into_iter().zip(found) {
            out[index] = grad;
        }
        Ok(out)
    }

    /// Computes `output`, `h` and `c` by plain ops.
    pub(crate) fn plain(&self) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        let shape = self.input.shape();
        let (rows, features) = (shape[..shape.len() - 1].iter().product(), shape[shape.len() - 1]);
        let x = self.input.reshape(&[rows, features])?.linear(self.weights[0], self.biases[0])?;
        let spans = self.spans()?;
        let batch = spans.iter().map(|s| s.1).max().unwrap_or(0);
        let flat = |t: &Tensor| t.reshape(&[batch, t.shape()[t.ndim() - 1]]);
        let mut state = LayerState { h: flat(self.h)?, c: self.c.map(flat).transpose()? };
        let mut outputs = memory::with_capacity(spans.len())?;
        for (start, rows) in spans {
            let (now, rest) = state.split(rows, batch)?;
            let now = self.step(&x.narrow(0, start, rows)?, now)?;
            outputs.push(now.h.clone());
            state = now.joined(rest)?;
        }
        if self.reverse {
            outputs.reverse();
        }
        let width = state.h.shape()[1];
        let output = cat(&outputs, 0)?.reshape(&self.shape(width))?;
        let c = state.c.zip(self.c).map(|(c, like)| c.reshape(like.shape())).transpose()?;
        Ok((output, state.h.reshape(self.h.shape())?, c))
    }

    /// The first row and the number of rows of each step, in the order of execution.
    fn spans(&self) -> Result<Vec<(i64, i64)>> {
        let shape = self.input.shape();
        let mut start = 0;
        let span = |rows: i64| {
            start += rows;
            (start - rows, rows)
        };
        let mut spans = match (self.batch_sizes, shape.len()) {
            ([], 3) => memory::collect((0..shape[0]).map(|_| shape[1]).map(span))?,
            ([], _) => vec![(0, shape[0])],
            (sizes, _) => memory::collect(sizes.iter().copied().map(span))?,
        };
        if self.reverse {
            spans.reverse();
        }
        Ok(spans)
    }

    fn step(&self, x: &Tensor, LayerState { h, c }: LayerState) -> Result<LayerState> {
        let products = h.linear(self.weights[1], self.biases[1])?;
        match (self.cell, c) {
            (Cell::Lstm, Some(c)) => {
                let gates = x.add(&products)?.chunk(4, -1)?;
                let kept = gates[1].sigmoid()?.mul(&c)?;
                let c = kept.add(&gates[0].sigmoid()?.mul(&gates[2].tanh()?)?)?;
                let h = gates[3].sigmoid()?.mul(&c.tanh()?)?;
                let h = self.projection.map_or_else(|| Ok(h.clone()), |w| h.linear(w, None))?;
                Ok(LayerState { h, c: Some(c) })
            }
            (Cell::Gru, _) => {
                let (x, p) = (x.chunk(3, -1)?, products.chunk(3, -1)?);
                let (r, z) = (x[0].add(&p[0])?.sigmoid()?, x[1].add(&p[1])?.sigmoid()?);
                let n = x[2].add(&r.mul(&p[2])?)?.tanh()?;
                Ok(LayerState { h: h.sub(&n)?.mul(&z)?.add(&n)?, c: None })
            }
            (Cell::Relu, _) => Ok(LayerState { h: x.add(&products)?.relu()?, c: None }),
            _ => Ok(LayerState { h: x.add(&products)?.tanh()?, c: None }),
        }
    }
}

/// The state of a batch.
struct LayerState {
    h: Tensor,
    c: Option<Tensor>,
}

impl LayerState {
    /// The states of the first `rows` rows, and those of the remaining rows if there are any.
    fn split(self, rows: i64, batch: i64) -> Result<(LayerState, Option<LayerState>)> {
        if rows == batch {
            return Ok((self, None));
        }
        let part = |start: i64, length: i64| {
            let c = self.c.as_ref().map(|c| c.narrow(0, start, length)).transpose()?;
            Ok(LayerState { h: self.h.narrow(0, start, length)?, c })
        };
        let part: &dyn Fn(i64, i64) -> Result<LayerState> = &part;
        Ok((part(0, rows)?, Some(part(rows, batch - rows)?)))
    }
    fn joined(self, rest: Option<LayerState>) -> Result<LayerState> {
        let Some(rest) = rest else { return Ok(self) };
        let c = self.c.zip(rest.c).map(|(a, b)| cat(&[a, b], 0)).transpose()?;
        Ok(LayerState { h: cat(&[self.h, rest.h], 0)?, c })
    }
}
