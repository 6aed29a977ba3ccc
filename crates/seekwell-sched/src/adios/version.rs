//! The differences between the four modelled releases of ADIOS, as fields of [`Version`].

/// Selects the requests that are barriers and therefore go to the barrier queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Barriers {
    /// There is no barrier queue.
    Never,
    /// Discards and flushes are barriers. The reason is that 3.1.9 tests bit 1 of the operation's
    /// number, and this bit is also set for a discard.
    Discards,
    /// Only flushes are barriers (3.2.0). This has no effect, because the kernel does not pass
    /// flushes to a scheduler.
    Flushes,
}

/// Selects the requests that go to a priority queue instead of the deadline trees. At-head requests
/// are requests that the kernel inserts at the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tiers {
    /// At-head requests. They are in one queue, and the newest request is dispatched first.
    AtHeadLifo,
    /// At-head requests. FUA and PREFLUSH requests are dispatched before the at-head requests, if
    /// the tunable `compliance_flags` has their bit.
    Durability,
    /// At-head requests. Barriers are dispatched before the at-head requests.
    Barrier,
}

/// The behaviour of one release of ADIOS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    pub name: &'static str,
    /// True if requests are dispatched in order of arrival until the latencies of at least one read
    /// and one write have been measured.
    pub fifo_until_stable: bool,
    pub barriers: Barriers,
    pub tiers: Tiers,
    /// True if the deadline of a request with the SYNC flag is its time of arrival.
    pub sync_is_due: bool,
    /// The bit of the tunable `compliance_flags` that computes deadlines without the predicted
    /// latency. 0 if the release has no such bit.
    pub plain_deadline_flag: u32,
    /// Deadlines are rounded down to a multiple of `2^quantum_shift` ns before they are compared.
    pub quantum_shift: u32,
    /// True if a page serves its highest-numbered type first.
    pub highest_first: bool,
    /// True if an empty page is refilled although the device still has much work.
    pub refill_when_empty: bool,
    /// Selects how the latency of a request is measured. True: from the previous completion of any
    /// request. False: from the issue of this request.
    pub between_completions: bool,
    /// True if the time of the previous completion is stored separately for each CPU.
    pub per_cpu: bool,
    /// Selects how the slope of the latency model (time per KiB) is computed from the measured
    /// latencies of large requests. The base (the fixed part of a latency) must be subtracted from
    /// their sum. True: the base is subtracted once per latency. False: the base is subtracted only
    /// once from the sum.
    pub base_per_sample: bool,
    /// True if ADIOS treats rotating disks in a special way: with weights for latency samples, a
    /// wider window, and pages that are sorted by sector.
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
