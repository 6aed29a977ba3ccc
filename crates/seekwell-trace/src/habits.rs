//! How the processes of a recording submit their requests: in a closed loop, where each request
//! waits for an earlier one, or in an open one, where requests arrive at their own times.

use crate::error::TraceError;
use crate::reader::Reader;
use crate::replay::{ClosedLoop, Step};
use seekwell_core::{Op, TaskId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Pause without a completion after which a submission counts as unprompted, ns. A closed loop
/// submits a batch within less time.
const BATCH_NS: u64 = 1_000_000;
/// If a larger share of its submissions follows no completion, a process counts as open (chosen).
const UNPROMPTED: f64 = 0.1;
/// Number of intervals from which their variance is compared.
const INTERVALS: f64 = 20.0;

/// How a process submits its requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Habit {
    /// Process id.
    pub task: u32,
    /// Name of the process; can be empty.
    pub name: String,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes, flushes and discards.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Mean latency of reads, ns.
    pub read_ns: f64,
    /// Mean latency of writes, flushes and discards, ns.
    pub write_ns: f64,
    /// Mean time from the completion that came last to the next submission, ns.
    pub think_ns: f64,
    /// Largest number of requests in flight.
    pub depth: u64,
    /// Whether the requests arrive at their own times.
    pub open: bool,
}

impl Habit {
    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Returns the mean latency, ns.
    pub fn mean_ns(&self) -> f64 {
        let sum = self.read_ns * self.reads as f64 + self.write_ns * self.writes as f64;
        sum / self.requests().max(1) as f64
    }
}

/// The processes of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Habits {
    /// The processes; the process with the most requests is first.
    pub tasks: Vec<Habit>,
    /// Time from the first submission to the last completion, ns.
    pub span_ns: u64,
}

/// Sums of a variable, for its variance.
#[derive(Default)]
struct Spread {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, ns: u64) {
        let x = ns as f64;
        (self.n, self.sum, self.squares) = (self.n + 1.0, self.sum + x, self.squares + x * x);
    }
    fn mean(&self) -> f64 {
        self.sum / self.n.max(1.0)
    }
    fn variance(&self) -> f64 {
        self.squares / self.n.max(1.0) - self.mean() * self.mean()
    }
}

#[derive(Default)]
struct Task {
    habit: Habit,
    read: Spread,
    write: Spread,
    think: Spread,
    interval: Spread,
    last: Option<(u64, u64)>,
    submitted: u64,
    unprompted: u64,
}

impl Task {
    fn step(&mut self, s: &Step) {
        let (r, h) = (&s.record, &mut self.habit);
        let bytes = u64::from(r.sectors.0) * seekwell_core::units::SECTOR_BYTES;
        let (n, sum, latency) = match r.op {
            Op::Read => (&mut h.reads, &mut h.read_bytes, &mut self.read),
            _ => (&mut h.writes, &mut h.write_bytes, &mut self.write),
        };
        (*n, *sum) = (*n + 1, *sum + bytes);
        self.submitted += 1;
        h.depth = h.depth.max(self.submitted - s.completed_before);
        if let Some(ns) = r.latency_ns() {
            latency.add(ns);
        }
        if let Some((t_ns, completed)) = self.last {
            let interval = r.t_ns - t_ns;
            if completed < s.completed_before {
                self.think.add(s.think_ns);
                self.interval.add(interval);
            } else if interval > BATCH_NS {
                self.unprompted += 1;
            }
        }
        self.last = Some((r.t_ns, s.completed_before));
    }

    /// A process with a clock of its own thinks less after a slow request, so its intervals vary
    /// less than its think times. In a closed loop they vary more, by the latencies.
    fn done(self, task: u32, name: String) -> Habit {
        let clocked =
            self.interval.n >= INTERVALS && self.interval.variance() < self.think.variance() / 2.0;
        let unprompted = self.unprompted as f64 > UNPROMPTED * self.submitted as f64;
        Habit {
            task,
            name,
            read_ns: self.read.mean(),
            write_ns: self.write.mean(),
            think_ns: self.think.mean(),
            open: clocked || unprompted,
            ..self.habit
        }
    }
}

