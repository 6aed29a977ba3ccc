//! The few sentences that a trace comes to.

use super::{iops, over};
use crate::units::{bytes, count, rate, share, time_ns};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_trace::survey::Survey;

/// Share of the time from Q to C below which waiting is next to nothing.
const LITTLE: f64 = 0.05;

/// "2 h 0 min", "12 min 5 s", "12.3 s".
pub(super) fn long(ns: u64) -> String {
    match ns / 1_000_000_000 {
        s if s >= 3600 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s if s >= 120 => format!("{} min {} s", s / 60, s % 60),
        _ => time_ns(ns as f64),
    }
}

fn volume(s: &Survey) -> String {
    let each: Vec<String> = s
        .kinds
        .iter()
        .map(|k| match k.bytes {
            0 => format!("{} {}es", count(k.n), k.kind),
            b => format!("{} {}s ({})", count(k.n), k.kind, bytes(b as f64)),
        })
        .collect();
    let all: u64 = s.kinds.iter().map(|k| k.n).sum();
    let moved: u64 = s.kinds.iter().map(|k| k.bytes).sum();
    let c = &s.course;
    let most = (0..c.reads.len()).map(|i| c.reads[i] + c.writes[i]).max();
    // The busiest step says nothing where it is shorter than a second and the trace is not.
    let most = most.unwrap_or(0) as f64 * 1e9 / c.step_ns.max(1) as f64;
    let step = match c.step_ns {
        1_000_000_000 => "second".to_owned(),
        step => time_ns(step as f64),
    };
    format!(
        "{}: {}; {} a second and {} in the mean, in the busiest {step} {} a second.",
        long(s.span_ns),
        each.join(", "),
        iops(over(all as f64, s.span_ns)),
        rate(over(moved as f64, s.span_ns)),
        iops(most)
    )
}

fn places(s: &Survey) -> String {
    let d = &s.seeks_queued;
    let mut text = format!(
        "{} go on where the one before ended; half of the distances are {}.",
        share(d.sequential, d.n),
        match d.median {
            0 => "0".to_owned(),
            m => format!("{} or more", bytes((m * SECTOR_BYTES) as f64)),
        }
    );
    let own: u64 = s.tasks.iter().map(|t| t.sequential).sum();
    if s.tasks.len() > 1 && d.n > 0 {
        text += &format!(
            " Each process by itself goes on where it ended in {}.",
            share(own, d.n)
        );
    }
    if s.events && s.merges.issued > 0 {
        let m = &s.merges;
        text += &format!(
            " {} of {} were merged: {:.2} go to the driver as one.",
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
    if !s.phases.iter().any(|p| p.name == "Q2C") {
        return "It tells no completions: how long anything took is not known.".to_owned();
    }
    let per_cent = |x: f64| format!("{:.1} %", 100.0 * x);
    let d = &s.depth;
    let Some(in_device) = d.in_device else {
        return format!(
            "It does not tell when requests went to the driver, so waiting and service are one; {} \
             are outstanding in the mean, at most {}.",
            crate::units::three(d.waiting),
            count(d.waiting_max)
        );
    };
    let device = part(&["D2C"]);
    let queue = part(&["Q2G", "G2I", "Q2I", "Q2M", "I2D", "M2D", "G2D", "Q2D"]);
    let judged = match queue {
        q if q < LITTLE => "a scheduler has next to nothing to order here",
        _ if d.at_queue < 0.5 => "rarely does another wait when one arrives",
        _ => "here a scheduler has something to order",
    };
    format!(
        "Of the time from asked for to done {} pass in driver and device, {} before them: {judged}. \
         {} waited when another arrived, {} are in the device in the mean, at most {}.",
        per_cent(device),
        per_cent(queue),
        crate::units::three(d.at_queue),
        crate::units::three(in_device),
        count(d.in_device_max)
    )
}

/// What it is, where it goes, where the time goes; what is missing.
pub(super) fn sentences(s: &Survey) -> Vec<String> {
    let mut all = vec![volume(s), places(s), waiting(s)];
    if s.unfinished + s.orphans > 0 && s.phases.iter().any(|p| p.name == "Q2C") {
        all.push(format!(
            "{} never ended in it, {} completions belong to nothing asked for in it.",
            count(s.unfinished),
            count(s.orphans)
        ));
    }
    all
}
