//! A pickle's bytes as operations: each whole, its arguments decoded.

use super::opcode as code;
use super::text::{raw_unicode_escape, string_literal};
use std::borrow::Cow;

/// How a pickle is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The input ends before the pickle does: CPython's `EOFError`.
    EndOfInput,
    /// An argument is cut off.
    Truncated,
    /// An operation has no meaning, or needs something that is not supported.
    Malformed,
}

/// What is wrong with a pickle, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The first byte of the operation.
    pub position: usize,
    /// What is wrong.
    pub text: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (at byte {} of the pickle)", self.text, self.position)
    }
}

/// A value that is complete in its operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Constant<'a> {
    /// `None`.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A longer integer: two's complement, little-endian.
    BigInt(Cow<'a, [u8]>),
    /// A real number.
    Float(f64),
    /// Text as UTF-8, perhaps with surrogates.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Mutable bytes.
    ByteArray(&'a [u8]),
    /// A string of Python 2: bytes, or text in an encoding that the reader knows.
    OldString(Cow<'a, [u8]>),
}

/// An operation.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Opcode<'a> {
    Constant(Constant<'a>),
    Mark,
    Stop,
    Pop,
    PopMark,
    Dup,
    EmptyList,
    EmptyTuple,
    EmptyDict,
    EmptySet,
    /// `List`, `Tuple`, `Dict` and `FrozenSet` are made of the items above the mark.
    List,
    Tuple,
    Dict,
    FrozenSet,
    /// A tuple of this many items.
    TupleOf(usize),
    Append,
    Appends,
    SetItem,
    SetItems,
    AddItems,
    Global(&'a str, &'a str),
    StackGlobal,
    /// An instance of this class, made of what lies above the mark.
    Instance(&'a str, &'a str),
    /// An instance of the class that is the first item above the mark, made of the others.
    Object,
    Reduce,
    NewObject,
    NewObjectWithKeywords,
    Build,
    PersistentText(&'a str),
    Persistent,
    Get(u32),
    Put(u32),
    Memoize,
    Protocol(u8),
    Frame,
}

/// The most digits of an integer in decimals, as in CPython: the conversion takes time proportional
/// to the square of their number.
const MOST_DIGITS: usize = 4300;

/// Takes a pickle apart.
pub(super) struct PickleReader<'a> {
    bytes: &'a [u8],
    /// The position of the next byte.
    at: usize,
    /// The first byte of the operation.
    begin: usize,
}

type ReadResult<T> = Result<T, Fault>;

impl<'a> PickleReader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        PickleReader { bytes, at: at.min(bytes.len()), begin: at }
    }
    /// Where the next operation begins.
    pub(super) fn position(&self) -> usize {
        self.at
    }
    /// The fault of the current operation.
    pub(super) fn fault(&self, text: impl Into<String>) -> Fault {
        Fault { kind: FaultKind::Malformed, position: self.begin, text: text.into() }
    }
    fn take(&mut self, count: u64) -> ReadResult<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(count).ok().and_then(|count| rest.get(..count));
        let Some(taken) = taken else {
            let text = format!(
                "pickle data was truncated: {count} bytes are missing or cut off, {} are left",
                rest.len()
            );
            return Err(Fault { kind: FaultKind::Truncated, position: self.begin, text });
        };
        self.at += taken.len();
        Ok(taken)
    }
    fn fixed<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        self.take(N as u64).map(|bytes| {
            let mut fixed = [0; N];
            fixed.copy_from_slice(bytes);
            fixed
        })
    }
    fn byte(&mut self) -> ReadResult<u8> {
        self.fixed().map(|[byte]| byte)
    }
    fn u32(&mut self) -> ReadResult<u32> {
        self.fixed().map(u32::from_le_bytes)
    }
    /// Bytes whose number precedes them in `N` bytes.
    fn counted<const N: usize>(&mut self) -> ReadResult<&'a [u8]> {
        let mut count = [0; 8];
        count[..N].copy_from_slice(&self.fixed::<N>()?);
        self.take(u64::from_le_bytes(count))
    }
    /// A line without its end.
    fn line(&mut self) -> ReadResult<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
            let text = "pickle data was truncated: a line has no end".to_owned();
            return Err(Fault { kind: FaultKind::Truncated, position: self.begin, text });
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }
    fn name(&mut self) -> ReadResult<&'a str> {
        let line = self.line()?;
        std::str::from_utf8(line).map_err(|_| self.fault("a name is no UTF-8"))
    }
    fn decimal<T: std::str::FromStr>(&mut self) -> ReadResult<T> {
        let text = self.name()?.trim();
        text.parse().map_err(|_| self.fault(format!("{text:?} is no number that fits here")))
    }
    /// An old-style integer, which may be a boolean.
    fn old_int(&mut self) -> ReadResult<Constant<'a>> {
        match self.name()?.trim() {
            "00" => Ok(Constant::Bool(false)),
            "01" => Ok(Constant::Bool(true)),
            text => self.integer(text),
        }
    }
    fn integer(&self, text: &'a str) -> ReadResult<Constant<'a>> {
        if let Ok(small) = text.parse() {
            return Ok(Constant::Int(small));
        }
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number || digits.len() > MOST_DIGITS {
            let text: String = text.chars().take(40).collect();
            return Err(self.fault(format!("{text:?} is no integer of up to {MOST_DIGITS} digits")));
        }
        Ok(Constant::BigInt(Cow::Owned(complement(digits.as_bytes(), is_negative))))
    }

    /// The next operation.
    pub(super) fn next(&mut self) -> ReadResult<Opcode<'a>> {
        self.begin = self.at;
        let Some(&opcode) = self.bytes.get(self.at) else {
            let text = "Ran out of input".to_owned();
            return Err(Fault { kind: FaultKind::EndOfInput, position: self.begin, text });
        };
        self.at += 1;
        if let Some(simple) = without_argument(opcode) {
            return Ok(simple);
        }
        if let Some(constant) = self.constant(opcode)? {
            return Ok(Opcode::Constant(constant));
        }
        Ok(match opcode {
            code::GLOBAL => Opcode::Global(self.name()?, self.name()?),
            code::INST => Opcode::Instance(self.name()?, self.name()?),
            code::PERSID => Opcode::PersistentText(self.name()?),
            code::GET => Opcode::Get(self.decimal()?),
            code::PUT => Opcode::Put(self.decimal()?),
            code::BINGET => Opcode::Get(self.byte()?.into()),
            code::BINPUT => Opcode::Put(self.byte()?.into()),
            code::LONG_BINGET => Opcode::Get(self.u32()?),
            code::LONG_BINPUT => Opcode::Put(self.u32()?),
            code::PROTO => Opcode::Protocol(self.byte()?),
            // The contents of a frame's header are not needed: every operation is checked on its
            // own.
            code::FRAME => self.fixed::<8>().map(|_| Opcode::Frame)?,
            other => {
                let shown = char::from(other).escape_default();
                return Err(self.fault(format!("Unsupported operand {other} ({shown})")));
            }
        })
    }

    fn constant(&mut self, opcode: u8) -> ReadResult<Option<Constant<'a>>> {
        Ok(Some(match opcode {
            code::NONE => Constant::None,
            code::NEWTRUE => Constant::Bool(true),
            code::NEWFALSE => Constant::Bool(false),
            code::BININT => Constant::Int(i32::from_le_bytes(self.fixed()?).into()),
            code::BININT1 => Constant::Int(self.byte()?.into()),
            code::BININT2 => Constant::Int(u16::from_le_bytes(self.fixed()?).into()),
            code::INT => self.old_int()?,
            code::LONG => {
                let text = self.name()?.trim();
                self.integer(text.strip_suffix('L').unwrap_or(text))?
            }
            code::LONG1 => long(self.counted::<1>()?),
            code::LONG4 => long(self.counted::<4>()?),
            code::BINFLOAT => Constant::Float(f64::from_be_bytes(self.fixed()?)),
            code::FLOAT => Constant::Float(self.decimal()?),
            code::STRING => {
                let literal = string_literal(self.line()?);
                let text = literal.ok_or_else(|| self.fault("a STRING must be in quotes"))?;
                Constant::OldString(Cow::Owned(text))
            }
            code::BINSTRING => Constant::OldString(Cow::Borrowed(self.counted::<4>()?)),
            code::SHORT_BINSTRING => Constant::OldString(Cow::Borrowed(self.counted::<1>()?)),
            code::UNICODE => {
                let text = raw_unicode_escape(self.line()?);
                Constant::Text(Cow::Owned(
                    text.ok_or_else(|| self.fault("a broken escape in a UNICODE"))?,
                ))
            }
            code::BINUNICODE => Constant::Text(Cow::Borrowed(self.counted::<4>()?)),
            code::SHORT_BINUNICODE => Constant::Text(Cow::Borrowed(self.counted::<1>()?)),
            code::BINUNICODE8 => Constant::Text(Cow::Borrowed(self.counted::<8>()?)),
            code::BINBYTES => Constant::Bytes(self.counted::<4>()?),
            code::SHORT_BINBYTES => Constant::Bytes(self.counted::<1>()?),
            code::BINBYTES8 => Constant::Bytes(self.counted::<8>()?),
            code::BYTEARRAY8 => Constant::ByteArray(self.counted::<8>()?),
            _ => return Ok(None),
        }))
    }
}

