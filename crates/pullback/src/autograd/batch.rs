//! Batched tensors, by which `vmap` makes functions of single examples compute whole batches.
//!
//! Within a level ([`enter`]) a batched tensor ([`add_dim`]) shows sizes without the batch
//! dimension, and keeps the tensor that has it, its physical tensor, with the batch dimension in
//! front. Ops on it are recorded as they are seen, without the batch, and below that `layer` has
//! the op's batching rule compute it for the whole batch at once. So neither gradients nor tangents
//! need rules of their own, and levels nest: a physical tensor may be batched at another level.
//!
//! A gradient that leaves a level is summed over its batch: where a batched tensor meets one that is not, the edge to the
//! latter goes through a node that sums unless the level is still open (then one gradient for each example is asked
//! for). So, once a level is closed, the gradient of what is batched is batched, and that of what is not is the sum over all
//! examples. Invariant: the batch dimension of a physical tensor is its first, and no physical tensor has a history.
//!
//! ```
//! use pullback::autograd::batch::{LevelGuard, Randomness, add_dim, remove_dim};
//! use pullback::autograd::{BackwardOptions, grad};
//! use pullback::{Result, Tensor};
//! # fn main() -> Result<()> {
//! // The gradient of the sum of squares, for each of two examples.
//! let batch = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
//! let level = LevelGuard::new(2, Randomness::Error)?;
//! let x = add_dim(&batch, 0, level.id())?.with_grad()?;
//! assert_eq!(x.shape(), [2]);
//! let y = x.mul(&x)?.sum()?;
//! let slope = grad(&[&y], &[&x], &[None], BackwardOptions::default())?.remove(0).unwrap();
//! let slopes = remove_dim(&slope, level.id(), 2, 0)?;
//! assert_eq!(slopes.to_vec::<f64>()?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok(())
//! # }
//! ```

use super::graph::creation;
use super::graph::input_meta::InputMeta;
use super::graph::node::{Backward, Edge, Node};
use super::thread::vmap;
use super::variable::meta::{BatchedState, lock};
use super::variable::tangent;
use super::{arithmetic, mode};
use crate::dispatch::batch::{BatchedCall, Outcome, Tools};
use crate::dispatch::{self, Arg, Batch, Form, Grads, OpDef, Outputs, Traits, each_tensor};
use crate::error::ensure;
use crate::tensor::Flag;
use crate::tensor::shape::wrap_dim;
use crate::{Error, Result, Tensor};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

pub use super::thread::vmap::{LevelGuard, begin_numbers, end_numbers, enter, exit, is_any_open};
pub use crate::dispatch::batch::Randomness;

fn of(tensor: &Tensor) -> Option<Arc<BatchedState>> {
    if tensor.has_flag(Flag::BATCHED) { lock(tensor).batched.clone() } else { None }
}

/// The innermost level at which a tensor is batched.
pub fn level_of(tensor: &Tensor) -> Option<u64> {
    of(tensor).map(|batched| batched.level)
}

/// The value of `tensor` one level down: the physical tensor, the batch dimension first.
pub fn physical_of(tensor: &Tensor) -> Option<Tensor> {
    of(tensor).map(|batched| batched.physical.clone())
}

/// The levels at which a tensor is batched, the innermost first.
fn levels_of(tensor: &Tensor) -> SmallVec<[u64; 2]> {
    let mut levels = SmallVec::new();
    let mut next = of(tensor);
    while let Some(batched) = next {
        levels.push(batched.level);
        next = of(&batched.physical);
    }
    levels
}

/// A batched tensor without history, which shows the memory of the first example. Of several levels the latest is the
/// outermost, in whatever order they are added.
fn wrap(physical: Tensor, level: u64) -> Result<Tensor> {
    if let Some(later) = of(&physical)
        && later.level > level
    {
        let earlier = wrap(arithmetic::movedim(&later.physical, 1, 0)?, level)?;
        return wrap(earlier, later.level);
    }
    let sizes = &physical.shape()[1..];
    let tensor = if physical.numel() == 0 {
        // Without examples there is no first one to show.
        let zeros: crate::Dims = sizes.iter().map(|_| 0).collect();
        crate::binding::zeroed(sizes, Some(&zeros), 0, physical.dtype())?
    } else {
        physical.alias_with(sizes, &physical.strides()[1..], physical.storage_offset())?
    }
    .with_bits_of(&physical);
    tensor.set_flag(Flag::BATCHED, true);
    lock(&tensor).batched = Some(Arc::new(BatchedState { physical, level }));
    Ok(tensor)
}

