//! What checkpoints hold: tensors, plain data, and collections of these.

use crate::{C128, DType, Device, Layout, Tensor};
use std::sync::Arc;

/// An object of a checkpoint. A clone is cheap, and shares what it holds.
///
/// ```
/// use pullback::{Tensor, io::FileValue};
/// # fn main() -> pullback::Result<()> {
/// let weight = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?;
/// let model = FileValue::dict([("epoch", FileValue::from(3)), ("weight", weight.into())]);
/// assert_eq!(model.get("epoch").and_then(FileValue::as_int), Some(3));
/// assert_eq!(model.tensors().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum FileValue {
    /// `None`.
    #[default]
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A longer one: two's complement, little-endian.
    BigInt(Arc<[u8]>),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(C128),
    /// Text.
    Str(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list.
    List(Arc<Vec<FileValue>>),
    /// A tuple.
    Tuple(Arc<Vec<FileValue>>),
    /// A set, in the order in which it was written.
    Set(Arc<Vec<FileValue>>),
    /// A dictionary, in its order.
    Dict(Arc<Vec<(FileValue, FileValue)>>),
    /// `collections.OrderedDict`: what state dicts are.
    OrderedDict(Arc<Vec<(FileValue, FileValue)>>),
    /// `torch.Size`.
    Size(Arc<[i64]>),
    /// `torch.dtype`.
    DType(DType),
    /// `torch.layout`.
    Layout(Layout),
    /// `torch.device`.
    Device(Device),
    /// A tensor.
    Tensor(Tensor),
    /// `torch.nn.Parameter`.
    Parameter(Tensor),
}

impl FileValue {
    /// A dictionary with names for keys.
    pub fn dict<'a>(items: impl IntoIterator<Item = (&'a str, FileValue)>) -> FileValue {
        FileValue::Dict(Arc::new(
            items.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        ))
    }
    /// A state dict: tensors by their names.
    pub fn state_dict<'a>(items: impl IntoIterator<Item = (&'a str, Tensor)>) -> FileValue {
        let items = items.into_iter().map(|(name, tensor)| (name.into(), tensor.into()));
        FileValue::OrderedDict(Arc::new(items.collect()))
    }
    /// The items of a dictionary.
    pub fn items(&self) -> Option<&[(FileValue, FileValue)]> {
        match self {
            FileValue::Dict(items) | FileValue::OrderedDict(items) => Some(items),
            _ => None,
        }
    }
    /// The items of a list, tuple or set.
    pub fn elements(&self) -> Option<&[FileValue]> {
        match self {
            FileValue::List(items) | FileValue::Tuple(items) | FileValue::Set(items) => Some(items),
            _ => None,
        }
    }
    /// The value of a dictionary under a name; the last one, if there are several.
    pub fn get(&self, name: &str) -> Option<&FileValue> {
        let found = self.items()?.iter().rev().find(|(key, _)| key.as_str() == Some(name));
        found.map(|(_, value)| value)
    }
    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let FileValue::Str(text) = self { Some(text) } else { None }
    }
    /// An integer.
    pub fn as_int(&self) -> Option<i64> {
        if let FileValue::Int(number) = self { Some(*number) } else { None }
    }
    /// A number, whole or not.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            FileValue::Float(number) => Some(*number),
            FileValue::Int(number) => Some(*number as f64),
            _ => None,
        }
    }
    /// A tensor, which may be a parameter.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            FileValue::Tensor(tensor) | FileValue::Parameter(tensor) => Some(tensor),
            _ => None,
        }
    }
    /// All tensors in the object, by the keys and indices that lead to them, with dots between:
    /// `model.0.weight`.
    pub fn tensors(&self) -> Vec<(String, Tensor)> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }
    fn collect(&self, path: &str, found: &mut Vec<(String, Tensor)>) {
        let below =
            |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        if let Some(tensor) = self.as_tensor() {
            found.push((path.to_owned(), tensor.clone()));
        }
        for (at, element) in self.elements().unwrap_or_default().iter().enumerate() {
            element.collect(&below(&at.to_string()), found);
        }
        for (key, value) in self.items().unwrap_or_default() {
            match key {
                FileValue::Str(name) => value.collect(&below(name), found),
                FileValue::Int(number) => value.collect(&below(&number.to_string()), found),
                other => value.collect(&below(&format!("{other:?}")), found),
            }
        }
    }
}

macro_rules! from {
    ($($kind:ty => $name:ident),*) => {$(
        impl From<$kind> for FileValue {
            fn from(value: $kind) -> Self { FileValue::$name(value.into()) }
        }
    )*};
}
from!(bool => Bool, i64 => Int, i32 => Int, f64 => Float, C128 => Complex, &str => Str, String => Str, Tensor => Tensor,
      DType => DType, Device => Device, Layout => Layout);
