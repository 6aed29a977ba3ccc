//! Merges arrivals with the events of a modelled disk, strictly in order of time.
//!
//! The caller provides the clock. The disk gets every bio at the time of its timestamp and never
//! earlier, even if [`Engine::run_to`] is called late. Otherwise, a late host would let the disk or
//! its scheduler choose among requests that had not arrived at that time. An operation starts when
//! the model has completed the previous operation, even if that completion is delivered late.

use seekwell_core::{Bio, BioDone, BioSink, Control, Instant, Nanos};
use std::collections::VecDeque;

/// A disk, and the bios that it has not received yet.
pub struct Engine<S> {
    sink: S,
    /// Bios that the disk has not received yet, with their timestamps, in order of time. The disk
    /// gets the control, if there is one, before the bio.
    coming: VecDeque<(Instant, Option<Control>, Bio)>,
    clock: Instant,
    raised: u64,
    raised_max: Nanos,
    inside: usize,
}

impl<S: BioSink> Engine<S> {
    /// Returns an engine for an idle disk.
    pub fn new(sink: S) -> Self {
        Engine {
            sink,
            coming: VecDeque::with_capacity(256),
            clock: Instant::default(),
            raised: 0,
            raised_max: Nanos::ZERO,
            inside: 0,
        }
    }

    /// Adds a bio that arrives at `at`. Timestamps should not decrease. If the model has run ahead
    /// (see [`Engine::run_to`]), a timestamp can be before the model's clock. It is then raised to
    /// the model's clock and counted.
    pub fn arrive(&mut self, at: Instant, bio: Bio) {
        self.arrive_told(at, None, bio);
    }
    /// Adds a bio as [`Engine::arrive`] does. At the same instant, before the bio, the disk gets
    /// the control `told`.
    pub fn arrive_told(&mut self, at: Instant, told: Option<Control>, bio: Bio) {
        let floor = self.coming.back().map_or(self.clock, |last| last.0);
        if at < floor {
            self.raised += 1;
            self.raised_max = self.raised_max.max(floor.since(at));
        }
        self.coming.push_back((at.max(floor), told, bio));
    }

    /// Processes all arrivals and events up to and including `to`. Appends the completions to `out`
    /// in order of time.
    ///
    /// The caller must already have added every bio with a timestamp up to `to`. The timestamp of a
    /// bio that is added later is raised.
    pub fn run_to(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        loop {
            let arrival = self.coming.front().map(|c| c.0).filter(|&t| t <= to);
            let event = self.sink.next_event().filter(|&t| t <= to);
            match (event, arrival) {
                // At the same instant, the disk completes commands before it gets new bios.
                (Some(e), a) if a.is_none_or(|a| e <= a) => {
                    self.clock = self.clock.max(e);
                    let before = out.len();
                    self.sink.advance(self.clock, out);
                    self.inside -= (out.len() - before).min(self.inside);
                }
                (_, Some(a)) => {
                    self.clock = self.clock.max(a);
                    if let Some((_, told, bio)) = self.coming.pop_front() {
                        if let Some(what) = told {
                            self.sink.control(self.clock, what);
                        }
                        self.inside += 1;
                        self.sink.submit(self.clock, bio);
                    }
                }
                _ => break,
            }
        }
        self.clock = self.clock.max(to);
    }

