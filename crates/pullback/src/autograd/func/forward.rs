//! Transforms of forward mode: Jacobian-vector products and Jacobians by columns, and transforms that need both modes.

use super::basis::basis;
use super::batch::{Batched, vmap};
use super::reverse::{Point, jacrev};
use crate::autograd::{arithmetic, forward, transform};
use crate::error::ensure;
use crate::{ErrorKind, Result, Tensor};

/// A level of forward mode of a transform.
struct JvpLevel(usize);

impl Drop for JvpLevel {
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
    let (mut values, mut tangents) = jvps(|at| Ok(vec![f(at[0])?]), &[x], &[Some(t)])?;
    Ok((values.remove(0), tangents.remove(0)))
}

/// As [`jvp`], of a function of several tensors that gives several: its values, and the sum of the products of its Jacobians
/// by each input with the input's tangent; an input without one is a constant.
///
/// # Errors
/// As [`jvp`]; `RuntimeError` for another number of tangents than inputs.
///
/// # Examples
/// ```
/// # use pullback::{Result, Tensor, func::jvps};
/// # fn main() -> Result<()> {
/// let (x, y, t) = (Tensor::from(2.0)?, Tensor::from(3.0)?, Tensor::from(1.0)?);
/// let f = |at: &[&Tensor]| Ok(vec![at[0].mul(at[1])?, at[0].square()?]);
/// let (values, tangents) = jvps(f, &[&x, &y], &[Some(&t), None])?;
/// assert_eq!((values[0].item()?.to_f64(), tangents[0].item()?.to_f64()), (6.0, 3.0));
/// assert_eq!(tangents[1].item()?.to_f64(), 4.0);
/// # Ok(())
/// # }
/// ```
pub fn jvps(
    f: impl FnOnce(&[&Tensor]) -> Result<Vec<Tensor>>,
    xs: &[&Tensor],
    ts: &[Option<&Tensor>],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let (inputs, tangents) = (xs.len(), ts.len());
    ensure!(
        inputs == tangents,
        runtime,
        "jvps: Expected a tangent or none for each input, got {inputs} inputs and {tangents} tangents"
    );
    let _on = forward::set_forward(true);
    let level = JvpLevel(forward::enter_nested_level());
    let directions = forward::apart(xs, ts)?;
    let dual = |(&x, t): (&&Tensor, &Option<Tensor>)| match t {
        Some(t) => forward::make_dual_at(x, t, level.0),
        None => forward::unpack_dual_at(x, level.0).map(|(alias, _)| alias),
    };
    let duals = xs.iter().zip(&directions).map(dual).collect::<Result<Vec<_>>>()?;
    let outputs = {
        let _open = transform::OpenTransform::new(&duals);
        f(&duals.iter().collect::<Vec<_>>())?
    };
    let unpacked = |output| {
        let (value, tangent) = forward::unpack_dual_at(output, level.0)?;
        let tangent = tangent.map_or_else(|| arithmetic::zeros_like(&value), Ok)?;
        Ok((value, tangent))
    };
    outputs.iter().map(unpacked).collect()
}

/// `f(x)`, and the function that multiplies the Jacobian of `f` there with a vector, of the shape of `x`.
///
/// `f` runs once, so many products cost less than with [`jvp`], and random numbers stay the same. A product takes two
/// reverse passes: `u J` is linear in `u`, and the gradient of `<u J, t>` by `u` is `J t`. So all ops of `f` must have
/// derivatives in reverse mode that can be differentiated again.
///
/// # Errors
/// Those of `f`; `RuntimeError` for dtypes without derivative. The function gives a `RuntimeError` for tangents of another
/// shape or dtype.
pub fn linearize<F: FnOnce(&Tensor) -> Result<Tensor>>(
    f: F,
    x: &Tensor,
) -> Result<(Tensor, impl Fn(&Tensor) -> Result<Tensor> + use<F>)> {
    let (point, output) = Point::run(&[x], None, |at| f(at[0]))?;
    let value = point.show(output.clone())?;
    let like = x.clone();
    let push = move |t: &Tensor| {
        ensure!(
            t.shape() == like.shape() && t.dtype() == like.dtype(),
            runtime,
            "linearize: a tangent of shape {:?} and dtype {} doesn't match the shape {:?} and dtype {} of the primal",
            t.shape(),
            t.dtype().spelled(),
            like.shape(),
            like.dtype().spelled()
        );
        let start = arithmetic::zeros_like(&output)?;
        let product = |at: &[&Tensor]| Ok(point.pull(&output, Some(at[0]))?.remove(0));
        let (origin, product) = Point::run(&[&start], Some(&point), product)?;
        origin.show(origin.pull(&product, Some(t))?.remove(0))
    };
    Ok((value, push))
}

/// The Jacobian of `f` at `x`, of the shape of `f(x)` and then that of `x`, by one run of `f` for all columns at once.
///
/// # Errors
/// As [`jvp`].
pub fn jacfwd(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let columns =
        vmap(|t| jvp(f, x, t[0]).map(|(_, tangent)| tangent), &[Batched::first(&basis(x)?)])?;
    // bounded: by the rank.
    let mut shape = columns.shape()[1..].to_vec();
    shape.extend_from_slice(x.shape());
    arithmetic::reshape(&arithmetic::movedim(&columns, 0, -1)?, &shape)
}

/// The second derivatives of `f`, which gives a tensor without dimensions, at `x`: the shape of `x` twice.
///
/// The Jacobian in forward mode of that in reverse mode. Where an op of `f`, or a function with a derivative of its own, has no
/// rule for forward mode, `f` runs once more, and both are in reverse mode, which takes more memory.
///
/// # Errors
/// As [`jacrev`].
pub fn hessian(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    match jacfwd(|x| jacrev(&f, x), x) {
        Err(error) if error.kind() == ErrorKind::NotImplemented => {
            // (If the missing rule is that of reverse mode, this says so.)
            jacrev(|x| jacrev(&f, x), x)
        }
        result => result,
    }
}
