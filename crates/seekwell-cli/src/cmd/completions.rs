//! `seekwell completions SHELL`: prints a completion script.

use crate::cli::{Cli, Completions};
use crate::fail::Failure;
use crate::out::Out;
use clap::CommandFactory;

/// Prints the completion script of the shell.
pub fn run(a: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut Cli::command(), "seekwell", &mut script);
    let mut out = Out::open(None)?;
    out.text(&String::from_utf8_lossy(&script))?;
    out.done()
}
