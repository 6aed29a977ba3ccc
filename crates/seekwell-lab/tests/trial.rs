//! Trials on machines of known truth: no scheduler differs, one differs by a known effect, or each
//! period disturbs the next. The shipped runner, conductor and analysis are used.
//!
//! `SEEKWELL_TRIALS=1000` makes as many trials as the table in docs/trial.md.

use rand::Rng;
use rand_pcg::Pcg64Mcg;
use seekwell::{Cancel, DeviceSpec, RunSpec, SchedulerSpec, Substrate};
use seekwell_core::rng::stream;
use seekwell_host::observe::{Interval, Side};
use seekwell_lab::analysis::{Analysis, analyse};
use seekwell_lab::conduct::{How, Job, Memory, Runner, Store, conduct};
use seekwell_lab::experiment::{CellPlan, Deciding, Experiment, Primary};
use seekwell_lab::results::{About, Cell, Method, RunKey, StopRule, Treatment};
use seekwell_lab::stats::{Better, paired, welch_log};
use seekwell_lab::trial::{
    Baseline, Bed, CarryOver, Figure, GuardRule, Length, Periods, SimBed, baseline, judge,
    own_work, simulated_design,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    /// Every second is independent, with a standard deviation of 30 %.
    Independent,
    /// AR(1) with 0.95 from second to second, and a standard deviation of 30 %.
    Autocorrelated,
    /// Independent, and the latency rises by 60 % per hour.
    Drifting,
    /// Independent, and every two minutes on average a burst of 5 to 60 s triples the latency.
    Bursty,
    /// Independent, and a swing of 40 % with a period of half an hour.
    Swing,
}

const ALL: [Noise; 5] = [
    Noise::Independent,
    Noise::Autocorrelated,
    Noise::Drifting,
    Noise::Bursty,
    Noise::Swing,
];

struct State {
    rng: Pcg64Mcg,
    second: u32,
    level: f64,
    burst: u32,
    scheduler: usize,
    before: usize,
    forced: bool,
}

/// A machine whose read latency follows a noise model.
struct Machine {
    noise: Noise,
    /// Logarithm of the effect of the second scheduler.
    effect: f64,
    /// Part of the previous scheduler's disturbance that remains, as a logarithm.
    carried: f64,
    state: Mutex<State>,
    /// Number of times that the settings of before the trial were set.
    originals: AtomicU32,
}

impl Machine {
    fn new(noise: Noise, effect: f64, carried: f64, seed: u64) -> Self {
        let mut rng = stream(seed, "trial");
        let level = 0.3 * normal(&mut rng);
        Machine {
            noise,
            effect,
            carried,
            originals: AtomicU32::new(0),
            state: Mutex::new(State {
                second: rng.random_range(0..1800),
                rng,
                level,
                burst: 0,
                scheduler: 0,
                before: 0,
                forced: true,
            }),
        }
    }
}

fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let (a, b) = (rng.random_range(f64::EPSILON..1.0), rng.random::<f64>());
    libm::sqrt(-2.0 * libm::log(a)) * libm::cos(std::f64::consts::TAU * b)
}

impl Bed for Machine {
    fn set(&self, spec: &RunSpec) -> Result<(), String> {
        let mut s = self.state.lock().expect("not poisoned");
        s.before = s.scheduler;
        s.scheduler = usize::from(spec.scheduler.name == "bfq");
        Ok(())
    }
    fn set_original(&self, spec: &RunSpec) -> Result<Vec<String>, String> {
        self.originals.fetch_add(1, Ordering::Relaxed);
        self.set(spec)
            .map(|()| vec!["sda: read_expire is 123".to_owned()])
    }
    fn wait(&self, _: f64, _: &Cancel) {}
    fn since_last(&self, user: bool) -> Interval {
        let mut s = self.state.lock().expect("not poisoned");
        // A forced reading without a wait has no time.
        if user && s.forced {
            s.forced = false;
            return Interval::default();
        }
        s.forced = user;
        s.second += 1;
        let draw = normal(&mut s.rng);
        let t = f64::from(s.second);
        let log = match self.noise {
            Noise::Independent => 0.3 * draw,
            Noise::Autocorrelated => {
                s.level = 0.95 * s.level + 0.3 * libm::sqrt(1.0 - 0.95 * 0.95) * draw;
                s.level
            }
            Noise::Drifting => 0.3 * draw + 0.47 * t / 3600.0,
            Noise::Bursty => {
                if s.burst == 0 && s.rng.random::<f64>() < 1.0 / 120.0 {
                    s.burst = s.rng.random_range(5..60);
                }
                let busy = s.burst > 0;
                s.burst = s.burst.saturating_sub(1);
                0.1 * draw + if busy { libm::log(3.0) } else { 0.0 }
            }
            Noise::Swing => 0.3 * draw + 0.4 * libm::sin(t * std::f64::consts::TAU / 1800.0),
        };
        let mut log = log + self.effect * s.scheduler as f64;
        // The scheduler before this one left the caches or the queue in another state.
        if s.before == 1 {
            log += self.carried;
        }
        let ms = 5.0 * libm::exp(log);
        Interval {
            span_ns: 1_000_000_000,
            read: Side {
                ios: 100,
                bytes: 409_600,
                wait_ns: (100.0 * ms * 1e6) as u64,
                in_flight: 2,
                ..Side::default()
            },
            ..Interval::default()
        }
    }
}

