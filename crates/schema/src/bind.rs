//! Binds the arguments of a Python call to the overloads of a function.
//!
//! The rules and the error texts of PyTorch's argument parser, free of Python objects: what a call
//! gives is seen through [`Given`], and the result says which value goes to which parameter.
//! The first overload that binds wins; with one overload, or one of fitting length, the error
//! names the argument at fault, else it lists what would be accepted (`mismatch.rs`).
//! Invariant: a [`Bound`] has exactly one slot per parameter of its overload.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use crate::python::{Parameter, Signature, type_name};

mod mismatch;

/// A value given in a call.
pub trait Given {
    /// The name of the value's type as the interpreter has it: `str`, `Tensor`, `torch.dtype`.
    fn type_name(&self) -> Cow<'_, str>;

    /// Whether the value is `None`.
    fn is_none(&self) -> bool;

    /// Whether the value can be one element of a list of ints.
    fn is_int(&self) -> bool;

    /// Whether `parameter` accepts the value; where `numbers` is set, a number will do for a
    /// tensor.
    fn check(&self, parameter: &Parameter, numbers: bool) -> Check;

    /// The types of the elements if the value is a tuple or a list; asked for messages only.
    fn elements(&self) -> Option<Elements>;
}

/// Whether a value suits a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The value suits.
    Accepted,
    /// The value does not suit.
    Refused,
    /// The value is a list whose element at this position does not suit.
    RefusedElement {
        /// The position in the list.
        position: usize,
        /// The element's type.
        type_name: String,
    },
    /// The value is a list of tensors with another element in it, which no overload accepts.
    NotTensor {
        /// The position in the list.
        position: usize,
        /// The element's type.
        type_name: String,
    },
}

/// The element types of a tuple or list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Whether it is a tuple.
    pub is_tuple: bool,
    /// The names of the elements' types.
    pub type_names: Vec<String>,
}

/// Where the value of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Not given, or `None` where that means the default.
    Absent,
    /// The positional argument at this position.
    Positional(usize),
    /// The keyword argument at this position.
    Keyword(usize),
    /// All positional arguments together, as in `view(2, 3)`.
    Varargs,
}

/// A call bound to an overload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The position of the overload.
    pub overload: usize,
    /// The origin of each parameter's value.
    pub slots: Vec<Slot>,
}

/// Why no overload binds: the message of a `TypeError`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError(pub String);

impl Display for BindError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BindError {}

type Result<T> = std::result::Result<T, BindError>;

/// What a call gives: the values by position, without `self` for a method, and those by keyword.
#[derive(Debug)]
pub struct GivenCall<'a, G> {
    /// The values by position.
    pub args: &'a [G],
    /// The values by keyword, in the order given.
    pub keywords: &'a [(&'a str, G)],
}

/// Binds `call` to the first of `overloads` that takes it; they must be in the order of
/// [`sort_signatures`](crate::python::sort_signatures).
///
/// # Errors
/// The message says which argument is at fault, or which signatures would be accepted.
pub fn bind<G: Given>(overloads: &[Signature], call: &GivenCall<'_, G>) -> Result<Bound> {
    let mut slots = Vec::new();
    let overload = bind_into(overloads, call, &mut slots)?;
    Ok(Bound { overload, slots })
}

/// As [`bind`], but writes the slots over those in `slots`, so that calls can share one buffer,
/// and gives the position of the overload.
///
/// # Errors
/// As [`bind`]; `slots` then holds nothing of use.
pub fn bind_into<G: Given>(
    overloads: &[Signature],
    call: &GivenCall<'_, G>,
    slots: &mut Vec<Slot>,
) -> Result<usize> {
    for (overload, signature) in overloads.iter().enumerate() {
        match (Binder { signature, call }).bind(slots)? {
            Ok(()) => return Ok(overload),
            Err(mismatch) if overloads.len() == 1 => {
                return Err(BindError(mismatch.message(signature, call)));
            }
            Err(_) => {}
        }
    }
    Err(no_overload(overloads, call))
}

/// The message where element `position` of the int list given for `parameter` turns out not to be
/// an int only when the list is converted, because binding looks at the first element only.
pub fn unpack_error(
    function: &str,
    parameter: &Parameter,
    position: usize,
    type_name_given: &str,
) -> String {
    let (name, ty) = (&parameter.name, type_name(parameter.ty));
    format!(
        "{function}(): argument '{name}' failed to unpack the object at pos {} with error \
         \"type must be {ty},but got {type_name_given}\"",
        position + 1
    )
}

