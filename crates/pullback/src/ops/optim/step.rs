//! What all steps share: the checks before anything is written, the per-parameter scalars, the calls of the kernel.

use crate::dispatch::{Value, check_separate, check_writable};
use crate::error::ensure;
use crate::tensor::{Cpu, Writer, shares_elements};
use crate::{DType, Result, Scalar, Tensor, autograd};
use pullback_kernels::optim::{self as kernel, Rule, State};
use smallvec::SmallVec;

/// A learning rate as an op takes it.
pub(super) trait Rate {
    fn get(self) -> Result<f64>;
    /// The value that stands for it where elements are not read: the number, if it is one.
    fn stand_in(self) -> Result<f64>;
    /// A learning rate for the property tests.
    fn sample() -> Value;
}

/// The learning rate of the samples.
const RATE: f64 = 0.1;

impl Rate for f64 {
    fn get(self) -> Result<f64> {
        Ok(self)
    }
    fn stand_in(self) -> Result<f64> {
        Ok(self)
    }
    fn sample() -> Value {
        RATE.into()
    }
}

impl Rate for &Tensor {
    fn get(self) -> Result<f64> {
        // (Most are of these two dtypes, and read without a call of an op.)
        self.item_float().map_or_else(|| Ok(self.item()?.to_f64()), Ok)
    }
    fn stand_in(self) -> Result<f64> {
        let n = self.numel();
        ensure!(n == 1, runtime, "a Tensor with {n} elements cannot be converted to Scalar");
        Ok(0.0)
    }
    fn sample() -> Value {
        super::sample::number_tensor(RATE)
    }
}

/// The largest number of scalars that a rule has per parameter.
const NUMBERS: usize = 3;

/// The scalars of one parameter, in the order in which the rule names them.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    lists: &'a [(&'static str, &'a [Tensor])],
    index: usize,
}

impl Numbers<'_> {
    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.lists.iter().map(move |(_, list)| &list[self.index])
    }

    fn get(&self) -> Result<[f64; NUMBERS]> {
        let mut values = [0.0; NUMBERS];
        for (value, tensor) in values.iter_mut().zip(self.tensors()) {
            *value = tensor.get()?;
        }
        Ok(values)
    }

    fn set(&self, cpu: Cpu, values: [f64; NUMBERS]) -> Result<()> {
        for (value, tensor) in values.into_iter().zip(self.tensors()) {
            tensor.fill_with(cpu, Scalar::Float(value))?;
            tensor.bump_version(STEP);
        }
        Ok(())
    }
}

/// A rule, and how its step updates the scalars of a parameter.
pub(super) trait Step: Copy + Into<Rule> {
    /// Whether the step writes the scalars.
    const COUNTS: bool;

