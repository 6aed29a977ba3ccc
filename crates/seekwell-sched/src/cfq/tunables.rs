//! The files in `iosched/`: names, formulas of the defaults, limits and rounding.

use super::Version;
use crate::cx::Cx;
use crate::tunable::{Kind, StoreError, Tunable, UINT_MAX, legacy_int};

/// Values of the tunables. Times are in jiffies, as in the kernel.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Maximum number of requests of one queue in the driver (3.x), or per dispatch round (2.6).
    pub quantum: u64,
    /// Age in jiffies at which the oldest request goes first: `[async, sync]`.
    pub fifo_expire_j: [u64; 2],
    /// Largest distance behind the head, in KiB, at which a request is still compared.
    pub back_seek_max_kib: u64,
    /// Factor on a backward distance.
    pub back_seek_penalty: u64,
    /// Base length of a slice in jiffies: `[async, sync]`.
    pub slice_j: [u64; 2],
    /// Base of the number of requests allowed in an async slice.
    pub slice_async_rq: u64,
    /// How long the device idles for a queue, in jiffies.
    pub slice_idle_j: u64,
    /// How long the device idles for the last queue of a group, in jiffies.
    pub group_idle_j: u64,
    /// True if slices are scaled and async requests start slowly.
    pub low_latency: bool,
    /// Target length of one round of all queues of a class, in jiffies.
    pub target_latency_j: u64,
    /// Value of `queued`, which 2.6.18 stores but never uses.
    queued: u64,
    tunables: &'static [Tunable],
}

const fn ms(name: &'static str, default: &'static str, min: i64, help: &'static str) -> Tunable {
    Tunable::ms(name, default, help).range(min, UINT_MAX)
}
const fn count(
    name: &'static str,
    unit: &'static str,
    default: &'static str,
    min: i64,
    help: &'static str,
) -> Tunable {
    Tunable::count(name, unit, default, help).range(min, UINT_MAX)
}

const QUANTUM: Tunable = count(
    "quantum",
    "requests",
    "8",
    1,
    "Number of requests that one queue may have in the driver while others wait (half as many late \
     in a slice). Raise it for arrays; a large value lets one process flood the device.",
);
const QUANTUM_2_6: Tunable = count(
    "quantum",
    "requests",
    "4",
    1,
    "Number of requests that one round moves to the dispatch list. Larger: the device has more \
     requests, but preemption takes effect later.",
);
const QUEUED: Tunable = count(
    "queued",
    "requests",
    "8",
    1,
    "Stored but never used by 2.6.18: nr_requests limits allocation.",
);
const FIFO_EXPIRE_SYNC: Tunable = ms(
    "fifo_expire_sync",
    "125",
    1,
    "Age at which the oldest sync request of a queue goes first. It is checked once per slice, so \
     it reorders the start of a slice and never chooses between queues. In 3.x also the latency \
     above which a sync request throttles async dispatch.",
);
const FIFO_EXPIRE_ASYNC: Tunable = ms(
    "fifo_expire_async",
    "250",
    1,
    "Age at which the oldest async request of a queue goes first. It is checked once per slice.",
);
const BACK_SEEK_MAX: Tunable = count(
    "back_seek_max",
    "KiB",
    "16384",
    0,
    "Largest distance behind the head at which a request still competes with those in front of the \
     head.",
);
const BACK_SEEK_PENALTY: Tunable = count(
    "back_seek_penalty",
    "factor",
    "2",
    1,
    "Factor by which a backward distance counts more than a forward distance.",
);
const SLICE_SYNC: Tunable = ms(
    "slice_sync",
    "100",
    1,
    "Base slice of a sync queue of level 4 (level 0 gets 180 %, level 7 40 %). Longer: fewer \
     seeks, longer waits for the others.",
);
const SLICE_ASYNC: Tunable = ms(
    "slice_async",
    "40",
    1,
    "Base slice of an async queue of level 4.",
);
const SLICE_ASYNC_RQ: Tunable = count(
    "slice_async_rq",
    "requests",
    "2",
    1,
    "Base of the number of requests in an async slice while other queues wait (2 gives 16 requests \
     at level 4).",
);
const SLICE_IDLE: Tunable = ms(
    "slice_idle",
    "8",
    0,
    "How long the device idles for the next request of the active process. 0: no idling; in 3.x \
     CFQ then also counts requests instead of time, if the device queues commands. Set 0 on arrays \
     and fast devices.",
);
/// `slice_idle` of 4.2 and later, whose default depends on the device.
const SLICE_IDLE_BY_DEVICE: Tunable = Tunable {
    default: "8 (flash 0)",
    ..SLICE_IDLE
};
const GROUP_IDLE: Tunable = ms(
    "group_idle",
    "8",
    0,
    "How long the device idles for the last queue of a cgroup, so that the group keeps its share.",
);
const LOW_LATENCY: Tunable = Tunable::flag(
    "low_latency",
    "1",
    "Shorten slices so that one round of all queues takes at most target_latency, and let \
     the number of async requests grow slowly after a slow sync request. 0: more throughput, \
     longer latency.",
);
const TARGET_LATENCY: Tunable = ms(
    "target_latency",
    "300",
    1,
    "One round of all queues of a class should fit in this time (with low_latency); also the base \
     of workload and group slices.",
);

