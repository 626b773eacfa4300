//! Zeros that stay zeros: gradients of branches that were not taken.
//!
//! The gradient of a branch that `where`, a mask, `clamp` or `maximum` did not take is zero. The ops before it multiply that
//! by their derivative, and where this is infinite (`sqrt` and `log` at 0, a norm at 0, a division by 0) the chain rule gives
//! `0 * inf = NaN` in the place of 0. While [`masked_zeros`] is on, what an op makes of a zero gradient is zero: elements that
//! are NaN though the gradient of the very element (of an op element by element), or the whole gradient (of any other), was
//! zero. Everything else keeps its bits, zeros with their sign.
//!
//! Source: the "double where" rule that programs work around this with, e.g. "Getting gradients that are not NaN" in JAX's
//! questions and answers; here it is done once, for all ops.

use crate::autograd::graph::node::{Body, Node};
use crate::autograd::{arithmetic, mode};
use crate::dispatch::{Batch, Grads, Kernel, OpDef};
use crate::{Result, Tensor};

/// A guard that restores the thread's previous setting when it is dropped.
#[must_use = "the setting lasts as long as the guard"]
#[derive(Debug)]
pub struct MaskedZeros(bool);

impl Drop for MaskedZeros {
    fn drop(&mut self) {
        mode::set_masked_zeros(self.0);
    }
}

/// Makes the gradients that backward computes from zero gradients zero, on this thread, while the
/// guard lives.
///
/// ```
/// use pullback::autograd::masked_zeros;
/// use pullback::{Result, Tensor};
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[0.0, 4.0], &[2])?.with_grad()?;
/// let root = x.gt(&Tensor::wrapped(0.0)?)?.where_self(&x.sqrt()?, &x)?;
/// let _on = masked_zeros();
/// root.sum()?.backward()?;
/// // Without it the first one is NaN: the root's derivative there is infinite, times 0.
/// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0, 0.25]);
/// # Ok(())
/// # }
/// ```
pub fn masked_zeros() -> MaskedZeros {
    let before = mode::is_masked_zeros();
    mode::set_masked_zeros(true);
    MaskedZeros(before)
}

fn is_pointwise(def: &OpDef) -> bool {
    matches!(def.kernels.cpu, Kernel::Pointwise(_)) || matches!(def.batch, Batch::Pointwise)
}

/// Replaces NaN by zero where `node` made it of the zeros in `given`.
#[cold]
#[inline(never)]
pub(super) fn mend(node: &Node, given: &[Option<Tensor>], made: &mut Grads) -> Result<()> {
    let pointwise = match &node.0.body {
        Body::Op { def, .. } => is_pointwise(def),
        // (An accumulator only adds.)
        Body::AccumulateGrad(_) => return Ok(()),
        Body::Custom(_) => false,
    };
    let given: Vec<&Tensor> = given.iter().flatten().collect();
    if given.is_empty() {
        return Ok(());
    }
    for slot in made.iter_mut() {
        let Some(grad) = slot.as_ref().filter(|grad| grad.dtype().is_differentiable()) else {
            continue;
        };
        let mended = match given.as_slice() {
            [one] if pointwise && one.shape() == grad.shape() => {
                arithmetic::without_nan(grad, &arithmetic::is_zero(one)?)?
            }
            all => {
                let mut zero = arithmetic::is_all_zero(all[0])?;
                for other in &all[1..] {
                    zero = arithmetic::both(&zero, &arithmetic::is_all_zero(other)?)?;
                }
                arithmetic::without_nan(grad, &zero)?
            }
        };
        *slot = Some(mended);
    }
    Ok(())
}