/// If the number of values given points at one overload, its own error, else the list of all.
fn no_overload<G: Given>(overloads: &[Signature], call: &GivenCall<'_, G>) -> BindError {
    let given = call.args.len() + call.keywords.len();
    let visible: Vec<&Signature> = overloads.iter().filter(|overload| !overload.hidden).collect();
    let fits = |s: &&&Signature| s.min_given() <= given && given <= s.parameters.len();
    let plausible: Vec<&&Signature> = visible.iter().filter(fits).collect();
    if let [only] = plausible.as_slice() {
        match (Binder { signature: only, call }).bind(&mut Vec::new()) {
            Ok(Err(mismatch)) => return BindError(mismatch.message(only, call)),
            Err(error) => return error,
            Ok(Ok(())) => {}
        }
    }
    BindError(mismatch::invalid_combination(&visible, call))
}

/// Why one overload does not bind.
#[derive(Debug)]
enum ArgMismatch {
    TooManyArguments,
    Missing { first: usize },
    Keyword,
    Type { parameter: usize, given: Slot, check: Check },
}

struct Binder<'a, G> {
    signature: &'a Signature,
    call: &'a GivenCall<'a, G>,
}

impl<G: Given> Binder<'_, G> {
    /// Binds the call to this one overload. The outer error is final, the inner one lets the next
    /// overload try.
    fn bind(&self, slots: &mut Vec<Slot>) -> Result<std::result::Result<(), ArgMismatch>> {
        let (signature, call) = (self.signature, self.call);
        let spreads = signature.takes_varargs() && call.args.first().is_some_and(Given::is_int);
        if call.args.len() > signature.max_positional() && !spreads {
            return Ok(Err(ArgMismatch::TooManyArguments));
        }
        slots.clear();
        let mut used_keywords = 0;
        for (index, parameter) in signature.parameters.iter().enumerate() {
            let slot = match self.find(index, parameter) {
                None if parameter.default.is_some() => Slot::Absent,
                None => return Ok(Err(ArgMismatch::Missing { first: index })),
                Some(slot) => {
                    used_keywords += usize::from(matches!(slot, Slot::Keyword(_)));
                    match self.accept(index, parameter, slot, spreads)? {
                        Ok(slot) => slot,
                        Err(mismatch) => return Ok(Err(mismatch)),
                    }
                }
            };
            slots.push(slot);
        }
        let all_used = used_keywords == call.keywords.len();
        Ok(if all_used { Ok(()) } else { Err(ArgMismatch::Keyword) })
    }

    /// The value given for a parameter: by position, else by its own name, else by `NumPy`'s.
    fn find(&self, index: usize, parameter: &Parameter) -> Option<Slot> {
        if index < self.call.args.len() && !parameter.keyword_only {
            return Some(Slot::Positional(index));
        }
        if self.call.keywords.is_empty() {
            return None;
        }
        let names =
            std::iter::once(parameter.name.as_str()).chain(parameter.numpy_names().iter().copied());
        let mut found =
            names.filter_map(|name| self.call.keywords.iter().position(|(k, _)| *k == name));
        found.next().map(Slot::Keyword)
    }

    /// Checks a found value; the slot it goes to, or why it does not suit.
    fn accept(
        &self,
        index: usize,
        parameter: &Parameter,
        slot: Slot,
        spreads: bool,
    ) -> Result<std::result::Result<Slot, ArgMismatch>> {
        let Some(value) = value_at(self.call, slot) else { return Ok(Ok(Slot::Absent)) };
        if value.is_none() && parameter.allows_none() {
            return Ok(Ok(Slot::Absent));
        }
        if spreads && index == 0 && self.call.args.len() > 1 {
            return Ok(Ok(Slot::Varargs));
        }
        match value.check(parameter, self.signature.accepts_numbers()) {
            Check::Accepted => Ok(Ok(slot)),
            Check::NotTensor { position, type_name } => Err(BindError(format!(
                "expected Tensor as element {position} in argument {index}, but got {type_name}"
            ))),
            _ if spreads && index == 0 && matches!(slot, Slot::Positional(_)) => {
                Ok(Ok(Slot::Varargs))
            }
            check => Ok(Err(ArgMismatch::Type { parameter: index, given: slot, check })),
        }
    }
}

fn value_at<'a, G>(call: &GivenCall<'a, G>, slot: Slot) -> Option<&'a G> {
    match slot {
        Slot::Positional(index) => call.args.get(index),
        Slot::Keyword(index) => call.keywords.get(index).map(|(_, value)| value),
        Slot::Absent | Slot::Varargs => None,
    }
}
