//! The guard of a trial. It ends a period in which a scheduler makes the work much worse.

use super::Figure;
use seekwell_host::observe::{Interval, Side};

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
    /// Whether reads, and writes, completed in each second of the baseline.
    steady: [bool; 2],
    /// Time since the last value of the figure, ns. Slow metrics have no value in most intervals.
    since_value_ns: u64,
    worse_ns: u64,
    worst: f64,
}

impl Guard {
    /// Returns a guard. `baseline` is the value of the figure in the baseline. If it is not above 0,
    /// the guard only ends periods in which no request completes. `steady`: whether reads, and
    /// writes, completed in each second of the baseline.
    pub fn new(rule: GuardRule, figure: Figure, baseline: f64, steady: [bool; 2]) -> Guard {
        Guard {
            rule,
            figure,
            baseline,
            steady,
            since_value_ns: 0,
            worse_ns: 0,
            worst: 1.0,
        }
    }

    /// Takes the next interval. Returns the reason if the period must end. If requests of the
    /// figure's direction wait and none completes, the interval counts as worse. An interval
    /// without any request counts as good.
    pub fn take(&mut self, i: &Interval) -> Option<String> {
        let active = i.read.ios + i.write.ios + i.read.in_flight + i.write.in_flight + i.waiting;
        // The kernel does not say which requests wait in the scheduler. If a direction completed
        // requests in each second of the baseline, and none while others are served, it starves.
        let starved =
            |s: &Side, steady: bool| s.ios == 0 && (s.in_flight > 0 || (steady && active > 0));
        let sides = [(&i.read, self.steady[0]), (&i.write, self.steady[1])];
        let sides = match self.figure {
            Figure::ReadMean | Figure::ReadP99 => &sides[..1],
            Figure::WriteMean | Figure::WriteP99 => &sides[1..],
            _ => &sides[..],
        };
        let idle = active == 0;
        self.since_value_ns += i.span_ns;
        let times = match self.figure.value(i).filter(|v| v.is_finite()) {
            _ if sides.iter().any(|(s, steady)| starved(s, *steady)) => f64::INFINITY,
            _ if idle => 1.0,
            Some(v) if self.baseline > 0.0 => self.figure.times_worse(v, self.baseline),
            // A metric of the user was not read in this interval, or no request of the direction was
            // made. Only the former has a value for several intervals.
            _ => {
                if !matches!(self.figure, Figure::User(..)) {
                    self.since_value_ns = 0;
                }
                return None;
            }
        };
        let span_ns = std::mem::take(&mut self.since_value_ns);
        if times < self.rule.times {
            (self.worse_ns, self.worst) = (0, 1.0);
            return None;
        }
        self.worse_ns += span_ns;
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
    use seekwell_host::observe::UserMetric;

    fn second(mean_ms: u64, ios: u64, in_flight: u64) -> Interval {
        Interval {
            span_ns: 1_000_000_000,
            read: Side {
                ios,
                wait_ns: ios * mean_ms * 1_000_000,
                in_flight,
                ..Side::default()
            },
            ..Interval::default()
        }
    }

    #[test]
    fn guard_needs_the_whole_time_without_a_break() {
        let mut g = Guard::new(GuardRule::default(), Figure::ReadMean, 2.0, [false; 2]);
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
        let mut g = Guard::new(GuardRule::default(), Figure::ReadMean, 2.0, [false; 2]);
        assert!((0..20).all(|_| g.take(&second(0, 0, 0)).is_none()));
        let stalled = (0..5).find_map(|_| g.take(&second(0, 0, 3)));
        assert!(stalled.expect("a stall").contains("nothing completed"));
    }

    #[test]
    fn starved_reads_trip_the_guard_although_writes_complete() {
        let starved = |direction: usize| {
            let mut i = second(0, 0, 0);
            let sides = [&mut i.read, &mut i.write];
            for (n, side) in sides.into_iter().enumerate() {
                match n == direction {
                    true => side.in_flight = 3,
                    false => (side.ios, side.wait_ns) = (50, 50_000_000),
                }
            }
            i
        };
        let trips = |figure: Figure, direction: usize| {
            let mut g = Guard::new(GuardRule::default(), figure, 1.0, [false; 2]);
            (0..5).any(|_| g.take(&starved(direction)).is_some())
        };
        assert!(trips(Figure::ReadMean, 0) && !trips(Figure::ReadMean, 1));
        assert!(trips(Figure::WriteMean, 1) && !trips(Figure::WriteMean, 0));
        assert!(trips(Figure::Iops, 0) && trips(Figure::Iops, 1));
    }

    #[test]
    fn idle_second_is_a_good_second() {
        let mut g = Guard::new(GuardRule::default(), Figure::ReadMean, 2.0, [false; 2]);
        for _ in 0..5 {
            assert!((0..4).all(|_| g.take(&second(8, 10, 1)).is_none()));
            assert_eq!(g.take(&second(0, 0, 0)), None);
        }
    }

    #[test]
    fn bad_value_of_a_slow_metric_stands_for_the_time_since_the_last_value() {
        let metric = UserMetric::parse("value,lower,name=lag:cat /nowhere").expect("a metric");
        let mut g = Guard::new(
            GuardRule::default(),
            Figure::User(0, metric),
            1.0,
            [false; 2],
        );
        let with = |value: Option<f64>| Interval {
            user: vec![value.map(|v| (v, 1.0))],
            ..second(1, 10, 0)
        };
        assert!((0..5).all(|_| g.take(&with(None)).is_none()));
        assert!(g.take(&with(Some(9.0))).is_some(), "6 s");
    }

    #[test]
    fn reads_held_in_the_scheduler_trip_the_guard_if_the_baseline_had_reads_in_each_second() {
        let writes = Interval {
            waiting: 9,
            write: second(1, 50, 1).read,
            ..second(0, 0, 0)
        };
        let trips = |steady: bool| {
            let rule = GuardRule::default();
            let mut g = Guard::new(rule, Figure::ReadMean, 2.0, [steady, true]);
            (0..5).any(|_| g.take(&writes).is_some())
        };
        assert!(trips(true) && !trips(false));
    }

    #[test]
    fn one_slow_request_after_a_pause_is_one_bad_second() {
        let mut g = Guard::new(GuardRule::default(), Figure::ReadMean, 2.0, [false; 2]);
        let writes = Interval {
            write: second(1, 50, 1).read,
            ..second(0, 0, 0)
        };
        for _ in 0..4 {
            assert_eq!(g.take(&writes), None);
        }
        assert_eq!(g.take(&second(9, 1, 0)), None);
    }
}
