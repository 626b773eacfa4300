//! The texts of binding errors.
//!
//! They reproduce PyTorch's letter by letter, its oddities too, because programs match them: the
//! plural of "argument" is inverted for missing ones; a parameter with a default or of type
//! `Number` or `tuple of …` is never seen as matching when types are marked; the bare `*` counts
//! as a parameter when lengths are compared; without a positional value a comma trails.

use std::fmt::Write;

use super::{ArgMismatch, Check, Given, GivenCall, Slot, value_at};
use crate::python::{Signature, type_name};

impl ArgMismatch {
    /// The message of the error for the one overload that was meant.
    pub(super) fn message<G: Given>(
        &self,
        signature: &Signature,
        call: &GivenCall<'_, G>,
    ) -> String {
        match self {
            ArgMismatch::TooManyArguments => too_many(signature, call.args.len()),
            ArgMismatch::Missing { first } => missing(signature, *first),
            ArgMismatch::Keyword => unused_keyword(signature, call),
            ArgMismatch::Type { parameter, given, check } => {
                wrong_type(signature, *parameter, *given, check, call)
            }
        }
    }
}

fn too_many(signature: &Signature, given: usize) -> String {
    let (name, most, least) = (&signature.name, signature.max_positional(), signature.min_given());
    if least != most {
        return format!(
            "{name}() takes from {least} to {most} positional arguments but {given} were given"
        );
    }
    let plural = if most == 1 { "" } else { "s" };
    let were = if given == 1 { "was" } else { "were" };
    format!("{name}() takes {most} positional argument{plural} but {given} {were} given")
}

fn missing(signature: &Signature, first: usize) -> String {
    let required = signature.parameters[first..].iter().filter(|p| p.default.is_none());
    let names: Vec<String> = required.map(|p| format!("\"{}\"", p.name)).collect();
    let plural = if names.len() == 1 { "s" } else { "" };
    format!(
        "{}() missing {} required positional argument{plural}: {}",
        signature.name,
        names.len(),
        names.join(", ")
    )
}

fn unused_keyword<G: Given>(signature: &Signature, call: &GivenCall<'_, G>) -> String {
    let name = &signature.name;
    for (keyword, _) in call.keywords {
        match signature.parameters.iter().position(|p| p.name == *keyword) {
            None => {
                let meant = suggestion(&[signature], call, keyword);
                return format!("{name}() got an unexpected keyword argument '{keyword}'{meant}");
            }
            Some(index) if index < call.args.len() => {
                return format!("{name}() got multiple values for argument '{keyword}'");
            }
            Some(_) => {}
        }
    }
    format!("{name}() got invalid keyword arguments")
}

fn wrong_type<G: Given>(
    signature: &Signature,
    index: usize,
    given: Slot,
    check: &Check,
    call: &GivenCall<'_, G>,
) -> String {
    let parameter = &signature.parameters[index];
    let (function, name) = (&signature.name, &parameter.name);
    let expected = type_name(parameter.ty);
    let found = value_at(call, given).map_or_else(String::new, |v| v.type_name().into_owned());
    let Slot::Positional(position) = given else {
        return format!("{function}(): argument '{name}' must be {expected}, not {found}");
    };
    let start =
        format!("{function}(): argument '{name}' (position {}) must be {expected}", position + 1);
    match check {
        Check::RefusedElement { position, type_name } => {
            format!("{start}, but found element of type {type_name} at pos {position}")
        }
        _ => format!("{start}, not {found}"),
    }
}

/// The message that says what was given and lists what would be accepted.
pub(super) fn invalid_combination<G: Given>(
    overloads: &[&Signature],
    call: &GivenCall<'_, G>,
) -> String {
    let name = overloads.first().map_or("", |overload| overload.name.as_str());
    let mut text = format!("{name}() received an invalid combination of arguments - got ");
    if let [only] = overloads {
        let unknown = unknown_keywords(&only.parts(), call);
        if !unknown.is_empty() {
            text = text + "unrecognized keyword arguments: " + &unknown.join(", ");
            for keyword in unknown {
                text.push_str(&suggestion(overloads, call, keyword));
            }
            return text;
        }
        text.push_str(&if fits(only, call) { marked(only, call) } else { described(call) });
        let _ = write!(text, ", but expected {only}");
        return text;
    }
    let _ = writeln!(text, "{}, but expected one of:", described(call));
    for overload in overloads {
        let _ = writeln!(text, " * {overload}");
        if !fits(overload, call) {
            continue;
        }
        let unknown = unknown_keywords(&overload.parts(), call);
        let _ = if unknown.is_empty() {
            let marked = marked(overload, call);
            writeln!(
                text,
                "      didn't match because some of the arguments have invalid types: {marked}"
            )
        } else {
            let unknown = unknown.join(", ");
            writeln!(
                text,
                "      didn't match because some of the keywords were incorrect: {unknown}"
            )
        };
    }
    let meant = call.keywords.iter().map(|(keyword, _)| suggestion(overloads, call, keyword));
    text + meant.collect::<String>().trim_start_matches("; ")
}

