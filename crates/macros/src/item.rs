//! Reads the attribute's words and the block's functions.

use proc_macro2::{Span, TokenStream};
use pullback_schema::{Base, Schema};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprLit, FnArg, Ident, ImplItem, ItemImpl, Lit, Meta, Pat, PatType, Result, Token,
    parse::Parser, spanned::Spanned,
};

/// The crate that an item is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemHome {
    /// In the crate `pullback`: its expansion may name what is private there.
    Library,
    /// In another crate: its expansion names what `pullback::custom` shows.
    Elsewhere,
}

/// The words that an item in another crate cannot use, because they name functions of the library
/// that are not public.
const LIBRARY_ONLY: [&str; 4] = ["copy_of", "sparse", "sparse_coo", "sparse_csr"];

/// One op as it is written in the source.
pub(crate) struct Op<'a> {
    pub(crate) home: ItemHome,
    pub(crate) schema: Schema,
    pub(crate) text: String,
    pub(crate) block: &'a ItemImpl,
    pub(crate) name: Ident,
    pub(crate) functions: Vec<ItemFunction<'a>>,
    pub(crate) words: Vec<Word>,
}

/// One function of the block: its name and parameters.
pub(crate) struct ItemFunction<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) params: Vec<(Ident, &'a syn::Type)>,
    pub(crate) output: &'a syn::ReturnType,
}

/// One word of the attribute: `inplace`, `alias("x")`, `jvp = linear`.
pub(crate) struct Word {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) value: Option<TokenStream>,
    pub(crate) span: Span,
}

/// The words that an attribute can have, and what they mean.
const WORDS: &str = include_str!("words.md");
/// The functions that a block can have, and what they mean.
const FUNCTIONS: &str = include_str!("functions.md");

/// The names in the first column of a table.
fn names(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next())
}

