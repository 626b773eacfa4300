//! Custom functions made of closures: a forward and a backward of one line each need no type.
//!
//! The closures take arrays of tensors and give one tensor, an array or a list; what else they need they capture. Start
//! at [`Custom`]; underneath it is a [`Function`].

use super::apply::{Context, Function, apply};
use crate::error::{Error, ensure};
use crate::{Result, Tensor};
use std::panic::Location;
use std::sync::Arc;

/// The types of results that a forward closure may return: a tensor, an array or a list.
pub trait Results: Sized {
    /// Converts the results to a list.
    fn into_list(self) -> Vec<Tensor>;
    /// Converts a list to the results.
    ///
    /// # Errors
    /// `RuntimeError` for another number of tensors.
    fn from_list(list: Vec<Tensor>) -> Result<Self>;
}

impl Results for Vec<Tensor> {
    fn into_list(self) -> Vec<Tensor> {
        self
    }
    fn from_list(list: Vec<Tensor>) -> Result<Self> {
        Ok(list)
    }
}

impl<const N: usize> Results for [Tensor; N] {
    fn into_list(self) -> Vec<Tensor> {
        self.into()
    }
    fn from_list(list: Vec<Tensor>) -> Result<Self> {
        <[Tensor; N]>::try_from(list)
            .map_err(|list| Error::runtime(format!("expected {N} tensors, got {}", list.len())))
    }
}

impl Results for Tensor {
    fn into_list(self) -> Vec<Tensor> {
        vec![self]
    }
    fn from_list(list: Vec<Tensor>) -> Result<Self> {
        let [one] = Results::from_list(list)?;
        Ok(one)
    }
}

type ForwardClosure<const N: usize, R> =
    dyn Fn(&mut Context, [&Tensor; N]) -> Result<R> + Send + Sync;
type BackwardClosure<const N: usize, R> =
    dyn Fn(&Context, R) -> Result<[Option<Tensor>; N]> + Send + Sync;
type JvpClosure<const N: usize, R> =
    dyn Fn(&Context, [Option<Tensor>; N]) -> Result<R> + Send + Sync;

/// A custom function of `N` tensors made of closures.
///
/// Backward is given what forward gave, as gradients: a tensor for a tensor, an array for an array. Missing gradients are
/// zeros; who wants to tell them apart writes a [`Function`].
///
/// ```
/// use pullback::autograd::Custom;
/// use pullback::{Result, Tensor};
///
/// # fn main() -> Result<()> {
/// let factor = 3.0; // What is no tensor is captured.
/// let square = Custom::new(
///     "Square",
///     move |ctx, [x]| {
///         ctx.save_for_backward(x);
///         (x * x * factor).get()
///     },
///     move |ctx, grad: Tensor| {
///         let [x] = &ctx.saved()?;
///         Ok([Some((grad * (x * (2.0 * factor))).get()?)])
///     },
/// );
/// let x = Tensor::from_slice(&[2.0], &[1])?.with_grad()?;
/// let y = square.apply([&x])?;
/// assert_eq!(y.grad_fn()?.unwrap().name(), "SquareBackward");
/// y.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [12.0]);
/// # Ok(())
/// # }
/// ```
pub struct Custom<const N: usize, R: Results> {
    name: String,
    forward: Arc<ForwardClosure<N, R>>,
    backward: Arc<BackwardClosure<N, R>>,
    jvp: Option<Arc<JvpClosure<N, R>>>,
    is_once_differentiable: bool,
}

impl<const N: usize, R: Results> Clone for Custom<N, R> {
    fn clone(&self) -> Self {
        Custom {
            name: self.name.clone(),
            forward: self.forward.clone(),
            backward: self.backward.clone(),
            jvp: self.jvp.clone(),
            is_once_differentiable: self.is_once_differentiable,
        }
    }
}

impl<const N: usize, R: Results + 'static> Custom<N, R> {
    /// A function whose nodes are called `name` and `Backward`. `forward` computes the results from the inputs, and
    /// `backward` the gradients of the inputs from those of the results; `None` means zero.
    pub fn new(
        name: &str,
        forward: impl Fn(&mut Context, [&Tensor; N]) -> Result<R> + Send + Sync + 'static,
        backward: impl Fn(&Context, R) -> Result<[Option<Tensor>; N]> + Send + Sync + 'static,
    ) -> Self {
        Custom {
            name: format!("{name}Backward"),
            forward: Arc::new(forward),
            backward: Arc::new(backward),
            jvp: None,
            is_once_differentiable: false,
        }
    }
    /// Adds a rule for forward mode: the tangents of the results from those of the inputs. Missing
    /// tangents are zeros; they are `None` only for inputs that have no derivative.
    #[must_use]
    pub fn with_jvp(
        mut self,
        jvp: impl Fn(&Context, [Option<Tensor>; N]) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        self.jvp = Some(Arc::new(jvp));
        self
    }
    /// Makes the backward one that cannot be differentiated itself: differentiating it is an error.
    #[must_use]
    pub fn once_differentiable(mut self) -> Self {
        self.is_once_differentiable = true;
        self
    }
    /// Calls the function.
    ///
    /// # Errors
    /// Those of the closure and of [`apply`].
    #[track_caller]
    pub fn apply(&self, inputs: [&Tensor; N]) -> Result<R> {
        let _site = crate::call_site::Scope::of_caller(Location::caller());
        R::from_list(apply(self.clone(), &inputs)?)
    }
}

/// All the gradients: none is missing unless forward asked for that.
fn all_of(grads: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
    let list: Vec<Tensor> = grads.iter().flatten().cloned().collect();
    ensure!(
        list.len() == grads.len(),
        runtime,
        "the backward of a custom function of closures takes no missing gradients: implement Function for set_materialize_grads(false)"
    );
    Ok(list)
}

impl<const N: usize, R: Results + 'static> Function for Custom<N, R> {
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let inputs: [&Tensor; N] = std::array::from_fn(|i| &inputs[i]);
        Ok((self.forward)(ctx, inputs)?.into_list())
    }
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok((self.backward)(ctx, R::from_list(all_of(grads)?)?)?.into())
    }
    fn jvp(&self, ctx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let Some(jvp) = &self.jvp else {
            return Err(Error::not_implemented(format!(
                "{}: You must implement the jvp function for custom autograd.Function to use it with forward mode AD.",
                self.name
            )));
        };
        let tangents = std::array::from_fn(|i| tangents[i].clone());
        Ok(jvp(ctx, tangents)?.into_list().into_iter().map(Some).collect())
    }
    fn is_once_differentiable(&self) -> bool {
        self.is_once_differentiable
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}
