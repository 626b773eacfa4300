//! Recurrent networks: LSTM, GRU and plain layers, stacked, in one or both directions, and their cells.
//!
//! This module checks arguments, splits the lists of parameters and composes layers; a layer in one direction is one op
//! of `rnn_layer`. Parameters come layer by layer, in each the forward direction before the backward one: the weights
//! of input and state, then, if there are biases, the two biases, then, if the output is projected, the weight of the
//! projection. Dropout is applied between layers only.

use crate::autograd::autocast::{self, AutocastDevice};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::nn::rnn_layer::RecurrentLayer;
use crate::ops::shape::join::{cat, stack};
use crate::{DType, ErrorKind, Result, Tensor};
use pullback_kernels::rnn::Cell;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LSTM_PACKED,
    &LSTM,
    &GRU_PACKED,
    &GRU,
    &RNN_TANH_PACKED,
    &RNN_TANH,
    &RNN_RELU_PACKED,
    &RNN_RELU,
    &LSTM_CELL,
    &GRU_CELL,
    &RNN_TANH_CELL,
    &RNN_RELU_CELL,
];

/// {TEXT} `input` is (steps, batch, features), or (batch, steps, features) with `batch_first`; `hx` is {STATES} of
/// (layers * directions, batch, hidden). Returns `h` of the last layer at all steps, and the last {LAST}.
#[op("{NAME}.input(Tensor input, {HX} hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> {RETURNS}",
     function_only, random,
     each(Lstm { NAME: lstm, CELL: Lstm, GATES: 4, HX: "Tensor[]", FIRST: &[Tensor], RETURNS: "(Tensor, Tensor, Tensor)", RESULTS: 3,
                 STATES: "the pair `h, c`", LAST: "`h` and `c`",
                 TEXT: "Long short-term memory (Hochreiter and Schmidhuber 1997): with gates `i, f, o` (sigmoids) and candidate `g` (tanh) \
                        of `w_ih x + b_ih + w_hh h + b_hh`, `c' = f c + i g` and `h' = o tanh(c')`, projected if `h` and `c` differ in size." },
          Gru { NAME: gru, CELL: Gru, GATES: 3, HX: "Tensor", FIRST: &Tensor, RETURNS: "(Tensor, Tensor)", RESULTS: 2,
                STATES: "the state `h`", LAST: "`h`",
                TEXT: "Gated recurrent units (Cho et al. 2014): `r = sigmoid(x_r + p_r)`, `z = sigmoid(x_z + p_z)`, `n = tanh(x_n + r p_n)` \
                       and `h' = n + z (h - n)`, where `x = w_ih input + b_ih` and `p = w_hh h + b_hh`." },
          RnnTanh { NAME: rnn_tanh, CELL: Tanh, GATES: 1, HX: "Tensor", FIRST: &Tensor, RETURNS: "(Tensor, Tensor)", RESULTS: 2,
                    STATES: "the state `h`", LAST: "`h`",
                    TEXT: "`h' = tanh(w_ih x + b_ih + w_hh h + b_hh)` (Elman 1990)." },
          RnnRelu { NAME: rnn_relu, CELL: Relu, GATES: 1, HX: "Tensor", FIRST: &Tensor, RETURNS: "(Tensor, Tensor)", RESULTS: 2,
                    STATES: "the state `h`", LAST: "`h`",
                    TEXT: "`h' = max(w_ih x + b_ih + w_hh h + b_hh, 0)`." }))]
impl Recurrent {
    fn composite(
        input: &Tensor,
        hx: FIRST,
        params: &[Tensor],
        args: &RecurrentArgs<'_>,
    ) -> Result<[Tensor; RESULTS]> {
        let stack = LayerStack {
            cell: Cell::CELL,
            params,
            has_biases: args.has_biases,
            num_layers: args.num_layers,
            dropout: drawn(args.dropout, args.train),
            bidirectional: args.bidirectional,
            batch_sizes: &[],
        };
        Ok(returned(stack.run_batch(input, hx.states("{NAME}")?, args.batch_first)?))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        batch_samples(s, GATES)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid_batches(s, GATES)
    }
}

