//! Checkpoints: round trips, files of PyTorch, and files that are damaged.

use crate::error::ErrorKind;
use crate::io::zip::Archive;
use crate::io::{FileValue, load_from, save_to};
use crate::tensor::Sparse;
use crate::{C128, DType, Device, Layout, Tensor, f16};
use std::sync::Arc;

fn written(value: &FileValue) -> Vec<u8> {
    let mut bytes = Vec::new();
    save_to(value, &mut bytes).unwrap();
    bytes
}
fn again(value: &FileValue) -> FileValue {
    load_from(&written(value)[..]).unwrap()
}
fn shown(value: &FileValue) -> String {
    format!("{value:?}")
}
fn recorded(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests/recorded/checkpoints/");
    std::fs::read(format!("{folder}{name}.pt")).unwrap()
}
fn tensor<'a>(value: &'a FileValue, path: &[&str]) -> &'a Tensor {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(FileValue::as_tensor).unwrap_or_else(|| panic!("no tensor at {path:?}"))
}

#[test]
fn plain_data_comes_back() {
    let list = FileValue::List(Arc::new(vec![FileValue::None, true.into(), 1.5.into()]));
    let data = FileValue::Tuple(Arc::new(vec![
        list.clone(),
        list,
        FileValue::from(-1),
        255.into(),
        256.into(),
        70_000.into(),
        FileValue::from(i64::MIN),
        FileValue::BigInt([0, 0, 0, 0, 0, 0, 0, 0, 64].into()),
        C128::new(1.0, -2.0).into(),
        "tëxt".into(),
        FileValue::Bytes([0, 255].into()),
        FileValue::Set(Arc::new(vec![3.into()])),
        FileValue::dict([("k", FileValue::Tuple(Arc::default()))]),
        FileValue::OrderedDict(Arc::new(vec![(1.into(), FileValue::None)])),
        FileValue::Size([2, 3].into()),
        DType::BF16.into(),
        Layout::SparseCsr.into(),
        Device::Cpu.into(),
    ]));
    assert_eq!(shown(&again(&data)), shown(&data));
}

#[test]
fn tensors_of_every_dtype_come_back() {
    // (Numbers do not become two of four bits.)
    for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::F4E2M1FNX2) {
        let tensor = Tensor::from_slice(&[0_i64, 1, 2], &[3]).unwrap().to_dtype(dtype).unwrap();
        let found = again(&tensor.clone().into());
        let found = found.as_tensor().unwrap();
        assert_eq!((found.dtype(), found.shape()), (dtype, &[3][..]));
        assert_eq!(found.to_string(), tensor.to_string());
    }
}

#[test]
fn views_share_their_storage_afterwards() {
    let base = Tensor::from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]).unwrap();
    let column = base.select(1, 1).unwrap();
    let empty = Tensor::from_slice::<f16>(&[], &[0, 2]).unwrap();
    let state = [("base", base), ("column", column), ("empty", empty)];
    let found = again(&FileValue::state_dict(state));
    let (base, column) = (tensor(&found, &["base"]), tensor(&found, &["column"]));
    assert!(base.storage().unwrap().ptr_eq(&column.storage().unwrap()));
    assert_eq!((column.strides(), column.storage_offset()), (&[3][..], 1));
    assert_eq!(column.to_vec::<f64>().unwrap(), [1.0, 4.0]);
    assert_eq!(tensor(&found, &["empty"]).shape(), [0, 2]);
    let names: Vec<String> = found.tensors().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["base", "column", "empty"]);
}

