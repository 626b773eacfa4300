//! `cargo xtask supply`: the licences of all dependencies, and which of them are there twice, against `deny.toml`.
//!
//! The rules are written in the form that `cargo deny` reads, so that either program checks them. This one asks `cargo tree`
//! alone: it needs no installation and no network, and knows no advisories; `cargo deny check advisories` does, where it is
//! installed and the network is there.

use crate::Result;
use crate::argument::Arguments;
use crate::command;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const RULES: &str = "deny.toml";

pub(crate) fn command(root: &Path, arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    println!("    {}", check(root)?);
    Ok(())
}

/// Checks every package of the lock file, for every platform; says how many there are.
pub(crate) fn check(root: &Path) -> Result<String> {
    let rules = fs::read_to_string(root.join(RULES))
        .map_err(|error| format!("cannot read {RULES}: {error}"))?;
    let allowed = list(&rules, "allow")?;
    let twice = list(&rules, "skip")?;
    let mut tree = Command::new("cargo");
    tree.current_dir(root).args(["tree", "--workspace", "--locked", "--offline"]);
    // (Of the platforms that the package is built for: the packages of others may not be downloaded.)
    tree.args(["--prefix", "none", "--format", "{p}|{l}", "--no-dedupe"]);
    let packages: BTreeSet<Package> =
        command::capture(&mut tree)?.lines().filter_map(Package::parse).collect();
    let mut wrong: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(&package.licence, &allowed))
        .map(|package| format!("{} has the licence `{}`", package.title(), package.licence))
        .collect();
    wrong.extend(duplicates(&packages, &twice));
    if wrong.is_empty() {
        return Ok(format!(
            "supply: {} packages, licences and duplicates as in {RULES}",
            packages.len()
        ));
    }
    Err(format!("{RULES} does not allow:\n{}", wrong.join("\n")))
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    licence: String,
}

impl Package {
    /// A line of `cargo tree`: `half v2.7.1|MIT OR Apache-2.0`; words after the version say where a package lies.
    fn parse(line: &str) -> Option<Self> {
        let (package, licence) = line.split_once('|')?;
        let mut words = package.split(' ');
        let name = words.next()?.to_owned();
        let version = words.next()?.trim_start_matches('v').to_owned();
        Some(Self { name, version, licence: licence.to_owned() })
    }

    fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// Packages with several versions that the rules do not name, and names in the rules that have one.
fn duplicates(packages: &BTreeSet<Package>, twice: &[String]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let several: BTreeMap<_, _> =
        versions.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
    let mut wrong: Vec<String> = several
        .iter()
        .filter(|(name, _)| !twice.iter().any(|known| known == *name))
        .map(|(name, versions)| format!("{name} is there with versions {versions:?}"))
        .collect();
    let gone = twice.iter().filter(|name| !several.contains_key(name.as_str()));
    wrong.extend(gone.map(|name| format!("`{name}` in `skip` is there once now: remove the line")));
    wrong
}

/// Whether an expression of licences can be met: one side of each `OR`, both of each `AND`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let text = expression.trim();
    if let Some((left, right)) = split(text, " OR ").or_else(|| split(text, "/")) {
        return is_allowed(left, allowed) || is_allowed(right, allowed);
    }
    if let Some((left, right)) = split(text, " AND ") {
        return is_allowed(left, allowed) && is_allowed(right, allowed);
    }
    if let Some(inside) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        return is_allowed(inside, allowed);
    }
    allowed.iter().any(|licence| licence == text)
}

/// The two sides of the first `word` that stands in no parentheses.
fn split<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let outside = |at: usize| {
        let before = &text[..at];
        before.matches('(').count() == before.matches(')').count()
    };
    let (at, _) = text.match_indices(word).find(|&(at, _)| outside(at))?;
    Some((&text[..at], &text[at + word.len()..]))
}

/// The texts of `NAME = [ ... ]`, the first of each line (`"half", # why` or `{ name = "half" },`).
fn list(rules: &str, name: &str) -> Result<Vec<String>> {
    let start = format!("{name} = [");
    let mut lines = rules.lines().skip_while(|line| *line != start);
    lines.next().ok_or_else(|| format!("{RULES} has no `{start}` on a line of its own"))?;
    let entries = lines.take_while(|line| *line != "]");
    Ok(entries.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_expression_is_allowed_if_it_can_be_met() {
        let allowed = words("MIT Unicode-3.0");
        assert!(is_allowed("MIT OR Apache-2.0", &allowed));
        assert!(is_allowed("Apache-2.0/MIT", &allowed));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
        assert!(!is_allowed("MIT AND GPL-3.0", &allowed));
        assert!(!is_allowed("GPL-3.0 OR Apache-2.0", &allowed));
        assert!(!is_allowed("", &allowed));
    }

    #[test]
    fn versions_that_no_rule_names_and_rules_without_versions_are_reported() {
        let lines = ["syn v1.0.1|MIT", "syn v2.0.1|MIT", "half v2.7.1 (proc-macro)|MIT"];
        let packages: BTreeSet<_> = lines.iter().filter_map(|line| Package::parse(line)).collect();
        assert_eq!(packages.len(), 3);
        assert!(duplicates(&packages, &words("syn")).is_empty());
        assert!(duplicates(&packages, &[])[0].starts_with("syn is there with versions"));
        assert!(duplicates(&packages, &words("syn half"))[0].contains("`half`"));
    }

    #[test]
    fn lists_are_read_line_by_line() {
        let rules = "[licenses]\nallow = [\n    \"MIT\", # ours\n    \"Zlib\",\n]\nother = []\n";
        assert_eq!(list(rules, "allow"), Ok(words("MIT Zlib")));
        assert!(list(rules, "skip").unwrap_err().contains("skip = ["));
    }
}
