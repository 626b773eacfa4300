//! The tangents of an op's outputs from those of its inputs: Jacobian times vector.
//!
//! An op's own rule (`OpDef::jvp`) says how; a view's is the view itself. An op that only has gradient rules is pushed
//! forward by transposing them: its gradient `v(g) = Jᵀg` is linear in `g`, and the gradient of `<v(g), t>` by `g` is
//! `Jt`, whatever `g` is (the trick with two reverse passes; J. Townsend, "A new trick for calculating Jacobian
//! vector products", 2017). Rules see values without tangents. Invariant: what comes out shares no memory with a
//! tangent that went in, except for views.

use crate::autograd::api::{self, BackwardOptions};
use crate::autograd::call::call;
use crate::autograd::engine::fit::fit;
use crate::autograd::graph::input_meta::InputMeta;
use crate::autograd::thread::{level, saved_hooks};
use crate::autograd::variable::history::grad_fn_of;
use crate::autograd::variable::tangent;
use crate::autograd::{arithmetic, mode, record};
use crate::call_site::CallSite;
use crate::dispatch::{
    Arg, ArgDef, ArgKind, Facts, Grads, Jvp, OpDef, RuleCtx, Save, SaveKind, Traits, Value,
    each_tensor,
};
use crate::tensor::{Flag, shares_memory};
use crate::{Error, Result, Tensor, TensorSpec};
use smallvec::SmallVec;

/// The tangents of the tensors in one argument, in order; `None` is zero.
type Tangents = SmallVec<[Option<Tensor>; 1]>;

/// An input and its tangent; a missing tensor of a list has its edge all the same.
type InputEdge<'a> = (Option<&'a Tensor>, Option<Tensor>);

/// A call whose tangents can be computed as soon as its outputs are there.
pub(crate) struct Pushforward {
    def: &'static OpDef,
    /// The arguments, tensors without tangents.
    primals: Vec<Value>,
    tangents: Vec<Tangents>,
}

