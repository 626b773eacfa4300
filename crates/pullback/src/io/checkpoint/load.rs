//! An archive's pickle as a [`FileValue`].

use super::restore::{self, Global};
use crate::error::{Error, bail, ensure};
use crate::io::pickle::{self, Broken, Build, Constant, Limits};
use crate::io::zip::Archive;
use crate::io::{FileSource, FileValue, ReadAt, elements};
use crate::{DType, Result, Storage};
use pullback_kernels::memory;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The depth to which collections may be nested. Nested collections are walked through, and freed,
/// by recursion.
const DEEPEST: u32 = 500;

/// How many objects a checkpoint may show, collections that are in several places counted in each: as many as there are
/// objects in the file times this, or [`FEW`]. Whoever walks through it ([`FileValue::tensors`]) visits each.
const SHOWN_PER_OBJECT: u64 = 16;
const FEW: u64 = 1 << 20;

/// How many elements of collections may be copied to others that are made of them (`set(list)`): as many as the pickle has
/// bytes times this, or [`FEW`].
const COPIED_PER_BYTE: u64 = 16;

/// Reads a checkpoint that `torch.save` wrote, of weights: tensors (on the CPU, those that shared memory share it), plain data
/// and collections. Attributes of tensors and dictionaries are left out.
///
/// ```
/// use pullback::{Tensor, io};
/// # fn main() -> pullback::Result<()> {
/// let path = std::env::temp_dir().join("pullback_load_example.pt");
/// let state = io::FileValue::state_dict([("weight", Tensor::from_slice(&[1.0, 2.0], &[2])?)]);
/// io::save(&state, &path)?;
/// let weight = io::load(&path)?.get("weight").and_then(io::FileValue::as_tensor).cloned().unwrap();
/// assert_eq!(weight.to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `RuntimeError` for files that cannot be read, damaged archives, pickles that are wrong or hold more than weights, and tensors
/// that do not fit their storages; out of memory. Formats of before 2020 are refused.
pub fn load(path: impl AsRef<Path>) -> Result<FileValue> {
    load_from(FileSource::open(path.as_ref())?)
}

/// As [`load`], from any source of bytes: `load_from(&bytes[..])`.
///
/// # Errors
/// As for [`load`].
pub fn load_from(source: impl ReadAt) -> Result<FileValue> {
    let mut archive = Archive::open(source)?;
    let first = archive.records().first().map_or("", |record| record.name.as_str());
    let Some((folder, _)) = first.split_once('/') else {
        bail!(runtime, "the file is an archive, but no checkpoint: {first:?} is in no folder");
    };
    let folder = folder.to_owned();
    let data = read(&mut archive, &folder, "data.pkl")?;
    let order = match archive.find(&format!("{folder}/byteorder")) {
        Some(_) => read(&mut archive, &folder, "byteorder")?,
        None => b"little".to_vec(),
    };
    let is_big = match &order[..] {
        b"little" => false,
        b"big" => true,
        other => bail!(value, "Unknown endianness type: {}", String::from_utf8_lossy(other)),
    };
    let swaps = is_big != cfg!(target_endian = "big");
    let (nodes, storages) = (Vec::new(), HashMap::new());
    let copies_left = FEW.max(COPIED_PER_BYTE.saturating_mul(data.len() as u64));
    let mut tree = Tree { archive, folder, swaps, nodes, storages, copies_left };
    let (root, _) = pickle::run(&data, 0, Limits::default(), &mut tree)?;
    let most = FEW.max(SHOWN_PER_OBJECT.saturating_mul(tree.nodes.len() as u64));
    let mut finished =
        Finished { nodes: &tree.nodes, done: HashMap::new(), open: HashSet::new(), most };
    finished.value(root).map(|made| made.value)
}

fn read<S: ReadAt>(archive: &mut Archive<S>, folder: &str, name: &str) -> Result<Vec<u8>> {
    let full = format!("{folder}/{name}");
    let Some(record) = archive.find(&full).cloned() else {
        bail!(runtime, "PytorchStreamReader failed locating file {name}: file not found");
    };
    archive.read(&record)
}

impl From<Broken> for Error {
    fn from(Broken(fault): Broken) -> Error {
        Error::runtime(format!("Weights only load failed: {fault}"))
    }
}

