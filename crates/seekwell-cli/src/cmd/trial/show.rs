//! The plan of a trial, and its progress.

use crate::out::note;
use seekwell_core::prose::in_prose;
use seekwell_lab::analysis::percent;
use seekwell_lab::experiment::Experiment;
use seekwell_lab::trial::{Baseline, CarryOver, Figure, Length, Told};

/// Shows the guard's decisions.
pub struct Live {
    pub quiet: bool,
}

impl Told for Live {
    fn guarded(&self, scheduler: &str, why: &str) {
        note(self.quiet, &format!("{}: {why}", in_prose(scheduler)));
    }
}

/// Formats a time, for example "45 s", "28 min".
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Returns the plan, one statement per line.
pub fn plan(e: &Experiment, l: &Length, figures: &[Figure], base: &Baseline) -> Vec<String> {
    let n = e.treatments.len();
    let values: Vec<String> = figures
        .iter()
        .filter_map(|f| {
            let m = f.metric(f.value(&base.total)?, 0);
            let unit = if m.name == "IOPS" { "" } else { &m.unit };
            let value = format!("{} {} {unit}", m.name, short(m.value));
            Some(value.trim().to_owned())
        })
        .collect();
    let names: Vec<&str> = e.treatments.iter().map(|t| t.label.as_str()).collect();
    let mut lines = vec![
        format!("baseline: {}", values.join(", ")),
        format!(
            "{} blocks of {n} periods ({}), each {} after a washout of {}: {} in total",
            l.blocks,
            names.join(", "),
            time(l.period_s),
            time(l.washout_s),
            time(l.whole_s() * f64::from(l.blocks) * n as f64)
        ),
    ];
    if let Some(x) = l.detectable() {
        lines.push(format!(
            "with the noise of the baseline, the trial detects a difference of {} in {} with a \
             probability of 80 %, in a single comparison",
            percent(x),
            figures[0].name()
        ));
    }
    lines
}

/// Describes whether a period depended on its predecessor.
pub fn carry_over(c: &CarryOver, names: &[String], figure: &Figure) -> String {
    let after = names.get(c.after).map_or_else(String::new, |n| in_prose(n));
    let p = match c.p < 0.01 {
        true => "p < 0.01".to_owned(),
        false => format!("p = {:.2}", c.p),
    };
    let change = format!(
        "{} in {} after {after}, {p}",
        percent(c.effect.exp_m1()),
        figure.name()
    );
    match c.p < 0.05 {
        false => format!("no carry-over found (largest difference: {change})"),
        true => format!("carry-over found ({change}). Use a longer --washout"),
    }
}

/// Formats a number with about four significant digits.
fn short(x: f64) -> String {
    match x.abs() {
        a if a >= 1000.0 => format!("{x:.0}"),
        a if a >= 100.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}
