//! Random cases with every operation, class, control and depth. Many bios are adjacent and can
//! merge, and pauses are long enough for expiries.

use proptest::prelude::*;
use seekwell_microscope::Case;
use seekwell_sched::{Kind, Layer, SchedulerInfo, Tunable};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
enum Place {
    Near(u64),
    Far(u64),
    /// At the end of the last bio, plus this many sectors.
    Behind(u64),
    /// Ends where the last bio began.
    Before,
    /// One short bio after the end of an earlier one; a bio in between joins them.
    Gap(usize),
    /// At the end or the start of an earlier bio.
    Around(usize, bool),
}

#[derive(Clone, Debug)]
enum Act {
    Bio(&'static str, Place, u64),
    Exit,
    Prio(u64, u64),
    Tunable(usize, i64),
    /// Drain; in blk-mq a switch to the same scheduler.
    Drain,
    /// blk-mq: the process opens or closes its plug.
    Plug,
}

fn value() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => 0i64..4,
        3 => 4i64..40,
        3 => 40i64..600,
        1 => 600i64..20_000,
        1 => Just(i64::from(i32::MAX)),
        1 => Just(-1i64),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let op = prop::sample::select(vec![
        "R", "R", "R", "W", "W", "W", "S", "N", "P", "A", "M", "D",
    ]);
    let place = prop_oneof![
        4 => (0u64..48).prop_map(|s| Place::Near(s * 8)),
        1 => (0u64..400).prop_map(Place::Near),
        3 => (0u64..1 << 27).prop_map(Place::Far),
        4 => Just(Place::Behind(0)),
        1 => (1u64..64).prop_map(Place::Behind),
        2 => Just(Place::Before),
        2 => (1usize..6).prop_map(Place::Gap),
        3 => (1usize..8, any::<bool>()).prop_map(|(k, e)| Place::Around(k, e)),
    ];
    let n = prop::sample::select(vec![8u64, 8, 8, 8, 16, 1, 3, 24]);
    prop_oneof![
        90 => (op, place, n).prop_map(|(o, p, n)| Act::Bio(o, p, n)),
        2 => Just(Act::Exit),
        2 => (0u64..4, 0u64..8).prop_map(|(c, l)| Act::Prio(c, l)),
        2 => (any::<usize>(), value()).prop_map(|(i, v)| Act::Tunable(i, v)),
        2 => Just(Act::Drain),
        6 => Just(Act::Plug),
    ]
}

/// Readers that think, fill each other's gaps and exit.
fn reader_act() -> impl Strategy<Value = Act> {
    let place = prop_oneof![
        3 => (0u64..1 << 24).prop_map(|s| Place::Far(s * 8)),
        3 => Just(Place::Behind(0)),
        3 => Just(Place::Before),
        3 => (1usize..5).prop_map(Place::Gap),
        4 => (1usize..5, any::<bool>()).prop_map(|(k, e)| Place::Around(k, e)),
    ];
    let op = prop::sample::select(vec!["R", "R", "R", "R", "S", "S", "W"]);
    prop_oneof![
        8 => (op, place).prop_map(|(o, p)| Act::Bio(o, p, 8)),
        1 => Just(Act::Exit),
    ]
}

fn gap_us() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => Just(0u64),
        8 => 1u64..300,
        8 => 300u64..6_000,
        4 => (1u64..30).prop_map(|ms| ms * 1000),
        3 => 6_000u64..60_000,
        1 => 60_000u64..3_000_000,
    ]
}

fn numeric(t: &&Tunable) -> bool {
    !matches!(t.kind, Kind::Text | Kind::ReadOnly)
}

