//! vr, "V(R)": the nearest request, with a penalty for a change of direction (Aaron Carroll, 2007).
//!
//! All requests, sync and async, are in one sector order. vr compares the distances from the
//! *start* of the last request to its two neighbours, and dispatches the nearer one. The distance
//! in the current direction is first reduced with `rev_penalty`. Every `fifo_batch + 1` dispatches
//! vr checks the deadlines of the oldest sync and async requests, and an expired request moves the
//! head. vr belongs to the V(R) family of Geist and Daniel (1987), which ranges from SSTF (R = 0)
//! to SCAN (R = 1). It does not distinguish processes and has no timers.
//!
//! **The published code does not do what its header says.** The header says that the distance in
//! the current direction is divided by `rev_penalty`. The code uses the *remainder* of that
//! division. With a small value the remainder is small, so vr keeps its direction like LOOK. With a
//! large value or 0, vr behaves like SSTF. Both are the reverse of the documentation. Seekwell uses
//! the remainder by default, like every phone kernel that contains vr. With `penalty_mode` =
//! `quotient` the scheduler does what its header says.
//!
//! | version | rev_penalty | a second request with the start sector of a queued request |
//! |---|---|---|
//! | msm8226 (default) | 10 | is queued after the first |
//! | tuna | 10 | dispatches the first at once |
//! | jf | 1 | is queued after the first |
//! | glitch | 0 | dispatches the first at once |

use crate::contract::{Insert, MergeKind, Scheduler};
use crate::cx::{Cx, Emit};
use crate::fifo::{ExpiryCheck, Fifos};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, legacy_int};
use seekwell_core::{Bio, Era, IocId, Nodes, RqId, Sector, Tree};

/// Registry entry of vr.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "vr",
    layer: Layer::Legacy,
    versions: &[
        ("msm8226", Era::K3_4),
        ("tuna", Era::K3_4),
        ("jf", Era::K3_4),
        ("glitch", Era::K3_4),
    ],
    summary: "nearest request first with a penalty for a change of direction, and soft deadlines",
    history: "Aaron Carroll (Gelato@UNSW), 2007, out of tree; in phone kernels from 2010. All \
              copies keep the remainder of the division by rev_penalty instead of the quotient, \
              which reverses the tunable's effect; the copies differ in the default of \
              rev_penalty.",
    not_when: "Several sequential readers, or reads next to writeback: it distinguishes neither \
               processes nor sync requests, and while queued requests are older than their \
               deadlines, every second dispatch is a seek.",
    source: "behaviour of block/vr-iosched.c in four published phone kernels",
    per_process: false,
    hash: hash_always,
    // The bound is async_expire. Deadlines are checked after fifo_batch (16) dispatches.
    waiting: Waiting {
        fixed_ms: 5000,
        requests: 17,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 17,
        except: &[],
    },
    rules: RULES,
    tunables: |v| Variant::named(v).tunables,
    make: |cx, v| Box::new(Vr::new(cx, Variant::named(v))),
};

seekwell_core::rules! {
    ALIAS_EVICTED: "alias-evicted", "vr_add_rq_rb",
        "Older copies hold one request per start sector. If a second request with that start \
         arrives, the first is dispatched at once.";
    HEAD_EXPIRED: "head-expired", "vr_choose_expired_request",
        "After each fifo_batch requests, the oldest sync or async request goes first if it has \
         expired. If both have expired, the one with the earlier deadline goes.";
    ONE_SIDE: "one-side", "vr_choose_request",
        "If all requests are on one side of the head, the nearest of them goes.";
    REVERSE_PENALTY: "reverse-penalty", "vr_choose_request",
        "If requests are on both sides of the head, the nearer one goes. The distance in the \
         current direction is first taken modulo rev_penalty (in the documentation: divided by \
         rev_penalty).";
}

