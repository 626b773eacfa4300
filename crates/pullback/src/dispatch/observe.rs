//! The observer of a thread's calls, for recordings (`crate::capture`): it sees the kernels that
//! run, and replacements of `.grad`s.
//!
//! While a thread records, it includes [`Key::Trace`] in every call, so that each passes the layers and ends in
//! [`Call::run_unobserved`](super::Call), around which the observer is called. Nothing here knows what a recording is.

use super::{Call, Outputs};
use crate::tensor::{Key, KeySet, SPARSE, UNRESOLVED, watch};
use crate::{Result, Tensor};
use std::cell::RefCell;
use std::rc::Rc;

/// Sees the kernels of a thread.
pub(crate) trait KernelObserver {
    /// The kernel of `call` is about to run.
    fn before(&self, call: &Call<'_>);
    /// The kernel has run, and returned these outputs.
    fn after(&self, call: &Call<'_>, outputs: &Outputs);
    /// The `.grad` of a leaf is about to be replaced.
    fn grad(&self, leaf: &Tensor);
}

thread_local! {
    static OBSERVER: RefCell<Option<Rc<dyn KernelObserver>>> = const { RefCell::new(None) };
}

/// Observes this thread from now on, until the guard is dropped.
pub(crate) struct Observed {
    was_traced: bool,
}

/// Lets `observer` see this thread's kernels.
pub(crate) fn observe(observer: Rc<dyn KernelObserver>) -> Observed {
    let was_traced = Key::Trace.is_included();
    OBSERVER.set(Some(observer));
    Key::Trace.include(true);
    Observed { was_traced }
}

impl Drop for Observed {
    fn drop(&mut self) {
        Key::Trace.include(self.was_traced);
        OBSERVER.take();
    }
}

/// The keys of layers whose work is not that of the kernels which an observer sees, or which run
/// code of the program.
const UNSEEN: KeySet = SPARSE
    .with(UNRESOLVED)
    .with(KeySet::of(Key::Python))
    .with(KeySet::of(Key::Meta))
    .with(KeySet::of(Key::CUDA))
    .with(KeySet::of(Key::Profiler));

/// Refuses to record a call that passes a layer of which the observer would not see all.
#[cold]
pub(super) fn check(call: &Call<'_>) {
    let unseen = call.keys.iter().find(|&key| UNSEEN.has(key));
    if let Some(key) = unseen {
        watch::refuse(|| {
            let name = call.form.qualified(call.def);
            format!("{name} is computed by the layer of the dispatch key {}", key.name())
        });
    }
}

/// Runs the kernel of a call, which the observer sees.
#[cold]
pub(super) fn run(call: &Call<'_>) -> Result<Outputs> {
    let Some(observer) = OBSERVER.with_borrow(Clone::clone) else { return call.run_unobserved() };
    observer.before(call);
    let result = {
        let _inside = watch::inside();
        call.run_unobserved()
    };
    match &result {
        Ok(outputs) => observer.after(call, outputs),
        Err(_) => {
            watch::refuse(|| format!("{} failed in the middle", call.form.qualified(call.def)));
        }
    }
    result
}

/// Tells the observer of a `.grad` that is about to be replaced.
#[cold]
pub(crate) fn note_grad(leaf: &Tensor) {
    if let Some(observer) = OBSERVER.with_borrow(Clone::clone) {
        observer.grad(leaf);
    }
}
