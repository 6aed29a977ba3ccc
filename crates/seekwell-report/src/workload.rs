//! Reports about workloads: the list of workloads, and the results of a run.

use crate::compare::{alike, folded};
use crate::style::{DIM, GOOD, HEAD, NAME, PLAIN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::{bytes, count, rate, share, three, time_ns};
use seekwell_core::result::{Operation, Record, TaskPart};
use seekwell_lab::analysis::single::{Standing, standing};
use seekwell_workload::{Needs, Workload};

/// Lists the workloads, one line each.
pub fn list(all: &[&Workload], width: usize) -> String {
    let mut t = Table::new(&[
        ("NAME", Align::Left),
        ("ON", Align::Left),
        ("WHAT IT DOES", Align::Left),
    ]);
    for w in all {
        t.row(vec![
            painted(w.name, NAME),
            needs(w.needs).into(),
            w.summary.into(),
        ]);
    }
    t.render_within(0, width)
}

fn needs(n: Needs) -> &'static str {
    match n {
        Needs::Directory => "files",
        Needs::Device => "raw device",
    }
}

/// Returns the page of a workload.
pub fn page(w: &Workload, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, w.name, NAME);
    out += &format!(": {}\n", w.summary);
    for (head, text) in [
        ("METRIC", w.metric),
        ("STRESSES", w.stresses),
        ("SOURCE", w.source),
    ] {
        out.push('\n');
        paint(&mut out, head, HEAD);
        out.push('\n');
        out += &wrap(text, 2, width);
    }
    out.push('\n');
    paint(&mut out, "PARAMETERS", HEAD);
    paint(&mut out, "  --param NAME=VALUE\n", DIM);
    for p in w.params {
        out += "  ";
        paint(&mut out, p.name, NAME);
        out += &format!("  default {}, {}\n", p.default, p.kind);
        out += &wrap(p.summary, 6, width);
    }
    if !w.profiles.is_empty() {
        out.push('\n');
        paint(&mut out, "PROFILES", HEAD);
        paint(&mut out, "  --param profile=NAME\n", DIM);
        for p in w.profiles {
            let set: Vec<String> = p.set.iter().map(|(k, v)| format!("{k}={v}")).collect();
            out += "  ";
            paint(&mut out, p.name, NAME);
            out += &format!("  {}\n", p.summary);
            let set = if set.is_empty() {
                "the defaults".to_owned()
            } else {
                set.join(" ")
            };
            out += &wrap(&set, 6, width);
        }
    }
    out
}

fn label(r: &Record) -> Cell {
    let spec = &r.scheduler.spec;
    painted(if spec.is_empty() { "-" } else { spec }, NAME)
}

/// Returns the metrics, one row per run. The best value of the first metric is highlighted.
pub fn metrics(records: &[Record], width: usize) -> String {
    let best = standing(records).as_ref().and_then(Standing::winner);
    let best = best.map(|b| alike(records).iter().position(|g| g.contains(&b)));
    let best = best.flatten();
    let records = &*folded(records);
    let Some(most) = records.iter().max_by_key(|r| r.more_metrics.len()) else {
        return String::new();
    };
    let all: Vec<_> = most.metric.iter().chain(&most.more_metrics).collect();
    let heads: Vec<String> = all
        .iter()
        .map(|m| match m.unit.strip_prefix(m.name.as_str()) {
            Some(per) if per.starts_with('/') => m.unit.clone(),
            _ => format!("{}, {}", m.name, m.unit),
        })
        .collect();
    let mut columns = vec![("SCHEDULER", Align::Left)];
    columns.extend(heads.iter().map(|h| (h.as_str(), Align::Right)));
    let mut t = Table::new(&columns);
    for (i, r) in records.iter().enumerate() {
        let mut row = vec![label(r)];
        for m in &all {
            let own = r.metric.iter().chain(&r.more_metrics);
            let value = own.clone().find(|o| o.name == m.name).map(|o| o.value);
            let style = if best == Some(i) && row.len() == 1 {
                GOOD
            } else {
                PLAIN
            };
            row.push(painted(value.map_or("-".to_owned(), three), style));
        }
        t.row(row);
    }
    t.render_fit(2, width, 1)
}

