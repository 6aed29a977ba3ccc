//! row, "read over write": seven queues by class, direction and sync (Code Aurora, 2012 to 2014).
//!
//! Reads go before writes. The real-time class goes before best effort, and best effort before
//! idle. A class serves its queues in cycles. In each cycle a queue may dispatch as many requests
//! as its quantum, so that writes get a few slots next to a stream of reads. If a read queue
//! becomes empty after reads arrived close together, the device idles for a few milliseconds,
//! because more reads may arrive. A read that was passed over becomes *urgent*: it goes first, and
//! a driver that can stop a long write is notified. row does not sort, does not search for requests
//! to merge, and has no deadlines.
//!
//! | version | quanta HR HS RR RS RW LR LS | idle, freq (ms) | limits of class starvation | urgent |
//! |---|---|---|---|---|
//! | late (default) | 100 5 75 4 4 3 2 | 10, 25 | 5000, 10000 | yes |
//! | hisi (late logic, old numbers) | 10 1 100 1 1 1 1 | 5, 5 | 5000, 10000 | yes |
//! | mid | 10 1 100 1 1 1 1 | 5, 20 | none: RT always first, IDLE last | yes, HR more often |
//! | v1 (the first posting) | 100 2 100 1 1 1 1 | 5, 20 | no classes: one cycle, ioprio ignored | no |
//!
//! One defect is corrected: if the text written to a tunable is not a number, it is rejected. The
//! original stored uninitialized stack memory.

mod rules;
mod v1;
mod variant;

pub use variant::Variant;

use crate::contract::{Insert, Scheduler};
use crate::cx::{Cx, Emit, Slot};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{INT_MAX, StoreError, Tunable};
use seekwell_core::{Class, Era, Instant, Links, List, Nanos, RqId, Side};

/// Registry entry of row.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "row",
    layer: Layer::Legacy,
    versions: &[
        ("late", Era::K3_4),
        ("hisi", Era::K3_4),
        ("mid", Era::K3_4),
        ("v1", Era::K3_4),
    ],
    summary: "reads over writes by class, with quanta, short idling for reads and urgent requests",
    history: "Tatyana Brokhman and colleagues (Code Aurora, Linux Foundation), posted 2012, never \
              merged; default of Qualcomm 8974 and 8226 phone kernels. Made for eMMC, which can \
              stop a long write for an urgent read.",
    not_when: "Workloads with many fsyncs next to reads (databases): sync writes wait for each \
               idle period and get 4 of 83 slots. Rotating disks, because it does not sort. \
               Requests that must not wait long, because it sets no limit on the age of a request.",
    source: "behaviour of block/row-iosched.c in three published phone kernels of 2013 and 2014, and \
             as posted in 2012",
    per_process: true,
    hash: hash_always,
    // A request may wait for several cycles of its class. A cycle has up to 100 reads and a few
    // writes, and the device idles before some of these requests. In the first posting (v1), if the
    // device does not idle for a reader, a sync write goes between each two of its reads, whatever
    // the quantum of the reads is. Async writes then get only one slot in 200.
    waiting: Waiting {
        fixed_ms: 2000,
        requests: 400,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 3,
        except: &["v1"],
    },
    rules: rules::RULES,
    tunables: |v| Variant::named(v).tunables(),
    make: |_, v| Box::new(Row::new(Variant::named(v))),
};

/// `HR` to `LS` are the indices of the queues. The first letter is the priority (H high, R regular,
/// L low). The second letter is the kind of request (R read, S sync write, W async write).
const HR: usize = 0;
const HS: usize = 1;
const RR: usize = 2;
const RS: usize = 3;
const RW: usize = 4;
const LR: usize = 5;
const LS: usize = 6;
const NAMES: [&str; 7] = ["HR", "HS", "RR", "RS", "RW", "LR", "LS"];

