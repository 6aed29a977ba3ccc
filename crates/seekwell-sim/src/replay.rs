//! Replays recorded traces on a modelled device.
//!
//! In the modes "as timed" and "scaled", records are submitted at given times (open loop). If the
//! device is too slow for them, the latencies show the length of the queue, and the record contains
//! a warning. With a fixed queue depth, the order of the records is kept and their times are
//! ignored. In a closed loop, the think times are kept, and each process waits for the same
//! requests as in the recording. A closed loop reads up to 65,536 records ahead. After a longer
//! pause, a process may therefore start its next record late, but never early.

use crate::drive::{Progress, RunError, Source, Submission};
use crate::lacks::{Known, lacks};
use crate::setup::{Setup, SetupError};
use crate::told::{Told, Watch};
use seekwell_core::result::Record as RunRecord;
use seekwell_core::{
    Bio, BioSink, Control, Instant, IoPrio, NSEC_PER_SEC, Nanos, Op, Sector, TaskId,
};
use seekwell_trace::{ClosedLoop, Reader, Record, ReplayMode, Step, TIME_MAX_NS, TraceError};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Treatment of addresses beyond the end of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fit {
    /// Stop with an error.
    #[default]
    Strict,
    /// Fold the addresses: the sector is taken modulo the size of the device.
    Wrap,
}

/// Options of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// Timing of the records.
    pub mode: ReplayMode,
    /// Treatment of addresses beyond the device.
    pub fit: Fit,
    /// Number of records after which the replay stops.
    pub limit: Option<u64>,
    /// Simulated time after which the replay stops. By default, a replay ends with its trace.
    pub time_limit: Option<Nanos>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            mode: ReplayMode::AsTimed,
            fit: Fit::Strict,
            limit: None,
            time_limit: None,
        }
    }
}

/// The reason why a replay has no result.
#[derive(Error, Debug)]
pub enum ReplayError {
    /// The setup is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The trace is invalid.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The caller's progress function stopped the replay. Contains the results up to that time.
    #[error("stopped after {:.3} s of the replay", .0.duration_ns as f64 / 1e9)]
    Stopped(Box<RunRecord>),
    /// The replay reached its limit in simulated time. Contains the results up to that time.
    #[error("stopped at the time limit of {} s", .1.as_secs_f64())]
    AtLimit(Box<RunRecord>, Nanos),
}

/// Length of the largest bio in sectors. A bio stores its length in bytes in 32 bits.
const BIO_MAX: u64 = u32::MAX as u64 / 512;
/// Largest number of records waiting or ready in a closed loop.
const WINDOW: usize = 65_536;
/// A process counts as active to the end if its last record is in the last 1/`ACTIVE` of the time
/// of the trace.
const ACTIVE: u64 = 20;
/// Number of completions that a closed loop stores.
const REMEMBER: usize = 1 << 20;

/// Converts records of a trace into bios that fit on the device.
struct Placer {
    capacity: u64,
    fit: Fit,
    count: u64,
    limit: u64,
    folded: u64,
    known: Known,
    /// The I/O priorities that the queue was told, by task.
    prios: BTreeMap<TaskId, IoPrio>,
}

