//! Words in error messages that Python and Rust spell differently.
//!
//! PyTorch says `torch.float32`, `Float` and `cpu` where a Rust program has `F32` and `Cpu`. A message is written once, with
//! `format!`; a value in it that has two spellings is a [`Spelled`], which writes both, between marks. [`Text`] keeps the
//! message with its marks and shows it in either spelling: in Rust's by `Display`, in PyTorch's by [`Text::pytorch`].
//! The marks are noncharacters of Unicode, which are for use inside of a program alone: text from outside has none.
//!
//! ```
//! use pullback_kernels::{DType, spelling::Text};
//! let text = Text::from(format!("expected {} but got torch.{}", DType::I64.scalar_name(), DType::F32.spelled()));
//! assert_eq!(text.to_string(), "expected I64 but got F32");
//! assert_eq!(text.pytorch(), "expected Long but got torch.float32");
//! ```

use std::fmt::{self, Display};

/// The mark before PyTorch's spelling.
const START: char = '\u{FDD0}';
/// The mark between the spellings.
const MIDDLE: char = '\u{FDD1}';
/// The mark after Rust's spelling.
const END: char = '\u{FDD2}';
/// What PyTorch writes before the name of a dtype, and Rust does not.
const PREFIXES: [&str; 3] = ["torch.", "c10::", "at::k"];

/// A value with two spellings. Formatted, both with marks: for texts of errors only.
#[derive(Clone, Copy)]
pub struct Spelled<P, R> {
    pytorch: P,
    rust: R,
}

impl<P, R> Spelled<P, R> {
    /// A value that PyTorch spells one way and Rust another.
    pub const fn new(pytorch: P, rust: R) -> Self {
        Spelled { pytorch, rust }
    }
}

impl<P: Copy, R> Spelled<P, R> {
    /// PyTorch's spelling.
    pub const fn pytorch(&self) -> P {
        self.pytorch
    }
}

impl<P: Display, R: fmt::Debug> Display for Spelled<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{START}{}{MIDDLE}{:?}{END}", self.pytorch, self.rust)
    }
}

/// The text of an error, in both spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pytorch: String,
    /// The text with marks, unless it has none.
    marked: Option<Box<str>>,
}

impl Text {
    /// The text as PyTorch spells it.
    pub fn pytorch(&self) -> &str {
        &self.pytorch
    }
    /// The text with its marks, to be made a part of another one.
    pub fn marked(&self) -> &str {
        self.marked.as_deref().unwrap_or(&self.pytorch)
    }
}

impl From<String> for Text {
    #[cold]
    fn from(text: String) -> Self {
        if !text.contains(START) {
            return Text { pytorch: text, marked: None };
        }
        // bounded: by the text, which is one of our own: others have no marks.
        let mut pytorch = String::with_capacity(text.len());
        for part in Parts(&text) {
            pytorch.push_str(match part {
                Part::Plain(plain) => plain,
                Part::Spelled { pytorch, .. } => pytorch,
            });
        }
        Text { pytorch, marked: Some(text.into()) }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The text as Rust spells it.
impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(marked) = &self.marked else { return f.write_str(&self.pytorch) };
        let (mut parts, mut is_class) = (Parts(marked).peekable(), false);
        while let Some(part) = parts.next() {
            match part {
                Part::Spelled { rust, .. } => f.write_str(rust)?,
                Part::Plain(plain) => {
                    // (`torch.FloatTensor` is a tensor of `F32`.)
                    let gap = if is_class && plain.starts_with("Tensor") { " " } else { "" };
                    let before = parts.peek().and(PREFIXES.iter().find(|p| plain.ends_with(**p)));
                    is_class = before.is_some();
                    write!(f, "{gap}{}", &plain[..plain.len() - before.map_or(0, |p| p.len())])?;
                }
            }
        }
        Ok(())
    }
}

/// A part of a marked text.
enum Part<'a> {
    Plain(&'a str),
    Spelled { pytorch: &'a str, rust: &'a str },
}

/// The parts of a marked text; marks that do not belong together are text.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;
    fn next(&mut self) -> Option<Part<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let spelled = self.0.strip_prefix(START).and_then(|rest| {
            let (pytorch, rest) = rest.split_once(MIDDLE)?;
            let (rust, rest) = rest.split_once(END)?;
            let is_one = !pytorch.contains(START) && !rust.contains(START);
            is_one.then_some((Part::Spelled { pytorch, rust }, rest))
        });
        let (part, rest) = spelled.unwrap_or_else(|| {
            let first = self.0.chars().next().map_or(0, char::len_utf8);
            let end = self.0[first..].find(START).map_or(self.0.len(), |at| first + at);
            let (plain, rest) = self.0.split_at(end);
            (Part::Plain(plain), rest)
        });
        self.0 = rest;
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn both(text: String) -> (String, String) {
        let text = Text::from(text);
        (text.pytorch().to_owned(), text.to_string())
    }

    #[test]
    fn each_face_has_its_spelling() {
        for dtype in DType::ALL {
            let (short, long) = (dtype.spelled(), dtype.scalar_name());
            let (pytorch, rust) = both(format!("'{long}' is torch.{short}, not c10::{long}!"));
            let (s, l) = (dtype.name(), long.pytorch());
            assert_eq!(pytorch, format!("'{l}' is torch.{s}, not c10::{l}!"));
            assert_eq!(rust, format!("'{dtype:?}' is {dtype:?}, not {dtype:?}!"));
        }
        let class = both(format!("got torch.{}Tensor instead", DType::F32.scalar_name()));
        assert_eq!(
            class,
            ("got torch.FloatTensor instead".into(), "got F32 Tensor instead".into())
        );
    }

    #[test]
    fn texts_without_such_words_are_left_alone() {
        for text in ["", "torch.cat(): no tensors", "Tensor, torch.", "\u{FDD1}\u{FDD2}"] {
            assert_eq!(both(text.to_owned()), (text.to_owned(), text.to_owned()));
            assert_eq!(Text::from(text).marked(), text);
        }
    }

    #[test]
    fn a_text_becomes_a_part_of_another() {
        let first = Text::from(format!("got {}", DType::I64.scalar_name()));
        let second = both(format!("in a loop: {}, twice", first.marked()));
        assert_eq!(
            second,
            ("in a loop: got Long, twice".into(), "in a loop: got I64, twice".into())
        );
    }

    #[test]
    fn marks_that_do_not_belong_together_are_text() {
        let wrong =
            ["\u{FDD0}", "a\u{FDD0}b\u{FDD1}", "\u{FDD0}\u{FDD0}\u{FDD1}\u{FDD2}x", "é\u{FDD0}é"];
        for text in wrong {
            let (pytorch, rust) = both(text.to_owned());
            assert!(pytorch.len() <= text.len() && rust.len() <= text.len(), "{text:?}");
        }
        assert_eq!(both("a\u{FDD0}b".to_owned()).0, "a\u{FDD0}b");
    }
}
