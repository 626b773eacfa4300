//! The common part of all optimisers: groups of parameters, and their states.

use crate::Module;
use pullback::io::FileValue;
use pullback::{Error, Result, Tensor, no_grad};
use std::collections::HashSet;

/// The update rule of an optimiser; an instance is the options of a group.
pub trait UpdateRule: Clone + std::fmt::Debug {
    /// The state of a parameter, which is kept from step to step.
    type State: Clone + std::fmt::Debug;

    /// Refuses invalid options.
    ///
    /// # Errors
    /// `ValueError` that names the option.
    fn check(&self) -> Result<()>;
    /// The learning rate.
    fn lr(&self) -> f64;
    /// Sets the learning rate.
    fn set_lr(&mut self, lr: f64);
    /// Moves parameters, all of which have gradients; a state is `None` before the first step.
    ///
    /// # Errors
    /// Those of the op.
    fn step(
        &self,
        params: &[Tensor],
        grads: &[Tensor],
        states: &mut [Option<Self::State>],
    ) -> Result<()>;

    /// The options by PyTorch's names.
    fn options(&self) -> Vec<(&'static str, FileValue)>;
    /// Sets the options that a dictionary has under PyTorch's names; options that it lacks keep their values.
    fn read_options(&mut self, given: &FileValue);
    /// The tensors of a state, with PyTorch's names for them.
    fn state_to_values(state: &Self::State) -> Vec<(&'static str, Tensor)>;
    /// The state made of tensors that `get` finds by PyTorch's names.
    ///
    /// # Errors
    /// `RuntimeError` for names that are missing, and those of `get`.
    fn state_of_values(&self, get: GetState<'_>) -> Result<Self::State>;
}

/// The tensors of a saved state by name.
pub type GetState<'a> = &'a dyn Fn(&str) -> Result<Option<Tensor>>;

/// Parameters with the same options.
#[derive(Clone, Debug)]
pub struct Group<R: UpdateRule> {
    /// The options.
    pub rule: R,
    params: Vec<Tensor>,
    states: Vec<Option<R::State>>,
}

/// An optimiser: [`super::SGD`], [`super::Adam`] and so on, by their rule.
///
/// ```
/// use pullback_nn::prelude::*;
/// # fn main() -> Result<()> {
/// let x = Tensor::from([3.0])?.with_grad()?;
/// let options = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
/// let mut optimizer = SGD::new(&x, options)?;
/// for _ in 0..200 {
///     optimizer.zero_grad()?;
///     x.square()?.sum()?.backward()?;
///     optimizer.step()?;
/// }
/// assert!(x.item()?.to_f64().abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Optimizer<R: UpdateRule> {
    groups: Vec<Group<R>>,
}

impl<R: UpdateRule> Optimizer<R> {
    /// An optimiser of the parameters of a module (a tensor is one).
    ///
    /// # Errors
    /// `ValueError` for options that make no sense, and if there is no parameter.
    pub fn new<M: Module + ?Sized>(module: &M, options: R) -> Result<Self> {
        Optimizer::of(module.parameters(), options)
    }
    /// An optimiser of these tensors.
    ///
    /// # Errors
    /// `ValueError` for options that make no sense, tensors that are no leaves or are named twice, and an empty list.
    pub fn of(params: impl IntoIterator<Item = Tensor>, options: R) -> Result<Self> {
        let mut optimizer = Optimizer { groups: Vec::new() };
        optimizer.add_group(params, options)?;
        Ok(optimizer)
    }
    /// Adds tensors with options of their own.
    ///
    /// # Errors
    /// As for [`Optimizer::of`], and if a tensor is in another group.
    pub fn add_group(
        &mut self,
        params: impl IntoIterator<Item = Tensor>,
        options: R,
    ) -> Result<()> {
        options.check()?;
        let params: Vec<Tensor> = params.into_iter().collect();
        if params.is_empty() {
            return Err(Error::value("optimizer got an empty parameter list"));
        }
        let known = self.groups.iter().flat_map(|group| &group.params);
        let known: HashSet<usize> = known.map(Tensor::id).collect();
        let mut own = HashSet::new();
        for param in &params {
            if !param.is_leaf() {
                return Err(Error::value("can't optimize a non-leaf Tensor"));
            }
            if known.contains(&param.id()) {
                return Err(Error::value(
                    "some parameters appear in more than one parameter group",
                ));
            }
            if !own.insert(param.id()) {
                return Err(Error::value(
                    "optimizer contains a parameter group with duplicate parameters",
                ));
            }
        }
        let states = vec![None; params.len()];
        self.groups.push(Group { rule: options, params, states });
        Ok(())
    }

    /// The groups, whose options may be changed between steps.
    pub fn groups_mut(&mut self) -> &mut [Group<R>] {
        &mut self.groups
    }
    /// The learning rate of the first group.
    pub fn lr(&self) -> f64 {
        self.groups[0].rule.lr()
    }
    /// The learning rates of all groups.
    pub fn lrs(&self) -> Vec<f64> {
        self.groups.iter().map(|group| group.rule.lr()).collect()
    }
    /// Sets the learning rate of all groups.
    pub fn set_lr(&mut self, lr: f64) {
        self.groups.iter_mut().for_each(|group| group.rule.set_lr(lr));
    }
    /// Sets the gradients of all parameters to `None`.
    ///
    /// # Errors
    /// None at present.
    pub fn zero_grad(&self) -> Result<()> {
        let mut params = self.groups.iter().flat_map(|group| &group.params);
        params.try_for_each(|param| param.set_grad(None))
    }
    /// Updates every parameter that has a gradient by one step of the rule.
    ///
    /// # Errors
    /// Those of the op: gradients of another dtype, sparse ones.
    pub fn step(&mut self) -> Result<()> {
        let _off = no_grad();
        self.groups.iter_mut().try_for_each(Group::step)
    }

    /// Options and states as PyTorch's `optimizer.state_dict()` has them.
    pub fn state_dict(&self) -> FileValue {
        let (mut states, mut groups, mut first) = (Vec::new(), Vec::new(), 0_i64);
        for group in &self.groups {
            for (index, state) in (first..).zip(&group.states) {
                let Some(state) = state else { continue };
                let values = R::state_to_values(state);
                let values = values.into_iter().map(|(name, tensor)| (name, tensor.into()));
                states.push((FileValue::from(index), FileValue::dict(values)));
            }
            let end = first + group.params.len() as i64;
            let indices = (first..end).map(FileValue::from).collect();
            let mut options = group.rule.options();
            options.push(("params", FileValue::List(std::sync::Arc::new(indices))));
            groups.push(FileValue::dict(options));
            first = end;
        }
        let states = FileValue::Dict(std::sync::Arc::new(states));
        FileValue::dict([
            ("state", states),
            ("param_groups", FileValue::List(std::sync::Arc::new(groups))),
        ])
    }
    /// Takes over states and options that [`Optimizer::state_dict`] (or PyTorch's) gave.
    ///
    /// # Errors
    /// `ValueError` for other groups and options that make no sense, `RuntimeError` for states that are not those of this
    /// optimiser. Nothing changes then.
    pub fn load_state_dict(&mut self, value: &FileValue) -> Result<()> {
        let wrong = |text: &str| Error::value(format!("loaded state dict {text}"));
        let groups = value.get("param_groups").and_then(FileValue::elements);
        let groups = groups.ok_or_else(|| wrong("has no param_groups"))?;
        let states = value.get("state").and_then(FileValue::items);
        let states = states.ok_or_else(|| wrong("has no state"))?;
        if groups.len() != self.groups.len() {
            return Err(wrong("has a different number of parameter groups"));
        }
        let mut loaded = self.groups.clone();
        for (own, given) in loaded.iter_mut().zip(groups) {
            let indices = given.get("params").and_then(FileValue::elements).unwrap_or_default();
            if indices.len() != own.params.len() {
                return Err(wrong(
                    "contains a parameter group that doesn't match the size of optimizer's group",
                ));
            }
            own.rule.read_options(given);
            own.rule.check()?;
            for (place, index) in indices.iter().enumerate() {
                let state = states.iter().find(|(key, _)| key.as_int() == index.as_int());
                own.states[place] = match state {
                    None => None,
                    Some((_, values)) => Some(own.state_of(place, values)?),
                };
            }
        }
        self.groups = loaded;
        Ok(())
    }
}

impl<R: UpdateRule> Group<R> {
    fn step(&mut self) -> Result<()> {
        let with_grad = |(place, param): (usize, &Tensor)| {
            param.grad().map(|grad| (place, param.clone(), grad))
        };
        let found: Vec<_> = self.params.iter().enumerate().filter_map(with_grad).collect();
        if found.is_empty() {
            return Ok(());
        }
        let (mut params, mut grads) = (Vec::new(), Vec::new());
        let mut states = Vec::new();
        for (place, param, grad) in &found {
            params.push(param.clone());
            grads.push(grad.clone());
            states.push(self.states[*place].take());
        }
        let result = self.rule.step(&params, &grads, &mut states);
        for ((place, ..), state) in found.iter().zip(states) {
            self.states[*place] = state;
        }
        result
    }

    /// A state from a checkpoint, in the dtype of its parameter; counts stay what they are.
    fn state_of(&self, place: usize, values: &FileValue) -> Result<R::State> {
        let param = &self.params[place];
        let get = |name: &str| -> Result<Option<Tensor>> {
            let Some(value) = values.get(name).and_then(FileValue::as_tensor) else {
                return Ok(None);
            };
            let copy = value.copy()?;
            if name == "step" {
                return Ok(Some(copy));
            }
            if copy.shape() != param.shape() {
                return Err(Error::runtime(format!(
                    "{name} of a loaded state has shape {:?}, its parameter {:?}",
                    copy.shape(),
                    param.shape()
                )));
            }
            copy.to_dtype(param.dtype()).map(Some)
        };
        self.rule.state_of_values(&get)
    }
}

/// Refuses a number that is negative or NaN.
pub(super) fn check_not_negative(numbers: &[(&str, f64)]) -> Result<()> {
    for (name, number) in numbers {
        if number.is_nan() || *number < 0.0 {
            return Err(Error::value(format!("Invalid {name} value: {number}")));
        }
    }
    Ok(())
}

/// The tensor of a state, or an error that names it.
pub(super) fn required(get: GetState<'_>, name: &str) -> Result<Tensor> {
    get(name)?.ok_or_else(|| Error::runtime(format!("a state of the optimizer has no {name}")))
}

/// Sets the fields whose names a dictionary has to its numbers.
pub(super) fn read_numbers<const N: usize>(given: &FileValue, fields: [(&str, &mut f64); N]) {
    for (name, field) in fields {
        if let Some(number) = given.get(name).and_then(FileValue::as_float) {
            *field = number;
        }
    }
}

/// Sets the fields whose names a dictionary has to its booleans.
pub(super) fn read_flags<const N: usize>(given: &FileValue, fields: [(&str, &mut bool); N]) {
    for (name, field) in fields {
        if let Some(&FileValue::Bool(flag)) = given.get(name) {
            *field = flag;
        }
    }
}

/// One tensor of each state, as a list.
pub(super) fn column<S>(states: &[&S], get: impl Fn(&S) -> &Tensor) -> Vec<Tensor> {
    states.iter().map(|state| get(state).clone()).collect()
}
