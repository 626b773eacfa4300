//! Optimiser steps fused into one pass over a parameter's elements, and what gradient clipping needs.
//!
//! Formulas are those of `_fused_sgd_`, `_fused_adam_` and `_fused_adamw_`: factors are computed in
//! doubles and rounded to the compute type once, half-precision state is computed in `f32` and rounded
//! back. Every element is independent; the norm sums fixed blocks, so results do not depend on threads.

use crate::dense::{Real, SharedMut, for_compute, load, load_owned, store};
use crate::simd::math_f64;
use crate::{Error, Result, StridedMut, StridedRef, memory, parallel};
use std::ops::Range;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 15;

/// The options of [`sgd`].
#[derive(Clone, Copy, Debug)]
pub struct SgdOptions {
    /// Learning rate.
    pub lr: f64,
    /// Factor of the momentum buffer; 0 means no buffer.
    pub momentum: f64,
    /// Share of the new gradient kept out of the buffer.
    pub dampening: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Nesterov's form of momentum.
    pub nesterov: bool,
    /// Climb instead of descend.
    pub maximize: bool,
    /// The momentum buffer holds nothing yet and starts as the gradient.
    pub is_first_step: bool,
    /// Divide the gradient by this first (and store it divided).
    pub grad_scale: Option<f64>,
}

/// The options of [`adam`] and [`adamw`].
#[derive(Clone, Copy, Debug)]
pub struct AdamOptions {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the squared gradient's average.
    pub beta2: f64,
    /// Penalty: of the gradient in Adam, of the parameter in `AdamW`.
    pub weight_decay: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Use the largest average of squares so far.
    pub amsgrad: bool,
    /// Climb instead of descend.
    pub maximize: bool,
    /// The number of this step, from 1.
    pub step: f64,
    /// Divide the gradient by this first (and store it divided).
    pub grad_scale: Option<f64>,
}

/// The tensors of one parameter's step; all have the parameter's shape.
#[derive(Debug)]
pub struct ParamTensors<'s, 'v> {
    /// The parameter.
    pub param: &'s mut StridedMut<'v>,
    /// The parameter's gradient; written only if there is a `grad_scale`.
    pub grad: &'s mut StridedMut<'v>,
    /// The buffers: the momentum buffer of SGD; `exp_avg`, `exp_avg_sq` and, with `amsgrad`,
    /// `max_exp_avg_sq` of Adam.
    pub buffers: &'s mut [StridedMut<'v>],
}

/// One step of stochastic gradient descent:
/// `g = grad + weight_decay * p; b = momentum * b + (1 - dampening) * g; p -= lr * b` (Nesterov:
/// `p -= lr * (g + momentum * b)`), with `g = -grad` to climb.
///
/// # Errors
/// Shapes that differ, a missing momentum buffer, or a dtype that is not floating.
pub fn sgd(state: &mut ParamTensors<'_, '_>, o: &SgdOptions) -> Result<()> {
    let buffers = usize::from(o.momentum != 0.0);
    run(state, buffers, "fused_sgd_kernel", &|step| step.sgd(o))
}

/// One step of Adam, with the penalty added to the gradient:
/// `m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2;
/// p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)`.
///
/// # Errors
/// Shapes that differ, missing buffers, or a dtype that is not floating.
pub fn adam(state: &mut ParamTensors<'_, '_>, o: &AdamOptions) -> Result<()> {
    run(state, 2 + usize::from(o.amsgrad), "fused_adam_kernel", &|step| step.adam(o, false))
}

/// One step of `AdamW` (decoupled weight decay): `p *= 1 - lr * weight_decay`, then the step of [`adam`] without the penalty.
///
/// # Errors
/// Shapes that differ, missing buffers, or a dtype that is not floating.
pub fn adamw(state: &mut ParamTensors<'_, '_>, o: &AdamOptions) -> Result<()> {
    run(state, 2 + usize::from(o.amsgrad), "fused_adam_kernel", &|step| step.adam(o, true))
}

/// What a step does to one block, for either compute type.
type BlockStep<'w> = dyn Fn(&mut dyn OptimizerStep) + Sync + 'w;

/// A block of elements of all tensors of a step.
trait OptimizerStep {
    fn sgd(&mut self, o: &SgdOptions);
    fn adam(&mut self, o: &AdamOptions, decoupled: bool);
}

struct Block<'b, T> {
    param: &'b mut [T],
    grad: &'b mut [T],
    buffers: [&'b mut [T]; 3],
}

