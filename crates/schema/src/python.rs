//! What Python shows of a schema: its parameters, their types, and the texts made of them.
//!
//! A [`Signature`] is a [`Schema`] as a Python caller sees it: `self` is absent (method) or called
//! `input` (function), all result arguments are one `out`, and the options of a new tensor stand
//! last and end with `requires_grad`. Every parameter says by its [`ValueSource`] where its value goes.
//! The texts follow PyTorch's, because programs and tests match them. The stub text is in
//! `stub.rs`, the order of overloads in `overload.rs`, binding and its errors in [`crate::bind`].

use std::fmt::{self, Display, Formatter};

use crate::{Argument, Base, Default, List, Return, Schema, Type};

mod overload;
mod stub;

pub use overload::{sort_overloads, sort_signatures};
pub use stub::struct_fields;

/// How Python calls an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PythonForm {
    /// `pullback.add(input, other)`.
    Function,
    /// `input.add(other)`.
    Method,
}

/// Where the value of a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueSource {
    /// The argument of the functional schema with this index.
    Argument(usize),
    /// The arguments of the `out` schema that receive results, all of them in order.
    Out,
    /// No argument: the flag is set on the new tensor after the call.
    RequiresGrad,
}

/// One parameter of a [`Signature`].
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name as Python spells it in a call.
    pub name: String,
    /// The type; `out` for several results is a list of that size.
    pub ty: Type,
    /// The default as shown; where it is `None` for an argument that does not take `None`, an
    /// absent value means the schema's own default.
    pub default: Option<Default>,
    /// Whether the parameter stands after the `*`.
    pub keyword_only: bool,
    /// Where the value goes.
    pub source: ValueSource,
}

impl Parameter {
    /// Whether `None` may be given: the type is optional, or the default is `None` or the empty list, which is shown so.
    pub fn allows_none(&self) -> bool {
        self.ty.optional || matches!(self.default, Some(Default::None | Default::EmptyList))
    }

    /// Whether a list of integers is expected.
    pub fn is_int_list(&self) -> bool {
        self.ty.list.is_some() && matches!(self.ty.base, Base::Int | Base::SymInt)
    }

    /// The names `NumPy` uses for this parameter, which are accepted as keywords too.
    pub fn numpy_names(&self) -> &'static [&'static str] {
        match self.name.as_str() {
            "dim" => &["axis"],
            "keepdim" => &["keepdims"],
            "input" => &["x", "a", "x1"],
            "other" => &["x2"],
            _ => &[],
        }
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", type_name(self.ty), self.name)?;
        match &self.default {
            Some(default) => write!(f, " = {}", default_text(default)),
            None => Ok(()),
        }
    }
}

/// A schema as a Python caller sees it. `Display` gives the text of error messages, as in
/// `(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The op's name.
    pub name: String,
    /// Function or method.
    pub form: PythonForm,
    /// The parameters, the keyword-only ones last.
    pub parameters: Vec<Parameter>,
    /// The returned values.
    pub returns: Vec<Return>,
    /// Whether the overload still binds but is not shown, because it is deprecated.
    pub hidden: bool,
    /// How many parameters may be given by position; kept because each call is bound with it.
    positional: usize,
    numbers: bool,
}

impl Signature {
    /// The signature of `schema`, with an `out` parameter if the op has the `out` schema given.
    pub fn new(schema: &Schema, out: Option<&Schema>, form: PythonForm) -> Signature {
        // (Ops that make no tensor from options take them as arguments like any other: `_to_copy`, beside `self`.)
        let options = if makes_tensor(schema) { tensor_options(schema) } else { Vec::new() };
        let mut parameters = Vec::with_capacity(schema.args.len() + 2);
        for (index, arg) in schema.args.iter().enumerate() {
            let is_left_out = form == PythonForm::Method && arg.name == "self";
            if !is_left_out && !options.contains(&index) && !arg.is_out() {
                parameters.push(plain_parameter(arg, index, form));
            }
        }
        parameters.extend(out_parameter(out.unwrap_or(schema)));
        if !options.is_empty() {
            let option = |&index: &usize| option_parameter(&schema.args[index], index);
            parameters.extend(options.iter().map(option));
            parameters.push(requires_grad_parameter());
        }
        Signature {
            name: schema.name.clone(),
            form,
            positional: parameters.iter().filter(|parameter| !parameter.keyword_only).count(),
            numbers: accepts_numbers(&schema.name),
            parameters,
            returns: schema.returns.clone(),
            hidden: false,
        }
    }

    /// How many parameters may be given by position.
    pub fn max_positional(&self) -> usize {
        self.positional
    }

    /// How many parameters must be given, by position or keyword.
    pub fn min_given(&self) -> usize {
        self.parameters.iter().filter(|parameter| parameter.default.is_none()).count()
    }

    /// Whether the positional arguments may be the elements of the only positional parameter, as
    /// in `view(2, 3)`.
    pub fn takes_varargs(&self) -> bool {
        self.max_positional() == 1 && self.parameters[0].is_int_list()
    }

    /// Whether a Python number is accepted where a tensor is expected.
    pub fn accepts_numbers(&self) -> bool {
        self.numbers
    }

