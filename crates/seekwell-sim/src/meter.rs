//! Counts the bios that enter and leave the queue. All runs use this counter: traces, processes,
//! and the kernel of a simulated world.

use seekwell_core::result::{ProcessShare, Record};
use seekwell_core::{BioDone, BioId, Instant, TaskId};
use std::collections::BTreeMap;

/// A bio in progress.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    /// Identifier that the sender gave to the bio.
    pub(crate) token: u64,
    /// Time at which the program requested the bio.
    pub(crate) asked: Instant,
    /// Time at which the queue received the bio.
    pub(crate) submitted: Instant,
    pub(crate) task: TaskId,
    pub(crate) write: bool,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Default)]
struct Share {
    ios: u64,
    bytes: u64,
    latency_ns: u128,
}

/// Tasks with lower numbers are in a table. Tasks of traces can have any number.
const NEAR_TASKS: usize = 1 << 12;

/// The part of each task in the counts.
#[derive(Default)]
struct Shares {
    near: Vec<Share>,
    far: BTreeMap<TaskId, Share>,
}

impl Shares {
    #[inline]
    fn share_of(&mut self, task: TaskId) -> &mut Share {
        let at = task.0 as usize;
        if at >= NEAR_TASKS {
            return self.far.entry(task).or_default();
        }
        if self.near.len() <= at {
            self.near.resize(at + 1, Share::default());
        }
        &mut self.near[at]
    }
}

/// Counts bios, and measures how many are in progress.
pub(crate) struct Meter {
    outs: Vec<Out>,
    free: Vec<u32>,
    shares: Shares,
    /// Number of bios in progress, and the largest such number while counting.
    pub(crate) outstanding: u64,
    pub(crate) peak: u64,
    /// Integral over time of the number of bios in progress, in ns.
    pub(crate) area: u128,
    since: Instant,
    /// If false, completions are added only to the time series.
    pub(crate) counting: bool,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            outs: Vec::new(),
            free: Vec::new(),
            shares: Shares::default(),
            outstanding: 0,
            peak: 0,
            area: 0,
            since: Instant::START,
            counting: true,
        }
    }
}

impl Meter {
    /// Extends the integral to time `at`. From then on, `outstanding` bios are in progress.
    #[inline]
    pub(crate) fn change(&mut self, at: Instant, outstanding: u64) {
        self.area += u128::from(at.since(self.since).0) * u128::from(self.outstanding);
        self.since = self.since.max(at);
        self.outstanding = outstanding;
        if self.counting {
            self.peak = self.peak.max(outstanding);
        }
    }
    /// Registers a new bio. Returns the id with which the queue must report its completion.
    #[inline]
    pub(crate) fn came(&mut self, o: Out) -> BioId {
        self.change(o.submitted, self.outstanding + 1);
        let slot = match self.free.pop() {
            Some(i) => {
                self.outs[i as usize] = o;
                i
            }
            None => {
                self.outs.push(o);
                (self.outs.len() - 1) as u32
            }
        };
        BioId(u64::from(slot))
    }
    /// Registers a completion, counts it in the record, and returns the data of the bio.
    #[inline]
    pub(crate) fn ended(&mut self, d: &BioDone, r: &mut Record) -> Out {
        let slot = d.id.0 as u32;
        let o = self.outs[slot as usize];
        self.free.push(slot);
        self.change(d.at, self.outstanding - 1);
        if !self.counting {
            r.count_second(o.write, o.bytes, o.asked, d.at);
            return o;
        }
        r.count(o.write, o.bytes, o.asked, d.at, !d.error);
        let way = if o.write { &mut r.write } else { &mut r.read };
        way.held_ns += o.submitted.since(o.asked).0;
        let s = self.shares.share_of(o.task);
        s.ios += 1;
        s.bytes += o.bytes;
        s.latency_ns += u128::from(d.at.since(o.asked).0);
        o
    }
    /// Returns the number of reads and of writes in progress.
    pub(crate) fn waiting(&self) -> [u64; 2] {
        let mut free = vec![false; self.outs.len()];
        self.free.iter().for_each(|i| free[*i as usize] = true);
        let active = self.outs.iter().zip(free).filter(|(_, free)| !free);
        active.fold([0, 0], |mut n, (o, _)| {
            n[usize::from(o.write)] += 1;
            n
        })
    }
    /// Discards the counts per task and the peak, because they precede the measurement.
    pub(crate) fn forget(&mut self) {
        self.shares = Shares::default();
        self.peak = self.outstanding;
    }
    /// Returns the counts of each task, in descending order of bytes. `name` returns the name of a
    /// task.
    pub(crate) fn processes(&self, name: impl Fn(TaskId) -> String) -> Vec<ProcessShare> {
        let near = (0..).map(TaskId).zip(&self.shares.near);
        let far = self.shares.far.iter().map(|(t, s)| (*t, s));
        let share = |(task, s): (TaskId, &Share)| ProcessShare {
            task: task.0,
            name: name(task),
            ios: s.ios,
            bytes: s.bytes,
            mean_latency_ns: s.latency_ns as f64 / s.ios as f64,
        };
        let all = near.chain(far).filter(|s| s.1.ios > 0);
        let mut all: Vec<_> = all.map(share).collect();
        all.sort_by_key(|p| (std::cmp::Reverse(p.bytes), p.task));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(task: u32, at_us: u64) -> Out {
        Out {
            token: u64::from(task),
            asked: Instant::at_us(at_us),
            submitted: Instant::at_us(at_us + 1),
            task: TaskId(task),
            write: task % 2 == 1,
            bytes: 4096,
        }
    }

    #[test]
    fn tasks_with_any_number_are_distinguished() {
        let (mut m, mut r) = (Meter::default(), Record::default());
        let tasks = [3, 4095, 4096, u32::MAX, 3];
        let ids: Vec<_> = tasks.map(|t| m.came(out(t, 10))).into();
        assert_eq!((m.outstanding, m.peak), (5, 5));
        for id in ids {
            let at = Instant::at_us(110);
            let d = BioDone {
                id,
                at,
                error: false,
            };
            m.ended(&d, &mut r);
        }
        let all = m.processes(|t| t.0.to_string());
        let seen: Vec<_> = all
            .iter()
            .map(|p| (p.task, p.ios, p.mean_latency_ns))
            .collect();
        let one = |t| (t, 1, 100_000.0);
        assert_eq!(
            seen,
            [(3, 2, 100_000.0), one(4095), one(4096), one(u32::MAX)]
        );
        assert!(all.iter().all(|p| p.name == p.task.to_string()));
        assert_eq!((r.read.ios, r.write.ios, r.write.held_ns), (1, 4, 4000));
        // Five bios were in progress for 99 us.
        assert_eq!(m.area, 5 * 99_000);
    }

    #[test]
    fn uncounted_bios_still_appear_in_the_series() {
        let (mut m, mut r) = (Meter::default(), Record::default());
        m.counting = false;
        let id = m.came(out(1, 0));
        let at = Instant::at_us(50);
        let d = BioDone {
            id,
            at,
            error: false,
        };
        assert_eq!(m.ended(&d, &mut r).token, 1);
        assert_eq!((r.write.ios, m.peak, r.seconds[0].writes), (0, 0, 1));
        assert!(m.processes(|_| String::new()).is_empty());
    }
}
