//! Adam (Kingma and Ba 2015), and AdamW, whose decay stays out of the moments (Loshchilov and Hutter 2019).

use super::rule::{
    GetState, Optimizer, UpdateRule, check_not_negative, column, read_flags, read_numbers, required,
};
use pullback::io::FileValue;
use pullback::ops::optim::{fused_adam_, fused_adamw_};
use pullback::{Error, Result, Tensor};

/// Adam: `p <- p - lr m_hat / (sqrt(v_hat) + eps)`, see [`AdamOptions`].
pub type Adam = Optimizer<AdamOptions>;
/// Adam with decoupled weight decay, see [`AdamWOptions`].
pub type AdamW = Optimizer<AdamWOptions>;

/// The state of a parameter in [`Adam`] and [`AdamW`].
#[derive(Clone, Debug)]
pub struct AdamState {
    step: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Option<Tensor>,
}

impl AdamState {
    fn new(param: &Tensor, amsgrad: bool) -> Result<Self> {
        Ok(AdamState {
            step: Tensor::options().dtype(pullback::DType::F32).zeros(())?,
            exp_avg: param.zeros_like()?,
            exp_avg_sq: param.zeros_like()?,
            max_exp_avg_sq: amsgrad.then(|| param.zeros_like()).transpose()?,
        })
    }
}

/// The op of a rule.
type AdamKernel = fn(
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    f64,
    f64,
    f64,
    f64,
    f64,
    bool,
    bool,
) -> Result<()>;

/// Options and rule of [`Adam`] and [`AdamW`], which differ by the default decay and by the op.
macro_rules! adam {
    ($(#[$text:meta])* $name:ident, $decay:expr, $op:path) => {
        $(#[$text])*
        #[derive(Clone, Debug)]
        pub struct $name {
            /// The learning rate.
            pub lr: f64,
            /// The decay rates of the moments of the gradient.
            pub betas: (f64, f64),
            /// The number that is added to the root.
            pub eps: f64,
            /// The weight decay.
            pub weight_decay: f64,
            /// Whether `v` never falls (Reddi, Kale and Kumar 2018).
            pub amsgrad: bool,
            /// Whether the objective is maximised.
            pub maximize: bool,
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    lr: 1e-3,
                    betas: (0.9, 0.999),
                    eps: 1e-8,
                    weight_decay: $decay,
                    amsgrad: false,
                    maximize: false,
                }
            }
        }

        impl UpdateRule for $name {
            type State = AdamState;

            fn check(&self) -> Result<()> {
                let (lr, eps, decay) = (self.lr, self.eps, self.weight_decay);
                check_not_negative(&[("learning rate", lr), ("epsilon", eps), ("weight_decay", decay)])?;
                for (index, beta) in [self.betas.0, self.betas.1].into_iter().enumerate() {
                    if !(0.0..1.0).contains(&beta) {
                        return Err(Error::value(format!(
                            "Invalid beta parameter at index {index}: {beta}"
                        )));
                    }
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
                states: &mut [Option<AdamState>],
            ) -> Result<()> {
                for (param, state) in params.iter().zip(states.iter_mut()) {
                    if state.is_none() {
                        *state = Some(AdamState::new(param, self.amsgrad)?);
                    }
                }
                let states: Vec<&AdamState> = states.iter().flatten().collect();
                let most = states.iter().filter_map(|state| state.max_exp_avg_sq.clone());
                let most: Vec<Tensor> = most.filter(|_| self.amsgrad).collect();
                let steps = column(&states, |state| &state.step);
                // The op reads the counts, which its caller updates.
                let one = Tensor::wrapped(1.0)?;
                steps.iter().try_for_each(|step| step.add_(&one).map(drop))?;
                let op: AdamKernel = $op;
                op(
                    params,
                    grads,
                    &column(&states, |state| &state.exp_avg),
                    &column(&states, |state| &state.exp_avg_sq),
                    &most,
                    &steps,
                    self.lr,
                    self.betas.0,
                    self.betas.1,
                    self.weight_decay,
                    self.eps,
                    self.amsgrad,
                    self.maximize,
                )
            }

            fn options(&self) -> Vec<(&'static str, FileValue)> {
                let betas = vec![self.betas.0.into(), self.betas.1.into()];
                vec![
                    ("lr", self.lr.into()),
                    ("betas", FileValue::Tuple(std::sync::Arc::new(betas))),
                    ("eps", self.eps.into()),
                    ("weight_decay", self.weight_decay.into()),
                    ("amsgrad", self.amsgrad.into()),
                    ("maximize", self.maximize.into()),
                    ("foreach", FileValue::None),
                    ("capturable", false.into()),
                    ("differentiable", false.into()),
                    ("fused", FileValue::None),
                    ("decoupled_weight_decay", ($decay != 0.0).into()),
                ]
            }
            fn read_options(&mut self, given: &FileValue) {
                let $name { lr, betas, eps, weight_decay, amsgrad, maximize } = self;
                read_numbers(given, [("lr", lr), ("eps", eps), ("weight_decay", weight_decay)]);
                read_flags(given, [("amsgrad", amsgrad), ("maximize", maximize)]);
                if let Some([first, second]) = given.get("betas").and_then(FileValue::elements)
                    && let (Some(first), Some(second)) = (first.as_float(), second.as_float())
                {
                    *betas = (first, second);
                }
            }
            fn state_to_values(state: &AdamState) -> Vec<(&'static str, Tensor)> {
                let mut values = vec![
                    ("step", state.step.clone()),
                    ("exp_avg", state.exp_avg.clone()),
                    ("exp_avg_sq", state.exp_avg_sq.clone()),
                ];
                values.extend(state.max_exp_avg_sq.iter().map(|m| ("max_exp_avg_sq", m.clone())));
                values
            }
            fn state_of_values(&self, get: GetState<'_>) -> Result<AdamState> {
                let most = || required(get, "max_exp_avg_sq");
                Ok(AdamState {
                    step: required(get, "step")?,
                    exp_avg: required(get, "exp_avg")?,
                    exp_avg_sq: required(get, "exp_avg_sq")?,
                    max_exp_avg_sq: self.amsgrad.then(most).transpose()?,
                })
            }
        }
    };
}

adam! {
    /// Options of [`Adam`]. With `g` the gradient plus `weight_decay p`: `m <- b1 m + (1 - b1) g`, `v <- b2 v + (1 - b2) g^2`,
    /// `m_hat = m / (1 - b1^t)`, `v_hat = v / (1 - b2^t)`.
    AdamOptions, 0.0, fused_adam_
}
adam! {
    /// Options of [`AdamW`]: as [`super::AdamOptions`], but the decay is `p <- p (1 - lr weight_decay)`, and stays out of `m` and `v`.
    AdamWOptions, 0.01, fused_adamw_
}