/// Returns the queues of a class, in the order of service.
const fn queues_of(class: Class) -> std::ops::Range<usize> {
    match class {
        Class::Rt => HR..HS + 1,
        Class::Idle => LR..LS + 1,
        Class::Be | Class::None => RR..RW + 1,
    }
}
const fn class_of(queue: usize) -> Class {
    match queue {
        HR | HS => Class::Rt,
        LR | LS => Class::Idle,
        _ => Class::Be,
    }
}
/// Returns true if the device may idle for the queue, and if the requests of the queue may become
/// urgent.
const fn is_special(queue: usize) -> bool {
    queue == HR || queue == RR
}

/// Timer slot of the idle wait.
const IDLE_TIMER: Slot = Slot::new(0, "rd_idle_data.hr_timer");

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    fifo: List,
    /// Number of requests dispatched in the current cycle of the class.
    served: u32,
    /// True if the queue did not use up its quantum in the last cycle and was not served since
    /// then.
    unserved: bool,
    /// Time of the last insertion; only used for HR and RR.
    last_insert: Option<Instant>,
    want_idle: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Item {
    queue: u8,
    /// True if the request was dispatched as an urgent request.
    urgent: bool,
}

/// The scheduler row.
#[derive(Debug)]
pub struct Row {
    variant: Variant,
    queues: [Queue; 7],
    links: Links,
    items: Side<Item>,
    urgent_pending: Option<RqId>,
    urgent_in_flight: bool,
    /// Class of the last dispatch; `None` after a dispatch call that found no request.
    last_class: Class,
    reg_starv: u32,
    low_starv: u32,
    /// The queue for which the device idles while the timer runs.
    idle_for: Option<usize>,
    /// The current place in the cycle (v1 only).
    at: usize,
    quanta: [u32; 7],
    idle_ms: u64,
    idle_freq_ms: u64,
    reg_starv_limit: u32,
    low_starv_limit: u32,
}

impl Row {
    /// Creates the scheduler with the defaults of `variant`.
    pub fn new(variant: Variant) -> Self {
        let [idle_ms, idle_freq_ms] = variant.idle_ms();
        Row {
            variant,
            queues: [Queue::default(); 7],
            links: Links::new(),
            items: Side::new(),
            urgent_pending: None,
            urgent_in_flight: false,
            last_class: Class::None,
            reg_starv: 0,
            low_starv: 0,
            idle_for: None,
            at: 0,
            quanta: variant.quanta(),
            idle_ms,
            idle_freq_ms,
            reg_starv_limit: 5000,
            low_starv_limit: 10000,
        }
    }

    fn empty(&self, queue: usize) -> bool {
        self.queues[queue].fifo.is_empty()
    }
    fn waits(&self, class: Class) -> bool {
        queues_of(class).any(|q| !self.empty(q))
    }
    fn anything_queued(&self) -> bool {
        self.queues.iter().any(|q| !q.fifo.is_empty())
    }
    fn regular_starved(&self) -> bool {
        self.variant.limits_starvation()
            && self.waits(Class::Be)
            && self.reg_starv >= self.reg_starv_limit
    }
    fn low_starved(&self) -> bool {
        self.variant.limits_starvation()
            && self.waits(Class::Idle)
            && self.low_starv >= self.low_starv_limit
    }

    /// Starts or restarts the idle wait for `queue`.
    fn idle(&mut self, cx: &mut Cx, queue: usize) {
        let until = cx.now() + Nanos::from_ms(self.idle_ms);
        cx.why(rules::IDLE_STARTS, || {
            format!("{} is empty: idle for it until {until}", NAMES[queue])
        });
        self.idle_for = Some(queue);
        cx.arm(IDLE_TIMER, until);
    }
    fn stop_idling(&mut self, cx: &mut Cx) {
        if self.idle_for.take().is_some() {
            cx.disarm(IDLE_TIMER);
        }
    }

