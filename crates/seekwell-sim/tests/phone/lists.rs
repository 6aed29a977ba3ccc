//! Random request lists.

use proptest::prelude::*;
use seekwell_microscope::Case;
use seekwell_sched::{Kind, find};
use serde_json::{Value, json};

/// The possible contents of a list.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Exits, changes of ioprio, writes to tunables, drains.
    pub controls: bool,
    /// Merging as in the layer; otherwise each bio is a request.
    pub merges: bool,
    /// Largest number of commands at once.
    pub depth_max: u32,
}

impl Shape {
    /// All features.
    pub fn wild() -> Self {
        Shape {
            controls: true,
            merges: true,
            depth_max: 4,
        }
    }
    /// Returns a shape with one request per bio and without controls.
    pub fn plain() -> Self {
        Shape {
            controls: false,
            merges: false,
            depth_max: 4,
        }
    }
    /// Limits the device to one command at a time.
    pub fn depth_1(self) -> Self {
        Shape {
            depth_max: 1,
            ..self
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Bio(u32, &'static str, u64, u32),
    Exit(u32),
    Prio(u32, u64, u64),
    /// Index of the tunable and of the value.
    Tunable(usize, usize),
    Drain,
}

fn bio() -> impl Strategy<Value = Step> {
    let op = prop::sample::select(vec!["R", "R", "R", "W", "W", "S", "N"]);
    // Few positions, so that equal starts and adjacent requests are frequent; some are unaligned.
    let place = prop_oneof![4 => (0..48u64).prop_map(|k| k * 8), 1 => 0..400u64];
    let length = prop::sample::select(vec![8u32, 8, 8, 16, 1]);
    (1..5u32, op, place, length).prop_map(|(pid, op, at, n)| Step::Bio(pid, op, at, n))
}

fn step(controls: bool) -> BoxedStrategy<Step> {
    if !controls {
        return bio().boxed();
    }
    prop_oneof![
        20 => bio(),
        1 => (1..5u32).prop_map(Step::Exit),
        1 => (1..5u32, 0..4u64, 0..8u64).prop_map(|(p, c, l)| Step::Prio(p, c, l)),
        1 => (0..16usize, 0..VALUES).prop_map(|(t, v)| Step::Tunable(t, v)),
        1 => Just(Step::Drain),
    ]
    .boxed()
}

/// Number of values tried per tunable.
const VALUES: usize = 5;

/// The value number `which` for a tunable.
fn value(t: &seekwell_sched::Tunable, which: usize) -> String {
    let default = t.default.parse().unwrap_or(t.min);
    let v = match (t.kind, which) {
        (Kind::Text, w) => return ["remainder", "quotient"][w % 2].to_owned(),
        // The longest value, 20 days, would only make the test slow.
        (_, 0) => t.min,
        (_, 1) => t.max,
        (_, 2) => 1,
        (_, 3) => 3,
        _ => default,
    };
    v.clamp(t.min, t.max).to_string()
}

/// Cases for these schedulers.
pub fn any_case(elevators: &[&'static str], shape: Shape) -> BoxedStrategy<Case> {
    let gap_us = prop_oneof![
        6 => Just(0u64),
        4 => 1..4_000u64,
        1 => 4_000..40_000u64,
        1 => 400_000..700_000u64,
    ];
    let device = (
        1..=shape.depth_max,
        prop::sample::select(vec![100u64, 1_000, 5_000, 300_000]),
        prop::sample::select(vec![100u32, 250, 1000]),
    );
    (
        prop::sample::select(elevators.to_vec()),
        device,
        prop::collection::vec((gap_us, step(shape.controls)), 1..60),
        prop::collection::vec(prop::option::weighted(0.4, 0..VALUES), 16),
        prop::collection::vec((0..4u64, 0..8u64), 4),
    )
        .prop_map(move |(elevator, device, steps, tuned, prios)| {
            build(elevator, device, &steps, &tuned, &prios, &shape)
        })
        .boxed()
}

fn build(
    elevator: &str,
    (depth, service_us, hz): (u32, u64, u32),
    steps: &[(u64, Step)],
    tuned: &[Option<usize>],
    prios: &[(u64, u64)],
    shape: &Shape,
) -> Case {
    let Some((info, version, _)) = find(elevator) else {
        panic!("no scheduler {elevator}");
    };
    let tunables = (info.tunables)(version);
    let mut set = serde_json::Map::new();
    for (t, v) in tunables.iter().zip(tuned) {
        if let Some(v) = v {
            set.insert(t.name.to_owned(), json!(value(t, *v)));
        }
    }
    let (mut now, mut id, mut input) = (0u64, 0u64, Vec::<Vec<Value>>::new());
    for (gap, s) in steps {
        now += gap;
        input.push(match s {
            Step::Bio(pid, op, at, n) => {
                id += 1;
                vec![
                    json!(now),
                    json!(id),
                    json!(pid),
                    json!(op),
                    json!(at),
                    json!(n),
                ]
            }
            Step::Exit(pid) => vec![json!(now), json!("x"), json!(pid)],
            Step::Prio(pid, class, level) => {
                vec![
                    json!(now),
                    json!("p"),
                    json!(pid),
                    json!(class),
                    json!(level),
                ]
            }
            Step::Tunable(t, v) => {
                let Some(t) = tunables.get(t % tunables.len().max(1)) else {
                    continue;
                };
                vec![json!(now), json!("t"), json!(t.name), json!(value(t, *v))]
            }
            Step::Drain => vec![json!(now), json!("d"), json!(0)],
        });
    }
    let contexts: Vec<_> = prios
        .iter()
        .enumerate()
        .map(|(i, p)| json!([i + 1, p.0, p.1]))
        .collect();
    let case = json!({
        "case": "random", "elevator": elevator, "hz": hz,
        "device": {"depth": depth, "service_us": service_us},
        "nomerges": if shape.merges { 0 } else { 2 },
        "tunables": set, "contexts": contexts, "input": input,
    });
    match serde_json::from_value(case) {
        Ok(case) => case,
        Err(e) => panic!("{e}"),
    }
}