const LENGTH: Length = Length {
    period_s: 30.0,
    washout_s: 5.0,
    blocks: 20,
    noise: None,
};

fn experiment(seed: u64, stop: StopRule) -> Experiment {
    let figures = [Figure::ReadMean];
    let work = own_work(&LENGTH, &figures);
    let specs = ["mq-deadline", "bfq"].map(|name| RunSpec {
        substrate: Substrate::Host,
        seed,
        ..RunSpec::new(
            DeviceSpec::default(),
            SchedulerSpec {
                name: name.to_owned(),
                ..SchedulerSpec::default()
            },
            work.spec.clone(),
        )
    });
    let treatments = specs.iter().map(|s| Treatment {
        label: s.scheduler.name.clone(),
        scheduler: s.scheduler.name.clone(),
        ..Treatment::default()
    });
    let mut e = Experiment {
        about: About {
            paired: true,
            method: Method {
                seed,
                stop,
                repeats_min: 6,
                repeats_max: LENGTH.blocks,
                warmup_s: Some(0.0),
                ..Method::default()
            },
            ..About::default()
        },
        treatments: treatments.collect(),
        cells: vec![CellPlan {
            cell: Cell {
                name: "disk / own work".to_owned(),
                substrate: "host".to_owned(),
                treatments: vec![0, 1],
                ..Cell::default()
            },
            deciding: Deciding::alone(Primary::Own),
            specs: specs.to_vec(),
        }],
        text: String::new(),
        design: Default::default(),
    };
    judge(&mut e, &figures);
    e
}

fn trial(machine: &Machine, seed: u64, stop: StopRule) -> Analysis {
    followed(machine, seed, stop).0
}

fn followed(machine: &Machine, seed: u64, stop: StopRule) -> (Analysis, Option<CarryOver>) {
    let e = experiment(seed, stop);
    let figures = [Figure::ReadMean];
    let base = Baseline::default();
    let original = e.cells[0].specs[0].clone();
    let periods = Periods::new(machine, LENGTH, &figures, None, &base, original, &());
    let mut store = Memory::default();
    let how = How {
        threads: Some(1),
        ..How::default()
    };
    let done = conduct(&e, &periods, &mut store, &how).expect("stored");
    let results = done.results(&e, store.completed().expect("kept"));
    (analyse(&results), periods.carry_over())
}

