//! kyber: one token pool for each kind of request, with a size that depends on latency targets
//! (`block/kyber-iosched.c`, Omar Sandoval).
//!
//! kyber does not sort requests. It has no priorities and no fairness between processes. Requests
//! belong to four domains (reads, writes, discards, others). Each domain has a pool of tokens for
//! the whole device, and a request needs a token to be dispatched. Each hardware queue serves the
//! domains one after another, in batches, as long as there are tokens. At most every 100 ms kyber
//! changes the sizes of the pools. It measures two latencies of each domain: from issue to
//! completion, and from allocation to completion. The device is slow if the first latency of any
//! domain misses its target. While the device is slow, the pool of a domain shrinks if its second
//! latency is well within the target. Requests then wait in the scheduler, where requests of other
//! domains can pass them. The pool of a domain grows if its second latency misses the target.
//!
//! 6.1 differs from 6.12 only in the limit for async requests. Three points are not modelled.
//! Seekwell only counts tokens and does not model the bitmaps of the pools. It has one set of
//! histograms instead of one per CPU, because all are read at the same time. It does not model the
//! order of several hardware queues that wait for a token.

mod latency;
mod rules;
#[cfg(test)]
mod tests;

use crate::contract::{BioMerge, Insert, Scheduler};
use crate::cx::{Cx, Emit, Slot};
use crate::info::{Layer, SchedulerInfo, Waiting};
use crate::shallow::{opened_by_word_limit, word_shift};
use crate::tunable::{Kind, StoreError, Tunable, strict_u64};
use latency::{Histograms, Window};
use seekwell_core::{Bio, Era, IocId, Links, List, NSEC_PER_MSEC, NSEC_PER_SEC, Op, RqId, Side};

/// Registry entry of kyber.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "kyber",
    layer: Layer::Mq,
    versions: &[
        ("6.12", Era::Mq),
        ("6.18", Era::Mq6_18),
        ("6.1", Era::Mq6_1),
    ],
    summary: "token pools for reads, writes and discards, resized to meet latency targets",
    history: "Since 4.12, by Omar Sandoval, for fast multi-queue devices; the latency heuristic \
              modelled here dates from 4.20.",
    not_when: "Rotating disks, because it does not sort. Devices with one queue where priorities \
               or fair shares matter. Workloads with few requests per second, because the sizes of \
               the pools then rarely change.",
    source: "behaviour of block/kyber-iosched.c, Linux 6.1, 6.12, 6.18",
    per_process: false,
    hash: |_| false,
    // One batch of each domain (16 reads, 8 writes, 1 of each other domain), and the requests for
    // which the other domains already have tokens.
    waiting: Waiting {
        fixed_ms: 20,
        requests: 48,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 8,
        except: &[],
    },
    rules: rules::RULES,
    tunables: |_| TUNABLES,
    make: |cx, v| Box::new(Kyber::new(cx, v == "6.1")),
};

#[rustfmt::skip]
const TUNABLES: &[Tunable] = &[
    Tunable::new("read_lat_nsec", Kind::Ns, "ns", "2000000", (0, i64::MAX),
        "Latency target of reads. Lower: the pools of all domains shrink sooner."),
    Tunable::new("write_lat_nsec", Kind::Ns, "ns", "10000000", (0, i64::MAX),
        "Latency target of all writes, sync and async."),
];

/// Number of domains.
pub const DOMAINS: usize = 4;
/// Number of domains whose latency is measured.
const MEASURED: usize = 3;
const READ: usize = 0;
const WRITE: usize = 1;
const DISCARD: usize = 2;
const OTHER: usize = 3;
const NAMES: [&str; DOMAINS] = ["READ", "WRITE", "DISCARD", "OTHER"];
const MAX_TOKENS: [u32; DOMAINS] = [256, 128, 64, 16];
const BATCH: [u32; DOMAINS] = [16, 8, 1, 1];
const RESIZE_TIMER: Slot = Slot::new(0, "timer");
/// Percentage of the scheduler tags that async requests may use.
const ASYNC_PERCENT: u32 = 75;

