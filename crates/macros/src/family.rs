//! Families: an item with the word `each` stands for several ops, which differ by names, numbers, types or words.
//!
//! `each(Conv1d { N: 1 }, Conv2d { N: 2 })` repeats the item for each row. Where the item's code has the name `N` it gets the
//! row's value, where its strings (signature, documentation, messages) have `{N}` the value's text. The name of the `impl` is that
//! of the op in each copy, and for the family that of a list of all. Several lists give every combination: the names of the rows
//! are joined (`_` adds nothing), and a value may contain keys of the lists behind it. A value may be empty: a key that is a word
//! of the attribute is then left out.

use crate::method::snake;
use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{Error, ItemImpl, Result};

/// The ops that an item stands for.
pub(crate) struct Family {
    /// The attribute and the block of each op.
    pub(crate) members: Vec<(TokenStream, ItemImpl)>,
    /// The static that lists their definitions, if the item has the word `each`.
    pub(crate) list: TokenStream,
}

/// One row of a list: the part that it adds to the name, and the value of each key.
struct FamilyRow {
    name: Ident,
    values: Vec<(Ident, TokenStream)>,
}

/// A copy of the item into which the rows of some of the lists are substituted.
struct Copy {
    name: String,
    attr: TokenStream,
    block: TokenStream,
}

