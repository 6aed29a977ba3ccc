//! `seekwell guest diff`: the first request at which two kernels differ.

use super::requests::{Requests, seconds};
use super::work::{Done, cells, run_all};
use crate::cli::GuestDiff;
use crate::fail::Failure;
use crate::guests::failed;
use crate::out::{Out, columns};
use seekwell_core::Op;
use seekwell_guest::{Kernel, LogEntry, cache_dir};
use seekwell_lab::stats::{Better, paired};
use seekwell_report::style::{BAD, GOOD, HEAD, NAME};
use seekwell_report::table::{Align, Table, paint, painted};
use seekwell_report::units::three;
use serde::Serialize;
use serde_json::json;

/// Requests that are shown before and after the first difference.
const AROUND: usize = 3;

/// The first request that differs between two runs, counted from the start of the command.
struct First {
    disk: usize,
    index: usize,
}

/// The two runs of a scheduler and a seed, with their first difference.
type Pair<'a> = (&'a Done, &'a Done, Option<First>);

/// Returns the requests of a disk from the start of the command. Requests before it depend on the
/// boot, whose time differs by microseconds between any two builds.
fn requests(d: &Done, disk: usize) -> &[LogEntry] {
    let log = d.outcome.logs.get(disk).map_or(&[][..], Vec::as_slice);
    let first = log.partition_point(|e| e.arrive_ns < d.outcome.started_ns);
    &log[first..]
}

/// Returns what the kernel decides: operation, position and size. Times follow from these.
fn decision(e: &LogEntry) -> (Op, u64, u32) {
    (e.op, e.sector.0, e.sectors.0)
}

/// Compares the decisions of two runs.
fn first_difference(a: &Done, b: &Done) -> Option<First> {
    let disks = a.outcome.logs.len().max(b.outcome.logs.len());
    let all = (0..disks).filter_map(|disk| {
        let (x, y) = (requests(a, disk), requests(b, disk));
        let pairs = x.iter().zip(y);
        let index = pairs
            .take_while(|(p, q)| decision(p) == decision(q))
            .count();
        (index < x.len().max(y.len())).then_some(First { disk, index })
    });
    let at = |d: &Done, f: &First| {
        let entry = requests(d, f.disk).get(f.index);
        entry.map_or(u64::MAX, |e| e.arrive_ns - d.outcome.started_ns)
    };
    all.min_by_key(|f| at(a, f).min(at(b, f)))
}

/// Returns the largest difference of a request's time since the start of the command, ns.
fn largest_shift_ns(a: &Done, b: &Done) -> u64 {
    let disks = 0..a.outcome.logs.len();
    let shifts = disks.flat_map(|disk| {
        let pairs = requests(a, disk).iter().zip(requests(b, disk));
        pairs.map(|(p, q)| {
            let (p, q) = (
                p.arrive_ns - a.outcome.started_ns,
                q.arrive_ns - b.outcome.started_ns,
            );
            p.abs_diff(q)
        })
    });
    shifts.max().unwrap_or(0)
}

fn entry_text(d: &Done, disk: usize, index: usize) -> String {
    let Some(e) = requests(d, disk).get(index) else {
        return "no request".to_owned();
    };
    let op = match e.op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Flush => "F",
        Op::Discard => "D",
        Op::WriteZeroes => "Z",
    };
    let latency = e.complete_ns.map(|t| (t - e.arrive_ns) as f64 / 1e6);
    format!(
        "{:.6} s {op} {}+{}, {} ms",
        (e.arrive_ns - d.outcome.started_ns) as f64 / 1e9,
        e.sector.0,
        e.sectors.0,
        latency.map_or("-".to_owned(), three)
    )
}

