//! `seekwell trial PATH`: a switchback experiment on the disk below a path while the machine does
//! its own work.

mod show;
mod simulated;

use super::experiment::{Steps, conducted};
use super::onhost::{bad, hold};
use super::switch::show::{again, program, put_back, quoted};
use crate::cells::cancelling;
use crate::cli::{Cli, Command, Compare, Trial};
use crate::fail::Failure;
use crate::out::{Out, ask, note};
use clap::Parser;
use rustix::process::geteuid;
use seekwell::{Cancel, RunSpec, SchedulerSpec, Substrate};
use seekwell_core::prose::in_prose;
use seekwell_host::block::Device;
use seekwell_host::stop::Signals;
use seekwell_host::switch::Switched;
use seekwell_host::switch::journal::Records;
use seekwell_lab::experiment::{Experiment, Level};
use seekwell_lab::host::{DeviceOf, file};
use seekwell_lab::results::StopRule;
use seekwell_lab::trial::{
    self, Baseline, Bed, Figure, GuardRule, Length, LiveBed, Periods, Timing,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time in which a stopped trial restores the settings and prints its results.
const PATIENCE: Duration = Duration::from_secs(60);

/// The purpose of the lock of a trial's devices. `--stop` finds the trial by it.
const PURPOSE: &str = "seekwell trial";
/// Fewest requests in a period for its 99th percentile: two of them are beyond it.
const P99_REQUESTS: f64 = 200.0;

/// A function that builds the experiment of a trial.
type Builds<'a> = dyn Fn(&Length, &[Figure]) -> Result<(Experiment, RunSpec), Failure> + 'a;

/// The machine of a trial.
struct Site<'a> {
    bed: &'a dyn Bed,
    /// The first notes of the trial, one statement each.
    notes: Vec<String>,
    substrate: Substrate,
    /// Returns the experiment, and the specification of the active scheduler without tunables.
    experiment: &'a Builds<'a>,
    /// Restores the settings.
    restore: &'a dyn Fn(),
}

/// Times and metrics of a trial.
struct Plan {
    /// The metrics that the user named.
    given: Vec<Figure>,
    baseline_s: f64,
    timing: Timing,
}

impl Plan {
    fn new(a: &Trial, treatments: usize) -> Result<Plan, Failure> {
        let baseline_s = a.baseline.unwrap_or((a.time_s / 10.0).clamp(20.0, 300.0));
        Ok(Plan {
            given: trial::figures(&a.metric).map_err(bad)?,
            baseline_s,
            timing: Timing {
                total_s: (a.time_s - baseline_s).max(0.0),
                period_s: a.period,
                washout_s: a.washout,
                treatments,
            },
        })
    }
}

/// Runs the command.
pub fn run(a: &Trial, quiet: bool) -> Result<(), Failure> {
    let given = [
        (a.device.is_some(), "--device"),
        (!a.workload.is_empty(), "--workload"),
    ];
    if let Some((_, option)) = given.iter().find(|g| g.0 && !a.simulated) {
        return Err(bad(format!(
            "{option} needs --simulated: a live trial measures the machine's own work"
        )));
    }
    match &a.path {
        Some(path) if a.stop => stop(&DeviceOf::of(path).map_err(bad)?, quiet),
        Some(path) => live(a, path, quiet),
        None => simulated::run(a, quiet),
    }
}

fn live(a: &Trial, path: &Path, quiet: bool) -> Result<(), Failure> {
    let on = DeviceOf::of(path).map_err(bad)?;
    let offered = on.offered().len();
    let plan = Plan::new(a, schedulers(a)?.map_or(offered, |list| list.len()))?;
    let experiment = |length: &Length, figures: &[Figure]| experiment(a, &on, length, figures);
    let length = check(a, &plan.timing)?;
    ready(a, &on)?;
    experiment(&length, &plan.given)?;
    // A signal between two steps must not end this program before the settings are restored.
    let caught = Signals::catch().map_err(|e| bad(format!("signals cannot be caught: {e}")))?;
    let hold = Hold::new(a, &on, &plan.given, quiet)?;
    let no_percentiles =
        |why: &String| format!("no percentiles can be measured, only means: {why}");
    let mut notes: Vec<String> = hold.why.iter().map(no_percentiles).collect();
    notes.push(format!(
        "{}: measuring the baseline for {} s under {}; no change is made",
        on.names(),
        plan.baseline_s.round(),
        in_prose(&on.in_force())
    ));
    let site = Site {
        bed: &hold.bed,
        notes,
        substrate: Substrate::Host,
        experiment: &experiment,
        restore: &|| hold.restore(),
    };
    let done = switchback(a, &site, plan, quiet);
    let left = hold.end();
    drop(caught);
    if !left.is_empty() {
        return Err(Failure::Early(format!(
            "{}. Try again: sudo {} host restore",
            left.join("; "),
            program()
        )));
    }
    done
}

