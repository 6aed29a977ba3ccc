//! What a scheduler costs a CPU: the instructions that this tree's own code takes for a request,
//! from insertion over dispatch to completion, 32 queued by 8 processes.
//!
//! They are counted by callgrind (`seekwell-bench gate`), not chosen; a test of the bench holds them
//! to its file. Counted are the default versions, and others cost the same. Left out: how the count
//! grows with the queue (4,096 queued take up to a fifth more or less), and what the kernel's code
//! does that this has no need of.

/// By the kernel's name.
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

/// Those of a scheduler; none where nobody counted.
pub fn instructions(name: &str) -> Option<u32> {
    let found = INSTRUCTIONS.iter().find(|c| c.0 == name);
    found.map(|c| c.1)
}