/// Runs the command.
pub fn run(a: &GuestDiff, _quiet: bool) -> Result<(), Failure> {
    let cache = cache_dir().map_err(failed)?;
    let find = |name: &str| Kernel::find(&cache, Some(name)).map_err(failed);
    let (ka, kb) = (find(&a.a)?, find(&a.b)?);
    let mut all = cells(&a.setup, &ka);
    let n = all.len();
    all.extend(cells(&a.setup, &kb));
    let done = run_all(&a.setup, all)?;
    // A command that fails at its start makes the same requests under every kernel.
    if let Some(d) = done.iter().find(|d| d.outcome.exit != 0) {
        let text = String::from_utf8_lossy(&d.outcome.stderr);
        let last = text.lines().rev().find(|l| !l.trim().is_empty());
        return Err(Failure::input(format!(
            "the kernels were not compared: the command failed with exit code {} under kernel {}, \
             scheduler {}, seed {}: {}",
            d.outcome.exit,
            d.cell.kernel.name,
            d.cell.scheduler,
            d.cell.seed,
            last.unwrap_or("no message")
        )));
    }
    let (of_a, of_b) = done.split_at(n.min(done.len()));
    let pairs: Vec<Pair<'_>> = of_a
        .iter()
        .zip(of_b)
        .map(|(x, y)| (x, y, first_difference(x, y)))
        .collect();
    let different = pairs.iter().filter(|p| p.2.is_some()).count();
    let mut out = Out::open(None)?;
    if a.setup.json {
        let rows: Vec<_> = pairs
            .iter()
            .map(|(x, y, first)| {
                json!({
                    "scheduler": x.cell.scheduler, "seed": x.cell.seed,
                    "identical": first.is_none(),
                    "first_difference": first.as_ref().map(|f| json!({
                        "disk": f.disk, "request": f.index,
                        "a": entry_text(x, f.disk, f.index),
                        "b": entry_text(y, f.disk, f.index),
                    })),
                    "largest_shift_ns": largest_shift_ns(x, y),
                    "seconds": [seconds(&x.outcome), seconds(&y.outcome)],
                })
            })
            .collect();
        out.json(&json!({
            "schema": 1, "command": "guest diff", "a": ka.name, "b": kb.name,
            "different": different, "runs": rows, "effects": effects(&a.setup.schedulers, &pairs),
        }))?;
    } else {
        out.text(&shown(a, &pairs))?;
    }
    out.done()?;
    match different {
        0 => Ok(()),
        _ => Err(Failure::Difference),
    }
}

/// A figure of a scheduler under both kernels: means over the seeds, and the ratio within seeds.
#[derive(Serialize)]
struct Effect {
    scheduler: String,
    figure: &'static str,
    a: f64,
    b: f64,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
}

impl Effect {
    fn interval_text(&self) -> String {
        match self.interval {
            Some((low, high)) => format!("{low:.3} to {high:.3}"),
            None => "unknown".to_owned(),
        }
    }
}

