//! The measures of a run. Both kinds of machine fill them from the notes of their scripts. The
//! record of the run contains them.
//!
//! The measures are the latencies per kind of operation, the operations per second over time, the
//! marks on the time axis, the metrics of the script, and totals per task.
//!
//! A script can start and stop a clock. The latencies and metrics cover only operations that end
//! while this clock runs. Other operations and calls are only in the time series. Notes can arrive
//! late and out of order, so their times determine whether they count.

use crate::note::{Mark, Note};
use seekwell_core::result::{Latency, MarkAt, Metric, OpSecond, Operation, Record, TaskPart};
use seekwell_core::{Instant, NSEC_PER_SEC};

/// Maximum length of each time series in seconds. A run longer than a day continues without time
/// series.
const LONGEST_S: u64 = 86_400;

/// Collects the measures of a run.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    ops: Vec<Op>,
    marks: Vec<MarkAt>,
    metrics: Vec<Metric>,
    tasks: Vec<TaskPart>,
    /// Kinds of operations that the principal metric counts.
    counted: Vec<&'static str>,
    started: Option<Instant>,
    stopped: Option<Instant>,
}

/// State of the script's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Clock {
    /// The clock has not started. All operations of a script without a clock are measured.
    #[default]
    Before,
    /// The clock is running.
    Running,
    /// The clock has stopped.
    Stopped,
}

/// Counts the calls of a task while the clock runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    moved: Moved,
    clock: Clock,
}

impl Tally {
    /// Counts a call that read `bytes`.
    #[inline]
    pub fn read(&mut self, clock: Clock, bytes: u64) {
        if self.counts(clock) {
            self.moved.reads += 1;
            self.moved.read_bytes += bytes;
        }
    }
    /// Counts a call that wrote `bytes`.
    #[inline]
    pub fn written(&mut self, clock: Clock, bytes: u64) {
        if self.counts(clock) {
            self.moved.writes += 1;
            self.moved.written_bytes += bytes;
        }
    }
    /// Adds calls that were counted elsewhere.
    pub fn add(&mut self, clock: Clock, moved: Moved) {
        if self.counts(clock) {
            self.moved += moved;
        }
    }
    /// Returns the counted calls.
    pub fn moved(mut self, clock: Clock) -> Moved {
        self.counts(clock);
        self.moved
    }
    fn counts(&mut self, clock: Clock) -> bool {
        if self.clock == Clock::Before && clock != Clock::Before {
            // The calls so far happened before the clock started, so they do not count.
            self.moved = Moved::default();
        }
        self.clock = clock;
        clock != Clock::Stopped
    }
}

#[derive(Clone, Debug)]
struct Op {
    kind: &'static str,
    bytes: u64,
    latency: Latency,
    seconds: Vec<OpSecond>,
    began_ns: u64,
    ended_ns: u64,
}

/// Calls of a task that transferred data. They are counted separately from its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of calls that read.
    pub reads: u64,
    /// Number of bytes read.
    pub read_bytes: u64,
    /// Number of calls that wrote.
    pub writes: u64,
    /// Number of bytes written.
    pub written_bytes: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, o: Moved) {
        self.reads += o.reads;
        self.read_bytes += o.read_bytes;
        self.writes += o.writes;
        self.written_bytes += o.written_bytes;
    }
}

