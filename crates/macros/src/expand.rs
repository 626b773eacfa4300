//! Writes the static `OpDef` and the adapters between typed functions and the uniform call.

use crate::item::{ItemFunction, ItemHome, Op, Word, doc, mangle};
use crate::kernel::{from_args, kernels};
use crate::method::{method_name, methods, rust_type};
use crate::rule::{Saves, resolve};
use crate::source::source;
use proc_macro2::TokenStream;
use pullback_schema::Base;
use quote::{format_ident, quote};
use std::path::Path;
use syn::spanned::Spanned;
use syn::{Error, Result};

/// The whole output of one `#[op]`.
pub(crate) fn expand(op: &Op<'_>) -> Result<TokenStream> {
    let def = format_ident!("{}", crate::method::snake(&op.name.to_string()).to_uppercase());
    let (ty, block, text) = (&op.name, op.block, doc(op.block));
    let (name, overload, schema) = (&op.schema.name, &op.schema.overload, &op.text);
    let method = method_name(op);
    let node = op.word("node").map_or_else(|| camel(name), Word::text);
    let module = op.word("module").map(Word::text).unwrap_or_default();
    let list = |word: &str| op.word(word).map(|w| w.args.clone()).unwrap_or_default();
    let (aliases, call_as, outputs) = (list("alias"), list("call_as"), op.outputs());
    let (vjp, saves, with_vjp) = vjp(op)?;
    let view = op.word("copy_of").and_then(|w| w.value.as_ref());
    let rules = rules(op, view, (&vjp, &saves, &with_vjp))?;
    let (traits, kernels, meta) = (traits(op), kernels(op, view)?, meta(op)?);
    let (result, batch) = (result_kind(op), batch(op, view)?);
    let autocast = autocast(op)?;
    let unchanged =
        op.function("unchanged").map_or_else(|| quote!(None), |_| quote!(Some(#ty::unchanged)));
    let flops = flops(op)?;
    let samples = samples(op, view);
    let invalid = samples_fn(op, "invalid_samples", view);
    let (methods, source) = (methods(op, &def)?, source(op));
    let args_struct = args_struct(op);
    let definition = format!("The definition of `{schema}`.");
    Ok(quote! {
        struct #ty;
        #[allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, clippy::too_many_arguments, clippy::doc_markdown, clippy::trivially_copy_pass_by_ref, reason = "an op's functions have the form that their binding asks for")]
        #block
        #args_struct
        #[doc = #definition]
        pub static #def: ::pullback::dispatch::OpDef = ::pullback::dispatch::OpDef {
            schema_text: #schema,
            name: #name,
            overload: #overload,
            method: #method,
            node_name: #node,
            doc: #text,
            module: #module,
            aliases: &[#(#aliases),*],
            call_as: &[#(#call_as),*],
            traits: #traits,
            outputs: &[#(#outputs),*],
            meta: #meta,
            result: ::pullback::dispatch::ResultKind::#result,
            unchanged: #unchanged,
            flops: #flops,
            kernels: #kernels,
            #rules
            batch: ::pullback::dispatch::Batch::#batch,
            autocast: ::pullback::dispatch::CastPolicy::#autocast,
            layers: &::pullback::custom::LAYERS,
            samples: #samples,
            invalid_samples: #invalid,
            source: #source,
            parsed: std::sync::OnceLock::new(),
        };
        #methods
    })
}

/// Writes the expansion of an op into a file of its name in `folder`, for `cargo xtask expand`.
pub(crate) fn write(op: &Op<'_>, tokens: &TokenStream, folder: &Path) -> Result<()> {
    let overload = if op.schema.overload.is_empty() { "default" } else { &op.schema.overload };
    let path = folder.join(format!("{}.{overload}.rs", op.schema.name));
    std::fs::write(&path, tokens.to_string())
        .map_err(|e| Error::new(op.name.span(), format!("cannot write {}: {e}", path.display())))
}

/// The kind of result that the words `result` or `meta` name.
fn result_kind(op: &Op<'_>) -> TokenStream {
    let word = |name: &str| op.word(name).map(Word::text);
    match word("result").or_else(|| word("meta")).as_deref() {
        Some("same" | "broadcast" | "real") => quote!(Same),
        Some("float" | "float_with_numbers") => quote!(Float),
        Some("predicate") => quote!(Bool),
        _ => quote!(Custom),
    }
}

/// How the op computes batches: by its own function, by the rule that the word `batch` names, as the view that it copies, or as
/// the ops that it is composed of.
fn batch(op: &Op<'_>, view: Option<&TokenStream>) -> Result<TokenStream> {
    Ok(match op.word("batch") {
        _ if op.function("batch").is_some() => batch_function(op)?,
        None if view.is_some() => quote!(Rule(|call| ::pullback::ops::batch::copied(&#view, call))),
        None if op.function("composite").is_some() => quote!(Composite),
        None => quote!(None),
        Some(word) if word.text() == "pointwise" => quote!(Pointwise),
        Some(word) => {
            let call = applied(op, word)?;
            let rules = shared(op, "batch");
            quote!(Rule(|call| { let args = call.args; let _ = args; #rules::#call }))
        }
    })
}

/// The module that has the functions of a word which many ops share: `meta`, `samples` or `batch`.
fn shared(op: &Op<'_>, word: &str) -> TokenStream {
    let module = format_ident!("{word}");
    match op.home {
        ItemHome::Elsewhere => quote!(::pullback::custom::#module),
        ItemHome::Library if word == "batch" => quote!(::pullback::ops::batch),
        ItemHome::Library => quote!(::pullback::ops::classes::#module),
    }
}

/// The batching rule that an op has as a function of its own: `batch(call, ..)`, whose further parameters are arguments of the
/// signature by their names.
fn batch_function(op: &Op<'_>) -> Result<TokenStream> {
    let function = op.function("batch").expect("only called where there is one");
    let (ty, values) = (&op.name, from_args(op, function, 1)?);
    Ok(quote!(Rule(|call| { let args = call.args; let _ = args; #ty::batch(call #(, #values)*) })))
}

/// The call of the batching rule that a word names: `along` becomes `along(call)`, `along(dim, PATH)` becomes
/// `along(call, dim, PATH)`.
fn applied(op: &Op<'_>, word: &Word) -> Result<TokenStream> {
    let (rule, values) = named(op, word, &[])?;
    Ok(quote!(#rule(call #(, #values)*)))
}

/// The function that a word names, and its arguments, fetched from `args`. Names in lower case are arguments of the
/// signature or `others`, which the caller provides; anything else is passed through.
pub(crate) fn named(
    op: &Op<'_>,
    word: &Word,
    others: &[&str],
) -> Result<(TokenStream, Vec<TokenStream>)> {
    let value = word.value.clone().unwrap_or_default();
    let Ok(call) = syn::parse2::<syn::ExprCall>(value.clone()) else {
        return Ok((value, Vec::new()));
    };
    let values = call.args.iter().map(|arg| {
        let syn::Expr::Path(path) = arg else { return Ok(quote!(#arg)) };
        let Some(name) = path.path.get_ident().map(ToString::to_string) else {
            return Ok(quote!(#arg));
        };
        let is_other = others.contains(&name.as_str()) && op.arg(&name).is_none();
        if is_other || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Ok(quote!(#arg));
        }
        let index = op.argument(&name, path.span())?;
        Ok(quote!(::pullback::dispatch::FromArg::from_arg(args[#index])))
    });
    let (rule, values) = (&call.func, values.collect::<Result<Vec<_>>>()?);
    Ok((quote!(#rule), values))
}

/// The arguments and the rules of derivatives: the op's own, or those of the view that it copies.
fn rules(
    op: &Op<'_>,
    view: Option<&TokenStream>,
    (vjp, saves, with_vjp): (&[TokenStream], &Saves, &[bool]),
) -> Result<TokenStream> {
    if let Some(view) = view {
        return Ok(quote! {
            args: #view.args,
            saves: #view.saves,
            flags: #view.flags,
            vjp: #view.vjp,
            jvp: #view.jvp,
        });
    }
    let (saves, flags) = (saves.tokens(), saves.flags());
    let (args, jvp) = (args(op, with_vjp)?, jvp(op)?);
    Ok(quote! {
        args: &[#(#args),*],
        saves: #saves,
        flags: #flags,
        vjp: &[#(#vjp),*],
        jvp: #jvp,
    })
}

/// The name in camel case: `index_put` becomes `IndexPut`.
fn camel(name: &str) -> String {
    name.split('_')
        .filter(|part| !part.is_empty())
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect()
}

/// The arguments that are no tensors.
pub(crate) fn plain_args<'a>(op: &'a Op<'_>) -> impl Iterator<Item = usize> + use<'a> {
    (0..op.schema.args.len()).filter(|&i| !op.is_tensor(i))
}

/// The struct `<Op>Args`, if a function takes `args`.
fn args_struct(op: &Op<'_>) -> Option<TokenStream> {
    op.functions.iter().flat_map(|f| &f.params).find(|(name, _)| name == "args")?;
    let ty = format_ident!("{}Args", op.name);
    let text = format!("The arguments of `{}` that are not tensors.", op.schema.name);
    let fields = plain_args(op).map(|i| {
        let arg = &op.schema.args[i];
        let (name, ty) = (format_ident!("{}", mangle(&arg.name)), rust_type(arg));
        let ty: TokenStream =
            ty.to_string().replace("& ", "&'a ").parse().expect("a type stays a type");
        quote!(pub(crate) #name: #ty)
    });
    Some(quote! {
        #[doc = #text]
        #[derive(Clone, Copy)]
        pub(crate) struct #ty<'a> { #(#fields,)* marker: std::marker::PhantomData<&'a ()> }
    })
}

fn meta(op: &Op<'_>) -> Result<TokenStream> {
    if let Some(word) = op.word("meta") {
        let (class, values) = named(op, word, &[])?;
        let classes = shared(op, "meta");
        return Ok(described(true, &quote!(#classes::#class(args #(, #values)*))));
    }
    let Some(function) = op.function("meta") else { return Ok(quote!(None)) };
    let (ty, values) = (&op.name, from_args(op, function, 0)?);
    Ok(described(gives_one_spec(function), &quote!(#ty::meta(#(#values),*))))
}

/// Whether a `meta` function gives a single spec: its type is `Result<TensorSpec>`.
fn gives_one_spec(function: &ItemFunction<'_>) -> bool {
    let syn::ReturnType::Type(_, ty) = function.output else { return false };
    let argument = last_segment(ty).and_then(|result| match &result.arguments {
        syn::PathArguments::AngleBracketed(list) => list.args.first(),
        _ => None,
    });
    let Some(syn::GenericArgument::Type(ty)) = argument else { return false };
    last_segment(ty).is_some_and(|name| name.ident == "TensorSpec")
}

/// The last name of a type that is a path.
fn last_segment(ty: &syn::Type) -> Option<&syn::PathSegment> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// The `meta` of an op whose `result` gives one spec or several.
fn described(is_one: bool, result: &TokenStream) -> TokenStream {
    if is_one {
        return quote!(Some(::pullback::dispatch::Meta::One(|args| {
            let _ = args;
            #result
        })));
    }
    quote!(Some(::pullback::dispatch::Meta::Several(|args, specs| {
        let _ = args;
        ::pullback::dispatch::IntoSpecs::push_to(#result?, specs);
        Ok(())
    })))
}

/// The count of operations, if the op has one.
fn flops(op: &Op<'_>) -> Result<TokenStream> {
    let Some(function) = op.function("flops") else {
        return match op.word("profiler_flops") {
            Some(word) => {
                Err(Error::new(word.span, "`profiler_flops` needs a function `flops` that counts"))
            }
            None => Ok(quote!(None)),
        };
    };
    let (ty, values) = (&op.name, from_args(op, function, 0)?);
    Ok(quote!(Some(|args| #ty::flops(#(#values),*))))
}

/// The words that are flags of an op, and the flags.
const FLAGS: [(&str, &str); 34] = [
    ("inplace", "INPLACE"),
    ("out", "OUT"),
    ("overload_out", "OVERLOAD_OUT"),
    ("any_out", "OUT"),
    ("any_out", "ANY_OUT"),
    ("exact_out", "OUT"),
    ("exact_out", "EXACT_OUT"),
    ("out_dtype", "OUT_DTYPE"),
    ("out_precision", "OUT_PRECISION"),
    ("view", "VIEW"),
    ("multi_view", "VIEW"),
    ("multi_view", "MULTI_VIEW"),
    ("bijective", "BIJECTIVE"),
    ("method_only", "METHOD_ONLY"),
    ("function_only", "FUNCTION_ONLY"),
    ("attribute", "ATTRIBUTE"),
    ("writable", "WRITABLE"),
    ("random", "RANDOM"),
    ("numbers", "NUMBERS_AS_TENSORS"),
    ("leading_number", "LEADING_NUMBER"),
    ("wide_numbers", "WIDE_NUMBERS"),
    ("internal", "INTERNAL"),
    ("checks_sharing", "CHECKS_SHARING"),
    ("writes_one_value", "WRITES_ONE_VALUE"),
    ("writes_leaves", "WRITES_LEAVES"),
    ("resizes_self", "RESIZES_SELF"),
    ("fills_out", "FILLS_OUT"),
    ("unresolved", "UNRESOLVED"),
    ("across_devices", "ACROSS_DEVICES"),
    ("data_dependent_output", "DATA_DEPENDENT_OUTPUT"),
    ("dynamic_output_shape", "DYNAMIC_OUTPUT_SHAPE"),
    ("profiler_flops", "PROFILER_FLOPS"),
    ("narrow_floats", "NARROW_FLOATS"),
    ("one_gradient", "ONE_GRADIENT"),
];

fn traits(op: &Op<'_>) -> TokenStream {
    let mut flags = vec![];
    for (word, flag) in FLAGS {
        if op.has(word) {
            flags.push(flag);
        }
    }
    if op.home == ItemHome::Elsewhere {
        flags.push("ELSEWHERE");
    }
    if op.word("inplace").is_some_and(|w| w.text() == "method") {
        flags.push("INPLACE_METHOD");
    }
    if op.word("not_differentiable").is_some_and(|w| w.args.is_empty()) {
        flags.push("NOT_DIFFERENTIABLE");
    }
    // A copy of what a view shows moves elements.
    if op.has("copy_of") {
        flags.push("NARROW_FLOATS");
    }
    // An op that writes into lists (an optimiser's step) has no one tensor to return.
    let first_is_tensor = op.schema.args.first().is_some_and(|a| a.ty.list.is_none());
    if op.schema.is_inplace() && first_is_tensor {
        flags.push("INPLACE_ONLY");
    }
    if op.schema.returns.first().is_some_and(|r| r.ty.list.is_some()) {
        flags.push("LIST_OUTPUT");
    }
    let is_pointwise = op.has("cpu")
        || op.function("cpu").is_some_and(|f| f.params.first().is_some_and(|(n, _)| n == "iter"));
    if is_pointwise {
        flags.push("POINTWISE");
    }
    let flags = flags.iter().map(|f| format_ident!("{f}"));
    quote!(::pullback::dispatch::Traits::NONE #(.with(::pullback::dispatch::Traits::#flags))*)
}

fn args(op: &Op<'_>, with_vjp: &[bool]) -> Result<Vec<TokenStream>> {
    let stopped = op.word("not_differentiable").map(|w| (w.args.clone(), w.span));
    if let Some((names, span)) = &stopped {
        for name in names {
            op.argument(name, *span)?;
        }
    }
    let operands = op.word("operand").map(|w| w.args.clone()).unwrap_or_default();
    let describe = |(index, arg): (usize, &pullback_schema::Argument)| {
        let name = &arg.name;
        let kind = match (arg.ty.base, arg.ty.list) {
            (Base::Scalar, None) if operands.contains(name) => "Number",
            (Base::Tensor, None) if arg.ty.optional => "OptTensor",
            (Base::Tensor, None) => "Tensor",
            (Base::Tensor, Some(list)) if list.element_optional => "OptTensors",
            (Base::Tensor, Some(_)) => "Tensors",
            _ => "Plain",
        };
        let kind = format_ident!("{kind}");
        let has_vjp = with_vjp[index];
        let stops =
            stopped.as_ref().is_some_and(|(n, _)| n.iter().any(|n| op.arg(n) == Some(index)));
        let sharing = format_ident!("{}", sharing(op, index));
        quote!(::pullback::dispatch::ArgDef {
            name: #name, kind: ::pullback::dispatch::ArgKind::#kind, has_vjp: #has_vjp, not_differentiable: #stops,
            sharing: ::pullback::dispatch::Sharing::#sharing,
        })
    };
    Ok(op.schema.args.iter().enumerate().map(describe).collect())
}

/// The memory that an argument may share with targets of `out=`. A kernel that writes into its first argument gets a
/// copy of that one only: the other arguments must be separate.
fn sharing(op: &Op<'_>, index: usize) -> &'static str {
    let says = |name: &str| {
        let names = |w: &Word| w.args.is_empty() || w.args.iter().any(|a| op.arg(a) == Some(index));
        op.is_tensor(index) && op.word(name).is_some_and(names)
    };
    let writes_copy = op.function("cpu_").is_some() && op.is_tensor(index);
    if says("separate") || (writes_copy && index > 0) {
        "Separate"
    } else if says("apart") || writes_copy {
        "Apart"
    } else {
        "Any"
    }
}

/// The gradient rules, what they save, and which arguments have one.
fn vjp(op: &Op<'_>) -> Result<(Vec<TokenStream>, Saves, Vec<bool>)> {
    let ty = &op.name;
    let mut saves = Saves::default();
    let mut rules = Vec::new();
    let mut with = vec![false; op.schema.args.len()];
    let stopped: Vec<usize> = op
        .word("not_differentiable")
        .map(|w| w.args.iter().filter_map(|n| op.arg(n)).collect())
        .unwrap_or_default();
    for function in &op.functions {
        let name = function.ident.to_string();
        let targets: Vec<usize> = if name == "vjp" {
            (0..op.schema.args.len()).filter(|i| op.is_tensor(*i) && !stopped.contains(i)).collect()
        } else if let Some(target) = name.strip_prefix("vjp_") {
            op.arg(target).into_iter().collect()
        } else {
            continue;
        };
        let number = rules.len() as u32;
        let rule = resolve(op, function, number, &targets, &mut saves)?;
        let mask = targets.iter().fold(0_u64, |m, &i| m | 1 << i);
        for &i in &targets {
            with[i] = true;
        }
        let (ident, params, grads) = (function.ident, &rule.params, rule.grads);
        rules.push(quote!(::pullback::dispatch::VjpRule {
            args: #mask,
            grads: #grads,
            call: |ctx| { let _ = ctx; Ok(::pullback::dispatch::IntoGrads::into_grads(#ty::#ident(#(#params),*)?)) },
        }));
    }
    let is_composite = op.function("composite").is_some();
    for (index, arg) in op.schema.args.iter().enumerate() {
        let is_input = op.is_tensor(index) && !INDICES.contains(&arg.name.as_str());
        if is_input
            && !rules.is_empty()
            && !is_composite
            && !with[index]
            && !stopped.contains(&index)
        {
            let name = mangle(&arg.name);
            return Err(Error::new(
                op.name.span(),
                format!(
                    "there is no rule for the gradient of `{name}`: write a function `vjp_{}`, or say `not_differentiable({name})`",
                    arg.name
                ),
            ));
        }
    }
    Ok((rules, saves, with))
}

/// Names of arguments that hold indices, masks or targets: integers and bools, which have no gradients.
const INDICES: &[&str] =
    &["index", "indices", "target", "mask", "condition", "offsets", "sorted_sequence", "out"];

fn jvp(op: &Op<'_>) -> Result<TokenStream> {
    let j = quote!(::pullback::dispatch::Jvp);
    if let Some(word) = op.word("jvp") {
        return match word.text().as_str() {
            "linear" => Ok(quote!(#j::Linear)),
            "elementwise" => Ok(quote!(#j::Elementwise)),
            _ => Err(Error::new(word.span, "expected linear or elementwise")),
        };
    }
    let Some(function) = op.function("jvp") else { return Ok(quote!(#j::None)) };
    let mut saves = Saves::default();
    let rule = resolve(op, function, 0, &[], &mut saves)?;
    let (ty, params, saves) = (&op.name, &rule.params, saves.tokens());
    let optional = takes_none(op, function);
    Ok(
        quote!(#j::Rule(#saves, #optional, |ctx| { let _ = ctx; Ok(::pullback::dispatch::IntoGrads::into_grads(#ty::jvp(#(#params),*)?)) })),
    )
}

/// The policy of autocast for the arguments.
fn autocast(op: &Op<'_>) -> Result<TokenStream> {
    let Some(word) = op.word("autocast") else { return Ok(quote!(None)) };
    match word.text().as_str() {
        "lower" => Ok(quote!(Lower)),
        "fp32" => Ok(quote!(Fp32)),
        "promote" => Ok(quote!(Promote)),
        _ => Err(Error::new(word.span, "expected lower, fp32 or promote")),
    }
}

/// The arguments, among those that are not optional, that may lack a tangent: the rule takes an `Option` of it.
fn takes_none(op: &Op<'_>, function: &ItemFunction<'_>) -> u64 {
    let mask = |(name, ty): &(syn::Ident, &syn::Type)| {
        let arg = name.to_string().strip_suffix("_t").and_then(|base| op.arg(base))?;
        let is_option = quote!(#ty).to_string().starts_with("Option");
        (is_option && !op.schema.args[arg].ty.optional).then_some(1_u64 << arg)
    };
    function.params.iter().filter_map(mask).fold(0, |all, bit| all | bit)
}

fn samples(op: &Op<'_>, view: Option<&TokenStream>) -> TokenStream {
    match op.word("samples") {
        Some(word) => {
            let path = &word.value;
            let classes = shared(op, "samples");
            quote!(Some(#classes::#path))
        }
        None => samples_fn(op, "samples", view),
    }
}

fn samples_fn(op: &Op<'_>, name: &str, view: Option<&TokenStream>) -> TokenStream {
    let (ty, ident) = (&op.name, format_ident!("{name}"));
    match view {
        _ if op.function(name).is_some() => quote!(Some(#ty::#ident)),
        Some(view) => quote!(#view.#ident),
        None => quote!(None),
    }
}
