//! `seekwell guest run`: one command under several schedulers of a real kernel.

use super::figures::{Figure, of_record};
use super::requests::{Requests, seconds};
use super::work::{Done, cells, run_all, work_name};
use crate::cli::{GuestRun, GuestSetup};
use crate::fail::Failure;
use crate::guests::failed;
use crate::out::{Out, columns, note};
use seekwell_guest::{Kernel, LogEntry, cache_dir};
use seekwell_lab::analysis::analyse;
use seekwell_lab::import::{Input, Options, import};
use seekwell_lab::results::{Folder, Results};
use seekwell_report::style::{HEAD, NAME};
use seekwell_report::table::{Align, Table, paint, painted};
use seekwell_report::units::three;
use seekwell_trace::{Record, WriteOptions, create, find_format};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Runs the command.
pub fn run(a: &GuestRun, quiet: bool) -> Result<(), Failure> {
    if let Some(folder) = a.output.as_deref().filter(|f| f.exists()) {
        return Err(Failure::input(format!(
            "the folder \"{}\" exists; name a new one",
            folder.display()
        )));
    }
    let cache = cache_dir().map_err(failed)?;
    let kernel = Kernel::find(&cache, a.kernel.as_deref()).map_err(failed)?;
    let began = std::time::Instant::now();
    let done = run_all(&a.setup, cells(&a.setup, &kernel))?;
    let wall = began.elapsed().as_secs_f64();
    let results = results(&a.setup, &kernel, &done)?;
    if let Some(folder) = &a.output {
        Folder::store(folder, &results).map_err(super::super::results::failure)?;
        for d in &done {
            keep(folder, d)?;
        }
    }
    let mut out = Out::open(None)?;
    if a.setup.json {
        let analysis = analyse(&results);
        let rows: Vec<Value> = done.iter().map(row).collect();
        out.json(&json!({
            "schema": 1, "command": "guest run", "kernel": kernel.name, "runs": rows,
            "results": results, "analysis": analysis,
        }))?;
    } else {
        out.text(&shown(&a.setup, &kernel, &done, wall))?;
        out.text(&verdicts(&results))?;
    }
    out.done()?;
    if let Some(folder) = &a.output {
        note(quiet, &format!("stored in {}", folder.display()));
    }
    match done.iter().find(|d| d.outcome.exit != 0) {
        None => Ok(()),
        Some(d) => {
            let text = String::from_utf8_lossy(&d.outcome.stderr);
            let last = text.lines().rev().find(|l| !l.trim().is_empty());
            note(
                quiet,
                &format!(
                    "the command failed with exit code {} under {}, seed {}: {}",
                    d.outcome.exit,
                    d.cell.scheduler,
                    d.cell.seed,
                    last.unwrap_or("no message")
                ),
            );
            Err(Failure::Command(d.outcome.exit))
        }
    }
}

/// Returns the figures of a run. The first one is the result of the workload, if there is one.
fn figures(setup: &GuestSetup, d: &Done) -> Result<Vec<Figure>, Failure> {
    let mut all = Vec::new();
    if setup.workload.is_some() {
        all = of_record(&d.outcome.stdout)?;
    }
    let r = Requests::of_run(&d.outcome);
    for (name, unit, value) in [
        ("time", "s", Some(seconds(&d.outcome))),
        ("disk read mean", "ms", r.reads.mean_ms()),
        ("disk read p99", "ms", r.reads.quantile_ms(0.99)),
        ("disk write mean", "ms", r.writes.mean_ms()),
    ] {
        // A workload runs for a fixed time or a fixed work. Its own metric fits both.
        if let Some(value) = value.filter(|_| setup.workload.is_none()) {
            all.push(Figure {
                metric: name.to_owned(),
                unit: unit.to_owned(),
                higher_is_better: false,
                value,
            });
        }
    }
    Ok(all)
}

