//! Recurrent layers: `RNN`, `LSTM`, `GRU`.
//!
//! A call is one op, which runs all layers, directions and steps. The parameters of layer `k` are `weight_ih_l{k}`,
//! `weight_hh_l{k}`, `bias_ih_l{k}`, `bias_hh_l{k}`, with `_reverse` behind them for the other direction.

use super::{PackedSequence, dropout, init};
use crate::Module;
use crate::module::{Path, TensorKind};
use pullback::{Error, Result, Tensor, TensorOptions};

/// Options of the recurrent layers.
#[derive(Clone, Debug)]
pub struct RecurrentOptions {
    /// The number of stacked layers.
    pub num_layers: i64,
    /// Whether there are biases.
    pub bias: bool,
    /// Whether batches are `(N, T, ..)` instead of `(T, N, ..)`.
    pub batch_first: bool,
    /// The probability of dropping between layers.
    pub dropout: f64,
    /// Whether each layer also runs backwards.
    pub bidirectional: bool,
    /// The size to which the outputs of LSTM are projected, less than that of the cells; 0 for no projection.
    pub proj_size: i64,
    /// Dtype and device of the parameters, and the generator that they are drawn from.
    pub tensors: TensorOptions,
}

impl Default for RecurrentOptions {
    fn default() -> Self {
        RecurrentOptions {
            num_layers: 1,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            bidirectional: false,
            proj_size: 0,
            tensors: TensorOptions::new(),
        }
    }
}

impl RecurrentOptions {
    fn directions(&self) -> i64 {
        1 + i64::from(self.bidirectional)
    }
    /// The size of the output of a layer of cells of this size.
    fn shown_size(&self, hidden_size: i64) -> i64 {
        if self.proj_size > 0 { self.proj_size } else { hidden_size }
    }
}

/// The function that a layer computes in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// `tanh(W x + U h)`.
    Tanh,
    /// `relu(W x + U h)`.
    ReLU,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997).
    Lstm,
    /// The gated unit (Cho and others 2014).
    Gru,
}

impl Cell {
    fn gates(self) -> i64 {
        match self {
            Cell::Tanh | Cell::ReLU => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }
}

/// The parameters of stacked layers, and how they run. [`RNN`], [`LSTM`] and [`GRU`] consist of it.
#[derive(Clone, Debug)]
pub struct Recurrent {
    cell: Cell,
    parameters: Vec<(String, Tensor)>,
    input_size: i64,
    hidden_size: i64,
    options: RecurrentOptions,
    training: bool,
}

impl Recurrent {
    /// Layers of this cell. All parameters are drawn from `U(-b, b)`, `b = 1 / sqrt(hidden_size)`.
    ///
    /// # Errors
    /// `ValueError` for sizes that are not positive, a dropout that is no probability, and projections of other cells than
    /// [`Cell::Lstm`]; out of memory.
    pub fn new(
        cell: Cell,
        input_size: i64,
        hidden_size: i64,
        options: RecurrentOptions,
    ) -> Result<Self> {
        dropout::check(options.dropout)?;
        if input_size <= 0 || hidden_size <= 0 || options.num_layers <= 0 {
            return Err(Error::value(format!(
                "input_size, hidden_size and num_layers must be greater than zero, got {input_size}, {hidden_size} and {}",
                options.num_layers
            )));
        }
        check_projection(cell, hidden_size, options.proj_size)?;
        let mut parameters = Vec::new();
        let (rows, shown) = (cell.gates() * hidden_size, options.shown_size(hidden_size));
        for layer in 0..options.num_layers {
            for suffix in &["", "_reverse"][..options.directions() as usize] {
                let inputs = if layer == 0 { input_size } else { shown * options.directions() };
                let t = options.tensors.clone().requires_grad(true);
                let mut add = |kind: &str, sizes: &[i64]| -> Result<()> {
                    parameters.push((format!("{kind}_l{layer}{suffix}"), t.empty(sizes)?));
                    Ok(())
                };
                add("weight_ih", &[rows, inputs])?;
                add("weight_hh", &[rows, shown])?;
                if options.bias {
                    add("bias_ih", &[rows])?;
                    add("bias_hh", &[rows])?;
                }
                if options.proj_size > 0 {
                    add("weight_hr", &[shown, hidden_size])?;
                }
            }
        }
        let bound = 1.0 / (hidden_size as f64).sqrt();
        for (_, parameter) in &parameters {
            init::uniform_(parameter, -bound, bound, options.tensors.drawn_from())?;
        }
        Ok(Recurrent { cell, parameters, input_size, hidden_size, options, training: true })
    }