/// `{NAME}` over packed sequences: `data` holds the rows of all steps concatenated, `batch_sizes[t]` of them for step
/// `t`, in sizes that never grow; sequences that have ended keep their state.
#[op("{NAME}.data(Tensor data, Tensor batch_sizes, {HX} hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> {RETURNS}",
     function_only, random, not_differentiable(batch_sizes),
     each(LstmPacked { NAME: lstm, CELL: Lstm, GATES: 4, HX: "Tensor[]", FIRST: &[Tensor], RETURNS: "(Tensor, Tensor, Tensor)", RESULTS: 3 },
          GruPacked { NAME: gru, CELL: Gru, GATES: 3, HX: "Tensor", FIRST: &Tensor, RETURNS: "(Tensor, Tensor)", RESULTS: 2 },
          RnnTanhPacked { NAME: rnn_tanh, CELL: Tanh, GATES: 1, HX: "Tensor", FIRST: &Tensor, RETURNS: "(Tensor, Tensor)", RESULTS: 2 },
          RnnReluPacked { NAME: rnn_relu, CELL: Relu, GATES: 1, HX: "Tensor", FIRST: &Tensor, RETURNS: "(Tensor, Tensor)", RESULTS: 2 }))]
impl RecurrentPacked {
    fn composite(
        data: &Tensor,
        batch_sizes: &Tensor,
        hx: FIRST,
        params: &[Tensor],
        has_biases: bool,
        num_layers: i64,
        dropout: f64,
        train: bool,
        bidirectional: bool,
    ) -> Result<[Tensor; RESULTS]> {
        let batch_sizes = sizes(batch_sizes, data)?;
        let stack = LayerStack {
            cell: Cell::CELL,
            params,
            has_biases,
            num_layers,
            dropout: drawn(dropout, train),
            bidirectional,
            batch_sizes: &batch_sizes,
        };
        Ok(returned(stack.run(data, hx.states("{NAME}")?)?))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        packed_samples(s, GATES)
    }
}

/// One step of an LSTM: `input` is (batch, features), `hx` the pair `h, c` of (batch, hidden). Returns the new pair.
#[op(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
    function_only
)]
impl LstmCell {
    fn composite(
        input: &Tensor,
        hx: &[Tensor],
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<[Tensor; 2]> {
        let (h, c) = hx.states("lstm_cell")?;
        check_step(input, [Some(h), c], [w_ih, w_hh], 4)?;
        let layer = RecurrentLayer::new(Cell::Lstm, input, (h, c), [w_ih, w_hh], [b_ih, b_hh]);
        // Autocast keeps the dtype of the cell's state: products are computed in lower precision, sums are not.
        let is_cast = autocast::is_enabled(AutocastDevice::CPU);
        if let (Some(c), true) = (c, layer.is_fused() && !is_cast) {
            let [hy, cy, _] = input.lstm_step(h, c, w_ih, w_hh, b_ih, b_hh)?;
            return Ok([hy, cy]);
        }
        let (_, hy, cy) = layer.plain()?;
        Ok([hy.clone(), cy.unwrap_or(hy)])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        step_samples(s, 4)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid_steps(s, 4)
    }
}

/// One step of `{NAME}`: `input` is (batch, features), `hx` is (batch, hidden). Returns the new `h`.
#[op("{NAME}_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", function_only,
     each(GruCell { NAME: gru, CELL: Gru, GATES: 3 },
          RnnTanhCell { NAME: rnn_tanh, CELL: Tanh, GATES: 1 },
          RnnReluCell { NAME: rnn_relu, CELL: Relu, GATES: 1 }))]