impl Measures {
    /// Records the start of a task. Returns the number that identifies the task in other methods.
    pub fn begin(&mut self, path: &str, at: Instant) -> usize {
        self.tasks.push(TaskPart {
            path: path.to_owned(),
            began_ns: at.since_start(),
            ended_ns: at.since_start(),
            ..TaskPart::default()
        });
        self.tasks.len() - 1
    }
    /// Sets the description of a task's I/O priority and cgroup. It is empty if neither was set.
    pub fn set_priority(&mut self, task: usize, priority: String) {
        self.tasks[task].priority = priority;
    }
    /// Records the end of a task, with its counted calls.
    pub fn end(&mut self, task: usize, at: Instant, moved: Moved) {
        let t = &mut self.tasks[task];
        t.ended_ns = at.since_start();
        (t.reads, t.read_bytes) = (moved.reads, moved.read_bytes);
        (t.writes, t.written_bytes) = (moved.writes, moved.written_bytes);
    }
    /// Processes a note of a task.
    #[inline]
    pub fn note(&mut self, task: usize, note: &Note) {
        match *note {
            Note::Op {
                kind,
                start,
                end,
                bytes,
            } => {
                self.tasks[task].ops += u64::from(self.op(kind, start, end, bytes));
            }
            Note::Mark(at, mark) => {
                match mark {
                    Mark::ClockStart => self.start(at),
                    Mark::ClockStop => self.stopped = Some(at),
                    _ => {}
                }
                self.marks.push(MarkAt {
                    at_ns: at.since_start(),
                    name: mark.name().to_owned(),
                    task: self.tasks[task].path.clone(),
                });
            }
            Note::Counts(kind) => {
                if !self.counted.contains(&kind) {
                    self.counted.push(kind);
                }
            }
            Note::Metric {
                ref name,
                unit,
                value,
                higher_is_better,
            } => self.metrics.push(Metric {
                name: name.clone().into_owned(),
                unit: unit.to_owned(),
                value,
                higher_is_better,
                ..Metric::default()
            }),
        }
    }
    /// Starts the clock. Earlier operations no longer count.
    fn start(&mut self, at: Instant) {
        (self.started, self.stopped) = (Some(at), None);
        for o in &mut self.ops {
            (o.bytes, o.latency) = (0, Latency::default());
            (o.began_ns, o.ended_ns) = (u64::MAX, 0);
        }
        for t in &mut self.tasks {
            t.ops = 0;
        }
    }
    /// Starts the clock, for an external program that determines the measured time.
    pub fn start_at(&mut self, at: Instant) {
        self.start(at);
    }
    /// Stops the clock, for an external program that determines the measured time.
    pub fn stop_at(&mut self, at: Instant) {
        self.stopped = Some(at);
    }
    /// Returns the state of the script's clock.
    pub fn clock(&self) -> Clock {
        match (self.started, self.stopped) {
            (None, _) => Clock::Before,
            (_, None) => Clock::Running,
            _ => Clock::Stopped,
        }
    }
    /// Returns true if an operation that ended at `end` counts.
    fn covers(&self, end: Instant) -> bool {
        let Some(start) = self.started else {
            return true;
        };
        start <= end && self.stopped.is_none_or(|stop| end <= stop)
    }
    /// Records an operation. Returns true if the clock was running when the operation ended.
    fn op(&mut self, kind: &'static str, start: Instant, end: Instant, bytes: u64) -> bool {
        let covered = self.covers(end);
        // There are few kinds, and the same script usually passes the same string.
        let same = |o: &Op| std::ptr::eq(o.kind, kind);
        let at = self.ops.iter().position(same);
        let at = at.or_else(|| self.ops.iter().position(|o| o.kind == kind));
        let at = at.unwrap_or_else(|| {
            self.ops.push(Op {
                kind,
                bytes: 0,
                latency: Latency::default(),
                seconds: Vec::new(),
                began_ns: u64::MAX,
                ended_ns: 0,
            });
            self.ops.len() - 1
        });
        let (o, ns) = (&mut self.ops[at], end.since(start).0);
        if covered {
            o.bytes += bytes;
            o.latency.record(ns);
            o.began_ns = o.began_ns.min(start.since_start());
            o.ended_ns = o.ended_ns.max(end.since_start());
        }
        let s = end.since_start() / NSEC_PER_SEC;
        if s < LONGEST_S {
            let s = s as usize;
            if o.seconds.len() <= s {
                o.seconds.resize_with(s + 1, OpSecond::default);
            }
            o.seconds[s].count(ns, bytes);
        }
        covered
    }
    /// Returns the first metric of the script, which is the principal metric.
    pub fn metric(&self) -> Option<&Metric> {
        self.metrics.first()
    }
    /// Returns all metrics; the principal metric is first.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }
    /// Returns the marks in order of arrival.
    pub fn marks(&self) -> &[MarkAt] {
        &self.marks
    }
    /// Returns the number of operations of a kind that ended while the clock ran.
    pub fn count(&self, kind: &str) -> u64 {
        let of = self.ops.iter().find(|o| o.kind == kind);
        of.map_or(0, |o| o.latency.count())
    }
    /// Returns the number of all operations so far, for a progress line.
    pub fn operations(&self) -> u64 {
        self.tasks.iter().map(|t| t.ops).sum()
    }
    /// Moves all measures into the record.
    pub fn fill(mut self, r: &mut Record) {
        r.clock_start_ns = self.started.map(Instant::since_start);
        let stop = self.stopped.filter(|_| self.started.is_some());
        r.clock_stop_ns = stop.map(Instant::since_start);
        let n: u64 = self.counted.iter().map(|k| self.count(k)).sum();
        let mut kinds = std::mem::take(&mut self.counted);
        kinds.retain(|k| n == 0 || self.count(k) > 0);
        // The principal metric, and percentiles of the same operations, get the number of
        // operations.
        let percentile =
            |m: &Metric| m.name.ends_with("99th percentile") || m.name.ends_with("p99");
        for (i, m) in self.metrics.iter_mut().enumerate() {
            if i == 0 || (kinds.len() == 1 && percentile(m)) {
                (m.operation, m.n) = (kinds.join(", "), n);
            }
        }
        r.operations = self
            .ops
            .into_iter()
            .map(|o| Operation {
                kind: o.kind.to_owned(),
                bytes: o.bytes,
                latency: o.latency,
                seconds: o.seconds,
                began_ns: o.began_ns.min(o.ended_ns),
                ended_ns: o.ended_ns,
            })
            .collect();
        r.operations.sort_by(|a, b| a.kind.cmp(&b.kind));
        r.marks = self.marks;
        r.marks.sort_by_key(|m| m.at_ns);
        let mut metrics = self.metrics.into_iter();
        r.metric = metrics.next();
        r.more_metrics = metrics.collect();
        r.tasks = self.tasks;
        r.tasks.sort_by(|a, b| {
            let key = |t: &TaskPart| (t.began_ns, t.path.clone());
            key(a).cmp(&key(b))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Mark;

    fn op(kind: &'static str, start_ms: u64, end_ms: u64, bytes: u64) -> Note {
        Note::Op {
            kind,
            start: Instant::at_us(start_ms * 1000),
            end: Instant::at_us(end_ms * 1000),
            bytes,
        }
    }

    #[test]
    fn operations_marks_metrics_and_tasks_reach_the_record() {
        let mut m = Measures::default();
        let main = m.begin("main", Instant::START);
        let w = m.begin("main/w0", Instant::at_us(5));
        m.note(w, &op("fsync", 0, 30, 0));
        m.note(main, &op("fsync", 990, 1010, 0));
        m.note(w, &op("write", 2500, 2501, 4096));
        m.note(main, &Note::Mark(Instant::at_us(7), Mark::CheckpointStart));
        for (name, value) in [("files", 12.5), ("bytes", 3.0)] {
            m.note(
                main,
                &Note::Metric {
                    name: name.into(),
                    unit: "1/s",
                    value,
                    higher_is_better: true,
                },
            );
        }
        let moved = Moved {
            writes: 1,
            written_bytes: 4096,
            ..Moved::default()
        };
        m.end(w, Instant::at_us(9), moved);
        let mut r = Record::default();
        m.fill(&mut r);
        assert_eq!(r.metric.as_ref().map(|m| m.value), Some(12.5));
        assert_eq!(r.more_metrics.len(), 1);
        let f = r.operation("fsync").expect("noted");
        assert_eq!(f.latency.count(), 2);
        let per_second: Vec<_> = f.seconds.iter().map(|s| s.ops).collect();
        assert_eq!(per_second, [1, 1]);
        assert_eq!(r.operation("write").map(|o| o.seconds.len()), Some(3));
        assert_eq!((r.tasks[1].ops, r.tasks[1].written_bytes), (2, 4096));
        assert_eq!(r.marks[0].name, "checkpoint start");
        assert_eq!((f.began_ns, f.ended_ns), (0, 1_010_000_000));
        assert!((f.rate(2.0) - 2.0 / 1.01).abs() < 1e-12);
        assert_eq!(f.deviation(), None, "one whole second");
        // The series has three seconds, and the only write is in the last second.
        let (mean, sd) = r
            .operation("write")
            .map(|o| o.per_second(3))
            .expect("noted");
        assert!((mean - 1.0 / 3.0).abs() < 1e-9 && (sd - 0.577_35).abs() < 1e-4);
    }

    #[test]
    fn rates_and_deviations_cover_the_active_span_of_an_operation() {
        let mut m = Measures::default();
        let main = m.begin("main", Instant::START);
        // The clock starts at 2.5 s. There are 3 operations in seconds 3 and 5, 6 operations in
        // second 4, and one more at 6.25 s.
        for at_ms in [
            2500, 3100, 3400, 3700, 4100, 4200, 4300, 4400, 4500, 4600, 5100, 5400, 5700, 6250,
        ] {
            m.note(main, &op("seek", at_ms, at_ms, 512));
        }
        let mut r = Record::default();
        m.fill(&mut r);
        let o = r.operation("seek").expect("noted");
        assert!((o.rate(14.0) - 14.0 / 3.75).abs() < 1e-12);
        // The values 3, 6 and 3 have the mean 4. The sum of squares is 1 + 4 + 1, divided by 2.
        assert_eq!(o.deviation(), Some(3.0f64.sqrt()));
        assert_eq!(Operation::default().rate(5.0), 0.0);
    }
}