/// "; did you mean `x`?" with the one of `names` that `wrong` is nearest to, if two typing mistakes explain it.
pub(crate) fn suggestion<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> String {
    let distances = names.map(|name| (distance(wrong, name), name));
    let nearest = distances.min().filter(|&(n, name)| n <= 2 && n < name.len());
    nearest.map(|(_, name)| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The number of letters that must be inserted, deleted, replaced or swapped with the next to make `b` of `a` (Damerau
/// 1964).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

impl<'a> Op<'a> {
    pub(crate) fn read(home: ItemHome, attr: TokenStream, block: &'a ItemImpl) -> Result<Op<'a>> {
        let mut exprs = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(attr)?.into_iter();
        let Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) = exprs.next() else {
            return Err(Error::new(
                block.span(),
                "the first argument of #[op] is the signature string",
            ));
        };
        let schema = Schema::parse(&text.value())
            .map_err(|e| Error::new(text.span(), format!("not a signature: {e}")))?;
        let words = exprs.map(Word::read).collect::<Result<Vec<_>>>()?;
        let syn::Type::Path(path) = &*block.self_ty else {
            return Err(Error::new(block.self_ty.span(), "#[op] goes on `impl Name { .. }`"));
        };
        let name = path.path.require_ident()?.clone();
        let functions = block.items.iter().map(ItemFunction::read).collect::<Result<Vec<_>>>()?;
        let op = Op { home, schema, text: text.value(), block, name, functions, words };
        op.check_functions()?;
        op.check_home()?;
        Ok(op)
    }

    fn check_functions(&self) -> Result<()> {
        for function in &self.functions {
            let name = function.ident.to_string();
            if let Some(target) = name.strip_prefix("vjp_") {
                self.argument(target, function.ident.span())?;
            } else if !names(FUNCTIONS).any(|known| known == name) {
                let known = || names(FUNCTIONS).filter(|known| !known.contains('<'));
                return Err(Error::new(
                    function.ident.span(),
                    format!(
                        "an op has no function `{name}`{}\nIt has vjp_<argument> and {}.",
                        suggestion(&name, known()),
                        known().collect::<Vec<_>>().join(", ")
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Refuses words that only the library's own ops can use.
    fn check_home(&self) -> Result<()> {
        let words = self.words.iter().map(|word| (word.name.clone(), word.span));
        let functions = self.functions.iter().map(|f| (f.ident.to_string(), f.ident.span()));
        let found = words.chain(functions).find(|(name, _)| LIBRARY_ONLY.contains(&name.as_str()));
        match found {
            Some((name, span)) if self.home == ItemHome::Elsewhere => Err(Error::new(
                span,
                format!("`{name}` is for the ops of the crate pullback itself"),
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn function(&self, name: &str) -> Option<&ItemFunction<'a>> {
        self.functions.iter().find(|f| f.ident == name)
    }
    pub(crate) fn word(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|w| w.name == name)
    }
    pub(crate) fn has(&self, name: &str) -> bool {
        self.word(name).is_some()
    }
    /// The argument whose Rust name is `name`.
    pub(crate) fn arg(&self, name: &str) -> Option<usize> {
        let name = if name == "self" { "self_" } else { name };
        self.schema.args.iter().position(|a| mangle(&a.name) == name)
    }
    /// The argument whose Rust name is `name`, or an error at `span`.
    pub(crate) fn argument(&self, name: &str, span: Span) -> Result<usize> {
        self.arg(name).ok_or_else(|| {
            let names: Vec<String> = self.schema.args.iter().map(|a| mangle(&a.name)).collect();
            let nearest = suggestion(name, names.iter().map(String::as_str));
            Error::new(
                span,
                format!(
                    "the signature has no argument `{name}`{nearest}\nIts arguments are {}.",
                    names.join(", ")
                ),
            )
        })
    }
    /// The output whose name is `name`.
    pub(crate) fn output(&self, name: &str) -> Option<usize> {
        self.outputs().iter().position(|o| mangle(o) == name)
    }
    /// Names of the outputs: `result`, or `result0`, ... where the signature gives none.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let many = self.schema.returns.len() > 1;
        let default = |i: usize| if many { format!("result{i}") } else { "result".to_string() };
        let names = self.schema.returns.iter().enumerate();
        names.map(|(i, r)| r.name.clone().unwrap_or_else(|| default(i))).collect()
    }
    pub(crate) fn is_tensor(&self, arg: usize) -> bool {
        self.schema.args[arg].ty.base == Base::Tensor
    }
    /// Whether an argument is a `bool` that is not optional.
    pub(crate) fn is_flag(&self, arg: usize) -> bool {
        let ty = &self.schema.args[arg].ty;
        ty.base == Base::Bool && !ty.optional && ty.list.is_none()
    }
}

impl<'a> ItemFunction<'a> {
    fn read(item: &'a ImplItem) -> Result<ItemFunction<'a>> {
        let ImplItem::Fn(f) = item else {
            return Err(Error::new(item.span(), "an op's block holds functions only"));
        };
        let params = f.sig.inputs.iter().map(|input| match input {
            FnArg::Typed(PatType { pat, ty, .. }) => match &**pat {
                Pat::Ident(name) => Ok((name.ident.clone(), &**ty)),
                other => Err(Error::new(other.span(), "parameters are plain names")),
            },
            FnArg::Receiver(r) => {
                Err(Error::new(r.span(), "functions of an op take no receiver; use `self_`"))
            }
        });
        let params = params.collect::<Result<_>>()?;
        Ok(ItemFunction { ident: &f.sig.ident, params, output: &f.sig.output })
    }
}

impl Word {
    fn read(expr: Expr) -> Result<Word> {
        let span = expr.span();
        let (name, args, value) = match expr {
            Expr::Path(path) => (path.path.require_ident()?.to_string(), Vec::new(), None),
            Expr::Call(call) => {
                let args = call.args.iter().map(|a| match a {
                    Expr::Lit(ExprLit { lit: Lit::Str(s), .. }) => s.value(),
                    other => other.to_token_stream().to_string(),
                });
                (call.func.to_token_stream().to_string(), args.collect(), None)
            }
            Expr::Assign(assign) => (
                assign.left.to_token_stream().to_string(),
                Vec::new(),
                Some(assign.right.to_token_stream()),
            ),
            other => {
                return Err(Error::new(other.span(), "expected a word, word(..) or word = .."));
            }
        };
        if !names(WORDS).any(|known| known == name) {
            return Err(Error::new(
                span,
                format!(
                    "#[op] has no word `{name}`{}\nIts words are {}.",
                    suggestion(&name, names(WORDS)),
                    names(WORDS).collect::<Vec<_>>().join(", ")
                ),
            ));
        }
        Ok(Word { name, args, value, span })
    }
    /// The value as plain text, quotes removed.
    pub(crate) fn text(&self) -> String {
        self.value.as_ref().map(|v| v.to_string().trim_matches('"').to_string()).unwrap_or_default()
    }
}

/// The Rust name of a name in a signature.
pub(crate) fn mangle(name: &str) -> String {
    match name {
        "self" => "self_".into(),
        "type" | "where" | "move" | "ref" | "in" | "loop" | "unsafe" => format!("{name}_"),
        other => other.to_lowercase(),
    }
}

/// The doc comment's lines.
pub(crate) fn doc(block: &ItemImpl) -> String {
    let lines = block.attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(s), .. }) => {
                Some(s.value().strip_prefix(' ').map_or_else(|| s.value(), str::to_string))
            }
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}
