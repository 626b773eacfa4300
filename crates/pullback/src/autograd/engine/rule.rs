//! Running the gradient rules of an op.

use crate::autograd::graph::node::{Node, SavedValue};
use crate::dispatch::{Arg, ArgKind, Facts, Grads, OpDef, RuleCtx, Value, VjpRule};
use crate::{Error, Result};
use smallvec::SmallVec;

/// Runs the gradient rules of an op: one gradient per edge.
pub(super) fn apply(
    node: &Node,
    def: &'static OpDef,
    (slots, facts): (&[SavedValue], Facts),
    grads: &Grads,
    wanted: &dyn Fn(usize) -> bool,
) -> Result<Grads> {
    let count = |index: usize| match def.args[index].kind {
        ArgKind::Tensors | ArgKind::OptTensors => facts.list_len(),
        _ => 1,
    };
    // Each argument with a rule has consecutive edges; `first` is where they start.
    let mut first: SmallVec<[u16; 8]> = SmallVec::new();
    let (mut needs, mut total) = (0_u64, 0_usize);
    for (index, info) in def.args.iter().enumerate() {
        first.push(total as u16);
        if info.has_vjp {
            let edges = total..total + count(index);
            total = edges.end;
            if edges.into_iter().any(wanted) {
                needs |= 1 << index;
            }
        }
    }
    let mut out = Grads::new();
    out.resize_with(total, || None);
    let defined =
        grads.iter().enumerate().fold(0_u64, |m, (i, g)| m | (u64::from(g.is_some()) << i.min(63)));
    let runs = |rule: &&VjpRule| rule.args & needs != 0 && rule.grads & defined != 0;
    if !def.vjp.iter().any(|rule| runs(&rule)) {
        return Ok(out);
    }
    let tensors: SmallVec<[Value; 4]> =
        slots.iter().map(|slot| slot.unpack(node)).collect::<Result<_>>()?;
    let saved: SmallVec<[Arg<'_>; 4]> = slots
        .iter()
        .zip(&tensors)
        .map(|(slot, tensor)| match slot {
            SavedValue::Plain(value) => value.as_arg(),
            SavedValue::Sizes(sizes) => Arg::Ints(sizes),
            _ => tensor.as_arg(),
        })
        .collect();
    let ctx = RuleCtx { grads, saved: &saved, facts, needs, tangents: &[] };
    for rule in def.vjp.iter().filter(runs) {
        let mut given = (rule.call)(&ctx)?.into_iter();
        for index in (0..def.args.len()).filter(|i| rule.args & (1 << i) != 0) {
            let start = first[index] as usize;
            for edge in start..start + count(index) {
                let Some(grad) = given.next() else { return Err(too_few(def)) };
                if wanted(edge) {
                    out[edge] = grad;
                }
            }
        }
    }
    Ok(out)
}

#[cold]
fn too_few(def: &OpDef) -> Error {
    Error::runtime(format!(
        "a rule of {} gave too few gradients: this is a bug in pullback",
        def.name
    ))
}
