//! Control of a job by its results: shares of a flow, the depth that keeps a latency, and the steady
//! state.

use super::job::{Flow, Job, LatencyTarget, Steady, SteadyOf};
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos};
use std::collections::BTreeMap;

/// The groups of jobs that proceed in proportion to their weights.
#[derive(Default)]
pub(super) struct Flows {
    /// Number of calls and sum of the weights, by the number of the group.
    groups: BTreeMap<u32, (u64, u64)>,
}

/// A job in a group.
#[derive(Clone, Copy, Default)]
pub(super) struct Member {
    flow: Option<Flow>,
    calls: u64,
}

impl Flows {
    /// Adds a job to its group.
    pub(super) fn join(&mut self, flow: Option<Flow>) -> Member {
        if let Some(f) = flow {
            self.groups.entry(f.id).or_default().1 += u64::from(f.weight);
        }
        Member { flow, calls: 0 }
    }
    /// Removes the weight of a job that has ended. Its calls do not hold up the other jobs.
    pub(super) fn leave(&mut self, member: Member) {
        if let Some(f) = member.flow {
            let group = self.groups.entry(f.id).or_default();
            group.1 = group.1.saturating_sub(u64::from(f.weight));
        }
    }
    /// Returns true if the job has made more than its share. Otherwise, counts a call of it.
    pub(super) fn ahead(&mut self, member: &mut Member) -> bool {
        let Some(flow) = member.flow else {
            return false;
        };
        let (calls, weights) = self.groups.entry(flow.id).or_default();
        let ahead = u128::from(member.calls) * u128::from(*weights)
            > u128::from(*calls) * u128::from(flow.weight);
        if !ahead {
            *calls += 1;
            member.calls += 1;
        }
        ahead
    }
}

/// The search of fio for the greatest depth with a short latency (latency_target).
pub(super) struct Depth {
    target: Option<LatencyTarget>,
    most: u32,
    now: u32,
    low: u32,
    high: u32,
    since: Instant,
    calls: u64,
    failed: u64,
    stable: u32,
    /// The depth has been found, and its measurement runs.
    last: bool,
    done: bool,
}

impl Depth {
    pub(super) fn new(job: &Job, start: Instant) -> Self {
        Depth {
            target: job.latency,
            most: job.depth.max(1),
            now: 1,
            low: 1,
            high: job.depth.max(1),
            since: start,
            calls: 0,
            failed: 0,
            stable: 0,
            last: false,
            done: false,
        }
    }
    /// Returns true if the search has ended.
    pub(super) fn found(&self) -> bool {
        self.done
    }
    /// Returns the greatest number of calls in flight at the moment.
    pub(super) fn limit(&self, depth: usize) -> usize {
        match self.target {
            Some(_) => (self.now as usize).clamp(1, depth),
            None => depth,
        }
    }
    /// Counts a call that begins.
    pub(super) fn begin(&mut self) {
        self.calls += 1;
    }
    /// Counts a call that took `latency` and changes the depth if a window has passed.
    pub(super) fn count(&mut self, now: Instant, latency: Nanos) {
        let Some(t) = self.target else {
            return;
        };
        if latency > t.target {
            self.failed += 1;
            if t.percentile >= 100.0 {
                self.decrease(now);
                return;
            }
        }
        if now.since(self.since) < t.window || self.calls == 0 {
            return;
        }
        let good = self.calls.saturating_sub(self.failed) as f64 / self.calls as f64 * 100.0;
        match good >= t.percentile {
            true => self.increase(now, t.run),
            false => self.decrease(now),
        }
    }
    fn begin_window(&mut self, now: Instant) {
        (self.since, self.calls, self.failed) = (now, 0, 0);
    }
    fn decrease(&mut self, now: Instant) {
        if self.now > 1 {
            self.high = self.now;
            if self.now == self.low {
                self.low -= 1;
            }
            self.now = u32::midpoint(self.now, self.low).max(1);
            self.stable = 0;
        }
        self.begin_window(now);
    }
    fn increase(&mut self, now: Instant, run: bool) {
        let before = self.now;
        self.low = before;
        if before + 1 == self.high {
            self.stable += 1;
            if self.stable >= 3 {
                self.high += 1;
                self.stable = 0;
            }
        }
        self.now = match self.high != self.most {
            true => u32::midpoint(before, self.high),
            false => before.saturating_mul(2),
        };
        self.now = self.now.min(self.most);
        if !run && self.now == before {
            self.done = self.last;
            self.last = true;
        }
        self.begin_window(now);
    }
}

