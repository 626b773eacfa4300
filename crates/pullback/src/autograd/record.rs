//! Recording an op: the values to save, the edges of the gradients, and the node of the op.

use super::graph::creation;
use super::graph::input_meta::InputMeta;
use super::graph::node::{
    Backward, Body, Edge, Node, SavedTensor, SavedValue, SavedValues, op_name,
};
use super::thread::saved_hooks;
use super::{arithmetic, batch, mode, rebase};
use crate::call_site::CallSite;
use crate::dispatch::{Arg, Facts, Grads, OpDef, SaveKind, Traits, Value, each_tensor, keys_of};
use crate::tensor::{Flag, SpinLock, TensorSpec};
use crate::{Error, Result, Tensor};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

#[inline]
fn any_requires_grad(arg: &Arg<'_>) -> bool {
    match arg {
        Arg::Tensor(t) => t.requires_grad(),
        Arg::Tensors(list) => list.iter().any(Tensor::requires_grad),
        Arg::OptTensors(list) => list.iter().flatten().any(Tensor::requires_grad),
        _ => false,
    }
}

/// The arguments whose gradients are needed, one bit each; 0 if nothing is to be recorded.
#[inline]
pub(crate) fn needed(def: &'static OpDef, args: &[Arg<'_>]) -> Result<u64> {
    if !mode::is_recording() || def.is(Traits::NOT_DIFFERENTIABLE) {
        return Ok(0);
    }
    let mut needs = 0;
    for (index, arg) in args.iter().enumerate() {
        if any_requires_grad(arg) {
            if def.args[index].not_differentiable {
                return Err(not_differentiable(def, index));
            }
            needs |= 1 << index;
        }
    }
    Ok(if needs != 0 && are_inference(args) { 0 } else { needs })
}

