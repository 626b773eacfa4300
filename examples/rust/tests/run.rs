//! The programs run in a short form, and learn something.

use std::process::Command;

/// What a program writes to its standard output.
fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().expect("the program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}

/// The number behind a text.
fn number_after(text: &str, before: &str) -> f64 {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}")).1;
    let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().expect("a number is there")
}

#[test]
fn the_network_learns_digits() {
    let text = output(env!("CARGO_BIN_EXE_mlp"), &["6"]);
    let right: f64 = text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a share");
    assert!(right > 85.0, "{text}");
}

#[test]
fn the_transformer_learns_to_write() {
    let text = output(env!("CARGO_BIN_EXE_gpt"), &["30"]);
    let before = number_after(&text, "read: ");
    let after = number_after(&text, "before, ");
    assert!(before > 4.0 && after < 3.5, "{text}");
    let written = text.split_once("\n\n").expect("it wrote something").1;
    assert!(written.chars().count() >= 70, "{written}");
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let run = || output(env!("CARGO_BIN_EXE_gpt"), &["2", "7"]);
    assert_eq!(run(), run());
}
