//! Transforms of functions, over closures: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `vmap`.
//!
//! Each takes a function of tensors and gives what it computes of it at a point. They nest in any order, because what
//! they are made of does: inputs of a transform's own (`transform`), levels of forward mode, batched tensors (`batch`).
//! Names and meanings are those of PyTorch's `torch.func`.
//!
//! ```
//! use pullback::func::{Batched, grad, hessian, vmap};
//! use pullback::{Result, Tensor};
//!
//! fn loss(x: &Tensor) -> Result<Tensor> {
//!     x.mul(x)?.mul(x)?.sum()
//! }
//! # fn main() -> Result<()> {
//! let x = Tensor::from_slice(&[1.0, 2.0], &[2])?;
//! assert_eq!(grad(loss, &x)?.to_vec::<f64>()?, [3.0, 12.0]);
//! assert_eq!(hessian(loss, &x)?.to_vec::<f64>()?, [6.0, 0.0, 0.0, 12.0]);
//!
//! // The gradient for each of three examples.
//! let batch = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
//! let each = vmap(|x| grad(loss, &x[0]), &[Batched::first(&batch)])?;
//! assert_eq!(each.to_vec::<f64>()?, [3.0, 12.0, 27.0, 48.0, 75.0, 108.0]);
//! # Ok(())
//! # }
//! ```

use super::batch::{LevelGuard, Randomness, add_dim, remove_dim};
use super::{Options, forward, mode, transform};
use crate::error::ensure;
use crate::{Result, Tensor, TensorSpec};

/// The inputs that a function runs on within a reverse mode transform; closed with it.
struct Inputs(Vec<Tensor>);

impl Inputs {
    fn of(tensors: &[&Tensor]) -> Result<Inputs> {
        tensors.iter().map(|tensor| transform::input(tensor)).collect::<Result<_>>().map(Inputs)
    }
    /// The gradients of `outputs`, zeros where there is none.
    fn grads(&self, outputs: &[&Tensor], starts: &[Option<&Tensor>]) -> Result<Vec<Tensor>> {
        let roots: Vec<Tensor> = outputs.iter().map(|&output| output.clone()).collect();
        let create_graph = transform::reaches_out(&roots, &self.0)?
            || starts.iter().flatten().any(|start| start.requires_grad());
        let options = Options { create_graph, retain_graph: Some(true), allow_unused: true };
        let inputs: Vec<&Tensor> = self.0.iter().collect();
        let known: Vec<usize> =
            (0..outputs.len()).filter(|&i| outputs[i].requires_grad()).collect();
        let zeros = || self.0.iter().map(Tensor::zeros_like).collect::<Result<Vec<_>>>();
        if known.is_empty() {
            return zeros();
        }
        let roots: Vec<&Tensor> = known.iter().map(|&i| outputs[i]).collect();
        let starts: Vec<Option<&Tensor>> = known.iter().map(|&i| starts[i]).collect();
        let grads = super::grad(&roots, &inputs, &starts, options)?;
        let shown = |(grad, input): (Option<Tensor>, &Tensor)| match grad {
            Some(grad) => Ok(grad),
            None => input.zeros_like(),
        };
        grads.into_iter().zip(&self.0).map(shown).collect()
    }
    /// What leaves the transform: without history, unless somebody around it may want one.
    fn shown(&self, tensors: &[Tensor], is_recorded: bool) -> Result<Vec<Tensor>> {
        if is_recorded {
            return transform::detach(tensors, &self.0);
        }
        tensors.iter().map(Tensor::detach).collect()
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        transform::close(&self.0);
    }
}

/// The gradient of `f`, which gives a tensor without dimensions, at `x`.
///
/// # Errors
/// Those of `f`; `RuntimeError` for results of other shapes and dtypes without derivative.
pub fn grad(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    grad_and_value(f, x).map(|(grad, _)| grad)
}

/// The gradient of `f` at `x`, and `f(x)`.
///
/// # Errors
/// As [`grad`].
pub fn grad_and_value(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let is_recorded = mode::is_grad_enabled();
    let _on = mode::enable_grad();
    let inputs = Inputs::of(&[x])?;
    let value = f(&inputs.0[0])?;
    ensure!(
        value.ndim() == 0,
        runtime,
        "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with {} dims. Maybe you wanted to use the vjp or jacrev APIs instead?",
        value.ndim()
    );
    let grads = inputs.grads(&[&value], &[None])?;
    let mut shown = inputs.shown(&[grads[0].clone(), value], is_recorded)?;
    let value = shown.pop().expect("both were given");
    Ok((shown.remove(0), value))
}

/// `f(x)`, and the product of `v` with the Jacobian of `f` there: `v` has the shape of `f(x)`, the product that of `x`.
///
/// # Errors
/// Those of `f`; `RuntimeError` if shapes differ.
pub fn vjp(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    v: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let is_recorded = mode::is_grad_enabled();
    let _on = mode::enable_grad();
    let inputs = Inputs::of(&[x])?;
    let value = f(&inputs.0[0])?;
    let grads = inputs.grads(&[&value], &[Some(v)])?;
    let mut shown = inputs.shown(&[grads[0].clone(), value], is_recorded)?;
    let value = shown.pop().expect("both were given");
    Ok((value, shown.remove(0)))
}

/// A level of forward mode of a transform.
struct Level(usize);

impl Drop for Level {
    fn drop(&mut self) {
        forward::exit_nested_level(self.0);
    }
}

