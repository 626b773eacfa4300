//! What all steps share: the checks before anything is written, the per-parameter scalars, the calls of the kernel.

use crate::dispatch::{Value, check_separate, check_writable};
use crate::error::ensure;
use crate::tensor::{Cpu, Writer, are_apart, shares_elements};
use crate::{DType, Error, Result, Tensor, autograd};
use pullback_kernels::optim::{self as kernel, Factors, OptimState, UpdateRule};
use pullback_kernels::{memory, parallel};
use smallvec::SmallVec;

/// A learning rate as an op takes it.
pub(super) trait Rate {
    /// The rate; that of a tensor is read.
    fn get(self) -> Result<f64>;
    /// The rate without reading elements, for checks: a number itself, and a valid value in place of a tensor's.
    fn stand_in(self) -> Result<f64>;
    /// Whether it is a tensor.
    fn is_tensor(&self) -> bool;
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
    fn is_tensor(&self) -> bool {
        false
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
    fn is_tensor(&self) -> bool {
        true
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
            tensor.set_item(cpu, value)?;
            tensor.bump_version(STEP);
        }
        Ok(())
    }
}

/// A rule, and how its step updates the scalars of a parameter.
pub(super) trait FusedStep: Copy + Into<UpdateRule> {
    /// Whether the step writes the scalars.
    const COUNTS: bool;

