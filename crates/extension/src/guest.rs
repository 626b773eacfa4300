//! The side of the library that has the ops: a table for the caller, over a list of ops.
//!
//! ```
//! use pullback::custom::{Iter, KernelResult, map_real};
//! use pullback::prelude::*;
//! use pullback::op;
//! use pullback_extension::{Given, Library, Program, Step, host::Extension};
//!
//! /// `x / (1 + |x|)`, element by element.
//! #[op("squash(Tensor self) -> Tensor", meta = float, batch = pointwise, jvp = elementwise, samples = unary_nonzero)]
//! impl Squash {
//!     fn cpu(iter: &mut Iter) -> KernelResult<()> {
//!         map_real(iter, "squash", |[x]: [f64; 1]| x / (1.0 + x.abs()))
//!     }
//!     fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
//!         let below = self_.abs().add(1.0)?;
//!         (grad / (&below * &below)).get()
//!     }
//! }
//!
//! static LIBRARY: Library = Library::new("mymath", &[&SQUASH]);
//!
//! # fn main() -> Result<()> {
//! // What a program does that has loaded the library:
//! let squash = Extension::of(&LIBRARY);
//! let program = Program { op: 0, arguments: vec![Given::Tensor], steps: vec![Step::Vjp(vec![true])] };
//! let (x, one) = (Tensor::from([1.0, -3.0])?, Tensor::from([1.0, 1.0])?);
//! assert_eq!(squash.run(&program, &[x, one])?[0].to_vec::<f64>()?, [0.25, 0.0625]);
//! # Ok(())
//! # }
//! ```

use crate::abi::{self, Call, Reply, Table};
use crate::program::Program;
use crate::run;
use pullback::dispatch::{OpDef, Traits};
use pullback::dlpack::Managed;
use pullback::tensor::promote::set_default_dtype;
use pullback::{Error, Result, Tensor, default_generator, threads};
use pullback_schema::{Base, Schema};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// The ops of a library, in a `static`.
#[repr(C)]
#[derive(Debug)]
pub struct Library {
    table: Table,
    ops: Ops,
}

/// The namespace and the ops in it.
struct Ops(&'static str, &'static [&'static OpDef]);

impl std::fmt::Debug for Ops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.1.iter().map(|op| op.full_name())).finish()
    }
}

