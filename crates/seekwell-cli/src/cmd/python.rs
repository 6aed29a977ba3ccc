//! Runs commands of the Python package `seekwell-lab`. If the package is missing, prints how to
//! install it.

use crate::cli::Handed;
use crate::fail::Failure;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The environment variable that names the Python interpreter. The default is `python3` in PATH.
const WHICH: &str = "SEEKWELL_PYTHON";

/// Python code whose exit code is 0 if the package is installed.
const THERE: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('seekwell._seekwell') is None)";

/// Returns the path of the Python interpreter: the value of [`WHICH`], or `python3`.
fn interpreter() -> OsString {
    let python = std::env::var_os(WHICH).filter(|p| !p.is_empty());
    python.unwrap_or_else(|| OsString::from("python3"))
}

/// Returns whether the package is installed for the interpreter.
fn there(python: &OsString) -> std::io::Result<bool> {
    let asked = Command::new(python)
        // The option -P ignores modules in the current directory.
        .args(["-P", "-c", THERE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.map(|s| s.success())
}

/// Returns how to install the package, or `None` if it is installed.
pub fn lacking() -> Option<String> {
    let package = "pip install ./python in the source tree";
    match there(&interpreter()) {
        Err(_) => Some(format!("install Python 3.11 or later, then {package}")),
        Ok(false) => Some(package.to_owned()),
        Ok(true) => None,
    }
}

/// Replaces this process with `python3 -m seekwell COMMAND`, so that its output, exit code and
/// signals are those of the command.
pub fn run(command: &str, a: &Handed) -> Result<(), Failure> {
    let python = interpreter();
    let name = python.to_string_lossy();
    match there(&python) {
        Err(e) => Err(Failure::input(format!(
            "`seekwell {command}` is a command of the Python package seekwell-lab, and {name} cannot \
             be run ({e}): install Python 3.11 or later, then run `pip install ./python` in the \
             source tree. To use another interpreter, set {WHICH} to its path"
        ))),
        Ok(false) => Err(Failure::input(format!(
            "`seekwell {command}` is a command of the Python package seekwell-lab, and {name} does \
             not have this package: run `pip install ./python` in the source tree (Python 3.11 or \
             later). To use another interpreter, set {WHICH} to its path"
        ))),
        Ok(true) => {
            let failed = Command::new(&python)
                .args(["-P", "-m", "seekwell", command])
                .args(&a.arguments)
                .exec();
            Err(Failure::input(format!("{name}: {failed}")))
        }
    }
}
