//! NumPy's files: `.npy`, one array, and `.npz`, an archive of named ones
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! An array is a magic word and a version, a header (a dictionary in Python's syntax with the dtype, the order and the shape), and
//! the elements. Arrays of objects, which are pickles, are refused; so are dtypes that the library lacks.

use super::elements::{self, IS_SWAPPED};
use super::source::failed;
use super::zip::{Archive, ArchiveWriter};
use super::{FileSource, ReadAt};
use crate::error::{Error, bail, ensure};
use crate::{DType, Result, Tensor};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
/// The alignment of the elements in the file.
const ALIGNMENT: usize = 64;

/// Reads an array.
///
/// ```
/// use pullback::{Tensor, io::npy};
/// # fn main() -> pullback::Result<()> {
/// let path = std::env::temp_dir().join("pullback_load_example.npy");
/// npy::save(&Tensor::from_slice(&[1.0_f32, 2.0], &[2])?, &path)?;
/// assert_eq!(npy::load(&path)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `RuntimeError` for files that cannot be read, headers that are none, and arrays of fewer elements than they say; `ValueError` for
/// arrays of objects and dtypes that are not here; out of memory.
pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
    load_from(FileSource::open(path.as_ref())?)
}

/// As [`load`], from any source of bytes: `load_from(&bytes[..])`.
///
/// # Errors
/// As for [`load`].
pub fn load_from(mut source: impl ReadAt) -> Result<Tensor> {
    let start = source.bytes_at(0, 8)?;
    ensure!(start.starts_with(MAGIC), runtime, "no array of NumPy's: it begins with {start:?}");
    let (width, version) = match start[6] {
        1 => (2, 1),
        version @ (2 | 3) => (4, version),
        version => bail!(runtime, "an array of version {version} of NumPy's format"),
    };
    let mut length = [0; 8];
    length[..width].copy_from_slice(&source.bytes_at(8, width as u64)?);
    let (at, length) = (8 + width as u64, u64::from_le_bytes(length));
    let header = source.bytes_at(at, length)?;
    // (Version 3 is in UTF-8, the others in Latin-1; names of fields alone go beyond ASCII.)
    let text = std::str::from_utf8(&header).ok().filter(|text| version == 3 || text.is_ascii());
    let header = text.and_then(NpyHeader::parse).ok_or_else(|| {
        Error::runtime(format!("an array's header {:?}", String::from_utf8_lossy(&header)))
    })?;
    let (dtype, is_swapped) = dtype_of(&header.descr)?;
    if !header.is_fortran {
        return elements::read(&mut source, at + length, &header.shape, dtype, is_swapped);
    }
    let reversed: Vec<i64> = header.shape.iter().rev().copied().collect();
    let dims: Vec<i64> = (0..reversed.len() as i64).rev().collect();
    elements::read(&mut source, at + length, &reversed, dtype, is_swapped)?.permute(&dims)
}

/// Writes an array.
///
/// # Errors
/// `ValueError` for dtypes that NumPy lacks (`bfloat16`), `NotImplementedError` for sparse tensors, `RuntimeError` for files that cannot
/// be written; out of memory.
pub fn save(tensor: &Tensor, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|error| failed("create", path, &error))?;
    let mut out = BufWriter::new(file);
    save_to(tensor, &mut out)?;
    out.flush().map_err(|error| failed("write", path, &error))
}

/// As [`save`], into any stream.
///
/// # Errors
/// As for [`save`].
pub fn save_to(tensor: &Tensor, out: &mut impl Write) -> Result<()> {
    out.write_all(&header_of(tensor)?).map_err(|error| elements::cannot_write(&error))?;
    elements::write(tensor, out)
}

/// Reads an archive of arrays, compressed or not: the names (without `.npy`) and the arrays, in their order.
///
/// # Errors
/// As for [`load`]; `RuntimeError` for damaged archives.
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    load_npz_from(FileSource::open(path.as_ref())?)
}

