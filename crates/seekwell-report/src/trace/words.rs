//! The sentences about a trace.

use super::iops;
use crate::units::{bytes, count, percent, rate, share, time_ns};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_trace::survey::Survey;

/// Below this share of the time from Q to C, waiting is called negligible.
const LITTLE: f64 = 0.05;

/// Formats a time, for example "2 h 0 min", "12 min 5 s", "12.3 s".
pub(super) fn long(ns: u64) -> String {
    match ns / 1_000_000_000 {
        s if s >= 3600 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s if s >= 120 => format!("{} min {} s", s / 60, s % 60),
        _ => time_ns(ns as f64),
    }
}

fn plural(n: u64, ending: &'static str) -> &'static str {
    if n == 1 { "" } else { ending }
}

/// Returns whether a rate can be computed. It needs at least two records, and time between them.
pub(super) fn has_rate(s: &Survey) -> bool {
    s.kinds.iter().map(|k| k.n).sum::<u64>() > 1 && s.span_ns > 0
}

fn volume(s: &Survey) -> String {
    let each: Vec<String> = s
        .kinds
        .iter()
        .map(|k| match k.bytes {
            0 => format!("{} {}{}", count(k.n), k.kind, plural(k.n, "es")),
            b => format!(
                "{} {}{} ({})",
                count(k.n),
                k.kind,
                plural(k.n, "s"),
                bytes(b as f64)
            ),
        })
        .collect();
    let all: u64 = s.kinds.iter().map(|k| k.n).sum();
    let moved: u64 = s.kinds.iter().map(|k| k.bytes).sum();
    let volume = format!("{}: {}", long(s.span_ns), each.join(", "));
    if !has_rate(s) {
        return format!("{volume}; too few for a rate.");
    }
    let over = |n: u64| n as f64 * 1e9 / s.span_ns as f64;
    format!(
        "{volume}; on average {} I/Os per second and {}{}.",
        iops(over(all)),
        rate(over(moved)),
        busiest(s)
    )
}

/// Returns, for example, "; in the busiest second 12.3 I/Os per second". The text is empty if no
/// step has two records, or if there is only one step.
fn busiest(s: &Survey) -> String {
    let c = &s.course;
    let most = (0..c.reads.len()).map(|i| c.reads[i] + c.writes[i]).max();
    let Some(most) = most.filter(|n| *n > 1 && c.step_ns < s.span_ns) else {
        return String::new();
    };
    let step = match c.step_ns {
        1_000_000_000 => "second".to_owned(),
        step => time_ns(step as f64),
    };
    format!(
        "; in the busiest {step} {} I/Os per second",
        iops(most as f64 * 1e9 / c.step_ns as f64)
    )
}

fn places(s: &Survey) -> String {
    let d = &s.seeks_queued;
    let mut text = format!(
        "{} of the accesses start where the previous one ended",
        share(d.sequential, d.n)
    );
    let own: u64 = s.tasks.iter().map(|t| t.sequential).sum();
    if s.tasks.len() > 1 && d.n > 0 {
        text += &format!(" ({} within a process)", share(own, d.n));
    }
    text += &match d.median {
        0 => "; the median distance is 0.".to_owned(),
        m => format!(
            "; the median distance is {}.",
            bytes((m * SECTOR_BYTES) as f64)
        ),
    };
    if s.events && s.queued && s.merges.issued > 0 {
        let m = &s.merges;
        text += &format!(
            " {} of {} bios were merged; a request to the driver holds {:.2} bios on average.",
            count(m.back + m.front),
            count(m.queued),
            m.queued as f64 / m.issued as f64
        );
    }
    text
}

fn waiting(s: &Survey) -> String {
    let part = |names: &[&str]| -> f64 {
        let own = s.phases.iter().filter(|p| names.contains(&p.name));
        own.filter_map(|p| p.share).sum()
    };
    if !told_completions(s) {
        return "The trace has no completions, so latencies are unknown.".to_owned();
    }
    let per_cent = |x: f64| percent(100.0 * x, 1);
    let d = &s.depth;
    let Some(in_device) = d.in_device else {
        return format!(
            "The trace has no issue events, so waiting and service cannot be separated; on average \
             {} requests are outstanding (at most {}).",
            crate::units::three(d.waiting),
            count(d.waiting_max)
        );
    };
    if !s.queued {
        return format!(
            "The trace has no submission events: issue times replace them, and earlier waits are \
             unknown. On average {} requests are in the device (at most {}).",
            crate::units::three(in_device),
            count(d.in_device_max)
        );
    }
    let device = part(&["D2C"]);
    let queue = part(&["Q2G", "G2I", "Q2I", "Q2M", "I2D", "M2D", "G2D", "Q2D"]);
    let judged = match queue {
        q if q < LITTLE => "a scheduler has almost nothing to order here",
        _ if d.at_queue < 0.5 => "a request rarely finds another one waiting",
        _ => "a scheduler has requests to order here",
    };
    format!(
        "{} of the time passes in driver and device and {} before them: {judged}. On average {} \
         requests wait when another arrives, and {} are in the device (at most {}).",
        per_cent(device),
        per_cent(queue),
        crate::units::three(d.at_queue),
        crate::units::three(in_device),
        count(d.in_device_max)
    )
}

fn told_completions(s: &Survey) -> bool {
    let last = if s.queued { "Q2C" } else { "D2C" };
    s.phases.iter().any(|p| p.name == last)
}

/// Returns sentences about volume, positions and waiting times, and about missing data.
pub(super) fn sentences(s: &Survey) -> Vec<String> {
    let mut all = vec![volume(s), places(s), waiting(s)];
    if s.unfinished + s.orphans > 0 && told_completions(s) {
        all.push(format!(
            "{} have no completion in the trace; {} completions have no submission in it.",
            count(s.unfinished),
            count(s.orphans)
        ));
    }
    all
}
