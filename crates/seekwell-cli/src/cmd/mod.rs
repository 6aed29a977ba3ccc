//! One file per command.

mod apply;
mod arena;
mod calibrate;
mod check_worlds;
mod compare;
mod completions;
mod convert;
mod defaults;
mod demo;
mod devices;
mod diff;
mod doctor;
mod experiment;
mod explain;
mod export;
mod fidelity;
mod formats;
mod guest;
mod host;
mod import;
mod machines;
mod man;
mod new;
mod new_part;
mod onhost;
mod predict;
mod python;
mod recommend;
mod record;
mod replay;
mod report;
mod reproduce;
pub(crate) mod results;
mod run;
mod schedulers;
mod serve;
mod switch;
mod trace;
mod trial;
mod verify_kernel;
mod withsim;
mod workloads;

use crate::cli::{Cli, Command};
use crate::fail::Failure;

/// Runs the requested command.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Explain(a) => explain::run(a, cli.quiet),
        Command::Compare(a) => compare::run(a, cli.quiet),
        Command::Calibrate(a) => calibrate::run(a, cli.quiet),
        Command::Run(a) => run::run(a, cli.quiet),
        Command::Replay(a) => replay::run(a, cli.quiet),
        Command::Demo(a) => demo::run(a, cli.quiet),
        Command::VerifyKernel(a) => verify_kernel::run(a, cli.quiet),
        Command::CheckWorlds(a) => check_worlds::run(a, cli.quiet),
        Command::Guest(a) => guest::run(a, cli.quiet),
        Command::Serve(a) => serve::run(a, cli.quiet),
        Command::Report(a) => report::report(a, cli.quiet),
        Command::Recommend(a) => recommend::run(a, cli.quiet),
        Command::Reproduce(a) => reproduce::run(a, cli.quiet),
        Command::Results(a) => results::run(a),
        Command::Export(a) => export::run(a, cli.quiet),
        Command::Schedulers(a) => schedulers::run(a),
        Command::Workloads(a) => workloads::run(a),
        Command::Machines(a) => machines::run(a),
        Command::Devices(a) => devices::run(a, cli.quiet),
        Command::Defaults(a) => defaults::run(a, cli.quiet),
        Command::Formats(a) => formats::run(a),
        Command::Convert(a) => convert::run(a, cli.quiet),
        Command::Host(a) => host::run(a, cli.quiet),
        Command::Switch(a) => switch::run(a, cli.quiet),
        Command::Apply(a) => apply::run(a, cli.quiet),
        Command::Predict(a) => predict::run(a, cli.quiet),
        Command::Trial(a) => trial::run(a, cli.quiet),
        Command::Record(a) => record::run(a, cli.quiet),
        Command::Import(a) => import::run(a, cli.quiet),
        Command::Doctor(a) => doctor::run(a),
        Command::Diff(a) => diff::run(a, cli.quiet),
        Command::Completions(a) => completions::run(a),
        Command::Man(a) => man::run(a),
        Command::New(a) => new::run(a, cli.quiet),
        Command::Arena(a) => arena::run(a, cli.quiet),
        Command::Tune(a) => python::run("tune", a),
        Command::Sweep(a) => python::run("sweep", a),
    }
}
