//! What `#[op]` makes of an op, without compiling the library that declares it: `cargo xtask expand NAME` runs this.
//!
//! `expand OPS NAME FOLDER` reads the files below OPS and writes the expansion of every op NAME into FOLDER, a file for each
//! overload. It is the attribute's own code, included by path because a crate of macros shows nothing else. Items that another
//! macro writes are not seen.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "the trait `Chain` is made of the same modules, but not here"
)]

#[path = "../src/chain.rs"]
mod chain;
#[path = "../src/expand.rs"]
mod expand;
#[path = "../src/family.rs"]
mod family;
#[path = "../src/item.rs"]
mod item;
#[path = "../src/kernel.rs"]
mod kernel;
#[path = "../src/method.rs"]
mod method;
#[path = "../src/rule.rs"]
mod rule;
#[path = "../src/source.rs"]
mod source;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ops, name, folder] = arguments.as_slice() else {
        eprintln!("usage: expand OPS NAME FOLDER");
        return ExitCode::FAILURE;
    };
    let written = chain::each_op(Path::new(ops), &mut |op| {
        if op.schema.name != *name {
            return Ok(());
        }
        expand::write(op, &expand::expand(op)?, Path::new(folder))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