const TUNABLES_2_6_18: &[Tunable] = &[
    QUANTUM_2_6,
    QUEUED,
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    SLICE_SYNC,
    SLICE_ASYNC,
    SLICE_ASYNC_RQ,
    SLICE_IDLE,
];
const TUNABLES_2_6_24: &[Tunable] = &[
    QUANTUM_2_6,
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    SLICE_SYNC,
    SLICE_ASYNC,
    SLICE_ASYNC_RQ,
    SLICE_IDLE,
];
const TUNABLES_3_4: &[Tunable] = &[
    QUANTUM,
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    SLICE_SYNC,
    SLICE_ASYNC,
    SLICE_ASYNC_RQ,
    SLICE_IDLE,
    GROUP_IDLE,
    LOW_LATENCY,
    TARGET_LATENCY,
];
const TUNABLES_4_4: &[Tunable] = &[
    QUANTUM,
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    SLICE_SYNC,
    SLICE_ASYNC,
    SLICE_ASYNC_RQ,
    SLICE_IDLE_BY_DEVICE,
    GROUP_IDLE,
    LOW_LATENCY,
    TARGET_LATENCY,
];

pub(super) const fn tunables(version: Version) -> &'static [Tunable] {
    match version {
        Version::V2_6_18 => TUNABLES_2_6_18,
        Version::V2_6_24 | Version::V2_6_25 => TUNABLES_2_6_24,
        Version::V3_4 | Version::V4_0 => TUNABLES_3_4,
        Version::V4_4 => TUNABLES_4_4,
    }
}

const SYNC: usize = 1;
const ASYNC: usize = 0;

impl Settings {
    /// Returns the defaults, by the kernel's formulas with HZ.
    pub fn new(cx: &Cx, version: Version) -> Self {
        let hz = cx.hz();
        Settings {
            quantum: if version.grouped() { 8 } else { 4 },
            fifo_expire_j: [hz / 4, hz / 8],
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            slice_j: [(hz / 25).max(1), hz / 10],
            slice_async_rq: 2,
            slice_idle_j: match version {
                Version::V4_4 if !cx.queue.rotational => 0,
                _ => (hz / 125).max(1),
            },
            group_idle_j: (hz / 125).max(1),
            low_latency: true,
            target_latency_j: hz * 3 / 10,
            queued: 8,
            tunables: tunables(version),
        }
    }

    /// Returns the tunables of this version.
    pub fn tunables(&self) -> &'static [Tunable] {
        self.tunables
    }

    fn slot(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "quantum" => &mut self.quantum,
            "queued" => &mut self.queued,
            "fifo_expire_sync" => &mut self.fifo_expire_j[SYNC],
            "fifo_expire_async" => &mut self.fifo_expire_j[ASYNC],
            "back_seek_max" => &mut self.back_seek_max_kib,
            "back_seek_penalty" => &mut self.back_seek_penalty,
            "slice_sync" => &mut self.slice_j[SYNC],
            "slice_async" => &mut self.slice_j[ASYNC],
            "slice_async_rq" => &mut self.slice_async_rq,
            "slice_idle" => &mut self.slice_idle_j,
            "group_idle" => &mut self.group_idle_j,
            "target_latency" => &mut self.target_latency_j,
            _ => return None,
        })
    }

    /// Returns the value of a tunable as sysfs prints it; `None` if there is no such tunable.
    pub fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        let t = self.tunables.iter().find(|t| t.name == name)?;
        if t.kind == Kind::Bool {
            return Some(u8::from(self.low_latency).to_string());
        }
        let v = *self.clone().slot(name)?;
        Some(match t.kind {
            Kind::MsJiffies => cx.clock().to_ms(v).to_string(),
            _ => v.to_string(),
        })
    }

    /// Stores a tunable as sysfs does. The value is the decimal prefix of `text`, limited to the
    /// range of the tunable. Milliseconds are rounded up to jiffies.
    pub fn store(&mut self, cx: &Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let Some(t) = self.tunables.iter().find(|t| t.name == name) else {
            return Err(StoreError::unknown(name));
        };
        let v = legacy_int(text).clamp(t.min, t.max) as u64;
        if t.kind == Kind::Bool {
            self.low_latency = v != 0;
            return Ok(());
        }
        let v = match t.kind {
            Kind::MsJiffies => cx.ms_to_jiffies(v),
            _ => v,
        };
        match self.slot(name) {
            Some(slot) => *slot = v,
            None => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    /// `cfq_prio_slice`: returns the slice of a queue from its level, in jiffies.
    #[inline]
    pub fn prio_slice_j(&self, sync: bool, level: u8) -> u64 {
        let base = self.slice_j[sync as usize] as i64;
        (base + base / 5 * (4 - i64::from(level))) as u64
    }
    /// `cfq_prio_to_maxrq`: returns the number of requests allowed in an async slice.
    #[inline]
    pub fn max_requests(&self, level: u8) -> u64 {
        2 * self.slice_async_rq * (8 - u64::from(level))
    }
}
