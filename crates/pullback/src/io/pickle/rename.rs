//! The names of classes and functions in a pickle: listing them, and replacing them by a writer's
//! own.

use super::opcode as code;
use super::read::{Constant, Fault, Opcode, PickleReader};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Longer texts are no names. (Each use of a name is listed, with a copy of its text.)
const LONGEST: usize = 256;

/// The names of classes and functions that a pickle asks for, pairs of module and name in the order in which they come. Texts are
/// followed through the memo only.
///
/// # Errors
/// A fault of the pickle; a name that is the result of a computation, which cannot be known without running it.
pub fn globals(bytes: &[u8]) -> Result<Vec<(String, String)>, Fault> {
    let mut names = Vec::new();
    let mut reader = PickleReader::new(bytes, 0);
    // Picklers put a name's two texts onto the stack right before they use them.
    let mut last: [Option<Cow<'_, [u8]>>; 2] = [None, None];
    let mut memo: HashMap<u32, Option<Cow<'_, [u8]>>> = HashMap::new();
    loop {
        match reader.next()? {
            Opcode::Stop => return Ok(names),
            Opcode::Global(module, name) | Opcode::Instance(module, name) => {
                names.push((module.to_owned(), name.to_owned()));
                last = [None, None];
            }
            Opcode::StackGlobal => {
                let [module, name] = std::mem::take(&mut last);
                let (Some(module), Some(name)) = (module, name) else {
                    return Err(reader.fault("the name of a class or function is computed"));
                };
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                names.push((text(&module), text(&name)));
            }
            Opcode::Constant(Constant::Text(text)) => {
                last = [last[1].take(), Some(text).filter(|text| text.len() <= LONGEST)];
            }
            Opcode::Get(key) => last = [last[1].take(), memo.get(&key).cloned().flatten()],
            Opcode::Put(key) => drop(memo.insert(key, last[1].clone())),
            Opcode::Memoize => drop(memo.insert(memo.len() as u32, last[1].clone())),
            Opcode::Frame | Opcode::Protocol(_) => {}
            _ => last = [None, None],
        }
    }
}

/// A persistent id that may turn out to be a name.
enum Pending<'a> {
    /// The text begins at this byte; the field is the operation that memoises it.
    Text { start: usize, name: &'a [u8], memo: Range<usize> },
    /// It came from the memo.
    Known,
}

/// The same pickle with names of classes and functions in place of the persistent ids `prefix + "module\nname"`. (A pickler can
/// only name what is found where its module says; so it writes such a text.) Frames go: their sizes would not be true any more.
///
/// # Errors
/// A fault of the pickle.
pub fn resolve_names(bytes: &[u8], prefix: &str) -> Result<Vec<u8>, Fault> {
    let mut reader = PickleReader::new(bytes, 0);
    let mut out = Vec::new();
    let (mut copied, mut memorized) = (0, 0_u32);
    let mut known: HashSet<u32> = HashSet::new();
    let mut pending = None;
    loop {
        let start = reader.position();
        let op = reader.next()?;
        let end = reader.position();
        pending = match (op, pending) {
            (Opcode::Stop, _) => {
                out.extend_from_slice(&bytes[copied..end]);
                return Ok(out);
            }
            (Opcode::Frame, pending) => {
                out.extend_from_slice(&bytes[copied..start]);
                copied = end;
                pending
            }
            (Opcode::Constant(Constant::Text(Cow::Borrowed(text))), _) => {
                let name = text.strip_prefix(prefix.as_bytes());
                name.map(|name| Pending::Text { start, name, memo: 0..0 })
            }
            (op @ (Opcode::Put(_) | Opcode::Memoize), pending) => {
                let key = if let Opcode::Put(key) = op { key } else { memorized };
                memorized += 1;
                match pending {
                    Some(Pending::Text { start: text, name, .. }) => {
                        known.insert(key);
                        Some(Pending::Text { start: text, name, memo: start..end })
                    }
                    _ => None,
                }
            }
            (Opcode::Get(key), _) if known.contains(&key) => Some(Pending::Known),
            (Opcode::Persistent, Some(Pending::Text { start: text, name, memo })) => {
                out.extend_from_slice(&bytes[copied..text]);
                out.push(code::GLOBAL);
                out.extend_from_slice(name);
                out.push(b'\n');
                out.extend_from_slice(&bytes[memo]);
                copied = end;
                None
            }
            (Opcode::Persistent, Some(Pending::Known)) => {
                out.extend_from_slice(&bytes[copied..start]);
                copied = end;
                None
            }
            _ => None,
        };
    }
}
