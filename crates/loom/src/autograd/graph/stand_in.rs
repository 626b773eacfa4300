//! Stand-ins for the parts of nodes and tensors that the accumulator needs: the parts that count,
//! lock and hold each other, and nothing else.

use super::accumulator::{Accumulator, Home, HomeSlot, drop_handle, handle};
use super::counted::{Counted, Weak};
use crate::sync::{AtomicBool, AtomicUsize, Mutex};
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A leaf: its slot for the accumulator, and a fact that its first handle records.
#[derive(Clone)]
pub(crate) struct Tensor(Counted<Leaf>);

struct Leaf {
    slot: HomeSlot<node::NodeFields>,
    dtype: AtomicUsize,
}

impl Tensor {
    pub(super) fn new() -> Tensor {
        let leaf = Leaf { slot: HomeSlot::default(), dtype: AtomicUsize::new(0) };
        // SAFETY: it is moved to the place.
        Tensor(unsafe { Counted::make(|place: *mut Leaf| place.write(leaf)) })
    }
    pub(super) fn accumulator(&self) -> node::Node {
        node::Node(self.0.slot.get(self).0)
    }
    pub(super) fn live_accumulator(&self) -> Option<node::Node> {
        self.0.slot.live().map(node::Node)
    }
    /// The effect of `x.data = y` with another dtype.
    pub(super) fn set_dtype(&self, dtype: usize) {
        self.0.dtype.store(dtype, Relaxed);
        drop(self.0.slot.forget().map(node::Node));
    }
    pub(super) fn use_count(&self) -> usize {
        self.0.count()
    }
    pub(super) fn is_same(&self, other: &Tensor) -> bool {
        self.0.address() == other.0.address()
    }
}

/// `input_meta.rs`.
pub(super) mod input_meta {
    use super::{Relaxed, Tensor};

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
}

/// `node.rs`: the node around an accumulator.
pub(super) mod node {
    use super::*;

    pub(in crate::autograd) struct NodeFields {
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

    pub(in crate::autograd) struct Node(pub(in crate::autograd) ManuallyDrop<Counted<NodeFields>>);
    pub(in crate::autograd) struct WeakNode(Weak<NodeFields>);

    impl Home for NodeFields {
        type Hooks = Hooks;

        fn around(accumulator: Accumulator) -> Counted<NodeFields> {
            let body = Body::AccumulateGrad(accumulator);
            let inner =
                NodeFields { body, has_hooks: AtomicBool::new(false), hooks: Mutex::new(None) };
            // SAFETY: it is moved to the place.
            unsafe { Counted::make(|place: *mut NodeFields| place.write(inner)) }
        }
        fn accumulator(&self) -> Option<&Accumulator> {
            match &self.body {
                Body::AccumulateGrad(it) => Some(it),
                Body::Op | Body::Custom => None,
            }
        }
        fn has_hooks(&self) -> bool {
            self.has_hooks.load(Acquire)
        }
        fn take_hooks_if(&self, is_due: impl FnOnce() -> bool) -> Option<Hooks> {
            let mut hooks = self.hooks.lock().unwrap();
            if !is_due() {
                return None;
            }
            self.has_hooks.store(false, Release);
            hooks.take()
        }
    }

    impl NodeFields {
        fn it(&self) -> &Accumulator {
            self.accumulator().expect("the models make no others")
        }
    }

    impl Node {
        pub(in crate::autograd) fn leaf(&self) -> &Tensor {
            self.0.it().leaf()
        }
        pub(in crate::autograd) fn expected_dtype(&self) -> Option<usize> {
            self.0.it().expected()[0].as_ref().map(|meta| meta.dtype)
        }
        pub(in crate::autograd) fn handles(&self) -> usize {
            self.0.it().handles()
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
            self.0.it().add_handle();
            Node(handle(&self.0))
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            // SAFETY: this handle's own count; it goes here.
            unsafe { drop_handle(&self.0, self.0.it()) }
        }
    }

    impl WeakNode {
        pub(in crate::autograd) fn upgrade(&self) -> Option<Node> {
            let inner = self.0.upgrade()?;
            inner.it().try_add_handle().then(|| Node(handle(&inner)))
        }
    }
}
