//! The classes and functions that files of weights name, and what they make.

use super::load::{Item, Tree, TreeNode};
use crate::error::{Error, bail, ensure};
use crate::io::{FileValue, ReadAt};
use crate::{C128, DType, Device, Layout, Result, Storage, Tensor, binding};
use std::sync::Arc;

/// The meaning of a global name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Global {
    OrderedDict,
    Counter,
    Set,
    ByteArray,
    Complex,
    /// `_codecs.encode`.
    Encode,
    Size,
    Device,
    DType(DType),
    /// A class of storages, by the dtype of their elements.
    Storage(DType),
    /// The classes themselves, as arguments.
    Tensor,
    Parameter,
    /// `torch.serialization._get_layout`.
    GetLayout,
    RebuildTensor,
    RebuildTensorV2,
    RebuildTensorV3,
    RebuildParameter,
    RebuildSparse,
    RebuildFromType,
    RebuildFromCpu,
}

const STORAGES: [(&str, DType); 12] = [
    ("DoubleStorage", DType::F64),
    ("FloatStorage", DType::F32),
    ("HalfStorage", DType::F16),
    ("BFloat16Storage", DType::BF16),
    ("LongStorage", DType::I64),
    ("IntStorage", DType::I32),
    ("ShortStorage", DType::I16),
    ("CharStorage", DType::I8),
    ("ByteStorage", DType::U8),
    ("BoolStorage", DType::Bool),
    ("ComplexDoubleStorage", DType::C128),
    ("ComplexFloatStorage", DType::C64),
];

/// The class of storages of a dtype, if it has one.
pub(super) fn storage_class(dtype: DType) -> Option<&'static str> {
    STORAGES.iter().find(|(_, own)| *own == dtype).map(|(name, _)| *name)
}

impl Global {
    /// The meaning of a name in a module; `None` for names that are not listed.
    pub(super) fn named(module: &str, name: &str) -> Option<Global> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Global::OrderedDict,
            ("collections", "Counter") => Global::Counter,
            ("builtins" | "__builtin__", "set") => Global::Set,
            ("builtins" | "__builtin__", "bytearray") => Global::ByteArray,
            ("builtins" | "__builtin__", "complex") => Global::Complex,
            ("_codecs", "encode") => Global::Encode,
            ("torch", "Size") => Global::Size,
            ("torch", "device") => Global::Device,
            ("torch", "Tensor") => Global::Tensor,
            ("torch.nn.parameter", "Parameter") => Global::Parameter,
            ("torch.storage", "UntypedStorage") => Global::Storage(DType::U8),
            ("torch.serialization", "_get_layout") => Global::GetLayout,
            ("torch._utils", "_rebuild_tensor") => Global::RebuildTensor,
            ("torch._utils", "_rebuild_tensor_v2") => Global::RebuildTensorV2,
            ("torch._utils", "_rebuild_tensor_v3") => Global::RebuildTensorV3,
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
                Global::RebuildParameter
            }
            ("torch._utils", "_rebuild_sparse_tensor") => Global::RebuildSparse,
            ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor") => Global::RebuildFromCpu,
            ("torch._tensor", "_rebuild_from_type_v2") => Global::RebuildFromType,
            ("torch", name) => {
                let storage = STORAGES.iter().find(|(own, _)| *own == name);
                let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
                storage.map(|(_, dtype)| Global::Storage(*dtype)).or(dtype.map(Global::DType))?
            }
            _ => return None,
        })
    }
}

/// The text of a string.
pub(super) fn text<S: ReadAt>(tree: &Tree<S>, item: Item) -> Result<Arc<str>> {
    match tree.node(item) {
        Some(TreeNode::Value(FileValue::Str(text))) => Ok(text.clone()),
        _ => bail!(runtime, "Weights only load failed: a text is expected, not {item:?}"),
    }
}

fn wrong(global: Global) -> Error {
    Error::runtime(format!(
        "Weights only load failed: {global:?} was given other arguments than it takes"
    ))
}

