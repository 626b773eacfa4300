//! What the accumulator needs of nodes and tensors: the parts that count, lock and hold each other, and nothing else.

use super::accumulator::{Accumulator, AccumulatorSlot, drop_handle, handle};
use super::counted::{Counted, Weak};
use crate::site::Site;
use crate::sync::{AtomicBool, AtomicUsize, Mutex};
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A leaf: its place for the accumulator, and a fact that its first handle notes down.
#[derive(Clone)]
pub(crate) struct Tensor(Counted<Leaf>);

struct Leaf {
    slot: AccumulatorSlot,
    dtype: AtomicUsize,
}

impl Tensor {
    pub(super) fn new() -> Tensor {
        let leaf = Leaf { slot: AccumulatorSlot::default(), dtype: AtomicUsize::new(0) };
        // SAFETY: it is moved to the place.
        Tensor(unsafe { Counted::make(|place: *mut Leaf| place.write(leaf)) })
    }
    pub(super) fn accumulator(&self) -> node::Node {
        self.0.slot.get(self)
    }
    pub(super) fn live_accumulator(&self) -> Option<node::Node> {
        self.0.slot.live()
    }
    /// What `x.data = y` does with another dtype.
    pub(super) fn set_dtype(&self, dtype: usize) {
        self.0.dtype.store(dtype, Relaxed);
        self.0.slot.forget();
    }
    pub(super) fn use_count(&self) -> usize {
        self.0.count()
    }
    pub(super) fn is_same(&self, other: &Tensor) -> bool {
        self.0.address() == other.0.address()
    }
}

/// Anomaly mode, which is off.
pub(super) mod anomaly {
    pub(in crate::autograd) fn is_anomaly_enabled() -> bool {
        false
    }
    pub(in crate::autograd) fn made(node: super::node::Node) -> super::node::Node {
        node
    }
}

/// `node.rs` and what `hook.rs` adds to it.
pub(super) mod node {
    use super::*;
    use smallvec::SmallVec;

    pub(in crate::autograd) struct Inner {
        pub(in crate::autograd) body: Body,
        pub(in crate::autograd) has_hooks: AtomicBool,
        hooks: Mutex<Option<Hooks>>,
    }

    /// A hook that holds something.
    pub(in crate::autograd) type Hooks = Box<loom::sync::Arc<()>>;

    pub(in crate::autograd) enum Body {
        AccumulateGrad(Accumulator),
        Op,
        Custom,
    }

    pub(in crate::autograd) struct Node(pub(in crate::autograd) ManuallyDrop<Counted<Inner>>);
    pub(in crate::autograd) struct WeakNode(Weak<Inner>);

    #[derive(Debug)]
    pub(in crate::autograd) struct InputMeta {
        pub(in crate::autograd) dtype: usize,
    }

    impl InputMeta {
        pub(in crate::autograd) fn of(tensor: &Tensor) -> Self {
            InputMeta { dtype: tensor.0.dtype.load(Relaxed) }
        }
        pub(in crate::autograd) fn is_of(&self, tensor: &Tensor) -> bool {
            self.dtype == tensor.0.dtype.load(Relaxed)
        }
    }

    pub(in crate::autograd) fn block(
        body: Body,
        _edges: SmallVec<[(); 2]>,
        _inputs: SmallVec<[(); 1]>,
        _site: Site,
    ) -> Counted<Inner> {
        let inner = Inner { body, has_hooks: AtomicBool::new(false), hooks: Mutex::new(None) };
        // SAFETY: it is moved to the place.
        unsafe { Counted::make(|place: *mut Inner| place.write(inner)) }
    }

    impl Inner {
        pub(in crate::autograd) fn take_hooks_if(
            &self,
            is_due: impl FnOnce() -> bool,
        ) -> Option<Hooks> {
            let mut hooks = self.hooks.lock().unwrap();
            if !is_due() {
                return None;
            }
            self.has_hooks.store(false, Release);
            hooks.take()
        }
        fn accumulator(&self) -> &Accumulator {
            match &self.body {
                Body::AccumulateGrad(it) => it,
                Body::Op | Body::Custom => unreachable!("the models make none"),
            }
        }
    }

    impl Node {
        pub(in crate::autograd) fn leaf(&self) -> &Tensor {
            self.0.accumulator().leaf()
        }
        pub(in crate::autograd) fn expected_dtype(&self) -> Option<usize> {
            self.0.accumulator().expected()[0].as_ref().map(|meta| meta.dtype)
        }
        pub(in crate::autograd) fn handles(&self) -> usize {
            self.0.accumulator().handles()
        }
        pub(in crate::autograd) fn downgrade(&self) -> WeakNode {
            WeakNode(self.0.downgrade())
        }
        pub(in crate::autograd) fn add_hook(&self, hook: Hooks) {
            let mut hooks = self.0.hooks.lock().unwrap();
            *hooks = Some(hook);
            self.0.has_hooks.store(true, Release);
        }
    }

    impl Clone for Node {
        fn clone(&self) -> Self {
            self.0.accumulator().add_handle();
            handle(&self.0)
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            // SAFETY: this handle's own count; it goes here.
            unsafe { drop_handle(&self.0, self.0.accumulator()) }
        }
    }

    impl WeakNode {
        pub(in crate::autograd) fn upgrade(&self) -> Option<Node> {
            let inner = self.0.upgrade()?;
            inner.accumulator().try_add_handle().then(|| handle(&inner))
        }
    }
}
