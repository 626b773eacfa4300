//! The formulas of the optimisers, element by element.
//!
//! An optimiser is a struct with its options and a [`Formula`]: which buffers it uses, and what it does
//! with one element. The operations are those of PyTorch's loops in their order, so that the numbers
//! are the same. To add one: the struct, its formula, and its name in the list at the end.

use super::BUFFERS;
use crate::dense::Real;
use crate::simd::math_f64::pow;

/// The factors that a formula computes from a parameter's numbers.
pub type Factors = [f64; 3];

/// What an optimiser does with one element.
pub(super) trait Formula: Sync {
    /// The name in the error for a dtype that the optimiser does not take.
    const KERNEL: &'static str;

    /// Which of the buffers the optimiser uses; the first, or none at all.
    fn used(&self) -> [bool; BUFFERS];

    /// The factors that the formula computes from the numbers of a parameter, its count of steps
    /// first; equal for all parameters whose numbers are equal.
    fn factors(&self, numbers: &[f64]) -> Factors {
        std::array::from_fn(|k| numbers.get(k).copied().unwrap_or(0.0))
    }

    /// The function that gives the new parameter from the old one, the gradient and the buffers, which
    /// it brings up to date.
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T, Self>;
}

/// The gradient as the steps use it: negated to climb, plus the L2 penalty.
#[inline(always)]
fn gradient<T: Real>(maximize: bool, weight_decay: f64) -> impl Fn(T, T) -> T {
    let (sign, decay) = (if maximize { -T::ONE } else { T::ONE }, T::of(weight_decay));
    // Zero times an infinite parameter would be no zero.
    let decays = weight_decay != 0.0;
    move |p, g| if decays { g * sign + p * decay } else { g * sign }
}

/// `from + share * (to - from)`, computed from the nearer end.
#[inline(always)]
fn lerp<T: Real>(share: f64) -> impl Fn(T, T) -> T {
    let (near, share, rest) = (share < 0.5, T::of(share), T::ONE - T::of(share));
    move |from, to| if near { from + share * (to - from) } else { to - (to - from) * rest }
}

/// `rate * average + (1 - rate) * g * g`.
#[inline(always)]
fn square_average<T: Real>(rate: f64) -> impl Fn(T, T) -> T {
    let (rate, keep) = (T::of(rate), T::of(1.0 - rate));
    move |average, g| average * rate + keep * g * g
}

/// Stochastic gradient descent:
/// `b = momentum * b + (1 - dampening) * g; p -= lr * b` (Nesterov: `p -= lr * (g + momentum * b)`).
/// Buffer: `b`, if there is momentum. No numbers.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Factor of the momentum buffer; 0 means no buffer.
    pub momentum: f64,
    /// Share of the new gradient kept out of the buffer.
    pub dampening: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Nesterov's form of momentum.
    pub nesterov: bool,
    /// Climb instead of descend.
    pub maximize: bool,
    /// The momentum buffer holds nothing yet and starts as the gradient.
    pub is_first_step: bool,
}

impl Formula for Sgd {
    const KERNEL: &'static str = "fused_sgd_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [self.momentum != 0.0, false, false]
    }

    #[inline(always)]
    fn element<T: Real>(&self, _: &Factors) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let (lr, momentum, keep) =
            (T::of(self.lr), T::of(self.momentum), T::of(1.0 - self.dampening));
        let gradient = gradient(self.maximize, self.weight_decay);
        let Sgd { nesterov, is_first_step, .. } = *self;
        let has_momentum = self.momentum != 0.0;
        move |p, g, [b, ..]| {
            let g = gradient(p, g);
            if !has_momentum {
                return p - lr * g;
            }
            *b = if is_first_step { g } else { momentum * *b + keep * g };
            p - lr * if nesterov { g + momentum * *b } else { *b }
        }
    }
}

/// Adam: `m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2;
/// p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)`.
/// Buffers: `m`, `v`, with `amsgrad` the largest `v`. Number: `t`.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the squared gradient's average.
    pub beta2: f64,
    /// The weight decay; see `decoupled_weight_decay`.
    pub weight_decay: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Use the largest average of squares so far.
    pub amsgrad: bool,
    /// Climb instead of descend.
    pub maximize: bool,
    /// The penalty scales the parameter (`AdamW`) instead of being added to the gradient.
    pub decoupled_weight_decay: bool,
}

