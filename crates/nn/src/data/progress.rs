//! A progress bar.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The width of the bar in characters.
const WIDTH: usize = 30;
/// The interval between two drawings of the bar.
const PERIOD: Duration = Duration::from_millis(100);

/// A bar on the standard error of a terminal; where that is no terminal, nothing is written.
///
/// ```
/// use pullback_nn::data::Progress;
/// let mut sum = 0;
/// let mut progress = Progress::new("adding", 100);
/// for number in 0..100 {
///     sum += number;
///     progress.advance(&[("sum", f64::from(sum))]);
/// }
/// progress.finish();
/// assert_eq!(sum, 4950);
/// ```
#[derive(Debug)]
pub struct Progress {
    title: String,
    total: usize,
    done: usize,
    started: Instant,
    drawn: Option<Instant>,
    is_shown: bool,
    text: String,
}

impl Progress {
    /// A bar for this number of steps.
    pub fn new(title: impl Into<String>, total: usize) -> Self {
        Progress {
            title: title.into(),
            total,
            done: 0,
            started: Instant::now(),
            drawn: None,
            is_shown: std::io::stderr().is_terminal(),
            text: String::new(),
        }
    }

    /// Advances the bar by one step, with numbers to show.
    pub fn advance(&mut self, numbers: &[(&str, f64)]) {
        self.done += 1;
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD);
        if self.is_shown && (is_due || self.done == self.total) {
            self.drawn = Some(Instant::now());
            self.text = self.line(numbers);
            eprint!("\r\x1b[2K{}", self.text);
            std::io::stderr().flush().ok();
        }
    }

    /// Ends the line.
    pub fn finish(self) {
        if self.is_shown && self.drawn.is_some() {
            eprintln!();
        }
    }

    fn line(&self, numbers: &[(&str, f64)]) -> String {
        let part = (self.done as f64 / self.total.max(1) as f64).min(1.0);
        let full = (part * WIDTH as f64) as usize;
        let mut line = format!(
            "{} [{}{}] {}/{}",
            self.title,
            "#".repeat(full),
            ".".repeat(WIDTH - full),
            self.done,
            self.total
        );
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = elapsed / self.done.max(1) as f64 * self.total.saturating_sub(self.done) as f64;
        let _ = write!(line, " {elapsed:.0}s, {left:.0}s left");
        for (name, number) in numbers {
            let _ = write!(line, "  {name} {number:.4}");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_part_and_numbers() {
        let mut progress = Progress::new("epoch 1", 4);
        progress.advance(&[]);
        progress.advance(&[]);
        let line = progress.line(&[("loss", 0.5)]);
        assert!(line.starts_with(&format!("epoch 1 [{}{}] 2/4", "#".repeat(15), ".".repeat(15))));
        assert!(line.ends_with("loss 0.5000"), "{line}");
    }

    #[test]
    fn more_steps_than_there_are_fill_the_bar() {
        let mut progress = Progress::new("x", 1);
        progress.advance(&[]);
        progress.advance(&[]);
        assert!(progress.line(&[]).contains(&"#".repeat(WIDTH)));
    }
}