/// An object on the machine's stack: small ones are all there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A larger object, by its index in the list of nodes.
    Node(u32),
}

/// A larger object.
pub(super) enum TreeNode {
    Value(FileValue),
    Global(Global),
    Storage(Storage, DType),
    List(Vec<Item>),
    Tuple(Vec<Item>),
    Set(Vec<Item>),
    Dict { items: Vec<Item>, is_ordered: bool },
}

/// Makes nodes of a pickle's operations.
pub(super) struct Tree<S> {
    archive: Archive<S>,
    folder: String,
    swaps: bool,
    nodes: Vec<TreeNode>,
    storages: HashMap<Arc<str>, Storage>,
    /// How many elements may still be copied from collection to collection.
    copies_left: u64,
}

impl<S: ReadAt> Tree<S> {
    /// The elements of a list, tuple or set, for another collection; `None` of anything else.
    pub(super) fn copied(&mut self, item: Item) -> Result<Option<Vec<Item>>> {
        let Some(TreeNode::List(items) | TreeNode::Tuple(items) | TreeNode::Set(items)) =
            self.node(item)
        else {
            return Ok(None);
        };
        let items = memory::copied(items)?;
        self.pay_for_copies(items.len())?;
        Ok(Some(items))
    }
    /// Counts elements that are copied. Without a bound, a short file could ask for a long list again and again.
    pub(super) fn pay_for_copies(&mut self, count: usize) -> Result<()> {
        let left = self.copies_left.checked_sub(count as u64);
        self.copies_left = left.ok_or_else(|| {
            Error::runtime("Weights only load failed: collections are copied too often")
        })?;
        Ok(())
    }
    pub(super) fn push(&mut self, node: TreeNode) -> Result<Item> {
        let Ok(index) = u32::try_from(self.nodes.len()) else {
            bail!(runtime, "Weights only load failed: more than 2^32 objects");
        };
        memory::push(&mut self.nodes, node)?;
        Ok(Item::Node(index))
    }
    pub(super) fn value(&mut self, value: FileValue) -> Result<Item> {
        self.push(TreeNode::Value(value))
    }
    pub(super) fn node(&self, item: Item) -> Option<&TreeNode> {
        if let Item::Node(index) = item { self.nodes.get(index as usize) } else { None }
    }
    fn node_mut(&mut self, item: Item) -> Option<&mut TreeNode> {
        if let Item::Node(index) = item { self.nodes.get_mut(index as usize) } else { None }
    }
    /// The storage that a persistent id describes.
    fn storage(&mut self, id: Item) -> Result<(Storage, DType)> {
        let parts = match self.node(id) {
            Some(TreeNode::Tuple(parts)) if parts.len() == 5 => {
                [parts[0], parts[1], parts[2], parts[4]]
            }
            _ => bail!(runtime, "Weights only load failed: a persistent id that is no storage's"),
        };
        let Some(TreeNode::Global(Global::Storage(dtype))) = self.node(parts[1]) else {
            bail!(runtime, "Weights only load failed: a storage of an unknown class");
        };
        let dtype = *dtype;
        let (kind, key) = (restore::text(self, parts[0])?, restore::text(self, parts[2])?);
        ensure!(
            &*kind == "storage",
            runtime,
            "Only persistent_load of storage is allowed, but got {kind:?}"
        );
        let Item::Int(count @ 0..) = parts[3] else {
            bail!(runtime, "Weights only load failed: storage {key:?} has no number of elements");
        };
        let bytes = (count as u64).saturating_mul(dtype.size() as u64);
        if let Some(known) = self.storages.get(&key).filter(|s| s.nbytes() as u64 == bytes) {
            return Ok((known.clone(), dtype));
        }
        let name = format!("{}/data/{key}", self.folder);
        let Some(record) = self.archive.find(&name).cloned() else {
            bail!(runtime, "PytorchStreamReader failed locating file data/{key}: file not found");
        };
        // References that do not agree about the size would each read the record.
        ensure!(!self.storages.contains_key(&key), runtime, "storage {key:?} has two sizes");
        let mut storage = self.archive.read_storage(&record, bytes)?;
        if self.swaps {
            storage = elements::swapped(&storage, dtype)?;
        }
        self.storages.insert(key, storage.clone());
        Ok((storage, dtype))
    }
}