/// Returns the schedulers that the user names.
fn schedulers(a: &Trial) -> Result<Option<Vec<Level<SchedulerSpec>>>, Failure> {
    let list = a.schedulers.as_deref();
    list.map(|l| file::schedulers(l).map_err(bad)).transpose()
}

/// Checks the options before the baseline, which takes minutes. Returns a preliminary length.
fn check(a: &Trial, timing: &Timing) -> Result<Length, Failure> {
    let length = trial::choose(timing, &[]).map_err(bad)?;
    if a.guard != 0.0 && a.guard <= 1.0 {
        return Err(bad(format!(
            "--guard {}: use a number above 1, which says how many times worse the metric may be, \
             or 0 to disable the guard",
            a.guard
        )));
    }
    if let Some(period_s) = a.period.filter(|p| a.guard_for > p + a.washout) {
        return Err(bad(format!(
            "--guard-for {} s is longer than a period with its washout ({} s), so the guard would \
             never act",
            a.guard_for,
            period_s + a.washout
        )));
    }
    if let Some(dir) = a
        .results
        .as_deref()
        .filter(|d| d.symlink_metadata().is_ok())
    {
        return Err(bad(format!(
            "{}: already exists; a trial cannot be resumed, so name a new folder",
            dir.display()
        )));
    }
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::check(a.report.as_deref())?;
    Out::apart(a.report.as_deref(), output)?;
    Ok(length)
}

/// Measures the baseline and the periods, restores the settings, and prints the results.
fn switchback(a: &Trial, site: &Site<'_>, plan: Plan, quiet: bool) -> Result<(), Failure> {
    let cancel = Cancel::new();
    let told = show::Live { quiet };
    site.notes.iter().for_each(|n| note(quiet, n));
    let bed = site.bed;
    let base = cancelling(&cancel, || trial::baseline(bed, plan.baseline_s, &cancel))?;
    stopped("before the first switch")?;
    let asked = !plan.given.is_empty();
    let figures = figures(plan.given, &base)?;
    let length = trial::choose(&plan.timing, &base.values(&figures[0])).map_err(bad)?;
    let figures = frequent(figures, asked, &base, &length)?;
    let (mut e, original) = (site.experiment)(&length, &figures)?;
    if let Some(why) = bed.over() {
        return Err(Failure::Early(why));
    }
    let kept = bed.set_original(&original).map_err(bad)?;
    if !kept.is_empty() {
        e.about.notes.push(format!(
            "{}: its periods used the settings from before the trial ({}); `apply` does not set them",
            in_prose(&original.scheduler_label()),
            kept.join(", ")
        ));
    }
    for line in show::plan(&e, &length, &figures, &base) {
        note(quiet, &line);
    }
    let rule = (a.guard > 0.0).then_some(GuardRule {
        times: a.guard,
        for_s: a.guard_for.min(length.whole_s()),
    });
    let periods = Periods::new(bed, length, &figures, rule, &base, original, &told);
    let steps = Steps {
        file: None,
        threads: 1,
        substrate: site.substrate,
        noted: None,
        twin: None,
        resumable: false,
        // The old settings return before anything is printed, because a reader may be slow.
        after: Some(site.restore),
    };
    let names: Vec<String> = e.treatments.iter().map(|t| t.label.clone()).collect();
    let done = conducted(&as_compare(a)?, Cow::Owned(e), &periods, &steps, quiet);
    if let Some(c) = periods.carry_over() {
        note(quiet, &show::carry_over(&c, &names, &figures[0]));
    }
    match (done, bed.over()) {
        (Ok(()), Some(why)) => Err(Failure::Early(format!(
            "{why}; the complete periods are stored and shown"
        ))),
        (Err(Failure::Early(what)), Some(why)) => Err(Failure::Early(format!("{why}; {what}"))),
        (done, _) => done,
    }
}

