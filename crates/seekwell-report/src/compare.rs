//! Several runs of the same work side by side: what came through, how long it took, who got what.

use crate::style::{DIM, GOOD, HEAD, NAME, WARN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::{bytes, count, rate, share, three, time_ns};
use crate::verdict::{self, Verdict};
use seekwell_core::result::{Direction, Record};
use std::collections::BTreeMap;

/// Processes listed at most; the rest is summed.
const PROCESSES_MAX: usize = 8;

/// First line of everything that ran on a model.
pub fn modelled(r: &Record) -> String {
    let d = &r.device;
    let size = bytes(d.capacity_sectors as f64 * 512.0);
    let name = if d.name.is_empty() { &d.spec } else { &d.name };
    format!(
        "On a modelled disk, not one of yours: {name}, {size} ({}; depth {}, HZ {}, seed {})\n",
        d.spec, d.depth, r.hz, r.seed
    )
}

/// The name of a run: the scheduler as it was asked for.
fn label(r: &Record) -> Cell {
    painted(r.scheduler.spec.as_str(), NAME)
}

fn main_table(records: &[Record], best: Option<usize>) -> String {
    // One that ended early has none.
    let metric = records.iter().find_map(|r| r.metric.as_ref());
    let mut columns = vec![("SCHEDULER", Align::Left), ("LAYER", Align::Left)];
    let unit = metric.map(|m| m.unit.clone()).unwrap_or_default();
    if metric.is_some() {
        columns.push((&unit, Align::Right));
    }
    for head in [
        "RATE",
        "IOPS",
        "REQUESTS",
        "MERGES",
        "SEEK",
        "BUSY",
        "IN DEVICE",
        "WAITING",
    ] {
        columns.push((head, Align::Right));
    }
    let mut t = Table::new(&columns);
    for (i, r) in records.iter().enumerate() {
        let mut row = vec![label(r), r.scheduler.layer.as_str().into()];
        if metric.is_some() {
            let style = if best == Some(i) {
                GOOD
            } else {
                crate::style::PLAIN
            };
            let value = r.metric.as_ref().map(|m| three(m.value));
            row.push(painted(value.unwrap_or_else(|| "-".to_owned()), style));
        }
        let merges = r.back_merges + r.front_merges + r.joins;
        let waiting = (r.outstanding_mean - r.depth_mean).max(0.0);
        row.extend([
            rate(r.bytes_per_sec()).into(),
            three(r.iops()).into(),
            count(r.requests).into(),
            count(merges).into(),
            bytes(r.mean_seek_sectors * 512.0).into(),
            share(r.device_busy_ns.min(r.duration_ns), r.duration_ns).into(),
            three(r.depth_mean).into(),
            three(waiting).into(),
        ]);
        t.row(row);
    }
    t.render(2)
}

fn latency_table(records: &[Record], of: fn(&Record) -> &Direction, what: &str) -> String {
    if records.iter().all(|r| of(r).ios == 0) {
        return String::new();
    }
    let head = format!("{what} LATENCY");
    let columns = [
        (head.as_str(), Align::Left),
        ("COUNT", Align::Right),
        ("MEAN", Align::Right),
        ("P50", Align::Right),
        ("P90", Align::Right),
        ("P99", Align::Right),
        ("P99.9", Align::Right),
        ("MAX", Align::Right),
    ];
    let mut t = Table::new(&columns);
    for r in records {
        let d = of(r);
        let mut row = vec![label(r), count(d.ios).into()];
        if d.ios > 0 {
            let p = |q: f64| Cell::from(time_ns(d.latency.percentile_ns(q) as f64));
            row.push(time_ns(d.latency.mean_ns()).into());
            row.extend([p(50.0), p(90.0), p(99.0), p(99.9)]);
            row.push(time_ns(d.latency.max_ns() as f64).into());
        }
        t.row(row);
    }
    t.render(2)
}

/// Shares of the bytes by process, a column a scheduler.
fn process_table(records: &[Record]) -> String {
    let mut total: BTreeMap<u32, (u64, &str)> = BTreeMap::new();
    for p in records.iter().flat_map(|r| &r.processes) {
        let e = total.entry(p.task).or_default();
        e.0 += p.bytes;
        e.1 = &p.name;
    }
    if total.len() < 2 {
        return String::new();
    }
    let mut tasks: Vec<_> = total.into_iter().collect();
    tasks.sort_by_key(|(task, (bytes, _))| (std::cmp::Reverse(*bytes), *task));
    let mut columns = vec![("SHARE OF BYTES", Align::Left)];
    columns.extend(
        records
            .iter()
            .map(|r| (r.scheduler.spec.as_str(), Align::Right)),
    );
    let mut t = Table::new(&columns);
    let all: Vec<u64> = records
        .iter()
        .map(|r| r.processes.iter().map(|p| p.bytes).sum())
        .collect();
    let parts: Vec<BTreeMap<u32, u64>> = records
        .iter()
        .map(|r| r.processes.iter().map(|p| (p.task, p.bytes)).collect())
        .collect();
    let part = |of: &BTreeMap<u32, u64>, task: u32| of.get(&task).copied().unwrap_or(0);
    for (task, (_, name)) in tasks.iter().take(PROCESSES_MAX) {
        let mut row: Vec<Cell> = vec![format!("{task} {name}").trim_end().into()];
        let shares = parts
            .iter()
            .zip(&all)
            .map(|(of, all)| share(part(of, *task), *all).into());
        row.extend(shares);
        t.row(row);
    }
    let rest = tasks.iter().skip(PROCESSES_MAX);
    if rest.len() > 0 {
        let mut row: Vec<Cell> = vec![format!("{} others", rest.len()).into()];
        let sum = |of| rest.clone().map(|(task, _)| part(of, *task)).sum::<u64>();
        let shares = parts.iter().zip(&all);
        row.extend(shares.map(|(of, all)| share(sum(of), *all).into()));
        t.row(row);
    }
    t.render(2)
}

/// Warnings, each said once, with the schedulers it is about unless that is all of them.
fn warnings(records: &[Record], width: usize) -> String {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for r in records {
        for w in &r.warnings {
            match said.iter_mut().find(|s| s.0 == w) {
                Some(s) => s.1.push(&r.scheduler.spec),
                None => said.push((w, vec![&r.scheduler.spec])),
            }
        }
    }
    let mut out = String::new();
    for (w, who) in said {
        let about = if who.len() == records.len() {
            String::new()
        } else {
            format!("{}: ", who.join(", "))
        };
        let text = wrap(&format!("{about}{w}"), 4, width);
        paint(&mut out, "  ! ", WARN);
        out += text.trim_start();
    }
    out
}

/// The comparison of runs that differ in the scheduler only. `title`: what ran.
pub fn comparison(title: &str, records: &[Record], width: usize) -> String {
    let verdict = verdict::of(records);
    let mut out = String::new();
    paint(&mut out, title, HEAD);
    out.push('\n');
    out += &main_table(records, verdict.as_ref().and_then(Verdict::winner));
    out += &latency_table(records, |r| &r.read, "READ");
    out += &latency_table(records, |r| &r.write, "WRITE");
    out += &process_table(records);
    out += &warnings(records, width);
    if let Some(v) = verdict {
        paint(&mut out, "  Verdict: ", HEAD);
        out += wrap(&v.words(records), 11, width).trim_start();
    }
    out
}

/// What the columns mean.
pub fn legend(width: usize) -> String {
    let text = "RATE: bytes completed a second. REQUESTS: sent to the device. MERGES: bios and \
                requests that became part of another. SEEK: mean distance between one request and \
                the next. BUSY: share of the time the device worked. IN DEVICE, WAITING: mean \
                number of requests in the device, and of bios in front of it. Latencies are from \
                submission to completion.";
    let mut out = String::new();
    paint(&mut out, &wrap(text, 0, width), DIM);
    out
}

/// Which of the schedulers are of which era.
pub fn eras(records: &[Record], width: usize) -> String {
    let of = |layer: &str| {
        let mut names: Vec<&str> = Vec::new();
        for r in records.iter().filter(|r| r.scheduler.layer == layer) {
            if !names.contains(&&*r.scheduler.spec) {
                names.push(&r.scheduler.spec);
            }
        }
        names.join(", ")
    };
    let (old, new) = (of("single-queue"), of("blk-mq"));
    let mut text = String::new();
    if !old.is_empty() {
        text += &format!("Single-queue era (2.6 to 4.20, in no kernel of today): {old}. ");
    }
    if !new.is_empty() {
        text += &format!("blk-mq (kernels of today): {new}.");
    }
    wrap(&text, 0, width)
}
