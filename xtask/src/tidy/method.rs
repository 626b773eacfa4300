//! The inherent methods of `Tensor` and `Node`: who defines which, and where they are called.
//!
//! Text has no types: see [`Methods::is_shared`] for what is done about names that other types have too.

use super::family;
use super::library::module_of;
use super::reference::{Token, tokens};
use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// The types whose methods are looked at.
const TYPES: [&str; 2] = ["Tensor", "Node"];
const TENSOR: usize = 0;
/// Methods of the standard library's types, and of those of other crates, that tensors have too.
const STANDARD: &str = "\
    abs acos acosh add addr all and any append as_ref as_slice asin asinh atan atan2 atanh ceil \
    chunk chunks clamp clear clone cmp concat contains copy cos cosh count div div_euclid entry \
    eq exp exp2 exp_m1 extend fill fill_ filter find first flat_map flatten floor fold ge get gt \
    index insert into is_finite is_nan is_some iter join keys last le len ln log log10 log2 lt \
    map max min min_by mul name ne neg next nth or permute pop position pow product push reduce \
    rem remove repeat replace resize rev reverse rotate_left rotate_right round scan set sign \
    signum sin sinh size skip sort split split_at sqrt square sub sum swap take transpose trunc \
    type_id unique unzip values view zip";

const KERNELS: &str = "crates/kernels/src/";

/// Which modules define which methods.
#[derive(Default)]
pub(super) struct Methods {
    /// The modules by the names of methods, for each of the types.
    homes: BTreeMap<String, [BTreeSet<String>; TYPES.len()]>,
    /// Functions of other types, by their names.
    others: BTreeSet<String>,
}

/// The call of a method.
pub(super) struct Call {
    pub(super) line: usize,
    /// The modules that define it: of several if the type is not known, or has it in several forms.
    pub(super) homes: Vec<String>,
    /// The name in messages.
    pub(super) spelled: String,
}

impl Methods {
    /// Reads all sources of the library.
    pub(super) fn read(sources: &[Source]) -> Methods {
        let mut methods = Methods::default();
        for source in sources.iter().filter(|source| source.is_rust()) {
            if let Some(module) = module_of(source) {
                methods.add(source, &module);
            } else if source.path.starts_with(KERNELS) {
                methods.add_others(source);
            }
        }
        methods
    }

    /// Types of the kernels have methods that tensors have too.
    fn add_others(&mut self, source: &Source) {
        let code = source.code_without_tests();
        let tokens = tokens(&code);
        let names = tokens.windows(2).filter(|two| two[0].text == "fn");
        self.others.extend(names.map(|two| two[1].text.to_owned()));
    }

    fn add(&mut self, source: &Source, module: &str) {
        let code = source.code_without_tests();
        let tokens = tokens(&code);
        for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "impl") {
            let opening = tokens[at..].iter().position(|t| t.text == "{");
            let Some(opening) = opening.map(|length| at + length) else { continue };
            let is_typed = tokens[at + 1..opening].len() == 1;
            let of = TYPES.iter().position(|of| is_typed && tokens[at + 1].text == *of);
            for name in functions(&tokens[opening..]) {
                match of {
                    Some(of) => {
                        self.homes.entry(name).or_default()[of].insert(module.to_owned());
                    }
                    // The functions of an op's item are rules and kernels: nobody calls them as methods.
                    None if is_op(&tokens[..at]) => {}
                    None => {
                        self.others.insert(name);
                    }
                }
            }
        }
        for name in made(source, &code) {
            self.homes.entry(name).or_default()[TENSOR].insert(module.to_owned());
        }
    }

    /// The modules that define a method of this type, or of any.
    fn homes(&self, name: &str, of: Option<usize>) -> Vec<String> {
        let all = self.homes.get(name).into_iter().flat_map(|homes| homes.iter().enumerate());
        let those = all.filter(|(at, _)| of.is_none_or(|of| of == *at));
        those.flat_map(|(_, homes)| homes).cloned().collect()
    }

    /// Whether types that are not looked at have a method of that name.
    fn is_shared(&self, name: &str) -> bool {
        STANDARD.split_whitespace().any(|standard| standard == name) || self.others.contains(name)
    }
}