/// `f(x)`, and the product of the Jacobian of `f` there with `t`: `t` has the shape of `x`, the product that of `f(x)`.
///
/// # Errors
/// Those of `f`; `RuntimeError` if shapes differ.
pub fn jvp(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    t: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let _on = forward::set_forward(true);
    let level = Level(forward::enter_nested_level());
    let output = f(&forward::make_dual_at(x, t, level.0)?)?;
    let (value, tangent) = forward::unpack_dual_at(&output, level.0)?;
    let tangent = match tangent {
        Some(tangent) => tangent,
        None => value.zeros_like()?,
    };
    Ok((value, tangent))
}

/// A one for each element of `like` in turn: a row for each.
fn basis(like: &Tensor) -> Result<Tensor> {
    let count = like.numel();
    let mut shape = vec![count];
    shape.extend_from_slice(like.shape());
    let ones = TensorSpec::of(&[count], like.dtype()).zeros()?.add(&Tensor::wrapped(1.0)?)?;
    let zeros = TensorSpec::of(&[count, count], like.dtype()).zeros()?;
    zeros.diagonal(0, 0, 1)?.copy_(&ones, false)?;
    zeros.reshape(&shape)
}

/// The Jacobian of `f` at `x`, of the shape of `f(x)` and then that of `x`, by one backward for all rows at once.
///
/// # Errors
/// As [`vjp`].
pub fn jacrev(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let is_recorded = mode::is_grad_enabled();
    let _on = mode::enable_grad();
    let inputs = Inputs::of(&[x])?;
    let value = f(&inputs.0[0])?;
    let rows = vmap(
        |v| Ok(inputs.grads(&[&value], &[Some(v[0])])?.remove(0)),
        &[Batched::first(&basis(&value)?)],
    )?;
    let mut shape = value.shape().to_vec();
    shape.extend_from_slice(x.shape());
    Ok(inputs.shown(&[rows.reshape(&shape)?], is_recorded)?.remove(0))
}

/// The Jacobian of `f` at `x`, of the shape of `f(x)` and then that of `x`, by one run of `f` for all columns at once.
///
/// # Errors
/// As [`jvp`].
pub fn jacfwd(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let columns =
        vmap(|t| jvp(f, x, t[0]).map(|(_, tangent)| tangent), &[Batched::first(&basis(x)?)])?;
    let mut shape = columns.shape()[1..].to_vec();
    shape.extend_from_slice(x.shape());
    columns.movedim_int(0, -1)?.reshape(&shape)
}

/// The second derivatives of `f`, which gives a tensor without dimensions, at `x`: the shape of `x` twice.
///
/// # Errors
/// As [`jacrev`] and [`jacfwd`].
pub fn hessian(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    jacfwd(|x| jacrev(f, x), x)
}

/// An input of [`vmap`].
#[derive(Clone, Copy)]
pub struct Batched<'a> {
    /// The tensor.
    pub tensor: &'a Tensor,
    /// The dimension that counts examples; `None` if all examples have this tensor.
    pub dim: Option<i64>,
}

impl<'a> Batched<'a> {
    /// The first dimension counts examples.
    #[must_use]
    pub fn first(tensor: &'a Tensor) -> Batched<'a> {
        Batched { tensor, dim: Some(0) }
    }
    /// The same for all examples.
    #[must_use]
    pub fn shared(tensor: &'a Tensor) -> Batched<'a> {
        Batched { tensor, dim: None }
    }
}

/// What `f`, a function of one example, gives for each of a batch: the first dimension of the result counts examples.
/// Random ops are refused: see [`vmap_with`].
///
/// # Errors
/// Those of `f`; `ValueError` if no input is batched, or they are of different sizes.
pub fn vmap(
    f: impl FnOnce(&[&Tensor]) -> Result<Tensor>,
    inputs: &[Batched<'_>],
) -> Result<Tensor> {
    vmap_with(Randomness::Error, f, inputs)
}

/// As [`vmap`]; says what random ops do.
///
/// # Errors
/// As [`vmap`].
pub fn vmap_with(
    randomness: Randomness,
    f: impl FnOnce(&[&Tensor]) -> Result<Tensor>,
    inputs: &[Batched<'_>],
) -> Result<Tensor> {
    let mut size = None;
    for Batched { tensor, dim } in inputs {
        let Some(dim) = dim else { continue };
        let dim = crate::tensor::shape::wrap_dim(*dim, tensor.ndim())?;
        let own = tensor.shape().get(dim).copied();
        ensure!(
            own.is_some(),
            value,
            "vmap: a tensor without dimensions has none that counts examples"
        );
        ensure!(
            size.is_none() || size == own,
            value,
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {:?} and {:?}",
            size.unwrap_or(0),
            own.unwrap_or(0)
        );
        size = own;
    }
    let Some(size) = size else {
        return Err(crate::Error::value("vmap: at least one input must be batched"));
    };
    let level = LevelGuard::new(size, randomness)?;
    let one = |input: &Batched<'_>| match input.dim {
        Some(dim) => add_dim(input.tensor, dim, level.id()),
        None => Ok(input.tensor.clone()),
    };
    let examples = inputs.iter().map(one).collect::<Result<Vec<_>>>()?;
    let examples: Vec<&Tensor> = examples.iter().collect();
    remove_dim(&f(&examples)?, level.id(), size, 0)
}
