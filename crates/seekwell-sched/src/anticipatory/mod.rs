//! anticipatory: deadline's batches plus waiting for the process just served
//! (`block/as-iosched.c`, Nick Piggin).
//!
//! Requests are sync (reads, and writes marked sync) or async. Each class is sorted by sector
//! and kept in a FIFO with deadlines; batches alternate by *time*. What made it famous is the
//! answer to deceptive idleness: after a read completes, and the best candidate is neither of the
//! same process nor near the head, the disk is left idle for up to `antic_expire`, because the
//! process will probably read on, nearby.
//!
//! | | 2.6.24 (default) | 2.6.18 |
//! |---|---|---|
//! | a write batch starts at | the oldest write | the next one in sweep order |
//! | delay that widens the window | jiffies | ms, though compared with jiffies |
//! | joining two requests | the survivor keeps its process | it takes the older one's |
//! | sorted into the dispatch list | inside its direction | across directions |
//!
//! Left out: statistics are kept per queue, not per process over all disks; and the 2.6.18
//! worker that runs the queue only while the scheduler holds something is the layer's ordinary
//! one (the layer runs the queue after a completion and an insertion anyway).

mod context;

use crate::contract::{Insert, IocEvent, MayQueue, MergeKind, Scheduler};
use crate::cx::{Cx, Emit};
use crate::registry::{Layer, SchedulerInfo, hash_always};
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, legacy_int};
use context::{ContextTable, Ctx, Global, ONE, decay};
use seekwell_core::{Bio, Era, IocId, Links, List, Nodes, RqId, Sector, Side, Tree};

/// Registry line.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "anticipatory",
    layer: Layer::Legacy,
    versions: &[("2.6.24", Era::K2_6_24), ("2.6.18", Era::K2_6_18)],
    summary: "timed read and write batches; idles a few ms for the process it just served",
    history: "2.6.0 to 2.6.32, by Nick Piggin after Iyer and Druschel's anticipatory scheduling \
              (SOSP 2001). The default until 2.6.17; removed in 2.6.33, when CFQ had learnt to idle.",
    not_when: "Anything with command queueing, RAID or flash below it, or many random readers: it \
               wants one head and one request at a time. On NCQ disks it starves writes.",
    source: "behaviour of block/as-iosched.c, Linux 2.6.18 and 2.6.24",
    per_process: true,
    hash: hash_always,
    tunables: |_| TUNABLES,
    make: |cx, v| Box::new(Anticipatory::new(cx, v == "2.6.18")),
};

const fn ms(name: &'static str, default: &'static str, help: &'static str) -> Tunable {
    Tunable {
        name,
        kind: Kind::MsJiffies,
        unit: "ms",
        default,
        min: 0,
        max: INT_MAX,
        help,
    }
}

const TUNABLES: &[Tunable] = &[
    ms(
        "read_expire",
        "125",
        "Deadline of a sync request, and how often at most the sync FIFO is looked at: the time \
         slice between competing readers. Longer: more throughput, more unfairness.",
    ),
    ms("write_expire", "250", "The same for async requests."),
    ms(
        "read_batch_expire",
        "500",
        "How long a sync batch goes on once async requests compete.",
    ),
    ms(
        "write_batch_expire",
        "125",
        "How long an async batch is meant to last; the number of writes it may hold is adapted \
         towards this.",
    ),
    ms(
        "antic_expire",
        "6",
        "Longest wait for the next request of the process just served; 0 turns waiting off and \
         leaves something near deadline. One jiffy (4 or 10 ms) at HZ 250 and 100.",
    ),
    Tunable {
        name: "est_time",
        kind: Kind::ReadOnly,
        unit: "text",
        default: "",
        min: 0,
        max: 0,
        help: "What it has learnt: how often new processes exit, alone or not, and how long they \
               think (jiffies, though it says ms) and how far they seek.",
    },
];

const ASYNC: usize = 0;
const SYNC: usize = 1;
/// Timer slot of the anticipation.
const ANTIC: u8 = 0;
/// How far behind the head a request still counts as reachable backwards, sectors (512 MiB).
const BACK_MAX: u64 = 1 << 20;
/// Sectors around the head that are near at once after a completion.
const NEAR: u64 = 8192;

/// The anticipation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// Not waiting.
    Off,
    /// It will wait, once the request of the process served last comes back.
    ForRequest,
    /// The disk is idle, the timer runs.
    ForNext,
    /// A wait just ended: the next sync dispatch needs none.
    Finished,
}

