//! Transforms of reverse mode: gradients, vector-Jacobian products, Jacobians by rows.

use super::basis::basis;
use super::batch::{Batched, Vmap, vmap_with};
use crate::autograd::api::{self, BackwardOptions};
use crate::autograd::{arithmetic, mode, transform};
use crate::error::ensure;
use crate::{Result, Tensor};

/// The inputs that a function ran on within a transform.
///
/// Invariant: they are closed, that is nobody outside can ask for a derivative by them; gradients by them can still be
/// computed here.
pub(super) struct Point {
    inputs: Vec<Tensor>,
    /// The inputs, and those of transforms inside of which this one is.
    known: Vec<Tensor>,
}

/// A guard that closes inputs, also where the function fails.
struct Closing<'a>(&'a [Tensor]);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        transform::close(self.0);
    }
}

impl Point {
    /// Runs `f` at aliases of `tensors`, recording whatever the mode; `around` is a point whose inputs are not outside.
    pub(super) fn run<R>(
        tensors: &[&Tensor],
        around: Option<&Point>,
        f: impl FnOnce(&[&Tensor]) -> Result<R>,
    ) -> Result<(Point, R)> {
        let inputs =
            tensors.iter().map(|tensor| transform::input(tensor)).collect::<Result<Vec<_>>>()?;
        let closing = Closing(&inputs);
        let result = {
            let _on = mode::enable_grad();
            let _open = transform::OpenTransform::new(&inputs);
            f(&inputs.iter().collect::<Vec<_>>())?
        };
        drop(closing);
        let mut known = inputs.clone();
        known.extend(around.into_iter().flat_map(|around| &around.known).cloned());
        Ok((Point { inputs, known }, result))
    }

    /// The gradients of an output by the inputs, zeros where there is none.
    ///
    /// They are recorded where somebody outside may ask for theirs.
    pub(super) fn pull(&self, output: &Tensor, start: Option<&Tensor>) -> Result<Vec<Tensor>> {
        self.pull_all(std::slice::from_ref(output), &[start])
    }

    /// As [`Self::pull`], the sum over several outputs.
    fn pull_all(&self, outputs: &[Tensor], starts: &[Option<&Tensor>]) -> Result<Vec<Tensor>> {
        let (mut connected, mut given) = (Vec::new(), Vec::new());
        for (output, start) in outputs.iter().zip(starts) {
            if output.requires_grad() {
                connected.push(output.clone());
                given.push(*start);
            }
        }
        if connected.is_empty() {
            return self.inputs.iter().map(arithmetic::zeros_like).collect();
        }
        let create_graph = mode::is_grad_enabled()
            && (given.iter().flatten().any(|start| start.requires_grad())
                || transform::reaches_out(&connected, &self.known)?);
        let options =
            BackwardOptions { create_graph, retain_graph: Some(true), allow_unused: true };
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        let outputs: Vec<&Tensor> = connected.iter().collect();
        let found = api::grad(&outputs, &inputs, &given, options)?;
        let shown = |(grad, input): (Option<Tensor>, &Tensor)| match grad {
            Some(grad) => Ok(grad),
            None => arithmetic::zeros_like(input),
        };
        found.into_iter().zip(&self.inputs).map(shown).collect()
    }

    /// The tensors that leave the transform: without history, unless something around the transform
    /// may need it.
    pub(super) fn shown(&self, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        if mode::is_grad_enabled() {
            return transform::detach(tensors, &self.known);
        }
        tensors.iter().map(transform::without_history).collect()
    }

    /// One tensor that leaves the transform, as [`Self::shown`] has it.
    pub(super) fn show(&self, tensor: Tensor) -> Result<Tensor> {
        Ok(self.shown(&[tensor])?.remove(0))
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
    let (mut grads, value) = grads_and_value(|at| f(at[0]), &[x])?;
    Ok((grads.remove(0), value))
}

/// The gradients of `f`, which gives a tensor without dimensions, by each of its tensors.
///
/// # Errors
/// As [`grad`].
///
/// # Examples
/// ```
/// # use pullback::{Result, Tensor, func::grads};
/// # fn main() -> Result<()> {
/// let (x, w) = (Tensor::from_slice(&[1.0, 2.0], &[2])?, Tensor::from_slice(&[3.0, 4.0], &[2])?);
/// let slopes = grads(|at| at[0].dot(at[1]), &[&x, &w])?;
/// assert_eq!(slopes[0].to_vec::<f64>()?, [3.0, 4.0]);
/// assert_eq!(slopes[1].to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn grads(f: impl FnOnce(&[&Tensor]) -> Result<Tensor>, xs: &[&Tensor]) -> Result<Vec<Tensor>> {
    grads_and_value(f, xs).map(|(grads, _)| grads)
}