/// Returns the figures of each scheduler under both kernels.
fn effects(schedulers: &[String], pairs: &[Pair<'_>]) -> Vec<Effect> {
    type Figure = (&'static str, fn(&Done) -> Option<f64>);
    let figures: [Figure; 4] = [
        ("time, s", |d| Some(seconds(&d.outcome))),
        ("requests", |d| {
            let r = Requests::of_run(&d.outcome);
            let all = [&r.reads, &r.writes, &r.flushes];
            Some(all.iter().map(|k| k.latencies_ns.len()).sum::<usize>() as f64)
        }),
        ("read mean, ms", |d| {
            Requests::of_run(&d.outcome).reads.mean_ms()
        }),
        ("read p99, ms", |d| {
            Requests::of_run(&d.outcome).reads.quantile_ms(0.99)
        }),
    ];
    let mut all = Vec::new();
    for scheduler in schedulers {
        let own = || pairs.iter().filter(|p| p.0.cell.scheduler == *scheduler);
        for (figure, value) in figures {
            let a: Vec<Option<f64>> = own().map(|p| value(p.0)).collect();
            let b: Vec<Option<f64>> = own().map(|p| value(p.1)).collect();
            let mean = |v: &[Option<f64>]| {
                let known: Vec<f64> = v.iter().flatten().copied().collect();
                known.iter().sum::<f64>() / known.len() as f64
            };
            if a.iter().chain(&b).all(Option::is_none) {
                continue;
            }
            let p = paired(&b, &a, Better::Lower, false, None);
            all.push(Effect {
                scheduler: scheduler.clone(),
                figure,
                a: mean(&a),
                b: mean(&b),
                ratio: p.ratio,
                interval: p.ratio95,
            });
        }
    }
    all
}

/// Says what the two kernels chose at their first difference.
fn choice(a: &[LogEntry], b: &[LogEntry], index: usize) -> String {
    let (Some(x), Some(y)) = (a.get(index), b.get(index)) else {
        return "One kernel issues no further request.\n".to_owned();
    };
    let later = |e: &LogEntry, others: &[LogEntry]| {
        let rest = others.get(index + 1..).unwrap_or_default();
        rest.iter()
            .position(|o| decision(o) == decision(e))
            .map(|n| n + 1)
    };
    let after = |n: usize| match n {
        1 => "1 request later".to_owned(),
        n => format!("{n} requests later"),
    };
    match (later(x, b), later(y, a)) {
        (Some(n), Some(m)) => format!(
            "Another order: kernel B issues kernel A's request {}, and kernel A issues kernel B's \
             {}.\n",
            after(n),
            after(m)
        ),
        (Some(n), None) => format!(
            "Kernel B issues a request that kernel A does not issue, and kernel A's {}.\n",
            after(n)
        ),
        (None, Some(m)) => format!(
            "Kernel A issues a request that kernel B does not issue, and kernel B's {}.\n",
            after(m)
        ),
        (None, None) => "Each kernel issues a request that the other does not issue: another size \
                         or position.\n"
            .to_owned(),
    }
}

fn shown(a: &GuestDiff, pairs: &[Pair<'_>]) -> String {
    let mut out = String::new();
    paint(&mut out, &format!("Kernels {} and {}", a.a, a.b), HEAD);
    out += &format!(
        ", {} on {}, {} seeds\n\n",
        a.setup.fs,
        a.setup.device.join(" + "),
        a.setup.seeds.max(1)
    );
    let rows = effects(&a.setup.schedulers, pairs);
    let mut t = Table::new(&[
        ("SCHEDULER", Align::Left),
        ("FIGURE", Align::Left),
        ("KERNEL A", Align::Right),
        ("KERNEL B", Align::Right),
        ("B / A", Align::Right),
        ("95 % INTERVAL", Align::Left),
    ]);
    for r in &rows {
        t.row(vec![
            painted(r.scheduler.clone(), NAME),
            r.figure.into(),
            three(r.a).into(),
            three(r.b).into(),
            r.ratio.map_or("-".to_owned(), |x| format!("{x:.3}")).into(),
            r.interval_text().into(),
        ]);
    }
    let mut seeds = Table::new(&[
        ("SCHEDULER", Align::Left),
        ("SEEDS THAT DIFFER", Align::Right),
    ]);
    for scheduler in &a.setup.schedulers {
        let own = || pairs.iter().filter(|p| p.0.cell.scheduler == *scheduler);
        let differ = own().filter(|p| p.2.is_some()).count();
        let style = if differ == 0 { GOOD } else { BAD };
        seeds.row(vec![
            painted(scheduler.clone(), NAME),
            painted(format!("{differ} of {}", own().count()), style),
        ]);
    }
    out += &seeds.render_within(0, columns());
    out += "\n";
    out += &t.render_within(0, columns());
    let Some((x, y, Some(f))) = pairs.iter().find(|p| p.2.is_some()) else {
        let shift = pairs.iter().map(|(x, y, _)| largest_shift_ns(x, y)).max();
        out += &match shift.unwrap_or(0) {
            0 => {
                "\nAll requests are identical: operations, positions, sizes and times.\n".to_owned()
            }
            ns => format!(
                "\nAll requests are identical: operations, positions and sizes. Their times differ by \
                 up to {}.\n",
                seekwell_report::units::time_ns(ns as f64)
            ),
        };
        return out;
    };
    out += &format!(
        "\nFirst difference under {}, seed {}: request {} of disk {} since the start of the command\n",
        x.cell.scheduler,
        x.cell.seed,
        f.index + 1,
        f.disk + 1
    );
    let (la, lb) = (requests(x, f.disk), requests(y, f.disk));
    out += &choice(la, lb, f.index);
    let mut t = Table::new(&[
        ("REQUEST", Align::Right),
        ("KERNEL A", Align::Left),
        ("KERNEL B", Align::Left),
    ]);
    for i in f.index.saturating_sub(AROUND)..=f.index + AROUND {
        if i >= la.len().max(lb.len()) {
            break;
        }
        let same = la.get(i).map(decision) == lb.get(i).map(decision);
        let style = if same { NAME } else { BAD };
        t.row(vec![
            (i + 1).to_string().into(),
            painted(entry_text(x, f.disk, i), style),
            painted(entry_text(y, f.disk, i), style),
        ]);
    }
    out += &t.render_within(0, columns());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::{Sector, Sectors};

    fn log(sectors: &[u64]) -> Vec<LogEntry> {
        let entry = |s: &u64| LogEntry {
            arrive_ns: 0,
            complete_ns: None,
            op: Op::Read,
            sector: Sector(*s),
            sectors: Sectors(8),
            error: false,
        };
        sectors.iter().map(entry).collect()
    }

    #[test]
    fn choice_says_whether_order_or_requests_differ() {
        let a = log(&[1, 2, 3, 4]);
        let other = choice(&a, &log(&[1, 3, 4, 2]), 1);
        assert!(
            other.contains("kernel A's request 2 requests later"),
            "{other}"
        );
        assert!(other.contains("kernel B's 1 request later"), "{other}");
        let new = choice(&a, &log(&[1, 9, 2, 3]), 1);
        assert!(
            new.contains("Kernel B issues a request that kernel A does not issue"),
            "{new}"
        );
        let both = choice(&a, &log(&[1, 9, 8, 7]), 1);
        assert!(both.contains("Each kernel"), "{both}");
        assert!(choice(&a, &log(&[1]), 1).contains("no further request"));
    }
}