impl<S: ReadAt> Build for Tree<S> {
    type Object = Item;
    type Error = Error;

    fn constant(&mut self, constant: Constant<'_>) -> Result<Item> {
        let value = match constant {
            Constant::None => return Ok(Item::None),
            Constant::Bool(value) => return Ok(Item::Bool(value)),
            Constant::Int(value) => return Ok(Item::Int(value)),
            Constant::Float(value) => return Ok(Item::Float(value)),
            Constant::BigInt(bytes) => FileValue::BigInt(bytes[..].into()),
            Constant::Text(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => FileValue::Str(text.into()),
                Err(_) => bail!(runtime, "Weights only load failed: a text is no UTF-8"),
            },
            Constant::Bytes(bytes) | Constant::ByteArray(bytes) => FileValue::Bytes(bytes.into()),
            Constant::OldString(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => FileValue::Str(text.into()),
                Err(_) => FileValue::Bytes(bytes[..].into()),
            },
        };
        self.value(value)
    }
    fn tuple(&mut self, items: Vec<Item>) -> Result<Item> {
        self.push(TreeNode::Tuple(items))
    }
    fn list(&mut self, items: Vec<Item>) -> Result<Item> {
        self.push(TreeNode::List(items))
    }
    fn dict(&mut self) -> Result<Item> {
        self.push(TreeNode::Dict { items: Vec::new(), is_ordered: false })
    }
    fn set(&mut self, items: Vec<Item>, _: bool) -> Result<Item> {
        self.push(TreeNode::Set(items))
    }
    fn append(&mut self, list: &Item, items: Vec<Item>) -> Result<()> {
        match self.node_mut(*list) {
            Some(TreeNode::List(list)) => Ok(memory::extend(list, items)?),
            _ => bail!(runtime, "Can only append to lists"),
        }
    }
    fn set_items(&mut self, dict: &Item, items: Vec<Item>) -> Result<()> {
        match self.node_mut(*dict) {
            Some(TreeNode::Dict { items: own, .. }) => Ok(memory::extend(own, items)?),
            _ => bail!(
                runtime,
                "Can only SETITEMS for dict, collections.OrderedDict, collections.Counter"
            ),
        }
    }
    fn add(&mut self, set: &Item, items: Vec<Item>) -> Result<()> {
        match self.node_mut(*set) {
            Some(TreeNode::Set(set)) => Ok(memory::extend(set, items)?),
            _ => bail!(runtime, "Can only add to sets"),
        }
    }
    fn global(&mut self, module: &str, name: &str) -> Result<Item> {
        let Some(global) = Global::named(module, name) else {
            bail!(
                runtime,
                "Weights only load failed: Unsupported global: GLOBAL {module}.{name} was not an allowed global by default"
            );
        };
        self.push(TreeNode::Global(global))
    }
    fn text(&self, object: &Item) -> Option<String> {
        match self.node(*object) {
            Some(TreeNode::Value(FileValue::Str(text))) => Some(text.to_string()),
            _ => None,
        }
    }
    fn reduce(&mut self, callable: Item, arguments: Item) -> Result<Item> {
        let Some(TreeNode::Global(global)) = self.node(callable) else {
            bail!(runtime, "Trying to call reduce for unrecognized function");
        };
        let global = *global;
        let Some(TreeNode::Tuple(arguments)) = self.node(arguments) else {
            bail!(runtime, "the arguments of {global:?} are no tuple");
        };
        let arguments = memory::copied(arguments)?;
        restore::call(self, global, &arguments)
    }
    fn new_object(&mut self, class: Item, arguments: Item, keywords: Option<Item>) -> Result<Item> {
        ensure!(keywords.is_none(), runtime, "no class of a checkpoint takes keywords");
        self.reduce(class, arguments)
    }
    fn build(&mut self, instance: &Item, _: Item) -> Result<()> {
        match self.node(*instance) {
            // Attributes, such as the `_metadata` of state dicts.
            Some(
                TreeNode::Dict { .. }
                | TreeNode::Value(FileValue::Tensor(_) | FileValue::Parameter(_)),
            ) => Ok(()),
            _ => bail!(runtime, "Can only build Tensor, Parameter, OrderedDict"),
        }
    }
    fn persistent(&mut self, id: Item) -> Result<Item> {
        let (storage, dtype) = self.storage(id)?;
        self.push(TreeNode::Storage(storage, dtype))
    }
    fn protocol(&mut self, _: u8) -> Result<()> {
        Ok(())
    }
}

