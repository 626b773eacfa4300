//! A [`FileValue`] as an archive: the pickle as PyTorch's pickler would write it, protocol 2, and the storages.

use super::restore::storage_class;
use crate::error::{bail, ensure};
use crate::io::FileValue;
use crate::io::pickle::Pickler;
use crate::io::source::failed;
use crate::io::zip::ArchiveWriter;
use crate::tensor::{Compressed, Coo, Sparse};
use crate::{Device, Layout, Result, Storage, Tensor};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Records begin at multiples of so many bytes.
const ALIGNMENT: u64 = 64;

/// Writes a value into a file that PyTorch reads with `torch.load`. Tensors that share memory share it in the file, of which all
/// is written; history and gradients are not kept.
///
/// # Errors
/// `RuntimeError` for files that cannot be written, tensors that show the same memory with different dtypes, and tensors without
/// memory.
pub fn save(value: &FileValue, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let name = path.file_stem().map_or_else(|| "archive".into(), |stem| stem.to_string_lossy());
    let state = CheckpointParts::of(value)?;
    let file = File::create(path).map_err(|error| failed("create", path, &error))?;
    state.write(BufWriter::new(file), &name)
}

/// As [`save`], into any stream.
///
/// # Errors
/// As for [`save`].
pub fn save_to(value: &FileValue, out: impl Write) -> Result<()> {
    CheckpointParts::of(value)?.write(out, "archive")
}

/// The parts of a checkpoint that are to be written.
#[derive(Default)]
struct CheckpointParts {
    pickle: Pickler,
    /// Storages in the order of their keys.
    storages: Vec<(Storage, crate::DType)>,
    keys: HashMap<usize, usize>,
    /// Tensors that are known by their address, which this keeps alive.
    kept: Vec<Tensor>,
}

impl CheckpointParts {
    fn of(value: &FileValue) -> Result<CheckpointParts> {
        let mut saved = CheckpointParts::default();
        saved.value(value)?;
        saved.pickle.stop();
        Ok(saved)
    }

    fn write(self, out: impl Write, folder: &str) -> Result<()> {
        let mut archive = ArchiveWriter::new(out, folder, ALIGNMENT, true)?;
        archive.record("data.pkl", self.pickle.bytes())?;
        archive.record(".format_version", b"1")?;
        archive.record(".storage_alignment", ALIGNMENT.to_string().as_bytes())?;
        let order: &[u8] = if cfg!(target_endian = "little") { b"little" } else { b"big" };
        archive.record("byteorder", order)?;
        for (key, (storage, _)) in self.storages.iter().enumerate() {
            storage.with_bytes(|bytes| archive.record(&format!("data/{key}"), bytes))??;
        }
        archive.finish().map(drop)
    }

    fn value(&mut self, value: &FileValue) -> Result<()> {
        let out = &mut self.pickle;
        match value {
            FileValue::None => out.none(),
            FileValue::Bool(value) => out.bool(*value),
            FileValue::Int(value) => out.int(*value),
            FileValue::BigInt(bytes) => self.big_int(bytes)?,
            FileValue::Float(value) => out.float(*value),
            FileValue::Str(text) => out.text(text),
            FileValue::Complex(value) => {
                out.global("builtins", "complex");
                out.float(value.re);
                out.float(value.im);
                out.tuple(2);
                out.reduce();
            }
            FileValue::Bytes(bytes) => self.bytes(bytes),
            FileValue::DType(dtype) => out.global("torch", dtype.name()),
            FileValue::Layout(layout) => self.layout(*layout),
            FileValue::Device(device) => self.device(*device),
            FileValue::Size(sizes) => {
                out.global("torch", "Size");
                self.sizes(sizes);
                self.pickle.tuple(1);
                self.pickle.reduce();
            }
            FileValue::Tensor(tensor) => self.tensor(tensor)?,
            FileValue::Parameter(tensor) => {
                out.global("torch._utils", "_rebuild_parameter");
                self.tensor(&tensor.detached()?)?;
                self.pickle.bool(tensor.requires_grad());
                self.no_hooks();
                self.pickle.tuple(3);
                self.pickle.reduce();
            }
            FileValue::List(items) => self.list(items)?,
            FileValue::Tuple(items) => self.tuple(items)?,
            FileValue::Set(items) => {
                out.global("builtins", "set");
                self.list(items)?;
                self.pickle.tuple(1);
                self.pickle.reduce();
            }
            FileValue::Dict(items) => self.dict(items, false)?,
            FileValue::OrderedDict(items) => self.dict(items, true)?,
        }
        Ok(())
    }

    fn big_int(&mut self, bytes: &[u8]) -> Result<()> {
        let fits = i32::try_from(bytes.len()).is_ok();
        ensure!(fits, value, "an integer of {} bytes is too long for a pickle", bytes.len());
        self.pickle.big_int(bytes);
        Ok(())
    }

    /// Protocol 2 has no bytes: they are a text in Latin-1 that is encoded.
    fn bytes(&mut self, bytes: &[u8]) {
        let out = &mut self.pickle;
        out.global("_codecs", "encode");
        out.text(&bytes.iter().map(|&byte| char::from(byte)).collect::<String>());
        out.text("latin1");
        out.tuple(2);
        out.reduce();
    }

    /// A tuple is written once, and found again by its address: tuples that hold others twice would unfold without end.
    fn tuple(&mut self, items: &Arc<Vec<FileValue>>) -> Result<()> {
        let address = Arc::as_ptr(items) as usize;
        if self.pickle.known(address) {
            return Ok(());
        }
        self.pickle.begin_tuple(items.len());
        for item in items.iter() {
            self.value(item)?;
        }
        self.pickle.tuple(items.len());
        self.pickle.remember(address);
        Ok(())
    }

