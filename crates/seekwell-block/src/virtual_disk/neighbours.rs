//! Other programs on the guest's host. Each program keeps a number of requests outstanding.
//!
//! The programs start with the first request of the guest. They pause while the guest has no
//! requests, so that a run ends with the guest.

use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{Bio, Flags, Instant, Nanos, Op, TaskId};
use seekwell_device::guest::Neighbour;

/// Think time of a program between two requests.
const THINK: Nanos = Nanos::from_us(20);

#[derive(Debug)]
struct One {
    what: Neighbour,
    task: TaskId,
    rng: Pcg64Mcg,
    at: u64,
    /// For each request that is not outstanding, the time from which it may be issued.
    due: Vec<Instant>,
}

#[derive(Debug)]
pub(super) struct Crowd {
    all: Vec<One>,
    completed: Vec<u64>,
    depth: u32,
    capacity: u64,
    begun: bool,
}

impl Crowd {
    pub fn new(list: &[Neighbour], depth: u32, first: u32, capacity: u64, seed: u64) -> Self {
        let one = |(i, what): (usize, &Neighbour)| One {
            what: *what,
            task: TaskId(first + i as u32),
            rng: rng::stream(seed, &format!("neighbour {i}")),
            // Sequential streams start in the second half of the disk, at a distance from each
            // other.
            at: capacity / 2 / 256 * 256 + i as u64 * (capacity / 32 / 256 * 256),
            due: Vec::new(),
        };
        Crowd {
            all: list.iter().enumerate().map(one).collect(),
            completed: vec![0; list.len()],
            depth,
            capacity,
            begun: false,
        }
    }
    pub fn completed(&self) -> &[u64] {
        &self.completed
    }
    /// Starts the neighbours with the guest.
    pub fn begin(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.begun, true) {
            for o in &mut self.all {
                o.due = vec![now; self.depth as usize];
            }
        }
    }
    pub fn next(&self) -> Option<Instant> {
        self.all.iter().flat_map(|o| o.due.iter().copied()).min()
    }
    /// Returns a request that is due, and the number of its neighbour.
    pub fn take(&mut self, now: Instant) -> Option<(usize, Bio)> {
        let capacity = self.capacity;
        for (i, o) in self.all.iter_mut().enumerate() {
            let Some(k) = o.due.iter().position(|d| *d <= now) else {
                continue;
            };
            o.due.swap_remove(k);
            let mut random = || o.rng.next_u64() % (capacity / 8).max(1) * 8;
            let (op, sector, n) = match o.what {
                Neighbour::RandomReader => (Op::Read, random(), 8),
                Neighbour::RandomWriter => (Op::Write, random(), 8),
                Neighbour::SequentialReader => {
                    let at = if o.at + 256 > capacity { 0 } else { o.at };
                    o.at = at + 256;
                    (Op::Read, at, 256)
                }
            };
            return Some((i, Bio::new(0, o.task, op, Flags::empty(), sector, n)));
        }
        None
    }
    pub fn done(&mut self, now: Instant, i: usize) {
        self.completed[i] += 1;
        self.all[i].due.push(now + THINK);
    }
}
