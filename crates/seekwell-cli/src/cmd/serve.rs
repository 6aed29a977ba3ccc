//! `seekwell serve --fuse DIR`: serves a modelled disk.

use crate::cli::Serve;
use crate::fail::Failure;
use crate::out::{Out, note};
use crate::setups;
use seekwell_core::Nanos;
use seekwell_core::prose::in_prose;
use seekwell_core::result::Latency;
use seekwell_report::style::{BAD, GOOD, WARN};
use seekwell_report::table::{Align, Table};
use seekwell_report::units;
use seekwell_server::{
    Account, AnyDevice, Disk, DiskOptions, End, Ends, Floor, ServeError, Served, Verdict,
};
use seekwell_sim::Setup;
use std::io::Write;
use std::path::Path;

fn failed(e: ServeError) -> Failure {
    Failure::input(e.to_string())
}

/// Returns the device behind the block layer of the requested scheduler, and whether that scheduler
/// distinguishes processes.
fn behind(a: &Serve, device: AnyDevice) -> Result<(Served, bool), Failure> {
    let Some(scheduler) = &a.scheduler else {
        return Ok((Served::device(device), false));
    };
    let setup = Setup {
        nr_requests: a.nr_requests,
        ..setups::single_setup(&a.device, scheduler, a.seed)?
    };
    let wrong = |e: seekwell_sim::SetupError| Failure::input(e.to_string());
    setup.validate().map_err(wrong)?;
    let queue = |d| setup.build_over(d).map(|q| Box::new(q) as Box<_>);
    let served = Served::behind(device, queue).map_err(wrong)?;
    Ok((served, setup.per_process()))
}

/// Serves the disk until a signal arrives, then prints the report.
pub fn run(a: &Serve, quiet: bool) -> Result<(), Failure> {
    let rate = seekwell_device::probe::best_rate(&a.device, a.seed);
    let rate = rate.map_err(|e| Failure::input(e.to_string()))?;
    let device = seekwell_device::open(&a.device, a.seed);
    let device = device.map_err(|e| Failure::input(e.to_string()))?;
    let (served, per_process) = behind(a, device)?;
    let output = a.output.output.as_deref();
    let out = Out::open(output)?;
    let (backing, log) = (a.backing.as_deref(), a.log.as_deref());
    let preset = setups::preset_file(&a.device);
    for file in [output, backing, log] {
        Out::apart(file, preset)?;
    }
    Out::apart(output, backing.into_iter().chain(log))?;
    Out::apart(log, backing)?;
    let ends = Ends::catch(seekwell_host::stop::caught()).map_err(failed)?;
    let floor = match a.floor_us {
        Some(us) => Floor::Fixed(Nanos((us * 1e3) as u64)),
        None => Floor::Auto,
    };
    let options = DiskOptions {
        mount: a.fuse.clone(),
        size: a.size,
        backing: a.backing.clone(),
        floor,
        log: a.log.clone(),
        per_process,
        rate: rate as u64,
        force: a.force,
    };
    let disk = Disk::start(served, &options).map_err(failed)?;
    if let Some(loops) = disk.took_over() {
        note(quiet, &took_over(loops));
    }
    if !disk.margin().realtime {
        let text = "no real-time priority: some completions will be late (it needs CAP_SYS_NICE)";
        note(quiet, text);
    }
    if per_process {
        note(quiet, &owners_matter(&disk.file()));
    }
    // This line is not buffered, because a program that started this command may wait for it.
    let ready = format!(
        "serving {}{} on {} ({}); Ctrl-C ends it\n",
        a.device,
        a.scheduler
            .as_ref()
            .map_or(String::new(), |s| format!(" under {}", in_prose(s))),
        disk.file().display(),
        units::bytes(disk.size() as f64)
    );
    let to = if a.json && a.output.output.is_none() {
        anstream::stderr().write_all(ready.as_bytes())
    } else {
        let mut stdout = anstream::stdout();
        stdout
            .write_all(ready.as_bytes())
            .and_then(|()| stdout.flush())
    };
    // A failed write is ignored, because the disk is useful also if nobody reads the output.
    let _ = to;
    match ends.wait(&disk, a.until_eof) {
        End::Unmounted => note(quiet, "unmounted by another program"),
        // The program that started this one may have died. File systems and loop devices on the
        // disk are removed while the disk still responds.
        End::Eof => seekwell_host::watch::abandon(&disk.file()),
        End::Signal => {}
    }
    let (account, users) = disk.stop().map_err(failed)?;
    for name in users {
        let text = format!(
            "/dev/{name} was still attached and fails all I/O; detach it: losetup -d /dev/{name}"
        );
        note(quiet, &text);
    }
    report(out, a, &account)
}

