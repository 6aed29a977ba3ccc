//! deadline: one-way sweeps in batches, with expiry times (`block/deadline-iosched.c`, Jens Axboe).
//!
//! For each data direction, requests are in two structures at once: sorted by sector, and in order
//! of arrival with a deadline. A batch serves one direction with increasing sectors. Between
//! batches deadline chooses a direction: reads, unless writes were passed over `writes_starved`
//! times. If the oldest request of that direction has expired, the sweep starts there. Deadlines
//! are soft, because they are checked only between batches.
//!
//! Four generations behave differently. One implementation has a switch for each difference:
//!
//! | | 2.6.18 | 2.6.24 | 3.4 | 4.0 (default) |
//! |---|---|---|---|---|
//! | a gap between requests ends the batch | yes | yes | no | no |
//! | a new sweep starts at | lowest sector | FIFO head | FIFO head | FIFO head |
//! | expired | later than | later than | later than | at or later |
//! | a second request at the same sector | evicts the first | evicts the first | queued | queued |
//!
//! deadline ignores sync flags, ioprio and processes. It has no timers and does not idle.

use crate::contract::{Insert, MergeKind, Scheduler};
use crate::cx::{Cx, Emit};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{INT_MAX, StoreError, Tunable, legacy_int};
use seekwell_core::{Bio, Era, IocId, Links, List, Nodes, RqId, Rule, Sector, Side, Tree};

/// Registry entry of deadline.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "deadline",
    layer: Layer::Legacy,
    versions: &[
        ("4.0", Era::K4_0),
        ("3.4", Era::K3_4),
        ("2.6.24", Era::K2_6_24),
        ("2.6.18", Era::K2_6_18),
    ],
    summary: "one-way sweeps in batches per direction, reads preferred, soft deadlines",
    history: "2.6.0 to 4.20, by Jens Axboe. Written for databases and other direct I/O; the \
              default of Ubuntu from 12.10 and of RHEL 7. Since 2.6.25 a gap between requests does \
              not end a batch.",
    not_when: "Several sequential readers on one rotating disk: it does not idle, so the readers \
               alternate.",
    source: "behaviour of block/deadline-iosched.c, Linux 2.6.18, 2.6.24, 3.4, 4.0",
    per_process: false,
    hash: hash_always,
    // The bound is write_expire, and then writes_starved + 1 full batches of fifo_batch.
    waiting: Waiting {
        fixed_ms: 5000,
        requests: 48,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 16,
        except: &[],
    },
    rules: RULES,
    tunables: |_| TUNABLES,
    make: |cx, v| Box::new(Deadline::new(cx, Generation::named(v))),
};

seekwell_core::rules! {
    ALIAS_EVICTED: "alias-evicted", "deadline_add_rq_rb",
        "Up to 2.6.24 a direction holds one request per start sector. If a second request with \
         that start arrives, the first is moved to the dispatch list at once.";
    HEAD_EXPIRED: "head-expired", "deadline_check_fifo",
        "A batch begins with the oldest request of its direction if the deadline of that request \
         has passed.";
    BATCH_CONTINUES: "batch-continues", "deadline_dispatch_requests",
        "While the batch has had fewer than fifo_batch requests, the next request of the sweep \
         goes. Deadlines and the other direction are not checked.";
    WRITES_STARVED: "writes-starved", "deadline_dispatch_requests",
        "If both reads and writes wait, a batch of writes begins after writes_starved batches of \
         reads.";
    SWEEP_CONTINUES: "sweep-continues", "deadline_dispatch_requests",
        "If no request of the direction has expired, a batch begins at the sector where the last \
         batch of the direction stopped.";
    LOWEST_SECTOR: "lowest-sector", "deadline_dispatch_requests",
        "2.6.18: a sweep that has ended starts again at the lowest sector.";
    FIFO_HEAD: "fifo-head", "deadline_dispatch_requests",
        "After 2.6.18: a sweep that has ended starts again at the oldest request.";
}

