//! `PULLBACK_CPU`, the environment variable that lowers the instruction set of a process: `generic`, `avx2`, `avx512` or
//! `amx`, in letters of either case. It is read once.
//!
//! A word above what the machine has leaves it what it has: the variable only lowers. `amx` is taken for `avx512`, as no
//! kernel uses tiles. Any other word is an error ([`capability`]), which the Python package raises when it is imported; a
//! Rust program that does not ask computes with all that the machine has and finds a line on its standard error.
//! Products and decompositions of the crates `gemm` and `faer` choose their instructions themselves.

use super::{SimdLevel, highest_level, level};
use crate::{Error, Result};
use std::sync::OnceLock;

const VARIABLE: &str = "PULLBACK_CPU";

/// The instruction set that kernels use now: [`level`], or what is wrong with `PULLBACK_CPU`.
///
/// # Errors
/// A value error if the variable has a word that is none of `generic`, `avx2`, `avx512` and `amx`.
pub fn capability() -> Result<SimdLevel> {
    setting().as_ref().map_err(|word| unknown(word))?;
    Ok(level())
}

/// The highest level that the machine has and `PULLBACK_CPU` allows.
pub fn ceiling() -> SimdLevel {
    match setting() {
        Ok(Some(wanted)) => highest_level().min(*wanted),
        Ok(None) | Err(_) => highest_level(),
    }
}

/// Tells on standard error of a word that means nothing.
pub(super) fn report() {
    if let Err(word) = setting() {
        eprintln!("pullback: {}; it is ignored", unknown(word).message());
    }
}

/// What the variable asks for, if it is there; the word, if it means nothing.
fn setting() -> &'static std::result::Result<Option<SimdLevel>, String> {
    static SETTING: OnceLock<std::result::Result<Option<SimdLevel>, String>> = OnceLock::new();
    SETTING.get_or_init(|| match std::env::var_os(VARIABLE) {
        None => Ok(None),
        Some(word) => parsed(&word.to_string_lossy()),
    })
}

/// The level of a word; none for the empty word, which is as good as no variable.
fn parsed(word: &str) -> std::result::Result<Option<SimdLevel>, String> {
    match word.trim().to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "generic" => Ok(Some(SimdLevel::Baseline)),
        "avx2" => Ok(Some(SimdLevel::Avx2)),
        "avx512" | "amx" => Ok(Some(SimdLevel::Avx512)),
        _ => Err(word.to_owned()),
    }
}

fn unknown(word: &str) -> Error {
    Error::value(format!("{VARIABLE} must be generic, avx2, avx512 or amx, but is '{word}'"))
}
