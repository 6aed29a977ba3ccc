//! Tests the complete procedure that users get. The conductor runs experiments block by block, in
//! its own order and with its stopping rule. The runs are simulated and have a known truth. Then
//! the analysis judges them. The bounds are valid for 1,000 experiments.

use crate::conductor::{carried_out, experiment, host, measured, one_thread};
use seekwell::{Cancel, Progress};
use seekwell_lab::analysis::analyse;
use seekwell_lab::conduct::{
    Conducted, How, Job, Measured, Memory, NoRun, Runner, Store, StoreError, conduct,
};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::{CellEnd, Ended, Method, MetricInfo, Outcome, Run, StopRule, Value};
use seekwell_lab::stats::Verdict;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run depends only on its specification, as in simulation; some fail, and some treatments
/// differ.
struct Pure;

fn mixed(key: u64) -> f64 {
    let mut z = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

impl Runner for Pure {
    fn run(&self, job: &Job, _: &Cancel, _: &mut dyn FnMut(Progress)) -> Result<Measured, NoRun> {
        let (c, b, t) = (
            job.key.cell as u64,
            u64::from(job.key.block),
            job.treatment as u64,
        );
        if mixed(c * 977 + b * 31 + t + 5) < 0.03 {
            return Err(NoRun::Failed("out of memory".into()));
        }
        let noise = (mixed(c * 1_000_003 + b * 101 + t) - 0.5) * 0.02 * (c % 7 + 1) as f64;
        let effect = if t == 1 { 0.04 * (c % 3) as f64 } else { 0.0 };
        Ok(measured(100.0 * libm::exp(noise + effect + 0.2 * mixed(b))))
    }
}

/// Stores runs until it is killed.
struct Mortal<'a> {
    runs: &'a mut Vec<Run>,
    left: u64,
}

impl Store for Mortal<'_> {
    fn completed(&mut self) -> Result<Vec<Run>, StoreError> {
        Ok(self.runs.clone())
    }
    fn add(&mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        if self.left == 0 {
            return Err(StoreError("killed".into()));
        }
        self.left -= 1;
        self.runs.push(ended.run.clone());
        Ok(())
    }
}

fn bytes(done: &Conducted, e: &Experiment, runs: Vec<Run>) -> String {
    let results = done.results(e, runs);
    let json = |v: Result<String, serde_json::Error>| v.expect("numbers and words");
    json(serde_json::to_string(&results)) + &json(serde_json::to_string(&analyse(&results)))
}

#[test]
fn any_number_of_threads_and_twenty_kills_give_the_same_bytes() {
    let e = experiment(12, 3, host());
    let whole = |threads| {
        let how = How {
            threads: Some(threads),
            ..How::default()
        };
        let mut store = Memory::default();
        let done = conduct(&e, &Pure, &mut store, &how).expect("memory");
        (
            bytes(&done, &e, store.runs.clone()),
            store.runs.len() as u64,
        )
    };
    let (one, n) = whole(1);
    assert_eq!(one, whole(2).0);
    assert_eq!(one, whole(7).0);
    let mut runs = Vec::new();
    let mut kills = 0;
    let done = loop {
        let left = match kills {
            20 => u64::MAX,
            k => (mixed(k) * n as f64 / 12.0) as u64,
        };
        let how = How {
            threads: Some(1 + kills as usize % 4),
            ..How::default()
        };
        match conduct(
            &e,
            &Pure,
            &mut Mortal {
                runs: &mut runs,
                left,
            },
            &how,
        ) {
            Ok(done) => break done,
            Err(_) => kills += 1,
        }
    };
    assert!(kills >= 12, "it was killed {kills} times");
    assert_eq!(runs.len() as u64, n, "no run is made twice");
    assert_eq!(one, bytes(&done, &e, runs));
    assert!(done.failed > 0, "some failed, and cost their pair only");
}

#[test]
fn cell_without_randomness_ends_after_three_blocks() {
    struct Exact;
    impl Runner for Exact {
        fn run(
            &self,
            job: &Job,
            _: &Cancel,
            _: &mut dyn FnMut(Progress),
        ) -> Result<Measured, NoRun> {
            Ok(measured(100.0 + 5.0 * job.treatment as f64))
        }
    }
    let (done, a) = carried_out(&experiment(1, 2, Method::default()), &Exact);
    assert_eq!(done.ended, [CellEnd::Met(3)]);
    let c = &a.cells[0];
    assert!(c.exact && c.winner == Some(1));
    assert_eq!(
        c.comparisons[0].words,
        "5 % ahead (exact: uses no randomness)"
    );
    assert_eq!(
        c.sentence,
        "s1 ahead, s0 5 % behind (exact: uses no randomness)"
    );
}

