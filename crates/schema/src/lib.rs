//! The grammar of op signatures.
