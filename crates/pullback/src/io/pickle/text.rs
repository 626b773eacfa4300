//! The ways in which the oldest protocol writes strings: as Python's literals.

/// The bytes of a quoted string of Python 2, with its escapes resolved; `None` if it is not quoted, or an escape is cut off.
pub(super) fn string_literal(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii_end();
    let (&quote, rest) = line.split_first()?;
    let (&last, inner) = rest.split_last()?;
    if quote != last || !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let mut out = Vec::new();
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&kind, after) = rest.split_first()?;
        rest = after;
        match kind {
            b'\\' | b'\'' | b'"' => out.push(kind),
            b'\n' => {}
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'x' => {
                out.push(hexadecimal(rest.get(..2)?)? as u8);
                rest = &rest[2..];
            }
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|digit| (b'0'..=b'7').contains(digit));
                let digits = more.clone().count();
                let number =
                    more.fold(u32::from(kind - b'0'), |sum, d| sum * 8 + u32::from(d - b'0'));
                out.push(number as u8);
                rest = &rest[digits..];
            }
            other => out.extend([b'\\', other]),
        }
    }
    Some(out)
}

/// Text in Latin-1 with `\uXXXX` and `\UXXXXXXXX`, as UTF-8 (in which surrogates stay what they are).
pub(super) fn raw_unicode_escape(line: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digits = match (byte, rest.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                encode(u32::from(byte), &mut out)?;
                continue;
            }
        };
        encode(hexadecimal(rest.get(1..=digits)?)?, &mut out)?;
        rest = &rest[digits + 1..];
    }
    Some(out)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0_u32, |sum, &digit| char::from(digit).to_digit(16).map(|value| sum << 4 | value))
}

/// UTF-8 of a code point, also of one that is half of a surrogate pair.
fn encode(point: u32, out: &mut Vec<u8>) -> Option<()> {
    if let Some(character) = char::from_u32(point) {
        out.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
        return Some(());
    }
    if !(0xd800..0xe000).contains(&point) {
        return None;
    }
    out.extend([
        0xe0 | (point >> 12) as u8,
        0x80 | (point >> 6 & 0x3f) as u8,
        0x80 | (point & 0x3f) as u8,
    ]);
    Some(())
}