/// The physical tensor with the dimension of a level in front, if the tensor is batched at that level.
fn physical_at(tensor: &Tensor, level: u64) -> Result<Option<Tensor>> {
    let Some(batched) = of(tensor) else { return Ok(None) };
    if batched.level == level {
        return Ok(Some(batched.physical.clone()));
    }
    match physical_at(&batched.physical, level)? {
        Some(below) => wrap(arithmetic::movedim(&below, 0, 1)?, batched.level).map(Some),
        None => Ok(None),
    }
}

/// `tensor` seen without dimension `dim`, which counts the examples of a level. Gradients and tangents go through.
///
/// # Errors
/// `IndexError` for dimensions that there are not.
pub fn add_dim(tensor: &Tensor, dim: i64, level: u64) -> Result<Tensor> {
    ensure!(
        tensor.ndim() > 0,
        index,
        "vmap: a tensor without dimensions has none ({dim} was given) that counts examples"
    );
    let front = if wrap_dim(dim, tensor.ndim())? == 0 {
        tensor.clone()
    } else {
        arithmetic::movedim(tensor, dim, 0)?
    };
    let batched = wrap(plain(&front)?, level)?;
    batched.set_birth(front.birth());
    tangent::each(&front, &mut |tangent| tangent::set(&batched, add_dim(&tangent, 0, level)?))?;
    connect(&front, &batched, Box::new(AddDim { level, size: front.shape()[0] }))?;
    Ok(batched)
}

/// The physical tensor, with the batch dimension at `dim` of the result; a tensor that is not batched at the level is
/// repeated for each of the `size` examples (a view). Gradients and tangents go through.
///
/// # Errors
/// `IndexError` for dimensions that the result has not.
pub fn remove_dim(tensor: &Tensor, level: u64, size: i64, dim: i64) -> Result<Tensor> {
    let dim = wrap_dim(dim, tensor.ndim() + 1)? as i64;
    let Some(physical) = physical_at(tensor, level)? else {
        let mut sizes: crate::Dims = smallvec![-1; tensor.ndim() + 1];
        sizes[dim as usize] = size;
        return arithmetic::expand(&arithmetic::unsqueeze(tensor, dim)?, &sizes);
    };
    let physical = physical.detached()?;
    tangent::each(tensor, &mut |tangent| {
        tangent::set(&physical, remove_dim(&tangent, level, size, 0)?)
    })?;
    connect(tensor, &physical, Box::new(RemoveDim { level }))?;
    if dim == 0 { Ok(physical) } else { arithmetic::movedim(&physical, 0, dim) }
}

/// Another handle to the value, without history and tangents.
fn plain(tensor: &Tensor) -> Result<Tensor> {
    tensor.detached()
}

/// Makes `output` the output of a node over `input`, if that requires grad.
fn connect(input: &Tensor, output: &Tensor, backward: Box<dyn Backward>) -> Result<()> {
    if mode::is_recording() && input.requires_grad() {
        let edges = smallvec![input.gradient_edge()?];
        let node = Node::custom(backward, edges, smallvec![Some(InputMeta::of(output))]);
        output.set_history(node, 0);
        creation::announce()?;
    }
    Ok(())
}

fn one(grad: Option<Tensor>) -> Grads {
    smallvec![grad]
}

struct AddDim {
    level: u64,
    size: i64,
}

impl Backward for AddDim {
    fn name(&self) -> String {
        "AddBatchDimBackward".into()
    }
    fn apply(&self, _: &Node, grads: Grads) -> Result<Grads> {
        let Some(grad) = grads.into_iter().next().flatten() else { return Ok(one(None)) };
        remove_dim(&grad, self.level, self.size, 0).map(Some).map(one)
    }
}

struct RemoveDim {
    level: u64,
}

impl Backward for RemoveDim {
    fn name(&self) -> String {
        "RemoveBatchDimBackward".into()
    }
    fn apply(&self, _: &Node, grads: Grads) -> Result<Grads> {
        let Some(grad) = grads.into_iter().next().flatten() else { return Ok(one(None)) };
        add_dim(&grad, 0, self.level).map(Some).map(one)
    }
}

/// The node of a tensor that is not batched, where it meets one that is.
struct Lift {
    /// The levels at which the other tensor is batched.
    levels: SmallVec<[u64; 2]>,
}

impl Backward for Lift {
    fn name(&self) -> String {
        "LiftBackward".into()
    }
    fn apply(&self, _: &Node, grads: Grads) -> Result<Grads> {
        let Some(mut grad) = grads.into_iter().next().flatten() else { return Ok(one(None)) };
        for &level in self.levels.iter().filter(|&&level| !vmap::is_open(level)) {
            grad = summed(&grad, level)?;
        }
        Ok(one(Some(grad)))
    }
}

