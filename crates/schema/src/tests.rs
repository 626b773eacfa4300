//! Tests of the crate, by concern; `tests/signatures.txt` holds the signatures of the foundation's
//! ops in canonical form, one a line.

mod bind;
mod parse;
mod python;

use crate::Schema;

/// The parsed signature; the text must be right.
fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// All signatures of the foundation's ops.
fn every_signature() -> impl Iterator<Item = &'static str> {
    include_str!("tests/signatures.txt").lines()
}
