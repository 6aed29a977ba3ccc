//! The counters that are collected while a trace is read.

use super::course::CourseSum;
use super::data::{Depth, KindPart, Merges, Phase, Seeks, SizeClass, Spread};
use super::heat::HeatSum;
use super::seeks::SeekSum;
use super::tasks::TaskSum;
use crate::blk::BlkEvent;
use seekwell_core::result::Latency;
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Flags, Op};
use std::collections::BTreeMap;

/// Maximum number of different devices.
const DEVICES_MAX: usize = 1 << 16;
/// Upper bound of the smallest size class, in bytes.
const SMALLEST: u64 = 4096;

/// The known facts about a bio in flight.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub op: Op,
    pub task: Option<u32>,
    pub bytes: u64,
    pub queued_ns: u64,
    pub getrq_ns: Option<u64>,
    pub inserted_ns: Option<u64>,
    pub issued_ns: Option<u64>,
}

#[derive(Default)]
struct Kind {
    n: u64,
    bytes: u64,
    sync: u64,
    latency: Latency,
    service: Latency,
}

#[derive(Default)]
struct Phases {
    q2q: Latency,
    q2g: Latency,
    g2i: Latency,
    q2i: Latency,
    q2m: Latency,
    i2d: Latency,
    m2d: Latency,
    g2d: Latency,
    q2d: Latency,
    d2c: Latency,
    q2c: Latency,
}

/// The current queue depths.
#[derive(Default)]
struct Now {
    t_ns: u64,
    waiting: u64,
    /// Number of waiting bios that are not merged into another.
    requests: u64,
    in_device: u64,
    waiting_sum: u128,
    in_device_sum: u128,
    busy_ns: u64,
    waiting_max: u64,
    in_device_max: u64,
    at_queue: u64,
}

/// All counters of the survey.
#[derive(Default)]
pub(super) struct Sums {
    phases: Phases,
    kinds: BTreeMap<&'static str, Kind>,
    merges: Merges,
    sizes: BTreeMap<u64, SizeClass>,
    queued: SeekSum,
    issued: SeekSum,
    now: Now,
    last_queued: Option<u64>,
    devices: BTreeMap<u32, u64>,
    pub tasks: TaskSum,
    pub course: CourseSum,
    pub heat: HeatSum,
}

fn kind(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::WriteZeroes => "write zeroes",
    }
}

impl Sums {
    /// Advances the time to `t_ns`.
    fn until(&mut self, t_ns: u64) {
        let now = &mut self.now;
        let ns = u128::from(t_ns.saturating_sub(now.t_ns));
        now.waiting_sum += ns * u128::from(now.waiting);
        now.in_device_sum += ns * u128::from(now.in_device);
        if now.in_device > 0 {
            now.busy_ns += ns as u64;
        }
        self.course
            .depth(now.t_ns, t_ns, now.waiting, now.in_device);
        now.t_ns = now.t_ns.max(t_ns);
    }

    /// Returns the time of the last event.
    pub fn last_ns(&self) -> u64 {
        self.now.t_ns
    }

    fn class(&mut self, bytes: u64) -> &mut SizeClass {
        let bound = bytes.next_power_of_two().max(SMALLEST);
        let class = self.sizes.entry(bound).or_default();
        class.bytes = bound;
        class
    }

    /// Counts a bio that arrives.
    pub fn queued(&mut self, e: &BlkEvent) -> Known {
        self.until(e.t_ns);
        let bytes = u64::from(e.sectors) * SECTOR_BYTES;
        let read = e.op == Op::Read;
        if let Some(last) = self.last_queued.replace(e.t_ns) {
            self.phases.q2q.record(e.t_ns.saturating_sub(last));
        }
        let sync = read || e.flags.contains(Flags::SYNC);
        let of = self.kinds.entry(kind(e.op)).or_default();
        (of.n, of.bytes) = (of.n + 1, of.bytes + bytes);
        of.sync += u64::from(sync);
        self.merges.queued += 1;
        let class = self.class(bytes);
        match read {
            true => class.reads += 1,
            false => class.writes += 1,
        }
        let task = (e.task != u32::MAX).then_some(e.task);
        self.queued.add(e.device, e.sector, u64::from(e.sectors));
        self.heat.add(e.t_ns, e.sector, read);
        self.tasks
            .queued(task, e.device, e.op, e.sector, u64::from(e.sectors));
        if self.devices.len() < DEVICES_MAX || self.devices.contains_key(&e.device) {
            *self.devices.entry(e.device).or_insert(0) += 1;
        }
        let now = &mut self.now;
        now.at_queue += now.requests;
        now.requests += 1;
        now.waiting += 1;
        now.waiting_max = now.waiting_max.max(now.waiting);
        Known {
            op: e.op,
            task,
            bytes,
            queued_ns: e.t_ns,
            getrq_ns: None,
            inserted_ns: None,
            issued_ns: None,
        }
    }