impl Habits {
    /// Returns how the processes of a trace work.
    ///
    /// # Errors
    /// Returns the errors of the reader. A trace without process ids or completions is an error.
    pub fn of(reader: Reader) -> Result<Habits, TraceError> {
        let mut steps = ClosedLoop::from_reader(reader)?;
        let mut tasks: BTreeMap<TaskId, Task> = BTreeMap::new();
        let mut span_ns = 0;
        for step in steps.by_ref() {
            let step = step?;
            let end = step.record.complete_ns.unwrap_or(step.record.t_ns);
            span_ns = span_ns.max(end);
            tasks.entry(step.task).or_default().step(&step);
        }
        let names = steps.inner().tasks();
        let name = |id: u32| names.and_then(|n| n.get(&id).cloned()).unwrap_or_default();
        let tasks = tasks.into_iter().map(|(id, t)| t.done(id.0, name(id.0)));
        let mut tasks: Vec<Habit> = tasks.collect();
        tasks.sort_by_key(|h| (Reverse(h.requests()), h.task));
        Ok(Habits { tasks, span_ns })
    }

    /// Returns the sum of a number over all processes.
    pub fn sum(&self, of: impl Fn(&Habit) -> u64) -> u64 {
        self.tasks.iter().map(of).sum()
    }

    /// Returns whether most requests arrive at their own times.
    pub fn is_open(&self) -> bool {
        let open = self.tasks.iter().filter(|h| h.open);
        2 * open.map(Habit::requests).sum::<u64>() > self.sum(Habit::requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, find_format, from_reader};

    /// Returns whether a process counts as open. `rows` are submissions and latencies in us.
    fn open(rows: &[(u64, u64)]) -> bool {
        let mut text = "t_us,op,sector,sectors,pid,lat_us\n".to_owned();
        for (i, (t, lat)) in rows.iter().enumerate() {
            text += &format!("{t},R,{},8,7,{lat}\n", i * 8);
        }
        let input = std::io::Cursor::new(text.into_bytes());
        let csv = find_format("csv").expect("a format");
        let reader = from_reader("test", input, Some(csv), &ReadOptions::default());
        let h = Habits::of(reader.expect("a trace")).expect("readable");
        assert_eq!(h.tasks.len(), 1);
        assert_eq!(h.tasks[0].open, h.is_open());
        h.tasks[0].open
    }

    /// Latencies from 100 to 8,019 us in no order.
    fn latency(i: u64) -> u64 {
        100 + i * 7919 % 7920
    }

    #[test]
    fn waiting_process_is_closed_and_process_with_a_clock_is_open() {
        let mut t = 0;
        let waits: Vec<_> = (0..200)
            .map(|i| {
                let row = (t, latency(i));
                t += latency(i) + 500 + i * 31 % 97;
                row
            })
            .collect();
        assert!(!open(&waits));
        let clock: Vec<_> = (0..200).map(|i| (i * 10_000, latency(i))).collect();
        assert!(open(&clock));
    }

    #[test]
    fn arrivals_during_slow_requests_are_open_and_a_queue_of_constant_depth_is_closed() {
        let arrivals: Vec<_> = (0..200)
            .map(|i| (i * 2_000 + i % 700, latency(i)))
            .collect();
        assert!(open(&arrivals));
        // Four requests in flight: a completion prompts each submission.
        let mut free = [0, 0, 0, 0];
        let deep: Vec<_> = (0..200)
            .map(|i| {
                free.sort_unstable();
                let row = (free[0], latency(i));
                free[0] += latency(i) + 20;
                row
            })
            .collect();
        assert!(!open(&deep));
    }
}