impl Placer {
    fn place(&mut self, r: &Record) -> Result<Bio, RunError> {
        self.count += 1;
        let n = u64::from(r.sectors.0);
        let mut sector = r.sector.0;
        if n > BIO_MAX && matches!(r.op, Op::Read | Op::Write) {
            return Err(RunError::Long {
                record: self.count,
                sectors: r.sectors.0,
            });
        }
        if n > 0 && sector.saturating_add(n) > self.capacity {
            if self.fit == Fit::Strict || n > self.capacity {
                return Err(RunError::Beyond {
                    record: self.count,
                    first: sector,
                    end: sector.saturating_add(n),
                    capacity: self.capacity,
                    folds: self.fit == Fit::Wrap,
                });
            }
            sector = (sector % self.capacity).min(self.capacity - n);
            self.folded += 1;
        }
        self.known.tasks |= r.task.is_some();
        self.known.prios |= r.ioprio.is_some();
        let task = r.task.unwrap_or(TaskId(0));
        let mut bio = Bio::new(0, task, r.op, r.flags, 0, r.sectors.0);
        bio.sector = Sector(sector);
        bio.ioprio = r.ioprio;
        bio.cgroup = r.cgroup;
        // If a trace has no CPU numbers, each task stays on one CPU.
        bio.cpu = r.cpu.unwrap_or(task.0 as u16);
        Ok(bio)
    }
    /// Returns the control message that must precede a bio, if the priority of its task changed.
    fn priority_change(&mut self, bio: &Bio) -> Option<Control> {
        let prio = bio.ioprio?;
        // BE 4 is the default priority of a task.
        let known = self.prios.get(&bio.task).copied();
        if known.unwrap_or(IoPrio::be(4)) == prio {
            return None;
        }
        self.prios.insert(bio.task, prio);
        Some(Control::Prio(bio.task, prio))
    }
    fn more(&self) -> bool {
        self.count < self.limit
    }
    /// Returns progress and total in records or in bytes of the file, whichever is further
    /// advanced.
    fn far(&self, reader: &Reader) -> Option<(u64, u64)> {
        let records = (self.limit < u64::MAX).then_some((self.count, self.limit.max(1)));
        let further = |a: &(u64, u64), b: &(u64, u64)| {
            (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
        };
        records.into_iter().chain(reader.far()).max_by(further)
    }
}

/// The source for the modes timed, scaled and fixed depth: records are submitted in order.
struct InOrder<'a> {
    reader: &'a mut Reader,
    placer: Placer,
    mode: ReplayMode,
    ahead: Option<(Instant, Bio)>,
    now: Instant,
    in_flight: u32,
    depth: u32,
    last_ns: u64,
    over: bool,
}

impl InOrder<'_> {
    fn read(&mut self) -> Result<(), RunError> {
        if self.ahead.is_some() || self.over {
            return Ok(());
        }
        let next = if self.placer.more() {
            self.reader.next()
        } else {
            None
        };
        match next {
            None => self.over = true,
            Some(r) => {
                let r = r?;
                let bio = self.placer.place(&r)?;
                self.last_ns = r.t_ns;
                let due = self.mode.due_ns(&r);
                if let Some(due_ns) = due.filter(|d| *d > TIME_MAX_NS) {
                    return Err(RunError::Late {
                        record: self.placer.count,
                        due_s: due_ns / NSEC_PER_SEC,
                    });
                }
                let due = due.map(Instant::at_ns);
                self.ahead = Some((due.unwrap_or(self.now), bio));
            }
        }
        Ok(())
    }
}

impl Source for InOrder<'_> {
    fn next(&mut self) -> Result<Option<Instant>, RunError> {
        if self.in_flight >= self.depth {
            return Ok(None);
        }
        self.read()?;
        // With a fixed depth, a record is due as soon as fewer requests than that are in progress.
        Ok(self.ahead.map(|a| a.0.max(self.now)))
    }
    fn take(&mut self) -> Submission {
        let (due, bio) = self.ahead.expect("next() announced it");
        self.now = self.now.max(due);
        if let Some(told) = self.placer.priority_change(&bio) {
            return Submission::Control(told);
        }
        self.ahead = None;
        self.in_flight += u32::from(self.depth != u32::MAX);
        Submission::Bio(bio, 0)
    }
    fn done(&mut self, _: u64, at: Instant) {
        if self.depth != u32::MAX {
            self.in_flight -= 1;
            self.now = self.now.max(at);
        }
    }
    fn far(&self) -> Option<(u64, u64)> {
        self.placer.far(self.reader)
    }
}

/// The source for the closed loop.
struct Closed {
    steps: ClosedLoop<Reader>,
    placer: Placer,
    ready: BTreeSet<(Instant, u64)>,
    bios: BTreeMap<u64, Bio>,
    waiting: BTreeMap<u64, Vec<(u64, u64)>>,
    completed: BTreeMap<u64, Instant>,
    /// Records that were submitted and have not completed.
    flying: BTreeSet<u64>,
    /// The I/Os left of each process that was active to the end of the trace, in the mode steady.
    left: Option<BTreeMap<TaskId, u64>>,
    /// Time of the last record of each process.
    last_ns: BTreeMap<TaskId, u64>,
    mode: ReplayMode,
    now: Instant,
    over: bool,
}

