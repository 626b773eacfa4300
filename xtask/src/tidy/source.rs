//! A source file as the rules see it: its text, its code without comments and literals, and its string literals.
//!
//! [`Source::code`] has the same length and the same lines as the text; what is not code is blank there, so that a word
//! in a comment or an error message is never taken for code. The scanner knows Rust's lexical forms; for Python files
//! only the text is kept.

/// One file.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the workspace, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// The code, everything else blank. Empty for Python.
    pub(super) code: String,
    pub(super) literals: Vec<Literal>,
}

/// A string literal as it is written between its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// Byte position of its opening quote.
    pub(super) at: usize,
    pub(super) value: String,
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let (code, literals) = if is_rust(&path) {
            let mut scanner = Scanner::new(&text);
            scanner.scan();
            (String::from_utf8_lossy(&scanner.code).into_owned(), scanner.literals)
        } else {
            (String::new(), Vec::new())
        };
        Self { path, text, code, literals }
    }

    pub(super) fn is_rust(&self) -> bool {
        is_rust(&self.path)
    }

    /// The line, counted from 1, of a byte position.
    pub(super) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// The code with the items blanked that are compiled for tests only.
    pub(super) fn code_without_tests(&self) -> String {
        let mut code = self.code.clone().into_bytes();
        for opening in ["#[cfg(test)]", "#[cfg(all(test"] {
            let mut from = 0;
            while let Some(found) = self.code[from..].find(opening) {
                let start = from + found;
                let end = item_end(self.code.as_bytes(), start + opening.len());
                code[start..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
                from = start + opening.len();
            }
        }
        String::from_utf8_lossy(&code).into_owned()
    }
}

fn is_rust(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension == "rs")
}

/// Where the item that starts at `at` ends: after its `;`, or after its closing brace.
fn item_end(code: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code[at..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + offset + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    code.len()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    code: Vec<u8>,
    literals: Vec<Literal>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0, code: text.as_bytes().to_vec(), literals: Vec::new() }
    }

    fn scan(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'/' if self.starts(b"//") => self.blank_to(self.line_end()),
                b'/' if self.starts(b"/*") => self.blank_to(self.comment_end()),
                b'"' => self.string(self.at + 1, 0, true),
                b'\'' => self.quote(),
                _ if byte.is_ascii_alphanumeric() || byte == b'_' => self.word(),
                _ => self.at += 1,
            }
        }
    }

    fn starts(&self, with: &[u8]) -> bool {
        self.text[self.at..].starts_with(with)
    }

    fn line_end(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
    }

    /// Block comments nest.
    fn comment_end(&self) -> usize {
        let (mut at, mut depth) = (self.at, 0_usize);
        while at < self.text.len() {
            if self.text[at..].starts_with(b"/*") {
                (at, depth) = (at + 2, depth + 1);
            } else if self.text[at..].starts_with(b"*/") {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            } else {
                at += 1;
            }
        }
        at
    }

    /// A word, and the literal it may be the prefix of: `r"`, `br#"`, `b"`, `c"`.
    fn word(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.at = start + rest.iter().position(|byte| !in_word(byte)).unwrap_or(rest.len());
        let hashes = self.text[self.at..].iter().take_while(|&&byte| byte == b'#').count();
        let quoted = self.text.get(self.at + hashes) == Some(&b'"');
        match &self.text[start..self.at] {
            b"r" | b"br" | b"cr" if quoted => self.string(self.at + hashes + 1, hashes, false),
            b"b" | b"c" if quoted && hashes == 0 => self.string(self.at + 1, 0, true),
            _ => {}
        }
    }

    /// A string whose content starts at `content`; leaves the position behind its closing quote and hashes.
    fn string(&mut self, content: usize, hashes: usize, escapes: bool) {
        let mut end = content;
        while end < self.text.len() && !self.closes(end, hashes) {
            end += if escapes && self.text[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(self.text.len());
        let value = String::from_utf8_lossy(&self.text[content..end]).into_owned();
        self.literals.push(Literal { at: content - 1, value });
        self.at = content;
        self.blank_to(end);
        self.at = (end + 1 + hashes).min(self.text.len());
    }

    fn closes(&self, at: usize, hashes: usize) -> bool {
        let after = &self.text[at + 1..];
        self.text[at] == b'"' && after.iter().take(hashes).filter(|&&b| b == b'#').count() == hashes
    }

    /// A character literal, or the start of a lifetime.
    fn quote(&mut self) {
        let rest = &self.text[self.at + 1..];
        let length = match rest.first() {
            Some(b'\\') => rest.iter().skip(2).position(|&byte| byte == b'\'').map(|at| at + 2),
            Some(&first) => {
                let width = match first {
                    0..0x80 => 1,
                    0x80..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    _ => 4,
                };
                (rest.get(width) == Some(&b'\'')).then_some(width)
            }
            None => None,
        };
        match length {
            Some(length) => {
                self.at += 1;
                self.blank_to(self.at + length);
                self.at += 1;
            }
            None => self.at += 1,
        }
    }

    fn blank_to(&mut self, end: usize) {
        let blanked = self.code[self.at..end].iter_mut().filter(|byte| **byte != b'\n');
        blanked.for_each(|byte| *byte = b' ');
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = Source::new("a.rs", text);
        assert_eq!(source.code.len(), text.len());
        source.code
    }

    #[test]
    fn comments_and_literals_are_blank_in_the_code() {
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(code(r#"f("x \" // y") z"#), r#"f("         ") z"#);
        assert_eq!(code("r##\"a \"# b\"## c"), "r##\"      \"## c");
        assert_eq!(code("br\"\\\" c"), "br\" \" c");
        assert_eq!(code("r#type x"), "r#type x");
    }

    #[test]
    fn lifetimes_are_told_from_characters() {
        assert_eq!(code("fn f<'a>(x: &'a u8) { '{' }"), "fn f<'a>(x: &'a u8) { ' ' }");
        assert_eq!(code(r"'\'' '\u{7d}' b'}' x"), r"'  ' '      ' b' ' x");
        assert_eq!(code("'é' y"), "'  ' y");
    }

    #[test]
    fn unfinished_text_ends_the_scan() {
        for text in ["\"abc", "r#\"abc", "/* abc", "'", "'\\", "\"\\", "b'", "// x"] {
            code(text);
        }
    }

    #[test]
    fn literals_keep_their_place_and_value() {
        let source = Source::new("a.rs", "f(\"one\", r#\"two\"#)");
        let values: Vec<_> = source.literals.iter().map(|l| (l.at, l.value.as_str())).collect();
        assert_eq!(values, [(2, "one"), (11, "two")]);
    }

    #[test]
    fn test_items_disappear_and_lines_stay() {
        let text = "a;\n#[cfg(test)]\nmod tests {\n  fn f() { b }\n}\nc;\n#[cfg(test)] use d;\ne;";
        let left = Source::new("a.rs", text).code_without_tests();
        assert_eq!(left.split_whitespace().collect::<String>(), "a;c;e;");
        assert_eq!(left.lines().count(), text.lines().count());
    }
}
