//! The modules of `crates/pullback/src`: what each defines, and what the paths and methods in them mean.
//!
//! Names are resolved as the compiler does it, through imports, renames, globs and what modules hand on; what a file that is
//! not there would define is taken as it is spelled. Methods are resolved by name: those of `Tensor` and `Node`, the ones
//! that `#[op]` makes included. Where other types have a method of that name, a call counts only on what is known to be a
//! tensor: a parameter of that type, `self` of its methods, or a path `Tensor::name`.

use super::method::{Call, Methods, calls};
use super::reference::{Reference, Token, references, tokens};
use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

const LIBRARY: &str = "crates/pullback/src/";
/// The largest number of modules through which a name is followed.
const DEPTH: usize = 12;

/// A use of what another module defines.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
pub(super) struct Arrow {
    pub(super) line: usize,
    /// The modules that define it, `autograd::graph::node`, empty for the crate's root: one, or those that have such a method.
    pub(super) homes: Vec<String>,
    /// The item; none where a module itself is meant.
    pub(super) item: Option<String>,
}

impl Arrow {
    /// The name in messages.
    pub(super) fn spelled(&self) -> String {
        let mut text = "crate".to_owned();
        let home = self.homes.first().map_or("", String::as_str);
        for part in [home, self.item.as_deref().unwrap_or_default()] {
            if !part.is_empty() {
                text.push_str("::");
                text.push_str(part);
            }
        }
        text
    }
}