/// Whether all tensors are inference tensors: ops on them are not recorded, also outside of inference mode.
#[inline]
fn are_inference(args: &[Arg<'_>]) -> bool {
    args.iter().all(|arg| match arg {
        Arg::Tensor(t) => t.is_inference(),
        Arg::Tensors(list) => list.iter().all(Tensor::is_inference),
        Arg::OptTensors(list) => list.iter().flatten().all(Tensor::is_inference),
        _ => true,
    })
}

#[cold]
fn not_differentiable(def: &OpDef, index: usize) -> Error {
    Error::runtime(format!(
        "The function '{}' is not differentiable with respect to argument '{}'. This input cannot have requires_grad True.",
        def.name, def.args[index].name
    ))
}

fn wanted_rules(def: &OpDef, needs: u64) -> u32 {
    def.vjp.iter().enumerate().filter(|(_, r)| r.args & needs != 0).fold(0, |m, (i, _)| m | 1 << i)
}

/// Whether a rule that will run reads the first argument's value (which an in-place form destroys).
pub(crate) fn rules_need_self(def: &OpDef, needs: u64) -> bool {
    let rules = wanted_rules(def, needs);
    def.saves.iter().any(|s| s.what == SaveKind::Input && s.index == 0 && s.users & rules != 0)
}

/// Saves the inputs that the rules read in `slots`, which is empty; outputs follow in [`record`].
pub(crate) fn save_inputs(
    def: &OpDef,
    args: &[Arg<'_>],
    needs: u64,
    original_self: Option<Tensor>,
    slots: &mut SavedValues,
) -> Result<()> {
    let rules = wanted_rules(def, needs);
    // bounded: by the definition of the op.
    slots.reserve_exact(def.saves.len());
    for save in def.saves {
        let count = slots.len();
        // (Each value is constructed where it stays: reading one that was just written would wait for the write.)
        let slot = spare(slots);
        if save.users & rules == 0 || save.what == SaveKind::Output {
            slot.write(SavedValue::Empty);
        } else {
            match (save.what, &args[save.index]) {
                (SaveKind::Input, Arg::Tensor(t)) => {
                    let kept = original_self.as_ref().filter(|_| save.index == 0).unwrap_or(t);
                    slot.write(SavedValue::tensor(SavedTensor::input(kept)?));
                }
                (SaveKind::Shape, Arg::Tensor(t)) => keep_sizes(slot, t.shape()),
                (SaveKind::Strides, Arg::Tensor(t)) => keep_sizes(slot, t.strides()),
                (SaveKind::Input, Arg::Ints(ints)) => keep_sizes(slot, ints),
                (SaveKind::Input, Arg::Int(int)) => {
                    slot.write(SavedValue::Plain(Value::Int(*int)));
                }
                (SaveKind::Input, Arg::Scalar(scalar)) => {
                    slot.write(SavedValue::Plain(Value::Scalar(*scalar)));
                }
                (SaveKind::Input, Arg::Bool(bool)) => {
                    slot.write(SavedValue::Plain(Value::Bool(*bool)));
                }
                (what, arg) => {
                    slot.write(save_arg(what, arg)?);
                }
            }
        }
        // SAFETY: the place after the last one was written.
        unsafe { slots.set_len(count + 1) };
    }
    Ok(())
}

/// The memory after the last slot.
#[inline(always)]
fn spare(slots: &mut SavedValues) -> &mut MaybeUninit<SavedValue> {
    assert!(slots.len() < slots.capacity(), "room was made for all that is saved");
    // SAFETY: inside of the capacity; uninitialised memory is what the type says.
    unsafe { &mut *slots.as_mut_ptr().add(slots.len()).cast() }
}

/// Writes a copy of `ints`, number by number.
#[inline(always)]
fn keep_sizes(slot: &mut MaybeUninit<SavedValue>, ints: &[i64]) {
    let SavedValue::Sizes(list) = slot.write(SavedValue::Sizes(SmallVec::new())) else {
        unreachable!("just written")
    };
    // SAFETY: an empty list has room for two numbers.
    unsafe {
        let start = list.as_mut_ptr();
        match *ints {
            [] => {}
            [a] => start.write(a),
            [a, b] => {
                start.write(a);
                start.add(1).write(b);
            }
            _ => return list.extend_from_slice(ints),
        }
        list.set_len(ints.len());
    }
}

/// Saves an argument of a rare kind.
#[inline(never)]
fn save_arg(what: SaveKind, arg: &Arg<'_>) -> Result<SavedValue> {
    Ok(match (what, arg) {
        (_, Arg::None) => SavedValue::Empty,
        (SaveKind::Input, Arg::Tensors(list)) => {
            let list: Box<[_]> = list.iter().map(SavedTensor::input).collect::<Result<_>>()?;
            SavedValue::Tensors(SpinLock::new(Some(list)))
        }
        (SaveKind::Input, Arg::OptTensors(list)) => {
            let one = |t: &Option<Tensor>| t.as_ref().map(SavedTensor::input).transpose();
            let list: Box<[_]> = list.iter().map(one).collect::<Result<_>>()?;
            SavedValue::OptTensors(SpinLock::new(Some(list)))
        }
        (SaveKind::Offset, Arg::Tensor(t)) => SavedValue::Plain(Value::Int(t.storage_offset())),
        (SaveKind::Spec, Arg::Tensor(t)) => {
            SavedValue::Plain(Value::Spec(Box::new(TensorSpec::like(t))))
        }
        (SaveKind::Shapes, Arg::Tensors(list)) => {
            SavedValue::Plain(Value::Ints(flatten_shapes(list)))
        }
        (SaveKind::Input, other) => SavedValue::Plain(Value::from_arg(*other)),
        _ => panic!(
            "a rule asks for a tensor's metadata of an argument that is no tensor: this is a bug in pullback"
        ),
    })
}

/// The shapes of a list as one list: for each tensor its rank and then its sizes.
pub(super) fn flatten_shapes(list: &[Tensor]) -> Box<[i64]> {
    let mut out = Vec::with_capacity(list.iter().map(|t| 1 + t.ndim()).sum());
    for tensor in list {
        out.push(tensor.ndim() as i64);
        out.extend_from_slice(tensor.shape());
    }
    out.into()
}

/// The edges of a call's inputs: one for each tensor of each argument that has a rule.
#[derive(Default)]
struct InputEdges {
    edges: SmallVec<[Edge; 2]>,
    /// The length of the list of tensors among the arguments.
    list_len: u32,
}

impl InputEdges {
    /// Takes the edges of these arguments as they are now.
    #[inline(always)]
    fn take(&mut self, def: &OpDef, args: &[Arg<'_>]) -> Result<()> {
        if def.vjp.is_empty() {
            return all_edges(args, &mut self.edges);
        }
        self.list_len = edges(def, args, &mut self.edges)?;
        Ok(())
    }
}

/// What an in-place call reads of its inputs before it writes, because afterwards the target, its
/// views and other tensors over its memory have other values, sizes and versions.
#[derive(Default)]
pub(crate) struct BeforeWrite {
    slots: SavedValues,
    inputs: InputEdges,
}

impl BeforeWrite {
    /// Saves what the rules read, and takes the edges.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        def: &'static OpDef,
        args: &[Arg<'_>],
        needs: u64,
        original_self: Option<Tensor>,
    ) -> Result<()> {
        save_inputs(def, args, needs, original_self, &mut self.slots)?;
        self.inputs.take(def, args)
    }
}

/// One edge per tensor, for an op without rules.
#[cold]
fn all_edges(args: &[Arg<'_>], edges: &mut SmallVec<[Edge; 2]>) -> Result<()> {
    let mut failed = None;
    each_tensor(args, |t| match edge(t) {
        Ok(edge) => edges.push(edge),
        Err(error) => failed = Some(error),
    });
    failed.map_or(Ok(()), Err)
}

/// Writes one edge per tensor of each argument that has a rule to `edges`; returns the length of a list of tensors.
fn edges(def: &OpDef, args: &[Arg<'_>], edges: &mut SmallVec<[Edge; 2]>) -> Result<u32> {
    let mut list_len = 0;
    let mut word = 0;
    for (arg, info) in args.iter().zip(def.args) {
        word |= keys_of(std::slice::from_ref(arg));
        if !info.has_vjp {
            continue;
        }
        match arg {
            Arg::Tensor(t) => edges.push(edge(t)?),
            Arg::Tensors(list) => {
                list_len = list.len() as u32;
                for t in *list {
                    edges.push(edge(t)?);
                }
            }
            Arg::OptTensors(list) => {
                list_len = list.len() as u32;
                for t in *list {
                    edges.push(t.as_ref().map_or_else(|| Ok(Edge::default()), edge)?);
                }
            }
            _ => edges.push(Edge::default()),
        }
    }
    if word & Flag::BATCHED != 0 {
        // (As a whole, because a list that others can write to would not be constructed in registers.)
        let found = std::mem::take(edges);
        *edges = batch::lift_edges(def, args, found);
    }
    Ok(list_len)
}

#[inline]
fn edge(tensor: &Tensor) -> Result<Edge> {
    if tensor.requires_grad() { tensor.gradient_edge() } else { Ok(Edge::default()) }
}

/// Makes the node of a call and attaches the outputs to it.
pub(crate) fn record(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    outputs: &[Tensor],
    call_site: CallSite,
) -> Result<()> {
    let mut slots = SavedValues::new();
    save_inputs(def, args, needs, None, &mut slots)?;
    record_saved(def, args, needs, outputs, &mut slots, call_site)
}

/// As [`record`] for a call whose inputs were saved before it ran.
#[inline(always)]
pub(crate) fn record_saved(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    outputs: &[Tensor],
    slots: &mut SavedValues,
    call_site: CallSite,
) -> Result<()> {
    let mut inputs = InputEdges::default();
    inputs.take(def, args)?;
    make_node(def, (args, needs), outputs, (slots, inputs), call_site, false)
}

/// Makes the node of a call that wrote to `target`; `before` is what was taken before the write.
pub(crate) fn record_inplace(
    def: &'static OpDef,
    args: &[Arg<'_>],
    needs: u64,
    target: &Tensor,
    mut before: BeforeWrite,
) -> Result<()> {
    let outputs = std::slice::from_ref(target);
    let kept = (&mut before.slots, before.inputs);
    make_node(def, (args, needs), outputs, kept, CallSite::here(), true)
}

#[inline(always)]
fn make_node(
    def: &'static OpDef,
    (args, needs): (&[Arg<'_>], u64),
    outputs: &[Tensor],
    (slots, inputs): (&mut SavedValues, InputEdges),
    call_site: CallSite,
    is_inplace: bool,
) -> Result<()> {
    if def.vjp.is_empty() {
        let _site = call_site.enter();
        return attach_not_implemented(def.name, inputs.edges, outputs, is_inplace);
    }
    let rules = wanted_rules(def, needs);
    // Hooks see outputs with their history, so that the node must be there first.
    let is_late = saved_hooks::are_active();
    for (slot, save) in slots.iter_mut().zip(def.saves) {
        if save.what == SaveKind::Output && save.users & rules != 0 {
            *slot = if is_late {
                SavedValue::Tensor(SpinLock::new(None))
            } else {
                SavedValue::tensor(save_output(def, outputs, save.index)?)
            };
        }
    }
    let node = Node::new(
        // (Moved here and not right after the write: reading what was just written would wait for the write.)
        Body::Op {
            def,
            slots: std::mem::take(slots),
            facts: Facts::of(args).with_list_len(inputs.list_len),
        },
        inputs.edges,
        input_metas(def.with_gradient(outputs)),
        call_site,
    );
    if is_late {
        return attach_and_save(def, rules, outputs, node, is_inplace);
    }
    attach_all(def, outputs, node, is_inplace)
}

#[inline(always)]
fn attach_all(def: &'static OpDef, outputs: &[Tensor], node: Node, is_inplace: bool) -> Result<()> {
    if is_inplace && def.is(Traits::VIEW) {
        return rebase::replace_history(&outputs[0], node);
    }
    attach(def.with_gradient(outputs), node, is_inplace)
}

/// Saves output `nr` of a call. (What has no gradient gets no history.)
#[inline]
fn save_output(def: &OpDef, outputs: &[Tensor], nr: usize) -> Result<SavedTensor> {
    if nr < def.with_gradient(outputs).len() {
        SavedTensor::output(&outputs[nr], nr as u32)
    } else {
        SavedTensor::input(&outputs[nr])
    }
}

/// Attaches the outputs and then lets hooks pack those that the rules read.
#[cold]
fn attach_and_save(
    def: &'static OpDef,
    rules: u32,
    outputs: &[Tensor],
    node: Node,
    is_inplace: bool,
) -> Result<()> {
    attach_all(def, outputs, node.clone(), is_inplace)?;
    for (index, save) in def.saves.iter().enumerate() {
        if save.what == SaveKind::Output && save.users & rules != 0 {
            node.fill_slot(index, save_output(def, outputs, save.index)?);
        }
    }
    Ok(())
}

/// What the gradients of the outputs must look like; trailing outputs without gradient are left out.
#[inline(always)]
fn input_metas(outputs: &[Tensor]) -> SmallVec<[Option<InputMeta>; 1]> {
    let meta = |output: &Tensor| output.dtype().is_differentiable().then(|| InputMeta::of(output));
    if let [output] = outputs {
        return SmallVec::from_buf([meta(output)]);
    }
    let mut metas = SmallVec::new();
    for output in outputs {
        metas.push(meta(output));
    }
    while metas.last().is_some_and(Option::is_none) {
        metas.pop();
    }
    metas
}

fn attach(outputs: &[Tensor], node: Node, is_inplace: bool) -> Result<()> {
    if is_inplace {
        return rebase::rebase_history(&outputs[0], node, 0);
    }
    if let [output] = outputs {
        if output.dtype().is_differentiable() {
            output.set_first_history(node, 0);
        }
        return Ok(());
    }
    for (nr, output) in outputs.iter().enumerate() {
        if output.dtype().is_differentiable() {
            output.set_first_history(node.clone(), nr as u32);
        }
    }
    Ok(())
}

/// Attaches a node whose backward raises the error of an op without derivative.
#[cold]
fn attach_not_implemented(
    name: &'static str,
    edges: SmallVec<[Edge; 2]>,
    outputs: &[Tensor],
    is_inplace: bool,
) -> Result<()> {
    let node = Node::custom(Box::new(NotImplemented(name)), edges, input_metas(outputs));
    attach(outputs, node, is_inplace)
}

/// Called after an op that never has a gradient wrote to `target`: the previous history of the target does not matter any more.
pub(crate) fn record_constant(def: &'static OpDef, target: &Tensor) -> Result<()> {
    if !target.requires_grad() {
        return Ok(());
    }
    // The write has not changed the history of a tensor that is no view. That of a view is out of date now, and its base's
    // counts instead.
    let own = if target.is_view() { Edge::default() } else { edge(target)? };
    let edges = smallvec::smallvec![own];
    let outputs = std::slice::from_ref(target);
    attach(
        outputs,
        Node::custom(Box::new(ConstantBackward(def)), edges, input_metas(outputs)),
        true,
    )
}

/// The edges of a tensor before a change that has no derivative and is no op.
pub(crate) struct RefusedEdges(Option<SmallVec<[Edge; 2]>>);

impl RefusedEdges {
    /// Takes the edges before `target` becomes what `source` is.
    ///
    /// # Errors
    /// Those of views whose history could not be told.
    pub(crate) fn before(target: &Tensor, source: &Tensor) -> Result<RefusedEdges> {
        if !mode::is_recording() || !(target.requires_grad() || source.requires_grad()) {
            return Ok(RefusedEdges(None));
        }
        Ok(RefusedEdges(Some(smallvec::smallvec![edge(target)?, edge(source)?])))
    }
    /// Replaces the target's history by a node through which no gradient passes.
    pub(crate) fn record(self, name: &'static str, target: &Tensor) -> Result<()> {
        let Some(edges) = self.0 else { return Ok(()) };
        attach_not_implemented(name, edges, std::slice::from_ref(target), true)?;
        creation::announce()
    }
}

/// The backward of a write whose values do not depend on the previous ones: zero.
struct ConstantBackward(&'static OpDef);
impl Backward for ConstantBackward {
    fn name(&self) -> String {
        op_name(self.0.node_name)
    }
    fn apply(&self, _: &Node, grads: Grads) -> Result<Grads> {
        let zeros = |grad: Option<Tensor>| grad.map(|g| arithmetic::zeros_like(&g)).transpose();
        grads.into_iter().map(zeros).collect()
    }
}

/// The backward of an op without derivative: an error that names the op.
struct NotImplemented(&'static str);
impl Backward for NotImplemented {
    fn name(&self) -> String {
        "torch::autograd::NotImplemented".into()
    }
    fn apply(&self, _: &Node, _: Grads) -> Result<Grads> {
        Err(Error::not_implemented(format!("the derivative for {} is not implemented", self.0)))
    }
}
