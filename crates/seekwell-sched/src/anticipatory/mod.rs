//! anticipatory: the batches of deadline, and an idle wait for the process served last
//! (`block/as-iosched.c`, Nick Piggin).
//!
//! Requests are sync (reads, and writes with the sync flag) or async. Each of these two classes is
//! sorted by sector, and also kept in a FIFO with deadlines. Batches of the two classes alternate
//! by *time*. The main feature is the handling of deceptive idleness. After a read completes, the
//! best queued request may belong to another process and be far from the head. Then the disk idles
//! for up to `antic_expire`, because the process served last will probably read again nearby.
//!
//! | | 2.6.24 (default) | 2.6.18 |
//! |---|---|---|
//! | a write batch starts at | the oldest write | the next one in sweep order |
//! | delay that widens the window | jiffies | ms, though compared with jiffies |
//! | joining two requests | the merged request keeps its process | the merged request takes the process of the older one |
//! | a request on the dispatch list is sorted | within its direction | across directions |
//!
//! Seekwell differs from the kernel in two points. The kernel keeps the statistics of a process
//! over all disks, Seekwell for each queue. In 2.6.18 a worker runs the queue only while the
//! scheduler holds requests; Seekwell uses the layer's usual worker. (The layer runs the queue
//! after each completion and insertion anyway.)

mod batch;
mod context;
mod rules;
#[cfg(test)]
mod tests;
mod tunables;
mod wait;

use crate::contract::{Insert, IocEvent, MayQueue, MergeKind, Scheduler};
use crate::cx::{Cx, Slot};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{StoreError, Tunable};
use context::{ContextTable, Ctx, Global, ONE, decay};
use seekwell_core::{Bio, Era, IocId, Links, List, Nodes, RqId, Sector, Side, TaskId, Tree};
use tunables::TUNABLES;
use wait::Wait;

/// Registry entry of anticipatory.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "anticipatory",
    layer: Layer::Legacy,
    versions: &[("2.6.24", Era::K2_6_24), ("2.6.18", Era::K2_6_18)],
    summary: "timed read and write batches; waits a few ms for the process it has just served",
    history: "2.6.0 to 2.6.32, by Nick Piggin after Iyer and Druschel's anticipatory scheduling \
              (SOSP 2001). The default until 2.6.17; removed in 2.6.33 in favour of CFQ, which \
              also idles.",
    not_when: "Disks with command queueing, RAID, flash, and many random readers: it assumes one \
               head and one request at a time. On NCQ disks it starves writes.",
    source: "behaviour of block/as-iosched.c, Linux 2.6.18 and 2.6.24",
    per_process: true,
    hash: hash_always,
    // Twice a read batch and a write batch (500 + 125 ms), and antic_expire for each task.
    waiting: Waiting {
        fixed_ms: 1500,
        requests: 16,
        per_task_ms: 20,
        per_task_requests: 0,
        writes_before_read: 3,
        except: &[],
    },
    rules: rules::RULES,
    tunables: |_| TUNABLES,
    make: |cx, v| Box::new(Anticipatory::new(cx, v == "2.6.18")),
};

const ASYNC: usize = 0;
const SYNC: usize = 1;
/// Timer slot of the wait.
const ANTIC: Slot = Slot::new(0, "antic_timer");
/// Anticipatory's data for a request.
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
    /// On the dispatch list. The context counts the request as dispatched.
    Dispatched,
    /// The driver has taken the request.
    Active,
}

/// The scheduler anticipatory.
#[derive(Debug)]
pub struct Anticipatory {
    old: bool,
    sorted: [Tree; 2],
    nodes: Nodes<Sector>,
    fifo: [List; 2],
    links: Links,
    rq: Side<Rq>,
    next: [Option<RqId>; 2],
    /// End sector of the last request dispatched, by class.
    head: [Sector; 2],
    last_look_j: [u64; 2],
    batch: usize,
    batch_end_j: u64,
    /// Number of writes allowed in an async batch. It is a C `int`, and doubling can overflow it.
    wcount: i32,
    wleft: i32,
    w_idled: bool,
    /// True if a new batch was chosen while requests of the old batch are in flight.
    changing: bool,
    /// True if a sync batch was chosen. Its time starts at its first completion.
    new_batch: bool,
    inflight: u32,
    wait: Wait,
    antic_start_j: u64,
    antic_ctx: Option<Ctx>,
    /// The task that the disk waits for, for the text of a decision.
    antic_task: Option<TaskId>,
    ctx_done: bool,
    ctxs: ContextTable,
    all: Global,
    /// True if a front merge dispatched an alias. Until the next insertion of the class, `next` may
    /// be `None` although requests are queued.
    next_lost: [bool; 2],
    expire_j: [u64; 2],
    batch_expire_j: [u64; 2],
    antic_expire_j: u64,
}