    fn list(&mut self, items: &Arc<Vec<FileValue>>) -> Result<()> {
        if self.pickle.known(Arc::as_ptr(items) as usize) {
            return Ok(());
        }
        self.pickle.empty_list(Arc::as_ptr(items) as usize);
        for item in items.iter() {
            self.value(item)?;
            self.pickle.append();
        }
        Ok(())
    }

    fn dict(&mut self, items: &Arc<Vec<(FileValue, FileValue)>>, is_ordered: bool) -> Result<()> {
        let address = Arc::as_ptr(items) as usize;
        if self.pickle.known(address) {
            return Ok(());
        }
        if is_ordered {
            self.no_hooks();
            self.pickle.remember(address);
        } else {
            self.pickle.empty_dict(address);
        }
        for (key, value) in items.iter() {
            self.value(key)?;
            self.value(value)?;
            self.pickle.set_item();
        }
        Ok(())
    }

    /// An empty ordered dictionary: what stands for hooks too.
    fn no_hooks(&mut self) {
        self.pickle.global("collections", "OrderedDict");
        self.pickle.tuple(0);
        self.pickle.reduce();
    }

    fn layout(&mut self, layout: Layout) {
        self.pickle.global("torch.serialization", "_get_layout");
        self.pickle.text(&format!("torch.{}", layout.name()));
        self.pickle.tuple(1);
        self.pickle.reduce();
    }

    fn device(&mut self, device: Device) {
        self.pickle.global("torch", "device");
        self.pickle.text(device.kind());
        if let Some(index) = device.index() {
            self.pickle.int(index.into());
        }
        self.pickle.tuple(1 + usize::from(device.index().is_some()));
        self.pickle.reduce();
    }

    fn sizes(&mut self, sizes: &[i64]) {
        self.pickle.begin_tuple(sizes.len());
        for &size in sizes {
            self.pickle.int(size);
        }
        self.pickle.tuple(sizes.len());
    }

    fn tensor(&mut self, tensor: &Tensor) -> Result<()> {
        if self.pickle.known(tensor.id()) {
            return Ok(());
        }
        if let Some(parts) = tensor.sparse() {
            return self.sparse(tensor, &parts);
        }
        // (Conj and neg bits are written as such.)
        let resolved =
            if tensor.is_unresolved() { &tensor.resolve_conj()?.resolve_neg()? } else { tensor };
        let Some(storage) = resolved.storage() else {
            bail!(runtime, "a tensor on {} has no memory that could be saved", tensor.device());
        };
        let class = storage_class(tensor.dtype());
        let version = if class.is_some() { "_rebuild_tensor_v2" } else { "_rebuild_tensor_v3" };
        self.pickle.global("torch._utils", version);
        let count = 6 + usize::from(class.is_none());
        self.pickle.begin_tuple(count);
        self.storage(&storage, tensor.dtype(), class)?;
        self.pickle.int(resolved.storage_offset());
        self.sizes(resolved.shape());
        self.sizes(resolved.strides());
        self.pickle.bool(tensor.requires_grad() && tensor.is_leaf());
        self.no_hooks();
        if class.is_none() {
            self.pickle.global("torch", tensor.dtype().name());
        }
        self.pickle.tuple(count);
        self.pickle.reduce();
        self.pickle.remember(tensor.id());
        self.kept.push(tensor.clone());
        Ok(())
    }

    fn sparse(&mut self, tensor: &Tensor, parts: &Sparse) -> Result<()> {
        self.pickle.global("torch._utils", "_rebuild_sparse_tensor");
        self.layout(tensor.layout());
        self.pickle.begin_tuple(4);
        match parts {
            Sparse::Coo(Coo { indices, values, is_coalesced }) => {
                self.tensor(indices)?;
                self.tensor(values)?;
                self.value(&FileValue::Size(tensor.shape().into()))?;
                self.pickle.bool(*is_coalesced);
            }
            Sparse::Compressed(Compressed { compressed, plain, values }) => {
                for part in [compressed, plain, values] {
                    self.tensor(part)?;
                }
                self.value(&FileValue::Size(tensor.shape().into()))?;
            }
        }
        self.pickle.tuple(4);
        self.pickle.tuple(2);
        self.pickle.reduce();
        self.pickle.remember(tensor.id());
        self.kept.push(tensor.clone());
        Ok(())
    }

    fn storage(
        &mut self,
        storage: &Storage,
        dtype: crate::DType,
        class: Option<&str>,
    ) -> Result<()> {
        let own = if class.is_some() { dtype } else { crate::DType::U8 };
        let next = self.storages.len();
        let key = *self.keys.entry(storage.id()).or_insert(next);
        if key == next {
            self.storages.push((storage.clone(), own));
        } else if self.storages[key].1 != own && storage.nbytes() > 0 {
            bail!(
                runtime,
                "Cannot save multiple tensors or storages that view the same data as different types"
            );
        }
        let out = &mut self.pickle;
        out.begin_tuple(5);
        out.text("storage");
        match class {
            Some(class) => out.global("torch", class),
            None => out.global("torch.storage", "UntypedStorage"),
        }
        out.text(&key.to_string());
        out.text(&storage.device().to_string());
        out.int((storage.nbytes() / own.size()) as i64);
        out.tuple(5);
        out.persistent();
        Ok(())
    }
}
