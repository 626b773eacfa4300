//! safetensors files: named tensors and nothing else (<https://github.com/huggingface/safetensors>).
//!
//! A file is the length of a JSON header in eight little-endian bytes, the header, and the elements. The header is read, and
//! written, by the crate `safetensors`, which checks that the tensors lie one behind the other without gaps or overlaps; the
//! elements go from the file straight into the tensors' memory.

use super::elements::{self, IS_SWAPPED};
use super::source::failed;
use super::{FileSource, ReadAt};
use crate::error::{Error, ensure};
use crate::{DType, Result, Tensor};
use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// What a header may have of bytes, by the format.
const LONGEST_HEADER: u64 = 100_000_000;

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The tensors by name, in the order of their elements in the file.
    pub tensors: Vec<(String, Tensor)>,
    /// Further texts by name.
    pub metadata: BTreeMap<String, String>,
}

impl Contents {
    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|(own, _)| own == name).map(|(_, tensor)| tensor)
    }
}

/// Reads a file. Each tensor has memory of its own.
///
/// ```
/// use pullback::{Tensor, io::safetensors};
/// # fn main() -> pullback::Result<()> {
/// let path = std::env::temp_dir().join("pullback_load_example.safetensors");
/// let weight = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?;
/// safetensors::save([("weight", &weight)], &[("format", "pt")], &path)?;
/// let file = safetensors::load(&path)?;
/// assert_eq!(file.get("weight").unwrap().to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(file.metadata["format"], "pt");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `RuntimeError` for files that cannot be read, headers that are no header of the format, tensors that are not there or have
/// a dtype that the library lacks; out of memory.
pub fn load(path: impl AsRef<Path>) -> Result<Contents> {
    load_from(FileSource::open(path.as_ref())?)
}

/// As [`load`], from any source of bytes: `load_from(&bytes[..])`.
///
/// # Errors
/// As for [`load`].
pub fn load_from(mut source: impl ReadAt) -> Result<Contents> {
    let mut length = [0; 8];
    ensure!(source.size() >= 8, runtime, "a safetensors file of {} bytes", source.size());
    source.read_at(0, &mut length)?;
    let length = u64::from_le_bytes(length);
    ensure!(
        length <= LONGEST_HEADER,
        runtime,
        "the header of a safetensors file has at most {LONGEST_HEADER} bytes, not {length}"
    );
    let header = source.bytes_at(8, length)?;
    let header: Metadata = serde_json::from_slice(&header)
        .map_err(|error| Error::runtime(format!("the header of a safetensors file: {error}")))?;
    let start = 8 + length;
    let end = start.checked_add(header.data_len() as u64);
    ensure!(
        end == Some(source.size()),
        runtime,
        "the header of a safetensors file describes {} bytes, but it has {}",
        header.data_len(),
        source.size() - start
    );
    let mut contents = Contents::default();
    for name in header.offset_keys() {
        let info = header.info(&name).ok_or_else(|| Error::runtime("a tensor without a name"))?;
        let tensor = tensor(&mut source, start, &name, info)?;
        contents.tensors.push((name, tensor));
    }
    contents.metadata.extend(header.metadata().clone().unwrap_or_default());
    Ok(contents)
}

fn tensor(source: &mut impl ReadAt, start: u64, name: &str, info: &TensorInfo) -> Result<Tensor> {
    let dtype = dtype_of(info.dtype).ok_or_else(|| {
        Error::runtime(format!("tensor {name:?} has the dtype {:?}, which is not here", info.dtype))
    })?;
    let size = |&n: &usize| i64::try_from(n).map_err(|_| Error::runtime(format!("a size of {n}")));
    let shape = info.shape.iter().map(size).collect::<Result<Vec<_>>>()?;
    elements::read(source, start + info.data_offsets.0 as u64, &shape, dtype, IS_SWAPPED)
}

/// Writes a file of named tensors and texts. Tensors that share memory are written each with elements of its own.
///
/// # Errors
/// `ValueError` for a name twice and for dtypes that the format lacks, `NotImplementedError` for sparse tensors, `RuntimeError`
/// for files that cannot be written; out of memory.
pub fn save<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    metadata: &[(&str, &str)],
    path: impl AsRef<Path>,
) -> Result<()> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|error| failed("create", path, &error))?;
    let mut out = BufWriter::new(file);
    save_to(tensors, metadata, &mut out)?;
    out.flush().map_err(|error| failed("write", path, &error))
}

/// As [`save`], into any stream.
///
/// # Errors
/// As for [`save`].
pub fn save_to<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    metadata: &[(&str, &str)],
    out: &mut impl Write,
) -> Result<()> {
    let mut tensors: Vec<_> = tensors.into_iter().collect();
    // The widest dtypes first, then by name: so every tensor is aligned.
    tensors.sort_by_key(|(name, tensor)| (std::cmp::Reverse(tensor.dtype().size()), *name));
    let (mut infos, mut end) = (Vec::new(), 0);
    for (name, tensor) in &tensors {
        let dtype = dtype_in_file(tensor.dtype()).ok_or_else(|| {
            Error::value(format!(
                "safetensors files have no tensors of dtype torch.{}: {name:?}",
                tensor.dtype().spelled()
            ))
        })?;
        let start = end;
        end += tensor.numel() as usize * tensor.dtype().size();
        let shape = tensor.shape().iter().map(|&n| n as usize).collect();
        infos.push(((*name).to_owned(), TensorInfo { dtype, shape, data_offsets: (start, end) }));
    }
    let texts = metadata.iter().map(|&(name, text)| (name.to_owned(), text.to_owned()));
    let texts: HashMap<String, String> = texts.collect();
    let names: std::collections::HashSet<&str> = tensors.iter().map(|(name, _)| *name).collect();
    ensure!(names.len() == tensors.len(), value, "two tensors have the same name");
    let wrong = |error: &dyn std::fmt::Display| Error::value(format!("safetensors: {error}"));
    let header = Metadata::new((!texts.is_empty()).then_some(texts), infos);
    let header = header.map_err(|error| wrong(&error))?;
    let mut header = serde_json::to_vec(&header).map_err(|error| wrong(&error))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let length = (header.len() as u64).to_le_bytes();
    out.write_all(&length)
        .and_then(|()| out.write_all(&header))
        .map_err(|error| elements::cannot_write(&error))?;
    tensors.iter().try_for_each(|(_, tensor)| elements::write(tensor, out))
}