/// Data of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Rq {
    ctx: Option<Ctx>,
    deadline_j: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Queued,
    /// On the dispatch list: counted as dispatched.
    Dispatched,
    /// Looked at by the driver.
    Active,
}

/// The scheduler.
#[derive(Debug)]
pub struct Anticipatory {
    old: bool,
    sorted: [Tree; 2],
    nodes: Nodes<Sector>,
    fifo: [List; 2],
    links: Links,
    rq: Side<Rq>,
    next: [Option<RqId>; 2],
    /// End of the last request dispatched of each class.
    head: [Sector; 2],
    last_look_j: [u64; 2],
    batch: usize,
    batch_end_j: u64,
    /// Writes an async batch may hold; a C `int`, which doubling may overflow.
    wcount: i32,
    wleft: i32,
    w_idled: bool,
    /// The batch was switched and requests of the old one are under way.
    changing: bool,
    /// A sync batch was chosen; its first completion starts its time.
    new_batch: bool,
    inflight: u32,
    wait: Wait,
    antic_start_j: u64,
    antic_ctx: Option<Ctx>,
    ctx_done: bool,
    ctxs: ContextTable,
    all: Global,
    /// A front merge evicted an alias: `next` may be none beside a queued request until the next
    /// insertion of its class.
    next_lost: [bool; 2],
    expire_j: [u64; 2],
    batch_expire_j: [u64; 2],
    antic_expire_j: u64,
}

const CLASS: [&str; 2] = ["async", "sync"];

impl Anticipatory {
    /// With the kernel's defaults; `old` for 2.6.18.
    pub fn new(cx: &Cx, old: bool) -> Self {
        let hz = cx.hz();
        let batch_expire_j = [hz / 8, hz / 2];
        Anticipatory {
            old,
            sorted: [Tree::new(); 2],
            nodes: Nodes::new(),
            fifo: [List::new(); 2],
            links: Links::new(),
            rq: Side::new(),
            next: [None; 2],
            head: [Sector(0); 2],
            last_look_j: [0; 2],
            batch: ASYNC,
            batch_end_j: cx.jiffies() + batch_expire_j[SYNC],
            wcount: (batch_expire_j[ASYNC] as i32 / 10).max(2),
            wleft: 0,
            w_idled: false,
            changing: false,
            new_batch: false,
            inflight: 0,
            wait: Wait::Off,
            antic_start_j: 0,
            antic_ctx: None,
            ctx_done: false,
            ctxs: ContextTable::default(),
            all: Global::default(),
            next_lost: [false; 2],
            expire_j: [hz / 4, hz / 8],
            batch_expire_j,
            antic_expire_j: (hz / 150).max(1),
        }
    }

    fn class(cx: &Cx, rq: RqId) -> usize {
        cx.rqs[rq].sync as usize
    }
    fn waiting(&self) -> bool {
        matches!(self.wait, Wait::ForRequest | Wait::ForNext)
    }
    fn fifo_head(&self, c: usize) -> Option<RqId> {
        self.fifo[c].first().map(RqId)
    }
    fn ctx_of(&self, rq: RqId) -> Option<Ctx> {
        self.rq.try_get(rq.idx()).and_then(|r| r.ctx)
    }

    /// Section 6: the cheaper of two requests of class `c`, as seen from its head.
    fn choose(&self, cx: &Cx, c: usize, a: Option<RqId>, b: Option<RqId>) -> Option<RqId> {
        let (Some(ra), Some(rb)) = (a, b) else {
            return a.or(b);
        };
        let last = self.head[c].0;
        let cost = |s: u64| {
            if s >= last {
                Some(s - last)
            } else if s + BACK_MAX >= last {
                Some(2 * (last - s))
            } else {
                None
            }
        };
        let (sa, sb) = (cx.rqs[ra].sector.0, cx.rqs[rb].sector.0);
        let first = match (cost(sa), cost(sb)) {
            (Some(ca), Some(cb)) if ca == cb => sa >= sb,
            (Some(ca), Some(cb)) => ca < cb,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => sa <= sb,
        };
        if first { a } else { b }
    }
    /// The best of `rq`'s neighbours.
    fn find_next(&self, cx: &Cx, c: usize, rq: RqId) -> Option<RqId> {
        let lowest = self.sorted[c].first().filter(|f| *f != rq.0);
        let behind = self.nodes.next(rq.0).or(lowest).map(RqId);
        let before = self.nodes.prev(rq.0).map(RqId);
        self.choose(cx, c, behind, before)
    }