    /// Returns the time of the next event without new arrivals.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.coming.front().map(|c| c.0);
        match (self.sink.next_event(), arrival) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the number of raised timestamps, and the largest correction.
    pub fn raised(&self) -> (u64, Nanos) {
        (self.raised, self.raised_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::Served;
    use proptest::prelude::*;
    use seekwell_core::{Flags, Op, TaskId};
    use seekwell_device::open;
    use seekwell_sim::Setup;

    fn bio(id: u64, op: Op, sector: u64) -> Bio {
        let n = if op == Op::Flush { 0 } else { 8 };
        let flags = match op {
            Op::Write => Flags::SYNC,
            _ => Flags::empty(),
        };
        Bio::new(id, TaskId(id as u32 % 3), op, flags, sector, n)
    }

    /// Returns a disk, with a scheduler if a name is given.
    fn disk(spec: &str, scheduler: Option<&str>) -> Served {
        let device = open(spec, 7).expect("a device");
        let Some(name) = scheduler else {
            return Served::device(device);
        };
        let setup = Setup {
            device: spec.to_owned(),
            scheduler: name.to_owned(),
            // The default of twice the depth would be too few.
            nr_requests: (name != "none").then_some(64),
            ..Setup::default()
        };
        let queue = |d| setup.build_over(d).map(|q| Box::new(q) as Box<_>);
        Served::behind(device, queue).expect("a queue")
    }

    type Arrival = (Instant, Bio);

    /// Converts a list of (gap in ns, operation, position) to bios with timestamps.
    fn arrivals(list: &[(u64, u8, u64)]) -> Vec<Arrival> {
        let mut t = Instant::START;
        let mut all = Vec::new();
        for (id, &(gap, op, place)) in list.iter().enumerate() {
            t = t + Nanos(gap);
            let op = [Op::Read, Op::Write, Op::Read, Op::Flush][usize::from(op % 4)];
            all.push((t, bio(id as u64, op, place * 8)));
        }
        all
    }

    /// Returns the completions of an engine whose gaps between calls of `run_to` are `wakes`, ns.
    fn completions_of(disk: Served, stamps: &[Arrival], wakes: &[u64]) -> Vec<(u64, u64)> {
        let mut engine = Engine::new(disk.sink);
        let (mut now, mut next) = (Instant::START, 0);
        let mut out = Vec::new();
        for wake in wakes.iter().cycle().take(1_000_000) {
            now = now + Nanos(*wake);
            while next < stamps.len() && stamps[next].0 <= now {
                engine.arrive(stamps[next].0, stamps[next].1);
                next += 1;
            }
            engine.run_to(now, &mut out);
            if next == stamps.len() && engine.coming.is_empty() && engine.inside == 0 {
                break;
            }
        }
        assert_eq!(engine.raised().0, 0);
        out.iter().map(|d| (d.id.0, d.at.0)).collect()
    }

    /// Returns the completions that the simulator predicts: the queue alone, on virtual time.
    fn predicted(disk: Served, stamps: &[Arrival]) -> Vec<(u64, u64)> {
        let (mut queue, mut out) = (disk.sink, Vec::new());
        for (at, bio) in stamps {
            while let Some(e) = queue.next_event().filter(|e| e <= at) {
                queue.advance(e, &mut out);
            }
            queue.submit(*at, *bio);
        }
        while out.len() < stamps.len() {
            let e = queue.next_event().expect("work is left");
            queue.advance(e, &mut out);
        }
        out.iter().map(|d| (d.id.0, d.at.0)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Late wake-ups change no decision of the model.
        #[test]
        fn late_wake_ups_change_no_completion_time(
            list in proptest::collection::vec((0u64..20_000_000, 0u8..4, 0u64..40_000_000), 1..40),
            wakes in proptest::collection::vec(1u64..60_000_000, 1..8),
            ncq: bool,
        ) {
            let spec = if ncq { "hdd:hus728t8" } else { "hdd:hitachi-7k200" };
            let stamps = arrivals(&list);
            let punctual = completions_of(disk(spec, None), &stamps, &[50_000]);
            prop_assert_eq!(punctual.len(), list.len(), "each completes");
            let late = completions_of(disk(spec, None), &stamps, &wakes);
            prop_assert_eq!(punctual, late);
        }

        /// Late wake-ups change no decision of a scheduler: all completions are as the simulator
        /// predicts.
        #[test]
        fn scheduler_decides_as_simulated_despite_late_wake_ups(
            list in proptest::collection::vec((0u64..6_000_000, 0u8..4, 0u64..20_000_000), 1..40),
            wakes in proptest::collection::vec(1u64..60_000_000, 1..8),
            which in 0usize..6,
        ) {
            let names = ["cfq", "deadline", "noop", "mq-deadline", "bfq", "kyber"];
            let (spec, name) = ("hdd:hitachi-7k200", Some(names[which]));
            let stamps = arrivals(&list);
            let expected = predicted(disk(spec, name), &stamps);
            prop_assert_eq!(expected.len(), list.len(), "each completes");
            prop_assert_eq!(completions_of(disk(spec, name), &stamps, &wakes), expected);
        }
    }

    #[test]
    fn schedulers_reorder_a_backlog_differently() {
        // Random reads arrive together at a disk that serves one command at a time.
        let place = |i: u64| i * 7_919_011 % 20_000_000;
        let list: Vec<(u64, u8, u64)> = (0..30).map(|i| (1, 0, place(i))).collect();
        let stamps = arrivals(&list);
        let order = |name| -> Vec<u64> {
            let disk = disk("hdd:hitachi-7k200,depth=1", name);
            let done = completions_of(disk, &stamps, &[1_000_000]);
            done.iter().map(|d| d.0).collect()
        };
        let first_come: Vec<u64> = (0..30).collect();
        assert_eq!(order(None), first_come);
        assert_eq!(order(Some("none")), first_come);
        for name in ["deadline", "mq-deadline", "cfq"] {
            assert_ne!(order(Some(name)), first_come, "{name}");
        }
    }

    #[test]
    fn timestamp_before_the_model_time_is_raised_and_counted() {
        let spec = "constant:service_us=10,depth=4";
        let mut e = Engine::new(disk(spec, None).sink);
        let mut out = Vec::new();
        e.run_to(Instant::at_us(50), &mut out);
        e.arrive(Instant::at_us(20), bio(1, Op::Read, 0));
        e.run_to(Instant::at_us(100), &mut out);
        assert_eq!(out[0].at, Instant::at_us(60));
        assert_eq!(e.raised(), (1, Nanos::from_us(30)));
    }
}
