//! Compares several runs of the same workload: throughput, latency, and shares of the processes.

mod also;
mod answer;
pub mod first;
mod grid;
mod matrix;
mod queue;
pub mod rows;
pub mod seeds;
#[cfg(test)]
pub(crate) mod tests;
mod words;

pub use answer::answer;
pub use matrix::{Row, matrix};

use crate::style::{DIM, GOOD, HEAD, NAME, PLAIN, WARN};
use crate::table::{Align, Cell, Table, paint, painted, side_by_side, wrap};
use crate::units::{bytes, count, rate, share, three, time_ns};
use crate::verdict;
use seekwell_core::prose::{all_in_prose, in_prose};
use seekwell_core::result::{Direction, Record, Starved};
use seekwell_lab::analysis::single::{on_files, standing};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum width of prose, in columns. Tables may be wider.
pub const PROSE: usize = 100;

/// Maximum number of processes in a list. The other processes are added up.
const PROCESSES_MAX: usize = 8;

/// Returns the first line about runs on a model: the device, its size and settings.
pub fn modelled(r: &Record, width: usize) -> String {
    let d = &r.device;
    let size = bytes(d.capacity_sectors as f64 * 512.0);
    let name = if d.name.is_empty() { &d.spec } else { &d.name };
    // The record of a real kernel does not state its tick.
    let tick = match r.hz {
        0 => String::new(),
        hz => format!("HZ {hz}, "),
    };
    let text = format!(
        "On a modelled disk, not one of yours: {name}, {size} ({}; depth {}, {tick}seed {})",
        d.spec, d.depth, r.seed
    );
    hang(&text, 2, width)
}

/// Wraps prose. All lines except the first are indented.
fn hang(text: &str, indent: usize, width: usize) -> String {
    let lines = wrap(text, indent, width.min(PROSE));
    lines.trim_start().to_owned()
}

/// Returns all measured values that tables show, to find identical runs.
fn figures(r: &Record) -> Vec<u64> {
    let way = |d: &Direction| {
        let l = &d.latency;
        [
            d.ios,
            d.bytes,
            l.mean_ns().to_bits(),
            l.max_ns(),
            l.percentile_ns(99.0),
        ]
    };
    let ops = r.operations.iter().flat_map(|o| {
        let l = &o.latency;
        [l.count(), o.bytes, l.mean_ns().to_bits(), l.max_ns()]
    });
    let metrics = r.metric.iter().chain(&r.more_metrics);
    let mut all = vec![
        r.duration_ns,
        r.span_ns(),
        r.requests,
        r.back_merges + r.front_merges + r.joins,
        r.device_busy_ns,
        r.mean_seek_sectors.to_bits(),
        r.depth_mean.to_bits(),
        r.outstanding_mean.to_bits(),
    ];
    all.extend(way(&r.read));
    all.extend(way(&r.write));
    all.extend(metrics.map(|m| m.value.to_bits()));
    all.extend(ops);
    all.extend(r.processes.iter().flat_map(|p| [p.ios, p.bytes]));
    all
}

/// Groups identical runs, which share one table row. Returns their indices, in the order of the
/// first.
pub fn alike(records: &[Record]) -> Vec<Vec<usize>> {
    groups(records.iter().map(figures))
}

/// Groups equal items. Returns their indices, in the order of the first.
fn groups<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<Vec<usize>> {
    let mut groups: Vec<(T, Vec<usize>)> = Vec::new();
    for (i, item) in items.enumerate() {
        match groups.iter_mut().find(|g| g.0 == item) {
            Some(g) => g.1.push(i),
            None => groups.push((item, vec![i])),
        }
    }
    groups.into_iter().map(|g| g.1).collect()
}

/// Returns one record per group of identical runs, named "noop = deadline".
pub fn folded(records: &[Record]) -> Cow<'_, [Record]> {
    let groups = alike(records);
    if groups.len() == records.len() {
        return Cow::Borrowed(records);
    }
    let one = |g: &Vec<usize>| {
        let mut r = records[g[0]].clone();
        r.scheduler.spec = short(g, records);
        r
    };
    Cow::Owned(groups.iter().map(one).collect())
}

/// Returns the joined names of a group, for example "noop = deadline".
fn joined(group: &[usize], records: &[Record]) -> String {
    let names = group.iter().map(|i| records[*i].scheduler.spec.as_str());
    names.collect::<Vec<_>>().join(" = ")
}

/// Maximum width of a label with several names, in columns.
const LABEL: usize = 28;