fn trials(quick: usize) -> usize {
    let asked = std::env::var("SEEKWELL_TRIALS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(quick)
}

/// Returns whether the naive method claims a difference: half an hour of one scheduler, then of the
/// other, compared second by second.
fn naive_claims(machine: &Machine) -> bool {
    let half = |scheduler: usize| -> Vec<f64> {
        machine.state.lock().expect("not poisoned").scheduler = scheduler;
        let all = (0..700).map(|_| machine.since_last(false));
        all.filter_map(|i| Figure::ReadMean.value(&i)).collect()
    };
    let (a, b) = (half(0), half(1));
    let w = welch_log(&b, &a);
    w.is_some_and(|w| w.p.is_some_and(|p| p < 0.05))
}

#[test]
fn trial_makes_few_false_claims_and_its_intervals_cover_the_truth() {
    let n = trials(60);
    println!("{n} trials for each row, 20 blocks of 2 periods of 30 s");
    println!("noise | false claims | ... before/after | cover of -10 % | found");
    for noise in ALL {
        let (mut claims, mut naive, mut covered, mut found) = (0, 0, 0, 0);
        for seed in 0..n as u64 {
            let c = |a: &Analysis| a.cells[0].comparisons[0].clone();
            let same = c(&trial(
                &Machine::new(noise, 0.0, 0.0, seed),
                seed,
                StopRule::Fixed,
            ));
            claims += usize::from(same.p.is_some_and(|p| p < 0.05));
            naive += usize::from(naive_claims(&Machine::new(noise, 0.0, 0.0, seed)));
            let effect = libm::log(0.9);
            let seed = seed + 1_000_000;
            let other = c(&trial(
                &Machine::new(noise, effect, 0.0, seed),
                seed,
                StopRule::Fixed,
            ));
            let (low, high) = other.ratio95.expect("an interval");
            covered += usize::from((low..=high).contains(&0.9));
            found += usize::from(other.p.is_some_and(|p| p < 0.05));
        }
        let share = |k: usize| 100.0 * k as f64 / n as f64;
        println!(
            "{noise:?} | {:.1} % | {:.1} % | {:.1} % | {:.0} %",
            share(claims),
            share(naive),
            share(covered),
            share(found)
        );
        // Three standard errors of the binomial distribution.
        let error = 300.0 * libm::sqrt(0.05 * 0.95 / n as f64);
        assert!(share(claims) < 5.0 + error, "{noise:?}");
        assert!((share(covered) - 95.0).abs() < error, "{noise:?}");
        // The naive method is wrong unless all seconds are independent.
        assert!(
            noise == Noise::Independent || share(naive) > 20.0,
            "{noise:?}"
        );
    }
}

#[test]
fn repeated_looks_keep_the_error_rate() {
    let n = trials(60);
    let claims = (0..n as u64).filter(|seed| {
        let machine = Machine::new(Noise::Autocorrelated, 0.0, 0.0, *seed);
        let c = &trial(&machine, *seed, StopRule::Decided).cells[0];
        let d = &c.comparisons[0];
        c.blocks < LENGTH.blocks as usize && d.p.is_some_and(|p| p < 0.05)
    });
    let share = 100.0 * claims.count() as f64 / n as f64;
    println!("claims after an early end: {share:.1} %");
    assert!(share < 5.0 + 300.0 * libm::sqrt(0.05 * 0.95 / n as f64));
}

#[test]
fn carry_over_of_ten_percent_is_found() {
    let n = trials(60);
    let flagged = |carried: f64| {
        let found = (0..n as u64).filter(|seed| {
            let machine = Machine::new(Noise::Independent, 0.0, carried, *seed);
            let c = followed(&machine, *seed, StopRule::Fixed).1;
            c.is_some_and(|c| c.p < 0.05)
        });
        100.0 * found.count() as f64 / n as f64
    };
    let (none, ten) = (flagged(0.0), flagged(libm::log(1.1)));
    println!("carry-over flagged: {none:.1} % without, {ten:.1} % with 10 %");
    // A period varies by 5.5 %, so 20 blocks do not find each of these effects.
    assert!(none < 15.0 && ten > 45.0, "{none} {ten}");
}

/// A scheduler that stalls the machine is ended by the guard, and is not tried for ever.
#[test]
fn guard_ends_periods_and_gives_up_a_bad_scheduler() {
    let machine = Machine::new(Noise::Independent, libm::log(20.0), 0.0, 5);
    let cancel = Cancel::new();
    let base = baseline(&machine, 60.0, &cancel);
    let e = experiment(5, StopRule::Fixed);
    let figures = [Figure::ReadMean];
    let original = e.cells[0].specs[0].clone();
    let rule = Some(GuardRule::default());
    let periods = Periods::new(&machine, LENGTH, &figures, rule, &base, original, &());
    let mut store = Memory::default();
    let how = How {
        threads: Some(1),
        ..How::default()
    };
    let done = conduct(&e, &periods, &mut store, &how).expect("stored");
    let bfq: Vec<_> = store.runs.iter().filter(|r| r.key.treatment == 1).collect();
    let early = bfq.iter().filter(|r| r.duration_ns < 6_000_000_000).count();
    assert!(early >= 3, "the guard ended only {early} periods");
    assert_eq!(done.failed, u64::from(LENGTH.blocks) - 3, "not tried again");
    // Both the periods of the old scheduler and the guard use the settings of before the trial.
    let originals = machine.originals.load(Ordering::Relaxed);
    assert_eq!(originals, LENGTH.blocks + 3);
    let job = Job {
        key: RunKey::default(),
        treatment: 0,
        place: 0,
        spec: e.cells[0].specs[0].clone(),
    };
    let period = periods.run(&job, &cancel, &mut |_| {});
    let period = period.ok().and_then(|m| m.record);
    let warnings = period.expect("a period of the old scheduler").warnings;
    assert!(
        warnings.iter().any(|w| w.contains("read_expire is 123")),
        "{warnings:?}"
    );
    let a = analyse(&done.results(&e, store.runs.clone()));
    let c = &a.cells[0].comparisons[0];
    assert!(c.p.is_some_and(|p| p < 0.05), "a loss: {c:?}");
}

/// A machine whose work is a reader beside a bulk writer, and two schedulers.
fn simulated(seed: u64) -> Analysis {
    let device = seekwell::words::device("ssd:sata-tlc-1t").expect("a device");
    let schedulers = seekwell::words::schedulers("mq-deadline,bfq").expect("schedulers");
    let work = seekwell::words::workload("interactive:seconds=900s,size=64m,bulk=256m", &[]);
    let length = Length {
        period_s: 10.0,
        blocks: 6,
        ..LENGTH
    };
    let mut d = simulated_design(device, schedulers, vec![work.expect("work")], &length);
    d.method.seed = seed;
    let mut e = Experiment::from_specs(d).expect("an experiment");
    let figures = [Figure::ReadMean, Figure::Throughput];
    judge(&mut e, &figures);
    let original = e.cells[0].specs[0].clone();
    let bed = SimBed::new(&original, 900.0).expect("a machine");
    let base = baseline(&bed, 10.0, &Cancel::new());
    assert!(base.total.read.ios > 0 && base.seconds.len() == 10);
    let periods = Periods::new(&bed, length, &figures, None, &base, original, &());
    let mut store = Memory::default();
    let how = How {
        threads: Some(1),
        ..How::default()
    };
    let done = conduct(&e, &periods, &mut store, &how).expect("stored");
    assert_eq!((done.failed, store.runs.len()), (0, 12));
    analyse(&done.results(&e, store.runs.clone()))
}

/// bfq turns writeback throttling off, so a read beside a bulk writer takes much longer under it.
/// Separate runs of the simulation show it, and so must a trial whose scheduler is switched.
#[test]
fn simulated_trial_finds_what_separate_runs_show() {
    let a = simulated(1);
    let c = &a.cells[0].comparisons[0];
    let (low, high) = c.ratio95.expect("an interval");
    assert!(low > 3.0, "{low} to {high}");
    let mean = |name: &str| {
        let work = "interactive:seconds=20s,size=64m,bulk=256m";
        let spec = seekwell::spec(work, "ssd:sata-tlc-1t", name).expect("valid");
        let record = seekwell::run(&spec, Default::default()).expect("it runs");
        record.read.latency.mean_ns()
    };
    let alone = mean("bfq") / mean("mq-deadline");
    assert!(
        (low * 0.5..high * 2.0).contains(&alone),
        "{alone} beside {low} to {high}"
    );
}

#[test]
fn simulated_trial_depends_on_the_seed_only() {
    let text = |seed| serde_json::to_string(&simulated(seed).cells).expect("text");
    let one = text(1);
    assert_eq!(one, text(1));
    assert_ne!(one, text(2), "another order of the periods");
}

#[test]
fn block_pairs_beat_unpaired_periods_under_drift() {
    // The analysis of a trial pairs within blocks. The same values unpaired have a wider interval.
    let mut rng = stream(3, "drift");
    let level: Vec<f64> = (0..20).map(|b| 0.1 * f64::from(b)).collect();
    let mut side = |effect: f64| -> Vec<f64> {
        let all = level
            .iter()
            .map(|l| libm::exp(l + effect + 0.02 * normal(&mut rng)));
        all.collect()
    };
    let (a, b) = (side(0.0), side(0.05));
    let some = |v: &[f64]| v.iter().copied().map(Some).collect::<Vec<_>>();
    let own = paired(&some(&b), &some(&a), Better::Lower, false, None);
    assert!(own.p.is_some_and(|p| p < 0.001));
    assert!(welch_log(&b, &a).is_some_and(|w| w.p.is_some_and(|p| p > 0.05)));
}