/// Returns the operations of the workload by kind. The latency is that which the program saw. The
/// rate covers the time from the first to the last operation of a kind, and has the standard
/// deviation between seconds.
pub fn operations(records: &[Record], width: usize) -> String {
    let records = &*folded(records);
    let mut kinds: Vec<&str> = Vec::new();
    let all = records.iter().flat_map(|r| &r.operations);
    for o in all.filter(|o| o.latency.count() > 0) {
        if !kinds.contains(&&*o.kind) {
            kinds.push(&o.kind);
        }
    }
    let mut t = Table::new(&[
        ("OPERATION", Align::Left),
        ("SCHEDULER", Align::Left),
        ("COUNT", Align::Right),
        ("A SECOND", Align::Right),
        ("SD", Align::Right),
        ("RATE", Align::Right),
        ("MEAN", Align::Right),
        ("P50", Align::Right),
        ("P99", Align::Right),
        ("P99.9", Align::Right),
        ("MAX", Align::Right),
    ]);
    for kind in &kinds {
        let mut first = true;
        for r in records {
            if let Some(o) = r.operation(kind).filter(|o| o.latency.count() > 0) {
                t.row(operation(if first { kind } else { "" }, r, o));
                first = false;
            }
        }
    }
    if kinds.is_empty() {
        String::new()
    } else {
        // If the table is too wide, these columns are omitted in this order.
        t.without(&["SD", "P50", "P99.9", "RATE"], 2, width)
            .render_fit(2, width, 2)
    }
}

/// Returns the work of the workloads that ran alongside, while the clock of the measured workload
/// ran: the number of operations by kind, and bytes.
pub fn background_tables(records: &[Record], width: usize) -> String {
    let records = &*folded(records);
    let names = records.iter().flat_map(|r| &r.beside).map(|b| &*b.name);
    let mut unlike: Vec<&str> = Vec::new();
    for n in names {
        if !unlike.contains(&n) {
            unlike.push(n);
        }
    }
    let mut t = Table::new(&[
        ("BESIDE", Align::Left),
        ("SCHEDULER", Align::Left),
        ("OPERATION", Align::Left),
        ("COUNT", Align::Right),
        ("MEAN", Align::Right),
        ("P99", Align::Right),
        ("MAX", Align::Right),
        ("READ", Align::Right),
        ("WRITTEN", Align::Right),
    ]);
    for name in &unlike {
        let parts = |r: &Record| r.beside.iter().position(|b| b.name == *name);
        let there = records
            .iter()
            .filter_map(|r| Some((r, &r.beside[parts(r)?])));
        for (i, (r, b)) in there.enumerate() {
            let most = b.operations.iter().max_by_key(|o| o.latency.count());
            let most = most.filter(|o| o.latency.count() > 0);
            let l = |f: fn(&Operation) -> String| most.map_or("-".to_owned(), f).into();
            let moved = |f: fn(&TaskPart) -> u64| b.tasks.iter().map(f).sum::<u64>() as f64;
            t.row(vec![
                if i == 0 { *name } else { "" }.into(),
                label(r),
                l(|o| o.kind.clone()),
                l(|o| count(o.latency.count())),
                l(|o| time_ns(o.latency.mean_ns())),
                l(|o| time_ns(o.latency.percentile_ns(99.0) as f64)),
                l(|o| time_ns(o.latency.max_ns() as f64)),
                bytes(moved(|t| t.read_bytes)).into(),
                bytes(moved(|t| t.written_bytes)).into(),
            ]);
        }
    }
    if unlike.is_empty() {
        String::new()
    } else {
        t.without(&["P99", "OPERATION"], 2, width)
            .render_fit(2, width, 2)
    }
}

fn operation(kind: &str, r: &Record, o: &Operation) -> Vec<Cell> {
    let l = &o.latency;
    let p = |q: f64| Cell::from(time_ns(l.percentile_ns(q) as f64));
    let moved = if o.bytes > 0 {
        rate(o.rate(o.bytes as f64))
    } else {
        String::new()
    };
    vec![
        kind.into(),
        label(r),
        count(l.count()).into(),
        three(o.rate(l.count() as f64)).into(),
        o.deviation().map_or(String::new(), three).into(),
        moved.into(),
        time_ns(l.mean_ns()).into(),
        p(50.0),
        p(99.0),
        p(99.9),
        time_ns(l.max_ns() as f64).into(),
    ]
}

/// Returns the times of the marks (events of a run), one line per run. Marks with the same name are
/// merged: their number and the times of the first and the last are shown.
pub fn marks(records: &[Record], width: usize) -> String {
    let mut out = String::new();
    for r in &*folded(records) {
        let mut names: Vec<(&str, Vec<u64>)> = Vec::new();
        for m in &r.marks {
            match names.iter_mut().find(|n| n.0 == m.name) {
                Some(n) => n.1.push(m.at_ns),
                None => names.push((&m.name, vec![m.at_ns])),
            }
        }
        let seconds = |ns: &u64| three(*ns as f64 / 1e9);
        let told: Vec<String> = names
            .iter()
            .map(|(name, at)| match at.as_slice() {
                [only] => format!("{name} at {} s", seconds(only)),
                [first, .., last] => {
                    let (first, last) = (seconds(first), seconds(last));
                    format!(
                        "{name} {} times, first at {first} s, last at {last} s",
                        count(at.len() as u64)
                    )
                }
                [] => String::new(),
            })
            .collect();
        if !told.is_empty() {
            let line = format!(
                "Events, {} (the clock measures the result): {}",
                r.scheduler.spec,
                told.join("; ")
            );
            out += &wrap(&line, 2, width);
        }
    }
    out
}

