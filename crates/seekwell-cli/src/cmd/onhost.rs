//! `seekwell compare --host DIR`, and experiment files with a table `[host]`: sets the kernel's
//! schedulers, measures real programs under each, and restores the settings.

use super::experiment::{Beside, Noted, Steps, conducted};
use super::switch::{guard::Guard, show};
use super::withsim;
use crate::cells::cancelling;
use crate::cli::Compare;
use crate::fail::Failure;
use crate::out::{Out, ask, note, width};
use seekwell::{Cancel, Substrate};
use seekwell_core::once::twice;
use seekwell_core::prose::in_prose;
use seekwell_host::left::{About, Notes};
use seekwell_host::stop::Signals;
use seekwell_host::switch::Switched;
use seekwell_host::switch::command::Held;
use seekwell_host::switch::journal::Records;
use seekwell_host::switch::names;
use seekwell_lab::analysis::Analysis;
use seekwell_lab::conduct::{Job, NoRun, Runner, Trial};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::host::{Bench, DeviceOf, HostDesign, file, words};
use seekwell_lab::results::{Method, RunKey, StopRule};
use seekwell_report::table::wrap;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Instant;

/// Default workloads: a program that most machines have, and a built-in script.
const USUAL: &[&str] = &["sqlite3", "fs-mark:files=200"];

/// Minimum and maximum number of blocks, for an experiment from the command line without --repeats.
const REPEATS: (u32, u32) = (5, 20);

pub fn bad(e: impl std::fmt::Display) -> Failure {
    Failure::input(e.to_string())
}

/// Sets `[SCHEDULER.]NAME=VALUE` for the named scheduler, or else for all that have the tunable. If
/// no scheduler is known to have the tunable, sets it for all.
fn tunable(text: &str, d: &mut HostDesign) -> Result<(), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write NAME=VALUE".to_owned());
    };
    if d.design.schedulers.is_empty() {
        return Err("name the schedulers, too (--schedulers mq-deadline,bfq)".to_owned());
    }
    let (of, name) = match name.trim().split_once('.') {
        Some((of, name)) => (Some(of), name),
        None => (None, name.trim()),
    };
    let owners = names::owners(name);
    let mut taken = false;
    for s in &mut d.design.schedulers {
        let spec = &mut s.spec;
        let has = || owners.is_empty() || owners.contains(&&*spec.name);
        if !of.map_or_else(has, |of| spec.name == of) {
            continue;
        }
        taken = true;
        if let Some(before) = spec
            .tunables
            .insert(name.to_owned(), value.trim().to_owned())
        {
            let (first, second) = (format!("{name}={before}"), format!("{name}={value}"));
            return Err(format!("{}: {}", spec.name, twice(name, &first, &second)));
        }
    }
    match (taken, of) {
        (true, _) => Ok(()),
        (false, Some(of)) => Err(format!("{of} is not among the schedulers to run")),
        (false, None) => Err(format!(
            "none of the schedulers to run has this tunable; it is a tunable of {}",
            owners.join(" and ")
        )),
    }
}

/// Returns the design that the command line describes.
fn asked(a: &Compare, dir: &Path) -> Result<HostDesign, Failure> {
    let mut d = HostDesign::new(dir.to_owned());
    d.device.clone_from(&a.confirm);
    d.design.name = "on this machine".to_owned();
    d.design.method = Method {
        seed: a.bench.seed,
        repeats_min: REPEATS.0,
        repeats_max: REPEATS.1,
        budget_s: a.budget.map(|s| s as u64),
        ..Method::default()
    };
    if let Some(n) = a.bench.seeds {
        d.design.method.stop = StopRule::Fixed;
        (d.design.method.repeats_min, d.design.method.repeats_max) = (n, n);
    }
    if let Some(list) = &a.bench.schedulers {
        d.design.schedulers = file::schedulers(list).map_err(bad)?;
    }
    for t in &a.bench.tunable {
        tunable(t, &mut d).map_err(|e| bad(format!("--tunable {t}: {e}")))?;
    }
    let given: Vec<&str> = match a.workload.is_empty() {
        true => USUAL.to_vec(),
        false => a.workload.iter().map(String::as_str).collect(),
    };
    d.work = works(&given, &a.beside)?;
    if a.workload.is_empty() {
        // Of the default workloads, those that are installed.
        let all = std::mem::take(&mut d.work);
        d.work = all.into_iter().filter(words::HostWork::is_here).collect();
    }
    judged_by(&a.bench.metric, &mut d.work)?;
    d.text = d.to_toml();
    Ok(d)
}

