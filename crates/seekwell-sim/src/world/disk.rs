//! The part below the modelled kernel: the block layer's queue, a meter that counts the bios, and
//! the modelled drive. The drive can be used for several runs.

use super::interval::{Interval, Way};
use crate::meter::{Meter, Out};
use crate::setup::{Queue, Setup, SetupError, tree};
use seekwell_block::QueueStats;
use seekwell_core::result::{Direction, Record};
use seekwell_core::{
    Accept, Bio, BioDone, BioId, BioSink, Command, Control, Device, DeviceFacts, DeviceStats, Done,
    Instant, Nanos, Op, SchedulerWork, Sector, Sectors, Snapshot, Tap, TaskId,
};
use seekwell_device::Constant;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type AnyDevice = Box<dyn Device + Send>;

/// A modelled drive that keeps its state from run to run. Its clock never goes back.
///
/// An md array keeps no state between runs, because each run builds a new array.
pub struct Drive {
    inner: Arc<Mutex<Inner>>,
    facts: DeviceFacts,
    array: bool,
}

struct Inner {
    device: AnyDevice,
    /// Present time of the drive's own clock.
    clock: Instant,
    /// Difference between the drive's clock and the clock of the run.
    shift: Nanos,
    /// Counters at the start of the run.
    before: DeviceStats,
    /// Number of commands that the drive has not completed.
    inside: u32,
}

