//! The grammar of op signatures: `name.overload(arguments) -> returns`.
//!
//! [`Schema::parse`] reads one signature in the notation of PyTorch's `native_functions.yaml`
//! and [`Schema`]'s `Display` prints it back in canonical form; [`python`] derives what Python
//! shows of it and the order in which its overloads are tried; [`bind`] matches a call with them. The crate knows no tensor and no
//! Python object, and has no dependencies, because a procedural macro reads it at build time.
//! Invariant: a parsed `Schema` prints to a text that parses to an equal `Schema`.
//! Start at [`Schema`]; the reader itself is `parse.rs`.

pub mod bind;
mod display;
mod parse;
pub mod python;
pub mod similar;
#[cfg(test)]
mod tests;

pub use parse::ParseError;
pub use python::sort_overloads;

/// The signature of one overload of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The op's name with its in-place underscore, as in `add`, `add_` or `_fused_adam_`.
    pub name: String,
    /// The overload's name, as in `Tensor`; empty where the op has none.
    pub overload: String,
    /// The arguments in the order written, the keyword-only ones last.
    pub args: Vec<Argument>,
    /// The returned values; empty for `-> ()`.
    pub returns: Vec<Return>,
}

impl Schema {
    /// The position of the argument called `name`.
    pub fn arg(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|arg| arg.name == name)
    }

    /// Whether the op overwrites its `self`: the name ends with `_` and `self` is `Tensor(a!)`.
    pub fn is_inplace(&self) -> bool {
        let writes_self =
            self.args.iter().any(|arg| arg.name == "self" && is_written(arg.alias.as_ref()));
        self.name.ends_with('_') && writes_self
    }

    /// Whether a returned value shares memory with an input that is not written to.
    pub fn is_view(&self) -> bool {
        let read_sets = || {
            let aliases = self.args.iter().filter_map(|arg| arg.alias.as_ref());
            aliases.filter(|alias| !alias.is_write)
        };
        let returned = self.returns.iter().filter_map(|returned| returned.alias.as_ref());
        returned
            .filter(|alias| !alias.is_write)
            .any(|alias| read_sets().any(|read| read.set == alias.set))
    }

    /// Whether the op writes its results into arguments given for that purpose (`out=`): some
    /// keyword-only argument is written to and `self` is not.
    pub fn is_out(&self) -> bool {
        !self.is_inplace() && self.args.iter().any(Argument::is_out)
    }
}

/// One argument of a [`Schema`].
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The argument's name.
    pub name: String,
    /// The argument's type.
    pub ty: Type,
    /// The value taken where the caller gives none; `None` means the argument is required.
    pub default: Option<Default>,
    /// Whether the argument stands after the `*`.
    pub keyword_only: bool,
    /// What the argument's memory is shared with, and whether it is written to.
    pub alias: Option<Alias>,
}

impl Argument {
    /// Whether this is an argument that receives a result: keyword-only and written to.
    pub fn is_out(&self) -> bool {
        self.keyword_only && is_written(self.alias.as_ref())
    }
}

/// The annotation in `Tensor(a)`, `Tensor(a!)` or `Tensor(a -> *)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    /// The letter: values with the same letter may share memory.
    pub set: char,
    /// Whether the op writes to the memory (`!`).
    pub is_write: bool,
    /// Whether the values in a returned list may all share the memory (`-> *`).
    pub is_wildcard: bool,
}

/// One returned value of a [`Schema`].
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// The value's name, where the signature gives one.
    pub name: Option<String>,
    /// The value's type.
    pub ty: Type,
    /// What the value's memory is shared with.
    pub alias: Option<Alias>,
}

/// The type of an argument or a returned value: `T`, `T?`, `T[]`, `T[2]`, `T?[]` or `T[]?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The type itself, or that of the elements.
    pub base: Base,
    /// Whether `None` is accepted for the whole value.
    pub optional: bool,
    /// Set where the value is a list.
    pub list: Option<List>,
}

impl Type {
    /// The plain type `base`.
    pub const fn new(base: Base) -> Type {
        Type { base, optional: false, list: None }
    }

    /// Whether the value is a tensor, an optional tensor or a list of tensors.
    pub fn is_tensor_like(&self) -> bool {
        self.base == Base::Tensor
    }
}

/// The list part of a [`Type`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct List {
    /// The `n` of `T[n]`: a lone element stands for a list of `n` copies of it.
    pub size: Option<usize>,
    /// Whether an element may be `None`, as in `Tensor?[]`.
    pub element_optional: bool,
}

/// The types of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A tensor.
    Tensor,
    /// A 64-bit integer.
    Int,
    /// An integer that stands for a size.
    SymInt,
    /// A 64-bit floating-point number.
    Float,
    /// A boolean.
    Bool,
    /// A string.
    Str,
    /// A number of any kind: bool, integer, real or complex.
    Scalar,
    /// A dtype.
    ScalarType,
    /// A layout.
    Layout,
    /// A device.
    Device,
    /// A memory format.
    MemoryFormat,
    /// A random number generator.
    Generator,
    /// Anything at all.
    Any,
}

/// The default value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer; the reductions `None_`, `Mean` and `Sum` of losses read as 0, 1 and 2.
    Int(i64),
    /// A number with a point or an exponent, also written as an integer for a `float` argument.
    Float(f64),
    /// A string.
    Str(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of numbers of which one at least has a point or an exponent.
    Floats(Vec<f64>),
    /// `[]`.
    EmptyList,
    /// A memory format by name, as `contiguous_format`.
    MemoryFormat(String),
    /// A dtype by name, as `long`.
    Dtype(String),
}

fn is_written(alias: Option<&Alias>) -> bool {
    alias.is_some_and(|alias| alias.is_write)
}
