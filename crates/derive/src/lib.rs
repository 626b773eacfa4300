//! `#[derive(Module)]`: a struct's fields become the parameters, buffers and submodules of a module.
//!
//! Fields of the types `Tensor` and `Option<Tensor>` come first, then the others, each in the order
//! of the struct: the order in which PyTorch's `state_dict` has them. The attributes are explained
//! at `pullback_nn::Module`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, LitStr, Result, parse_macro_input};

/// Derives `pullback_nn::Module`.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The attributes of a field.
#[derive(Default)]
struct DeriveOptions {
    skip: bool,
    buffer: bool,
    rename: Option<LitStr>,
}

impl DeriveOptions {
    fn read(field: &Field) -> Result<DeriveOptions> {
        let mut options = DeriveOptions::default();
        for attribute in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    options.skip = true;
                } else if meta.path.is_ident("buffer") {
                    options.buffer = true;
                } else if meta.path.is_ident("rename") {
                    options.rename = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error("it is `skip`, `buffer` or `rename = \"name\"`"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

/// Whether a type is written `Tensor` or `Option<Tensor>`.
fn is_tensor(ty: &syn::Type) -> bool {
    let text = quote!(#ty).to_string().replace(' ', "");
    let inner = text.strip_suffix('>').and_then(|t| t.split_once("Option<")).map(|(_, t)| t);
    inner.unwrap_or(&text).rsplit("::").next() == Some("Tensor")
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "a module is a struct"));
    };
    let (mut own, mut below, mut modes) = (Vec::new(), Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        let options = DeriveOptions::read(field)?;
        if options.skip {
            continue;
        }
        let member = field.ident.as_ref().map_or_else(
            || {
                let index = syn::Index::from(index);
                quote!(#index)
            },
            |ident| quote!(#ident),
        );
        let name = options.rename.as_ref().map_or_else(|| member.to_string(), LitStr::value);
        let name = name.trim_start_matches("r#");
        let visit = if options.buffer {
            quote!(::pullback_nn::module::visit_buffer(&self.#member, &path.child(#name), visitor);)
        } else {
            quote!(::pullback_nn::Module::visit(&self.#member, &path.child(#name), visitor);)
        };
        if is_tensor(&field.ty) {
            own.push(visit);
        } else {
            below.push(visit);
        }
        modes.push(quote!(::pullback_nn::Module::set_training(&mut self.#member, training);));
    }
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        impl #generics ::pullback_nn::Module for #name #arguments #bounds {
            fn visit(
                &self,
                path: &::pullback_nn::module::Path<'_>,
                visitor: &mut dyn ::core::ops::FnMut(
                    &::pullback_nn::module::Path<'_>,
                    ::pullback_nn::module::TensorKind,
                    &::pullback_nn::module::Tensor,
                ),
            ) {
                let _ = (path, &visitor);
                #(#own)*
                #(#below)*
            }
            fn set_training(&mut self, training: bool) {
                let _ = training;
                #(#modes)*
            }
        }
    })
}