#[rustfmt::skip]
const fn tunables(rev_penalty: &'static str, alias_evict: &'static str) -> [Tunable; 6] {
    [
        Tunable::ms("sync_expire", "500",
            "Age at which the oldest sync request has expired, so that a deadline check dispatches \
             it first. The sweep continues from there. 0: no deadline."),
        Tunable::ms("async_expire", "5000",
            "Age at which the oldest async request (a buffered write) has expired. 0: no deadline."),
        Tunable::count("fifo_batch", "requests", "1",
            "Deadlines are checked every fifo_batch + 1 dispatches. The first check is at dispatch \
             fifo_batch + 2. Larger: fewer seeks, longer waits."),
        Tunable::count("rev_penalty", "none", rev_penalty,
            "As shipped (remainder): 1 to 8 continue in one direction to the end, 0 and very large \
             values take the nearer request. As documented (quotient): 1 takes the nearer request, \
             larger values change direction less often, 0 never."),
        Tunable::new("penalty_mode", Kind::Text, "remainder or quotient", "remainder", (0, 0),
            "Not in any kernel. remainder: the behaviour of the published code; quotient: the \
             behaviour that its documentation describes."),
        Tunable::flag("alias_evict", alias_evict,
            "Not a tunable of any kernel: the behaviour of copies for kernels before 3.1. 1: if a \
             request arrives with the start sector of a queued request, the queued request is \
             dispatched at once."),
    ]
}

static TUNABLES: [Tunable; 6] = tunables("10", "0");
static TUNABLES_TUNA: [Tunable; 6] = tunables("10", "1");
static TUNABLES_JF: [Tunable; 6] = tunables("1", "0");
static TUNABLES_GLITCH: [Tunable; 6] = tunables("0", "1");

/// The differences between the published copies: their defaults.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Default of rev_penalty.
    pub rev_penalty: u32,
    /// True if a second request with the start sector of a queued request dispatches that one at
    /// once.
    pub alias_evict: bool,
    tunables: &'static [Tunable],
}

impl Variant {
    /// Returns the variant with a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        let (rev_penalty, alias_evict, tunables) = match version {
            "tuna" => (10, true, &TUNABLES_TUNA),
            "jf" => (1, false, &TUNABLES_JF),
            "glitch" => (0, true, &TUNABLES_GLITCH),
            _ => (10, false, &TUNABLES),
        };
        Variant {
            rev_penalty,
            alias_evict,
            tunables,
        }
    }
}

/// The way in which the distance in the current direction is reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PenaltyMode {
    /// By the remainder of the division by rev_penalty, as in the published code.
    Remainder,
    /// By the quotient of the division by rev_penalty, as documented.
    Quotient,
}

const ASYNC: usize = 0;
const SYNC: usize = 1;

/// The scheduler vr.
#[derive(Debug)]
pub struct Vr {
    variant: Variant,
    sorted: Tree,
    nodes: Nodes<Sector>,
    fifos: Fifos<2>,
    check: ExpiryCheck,
    /// Start sector of the request dispatched last.
    last: Sector,
    forward: bool,
    /// The nearest queued request that starts at or above `last`.
    next: Option<RqId>,
    /// The nearest queued request that starts below `last`. It can also start at `last`, if another
    /// request with that start was dispatched.
    prev: Option<RqId>,
    /// True if `prev` was merged into another request while a request with the same start followed
    /// it in the order. The candidate is then the request before that one, not the request that
    /// followed.
    equal_lost: bool,
    expire_j: [u64; 2],
    rev_penalty: u32,
    penalty_mode: PenaltyMode,
    alias_evict: bool,
}

impl Vr {
    /// Creates the scheduler with the defaults of `variant`.
    pub fn new(cx: &Cx, variant: Variant) -> Self {
        Vr {
            variant,
            sorted: Tree::new(),
            nodes: Nodes::new(),
            fifos: Fifos::new(),
            check: ExpiryCheck::new(1),
            last: Sector(0),
            forward: true,
            next: None,
            prev: None,
            equal_lost: false,
            expire_j: [cx.hz() * 5, cx.hz() / 2],
            rev_penalty: variant.rev_penalty,
            penalty_mode: PenaltyMode::Remainder,
            alias_evict: variant.alias_evict,
        }
    }

    /// `vr_add_rq_rb`: inserts a request into the sector order, and updates the two candidates.
    fn sort(&mut self, cx: &mut Cx, rq: RqId) {
        let start = cx.rqs[rq].sector;
        while self.alias_evict
            && let Some(alias) = self.nodes.find(&self.sorted, start)
        {
            cx.why_rq(ALIAS_EVICTED, RqId(alias), || {
                "a second request with its start sector dispatches it".to_owned()
            });
            self.take(cx, RqId(alias));
            self.check.count_unasked();
        }
        self.nodes.insert(&mut self.sorted, rq.0, start);
        if start >= self.last {
            if self.next.is_none_or(|n| start < cx.rqs[n].sector) {
                self.next = Some(rq);
            }
        } else if self.prev.is_none_or(|p| start > cx.rqs[p].sector) {
            self.prev = Some(rq);
        }
    }

