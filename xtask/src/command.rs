//! Running other programs: shown before it starts, its output passed through, its failure a message.
//!
//! [`run`] leaves the terminal to the program, [`run_keeping`] passes its output through while it keeps the lines that
//! close the program's report, [`capture`] returns its output as text.

use crate::Result;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

/// A program's closing lines, and whether it succeeded.
pub(crate) struct Kept {
    pub(crate) lines: Vec<String>,
    pub(crate) result: Result<()>,
}

/// Runs a program with this process's own input and output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("    {}", shown(command));
    let status = command.status().map_err(|error| not_started(command, &error))?;
    verdict(command, status)
}

/// Runs a program, passes its standard output through, and keeps the lines that `keep` accepts.
pub(crate) fn run_keeping(command: &mut Command, keep: fn(&str) -> bool) -> Kept {
    println!("    {}", shown(command));
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Kept { lines: Vec::new(), result: Err(not_started(command, &error)) },
    };
    let mut lines = Vec::new();
    if let Some(output) = child.stdout.take() {
        pass_through(output, |line| {
            if keep(line) {
                lines.push(line.to_owned());
            }
        });
    }
    let result = match child.wait() {
        Ok(status) => verdict(command, status),
        Err(error) => Err(format!("lost `{}`: {error}", shown(command))),
    };
    Kept { lines, result }
}

fn pass_through(output: impl std::io::Read, mut see: impl FnMut(&str)) {
    let mut reader = BufReader::new(output);
    let mut out = std::io::stdout();
    let mut bytes = Vec::new();
    // Bytes, not `lines()`: a program may print text that is not UTF-8.
    while reader.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
        // A reader that went away (`| head`) must not stop the program whose verdict is wanted.
        let _ = out.write_all(&bytes).and_then(|()| out.flush());
        see(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
}

/// Runs a program silently and returns its standard output; a failure carries what it wrote to standard error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    verdict(command, output.status)
        .map(|()| String::new())
        .map_err(|error| if said.is_empty() { error } else { format!("{error}\n{said}") })
}

fn verdict(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", shown(command))) }
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start `{}`: {error}", command.get_program().to_string_lossy())
}

/// The command as one could type it: variables set for it, program, arguments. Paths inside its folder are shortened.
fn shown(command: &Command) -> String {
    let folder = command.get_current_dir().map(|path| format!("{}/", path.display()));
    let mut words: Vec<String> = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())));
        }
    }
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        let word = word.to_string_lossy();
        let short = folder.as_deref().and_then(|folder| word.strip_prefix(folder));
        words.push(quoted(short.unwrap_or(&word)));
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/project/.venv/bin/python");
        command.current_dir("/project").env("RUSTDOCFLAGS", "-D warnings");
        command.args(["-c", "print('x')", "/project/examples/a.py"]);
        assert_eq!(
            shown(&command),
            r"RUSTDOCFLAGS='-D warnings' .venv/bin/python -c 'print('\''x'\'')' examples/a.py"
        );
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let message = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(message.contains("cannot start `no-such-program-here`"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn closing_lines_are_kept_even_when_the_program_fails() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo '== two =='; printf '== three'; exit 3"]);
        let kept = run_keeping(&mut command, |line| line.starts_with("=="));
        assert_eq!(kept.lines, ["== two ==", "== three"]);
        assert!(kept.result.unwrap_err().contains('3'));
    }

    #[cfg(unix)]
    #[test]
    fn a_failed_capture_repeats_what_was_said() {
        let message = capture(Command::new("sh").args(["-c", "echo reason >&2; exit 1"]));
        assert!(message.unwrap_err().ends_with("reason"));
        assert_eq!(capture(Command::new("sh").args(["-c", "echo x"])), Ok("x".to_owned()));
    }
}