/// Parses requested workloads, each with the workloads that run alongside.
pub fn works(given: &[&str], beside: &[String]) -> Result<Vec<words::HostWork>, Failure> {
    let mut all = Vec::new();
    for text in given {
        let single = text.contains([':', '/', ' ']) || text.ends_with(".toml");
        let parts: Vec<&str> = match single {
            true => vec![text],
            false => text
                .split(',')
                .map(str::trim)
                .filter(|s| !s.is_empty())
                .collect(),
        };
        for part in parts {
            let mut w = words::work(part, &BTreeMap::new()).map_err(|e| Failure::words("", &e))?;
            for b in beside {
                w = w.with(b).map_err(|e| Failure::words("--beside ", &e))?;
            }
            all.push(w);
        }
    }
    Ok(all)
}

/// Makes the first of these metrics that a workload reports its only deciding metric.
pub fn judged_by(metrics: &[String], work: &mut [words::HostWork]) -> Result<(), Failure> {
    let mut refused = None;
    let mut taken = false;
    for metric in metrics.iter().rev() {
        for w in &mut *work {
            match w.judged_by(metric) {
                Ok(()) => taken = true,
                Err(e) => refused = Some(Failure::words(&format!("--metric {metric}: "), &e)),
            }
        }
    }
    refused.filter(|_| !taken).map_or(Ok(()), Err)
}

/// Runs an experiment from the command line.
pub fn command_line(a: &Compare, dir: &Path, quiet: bool) -> Result<(), Failure> {
    let design = asked(a, dir)?;
    run(a, &design, None, quiet)
}

/// Runs an experiment file.
pub fn from_file(a: &Compare, text: &str, path: &Path, quiet: bool) -> Result<(), Failure> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty());
    let read = file::read(text, dir.unwrap_or(Path::new(".")));
    let mut design = read.map_err(|faults| {
        let lines: Vec<String> = faults
            .0
            .iter()
            .map(|f| format!("{}: {f}", path.display()))
            .collect();
        Failure::Input(lines.join("\n"))
    })?;
    if a.confirm.is_some() {
        design.device.clone_from(&a.confirm);
    }
    run(a, &design, Some(path), quiet)
}

/// Returns the commands that would run, with their user, in the order of the scripts.
fn commands(design: &HostDesign) -> Vec<String> {
    let root = rustix::process::geteuid().is_root();
    let mut all = Vec::new();
    for c in design.work.iter().flat_map(words::HostWork::commands) {
        // A background program is listed once, because it is the same for all workloads.
        if !all.contains(&c) {
            all.push(c);
        }
    }
    let mut lines = Vec::new();
    for c in all {
        let who = match (&c.user, root) {
            (Some(user), true) => user,
            (None, true) => "root",
            (_, false) => "you",
        };
        let with: Vec<String> = c
            .params
            .iter()
            .map(|(k, v)| format!("{k}={}", show::quoted(v)))
            .collect();
        let with = match with.is_empty() {
            true => String::new(),
            false => format!(", with {}", with.join(" ")),
        };
        lines.push(format!("{} would run as {who}{with}:", c.name));
        for (phase, script) in &c.scripts {
            let mut word = *phase;
            for line in script.lines() {
                lines.push(format!("  {word:<8}  {line}"));
                word = "";
            }
        }
    }
    lines
}

