//! Compares `io.max` with recorded rounds of Linux 6.12.117 in virtual time. Arrivals come from the
//! record; the rules give the time at which each bio continues. Simpler models are tested for
//! comparison.

use seekwell_block::mq::iomax::{Held, IoMax};
use seekwell_core::{CgroupId, IoMaxLimits};
use serde_json::Value;

const GROUP: CgroupId = CgroupId(1);

fn cases() -> Vec<Value> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/wbt");
    let file = std::fs::File::open(format!("{dir}/io-max-virtual.jsonl.zst")).expect("data");
    let text = String::from_utf8(zstd::decode_all(file).expect("zstd")).expect("UTF-8");
    text.lines()
        .map(|l| serde_json::from_str(l).expect("a case a line"))
        .collect()
}

fn int(v: &Value) -> u64 {
    v.as_u64().expect("a whole number")
}

fn limits(of: &Value) -> IoMaxLimits {
    let get = |name: &str| of[name].as_u64();
    IoMaxLimits {
        rbps: get("rbps"),
        wbps: get("wbps"),
        riops: get("riops"),
        wiops: get("wiops"),
    }
}

/// (us, write, bytes) in order, and the times at which the kernel released them.
fn rounds(case: &Value) -> (Vec<(u64, bool, u64)>, Vec<u64>) {
    let all = case["input"].as_array().expect("arrivals");
    let one = |v: &Value| (int(&v[0]), v[1] == "W", int(&v[2]));
    let issue = case["issue"].as_array().expect("instants");
    (
        all.iter().map(one).collect(),
        issue.iter().map(int).collect(),
    )
}

/// The times at which the rules release each bio, us.
fn replay(hz: u32, limits: IoMaxLimits, input: &[(u64, bool, u64)]) -> Vec<u64> {
    let mut m = IoMax::new(hz);
    m.made(GROUP, CgroupId::ROOT);
    let tick_us = 1_000_000 / i64::from(hz);
    m.limit(GROUP, limits, 0);
    let mut goes = vec![u64::MAX; input.len()];
    let fire = |m: &mut IoMax, until: i64, goes: &mut Vec<u64>| {
        while let Some(j) = m.timer().filter(|j| *j <= until) {
            m.fire(j);
            while let Some(id) = m.released() {
                goes[id as usize] = (j * tick_us) as u64;
            }
        }
    };
    for (i, (us, write, bytes)) in input.iter().enumerate() {
        let now = *us as i64 / tick_us;
        fire(&mut m, now, &mut goes);
        let bio = Held {
            id: i as u64,
            write: *write,
            bytes: Some(*bytes),
            passes: false,
        };
        if m.ask(GROUP, bio, now) {
            goes[i] = *us;
        }
    }
    fire(&mut m, i64::MAX, &mut goes);
    goes
}

/// A token bucket that fills evenly, with the size of a slice's budget.
fn token_bucket(limits: IoMaxLimits, input: &[(u64, bool, u64)]) -> Vec<u64> {
    let mut ready = [0f64; 2];
    let mut goes = Vec::new();
    for (us, write, bytes) in input {
        let (bps, iops) = match write {
            true => (limits.wbps, limits.wiops),
            false => (limits.rbps, limits.riops),
        };
        let cost = |n: u64, rate: Option<u64>| rate.map_or(0.0, |r| n as f64 * 1e6 / r as f64);
        let at = &mut ready[usize::from(*write)];
        let go = at.max(*us as f64);
        goes.push(go as u64);
        *at = go + cost(*bytes, bps).max(cost(1, iops));
    }
    goes
}

/// Two instants count as equal within half a millisecond; a jiffy is 4 ms.
const NEAR_US: u64 = 500;

#[test]
fn iomax_matches_every_kernel_release_time() {
    // Counts of all bios, and of the bios that the kernel held.
    let (mut all, mut ours, mut even, mut none) = ([0; 2], [0; 2], [0; 2], [0; 2]);
    for case in cases() {
        let (input, issue) = rounds(&case);
        let (hz, limits) = (int(&case["hz"]) as u32, limits(&case["limits"]));
        let at_once: Vec<u64> = input.iter().map(|i| i.0).collect();
        let held = |n: &usize| issue[*n].abs_diff(at_once[*n]) > NEAR_US;
        let models = [
            (&mut all, issue.clone()),
            (&mut ours, replay(hz, limits, &input)),
            (&mut even, token_bucket(limits, &input)),
            (&mut none, at_once.clone()),
        ];
        for (score, goes) in models {
            let near = |n: &usize| goes[*n].abs_diff(issue[*n]) <= NEAR_US;
            score[0] += (0..input.len()).filter(near).count();
            score[1] += (0..input.len()).filter(|n| held(n) && near(n)).count();
        }
    }
    assert_eq!((all, ours), ([2603, 600], [2603, 600]));
    // Simpler models: a bucket that fills evenly, and no limit.
    assert_eq!((even, none), ([26, 21], [2003, 0]));
}

/// M4: a limit that two cgroups share is not divided fairly. Each cgroup gets at most its depth per
/// slice.
#[test]
fn iomax_serves_children_of_a_shared_limit_round_robin() {
    for (depths, published) in [([1, 16], [152u64, 2424]), ([8, 64], [408, 2223])] {
        let mut m = IoMax::new(250);
        let children = [CgroupId(2), CgroupId(3)];
        m.made(GROUP, CgroupId::ROOT);
        children.iter().for_each(|c| m.made(*c, GROUP));
        let rbps = Some(2 << 20);
        m.limit(
            GROUP,
            IoMaxLimits {
                rbps,
                ..IoMaxLimits::default()
            },
            0,
        );
        let mut done = [0u64; 2];
        // On a free device, a released task issues its next bio at once.
        let mut again: Vec<usize> = (0..2).flat_map(|c| vec![c; depths[c]]).collect();
        let mut now = 0;
        while now < 1250 {
            while !again.is_empty() {
                for c in std::mem::take(&mut again) {
                    let bio = Held {
                        id: c as u64,
                        write: false,
                        bytes: Some(4096),
                        passes: false,
                    };
                    if m.ask(children[c], bio, now) {
                        done[c] += 1;
                        again.push(c);
                    }
                }
            }
            now = m.timer().expect("work left implies a timer");
            m.fire(now);
            while let Some(c) = m.released() {
                done[c as usize] += 1;
                again.push(c as usize);
            }
        }
        for (ours, kernels) in done.iter().zip(published) {
            assert!(
                ours.abs_diff(kernels) * 10 <= kernels,
                "{depths:?}: {done:?}"
            );
        }
    }
}