/// What a decoupled penalty leaves of a parameter, and the penalty that goes into the gradient.
fn split_decay(decoupled: bool, lr: f64, weight_decay: f64) -> (f64, f64) {
    if decoupled { (1.0 - lr * weight_decay, 0.0) } else { (1.0, weight_decay) }
}

impl Formula for Adam {
    const KERNEL: &'static str = "fused_adam_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, true, self.amsgrad]
    }

    fn factors(&self, numbers: &[f64]) -> Factors {
        let step_size = self.lr / (1.0 - pow(self.beta1, numbers[0]));
        [step_size, (1.0 - pow(self.beta2, numbers[0])).sqrt(), 0.0]
    }

    #[inline(always)]
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let (shrink, decay) = split_decay(self.decoupled_weight_decay, self.lr, self.weight_decay);
        let (shrink, gradient) = (T::of(shrink), gradient(self.maximize, decay));
        let (first, second) = (lerp(1.0 - self.beta1), square_average(self.beta2));
        let [step_size, root, _] = factors.map(T::of);
        let (eps, amsgrad) = (T::of(self.eps), self.amsgrad);
        move |p, g, [m, v, top]| {
            let p = p * shrink;
            let g = gradient(p, g);
            *m = first(*m, g);
            *v = second(*v, g);
            *top = if amsgrad && *top > *v { *top } else { *v };
            p - step_size * *m / (top.sqrt() / root + eps)
        }
    }
}

/// Adagrad: `s += g^2; p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)`.
/// Buffer: `s`. Number: `t`.
#[derive(Clone, Copy, Debug)]
pub struct Adagrad {
    /// Learning rate.
    pub lr: f64,
    /// How the rate falls with the steps.
    pub lr_decay: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Formula for Adagrad {
    const KERNEL: &'static str = "fused_adagrad_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, false, false]
    }

    #[inline(always)]
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let gradient = gradient(self.maximize, self.weight_decay);
        let step_size = T::of(self.lr / (1.0 + (factors[0] - 1.0) * self.lr_decay));
        let eps = T::of(self.eps);
        move |p, g, [sum, ..]| {
            let g = gradient(p, g);
            *sum += g * g;
            p - step_size * g / (sum.sqrt() + eps)
        }
    }
}

/// Adadelta: `v = rho * v + (1 - rho) * g^2; d = sqrt(u + eps) / sqrt(v + eps) * g;
/// u = rho * u + (1 - rho) * d^2; p -= lr * d`. Buffers: `v`, `u`. Number: the count of steps, not used.
#[derive(Clone, Copy, Debug)]
pub struct Adadelta {
    /// Factor of the update.
    pub lr: f64,
    /// Decay of the averages.
    pub rho: f64,
    /// Added to the averages.
    pub eps: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Formula for Adadelta {
    const KERNEL: &'static str = "fused_adadelta_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, true, false]
    }

    #[inline(always)]
    fn element<T: Real>(&self, _: &Factors) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let gradient = gradient(self.maximize, self.weight_decay);
        let average = square_average(self.rho);
        let (lr, eps) = (T::of(self.lr), T::of(self.eps));
        move |p, g, [square, update, _]| {
            let g = gradient(p, g);
            *square = average(*square, g);
            let delta = (*update + eps).sqrt() / (*square + eps).sqrt() * g;
            *update = average(*update, delta);
            p - lr * delta
        }
    }
}

/// Adamax: `m += (1 - beta1) * (g - m); u = max(beta2 * u, |g| + eps); p -= lr / (1 - beta1^t) * m / u`.
/// Buffers: `m`, `u`. Number: `t`.
#[derive(Clone, Copy, Debug)]
pub struct Adamax {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the largest gradient.
    pub beta2: f64,
    /// Added to the magnitude of the gradient.
    pub eps: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Formula for Adamax {
    const KERNEL: &'static str = "fused_adamax_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, true, false]
    }