    /// Checks an input, and returns the size of its batch.
    fn batch_of(&self, input: RecurrentInput<'_>) -> Result<i64> {
        let (rank, batch) = match input {
            RecurrentInput::Padded(x) => (3, x.shape().get(usize::from(!self.options.batch_first))),
            RecurrentInput::Packed(x) => (2, x.batch_sizes().first()),
        };
        let shape = input.rows().shape();
        let (Some(&batch), Some(&features), true) = (batch, shape.last(), shape.len() == rank)
        else {
            let text = format!("input must have {rank} dimensions, got {}", shape.len());
            return Err(Error::runtime(text));
        };
        if features != self.input_size {
            return Err(Error::runtime(format!(
                "input.size(-1) must be equal to input_size. Expected {}, got {features}",
                self.input_size
            )));
        }
        Ok(batch)
    }

    /// The initial states: the given ones, or zeros.
    fn first_states(
        &self,
        input: RecurrentInput<'_>,
        given: Option<&[&Tensor]>,
    ) -> Result<Vec<Tensor>> {
        let (o, batch) = (&self.options, self.batch_of(input)?);
        let shape = |size| [o.num_layers * o.directions(), batch, size];
        let shapes = [shape(o.shown_size(self.hidden_size)), shape(self.hidden_size)];
        let shapes = if self.cell == Cell::Lstm { &shapes[..] } else { &shapes[..1] };
        let Some(given) = given else {
            return shapes.iter().map(|shape| input.rows().new_zeros(shape)).collect();
        };
        let mut states = Vec::new();
        for (&state, shape) in given.iter().zip(shapes) {
            if state.shape() != shape {
                let text = format!("Expected hidden size {shape:?}, got {:?}", state.shape());
                return Err(Error::runtime(text));
            }
            states.push(match input {
                RecurrentInput::Padded(_) => state.clone(),
                RecurrentInput::Packed(packed) => packed.to_sorted(state)?,
            });
        }
        Ok(states)
    }

    /// The outputs and the last states for these initial states: `h`, or `h` and `c` for an LSTM.
    fn run(
        &self,
        input: RecurrentInput<'_>,
        given: Option<&[&Tensor]>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let states = self.first_states(input, given)?;
        let weights: Vec<Tensor> = self.parameters.iter().map(|(_, p)| p.clone()).collect();
        let (w, o, train) = (&weights[..], &self.options, self.training);
        let (bias, layers, drop, both) = (o.bias, o.num_layers, o.dropout, o.bidirectional);
        match input {
            RecurrentInput::Padded(x) => {
                let run = match self.cell {
                    Cell::Tanh => Tensor::rnn_tanh,
                    Cell::ReLU => Tensor::rnn_relu,
                    Cell::Gru => Tensor::gru,
                    Cell::Lstm => {
                        let [y, h, c] =
                            x.lstm(&states, w, bias, layers, drop, train, both, o.batch_first)?;
                        return Ok((y, vec![h, c]));
                    }
                };
                let [y, h] = run(x, &states[0], w, bias, layers, drop, train, both, o.batch_first)?;
                Ok((y, vec![h]))
            }
            RecurrentInput::Packed(packed) => {
                let (x, sizes) = (packed.data(), Tensor::from(packed.batch_sizes())?);
                let run = match self.cell {
                    Cell::Tanh => Tensor::rnn_tanh_packed,
                    Cell::ReLU => Tensor::rnn_relu_packed,
                    Cell::Gru => Tensor::gru_packed,
                    Cell::Lstm => {
                        let [y, h, c] =
                            x.lstm_packed(&sizes, &states, w, bias, layers, drop, train, both)?;
                        return Ok((y, vec![packed.to_batch(&h)?, packed.to_batch(&c)?]));
                    }
                };
                let [y, h] = run(x, &sizes, &states[0], w, bias, layers, drop, train, both)?;
                Ok((y, vec![packed.to_batch(&h)?]))
            }
        }
    }
}

/// The input of recurrent layers.
#[derive(Clone, Copy)]
enum RecurrentInput<'a> {
    /// `(T, N, F)`, or `(N, T, F)` with `batch_first`.
    Padded(&'a Tensor),
    Packed(&'a PackedSequence),
}

impl<'a> RecurrentInput<'a> {
    fn rows(self) -> &'a Tensor {
        match self {
            RecurrentInput::Padded(x) => x,
            RecurrentInput::Packed(packed) => packed.data(),
        }
    }
}

fn check_projection(cell: Cell, hidden_size: i64, proj_size: i64) -> Result<()> {
    let text = if proj_size < 0 {
        "proj_size should be a positive integer or zero to disable projections"
    } else if proj_size > 0 && cell != Cell::Lstm {
        "proj_size argument is only supported for LSTM, not RNN or GRU"
    } else if proj_size >= hidden_size {
        "proj_size has to be smaller than hidden_size"
    } else {
        return Ok(());
    };
    Err(Error::value(text))
}

impl Module for Recurrent {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
        for (name, parameter) in &self.parameters {
            visitor(&path.child(name), TensorKind::Parameter, parameter);
        }
    }
    fn set_training(&mut self, training: bool) {
        self.training = training;
    }
}