impl RecurrentCell {
    fn composite(
        input: &Tensor,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<Tensor> {
        check_step(input, [Some(hx), None], [w_ih, w_hh], GATES)?;
        let layer = RecurrentLayer::new(Cell::CELL, input, (hx, None), [w_ih, w_hh], [b_ih, b_hh]);
        if layer.is_fused() { layer.fused_step() } else { Ok(layer.plain()?.1) }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        step_samples(s, GATES)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid_steps(s, GATES)
    }
}

/// Output, `h` and `c`.
type RnnStates = (Tensor, Tensor, Option<Tensor>);

/// The first two or all three states; `c` is `h` for cells that have none.
fn returned<const N: usize>((output, h, c): RnnStates) -> [Tensor; N] {
    let c = c.unwrap_or_else(|| h.clone());
    let all = [output, h, c];
    std::array::from_fn(|index| all[index].clone())
}

/// The initial states as an op takes them: `h`, or the pair `h, c` in a list.
trait InitialState<'a> {
    fn states(self, op: &str) -> Result<(&'a Tensor, Option<&'a Tensor>)>;
}
impl<'a> InitialState<'a> for &'a Tensor {
    fn states(self, _op: &str) -> Result<(&'a Tensor, Option<&'a Tensor>)> {
        Ok((self, None))
    }
}
impl<'a> InitialState<'a> for &'a [Tensor] {
    fn states(self, op: &str) -> Result<(&'a Tensor, Option<&'a Tensor>)> {
        let [h, c] = self else { bail!(runtime, "{op} expects two hidden states") };
        Ok((h, Some(c)))
    }
}

/// The probability that is in effect: 0 outside training.
fn drawn(dropout: f64, train: bool) -> f64 {
    if train { dropout } else { 0.0 }
}

/// The numbers of rows of packed steps.
fn sizes(batch_sizes: &Tensor, data: &Tensor) -> Result<Vec<i64>> {
    ensure!(
        batch_sizes.dtype() == DType::I64,
        runtime,
        "expected scalar type {} but found {}",
        DType::I64.scalar_name(),
        batch_sizes.dtype().scalar_name()
    );
    ensure!(batch_sizes.ndim() == 1, runtime, "batch_sizes tensor should be 1D");
    let sizes = batch_sizes.to_vec::<i64>()?;
    ensure!(!sizes.is_empty(), runtime, "Expected sequence length to be larger than 0 in RNN");
    let falls = sizes.windows(2).all(|w| w[0] >= w[1]) && sizes.iter().all(|&n| n > 0);
    ensure!(falls, runtime, "batch_sizes must be positive and never grow, but got {sizes:?}");
    ensure!(data.ndim() == 2, runtime, "input must have 2 dimensions, got {}", data.ndim());
    let (rows, total) = (data.shape()[0], sizes.iter().sum::<i64>());
    ensure!(
        rows == total,
        runtime,
        "batch_sizes add up to {total} rows, but the data of the sequences has {rows}"
    );
    Ok(sizes)
}

/// Checks the arguments of a cell: an input (batch, features), states (batch, hidden), weights that fit.
fn check_step(
    input: &Tensor,
    states: [Option<&Tensor>; 2],
    weights: [&Tensor; 2],
    gates: i64,
) -> Result<()> {
    ensure!(
        input.ndim() == 2,
        runtime,
        "Expected 2D input (batch x feature), but got {}D input",
        input.ndim()
    );
    check_features(input, weights)?;
    let hidden = weights[1].shape()[1];
    for (index, state) in states.into_iter().flatten().enumerate() {
        ensure!(
            state.ndim() == 2,
            runtime,
            "Expected 2D hidden{index} (batch x hidden_size), but got {}D tensor",
            state.ndim()
        );
        check_state(index, state, input.shape()[0], hidden)?;
    }
    check_dtypes(input, weights[0])?;
    if let Some(h) = states[0] {
        check_dtypes(h, weights[1])?;
    }
    check_gates(weights, hidden, gates)
}

fn check_features(input: &Tensor, weights: [&Tensor; 2]) -> Result<()> {
    for (name, weight) in ["weight_ih", "weight_hh"].into_iter().zip(weights) {
        let ndim = weight.ndim();
        ensure!(ndim == 2, runtime, "{name} must be a matrix, got {ndim}-D tensor");
    }
    let (features, expected) = (input.shape()[input.ndim() - 1], weights[0].shape()[1]);
    ensure!(
        features == expected,
        runtime,
        "input has inconsistent input_size: got {features} expected {expected}"
    );
    Ok(())
}

