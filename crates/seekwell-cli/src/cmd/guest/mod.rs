//! `seekwell guest`: a real kernel on virtual time over a modelled disk.

mod check;
mod diff;
mod figures;
pub mod inside;
mod requests;
mod run;
pub mod substrate;
mod work;

use crate::cli::{Guest, GuestAction, GuestBuild, GuestList};
use crate::fail::Failure;
use crate::guests::failed;
use crate::out::{Out, columns, note};
use seekwell_guest::{Build, FileSystem, Kernel, cache_dir};
use seekwell_report::style::NAME;
use seekwell_report::table::{Align, Table, painted};
use serde_json::json;

/// Runs the command.
pub fn run(a: &Guest, quiet: bool) -> Result<(), Failure> {
    match &a.action {
        GuestAction::Build(a) => build(a, quiet),
        GuestAction::List(a) => list(a),
        GuestAction::Run(a) => run::run(a, quiet),
        GuestAction::Diff(a) => diff::run(a, quiet),
        GuestAction::Check(a) => check::run(a),
        GuestAction::Inside => inside::run(),
    }
}

fn build(a: &GuestBuild, quiet: bool) -> Result<(), Failure> {
    let parsed: Result<Vec<FileSystem>, _> = a.fs.iter().map(|f| f.parse()).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let build = Build {
        name: a.name.clone(),
        source: a.source.clone(),
        file_systems: parsed.map_err(failed)?,
        config: a.config.clone(),
        jobs: a.jobs.unwrap_or(cores),
    };
    let cache = cache_dir().map_err(failed)?;
    let began = std::time::Instant::now();
    let kernel = build.execute(&cache, &mut |step| note(quiet, step));
    let kernel = kernel.map_err(failed)?;
    let mut out = Out::open(None)?;
    out.text(&format!(
        "kernel \"{}\" is ready after {:.0} s: {}\nTry: seekwell guest run --kernel {} -- sh -c 'echo hello > a; sync'\n",
        kernel.name,
        began.elapsed().as_secs_f64(),
        kernel.dir.display(),
        kernel.name
    ))?;
    out.done()
}

fn list(a: &GuestList) -> Result<(), Failure> {
    let cache = cache_dir().map_err(failed)?;
    let kernels = Kernel::list(&cache);
    let field = |k: &Kernel, key: &str| {
        let about = k.about();
        let line = about.lines().find_map(|l| l.strip_prefix(key));
        line.map_or("-", str::trim).to_owned()
    };
    let mut out = Out::open(None)?;
    if a.json {
        let rows: Vec<_> = kernels
            .iter()
            .map(|k| {
                json!({
                    "name": k.name, "version": field(k, "version "),
                    "file_systems": field(k, "file-systems "), "source": field(k, "source "),
                })
            })
            .collect();
        out.json(&json!({ "schema": 1, "command": "guest list", "kernels": rows }))?;
        return out.done();
    }
    if kernels.is_empty() {
        out.text("no kernel is in the cache; build one with: seekwell guest build\n")?;
        return out.done();
    }
    let mut t = Table::new(&[
        ("KERNEL", Align::Left),
        ("VERSION", Align::Left),
        ("FILE SYSTEMS", Align::Left),
        ("SOURCE", Align::Left),
    ]);
    for k in &kernels {
        t.row(vec![
            painted(k.name.clone(), NAME),
            field(k, "version ").into(),
            field(k, "file-systems ").into(),
            field(k, "source ").into(),
        ]);
    }
    out.text(&t.render_within(0, columns()))?;
    out.done()
}