#[test]
fn what_pytorch_wrote_is_read() {
    let plain = load_from(&recorded("plain")[..]).unwrap();
    for name in ["float64", "float16", "bfloat16", "int64", "uint8", "int8"] {
        let numbers = tensor(&plain, &["tensors", name]);
        assert_eq!(numbers.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0]);
        assert_eq!(numbers.dtype().name(), name);
    }
    let conj = tensor(&plain, &["tensors", "conj"]);
    assert!(conj.is_conj());
    assert_eq!(conj.to_string(), "tensor([1.-2.j])");
    let (base, column) = (tensor(&plain, &["base"]), tensor(&plain, &["column"]));
    assert!(base.storage().unwrap().ptr_eq(&column.storage().unwrap()));
    assert_eq!(column.to_vec::<f32>().unwrap(), [1.0, 4.0]);
    assert_eq!(tensor(&plain, &["storage"]).to_vec::<f32>().unwrap().len(), 6);
    assert!(tensor(&plain, &["leaf"]).requires_grad());
    assert!(matches!(plain.get("parameter"), Some(FileValue::Parameter(p)) if p.requires_grad()));
    let data = shown(plain.get("data").unwrap());
    assert!(data.starts_with("List([None, Bool(true), Int(-1), BigInt([0, 0, 0, 0, 0, 0, 0, 0, 64]), Float(1.5), Complex("), "{data}");
    let of_torch = shown(plain.get("of torch").unwrap());
    assert_eq!(of_torch, "List([DType(F32), Size([2, 3]), Device(Cuda(1)), Layout(Strided)])");
    let unsigned = load_from(&recorded("unsigned")[..]).unwrap();
    assert_eq!(tensor(&unsigned, &["uint16"]).to_vec::<u16>().unwrap(), [1, 2]);
    assert!(load_from(&recorded("protocol_5")[..]).is_ok());
}

#[test]
fn sparse_tensors_come_back_and_are_those_of_pytorch() {
    let theirs = load_from(&recorded("sparse")[..]).unwrap();
    let ours = again(&theirs);
    for found in [&theirs, &ours] {
        for name in ["coo", "csr", "csc", "bsr", "bsc"] {
            let sparse = tensor(found, &[name]);
            assert_eq!(sparse.layout().name(), format!("sparse_{name}"));
            let dense = sparse.to_dense(None).unwrap();
            assert_eq!(dense.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 0.0]);
        }
        let coo = tensor(found, &["coo"]).sparse().unwrap();
        assert!(matches!(&*coo, Sparse::Coo(coo) if coo.is_coalesced));
    }
}

#[test]
fn more_than_weights_is_refused_by_name() {
    let error = load_from(&recorded("module")[..]).unwrap_err();
    let text = "Unsupported global: GLOBAL torch.nn.modules.container.Sequential";
    assert!(error.message().contains(text), "{error}");
    let error = load_from(&recorded("plain_legacy")[..]).unwrap_err();
    assert!(error.message().contains("PytorchStreamReader failed"), "{error}");
}

/// An archive with this pickle and a storage of four bytes.
fn checkpoint(pickle: &[u8]) -> Vec<u8> {
    let mut writer = crate::io::zip::ArchiveWriter::new(Vec::new(), "archive", 64, true).unwrap();
    writer.record("data.pkl", pickle).unwrap();
    writer.record("data/0", &[0, 0, 128, 63]).unwrap();
    writer.finish().unwrap()
}

fn of_tensor(count: &str, offset: &str, size: &str, stride: &str) -> Vec<u8> {
    let head = "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu";
    let text = format!("{head}{count}tQ{offset}{size}\u{85}{stride}\u{85}I00\n}}tR.");
    text.chars().map(|character| character as u8).collect()
}

#[test]
fn tensors_stay_inside_of_their_storages() {
    let load = |pickle: &[u8]| load_from(&checkpoint(pickle)[..]);
    let one = load(&of_tensor("K\x01", "K\0", "K\x01", "K\x01")).unwrap();
    assert_eq!(one.as_tensor().unwrap().to_vec::<f32>().unwrap(), [1.0]);
    for (count, offset, size, stride) in [
        ("K\x02", "K\0", "K\x01", "K\x01"),
        ("K\x01", "K\x01", "K\x01", "K\x01"),
        ("K\x01", "K\0", "K\x02", "K\x01"),
        ("K\x01", "I-1\n", "K\x01", "K\x01"),
        ("K\x01", "K\0", "I-1\n", "K\x01"),
        ("K\x01", "K\0", "K\x02", "I9223372036854775807\n"),
        ("I9223372036854775807\n", "K\0", "K\x01", "K\x01"),
        ("I-1\n", "K\0", "K\x01", "K\x01"),
        ("N", "K\0", "K\x01", "K\x01"),
    ] {
        let outcome = load(&of_tensor(count, offset, size, stride));
        assert_eq!(
            outcome.unwrap_err().kind(),
            ErrorKind::Runtime,
            "{count:?} {offset:?} {size:?}"
        );
    }
}

