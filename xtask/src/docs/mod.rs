//! `cargo xtask docs`: the pages as a site that works from its folder, without a server and without a network.
//!
//! The pages of `docs/` and the documents of the repository's root are gathered in one folder ([`gather`]), mkdocs makes
//! `target/site` of them (`mkdocs.yml`), rustdoc's pages go into `target/site/api`, and [`site`] looks at every link of the
//! result. `--check` is for the tests and needs none of that: it runs the programs of the pages and checks their links as
//! they stand in Markdown (`python/tests/test_pages.py`, and the documentation tests for Rust).

mod gather;
mod site;

use crate::argument::Arguments;
use crate::environment::{self, Environment};
use crate::extension::{self, Profile, cargo};
use crate::step::Report;
use crate::{Result, command, step};
use std::fs;
use std::path::Path;
use std::process::Command;

const REQUIREMENTS: &str = include_str!("../../site-requirements.txt");
const STAMP: &str = ".pullback-site";

pub(crate) fn command(root: &Path, mut arguments: Arguments) -> Result<()> {
    let only_check = arguments.flag("--check");
    arguments.finish()?;
    let environment = environment::setup(root)?;
    if only_check { check(root, &environment) } else { build(root, &environment) }
}

/// Runs every program of the pages, and checks their links.
fn check(root: &Path, environment: &Environment) -> Result<()> {
    let mut report = Report::default();
    let installed =
        report.step("extension", || extension::build_and_install(root, environment, Profile::Dev));
    if installed {
        report.step("pages", || {
            let mut python = Command::new(&environment.python);
            python.current_dir(root).args(["-m", "pytest", "-q"]);
            command::run(python.args(["python/tests/test_pages.py", "python/tests/test_readme.py"]))
        });
    } else {
        report.skip("pages", "the extension could not be built");
    }
    // (The filter is the module of each library that includes the pages.)
    report.step("programs in Rust", || {
        let packages = ["--package", "pullback", "--package", "pullback-nn"];
        command::run(cargo(root).arg("test").args(packages).args(["--doc", "--", "pages::"]))
    });
    report.finish()
}

fn build(root: &Path, environment: &Environment) -> Result<()> {
    step::single("tools of the site", || install(root, environment))?;
    // (The path that `mkdocs.yml` names.)
    let (source, target) = (root.join("target/site-source"), root.join("target/site"));
    step::single("pages", || gather::gather(root, &source))?;
    step::single("mkdocs", || {
        let mut mkdocs = Command::new(&environment.python);
        // (Its advertisement is longer than its report.)
        mkdocs.current_dir(root).env("NO_MKDOCS_2_WARNING", "1");
        command::run(mkdocs.args(["-m", "mkdocs", "build", "--strict", "--quiet"]))
    })?;
    step::single("rustdoc", || {
        let mut doc = environment.cargo(root);
        command::run(doc.args([
            "doc",
            "--package",
            "pullback",
            "--package",
            "pullback-nn",
            "--no-deps",
            "--quiet",
        ]))?;
        gather::copy(&extension::target(root).join("doc"), &target.join("api"))
    })?;
    step::single("links of the site", || site::check(&target))?;
    println!("\n{}", target.join("index.html").display());
    Ok(())
}

/// Installs mkdocs and its theme, unless a stamp says that they are there.
fn install(root: &Path, environment: &Environment) -> Result<()> {
    let stamp = environment.site_packages.join(STAMP);
    let wanted = environment::stamp_of(REQUIREMENTS);
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        println!("    they are there");
        return Ok(());
    }
    let mut pip = Command::new(&environment.python);
    pip.current_dir(root).args(["-m", "pip", "install", "--disable-pip-version-check", "--quiet"]);
    command::run(pip.args(["--requirement", "xtask/site-requirements.txt"]))?;
    environment::write(&stamp, &wanted)
}

#[cfg(test)]
mod tests {
    use super::REQUIREMENTS;

    #[test]
    fn every_tool_of_the_site_is_pinned() {
        let lines = REQUIREMENTS.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        assert!(lines.clone().any(|line| line.starts_with("mkdocs-material==")));
        for line in lines {
            assert!(line.contains("=="), "{line}");
        }
    }
}
