//! Reads a signature from text.
//!
//! A recursive-descent reader over the bytes of the text, one function per rule of the grammar:
//! `signature = name [. overload] ( arguments ) -> returns`. It checks form, that names are used
//! once, and that a default suits the type of its argument; it does not know which ops exist.
//! Invariant: `position` is always on a character boundary of `text`.

use std::fmt::{self, Display, Formatter};

use crate::{Alias, Argument, Base, Default, List, Return, Schema, Type};

/// Why a text is not a signature, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The byte offset in the text at which reading stopped.
    pub position: usize,
    /// What was expected and what was found.
    pub message: String,
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "at position {}: {}", self.position, self.message)
    }
}

impl std::error::Error for ParseError {}

type Result<T> = std::result::Result<T, ParseError>;

impl Schema {
    /// Reads a signature such as `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
    ///
    /// # Errors
    /// An error that names the position where the text leaves the grammar, and the expected token.
    pub fn parse(text: &str) -> Result<Schema> {
        let mut reader = Reader { text, position: 0 };
        let schema = reader.schema()?;
        reader.skip_space();
        if reader.rest().is_empty() { Ok(schema) } else { reader.expected("the end") }
    }
}

impl std::str::FromStr for Schema {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Schema> {
        Schema::parse(text)
    }
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn schema(&mut self) -> Result<Schema> {
        let name = self.identifier("the name of the op")?.to_owned();
        let overload =
            if self.take(".") { self.identifier("the name of the overload")? } else { "" };
        let overload = overload.to_owned();
        let args = self.arguments()?;
        self.require("->")?;
        let returns = self.returns()?;
        Ok(Schema { name, overload, args, returns })
    }

    fn arguments(&mut self) -> Result<Vec<Argument>> {
        self.require("(")?;
        let mut args: Vec<Argument> = Vec::new();
        let mut keyword_only = false;
        if self.take(")") {
            return Ok(args);
        }
        loop {
            let start = self.next_position();
            if !keyword_only && self.take("*") {
                keyword_only = true;
                self.require(",")?;
            }
            let arg = self.argument(keyword_only)?;
            if args.iter().any(|earlier| earlier.name == arg.name) {
                return fail(start, format!("the argument '{}' is declared twice", arg.name));
            }
            if arg.default.is_none() && !keyword_only && args.iter().any(|a| a.default.is_some()) {
                let name = &arg.name;
                return fail(start, format!("'{name}' needs a default: one before it has one"));
            }
            args.push(arg);
            if self.take(")") {
                return Ok(args);
            }
            self.require_either(",", ")")?;
        }
    }

    fn argument(&mut self, keyword_only: bool) -> Result<Argument> {
        let (ty, alias) = self.annotated_type()?;
        let name = self.identifier("the name of the argument")?.to_owned();
        let default = if self.take("=") { Some(self.default(ty)?) } else { None };
        Ok(Argument { name, ty, default, keyword_only, alias })
    }

    fn returns(&mut self) -> Result<Vec<Return>> {
        if !self.take("(") {
            let (ty, alias) = self.annotated_type()?;
            let name = self.optional_identifier().map(str::to_owned);
            return Ok(vec![Return { name, ty, alias }]);
        }
        let mut returns: Vec<Return> = Vec::new();
        if self.take(")") {
            return Ok(returns);
        }
        loop {
            let start = self.next_position();
            let (ty, alias) = self.annotated_type()?;
            let name = self.optional_identifier().map(str::to_owned);
            if name.is_some() && returns.iter().any(|earlier| earlier.name == name) {
                let name = name.unwrap_or_default();
                return fail(start, format!("the returned value '{name}' is declared twice"));
            }
            returns.push(Return { name, ty, alias });
            if self.take(")") {
                return Ok(returns);
            }
            self.require_either(",", ")")?;
        }
    }