#[test]
fn failed_runs_are_recorded_and_removed_with_their_pair() {
    struct Fails;
    impl Runner for Fails {
        fn run(
            &self,
            job: &Job,
            c: &Cancel,
            p: &mut dyn FnMut(Progress),
        ) -> Result<Measured, NoRun> {
            match (job.treatment, job.key.block) {
                (2, _) => panic!("planted"),
                (1, 4) => Err(NoRun::Failed("no space".into())),
                _ => Pure.run(job, c, p),
            }
        }
    }
    let method = Method {
        stop: StopRule::Fixed,
        repeats_max: 8,
        ..host()
    };
    let mut e = experiment(2, 3, method);
    // In the second cell every run fails, so the conductor must give up the cell.
    e.cells[1].cell.treatments = vec![2];
    e.cells[1].cell.reference = 2;
    e.cells[1].specs.truncate(1);
    struct Second;
    impl Runner for Second {
        fn run(
            &self,
            job: &Job,
            c: &Cancel,
            p: &mut dyn FnMut(Progress),
        ) -> Result<Measured, NoRun> {
            match job.key.cell {
                1 => Err(NoRun::Failed("there is no such file".into())),
                _ => Fails.run(job, c, p),
            }
        }
    }
    let mut store = Memory::default();
    let done = conduct(&e, &Second, &mut store, &one_thread()).expect("memory");
    assert_eq!(done.ended, [CellEnd::Most(8), CellEnd::Failing(1)]);
    let results = done.results(&e, store.runs);
    let a = analyse(&results);
    let side = |t: usize| {
        a.cells[0]
            .sides
            .iter()
            .find(|s| s.treatment == t)
            .expect("a side")
    };
    assert_eq!(side(2).failed, 8);
    let c = &a.cells[0].comparisons;
    assert!(c[0].n >= 6 && c[0].dropped >= 1, "{c:?}");
    assert_eq!(c[1].n, 0, "nothing of it, and no claim");
    assert_eq!(c[1].verdict, Verdict::CannotTell);
    let why = results
        .runs
        .iter()
        .find(|r| r.key.treatment == 2 && r.key.cell == 0);
    assert!(
        matches!(&why.expect("a row").outcome, Outcome::Failed(w) if w.contains("internal error"))
    );
}

