//! Observes a run at intervals of simulated time, and switches the scheduler between them.

use super::exec::World;
use crate::setup::{Setup, SetupError};
use seekwell_core::result::{Direction, Record};
use seekwell_core::{Instant, Nanos};

/// The bios of one direction.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// The bios that completed in the interval.
    pub done: Direction,
    /// Number of bios in the queue or in the device at the end of the interval.
    pub waiting: u64,
}

/// What happened in an interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Length of the interval.
    pub span: Nanos,
    /// The reads.
    pub read: Way,
    /// The writes.
    pub write: Way,
    /// Time in which the device was busy.
    pub busy: Nanos,
    /// Integral over time of the number of bios in progress, ns.
    pub outstanding_ns: u128,
}

/// A run between two intervals.
pub struct Paused<'a>(&'a World);

impl Paused<'_> {
    /// Starts a switch to the scheduler and the tunables of another setup. The switch ends when the
    /// queue is empty.
    ///
    /// # Errors
    /// The queue cannot have this scheduler.
    pub fn switch(&self, to: &Setup) -> Result<(), SetupError> {
        let switched = self.0.meter().switch(self.0.now, to);
        self.0.kernel.disk_changed();
        switched
    }
    /// Adds the device, the active scheduler and the limits of the queue to a record.
    pub fn describe(&self, record: &mut Record) {
        self.0.meter().describe(record);
    }
}

/// Called when the workload's clock starts, and at the end of each interval. Returns the length of
/// the next interval; `None` ends the run.
pub type Each<'a> = &'a mut dyn FnMut(Interval, &Paused<'_>) -> Option<Nanos>;

/// Calls the receiver of the intervals.
pub(super) struct Laps<'a> {
    each: Option<Each<'a>>,
    /// Start of the present interval.
    from: Option<Instant>,
    /// End of the present interval.
    pub(super) at: Instant,
}

impl<'a> Laps<'a> {
    pub(super) fn new(each: Option<Each<'a>>) -> Self {
        Laps {
            at: match each {
                Some(_) => Instant::START,
                None => Instant::FAR,
            },
            each,
            from: None,
        }
    }
    /// Returns the end of the present interval.
    #[inline]
    pub(super) fn end(&self, w: &World) -> Instant {
        // Before the clock starts, there is no interval.
        match w.clock_start {
            Some(_) => self.at,
            None => Instant::FAR,
        }
    }
    /// Ends the present interval. Returns false if the run should end.
    #[cold]
    pub(super) fn next(&mut self, w: &World) -> bool {
        let (Some(each), Some(start)) = (&mut self.each, w.clock_start) else {
            return true;
        };
        let span = w.now.since(self.from.unwrap_or(start));
        let next = each(w.meter().interval(w.now, span), &Paused(w));
        self.from = Some(w.now);
        self.at = w.now + next.unwrap_or(Nanos::ZERO);
        next.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Beside, Drive, Ran, WorldSetup, run_beside};
    use seekwell_workload::Plan;

    fn setup(scheduler: &str, tunables: &[(&str, &str)]) -> Setup {
        let tunables = tunables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Setup {
            device: "hdd:hitachi-7k200".to_owned(),
            scheduler: scheduler.to_owned(),
            tunables: tunables.collect(),
            ..Setup::default()
        }
    }

    fn run(each: Option<Each<'_>>) -> Ran {
        let world = WorldSetup::new(setup("mq-deadline", &[])).expect("a scheduler");
        let plan = "interactive:seconds=5s,size=64m,bulk=64m";
        let plan = Plan::new(plan, &[]).expect("a workload");
        let mut drive = Drive::open(&world.setup).expect("a disk");
        let beside = Beside {
            each,
            ..Beside::default()
        };
        run_beside(&plan, &world, &mut drive, beside).expect("it runs")
    }

    #[test]
    fn observation_changes_nothing_and_the_intervals_are_the_whole_run() {
        let plain = run(None);
        let mut all = Vec::new();
        let mut each = |i: Interval, _: &Paused<'_>| {
            all.push(i);
            Some(Nanos::from_ms(700))
        };
        let seen = run(Some(&mut each));
        assert_eq!(seen.record.duration_ns, plain.record.duration_ns);
        assert_eq!(seen.record.requests, plain.record.requests);
        assert_eq!(
            all[0].span,
            Nanos::ZERO,
            "the first call begins the first interval"
        );
        assert!(all[1..].iter().all(|i| i.span == Nanos::from_ms(700)));
        // The record has the rest, after the last whole interval.
        for (part, rest, whole) in [
            (0, &seen.record.read, &plain.record.read),
            (1, &seen.record.write, &plain.record.write),
        ] {
            let done = all.iter().map(|i| [&i.read.done, &i.write.done][part]);
            let sum = |of: fn(&Direction) -> u64| done.clone().map(of).sum::<u64>() + of(rest);
            assert_eq!(sum(|d| d.ios), whole.ios);
            assert_eq!(sum(|d| d.bytes), whole.bytes);
            assert_eq!(sum(|d| d.latency.count()), whole.latency.count());
        }
        assert!(
            all.iter()
                .any(|i| i.write.waiting > 0 && i.outstanding_ns > 0)
        );
        let busy: u64 = all.iter().map(|i| i.busy.0).sum();
        assert!(busy > 0 && busy <= plain.record.duration_ns);
    }

    #[test]
    fn switched_scheduler_has_its_tunables_and_no_others() {
        let all = [
            setup("bfq", &[("low_latency", "0")]),
            setup("mq-deadline", &[("fifo_batch", "3")]),
            setup("mq-deadline", &[]),
        ];
        let mut names = Vec::new();
        let mut each = |_: Interval, paused: &Paused<'_>| {
            let mut record = Record::default();
            paused.describe(&mut record);
            let t = record.scheduler.tunables;
            let show = |name: &str| t.get(name).cloned();
            names.push((show("low_latency"), show("fifo_batch")));
            let to = &all[names.len() % 3];
            paused.switch(to).expect("allowed");
            Some(Nanos::from_secs(1))
        };
        let ran = run(Some(&mut each));
        let text = |of: &str| Some(of.to_owned());
        assert_eq!(
            names[..4],
            [
                (None, text("16")),
                (None, text("3")),
                (None, text("16")),
                (text("0"), None),
            ]
        );
        assert!(ran.record.read.ios + ran.record.write.ios > 0);
    }

    #[test]
    fn impossible_switches_are_refused_and_change_nothing() {
        let mut refused = Vec::new();
        let mut each = |_: Interval, paused: &Paused<'_>| {
            for to in [
                setup("cfq", &[]),
                setup("bfq", &[("no_such", "1")]),
                setup("bfq", &[("wbt_lat_usec", "0")]),
            ] {
                refused.push(paused.switch(&to).expect_err("refused").to_string());
            }
            Some(Nanos::from_secs(9))
        };
        let ran = run(Some(&mut each));
        let whole = run(None);
        for (e, why) in refused
            .iter()
            .zip(["single-queue", "no_such", "affects the later ones"])
        {
            assert!(e.contains(why), "{e}");
        }
        assert_eq!(ran.record.read.ios, whole.record.read.ios);
    }

    #[test]
    fn observer_ends_the_run() {
        let mut n = 0;
        let mut each = |_: Interval, _: &Paused<'_>| {
            n += 1;
            (n < 3).then_some(Nanos::from_secs(1))
        };
        let ran = run(Some(&mut each));
        assert!(ran.stopped.is_some_and(|w| w.contains("observer")));
        assert!(n == 3 && ran.record.duration_ns < run(None).record.duration_ns);
    }
}