/// Whether `source` can be written into `target`, which is so if `target` is batched wherever `source` is.
pub(super) fn holds(target: &Tensor, source: &Tensor) -> bool {
    if !source.has_flag(Flag::BATCHED) {
        return true;
    }
    let levels = levels_of(target);
    levels_of(source).iter().all(|level| levels.contains(level))
}

/// A copy of `tensor` that is batched wherever `other` is, so that `other` can be written into it; the tensor itself if it is
/// batched there already.
pub(super) fn with_levels_of(tensor: &Tensor, other: &Tensor) -> Result<Tensor> {
    let mut result = tensor.clone();
    let own = levels_of(tensor);
    for level in levels_of(other).into_iter().filter(|level| !own.contains(level)) {
        let size = physical_at(other, level)?.map_or(0, |physical| physical.shape()[0]);
        result = add_dim(&remove_dim(&result, level, size, 0)?, 0, level)?;
        result = arithmetic::copy_with_strides(&result, tensor.shape(), tensor.strides())?;
    }
    Ok(result)
}

/// The sum of a gradient over a level's examples. (The gradient of a value that is the same for all examples is a sum already.)
fn summed(grad: &Tensor, level: u64) -> Result<Tensor> {
    if !levels_of(grad).contains(&level) {
        return Ok(grad.clone());
    }
    arithmetic::sum_first(&remove_dim(grad, level, 0, 0)?)
}

/// The edges of tensors that are the inputs of one node: for tensors that lack levels of the others, through a node that sums
/// over the examples.
///
/// # Errors
/// As [`Tensor::gradient_edge`].
pub fn edges_of(tensors: &[Tensor], mut push: impl FnMut(Edge)) -> Result<()> {
    let all = all_levels(|see| tensors.iter().for_each(see));
    for tensor in tensors {
        let edge = if tensor.requires_grad() { tensor.gradient_edge()? } else { Edge::default() };
        push(if edge.is_valid() { lifted(tensor, edge, &all) } else { edge });
    }
    Ok(())
}

/// As [`edges_of`], for the edges of an op's node.
#[cold]
#[inline(never)]
pub(super) fn lift_edges(
    def: &OpDef,
    args: &[Arg<'_>],
    mut edges: SmallVec<[Edge; 2]>,
) -> SmallVec<[Edge; 2]> {
    let all = all_levels(|see| each_tensor(args, see));
    if all.is_empty() {
        return edges;
    }
    let mut remaining = edges.iter_mut();
    let mut lift = |tensor: Option<&Tensor>| {
        if let (Some(edge), Some(tensor)) = (remaining.next(), tensor)
            && edge.is_valid()
        {
            *edge = lifted(tensor, std::mem::take(edge), &all);
        }
    };
    for (arg, _) in args.iter().zip(def.args).filter(|(_, info)| info.has_vjp) {
        match arg {
            Arg::Tensor(tensor) => lift(Some(tensor)),
            Arg::Tensors(list) => list.iter().for_each(|tensor| lift(Some(tensor))),
            Arg::OptTensors(list) => list.iter().for_each(|tensor| lift(tensor.as_ref())),
            _ => lift(None),
        }
    }
    edges
}

/// The levels of all tensors that `each` passes on.
fn all_levels<'a>(each: impl FnOnce(&mut dyn FnMut(&'a Tensor))) -> SmallVec<[u64; 2]> {
    let mut all = SmallVec::new();
    each(&mut |tensor| {
        for level in levels_of(tensor) {
            if !all.contains(&level) {
                all.push(level);
            }
        }
    });
    all
}

/// The edge of `tensor`, which meets tensors batched at the levels `all`.
fn lifted(tensor: &Tensor, edge: Edge, all: &[u64]) -> Edge {
    let own = if all.is_empty() { SmallVec::new() } else { levels_of(tensor) };
    let missing: SmallVec<[u64; 2]> =
        all.iter().copied().filter(|level| !own.contains(level)).collect();
    if missing.is_empty() {
        return edge;
    }
    let meta = smallvec![Some(InputMeta::of(tensor))];
    Edge::new(Node::custom(Box::new(Lift { levels: missing }), smallvec![edge], meta), 0)
}

