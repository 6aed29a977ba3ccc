//! `seekwell guest diff`: the first request at which two kernels differ.

use super::failed;
use super::requests::{Requests, seconds};
use super::work::{Done, cells, run_all};
use crate::cli::GuestDiff;
use crate::fail::Failure;
use crate::out::{Out, columns};
use seekwell_core::Op;
use seekwell_guest::{Kernel, LogEntry, cache_dir};
use seekwell_report::style::{BAD, GOOD, HEAD, NAME};
use seekwell_report::table::{Align, Table, paint, painted};
use seekwell_report::units::three;
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
        return Err(Failure::input(format!(
            "the command failed with exit code {} under kernel {}, scheduler {}, seed {}; the \
             kernels were not compared",
            d.outcome.exit, d.cell.kernel.name, d.cell.scheduler, d.cell.seed
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
            "different": different, "runs": rows,
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

fn shown(a: &GuestDiff, pairs: &[Pair<'_>]) -> String {
    let mut out = String::new();
    paint(&mut out, &format!("Kernels {} and {}", a.a, a.b), HEAD);
    out += &format!(
        ", {} on {}, {} seeds\n\n",
        a.setup.fs,
        a.setup.device.join(" + "),
        a.setup.seeds.max(1)
    );
    let mut t = Table::new(&[
        ("SCHEDULER", Align::Left),
        ("SEEDS THAT DIFFER", Align::Right),
        ("TIME A s", Align::Right),
        ("TIME B s", Align::Right),
        ("READ p99 A ms", Align::Right),
        ("READ p99 B ms", Align::Right),
    ]);
    for scheduler in &a.setup.schedulers {
        let own: Vec<_> = pairs
            .iter()
            .filter(|p| p.0.cell.scheduler == *scheduler)
            .collect();
        let differ = own.iter().filter(|p| p.2.is_some()).count();
        let n = own.len().max(1) as f64;
        let time = |f: &dyn Fn(&&Pair<'_>) -> f64| own.iter().map(f).sum::<f64>() / n;
        let p99 = |d: &Done| {
            Requests::of_run(&d.outcome)
                .reads
                .quantile_ms(0.99)
                .unwrap_or(0.0)
        };
        let style = if differ == 0 { GOOD } else { BAD };
        t.row(vec![
            painted(scheduler.clone(), NAME),
            painted(format!("{differ} of {}", own.len()), style),
            three(time(&|p| seconds(&p.0.outcome))).into(),
            three(time(&|p| seconds(&p.1.outcome))).into(),
            three(time(&|p| p99(p.0))).into(),
            three(time(&|p| p99(p.1))).into(),
        ]);
    }
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
