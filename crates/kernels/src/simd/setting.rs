//! `PULLBACK_CPU`, the environment variable that lowers the instruction set of a process: `generic`, `avx2`, `avx512` or
//! `amx`, in letters of either case. It is read once.
//!
//! A word above what the machine has leaves it what it has: the variable only lowers. `amx` allows all that `avx512` does and
//! tiles ([`allows_tiles`]), of which PyTorch's words for instruction sets know nothing. Any other word is an error ([`capability`]), which the Python package raises when it is imported; a
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
        Ok(Some(wanted)) => highest_level().min(wanted.level),
        Ok(None) | Err(_) => highest_level(),
    }
}

/// Whether the variable allows tiles (AMX).
pub(crate) fn allows_tiles() -> bool {
    match setting() {
        Ok(Some(wanted)) => wanted.tiles,
        Ok(None) | Err(_) => true,
    }
}

/// The setting that a word requests.
#[derive(Clone, Copy)]
struct Wanted {
    level: SimdLevel,
    tiles: bool,
}

/// The setting of the variable, if it is set; else, if the word means nothing, the word.
type Setting = std::result::Result<Option<Wanted>, String>;

/// Writes a line on standard error about a word that means nothing.
pub(super) fn report() {
    if let Err(word) = setting() {
        eprintln!("pullback: {}; it is ignored", unknown(word).message());
    }
}

/// The variable, read once.
fn setting() -> &'static Setting {
    static SETTING: OnceLock<Setting> = OnceLock::new();
    SETTING.get_or_init(|| match std::env::var_os(VARIABLE) {
        None => Ok(None),
        Some(word) => parsed(&word.to_string_lossy()),
    })
}

/// The setting that a word requests; none for the empty word, which counts as no variable.
fn parsed(word: &str) -> Setting {
    let level = match word.trim().to_ascii_lowercase().as_str() {
        "" => return Ok(None),
        "generic" => SimdLevel::Baseline,
        "avx2" => SimdLevel::Avx2,
        "avx512" => SimdLevel::Avx512,
        "amx" => return Ok(Some(Wanted { level: SimdLevel::Avx512, tiles: true })),
        _ => return Err(word.to_owned()),
    };
    Ok(Some(Wanted { level, tiles: false }))
}

fn unknown(word: &str) -> Error {
    Error::value(format!("{VARIABLE} must be generic, avx2, avx512 or amx, but is '{word}'"))
}
