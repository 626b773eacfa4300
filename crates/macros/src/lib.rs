//! The `#[op("signature", words...)]` attribute: one `impl` block becomes an op.
//!
//! Bodies pass through untouched; only signatures are read. `family` repeats an item for the rows of its lists, `item` takes the block apart, `rule` finds
//! out what each rule's parameters mean and what a node must save for them, `kernel` what computes the op, `expand`
//! writes the static `OpDef` with its adapters, `method` the Rust methods, `chain` those of expressions, `source` where all that
//! stands. The output is small on purpose: per op one
//! static, a few closures and thin methods.

mod chain;
mod expand;
mod family;
mod item;
mod kernel;
mod method;
mod rule;
mod source;

use item::ItemHome;
use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Declares an op: `#[op("signature", words...)] impl Name { functions }`. See the crate `pullback`, module `ops`.
///
/// The functions of the block take arguments, outputs and saved facts of these by name: what a rule names is what a node
/// saves. The attribute has words beside the signature. An expansion is a file: `cargo xtask expand erf`.
///
#[doc = include_str!("functions.md")]
///
#[doc = include_str!("words.md")]
#[proc_macro_attribute]
pub fn op(attr: TokenStream, block: TokenStream) -> TokenStream {
    let block = parse_macro_input!(block as syn::ItemImpl);
    declared(ItemHome::Library, attr, block)
}

/// `#[op]` for the items of other crates, which know it as `pullback::op`. It says the same; its methods of tensors are those
/// of a trait.
#[proc_macro_attribute]
pub fn custom_op(attr: TokenStream, block: TokenStream) -> TokenStream {
    let block = parse_macro_input!(block as syn::ItemImpl);
    declared(ItemHome::Elsewhere, attr, block)
}

fn declared(home: ItemHome, attr: TokenStream, block: syn::ItemImpl) -> TokenStream {
    match family::Family::read(attr.into(), block) {
        Ok(family::Family { members, list }) => {
            let members = members.iter().map(|(attr, block)| member(home, attr.clone(), block));
            quote::quote!(#(#members)* #list).into()
        }
        Err(error) => error.to_compile_error().into(),
    }
}

/// Declares the trait `Chain` of the crate `pullback`: a method for each op that is a method of tensors, from the same items.
///
/// It takes the head of the trait, and reads the files in `src/ops` of the crate that it stands in.
#[proc_macro]
pub fn chain(head: TokenStream) -> TokenStream {
    let head = proc_macro2::TokenStream::from(head);
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    match chain::methods(&std::path::Path::new(&folder).join("src/ops")) {
        Ok(methods) => quote::quote!(#head { #methods }).into(),
        Err(error) => quote::quote!(compile_error!(#error);).into(),
    }
}

/// The expansion of one op of a family, or a compile error.
fn member(
    home: ItemHome,
    attr: proc_macro2::TokenStream,
    block: &syn::ItemImpl,
) -> proc_macro2::TokenStream {
    item::Op::read(home, attr, block).and_then(|op| expanded(&op)).unwrap_or_else(|error| {
        let (error, ty) = (error.to_compile_error(), &block.self_ty);
        // (Other errors of the functions are not reported until the op is understood.)
        quote::quote!(struct #ty; #[allow(warnings)] #block #error)
    })
}

/// The expansion of an op. It is also written to a file if `cargo xtask expand` asks for it.
fn expanded(op: &item::Op<'_>) -> syn::Result<proc_macro2::TokenStream> {
    let tokens = expand::expand(op)?;
    if let (Ok(name), Ok(folder)) =
        (std::env::var("PULLBACK_EXPAND"), std::env::var("PULLBACK_EXPAND_TO"))
        && name == op.schema.name
    {
        expand::write(op, &tokens, std::path::Path::new(&folder))?;
    }
    Ok(tokens)
}
