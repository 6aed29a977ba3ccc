//! The model's thread. It takes arrivals from the inbox, runs the model to the current time, and
//! sends the replies that are due.

use crate::account::Account;
use crate::engine::Engine;
use crate::inbox::{Inbox, Reply, Request, Synced};
use crate::served::Served;
use crate::sys;
use crate::wait::Waiter;
use seekwell_core::{
    Bio, BioDone, BioId, BioSink, CgroupId, Control, Flags, Instant, IoPrio, Nanos, Op, TaskId,
};
use seekwell_trace::Record;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;

/// Completions that are due within this time are delivered together.
const BATCH: Nanos = Nanos(2_000);

/// An outstanding command.
struct Job<R> {
    request: Request<R>,
    /// Number of the command in order of arrival, for the log. `None` if the device does not get
    /// the command.
    number: Option<u64>,
    /// For a durable write: time at which the write completed and the flush began.
    written: Option<Instant>,
    backing: Backing,
    /// Set if the model has completed the command and fdatasync(2) has not returned yet.
    waiting: Option<Due>,
}

/// State of the fdatasync(2) call for a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backing {
    /// Not requested, or the data are in memory.
    None,
    /// In progress.
    UnderWay,
    /// The data are on the medium of the backing file.
    Kept,
    /// fdatasync(2) on the backing file failed.
    Failed,
}

/// A completion to be delivered.
struct Due {
    at: Instant,
    done: BioDone,
}

/// A completed command for the log: its number in order of arrival, and its record.
pub type Logged = (u64, Record);

/// The state of the model's thread.
pub struct Model<R> {
    engine: Engine<Box<dyn BioSink + Send>>,
    depth_max: Arc<AtomicU32>,
    inbox: Arc<Inbox<R>>,
    log: Option<Sender<Logged>>,
    sync: Option<Sender<u32>>,
    account: Account,
    jobs: Vec<Option<Job<R>>>,
    free: Vec<u32>,
    due: VecDeque<Due>,
    /// The priority of each task that the scheduler was last informed of.
    told: BTreeMap<TaskId, IoPrio>,
    floor: Nanos,
    arrived: u64,
    outstanding: u64,
    write_cache: bool,
}

impl<R: Reply> Model<R> {
    /// Returns the state for an idle disk. `sync` receives the numbers of jobs whose data must be
    /// made durable.
    pub fn new(
        disk: Served,
        inbox: Arc<Inbox<R>>,
        log: Option<Sender<Logged>>,
        sync: Option<Sender<u32>>,
        mut account: Account,
    ) -> Self {
        account.backed = sync.as_ref().map(|_| 0);
        Model {
            write_cache: disk.facts.write_cache,
            engine: Engine::new(disk.sink),
            depth_max: disk.depth_max,
            inbox,
            log,
            sync,
            floor: Nanos(account.floor_ns),
            account,
            jobs: Vec::new(),
            free: Vec::new(),
            due: VecDeque::new(),
            told: BTreeMap::new(),
            arrived: 0,
            outstanding: 0,
        }
    }

    /// Runs until the inbox is closed and all requests are answered.
    pub fn run(mut self, mut waiter: Waiter) -> Account {
        let steal = sys::steal_ticks();
        let switches = sys::involuntary_switches();
        let suspended = sys::suspended_ns();
        let (mut batch, mut synced, mut done) = (Vec::new(), Vec::new(), Vec::new());
        let clock = self.inbox.clock();
        loop {
            let (now, closed) = self.inbox.drain(&mut batch, &mut synced);
            for request in batch.drain(..) {
                self.arrive(request);
            }
            // The model runs ahead of the clock by the floor (see `Floor`).
            self.engine.run_to(now + self.floor, &mut done);
            for d in done.drain(..) {
                self.schedule(d);
            }
            let posting = clock.now();
            while self.due.front().is_some_and(|d| d.at <= posting + BATCH) {
                if let Some(d) = self.due.pop_front() {
                    self.post(d, clock.now());
                }
            }
            for s in synced.drain(..) {
                self.synced(s, clock.now());
            }
            if closed && self.outstanding == 0 {
                break;
            }
            let event = self.engine.next_event().map(|t| t_minus(t, self.floor));
            let due = self.due.front().map(|d| d.at);
            let until = event.into_iter().chain(due).min();
            // The model's internal work, such as writing back its cache, does not need precise
            // timing while no program waits. The loop cannot distinguish such events. Each one
            // costs one wake-up.
            waiter.wait(&self.inbox, until);
        }
        let a = &mut self.account;
        a.depth_max = self.depth_max.load(Ordering::Relaxed);
        (a.raised, a.raised_max_ns) = (self.engine.raised().0, self.engine.raised().1.0);
        a.overslept_max_ns = waiter.overslept.0;
        a.involuntary_switches = sys::involuntary_switches().saturating_sub(switches);
        a.steal_ticks = sys::steal_ticks()
            .zip(steal)
            .map(|(n, o)| n.saturating_sub(o));
        // Reading two clocks takes a short time. A suspension takes longer than this limit.
        a.suspended = sys::suspended_ns().saturating_sub(suspended) > 100_000_000;
        self.account
    }

