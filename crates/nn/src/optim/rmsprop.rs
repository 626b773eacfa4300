//! `RMSprop`: gradients divided by a running root of their mean square (Tieleman and Hinton 2012).

use super::rule::{
    GetState, Optimizer, UpdateRule, check_not_negative, column, read_flags, read_numbers, required,
};
use pullback::io::FileValue;
use pullback::ops::optim::fused_rmsprop_;
use pullback::{Result, Tensor};

/// `RMSprop`: `p <- p - lr g / (sqrt(v) + eps)`, see [`RMSpropOptions`].
pub type RMSprop = Optimizer<RMSpropOptions>;

/// Options of [`RMSprop`]. With `g` the gradient plus `weight_decay p`: `v <- alpha v + (1 - alpha) g^2`; `centered` takes
/// `v - a^2` for `v` with `a <- alpha a + (1 - alpha) g`; with momentum `b <- momentum b + g / (sqrt(v) + eps)`, `p <- p - lr b`.
#[derive(Clone, Debug)]
pub struct RMSpropOptions {
    /// The learning rate.
    pub lr: f64,
    /// The decay rate of the mean square.
    pub alpha: f64,
    /// The number that is added to the root.
    pub eps: f64,
    /// The penalty on squares of parameters.
    pub weight_decay: f64,
    /// The share of the buffer that is kept.
    pub momentum: f64,
    /// Whether the variance takes the place of the mean square (Graves 2013).
    pub centered: bool,
    /// Whether the objective is maximised.
    pub maximize: bool,
}

impl Default for RMSpropOptions {
    fn default() -> Self {
        RMSpropOptions {
            lr: 1e-2,
            alpha: 0.99,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            centered: false,
            maximize: false,
        }
    }
}

/// The state of a parameter in [`RMSprop`].
#[derive(Clone, Debug)]
pub struct RMSpropState {
    step: Tensor,
    square_avg: Tensor,
    grad_avg: Option<Tensor>,
    momentum_buffer: Option<Tensor>,
}

impl UpdateRule for RMSpropOptions {
    type State = RMSpropState;

    fn check(&self) -> Result<()> {
        check_not_negative(&[
            ("learning rate", self.lr),
            ("epsilon", self.eps),
            ("momentum", self.momentum),
            ("weight_decay", self.weight_decay),
            ("alpha", self.alpha),
        ])
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
        states: &mut [Option<RMSpropState>],
    ) -> Result<()> {
        let with_momentum = self.momentum > 0.0;
        for (param, state) in params.iter().zip(states.iter_mut()) {
            if state.is_none() {
                *state = Some(RMSpropState {
                    step: Tensor::options().dtype(pullback::DType::F32).zeros(())?,
                    square_avg: param.zeros_like()?,
                    grad_avg: self.centered.then(|| param.zeros_like()).transpose()?,
                    momentum_buffer: with_momentum.then(|| param.zeros_like()).transpose()?,
                });
            }
        }
        let states: Vec<&RMSpropState> = states.iter().flatten().collect();
        let averages = states.iter().filter_map(|state| state.grad_avg.clone());
        let buffers = states.iter().filter_map(|state| state.momentum_buffer.clone());
        fused_rmsprop_(
            params,
            grads,
            &column(&states, |state| &state.square_avg),
            &averages.filter(|_| self.centered).collect::<Vec<_>>(),
            &buffers.filter(|_| with_momentum).collect::<Vec<_>>(),
            &column(&states, |state| &state.step),
            self.lr,
            self.alpha,
            self.eps,
            self.weight_decay,
            self.momentum,
            self.centered,
            self.maximize,
        )
    }

    fn options(&self) -> Vec<(&'static str, FileValue)> {
        vec![
            ("lr", self.lr.into()),
            ("momentum", self.momentum.into()),
            ("alpha", self.alpha.into()),
            ("eps", self.eps.into()),
            ("centered", self.centered.into()),
            ("weight_decay", self.weight_decay.into()),
            ("capturable", false.into()),
            ("foreach", FileValue::None),
            ("maximize", self.maximize.into()),
            ("differentiable", false.into()),
        ]
    }
    fn read_options(&mut self, given: &FileValue) {
        let RMSpropOptions { lr, alpha, eps, weight_decay, momentum, centered, maximize } = self;
        read_numbers(
            given,
            [
                ("lr", lr),
                ("alpha", alpha),
                ("eps", eps),
                ("weight_decay", weight_decay),
                ("momentum", momentum),
            ],
        );
        read_flags(given, [("centered", centered), ("maximize", maximize)]);
    }
    fn state_to_values(state: &RMSpropState) -> Vec<(&'static str, Tensor)> {
        let mut values =
            vec![("step", state.step.clone()), ("square_avg", state.square_avg.clone())];
        values.extend(state.momentum_buffer.iter().map(|b| ("momentum_buffer", b.clone())));
        values.extend(state.grad_avg.iter().map(|a| ("grad_avg", a.clone())));
        values
    }
    fn state_of_values(&self, get: GetState<'_>) -> Result<RMSpropState> {
        let with_momentum = self.momentum > 0.0;
        Ok(RMSpropState {
            step: required(get, "step")?,
            square_avg: required(get, "square_avg")?,
            grad_avg: self.centered.then(|| required(get, "grad_avg")).transpose()?,
            momentum_buffer: with_momentum.then(|| required(get, "momentum_buffer")).transpose()?,
        })
    }
}
