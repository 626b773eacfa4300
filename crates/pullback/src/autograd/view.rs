//! Views and in-place writes: who shares memory with whom, and whose history a write changes.
//!
//! A view knows its root base; the base does not know its views. A write through a view gives the base a
//! `CopySlices` node; other views notice by the shared version counter that their history is out of date
//! and make it anew from the base when asked.

use super::node::{Backward, Edge, InputMeta, Node};
use super::replay::{self, Replay};
use super::{arithmetic, batch, blame, leaf, mode, saved, tangent};
use crate::dispatch::{Arg, Grads, OpDef, Traits, check_writable};
use crate::error::ensure;
use crate::site::Site;
use crate::tensor::{Dims, Flag, may_overlap_itself};
use crate::{DType, Error, Result, Tensor, TensorSpec};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// How a view came to be: decides whether writing through it can be recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum CreationMeta {
    Default = 0,
    InCustomFunction = 1,
    MultiOutput = 2,
    NoGrad = 3,
    Inference = 4,
}

impl Tensor {
    pub(crate) fn creation_meta(&self) -> CreationMeta {
        match self.flags() >> Flag::CREATION_SHIFT & 15 {
            0 => CreationMeta::Default,
            1 => CreationMeta::InCustomFunction,
            2 => CreationMeta::MultiOutput,
            3 => CreationMeta::NoGrad,
            _ => CreationMeta::Inference,
        }
    }
    pub(crate) fn set_creation_meta(&self, meta: CreationMeta) {
        self.set_flag(15 << Flag::CREATION_SHIFT, false);
        self.set_flag((meta as u32) << Flag::CREATION_SHIFT, true);
    }
    /// The tensor whose memory this view shows, if it is a view that autograd tracks.
    pub fn base(&self) -> Option<&Tensor> {
        self.base_if_any()
    }
    /// Whether autograd tracks it as a view.
    pub fn is_view(&self) -> bool {
        self.has_flag(Flag::VIEW)
    }
    /// Makes `self`, which is fresh, a view of `source` (of its root base).
    pub(crate) fn link_to_base(&self, source: &Tensor, multi: bool) {
        if mode::is_tracking_excluded() {
            return;
        }
        let modes = mode::current();
        if source.has_flag(Flag::INFERENCE) {
            self.set_flag_fresh(Flag::INFERENCE);
            return;
        }
        let mut meta = if modes & mode::bit::INFERENCE != 0 {
            CreationMeta::Inference
        } else if modes & mode::bit::GRAD == 0 {
            CreationMeta::NoGrad
        } else if multi {
            CreationMeta::MultiOutput
        } else {
            CreationMeta::Default
        };
        let base = source.base().unwrap_or(source);
        if source.is_view() {
            let inherited = source.creation_meta();
            if meta == CreationMeta::Default || inherited == CreationMeta::Inference {
                meta = inherited;
            }
        }
        if self.set_base(base.clone()) {
            self.set_flag_fresh(Flag::VIEW | (meta as u32) << Flag::CREATION_SHIFT);
            self.follow_version_of(base);
            // The error of its use, after a write to the base, names the write.
            if meta != CreationMeta::Default
                && let Some(counter) = self.version_counter()
            {
                counter.watch();
            }
            self.attr_version().store(self.version(), Ordering::Release);
            tangent::link(self, source);
        }
    }
}

/// Links the outputs of a view op to the base of its first argument.
#[inline]
pub(crate) fn link_views(def: &'static OpDef, args: &[Arg<'_>], outputs: &[Tensor]) {
    let Some(Arg::Tensor(source)) = args.first() else { return };
    // What is a view of a strided tensor gives a sparse one of its own places.
    if source.is_sparse() {
        return;
    }
    for output in outputs {
        output.link_to_base(source, def.is(Traits::MULTI_VIEW));
    }
    if let Some(first) = outputs.first()
        && replay::is_kept(source, first)
    {
        replay::keep(def, args, source, outputs);
    }
}