/// Asks once for a confirmation, because programs will write files and the device's scheduler will
/// change.
fn confirmed(design: &HostDesign, on: &DeviceOf) -> Result<(), Failure> {
    let names = on.names();
    let what = match names.as_str() {
        "" => on.path().display().to_string(),
        names => names.to_owned(),
    };
    match &design.device {
        Some(told) if *told == what || Some(told.as_str()) == on.path().to_str() => return Ok(()),
        Some(told) => {
            return Err(bad(format!(
                "the confirmed device \"{told}\" does not match: {} is on {what}; nothing was \
                 changed",
                on.path().display()
            )));
        }
        None => {}
    }
    let line = format!("--confirm {}", show::quoted(&what));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(bad(format!(
            "{}: programs will write temporary files there{}. Add {line} to confirm; --dry-run \
             shows the commands that would run",
            on.path().display(),
            match on.may_set() {
                true => format!(", and the scheduler of {what} will be switched until the end"),
                false => String::new(),
            }
        )));
    }
    let mut question = String::new();
    for line in commands(design) {
        question += &line;
        question.push('\n');
    }
    question += &format!(
        "Programs will write temporary files in {}.{}{} Type {what} to continue: ",
        on.path().display(),
        match on.may_set() {
            true => format!(
                " The scheduler of {what} is switched during the runs and restored at the end."
            ),
            false => String::new(),
        },
        match on.carries_root() {
            true => " It holds the root file system.",
            false => "",
        }
    );
    match ask(&question) == what {
        true => Ok(()),
        false => Err(bad(format!(
            "{what} was not confirmed; nothing was changed"
        ))),
    }
}

/// Returns the time of one block of all cells in seconds. It runs each workload once, so that a
/// faulty one fails at the start and not after hours.
fn tried(e: &Experiment, bench: &Bench, cancel: &Cancel) -> Result<f64, Failure> {
    let mut seconds = 0.0;
    for (i, plan) in e.cells.iter().enumerate() {
        let reference = plan.cell.reference.min(plan.specs.len() - 1);
        let job = Job {
            key: RunKey {
                cell: i,
                ..RunKey::default()
            },
            treatment: reference,
            place: 0,
            spec: plan.specs[reference].clone(),
        };
        let began = Instant::now();
        match bench.run(&job, cancel, &mut |_| {}) {
            Ok(_) => seconds += began.elapsed().as_secs_f64() * plan.specs.len() as f64,
            Err(NoRun::Failed(why)) => return Err(bad(format!("{}: {why}", plan.cell.workload))),
            // After a signal, the code below reports it.
            Err(NoRun::Cut(why, _)) => match bench.over() {
                Some(_) => return Err(Failure::Early(why)),
                None => return Ok(seconds),
            },
        }
    }
    Ok(seconds)
}

/// Locks the devices and records their settings, after the settings of killed runs are restored.
/// The guard process restores them if this process is killed. Signals must be caught.
pub fn hold(on: &DeviceOf, words: &str, quiet: bool) -> Result<(Switched, Option<Guard>), Failure> {
    let records = Records::default();
    // The guard process must inherit blocked signals, so signals are blocked while it is started.
    // Afterwards this process catches them again.
    let held = Held::new().map_err(|e| bad(format!("signals cannot be blocked: {e}")))?;
    for found in records.restore(on.tree(), None) {
        note(quiet, &show::found(&found?));
    }
    let guard = Guard::start()
        .inspect_err(|e| note(quiet, &format!("cannot start a guardian process: {e}")))
        .ok();
    let devices: Vec<_> = on.devices().iter().collect();
    let switched = Switched::hold(on.tree(), &records, &devices, words)?;
    drop(held);
    Ok((switched, guard))
}

