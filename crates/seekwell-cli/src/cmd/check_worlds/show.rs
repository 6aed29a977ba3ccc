//! The comparison as text and as JSON.

use crate::cli::CheckWorlds;
use seekwell_core::prose::in_prose;
use seekwell_evidence::worlds::{BUSY, Checked, Grounds, Row, Score, too_late};
use seekwell_report::style::{BAD, DIM, GOOD, HEAD, WARN};
use seekwell_report::table::{Align, Cell, Table, painted};
use seekwell_report::units;
use serde_json::{Value, json};

fn percent(x: f64) -> String {
    if x.is_finite() {
        units::signed_percent(x * 100.0, 1)
    } else {
        "all".to_owned()
    }
}

fn figure(row: &Row, x: f64) -> Cell {
    match row.unit.as_str() {
        "requests" | "KiB" => units::count(x as u64).into(),
        _ => units::three(x).into(),
    }
}

/// Returns the table of one workload.
pub fn text(c: &Checked) -> String {
    let v = &c.verdict;
    let mut s = format!(
        "{HEAD}{}{HEAD:#} under {}, {:.1} s real, {:.1} s simulated\n",
        v.workload,
        in_prose(&c.host.facts.scheduler),
        c.real.seconds,
        c.sim.seconds
    );
    let mut t = Table::new(&[
        ("", Align::Left),
        ("", Align::Left),
        ("real", Align::Right),
        ("simulated", Align::Right),
        ("differ by", Align::Right),
        ("limit", Align::Right),
        ("", Align::Left),
        ("null model", Align::Right),
    ]);
    for row in &v.rows {
        let verdict = match row.agrees() {
            Some(true) => painted("agrees", GOOD),
            Some(false) => painted("differs", BAD),
            None if row.limit.is_some() => painted("not judged", WARN),
            None => painted("reported", DIM),
        };
        t.row(vec![
            row.name.as_str().into(),
            row.unit.as_str().into(),
            figure(row, row.real),
            figure(row, row.sim),
            percent(row.difference()).into(),
            row.allowed().into(),
            verdict,
            figure(row, row.null),
        ]);
    }
    s += &t.render(2);
    if let Some(account) = &c.account {
        let late = account["late"]["p99_ns"].as_f64().unwrap_or_default();
        s += &format!(
            "  the modelled disk was {} (p99 of the delays of completions: {})\n",
            match account["verdict"].as_str() {
                Some("invalid") if too_late(account) => "too late to judge rates",
                Some("invalid") => "late for single completions, but not on average",
                Some(word) => word,
                None => "not judged",
            },
            units::time_ns(late)
        );
    }
    if c.host.pressure > BUSY && c.grounds != Grounds::Nothing {
        s += &format!(
            "  the machine was busy: tasks waited for a CPU {:.0} % of the time. Figures that depend \
             on time are not judged\n",
            c.host.pressure
        );
    }
    for w in &v.warnings {
        s += &format!("  {w}\n");
    }
    s + "\n"
}

fn sum(all: &[Checked]) -> Score {
    all.iter()
        .fold(Score::default(), |s, c| s.plus(c.verdict.score()))
}

/// Returns the summary line; `of` is the number of requested workloads.
pub fn closing(all: &[Checked], of: usize) -> String {
    let s = sum(all);
    if all.iter().all(|c| c.grounds == Grounds::Nothing) {
        let figures: usize = all.iter().map(|c| c.verdict.rows.len()).sum();
        return format!(
            "{} of {of} workloads compared, {figures} figures: not judged, because this disk has \
             no model",
            all.len()
        );
    }
    let good = all.iter().filter(|c| c.verdict.agrees() == Some(true));
    let mut line = format!(
        "{} of {of} workloads agree; {} of {} figures are within their limits, {} for the null \
         model",
        good.count(),
        s.within,
        s.judged,
        s.null_within,
    );
    if s.left > 0 {
        let open = all.iter().filter(|c| c.verdict.agrees().is_none()).count();
        line += &format!(
            "; {} figures and {open} workloads were not judged, because the machine was busy",
            s.left
        );
    }
    line
}

/// Returns the whole comparison as JSON.
pub fn json(a: &CheckWorlds, all: &[Checked], missed: &[Value]) -> Value {
    let one = |c: &Checked| {
        json!({
            "verdict": c.verdict, "agrees": c.verdict.agrees(), "score": c.verdict.score(),
            "real": c.real, "simulated": c.sim, "host": c.host, "disk": c.account,
        })
    };
    json!({
        "device": a.device, "raw": a.raw, "score": sum(all),
        "workloads": all.iter().map(one).collect::<Vec<_>>(), "missed": missed,
    })
}