/// The dtypes that both sides have.
const DTYPES: [(Dtype, DType); 17] = [
    (Dtype::BOOL, DType::Bool),
    (Dtype::U8, DType::U8),
    (Dtype::I8, DType::I8),
    (Dtype::I16, DType::I16),
    (Dtype::U16, DType::U16),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::I32, DType::I32),
    (Dtype::U32, DType::U32),
    (Dtype::F32, DType::F32),
    (Dtype::C64, DType::C64),
    (Dtype::F64, DType::F64),
    (Dtype::I64, DType::I64),
    (Dtype::U64, DType::U64),
    (Dtype::F8_E4M3, DType::F8E4M3FN),
    (Dtype::F8_E5M2, DType::F8E5M2),
    (Dtype::F8_E8M0, DType::F8E8M0FNU),
];
fn dtype_of(dtype: Dtype) -> Option<DType> {
    DTYPES.iter().find(|(file, _)| *file == dtype).map(|(_, own)| *own)
}
fn dtype_in_file(dtype: DType) -> Option<Dtype> {
    DTYPES.iter().find(|(_, own)| *own == dtype).map(|(file, _)| *file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn written(tensors: &[(&str, &Tensor)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        save_to(tensors.iter().copied(), &[("format", "pt")], &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn tensors_of_every_dtype_and_shape_come_back() {
        for (_, dtype) in DTYPES {
            for shape in [&[][..], &[6], &[2, 3], &[0, 3]] {
                let count = shape.iter().product::<i64>();
                let numbers: Vec<i64> = (0..count).collect();
                let tensor = Tensor::from_slice(&numbers, shape).unwrap().to_dtype(dtype).unwrap();
                let file = load_from(&written(&[("x", &tensor)])[..]).unwrap();
                let found = file.get("x").unwrap();
                assert_eq!((found.dtype(), found.shape()), (dtype, shape));
                let same = found
                    .view_dtype(DType::U8)
                    .and_then(|f| f.equal(&tensor.view_dtype(DType::U8)?));
                assert!(shape.is_empty() || same.unwrap());
                assert_eq!(found.to_string(), tensor.to_string());
                assert_eq!(file.metadata["format"], "pt");
            }
        }
    }

    #[test]
    fn views_are_written_with_the_elements_that_they_show() {
        let whole = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let transposed = whole.t().unwrap();
        let row = whole.select(0, 1).unwrap();
        let file = load_from(&written(&[("t", &transposed), ("r", &row)])[..]).unwrap();
        assert!(file.get("t").unwrap().equal(&transposed).unwrap());
        assert_eq!(file.get("r").unwrap().to_vec::<f32>().unwrap(), [4.0, 5.0, 6.0]);
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let file = |header: &str, data: usize| {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.as_bytes());
            bytes.resize(bytes.len() + data, 0);
            bytes
        };
        let one = |dtype: &str, shape: &str, offsets: &str| {
            format!(r#"{{"x":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
        };
        assert!(load_from(&file(&one("F32", "[1]", "[0,4]"), 4)[..]).is_ok());
        for (header, data) in [
            (one("F32", "[1]", "[0,4]"), 3),
            (one("F32", "[1]", "[0,4]"), 5),
            (one("F32", "[2]", "[0,4]"), 4),
            (one("F32", "[1]", "[4,8]"), 8),
            (one("F32", "[9223372036854775807,4]", "[0,4]"), 4),
            (one("F6_E3M2", "[4]", "[0,3]"), 3),
            (one("F33", "[1]", "[0,4]"), 4),
            ("[]".to_owned(), 0),
            ("{".to_owned(), 0),
        ] {
            let error = load_from(&file(&header, data)[..]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Runtime, "{header}: {error}");
        }
        assert!(load_from(&u64::MAX.to_le_bytes()[..]).is_err());
        assert!(load_from(&[0_u8; 7][..]).is_err());
    }

    #[test]
    fn names_twice_and_dtypes_that_the_format_lacks_are_refused() {
        let x = Tensor::from_slice(&[1.0], &[1]).unwrap();
        let save = |tensors: &[(&str, &Tensor)]| {
            save_to(tensors.iter().copied(), &[], &mut Vec::new()).unwrap_err().kind()
        };
        assert_eq!(save(&[("x", &x), ("x", &x)]), ErrorKind::Value);
        let wide = x.to_dtype(DType::C128).unwrap();
        assert_eq!(save(&[("x", &wide)]), ErrorKind::Value);
    }
}
