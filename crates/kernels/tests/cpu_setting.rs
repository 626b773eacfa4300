//! `PULLBACK_CPU` in processes of their own.

use pullback_kernels::ErrorKind;
use pullback_kernels::simd::{SimdLevel, capability, ceiling, highest_level, level, set_level};
use std::process::Command;

/// What [`tells_its_level`] prints, to both streams, in a process with the variable set to `word`.
fn told(word: &str) -> (String, String) {
    let this = std::env::current_exe().expect("a test has a file");
    let mut child = Command::new(this);
    child.args(["--exact", "tells_its_level", "--nocapture"]);
    let output = child.env("PULLBACK_CPU", word).output().expect("the test starts");
    assert!(output.status.success(), "{word}");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

/// The level before a kernel asks for more, and after that.
#[test]
fn tells_its_level() {
    let first = level();
    assert_eq!(set_level(SimdLevel::Avx512), first, "no call raises it");
    assert_eq!(ceiling(), first);
    match capability() {
        Ok(level) => println!("level {first:?} {level:?} {}", level.torch_name()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Value);
            println!("level {first:?}: {error}");
        }
    }
}

#[test]
fn the_variable_lowers_a_process_and_never_raises_it() {
    for (word, wanted) in [
        ("generic", SimdLevel::Baseline),
        ("avx2", SimdLevel::Avx2),
        (" AVX2 ", SimdLevel::Avx2),
        ("avx512", SimdLevel::Avx512),
        ("amx", SimdLevel::Avx512),
        ("", SimdLevel::Avx512),
    ] {
        let level = wanted.min(highest_level());
        let (out, err) = told(word);
        let line = format!("level {level:?} {level:?} {}", level.torch_name());
        assert!(out.contains(&line), "{word}: {out}");
        assert!(!err.contains("PULLBACK_CPU"), "{word}: {err}");
    }
}

#[test]
fn another_word_is_an_error_and_lowers_nothing() {
    for word in ["avx", "sse9", "avx-512", "default", "0"] {
        let phrase = format!("PULLBACK_CPU must be generic, avx2, avx512 or amx, but is '{word}'");
        let (out, err) = told(word);
        assert!(out.contains(&format!("level {:?}: {phrase}", highest_level())), "{word}: {out}");
        assert!(err.contains(&format!("pullback: {phrase}; it is ignored")), "{word}: {err}");
    }
}

#[test]
fn levels_have_the_words_of_pytorch() {
    assert_eq!(SimdLevel::ALL.map(SimdLevel::torch_name), ["DEFAULT", "AVX2", "AVX512"]);
}
