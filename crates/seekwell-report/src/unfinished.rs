//! Runs that are not in a table, because they were stopped, did not start, or failed.

use crate::style::{HEAD, WARN};
use crate::table::{paint, wrap};
use crate::units::{count, time_ns};
use seekwell_core::prose::in_prose;
use seekwell_core::result::{Direction, Record};

/// A run that is not in a table.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The scheduler as requested.
    pub label: String,
    /// The reason why the run is not in the table.
    pub why: String,
    /// Measurements up to the end of the run.
    pub record: Option<Record>,
}

fn latencies(d: &Direction, what: &str) -> Option<String> {
    let n = d.ios;
    (n > 0).then(|| {
        let mean = time_ns(d.latency.mean_ns());
        format!("{} {what} of {mean} on average", count(n))
    })
}

/// Describes the measurements of a run in half a line. The text is empty if there are none.
fn measured(r: &Record) -> String {
    let both = [latencies(&r.read, "reads"), latencies(&r.write, "writes")];
    let both: Vec<String> = both.into_iter().flatten().collect();
    if both.is_empty() {
        String::new()
    } else {
        format!("; until then {}", both.join(", "))
    }
}

/// Returns the list of these runs, or an empty text if there are none.
pub fn unfinished(all: &[Unfinished], width: usize) -> String {
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    paint(&mut out, "  Not finished, and not compared:\n", HEAD);
    // Runs without measurements share one line.
    let mut lines: Vec<(String, String)> = Vec::new();
    for u in all {
        let until = u.record.as_ref().map(measured).unwrap_or_default();
        let what = format!("{}{until}", u.why);
        match lines.last_mut().filter(|l| l.1 == what) {
            Some((labels, _)) => *labels += &format!(", {}", in_prose(&u.label)),
            None => lines.push((in_prose(&u.label), what)),
        }
    }
    for (labels, what) in lines {
        let text = wrap(&format!("{labels}: {what}"), 6, width);
        paint(&mut out, "    ! ", WARN);
        out += text.trim_start();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_runs_report_their_measurements() {
        let mut r = Record::default();
        r.read.ios = 2;
        r.read.latency.record(1_000_000);
        r.read.latency.record(3_000_000);
        let cut = Unfinished {
            label: "cfq".into(),
            why: "stopped after 1.500 s of simulated time".into(),
            record: Some(r),
        };
        let not = |label: &str| Unfinished {
            label: label.into(),
            why: "not begun".into(),
            record: None,
        };
        let text = unfinished(&[cut, not("bfq"), not("kyber")], 200);
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            plain,
            "  Not finished, and not compared:\n    ! cfq: stopped after 1.500 s of simulated \
             time; until then 2 reads of 2.00 ms on average\n    ! bfq, kyber: not begun\n"
        );
        assert_eq!(unfinished(&[], 80), "");
    }
}
