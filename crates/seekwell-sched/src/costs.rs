//! CPU cost of each scheduler: the instructions that Seekwell's own code executes for one request
//! from insertion to completion, with 32 requests queued by 8 processes.
//!
//! The numbers are measured with callgrind (`seekwell-bench gate`); a test in that crate compares
//! them with its file. They are for the default versions; other versions cost the same. The numbers
//! leave out two effects: the growth with the queue length (with 4,096 requests queued, up to a
//! fifth more or less), and work in the kernel that Seekwell does not need to do.

/// Instructions per request, by the kernel's name of the scheduler.
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

/// The instructions per request of a scheduler; `None` if not measured.
pub fn instructions(name: &str) -> Option<u32> {
    let found = INSTRUCTIONS.iter().find(|c| c.0 == name);
    found.map(|c| c.1)
}
