//! What unwinds through the library's own machine code reaches its end: no landing pad loses the pointer to the exception.
//!
//! Kernels are left in the middle by unwinding (`pullback_kernels::interrupt`). The unwinder enters a landing pad, the code that
//! drops what a function holds, with the pointer to the exception in `rax`, and the pad hands it on to `_Unwind_Resume`. LLVM 22
//! (rustc 1.95) moves copies between registers from before a call into the pad behind it, also copies into `rax`: then an
//! interruption frees whatever that register pointed to. Whether a function is hit depends on how its registers were
//! assigned, so this test reads the landing pads of the program that it is part of, with all kernels in it.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, Pointer, Reader, UnwindSection};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use object::{Object, ObjectSection};

type Bytes<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// How a table of exceptions writes an unsigned number of its call sites (`DW_EH_PE_uleb128`, which all of LLVM's tables use).
const ULEB128: u8 = 1;
/// What stands for a value that a table leaves out (`DW_EH_PE_omit`).
const OMITTED: u8 = 0xff;

/// A section of the program and its address.
struct Section<'a> {
    address: u64,
    data: &'a [u8],
}

impl<'a> Section<'a> {
    fn named(file: &object::File<'a>, name: &str) -> Section<'a> {
        let section = file.section_by_name(name).unwrap_or_else(|| panic!("a section {name}"));
        Section { address: section.address(), data: section.data().expect("its bytes") }
    }

    fn from(&self, address: u64) -> Option<&'a [u8]> {
        self.data.get(usize::try_from(address.checked_sub(self.address)?).ok()?..)
    }
}

/// The landing pads for clean-up of the function that begins at `start`, as its table of exceptions (LSDA, in the Itanium C++
/// ABI) has them. Pads that catch may forget the pointer.
fn cleanup_pads(table: &[u8], start: u64) -> gimli::Result<Vec<u64>> {
    let mut reader = Bytes::new(table, LittleEndian);
    assert_eq!(reader.read_u8()?, OMITTED, "landing pads are counted from the function's start");
    if reader.read_u8()? != OMITTED {
        reader.read_uleb128()?;
    }
    assert_eq!(reader.read_u8()?, ULEB128, "the form of call sites");
    let length = reader.read_uleb128()?;
    let mut sites = reader.split(length as usize)?;
    let mut pads = Vec::new();
    while !sites.is_empty() {
        let (_start, _length) = (sites.read_uleb128()?, sites.read_uleb128()?);
        let (pad, action) = (sites.read_uleb128()?, sites.read_uleb128()?);
        if pad != 0 && action == 0 {
            pads.push(start + pad);
        }
    }
    Ok(pads)
}

/// The landing pads for clean-up of the whole program.
fn all_pads(file: &object::File<'_>) -> gimli::Result<Vec<u64>> {
    let (frames, tables) =
        (Section::named(file, ".eh_frame"), Section::named(file, ".gcc_except_table"));
    let bases = BaseAddresses::default().set_eh_frame(frames.address);
    let frames = EhFrame::new(frames.data, LittleEndian);
    let (mut entries, mut pads) = (frames.entries(&bases), Vec::new());
    while let Some(entry) = entries.next()? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let function = partial.parse(EhFrame::cie_from_offset)?;
        if let Some(Pointer::Direct(at)) = function.lsda()
            && let Some(table) = tables.from(at)
        {
            pads.extend(cleanup_pads(table, function.initial_address())?);
        }
    }
    pads.sort_unstable();
    pads.dedup();
    Ok(pads)
}

/// The instruction that overwrites `rax` at the beginning of a pad, before anything has read it.
fn overwriting(code: &Section<'_>, pad: u64) -> Option<String> {
    let mut factory = InstructionInfoFactory::new();
    let mut at = pad;
    // (A pad is short, and the pointer is in `rax` at most until its first call.)
    for _ in 0..100 {
        let mut decoder = Decoder::with_ip(64, code.from(at)?, at, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let uses = factory.info(&instruction).used_registers().iter();
        let accesses = uses
            .filter(|used| used.register().full_register() == Register::RAX)
            .map(iced_x86::UsedRegister::access)
            .collect::<Vec<_>>();
        if accesses.iter().any(|access| !matches!(access, OpAccess::Write)) {
            return None;
        }
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => at = instruction.near_branch_target(),
            FlowControl::Next if accesses.is_empty() => at = instruction.next_ip(),
            FlowControl::Next => return Some(instruction.to_string()),
            _ => return None,
        }
    }
    None
}

#[test]
fn no_landing_pad_overwrites_the_pointer_to_the_exception() {
    assert!(pullback::ops::registry().count() > 500, "the program holds the library's kernels");
    let path = std::env::current_exe().expect("the program's path");
    let bytes = std::fs::read(path).expect("the program's bytes");
    let file = object::File::parse(&*bytes).expect("an executable");
    let code = Section::named(&file, ".text");
    let pads = all_pads(&file).expect("tables of exceptions");
    assert!(pads.len() > 10_000, "only {} landing pads were found", pads.len());
    let names = file.symbol_map();
    let lost: Vec<String> = pads
        .iter()
        .filter_map(|&pad| Some((pad, overwriting(&code, pad)?)))
        .map(|(pad, instruction)| {
            let name = names.containing(pad).map_or("?", |symbol| symbol.name());
            format!("- {instruction} at {pad:#x} in {name}")
        })
        .collect();
    assert!(lost.is_empty(), "landing pads lose the exception:\n{}", lost.join("\n"));
}

#[test]
fn an_overwritten_pointer_is_seen() {
    // jmp to the next instruction; mov rbx, rax | jmp; mov rax, r10 | mov rdi, [rax]
    let good = [0xeb, 0x00, 0x48, 0x89, 0xc3];
    let bad = [0xeb, 0x00, 0x4c, 0x89, 0xd0];
    let read = [0x48, 0x8b, 0x38];
    let first = |data: &[u8]| overwriting(&Section { address: 64, data }, 64);
    assert_eq!(first(&good), None);
    assert_eq!(first(&bad).as_deref(), Some("mov rax,r10"));
    assert_eq!(first(&read), None);
}