fn run(a: &Compare, design: &HostDesign, named: Option<&Path>, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let on = DeviceOf::find(&design.path).map_err(bad)?;
    let e = design.experiment(&on).map_err(|faults| {
        let lines: Vec<String> = faults.0.iter().map(|f| f.to_string()).collect();
        Failure::Input(lines.join("\n"))
    })?;
    if !on.may_set() && !on.devices().is_empty() {
        let (why, more) = match rustix::process::geteuid().is_root() {
            true => (
                "/sys cannot be written here (a container?)",
                "run the command on the host".to_owned(),
            ),
            false => ("not root", show::again()),
        };
        note(
            quiet,
            &format!(
                "{why}: no scheduler is set, and the current one is measured ({}). To compare \
                 schedulers: {more}",
                in_prose(&on.in_force()),
            ),
        );
    }
    for line in &e.about.notes {
        note(quiet, line);
    }
    let with_sim = a.with_sim.as_deref();
    let prepared = with_sim.map(|device| withsim::prepare(&e, &on, device));
    let prepared = RefCell::new(prepared.transpose()?);
    if a.dry_run {
        let mut out = Out::open(output)?;
        for line in super::experiment::planned(&e, Trial::default(), 1) {
            out.text(&wrap(&line, 2, width()))?;
        }
        for line in commands(design) {
            out.line(&line)?;
        }
        return out.done();
    }
    confirmed(design, &on)?;
    let tree = on.tree().clone();
    // Signals are caught until everything is restored, because a signal between two steps must not
    // end this program.
    let caught = Signals::catch().map_err(|e| bad(format!("signals cannot be caught: {e}")))?;
    let (switched, guard) = match on.may_set() {
        false => (None, None),
        true => {
            let (switched, guard) = hold(&on, &e.about.name, quiet)?;
            (Some(switched), guard)
        }
    };
    // The note is written before the first directory is created, so that `host restore` always
    // finds it.
    let about = About {
        experiment: e.about.name.clone(),
        dir: on.path().to_owned(),
        mount: on.mount_point().to_owned(),
        ..About::default()
    };
    let root = rustix::process::geteuid().is_root();
    let noted = (root || switched.is_some())
        .then(|| Notes::new(&tree).begin(&tree, &about))
        .transpose()
        .inspect_err(|e| {
            note(
                quiet,
                &format!("cannot write the record for `host restore`: {e}"),
            )
        })
        .ok()
        .flatten()
        .map(RefCell::new);
    let mark = std::process::id().to_string();
    let bench = Bench::new(on.clone(), switched, design.settle_s, &mark);
    let left = RefCell::new(Vec::new());
    // Restores the schedulers after the runs, because later steps do not need the disk.
    let put_back = || {
        let held = bench.take_switched();
        let found = held.into_iter().flat_map(Switched::restore);
        left.borrow_mut().extend(show::put_back(found, quiet));
    };
    let shared = noted.as_ref().map(|note| Noted {
        about: &about,
        note,
    });
    let twin = |real: &Analysis| {
        put_back();
        let prepared = prepared.take();
        prepared.map(|p| withsim::run(p, real, quiet)).transpose()
    };
    let done = measured(a, &e, &bench, (named, shared.as_ref()), &twin, quiet);
    let over = bench.over();
    put_back();
    for path in noted.map(|n| n.into_inner().end()).unwrap_or_default() {
        note(
            false,
            &format!(
                "{}: could not be removed. When its file system is writable again, run: sudo {} \
                 host restore",
                path.display(),
                show::program()
            ),
        );
    }
    let left = left.take();
    drop(guard);
    drop(caught);
    if !left.is_empty() {
        return Err(Failure::Early(format!(
            "{}. Try again: sudo {} host restore",
            left.join("; "),
            show::program()
        )));
    }
    match (done, over) {
        (Err(Failure::Early(what)), Some(why)) => Err(Failure::Early(format!("{why}; {what}"))),
        (Ok(()), Some(why)) => Err(Failure::Early(format!(
            "{why}; the completed runs are stored and shown"
        ))),
        (done, _) => done,
    }
}

fn measured(
    a: &Compare,
    e: &Experiment,
    bench: &Bench,
    (named, noted): (Option<&Path>, Option<&Noted<'_>>),
    twin: &Beside<'_>,
    quiet: bool,
) -> Result<(), Failure> {
    let cancel = Cancel::new();
    note(
        quiet,
        "running each workload once, to estimate the total time",
    );
    let block_s = cancelling(&cancel, || tried(e, bench, &cancel))??;
    if let Some(signal) = seekwell_host::stop::signal().filter(|_| cancel.is_set()) {
        return Err(Failure::Interrupted {
            signal,
            what: "stopped by a signal before the first measured run".to_owned(),
        });
    }
    if !quiet {
        let block = Trial {
            about_s: Some(block_s),
            most_s: None,
        };
        let lines = super::experiment::planned(e, block, 1);
        lines.iter().for_each(|l| note(quiet, l));
    }
    conducted(
        a,
        Cow::Borrowed(e),
        bench,
        &Steps {
            file: named,
            threads: 1,
            substrate: Substrate::Host,
            noted,
            twin: Some(twin),
            resumable: true,
            after: None,
        },
        quiet,
    )
}