/// The gradients of `f` by each of its tensors, and its value.
///
/// # Errors
/// As [`grad`].
pub fn grads_and_value(
    f: impl FnOnce(&[&Tensor]) -> Result<Tensor>,
    xs: &[&Tensor],
) -> Result<(Vec<Tensor>, Tensor)> {
    let (point, value) = Point::run(xs, None, f)?;
    ensure!(
        value.ndim() == 0,
        runtime,
        "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with {} dims. Maybe you wanted to use the vjp or jacrev APIs instead?",
        value.ndim()
    );
    let mut found = point.pull(&value, None)?;
    found.push(value);
    let mut shown = point.shown(&found)?;
    let value = shown.pop().expect("the value was given last");
    Ok((shown, value))
}

/// `f(x)`, and the function that multiplies a vector, of the shape of `f(x)`, with the Jacobian of `f` there; it may be
/// called any number of times.
///
/// # Errors
/// Those of `f`; `RuntimeError` for dtypes without derivative. The function gives a `RuntimeError` if shapes differ.
pub fn vjp<F: FnOnce(&Tensor) -> Result<Tensor>>(
    f: F,
    x: &Tensor,
) -> Result<(Tensor, impl Fn(&Tensor) -> Result<Tensor> + use<F>)> {
    let (point, output) = Point::run(&[x], None, |at| f(at[0]))?;
    let value = point.show(output.clone())?;
    let pull = move |v: &Tensor| point.show(point.pull(&output, Some(v))?.remove(0));
    Ok((value, pull))
}

/// As [`vjp`], of a function of several tensors that gives several: its values, and the function that takes a vector for each of
/// them and gives the sum of the products for each input.
///
/// # Errors
/// As [`vjp`]. The function gives a `RuntimeError` for another number of vectors than values.
///
/// # Examples
/// ```
/// # use pullback::{Result, Tensor, func::vjps};
/// # fn main() -> Result<()> {
/// let (x, y, one) = (Tensor::from(2.0)?, Tensor::from(3.0)?, Tensor::from(1.0)?);
/// let (values, pull) = vjps(|at| Ok(vec![at[0].mul(at[1])?, at[0].square()?]), &[&x, &y])?;
/// assert_eq!(values[1].item()?.to_f64(), 4.0);
/// let grads = pull(&[&one, &one])?;
/// assert_eq!((grads[0].item()?.to_f64(), grads[1].item()?.to_f64()), (7.0, 2.0));
/// # Ok(())
/// # }
/// ```
#[allow(clippy::type_complexity, reason = "a function that is given back has no shorter type")]
pub fn vjps<F: FnOnce(&[&Tensor]) -> Result<Vec<Tensor>>>(
    f: F,
    xs: &[&Tensor],
) -> Result<(Vec<Tensor>, impl Fn(&[&Tensor]) -> Result<Vec<Tensor>> + use<F>)> {
    let (point, outputs) = Point::run(xs, None, f)?;
    let values = point.shown(&outputs)?;
    let pull = move |vectors: &[&Tensor]| {
        let (given, needed) = (vectors.len(), outputs.len());
        ensure!(
            given == needed,
            runtime,
            "vjps: Expected a vector for each of the {needed} values, got {given}"
        );
        let starts: Vec<Option<&Tensor>> = vectors.iter().copied().map(Some).collect();
        point.shown(&point.pull_all(&outputs, &starts)?)
    };
    Ok((values, pull))
}

/// The Jacobian of `f` at `x`, of the shape of `f(x)` and then that of `x`, by one backward for all rows at once.
///
/// # Errors
/// As [`vjp`].
pub fn jacrev(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    rows(f, x, None)
}

/// As [`jacrev`], so many rows at a time, which takes less memory.
///
/// # Errors
/// As [`vjp`]; `ValueError` for chunks of no rows.
pub fn jacrev_by_chunks(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    chunk_size: usize,
) -> Result<Tensor> {
    ensure!(chunk_size > 0, value, "jacrev: `chunk_size` should be greater than 0.");
    rows(f, x, Some(chunk_size))
}

fn rows(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    chunk_size: Option<usize>,
) -> Result<Tensor> {
    let (point, value) = Point::run(&[x], None, |at| f(at[0]))?;
    let options = Vmap { chunk_size, ..Vmap::default() };
    let rows = vmap_with(
        options,
        |v| Ok(point.pull(&value, Some(v[0]))?.remove(0)),
        &[Batched::first(&basis(&value)?)],
    )?;
    // bounded: by the rank.
    let mut shape = value.shape().to_vec();
    shape.extend_from_slice(x.shape());
    point.show(arithmetic::reshape(&rows, &shape)?)
}