/// Layers of one cell.
macro_rules! layers {
    ($($(#[$text:meta])* $name:ident($cell:expr);)*) => {$(
        $(#[$text])*
        #[derive(Clone, Debug)]
        pub struct $name(Recurrent);
        impl $name {
            /// One layer.
            ///
            /// # Errors
            /// As for [`Recurrent::new`].
            pub fn new(input_size: i64, hidden_size: i64) -> Result<Self> {
                $name::with(input_size, hidden_size, RecurrentOptions::default())
            }
            /// Layers with these options.
            ///
            /// # Errors
            /// As for [`Recurrent::new`].
            pub fn with(input_size: i64, hidden_size: i64, options: RecurrentOptions) -> Result<Self> {
                Recurrent::new($cell, input_size, hidden_size, options).map($name)
            }
        }
        impl Module for $name {
            fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, TensorKind, &Tensor)) {
                self.0.visit(path, visitor);
            }
            fn set_training(&mut self, training: bool) {
                self.0.set_training(training);
            }
        }
    )*};
}
layers! {
    /// Layers of `h' = tanh(W x + b + U h + c)`; other cells by [`RNN::of`].
    RNN(Cell::Tanh);
    /// Long short-term memory.
    LSTM(Cell::Lstm);
    /// Gated units.
    GRU(Cell::Gru);
}

/// The function of layers whose state is one tensor.
macro_rules! one_state {
    ($($name:ident),*) => {$(
        impl $name {
            /// Runs over a sequence `(T, N, F)` (`(N, T, F)` with `batch_first`) from the state `h`
            /// `(layers * directions, N, H)`, zeros without it: the outputs of the last layer, and the last state.
            ///
            /// # Errors
            /// `RuntimeError` for shapes that do not fit.
            pub fn forward(&self, input: &Tensor, h: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
                let given = h.map(|h| [h]);
                let given = given.as_ref().map(<[_; 1]>::as_slice);
                let (y, mut state) = self.0.run(RecurrentInput::Padded(input), given)?;
                Ok((y, state.remove(0)))
            }
            /// As [`Self::forward`] over sequences of different lengths; states are in the order of the batch.
            ///
            /// # Errors
            /// `RuntimeError` for shapes that do not fit.
            pub fn forward_packed(
                &self,
                input: &PackedSequence,
                h: Option<&Tensor>,
            ) -> Result<(PackedSequence, Tensor)> {
                let given = h.map(|h| [h]);
                let given = given.as_ref().map(<[_; 1]>::as_slice);
                let (y, mut state) = self.0.run(RecurrentInput::Packed(input), given)?;
                Ok((input.with_data(y), state.remove(0)))
            }
        }
    )*};
}
one_state!(RNN, GRU);

impl RNN {
    /// Layers of a cell with one gate: [`Cell::Tanh`] or [`Cell::ReLU`].
    ///
    /// # Errors
    /// `ValueError` for other cells, and as for [`Recurrent::new`].
    pub fn of(
        cell: Cell,
        input_size: i64,
        hidden_size: i64,
        options: RecurrentOptions,
    ) -> Result<Self> {
        if cell.gates() != 1 {
            return Err(Error::value(format!("an RNN is of Tanh or ReLU, not of {cell:?}")));
        }
        Recurrent::new(cell, input_size, hidden_size, options).map(RNN)
    }
}

impl LSTM {
    /// As [`GRU::forward`], with the states `h` and `c`.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit.
    pub fn forward(
        &self,
        input: &Tensor,
        state: Option<(&Tensor, &Tensor)>,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let given = state.map(|(h, c)| [h, c]);
        let given = given.as_ref().map(<[_; 2]>::as_slice);
        let (y, mut state) = self.0.run(RecurrentInput::Padded(input), given)?;
        let c = state.remove(1);
        Ok((y, (state.remove(0), c)))
    }
    /// As [`LSTM::forward`] over sequences of different lengths; states are in the order of the batch.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not fit.
    pub fn forward_packed(
        &self,
        input: &PackedSequence,
        state: Option<(&Tensor, &Tensor)>,
    ) -> Result<(PackedSequence, (Tensor, Tensor))> {
        let given = state.map(|(h, c)| [h, c]);
        let given = given.as_ref().map(<[_; 2]>::as_slice);
        let (y, mut state) = self.0.run(RecurrentInput::Packed(input), given)?;
        let c = state.remove(1);
        Ok((input.with_data(y), (state.remove(0), c)))
    }
}