    /// `row_get_ioprio_class_to_serve`: returns the class that may be served, if any.
    fn choose_class(&mut self, cx: &mut Cx, force: bool) -> Option<Class> {
        let anything = self.anything_queued();
        if self.waits(Class::Rt) {
            self.stop_idling(cx);
            if self.regular_starved() {
                cx.why(rules::REGULAR_STARVED, || {
                    "best effort has waited long enough".to_owned()
                });
                return Some(Class::Be);
            }
            if self.low_starved() {
                cx.why(rules::LOW_STARVED, || {
                    "the idle class has waited long enough".to_owned()
                });
                return Some(Class::Idle);
            }
            cx.why(rules::REALTIME_FIRST, || "real time first".to_owned());
            return Some(Class::Rt);
        }
        if anything && let Some(queue) = self.idle_for {
            cx.why(rules::IDLING, || format!("idling for {}", NAMES[queue]));
            return None;
        }
        if self.queues[HR].want_idle && !force {
            self.idle(cx, HR);
            return None;
        }
        for queue in RR..=RW {
            if self.empty(queue) {
                if queue == RR && self.queues[RR].want_idle && !force {
                    self.idle(cx, RR);
                    return None;
                }
                continue;
            }
            if self.low_starved() {
                cx.why(rules::LOW_STARVED, || {
                    "the idle class has waited long enough".to_owned()
                });
                return Some(Class::Idle);
            }
            cx.why(rules::BEST_EFFORT, || "best effort".to_owned());
            return Some(Class::Be);
        }
        if !anything {
            return None;
        }
        cx.why(rules::IDLE_CLASS, || {
            "only the idle class has requests".to_owned()
        });
        Some(Class::Idle)
    }

    /// `row_get_next_queue`: returns the queue of the class to serve. Starts a new cycle if no
    /// queue has quantum left.
    fn choose_queue(&mut self, cx: &mut Cx, class: Class) -> Option<usize> {
        if let Some(queue) = self.queue_with_quantum(class) {
            return Some(queue);
        }
        cx.why(rules::CYCLE_RESTARTS, || {
            "a new cycle of the class".to_owned()
        });
        for q in queues_of(class) {
            if self.queues[q].served < self.quanta[q] {
                self.queues[q].unserved = true;
            }
            self.queues[q].served = 0;
        }
        self.queue_with_quantum(class)
    }
    fn queue_with_quantum(&self, class: Class) -> Option<usize> {
        queues_of(class).find(|&q| !self.empty(q) && self.queues[q].served < self.quanta[q])
    }

    /// `row_dispatch_insert`: dispatches a request and updates the counters of the class.
    fn send(&mut self, cx: &mut Cx, rq: RqId) {
        let queue = self.items[rq].queue as usize;
        self.links.remove(&mut self.queues[queue].fifo, rq.0);
        if self.urgent_pending == Some(rq) {
            self.urgent_pending = None;
            self.urgent_in_flight = true;
            self.items[rq].urgent = true;
        }
        let q = &mut self.queues[queue];
        q.served = q.served.saturating_add(1);
        q.unserved = false;
        let class = class_of(queue);
        self.last_class = class;
        match class {
            Class::Rt if self.waits(Class::Be) => {
                self.reg_starv = self.reg_starv.saturating_add(1);
            }
            Class::Be | Class::None => self.reg_starv = 0,
            Class::Rt | Class::Idle => {}
        }
        if class == Class::Idle {
            self.low_starv = 0;
        } else if self.waits(Class::Idle) {
            self.low_starv = self.low_starv.saturating_add(1);
        }
        cx.emit(rq, Emit::Sorted);
    }