fn open(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    // One thread uses the drive at a time. The lock is needed only because the drive is shared.
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drive {
    /// Creates the drive that the setup names.
    pub fn open(setup: &Setup) -> Result<Self, SetupError> {
        setup.validate()?;
        if tree::is_array(&setup.device)? {
            // Each run builds a new array with its queues. This array only provides the facts.
            let facts = setup.build()?.device_facts().clone();
            let mut drive = Drive::new(Box::new(Constant::serial(1, Nanos::ZERO)));
            (drive.facts, drive.array) = (facts, true);
            return Ok(drive);
        }
        let device = setup.open_device()?;
        Ok(Drive::new(device))
    }
    /// Creates a drive from a fresh device.
    pub fn new(device: AnyDevice) -> Self {
        Drive {
            facts: device.facts().clone(),
            array: false,
            inner: Arc::new(Mutex::new(Inner {
                device,
                clock: Instant::START,
                shift: Nanos::ZERO,
                before: DeviceStats::default(),
                inside: 0,
            })),
        }
    }
    /// Returns the facts about the drive that a host can read.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    /// Returns the counters since the drive was new.
    pub fn stats(&self) -> DeviceStats {
        open(&self.inner).device.stats()
    }
    /// Returns the age of the drive: the total time of its runs and pauses.
    pub fn age(&self) -> Nanos {
        open(&self.inner).clock.since(Instant::START)
    }
    /// Lets time pass between two runs. The drive may do housekeeping in this time.
    pub fn rest(&mut self, d: Nanos) {
        let mut i = open(&self.inner);
        let to = i.clock + d;
        i.run_to(to);
    }
    /// Discards everything on the drive in commands of 8 MiB, as mkfs and blkdiscard do. The
    /// commands take time on the drive.
    pub fn trim(&mut self) {
        let mut i = open(&self.inner);
        let (capacity, mut at) = (self.facts.capacity.0, 0);
        while at < capacity {
            let n = (capacity - at).min(TRIM_SECTORS);
            i.do_one(Command {
                id: 0,
                op: Op::Discard,
                sector: Sector(at),
                sectors: Sectors(n as u32),
                fua: false,
            });
            at += n;
        }
    }
    /// Returns whether the device is an array, which is built again for each run.
    pub fn is_array(&self) -> bool {
        self.array
    }
    /// Creates a queue for the drive. The clock of the queue starts at [`Instant::START`].
    pub(super) fn queue(&mut self, setup: &Setup) -> Result<Queue, SetupError> {
        let mut i = open(&self.inner);
        i.shift = i.clock.since(Instant::START);
        i.before = i.device.stats();
        // The listener of the previous run must not receive the events of this run.
        i.device.listen(None);
        drop(i);
        if self.array {
            return setup.build();
        }
        let next = open(&self.inner).next();
        setup.build_over(Box::new(Lent {
            inner: Arc::clone(&self.inner),
            facts: self.facts.clone(),
            next,
        }))
    }
    /// Ends a run of this duration. Completes the requests that are still in the drive.
    pub(super) fn settle(&mut self, duration: Nanos) {
        let mut i = open(&self.inner);
        i.clock = i.clock.max(Instant::START + i.shift + duration);
        let mut out = Vec::new();
        while i.inside > 0 {
            let Some(t) = i.device.next_event() else {
                break;
            };
            i.clock = i.clock.max(t);
            i.device.advance(t, &mut out);
            i.inside = i.inside.saturating_sub(out.len() as u32);
            out.clear();
        }
        i.inside = 0;
    }
}

/// Sectors per discard command of [`Drive::trim`].
const TRIM_SECTORS: u64 = 16_384;

impl Inner {
    /// Executes a single command. Skips a command that the device rejects.
    fn do_one(&mut self, command: Command) {
        let mut out = Vec::new();
        if self.device.accept(self.clock, command) != Accept::Accepted {
            return;
        }
        while out.is_empty() {
            let Some(t) = self.device.next_event() else {
                return;
            };
            self.clock = self.clock.max(t);
            self.device.advance(t, &mut out);
        }
    }
    /// Returns the time of the drive's next event, on the clock of the run.
    fn next(&self) -> Option<Instant> {
        let t = self.device.next_event()?;
        Some(Instant(t.0 - self.shift.0))
    }
    fn run_to(&mut self, to: Instant) {
        let mut out = Vec::new();
        while let Some(t) = self.device.next_event().filter(|t| *t <= to) {
            self.device.advance(t, &mut out);
        }
        self.device.advance(to, &mut out);
        self.clock = to;
    }
}

/// The drive as the queue of one run uses it.
struct Lent {
    inner: Arc<Mutex<Inner>>,
    facts: DeviceFacts,
    /// Time of the drive's next event. During a run, it changes only with the calls of this object.
    next: Option<Instant>,
}

impl Device for Lent {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        let mut i = open(&self.inner);
        i.clock = i.clock.max(now + i.shift);
        let at = i.clock;
        let answer = i.device.accept(at, command);
        i.inside += u32::from(answer == Accept::Accepted);
        self.next = i.next();
        answer
    }
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        let mut i = open(&self.inner);
        i.clock = i.clock.max(now + i.shift);
        let at = i.clock;
        let answer = i.device.accept_packed(at, group);
        if answer == Accept::Accepted {
            i.inside += group.len() as u32;
        }
        self.next = i.next();
        answer
    }
    fn next_event(&self) -> Option<Instant> {
        self.next
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        let mut i = open(&self.inner);
        let to = to + i.shift;
        let before = out.len();
        i.device.advance(to, out);
        i.clock = i.clock.max(to);
        for d in &mut out[before..] {
            i.inside -= 1;
            d.at = Instant(d.at.0 - i.shift.0);
        }
        self.next = i.next();
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        let i = open(&self.inner);
        let (n, b) = (i.device.stats(), i.before);
        DeviceStats {
            busy: Nanos(n.busy.0 - b.busy.0),
            cache_hits: n.cache_hits - b.cache_hits,
            media_ops: n.media_ops - b.media_ops,
            seek_sectors: n.seek_sectors - b.seek_sectors,
            seeks: n.seeks - b.seeks,
            seek_time: Nanos(n.seek_time.0 - b.seek_time.0),
            rotation_time: Nanos(n.rotation_time.0 - b.rotation_time.0),
            internal_bytes: n.internal_bytes - b.internal_bytes,
        }
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let mut i = open(&self.inner);
        let at = now + i.shift;
        let done = i.device.stop(at, id);
        i.inside -= u32::from(done.is_some());
        self.next = i.next();
        done
    }
    fn state(&self, out: &mut String) {
        open(&self.inner).device.state(out);
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        let mut i = open(&self.inner);
        // The drive writes events with the times of its own clock, so they must be shifted.
        let own = tap.map(|t| t.behind(i.shift));
        i.device.listen(own.as_ref());
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        let (i, before) = (open(&self.inner), out.len());
        i.device.snapshot(now + i.shift, out);
        for s in &mut out[before..] {
            s.t -= i.shift.0;
            s.timers.iter_mut().for_each(|t| t.until -= i.shift.0);
        }
    }
}