/// Returns a task's name without its number, for example "main/reader" for "main/reader17".
fn group_of(path: &str) -> &str {
    path.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Returns a table of the workload's tasks, by kind: their operations and their share of all
/// operations. The text is empty if fewer than two tasks worked.
pub fn tasks(records: &[Record], width: usize) -> String {
    let records = &*folded(records);
    let worked = |r: &Record| r.tasks.iter().filter(|t| t.ops > 0).count();
    if records.iter().all(|r| worked(r) < 2) {
        return String::new();
    }
    let mut t = Table::new(&[
        ("TASKS", Align::Left),
        ("SCHEDULER", Align::Left),
        ("N", Align::Right),
        ("OPERATIONS", Align::Right),
        ("SHARE", Align::Right),
        ("LEAST", Align::Right),
        ("MOST", Align::Right),
        ("READ", Align::Right),
        ("WRITTEN", Align::Right),
    ]);
    let mut groups: Vec<&str> = Vec::new();
    for task in records.iter().flat_map(|r| &r.tasks).filter(|t| t.ops > 0) {
        if !groups.contains(&group_of(&task.path)) {
            groups.push(group_of(&task.path));
        }
    }
    for group in groups {
        let mut first = true;
        for r in records {
            let of = r.tasks.iter().filter(|t| group_of(&t.path) == group);
            let of: Vec<_> = of.collect();
            let all: u64 = r.tasks.iter().map(|t| t.ops).sum();
            let ops: u64 = of.iter().map(|t| t.ops).sum();
            let (Some(least), Some(most)) = (
                of.iter().map(|t| t.ops).min(),
                of.iter().map(|t| t.ops).max(),
            ) else {
                continue;
            };
            t.row(vec![
                if first { group } else { "" }.into(),
                label(r),
                count(of.len() as u64).into(),
                count(ops).into(),
                share(ops, all).into(),
                count(least).into(),
                count(most).into(),
                bytes(of.iter().map(|t| t.read_bytes).sum::<u64>() as f64).into(),
                bytes(of.iter().map(|t| t.written_bytes).sum::<u64>() as f64).into(),
            ]);
            first = false;
        }
    }
    t.render_fit(2, width, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::result::MarkAt;

    fn record() -> Record {
        let task = |path: &str, ops, read_bytes| TaskPart {
            path: path.into(),
            ops,
            read_bytes,
            ..TaskPart::default()
        };
        let mark = |name: &str, at_ms: u64| MarkAt {
            at_ns: at_ms * 1_000_000,
            name: name.into(),
            task: String::new(),
        };
        let mut r = Record {
            tasks: vec![
                task("main", 0, 0),
                task("main/reader0", 10, 4096),
                task("main/reader1", 30, 8192),
                task("main/writer0", 60, 0),
            ],
            marks: vec![
                mark("clock start", 500),
                mark("throttling begins", 600),
                mark("throttling begins", 700),
                mark("clock stop", 9000),
            ],
            ..Record::default()
        };
        r.scheduler.spec = "cfq".into();
        r
    }

    #[test]
    fn tasks_of_a_kind_are_summarised_with_minimum_and_maximum() {
        let text = tasks(&[record()], 100);
        // The words are compared without the schedulers' names, which are styled.
        let words = |l: &'static str| l.split_whitespace().collect::<Vec<_>>();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|l| {
                l.split_whitespace()
                    .filter(|w| !w.contains("cfq"))
                    .collect()
            })
            .collect();
        assert_eq!(
            lines[1],
            words("main/reader 2 40 40.0 % 10 30 12.3 kB 0 B"),
            "{text}"
        );
        assert_eq!(lines[2], words("main/writer 1 60 60.0 % 60 60 0 B 0 B"));
        assert_eq!(lines.len(), 3);
        let mut one = record();
        one.tasks.truncate(2);
        assert_eq!(tasks(&[one], 100), "", "a lone task has no share");
    }

    #[test]
    fn marks_with_one_name_are_summarised() {
        let text = marks(&[record()], 200);
        assert_eq!(
            text.trim(),
            "Events, cfq (the clock measures the result): clock start at 0.500 s; throttling \
             begins 2 times, first at 0.600 s, last at 0.700 s; clock stop at 9.00 s"
        );
        assert_eq!(marks(&[Record::default()], 200), "");
    }
}