#[rustfmt::skip]
const TUNABLES: &[Tunable] = &[
    Tunable::ms("read_expire", "500",
        "Time from the insertion of a read to its deadline. Shorter: more seeks, lower worst-case latency."),
    Tunable::ms("write_expire", "5000", "Time from the insertion of a write to its deadline."),
    Tunable::count("writes_starved", "read batches", "2",
        "Number of read batches that may start while writes wait. 0: writes go first whenever both \
         wait; negative: reads always go first.").range(i32::MIN as i64, INT_MAX),
    Tunable::flag("front_merges", "1",
        "Try to merge a new bio at the front of a queued request that starts where the bio ends."),
    Tunable::count("fifo_batch", "requests", "16",
        "Number of requests per batch. Larger: fewer seeks, longer waits; 0 behaves as 1."),
];

/// The differences between the generations, as switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// True if a request that does not begin at the end of the last one ends the batch.
    pub contiguous_batches: bool,
    /// True if a sweep that has ended restarts at the lowest sector, false if at the FIFO head.
    pub lowest_restart: bool,
    /// True if the head expires after the jiffy of its deadline, false if it expires in that jiffy.
    pub strict_expiry: bool,
    /// True if a queued request is dispatched when another request with the same start sector
    /// arrives.
    pub evict_alias: bool,
    /// True if a request that grew at its front loses its place as the next request of the sweep
    /// (2.6.18).
    pub front_merge_skips: bool,
}

impl Generation {
    /// The generation of Linux 4.0, which is the default.
    pub const D40: Generation = Generation {
        contiguous_batches: false,
        lowest_restart: false,
        strict_expiry: false,
        evict_alias: false,
        front_merge_skips: false,
    };

    /// Returns the generation of a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        let d34 = Generation {
            strict_expiry: true,
            ..Self::D40
        };
        let d24 = Generation {
            contiguous_batches: true,
            evict_alias: true,
            ..d34
        };
        match version {
            "2.6.18" => Generation {
                lowest_restart: true,
                front_merge_skips: true,
                ..d24
            },
            "2.6.24" => d24,
            "3.4" => d34,
            _ => Self::D40,
        }
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

/// Records the reason why a new batch begins with request `rq`.
#[inline]
fn why_of(cx: &mut Cx, rule: &'static Rule, rq: Option<RqId>, d: usize) {
    if let Some(rq) = rq {
        cx.why_rq(rule, rq, || batch_of(d));
    }
}

fn batch_of(d: usize) -> String {
    format!("a new batch of {}", ["reads", "writes"][d])
}

/// The scheduler deadline.
#[derive(Debug)]
pub struct Deadline {
    generation: Generation,
    sorted: [Tree; 2],
    nodes: Nodes<Sector>,
    fifo: [List; 2],
    links: Links,
    deadline_j: Side<u64>,
    next: [Option<RqId>; 2],
    batch: u64,
    starved: u32,
    last_end: Sector,
    expire_j: [u64; 2],
    fifo_batch: i32,
    writes_starved: i32,
    front_merges: bool,
}

impl Deadline {
    /// Creates the scheduler with the kernel's defaults.
    pub fn new(cx: &Cx, generation: Generation) -> Self {
        Deadline {
            generation,
            sorted: [Tree::new(); 2],
            nodes: Nodes::new(),
            fifo: [List::new(); 2],
            links: Links::new(),
            deadline_j: Side::new(),
            next: [None; 2],
            batch: 0,
            starved: 0,
            last_end: Sector(0),
            expire_j: [cx.hz() / 2, cx.hz() * 5],
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
        }
    }

