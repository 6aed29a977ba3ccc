//! `none`: no scheduler (blk-mq, since 3.13, Jens Axboe).
//!
//! `none` is not a kernel module but the code path without an elevator. There is one FIFO per CPU,
//! and no order by sector, priority or process. Most requests do not enter these FIFOs, because the
//! layer issues them directly. The FIFOs fill only when the device or its tags are exhausted. The
//! block layer implements direct issue, driver tags, plugs and the dispatch list. This module
//! implements the FIFOs, the round robin over the CPUs, and the transfer of all FIFOs at once.
//!
//! Two things are not modelled: separate FIFOs for reads and polled bios (some drivers have such
//! queues), and the parts of the kernel above `none` (writeback throttling, io.latency, io.cost).

use crate::contract::{BioMerge, Insert, Scheduler};
use crate::cx::{Cx, Emit};
use crate::info::{Layer, SchedulerInfo, Waiting};
use seekwell_core::{About, Bio, Era, IocId, Links, List, RqId};

/// Registry entry of `none`.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "none",
    layer: Layer::Mq,
    versions: &[
        ("6.12", Era::Mq),
        ("6.18", Era::Mq6_18),
        ("6.1", Era::Mq6_1),
    ],
    summary: "no scheduler: requests go to the device as they arrive",
    history: "blk-mq without an elevator, since 3.13 (selectable by name since 4.11), by Jens \
              Axboe; the default of devices with several hardware queues. From 5.16 until about \
              6.12, the requests of a plug were issued in reverse order (last in, first out).",
    not_when: "A rotating disk, or any device with a short queue while readers and bulk writers \
               compete: nothing protects the readers.",
    source: "behaviour of block/blk-mq.c and block/blk-mq-sched.c, Linux 6.1, 6.12, 6.18",
    per_process: false,
    hash: |_| false,
    // Each context is first in, first out, and the contexts are served one after another.
    waiting: Waiting {
        fixed_ms: 20,
        requests: 8,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 8,
        except: &[],
    },
    rules: RULES,
    tunables: |_| &[],
    make: |cx, _| Box::new(NoScheduler::new(cx)),
};

seekwell_core::rules! {
    ALL_CONTEXTS: "all-contexts", "blk_mq_flush_busy_ctxs",
        "All requests that wait in the software contexts of a hardware context go at once, CPU by \
         CPU.";
    ROUND_ROBIN: "round-robin", "blk_mq_dequeue_from_ctx",
        "One request goes; next time the search starts at the CPU after the one it came from.";
}

/// The FIFOs of the software contexts.
#[derive(Debug)]
pub struct NoScheduler {
    /// FIFOs by CPU. Each CPU belongs to one hardware context.
    fifo: Vec<List>,
    links: Links,
    /// The CPU at which the next search starts, by hardware context.
    dispatch_from: Vec<u16>,
    /// Number of requests in FIFOs, by hardware context.
    waiting: Vec<u32>,
}

impl NoScheduler {
    /// Returns empty FIFOs for the CPUs of the queue.
    pub fn new(cx: &Cx) -> Self {
        NoScheduler {
            fifo: vec![List::new(); cx.queue.cpus.max(1) as usize],
            links: Links::new(),
            dispatch_from: vec![0; cx.queue.hctxs.max(1) as usize],
            waiting: vec![0; cx.queue.hctxs.max(1) as usize],
        }
    }

    fn hand_out(&mut self, cx: &mut Cx, cpu: usize, hctx: u16) {
        if let Some(i) = self.links.pop_front(&mut self.fifo[cpu]) {
            self.waiting[hctx as usize] -= 1;
            cx.emit(RqId(i), Emit::Tail);
        }
    }

    /// Moves the requests of all FIFOs of the hardware context to the dispatch list, CPU by CPU.
    /// Returns their number.
    fn splice(&mut self, cx: &mut Cx, hctx: u16) -> u32 {
        let before = self.waiting[hctx as usize];
        for cpu in 0..self.fifo.len() {
            if cx.queue.hctx_of(cpu as u16) == hctx {
                while !self.fifo[cpu].is_empty() {
                    self.hand_out(cx, cpu, hctx);
                }
            }
        }
        cx.why(ALL_CONTEXTS, || format!("all {before} waiting, CPU by CPU"));
        before
    }
}

