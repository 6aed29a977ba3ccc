//! zen: two FIFOs, sync before async, with periodic deadline checks (Brandon Berhent, 2012).
//!
//! Requests are dispatched in order of arrival within their class, sync before async. Every
//! `fifo_batch + 1` dispatches zen checks the deadline of the oldest request of each class. If only
//! the oldest async request has expired, it goes first. If both have expired, the sync request goes
//! if it is due earlier; otherwise neither goes because of its deadline. zen does not sort, does
//! not distinguish processes, does not idle and has no timers.
//!
//! The copies that phones contained are one implementation with these parameters:
//!
//! | | 1.1 (default) | v1 | jf | ge |
//! |---|---|---|---|---|
//! | a request is "sync" by | its sync flag | its direction: **writes** | flag | flag |
//! | sync_expire, async_expire | 500 ms, 5 s | 250 ms, 2 s | 500 ms, 5 s | 500 ms, 5 s |
//! | fifo_batch | 16 | 1 | 1 | 16 |
//! | expired | later than | later than | at or later | at or later |
//!
//! Two defects of the originals are corrected. With an expiry time of 0 the originals lost the
//! request; here the request is due on arrival. The originals did not initialize the batch counter;
//! here it starts at 0.

use crate::contract::{Insert, Scheduler};
use crate::cx::{Cx, Emit};
use crate::fifo::{ExpiryCheck, Fifos};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{INT_MAX, StoreError, Tunable, legacy_int};
use seekwell_core::{Era, RqId};

/// Registry entry of zen.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "zen",
    layer: Layer::Legacy,
    versions: &[
        ("1.1", Era::K3_4),
        ("v1", Era::K3_4),
        ("jf", Era::K3_4),
        ("ge", Era::K3_4),
    ],
    summary: "two FIFOs, sync before async, with periodic deadline checks",
    history: "Brandon Berhent, 2012, for the Galaxy Nexus \"Zen\" kernel, after noop, deadline and \
              SIO; out of tree, in phone kernels 3.0 to 4.4. Motorola, OnePlus and LineageOS trees \
              carry 1.1; v1 (2012) treats writes as sync; jf and ge are other copies.",
    not_when: "Rotating disks, because it does not sort. Slow storage under writeback: if sync \
               requests are always late, async requests wait until no sync request is queued.",
    source: "behaviour of block/zen-iosched.c in seven published phone kernels",
    per_process: false,
    hash: hash_always,
    // The bound is async_expire. This deadline is checked between batches of fifo_batch (16)
    // requests, which include sync requests.
    waiting: Waiting {
        fixed_ms: 5000,
        requests: 64,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 3,
        except: &[],
    },
    rules: RULES,
    tunables: |v| Variant::named(v).tunables,
    make: |cx, v| Box::new(Zen::new(cx, Variant::named(v))),
};

seekwell_core::rules! {
    HEAD_EXPIRED: "head-expired", "zen_choose_expired_request",
        "After each fifo_batch requests, the oldest request of a class goes first if it has \
         expired. If both have expired, the sync request goes if it is due earlier; otherwise \
         neither goes first.";
    OLDEST_FIRST: "oldest-first", "zen_choose_request",
        "The oldest sync request goes. An async request goes only if no sync request waits.";
}

#[rustfmt::skip]
const fn tunables(defaults: [&'static str; 3]) -> [Tunable; 4] {
    [
        Tunable::ms("sync_expire", defaults[0],
            "Age at which the oldest sync request has expired, so that a deadline check may \
             dispatch it first. 0: it has expired at once (the original lost the request)."),
        Tunable::ms("async_expire", defaults[1],
            "Age at which the oldest async request (a buffered write) has expired. Shorter: \
             writeback is dispatched more often between reads. 0: it has expired at once (the \
             original lost the request)."),
        Tunable::count("fifo_batch", "requests", defaults[2],
            "Deadlines are checked every fifo_batch + 1 dispatches. The first check is at dispatch \
             fifo_batch + 2."),
        Tunable::flag("fix_both_expired", "0",
            "Not in any kernel. 1: if the oldest sync and async requests have both expired and the \
             async one is due earlier, the async one goes. 0: as in the original, neither then \
             goes first, so that a sync request follows."),
    ]
}

static TUNABLES: [Tunable; 4] = tunables(["500", "5000", "16"]);
static TUNABLES_V1: [Tunable; 4] = tunables(["250", "2000", "1"]);
static TUNABLES_JF: [Tunable; 4] = tunables(["500", "5000", "1"]);

/// The differences between the published copies.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// True if the data direction gives the class: writes are "sync", reads are "async".
    pub class_by_direction: bool,
    /// True if a request expires after the jiffy of its deadline, false if it expires in that
    /// jiffy.
    pub strict_expiry: bool,
    /// Default of sync_expire, as a divisor of a second (HZ divided by this number).
    pub sync_expire_divisor: u64,
    /// Default of async_expire, in seconds.
    pub async_expire_s: u64,
    /// Default of fifo_batch, in requests.
    pub fifo_batch: u32,
    tunables: &'static [Tunable],
}

impl Variant {
    /// Returns the variant with a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        let reference = Variant {
            class_by_direction: false,
            strict_expiry: true,
            sync_expire_divisor: 2,
            async_expire_s: 5,
            fifo_batch: 16,
            tunables: &TUNABLES,
        };
        match version {
            "v1" => Variant {
                class_by_direction: true,
                sync_expire_divisor: 4,
                async_expire_s: 2,
                fifo_batch: 1,
                tunables: &TUNABLES_V1,
                ..reference
            },
            "jf" => Variant {
                strict_expiry: false,
                fifo_batch: 1,
                tunables: &TUNABLES_JF,
                ..reference
            },
            "ge" => Variant {
                strict_expiry: false,
                ..reference
            },
            _ => reference,
        }
    }
}