    /// `row_add_request`: decides, for a new read, whether to idle for its queue later and whether
    /// it is urgent.
    fn read_came(&mut self, cx: &mut Cx, rq: RqId, queue: usize, empty_before: bool) {
        if self.idle_for == Some(queue) {
            self.stop_idling(cx);
        }
        let now = cx.now();
        let freq_ms = self.idle_freq_ms;
        let q = &mut self.queues[queue];
        q.want_idle = q
            .last_insert
            .is_some_and(|t| now.since(t) < Nanos::from_ms(freq_ms));
        q.last_insert = Some(now);
        let never = self.variant == Variant::V1;
        if never || self.urgent_pending.is_some() || self.urgent_in_flight {
            return;
        }
        let to_empty = empty_before || self.variant == Variant::Mid;
        if queue == HR && self.last_class != Class::Rt && to_empty {
            cx.why_rq(rules::URGENT_READ, rq, || {
                "urgent: a real-time read after another class".to_owned()
            });
            self.urgent_pending = Some(rq);
        } else if self.queues[queue].unserved {
            cx.why_rq(rules::URGENT_READ, rq, || {
                format!("urgent: {} was not served in the last cycle", NAMES[queue])
            });
            self.urgent_pending = Some(rq);
        }
    }

    fn quantum_named(name: &str) -> Option<usize> {
        variant::QUANTA.iter().position(|&q| q == name)
    }
}

impl Scheduler for Row {
    /// The explicit ioprio at this moment decides the queue of the request; the nice value is
    /// ignored.
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {
        let r = &cx.rqs[rq];
        let class = cx.iocs.get(r.ioc).ioprio.class;
        let queue = match (class, r.is_write(), r.sync) {
            (_, write, sync) if self.variant == Variant::V1 => Self::regular_queue(write, sync),
            (Class::Rt, false, _) => HR,
            (Class::Rt, true, true) => HS,
            (Class::Idle, false, _) => LR,
            (Class::Idle, true, true) => LS,
            (Class::Be | Class::None, false, _) => RR,
            (Class::Be | Class::None, true, true) => RS,
            (_, true, false) => RW,
        };
        *self.items.at(rq.idx()) = Item {
            queue: queue as u8,
            urgent: false,
        };
    }

    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let queue = self.items[rq].queue as usize;
        let q = &mut self.queues[queue];
        if how != Insert::Sorted {
            self.links.push_front(&mut q.fifo, rq.0);
            if std::mem::take(&mut self.items[rq].urgent) {
                self.urgent_in_flight = false;
                self.urgent_pending = Some(rq);
            }
            return;
        }
        let empty_before = q.fifo.is_empty();
        self.links.push_back(&mut q.fifo, rq.0);
        if is_special(queue) {
            self.read_came(cx, rq, queue, empty_before);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        if force {
            self.stop_idling(cx);
        }
        if self.variant == Variant::V1 {
            return self.dispatch_in_one_cycle(cx, force);
        }
        if let Some(rq) = self.urgent_pending {
            cx.why_rq(rules::URGENT_FIRST, rq, || "an urgent request".to_owned());
            self.send(cx, rq);
            return 1;
        }
        let Some(class) = self.choose_class(cx, force) else {
            self.last_class = Class::None;
            return 0;
        };
        let Some(queue) = self.choose_queue(cx, class) else {
            return 0;
        };
        let Some(head) = self.queues[queue].fifo.first() else {
            return 0;
        };
        cx.why_rq(rules::QUANTUM, RqId(head), || {
            let (n, of) = (self.queues[queue].served + 1, self.quanta[queue]);
            format!("{}: {n} of {of} in this cycle", NAMES[queue])
        });
        self.send(cx, RqId(head));
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.anything_queued()
    }
    fn urgent(&self) -> bool {
        self.urgent_pending.is_some() && !self.urgent_in_flight
    }

    fn joined(&mut self, _: &mut Cx, kept: RqId, gone: RqId) {
        if self.links.linked(gone.0) {
            let queue = self.items[gone].queue as usize;
            self.links.remove(&mut self.queues[queue].fifo, gone.0);
        }
        if self.urgent_pending == Some(gone) {
            self.urgent_pending = Some(kept);
        }
    }