/// The history of a view, made anew if its base was written to.
pub(super) fn refreshed_grad_fn(view: &Tensor) -> Result<Option<Node>> {
    let Some(base) = view.base() else { return Ok(leaf::grad_fn_of(view)) };
    if !view.has_flag(Flag::HAS_GRAD_FN) && !base.requires_grad() {
        return Ok(None);
    }
    let version = view.version();
    if view.attr_version().load(Ordering::Acquire) == version {
        return Ok(leaf::grad_fn_of(view));
    }
    check_view_write(view, Refused::Use)?;
    check_shown(view, base)?;
    let node = {
        let _grad = mode::enable_grad();
        let again = match replay::of(view) {
            Some(replay) => replay.run(base)?,
            None => {
                arithmetic::as_strided(base, view.shape(), view.strides(), view.storage_offset())?
            }
        };
        leaf::grad_fn_of(&again)
    };
    if let Some(node) = &node {
        view.output_slot().store(0, Ordering::Release);
        let old = view.grad_fn_slot().with(|slot| slot.replace(node.clone()));
        view.set_flag(Flag::HAS_GRAD_FN, true);
        leaf::move_retain(view, old.as_ref());
        drop(old);
    }
    view.attr_version().store(version, Ordering::Release);
    Ok(node)
}

/// What cannot be done with a view.
#[derive(Clone, Copy)]
enum Refused {
    /// A write through it.
    Write,
    /// Its use, after its base was written to.
    Use,
}

impl Refused {
    fn text(self) -> &'static str {
        match self {
            Refused::Write => "is being modified inplace",
            Refused::Use => "its base or another view of its base has been modified inplace",
        }
    }
}

