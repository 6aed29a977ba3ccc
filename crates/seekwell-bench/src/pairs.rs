//! Schedulers with complete devices: queue, layer, scheduler and device model together. The types
//! are the boxed trait objects that programs and replays use.

use crate::scenario::{Scenario, closed_loop, named};
use seekwell_sim::Setup;

/// A device, its name in scenario names, and the number of outstanding requests.
struct Below {
    name: &'static str,
    spec: &'static str,
    outstanding: u64,
}

const BELOW: &[Below] = &[
    Below {
        name: "disk",
        spec: "hdd:hitachi-7k200",
        outstanding: 31,
    },
    Below {
        name: "flash",
        spec: "ssd:s3700-100",
        outstanding: 32,
    },
];

/// Schedulers with the number of processes. It is larger for schedulers with a queue per process.
const ABOVE: &[(&str, u32)] = &[
    ("noop", 4),
    ("deadline", 4),
    ("cfq", 32),
    ("none", 4),
    ("mq-deadline", 4),
    ("kyber", 4),
    ("bfq", 32),
];

/// Returns all scenarios of this file.
pub fn all() -> Vec<Scenario> {
    let mut v = Vec::new();
    for below in BELOW {
        for (scheduler, tasks) in ABOVE {
            let (spec, outstanding) = (below.spec, below.outstanding);
            v.push(named(
                &format!("pair-{scheduler}-{}", below.name),
                &format!("{scheduler} over {spec}, {tasks} tasks, {outstanding} reads outstanding"),
                200_000,
                move |ios| {
                    let setup = Setup {
                        device: spec.to_owned(),
                        scheduler: (*scheduler).to_owned(),
                        ..Setup::default()
                    };
                    let queue = setup.build().expect("a scheduler and a device");
                    closed_loop(queue, *tasks, outstanding, ios)
                },
            ));
        }
    }
    v
}