/// Refuses operands of products with different dtypes; `c`, which is not multiplied with weights, may have another.
fn check_dtypes(a: &Tensor, b: &Tensor) -> Result<()> {
    let (a, b) = (autocast::lowered(a), autocast::lowered(b));
    ensure!(
        a == b,
        runtime,
        "mat1 and mat2 must have the same dtype, but got {} and {}",
        a.scalar_name(),
        b.scalar_name()
    );
    Ok(())
}

/// Checks the last two sizes of a state.
fn check_state(index: usize, state: &Tensor, batch: i64, hidden: i64) -> Result<()> {
    let &[.., found, size] = state.shape() else { unreachable!("the caller checked its rank") };
    ensure!(
        found == batch,
        runtime,
        "Input batch size {batch} doesn't match hidden{index} batch size {found}"
    );
    ensure!(
        size == hidden,
        runtime,
        "hidden{index} has inconsistent hidden_size: got {size}, expected {hidden}"
    );
    Ok(())
}

fn check_gates(weights: [&Tensor; 2], hidden: i64, gates: i64) -> Result<()> {
    for (name, weight) in ["weight_ih", "weight_hh"].into_iter().zip(weights) {
        let (rows, expected) = (weight.shape()[0], gates * hidden);
        ensure!(
            rows == expected,
            runtime,
            "{name} first dim must be {gates} * hidden_size = {expected}, but got {rows}"
        );
    }
    Ok(())
}

/// Stacked layers.
struct LayerStack<'a> {
    cell: Cell,
    params: &'a [Tensor],
    has_biases: bool,
    num_layers: i64,
    /// The probability of dropout between layers.
    dropout: f64,
    bidirectional: bool,
    batch_sizes: &'a [i64],
}

impl LayerStack<'_> {
    /// Runs over steps of equal size, which are along the first dimension or, with `batch_first`, the second.
    fn run_batch(
        &self,
        input: &Tensor,
        states: (&Tensor, Option<&Tensor>),
        batch_first: bool,
    ) -> Result<RnnStates> {
        ensure!(input.ndim() == 3, runtime, "input must have 3 dimensions, got {}", input.ndim());
        let transposed = if batch_first { Some(input.transpose(0, 1)?) } else { None };
        let input = transposed.as_ref().unwrap_or(input);
        ensure!(
            input.shape()[0] > 0,
            runtime,
            "Expected sequence length to be larger than 0 in RNN"
        );
        let (output, h, c) = self.run(input, states)?;
        Ok((if batch_first { output.transpose(0, 1)? } else { output }, h, c))
    }

    /// Runs all layers over steps as [`RecurrentLayer`] takes them.
    fn run(&self, input: &Tensor, (h, c): (&Tensor, Option<&Tensor>)) -> Result<RnnStates> {
        let directions = if self.bidirectional { 2 } else { 1 };
        let count = self.num_layers.saturating_mul(directions);
        ensure!(count > 0, runtime, "stack expects a non-empty TensorList");
        ensure!(
            input.ndim() >= 2,
            runtime,
            "input must have at least 2 dimensions, got {}",
            input.ndim()
        );
        let is_projected = c.is_some_and(|c| c.shape().last() != h.shape().last());
        let each = 2 + 2 * usize::from(self.has_biases) + usize::from(is_projected);
        ensure!(
            self.params.len() == each.saturating_mul(count as usize),
            runtime,
            "got an incorrect number of RNN parameters"
        );
        let (starts_h, starts_c) = (apart(h, count)?, c.map(|c| apart(c, count)).transpose()?);
        let (mut last_h, mut last_c) = (Vec::new(), Vec::new());
        let mut x = input.clone();
        for (number, layer) in self.params.chunks(each * directions as usize).enumerate() {
            if number > 0 && self.dropout != 0.0 {
                x = x.dropout(self.dropout, true)?;
            }
            let mut outputs = Vec::new();
            for (reverse, params) in [false, true].into_iter().zip(layer.chunks(each)) {
                let c = starts_c.as_ref().map(|starts| &starts[last_h.len()]);
                let state = (&starts_h[last_h.len()], c);
                let (output, h, c) = self.layer(&x, state, params, reverse)?;
                outputs.push(output);
                last_h.push(h);
                last_c.extend(c);
            }
            x = joined(outputs, |outputs| cat(outputs, -1))?;
        }
        let together = |states: Vec<Tensor>| joined(states, |states| stack(states, 0));
        let c = if last_c.is_empty() { None } else { Some(together(last_c)?) };
        Ok((x, together(last_h)?, c))
    }

    /// Runs one layer in one direction.
    fn layer(
        &self,
        x: &Tensor,
        (h, c): (&Tensor, Option<&Tensor>),
        params: &[Tensor],
        reverse: bool,
    ) -> Result<RnnStates> {
        let weights = [&params[0], &params[1]];
        let biases = if self.has_biases { [Some(&params[2]), Some(&params[3])] } else { [None; 2] };
        let projection = params.get(2 + 2 * usize::from(self.has_biases));
        check_features(x, weights)?;
        check_dtypes(x, weights[0])?;
        check_dtypes(h, weights[1])?;
        let batch = x.shape()[x.ndim() - 2];
        let (batch, width) =
            (self.batch_sizes.first().copied().unwrap_or(batch), weights[1].shape()[1]);
        check_state(0, h, batch, width)?;
        let mut hidden = width;
        if let Some(c) = c {
            hidden = if projection.is_some() { c.shape()[c.ndim() - 1] } else { width };
            check_state(1, c, batch, hidden)?;
        }
        check_gates(weights, hidden, self.cell.gates() as i64)?;
        let layer =
            RecurrentLayer::new(self.cell, x, (h, c), weights, biases).projected(projection);
        layer.over(self.batch_sizes, reverse).run()
    }
}