/// One module.
#[derive(Default)]
struct Module {
    items: BTreeSet<String>,
    /// Absolute paths by the names they are known by.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// All modules of the library.
#[derive(Default)]
pub(super) struct Library {
    modules: BTreeMap<String, Module>,
    methods: Methods,
}

/// The module a file of the library holds; none for tests and other crates.
pub(super) fn module_of(source: &Source) -> Option<String> {
    let path = source.path.strip_prefix(LIBRARY)?.strip_suffix(".rs")?;
    let mut segments: Vec<&str> = path.split('/').collect();
    if segments.contains(&"tests") {
        return None;
    }
    if matches!(segments.last(), Some(&"mod" | &"lib")) {
        segments.pop();
    }
    Some(segments.join("::"))
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn split(module: &str) -> Vec<String> {
    module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

impl Library {
    /// Reads all sources of the library.
    pub(super) fn read(sources: &[Source]) -> Library {
        let known: BTreeSet<String> = sources.iter().filter_map(module_of).collect();
        let mut library = Library { methods: Methods::read(sources), ..Library::default() };
        for source in sources {
            let Some(name) = module_of(source) else { continue };
            let code = source.code_without_tests();
            let tokens = tokens(&code);
            let mut module = Module { items: items(&tokens), ..Module::default() };
            for Reference { segments, name: by, .. } in references(&tokens) {
                // A path that starts with another word is of another crate.
                let is_child = known.contains(&join(&name, &segments[0]));
                let Some(by) = by.filter(|_| is_child || starts_here(&segments)) else { continue };
                let target = absolute(&segments, &name);
                if by == "*" {
                    module.globs.push(target);
                } else {
                    module.imports.insert(by, target);
                }
            }
            library.modules.insert(name, module);
        }
        library
    }

    /// Everything that `source` uses of other modules.
    pub(super) fn arrows(&self, source: &Source) -> BTreeSet<Arrow> {
        let Some(own) = module_of(source) else { return BTreeSet::new() };
        let code = source.code_without_tests();
        let tokens = tokens(&code);
        let mut found = BTreeSet::new();
        for reference in references(&tokens) {
            let Some(target) = self.meant(&own, &reference.segments, reference.name.is_some())
            else {
                continue;
            };
            let (module, item) = self.resolve(&target, DEPTH);
            found.insert(Arrow { line: reference.line, homes: vec![module], item });
        }
        self.by_globs(&own, &tokens, &mut found);
        for call in calls(&tokens, &self.methods) {
            let Call { line, homes, spelled } = call;
            found.insert(Arrow { line, homes, item: Some(spelled) });
        }
        found.retain(|arrow| !arrow.homes.contains(&own));
        found
    }

    /// The absolute path of one that is written in `own`; none if it leads out of the crate.
    fn meant(&self, own: &str, segments: &[String], is_use: bool) -> Option<Vec<String>> {
        let first = segments.first()?;
        if starts_here(segments) {
            return Some(absolute(segments, own));
        }
        let module = self.modules.get(own)?;
        let known = if self.modules.contains_key(&join(own, first)) {
            let mut path = split(own);
            path.push(first.clone());
            path
        } else {
            module.imports.get(first).filter(|path| !is_use && path[..] != segments[..1])?.clone()
        };
        Some(known.into_iter().chain(segments[1..].iter().cloned()).collect())
    }

    /// Names that stand alone and come from a glob.
    fn by_globs(&self, own: &str, tokens: &[Token<'_>], found: &mut BTreeSet<Arrow>) {
        let Some(module) = self.modules.get(own) else { return };
        for (at, token) in tokens.iter().enumerate() {
            let is_part = at > 0 && matches!(tokens[at - 1].text, "::" | ".");
            let is_own =
                module.items.contains(token.text) || module.imports.contains_key(token.text);
            if !token.is_word() || is_part || is_own {
                continue;
            }
            for glob in &module.globs {
                let (target, None) = self.resolve(glob, DEPTH) else { continue };
                if let Some(at) = self.find(&target, token.text, DEPTH) {
                    let item = Some(token.text.to_owned());
                    found.insert(Arrow { line: token.line, homes: vec![at], item });
                }
            }
        }
    }

    /// The module that defines what the absolute path leads to, and the item; none if it is a module.
    fn resolve(&self, path: &[String], depth: usize) -> (String, Option<String>) {
        let mut module = String::new();
        for (at, segment) in path.iter().enumerate() {
            let (child, is_last) = (join(&module, segment), at + 1 == path.len());
            let here = self.modules.get(&module);
            let import = here.and_then(|here| here.imports.get(segment));
            let is_child = self.modules.contains_key(&child);
            if is_child && !(is_last && import.is_some()) {
                module = child;
                continue;
            }
            if let Some(target) = import.filter(|_| depth > 0) {
                let target: Vec<String> = target.iter().chain(&path[at + 1..]).cloned().collect();
                return self.resolve(&target, depth - 1);
            }
            if here.is_some_and(|here| here.items.contains(segment)) {
                return (module, Some(segment.clone()));
            }
            if let Some(home) = self.find(&module, segment, depth) {
                return (home, Some(segment.clone()));
            }
            // Not known: the path stays as it is spelled.
            let mut spelled = split(&module);
            spelled.extend_from_slice(&path[at..path.len() - 1]);
            return (spelled.join("::"), path.last().cloned());
        }
        (module, None)
    }

    /// The module that defines what `module` has under a name.
    fn find(&self, module: &str, name: &str, depth: usize) -> Option<String> {
        let here = self.modules.get(module)?;
        if here.items.contains(name) {
            return Some(module.to_owned());
        }
        let depth = depth.checked_sub(1)?;
        if let Some(target) = here.imports.get(name) {
            return Some(self.resolve(target, depth).0);
        }
        here.globs.iter().find_map(|glob| match self.resolve(glob, depth) {
            (target, None) => self.find(&target, name, depth),
            _ => None,
        })
    }
}

/// Whether a path says itself that it is of this crate.
fn starts_here(path: &[String]) -> bool {
    matches!(path[0].as_str(), "crate" | "super" | "self")
}

/// A path from the crate's root.
fn absolute(path: &[String], module: &str) -> Vec<String> {
    let mut segments = split(module);
    for word in path {
        match word.as_str() {
            "crate" => segments.clear(),
            "super" => {
                segments.pop();
            }
            "self" => {}
            // (A use that starts with a word starts with a child, or another crate.)
            _ => segments.push(word.clone()),
        }
    }
    segments
}

/// What a module defines by itself, outside of braces.
fn items(tokens: &[Token<'_>]) -> BTreeSet<String> {
    const KINDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];
    let mut names = BTreeSet::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            kind if depth == 0 && KINDS.contains(&kind) => {
                let name = tokens[at + 1..].iter().find(|t| t.is_word() && t.text != "mut");
                names.extend(name.map(|token| token.text.to_owned()));
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the last of these files uses, `path: text`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(format!("{LIBRARY}{path}"), *text))
            .collect();
        let library = Library::read(&sources);
        let found = library.arrows(sources.last().unwrap());
        found.iter().map(|arrow| format!("{}:{}", arrow.line, arrow.spelled())).collect()
    }

    const NODE: (&str, &str) = ("graph/node.rs", "pub struct Node; pub fn make() {}");
    const FACE: (&str, &str) = ("graph/mod.rs", "mod node; pub use node::{Node as Vertex, make};");

    #[test]
    fn names_lead_to_the_module_that_defines_them() {
        assert_eq!(
            arrows(&[NODE, FACE, ("a.rs", "use crate::graph::Vertex;")]),
            ["1:crate::graph::node::Node"]
        );
        assert_eq!(
            arrows(&[NODE, FACE, ("a.rs", "use super::graph as g;\nfn f() { g::make() }")]),
            ["1:crate::graph", "2:crate::graph::node::make"]
        );
        assert_eq!(
            arrows(&[NODE, FACE, ("b/c.rs", "fn f() { super::super::graph::make() }")]),
            ["1:crate::graph::node::make"]
        );
    }

    #[test]
    fn names_that_come_by_a_glob_are_found() {
        let text = "use crate::graph::*;\nfn f(v: Vertex) {\n make() }";
        let found = arrows(&[NODE, FACE, ("a.rs", text)]);
        assert!(
            found.contains(&"2:crate::graph::node".to_owned())
                || found.contains(&"2:crate::graph::node::Vertex".to_owned()),
            "{found:?}"
        );
        assert!(found.contains(&"3:crate::graph::node::make".to_owned()), "{found:?}");
    }

    #[test]
    fn a_modules_own_names_are_no_arrows() {
        assert!(
            arrows(&[("a.rs", "use std::fmt; fn f() { g(); Self::h(); fmt::write() } fn g() {}")])
                .is_empty()
        );
    }

    #[test]
    fn methods_lead_to_the_modules_that_define_them() {
        let defined =
            ("ops/unary.rs", "impl Tensor { pub fn double(&self) {} pub fn any(&self) {} }");
        let made = (
            "ops/more.rs",
            "#[op(\"erf(Tensor self) -> Tensor\", inplace, out)]\nimpl Erf { fn vjp() {} }",
        );
        let user = |text| arrows(&[defined, made, ("tensor/view.rs", text)]);
        assert_eq!(user("fn f() { x.double() }"), ["1:crate::ops::unary::Tensor::double"]);
        assert_eq!(
            user("fn f() { x\n.erf_()?\n.erf_out(y) }"),
            ["2:crate::ops::more::Tensor::erf_", "3:crate::ops::more::Tensor::erf_out"]
        );
        assert_eq!(user("fn f() { list.map(Tensor::erf) }"), ["1:crate::ops::more::Tensor::erf"]);
        assert!(user("fn f() { list.iter().any(g) }").is_empty());
        assert_eq!(user("fn f(x: &Tensor) { x.any() }"), ["1:crate::ops::unary::Tensor::any"]);
        let node = ("graph/node.rs", "impl Node { pub fn double(&self) {} }");
        let both = |text| arrows(&[defined, node, ("graph/node.rs", text)]);
        assert!(both("fn f() { x.double() }").is_empty());
        assert_eq!(
            both("fn f(x: &Tensor) { x.double() }"),
            ["1:crate::ops::unary::Tensor::double"]
        );
        assert!(user("fn f(x: &Tensor) {} fn g(x: &[u8]) { x.any() }").is_empty());
        assert_eq!(
            user("impl Tensor { fn f(&self) { self.any() } }"),
            ["1:crate::ops::unary::Tensor::any"]
        );
    }
}