    /// The comma-separated parts of the text, among them the bare `*`.
    pub(crate) fn parts(&self) -> Vec<String> {
        let mut pieces: Vec<String> = self.parameters.iter().map(Parameter::to_string).collect();
        let positional = self.max_positional();
        if positional < pieces.len() {
            pieces.insert(positional, "*".to_owned());
        }
        pieces
    }
}

impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.parameters.is_empty() {
            f.write_str("no arguments")
        } else {
            write!(f, "({})", self.parts().join(", "))
        }
    }
}

/// The arithmetic ops and copies, in-place forms too, take a number for a tensor.
pub fn accepts_numbers(name: &str) -> bool {
    let family = name.strip_suffix('_').unwrap_or(name);
    let is_arithmetic = matches!(
        family,
        "add" | "sub" | "subtract" | "mul" | "multiply" | "div" | "divide" | "true_divide"
    );
    is_arithmetic || matches!(family, "floor_divide" | "copy" | "to" | "_to_copy" | "_conj")
}

/// The name of a type in error messages, as in `argument 'dim' must be int, not str`.
pub fn type_name(ty: Type) -> &'static str {
    if ty.list.is_some() {
        return match ty.base {
            Base::Tensor => "tuple of Tensors",
            Base::Int | Base::SymInt => "tuple of ints",
            Base::Float => "tuple of floats",
            Base::Bool => "tuple of bools",
            Base::Scalar => "tuple of Scalars",
            Base::Str => "tuple of strs",
            _ => "tuple of objects",
        };
    }
    match ty.base {
        Base::Tensor => "Tensor",
        Base::Int | Base::SymInt => "int",
        Base::Float => "float",
        Base::Bool => "bool",
        Base::Str => "str",
        Base::Scalar => "Number",
        Base::ScalarType => "torch.dtype",
        Base::Layout => "torch.layout",
        Base::Device => "torch.device",
        Base::MemoryFormat => "torch.memory_format",
        Base::Generator => "torch.Generator",
        Base::Any => "object",
    }
}

/// A default as error messages show it: lists in braces, an empty list as `None`, whole numbers
/// without a point.
pub(crate) fn default_text(default: &Default) -> String {
    match default {
        Default::EmptyList => "None".to_owned(),
        Default::Ints(_) | Default::Floats(_) => {
            default.to_string().replace('[', "{").replace(']', "}")
        }
        Default::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
            format!("{value:.0}")
        }
        _ => default.to_string(),
    }
}

fn plain_parameter(arg: &Argument, index: usize, form: PythonForm) -> Parameter {
    let is_input =
        form == PythonForm::Function && arg.name == "self" && arg.ty == Type::new(Base::Tensor);
    Parameter {
        name: if is_input { "input".to_owned() } else { arg.name.clone() },
        ty: arg.ty,
        default: arg.default.clone(),
        keyword_only: arg.keyword_only,
        source: ValueSource::Argument(index),
    }
}

/// The one parameter for all results; a lone result keeps the name it has in the schema.
fn out_parameter(schema: &Schema) -> Option<Parameter> {
    let results: Vec<&Argument> = schema.args.iter().filter(|arg| arg.is_out()).collect();
    let (name, ty) = match results.as_slice() {
        [] => return None,
        [only] => (only.name.clone(), only.ty),
        several => {
            let list = List { size: Some(several.len()), element_optional: false };
            ("out".to_owned(), Type { list: Some(list), ..Type::new(Base::Tensor) })
        }
    };
    let default = Some(Default::None);
    Some(Parameter { name, ty, default, keyword_only: true, source: ValueSource::Out })
}

fn option_parameter(arg: &Argument, index: usize) -> Parameter {
    let default = if arg.name == "pin_memory" { Default::Bool(false) } else { Default::None };
    Parameter {
        name: arg.name.clone(),
        ty: Type { optional: true, ..arg.ty },
        default: Some(default),
        keyword_only: true,
        source: ValueSource::Argument(index),
    }
}

fn requires_grad_parameter() -> Parameter {
    Parameter {
        name: "requires_grad".to_owned(),
        ty: Type { optional: true, ..Type::new(Base::Bool) },
        default: Some(Default::Bool(false)),
        keyword_only: true,
        source: ValueSource::RequiresGrad,
    }
}

/// The positions of `dtype, layout, device, pin_memory` if all four follow each other, else none.
fn tensor_options(schema: &Schema) -> Vec<usize> {
    const NAMES: [&str; 4] = ["dtype", "layout", "device", "pin_memory"];
    let is_start = |window: &[Argument]| {
        window.iter().zip(NAMES).all(|(arg, name)| arg.keyword_only && arg.name == name)
    };
    match schema.args.windows(NAMES.len()).position(is_start) {
        Some(start) => (start..start + NAMES.len()).collect(),
        None => Vec::new(),
    }
}

/// Whether the op makes a tensor from options: it returns one and takes none as `self`, or it
/// is one of the `*_like` and `new_*` families.
fn makes_tensor(schema: &Schema) -> bool {
    let takes_self = schema.args.iter().any(|arg| arg.name == "self" && arg.ty.is_tensor_like());
    let returns_tensor = schema.returns.iter().any(|returned| returned.ty.is_tensor_like());
    let is_family = schema.name.ends_with("_like") || schema.name.starts_with("new_");
    is_family || (returns_tensor && !takes_self)
}
