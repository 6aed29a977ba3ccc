//! Two small built-in workloads that need no file and no root: `hdparm -t` and `seeker`.
//!
//! Both are one process on a raw device. They tell what the disk does, not what a scheduler does:
//! with one reader every scheduler must come out the same, and a difference is a false positive.

use crate::drive::{Progress, RunError, Source, Submission, drive};
use crate::setup::{Queue, Setup};
use rand::Rng;
use seekwell_core::result::{Metric, Record};
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{Bio, BioSink, Flags, Instant, Nanos, Op, TaskId};

/// A built-in workload.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it measures, its unit.
    pub metric: (&'static str, &'static str),
    /// Where it comes from.
    pub source: &'static str,
}

/// The list.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "hdparm",
        summary: "hdparm -t: one buffered sequential reader from sector 0 for 3 s",
        metric: ("sequential read", "MiB/s"),
        source: "hdparm 9.65",
    },
    Builtin {
        name: "seeker",
        summary: "seeker: one process reading 4 KiB at random places for 30 s",
        metric: ("seeks", "seeks/s"),
        source: "seeker v2.0 of 2007",
    },
];

/// Bytes hdparm reads at once, and the window its read-ahead works in.
const READ_SECTORS: u64 = 4096;
const WINDOW_SECTORS: u64 = 256;
/// Copying a window to the process: 200 us per 2 MiB.
const COPY: Nanos = Nanos(12_500);

/// One sequential reader behind read-ahead: touching a window submits the next one.
struct Hdparm {
    capacity: u64,
    submitted: u64,
    consumed: u64,
    complete: Vec<Option<Instant>>,
    touch: Instant,
    deadline: Instant,
    over: bool,
}

impl Hdparm {
    fn new(capacity: u64) -> Self {
        Hdparm {
            capacity,
            submitted: 0,
            consumed: 0,
            complete: Vec::new(),
            touch: Instant::START,
            deadline: Instant::START + Nanos::from_secs(3),
            over: false,
        }
    }
    /// Consumes what is complete: each window costs a copy, and touching the next one submits
    /// the one behind it.
    fn consume(&mut self) {
        while let Some(Some(at)) = self.complete.get(self.consumed as usize).copied() {
            if self.submitted < self.consumed + 2 {
                return;
            }
            self.touch = self.touch.max(at) + COPY;
            self.consumed += 1;
            if self.touch >= self.deadline {
                self.over = true;
                return;
            }
        }
    }
}

impl Source for Hdparm {
    fn next(&mut self) -> Result<Option<Instant>, RunError> {
        self.consume();
        let end = (self.submitted + 1) * WINDOW_SECTORS > self.capacity;
        if self.over || end || self.submitted > self.consumed + 1 {
            return Ok(None);
        }
        Ok(Some(self.touch))
    }
    fn take(&mut self) -> Submission {
        let k = self.submitted;
        self.submitted += 1;
        self.complete.push(None);
        let (at, n) = (k * WINDOW_SECTORS, WINDOW_SECTORS as u32);
        Submission::Bio(Bio::new(0, TaskId(1), Op::Read, Flags::RAHEAD, at, n), k)
    }
    fn done(&mut self, token: u64, at: Instant) {
        self.complete[token as usize] = Some(at);
    }
    fn finished(&self) -> bool {
        self.over
    }
}

/// One random reader.
struct Seeker {
    pages: u64,
    rng: Pcg64Mcg,
    next: Option<Instant>,
    deadline: Instant,
    count: u64,
}

/// CPU time between two reads.
const SEEKER_CPU: Nanos = Nanos(7_000);

impl Source for Seeker {
    fn next(&mut self) -> Result<Option<Instant>, RunError> {
        Ok(self.next.filter(|t| *t < self.deadline))
    }
    fn take(&mut self) -> Submission {
        self.next = None;
        let page = self.rng.random_range(0..self.pages.max(1));
        Submission::Bio(
            Bio::new(0, TaskId(1), Op::Read, Flags::empty(), page * 8, 8),
            0,
        )
    }
    fn done(&mut self, _: u64, at: Instant) {
        if at < self.deadline {
            self.count += 1;
        }
        self.next = Some(at + SEEKER_CPU);
    }
    fn finished(&self) -> bool {
        self.next.is_some_and(|t| t >= self.deadline)
    }
}

/// Runs a built-in workload; `None` if there is none of that name.
pub fn run_builtin(
    setup: &Setup,
    queue: &mut Queue,
    name: &str,
    progress: Progress<'_>,
) -> Option<Result<Record, RunError>> {
    let b = BUILTINS.iter().find(|b| b.name == name)?;
    let mut r = setup.record(b.name);
    let capacity = queue.capacity().0;
    let value = match b.name {
        "hdparm" => {
            let mut s = Hdparm::new(capacity);
            drive(queue, &mut s, &mut r, progress).map(|()| {
                let reads = s.consumed * WINDOW_SECTORS / READ_SECTORS;
                let took = s.touch.since(Instant::START).as_secs_f64();
                if took > 0.0 {
                    reads as f64 * 2.0 / took
                } else {
                    0.0
                }
            })
        }
        _ => {
            let mut s = Seeker {
                pages: capacity / 8,
                rng: stream(setup.seed, "seeker"),
                next: Some(Instant::START),
                deadline: Instant::START + Nanos::from_secs(30),
                count: 0,
            };
            drive(queue, &mut s, &mut r, progress).map(|()| s.count as f64 / 30.0)
        }
    };
    Some(value.map(|value| {
        r.metric = Some(Metric {
            name: b.metric.0.to_owned(),
            unit: b.metric.1.to_owned(),
            value,
            higher_is_better: true,
            ..Metric::default()
        });
        queue.fill(&mut r);
        r
    }))
}