    /// A2: sorts a request in; whoever sits at its start sector is sent off first.
    fn sort(&mut self, cx: &mut Cx, rq: RqId) {
        let (c, key) = (Self::class(cx, rq), cx.rqs[rq].sector);
        while let Some(i) = self.nodes.find(&self.sorted[c], key) {
            cx.why("A2", || {
                "another one at its start sector sends it off".to_owned()
            });
            self.take(cx, RqId(i));
            self.stop(cx);
        }
        self.nodes.insert(&mut self.sorted[c], rq.0, key);
    }

    /// D8: hands `rq` over.
    fn take(&mut self, cx: &mut Cx, rq: RqId) {
        let c = Self::class(cx, rq);
        self.stop(cx);
        self.wait = Wait::Off;
        self.head[c] = cx.rqs[rq].end();
        let ctx = self.ctx_of(rq);
        if c == SYNC {
            self.set_antic_ctx(ctx);
        } else {
            self.set_antic_ctx(None);
            if self.wleft != 0 {
                self.wleft -= 1;
            }
        }
        self.ctx_done = false;
        self.next[c] = self.find_next(cx, c, rq);
        self.nodes.remove(&mut self.sorted[c], rq.0);
        self.links.remove(&mut self.fifo[c], rq.0);
        self.rq[rq].place = Place::Dispatched;
        if let Some(x) = ctx {
            self.ctxs[x].queued -= 1;
            self.ctxs[x].dispatched += 1;
        }
        self.inflight += 1;
        cx.emit(rq, Emit::Sorted);
    }

    fn set_antic_ctx(&mut self, ctx: Option<Ctx>) {
        if let Some(c) = ctx {
            self.ctxs.get(c);
        }
        if let Some(c) = std::mem::replace(&mut self.antic_ctx, ctx) {
            self.ctxs.put(c);
        }
    }

    /// Section 4, start: the disk shall stay idle for the process served last.
    fn start(&mut self, cx: &mut Cx) {
        if self.wait != Wait::Off {
            return;
        }
        if self.antic_ctx.is_none() || self.ctx_done {
            self.wait_next(cx);
        } else {
            self.wait = Wait::ForRequest;
        }
    }
    fn wait_next(&mut self, cx: &mut Cx) {
        cx.arm_jiffy(ANTIC, self.antic_start_j + self.antic_expire_j);
        self.wait = Wait::ForNext;
    }
    /// Section 4, stop: no more waiting.
    fn stop(&mut self, cx: &mut Cx) {
        if self.waiting() {
            cx.disarm(ANTIC);
            self.wait = Wait::Finished;
            cx.kick();
        }
    }
    fn may_exit(&mut self, x: Ctx) {
        if self.ctxs[x].tt_samples == 0 {
            self.all.exit_prob = decay(self.all.exit_prob, ONE);
        }
    }

    /// Is sync request `rq` near the head, as far as `x` is concerned?
    fn close(&self, cx: &Cx, rq: RqId, x: Ctx) -> bool {
        let (last, s) = (self.head[self.batch].0, cx.rqs[rq].sector.0);
        let mut delay = 0;
        if self.wait != Wait::Off && self.ctx_done {
            delay = cx.jiffies().saturating_sub(self.antic_start_j);
        }
        let limit = if self.old {
            delay = cx.clock().to_ms(delay);
            20
        } else {
            cx.ms_to_jiffies(20)
        };
        let window = match delay {
            0 => NEAR,
            d if d <= limit && d <= self.antic_expire_j => NEAR << d,
            _ => return true,
        };
        if last <= s + window / 2 && s <= last + window {
            return true;
        }
        let x = &self.ctxs[x];
        let usual = match x.seek_samples {
            0 => self.all.new_seek_mean,
            _ => x.seek_mean,
        };
        s.abs_diff(last) < usual
    }