    fn arrive(&mut self, request: Request<R>) {
        self.outstanding += 1;
        self.account.outstanding_max = self.account.outstanding_max.max(self.outstanding);
        let flush = request.op == Op::Flush;
        // If the device has no volatile cache, a flush has no effect in the device and is not
        // logged.
        let unseen = flush && !self.write_cache;
        let mut job = Job {
            request,
            number: (!unseen).then_some(self.arrived),
            written: None,
            backing: Backing::None,
            waiting: None,
        };
        self.arrived += u64::from(!unseen);
        self.account.owners.count(job.request.asker.owner);
        let id = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() as u32 - 1
        });
        if let Some(sync) = self.sync.as_ref().filter(|_| flush || job.request.durable) {
            // The receiving thread has already written the data that this flush covers to the
            // backing file.
            job.backing = match sync.send(id) {
                Ok(()) => Backing::UnderWay,
                Err(_) => Backing::Failed,
            };
        }
        let at = job.request.at;
        if unseen {
            let done = BioDone {
                id: BioId(u64::from(id)),
                at,
                error: false,
            };
            self.jobs[id as usize] = Some(job);
            return self.post(Due { at, done }, at);
        }
        let r = &job.request;
        // Direct I/O is synchronous. FUSE does not report which writes come from writeback.
        let flags = match r.op {
            Op::Write => Flags::SYNC,
            _ => Flags::empty(),
        };
        let (at, sector, n) = (r.at, r.sector.0, r.sectors.0);
        let task = TaskId(r.asker.pid);
        let bio = Bio::new(u64::from(id), task, r.op, flags, sector, n);
        let changed = r.asker.ioprio.filter(|p| self.prio(task) != *p);
        let told = changed.map(|p| {
            self.told.insert(task, p);
            Control::Prio(task, p)
        });
        self.engine.arrive_told(at, told, bio);
        self.jobs[id as usize] = Some(job);
    }

    /// Returns the priority that the scheduler assumes for a task.
    fn prio(&self, task: TaskId) -> IoPrio {
        // Default for a task whose priority is unknown.
        self.told.get(&task).copied().unwrap_or(IoPrio::be(4))
    }

    /// Computes when to deliver a command that the model has completed.
    fn schedule(&mut self, done: BioDone) {
        let Some(job) = &self.jobs[done.id.0 as usize] else {
            return;
        };
        let arrived = job.request.at;
        let wanted = t_minus(done.at, self.floor);
        if done.at < arrived + self.floor {
            self.account.unreachable += 1;
        }
        let mut at = wanted.max(arrived);
        if let Some(last) = self.due.back()
            && last.at > at
        {
            self.account.clamped += 1;
            at = last.at;
        }
        self.due.push_back(Due { at, done });
    }

    fn post(&mut self, due: Due, now: Instant) {
        let id = due.done.id.0 as u32;
        let Some(mut job) = self.jobs[id as usize].take() else {
            return;
        };
        let durable = job.request.durable && job.written.is_none();
        if durable && self.write_cache && !due.done.error {
            // On a device with a volatile cache, a durable write is a write followed by a flush.
            job.written = Some(due.done.at);
            let (number, task) = (u64::from(id), TaskId(job.request.asker.pid));
            let flush = Bio::new(number, task, Op::Flush, Flags::empty(), 0, 0);
            self.engine.arrive(now + self.floor, flush);
            self.jobs[id as usize] = Some(job);
            return;
        }
        if job.backing == Backing::UnderWay {
            job.waiting = Some(due);
            self.jobs[id as usize] = Some(job);
            return;
        }
        self.free.push(id);
        self.outstanding -= 1;
        self.finish(job, &due, now);
    }

    /// Handles the end of a job's fdatasync(2) call. If the model has already completed the
    /// command, the reply is sent.
    fn synced(&mut self, s: Synced, now: Instant) {
        let Some(job) = &mut self.jobs[s.id as usize] else {
            return;
        };
        job.backing = match s.kept {
            true => Backing::Kept,
            false => Backing::Failed,
        };
        if let Some(due) = job.waiting.take() {
            self.account.waited(now.since(due.at));
            self.post(due, now);
        }
    }

    fn finish(&mut self, job: Job<R>, due: &Due, now: Instant) {
        let (request, number) = (job.request, job.number);
        let failed = due.done.error || job.backing == Backing::Failed;
        let (at, op, bytes) = (request.at, request.op, request.sectors.bytes());
        let a = &mut self.account;
        a.errors += u64::from(failed);
        a.durable_writes += u64::from(request.durable);
        if let Some(backed) = &mut a.backed {
            *backed += u64::from(job.backing == Backing::Kept);
        }
        match op {
            Op::Read => (a.reads, a.read_bytes) = (a.reads + 1, a.read_bytes + bytes),
            Op::Write => (a.writes, a.write_bytes) = (a.writes + 1, a.write_bytes + bytes),
            Op::Flush => a.flushes += 1,
            Op::Discard | Op::WriteZeroes => a.discards += 1,
        }
        let early = if due.at > now { due.at } else { now };
        if number.is_some() {
            a.completed(at, due.done.at, due.at, early);
        }
        if let (Some(log), Some(number)) = (&self.log, number) {
            let record = Record {
                flags: if request.durable {
                    Flags::FUA
                } else {
                    Flags::empty()
                },
                task: Some(TaskId(request.asker.pid)),
                ioprio: request.asker.ioprio,
                cgroup: CgroupId::ROOT,
                complete_ns: Some(due.done.at.since_start()),
                error: u16::from(failed),
                ..Record::new(at.since_start(), op, request.sector.0, request.sectors.0)
            };
            // The log's thread runs until this thread has ended.
            let _ = log.send((number, record));
        }
        request.reply.answer(failed);
    }
}

fn t_minus(t: Instant, d: Nanos) -> Instant {
    Instant(t.0.saturating_sub(d.0))
}