const CLASS: [&str; 2] = ["async", "sync"];

impl Anticipatory {
    /// Creates the scheduler with the kernel's defaults. `old`: 2.6.18.
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
            antic_task: None,
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
    fn fifo_head(&self, c: usize) -> Option<RqId> {
        self.fifo[c].first().map(RqId)
    }
    fn ctx_of(&self, rq: RqId) -> Option<Ctx> {
        self.rq.try_get(rq.idx()).and_then(|r| r.ctx)
    }
}

impl Scheduler for Anticipatory {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        let (c, now) = (Self::class(cx, rq), cx.jiffies());
        let ioc = cx.rqs[rq].ioc;
        let x = self.ctxs.get_or_create(ioc, cx.alive(ioc));
        // A request that the driver returned keeps its context.
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
            cx.why_rq(rule, rq, || "ends the wait".to_owned());
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
                cx.why_rq(rules::HEAD_EXPIRED, head, || {
                    "the oldest sync request has expired".to_owned()
                });
                return self.serve(cx, head, true);
            }
            if self.can_anticipate(cx, rq) {
                self.start(cx);
                let state = self.wait;
                cx.why(rules::IDLE_STARTS, || {
                    let text = format!("waits for {{who}}, served last ({state:?})");
                    self.served_last().says(text)
                });
                return 0;
            }
        }
        match rq {
            Some(rq) => {
                if reads && !writes {
                    self.batch_end_j = cx.jiffies() + self.batch_expire_j[SYNC];
                }
                cx.why_rq(rules::BATCH_CONTINUES, rq, || {
                    format!("the {} batch continues", CLASS[self.batch])
                });
                self.serve(cx, rq, false)
            }
            None => self.begin_batch(cx, reads, writes),
        }
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.fifo.iter().any(|f| !f.is_empty())
    }

    /// Searches the tree of the *data direction*, although there is one tree per sync class, as in
    /// the kernel. So the search for a read looks at async writes and finds nothing. The search for
    /// a write looks at sync requests.
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
        if self.waiting() && self.antic_ctx == Some(self.ctxs.get_or_create(ioc, alive)) {
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
            return; // never inserted
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
        cx.why(rules::IDLE_IN_VAIN, || {
            self.served_last()
                .says("no request of {who} arrived: the wait is over")
        });
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
                self.ctxs.get_or_create(ioc, true);
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
        self.show_tunable(cx, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.store_tunable(cx, name, text)
    }

    fn check(&self, cx: &Cx) {
        let held: usize = self.sorted.iter().map(Tree::len).sum();
        assert_eq!(
            held, cx.nr_sorted as usize,
            "anticipatory: sets and nr_sorted"
        );
        // The timer is armed if and only if the scheduler waits.
        assert_eq!(
            self.wait == Wait::ForNext,
            cx.armed(ANTIC),
            "timer and state"
        );
        assert!(
            self.wait != Wait::ForNext || self.ctx_done,
            "waits before the completion"
        );
        // Tree and FIFO hold the same requests. `next` is `None` only if they are empty or `next`
        // was lost.
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
        // While the scheduler waits, there is a process for which it waits.
        assert!(
            !self.waiting() || self.antic_ctx.is_some(),
            "waits for nobody"
        );
        // A change of batch always waits for requests in flight.
        assert!(
            !self.changing || self.inflight > 0,
            "waits for a drain of nothing"
        );
        // Fixed-point values stay within their bounds.
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
        // The counters of the contexts agree with their requests.
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