    /// Does `rq` (or nothing at all) end the waiting for process `x`? Learns on the way. The
    /// answer is the rule.
    fn can_break(&mut self, cx: &mut Cx, rq: Option<RqId>, x: Ctx) -> Option<&'static str> {
        let now = cx.jiffies();
        if rq.is_some_and(|r| self.ctx_of(r) == Some(x)) {
            return Some("B1");
        }
        if self.ctx_done && now.saturating_sub(self.antic_start_j) >= self.antic_expire_j {
            return Some("B2");
        }
        if self.ctxs[x].queued > 0 || self.ctxs[x].dispatched > 0 {
            return Some("B3");
        }
        if let Some(r) = rq
            && Self::class(cx, r) == SYNC
            && self.close(cx, r, x)
        {
            if !self.ctxs[x].alive {
                self.may_exit(x);
                self.all.no_coop = decay(self.all.no_coop, 0);
            }
            let (start, end) = (cx.rqs[r].sector, cx.rqs[r].end());
            self.ctxs[x].history(&mut self.all, cx.hz(), now, start, end);
            return Some("B4");
        }
        if !self.ctxs[x].alive {
            self.may_exit(x);
            if self.all.no_coop > ONE / 2 {
                return Some("B5");
            }
        }
        let think_j = match self.ctxs[x].tt_samples {
            0 => {
                if self.all.exit_prob * self.all.no_coop > ONE * ONE / 2 {
                    return Some("B6");
                }
                self.all.new_tt_mean
            }
            _ => self.ctxs[x].tt_mean,
        };
        (think_j > self.antic_expire_j).then_some("B6")
    }
    /// D4: shall the disk rather stay idle than serve `rq`?
    fn can_anticipate(&mut self, cx: &mut Cx, rq: Option<RqId>) -> bool {
        let Some(x) = self.antic_ctx else {
            return false;
        };
        if self.wait == Wait::Finished {
            return false;
        }
        match self.can_break(cx, rq, x) {
            Some(rule) => {
                cx.why(rule, || "no waiting for the process served last".to_owned());
                false
            }
            None => true,
        }
    }

    /// Has the oldest of class `c` expired? Asked at most once per expire time (Q5).
    fn fifo_expired(&mut self, cx: &Cx, c: usize) -> bool {
        let now = cx.jiffies();
        if now.abs_diff(self.last_look_j[c]) < self.expire_j[c] {
            return false;
        }
        self.last_look_j[c] = now;
        self.fifo_head(c)
            .is_some_and(|r| now > self.rq[r].deadline_j)
    }
    fn batch_expired(&self, cx: &Cx) -> bool {
        if self.changing || self.new_batch {
            return false;
        }
        cx.jiffies() > self.batch_end_j || (self.batch == ASYNC && self.wleft == 0)
    }

    /// C3: the first sync completion after writes tells how long they took.
    fn adapt_wcount(&mut self, cx: &Cx) {
        let b = self.batch_expire_j[ASYNC];
        let t = (cx.jiffies() + b).saturating_sub(self.batch_end_j);
        if t > b && !self.w_idled {
            if t > 3 * b {
                self.wcount /= 2;
            } else {
                self.wcount = self.wcount.wrapping_sub(1);
            }
        } else if t < b && self.wleft == 0 {
            if b > 3 * t {
                self.wcount = self.wcount.wrapping_mul(2);
            } else {
                self.wcount = self.wcount.wrapping_add(1);
            }
        }
        self.wcount = self.wcount.max(1);
    }

    /// D7 and D7b. `looked`: the FIFO head was chosen in D4 already.
    fn serve(&mut self, cx: &mut Cx, mut rq: RqId, looked: bool) -> u32 {
        let c = self.batch;
        if !looked
            && self.fifo_expired(cx, c)
            && let Some(head) = self.fifo_head(c)
        {
            cx.why("D7", || {
                format!("the oldest {} request has expired", CLASS[c])
            });
            rq = head;
        }
        if self.changing {
            if self.inflight > 0 {
                let n = self.inflight;
                cx.why("D7b", || {
                    format!("{n} of the old batch are still under way")
                });
                return 0;
            }
            self.changing = false;
            if c == ASYNC {
                self.batch_end_j = cx.jiffies() + self.batch_expire_j[ASYNC];
            } else {
                self.new_batch = true;
            }
        }
        self.take(cx, rq);
        1
    }

    /// D6: which class begins.
    fn begin_batch(&mut self, cx: &mut Cx, reads: bool, writes: bool) -> u32 {
        let rq = if reads && !(writes && self.batch == SYNC) {
            cx.why("D6", || "sync requests, from the oldest".to_owned());
            self.changing |= self.batch == ASYNC;
            self.batch = SYNC;
            self.last_look_j[SYNC] = cx.jiffies();
            self.fifo_head(SYNC)
        } else {
            let n = self.wcount;
            cx.why("D6", || format!("async requests, up to {n}"));
            if self.batch == SYNC {
                self.changing = true;
                self.new_batch = false;
            }
            self.batch = ASYNC;
            self.wleft = self.wcount;
            self.w_idled = false;
            if self.old {
                self.next[ASYNC].or(self.fifo_head(ASYNC))
            } else {
                self.last_look_j[ASYNC] = cx.jiffies();
                self.fifo_head(ASYNC)
            }
        };
        rq.map_or(0, |rq| self.serve(cx, rq, false))
    }

    fn drain(&mut self, cx: &mut Cx) -> u32 {
        let mut n = 0;
        self.changing = false;
        self.new_batch = false;
        self.batch = SYNC;
        for c in [SYNC, ASYNC] {
            // Behind `next`, whoever was lost by a front merge onto an alias.
            while let Some(rq) = self.next[c].or(self.sorted[c].first().map(RqId)) {
                self.take(cx, rq);
                n += 1;
            }
            self.last_look_j[c] = cx.jiffies();
        }
        n
    }
}

