//! Making nodes: they are recorded while anomaly mode is on, and noted for hooks that are to see
//! them.

use super::input_meta::InputMeta;
use super::node::{AccumulatorSlot, Backward, Body, Edge, Node, block};
use super::{anomaly, creation};
use crate::Tensor;
use crate::call_site::CallSite;
use smallvec::SmallVec;
use std::mem::ManuallyDrop;

impl Node {
    #[inline(always)]
    pub(in crate::autograd) fn new(
        body: Body,
        edges: SmallVec<[Edge; 2]>,
        inputs: SmallVec<[Option<InputMeta>; 1]>,
        call_site: CallSite,
    ) -> Node {
        let node = Node(ManuallyDrop::new(block(body, edges, inputs, call_site)));
        creation::note(&node);
        if anomaly::is_anomaly_enabled() { anomaly::made(node) } else { node }
    }

    /// A node with a hand-written backward: `edges` are the edges of its gradients, `outputs` describe the forward results.
    pub fn custom(
        backward: Box<dyn Backward>,
        edges: SmallVec<[Edge; 2]>,
        inputs: SmallVec<[Option<InputMeta>; 1]>,
    ) -> Node {
        Node::new(Body::Custom(backward), edges, inputs, CallSite::here())
    }
}

impl AccumulatorSlot {
    /// A handle to the accumulator of `leaf`, whose slot this is.
    #[inline]
    pub(in crate::autograd) fn get(&self, leaf: &Tensor) -> Node {
        let (node, is_first) = self.handle(leaf);
        if is_first {
            creation::note(&node);
        }
        if is_first && anomaly::is_anomaly_enabled() { anomaly::made(node) } else { node }
    }
}