/// Whether the item that begins after these words is an op's.
fn is_op(before: &[Token<'_>]) -> bool {
    let attribute = before.iter().rposition(|token| matches!(token.text, ";" | "}"));
    let words = &before[attribute.map_or(0, |at| at + 1)..];
    words
        .windows(3)
        .any(|three| three[0].text == "#" && three[1].text == "[" && three[2].text == "op")
}

/// The functions right inside of the braces that the tokens begin with.
fn functions(tokens: &[Token<'_>]) -> Vec<String> {
    let (mut depth, mut names) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            "fn" if depth == 1 => names.extend(tokens.get(at + 1).map(|t| t.text.to_owned())),
            _ => {}
        }
    }
    names
}

/// The methods that `#[op]` makes of the items in a source.
fn made(source: &Source, code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("#[op(") {
        let Some(end) = code[at..].find(")]").map(|length| at + length) else { continue };
        let Some(signature) = source.literals.iter().find(|literal| literal.at > at) else {
            continue;
        };
        let Some(item) = words(&code[end..]).skip_while(|word| *word != "impl").nth(1) else {
            continue;
        };
        let attribute = &code[at..end];
        let is_writing =
            signature.value.split(['(', '.']).next().is_some_and(|name| name.ends_with('_'));
        let suffix = if is_writing { "_" } else { "" };
        let members = family::members(source, signature.at);
        let stems = match attribute.split_once(" method = ") {
            Some((_, rest)) => vec![words(rest).next().unwrap_or_default().to_owned()],
            None if members.is_empty() => vec![snake(item) + suffix],
            None => members.iter().map(|member| snake(&member.name) + suffix).collect(),
        };
        for stem in stems {
            for form in ["", "_", "_out"] {
                names.push(format!("{stem}{form}"));
                names.push(format!("{stem}{form}_with"));
            }
        }
    }
    names
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// `SumDim` is `sum_dim`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, c) in name.char_indices() {
        if c.is_ascii_uppercase() && index > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The methods that code calls, `x.name(`, or names, `Tensor::name`.
pub(super) fn calls(tokens: &[Token<'_>], methods: &Methods) -> Vec<Call> {
    let mut found = Vec::new();
    let mut scope = Scope::default();
    for (at, token) in tokens.iter().enumerate() {
        scope.step(tokens, at);
        let text = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at].text);
        if !token.is_word() || !methods.homes.contains_key(token.text) {
            continue;
        }
        let path = TYPES.iter().position(|of| text(1) == "::" && text(2) == *of);
        let is_call =
            text(1) == "." && tokens.get(at + 1).is_some_and(|t| matches!(t.text, "(" | "::"));
        let is_tensor = text(3) != "." && scope.is_tensor(text(2));
        if path.is_none() && !(is_call && (is_tensor || !methods.is_shared(token.text))) {
            continue;
        }
        let of = path.or(is_tensor.then_some(TENSOR));
        let homes = methods.homes(token.text, of);
        if !homes.is_empty() {
            let spelled = format!("{}::{}", TYPES[of.unwrap_or(TENSOR)], token.text);
            found.push(Call { line: token.line, homes, spelled });
        }
    }
    found
}

/// The names that are known at a position.
#[derive(Default)]
struct Scope<'a> {
    /// The parameters of the function that are tensors.
    tensors: BTreeSet<&'a str>,
    /// The depth of the braces of `impl Tensor`, if the position is inside of it.
    own: Option<usize>,
    depth: usize,
}

impl<'a> Scope<'a> {
    fn step(&mut self, tokens: &[Token<'a>], at: usize) {
        match tokens[at].text {
            "impl" if tokens.get(at + 1).is_some_and(|t| t.text == "Tensor") => {
                let is_inherent = tokens.get(at + 2).is_some_and(|t| t.text == "{");
                self.own = is_inherent.then_some(self.depth);
            }
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.own = self.own.filter(|own| *own < self.depth);
            }
            "fn" => self.tensors.clear(),
            ":" => {
                let rest: Vec<&str> = tokens[at + 1..].iter().take(3).map(|t| t.text).collect();
                let is_tensor = matches!(
                    rest[..],
                    ["Tensor", "," | ")" | "=", ..] | ["&", "Tensor", "," | ")" | "="]
                );
                if is_tensor && at > 0 {
                    self.tensors.insert(tokens[at - 1].text);
                }
            }
            _ => {}
        }
    }

    fn is_tensor(&self, name: &str) -> bool {
        self.tensors.contains(name) || name == "self" && self.own.is_some()
    }
}