/// A queue that counts the bios that enter and leave it.
pub(super) struct Counted {
    queue: Queue,
    record: Record,
    meter: Meter,
    /// Time at which the workload's clock started. Earlier counts are discarded at that time.
    started: Option<Instant>,
    /// Counters at the time when the clock started.
    before: Counters,
    /// Counters at the time when the clock stopped. Later completions go only into the time series.
    stopped: Option<Counters>,
    /// Counters at the end of the previous interval ([`super::Interval`]).
    lap: Counters,
    ear: Option<Ear>,
}

/// Counters of the queue and the device, and the integral of outstanding bios.
#[derive(Clone, Default)]
struct Counters {
    queue: QueueStats,
    busy: Nanos,
    area: u128,
}

use crate::told::Ear;
pub use crate::told::Watch;

/// The handle that the kernel uses. The run keeps another handle.
#[derive(Clone)]
pub(super) struct Handle(Rc<RefCell<Counted>>);

impl Handle {
    pub(super) fn new(mut queue: Queue, watch: Option<Watch>) -> Self {
        let ear = Ear::new(&mut queue, watch);
        Handle(Rc::new(RefCell::new(Counted {
            queue,
            record: Record::default(),
            meter: Meter::default(),
            started: None,
            before: Counters::default(),
            stopped: None,
            lap: Counters::default(),
            ear,
        })))
    }
    /// Starts the workload's clock. Earlier counts are excluded from the measurement.
    pub(super) fn clock_starts(&self, now: Instant) {
        let m = &mut *self.0.borrow_mut();
        m.before = m.counters(now);
        (m.started, m.stopped) = (Some(now), None);
        if let Some(ear) = &mut m.ear {
            ear.clock(now);
        }
        (m.record.read, m.record.write) = (Direction::default(), Direction::default());
        m.meter.counting = true;
        m.meter.forget();
    }
    /// Stops the workload's clock. Later counts are excluded from the measurement.
    pub(super) fn clock_stops(&self, now: Instant) {
        let m = &mut *self.0.borrow_mut();
        // If the clock never started, the whole run counts.
        if m.started.is_some() {
            m.stopped = Some(m.counters(now));
            m.meter.counting = false;
        }
    }
    /// Returns what happened since the previous call, and forgets it.
    pub(super) fn interval(&self, now: Instant, span: Nanos) -> Interval {
        let m = &mut *self.0.borrow_mut();
        let counters = m.counters(now);
        let before = std::mem::replace(&mut m.lap, counters);
        let [reads, writes] = m.meter.waiting();
        let way = |done: &mut Direction, waiting: u64| Way {
            done: std::mem::take(done),
            waiting,
        };
        Interval {
            span,
            read: way(&mut m.record.read, reads),
            write: way(&mut m.record.write, writes),
            busy: Nanos(m.lap.busy.0 - before.busy.0),
            outstanding_ns: m.lap.area - before.area,
        }
    }
    /// Starts a switch to the scheduler of another setup.
    pub(super) fn switch(&self, now: Instant, to: &Setup) -> Result<(), SetupError> {
        let m = &mut *self.0.borrow_mut();
        m.before(now);
        let switched = m.queue.switch(now, to);
        m.tell();
        switched
    }
    /// Adds the device, the scheduler and the limits of the queue to a record.
    pub(super) fn describe(&self, r: &mut Record) {
        self.0.borrow_mut().queue.fill(r);
    }
    /// Returns the number of block I/Os completed since the clock started. If the clock has not
    /// started, counts from the start of the run.
    pub(super) fn ios(&self) -> u64 {
        let m = self.0.borrow();
        m.record.read.ios + m.record.write.ios
    }
    /// Puts the counts into a record. The record defines which part of the run they cover. `names`
    /// returns the name of a task.
    pub(super) fn fill(&self, r: &mut Record, names: impl Fn(TaskId) -> String) {
        let mut m = self.0.borrow_mut();
        let end = Instant::START + Nanos(r.duration_ns);
        if let Some(ear) = &mut m.ear {
            ear.over(end, &|t| Some(names(t)));
        }
        let counted = std::mem::take(&mut m.record);
        (r.read, r.write, r.seconds) = (counted.read, counted.write, counted.seconds);
        r.outstanding_max = m.meter.peak;
        let after = m.stopped.take();
        let after = after.unwrap_or_else(|| m.counters(end));
        if r.span_ns() > 0 {
            r.outstanding_mean = (after.area - m.before.area) as f64 / r.span_ns() as f64;
        }
        r.processes = m.meter.processes(names);
        let (stats, busy) = (
            after.queue.since(&m.before.queue),
            Nanos(after.busy.0 - m.before.busy.0),
        );
        m.queue.fill_counted(r, &stats, busy);
    }
}