    fn factors(&self, numbers: &[f64]) -> Factors {
        [self.lr / (1.0 - pow(self.beta1, numbers[0])), 0.0, 0.0]
    }

    #[inline(always)]
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let gradient = gradient(self.maximize, self.weight_decay);
        let first = lerp(1.0 - self.beta1);
        let (beta2, eps) = (T::of(self.beta2), T::of(self.eps));
        let step_size = T::of(factors[0]);
        move |p, g, [m, largest, _]| {
            let g = gradient(p, g);
            *m = first(*m, g);
            let (kept, new) = (*largest * beta2, g.abs() + eps);
            // The maximum of a NaN is NaN.
            *largest = if kept > new || kept.is_nan() { kept } else { new };
            p - step_size * *m / *largest
        }
    }
}

/// Averaged stochastic gradient descent: `p = p * (1 - lambd * eta) - eta * g; a += mu * (p - a)`.
/// Buffer: `a`. Numbers: the count of steps, not used; `eta`; `mu`.
#[derive(Clone, Copy, Debug)]
pub struct Asgd {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the parameter.
    pub lambd: f64,
    /// Power of the decay of `eta`.
    pub alpha: f64,
    /// The step at which averaging begins.
    pub t0: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Asgd {
    /// `eta` and `mu` after step `t`: `lr / (1 + lambd * lr * t)^alpha` and `1 / max(1, t - t0)`.
    #[must_use]
    pub fn rates(&self, step: f64) -> (f64, f64) {
        let eta = self.lr / pow(1.0 + self.lambd * self.lr * step, self.alpha);
        (eta, 1.0 / (step - self.t0).max(1.0))
    }
}

impl Formula for Asgd {
    const KERNEL: &'static str = "fused_asgd_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, false, false]
    }

    #[inline(always)]
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let gradient = gradient(self.maximize, self.weight_decay);
        let (eta, mu, averages) = (T::of(factors[1]), T::of(factors[2]), factors[2] != 1.0);
        let shrink = T::of(1.0 - self.lambd * factors[1]);
        move |p, g, [average, ..]| {
            let p = p * shrink - eta * gradient(p, g);
            *average = if averages { *average + (p - *average) * mu } else { p };
            p
        }
    }
}

/// Adam with Nesterov momentum. With the momenta `mu` and `mu_next` of this step and the next and `c` the product of all
/// `mu` so far: `p -= lr * (1 - mu) / (1 - c) * g / d + lr * mu_next / (1 - c * mu_next) * m / d`,
/// `d = sqrt(v / (1 - beta2^t)) + eps`, `m` and `v` as in [`Adam`].
/// Buffers: `m`, `v`. Numbers: `t`, `c`.
#[derive(Clone, Copy, Debug)]
pub struct NAdam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the squared gradient's average.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// The weight decay; see `decoupled_weight_decay`.
    pub weight_decay: f64,
    /// How fast the momentum grows to `beta1`.
    pub momentum_decay: f64,
    /// The penalty scales the parameter instead of being added to the gradient.
    pub decoupled_weight_decay: bool,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl NAdam {
    /// The momentum of step `t`: `beta1 * (1 - 0.96^(t * momentum_decay) / 2)`.
    #[must_use]
    pub fn momentum(&self, step: f64) -> f64 {
        self.beta1 * (1.0 - 0.5 * pow(0.96, step * self.momentum_decay))
    }
}

impl Formula for NAdam {
    const KERNEL: &'static str = "fused_nadam_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, true, false]
    }

    fn factors(&self, numbers: &[f64]) -> Factors {
        let (step, product) = (numbers[0], numbers[1]);
        let (mu, next) = (self.momentum(step), self.momentum(step + 1.0));
        let of_gradient = self.lr * (1.0 - mu) / (1.0 - product);
        [1.0 - pow(self.beta2, step), of_gradient, self.lr * next / (1.0 - product * next)]
    }

    #[inline(always)]
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let (shrink, decay) = split_decay(self.decoupled_weight_decay, self.lr, self.weight_decay);
        let (shrink, gradient) = (T::of(shrink), gradient(self.maximize, decay));
        let (first, second) = (lerp(1.0 - self.beta1), square_average(self.beta2));
        let [correction, of_gradient, of_average] = factors.map(T::of);
        let eps = T::of(self.eps);
        move |p, g, [m, v, _]| {
            let p = p * shrink;
            let g = gradient(p, g);
            *m = first(*m, g);
            *v = second(*v, g);
            let denominator = (*v / correction).sqrt() + eps;
            p - of_gradient * g / denominator - of_average * *m / denominator
        }
    }
}

