//! The steps and results of `seekwell explain` as one JSON document.

use super::Done;
use seekwell_core::Instant;
use seekwell_core::event::wire::EventLine;
use seekwell_microscope::rounds::Verdict;
use seekwell_microscope::{Agreement, Case, Dispatched, Step};
use serde_json::{Value, json};
use std::path::Path;

fn agreement(a: &Agreement) -> Value {
    json!({
        "identical": a.identical(), "expected": a.expected, "got": a.got, "same": a.same,
        "same_request": a.same_request, "before_first_difference": a.prefix,
        "longest_common_subsequence": a.lcs, "timers_identical": a.timers,
    })
}

fn verdict(v: &Verdict) -> Value {
    json!({
        "identical": v.identical(), "same_request": v.same, "positions": v.positions,
        "before_first_difference": v.first_difference.unwrap_or(v.positions),
        "pools_identical": v.pools,
    })
}

fn log(dispatch: &[Dispatched], timers: &[Instant]) -> (Value, Value) {
    let one = |(t, bios): &Dispatched| json!({ "t_ns": t.since_start(), "ids": bios.iter().map(|b| b.0).collect::<Vec<_>>() });
    let timers: Vec<_> = timers.iter().map(|t| t.since_start()).collect();
    (dispatch.iter().map(one).collect(), timers.into())
}

/// Returns every step. A step has its event as in event files, and the bios of the request. The
/// last event of a step also has the scheduler's state.
fn steps(all: &[Step]) -> Value {
    let one = |s: &Step| {
        let mut v = json!(EventLine::from(&s.event));
        v["bios"] = s.bios.iter().map(|b| b.0).collect::<Vec<_>>().into();
        if let Some(state) = &s.state {
            v["scheduler"] = state.trim_end().into();
        }
        if let Some(again) = s.again {
            v["again"] = json!({ "times": again.times, "until_ns": again.until.since_start() });
        }
        v
    };
    all.iter().map(one).collect()
}

fn case_json(case: &Case, d: &Done) -> Value {
    let mut v = json!({ "case": case.case, "elevator": case.elevator, "hz": case.hz });
    match d {
        Done::List { out, scored } => {
            (v["dispatch"], v["timers_ns"]) = log(&out.dispatch, &out.timers);
            if !out.events.is_empty() {
                v["steps"] = steps(&out.events);
            }
            v["left"] = out.left.iter().map(|b| b.0).collect::<Vec<_>>().into();
            if let Some((a, null)) = scored {
                v["agreement"] = agreement(a);
                let one = |b: &seekwell_microscope::agree::Beside| json!({ "elevator": b.elevator, "agreement": agreement(&b.agreement) });
                v["beside"] = null.iter().map(one).collect();
            }
        }
        Done::Round {
            round,
            replay,
            verdict: own,
            null,
        } => {
            (v["dispatch"], v["timers_ns"]) = log(&replay.dispatch, &replay.timers);
            if !replay.steps.is_empty() {
                v["steps"] = steps(&replay.steps);
            }
            v["class"] = round.workload.clone().into();
            v["agreement"] = verdict(own);
            v["beside"] = json!([
                { "elevator": "FIFO", "agreement": verdict(&null.fifo) },
                { "elevator": "C-LOOK", "agreement": verdict(&null.clook) },
            ]);
        }
    }
    v
}

/// Returns the JSON document of all cases.
pub fn document(file: &Path, cases: &[Case], all: &[Done]) -> Value {
    let list: Vec<_> = cases
        .iter()
        .zip(all)
        .map(|(c, d)| case_json(c, d))
        .collect();
    // The file's name without its directory.
    let file = file.file_name().unwrap_or(file.as_os_str());
    json!({ "schema": 1, "file": file.to_string_lossy(), "cases": list })
}