impl<T: Real> OptimizerStep for Block<'_, T> {
    fn sgd(&mut self, o: &SgdOptions) {
        sgd_block(self.param, self.grad, self.buffers[0], o);
    }
    fn adam(&mut self, o: &AdamOptions, decoupled: bool) {
        let [m, v, top] = &mut self.buffers;
        adam_block(self.param, self.grad, m, v, top, o, decoupled);
    }
}

fn run(
    state: &mut ParamTensors<'_, '_>,
    buffers: usize,
    op: &str,
    work: &BlockStep<'_>,
) -> Result<()> {
    if state.buffers.len() < buffers {
        return Err(Error::runtime(format!(
            "{op}: expected {buffers} state buffers, got {}",
            state.buffers.len()
        )));
    }
    let shape = state.param.shape();
    let others = std::iter::once(&*state.grad).chain(&state.buffers[..buffers]);
    for other in others {
        crate::dense::expect_shape("optimizer state", other.shape(), shape)?;
    }
    for_compute!(state.param.dtype(), op, T => {
        let mut tensors: Vec<&mut StridedMut<'_>> = vec![&mut *state.param, &mut *state.grad];
        tensors.extend(&mut state.buffers[..buffers]);
        all_blocks::<T>(&mut tensors, work)
    })
}

