//! `chain!()`: the trait whose methods are those of `Tensor`, for what is not a tensor yet.
//!
//! A trait is declared in one place and the ops in many, so that this macro reads the files of the
//! ops again, with the code that reads them where they are declared: each `#[op]` item that is a
//! method of tensors becomes a method of the trait. Items that another macro writes are not seen
//! here.

use crate::family::Family;
use crate::item::{ItemHome, Op, mangle};
use crate::method::{has_receiver, is_optional, method_name, result_shape, rust_type};
use proc_macro2::TokenStream;
use pullback_schema::{Argument, Base};
use quote::{format_ident, quote};
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Item, ItemImpl};

/// The methods of the trait, in the order of the files.
pub(crate) fn methods(folder: &Path) -> Result<TokenStream, String> {
    let mut out = TokenStream::new();
    each_op(folder, &mut |op| {
        out.extend(of_op(op)?);
        Ok(())
    })?;
    Ok(out)
}

/// Calls `see` with each op that the files in `folder` declare, in their order.
pub(crate) fn each_op(
    folder: &Path,
    see: &mut dyn FnMut(&Op<'_>) -> syn::Result<()>,
) -> Result<(), String> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    for path in files {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
        if !text.contains("#[op(") {
            continue;
        }
        let file = syn::parse_file(&text).map_err(|error| failed(&error))?;
        for item in file.items {
            if let Item::Impl(block) = item {
                of_item(block, see).map_err(|error| failed(&error))?;
            }
        }
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn of_item(
    mut block: ItemImpl,
    see: &mut dyn FnMut(&Op<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    let Some(at) = block.attrs.iter().position(|attr| attr.path().is_ident("op")) else {
        return Ok(());
    };
    let words = block.attrs.remove(at).meta.require_list()?.tokens.clone();
    for (words, block) in Family::read(words, block)?.members {
        see(&Op::read(ItemHome::Library, words, &block)?)?;
    }
    Ok(())
}

/// The forms that return a new tensor: an expression has no tensor to write into.
fn of_op(op: &Op<'_>) -> syn::Result<TokenStream> {
    let args = &op.schema.args;
    if !has_receiver(args) || op.schema.is_inplace() || op.has("internal") {
        return Ok(TokenStream::new());
    }
    let (name, returns) = (method_name(op), result_shape(op)?.returns);
    let mut out = TokenStream::new();
    let forms: &[(bool, &str)] =
        if args.iter().any(is_optional) { &[(false, ""), (true, "_with")] } else { &[(true, "")] };
    for &(all, suffix) in forms {
        let method = format_ident!("{name}{suffix}");
        let text = format!("[`Tensor::{method}`] of the result.");
        let (params, values, operands) = parameters(args, all);
        out.extend(quote! {
            #[doc = #text]
            #[allow(clippy::too_many_arguments, clippy::missing_errors_doc, clippy::wrong_self_convention, clippy::many_single_char_names, reason = "generated from the op's signature")]
            #[track_caller]
            fn #method(self, #(#params),*) -> ::pullback::Result<#returns> {
                let this = self.into_operand()?;
                #(#operands)*
                this.#method(#(#values),*)
            }
        });
    }
    Ok(out)
}

/// The parameters after the receiver, the values for the method of `Tensor`, and the code that
/// makes tensors of operands.
fn parameters(
    args: &[Argument],
    all: bool,
) -> (Vec<TokenStream>, Vec<TokenStream>, Vec<TokenStream>) {
    let (mut params, mut values, mut operands) = (Vec::new(), Vec::new(), Vec::new());
    for arg in args.iter().skip(1).filter(|arg| all || !is_optional(arg)) {
        let ident = format_ident!("{}", mangle(&arg.name));
        if arg.ty.base == Base::Tensor && arg.ty.list.is_none() && !arg.ty.optional {
            params.push(quote!(#ident: impl Operand));
            operands.push(quote!(let #ident = #ident.into_operand()?;));
            values.push(quote!(&#ident));
        } else {
            let ty = rust_type(arg);
            params.push(quote!(#ident: #ty));
            values.push(quote!(#ident));
        }
    }
    (params, values, operands)
}
