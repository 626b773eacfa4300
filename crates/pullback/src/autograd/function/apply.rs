//! Custom functions for Rust: a forward and the backward that belongs to it, written by hand.
//!
//! [`apply`] runs the forward without recording, makes one node for it and lets `custom` give the outputs
//! their history, by the same rules that Python's `Function` follows. Invariant: what was saved is checked
//! for later writes when it is read, and is gone once the graph is freed. Start at [`Function`].

use super::custom::{CustomCall, attach_outputs, save};
use super::custom_jvp::{InputTangents, push};
use crate::autograd::graph::creation;
use crate::autograd::graph::node::{Backward, Edge, Node, SavedTensor};
use crate::autograd::{batch, engine, mode};
use crate::call_site::{CallSite, Scope};
use crate::dispatch::{Arg, Grads};
use crate::error::{Error, bail, ensure};
use crate::prof::{self, Open, RangeKind};
use crate::tensor::TensorSpec;
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

/// An operation with a derivative of its own. What is no tensor is kept in `self`. For one or two lines of forward and
/// backward, [`Custom`](crate::autograd::Custom) takes closures.
///
/// ```
/// use pullback::autograd::{Context, Function, apply_one};
/// use pullback::{Result, Tensor};
///
/// /// `x³`, with its derivative `3x²`.
/// struct Cube;
/// impl Function for Cube {
///     fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
///         ctx.save_for_backward(&inputs[0]);
///         Ok(vec![inputs[0].mul(&inputs[0])?.mul(&inputs[0])?])
///     }
///     fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
///         let [x] = &ctx.saved()?;
///         let grad = grads[0].as_ref().expect("missing gradients are made zeros");
///         Ok(vec![Some((grad * (x * x * 3.0)).get()?)])
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[2.0], &[1])?.with_grad()?;
/// let y = apply_one(Cube, &[&x])?;
/// assert_eq!(y.grad_fn()?.unwrap().name(), "CubeBackward");
/// y.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [12.0]);
/// # Ok(())
/// # }
/// ```
pub trait Function: Send + Sync + 'static {
    /// Computes the outputs; nothing in it is recorded.
    ///
    /// # Errors
    /// Any error of the computation; the call fails with it.
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
    /// Called after forward with what it gave, under the same modes: the place for saving and marking where forward is
    /// to know nothing of the context.
    ///
    /// # Errors
    /// Any error; the call fails with it.
    fn setup_context(
        &self,
        ctx: &mut Context,
        inputs: &[Tensor],
        outputs: &[Tensor],
    ) -> Result<()> {
        let _ = (ctx, inputs, outputs);
        Ok(())
    }
    /// Computes the gradients of the inputs, one for each, from those of the outputs; `None` means
    /// zero. It is itself recorded if the user asks for higher derivatives.
    ///
    /// # Errors
    /// Any error of the computation; backward stops with it.
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
    /// Computes the tangents of the outputs, one for each, from those of the inputs; `None` means
    /// zero. Called after forward, if an input has a tangent; missing ones are zeros unless forward
    /// said otherwise. Where forward wrote to an input this writes to its tangent; where forward
    /// gave a view this gives the same view of the tangent.
    ///
    /// # Errors
    /// Any error of the computation; unless overridden, `NotImplementedError`.
    fn jvp(&self, ctx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let _ = (ctx, tangents);
        Err(Error::not_implemented(format!(
            "{}: You must implement the jvp function for custom autograd.Function to use it with forward mode AD.",
            std::any::type_name::<Self>()
        )))
    }
    /// Whether backward is not made of differentiable ops: it then runs unrecorded, and to differentiate what it gave
    /// is an error.
    fn is_once_differentiable(&self) -> bool {
        false
    }
    /// The name of the node, as `grad_fn.name()` returns it: the type's name and `Backward`, unless
    /// overridden.
    fn name(&self) -> String {
        let path = std::any::type_name::<Self>();
        let path = path.split('<').next().unwrap_or(path);
        format!("{}Backward", path.rsplit("::").next().unwrap_or(path))
    }
}

/// The saved tensors of a node, shared with the contexts its backward runs in; once released, that they are freed.
type SharedSaved = Arc<Mutex<Vec<SavedTensor>>>;

/// Tensors as calls name them: `&x`, `[&x, &y]`, `&list`, `Some(&x)`.
pub trait Tensors {
    /// Adds the tensors to a list.
    fn add_to(self, list: &mut Vec<Tensor>);
}

impl Tensors for &Tensor {
    fn add_to(self, list: &mut Vec<Tensor>) {
        list.push(self.clone());
    }
}

impl<'a, I: IntoIterator<Item = &'a Tensor>> Tensors for I {
    fn add_to(self, list: &mut Vec<Tensor>) {
        list.extend(self.into_iter().cloned());
    }
}

/// Values other than tensors that forward keeps, by type.
type Data = Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>;

