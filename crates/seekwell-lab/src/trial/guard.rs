//! The guard of a trial. It ends a period in which a scheduler makes the work much worse.

use super::Figure;
use seekwell_host::observe::Interval;

/// When the guard ends a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuardRule {
    /// The figure is this many times worse than in the baseline.
    pub times: f64,
    /// For this time without a break, s.
    pub for_s: f64,
}

impl Default for GuardRule {
    fn default() -> Self {
        GuardRule {
            times: 3.0,
            for_s: 5.0,
        }
    }
}

/// Watches one period.
#[derive(Clone, Debug)]
pub struct Guard {
    rule: GuardRule,
    figure: Figure,
    baseline: f64,
    worse_ns: u64,
    worst: f64,
}

impl Guard {
    /// Returns a guard. `baseline` is the value of the figure in the baseline. If it is not above 0,
    /// the guard only ends periods in which no request completes.
    pub fn new(rule: GuardRule, figure: Figure, baseline: f64) -> Guard {
        Guard {
            rule,
            figure,
            baseline,
            worse_ns: 0,
            worst: 1.0,
        }
    }

    /// Takes the next interval. Returns the reason if the period must end. If requests wait in the
    /// device and none completes, the interval counts as worse. An idle interval does not count.
    pub fn take(&mut self, i: &Interval) -> Option<String> {
        let idle = i.read.ios + i.write.ios == 0;
        let times = match self.figure.value(i) {
            _ if idle && i.in_flight > 0 => f64::INFINITY,
            Some(v) if !idle && v.is_finite() && self.baseline > 0.0 => {
                self.figure.times_worse(v, self.baseline)
            }
            // The programs do nothing, or a slow metric was not read in this interval.
            _ => return None,
        };
        if times < self.rule.times {
            (self.worse_ns, self.worst) = (0, 1.0);
            return None;
        }
        self.worse_ns += i.span_ns;
        self.worst = self.worst.max(times);
        (self.worse_ns as f64 >= self.rule.for_s * 1e9).then(|| {
            let how = match self.worst.is_finite() {
                true => format!("worst second: {:.1} times", self.worst),
                false => "in some seconds, nothing completed".to_owned(),
            };
            format!(
                "the guard ended the period: {} was at least {} times worse than the baseline for \
                 {} s ({how})",
                self.figure.name(),
                self.rule.times,
                self.rule.for_s
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_host::observe::Side;

    fn second(mean_ms: u64, ios: u64, in_flight: u64) -> Interval {
        Interval {
            span_ns: 1_000_000_000,
            read: Side {
                ios,
                wait_ns: ios * mean_ms * 1_000_000,
                ..Side::default()
            },
            in_flight,
            ..Interval::default()
        }
    }

    #[test]
    fn guard_needs_the_whole_time_without_a_break() {
        let mut g = Guard::new(GuardRule::default(), Figure::ReadMean, 2.0);
        for _ in 0..4 {
            assert_eq!(g.take(&second(6, 10, 1)), None);
        }
        assert_eq!(g.take(&second(5, 10, 1)), None, "2.5 times is allowed");
        for _ in 0..4 {
            assert_eq!(g.take(&second(8, 10, 1)), None);
        }
        let why = g.take(&second(7, 10, 1)).expect("five seconds");
        assert!(
            why.contains("read mean") && why.contains("worst second: 4.0 times"),
            "{why}"
        );
    }

    #[test]
    fn stalled_device_trips_the_guard_and_an_idle_one_does_not() {
        let mut g = Guard::new(GuardRule::default(), Figure::ReadMean, 2.0);
        assert!((0..20).all(|_| g.take(&second(0, 0, 0)).is_none()));
        let stalled = (0..5).find_map(|_| g.take(&second(0, 0, 3)));
        assert!(stalled.expect("a stall").contains("nothing completed"));
    }
}