/// Returns the domain of an operation.
fn domain_of(op: Op) -> usize {
    match op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => DISCARD,
        Op::Flush | Op::WriteZeroes => OTHER,
    }
}

/// The token pool of a domain.
#[derive(Clone, Copy, Debug)]
struct Pool {
    size: u32,
    used: u32,
    /// Number of tokens freed since a hardware queue began to wait for one.
    freed: u32,
    /// True if a hardware queue found no token.
    awaited: bool,
}

/// State of a hardware queue.
#[derive(Clone, Debug, Default)]
struct Hctx {
    /// Requests that were collected from the CPUs, by domain.
    ready: [List; DOMAINS],
    /// Number of requests in `ready` and in the lists of the CPUs.
    waiting: u32,
    domain: usize,
    batching: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Info {
    token: bool,
    domain: u8,
}

/// The scheduler kyber.
#[derive(Debug)]
pub struct Kyber {
    per_word_limit: bool,
    async_depth: u32,
    pools: [Pool; DOMAINS],
    /// Requests that were inserted and not collected, by CPU and domain.
    fresh: Vec<[List; DOMAINS]>,
    hctx: Vec<Hctx>,
    links: Links,
    info: Side<Info>,
    target_ns: [u64; MEASURED],
    histograms: Histograms,
    windows: [Window; MEASURED],
    /// The jiffy for which the timer was last armed.
    resize_j: u64,
    p99_kept: [Option<u32>; MEASURED],
}

impl Kyber {
    /// Creates the scheduler with the kernel's defaults. `per_word_limit`: the limit of 6.1.
    pub fn new(cx: &Cx, per_word_limit: bool) -> Self {
        let pool = |size| Pool {
            size,
            used: 0,
            freed: 0,
            awaited: false,
        };
        let mut kyber = Kyber {
            per_word_limit,
            async_depth: 0,
            pools: MAX_TOKENS.map(pool),
            fresh: vec![Default::default(); cx.queue.cpus.max(1) as usize],
            hctx: vec![Hctx::default(); cx.queue.hctxs.max(1) as usize],
            links: Links::new(),
            info: Side::new(),
            target_ns: [2 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC, 5 * NSEC_PER_SEC],
            histograms: Histograms::default(),
            windows: [Window::default(); MEASURED],
            resize_j: 0,
            p99_kept: [None; MEASURED],
        };
        kyber.set_async_depth(cx);
        kyber
    }

    /// Returns the sizes of the pools: `[reads, writes, discards, others]`.
    pub fn pool_sizes(&self) -> [u32; DOMAINS] {
        self.pools.map(|p| p.size)
    }

    fn set_async_depth(&mut self, cx: &Cx) {
        let nr = cx.queue.nr_requests;
        self.async_depth = if self.per_word_limit {
            opened_by_word_limit(nr, (1 << word_shift(nr)) * ASYNC_PERCENT / 100)
        } else {
            nr * ASYNC_PERCENT / 100
        };
    }

    fn take_token(&mut self, cx: &mut Cx, d: usize) -> bool {
        let pool = &mut self.pools[d];
        if pool.used < pool.size {
            pool.used += 1;
            return true;
        }
        pool.awaited = true;
        let size = pool.size;
        cx.why(rules::TOKENS_OUT, || {
            format!("{}: all {size} tokens are in use", NAMES[d])
        });
        false
    }

    /// `rq_clear_domain_token`: frees the token of a request. Wakes the hardware queues that wait,
    /// after an eighth of the pool was freed.
    fn free_token(&mut self, cx: &mut Cx, rq: RqId) {
        let info = self.info.at(rq.idx());
        if !std::mem::take(&mut info.token) {
            return;
        }
        let pool = &mut self.pools[info.domain as usize];
        pool.used -= 1;
        if pool.awaited {
            pool.freed += 1;
            if pool.freed >= (pool.size / 8).clamp(1, 8) {
                pool.freed = 0;
                pool.awaited = false;
                cx.kick();
            }
        }
    }