    fn sort(&mut self, cx: &mut Cx, rq: RqId) {
        let (d, key) = (cx.rqs[rq].dir(), cx.rqs[rq].sector);
        while self.generation.evict_alias
            && let Some(i) = self.nodes.find(&self.sorted[d], key)
        {
            cx.why_rq(ALIAS_EVICTED, RqId(i), || {
                "another request with its start sector arrives".to_owned()
            });
            self.take(cx, RqId(i));
        }
        self.nodes.insert(&mut self.sorted[d], rq.0, key);
    }

    fn unsort(&mut self, cx: &Cx, rq: RqId) {
        let d = cx.rqs[rq].dir();
        if self.next[d] == Some(rq) {
            self.next[d] = self.nodes.next(rq.0).map(RqId);
        }
        self.nodes.remove(&mut self.sorted[d], rq.0);
    }

    fn drop_request(&mut self, cx: &Cx, rq: RqId) {
        let d = cx.rqs[rq].dir();
        self.links.remove(&mut self.fifo[d], rq.0);
        self.unsort(cx, rq);
    }

    /// `deadline_move_request`: dispatches `rq` and moves the sweep to the request after it.
    #[inline]
    fn take(&mut self, cx: &mut Cx, rq: RqId) {
        let d = cx.rqs[rq].dir();
        self.next = [None; 2];
        self.next[d] = self.nodes.next(rq.0).map(RqId);
        self.last_end = cx.rqs[rq].end();
        self.links.remove(&mut self.fifo[d], rq.0);
        self.nodes.remove(&mut self.sorted[d], rq.0);
        cx.emit(rq, Emit::Tail);
    }

    fn head_expired(&self, cx: &Cx, d: usize) -> bool {
        let Some(head) = self.fifo[d].first() else {
            return false;
        };
        let deadline = *self.deadline_j.get(head as usize);
        let now = cx.jiffies();
        if self.generation.strict_expiry {
            now > deadline
        } else {
            now >= deadline
        }
    }

    /// `deadline_dispatch_requests` (middle part): returns the direction of a new batch.
    fn choose_direction(&mut self, cx: &mut Cx) -> Option<usize> {
        let (r, w) = (!self.fifo[READ].is_empty(), !self.fifo[WRITE].is_empty());
        let d = match (r, w) {
            (false, false) => return None,
            (false, true) => WRITE,
            (true, false) => READ,
            (true, true) => {
                // The comparison is unsigned, so that a negative writes_starved is never reached.
                let passed_over = self.starved;
                self.starved = self.starved.wrapping_add(1);
                let limit = self.writes_starved as u32;
                if passed_over >= limit {
                    cx.why(WRITES_STARVED, || {
                        format!("writes were passed over {passed_over} times")
                    });
                    WRITE
                } else {
                    READ
                }
            }
        };
        if d == WRITE {
            self.starved = 0;
        }
        Some(d)
    }
}