/// Rectified Adam. With `rho = 2 / (1 - beta2) - 1` and `r = rho - 2 t beta2^t / (1 - beta2^t)`, and `m`
/// and `v` as in [`Adam`]: `p -= lr * m / (1 - beta1^t)`, for `r > 5` times
/// `sqrt(1 - beta2^t) / (sqrt(v) + eps) * sqrt((r - 4) (r - 2) rho / ((rho - 4) (rho - 2) r))`.
/// Buffers: `m`, `v`. Number: `t`.
#[derive(Clone, Copy, Debug)]
pub struct RAdam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the squared gradient's average.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// The weight decay; see `decoupled_weight_decay`.
    pub weight_decay: f64,
    /// The penalty scales the parameter instead of being added to the gradient.
    pub decoupled_weight_decay: bool,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Formula for RAdam {
    const KERNEL: &'static str = "fused_radam_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, true, false]
    }

    /// (The last factor is zero as long as the step is not rectified.)
    fn factors(&self, numbers: &[f64]) -> Factors {
        let step = numbers[0];
        let correction2 = 1.0 - pow(self.beta2, step);
        let rho = 2.0 / (1.0 - self.beta2) - 1.0;
        let r = rho - 2.0 * step * pow(self.beta2, step) / correction2;
        let share = (r - 4.0) * (r - 2.0) * rho / ((rho - 4.0) * (rho - 2.0) * r);
        let rectification = if r > 5.0 { share.sqrt() } else { 0.0 };
        [1.0 - pow(self.beta1, step), correction2.sqrt(), rectification]
    }

    #[inline(always)]
    fn element<T: Real>(
        &self,
        factors: &Factors,
    ) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let (shrink, decay) = split_decay(self.decoupled_weight_decay, self.lr, self.weight_decay);
        let (shrink, gradient) = (T::of(shrink), gradient(self.maximize, decay));
        let (first, second) = (lerp(1.0 - self.beta1), square_average(self.beta2));
        let is_rectified = factors[2] > 0.0;
        let [correction1, root, rectification] = factors.map(T::of);
        let (lr, eps) = (T::of(self.lr), T::of(self.eps));
        move |p, g, [m, v, _]| {
            let p = p * shrink;
            let g = gradient(p, g);
            *m = first(*m, g);
            *v = second(*v, g);
            let update = *m / correction1 * lr;
            if is_rectified {
                p - update * (root / (v.sqrt() + eps)) * rectification
            } else {
                p - update
            }
        }
    }
}

/// `RMSprop`: `v = alpha * v + (1 - alpha) * g^2; d = sqrt(v) + eps`, centred `a += (1 - alpha) * (g - a);
/// d = sqrt(v - a^2) + eps`; then `p -= lr * g / d`, or with momentum `b = momentum * b + g / d;
/// p -= lr * b`. Buffers: `v`; `a`, if it is centred; `b`, with momentum.
/// Number: the count of steps, not used.
#[derive(Clone, Copy, Debug)]
pub struct RmsProp {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the averages.
    pub alpha: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Factor of the momentum buffer; 0 means no buffer.
    pub momentum: f64,
    /// Divide by an estimate of the standard deviation instead of the root of the mean square.
    pub centered: bool,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Formula for RmsProp {
    const KERNEL: &'static str = "fused_rmsprop_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, self.centered, self.momentum > 0.0]
    }

