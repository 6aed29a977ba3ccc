//! One file per command.

mod completions;
mod explain;
mod man;
mod schedulers;

use crate::cli::{Cli, Command};
use crate::fail::Failure;

/// Does what was asked for.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Explain(a) => explain::run(a, cli.quiet),
        Command::Schedulers(a) => schedulers::run(a),
        Command::Completions(a) => completions::run(a),
        Command::Man(a) => man::run(a),
    }
}
