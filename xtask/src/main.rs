//! The developer's one entry point: `cargo xtask COMMAND`.
//!
//! It prepares the Python environment, builds and installs the extension, runs every check, and enforces the
//! arrows between modules. It is no build script: everything it does is a plain `cargo` or Python command that it
//! prints first. It has no dependencies, so that it compiles in seconds. Start at [`COMMANDS`].

mod argument;
mod bench;
mod check;
mod command;
mod coverage;
mod demo;
mod docs;
mod ecosystem;
mod emulate;
mod environment;
mod expand;
mod extension;
mod fuzz;
mod generate;
mod sanitize;
mod selection;
mod step;
mod supply;
mod tidy;
mod wheel;

use argument::Arguments;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The error of every command: a message for the person at the terminal.
type Result<T, E = String> = std::result::Result<T, E>;

struct Command {
    name: &'static str,
    usage: &'static str,
    run: fn(&Path, Arguments) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "setup",
        usage: "make .venv and install the pinned tools (env PYTHON chooses the interpreter)",
        run: environment::command,
    },
    Command {
        name: "demo",
        usage: "build, install into .venv and train a digit classifier [-- ARGUMENTS OF THE DEMO]",
        run: demo::command,
    },
    Command {
        name: "test",
        usage: "every check, or some of them [--rust] [--python] [--lint] [--loom] [--cpu] [--msrv] [--targets] [--release] \
                [--sanitize [address|address-rust|address-python|thread|miri|loom] [-- OPTIONS OF THESE TESTS]] \
                [--emulate [aarch64|s390x] [-- OPTIONS OF `cargo test`]] \
                [--ecosystem [-- PROGRAMS OF examples/ecosystem]] \
                [--python-version X.Y: in an environment of its own, .venv-X.Y]",
        run: check::command,
    },
    Command {
        name: "wheel",
        usage: "build the wheel into target/wheels/ and print its size [--python-versions 3.10,3.13,...: one for each] [--sdist: the source distribution too]",
        run: wheel::command,
    },
    Command {
        name: "bench",
        usage: "compare with PyTorch [--reference PYTHON] [--only REGEX] [--skip REGEX] [--threads N] [--rounds N] \
                [--repeats N] [--min-time SECONDS] [--rtol X] [--cpu-time] [--json FILE] [--record] \
                [--against auto|FILE] [--tolerance RATIO] [--group-tolerance RATIO]; \
                small calls: `bench small` [--reference PYTHON] [--only REGEX] [--limit RATIO] [--rounds N]; \
                every op: `bench ops` [--reference PYTHON] [--only REGEX] [--rounds N]",
        run: bench::command,
    },
    Command {
        name: "coverage",
        usage: "which rows of the op table are complete [--family LIST] [--op LIST] [--require LIST] [--all] [--dev]; \
                which of PyTorch's names are here: `coverage --names` [--module torch.NAME] [--dev]",
        run: coverage::command,
    },
    Command {
        name: "gen",
        usage: "write the type stubs and docs/ops.md from the op registry [--check: only say if stale]",
        run: generate::command,
    },
    Command {
        name: "docs",
        usage: "build the pages and rustdoc as a site in target/site [--check: run their programs, check their links]",
        run: docs::command,
    },
    Command {
        name: "expand",
        usage: "what #[op] makes of an op, as a readable file: `expand erf`",
        run: expand::command,
    },
    Command {
        name: "tidy",
        usage: "check module arrows, names, file sizes and safety comments",
        run: tidy::command,
    },
    Command {
        name: "fuzz",
        usage: "random calls, programs, files and schedules [--minutes N] [--target calls|programs|parsers|threads] \
                [--seed N] [--keep: findings into the corpus] [--case JSON: this one alone] [--release]",
        run: fuzz::command,
    },
    Command {
        name: "soak",
        usage: "training, loaders, hooks, errors, threads and forks at once, memory measured [--minutes N] [--release]",
        run: fuzz::soak,
    },
    Command {
        name: "supply",
        usage: "the licences of all dependencies, and which are there twice, against deny.toml",
        run: supply::command,
    },
    Command {
        name: "install",
        usage: "build the extension and install it into .venv [--dev]",
        run: extension::command,
    },
];

fn main() -> ExitCode {
    match dispatch(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(mut words: Vec<String>) -> Result<()> {
    if words.is_empty() || matches!(words[0].as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return Ok(());
    }
    let name = words.remove(0);
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(format!("there is no command `{name}`\n\n{}", help()));
    };
    if words.first().is_some_and(|word| matches!(word.as_str(), "--help" | "-h")) {
        println!("cargo xtask {name}: {}", command.usage);
        return Ok(());
    }
    (command.run)(&root(), Arguments::new(words))
}

fn help() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND\n\n");
    for command in COMMANDS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:8} {}", command.name, command.usage);
    }
    text
}

/// The workspace folder. Cargo names the crate's folder at run time; the compiled-in one serves a binary run by hand.
fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| manifest.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_is_an_error_that_lists_the_commands() {
        let message = dispatch(vec!["tset".to_owned()]).unwrap_err();
        assert!(message.contains("`tset`") && message.contains("wheel"), "{message}");
    }

    #[test]
    fn unknown_argument_of_a_command_is_an_error() {
        let message = dispatch(vec!["tidy".to_owned(), "--fast".to_owned()]).unwrap_err();
        assert!(message.contains("--fast"), "{message}");
    }

    #[test]
    fn root_holds_the_workspace_manifest() {
        assert!(root().join("Cargo.toml").is_file() && root().join("xtask").is_dir());
    }
}
