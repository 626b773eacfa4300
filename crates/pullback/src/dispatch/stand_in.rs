//! Calls with other tensors in place of some arguments, which a kernel cannot take as they are.
//!
//! Invariant: one tensor has one stand-in, so that arguments that were the same tensor still are.

use super::{Arg, Call, OpDef, each_tensor};
use crate::{Result, Tensor};
use pullback_schema::Argument;
use smallvec::SmallVec;

/// The stand-ins of a call's tensors.
pub(super) struct StandIns<'a> {
    of: SmallVec<[(&'a Tensor, Tensor); 2]>,
    /// The lists among the arguments, where a tensor in them has a stand-in.
    lists: Vec<Option<Vec<Tensor>>>,
    opt_lists: Vec<Option<Vec<Option<Tensor>>>>,
}

impl<'a> StandIns<'a> {
    /// The stand-ins that `make` returns for each argument and target of which `is_due` holds.
    pub(super) fn of(
        call: &Call<'a>,
        is_due: fn(&Tensor) -> bool,
        make: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<StandIns<'a>> {
        let mut due: SmallVec<[&Tensor; 2]> = SmallVec::new();
        let mut note = |tensor: &'a Tensor| {
            if is_due(tensor) && !due.iter().any(|other| other.is_same(tensor)) {
                due.push(tensor);
            }
        };
        call.each_tensor(&mut note);
        let of =
            due.into_iter().map(|tensor| Ok((tensor, make(tensor)?))).collect::<Result<_>>()?;
        let mut stand_ins = StandIns { of, lists: Vec::new(), opt_lists: Vec::new() };
        for arg in call.args {
            match arg {
                Arg::Tensors(list) => {
                    let replaced = list.iter().map(|t| stand_ins.get(t).clone()).collect();
                    let is_any = list.iter().any(is_due);
                    stand_ins.lists.push(is_any.then_some(replaced));
                }
                Arg::OptTensors(list) => {
                    let replaced =
                        |t: &Option<Tensor>| t.as_ref().map(|t| stand_ins.get(t).clone());
                    let replaced = list.iter().map(replaced).collect();
                    let is_any = list.iter().flatten().any(is_due);
                    stand_ins.opt_lists.push(is_any.then_some(replaced));
                }
                _ => {}
            }
        }
        Ok(stand_ins)
    }

    /// The stand-in of a tensor, if it has one.
    pub(super) fn found(&self, tensor: &Tensor) -> Option<&Tensor> {
        self.of.iter().find(|(of, _)| of.is_same(tensor)).map(|(_, found)| found)
    }

    /// The stand-in of a tensor, or the tensor itself if it has none.
    pub(super) fn get<'b>(&'b self, tensor: &'b Tensor) -> &'b Tensor {
        self.found(tensor).unwrap_or(tensor)
    }

    /// Tensors with their stand-ins.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a Tensor, &Tensor)> {
        self.of.iter().map(|(of, found)| (*of, found))
    }

    /// The arguments with the stand-ins in them.
    pub(super) fn args<'b>(&'b self, args: &[Arg<'b>]) -> SmallVec<[Arg<'b>; 8]> {
        let (mut lists, mut opt_lists) = (self.lists.iter(), self.opt_lists.iter());
        let replaced = |arg: &Arg<'b>| match arg {
            Arg::Tensor(tensor) => Arg::Tensor(self.get(tensor)),
            Arg::Tensors(list) => {
                let replaced = lists.next().and_then(Option::as_ref);
                Arg::Tensors(replaced.map_or(list, |replaced| replaced))
            }
            Arg::OptTensors(list) => {
                let replaced = opt_lists.next().and_then(Option::as_ref);
                Arg::OptTensors(replaced.map_or(list, |replaced| replaced))
            }
            other => *other,
        };
        args.iter().map(replaced).collect()
    }
}

/// The arguments that an op writes to, as its signature says.
pub(super) fn written<'a>(def: &'static OpDef, args: &[Arg<'a>]) -> SmallVec<[&'a Tensor; 2]> {
    let is_written = |info: &Argument| info.alias.as_ref().is_some_and(|alias| alias.is_write);
    let mut found = SmallVec::new();
    for (arg, _) in args.iter().zip(&def.schema().args).filter(|(_, info)| is_written(info)) {
        each_tensor(&[*arg], |tensor| found.push(tensor));
    }
    found
}