/// Returns the joined names as a label for tables, or "noop and 8 more" if they are too long.
fn short(group: &[usize], records: &[Record]) -> String {
    match joined(group, records) {
        all if group.len() < 2 || all.chars().count() <= LABEL => all,
        _ => format!(
            "{} and {} more",
            records[group[0]].scheduler.spec,
            group.len() - 1
        ),
    }
}

/// Returns a sentence that says which runs were identical, or an empty text if none were.
fn identical(groups: &[Vec<usize>], records: &[Record], width: usize) -> String {
    let same = groups.iter().filter(|g| g.len() > 1);
    let said = |i: &usize| in_prose(&records[*i].scheduler.spec);
    let same = same.map(|g| g.iter().map(said).collect::<Vec<_>>().join(" = "));
    let same: Vec<String> = same.collect();
    if same.is_empty() {
        return String::new();
    }
    let text = format!("Identical in every figure: {}.", same.join("; "));
    wrap(&text, 2, width.min(PROSE))
}

/// Returns the name of a run: its scheduler as requested.
fn label(r: &Record) -> Cell {
    painted(r.scheduler.spec.as_str(), NAME)
}

/// Returns a rate as a table cell. A single I/O has no rate.
fn rated(r: &Record, rate: String) -> Cell {
    match r.read.ios + r.write.ios {
        0 | 1 => "-".into(),
        _ => rate.into(),
    }
}

fn main_table(records: &[Record], best: &[bool]) -> Table {
    // A run that ended early has no metric.
    let metric = records.iter().find_map(|r| r.metric.as_ref());
    let mut columns = vec![("SCHEDULER", Align::Left)];
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
        let mut row = vec![label(r)];
        if metric.is_some() {
            let style = if best[i] { GOOD } else { PLAIN };
            let value = r.metric.as_ref().map(|m| three(m.value));
            row.push(match verdict::at_limit(r) {
                Some(longer) => painted(longer, WARN),
                None => painted(value.unwrap_or_else(|| "-".to_owned()), style),
            });
        }
        let merges = r.back_merges + r.front_merges + r.joins;
        let waiting = (r.outstanding_mean - r.depth_mean).max(0.0);
        row.extend([
            rated(r, rate(r.bytes_per_sec())),
            rated(r, three(r.iops())),
            count(r.requests).into(),
            count(merges).into(),
            bytes(r.mean_seek_sectors * 512.0).into(),
            share(r.device_busy_ns.min(r.span_ns()), r.span_ns()).into(),
            three(r.depth_mean).into(),
            three(waiting).into(),
        ]);
        t.row(row);
    }
    t
}

fn latency_table(
    records: &[Record],
    of: fn(&Record) -> &Direction,
    what: &str,
    width: usize,
) -> String {
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
    t.render_fit(2, width, 1)
}

/// Returns a table of the shares of bytes by process, with one column per scheduler.
fn process_table(records: &[Record], width: usize) -> String {
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
    t.render_fit(2, width, 1)
}

/// Returns a sentence about the amount of work and the time that the figures cover.
fn covered(records: &[Record], width: usize) -> String {
    let range = |of: &dyn Fn(&Record) -> u64| {
        let all = records.iter().map(of);
        let (least, most) = (all.clone().min(), all.max());
        let s = |ns: Option<u64>| three(ns.unwrap_or(0) as f64 / 1e9);
        match (s(least), s(most)) {
            (a, b) if a == b => format!("{a} s"),
            (a, b) => format!("{a} to {b} s"),
        }
    };
    let counted = range(&Record::span_ns);
    let before = range(&|r| r.window_ns().0);
    let text = if records.iter().any(|r| r.window_ns().0 >= 1_000_000) {
        format!("Counted: {counted} on the workload's clock, which started {before} into the run.")
    } else {
        format!("Counted: {counted}.")
    };
    wrap(&text, 2, width.min(PROSE))
}

