//! The side of the program that calls: a library's table, checked, as ordinary functions.

use crate::abi::{self, Call, Reply, Table};
use crate::guest::Library;
use crate::program::Program;
use pullback::dlpack::{DataType, Managed};
use pullback::tensor::promote::default_dtype;
use pullback::{Error, Result, Tensor, threads};
use std::ptr::NonNull;

/// A library that was loaded; it is never unloaded.
#[derive(Clone, Copy, Debug)]
pub struct Extension(&'static Table);

impl Extension {
    /// A library of this very program.
    pub fn of(library: &'static Library) -> Extension {
        Extension(library.table())
    }

    /// The library that a table was got from.
    ///
    /// # Safety
    /// It is a [`Table`] of any version, of a library that is never unloaded.
    ///
    /// # Errors
    /// `RuntimeError` for one of another version.
    pub unsafe fn new(table: NonNull<Table>) -> Result<Extension> {
        // SAFETY: each version begins with its number.
        let version = unsafe { table.cast::<u32>().read() };
        if version != abi::VERSION {
            return Err(Error::runtime(format!(
                "the extension was built for version {version} of the border to pullback, this one has version {}: build \
                 it with the pullback-extension of this release",
                abi::VERSION
            )));
        }
        // SAFETY: the caller's promise, and it is of this version.
        Ok(Extension(unsafe { table.as_ref() }))
    }

    /// The number of its ops.
    pub fn count(self) -> u32 {
        self.0.ops
    }

    /// The signature of an op, and its doc text.
    ///
    /// # Errors
    /// `NotImplementedError` for an op that cannot be called over the border.
    pub fn describe(self, op: u32) -> Result<(String, String)> {
        let mut reply = Answer(Reply::empty());
        // SAFETY: the library's own function, by its own table.
        unsafe { (self.0.describe)(self.0, op, &raw mut reply.0) };
        let (text, _) = reply.read()?;
        let (schema, doc) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((schema.to_owned(), doc.to_owned()))
    }

    /// The results of a program for `inputs`: tensors without history, over memory of their own.
    ///
    /// # Errors
    /// Those of the op and of [`Managed::export`].
    pub fn run(self, program: &Program, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let bytes = program.bytes();
        let exported = Exported::of(inputs)?;
        let call = Call {
            program: bytes.as_ptr(),
            length: bytes.len(),
            inputs: exported.0.as_ptr(),
            count: exported.0.len(),
            threads: threads::num_threads(),
            default_dtype: DataType::of(default_dtype()),
        };
        let mut reply = Answer(Reply::empty());
        // SAFETY: the library's own function; all that the call points to lives until it returns.
        unsafe { (self.0.run)(self.0, &raw const call, &raw mut reply.0) };
        exported.give_away();
        Ok(reply.read()?.1)
    }
}

/// Managed tensors that nobody has taken yet.
struct Exported(Vec<*mut Managed>);

impl Exported {
    fn of(tensors: &[Tensor]) -> Result<Exported> {
        let mut all = Exported(Vec::with_capacity(tensors.len()));
        for tensor in tensors {
            all.0.push(Managed::export(tensor)?.as_ptr());
        }
        Ok(all)
    }
    fn give_away(mut self) {
        self.0.clear();
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        for managed in self.0.drain(..).filter_map(NonNull::new) {
            // SAFETY: exported above, and taken by nobody.
            drop(unsafe { Managed::import(managed) });
        }
    }
}

/// A reply, whose memory is released when this is dropped.
struct Answer(Reply);

impl Answer {
    fn read(&mut self) -> Result<(String, Vec<Tensor>)> {
        let reply = &mut self.0;
        let text = match reply.length {
            0 => String::new(),
            // SAFETY: the text of the reply, which lives until it is released.
            length => unsafe {
                String::from_utf8_lossy(std::slice::from_raw_parts(reply.text, length)).into_owned()
            },
        };
        if reply.error != 0 {
            return Err(abi::error_of(reply.error, text));
        }
        let count = std::mem::take(&mut reply.count);
        // SAFETY: the list of the reply, whose tensors are ours, each once.
        let import = |index| unsafe {
            let managed = NonNull::new(reply.outputs.add(index).read());
            Managed::import(managed.ok_or_else(|| Error::runtime("an extension gave no tensor"))?)
        };
        let all: Vec<Result<Tensor>> = (0..count).map(import).collect();
        Ok((text, all.into_iter().collect::<Result<_>>()?))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the reply's own function, called once.
            unsafe { release(self.0.kept) };
        }
    }
}
