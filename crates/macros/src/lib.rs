//! The `#[op]` attribute.