/// Returns warnings. Each is shown once, with its schedulers unless it applies to all. At most
/// `most` lines are shown, and the others are counted. If `judged` is true, the verdict over
/// several seeds is shown above and contains the starved processes.
fn warnings(records: &[Record], judged: bool, most: usize, width: usize) -> String {
    let starved = match judged {
        true => Vec::new(),
        false => verdict::starvation(records),
    };
    // Starvation is shown first, always with the names of the schedulers.
    let named = starved.len();
    let mut said: Vec<(&str, Vec<&str>)> = (starved.iter())
        .map(|(text, who)| (text.as_str(), who.clone()))
        .collect();
    for r in records {
        let known: Vec<String> = r.starved.iter().map(Starved::words).collect();
        for w in r.warnings.iter().filter(|w| !known.contains(w)) {
            match said.iter_mut().find(|s| s.0 == w) {
                Some(s) => s.1.push(&r.scheduler.spec),
                None => said.push((w, vec![&r.scheduler.spec])),
            }
        }
    }
    let mut out = String::new();
    let all = said.len();
    for (i, (w, who)) in said.into_iter().enumerate() {
        let about = if who.len() == records.len() && i >= named {
            String::new()
        } else {
            format!("{}: ", all_in_prose(&who).join(", "))
        };
        let text = wrap(&format!("{about}{w}"), 4, width);
        if i > 0 && out.lines().count() + text.lines().count() > most {
            paint(&mut out, "  ! ", WARN);
            out += &format!("and {} more remarks: --details\n", all - i);
            break;
        }
        paint(&mut out, "  ! ", WARN);
        out += text.trim_start();
    }
    out
}

/// Compares runs that differ only in the scheduler, with the verdict first. `title` describes the
/// workload. `judged` is the verdict over several seeds, one of which is in the records; it is
/// `None` for a single seed.
pub fn comparison(title: &str, records: &[Record], judged: Option<&str>, width: usize) -> String {
    let prose = width.min(PROSE);
    let said = verdict::words(records);
    let mut out = String::new();
    paint(&mut out, &hang(title, 2, width), HEAD);
    if records.is_empty() {
        return out;
    }
    if let Some(judged) = judged {
        out += judged;
        out += &wrap(&format!("Seed {} only:", records[0].seed), 2, prose);
    } else if let Some(said) = &said {
        paint(&mut out, "  Verdict: ", HEAD);
        out += wrap(said, 11, prose).trim_start();
    }
    out += &covered(records, width);
    out += &queue::limits(records, width);
    // One of several seeds does not decide which scheduler leads.
    let standing = standing(records).filter(|_| judged.is_none());
    let leaders = standing.map(|s| s.leaders()).unwrap_or_default();
    let best = |g: &Vec<usize>| g.iter().any(|i| leaders.contains(i));
    let best: Vec<bool> = alike(records).iter().map(best).collect();
    let all = folded(records);
    out += &identical(&alike(records), records, width);
    let left = main_table(&all, &best).render_fit(2, width, 1) + &process_table(&all, width);
    let right = latency_table(&all, |r| &r.read, "READ", width)
        + &latency_table(&all, |r| &r.write, "WRITE", width);
    out += &side_by_side(&left, &right, width);
    out += &warnings(records, judged.is_some(), usize::MAX, prose);
    if let Some(note) = verdict::cpu_note(records) {
        paint(&mut out, "  ! ", WARN);
        out += wrap(&note, 4, prose).trim_start();
    }
    out
}

/// Returns the meaning of the columns.
pub fn legend(width: usize) -> String {
    let text = "RATE: bytes completed per second of counted time. REQUESTS: sent to the device. \
                MERGES: bios and requests that became part of another. SEEK: mean distance \
                between one request and the next. BUSY: share of the time the device worked. IN \
                DEVICE: mean number of requests in the device. WAITING: mean number of bios that \
                wait for the device. READ and WRITE LATENCY: time from the intended submission of \
                a bio to its completion, including all waiting for a request or tag. OPERATION: \
                latency as the program measures it, which starts later if the task slept for a \
                tag. On flash, the submitter is charged for the scheduler's CPU time; on replayed \
                traces, arrays and hard disks, this CPU time is not charged.";
    let mut out = String::new();
    paint(&mut out, &wrap(text, 0, width.min(PROSE)), DIM);
    out
}

/// Names the schedulers that no current kernel has, for example "cfq and noop are in no kernel
/// since 5.0, and run with the page cache and file system of their time". The text is empty if
/// there are none.
fn retired(records: &[Record]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for r in records
        .iter()
        .filter(|r| r.scheduler.layer == "single-queue")
    {
        if !names.contains(&&*r.scheduler.spec) {
            names.push(&r.scheduler.spec);
        }
    }
    let (are, run, their) = match names.len() {
        0 => return String::new(),
        1 => ("is", "runs", "its"),
        _ => ("are", "run", "their"),
    };
    let files = match records.iter().any(on_files) {
        true => format!(", and {run} with the page cache and file system of {their} time"),
        false => String::new(),
    };
    format!(
        "{} {are} in no kernel since 5.0{files}",
        verdict::list(&names)
    )
}

/// Returns the same as a sentence.
pub fn eras(records: &[Record], width: usize) -> String {
    match retired(records).as_str() {
        "" => String::new(),
        text => wrap(&format!("{text}."), 0, width.min(PROSE)),
    }
}
