//! The table that says of each instruction of a code object which line it comes from (CPython 3.11 and later,
//! `Objects/locations.md` of its sources): a run of entries, each for one to eight instructions.

/// The entry of the table for an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) line: u32,
    /// The first byte of the line that belongs to it, and the one after the last.
    pub(super) columns: Option<(u32, u32)>,
}

struct LineTableReader<'a>(std::slice::Iter<'a, u8>);

impl LineTableReader<'_> {
    fn byte(&mut self) -> Option<u32> {
        self.0.next().map(|&byte| u32::from(byte))
    }
    /// Six bits a byte, the lowest first; bit 6 says that more follow.
    fn number(&mut self) -> Option<u32> {
        let (mut number, mut shift) = (0_u32, 0);
        loop {
            let byte = self.byte()?;
            number |= (byte & 63).checked_shl(shift)?;
            shift += 6;
            if byte & 64 == 0 {
                return Some(number);
            }
        }
    }
    /// The sign is in the lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let size = i64::from(number >> 1);
        Some(if number & 1 == 1 { -size } else { size })
    }
}

/// The line of the instruction at `offset` bytes; nothing if it has none, or if the table is not of this form.
pub(super) fn find(table: &[u8], first_line: u32, offset: usize) -> Option<Found> {
    let mut reader = LineTableReader(table.iter());
    let mut line = i64::from(first_line);
    let mut end = 0;
    loop {
        let head = reader.byte()?;
        if head & 128 == 0 {
            return None;
        }
        end += (head as usize & 7) * 2 + 2;
        let mut has_line = true;
        let columns = match head >> 3 & 15 {
            kind @ 0..=9 => {
                let byte = reader.byte()?;
                let start = kind << 3 | byte >> 4;
                Some((start, start + (byte & 15)))
            }
            kind @ 10..=12 => {
                line += i64::from(kind - 10);
                Some((reader.byte()?, reader.byte()?))
            }
            13 => {
                line += reader.signed()?;
                None
            }
            14 => {
                line += reader.signed()?;
                let lines = reader.number()?;
                let (start, end) = (reader.number()?, reader.number()?);
                // (They are counted from one on; zero means that there is none.)
                start.checked_sub(1).zip(end.checked_sub(1)).filter(|_| lines == 0)
            }
            _ => {
                has_line = false;
                None
            }
        };
        if offset < end {
            let line = u32::try_from(line).ok().filter(|_| has_line)?;
            return Some(Found { line, columns });
        }
    }
}