/// The result of calling the function that a global name stands for.
pub(super) fn call<S: ReadAt>(tree: &mut Tree<S>, global: Global, args: &[Item]) -> Result<Item> {
    let wrong = || wrong(global);
    let value = match (global, args) {
        (Global::OrderedDict, _) => return ordered_dict(tree, args),
        (Global::Counter, [] | [_]) => return counter(tree, args),
        (Global::Set, [list]) => {
            let items = tree.copied(*list)?.ok_or_else(wrong)?;
            return tree.push(TreeNode::Set(items));
        }
        (Global::Set, []) => return tree.push(TreeNode::Set(Vec::new())),
        (Global::ByteArray, []) => FileValue::Bytes([].into()),
        (Global::ByteArray, [bytes]) => match tree.node(*bytes) {
            Some(TreeNode::Value(FileValue::Bytes(bytes))) => FileValue::Bytes(bytes.clone()),
            _ => return Err(wrong()),
        },
        (Global::ByteArray | Global::Encode, [string, encoding]) => {
            let (string, encoding) = (text(tree, *string)?, text(tree, *encoding)?);
            FileValue::Bytes(encoded(&string, &encoding)?)
        }
        (Global::Complex, [real, imaginary]) => {
            let number = |item: Item| match item {
                Item::Float(value) => Ok(value),
                Item::Int(value) => Ok(value as f64),
                _ => Err(wrong()),
            };
            FileValue::Complex(C128::new(number(*real)?, number(*imaginary)?))
        }
        (Global::Size, [sizes]) => FileValue::Size(numbers(tree, *sizes)?[..].into()),
        (Global::Device, [kind]) => FileValue::Device(Device::parse(&text(tree, *kind)?)?),
        (Global::Device, [kind, Item::Int(index)]) => {
            FileValue::Device(Device::parse(&format!("{}:{index}", text(tree, *kind)?))?)
        }
        (Global::GetLayout, [name]) => FileValue::Layout(layout(&text(tree, *name)?)?),
        (Global::RebuildFromType, [function, _, arguments, _]) => {
            return rebuild_from_type(tree, *function, *arguments);
        }
        _ => rebuilt(tree, global, args)?,
    };
    tree.value(value)
}

/// The tensor that a function of `torch._utils` rebuilds from its arguments.
fn rebuilt<S: ReadAt>(tree: &mut Tree<S>, global: Global, args: &[Item]) -> Result<FileValue> {
    let wrong = || wrong(global);
    Ok(match (global, args) {
        (Global::RebuildFromCpu, [data, dtype, _, Item::Bool(requires_grad)]) => {
            let Some(TreeNode::Global(Global::DType(dtype))) = tree.node(*dtype) else {
                return Err(wrong());
            };
            let tensor = tensor(tree, *data)?.to_dtype(*dtype)?.detached()?;
            FileValue::Tensor(with_grad(tensor, *requires_grad)?)
        }
        (Global::Parameter | Global::RebuildParameter, [data, Item::Bool(requires_grad), ..]) => {
            FileValue::Parameter(with_grad(tensor(tree, *data)?.detached()?, *requires_grad)?)
        }
        (Global::RebuildSparse, [layout, data]) => FileValue::Tensor(sparse(tree, *layout, *data)?),
        (Global::RebuildTensor, [storage, geometry @ ..]) if geometry.len() == 3 => {
            FileValue::Tensor(over(tree, *storage, geometry, None)?)
        }
        (Global::RebuildTensorV2, [storage, geometry @ .., Item::Bool(requires_grad), _])
            if geometry.len() == 3 =>
        {
            FileValue::Tensor(with_grad(over(tree, *storage, geometry, None)?, *requires_grad)?)
        }
        (
            Global::RebuildTensorV2,
            [storage, geometry @ .., Item::Bool(requires_grad), _, metadata],
        ) if geometry.len() == 3 => {
            let tensor = over(tree, *storage, geometry, None)?;
            FileValue::Tensor(with_grad(with_bits(tree, tensor, *metadata)?, *requires_grad)?)
        }
        (
            Global::RebuildTensorV3,
            [storage, offset, size, stride, Item::Bool(requires_grad), _, dtype, metadata @ ..],
        ) => {
            let Some(TreeNode::Global(Global::DType(dtype))) = tree.node(*dtype) else {
                return Err(wrong());
            };
            let mut tensor = over(tree, *storage, &[*offset, *size, *stride], Some(*dtype))?;
            if let [metadata] = metadata {
                tensor = with_bits(tree, tensor, *metadata)?;
            }
            FileValue::Tensor(with_grad(tensor, *requires_grad)?)
        }
        _ => return Err(wrong()),
    })
}

