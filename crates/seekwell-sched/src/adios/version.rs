//! The differences between the four releases, as switches.

/// The requests that go to the barrier queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Barriers {
    /// There is no barrier queue.
    Never,
    /// 3.1.9 tests bit 1 of the operation's number, so that every discard is a barrier.
    Discards,
    /// 3.2.0 tests for flushes only, and flushes never reach a scheduler.
    Flushes,
}

/// The requests that go to the priority queues instead of the deadline trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tiers {
    /// At-head requests, in one queue; the last one goes first.
    AtHeadLifo,
    /// At-head requests. FUA and PREFLUSH requests go before them, if `compliance_flags` says so.
    Durability,
    /// At-head requests. Barriers go before them.
    Barrier,
}

/// The behaviour of one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    pub name: &'static str,
    /// True if requests leave in order of arrival until a read and a write have been measured.
    pub fifo_until_stable: bool,
    pub barriers: Barriers,
    pub tiers: Tiers,
    /// True if requests with the SYNC flag are due at once.
    pub sync_is_due: bool,
    /// The bit of `compliance_flags` that leaves the predicted latency out of deadlines; 0: no such
    /// bit.
    pub plain_deadline_flag: u32,
    /// Deadlines are rounded down to a multiple of 2^this ns before they are compared.
    pub quantum_shift: u32,
    /// True if a page serves its highest-numbered type first.
    pub highest_first: bool,
    /// True if an empty page is refilled even if the device has much work left.
    pub refill_when_empty: bool,
    /// True if a sample is the time since the last completion, false if it is the time since the
    /// issue.
    pub between_completions: bool,
    /// True if the last completion is stored for each CPU.
    pub per_cpu: bool,
    /// True if one base is subtracted for each long sample, false if one base is subtracted from
    /// their sum.
    pub base_per_sample: bool,
    /// True if rotating disks are handled: with sample weights, a wider window, and pages in sector
    /// order.
    pub rotational: bool,
    /// True if bucket numbers wrap around at 8 bits before they are limited.
    pub narrow_buckets: bool,
    /// True if `lat_model_latency_limit` also limits predictions.
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

    /// Returns the release with this name, or the default release for any other name.
    pub fn named(name: &str) -> Version {
        match name {
            "1.5.5" => Self::V1_5_5,
            "3.0.1" => Self::V3_0_1,
            "3.2.0" => Self::V3_2_0,
            _ => Self::V3_1_9,
        }
    }
}