impl Scheduler for Anticipatory {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        let (c, now) = (Self::class(cx, rq), cx.jiffies());
        let ioc = cx.rqs[rq].ioc;
        let x = self.ctxs.of(ioc, cx.alive(ioc));
        // A request given back comes with the context it had.
        let given_back = std::mem::take(self.rq.at(rq.idx()));
        self.ctxs.get(x);
        if let Some(before) = given_back.ctx {
            match given_back.place {
                Place::Dispatched => self.ctxs[before].dispatched -= 1,
                Place::Queued => self.ctxs[before].queued -= 1,
                Place::Outside | Place::Active => {}
            }
            if matches!(given_back.place, Place::Dispatched | Place::Active) {
                self.inflight -= 1;
            }
            self.ctxs.put(before);
        }
        if c == SYNC {
            let (start, end) = (cx.rqs[rq].sector, cx.rqs[rq].end());
            self.ctxs[x].history(&mut self.all, cx.hz(), now, start, end);
        }
        self.ctxs[x].queued += 1;
        self.rq[rq] = Rq {
            ctx: Some(x),
            deadline_j: now + self.expire_j[c],
            place: Place::Queued,
        };
        self.sort(cx, rq);
        self.links.push_back(&mut self.fifo[c], rq.0);
        self.next[c] = self.choose(cx, c, Some(rq), self.next[c]);
        self.next_lost[c] = false;
        if self.waiting()
            && let Some(x) = self.antic_ctx
            && let Some(rule) = self.can_break(cx, Some(rq), x)
        {
            cx.why(rule, || "ends the waiting".to_owned());
            self.stop(cx);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        if force {
            return self.drain(cx);
        }
        let (reads, writes) = (!self.fifo[SYNC].is_empty(), !self.fifo[ASYNC].is_empty());
        if self.batch == ASYNC && !reads && (self.wleft == 0 || !writes) {
            self.w_idled = true;
        }
        if !(reads || writes) || self.waiting() || self.changing {
            return 0;
        }
        if reads && writes && self.batch_expired(cx) {
            return self.begin_batch(cx, reads, writes);
        }
        let rq = self.next[self.batch];
        if self.batch == SYNC && self.antic_expire_j != 0 {
            if self.fifo_expired(cx, SYNC)
                && let Some(head) = self.fifo_head(SYNC)
            {
                cx.why("D4", || "the oldest sync request has expired".to_owned());
                return self.serve(cx, head, true);
            }
            if self.can_anticipate(cx, rq) {
                self.start(cx);
                let state = self.wait;
                cx.why("D4", || {
                    format!("waits for the process served last ({state:?})")
                });
                return 0;
            }
        }
        match rq {
            Some(rq) => {
                if reads && !writes {
                    self.batch_end_j = cx.jiffies() + self.batch_expire_j[SYNC];
                }
                cx.why("D5", || format!("the {} batch goes on", CLASS[self.batch]));
                self.serve(cx, rq, false)
            }
            None => self.begin_batch(cx, reads, writes),
        }
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.fifo.iter().any(|f| !f.is_empty())
    }