/// As [`load_npz`], from any source of bytes.
///
/// # Errors
/// As for [`load_npz`].
pub fn load_npz_from(source: impl ReadAt) -> Result<Vec<(String, Tensor)>> {
    let mut archive = Archive::open(source)?;
    let names: Vec<String> = archive.records().iter().map(|record| record.name.clone()).collect();
    let mut arrays = Vec::new();
    for name in names {
        let Some(record) = archive.find(&name).cloned() else { continue };
        let bytes = archive.read(&record)?;
        let array = load_from(&bytes[..])
            .map_err(|error| Error::new(error.kind(), format!("{name:?}: {}", error.marked())))?;
        arrays.push((name.strip_suffix(".npy").unwrap_or(&name).to_owned(), array));
    }
    Ok(arrays)
}

/// Writes an archive of arrays by name, not compressed.
///
/// # Errors
/// As for [`save`]; `RuntimeError` for a name twice.
pub fn save_npz<'a>(
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    path: impl AsRef<Path>,
) -> Result<()> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|error| failed("create", path, &error))?;
    save_npz_to(arrays, BufWriter::new(file))
}

/// As [`save_npz`], into any stream.
///
/// # Errors
/// As for [`save_npz`].
pub fn save_npz_to<'a>(
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    out: impl Write,
) -> Result<()> {
    let mut archive = ArchiveWriter::new(out, "", ALIGNMENT as u64, true)?;
    for (name, tensor) in arrays {
        let header = header_of(tensor)?;
        elements::with_bytes(tensor, |bytes| {
            let mut all = pullback_kernels::memory::with_capacity(header.len() + bytes.len())?;
            all.extend_from_slice(&header);
            all.extend_from_slice(bytes);
            archive.record(&format!("{name}.npy"), &all)
        })?;
    }
    archive.end().map(drop)
}

/// All bytes before the elements.
fn header_of(tensor: &Tensor) -> Result<Vec<u8>> {
    let Some(descr) = descr_of(tensor.dtype()) else {
        bail!(value, "NumPy has no dtype like torch.{}", tensor.dtype().spelled());
    };
    let sizes: Vec<String> = tensor.shape().iter().map(ToString::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let sizes = sizes.join(", ");
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}{comma}), }}");
    // (A tensor has few dimensions: two bytes always hold the length.)
    let used = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', used.next_multiple_of(ALIGNMENT) - used));
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    Ok(header)
}

/// Kinds and sizes of NumPy's dtypes.
const DTYPES: [(&str, DType); 14] = [
    ("b1", DType::Bool),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];

fn descr_of(dtype: DType) -> Option<String> {
    let (kind, _) = DTYPES.iter().find(|(_, own)| *own == dtype)?;
    let order = if dtype.size() == 1 { '|' } else { '<' };
    Some(format!("{order}{kind}"))
}

/// A dtype, and whether its bytes are in the other order than the machine's.
fn dtype_of(descr: &str) -> Result<(DType, bool)> {
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    let Some((_, dtype)) = DTYPES.iter().find(|(own, _)| *own == kind) else {
        bail!(value, "arrays of NumPy's dtype {descr:?} are not read");
    };
    Ok((*dtype, dtype.size() > 1 && (descr.starts_with('>') != IS_SWAPPED)))
}

/// The contents of a header.
struct NpyHeader {
    descr: String,
    is_fortran: bool,
    shape: Vec<i64>,
}

impl NpyHeader {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, its entries in any order.
    fn parse(text: &str) -> Option<NpyHeader> {
        let mut rest = HeaderText(text.trim()).after("{")?;
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        while rest.after("}").is_none() {
            let (key, after) = rest.string()?;
            let value = after.after(":")?;
            rest = match key {
                "descr" => {
                    let (text, after) = value.string()?;
                    descr = Some(text.to_owned());
                    after
                }
                "fortran_order" => {
                    is_fortran = Some(value.after("True").is_some());
                    value.after("True").or_else(|| value.after("False"))?
                }
                "shape" => {
                    let (sizes, after) = value.sizes()?;
                    shape = Some(sizes);
                    after
                }
                _ => return None,
            };
            rest = rest.after(",").or_else(|| rest.after("}").map(|_| rest))?;
        }
        let is_end = rest.after("}")?.0.trim().is_empty();
        Some(NpyHeader { descr: descr?, is_fortran: is_fortran?, shape: shape? }).filter(|_| is_end)
    }
}

/// Text that is left to read.
#[derive(Clone, Copy)]
struct HeaderText<'a>(&'a str);

