//! Reading the words after a command's name: flags, valued options, and what follows `--`.
//!
//! Each reader removes what it recognised; [`Arguments::finish`] rejects the rest, so that a misspelt option is never
//! ignored.

use crate::Result;

#[derive(Debug)]
pub(crate) struct Arguments {
    words: Vec<String>,
    rest: Vec<String>,
}

impl Arguments {
    pub(crate) fn new(mut words: Vec<String>) -> Self {
        let rest = match words.iter().position(|word| word == "--") {
            Some(at) => words.split_off(at).split_off(1),
            None => Vec::new(),
        };
        Self { words, rest }
    }

    /// Whether `--name` was given, once or more often.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// The value of `--name VALUE` or `--name=VALUE`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>> {
        let prefix = format!("{name}=");
        let Some(at) = self.words.iter().position(|w| w == name || w.starts_with(&prefix)) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        let value = if let Some(value) = word.strip_prefix(&prefix) {
            value.to_owned()
        } else if self.words.get(at).is_some_and(|next| !next.starts_with("--")) {
            self.words.remove(at)
        } else {
            return Err(format!("{name} needs a value"));
        };
        if self.words.iter().any(|w| w == name || w.starts_with(&prefix)) {
            return Err(format!("{name} is given twice"));
        }
        Ok(Some(value))
    }

    /// The value of `--name`, empty if it stands without one; `None` if it is not there.
    pub(crate) fn optional_value(&mut self, name: &str) -> Result<Option<String>> {
        let has_value =
            |at: usize| self.words.get(at + 1).is_some_and(|next| !next.starts_with("--"));
        match self.words.iter().position(|word| word == name) {
            Some(at) if !has_value(at) => {
                self.words.remove(at);
                Ok(Some(String::new()))
            }
            _ => self.value(name),
        }
    }

    /// Takes what follows `--`.
    pub(crate) fn take_rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.rest)
    }

    /// A positive whole number given as `--name N`, or `default`.
    pub(crate) fn count(&mut self, name: &str, default: usize) -> Result<usize> {
        match self.value(name)? {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|&n| n > 0)
                .ok_or_else(|| format!("{name} needs a positive whole number, not `{text}`")),
        }
    }

    /// A positive number given as `--name X`.
    pub(crate) fn positive(&mut self, name: &str) -> Result<Option<f64>> {
        let Some(text) = self.value(name)? else { return Ok(None) };
        match text.parse() {
            Ok(number) if number > 0.0 => Ok(Some(number)),
            _ => Err(format!("{name} needs a positive number, not `{text}`")),
        }
    }

    /// The first word, if it is no option: what a command is to do. Later words may be the values of options.
    pub(crate) fn subject(&mut self) -> Option<String> {
        let is_subject = self.words.first().is_some_and(|word| !word.starts_with('-'));
        is_subject.then(|| self.words.remove(0))
    }

    /// What follows `--`, once everything before it has been recognised.
    pub(crate) fn rest(self) -> Result<Vec<String>> {
        match self.words.first() {
            Some(word) => Err(format!("`{word}` is not understood here")),
            None => Ok(self.rest),
        }
    }

    /// Ends a command that takes nothing more.
    pub(crate) fn finish(self) -> Result<()> {
        match self.rest()?.first() {
            Some(word) => Err(format!("this command takes nothing after `--`, but got `{word}`")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Arguments {
        Arguments::new(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn flags_are_taken_and_the_rest_is_rejected() {
        let mut arguments = of("--rust --lnit");
        assert!(arguments.flag("--rust") && !arguments.flag("--python"));
        assert!(arguments.finish().unwrap_err().contains("--lnit"));
    }

    #[test]
    fn values_come_in_both_spellings() {
        let mut arguments = of("--only ^A --reference=python3");
        assert_eq!(arguments.value("--reference"), Ok(Some("python3".to_owned())));
        assert_eq!(arguments.value("--only"), Ok(Some("^A".to_owned())));
        assert_eq!(arguments.value("--json"), Ok(None));
        assert_eq!(arguments.finish(), Ok(()));
    }

    #[test]
    fn missing_and_repeated_values_are_errors() {
        assert!(of("--only").value("--only").is_err());
        assert!(of("--only --threads 2").value("--only").is_err());
        assert!(of("--only a --only=b").value("--only").is_err());
    }

    #[test]
    fn a_value_may_be_optional() {
        assert_eq!(of("--lint").optional_value("--sanitize"), Ok(None));
        assert_eq!(of("--sanitize --lint").optional_value("--sanitize"), Ok(Some(String::new())));
        let mut arguments = of("--lint --sanitize loom -- -k x");
        assert_eq!(arguments.optional_value("--sanitize"), Ok(Some("loom".to_owned())));
        assert_eq!(arguments.take_rest(), ["-k", "x"]);
        assert!(arguments.flag("--lint") && arguments.finish().is_ok());
    }

    #[test]
    fn counts_are_positive_whole_numbers() {
        assert_eq!(of("").count("--threads", 1), Ok(1));
        assert_eq!(of("--threads 2").count("--threads", 1), Ok(2));
        assert!(of("--threads 0").count("--threads", 1).is_err());
        assert!(of("--threads two").count("--threads", 1).unwrap_err().contains("`two`"));
    }

    #[test]
    fn numbers_are_positive() {
        assert_eq!(of("").positive("--limit"), Ok(None));
        assert_eq!(of("--limit 1.25").positive("--limit"), Ok(Some(1.25)));
        assert!(of("--limit NaN").positive("--limit").is_err());
        assert!(of("--limit 0").positive("--limit").unwrap_err().contains("`0`"));
    }

    #[test]
    fn only_the_first_word_is_a_subject() {
        let mut arguments = of("small --only softmax");
        assert_eq!(arguments.subject().as_deref(), Some("small"));
        assert_eq!(arguments.subject(), None);
        assert_eq!(of("").subject(), None);
    }

    #[test]
    fn words_after_the_double_dash_are_passed_on_unread() {
        let mut arguments = of("--rust -- --rust -k name");
        assert!(arguments.flag("--rust"));
        assert_eq!(arguments.rest(), Ok(vec!["--rust".into(), "-k".into(), "name".into()]));
        assert!(of("-- x").finish().is_err());
    }
}