    /// The set is indexed by the *data direction* though it is kept by class: a read is searched
    /// among async writes (and never fits), a write among the sync requests.
    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, _: IocId) -> Option<RqId> {
        if !bio.op.is_write() {
            return None;
        }
        let found = self.nodes.find(&self.sorted[SYNC], bio.end()).map(RqId);
        found.filter(|rq| cx.rqs[*rq].is_write())
    }

    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let c = Self::class(cx, rq);
            self.nodes.remove(&mut self.sorted[c], rq.0);
            self.sort(cx, rq);
            self.next_lost[c] |= self.next[c].is_none();
        }
    }

    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        let c = Self::class(cx, gone);
        if self.rq[gone].deadline_j < self.rq[kept].deadline_j {
            self.links.remove(&mut self.fifo[c], kept.0);
            self.links.insert_after(&mut self.fifo[c], gone.0, kept.0);
            self.rq[kept].deadline_j = self.rq[gone].deadline_j;
            if self.old {
                let (k, g) = (self.rq[kept].ctx, self.rq[gone].ctx);
                (self.rq[kept].ctx, self.rq[gone].ctx) = (g, k);
            }
        }
        if self.next[c] == Some(gone) {
            self.next[c] = self.find_next(cx, c, gone);
        }
        self.nodes.remove(&mut self.sorted[c], gone.0);
        self.links.remove(&mut self.fifo[c], gone.0);
        self.rq[gone].place = Place::Outside;
        if let Some(x) = self.ctx_of(gone) {
            self.ctxs[x].queued -= 1;
            if c == SYNC {
                self.ctxs[x].ended(cx.jiffies());
            }
        }
    }

    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq.0).map(RqId)
    }

    fn may_queue(&mut self, cx: &mut Cx, _: &Bio, ioc: IocId) -> MayQueue {
        let alive = cx.alive(ioc);
        if self.waiting() && self.antic_ctx == Some(self.ctxs.of(ioc, alive)) {
            return MayQueue::Must;
        }
        MayQueue::May
    }

    fn finish(&mut self, _: &mut Cx, rq: RqId) {
        if let Some(x) = self.rq.at(rq.idx()).ctx.take() {
            self.ctxs.put(x);
        }
    }
    fn activate(&mut self, _: &mut Cx, rq: RqId) {
        if let Rq {
            ctx: Some(x),
            place: Place::Dispatched,
            ..
        } = *self.rq.at(rq.idx())
        {
            self.rq[rq].place = Place::Active;
            self.ctxs[x].dispatched -= 1;
        }
    }
    fn deactivate(&mut self, _: &mut Cx, rq: RqId) {
        if let Rq {
            ctx: Some(x),
            place: Place::Active,
            ..
        } = *self.rq.at(rq.idx())
        {
            self.rq[rq].place = Place::Dispatched;
            self.ctxs[x].dispatched += 1;
        }
    }

    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        let (c, now) = (Self::class(cx, rq), cx.jiffies());
        let Some(x) = self.ctx_of(rq) else {
            return; // never inserted here
        };
        if self.changing && self.inflight == 1 {
            cx.kick();
            self.changing = false;
            self.new_batch |= self.batch == SYNC;
        }
        self.inflight -= 1;
        self.rq[rq].place = Place::Outside;
        if self.new_batch && c == self.batch {
            self.adapt_wcount(cx);
            self.batch_end_j = now + self.batch_expire_j[SYNC];
            self.new_batch = false;
        }
        if self.antic_ctx == Some(x) {
            self.antic_start_j = now;
            self.ctx_done = true;
            if self.wait == Wait::ForRequest {
                self.wait_next(cx);
            }
        }
        if c == SYNC {
            self.ctxs[x].ended(now);
        }
    }

    fn timer(&mut self, cx: &mut Cx, _: u8) {
        if !self.waiting() {
            return;
        }
        cx.why("T", || "nothing came: the wait is over".to_owned());
        self.wait = Wait::Finished;
        cx.kick();
        if let Some(x) = self.antic_ctx {
            self.may_exit(x);
            if !self.ctxs[x].alive {
                self.all.no_coop = decay(self.all.no_coop, ONE);
            }
        }
    }

    fn ioc_event(&mut self, _: &mut Cx, ioc: IocId, what: IocEvent) {
        match what {
            IocEvent::Attach => {
                self.ctxs.of(ioc, true);
            }
            IocEvent::Exit => self.ctxs.exit(ioc),
            IocEvent::Release => self.ctxs.release(ioc),
            IocEvent::Prio | IocEvent::Cgroup => {}
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        let jiffies = match name {
            "read_expire" => self.expire_j[SYNC],
            "write_expire" => self.expire_j[ASYNC],
            "read_batch_expire" => self.batch_expire_j[SYNC],
            "write_batch_expire" => self.batch_expire_j[ASYNC],
            "antic_expire" => self.antic_expire_j,
            "est_time" => {
                let g = &self.all;
                return Some(format!(
                    "{} % exit probability\n{} % probability of exiting without a cooperating \
                     process submitting IO\n{} ms new thinktime\n{} sectors new seek distance",
                    100 * g.exit_prob / ONE,
                    100 * g.no_coop / ONE,
                    g.new_tt_mean,
                    g.new_seek_mean
                ));
            }
            _ => return None,
        };
        Some(cx.clock().to_ms(jiffies).to_string())
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let jiffies = cx.ms_to_jiffies(legacy_int(text).clamp(0, INT_MAX) as u64);
        *match name {
            "read_expire" => &mut self.expire_j[SYNC],
            "write_expire" => &mut self.expire_j[ASYNC],
            "read_batch_expire" => &mut self.batch_expire_j[SYNC],
            "write_batch_expire" => &mut self.batch_expire_j[ASYNC],
            "antic_expire" => &mut self.antic_expire_j,
            "est_time" => return Err(StoreError::read_only(name)),
            _ => return Err(StoreError::unknown(name)),
        } = jiffies;
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        let held: usize = self.sorted.iter().map(Tree::len).sum();
        assert_eq!(
            held, cx.nr_sorted as usize,
            "anticipatory: sets and nr_sorted"
        );
        // 1: the timer belongs to the wait.
        assert_eq!(
            self.wait == Wait::ForNext,
            cx.armed(ANTIC),
            "timer and state"
        );
        assert!(
            self.wait != Wait::ForNext || self.ctx_done,
            "waits before the completion"
        );
        // 4: set and FIFO hold the same; next is none iff they are empty.
        for c in [ASYNC, SYNC] {
            assert_eq!(self.sorted[c].len(), self.fifo[c].len(), "set and FIFO");
            for i in self.links.iter(&self.fifo[c]) {
                let rq = RqId(i);
                assert!(
                    self.nodes.linked(i) && Self::class(cx, rq) == c,
                    "in its set"
                );
                assert_eq!(self.nodes.key(i), cx.rqs[rq].sector, "sorted by its start");
                assert_eq!(self.rq[rq].place, Place::Queued);
            }
            match self.next[c] {
                Some(n) => assert!(self.nodes.linked(n.0) && Self::class(cx, n) == c),
                None => assert!(
                    self.sorted[c].is_empty() || self.next_lost[c],
                    "next was lost"
                ),
            }
        }
        // 3 in part: the process waited for was served by a sync request.
        assert!(
            !self.waiting() || self.antic_ctx.is_some(),
            "waits for nobody"
        );
        // 5: a change of batch waits for something.
        assert!(
            !self.changing || self.inflight > 0,
            "waits for a drain of nothing"
        );
        // 8: fixed point stays in its bounds.
        let cap_j = (cx.hz() / 50).saturating_sub(1);
        for c in self.ctxs.iter() {
            assert!(
                c.tt_samples <= 249 && c.seek_samples <= 249,
                "sample counters"
            );
            assert!(c.tt_mean <= cap_j + 4, "mean think time");
        }
        assert!(
            self.all.exit_prob <= ONE && self.all.no_coop <= ONE,
            "probabilities"
        );
        assert!(self.wleft >= 0 && self.wcount >= 1, "write count");
        // The counters of contexts are those of their requests.
        let queued: u32 = self.ctxs.iter().map(|c| c.queued).sum();
        assert_eq!(queued, cx.nr_sorted, "queued counts");
    }

    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        for c in [SYNC, ASYNC] {
            let ids: Vec<_> = self.links.iter(&self.fifo[c]).map(name).collect();
            let next = self.next[c].map_or(String::new(), |n| format!(" next {}", name(n.0)));
            *out += &format!("{}: [{}]{next}; ", CLASS[c], ids.join(" "));
        }
        *out += &format!(
            "{} batch{}{}, wait {:?}, in flight {}, writes left {} of {}",
            CLASS[self.batch],
            if self.changing { ", changing" } else { "" },
            if self.new_batch { ", new" } else { "" },
            self.wait,
            self.inflight,
            self.wleft,
            self.wcount
        );
    }
}