/// The results of a batching rule, whose first dimension counts examples, as batched tensors.
fn wrapped(call: &BatchedCall<'_>, outputs: Outputs) -> Result<Outputs> {
    let wrap = |physical: Tensor| {
        if physical.shape() == [0] && call.size != 0 {
            // (An output that was not requested.)
            return wrap(arithmetic::expand(&physical, &[call.size, 0])?, call.level);
        }
        ensure!(
            physical.shape().first() == Some(&call.size),
            runtime,
            "vmap: the batching rule of {} gave a result without batch: this is a bug in pullback",
            call.def.full_name()
        );
        wrap(physical, call.level)
    };
    Ok(match outputs {
        Outputs::One(tensor) => Outputs::One(wrap(tensor)?),
        Outputs::Tensors(tensors) => {
            Outputs::Tensors(tensors.into_iter().map(wrap).collect::<Result<_>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}

fn physical_of_level(tensor: &Tensor, level: u64) -> Option<Tensor> {
    of(tensor).filter(|batched| batched.level == level).map(|b| b.physical.clone())
}

fn show(target: &Tensor, physical: Tensor, level: u64) -> Result<()> {
    let shown = wrap(physical, level)?;
    target.set_geometry(shown.geometry().clone());
    target.set_sign_bits(shown.sign_bits());
    let batched = lock(&shown).batched.take();
    let old = std::mem::replace(&mut lock(target).batched, batched);
    drop(old);
    Ok(())
}

static TOOLS: Tools = Tools { physical: physical_of_level, show };

/// The layer of batched tensors: computes an op by its batching rule for the innermost level at which an argument is batched.
#[inline(never)]
pub(crate) fn layer(call: &dispatch::Call<'_>) -> Result<Outputs> {
    let mut innermost: Option<Arc<BatchedState>> = None;
    call.each_tensor(|tensor| {
        if let Some(batched) = of(tensor)
            && innermost.as_ref().is_none_or(|old| old.level < batched.level)
        {
            innermost = Some(batched);
        }
    });
    match innermost {
        Some(batched) => run_at(call, batched.level, batched.physical.shape()[0]),
        None => call.next(),
    }
}

/// The layer of threads with open levels: random ops draw there for each example, although no argument is batched.
#[inline(never)]
pub(crate) fn random_layer(call: &dispatch::Call<'_>) -> Result<Outputs> {
    match vmap::innermost_open() {
        Some(level) if call.def.is(Traits::RANDOM) => run_at(call, level.id, level.size),
        _ => call.next(),
    }
}

/// Computes an op for all examples of a level.
fn run_at(call: &dispatch::Call<'_>, level: u64, size: i64) -> Result<Outputs> {
    let dispatch::Call { def, form, args, .. } = *call;
    let randomness = vmap::open(level).map_or(Randomness::Error, |open| open.randomness);
    run(&BatchedCall { def, form, args, size, randomness, level, tools: &TOOLS })
}

fn run(call: &BatchedCall<'_>) -> Result<Outputs> {
    if matches!(call.form, Form::Out(_)) {
        return Err(refused_out(call.def));
    }
    let rule = match call.def.batch {
        Batch::Rule(rule) => rule,
        _ if call.def.is(Traits::RANDOM) => arithmetic::DEFAULT_RULES.random,
        Batch::Pointwise => arithmetic::DEFAULT_RULES.pointwise,
        Batch::None | Batch::Composite => arithmetic::DEFAULT_RULES.one_by_one,
    };
    let outcome = {
        let _running = vmap::RunningRule::of(call.level);
        rule(call)?
    };
    let outputs = match outcome {
        Outcome::Batched(outputs) => wrapped(call, outputs)?,
        Outcome::Same(outputs) => outputs,
    };
    // (What shows the memory of a tensor is as old as it, also where autograd does not link them.)
    let shows = call.def.schema().returns.first().is_some_and(|result| result.alias.is_some());
    if shows && let Some(Arg::Tensor(shown)) = call.args.first() {
        outputs.as_slice().iter().for_each(|view| view.set_birth(shown.birth()));
    }
    Ok(outputs)
}

/// The error of a form with `out=`: what a level computes has no place in a tensor that is not batched.
#[cold]
fn refused_out(def: &OpDef) -> Error {
    if def.is(Traits::RANDOM) {
        return Error::runtime(format!(
            "vmap: calling out variants of random operations is not supported, but {}() was given out=. Use the form that gives a new tensor",
            def.name
        ));
    }
    Error::runtime(format!(
        "vmap: Batching rule not implemented for aten::{}.out; the fallback path doesn't work on out= or view ops: batched results have no place in a given tensor. Use the form that gives a new tensor",
        def.name
    ))
}

impl Tensor {
    /// The innermost level at which the tensor is batched, and its physical tensor.
    pub(crate) fn batched(&self) -> Option<(u64, Tensor)> {
        of(self).map(|batched| (batched.level, batched.physical.clone()))
    }
}