/// Returns the runs as ordinary results.
fn results(setup: &GuestSetup, kernel: &Kernel, done: &[Done]) -> Result<Results, Failure> {
    let mut csv = String::from("device,machine,scheduler,workload,run,metric,unit,better,value\n");
    let cell = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let (device, command) = (setup.device.join(" + "), work_name(setup));
    let machine = format!("Linux {} on virtual time, {}", kernel.name, setup.fs);
    let short: String = command.chars().take(60).collect();
    for d in done.iter().filter(|d| d.outcome.exit == 0) {
        for f in figures(setup, d)? {
            csv += &format!(
                "{},{},{},{},{},{},{},{},{}\n",
                cell(&device),
                cell(&machine),
                cell(&d.cell.scheduler),
                cell(&short),
                d.cell.seed,
                cell(&f.metric),
                cell(&f.unit),
                if f.higher_is_better {
                    "higher"
                } else {
                    "lower"
                },
                f.value
            );
        }
    }
    if done.iter().all(|d| d.outcome.exit != 0) {
        return Ok(Results::default());
    }
    let bad = |e: seekwell_lab::import::ImportError| Failure::input(e.to_string());
    let input = Input::of_bytes("guest", csv.into_bytes()).map_err(bad)?;
    let options = Options {
        format: Some("csv".to_owned()),
        ..Options::default()
    };
    let mut results = import(&[input], &options).map_err(bad)?;
    results.about.name = format!("guest: {short}");
    results.about.source = format!("seekwell guest run, kernel {}", kernel.name);
    results.about.description = format!(
        "{command}. Real kernel on virtual time over modelled disks; CPU time is free. The intervals \
         cover random variation between seeds, not errors of the disk's model."
    );
    for c in &mut results.cells {
        c.substrate = "kernel".to_owned();
    }
    Ok(results)
}

/// Stores output, console and request logs of a run below the folder.
fn keep(folder: &Path, d: &Done) -> Result<(), Failure> {
    let name = format!(
        "{}-{}",
        d.cell.scheduler.replace([':', '='], "_"),
        d.cell.seed
    );
    let dir = folder.join("guest").join(name);
    let bad = |e: std::io::Error| Failure::Output {
        what: dir.display().to_string(),
        source: e,
    };
    fs::create_dir_all(&dir).map_err(bad)?;
    fs::write(dir.join("stdout"), &d.outcome.stdout).map_err(bad)?;
    fs::write(dir.join("stderr"), &d.outcome.stderr).map_err(bad)?;
    fs::write(dir.join("console"), &d.outcome.console).map_err(bad)?;
    for (i, log) in d.outcome.logs.iter().enumerate() {
        if !log.is_empty() {
            trace(&dir.join(format!("disk{i}.csv")), log)?;
        }
    }
    Ok(())
}

/// Writes a request log as a trace that `replay` and `report` read.
fn trace(path: &Path, log: &[LogEntry]) -> Result<(), Failure> {
    let bad = crate::traces::failed;
    let format = find_format("csv").map_err(bad)?;
    let mut writer = create(path, format, &WriteOptions::default()).map_err(bad)?;
    let first = log.first().map_or(0, |e| e.arrive_ns);
    for e in log {
        let record = Record {
            complete_ns: e.complete_ns.map(|t| t - first),
            error: u16::from(e.error),
            ..Record::new(e.arrive_ns - first, e.op, e.sector.0, e.sectors.0)
        };
        writer.write(&record).map_err(bad)?;
    }
    writer.finish().map_err(bad)
}