    /// Counts the allocation of a request for a bio.
    pub fn got(&mut self, known: &mut Known, t_ns: u64) {
        self.until(t_ns);
        known.getrq_ns = Some(t_ns);
        self.phases.q2g.record(t_ns.saturating_sub(known.queued_ns));
    }

    /// Counts the insertion of a bio into the scheduler.
    pub fn inserted(&mut self, known: &mut Known, t_ns: u64) {
        self.until(t_ns);
        known.inserted_ns = Some(t_ns);
        match known.getrq_ns {
            Some(g) => self.phases.g2i.record(t_ns.saturating_sub(g)),
            None => self.phases.q2i.record(t_ns.saturating_sub(known.queued_ns)),
        }
    }

    /// Counts the merge of a bio into a waiting request.
    pub fn merged(&mut self, known: &Known, t_ns: u64, front: bool) {
        self.until(t_ns);
        self.now.requests = self.now.requests.saturating_sub(1);
        self.phases.q2m.record(t_ns.saturating_sub(known.queued_ns));
        match front {
            true => self.merges.front += 1,
            false => self.merges.back += 1,
        }
        self.tasks.merged(known.task);
    }

    /// Counts the issue of a bio to the driver. `queue` is true if the queue time of the bio is
    /// known.
    pub fn issued(&mut self, known: &mut Known, merged_ns: Option<u64>, t_ns: u64, queue: bool) {
        self.until(t_ns);
        known.issued_ns = Some(t_ns);
        let p = &mut self.phases;
        let (phase, since) = match (known.inserted_ns, merged_ns, known.getrq_ns) {
            (Some(i), _, _) => (&mut p.i2d, i),
            (_, Some(m), _) => (&mut p.m2d, m),
            (_, _, Some(g)) => (&mut p.g2d, g),
            _ => (&mut p.q2d, known.queued_ns),
        };
        if queue {
            phase.record(t_ns.saturating_sub(since));
        }
        let now = &mut self.now;
        now.waiting = now.waiting.saturating_sub(1);
        if merged_ns.is_none() {
            now.requests = now.requests.saturating_sub(1);
        }
    }

    /// Counts the issue of a request to the driver.
    pub fn request(&mut self, e: &BlkEvent) {
        let sectors = u64::from(e.sectors);
        self.class(sectors * SECTOR_BYTES).issued += 1;
        self.issued.add(e.device, e.sector, sectors);
        let m = &mut self.merges;
        m.issued_min = match m.issued {
            0 => sectors,
            _ => m.issued_min.min(sectors),
        };
        m.issued += 1;
        m.issued_sectors += sectors;
        m.issued_max = m.issued_max.max(sectors);
        let now = &mut self.now;
        now.in_device += 1;
        now.in_device_max = now.in_device_max.max(now.in_device);
    }

    /// Counts a bio of a requeued request, which the driver returned.
    pub fn taken_back(&mut self, known: &mut Known, t_ns: u64) {
        self.until(t_ns);
        known.issued_ns = None;
        self.now.waiting += 1;
    }

    /// Counts a requeued request, which the driver returned.
    pub fn requeued(&mut self, t_ns: u64) {
        self.until(t_ns);
        self.merges.requeued += 1;
        self.now.in_device = self.now.in_device.saturating_sub(1);
    }

    fn gone(&mut self, known: &Known, was_last: bool) {
        match known.issued_ns {
            Some(_) if was_last => self.now.in_device = self.now.in_device.saturating_sub(1),
            Some(_) => {}
            None => {
                self.now.waiting = self.now.waiting.saturating_sub(1);
                self.now.requests = self.now.requests.saturating_sub(1);
            }
        }
    }

    /// Counts the completion of a bio. `was_last` is true if its request is then also complete.
    pub fn completed(&mut self, known: &Known, t_ns: u64, was_last: bool) {
        self.until(t_ns);
        self.gone(known, was_last);
        let took = t_ns.saturating_sub(known.queued_ns);
        self.phases.q2c.record(took);
        let of = self.kinds.entry(kind(known.op)).or_default();
        of.latency.record(took);
        if let Some(d) = known.issued_ns {
            self.phases.d2c.record(t_ns.saturating_sub(d));
            of.service.record(t_ns.saturating_sub(d));
        }
        self.tasks.completed(known.task, took);
        self.course.took(t_ns, took);
        self.course.moved(t_ns, known.op == Op::Read, known.bytes);
    }

