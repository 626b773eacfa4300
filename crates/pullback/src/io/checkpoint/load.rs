//! An archive's pickle as a [`Value`].

use super::restore::{self, Global};
use crate::error::{Error, bail, ensure};
use crate::io::pickle::{self, Broken, Build, Constant, Limits};
use crate::io::zip::Archive;
use crate::io::{FileSource, Source, Value};
use crate::{DType, Result, Storage};
use pullback_kernels::memory;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// How deep collections may lie in each other. What is nested is walked through, and freed, by recursion.
const DEEPEST: u32 = 500;

/// Reads a checkpoint that `torch.save` wrote, of weights: tensors (on the CPU, those that shared memory share it), plain data
/// and collections. Attributes of tensors and dictionaries are left out.
///
/// ```
/// use pullback::{Tensor, io};
/// # fn main() -> pullback::Result<()> {
/// let path = std::env::temp_dir().join("pullback_load_example.pt");
/// let state = io::Value::state_dict([("weight", Tensor::from_slice(&[1.0, 2.0], &[2])?)]);
/// io::save(&state, &path)?;
/// let weight = io::load(&path)?.get("weight").and_then(io::Value::as_tensor).cloned().unwrap();
/// assert_eq!(weight.to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `RuntimeError` for files that cannot be read, damaged archives, pickles that are wrong or hold more than weights, and tensors
/// that do not fit their storages; out of memory. Formats of before 2020 are refused.
pub fn load(path: impl AsRef<Path>) -> Result<Value> {
    load_from(FileSource::open(path.as_ref())?)
}

/// As [`load`], from any source of bytes: `load_from(&bytes[..])`.
///
/// # Errors
/// As for [`load`].
pub fn load_from(source: impl Source) -> Result<Value> {
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
    let mut tree = Tree { archive, folder, swaps, nodes, storages };
    let (root, _) = pickle::run(&data, 0, Limits::default(), &mut tree)?;
    Finished { nodes: &tree.nodes, done: HashMap::new(), open: HashSet::new() }
        .value(root)
        .map(|(value, _)| value)
}

fn read<S: Source>(archive: &mut Archive<S>, folder: &str, name: &str) -> Result<Vec<u8>> {
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
    /// By its place in the list of nodes.
    Node(u32),
}

/// A larger object.
pub(super) enum Node {
    Value(Value),
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
    nodes: Vec<Node>,
    storages: HashMap<Arc<str>, Storage>,
}

impl<S: Source> Tree<S> {
    pub(super) fn push(&mut self, node: Node) -> Result<Item> {
        let Ok(place) = u32::try_from(self.nodes.len()) else {
            bail!(runtime, "Weights only load failed: more than 2^32 objects");
        };
        memory::push(&mut self.nodes, node)?;
        Ok(Item::Node(place))
    }
    pub(super) fn value(&mut self, value: Value) -> Result<Item> {
        self.push(Node::Value(value))
    }
    pub(super) fn node(&self, item: Item) -> Option<&Node> {
        if let Item::Node(place) = item { self.nodes.get(place as usize) } else { None }
    }
    fn node_mut(&mut self, item: Item) -> Option<&mut Node> {
        if let Item::Node(place) = item { self.nodes.get_mut(place as usize) } else { None }
    }
    /// The storage that a persistent id describes.
    fn storage(&mut self, id: Item) -> Result<(Storage, DType)> {
        let parts = match self.node(id) {
            Some(Node::Tuple(parts)) if parts.len() == 5 => {
                [parts[0], parts[1], parts[2], parts[4]]
            }
            _ => bail!(runtime, "Weights only load failed: a persistent id that is no storage's"),
        };
        let Some(Node::Global(Global::Storage(dtype))) = self.node(parts[1]) else {
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
            storage = restore::swapped(&storage, dtype)?;
        }
        self.storages.insert(key, storage.clone());
        Ok((storage, dtype))
    }
}

impl<S: Source> Build for Tree<S> {
    type Object = Item;
    type Error = Error;