fn row(d: &Done) -> Value {
    let r = Requests::of_run(&d.outcome);
    let kind = |k: &super::requests::Kind| {
        json!({
            "requests": k.latencies_ns.len(), "bytes": k.bytes, "mean_ms": k.mean_ms(),
            "p50_ms": k.quantile_ms(0.5), "p99_ms": k.quantile_ms(0.99),
        })
    };
    json!({
        "scheduler": d.cell.scheduler, "seed": d.cell.seed, "exit": d.outcome.exit,
        "seconds": seconds(&d.outcome), "wall_seconds": d.outcome.wall.as_secs_f64(),
        "reads": kind(&r.reads), "writes": kind(&r.writes), "flushes": kind(&r.flushes),
        "stdout": String::from_utf8_lossy(&d.outcome.stdout),
        "stderr": String::from_utf8_lossy(&d.outcome.stderr),
        "marks": d.outcome.marks.iter().map(|m| json!([m.at_ns, m.value])).collect::<Vec<_>>(),
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Returns the table with one row per scheduler: means over the seeds.
fn shown(setup: &GuestSetup, kernel: &Kernel, done: &[Done], wall: f64) -> String {
    let mut out = String::new();
    paint(
        &mut out,
        &format!("Linux {} on virtual time", kernel.name),
        HEAD,
    );
    out += &format!(
        ", {}, {} on {}\n",
        work_name(setup),
        setup.fs,
        setup.device.join(" + ")
    );
    let virtual_s: f64 = done.iter().map(|d| d.outcome.ended_ns as f64 / 1e9).sum();
    out += &format!(
        "{} runs, {virtual_s:.1} s of virtual time in {wall:.1} s. Means over {} seeds.\n\n",
        done.len(),
        setup.seeds.max(1)
    );
    let mut t = Table::new(&[
        ("SCHEDULER", Align::Left),
        ("TIME s", Align::Right),
        ("READS", Align::Right),
        ("MEAN ms", Align::Right),
        ("p99 ms", Align::Right),
        ("WRITES", Align::Right),
        ("MEAN ms", Align::Right),
        ("FLUSHES", Align::Right),
    ]);
    for scheduler in &setup.schedulers {
        let own: Vec<_> = done
            .iter()
            .filter(|d| d.cell.scheduler == *scheduler)
            .collect();
        let all: Vec<_> = own.iter().map(|d| Requests::of_run(&d.outcome)).collect();
        let show = |x: Option<f64>| x.map_or("-".to_owned(), three);
        let count = |n: Vec<usize>| show(mean(n.into_iter().map(|n| n as f64)));
        t.row(vec![
            painted(scheduler.clone(), NAME),
            show(mean(own.iter().map(|d| seconds(&d.outcome)))).into(),
            count(all.iter().map(|r| r.reads.latencies_ns.len()).collect()).into(),
            show(mean(all.iter().filter_map(|r| r.reads.mean_ms()))).into(),
            show(mean(all.iter().filter_map(|r| r.reads.quantile_ms(0.99)))).into(),
            count(all.iter().map(|r| r.writes.latencies_ns.len()).collect()).into(),
            show(mean(all.iter().filter_map(|r| r.writes.mean_ms()))).into(),
            count(all.iter().map(|r| r.flushes.latencies_ns.len()).collect()).into(),
        ]);
    }
    out += &t.render_within(0, columns());
    out
}

/// Returns the comparison with the first scheduler, one line per pair and metric.
fn verdicts(results: &Results) -> String {
    let analysis = analyse(results);
    let name = |i: usize| analysis.treatments.get(i).cloned().unwrap_or_default();
    let first = analysis.cells.first().map_or(0, |c| c.reference);
    let head = format!("AGAINST {}", name(first));
    let mut t = Table::new(&[
        ("METRIC", Align::Left),
        ("SCHEDULER", Align::Left),
        (&head, Align::Left),
    ]);
    for cell in &analysis.cells {
        for c in &cell.comparisons {
            t.row(vec![
                cell.metric.name.clone().into(),
                painted(name(c.one), NAME),
                c.words.clone().into(),
            ]);
        }
    }
    match t.is_empty() {
        true => String::new(),
        false => format!("\n{}", t.render_within(0, columns())),
    }
}