fn without_argument(opcode: u8) -> Option<Opcode<'static>> {
    Some(match opcode {
        code::MARK => Opcode::Mark,
        code::STOP => Opcode::Stop,
        code::POP => Opcode::Pop,
        code::POP_MARK => Opcode::PopMark,
        code::DUP => Opcode::Dup,
        code::EMPTY_LIST => Opcode::EmptyList,
        code::EMPTY_TUPLE => Opcode::EmptyTuple,
        code::EMPTY_DICT => Opcode::EmptyDict,
        code::EMPTY_SET => Opcode::EmptySet,
        code::LIST => Opcode::List,
        code::TUPLE => Opcode::Tuple,
        code::DICT => Opcode::Dict,
        code::FROZENSET => Opcode::FrozenSet,
        code::TUPLE1 => Opcode::TupleOf(1),
        code::TUPLE2 => Opcode::TupleOf(2),
        code::TUPLE3 => Opcode::TupleOf(3),
        code::APPEND => Opcode::Append,
        code::APPENDS => Opcode::Appends,
        code::SETITEM => Opcode::SetItem,
        code::SETITEMS => Opcode::SetItems,
        code::ADDITEMS => Opcode::AddItems,
        code::STACK_GLOBAL => Opcode::StackGlobal,
        code::OBJ => Opcode::Object,
        code::REDUCE => Opcode::Reduce,
        code::NEWOBJ => Opcode::NewObject,
        code::NEWOBJ_EX => Opcode::NewObjectWithKeywords,
        code::BUILD => Opcode::Build,
        code::BINPERSID => Opcode::Persistent,
        code::MEMOIZE => Opcode::Memoize,
        _ => return None,
    })
}

/// An integer from its two's complement.
fn long(bytes: &[u8]) -> Constant<'_> {
    if bytes.len() > 8 {
        return Constant::BigInt(Cow::Borrowed(bytes));
    }
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut number = [if is_negative { 0xff } else { 0 }; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    Constant::Int(i64::from_le_bytes(number))
}

/// The two's complement of a number in decimals.
fn complement(digits: &[u8], is_negative: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for digit in digits {
        let mut carry = u16::from(digit - b'0');
        for byte in &mut bytes {
            let product = u16::from(*byte) * 10 + carry;
            *byte = product as u8;
            carry = product >> 8;
        }
        if carry > 0 {
            bytes.push(carry as u8);
        }
    }
    bytes.push(0);
    if is_negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (sum, is_over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, is_over);
        }
    }
    bytes
}