/// Returns a note for schedulers that distinguish processes, because a loop device hides the
/// process.
fn owners_matter(file: &Path) -> String {
    format!(
        "the scheduler distinguishes processes: programs should open {} with O_DIRECT. Through a \
         loop device, every request has the priority of a kernel worker",
        file.display()
    )
}

/// Returns a note about the removed mount of a killed server, and about devices that are still
/// attached to its file.
fn took_over(loops: &[String]) -> String {
    let mut text = "removed the mount of a killed server".to_owned();
    for name in loops {
        text += &format!(
            "; /dev/{name} is still attached to it and fails all I/O; detach it: losetup -d \
             /dev/{name}"
        );
    }
    text
}

fn report(mut out: Out, a: &Serve, account: &Account) -> Result<(), Failure> {
    if a.json || a.output.output.is_some() {
        let value = serde_json::to_value(account).unwrap_or_default();
        out.json(&value)?;
    } else {
        out.text(&text(account))?;
    }
    out.done()
}

/// Returns the report as text.
fn text(a: &Account) -> String {
    let mut t = Table::new(&[
        ("", Align::Left),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
    ]);
    let mut row = |name: &str, l: &Latency| {
        let p = |p: f64| units::time_ns(l.percentile_ns(p) as f64).into();
        let (mean, max) = (
            units::time_ns(l.mean_ns()),
            units::time_ns(l.max_ns() as f64),
        );
        t.row(vec![
            name.into(),
            mean.into(),
            p(50.0),
            p(99.0),
            p(99.9),
            max.into(),
        ]);
    };
    row("model latency", &a.model);
    row("delivered latency", &a.delivered);
    row("late", &a.late);
    let verdict = a.verdict.unwrap_or(Verdict::Idle);
    let style = match verdict {
        Verdict::Exact | Verdict::Good => GOOD,
        Verdict::Usable | Verdict::Idle => WARN,
        Verdict::Invalid => BAD,
    };
    let mut s = format!(
        "{}: {} reads ({}), {} writes ({}), {} flushes, {} discards, {} errors\n\
         maximum at a time: {} outstanding, {} in the device\n",
        a.device,
        units::count(a.reads),
        units::bytes(a.read_bytes as f64),
        units::count(a.writes),
        units::bytes(a.write_bytes as f64),
        units::count(a.flushes),
        units::count(a.discards),
        units::count(a.errors),
        a.outstanding_max,
        a.depth_max,
    );
    if a.per_process {
        s += &format!(
            "commands of programs: {}, of kernel workers: {}, of unknown threads: {}\n",
            units::count(a.owners.program),
            units::count(a.owners.kernel),
            units::count(a.owners.unknown),
        );
    }
    if let Some(backed) = a.backed {
        s += &format!(
            "backing file: {} flushes and {} durable writes; {} reached the host's disk, in {} \
             fdatasync calls\n",
            units::count(a.flushes),
            units::count(a.durable_writes),
            units::count(backed),
            units::count(a.backing_syncs),
        );
    }
    s += &t.render(0);
    s += &format!(
        "waiting: the last {} by spinning; sleeps end {} late (p99); {} involuntary context \
         switches\n",
        units::time_ns(a.margin.spin_ns as f64),
        units::time_ns(a.margin.sleep_late_p99_ns as f64),
        units::count(a.involuntary_switches),
    );
    if a.floor_ns > 0 {
        s += &format!(
            "transport latency: {} subtracted from each completion; {} commands are faster than \
             that\n",
            units::time_ns(a.floor_ns as f64),
            units::count(a.unreachable),
        );
    }
    s += &format!("verdict: {style}{verdict}{style:#}\n");
    for why in &a.reasons {
        s += &format!("  {why}\n");
    }
    s
}