impl Scheduler for NoScheduler {
    fn bypass(&self) -> bool {
        true
    }
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let (cpu, hctx) = (cx.rqs[rq].cpu as usize, cx.rqs[rq].hctx as usize);
        match how {
            Insert::Sorted => self.links.push_back(&mut self.fifo[cpu], rq.0),
            Insert::AtHead | Insert::Requeue | Insert::Reinsert => {
                self.links.push_front(&mut self.fifo[cpu], rq.0)
            }
        }
        self.waiting[hctx] += 1;
    }

    /// Dispatches one request, round robin over the CPUs. With `force`, dispatches all requests.
    fn dispatch(&mut self, cx: &mut Cx, hctx: u16, force: bool) -> u32 {
        if self.waiting[hctx as usize] == 0 {
            return 0;
        }
        if force {
            return self.splice(cx, hctx);
        }
        let cpus = self.fifo.len();
        let from = self.dispatch_from[hctx as usize] as usize;
        for step in 0..cpus {
            let cpu = (from + step) % cpus;
            if !self.fifo[cpu].is_empty() && cx.queue.hctx_of(cpu as u16) == hctx {
                let first = self.fifo[cpu].first().map(RqId);
                cx.why(ROUND_ROBIN, || {
                    let about = first.map_or(About::default(), About::rq);
                    about.says(format!("round robin: CPU {cpu}"))
                });
                self.hand_out(cx, cpu, hctx);
                self.dispatch_from[hctx as usize] = ((cpu + 1) % cpus) as u16;
                return 1;
            }
        }
        0
    }
    fn has_work(&self, _: &Cx, hctx: u16) -> bool {
        self.waiting[hctx as usize] > 0
    }
    fn bio_merge(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> BioMerge {
        let fifo = &self.fifo[bio.cpu as usize];
        cx.scan_for_merge(&self.links, fifo, bio, ioc)
    }
    fn joined(&mut self, cx: &mut Cx, _: RqId, gone: RqId) {
        let (cpu, hctx) = (cx.rqs[gone].cpu as usize, cx.rqs[gone].hctx as usize);
        self.links.remove(&mut self.fifo[cpu], gone.0);
        self.waiting[hctx] -= 1;
    }

    fn check(&self, cx: &Cx) {
        let in_fifos: usize = self.fifo.iter().map(List::len).sum();
        let waiting: u32 = self.waiting.iter().sum();
        assert_eq!(in_fifos, cx.nr_sorted as usize, "none: FIFOs and nr_sorted");
        assert_eq!(in_fifos, waiting as usize, "none: FIFOs and the bitmap");
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        for (cpu, fifo) in self.fifo.iter().enumerate() {
            let ids: Vec<_> = self
                .links
                .iter(fifo)
                .map(|i| cx.rqs.first_bio(RqId(i)).id.0.to_string())
                .collect();
            *out += &format!("cpu{cpu}: [{}] ", ids.join(" "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::QueueFacts;
    use proptest::prelude::*;
    use seekwell_core::{CgroupId, Flags, IoPrio, Op, State, TaskId, TickClock};

    proptest! {
        /// The requests of each CPU are dispatched in order of insertion, whatever their sectors
        /// are. The round robin skips no CPU that has requests.
        #[test]
        fn requests_are_fifo_per_cpu_and_round_robin_between_cpus(
            ops in prop::collection::vec((0u16..4, 0u64..64, 0u8..5), 1..200),
        ) {
            let mut facts = QueueFacts::example(Era::Mq);
            (facts.cpus, facts.hctxs) = (4, 2);
            let mut cx = Cx::new(facts, TickClock::new(1000));
            let mut s = NoScheduler::new(&cx);
            let ioc = cx.iocs.create(TaskId(1), IoPrio::be(4), CgroupId::ROOT);
            let mut model: Vec<Vec<RqId>> = vec![vec![]; 4];
            let mut passed = [0u32; 4];
            for (cpu, sector, what) in ops {
                let hctx = cx.queue.hctx_of(cpu);
                if what < 3 {
                    let bio = Bio::new(0, TaskId(1), Op::Read, Flags::empty(), sector * 8, 8);
                    let now = cx.now();
                    let rq = cx.rqs.alloc(bio, ioc, IoPrio::be(4), Era::Mq, now);
                    let r = &mut cx.rqs[rq];
                    (r.cpu, r.hctx, r.state) = (cpu, hctx, State::Sorted);
                    cx.nr_sorted += 1;
                    s.insert(&mut cx, rq, Insert::Sorted);
                    model[cpu as usize].push(rq);
                } else {
                    let n = s.dispatch(&mut cx, hctx, what == 4);
                    let mine: Vec<u16> = (0..4).filter(|c| cx.queue.hctx_of(*c) == hctx).collect();
                    let waiting: usize = mine.iter().map(|c| model[*c as usize].len()).sum();
                    let wanted = if what == 4 { waiting } else { waiting.min(1) };
                    prop_assert_eq!(n as usize, wanted);
                    while let Some(rq) = cx.out.pop() {
                        let from = cx.rqs[rq].cpu;
                        prop_assert_eq!(model[from as usize].remove(0), rq);
                        for c in &mine {
                            let idle = model[*c as usize].is_empty() || *c == from;
                            passed[*c as usize] = if idle { 0 } else { passed[*c as usize] + 1 };
                            prop_assert!(what == 4 || passed[*c as usize] < mine.len() as u32);
                        }
                    }
                    if what == 4 {
                        passed = [0; 4];
                    }
                }
                s.check(&cx);
            }
        }
    }
}
