//! Commands of the Python package `seekwell-lab`: finds the package and runs it, or says how to get
//! it.

use crate::cli::Handed;
use crate::fail::Failure;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The variable that names the interpreter; by default the one in PATH.
const WHICH: &str = "SEEKWELL_PYTHON";

/// Its exit code shows whether the package is installed.
const THERE: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('seekwell._seekwell') is None)";

/// The interpreter.
fn interpreter() -> OsString {
    let python = std::env::var_os(WHICH).filter(|p| !p.is_empty());
    python.unwrap_or_else(|| OsString::from("python3"))
}

/// Whether the interpreter has the package.
fn there(python: &OsString) -> std::io::Result<bool> {
    let asked = Command::new(python)
        // Ignores modules in the current directory.
        .args(["-P", "-c", THERE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.map(|s| s.success())
}

/// How to get the package; `None` if it is installed.
pub fn lacking() -> Option<String> {
    let package = "pip install ./python in the source tree";
    match there(&interpreter()) {
        Err(_) => Some(format!("install Python 3.11 or later, then {package}")),
        Ok(false) => Some(package.to_owned()),
        Ok(true) => None,
    }
}

/// Replaces this process by `python3 -m seekwell COMMAND`, with its output, exit code and signals.
pub fn run(command: &str, a: &Handed) -> Result<(), Failure> {
    let python = interpreter();
    let name = python.to_string_lossy();
    match there(&python) {
        Err(e) => Err(Failure::input(format!(
            "`seekwell {command}` is a command of the Python package seekwell-lab, and {name} cannot \
             be run ({e}): install Python 3.11 or later, then `pip install ./python` in the source \
             tree; {WHICH} names another interpreter"
        ))),
        Ok(false) => Err(Failure::input(format!(
            "`seekwell {command}` is a command of the Python package seekwell-lab, which {name} does \
             not have: `pip install ./python` in the source tree (Python 3.11 or later); {WHICH} names \
             another interpreter"
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