    fn annotated_type(&mut self) -> Result<(Type, Option<Alias>)> {
        let start = self.next_position();
        let word = self.identifier("a type")?;
        let Some(base) = Base::ALL.into_iter().find(|base| base.name() == word) else {
            let known = Base::ALL.map(Base::name).join(", ");
            return fail(start, format!("unknown type '{word}', expected one of {known}"));
        };
        let alias = if self.rest().starts_with('(') { Some(self.alias()?) } else { None };
        let mut ty = Type::new(base);
        ty.optional = self.take_here("?");
        if self.take_here("[") {
            let size = self.list_size()?;
            ty.list = Some(List { size, element_optional: ty.optional });
            ty.optional = self.take_here("?");
        }
        Ok((ty, alias))
    }

    fn list_size(&mut self) -> Result<Option<usize>> {
        if self.take("]") {
            return Ok(None);
        }
        let start = self.next_position();
        let digits = self.run(|c| c.is_ascii_digit());
        let size = match digits.parse::<usize>() {
            Ok(size) if size > 0 => size,
            Ok(_) => return fail(start, "the size of a list must be at least 1, not 0".into()),
            Err(_) => return self.expected("the size of the list or ']'"),
        };
        self.require("]")?;
        Ok(Some(size))
    }

    fn alias(&mut self) -> Result<Alias> {
        self.require("(")?;
        let start = self.next_position();
        let word = self.run(|c| c.is_ascii_alphanumeric());
        let set = match word.as_bytes() {
            [letter @ b'a'..=b'z'] => char::from(*letter),
            _ => return fail(start, format!("expected one letter as alias set, found '{word}'")),
        };
        let is_write = self.take("!");
        let is_wildcard = self.take("->");
        if is_wildcard {
            self.require("*")?;
        }
        self.require(")")?;
        Ok(Alias { set, is_write, is_wildcard })
    }

    fn default(&mut self, ty: Type) -> Result<Default> {
        let start = self.next_position();
        let value = match self.rest().chars().next() {
            Some('"' | '\'') => Default::Str(self.string()?),
            Some('[') => self.list()?,
            Some('0'..='9' | '-' | '+' | '.') => self.number()?,
            _ => self.word(ty)?,
        };
        match suited(value, ty) {
            Ok(value) => Ok(value),
            Err(value) => {
                fail(start, format!("{value} is no default for an argument of type {ty}"))
            }
        }
    }

    /// A default that is a word: `None`, a boolean, a reduction, a memory format or a dtype.
    fn word(&mut self, ty: Type) -> Result<Default> {
        let word = self.identifier("a default")?;
        Ok(match (word, ty.base) {
            ("None", _) => Default::None,
            ("True", _) => Default::Bool(true),
            ("False", _) => Default::Bool(false),
            ("None_", Base::Int) => Default::Int(0),
            ("Mean", Base::Int) => Default::Int(1),
            ("Sum", Base::Int) => Default::Int(2),
            ("inf", _) => Default::Float(f64::INFINITY),
            (_, Base::ScalarType) => Default::Dtype(word.to_owned()),
            (_, Base::MemoryFormat) => Default::MemoryFormat(word.to_owned()),
            _ => return fail(self.position - word.len(), format!("unknown default '{word}'")),
        })
    }

    fn number(&mut self) -> Result<Default> {
        let start = self.position;
        let text = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
        if let Ok(value) = text.parse::<i64>() {
            return Ok(Default::Int(value));
        }
        let value = match text {
            "-inf" => Some(f64::NEG_INFINITY),
            _ if text.contains(['.', 'e', 'E']) => text.parse::<f64>().ok(),
            _ => None,
        };
        match value {
            Some(value) => Ok(Default::Float(value)),
            None => fail(start, format!("'{text}' is not a number that fits in 64 bits")),
        }
    }

    fn list(&mut self) -> Result<Default> {
        self.require("[")?;
        if self.take("]") {
            return Ok(Default::EmptyList);
        }
        let mut items = Vec::new();
        loop {
            self.skip_space();
            items.push(self.number()?);
            if self.take("]") {
                break;
            }
            self.require_either(",", "]")?;
        }
        let ints: Option<Vec<i64>> = items
            .iter()
            .map(|item| if let Default::Int(v) = item { Some(*v) } else { None })
            .collect();
        let as_float = |item: &Default| match item {
            Default::Int(value) => *value as f64,
            Default::Float(value) => *value,
            _ => unreachable!("`number` gives nothing else"),
        };
        Ok(ints
            .map_or_else(|| Default::Floats(items.iter().map(as_float).collect()), Default::Ints))
    }