#[test]
fn budget_ends_after_a_whole_block_and_cancel_ends_at_once() {
    struct Slow(AtomicU64, Cancel, u64);
    impl Runner for Slow {
        fn run(
            &self,
            job: &Job,
            c: &Cancel,
            p: &mut dyn FnMut(Progress),
        ) -> Result<Measured, NoRun> {
            if self.0.fetch_add(1, Ordering::Relaxed) + 1 == self.2 {
                self.1.set();
            }
            if c.is_set() {
                return Err(NoRun::Cut("stopped".into(), None));
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
            Pure.run(job, c, p)
        }
    }
    let method = Method {
        budget_s: Some(0),
        ..host()
    };
    let e = experiment(5, 3, method);
    let mut store = Memory::default();
    let runner = Slow(AtomicU64::new(0), Cancel::new(), u64::MAX);
    let done = conduct(&e, &runner, &mut store, &one_thread()).expect("memory");
    assert!(done.out_of_budget && !done.cancelled && !done.finished());
    let blocks: u32 = done
        .ended
        .iter()
        .map(|e| match e {
            CellEnd::Cut(n) => *n,
            e => panic!("{e:?}"),
        })
        .sum();
    assert_eq!(store.runs.len() as u32, 3 * blocks, "whole blocks only");
    // If the experiment is cancelled in the middle of a block, the runs of the block are kept, and
    // the block is completed later.
    let e = experiment(5, 3, host());
    let cancel = Cancel::new();
    let runner = Slow(AtomicU64::new(0), cancel.clone(), 5);
    let how = How {
        cancel,
        ..one_thread()
    };
    let mut store = Memory::default();
    let done = conduct(&e, &runner, &mut store, &how).expect("memory");
    assert!(
        done.cancelled && store.runs.len() == 4,
        "{}",
        store.runs.len()
    );
    let done = conduct(&e, &Pure, &mut store, &one_thread()).expect("memory");
    assert!(done.finished() && done.found == 4);
    let mut fresh = Memory::default();
    let straight = conduct(&e, &Pure, &mut fresh, &one_thread()).expect("memory");
    assert_eq!(
        bytes(&done, &e, store.runs),
        bytes(&straight, &e, fresh.runs)
    );
}

#[test]
fn conducting_and_analysing_a_run_costs_little_cpu_time() {
    let method = Method {
        stop: StopRule::Fixed,
        repeats_max: 10,
        ..host()
    };
    let e = experiment(250, 4, method);
    let before = cpu_s();
    let mut store = Memory::default();
    let done = conduct(&e, &Pure, &mut store, &one_thread()).expect("memory");
    let conducted = cpu_s();
    let results = done.results(&e, store.runs);
    let a = analyse(&results);
    let n = results.runs.len() as f64;
    println!(
        "{n} runs: {:.3} ms of CPU a run to conduct, {:.3} ms to analyse",
        1e3 * (conducted - before) / n,
        1e3 * (cpu_s() - conducted) / n
    );
    assert_eq!((results.runs.len(), a.cells.len()), (10_000, 250));
}

/// CPU time of the process, in seconds.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |i: usize| {
        fields
            .get(i)
            .and_then(|f| f.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

/// Under the first treatment, a run ends after about 25 s. Under the second, every run reaches its
/// limit of 600 s.
struct Starves;

impl Runner for Starves {
    fn run(&self, job: &Job, _: &Cancel, _: &mut dyn FnMut(Progress)) -> Result<Measured, NoRun> {
        let censored = job.treatment > 0;
        let noise = f64::from(job.key.block * 7 % 5) / 20.0;
        let time_s = if censored { 600.0 } else { 25.0 + noise };
        let duration = MetricInfo {
            name: seekwell_lab::conduct::DURATION.into(),
            unit: "s".into(),
            ..MetricInfo::default()
        };
        // The run that reached its limit has not finished its work, and therefore looks fast.
        let mut m = measured(if censored { 900.0 } else { 100.0 });
        m.values.push(Value {
            metric: duration.into(),
            value: time_s,
            n: 100,
        });
        m.duration_ns = (time_s * 1e9) as u64;
        m.early = censored.then(|| "stopped at the time limit of 600 s".into());
        m.censored = censored;
        Ok(m)
    }
}

#[test]
fn treatment_at_its_limit_is_judged_and_ends_its_cell() {
    let e = experiment(1, 2, host());
    let mut store = Memory::default();
    let done = conduct(&e, &Starves, &mut store, &one_thread()).expect("memory");
    assert_eq!(done.ended, [CellEnd::Met(6)]);
    assert_eq!(done.failed, 0);
    let a = analyse(&done.results(&e, store.runs));
    let cell = &a.cells[0];
    assert_eq!(cell.winner, Some(0));
    let c = &cell.comparisons[0];
    assert_eq!(c.verdict, Verdict::Worse);
    assert!(
        c.words.starts_with("at least 24 times behind"),
        "{}",
        c.words
    );
    let group = &a.groups[0];
    assert_eq!((group.decision.as_str(), group.pick), ("keep", Some(0)));
    assert!(group.scores.iter().any(|s| s.treatment == 1 && s.at_least));
    // If all runs reach the limit, three blocks are enough to see it. Then only the time is known.
    let mut both = experiment(1, 2, host());
    both.cells[0].cell.primary = MetricInfo::default();
    struct All;
    impl Runner for All {
        fn run(
            &self,
            job: &Job,
            c: &Cancel,
            p: &mut dyn FnMut(Progress),
        ) -> Result<Measured, NoRun> {
            let job = Job {
                treatment: 1,
                ..job.clone()
            };
            Starves.run(&job, c, p)
        }
    }
    let mut store = Memory::default();
    let done = conduct(&both, &All, &mut store, &one_thread()).expect("memory");
    assert_eq!(done.ended, [CellEnd::Met(3)]);
    assert_eq!(done.primary[0].name, seekwell_lab::conduct::DURATION);
    let a = analyse(&done.results(&both, store.runs));
    assert_eq!(a.cells[0].comparisons[0].verdict, Verdict::CannotTell);
    assert_eq!(a.cells[0].winner, None);
}
