//! The table of kernels that an op's functions and words declare, and the code that fetches a function's parameters
//! from the arguments of a call.

use crate::expand::{named, plain_args};
use crate::item::{ItemFunction, ItemHome, Op, Word, mangle};
use proc_macro2::TokenStream;
use pullback_schema::Return;
use quote::{format_ident, quote};
use syn::{Error, Result};

/// Expressions that fetch a function's parameters from `args`.
pub(crate) fn from_args(
    op: &Op<'_>,
    function: &ItemFunction<'_>,
    skip: usize,
) -> Result<Vec<TokenStream>> {
    let params = function.params.iter().skip(skip);
    params
        .map(|(name, _)| {
            if name == "cpu" {
                return Ok(quote!(cpu));
            }
            if name == "form" && is_sparse(function) {
                return Ok(quote!(call.form));
            }
            if name == "args" {
                let ty = format_ident!("{}Args", op.name);
                let fields = plain_args(op).map(|i| {
                    let field = format_ident!("{}", mangle(&op.schema.args[i].name));
                    quote!(#field: ::pullback::dispatch::FromArg::from_arg(args[#i]))
                });
                return Ok(quote!(&#ty { #(#fields,)* marker: std::marker::PhantomData }));
            }
            if let Some(index) = written_output(op, function, name) {
                let is_list = op.schema.returns[index].ty.list.is_some();
                return Ok(if is_list { quote!(outs) } else { quote!(outs[#index]) });
            }
            let index = op.argument(&name.to_string(), name.span())?;
            Ok(quote!(::pullback::dispatch::FromArg::from_arg(args[#index])))
        })
        .collect()
}

/// The index of the output that a parameter of the kernel `cpu` names, to write into it; a list (`Tensor[]`) stands for
/// all outputs.
fn written_output(op: &Op<'_>, function: &ItemFunction<'_>, name: &syn::Ident) -> Option<usize> {
    let name = name.to_string();
    if function.ident != "cpu" || op.arg(&name).is_some() {
        return None;
    }
    op.output(&name)
}

/// Whether a kernel writes into outputs that it is given, instead of making them.
fn writes_outputs(op: &Op<'_>, cpu: &ItemFunction<'_>) -> bool {
    cpu.params.iter().any(|(name, _)| written_output(op, cpu, name).is_some())
}

/// The functions that are kernels for sparse tensors.
const SPARSE: [&str; 2] = ["sparse_coo", "sparse_csr"];

fn is_sparse(function: &ItemFunction<'_>) -> bool {
    SPARSE.iter().any(|name| function.ident == name)
}

/// The table of kernels.
pub(crate) fn kernels(op: &Op<'_>, view: Option<&TokenStream>) -> Result<TokenStream> {
    let cpu = kernel(op, view)?;
    let word = op.word("sparse");
    let ours = |name: &str| -> Result<TokenStream> {
        let Some(f) = op.function(name) else {
            return Ok(if word.is_some() { quote!(Some(SPARSE)) } else { quote!(None) });
        };
        let outputs = outputs_of(op, f)?;
        Ok(quote!(Some(|cpu, call| { let (_, args) = (cpu, call.args); let _ = args; #outputs })))
    };
    let [coo, csr] = [ours(SPARSE[0])?, ours(SPARSE[1])?];
    let rule = word.map(|word| sparse_rule(op, word)).transpose()?;
    let on_values = word.map(|word| on_values(op, word)).transpose()?.flatten();
    let on_values = on_values.unwrap_or_else(|| quote!(None));
    Ok(quote!({
        #rule
        ::pullback::dispatch::Kernels { cpu: #cpu, sparse_coo: #coo, sparse_csr: #csr, on_values: #on_values }
    }))
}

/// The kernel that the word `sparse` names, for all sparse layouts: `values` is `values(cpu, call)`, a class that sees the whole
/// call; `select(self, dim)` is a rule that gets these arguments, and `cpu`, `form` or `call` if it lists them.
fn sparse_rule(op: &Op<'_>, word: &Word) -> Result<TokenStream> {
    let (rule, mut values) = named(op, word, &["cpu", "form", "call"])?;
    if values.is_empty() {
        values = vec![quote!(cpu), quote!(call)];
    }
    let has_form = values.iter().any(|value| value.to_string() == "form");
    let form = has_form.then(|| quote!(let form = call.form;));
    Ok(quote! {
        const SPARSE: ::pullback::dispatch::SparseKernel = |cpu, call| {
            let (_, args) = (cpu, call.args);
            let _ = args;
            #form
            Ok(::pullback::dispatch::IntoOutputs::into_outputs(::pullback::ops::sparse::#rule(#(#values),*)?))
        };
    })
}

/// The rules that compute on the values of `self` alone: each has a variant `recorded_<rule>` for calls that are
/// recorded.
const ON_VALUES: [&str; 3] = ["values", "norm", "power"];

fn on_values(op: &Op<'_>, word: &Word) -> Result<Option<TokenStream>> {
    let (rule, mut values) = named(op, word, &["cpu", "form", "call"])?;
    let rule = rule.to_string();
    if !ON_VALUES.contains(&rule.as_str()) {
        return Ok(None);
    }
    if values.is_empty() {
        values = vec![quote!(call)];
    }
    let rule = format_ident!("recorded_{rule}");
    Ok(Some(quote!(Some(|call| {
        let args = call.args;
        let _ = args;
        Ok(::pullback::dispatch::IntoOutputs::into_outputs(::pullback::ops::sparse::#rule(#(#values),*)?))
    }))))
}

/// The dense kernel on the CPU, of the kind that the words and the parameters say.
fn kernel(op: &Op<'_>, view: Option<&TokenStream>) -> Result<TokenStream> {
    let k = quote!(::pullback::dispatch::Kernel);
    if let Some(word) = op.word("cpu") {
        let path = &word.value;
        return Ok(match op.home {
            ItemHome::Library => {
                quote!(#k::Pointwise(|iter, _| Ok(pullback_kernels::elementwise::#path(iter)?)))
            }
            ItemHome::Elsewhere => quote!(#k::Pointwise(|iter, _| Ok(#path(iter)?))),
        });
    }
    let ty = &op.name;
    if let Some(f) = op.function("cpu") {
        return by_cpu(op, f);
    }
    if let Some(f) = op.function("cpu_") {
        check_reads_nothing(op, f)?;
        let values = from_args(op, f, 0)?;
        return Ok(if is_view(op) {
            quote!(#k::ViewInplace(|args| #ty::cpu_(#(#values),*)))
        } else {
            quote!(#k::Inplace(|cpu, args| { let _ = cpu; #ty::cpu_(#(#values),*) }))
        });
    }
    if let Some(f) = op.function("composite") {
        let outputs = outputs_of(op, f)?;
        return Ok(quote!(#k::Composite(|args| { let _ = args; #outputs })));
    }
    if let Some(view) = view {
        return Ok(
            quote!(#k::Function(|cpu, args| ::pullback::ops::classes::copied(cpu, &#view, args))),
        );
    }
    if op.functions.iter().any(is_sparse) {
        return Ok(quote!(#k::None));
    }
    Err(Error::new(
        op.name.span(),
        "an op needs `cpu`, `cpu_`, `composite`, `copy_of`, `sparse_coo` or `sparse_csr`",
    ))
}

/// The kernel made of the function `cpu`.
fn by_cpu(op: &Op<'_>, f: &ItemFunction<'_>) -> Result<TokenStream> {
    let (ty, k) = (&op.name, quote!(::pullback::dispatch::Kernel));
    if f.params.first().is_some_and(|(name, _)| name == "iter") {
        let values = from_args(op, f, 1)?;
        return Ok(
            quote!(#k::Pointwise(|iter, args| { let _ = args; Ok(#ty::cpu(iter #(, #values)*)?) })),
        );
    }
    if writes_outputs(op, f) {
        if op.word("meta").is_none() && op.function("meta").is_none() {
            return Err(Error::new(
                f.ident.span(),
                "a kernel that writes into its outputs needs a `meta` that says what they look like",
            ));
        }
        let values = from_args(op, f, 0)?;
        return Ok(
            quote!(#k::Writing(|cpu, args, outs| { let _ = (cpu, args); #ty::cpu(#(#values),*) })),
        );
    }
    check_reads_nothing(op, f)?;
    let outputs = outputs_of(op, f)?;
    Ok(if is_view(op) {
        quote!(#k::View(|args| { let _ = args; #outputs }))
    } else {
        quote!(#k::Function(|cpu, args| { let _ = (cpu, args); #outputs }))
    })
}

/// The call of a function that returns the outputs.
fn outputs_of(op: &Op<'_>, f: &ItemFunction<'_>) -> Result<TokenStream> {
    let (ty, ident, values) = (&op.name, f.ident, from_args(op, f, 0)?);
    Ok(quote!(Ok(::pullback::dispatch::IntoOutputs::into_outputs(#ty::#ident(#(#values),*)?))))
}

/// Whether the kernel makes a view: by the words, or (`detach`, which is no view in the graph) by the signature, whose
/// result shares the memory of an argument.
fn is_view(op: &Op<'_>) -> bool {
    let shares = |result: &Return| result.alias.as_ref().is_some_and(|alias| !alias.is_write);
    op.has("view") || op.has("multi_view") || op.schema.returns.iter().any(shares)
}

/// Refuses the token `cpu`, with which elements are read, as a parameter of the kernel of a view.
fn check_reads_nothing(op: &Op<'_>, f: &ItemFunction<'_>) -> Result<()> {
    match f.params.iter().find(|(name, _)| name == "cpu") {
        Some((name, _)) if is_view(op) => Err(Error::new(
            name.span(),
            "the kernel of a view reads no memory: it takes no `cpu`, and gives another geometry of the same storage",
        )),
        _ => Ok(()),
    }
}