/// The test of the steady state of a section, with a value for each second.
#[derive(Default)]
pub(super) struct Steadiness {
    rule: Option<Steady>,
    first: Option<Instant>,
    values: Vec<f64>,
    reached: bool,
}

impl Steadiness {
    pub(super) fn new(rule: Option<Steady>) -> Self {
        Steadiness {
            rule: rule.filter(|r| r.limit >= 0.0),
            ..Steadiness::default()
        }
    }
    /// Returns true if the section is in the steady state.
    pub(super) fn reached(&self) -> bool {
        self.reached
    }
    /// Counts a call that ended at `now`.
    pub(super) fn count(&mut self, now: Instant, bytes: u64) {
        let Some(rule) = self.rule else {
            return;
        };
        let first = *self.first.get_or_insert(now);
        let Some(passed) = now.since(first).0.checked_sub(rule.ramp.0) else {
            return;
        };
        let second = usize::try_from(passed / NSEC_PER_SEC).unwrap_or(usize::MAX);
        if second >= self.values.len() {
            // All seconds before this second are complete.
            self.values.resize(second.min(1 << 24), 0.0);
            let seconds = usize::try_from(rule.seconds).unwrap_or(usize::MAX);
            if let Some(from) = self.values.len().checked_sub(seconds) {
                self.reached = steady(&rule, &self.values[from..]);
            }
            self.values.push(0.0);
        }
        if let Some(value) = self.values.last_mut() {
            *value += match rule.of {
                SteadyOf::Iops => 1.0,
                SteadyOf::Bandwidth => bytes as f64,
            };
        }
    }
}

/// Returns true if the values are steady.
fn steady(rule: &Steady, values: &[f64]) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let found = match rule.slope {
        true if values.len() < 2 => return false,
        true => {
            let middle = (n - 1.0) / 2.0;
            let x = |i: usize| i as f64 - middle;
            let xy: f64 = values.iter().enumerate().map(|(i, v)| x(i) * v).sum();
            let xx: f64 = (0..values.len()).map(|i| x(i) * x(i)).sum();
            (xy / xx).abs()
        }
        false => values.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max),
    };
    let found = if rule.percent {
        100.0 * found / mean
    } else {
        found
    };
    found < rule.limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(weight: u32) -> Option<Flow> {
        Some(Flow {
            id: 1,
            weight,
            sleep: Nanos::ZERO,
        })
    }

    #[test]
    fn calls_of_a_flow_are_in_proportion_to_the_weights() {
        let mut flows = Flows::default();
        let mut members = [flows.join(flow(3)), flows.join(flow(1))];
        let mut calls = [0; 2];
        for _ in 0..4000 {
            for (i, member) in members.iter_mut().enumerate() {
                calls[i] += u32::from(!flows.ahead(member));
            }
        }
        let share = f64::from(calls[0]) / f64::from(calls[1]);
        assert!((share - 3.0).abs() < 0.05, "{calls:?}");
        flows.leave(members[0]);
        assert!((0..100).all(|_| !flows.ahead(&mut members[1])), "alone");
    }

    #[test]
    fn depth_grows_until_calls_exceed_the_target() {
        let target = LatencyTarget {
            target: Nanos(1_000),
            window: Nanos(100),
            percentile: 99.0,
            run: false,
        };
        let job = Job {
            depth: 64,
            latency: Some(target),
            ..Job::default()
        };
        let mut depth = Depth::new(&job, Instant::START);
        let mut now = Instant::START;
        // Each call takes 100 ns for each call in flight, so that 10 calls are within the target.
        for _ in 0..1000 {
            if depth.found() {
                break;
            }
            now = now + Nanos(50);
            depth.begin();
            depth.count(now, Nanos(100 * depth.limit(64) as u64));
        }
        assert!(depth.found());
        assert!((9..=10).contains(&depth.limit(64)), "{}", depth.limit(64));
    }

    #[test]
    fn a_steady_rate_is_found_and_a_growing_rate_is_not() {
        let rule = Steady {
            of: SteadyOf::Iops,
            slope: true,
            limit: 1.0,
            percent: true,
            seconds: 5,
            ramp: Nanos::ZERO,
        };
        let run = |calls: &dyn Fn(u64) -> u64| {
            let mut s = Steadiness::new(Some(rule));
            for second in 0..20u64 {
                for i in 0..calls(second) {
                    s.count(
                        Instant::START + Nanos(second * NSEC_PER_SEC + i * 1000),
                        4096,
                    );
                }
            }
            s.reached()
        };
        assert!(run(&|_| 100));
        assert!(!run(&|s| 100 + 20 * s));
    }
}
