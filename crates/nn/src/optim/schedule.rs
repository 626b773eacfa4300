//! Schedules: learning rates as functions of the step.
//!
//! A [`Schedule`] says by a closed form what the rate is; a [`Scheduler`] counts and sets it. PyTorch's schedules, which go from
//! rate to rate, give the same numbers up to rounding.

use super::rule::{Optimizer, UpdateRule};
use pullback::{Error, Result};
use std::f64::consts::PI;

/// A learning rate as a function of the step.
pub trait Schedule {
    /// The rate after this number of steps of the scheduler, from the initial rate.
    fn rate(&self, step: usize, initial: f64) -> f64;
}

/// Counts steps, and sets the rates of an optimiser.
///
/// ```
/// use pullback_nn::prelude::*;
/// # fn main() -> Result<()> {
/// let x = Tensor::ones([1])?.with_grad()?;
/// let mut optimizer = SGD::new(&x, SGDOptions { lr: 1.0, ..Default::default() })?;
/// let mut scheduler = Scheduler::new(&mut optimizer, StepLR { step_size: 2, gamma: 0.1 });
/// let mut rates = vec![];
/// for _ in 0..4 {
///     rates.push(optimizer.lr());
///     scheduler.step(&mut optimizer);
/// }
/// assert_eq!(rates, [1.0, 1.0, 0.1, 0.1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scheduler<S> {
    schedule: S,
    initial: Vec<f64>,
    step: usize,
}

impl<S: Schedule> Scheduler<S> {
    /// A scheduler at step 0, whose rate it sets.
    pub fn new<R: UpdateRule>(optimizer: &mut Optimizer<R>, schedule: S) -> Self {
        let scheduler = Scheduler { schedule, initial: optimizer.lrs(), step: 0 };
        scheduler.set(optimizer);
        scheduler
    }
    /// Advances by one step.
    pub fn step<R: UpdateRule>(&mut self, optimizer: &mut Optimizer<R>) {
        self.step += 1;
        self.set(optimizer);
    }
    /// Moves to a step, for example after reading a checkpoint.
    pub fn set_step<R: UpdateRule>(&mut self, optimizer: &mut Optimizer<R>, step: usize) {
        self.step = step;
        self.set(optimizer);
    }
    fn set<R: UpdateRule>(&self, optimizer: &mut Optimizer<R>) {
        for (group, &initial) in optimizer.groups_mut().iter_mut().zip(&self.initial) {
            group.rule.set_lr(self.schedule.rate(self.step, initial));
        }
    }
}

/// Multiplies the rate by `gamma` every `step_size` steps.
#[derive(Clone, Copy, Debug)]
pub struct StepLR {
    /// The number of steps for which the rate stays.
    pub step_size: usize,
    /// The factor.
    pub gamma: f64,
}

impl Schedule for StepLR {
    fn rate(&self, step: usize, initial: f64) -> f64 {
        initial * self.gamma.powi((step / self.step_size.max(1)) as i32)
    }
}

/// Multiplies the rate by `gamma` at each of some steps.
#[derive(Clone, Debug)]
pub struct MultiStepLR {
    /// The steps; one named twice counts twice.
    pub milestones: Vec<usize>,
    /// The factor.
    pub gamma: f64,
}

impl Schedule for MultiStepLR {
    fn rate(&self, step: usize, initial: f64) -> f64 {
        let passed = self.milestones.iter().filter(|&&milestone| milestone <= step).count();
        initial * self.gamma.powi(passed as i32)
    }
}

/// Multiplies the rate by `gamma` at every step.
#[derive(Clone, Copy, Debug)]
pub struct ExponentialLR {
    /// The factor.
    pub gamma: f64,
}

impl Schedule for ExponentialLR {
    fn rate(&self, step: usize, initial: f64) -> f64 {
        initial * self.gamma.powi(step as i32)
    }
}

/// Moves the rate along a line from one share of it to another: by default a warm-up.
#[derive(Clone, Copy, Debug)]
pub struct LinearLR {
    /// The initial share.
    pub start_factor: f64,
    /// The final share.
    pub end_factor: f64,
    /// The number of steps of the line.
    pub total_iters: usize,
}