fn numbers<S: ReadAt>(tree: &Tree<S>, item: Item) -> Result<Vec<i64>> {
    if let Some(TreeNode::Value(FileValue::Size(sizes))) = tree.node(item) {
        return Ok(pullback_kernels::memory::copied(sizes)?);
    }
    let number = |item: &Item| match item {
        Item::Int(number) => Ok(*number),
        _ => Err(Error::runtime("Weights only load failed: sizes and strides are integers")),
    };
    match tree.node(item) {
        Some(TreeNode::Tuple(items) | TreeNode::List(items)) => items.iter().map(number).collect(),
        _ => bail!(runtime, "Weights only load failed: sizes and strides are tuples"),
    }
}

fn ordered_dict<S: ReadAt>(tree: &mut Tree<S>, args: &[Item]) -> Result<Item> {
    let mut own = Vec::new();
    if let [pairs] = args {
        for pair in tree.copied(*pairs)?.ok_or_else(|| wrong(Global::OrderedDict))? {
            let pair = tree.copied(pair)?.filter(|pair| pair.len() == 2);
            let pair = pair.ok_or_else(|| wrong(Global::OrderedDict))?;
            pullback_kernels::memory::extend(&mut own, pair)?;
        }
    } else if !args.is_empty() {
        return Err(wrong(Global::OrderedDict));
    }
    tree.push(TreeNode::Dict { items: own, is_ordered: true })
}

fn counter<S: ReadAt>(tree: &mut Tree<S>, args: &[Item]) -> Result<Item> {
    let items = match args.first().map(|&item| tree.node(item)) {
        None => Vec::new(),
        Some(Some(TreeNode::Dict { items, .. })) => pullback_kernels::memory::copied(items)?,
        Some(_) => return Err(wrong(Global::Counter)),
    };
    tree.pay_for_copies(items.len())?;
    tree.push(TreeNode::Dict { items, is_ordered: false })
}

fn encoded(string: &str, encoding: &str) -> Result<Arc<[u8]>> {
    match encoding {
        "utf-8" | "utf8" => Ok(string.as_bytes().into()),
        "latin1" | "latin-1" | "iso-8859-1" => {
            let byte = |character| u8::try_from(u32::from(character));
            let bytes: std::result::Result<Vec<u8>, _> = string.chars().map(byte).collect();
            bytes
                .map(Into::into)
                .map_err(|_| Error::value("a text has characters that Latin-1 lacks"))
        }
        other => bail!(runtime, "Weights only load failed: unknown encoding {other:?}"),
    }
}

fn layout(name: &str) -> Result<Layout> {
    let all = [
        Layout::Strided,
        Layout::SparseCoo,
        Layout::SparseCsr,
        Layout::SparseCsc,
        Layout::SparseBsr,
        Layout::SparseBsc,
    ];
    let own = name.strip_prefix("torch.").unwrap_or(name);
    let found = all.into_iter().find(|layout| layout.name() == own);
    found
        .ok_or_else(|| Error::runtime(format!("Weights only load failed: unknown layout {name:?}")))
}

fn tensor<S: ReadAt>(tree: &Tree<S>, item: Item) -> Result<Tensor> {
    match tree.node(item) {
        Some(TreeNode::Value(FileValue::Tensor(tensor) | FileValue::Parameter(tensor))) => {
            Ok(tensor.clone())
        }
        _ => bail!(runtime, "Weights only load failed: a tensor is expected"),
    }
}

/// Such a tensor whose elements are walked through at once: one whose strides show a few bytes
/// without end is refused.
fn held<S: ReadAt>(tree: &Tree<S>, item: Item) -> Result<Tensor> {
    const SPARE: u64 = 1 << 20;
    let tensor = tensor(tree, item)?;
    let held = tensor.storage().map_or(0, |storage| storage.nbytes() as u64);
    let shown = (tensor.numel() as u64).saturating_mul(tensor.dtype().size() as u64);
    ensure!(
        shown <= held.saturating_add(SPARE),
        runtime,
        "{} elements cannot come from {held} bytes",
        tensor.numel()
    );
    Ok(tensor)
}