    /// `kyber_dispatch_cur_domain`: dispatches one request of domain `d`. Returns false if there is
    /// no request or no token.
    fn try_domain(&mut self, cx: &mut Cx, h: usize, d: usize) -> bool {
        if self.hctx[h].ready[d].is_empty() {
            let mine = |cpu: usize| cx.queue.hctx_of(cpu as u16) as usize == h;
            let any = (0..self.fresh.len()).any(|c| mine(c) && !self.fresh[c][d].is_empty());
            if !any || !self.take_token(cx, d) {
                return false;
            }
            for cpu in 0..self.fresh.len() {
                if cx.queue.hctx_of(cpu as u16) as usize == h {
                    let ready = &mut self.hctx[h].ready[d];
                    self.links.append(ready, &mut self.fresh[cpu][d]);
                }
            }
        } else if !self.take_token(cx, d) {
            return false;
        }
        let hctx = &mut self.hctx[h];
        let i = self.links.pop_front(&mut hctx.ready[d]);
        let rq = RqId(i.expect("a ready list that is not empty"));
        hctx.waiting -= 1;
        hctx.batching += 1;
        self.info[rq].token = true;
        let (n, of, used, size) = (
            hctx.batching,
            BATCH[d],
            self.pools[d].used,
            self.pools[d].size,
        );
        cx.why_rq(rules::DOMAIN_TURN, rq, || {
            format!("{} {n} of {of}, token {used} of {size}", NAMES[d])
        });
        cx.emit(rq, Emit::Tail);
        true
    }

    /// `kyber_timer_fn`: decides whether the device is slow, and changes the sizes of the pools.
    fn resize(&mut self, cx: &mut Cx) {
        let mut bad = false;
        for d in 0..MEASURED {
            let p90 = self.histograms.io[d].percentile(&mut self.windows[d], cx, 90);
            bad |= p90.is_some_and(|b| b >= latency::GOOD);
        }
        for d in 0..MEASURED {
            let mut p99 = self.histograms.total[d].percentile(&mut self.windows[d], cx, 99);
            if bad {
                p99 = p99.or(self.p99_kept[d]);
                self.p99_kept[d] = None;
            } else if p99.is_some() {
                self.p99_kept[d] = p99;
            }
            let Some(x) = p99 else { continue };
            if bad || x >= latency::GOOD {
                let pool = &mut self.pools[d];
                let old = pool.size;
                pool.size = (old * (x + 1) / 4).clamp(1, MAX_TOKENS[d]);
                let new = pool.size;
                cx.why(rules::POOL_RESIZED, || {
                    let device = if bad { "slow" } else { "good" };
                    format!(
                        "{}: {old} -> {new} tokens (device {device}, p99 in bucket {x})",
                        NAMES[d]
                    )
                });
            }
        }
    }
}

impl Scheduler for Kyber {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let (cpu, hctx) = (cx.rqs[rq].cpu as usize, cx.rqs[rq].hctx as usize);
        let d = domain_of(cx.rqs[rq].op);
        self.info.at(rq.idx()).domain = d as u8;
        let list = &mut self.fresh[cpu][d];
        if how == Insert::Sorted {
            self.links.push_back(list, rq.0);
        } else {
            self.links.push_front(list, rq.0);
        }
        self.hctx[hctx].waiting += 1;
    }

    fn dispatch(&mut self, cx: &mut Cx, hctx: u16, force: bool) -> u32 {
        let h = hctx as usize;
        if self.hctx[h].waiting == 0 {
            return 0;
        }
        let d = self.hctx[h].domain;
        if self.hctx[h].batching < BATCH[d] && self.try_domain(cx, h, d) {
            return 1;
        }
        self.hctx[h].batching = 0;
        for _ in 0..DOMAINS {
            let d = (self.hctx[h].domain + 1) % DOMAINS;
            self.hctx[h].domain = d;
            if self.try_domain(cx, h, d) {
                return 1;
            }
        }
        // A drain must not wait for tokens, because the requests that hold them may wait for the
        // end of the drain.
        if force {
            for d in 0..DOMAINS {
                let size = std::mem::replace(&mut self.pools[d].size, u32::MAX);
                let done = self.try_domain(cx, h, d);
                self.pools[d].size = size;
                if done {
                    return 1;
                }
            }
        }
        0
    }