/// The states of each of `count` layers; for a single layer the whole tensor, whose first size of 1 makes no
/// difference.
fn apart(states: &Tensor, count: i64) -> Result<Vec<Tensor>> {
    ensure!(states.ndim() == 3, runtime, "hx must have 3 dimensions, got {}", states.ndim());
    ensure!(states.shape()[0] == count, runtime, "Expected more hidden states in stacked_rnn");
    if count == 1 { Ok(vec![states.clone()]) } else { states.unbind(0) }
}

/// A single part as it is, several parts joined.
fn joined(mut parts: Vec<Tensor>, join: impl Fn(&[Tensor]) -> Result<Tensor>) -> Result<Tensor> {
    if parts.len() == 1 { Ok(parts.remove(0)) } else { join(&parts) }
}

/// Parameters of `layers` layers with 2 elements of state, the first of which takes 2 features.
fn params(s: &Sampler, gates: i64, layers: i64, directions: i64, biases: bool) -> Vec<Tensor> {
    let mut out = Vec::new();
    for index in 0..layers * directions {
        let features = if index < directions { 2 } else { 2 * directions };
        out.extend([s.normal(&[2 * gates, features]), s.normal(&[2 * gates, 2])]);
        if biases {
            out.extend([s.normal(&[2 * gates]), s.normal(&[2 * gates])]);
        }
    }
    out
}

/// A random state, or for an LSTM the pair of states.
fn states(s: &Sampler, gates: i64, shape: &[i64]) -> Value {
    if gates == 4 {
        Value::Tensors(vec![s.normal(shape), s.normal(shape)])
    } else {
        s.normal(shape).into()
    }
}

fn options(call: Sample, biases: bool, layers: i64, bidirectional: bool) -> Sample {
    let call = call.with("has_biases", biases).with("num_layers", layers).with("dropout", 0.0);
    call.with("train", false).with("bidirectional", bidirectional)
}

