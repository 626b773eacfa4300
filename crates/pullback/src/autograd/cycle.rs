//! Cycles through gradients that were recorded, which counting handles never frees.
//!
//! `backward` with `create_graph` leaves a gradient in a leaf that leads back to the leaf: its `.grad`, the nodes that made
//! that, the leaf's `AccumulateGrad`, the leaf. Tensors that get such a `.grad` are noted, weakly. [`collect`] walks
//! through everything that can be reached from them, counting for each tensor and node how many of its handles it meets
//! on the way. What has others is in use, and so is all that it leads to; of the remaining ones it takes the `.grad`, so that
//! nothing holds them any more. Invariant: a handle that is not understood (in a hook, a custom function, a program) counts as
//! use, so that only garbage is taken apart.

use super::graph::node::Node;
use super::variable::history::grad_fn_of;
use super::variable::meta::{each_held, is_noted, take_grad};
use super::variable::noted::noted;
use crate::Tensor;
use crate::tensor::WeakTensor;
use std::collections::HashMap;

/// Whether there is anything for [`collect`] to search.
pub fn is_any() -> bool {
    !noted().is_empty()
}

/// An object of the search: a tensor or a node.
enum GraphObject {
    Tensor(Tensor),
    Node(Node),
}

impl GraphObject {
    fn id(&self) -> usize {
        match self {
            GraphObject::Tensor(tensor) => tensor.id(),
            GraphObject::Node(node) => node.id(),
        }
    }
    /// The number of handles besides this one.
    fn others(&self) -> usize {
        match self {
            GraphObject::Tensor(tensor) => tensor.use_count() - 1,
            GraphObject::Node(node) => node.use_count() - 1,
        }
    }
    /// The objects that this one holds, once for each handle; `None` if another thread is about to change that.
    fn held(&self) -> Option<Vec<GraphObject>> {
        let mut held = Vec::new();
        match self {
            GraphObject::Tensor(tensor) => {
                each_held(tensor, &mut |grad| held.push(GraphObject::Tensor(grad)))?;
                held.extend(grad_fn_of(tensor).map(GraphObject::Node));
                held.extend(tensor.base().cloned().map(GraphObject::Tensor));
            }
            GraphObject::Node(node) => {
                let edges = node.next_edges().iter();
                held.extend(edges.filter_map(|edge| edge.node.clone()).map(GraphObject::Node));
                held.extend(node.leaf().cloned().map(GraphObject::Tensor));
                node.each_saved(&mut |tensor| held.push(GraphObject::Tensor(tensor.clone())));
                if let Some(custom) = node.backward() {
                    custom.each_held(&mut |node| held.push(GraphObject::Node(node.clone())));
                }
            }
        }
        Some(held)
    }
}

/// The tensors and nodes that a search has found.
#[derive(Default)]
struct CycleWalk {
    indices: HashMap<usize, usize>,
    found: Vec<GraphObject>,
    /// The number of handles to each object that the search has met.
    met: Vec<usize>,
    leads_to: Vec<Vec<usize>>,
    in_use: Vec<usize>,
}

impl CycleWalk {
    /// The index of an object in `found`, and whether it is new.
    fn index_of(&mut self, object: GraphObject) -> (usize, bool) {
        let next = self.found.len();
        let index = *self.indices.entry(object.id()).or_insert(next);
        if index == next {
            self.found.push(object);
            self.met.push(0);
            self.leads_to.push(Vec::new());
        }
        (index, index == next)
    }

    /// Finds all objects that can be reached from `roots`, counts the handles to them, and marks those that are in use.
    fn of(roots: Vec<Tensor>, is_held: &dyn Fn(&Tensor) -> bool) -> CycleWalk {
        let mut walk = CycleWalk::default();
        // bounded: by the tensors and nodes, each of which takes more.
        let mut waiting: Vec<usize> =
            roots.into_iter().map(|root| walk.index_of(GraphObject::Tensor(root)).0).collect();
        while let Some(at) = waiting.pop() {
            let Some(held) = walk.found[at].held() else {
                walk.in_use.push(at);
                continue;
            };
            for object in held {
                let (index, is_new) = walk.index_of(object);
                walk.met[index] += 1;
                walk.leads_to[at].push(index);
                if is_new {
                    waiting.push(index);
                }
            }
        }
        for (at, object) in walk.found.iter().enumerate() {
            let is_shown = matches!(object, GraphObject::Tensor(tensor) if is_held(tensor));
            if is_shown || object.others() > walk.met[at] {
                walk.in_use.push(at);
            }
        }
        walk
    }

    /// The tensors that are neither in use nor can be reached from objects in use.
    fn garbage(&mut self) -> Vec<Tensor> {
        // bounded: by the tensors that the walk has found.
        let mut is_used = vec![false; self.found.len()];
        let mut waiting = std::mem::take(&mut self.in_use);
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut is_used[at], true) {
                waiting.extend(&self.leads_to[at]);
            }
        }
        let garbage = self.found.iter().zip(is_used).filter(|(_, is_used)| !is_used);
        let tensors = garbage.filter_map(|(object, _)| match object {
            GraphObject::Tensor(tensor) if is_noted(tensor) => Some(tensor.clone()),
            _ => None,
        });
        tensors.collect()
    }
}

/// Frees the tensors that nothing but their own recorded gradients hold; returns how many lost
/// their `.grad` for that. `is_held` says which tensors are in use although no handle shows it.
///
/// To be called where no other thread is inside of the library: one that passes handles on while they are counted might find
/// a `.grad` gone.
///
/// ```
/// use pullback::autograd::{BackwardOptions, backward, cycle};
/// use pullback::{Result, Tensor};
///
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[3.0_f64], &[1])?.with_grad()?;
/// let y = x.mul(&x)?.sum()?;
/// backward(&[&y], &[None], None, BackwardOptions { create_graph: true, ..BackwardOptions::default() })?;
/// let gone = x.downgrade();
/// drop((x, y));
/// assert!(gone.upgrade().is_some()); // held by the graph of its own gradient
/// assert_eq!(cycle::collect(&|_| false), 1);
/// assert!(gone.upgrade().is_none());
/// # Ok(())
/// # }
/// ```
pub fn collect(is_held: &dyn Fn(&Tensor) -> bool) -> usize {
    let roots: Vec<Tensor> = noted().iter().filter_map(WeakTensor::upgrade).collect();
    if roots.is_empty() {
        return 0;
    }
    let mut walk = CycleWalk::of(roots, is_held);
    let garbage = walk.garbage();
    drop(walk);
    let grads: Vec<Tensor> = garbage.iter().filter_map(take_grad).collect();
    let count = grads.len();
    drop(garbage);
    // (Last, and outside of every lock: dropping these frees all that only they led to.)
    drop(grads);
    count
}