/// "; did you mean ...?" where a keyword that no overload has is one or two slips of the keyboard away from one that some
/// overload has and that is not given; else nothing. (PyTorch says no such thing: this stands behind its texts.)
fn suggestion<G>(overloads: &[&Signature], call: &GivenCall<'_, G>, keyword: &str) -> String {
    let parameters = || overloads.iter().flat_map(|overload| &overload.parameters);
    if parameters().any(|p| p.name == keyword || p.numpy_names().contains(&keyword)) {
        return String::new();
    }
    let is_given = |name: &str| call.keywords.iter().any(|(given, _)| *given == name);
    let names = parameters().map(|p| p.name.as_str()).filter(|name| !is_given(name));
    crate::similar::closest(keyword, names)
        .map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}

/// Whether as many values were given as the text of the overload has pieces.
fn fits<G>(overload: &Signature, call: &GivenCall<'_, G>) -> bool {
    overload.parts().len().max(1) == call.args.len() + call.keywords.len()
}

/// The keywords that name none of the last pieces, as many pieces as there are keywords.
fn unknown_keywords<'a, G>(pieces: &[String], call: &GivenCall<'a, G>) -> Vec<&'a str> {
    let last = &pieces[pieces.len().saturating_sub(call.keywords.len())..];
    let is_known = |keyword: &&str| last.iter().any(|piece| split_piece(piece).1 == *keyword);
    let keywords = call.keywords.iter().map(|(keyword, _)| *keyword);
    keywords.filter(|keyword| !is_known(keyword)).collect()
}

/// A piece cut at its last space: what is taken as its type, and what is taken as its name.
fn split_piece(piece: &str) -> (&str, &str) {
    piece.rsplit_once(' ').unwrap_or(("", piece))
}

/// The types of the values given, as in `(Tensor, str, dim=int)`.
fn described<G: Given>(call: &GivenCall<'_, G>) -> String {
    let by_position = call.args.iter().map(|value| value.type_name().into_owned());
    let by_keyword = call.keywords.iter().map(|(name, v)| format!("{name}={}", v.type_name()));
    in_parentheses(by_position.chain(by_keyword), call)
}

/// The types of the values given, those that do not match the overload between `!`.
fn marked<G: Given>(overload: &Signature, call: &GivenCall<'_, G>) -> String {
    let pieces = overload.parts();
    let positional = call.args.len();
    let given = pieces.iter().enumerate().filter_map(|(index, piece)| {
        let (expected, name) = split_piece(piece);
        let (value, label) = if index < positional {
            (&call.args[index], String::new())
        } else {
            let (_, value) = call.keywords.iter().find(|(keyword, _)| *keyword == name)?;
            (value, format!("{name}="))
        };
        let found = value.type_name();
        let matches = expected == found || (expected == "float" && found == "int");
        let mark = if matches { "" } else { "!" };
        Some(format!("{mark}{label}{}{mark}", described_deeply(value)))
    });
    in_parentheses(given, call)
}

/// The type of a value, with those of its elements if it is a tuple or a list.
fn described_deeply<G: Given>(value: &G) -> String {
    let name = value.type_name();
    let Some(elements) = value.elements() else { return name.into_owned() };
    let types = elements.type_names.join(", ");
    match (elements.is_tuple, elements.type_names.len()) {
        (true, 1) => format!("{name} of ({types},)"),
        (true, _) => format!("{name} of ({types})"),
        (false, _) => format!("{name} of [{types}]"),
    }
}

fn in_parentheses<G>(items: impl Iterator<Item = String>, call: &GivenCall<'_, G>) -> String {
    let text = items.collect::<Vec<_>>().join(", ");
    let has_trailing_comma = call.args.is_empty() && !call.keywords.is_empty();
    if has_trailing_comma { format!("({text}, )") } else { format!("({text})") }
}