fn batch_samples(s: &Sampler, gates: i64) -> Vec<Sample> {
    let call = |input: &[i64], state: &[i64], params: Vec<Tensor>| {
        Sample::new([s.normal(input).into(), states(s, gates, state), Value::Tensors(params)])
    };
    let one = |input: &[i64], batch: i64| {
        let call = call(input, &[1, batch, 2], params(s, gates, 1, 1, true));
        options(call, true, 1, false).with("batch_first", false)
    };
    let deep = call(&[1, 3, 2], &[4, 1, 2], params(s, gates, 2, 2, false));
    let mut all = vec![
        one(&[3, 2, 2], 2),
        one(&[2, 0, 2], 0),
        options(deep, false, 2, true).with("batch_first", true),
    ];
    if gates == 4 {
        let mut params = params(s, 4, 1, 1, false);
        params[1] = s.normal(&[8, 1]);
        params.push(s.normal(&[1, 2]));
        let hx = Value::Tensors(vec![s.normal(&[1, 1, 1]), s.normal(&[1, 1, 2])]);
        let call = Sample::new([s.normal(&[2, 1, 2]).into(), hx, Value::Tensors(params)]);
        all.push(options(call, false, 1, false).with("batch_first", false));
    }
    all
}

fn packed_samples(s: &Sampler, gates: i64) -> Vec<Sample> {
    let call = |params: Vec<Tensor>, state: &[i64]| {
        let sizes = Tensor::from_slice(&[3_i64, 2, 2], &[3]).expect("samples are small");
        let hx = states(s, gates, state);
        Sample::new([s.normal(&[7, 2]).into(), sizes.into(), hx, Value::Tensors(params)])
    };
    vec![
        options(call(params(s, gates, 1, 1, true), &[1, 3, 2]), true, 1, false),
        options(call(params(s, gates, 1, 2, false), &[2, 3, 2]), false, 1, true),
    ]
}

fn step_samples(s: &Sampler, gates: i64) -> Vec<Sample> {
    let call = |batch: i64, biases: bool| {
        let mut values = vec![s.normal(&[batch, 2]).into(), states(s, gates, &[batch, 2])];
        values.extend(params(s, gates, 1, 1, biases).into_iter().map(Value::Tensor));
        Sample::new(values)
    };
    vec![call(2, true), call(3, false), call(0, true)]
}

fn invalid_batches(s: &Sampler, gates: i64) -> Vec<InvalidSample> {
    let bad = |input: &[i64], state: &[i64], count: usize, phrase: &'static str| {
        let mut params = params(s, gates, 1, 1, true);
        params.truncate(count);
        let values = [s.normal(input).into(), states(s, gates, state), Value::Tensors(params)];
        let call = options(Sample::new(values), true, 1, false).with("batch_first", false);
        InvalidSample::new(call, ErrorKind::Runtime, phrase)
    };
    vec![
        bad(&[0, 2, 2], &[1, 2, 2], 4, "Expected sequence length to be larger than 0 in RNN"),
        bad(&[3, 2, 2], &[1, 2, 2], 3, "got an incorrect number of RNN parameters"),
        bad(&[3, 2, 2], &[2, 2, 2], 4, "Expected more hidden states in stacked_rnn"),
        bad(&[3, 2], &[1, 2, 2], 4, "input must have 3 dimensions, got 2"),
        bad(&[3, 2, 3], &[1, 2, 2], 4, "input has inconsistent input_size: got 3 expected 2"),
        bad(&[3, 3, 2], &[1, 2, 2], 4, "Input batch size 3 doesn't match hidden0 batch size 2"),
    ]
}

fn invalid_steps(s: &Sampler, gates: i64) -> Vec<InvalidSample> {
    let bad = |input: &[i64], state: &[i64], phrase: &'static str| {
        let mut values = vec![s.normal(input).into(), states(s, gates, state)];
        values.extend(params(s, gates, 1, 1, true).into_iter().map(Value::Tensor));
        InvalidSample::new(Sample::new(values), ErrorKind::Runtime, phrase)
    };
    vec![
        bad(&[2], &[2], "Expected 2D input (batch x feature), but got 1D input"),
        bad(&[3, 2], &[2], "Expected 2D hidden0 (batch x hidden_size), but got 1D tensor"),
        bad(&[3, 3], &[3, 2], "input has inconsistent input_size: got 3 expected 2"),
        bad(&[3, 2], &[2, 2], "Input batch size 3 doesn't match hidden0 batch size 2"),
        bad(&[3, 2], &[3, 3], "hidden0 has inconsistent hidden_size: got 3, expected 2"),
    ]
}
