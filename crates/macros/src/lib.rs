//! The `#[op("signature", words...)]` attribute: one `impl` block becomes an op.
//!
//! Bodies pass through untouched; only signatures are read. `item` takes the block apart, `rule` finds
//! out what each rule's parameters mean and what a node must save for them, `expand` writes the static
//! `OpDef` with its adapters, `method` the Rust methods. The output is small on purpose: per op one
//! static, a few closures and thin methods.

mod expand;
mod item;
mod method;
mod rule;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Declares an op. See the crate `pullback`, module `ops`.
#[proc_macro_attribute]
pub fn op(attr: TokenStream, block: TokenStream) -> TokenStream {
    let block = parse_macro_input!(block as syn::ItemImpl);
    match item::Op::read(attr.into(), &block).and_then(|op| expand::expand(&op)) {
        Ok(tokens) => tokens.into(),
        Err(error) => {
            let error = error.to_compile_error();
            let ty = &block.self_ty;
            quote::quote!(struct #ty; #block #error).into()
        }
    }
}