/// The context of one call: what forward passes to backward, and what both can read.
#[derive(Default)]
pub struct Context {
    needs_input_grad: Vec<bool>,
    saved: Vec<Tensor>,
    saved_for_forward: Vec<Tensor>,
    dirty: Vec<Tensor>,
    non_differentiable: Vec<Tensor>,
    keeps_missing: bool,
    data: Data,
    /// During backward: where the saved tensors are, and the node that they were saved for.
    run: Option<(SharedSaved, Node)>,
}

impl Context {
    /// Keeps inputs or outputs for backward: `&x`, `[&x, &y]`, `&list`. The order of calls is the order of
    /// [`Context::saved_tensors`]. Other tensors may be saved as well, but gradients do not flow into them.
    pub fn save_for_backward(&mut self, tensors: impl Tensors) {
        tensors.add_to(&mut self.saved);
    }
    /// Keeps tensors for `jvp` alone, which then sees these as [`Context::saved_tensors`] and not those for backward.
    pub fn save_for_forward(&mut self, tensors: impl Tensors) {
        tensors.add_to(&mut self.saved_for_forward);
    }
    /// What forward saved.
    ///
    /// # Errors
    /// `RuntimeError` if one of them was written to since, or the graph was freed.
    pub fn saved_tensors(&self) -> Result<Vec<Tensor>> {
        let Some((saved, node)) = &self.run else {
            let list = if self.saved_for_forward.is_empty() {
                &self.saved
            } else {
                &self.saved_for_forward
            };
            return Ok(list.clone());
        };
        let saved = lock(saved);
        saved.iter().map(|s| s.unpack(node)).collect()
    }
    /// The saved tensors as an array, where their number is known: `let [x, y] = ctx.saved()?`.
    ///
    /// # Errors
    /// As [`Context::saved_tensors`], and if there are more or fewer.
    pub fn saved<const N: usize>(&self) -> Result<[Tensor; N]> {
        <[Tensor; N]>::try_from(self.saved_tensors()?).map_err(|list| {
            Error::runtime(format!("{} tensors were saved, {N} are requested", list.len()))
        })
    }
    /// Keeps a value that is no tensor for backward and `jvp`; of each type the last one.
    pub fn set_data<T: Any + Send + Sync>(&mut self, value: T) {
        Arc::make_mut(&mut self.data).insert(TypeId::of::<T>(), Arc::new(value));
    }
    /// The value of this type that forward kept.
    pub fn data<T: Any>(&self) -> Option<&T> {
        self.data.get(&TypeId::of::<T>())?.downcast_ref()
    }
    /// Whether the gradient of input `nr` is wanted: the others' need not be computed. In backward this asks the run: one
    /// that computes the gradients of some tensors only does not want all.
    pub fn needs_input_grad(&self, nr: usize) -> bool {
        let is_wanted = self.needs_input_grad.get(nr).copied().unwrap_or(false);
        match &self.run {
            Some((_, node)) if is_wanted && !engine::is_whole_backward() => node
                .next_edges()
                .get(nr)
                .and_then(|edge| edge.node.as_ref())
                .is_some_and(|next| engine::will_execute(next).unwrap_or(true)),
            _ => is_wanted,
        }
    }
    /// Declares that forward wrote to these inputs in place; each must also be one of the outputs.
    pub fn mark_dirty(&mut self, tensors: impl Tensors) {
        tensors.add_to(&mut self.dirty);
    }
    /// Declares that these outputs have no gradient.
    pub fn mark_non_differentiable(&mut self, tensors: impl Tensors) {
        tensors.add_to(&mut self.non_differentiable);
    }
    /// Whether outputs without gradient give backward zeros (they do, unless this says no) or `None`.
    pub fn set_materialize_grads(&mut self, materialize: bool) {
        self.keeps_missing = !materialize;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The node of one call.
struct FunctionNode<F> {
    function: Arc<F>,
    needs_input_grad: Vec<bool>,
    keeps_missing: bool,
    data: Data,
    outputs: Vec<TensorSpec>,
    saved: SharedSaved,
}

impl<F: Function> Backward for FunctionNode<F> {
    fn name(&self) -> String {
        self.function.name()
    }
    fn release(&self) {
        let mut saved = lock(&self.saved);
        // Without saved tensors there is nothing to free: such a node can run again.
        let is_due = saved.iter().any(|saved| !saved.is_freed());
        let old = is_due
            .then(|| std::mem::replace(&mut *saved, vec![SavedTensor::freed(CallSite::here())]));
        drop(saved);
        drop(old);
    }
    fn apply(&self, node: &Node, mut grads: Grads) -> Result<Grads> {
        if !self.keeps_missing {
            for (grad, spec) in grads.iter_mut().zip(&self.outputs) {
                if grad.is_none() {
                    *grad = Some(spec.zeros()?);
                }
            }
        }
        let ctx = Context {
            needs_input_grad: self.needs_input_grad.clone(),
            keeps_missing: self.keeps_missing,
            data: self.data.clone(),
            run: Some((self.saved.clone(), node.clone())),
            ..Context::default()
        };
        let result = if self.function.is_once_differentiable() {
            once(&grads, || self.function.backward(&ctx, &grads))?
        } else {
            self.function.backward(&ctx, &grads)?
        };
        ensure!(
            result.len() == self.needs_input_grad.len(),
            runtime,
            "function {} returned an incorrect number of gradients (expected {}, got {})",
            self.function.name(),
            self.needs_input_grad.len(),
            result.len()
        );
        Ok(result.into())
    }
}

/// Runs a backward unrecorded; where it should have been recorded, what it gave cannot be differentiated.
fn once(
    grads: &[Option<Tensor>],
    backward: impl FnOnce() -> Result<Vec<Option<Tensor>>>,
) -> Result<Vec<Option<Tensor>>> {
    let is_due = mode::is_recording() && grads.iter().flatten().any(Tensor::requires_grad);
    let results = {
        let _below = mode::set_grad(false);
        backward()?
    };
    if !is_due {
        return Ok(results);
    }
    let refuse = |result: Tensor| {
        if !result.dtype().is_differentiable() {
            return Ok(result);
        }
        apply_one(Refuse, &[&result.detached()?.with_grad()?])
    };
    results.into_iter().map(|result| result.map(refuse).transpose()).collect()
}

/// A node that gives an error: the backward of an alias that cannot be differentiated.
struct Refuse;

impl Function for Refuse {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(inputs.to_vec())
    }
    fn backward(&self, _: &Context, _: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        bail!(
            runtime,
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
    }
    fn name(&self) -> String {
        "Error".into()
    }
}

/// Calls a custom function of one output.
///
/// # Errors
/// As [`apply`]; `RuntimeError` if there is not exactly one output.
#[track_caller]
pub fn apply_one<F: Function>(function: F, inputs: &[&Tensor]) -> Result<Tensor> {
    let outputs = apply(function, inputs)?;
    let [output] = <[Tensor; 1]>::try_from(outputs).map_err(|outputs| {
        Error::runtime(format!("a function of one output gave {}", outputs.len()))
    })?;
    Ok(output)
}

/// For the profiler: the range of a call.
#[cold]
fn open_range(function: &impl Function, inputs: &[Tensor]) -> Open {
    let name = function.name();
    let args: SmallVec<[Arg<'_>; 4]> = inputs.iter().map(Arg::Tensor).collect();
    prof::open(RangeKind::Function, || name.strip_suffix("Backward").unwrap_or(&name).into(), &args)
}

/// Calls a custom function.
///
/// # Errors
/// Those of forward; `RuntimeError` for dirty inputs that were not returned or must not be written to.
#[track_caller]
pub fn apply<F: Function>(function: F, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let _site = Scope::of_caller(Location::caller());
    let inputs: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
    let executable = mode::is_recording() && inputs.iter().any(Tensor::requires_grad);
    let needs_input_grad: Vec<bool> =
        inputs.iter().map(|t| executable && t.requires_grad()).collect();
    let mut edges: SmallVec<[Edge; 2]> = SmallVec::new();
    if executable {
        // Before forward: a dirty input has another history after it.
        batch::edges_of(&inputs, |edge| edges.push(edge))?;
    }
    let mut ctx = Context { needs_input_grad: needs_input_grad.clone(), ..Context::default() };
    let _range = prof::is_observed().then(|| open_range(&function, &inputs));
    let outputs = {
        let _below = mode::set_grad(false);
        let _plain = mode::set_forward(false);
        let outputs = function.forward(&mut ctx, &inputs)?;
        function.setup_context(&mut ctx, &inputs, &outputs)?;
        outputs
    };
    let call = CustomCall {
        inputs: &inputs,
        dirty: &ctx.dirty,
        non_differentiable: &ctx.non_differentiable,
        executable,
    };
    let (saved, function) = (SharedSaved::default(), Arc::new(function));
    let node = executable.then(|| {
        let body = FunctionNode {
            function: function.clone(),
            needs_input_grad,
            keeps_missing: ctx.keeps_missing,
            data: ctx.data.clone(),
            outputs: outputs.iter().map(TensorSpec::like).collect(),
            saved: saved.clone(),
        };
        let metas = outputs.iter().map(|o| call.input_meta(o)).collect();
        Node::custom(Box::new(body), edges, metas)
    });
    let outputs: Vec<Option<Tensor>> = outputs.into_iter().map(Some).collect();
    let results = attach_outputs(&call, node.as_ref(), &outputs)?;
    if let Some(known) = InputTangents::of(&inputs)? {
        let jvp = |tangents: Vec<_>| function.jvp(&ctx, &tangents);
        push(&call, &known, &outputs, &results, !ctx.keeps_missing, jvp)?;
    }
    if let Some(node) = &node {
        let list = ctx.saved.iter().map(|t| save(t, &outputs, node)).collect::<Result<_>>()?;
        *lock(&saved) = list;
        creation::announce()?;
    }
    Ok(results.into_iter().flatten().collect())
}
