//! Switches for the four releases: the differences between them.

/// Which requests go to the barrier queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Barriers {
    /// There is no barrier queue.
    Never,
    /// 3.1.9 tests bit 1 of the operation's number: every discard is a barrier.
    Discards,
    /// 3.2.0 intends flushes only, and flushes never reach a scheduler.
    Flushes,
}

/// Which requests bypass the deadline trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tiers {
    /// At-head requests in one queue, the last one first.
    AtHeadLifo,
    /// At-head requests, preceded by FUA and PREFLUSH requests as `compliance_flags` says.
    Durability,
    /// At-head requests, preceded by barriers.
    Barrier,
}

/// One release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    pub name: &'static str,
    /// A plain FIFO until reads and writes have been measured.
    pub fifo_until_stable: bool,
    pub barriers: Barriers,
    pub tiers: Tiers,
    /// Requests with the SYNC flag are due at once.
    pub sync_is_due: bool,
    /// Bit of `compliance_flags` that leaves the predicted latency out of deadlines; 0: none.
    pub plain_deadline_flag: u32,
    /// Deadlines are truncated to 2^this ns before comparison.
    pub quantum_shift: u32,
    /// A page serves its highest-numbered type first.
    pub highest_first: bool,
    /// An empty page is refilled however much work the device has left.
    pub refill_when_empty: bool,
    /// A sample is the time since the last completion, not since the issue.
    pub between_completions: bool,
    /// The last completion is stored per CPU.
    pub per_cpu: bool,
    /// The slope's intercept is one base per sample, not one in total.
    pub base_per_sample: bool,
    /// Handles rotating disks: weights, a wider window, pages in sector order.
    pub rotational: bool,
    /// Bucket numbers wrap at 8 bits before they are clipped.
    pub narrow_buckets: bool,
    /// `lat_model_latency_limit` also bounds predictions.
    pub caps_prediction: bool,
    pub window_ns: u64,
    pub window_rotational_ns: u64,
    pub refill_percent: u64,
    pub batch_limit: [u32; 4],
    pub read_target_ns: u64,
    pub read_priority: i32,
    pub compliance: u32,
    pub shrink_at_kreqs: u64,
    pub shrink_at_gbytes: u64,
}

impl Version {
    pub const V3_1_9: Version = Version {
        name: "3.1.9",
        fifo_until_stable: true,
        barriers: Barriers::Discards,
        tiers: Tiers::Barrier,
        sync_is_due: true,
        plain_deadline_flag: 1,
        quantum_shift: 20,
        highest_first: false,
        refill_when_empty: true,
        between_completions: true,
        per_cpu: false,
        base_per_sample: false,
        rotational: true,
        narrow_buckets: true,
        caps_prediction: false,
        window_ns: 16_000_000,
        window_rotational_ns: 22_000_000,
        refill_percent: 20,
        batch_limit: [36, 72, 1, 1],
        read_target_ns: 2_000_000,
        read_priority: 8,
        compliance: 0,
        shrink_at_kreqs: 5000,
        shrink_at_gbytes: 50,
    };
    const V3_2_0: Version = Version {
        name: "3.2.0",
        barriers: Barriers::Flushes,
        per_cpu: true,
        narrow_buckets: false,
        caps_prediction: true,
        ..Self::V3_1_9
    };
    const V3_0_1: Version = Version {
        name: "3.0.1",
        barriers: Barriers::Never,
        tiers: Tiers::Durability,
        plain_deadline_flag: 4,
        highest_first: true,
        refill_when_empty: false,
        compliance: 7,
        ..Self::V3_1_9
    };
    const V1_5_5: Version = Version {
        name: "1.5.5",
        fifo_until_stable: false,
        barriers: Barriers::Never,
        tiers: Tiers::AtHeadLifo,
        sync_is_due: false,
        plain_deadline_flag: 0,
        quantum_shift: 0,
        refill_when_empty: false,
        between_completions: false,
        base_per_sample: true,
        rotational: false,
        window_rotational_ns: 16_000_000,
        refill_percent: 15,
        batch_limit: [24, 48, 1, 1],
        read_target_ns: 1_000_000,
        read_priority: 7,
        shrink_at_kreqs: 10_000,
        shrink_at_gbytes: 100,
        ..Self::V3_1_9
    };

    /// Finds a release by name; returns the default for any other name.
    pub fn named(name: &str) -> Version {
        match name {
            "1.5.5" => Self::V1_5_5,
            "3.0.1" => Self::V3_0_1,
            "3.2.0" => Self::V3_2_0,
            _ => Self::V3_1_9,
        }
    }
}
