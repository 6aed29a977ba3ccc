//! `seekwell`: finds the best I/O scheduler, with its settings, for a device and a workload.

mod cells;
mod cli;
mod cmd;
mod events;
mod fail;
mod guests;
mod harmless;
mod json;
mod lab;
mod memory;
mod out;
mod progress;
mod runs;
mod setups;
mod throttles;
mod traces;
mod windows;

use clap::Parser;
use std::process::ExitCode;

/// Huge pages, because the tables of a modelled machine are large and accessed at random.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: seekwell_core::large::LargePages = seekwell_core::large::LargePages;

fn main() -> ExitCode {
    // A guest starts this program again as its launcher and as its first process.
    if let Some(code) = seekwell_guest::enter() {
        return code.into();
    }
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return fail::usage(&e),
    };
    cli.color.apply();
    match cmd::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => e.report(),
    }
}
