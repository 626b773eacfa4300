//! Forward mode of custom functions: what becomes of the tangents that a user's `jvp` gives.
//!
//! The user's forward ran without forward mode, so that views and writes in it left tangents as they were: `jvp` must do
//! to tangents what forward did to values, and here it is checked that it did. Start at [`push`]; `custom` is the same
//! for history.

use super::custom::CustomCall;
use crate::autograd::forward::written::set_after_write;
use crate::autograd::mode;
use crate::autograd::thread::level;
use crate::autograd::variable::tangent;
use crate::dispatch::Arg;
use crate::error::{bail, ensure};
use crate::{Result, Tensor};

/// The tangents of a call's inputs.
pub struct InputTangents {
    tangents: Vec<Option<Tensor>>,
    /// The versions that the tangents had before `jvp`.
    versions: Vec<u32>,
    /// The number of levels that are seen where the level of these tangents is the innermost.
    count: usize,
}

impl InputTangents {
    /// The tangents of the inputs; `None` if no input has one, or this thread computes none.
    ///
    /// # Errors
    /// Out of memory.
    #[inline]
    pub fn of(inputs: &[Tensor]) -> Result<Option<Self>> {
        if level::is_open() { Self::find(inputs) } else { Ok(None) }
    }

    #[cold]
    fn find(inputs: &[Tensor]) -> Result<Option<Self>> {
        let args: Vec<Arg<'_>> = inputs.iter().map(Arg::Tensor).collect();
        let _turn = tangent::turn_of(&args);
        let count = level::seen();
        {
            let _below = level::below();
            ensure!(
                !tangent::concerns(&args),
                not_implemented,
                "custom functions are not differentiated by nested levels of forward mode yet"
            );
        }
        let tangents: Vec<_> = inputs.iter().map(tangent::of).collect::<Result<_>>()?;
        let version = |t: &Option<Tensor>| t.as_ref().map_or(0, Tensor::version);
        let versions = tangents.iter().map(version).collect();
        let is_any = tangents.iter().any(Option::is_some);
        Ok(is_any.then_some(InputTangents { tangents, versions, count }))
    }

    /// The tangents that `jvp` is given: zeros in place of missing ones, if the function requests
    /// that, where the input is differentiable.
    fn given(&self, inputs: &[Tensor], materialize: bool) -> Result<Vec<Option<Tensor>>> {
        let one = |(tangent, input): (&Option<Tensor>, &Tensor)| match tangent {
            None if materialize && input.dtype().is_differentiable() => {
                tangent::zeros_like(input, input.dtype()).map(Some)
            }
            known => Ok(known.clone()),
        };
        self.tangents.iter().zip(inputs).map(one).collect()
    }
}

/// Gives the results of a call the tangents that `jvp` computes from those of its inputs.
///
/// # Errors
/// Those of `jvp`; `RuntimeError` for a wrong number of tangents, tangents of outputs without derivative, and where
/// forward wrote to an input or gave a view but `jvp` did not do the same.
pub fn push(
    call: &CustomCall<'_>,
    known: &InputTangents,
    raw: &[Option<Tensor>],
    results: &[Option<Tensor>],
    materialize: bool,
    jvp: impl FnOnce(Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>>,
) -> Result<()> {
    let _turn = level::see(known.count);
    let tangents = {
        let _plain = mode::set_forward(false);
        jvp(known.given(call.inputs, materialize)?)?
    };
    ensure!(
        tangents.len() == raw.len(),
        runtime,
        "Function's jvp returned an invalid number of forward gradients (expected {} but got {})",
        raw.len(),
        tangents.len()
    );
    for (index, tangent) in tangents.into_iter().enumerate() {
        let (Some(raw), Some(result)) = (&raw[index], &results[index]) else { continue };
        if !raw.dtype().is_differentiable() || has(call.non_differentiable, raw) {
            ensure!(
                tangent.is_none(),
                runtime,
                "Function's jvp returned a gradient at position {index}, but the corresponding forward output is not a differentiable Tensor. You should return None at that position instead."
            );
            continue;
        }
        if has(call.dirty, raw) {
            write(call, known, raw, tangent)?;
        } else if let Some(tangent) = tangent {
            let seen_as_write = check_view(call, known, result, &tangent)?;
            if seen_as_write {
                set_after_write(result, tangent)?;
            } else {
                tangent::set(result, tangent)?;
            }
        }
    }
    Ok(())
}

fn has(list: &[Tensor], tensor: &Tensor) -> bool {
    list.iter().any(|t| t.is_same(tensor))
}

/// Sets the tangent of an input that forward wrote to: `jvp` wrote to it as well, or returned a new
/// one.
fn write(
    call: &CustomCall<'_>,
    known: &InputTangents,
    input: &Tensor,
    tangent: Option<Tensor>,
) -> Result<()> {
    let Some(at) = call.inputs.iter().position(|t| t.is_same(input)) else {
        bail!(
            runtime,
            "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it to mark_dirty()."
        );
    };
    let Some(old) = &known.tangents[at] else {
        return tangent.map_or(Ok(()), |tangent| set_after_write(input, tangent));
    };
    ensure!(
        old.version() != known.versions[at],
        runtime,
        "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
    );
    ensure!(
        tangent.is_some_and(|tangent| tangent.is_same(old)),
        runtime,
        "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input inplace, then the jvp function must modify the gradient inplace and return it as-is."
    );
    Ok(())
}

/// Checks that where the result is a view of an input, its tangent is the same of the input's.
/// Returns whether the tangent counts as written through that view, because the input had none.
fn check_view(
    call: &CustomCall<'_>,
    known: &InputTangents,
    result: &Tensor,
    tangent: &Tensor,
) -> Result<bool> {
    let Some(base) = tangent::forward_base(result) else { return Ok(false) };
    let root = |t: &Tensor| tangent::forward_base(t).unwrap_or_else(|| t.clone());
    let Some(at) = call.inputs.iter().position(|input| root(input).is_same(&base)) else {
        return Ok(false);
    };
    let Some(of_input) = &known.tangents[at] else { return Ok(true) };
    let Some(shown) = tangent::forward_base(tangent) else {
        bail!(
            runtime,
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        );
    };
    if let Some(base) = tangent::forward_base(of_input) {
        ensure!(
            base.is_same(&shown),
            runtime,
            "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad input."
        );
    } else {
        ensure!(
            of_input.is_same(&shown),
            runtime,
            "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
        );
    }
    Ok(false)
}