    /// Removes a request from the sector order. If it was a candidate, its neighbour replaces it.
    fn unsort(&mut self, rq: RqId) {
        if self.next == Some(rq) {
            self.next = self.nodes.next(rq.0).map(RqId);
        }
        if self.prev == Some(rq) {
            let behind = self.nodes.next(rq.0);
            self.equal_lost |= behind.is_some_and(|b| self.nodes.key(b) == self.nodes.key(rq.0));
            self.prev = self.nodes.prev(rq.0).map(RqId);
        }
        self.nodes.remove(&mut self.sorted, rq.0);
    }

    /// `vr_move_request`: dispatches `rq` and moves the head to its start.
    fn take(&mut self, cx: &mut Cx, rq: RqId) {
        let start = cx.rqs[rq].sector;
        self.forward = start > self.last;
        self.last = start;
        self.next = self.nodes.next(rq.0).map(RqId);
        self.prev = self.nodes.prev(rq.0).map(RqId);
        self.equal_lost = false;
        self.nodes.remove(&mut self.sorted, rq.0);
        self.fifos.remove(rq);
        cx.emit(rq, Emit::Tail);
    }

    /// `vr_choose_expired_request`: returns the expired head with the earliest deadline.
    fn take_expired(&self, cx: &mut Cx) -> Option<RqId> {
        let now_j = cx.jiffies();
        let head = |list| self.fifos.first_if(list, |d| now_j > d);
        let due = |rq| self.fifos.deadline_j(rq);
        let rq = match (head(SYNC), head(ASYNC)) {
            (Some(s), Some(a)) if due(s) < due(a) => s,
            (_, Some(a)) => a,
            (s, None) => s?,
        };
        cx.why_rq(HEAD_EXPIRED, rq, || {
            "it has expired, and is due earliest of the two heads".to_owned()
        });
        Some(rq)
    }

    /// `vr_choose_request`: returns the nearer of the two candidates, with a penalty for a change
    /// of direction.
    fn choose(&self, cx: &mut Cx) -> Option<RqId> {
        let (next, prev) = match (self.next, self.prev) {
            (Some(n), Some(p)) => (n, p),
            (only, None) | (None, only) => {
                let rq = only?;
                cx.why_rq(ONE_SIDE, rq, || "requests on one side only".to_owned());
                return Some(rq);
            }
        };
        let (ahead, behind) = (
            cx.rqs[next].sector.distance(self.last),
            cx.rqs[prev].sector.distance(self.last),
        );
        let penalty = match self.rev_penalty {
            0 => INT_MAX as u64,
            p => u64::from(p),
        };
        let discount = |distance| match self.penalty_mode {
            PenaltyMode::Remainder => distance % penalty,
            PenaltyMode::Quotient => distance / penalty,
        };
        let (dn, dp) = if self.forward {
            (discount(ahead), behind)
        } else {
            (ahead, discount(behind))
        };
        let rq = if dn <= dp { next } else { prev };
        cx.why_rq(REVERSE_PENALTY, rq, || {
            let going = if self.forward { "up" } else { "down" };
            let (taken, other) = if rq == next {
                ("above", "below")
            } else {
                ("below", "above")
            };
            format!(
                "going {going}: {ahead} sectors above count {dn}, {behind} below count {dp}: \
                 {taken}, not {other}"
            )
        });
        Some(rq)
    }
}

impl Scheduler for Vr {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        self.sort(cx, rq);
        let list = if cx.rqs[rq].sync { SYNC } else { ASYNC };
        if self.expire_j[list] == 0 {
            return;
        }
        let deadline_j = cx.jiffies() + self.expire_j[list];
        match how {
            Insert::Sorted => self.fifos.push_back(list, rq, deadline_j),
            Insert::AtHead | Insert::Requeue | Insert::Reinsert => {
                self.fifos.push_front(list, rq, deadline_j);
            }
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let expired = if self.check.due() {
            self.take_expired(cx)
        } else {
            None
        };
        let Some(rq) = expired.or_else(|| self.choose(cx)) else {
            return 0;
        };
        self.take(cx, rq);
        self.check.count();
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.sorted.is_empty()
    }

