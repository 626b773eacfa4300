//! Limits for gradients: of their common norm, and of each element.

use pullback::{Error, Result, Scalar, Tensor, no_grad};

/// Scales the gradients of `params` so that the 2-norm of all their elements together is at most `max_norm`, and returns that norm
/// as it was before.
///
/// # Errors
/// `RuntimeError` if the norm is not finite; nothing is written then.
pub fn clip_grad_norm_(params: &[Tensor], max_norm: f64) -> Result<f64> {
    let _off = no_grad();
    let grads: Vec<Tensor> = params.iter().filter_map(Tensor::grad).collect();
    let mut squares = 0.0;
    for grad in &grads {
        let norm = grad.linalg_vector_norm(Scalar::Int(2), None, false)?.item()?.to_f64();
        squares += norm * norm;
    }
    let total = squares.sqrt();
    if !total.is_finite() {
        return Err(Error::runtime(format!("the norm of the gradients is {total}, not finite")));
    }
    // PyTorch's factor, which is not more than one.
    let factor = (max_norm / (total + 1e-6)).min(1.0);
    if factor < 1.0 {
        let factor = Tensor::wrapped(factor)?;
        grads.iter().try_for_each(|grad| grad.mul_(&factor).map(drop))?;
    }
    Ok(total)
}

/// Clamps each element of the gradients of `params` to `-limit..=limit`.
///
/// # Errors
/// Those of `clamp_`.
pub fn clip_grad_value_(params: &[Tensor], limit: f64) -> Result<()> {
    let _off = no_grad();
    params.iter().filter_map(Tensor::grad).try_for_each(|grad| {
        grad.clamp_(Some(Scalar::Float(-limit)), Some(Scalar::Float(limit))).map(drop)
    })
}