    #[inline(always)]
    fn element<T: Real>(&self, _: &Factors) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let gradient = gradient(self.maximize, self.weight_decay);
        let (average, mean) = (square_average(self.alpha), lerp(1.0 - self.alpha));
        let (lr, eps, momentum) = (T::of(self.lr), T::of(self.eps), T::of(self.momentum));
        let (centered, has_momentum) = (self.centered, self.momentum > 0.0);
        move |p, g, [square, grad, buffer]| {
            let g = gradient(p, g);
            *square = average(*square, g);
            *grad = if centered { mean(*grad, g) } else { T::ZERO };
            let deviation = (*square - *grad * *grad).sqrt() + eps;
            if !has_momentum {
                return p - lr * g / deviation;
            }
            *buffer = *buffer * momentum + g / deviation;
            p - lr * *buffer
        }
    }
}

/// Resilient backpropagation: the step size `s` grows by `etaplus` where the gradient keeps its sign and
/// shrinks by `etaminus` where it changes, within its bounds; there the gradient counts as zero.
/// `p -= s * sign(g)`. Buffers: the last gradient, `s`. Number: the count of steps, not used.
#[derive(Clone, Copy, Debug)]
pub struct Rprop {
    /// The least step size.
    pub step_size_min: f64,
    /// The largest step size.
    pub step_size_max: f64,
    /// Factor after a change of sign.
    pub etaminus: f64,
    /// Factor while the sign stays.
    pub etaplus: f64,
    /// Climb instead of descend.
    pub maximize: bool,
}

impl Formula for Rprop {
    const KERNEL: &'static str = "fused_rprop_kernel";

    #[inline(always)]
    fn used(&self) -> [bool; BUFFERS] {
        [true, true, false]
    }

    #[inline(always)]
    fn element<T: Real>(&self, _: &Factors) -> impl Fn(T, T, &mut [T; BUFFERS]) -> T + use<T> {
        let gradient = gradient(self.maximize, 0.0);
        let (least, most) = (T::of(self.step_size_min), T::of(self.step_size_max));
        let (shrink, grow) = (T::of(self.etaminus), T::of(self.etaplus));
        move |p, g, [previous, size, _]| {
            let g = gradient(p, g);
            let agreement = g * *previous;
            let sign_changed = agreement < T::ZERO;
            let grows = agreement > T::ZERO;
            let new = *size
                * if sign_changed {
                    shrink
                } else if grows {
                    grow
                } else {
                    T::ONE
                };
            *size = if new < least {
                least
            } else if new > most {
                most
            } else {
                new
            };
            let g = if sign_changed { T::ZERO } else { g };
            *previous = g;
            let sign = if g > T::ZERO {
                T::ONE
            } else if g < T::ZERO {
                -T::ONE
            } else {
                T::ZERO
            };
            p - sign * *size
        }
    }
}

/// Declares the list of optimisers, and an [`UpdateRule`] of each.
macro_rules! rules {
    ($($name:ident),*) => {
        /// An optimiser with its options.
        #[derive(Clone, Copy, Debug)]
        pub enum UpdateRule {
            $(#[doc = concat!("See [`struct@", stringify!($name), "`].")] $name($name),)*
        }

        $(impl From<$name> for UpdateRule {
            fn from(options: $name) -> UpdateRule {
                UpdateRule::$name(options)
            }
        })*

        impl UpdateRule {
            /// The name in the error for a dtype that the optimiser does not take.
            #[must_use]
            pub fn kernel(&self) -> &'static str {
                match self { $(UpdateRule::$name(_) => <$name as Formula>::KERNEL,)* }
            }

            /// The factors that the optimiser computes from the numbers that its description names
            /// for each parameter, the count of its steps first.
            #[must_use]
            pub fn factors(&self, numbers: &[f64]) -> Factors {
                match self { $(UpdateRule::$name(formula) => formula.factors(numbers),)* }
            }

            /// Which of the buffers that its description names the optimiser uses.
            #[must_use]
            pub fn used(&self) -> [bool; BUFFERS] {
                match self { $(UpdateRule::$name(formula) => formula.used(),)* }
            }
        }

        /// Evaluates `body` with the formula of a rule.
        macro_rules! with_formula {
            ($rule:expr, $formula:ident => $body:expr) => {
                match $rule { $($crate::optim::rule::UpdateRule::$name($formula) => $body,)* }
            };
        }
        pub(super) use with_formula;
    };
}
rules!(Sgd, Adam, Adagrad, Adadelta, Adamax, Asgd, NAdam, RAdam, RmsProp, Rprop);