    /// Updates the scalars and returns those that the formula takes.
    fn advance(&self, cpu: Cpu, numbers: Numbers<'_>) -> Result<[f64; NUMBERS]>;
}

/// What is said to have written to the tensors of a step.
const STEP: Writer = Writer::Inplace(&"optimizer.step()");

/// A rule whose step counts itself, in its first scalar, where that of PyTorch's op is counted by the caller.
#[derive(Clone, Copy)]
struct Counted<R>(R);

impl<R: Into<Rule>> From<Counted<R>> for Rule {
    fn from(counted: Counted<R>) -> Rule {
        counted.0.into()
    }
}

impl<R: Step> Step for Counted<R> {
    const COUNTS: bool = true;
    fn advance(&self, cpu: Cpu, numbers: Numbers<'_>) -> Result<[f64; NUMBERS]> {
        count(cpu, numbers)
    }
}

/// Adds one to the count of steps, a rule's only scalar.
fn count(cpu: Cpu, numbers: Numbers<'_>) -> Result<[f64; NUMBERS]> {
    let [step, ..] = numbers.get()?;
    let now = [step + 1.0, 0.0, 0.0];
    numbers.set(cpu, now)?;
    Ok(now)
}

macro_rules! steps {
    ($counts:literal, $($rule:ident),*; |$cpu:ident, $numbers:ident| $advance:expr) => {$(
        impl Step for kernel::$rule {
            const COUNTS: bool = $counts;
            fn advance(&self, $cpu: Cpu, $numbers: Numbers<'_>) -> Result<[f64; NUMBERS]> {
                $advance
            }
        }
    )*};
}
// The caller of these ops counts the steps itself, as with PyTorch's ops.
steps!(false, Sgd, Adam, Adagrad; |_cpu, numbers| numbers.get());
steps!(true, Adadelta, Adamax, RAdam, RmsProp, Rprop; |cpu, numbers| count(cpu, numbers));

impl Step for kernel::NAdam {
    const COUNTS: bool = true;
    fn advance(&self, cpu: Cpu, numbers: Numbers<'_>) -> Result<[f64; NUMBERS]> {
        let [step, product, _] = numbers.get()?;
        let momentum = self.momentum(step + 1.0);
        // The product of a Python number and a tensor is computed in the dtype of the tensor.
        let dtype = numbers.tensors().nth(1).map(Tensor::dtype);
        let product = if dtype == Some(DType::F64) {
            product * momentum
        } else {
            f64::from(product as f32 * momentum as f32)
        };
        let now = [step + 1.0, product, 0.0];
        numbers.set(cpu, now)?;
        Ok(now)
    }
}

impl Step for kernel::Asgd {
    const COUNTS: bool = true;
    fn advance(&self, cpu: Cpu, numbers: Numbers<'_>) -> Result<[f64; NUMBERS]> {
        let now = numbers.get()?;
        let (eta, mu) = self.rates(now[0] + 1.0);
        numbers.set(cpu, [now[0] + 1.0, eta, mu])?;
        Ok(now)
    }
}

/// The lists of a step; those of buffers and scalars with their names.
pub(super) struct Lists<'a> {
    pub(super) params: &'a [Tensor],
    pub(super) grads: &'a [Tensor],
    pub(super) buffers: &'a [(&'static str, &'a [Tensor])],
    pub(super) numbers: &'a [(&'static str, &'a [Tensor])],
}

impl<'a> Lists<'a> {
    /// The lists of buffers that the rule uses, with their names.
    fn used_buffers(&self, rule: Rule) -> Vec<(&'static str, &'a [Tensor])> {
        let used = self.buffers.iter().zip(rule.used()).filter(|(_, used)| *used);
        used.map(|((name, list), _)| (*name, *list)).collect()
    }
}

/// Refuses lists and scalars that do not fit a step of this rule, without reading elements.
pub(super) fn check(
    rule: Rule,
    lists: &Lists<'_>,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    check_list(lists.params, lists.grads, "grads")?;
    for (name, list) in lists.used_buffers(rule) {
        check_list(lists.params, list, name)?;
    }
    for (name, list) in lists.numbers {
        check_length(lists.params, list, name)?;
    }
    for number in grad_scale.iter().chain(&found_inf) {
        number.stand_in()?;
    }
    for param in lists.params {
        ensure!(
            param.dtype().is_floating_point(),
            not_implemented,
            "\"{}\" not implemented for '{}'",
            rule.kernel(),
            param.dtype().scalar_name()
        );
    }
    for number in lists.numbers.iter().flat_map(|(_, list)| *list) {
        number.stand_in()?;
    }
    Ok(())
}

/// As [`run`], with the steps counted.
pub(super) fn run_counted<S: Step>(
    cpu: Cpu,
    step: S,
    lists: &Lists<'_>,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    run(cpu, Counted(step), lists, grad_scale, found_inf)
}

