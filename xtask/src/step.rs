//! Steps of a longer run: a header when one starts, its duration when it ends, a summary at the close.
//!
//! A failed step does not stop the run: the person sees everything that is wrong at once. The summary repeats each
//! runner's own closing line, so that the end of the output tells the whole result.

use crate::Result;
use crate::command::Kept;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The result of a step for the summary.
pub(crate) struct Done {
    pub(crate) closing: Vec<String>,
    pub(crate) result: Result<()>,
}

impl From<Result<()>> for Done {
    fn from(result: Result<()>) -> Self {
        Self { closing: Vec::new(), result }
    }
}

impl From<Kept> for Done {
    fn from(kept: Kept) -> Self {
        Self { closing: kept.lines, result: kept.result }
    }
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
    Absent(String),
}

struct Row {
    name: String,
    outcome: Outcome,
    took: Duration,
    closing: Vec<String>,
}

/// The steps that have been run.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Runs one step; returns whether it passed.
    pub(crate) fn step<D: Into<Done>>(&mut self, name: &str, action: impl FnOnce() -> D) -> bool {
        let (done, took) = timed(name, || action().into());
        let outcome = match done.result {
            Ok(()) => Outcome::Passed,
            Err(message) => {
                println!("    error: {message}");
                Outcome::Failed(message)
            }
        };
        let passed = matches!(outcome, Outcome::Passed);
        println!("    {} in {}", if passed { "ok" } else { "FAILED" }, seconds(took));
        self.rows.push(Row { name: name.to_owned(), outcome, took, closing: done.closing });
        passed
    }

    /// Notes a step that could not be run. It counts as a failure: nothing was checked.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        println!("\n==> {name}\n    not run: {reason}");
        self.note(name, Outcome::Skipped(reason.to_owned()));
    }

    /// Notes a step whose tool is not on this machine and that nobody asked for by name. It is no failure.
    pub(crate) fn absent(&mut self, name: &str, missing: &str) {
        println!("\n==> {name}\n    not on this machine: {missing}");
        self.note(name, Outcome::Absent(missing.to_owned()));
    }

    fn note(&mut self, name: &str, outcome: Outcome) {
        self.rows.push(Row {
            name: name.to_owned(),
            outcome,
            took: Duration::ZERO,
            closing: vec![],
        });
    }

    /// Prints the summary; an error names the steps that did not pass.
    pub(crate) fn finish(self) -> Result<()> {
        print!("{}", self.summary());
        let bad: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| !matches!(row.outcome, Outcome::Passed | Outcome::Absent(_)))
            .map(|row| row.name.as_str())
            .collect();
        if bad.is_empty() {
            return Ok(());
        }
        Err(format!("{} of {} steps did not pass: {}", bad.len(), self.rows.len(), bad.join(", ")))
    }

    fn summary(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let mut text = String::from("\n==> summary\n");
        for row in &self.rows {
            let (word, why) = match &row.outcome {
                Outcome::Passed => ("ok", None),
                Outcome::Failed(message) => ("FAILED", message.lines().next()),
                Outcome::Skipped(reason) => ("not run", Some(reason.as_str())),
                Outcome::Absent(missing) => ("absent", Some(missing.as_str())),
            };
            let took = seconds(row.took);
            let why = why.map_or_else(String::new, |why| format!("  {why}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {word:7} {:width$}  {took:>8}{why}", row.name);
        }
        for line in self.rows.iter().flat_map(|row| &row.closing) {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// Runs one step of a command that stops at the first failure.
pub(crate) fn single<T>(name: &str, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let (result, took) = timed(name, action);
    if result.is_ok() {
        println!("    ok in {}", seconds(took));
    }
    result.map_err(|message| format!("{name}: {message}"))
}

fn timed<T>(name: &str, action: impl FnOnce() -> T) -> (T, Duration) {
    println!("\n==> {name}");
    let start = Instant::now();
    let value = action();
    (value, start.elapsed())
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_failures_ends_well() {
        let mut report = Report::default();
        assert!(report.step("first", || Ok(())));
        assert_eq!(report.finish(), Ok(()));
    }

    #[test]
    fn failures_and_steps_not_run_are_all_named() {
        let mut report = Report::default();
        assert!(report.step("good", || Ok(())));
        assert!(!report.step("bad", || Err("broke\nbadly".to_owned())));
        report.skip("late", "bad failed");
        let text = report.summary();
        assert!(text.contains("FAILED  bad") && text.contains("  broke\n"), "{text}");
        assert!(text.contains("not run late") && text.contains("bad failed"), "{text}");
        assert!(report.finish().unwrap_err().contains("2 of 3 steps did not pass: bad, late"));
    }

    #[test]
    fn a_tool_that_is_absent_is_named_and_is_no_failure() {
        let mut report = Report::default();
        report.absent("miri", "install it");
        let text = report.summary();
        assert!(text.contains("absent  miri") && text.contains("install it"), "{text}");
        assert_eq!(report.finish(), Ok(()));
    }

    #[test]
    fn the_summary_ends_with_the_closing_lines() {
        let mut report = Report::default();
        let lines = vec!["2 passed in 0.1s".to_owned()];
        report.step("pytest", || Kept { lines, result: Ok(()) });
        assert!(report.summary().ends_with("2 passed in 0.1s\n"));
    }
}
