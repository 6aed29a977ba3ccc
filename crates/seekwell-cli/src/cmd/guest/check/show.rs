//! Prints the comparison.

use super::rows::{COUNT_TOLERANCE, RESULT_TOLERANCE, Row, Total, Verdict};
use crate::cli::GuestCheck;
use crate::out::columns;
use seekwell_report::style::{BAD, GOOD, HEAD, NAME};
use seekwell_report::table::{Align, Table, paint, painted};
use seekwell_report::units::{signed_percent, three};

fn percent(row: &Row) -> String {
    match row.kernel == 0.0 {
        true => "-".to_owned(),
        false => signed_percent(100.0 * row.error(), 1),
    }
}

fn word(v: Verdict) -> &'static str {
    match v {
        Verdict::Right => "right",
        Verdict::Undecided => "undecided",
        Verdict::Wrong => "wrong",
    }
}

/// Returns the totals by kind, beside the baseline.
pub fn totals(rows: &[Row]) -> String {
    let mut text = String::new();
    for (count, what, tolerance) in [
        (false, "Results", RESULT_TOLERANCE),
        (true, "Counts of requests", COUNT_TOLERANCE),
    ] {
        let own = || rows.iter().filter(|r| r.count == count);
        let first = rows.first().map_or("", |r| r.scheduler.as_str());
        let others = || own().filter(|r| r.scheduler != first);
        text += &format!(
            "{what} (within {:.0} %): {}. Without the first scheduler: {}; the baseline of no \
             difference between schedulers: {}.\n",
            100.0 * tolerance,
            Total::of(own().map(|r| r.verdict)).words(),
            Total::of(others().map(|r| r.verdict)).words(),
            Total::of(others().map(|r| r.baseline_verdict)).words(),
        );
    }
    text
}

/// Returns the rows that are shown without `--details`: all results, and the counts that are not
/// right.
fn shown<'a>(a: &GuestCheck, rows: &'a [Row]) -> Vec<&'a Row> {
    let all = rows.iter();
    all.filter(|r| a.details || !r.count || r.verdict != Verdict::Right)
        .collect()
}

/// Returns the table for a terminal.
pub fn table(a: &GuestCheck, kernel: &str, rows: &[Row]) -> String {
    let mut out = String::new();
    paint(&mut out, &format!("Simulation and Linux {kernel}"), HEAD);
    out += &format!(" on {}, means over {} seeds\n\n", a.device, a.seeds.max(1));
    let mut t = Table::new(&[
        ("WORKLOAD", Align::Left),
        ("FIGURE", Align::Left),
        ("SCHEDULER", Align::Left),
        ("SIMULATED", Align::Right),
        ("KERNEL", Align::Right),
        ("ERROR", Align::Right),
        ("VERDICT", Align::Left),
    ]);
    for r in shown(a, rows) {
        t.row(vec![
            r.workload.clone().into(),
            r.figure.clone().into(),
            painted(r.scheduler.clone(), NAME),
            three(r.simulated).into(),
            three(r.kernel).into(),
            percent(r).into(),
            match r.verdict {
                Verdict::Right => painted(word(r.verdict), GOOD),
                Verdict::Undecided => word(r.verdict).into(),
                Verdict::Wrong => painted(word(r.verdict), BAD),
            },
        ]);
    }
    out + &t.render_within(0, columns()) + "\n"
}

/// Returns the comparison for the book: totals per workload, then the rows.
pub fn markdown(a: &GuestCheck, kernel: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "Linux {kernel} on `{}`, {} seeds per cell.\n\n{}\n\
         | workload | results | counts of requests |\n|---|---|---|\n",
        a.device,
        a.seeds.max(1),
        totals(rows)
    );
    for workload in &a.workload {
        let total = |count: bool| {
            let own = rows
                .iter()
                .filter(|r| r.workload == *workload && r.count == count);
            Total::of(own.map(|r| r.verdict)).words()
        };
        text += &format!("| `{workload}` | {} | {} |\n", total(false), total(true));
    }
    text += "\n| workload | figure | scheduler | simulated | kernel | error | verdict |\n\
             |---|---|---|---|---|---|---|\n";
    for r in shown(a, rows) {
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} |\n",
            r.workload.split(':').next().unwrap_or_default(),
            r.figure,
            r.scheduler,
            three(r.simulated),
            three(r.kernel),
            percent(r),
            word(r.verdict)
        );
    }
    text
}