/// The device that is locked for the trial. Dropping it restores the settings.
struct Hold {
    bed: LiveBed,
    why: Option<String>,
    quiet: bool,
    /// Errors of the restoration.
    left: RefCell<Vec<String>>,
    _guard: Option<super::switch::guard::Guard>,
}

impl Hold {
    fn new(a: &Trial, on: &DeviceOf, figures: &[Figure], quiet: bool) -> Result<Hold, Failure> {
        let (switched, guard) = hold(on, PURPOSE, quiet)?;
        let (bed, why) = LiveBed::new(on, switched, figures, !a.no_bpf).map_err(bad)?;
        Ok(Hold {
            bed,
            why,
            quiet,
            left: RefCell::default(),
            _guard: guard,
        })
    }
    /// Restores the settings, once.
    fn restore(&self) {
        let held = self.bed.take_switched();
        let found = held.into_iter().flat_map(Switched::restore);
        self.left.borrow_mut().extend(put_back(found, self.quiet));
    }
    /// Restores the settings, and returns the reasons if this failed.
    fn end(self) -> Vec<String> {
        self.restore();
        self.left.take()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Checks that the schedulers can be set, and asks for a confirmation for the root file system.
fn ready(a: &Trial, on: &DeviceOf) -> Result<(), Failure> {
    let path = on.path().display();
    if on.devices().is_empty() {
        return Err(bad(format!("{path}: no device below it has a scheduler")));
    }
    let active = |d: &Device| d.scheduler.active().map(str::to_owned);
    let mut actives: Vec<_> = on.devices().iter().filter_map(active).collect();
    actives.dedup();
    if actives.len() > 1 {
        return Err(bad(format!(
            "{} have different schedulers ({}): set the same one on all of them first",
            on.names(),
            actives.join(", ")
        )));
    }
    if !on.may_set() {
        return Err(bad(match geteuid().is_root() {
            true => format!("{}: /sys cannot be written here (a container?)", on.names()),
            false => format!("only root may switch {}: {}", on.names(), again()),
        }));
    }
    let names = on.names();
    match &a.confirm {
        Some(told) if *told == names => return Ok(()),
        Some(told) => {
            return Err(bad(format!(
                "the confirmed device \"{told}\" does not match: {path} is on {names}; nothing was \
                 changed"
            )));
        }
        None if !on.carries_root() => return Ok(()),
        None => {}
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(bad(format!(
            "{names} holds the root file system: add --confirm {} to switch it during the trial",
            quoted(&names)
        )));
    }
    let question = format!(
        "{names} holds the root file system. Its scheduler will be switched during the trial and \
         restored at the end. Type {names} to continue: "
    );
    match ask(&question) == names {
        true => Ok(()),
        false => Err(bad(format!(
            "{names} was not confirmed; nothing was changed"
        ))),
    }
}

fn stopped(when: &str) -> Result<(), Failure> {
    seekwell_host::stop::signal().map_or(Ok(()), |signal| {
        Err(Failure::Interrupted {
            signal,
            what: format!("stopped by a signal {when}; the scheduler was not changed"),
        })
    })
}

/// Returns the figures that have enough requests in each period. A percentile needs
/// [`P99_REQUESTS`]; it is left out unless the user named it (`asked`).
///
/// # Errors
/// The user named a percentile that has too few requests.
fn frequent(
    mut figures: Vec<Figure>,
    asked: bool,
    base: &Baseline,
    length: &Length,
) -> Result<Vec<Figure>, Failure> {
    let per_s = |ios: u64| ios as f64 / (base.total.span_ns as f64 / 1e9).max(1e-9);
    let few = |f: &Figure| {
        let n = match f {
            Figure::ReadP99 => per_s(base.total.read.ios) * length.period_s,
            Figure::WriteP99 => per_s(base.total.write.ios) * length.period_s,
            _ => return None,
        };
        (n < P99_REQUESTS).then_some(n)
    };
    if !asked {
        figures.retain(|f| few(f).is_none());
        return Ok(figures);
    }
    let found = figures.iter().find_map(|f| Some((f, few(f)?)));
    found.map_or(Ok(figures.clone()), |(f, n)| {
        Err(bad(format!(
            "--metric {}: a period of {} s has about {n:.0} such requests, but a 99th percentile \
             needs {P99_REQUESTS}: use a longer --period, or the mean; nothing was changed",
            f.name(),
            length.period_s
        )))
    })
}

/// Returns the requested figures, or the usual ones. Without a value in the baseline there is
/// nothing to compare.
fn figures(given: Vec<Figure>, base: &Baseline) -> Result<Vec<Figure>, Failure> {
    if base.total.read.ios + base.total.write.ios == 0 {
        return Err(bad(
            "no request reached the device during the baseline: a trial needs a machine at work; \
             nothing was changed",
        ));
    }
    let all = match given.is_empty() {
        true => Figure::usual(&base.total),
        false => given,
    };
    match all.iter().find(|f| f.value(&base.total).is_none()) {
        None => Ok(all),
        Some(f) => {
            let errors = base.total.errors.join("; ");
            let why = match errors.is_empty() {
                true => {
                    "no value was measured (a percentile needs at least 100 requests in the baseline)"
                }
                false => &errors,
            };
            Err(bad(format!(
                "--metric {}: no value in the baseline: {why}; nothing was changed",
                f.name()
            )))
        }
    }
}

/// Returns the experiment, and the specification of the active scheduler without tunables.
fn experiment(
    a: &Trial,
    on: &DeviceOf,
    length: &Length,
    figures: &[Figure],
) -> Result<(Experiment, RunSpec), Failure> {
    let mut d = trial::design(on.path().to_owned(), length, figures);
    d.design.method.seed = a.seed;
    d.design.method.stop = match a.until_decided {
        true => StopRule::Decided,
        false => StopRule::Fixed,
    };
    if let Some(list) = schedulers(a)? {
        d.design.schedulers = list;
    }
    let mut e = d.experiment(on).map_err(|faults| {
        let lines: Vec<String> = faults.0.iter().map(|f| f.to_string()).collect();
        Failure::Input(lines.join("\n"))
    })?;
    trial::judge(&mut e, figures);
    e.about.description = "a switchback experiment while the machine did its own work".to_owned();
    let plan = &e.cells[0];
    let mut original = plan.specs[plan.cell.reference].clone();
    original.scheduler.name = on.in_force();
    original.scheduler.tunables.clear();
    Ok((e, original))
}

/// Returns the arguments of `compare` that the common steps of an experiment use.
fn as_compare(a: &Trial) -> Result<Compare, Failure> {
    let path = |p: &Path| p.display().to_string();
    let mut words: Vec<String> = ["seekwell", "compare", "--host", "."]
        .map(str::to_owned)
        .to_vec();
    for (option, value) in [
        ("--results", a.results.as_deref().map(path)),
        ("--output", a.output.output.as_deref().map(path)),
    ] {
        if let Some(value) = value {
            words.extend([option.to_owned(), value]);
        }
    }
    for (given, option) in [(a.json, "--json"), (a.details, "--details")] {
        words.extend(given.then(|| option.to_owned()));
    }
    let parsed = Cli::try_parse_from(words).map_err(bad)?;
    match parsed.command {
        Command::Compare(mut c) => {
            c.events.report.clone_from(&a.report);
            Ok(c)
        }
        _ => Err(bad("internal error: not the arguments of compare")),
    }
}

/// Asks the running trial of the device to end, and waits for its end.
fn stop(on: &DeviceOf, quiet: bool) -> Result<(), Failure> {
    let records = Records::default();
    let mut interrupted = BTreeSet::new();
    for d in on.devices() {
        let pid = records.holder(&d.name, PURPOSE);
        if pid.is_some_and(|pid| interrupted.contains(&pid)) {
            continue;
        }
        let sent = records.interrupt(&d.name, PURPOSE);
        let sent =
            sent.map_err(|e| bad(format!("{}: the trial cannot be stopped: {e}", d.name)))?;
        interrupted.extend(sent);
    }
    if interrupted.is_empty() {
        return Err(bad(format!(
            "{}: no trial is running there, or this user may not see it",
            on.names()
        )));
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        // The record of the settings is removed when they are restored.
        let left = records.left();
        let held = |d: &Device| records.is_held(&d.name) || left.contains(&d.name);
        if !on.devices().iter().any(held) {
            note(
                quiet,
                &format!(
                    "the trial ended; the settings of {} are restored",
                    on.names()
                ),
            );
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if !on.devices().iter().any(|d| records.is_held(&d.name)) {
        return Err(Failure::Early(format!(
            "the trial ended, but {} is not restored. Try again: sudo {} host restore",
            on.names(),
            program()
        )));
    }
    Err(Failure::Early(format!(
        "the trial is still running after {} s; its scheduler may still be set",
        PATIENCE.as_secs()
    )))
}