impl Counted {
    /// Takes a snapshot if the listener wants one. Called before something happens at time `at`.
    #[inline]
    fn before(&mut self, at: Instant) {
        if let Some(ear) = &mut self.ear {
            ear.before(&self.queue, at);
        }
    }
    /// Passes the events since the last call to the listener.
    #[inline]
    fn tell(&mut self) {
        if let Some(ear) = &mut self.ear {
            ear.tell();
        }
    }
    fn counters(&mut self, now: Instant) -> Counters {
        self.meter.change(now, self.meter.outstanding);
        Counters {
            queue: self.queue.stats_at(now),
            busy: self.queue.device_stats().busy,
            area: self.meter.area,
        }
    }
}

impl BioSink for Handle {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.submit_asked(now, now, bio);
    }
    fn submit_asked(&mut self, now: Instant, asked: Instant, bio: Bio) {
        let m = &mut *self.0.borrow_mut();
        let id = m.meter.came(Out {
            token: bio.id.0,
            asked,
            submitted: now,
            task: bio.task,
            write: bio.op.is_write(),
            bytes: bio.sectors.bytes(),
        });
        // The program requested the bio earlier. Time before the start of the clock does not count.
        let from = m.started.map_or(asked, |s| asked.max(s));
        m.meter.area += u128::from(now.since(from).0);
        m.before(now);
        m.queue.submit(now, Bio { id, ..bio });
        m.tell();
    }
    fn next_event(&self) -> Option<Instant> {
        self.0.borrow().queue.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        let m = &mut *self.0.borrow_mut();
        let before = out.len();
        m.before(to);
        m.queue.advance(to, out);
        m.tell();
        for d in &mut out[before..] {
            d.id = BioId(m.meter.ended(d, &mut m.record).token);
        }
    }
    fn control(&mut self, now: Instant, what: Control) {
        let m = &mut *self.0.borrow_mut();
        m.before(now);
        m.queue.control(now, what);
        m.tell();
    }
    fn capacity(&self) -> Sector {
        self.0.borrow().queue.capacity()
    }
    fn congested(&self, write: bool) -> bool {
        self.0.borrow().queue.congested(write)
    }
    fn waits(&self, task: TaskId) -> bool {
        self.0.borrow().queue.waits(task)
    }
    fn count_work(&mut self, counts: bool) {
        self.0.borrow_mut().queue.count_work(counts);
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        self.0.borrow_mut().queue.take_work()
    }
}
