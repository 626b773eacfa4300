//! Gathers the pages of the site in one folder: those of `docs/`, and the documents of the repository's root.
//!
//! In the repository they link to each other across two folders, in the site they lie side by side: [`flattened`] takes
//! the folders out of the links. A link to anything else of the repository would lead nowhere in the site, where mkdocs
//! refuses it.

use crate::Result;
use crate::environment;
use std::fs;
use std::path::Path;

/// The documents of the root that are pages of the site.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Makes `folder` hold the pages, and nothing that an earlier run left there.
pub(super) fn gather(root: &Path, folder: &Path) -> Result<()> {
    remove(folder)?;
    copy(&root.join("docs"), folder)?;
    for name in DOCUMENTS {
        copy_file(&root.join(name), &folder.join(name))?;
    }
    let mut count = 0;
    for entry in entries(folder)? {
        if entry.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&entry)
                .map_err(|error| format!("cannot read {}: {error}", entry.display()))?;
            environment::write(&entry, &flattened(&text))?;
            count += 1;
        }
    }
    println!("    {count} pages");
    Ok(())
}

/// The text of a page whose neighbours lie beside it: `](../CONTRIBUTING.md` and `](docs/ops.md` lose their folder.
fn flattened(text: &str) -> String {
    let mut text = text.replace("](docs/", "](");
    for name in DOCUMENTS {
        text = text.replace(&format!("](../{name}"), &format!("]({name}"));
    }
    text
}

/// Copies a folder with all that is in it, over what is there.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(|error| format!("cannot make {}: {error}", to.display()))?;
    for entry in entries(from)? {
        let Some(name) = entry.file_name() else { continue };
        let target = to.join(name);
        if entry.is_dir() { copy(&entry, &target)? } else { copy_file(&entry, &target)? }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(|_| ())
        .map_err(|error| format!("cannot copy {}: {error}", from.display()))
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let listing = fs::read_dir(folder)
        .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut paths: Vec<_> = listing.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    paths.sort();
    Ok(paths)
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_the_two_folders_lose_them() {
        let text = "[a](../ARCHITECTURE.md#code-map) [b](docs/ops.md) [c](memory.md) [d](https://e.org/docs/x)";
        let expected =
            "[a](ARCHITECTURE.md#code-map) [b](ops.md) [c](memory.md) [d](https://e.org/docs/x)";
        assert_eq!(flattened(text), expected);
    }

    #[test]
    fn a_folder_holds_what_was_gathered_and_nothing_older() {
        let folder = std::env::temp_dir().join(format!("xtask-gather-{}", std::process::id()));
        let (root, made) = (folder.join("root"), folder.join("made"));
        fs::create_dir_all(root.join("docs/pictures")).unwrap();
        fs::create_dir_all(&made).unwrap();
        for (name, text) in [
            ("docs/index.md", "[a](../ARCHITECTURE.md)"),
            ("docs/pictures/p.svg", "<svg/>"),
            ("ARCHITECTURE.md", "[i](docs/index.md)"),
            ("CONTRIBUTING.md", ""),
            ("CHANGELOG.md", ""),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        fs::write(made.join("old.md"), "").unwrap();
        gather(&root, &made).unwrap();
        assert_eq!(fs::read_to_string(made.join("index.md")).unwrap(), "[a](ARCHITECTURE.md)");
        assert_eq!(fs::read_to_string(made.join("ARCHITECTURE.md")).unwrap(), "[i](index.md)");
        assert!(made.join("pictures/p.svg").is_file() && !made.join("old.md").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