    fn per_hctx(&self) -> bool {
        true
    }
    fn has_work(&self, _: &Cx, hctx: u16) -> bool {
        self.hctx[hctx as usize].waiting > 0
    }

    fn bio_merge(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> BioMerge {
        let list = &self.fresh[bio.cpu as usize][domain_of(bio.op)];
        cx.scan_for_merge(&self.links, list, bio, ioc)
    }
    fn joined(&mut self, cx: &mut Cx, _: RqId, gone: RqId) {
        let r = &cx.rqs[gone];
        let (cpu, hctx) = (r.cpu as usize, r.hctx as usize);
        let d = self.info[gone].domain as usize;
        self.links.remove(&mut self.fresh[cpu][d], gone.0);
        self.hctx[hctx].waiting -= 1;
    }

    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, _: IocId) -> Option<u32> {
        (!bio.is_sync(cx.queue.era)).then_some(self.async_depth)
    }
    fn depth_changed(&mut self, cx: &mut Cx) {
        self.set_async_depth(cx);
    }

    fn prepare(&mut self, _: &mut Cx, rq: RqId) {
        *self.info.at(rq.idx()) = Info::default();
    }
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {
        self.free_token(cx, rq);
    }
    fn requeued(&mut self, cx: &mut Cx, rq: RqId) {
        self.free_token(cx, rq);
    }
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        let d = self.info[rq].domain as usize;
        if d == OTHER {
            return;
        }
        let r = &cx.rqs[rq];
        let (total, io) = (cx.since(r.start).0, cx.since(r.issue).0);
        self.histograms.add(d, total, io, self.target_ns[d]);
        let due = cx.jiffies() + cx.hz() / 10;
        if !cx.armed(RESIZE_TIMER) || self.resize_j > due {
            self.resize_j = due;
            cx.arm_jiffy(RESIZE_TIMER, due);
        }
    }

    fn timer(&mut self, cx: &mut Cx, _: u8) {
        self.resize(cx);
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }
    fn show(&self, _: &Cx, name: &str) -> Option<String> {
        match name {
            "read_lat_nsec" => Some(self.target_ns[READ].to_string()),
            "write_lat_nsec" => Some(self.target_ns[WRITE].to_string()),
            _ => None,
        }
    }
    fn store(&mut self, _: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let d = match name {
            "read_lat_nsec" => READ,
            "write_lat_nsec" => WRITE,
            _ => return Err(StoreError::unknown(name)),
        };
        self.target_ns[d] = strict_u64(name, text)?;
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        let waiting: u32 = self.hctx.iter().map(|h| h.waiting).sum();
        let ready = self.hctx.iter().flat_map(|h| &h.ready);
        let listed: usize = ready
            .chain(self.fresh.iter().flatten())
            .map(List::len)
            .sum();
        assert_eq!(listed, waiting as usize, "kyber: lists and count");
        assert_eq!(listed, cx.nr_sorted as usize, "kyber: lists and nr_sorted");
        let mut held = [0; DOMAINS];
        for (rq, r) in cx.rqs.iter() {
            if self.info.try_get(rq.idx()).is_some_and(|i| i.token) {
                assert!(
                    r.state != seekwell_core::State::Sorted,
                    "kyber P6: token held inside"
                );
                held[self.info[rq].domain as usize] += 1;
            }
        }
        for (d, pool) in self.pools.iter().enumerate() {
            assert!((1..=MAX_TOKENS[d]).contains(&pool.size), "kyber P4: size");
            assert_eq!(pool.used, held[d], "kyber P6: tokens of {}", NAMES[d]);
        }
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        for d in [READ, WRITE, DISCARD, OTHER] {
            let lists = self.hctx.iter().map(|h| &h.ready[d]);
            let lists = lists.chain(self.fresh.iter().map(|f| &f[d]));
            let ids: Vec<_> = lists.flat_map(|l| self.links.iter(l)).map(name).collect();
            let p = self.pools[d];
            *out += &format!("{} {}/{} [{}] ", NAMES[d], p.used, p.size, ids.join(" "));
        }
        for h in &self.hctx {
            *out += &format!("at {} batch {} ", NAMES[h.domain], h.batching);
        }
    }
}
