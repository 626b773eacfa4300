//! The Rust interface of an op: a method of `Tensor` if its first argument is a tensor, else a function.
//!
//! Keyword-only arguments that have defaults are left out; the form with `_with` takes them all.

use crate::item::{ItemHome, Op, doc, mangle};
use proc_macro2::TokenStream;
use pullback_schema::{Argument, Base, Default};
use quote::{format_ident, quote};
use syn::{Error, Ident, Result};

/// The Rust type of an argument.
pub(crate) fn rust_type(arg: &Argument) -> TokenStream {
    let base = match (arg.ty.base, arg.ty.list) {
        (Base::Tensor, None) => quote!(&::pullback::Tensor),
        (Base::Tensor, Some(list)) if list.element_optional => {
            quote!(&[Option<::pullback::Tensor>])
        }
        (Base::Tensor, Some(_)) => quote!(&[::pullback::Tensor]),
        (Base::Int | Base::SymInt, None) => quote!(i64),
        (Base::Int | Base::SymInt, Some(_)) => quote!(&[i64]),
        (Base::Float, None) => quote!(f64),
        (Base::Float, Some(_)) => quote!(&[f64]),
        (Base::Bool, _) => quote!(bool),
        (Base::Str, _) => quote!(&str),
        (Base::Scalar, Some(_)) => quote!(&[::pullback::Scalar]),
        (Base::Scalar, None) => quote!(::pullback::Scalar),
        (Base::ScalarType, _) => quote!(::pullback::DType),
        (Base::Layout, _) => quote!(::pullback::Layout),
        (Base::Device, _) => quote!(::pullback::Device),
        (Base::MemoryFormat, _) => quote!(::pullback::MemoryFormat),
        (Base::Generator, _) => quote!(&::pullback::Generator),
        (Base::Any, _) => quote!(::pullback::dispatch::Arg<'_>),
    };
    if arg.ty.optional { quote!(Option<#base>) } else { base }
}

/// The `Arg` of a default value.
pub(crate) fn default_arg(arg: &Argument) -> TokenStream {
    let a = quote!(::pullback::dispatch::Arg);
    match arg.default.as_ref().expect("only called for arguments with a default") {
        Default::None => quote!(#a::None),
        Default::Bool(b) if arg.ty.base == Base::Scalar => {
            quote!(#a::Scalar(::pullback::Scalar::Bool(#b)))
        }
        Default::Bool(b) => quote!(#a::Bool(#b)),
        Default::Int(i) => match (arg.ty.base, arg.ty.list) {
            (Base::Scalar, _) => quote!(#a::Scalar(::pullback::Scalar::Int(#i))),
            (Base::Float, _) => {
                let f = *i as f64;
                quote!(#a::Float(#f))
            }
            (_, Some(list)) => {
                let n = list.size.unwrap_or(1);
                quote!(#a::Ints(&[#i; #n]))
            }
            _ => quote!(#a::Int(#i)),
        },
        Default::Float(f) if arg.ty.base == Base::Scalar => {
            quote!(#a::Scalar(::pullback::Scalar::Float(#f)))
        }
        Default::Float(f) => quote!(#a::Float(#f)),
        Default::Str(s) => quote!(#a::Str(#s)),
        Default::Ints(v) => quote!(#a::Ints(&[#(#v),*])),
        Default::Floats(v) => quote!(#a::Floats(&[#(#v),*])),
        Default::EmptyList if arg.ty.base == Base::Tensor => quote!(#a::Tensors(&[])),
        Default::EmptyList => quote!(#a::Ints(&[])),
        Default::MemoryFormat(name) => {
            let format = match name.as_str() {
                "preserve_format" => quote!(Preserve),
                "channels_last" => quote!(ChannelsLast),
                "channels_last_3d" => quote!(ChannelsLast3d),
                _ => quote!(Contiguous),
            };
            quote!(#a::MemoryFormat(::pullback::MemoryFormat::#format))
        }
        Default::Dtype(name) => {
            let dtype = match name.as_str() {
                "long" => quote!(I64),
                "float" => quote!(F32),
                "double" => quote!(F64),
                _ => quote!(Bool),
            };
            quote!(#a::DType(::pullback::DType::#dtype))
        }
    }
}

/// The name in snake case: `SumDim` becomes `sum_dim`.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, c) in name.char_indices() {
        if c.is_ascii_uppercase() && index > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The method's name: the type's, unless the word `method = name` says otherwise.
pub(crate) fn method_name(op: &Op<'_>) -> String {
    let stem = snake(&op.name.to_string());
    let default = if op.schema.is_inplace() { format!("{stem}_") } else { stem };
    op.word("method").map_or(default, crate::item::Word::text)
}

pub(crate) struct Shape {
    pub(crate) returns: TokenStream,
    finish: TokenStream,
}

pub(crate) fn result_shape(op: &Op<'_>) -> Result<Shape> {
    let n = op.schema.returns.len();
    let all_tensors = op.schema.returns.iter().all(|r| r.ty.base == Base::Tensor);
    Ok(match op.schema.returns.as_slice() {
        [] => Shape { returns: quote!(()), finish: quote!(drop(outputs)) },
        [one] if one.ty.base == Base::Tensor && one.ty.list.is_some() => Shape {
            returns: quote!(Vec<::pullback::Tensor>),
            finish: quote!(outputs.tensors().into_vec()),
        },
        [one] if one.ty.base == Base::Tensor => {
            Shape { returns: quote!(::pullback::Tensor), finish: quote!(outputs.one()) }
        }
        [one] => match one.ty.base {
            Base::Bool => {
                Shape { returns: quote!(bool), finish: quote!(!outputs.number().is(0.0)) }
            }
            Base::Int | Base::SymInt => {
                Shape { returns: quote!(i64), finish: quote!(outputs.number().to_i64()) }
            }
            Base::Float => {
                Shape { returns: quote!(f64), finish: quote!(outputs.number().to_f64()) }
            }
            _ => Shape { returns: quote!(::pullback::Scalar), finish: quote!(outputs.number()) },
        },
        _ if all_tensors => {
            Shape { returns: quote!([::pullback::Tensor; #n]), finish: quote!(outputs.array()) }
        }
        _ => {
            return Err(Error::new(
                op.name.span(),
                "mixed tensor and number results are not supported",
            ));
        }
    })
}

/// Whether the first argument is a tensor, which becomes the method's `self`.
pub(crate) fn has_receiver(args: &[Argument]) -> bool {
    args.first().is_some_and(|a| a.ty.base == Base::Tensor && a.ty.list.is_none() && !a.ty.optional)
}

/// Whether the short form of a method leaves the argument out.
pub(crate) fn is_optional(arg: &Argument) -> bool {
    arg.keyword_only && arg.default.is_some()
}

/// The parameters of a method after its receiver, of the form that takes `all` arguments or of the short one, and the
/// values of the call.
fn parameters(args: &[Argument], all: bool) -> (Vec<TokenStream>, Vec<TokenStream>) {
    let (mut params, mut values) = (Vec::new(), Vec::new());
    for (index, arg) in args.iter().enumerate() {
        if index == 0 && has_receiver(args) {
            values.push(quote!(::pullback::dispatch::Arg::Tensor(self)));
        } else if !all && is_optional(arg) {
            values.push(default_arg(arg));
        } else {
            let (ident, ty) = (format_ident!("{}", mangle(&arg.name)), rust_type(arg));
            params.push(quote!(#ident: #ty));
            values.push(if arg.ty.base == Base::Any {
                quote!(#ident)
            } else {
                quote!(::pullback::dispatch::Arg::from(#ident))
            });
        }
    }
    (params, values)
}

/// One method or function of an op.
struct Method {
    text: String,
    head: TokenStream,
    body: TokenStream,
}

impl Method {
    /// Documentation and attributes.
    fn attributes(&self) -> TokenStream {
        let text = &self.text;
        quote! {
            #[doc = #text]
            #[allow(clippy::too_many_arguments, clippy::doc_markdown, clippy::missing_errors_doc, clippy::many_single_char_names, reason = "generated from the op's signature and text")]
            #[track_caller]
        }
    }
}

/// Writes the methods: of `Tensor`, or of a trait where the item stands in another crate, or plain functions.
pub(crate) fn methods(op: &Op<'_>, def: &Ident) -> Result<TokenStream> {
    let methods = forms(op, def)?;
    let whole = methods.iter().map(|method| {
        let (attributes, Method { head, body, .. }) = (method.attributes(), method);
        quote!(#attributes pub fn #head { #body })
    });
    if !has_receiver(&op.schema.args) {
        return Ok(quote!(#(#whole)*));
    }
    if op.home == ItemHome::Library {
        return Ok(quote!(impl ::pullback::Tensor { #(#whole)* }));
    }
    let name = format_ident!("{}Methods", op.name);
    let text = format!("The methods of `{}` on tensors.", op.schema.name);
    let heads = methods.iter().map(|method| {
        let (attributes, head) = (method.attributes(), &method.head);
        quote!(#attributes fn #head;)
    });
    let bodies = methods.iter().map(|Method { head, body, .. }| quote!(fn #head { #body }));
    Ok(quote! {
        #[doc = #text]
        pub trait #name { #(#heads)* }
        impl #name for ::pullback::Tensor { #(#bodies)* }
    })
}

fn forms(op: &Op<'_>, def: &Ident) -> Result<Vec<Method>> {
    let args = &op.schema.args;
    let (name, text) = (method_name(op), doc(op.block));
    let mut out = Vec::new();
    let full = args.iter().any(is_optional);
    let forms: &[(bool, &str)] = if full { &[(false, ""), (true, "_with")] } else { &[(true, "")] };
    let shape = result_shape(op)?;
    for &(all, suffix) in forms {
        let (params, values) = parameters(args, all);
        let receiver = has_receiver(args).then(|| quote!(&self,));
        let mut add = |kind: &str, extra: TokenStream, returns: &TokenStream, body, note: &str| {
            let ident = format_ident!("{}{kind}{suffix}", name);
            out.push(Method {
                text: format!("{text}{note}"),
                head: quote!(#ident(#receiver #(#params,)* #extra) -> ::pullback::Result<#returns>),
                body,
            });
        };
        let (returns, finish) = (&shape.returns, &shape.finish);
        let call = quote! {
            let outputs = ::pullback::autograd::call(&#def, &[#(#values),*])?;
            Ok(#finish)
        };
        add("", quote!(), returns, call, "");
        if op.has("inplace") && !op.schema.is_inplace() {
            let call = quote!(::pullback::autograd::call_inplace(&#def, &[#(#values),*]));
            let note = "\n\nThis form writes the result into `self` and returns it.";
            add("_", quote!(), &quote!(::pullback::Tensor), call, note);
        }
        if op.has("out") || op.has("any_out") || op.has("exact_out") {
            let call = quote!(::pullback::autograd::call_out(&#def, &[#(#values),*], out));
            let note = "\n\nThis form writes the results into `out`, resized if need be.";
            add("_out", quote!(out: &[&::pullback::Tensor]), &quote!(()), call, note);
        }
    }
    Ok(out)
}