/// One step of `step`, unless `found_inf` is one.
pub(super) fn run<S: Step>(
    cpu: Cpu,
    step: S,
    lists: &Lists<'_>,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    let numbers = |index: usize| Numbers { lists: lists.numbers, index };
    let rule: Rule = step.into();
    check(rule, lists, grad_scale, found_inf)?;
    let buffers = lists.used_buffers(rule);
    let grad_scale = grad_scale.map(Rate::get).transpose()?;
    let written = Written {
        params: lists.params,
        grads: lists.grads,
        buffers: &buffers,
        is_scaled: grad_scale.is_some(),
    };
    written.check()?;
    if S::COUNTS {
        (0..lists.params.len())
            .try_for_each(|index| numbers(index).tensors().try_for_each(check_target))?;
    }
    // The scalars of all parameters are read before the first parameter is written, so that an error leaves everything
    // unchanged.
    (0..lists.params.len()).try_for_each(|index| numbers(index).get().map(drop))?;
    if found_inf.map(Rate::get).transpose()? == Some(1.0) {
        return Ok(());
    }
    written.each(cpu, |index, state| {
        Ok(kernel::step(&rule, &step.advance(cpu, numbers(index))?, grad_scale, state)?)
    })
}

fn check_length(params: &[Tensor], list: &[Tensor], what: &str) -> Result<()> {
    ensure!(
        params.len() == list.len(),
        runtime,
        "Tensor lists must have the same number of tensors, got {} parameters and {} {what}",
        params.len(),
        list.len()
    );
    Ok(())
}

/// Checks that a list goes with the parameters: same length, shapes and dtypes.
fn check_list(params: &[Tensor], list: &[Tensor], what: &str) -> Result<()> {
    check_length(params, list, what)?;
    for (index, (param, other)) in params.iter().zip(list).enumerate() {
        ensure!(
            param.shape() == other.shape()
                && param.dtype() == other.dtype()
                && param.device() == other.device(),
            runtime,
            "params and {what} must have same dtype, device and shape, but tensor {index} is {} {:?} on {} and {} {:?} on {}",
            param.dtype().spelled(),
            param.shape(),
            param.device().spelled(),
            other.dtype().spelled(),
            other.shape(),
            other.device().spelled()
        );
    }
    Ok(())
}

fn check_target(target: &Tensor) -> Result<()> {
    autograd::check_inplace(target, false)?;
    check_writable(target)
}

/// What a step does to its lists.
struct Written<'a> {
    params: &'a [Tensor],
    grads: &'a [Tensor],
    buffers: &'a [(&'static str, &'a [Tensor])],
    /// The gradients are divided by a scale and stored so.
    is_scaled: bool,
}

impl Written<'_> {
    /// The tensors that are written for one parameter.
    fn of(&self, index: usize) -> SmallVec<[&Tensor; 6]> {
        let mut written: SmallVec<[_; 6]> =
            self.buffers.iter().map(|(_, list)| &list[index]).collect();
        written.push(&self.params[index]);
        written.extend(self.is_scaled.then(|| &self.grads[index]));
        written
    }

    /// Refuses, before anything is written, what could not be written.
    fn check(&self) -> Result<()> {
        for index in 0..self.params.len() {
            let written = self.of(index);
            for (place, target) in written.iter().enumerate() {
                check_target(target)?;
                target.materialize()?;
                written[..place].iter().try_for_each(|other| check_separate(target, other))?;
            }
        }
        Ok(())
    }

    /// Runs `step` on each parameter with its gradient and buffers, and counts the writes.
    fn each(&self, cpu: Cpu, step: impl Fn(usize, &mut State<'_, '_>) -> Result<()>) -> Result<()> {
        for (index, (param, grad)) in self.params.iter().zip(self.grads).enumerate() {
            // A parameter may be its own gradient, but the kernel reads and writes apart.
            let apart = if !self.is_scaled && shares_elements(param, grad) {
                grad.dense_copy(cpu)?
            } else {
                grad.clone()
            };
            // (A view to write to, though only scaled gradients are written.)
            apart.materialize()?;
            let mut views: SmallVec<[_; kernel::BUFFERS]> =
                self.buffers.iter().map(|(_, list)| list[index].view_mut(cpu)).collect();
            let mut state = State {
                param: &mut param.view_mut(cpu),
                grad: &mut apart.view_mut(cpu),
                buffers: &mut views,
            };
            step(index, &mut state)?;
            for written in self.of(index) {
                written.bump_version(STEP);
            }
        }
        Ok(())
    }
}