impl Family {
    pub(crate) fn read(attr: TokenStream, block: ItemImpl) -> Result<Family> {
        let (attr, lists) = lists(attr)?;
        if lists.is_empty() {
            return Ok(Family { members: vec![(attr, block)], list: TokenStream::new() });
        }
        let syn::Type::Path(path) = &*block.self_ty else {
            return Err(Error::new_spanned(&block.self_ty, "#[op] goes on `impl Name { .. }`"));
        };
        let family = path.path.require_ident()?.clone();
        let mut copies = vec![Copy { name: String::new(), attr, block: quote!(#block) }];
        for rows in &lists {
            let filled: Result<Vec<Vec<Copy>>> = copies
                .iter()
                .map(|copy| rows.iter().map(|row| copy.filled(row)).collect())
                .collect();
            copies = filled?.into_iter().flatten().collect();
        }
        let members = copies.iter().map(|copy| copy.member(&family)).collect::<Result<_>>()?;
        let def = |name: &str| format_ident!("{}", snake(name).to_uppercase());
        let (list, defs) = (def(&family.to_string()), copies.iter().map(|copy| def(&copy.name)));
        let list = quote! {
            #[allow(dead_code, reason = "a table of contents may list the ops one by one")]
            pub(crate) static #list: &[&::pullback::dispatch::OpDef] = &[#(&#defs),*];
        };
        Ok(Family { members, list })
    }
}

impl Copy {
    /// Substitutes the values of a row.
    fn filled(&self, row: &FamilyRow) -> Result<Copy> {
        let mut used = vec![false; row.values.len()];
        let mut fill = |tokens: &TokenStream| fill(tokens.clone(), &row.values, &mut used);
        let (attr, block) = (fill(&self.attr), fill(&self.block));
        if let Some(((key, _), _)) = row.values.iter().zip(used).find(|(_, used)| !used) {
            return Err(Error::new(key.span(), format!("nothing in the item names `{key}`")));
        }
        let name = if row.name == "_" { String::new() } else { row.name.to_string() };
        Ok(Copy { name: self.name.clone() + &name, attr, block })
    }

    /// The finished op, with its own name in place of the family's.
    fn member(&self, family: &Ident) -> Result<(TokenStream, ItemImpl)> {
        let args = |name: &str| Ident::new(&format!("{name}Args"), family.span());
        let own = Ident::new(&self.name, family.span());
        let names = [(family.clone(), quote!(#own)), {
            let args_of_own = args(&self.name);
            (args(&family.to_string()), quote!(#args_of_own))
        }];
        let block = fill(self.block.clone(), &names, &mut [false; 2]);
        // (A key whose value is empty leaves nothing between two commas.)
        let words = split(self.attr.clone()).into_iter().map(TokenStream::from_iter);
        Ok((quote!(#(#words),*), syn::parse2(block)?))
    }
}

/// The attribute without its words `each`, and the rows of each.
fn lists(attr: TokenStream) -> Result<(TokenStream, Vec<Vec<FamilyRow>>)> {
    let (mut words, mut lists) = (Vec::new(), Vec::new());
    for word in split(attr) {
        match word.as_slice() {
            [TokenTree::Ident(name), TokenTree::Group(rows)] if name == "each" => {
                lists.push(read_rows(rows, name.span())?);
            }
            _ => words.push(word.into_iter().collect::<TokenStream>()),
        }
    }
    Ok((quote!(#(#words),*), lists))
}

fn read_rows(rows: &Group, span: Span) -> Result<Vec<FamilyRow>> {
    let rows = split(rows.stream()).into_iter().map(FamilyRow::read).collect::<Result<Vec<_>>>()?;
    let Some(first) = rows.first() else {
        return Err(Error::new(span, "a family has rows: each(Name { KEY: value, .. }, ..)"));
    };
    for row in &rows {
        let lacks =
            |other: &FamilyRow, key: &Ident| !other.values.iter().any(|(known, _)| known == key);
        let missing = first.values.iter().find(|(key, _)| lacks(row, key));
        if let Some((key, _)) = missing {
            return Err(Error::new(row.name.span(), format!("this row gives no `{key}`")));
        }
        if let Some((key, _)) = row.values.iter().find(|(key, _)| lacks(first, key)) {
            return Err(Error::new(key.span(), format!("the first row gives no `{key}`")));
        }
    }
    Ok(rows)
}

impl FamilyRow {
    fn read(tokens: Vec<TokenTree>) -> Result<FamilyRow> {
        const FORM: &str =
            "a row is `Name { KEY: value, .. }`, with `_` for a name that adds nothing";
        let span = tokens.first().map_or_else(Span::call_site, TokenTree::span);
        let [TokenTree::Ident(name), TokenTree::Group(values)] = tokens.as_slice() else {
            return Err(Error::new(span, FORM));
        };
        if values.delimiter() != Delimiter::Brace {
            return Err(Error::new(span, FORM));
        }
        let value = |tokens: Vec<TokenTree>| match tokens.as_slice() {
            [TokenTree::Ident(key), TokenTree::Punct(colon), value @ ..]
                if colon.as_char() == ':' =>
            {
                if key.to_string().chars().any(char::is_lowercase) {
                    return Err(Error::new(key.span(), "keys are written in capital letters"));
                }
                Ok((key.clone(), value.iter().cloned().collect()))
            }
            _ => Err(Error::new(name.span(), FORM)),
        };
        let values = split(values.stream()).into_iter().map(value).collect::<Result<_>>()?;
        Ok(FamilyRow { name: name.clone(), values })
    }
}

/// Splits the tokens at commas.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    for token in tokens {
        match &token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => parts.push(Vec::new()),
            _ => parts.last_mut().expect("there is one part at least").push(token),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Substitutes values for keys; notes in `used` which keys occurred.
fn fill(tokens: TokenStream, values: &[(Ident, TokenStream)], used: &mut [bool]) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => match values.iter().position(|(key, _)| *key == name) {
                Some(at) => {
                    used[at] = true;
                    out.extend(values[at].1.clone());
                }
                None => out.extend([TokenTree::Ident(name)]),
            },
            TokenTree::Group(group) => {
                let mut filled = Group::new(group.delimiter(), fill(group.stream(), values, used));
                filled.set_span(group.span());
                out.extend([TokenTree::Group(filled)]);
            }
            TokenTree::Literal(literal) => {
                out.extend([TokenTree::Literal(fill_text(literal, values, used))]);
            }
            punct @ TokenTree::Punct(_) => out.extend([punct]),
        }
    }
    out
}

/// Substitutes the values' texts for `{KEY}` in a string.
fn fill_text(literal: Literal, values: &[(Ident, TokenStream)], used: &mut [bool]) -> Literal {
    let mut text = literal.to_string();
    if !text.contains('{') {
        return literal;
    }
    for ((key, value), used) in values.iter().zip(used) {
        let key = format!("{{{key}}}");
        if text.contains(&key) {
            *used = true;
            let value = value.to_string();
            let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(&value);
            text = text.replace(&key, value);
        }
    }
    let mut filled: Literal = text.parse().expect("a string stays a string");
    filled.set_span(literal.span());
    filled
}
