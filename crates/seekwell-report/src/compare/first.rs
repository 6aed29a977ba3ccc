//! The summary of the runs of one workload or trace, which fits one screen. `--details` shows all
//! tables.

use super::{PROSE, alike, covered, folded, hang, identical, label, rated, warnings};
use crate::style::{GOOD, HEAD, PLAIN, WARN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::{rate, share, three, time_ns};
use crate::verdict;
use seekwell_core::result::{Direction, Record};
use seekwell_lab::analysis::single::standing;

/// Default height of a terminal, in lines.
pub const LINES: usize = 24;
/// Number of lines that the table of each further device may have.
const FURTHER: usize = 8;

/// Returns the number of lines for a summary of this many devices.
pub const fn lines(devices: usize) -> usize {
    LINES + FURTHER * devices.saturating_sub(1)
}
/// Maximum number of lines for warnings in a summary.
const WARNINGS: usize = 3;

/// Returns a table with one row per scheduler: its result, its rate, and the latency of reads and
/// writes.
fn table(records: &[Record], best: &[bool], width: usize) -> Table {
    let metric = records.iter().find_map(|r| r.metric.as_ref());
    let mut columns = vec![("SCHEDULER", Align::Left)];
    let unit = metric.map(|m| m.unit.clone()).unwrap_or_default();
    if metric.is_some() {
        columns.push((&unit, Align::Right));
    }
    columns.push(("RATE", Align::Right));
    type Way = fn(&Record) -> &Direction;
    let ways: [(Way, [&str; 2]); 2] = [
        (|r| &r.read, ["READ MEAN", "READ P99"]),
        (|r| &r.write, ["WRITE MEAN", "WRITE P99"]),
    ];
    let used = |way: Way| records.iter().any(|r| way(r).ios > 0);
    for (_, heads) in ways.iter().filter(|(way, _)| used(*way)) {
        columns.extend(heads.map(|h| (h, Align::Right)));
    }
    columns.push(("BUSY", Align::Right));
    let mut t = Table::new(&columns);
    for (i, r) in records.iter().enumerate() {
        let mut row = vec![label(r)];
        if metric.is_some() {
            let value = r.metric.as_ref().map(|m| three(m.value));
            let style = if best[i] { GOOD } else { PLAIN };
            row.push(match verdict::at_limit(r) {
                Some(longer) => painted(longer, WARN),
                None => painted(value.unwrap_or_else(|| "-".to_owned()), style),
            });
        }
        row.push(rated(r, rate(r.bytes_per_sec())));
        for (way, _) in ways.iter().filter(|(way, _)| used(*way)) {
            let d = way(r);
            if d.ios == 0 {
                row.extend([Cell::from("-"), Cell::from("-")]);
                continue;
            }
            row.push(time_ns(d.latency.mean_ns()).into());
            row.push(time_ns(d.latency.percentile_ns(99.0) as f64).into());
        }
        row.push(share(r.device_busy_ns.min(r.span_ns()), r.span_ns()).into());
        t.row(row);
    }
    t.without(&["BUSY", "WRITE MEAN", "READ MEAN", "RATE"], 2, width)
}

/// Returns the summary of the runs: the title, the verdict, and one line per scheduler if they fit
/// into `lines`. With several seeds, the verdict contains these lines already. `judged` is as in
/// [`super::comparison`].
pub fn screen(
    title: &str,
    records: &[Record],
    judged: Option<&str>,
    lines: usize,
    width: usize,
) -> String {
    let prose = width.min(PROSE);
    let mut out = String::new();
    paint(&mut out, &hang(title, 2, width), HEAD);
    if records.is_empty() {
        return out;
    }
    let mut warned = warnings(records, judged.is_some(), WARNINGS, prose);
    if let Some(note) = verdict::cpu_note(records) {
        paint(&mut warned, "  ! ", WARN);
        warned += wrap(&note, 4, prose).trim_start();
    }
    let mut own = String::new();
    if let Some(judged) = judged {
        out += judged;
        own = wrap(&format!("Seed {} only:", records[0].seed), 2, prose);
    } else {
        if let Some(said) = verdict::words(records) {
            paint(&mut out, "  Verdict: ", HEAD);
            out += wrap(&said, 11, prose).trim_start();
        }
        out += &covered(records, width);
    }
    own += &identical(&alike(records), records, width);
    let standing = standing(records).filter(|_| judged.is_none());
    let leaders = standing.map(|s| s.leaders()).unwrap_or_default();
    let best = |g: &Vec<usize>| g.iter().any(|i| leaders.contains(i));
    let best: Vec<bool> = alike(records).iter().map(best).collect();
    own += &table(&folded(records), &best, width).render_fit(2, width, 1);
    let used = |text: &str| text.lines().count();
    if judged.is_none() || used(&out) + used(&own) + used(&warned) <= lines {
        out += &own;
    }
    out + &warned
}