/// Turns nodes, which may refer to each other in any way, into values, which cannot.
struct Finished<'a> {
    nodes: &'a [TreeNode],
    /// The values that were made.
    done: HashMap<u32, Made>,
    /// The nodes whose values are being made.
    open: HashSet<u32>,
    /// How many objects a value may show.
    most: u64,
}

/// A value, the depth of its nested collections, and the number of objects that it shows.
#[derive(Clone)]
struct Made {
    value: FileValue,
    depth: u32,
    shown: u64,
}

impl Made {
    fn plain(value: FileValue) -> Made {
        Made { value, depth: 0, shown: 1 }
    }
}

impl Finished<'_> {
    fn value(&mut self, item: Item) -> Result<Made> {
        let index = match item {
            Item::None => return Ok(Made::plain(FileValue::None)),
            Item::Bool(value) => return Ok(Made::plain(FileValue::Bool(value))),
            Item::Int(value) => return Ok(Made::plain(FileValue::Int(value))),
            Item::Float(value) => return Ok(Made::plain(FileValue::Float(value))),
            Item::Node(index) => index,
        };
        if let Some(done) = self.done.get(&index) {
            return Ok(done.clone());
        }
        ensure!(
            self.open.len() < DEEPEST as usize,
            runtime,
            "collections are nested deeper than {DEEPEST}"
        );
        ensure!(self.open.insert(index), runtime, "a collection contains itself");
        let nodes = self.nodes;
        let made = match &nodes[index as usize] {
            TreeNode::Value(value) => Made::plain(value.clone()),
            TreeNode::Global(Global::DType(dtype)) => Made::plain(FileValue::DType(*dtype)),
            TreeNode::Global(global) => {
                bail!(runtime, "{global:?} cannot stand for itself in a checkpoint")
            }
            TreeNode::Storage(storage, dtype) => {
                Made::plain(restore::whole(storage, *dtype)?.into())
            }
            TreeNode::List(items) => {
                self.collection(items, |list| Ok(FileValue::List(list.into())))?
            }
            TreeNode::Tuple(items) => {
                self.collection(items, |list| Ok(FileValue::Tuple(list.into())))?
            }
            TreeNode::Set(items) => {
                self.collection(items, |list| Ok(FileValue::Set(list.into())))?
            }
            TreeNode::Dict { items, is_ordered: true } => {
                self.collection(items, |list| Ok(FileValue::OrderedDict(pairs(list)?.into())))?
            }
            TreeNode::Dict { items, is_ordered: false } => {
                self.collection(items, |list| Ok(FileValue::Dict(pairs(list)?.into())))?
            }
        };
        self.open.remove(&index);
        ensure!(made.depth < DEEPEST, runtime, "collections are nested deeper than {DEEPEST}");
        ensure!(
            made.shown <= self.most,
            runtime,
            "collections that are in several places show {} objects, more than the {} that are read",
            made.shown,
            self.most
        );
        self.done.insert(index, made.clone());
        Ok(made)
    }
    fn collection(
        &mut self,
        items: &[Item],
        make: fn(Vec<FileValue>) -> Result<FileValue>,
    ) -> Result<Made> {
        let mut values = memory::with_capacity(items.len())?;
        let (mut depth, mut shown) = (0, 1_u64);
        for &item in items {
            let made = self.value(item)?;
            depth = depth.max(made.depth);
            shown = shown.saturating_add(made.shown);
            values.push(made.value);
        }
        Ok(Made { value: make(values)?, depth: depth + 1, shown })
    }
}

/// Keys and values, which alternate.
fn pairs(values: Vec<FileValue>) -> Result<Vec<(FileValue, FileValue)>> {
    let mut pairs = memory::with_capacity(values.len() / 2)?;
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    Ok(pairs)
}
