//! Prints a signature in canonical form.
//!
//! Canonical means: one space after each comma, none around `=`, strings in double quotes,
//! numbers as Python writes them, reductions as numbers. The text parses back to an equal value.

use std::fmt::{self, Display, Formatter, Write};

use crate::{Alias, Argument, Base, Default, List, Return, Schema, Type};

impl Display for Schema {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.overload.is_empty() {
            write!(f, ".{}", self.overload)?;
        }
        f.write_char('(')?;
        let mut after_star = false;
        for (index, arg) in self.args.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            if arg.keyword_only && !after_star {
                f.write_str("*, ")?;
                after_star = true;
            }
            Display::fmt(arg, f)?;
        }
        f.write_str(") -> ")?;
        fmt_returns(&self.returns, f)
    }
}

/// A lone value stands bare, as in `-> Tensor`; all else is in parentheses.
fn fmt_returns(returns: &[Return], f: &mut Formatter<'_>) -> fmt::Result {
    if let [only] = returns {
        return Display::fmt(only, f);
    }
    f.write_char('(')?;
    for (index, returned) in returns.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        Display::fmt(returned, f)?;
    }
    f.write_char(')')
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_type(self.ty, self.alias, f)?;
        write!(f, " {}", self.name)?;
        match &self.default {
            Some(default) => write!(f, "={default}"),
            None => Ok(()),
        }
    }
}

impl Display for Return {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_type(self.ty, self.alias, f)?;
        match &self.name {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_type(*self, None, f)
    }
}

fn fmt_type(ty: Type, alias: Option<Alias>, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(ty.base.name())?;
    if let Some(alias) = alias {
        Display::fmt(&alias, f)?;
    }
    if let Some(List { size, element_optional }) = ty.list {
        f.write_str(if element_optional { "?" } else { "" })?;
        match size {
            Some(size) => write!(f, "[{size}]")?,
            None => f.write_str("[]")?,
        }
    }
    f.write_str(if ty.optional { "?" } else { "" })
}

impl Display for Alias {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let write = if self.is_write { "!" } else { "" };
        let wildcard = if self.is_wildcard { " -> *" } else { "" };
        write!(f, "({}{write}{wildcard})", self.set)
    }
}

impl Base {
    /// Every type of the grammar.
    pub const ALL: [Base; 13] = [
        Base::Tensor,
        Base::Int,
        Base::SymInt,
        Base::Float,
        Base::Bool,
        Base::Str,
        Base::Scalar,
        Base::ScalarType,
        Base::Layout,
        Base::Device,
        Base::MemoryFormat,
        Base::Generator,
        Base::Any,
    ];

    /// The word that stands for the type in a signature.
    pub const fn name(self) -> &'static str {
        match self {
            Base::Tensor => "Tensor",
            Base::Int => "int",
            Base::SymInt => "SymInt",
            Base::Float => "float",
            Base::Bool => "bool",
            Base::Str => "str",
            Base::Scalar => "Scalar",
            Base::ScalarType => "ScalarType",
            Base::Layout => "Layout",
            Base::Device => "Device",
            Base::MemoryFormat => "MemoryFormat",
            Base::Generator => "Generator",
            Base::Any => "Any",
        }
    }
}

impl Display for Default {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Default::None => f.write_str("None"),
            Default::Bool(true) => f.write_str("True"),
            Default::Bool(false) => f.write_str("False"),
            Default::Int(value) => write!(f, "{value}"),
            Default::Float(value) => f.write_str(&float_text(*value)),
            Default::Str(text) => fmt_quoted(text, f),
            Default::Ints(values) => fmt_list(values.iter().map(i64::to_string), f),
            Default::Floats(values) => fmt_list(values.iter().map(|v| float_text(*v)), f),
            Default::EmptyList => f.write_str("[]"),
            Default::MemoryFormat(name) | Default::Dtype(name) => f.write_str(name),
        }
    }
}

fn fmt_list(items: impl Iterator<Item = String>, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "[{}]", items.collect::<Vec<_>>().join(","))
}

fn fmt_quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            _ => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// The shortest text that reads back to `value`, in the shape of Python's `repr`: a point or an
/// exponent always, the exponent with a sign and two digits, from 1e16 up and below 1e-4.
pub(crate) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}
