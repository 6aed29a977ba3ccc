//! CPU cost of each scheduler: the number of instructions that Seekwell's own code executes for one
//! request, from insertion to completion. In the measurement, 8 processes have 32 requests queued.
//!
//! The numbers were measured with callgrind (`seekwell-bench gate`) for the default version of each
//! scheduler. A test in `seekwell-bench` compares them with the stored results of the measurement.
//! Other versions are assumed to cost the same. The numbers leave out two effects. With 4,096
//! requests queued, the cost changes by up to 20 % in either direction. The kernel also does work
//! that Seekwell does not need to do.

/// Instructions per request; the key is the kernel's name of the scheduler.
pub const INSTRUCTIONS: &[(&str, u32)] = &[
    ("adios", 1513),
    ("anticipatory", 1671),
    ("bfq", 2795),
    ("bfq-sq", 2851),
    ("cfq", 3354),
    ("deadline", 1076),
    ("fiops", 1430),
    ("kyber", 908),
    ("mq-deadline", 1303),
    ("none", 702),
    ("noop", 635),
    ("row", 878),
    ("sio", 701),
    ("turns", 1707),
    ("vr", 1177),
    ("zen", 673),
];

/// Returns the instructions per request of a scheduler; `None` if they were not measured.
pub fn instructions(name: &str) -> Option<u32> {
    let found = INSTRUCTIONS.iter().find(|c| c.0 == name);
    found.map(|c| c.1)
}