impl Library {
    /// A library of these ops in a namespace; their numbers are their places.
    pub const fn new(namespace: &'static str, ops: &'static [&'static OpDef]) -> Library {
        let table =
            Table { version: abi::VERSION, ops: ops.len() as u32, describe, run: run_program };
        Library { table, ops: Ops(namespace, ops) }
    }

    /// The table for callers.
    pub const fn table(&'static self) -> &'static Table {
        &self.table
    }

    fn op(&self, number: u32) -> Result<&'static OpDef> {
        let found = self.ops.1.get(number as usize).copied();
        found.ok_or_else(|| Error::index(format!("the extension has no op number {number}")))
    }
}

/// Why an op cannot be called over the interface.
fn check(op: &OpDef, schema: &Schema) -> Result<()> {
    let writes = schema.args.iter().any(|arg| arg.alias.is_some_and(|alias| alias.is_write));
    let named = schema.args.iter().any(|arg| arg.keyword_only && arg.ty.base == Base::Tensor);
    let kinds = [Base::Layout, Base::MemoryFormat, Base::Generator, Base::Any];
    let reason = if op.is(Traits::RANDOM) {
        "it draws random numbers, which a backward could not draw again"
    } else if writes {
        "it writes into an argument"
    } else if named {
        "a tensor that is given by name only has no gradient"
    } else if schema.args.iter().any(|arg| kinds.contains(&arg.ty.base)) {
        "an argument has a type that does not cross"
    } else if schema.returns.is_empty()
        || schema.returns.iter().any(|one| one.ty.base != Base::Tensor)
    {
        "its results are no tensors"
    } else {
        return Ok(());
    };
    Err(Error::not_implemented(format!("{schema} cannot be an op of an extension: {reason}")))
}

unsafe extern "C" fn describe(table: *const Table, number: u32, reply: *mut Reply) {
    // SAFETY: the caller passes the table that it was given, the first field of a `Library`.
    let library = unsafe { &*table.cast::<Library>() };
    let found = caught(|| {
        let op = library.op(number)?;
        check(op, op.schema())?;
        Ok((format!("{}::{}\n{}", library.ops.0, op.schema(), op.doc.trim()), Vec::new()))
    });
    // SAFETY: the caller's place for an answer.
    unsafe { reply.write(answer(found)) };
}

unsafe extern "C" fn run_program(table: *const Table, call: *const Call, reply: *mut Reply) {
    // SAFETY: the caller passes the table that it was given, the first field of a `Library`, and a call that lives until this returns.
    let (library, call) = unsafe { (&*table.cast::<Library>(), &*call) };
    let found = caught(|| {
        // SAFETY: as the caller filled it in.
        let (bytes, inputs) = unsafe { (listed(call.program, call.length), taken(call)) };
        let (program, inputs) = (Program::read(bytes)?, inputs?);
        if threads::num_threads() != call.threads {
            threads::set_num_threads(call.threads);
        }
        if let Some(dtype) = call.default_dtype.dtype() {
            set_default_dtype(dtype)?;
        }
        let op = library.op(program.op)?;
        Ok((String::new(), evaluated(op, &program, &inputs)?))
    });
    // SAFETY: the caller's place for an answer.
    unsafe { reply.write(answer(found)) };
}

/// The results, which share no memory with inputs.
fn evaluated(op: &'static OpDef, program: &Program, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let state = default_generator().state();
    let found = run::run(op, program, &inputs.iter().collect::<Vec<_>>())?;
    if default_generator().state() != state {
        let text = "draws random numbers, which a backward could not draw again";
        return Err(Error::not_implemented(format!(
            "{}(): an op of an extension that {text}",
            op.name
        )));
    }
    let addresses: Vec<*const u8> =
        inputs.iter().filter_map(|input| Some(input.storage()?.data_ptr())).collect();
    let apart = |output: Tensor| match output.storage() {
        Some(storage) if addresses.contains(&storage.data_ptr()) => output.detach()?.copy(),
        _ => Ok(output),
    };
    found.into_iter().map(apart).collect()
}

/// # Safety
/// `first` is null or the first of `count` items.
unsafe fn listed<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

/// # Safety
/// The inputs are managed tensors that are given away.
unsafe fn taken(call: &Call) -> Result<Vec<Tensor>> {
    // SAFETY: the caller's promise. All are taken, also behind one that no tensor fits.
    let all: Vec<Result<Tensor>> = unsafe { listed(call.inputs, call.count) }
        .iter()
        .map(|&input| match NonNull::new(input) {
            // SAFETY: as above.
            Some(input) => unsafe { Managed::import(input) },
            None => Err(Error::value("an extension was given a null pointer for a tensor")),
        })
        .collect();
    all.into_iter().collect()
}

type Found = Result<(String, Vec<Tensor>)>;

/// The result of `work`; a panic becomes an error.
fn caught(work: impl FnOnce() -> Found) -> Found {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::runtime(format!("an op of an extension panicked: {text}")))
    })
}

/// The data that a reply points to.
struct Kept {
    text: String,
    outputs: Vec<*mut Managed>,
}

fn answer(found: Found) -> Reply {
    unsafe extern "C" fn release(kept: *mut c_void) {
        // SAFETY: made below, given back once.
        drop(unsafe { Box::from_raw(kept.cast::<Kept>()) });
    }
    let exported = found.and_then(|(text, outputs)| {
        let pointers = outputs.iter().map(|output| Ok(Managed::export(output)?.as_ptr()));
        Ok((text, pointers.collect::<Result<Vec<_>>>()?))
    });
    let (error, text, outputs) = match exported {
        Ok((text, outputs)) => (0, text, outputs),
        Err(error) => (abi::number_of(&error), error.message().to_owned(), Vec::new()),
    };
    let kept = Box::new(Kept { text, outputs });
    Reply {
        error,
        text: kept.text.as_ptr(),
        length: kept.text.len(),
        outputs: kept.outputs.as_ptr(),
        count: kept.outputs.len(),
        kept: Box::into_raw(kept).cast(),
        release: Some(release),
    }
}
