//! Models of what threads share: loom runs each in every order of steps that its memory model allows.
//!
//! The files under test are the library's own, compiled a second time here with loom's atomics,
//! cells and threads in place of the standard library's (`crate::sync`). The parts of the rest of
//! the library that they need have small stand-ins here, with the same names
//! (`autograd/graph/stand_in.rs`). Each `models.rs` holds tests of the files beside which it
//! stands; a failing one says which order of steps broke it. For others this crate is empty.
#![cfg(test)]
#![allow(dead_code, reason = "a model needs only some of what a file offers")]

mod sync;

use autograd::Tensor;

/// `loom::model` for threads with many steps: every order in which at most so many of them are interrupted. (Waiting is
/// none.) Few interruptions show nearly all faults, and all orders of a pool's steps would take days.
fn model(interruptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.max_branches = 10_000;
    builder.check(f);
}

/// `pullback/src/tensor`.
mod tensor {
    #[path = "../../../pullback/src/tensor/count.rs"]
    mod count;
    #[path = "../../../pullback/src/tensor/lock.rs"]
    mod lock;
    mod models;

    pub(crate) use count::Counts;
    pub(crate) use lock::SpinLock;
}

/// `pullback/src/autograd`.
mod autograd {
    pub(crate) use graph::Tensor;

    /// `graph/`.
    mod graph {
        #[path = "../../../../pullback/src/autograd/graph/accumulator.rs"]
        mod accumulator;
        #[path = "../../../../pullback/src/autograd/graph/counted.rs"]
        mod counted;
        mod models;
        #[path = "../../../../pullback/src/autograd/graph/numbering.rs"]
        mod numbering;
        mod stand_in;
        #[path = "../../../../pullback/src/autograd/graph/turn.rs"]
        mod turn;

        pub(crate) use stand_in::Tensor;
        use stand_in::input_meta;
    }
}

/// `kernels/src/parallel`.
mod parallel {
    #[path = "../../../kernels/src/parallel/crew.rs"]
    mod crew;
    mod crew_models;
    #[path = "../../../kernels/src/parallel/gate.rs"]
    mod gate;
    mod models;

    use std::ops::Range;

    /// As in the library except for the small number of looks: each is one more step to be
    /// interleaved.
    const SPINS: u32 = 2;
    const YIELDS: u32 = 1;

    fn block_range(total: usize, grain: usize, block: usize) -> Range<usize> {
        block * grain..total.min((block + 1) * grain)
    }
}