impl Closed {
    fn read(&mut self) -> Result<(), RunError> {
        while !self.over && self.bios.len() < WINDOW {
            let next = if self.placer.more() {
                self.steps.next()
            } else {
                None
            };
            let Some(step) = next else {
                self.over = true;
                self.count_left();
                break;
            };
            let step = step?;
            let bio = self.placer.place(&step.record)?;
            self.last_ns.insert(step.task, step.record.t_ns);
            self.bios.insert(step.index, bio);
            self.schedule(&step);
        }
        Ok(())
    }
    /// Counts the I/Os left at the end of the trace.
    fn count_left(&mut self) {
        if self.mode != ReplayMode::Steady {
            return;
        }
        let end_ns = self.last_ns.values().max().copied().unwrap_or(0);
        let active = |ns: u64| ns >= end_ns - end_ns / ACTIVE;
        let tasks = self.last_ns.iter().filter(|(_, ns)| active(**ns));
        let mut left: BTreeMap<TaskId, u64> = tasks.map(|(task, _)| (*task, 0)).collect();
        for bio in self.bios.values() {
            if let Some(n) = left.get_mut(&bio.task) {
                *n += 1;
            }
        }
        self.left = Some(left);
    }
    fn schedule(&mut self, s: &Step) {
        let Some(k) = s.after else {
            self.ready.insert((Instant::at_ns(s.think_ns), s.index));
            return;
        };
        if let Some(at) = self.completed.get(&k) {
            self.ready.insert((*at + Nanos(s.think_ns), s.index));
        } else if self.bios.contains_key(&k) || self.flying.contains(&k) {
            self.waiting
                .entry(k)
                .or_default()
                .push((s.think_ns, s.index));
        } else {
            // The predecessor completed so long ago that its completion is not stored.
            self.ready.insert((self.now, s.index));
        }
    }
}

impl Source for Closed {
    fn next(&mut self) -> Result<Option<Instant>, RunError> {
        self.read()?;
        if self.left.iter().flatten().any(|(_, n)| *n == 0) {
            // The I/Os in flight still complete.
            self.ready.clear();
            self.waiting.clear();
        }
        Ok(self.ready.first().map(|r| r.0.max(self.now)))
    }
    fn take(&mut self) -> Submission {
        let &(due, index) = self.ready.first().expect("next() announced it");
        self.now = self.now.max(due);
        let bio = self.bios[&index];
        if let Some(told) = self.placer.priority_change(&bio) {
            return Submission::Control(told);
        }
        self.ready.pop_first();
        self.bios.remove(&index);
        if let Some(n) = self.left.as_mut().and_then(|l| l.get_mut(&bio.task)) {
            *n -= 1;
        }
        self.flying.insert(index);
        Submission::Bio(bio, index)
    }
    fn done(&mut self, token: u64, at: Instant) {
        self.now = self.now.max(at);
        self.flying.remove(&token);
        for (think_ns, index) in self.waiting.remove(&token).unwrap_or_default() {
            self.ready.insert((at + Nanos(think_ns), index));
        }
        self.completed.insert(token, at);
        if self.completed.len() > REMEMBER {
            self.completed.pop_first();
        }
    }
    fn far(&self) -> Option<(u64, u64)> {
        self.placer.far(self.steps.inner())
    }
}

/// Replays a trace on a setup. Returns [`ReplayError::Stopped`] if `progress` stops the replay.
pub fn replay(
    setup: &Setup,
    reader: Reader,
    opts: &ReplayOptions,
    progress: Progress<'_>,
) -> Result<RunRecord, ReplayError> {
    replay_watched(setup, reader, opts, progress, None)
}

