//! Compares `io.latency` with a recorded round of Linux 6.12.117 in virtual time (three groups on a
//! slow rotational disk). Arrivals and completions come from the record; the rules give the time at
//! which each bio passes and the depth of each group. Simpler models are tested for comparison.

use seekwell_block::mq::iolatency::IoLatency;
use seekwell_block::mq::wbt::Moment;
use seekwell_core::CgroupId;
use serde_json::Value;
use std::collections::BTreeMap;

fn case() -> Value {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/wbt");
    let file = std::fs::File::open(format!("{dir}/io-latency-virtual.jsonl.zst")).expect("data");
    let text = String::from_utf8(zstd::decode_all(file).expect("zstd")).expect("UTF-8");
    serde_json::from_str(text.lines().next().expect("a case")).expect("JSON")
}

/// Jiffies at time 0, modulo the buckets of the timer wheel. The record does not contain this
/// phase; of the eight values, this one fits the last of its 58 changes of depth.
const PHASE: i64 = 2;

fn int(v: &Value) -> u64 {
    v.as_u64().expect("a whole number")
}

/// The knowledge that a model lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Less {
    Nothing,
    /// Everything passes at once.
    Limits,
    /// How strict the targets are: all targets are multiplied by three.
    Targets,
    /// The number of requests of the queue, which sets the steps of the depth.
    Requests,
}

/// Counts the bios that pass within 10 us of the kernel's time. Also counts the depth changes that
/// equal the kernel's in time and depth. Returns each count with its total.
fn replay(case: &Value, less: Less) -> ([usize; 2], [usize; 2]) {
    let hz = int(&case["hz"]) as u32;
    let tick_us = 1_000_000 / u64::from(hz);
    let at = |us: u64| Moment {
        ns: us * 1000,
        jiffy: (us / tick_us) as i64 + PHASE,
    };
    let times = if less == Less::Requests { 4 } else { 1 };
    let nr_requests = times * int(&case["nr_requests"]) as u32;
    let mut m = IoLatency::new(hz, nr_requests, case["rotational"] == true);
    let targets = case["targets_us"].as_object().expect("groups");
    let times = if less == Less::Targets { 3 } else { 1 };
    let mut ids = BTreeMap::new();
    for (i, (name, us)) in targets.iter().enumerate() {
        let id = CgroupId(i as u32 + 1);
        m.made(id, CgroupId::ROOT);
        m.set_target(id, us.as_u64().map(|us| times * us), at(0));
        ids.insert(name.clone(), id);
    }
    let name_of = |v: &Value| v.as_str().expect("a name").to_owned();
    let input: Vec<(u64, CgroupId)> = (case["input"].as_array().expect("arrivals").iter())
        .map(|v| (int(&v[0]), ids[&name_of(&v[1])]))
        .collect();
    let list = |name: &str| -> Vec<u64> {
        (case[name].as_array().expect("instants").iter())
            .map(int)
            .collect()
    };
    let (passed, done) = (list("passed"), list("done"));
    // At one instant: completions, then timers, then submissions.
    let mut events: Vec<(u64, u8, usize)> = Vec::new();
    for i in 0..input.len() {
        events.push((done[i], 0, i));
        events.push((input[i].0, 2, i));
    }
    events.sort_unstable();
    let mut goes: Vec<Option<u64>> = vec![None; input.len()];
    let mut depths: BTreeMap<CgroupId, Option<u32>> = BTreeMap::new();
    let mut changes: Vec<(u64, CgroupId, Option<u32>)> = Vec::new();
    for (us, kind, i) in events {
        while let Some(j) = m
            .timer()
            .map(|j| (j - PHASE) as u64 * tick_us)
            .filter(|t| *t < us)
        {
            m.fire(at(j));
        }
        if kind == 2 && (less == Less::Limits || m.ask(i as u64, input[i].1, at(us))) {
            goes[i] = Some(us);
        } else if kind == 0 && goes[i].is_some() && less != Less::Limits {
            m.done(input[i].1, input[i].0 * 1000, at(us));
        }
        while let Some(id) = m.granted() {
            goes[id as usize] = Some(us);
        }
        for id in ids.values() {
            let depth = m.depth(*id).0;
            if kind == 2 && depths.insert(*id, depth).is_none_or(|d| d != depth) {
                changes.push((us, *id, depth));
            }
        }
    }
    let near = |(ours, theirs): (&Option<u64>, &u64)| {
        ours.is_some_and(|ours| ours.abs_diff(*theirs) <= 10)
    };
    let same = goes.iter().zip(&passed).filter(|p| near(*p)).count();
    let depth: Vec<_> = (case["depth"].as_array().expect("changes").iter())
        .map(|v| {
            (
                int(&v[0]),
                ids[&name_of(&v[1])],
                v[2].as_u64().map(|d| d as u32),
            )
        })
        .collect();
    let found = |d: &&(u64, CgroupId, Option<u32>)| {
        (changes.iter()).any(|c| (c.1, c.2) == (d.1, d.2) && c.0.abs_diff(d.0) <= 10)
    };
    let known = depth.iter().filter(found).count();
    ([same, passed.len()], [known, depth.len()])
}

#[test]
fn iolatency_matches_every_kernel_pass_and_depth() {
    let case = case();
    let (passes, depths) = replay(&case, Less::Nothing);
    assert_eq!((passes, depths), ([4766; 2], [58; 2]));
}

#[test]
fn reduced_iolatency_models_match_fewer_passes() {
    let case = case();
    for (less, passes, depths) in [
        (Less::Limits, 2496, 3),
        (Less::Targets, 2496, 3),
        (Less::Requests, 2496, 3),
    ] {
        let (got, known) = replay(&case, less);
        assert!(
            got[0] <= passes && known[0] <= depths,
            "{less:?} {got:?} {known:?}"
        );
    }
}