/// Refuses writes through views whose history could not be told.
fn check_view_write(view: &Tensor, refused: Refused) -> Result<()> {
    let meta = view.creation_meta();
    if meta == CreationMeta::Default {
        return Ok(());
    }
    let node = leaf::grad_fn_of(view);
    let what = refused.text();
    let is_inference = meta == CreationMeta::Inference;
    let is_unrecorded = is_inference || meta == CreationMeta::NoGrad;
    let (mode, now) = if is_inference {
        ("inference mode", " in normal mode")
    } else {
        ("no_grad mode", " with grad mode enabled")
    };
    let start = match &node {
        None => format!("A view was created in {mode} and {what}{now}"),
        Some(node) => {
            let start = format!("Output {} of {} is a view", view.output_nr(), node.name());
            if is_unrecorded {
                format!("{start} of a view which was created in {mode} and {what}{now}")
            } else {
                format!("{start} and {what}")
            }
        }
    };
    let message = match meta {
        CreationMeta::NoGrad | CreationMeta::Inference => {
            let block = if is_inference { "inference_mode block" } else { "no_grad block" };
            format!(
                "{start}. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the {block} (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
            )
        }
        CreationMeta::MultiOutput => format!(
            "{start}. This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        ),
        _ => format!(
            "{start}. This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
        ),
    };
    Err(match refused {
        Refused::Write => blame::refused(message, node.as_ref()),
        Refused::Use => blame::outdated(message, view, node.as_ref()),
    }
    .error())
}

/// Refuses a view that shows elements which its base does not show any more: no gradient for them could arrive there.
#[inline]
fn check_shown(view: &Tensor, base: &Tensor) -> Result<()> {
    if !base.has_flag(Flag::RESTRIDED) || base.overrides_ops() {
        return Ok(());
    }
    ensure!(
        shows_all_of(base, view)?,
        runtime,
        "a view of shape {} has elements that its base, of shape {}, does not show any more since as_strided_() changed the base in place: the view's gradient cannot be told. Call as_strided(), which makes another view and leaves the base as it is",
        arithmetic::shape_text(view.shape()),
        arithmetic::shape_text(base.shape())
    );
    Ok(())
}

/// Refuses to write through a view of a base that shows elements more than once: what the write leaves of the base's gradient
/// lies in memory in which each of its elements has a place of its own.
#[inline]
fn check_shown_once(base: &Tensor) -> Result<()> {
    ensure!(
        !base.has_flag(Flag::RESTRIDED) || !may_overlap_itself(base.shape(), base.strides()),
        runtime,
        "a view is being modified inplace whose base, of shape {} and strides {}, shows elements more than once since as_strided_() changed it in place: the base's gradient cannot be told. Call as_strided(), which makes another view and leaves the base as it is",
        arithmetic::shape_text(base.shape()),
        arithmetic::shape_text(base.strides())
    );
    Ok(())
}

/// Whether `base` shows every part of its memory that `view` shows.
#[cold]
fn shows_all_of(base: &Tensor, view: &Tensor) -> Result<bool> {
    let (Some(memory), true) = (&base.geometry().storage, tangent::shares_memory(base, view))
    else {
        return Ok(true);
    };
    let _unrecorded = mode::set_grad(false);
    let _plain = mode::set_forward(false);
    // A mark for each number, of which a complex element is two. All but those that the base shows stay.
    let unit = base.dtype().size().min(view.dtype().size());
    let marks = TensorSpec::of(&[(memory.nbytes() / unit) as i64], DType::Bool).zeros()?;
    let marks = arithmetic::is_zero(&marks)?;
    let shown_by = |tensor: &Tensor| {
        let (geometry, parts) = (tensor.geometry(), (tensor.dtype().size() / unit) as i64);
        let mut shape = geometry.shape.clone();
        let mut strides: Dims = geometry.strides.iter().map(|stride| stride * parts).collect();
        shape.push(parts);
        strides.push(1);
        arithmetic::as_strided(&marks, &shape, &strides, geometry.offset * parts)
    };
    arithmetic::zero_in_place(&shown_by(base)?)?;
    Ok(!arithmetic::has_nonzero(&shown_by(view)?)?)
}

/// The error of a write that would change a leaf.
#[cold]
pub(super) fn leaf_write(message: &str, view: Option<&Tensor>) -> Error {
    let report = blame::refused(message, view.and_then(leaf::grad_fn_of).as_ref());
    report
        .hint("write under no_grad(), if it is not to be differentiated, or write to a clone()", "")
        .error()
}

/// Refuses in-place writes that autograd cannot follow. Called before every one of them.
#[inline]
pub(crate) fn check_inplace(target: &Tensor, will_require_grad: bool) -> Result<()> {
    target.check_version_writable()?;
    if !mode::is_recording() || !(will_require_grad || target.requires_grad()) {
        return Ok(());
    }
    if target.is_view() {
        check_view_write(target, Refused::Write)?;
        let base = target.base().expect("a view has a base");
        if base.is_leaf_now() && target.requires_grad() {
            return Err(leaf_write(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
                Some(target),
            ));
        }
        check_shown(target, base)?;
        check_shown_once(base)?;
        // Brings the history up to date before it is built upon.
        refreshed_grad_fn(target)?;
        return Ok(());
    }
    if target.has_flag(Flag::REQUIRES_GRAD) && target.is_leaf_now() {
        return Err(leaf_write(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            None,
        ));
    }
    Ok(())
}

/// Whether it is a leaf that requires grad, or shows elements of one.
pub(super) fn shows_leaf(tensor: &Tensor) -> bool {
    let base = tensor.base().unwrap_or(tensor);
    base.is_leaf_now() && tensor.requires_grad()
}

impl Tensor {
    pub(crate) fn check_version_writable(&self) -> Result<()> {
        ensure!(
            !self.has_flag(Flag::INFERENCE) || mode::is_inference_mode(),
            runtime,
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update."
        );
        Ok(())
    }
}

/// Refuses `out=` where a gradient would be expected.
pub(crate) fn check_out(def: &OpDef, args: &[Arg<'_>], outs: &[&Tensor]) -> Result<()> {
    if !mode::is_recording() {
        return Ok(());
    }
    let mut requires = outs.iter().any(|t| t.requires_grad());
    if !def.is(Traits::NOT_DIFFERENTIABLE) {
        crate::dispatch::each_tensor(args, |t| requires |= t.requires_grad());
    }
    ensure!(
        !requires,
        runtime,
        "{}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.",
        def.name
    );
    Ok(())
}

/// After a change of `target`'s sizes or strides recorded as `node`: no element changed, so its base, if it
/// is a view, keeps its history.
pub(crate) fn replace_history(target: &Tensor, node: Node) -> Result<()> {
    set_other_history(target, node, 0);
    Ok(())
}

/// Gives `target` another producer, which retains its gradient in the place of the one before.
fn set_other_history(target: &Tensor, node: Node, nr: u32) {
    let old = if target.has_flag(Flag::RETAINS_GRAD) { leaf::grad_fn_of(target) } else { None };
    target.set_history(node, nr);
    leaf::move_retain(target, old.as_ref());
}

/// After an in-place write recorded as `node`, whose output `nr` is the target: the target's history, and its base's.
pub(crate) fn rebase_history(target: &Tensor, node: Node, nr: u32) -> Result<()> {
    if target.is_view() {
        let base = target.base().expect("a view has a base").clone();
        ensure!(
            node.input_meta().len() == 1,
            runtime,
            "Functions which modify views in-place must return a single Variable"
        );
        let base_edge = if base.requires_grad() { base.gradient_edge()? } else { Edge::default() };
        let mut window = Window::of(target, &base);
        // (A view without elements may lie anywhere, before the base too.)
        let is_empty = window.shape.contains(&0);
        window.offset = if is_empty { 0 } else { window.offset - window.start_of(&base) };
        // What answers ops itself need not be laid out as its base.
        let replay = replay::of(target).filter(|_| base.overrides_ops());
        let slices = CopySlices {
            window,
            replay,
            base: InputMeta::of(&base),
            base_strides: base.strides().into(),
            inner: Mutex::new(Ok(node.clone())),
        };
        let mut edges = smallvec::smallvec![base_edge];
        edges.extend(node.next_edges().iter().skip(1).cloned());
        let inputs = smallvec::smallvec![Some(InputMeta::of(&base))];
        set_other_history(&base, Node::custom(Box::new(slices), edges, inputs), 0);
        // Out of date on purpose: the next look makes the view's history from the base's new one.
        target.attr_version().store(target.version().wrapping_sub(1), Ordering::Release);
        refreshed_grad_fn(target)?;
    } else {
        set_other_history(target, node, nr);
    }
    Ok(())
}

/// Which elements of its base a view shows. Where one of the two holds complex numbers and the other real ones,
/// sizes, strides and offset count real numbers, a complex one being a pair of them.
pub(super) struct Window {
    shape: Dims,
    strides: Dims,
    offset: i64,
    /// The view shows a real base as complex numbers.
    shows_pairs: bool,
    /// The view shows the real numbers that a complex base is made of.
    counts_parts: bool,
    /// And the base has the conj bit.
    parts_of_conj: bool,
    /// The conj and neg bits that turn what the base shows into what the view shows.
    turned: u32,
}

impl Window {
    pub(super) fn of(view: &Tensor, base: &Tensor) -> Self {
        let geometry = view.geometry();
        let shows_pairs = geometry.dtype.is_complex() && !base.dtype().is_complex();
        let (mut shape, mut strides) = (geometry.shape.clone(), geometry.strides.clone());
        let mut offset = geometry.offset;
        if shows_pairs {
            strides.iter_mut().for_each(|stride| *stride *= 2);
            offset *= 2;
            shape.push(2);
            strides.push(1);
        }
        let counts_parts = base.dtype().is_complex() && !geometry.dtype.is_complex();
        // (Real numbers are seen of a base whose conjugates are resolved.)
        let of_base = if counts_parts { Flag::NEG } else { Flag::UNRESOLVED };
        let turned = view.sign_bits() ^ base.sign_bits() & of_base;
        let parts_of_conj = counts_parts && base.is_conj();
        Window { shape, strides, offset, shows_pairs, counts_parts, parts_of_conj, turned }
    }
    /// Where the base's first element lies, counted as `offset` is.
    fn start_of(&self, base: &Tensor) -> i64 {
        base.storage_offset() * if self.counts_parts { 2 } else { 1 }
    }
    /// Those elements of `whole`, which lies in memory as the base does, as the view shows them: a view of `whole`. Where
    /// parts are counted, `whole` has a conj bit if the base has one.
    pub(super) fn show(&self, whole: &Tensor) -> Result<Tensor> {
        self.as_seen(self.elements(whole)?)
    }
    /// The same, but for pairs, which are left as real numbers: they need not lie where complex ones can.
    fn elements(&self, whole: &Tensor) -> Result<Tensor> {
        let mut seen = whole.clone();
        if self.parts_of_conj {
            seen = arithmetic::conj_view(&seen)?;
        }
        if self.counts_parts {
            seen = arithmetic::view_as_real(&seen)?;
        }
        seen = arithmetic::as_strided(&seen, &self.shape, &self.strides, self.offset)?;
        if self.shows_pairs { Ok(seen) } else { self.turn(seen) }
    }
    /// Such elements as the view shows them.
    fn as_seen(&self, elements: Tensor) -> Result<Tensor> {
        if self.shows_pairs {
            self.turn(arithmetic::view_as_complex(&elements)?)
        } else {
            Ok(elements)
        }
    }
    /// The other way: what the view shows as such elements.
    fn as_kept(&self, seen: Tensor) -> Result<Tensor> {
        if !self.shows_pairs {
            return Ok(seen);
        }
        let turned = self.turn(arithmetic::to_dtype(&seen, seen.dtype().to_complex())?)?;
        arithmetic::view_as_real(&arithmetic::resolve_conj(&turned)?)
    }
    /// What the base shows as the view shows it, and back.
    fn turn(&self, mut shown: Tensor) -> Result<Tensor> {
        if self.turned & Flag::CONJ != 0 {
            shown = arithmetic::conj_view(&shown)?;
        }
        if self.turned & Flag::NEG != 0 {
            shown = arithmetic::neg_view(&shown)?;
        }
        Ok(shown)
    }
}

/// The backward of a write through a view, seen from the base: the written part's gradient goes through
/// the inner node, the rest passes.
struct CopySlices {
    /// From the base's first element.
    window: Window,
    /// Says what the view shows where the window cannot.
    replay: Option<Arc<Replay>>,
    base: InputMeta,
    base_strides: Dims,
    /// The node of the write, or which backward freed it.
    inner: Mutex<std::result::Result<Node, Site>>,
}

impl CopySlices {
    /// A part of the base's gradient as the view shows it.
    fn as_seen(&self, part: Tensor) -> Result<Tensor> {
        if self.replay.is_some() { Ok(part) } else { self.window.as_seen(part) }
    }
    /// The other way.
    fn as_kept(&self, seen: Tensor) -> Result<Tensor> {
        if self.replay.is_some() { Ok(seen) } else { self.window.as_kept(seen) }
    }
}

impl Backward for CopySlices {
    fn name(&self) -> String {
        "torch::autograd::CopySlices".into()
    }
    fn release(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let freed = inner.is_ok().then(|| std::mem::replace(&mut *inner, Err(Site::here())));
        drop(inner);
        if let Some(Ok(node)) = freed {
            node.release();
        }
    }
    fn takes_real_part(&self) -> bool {
        true
    }
    fn each_held(&self, see: &mut dyn FnMut(&Node)) {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        inner.iter().for_each(see);
    }
    fn apply(&self, node: &Node, mut grads: Grads) -> Result<Grads> {
        let mut out: Grads = smallvec::SmallVec::from_elem(None, node.next_edges().len());
        let Some(grad) = grads.pop().flatten() else { return Ok(out) };
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let inner = inner.map_err(|at| saved::freed(Some(node), at))?;
        let mut result =
            arithmetic::copy_with_strides(&grad, &self.base.shape, &self.base_strides)?;
        if self.window.parts_of_conj {
            // The same numbers, with a conj bit as the base has one.
            let conjugates = arithmetic::clone(&arithmetic::conj_view(&result)?)?;
            result = arithmetic::conj_view(&conjugates)?;
        }
        let part_of = |whole: &Tensor| match &self.replay {
            Some(replay) => replay.run(whole),
            None => self.window.elements(whole),
        };
        let mut slice = part_of(&result)?;
        let mut input = Grads::new();
        input.push(Some(self.as_seen(arithmetic::clone(&slice)?)?));
        let edges = node.next_edges();
        let wanted = |i: usize| edges.get(i).is_some_and(Edge::is_valid);
        let inner_out = inner.apply(input, &wanted)?;
        for (index, grad) in inner_out.into_iter().enumerate() {
            if index > 0 {
                out[index] = grad;
            } else if edges[0].is_valid() {
                // What the inner node gives for the old slice; nothing means zero. Elements that share memory
                // are only ever written with one value, which does not depend on what was there.
                if let Some(grad) = grad.as_ref().filter(|grad| grad.overrides_ops()) {
                    // (There is to be room for the gradient of each example.)
                    result = batch::with_levels_of(&result, grad)?;
                    slice = part_of(&result)?;
                }
                match grad.filter(|_| check_writable(&slice).is_ok()) {
                    Some(g) => arithmetic::copy_in_place(&slice, &self.as_kept(g)?)?,
                    None => arithmetic::zero_in_place(&slice)?,
                }
                out[0] = Some(result.clone());
            }
        }
        Ok(out)
    }
}