/// Does the same as [`replay`], and passes every event of the block layer to `watch`, in time
/// order.
pub fn replay_watched(
    setup: &Setup,
    mut reader: Reader,
    opts: &ReplayOptions,
    progress: Progress<'_>,
    watch: Option<Watch>,
) -> Result<RunRecord, ReplayError> {
    let mut queue = Told::new(setup.build()?, watch);
    let name = reader.name().to_owned();
    opts.mode.check(reader.format(), &name)?;
    let mut r = setup.record("replay");
    r.params.insert("trace".to_owned(), name.clone());
    r.params
        .insert("format".to_owned(), reader.format().name.to_owned());
    r.params.insert("mode".to_owned(), opts.mode.to_string());
    let placer = Placer {
        capacity: queue.capacity().0,
        fit: opts.fit,
        count: 0,
        limit: opts.limit.unwrap_or(u64::MAX),
        folded: 0,
        known: Known::default(),
        prios: BTreeMap::new(),
    };
    let format = reader.format();
    let (count, folded, known, last_ns, mut warnings, names, stopped);
    if opts.mode.is_closed() {
        let mut source = Closed {
            steps: ClosedLoop::from_reader(reader)?,
            placer,
            ready: BTreeSet::new(),
            bios: BTreeMap::new(),
            waiting: BTreeMap::new(),
            completed: BTreeMap::new(),
            flying: BTreeSet::new(),
            left: None,
            last_ns: BTreeMap::new(),
            mode: opts.mode,
            now: Instant::START,
            over: false,
        };
        stopped = halted(queue.drive(&mut source, &mut r, opts.time_limit, progress))?;
        let inner = source.steps.inner();
        (warnings, names) = (inner.warnings(), inner.tasks().cloned());
        let p = &source.placer;
        (count, folded, known, last_ns) = (p.count, p.folded, p.known, None);
    } else {
        let depth = match opts.mode {
            ReplayMode::FixedDepth(n) => n.get(),
            _ => u32::MAX,
        };
        let mut source = InOrder {
            reader: &mut reader,
            placer,
            mode: opts.mode,
            ahead: None,
            now: Instant::START,
            in_flight: 0,
            depth,
            last_ns: 0,
            over: false,
        };
        stopped = halted(queue.drive(&mut source, &mut r, opts.time_limit, progress))?;
        let timed = depth == u32::MAX;
        let p = &source.placer;
        (count, folded, known) = (p.count, p.folded, p.known);
        last_ns = timed.then_some(source.last_ns);
        (warnings, names) = (reader.warnings(), reader.tasks().cloned());
    }
    if count == 0 {
        let why = warnings.iter().map(|w| format!("; {w}"));
        let why: String = why.collect();
        return Err(RunError::Unusable(format!("no record to replay{why}")).into());
    }
    queue.queue.fill(&mut r);
    let named_task = |t: seekwell_core::TaskId| names.as_ref()?.get(&t.0).cloned();
    queue.over(Instant::START + Nanos(r.duration_ns), &named_task);
    if let Some(last_ns) = last_ns.filter(|_| stopped == Halted::No) {
        overload_warning(&mut r, opts.mode, last_ns);
    }
    if folded > 0 {
        warnings.push(format!(
            "{folded} records were beyond the end of the device and were folded"
        ));
    }
    r.warnings.extend(lacks(setup, format, known));
    r.warnings.append(&mut warnings);
    for p in &mut r.processes {
        if let Some(n) = names.as_ref().and_then(|n| n.get(&p.task)) {
            p.name = n.clone();
        }
    }
    match stopped {
        Halted::No => Ok(r),
        Halted::Told => Err(ReplayError::Stopped(Box::new(r))),
        Halted::AtLimit(limit) => Err(ReplayError::AtLimit(Box::new(r), limit)),
    }
}

/// The way in which a run with a record ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halted {
    /// It ended normally.
    No,
    /// The progress function stopped it.
    Told,
    /// It reached its time limit.
    AtLimit(Nanos),
}

fn halted(ran: Result<(), RunError>) -> Result<Halted, RunError> {
    match ran {
        Ok(()) => Ok(Halted::No),
        Err(RunError::Stopped(_)) => Ok(Halted::Told),
        Err(RunError::AtLimit(limit)) => Ok(Halted::AtLimit(limit)),
        Err(e) => Err(e),
    }
}

/// Adds a warning if the device cannot keep up with an open loop. The result then measures the
/// queue.
fn overload_warning(r: &mut RunRecord, mode: ReplayMode, last_ns: u64) {
    let scaled = match mode {
        ReplayMode::Scaled(f) => f.apply(last_ns),
        _ => last_ns,
    };
    let behind = r.duration_ns.saturating_sub(scaled);
    if behind > scaled / 20 + 100_000_000 {
        r.warnings.push(format!(
            "the device fell {:.1} s behind the recorded times: latencies show the length of the \
             queue instead of the scheduler; try --mode depth:N",
            behind as f64 / 1e9
        ));
    }
}
