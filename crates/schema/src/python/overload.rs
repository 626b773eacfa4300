//! The order in which overloads are tried.
//!
//! First alphabetical by PyTorch's parser text, then topological: an overload that is less
//! specific than another one of the same length comes after it, because the first that binds wins
//! (a number would otherwise shadow a tensor, a list of ints an int).

use crate::{Base, Default, Schema, Type};

use super::{Parameter, PythonForm, Signature, ValueSource, default_text};

/// The order in which the overloads of one function are tried, as positions in `schemas`.
pub fn sort_overloads(schemas: &[Schema]) -> Vec<usize> {
    let signature = |schema: &Schema| Signature::new(schema, None, PythonForm::Function);
    sort_signatures(&schemas.iter().map(signature).collect::<Vec<_>>())
}

/// The order in which `signatures` are tried, as positions; hidden ones come last.
pub fn sort_signatures(signatures: &[Signature]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..signatures.len()).collect();
    order.sort_by_cached_key(|&index| (signatures[index].hidden, parser_text(&signatures[index])));
    let mut waiting: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut sorted = Vec::with_capacity(order.len());
    for &index in &order {
        let less = |&other: &usize| is_less_specific(&signatures[index], &signatures[other]);
        let before: Vec<usize> = order.iter().copied().filter(less).collect();
        if before.is_empty() { sorted.push(index) } else { waiting.push((index, before)) }
    }
    let mut next = 0;
    while next < sorted.len() {
        let placed = sorted[next];
        for (_, before) in &mut waiting {
            before.retain(|&index| index != placed);
        }
        waiting.retain(|(index, before)| {
            sorted.extend(before.is_empty().then_some(*index));
            !before.is_empty()
        });
        next += 1;
    }
    let (mut visible, hidden): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|&index| !signatures[index].hidden);
    visible.extend(hidden);
    visible
}

/// Whether `one` accepts all that `other` accepts, parameter by parameter, and some more.
fn is_less_specific(one: &Signature, other: &Signature) -> bool {
    let inputs = |signature: &'_ Signature| -> Vec<Type> {
        let is_input = |parameter: &&Parameter| parameter.source != ValueSource::Out;
        signature.parameters.iter().filter(is_input).map(|parameter| parameter.ty).collect()
    };
    let (one, other) = (inputs(one), inputs(other));
    let covers = |(a, b): (&Type, &Type)| a == b || is_less_specific_type(*a, *b);
    one.len() == other.len() && one != other && one.iter().zip(&other).all(covers)
}

fn is_less_specific_type(one: Type, other: Type) -> bool {
    // A sized list is not the plain list of the rule, as the rule compares the types as written.
    let is_plain_list = |ty: Type| ty.list.is_some_and(|list| list.size.is_none()) && !ty.optional;
    let is_single = |ty: Type, base: Base| ty.list.is_none() && ty.base == base;
    let is_list_of = |ty: Type, base: Base| is_plain_list(ty) && ty.base == base;
    let is_plain = |ty: Type| ty.list.is_none() && !ty.optional;
    if is_single(one, Base::Scalar) && is_single(other, Base::Tensor) {
        return one.optional == other.optional;
    }
    if is_plain(one) && matches!(one.base, Base::Int | Base::SymInt) {
        return is_plain(other) && other.base == Base::Tensor;
    }
    if is_list_of(one, Base::Tensor) {
        return one != other && other.list.is_some_and(|list| list.size.is_none());
    }
    (is_list_of(one, Base::Int) && is_single(other, Base::Int))
        || (is_list_of(one, Base::SymInt) && is_list_of(other, Base::Int))
}

/// The text that PyTorch's parser reads, in the type names of its own sources: only its
/// alphabetical order matters here.
fn parser_text(signature: &Signature) -> String {
    let piece = |parameter: &Parameter| {
        let text = format!("{} {}", parser_type(parameter.ty), parameter.name);
        match &parameter.default {
            Some(Default::None) => text + "=None",
            Some(default) => format!("{text}={}", default_text(default)),
            None => text,
        }
    };
    let mut pieces: Vec<String> = signature.parameters.iter().map(piece).collect();
    let positional = signature.max_positional();
    if positional < pieces.len() {
        pieces.insert(positional, "*".to_owned());
    }
    format!("{}({})", signature.name, pieces.join(", "))
}

fn parser_type(ty: Type) -> String {
    let optional = if ty.optional { "?" } else { "" };
    let Some(list) = ty.list else {
        let name = match ty.base {
            Base::Int => "int64_t",
            Base::Float => "double",
            Base::Str => "c10::string_view",
            base => base.name(),
        };
        return format!("{name}{optional}");
    };
    let size = list.size.map_or_else(String::new, |size| format!("[{size}]"));
    let name = match ty.base {
        Base::Tensor if list.element_optional => "c10::List<::std::optional<Tensor>>".to_owned(),
        Base::Tensor => format!("TensorList{size}"),
        Base::Int => format!("IntArrayRef{size}"),
        Base::SymInt => format!("SymIntArrayRef{size}"),
        Base::Scalar => format!("ScalarList{size}"),
        Base::Bool => format!("::std::array<bool,{}>", list.size.unwrap_or_default()),
        Base::Float => "ArrayRef<double>".to_owned(),
        base => format!("ArrayRef<{}>", base.name()),
    };
    format!("{name}{optional}")
}
