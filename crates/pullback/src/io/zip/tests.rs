//! Archives: round trips, PyTorch's layout, and files that are damaged.

use super::{Archive, ArchiveWriter};
use crate::Result;

fn archive(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new(), "name", 64, true).unwrap();
    for (name, data) in records {
        writer.record(name, data).unwrap();
    }
    writer.finish().unwrap()
}

fn read_all(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut archive = Archive::open(bytes)?;
    let records = archive.records().to_vec();
    records.into_iter().map(|r| archive.read(&r).map(|data| (r.name, data))).collect()
}

#[test]
fn records_come_back_and_begin_at_multiples_of_the_alignment() {
    let bytes = archive(&[("data.pkl", b"abc"), ("data/0", &[7; 300]), ("data/1", b"")]);
    let mut found = Archive::open(&bytes[..]).unwrap();
    let records = found.records().to_vec();
    let names: Vec<&str> = records.iter().map(|r| r.name.as_str()).collect();
    let expected = [
        "name/data.pkl",
        "name/data/0",
        "name/data/1",
        "name/version",
        "name/.data/serialization_id",
    ];
    assert_eq!(names, expected);
    for record in &records {
        assert_eq!(found.start_of(record).unwrap() % 64, 0);
    }
    assert_eq!(found.read(&records[1]).unwrap(), [7; 300]);
    assert_eq!(found.read(&records[2]).unwrap(), b"");
    assert_eq!(found.read(&records[3]).unwrap(), b"3\n");
    assert_eq!(found.read(&records[4]).unwrap().len(), 40);
}

#[test]
fn the_layout_is_that_of_pytorch() {
    // The archive that PyTorch 2.15 writes of a tensor has its records, their headers and data, where these are.
    let bytes = archive(&[
        ("data.pkl", &[0; 299]),
        (".format_version", b"1"),
        (".storage_alignment", b"64"),
        ("byteorder", b"little"),
        ("data/0", &[0; 12]),
        ("data/1", &[0; 4]),
    ]);
    // (PyTorch's folder was `archive`, three letters longer; the padding takes that up.)
    let headers: Vec<u64> =
        Archive::open(&bytes[..]).unwrap().records().iter().map(|r| r.header).collect();
    assert_eq!(headers, [0, 379, 465, 594, 726, 860, 980, 1106]);
}

#[test]
fn damage_is_found_by_the_checksum_unless_there_is_none() {
    let mut bytes = archive(&[("data/0", &[7; 100])]);
    let at = bytes.windows(4).position(|window| window == [7; 4]).unwrap();
    bytes[at] = 8;
    let error = read_all(&bytes).unwrap_err();
    assert!(error.message().contains("CRC-32"), "{error}");
    let mut found = Archive::open(&bytes[..]).unwrap();
    let record = found.find("name/data/0").cloned().unwrap();
    let _ = crate::take_warnings();
    let storage = found.read_storage(&record, 100).unwrap();
    storage.with_bytes(|bytes| assert_eq!((bytes[0], bytes[1]), (8, 7))).unwrap();
    assert!(crate::take_warnings().iter().any(|text| text.contains("CRC-32")));
    let mut writer = ArchiveWriter::new(Vec::new(), "name", 64, false).unwrap();
    writer.record("data/0", &[7; 100]).unwrap();
    writer.reserve("data/1", 10_000).unwrap();
    let mut bytes = writer.finish().unwrap();
    bytes[at] = 8;
    let found = read_all(&bytes).unwrap();
    assert_eq!((found[0].1[0], found[0].1[1]), (8, 7));
    assert_eq!(found[1].1, [0; 10_000]);
}

#[test]
fn names_come_once() {
    let mut writer = ArchiveWriter::new(Vec::new(), "name", 64, true).unwrap();
    writer.record("a", b"1").unwrap();
    assert!(writer.record("a", b"2").unwrap_err().message().contains("twice"));
}

#[test]
fn a_file_that_was_cut_off_is_no_archive() {
    let bytes = archive(&[("data.pkl", b"abc"), ("data/0", &[7; 30])]);
    for length in 0..bytes.len() {
        let error = read_all(&bytes[..length]).unwrap_err();
        assert!(error.message().starts_with("PytorchStreamReader failed"), "{length}: {error}");
    }
    assert!(read_all(&bytes).is_ok());
}

#[test]
fn any_byte_may_be_wrong() {
    let bytes = archive(&[("data.pkl", b"abc"), ("data/0", &[7; 30])]);
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut broken = bytes.clone();
            broken[at] ^= change;
            if let Ok(records) = read_all(&broken) {
                let total: usize = records.iter().map(|(_, data)| data.len()).sum();
                assert!(total <= bytes.len());
            }
        }
    }
}

/// The end record of an archive with such a directory.
fn with_end(mut bytes: Vec<u8>, count: u16, size: u32, start: u32) -> Vec<u8> {
    bytes.extend(super::END.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

#[test]
fn a_directory_is_believed_as_far_as_there_are_bytes() {
    for (count, size, start) in [(0xffff, u32::MAX, 0), (1, 46, 0), (1, 0, u32::MAX), (2, 46, 0)] {
        let error = read_all(&with_end(vec![0; 46], count, size, start)).unwrap_err();
        assert!(error.message().contains("archive is corrupted"), "{error}");
    }
}

#[test]
fn entries_cannot_share_their_bytes() {
    // Two entries of the directory mean the same 900 of 1000 bytes.
    let mut bytes = vec![0; 1000];
    bytes[..4].copy_from_slice(&super::LOCAL.to_le_bytes());
    let mut entry = vec![0; 46];
    entry[..4].copy_from_slice(&super::CENTRAL.to_le_bytes());
    entry[20..24].copy_from_slice(&900_u32.to_le_bytes());
    entry[24..28].copy_from_slice(&900_u32.to_le_bytes());
    entry[28] = 1;
    for name in [b'a', b'b'] {
        bytes.extend_from_slice(&entry);
        bytes.push(name);
    }
    let error = read_all(&with_end(bytes, 2, 94, 1000)).unwrap_err();
    assert!(error.message().contains("the entries take"), "{error}");
}

#[test]
fn deflated_entries_are_inflated_to_what_they_announce() {
    let data = [5_u8; 4000];
    let packed = miniz_oxide::deflate::compress_to_vec(&data, 6);
    let make = |size: u32| {
        let mut bytes = vec![0; 31];
        bytes[..4].copy_from_slice(&super::LOCAL.to_le_bytes());
        bytes[26] = 1;
        bytes.extend_from_slice(&packed);
        let start = bytes.len() as u32;
        let mut entry = vec![0; 46];
        entry[..4].copy_from_slice(&super::CENTRAL.to_le_bytes());
        entry[10] = 8;
        entry[16..20].copy_from_slice(&crc32fast::hash(&data).to_le_bytes());
        entry[20..24].copy_from_slice(&(packed.len() as u32).to_le_bytes());
        entry[24..28].copy_from_slice(&size.to_le_bytes());
        entry[28] = 1;
        bytes.extend(entry);
        bytes.push(b'a');
        with_end(bytes, 1, 47, start)
    };
    assert_eq!(read_all(&make(4000)).unwrap()[0].1, data);
    for size in [3999, 4001] {
        assert!(read_all(&make(size)).unwrap_err().message().contains("decompression gives"));
    }
    let error = read_all(&make(u32::MAX - 1)).unwrap_err();
    assert!(error.message().contains("cannot come from"), "{error}");
}