    /// Updates the scalars and returns those that the formula takes.
    fn advance(&self, cpu: Cpu, numbers: Numbers<'_>) -> Result<[f64; NUMBERS]>;
}

/// The writer that errors name when a tensor was changed by a step.
const STEP: Writer = Writer::Inplace(&"optimizer.step()");

/// A rule whose step counts itself, in its first scalar, where that of PyTorch's op is counted by the caller.
#[derive(Clone, Copy)]
struct CountedStep<R>(R);

impl<R: Into<UpdateRule>> From<CountedStep<R>> for UpdateRule {
    fn from(counted: CountedStep<R>) -> UpdateRule {
        counted.0.into()
    }
}

impl<R: FusedStep> FusedStep for CountedStep<R> {
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
        impl FusedStep for kernel::$rule {
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

impl FusedStep for kernel::NAdam {
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

impl FusedStep for kernel::Asgd {
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
    fn used_buffers(&self, rule: UpdateRule) -> Vec<(&'static str, &'a [Tensor])> {
        let used = self.buffers.iter().zip(rule.used()).filter(|(_, used)| *used);
        used.map(|((name, list), _)| (*name, *list)).collect()
    }
}

/// Refuses a call without any tensor, if the op has the name of PyTorch's, which has no kernel for that.
pub(super) fn check_given(name: Option<&str>, lists: &Lists<'_>, has_tensor: bool) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let buffers = lists.buffers.iter().chain(lists.numbers).map(|(_, list)| *list);
    let mut all = [lists.params, lists.grads].into_iter().chain(buffers);
    ensure!(
        has_tensor || all.any(|list| !list.is_empty()),
        not_implemented,
        "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback function is registered for schema aten::{name}."
    );
    Ok(())
}

/// Refuses lists and scalars that do not fit a step of this rule, without reading elements.
pub(super) fn check(
    rule: UpdateRule,
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

/// One step as [`run`] does it, of a rule whose op counts its steps itself.
pub(super) fn run_counted<S: FusedStep>(
    cpu: Cpu,
    step: S,
    lists: &Lists<'_>,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    run(cpu, CountedStep(step), lists, grad_scale, found_inf)
}

/// Updates all parameters of `lists` by `step`; does nothing if `found_inf` is 1.
pub(super) fn run<S: FusedStep>(
    cpu: Cpu,
    step: S,
    lists: &Lists<'_>,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    let numbers = |index: usize| Numbers { lists: lists.numbers, index };
    let rule: UpdateRule = step.into();
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
    let mut factors: Vec<Factors> = memory::with_capacity(lists.params.len())?;
    // Parameters have mostly made the same number of steps.
    let mut last = ([f64::NAN; NUMBERS], Factors::default());
    for index in 0..lists.params.len() {
        let now = step.advance(cpu, numbers(index))?;
        if now != last.0 {
            last = (now, rule.factors(&now));
        }
        factors.push(last.1);
    }
    written.each(cpu, &|index, state| kernel::step(&rule, &factors[index], grad_scale, state))
}

fn check_length(params: &[Tensor], list: &[Tensor], what: &str) -> Result<()> {
    ensure!(
        params.len() == list.len(),
        runtime,
        "Expected {what}.size() == n_tensors to be true, but got false. There are {} parameters and {} {what}.",
        params.len(),
        list.len()
    );
    Ok(())
}

/// Checks that a list goes with the parameters: same length, shapes and dtypes.
fn check_list(params: &[Tensor], list: &[Tensor], what: &str) -> Result<()> {
    check_length(params, list, what)?;
    for (index, (param, other)) in params.iter().zip(list).enumerate() {
        let fits = param.shape() == other.shape()
            && param.dtype() == other.dtype()
            && param.device() == other.device();
        if !fits {
            return Err(unlike(index, param, other, what));
        }
    }
    Ok(())
}

/// The error of a parameter, the one at `index`, that its tensor of the list `what` is not like.
#[cold]
fn unlike(index: usize, param: &Tensor, other: &Tensor, what: &str) -> Error {
    let (dtype, found) = (param.dtype(), other.dtype());
    let text = if dtype == found {
        String::new()
    } else {
        let names = (dtype.scalar_name(), found.scalar_name());
        format!("expected scalar type {} but found {}: ", names.0, names.1)
    };
    Error::runtime(format!(
        "{text}params and {what} must have same dtype, device and shape, but tensor {index} is {} {:?} on {} and {} {:?} on {}",
        dtype.spelled(),
        param.shape(),
        param.device().spelled(),
        found.spelled(),
        other.shape(),
        other.device().spelled()
    ))
}

fn check_target(target: &Tensor) -> Result<()> {
    autograd::check_inplace(target, false)?;
    check_writable(target)
}

/// A function that updates the parameter with an index, given its elements and buffers.
type Move<'m> = dyn Fn(usize, &mut OptimState<'_, '_>) -> pullback_kernels::Result<()> + Sync + 'm;

/// The tensors that a step writes.
struct Written<'a> {
    params: &'a [Tensor],
    grads: &'a [Tensor],
    buffers: &'a [(&'static str, &'a [Tensor])],
    /// Whether the gradients are written too: divided by the scale.
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

    /// Runs `step` on each parameter with its gradient and buffers, on several threads, and counts the writes.
    fn each(&self, cpu: Cpu, step: &Move<'_>) -> Result<()> {
        let count = self.params.len();
        // (A view to write to, though only scaled gradients are written.)
        self.grads.iter().try_for_each(Tensor::materialize)?;
        let size = |index: usize| self.params[index].numel() as usize;
        let work = |index: usize| self.one(cpu, index, &self.grads[index], step);
        let is_small = (0..count).map(size).sum::<usize>() <= kernel::GROUP;
        // Rows that share memory are steps one after the other.
        let done = if is_small || parallel::num_threads() == 1 || !are_apart(self.all())? {
            (0..count).try_for_each(|index| self.one_alone(cpu, index, step))
        } else {
            kernel::for_each_parameter(count, &size, &work).map_err(Into::into)
        };
        for index in 0..count {
            self.of(index).into_iter().for_each(|written| written.bump_version(STEP));
        }
        done
    }

    /// The tensors of all parameters that a step reads or writes.
    fn all(&self) -> impl Iterator<Item = &Tensor> {
        let buffers = self.buffers.iter().flat_map(|(_, list)| *list);
        self.params.iter().chain(self.grads).chain(buffers)
    }

    /// Runs `step` on one parameter, which may be its own gradient: the kernel reads and writes apart.
    fn one_alone(&self, cpu: Cpu, index: usize, step: &Move<'_>) -> Result<()> {
        let (param, grad) = (&self.params[index], &self.grads[index]);
        let is_shared = !self.is_scaled && shares_elements(param, grad);
        let copy = is_shared.then(|| grad.dense_copy(cpu)).transpose()?;
        Ok(self.one(cpu, index, copy.as_ref().unwrap_or(grad), step)?)
    }

    /// Runs `step` on one parameter and its gradient.
    fn one(
        &self,
        cpu: Cpu,
        index: usize,
        grad: &Tensor,
        step: &Move<'_>,
    ) -> pullback_kernels::Result<()> {
        let mut views: SmallVec<[_; kernel::BUFFERS]> =
            self.buffers.iter().map(|(_, list)| list[index].view_mut(cpu)).collect();
        let mut state = OptimState {
            param: &mut self.params[index].view_mut(cpu),
            grad: &mut grad.view_mut(cpu),
            buffers: &mut views,
        };
        step(index, &mut state)
    }
}