fn with_grad(tensor: Tensor, requires_grad: bool) -> Result<Tensor> {
    if requires_grad { tensor.with_grad() } else { Ok(tensor) }
}

/// A tensor with conj and neg bits that are not resolved yet.
fn with_bits<S: ReadAt>(tree: &Tree<S>, mut tensor: Tensor, metadata: Item) -> Result<Tensor> {
    let Some(TreeNode::Dict { items, .. }) = tree.node(metadata) else {
        bail!(runtime, "Weights only load failed: a tensor's metadata is a dictionary");
    };
    for pair in items.chunks_exact(2) {
        match (&*text(tree, pair[0])?, pair[1]) {
            (_, Item::Bool(false)) => {}
            ("conj", _) => tensor = tensor.conj()?.detached()?,
            ("neg", _) => tensor = tensor.neg_view()?.detached()?,
            (other, _) => bail!(runtime, "a tensor's metadata {other:?} is not known"),
        }
    }
    Ok(tensor)
}

/// A tensor over a storage, at an offset, with sizes and strides.
fn over<S: ReadAt>(
    tree: &Tree<S>,
    storage: Item,
    geometry: &[Item],
    dtype: Option<DType>,
) -> Result<Tensor> {
    let Some(TreeNode::Storage(storage, own)) = tree.node(storage) else {
        bail!(runtime, "Weights only load failed: a tensor without a storage");
    };
    let (Item::Int(offset), size, stride) =
        (geometry[0], numbers(tree, geometry[1])?, numbers(tree, geometry[2])?)
    else {
        bail!(runtime, "Weights only load failed: an offset is an integer");
    };
    ensure!(
        size.len() == stride.len(),
        runtime,
        "unequal size length ({}) and stride length ({})",
        size.len(),
        stride.len()
    );
    binding::over_storage(storage, &size, &stride, offset, dtype.unwrap_or(*own))
}

/// All elements of a storage.
pub(super) fn whole(storage: &Storage, dtype: DType) -> Result<Tensor> {
    let count = (storage.nbytes() / dtype.size()) as i64;
    binding::over_storage(storage, &[count], &[1], 0, dtype)
}

fn sparse<S: ReadAt>(tree: &mut Tree<S>, layout: Item, data: Item) -> Result<Tensor> {
    let wrong = || wrong(Global::RebuildSparse);
    let Some(TreeNode::Value(FileValue::Layout(layout))) = tree.node(layout) else {
        return Err(wrong());
    };
    let layout = *layout;
    let parts = tree.copied(data)?.ok_or_else(wrong)?;
    match (layout, &parts[..]) {
        (Layout::SparseCoo, [indices, values, size, rest @ ..]) => {
            let is_coalesced = matches!(rest, [Item::Bool(true)]);
            let (indices, values) = (held(tree, *indices)?, held(tree, *values)?);
            Tensor::sparse_coo(&indices, &values, &numbers(tree, *size)?, is_coalesced)
        }
        (layout, [compressed, plain, values, size]) if layout.is_compressed() => {
            let (compressed, plain) = (held(tree, *compressed)?, held(tree, *plain)?);
            let values = held(tree, *values)?;
            Tensor::sparse_compressed(&compressed, &plain, &values, &numbers(tree, *size)?, layout)
        }
        _ => Err(wrong()),
    }
}

/// A tensor with a class and attributes of its own: of the class, only parameters are known here.
fn rebuild_from_type<S: ReadAt>(
    tree: &mut Tree<S>,
    function: Item,
    arguments: Item,
) -> Result<Item> {
    let function = match tree.node(function) {
        Some(TreeNode::Global(function)) if *function != Global::RebuildFromType => *function,
        _ => return Err(wrong(Global::RebuildFromType)),
    };
    let arguments = tree.copied(arguments)?.ok_or_else(|| wrong(Global::RebuildFromType))?;
    call(tree, function, &arguments)
}