/// Runs `work` over blocks of the tensors, in place where they are contiguous and of type `T`.
fn all_blocks<T: Real>(tensors: &mut [&mut StridedMut<'_>], work: &BlockStep<'_>) -> Result<()> {
    let n = tensors[0].numel();
    // Copies of the tensors that cannot be worked on in place.
    let mut copies: Vec<Option<Vec<T>>> = Vec::new();
    for tensor in tensors.iter_mut() {
        let direct = tensor.as_slice_mut::<T>().is_some();
        copies.push(if direct { None } else { Some(load_owned::<T>(tensor.as_ref())?) });
    }
    let mut slices: Vec<SharedMut<T>> = Vec::new();
    for (tensor, copy) in tensors.iter_mut().zip(&mut copies) {
        slices.push(match copy {
            Some(copy) => SharedMut::new(copy),
            None => SharedMut::from_ptr(tensor.ptr().cast::<T>()),
        });
    }
    let part = |i: usize, range: &Range<usize>| -> &mut [T] {
        // SAFETY: ranges are disjoint; every slice has `n` elements, exclusive to this call.
        slices.get(i).map_or(&mut [], |s| unsafe { s.slice(range.clone()) })
    };
    parallel::for_range(n, GRAIN, &|range| {
        let buffers = [part(2, &range), part(3, &range), part(4, &range)];
        work(&mut Block { param: part(0, &range), grad: part(1, &range), buffers });
    });
    for (tensor, copy) in tensors.iter_mut().zip(&copies) {
        if let Some(copy) = copy {
            store(tensor, copy);
        }
    }
    Ok(())
}

crate::multiversion! {
    fn sgd_block<T: Real>(param: &mut [T], grad: &mut [T], buffer: &mut [T], o: &SgdOptions) {
        let n = param.len();
        let (lr, momentum) = (T::of(o.lr), T::of(o.momentum));
        let (keep, decay) = (T::of(1.0 - o.dampening), T::of(o.weight_decay));
        unscale(grad, o.grad_scale);
        let gradient = |p: T, g: T| {
            let g = if o.maximize { T::ZERO - g } else { g };
            if o.weight_decay == 0.0 { g } else { g + p * decay }
        };
        if o.momentum == 0.0 {
            for (p, &g) in param.iter_mut().zip(&*grad) {
                *p -= lr * gradient(*p, g);
            }
            return;
        }
        let (grad, buffer) = (&grad[..n], &mut buffer[..n]);
        for i in 0..n {
            let g = gradient(param[i], grad[i]);
            let b = if o.is_first_step { g } else { momentum * buffer[i] + keep * g };
            buffer[i] = b;
            param[i] -= lr * if o.nesterov { g + momentum * b } else { b };
        }
    }
}

/// Divides the gradient by the scale, if there is one.
#[inline(always)]
fn unscale<T: Real>(grad: &mut [T], scale: Option<f64>) {
    if let Some(scale) = scale {
        for g in grad {
            *g /= T::of(scale);
        }
    }
}

crate::multiversion! {
    fn adam_block<T: Real>(
        param: &mut [T], grad: &mut [T], m: &mut [T], v: &mut [T], top: &mut [T], o: &AdamOptions, decoupled: bool,
    ) {
        let n = param.len();
        unscale(grad, o.grad_scale);
        let (grad, m, v) = (&grad[..n], &mut m[..n], &mut v[..n]);
        let shrink = T::of(1.0 - o.lr * o.weight_decay);
        let decay = T::of(o.weight_decay);
        let (keep1, beta2, keep2) = (T::of(1.0 - o.beta1), T::of(o.beta2), T::of(1.0 - o.beta2));
        let step_size = T::of(o.lr / (1.0 - math_f64::pow(o.beta1, o.step)));
        let root = T::of((1.0 - math_f64::pow(o.beta2, o.step)).sqrt());
        let eps = T::of(o.eps);
        let sign = if o.maximize { T::ZERO - T::ONE } else { T::ONE };
        let decay = if decoupled { T::ZERO } else { decay };
        let shrink = if decoupled { shrink } else { T::ONE };
        macro_rules! each {
            ($second:expr) => {
                for i in 0..n {
                    let p = param[i] * shrink;
                    let g = grad[i] * sign + p * decay;
                    m[i] = m[i] + keep1 * (g - m[i]);
                    v[i] = beta2 * v[i] + keep2 * g * g;
                    let second: T = $second(i, v[i]);
                    param[i] = p - step_size * m[i] / (second.sqrt() / root + eps);
                }
            };
        }
        if o.amsgrad {
            let top = &mut top[..n];
            each!(|i: usize, v: T| {
                top[i] = if top[i] > v { top[i] } else { v };
                top[i]
            });
        } else {
            each!(|_, v: T| v);
        }
    }
}

/// The `p`-norm over several tensors together, as `clip_grad_norm_` needs it: the `p`-norm of each
/// tensor's own `p`-norm. `p` may be infinite.
///
/// # Errors
/// A dtype that is not real floating.
pub fn total_norm(tensors: &[StridedRef<'_>], p: f64) -> Result<f64> {
    let mut norms = memory::with_capacity(tensors.len())?;
    for &tensor in tensors {
        norms.push(norm(tensor, p)?);
    }
    Ok(join_norms(&norms, p))
}

fn join_norms(norms: &[f64], p: f64) -> f64 {
    if p == f64::INFINITY {
        return norms.iter().fold(0.0, |a, &b| if b > a || b.is_nan() { b } else { a });
    }
    if p == 2.0 {
        return norms.iter().map(|n| n * n).sum::<f64>().sqrt();
    }
    math_f64::pow(norms.iter().map(|&n| math_f64::pow(n, p)).sum::<f64>(), 1.0 / p)
}

fn norm(tensor: StridedRef<'_>, p: f64) -> Result<f64> {
    for_compute!(tensor.dtype(), "linalg_vector_norm", T => {
        let x = load::<T>(tensor)?;
        let blocks = x.len().div_ceil(GRAIN);
        let mut parts = memory::filled(0.0, blocks)?;
        let shared = SharedMut::new(&mut parts);
        parallel::for_range(blocks, 1, &|range| {
            for block in range {
                let x = &x[block * GRAIN..x.len().min((block + 1) * GRAIN)];
                // SAFETY: one element per block.
                unsafe { shared.slice(block..block + 1)[0] = block_norm(x, p) };
            }
        });
        if p == 2.0 {
            return Ok(parts.iter().sum::<f64>().sqrt());
        }
        Ok(join_norms(&parts, p))
    })
}

crate::multiversion! {
    /// The sum of squares for p = 2, else the p-norm.
    fn block_norm<T: Real>(x: &[T], p: f64) -> f64 {
        if p == 2.0 {
            let sum = |c: &[T]| crate::row::reduce(c, T::ZERO, |a, b| a + b, |v| v * v).wide();
            return x.chunks(1024).map(sum).sum();
        }
        if p == f64::INFINITY {
            return crate::row::reduce(x, T::ZERO, crate::row::maximum, Real::abs).wide();
        }
        let sum = x.iter().map(|v| math_f64::pow(v.wide().abs(), p)).sum::<f64>();
        math_f64::pow(sum, 1.0 / p)
    }
}

/// Multiplies every tensor by `factor`, in place: the second half of `clip_grad_norm_`, whose factor
/// is `min(1, max_norm / (total_norm + 1e-6))`.
///
/// # Errors
/// A dtype that is not real floating.
pub fn scale(tensors: &mut [StridedMut<'_>], factor: f64) -> Result<()> {
    for tensor in tensors {
        for_compute!(tensor.dtype(), "mul_cpu", T => {
            crate::dense::with_inout::<T, _>(tensor, |x| {
                let n = x.len();
                let x = SharedMut::new(x);
                // SAFETY: ranges are disjoint.
                parallel::for_range(n, GRAIN, &|range| multiply(unsafe { x.slice(range) }, T::of(factor)));
            })?;
            Ok(())
        })?;
    }
    Ok(())
}

crate::multiversion! {
    fn multiply<T: Real>(x: &mut [T], factor: T) {
        for x in x {
            *x *= factor;
        }
    }
}
