//! Sums over time, in steps. The length of a step grows tenfold when the trace becomes longer.

use super::data::Course;

/// Maximum number of steps.
const STEPS_MAX: usize = 4096;
/// Initial length of a step, in ns.
const STEP_NS: u64 = 1_000_000;
/// Factor by which a step grows.
const GROWS: usize = 10;

#[derive(Clone, Copy, Default)]
struct Step {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    done: u64,
    sum_ns: u128,
    max_ns: u64,
    /// Sum of (number of waiting bios) * (time in ns).
    waiting: u128,
    in_device: u128,
}

impl Step {
    fn join(&mut self, o: &Step) {
        self.reads += o.reads;
        self.writes += o.writes;
        self.read_bytes += o.read_bytes;
        self.write_bytes += o.write_bytes;
        self.done += o.done;
        self.sum_ns += o.sum_ns;
        self.max_ns = self.max_ns.max(o.max_ns);
        self.waiting += o.waiting;
        self.in_device += o.in_device;
    }
}

/// Collects the sums over time.
pub(super) struct CourseSum {
    step_ns: u64,
    steps: Vec<Step>,
}

impl Default for CourseSum {
    fn default() -> Self {
        CourseSum {
            step_ns: STEP_NS,
            steps: Vec::new(),
        }
    }
}

impl CourseSum {
    fn at(&mut self, t_ns: u64) -> usize {
        while (t_ns / self.step_ns) as usize >= STEPS_MAX {
            let grown = self.steps.chunks(GROWS).map(|c| {
                let mut sum = Step::default();
                c.iter().for_each(|s| sum.join(s));
                sum
            });
            self.steps = grown.collect();
            self.step_ns *= GROWS as u64;
        }
        let i = (t_ns / self.step_ns) as usize;
        if self.steps.len() <= i {
            self.steps.resize(i + 1, Step::default());
        }
        i
    }

    /// Counts an operation at `t_ns`.
    pub fn moved(&mut self, t_ns: u64, read: bool, bytes: u64) {
        let i = self.at(t_ns);
        let step = &mut self.steps[i];
        match read {
            true => (step.reads, step.read_bytes) = (step.reads + 1, step.read_bytes + bytes),
            false => (step.writes, step.write_bytes) = (step.writes + 1, step.write_bytes + bytes),
        }
    }

    /// Records a latency of `ns` that ended at `t_ns`.
    pub fn took(&mut self, t_ns: u64, ns: u64) {
        let i = self.at(t_ns);
        let step = &mut self.steps[i];
        step.done += 1;
        step.sum_ns += u128::from(ns);
        step.max_ns = step.max_ns.max(ns);
    }

    /// Adds the numbers of waiting bios and of requests at the driver during a period.
    pub fn depth(&mut self, from_ns: u64, until_ns: u64, waiting: u64, in_device: u64) {
        if until_ns <= from_ns || (waiting == 0 && in_device == 0) {
            return;
        }
        let last = self.at(until_ns);
        let first = (from_ns / self.step_ns) as usize;
        for i in first..=last {
            let begin = (i as u64 * self.step_ns).max(from_ns);
            let end = ((i as u64 + 1) * self.step_ns).min(until_ns);
            let ns = u128::from(end.saturating_sub(begin));
            self.steps[i].waiting += u128::from(waiting) * ns;
            self.steps[i].in_device += u128::from(in_device) * ns;
        }
    }

    pub fn done(self) -> Course {
        let of = |f: fn(&Step) -> u64| self.steps.iter().map(f).collect();
        let step_ns = self.step_ns as f64;
        let mean = |f: fn(&Step) -> u128| {
            let all = self.steps.iter();
            // Three decimals are enough for a chart, and keep the file short.
            all.map(|s| (f(s) as f64 / step_ns * 1000.0).round() / 1000.0)
                .collect()
        };
        Course {
            step_ns: self.step_ns,
            reads: of(|s| s.reads),
            writes: of(|s| s.writes),
            read_bytes: of(|s| s.read_bytes),
            write_bytes: of(|s| s.write_bytes),
            mean_ns: of(|s| (s.sum_ns / u128::from(s.done.max(1))) as u64),
            max_ns: of(|s| s.max_ns),
            waiting: mean(|s| s.waiting),
            in_device: mean(|s| s.in_device),
        }
    }
}
