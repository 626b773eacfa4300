//! Custom functions for Rust: a forward and the backward that belongs to it, written by hand.
//!
//! [`apply`] runs the forward without recording, makes one node for it and lets `custom` give the outputs
//! their history, by the same rules that Python's `Function` follows. Invariant: what was saved is checked
//! for later writes when it is read, and is gone once the graph is freed. Start at [`Function`].

use super::custom::{CustomCall, attach_outputs, save};
use super::custom_jvp::{InputTangents, push};
use super::node::{Backward, Edge, Node};
use super::{SavedTensor, mode};
use crate::dispatch::Grads;
use crate::error::ensure;
use crate::site::{Scope, Site};
use crate::tensor::TensorSpec;
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

/// An operation with a derivative of its own. What is no tensor is kept in `self`.
///
/// ```
/// use pullback::autograd::{Context, Function, apply};
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
///         let x = &ctx.saved_tensors()?[0];
///         let grad = grads[0].as_ref().expect("missing gradients are made zeros");
///         Ok(vec![Some((grad * (x * x * 3.0)).get()?)])
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[2.0], &[1])?.with_grad()?;
/// let y = apply(Cube, &[&x])?.remove(0);
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
    /// Whatever the computation gives; the call fails with it.
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
    /// From the gradients of the outputs those of the inputs, one for each; `None` means zero. It is itself
    /// recorded if the user asks for higher derivatives.
    ///
    /// # Errors
    /// Whatever the computation gives; backward stops with it.
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
    /// From the tangents of the inputs those of the outputs, one for each; `None` means zero. Called after forward, if
    /// an input has a tangent; missing ones are zeros unless forward said otherwise. Where forward wrote to an input
    /// this writes to its tangent; where forward gave a view this gives the same view of the tangent.
    ///
    /// # Errors
    /// Whatever the computation gives; unless overridden, `NotImplementedError`.
    fn jvp(&self, ctx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let _ = (ctx, tangents);
        Err(crate::Error::not_implemented(format!(
            "{}: You must implement the jvp function for custom autograd.Function to use it with forward mode AD.",
            std::any::type_name::<Self>()
        )))
    }
    /// What `grad_fn.name()` says: the type's name and `Backward`, unless overridden.
    fn name(&self) -> String {
        let path = std::any::type_name::<Self>();
        let path = path.split('<').next().unwrap_or(path);
        format!("{}Backward", path.rsplit("::").next().unwrap_or(path))
    }
}

/// The saved tensors of a node, shared with the contexts its backward runs in; once released, that they are freed.
type Saved = Arc<Mutex<Vec<SavedTensor>>>;

/// What forward tells backward, and what both are told.
#[derive(Default)]
pub struct Context {
    needs_input_grad: Vec<bool>,
    saved: Vec<Tensor>,
    dirty: Vec<Tensor>,
    non_differentiable: Vec<Tensor>,
    keeps_missing: bool,
    /// In backward: where the saved tensors are, and the node they were saved for.
    run: Option<(Saved, Node)>,
}

impl Context {
    /// Keeps an input or output for backward; the order of calls is the order of
    /// [`Context::saved_tensors`]. Other tensors are better kept by the function itself.
    pub fn save_for_backward(&mut self, tensor: &Tensor) {
        self.saved.push(tensor.clone());
    }
    /// What forward saved.
    ///
    /// # Errors
    /// `RuntimeError` if one of them was written to since, or the graph was freed.
    pub fn saved_tensors(&self) -> Result<Vec<Tensor>> {
        let Some((place, node)) = &self.run else { return Ok(self.saved.clone()) };
        let place = lock(place);
        place.iter().map(|s| s.unpack(node)).collect()
    }
    /// Whether input `nr` wants a gradient: the others' need not be computed.
    pub fn needs_input_grad(&self, nr: usize) -> bool {
        self.needs_input_grad.get(nr).copied().unwrap_or(false)
    }
    /// Says that forward wrote to an input in place; it must also be one of the outputs.
    pub fn mark_dirty(&mut self, tensor: &Tensor) {
        self.dirty.push(tensor.clone());
    }
    /// Says that an output has no gradient.
    pub fn mark_non_differentiable(&mut self, tensor: &Tensor) {
        self.non_differentiable.push(tensor.clone());
    }
    /// Whether outputs without gradient give backward zeros (they do, unless this says no) or `None`.
    pub fn set_materialize_grads(&mut self, materialize: bool) {
        self.keeps_missing = !materialize;
    }
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The node of one call.
struct Call<F> {
    function: Arc<F>,
    needs_input_grad: Vec<bool>,
    keeps_missing: bool,
    outputs: Vec<TensorSpec>,
    saved: Saved,
}

impl<F: Function> Backward for Call<F> {
    fn name(&self) -> String {
        self.function.name()
    }
    fn release(&self) {
        let mut place = lock(&self.saved);
        // Without saved tensors there is nothing to free: such a node can run again.
        let is_due = place.iter().any(|saved| !saved.is_freed());
        let old =
            is_due.then(|| std::mem::replace(&mut *place, vec![SavedTensor::freed(Site::here())]));
        drop(place);
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
            run: Some((self.saved.clone(), node.clone())),
            ..Context::default()
        };
        let result = self.function.backward(&ctx, &grads)?;
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

/// Calls a custom function.
///
/// # Errors
/// What forward gives; `RuntimeError` for dirty inputs that were not returned or must not be written to.
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
        edges = inputs.iter().map(Tensor::gradient_edge).collect::<Result<_>>()?;
    }
    let mut ctx = Context { needs_input_grad: needs_input_grad.clone(), ..Context::default() };
    let outputs = {
        let _below = mode::set_grad(false);
        let _plain = mode::set_forward(false);
        function.forward(&mut ctx, &inputs)?
    };
    let call = CustomCall {
        inputs: &inputs,
        dirty: &ctx.dirty,
        non_differentiable: &ctx.non_differentiable,
        executable,
    };
    let (place, function) = (Saved::default(), Arc::new(function));
    let node = executable.then(|| {
        let body = Call {
            function: function.clone(),
            needs_input_grad,
            keeps_missing: ctx.keeps_missing,
            outputs: outputs.iter().map(TensorSpec::like).collect(),
            saved: place.clone(),
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
        *lock(&place) = list;
    }
    Ok(results.into_iter().flatten().collect())
}
