//! The positions of an item, its kernels and its rules in the source, which introspection shows.

use crate::item::{ItemFunction, Op, Word};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

/// The functions and words that are no kernels or rules.
const OTHERS: [&str; 4] = ["samples", "invalid_samples", "unchanged", "flops"];
/// The words that are kernels or rules, or stand for such.
const RULES: [&str; 9] =
    ["cpu", "copy_of", "sparse", "meta", "jvp", "batch", "autocast", "view", "multi_view"];

/// The `OpSource` of an op.
pub(crate) fn source(op: &Op<'_>) -> TokenStream {
    let functions = op.functions.iter().filter(|f| !OTHERS.iter().any(|name| f.ident == name));
    let functions = functions.map(|f| part(&f.ident.to_string(), &signature(f), f.ident.span()));
    let words = op.words.iter().filter(|word| RULES.contains(&word.name.as_str()));
    let words = words.map(|word| part(&word.name, &spelled(word), word.span));
    let parts = functions.chain(words);
    let place = quote_spanned!(op.name.span()=> file: file!(), line: line!());
    quote!(::pullback::dispatch::OpSource { #place, parts: &[#(#parts),*] })
}

fn part(name: &str, text: &str, span: Span) -> TokenStream {
    quote_spanned!(span=> ::pullback::dispatch::Part { name: #name, text: #text, line: line!() })
}

/// The signature of a function without types, as in `fn vjp_self(grad, other)`.
fn signature(f: &ItemFunction<'_>) -> String {
    let names: Vec<String> = f.params.iter().map(|(name, _)| name.to_string()).collect();
    format!("fn {}({})", f.ident, names.join(", "))
}

/// The text of a word as it is written, as in `batch = mm(self, mat2)`.
fn spelled(word: &Word) -> String {
    let Some(value) = &word.value else { return word.name.clone() };
    let value = value.to_string();
    let close = [(" (", "("), ("( ", "("), (" )", ")"), (" ,", ","), (" :: ", "::"), ("& ", "&")];
    let value = close.iter().fold(value, |text, (from, to)| text.replace(from, to));
    format!("{} = {value}", word.name)
}
