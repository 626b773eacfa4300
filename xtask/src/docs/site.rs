//! The links of the finished site: each leads to a file, each anchor to a place in it, and nothing is loaded from elsewhere.
//!
//! mkdocs checks what stands in Markdown; this looks at what a browser will read, the theme's own lines included. Rustdoc's
//! pages below `api/` are asked only whether they are there: their links are rustdoc's business.

use crate::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Attributes of a tag that a browser follows or loads.
const ADDRESSES: [&str; 2] = ["href", "src"];
/// The page for servers; its addresses begin at the root of a host.
const SERVERS_OWN: &str = "404.html";

/// The links of a page and the anchors that it offers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    /// The tag and the address.
    asked: Vec<(String, String)>,
    anchors: BTreeSet<String>,
}

/// Prints what is wrong with the site in `folder`; an error if something is.
pub(super) fn check(folder: &Path) -> Result<()> {
    let pages = read(folder)?;
    let mut wrong = Vec::new();
    for (name, page) in &pages {
        for (tag, address) in &page.asked {
            if let Some(why) = broken(folder, &pages, name, tag, address) {
                wrong.push(format!("{name}: <{tag}> {address}: {why}"));
            }
        }
    }
    let count: usize = pages.values().map(|page| page.asked.len()).sum();
    if wrong.is_empty() {
        println!("    {count} links of {} pages lead somewhere", pages.len());
        return Ok(());
    }
    Err(format!("{} of {count} links are broken:\n{}", wrong.len(), wrong.join("\n")))
}

fn read(folder: &Path) -> Result<BTreeMap<String, Page>> {
    let listing = fs::read_dir(folder)
        .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut pages = BTreeMap::new();
    for path in listing.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "html") && name != SERVERS_OWN {
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            pages.insert(name, page(&text));
        }
    }
    Ok(pages)
}

/// Why a link leads nowhere, or may not be there.
fn broken(
    folder: &Path,
    pages: &BTreeMap<String, Page>,
    from: &str,
    tag: &str,
    address: &str,
) -> Option<&'static str> {
    if address.contains("://") || address.starts_with("//") {
        return (tag != "a").then_some("is loaded from another host");
    }
    if address.starts_with("data:") || address.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = address.split_once('#').unwrap_or((address, ""));
    let path = path.split('?').next().unwrap_or_default();
    let path = if path.is_empty() { from } else { path.trim_start_matches("./") };
    let path = if path == "." { "index.html" } else { path };
    if !folder.join(path).is_file() {
        return Some("there is no such file");
    }
    let page = pages.get(path)?;
    // (An empty anchor is the top of the page.)
    let is_there = anchor.is_empty() || page.anchors.contains(anchor);
    (!is_there).then_some("there is no such anchor")
}

/// Reads the tags of a page. Text in comments, scripts and styles does not count.
fn page(text: &str) -> Page {
    let mut page = Page::default();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some((tag, after)) = rest.split_once('>') else { break };
        rest = after;
        let name = tag.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        for (attribute, value) in attributes(tag) {
            if ADDRESSES.contains(&attribute) {
                page.asked.push((name.clone(), value.replace("&amp;", "&")));
            } else if matches!(attribute, "id" | "name") {
                page.anchors.insert(value.to_owned());
            }
        }
        if matches!(name.as_str(), "script" | "style") {
            let end = format!("</{name}");
            rest = rest.find(&end).map_or("", |at| &rest[at..]);
        }
    }
    page
}

/// The attributes of a tag that have a value, quoted or not. (The theme's HTML leaves quotes out where it may.)
fn attributes(tag: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once('=') {
        let name = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let (value, next) = match after.chars().next() {
            Some(quote @ ('"' | '\'')) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
            _ => after.split_once(char::is_whitespace).unwrap_or((after, "")),
        };
        found.push((name, value));
        rest = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_and_scripts_are_not() {
        let text = "<a class=x href=\"b.html#c\">b</a> <h2 id='d'>d</h2> <!-- <a href=no> -->\
                    <script>let a = '<img src=no>'</script><img src=p.svg alt=\"a = b\">";
        let page = page(text);
        let asked = [("a", "b.html#c"), ("img", "p.svg")];
        assert_eq!(page.asked, asked.map(|(tag, to)| (tag.to_owned(), to.to_owned())));
        assert!(page.anchors.contains("d") && page.anchors.len() == 1);
    }

    #[test]
    fn broken_links_are_told_from_good_ones() {
        let folder = std::env::temp_dir().join(format!("xtask-site-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("b.html", "<h2 id=c>c</h2>");
        write(
            "index.html",
            "<a href=b.html#c></a><a href=#top></a><p id=top><a href=https://e.org>",
        );
        check(&folder).unwrap();
        for (text, why) in [
            ("<a href=x.html>", "no such file"),
            ("<a href=b.html#d>", "no such anchor"),
            ("<a href=#d>", "no such anchor"),
            ("<script src=https://e.org/a.js></script>", "another host"),
            ("<link rel=stylesheet href=\"//e.org/a.css\">", "another host"),
        ] {
            write("index.html", text);
            let message = check(&folder).unwrap_err();
            assert!(message.contains(why) && message.contains("1 of 1"), "{message}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
