//! The text of a signature in a `.pyi` stub.
//!
//! The builtins are spelt `_int`, `_float`, `_bool` and `_complex` because the Tensor class has
//! methods called `int`, `float` and `bool`, which would shadow them; the stub's head defines
//! these names, `_size`, `_dtype`, `_layout`, `_device`, `Number` and `DeviceLikeType`.

use crate::{Base, Default, Return, Type};

use super::{Parameter, PythonForm, Signature, ValueSource};

impl Signature {
    /// The `def` lines of this signature without decorators: one, or two if the positional
    /// arguments may also be the elements of the only list, as in `view(2, 3)`.
    pub fn stub(&self) -> Vec<String> {
        let texts: Vec<String> = self.parameters.iter().map(|p| self.parameter_stub(p)).collect();
        let positional = self.max_positional();
        let mut plain = texts.clone();
        if positional < texts.len() {
            plain.insert(positional, "*".to_owned());
        }
        let mut lines = vec![self.definition(plain)];
        if self.takes_varargs() {
            let mut varargs = texts;
            varargs[0] = format!("*{}: _int", self.parameters[0].name);
            lines.push(self.definition(varargs));
        }
        lines
    }

    fn definition(&self, mut parameters: Vec<String>) -> String {
        if self.form == PythonForm::Method {
            parameters.insert(0, "self".to_owned());
        }
        let returns = returns_stub(&self.name, &self.returns);
        format!("def {}({}) -> {returns}: ...", self.name, parameters.join(", "))
    }

    fn parameter_stub(&self, parameter: &Parameter) -> String {
        let is_tensor = parameter.ty.base == Base::Tensor && parameter.ty.list.is_none();
        let mut ty = if is_tensor && parameter.source != ValueSource::Out && self.accepts_numbers()
        {
            "Tensor | Number | _complex".to_owned()
        } else {
            argument_type(parameter.ty)
        };
        if parameter.allows_none() && !ty.ends_with("| None") {
            ty.push_str(" | None");
        }
        let name = python_name(&parameter.name);
        match &parameter.default {
            Some(default) => format!("{name}: {ty} = {}", default_stub(default)),
            None => format!("{name}: {ty}"),
        }
    }
}

/// The field names of the returned named tuple: those of two or more named values, else `None`.
pub fn struct_fields(returns: &[Return]) -> Option<Vec<&str>> {
    let names: Option<Vec<&str>> =
        returns.iter().map(|returned| returned.name.as_deref()).collect();
    names.filter(|names| names.len() > 1)
}

/// A name that is a Python keyword takes an underscore.
fn python_name(name: &str) -> String {
    let is_keyword = matches!(name, "from" | "in" | "is" | "lambda" | "global" | "class" | "def");
    if is_keyword { format!("{name}_") } else { name.to_owned() }
}

fn default_stub(default: &Default) -> String {
    match default {
        Default::EmptyList => "()".to_owned(),
        Default::Ints(values) => tuple(values.iter().map(i64::to_string)),
        Default::Floats(values) => tuple(values.iter().map(|v| Default::Float(*v).to_string())),
        Default::Float(value) if !value.is_finite() => format!("_float(\"{default}\")"),
        _ => default.to_string(),
    }
}

fn tuple(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.len() == 1 { format!("({},)", items[0]) } else { format!("({})", items.join(", ")) }
}

fn base_type(base: Base) -> &'static str {
    match base {
        Base::Tensor => "Tensor",
        Base::Int | Base::SymInt => "_int",
        Base::Float => "_float",
        Base::Bool => "_bool",
        Base::Str => "str",
        Base::Scalar => "Number | _complex",
        Base::ScalarType => "_dtype",
        Base::Layout => "_layout",
        Base::Device => "DeviceLikeType",
        Base::MemoryFormat => "memory_format",
        Base::Generator => "Generator",
        Base::Any => "Any",
    }
}

/// The type of a parameter: wide, everything that the call accepts.
fn argument_type(ty: Type) -> String {
    let element = base_type(ty.base);
    let text = match ty.list {
        None => element.to_owned(),
        Some(list) => {
            let none = if list.element_optional { " | None" } else { "" };
            let lone = if list.size.is_some() { format!("{element} | ") } else { String::new() };
            match ty.base {
                Base::Int | Base::SymInt => format!("{lone}_size"),
                Base::Tensor => {
                    format!("tuple[{element}{none}, ...] | list[{element}{none}]")
                }
                _ => format!("{lone}Sequence[{element}{none}]"),
            }
        }
    };
    if ty.optional { text + " | None" } else { text }
}

/// The type of a returned value: narrow, exactly what comes back.
fn return_type(ty: Type) -> String {
    let element = if ty.base == Base::Device { "_device" } else { base_type(ty.base) };
    let text = match ty.list {
        None => element.to_owned(),
        Some(list) => {
            let none = if list.element_optional { " | None" } else { "" };
            format!("tuple[{element}{none}, ...]")
        }
    };
    if ty.optional { text + " | None" } else { text }
}

fn returns_stub(name: &str, returns: &[Return]) -> String {
    if struct_fields(returns).is_some() {
        return format!("return_types.{name}");
    }
    match returns {
        [] => "None".to_owned(),
        [only] => return_type(only.ty),
        several => {
            let types: Vec<String> = several.iter().map(|r| return_type(r.ty)).collect();
            format!("tuple[{}]", types.join(", "))
        }
    }
}
