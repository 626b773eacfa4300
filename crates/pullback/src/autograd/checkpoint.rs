//! Checkpoints: a part of a program whose intermediate values are computed again in the backward pass instead of being kept
//! (Chen and others 2016).
//!
//! The function runs with hooks that keep a number in the place of each tensor that a node saves. The first of them that the
//! backward pass asks for lets the function run again, with hooks that keep the tensors. Invariant: both runs save the same
//! tensors in the same order; where that is seen to be wrong, backward fails. Gradients are those of a plain call, to the bit.

use super::thread::saved_hooks::{self, Packed, SavedTensorHooks};
use super::thread::vmap::NumberGuard;
use super::thread::{autocast, mode};
use crate::error::ensure;
use crate::tensor::TensorSpec;
use crate::{Result, Tensor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's state in which the function ran, and must run again.
struct Conditions {
    random: Vec<u8>,
    casts: autocast::AutocastState,
}

impl Conditions {
    fn take() -> Conditions {
        Conditions { random: crate::default_generator().state(), casts: autocast::snapshot() }
    }
    fn enter(&self) -> Result<()> {
        autocast::restore(&self.casts);
        crate::default_generator().set_state(&self.random)
    }
}

/// Puts the thread's state back.
struct RestoredConditions(Conditions);

impl Drop for RestoredConditions {
    fn drop(&mut self) {
        // (It cannot fail: the state is one that the generator gave.)
        let _ = self.0.enter();
    }
}

/// One call of a function.
struct Region<F> {
    function: F,
    inputs: Vec<Tensor>,
    versions: Vec<u32>,
    conditions: Conditions,
    /// The numbers of the levels of `vmap` that the first run opened.
    levels: Mutex<Vec<u64>>,
    /// What the saved tensors of the first run look like.
    specs: Mutex<Vec<TensorSpec>>,
    /// The tensors of another run that have not been requested yet.
    again: Mutex<Vec<Option<Tensor>>>,
}

impl<R, F: Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static> Region<F> {
    /// The saved tensor of this number.
    fn tensor(self: &Arc<Self>, number: usize) -> Result<Tensor> {
        if let Some(tensor) = lock(&self.again).get_mut(number).and_then(Option::take) {
            return Ok(tensor);
        }
        let made = self.run_again()?;
        let mut again = lock(&self.again);
        *again = made;
        let found = again.get_mut(number).and_then(Option::take);
        found.ok_or_else(|| crate::Error::runtime("checkpoint: a saved tensor has no number"))
    }

    fn run_again(&self) -> Result<Vec<Option<Tensor>>> {
        for (input, &version) in self.inputs.iter().zip(&self.versions) {
            ensure!(
                input.version() == version,
                runtime,
                "checkpoint: an input of shape {:?} was modified by an inplace operation after the call: it is at version {}, and was at version {version}. Its function cannot be run again",
                input.shape(),
                input.version()
            );
        }
        let kept = Arc::new(Keep(Mutex::default()));
        {
            let _before = RestoredConditions(Conditions::take());
            self.conditions.enter()?;
            let _on = mode::enable_grad();
            let _numbers = NumberGuard::begin(lock(&self.levels).clone());
            let _hooks = saved_hooks::saved_tensors_hooks(kept.clone())?;
            (self.function)(&self.inputs)?;
        }
        let made = std::mem::take(&mut *lock(&kept.0));
        let specs = lock(&self.specs);
        ensure!(
            made.len() == specs.len(),
            runtime,
            "checkpoint: A different number of tensors was saved during the original forward and recomputation: {} and {}. The function must do the same whenever it is called",
            specs.len(),
            made.len()
        );
        for (number, (tensor, spec)) in made.iter().zip(&*specs).enumerate() {
            ensure!(
                tensor.shape() == &spec.shape[..] && tensor.dtype() == spec.dtype,
                runtime,
                "checkpoint: Recomputed values have different metadata than during the forward pass: saved tensor {number} had shape {:?} and dtype {}, now it has shape {:?} and dtype {}",
                &spec.shape[..],
                spec.dtype.spelled(),
                tensor.shape(),
                tensor.dtype().spelled()
            );
        }
        Ok(made.into_iter().map(Some).collect())
    }
}

/// The hooks of the first run: they keep numbers.
struct RegionNumber<F>(Arc<Region<F>>);

/// A number in the place of a tensor.
struct Numbered<F>(Arc<Region<F>>, usize);

impl<R, F: Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static> SavedTensorHooks
    for RegionNumber<F>
{
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Packed>> {
        let mut specs = lock(&self.0.specs);
        specs.push(TensorSpec::like(tensor));
        Ok(Box::new(Numbered(self.0.clone(), specs.len() - 1)))
    }
}

impl<R, F: Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static> Packed for Numbered<F> {
    fn unpack(&self) -> Result<Tensor> {
        self.0.tensor(self.1)
    }
}

/// The hooks of another run: they keep the tensors, without the graph of that run.
struct Keep(Mutex<Vec<Tensor>>);

/// What replaces tensors that nobody unpacks; the graph of the other run is freed with it.
struct Dropped;

impl SavedTensorHooks for Keep {
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Packed>> {
        let kept = tensor.detached()?;
        lock(&self.0).push(kept);
        Ok(Box::new(Dropped))
    }
}

impl Packed for Dropped {
    fn unpack(&self) -> Result<Tensor> {
        crate::error::bail!(
            runtime,
            "checkpoint: the function asked for gradients while it ran again; let it do so outside of a checkpoint"
        )
    }
}

/// Calls `function` on `inputs` and keeps none of its intermediate values for the backward pass:
/// they are computed again when that needs them, with the same random numbers and under the same
/// autocast.
///
/// ```
/// use pullback::autograd::checkpoint;
/// use pullback::prelude::*;
/// # fn main() -> Result<()> {
/// let (x, w) = (Tensor::from([1.0, 2.0])?, Tensor::from([0.5, -1.0])?.with_grad()?);
/// let weight = w.clone();
/// let y = checkpoint(move |x| (&x[0] * &weight).sin().exp(), &[&x])?;
/// y.sum()?.backward()?;
/// # let v = w.detach()?.with_grad()?;
/// # (&x * &v).sin().exp().sum()?.backward()?;
/// # assert!(w.grad().unwrap().equal(&v.grad().unwrap())?);
/// # Ok(())
/// # }
/// ```
///
/// The function must compute the same whenever it runs, of its inputs and of what it holds; a module is moved into it as a
/// clone, which shares the parameters. Checkpoints may stand inside of others; an inner one keeps its inputs.
///
/// # Errors
/// Those of `function`. Backward gives a `RuntimeError` if the function does something else when it runs again, and if an input
/// was written to meanwhile.
#[track_caller]
pub fn checkpoint<R>(
    function: impl Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static,
    inputs: &[&Tensor],
) -> Result<R> {
    let inputs: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
    if !mode::is_recording() {
        return function(&inputs);
    }
    let region = Arc::new(Region {
        function,
        versions: inputs.iter().map(Tensor::version).collect(),
        inputs,
        conditions: Conditions::take(),
        levels: Mutex::default(),
        specs: Mutex::default(),
        again: Mutex::default(),
    });
    let _hooks = saved_hooks::saved_tensors_hooks(Arc::new(RegionNumber(region.clone())))?;
    let numbers = NumberGuard::begin(Vec::new());
    let result = (region.function)(&region.inputs);
    *lock(&region.levels) = numbers.end();
    result
}
