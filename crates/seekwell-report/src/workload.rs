//! Programs above the disk: what there is to run, and what a run of one gave.

use crate::style::{DIM, GOOD, HEAD, NAME, PLAIN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::{count, rate, three, time_ns};
use crate::verdict::{self, Verdict};
use seekwell_core::result::{Operation, Record};
use seekwell_workload::{Needs, Workload};

/// One line a workload.
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

/// All about one.
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

/// Metrics, a line a run; the best of the first stands out.
pub fn metrics(records: &[Record]) -> String {
    let Some(most) = records.iter().max_by_key(|r| r.more_metrics.len()) else {
        return String::new();
    };
    let best = verdict::of(records).as_ref().and_then(Verdict::winner);
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
    t.render(2)
}

/// Operations of the program by kind: latency as the program saw it.
pub fn operations(records: &[Record]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for o in records.iter().flat_map(|r| &r.operations) {
        if !kinds.contains(&&*o.kind) {
            kinds.push(&o.kind);
        }
    }
    let mut t = Table::new(&[
        ("OPERATION", Align::Left),
        ("SCHEDULER", Align::Left),
        ("COUNT", Align::Right),
        ("A SECOND", Align::Right),
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
            if let Some(o) = r.operation(kind) {
                t.row(operation(if first { kind } else { "" }, r, o));
                first = false;
            }
        }
    }
    if kinds.is_empty() {
        String::new()
    } else {
        t.render(2)
    }
}

fn operation(kind: &str, r: &Record, o: &Operation) -> Vec<Cell> {
    let l = &o.latency;
    let p = |q: f64| Cell::from(time_ns(l.percentile_ns(q) as f64));
    let bytes = if o.bytes > 0 {
        rate(r.rate(o.bytes as f64))
    } else {
        String::new()
    };
    vec![
        kind.into(),
        label(r),
        count(l.count()).into(),
        three(r.rate(l.count() as f64)).into(),
        bytes.into(),
        time_ns(l.mean_ns()).into(),
        p(50.0),
        p(99.0),
        p(99.9),
        time_ns(l.max_ns() as f64).into(),
    ]
}
