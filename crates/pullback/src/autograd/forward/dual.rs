//! Forward mode: dual tensors, a value with its tangent, go through ops beside reverse mode.
//!
//! Within a level ([`dual_level`]) [`make_dual`] gives a tensor a tangent; every op on it then gives its results theirs,
//! the derivative of the op in that direction: Jacobian times vector, in one pass. Tangents are ordinary tensors:
//! they are recorded if grad mode is on, and what ops save for backward keeps its tangents, so that forward over
//! reverse and reverse over forward both give second derivatives. `layer` is the layer of calls that does this;
//! `pushforward` has the rules, `variable::tangent` where tangents are kept, `thread::level` how long.

use super::pushforward::{self, Pushforward};
use super::written::set_after_write;
use crate::autograd::call::{call_inplace, with_tensors};
use crate::autograd::thread::level;
use crate::autograd::variable::tangent;
use crate::autograd::variable::view::check_inplace;
use crate::autograd::{arithmetic, batch, mode};
use crate::dispatch::{
    Arg, Call, Form, IntoOutputs, Kernel, OpDef, Outputs, SaveKind, Traits, receiver,
};
use crate::error::ensure;
use crate::tensor::{Flag, Storage, shares_memory};
use crate::{Result, Tensor};
use pullback_kernels::memory;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

pub use crate::autograd::thread::mode::{is_forward_enabled, set_forward, set_forward_enabled};

/// Opens a level of forward mode and gives its number, 0. The level is the process's: other threads see its tangents.
///
/// # Errors
/// `RuntimeError` if a level is open already.
pub fn enter_dual_level() -> Result<usize> {
    level::enter()
}

/// Opens a level within those that are open, and gives its number.
pub fn enter_nested_level() -> usize {
    level::enter_nested()
}

/// Ends a level that [`enter_nested_level`] opened, also if other threads have opened some since. Returns whether it was open.
pub fn exit_nested_level(number: usize) -> bool {
    level::exit_nested(number)
}

/// Ends a level; all its tangents are gone.
///
/// # Errors
/// `RuntimeError` unless it is the level opened last.
pub fn exit_dual_level(number: usize) -> Result<()> {
    level::exit(number)
}

/// A guard as long as which a level of forward mode is open.
#[must_use = "the level lasts as long as the guard"]
#[derive(Debug)]
pub struct DualLevel(usize);

impl Drop for DualLevel {
    fn drop(&mut self) {
        // It can only fail if somebody ended this level by hand.
        let _ = level::exit(self.0);
    }
}

/// Opens a level of forward mode that ends with the guard.
///
/// ```
/// use pullback::autograd::forward::{dual_level, make_dual, unpack_dual};
/// use pullback::{Result, Tensor};
///
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[1.0_f64, 2.0], &[2])?;
/// let direction = Tensor::from_slice(&[1.0_f64, 10.0], &[2])?;
/// let _level = dual_level()?;
/// let y = make_dual(&x, &direction)?.square()?;
/// let (value, tangent) = unpack_dual(&y)?;
/// assert_eq!(value.to_vec::<f64>()?, [1.0, 4.0]);
/// assert_eq!(tangent.unwrap().to_vec::<f64>()?, [2.0, 40.0]); // 2x times the direction
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`enter_dual_level`].
pub fn dual_level() -> Result<DualLevel> {
    level::enter().map(DualLevel)
}

/// A handle to `primal`'s value that has `tangent` as its tangent: the very tensor if it lies in its memory as `primal`
/// does, and not in the same memory, else a copy. Gradients flow through both.
///
/// # Errors
/// `RuntimeError` without level, for tensors that have a tangent already, and for sizes that differ; `ValueError` for
/// dtypes without derivative.
pub fn make_dual(primal: &Tensor, tangent: &Tensor) -> Result<Tensor> {
    ensure!(
        level::is_open(),
        runtime,
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
    );
    for (tensor, role) in [(primal, "primal"), (tangent, "tangent")] {
        let dtype = tensor.dtype();
        ensure!(
            dtype.is_differentiable(),
            value,
            "Expected {role} to be floating point or complex, but got: {}",
            dtype.spelled()
        );
    }
    make_dual_at(primal, tangent, level::last())
}

