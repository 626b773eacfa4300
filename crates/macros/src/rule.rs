//! The meaning of a rule's parameters, and the values that a node must save for them.

use crate::item::{ItemFunction, Op, mangle, suggestion};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, Ident, Result};

/// Everything saved for an op's rules, each thing once.
#[derive(Default)]
pub(crate) struct Saves {
    /// (kind, index, users)
    list: Vec<(&'static str, usize, u32)>,
    /// The flags among the arguments, which the node's facts keep.
    flags: Vec<usize>,
}

impl Saves {
    fn slot(&mut self, kind: &'static str, index: usize, rule: u32) -> usize {
        let users = 1_u32 << rule;
        if let Some(at) = self.list.iter().position(|(k, i, _)| (*k, *i) == (kind, index)) {
            self.list[at].2 |= users;
            return at;
        }
        self.list.push((kind, index, users));
        self.list.len() - 1
    }
    /// The expression that fetches argument `arg` from `ctx` in rule number `rule`.
    fn input(&mut self, op: &Op<'_>, arg: usize, rule: u32) -> TokenStream {
        if op.is_flag(arg) && arg < 16 {
            if !self.flags.contains(&arg) {
                self.flags.push(arg);
            }
            return quote!(::pullback::dispatch::Arg::Bool(ctx.flag(#arg)));
        }
        let slot = self.slot("Input", arg, rule);
        quote!(ctx.value(#slot))
    }
    pub(crate) fn flags(&self) -> TokenStream {
        let flags = &self.flags;
        quote!(&[#(#flags),*])
    }
    pub(crate) fn tokens(&self) -> TokenStream {
        let items = self.list.iter().map(|(kind, index, users)| {
            let kind = format_ident!("{kind}");
            quote!(::pullback::dispatch::Save { what: ::pullback::dispatch::SaveKind::#kind, index: #index, users: #users })
        });
        quote!(&[#(#items),*])
    }
}

/// One rule ready to be called.
pub(crate) struct RuleParams {
    /// The outputs whose gradients the rule reads, one bit each.
    pub(crate) grads: u64,
    /// The expressions that fetch its parameters from `ctx`.
    pub(crate) params: Vec<TokenStream>,
}

/// Finds the meaning of each parameter of `function`, rule number `rule`.
pub(crate) fn resolve(
    op: &Op<'_>,
    function: &ItemFunction<'_>,
    rule: u32,
    targets: &[usize],
    saves: &mut Saves,
) -> Result<RuleParams> {
    let mut grads = 0;
    let mut params = Vec::new();
    for (name, _) in &function.params {
        params.push(one(op, name, rule, targets, saves, &mut grads)?);
    }
    Ok(RuleParams { grads: if grads == 0 { u64::MAX } else { grads }, params })
}

const SUFFIXES: &[(&str, &str)] = &[
    ("_dtype", "DType"),
    ("_column_major", "ColumnMajor"),
    ("_strides", "Strides"),
    ("_storage_offset", "Offset"),
    ("_shapes", "Shapes"),
    ("_shape", "Shape"),
    ("_spec", "Spec"),
];

/// The value of one parameter; notes in `saves` what the node must keep for it, and in `grads` which gradients are read.
fn one(
    op: &Op<'_>,
    param: &Ident,
    rule: u32,
    targets: &[usize],
    saves: &mut Saves,
    grads: &mut u64,
) -> Result<TokenStream> {
    let (name, span) = (param.to_string(), param.span());
    let from = quote_spanned!(span=> ::pullback::dispatch::FromArg::from_arg);
    if name == "grad" {
        if op.arg("grad").is_some() {
            return Err(Error::new(
                span,
                "`grad` is an argument of this op, and also what a rule calls the gradient of its output: write `grad_result` for the gradient of the output, `grad_p` for the argument",
            ));
        }
        *grads |= 1;
        return Ok(quote_spanned!(span=> #from(ctx.grad(0))));
    }
    if name == "grads" {
        *grads = u64::MAX;
        return Ok(quote_spanned!(span=> ctx.grads));
    }
    if name == "needs" {
        return Ok(quote_spanned!(span=> ctx.needs([#(#targets),*])));
    }
    if name == "args" {
        let (fields, values): (Vec<_>, Vec<_>) = (0..op.schema.args.len())
            .filter(|&i| !op.is_tensor(i))
            .map(|i| {
                let value = saves.input(op, i, rule);
                (format_ident!("{}", mangle(&op.schema.args[i].name)), quote!(#from(#value)))
            })
            .unzip();
        let ty = format_ident!("{}Args", op.name);
        return Ok(
            quote_spanned!(span=> &#ty { #(#fields: #values,)* marker: std::marker::PhantomData }),
        );
    }
    if let Some(output) = name.strip_prefix("grad_").and_then(|o| op.output(o)) {
        *grads |= 1 << output;
        return Ok(quote_spanned!(span=> #from(ctx.grad(#output))));
    }
    if let Some(output) = op.output(&name).filter(|_| op.arg(&name).is_none()) {
        let slot = saves.slot("Output", output, rule);
        return Ok(quote_spanned!(span=> #from(ctx.value(#slot))));
    }
    if let Some(arg) = op.arg(&name) {
        let value = saves.input(op, arg, rule);
        return Ok(quote_spanned!(span=> #from(#value)));
    }
    if let Some(fact) = geometry(op, param, rule, saves)? {
        return Ok(fact);
    }
    if let Some(arg) = name.strip_suffix("_p").and_then(|b| op.arg(b)) {
        let slot = saves.slot("Input", arg, rule);
        return Ok(quote_spanned!(span=> #from(ctx.value(#slot))));
    }
    if let Some(arg) = name.strip_suffix("_t").and_then(|b| op.arg(b)) {
        return Ok(quote_spanned!(span=> #from(ctx.tangent(#arg))));
    }
    Err(unknown(op, param))
}

/// A parameter that is a property of a tensor argument, as `self_shape`: its dtype and layout are facts of the node, the other
/// properties are saved.
fn geometry(
    op: &Op<'_>,
    param: &Ident,
    rule: u32,
    saves: &mut Saves,
) -> Result<Option<TokenStream>> {
    let (name, span) = (param.to_string(), param.span());
    let found = SUFFIXES.iter().find_map(|(suffix, kind)| {
        let arg = name.strip_suffix(suffix).and_then(|base| op.arg(base))?;
        op.is_tensor(arg).then_some((arg, *kind))
    });
    let Some((arg, kind)) = found else { return Ok(None) };
    if !matches!(kind, "DType" | "ColumnMajor") {
        let slot = saves.slot(kind, arg, rule);
        return Ok(Some(
            quote_spanned!(span=> ::pullback::dispatch::FromArg::from_arg(ctx.value(#slot))),
        ));
    }
    if arg >= if kind == "DType" { 12 } else { 16 } {
        let message = "nodes keep dtypes of the first 12 arguments, other facts of the first 16";
        return Err(Error::new(span, message));
    }
    let method = if kind == "DType" { "dtype" } else { "is_column_major" };
    let method = format_ident!("{method}", span = span);
    Ok(Some(quote_spanned!(span=> ctx.#method(#arg))))
}

/// The error for a parameter that names nothing of the signature.
fn unknown(op: &Op<'_>, param: &Ident) -> Error {
    let name = param.to_string();
    let mut known: Vec<String> = op.schema.args.iter().map(|a| mangle(&a.name)).collect();
    known.extend(op.outputs());
    let with_suffixes: Vec<String> = (known.iter())
        .flat_map(|name| SUFFIXES.iter().map(move |(suffix, _)| format!("{name}{suffix}")))
        .collect();
    Error::new(
        param.span(),
        format!(
            "`{name}` is neither `grad`, an argument nor an output of the signature{}\nA rule's parameters are grad, grad_<output>, needs, args and {} (also with _shape, _strides, _storage_offset, _dtype, _column_major, _spec).",
            suggestion(&name, known.iter().chain(&with_suffixes).map(String::as_str)),
            known.join(", ")
        ),
    )
}
