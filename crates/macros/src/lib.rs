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

/// Declares an op: `#[op("signature", words...)] impl Name { functions }`. See the crate `pullback`, module `ops`.
///
/// Functions, whose parameters are arguments, outputs and saved facts by name: `cpu` (writes into the outputs that its parameters name, `result` if the signature names none, which the dispatcher makes as
/// `meta` says; or fills an iterator, if its first parameter is `iter`; or, of views and of ops whose results' shapes depend on
/// elements, gives the result), `cpu_` (writes into `self`) or `composite` (other ops); `meta` (the result's shape and
/// dtype); `unchanged` (of `self`: whether the call without other arguments gives `self` itself); `vjp`, `vjp_<argument>` and `jvp` (the rules; a `jvp` sees `x_p` and `x_t`, and does without tangents that it takes
/// as `Option`); `samples` and `invalid_samples` (for the property tests).
///
/// | word | meaning |
/// |---|---|
/// | `inplace`, `out` | there is the form `name_`, the form with `out=` |
/// | `inplace = method` | the form `name_` is a method, no function |
/// | `exact_out` | as `out`, for targets of the result's own dtype only |
/// | `view`, `multi_view` | the result, or the list of them, shares memory with `self` |
/// | `bijective` | a view that shows each element once, so that its gradient rule is its inverse |
/// | `function_only`, `method_only` | one of the two ways to call it is missing |
/// | `attribute`, `writable` | `x.name` without call; assignment writes into what it shows |
/// | `alias("a", ..)` | further names |
/// | `call_as("name(parameter = spelling, ..)", ..)` | what Python calls parameters of the function and the method `name`, where that is not what the signature says; `torch.name(..)` is for the function alone |
/// | `module = "linalg"` | the namespace, if it is not the main one |
/// | `numbers` | Python numbers may stand where the signature says `Tensor` |
/// | `wide_numbers` | numbers beside half-precision tensors (0-dimensional tensors too) are not rounded to halves first |
/// | `operand(a, ..)` | these `Scalar` arguments are inputs of the element-by-element kernel, in their order among the tensors |
/// | `random`, `internal` | draws random numbers; not shown to users |
/// | `whole` | the `composite` does its work itself: who answers ops sees the op, not what it is made of |
/// | `checks_sharing` | the in-place kernel says itself which inputs may share memory with `self` |
/// | `writes_one_value` | the in-place form writes the same everywhere: elements of `self` may share memory |
/// | `writes_leaves` | the in-place form of an op without derivative also writes into leaves that require grad |
/// | `fills_out` | a target of `out=` with as many elements keeps its shape |
/// | `unresolved` | takes tensors with a conj or neg bit as they are; other ops get resolved ones, and views pass the bits on |
/// | `across_devices` | copies between devices: its tensors may be on several |
/// | `dynamic_output_shape` | the shapes of the results depend on elements of the arguments (`nonzero`): there is no `meta` |
/// | `data_dependent_output` | the result is a number, or its dtype depends on elements (`equal`): there is no `meta` |
/// | `resizes_self` | the in-place form gives `self` the result's shape |
/// | `apart`, `apart(a, ..)` | tensors (all, or these) that `out=` may be, but not overlap in part; element-by-element kernels need no word |
/// | `separate`, `separate(a, ..)` | tensors that `out=` may share no element with |
/// | `not_differentiable`, `not_differentiable(a, ..)` | never has a gradient; these arguments must not require one |
/// | `node = "Stem"` | the graph node's name, without `Backward0` |
/// | `method = name` | the Rust method's name |
/// | `meta = f`, `cpu = f`, `samples = f`, `result = f` | a shared function stands for the op's own, or for its dtype rule |
/// | `jvp = linear` | the forward rule is the op itself |
/// | `sparse = values`, `sparse = kernel` | computes it where an argument is a sparse tensor: on the values alone, or by a function of `ops::sparse` |
/// | `batch = pointwise`, `batch = rule` | how a batch dimension goes through it (`vmap`): element by element, or by a function of `ops::batch` |
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