    fn string(&mut self) -> Result<String> {
        let start = self.position;
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map(|(_, quote)| quote);
        let mut text = String::new();
        while let Some((offset, c)) = chars.next() {
            if Some(c) == quote {
                self.position = start + offset + 1;
                return Ok(text);
            }
            text.push(match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, escaped @ ('\\' | '"' | '\''))) => escaped,
                    _ => return fail(start + offset, "unknown escape in a string".into()),
                },
                _ => c,
            });
        }
        fail(start, "the string is not closed".into())
    }

    fn identifier(&mut self, what: &str) -> Result<&'a str> {
        match self.optional_identifier() {
            Some(word) => Ok(word),
            None => self.expected(what),
        }
    }

    fn optional_identifier(&mut self) -> Option<&'a str> {
        self.skip_space();
        let starts = self.rest().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        starts.then(|| self.run(|c| c.is_ascii_alphanumeric() || c == '_'))
    }

    /// Takes the longest run of characters that `belongs` accepts.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    /// Takes `token` if it comes next, after spaces.
    fn take(&mut self, token: &str) -> bool {
        let before = self.position;
        self.skip_space();
        if self.take_here(token) {
            return true;
        }
        self.position = before;
        false
    }

    /// Takes `token` if it comes next, without a space before it.
    fn take_here(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.position += if found { token.len() } else { 0 };
        found
    }

    fn require(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { self.expected(&format!("'{token}'")) }
    }

    /// Takes `next`, which must come unless `close` does; the caller has tried `close`.
    fn require_either(&mut self, next: &str, close: &str) -> Result<()> {
        if self.take(next) { Ok(()) } else { self.expected(&format!("'{next}' or '{close}'")) }
    }

    fn skip_space(&mut self) {
        self.run(|c| c.is_ascii_whitespace());
    }

    fn next_position(&mut self) -> usize {
        self.skip_space();
        self.position
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn expected<T>(&mut self, what: &str) -> Result<T> {
        self.skip_space();
        let found = match self.rest().chars().next() {
            Some(c) => format!("'{c}'"),
            None => "the end".to_owned(),
        };
        fail(self.position, format!("expected {what}, found {found}"))
    }
}

fn fail<T>(position: usize, message: String) -> Result<T> {
    Err(ParseError { position, message })
}

/// Checks a default against the argument's type and brings it to the type's form; gives the value
/// back if it does not suit.
fn suited(value: Default, ty: Type) -> std::result::Result<Default, Default> {
    let lone_for_list = ty.list.is_none_or(|list| list.size.is_some());
    let suits = match (&value, ty.base) {
        (Default::None, _) => ty.optional || may_be_absent(ty),
        (Default::EmptyList, _)
        | (Default::Ints(_), Base::Int | Base::SymInt | Base::Scalar | Base::Float)
        | (Default::Floats(_), Base::Float | Base::Scalar) => ty.list.is_some(),
        (Default::Bool(_), Base::Bool | Base::Scalar)
        | (Default::Int(_), Base::Int | Base::SymInt | Base::Scalar | Base::Float)
        | (Default::Float(_), Base::Float | Base::Scalar) => lone_for_list,
        (Default::Str(_), Base::Str)
        | (Default::Dtype(_), Base::ScalarType)
        | (Default::MemoryFormat(_), Base::MemoryFormat) => ty.list.is_none(),
        (_, Base::Any) => true,
        _ => false,
    };
    if !suits {
        return Err(value);
    }
    Ok(match (value, ty.base) {
        (Default::Int(value), Base::Float) => Default::Float(value as f64),
        (Default::Ints(values), Base::Float) => {
            Default::Floats(values.into_iter().map(|value| value as f64).collect())
        }
        (value, _) => value,
    })
}

/// Types whose Python default may be `None` though the signature does not say `?`.
fn may_be_absent(ty: Type) -> bool {
    ty.list.is_none() && ty.base == Base::Any
}