const ASYNC: usize = 0;
const SYNC: usize = 1;

/// The scheduler zen.
#[derive(Debug)]
pub struct Zen {
    variant: Variant,
    fifos: Fifos<2>,
    check: ExpiryCheck,
    expire_j: [u64; 2],
    fix_both_expired: bool,
}

impl Zen {
    /// Creates the scheduler with the defaults of `variant`.
    pub fn new(cx: &Cx, variant: Variant) -> Self {
        Zen {
            variant,
            fifos: Fifos::new(),
            check: ExpiryCheck::new(variant.fifo_batch),
            expire_j: [
                cx.hz() * variant.async_expire_s,
                cx.hz() / variant.sync_expire_divisor,
            ],
            fix_both_expired: false,
        }
    }

    fn expired(&self, now_j: u64, deadline_j: u64) -> bool {
        if self.variant.strict_expiry {
            now_j > deadline_j
        } else {
            now_j >= deadline_j
        }
    }

    /// Returns the oldest request of a class if it has expired and may go first.
    fn take_expired(&self, cx: &mut Cx) -> Option<RqId> {
        let now_j = cx.jiffies();
        let head = |list| self.fifos.first_if(list, |d| self.expired(now_j, d));
        let due = |rq| self.fifos.deadline_j(rq);
        match (head(SYNC), head(ASYNC)) {
            (Some(s), Some(a)) if due(a) > due(s) => {
                cx.why_rq(HEAD_EXPIRED, s, || {
                    "both heads have expired, sync is due earlier".to_owned()
                });
                Some(s)
            }
            (Some(_), Some(a)) if self.fix_both_expired => {
                cx.why_rq(HEAD_EXPIRED, a, || {
                    "both heads have expired, async is due earlier and goes (fix_both_expired)"
                        .to_owned()
                });
                Some(a)
            }
            (Some(_), Some(_)) => {
                cx.why(HEAD_EXPIRED, || {
                    "both heads have expired, async is due earlier: neither is taken".to_owned()
                });
                None
            }
            (Some(s), None) => {
                cx.why_rq(HEAD_EXPIRED, s, || "the sync head has expired".to_owned());
                Some(s)
            }
            (None, Some(a)) => {
                cx.why_rq(HEAD_EXPIRED, a, || "the async head has expired".to_owned());
                Some(a)
            }
            (None, None) => None,
        }
    }
}

impl Scheduler for Zen {
    #[inline]
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let r = &cx.rqs[rq];
        let sync = if self.variant.class_by_direction {
            r.is_write()
        } else {
            r.sync
        };
        let class = if sync { SYNC } else { ASYNC };
        let deadline_j = match self.expire_j[class] {
            // With an expiry time of 0, the request is due on arrival for both ways to test the
            // expiry.
            0 => cx.jiffies() - u64::from(self.variant.strict_expiry),
            expire_j => cx.jiffies() + expire_j,
        };
        match how {
            Insert::Sorted => self.fifos.push_back(class, rq, deadline_j),
            Insert::AtHead | Insert::Requeue | Insert::Reinsert => {
                self.fifos.push_front(class, rq, deadline_j);
            }
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let expired = if self.check.due() {
            self.take_expired(cx)
        } else {
            None
        };
        let taken = expired.or_else(|| {
            let (list, word) = match self.fifos.is_empty(SYNC) {
                false => (SYNC, "sync"),
                true => (ASYNC, "async"),
            };
            let rq = self.fifos.first(list)?;
            cx.why_rq(OLDEST_FIRST, rq, || format!("the oldest {word} request"));
            Some(rq)
        });
        let Some(rq) = taken else { return 0 };
        self.fifos.remove(rq);
        self.check.count();
        cx.emit(rq, Emit::Tail);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.fifos.is_empty(SYNC) || !self.fifos.is_empty(ASYNC)
    }

    fn joined(&mut self, _: &mut Cx, kept: RqId, gone: RqId) {
        self.fifos.join(kept, gone);
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.variant.tunables
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        Some(match name {
            "sync_expire" => cx.clock().to_ms(self.expire_j[SYNC]).to_string(),
            "async_expire" => cx.clock().to_ms(self.expire_j[ASYNC]).to_string(),
            "fifo_batch" => self.check.fifo_batch().to_string(),
            "fix_both_expired" => u8::from(self.fix_both_expired).to_string(),
            _ => return None,
        })
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let v = legacy_int(text).clamp(0, INT_MAX);
        match name {
            "sync_expire" => self.expire_j[SYNC] = cx.ms_to_jiffies(v as u64),
            "async_expire" => self.expire_j[ASYNC] = cx.ms_to_jiffies(v as u64),
            "fifo_batch" => self.check.set_fifo_batch(v as u32),
            "fix_both_expired" => self.fix_both_expired = v > 0,
            _ => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        self.fifos.check();
        self.check.check();
        assert_eq!(
            self.fifos.total(),
            cx.nr_sorted as usize,
            "zen: lists and nr_sorted"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |rq| cx.rqs.first_bio(rq).id.0.to_string();
        for (list, word) in [(SYNC, "sync"), (ASYNC, "async")] {
            let ids: Vec<_> = self.fifos.iter(list).map(name).collect();
            *out += &format!("{word}: [{}]; ", ids.join(" "));
        }
        *out += &format!("batching {}", self.check.dispatched());
    }
}
