//! Properties of the CPU scheduling under random programs.

use super::super::rt::{Actor, Rt, Timer};
use proptest::prelude::*;
use seekwell_core::{Instant, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// Returns the length of a slice, ns.
fn slice_ns() -> u64 {
    4_000_000
}

/// A step of a program: it computes, then sleeps, for these times in ns. A time of 0 is skipped.
type Step = (u64, u64);

/// Programs on cores, and records of what happened.
struct Trial {
    rt: Rt,
    programs: Vec<VecDeque<Step>>,
    asleep: BTreeMap<(Instant, Actor), ()>,
    /// The last request of each actor: its instant, and the requested CPU time.
    asked: Vec<Option<(Instant, u64)>>,
    /// For each request: the actor, the instant, and by how many ns the request took longer than
    /// the requested CPU time.
    late: Vec<(Actor, Instant, u64)>,
    /// The actors that ran on each core, in order.
    ran: Vec<Vec<Actor>>,
    had: Vec<u64>,
}

impl Trial {
    fn new(cores: u16, programs: Vec<Vec<Step>>) -> Self {
        let turns = [slice_ns(), 6_000_000, 2_000_000];
        let mut rt = Rt::new(Instant::START, cores, turns, false, 1000);
        let n = programs.len();
        (0..n as Actor).for_each(|a| rt.add_actor(a));
        // The programs start one after the other at odd times, so that results do not depend on
        // equal times.
        let begin = |a: u64| (Instant::START + Nanos(1 + a * 10_007), a as Actor);
        Trial {
            rt,
            programs: programs.into_iter().map(VecDeque::from).collect(),
            asleep: (0..n as u64).map(|a| (begin(a), ())).collect(),
            asked: vec![None; n],
            late: Vec::new(),
            ran: vec![Vec::new(); usize::from(cores)],
            had: vec![0; n],
        }
    }
    /// Starts an actor's next step.
    fn start_next_step(&mut self, a: Actor) {
        let Some((ns, sleeps)) = self.programs[a as usize].front_mut() else {
            return;
        };
        if *ns > 0 {
            let ns = std::mem::take(ns);
            self.asked[a as usize] = Some((self.rt.now, ns));
            return self.rt.want_cpu(a, ns);
        }
        let at = self.rt.now + Nanos(*sleeps);
        self.programs[a as usize].pop_front();
        if at > self.rt.now {
            self.asleep.insert((at, a), ());
        } else {
            self.start_next_step(a);
        }
    }
    /// Processes the next instant. Returns false if there is none.
    fn instant(&mut self) -> bool {
        let wakes = self.asleep.first_key_value().map(|e| e.0.0);
        let Some(t) = self.rt.next_timer().into_iter().chain(wakes).min() else {
            return false;
        };
        self.rt.now = self.rt.now.max(t);
        let mut done = Vec::new();
        while let Some(timer) = self.rt.pop_due() {
            let Timer::Core(core) = timer else { continue };
            let runs = self.rt.cores[core as usize].runs;
            let seen = &mut self.ran[core as usize];
            if let Some(a) = runs
                && seen.last() != Some(&a)
            {
                seen.push(a);
            }
            done.extend(self.rt.core_event(core));
        }
        for a in done {
            let (since, ns) = self.asked[a as usize].take().expect("it asked");
            self.late.push((a, since, self.rt.now.since(since).0 - ns));
            self.had[a as usize] += ns;
            self.start_next_step(a);
        }
        while let Some(((at, a), ())) = self.asleep.pop_first() {
            if at > self.rt.now {
                self.asleep.insert((at, a), ());
                break;
            }
            self.start_next_step(a);
        }
        self.rt.settle();
        // No core is idle while an actor waits for one.
        assert!(self.rt.runq.is_empty() || self.rt.idle_cores.is_empty());
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every actor gets the time that it requested. No core is idle while an actor waits. The total
    /// time is not longer than the cores need.
    #[test]
    fn every_task_gets_its_cpu_time_and_no_core_idles(
        cores in 1u16..5,
        programs in proptest::collection::vec(
            proptest::collection::vec((0u64..9_000_000, 0u64..9_000_000), 0..12), 1..12),
    ) {
        let all: u64 = programs.iter().flatten().map(|s| s.0).sum();
        let mut t = Trial::new(cores, programs);
        while t.instant() {}
        prop_assert!(t.rt.runq.is_empty() && t.asked.iter().all(Option::is_none));
        prop_assert_eq!(t.had.iter().sum::<u64>(), all);
        prop_assert_eq!(t.rt.cpu_used, all);
        prop_assert_eq!(t.rt.busy_cores(), 0);
    }
    /// Programs that only compute, in pieces of any size, have equal CPU times at every instant,
    /// within one slice.
    #[test]
    fn compute_bound_tasks_get_equal_cpu_time(
        tasks in 2usize..7,
        pieces in proptest::collection::vec(1_000u64..3_000_000, 7),
    ) {
        let total = 60_000_000;
        let program = |i: usize| vec![(pieces[i], 0); (total / pieces[i]) as usize + 1];
        let mut t = Trial::new(1, (0..tasks).map(program).collect());
        // Run until the first program has received half of its time.
        while t.had.iter().all(|h| *h < total / 2) {
            prop_assert!(t.instant());
        }
        let (least, most) = (t.had.iter().min(), t.had.iter().max());
        let apart = most.unwrap_or(&0) - least.unwrap_or(&0);
        prop_assert!(apart <= 2 * slice_ns(), "{:?}", t.had);
        // Switches happen once per slice, not once per piece.
        let used: u64 = t.had.iter().sum();
        let switches = t.ran[0].len() as u64;
        prop_assert!(switches <= used / slice_ns() + tasks as u64 + 1, "{switches} in {used} ns");
    }
    /// An actor that sleeps most of the time never waits for actors that compute, for any size of
    /// their pieces.
    #[test]
    fn waking_task_with_little_cpu_time_runs_at_once(
        burners in 1usize..7,
        pieces in proptest::collection::vec(1_000u64..3_000_000, 7),
        sleeps in proptest::collection::vec(15_000_000u64..40_000_000, 20),
    ) {
        let mut programs = vec![sleeps.iter().map(|s| (50_000, *s)).collect::<Vec<Step>>()];
        let total = 900_000_000;
        programs.extend((0..burners).map(|i| vec![(pieces[i], 0); (total / pieces[i]) as usize]));
        let mut t = Trial::new(1, programs);
        // Before every actor has run once, no actor is ahead of another.
        let begun = Instant::START + Nanos(2 * slice_ns() * burners as u64);
        while t.instant() {}
        let late: Vec<u64> = (t.late.iter())
            .filter(|l| l.0 == 0 && l.1 > begun)
            .map(|l| l.2)
            .collect();
        prop_assert!(late.len() > 10 && late.iter().all(|l| *l == 0), "{late:?}");
    }
}