#[test]
fn collections_that_contain_themselves_or_each_other_without_end_are_refused() {
    let load = |pickle: &[u8]| load_from(&checkpoint(pickle)[..]);
    let error = load(b"]q\0h\0a.").unwrap_err();
    assert!(error.message().contains("contains itself"), "{error}");
    let nested = [&vec![b']'; 5000][..], &vec![b'a'; 4999], b"."].concat();
    assert!(load(&nested).unwrap_err().message().contains("nested deeper than 500"));
}

#[test]
fn collections_that_share_their_parts_show_no_more_than_a_file_of_their_size_could_hold() {
    // 2^n nones, in n objects: each list holds the one before twice.
    let doubled = |count: usize| {
        let mut pickle = b"]NaNa".to_vec();
        for _ in 0..count {
            pickle.extend(b"q\0]h\0ah\0a");
        }
        pickle.push(b'.');
        load_from(&checkpoint(&pickle)[..])
    };
    assert!(doubled(10).is_ok());
    let error = doubled(400).unwrap_err();
    assert!(error.message().contains("objects, more than the 1048576 that are read"), "{error}");
}

#[test]
fn a_list_is_not_copied_without_end() {
    let sets = |count: usize| {
        let mut pickle = [&b"cbuiltins\nset\nq\0]q\x01("[..], &vec![b'N'; 4000], b"e0"].concat();
        pickle.push(b'(');
        for _ in 0..count {
            pickle.extend(b"h\0h\x01\x85R");
        }
        pickle.extend(b"l.");
        load_from(&checkpoint(&pickle)[..])
    };
    assert_eq!(sets(100).unwrap().elements().unwrap().len(), 100);
    assert!(sets(1000).unwrap_err().message().contains("copied too often"));
}

#[test]
fn a_tensor_of_a_device_without_storages_of_its_own_has_the_dtype_and_flag_that_it_was_saved_with()
{
    let of_float = of_tensor("K\x01", "K\0", "K\x01", "K\x01");
    let tensor = &of_float[..of_float.len() - 1];
    let call = [
        b"ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(",
        tensor,
        b"ctorch\nfloat64\nU\x03cpu\x88tR.",
    ]
    .concat();
    let FileValue::Tensor(found) = load_from(&checkpoint(&call)[..]).unwrap() else {
        panic!("no tensor")
    };
    assert_eq!((found.dtype(), found.requires_grad()), (DType::F64, true));
}

#[test]
fn a_checkpoint_that_was_cut_off_or_changed_never_panics() {
    let bytes =
        written(&FileValue::state_dict([("w", Tensor::from_slice(&[1.0_f32], &[1]).unwrap())]));
    for length in 0..bytes.len() {
        assert!(load_from(&bytes[..length]).is_err());
    }
    let mut archive = Archive::open(&bytes[..]).unwrap();
    let pickle = archive.find("archive/data.pkl").cloned().unwrap();
    let start = archive.start_of(&pickle).unwrap() as usize;
    for at in start..start + pickle.size as usize {
        let mut broken = bytes.clone();
        broken[at] ^= 1;
        assert!(load_from(&broken[..]).unwrap_err().message().contains("CRC-32"));
    }
}

#[test]
fn a_changed_pickle_never_panics() {
    let pickle = of_tensor("K\x01", "K\0", "K\x01", "K\x01");
    for at in 0..pickle.len() {
        for value in b".0Rt}\x85\x80\xff\0" {
            let mut broken = pickle.clone();
            broken[at] = *value;
            let _ = load_from(&checkpoint(&broken)[..]);
        }
    }
}