/// As [`make_dual`] at the level `number`.
///
/// # Errors
/// As [`make_dual`].
pub fn make_dual_at(primal: &Tensor, tangent: &Tensor, number: usize) -> Result<Tensor> {
    level::check(number, "_make_dual")?;
    let _turn = level::see(number + 1);
    ensure!(
        tangent::of(primal)?.is_none(),
        runtime,
        "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {number} is not supported."
    );
    ensure!(
        tangent::of(tangent)?.is_none(),
        runtime,
        "Setting a forward grad that itself has a forward gradient at the same level {number} is not supported."
    );
    level::get(number)?;
    ensure!(
        primal.dtype().is_differentiable() && tangent.dtype().is_differentiable(),
        runtime,
        "Expected both tensor and its forward grad to be floating point or complex"
    );
    let dual = alias(primal)?;
    // (In one memory with the value, the tangent would change with each write to the value.)
    let is_shared = shares_memory(primal, tangent) && primal.shape() == tangent.shape();
    tangent::set(&dual, if is_shared { copied(tangent)? } else { tangent.clone() })?;
    Ok(dual)
}

/// A copy of a tangent, with its history.
fn copied(tangent: &Tensor) -> Result<Tensor> {
    let _below = level::below();
    arithmetic::clone(tangent)
}

/// The tangents for these primals, copied where one lies in the memory of a primal or of another tangent: a write to
/// a primal changes that primal and its tangent, and no other tangent. (Tangents that lie together as their primals do stay so.)
///
/// # Errors
/// Out of memory.
pub fn apart(primals: &[&Tensor], tangents: &[Option<&Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let place = |tensor: &Tensor| tensor.geometry().storage.as_ref().map(Storage::id);
    let mut of_primals = HashSet::new();
    for &primal in primals {
        of_primals.extend(place(primal));
    }
    // By the memory of a tangent, that of its primal.
    let mut seen = HashMap::new();
    let mut apart = memory::with_capacity(tangents.len())?;
    for (&primal, &tangent) in primals.iter().zip(tangents) {
        let Some(tangent) = tangent else {
            apart.push(None);
            continue;
        };
        let is_shared = place(tangent).is_some_and(|id| {
            let of_primal = place(primal);
            of_primals.contains(&id) || *seen.entry(id).or_insert(of_primal) != of_primal
        });
        apart.push(Some(if is_shared { arithmetic::clone(tangent)? } else { tangent.clone() }));
    }
    Ok(apart)
}

/// The value of a tensor without its tangent, and the tangent if it has one.
///
/// # Errors
/// Out of memory.
pub fn unpack_dual(dual: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    let _turn = tangent::turn_of(&[Arg::Tensor(dual)]);
    unpack(dual)
}

fn unpack(dual: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    Ok((alias(dual)?, tangent::of(dual)?))
}

/// As [`unpack_dual`] at the level `number`.
///
/// # Errors
/// As [`unpack_dual`], and `RuntimeError` for numbers that no level can have.
pub fn unpack_dual_at(dual: &Tensor, number: usize) -> Result<(Tensor, Option<Tensor>)> {
    level::check(number, "_fw_primal")?;
    let _turn = level::see(number + 1);
    unpack(dual)
}

impl Tensor {
    /// The tangent of the tensor, if a level of forward mode is open and the tensor has one.
    ///
    /// # Errors
    /// Out of memory.
    pub fn tangent(&self) -> Result<Option<Tensor>> {
        if !level::is_open() {
            return Ok(None);
        }
        let _turn = tangent::turn_of(&[Arg::Tensor(self)]);
        tangent::of(self)
    }
}

/// Another handle to the value, through which gradients flow but tangents do not.
fn alias(tensor: &Tensor) -> Result<Tensor> {
    let _below = level::below();
    let alias = arithmetic::alias(tensor)?;
    alias.set_flag(Flag::OWN_TANGENT, true);
    Ok(alias)
}

/// The layer: pushes tangents forward beside the call, if an argument has one that this thread sees. The values are computed
/// with the levels further out only, whose tangents pass this layer again.
#[inline(never)]
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    if matches!(call.form, Form::Out(_)) || !tangent::concerns(call.args) {
        return call.next();
    }
    let _turn = tangent::turn_of(call.args);
    let def = call.def;
    match (call.form, &def.kernels.cpu) {
        // Each part of a composite pushes its own tangents forward.
        (_, Kernel::Composite(_)) => call.next(),
        (Form::Inplace, _) => write(call).map(IntoOutputs::into_outputs),
        _ if def.is(Traits::NOT_DIFFERENTIABLE) => values(call),
        _ => with_tensors(def, call.args, |args| push(&call.with_args(args))),
    }
}

