//! Processes in a closed loop: each process submits, waits for the completion, thinks, and submits
//! again.
//!
//! Schedulers differ in which process they make wait. These processes are the smallest programs
//! that show this. A process reads or writes, sequentially or at random. It has a think time, a
//! number of outstanding requests, a start and an end.

use crate::drive::{RunError, Source, Submission};
use rand::Rng;
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{Bio, CgroupId, Control, Flags, Instant, IoPrio, Nanos, Op, Sector, TaskId};
use std::collections::BTreeSet;

/// The addresses that a process accesses.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// Consecutive addresses from this sector on.
    Sequential(Sector),
    /// Random addresses in this range, aligned to the request size.
    Random(Sector, Sector),
}

/// A process in a closed loop.
#[derive(Clone, Debug)]
pub struct Process {
    /// Task number, which the scheduler gets as the pid.
    pub task: TaskId,
    /// Name for the report.
    pub name: String,
    /// I/O priority, set before the first bio.
    pub ioprio: IoPrio,
    /// Cgroup of the process.
    pub cgroup: CgroupId,
    /// Operation of every bio.
    pub op: Op,
    /// Flags of every bio.
    pub flags: Flags,
    /// Addresses of the bios.
    pub pattern: Pattern,
    /// Length of every bio, in sectors.
    pub sectors: u32,
    /// Time from a completion to the next submission.
    pub think: Nanos,
    /// Number of outstanding bios.
    pub depth: u32,
    /// Time of the first submission.
    pub start: Instant,
    /// Time after which nothing is submitted.
    pub stop: Instant,
    /// Largest number of submissions.
    pub limit: u64,
}

impl Process {
    /// Returns a sequential reader with requests of 128 KiB from `sector` on, without think time,
    /// for ten seconds.
    pub fn reader(task: u32, sector: u64) -> Self {
        Process {
            task: TaskId(task),
            name: format!("reader {task}"),
            ioprio: IoPrio::NONE,
            cgroup: CgroupId::ROOT,
            op: Op::Read,
            flags: Flags::empty(),
            pattern: Pattern::Sequential(Sector(sector)),
            sectors: 256,
            think: Nanos::ZERO,
            depth: 1,
            start: Instant::START,
            stop: Instant::START + Nanos::from_secs(10),
            limit: u64::MAX,
        }
    }
    /// Returns an asynchronous background writer with `depth` outstanding requests at random
    /// addresses below `end`.
    pub fn writer(task: u32, end: u64, depth: u32) -> Self {
        Process {
            name: format!("writer {task}"),
            op: Op::Write,
            pattern: Pattern::Random(Sector(0), Sector(end)),
            sectors: 8,
            depth,
            ..Process::reader(task, 0)
        }
    }
}

/// All processes of a run.
pub struct Processes {
    list: Vec<Process>,
    rngs: Vec<Pcg64Mcg>,
    next_sector: Vec<u64>,
    made: Vec<u64>,
    ready: BTreeSet<(Instant, u64, usize)>,
    seq: u64,
    setup: Vec<Control>,
}

impl Processes {
    /// Creates the processes of a run. If several submit at the same time, they do so in this
    /// order. Each process gets its own random stream, derived from `seed`.
    pub fn new(list: Vec<Process>, seed: u64) -> Self {
        let mut p = Processes {
            rngs: list
                .iter()
                .map(|p| stream(seed, &format!("process {}", p.task.0)))
                .collect(),
            next_sector: Vec::new(),
            made: vec![0; list.len()],
            ready: BTreeSet::new(),
            seq: 0,
            setup: Vec::new(),
            list,
        };
        for i in 0..p.list.len() {
            let (start, depth) = (p.list[i].start, p.list[i].depth);
            let first = match p.list[i].pattern {
                Pattern::Sequential(s) | Pattern::Random(s, _) => s.0,
            };
            p.next_sector.push(first);
            for _ in 0..depth {
                p.schedule(start, i);
            }
            let (task, prio, cg) = (p.list[i].task, p.list[i].ioprio, p.list[i].cgroup);
            if prio != IoPrio::NONE {
                p.setup.push(Control::Prio(task, prio));
            }
            if cg != CgroupId::ROOT {
                p.setup.push(Control::Cgroup(task, cg));
            }
        }
        p
    }
    /// Adds cgroups, which are created at the start. Each element is (cgroup, weight).
    pub fn with_weights(mut self, weights: &[(u32, u32)]) -> Self {
        for (cg, w) in weights.iter().rev() {
            self.setup.insert(0, Control::Weight(CgroupId(*cg), *w));
            self.setup
                .insert(0, Control::CgroupNew(CgroupId(*cg), CgroupId::ROOT));
        }
        self
    }
    /// Adds control messages that are sent to the queue before everything else.
    pub fn with_controls(mut self, first: &[Control]) -> Self {
        self.setup.splice(0..0, first.iter().copied());
        self
    }
    fn schedule(&mut self, at: Instant, i: usize) {
        if at < self.list[i].stop && self.made[i] < self.list[i].limit {
            self.seq += 1;
            self.ready.insert((at, self.seq, i));
        }
    }
    /// Returns the name of a task.
    pub fn name(&self, task: u32) -> &str {
        self.list
            .iter()
            .find(|p| p.task.0 == task)
            .map_or("", |p| &p.name)
    }
}

impl Source for Processes {
    fn next(&mut self) -> Result<Option<Instant>, RunError> {
        while let Some((at, seq, i)) = self.ready.first().copied() {
            if self.made[i] < self.list[i].limit {
                return Ok(Some(if self.setup.is_empty() {
                    at
                } else {
                    Instant::START
                }));
            }
            self.ready.remove(&(at, seq, i));
        }
        Ok(None)
    }
    fn take(&mut self) -> Submission {
        if !self.setup.is_empty() {
            return Submission::Control(self.setup.remove(0));
        }
        let (_, _, i) = self.ready.pop_first().expect("next() announced it");
        self.made[i] += 1;
        let p = &self.list[i];
        let n = u64::from(p.sectors);
        let sector = match p.pattern {
            Pattern::Sequential(_) => {
                let s = self.next_sector[i];
                self.next_sector[i] += n;
                s
            }
            Pattern::Random(from, to) => {
                let places = ((to.0 - from.0) / n).max(1);
                from.0 + self.rngs[i].random_range(0..places) * n
            }
        };
        let mut bio = Bio::new(0, p.task, p.op, p.flags, sector, p.sectors);
        bio.cpu = p.task.0 as u16;
        bio.cgroup = p.cgroup;
        Submission::Bio(bio, i as u64)
    }
    fn done(&mut self, token: u64, at: Instant) {
        let i = token as usize;
        let think = self.list[i].think;
        self.schedule(at + think, i);
    }
}