impl Scheduler for Deadline {
    #[inline]
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        let d = cx.rqs[rq].dir();
        self.sort(cx, rq);
        *self.deadline_j.at(rq.idx()) = cx.jiffies() + self.expire_j[d];
        self.links.push_back(&mut self.fifo[d], rq.0);
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let fifo_batch = self.fifo_batch.max(0) as u64;
        if let Some(rq) = self.next[WRITE].or(self.next[READ]) {
            if self.generation.contiguous_batches && cx.rqs[rq].sector != self.last_end {
                self.batch += fifo_batch;
            }
            if self.batch < fifo_batch {
                let n = self.batch + 1;
                cx.why_rq(BATCH_CONTINUES, rq, || format!("{n} of {fifo_batch}"));
                self.batch += 1;
                self.take(cx, rq);
                return 1;
            }
        }
        let Some(d) = self.choose_direction(cx) else {
            return 0;
        };
        let head = self.fifo[d].first().map(RqId);
        let fresh = if self.head_expired(cx, d) {
            why_of(cx, HEAD_EXPIRED, head, d);
            head
        } else if let Some(rq) = self.next[d] {
            cx.why_rq(SWEEP_CONTINUES, rq, || batch_of(d));
            if !self.generation.lowest_restart {
                self.batch = 0;
            }
            self.batch += 1;
            self.take(cx, rq);
            return 1;
        } else if self.generation.lowest_restart {
            let lowest = self.sorted[d].first().map(RqId);
            why_of(cx, LOWEST_SECTOR, lowest, d);
            lowest
        } else {
            why_of(cx, FIFO_HEAD, head, d);
            head
        };
        let Some(rq) = fresh else { return 0 };
        self.batch = 1;
        self.take(cx, rq);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.fifo[READ].is_empty() || !self.fifo[WRITE].is_empty()
    }

    fn find_front(&mut self, _: &mut Cx, bio: &Bio, _: IocId) -> Option<RqId> {
        if !self.front_merges {
            return None;
        }
        self.nodes
            .find(&self.sorted[bio.op.dir()], bio.end())
            .map(RqId)
    }

    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Back {
            return;
        }
        let d = cx.rqs[rq].dir();
        let was_next = self.next[d] == Some(rq);
        if self.generation.front_merge_skips {
            self.unsort(cx, rq);
        } else {
            self.nodes.remove(&mut self.sorted[d], rq.0);
        }
        self.sort(cx, rq);
        if was_next && !self.generation.front_merge_skips {
            self.next[d] = Some(rq);
        }
    }

    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        let d = cx.rqs[kept].dir();
        let (kd, gd) = (
            *self.deadline_j.at(kept.idx()),
            *self.deadline_j.at(gone.idx()),
        );
        if gd < kd {
            self.links.remove(&mut self.fifo[d], kept.0);
            self.links.insert_after(&mut self.fifo[d], gone.0, kept.0);
            *self.deadline_j.at(kept.idx()) = gd;
        }
        self.drop_request(cx, gone);
    }

    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq.0).map(RqId)
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        Some(match name {
            "read_expire" => cx.clock().to_ms(self.expire_j[READ]).to_string(),
            "write_expire" => cx.clock().to_ms(self.expire_j[WRITE]).to_string(),
            "writes_starved" => self.writes_starved.to_string(),
            "front_merges" => u8::from(self.front_merges).to_string(),
            "fifo_batch" => self.fifo_batch.to_string(),
            _ => return None,
        })
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let v = legacy_int(text);
        match name {
            "read_expire" => self.expire_j[READ] = cx.ms_to_jiffies(v.clamp(0, INT_MAX) as u64),
            "write_expire" => self.expire_j[WRITE] = cx.ms_to_jiffies(v.clamp(0, INT_MAX) as u64),
            "writes_starved" => self.writes_starved = v.clamp(i32::MIN.into(), INT_MAX) as i32,
            "front_merges" => self.front_merges = v > 0,
            "fifo_batch" => self.fifo_batch = v.clamp(0, INT_MAX) as i32,
            _ => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        let sorted: usize = self.sorted.iter().map(Tree::len).sum();
        assert_eq!(
            sorted, cx.nr_sorted as usize,
            "deadline: trees and nr_sorted"
        );
        for d in [READ, WRITE] {
            assert_eq!(
                self.sorted[d].len(),
                self.fifo[d].len(),
                "tree and fifo hold the same"
            );
            if let Some(n) = self.next[d] {
                assert!(
                    self.nodes.linked(n.0) && cx.rqs[n].dir() == d,
                    "next is in its tree"
                );
            }
        }
        assert!(
            self.next[READ].is_none() || self.next[WRITE].is_none(),
            "one sweep at a time"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        for (d, word) in [(READ, "reads"), (WRITE, "writes")] {
            let ids: Vec<_> = self.links.iter(&self.fifo[d]).map(name).collect();
            let next = self.next[d].map_or(String::new(), |n| format!(" next {}", name(n.0)));
            *out += &format!("{word}: [{}]{next}; ", ids.join(" "));
        }
        *out += &format!("batch {} starved {}", self.batch, self.starved);
    }
}
