//! What a part of `cargo xtask test` is asked to run by `--FLAG [NAME] [-- WORDS]`: all that this machine has the tools for, or
//! what the name stands for, whose tools must then be there. Words after `--` go to the tests of one item.

use crate::Result;
use crate::argument::Arguments;
use crate::step::Report;

/// The choices of a flag.
pub(crate) struct Choice<T: 'static> {
    /// The flag: `--sanitize`.
    pub(crate) flag: &'static str,
    /// What an item is, for messages: `sanitizer`.
    pub(crate) item: &'static str,
    /// The names, and the items that each stands for, in the order they run.
    pub(crate) names: &'static [(&'static str, &'static [T])],
    /// The items without a name.
    pub(crate) all: &'static [T],
}

/// The items that were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection<T: 'static> {
    pub(crate) items: &'static [T],
    /// Whether a missing tool is an error: they were asked for by name.
    is_named: bool,
    /// The words after `--`.
    pub(crate) words: Vec<String>,
}

impl<T> Choice<T> {
    /// Reads the flag, its name and its words; `None` if the flag is not there.
    ///
    /// # Errors
    /// A name that is not among the names; words that would go to the tests of more than one item.
    pub(crate) fn read(&self, arguments: &mut Arguments) -> Result<Option<Selection<T>>> {
        let Some(name) = arguments.optional_value(self.flag)? else { return Ok(None) };
        let words = arguments.take_rest();
        let is_named = !name.is_empty();
        let named = self.names.iter().find(|(known, _)| *known == name);
        let items = match named {
            Some((_, items)) => items,
            None if !is_named => self.all,
            None => {
                let names: Vec<&str> = self.names.iter().map(|(name, _)| *name).collect();
                return Err(format!("{} knows {}, not `{name}`", self.flag, names.join(", ")));
            }
        };
        if !words.is_empty() && items.len() > 1 {
            return Err(format!("words after `--` go to the tests of one {}: name it", self.item));
        }
        Ok(Some(Selection { items, is_named, words }))
    }
}

impl<T> Selection<T> {
    /// Runs the items whose tools are there, and reports the others: as failed if they were asked for by name. `name` is that of
    /// an item's step, `missing` says what its tools lack.
    pub(crate) fn run(
        &self,
        report: &mut Report,
        name: impl Fn(&T) -> String,
        missing: impl Fn(&T) -> Option<String>,
        run: impl Fn(&T, &str, &mut Report),
    ) {
        for item in self.items {
            let name = name(item);
            match missing(item) {
                Some(missing) if self.is_named => {
                    report.step(&name, || Err::<(), _>(missing));
                }
                Some(missing) => report.absent(&name, &missing),
                None => run(item, &name, report),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOURS: Choice<u8> = Choice {
        flag: "--paint",
        item: "colour",
        names: &[("red", &[1]), ("warm", &[1, 2])],
        all: &[1, 2, 3],
    };

    fn read(text: &str) -> Result<Option<Selection<u8>>> {
        COLOURS.read(&mut Arguments::new(text.split_whitespace().map(str::to_owned).collect()))
    }

    /// The items that ran, where the second one's tools are not there, and whether the report is one of success.
    fn ran(text: &str) -> (Vec<u8>, bool) {
        let mut report = Report::default();
        let ran = std::cell::RefCell::new(Vec::new());
        let run = |item: &u8, _: &str, _: &mut Report| ran.borrow_mut().push(*item);
        let missing = |item: &u8| (*item == 2).then(|| "no brush".to_owned());
        read(text).unwrap().unwrap().run(&mut report, u8::to_string, missing, run);
        (ran.into_inner(), report.finish().is_ok())
    }

    #[test]
    fn without_a_name_all_are_tried_and_none_must_be_there() {
        assert_eq!(read("--rust"), Ok(None));
        assert_eq!(ran("--paint"), (vec![1, 3], true));
        assert!(read("--paint -- -x").unwrap_err().contains("one colour: name it"));
    }

    #[test]
    fn what_is_named_must_be_there() {
        assert_eq!(ran("--paint warm"), (vec![1], false));
        let message = read("--paint blue").unwrap_err();
        assert_eq!(message, "--paint knows red, warm, not `blue`");
    }

    #[test]
    fn words_go_to_the_tests_of_one_item() {
        assert_eq!(read("--paint red -- -k x").unwrap().unwrap().words, ["-k", "x"]);
        assert!(read("--paint warm -- -x").unwrap_err().contains("name it"));
    }
}
