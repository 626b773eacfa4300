//! Writing pickles, in protocol 2, which is what checkpoints are in.

use super::opcode as code;
use std::collections::HashMap;

/// Writes operations. Objects that come twice are remembered by a number that the caller knows them by, such as an address.
pub struct Pickler {
    out: Vec<u8>,
    memo: HashMap<usize, u32>,
    names: HashMap<(String, String), u32>,
    count: u32,
}

impl Default for Pickler {
    fn default() -> Self {
        let out = vec![code::PROTO, 2];
        let (memo, names) = (HashMap::new(), HashMap::new());
        Pickler { out, memo, names, count: 0 }
    }
}

impl Pickler {
    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }
    fn put(&mut self, opcode: u8, argument: &[u8]) {
        self.out.push(opcode);
        self.out.extend_from_slice(argument);
    }
    /// Ends the pickle.
    pub fn stop(&mut self) {
        self.out.push(code::STOP);
    }
    /// `None`.
    pub fn none(&mut self) {
        self.put(code::NONE, &[]);
    }
    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        self.put(if value { code::NEWTRUE } else { code::NEWFALSE }, &[]);
    }
    /// An integer.
    pub fn int(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.put(code::BININT1, &[byte]);
        } else if let Ok(short) = u16::try_from(value) {
            self.put(code::BININT2, &short.to_le_bytes());
        } else if let Ok(middle) = i32::try_from(value) {
            self.put(code::BININT, &middle.to_le_bytes());
        } else {
            self.big_int(&value.to_le_bytes());
        }
    }
    /// An integer from its two's complement, of less than 2^31 bytes.
    pub fn big_int(&mut self, bytes: &[u8]) {
        if let Ok(length) = u8::try_from(bytes.len()) {
            self.put(code::LONG1, &[length]);
        } else {
            self.put(code::LONG4, &(bytes.len() as u32).to_le_bytes());
        }
        self.out.extend_from_slice(bytes);
    }
    /// A real number.
    pub fn float(&mut self, value: f64) {
        self.put(code::BINFLOAT, &value.to_be_bytes());
    }
    /// A text.
    pub fn text(&mut self, text: &str) {
        match u32::try_from(text.len()) {
            Ok(length) => self.put(code::BINUNICODE, &length.to_le_bytes()),
            // (Of protocol 4: what Python's own pickler writes of such texts, whichever protocol is asked for.)
            Err(_) => self.put(code::BINUNICODE8, &(text.len() as u64).to_le_bytes()),
        }
        self.out.extend_from_slice(text.as_bytes());
    }
    /// A class or function.
    pub fn global(&mut self, module: &str, name: &str) {
        let key = (module.to_owned(), name.to_owned());
        if let Some(&at) = self.names.get(&key) {
            self.get(at);
            return;
        }
        self.put(code::GLOBAL, format!("{module}\n{name}\n").as_bytes());
        let at = self.memorize();
        self.names.insert(key, at);
    }
    /// An empty list, known by `key`.
    pub fn empty_list(&mut self, key: usize) {
        self.put(code::EMPTY_LIST, &[]);
        self.remember(key);
    }
    /// An empty dictionary, known by `key`.
    pub fn empty_dict(&mut self, key: usize) {
        self.put(code::EMPTY_DICT, &[]);
        self.remember(key);
    }
    /// Appends the last object to the list before it.
    pub fn append(&mut self) {
        self.out.push(code::APPEND);
    }
    /// Sets an item of the dictionary before the last two objects.
    pub fn set_item(&mut self) {
        self.out.push(code::SETITEM);
    }
    /// To be called before the items of a tuple of so many.
    pub fn begin_tuple(&mut self, count: usize) {
        if count > 3 {
            self.out.push(code::MARK);
        }
    }
    /// A tuple of the last so many objects, which [`Pickler::begin_tuple`] was told of.
    pub fn tuple(&mut self, count: usize) {
        self.out.push(match count {
            0 => code::EMPTY_TUPLE,
            1 => code::TUPLE1,
            2 => code::TUPLE2,
            3 => code::TUPLE3,
            _ => code::TUPLE,
        });
    }
    /// Calls the object before the last, a tuple.
    pub fn reduce(&mut self) {
        self.out.push(code::REDUCE);
    }
    /// What lies outside of the pickle under the last object.
    pub fn persistent(&mut self) {
        self.out.push(code::BINPERSID);
    }
    /// Whether the object that is known by `key` was written before: then it is there again.
    pub fn known(&mut self, key: usize) -> bool {
        match self.memo.get(&key) {
            Some(&at) => {
                self.get(at);
                true
            }
            None => false,
        }
    }
    /// Lets the last object be known by `key`.
    pub fn remember(&mut self, key: usize) {
        let at = self.memorize();
        self.memo.insert(key, at);
    }
    fn get(&mut self, at: u32) {
        match u8::try_from(at) {
            Ok(byte) => self.put(code::BINGET, &[byte]),
            Err(_) => self.put(code::LONG_BINGET, &at.to_le_bytes()),
        }
    }
    fn memorize(&mut self) -> u32 {
        let at = self.count;
        self.count += 1;
        if let Ok(byte) = u8::try_from(at) {
            self.out.extend([code::BINPUT, byte]);
        } else {
            self.out.push(code::LONG_BINPUT);
            self.out.extend(at.to_le_bytes());
        }
        at
    }
}