    fn find_front(&mut self, _: &mut Cx, bio: &Bio, _: IocId) -> Option<RqId> {
        self.nodes.find(&self.sorted, bio.end()).map(RqId)
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            self.unsort(rq);
            self.sort(cx, rq);
        }
    }
    fn joined(&mut self, _: &mut Cx, kept: RqId, gone: RqId) {
        self.fifos.join(kept, gone);
        if self.nodes.linked(gone.0) {
            self.unsort(gone);
        }
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq.0).map(RqId)
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.variant.tunables
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        Some(match name {
            "sync_expire" => cx.clock().to_ms(self.expire_j[SYNC]).to_string(),
            "async_expire" => cx.clock().to_ms(self.expire_j[ASYNC]).to_string(),
            "fifo_batch" => self.check.fifo_batch().to_string(),
            "rev_penalty" => self.rev_penalty.to_string(),
            "penalty_mode" => match self.penalty_mode {
                PenaltyMode::Remainder => "remainder".to_owned(),
                PenaltyMode::Quotient => "quotient".to_owned(),
            },
            "alias_evict" => u8::from(self.alias_evict).to_string(),
            _ => return None,
        })
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        if name == "penalty_mode" {
            self.penalty_mode = match text.trim() {
                "remainder" => PenaltyMode::Remainder,
                "quotient" => PenaltyMode::Quotient,
                other => {
                    return Err(StoreError::Invalid {
                        name: name.to_owned(),
                        why: format!("\"{other}\" is neither `remainder` nor `quotient`"),
                    });
                }
            };
            return Ok(());
        }
        let v = legacy_int(text).clamp(0, INT_MAX);
        match name {
            "sync_expire" => self.expire_j[SYNC] = cx.ms_to_jiffies(v as u64),
            "async_expire" => self.expire_j[ASYNC] = cx.ms_to_jiffies(v as u64),
            "fifo_batch" => self.check.set_fifo_batch(v as u32),
            "rev_penalty" => self.rev_penalty = v as u32,
            "alias_evict" => self.alias_evict = v > 0,
            _ => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        self.fifos.check();
        self.check.check();
        assert_eq!(
            self.sorted.len(),
            cx.nr_sorted as usize,
            "vr: tree and nr_sorted"
        );
        for list in [SYNC, ASYNC] {
            for rq in self.fifos.iter(list) {
                assert!(self.nodes.linked(rq.0), "vr: on a FIFO and not in the tree");
            }
        }
        let start = |rq: RqId| cx.rqs[rq].sector;
        for i in self.nodes.iter(&self.sorted) {
            let s = start(RqId(i));
            assert_eq!(s, self.nodes.key(i), "vr: the tree is out of date");
            let up = self.next.is_some_and(|n| start(n) <= s);
            let down = self.prev.is_some_and(|p| start(p) >= s);
            assert!(
                if s > self.last {
                    up
                } else if s < self.last {
                    down || self.equal_lost
                } else {
                    up || down || self.equal_lost
                },
                "vr: {s} is nearer than the candidates"
            );
        }
        for (candidate, above) in [(self.next, true), (self.prev, false)] {
            if let Some(c) = candidate {
                assert!(self.nodes.linked(c.0), "vr: a candidate is not queued");
                assert!(start(c) == self.last || (start(c) > self.last) == above);
            }
        }
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |rq: RqId| cx.rqs.first_bio(rq).id.0.to_string();
        let at = |i| format!("{}@{}", name(RqId(i)), self.nodes.key(i));
        let ids: Vec<_> = self.nodes.iter(&self.sorted).map(at).collect();
        let or_none = |c: Option<RqId>| c.map_or("none".to_owned(), name);
        *out += &format!(
            "[{}]; last {} going {}, above {}, below {}; nbatched {}",
            ids.join(" "),
            self.last,
            if self.forward { "up" } else { "down" },
            or_none(self.next),
            or_none(self.prev),
            self.check.dispatched()
        );
    }
}