    fn constant(&mut self, constant: Constant<'_>) -> Result<Item> {
        let value = match constant {
            Constant::None => return Ok(Item::None),
            Constant::Bool(value) => return Ok(Item::Bool(value)),
            Constant::Int(value) => return Ok(Item::Int(value)),
            Constant::Float(value) => return Ok(Item::Float(value)),
            Constant::BigInt(bytes) => Value::BigInt(bytes[..].into()),
            Constant::Text(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => Value::Str(text.into()),
                Err(_) => bail!(runtime, "Weights only load failed: a text is no UTF-8"),
            },
            Constant::Bytes(bytes) | Constant::ByteArray(bytes) => Value::Bytes(bytes.into()),
            Constant::OldString(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => Value::Str(text.into()),
                Err(_) => Value::Bytes(bytes[..].into()),
            },
        };
        self.value(value)
    }
    fn tuple(&mut self, items: Vec<Item>) -> Result<Item> {
        self.push(Node::Tuple(items))
    }
    fn list(&mut self, items: Vec<Item>) -> Result<Item> {
        self.push(Node::List(items))
    }
    fn dict(&mut self) -> Result<Item> {
        self.push(Node::Dict { items: Vec::new(), is_ordered: false })
    }
    fn set(&mut self, items: Vec<Item>, _: bool) -> Result<Item> {
        self.push(Node::Set(items))
    }
    fn append(&mut self, list: &Item, items: Vec<Item>) -> Result<()> {
        match self.node_mut(*list) {
            Some(Node::List(list)) => Ok(memory::extend(list, items)?),
            _ => bail!(runtime, "Can only append to lists"),
        }
    }
    fn set_items(&mut self, dict: &Item, items: Vec<Item>) -> Result<()> {
        match self.node_mut(*dict) {
            Some(Node::Dict { items: own, .. }) => Ok(memory::extend(own, items)?),
            _ => bail!(
                runtime,
                "Can only SETITEMS for dict, collections.OrderedDict, collections.Counter"
            ),
        }
    }
    fn add(&mut self, set: &Item, items: Vec<Item>) -> Result<()> {
        match self.node_mut(*set) {
            Some(Node::Set(set)) => Ok(memory::extend(set, items)?),
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
        self.push(Node::Global(global))
    }
    fn text(&self, object: &Item) -> Option<String> {
        match self.node(*object) {
            Some(Node::Value(Value::Str(text))) => Some(text.to_string()),
            _ => None,
        }
    }
    fn reduce(&mut self, callable: Item, arguments: Item) -> Result<Item> {
        let Some(Node::Global(global)) = self.node(callable) else {
            bail!(runtime, "Trying to call reduce for unrecognized function");
        };
        let global = *global;
        let Some(Node::Tuple(arguments)) = self.node(arguments) else {
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
            Some(Node::Dict { .. } | Node::Value(Value::Tensor(_) | Value::Parameter(_))) => Ok(()),
            _ => bail!(runtime, "Can only build Tensor, Parameter, OrderedDict"),
        }
    }
    fn persistent(&mut self, id: Item) -> Result<Item> {
        let (storage, dtype) = self.storage(id)?;
        self.push(Node::Storage(storage, dtype))
    }
    fn protocol(&mut self, _: u8) -> Result<()> {
        Ok(())
    }
}

/// Turns nodes, which may refer to each other in any way, into values, which cannot.
struct Finished<'a> {
    nodes: &'a [Node],
    /// What was made, and how deep it is nested.
    done: HashMap<u32, (Value, u32)>,
    /// What is being made.
    open: HashSet<u32>,
}

impl Finished<'_> {
    fn value(&mut self, item: Item) -> Result<(Value, u32)> {
        let place = match item {
            Item::None => return Ok((Value::None, 0)),
            Item::Bool(value) => return Ok((Value::Bool(value), 0)),
            Item::Int(value) => return Ok((Value::Int(value), 0)),
            Item::Float(value) => return Ok((Value::Float(value), 0)),
            Item::Node(place) => place,
        };
        if let Some(done) = self.done.get(&place) {
            return Ok(done.clone());
        }
        ensure!(
            self.open.len() < DEEPEST as usize,
            runtime,
            "collections are nested deeper than {DEEPEST}"
        );
        ensure!(self.open.insert(place), runtime, "a collection contains itself");
        let nodes = self.nodes;
        let made = match &nodes[place as usize] {
            Node::Value(value) => (value.clone(), 0),
            Node::Global(Global::DType(dtype)) => (Value::DType(*dtype), 0),
            Node::Global(global) => {
                bail!(runtime, "{global:?} cannot stand for itself in a checkpoint")
            }
            Node::Storage(storage, dtype) => (restore::whole(storage, *dtype)?.into(), 0),
            Node::List(items) => self.collection(items, Value::List)?,
            Node::Tuple(items) => self.collection(items, Value::Tuple)?,
            Node::Set(items) => self.collection(items, Value::Set)?,
            Node::Dict { items, is_ordered } => self.dict(items, *is_ordered)?,
        };
        self.open.remove(&place);
        ensure!(made.1 < DEEPEST, runtime, "collections are nested deeper than {DEEPEST}");
        self.done.insert(place, made.clone());
        Ok(made)
    }
    fn list(&mut self, items: &[Item]) -> Result<(Vec<Value>, u32)> {
        let mut values = memory::with_capacity(items.len())?;
        let mut depth = 0;
        for &item in items {
            let (value, below) = self.value(item)?;
            depth = depth.max(below);
            values.push(value);
        }
        Ok((values, depth + 1))
    }
    fn collection(
        &mut self,
        items: &[Item],
        make: fn(Arc<Vec<Value>>) -> Value,
    ) -> Result<(Value, u32)> {
        self.list(items).map(|(values, depth)| (make(Arc::new(values)), depth))
    }
    fn dict(&mut self, items: &[Item], is_ordered: bool) -> Result<(Value, u32)> {
        let (values, depth) = self.list(items)?;
        let mut pairs = memory::with_capacity(values.len() / 2)?;
        let mut values = values.into_iter();
        while let (Some(key), Some(value)) = (values.next(), values.next()) {
            pairs.push((key, value));
        }
        let pairs = Arc::new(pairs);
        Ok((if is_ordered { Value::OrderedDict(pairs) } else { Value::Dict(pairs) }, depth))
    }
}