    fn completed(&mut self, _: &mut Cx, rq: RqId) {
        if std::mem::take(&mut self.items.at(rq.idx()).urgent) {
            self.urgent_in_flight = false;
        }
    }

    fn timer(&mut self, cx: &mut Cx, _: u8) {
        if let Some(queue) = self.idle_for.take() {
            cx.why(rules::IDLE_OVER, || {
                format!("idling for {} is over", NAMES[queue])
            });
            self.queues[queue].want_idle = false;
        }
        if self.anything_queued() {
            cx.kick();
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.variant.tunables()
    }
    fn show(&self, _: &Cx, name: &str) -> Option<String> {
        self.tunables().iter().find(|t| t.name == name)?;
        if let Some(queue) = Self::quantum_named(name) {
            return Some(self.quanta[queue].to_string());
        }
        Some(match name {
            "rd_idle_data" | "read_idle" => self.idle_ms.to_string(),
            "rd_idle_data_freq" | "read_idle_freq" => self.idle_freq_ms.to_string(),
            "reg_starv_limit" => self.reg_starv_limit.to_string(),
            "low_starv_limit" => self.low_starv_limit.to_string(),
            _ => return None,
        })
    }
    fn store(&mut self, _: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        if !self.tunables().iter().any(|t| t.name == name) {
            return Err(StoreError::unknown(name));
        }
        let Ok(v) = text.trim().parse::<i64>() else {
            return Err(StoreError::NotANumber {
                name: name.to_owned(),
                value: text.trim().to_owned(),
            });
        };
        let v = v.clamp(1, INT_MAX);
        if let Some(queue) = Self::quantum_named(name) {
            self.quanta[queue] = v as u32;
            return Ok(());
        }
        match name {
            "rd_idle_data" | "read_idle" => self.idle_ms = v as u64,
            "rd_idle_data_freq" | "read_idle_freq" => self.idle_freq_ms = v as u64,
            "reg_starv_limit" => self.reg_starv_limit = v as u32,
            "low_starv_limit" => self.low_starv_limit = v as u32,
            _ => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        let queued: usize = self.queues.iter().map(|q| q.fifo.len()).sum();
        assert_eq!(queued, cx.nr_sorted as usize, "row: queues and nr_sorted");
        for (i, q) in self.queues.iter().enumerate() {
            for rq in self.links.iter(&q.fifo) {
                assert_eq!(self.items[RqId(rq)].queue as usize, i, "row: wrong queue");
            }
            assert!(is_special(i) || !q.want_idle, "row: idles for {}", NAMES[i]);
        }
        assert_eq!(
            self.idle_for.is_some(),
            cx.armed(IDLE_TIMER),
            "row: timer and its queue"
        );
        assert!(self.idle_for.is_none_or(is_special));
        if let Some(rq) = self.urgent_pending {
            assert!(self.links.linked(rq.0), "row: urgent and not queued");
            assert!(!self.urgent_in_flight, "row: a second urgent request");
        }
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        for (i, q) in self.queues.iter().enumerate() {
            if q.fifo.is_empty() && q.served == 0 && !q.unserved && !q.want_idle {
                continue;
            }
            let name = |rq| cx.rqs.first_bio(RqId(rq)).id.0.to_string();
            let ids: Vec<_> = self.links.iter(&q.fifo).map(name).collect();
            let unserved = if q.unserved { " unserved" } else { "" };
            let idle = if q.want_idle { " idles" } else { "" };
            let (ids, served, of) = (ids.join(" "), q.served, self.quanta[i]);
            *out += &format!("{} {served}/{of}{unserved}{idle} [{ids}]; ", NAMES[i]);
        }
        if self.variant == Variant::V1 {
            *out += &format!("at {}", v1::name_at(self.at));
            return;
        }
        let (reg, low) = (self.reg_starv, self.low_starv);
        *out += &format!("last class {:?}, starved {reg} {low}", self.last_class);
    }
}