/// Random cases for a scheduler; `elevator` includes the version.
pub fn cases(
    info: &'static SchedulerInfo,
    version: &'static str,
    hz: &'static [u32],
) -> impl Strategy<Value = Case> {
    let mq = info.layer == Layer::Mq;
    let tunables: Vec<&'static Tunable> = (info.tunables)(version).iter().filter(numeric).collect();
    let set = prop::collection::vec((any::<usize>(), value()), 0..4);
    let head = (
        prop::sample::select(hz),
        prop_oneof![3 => 1u64..3, 1 => 3u64..33],
        prop::sample::select(vec![50u64, 300, 1000, 5000, 5500, 20_000, 100_000]),
        prop::sample::select(vec![8u64, 16, 24, 40, 64, 1024]),
        prop::collection::vec((0u64..4, 0u64..8, -20i64..20), 6),
        any::<bool>(),
        set,
    );
    let think_us = prop_oneof![
        Just(0u64),
        0u64..12_000,
        (1u64..12).prop_map(|ms| ms * 1000)
    ];
    let rows = prop_oneof![
        3 => prop::collection::vec((gap_us(), 0u64..6, act()), 1..120),
        1 => prop::collection::vec((think_us, 0u64..4, reader_act()), 1..160),
    ];
    (head, rows).prop_map(
        move |((hz, depth, service, max, ctxs, rotational, set), rows)| {
            let clamp = |t: &Tunable, v: i64| match t.name {
                "batch_order" if !rotational => json!(0), // ADIOS rejects 1 there
                _ => json!(v.clamp(t.min.max(-1), t.max)),
            };
            let mut tun = Map::new();
            for (i, v) in set {
                if !tunables.is_empty() {
                    let t = tunables[i % tunables.len()];
                    tun.insert(t.name.to_owned(), clamp(t, v));
                }
            }
            let (mut t, mut id) = (0u64, 0u64);
            let mut pids: Vec<u64> = (1..7).collect();
            let mut spans: Vec<(u64, u64)> = Vec::new();
            let mut input: Vec<Value> = Vec::new();
            let mut plugged: Vec<u64> = Vec::new();
            let elevator = format!("{}-{version}", info.name);
            for (gap, who, act) in rows {
                t += gap;
                let pid = &mut pids[who as usize];
                match act {
                    Act::Bio(op, place, n) => {
                        let last = spans.last().copied().unwrap_or((1000, 8));
                        let sector = match place {
                            Place::Near(s) => 1000 + s,
                            Place::Far(s) => s,
                            Place::Behind(k) => last.0 + last.1 + k,
                            Place::Before => last.0.saturating_sub(n),
                            Place::Gap(k) => {
                                let s = spans[spans.len().saturating_sub(k)..].first();
                                s.map_or(0, |s| s.0 + s.1 + 8)
                            }
                            Place::Around(k, end) => {
                                let s = spans[spans.len().saturating_sub(k)..].first();
                                let s = s.copied().unwrap_or(last);
                                if end {
                                    s.0 + s.1
                                } else {
                                    s.0.saturating_sub(n)
                                }
                            }
                        };
                        spans.push((sector, n));
                        id += 1;
                        input.push(json!([t, id, *pid, op, sector, n]));
                    }
                    Act::Exit => {
                        input.push(json!([t, "x", *pid]));
                        *pid += 100; // numbers are not reused
                    }
                    Act::Prio(class, level) => input.push(json!([t, "p", *pid, class, level])),
                    Act::Tunable(i, v) => {
                        if !tunables.is_empty() {
                            let tn = tunables[i % tunables.len()];
                            input.push(json!([t, "t", tn.name, clamp(tn, v)]));
                        }
                    }
                    Act::Drain if mq => input.push(json!([t, "switch", elevator])),
                    Act::Drain => input.push(json!([t, "d", 0])),
                    Act::Plug if mq && plugged.contains(pid) => {
                        plugged.retain(|p| p != pid);
                        input.push(json!([t, "unplug", *pid]));
                    }
                    Act::Plug if mq => {
                        plugged.push(*pid);
                        input.push(json!([t, "plug", *pid]));
                    }
                    Act::Plug => {}
                }
            }
            input.extend(plugged.iter().map(|pid| json!([t, "unplug", pid])));
            let contexts: Vec<_> = (1u64..)
                .zip(&ctxs)
                .map(|(p, c)| json!([p, c.0, c.1]))
                .collect();
            let nice: Vec<_> = (1u64..).zip(&ctxs).map(|(p, c)| json!([p, c.2])).collect();
            let case = json!({
                "case": "random",
                "elevator": elevator,
                "harness": if mq { "mq" } else { "legacy" },
                "hz": hz,
                "device": {"depth": depth, "service_us": service, "rotational": rotational},
                // blk-mq splits longer bios; the longest bios here have 24 sectors.
            "max_sectors": if mq { max.max(24) } else { max },
                "tunables": tun,
                "contexts": contexts,
                "nice": nice,
                "input": input,
            });
            serde_json::from_value(case).expect("a sound case")
        },
    )
}
