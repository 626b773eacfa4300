//! Stochastic gradient descent.

use super::rule::{
    GetState, Optimizer, UpdateRule, check_not_negative, read_flags, read_numbers, required,
};
use pullback::io::FileValue;
use pullback::ops::optim::fused_sgd_;
use pullback::{Error, Result, Tensor};

/// Stochastic gradient descent: `p <- p - lr d`, see [`SGDOptions`].
pub type SGD = Optimizer<SGDOptions>;

/// Options of [`SGD`]. With `g` the gradient plus `weight_decay p`: `b <- momentum b + (1 - dampening) g` (at first `b <- g`),
/// and `d = b`, or `d = g + momentum b` with `nesterov`; without momentum `d = g`.
#[derive(Clone, Debug)]
pub struct SGDOptions {
    /// The learning rate.
    pub lr: f64,
    /// The share of the buffer that is kept.
    pub momentum: f64,
    /// The share of the gradient that does not enter the buffer.
    pub dampening: f64,
    /// The penalty on squares of parameters.
    pub weight_decay: f64,
    /// Whether the step uses Nesterov's momentum (Sutskever and others 2013).
    pub nesterov: bool,
    /// Whether the objective is maximised.
    pub maximize: bool,
}

impl Default for SGDOptions {
    fn default() -> Self {
        SGDOptions {
            lr: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
            maximize: false,
        }
    }
}

/// The state of a parameter in [`SGD`].
#[derive(Clone, Debug)]
pub struct SGDState {
    momentum_buffer: Option<Tensor>,
}

impl SGDOptions {
    /// A step of parameters whose buffers are all there, or all new.
    fn call(&self, lists: [&[Tensor]; 3], is_first: bool) -> Result<()> {
        let [params, grads, buffers] = lists;
        let SGDOptions { lr, momentum, dampening, weight_decay, nesterov, maximize } = *self;
        fused_sgd_(
            params,
            grads,
            buffers,
            weight_decay,
            momentum,
            lr,
            dampening,
            nesterov,
            maximize,
            is_first,
        )
    }
}

impl UpdateRule for SGDOptions {
    type State = SGDState;

    fn check(&self) -> Result<()> {
        check_not_negative(&[
            ("learning rate", self.lr),
            ("momentum", self.momentum),
            ("weight_decay", self.weight_decay),
        ])?;
        if self.nesterov && (self.momentum <= 0.0 || self.dampening != 0.0) {
            return Err(Error::value("Nesterov momentum requires a momentum and zero dampening"));
        }
        Ok(())
    }
    fn lr(&self) -> f64 {
        self.lr
    }
    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
    fn step(
        &self,
        params: &[Tensor],
        grads: &[Tensor],
        states: &mut [Option<SGDState>],
    ) -> Result<()> {
        if params.is_empty() {
            return Ok(());
        }
        if self.momentum == 0.0 {
            return self.call([params, grads, &[]], false);
        }
        // A parameter that gets its first gradient late starts its buffer while those of others
        // decay.
        let is_new: Vec<bool> = states.iter().map(Option::is_none).collect();
        for first in [true, false] {
            let places: Vec<usize> = (0..params.len()).filter(|&at| is_new[at] == first).collect();
            if places.is_empty() {
                continue;
            }
            let pick = |list: &[Tensor]| places.iter().map(|&at| list[at].clone()).collect();
            let (params, grads): (Vec<_>, Vec<_>) = (pick(params), pick(grads));
            let mut buffers = Vec::new();
            for (&at, grad) in places.iter().zip(&grads) {
                let known = states[at].as_ref().and_then(|state| state.momentum_buffer.clone());
                buffers.push(known.map_or_else(|| grad.empty_like(), Ok)?);
            }
            self.call([&params, &grads, &buffers], first)?;
            for (at, buffer) in places.into_iter().zip(buffers) {
                states[at] = Some(SGDState { momentum_buffer: Some(buffer) });
            }
        }
        Ok(())
    }

    fn options(&self) -> Vec<(&'static str, FileValue)> {
        vec![
            ("lr", self.lr.into()),
            ("momentum", self.momentum.into()),
            ("dampening", self.dampening.into()),
            ("weight_decay", self.weight_decay.into()),
            ("nesterov", self.nesterov.into()),
            ("maximize", self.maximize.into()),
            ("foreach", FileValue::None),
            ("differentiable", false.into()),
            ("fused", FileValue::None),
        ]
    }
    fn read_options(&mut self, given: &FileValue) {
        let SGDOptions { lr, momentum, dampening, weight_decay, nesterov, maximize } = self;
        read_numbers(
            given,
            [
                ("lr", lr),
                ("momentum", momentum),
                ("dampening", dampening),
                ("weight_decay", weight_decay),
            ],
        );
        read_flags(given, [("nesterov", nesterov), ("maximize", maximize)]);
    }
    fn state_to_values(state: &SGDState) -> Vec<(&'static str, Tensor)> {
        state.momentum_buffer.iter().map(|b| ("momentum_buffer", b.clone())).collect()
    }
    fn state_of_values(&self, get: GetState<'_>) -> Result<SGDState> {
        let momentum_buffer = match self.momentum {
            0.0 => get("momentum_buffer")?,
            _ => Some(required(get, "momentum_buffer")?),
        };
        Ok(SGDState { momentum_buffer })
    }
}