impl Pushforward {
    /// The push-forward of a functional form.
    pub(in crate::autograd) fn of(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Self> {
        Self::new(def, args, |_, tensor| tangent::primal(tensor))
    }

    /// The push-forward of the form that writes into its first argument, before the write: what the rule reads of that memory
    /// is copied.
    pub(in crate::autograd) fn before_write(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Self> {
        let Some(Arg::Tensor(target)) = args.first() else { return Self::of(def, args) };
        let mut push = Self::new(def, args, |index, tensor| {
            if shares_memory(tensor, target) && reads(def, index) {
                return arithmetic::clone(&tangent::primal(tensor)?);
            }
            tangent::primal(tensor)
        })?;
        // The new tangent may save the old one, which is then given a history that contains the new one's node.
        for tangent in push.tangents.iter_mut().flatten().flatten() {
            *tangent = tangent::result(tangent)?;
        }
        Ok(push)
    }

    /// The push-forward with these tangents of the tensor arguments, for tests of rules.
    pub(crate) fn with_tangents(
        def: &'static OpDef,
        values: &[Value],
        tangents: &[Option<Tensor>],
    ) -> Self {
        let tangents = tangents.iter().map(|t| Tangents::from_elem(t.clone(), 1)).collect();
        Pushforward { def, primals: values.to_vec(), tangents }
    }

    fn new(
        def: &'static OpDef,
        args: &[Arg<'_>],
        primal: impl Fn(usize, &Tensor) -> Result<Tensor>,
    ) -> Result<Self> {
        let one = |tensor: Option<&Tensor>| tensor.map_or(Ok(None), tangent::of);
        let tangents = args.iter().map(|arg| tensors_of(*arg).into_iter().map(one).collect());
        let tangents = tangents.collect::<Result<_>>()?;
        let value = |(index, arg): (usize, &Arg<'_>)| {
            Ok(match arg {
                Arg::Tensor(t) => Value::Tensor(primal(index, t)?),
                Arg::Tensors(list) => {
                    Value::Tensors(list.iter().map(|t| primal(index, t)).collect::<Result<_>>()?)
                }
                Arg::OptTensors(list) => Value::OptTensors(
                    list.iter()
                        .map(|t| t.as_ref().map(|t| primal(index, t)).transpose())
                        .collect::<Result<_>>()?,
                ),
                other => Value::from_arg(*other),
            })
        };
        let primals = args.iter().enumerate().map(value).collect::<Result<_>>()?;
        Ok(Pushforward { def, primals, tangents })
    }

    /// Whether the tangents of the outputs may require grad.
    pub(in crate::autograd) fn requires_grad(&self) -> bool {
        let args: SmallVec<[Arg<'_>; 8]> = self.primals.iter().map(Value::as_arg).collect();
        let mut requires = self.tangents.iter().flatten().flatten().any(Tensor::requires_grad);
        each_tensor(&args, |tensor| requires |= tensor.requires_grad());
        requires
    }

    /// The tangents of the outputs, `None` where it is zero.
    ///
    /// # Errors
    /// `NotImplementedError` if the op has no derivative but an output that would want one; those of the rules.
    pub(crate) fn run(&self, outputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let is_wanted = |output: &Tensor| output.dtype().is_differentiable();
        let own = self.def.with_gradient(outputs);
        if self.def.is(Traits::NOT_DIFFERENTIABLE) || !own.iter().any(is_wanted) {
            return Ok(vec![None; outputs.len()]);
        }
        let outputs: Vec<Tensor> = outputs.iter().map(tangent::result).collect::<Result<_>>()?;
        let _below = level::below();
        let mut tangents = self.apply_rule(&outputs)?;
        tangents.truncate(own.len());
        tangents.resize(outputs.len(), None);
        for (output, tangent) in outputs.iter().zip(&mut tangents) {
            if !is_wanted(output) {
                *tangent = None;
            }
            if let Some(raw) = tangent.take() {
                *tangent = Some(self.fit(raw, output)?);
            }
        }
        Ok(tangents)
    }

    fn apply_rule(&self, outputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        match &self.def.jvp {
            _ if self.def.is(Traits::VIEW) => self.linear(),
            Jvp::Linear => self.linear(),
            Jvp::Elementwise => self.elementwise(outputs),
            Jvp::Rule(saves, optional, rule) => self.rule(saves, *optional, *rule, outputs),
            Jvp::None if self.def.vjp.is_empty() => Err(not_implemented(self.def.name)),
            Jvp::None => self.transposed(outputs),
        }
    }

    /// The tangent in its output's shape, in memory of its own.
    fn fit(&self, tangent: Tensor, output: &Tensor) -> Result<Tensor> {
        let mut tangent = tangent;
        if tangent.shape() != output.shape() {
            tangent = arithmetic::expand(&tangent, output.shape())?;
        }
        let mut known = self.tangents.iter().flatten().flatten();
        if !self.def.is(Traits::VIEW) && known.any(|t| shares_memory(t, &tangent)) {
            tangent = arithmetic::clone(&tangent)?;
        }
        Ok(tangent)
    }

    /// The tangents of the outputs of a linear op: the op on the tangents, all together.
    fn linear(&self) -> Result<Vec<Option<Tensor>>> {
        let moved = self.primals.iter().zip(&self.tangents).zip(self.def.args);
        let moved: Vec<Value> = moved
            .map(|((value, tangents), info)| moved_value(value, tangents, info))
            .collect::<Result<_>>()?;
        let args: SmallVec<[Arg<'_>; 8]> = moved.iter().map(Value::as_arg).collect();
        let outputs = call(self.def, &args)?;
        Ok(outputs.as_slice().iter().cloned().map(Some).collect())
    }

    /// The tangents of the outputs by the gradient rule on the tangent, conjugated before and after: for ops of one input,
    /// element by element.
    fn elementwise(&self, outputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let tangent = self.tangents.iter().flatten().flatten().next();
        let (Some(tangent), Some(rule)) = (tangent, self.def.vjp.first()) else {
            return Ok(Vec::new());
        };
        let grads = [Some(arithmetic::conj(tangent)?)];
        let out = self.with_context(self.def.saves, outputs, &grads, &[], rule.args, rule.call)?;
        let out = out.into_iter().next().flatten();
        Ok(vec![out.map(|t| arithmetic::conj(&t)).transpose()?])
    }

    /// The tangents of the outputs by the op's own rule; missing tangents are zeros, except those that the rule can do without.
    fn rule(
        &self,
        saves: &[Save],
        optional: u64,
        rule: fn(&RuleCtx<'_>) -> Result<Grads>,
        outputs: &[Tensor],
    ) -> Result<Vec<Option<Tensor>>> {
        let tangents = self.primals.iter().zip(&self.tangents);
        let tangents: Vec<Option<Tensor>> = tangents
            .enumerate()
            .map(|(index, (value, tangents))| match value {
                Value::Tensor(_) if optional >> index & 1 != 0 => {
                    Ok(tangents.first().cloned().flatten())
                }
                Value::Tensor(t) => or_zeros(tangents.first(), t).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        let out = self.with_context(saves, outputs, &[], &tangents, u64::MAX, rule)?;
        Ok(out.into_vec())
    }

    /// The result of the gradient rule of an op of one input on `grad`.
    pub(in crate::autograd) fn pull_back(&self, grad: &Tensor) -> Result<Tensor> {
        let rule = self.def.vjp.first().ok_or_else(|| not_implemented(self.def.name))?;
        let grads = [Some(grad.clone())];
        let out = self.with_context(self.def.saves, &[], &grads, &[], rule.args, rule.call)?;
        out.into_iter().next().flatten().ok_or_else(|| not_implemented(self.def.name))
    }

    fn with_context(
        &self,
        saves: &[Save],
        outputs: &[Tensor],
        grads: &[Option<Tensor>],
        tangents: &[Option<Tensor>],
        needs: u64,
        rule: fn(&RuleCtx<'_>) -> Result<Grads>,
    ) -> Result<Grads> {
        let saved: Vec<Value> = saves.iter().map(|save| self.saved(save, outputs)).collect();
        let saved: SmallVec<[Arg<'_>; 4]> = saved.iter().map(Value::as_arg).collect();
        let args: SmallVec<[Arg<'_>; 8]> = self.primals.iter().map(Value::as_arg).collect();
        rule(&RuleCtx { grads, saved: &saved, facts: Facts::of(&args), needs, tangents })
    }

    /// The value that a node would have saved.
    fn saved(&self, save: &Save, outputs: &[Tensor]) -> Value {
        let Some(value) = self.primals.get(save.index) else {
            return Value::Tensor(outputs[save.index].clone());
        };
        match (save.what, value) {
            (SaveKind::Output, _) => Value::Tensor(outputs[save.index].clone()),
            (SaveKind::Input, value) => value.clone(),
            (SaveKind::Shape, Value::Tensor(t)) => Value::Ints(t.shape().into()),
            (SaveKind::Strides, Value::Tensor(t)) => Value::Ints(t.strides().into()),
            (SaveKind::Offset, Value::Tensor(t)) => Value::Int(t.storage_offset()),
            (SaveKind::Spec, Value::Tensor(t)) => Value::Spec(Box::new(TensorSpec::like(t))),
            (SaveKind::Shapes, Value::Tensors(list)) => Value::Ints(record::flatten_shapes(list)),
            _ => Value::None,
        }
    }

    /// The tangents of the outputs by the transposed gradient rules.
    fn transposed(&self, outputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let create_graph = mode::is_recording();
        let _grad = mode::enable_grad();
        let _unhooked = saved_hooks::suspend();
        let lent: Vec<Value> = self.primals.iter().map(lent).collect::<Result<_>>()?;
        let args: SmallVec<[Arg<'_>; 8]> = lent.iter().map(Value::as_arg).collect();
        let (edges, needs) = self.edges(&args);
        if needs == 0 {
            return Ok(Vec::new());
        }
        let heads: Vec<Tensor> = outputs.iter().map(Tensor::detached).collect::<Result<_>>()?;
        record::record(self.def, &args, needs, &heads, CallSite::here())?;
        let Some(node) = heads.iter().find_map(grad_fn_of) else {
            return Ok(Vec::new());
        };
        let own = self.def.with_gradient(outputs);
        let mut seeds: Vec<Option<Tensor>> = own.iter().map(seed).collect::<Result<_>>()?;
        seeds.resize(outputs.len(), None);
        let grads = node.apply(seeds.iter().cloned().collect(), &|i| {
            edges.get(i).is_some_and(|(_, tangent)| tangent.is_some())
        })?;
        let (mut roots, mut starts) = (Vec::new(), Vec::new());
        for ((input, tangent), grad) in edges.iter().zip(grads) {
            let (Some(tangent), Some(grad)) = (tangent, grad) else { continue };
            let grad = fit_gradient(grad, *input, self.def.name)?;
            if grad.requires_grad() {
                starts.push(arithmetic::to_dtype(tangent, grad.dtype())?);
                roots.push(grad);
            }
        }
        if roots.is_empty() {
            return Ok(Vec::new());
        }
        let roots: Vec<&Tensor> = roots.iter().collect();
        let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
        let wanted: Vec<&Tensor> = seeds.iter().flatten().collect();
        let options =
            BackwardOptions { create_graph, allow_unused: true, ..BackwardOptions::default() };
        let mut found = api::grad(&roots, &wanted, &starts, options)?.into_iter();
        Ok(seeds.iter().map(|seed| seed.as_ref().and_then(|_| found.next().flatten())).collect())
    }

    /// The input and its tangent for each edge of the op's node, and which arguments have a tangent, a bit each.
    fn edges<'a>(&self, args: &[Arg<'a>]) -> (Vec<InputEdge<'a>>, u64) {
        let (mut edges, mut needs) = (Vec::new(), 0);
        for (index, info) in self.def.args.iter().enumerate().filter(|(_, info)| info.has_vjp) {
            let tangents = &self.tangents[index];
            if tangents.iter().any(Option::is_some) {
                needs |= 1 << index;
            }
            let inputs = tensors_of(args[index]);
            if inputs.is_empty() && !matches!(info.kind, ArgKind::Tensors | ArgKind::OptTensors) {
                edges.push((None, None));
            }
            for (nr, input) in inputs.into_iter().enumerate() {
                edges.push((input, tangents.get(nr).cloned().flatten()));
            }
        }
        (edges, needs)
    }
}

/// The tensors of an argument; `None` for those that are missing in a list.
fn tensors_of(arg: Arg<'_>) -> SmallVec<[Option<&Tensor>; 1]> {
    if let Arg::OptTensors(list) = arg {
        return list.iter().map(Option::as_ref).collect();
    }
    let mut tensors = SmallVec::new();
    each_tensor(&[arg], |tensor| tensors.push(Some(tensor)));
    tensors
}

/// A gradient fitted to its input as the engine does it.
fn fit_gradient(grad: Tensor, input: Option<&Tensor>, name: &str) -> Result<Tensor> {
    let Some(input) = input else { return Ok(grad) };
    let is_part = grad.dtype().is_complex() && !input.dtype().is_complex();
    let grad = if is_part { arithmetic::real_part(&grad)? } else { grad };
    fit(grad, &InputMeta::of(input), false, || format!("the gradient rule of {name}"))
}

/// The gradient of an output from which a linear function of it is differentiated.
fn seed(output: &Tensor) -> Result<Option<Tensor>> {
    // An output without elements was not requested (`compute_uv=False`): rules take no gradient of it.
    if !output.dtype().is_differentiable() || output.numel() == 0 {
        return Ok(None);
    }
    let _unrecorded = mode::set_grad(false);
    arithmetic::zeros_like(output)?.with_grad().map(Some)
}

/// The value for a node that lasts no longer than the call: inference tensors, which nodes do not save, as ordinary ones.
fn lent(value: &Value) -> Result<Value> {
    let one = |t: &Tensor| {
        if t.is_inference() {
            let alias = t.alias_with(t.shape(), t.strides(), t.storage_offset())?;
            Ok(alias.with_bits_of(t))
        } else {
            Ok(t.clone())
        }
    };
    Ok(match value {
        Value::Tensor(t) => Value::Tensor(one(t)?),
        Value::Tensors(list) => Value::Tensors(list.iter().map(one).collect::<Result<_>>()?),
        Value::OptTensors(list) => {
            let list = list.iter().map(|t| t.as_ref().map(one).transpose());
            Value::OptTensors(list.collect::<Result<_>>()?)
        }
        other => other.clone(),
    })
}

/// Whether the rule reads the value of argument `index`.
fn reads(def: &OpDef, index: usize) -> bool {
    let saves = match &def.jvp {
        Jvp::Linear => return !def.args[index].has_vjp,
        Jvp::Rule(saves, ..) => saves,
        Jvp::Elementwise | Jvp::None => def.saves,
    };
    saves.iter().any(|save| save.what == SaveKind::Input && save.index == index)
}

fn or_zeros(tangent: Option<&Option<Tensor>>, tensor: &Tensor) -> Result<Tensor> {
    if let Some(Some(tangent)) = tangent {
        return Ok(tangent.clone());
    }
    let _unrecorded = mode::set_grad(false);
    let zeros = arithmetic::zeros_like(tensor)?;
    if tensor.is_wrapped_number() {
        zeros.set_flag(Flag::WRAPPED_NUMBER, true);
    }
    Ok(zeros)
}

/// The argument of a linear op with its tangents instead of its tensors.
fn moved_value(value: &Value, tangents: &Tangents, info: &ArgDef) -> Result<Value> {
    let is_moved = info.has_vjp || tangents.iter().any(Option::is_some);
    Ok(match value {
        Value::Tensor(t) if is_moved => Value::Tensor(or_zeros(tangents.first(), t)?),
        Value::Tensors(list) if is_moved => {
            let pairs = list.iter().enumerate();
            Value::Tensors(pairs.map(|(i, t)| or_zeros(tangents.get(i), t)).collect::<Result<_>>()?)
        }
        Value::OptTensors(list) if is_moved => {
            let one = |(i, t): (usize, &Option<Tensor>)| {
                t.as_ref().map(|t| or_zeros(tangents.get(i), t)).transpose()
            };
            Value::OptTensors(list.iter().enumerate().map(one).collect::<Result<_>>()?)
        }
        other => other.clone(),
    })
}

/// The error of an op that has no derivative.
#[cold]
pub(in crate::autograd) fn not_implemented(name: &str) -> Error {
    Error::not_implemented(format!(
        "Trying to use forward AD with {name} that does not support it because it has not been implemented yet."
    ))
}
