//! `seekwell trial PATH`: a switchback experiment on the disk below a path while the machine does
//! its own work.

mod show;

use super::experiment::{Steps, conducted};
use super::onhost::{bad, hold};
use super::switch::show::{again, program, put_back, quoted};
use crate::cells::cancelling;
use crate::cli::{Cli, Command, Compare, Trial};
use crate::fail::Failure;
use crate::out::{ask, note};
use clap::Parser;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use seekwell::{Cancel, Substrate};
use seekwell_core::prose::in_prose;
use seekwell_host::switch::Switched;
use seekwell_host::switch::journal::Records;
use seekwell_lab::experiment::Experiment;
use seekwell_lab::host::{DeviceOf, file};
use seekwell_lab::results::StopRule;
use seekwell_lab::trial::{self, Baseline, Figure, GuardRule, Length, LiveBed, Periods, Timing};
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time in which a stopped trial restores the settings and prints its results.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command.
pub fn run(a: &Trial, quiet: bool) -> Result<(), Failure> {
    let on = DeviceOf::of(&a.path).map_err(bad)?;
    if a.stop {
        return stop(&on, quiet);
    }
    let given = trial::figures(&a.metric).map_err(bad)?;
    ready(a, &on)?;
    let hold = Hold::new(a, &on, &given, quiet)?;
    let bed = &hold.bed;
    if let Some(why) = &hold.why {
        note(
            quiet,
            &format!("no percentiles can be measured, only means: {why}"),
        );
    }
    let cancel = Cancel::new();
    let told = show::Live { quiet };
    let baseline_s = a.baseline.unwrap_or((a.time_s / 10.0).clamp(20.0, 300.0));
    let incumbent = on.in_force();
    note(
        quiet,
        &format!(
            "{}: measuring the baseline for {} s under {}; no change is made",
            on.names(),
            baseline_s.round(),
            in_prose(&incumbent)
        ),
    );
    let base = cancelling(&cancel, || trial::baseline(bed, baseline_s, &cancel, &told))?;
    stopped(&cancel, "before the first switch")?;
    let figures = figures(given, &base)?;
    let treatments = match &a.schedulers {
        Some(list) => file::schedulers(list).map_err(bad)?.len(),
        None => on.offered().len(),
    };
    let timing = Timing {
        total_s: (a.time_s - baseline_s).max(0.0),
        period_s: a.period,
        washout_s: a.washout,
        treatments,
    };
    let length = trial::choose(&timing, &base.values(&figures[0])).map_err(bad)?;
    let (e, incumbent) = experiment(a, &on, &length, &figures)?;
    for line in show::plan(&e, &length, &figures, &base) {
        note(quiet, &line);
    }
    let rule = (a.guard > 0.0).then_some(GuardRule {
        times: a.guard,
        for_s: a.guard_for,
    });
    let periods = Periods::new(bed, length, &figures, rule, &base, incumbent, &told);
    let steps = Steps {
        file: None,
        threads: 1,
        substrate: Substrate::Host,
        noted: None,
        twin: None,
        resumable: false,
        // The old settings return before anything is printed, because a reader may be slow.
        after: Some(&|| hold.restore()),
    };
    let names: Vec<String> = e.treatments.iter().map(|t| t.label.clone()).collect();
    let done = conducted(&as_compare(a)?, Cow::Owned(e), &periods, &steps, quiet);
    if let Some(c) = periods.carry_over() {
        note(quiet, &show::carry_over(&c, &names, &figures[0]));
    }
    done
}

/// The device that is locked for the trial. Dropping it restores the settings.
struct Hold {
    bed: LiveBed,
    why: Option<String>,
    quiet: bool,
    _guard: Option<super::switch::guard::Guard>,
}

impl Hold {
    fn new(a: &Trial, on: &DeviceOf, figures: &[Figure], quiet: bool) -> Result<Hold, Failure> {
        let (switched, guard) = hold(on, "trial", quiet)?;
        let (bed, why) = LiveBed::new(on, switched, figures, !a.no_bpf).map_err(bad)?;
        Ok(Hold {
            bed,
            why,
            quiet,
            _guard: guard,
        })
    }
}

impl Hold {
    /// Restores the settings, once.
    fn restore(&self) {
        let held = self.bed.take_switched();
        let found = held.into_iter().flat_map(Switched::restore);
        for line in put_back(found, self.quiet) {
            note(
                false,
                &format!("{line}. Try again: sudo {} host restore", program()),
            );
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Checks that the schedulers can be set, and asks for a confirmation for the root file system.
fn ready(a: &Trial, on: &DeviceOf) -> Result<(), Failure> {
    let path = a.path.display();
    if on.devices().is_empty() {
        return Err(bad(format!("{path}: no device below it has a scheduler")));
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

fn stopped(cancel: &Cancel, when: &str) -> Result<(), Failure> {
    let signal = seekwell_host::stop::signal().filter(|_| cancel.is_set());
    signal.map_or(Ok(()), |signal| {
        Err(Failure::Interrupted {
            signal,
            what: format!("stopped by a signal {when}; the scheduler was not changed"),
        })
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
                true => "no value was measured (a percentile needs 100 requests)",
                false => &errors,
            };
            Err(bad(format!(
                "--metric {}: no value in the baseline: {why}; nothing was changed",
                f.name()
            )))
        }
    }
}

/// Returns the experiment and the specification of the incumbent.
fn experiment(
    a: &Trial,
    on: &DeviceOf,
    length: &Length,
    figures: &[Figure],
) -> Result<(Experiment, seekwell::RunSpec), Failure> {
    let mut d = trial::design(on.path().to_owned(), length, figures);
    d.design.method.seed = a.seed;
    d.design.method.stop = match a.until_decided {
        true => StopRule::Decided,
        false => StopRule::Fixed,
    };
    if let Some(list) = &a.schedulers {
        d.design.schedulers = file::schedulers(list).map_err(bad)?;
    }
    let mut e = d.experiment(on).map_err(|faults| {
        let lines: Vec<String> = faults.0.iter().map(|f| f.to_string()).collect();
        Failure::Input(lines.join("\n"))
    })?;
    trial::judge(&mut e, figures);
    e.about.description = "a switchback experiment while the machine did its own work".to_owned();
    let plan = &e.cells[0];
    let mut incumbent = plan.specs[plan.cell.reference].clone();
    if incumbent.scheduler.name != on.in_force() {
        incumbent.scheduler.name = on.in_force();
        incumbent.scheduler.tunables.clear();
    }
    Ok((e, incumbent))
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
    if a.json {
        words.push("--json".to_owned());
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
    let mut holders: Vec<u32> = on
        .devices()
        .iter()
        .filter_map(|d| records.holder(&d.name, "trial"))
        .collect();
    holders.sort_unstable();
    holders.dedup();
    let [pid] = holders[..] else {
        return Err(bad(format!(
            "{}: no trial is running there, or several are, or this user may not see it",
            on.names()
        )));
    };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| bad(format!("process {pid} cannot be signalled")))?;
    kill_process(process, Signal::INT)
        .map_err(|e| bad(format!("the trial (process {pid}) cannot be stopped: {e}")))?;
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let held = |d: &seekwell_host::block::Device| records.is_held(&d.name);
        if !on.devices().iter().any(held) {
            note(
                quiet,
                &format!("the trial ended; {} has its settings of before", on.names()),
            );
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Failure::Early(format!(
        "the trial (process {pid}) is still running after {} s; its scheduler may still be set",
        PATIENCE.as_secs()
    )))
}
