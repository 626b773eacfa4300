//! What Python shows of a signature.

use crate::Schema;

/// The order in which overloads are tried.
pub fn sort_overloads(schemas: &[Schema]) -> Vec<usize> {
    (0..schemas.len()).collect()
}
