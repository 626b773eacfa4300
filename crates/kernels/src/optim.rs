//! Optimiser steps, each fused into one pass over a parameter's elements.
//!
//! Here is what the steps share: the walk over a parameter, its gradient and its buffers. The formulas
//! are in `rule`; a new optimiser is a struct there and a name in its list. Factors are computed in
//! doubles and rounded to the compute type once; half-precision state is computed in `f32` and rounded
//! back. Every element is independent, so results do not depend on threads.

mod rule;

pub use rule::{
    Adadelta, Adagrad, Adam, Adamax, Asgd, Factors, NAdam, RAdam, RmsProp, Rprop, Sgd, UpdateRule,
};

use crate::dense::{Real, SharedMut, for_compute, load_owned, store};
use crate::{Error, Result, StridedMut, parallel};
use rule::Formula;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 15;

/// Small parameters of this many elements together are worth a thread of their own.
pub const GROUP: usize = 1 << 14;

/// The most buffers that a step works on.
pub const BUFFERS: usize = 3;

/// One value for each tensor of a step: the parameter, its gradient, the buffers.
type Tensors<T> = SmallVec<[T; 2 + BUFFERS]>;

/// The tensors of one parameter's step; all have the parameter's shape.
#[derive(Debug)]
pub struct OptimState<'s, 'v> {
    /// The parameter.
    pub param: &'s mut StridedMut<'v>,
    /// Its gradient; written only if there is a scale to divide it by.
    pub grad: &'s mut StridedMut<'v>,
    /// The buffers that the rule uses, in the order in which its description names them.
    pub buffers: &'s mut [StridedMut<'v>],
}

/// Calls `work` with the index of each of `count` parameters, of which `size` gives the number of elements, on several
/// threads: small ones in groups, large ones one after the other, whose steps share themselves out. Returns the first error.
///
/// # Errors
/// Those of `work`.
pub fn for_each_parameter(
    count: usize,
    size: &(dyn Fn(usize) -> usize + Sync),
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    parallel::try_for_rows(count, GROUP, size, work)
}

/// One step of `rule` for one parameter, with the rule's [`UpdateRule::factors`] for its numbers. A gradient with a scale is divided
/// by it, and stored so.
///
/// # Errors
/// Shapes that differ, missing buffers, or a dtype that is not floating.
pub fn step(
    rule: &UpdateRule,
    factors: &Factors,
    grad_scale: Option<f64>,
    state: &mut OptimState<'_, '_>,
) -> Result<()> {
    rule::with_formula!(rule, formula => run(formula, factors, grad_scale, state))
}

fn run<F: Formula>(
    formula: &F,
    factors: &Factors,
    grad_scale: Option<f64>,
    state: &mut OptimState<'_, '_>,
) -> Result<()> {
    let buffers = formula.used().iter().filter(|used| **used).count();
    if state.buffers.len() < buffers {
        return Err(Error::runtime(format!(
            "{}: expected {buffers} state buffers, got {}",
            F::KERNEL,
            state.buffers.len()
        )));
    }
    let shape = state.param.shape();
    let others = std::iter::once(&*state.grad).chain(&state.buffers[..buffers]);
    for other in others {
        crate::dense::expect_shape("optimizer state", other.shape(), shape)?;
    }
    for_compute!(state.param.dtype(), F::KERNEL, T => {
        let mut tensors: Tensors<&mut StridedMut<'_>> = smallvec![&mut *state.param, &mut *state.grad];
        tensors.extend(&mut state.buffers[..buffers]);
        all_blocks::<T>(&mut tensors, &|mut block| {
            if let Some(scale) = grad_scale {
                divide(block.grad, T::of(scale));
            }
            walk_block(&mut block, formula, factors);
        })
    })
}

/// A block of elements of all tensors of a step; buffers that are not used are missing at the end.
struct StepBlock<'b, T> {
    param: &'b mut [T],
    grad: &'b mut [T],
    buffers: [&'b mut [T]; BUFFERS],
}

/// Runs `work` over blocks of the tensors, in place where they are contiguous and of type `T`.
fn all_blocks<T: Real>(
    tensors: &mut [&mut StridedMut<'_>],
    work: &(dyn Fn(StepBlock<'_, T>) + Sync),
) -> Result<()> {
    let n = tensors[0].numel();
    // Copies of the tensors that cannot be worked on in place.
    let mut copies: Tensors<Option<Vec<T>>> = Tensors::new();
    for tensor in tensors.iter_mut() {
        let direct = tensor.as_slice_mut::<T>().is_some();
        copies.push(if direct { None } else { Some(load_owned::<T>(tensor.as_ref())?) });
    }
    let mut slices: Tensors<SharedMut<T>> = Tensors::new();
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
        work(StepBlock { param: part(0, &range), grad: part(1, &range), buffers });
    });
    for (tensor, copy) in tensors.iter_mut().zip(&copies) {
        if let Some(copy) = copy {
            store(tensor, copy);
        }
    }
    Ok(())
}

crate::multiversion! {
    fn divide<T: Real>(x: &mut [T], scale: T) {
        for x in x {
            *x /= scale;
        }
    }
}

crate::multiversion! {
    fn walk_block<T: Real, F: Formula>(block: &mut StepBlock<'_, T>, formula: &F, factors: &Factors) {
        let element = formula.element::<T>(factors);
        // Which buffers there are is known to each loop, so that it has no branch of it.
        match formula.used() {
            [false, ..] => walk(block, [], element),
            [true, false, false] => walk(block, [0], element),
            [true, true, false] => walk(block, [0, 1], element),
            [true, false, true] => walk(block, [0, 2], element),
            [true, true, true] => walk(block, [0, 1, 2], element),
        }
    }
}

/// Applies `element` to every element; the buffers of the block stand at `positions` of its array.
#[inline(always)]
fn walk<T: Real, const N: usize>(
    block: &mut StepBlock<'_, T>,
    positions: [usize; N],
    element: impl Fn(T, T, &mut [T; BUFFERS]) -> T,
) {
    let n = block.param.len();
    let (param, grad) = (&mut block.param[..n], &block.grad[..n]);
    let mut given = block.buffers.iter_mut();
    let mut buffers: [&mut [T]; N] =
        std::array::from_fn(|_| given.next().map_or(&mut [][..], |buffer| &mut buffer[..n]));
    for i in 0..n {
        let mut values = [T::ZERO; BUFFERS];
        for (position, buffer) in positions.iter().zip(&buffers) {
            values[*position] = buffer[i];
        }
        param[i] = element(param[i], grad[i], &mut values);
        for (position, buffer) in positions.iter().zip(&mut buffers) {
            buffer[i] = values[*position];
        }
    }
}