    /// Counts a bio that has no further events.
    pub fn lost(&mut self, known: &Known, now_ns: u64, was_last: bool) {
        self.until(now_ns);
        self.gone(known, was_last);
        let read = known.op == Op::Read;
        self.course.moved(known.queued_ns, read, known.bytes);
    }

    /// Counts a queued flush.
    pub fn flush(&mut self, e: &BlkEvent) {
        self.until(e.t_ns);
        let of = self.kinds.entry(kind(Op::Flush)).or_default();
        (of.n, of.sync) = (of.n + 1, of.sync + 1);
    }

    /// Counts the completion of a flush.
    pub fn flushed(&mut self, task: u32, queued_ns: u64, t_ns: u64) {
        let took = t_ns.saturating_sub(queued_ns);
        let of = self.kinds.entry(kind(Op::Flush)).or_default();
        of.latency.record(took);
        self.tasks
            .completed((task != u32::MAX).then_some(task), took);
    }

    /// Returns the phases that occurred, in the order of the path of a bio. If `queued` is false,
    /// the trace has only issue times, and the paths begin at the driver.
    pub fn phases(&self, queued: bool) -> Vec<Phase> {
        let p = &self.phases;
        let whole = p.q2c.mean_ns() * p.q2c.count() as f64;
        let next = match queued {
            true => ("Q2Q", "between consecutive queued bios", &p.q2q, false),
            false => ("D2D", "between consecutive issued requests", &p.q2q, false),
        };
        let all = [
            next,
            ("Q2G", "from queueing to request allocation", &p.q2g, true),
            ("G2I", "from allocation to insertion", &p.g2i, true),
            ("Q2I", "from queueing to insertion", &p.q2i, true),
            ("Q2M", "from queueing to merging", &p.q2m, true),
            ("I2D", "from insertion to issue", &p.i2d, true),
            ("M2D", "from merging to issue", &p.m2d, true),
            ("G2D", "from allocation to issue", &p.g2d, true),
            ("Q2D", "from queueing to issue", &p.q2d, true),
            ("D2C", "from issue to completion", &p.d2c, queued),
            ("Q2C", "from queueing to completion", &p.q2c, false),
        ];
        let met = all
            .into_iter()
            .filter(|a| a.2.count() > 0 && (queued || a.0 != "Q2C"));
        met.map(|(name, about, latency, part)| Phase {
            name,
            about,
            spread: Spread::from(latency),
            share: (part && whole > 0.0)
                .then(|| latency.mean_ns() * latency.count() as f64 / whole),
        })
        .collect()
    }

    pub fn kinds(&self) -> Vec<KindPart> {
        let spread = |l: &Latency| (l.count() > 0).then(|| Spread::from(l));
        let order = ["read", "write", "write zeroes", "discard", "flush"];
        let of = |name: &&'static str| {
            let k = self.kinds.get(name)?;
            Some(KindPart {
                kind: (*name).to_owned(),
                n: k.n,
                bytes: k.bytes,
                sync: k.sync,
                latency: spread(&k.latency),
                service: spread(&k.service),
            })
        };
        order.iter().filter_map(of).filter(|k| k.n > 0).collect()
    }

    pub fn merges(&self) -> Merges {
        let m = self.merges;
        Merges {
            issued_mean: m.issued_sectors as f64 / m.issued.max(1) as f64,
            ..m
        }
    }

    pub fn sizes(&self) -> Vec<SizeClass> {
        self.sizes.values().copied().collect()
    }

    pub fn seeks(&self) -> (Seeks, Option<Seeks>) {
        let issued = (!self.issued.is_empty()).then(|| self.issued.done());
        (self.queued.done(), issued)
    }

    pub fn depth(&self) -> Depth {
        let now = &self.now;
        let told = self.merges.issued > 0;
        let span = now.t_ns.max(1) as f64;
        Depth {
            at_queue: now.at_queue as f64 / self.merges.queued.max(1) as f64,
            waiting: now.waiting_sum as f64 / span,
            waiting_max: now.waiting_max,
            in_device: told.then(|| now.in_device_sum as f64 / span),
            in_device_max: now.in_device_max,
            busy: told.then(|| now.busy_ns as f64 / span),
        }
    }

    /// Returns the devices with their numbers of requests; the device with the most requests is
    /// first.
    pub fn devices(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<(u32, u64)> = self.devices.iter().map(|(d, n)| (*d, *n)).collect();
        all.sort_by_key(|(d, n)| (std::cmp::Reverse(*n), *d));
        all
    }
}