/// The results of the call without the tangents of the innermost level.
fn values(call: &Call<'_>) -> Result<Outputs> {
    let _below = level::below();
    layer(call)
}

/// The functional form of a call, with tangents.
fn push(call: &Call<'_>) -> Result<Outputs> {
    let push = Pushforward::of(call.def, call.args)?;
    let outputs = values(call)?;
    let tensors = outputs.as_slice();
    let tangents = push.run(tensors)?;
    // (All tangents are computed before the first is set, because rules read results without tangents.)
    for (output, tangent) in tensors.iter().zip(tangents) {
        if let Some(tangent) = tangent {
            tangent::set(output, tangent)?;
        }
    }
    save_outputs(call.def, tensors)?;
    Ok(outputs)
}

/// The form of a call that writes into its first argument, with tangents.
fn write(call: &Call<'_>) -> Result<Tensor> {
    with_tensors(call.def, call.args, |args| {
        let call = call.with_args(args);
        let target = receiver(args);
        let old = tangent::of(target)?;
        if call.def.is(Traits::VIEW) {
            return change_view(&call, old);
        }
        let push = Pushforward::before_write(call.def, args)?;
        if let Some(old) = &old {
            // Checked before anything is written.
            check_inplace(old, push.requires_grad())?;
        }
        values(&call)?;
        if !target.dtype().is_differentiable() {
            return Ok(target.clone());
        }
        let tangent = push.run(std::slice::from_ref(target))?.into_iter().next().flatten();
        match (old, tangent) {
            (None, None) => {}
            (Some(old), None) => {
                let _below = level::below();
                arithmetic::zero_in_place(&old)?;
            }
            (Some(old), Some(new)) if old.is_same(&new) => {}
            (Some(old), Some(new)) if batch::holds(&old, &new) => tangent::copy(&old, &new)?,
            (_, Some(new)) => set_after_write(target, new)?,
        }
        save_outputs(call.def, std::slice::from_ref(target))?;
        Ok(target.clone())
    })
}

/// The in-place form of an op that changes its target's sizes or strides: changes a handle to the tangent's memory in the same
/// way.
fn change_view(call: &Call<'_>, tangent: Option<Tensor>) -> Result<Tensor> {
    let below = level::below();
    layer(call)?;
    let written = receiver(call.args).clone();
    let Some(tangent) = tangent else { return Ok(written) };
    let changed = {
        // (Recorded, or the tangent could not be written to where grad mode is on again.)
        let _grad = mode::enable_grad();
        arithmetic::alias(&tangent)?
    };
    {
        let mut with_tangent: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(call.args);
        with_tangent[0] = Arg::Tensor(&changed);
        call_inplace(call.def, &with_tangent)?;
    }
    drop(below);
    tangent::replace(&written, changed);
    Ok(written)
}

/// Saves the outputs of the op's node again: they were saved before they had tangents.
fn save_outputs(def: &'static OpDef, outputs: &[Tensor]) -> Result<()> {
    for (slot, save) in def.saves.iter().enumerate() {
        if save.what != SaveKind::Output {
            continue;
        }
        let output = &outputs[save.index];
        if output.has_flag(Flag::HAS_GRAD_FN)
            && let Some(node) = output.grad_fn()?
        {
            node.share_tangent(slot, output)?;
        }
    }
    Ok(())
}

/// Refuses to change the sizes of a tensor that has a tangent.
pub(crate) fn check_resize(tensor: &Tensor) -> Result<()> {
    let is_dual = level::is_open() && tangent::is_dual(tensor);
    ensure!(!is_dual, runtime, "cannot resize variables that has a forward grad");
    Ok(())
}

/// Refuses an op without derivative for tensors that have tangents.
pub(crate) fn check_unsupported(name: &str, tensors: &[&Tensor]) -> Result<()> {
    if level::is_open() && tangent::is_enabled() && tensors.iter().any(|t| tangent::is_dual(t)) {
        return Err(pushforward::not_implemented(name));
    }
    Ok(())
}
