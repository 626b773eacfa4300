//! Recurrent layers: `RNN`, `LSTM`, `GRU`.
//!
//! A call is one op, which runs all layers, directions and steps. The parameters of layer `k` are `weight_ih_l{k}`,
//! `weight_hh_l{k}`, `bias_ih_l{k}`, `bias_hh_l{k}`, with `_reverse` behind them for the other direction.

use super::{dropout, init};
use crate::Module;
use crate::module::{Kind, Path};
use pullback::{Error, Result, Tensor, TensorOptions};

/// Options of the recurrent layers.
#[derive(Clone, Debug)]
pub struct RecurrentOptions {
    /// How many layers are stacked.
    pub num_layers: i64,
    /// Whether there are biases.
    pub bias: bool,
    /// Whether batches are `(N, T, ..)` instead of `(T, N, ..)`.
    pub batch_first: bool,
    /// The probability of dropping between layers.
    pub dropout: f64,
    /// Whether each layer also runs backwards.
    pub bidirectional: bool,
    /// How the parameters are made.
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
            tensors: TensorOptions::new(),
        }
    }
}

/// What a layer computes in a step.
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

/// The parameters of stacked layers, and how they run. [`RNN`], [`LSTM`] and [`GRU`] are made of it.
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
    /// `ValueError` for sizes that are not positive and a dropout that is no probability; out of memory.
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
        let mut parameters = Vec::new();
        for layer in 0..options.num_layers {
            for suffix in &["", "_reverse"][..=usize::from(options.bidirectional)] {
                let rows = cell.gates() * hidden_size;
                let directions = 1 + i64::from(options.bidirectional);
                let inputs = if layer == 0 { input_size } else { hidden_size * directions };
                let t = options.tensors.clone().requires_grad(true);
                let mut add = |kind: &str, sizes: &[i64]| -> Result<()> {
                    parameters.push((format!("{kind}_l{layer}{suffix}"), t.empty(sizes)?));
                    Ok(())
                };
                add("weight_ih", &[rows, inputs])?;
                add("weight_hh", &[rows, hidden_size])?;
                if options.bias {
                    add("bias_ih", &[rows])?;
                    add("bias_hh", &[rows])?;
                }
            }
        }
        let bound = 1.0 / (hidden_size as f64).sqrt();
        for (_, parameter) in &parameters {
            init::uniform_(parameter, -bound, bound, options.tensors.drawn_from())?;
        }
        Ok(Recurrent { cell, parameters, input_size, hidden_size, options, training: true })
    }

    /// Checks an input, `(T, N, F)` or `(N, T, F)`, and gives the shape of a state.
    fn state_shape(&self, input: &Tensor) -> Result<[i64; 3]> {
        let &[first, second, features] = input.shape() else {
            let text = format!("input must have 3 dimensions, got {}", input.ndim());
            return Err(Error::runtime(text));
        };
        if features != self.input_size {
            return Err(Error::runtime(format!(
                "input.size(-1) must be equal to input_size. Expected {}, got {features}",
                self.input_size
            )));
        }
        let batch = if self.options.batch_first { first } else { second };
        let directions = 1 + i64::from(self.options.bidirectional);
        Ok([self.options.num_layers * directions, batch, self.hidden_size])
    }

    /// The outputs and the last state, from a first one: `h`, or `h` and `c` of LSTM.
    fn run(&self, input: &Tensor, state: Option<&[&Tensor]>) -> Result<(Tensor, Vec<Tensor>)> {
        let shape = self.state_shape(input)?;
        let count = if self.cell == Cell::Lstm { 2 } else { 1 };
        let state: Vec<Tensor> = match state {
            Some(given) => given.iter().map(|&part| part.clone()).collect(),
            None => (0..count).map(|_| input.new_zeros(&shape)).collect::<Result<_>>()?,
        };
        if let Some(wrong) = state.iter().find(|part| part.shape() != shape) {
            let text = format!("Expected hidden size {shape:?}, got {:?}", wrong.shape());
            return Err(Error::runtime(text));
        }
        let weights: Vec<Tensor> = self.parameters.iter().map(|(_, p)| p.clone()).collect();
        let (w, o) = (&weights[..], &self.options);
        let (bias, layers, drop, train) = (o.bias, o.num_layers, o.dropout, self.training);
        let (two_ways, batch_first) = (o.bidirectional, o.batch_first);
        let run = match self.cell {
            Cell::Tanh => Tensor::rnn_tanh,
            Cell::ReLU => Tensor::rnn_relu,
            Cell::Gru => Tensor::gru,
            Cell::Lstm => {
                let [y, h, c] =
                    input.lstm(&state, w, bias, layers, drop, train, two_ways, batch_first)?;
                return Ok((y, vec![h, c]));
            }
        };
        let [y, h] = run(input, &state[0], w, bias, layers, drop, train, two_ways, batch_first)?;
        Ok((y, vec![h]))
    }
}

impl Module for Recurrent {
    fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, Kind, &Tensor)) {
        for (name, parameter) in &self.parameters {
            visitor(&path.child(name), Kind::Parameter, parameter);
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
            fn visit(&self, path: &Path<'_>, visitor: &mut dyn FnMut(&Path<'_>, Kind, &Tensor)) {
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
                let (y, mut state) = self.0.run(input, given.as_ref().map(<[_; 1]>::as_slice))?;
                Ok((y, state.remove(0)))
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
        let (y, mut state) = self.0.run(input, given.as_ref().map(<[_; 2]>::as_slice))?;
        let c = state.remove(1);
        Ok((y, (state.remove(0), c)))
    }
}