impl Default for LinearLR {
    fn default() -> Self {
        LinearLR { start_factor: 1.0 / 3.0, end_factor: 1.0, total_iters: 5 }
    }
}

impl Schedule for LinearLR {
    fn rate(&self, step: usize, initial: f64) -> f64 {
        let part = step.min(self.total_iters) as f64 / self.total_iters.max(1) as f64;
        initial * (self.start_factor + (self.end_factor - self.start_factor) * part)
    }
}

/// Moves the rate along half a cosine down to `eta_min` in `t_max` steps, and up again (Loshchilov
/// and Hutter 2017).
#[derive(Clone, Copy, Debug)]
pub struct CosineAnnealingLR {
    /// Half a period.
    pub t_max: usize,
    /// The lowest rate.
    pub eta_min: f64,
}

impl Schedule for CosineAnnealingLR {
    fn rate(&self, step: usize, initial: f64) -> f64 {
        let angle = PI * step as f64 / self.t_max.max(1) as f64;
        self.eta_min + (initial - self.eta_min) * (1.0 + angle.cos()) / 2.0
    }
}

/// Moves the rate up to a maximum and down to almost nothing, along cosines (Smith 2018). The
/// initial rate is ignored.
#[derive(Clone, Copy, Debug)]
pub struct OneCycleLR {
    /// The highest rate.
    pub max_lr: f64,
    /// The total number of steps.
    pub total_steps: usize,
    /// The share of the steps on the way up.
    pub pct_start: f64,
    /// The ratio of the highest rate to the first one.
    pub div_factor: f64,
    /// The ratio of the first rate to the last one.
    pub final_div_factor: f64,
}

impl Default for OneCycleLR {
    fn default() -> Self {
        OneCycleLR {
            max_lr: 0.1,
            total_steps: 1000,
            pct_start: 0.3,
            div_factor: 25.0,
            final_div_factor: 1e4,
        }
    }
}

impl Schedule for OneCycleLR {
    fn rate(&self, step: usize, _: f64) -> f64 {
        let (end, top) = (self.total_steps as f64 - 1.0, self.total_steps as f64);
        let peak = self.pct_start * top - 1.0;
        let (first, at) = (self.max_lr / self.div_factor, (step as f64).min(end));
        let cosine =
            |from: f64, to: f64, part: f64| to + (from - to) / 2.0 * (1.0 + (PI * part).cos());
        if at <= peak {
            cosine(first, self.max_lr, at / peak)
        } else {
            cosine(self.max_lr, first / self.final_div_factor, (at - peak) / (end - peak))
        }
    }
}

/// Multiplies the rate by a function of the step.
#[derive(Clone, Copy, Debug)]
pub struct LambdaLR<F>(pub F);

impl<F: Fn(usize) -> f64> Schedule for LambdaLR<F> {
    fn rate(&self, step: usize, initial: f64) -> f64 {
        initial * (self.0)(step)
    }
}

/// Lowers the rates when a loss no longer falls.
#[derive(Clone, Debug)]
pub struct ReduceLROnPlateau {
    factor: f64,
    patience: usize,
    best: f64,
    bad: usize,
}

impl ReduceLROnPlateau {
    /// Multiplies the rates by `factor` after more than `patience` losses in a row that are not
    /// lower than the best by a ten-thousandth.
    ///
    /// # Errors
    /// `ValueError` if the factor does not lower anything.
    pub fn new(factor: f64, patience: usize) -> Result<Self> {
        if factor >= 1.0 {
            return Err(Error::value("Factor should be < 1.0."));
        }
        Ok(ReduceLROnPlateau { factor, patience, best: f64::INFINITY, bad: 0 })
    }
    /// Observes a loss, and lowers the rates if they are due.
    pub fn step<R: UpdateRule>(&mut self, optimizer: &mut Optimizer<R>, loss: f64) {
        const THRESHOLD: f64 = 1e-4;
        if loss < self.best * (1.0 - THRESHOLD) || self.best.is_infinite() && loss.is_finite() {
            (self.best, self.bad) = (loss, 0);
            return;
        }
        self.bad += 1;
        if self.bad > self.patience {
            self.bad = 0;
            for group in optimizer.groups_mut() {
                group.rule.set_lr(group.rule.lr() * self.factor);
            }
        }
    }
}