impl<'a> HeaderText<'a> {
    fn after(self, word: &str) -> Option<HeaderText<'a>> {
        self.0.trim_start().strip_prefix(word).map(HeaderText)
    }
    fn string(self) -> Option<(&'a str, HeaderText<'a>)> {
        let quote = if self.after("'").is_some() { "'" } else { "\"" };
        let (inside, rest) = self.after(quote)?.0.split_once(quote)?;
        Some((inside, HeaderText(rest)))
    }
    /// `()`, `(3,)`, `(2, 3)`; old writers put an `L` behind a number.
    fn sizes(self) -> Option<(Vec<i64>, HeaderText<'a>)> {
        let (inside, rest) = self.after("(")?.0.split_once(')')?;
        let numbers = inside.split(',').map(str::trim);
        let numbers = numbers.filter(|number| !number.is_empty());
        let size = |number: &str| number.trim_end_matches('L').parse().ok().filter(|&n| n >= 0);
        Some((numbers.map(size).collect::<Option<_>>()?, HeaderText(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn written(tensor: &Tensor) -> Vec<u8> {
        let mut bytes = Vec::new();
        save_to(tensor, &mut bytes).unwrap();
        bytes
    }
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn arrays_of_every_dtype_and_shape_come_back() {
        for (_, dtype) in DTYPES {
            for shape in [&[][..], &[6], &[2, 3], &[0, 3]] {
                let numbers: Vec<i64> = (0..shape.iter().product()).collect();
                let tensor = Tensor::from_slice(&numbers, shape).unwrap().to_dtype(dtype).unwrap();
                let bytes = written(&tensor);
                assert_eq!((bytes.len() - tensor.numel() as usize * dtype.size()) % ALIGNMENT, 0);
                let found = load_from(&bytes[..]).unwrap();
                assert_eq!((found.dtype(), found.shape()), (dtype, shape));
                assert!(found.equal(&tensor).unwrap());
            }
        }
    }

    #[test]
    fn arrays_in_the_other_byte_order_and_by_columns_are_read() {
        let header = "{'shape': (2L, 2), 'fortran_order': True, 'descr': '>i2'}\n";
        let found = load_from(&file(header, &[0, 1, 0, 2, 0, 3, 1, 0])[..]).unwrap();
        assert_eq!(found.to_vec::<i16>().unwrap(), [1, 3, 2, 256]);
        assert_eq!(found.strides(), [1, 2]);
    }

    #[test]
    fn headers_that_lie_or_name_objects_are_refused() {
        let of = |descr: &str, shape: &str| {
            let header =
                format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
            load_from(&file(&header, &[0; 8])[..]).map_err(|error| error.kind())
        };
        assert!(of("<f4", "(2,)").is_ok());
        assert_eq!(of("|O", "(1,)").unwrap_err(), ErrorKind::Value);
        assert_eq!(of("<V8", "(1,)").unwrap_err(), ErrorKind::Value);
        for shape in ["(3,)", "(-1,)", "(2", "(4611686018427387904, 4)", "(1 1)"] {
            assert_eq!(of("<f4", shape).unwrap_err(), ErrorKind::Runtime, "{shape}");
        }
        let whole = written(&Tensor::from_slice(&[1.0, 2.0], &[2]).unwrap());
        for length in 0..whole.len() {
            assert!(load_from(&whole[..length]).is_err());
        }
    }

    #[test]
    fn archives_of_arrays_come_back() {
        let (x, y) = (
            Tensor::from_slice(&[1.0, 2.0], &[2]).unwrap(),
            Tensor::from_slice(&[3_i64], &[]).unwrap(),
        );
        let mut bytes = Vec::new();
        save_npz_to([("x", &x), ("folder/y", &y)], &mut bytes).unwrap();
        let found = load_npz_from(&bytes[..]).unwrap();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x", "folder/y"]);
        assert!(found[0].1.equal(&x).unwrap() && found[1].1.equal(&y).unwrap());
        let twice = save_npz_to([("x", &x), ("x", &y)], &mut Vec::new());
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::Runtime);
    }

    #[test]
    fn a_dtype_that_numpy_lacks_is_refused() {
        let x = Tensor::from_slice(&[1.0], &[1]).unwrap().to_dtype(DType::BF16).unwrap();
        assert_eq!(save_to(&x, &mut Vec::new()).unwrap_err().kind(), ErrorKind::Value);
    }
}
